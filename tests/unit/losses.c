/* losses.c - a model's loss by name: values against plain loops in double, gradients against differences, sums over
 * several devices that are divided by what the whole batch weighs, and what is refused. */
#include <cekernels/parts.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/fault.h"
#include "scratch.h"
#include "tests/suite.h"

enum { ROWS = 11, FEATURES = 4, CLASSES = 3, IGNORED = -100 };

static float inputs[ROWS * FEATURES], values[ROWS * CLASSES];
static int32_t labels[ROWS];
static const float class_weights[CLASSES] = { 0.25f, 2, 0.75f };
static cek_engine *engine;
static cek_device **devices;
static size_t device_count;

static void open_devices(const char *list)
{
    uint32_t state = 3;

    for (int i = 0; i < ROWS * FEATURES; i++) {
        state = state * 1664525u + 1013904223u;
        inputs[i] = (float)(state >> 8) / (1 << 23) - 1;
    }
    for (int i = 0; i < ROWS; i++) {
        labels[i] = i * 7 % 5 % CLASSES;
        for (int k = 0; k < CLASSES; k++)
            values[i * CLASSES + k] = (float)((i * 5 + k * 3) % 7) / 6;
    }
    setenv("CEKERNELS_CPU_DEVICES", "3", 1);
    assert_ok(cek_engine_create(NULL, &engine));
    assert_ok(cek_engine_select(engine, list, CEK_PROFILE_TRAINING, &devices, &device_count));
}

static void close_devices(void)
{
    free(devices);
    cek_engine_free(engine);
}

/* ---- the oracle: the loss of x[ROWS][CLASSES] ---- */

typedef struct sum {
    double loss, weight;
} sum;

static double log_of_sum(const double *x)
{
    double most = fmax(x[0], fmax(x[1], x[2]));

    return most + log(exp(x[0] - most) + exp(x[1] - most) + exp(x[2] - most));
}

static void row_of_labels(const cek_loss_options *o, const double *x, int32_t label, sum *s)
{
    double all = 0, whole = o->kind == CEK_LOSS_NLL ? 0 : log_of_sum(x);
    double weight[CLASSES];

    if (o->ignores && label == o->ignored)
        return;
    for (int k = 0; k < CLASSES; k++) {
        weight[k] = o->weights ? (double)o->weights[k] : 1;
        all += weight[k] * (whole - x[k]);
    }
    s->weight += weight[label];
    s->loss += (1 - o->smoothing) * weight[label] * (whole - x[label]) + o->smoothing / CLASSES * all;
}

static double element(const cek_loss_options *o, double x, double t)
{
    double beta = o->beta != 0 ? o->beta : 1, positive = o->positive != 0 ? o->positive : 1, d = fabs(x - t);

    switch (o->kind) {
    case CEK_LOSS_L1: return d;
    case CEK_LOSS_MSE: return d * d;
    case CEK_LOSS_SMOOTH_L1: return d < beta ? d * d / (2 * beta) : d - beta / 2;
    case CEK_LOSS_BINARY_CROSS_ENTROPY: return positive * t * log1p(exp(-x)) + (1 - t) * (x + log1p(exp(-x)));
    default: return t > 0 ? t * (log(t) - x) : 0;
    }
}

static double oracle(const cek_loss_options *o, double (*x)[CLASSES], int rows)
{
    sum s = { 0, 0 };

    for (int i = 0; i < rows; i++) {
        const double before = s.loss, each = o->weighs ? fabs((double)inputs[i * FEATURES]) : 1;
        const bool classes = o->kind == CEK_LOSS_CROSS_ENTROPY || o->kind == CEK_LOSS_NLL;

        if (classes)
            row_of_labels(o, x[i], labels[i], &s);
        else
            s.weight += o->kind == CEK_LOSS_SOFT_CROSS_ENTROPY || o->sums ? 1 : CLASSES;
        for (int k = 0; k < CLASSES && !classes; k++) {
            double t = (double)values[i * CLASSES + k];

            s.loss += o->kind == CEK_LOSS_SOFT_CROSS_ENTROPY ? t * (log_of_sum(x[i]) - x[i][k])
                                                             : element(o, x[i][k], t);
        }
        s.loss = before + each * (s.loss - before);
    }
    return s.loss / s.weight;
}

