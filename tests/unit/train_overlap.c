/* train_overlap.c - what exchange costs where it runs beside computation: steps of mnist-cnn on simulated devices, in
 * their own time, to the nanosecond. A step takes little longer than its longest device computes, additions and updates
 * included; on devices whose calls wait for the work, or where the host waits behind each bucket, it
 * takes much longer. */
#include <stdio.h>
#include <string.h>

#include "cekernels/nn.h"
#include "host_waits.h"
#include "tests/suite.h"

#define ok(call) ck_assert_msg((call) == CEK_OK, "%s: %s", #call, cek_error_text())

/* mnist-cnn of cekernels-bench, and its batch on each device. */
#define NET "conv:64,3,p1 relu conv:128,3,p1 relu maxpool:2 flatten linear:1024 relu dropout:0.5 linear:10"
enum { SIDE = 28, EACH = 64, DEVICES_MOST = 8 };

/* The first steps fill the pipe; those that are measured are alike. After six every stretch of a plan is one call. */
enum { STEPS = 2, AHEAD = 2 };
static int warm = 2;

/* The first bucket has the linear layers, the last one both convolutions, with their biases in f32. */
enum {
    FIRST_BYTES = 4 * (1024 * (128 * 14 * 14 + 1) + 10 * (1024 + 1)),
    LAST_BYTES = 4 * (64 * 10 + 128 * (64 * 9 + 1))
};
_Static_assert(LAST_BYTES < 1000000, "the last bucket is small");

/* Of a link each way, and its latency. */
static uint64_t bytes_in_us = 12000;
enum { LATENCY_NS = 10000 };

/* The last bucket goes out and comes back. */
static uint64_t last_ns(void)
{
    return 2 * (LATENCY_NS + 1000 * LAST_BYTES / bytes_in_us);
}

typedef struct fleet {
    cek_engine *engine;
    cek_device **devices;
    size_t count;
    cek_model *model;
    cek_trainer *trainer;
} fleet;

static void number_set(const char *name, uint64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    setenv(name, text, 1);
}

/* Operations a second; how long one may keep the engine to itself, in ns, or "0", to its end. */
static const char *flops = "1T", *wave = "100k";

/* Whether the host waits behind each bucket. */
static bool host_waits;

/* Nothing is really computed. */
static void fleet_open(fleet *f, int devices, bool shared, bool inline_work)
{
    *f = (fleet){ .engine = NULL };
    number_set("CEKERNELS_SIM_DEVICES", (uint64_t)devices);
    number_set("CEKERNELS_SIM_SHARED", shared);
    number_set("CEKERNELS_SIM_INLINE", inline_work);
    setenv("CEKERNELS_SIM_FLOPS", flops, 1);
    setenv("CEKERNELS_SIM_WAVE_NS", wave, 1);
    number_set("CEKERNELS_SIM_LINK", bytes_in_us * 1000000);
    number_set("CEKERNELS_SIM_LATENCY_NS", LATENCY_NS);
    setenv("CEKERNELS_SIM_WORK", "none", 1);
    ok(cek_engine_create(NULL, &f->engine));
    ok(cek_engine_select(f->engine, "sim", CEK_PROFILE_TRAINING, &f->devices, &f->count));
    ck_assert_uint_eq(f->count, devices);
    if (host_waits)
        waited_wrap(f->devices, FIRST_BYTES);
    ok(cek_model_parse(NET, 3, (int64_t[]){ 1, SIDE, SIDE }, &f->model));
    cek_model_init(f->model, 1);
    const cek_trainer_options o = {
        .size = sizeof o, .batch = EACH * devices, .depth = AHEAD, .shares = CEK_SHARES_EQUAL
    };
    ok(cek_trainer_create(f->model, f->devices, f->count, &o, &f->trainer));
}

static void fleet_close(fleet *f)
{
    cek_trainer_free(f->trainer);
    cek_model_free(f->model);
    free(f->devices);
    cek_engine_free(f->engine);
}

