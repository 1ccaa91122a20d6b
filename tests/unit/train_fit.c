/* train_fit.c - fitting to a data set, evaluation and prediction, over devices that work beside the host and not. */
#include <math.h>

#include "train_bench.h"

static cek_dataset *dataset_make(void)
{
    cek_dataset *set;
    cek_array_options a = { .size = sizeof a,
                            .input_type = CEK_F32,
                            .count = SAMPLES,
                            .rank = 3,
                            .shape = { 1, SIDE, SIDE },
                            .inputs = images,
                            .labels = labels,
                            .classes = CLASSES };
    ok(cek_dataset_arrays(&a, &set));
    return set;
}

static int64_t stop_at;

static void stop_there(void *user, const cek_step_result *result)
{
    if (result->step == stop_at)
        cek_trainer_request_stop(user);
}

START_TEST(a_request_to_stop_ends_the_fit_between_two_steps)
{
    bench b;
    cek_dataset *set;
    cek_trainer_options o = options_small();
    cek_fit_options f = { .size = sizeof f, .epochs = 10, .on_step = stop_there };
    cek_epoch_result last = { .size = sizeof last, .epoch = 42 };
    stop_at = _i ? 9 : 3; /* of six an epoch: the first one ends, or none does */
    o.batch = 16;
    bench_open(&b, "2", "cpu", &o);
    f.user = b.trainer;
    set = dataset_make();
    ck_assert_uint_eq(cek_trainer_fit(b.trainer, set, &f, &last), CEK_CANCELLED);
    ck_assert_int_eq(last.epoch, _i);
    ok(cek_trainer_pull(b.trainer));
    cek_dataset_free(set);
    bench_close(&b);
}
END_TEST

static void count_samples(void *user, const cek_step_result *result)
{
    *(int64_t *)user += result->samples;
}

START_TEST(the_last_batch_is_dropped_where_it_is_short_also_where_it_is_the_only_one)
{
    for (int drop = 0; drop < 2; drop++) {
        const int64_t batches[] = { SAMPLES / 2 + 1, SAMPLES, SAMPLES + 1 }, taken[] = { SAMPLES / 2 + 1, SAMPLES, 0 };
        for (int i = 0; i < 3; i++) {
            bench b;
            cek_dataset *set = dataset_make();
            cek_trainer_options o = options_small();
            int64_t samples = 0;
            cek_fit_options f = { .size = sizeof f, .drop_last = drop, .on_step = count_samples, .user = &samples };
            o.batch = batches[i];
            bench_open(&b, "1", "cpu", &o);
            ck_assert_uint_eq(cek_trainer_fit(b.trainer, set, &f, NULL), drop && !taken[i] ? CEK_INVALID : CEK_OK);
            ck_assert(samples || strstr(cek_error_text(), "a training set of 96 samples gives no batch"));
            ck_assert_int_eq(samples, drop ? taken[i] : SAMPLES);
            cek_dataset_free(set);
            bench_close(&b);
        }
    }
}
END_TEST