/* Labels that the loss does not ignore, and how many of them have the largest x. */
static int64_t answers(const cek_loss_options *o, double (*x)[CLASSES], int rows, int64_t *correct)
{
    int64_t count = 0;

    *correct = 0;
    for (int i = 0; i < rows && (o->kind == CEK_LOSS_CROSS_ENTROPY || o->kind == CEK_LOSS_NLL); i++) {
        bool right = true;

        if (o->ignores && labels[i] == o->ignored)
            continue;
        for (int k = 0; k < CLASSES; k++)
            right &= x[i][k] <= x[i][labels[i]];
        *correct += right;
        count++;
    }
    return count;
}

/* ---- the same by a trainer ---- */

static cek_model *network(const cek_loss_options *given)
{
    cek_loss_options o = *given;
    cek_model *m;
    int x;

    o.size = sizeof o;
    assert_ok(cek_model_create(1, (int64_t[]){ FEATURES }, &m));
    assert_ok(cek_model_linear(m, 0, CLASSES, true, &x));
    if (o.kind == CEK_LOSS_NLL || o.kind == CEK_LOSS_KL)
        assert_ok(cek_model_log_softmax(m, x, -1, &x));
    if (o.weighs) /* as large as the first feature is */
        o.sample_weights = cek_part_apply(m, CEK_PW_ABS, cek_part_slice(m, 0, 1, 0, 1), -1);
    assert_ok(cek_model_loss(m, x, &o, NULL));
    cek_model_init(m, 4);
    return m;
}

static void outputs_compute(cek_model *m, const cek_loss_options *o, double (*x)[CLASSES])
{
    cek_parameter w, b;

    assert_ok(cek_model_parameter(m, 0, &w));
    assert_ok(cek_model_parameter(m, 1, &b));
    for (int i = 0; i < ROWS; i++) {
        double whole;

        for (int k = 0; k < CLASSES; k++) {
            x[i][k] = (double)b.data[k];
            for (int f = 0; f < FEATURES; f++)
                x[i][k] += (double)inputs[i * FEATURES + f] * (double)w.data[k * FEATURES + f];
        }
        whole = log_of_sum(x[i]);
        for (int k = 0; k < CLASSES && (o->kind == CEK_LOSS_NLL || o->kind == CEK_LOSS_KL); k++)
            x[i][k] -= whole;
    }
}

static int64_t batch_size = ROWS;

static cek_trainer *trainer_of(cek_model *m, cek_dtype type, const double *shares)
{
    cek_trainer *t;
    cek_optimizer sgd = { .size = sizeof sgd, .algorithm = CEK_OPTIMIZER_SGD, .lr = 1e-30 };
    cek_trainer_options o = { .size = sizeof o,
                              .batch = batch_size,
                              .type = type,
                              .shares = shares ? CEK_SHARES_GIVEN : CEK_SHARES_EQUAL,
                              .share_weights = shares,
                              .optimizer = &sgd };

    assert_ok(cek_trainer_create(m, devices, device_count, &o, &t));
    return t;
}

static cek_batch batch_of(const cek_loss_options *o, int rows)
{
    bool classes = o->kind == CEK_LOSS_CROSS_ENTROPY || o->kind == CEK_LOSS_NLL;

    return (cek_batch){ .size = sizeof(cek_batch),
                        .count = rows,
                        .inputs = inputs,
                        .targets = classes ? (const void *)labels : values,
                        .input_type = CEK_F32,
                        .target_columns = classes ? 0 : CLASSES };
}

