/* graph_layers.c - activations and normalisations that are composed of parts, and softmax: values against closed forms,
 * gradients against central differences, and where there is a corner against PyTorch's. */
#include "nn/layers/activations.h"
#include "nn/layers/norms.h"
#include "tests/graph_check.h"

enum { SHAPES = 20 };

/* x [N,...] of random sizes, times a parameter for each element of a sample. */
static int scaled_samples(net *n, const cek__dims *dims)
{
    cek__dims each = { .rank = dims->rank - 1 };

    memcpy(each.size, dims->size + 1, (size_t)each.rank * sizeof *each.size);
    return chain(n, CEK_PW_MUL, samples(n, *dims), parameter(n, each, -2, 2));
}

static void own_loss(net *n, int v)
{
    int out;

    assert_ok(cek__loss(&n->graph, v, CEK__NOTHING, &out));
    n->graph.loss = n->graph.flows[out].part;
}

/* ---- activations ---- */

static cek_status leaky(cek__graph *g, int x, int *out)
{
    return cek__leaky_relu(g, x, 0.1, out);
}
static cek_status clip(cek__graph *g, int x, int *out)
{
    return cek__clip(g, x, -1, 2, out);
}
static cek_status elu(cek__graph *g, int x, int *out)
{
    return cek__elu(g, x, 1.5, out);
}
static cek_status softplus(cek__graph *g, int x, int *out)
{
    return cek__softplus(g, x, 2, out);
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}
static double inner(double x)
{
    return tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x));
}

static double gelu_value(double x)
{
    return x / 2 * (1 + erf(x / sqrt(2)));
}
static double gelu_slope(double x)
{
    return (1 + erf(x / sqrt(2))) / 2 + x * exp(-x * x / 2) / sqrt(2 * acos(-1));
}
static double gelu_tanh_value(double x)
{
    return x / 2 * (1 + inner(x));
}
static double gelu_tanh_slope(double x)
{
    double t = inner(x);

    return (1 + t) / 2 + x / 2 * (1 - t * t) * sqrt(2 / acos(-1)) * (1 + 3 * 0.044715 * x * x);
}
static double silu_value(double x)
{
    return x * sigmoid(x);
}
static double silu_slope(double x)
{
    return sigmoid(x) * (1 + x * (1 - sigmoid(x)));
}
static double leaky_value(double x)
{
    return x > 0 ? x : 0.1 * x;
}
static double leaky_slope(double x)
{
    return x > 0 ? 1 : 0.1;
}
static double clip_value(double x)
{
    return x < -1 ? -1 : x > 2 ? 2 : x;
}
static double clip_slope(double x)
{
    return x >= -1 && x <= 2;
}
static double relu6_value(double x)
{
    return x < 0 ? 0 : x > 6 ? 6 : x;
}
static double relu6_slope(double x)
{
    return x > 0 && x < 6;
}
static double elu_value(double x)
{
    return x > 0 ? x : 1.5 * expm1(x);
}
static double elu_slope(double x)
{
    return x > 0 ? 1 : 1.5 * exp(x);
}
static double softplus_value(double x)
{
    return 2 * x > 20 ? x : log1p(exp(2 * x)) / 2;
}
static double softplus_slope(double x)
{
    return 2 * x > 20 ? 1 : sigmoid(2 * x);
}
static double hard_sigmoid_value(double x)
{
    return fmin(fmax(x + 3, 0), 6) / 6;
}
static double hard_sigmoid_slope(double x)
{
    return x >= -3 && x <= 3 ? 1. / 6 : 0;
}
static double hard_swish_value(double x)
{
    return x * hard_sigmoid_value(x);
}
static double hard_swish_slope(double x)
{
    return x < -3 ? 0 : x > 3 ? 1 : x / 3 + 0.5;
}

static const struct {
    const char *name;
    cek_status (*add)(cek__graph *graph, int x, int *out);
    double (*value)(double x);
    double (*slope)(double x);
} activations[] = {
    { "gelu", cek__gelu, gelu_value, gelu_slope },
    { "gelu_tanh", cek__gelu_tanh, gelu_tanh_value, gelu_tanh_slope },
    { "silu", cek__silu, silu_value, silu_slope },
    { "leaky_relu", leaky, leaky_value, leaky_slope },
    { "clip", clip, clip_value, clip_slope },
    { "relu6", cek__relu6, relu6_value, relu6_slope },
    { "elu", elu, elu_value, elu_slope },
    { "softplus", softplus, softplus_value, softplus_slope },
    { "hard_sigmoid", cek__hard_sigmoid, hard_sigmoid_value, hard_sigmoid_slope },
    { "hard_swish", cek__hard_swish, hard_swish_value, hard_swish_slope },
};

/* Corners among them, and what overflows an exponential. */
static const double points[] = { -800, -30, -3, -2.5, -1, -0.3, 0, 0.2, 1, 2, 2.75, 3, 6, 7, 10, 10.5, 800 };
enum { POINTS = sizeof points / sizeof *points };