/* A device that is not inline: uploads alternate between places, and who waits for whom is told by events. */
START_TEST(devices_that_work_beside_the_host_train_and_predict_the_same)
{
    double loss[2];
    float outputs[2][SAMPLES * CLASSES];
    static const char *const list[] = { "cpu", "sim" };
    cek_dataset *set;
    setenv("CEKERNELS_SIM_DEVICES", "2", 1);
    for (int i = 0; i < 2; i++) {
        bench b;
        cek_predictor *p;
        cek_predictor_options po = { .size = sizeof po, .batch = 10 };
        cek_trainer_options o = options_small();
        bench_engine(&b, "2", list[i]);
        ck_assert_uint_eq(b.count, 2);
        set = dataset_make();
        o.memory_limit = 1u << 18;
        while (cek_trainer_create(b.model, b.devices, b.count, &o, &b.trainer) == CEK_OUT_OF_MEMORY)
            o.memory_limit += o.memory_limit / 4;
        ck_assert_ptr_nonnull(b.trainer);
        /* several, each upload beside another's work */
        ck_assert_int_lt(cek_trainer_micro_batch(b.trainer, 0), SAMPLES / 2);
        for (int s = 0; s < 6; s++)
            loss[i] = step(&b, 0, s % 2 ? SAMPLES : 61);
        ok(cek_trainer_pull(b.trainer));
        ok(cek_predictor_create(b.model, b.devices, b.count, &po, &p));
        for (int again = 0; again < 2; again++)
            ok(cek_predictor_run_dataset(p, set, outputs[i]));
        cek_predictor_free(p);
        cek_dataset_free(set);
        bench_close(&b);
    }
    /* Micro-batches of other sizes, so sums in another order. */
    ck_assert_msg(fabs(loss[0] - loss[1]) <= 1e-5 * fabs(loss[0]), "%.9g and %.9g", loss[0], loss[1]);
    for (int i = 0; i < SAMPLES * CLASSES; i++)
        ck_assert_float_eq_tol(outputs[0][i], outputs[1][i], 1e-4f * (1 + fabsf(outputs[0][i])));
}
END_TEST

START_TEST(a_data_set_of_other_samples_is_refused_by_a_predictor)
{
    bench b;
    cek_predictor *p;
    cek_dataset *set;
    float outputs[SAMPLES * CLASSES];
    cek_array_options a = { .size = sizeof a,
                            .input_type = CEK_F32,
                            .count = SAMPLES,
                            .rank = 3,
                            .shape = { 1, 4, 4 },
                            .inputs = images,
                            .labels = labels,
                            .classes = CLASSES };
    bench_engine(&b, "1", "cpu:0");
    ok(cek_dataset_arrays(&a, &set));
    ok(cek_predictor_create(b.model, b.devices, b.count, NULL, &p));
    ck_assert_uint_eq(cek_predictor_run_dataset(p, set, outputs), CEK_INVALID);
    ck_assert_msg(strstr(cek_error_text(), "(1,4,4)") && strstr(cek_error_text(), "(1,12,12)"), "%s", cek_error_text());
    cek_predictor_free(p);
    cek_dataset_free(set);
    bench_close(&b);
}
END_TEST

/* One sample after the other, in the order of cek_model_input_shape with the channels last, and as
 * cek_model_output_shape says. */
START_TEST(a_predictor_takes_images_with_their_channels_last_and_gives_them_first)
{
    enum { COUNT = 3, C = 2, H = 2, W = 3 };
    bench b;
    cek_model *model;
    cek_parameter weight;
    cek_predictor *p;
    int64_t shape[CEK_RANK_MAX];
    float inputs[COUNT][H][W][C], outputs[COUNT][C][H][W];
    bench_engine(&b, "2", "cpu");
    ok(cek_model_parse("conv:2,1", 3, (int64_t[]){ C, H, W }, &model));
    ok(cek_model_parameter(model, 0, &weight));
    weight.data[0] = weight.data[3] = 1; /* each channel as it is */
    for (int i = 0; i < COUNT * C * H * W; i++)
        (&inputs[0][0][0][0])[i] = (float)i;
    ck_assert_int_eq(cek_model_output_shape(model, shape), 3);
    ck_assert(shape[0] == C && shape[1] == H && shape[2] == W);
    ok(cek_predictor_create(model, b.devices, b.count, NULL, &p));
    ok(cek_predictor_run(p, inputs, COUNT, &outputs[0][0][0][0]));
    for (int n = 0; n < COUNT; n++)
        for (int c = 0; c < C; c++)
            for (int h = 0; h < H; h++)
                for (int w = 0; w < W; w++)
                    ck_assert_float_eq(outputs[n][c][h][w], inputs[n][h][w][c]);
    cek_predictor_free(p);
    cek_model_free(model);
    bench_close(&b);
}
END_TEST

