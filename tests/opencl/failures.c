/* failures.c - what fails below a queue of the opencl plugin surfaces as plugin.h says: the status,
 * a text that names call and cause, no hang, no crash; and what a failed queue leaves behind is
 * what queue.c says. The shim makes OpenCL's functions fail. */
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "tests/opencl/failures.h"

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* --- commands --------------------------------------------------------------------------------- */

/* clang-format off */
static cek_status run(void)
{
    return d.plugin.op_run(d.queue, op, (cek_ref[]){ a, b }, 2, (cek_ref){ NULL, 0 });
}
/* With other arguments than the last time: those that stay are not set again. */
static cek_status run_elsewhere(void)
{
    static uint64_t turn;
    cek_ref to = { b.mem, 256 * (turn++ % 8) };
    return d.plugin.op_run(d.queue, op, (cek_ref[]){ a, to }, 2, (cek_ref){ NULL, 0 });
}
static cek_status upload(void) { return d.plugin.upload(d.queue, a, bytes, BYTES); }
static cek_status update(void) { return d.plugin.update(d.queue, a, bytes, BYTES); }
static cek_status download(void) { return d.plugin.download(d.queue, bytes, a, BYTES); }
static cek_status copy(void) { return d.plugin.copy(d.queue, b, a, BYTES); }
static cek_status record(void) { return d.plugin.event_record(d.queue, event); }
/* clang-format on */

static const struct command {
    const char *call, *function;
    cek_status (*enqueue)(void);
    shim_call *shim;
} commands[] = {
    { "op_run", "clEnqueueNDRangeKernel", run, &shim.launch },
    { "upload", "clEnqueueWriteBuffer", upload, &shim.write },
    { "update", "clEnqueueWriteBuffer", update, &shim.write },
    { "download", "clEnqueueReadBuffer", download, &shim.read },
    { "copy", "clEnqueueCopyBuffer", copy, &shim.copy },
    { "fill", "clEnqueueFillBuffer", fill, &shim.fill },
    { "event_record", "clEnqueueMarkerWithWaitList", record, &shim.marker },
    { "op_run", "clSetKernelArg", run_elsewhere, &shim.argument }, /* enqueues nothing of its own: last */
};
enum { COMMANDS = sizeof commands / sizeof *commands };

START_TEST(a_command_that_is_refused_leaves_the_queue_usable)
{
    static const struct {
        cl_int error;
        cek_status status;
        const char *text;
    } answers[] = {
        { CL_OUT_OF_RESOURCES, CEK_OUT_OF_MEMORY, "CL_OUT_OF_RESOURCES" },
        { CL_MEM_OBJECT_ALLOCATION_FAILURE, CEK_OUT_OF_MEMORY, "CL_MEM_OBJECT_ALLOCATION_FAILURE" },
        { CL_INVALID_WORK_GROUP_SIZE, CEK_INTERNAL, "CL_INVALID_WORK_GROUP_SIZE" },
        { -9999, CEK_INTERNAL, "-9999" },
    };
    const struct command *c = &commands[_i];
    open_door();
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        c->shim->error = answers[i].error;
        ck_assert_uint_eq(c->enqueue(), answers[i].status);
        ck_assert_msg(strstr(d.text, answers[i].text) && strstr(d.text, c->call) && strstr(d.text, c->function), "%s",
                      d.text);
        c->shim->error = 0;
        ck_assert_uint_eq(c->enqueue(), CEK_OK);
        ck_assert_uint_eq(d.plugin.queue_sync(d.queue, CEK_FOREVER), CEK_OK);
    }
    ck_assert_uint_eq(d.plugin.device_status(d.dev, NULL, 0), CEK_OK);
    shut_door(0);
}
END_TEST

