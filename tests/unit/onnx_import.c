/* onnx_import.c - tests of nn/onnx: what operators compute as parts, which weights become parameters, where the batch is, and what
 * is refused. ONNX's own cases are run by scripts/check-onnx-nodes. */
#include <math.h>

#include "cekernels/nn.h"
#include "core/base/fault.h"
#include "onnx_files.h"
#include "scratch.h"

#define NAMES(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define SHAPE(...) ((int64_t[]){ __VA_ARGS__ })
enum { FLOAT = 1, INT64 = 7, MOST = 24 };

static cek_engine *engine;
static cek_device **devices;

static void set_up(void)
{
    size_t count;

    scratch_make();
    assert_ok(cek_engine_create(NULL, &engine));
    assert_ok(cek_engine_select(engine, "reference", CEK_PROFILE_INFERENCE, &devices, &count));
}

static void tear_down(void)
{
    free(devices);
    cek_engine_free(engine);
    scratch_remove();
}

/* ---- files ---- */

static message floats_of(const char *name, int rank, const int64_t *shape, const float *values, int count)
{
    message m = tensor_of(name, FLOAT, rank, shape);

    put_bytes(&m, 9, values, (size_t)count * sizeof *values);
    return m;
}

static message list_of(const char *name, const int64_t *values, int64_t count)
{
    message m = tensor_of(name, INT64, 1, &count);

    put_bytes(&m, 9, values, (size_t)count * sizeof *values);
    return m;
}

static void put_number(message *node, const char *name, float value)
{
    message m = { .size = 0 };

    put_text(&m, 1, name);
    put_varint(&m, 2 << 3 | 5);
    memcpy(m.bytes + m.size, &value, sizeof value);
    m.size += sizeof value;
    put_integer(&m, 20, 1);
    put_message(node, 5, &m);
}

static void put_whole(message *node, const char *name, int64_t value)
{
    message m = { .size = 0 };

    put_text(&m, 1, name);
    put_integer(&m, 3, value);
    put_integer(&m, 20, 2);
    put_message(node, 5, &m);
}

static const char *written(const message *graph)
{
    message m = model_of(graph, 20);

    return scratch_write("net.onnx", m.bytes, m.size);
}

/* From x to y: values, and their shape. */
static void ends_put(message *graph, int rank, const int64_t *shape)
{
    message m = value_of("x", rank, shape);

    put_message(graph, 11, &m);
    m = value_of("y", 1, SHAPE(-1));
    put_message(graph, 12, &m);
}

static int64_t predicted(const message *graph, const void *inputs, int64_t samples, float *outputs)
{
    const cek_predictor_options options = { .size = sizeof options, .batch = samples };
    int64_t shape[CEK_RANK_MAX], count = samples;
    cek_predictor *predictor;
    cek_model *model;
    int rank;

    assert_ok(cek_model_read_onnx(written(graph), NULL, &model));
    rank = cek_model_output_shape(model, shape);
    for (int i = 0; i < rank; i++)
        count *= shape[i];
    ck_assert_int_le(count, MOST);
    assert_ok(cek_predictor_create(model, devices, 1, &options, &predictor));
    assert_ok(cek_predictor_run(predictor, inputs, samples, outputs));
    cek_predictor_free(predictor);
    cek_model_free(model);
    return count;
}

/* ---- element by element ---- */

static double relu(double x)
{
    return x > 0 ? x : 0;
}
static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}
static double elu(double x)
{
    return x > 0 ? x : 0.7 * expm1(x);
}
static double selu(double x)
{
    return 1.05070102214813232421875 * (x > 0 ? x : 0.7 * expm1(x));
}
static double celu(double x)
{
    return x > 0 ? x : 0.7 * expm1(x / 0.7);
}
static double leaky(double x)
{
    return x > 0 ? x : 0.7 * x;
}
static double thresholded(double x)
{
    return x > 0.7 ? x : 0;
}
static double hard_sigmoid(double x)
{
    return fmax(0, fmin(1, 0.7 * x + 0.5));
}
static double hard_swish(double x)
{
    return x * fmax(0, fmin(1, x / 6 + 0.5));
}
static double softplus(double x)
{
    return log1p(exp(x));
}
static double softsign(double x)
{
    return x / (1 + fabs(x));
}
static double mish(double x)
{
    return x * tanh(softplus(x));
}
static double swish(double x)
{
    return x * sigmoid(0.7 * x);
}
static double gelu(double x)
{
    return x * 0.5 * (1 + erf(x / sqrt(2)));
}
static double negative(double x)
{
    return -x;
}
static double reciprocal(double x)
{
    return 1 / x;
}
static double sign(double x)
{
    return (x > 0) - (x < 0);
}
static double identity(double x)
{
    return x;
}