START_TEST(evaluation_and_prediction_agree_over_any_devices)
{
    bench b;
    cek_dataset *set;
    cek_trainer_options o = options_small();
    cek_fit_options f = { .size = sizeof f, .epochs = 30, .seed = 2 };
    cek_epoch_result last = { .size = sizeof last };
    cek_metrics m = { .size = sizeof m };
    float outputs[3][SAMPLES * CLASSES];
    int64_t right = 0;
    o.batch = 32;
    bench_open(&b, "3", "cpu", &o);
    set = dataset_make();
    f.test = set;
    ok(cek_trainer_fit(b.trainer, set, &f, &last));
    ok(cek_trainer_evaluate(b.trainer, set, &m));
    ck_assert_int_eq(m.samples, SAMPLES);
    ck_assert(fabs(m.loss - last.test->loss) < 1e-12 && m.accuracy > 0.9);
    ok(cek_trainer_pull(b.trainer));
    for (size_t n = 1; n <= 3; n++) { /* 7: not a divisor of anything here */
        cek_predictor *p;
        cek_predictor_options po = { .size = sizeof po, .batch = 7 };
        ok(cek_predictor_create(b.model, b.devices, n, &po, &p));
        ok(cek_predictor_run_dataset(p, set, outputs[n - 1]));
        cek_predictor_free(p);
        for (int i = 0; i < SAMPLES * CLASSES; i++)
            ck_assert_float_eq_tol(outputs[n - 1][i], outputs[0][i], 1e-5f * (1 + fabsf(outputs[0][i])));
    }
    for (int s = 0; s < SAMPLES; s++) {
        int best = 0;
        for (int c = 1; c < CLASSES; c++)
            if (outputs[0][s * CLASSES + c] > outputs[0][s * CLASSES + best])
                best = c;
        right += best == labels[s];
    }
    ck_assert_double_eq_tol((double)right / SAMPLES, m.accuracy, 1e-9);
    cek_dataset_free(set);
    bench_close(&b);
}
END_TEST

START_TEST(a_trainer_outlives_the_engine_that_it_was_made_of)
{
    bench b;
    cek_trainer_options o = options_small();
    cek_loader *loader;
    cek_dataset *set;
    const cek_batch *next;
    cek_loader_options l = { .size = sizeof l, .batch = 8 };

    bench_open(&b, "2", "cpu", &o);
    set = dataset_make();
    l.pin_for = b.devices[0];
    ok(cek_loader_create(set, &l, &loader));
    cek_engine_free(b.engine);
    b.engine = NULL;
    ok(cek_loader_start(loader, 0));
    ok(cek_loader_next(loader, &next));
    ok(cek_trainer_step(b.trainer, next, NULL));
    ok(cek_trainer_pull(b.trainer));
    cek_trainer_free(b.trainer);
    b.trainer = NULL;
    ok(cek_loader_next(loader, &next));
    cek_loader_free(loader);
    cek_dataset_free(set);
    bench_close(&b);
}
END_TEST

