/* every.c - runs operations whose small shapes reach every kernel of kernels/gpu and
 * kernels/opencl, on the first OpenCL device, and holds the results against the reference: for a
 * driver that looks for mistakes while it is slow (grind.sh). */
#include <math.h>
#include <stdbool.h>

#include "tests/door/door.h"

enum { ROOM = 8192 }; /* elements of any operand */
static const char *const options[] = { "opencl_cache", "off", NULL };
static door device, oracle;
static int wrong;

/* --- operands --------------------------------------------------------------------------------- */

/* Numbers that repeat nowhere soon, in [-1, 1). */
static void values_make(float *to, uint64_t count, uint32_t seed)
{
    for (uint64_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        to[i] = (float)(seed >> 8) * 0x1p-23f - 1.0f;
    }
}

/* Runs `desc` on both with the same operands; `outs` is the mask of outputs, all f32 but those of `other`. */
static void both_run(const char *name, cek_op_desc *desc, const array *given, uint32_t count, uint64_t outs,
                     uint64_t other)
{
    static unsigned char results[2][CEK_SLOT_MAX][4 * ROOM];
    door *const doors[] = { &device, &oracle };
    for (int side = 0; side < 2; side++) {
        array arrays[CEK_SLOT_MAX] = { { 0 } };
        for (uint32_t i = 0; i < count; i++) {
            arrays[i] = given[i];
            if (!(outs >> i & 1) || !given[i].bytes)
                continue;
            ck_assert_uint_le(given[i].bytes, sizeof results[0][0]);
            memcpy(results[side][i], given[i].in, given[i].bytes);
            arrays[i].in = NULL;
            arrays[i].out = results[side][i];
        }
        door_run(doors[side], desc, arrays, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        const float *got = (const float *)results[0][i], *want = (const float *)results[1][i];
        if (!(outs >> i & 1) || !given[i].bytes)
            continue;
        if (other >> i & 1) {
            if (memcmp(got, want, given[i].bytes)) {
                printf("%s: operand %u differs\n", name, i);
                wrong++;
            }
            continue;
        }
        for (uint64_t e = 0; e < given[i].bytes / 4; e++)
            if (!(fabsf(got[e] - want[e]) <= 1e-4f * (1 + fabsf(want[e])))) {
                printf("%s: operand %u[%llu] is %g, not %g\n", name, i, (unsigned long long)e, (double)got[e],
                       (double)want[e]);
                wrong++;
                break;
            }
    }
}

static float pool_of_values[9][ROOM];
/* `count` floats as operand `i`. */
#define F(i, count) IN(pool_of_values[i], 4 * (count))

/* --- products --------------------------------------------------------------------------------- */

static void gemm(uint64_t m, uint64_t n, uint64_t k, uint32_t trans, cek_activation act, cek_activation grad,
                 uint64_t accumulate)
{
    const cek_epilogue epilogue = { .size = sizeof epilogue, .activation = act, .act_grad = grad };
    cek_gemm_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_GEMM, .accumulate = accumulate, .epilogue = &epilogue },
        .m = m,
        .n = n,
        .k = k,
        .batch = 1,
        .lda = (int64_t)(trans & CEK_GEMM_TRANS_A ? m : k),
        .ldb = (int64_t)(trans & CEK_GEMM_TRANS_B ? k : n),
        .ldc = (int64_t)n,
        .a_type = CEK_F32,
        .b_type = CEK_F32,
        .c_type = CEK_F32,
        .trans = trans
    };
    const array arrays[] = { F(0, m * k), F(1, k * n), F(2, m * n), F(3, n), grad ? (array)F(4, m * n) : (array){ 0 },
                             F(5, m) };
    both_run("gemm", &desc.op, arrays, 6, 1u << CEK_GEMM_C | 1u << CEK_GEMM_A_SUM, 0);
}