static cek_step_result last; /* step's */

static double step(cek_trainer *t, const cek_loss_options *o, int rows)
{
    cek_batch batch = batch_of(o, rows);

    last = (cek_step_result){ .size = sizeof last };
    assert_ok(cek_trainer_step(t, &batch, &last));
    return last.loss;
}

static void answers_check(const cek_loss_options *o, double (*x)[CLASSES], int rows)
{
    int64_t correct;

    ck_assert_int_eq(last.labels, answers(o, x, rows, &correct));
    ck_assert_int_eq(last.correct, correct);
}

static const cek_loss_options losses[] = {
    { .kind = CEK_LOSS_CROSS_ENTROPY },
    { .kind = CEK_LOSS_CROSS_ENTROPY, .smoothing = 0.2 },
    { .kind = CEK_LOSS_CROSS_ENTROPY, .weights = class_weights },
    { .kind = CEK_LOSS_CROSS_ENTROPY, .ignores = true, .ignored = 1 },
    { .kind = CEK_LOSS_CROSS_ENTROPY, .weights = class_weights, .ignores = true, .ignored = IGNORED, .smoothing = 0.1 },
    { .kind = CEK_LOSS_NLL },
    { .kind = CEK_LOSS_NLL, .weights = class_weights, .ignores = true, .ignored = 2 },
    { .kind = CEK_LOSS_SOFT_CROSS_ENTROPY },
    { .kind = CEK_LOSS_BINARY_CROSS_ENTROPY },
    { .kind = CEK_LOSS_BINARY_CROSS_ENTROPY, .positive = 3.5 },
    { .kind = CEK_LOSS_MSE },
    { .kind = CEK_LOSS_L1 },
    { .kind = CEK_LOSS_L1, .sums = true },
    { .kind = CEK_LOSS_SMOOTH_L1 },
    { .kind = CEK_LOSS_SMOOTH_L1, .beta = 0.3 },
    { .kind = CEK_LOSS_KL },
    { .kind = CEK_LOSS_KL, .sums = true },
    { .kind = CEK_LOSS_CROSS_ENTROPY, .weighs = true },
    { .kind = CEK_LOSS_NLL, .weights = class_weights, .ignores = true, .ignored = 2, .weighs = true },
    { .kind = CEK_LOSS_BINARY_CROSS_ENTROPY, .weighs = true },
};
enum { LOSSES = sizeof losses / sizeof *losses };

/* Some of them outside of the classes. */
static void labels_ignore(const cek_loss_options *o)
{
    for (int i = 0; i < ROWS && o->ignored == IGNORED; i += 4)
        labels[i] = IGNORED;
}

START_TEST(values_and_gradients_are_those_of_the_formula)
{
    const cek_loss_options *o = &losses[_i];
    cek_model *m;
    cek_trainer *t;
    double x[ROWS][CLASSES], loss, wanted;

    open_devices("reference:0");
    labels_ignore(o);
    m = network(o);
    t = trainer_of(m, CEK_F64, NULL);
    loss = step(t, o, ROWS - 1);
    outputs_compute(m, o, x);
    answers_check(o, x, ROWS - 1);
    wanted = oracle(o, x, ROWS - 1);
    ck_assert_msg(fabs(loss - wanted) <= 1e-13 * (1 + fabs(wanted)), "%.17g, wanted %.17g", loss, wanted);
    for (size_t p = 0; p < 2; p++) {
        cek_parameter parameter;
        double gradient[CLASSES * FEATURES], more, less;

        assert_ok(cek_model_parameter(m, p, &parameter));
        assert_ok(cek_trainer_read_gradient(t, p, gradient, parameter.count));
        for (int64_t i = 0; i < parameter.count; i++) {
            float at = parameter.data[i], up = at + 0x1p-12f, down = at - 0x1p-12f;

            parameter.data[i] = up;
            outputs_compute(m, o, x);
            more = oracle(o, x, ROWS - 1);
            parameter.data[i] = down;
            outputs_compute(m, o, x);
            less = oracle(o, x, ROWS - 1);
            parameter.data[i] = at;
            ck_assert_msg(fabs((more - less) / ((double)up - (double)down) - gradient[i]) <= 1e-6,
                          "%s[%lld]: %.9g, %.9g", parameter.name, (long long)i, gradient[i],
                          (more - less) / ((double)up - (double)down));
        }
    }
    cek_trainer_free(t);
    cek_model_free(m);
    close_devices();
}
END_TEST