START_TEST(a_fit_that_is_refused_takes_nothing)
{
    bench b;
    cek_dataset *set;
    cek_trainer_options o = options_small();
    cek_fit_options f = { .size = sizeof f };
    cek_step_result r = { .size = sizeof r };
    cek_metrics averaged = { .size = sizeof averaged }, again = averaged;
    cek_epoch_result last = { .size = sizeof last, .epoch = 42 };
    cek_batch batch;

    o.batch = 16;
    o.average = 0.9;
    bench_open(&b, "2", "cpu", &o);
    set = dataset_make();
    batch = batch_of(0, 16);
    ok(cek_trainer_submit(b.trainer, &batch));
    ok(cek_trainer_submit(b.trainer, &batch));
    ck_assert_uint_eq(cek_trainer_fit(b.trainer, set, &f, &last), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "2 steps are submitted and not collected"));
    ck_assert_int_eq(last.epoch, 0);
    ck_assert_uint_eq(cek_trainer_uncollected(b.trainer), 2);
    ok(cek_trainer_collect(b.trainer, &r));
    ck_assert_int_eq(r.step, 1);
    ok(cek_trainer_collect(b.trainer, &r));
    ok(cek_trainer_use_average(b.trainer, true));
    ok(cek_trainer_evaluate(b.trainer, set, &averaged));
    f.prefetch = UINT32_MAX;
    ck_assert_uint_eq(cek_trainer_fit(b.trainer, set, &f, NULL), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "batches ahead"));
    ok(cek_trainer_evaluate(b.trainer, set, &again));
    ck_assert_double_eq(again.loss, averaged.loss);
    ok(cek_trainer_use_average(b.trainer, false));
    ok(cek_trainer_evaluate(b.trainer, set, &again));
    ck_assert_double_ne(again.loss, averaged.loss);
    /* One that is not begins with the parameters, and leaves them in use. */
    ok(cek_trainer_use_average(b.trainer, true));
    f.prefetch = 0;
    ok(cek_trainer_fit(b.trainer, set, &f, NULL));
    ok(cek_trainer_evaluate(b.trainer, set, &averaged));
    ok(cek_trainer_use_average(b.trainer, false));
    ok(cek_trainer_evaluate(b.trainer, set, &again));
    ck_assert_double_eq(again.loss, averaged.loss);
    cek_dataset_free(set);
    bench_close(&b);
}
END_TEST

START_TEST(what_a_failure_gives_is_zero)
{
    bench b;
    cek_trainer_options o = options_small();
    cek_metrics m = { .size = sizeof m, .loss = 7, .accuracy = 1 };
    cek_input input = { .size = sizeof input, .rank = 9 };
    cek_batch batch = batch_of(0, 16);
    cek_dataset *set;
    cek_array_options other = { .size = sizeof other,
                                .input_type = CEK_F32,
                                .count = 4,
                                .rank = 1,
                                .shape = { 3 },
                                .inputs = images,
                                .labels = labels,
                                .classes = CLASSES };

    bench_open(&b, "1", "cpu", &o);
    ok(cek_dataset_arrays(&other, &set));
    ck_assert_uint_eq(cek_trainer_evaluate(b.trainer, set, &m), CEK_INVALID);
    ck_assert(m.loss == 0 && m.accuracy == 0 && m.size == sizeof m);
    batch.targets = NULL;
    for (int i = 0; i < 3; i++) {
        cek_step_result r = { .size = sizeof r, .loss = 7, .step = 99 };
        ck_assert_uint_eq(i == 0   ? cek_trainer_step(b.trainer, &batch, &r)
                          : i == 1 ? cek_trainer_backward(b.trainer, &batch, &r)
                                   : cek_trainer_collect(b.trainer, &r),
                          CEK_INVALID);
        ck_assert(r.loss == 0 && r.step == 0 && r.size == sizeof r);
    }
    ck_assert_uint_eq(cek_model_input(b.model, 5, &input), CEK_INVALID);
    ck_assert_int_eq(input.rank, 0);
    cek_dataset_free(set);
    bench_close(&b);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("train fit");
    TCase *tc = tcase_create("train fit");

    tcase_add_test(tc, devices_that_work_beside_the_host_train_and_predict_the_same);
    tcase_add_test(tc, a_data_set_of_other_samples_is_refused_by_a_predictor);
    tcase_add_loop_test(tc, a_request_to_stop_ends_the_fit_between_two_steps, 0, 2);
    tcase_add_test(tc, the_last_batch_is_dropped_where_it_is_short_also_where_it_is_the_only_one);
    tcase_add_test(tc, a_trainer_outlives_the_engine_that_it_was_made_of);
    tcase_add_test(tc, a_predictor_takes_images_with_their_channels_last_and_gives_them_first);
    tcase_add_test(tc, evaluation_and_prediction_agree_over_any_devices);
    tcase_add_test(tc, a_fit_that_is_refused_takes_nothing);
    tcase_add_test(tc, what_a_failure_gives_is_zero);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
