/* tensor_math.c - tests of what is computed with tensors: every operation against plain loops on every device
 * present. */
#include <float.h>

#include "tensors.h"

/* ---- elementwise ---- */

typedef cek_status (*binary_fn)(const cek_tensor *, const cek_tensor *, cek_tensor **);

static double plain(int op, double a, double b)
{
    return op == 0 ? a + b : op == 1 ? a - b : op == 2 ? a * b : a / b;
}

static const struct {
    int a_rank, b_rank;
    int64_t a[8], b[8];
} broadcasts[] = {
    { 2, 2, { 2, 3 }, { 2, 3 } },
    { 2, 1, { 2, 3 }, { 3 } },
    { 1, 2, { 3 }, { 2, 3 } },
    { 3, 2, { 4, 1, 3 }, { 2, 1 } },
    { 0, 2, { 0 }, { 2, 2 } },
    { 0, 0, { 0 }, { 0 } },
    { 1, 1, { 1 }, { 1 } },
    { 4, 4, { 2, 3, 4, 5 }, { 1, 3, 1, 5 } },
    { 4, 4, { 2, 3, 4, 5 }, { 2, 1, 1, 1 } },
    { 8, 8, { 2, 1, 3, 1, 2, 1, 2, 1 }, { 1, 2, 1, 2, 1, 2, 1, 3 } },
    { 8, 8, { 2, 2, 2, 2, 2, 2, 2, 2 }, { 2, 1, 2, 1, 2, 1, 2, 1 } },
};

/* The element of an operand that belongs to element n of the result: index by index, as NumPy's rule is written. */
static int64_t source(int64_t n, int rank, const int64_t *shape, int from_rank, const int64_t *from)
{
    int64_t at = 0, stride = 1;

    for (int back = 1; back <= rank; back++) {
        int64_t i = n % shape[rank - back];

        n /= shape[rank - back];
        if (back <= from_rank) {
            at += (from[from_rank - back] == 1 ? 0 : i) * stride;
            stride *= from[from_rank - back];
        }
    }
    return at;
}

START_TEST(arithmetic_broadcasts_as_plain_loops_do)
{
    static const binary_fn ops[] = { cek_add, cek_sub, cek_mul, cek_div };
    static const char *const names[] = { "add", "sub", "mul", "div" };
    const int64_t *as = broadcasts[_i].a, *bs = broadcasts[_i].b;
    int ar = broadcasts[_i].a_rank, br = broadcasts[_i].b_rank, rank = ar > br ? ar : br;
    int64_t shape[8];
    double a[MAX], b[MAX], expected[MAX], tolerance[MAX];

    for (int back = 1; back <= rank; back++) {
        int64_t da = back <= ar ? as[ar - back] : 1, db = back <= br ? bs[br - back] : 1;

        shape[rank - back] = da > db ? da : db;
    }
    FOR_EACH_DEVICE(device)
    {
        cek_tensor *x = whole_tensor(device, 1, ar, as, a), *y = whole_tensor(device, 2, br, bs, b), *z;

        for (int op = 0; op < 4; op++) {
            for (int64_t n = 0; n < count_of(rank, shape); n++) {
                expected[n] = plain(op, a[source(n, rank, shape, ar, as)], b[source(n, rank, shape, br, bs)]);
                tolerance[n] = op == 3 ? fabs(expected[n]) * FLT_EPSILON : 0; /* division: within one unit */
            }
            assert_ok(ops[op](x, y, &z));
            assert_holds(z, rank, shape, expected, tolerance, names[op]);
        }
        cek_tensor_free(x);
        cek_tensor_free(y);
    }
}
END_TEST