/* A device without samples, one with a single one, whose label weighs the most, and the rest. Sums of f32
 * over 11 rows. */
START_TEST(several_devices_divide_by_what_the_whole_batch_weighs)
{
    const cek_loss_options *o = &losses[_i];
    const double shares[][3] = { { 0, 1, 10 }, { 1, 1, 1 }, { 1, 0, 0 } };

    open_devices("cpu");
    ck_assert_uint_eq(device_count, 3);
    labels_ignore(o);
    for (int i = 0; i < 3; i++) {
        cek_model *m = network(o);
        cek_trainer *t = trainer_of(m, CEK_F32, shares[i]);
        double x[ROWS][CLASSES], gradient[CLASSES], total = 0;

        outputs_compute(m, o, x);
        for (int rows = ROWS; rows >= ROWS - 4; rows -= 4) {
            double loss = step(t, o, rows), wanted = oracle(o, x, rows);

            ck_assert_msg(fabs(loss - wanted) <= 4e-6 * (1 + fabs(wanted)), "%d rows: %.9g, wanted %.9g", rows, loss,
                          wanted);
            answers_check(o, x, rows);
        }
        /* Of a softmax: what is pushed into one class comes from the others. */
        assert_ok(cek_trainer_read_gradient(t, 1, gradient, CLASSES));
        for (int k = 0; k < CLASSES; k++)
            total += gradient[k];
        if (o->kind == CEK_LOSS_CROSS_ENTROPY)
            ck_assert_double_le(fabs(total), 1e-6);
        cek_trainer_free(t);
        cek_model_free(m);
    }
    close_devices();
}
END_TEST

START_TEST(evaluations_and_epochs_divide_by_what_all_labels_weigh)
{
    const cek_loss_options o = {
        .kind = CEK_LOSS_CROSS_ENTROPY, .weights = class_weights, .ignores = true, .ignored = 1
    };
    cek_array_options a = { .size = sizeof a,
                            .input_type = CEK_F32,
                            .count = ROWS,
                            .rank = 1,
                            .shape = { FEATURES },
                            .inputs = inputs,
                            .labels = labels,
                            .classes = CLASSES };
    cek_metrics metrics = { .size = sizeof metrics };
    cek_epoch_result epoch = { .size = sizeof epoch };
    double x[ROWS][CLASSES], wanted, accuracy;
    int64_t correct;
    cek_dataset *set;
    cek_trainer *t;
    cek_model *m;

    open_devices("cpu");
    m = network(&o);
    batch_size = 7; /* whose labels weigh unequally */
    t = trainer_of(m, CEK_F32, NULL);
    assert_ok(cek_dataset_arrays(&a, &set));
    assert_ok(cek_trainer_evaluate(t, set, &metrics));
    outputs_compute(m, &o, x);
    wanted = oracle(&o, x, ROWS);
    ck_assert_msg(fabs(metrics.loss - wanted) <= 4e-6 * wanted, "%.9g, wanted %.9g", metrics.loss, wanted);
    accuracy = 1.0 / (double)answers(&o, x, ROWS, &correct);
    accuracy *= (double)correct;
    ck_assert(accuracy > 0 && accuracy < 1);
    ck_assert_double_eq_tol(metrics.accuracy, accuracy, 1e-15);
    assert_ok(cek_trainer_fit(t, set, &(cek_fit_options){ .size = sizeof(cek_fit_options), .epochs = 1 }, &epoch));
    ck_assert_msg(fabs(epoch.train->loss - wanted) <= 4e-6 * wanted, "%.9g, wanted %.9g", epoch.train->loss, wanted);
    ck_assert_double_eq_tol(epoch.train->accuracy, accuracy, 1e-15);
    cek_dataset_free(set);
    cek_trainer_free(t);
    cek_model_free(m);
    close_devices();
}
END_TEST

