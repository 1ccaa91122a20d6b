/* train_balance.c - shares by measurement in the trainer, over simulated devices: what it finds, that others than the
 * first members are trained alike, and that a device outside costs nothing. */
#include <math.h>

#include "core/base/fault.h"
#include "nn/train/schedule_inside.h"
#include "nn/train/trainer.h"
#include "train_bench.h"

enum { STEPS = 60 };

static void fleet(const char *count, const char *flops, const char *link)
{
    setenv("CEKERNELS_SIM_DEVICES", count, 1);
    setenv("CEKERNELS_SIM_FLOPS", flops, 1);
    setenv("CEKERNELS_SIM_LINK", link, 1);
    setenv("CEKERNELS_SIM_LAUNCH_NS", "100", 1);
    setenv("CEKERNELS_SIM_LATENCY_NS", "100", 1);
}

static void fleet_over(void)
{
    unsetenv("CEKERNELS_SIM_FLOPS");
    unsetenv("CEKERNELS_SIM_LINK");
    unsetenv("CEKERNELS_SIM_LAUNCH_NS");
    unsetenv("CEKERNELS_SIM_LATENCY_NS");
}

static cek_trainer_options automatic(void)
{
    cek_trainer_options o = options_small();
    o.shares = CEK_SHARES_AUTO;
    return o;
}

/* So many steps, as many under way as there may be; the last loss. */
static double train(bench *b, int steps)
{
    double loss = 0;
    int collected = 0;
    for (int submitted = 0; collected < steps;) {
        cek_step_result r = { .size = sizeof r };
        cek_batch batch = batch_of(0, SAMPLES);
        for (; submitted < steps && cek_trainer_uncollected(b->trainer) < CEK_DEPTH_DEFAULT; submitted++)
            ok(cek_trainer_submit(b->trainer, &batch));
        ok(cek_trainer_collect(b->trainer, &r));
        ck_assert_int_eq(r.samples, SAMPLES);
        loss = r.loss;
        collected++;
    }
    return loss;
}

static int64_t share(const bench *b, size_t i)
{
    return cek_trainer_share(b->trainer, i);
}

START_TEST(shares_are_those_of_the_speeds)
{
    cek_trainer_options o = automatic();
    bench b;
    fleet("3", "4G,2G,1G", "100G");
    bench_open(&b, "1", "sim", &o);
    train(&b, STEPS);
    /* 96 in the proportion 4 : 2 : 1 is 54.9, 27.4, 13.7 */
    ck_assert_int_eq(share(&b, 0) + share(&b, 1) + share(&b, 2), SAMPLES);
    ck_assert_msg(share(&b, 0) >= 50 && share(&b, 0) <= 58 && share(&b, 1) >= 25 && share(&b, 1) <= 30,
                  "shares are %lld %lld %lld", (long long)share(&b, 0), (long long)share(&b, 1),
                  (long long)share(&b, 2));
    replicas_are_equal(&b);
    bench_close(&b);
    fleet_over();
}
END_TEST

/* Losses are those of equal shares but for rounding: moments and parameters move with the members. */
START_TEST(a_slow_device_leaves_and_training_goes_on_as_before)
{
    cek_trainer_options o = automatic();
    double loss, want;
    cek_metrics metrics = { .size = sizeof metrics }, alone = { .size = sizeof alone };
    cek_dataset *data = NULL;
    const cek_array_options arrays = { .size = sizeof arrays,
                                       .rank = 3,
                                       .shape = { 1, SIDE, SIDE },
                                       .input_type = CEK_F32,
                                       .count = SAMPLES,
                                       .inputs = images,
                                       .classes = CLASSES,
                                       .labels = labels };
    bench b;
    fleet("3", _i == 0 ? "4G,4G,10M" : "4G,10M,10M", "100G");
    o.optimizer = &(cek_optimizer){ .size = sizeof(cek_optimizer), .algorithm = CEK_OPTIMIZER_ADAM, .lr = 0.002 };
    bench_open(&b, "1", "sim", &o);
    ok(cek_dataset_arrays(&arrays, &data));
    loss = train(&b, STEPS);
    ck_assert_int_eq(share(&b, 2), 0);
    ck_assert(_i == 0 ? share(&b, 1) > 0 : share(&b, 0) == SAMPLES);
    ok(cek_trainer_evaluate(b.trainer, data, &metrics));
    replicas_are_equal(&b); /* also those that are asked for and have no part */
    const cek_batch held = batch_of(0, SAMPLES);
    ok(cek_trainer_backward(b.trainer, &held, NULL));
    replicas_are_equal(&b);
    ok(cek_trainer_update(b.trainer));
    replicas_are_equal(&b); /* what they were given while gradients waited is old again */
    ok(cek_trainer_pull(b.trainer));
    train(&b, 3);
    bench_close(&b);
    fleet_over();

    o.shares = CEK_SHARES_EQUAL;
    bench_open(&b, "1", "cpu", &o);
    want = train(&b, STEPS);
    ok(cek_trainer_evaluate(b.trainer, data, &alone));
    ck_assert_msg(fabs(loss - want) <= 1e-3 * fabs(want) + 1e-5, "loss %.9g, alone %.9g", loss, want);
    ck_assert_msg(fabs(metrics.loss - alone.loss) <= 1e-3 * alone.loss + 1e-5, "evaluated %.9g, alone %.9g",
                  metrics.loss, alone.loss);
    bench_close(&b);
    cek_dataset_free(data);
}
END_TEST