START_TEST(a_device_that_is_gone_is_lost_for_good_and_everything_returns_at_once)
{
    static const cl_int errors[] = { CL_DEVICE_NOT_AVAILABLE, CL_INVALID_COMMAND_QUEUE, CL_INVALID_CONTEXT };
    const cek_mem_desc desc = { .size = sizeof desc, .bytes = BYTES };
    const struct command *c = &commands[_i % COMMANDS];
    char text[256] = "";
    cek_mem *mem;
    cek_queue *queue;
    cek_op *other;
    cek_softmax_desc softmax = { .op = { .size = sizeof softmax, .kind = CEK_OP_SOFTMAX, .operands = 3 },
                                 .rows = 4,
                                 .columns = 4,
                                 .type = CEK_F32 };
    open_door();
    c->shim->error = errors[_i / COMMANDS];
    ck_assert_uint_eq(c->enqueue(), CEK_DEVICE_LOST);
    c->shim->error = 0;
    ck_assert_uint_eq(d.plugin.device_status(d.dev, text, sizeof text), CEK_DEVICE_LOST);
    ck_assert_msg(strstr(text, c->function) != NULL, "%s", text);
    double start = seconds();
    for (int i = 0; i < COMMANDS; i++)
        ck_assert_uint_eq(commands[i].enqueue(), CEK_DEVICE_LOST);
    ck_assert_uint_eq(d.plugin.queue_sync(d.queue, CEK_FOREVER), CEK_DEVICE_LOST);
    ck_assert_uint_eq(d.plugin.queue_status(d.queue, NULL, 0), CEK_DEVICE_LOST);
    ck_assert_uint_eq(d.plugin.event_query(event), CEK_DEVICE_LOST);
    ck_assert_uint_eq(d.plugin.event_wait(d.queue, event), CEK_DEVICE_LOST);
    ck_assert_uint_eq(d.plugin.mem_alloc(d.dev, &desc, &mem), CEK_DEVICE_LOST);
    ck_assert_uint_eq(d.plugin.queue_create(d.dev, NULL, &queue), CEK_DEVICE_LOST);
    ck_assert_uint_eq(d.plugin.op_create(d.dev, &softmax.op, NULL, &other), CEK_DEVICE_LOST);
    d.plugin.op_destroy(op);
    d.plugin.event_destroy(event);
    d.plugin.mem_free(a.mem);
    d.plugin.mem_free(b.mem);
    door_close(&d);
    ck_assert_msg(seconds() - start < 2, "it took %g s", seconds() - start);
}
END_TEST

START_TEST(half_an_operation_makes_the_queue_fail)
{
    cek_op_info info;
    cek_reduce_desc desc = { .op = { .size = sizeof desc, .kind = CEK_OP_REDUCE },
                             .function = CEK_REDUCE_SUM,
                             .axes = 1,
                             .rank = 1,
                             .x_type = CEK_F32,
                             .shape = { 1 << 20 }, /* too many for one launch */
                             .x_strides = { 0 } };
    const array arrays[] = { IN(bytes, 4), OUT(bytes, 4) };
    open_door();
    cek_op *sum = door_op(&d, &desc.op, arrays, 2, &info);
    cek_ref refs[2] = { a, b }, workspace = { door_mem(&d, info.workspace_bytes), 0 };
    ck_assert_uint_eq(fill(), CEK_OK);
    ck_assert_uint_eq(record(), CEK_OK);
    shim.launch.error = CL_OUT_OF_HOST_MEMORY;
    shim.launch.after = 1;
    ck_assert_uint_eq(d.plugin.op_run(d.queue, sum, refs, 2, workspace), CEK_OUT_OF_MEMORY);
    shim.launch.error = 0;
    ck_assert_uint_eq(d.plugin.queue_sync(d.queue, CEK_FOREVER), CEK_OUT_OF_MEMORY);
    ck_assert_uint_eq(d.plugin.op_run(d.queue, sum, refs, 2, workspace), CEK_OUT_OF_MEMORY);
    ck_assert_uint_eq(d.plugin.event_sync(event, CEK_FOREVER), CEK_OK); /* recorded before */
    ck_assert_uint_eq(record(), CEK_OUT_OF_MEMORY);
    ck_assert_uint_eq(d.plugin.event_query(event), CEK_OUT_OF_MEMORY);
    ck_assert_uint_eq(d.plugin.device_status(d.dev, NULL, 0), CEK_OK);
    d.plugin.op_destroy(sum);
    d.plugin.queue_destroy(d.queue); /* the half that was launched may still run, and write */
    d.queue = NULL;
    d.plugin.mem_free(workspace.mem);
    shut_door(2); /* with the queue that times */
}
END_TEST