START_TEST(labels_that_are_no_class_and_batches_without_any_are_refused)
{
    const cek_loss_options o = { .kind = CEK_LOSS_CROSS_ENTROPY, .ignores = true, .ignored = IGNORED };
    cek_batch batch = batch_of(&o, 3);
    cek_trainer *t;
    cek_model *m;

    open_devices("cpu:0");
    m = network(&o);
    t = trainer_of(m, CEK_F32, NULL);
    labels[2] = CLASSES;
    assert_fails(cek_trainer_step(t, &batch, NULL), CEK_BAD_INPUT, "label 3 of sample 2", "3 classes");
    batch.rows = (const int64_t[]){ 70, 71, 57 };
    assert_fails(cek_trainer_step(t, &batch, NULL), CEK_BAD_INPUT, "label 3 of sample 57", "3 classes");
    labels[0] = labels[1] = labels[2] = IGNORED;
    assert_fails(cek_trainer_step(t, &batch, NULL), CEK_BAD_INPUT, "3 samples", "count for nothing");
    labels[1] = 0; /* and the trainer goes on */
    ck_assert(step(t, &o, 3) > 0);
    cek_trainer_free(t);
    cek_model_free(m);
    close_devices();
}
END_TEST

START_TEST(a_prediction_gives_what_the_loss_compares)
{
    const cek_loss_options o = { .kind = CEK_LOSS_CROSS_ENTROPY, .weights = class_weights };
    double x[ROWS][CLASSES];
    float outputs[ROWS * CLASSES];
    cek_predictor *p;
    cek_model *m;

    open_devices("cpu:0");
    m = network(&o);
    assert_ok(cek_predictor_create(m, devices, 1, NULL, &p));
    assert_ok(cek_predictor_run(p, inputs, ROWS, outputs));
    outputs_compute(m, &o, x);
    for (int i = 0; i < ROWS * CLASSES; i++)
        ck_assert_double_le(fabs((double)outputs[i] - x[i / CLASSES][i % CLASSES]), 1e-6);
    cek_predictor_free(p);
    cek_model_free(m);
    close_devices();
}
END_TEST

