/* SPDX-License-Identifier: MIT
 *
 * gradients.c - every backward operation of the reference against central differences of its forward one, in f64.
 *
 * A problem is a number that forward operations make of `x` (the sum of DY * Y, with DY fixed) and
 * the gradient that backward operations make. With steps of 1e-5 differences are good to about
 * 1e-10 relative to the sums involved; 1e-7 is asked.
 */
#include <math.h>

#include "tests/door/door.h"

enum { ROOM = 512 };
#define STEP 1e-5
#define TOLERANCE 1e-7
#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof *(array)))

static door d;
static double dy[ROOM], other[ROOM], third[ROOM]; /* fixed contents */

static void fill(double *to, uint32_t seed)
{
    for (int i = 0; i < ROOM; i++) {
        seed = seed * 1664525 + 1013904223;
        to[i] = (seed >> 8) * 0x1p-23 - 1;
    }
}

static double sum_with_dy(const double *y, uint64_t count)
{
    double sum = 0;
    for (uint64_t i = 0; i < count; i++)
        sum += dy[i] * y[i];
    return sum;
}

static void tanh_of(const double *x, double *y, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        y[i] = tanh(x[i]);
}

/* --- convolution: batch 2, 7 x 6 x 4 channels, 6 channels out, groups, stride, dilation, uneven padding --- */

enum { XS = 2 * 7 * 6 * 4, WS = 6 * 3 * 2 * 2, YS = 2 * 4 * 4 * 6 };

/* clang-format off */
static cek_conv_desc conv(uint32_t kind)
{
    return (cek_conv_desc){
        .op = { .size = sizeof(cek_conv_desc), .kind = kind }, .spatial = 2, .groups = 2, .batch = 2, .in_channels = 4,
        .out_channels = 6, .in = { 7, 6 }, .kernel = { 3, 2 }, .stride = { 2, 1 },
        .dilation = { 1, 3 }, .pad_lo = { 1, 0 },
        .pad_hi = { 1, 1 }, .x_type = CEK_F64, .w_type = CEK_F64, .y_type = CEK_F64,
    };
}
/* clang-format on */

static double conv_forward(const double *x, const double *w, const double *bias)
{
    double y[YS];
    cek_conv_desc desc = conv(CEK_OP_CONV_FORWARD);
    const array arrays[] = { IN(x, XS * 8), IN(w, WS * 8), OUT(y, sizeof y), IN(bias, 6 * 8) };
    door_run(&d, &desc.op, arrays, 4);
    return sum_with_dy(y, YS);
}

/* x: what tanh makes the image of, so that the fused derivative takes part. */
static double conv_x(const double *x)
{
    double image[XS];
    tanh_of(x, image, XS);
    return conv_forward(image, other, third);
}

static void conv_x_gradient(const double *x, double *g)
{
    double image[XS];
    const cek_epilogue epilogue = { .size = sizeof epilogue, .act_grad = CEK_ACT_TANH };
    cek_conv_desc desc = conv(CEK_OP_CONV_BACKWARD_DATA);
    desc.op.epilogue = &epilogue;
    tanh_of(x, image, XS);
    const array arrays[] = { IN(dy, YS * 8), IN(other, WS * 8), OUT(g, XS * 8), IN(image, XS * 8) };
    door_run(&d, &desc.op, arrays, 4);
}

/* x: weights and then biases. */
static double conv_w(const double *x)
{
    return conv_forward(other, x, x + WS);
}

static void conv_w_gradient(const double *x, double *g)
{
    (void)x;
    cek_conv_desc desc = conv(CEK_OP_CONV_BACKWARD_WEIGHTS);
    const array arrays[] = { IN(other, XS * 8), IN(dy, YS * 8), OUT(g, WS * 8), OUT(g + WS, 6 * 8) };
    door_run(&d, &desc.op, arrays, 4);
}

/* --- linear layer: Y = relu(X) W + bias, 5 x 4 times 4 x 3 ------------------------------------ */

enum { M = 5, K = 4, N = 3 };

/* clang-format off */
static cek_gemm_desc gemm(uint64_t m, uint64_t n, uint64_t k, uint32_t trans)
{
    return (cek_gemm_desc){
        .op = { .size = sizeof(cek_gemm_desc), .kind = CEK_OP_GEMM }, .m = m, .n = n, .k = k, .batch = 1,
        .lda = (int64_t)(trans & CEK_GEMM_TRANS_A ? m : k), .ldb = (int64_t)(trans & CEK_GEMM_TRANS_B ? k : n),
        .ldc = (int64_t)n, .a_type = CEK_F64, .b_type = CEK_F64, .c_type = CEK_F64, .trans = trans,
    };
}
/* clang-format on */