/* --- work that fails after it was enqueued ---------------------------------------------------- */

START_TEST(work_that_fails_sticks_to_its_queue_and_to_the_events_behind_it)
{
    const struct command *c = &commands[_i];
    cek_queue *other;
    cek_event *before, *behind;
    char text[256] = "";
    open_door();
    ck_assert_uint_eq(d.plugin.queue_create(d.dev, NULL, &other), CEK_OK);
    ck_assert_uint_eq(d.plugin.event_create(d.dev, NULL, &before), CEK_OK);
    ck_assert_uint_eq(d.plugin.event_create(d.dev, NULL, &behind), CEK_OK);
    ck_assert_uint_eq(fill(), CEK_OK);
    ck_assert_uint_eq(d.plugin.event_record(d.queue, before), CEK_OK);
    shim.running = true;
    ck_assert_uint_eq(c->enqueue(), CEK_OK);
    shim.victim_error = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    shim.victim = shim.latest;
    ck_assert_uint_eq(d.plugin.event_record(d.queue, behind), CEK_OK);
    shim.running = false;
    ck_assert_uint_eq(d.plugin.queue_sync(d.queue, CEK_FOREVER), CEK_OUT_OF_MEMORY);
    shim.victim = NULL; /* a driver that has forgotten by now */
    ck_assert_uint_eq(d.plugin.queue_sync(d.queue, CEK_FOREVER), CEK_OUT_OF_MEMORY);
    ck_assert_uint_eq(d.plugin.queue_status(d.queue, text, sizeof text), CEK_OUT_OF_MEMORY);
    ck_assert_msg(strstr(text, "CL_MEM_OBJECT_ALLOCATION_FAILURE") != NULL, "%s", text);
    ck_assert_uint_eq(d.plugin.event_query(before), CEK_OK);
    ck_assert_uint_eq(d.plugin.event_query(behind), CEK_OUT_OF_MEMORY);
    ck_assert_uint_eq(d.plugin.event_sync(behind, CEK_FOREVER), CEK_OUT_OF_MEMORY);
    ck_assert_uint_eq(d.plugin.event_status(behind, text, sizeof text), CEK_OUT_OF_MEMORY);
    ck_assert_msg(strstr(text, "CL_MEM_OBJECT_ALLOCATION_FAILURE") != NULL, "%s", text);
    for (int i = 0; i < COMMANDS; i++)
        ck_assert_uint_eq(commands[i].enqueue(), CEK_OUT_OF_MEMORY);
    ck_assert_uint_eq(d.plugin.event_wait(other, before), CEK_OK);
    ck_assert_uint_eq(d.plugin.queue_sync(other, CEK_FOREVER), CEK_OK);
    ck_assert_uint_eq(d.plugin.event_wait(other, behind), CEK_OK);
    ck_assert_uint_eq(d.plugin.queue_sync(other, CEK_FOREVER), CEK_OUT_OF_MEMORY);
    ck_assert_uint_eq(d.plugin.device_status(d.dev, NULL, 0), CEK_OK);
    double start = seconds();
    d.plugin.queue_destroy(other);
    d.plugin.event_destroy(before);
    d.plugin.event_destroy(behind);
    shut_door(2 + (c->enqueue == record)); /* with the queue that times */
    ck_assert_msg(seconds() - start < 5, "destroying took %g s", seconds() - start);
}
END_TEST