static const struct {
    const char *op;
    double (*expected)(double x);
} functions[] = { { "Relu", relu },
                  { "Sigmoid", sigmoid },
                  { "Tanh", tanh },
                  { "Exp", exp },
                  { "Abs", fabs },
                  { "Neg", negative },
                  { "Floor", floor },
                  { "Ceil", ceil },
                  { "Round", rint },
                  { "Sign", sign },
                  { "Erf", erf },
                  { "Sin", sin },
                  { "Cos", cos },
                  { "Tan", tan },
                  { "Sinh", sinh },
                  { "Cosh", cosh },
                  { "Asinh", asinh },
                  { "Reciprocal", reciprocal },
                  { "Elu", elu },
                  { "Selu", selu },
                  { "Celu", celu },
                  { "LeakyRelu", leaky },
                  { "ThresholdedRelu", thresholded },
                  { "HardSigmoid", hard_sigmoid },
                  { "HardSwish", hard_swish },
                  { "Softplus", softplus },
                  { "Softsign", softsign },
                  { "Mish", mish },
                  { "Swish", swish },
                  { "Gelu", gelu },
                  { "Identity", identity },
                  { "Dropout", identity } };

/* Three samples of two numbers; alpha is 0.7 where there is one. 16 roundings of what is at most 8. */
START_TEST(an_operator_of_one_computes_its_function)
{
    static const float x[6] = { -2.5f, -1.5f, -0.25f, 0.5f, 0.75f, 2 };
    message g = { .size = 0 }, node = node_of(functions[_i].op, NAMES("x"), NAMES("y"));
    float y[MOST];

    put_number(&node, "alpha", 0.7f);
    put_message(&g, 1, &node);
    ends_put(&g, 2, SHAPE(0, 2));
    ck_assert_int_eq(predicted(&g, x, 3, y), 6);
    for (int i = 0; i < 6; i++)
        ck_assert_double_eq_tol((double)y[i], functions[_i].expected((double)x[i]), 16 * 8 * 0x1p-24);
}
END_TEST

/* ---- what moves, sums and multiplies ---- */