/* Heads side by side in the rows of A, B and C, as attention reads them: both levels of a batch. */
static void heads(uint64_t m, uint64_t n, uint64_t k)
{
    enum { OUTER = 2, INNER = 3 };
    cek_gemm_desc desc = { .op = { .size = sizeof desc, .kind = CEK_OP_GEMM },
                           .m = m,
                           .n = n,
                           .k = k,
                           .batch = INNER,
                           .outer = OUTER,
                           .lda = (int64_t)(INNER * k),
                           .ldb = (int64_t)(INNER * n),
                           .ldc = (int64_t)(INNER * n),
                           .stride_a = (int64_t)k,
                           .stride_b = (int64_t)n,
                           .stride_c = (int64_t)n,
                           .outer_a = (int64_t)(INNER * k * m),
                           .outer_b = (int64_t)(INNER * n * k),
                           .outer_c = (int64_t)(INNER * n * m),
                           .a_type = CEK_F32,
                           .b_type = CEK_F32,
                           .c_type = CEK_F32 };
    const uint64_t all = OUTER * INNER;
    both_run("gemm of heads", &desc.op, (const array[]){ F(0, all * m * k), F(1, all * k * n), F(2, all * m * n) }, 3,
             1u << CEK_GEMM_C, 0);
}

static void conv(uint32_t kind, uint64_t in, uint64_t out, uint64_t size, uint64_t stride, uint64_t dilation,
                 uint64_t accumulate)
{
    const cek_epilogue epilogue = { .size = sizeof epilogue,
                                    .activation = kind == CEK_OP_CONV_FORWARD ? CEK_ACT_RELU : 0,
                                    .act_grad = kind == CEK_OP_CONV_BACKWARD_DATA ? CEK_ACT_TANH : 0 };
    cek_conv_desc desc = { .op = { .size = sizeof desc,
                                   .kind = kind,
                                   .accumulate = accumulate,
                                   .epilogue = kind == CEK_OP_CONV_BACKWARD_WEIGHTS ? NULL : &epilogue },
                           .spatial = 2,
                           .groups = 1,
                           .batch = 2,
                           .in_channels = in,
                           .out_channels = out,
                           .in = { size, size + 1 },
                           .kernel = { 3, 3 },
                           .stride = { stride, stride },
                           .dilation = { dilation, dilation },
                           .pad_lo = { 1, 1 },
                           .pad_hi = { 1, 1 },
                           .x_type = CEK_F32,
                           .w_type = CEK_F32,
                           .y_type = CEK_F32 };
    uint64_t reach = 2 * dilation + 1, x = 2 * size * (size + 1) * in, w = out * 9 * in;
    uint64_t y = 2 * ((size + 2 - reach) / stride + 1) * ((size + 3 - reach) / stride + 1) * out;
    if (kind == CEK_OP_CONV_FORWARD) {
        const array arrays[] = { F(0, x), F(1, w), F(2, y), F(3, out) };
        both_run("conv_forward", &desc.op, arrays, 4, 1u << CEK_CONV_FORWARD_Y, 0);
    } else if (kind == CEK_OP_CONV_BACKWARD_DATA) {
        const array arrays[] = { F(0, y), F(1, w), F(2, x), F(3, x) };
        both_run("conv_backward_data", &desc.op, arrays, 4, 1u << CEK_CONV_BACKWARD_DATA_DX, 0);
    } else {
        const array arrays[] = { F(0, x), F(1, y), F(2, w), F(3, out) };
        both_run("conv_backward_weights", &desc.op, arrays, 4,
                 1u << CEK_CONV_BACKWARD_WEIGHTS_DW | 1u << CEK_CONV_BACKWARD_WEIGHTS_BIAS_GRAD, 0);
    }
}

