/* SPDX-License-Identifier: MIT
 *
 * host.c - what only a backend can make happen on a device in host memory: work that fails while it is executed, and a
 * device that is lost.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/host/host.h"
#include "tests/suite.h"

static cek_instance instance;
static cek_dev dev;
static int failing; /* the next run fails */

static void begin(void)
{
    memset(&instance, 0, sizeof instance);
    memset(&dev, 0, sizeof dev);
    ck_assert_uint_eq(cek__host_instance_init(&instance, NULL), CEK_OK);
    ck_assert_uint_eq(cek__host_device_init(&dev, &instance, 3, NULL), CEK_OK);
    failing = 0;
}

static void end(void)
{
    cek__host_device_fini(&dev);
    cek__host_instance_fini(&instance);
}

static void run(const cek_op *op, cek_queue *queue, void *const *at, void *workspace)
{
    (void)op, (void)workspace;
    if (failing)
        cek__failure_set(&queue->failure, CEK_INTERNAL, "kernel %d broke", failing);
    else
        ((float *)at[CEK_SOFTMAX_Y])[0] += 1;
}

static cek_op *op_make(void)
{
    const cek_softmax_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_SOFTMAX, .operands = 3 }, .rows = 1, .columns = 1, .type = CEK_F32
    };
    cek_op *op = calloc(1, sizeof *op), *out;
    cek_op_info info = { .size = sizeof info };
    ck_assert_uint_eq(cek__host_op_init(op, &dev, &desc.op), CEK_OK);
    op->run = run;
    op->info.numeric_id = 77;
    ck_assert_uint_eq(cek__host_op_publish(op, &info, &out), CEK_OK);
    ck_assert_uint_eq(info.numeric_id, 77);
    ck_assert_uint_eq(info.size, sizeof info);
    return out;
}

START_TEST(work_that_fails_in_the_call_makes_the_queue_fail)
{
    cek_queue *queue, *waiter;
    cek_event *event;
    cek_mem *mem;
    cek_cmdbuf *cmdbuf;
    char text[64];
    const cek_mem_desc desc = { .size = sizeof desc, .bytes = 512 };
    cek_op *op = op_make();
    ck_assert_uint_eq(cek__host_queue_create(&dev, NULL, &queue), CEK_OK);
    ck_assert_uint_eq(cek__host_queue_create(&dev, NULL, &waiter), CEK_OK);
    ck_assert_uint_eq(cek__host_event_create(&dev, NULL, &event), CEK_OK);
    ck_assert_uint_eq(cek__host_mem_alloc(&dev, &desc, &mem), CEK_OK);
    memset(mem->base, 0, 512);
    const cek_ref refs[] = { { mem, 0 }, { mem, 256 } }, none = { NULL, 0 };
    const cek_cmd cmds[] = {
        { .kind = CEK_CMD_RUN, .op = op, .operands = refs, .operand_count = 2 },
        { .kind = CEK_CMD_FILL, .dst = { mem, 0 }, .pattern = 1, .pattern_bytes = 4, .bytes = 4 },
    };
    ck_assert_uint_eq(cek__host_cmdbuf_create(&dev, cmds, 2, sizeof *cmds, &cmdbuf), CEK_OK);
    ck_assert_uint_eq(cek__host_op_run(queue, op, refs, 2, none), CEK_OK);
    ck_assert_uint_eq(cek__host_queue_sync(queue, 0), CEK_OK);

    failing = 1;
    ck_assert_uint_eq(cek__host_cmdbuf_run(queue, cmdbuf), CEK_OK); /* enqueued; then it failed */
    ck_assert_int_eq(*mem->base, 0);                                /* and what came behind was not done */
    ck_assert_uint_eq(cek__host_queue_sync(queue, 0), CEK_INTERNAL);
    ck_assert_uint_eq(cek__host_queue_status(queue, text, sizeof text), CEK_INTERNAL);
    ck_assert_str_eq(text, "kernel 1 broke");
    failing = 0;
    ck_assert_uint_eq(cek__host_op_run(queue, op, refs, 2, none), CEK_INTERNAL);
    ck_assert_float_eq(*(float *)(mem->base + 256), 1);

    ck_assert_uint_eq(cek__host_event_record(queue, event), CEK_INTERNAL);
    ck_assert_uint_eq(cek__host_event_query(event), CEK_INTERNAL);
    ck_assert_uint_eq(cek__host_event_wait(waiter, event), CEK_OK);
    ck_assert_uint_eq(cek__host_op_run(waiter, op, refs, 2, none), CEK_INTERNAL);
    ck_assert_uint_eq(cek__host_queue_status(waiter, text, sizeof text), CEK_INTERNAL);
    ck_assert_str_eq(text, "waited for an event that failed: kernel 1 broke");
    ck_assert_uint_eq(cek__host_device_status(&dev, text, sizeof text), CEK_OK);

    cek__host_cmdbuf_destroy(cmdbuf);
    cek__host_op_destroy(op);
    cek__host_event_destroy(event);
    cek__host_queue_destroy(queue);
    cek__host_queue_destroy(waiter);
    cek__host_mem_free(mem);
}
END_TEST