static double linear(const double *x, const double *w, const double *bias)
{
    double h[M * K], y[M * N];
    for (int i = 0; i < M * K; i++)
        h[i] = x[i] > 0 ? x[i] : 0;
    cek_gemm_desc desc = gemm(M, N, K, 0);
    const array arrays[] = { IN(h, sizeof h), IN(w, K * N * 8), OUT(y, sizeof y), IN(bias, N * 8) };
    door_run(&d, &desc.op, arrays, 4);
    return sum_with_dy(y, M * N);
}

static double linear_x(const double *x)
{
    return linear(x, other, third);
}

static void linear_x_gradient(const double *x, double *g)
{
    double h[M * K];
    for (int i = 0; i < M * K; i++)
        h[i] = x[i] > 0 ? x[i] : 0;
    const cek_epilogue epilogue = { .size = sizeof epilogue, .act_grad = CEK_ACT_RELU };
    cek_gemm_desc desc = gemm(M, K, N, CEK_GEMM_TRANS_B);
    desc.op.epilogue = &epilogue;
    const array arrays[] = { IN(dy, M * N * 8), IN(other, K * N * 8),
                             OUT(g, M * K * 8), [CEK_GEMM_ACT_REF] = IN(h, sizeof h) };
    door_run(&d, &desc.op, arrays, COUNT(arrays));
}

/* x: bias and then weights. dW^T = dY^T H, and the bias gradient is the row sums of dY^T. */
static double linear_w(const double *x)
{
    return linear(other, x + N, x);
}

static void linear_w_gradient(const double *x, double *g)
{
    double h[M * K], transposed[N * K];
    (void)x;
    for (int i = 0; i < M * K; i++)
        h[i] = other[i] > 0 ? other[i] : 0;
    cek_gemm_desc desc = gemm(N, K, M, CEK_GEMM_TRANS_A);
    const array arrays[] = { IN(dy, M * N * 8), IN(h, sizeof h),
                             OUT(transposed, sizeof transposed), [CEK_GEMM_A_SUM] = OUT(g, N * 8) };
    door_run(&d, &desc.op, arrays, COUNT(arrays));
    for (int k = 0; k < K; k++)
        for (int n = 0; n < N; n++)
            g[N + k * N + n] = transposed[n * K + k];
}

/* --- pools: 2 x 6 x 5 x 3 channels, windows that overlap -------------------------------------- */

enum { POOL_X = 2 * 6 * 5 * 3, POOL_Y = 2 * 4 * 3 * 3 };

/* clang-format off */
static cek_pool_desc pool(uint32_t mode)
{
    return (cek_pool_desc){
        .op = { .size = sizeof(cek_pool_desc), .kind = CEK_OP_POOL_FORWARD }, .mode = mode,
            .spatial = 2, .type = CEK_F64,
        .batch = 2, .channels = 3, .in = { 6, 5 }, .kernel = { 3, 3 }, .stride = { 2, 2 },
        .pad_lo = { 2, 1 }, .pad_hi = { 2, 1 },
    };
}
/* clang-format on */

static double pool_of(uint32_t mode, const double *x, double *g)
{
    double y[POOL_Y];
    char reserve[4096];
    cek_pool_desc desc = pool(mode);
    cek_op_info info;
    void *kept = mode == CEK_POOL_MAX ? reserve : NULL;
    array forward[] = { IN(x, POOL_X * 8), OUT(y, sizeof y), OUT(kept, 0) };
    cek_op *op = door_op(&d, &desc.op, forward, 3, &info);
    ck_assert_uint_le(info.reserve_bytes, sizeof reserve);
    forward[2].bytes = info.reserve_bytes;
    door_op_run(&d, op, &info, forward, 3);
    if (g) {
        desc.op.kind = CEK_OP_POOL_BACKWARD;
        desc.op.forward = kept ? op : NULL;
        const array backward[] = { IN(dy, sizeof y), OUT(g, POOL_X * 8), IN(kept, info.reserve_bytes) };
        door_run(&d, &desc.op, backward, 3);
    }
    d.plugin.op_destroy(op);
    return sum_with_dy(y, POOL_Y);
}