START_TEST(activations_have_values_and_slopes)
{
    static net n;
    static double got[PARAMETERS][ROOM];
    double out[ROOM];
    int x, y, w;

    net_open(&n);
    x = samples(&n, PER_SAMPLE(POINTS + 1));
    for (int i = 0; i < ROWS * (POINTS + 1); i++)
        n.samples[i] = i % (POINTS + 1) < POINTS ? points[i % (POINTS + 1)] : NAN;
    assert_ok(activations[_i].add(&n.graph, x, &y));
    values_of(&n, y, out);
    for (int i = 0; i < POINTS; i++) {
        double expected = activations[_i].value(points[i]);

        ck_assert_msg(fabs(out[i] - expected) <= 1e-14 * fmax(1, fabs(expected)), "%s(%g) is %.17g, not %.17g",
                      activations[_i].name, points[i], out[i], expected);
    }
    ck_assert_msg(isnan(out[POINTS]), "%s(NaN) is %g", activations[_i].name, out[POINTS]);

    net_open(&n);
    w = parameter(&n, AXES(POINTS), 0, 1);
    memcpy(n.theta[0], points, sizeof points);
    assert_ok(activations[_i].add(&n.graph, w, &y));
    x = samples(&n, PER_SAMPLE(POINTS));
    for (int64_t i = 0; i < n.inputs; i++)
        n.samples[i] = 1;
    own_loss(&n, chain(&n, CEK_PW_MUL, y, x));
    gradients_of(&n, CEK__NOTHING, got);
    for (int i = 0; i < POINTS; i++) {
        double expected = ROWS * activations[_i].slope(points[i]);

        ck_assert_msg(fabs(got[0][i] - expected) <= 1e-13, "%s: the slope at %g is %.17g, not %.17g",
                      activations[_i].name, points[i], got[0][i], expected);
    }
    net_close(&n);
}
END_TEST

START_TEST(activations_have_gradients)
{
    static net n;

    for (int which = 0; which < SHAPES; which++) {
        const cek__dims dims = { .rank = 3, .samples = 1, .size = { 1, pick(which, 1, 1, 3), pick(which, 2, 1, 4) } };
        int y;

        net_open(&n);
        assert_ok(activations[_i].add(&n.graph, scaled_samples(&n, &dims), &y));
        gradients_are_right(&n, y, activations[_i].name);
    }
}
END_TEST

/* ---- normalisations ---- */

enum { LAYER, RMS, GROUP, INSTANCE, NORMS };

/* [N,C] or [N,C,H] or [N,C,H,W], C in `groups` groups. */
static cek__dims norm_shape(int which, int kind, int64_t *groups)
{
    cek__dims dims = { .rank = kind == INSTANCE ? 3 + which % 2 : 2 + which % 3, .samples = 1, .size = { 1 } };

    *groups = pick(which, 1, 1, 3);
    dims.size[1] = *groups * pick(which, 2, 1, 2);
    for (int i = 2; i < dims.rank; i++)
        dims.size[i] = pick(which, 2 + (uint64_t)i, 1, 3);
    return dims;
}

static int norm_add(net *n, int kind, int x, const cek__dims *dims, int64_t groups)
{
    const double eps = 0.01;
    cek__dims last = { .rank = 1, .size = { dims->size[kind <= RMS ? dims->rank - 1 : 1] } };
    int gamma = parameter(n, last, 0.5, 1.5), beta = kind == RMS ? 0 : parameter(n, last, -1, 1), y;

    if (kind == LAYER)
        assert_ok(cek__layer_norm(&n->graph, x, 1u << (dims->rank - 1), eps, gamma, beta, &y));
    else if (kind == RMS)
        assert_ok(cek__rms_norm(&n->graph, x, 1u << (dims->rank - 1), eps, gamma, &y));
    else if (kind == GROUP)
        assert_ok(cek__group_norm(&n->graph, x, groups, eps, gamma, beta, &y));
    else
        assert_ok(cek__instance_norm(&n->graph, x, eps, gamma, beta, &y));
    return y;
}

/* `size` values in a row are normalised together; value i has the factor of place i / each % places. */
static double norm_by_hand(const double *x, int64_t i, int64_t size, bool centred, double gamma, double beta)
{
    const double *first = x + i / size * size;
    double mean = 0, square = 0;

    for (int64_t k = 0; k < size && centred; k++)
        mean += first[k] / (double)size;
    for (int64_t k = 0; k < size; k++)
        square += (first[k] - mean) * (first[k] - mean) / (double)size;
    return (x[i] - mean) / sqrt(square + 0.01) * gamma + beta;
}

