/* onnx_export.c - tests of writing ONNX files: what is written is read again as the same network, at any batch. What
 * ONNX Runtime makes of such files is told by scripts/compare-onnx --export. */
#include <math.h>

#include "cekernels/parts.h"
#include "core/base/fault.h"
#include "scratch.h"

enum { SAMPLES = 5, BATCH = 2 /* at a time */ };

static cek_engine *engine;
static cek_device **devices;

static void set_up(void)
{
    size_t count;

    scratch_make();
    assert_ok(cek_engine_create(NULL, &engine));
    assert_ok(cek_engine_select(engine, "cpu:0", CEK_PROFILE_INFERENCE, &devices, &count));
}

static void tear_down(void)
{
    free(devices);
    cek_engine_free(engine);
    scratch_remove();
}

/* ---- networks ---- */

static cek_model *words(const char *text, int rank, const int64_t *shape)
{
    cek_model *model;

    assert_ok(cek_model_parse(text, rank, shape, &model));
    return model;
}

#define SHAPE(...)                                                           \
    (int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), (int64_t[]) \
    {                                                                        \
        __VA_ARGS__                                                          \
    }

static cek_model *of_input(int rank, const int64_t *shape)
{
    cek_model *model;

    assert_ok(cek_model_create(rank, shape, &model));
    return model;
}

static cek_model *mnist_cnn(void)
{
    return words("mnist-cnn", 0, NULL);
}
static cek_model *lenet5(void)
{
    return words("lenet5", 0, NULL);
}
static cek_model *boston_mlp(void)
{
    return words("boston-mlp", 0, NULL);
}
static cek_model *resnet18(void)
{
    return words("resnet18:10", SHAPE(3, 32, 32));
}
static cek_model *mobilenetv2(void)
{
    return words("mobilenetv2:10", SHAPE(3, 32, 32));
}
static cek_model *gpt(void)
{
    return words("gpt:1", 0, NULL);
}
static cek_model *every_word(void)
{
    return words(
        "conv:6,3,p1,s2,g3,d1 batchnorm gelu avgpool:2,s1,p1 tanh conv:4,2 sigmoid gap flatten dropout:0.5 linear:3",
        SHAPE(3, 9, 8));
}

static cek_model *windows(void)
{
    cek_model *m = of_input(SHAPE(3, 7, 6));
    const cek_conv_layer up = {
        .size = sizeof up, .out_channels = 4, .kernel = { 3, 2 }, .stride = { 2, 3 }, .pad_lo = { 1 }
    };
    const cek_pool_layer pool = {
        .size = sizeof pool, .mode = CEK_POOL_MAX, .kernel = { 3, 2 }, .stride = { 2, 2 }, .ceil = true
    };
    int node;

    assert_ok(cek_model_conv_transposed(m, 0, &up, &node));
    assert_ok(cek_model_pool(m, node, &pool, &node));
    assert_ok(cek_model_pool_to(m, node, CEK_POOL_AVERAGE, (int64_t[]){ 3, 2 }, &node));
    return m;
}

static cek_model *lstm(void)
{
    cek_model *m = of_input(SHAPE(4, 3));
    const cek_recurrent_layer layer = { .size = sizeof layer, .hidden = 5, .layers = 2, .bidirectional = true };
    int node;

    assert_ok(cek_model_lstm(m, 0, &layer, &node));
    assert_ok(cek_model_gru(m, node, &layer, &node));
    return m;
}

static cek_model *attention(void)
{
    cek_model *m = of_input(SHAPE(6, 8));
    const cek_attention_layer layer = { .size = sizeof layer, .heads = 2, .causal = true };
    const cek_norm_layer norm = { .size = sizeof norm };
    int node;

    assert_ok(cek_model_attention(m, 0, 0, 0, -1, &layer, &node));
    assert_ok(cek_model_layer_norm(m, node, &norm, &node));
    assert_ok(cek_model_log_softmax(m, node, 1, &node));
    return m;
}