/* How NVIDIA's driver, Intel's and Mesa's tell that a kernel touched what is not its, or ran into a watchdog; the last
 * one is NVIDIA's own number for it. */
START_TEST(a_fault_on_the_device_is_its_loss_and_nobody_tries_again)
{
    static const cl_int faults[] = { CL_OUT_OF_RESOURCES, -9999 };
    const cek_mem_desc desc = { .size = sizeof desc, .bytes = BYTES };
    char text[256] = "";
    cek_mem *mem;
    open_door();
    shim.poisons = true;
    ck_assert_uint_eq(run(), CEK_OK);
    shim.victim_error = faults[_i];
    shim.victim = shim.latest;
    ck_assert_uint_eq(d.plugin.queue_sync(d.queue, CEK_FOREVER), CEK_DEVICE_LOST);
    ck_assert_uint_eq(d.plugin.device_status(d.dev, text, sizeof text), CEK_DEVICE_LOST);
    ck_assert_msg(strstr(text, "softmax failed on the device") != NULL, "%s", text);
    for (int i = 0; i < COMMANDS; i++)
        ck_assert_uint_eq(commands[i].enqueue(), CEK_DEVICE_LOST);
    ck_assert_uint_eq(d.plugin.mem_alloc(d.dev, &desc, &mem), CEK_DEVICE_LOST);
    ck_assert_int_eq(shim.dead_calls, 0);
    d.plugin.op_destroy(op);
    d.plugin.event_destroy(event);
    d.plugin.mem_free(a.mem);
    d.plugin.mem_free(b.mem);
    door_close(&d);
}
END_TEST

/* Nobody has looked at the command that failed when the next call finds no resources. */
START_TEST(a_call_on_a_context_that_died_is_the_loss_of_the_device_and_not_a_want_of_memory)
{
    const cek_mem_desc desc = { .size = sizeof desc, .bytes = BYTES };
    cek_mem *mem;
    open_door();
    shim.fault = CL_OUT_OF_RESOURCES;
    ck_assert_uint_eq(run(), CEK_OK);
    ck_assert_uint_eq(_i ? d.plugin.mem_alloc(d.dev, &desc, &mem) : run(), CEK_DEVICE_LOST);
    ck_assert_msg(strstr(d.text, _i ? "clSVMAlloc" : "CL_OUT_OF_RESOURCES") != NULL, "%s", d.text);
    ck_assert_uint_eq(d.plugin.device_status(d.dev, NULL, 0), CEK_DEVICE_LOST);
    int calls = shim.dead_calls;
    for (int i = 0; i < COMMANDS; i++)
        ck_assert_uint_eq(commands[i].enqueue(), CEK_DEVICE_LOST);
    ck_assert_int_eq(shim.dead_calls, calls);
    d.plugin.op_destroy(op);
    d.plugin.event_destroy(event);
    d.plugin.mem_free(a.mem);
    d.plugin.mem_free(b.mem);
    door_close(&d);
}
END_TEST

