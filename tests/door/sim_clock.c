/* SPDX-License-Identifier: MIT
 *
 * sim_clock.c - virtual time: what commands of known size take, to the nanosecond, on one queue and
 * on several, on devices of different speed, and that it is the same every time.
 */
#include <pthread.h>

#include "tests/door/door.h"

#define OK(call) ck_assert_msg((call) == CEK_OK, "%s: %s", #call, d.text)

/* One operation of 1 GFLOP/s takes a nanosecond a FLOP; memory and link are as fast as makes the sums easy. */
static const char *const options[] = {
    "sim_inner",      "reference",     "sim_devices",   "2",        "sim_flops",
    "1G,3G",          "sim_bandwidth", "2G,6G",         "sim_link", "500M,250M",
    "sim_latency_ns", "100,200",       "sim_launch_ns", "10,20",    NULL,
};

static door d;

/* One timed queue with an event in front of what is measured and one behind. */
typedef struct timer {
    cek_dev *dev;
    cek_queue *queue;
    cek_event *start, *end;
} timer;

static void timer_open(timer *t, cek_dev *dev)
{
    const cek_queue_desc queue = { .size = sizeof queue, .flags = CEK_QUEUE_TIMING };
    const cek_event_desc event = { .size = sizeof event, .flags = CEK_EVENT_TIMING };
    t->dev = dev;
    OK(d.plugin.queue_create(dev, &queue, &t->queue));
    OK(d.plugin.event_create(dev, &event, &t->start));
    OK(d.plugin.event_create(dev, &event, &t->end));
}

static void timer_close(timer *t)
{
    d.plugin.event_destroy(t->start);
    d.plugin.event_destroy(t->end);
    d.plugin.queue_destroy(t->queue);
}

static void begin(timer *t)
{
    OK(d.plugin.event_record(t->queue, t->start));
}

static uint64_t elapsed(timer *t)
{
    uint64_t ns;
    OK(d.plugin.event_record(t->queue, t->end));
    OK(d.plugin.event_sync(t->end, CEK_FOREVER));
    OK(d.plugin.event_elapsed(t->start, t->end, &ns));
    return ns;
}

static cek_mem *mem_of(cek_dev *dev, uint64_t bytes)
{
    const cek_mem_desc desc = { .size = sizeof desc, .bytes = bytes };
    cek_mem *mem;
    OK(d.plugin.mem_alloc(dev, &desc, &mem));
    return mem;
}

/* A square product, which any speed bounds: 2 n^3 FLOPs, 12 n^2 bytes. */
typedef struct product {
    cek_op *op;
    cek_mem *mem;
    cek_ref refs[3];
    cek_mem *workspace;
} product;

static void product_open(product *p, cek_dev *dev, uint64_t n)
{
    const cek_gemm_desc desc = { .op = { .size = sizeof desc, .kind = CEK_OP_GEMM, .operands = 7 },
                                 .m = n,
                                 .n = n,
                                 .k = n,
                                 .batch = 1,
                                 .lda = (int64_t)n,
                                 .ldb = (int64_t)n,
                                 .ldc = (int64_t)n,
                                 .a_type = CEK_F32,
                                 .b_type = CEK_F32,
                                 .c_type = CEK_F32 };
    const uint64_t bytes = (4 * n * n + 255) / 256 * 256;
    cek_op_info info = { .size = sizeof info };
    OK(d.plugin.op_create(dev, &desc.op, &info, &p->op));
    p->mem = mem_of(dev, 3 * bytes);
    for (uint32_t i = 0; i < 3; i++)
        p->refs[i] = (cek_ref){ p->mem, i * bytes };
    p->workspace = info.workspace_bytes ? mem_of(dev, info.workspace_bytes) : NULL;
}

static void product_run(product *p, cek_queue *queue)
{
    OK(d.plugin.op_run(queue, p->op, p->refs, 3, (cek_ref){ p->workspace, 0 }));
}

static void product_close(product *p)
{
    d.plugin.op_destroy(p->op);
    d.plugin.mem_free(p->mem);
    d.plugin.mem_free(p->workspace);
}