static void products(void)
{
    gemm(7, 37, 19, 0, CEK_ACT_RELU, 0, 0);
    heads(9, 21, 16);
    gemm(29, 5, 6, CEK_GEMM_TRANS_A, 0, CEK_ACT_GELU, 1u << CEK_GEMM_C);
    gemm(3, 40, 9, CEK_GEMM_TRANS_B, CEK_ACT_SIGMOID, 0, 0);
    gemm(2, 3, 2048, 0, 0, 0, 1u << CEK_GEMM_A_SUM); /* k is split */
    gemm(40, 70, 21, CEK_GEMM_TRANS_A | CEK_GEMM_TRANS_B, 0, 0, 0);
    gemm(3, 100, 9, CEK_GEMM_TRANS_A, 0, 0, 1u << CEK_GEMM_C); /* few rows, then few columns: tiles are long */
    gemm(100, 20, 15, CEK_GEMM_TRANS_B, 0, 0, 0);
    for (uint32_t kind = CEK_OP_CONV_FORWARD; kind <= CEK_OP_CONV_BACKWARD_WEIGHTS; kind++) {
        conv(kind, 2, 5, 5, 1, 1, 0);
        conv(kind, 17, 9, 4, 2, 1, kind == CEK_OP_CONV_FORWARD ? 0 : 1u << 2);
        conv(kind, 8, 3, 6, 1, 2, 0);
        conv(kind, 3, 4, 9, 3, 2, 0);
        conv(kind, 4, 8, 7, 2, 1, 0);                                            /* half panels, read in place */
        conv(kind, 32, 9, 3, 2, 1, kind == CEK_OP_CONV_FORWARD ? 0 : 1u << 2);   /* weights as they lie; few pixels */
        conv(kind, 14, 4, 12, 1, 1, 0);                                          /* and many */
        conv(kind, 16, 16, 11, 1, 1, kind == CEK_OP_CONV_FORWARD ? 0 : 1u << 2); /* by transforms */
    }
}

/* --- the rest --------------------------------------------------------------------------------- */

static void pool(uint32_t mode, uint64_t channels, uint32_t spatial)
{
    cek_pool_desc desc = { .op = { .size = sizeof desc, .kind = CEK_OP_POOL_FORWARD },
                           .mode = mode,
                           .spatial = spatial,
                           .type = CEK_F32,
                           .batch = 2,
                           .channels = channels,
                           .in = { 5, 6, 2 },
                           .kernel = { 3, 2, 2 },
                           .stride = { 2, 2, 1 },
                           .pad_lo = { 1, 0, 1 },
                           .pad_hi = { 1, 0, 0 } };
    if (spatial == 2)
        desc.in[2] = desc.kernel[2] = desc.stride[2] = desc.pad_lo[2] = 0;
    enum { MOST = 2 * 5 * 6 * 2 * 20 };
    static float y[2][MOST], dx[2][MOST];
    static uint32_t reserve[2][MOST];
    const uint64_t depth = spatial == 3 ? 2 : 1, inputs = 2 * 5 * 6 * channels * depth,
                   outputs = 2 * 3 * 3 * channels * depth;
    door *const doors[] = { &device, &oracle };
    for (int side = 0; side < 2; side++) {
        bool maximum = mode == CEK_POOL_MAX;
        cek_op_info info;
        const array forward[] = { F(0, inputs), OUT(y[side], 4 * outputs),
                                  OUT(maximum ? reserve[side] : NULL, maximum ? 4 * outputs : 0) };
        desc.op.kind = CEK_OP_POOL_FORWARD;
        desc.op.forward = NULL;
        cek_op *op = door_op(doors[side], &desc.op, forward, maximum ? 3 : 2, &info);
        ck_assert_uint_le(info.reserve_bytes, sizeof reserve[side]);
        door_op_run(doors[side], op, &info, forward, maximum ? 3 : 2);
        const array backward[] = { F(1, outputs), OUT(dx[side], 4 * inputs),
                                   IN(maximum ? reserve[side] : NULL, maximum ? 4 * outputs : 0) };
        desc.op.kind = CEK_OP_POOL_BACKWARD;
        desc.op.forward = maximum ? op : NULL;
        door_run(doors[side], &desc.op, backward, maximum ? 3 : 2);
        doors[side]->plugin.op_destroy(op);
    }
    for (uint64_t i = 0; i < outputs; i++)
        wrong += fabsf(y[0][i] - y[1][i]) > 1e-6f;
    for (uint64_t i = 0; i < inputs; i++)
        wrong += fabsf(dx[0][i] - dx[1][i]) > 1e-5f;
}

static void pools(void)
{
    for (uint32_t mode = CEK_POOL_MAX; mode <= CEK_POOL_AVERAGE; mode++) {
        pool(mode, 19, 2);
        pool(mode, 20, 2); /* in fours */
        pool(mode, 8, 3);
    }
}