/* x counts from 0 on; lists are the inputs behind it. */
static const struct move {
    const char *op;
    int rank;
    int64_t shape[4]; /* 0: the batch */
    int64_t samples;
    struct {
        int64_t count, values[6];
    } list[4];
    struct {
        const char *name;
        int64_t value;
    } attribute[2];
    int count;
    double y[MOST];
} moves[] = {
    /* clang-format off */
    { "Reshape", 3, { 0, 2, 3 }, 2, { { 2, { -1, 6 } } }, { { 0 } }, 12, { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 } },
    { "Reshape", 3, { 2, 2, 3 }, 2, { { 2, { 2, 6 } } }, { { 0 } }, 12, { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 } },
    { "Flatten", 3, { 0, 2, 2 }, 2, { { 0 } }, { { 0 } }, 8, { 0, 1, 2, 3, 4, 5, 6, 7 } },
    { "Squeeze", 3, { 0, 1, 2 }, 2, { { 1, { 1 } } }, { { 0 } }, 4, { 0, 1, 2, 3 } },
    { "Unsqueeze", 2, { 0, 2 }, 2, { { 1, { 1 } } }, { { 0 } }, 4, { 0, 1, 2, 3 } },
    { "Expand", 2, { 0, 1 }, 2, { { 2, { 1, 3 } } }, { { 0 } }, 6, { 0, 0, 0, 1, 1, 1 } },
    { "Tile", 2, { 0, 2 }, 2, { { 2, { 1, 2 } } }, { { 0 } }, 8, { 0, 1, 0, 1, 2, 3, 2, 3 } },
    { "Slice", 2, { 0, 4 }, 2, { { 1, { 1 } }, { 1, { 3 } }, { 1, { 1 } } }, { { 0 } }, 4, { 1, 2, 5, 6 } },
    { "Slice", 2, { 0, 4 }, 2, { { 1, { -1 } }, { 1, { -9 } }, { 1, { 1 } }, { 1, { -2 } } }, { { 0 } }, 4, { 3, 1, 7, 5 } },
    { "Slice", 2, { 0, 5 }, 2, { { 1, { 0 } }, { 1, { 9 } }, { 1, { 1 } }, { 1, { 2 } } }, { { 0 } }, 6, { 0, 2, 4, 5, 7, 9 } },
    { "Gather", 2, { 0, 3 }, 2, { { 4, { 2, 0, 1, -1 } } }, { { "axis", 1 } }, 8, { 2, 0, 1, 2, 5, 3, 4, 5 } },
    { "Split", 2, { 0, 4 }, 2, { { 1, { 4 } } }, { { "axis", 1 } }, 8, { 0, 1, 2, 3, 4, 5, 6, 7 } },
    { "Pad", 2, { 0, 2 }, 2, { { 4, { 0, 1, 0, -1 } } }, { { 0 } }, 4, { 0, 0, 0, 2 } },
    { "DepthToSpace", 4, { 0, 4, 1, 1 }, 2, { { 0 } }, { { "blocksize", 2 } }, 8, { 0, 1, 2, 3, 4, 5, 6, 7 } },
    { "SpaceToDepth", 4, { 0, 1, 2, 2 }, 2, { { 0 } }, { { "blocksize", 2 } }, 8, { 0, 1, 2, 3, 4, 5, 6, 7 } },
    { "ReduceSum", 2, { 0, 3 }, 2, { { 1, { 1 } } }, { { 0 } }, 2, { 3, 12 } },
    { "ReduceMean", 2, { 0, 3 }, 2, { { 1, { -1 } } }, { { "keepdims", 0 } }, 2, { 1, 4 } },
    { "ReduceMax", 2, { 0, 3 }, 2, { { 1, { 1 } } }, { { 0 } }, 2, { 2, 5 } },
    { "ReduceL1", 2, { 0, 3 }, 2, { { 1, { 1 } } }, { { 0 } }, 2, { 3, 12 } },
    { "ReduceSumSquare", 2, { 0, 3 }, 2, { { 1, { 1 } } }, { { 0 } }, 2, { 5, 50 } },
    { "GlobalAveragePool", 4, { 0, 1, 2, 2 }, 2, { { 0 } }, { { 0 } }, 2, { 1.5, 5.5 } },
    { "GlobalMaxPool", 4, { 0, 1, 2, 2 }, 2, { { 0 } }, { { 0 } }, 2, { 3, 7 } },
    /* these mix samples: the whole batch is one */
    { "ReduceSum", 2, { 2, 3 }, 1, { { 1, { 0 } } }, { { 0 } }, 3, { 3, 5, 7 } },
    { "Gather", 2, { 3, 2 }, 1, { { 2, { 2, 0 } } }, { { 0 } }, 4, { 4, 5, 0, 1 } },
    { "Slice", 2, { 3, 2 }, 1, { { 1, { 1 } }, { 1, { 3 } } }, { { 0 } }, 4, { 2, 3, 4, 5 } },
    /* clang-format on */
};

START_TEST(an_operator_that_moves_or_sums_gives_what_onnx_says)
{
    const struct move *m = &moves[_i];
    const char *inputs[6] = { "x" }, *const names[] = { "a", "b", "c", "d" };
    message g = { .size = 0 }, node, part;
    float x[MOST], y[MOST];
    int given = 1;

    for (int i = 0; i < 4 && m->list[i].count; i++) {
        inputs[given++] = names[i];
        part = list_of(names[i], m->list[i].values, m->list[i].count);
        put_message(&g, 5, &part);
    }
    node = node_of(m->op, inputs, NAMES("y"));
    for (int i = 0; i < 2 && m->attribute[i].name; i++)
        put_whole(&node, m->attribute[i].name, m->attribute[i].value);
    put_message(&g, 1, &node);
    ends_put(&g, m->rank, m->shape);
    for (int i = 0; i < MOST; i++)
        x[i] = (float)i;
    ck_assert_int_eq(predicted(&g, x, m->samples, y), m->count);
    for (int i = 0; i < m->count; i++)
        ck_assert_double_eq((double)y[i], m->y[i]);
}
END_TEST

/* ---- a network ---- */

