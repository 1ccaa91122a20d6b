/* SPDX-License-Identifier: MIT
 *
 * vectors.c - the reference against small cases that PyTorch computed in float64 (vectors.inc, made
 * by make-vectors.py).
 *
 * All in f64, where both sides differ by the order of a few sums: 1e-10 leaves four digits of room
 * and none for a mistake.
 */
#include "tests/door/door.h"

#define TOLERANCE 1e-10

typedef struct gemm_vector {
    uint64_t m, n, k, batch;
    uint32_t trans;
    cek_activation activation;
    const double *a, *b, *c, *bias, *a_sum;
} gemm_vector;

typedef struct conv_vector {
    uint32_t spatial, groups;
    uint64_t batch, in_channels, out_channels, out_count;
    uint64_t in[CEK_SPATIAL_MAX], kernel[CEK_SPATIAL_MAX], stride[CEK_SPATIAL_MAX], dilation[CEK_SPATIAL_MAX];
    uint64_t pad_lo[CEK_SPATIAL_MAX], pad_hi[CEK_SPATIAL_MAX];
    const double *x, *w, *bias, *y, *dy, *dx, *dw, *dbias;
} conv_vector;

typedef struct pool_vector {
    uint32_t mode, flags, spatial;
    uint64_t batch, channels, out_count;
    uint64_t in[CEK_SPATIAL_MAX], kernel[CEK_SPATIAL_MAX], stride[CEK_SPATIAL_MAX];
    uint64_t pad_lo[CEK_SPATIAL_MAX], pad_hi[CEK_SPATIAL_MAX];
    const double *x, *y, *dy, *dx;
} pool_vector;

typedef struct softmax_vector {
    uint64_t rows, columns;
    const double *x, *softmax, *log_softmax;
} softmax_vector;

typedef struct cross_entropy_vector {
    uint64_t rows, classes;
    double inv_n, loss;
    int32_t correct;
    const double *x, *dx;
    const int32_t *labels;
    const float *weights;
} cross_entropy_vector;

typedef struct squared_error_vector {
    uint64_t rows, columns;
    double inv_n, mean;
    const double *x, *target, *dx;
} squared_error_vector;

typedef struct activation_vector {
    uint32_t code, grad_code;
    int reads_input;
    uint64_t count;
    const double *x, *y, *dy, *dx;
} activation_vector;

typedef struct optimizer_vector {
    uint32_t algorithm, flags;
    uint64_t steps, count;
    double lr, weight_decay, momentum, dampening, epsilon, beta1, beta2, decay, initial;
    const double *first, *grads, *last;
} optimizer_vector;

#include "tests/door/vectors.inc"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))
enum { ROOM = 2048 }; /* elements of the largest case, and more */

static cek_f32x2 split(double x)
{
    float hi = (float)x;
    return (cek_f32x2){ hi, (float)(x - hi) };
}

static uint64_t product(const uint64_t *sizes, uint32_t count)
{
    uint64_t result = 1;
    for (uint32_t i = 0; i < count; i++)
        result *= sizes[i];
    return result;
}

START_TEST(gemm_matches)
{
    const gemm_vector *v = &gemm_vectors[_i];
    door d;
    double c[ROOM] = { 0 }, a_sum[ROOM] = { 0 };
    const cek_epilogue epilogue = { .size = sizeof epilogue, .activation = v->activation };
    int ta = v->trans & CEK_GEMM_TRANS_A, tb = v->trans & CEK_GEMM_TRANS_B;
    cek_gemm_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_GEMM, .epilogue = &epilogue },
        .m = v->m,
        .n = v->n,
        .k = v->k,
        .batch = v->batch,
        .trans = v->trans,
        .lda = (int64_t)(ta ? v->m : v->k),
        .ldb = (int64_t)(tb ? v->k : v->n),
        .ldc = (int64_t)v->n,
        .stride_a = (int64_t)(v->m * v->k),
        .stride_b = (int64_t)(v->k * v->n),
        .stride_c = (int64_t)(v->m * v->n),
        .a_type = CEK_F64,
        .b_type = CEK_F64,
        .c_type = CEK_F64,
    };
    const array arrays[] = {
        [CEK_GEMM_A] = IN(v->a, v->batch * v->m * v->k * 8),
        [CEK_GEMM_B] = IN(v->b, v->batch * v->k * v->n * 8),
        [CEK_GEMM_C] = OUT(c, v->batch * v->m * v->n * 8),
        [CEK_GEMM_BIAS] = IN(v->bias, v->n * 8),
        [CEK_GEMM_A_SUM] = OUT(v->batch == 1 ? a_sum : NULL, v->m * 8),
    };
    door_open(&d, "reference", NULL);
    door_run(&d, &desc.op, arrays, COUNT(arrays));
    door_near("C", c, v->c, v->batch * v->m * v->n, TOLERANCE);
    if (v->batch == 1)
        door_near("A_SUM", a_sum, v->a_sum, v->m, TOLERANCE);
    door_close(&d);
}
END_TEST

