/* parts.c - layers and losses of a caller's own, from the public headers alone: what they compute, their gradients, and
 * what is refused. */
#include <cekernels/parts.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scratch.h"
#include "tests/suite.h"

enum { ROWS = 12, CHANNELS = 4, SIDE = 5, PIXELS = CHANNELS * SIDE * SIDE, CLASSES = 3 };

static float inputs[ROWS * PIXELS], values[ROWS * CLASSES];
static cek_engine *engine;
static cek_device **devices;
static size_t device_count;

static void data_make(void)
{
    uint32_t state = 7;

    for (int i = 0; i < ROWS * PIXELS; i++) {
        state = state * 1664525u + 1013904223u;
        inputs[i] = (float)(state >> 8) / (1 << 23) - 1;
    }
    for (int i = 0; i < ROWS * CLASSES; i++)
        values[i] = i % CLASSES == (i / CLASSES * 5 + 1) % CLASSES;
}

static void open_devices(const char *list)
{
    data_make();
    setenv("CEKERNELS_CPU_DEVICES", "3", 1);
    assert_ok(cek_engine_create(NULL, &engine));
    assert_ok(cek_engine_select(engine, list, CEK_PROFILE_TRAINING, &devices, &device_count));
}

static void close_devices(void)
{
    free(devices);
    cek_engine_free(engine);
}

static cek_batch batch_of(int64_t count)
{
    return (cek_batch){ .size = sizeof(cek_batch),
                        .count = count,
                        .inputs = inputs,
                        .targets = values,
                        .input_type = CEK_F32,
                        .target_columns = CLASSES };
}

static cek_trainer *trainer_of(cek_model *model, cek_loss loss, cek_dtype type, double lr)
{
    cek_trainer *trainer;
    cek_optimizer sgd = { .size = sizeof sgd, .algorithm = CEK_OPTIMIZER_SGD, .lr = lr };
    cek_trainer_options o = {
        .size = sizeof o, .loss = loss, .batch = ROWS, .type = type, .shares = CEK_SHARES_EQUAL, .optimizer = &sgd
    };

    assert_ok(cek_trainer_create(model, devices, device_count, &o, &trainer));
    return trainer;
}

static double step_loss(cek_trainer *trainer, int64_t rows)
{
    cek_batch batch = batch_of(rows);
    cek_step_result r = { .size = sizeof r };

    assert_ok(cek_trainer_step(trainer, &batch, &r));
    return r.loss;
}

/* ---- networks ---- */

static int squeeze_excitation(cek_model *m, int x)
{
    int s = cek_part_reduce(m, x, CEK_REDUCE_MEAN, 1 << 2 | 1 << 3, false);

    assert_ok(cek_model_enter(m, "se"));
    assert_ok(cek_model_linear(m, s, 2, true, &s));
    s = cek_part_apply(m, CEK_PW_TANH, s, -1);
    assert_ok(cek_model_linear(m, s, CHANNELS, true, &s));
    assert_ok(cek_model_leave(m));
    s = cek_part_apply(m, CEK_PW_SIGMOID, s, -1);
    s = cek_part_reshape(m, s, 4, (int64_t[]){ CEK_SAMPLES, CHANNELS, 1, 1 });
    return cek_part_apply(m, CEK_PW_MUL, x, s);
}

/* Of every head a product of all positions with all, with samples and heads side by side. */
static int attention(cek_model *m, int x)
{
    int q, k, v, scores;

    x = cek_part_reshape(m, x, 3, (int64_t[]){ CEK_SAMPLES, CHANNELS, SIDE * SIDE });
    assert_ok(cek_model_linear(m, x, 6, false, &q));
    assert_ok(cek_model_linear(m, x, 6, false, &k));
    assert_ok(cek_model_linear(m, x, 6, false, &v));
    scores = cek_part_scale(m, cek_part_matmul(m, q, k, true), 1 / sqrt(6), 0);
    x = cek_part_matmul(m, cek_part_softmax(m, scores, -1), v, false);
    return cek_part_reshape(m, x, 2, (int64_t[]){ CEK_SAMPLES, CHANNELS * 6 });
}