static const float weights[6] = { 1, 2, 3, 4, 5, 6 }, bias[2] = { 0.5f, -20 };

/* y = relu(x w + b) for samples of three numbers, then reshaped to what `sizes` says of a batch of two. */
static message network(const int64_t *batch, const int64_t *sizes, int64_t count)
{
    message g = { .size = 0 }, part;

    part = node_of("MatMul", NAMES("x", "layer.weight"), NAMES("p"));
    put_message(&g, 1, &part);
    part = node_of("Add", NAMES("p", "layer.bias"), NAMES("q"));
    put_message(&g, 1, &part);
    part = node_of("Relu", NAMES("q"), NAMES("r"));
    put_message(&g, 1, &part);
    part = node_of("Reshape", NAMES("r", "sizes"), NAMES("y"));
    put_message(&g, 1, &part);
    part = floats_of("layer.weight", 2, SHAPE(3, 2), weights, 6);
    put_message(&g, 5, &part);
    part = floats_of("layer.bias", 1, SHAPE(2), bias, 2);
    put_message(&g, 5, &part);
    part = list_of("sizes", sizes, count);
    put_message(&g, 5, &part);
    ends_put(&g, 2, batch);
    return g;
}

START_TEST(weights_are_parameters_under_their_names)
{
    message g = network(SHAPE(0, 3), SHAPE(-1, 2), 2);
    cek_parameter p;
    cek_model *model;
    int64_t shape[CEK_RANK_MAX];

    assert_ok(cek_model_read_onnx(written(&g), NULL, &model));
    ck_assert_uint_eq(cek_model_parameter_count(model), 2);
    ck_assert_uint_eq(cek_model_buffer_count(model), 0);
    assert_ok(cek_model_parameter(model, 0, &p));
    ck_assert_str_eq(p.name, "layer.weight");
    ck_assert_mem_eq(p.data, weights, sizeof weights);
    assert_ok(cek_model_parameter(model, 1, &p));
    ck_assert_str_eq(p.name, "layer.bias");
    ck_assert_int_eq(cek_model_input_shape(model, shape), 1);
    ck_assert_int_eq(shape[0], 3);
    cek_model_free(model);
}
END_TEST

/* The sizes of a reshape of [batch, 2], with the batch as the file has it, and the shape of a sample. */
static const struct {
    int64_t batch, count, sizes[3], rank, shape[2];
} reshapes[] = {
    { 0, 2, { -1, 2 }, 1, { 2 } },       { 0, 2, { 0, -1 }, 1, { 2 } }, { 0, 3, { -1, 1, 2 }, 2, { 1, 2 } },
    { 2, 2, { 2, -1 }, 1, { 2 } },       { 2, 2, { 2, 2 }, 1, { 2 } },  { 2, 3, { 2, 2, 1 }, 2, { 2, 1 } },
    { 2, 3, { 2, 1, -1 }, 2, { 1, 2 } }, { 1, 2, { 1, 2 }, 1, { 2 } },  { 1, 3, { 1, 2, 1 }, 2, { 2, 1 } },
    { 1, 2, { -1, 2 }, 1, { 2 } },
};

START_TEST(a_reshape_is_explained_at_any_batch)
{
    static const float x[4][3] = { { 1, 1, 1 }, { 0, 0, 0 }, { 4, 0, 0 }, { 0, 0, 8 } };
    message g = network(SHAPE(reshapes[_i].batch, 3), reshapes[_i].sizes, reshapes[_i].count);
    int64_t shape[CEK_RANK_MAX];
    cek_model *model;
    float y[MOST];

    assert_ok(cek_model_read_onnx(written(&g), NULL, &model));
    ck_assert_int_eq(cek_model_output_shape(model, shape), reshapes[_i].rank);
    for (int i = 0; i < reshapes[_i].rank; i++)
        ck_assert_int_eq(shape[i], reshapes[_i].shape[i]);
    cek_model_free(model);
    ck_assert_int_eq(predicted(&g, x, 4, y), 8);
    for (int n = 0; n < 4; n++)
        for (int k = 0; k < 2; k++) {
            double sum = (double)bias[k];

            for (int i = 0; i < 3; i++)
                sum += (double)x[n][i] * (double)weights[2 * i + k];
            ck_assert_double_eq((double)y[2 * n + k], relu(sum));
        }
}
END_TEST