static cek_conv_desc conv_desc(const conv_vector *v, uint32_t kind)
{
    cek_conv_desc desc = {
        .op = { .size = sizeof desc, .kind = kind },
        .spatial = v->spatial,
        .groups = v->groups,
        .batch = v->batch,
        .in_channels = v->in_channels,
        .out_channels = v->out_channels,
        .x_type = CEK_F64,
        .w_type = CEK_F64,
        .y_type = CEK_F64,
    };
    memcpy(desc.in, v->in, sizeof desc.in);
    memcpy(desc.kernel, v->kernel, sizeof desc.kernel);
    memcpy(desc.stride, v->stride, sizeof desc.stride);
    memcpy(desc.dilation, v->dilation, sizeof desc.dilation);
    memcpy(desc.pad_lo, v->pad_lo, sizeof desc.pad_lo);
    memcpy(desc.pad_hi, v->pad_hi, sizeof desc.pad_hi);
    return desc;
}

START_TEST(conv_matches)
{
    const conv_vector *v = &conv_vectors[_i];
    door d;
    double y[ROOM], dx[ROOM], dw[ROOM], dbias[ROOM];
    uint64_t xs = v->batch * product(v->in, v->spatial) * v->in_channels;
    uint64_t ws = v->out_channels * product(v->kernel, v->spatial) * v->in_channels / v->groups;
    cek_conv_desc forward = conv_desc(v, CEK_OP_CONV_FORWARD), data = conv_desc(v, CEK_OP_CONV_BACKWARD_DATA),
                  weights = conv_desc(v, CEK_OP_CONV_BACKWARD_WEIGHTS);
    door_open(&d, "reference", NULL);

    const array of_forward[] = { IN(v->x, xs * 8), IN(v->w, ws * 8), OUT(y, v->out_count * 8),
                                 IN(v->bias, v->out_channels * 8) };
    door_run(&d, &forward.op, of_forward, COUNT(of_forward));
    door_near("Y", y, v->y, v->out_count, TOLERANCE);

    const array of_data[] = { IN(v->dy, v->out_count * 8), IN(v->w, ws * 8), OUT(dx, xs * 8) };
    door_run(&d, &data.op, of_data, COUNT(of_data));
    door_near("DX", dx, v->dx, xs, TOLERANCE);

    const array of_weights[] = { IN(v->x, xs * 8), IN(v->dy, v->out_count * 8), OUT(dw, ws * 8),
                                 OUT(dbias, v->out_channels * 8) };
    door_run(&d, &weights.op, of_weights, COUNT(of_weights));
    door_near("DW", dw, v->dw, ws, TOLERANCE);
    door_near("BIAS_GRAD", dbias, v->dbias, v->out_channels, TOLERANCE);
    door_close(&d);
}
END_TEST

START_TEST(pool_matches)
{
    const pool_vector *v = &pool_vectors[_i];
    door d;
    double y[ROOM], dx[ROOM];
    unsigned char reserve[8 * ROOM];
    uint64_t xs = v->batch * product(v->in, v->spatial) * v->channels;
    cek_pool_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_POOL_FORWARD },
        .mode = v->mode,
        .flags = v->flags,
        .spatial = v->spatial,
        .type = CEK_F64,
        .batch = v->batch,
        .channels = v->channels,
    };
    memcpy(desc.in, v->in, sizeof desc.in);
    memcpy(desc.kernel, v->kernel, sizeof desc.kernel);
    memcpy(desc.stride, v->stride, sizeof desc.stride);
    memcpy(desc.pad_lo, v->pad_lo, sizeof desc.pad_lo);
    memcpy(desc.pad_hi, v->pad_hi, sizeof desc.pad_hi);
    void *kept = v->mode == CEK_POOL_MAX ? reserve : NULL;
    cek_op_info info;
    door_open(&d, "reference", NULL);

    array forward[] = { IN(v->x, xs * 8), OUT(y, v->out_count * 8), OUT(kept, 0) };
    cek_op *op = door_op(&d, &desc.op, forward, COUNT(forward), &info);
    ck_assert_uint_le(info.reserve_bytes, sizeof reserve);
    forward[CEK_POOL_FORWARD_RESERVE].bytes = info.reserve_bytes;
    door_op_run(&d, op, &info, forward, COUNT(forward));
    door_near("Y", y, v->y, v->out_count, TOLERANCE);

    desc.op.kind = CEK_OP_POOL_BACKWARD;
    desc.op.forward = kept ? op : NULL;
    const array backward[] = { IN(v->dy, v->out_count * 8), OUT(dx, xs * 8), IN(kept, info.reserve_bytes) };
    door_run(&d, &desc.op, backward, COUNT(backward));
    door_near("DX", dx, v->dx, xs, TOLERANCE);
    d.plugin.op_destroy(op);
    door_close(&d);
}
END_TEST

