/* train.c - what holds for training over several devices: exact gradients, one writer per shard, clean failures.
 *
 * Runs on CPU devices that share the machine's processors; a simulated device fails on demand. */
#include <math.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

#include "fakes.h"
#include "train_bench.h"

START_TEST(replica_weights_stay_bit_identical_when_shares_are_unequal)
{
    bench b;
    double first, last = 0;
    cek_trainer_options o = options_small();
    o.shares = CEK_SHARES_GIVEN;
    o.share_weights = (double[]){ 3, 1, 2.5 };
    bench_open(&b, "3", "cpu", &o);
    ck_assert_uint_eq(b.count, 3);
    first = step(&b, 0, SAMPLES);
    for (int i = 1; i < 60; i++)
        last = step(&b, 0, i % 7 == 0 ? 50 : SAMPLES); /* an uneven last batch now and then */
    ck_assert_msg(last < 0.5 * first, "the loss went from %g to %g", first, last);
    replicas_are_equal(&b);
    bench_close(&b);
}
END_TEST

START_TEST(a_device_without_samples_still_gets_the_weights)
{
    bench b;
    cek_trainer_options o = options_small();
    o.shares = CEK_SHARES_GIVEN;
    o.share_weights = (double[]){ 0, 1, 1 };
    bench_open(&b, "3", "cpu", &o);
    for (int i = 0; i < 5; i++)
        step(&b, 0, i == 3 ? 1 : SAMPLES);
    ck_assert_int_eq(cek_trainer_share(b.trainer, 0), 0);
    replicas_are_equal(&b);
    bench_close(&b);
}
END_TEST

START_TEST(the_loss_does_not_depend_on_the_number_of_devices)
{
    double alone[10];
    static const char *const counts[] = { "1", "2", "3" };
    for (size_t c = 0; c < 3; c++) {
        bench b;
        cek_trainer_options o = options_small();
        bench_open(&b, counts[c], "cpu", &o);
        ck_assert_uint_eq(b.count, c + 1);
        for (int i = 0; i < 10; i++) {
            double loss = step(&b, i % 3, i == 4 ? 31 : 64);
            if (c == 0)
                alone[i] = loss;
            ck_assert_msg(fabs(loss - alone[i]) <= 1e-5 * fabs(alone[i]), "%zu devices, step %d: %.9g, alone %.9g",
                          c + 1, i + 1, loss, alone[i]);
        }
        bench_close(&b);
    }
}
END_TEST

/* All gradients of one step, one after another. */
static double *gradients(bench *b, int64_t *count)
{
    double *all = NULL;
    *count = 0;
    for (size_t p = 0; p < cek_model_parameter_count(b->model); p++) {
        cek_parameter info;
        ok(cek_model_parameter(b->model, p, &info));
        all = realloc(all, (size_t)(*count + info.count) * sizeof *all);
        ok(cek_trainer_read_gradient(b->trainer, p, all + *count, info.count));
        *count += info.count;
    }
    return all;
}

/* In f64 there are no rounding differences to hide behind. */
START_TEST(the_gradient_is_that_of_the_whole_batch_however_it_is_split)
{
    bench b;
    int64_t n, m;
    double *want, *got, norm = 0, difference = 0;
    cek_trainer_options o = options_small();
    o.type = CEK_F64;
    bench_open(&b, "1", "reference:0", &o);
    step(&b, 0, 50);
    want = gradients(&b, &n);
    bench_close(&b);

    bench_engine(&b, "1", "reference:0");
    o.memory_limit = 0;
    for (uint64_t limit = 1u << 20;; limit += limit / 4) { /* the smallest of these limits that works: micro-batches */
        o.memory_limit = limit;
        if (cek_trainer_create(b.model, b.devices, b.count, &o, &b.trainer) == CEK_OK)
            break;
        ck_assert(limit < 1u << 30);
    }
    ck_assert_int_lt(cek_trainer_micro_batch(b.trainer, 0), 50);
    ck_assert_uint_le(cek_trainer_planned_bytes(b.trainer, 0), o.memory_limit);
    step(&b, 0, 50);
    got = gradients(&b, &m);
    ck_assert_int_eq(n, m);
    for (int64_t i = 0; i < n; i++) {
        norm += want[i] * want[i];
        difference += (want[i] - got[i]) * (want[i] - got[i]);
    }
    ck_assert_msg(norm > 0 && sqrt(difference / norm) < 1e-12, "relative difference %g", sqrt(difference / norm));
    free(want);
    free(got);
    bench_close(&b);
}
END_TEST