/* An embedding: whole numbers in, rows of a table out. */
START_TEST(whole_numbers_name_rows_of_a_table)
{
    static const int32_t words[6] = { 2, 0, 1, 1, 2, 2 };
    message g = { .size = 0 }, part = node_of("Gather", NAMES("table", "x"), NAMES("y"));
    message type = { .size = 0 }, tensor = { .size = 0 }, dims = { .size = 0 }, dim = { .size = 0 };
    float y[MOST];

    put_message(&g, 1, &part);
    part = floats_of("table", 2, SHAPE(3, 2), weights, 6);
    put_message(&g, 5, &part);
    put_text(&dim, 2, "batch");
    put_message(&dims, 1, &dim);
    dim.size = 0;
    put_integer(&dim, 1, 3);
    put_message(&dims, 1, &dim);
    put_integer(&tensor, 1, INT64);
    put_message(&tensor, 2, &dims);
    put_message(&type, 1, &tensor);
    part.size = 0;
    put_text(&part, 1, "x");
    put_message(&part, 2, &type);
    put_message(&g, 11, &part);
    part = value_of("y", 1, SHAPE(-1));
    put_message(&g, 12, &part);
    ck_assert_int_eq(predicted(&g, words, 2, y), 12);
    for (int i = 0; i < 12; i++)
        ck_assert_double_eq((double)y[i], (double)weights[2 * words[i / 2] + i % 2]);
}
END_TEST

/* ---- what is refused ---- */

START_TEST(an_operator_that_is_missing_is_named_with_its_node)
{
    message g = { .size = 0 }, node = node_of("Relu", NAMES("x"), NAMES("q"));
    cek_model *model;

    put_message(&g, 1, &node);
    node = node_of("NonMaxSuppression", NAMES("q"), NAMES("y"));
    put_message(&g, 1, &node);
    ends_put(&g, 2, SHAPE(0, 2));
    assert_fails(cek_model_read_onnx(written(&g), NULL, &model), CEK_UNSUPPORTED, "node 1 ('a node')",
                 "no operator NonMaxSuppression");
    ck_assert_ptr_null(model);
}
END_TEST

START_TEST(what_mixes_samples_of_any_number_is_refused)
{
    message g = { .size = 0 }, node = node_of("ReduceSum", NAMES("x", "axes"), NAMES("y")), part;
    cek_model *model;

    put_message(&g, 1, &node);
    part = list_of("axes", SHAPE(0), 1);
    put_message(&g, 5, &part);
    ends_put(&g, 2, SHAPE(0, 2));
    assert_fails(cek_model_read_onnx(written(&g), NULL, &model), CEK_UNSUPPORTED, "ReduceSum y", "would mix samples");
}
END_TEST

START_TEST(one_sample_that_is_a_whole_batch_is_not_trained)
{
    message g = { .size = 0 }, node = node_of("ReduceSum", NAMES("x", "axes"), NAMES("q")), part;
    cek_trainer *trainer;
    cek_model *model;

    put_message(&g, 1, &node);
    node = node_of("MatMul", NAMES("q", "w"), NAMES("y"));
    put_message(&g, 1, &node);
    part = list_of("axes", SHAPE(0), 1);
    put_message(&g, 5, &part);
    part = floats_of("w", 2, SHAPE(3, 2), weights, 6);
    put_message(&g, 5, &part);
    ends_put(&g, 2, SHAPE(2, 3));
    assert_ok(cek_model_read_onnx(written(&g), NULL, &model));
    assert_fails(cek_trainer_create(model, devices, 1, NULL, &trainer), CEK_INVALID, "one sample", "not trained");
    cek_model_free(model);
}
END_TEST

START_TEST(a_size_that_has_a_name_is_given)
{
    message g = { .size = 0 }, node = node_of("Relu", NAMES("x"), NAMES("y"));
    cek_onnx_options options = { .size = sizeof options, .sizes = "batches=2,batch=5" };
    int64_t shape[CEK_RANK_MAX];
    cek_model *model;

    put_message(&g, 1, &node);
    ends_put(&g, 3, SHAPE(-1, 0, 2)); /* value_of calls 0 "batch" and -1 nothing */
    assert_fails(cek_model_read_onnx(written(&g), NULL, &model), CEK_UNSUPPORTED, "input 'x'", "axis 1 (batch)");
    assert_ok(cek_model_read_onnx(written(&g), &options, &model));
    ck_assert_int_eq(cek_model_input_shape(model, shape), 2);
    ck_assert_int_eq(shape[0], 5);
    ck_assert_int_eq(shape[1], 2);
    cek_model_free(model);
    options.output = "z";
    assert_fails(cek_model_read_onnx(written(&g), &options, &model), CEK_BAD_INPUT, "net.onnx", "no output z");
}
END_TEST

