/* several.c - models with several inputs, of which batches have an array each, and predictors that give any
 * nodes by name. */
#include <cekernels/parts.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scratch.h"
#include "tests/suite.h"

enum { ROWS = 13, CHANNELS = 2, SIDE = 3, PIXELS = CHANNELS * SIDE * SIDE, WORDS = 5, POINTS = 4, INPUTS = 3 };
enum { IMAGE, TEXT, TABLE };

static float images[ROWS][PIXELS], pixels_last[ROWS][PIXELS], table[ROWS][POINTS], targets[ROWS];
static int32_t words[ROWS][WORDS];
static const void *const arrays[INPUTS] = { pixels_last, words, table };
static const int sizes[INPUTS] = { PIXELS, WORDS, POINTS };
static cek_engine *engine;
static cek_device **devices;
static size_t device_count;

/* Sixteenths of small whole numbers: sums of products with quarters are exact in floats. */
static void open_devices(const char *list)
{
    setenv("CEKERNELS_CPU_DEVICES", "3", 1);
    setenv("CEKERNELS_SIM_DEVICES", "2", 1);
    assert_ok(cek_engine_create(NULL, &engine));
    assert_ok(cek_engine_select(engine, list, CEK_PROFILE_TRAINING, &devices, &device_count));
    for (int n = 0; n < ROWS; n++) {
        targets[n] = (float)(n * 5 % 7) / 4;
        for (int i = 0; i < PIXELS; i++) {
            images[n][i] = (float)((n * PIXELS + i) * 7 % 23) / 16;
            pixels_last[n][i % (SIDE * SIDE) * CHANNELS + i / (SIDE * SIDE)] = images[n][i];
        }
        for (int i = 0; i < WORDS; i++)
            words[n][i] = (n * WORDS + i) * 3 % 17;
        for (int i = 0; i < POINTS; i++)
            table[n][i] = (float)((n * POINTS + i) * 5 % 19) / 16;
    }
}

static void close_devices(void)
{
    free(devices);
    cek_engine_free(engine);
}

static double value(int input, int n, int i)
{
    return input == IMAGE ? (double)images[n][i] : input == TEXT ? words[n][i] : (double)table[n][i];
}

static double weight(int input, int i)
{
    return (double)((i + input) % 5 - 2) / 4;
}

/* w * x of input `input`, and the sum of that over a sample: [N,1]. */
static int dot(cek_model *m, int input, int x, const char *name)
{
    const int64_t count = sizes[input];
    const cek_parameter_options o = { .size = sizeof o, .rank = 1, .shape = &count };
    int64_t shape[CEK_RANK_MAX];
    int rank = cek_model_shape(m, x, shape), y;

    shape[0] = 1;
    y = cek_part_reshape(m, cek_part_parameter(m, "", &o), rank, shape);
    assert_ok(cek_model_name(m, name));
    y = cek_part_apply(m, CEK_PW_MUL, x, y);
    y = cek_part_reduce(m, y, CEK_REDUCE_SUM, (1u << rank) - 2, false);
    return cek_part_reshape(m, y, 2, (int64_t[]){ CEK_SAMPLES, 1 });
}

/* The loss is the square of what the sums of all inputs are together, less the target. */
static cek_model *model_make(void)
{
    cek_model *m;
    int x[INPUTS], y, d;

    assert_ok(cek_model_create(0, NULL, &m));
    x[IMAGE] = cek_part_input(m, "image", CEK_F32, 3, (int64_t[]){ CHANNELS, SIDE, SIDE });
    x[TEXT] = cek_part_input(m, "text", CEK_I32, 1, (int64_t[]){ WORDS });
    y = dot(m, IMAGE, x[IMAGE], "picture");
    x[TABLE] = cek_part_input(m, "table", CEK_F32, 1, (int64_t[]){ POINTS }); /* whenever it is wanted */
    y = cek_part_apply(m, CEK_PW_ADD, y, dot(m, TEXT, cek_part_cast(m, x[TEXT], CEK_DTYPE_NONE), "sentence"));
    assert_ok(cek_model_enter(m, "all"));
    d = dot(m, TABLE, x[TABLE], "row");
    assert_ok(cek_model_name(m, "sum"));
    y = cek_part_apply(m, CEK_PW_ADD, y, d);
    assert_ok(cek_model_leave(m));
    d = cek_part_reshape(m, cek_part_target(m, CEK_F32, 0, NULL), 2, (int64_t[]){ CEK_SAMPLES, 1 });
    d = cek_part_apply(m, CEK_PW_SUB, y, d);
    ck_assert_int_ge(cek_part_loss(m, cek_part_apply(m, CEK_PW_MUL, d, d), -1), 0);
    assert_ok(cek_model_set_output(m, y));
    assert_ok(cek_model_status(m));
    ck_assert_uint_eq(cek_model_parameter_count(m), INPUTS);
    for (size_t p = 0; p < INPUTS; p++) {
        cek_parameter w;

        assert_ok(cek_model_parameter(m, p, &w));
        for (int i = 0; i < sizes[p]; i++)
            w.data[i] = (float)weight((int)p, i);
    }
    return m;
}