START_TEST(a_memory_limit_that_is_too_small_is_out_of_memory_with_the_numbers)
{
    bench b;
    cek_trainer_options o = options_small();
    o.memory_limit = 1 << 16; /* parameters and their optimizer state take more */
    bench_engine(&b, "1", "cpu:0");
    ck_assert_uint_eq(cek_trainer_create(b.model, b.devices, b.count, &o, &b.trainer), CEK_OUT_OF_MEMORY);
    ck_assert_ptr_null(b.trainer);
    ck_assert_msg(strstr(cek_error_text(), "cpu:0") && strstr(cek_error_text(), "65536"), "%s", cek_error_text());
    bench_close(&b);
}
END_TEST

START_TEST(what_does_not_fit_is_refused_and_the_trainer_goes_on)
{
    bench b;
    cek_batch batch;
    cek_trainer_options o = options_small();
    bench_open(&b, "2", "cpu", &o);
    batch = batch_of(0, 8);
    batch.input_type = CEK_U8;
    ck_assert_uint_eq(cek_trainer_step(b.trainer, &batch, NULL), CEK_INVALID);
    batch = batch_of(0, 8);
    batch.target_columns = 1;
    ck_assert_uint_eq(cek_trainer_step(b.trainer, &batch, NULL), CEK_INVALID);
    batch = batch_of(0, 8);
    labels[3] = CLASSES;
    ck_assert_uint_eq(cek_trainer_step(b.trainer, &batch, NULL), CEK_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "label 5 of sample 3"));
    labels[3] = 3;
    step(&b, 0, 8);
    bench_close(&b);
}
END_TEST

START_TEST(devices_are_given_and_given_once)
{
    bench b;
    cek_trainer_options o = options_small();
    bench_engine(&b, "1", "cpu:0");
    const struct {
        cek_device *devices[2];
        size_t count;
        const char *text;
    } wrong[] = { { { b.devices[0], NULL }, 2, "device 1 is NULL" },
                  { { b.devices[0], b.devices[0] }, 2, "cpu:0 is given twice" },
                  { { NULL, NULL }, 0, "no device" } };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ck_assert_uint_eq(cek_trainer_create(b.model, wrong[i].devices, wrong[i].count, &o, &b.trainer), CEK_INVALID);
        ck_assert_ptr_null(b.trainer);
        ck_assert_msg(strstr(cek_error_text(), wrong[i].text) != NULL, "%s", cek_error_text());
    }
    bench_close(&b);
}
END_TEST

/* Devices of a plugin for inference, in the hands of a program that did not select them for training. */
START_TEST(devices_that_cannot_train_are_refused_by_name)
{
    const char *files[] = { fake_install("alpha.so"), NULL };
    cek_engine *engine = engine_idle_of(files);
    cek_device *device = NULL;
    cek_model *model = NULL;
    cek_trainer *trainer = NULL;

    assert_ok(cek_engine_find(engine, "alpha:1", &device));
    assert_ok(cek_model_parse("linear:3", 1, (int64_t[]){ 4 }, &model));
    ck_assert_uint_eq(cek_trainer_create(model, &device, 1, NULL, &trainer), CEK_NO_DEVICE);
    ck_assert_ptr_null(trainer);
    ck_assert_ptr_nonnull(strstr(cek_error_text(),
                                 "alpha:1: its plugin is of profile inference, and this needs profile training"));
    cek_model_free(model);
    cek_engine_free(engine);
}
END_TEST

