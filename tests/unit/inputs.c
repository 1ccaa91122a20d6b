/* inputs.c - what batches hold: whole numbers as inputs, labels for each word of a sample, samples of any rank; from a
 * data set's arrays to the gradients that they give. */
#include <cekernels/parts.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scratch.h"
#include "tests/suite.h"

enum { ROWS = 13, WORDS = 5, CLASSES = 8 };

static int32_t base; /* of words; beyond 2^24 floats leave out every other whole number */
static int32_t words[ROWS][WORDS], labels[ROWS][WORDS];
static cek_engine *engine;
static cek_device **devices;
static size_t device_count;

static void open_devices(const char *list, int32_t first)
{
    base = first;
    setenv("CEKERNELS_CPU_DEVICES", "3", 1);
    setenv("CEKERNELS_SIM_DEVICES", "2", 1);
    assert_ok(cek_engine_create(NULL, &engine));
    assert_ok(cek_engine_select(engine, list, CEK_PROFILE_TRAINING, &devices, &device_count));
    for (int i = 0; i < ROWS * WORDS; i++) {
        words[i / WORDS][i % WORDS] = base + i * i % 11;
        labels[i / WORDS][i % WORDS] = i * 7 % CLASSES;
    }
}

static void close_devices(void)
{
    free(devices);
    cek_engine_free(engine);
}

/* ---- words and their labels ---- */

/* (word - base) * w - label for each word of a sample; the loss is the sum of their squares. */
static cek_model *words_model(void)
{
    const int64_t shape = WORDS;
    const cek_parameter_options w = { .size = sizeof w, .rank = 1, .shape = &shape };
    cek_parameter p;
    cek_model *m;
    int x, d;

    assert_ok(cek_model_create(0, NULL, &m));
    x = cek_part_input(m, "words", CEK_I32, 1, &shape);
    ck_assert_int_eq(x, 0);
    x = cek_part_scale(m, cek_part_cast(m, x, CEK_DTYPE_NONE), 1, -base);
    assert_ok(cek_model_name(m, "head"));
    x = cek_part_apply(m, CEK_PW_MUL, x, cek_part_parameter(m, "w", &w));
    d = cek_part_apply(m, CEK_PW_SUB, x, cek_part_cast(m, cek_part_target(m, CEK_I32, 1, &shape), CEK_DTYPE_NONE));
    d = cek_part_reduce(m, cek_part_apply(m, CEK_PW_MUL, d, d), CEK_REDUCE_SUM, 1 << 1, false);
    ck_assert_int_ge(cek_part_loss(m, d, -1), 0);
    assert_ok(cek_model_status(m));
    assert_ok(cek_model_parameter(m, 0, &p));
    ck_assert_str_eq(p.name, "head.w");
    for (int t = 0; t < WORDS; t++)
        p.data[t] = (float)(t + 1) / 4;
    return m;
}

/* Of the first rows, in double; all of it is exact but the division. */
static double oracle(int rows, double gradient[WORDS])
{
    double loss = 0;

    memset(gradient, 0, WORDS * sizeof *gradient);
    for (int n = 0; n < rows; n++)
        for (int t = 0; t < WORDS; t++) {
            double x = words[n][t] - base, d = x * (t + 1) / 4 - labels[n][t];

            loss += d * d / rows;
            gradient[t] += 2 * d * x / rows;
        }
    return loss;
}

static cek_trainer *words_trainer(cek_model *model, cek_dtype type)
{
    const double weights[] = { 1, 3, 2 };
    const cek_optimizer sgd = { .size = sizeof sgd, .algorithm = CEK_OPTIMIZER_SGD, .lr = 1e-30 };
    cek_trainer_options o = { .size = sizeof o, .batch = ROWS, .type = type, .optimizer = &sgd };
    cek_trainer *trainer;

    if (device_count > 1)
        o.shares = CEK_SHARES_GIVEN, o.share_weights = weights;
    assert_ok(cek_trainer_create(model, devices, device_count, &o, &trainer));
    return trainer;
}

static cek_batch words_batch(int64_t rows)
{
    return (cek_batch){ .size = sizeof(cek_batch),
                        .count = rows,
                        .inputs = words,
                        .targets = labels,
                        .input_type = CEK_I32,
                        .target_type = CEK_I32,
                        .target_columns = WORDS };
}