START_TEST(a_queue_that_waits_for_what_fails_later_fails_too)
{
    cek_queue *other;
    open_door();
    ck_assert_uint_eq(d.plugin.queue_create(d.dev, NULL, &other), CEK_OK);
    shim.running = true;
    ck_assert_uint_eq(fill(), CEK_OK);
    shim.victim_error = _i ? CL_MEM_OBJECT_ALLOCATION_FAILURE : CL_DEVICE_NOT_AVAILABLE;
    cl_event failing = shim.latest;
    ck_assert_uint_eq(record(), CEK_OK);
    ck_assert_uint_eq(d.plugin.event_query(event), CEK_NOT_READY);
    shim.barrier.error = CL_OUT_OF_HOST_MEMORY;
    ck_assert_uint_eq(d.plugin.event_wait(other, event), CEK_OUT_OF_MEMORY);
    ck_assert_msg(strstr(d.text, "clEnqueueBarrierWithWaitList") != NULL, "%s", d.text);
    shim.barrier.error = 0;
    ck_assert_uint_eq(d.plugin.event_wait(other, event), CEK_OK);
    ck_assert_uint_eq(d.plugin.queue_sync(other, 1000000), CEK_TIMEOUT);
    shim.running = false;
    shim.victim = failing;
    cek_status want = _i ? CEK_OUT_OF_MEMORY : CEK_DEVICE_LOST;
    ck_assert_uint_eq(d.plugin.queue_sync(other, CEK_FOREVER), want);
    ck_assert_uint_eq(d.plugin.queue_sync(d.queue, CEK_FOREVER), want);
    ck_assert_uint_eq(d.plugin.device_status(d.dev, NULL, 0), _i ? CEK_OK : CEK_DEVICE_LOST);
    d.plugin.queue_destroy(other);
    if (_i) {
        shut_door(3); /* with the queue that times */
        return;
    }
    d.plugin.op_destroy(op);
    d.plugin.event_destroy(event);
    d.plugin.mem_free(a.mem);
    d.plugin.mem_free(b.mem);
    door_close(&d);
}
END_TEST

START_TEST(an_event_that_cannot_be_asked_has_failed)
{
    open_door();
    ck_assert_uint_eq(fill(), CEK_OK);
    shim.event_info.error = CL_OUT_OF_HOST_MEMORY;
    ck_assert_uint_eq(d.plugin.queue_sync(d.queue, CEK_FOREVER), CEK_OUT_OF_MEMORY);
    shim.event_info.error = 0;
    shut_door(1);
}
END_TEST

START_TEST(a_time_that_cannot_be_read_is_an_error_of_the_call_alone)
{
    uint64_t ns = 1;
    open_door();
    ck_assert_uint_eq(record(), CEK_OK);
    ck_assert_uint_eq(d.plugin.queue_sync(d.queue, CEK_FOREVER), CEK_OK);
    shim.profiling.error = CL_PROFILING_INFO_NOT_AVAILABLE;
    ck_assert_uint_eq(d.plugin.event_elapsed(event, event, &ns), CEK_INTERNAL);
    ck_assert_uint_eq(ns, 0);
    shim.profiling.error = 0;
    ck_assert_uint_eq(d.plugin.event_elapsed(event, event, &ns), CEK_OK);
    shut_door(0);
}
END_TEST

START_TEST(a_flush_that_fails_fails_the_sync)
{
    open_door();
    ck_assert_uint_eq(fill(), CEK_OK); /* there is something to flush */
    shim.flush.error = CL_OUT_OF_HOST_MEMORY;
    ck_assert_uint_eq(d.plugin.queue_sync(d.queue, CEK_FOREVER), CEK_OUT_OF_MEMORY);
    shim.flush.error = 0;
    ck_assert_uint_eq(d.plugin.queue_sync(d.queue, CEK_FOREVER), CEK_OK);
    shut_door(0);
}
END_TEST

/* --- queues that end late or never ------------------------------------------------------------ */

static void *end_later(void *unused)
{
    usleep(300000);
    shim.running = false;
    return unused;
}

START_TEST(destroying_a_failed_queue_waits_for_what_still_runs_in_it)
{
    pthread_t thread;
    open_door();
    ck_assert_uint_eq(fill(), CEK_OK);
    shim.victim_error = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    shim.victim = shim.latest;
    shim.running = true;
    ck_assert_uint_eq(download(), CEK_OK); /* writes to memory that its owner takes back after queue_destroy */
    ck_assert_uint_eq(d.plugin.queue_sync(d.queue, CEK_FOREVER), CEK_OUT_OF_MEMORY);
    ck_assert_int_eq(pthread_create(&thread, NULL, end_later, NULL), 0);
    double start = seconds();
    d.plugin.queue_destroy(d.queue);
    ck_assert_msg(!shim.running, "the queue was destroyed while its work ran");
    ck_assert_msg(seconds() - start < 5, "it took %g s", seconds() - start);
    pthread_join(thread, NULL);
    ck_assert_uint_eq(d.plugin.device_status(d.dev, NULL, 0), CEK_OK);
    d.queue = NULL;
    shut_door(1);
}
END_TEST