static void reduce(uint32_t function, uint32_t axes, const uint64_t shape[3])
{
    cek_reduce_desc desc = { .op = { .size = sizeof desc, .kind = CEK_OP_REDUCE },
                             .function = function,
                             .axes = axes,
                             .rank = 3,
                             .x_type = CEK_F32,
                             .shape = { shape[0], shape[1], shape[2] },
                             .x_strides = { (int64_t)(shape[1] * shape[2]), (int64_t)shape[2], 1 } };
    uint64_t kept = 1;
    for (uint32_t d = 0; d < 3; d++)
        kept *= axes >> d & 1 ? 1 : shape[d];
    both_run("reduce", &desc.op, (const array[]){ F(0, shape[0] * shape[1] * shape[2]), F(1, kept) }, 2, 2, 0);
}

static void tensors(void)
{
    static const uint8_t pixels[60] = { 1, 2, 3, 250, 255 };
    cek_copy_desc same = { .op = { .size = sizeof same, .kind = CEK_OP_COPY },
                           .rank = 3,
                           .x_type = CEK_F32,
                           .y_type = CEK_F32,
                           .shape = { 3, 4, 5 },
                           .x_strides = { 20, 5, 1 },
                           .y_strides = { 1, 15, 3 } };
    both_run("copy", &same.op, (const array[]){ F(0, 60), F(1, 60) }, 2, 2, 0);
    cek_copy_desc convert = same;
    convert.x_type = CEK_U8;
    both_run("copy from u8", &convert.op, (const array[]){ IN(pixels, sizeof pixels), F(1, 60) }, 2, 2, 0);
    const cek_pointwise_input inputs[] = { { CEK_F32, 0, { 9, 1 } }, { CEK_F32, 0, { 0, 1 } } };
    const cek_pointwise_instruction chain[] = { { CEK_PW_MUL, 0, 1, 0, 0 },
                                                { CEK_PW_GELU, 2, 0, 0, 0 },
                                                { CEK_PW_MAX, 3, 0, 0, 0 } };
    cek_pointwise_desc pointwise = { .op = { .size = sizeof pointwise, .kind = CEK_OP_POINTWISE },
                                     .rank = 2,
                                     .out_type = CEK_F32,
                                     .shape = { 7, 9 },
                                     .out_strides = { 9, 1 },
                                     .inputs = inputs,
                                     .instructions = chain,
                                     .input_count = 2,
                                     .input_size = sizeof *inputs,
                                     .instruction_count = 3,
                                     .instruction_size = sizeof *chain };
    both_run("pointwise", &pointwise.op, (const array[]){ F(0, 63), F(1, 9), [CEK_POINTWISE_OUT] = F(2, 63) },
             CEK_POINTWISE_OUT + 1, 1u << CEK_POINTWISE_OUT, 0);
    pointwise.shape[1] = 8; /* blocks of a row, then all of it flat */
    both_run("pointwise in fours", &pointwise.op, (const array[]){ F(0, 63), F(1, 9), [CEK_POINTWISE_OUT] = F(2, 63) },
             CEK_POINTWISE_OUT + 1, 1u << CEK_POINTWISE_OUT, 0);
    const cek_pointwise_input dense[] = { { CEK_F32, 0, { 9, 1 } }, { CEK_F32, 0, { 9, 1 } } };
    pointwise.inputs = dense;
    pointwise.shape[1] = 9;
    both_run("pointwise, flat", &pointwise.op, (const array[]){ F(0, 63), F(1, 63), [CEK_POINTWISE_OUT] = F(2, 63) },
             CEK_POINTWISE_OUT + 1, 1u << CEK_POINTWISE_OUT, 0);
    for (uint32_t function = CEK_REDUCE_SUM; function <= CEK_REDUCE_COUNT_NONFINITE; function++) {
        for (uint32_t axes = 1; axes <= 3; axes++) /* over columns, over rows, over all */
            reduce(function, axes, (const uint64_t[]){ 23, 21, 1 });
        reduce(function, 1, (const uint64_t[]){ 390, 21, 1 }); /* in pieces */
        reduce(function, 1, (const uint64_t[]){ ROOM, 1, 1 });
        reduce(function, 5, (const uint64_t[]){ 9, 10, 11 }); /* more than one dimension goes, or stays */
        reduce(function, 2, (const uint64_t[]){ 9, 10, 11 });
    }
}

