/* batch_norm.c - normalisation over samples: what it computes and keeps, its gradients, and groups on any
 * number of devices. */
#include <cekernels/parts.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scratch.h"
#include "tests/suite.h"

enum { ROWS = 12, CHANNELS = 3, SIDE = 4, PIXELS = SIDE * SIDE, CLASSES = 4 };

static float inputs[ROWS][PIXELS][CHANNELS]; /* as devices have images */
static int32_t labels[ROWS];
static cek_engine *engine;
static cek_device **devices;
static size_t device_count;

static void open_devices(const char *list)
{
    uint32_t state = 11;

    for (int i = 0; i < ROWS * PIXELS * CHANNELS; i++) {
        state = state * 1664525u + 1013904223u;
        ((float *)inputs)[i] = (float)(state >> 8) / (1 << 23) - 1 + 0.5f * (float)(i % CHANNELS);
    }
    for (int i = 0; i < ROWS; i++)
        labels[i] = i % CLASSES;
    setenv("CEKERNELS_CPU_DEVICES", "3", 1);
    assert_ok(cek_engine_create(NULL, &engine));
    assert_ok(cek_engine_select(engine, list, CEK_PROFILE_TRAINING, &devices, &device_count));
}

static void close_devices(void)
{
    free(devices);
    cek_engine_free(engine);
}

static cek_model *network(void)
{
    const cek_batch_norm_layer norm = { .size = sizeof norm };
    const cek_conv2d_layer conv = {
        .size = sizeof conv, .out_channels = 5, .kernel_h = 3, .kernel_w = 3, .pad_h = 1, .pad_w = 1, .no_bias = true
    };
    cek_model *m;
    int n;

    assert_ok(cek_model_create(3, (int64_t[]){ CHANNELS, SIDE, SIDE }, &m));
    assert_ok(cek_model_conv2d(m, 0, &conv, &n));
    assert_ok(cek_model_batch_norm(m, n, &norm, &n));
    assert_ok(cek_model_activation(m, n, CEK_ACT_TANH, &n));
    assert_ok(cek_model_flatten(m, n, &n));
    assert_ok(cek_model_linear(m, n, 6, true, &n));
    assert_ok(cek_model_batch_norm(m, n, &norm, &n));
    assert_ok(cek_model_linear(m, n, CLASSES, true, &n));
    cek_model_init(m, 5);
    return m;
}

static cek_trainer_options options_of(cek_optimizer *sgd, double lr)
{
    *sgd = (cek_optimizer){ .size = sizeof *sgd, .algorithm = CEK_OPTIMIZER_SGD, .lr = lr };
    return (cek_trainer_options){
        .size = sizeof(cek_trainer_options), .batch = ROWS, .shares = CEK_SHARES_EQUAL, .optimizer = sgd
    };
}

static double step_loss(cek_trainer *trainer, int64_t rows)
{
    cek_batch batch = {
        .size = sizeof batch, .count = rows, .inputs = inputs, .targets = labels, .input_type = CEK_F32
    };
    cek_step_result r = { .size = sizeof r };

    assert_ok(cek_trainer_step(trainer, &batch, &r));
    return r.loss;
}

static cek_parameter buffer_of(const cek_model *m, size_t index)
{
    cek_parameter b;

    assert_ok(cek_model_buffer(m, index, &b));
    return b;
}

/* ---- what it computes ---- */

