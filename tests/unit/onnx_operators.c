/* onnx_operators.c - tests of nn/onnx: what operators compute as parts. ONNX's own cases are
 * run by scripts/check-onnx-nodes. */
#include <math.h>

#include "onnx_nets.h"

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

/* Where what stands between is far larger, or infinite; a few roundings of the result. */
static const struct {
    const char *op;
    double (*expected)(double x);
    float x[6];
} edges[] = { { "Asinh", asinh, { 1e20f, -3.4e38f, INFINITY, -INFINITY, 65000, 66000 } },
              { "Acosh", acosh, { 1e20f, 3.4e38f, INFINITY, 2, 1.0001f, -3e6f } },
              { "Sinh", sinh, { 89, -89, 1e-6f, 88.5f, INFINITY, -INFINITY } },
              { "Cosh", cosh, { 89, -89, 1e-6f, 88.5f, INFINITY, -INFINITY } },
              { "Round", rint, { INFINITY, -INFINITY, 3.5f, -1e30f, NAN, 8388609 } } };

START_TEST(an_operator_of_one_computes_its_function_to_the_end)
{
    message g = { .size = 0 }, node = node_of(edges[_i].op, NAMES("x"), NAMES("y"));
    float y[MOST];

    put_message(&g, 1, &node);
    ends_put(&g, 2, SHAPE(0, 2));
    ck_assert_int_eq(predicted(&g, edges[_i].x, 3, y), 6);
    for (int i = 0; i < 6; i++) {
        const double expected = edges[_i].expected((double)edges[_i].x[i]);

        if (isnan(expected))
            ck_assert_float_nan(y[i]);
        else if (isinf(expected))
            ck_assert_double_eq((double)y[i], expected);
        else
            ck_assert_double_eq_tol((double)y[i], expected, 16 * 0x1p-24 * fabs(expected));
    }
}
END_TEST

START_TEST(a_sum_of_exponentials_may_be_none_or_infinite)
{
    static const float x[6] = { -INFINITY, -INFINITY, INFINITY, 1, 1000, 1000 };
    message g = { .size = 0 }, node = node_of("ReduceLogSumExp", NAMES("x", "one"), NAMES("y"));
    message part = list_of("one", SHAPE(1), 1);
    float y[MOST];

    put_message(&g, 1, &node);
    put_message(&g, 5, &part);
    ends_put(&g, 2, SHAPE(0, 2));
    ck_assert_int_eq(predicted(&g, x, 3, y), 3);
    ck_assert_double_eq((double)y[0], -INFINITY);
    ck_assert_double_eq((double)y[1], INFINITY);
    ck_assert_double_eq_tol((double)y[2], 1000 + log(2), 0x1p-14);
}
END_TEST