static double max_pool(const double *x)
{
    return pool_of(CEK_POOL_MAX, x, NULL);
}

static void max_pool_gradient(const double *x, double *g)
{
    pool_of(CEK_POOL_MAX, x, g);
}

static double average_pool(const double *x)
{
    return pool_of(CEK_POOL_AVERAGE, x, NULL);
}

static void average_pool_gradient(const double *x, double *g)
{
    pool_of(CEK_POOL_AVERAGE, x, g);
}

/* --- losses: 6 rows of 4, two to a sample, the last sample is padding ------------------------- */

enum { ROWS = 6, COLUMNS = 4 };
static const int32_t labels[ROWS] = { 3, 0, 1, 1, 2, 0 };
static const float weights[ROWS] = { 1, 0.5f, 2, 0, 1, 1 };
static const cek_batch_block batch = { .rows_valid = 2 };
/* Chosen so that the gradient is the loss's own: loss_scale * inv_n = 1, both exact. */
static const cek_step_block step = { .inv_n = { 0.125f, 0 }, .loss_scale = { 8, 0 } };

static double cross_entropy_of(const double *x, double *g)
{
    double loss;
    cek_cross_entropy_desc desc = { .op = { .size = sizeof desc, .kind = CEK_OP_CROSS_ENTROPY },
                                    .rows = ROWS,
                                    .classes = COLUMNS,
                                    .rows_per_sample = 2,
                                    .type = CEK_F64 };
    const array arrays[] = {
        [CEK_CROSS_ENTROPY_LOGITS] = IN(x, ROWS * COLUMNS * 8),
        [CEK_CROSS_ENTROPY_LABELS] = IN(labels, sizeof labels),
        [CEK_CROSS_ENTROPY_WEIGHTS] = IN(weights, sizeof weights),
        [CEK_CROSS_ENTROPY_STEP] = IN(&step, sizeof step),
        [CEK_CROSS_ENTROPY_BATCH] = IN(&batch, sizeof batch),
        [CEK_CROSS_ENTROPY_DLOGITS] = OUT(g, ROWS * COLUMNS * 8),
        [CEK_CROSS_ENTROPY_LOSS] = OUT(&loss, sizeof loss),
    };
    door_run(&d, &desc.op, arrays, COUNT(arrays));
    return loss;
}

static double cross_entropy(const double *x)
{
    return cross_entropy_of(x, NULL);
}

static void cross_entropy_gradient(const double *x, double *g)
{
    cross_entropy_of(x, g);
}

static double squared_error_of(const double *x, double *g)
{
    double loss;
    cek_squared_error_desc desc = { .op = { .size = sizeof desc, .kind = CEK_OP_SQUARED_ERROR },
                                    .rows = ROWS,
                                    .columns = COLUMNS,
                                    .rows_per_sample = 2,
                                    .type = CEK_F64 };
    const array arrays[] = {
        [CEK_SQUARED_ERROR_PREDICTION] = IN(x, ROWS * COLUMNS * 8),
        [CEK_SQUARED_ERROR_TARGET] = IN(other, ROWS * COLUMNS * 8),
        [CEK_SQUARED_ERROR_WEIGHTS] = IN(weights, sizeof weights),
        [CEK_SQUARED_ERROR_STEP] = IN(&step, sizeof step),
        [CEK_SQUARED_ERROR_BATCH] = IN(&batch, sizeof batch),
        [CEK_SQUARED_ERROR_DPREDICTION] = OUT(g, ROWS * COLUMNS * 8),
        [CEK_SQUARED_ERROR_LOSS] = OUT(&loss, sizeof loss),
    };
    door_run(&d, &desc.op, arrays, COUNT(arrays));
    return loss;
}

static double squared_error(const double *x)
{
    return squared_error_of(x, NULL);
}

static void squared_error_gradient(const double *x, double *g)
{
    squared_error_of(x, g);
}

/* --- dropout: backward is the same operation on DY -------------------------------------------- */