static double sum_of(int n)
{
    double sum = 0;

    for (int input = 0; input < INPUTS; input++)
        for (int i = 0; i < sizes[input]; i++)
            sum += value(input, n, i) * weight(input, i);
    return sum;
}

static double oracle(int rows, double gradient[INPUTS][PIXELS])
{
    double loss = 0;

    memset(gradient, 0, INPUTS * sizeof *gradient);
    for (int n = 0; n < rows; n++) {
        double d = sum_of(n) - (double)targets[n];

        loss += d * d / rows;
        for (int input = 0; input < INPUTS; input++)
            for (int i = 0; i < sizes[input]; i++)
                gradient[input][i] += 2 * d * value(input, n, i) / rows;
    }
    return loss;
}

static cek_batch batch_of(int64_t rows)
{
    return (cek_batch){ .size = sizeof(cek_batch),
                        .count = rows,
                        .input_type = CEK_F32,
                        .arrays = arrays,
                        .array_count = INPUTS,
                        .targets = targets,
                        .target_columns = 1 };
}

static cek_trainer *trainer_of(cek_model *m, cek_dtype type, uint64_t memory_limit)
{
    const double weights[] = { 1, 3, 2 };
    const cek_optimizer sgd = { .size = sizeof sgd, .algorithm = CEK_OPTIMIZER_SGD, .lr = 1e-30 };
    cek_trainer_options o = {
        .size = sizeof o, .batch = ROWS, .type = type, .optimizer = &sgd, .memory_limit = memory_limit
    };
    cek_trainer *t;

    if (device_count > 1)
        o.shares = CEK_SHARES_GIVEN, o.share_weights = weights;
    assert_ok(cek_trainer_create(m, devices, device_count, &o, &t));
    return t;
}

static void trains(const char *list, cek_dtype type, uint64_t memory_limit)
{
    /* 1/n is rounded, and each product with it; sums of up to ROWS of those */
    const double bound = (ROWS + 3) * (type == CEK_F64 ? 0x1p-52 : 0x1p-23);
    cek_model *m;
    cek_trainer *t;

    open_devices(list);
    m = model_make();
    t = trainer_of(m, type, memory_limit);
    if (memory_limit)
        ck_assert_int_lt(cek_trainer_micro_batch(t, 0), ROWS / 2);
    for (int rows = ROWS; rows > ROWS - 9; rows -= 2) {
        cek_batch b = batch_of(rows);
        cek_step_result r = { .size = sizeof r };
        double want[INPUTS][PIXELS], got[PIXELS], loss = oracle(rows, want);

        if (rows % 4 == 1) {
            assert_ok(cek_trainer_step(t, &b, &r));
        } else { /* whose samples are copied */
            assert_ok(cek_trainer_submit(t, &b));
            assert_ok(cek_trainer_collect(t, &r));
        }
        ck_assert_msg(fabs(r.loss - loss) <= bound * loss, "%s: %.17g, %.17g", list, r.loss, loss);
        for (int p = 0; p < INPUTS; p++) {
            double most = 0;

            assert_ok(cek_trainer_read_gradient(t, (size_t)p, got, sizes[p]));
            for (int n = 0; n < rows; n++)
                most += fabs(sum_of(n) - (double)targets[n]) * 2 * 17 / rows;
            for (int i = 0; i < sizes[p]; i++)
                ck_assert_msg(fabs(got[i] - want[p][i]) <= bound * most, "%s, %d[%d]: %.17g, %.17g", list, p, i, got[i],
                              want[p][i]);
        }
    }
    cek_trainer_free(t);
    cek_model_free(m);
    close_devices();
}

START_TEST(each_input_is_read_from_its_array)
{
    trains("reference:0", CEK_F64, 0);
    trains("cpu:0", CEK_F32, 0);
    trains("cpu:0,cpu:1,cpu:2", CEK_F32, 0);
    trains("sim:0,cpu:0,sim:1", CEK_F32, 0);
}
END_TEST

/* ---- nodes by name ---- */

