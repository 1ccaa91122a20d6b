/* SPDX-License-Identifier: MIT
 *
 * sim_clock.c - the simulator's time: what commands of known size take, to the nanosecond, on one queue and
 * on several, on devices of different speed, and that it is the same every time; and what its settings do to it.
 */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <time.h>

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

START_TEST(queues_of_a_device_share_its_engine)
{
    timer a, b;
    product p;
    uint64_t ns;
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
    ck_assert_uint_eq(d.plugin.event_query(a.end), CEK_NOT_READY);
    ck_assert_uint_eq(d.plugin.event_elapsed(a.start, a.end, &ns), CEK_NOT_READY);
    OK(d.plugin.event_sync(b.end, CEK_FOREVER));
    OK(d.plugin.event_elapsed(b.start, b.end, &ns));
    ck_assert_uint_eq(ns, 2 * once); /* has been ready for longer than a's second */
    ck_assert_uint_eq(d.plugin.event_query(a.end), CEK_NOT_READY);
    OK(d.plugin.event_sync(a.end, CEK_FOREVER));
    OK(d.plugin.event_elapsed(a.start, a.end, &ns));
    ck_assert_uint_eq(ns, 4 * once);
    OK(d.plugin.event_elapsed(b.end, a.end, &ns)); /* b was done when a had two more to go */
    ck_assert_uint_eq(ns, 2 * once);
    ck_assert_uint_eq(d.plugin.event_elapsed(a.end, b.end, &ns), CEK_INVALID);

    product_run(&p, a.queue);
    OK(d.plugin.event_record(a.queue, a.end));
    OK(d.plugin.event_wait(b.queue, a.end));
    product_run(&p, b.queue);
    OK(d.plugin.event_record(b.queue, b.end));
    OK(d.plugin.queue_sync(b.queue, CEK_FOREVER));
    OK(d.plugin.event_elapsed(b.start, b.end, &ns));
    ck_assert_uint_eq(ns, 6 * once); /* behind a's four */

    /* A host that waited for b knows that b is done: what it enqueues next comes after. */
    product_run(&p, a.queue);
    OK(d.plugin.event_record(a.queue, a.end));
    OK(d.plugin.event_sync(a.end, CEK_FOREVER));
    OK(d.plugin.event_elapsed(a.start, a.end, &ns));
    ck_assert_uint_eq(ns, 7 * once);
    product_close(&p);
    timer_close(&a);
    timer_close(&b);
    door_close(&d);
}
END_TEST

START_TEST(transfers_run_beside_computation_and_each_way)
{
    timer a, in, out;
    product p;
    static char bytes[4000];
    uint64_t ns;
    door_open(&d, "sim", options);
    timer_open(&a, d.dev);
    timer_open(&in, d.dev);
    timer_open(&out, d.dev);
    product_open(&p, d.dev, 20);
    cek_mem *mem = door_mem(&d, 8000);
    begin(&a);
    begin(&in);
    begin(&out);
    product_run(&p, a.queue);
    OK(d.plugin.event_record(a.queue, a.end));
    for (int i = 0; i < 2; i++) {
        OK(d.plugin.upload(in.queue, (cek_ref){ mem, 0 }, bytes, 4000));
        OK(d.plugin.download(out.queue, bytes, (cek_ref){ mem, 4000 }, 2000));
    }
    ck_assert_uint_eq(elapsed(&out), 2 * (100 + 2 * 2000));
    ck_assert_uint_eq(elapsed(&in), 2 * (100 + 2 * 4000));
    OK(d.plugin.event_sync(a.end, CEK_FOREVER));
    OK(d.plugin.event_elapsed(a.start, a.end, &ns));
    ck_assert_uint_eq(ns, 10 + 16000);
    d.plugin.mem_free(mem);
    product_close(&p);
    timer_close(&a);
    timer_close(&in);
    timer_close(&out);
    door_close(&d);
}
END_TEST

/* Threads, each with a queue of its own on one device, which compete for its engine; one asks, the others wait. Neither
 * real time nor who comes first is in what they measure. */
typedef struct worker {
    pthread_t thread;
    timer t;
    product p;
    int runs;
    bool asks;
    uint64_t ns;
} worker;

static void *work(void *user)
{
    worker *w = user;
    for (int i = 0; i < w->runs; i++) {
        product_run(&w->p, w->t.queue);
        OK(d.plugin.event_record(w->t.queue, w->t.end));
        while (w->asks && d.plugin.event_query(w->t.end) == CEK_NOT_READY)
            nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
        OK(d.plugin.event_sync(w->t.end, CEK_FOREVER));
    }
    OK(d.plugin.event_elapsed(w->t.start, w->t.end, &w->ns));
    return NULL;
}