/* Rows of a table that the brightest places name, spread, shaken and normalised. */
static int rows(cek_model *m, int x)
{
    static const float steps[] = { 0.5f, -1, 0.25f };
    const cek_parameter_options table = {
        .size = sizeof table, .rank = 2, .shape = (int64_t[]){ SIDE * SIDE, 3 }, .fan_in = 1
    };
    const cek_parameter_options factor = {
        .size = sizeof factor, .rank = 2, .shape = (int64_t[]){ CHANNELS, 1 }, .fan_in = 1
    };
    int y, spread, noise;

    x = cek_part_reshape(m, x, 3, (int64_t[]){ CEK_SAMPLES, CHANNELS, SIDE * SIDE });
    y = cek_part_gather(m, cek_part_parameter(m, "table", &table), cek_part_arg(m, x, CEK_ARG_MAX, 2), 0);
    spread = cek_part_expand(m, cek_part_parameter(m, "factor", &factor), 2, (int64_t[]){ CHANNELS, 3 });
    y = cek_part_apply(m, CEK_PW_MUL, y, spread);
    noise = cek_part_random(m, 2, (int64_t[]){ CHANNELS, 3 }, CEK_RANDOM_NORMAL, 0, 0.5);
    y = cek_part_apply(m, CEK_PW_ADD, cek_part_apply(m, CEK_PW_ADD, y, noise),
                       cek_part_array(m, 1, (int64_t[]){ 3 }, steps));
    return cek_part_reshape(m, cek_part_normalise(m, y, 1 << 2 | 1 << 1, 0.01), 2,
                            (int64_t[]){ CEK_SAMPLES, CHANNELS * 3 });
}

static int masked_attention(cek_model *m, int x)
{
    static const float see[CHANNELS * CHANNELS] = { [1] = -1, [6] = -INFINITY, [8] = 2 };
    cek_attention_part a = { .size = sizeof a, .heads = 2, .causal = true, .masked = true, .scale = 0.7 };
    int q, v;

    x = cek_part_reshape(m, x, 3, (int64_t[]){ CEK_SAMPLES, CHANNELS, SIDE * SIDE });
    assert_ok(cek_model_linear(m, x, 6, false, &q));
    assert_ok(cek_model_linear(m, x, 4, false, &v));
    a.mask = cek_part_array(m, 2, (int64_t[]){ CHANNELS, CHANNELS }, see);
    x = cek_part_log_softmax(m, cek_part_attention(m, q, q, v, &a), 1);
    return cek_part_reshape(m, x, 2, (int64_t[]){ CEK_SAMPLES, CHANNELS * 4 });
}

/* - (1 - p)^2 log p of the right class. */
static void focal_loss(cek_model *m, int logits)
{
    int target = cek_part_target(m, CEK_F32, 1, (int64_t[]){ CLASSES });
    int p = cek_part_reduce(m, cek_part_apply(m, CEK_PW_MUL, cek_part_softmax(m, logits, 1), target), CEK_REDUCE_SUM,
                            1 << 1, false);
    int rest = cek_part_scale(m, p, -1, 1);
    int v = cek_part_apply(m, CEK_PW_MUL, cek_part_apply(m, CEK_PW_MUL, rest, rest),
                           cek_part_apply(m, CEK_PW_LOG, p, -1));

    ck_assert_int_ge(cek_part_loss(m, cek_part_scale(m, v, -1, 0), -1), 0);
}

static void mean_squared_error(cek_model *m, int y)
{
    int target = cek_part_target(m, CEK_F32, 1, (int64_t[]){ CLASSES });
    int d = cek_part_apply(m, CEK_PW_SUB, y, target);

    ck_assert_int_ge(
        cek_part_loss(m, cek_part_reduce(m, cek_part_apply(m, CEK_PW_MUL, d, d), CEK_REDUCE_MEAN, 2, false), -1), 0);
}