START_TEST(commands_take_what_their_size_says)
{
    timer t;
    product large, small;
    static char bytes[4096];
    door_open(&d, "sim", options);
    timer_open(&t, d.dev);
    cek_mem *a = door_mem(&d, 8192);
    const cek_ref at = { a, 0 }, behind = { a, 4096 };
    product_open(&large, d.dev, 20);
    product_open(&small, d.dev, 2);
#define TAKES(ns, command)                  \
    do {                                    \
        begin(&t);                          \
        command;                            \
        ck_assert_uint_eq(elapsed(&t), ns); \
    } while (0)
    TAKES(0, (void)0);
    TAKES(10 + 2 * 20 * 20 * 20, product_run(&large, t.queue));  /* FLOPs bound it */
    TAKES(10 + 3 * 4 * 2 * 2 / 2, product_run(&small, t.queue)); /* bytes do: 48 of them, 16 FLOPs */
    TAKES(100 + 2 * 4096, OK(d.plugin.upload(t.queue, at, bytes, 4096)));
    TAKES(100 + 2 * 10, OK(d.plugin.download(t.queue, bytes, at, 10)));
    TAKES(100 + 2 * 8, OK(d.plugin.update(t.queue, at, bytes, 8)));
    TAKES(10 + 4096 / 2, OK(d.plugin.fill(t.queue, at, 0, 4, 4096)));
    TAKES(10 + 2 * 4096 / 2, OK(d.plugin.copy(t.queue, behind, at, 4096)));
    TAKES(0, OK(d.plugin.upload(t.queue, at, bytes, 0)));
    TAKES(0, OK(d.plugin.copy(t.queue, at, behind, 0)));
    TAKES(10 + 1, OK(d.plugin.fill(t.queue, at, 0, 1, 1))); /* half a nanosecond counts as one */
    TAKES(2 * (10 + 2 * 20 * 20 * 20) + 10 + 2048, {
        product_run(&large, t.queue);
        OK(d.plugin.fill(t.queue, at, 0, 4, 4096));
        product_run(&large, t.queue);
    });
    product_close(&large);
    product_close(&small);
    d.plugin.mem_free(a);
    timer_close(&t);
    door_close(&d);
}
END_TEST

START_TEST(a_command_buffer_takes_what_its_commands_take)
{
    timer t;
    product p;
    cek_cmdbuf *cmdbuf;
    door_open(&d, "sim", options);
    timer_open(&t, d.dev);
    product_open(&p, d.dev, 20);
    cek_mem *a = door_mem(&d, 8192);
    const cek_cmd cmds[] = {
        { .kind = CEK_CMD_RUN, .op = p.op, .operands = p.refs, .operand_count = 3, .workspace = { p.workspace, 0 } },
        { .kind = CEK_CMD_FILL, .dst = { a, 0 }, .pattern_bytes = 4, .bytes = 4096 },
        { .kind = CEK_CMD_COPY, .dst = { a, 4096 }, .src = { a, 0 }, .bytes = 4096 },
    };
    OK(d.plugin.cmdbuf_create(d.dev, cmds, 3, sizeof *cmds, &cmdbuf));
    begin(&t);
    OK(d.plugin.cmdbuf_run(t.queue, cmdbuf));
    ck_assert_uint_eq(elapsed(&t), (10 + 16000) + (10 + 2048) + (10 + 4096));
    d.plugin.cmdbuf_destroy(cmdbuf);
    d.plugin.mem_free(a);
    product_close(&p);
    timer_close(&t);
    door_close(&d);
}
END_TEST

