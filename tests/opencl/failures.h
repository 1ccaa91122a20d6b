/* failures.h - what the tests of failures below the opencl plugin share: a device with two
 * memories, an event and an operation, and the count of what was left behind. */
#ifndef CEK_TESTS_OPENCL_FAILURES_H
#define CEK_TESTS_OPENCL_FAILURES_H

#include "tests/door/door.h"
#include "tests/opencl/shim.h"

enum { BYTES = 4096 };
static const char *const options[] = { "opencl_cache", "off", NULL };
static door d;
static cek_ref a, b;
static cek_op *op;
static cek_event *event;
static unsigned char bytes[BYTES];

static inline cek_op *softmax_create(void)
{
    cek_softmax_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_SOFTMAX }, .rows = 4, .columns = 4, .type = CEK_F32
    };
    const array arrays[] = { IN(bytes, 64), OUT(bytes, 64) };
    cek_op_info info;
    return door_op(&d, &desc.op, arrays, 2, &info);
}

static inline void open_door(void)
{
    const cek_event_desc timing = { .size = sizeof timing, .flags = CEK_EVENT_TIMING };
    const cek_queue_desc queue = { .size = sizeof queue, .flags = CEK_QUEUE_TIMING };
    door_open(&d, "opencl", options);
    d.plugin.queue_destroy(d.queue);
    ck_assert_uint_eq(d.plugin.queue_create(d.dev, &queue, &d.queue), CEK_OK);
    ck_assert_uint_eq(d.plugin.event_create(d.dev, &timing, &event), CEK_OK);
    a.mem = door_mem(&d, BYTES);
    b.mem = door_mem(&d, BYTES);
    op = softmax_create();
}

/* Everything back where it was: `left` queues of the driver stay, and nothing else of what is counted. */
static inline void shut_door(int left)
{
    d.plugin.op_destroy(op);
    d.plugin.event_destroy(event);
    d.plugin.queue_destroy(d.queue); /* what failed for us may still run, and write */
    d.queue = NULL;
    d.plugin.mem_free(a.mem);
    d.plugin.mem_free(b.mem);
    door_close(&d);
    ck_assert_int_eq(shim.queues, left);
    ck_assert_int_eq(shim.kernels, 0);
    ck_assert_int_eq(shim.programs, 0);
    ck_assert_int_eq(shim.buffers, 0);
    ck_assert_int_eq(shim.blocks, 0);
    ck_assert_int_eq(shim.contexts, 0);
    ck_assert_int_eq(shim.finishes, 0); /* it has no deadline */
}

static inline cek_status fill(void)
{
    return d.plugin.fill(d.queue, a, 7, 4, BYTES);
}

/* The end of a main: runs the suite, or says that there is nothing to run it on. Another process
 * looks, since a child that is forked from one that has a driver loaded would hang. */
static inline int failures_run(Suite *suite)
{
    if (system("CEKERNELS_PLUGINS==opencl \"$CEKERNELS_BENCH\" devices --json 2>/dev/null | grep -q '\"opencl:0\"'")) {
        puts("skipped: no OpenCL device");
        return 77;
    }
    return suite_run(suite);
}

#endif