START_TEST(each_refusal_says_what_is_wrong)
{
    const float negative[CLASSES] = { 1, -1, 1 };
    const struct {
        cek_loss_options o;
        const char *said;
    } cases[] = {
        { { .kind = 99 }, "unknown kind 99" },
        { { .kind = CEK_LOSS_OWN }, "unknown kind 3" },
        { { .kind = CEK_LOSS_L1, .weights = negative }, "l1 has no classes" },
        { { .kind = CEK_LOSS_KL, .ignores = true }, "kl_divergence has no classes" },
        { { .kind = CEK_LOSS_NLL, .smoothing = 0.1 }, "nll smooths no labels" },
        { { .kind = CEK_LOSS_CROSS_ENTROPY, .smoothing = 2 }, "smoothing by 2" },
        { { .kind = CEK_LOSS_CROSS_ENTROPY, .weights = negative }, "class 1 weighs -1" },
        { { .kind = CEK_LOSS_CROSS_ENTROPY, .sums = true }, "sums" },
        { { .kind = CEK_LOSS_SMOOTH_L1, .beta = -1 }, "beta -1" },
        { { .kind = CEK_LOSS_L1, .weighs = true, .sample_weights = 0 }, "sample weights 4 for losses" },
        { { .kind = CEK_LOSS_L1, .weighs = true, .sample_weights = 77 }, "77" },
    };
    cek_model *m;
    int x, whole;

    assert_ok(cek_model_create(1, (int64_t[]){ FEATURES }, &m));
    assert_ok(cek_model_linear(m, 0, CLASSES, true, &x));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cek_loss_options o = cases[i].o;

        o.size = sizeof o;
        assert_fails(cek_model_loss(m, x, &o, NULL), CEK_INVALID, "loss", cases[i].said);
        assert_ok(cek_model_status(m));
    }
    whole = cek_part_cast(m, x, CEK_I32);
    assert_fails(cek_model_loss(m, whole, &(cek_loss_options){ .size = sizeof(cek_loss_options), .kind = CEK_LOSS_L1 },
                                NULL),
                 CEK_INVALID, "loss", "integers");
    assert_ok(cek_model_loss(m, x, &(cek_loss_options){ .size = sizeof(cek_loss_options), .kind = CEK_LOSS_L1 }, NULL));
    assert_fails(cek_model_loss(m, x, &(cek_loss_options){ .size = sizeof(cek_loss_options), .kind = CEK_LOSS_L1 },
                                NULL),
                 CEK_INVALID, "loss", "has a loss already");
    cek_model_free(m);
}
END_TEST

START_TEST(a_loss_that_memory_does_not_suffice_for_leaves_nothing)
{
    const cek_loss_options o = {
        .size = sizeof o, .kind = CEK_LOSS_CROSS_ENTROPY, .weights = class_weights, .ignores = true, .ignored = 1
    };
    cek_model *m, *plain = network(&o);
    char *text, *wanted;
    long failures = 0;
    int x;

    assert_ok(cek_model_create(1, (int64_t[]){ FEATURES }, &m));
    assert_ok(cek_model_linear(m, 0, CLASSES, true, &x));
    for (;;) {
        int loss = 99;
        bool done;
        cek_status st;

        cek__fault_set(CEK__FAULT_ALLOC, failures + 1);
        st = cek_model_loss(m, x, &o, &loss);
        done = cek__fault_pending(CEK__FAULT_ALLOC);
        cek__fault_set(CEK__FAULT_ALLOC, 0);
        failures += !done;
        ck_assert_int_eq(st, done ? CEK_OK : CEK_OUT_OF_MEMORY);
        ck_assert_int_eq(loss, done ? x + 1 : -1);
        if (done)
            break;
        ck_assert_int_eq(cek_part_target(m, CEK_F32, 1, (int64_t[]){ CLASSES }), x + 1);
        cek_model_free(m);
        assert_ok(cek_model_create(1, (int64_t[]){ FEATURES }, &m));
        assert_ok(cek_model_linear(m, 0, CLASSES, true, &x));
    }
    ck_assert_int_ge(failures, 5);
    assert_ok(cek_model_summary(m, NULL, ROWS, &text));
    assert_ok(cek_model_summary(plain, NULL, ROWS, &wanted));
    ck_assert_str_eq(text, wanted);
    free(text);
    free(wanted);
    cek_model_free(m);
    cek_model_free(plain);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("losses");
    TCase *tcase = tcase_create("losses");

    tcase_add_loop_test(tcase, values_and_gradients_are_those_of_the_formula, 0, LOSSES);
    tcase_add_loop_test(tcase, several_devices_divide_by_what_the_whole_batch_weighs, 0, LOSSES);
    tcase_add_test(tcase, evaluations_and_epochs_divide_by_what_all_labels_weigh);
    tcase_add_test(tcase, labels_that_are_no_class_and_batches_without_any_are_refused);
    tcase_add_test(tcase, a_prediction_gives_what_the_loss_compares);
    tcase_add_test(tcase, each_refusal_says_what_is_wrong);
    tcase_add_test(tcase, a_loss_that_memory_does_not_suffice_for_leaves_nothing);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