static void words_train(const char *list, cek_dtype type)
{
    /* 1/n is rounded, and what is multiplied with it, once in the loss's gradient; devices' sums are exact */
    const double bound = type == CEK_F64 ? 3 * 0x1p-52 : 3 * 0x1p-23;
    cek_model *m;
    cek_trainer *t;

    open_devices(list, type == CEK_F64 ? 1 << 24 : 0);
    m = words_model();
    t = words_trainer(m, type);
    for (int rows = ROWS; rows > ROWS - 9; rows -= 4) { /* the others are padded where there are no plans for them */
        cek_batch b = words_batch(rows);
        cek_step_result r = { .size = sizeof r };
        double want[WORDS], got[WORDS], loss = oracle(rows, want);

        assert_ok(cek_trainer_step(t, &b, &r));
        assert_ok(cek_trainer_read_gradient(t, 0, got, WORDS));
        ck_assert_double_le(fabs(r.loss - loss), bound * loss);
        for (int k = 0; k < WORDS; k++)
            ck_assert_msg(fabs(got[k] - want[k]) <= bound * fabs(want[k]) * WORDS, "%s, %d: %.17g, %.17g", list, k,
                          got[k], want[k]);
    }
    cek_trainer_free(t);
    cek_model_free(m);
    close_devices();
}

START_TEST(words_and_their_labels_train_as_whole_numbers)
{
    words_train("reference:0", CEK_F64);
    words_train("cpu:0", CEK_F32);
    words_train("cpu:0,cpu:1,cpu:2", CEK_F32);
    words_train("cpu:0,sim:0,sim:1", CEK_F32);
}
END_TEST

static cek_array_options words_arrays(void)
{
    return (cek_array_options){ .size = sizeof(cek_array_options),
                                .input_type = CEK_I32,
                                .count = ROWS,
                                .rank = 1,
                                .shape = { WORDS },
                                .inputs = words,
                                .labels = labels[0],
                                .classes = CLASSES,
                                .columns = WORDS };
}

START_TEST(a_data_set_has_words_and_a_label_for_each)
{
    cek_array_options o = words_arrays();
    cek_loader_options lo = { .size = sizeof lo, .batch = ROWS };
    cek_fit_options fit = { .size = sizeof fit, .no_shuffle = true };
    cek_metrics metrics = { .size = sizeof metrics };
    cek_dataset *set, *first, *second;
    cek_loader *loader;
    const cek_batch *batch;
    double gradient[WORDS];
    cek_model *m;
    cek_trainer *t;

    open_devices("cpu:0", 0);
    assert_ok(cek_dataset_arrays(&o, &set));
    ck_assert(cek_dataset_input_type(set) == CEK_I32 && cek_dataset_target_columns(set) == WORDS);
    assert_ok(cek_loader_create(set, &lo, &loader));
    assert_ok(cek_loader_start(loader, 0));
    assert_ok(cek_loader_next(loader, &batch));
    ck_assert(batch->input_type == CEK_I32 && batch->target_type == CEK_I32 && batch->target_columns == WORDS);
    ck_assert_int_eq(memcmp(batch->inputs, words, sizeof words), 0);
    ck_assert_int_eq(memcmp(batch->targets, labels, sizeof labels), 0);
    m = words_model();
    t = words_trainer(m, CEK_F32);
    assert_ok(cek_trainer_fit(t, set, &fit, NULL));
    assert_ok(cek_trainer_evaluate(t, set, &metrics));
    ck_assert_double_le(fabs(metrics.loss / oracle(ROWS, gradient) - 1), 3 * 0x1p-23);
    assert_ok(cek_dataset_split_rows(set, (const int64_t[]){ 4 }, 1, &first, &second));
    assert_ok(cek_trainer_evaluate(t, second, &metrics));
    memcpy(words, words[4], sizeof *words);
    memcpy(labels, labels[4], sizeof *labels);
    ck_assert_double_le(fabs(metrics.loss / oracle(1, gradient) - 1), 3 * 0x1p-23);
    assert_fails(cek_dataset_standardize(set, set), CEK_INVALID, "data set", "f32 features");
    cek_trainer_free(t);
    cek_model_free(m);
    cek_loader_free(loader);
    cek_dataset_free(first);
    cek_dataset_free(second);
    cek_dataset_free(set);
    labels[3][2] = CLASSES;
    assert_fails(cek_dataset_arrays(&o, &set), CEK_BAD_INPUT, "sample 3", "label 8");
    labels[3][2] = 0;
    o.columns = -1;
    assert_fails(cek_dataset_arrays(&o, &set), CEK_INVALID, "data set", "targets of -1");
    close_devices();
}
END_TEST

/* ---- samples of any rank ---- */