START_TEST(statistics_are_those_of_the_batch_and_evaluation_takes_the_running_ones)
{
    const cek_batch_norm_layer norm = { .size = sizeof norm, .momentum = 0.25 };
    cek_optimizer sgd;
    cek_trainer_options o = options_of(&sgd, 1e-30);
    cek_predictor_options po = { .size = sizeof po, .batch = ROWS };
    cek_predictor *p;
    cek_trainer *t;
    cek_model *m;
    double sum[CHANNELS] = { 0 }, squares[CHANNELS] = { 0 };
    float outputs[ROWS * CHANNELS * PIXELS];
    int n;

    open_devices("cpu:0");
    assert_ok(cek_model_create(3, (int64_t[]){ CHANNELS, SIDE, SIDE }, &m));
    assert_ok(cek_model_batch_norm(m, 0, &norm, &n));
    assert_ok(cek_model_flatten(m, n, &n));
    ck_assert_uint_eq(cek_model_buffer_count(m), 2);
    ck_assert_str_eq(buffer_of(m, 0).name, "0.running_mean");
    ck_assert_str_eq(buffer_of(m, 1).name, "0.running_var");
    cek_model_init(m, 1);
    o.loss = CEK_LOSS_CROSS_ENTROPY;
    assert_ok(cek_trainer_create(m, devices, 1, &o, &t));
    step_loss(t, 10); /* so two rows of a plan made for 12 count for nothing, or there is a plan for 10 */
    assert_ok(cek_trainer_pull(t));
    for (int i = 0; i < 10 * PIXELS; i++)
        for (int c = 0; c < CHANNELS; c++)
            sum[c] += (double)inputs[i / PIXELS][i % PIXELS][c];
    for (int i = 0; i < 10 * PIXELS; i++)
        for (int c = 0; c < CHANNELS; c++)
            squares[c] += pow((double)inputs[i / PIXELS][i % PIXELS][c] - sum[c] / (10 * PIXELS), 2);
    for (int c = 0; c < CHANNELS; c++) {
        ck_assert_double_eq_tol((double)buffer_of(m, 0).data[c], 0.25 * sum[c] / (10 * PIXELS), 1e-6);
        ck_assert_double_eq_tol((double)buffer_of(m, 1).data[c], 0.75 + 0.25 * squares[c] / (10 * PIXELS - 1), 1e-6);
    }
    assert_ok(cek_predictor_create(m, devices, 1, &po, &p));
    assert_ok(cek_predictor_run(p, inputs, ROWS, outputs));
    for (int i = 0; i < ROWS; i++)
        for (int c = 0; c < CHANNELS; c++)
            for (int k = 0; k < PIXELS; k++) {
                double mean = (double)buffer_of(m, 0).data[c], variance = (double)buffer_of(m, 1).data[c];

                ck_assert_double_eq_tol((double)outputs[(i * CHANNELS + c) * PIXELS + k],
                                        ((double)inputs[i][k][c] - mean) / sqrt(variance + 1e-5), 1e-5);
            }
    cek_predictor_free(p);
    cek_trainer_free(t);
    cek_model_free(m);
    close_devices();
}
END_TEST

static double loss_of(cek_model *m, cek_trainer_options *o)
{
    cek_trainer *t;
    double loss;

    assert_ok(cek_trainer_create(m, devices, 1, o, &t));
    loss = step_loss(t, ROWS - 1);
    cek_trainer_free(t);
    return loss;
}

START_TEST(gradients_are_differences)
{
    cek_optimizer sgd;
    cek_trainer_options o = options_of(&sgd, 1e-30);
    cek_trainer *t;
    cek_model *m;

    open_devices("reference:0");
    m = network();
    for (int group = 0; group <= 4; group += 4) {
        o.type = CEK_F64;
        o.norm_group = group;
        assert_ok(cek_trainer_create(m, devices, 1, &o, &t));
        step_loss(t, ROWS - 1);
        for (size_t p = 0; p < cek_model_parameter_count(m); p++) {
            cek_parameter parameter;
            double *gradient;

            assert_ok(cek_model_parameter(m, p, &parameter));
            gradient = malloc((size_t)parameter.count * sizeof *gradient);
            assert_ok(cek_trainer_read_gradient(t, p, gradient, parameter.count));
            for (int64_t i = 0; i < parameter.count; i += 1 + parameter.count / 4) {
                float at = parameter.data[i], up = at + 0x1p-9f, down = at - 0x1p-9f;
                double more, less;

                parameter.data[i] = up;
                more = loss_of(m, &o);
                parameter.data[i] = down;
                less = loss_of(m, &o);
                parameter.data[i] = at;
                more = (more - less) / ((double)up - (double)down);
                ck_assert_msg(fabs(more - gradient[i]) <= 2e-5, "%s[%lld]: %.9g, %.9g", parameter.name, (long long)i,
                              gradient[i], more);
            }
            free(gradient);
        }
        cek_trainer_free(t);
    }
    cek_model_free(m);
    close_devices();
}
END_TEST

/* ---- groups ---- */

/* Losses of steps over 12 and 10 samples, in groups of 4. */
static void train(size_t count, double losses[6], cek_model **out)
{
    cek_optimizer sgd;
    cek_trainer_options o = options_of(&sgd, 0.1);
    cek_trainer *t;

    *out = network();
    o.norm_group = 4;
    assert_ok(cek_trainer_create(*out, devices, count, &o, &t));
    for (int s = 0; s < 6; s++)
        losses[s] = step_loss(t, s % 2 ? 10 : ROWS);
    for (size_t p = 0; p < cek_model_parameter_count(*out); p++) {
        cek_parameter info;
        float one[512], other[512];
        uint64_t bytes;

        assert_ok(cek_model_parameter(*out, p, &info));
        bytes = (uint64_t)info.count * sizeof(float);
        ck_assert_uint_le(bytes, sizeof one);
        assert_ok(cek_trainer_read_replica(t, 0, p, one, bytes));
        for (size_t d = 1; d < count; d++) {
            assert_ok(cek_trainer_read_replica(t, d, p, other, bytes));
            ck_assert_mem_eq(one, other, bytes);
        }
    }
    assert_ok(cek_trainer_pull(t));
    cek_trainer_free(t);
}