/* Each kind of operation once, where FLOPs are free and a byte takes a nanosecond. */
START_TEST(bytes_are_those_of_the_operands)
{
    static const char *const free_flops[] = { "sim_inner", "reference",     "sim_flops", "1000T", "sim_bandwidth",
                                              "1G",        "sim_launch_ns", "0",         NULL };
    enum { COUNT = 640 };
    door_open(&d, "sim", free_flops);
    timer t;
    timer_open(&t, d.dev);
    cek_mem *mem = door_mem(&d, 8 * COUNT * 4);
    OK(d.plugin.fill(t.queue, (cek_ref){ mem, 0 }, 0, 4, 8 * COUNT * 4));
#define AT(i)              \
    {                      \
        mem, (i)*COUNT * 4 \
    }
    const cek_param_range range = { .end = COUNT };
    const cek_optimizer_desc adam = { .op = { .size = sizeof adam, .kind = CEK_OP_OPTIMIZER, .operands = 0x3f },
                                      .count = COUNT,
                                      .ranges = &range,
                                      .range_count = 1,
                                      .range_size = sizeof range,
                                      .epsilon = 1e-8,
                                      .algorithm = CEK_OPTIMIZER_ADAM,
                                      .type = CEK_F32 };
    const cek_softmax_desc softmax = { .op = { .size = sizeof softmax, .kind = CEK_OP_SOFTMAX, .operands = 3 },
                                       .rows = 64,
                                       .columns = 10,
                                       .type = CEK_F32 };
    const cek_reduce_desc sum = { .op = { .size = sizeof sum, .kind = CEK_OP_REDUCE, .operands = 3, .accumulate = 2 },
                                  .function = CEK_REDUCE_SUM,
                                  .axes = 1,
                                  .rank = 2,
                                  .x_type = CEK_F32,
                                  .shape = { 64, 10 },
                                  .x_strides = { 10, 1 } };
    const cek_ref at[] = { AT(0), AT(1), AT(2), AT(3), AT(4), AT(5) };
    const struct {
        const cek_op_desc *desc;
        uint32_t operands;
        uint64_t ns;
    } runs[] = {
        /* parameters and two means updated, gradient; state, step block */
        { &adam.op, 6, 7 * COUNT * 4 + 2 * 256 + 768 },
        { &softmax.op, 2, 2 * COUNT * 4 },
        { &sum.op, 2, COUNT * 4 + 2 * 10 * 4 }, /* the sums are added to */
    };
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        cek_op *op;
        cek_op_info info = { .size = sizeof info };
        OK(d.plugin.op_create(d.dev, runs[i].desc, &info, &op));
        cek_mem *workspace = info.workspace_bytes ? door_mem(&d, info.workspace_bytes) : NULL;
        begin(&t);
        OK(d.plugin.op_run(t.queue, op, at, runs[i].operands, (cek_ref){ workspace, 0 }));
        ck_assert_uint_eq(elapsed(&t), runs[i].ns);
        d.plugin.op_destroy(op);
        d.plugin.mem_free(workspace);
    }
    d.plugin.mem_free(mem);
    timer_close(&t);
    door_close(&d);
}
END_TEST

START_TEST(a_device_three_times_as_fast_takes_a_third)
{
    static const char *const speeds[] = { "sim_inner", "reference", "sim_flops", "1G,3G", "sim_launch_ns", "0", NULL };
    uint64_t ns[2];
    door_open(&d, "sim", speeds);
    for (uint32_t i = 0; i < 2; i++) {
        cek_dev *dev;
        timer t;
        product p;
        OK(d.plugin.device_open(d.instance, i, NULL, &dev));
        timer_open(&t, dev);
        product_open(&p, dev, 30);
        begin(&t);
        product_run(&p, t.queue);
        ns[i] = elapsed(&t);
        product_close(&p);
        timer_close(&t);
        d.plugin.device_close(dev);
    }
    ck_assert_uint_eq(ns[0], 2 * 30 * 30 * 30);
    ck_assert_uint_eq(ns[0], 3 * ns[1]);
    door_close(&d);
}
END_TEST

START_TEST(queues_run_side_by_side_until_one_waits)
{
    timer a, b;
    product p;
    door_open(&d, "sim", options);
    timer_open(&a, d.dev);
    timer_open(&b, d.dev);
    product_open(&p, d.dev, 20);
    const uint64_t once = 10 + 16000;
    begin(&a);
    begin(&b);
    for (int i = 0; i < 3; i++)
        product_run(&p, a.queue);
    product_run(&p, b.queue);
    OK(d.plugin.event_record(a.queue, a.end));
    OK(d.plugin.event_record(b.queue, b.end));
    uint64_t ns;
    OK(d.plugin.event_elapsed(a.start, a.end, &ns));
    ck_assert_uint_eq(ns, 3 * once);
    OK(d.plugin.event_elapsed(b.start, b.end, &ns));
    ck_assert_uint_eq(ns, once);
    OK(d.plugin.event_elapsed(b.end, a.end, &ns)); /* b was done when a had two more to go */
    ck_assert_uint_eq(ns, 2 * once);
    ck_assert_uint_eq(d.plugin.event_elapsed(a.end, b.end, &ns), CEK_INVALID);

    OK(d.plugin.event_wait(b.queue, a.end));
    product_run(&p, b.queue);
    OK(d.plugin.event_record(b.queue, b.end));
    OK(d.plugin.event_elapsed(b.start, b.end, &ns));
    ck_assert_uint_eq(ns, 4 * once); /* behind a's three */

    /* A host that waited for b knows that b is done: what it enqueues next comes after. */
    OK(d.plugin.queue_sync(b.queue, CEK_FOREVER));
    product_run(&p, a.queue);
    OK(d.plugin.event_record(a.queue, a.end));
    OK(d.plugin.event_elapsed(a.start, a.end, &ns));
    ck_assert_uint_eq(ns, 5 * once);
    product_close(&p);
    timer_close(&a);
    timer_close(&b);
    door_close(&d);
}
END_TEST