START_TEST(normalisations_have_values)
{
    static net n;
    double out[ROOM];

    for (int which = 0; which < SHAPES; which++) {
        int64_t groups, count;
        const cek__dims dims = norm_shape(which, _i, &groups);
        int64_t channel = cek__dims_elements(&dims, 2, dims.rank, 1), last = dims.size[dims.rank - 1];
        int64_t size = _i <= RMS ? last : _i == GROUP ? dims.size[1] / groups * channel : channel;
        int y;

        net_open(&n);
        y = norm_add(&n, _i, samples(&n, dims), &dims, groups);
        if (dims.rank == 4) { /* images come with their channels last */
            int64_t pixels = cek__dims_elements(&dims, 2, dims.rank, 1);
            cek__image image = { dims.size[1] * (pixels > 1), pixels * (dims.size[1] > 1) };
            double lies[ROOM];

            reordered(n.samples, lies, n.inputs, image, false);
            memcpy(out, n.samples, sizeof out);
            memcpy(n.samples, lies, sizeof lies);
            count = values_of(&n, y, lies);
            memcpy(n.samples, out, sizeof out);
            memcpy(out, lies, sizeof out);
        } else {
            count = values_of(&n, y, out);
        }
        for (int64_t i = 0; i < count; i++) {
            int64_t place = _i <= RMS ? i % last : i / channel % dims.size[1];

            ck_assert_double_eq_tol(out[i],
                                    norm_by_hand(n.samples, i, size, _i != RMS, n.theta[0][place],
                                                 _i == RMS ? 0 : n.theta[1][place]),
                                    1e-13);
        }
    }
}
END_TEST

START_TEST(normalisations_have_gradients)
{
    static net n;

    for (int which = 0; which < SHAPES; which++) {
        int64_t groups;
        const cek__dims dims = norm_shape(which, _i, &groups);

        net_open(&n);
        gradients_are_right(&n, norm_add(&n, _i, scaled_samples(&n, &dims), &dims, groups), "normalisation");
    }
}
END_TEST

START_TEST(norms_refuse_what_does_not_fit)
{
    static net n;
    int x, y;

    net_open(&n);
    x = samples(&n, PER_SAMPLE(6));
    ck_assert_int_eq(cek__group_norm(&n.graph, x, 4, 0, 0, 0, &y), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "6 channels are not 4 groups"));
    ck_assert_int_eq(cek__instance_norm(&n.graph, x, 0, 0, 0, &y), CEK_INVALID);
    ck_assert_int_eq(cek__layer_norm(&n.graph, x, 3, 0, 0, 0, &y), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "would mix samples"));
    net_close(&n);
}
END_TEST

/* ---- softmax ---- */

/* Along each axis of a sample, of images too. */
START_TEST(softmax_and_its_logarithm)
{
    static net n;
    double out[ROOM];

    for (int which = 0; which < SHAPES; which++) {
        const cek__dims dims = { .rank = 3, .samples = 1, .size = { 1, pick(which, 1, 1, 3), pick(which, 2, 1, 5) } };
        int y;

        net_open(&n);
        y = scaled_samples(&n, &dims);
        assert_ok((_i ? cek__log_softmax : cek__softmax)(&n.graph, y, 1 + which % 2, &y));
        ck_assert_mem_eq(n.graph.flows[y].dims.size, dims.size, sizeof dims.size);
        gradients_are_right(&n, y, "softmax");
    }

    for (int axis = 1; axis < 3; axis++) {
        int y;

        net_open(&n);
        assert_ok(cek__view(&n.graph, samples(&n, PER_SAMPLE(6)), &PER_SAMPLE(2, 3), &y));
        assert_ok((_i ? cek__log_softmax : cek__softmax)(&n.graph, y, axis, &y));
        ck_assert_int_eq(values_of(&n, y, out), ROWS * 6);
        for (int i = 0; i < ROWS * 6; i++) {
            double sum = 0;

            for (int k = 0; k < (axis == 1 ? 2 : 3); k++)
                sum += exp(n.samples[axis == 1 ? i / 6 * 6 + k * 3 + i % 3 : i / 3 * 3 + k]);
            ck_assert_double_eq_tol(_i ? exp(out[i]) : out[i], exp(n.samples[i]) / sum, 1e-14);
        }
    }

    net_open(&n);
    ck_assert_int_eq(cek__softmax(&n.graph, samples(&n, PER_SAMPLE(2)), 0, &(int){ 0 }), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "softmax: would mix samples"));
    net_close(&n);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("graph_layers");
    TCase *tcase = tcase_create("graph_layers");

    tcase_add_loop_test(tcase, activations_have_values_and_slopes, 0, sizeof activations / sizeof *activations);
    tcase_add_loop_test(tcase, activations_have_gradients, 0, sizeof activations / sizeof *activations);
    tcase_add_loop_test(tcase, normalisations_have_values, 0, NORMS);
    tcase_add_loop_test(tcase, normalisations_have_gradients, 0, NORMS);
    tcase_add_test(tcase, norms_refuse_what_does_not_fit);
    tcase_add_loop_test(tcase, softmax_and_its_logarithm, 0, 2);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