/* Sums of (x - centre) * x2 over the rows that count, and where the largest elements are. */
static void terms(uint32_t function, uint32_t axes, uint64_t rows, uint64_t columns)
{
    static const cek_batch_block batch = { .rows_valid = 3 };
    const uint64_t kept = (axes & 1 ? 1 : rows) * (axes & 2 ? 1 : columns), all = rows * columns;
    cek_reduce_desc desc = { .op = { .size = sizeof desc, .kind = CEK_OP_REDUCE },
                             .function = function,
                             .axes = axes,
                             .rank = 2,
                             .x_type = CEK_F32,
                             .shape = { rows, columns },
                             .x_strides = { (int64_t)columns, 1 },
                             .x2_strides = { (int64_t)columns, 1 },
                             .rows_per_sample = rows / 4 };
    const array arrays[] = { F(0, all), F(1, kept), F(2, all), F(3, kept), IN(&batch, sizeof batch) };
    both_run("reduce of terms", &desc.op, arrays, 5, 2, 0);
    cek_arg_desc arg = { .op = { .size = sizeof arg, .kind = CEK_OP_ARG },
                         .function = CEK_ARG_MAX,
                         .axis = axes >> 1,
                         .rank = 2,
                         .type = CEK_F32,
                         .shape = { rows, columns },
                         .x_strides = { (int64_t)columns, 1 } };
    both_run("arg", &arg.op, (const array[]){ F(0, all), F(1, axes & 2 ? rows : columns) }, 2, 2, 2);
}

/* Of equal elements a mean is what they are, of 7 rows or a multiple, of which the inverse is no float: of all, or of
 * those that count; summed by columns, by groups, and in pieces. */
static void means_of_equal_elements(uint64_t columns, uint64_t rows_per_sample)
{
    enum { SAMPLES = 9, VALID = 7 };
    const cek_batch_block batch = { .rows_valid = VALID };
    const uint64_t rows = SAMPLES * rows_per_sample, valid = VALID * rows_per_sample;
    float *x = malloc(rows * columns * sizeof *x), *mean = malloc(columns * sizeof *mean);
    ck_assert_ptr_nonnull(x);
    ck_assert_ptr_nonnull(mean);
    for (uint64_t i = 0; i < rows * columns; i++)
        x[i] = i < valid * columns ? 255 : NAN;
    for (int counted = 0; counted < 2; counted++) {
        cek_reduce_desc desc = { .op = { .size = sizeof desc, .kind = CEK_OP_REDUCE },
                                 .function = CEK_REDUCE_MEAN,
                                 .axes = 1,
                                 .rank = 2,
                                 .x_type = CEK_F32,
                                 .shape = { counted ? rows : valid, columns },
                                 .x_strides = { (int64_t)columns, 1 },
                                 .rows_per_sample = counted ? rows_per_sample : 0 };
        const array arrays[] = { IN(x, desc.shape[0] * columns * sizeof *x),
                                 OUT((void *)mean, columns * sizeof *mean),
                                 { .bytes = 0 },
                                 { .bytes = 0 },
                                 IN(&batch, sizeof batch) };
        cek_op_info info;
        cek_op *op = door_op(&device, &desc.op, arrays, counted ? 5 : 2, &info);
        door_op_run(&device, op, &info, arrays, counted ? 5 : 2);
        device.plugin.op_destroy(op);
        for (uint64_t i = 0; i < columns; i++)
            ck_assert_float_eq(mean[i], 255);
    }
    free(x), free(mean);
}

/* Two tables of 7 rows; of the index one row twice, one outside. Where accumulated, nothing is set to 0 first. A long
 * index is walked along on processors. */