/* Instructions that no layer above has, over values around 0 and above it. */
static cek_model *instructions(void)
{
    static const uint32_t ones[] = { CEK_PW_EXP, CEK_PW_ERF, CEK_PW_EXPM1, CEK_PW_FLOOR, CEK_PW_SIGN,
                                     CEK_PW_SIN, CEK_PW_COS, CEK_PW_NEG,   CEK_PW_ABS };
    cek_model *m = of_input(SHAPE(6));
    int all = 0, above = cek_part_scale(m, cek_part_apply(m, CEK_PW_ABS, 0, -1), 1, 0.5), less, y;

    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++)
        all = cek_part_apply(m, CEK_PW_ADD, all, cek_part_apply(m, ones[i], 0, -1));
    y = cek_part_apply(m, CEK_PW_DIV, cek_part_apply(m, CEK_PW_SQRT, above, -1),
                       cek_part_apply(m, CEK_PW_LOG1P, above, -1));
    y = cek_part_apply(m, CEK_PW_SUB, y, cek_part_apply(m, CEK_PW_POW, above, cek_part_constant(m, 1.5)));
    y = cek_part_apply(m, CEK_PW_MIN, y, cek_part_apply(m, CEK_PW_LOG, above, -1));
    y = cek_part_apply(m, CEK_PW_MAX, y, all);
    less = cek_part_apply(m, CEK_PW_LESS, 0, above);
    less = cek_part_apply(m, CEK_PW_ADD, less, cek_part_apply(m, CEK_PW_EQUAL, 0, above));
    cek_part_chain(m, 3, (int[]){ less, y, all }, 1,
                   &(cek_pointwise_instruction){ .code = CEK_PW_SELECT, .b = 1, .c = 2 });
    return m;
}

static cek_model *axes(void)
{
    static const float table[3][2] = { { 1, 2 }, { 3, -INFINITY }, { 5, 6 } };
    cek_model *m = of_input(SHAPE(4, 6));
    int a = cek_part_permute(m, 0, (int[]){ 0, 2, 1 }), b, words;

    a = cek_part_pad(m, a, (int64_t[]){ 0, 1, -1 }, (int64_t[]){ 0, 0, 2 }, 0.25); /* [N,7,5] */
    b = cek_part_slice(m, a, 1, 2, 3);                                             /* [N,3,5] */
    a = cek_part_concat(m, 2, (int[]){ a, b }, 1);                                 /* [N,10,5] */
    b = cek_part_reduce(m, a, CEK_REDUCE_MAX, 1 << 2, true);                       /* [N,10,1] */
    b = cek_part_expand(m, b, 3, (int64_t[]){ CEK_SAMPLES, 10, 5 });
    a = cek_part_apply(m, CEK_PW_SUB, a, b);
    b = cek_part_reduce(m, a, CEK_REDUCE_SUM_SQUARES, 1 << 1, false); /* [N,5] */
    b = cek_part_apply(m, CEK_PW_ADD, b, cek_part_reduce(m, a, CEK_REDUCE_MIN, 1 << 1, false));
    words = cek_part_arg(m, cek_part_slice(m, b, 1, 0, 3), CEK_ARG_MAX, 1); /* [N] */
    a = cek_part_gather(m, cek_part_array(m, 2, (int64_t[]){ 3, 2 }, *table), words, 0);
    a = cek_part_apply(m, CEK_PW_ADD, a, cek_part_random(m, 1, (int64_t[]){ 2 }, CEK_RANDOM_UNIFORM, 1, 2));
    a = cek_part_apply(m, CEK_PW_MUL, a, cek_part_array(m, 1, (int64_t[]){ 2 }, (float[]){ 3, -0.5f }));
    cek_part_concat(m, 2, (int[]){ cek_part_softmax(m, b, 1), a }, 1);
    return m;
}