START_TEST(the_same_run_takes_the_same_time)
{
    enum { THREADS = 3, TIMES = 20 };
    const uint64_t once = 10 + 2 * 8 * 8 * 8;
    worker workers[THREADS];
    for (int again = 0; again < TIMES; again++) {
        door_open(&d, "sim", options);
        for (int i = 0; i < THREADS; i++) {
            workers[i] = (worker){ .runs = 4 + 3 * i, .asks = i == 1 };
            timer_open(&workers[i].t, d.dev);
            product_open(&workers[i].p, d.dev, 8);
            begin(&workers[i].t);
        }
        for (int i = 0; i < THREADS; i++)
            ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
        for (int i = 0; i < THREADS; i++)
            ck_assert_int_eq(pthread_join(workers[i].thread, NULL), 0);
        /* In turns: three at a time while all three have something to do, then two, then one. */
        ck_assert_uint_eq(workers[0].ns, (3 * 3 + 1) * once);
        ck_assert_uint_eq(workers[1].ns, (3 * 4 + 2 * 2 + 1) * once);
        ck_assert_uint_eq(workers[2].ns, (4 + 7 + 10) * once);
        for (int i = 0; i < THREADS; i++) {
            product_close(&workers[i].p);
            timer_close(&workers[i].t);
        }
        door_close(&d);
    }
}
END_TEST