START_TEST(work_that_never_ends_is_left_at_the_deadline)
{
    cek_queue *queue;
    const cek_queue_desc desc = { .size = sizeof desc, .deadline_ns = 200000000 };
    char text[256] = "";
    open_door();
    d.plugin.queue_destroy(d.queue);
    ck_assert_uint_eq(d.plugin.queue_create(d.dev, &desc, &queue), CEK_OK);
    d.queue = queue;
    if (_i) { /* behind a failure */
        ck_assert_uint_eq(fill(), CEK_OK);
        shim.victim_error = CL_MEM_OBJECT_ALLOCATION_FAILURE;
        shim.victim = shim.latest;
    }
    shim.running = true;
    ck_assert_uint_eq(update(), CEK_OK);
    double start = seconds();
    ck_assert_uint_eq(d.plugin.queue_sync(queue, 50000000), _i ? CEK_OUT_OF_MEMORY : CEK_TIMEOUT);
    d.plugin.queue_destroy(queue);
    ck_assert_msg(seconds() - start < 2, "it took %g s", seconds() - start);
    ck_assert_uint_eq(d.plugin.device_status(d.dev, text, sizeof text), CEK_DEVICE_LOST);
    ck_assert_msg(strstr(text, "queue_destroy") && strstr(text, "200 ms"), "%s", text);
    d.plugin.op_destroy(op);
    d.plugin.event_destroy(event);
    d.plugin.mem_free(a.mem);
    d.plugin.mem_free(b.mem);
    d.queue = NULL;
    door_close(&d);
    /* What the work may still use is there for ever: the queue, the memories, what was compiled, the context. */
    ck_assert_int_eq(shim.queues, 1);
    ck_assert_int_eq(shim.buffers, 2);
    ck_assert_int_eq(shim.contexts, 1);
}
END_TEST

/* --- where updates wait ----------------------------------------------------------------------- */

enum { PLACES = 16, UPDATES = PLACES, EACH = 100, MANY = 3 * PLACES };

static void updates_read(int round)
{
    unsigned char got[BYTES];
    ck_assert_uint_eq(d.plugin.download(d.queue, got, a, BYTES), CEK_OK);
    ck_assert_uint_eq(d.plugin.queue_sync(d.queue, CEK_FOREVER), CEK_OK);
    for (int i = 0; i < UPDATES * EACH; i++)
        ck_assert_int_eq(got[i], 50 * round + i / EACH);
}

/* Nobody knows that any of them has been read before the last is enqueued (the strict driver begins at a flush): each
 * has a place of its own, and none waits until the driver has made one. A card gets at them without its driver's help;
 * what was a place once is one again. */
START_TEST(updates_of_a_card_wait_in_page_locked_memory)
{
    const bool card = _i;
    if (card)
        shim_be_strict();
    open_door();
    const int maps = shim.map.calls, buffers = shim.buffers;
    for (int round = 0; round < 3; round++) {
        int pageable = shim.pageable;
        shim.running = !card;
        for (int i = 0; i < UPDATES; i++) {
            unsigned char small[EACH];
            memset(small, 50 * round + i, sizeof small);
            ck_assert_uint_eq(d.plugin.update(d.queue, (cek_ref){ a.mem, (uint64_t)i * EACH }, small, sizeof small),
                              CEK_OK);
            memset(small, 0xff, sizeof small);
        }
        ck_assert_int_eq(shim.pageable - pageable, card ? 0 : UPDATES);
        shim.running = false;
        updates_read(round);
    }
    ck_assert_int_eq(shim.map.calls, maps);
    ck_assert_int_eq(shim.buffers, buffers);
    shut_door(0);
}
END_TEST