/* sum of x * w over a sample, w of the sample's shape: w[i] = i + 1 by the order of the axes. */
static cek_model *dot_model(cek_dtype type, int rank, const int64_t *shape)
{
    int64_t count = 1;
    cek_parameter_options w = { .size = sizeof w, .rank = 1, .shape = &count };
    int64_t ones[CEK_RANK_MAX] = { 1 };
    cek_parameter p;
    cek_model *m;
    int x, v;

    for (int i = 0; i < rank; i++)
        count *= shape[i];
    memcpy(ones + 1, shape, (size_t)rank * sizeof *shape);
    assert_ok(cek_model_create(0, NULL, &m));
    x = cek_part_input(m, "x", type, rank, shape);
    if (type == CEK_I32)
        x = cek_part_cast(m, x, CEK_DTYPE_NONE);
    v = cek_part_reshape(m, cek_part_parameter(m, "w", &w), rank + 1, ones);
    x = cek_part_reduce(m, cek_part_apply(m, CEK_PW_MUL, x, v), CEK_REDUCE_SUM, (2u << rank) - 2, false);
    cek_part_reshape(m, x, 2, (int64_t[]){ CEK_SAMPLES, 1 });
    assert_ok(cek_model_status(m));
    assert_ok(cek_model_parameter(m, 0, &p));
    for (int64_t i = 0; i < count; i++)
        p.data[i] = (float)(i + 1);
    return m;
}

/* Data sets take samples by the order of their axes, and give them to the network so, whatever lies between. */
static void dots_hold(cek_dtype type, int rank)
{
    static const int64_t shape[] = { 3, 4, 2, 5, 2 };
    enum { MOST = 240 };
    float x[ROWS][MOST], got[ROWS];
    int32_t whole[ROWS][MOST];
    int64_t count = 1, back[CEK_RANK_MAX];
    static float values[ROWS];
    cek_array_options o = {
        .size = sizeof o, .input_type = type, .count = ROWS, .rank = rank, .values = values, .columns = 1
    };
    const cek_predictor_options po = { .size = sizeof po, .batch = 5 };
    cek_predictor *predictor;
    cek_dataset *set;
    cek_model *m = dot_model(type, rank, shape);

    for (int i = 0; i < rank; i++)
        count *= o.shape[i] = shape[i];
    for (int64_t i = 0; i < ROWS * count; i++) {
        (&x[0][0])[i] = (float)(i * i % 17);
        (&whole[0][0])[i] = (int32_t)(i * i % 17);
    }
    o.inputs = type == CEK_I32 ? (const void *)whole : x;
    assert_ok(cek_dataset_arrays(&o, &set));
    ck_assert_int_eq(cek_dataset_shape(set, back), rank);
    ck_assert_int_eq(memcmp(back, shape, (size_t)rank * sizeof *shape), 0);
    ck_assert_int_eq(cek_model_input_shape(m, back), rank);
    ck_assert_int_eq(memcmp(back, shape, (size_t)rank * sizeof *shape), 0);
    assert_ok(cek_predictor_create(m, devices, device_count, &po, &predictor));
    assert_ok(cek_predictor_run_dataset(predictor, set, got));
    for (int n = 0; n < ROWS; n++) { /* below 2^24: every sum is exact */
        double sum = 0;

        for (int64_t i = 0; i < count; i++)
            sum += (double)(&whole[0][0])[n * count + i] * (double)(i + 1);
        ck_assert_msg((double)got[n] == sum, "rank %d, row %d: %g, %g", rank, n, (double)got[n], sum);
    }
    cek_predictor_free(predictor);
    cek_dataset_free(set);
    cek_model_free(m);
}

START_TEST(samples_of_any_rank_are_read_in_the_order_of_their_axes)
{
    const char *const lists[] = { "reference:0", "cpu:0,cpu:1" };

    for (int i = 0; i < 2; i++) {
        open_devices(lists[i], 0);
        for (int rank = 1; rank <= 5; rank++) {
            dots_hold(CEK_F32, rank);
            dots_hold(CEK_I32, rank);
        }
        close_devices();
    }
}
END_TEST

/* ---- refusals ---- */

START_TEST(inputs_that_cannot_be_are_refused)
{
    const int64_t ones[6] = { 1, 1, 1, 1, 1, 1 }, samples[] = { 2, CEK_SAMPLES };

    for (int i = 0; i < 6; i++) {
        const char *const why[] = { "type u8", "rank 0", "rank 6", "CEK_SAMPLES", "character 2", "\"input\" already" };
        cek_model *m;
        int n;

        assert_ok(cek_model_create(i == 5, ones, &m));
        switch (i) {
        case 0: n = cek_part_input(m, "x", CEK_U8, 1, ones); break;
        case 1: n = cek_part_input(m, "x", CEK_F32, 0, NULL); break;
        case 2: n = cek_part_input(m, "x", CEK_I32, 6, ones); break;
        case 3: n = cek_part_input(m, "x", CEK_I32, 2, samples); break;
        case 4: n = cek_part_input(m, "x y", CEK_I32, 1, ones); break;
        default: n = cek_part_input(m, "input", CEK_I32, 1, ones); break;
        }
        ck_assert_int_eq(n, -1);
        ck_assert(cek_model_status(m) != CEK_OK);
        ck_assert_msg(strstr(cek_error_text(), why[i]), "%d: %s", i, cek_error_text());
        cek_model_free(m);
    }
}
END_TEST