static cek_model *network(int (*block)(cek_model *, int), void (*loss)(cek_model *, int))
{
    cek_model *m;
    int64_t shape[CEK_RANK_MAX];
    int x;

    assert_ok(cek_model_create(3, (int64_t[]){ CHANNELS, SIDE, SIDE }, &m));
    x = block(m, 0);
    if (cek_model_shape(m, x, shape) == 4)
        assert_ok(cek_model_flatten(m, x, &x));
    assert_ok(cek_model_name(m, "head"));
    assert_ok(cek_model_linear(m, x, CLASSES, true, &x));
    if (loss)
        loss(m, x);
    assert_ok(cek_model_status(m));
    cek_model_init(m, 3);
    return m;
}

/* ---- gradients ---- */

static double loss_of(cek_model *m)
{
    cek_trainer *t = trainer_of(m, 0, CEK_F64, 1e-30);
    double loss = step_loss(t, ROWS - 1);

    cek_trainer_free(t);
    return loss;
}

/* Against differences in double, at a few places of every parameter. */
static void gradients_hold(cek_model *m)
{
    cek_trainer *t = trainer_of(m, 0, CEK_F64, 1e-30);

    step_loss(t, ROWS - 1);
    for (size_t p = 0; p < cek_model_parameter_count(m); p++) {
        cek_parameter parameter;
        double *gradient;
        bool any = false;

        assert_ok(cek_model_parameter(m, p, &parameter));
        gradient = malloc((size_t)parameter.count * sizeof *gradient);
        assert_ok(cek_trainer_read_gradient(t, p, gradient, parameter.count));
        for (int64_t i = 0; i < parameter.count; i += 1 + parameter.count / 4) {
            float at = parameter.data[i], up = at + 0x1p-9f, down = at - 0x1p-9f;
            double more, less;

            parameter.data[i] = up;
            more = loss_of(m);
            parameter.data[i] = down;
            less = loss_of(m);
            parameter.data[i] = at;
            ck_assert_msg(fabs((more - less) / ((double)up - (double)down) - gradient[i]) <= 2e-6,
                          "%s[%lld]: %.9g, %.9g", parameter.name, (long long)i, gradient[i],
                          (more - less) / ((double)up - (double)down));
            any |= gradient[i] != 0;
        }
        ck_assert(any); /* rows that nobody names have none */
        free(gradient);
    }
    cek_trainer_free(t);
}

START_TEST(layers_and_losses_of_ones_own_have_their_gradients)
{
    int (*const blocks[])(cek_model *, int) = { squeeze_excitation, attention, rows, masked_attention };
    void (*const losses[])(cek_model *, int) = { focal_loss, mean_squared_error };

    open_devices("reference:0");
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 2; k++) {
            cek_model *m = network(blocks[i], losses[k]);

            gradients_hold(m);
            cek_model_free(m);
        }
    close_devices();
}
END_TEST

START_TEST(a_loss_of_ones_own_is_the_built_in_one_over_several_devices)
{
    double own[4], given[4];

    open_devices("cpu");
    ck_assert_uint_eq(device_count, 3);
    for (int i = 0; i < 2; i++) {
        cek_model *m = network(squeeze_excitation, i ? NULL : mean_squared_error);
        cek_trainer *t = trainer_of(m, i ? CEK_LOSS_MSE : CEK_LOSS_OWN, CEK_F32, 0.1);

        for (int s = 0; s < 4; s++)
            (i ? given : own)[s] = step_loss(t, s % 2 ? 7 : ROWS);
        cek_trainer_free(t);
        cek_model_free(m);
    }
    for (int s = 0; s < 4; s++)
        ck_assert_msg(fabs(own[s] - given[s]) <= 1e-6 * given[s], "step %d: %.9g, %.9g", s, own[s], given[s]);
    ck_assert(given[2] < given[0]);
    close_devices();
}
END_TEST