START_TEST(a_lost_device_answers_every_call_with_that)
{
    cek_queue *queue;
    cek_event *event;
    cek_mem *mem, *more;
    void *at;
    uint64_t a, b;
    char text[64], byte = 0;
    const cek_mem_desc desc = { .size = sizeof desc, .bytes = 512 };
    cek_op *op = op_make();
    ck_assert_uint_eq(cek__host_queue_create(&dev, NULL, &queue), CEK_OK);
    ck_assert_uint_eq(cek__host_event_create(&dev, NULL, &event), CEK_OK);
    ck_assert_uint_eq(cek__host_mem_alloc(&dev, &desc, &mem), CEK_OK);
    ck_assert_uint_eq(cek__host_event_record(queue, event), CEK_OK);
    const cek_ref refs[] = { { mem, 0 }, { mem, 256 } }, none = { NULL, 0 };

    cek__latch_set(&dev.lost, "smoke from slot %d", 2);
    cek__latch_set(&dev.lost, "another reason");
    ck_assert_uint_eq(cek__host_device_status(&dev, text, sizeof text), CEK_DEVICE_LOST);
    ck_assert_str_eq(text, "smoke from slot 2");
#define LOST(call) ck_assert_uint_eq(call, CEK_DEVICE_LOST)
    LOST(cek__host_device_memory(&dev, &a, &b));
    LOST(cek__host_mem_alloc(&dev, &desc, &more));
    LOST(cek__host_mem_map(mem, CEK_MAP_READ, &at));
    LOST(cek__host_host_alloc(&dev, 64, &at));
    LOST(cek__host_upload(queue, refs[0], &byte, 1));
    LOST(cek__host_download(queue, &byte, refs[0], 1));
    LOST(cek__host_copy_mem(queue, refs[0], refs[1], 1));
    LOST(cek__host_fill(queue, refs[0], 0, 1, 1));
    LOST(cek__host_update(queue, refs[0], &byte, 0));
    LOST(cek__host_op_run(queue, op, refs, 2, none));
    LOST(cek__host_event_record(queue, event));
    LOST(cek__host_event_wait(queue, event));
    LOST(cek__host_event_query(event));
    LOST(cek__host_event_sync(event, CEK_FOREVER));
    LOST(cek__host_event_status(event, text, sizeof text));
    ck_assert_str_eq(text, "smoke from slot 2");
    LOST(cek__host_event_elapsed(event, event, &a));
    LOST(cek__host_queue_sync(queue, CEK_FOREVER));
    LOST(cek__host_queue_status(queue, text, sizeof text));
    cek_queue *another;
    cek_event *other_event;
    LOST(cek__host_queue_create(&dev, NULL, &another));
    LOST(cek__host_event_create(&dev, NULL, &other_event));
    ck_assert(!more && !another && !other_event && !at);

    cek__host_op_destroy(op);
    cek__host_event_destroy(event);
    cek__host_queue_destroy(queue);
    cek__host_mem_free(mem);
}
END_TEST

START_TEST(what_is_free_is_less_than_all)
{
    uint64_t free_bytes, total_bytes;
    cek__host_memory(&free_bytes, &total_bytes);
    ck_assert_uint_gt(total_bytes, 1 << 20);
    ck_assert_uint_lt(free_bytes, total_bytes);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("backends/host");
    TCase *cases = tcase_create("failures");
    tcase_add_checked_fixture(cases, begin, end);
    tcase_add_test(cases, work_that_fails_in_the_call_makes_the_queue_fail);
    tcase_add_test(cases, a_lost_device_answers_every_call_with_that);
    tcase_add_test(cases, what_is_free_is_less_than_all);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