static void any_number_of_devices(const char *list)
{
    double losses[3][6];
    cek_model *models[3];

    open_devices(list);
    ck_assert_uint_eq(device_count, 3);
    for (size_t i = 0; i < 3; i++) {
        train(i + 1, losses[i], &models[i]);
        for (int s = 0; s < 6; s++)
            ck_assert_msg(fabs(losses[i][s] - losses[0][s]) <= 2e-6 * losses[0][s], "%zu devices, step %d: %.9g, %.9g",
                          i + 1, s, losses[0][s], losses[i][s]);
        for (size_t b = 0; b < cek_model_buffer_count(models[0]); b++)
            for (int64_t k = 0; k < buffer_of(models[0], b).count; k++) {
                ck_assert_float_eq_tol(buffer_of(models[i], b).data[k], buffer_of(models[0], b).data[k], 2e-6f);
                ck_assert(buffer_of(models[i], b).data[k] != (b % 2 ? 1 : 0));
            }
    }
    for (size_t i = 0; i < 3; i++)
        cek_model_free(models[i]);
    close_devices();
}

START_TEST(groups_give_the_same_on_any_number_of_devices)
{
    any_number_of_devices("cpu");
}
END_TEST

START_TEST(groups_give_the_same_beside_the_host)
{
    setenv("CEKERNELS_SIM_DEVICES", "3", 1);
    any_number_of_devices("sim");
}
END_TEST

static void steps_of_sizes(size_t count, const double *weights, int64_t batch, double losses[6])
{
    cek_optimizer sgd;
    cek_trainer_options o = options_of(&sgd, 0.1);
    cek_model *m = network();
    cek_trainer *t;

    o.batch = batch;
    o.norm_group = weights ? 1 : 4;
    o.shares = weights && count > 1 ? CEK_SHARES_GIVEN : CEK_SHARES_EQUAL;
    o.share_weights = count > 1 ? weights : NULL;
    assert_ok(cek_trainer_create(m, devices, count, &o, &t));
    for (int s = 0; s < 6; s++) {
        cek_batch b = {
            .size = sizeof b, .count = batch - s % 3, .inputs = inputs, .targets = labels, .input_type = CEK_F32
        };
        cek_step_result r = { .size = sizeof r };

        assert_ok(cek_trainer_submit(t, &b));
        assert_ok(cek_trainer_collect(t, &r));
        losses[s] = r.loss;
    }
    cek_trainer_free(t);
    cek_model_free(m);
}

/* A smaller batch may give a device more groups than the largest one does: 9 samples are 8 and 1, 8 are 4 and 4. */
START_TEST(smaller_batches_may_give_a_device_more)
{
    static const double weights[3] = { 6, 6, 2 };

    open_devices("cpu");
    for (int given = 0; given < 2; given++) {
        double one[6], some[6];

        steps_of_sizes(1, given ? weights : NULL, given ? 11 : 9, one);
        steps_of_sizes(given ? 3 : 2, given ? weights : NULL, given ? 11 : 9, some);
        for (int s = 0; s < 6; s++)
            ck_assert_msg(fabs(one[s] - some[s]) <= 1e-5 * one[s], "step %d: %.9g, %.9g", s, one[s], some[s]);
    }
    close_devices();
}
END_TEST

/* Steps that nobody has asked for have left their statistics too. */
START_TEST(pulled_statistics_are_of_all_steps)
{
    cek_optimizer sgd;
    cek_trainer_options o = options_of(&sgd, 0.1);
    cek_batch b = { .size = sizeof b, .count = ROWS, .inputs = inputs, .targets = labels, .input_type = CEK_F32 };
    float mean[2];

    open_devices("cpu:0");
    for (int ahead = 0; ahead < 2; ahead++) {
        cek_model *m = network();
        cek_trainer *t;

        assert_ok(cek_trainer_create(m, devices, 1, &o, &t));
        for (int s = 0; s < 2; s++) {
            assert_ok(cek_trainer_submit(t, &b));
            if (!ahead)
                assert_ok(cek_trainer_collect(t, NULL));
        }
        assert_ok(cek_trainer_pull(t));
        ck_assert_uint_eq(cek_trainer_uncollected(t), ahead ? 2 : 0);
        mean[ahead] = buffer_of(m, 0).data[0];
        cek_trainer_free(t);
        cek_model_free(m);
    }
    ck_assert(mean[0] != 0);
    ck_assert_float_eq(mean[0], mean[1]);
    close_devices();
}
END_TEST