START_TEST(what_differs_between_training_and_evaluation)
{
    cek_model *m;
    cek_predictor *p;
    cek_predictor_options o = { .size = sizeof o, .batch = ROWS };
    float outputs[ROWS * CLASSES], bias[CLASSES];
    cek_parameter head;
    int x, n;

    open_devices("cpu:0");
    assert_ok(cek_model_create(3, (int64_t[]){ CHANNELS, SIDE, SIDE }, &m));
    assert_ok(cek_model_flatten(m, 0, &x));
    assert_ok(cek_model_linear(m, x, CLASSES, true, &n));
    n = cek_part_phase(m, cek_part_dropout(m, n, 0.5), cek_part_scale(m, n, 0, 5));
    cek_model_init(m, 1);
    assert_ok(cek_predictor_create(m, devices, 1, &o, &p));
    assert_ok(cek_predictor_run(p, inputs, ROWS, outputs));
    for (int i = 0; i < ROWS * CLASSES; i++)
        ck_assert_float_eq(outputs[i], 5);
    assert_ok(cek_model_parameter(m, 1, &head));
    for (int i = 0; i < CLASSES; i++)
        bias[i] = head.data[i];
    {
        cek_trainer *t = trainer_of(m, CEK_LOSS_MSE, CEK_F32, 0.1);

        ck_assert(step_loss(t, ROWS) < 5);
        assert_ok(cek_trainer_pull(t));
        cek_trainer_free(t);
    }
    for (int i = 0; i < CLASSES; i++)
        ck_assert(bias[i] != head.data[i]);
    cek_predictor_free(p);
    cek_model_free(m);
    close_devices();
}
END_TEST

/* A convolution that only the loss reads lies as training wants it: as on a path that the output reads too. */
START_TEST(parameters_that_the_loss_alone_reads_are_where_they_belong)
{
    double losses[2];

    open_devices("cpu:0");
    for (int also = 0; also < 2; also++) {
        const cek_conv2d_layer conv = { .size = sizeof conv, .out_channels = 3, .kernel_h = 3, .kernel_w = 3 };
        cek_model *m;
        cek_trainer *t;
        int y, c, target, d;

        assert_ok(cek_model_create(3, (int64_t[]){ CHANNELS, SIDE, SIDE }, &m));
        assert_ok(cek_model_conv2d(m, 0, &conv, &c));
        c = cek_part_reduce(m, c, CEK_REDUCE_MEAN, 1 << 2 | 1 << 3, false);
        assert_ok(cek_model_flatten(m, 0, &y));
        assert_ok(cek_model_linear(m, y, CLASSES, true, &y));
        assert_ok(cek_model_set_output(m, also ? cek_part_apply(m, CEK_PW_ADD, y, c) : y));
        target = cek_part_target(m, CEK_F32, 1, (int64_t[]){ CLASSES });
        d = cek_part_apply(m, CEK_PW_SUB, cek_part_apply(m, CEK_PW_ADD, y, c), target);
        cek_part_loss(m, cek_part_reduce(m, d, CEK_REDUCE_SUM_SQUARES, 2, false), -1);
        cek_model_init(m, 9);
        t = trainer_of(m, CEK_LOSS_OWN, CEK_F32, 0.1);
        losses[also] = step_loss(t, ROWS);
        cek_trainer_free(t);
        cek_model_free(m);
    }
    ck_assert_msg(fabs(losses[0] - losses[1]) <= 1e-6 * losses[1], "%.9g, %.9g", losses[0], losses[1]);
    close_devices();
}
END_TEST

START_TEST(outputs_that_are_no_rows_of_samples_are_refused)
{
    cek_predictor *p;

    open_devices("cpu:0");
    for (int i = 0; i < 3; i++) {
        cek_model *m;
        int y;

        assert_ok(cek_model_create(1, (int64_t[]){ 6 }, &m));
        assert_ok(cek_model_linear(m, 0, CLASSES, true, &y));
        switch (i) {
        case 0: y = cek_part_permute(m, y, (int[]){ 1, 0 }); break;
        case 1: y = cek_part_cast(m, y, CEK_I32); break;
        default:
            y = cek_part_apply(m, CEK_PW_ADD, y, cek_part_target(m, CEK_F32, 1, (int64_t[]){ CLASSES }));
            assert_ok(cek_model_set_output(m, y));
        }
        assert_ok(cek_model_status(m));
        assert_fails(cek_predictor_create(m, devices, 1, NULL, &p), CEK_INVALID, "output",
                     i < 2 ? "each sample" : "target");
        cek_model_free(m);
    }
    close_devices();
}
END_TEST