START_TEST(any_node_is_predicted_by_its_name)
{
    const char *const names[] = { "all.sum", "text", "picture", "image", "sentence", "all.row" };
    enum { OUTPUTS = sizeof names / sizeof *names };
    static float got[OUTPUTS][ROWS * PIXELS], alone[ROWS];
    float *const outputs[OUTPUTS] = { got[0], got[1], got[2], got[3], got[4], got[5] };
    cek_predictor_options o = { .size = sizeof o, .batch = 5, .output_count = OUTPUTS, .outputs = names };
    const char *const lists[] = { "reference:0", "cpu:0,cpu:1", "sim:0,cpu:0,sim:1" };

    for (int k = 0; k < 3; k++) {
        cek_predictor *predictor, *plain;
        cek_model *m;
        int64_t shape[CEK_RANK_MAX];

        open_devices(lists[k]);
        m = model_make();
        assert_ok(cek_predictor_create(m, devices, device_count, &o, &predictor));
        assert_ok(cek_predictor_create(m, devices, device_count, NULL, &plain));
        cek_model_free(m);
        ck_assert_uint_eq(cek_predictor_output_count(predictor), OUTPUTS);
        ck_assert_uint_eq(cek_predictor_output_count(plain), 1);
        ck_assert_int_eq(cek_predictor_output_shape(predictor, 2, shape), 3);
        ck_assert(shape[0] == CHANNELS && shape[1] == SIDE && shape[2] == SIDE);
        ck_assert_int_eq(cek_predictor_output_shape(predictor, OUTPUTS, shape), 0);
        assert_ok(cek_predictor_run_arrays(predictor, arrays, ROWS, outputs));
        assert_ok(cek_predictor_run_arrays(plain, arrays, ROWS, (float *const[]){ alone }));
        for (int n = 0; n < ROWS; n++) {
            ck_assert((double)got[0][n] == sum_of(n) && alone[n] == got[0][n]);
            for (int i = 0; i < WORDS; i++)
                ck_assert((double)got[1][n * WORDS + i] == words[n][i] &&
                          (double)got[4][n * WORDS + i] == words[n][i] * weight(TEXT, i));
            for (int i = 0; i < PIXELS; i++)
                ck_assert((double)got[2][n * PIXELS + i] == (double)images[n][i] * weight(IMAGE, i) &&
                          got[3][n * PIXELS + i] == images[n][i]);
            for (int i = 0; i < POINTS; i++)
                ck_assert((double)got[5][n * POINTS + i] == (double)table[n][i] * weight(TABLE, i));
        }
        cek_predictor_free(predictor);
        cek_predictor_free(plain);
        close_devices();
    }
}
END_TEST

START_TEST(more_outputs_than_a_part_takes)
{
    enum { MANY = 20, CALLED = 16 };
    char text[MANY][CALLED];
    const char *names[MANY];
    float got[MANY][2], *outputs[MANY];
    const float x[2] = { 3, 5 };
    cek_predictor_options o = { .size = sizeof o, .output_count = MANY, .outputs = names };
    cek_predictor *predictor;
    cek_model *m;

    open_devices("cpu:0");
    assert_ok(cek_model_create(1, (int64_t[]){ 1 }, &m));
    for (int i = 0; i < MANY; i++) {
        snprintf(text[i], CALLED, "n%d", i);
        names[i] = text[i];
        outputs[i] = got[i];
        assert_ok(cek_model_name(m, names[i]));
        cek_part_scale(m, 0, i, 1);
    }
    assert_ok(cek_predictor_create(m, devices, 1, &o, &predictor));
    assert_ok(cek_predictor_run_arrays(predictor, (const void *const[]){ x }, 2, outputs));
    for (int i = 0; i < MANY; i++)
        ck_assert((double)got[i][0] == 3 * i + 1 && (double)got[i][1] == 5 * i + 1);
    cek_predictor_free(predictor);
    cek_model_free(m);
    close_devices();
}
END_TEST

/* ---- refusals ---- */