/* In evaluation by what was gathered: the loss is that of a trainer that begins with the pulled model. */
START_TEST(evaluation_takes_what_was_gathered)
{
    cek_optimizer sgd;
    cek_trainer_options o = options_of(&sgd, 0.1);
    cek_array_options a = { .size = sizeof a,
                            .input_type = CEK_F32,
                            .count = ROWS,
                            .rank = 3,
                            .nhwc = true,
                            .shape = { CHANNELS, SIDE, SIDE },
                            .inputs = inputs,
                            .labels = labels,
                            .classes = CLASSES };
    cek_metrics before = { .size = sizeof before }, after = { .size = sizeof after }, fresh = { .size = sizeof fresh };
    cek_dataset *set;
    cek_trainer *t, *again;
    cek_model *m;

    open_devices("cpu:0");
    m = network();
    assert_ok(cek_dataset_arrays(&a, &set));
    assert_ok(cek_trainer_create(m, devices, 1, &o, &t));
    assert_ok(cek_trainer_evaluate(t, set, &before));
    for (int s = 0; s < 5; s++)
        step_loss(t, ROWS);
    assert_ok(cek_trainer_evaluate(t, set, &after));
    assert_ok(cek_trainer_pull(t));
    assert_ok(cek_trainer_create(m, devices, 1, &o, &again));
    assert_ok(cek_trainer_evaluate(again, set, &fresh));
    ck_assert_double_eq(after.loss, fresh.loss);
    ck_assert(after.loss < before.loss);
    cek_trainer_free(again);
    cek_trainer_free(t);
    cek_dataset_free(set);
    cek_model_free(m);
    close_devices();
}
END_TEST

START_TEST(a_group_that_nobody_named_or_that_does_not_fit_is_refused)
{
    cek_optimizer sgd;
    cek_trainer_options o = options_of(&sgd, 0.1);
    cek_model *m = network();
    cek_trainer *t = (cek_trainer *)&o;

    open_devices("cpu");
    assert_fails(cek_trainer_create(m, devices, 2, &o, &t), CEK_INVALID, "over samples", "norm_group");
    ck_assert_ptr_null(t);
    o.shares = CEK_SHARES_AUTO;
    o.norm_group = 4;
    assert_fails(cek_trainer_create(m, devices, 2, &o, &t), CEK_INVALID, "norm_group", "shares");
    o.shares = CEK_SHARES_EQUAL;
    o.norm_group = -1;
    assert_fails(cek_trainer_create(m, devices, 2, &o, &t), CEK_INVALID, "norm_group", "-1");
    o.norm_group = 0;
    o.memory_limit = 20000;
    assert_fails(cek_trainer_create(m, devices, 1, &o, &t), CEK_OUT_OF_MEMORY, "12 samples together", "bytes");
    cek_model_free(m);
    close_devices();
}
END_TEST

/* ---- files ---- */

START_TEST(buffers_are_saved_and_loaded)
{
    char path[160];
    cek_model *m = network(), *other = network();
    char a[65], b[65];

    scratch_make();
    snprintf(path, sizeof path, "%s/norm.safetensors", scratch_dir);
    for (size_t i = 0; i < cek_model_buffer_count(m); i++)
        for (int64_t k = 0; k < buffer_of(m, i).count; k++)
            buffer_of(m, i).data[k] = (float)(i + 2) + (float)k / 8;
    assert_ok(cek_model_save(m, path));
    assert_ok(cek_model_load(other, path));
    for (size_t i = 0; i < cek_model_buffer_count(m); i++)
        ck_assert_mem_eq(buffer_of(m, i).data, buffer_of(other, i).data, (size_t)buffer_of(m, i).count * sizeof(float));
    cek_model_sha256(m, a);
    cek_model_sha256(other, b);
    ck_assert_str_eq(a, b);
    buffer_of(other, 3).data[0] += 1;
    cek_model_sha256(other, b);
    ck_assert_str_ne(a, b);
    cek_model_init(other, 1);
    ck_assert_float_eq(buffer_of(other, 1).data[0], 1);
    cek_model_free(m);
    cek_model_free(other);
    scratch_remove();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("batch_norm");
    TCase *tcase = tcase_create("batch_norm");

    tcase_add_test(tcase, statistics_are_those_of_the_batch_and_evaluation_takes_the_running_ones);
    tcase_add_test(tcase, gradients_are_differences);
    tcase_add_test(tcase, groups_give_the_same_on_any_number_of_devices);
    tcase_add_test(tcase, groups_give_the_same_beside_the_host);
    tcase_add_test(tcase, smaller_batches_may_give_a_device_more);
    tcase_add_test(tcase, pulled_statistics_are_of_all_steps);
    tcase_add_test(tcase, evaluation_takes_what_was_gathered);
    tcase_add_test(tcase, a_group_that_nobody_named_or_that_does_not_fit_is_refused);
    tcase_add_test(tcase, buffers_are_saved_and_loaded);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