START_TEST(softmax_matches)
{
    const softmax_vector *v = &softmax_vectors[_i];
    door d;
    double y[ROOM];
    cek_softmax_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_SOFTMAX }, .rows = v->rows, .columns = v->columns, .type = CEK_F64
    };
    const array arrays[] = { IN(v->x, v->rows * v->columns * 8), OUT(y, v->rows * v->columns * 8) };
    door_open(&d, "reference", NULL);
    door_run(&d, &desc.op, arrays, COUNT(arrays));
    door_near("softmax", y, v->softmax, v->rows * v->columns, TOLERANCE);
    desc.flags = CEK_SOFTMAX_LOG;
    door_run(&d, &desc.op, arrays, COUNT(arrays));
    door_near("log softmax", y, v->log_softmax, v->rows * v->columns, TOLERANCE);
    door_close(&d);
}
END_TEST

START_TEST(cross_entropy_matches)
{
    const cross_entropy_vector *v = &cross_entropy_vectors[_i];
    door d;
    double dx[ROOM], loss;
    int32_t correct;
    cek_step_block step = { .inv_n = split(v->inv_n), .loss_scale = { 1, 0 } };
    cek_cross_entropy_desc desc = { .op = { .size = sizeof desc, .kind = CEK_OP_CROSS_ENTROPY },
                                    .rows = v->rows,
                                    .classes = v->classes,
                                    .rows_per_sample = 1,
                                    .type = CEK_F64 };
    const array arrays[] = {
        [CEK_CROSS_ENTROPY_LOGITS] = IN(v->x, v->rows * v->classes * 8),
        [CEK_CROSS_ENTROPY_LABELS] = IN(v->labels, v->rows * 4),
        [CEK_CROSS_ENTROPY_WEIGHTS] = IN(v->weights, v->rows * 4),
        [CEK_CROSS_ENTROPY_STEP] = IN(&step, sizeof step),
        [CEK_CROSS_ENTROPY_DLOGITS] = OUT(dx, v->rows * v->classes * 8),
        [CEK_CROSS_ENTROPY_LOSS] = OUT(&loss, sizeof loss),
        [CEK_CROSS_ENTROPY_CORRECT] = OUT(&correct, sizeof correct),
    };
    door_open(&d, "reference", NULL);
    door_run(&d, &desc.op, arrays, COUNT(arrays));
    door_near("LOSS", &loss, &v->loss, 1, TOLERANCE);
    door_near("DLOGITS", dx, v->dx, v->rows * v->classes, TOLERANCE);
    ck_assert_int_eq(correct, v->correct);
    door_close(&d);
}
END_TEST

START_TEST(squared_error_matches)
{
    const squared_error_vector *v = &squared_error_vectors[_i];
    door d;
    double dx[ROOM], loss;
    cek_step_block step = { .inv_n = split(v->inv_n), .loss_scale = { 1, 0 } };
    cek_squared_error_desc desc = { .op = { .size = sizeof desc, .kind = CEK_OP_SQUARED_ERROR },
                                    .rows = v->rows,
                                    .columns = v->columns,
                                    .rows_per_sample = 1,
                                    .type = CEK_F64 };
    const array arrays[] = {
        [CEK_SQUARED_ERROR_PREDICTION] = IN(v->x, v->rows * v->columns * 8),
        [CEK_SQUARED_ERROR_TARGET] = IN(v->target, v->rows * v->columns * 8),
        [CEK_SQUARED_ERROR_STEP] = IN(&step, sizeof step),
        [CEK_SQUARED_ERROR_DPREDICTION] = OUT(dx, v->rows * v->columns * 8),
        [CEK_SQUARED_ERROR_LOSS] = OUT(&loss, sizeof loss),
    };
    door_open(&d, "reference", NULL);
    door_run(&d, &desc.op, arrays, COUNT(arrays));
    loss *= v->inv_n;
    door_near("LOSS / N", &loss, &v->mean, 1, TOLERANCE);
    door_near("DPREDICTION", dx, v->dx, v->rows * v->columns, TOLERANCE);
    door_close(&d);
}
END_TEST