START_TEST(batches_without_all_inputs_are_refused)
{
    cek_array_options a = { .size = sizeof a,
                            .input_type = CEK_F32,
                            .count = ROWS,
                            .rank = 1,
                            .shape = { POINTS },
                            .inputs = table,
                            .values = targets,
                            .columns = 1 };
    cek_metrics metrics = { .size = sizeof metrics };
    float got[ROWS];
    cek_predictor *predictor;
    cek_dataset *set;
    cek_trainer *t;
    cek_model *m;
    cek_batch b;

    open_devices("cpu:0");
    m = model_make();
    t = trainer_of(m, CEK_F32, 0);
    b = batch_of(2), b.array_count = 2;
    assert_fails(cek_trainer_step(t, &b, NULL), CEK_INVALID, "2 inputs", "has 3");
    b = batch_of(2), b.arrays = NULL, b.inputs = table;
    assert_fails(cek_trainer_step(t, &b, NULL), CEK_INVALID, "1 inputs", "has 3");
    b = batch_of(2), b.arrays = (const void *const[]){ images, NULL, table };
    assert_fails(cek_trainer_step(t, &b, NULL), CEK_INVALID, "without inputs", "array 1");
    b = batch_of(2), b.input_type = CEK_U8;
    assert_fails(cek_trainer_step(t, &b, NULL), CEK_INVALID, "type u8", "f32");
    assert_ok(cek_dataset_arrays(&a, &set));
    assert_fails(cek_trainer_evaluate(t, set, &metrics), CEK_INVALID, "3 inputs", "data set");
    assert_ok(cek_predictor_create(m, devices, 1, NULL, &predictor));
    assert_fails(cek_predictor_run_dataset(predictor, set, got), CEK_INVALID, "3 inputs", "data set");
    assert_fails(cek_predictor_run(predictor, images, ROWS, got), CEK_INVALID, "3 inputs", "have one");
    assert_fails(cek_predictor_run_arrays(predictor, (const void *const[]){ images, words, NULL }, 1,
                                          (float *const[]){ got }),
                 CEK_INVALID, "inputs[2]", "NULL");
    assert_fails(cek_predictor_run_arrays(predictor, arrays, 1, (float *const[]){ NULL }), CEK_INVALID, "outputs[0]",
                 "NULL");
    cek_predictor_free(predictor);
    cek_dataset_free(set);
    cek_trainer_free(t);
    cek_model_free(m);
    close_devices();
}
END_TEST

START_TEST(outputs_that_cannot_be_read_are_refused)
{
    const char *const names[] = { "all.sum", "nothing" };
    cek_predictor_options o = { .size = sizeof o, .output_count = 2, .outputs = names };
    float got[ROWS];
    cek_predictor *predictor;
    cek_model *m;

    open_devices("cpu:0");
    m = model_make();
    assert_fails(cek_predictor_create(m, devices, 1, &o, &predictor), CEK_NOT_FOUND, "no node", "\"nothing\"");
    o.output_count = 0;
    assert_fails(cek_predictor_create(m, devices, 1, &o, &predictor), CEK_INVALID, "0 names", "outputs");
    o.output_count = CEK_OUTPUTS_MOST + 1;
    assert_fails(cek_predictor_create(m, devices, 1, &o, &predictor), CEK_INVALID, "65 names", "outputs");
    o.output_count = 1;
    o.softmax = true;
    assert_fails(cek_predictor_create(m, devices, 1, &o, &predictor), CEK_INVALID, "softmax", "model's output");
    o.softmax = false;
    o.outputs = (const char *const[]){ "0" }; /* the first parameter */
    assert_fails(cek_predictor_create(m, devices, 1, &o, &predictor), CEK_INVALID, "parameter", "for each sample");
    o.outputs = (const char *const[]){ "all.sum", "text" };
    o.output_count = 2;
    assert_ok(cek_predictor_create(m, devices, 1, &o, &predictor));
    assert_fails(cek_predictor_run(predictor, images, 1, got), CEK_INVALID, "3 inputs", "have one");
    cek_predictor_free(predictor);
    cek_model_free(m);
    assert_ok(cek_model_parse("linear:2 relu", 1, (int64_t[]){ 3 }, &m));
    o.outputs = (const char *const[]){ "0", "1" };
    assert_ok(cek_predictor_create(m, devices, 1, &o, &predictor));
    assert_fails(cek_predictor_run(predictor, images, 1, got), CEK_INVALID, "2 outputs", "run_arrays");
    cek_predictor_free(predictor);
    cek_model_free(m);
    close_devices();
}
END_TEST

START_TEST(an_input_has_a_name_of_its_own)
{
    for (int i = 0; i < 2; i++) {
        cek_model *m;
        int n = 0;

        assert_ok(cek_model_create(0, NULL, &m));
        for (int k = 0; k <= CEK_INPUTS_MOST && n >= 0; k++) {
            char name[2] = { (char)('a' + (i == 0 ? 0 : k)), 0 };

            n = cek_part_input(m, name, CEK_F32, 1, (int64_t[]){ 1 });
        }
        ck_assert_int_eq(n, -1);
        assert_fails(cek_model_status(m), CEK_INVALID, i == 0 ? "\"a\"" : "8 inputs", "already");
        cek_model_free(m);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("several");
    TCase *tcase = tcase_create("several");

    tcase_add_test(tcase, each_input_is_read_from_its_array);
    tcase_add_test(tcase, any_node_is_predicted_by_its_name);
    tcase_add_test(tcase, more_outputs_than_a_part_takes);
    tcase_add_test(tcase, batches_without_all_inputs_are_refused);
    tcase_add_test(tcase, outputs_that_cannot_be_read_are_refused);
    tcase_add_test(tcase, an_input_has_a_name_of_its_own);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