START_TEST(a_model_without_an_input_or_nodes_is_refused)
{
    const cek_parameter_options w = { .size = sizeof w, .rank = 1, .shape = (const int64_t[]){ 3 } };
    cek_predictor *predictor;
    cek_trainer *trainer;
    cek_model *m;
    char *text;

    open_devices("cpu:0", 0);
    for (int nodes = 0; nodes < 2; nodes++) {
        assert_ok(cek_model_create(0, NULL, &m));
        ck_assert_int_eq(cek_model_input_shape(m, NULL), 0);
        ck_assert_int_eq(nodes ? cek_part_parameter(m, "w", &w) : 0, 0);
        assert_fails(cek_trainer_create(m, devices, 1, NULL, &trainer), CEK_INVALID, "the model", "no input");
        assert_fails(cek_predictor_create(m, devices, 1, NULL, &predictor), CEK_INVALID, "the model", "no input");
        assert_ok(cek_model_summary(m, NULL, 1, &text));
        free(text);
        if (nodes == 0)
            assert_fails(cek_model_fits(m, devices[0], CEK_F32), CEK_INVALID, "the model", "no nodes");
        cek_model_free(m);
    }
    close_devices();
}
END_TEST

START_TEST(batches_of_another_form_are_refused)
{
    cek_trainer_options o = { .size = sizeof o, .batch = ROWS };
    cek_predictor_options po = { .size = sizeof po, .input_type = CEK_F32 };
    cek_predictor *predictor;
    cek_trainer *t;
    cek_batch b;
    cek_model *m;

    open_devices("cpu:0", 0);
    m = words_model();
    o.input_type = CEK_U8;
    assert_fails(cek_trainer_create(m, devices, 1, &o, &t), CEK_INVALID, "type u8", "i32");
    assert_fails(cek_predictor_create(m, devices, 1, &po, &predictor), CEK_INVALID, "type f32", "i32");
    o.input_type = CEK_I32;
    o.target_columns = 1;
    assert_fails(cek_trainer_create(m, devices, 1, &o, &t), CEK_INVALID, "targets of 1", "5 labels");
    o.target_columns = WORDS;
    assert_ok(cek_trainer_create(m, devices, 1, &o, &t));
    b = words_batch(2), b.input_type = CEK_F32;
    assert_fails(cek_trainer_step(t, &b, NULL), CEK_INVALID, "type f32", "i32");
    b = words_batch(2), b.target_type = CEK_F32;
    assert_fails(cek_trainer_step(t, &b, NULL), CEK_INVALID, "5 values", "5 labels");
    b = words_batch(2), b.target_columns = 0;
    assert_fails(cek_trainer_step(t, &b, NULL), CEK_INVALID, "1 labels", "5 labels");
    b = words_batch(2), b.target_type = CEK_U8;
    assert_fails(cek_trainer_step(t, &b, NULL), CEK_INVALID, "type u8", "targets");
    b = words_batch(2), b.target_type = CEK_F32, b.target_columns = 0;
    assert_fails(cek_trainer_step(t, &b, NULL), CEK_INVALID, "0 per sample", "targets");
    cek_trainer_free(t);
    cek_model_free(m);
    assert_ok(cek_model_parse("linear:2", 1, (int64_t[]){ WORDS }, &m));
    o = (cek_trainer_options){ .size = sizeof o, .input_type = CEK_I32 };
    assert_fails(cek_trainer_create(m, devices, 1, &o, &t), CEK_INVALID, "type i32", "u8 or f32");
    cek_model_free(m);
    close_devices();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("inputs");
    TCase *tcase = tcase_create("inputs");

    tcase_add_test(tcase, words_and_their_labels_train_as_whole_numbers);
    tcase_add_test(tcase, a_data_set_has_words_and_a_label_for_each);
    tcase_add_test(tcase, samples_of_any_rank_are_read_in_the_order_of_their_axes);
    tcase_add_test(tcase, inputs_that_cannot_be_are_refused);
    tcase_add_test(tcase, a_model_without_an_input_or_nodes_is_refused);
    tcase_add_test(tcase, batches_of_another_form_are_refused);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