/* Two inputs, one of them words; a parameter that is read twice and called as no value of the file may be. */
static cek_model *two_inputs(void)
{
    const cek_parameter_options o = { .size = sizeof o, .rank = 2, .shape = (int64_t[]){ 7, 3 }, .fan_in = 1 };
    cek_model *m;
    int table, x, words, rows;

    assert_ok(cek_model_create(0, NULL, &m));
    x = cek_part_input(m, "output", CEK_F32, 1, (int64_t[]){ 3 });
    words = cek_part_input(m, "words", CEK_I32, 1, (int64_t[]){ 2 });
    assert_ok(cek_model_name(m, "__0"));
    table = cek_part_parameter(m, "", &o);
    rows = cek_part_gather(m, table, words, 0); /* [N,2,3] */
    rows = cek_part_apply(m, CEK_PW_MUL, rows, cek_part_reshape(m, x, 3, (int64_t[]){ CEK_SAMPLES, 1, 3 }));
    cek_part_matmul(m, rows, table, true); /* [N,2,7] */
    return m;
}

/* Rows of each sample's own table; inputs called as values of the file are that nobody named. */
static cek_model *own_tables(void)
{
    cek_model *m;
    int x, words;

    assert_ok(cek_model_create(0, NULL, &m));
    x = cek_part_input(m, "_3", CEK_F32, 2, (int64_t[]){ 5, 3 });
    words = cek_part_input(m, "_1", CEK_I32, 1, (int64_t[]){ 2 });
    cek_part_scale(m, cek_part_gather(m, x, words, 1), 2, 1);
    return m;
}

static int batch_norm(cek_model *m, int node, bool no_affine)
{
    const cek_batch_norm_layer layer = { .size = sizeof layer, .no_affine = no_affine, .momentum = 0.25 };

    assert_ok(cek_model_batch_norm(m, node, &layer, &node));
    return node;
}

static cek_model *unweighted_norms(void)
{
    cek_model *m = of_input(SHAPE(3, 4));
    int node = batch_norm(m, 0, true);

    assert_ok(cek_model_flatten(m, node, &node));
    assert_ok(cek_model_linear(m, node, 2, true, &node));
    batch_norm(m, node, true);
    return m;
}

/* The instructions of a normalisation with other operands: (mean - x) / sqrt(variance + epsilon), the rest swapped. */
static cek_model *almost_normalised(void)
{
    static const cek_pointwise_instruction away[] = { { .code = CEK_PW_SUB, .a = 1, .b = 0 } },
                                           rest[] = { { .code = CEK_PW_ADD_IMM, .a = 1, .imm = 1.5 },
                                                      { .code = CEK_PW_SQRT, .a = 4 },
                                                      { .code = CEK_PW_DIV, .a = 0, .b = 5 },
                                                      { .code = CEK_PW_MUL, .a = 6, .b = 3 },
                                                      { .code = CEK_PW_ADD, .a = 7, .b = 2 } };
    const cek_parameter_options o = { .size = sizeof o, .rank = 1, .shape = (int64_t[]){ 3 }, .fan_in = 1 };
    cek_model *m = of_input(SHAPE(3, 4));
    int of[4], x;

    for (int i = 0; i < 4; i++)
        of[i] = cek_part_reshape(m, cek_part_parameter(m, (const char *[]){ "m", "v", "g", "b" }[i], &o), 2,
                                 (int64_t[]){ 3, 1 });
    x = cek_part_chain(m, 2, (int[]){ 0, of[0] }, 1, away);
    cek_part_chain(m, 4, (int[]){ x, of[1], of[2], of[3] }, 5, rest);
    return m;
}

static const struct {
    const char *name;
    cek_model *(*make)(void);
    double bound;  /* of the largest output */
    bool reshaped; /* weights that are read by other axes have become constants */
} nets[] = {
    /* Sums of a few thousand products, in orders that may differ: 2^-24 times a hundred layers' roundings */
    { "mnist-cnn", mnist_cnn, 1e-5, false },
    { "lenet5", lenet5, 1e-5, false },
    { "boston-mlp", boston_mlp, 1e-5, false },
    { "resnet18", resnet18, 1e-5, false },
    { "mobilenetv2", mobilenetv2, 1e-5, false },
    { "gpt", gpt, 1e-5, false },
    { "every word", every_word, 1e-5, false },
    { "windows", windows, 1e-5, false },
    { "lstm", lstm, 1e-5, false },
    { "attention", attention, 1e-5, false },
    { "instructions", instructions, 1e-5, false },
    { "axes", axes, 1e-5, false },
    { "two inputs", two_inputs, 1e-5, false },
    { "own tables", own_tables, 1e-5, false },
    { "unweighted norms", unweighted_norms, 1e-5, false },
    { "almost normalised", almost_normalised, 1e-5, true },
};