static void times_read(const fleet *f, cek_device_times *times)
{
    for (size_t i = 0; i < f->count; i++) {
        times[i] = (cek_device_times){ .size = sizeof *times };
        ok(cek_device_read_times(f->devices[i], &times[i]));
    }
}

/* What a step takes, and of that the longest that a device computes; how often the host waited for the first device,
 * mapped its memory and asked it, from the first call to the last. */
typedef struct measured {
    uint64_t step_ns, compute_ns;
    unsigned long long queue_syncs, event_syncs, queries, maps;
} measured;

static void on_log(void *user, int level, const char *text)
{
    measured *m = user;
    const char *line = strstr(text, "sim:0: queue_sync ");
    (void)level;
    if (line)
        ck_assert_int_eq(sscanf(line, "sim:0: queue_sync %llu, event_sync %llu, event_query %llu, mem_map %llu",
                                &m->queue_syncs, &m->event_syncs, &m->queries, &m->maps),
                         4);
}

static measured measure_steps(int devices, bool shared, bool inline_work, int steps)
{
    static float inputs[DEVICES_MOST * EACH][SIDE * SIDE];
    static int32_t targets[DEVICES_MOST * EACH];
    const cek_batch batch = {
        .size = sizeof batch, .count = EACH * devices, .inputs = inputs, .targets = targets, .input_type = CEK_F32
    };
    cek_device_times before[DEVICES_MOST], after[DEVICES_MOST];
    measured m = { 0 };
    fleet f;
    fleet_open(&f, devices, shared, inline_work);
    for (int submitted = 0, collected = 0; collected < warm + steps; collected++) {
        for (; submitted < warm + steps + AHEAD && submitted < collected + AHEAD; submitted++)
            ok(cek_trainer_submit(f.trainer, &batch));
        ok(cek_trainer_collect(f.trainer, NULL));
        if (collected + 1 == warm)
            times_read(&f, before);
    }
    times_read(&f, after);
    for (int i = 0; i < devices; i++) {
        uint64_t ns = (after[i].compute_ns - before[i].compute_ns) / (uint64_t)steps;
        m.compute_ns = ns > m.compute_ns ? ns : m.compute_ns;
    }
    m.step_ns = (after[0].now_ns - before[0].now_ns) / (uint64_t)steps;
    cek_log_set(on_log, &m, CEK_LOG_INFO); /* told when the instance goes */
    fleet_close(&f);
    cek_log_set(NULL, NULL, 0);
    return m;
}

static measured measure(int devices, bool shared, bool inline_work)
{
    return measure_steps(devices, shared, inline_work, STEPS);
}

/* Of a step to its computing and the exchange of the last bucket, which nothing can hide. */
static double ratio(const char *what, int devices, bool shared, measured m)
{
    double r = (double)m.step_ns / (double)(m.compute_ns + last_ns());
    printf("%d devices, %s, %s: a step takes %.3f ms, of computing %.3f ms, %.3f times that and the last bucket\n",
           devices, shared ? "each reads the others' memory" : "through the host's memory", what,
           (double)m.step_ns / 1e6, (double)m.compute_ns / 1e6, r);
    return r;
}

START_TEST(a_step_takes_little_longer_than_it_computes)
{
    static const struct {
        int devices;
        bool shared;
        double most;
    } fleets[] = { { 2, false, 1.05 }, { 3, false, 1.05 }, { 2, true, 1.05 },
                   { 3, true, 1.05 },  { 8, false, 1.05 }, { 8, true, 1.1 } };
    int devices = fleets[_i].devices;
    bool shared = fleets[_i].shared;
    double r = ratio("nobody waits", devices, shared, measure(devices, shared, false));
    ck_assert_msg(r <= fleets[_i].most, "%.4f", r);
}
END_TEST