START_TEST(how_the_batch_is_shared_is_said_in_one_of_three_ways)
{
    bench b;
    cek_trainer_options o = options_small();
    bench_engine(&b, "1", "cpu:0");
    const struct {
        uint32_t shares;
        const double *weights;
        const char *text;
    } wrong[] = { { 5, NULL, "shares 5 are none of" },
                  { CEK_SHARES_GIVEN, NULL, "share_weights go with CEK_SHARES_GIVEN" },
                  { CEK_SHARES_EQUAL, (double[]){ 1 }, "share_weights go with CEK_SHARES_GIVEN" } };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        o.shares = wrong[i].shares;
        o.share_weights = wrong[i].weights;
        ck_assert_uint_eq(cek_trainer_create(b.model, b.devices, b.count, &o, &b.trainer), CEK_INVALID);
        ck_assert_msg(strstr(cek_error_text(), wrong[i].text) != NULL, "%s", cek_error_text());
    }
    bench_close(&b);
}
END_TEST

START_TEST(squared_error_of_different_shapes_is_refused_not_broadcast)
{
    bench b;
    cek_trainer_options o = options_small();
    bench_engine(&b, "1", "cpu:0");
    o.loss = CEK_LOSS_MSE;
    o.batch = 128;
    o.target_columns = 1;
    ck_assert_uint_eq(cek_trainer_create(b.model, b.devices, b.count, &o, &b.trainer), CEK_INVALID);
    ck_assert_msg(strstr(cek_error_text(), "(128,5)") && strstr(cek_error_text(), "(128,1)"), "%s", cek_error_text());
    bench_close(&b);
}
END_TEST

START_TEST(a_loss_that_is_not_finite_is_reported)
{
    bench b;
    cek_batch batch;
    cek_step_result r = { .size = sizeof r };
    cek_trainer_options o = options_small();
    bench_open(&b, "1", "cpu:0", &o);
    batch = batch_of(0, 8);
    images[2][5] = NAN;
    ck_assert_uint_eq(cek_trainer_step(b.trainer, &batch, &r), CEK_NOT_FINITE);
    ck_assert(isnan(r.loss));
    bench_close(&b);
}
END_TEST

START_TEST(a_lost_device_ends_the_step_and_names_itself)
{
    bench b;
    cek_batch batch;
    cek_step_result result;
    cek_status st = CEK_OK;
    cek_trainer_options o = options_small();
    setenv("CEKERNELS_SIM_DEVICES", "2", 1);
    setenv("CEKERNELS_SIM_FAULTS", "device_lost@cmdbuf_run#40/1", 1);
    bench_open(&b, "1", "sim", &o);
    ck_assert_uint_eq(b.count, 2);
    for (int i = 0; i < 60 && st == CEK_OK; i++) {
        batch = batch_of(0, 40);
        st = cek_trainer_step(b.trainer, &batch, NULL);
    }
    ck_assert_msg(st == CEK_DEVICE_LOST, "%s: %s", cek_status_name(st), cek_error_text());
    ck_assert_msg(strstr(cek_error_text(), "sim:1") != NULL, "%s", cek_error_text());
    ck_assert_uint_eq(cek_trainer_pull(b.trainer), CEK_DEVICE_LOST);
    result = (cek_step_result){ .size = sizeof result, .step = 99 };
    ck_assert_uint_eq(cek_trainer_step(b.trainer, &batch, &result), CEK_DEVICE_LOST);
    ck_assert_int_eq(result.step, 0);
    ck_assert_uint_eq(cek_trainer_set_rate(b.trainer, 0, 0.1), CEK_DEVICE_LOST);
    ck_assert_uint_eq(cek_trainer_end_epoch(b.trainer, 1), CEK_DEVICE_LOST);
    ck_assert_uint_eq(cek_trainer_use_average(b.trainer, true), CEK_DEVICE_LOST);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "sim:1"));
    bench_close(&b);
}
END_TEST

static double processor_ms(void)
{
    struct timespec t;

    ck_assert_int_eq(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t), 0);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* Between steps threads spin for microseconds, then sleep. */