/* ---- the same again ---- */

/* Numbers that follow from their places: data from -1 to 1, words below 7. */
static void *samples_make(const cek_model *model, size_t index)
{
    cek_input input = { .size = sizeof input };
    int64_t count = SAMPLES;
    uint32_t *values, state = (uint32_t)index + 1;

    assert_ok(cek_model_input(model, index, &input));
    for (int i = 0; i < input.rank; i++)
        count *= input.shape[i];
    values = malloc((size_t)count * sizeof *values);
    ck_assert_ptr_nonnull(values);
    for (int64_t i = 0; i < count; i++) {
        const float value = (float)((state = state * 1664525u + 1013904223u) >> 8) * 0x1p-23f - 1;

        values[i] = state >> 8 & 3;
        if (input.type == CEK_F32)
            memcpy(&values[i], &value, sizeof value);
    }
    return values;
}

static float *outputs_of(const cek_model *model, const void *const *inputs, int64_t *count)
{
    const cek_predictor_options options = { .size = sizeof options, .batch = BATCH, .math = CEK_MATH_STRICT };
    int64_t shape[CEK_RANK_MAX];
    const int rank = cek_model_output_shape(model, shape);
    cek_predictor *predictor;
    float *outputs;

    *count = SAMPLES;
    for (int i = 0; i < rank; i++)
        *count *= shape[i];
    outputs = calloc((size_t)*count, sizeof *outputs);
    ck_assert_ptr_nonnull(outputs);
    assert_ok(cek_predictor_create(model, devices, 1, &options, &predictor));
    assert_ok(cek_predictor_run_arrays(predictor, inputs, SAMPLES, &outputs));
    cek_predictor_free(predictor);
    return outputs;
}

/* Running statistics as of data that are neither centred nor of variance 1. */
static void statistics_set(cek_model *model)
{
    for (size_t i = 0; i < cek_model_buffer_count(model); i++) {
        cek_parameter b;

        assert_ok(cek_model_buffer(model, i, &b));
        for (int64_t k = 0; k < b.count; k++)
            b.data[k] += 0.1f * (float)(k % 5);
    }
}

/* Under their names; a single number may have become a constant, and none is lost else. */
static void parameters_compare(const cek_model *model, const cek_model *again)
{
    for (size_t i = 0; i < cek_model_parameter_count(model); i++) {
        cek_parameter p, q;
        size_t at;

        assert_ok(cek_model_parameter(model, i, &p));
        if (p.count == 1)
            continue;
        ck_assert_msg(cek_model_find_parameter(again, p.name, &at) == CEK_OK, "%s is lost", p.name);
        assert_ok(cek_model_parameter(again, at, &q));
        ck_assert_int_eq(p.count, q.count);
        ck_assert_mem_eq(p.data, q.data, (size_t)p.count * sizeof *p.data);
    }
    ck_assert_uint_le(cek_model_parameter_count(again), cek_model_parameter_count(model));
}