/* Additions and updates run only where an operation of backward ends. */
START_TEST(operations_that_keep_the_engine_hold_a_step_up_by_little)
{
    double r;
    wave = "0";
    r = ratio("operations keep the engine", 2, _i, measure(2, _i, false));
    ck_assert_msg(r <= 1.1, "%.4f", r);
}
END_TEST

START_TEST(devices_that_work_inline_hide_nothing)
{
    double r = ratio("each call waits", 2 + _i, false, measure(2 + _i, false, true));
    ck_assert_msg(r >= 1.25, "%.4f", r);
}
END_TEST

/* Through links that are busy for a third of the time that is computed, each way, with half of all gradients and half
 * of all parameters. In the pause the devices add and update, a ninth of what they compute, so it costs less than
 * the links take. */
START_TEST(a_host_that_waits_behind_each_bucket_hides_little)
{
    double none, each;
    warm = 8;
    bytes_in_us = 7000;
    none = ratio("links of 7 GB/s, nobody waits", 2, false, measure(2, false, false));
    host_waits = true;
    each = ratio("links of 7 GB/s, the host waits behind each bucket", 2, false, measure(2, false, false));
    ck_assert_uint_ge(waited.waits, 2 * STEPS);
    ck_assert_msg(none <= 1.05, "%.4f", none);
    ck_assert_msg(each >= 1.25, "%.4f", each);
}
END_TEST

START_TEST(twenty_runs_take_the_same_time)
{
    measured first = measure_steps(2, true, false, 1);
    ratio("nobody waits", 2, true, first);
    for (int i = 1; i < 20; i++) {
        measured again = measure_steps(2, true, false, 1);
        ck_assert_uint_eq(again.step_ns, first.step_ns);
        ck_assert_uint_eq(again.compute_ns, first.compute_ns);
    }
}
END_TEST

START_TEST(a_step_neither_drains_a_queue_nor_maps_memory)
{
    measured some = measure_steps(2, _i, false, STEPS), more = measure_steps(2, _i, false, 2 * STEPS);
    double steps = STEPS;
    printf("a step and device: %g queue_sync, %g event_sync, %g event_query, %g mem_map\n",
           ((double)more.queue_syncs - (double)some.queue_syncs) / steps,
           ((double)more.event_syncs - (double)some.event_syncs) / steps,
           ((double)more.queries - (double)some.queries) / steps, ((double)more.maps - (double)some.maps) / steps);
    ck_assert_uint_gt(some.queries, 0);
    ck_assert_uint_eq(more.queue_syncs, some.queue_syncs);
    ck_assert_uint_eq(more.maps, some.maps);
}
END_TEST

/* In the machine's time, with operations of 0.1 s and more: who sat in one's driver would not hear of the other. */
START_TEST(a_device_with_a_long_operation_is_asked_and_not_waited_for)
{
    measured some, more;
    flops = "80G";
    setenv("CEKERNELS_SIM_CLOCK", "real", 1);
    some = measure_steps(2, false, false, 1);
    more = measure_steps(2, false, false, 4);
    ck_assert_uint_gt(more.queries, some.queries);
    ck_assert_uint_eq(more.event_syncs, some.event_syncs);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("train_overlap");
    TCase *c = tcase_create("train_overlap");
    tcase_set_timeout(c, 300);
    tcase_add_loop_test(c, a_step_takes_little_longer_than_it_computes, 0, 6);
    tcase_add_loop_test(c, operations_that_keep_the_engine_hold_a_step_up_by_little, 0, 2);
    tcase_add_loop_test(c, devices_that_work_inline_hide_nothing, 0, 2);
    tcase_add_test(c, a_host_that_waits_behind_each_bucket_hides_little);
    tcase_add_test(c, a_device_with_a_long_operation_is_asked_and_not_waited_for);
    tcase_add_loop_test(c, a_step_neither_drains_a_queue_nor_maps_memory, 0, 2);
    tcase_add_test(c, twenty_runs_take_the_same_time);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