/* Two threads, each with a queue of its own: neither the other's work nor real time is in what they measure. */
typedef struct worker {
    timer t;
    product p;
    int runs;
    uint64_t ns;
} worker;

static void *work(void *user)
{
    worker *w = user;
    begin(&w->t);
    for (int i = 0; i < w->runs; i++) {
        product_run(&w->p, w->t.queue);
        OK(d.plugin.queue_sync(w->t.queue, CEK_FOREVER));
    }
    w->ns = elapsed(&w->t);
    return NULL;
}

START_TEST(the_same_run_takes_the_same_time)
{
    enum { THREADS = 3 };
    for (int again = 0; again < 5; again++) {
        worker workers[THREADS];
        pthread_t threads[THREADS];
        door_open(&d, "sim", options);
        for (int i = 0; i < THREADS; i++) {
            workers[i].runs = 10 + i;
            timer_open(&workers[i].t, d.dev);
            product_open(&workers[i].p, d.dev, 8);
        }
        for (int i = 0; i < THREADS; i++)
            ck_assert_int_eq(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
        for (int i = 0; i < THREADS; i++) {
            ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
            ck_assert_uint_eq(workers[i].ns, (10 + (uint64_t)i) * (10 + 2 * 8 * 8 * 8));
            product_close(&workers[i].p);
            timer_close(&workers[i].t);
        }
        door_close(&d);
    }
}
END_TEST

START_TEST(copies_between_devices_take_the_slower_link)
{
    timer t;
    cek_dev *other;
    door_open(&d, "sim", options);
    timer_open(&t, d.dev);
    OK(d.plugin.device_open(d.instance, 1, NULL, &other));
    cek_mem *here = door_mem(&d, 4096), *there = mem_of(other, 4096);
    begin(&t);
    OK(d.plugin.copy(t.queue, (cek_ref){ here, 0 }, (cek_ref){ there, 0 }, 1000));
    ck_assert_uint_eq(elapsed(&t), 200 + 4 * 1000);
    d.plugin.mem_free(here);
    d.plugin.mem_free(there);
    d.plugin.device_close(other);
    timer_close(&t);
    door_close(&d);
}
END_TEST

START_TEST(time_is_asked_for_in_advance)
{
    uint64_t ns;
    timer t;
    cek_event *plain;
    door_open(&d, "sim", options);
    timer_open(&t, d.dev);
    OK(d.plugin.event_create(d.dev, NULL, &plain));
    OK(d.plugin.event_record(t.queue, plain));
    begin(&t);
    ck_assert_uint_eq(d.plugin.event_elapsed(t.start, t.end, &ns), CEK_INVALID); /* never recorded */
    ck_assert_uint_eq(d.plugin.event_elapsed(plain, t.start, &ns), CEK_INVALID);
    OK(d.plugin.event_record(d.queue, t.end)); /* a queue without CEK_QUEUE_TIMING */
    ck_assert_uint_eq(d.plugin.event_elapsed(t.start, t.end, &ns), CEK_UNSUPPORTED);
    d.plugin.event_destroy(plain);
    timer_close(&t);
    door_close(&d);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sim_clock");
    TCase *cases = tcase_create("virtual time");
    tcase_add_test(cases, commands_take_what_their_size_says);
    tcase_add_test(cases, a_command_buffer_takes_what_its_commands_take);
    tcase_add_test(cases, bytes_are_those_of_the_operands);
    tcase_add_test(cases, a_device_three_times_as_fast_takes_a_third);
    tcase_add_test(cases, queues_run_side_by_side_until_one_waits);
    tcase_add_test(cases, the_same_run_takes_the_same_time);
    tcase_add_test(cases, copies_between_devices_take_the_slower_link);
    tcase_add_test(cases, time_is_asked_for_in_advance);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