START_TEST(what_is_written_is_read_again)
{
    cek_model *model = nets[_i].make(), *again;
    const char *path = scratch_path("net.onnx");
    void *inputs[CEK_INPUTS_MOST];
    float *before, *after;
    int64_t count, more;
    double largest = 0;

    assert_ok(cek_model_status(model));
    cek_model_init(model, 1);
    statistics_set(model);
    assert_ok(cek_model_write_onnx(model, path, NULL));
    assert_ok(cek_model_read_onnx(path, NULL, &again));
    if (!nets[_i].reshaped)
        parameters_compare(model, again);
    ck_assert_uint_eq(cek_model_input_count(again), cek_model_input_count(model));
    for (size_t i = 0; i < cek_model_input_count(model); i++)
        inputs[i] = samples_make(model, i);
    before = outputs_of(model, (const void *const *)inputs, &count);
    after = outputs_of(again, (const void *const *)inputs, &more);
    ck_assert_int_eq(count, more);
    for (int64_t i = 0; i < count; i++)
        largest = isfinite(before[i]) ? fmax(largest, fabs((double)before[i])) : largest;
    ck_assert_double_gt(largest, 0);
    for (int64_t i = 0; i < count; i++)
        ck_assert_msg(before[i] == after[i] || fabs((double)before[i] - (double)after[i]) <= nets[_i].bound * largest,
                      "%s: output %lld is %g, then %g; the largest %g", nets[_i].name, (long long)i, (double)before[i],
                      (double)after[i], largest);
    for (size_t i = 0; i < cek_model_input_count(model); i++)
        free(inputs[i]);
    free(before);
    free(after);
    cek_model_free(again);
    cek_model_free(model);
}
END_TEST

/* The first step over these samples, towards zeros. */
static void step_make(cek_model *model, const void *inputs)
{
    const cek_optimizer sgd = { .size = sizeof sgd, .algorithm = CEK_OPTIMIZER_SGD, .lr = 0.01 };
    const cek_trainer_options options = { .size = sizeof options, .loss = CEK_LOSS_MSE, .optimizer = &sgd };
    const float targets[SAMPLES][2] = { 0 };
    const cek_batch batch = { .size = sizeof batch,
                              .input_type = CEK_F32,
                              .count = SAMPLES,
                              .inputs = inputs,
                              .targets = targets,
                              .target_columns = 2 };
    cek_trainer *trainer;

    assert_ok(cek_trainer_create(model, devices, 1, &options, &trainer));
    assert_ok(cek_trainer_step(trainer, &batch, NULL));
    assert_ok(cek_trainer_pull(trainer));
    cek_trainer_free(trainer);
}

typedef cek_status tensor_get(const cek_model *model, size_t index, cek_parameter *out);

/* All that the one has are in the other, with the same numbers but for a few roundings. */
static void numbers_compare(const cek_model *model, const cek_model *again, size_t count, tensor_get *get)
{
    cek_parameter p, q;

    for (size_t i = 0; i < count; i++) {
        assert_ok(get(model, i, &p));
        for (size_t k = 0; k == 0 || strcmp(p.name, q.name) != 0; k++)
            assert_ok(get(again, k, &q));
        ck_assert_int_eq(p.count, q.count);
        for (int64_t k = 0; k < p.count; k++)
            ck_assert_msg(fabsf(p.data[k] - q.data[k]) <= 1e-5f, "%s: %g and %g", p.name, (double)p.data[k],
                          (double)q.data[k]);
    }
}

/* By the statistics of its batches, which move the running ones, with weights and without; read twice, too. */
START_TEST(a_batch_norm_is_trained_on_as_one)
{
    const char *path = scratch_path("net.onnx");
    cek_model *model = of_input(SHAPE(3, 4)), *again[2];
    void *inputs;
    int node = batch_norm(model, 0, _i);

    assert_ok(cek_model_flatten(model, node, &node));
    assert_ok(cek_model_linear(model, node, 2, true, NULL));
    cek_model_init(model, 1);
    for (int k = 0; k < 2; k++) {
        assert_ok(cek_model_write_onnx(k ? again[0] : model, path, NULL));
        assert_ok(cek_model_read_onnx(path, NULL, &again[k]));
    }
    inputs = samples_make(model, 0);
    step_make(model, inputs);
    for (int k = 0; k < 2; k++) {
        step_make(again[k], inputs);
        ck_assert_uint_eq(cek_model_parameter_count(again[k]), cek_model_parameter_count(model));
        numbers_compare(model, again[k], cek_model_parameter_count(model), cek_model_parameter);
        numbers_compare(model, again[k], cek_model_buffer_count(model), cek_model_buffer);
        cek_model_free(again[k]);
    }
    free(inputs);
    cek_model_free(model);
}
END_TEST