static void dropout_of(const double *x, double *y)
{
    const cek_step_block keyed = { .random_key = 77 };
    cek_dropout_desc desc = { .op = { .size = sizeof desc, .kind = CEK_OP_DROPOUT },
                              .rows = 6,
                              .columns = 7,
                              .rows_per_sample = 3,
                              .scale = 1 / (1 - 0.25),
                              .threshold = 1u << 30,
                              .type = CEK_F64 };
    const array arrays[] = { IN(x, 42 * 8), OUT(y, 42 * 8), IN(&keyed, sizeof keyed) };
    door_run(&d, &desc.op, arrays, 3);
}

static double dropout(const double *x)
{
    double y[42];
    dropout_of(x, y);
    return sum_with_dy(y, 42);
}

static void dropout_gradient(const double *x, double *g)
{
    (void)x;
    dropout_of(dy, g);
}

/* --- activations ------------------------------------------------------------------------------ */

/* clang-format off */
static void pointwise(uint32_t code, const double *a, const double *b, double *y)
{
    const cek_pointwise_input input = { .type = CEK_F64, .strides = { 1 } }, inputs[] = { input, input };
    const cek_pointwise_instruction instruction = { .code = code, .b = b ? 1 : 0 };
    cek_pointwise_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_POINTWISE }, .rank = 1, .out_type = CEK_F64, .shape = { 100 },
        .out_strides = { 1 }, .inputs = inputs, .instructions = &instruction, .input_count = b ? 2 : 1,
        .input_size = sizeof input, .instruction_count = 1, .instruction_size = sizeof instruction,
    };
    const array arrays[] = { IN(a, 800), IN(b, 800), [CEK_POINTWISE_OUT] = OUT(y, 800) };
    door_run(&d, &desc.op, arrays, COUNT(arrays));
}
/* clang-format on */

#define ACTIVATION(name, code, reads)                       \
    static double name(const double *x)                     \
    {                                                       \
        double y[100];                                      \
        pointwise(code, x, NULL, y);                        \
        return sum_with_dy(y, 100);                         \
    }                                                       \
    static void name##_gradient(const double *x, double *g) \
    {                                                       \
        double y[100];                                      \
        pointwise(code, x, NULL, y);                        \
        pointwise(code##_GRAD, dy, reads, g);               \
    }
ACTIVATION(relu, CEK_PW_RELU, y)
ACTIVATION(tangent, CEK_PW_TANH, y)
ACTIVATION(sigmoid, CEK_PW_SIGMOID, y)
ACTIVATION(gelu, CEK_PW_GELU, x)

/* ---------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    uint64_t count;
    double (*forward)(const double *x);
    void (*gradient)(const double *x, double *g);
} problems[] = {
#define PROBLEM(name, count)                \
    {                                       \
#name, count, name, name##_gradient \
    }
    PROBLEM(conv_x, XS),
    PROBLEM(conv_w, WS + 6),
    PROBLEM(linear_x, M *K),
    PROBLEM(linear_w, N + K * N),
    PROBLEM(max_pool, POOL_X),
    PROBLEM(average_pool, POOL_X),
    PROBLEM(cross_entropy, ROWS *COLUMNS),
    PROBLEM(squared_error, ROWS *COLUMNS),
    PROBLEM(dropout, 42),
    PROBLEM(relu, 100),
    PROBLEM(tangent, 100),
    PROBLEM(sigmoid, 100),
    PROBLEM(gelu, 100),
};

START_TEST(gradient_is_the_slope)
{
    double x[ROOM], g[ROOM] = { 0 };
    int moving = 0;
    door_open(&d, "reference", NULL);
    fill(dy, 1);
    fill(other, 2);
    fill(third, 3);
    fill(x, 4);
    problems[_i].gradient(x, g);
    for (uint64_t i = 0; i < problems[_i].count; i++) {
        double at = x[i];
        x[i] = at + STEP;
        double above = problems[_i].forward(x);
        x[i] = at - STEP;
        double below = problems[_i].forward(x), slope = (above - below) / (2 * STEP);
        x[i] = at;
        ck_assert_msg(fabs(slope - g[i]) <= TOLERANCE * (1 + fabs(slope)),
                      "%s: slope %llu is %.12g, the gradient %.12g", problems[_i].name, (unsigned long long)i, slope,
                      g[i]);
        moving += fabs(slope) > 1e-3;
    }
    ck_assert_int_gt(moving, (int)problems[_i].count / 5); /* not zeros against zeros */
    door_close(&d);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gradients");
    TCase *cases = tcase_create("central differences");
    tcase_add_loop_test(cases, gradient_is_the_slope, 0, (int)COUNT(problems));
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