/* It is asked another time. */
START_TEST(no_step_fails_where_there_is_no_memory_to_ask_a_device_outside)
{
    cek_trainer_options o = automatic();
    bool waits = false;
    long site = 1, failed = 0;
    bench b;
    fleet("2", "4G,10M", "100G");
    bench_open(&b, "1", "sim", &o);
    train(&b, STEPS);
    ck_assert_int_eq(share(&b, 1), 0);
    cek__balance *balance = &b.trainer->balance;
    for (; !waits; site++) {
        balance->schedule->outside[1].patience = 0; /* it is its time */
        balance->schedule->outside[1].since = 1e9;
        balance->resumed[1] = 0;
        cek__fault_set(CEK__FAULT_ALLOC, site);
        train(&b, 1);
        waits = cek__fault_pending(CEK__FAULT_ALLOC);
        cek__fault_set(CEK__FAULT_ALLOC, 0);
        failed += balance->resumed[1] == 0;
        ck_assert(!waits || balance->resumed[1] > 0);
    }
    ck_assert_int_gt(failed, 5);
    bench_close(&b);
    fleet_over();
}
END_TEST

START_TEST(inline_devices_are_measured_too_and_any_batch_is_taken)
{
    cek_trainer_options o = automatic();
    bench b;
    o.depth = 1 + (uint32_t)_i;
    bench_open(&b, "3", "cpu", &o);
    for (int i = 0; i < STEPS; i++)
        step(&b, 0, i % 5 == 4 ? 1 + i % 7 : SAMPLES);
    ck_assert_int_eq(share(&b, 0) + share(&b, 1) + share(&b, 2), 1 + (STEPS - 1) % 7);
    replicas_are_equal(&b);
    bench_close(&b);
}
END_TEST

/* What one device alone cannot hold beside the others' state is not asked of it. */
START_TEST(a_memory_limit_keeps_the_members)
{
    cek_trainer_options o = automatic();
    bench b;
    fleet("2", "4G,10M", "100G");
    bench_open(&b, "1", "sim", &o);
    o.memory_limit = cek_trainer_planned_bytes(b.trainer, 0) + 1024;
    bench_close(&b);
    bench_open(&b, "1", "sim", &o);
    train(&b, STEPS);
    ck_assert_int_gt(share(&b, 0), SAMPLES - 8);
    ck_assert_uint_le(cek_trainer_planned_bytes(b.trainer, 0), o.memory_limit);
    replicas_are_equal(&b);
    bench_close(&b);
    fleet_over();
}
END_TEST

/* Of two views of the processor one has all parameters from the first step on: moments and averages of all. */
START_TEST(a_first_view_is_planned_as_the_only_owner)
{
    cek_trainer_options o = automatic();
    bench b;
    o.batch = 8;
    o.average = 0.99;
    bench_engine(&b, "1", "cpu,reference");
    ck_assert_int_eq(b.count, 2);
    cek_model_free(b.model);
    ok(cek_model_parse("flatten linear:2048 relu linear:1024 relu linear:5", 3, (int64_t[]){ 1, SIDE, SIDE },
                       &b.model));
    for (int i = 0; i < 2; i++) {
        ok(cek_trainer_create(b.model, b.devices, b.count, &o, &b.trainer));
        ck_assert(i == 0 || cek_trainer_planned_bytes(b.trainer, 0) <= o.memory_limit);
        o.memory_limit = cek_trainer_planned_bytes(b.trainer, 0) - 1;
        cek_trainer_free(b.trainer);
    }
    b.trainer = NULL;
    bench_close(&b);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("train balance");
    TCase *tc = tcase_create("train balance");

    tcase_add_test(tc, shares_are_those_of_the_speeds);
    tcase_add_loop_test(tc, a_slow_device_leaves_and_training_goes_on_as_before, 0, 2);
    tcase_add_test(tc, no_step_fails_where_there_is_no_memory_to_ask_a_device_outside);
    tcase_add_loop_test(tc, inline_devices_are_measured_too_and_any_batch_is_taken, 0, 3);
    tcase_add_test(tc, a_memory_limit_keeps_the_members);
    tcase_add_test(tc, a_first_view_is_planned_as_the_only_owner);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