START_TEST(a_real_clock_takes_the_machines_time)
{
    static const char *const real[] = { "sim_inner", "reference", "sim_clock", "real", "sim_latency_ns", "20M", NULL };
    struct timespec before, after;
    char byte = 1;
    timer t;
    door_open(&d, "sim", real);
    timer_open(&t, d.dev);
    cek_mem *mem = door_mem(&d, 64);
    begin(&t);
    clock_gettime(CLOCK_MONOTONIC, &before);
    OK(d.plugin.upload(t.queue, (cek_ref){ mem, 0 }, &byte, 1));
    OK(d.plugin.event_record(t.queue, t.end));
    OK(d.plugin.event_sync(t.end, CEK_FOREVER));
    clock_gettime(CLOCK_MONOTONIC, &after);
    int64_t ns = (after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec;
    ck_assert_int_ge(ns, 20000000);
    ck_assert_uint_ge(elapsed(&t), 20000000);
    ck_assert_uint_eq(d.plugin.queue_sync(t.queue, 0), CEK_OK);
    OK(d.plugin.upload(t.queue, (cek_ref){ mem, 0 }, &byte, 1));
    ck_assert_uint_eq(d.plugin.queue_sync(t.queue, 1000000), CEK_TIMEOUT);
    d.plugin.mem_free(mem);
    timer_close(&t); /* waits for what is under way */
    door_close(&d);
}
END_TEST

START_TEST(a_speed_changes_when_it_was_told_to)
{
    static const char *const halved[] = { "sim_inner",        "reference",     "sim_flops", "1G", "sim_faults",
                                          "halve@op_run#2/1", "sim_launch_ns", "0",         NULL };
    const uint64_t once = 2 * 20 * 20 * 20;
    cek_dev *other;
    door_open(&d, "sim", halved);
    OK(d.plugin.device_open(d.instance, 1, NULL, &other));
    for (uint32_t i = 0; i < 2; i++) {
        timer t;
        product p;
        timer_open(&t, i ? other : d.dev);
        product_open(&p, t.dev, 20);
        for (uint64_t run = 1; run <= 3; run++) {
            begin(&t);
            product_run(&p, t.queue);
            ck_assert_uint_eq(elapsed(&t), i == 1 && run >= 2 ? 2 * once : once);
        }
        product_close(&p);
        timer_close(&t);
    }
    d.plugin.device_close(other);
    door_close(&d);
}
END_TEST

START_TEST(a_device_tells_what_it_has_done)
{
    static char bytes[4000];
    cek_device_times times = { .size = sizeof times };
    timer t;
    product p;
    door_open(&d, "sim", options);
    timer_open(&t, d.dev);
    product_open(&p, d.dev, 20);
    cek_mem *mem = door_mem(&d, 4000);
    OK(d.plugin.device_times(d.dev, &times));
    ck_assert_uint_eq(times.now_ns, 0);
    product_run(&p, t.queue);
    OK(d.plugin.upload(t.queue, (cek_ref){ mem, 0 }, bytes, 4000)); /* behind it */
    OK(d.plugin.upload(d.queue, (cek_ref){ mem, 0 }, bytes, 1000)); /* beside it */
    OK(d.plugin.queue_sync(t.queue, CEK_FOREVER));
    OK(d.plugin.device_times(d.dev, &times));
    ck_assert_uint_eq(times.now_ns, 10 + 16000 + 100 + 8000);
    ck_assert_uint_eq(times.compute_ns, 10 + 16000);
    ck_assert_uint_eq(times.copy_ns, 100 + 2000 + 100 + 8000);
    ck_assert_uint_eq(times.exposed_ns, 100 + 8000);
    d.plugin.mem_free(mem);
    product_close(&p);
    timer_close(&t);
    door_close(&d);

    static const char *const plain[] = { "sim_inner", "reference", NULL };
    door_open(&d, "sim", plain);
    ck_assert_uint_eq(d.plugin.device_times(d.dev, &times), CEK_UNSUPPORTED);
    door_close(&d);
}
END_TEST

START_TEST(an_inline_device_has_done_what_it_was_told_when_the_call_returns)
{
    static const char *const waits[] = { "sim_inner", "reference", "sim_link", "1G", "sim_inline", "1", NULL };
    cek_device_info info = { .size = sizeof info };
    cek_device_times times = { .size = sizeof times };
    char bytes[64] = { 0 };
    door_open(&d, "sim", waits);
    OK(d.plugin.device_info(d.instance, 0, &info));
    ck_assert(info.flags & CEK_DEVICE_INLINE);
    cek_mem *mem = door_mem(&d, 64);
    OK(d.plugin.upload(d.queue, (cek_ref){ mem, 0 }, bytes, 64));
    OK(d.plugin.device_times(d.dev, &times));
    ck_assert_uint_eq(times.now_ns, 10000 + 64);
    d.plugin.mem_free(mem);
    door_close(&d);
}
END_TEST

START_TEST(without_work_time_passes_and_all_is_zero)
{
    static const char *const idle[] = { "sim_inner", "reference", "sim_flops", "1G", "sim_launch_ns",
                                        "0",         "sim_work",  "none",      NULL };
    float values[4] = { 1, 2, 3, 4 };
    timer t;
    product p;
    door_open(&d, "sim", idle);
    timer_open(&t, d.dev);
    product_open(&p, d.dev, 20);
    ck_assert_ptr_null(d.plugin.mem_host_ptr(p.mem));
    begin(&t);
    OK(d.plugin.fill(t.queue, (cek_ref){ p.mem, 0 }, ~0u, 4, 1600));
    product_run(&p, t.queue);
    OK(d.plugin.download(t.queue, values, p.refs[2], sizeof values));
    ck_assert_uint_eq(elapsed(&t), 16 + 16000 + 10000 + 2);
    for (int i = 0; i < 4; i++)
        ck_assert(values[i] == 0);
    product_close(&p);
    timer_close(&t);
    door_close(&d);
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

enum { ASKERS = 64, COPIES = 4 };

static void *asks_over_and_over(void *arg)
{
    timer *t = arg;
    cek_mem *mem = door_mem(&d, 64);
    char byte = 1;
    for (int i = 0; i < COPIES; i++) {
        OK(d.plugin.upload(t->queue, (cek_ref){ mem, 0 }, &byte, 1));
        OK(d.plugin.event_record(t->queue, t->end));
        while (d.plugin.event_query(t->end) == CEK_NOT_READY)
            nanosleep(&(struct timespec){ .tv_nsec = 1 }, NULL);
    }
    d.plugin.mem_free(mem);
    return NULL;
}

/* More than a processor can serve, so that one of them is always on its way in: a clock that takes it for one that acts
 * stands still until its patience ends, each time. */
START_TEST(of_many_that_ask_over_and_over_none_holds_time_up)
{
    timer timers[ASKERS];
    pthread_t threads[ASKERS];
    cpu_set_t all, one;
    int cpu = 0;
    ck_assert_int_eq(sched_getaffinity(0, sizeof all, &all), 0);
    while (!CPU_ISSET(cpu, &all))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    door_open(&d, "sim", options);
    for (int i = 0; i < ASKERS; i++)
        timer_open(&timers[i], d.dev);
    for (int i = 0; i < ASKERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, asks_over_and_over, &timers[i]), 0);
    for (int i = 0; i < ASKERS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < ASKERS; i++)
        timer_close(&timers[i]);
    door_close(&d);
    ck_assert_int_eq(sched_setaffinity(0, sizeof all, &all), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sim_clock");
    TCase *cases = tcase_create("time");
    tcase_add_test(cases, commands_take_what_their_size_says);
    tcase_add_test(cases, a_command_buffer_takes_what_its_commands_take);
    tcase_add_test(cases, bytes_are_those_of_the_operands);
    tcase_add_test(cases, a_device_three_times_as_fast_takes_a_third);
    tcase_add_test(cases, queues_of_a_device_share_its_engine);
    tcase_add_test(cases, transfers_run_beside_computation_and_each_way);
    tcase_add_test(cases, the_same_run_takes_the_same_time);
    tcase_add_test(cases, a_real_clock_takes_the_machines_time);
    tcase_add_test(cases, a_speed_changes_when_it_was_told_to);
    tcase_add_test(cases, a_device_tells_what_it_has_done);
    tcase_add_test(cases, an_inline_device_has_done_what_it_was_told_when_the_call_returns);
    tcase_add_test(cases, without_work_time_passes_and_all_is_zero);
    tcase_add_test(cases, copies_between_devices_take_the_slower_link);
    tcase_add_test(cases, time_is_asked_for_in_advance);
    suite_add_tcase(suite, cases);
    cases = tcase_create("many");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, of_many_that_ask_over_and_over_none_holds_time_up);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