static void rows_of_tables(void)
{
    enum { COLUMNS = 21, COUNT = 6, LONG = 70 };
    int32_t longer[2 * LONG];
    static const int32_t index[2 * COUNT] = { 3, 0, 3, -1, 6, 1, 2, 2, 7, 5, 2, 0 };
    static const int32_t inside[2 * COUNT] = { 3, 0, 3, 2, 6, 1, 2, 2, 4, 5, 2, 0 };
    cek_gather_desc desc = { .op = { .size = sizeof desc, .kind = CEK_OP_GATHER },
                             .batch = 2,
                             .rows = 7,
                             .count = COUNT,
                             .columns = COLUMNS,
                             .type = CEK_F32 };
    const uint64_t table = 2 * 7 * COLUMNS, rows = 2 * COUNT * COLUMNS;
    both_run("gather", &desc.op, (const array[]){ F(0, table), IN(inside, sizeof inside), F(1, rows) }, 3, 4, 0);
    desc.op.kind = CEK_OP_SCATTER_ADD;
    for (uint64_t accumulate = 0; accumulate <= 4; accumulate += 4) {
        desc.op.accumulate = accumulate;
        both_run("scatter_add", &desc.op, (const array[]){ F(0, rows), IN(index, sizeof index), F(1, table) }, 3, 4, 0);
    }
    for (int i = 0; i < 2 * LONG; i++)
        longer[i] = i * 5 % 9 - 1;
    desc.count = LONG;
    both_run("scatter_add, long", &desc.op,
             (const array[]){ F(0, 2 * LONG * COLUMNS), IN(longer, sizeof longer), F(1, table) }, 3, 4, 0);
}

static void losses(uint64_t columns)
{
    enum { ROWS = 6 };
    static const int32_t labels[ROWS] = { 0, 4, 2, 1, 3, 0 };
    static const cek_step_block step = { .random_key = 0x123456789abcdef,
                                         .inv_n = { 0.25f, 0 },
                                         .loss_scale = { 2, 0 } };
    static const cek_batch_block batch = { .sample_base = 3, .rows_valid = ROWS - 1 };
    cek_softmax_desc softmax = {
        .op = { .size = sizeof softmax, .kind = CEK_OP_SOFTMAX }, .rows = ROWS, .columns = columns, .type = CEK_F32
    };
    both_run("softmax", &softmax.op, (const array[]){ F(0, ROWS * columns), F(1, ROWS * columns) }, 2, 2, 0);
    cek_cross_entropy_desc entropy = { .op = { .size = sizeof entropy, .kind = CEK_OP_CROSS_ENTROPY },
                                       .rows = ROWS,
                                       .classes = columns,
                                       .rows_per_sample = 1,
                                       .type = CEK_F32 };
    both_run("cross_entropy", &entropy.op,
             (const array[]){ F(0, ROWS * columns), IN(labels, sizeof labels), F(2, ROWS), IN(&step, sizeof step),
                              IN(&batch, sizeof batch), F(5, ROWS * columns), F(6, 1), F(7, 1) },
             8, 0xe0, 0x80);
    cek_squared_error_desc squared = { .op = { .size = sizeof squared, .kind = CEK_OP_SQUARED_ERROR },
                                       .rows = ROWS,
                                       .columns = columns,
                                       .rows_per_sample = 1,
                                       .type = CEK_F32 };
    both_run("squared_error", &squared.op,
             (const array[]){ F(0, ROWS * columns), F(1, ROWS * columns), F(2, ROWS), IN(&step, sizeof step),
                              IN(&batch, sizeof batch), F(5, ROWS * columns), F(6, 1) },
             7, 0x60, 0);
    cek_dropout_desc dropout = { .op = { .size = sizeof dropout, .kind = CEK_OP_DROPOUT },
                                 .rows = ROWS,
                                 .columns = 11,
                                 .rows_per_sample = 1,
                                 .scale = 2,
                                 .threshold = 1u << 31,
                                 .stream = 3,
                                 .type = CEK_F32 };
    both_run("dropout", &dropout.op,
             (const array[]){ F(0, ROWS * 11), F(1, ROWS * 11), IN(&step, sizeof step), IN(&batch, sizeof batch) }, 4,
             2, 0);
    cek_random_desc normal = { .op = { .size = sizeof normal, .kind = CEK_OP_RANDOM },
                               .rows = ROWS,
                               .columns = 11,
                               .rows_per_sample = 1,
                               .a = 0,
                               .b = 1,
                               .distribution = CEK_RANDOM_NORMAL,
                               .stream = 4,
                               .type = CEK_F32 };
    both_run("random", &normal.op, (const array[]){ F(0, ROWS * 11), IN(&step, sizeof step), IN(&batch, sizeof batch) },
             3, 1, 0);
}