START_TEST(the_scale_of_the_input_is_in_the_file)
{
    static const float x[2] = { 3, 5 };
    cek_model *model = words("linear:1", SHAPE(2)), *again;
    const char *path = scratch_path("net.onnx");
    const void *inputs[1] = { (float[2 * SAMPLES]){ x[0], x[1] } };
    cek_parameter p;
    int64_t count;
    float *y;

    cek_model_set_input_scale(model, 0.5, -1);
    assert_ok(cek_model_parameter(model, 0, &p));
    p.data[0] = 1;
    p.data[1] = 10;
    assert_ok(cek_model_write_onnx(
        model, path, &(cek_onnx_write_options){ .size = sizeof(cek_onnx_write_options), .batch = "rows" }));
    assert_ok(cek_model_read_onnx(path, NULL, &again));
    y = outputs_of(again, inputs, &count);
    ck_assert_double_eq((double)y[0], (3 * 0.5 - 1) + 10 * (5 * 0.5 - 1));
    free(y);
    cek_model_free(again);
    cek_model_free(model);
}
END_TEST

START_TEST(what_cannot_be_written_is_named)
{
    cek_model *model;
    int target;

    assert_ok(cek_model_create(0, NULL, &model));
    assert_fails(cek_model_write_onnx(model, scratch_path("net.onnx"), NULL), CEK_INVALID, "a model", "without inputs");
    cek_model_free(model);
    model = of_input(SHAPE(3));
    assert_fails(cek_model_write_onnx(model, scratch_path("net.onnx"), NULL), CEK_INVALID, "a model", "without layers");
    ck_assert_int_eq(cek_part_permute(model, cek_part_scale(model, 0, 2, 0), (int[]){ 0, 7 }), -1);
    assert_fails(cek_model_write_onnx(model, scratch_path("net.onnx"), NULL), CEK_INVALID, "permute", "7");
    cek_model_free(model);
    model = of_input(SHAPE(3));
    target = cek_part_target(model, CEK_F32, 1, (int64_t[]){ 3 });
    ck_assert_int_ge(target, 0);
    assert_ok(cek_model_name(model, "off"));
    assert_ok(cek_model_set_output(model, cek_part_apply(model, CEK_PW_SUB, 0, target)));
    assert_fails(cek_model_write_onnx(model, scratch_path("net.onnx"), NULL), CEK_UNSUPPORTED, "nothing for its target",
                 "training alone");
    ck_assert_int_eq(scratch_count(), 0);
    cek_model_free(model);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    cek_model *model = every_word();
    const char *path = scratch_path("net.onnx");
    cek_status st = CEK_OUT_OF_MEMORY;
    long n = 1;

    for (; st != CEK_OK; n++) {
        cek__fault_set(CEK__FAULT_ALLOC, n);
        st = cek_model_write_onnx(model, path, NULL);
        ck_assert_msg(st == CEK_OK || st == CEK_OUT_OF_MEMORY, "%s", cek_error_text());
        ck_assert_int_eq(scratch_count(), st == CEK_OK);
    }
    ck_assert_int_gt(n, 10);
    cek__fault_set(CEK__FAULT_ALLOC, 0);
    cek_model_free(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("onnx_export");
    TCase *all = tcase_create("all");

    tcase_add_checked_fixture(all, set_up, tear_down);
    tcase_add_loop_test(all, what_is_written_is_read_again, 0, (int)(sizeof nets / sizeof *nets));
    tcase_add_loop_test(all, a_batch_norm_is_trained_on_as_one, 0, 2);
    tcase_add_test(all, the_scale_of_the_input_is_in_the_file);
    tcase_add_test(all, what_cannot_be_written_is_named);
    tcase_add_test(all, every_allocation_may_fail);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