/* However many there are: behind the last place they wait in memory of the host like any other. */
START_TEST(updates_without_end_take_no_more_page_locked_memory)
{
    unsigned char got[4 * MANY];
    shim_be_strict();
    open_door();
    for (int round = 0; round < 2; round++) {
        const int maps = shim.map.calls, buffers = shim.buffers, pageable = shim.pageable;
        for (int i = 0; i < MANY; i++) {
            const uint32_t small = (uint32_t)(i + round) * 0x01010101u;
            ck_assert_uint_eq(d.plugin.update(d.queue, (cek_ref){ a.mem, 4 * (uint64_t)i }, &small, 4), CEK_OK);
        }
        ck_assert_int_eq(shim.pageable - pageable, MANY - PLACES);
        ck_assert_int_eq(shim.map.calls, maps);
        ck_assert_int_eq(shim.buffers, buffers);
        ck_assert_uint_eq(d.plugin.download(d.queue, got, a, sizeof got), CEK_OK);
        ck_assert_uint_eq(d.plugin.queue_sync(d.queue, CEK_FOREVER), CEK_OK);
        for (int i = 0; i < 4 * MANY; i++)
            ck_assert_uint_eq(got[i], (unsigned char)(i / 4 + round));
    }
    shut_door(0);
}
END_TEST

/* In its name, and the next queue finds them. */
START_TEST(places_that_cannot_be_had_are_told_by_queue_create)
{
    shim_call *const calls[] = { &shim.buffer, &shim.map };
    shim_be_strict();
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        cek_dev *device = NULL;
        cek_queue *queue = NULL;
        open_door();
        ck_assert_uint_eq(d.plugin.device_open(d.instance, 0, NULL, &device), CEK_OK);
        calls[i]->error = CL_OUT_OF_HOST_MEMORY;
        ck_assert_uint_eq(d.plugin.queue_create(device, NULL, &queue), CEK_OUT_OF_MEMORY);
        ck_assert_msg(!strncmp(d.text, "queue_create: ", 14), "%s", d.text);
        calls[i]->error = 0;
        ck_assert_uint_eq(d.plugin.queue_create(device, NULL, &queue), CEK_OK);
        d.plugin.queue_destroy(queue);
        d.plugin.device_close(device);
        shut_door(0);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("opencl failures");
    TCase *tc = tcase_create("queues");
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, a_command_that_is_refused_leaves_the_queue_usable, 0, COMMANDS);
    tcase_add_loop_test(tc, a_device_that_is_gone_is_lost_for_good_and_everything_returns_at_once, 0, 3 * COMMANDS);
    tcase_add_test(tc, half_an_operation_makes_the_queue_fail);
    tcase_add_loop_test(tc, work_that_fails_sticks_to_its_queue_and_to_the_events_behind_it, 0, COMMANDS - 1);
    tcase_add_loop_test(tc, a_fault_on_the_device_is_its_loss_and_nobody_tries_again, 0, 2);
    tcase_add_loop_test(tc, a_call_on_a_context_that_died_is_the_loss_of_the_device_and_not_a_want_of_memory, 0, 2);
    tcase_add_loop_test(tc, a_queue_that_waits_for_what_fails_later_fails_too, 0, 2);
    tcase_add_test(tc, an_event_that_cannot_be_asked_has_failed);
    tcase_add_test(tc, a_time_that_cannot_be_read_is_an_error_of_the_call_alone);
    tcase_add_test(tc, a_flush_that_fails_fails_the_sync);
    tcase_add_test(tc, destroying_a_failed_queue_waits_for_what_still_runs_in_it);
    tcase_add_loop_test(tc, work_that_never_ends_is_left_at_the_deadline, 0, 2);
    tcase_add_loop_test(tc, updates_of_a_card_wait_in_page_locked_memory, 0, 2);
    tcase_add_test(tc, updates_without_end_take_no_more_page_locked_memory);
    tcase_add_test(tc, places_that_cannot_be_had_are_told_by_queue_create);
    suite_add_tcase(suite, tc);
    return failures_run(suite);
}