/* Each activation as a pointwise instruction, forward and backward. */
START_TEST(activation_matches)
{
    const activation_vector *v = &activation_vectors[_i];
    door d;
    double out[ROOM];
    const cek_pointwise_input input = { .type = CEK_F64, .strides = { 1 } }, inputs[2] = { input, input };
    cek_pointwise_instruction instruction = { .code = v->code };
    cek_pointwise_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_POINTWISE },
        .rank = 1,
        .out_type = CEK_F64,
        .shape = { v->count },
        .out_strides = { 1 },
        .inputs = inputs,
        .instructions = &instruction,
        .input_count = 1,
        .input_size = sizeof input,
        .instruction_count = 1,
        .instruction_size = sizeof instruction,
    };
    array arrays[] = { [CEK_POINTWISE_IN0] = IN(v->x, v->count * 8), [CEK_POINTWISE_OUT] = OUT(out, v->count * 8) };
    door_open(&d, "reference", NULL);
    door_run(&d, &desc.op, arrays, COUNT(arrays));
    door_near("y", out, v->y, v->count, TOLERANCE);

    instruction = (cek_pointwise_instruction){ .code = v->grad_code, .a = 0, .b = 1 };
    desc.input_count = 2;
    arrays[CEK_POINTWISE_IN0].in = v->dy;
    arrays[CEK_POINTWISE_IN1] = (array)IN((v->reads_input ? v->x : v->y), v->count * 8);
    door_run(&d, &desc.op, arrays, COUNT(arrays));
    door_near("dx", out, v->dx, v->count, TOLERANCE);
    door_close(&d);
}
END_TEST

/* clang-format off */
START_TEST(optimizer_matches)
{
    const optimizer_vector *v = &optimizer_vectors[_i];
    door d;
    double p[ROOM], m[ROOM] = { 0 }, second[ROOM], mean[ROOM] = { 0 };
    uint64_t state[32] = { 0 };
    int adam = v->algorithm == CEK_OPTIMIZER_ADAM;
    cek_step_block step = { .ln_beta1 = split(__builtin_log(v->beta1)), .ln_beta2 = split(__builtin_log(v->beta2)) };
    const cek_param_range range = { .begin = 0, .end = v->count, .group = 3 };
    step.lr[3] = split(v->lr);
    step.weight_decay[3] = split(v->weight_decay);
    cek_optimizer_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_OPTIMIZER }, .count = v->count, .ranges = &range, .range_count = 1,
        .range_size = sizeof range, .momentum = v->momentum, .dampening = v->dampening, .epsilon = v->epsilon,
        .algorithm = v->algorithm, .flags = v->flags, .type = CEK_F64, .decay = v->decay,
    };
    for (int i = 0; i < ROOM; i++)
        second[i] = v->initial;
    memcpy(p, v->first, v->count * 8);
    door_open(&d, "reference", NULL);
    for (uint64_t i = 0; i < v->steps; i++) {
        const array arrays[] = {
            [CEK_OPTIMIZER_PARAM] = OUT(p, v->count * 8),
            [CEK_OPTIMIZER_GRAD] = IN((v->grads + i * v->count), v->count * 8),
            [CEK_OPTIMIZER_M] = OUT(adam || v->momentum != 0 ? m : NULL, v->count * 8),
            [CEK_OPTIMIZER_V] = OUT(v->algorithm != CEK_OPTIMIZER_SGD ? second : NULL, v->count * 8),
            [CEK_OPTIMIZER_STATE] = OUT(state, sizeof state),
            [CEK_OPTIMIZER_STEP] = IN(&step, sizeof step),
            [CEK_OPTIMIZER_MEAN] = OUT(v->flags & CEK_OPTIMIZER_CENTERED ? mean : NULL, v->count * 8),
        };
        door_run(&d, &desc.op, arrays, COUNT(arrays));
        ck_assert_uint_eq(state[0], i + 1);
    }
    door_near("PARAM", p, v->last, v->count, TOLERANCE);
    door_close(&d);
}
END_TEST
/* clang-format on */

int main(void)
{
    Suite *suite = suite_create("reference against PyTorch in float64");
    TCase *cases = tcase_create("vectors");
#define ALL(kind) tcase_add_loop_test(cases, kind##_matches, 0, COUNT(kind##_vectors))
    ALL(gemm);
    ALL(conv);
    ALL(pool);
    ALL(softmax);
    ALL(cross_entropy);
    ALL(squared_error);
    ALL(activation);
    ALL(optimizer);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