START_TEST(the_first_failure_stays)
{
    cek_model *m;
    cek_predictor *p = (cek_predictor *)&m;
    int64_t shape[CEK_RANK_MAX];
    int y;

    open_devices("cpu:0");
    assert_ok(cek_model_create(3, (int64_t[]){ CHANNELS, SIDE, SIDE }, &m));
    ck_assert_int_eq(cek_part_reduce(m, 0, CEK_REDUCE_SUM, 1, false), -1); /* over samples */
    assert_fails(cek_model_status(m), CEK_INVALID, "node 1 (reduce)", "samples");
    y = cek_part_apply(m, CEK_PW_EXP, -1, -1);
    ck_assert_int_eq(y, -1);
    ck_assert_int_eq(cek_part_dropout(m, -1, 0.5), -1);
    ck_assert_int_eq(cek_part_permute(m, 0, (int[]){ 0, 1, 1, 2 }), -1);
    assert_fails(cek_model_status(m), CEK_INVALID, "node 1 (reduce)", "samples");
    assert_fails(cek_predictor_create(m, devices, 1, NULL, &p), CEK_INVALID, "node 1 (reduce)", "samples");
    ck_assert_ptr_null(p);
    ck_assert_int_eq(cek_model_shape(m, 0, shape), 4);
    ck_assert_int_eq(shape[0], CEK_SAMPLES);
    cek_model_free(m);
    close_devices();
}
END_TEST

START_TEST(a_part_of_a_layer_that_failed_says_why)
{
    cek_model *m;
    int n;

    assert_ok(cek_model_create(3, (int64_t[]){ CHANNELS, SIDE, SIDE }, &m));
    ck_assert_uint_eq(cek_model_linear(m, 0, 4, true, &n), CEK_INVALID);
    assert_ok(cek_model_status(m)); /* who looked at it may go on */
    ck_assert_int_eq(cek_part_reshape(m, n, 1, (int64_t[]){ 4 * CEK_SAMPLES }), -1);
    assert_fails(cek_model_status(m), CEK_INVALID, "node 1 (linear)", "flatten");
    cek_model_free(m);
}
END_TEST

/* What is reconstructed is the input. */
START_TEST(a_loss_may_read_no_target)
{
    cek_model *m;
    cek_trainer *t;
    int x, y, d;
    double first = 0, last = 0;
    int32_t unread[ROWS] = { 0 };

    open_devices("cpu");
    assert_ok(cek_model_create(1, (int64_t[]){ PIXELS }, &m));
    assert_ok(cek_model_linear(m, 0, 30, true, &x));
    assert_ok(cek_model_linear(m, x, PIXELS, true, &y));
    d = cek_part_apply(m, CEK_PW_SUB, y, 0);
    ck_assert_int_ge(cek_part_loss(m, cek_part_reduce(m, d, CEK_REDUCE_SUM_SQUARES, 2, false), -1), 0);
    assert_ok(cek_model_set_output(m, y));
    cek_model_init(m, 2);
    t = trainer_of(m, CEK_LOSS_OWN, CEK_F32, 0.005);
    for (int s = 0; s < 20; s++) {
        cek_batch b = {
            .size = sizeof b, .count = ROWS - s % 2, .inputs = inputs, .targets = unread, .input_type = CEK_F32
        };
        cek_step_result r = { .size = sizeof r };

        assert_ok(cek_trainer_step(t, &b, &r));
        if (s == 0)
            first = r.loss;
        last = r.loss;
    }
    ck_assert(last < 0.8 * first);
    cek_trainer_free(t);
    cek_model_free(m);
    close_devices();
}
END_TEST