START_TEST(an_integer_that_is_too_large_is_refused)
{
    message g = { .size = 0 }, node = node_of("Cast", NAMES("x"), NAMES("i")), part;
    cek_model *model;

    put_whole(&node, "to", INT64);
    put_message(&g, 1, &node);
    node = node_of("Add", NAMES("i", "many"), NAMES("y"));
    put_message(&g, 1, &node);
    part = list_of("many", SHAPE(1, INT64_C(1) << 40), 2);
    put_message(&g, 5, &part);
    ends_put(&g, 2, SHAPE(0, 2));
    assert_fails(cek_model_read_onnx(written(&g), NULL, &model), CEK_UNSUPPORTED, "'many'", "1099511627776");
}
END_TEST

/* ---- hostile files ---- */

static uint32_t state = 1;

static uint32_t below(size_t limit)
{
    state = state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(state >> 8) * limit >> 24);
}

START_TEST(changed_bytes_lead_nowhere)
{
    message g = network(SHAPE(2, 3), SHAPE(2, 2, 1), 3), original = model_of(&g, 20);
    int accepted = 0;

    for (int i = 0; i < 1000; i++) {
        message m = original;
        cek_model *model;
        cek_status st;

        for (uint32_t k = 0, n = 1 + below(3); k < n; k++) {
            size_t at = below(m.size);

            m.bytes[at] = (uint8_t)(below(2) ? below(256) : m.bytes[at] ^ 1U << below(8));
        }
        st = cek_model_read_onnx(scratch_write("net.onnx", m.bytes, m.size), NULL, &model);
        accepted += st == CEK_OK;
        ck_assert_msg(st == CEK_OK || st == CEK_BAD_INPUT || st == CEK_UNSUPPORTED, "%s: %s", cek_status_name(st),
                      cek_error_text());
        ck_assert((st == CEK_OK) == (model != NULL));
        cek_model_free(model);
    }
    ck_assert_int_gt(accepted, 0);
    ck_assert_int_lt(accepted, 1000);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    message g = network(SHAPE(2, 3), SHAPE(2, 2, 1), 3);
    const char *path = written(&g);
    cek_status st = CEK_OUT_OF_MEMORY;
    cek_model *model;

    for (long n = 1; st != CEK_OK; n++) {
        cek__fault_set(CEK__FAULT_ALLOC, n);
        st = cek_model_read_onnx(path, NULL, &model);
        ck_assert_msg(st == CEK_OK || st == CEK_OUT_OF_MEMORY, "%s", cek_error_text());
        cek_model_free(model);
    }
    cek__fault_set(CEK__FAULT_ALLOC, 0);
}
END_TEST

#define COUNT(list) ((int)(sizeof(list) / sizeof *(list)))

int main(void)
{
    Suite *suite = suite_create("onnx_import");
    TCase *all = tcase_create("all");

    tcase_add_checked_fixture(all, set_up, tear_down);
    tcase_add_loop_test(all, an_operator_of_one_computes_its_function, 0, COUNT(functions));
    tcase_add_loop_test(all, an_operator_that_moves_or_sums_gives_what_onnx_says, 0, COUNT(moves));
    tcase_add_test(all, weights_are_parameters_under_their_names);
    tcase_add_loop_test(all, a_reshape_is_explained_at_any_batch, 0, COUNT(reshapes));
    tcase_add_test(all, whole_numbers_name_rows_of_a_table);
    tcase_add_test(all, an_operator_that_is_missing_is_named_with_its_node);
    tcase_add_test(all, what_mixes_samples_of_any_number_is_refused);
    tcase_add_test(all, one_sample_that_is_a_whole_batch_is_not_trained);
    tcase_add_test(all, a_size_that_has_a_name_is_given);
    tcase_add_test(all, an_integer_that_is_too_large_is_refused);
    tcase_add_test(all, changed_bytes_lead_nowhere);
    tcase_add_test(all, every_allocation_may_fail);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