static double relu(double x)
{
    return x > 0 ? x : x <= 0 ? 0 : x;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double gelu(double x)
{
    return x / 2 * erfc(-x / sqrt(2)); /* NaN for -infinity, as the definition gives */
}

static double negative(double x)
{
    return -x;
}

static const struct {
    const char *name;
    cek_status (*fn)(const cek_tensor *, cek_tensor **);
    double (*plain)(double);
    bool exact;
} unaries[] = {
    { "neg", cek_neg, negative, true },
    { "relu", cek_relu, relu, true },
    { "exp", cek_exp, exp, false },
    { "log", cek_log, log, false },
    { "sqrt", cek_sqrt, sqrt, false },
    { "tanh", cek_tanh, tanh, false },
    { "sigmoid", cek_sigmoid, sigmoid, false },
    { "gelu", cek_gelu, gelu, false },
};

/* An error of eight roundings in the argument and in the result; gelu also loses what cancels for negative arguments.
 */
static double unary_tolerance(int op, double x, double eps)
{
    double y = unaries[op].plain(x), d = fabs(x) * 8 * eps;
    double moved = fmax(fabs(unaries[op].plain(x + d) - y), fabs(unaries[op].plain(x - d) - y));

    if (unaries[op].exact || !isfinite(y) || !isfinite(moved))
        return 0;
    return moved + 8 * eps * fmax(fabs(y), unaries[op].plain == gelu ? fabs(x) : 0) + FLT_MIN;
}

START_TEST(functions_of_one_value_equal_those_of_the_c_library)
{
    static const double special[] = { 0.0,  -0.0,  1,    -1, 0.5, -0.5, 3,    -3,    10,       -10, 20.25,    -20.25,
                                      1e-3, -1e-3, 1e-6, 80, -80, 0.1,  7.75, -7.75, INFINITY, NAN, -INFINITY };
    enum { N = sizeof special / sizeof *special };
    double expected[N], tolerance[N];
    double x32[N];

    for (int i = 0; i < N; i++)
        x32[i] = (float)special[i];
    FOR_EACH_DEVICE(device)
    {
        for (int wide = 0; wide <= (strncmp(cek_device_name(device), "reference", 9) == 0); wide++) {
            const double *in = wide ? special : x32;
            cek_tensor *x = tensor_of(device, wide ? CEK_F64 : CEK_F32, 1, (int64_t[]){ N }, in), *y;

            for (int i = 0; i < N; i++) {
                expected[i] = unaries[_i].plain(in[i]);
                tolerance[i] = unary_tolerance(_i, in[i], wide ? DBL_EPSILON / 2 : FLT_EPSILON / 2);
            }
            assert_ok(unaries[_i].fn(x, &y));
            ck_assert_uint_eq(cek_tensor_type(y), wide ? CEK_F64 : CEK_F32);
            assert_holds(y, 1, (int64_t[]){ N }, expected, tolerance, unaries[_i].name);
            cek_tensor_free(x);
        }
    }
}
END_TEST

START_TEST(scale_multiplies_and_then_adds)
{
    double a[6], expected[6];
    cek_tensor *y;

    FOR_EACH_DEVICE(device)
    {
        cek_tensor *x = whole_tensor(device, 3, 2, (int64_t[]){ 2, 3 }, a);

        for (int i = 0; i < 6; i++)
            expected[i] = a[i] * 0.5 - 3;
        assert_ok(cek_scale(x, 0.5, -3, &y));
        assert_holds(y, 2, (int64_t[]){ 2, 3 }, expected, NULL, "scale");
        cek_tensor_free(x);
    }
}
END_TEST

/* ---- reductions ---- */

static const struct {
    int count;
    int axes[3];
    unsigned mask;
} reductions[] = {
    { 0, { 0 }, 7 },    { 1, { 0 }, 1 },     { 1, { 1 }, 2 },       { 1, { -1 }, 4 },
    { 2, { 0, 2 }, 5 }, { 2, { -1, 1 }, 6 }, { 3, { 2, 0, 1 }, 7 },
};

START_TEST(reductions_equal_plain_loops_over_their_axes)
{
    static const int64_t shape[] = { 3, 4, 5 };
    int64_t rest[3];
    unsigned mask = reductions[_i].mask;
    double a[60], sum[60], max[60];
    int rank = 0, elements = 1;
    cek_tensor *y;

    for (int i = 0; i < 3; i++) {
        if ((mask >> i & 1) == 0)
            rest[rank++] = shape[i];
        else
            elements *= (int)shape[i];
    }
    FOR_EACH_DEVICE(device)
    {
        cek_tensor *x = whole_tensor(device, 4, 3, shape, a);
        double mean[60], tolerance[60];

        for (int i = 0; i < 60; i++)
            sum[i] = 0, max[i] = -INFINITY;
        for (int i = 0; i < 60; i++) {
            int64_t at = 0, index[3] = { i / 20, i / 5 % 4, i % 5 };

            for (int k = 0; k < 3; k++)
                at = (mask >> k & 1) == 0 ? at * shape[k] + index[k] : at;
            sum[at] += a[i];
            max[at] = fmax(max[at], a[i]);
        }
        for (int i = 0; i < 60; i++) {
            mean[i] = sum[i] / elements;
            tolerance[i] = fabs(mean[i]) * FLT_EPSILON;
        }
        assert_ok(cek_sum(x, reductions[_i].count, reductions[_i].axes, &y));
        assert_holds(y, rank, rest, sum, NULL, "sum");
        assert_ok(cek_max(x, reductions[_i].count, reductions[_i].axes, &y));
        assert_holds(y, rank, rest, max, NULL, "max");
        assert_ok(cek_mean(x, reductions[_i].count, reductions[_i].axes, &y));
        assert_holds(y, rank, rest, mean, tolerance, "mean");
        cek_tensor_free(x);
    }
}
END_TEST

START_TEST(reductions_of_one_element_and_of_nan)
{
    FOR_EACH_DEVICE(device)
    {
        cek_tensor *x = tensor_of(device, CEK_F32, 0, NULL, (double[]){ 7 }), *y;

        assert_ok(cek_sum(x, 0, NULL, &y));
        assert_holds(y, 0, NULL, (double[]){ 7 }, NULL, "sum of a scalar");
        assert_fails(cek_sum(x, -1, (int[]){ 0 }, &y), CEK_INVALID, "cek_sum", "-1 axes");
        cek_tensor_free(x);
        x = tensor_of(device, CEK_F32, 1, (int64_t[]){ 3 }, (double[]){ 1, NAN, 2 });
        assert_ok(cek_max(x, 0, NULL, &y));
        assert_holds(y, 0, NULL, (double[]){ NAN }, NULL, "max with NaN");
        cek_tensor_free(x);
    }
}
END_TEST

START_TEST(softmax_sums_to_one_in_every_row)
{
    enum { ROWS = 6, COLUMNS = 7 };
    double a[ROWS * COLUMNS], expected[ROWS * COLUMNS], tolerance[ROWS * COLUMNS];

    for (int i = 0; i < ROWS * COLUMNS; i++)
        a[i] = 100 * (i % 5) + whole(5, i) / 4; /* exp() of it alone would overflow */
    for (int r = 0; r < ROWS; r++) {
        double largest = -INFINITY, sum = 0;

        for (int c = 0; c < COLUMNS; c++)
            largest = fmax(largest, a[r * COLUMNS + c]);
        for (int c = 0; c < COLUMNS; c++)
            sum += exp(a[r * COLUMNS + c] - largest);
        for (int c = 0; c < COLUMNS; c++) {
            expected[r * COLUMNS + c] = exp(a[r * COLUMNS + c] - largest) / sum;
            tolerance[r * COLUMNS + c] = 16 * FLT_EPSILON * expected[r * COLUMNS + c] + FLT_MIN;
        }
    }
    FOR_EACH_DEVICE(device)
    {
        cek_tensor *x = tensor_of(device, CEK_F32, 3, (int64_t[]){ 2, 3, COLUMNS }, a), *y;

        assert_ok(cek_softmax(x, &y));
        assert_holds(y, 3, (int64_t[]){ 2, 3, COLUMNS }, expected, tolerance, "softmax");
        cek_tensor_free(x);
        x = tensor_of(device, CEK_F32, 0, NULL, (double[]){ 7 });
        assert_ok(cek_softmax(x, &y));
        assert_holds(y, 0, NULL, (double[]){ 1 }, NULL, "softmax of a scalar");
        cek_tensor_free(x);
    }
}
END_TEST

/* ---- products ---- */

static const struct {
    int a_rank, b_rank;
    int64_t a[4], b[4];
    int c_rank;
    int64_t c[4];
} products[] = {
    { 2, 2, { 3, 4 }, { 4, 5 }, 2, { 3, 5 } },
    { 2, 2, { 1, 1 }, { 1, 1 }, 2, { 1, 1 } },
    { 2, 2, { 17, 33 }, { 33, 19 }, 2, { 17, 19 } },
    { 3, 2, { 2, 3, 4 }, { 4, 5 }, 3, { 2, 3, 5 } },
    { 2, 3, { 3, 4 }, { 2, 4, 5 }, 3, { 2, 3, 5 } },
    { 3, 3, { 2, 3, 4 }, { 2, 4, 5 }, 3, { 2, 3, 5 } },
    { 4, 4, { 2, 3, 2, 4 }, { 2, 3, 4, 3 }, 4, { 2, 3, 2, 3 } },
    { 4, 2, { 2, 3, 2, 4 }, { 4, 1 }, 4, { 2, 3, 2, 1 } },
};

START_TEST(matmul_equals_three_loops_for_every_kind_of_batch)
{
    const int64_t *as = products[_i].a, *bs = products[_i].b, *cs = products[_i].c;
    int ar = products[_i].a_rank, br = products[_i].b_rank, cr = products[_i].c_rank;
    int64_t m = as[ar - 2], k = as[ar - 1], n = bs[br - 1], batch = count_of(cr - 2, cs);
    double a[MAX], b[MAX], c[MAX];

    FOR_EACH_DEVICE(device)
    {
        cek_tensor *x = whole_tensor(device, 6, ar, as, a), *y = whole_tensor(device, 7, br, bs, b), *z;

        for (int64_t t = 0; t < batch; t++)
            for (int64_t i = 0; i < m; i++)
                for (int64_t j = 0; j < n; j++) {
                    double sum = 0;

                    for (int64_t p = 0; p < k; p++)
                        sum += a[(ar > 2 ? t * m * k : 0) + i * k + p] * b[(br > 2 ? t * k * n : 0) + p * n + j];
                    c[(t * m + i) * n + j] = sum;
                }
        assert_ok(cek_matmul(x, y, &z));
        assert_holds(z, cr, cs, c, NULL, "matmul");
        cek_tensor_free(x);
        cek_tensor_free(y);
    }
}
END_TEST

static const struct {
    int64_t n, h, w, in, out, kh, kw;
    cek_conv2d_options o;
    bool bias;
} convolutions[] = {
    { 2, 5, 6, 3, 4, 3, 3, { 0 }, false },
    { 1, 5, 5, 2, 3, 3, 3, { .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1 }, true },
    { 2, 7, 6, 4, 6, 3, 2, { .groups = 2, .stride_h = 2, .pad_bottom = 1 }, true },
    { 1, 9, 8, 4, 4, 3, 3, { .groups = 4, .dilation_h = 2, .dilation_w = 2, .pad_left = 3 }, false },
    { 3, 4, 4, 5, 2, 1, 1, { .stride_w = 3 }, true },
    { 1, 2, 2, 1, 1, 2, 2, { 0 }, false },
};

static double conv_at(int c, const double *x, const double *w, int64_t n, int64_t y, int64_t z, int64_t o)
{
    int64_t in = convolutions[c].in, groups = convolutions[c].o.groups ? convolutions[c].o.groups : 1,
            per = in / groups;
    int64_t sh = convolutions[c].o.stride_h ? convolutions[c].o.stride_h : 1;
    int64_t sw = convolutions[c].o.stride_w ? convolutions[c].o.stride_w : 1;
    int64_t dh = convolutions[c].o.dilation_h ? convolutions[c].o.dilation_h : 1;
    int64_t dw = convolutions[c].o.dilation_w ? convolutions[c].o.dilation_w : 1;
    int64_t group = o / (convolutions[c].out / groups);
    double sum = 0;

    for (int64_t i = 0; i < convolutions[c].kh; i++)
        for (int64_t j = 0; j < convolutions[c].kw; j++) {
            int64_t h = y * sh + i * dh - convolutions[c].o.pad_top, v = z * sw + j * dw - convolutions[c].o.pad_left;

            for (int64_t k = 0; k < per && h >= 0 && h < convolutions[c].h && v >= 0 && v < convolutions[c].w; k++)
                sum += x[((n * convolutions[c].h + h) * convolutions[c].w + v) * in + group * per + k] *
                       w[((o * convolutions[c].kh + i) * convolutions[c].kw + j) * per + k];
        }
    return sum;
}

START_TEST(conv2d_equals_plain_loops)
{
    int c = _i;
    cek_conv2d_options o = convolutions[c].o;
    int64_t g = o.groups ? o.groups : 1, dh = o.dilation_h ? o.dilation_h : 1, dw = o.dilation_w ? o.dilation_w : 1;
    int64_t sh = o.stride_h ? o.stride_h : 1, sw = o.stride_w ? o.stride_w : 1;
    int64_t oh = (convolutions[c].h + o.pad_top + o.pad_bottom - dh * (convolutions[c].kh - 1) - 1) / sh + 1;
    int64_t ow = (convolutions[c].w + o.pad_left + o.pad_right - dw * (convolutions[c].kw - 1) - 1) / sw + 1;
    int64_t xs[] = { convolutions[c].n, convolutions[c].h, convolutions[c].w, convolutions[c].in };
    int64_t ws[] = { convolutions[c].out, convolutions[c].kh, convolutions[c].kw, convolutions[c].in / g };
    int64_t ys[] = { convolutions[c].n, oh, ow, convolutions[c].out };
    double x[MAX], w[MAX], b[16], expected[MAX];

    o.size = sizeof o;
    FOR_EACH_DEVICE(device)
    {
        cek_tensor *tx = whole_tensor(device, 8, 4, xs, x), *tw = whole_tensor(device, 9, 4, ws, w), *ty;
        cek_tensor *tb = whole_tensor(device, 10, 1, ws, b);

        for (int64_t i = 0, n = 0; n < ys[0]; n++)
            for (int64_t y = 0; y < oh; y++)
                for (int64_t z = 0; z < ow; z++)
                    for (int64_t k = 0; k < ys[3]; k++, i++)
                        expected[i] = conv_at(c, x, w, n, y, z, k) + (convolutions[c].bias ? b[k] : 0);
        assert_ok(cek_conv2d(tx, tw, convolutions[c].bias ? tb : NULL, _i == 0 ? NULL : &o, &ty));
        /* A transform may be used by default: whole numbers are then rounded, not the sums of them. */
        double tolerance[MAX];
        for (int64_t i = 0; i < count_of(4, ys); i++)
            tolerance[i] = 1e-3;
        assert_holds(ty, 4, ys, expected, tolerance, "conv2d");
        cek_tensor_free(tx);
        cek_tensor_free(tw);
        cek_tensor_free(tb);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tensor_math");
    TCase *tc = tcase_create("tensor_math");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, arithmetic_broadcasts_as_plain_loops_do, 0, sizeof broadcasts / sizeof *broadcasts);
    tcase_add_loop_test(tc, functions_of_one_value_equal_those_of_the_c_library, 0, sizeof unaries / sizeof *unaries);
    tcase_add_test(tc, scale_multiplies_and_then_adds);
    tcase_add_loop_test(tc, reductions_equal_plain_loops_over_their_axes, 0, sizeof reductions / sizeof *reductions);
    tcase_add_test(tc, reductions_of_one_element_and_of_nan);
    tcase_add_test(tc, softmax_sums_to_one_in_every_row);
    tcase_add_loop_test(tc, matmul_equals_three_loops_for_every_kind_of_batch, 0, sizeof products / sizeof *products);
    tcase_add_loop_test(tc, conv2d_equals_plain_loops, 0, sizeof convolutions / sizeof *convolutions);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