/* The gradient of a maximum wants it with its axis kept, as one of the nodes has it; that one nobody else may read. */
START_TEST(a_maximum_whose_kept_axis_is_taken_away_is_differentiated)
{
    static const float none[ROWS * PIXELS];
    cek_model *m;
    cek_trainer *t;
    int x, y;
    const int32_t unread[ROWS] = { 0 };
    /* so that the biases alone are seen */
    const cek_batch b = { .size = sizeof b, .count = ROWS, .inputs = none, .targets = unread, .input_type = CEK_F32 };
    cek_step_result r = { .size = sizeof r };

    open_devices("cpu:0");
    assert_ok(cek_model_create(1, (int64_t[]){ PIXELS }, &m));
    assert_ok(cek_model_linear(m, 0, 4, true, &x));
    y = cek_part_reduce(m, x, CEK_REDUCE_MAX, 1u << 1, true);
    y = cek_part_reshape(m, y, 1, (int64_t[]){ CEK_SAMPLES });
    ck_assert_int_ge(cek_part_loss(m, cek_part_apply(m, CEK_PW_MUL, y, y), -1), 0);
    assert_ok(cek_model_set_output(m, x));
    cek_model_init(m, 3);
    t = trainer_of(m, CEK_LOSS_OWN, CEK_F32, 0.05);
    assert_ok(cek_trainer_step(t, &b, &r));
    const double first = r.loss;
    assert_ok(cek_trainer_step(t, &b, &r));
    ck_assert(first > 0 && r.loss < first);
    cek_trainer_free(t);
    cek_model_free(m);
    close_devices();
}
END_TEST

START_TEST(arrays_are_in_no_state_dict_and_random_numbers_only_where_it_is_trained)
{
    const float values_of[PIXELS / 2] = { 1, 2, 3 };
    float outputs[2 * PIXELS];
    cek_predictor *p;
    cek_model *m;
    int x, y;

    open_devices("cpu:0");
    assert_ok(cek_model_create(1, (int64_t[]){ PIXELS }, &m));
    x = cek_part_reshape(m, 0, 3, (int64_t[]){ CEK_SAMPLES, 2, PIXELS / 2 });
    y = cek_part_apply(m, CEK_PW_MUL, cek_part_scale(m, x, 0, 1),
                       cek_part_array(m, 1, (int64_t[]){ PIXELS / 2 }, values_of));
    y = cek_part_apply(m, CEK_PW_ADD, y, cek_part_random(m, 2, (int64_t[]){ 2, PIXELS / 2 }, CEK_RANDOM_UNIFORM, 2, 6));
    ck_assert_int_ge(cek_part_reshape(m, y, 2, (int64_t[]){ CEK_SAMPLES, PIXELS }), 0);
    ck_assert_uint_eq(cek_model_parameter_count(m) + cek_model_buffer_count(m), 0);
    assert_ok(cek_predictor_create(m, devices, 1, NULL, &p));
    assert_ok(cek_predictor_run(p, inputs, 2, outputs));
    for (int i = 0; i < 2 * PIXELS; i++)
        ck_assert_float_eq(outputs[i], 4 + values_of[i % (PIXELS / 2)]);
    cek_predictor_free(p);
    cek_model_free(m);
    close_devices();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("parts");
    TCase *tcase = tcase_create("parts");

    tcase_add_test(tcase, layers_and_losses_of_ones_own_have_their_gradients);
    tcase_add_test(tcase, a_loss_of_ones_own_is_the_built_in_one_over_several_devices);
    tcase_add_test(tcase, what_differs_between_training_and_evaluation);
    tcase_add_test(tcase, parameters_that_the_loss_alone_reads_are_where_they_belong);
    tcase_add_test(tcase, outputs_that_are_no_rows_of_samples_are_refused);
    tcase_add_test(tcase, the_first_failure_stays);
    tcase_add_test(tcase, a_part_of_a_layer_that_failed_says_why);
    tcase_add_test(tcase, a_loss_may_read_no_target);
    tcase_add_test(tcase, a_maximum_whose_kept_axis_is_taken_away_is_differentiated);
    tcase_add_test(tcase, arrays_are_in_no_state_dict_and_random_numbers_only_where_it_is_trained);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