/* As C has it; NaN where y goes into x 2^32 times. Without fmod (1) the sign is that of y. */
START_TEST(a_remainder_is_exact)
{
    static const float x[] = {
        1e9f, -1e9f, 1e10f, 1, -1, 5.5f, 0.5f, 3, 0x1.fffffep+33f, 0x1p+33f, 1e20f, 1, INFINITY
    };
    static const float y[COUNT(x)] = { 7, 7, 3, 0.1f, 0.1f, -2, 0.75f, INFINITY, 3, 2, 3, 0, 2 };
    message g = { .size = 0 }, node = node_of("Mod", NAMES("x", "with"), NAMES("y"));
    message part = floats_of("with", 1, SHAPE(COUNT(x)), y, COUNT(x));
    float got[MOST];

    put_whole(&node, "fmod", _i);
    put_message(&g, 1, &node);
    put_message(&g, 5, &part);
    ends_put(&g, 2, SHAPE(0, COUNT(x)));
    ck_assert_int_eq(predicted(&g, x, 1, got), COUNT(x));
    for (int i = 0; i < COUNT(x); i++) {
        const float left = fmodf(x[i], y[i]), expected = _i || left * y[i] >= 0 ? left : left + y[i];

        if (isnan(left) || fabs((double)x[i] / (double)y[i]) >= 0x1p32)
            ck_assert_float_nan(got[i]);
        else
            ck_assert_float_eq(got[i], expected);
    }
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
    { "Slice", 2, { 0, 4 }, 2, { { 1, { -1 } }, { 1, { -9 } }, { 1, { 1 } }, { 1, { -2 } } }, { { 0 } }, 4,
      { 3, 1, 7, 5 } },
    { "Slice", 2, { 0, 4 }, 2, { { 1, { -9 } }, { 1, { -9 } }, { 1, { 1 } }, { 1, { -1 } } }, { { 0 } }, 2, { 0, 4 } },
    { "Slice", 2, { 0, 5 }, 2, { { 1, { 0 } }, { 1, { 9 } }, { 1, { 1 } }, { 1, { 2 } } }, { { 0 } }, 6,
      { 0, 2, 4, 5, 7, 9 } },
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
    { "Trilu", 3, { 0, 2, 3 }, 2, { { 0 } }, { { 0 } }, 12, { 0, 1, 2, 0, 4, 5, 6, 7, 8, 0, 10, 11 } },
    { "Trilu", 3, { 0, 2, 3 }, 1, { { 1, { 1 } } }, { { "upper", 0 } }, 6, { 0, 1, 0, 3, 4, 5 } },
    { "Hardmax", 2, { 0, 3 }, 2, { { 0 } }, { { 0 } }, 6, { 0, 0, 1, 0, 0, 1 } },
    { "Hardmax", 3, { 0, 2, 2 }, 1, { { 0 } }, { { "axis", 1 } }, 4, { 0, 0, 1, 1 } },
    { "Mod", 2, { 0, 4 }, 1, { { 1, { -3 } } }, { { 0 } }, 4, { 0, -2, -1, 0 } },
    { "Mod", 2, { 0, 4 }, 1, { { 1, { -3 } } }, { { "fmod", 1 } }, 4, { 0, 1, 2, 0 } },
    { "NegativeLogLikelihoodLoss", 2, { 2, 3 }, 1, { { 2, { 2, 0 } } }, { { 0 } }, 1, { -2.5 } },
    { "NegativeLogLikelihoodLoss", 2, { 2, 3 }, 1, { { 2, { 2, 0 } } }, { { "ignore_index", 0 } }, 1, { -2 } },
    { "GatherElements", 1, { 3 }, 1, { { 2, { -1, 0 } } }, { { 0 } }, 2, { 2, 0 } },
    /* these mix samples: the whole batch is one */
    { "ReduceSum", 2, { 2, 3 }, 1, { { 1, { 0 } } }, { { 0 } }, 3, { 3, 5, 7 } },
    { "Gather", 2, { 3, 2 }, 1, { { 2, { 2, 0 } } }, { { 0 } }, 4, { 4, 5, 0, 1 } },
    { "Slice", 2, { 3, 2 }, 1, { { 1, { 1 } }, { 1, { 3 } } }, { { 0 } }, 4, { 2, 3, 4, 5 } },
    { "Squeeze", 3, { 0, 2, 1 }, 2, { { 0 } }, { { 0 } }, 4, { 0, 1, 2, 3 } },
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

/* The first of two pieces, of as many elements as `sizes` says where it has some. */
static message split_of(const int64_t *sizes, int64_t axis)
{
    message g = { .size = 0 }, node = node_of("Split", sizes ? NAMES("x", "sizes") : NAMES("x"), NAMES("y", "z"));
    message part = list_of("sizes", sizes ? sizes : SHAPE(0, 0), 2);

    put_whole(&node, "axis", axis);
    put_message(&g, 1, &node);
    put_message(&g, 5, &part);
    return g;
}

START_TEST(samples_that_are_split_are_a_whole_batch)
{
    static const float x[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    message g = split_of(_i ? SHAPE(1, 3) : NULL, 0);
    float y[MOST];

    ends_put(&g, 2, SHAPE(4, 2));
    ck_assert_int_eq(predicted(&g, x, 1, y), _i ? 2 : 4);
    ck_assert_mem_eq(y, x, (_i ? 2 : 4) * sizeof *x);
}
END_TEST

/* Of x [2,3,2] along its middle axis, by an index of fewer places beside that; the whole batch is one sample. */
START_TEST(elements_are_gathered_along_an_axis_in_the_middle)
{
    static const int64_t index[4] = { 2, -3, 1, -2 };
    message g = { .size = 0 }, node = node_of("GatherElements", NAMES("x", "index"), NAMES("y"));
    message part = tensor_of("index", INT64, 3, SHAPE(1, 2, 2));
    const double expected[4] = { 4, 1, 2, 3 };
    float x[12], y[MOST];

    put_whole(&node, "axis", 1);
    put_message(&g, 1, &node);
    put_bytes(&part, 9, index, sizeof index);
    put_message(&g, 5, &part);
    ends_put(&g, 3, SHAPE(2, 3, 2));
    for (int i = 0; i < 12; i++)
        x[i] = (float)i;
    ck_assert_int_eq(predicted(&g, x, 1, y), 4);
    for (int i = 0; i < 4; i++)
        ck_assert_double_eq((double)y[i], expected[i]);
}
END_TEST

/* Along axis 1 of x by what `slice` gives of it, as s. */
static void gathered_put(message *g, const message *slice)
{
    message node = node_of("Cast", NAMES("s"), NAMES("i"));

    put_message(g, 1, slice);
    put_whole(&node, "to", INT64);
    put_message(g, 1, &node);
    node = node_of("GatherElements", NAMES("x", "i"), NAMES("y"));
    put_whole(&node, "axis", 1);
    put_message(g, 1, &node);
}

/* x [N,3,2]: the indices are its [2,1] first elements, below 0 among them. */
START_TEST(elements_are_gathered_by_indices_that_are_computed)
{
    static const float x[12] = { -1, 7, 1, 8, 5, 9, 0, 7, -2, 8, 9, 9 };
    const double expected[4] = { 5, 1, 0, -2 };
    message g = { .size = 0 }, node = node_of("Slice", NAMES("x", "starts", "ends", "axes"), NAMES("s")), part;
    float y[MOST];

    gathered_put(&g, &node);
    part = list_of("starts", SHAPE(0, 0), 2);
    put_message(&g, 5, &part);
    part = list_of("ends", SHAPE(2, 1), 2);
    put_message(&g, 5, &part);
    part = list_of("axes", SHAPE(1, 2), 2);
    put_message(&g, 5, &part);
    ends_put(&g, 3, SHAPE(0, 3, 2));
    ck_assert_int_eq(predicted(&g, x, 2, y), 4);
    for (int i = 0; i < 4; i++)
        ck_assert_double_eq((double)y[i], expected[i]);
}
END_TEST

/* ---- what has no axes ---- */

static void unsqueezed_put(message *g, const char *op, const char *of, const char *number, const char *list)
{
    message node = node_of(op, NAMES(of), NAMES(number));

    put_whole(&node, "keepdims", 0);
    put_message(g, 1, &node);
    node = node_of("Unsqueeze", NAMES(number, "zero"), NAMES(list));
    put_message(g, 1, &node);
}

/* Of x [1,2,2] the axis that counts samples goes, too: what is the second one then is summed over. */
START_TEST(an_axis_of_one_sample_is_squeezed_as_any_other)
{
    message g = { .size = 0 }, node = node_of("Squeeze", NAMES("x"), NAMES("s")), part = list_of("one", SHAPE(1), 1);
    float y[MOST];

    put_message(&g, 1, &node);
    node = node_of("ReduceSum", NAMES("s", "one"), NAMES("y"));
    put_message(&g, 1, &node);
    put_message(&g, 5, &part);
    ends_put(&g, 3, SHAPE(1, 2, 2));
    ck_assert_int_eq(predicted(&g, ((const float[]){ 1, 2, 3, 4 }), 1, y), 2);
    ck_assert_double_eq((double)y[0], 3);
    ck_assert_double_eq((double)y[1], 7);
}
END_TEST

/* The largest and the smallest number, of x [2,2] itself or of weights, as a list of two, times x. */
START_TEST(what_has_no_axes_gets_those_that_it_is_given)
{
    static const float x[4] = { 1, 2, 3, 4 };
    message g = { .size = 0 }, node = node_of("Concat", NAMES("mosts", "leasts"), NAMES("both")), part;
    float y[MOST];

    unsqueezed_put(&g, "ReduceMax", _i ? "w" : "x", "most", "mosts");
    unsqueezed_put(&g, "ReduceMin", _i ? "w" : "x", "least", "leasts");
    put_whole(&node, "axis", 0);
    put_message(&g, 1, &node);
    node = node_of("Mul", NAMES("x", "both"), NAMES("y"));
    put_message(&g, 1, &node);
    part = floats_of("w", 1, SHAPE(2), (const float[]){ 10, 100 }, 2);
    put_message(&g, 5, &part);
    part = list_of("zero", SHAPE(0), 1);
    put_message(&g, 5, &part);
    ends_put(&g, 2 + _i, _i ? SHAPE(0, 2, 2) : SHAPE(2, 2));
    ck_assert_int_eq(predicted(&g, x, 1, y), 4);
    for (int i = 0; i < 4; i++)
        ck_assert_double_eq((double)y[i], (double)x[i] * (i % 2 ? _i ? 10 : 1 : _i ? 100 : 4));
}
END_TEST

/* Row 1 of x [2,2,2], or of a table where the largest of x stands: summed over its second axis. */
START_TEST(what_one_number_names_has_no_axis_of_rows)
{
    static const float rows[8] = { 0, 1, 2, 3, 4, 6, 8, 12 };
    message g = { .size = 0 }, node = node_of("ArgMax", NAMES("x"), NAMES("i")), part;
    float y[MOST];

    put_whole(&node, "keepdims", 0);
    if (_i)
        put_message(&g, 1, &node);
    node = _i ? node_of("Gather", NAMES("rows", "i"), NAMES("row"))
              : node_of("GatherND", NAMES("x", "one"), NAMES("row"));
    put_message(&g, 1, &node);
    node = node_of("ReduceSum", NAMES("row", "one"), NAMES("y"));
    put_message(&g, 1, &node);
    part = floats_of("rows", 3, SHAPE(2, 2, 2), rows, 8);
    put_message(&g, 5, &part);
    part = list_of("one", SHAPE(1), 1);
    put_message(&g, 5, &part);
    ends_put(&g, _i ? 1 : 3, SHAPE(2, 2, 2));
    ck_assert_int_eq(predicted(&g, rows, 1, y), 2);
    ck_assert_double_eq((double)y[0], 10);
    ck_assert_double_eq((double)y[1], 20);
}
END_TEST

/* ---- windows, norms and losses ---- */

/* A node over x = 0, 1, 2, 3 of one sample [1,4], as `rank` 3 one channel [1,1,4]; the output that is asked
 * for is y. */
static void gives(const message *node, int rank, int count, const double *expected)
{
    static const float x[4] = { 0, 1, 2, 3 };
    message g = { .size = 0 }, part;
    float y[MOST];

    put_message(&g, 1, node);
    part = floats_of("ones", 1, SHAPE(4), (const float[]){ 1, 1, 1, 1 }, 4);
    put_message(&g, 5, &part);
    part = list_of("label", SHAPE(3), 1);
    put_message(&g, 5, &part);
    if (rank == 3)
        ends_put(&g, 3, SHAPE(0, 1, 4));
    else
        ends_put(&g, 2, SHAPE(1, 4));
    ck_assert_int_eq(predicted(&g, x, 1, y), count);
    for (int i = 0; i < count; i++)
        ck_assert_double_eq_tol((double)y[i], expected[i], 8 * 4 * 0x1p-24);
}

/* Of x [N,1,2,2], 0 1 and 2 3, resized by factors, or where there is none to sizes. */
static const struct {
    const char *mode, *places;
    float factors[4];
    int64_t sizes[4];
    int count;
    double y[16];
} resizes[] = {
    { "nearest", "asymmetric", { 1, 1, 2, 2 }, { 0 }, 16, { 0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3 } },
    { "nearest", "half_pixel", { 1, 1, 0.5f, 1.5f }, { 0 }, 3, { 0, 0, 1 } },
    { "linear", "half_pixel", { 1, 1, 1, 2 }, { 0 }, 8, { 0, 0.25, 0.75, 1, 2, 2.25, 2.75, 3 } },
    { "linear", "align_corners", { 1, 1, 2, 1 }, { 0 }, 8, { 0, 1, 2 / 3., 5 / 3., 4 / 3., 7 / 3., 2, 3 } },
    { "cubic", "half_pixel", { 1, 1, 1, 2 }, { 0 }, 4, { -0.10546875, 0.2265625, 0.7734375, 1.10546875 } },
    { "linear", "pytorch_half_pixel", { 0 }, { 1, 1, 1, 1 }, 1, { 0 } },
};

static message resized(int i, int64_t batch)
{
    const bool sizes = resizes[i].sizes[0] != 0;
    message g = { .size = 0 },
            node = node_of("Resize", sizes ? NAMES("x", "", "", "sizes") : NAMES("x", "", "factors"), NAMES("y"));
    message part = floats_of("factors", 1, SHAPE(4), resizes[i].factors, 4);

    put_text_attribute(&node, "mode", resizes[i].mode);
    put_text_attribute(&node, "coordinate_transformation_mode", resizes[i].places);
    put_message(&g, 1, &node);
    put_message(&g, 5, &part);
    part = list_of("sizes", resizes[i].sizes, 4);
    put_message(&g, 5, &part);
    ends_put(&g, 4, SHAPE(batch, 1, 2, 2));
    return g;
}

START_TEST(an_image_is_resized_as_onnx_says)
{
    message g = resized(_i, 1);
    float y[MOST];

    ck_assert_int_ge(predicted(&g, ((const float[]){ 0, 1, 2, 3 }), 1, y), resizes[_i].count);
    for (int i = 0; i < resizes[_i].count; i++)
        ck_assert_double_eq_tol((double)y[i], resizes[_i].y[i], 16 * 0x1p-24);
}
END_TEST

static message windows_of(const char *op, int64_t kernel, int64_t dilation)
{
    message node = node_of(op, NAMES("x"), NAMES("y")), list = integers_of("kernel_shape", &kernel, 1, 0);

    put_message(&node, 5, &list);
    list = integers_of("dilations", &dilation, 1, 0);
    put_message(&node, 5, &list);
    return node;
}

START_TEST(windows_may_have_gaps)
{
    message node = windows_of("MaxPool", 2, 2);

    gives(&node, 3, 2, (const double[]){ 2, 3 });
    node = windows_of("AveragePool", 2, 3);
    gives(&node, 3, 1, (const double[]){ 1.5 });
    node = windows_of("LpPool", 2, 1);
    gives(&node, 3, 3, (const double[]){ 1, sqrt(5), sqrt(13) });
    node = windows_of("LpPool", 2, 2);
    put_whole(&node, "p", 1);
    gives(&node, 3, 2, (const double[]){ 2, 4 });
}
END_TEST

START_TEST(a_layer_norm_tells_its_statistics)
{
    message node = node_of("LayerNormalization", NAMES("x", "ones"), NAMES("z", "y"));

    gives(&node, 2, 1, (const double[]){ 1.5 });
    node = node_of("LayerNormalization", NAMES("x", "ones"), NAMES("z", "", "y"));
    gives(&node, 2, 1, (const double[]){ 1 / sqrt(1.25 + 1e-5) });
}
END_TEST

START_TEST(a_loss_of_scores_tells_the_probabilities_too)
{
    const double whole = log(1 + exp(1) + exp(2) + exp(3));
    message node = node_of("SoftmaxCrossEntropyLoss", NAMES("x", "label"), NAMES("y"));

    gives(&node, 2, 1, (const double[]){ whole - 3 });
    node = node_of("SoftmaxCrossEntropyLoss", NAMES("x", "label", "ones"), NAMES("z", "y"));
    gives(&node, 2, 4, (const double[]){ -whole, 1 - whole, 2 - whole, 3 - whole });
}
END_TEST

/* ---- whole numbers ---- */

static const float table[4] = { 10, 11, 12, 13 };

/* Behind an operator that changes whole numbers these still name rows of a table. */
static const struct {
    const char *op;
    int64_t low, high; /* the other inputs, as whole numbers; INT64_MAX: left out */
    float x[2];
    double y[2];
} wholes[] = {
    { "Neg", INT64_MAX, INT64_MAX, { -1, -3 }, { 11, 13 } },
    { "Neg", INT64_MAX, INT64_MAX, { 1, 4 }, { 13, 10 } }, /* from the end */
    { "Abs", INT64_MAX, INT64_MAX, { -2, 1 }, { 12, 11 } },
    { "Sign", INT64_MAX, INT64_MAX, { 5, 0 }, { 11, 10 } },
    { "Clip", 0, 6, { -4, 3 }, { 10, 13 } },
    { "Clip", 1, 2, { -4, 9 }, { 11, 12 } },
    { "Clip", 1, INT64_MAX, { -4, 3 }, { 11, 13 } },
};

/* Of x the whole numbers k, changed. */
static message changed_wholes(int i)
{
    const char *inputs[4] = { "i" };
    message g = { .size = 0 }, node = node_of("Cast", NAMES("x"), NAMES("i")), part;
    const int64_t ends[2] = { wholes[i].low, wholes[i].high };

    put_whole(&node, "to", INT64);
    put_message(&g, 1, &node);
    for (int e = 0; e < 2 && ends[e] != INT64_MAX; e++) {
        inputs[1 + e] = e ? "high" : "low";
        part = tensor_of(inputs[1 + e], INT64, 0, NULL);
        put_bytes(&part, 9, &ends[e], sizeof ends[e]);
        put_message(&g, 5, &part);
    }
    node = node_of(wholes[i].op, inputs, NAMES("k"));
    put_message(&g, 1, &node);
    ends_put(&g, 2, SHAPE(0, 1));
    return g;
}

START_TEST(whole_numbers_name_rows_when_they_were_changed)
{
    message g = changed_wholes(_i), node = node_of("Gather", NAMES("table", "k"), NAMES("y"));
    message part = floats_of("table", 1, SHAPE(4), table, 4);
    float y[MOST];

    put_message(&g, 1, &node);
    put_message(&g, 5, &part);
    ck_assert_int_eq(predicted(&g, wholes[_i].x, 2, y), 2);
    for (int i = 0; i < 2; i++)
        ck_assert_double_eq((double)y[i], wholes[_i].y[i]);
}
END_TEST

/* Such are cut off when they are divided, which no chain does: they must be known for what they are. */
START_TEST(whole_numbers_stay_such)
{
    message g = changed_wholes(_i), node = node_of("Div", NAMES("k", "i"), NAMES("y"));
    cek_model *model;

    put_message(&g, 1, &node);
    assert_fails(cek_model_read_onnx(written(&g), NULL, &model), CEK_UNSUPPORTED, "Div y", "of integers");
}
END_TEST

/* Powers of whole numbers are such, too. */
static const struct {
    float exponent, x[4];
    double y[4];
} powers[] = { { 0.5f, { 9, 8, 2, 16777216 }, { 3, 2, 1, 4096 } },
               { 2, { -9, 8, 0, 3375 }, { 81, 64, 0, 11390625 } },
               { 3, { -5, 255, 1, 2 }, { -125, 16581375, 1, 8 } },
               { -1, { 1, 2, -2, -1 }, { 1, 0, 0, -1 } } };

START_TEST(a_power_of_a_whole_number_is_cut_off)
{
    message g = { .size = 0 }, node = node_of("Cast", NAMES("x"), NAMES("k")), part;
    float y[MOST];

    put_whole(&node, "to", INT64);
    put_message(&g, 1, &node);
    node = node_of("Pow", NAMES("k", "exponent"), NAMES("y"));
    put_message(&g, 1, &node);
    part = floats_of("exponent", 0, NULL, &powers[_i].exponent, 1);
    put_message(&g, 5, &part);
    ends_put(&g, 2, SHAPE(0, 2));
    ck_assert_int_eq(predicted(&g, powers[_i].x, 2, y), 4);
    for (int i = 0; i < 4; i++)
        ck_assert_double_eq((double)y[i], powers[_i].y[i]);
}
END_TEST

/* ---- what is refused ---- */

static void refused(const message *graph, const char *node, const char *cause)
{
    cek_model *model;

    assert_fails(cek_model_read_onnx(written(graph), NULL, &model), CEK_UNSUPPORTED, node, cause);
}

/* With no axes, which are then none. */
START_TEST(logarithms_and_roots_of_whole_numbers_are_refused)
{
    static const char *const ops[] = { "ReduceLogSum", "ReduceL2", "ReduceLogSumExp" };
    message g = { .size = 0 }, node = node_of("Cast", NAMES("x"), NAMES("k"));
    char label[32];

    put_whole(&node, "to", INT64);
    put_message(&g, 1, &node);
    node = node_of(ops[_i], NAMES("k"), NAMES("y"));
    put_whole(&node, "noop_with_empty_axes", 1);
    put_message(&g, 1, &node);
    ends_put(&g, 2, SHAPE(0, 2));
    snprintf(label, sizeof label, "%s y", ops[_i]);
    refused(&g, label, "of integers");
}
END_TEST

START_TEST(pieces_of_any_number_of_samples_are_refused)
{
    message g = _i ? (message){ .size = 0 } : split_of(NULL, 0),
            node = node_of("Gather", NAMES("x", "zero"), NAMES("y"));
    message part = list_of("zero", SHAPE(0), 1);

    if (_i)
        put_message(&g, 1, &node);
    put_message(&g, 5, &part);
    ends_put(&g, 2, SHAPE(0, 2));
    refused(&g, _i ? "Gather y" : "Split y", "axis 0 counts samples");
}
END_TEST

START_TEST(pieces_that_are_not_the_whole_are_refused)
{
    static const int64_t sizes[][2] = { { 1, 2 }, { 2, 3 }, { 5, -1 } };
    message g = split_of(sizes[_i], 1);
    cek_model *model;

    ends_put(&g, 2, SHAPE(0, 4));
    ck_assert_int_ne(cek_model_read_onnx(written(&g), NULL, &model), CEK_OK);
    ck_assert_ptr_nonnull(strstr(cek_error_text(),
                                 _i ? "are not there along axis 1" : "3 elements in all, axis 1 has 4"));
}
END_TEST

/* 2^40 weights that are one number: what windows so wide take of the padding does not fit 63 bits
 * with every dilation. */
START_TEST(a_window_that_is_too_wide_is_refused)
{
    message g = { .size = 0 }, node = node_of("ConstantOfShape", NAMES("shape"), NAMES("w")), part, attribute;

    put_message(&g, 1, &node);
    node = node_of("Conv", NAMES("x", "w"), NAMES("y"));
    attribute = integers_of("dilations", SHAPE(INT32_MAX), 1, 1);
    put_message(&node, 5, &attribute);
    put_text_attribute(&node, "auto_pad", "SAME_UPPER");
    put_message(&g, 1, &node);
    part = list_of("shape", SHAPE(1, 1, INT64_C(1) << 33), 3);
    put_message(&g, 5, &part);
    ends_put(&g, 3, SHAPE(0, 1, 4));
    refused(&g, "Conv y", "a window of 8589934592");
}
END_TEST

/* To sizes that have a number where x counts samples. */
START_TEST(a_number_of_samples_is_not_resized)
{
    message g = resized(COUNT(resizes) - 1, 0);

    refused(&g, "Resize y", "axis 0 counts samples");
}
END_TEST

/* Of x [N,3] the column N. */
START_TEST(an_index_that_depends_on_the_batch_is_refused)
{
    message g = { .size = 0 }, node = node_of("Shape", NAMES("x"), NAMES("s")), part;

    put_message(&g, 1, &node);
    node = node_of("Gather", NAMES("s", "zero"), NAMES("n"));
    put_message(&g, 1, &node);
    node = node_of("Gather", NAMES("x", "n"), NAMES("y"));
    put_whole(&node, "axis", 1);
    put_message(&g, 1, &node);
    part = tensor_of("zero", INT64, 0, NULL);
    put_bytes(&part, 9, &(int64_t){ 0 }, sizeof(int64_t));
    put_message(&g, 5, &part);
    ends_put(&g, 2, SHAPE(0, 3));
    refused(&g, "Gather y", "an index that depends on the number of samples");
}
END_TEST

/* Indices that are computed may be negative, and counted from there an element's place is no float. */
START_TEST(an_axis_too_long_for_indices_from_its_end_is_refused)
{
    message g = { .size = 0 }, node = node_of("Slice", NAMES("x", "zero", "two", "one"), NAMES("s")), part;

    gathered_put(&g, &node);
    part = list_of("zero", SHAPE(0), 1);
    put_message(&g, 5, &part);
    part = list_of("one", SHAPE(1), 1);
    put_message(&g, 5, &part);
    part = list_of("two", SHAPE(2), 1);
    put_message(&g, 5, &part);
    ends_put(&g, 2, SHAPE(0, (1 << 24) + 1));
    refused(&g, "GatherElements y", "from the end of 16777217 elements");
}
END_TEST

START_TEST(more_groups_than_there_can_be_are_refused)
{
    message g = { .size = 0 }, node = node_of("ConvTranspose", NAMES("x", "w"), NAMES("y")), part;

    put_whole(&node, "group", INT64_MAX);
    put_message(&g, 1, &node);
    part = floats_of("w", 4, SHAPE(1, 2, 1, 1), table, 2);
    put_message(&g, 5, &part);
    ends_put(&g, 4, SHAPE(0, 1, 2, 2));
    refused(&g, "ConvTranspose y", "too large");
}
END_TEST

/* As many as a list may have, and none. */
START_TEST(a_triangle_has_one_diagonal)
{
    message g = { .size = 0 }, node = node_of("Trilu", NAMES("x", "diagonals"), NAMES("y")), part;
    int64_t diagonals[64];
    cek_model *model;

    memset(diagonals, 0x55, sizeof diagonals);
    put_message(&g, 1, &node);
    part = list_of("diagonals", diagonals, _i);
    put_message(&g, 5, &part);
    ends_put(&g, 3, SHAPE(0, 2, 2));
    assert_fails(cek_model_read_onnx(written(&g), NULL, &model), CEK_BAD_INPUT, "Trilu y", _i ? "64 diag" : "0 diag");
}
END_TEST

START_TEST(a_batch_norm_without_its_bias_is_refused)
{
    static const float ones[2] = { 1, 1 };
    message g = { .size = 0 },
            node = node_of("BatchNormalization", NAMES("x", "gamma", "", "mean", "variance"), NAMES("y"));
    const char *const names[] = { "gamma", "mean", "variance" };
    cek_model *model;

    put_message(&g, 1, &node);
    for (int i = 0; i < 3; i++) {
        message part = floats_of(names[i], 1, SHAPE(2), ones, 2);

        put_message(&g, 5, &part);
    }
    ends_put(&g, 2, SHAPE(0, 2));
    assert_fails(cek_model_read_onnx(written(&g), NULL, &model), CEK_BAD_INPUT, "BatchNormalization y",
                 "the bias, is missing");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("onnx_operators");
    TCase *all = tcase_create("all");

    tcase_add_checked_fixture(all, set_up, tear_down);
    tcase_add_loop_test(all, an_operator_of_one_computes_its_function, 0, COUNT(functions));
    tcase_add_loop_test(all, an_operator_of_one_computes_its_function_to_the_end, 0, COUNT(edges));
    tcase_add_test(all, a_sum_of_exponentials_may_be_none_or_infinite);
    tcase_add_loop_test(all, a_remainder_is_exact, 0, 2);
    tcase_add_loop_test(all, an_operator_that_moves_or_sums_gives_what_onnx_says, 0, COUNT(moves));
    tcase_add_loop_test(all, samples_that_are_split_are_a_whole_batch, 0, 2);
    tcase_add_test(all, elements_are_gathered_along_an_axis_in_the_middle);
    tcase_add_test(all, elements_are_gathered_by_indices_that_are_computed);
    tcase_add_test(all, an_axis_of_one_sample_is_squeezed_as_any_other);
    tcase_add_loop_test(all, what_has_no_axes_gets_those_that_it_is_given, 0, 2);
    tcase_add_loop_test(all, what_one_number_names_has_no_axis_of_rows, 0, 2);
    tcase_add_loop_test(all, an_image_is_resized_as_onnx_says, 0, COUNT(resizes));
    tcase_add_test(all, windows_may_have_gaps);
    tcase_add_test(all, a_layer_norm_tells_its_statistics);
    tcase_add_test(all, a_loss_of_scores_tells_the_probabilities_too);
    tcase_add_loop_test(all, whole_numbers_name_rows_when_they_were_changed, 0, COUNT(wholes));
    tcase_add_loop_test(all, whole_numbers_stay_such, 0, COUNT(wholes));
    tcase_add_loop_test(all, a_power_of_a_whole_number_is_cut_off, 0, COUNT(powers));
    tcase_add_loop_test(all, logarithms_and_roots_of_whole_numbers_are_refused, 0, 3);
    tcase_add_loop_test(all, pieces_of_any_number_of_samples_are_refused, 0, 2);
    tcase_add_loop_test(all, pieces_that_are_not_the_whole_are_refused, 0, 3);
    tcase_add_test(all, a_window_that_is_too_wide_is_refused);
    tcase_add_test(all, a_number_of_samples_is_not_resized);
    tcase_add_test(all, an_index_that_depends_on_the_batch_is_refused);
    tcase_add_test(all, an_axis_too_long_for_indices_from_its_end_is_refused);
    tcase_add_test(all, more_groups_than_there_can_be_are_refused);
    tcase_add_loop_test(all, a_triangle_has_one_diagonal, 0, 1);
    tcase_add_loop_test(all, a_triangle_has_one_diagonal, 64, 65);
    tcase_add_test(all, a_batch_norm_without_its_bias_is_refused);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