START_TEST(a_trainer_that_waits_for_a_batch_uses_no_processor)
{
    static const char *const devices[] = { "1", "2" };
    cek_trainer_options options = options_small();
    cek_batch batch = batch_of(0, SAMPLES);
    double before;
    bench b;

    bench_open(&b, devices[_i], "cpu", &options);
    for (int i = 0; i < 3; i++)
        ok(cek_trainer_step(b.trainer, &batch, NULL));
    usleep(100000);
    before = processor_ms();
    usleep(300000);
    ck_assert_msg(processor_ms() - before < 3, "%g ms of 300", processor_ms() - before);
    bench_close(&b);
}
END_TEST

START_TEST(structs_whose_size_was_not_set_are_refused)
{
    bench b;
    cek_trainer_options o = options_small();
    cek_predictor_options po = { .batch = 4 };
    cek_step_result r = { 0 };
    cek_metrics m = { 0 };
    cek_predictor *p;
    cek_batch batch;
    bench_engine(&b, "1", "cpu:0");
    o.size = 0;
    ck_assert_uint_eq(cek_trainer_create(b.model, b.devices, b.count, &o, &b.trainer), CEK_INVALID);
    ck_assert_uint_eq(cek_predictor_create(b.model, b.devices, b.count, &po, &p), CEK_INVALID);
    o.size = sizeof o;
    o.optimizer = &(cek_optimizer){ .lr = 0.1 };
    ck_assert_uint_eq(cek_trainer_create(b.model, b.devices, b.count, &o, &b.trainer), CEK_INVALID);
    ck_assert_msg(strstr(cek_error_text(), "optimizer") != NULL, "%s", cek_error_text());
    o.optimizer = NULL;
    ok(cek_trainer_create(b.model, b.devices, b.count, &o, &b.trainer));
    batch = batch_of(0, 8);
    ck_assert_uint_eq(cek_trainer_step(b.trainer, &batch, &r), CEK_INVALID);
    batch.size = 0;
    ck_assert_uint_eq(cek_trainer_step(b.trainer, &batch, NULL), CEK_INVALID);
    ck_assert_msg(strstr(cek_error_text(), "batch") != NULL, "%s", cek_error_text());
    batch = batch_of(0, 8);
    ck_assert_uint_eq(cek_trainer_evaluate(b.trainer, NULL, &m), CEK_INVALID);
    batch.targets = NULL;
    ck_assert_uint_eq(cek_trainer_step(b.trainer, &batch, NULL), CEK_INVALID);
    batch = batch_of(0, 8);
    r.size = offsetof(cek_step_result, samples); /* an older program's: nothing behind it is written */
    ok(cek_trainer_step(b.trainer, &batch, &r));
    ck_assert(r.step == 1 && r.samples == 0 && r.loss == 0);
    bench_close(&b);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("train");
    TCase *tc = tcase_create("train");

    tcase_add_test(tc, replica_weights_stay_bit_identical_when_shares_are_unequal);
    tcase_add_test(tc, a_device_without_samples_still_gets_the_weights);
    tcase_add_test(tc, the_loss_does_not_depend_on_the_number_of_devices);
    tcase_add_test(tc, the_gradient_is_that_of_the_whole_batch_however_it_is_split);
    tcase_add_test(tc, a_memory_limit_that_is_too_small_is_out_of_memory_with_the_numbers);
    tcase_add_test(tc, what_does_not_fit_is_refused_and_the_trainer_goes_on);
    tcase_add_test(tc, devices_are_given_and_given_once);
    tcase_add_test(tc, devices_that_cannot_train_are_refused_by_name);
    tcase_add_test(tc, how_the_batch_is_shared_is_said_in_one_of_three_ways);
    tcase_add_test(tc, squared_error_of_different_shapes_is_refused_not_broadcast);
    tcase_add_test(tc, a_loss_that_is_not_finite_is_reported);
    tcase_add_test(tc, a_lost_device_ends_the_step_and_names_itself);
    tcase_add_loop_test(tc, a_trainer_that_waits_for_a_batch_uses_no_processor, 0, 2);
    tcase_add_test(tc, structs_whose_size_was_not_set_are_refused);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