static void optimizers(void)
{
    enum { COUNT = 70 };
    static const float zeros[COUNT];
    static const unsigned char state[256];
    static const cek_update_block update = { .grad_scale = { 0.5f, 0 } };
    static const cek_param_range ranges[] = { { 0, 20, 0, 0 }, { 25, COUNT - 1, 1, 0 } };
    cek_step_block step = { .ln_beta1 = { logf(0.9f), 0 },
                            .ln_beta2 = { logf(0.999f), 0 },
                            .lr = { { 0.1f, 0 }, { 0.2f, 0 } },
                            .weight_decay = { { 0.01f, 0 } } };
    for (uint32_t algorithm = CEK_OPTIMIZER_SGD; algorithm <= CEK_OPTIMIZER_ADAGRAD; algorithm++) {
        const bool sgd = algorithm == CEK_OPTIMIZER_SGD, rmsprop = algorithm == CEK_OPTIMIZER_RMSPROP;
        const bool adagrad = algorithm == CEK_OPTIMIZER_ADAGRAD;
        cek_optimizer_desc desc = { .op = { .size = sizeof desc, .kind = CEK_OP_OPTIMIZER },
                                    .count = COUNT,
                                    .ranges = ranges,
                                    .range_count = 2,
                                    .range_size = sizeof *ranges,
                                    .momentum = sgd || rmsprop ? 0.9 : 0,
                                    .epsilon = sgd ? 0 : 1e-8,
                                    .decay = rmsprop || adagrad ? 0.5 : 0,
                                    .flags = rmsprop ? CEK_OPTIMIZER_CENTERED : 0,
                                    .algorithm = algorithm,
                                    .type = CEK_F32 };
        both_run("optimizer", &desc.op,
                 (const array[]){ F(0, COUNT),
                                  F(1, COUNT),
                                  adagrad ? (array){ 0 } : (array)IN(zeros, sizeof zeros),
                                  sgd ? (array){ 0 } : (array)IN(zeros, sizeof zeros),
                                  IN(state, sizeof state),
                                  IN(&step, sizeof step),
                                  IN(&update, sizeof update),
                                  { 0 },
                                  rmsprop ? (array)IN(zeros, sizeof zeros) : (array){ 0 } },
                 9, 0x11d, 0x10);
    }
}

START_TEST(every_operation_gives_the_results_of_the_reference)
{
    for (uint32_t i = 0; i < 9; i++)
        values_make(pool_of_values[i], ROOM, i + 1);
    door_open(&device, "opencl", options);
    door_open(&oracle, "reference", NULL);
    products();
    pools();
    tensors();
    for (uint32_t axes = 1; axes <= 2; axes++) {
        terms(CEK_REDUCE_SUM, axes, 20, 23);
        terms(CEK_REDUCE_MEAN, axes, 390, 21); /* in pieces */
    }
    means_of_equal_elements(16, 1);
    means_of_equal_elements(1, 1);
    means_of_equal_elements(8, 64);
    rows_of_tables();
    losses(5);
    losses(300); /* more than the work-items of a group have under way at once */
    optimizers();
    door_close(&device);
    door_close(&oracle);
    ck_assert_int_eq(wrong, 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("opencl, every kernel");
    TCase *c = tcase_create("against the reference");
    tcase_add_test(c, every_operation_gives_the_results_of_the_reference);
    suite_add_tcase(s, c);
    SRunner *runner = srunner_create(s);
    srunner_set_fork_status(runner, CK_NOFORK); /* a tool looks at this process */
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
