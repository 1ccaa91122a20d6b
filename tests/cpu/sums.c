/* sums.c - reductions, softmax and losses: the walks over shapes, NaN and padding, determinism
 * by shape. */
#include "harness.h"

#include <stdio.h>

enum { MOST = 500000 };
static float x[MOST], y[MOST];

static const double unit = 0x1p-24;

/* --- reduce ----------------------------------------------------------------------------------- */

typedef struct reduction {
    uint64_t shape[4];
    int64_t strides[4];
    uint32_t axes;
} reduction;

static const reduction reductions[] = {
    { { 1 }, { 1 }, 1 },
    { { 100000 }, { 1 }, 1 }, /* a run of many blocks */
    { { 4097 }, { 1 }, 1 },
    { { 300, 10 }, { 10, 1 }, 2 },                   /* short rows */
    { { 37, 5000 }, { 5000, 1 }, 2 },                /* rows of two blocks */
    { { 5000, 37 }, { 37, 1 }, 1 },                  /* columns */
    { { 65, 1000 }, { 1000, 1 }, 1 },                /* two panels of columns */
    { { 20000, 16 }, { 16, 1 }, 1 },                 /* columns in the most units */
    { { 8, 28, 28, 12 }, { 9408, 336, 12, 1 }, 7 },  /* bias gradient of an image */
    { { 8, 28, 28, 12 }, { 9408, 336, 12, 1 }, 6 },  /* global average pool */
    { { 8, 28, 28, 12 }, { 9408, 336, 12, 1 }, 10 }, /* axes in between */
    { { 8, 28, 28, 12 }, { 9408, 336, 12, 1 }, 5 },
    { { 8, 28, 28, 12 }, { 9408, 336, 12, 1 }, 8 },
    { { 30, 40 }, { 1, 30 }, 1 }, /* transposed */
    { { 30, 40 }, { 1, 30 }, 2 },
    { { 30, 40 }, { 80, 2 }, 2 }, /* gaps */
    { { 30, 40 }, { 80, 2 }, 1 },
    { { 30, 40 }, { 0, 1 }, 1 }, /* broadcast */
    { { 30, 40 }, { 0, 1 }, 2 },
    { { 7, 9 }, { 9, 1 }, 0 }, /* nothing is reduced */
    { { 7, 9 }, { 9, 1 }, 3 },
};
enum { REDUCTIONS = sizeof reductions / sizeof reductions[0] };

static void reduce_all(const reduction *r, cek_dtype type, const void *data)
{
    uint64_t last = 0, results = 1, elements = 1;
    cek_reduce_desc d = { .op = { .size = sizeof d, .kind = CEK_OP_REDUCE, .operands = 3 },
                          .axes = r->axes,
                          .x_type = type };

    for (; d.rank < 4 && r->shape[d.rank]; d.rank++) {
        d.shape[d.rank] = r->shape[d.rank];
        d.x_strides[d.rank] = r->strides[d.rank];
        last += (r->shape[d.rank] - 1) * (uint64_t)r->strides[d.rank];
        *(r->axes >> d.rank & 1 ? &elements : &results) *= r->shape[d.rank];
    }
    for (d.function = CEK_REDUCE_SUM; d.function <= CEK_REDUCE_COUNT_NONFINITE; d.function++) {
        const bool extreme = d.function == CEK_REDUCE_MAX || d.function == CEK_REDUCE_MIN;
        const operand o[] = { { CEK_REDUCE_X, (void *)data, (last + 1) * type_bytes(type), IN },
                              { CEK_REDUCE_Y, y, results * 4, OUT } };
        /* |x| <= 1, or up to 255 in a byte; at most 256 numbers meet in one f32 before the tree:
         * 300 roundings at worst */
        const double size = type == CEK_U8 ? 255.0 : 1,
                     most = d.function == CEK_REDUCE_SUM_SQUARES ? size * size : size;
        const double count = (double)(elements < 300 ? elements : 300);
        const tolerance t = { d.function == CEK_REDUCE_COUNT_NONFINITE || extreme
                                  ? 0
                                  : count * unit * most * (d.function == CEK_REDUCE_MEAN ? 1 : (double)elements),
                              2 * unit };
        char what[64];

        snprintf(what, sizeof what, "reduction %d, function %u", (int)(r - reductions), d.function);
        compare(what, &d.op, o, (cek_dtype[]){ type, CEK_F32 }, 2, extreme ? exactly : t);
        if (!extreme) {
            d.op.accumulate = CEK_BIT(CEK_REDUCE_Y);
            compare(what, &d.op, o, (cek_dtype[]){ type, CEK_F32 }, 2, t);
            d.op.accumulate = 0;
        }
    }
}

START_TEST(reductions_of_all_shapes)
{
    fill_uniform(x, MOST, 1);
    fill_uniform(y, MOST, 2);
    reduce_all(&reductions[_i], CEK_F32, x);
}
END_TEST

START_TEST(integers_reduce_exactly)
{
    fill_integers(x, MOST, -3, 3, 1);
    fill_integers(y, MOST, -3, 3, 2);
    for (int i = 0; i < REDUCTIONS; i++) {
        const reduction *r = &reductions[i];
        uint64_t last = 0, results = 1;
        cek_reduce_desc d = { .op = { .size = sizeof d, .kind = CEK_OP_REDUCE, .operands = 3, .accumulate = 2 },
                              .axes = r->axes,
                              .x_type = CEK_F32,
                              .function = CEK_REDUCE_SUM };

        for (; d.rank < 4 && r->shape[d.rank]; d.rank++) {
            d.shape[d.rank] = r->shape[d.rank];
            d.x_strides[d.rank] = r->strides[d.rank];
            last += (r->shape[d.rank] - 1) * (uint64_t)r->strides[d.rank];
            results *= r->axes >> d.rank & 1 ? 1 : r->shape[d.rank];
        }
        const operand o[] = { { CEK_REDUCE_X, x, (last + 1) * 4, IN }, { CEK_REDUCE_Y, y, results * 4, OUT } };
        compare("integers", &d.op, o, (cek_dtype[]){ CEK_F32, CEK_F32 }, 2, exactly);
    }
}
END_TEST

START_TEST(reductions_of_other_types)
{
    static uint16_t half[MOST];
    static uint8_t bytes[MOST];

    fill_uniform(x, MOST, 1);
    fill_uniform(y, MOST, 2);
    to_bf16(x, half, MOST);
    for (int i = 0; i < MOST; i++)
        bytes[i] = (uint8_t)(i * 11);
    for (int i = 0; i < REDUCTIONS; i++) {
        reduce_all(&reductions[i], CEK_BF16, half);
        reduce_all(&reductions[i], CEK_U8, bytes);
    }
}
END_TEST

/* Wherever the NaN lies, and although comparisons with it fail; counts see infinities as well. */
START_TEST(nan_reaches_the_result)
{
    static const uint64_t lengths[] = { 1, 5, 16, 33, 4096, 10000 };

    for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++)
        for (int columns = 0; columns < 2; columns++)
            for (uint64_t at = 0; at < lengths[l]; at += 1 + lengths[l] / 7) {
                const uint64_t n = lengths[l], results = columns ? 3 : 1;
                cek_reduce_desc d = { .op = { .size = sizeof d, .kind = CEK_OP_REDUCE, .operands = 3 },
                                      .rank = 2,
                                      .axes = 1,
                                      .x_type = CEK_F32,
                                      .shape = { n, results },
                                      .x_strides = { (int64_t)results, 1 } };
                operand o[] = { { CEK_REDUCE_X, x, n * results * 4, IN }, { CEK_REDUCE_Y, y, results * 4, OUT } };

                fill_uniform(x, MOST, 1);
                x[at * results] = NAN;
                x[((at + 1) % n) * results] = n > 1 ? INFINITY : NAN;
                for (int f = 0; f < form_count(); f++)
                    for (d.function = CEK_REDUCE_SUM; d.function <= CEK_REDUCE_COUNT_NONFINITE; d.function++) {
                        ck_assert_uint_eq(run_op(form(f), &d.op, o, 2, 0), CEK_OK);
                        if (d.function == CEK_REDUCE_COUNT_NONFINITE)
                            ck_assert_float_eq(y[0], n > 1 ? 2.0f : 1.0f);
                        else
                            ck_assert_msg(isnan(y[0]), "function %u of %d with NaN at %d is %g", d.function, (int)n,
                                          (int)at, y[0]);
                        ck_assert(!columns || isfinite(y[1]));
                    }
            }
}
END_TEST

/* --- softmax ---------------------------------------------------------------------------------- */

START_TEST(softmax_of_any_width)
{
    static const uint64_t widths[] = { 1, 2, 10, 15, 16, 17, 100, 1000, 30000 };
    static uint16_t half[MOST], half_out[MOST];

    for (size_t w = 0; w < sizeof widths / sizeof widths[0]; w++)
        for (uint32_t flags = 0; flags < 2; flags++) {
            const uint64_t rows = widths[w] > 1000 ? 7 : 61, n = rows * widths[w];
            cek_softmax_desc d = { .op = { .size = sizeof d, .kind = CEK_OP_SOFTMAX, .operands = 3 },
                                   .rows = rows,
                                   .columns = widths[w],
                                   .type = CEK_F32,
                                   .flags = flags };
            const operand o[] = { { CEK_SOFTMAX_X, x, n * 4, IN }, { CEK_SOFTMAX_Y, y, n * 4, OUT } };
            const operand h[] = { { CEK_SOFTMAX_X, half, n * 2, IN }, { CEK_SOFTMAX_Y, half_out, n * 2, OUT } };

            fill_uniform(x, (int64_t)n, 3);
            for (uint64_t i = 0; i < n; i++)
                x[i] *= i % 3 ? 5 : 90; /* far beyond what exp can hold */
            x[n / 2] = -INFINITY;
            /* exp 1.1, sum 300 at worst, quotient 1, product 1 units; a logarithm adds its own
             * absolute error */
            compare("softmax", &d.op, o, (cek_dtype[]){ CEK_F32, CEK_F32 }, 2,
                    flags ? (tolerance){ 2e-5, 4 * unit } : (tolerance){ 1e-37, 300 * unit });
            to_bf16(x, half, (int64_t)n);
            d.type = CEK_BF16;
            compare("softmax of bf16", &d.op, h, (cek_dtype[]){ CEK_BF16, CEK_BF16 }, 2,
                    (tolerance){ flags ? 2e-5 : 1e-37, 0x1p-7 });
        }
}
END_TEST

START_TEST(softmax_of_a_row_with_nan_or_infinity_is_nan)
{
    cek_softmax_desc d = {
        .op = { .size = sizeof d, .kind = CEK_OP_SOFTMAX, .operands = 3 }, .rows = 4, .columns = 19, .type = CEK_F32
    };
    operand o[] = { { CEK_SOFTMAX_X, x, 4 * 19 * 4, IN }, { CEK_SOFTMAX_Y, y, 4 * 19 * 4, OUT } };

    for (d.flags = 0; d.flags < 2; d.flags++) {
        fill_uniform(x, 4 * 19, 3);
        x[19 + 18] = NAN;
        x[2 * 19 + 3] = INFINITY;
        for (int f = 0; f < form_count(); f++) {
            ck_assert_uint_eq(run_op(form(f), &d.op, o, 2, 0), CEK_OK);
            for (int i = 0; i < 4 * 19; i++)
                must(!!isnan(y[i]) == (i / 19 == 1 || i / 19 == 2), "element %d is %g", i, y[i]);
        }
    }
}
END_TEST

/* --- losses ----------------------------------------------------------------------------------- */

typedef struct loss_case {
    uint64_t rows, columns, rows_per_sample;
    uint32_t rows_valid; /* samples */
    bool weights, gradient, accumulate;
    cek_dtype type;
} loss_case;

static const loss_case losses[] = {
    { 64, 10, 1, 64, false, true, false, CEK_F32 },    { 64, 10, 1, 50, true, true, true, CEK_F32 },
    { 1, 1, 1, 1, false, true, false, CEK_F32 },       { 128, 1, 1, 100, false, true, false, CEK_F32 },
    { 600, 17, 3, 150, true, true, false, CEK_F32 },   { 601, 17, 3, 4000, true, true, false, CEK_F32 },
    { 5000, 100, 1, 4999, true, true, true, CEK_F32 }, { 5, 30000, 1, 5, false, true, false, CEK_F32 },
    { 64, 10, 1, 0, true, true, false, CEK_F32 },      { 64, 10, 1, 60, true, false, true, CEK_F32 },
    { 300, 33, 1, 250, true, true, false, CEK_BF16 },
};
enum { LOSSES = sizeof losses / sizeof losses[0] };

static cek_step_block step_block(void)
{
    cek_step_block s = { .inv_n = { 1.0f / 61, 0 }, .loss_scale = { 8, 0 } };

    s.inv_n.lo = (float)(1.0 / 61 - s.inv_n.hi);
    return s;
}

START_TEST(cross_entropy_and_its_gradient)
{
    static int32_t labels[10000];
    static uint16_t half[MOST], half_out[MOST];
    static float weights[10000];
    const loss_case *c = &losses[_i];
    const uint64_t n = c->rows * c->columns, bytes = n * type_bytes(c->type);
    const bool is_half = c->type != CEK_F32;
    cek_step_block step = step_block();
    cek_batch_block batch = { .rows_valid = c->rows_valid };
    float loss = 3;
    int32_t correct = 5;
    cek_cross_entropy_desc d = { .op = { .size = sizeof d,
                                         .kind = CEK_OP_CROSS_ENTROPY,
                                         .operands = CEK_BIT(0) | CEK_BIT(1) | CEK_BIT(4) | CEK_BIT(6) | CEK_BIT(7),
                                         .accumulate = c->accumulate ? CEK_BIT(6) | CEK_BIT(7) : 0 },
                                 .rows = c->rows,
                                 .classes = c->columns,
                                 .rows_per_sample = c->rows_per_sample,
                                 .type = c->type };
    operand o[8] = { { 0, is_half ? (void *)half : x, bytes, IN },
                     { 1, labels, c->rows * 4, IN },
                     { 4, &batch, sizeof batch, IN },
                     { 6, &loss, 4, OUT },
                     { 7, &correct, 4, OUT } };
    cek_dtype types[8] = { c->type, CEK_I32, CEK_DTYPE_NONE, CEK_F32, CEK_I32 };
    int count = 5;

    fill_uniform(x, (int64_t)n, 1);
    for (uint64_t i = 0; i < n; i++)
        x[i] = i % 11 ? x[i] * 4 : 2; /* some equal maxima */
    for (uint64_t i = 0; i < c->rows; i++) {
        labels[i] = (int32_t)(i * 7 % c->columns);
        weights[i] = i % 5 ? (float)(i % 7) : 0;
    }
    if (c->rows > 40) { /* a row of weight 0 is full of NaN, one that counts has a label out of range */
        for (uint64_t i = 0; i < c->columns; i++)
            x[5 * c->columns + i] = c->weights ? NAN : x[5 * c->columns + i];
        labels[10] = c->weights ? -1 : labels[10];
    }
    to_bf16(x, half, (int64_t)n);
    if (c->weights) {
        d.op.operands |= CEK_BIT(2);
        o[count] = (operand){ 2, weights, c->rows * 4, IN };
        types[count++] = CEK_F32;
    }
    if (c->gradient) {
        d.op.operands |= CEK_BIT(3) | CEK_BIT(5);
        o[count] = (operand){ 3, &step, sizeof step, IN };
        types[count++] = CEK_DTYPE_NONE;
        o[count] = (operand){ 5, is_half ? (void *)half_out : y, bytes, OUT };
        types[count++] = c->type;
    }
    compare("cross-entropy", &d.op, o, types, count,
            is_half ? (tolerance){ 1e-4, 0x1p-7 } : (tolerance){ 1e-6, 300 * unit });
}
END_TEST

START_TEST(squared_error_and_its_gradient)
{
    static float target[MOST], weights[10000];
    static uint16_t half[MOST], half_out[MOST];
    const loss_case *c = &losses[_i];
    const uint64_t n = c->rows * c->columns, bytes = n * type_bytes(c->type);
    const bool is_half = c->type != CEK_F32;
    cek_step_block step = step_block();
    cek_batch_block batch = { .rows_valid = c->rows_valid };
    float loss = 3;
    cek_squared_error_desc d = { .op = { .size = sizeof d,
                                         .kind = CEK_OP_SQUARED_ERROR,
                                         .operands = CEK_BIT(0) | CEK_BIT(1) | CEK_BIT(4) | CEK_BIT(6),
                                         .accumulate = c->accumulate ? CEK_BIT(6) : 0 },
                                 .rows = c->rows,
                                 .columns = c->columns,
                                 .rows_per_sample = c->rows_per_sample,
                                 .type = c->type };
    operand o[8] = { { 0, is_half ? (void *)half : x, bytes, IN },
                     { 1, target, n * 4, IN },
                     { 4, &batch, sizeof batch, IN },
                     { 6, &loss, 4, OUT } };
    cek_dtype types[8] = { c->type, CEK_F32, CEK_DTYPE_NONE, CEK_F32 };
    int count = 4;

    fill_uniform(x, (int64_t)n, 1);
    fill_uniform(target, (int64_t)n, 2);
    for (uint64_t i = 0; i < c->rows; i++)
        weights[i] = i % 5 ? (float)(i % 7) : 0;
    if (c->weights)
        x[5 * c->columns] = NAN;
    to_bf16(x, half, (int64_t)n);
    if (c->weights) {
        d.op.operands |= CEK_BIT(2);
        o[count] = (operand){ 2, weights, c->rows * 4, IN };
        types[count++] = CEK_F32;
    }
    if (c->gradient) {
        d.op.operands |= CEK_BIT(3) | CEK_BIT(5);
        o[count] = (operand){ 3, &step, sizeof step, IN };
        types[count++] = CEK_DTYPE_NONE;
        o[count] = (operand){ 5, is_half ? (void *)half_out : y, bytes, OUT };
        types[count++] = c->type;
    }
    compare("squared error", &d.op, o, types, count,
            is_half ? (tolerance){ 1e-4, 0x1p-7 } : (tolerance){ 1e-7, 300 * unit });
}
END_TEST

/* The second operand is the output, the first the input whose memory it may share. */
static void same_in_place(const cek_op_desc *desc, operand *o, int count)
{
    float *apart = malloc(o[1].bytes), *shared = malloc(o[1].bytes);

    for (int f = 0; f < form_count(); f++) {
        o[1].data = apart;
        o[1].use = OUT;
        memset(apart, 0, o[1].bytes);
        ck_assert_uint_eq(run_op(form(f), desc, o, count, 0), CEK_OK);
        o[1].data = shared;
        o[1].use = IN_PLACE;
        ck_assert_uint_eq(run_op(form(f), desc, o, count, 0), CEK_OK);
        ck_assert_mem_eq(apart, shared, o[1].bytes);
    }
    free(apart);
    free(shared);
}

START_TEST(results_in_the_memory_of_an_input_are_the_same)
{
    enum { ROWS = 300, COLUMNS = 37 };
    static int32_t labels[ROWS];
    static float target[ROWS * COLUMNS];
    const uint64_t bytes = ROWS * COLUMNS * 4;
    cek_step_block step = step_block();
    const operand x_in = { 0, x, bytes, IN }, t_in = { 1, target, bytes, IN };
    cek_softmax_desc s = { .op = { .size = sizeof s, .kind = CEK_OP_SOFTMAX, .operands = 3 },
                           .rows = ROWS,
                           .columns = COLUMNS,
                           .type = CEK_F32 };
    cek_dropout_desc d = { .op = { .size = sizeof d, .kind = CEK_OP_DROPOUT, .operands = 7 },
                           .rows = ROWS,
                           .columns = COLUMNS,
                           .rows_per_sample = 1,
                           .scale = 2,
                           .threshold = 1u << 31,
                           .type = CEK_F32 };
    cek_cross_entropy_desc c = { .op = { .size = sizeof c, .kind = CEK_OP_CROSS_ENTROPY, .operands = 0x2b },
                                 .rows = ROWS,
                                 .classes = COLUMNS,
                                 .rows_per_sample = 1,
                                 .type = CEK_F32 };
    cek_squared_error_desc q = { .op = { .size = sizeof q, .kind = CEK_OP_SQUARED_ERROR, .operands = 0x2b },
                                 .rows = ROWS,
                                 .columns = COLUMNS,
                                 .rows_per_sample = 1,
                                 .type = CEK_F32 };

    fill_uniform(x, ROWS * COLUMNS, 1);
    fill_uniform(target, ROWS * COLUMNS, 2);
    for (int i = 0; i < ROWS; i++)
        labels[i] = i % COLUMNS - (i == 37); /* one is out of range */
    same_in_place(&s.op, (operand[]){ x_in, { CEK_SOFTMAX_Y, y, bytes, OUT } }, 2);
    s.flags = CEK_SOFTMAX_LOG;
    same_in_place(&s.op, (operand[]){ x_in, { CEK_SOFTMAX_Y, y, bytes, OUT } }, 2);
    same_in_place(
        &d.op, (operand[]){ x_in, { CEK_DROPOUT_Y, y, bytes, OUT }, { CEK_DROPOUT_STEP, &step, sizeof step, IN } }, 3);
    same_in_place(&c.op,
                  (operand[]){ x_in,
                               { CEK_CROSS_ENTROPY_DLOGITS, y, bytes, OUT },
                               { 1, labels, sizeof labels, IN },
                               { CEK_CROSS_ENTROPY_STEP, &step, sizeof step, IN } },
                  4);
    same_in_place(&q.op,
                  (operand[]){ x_in,
                               { CEK_SQUARED_ERROR_DPREDICTION, y, bytes, OUT },
                               t_in,
                               { CEK_SQUARED_ERROR_STEP, &step, sizeof step, IN } },
                  4);
}
END_TEST

void add_sums(Suite *suite)
{
    TCase *cases = tcase_create("sums");

    tcase_add_checked_fixture(cases, forms_open, forms_close);
    tcase_add_loop_test(cases, reductions_of_all_shapes, 0, REDUCTIONS);
    tcase_add_test(cases, integers_reduce_exactly);
    tcase_add_test(cases, reductions_of_other_types);
    tcase_add_test(cases, nan_reaches_the_result);
    tcase_add_test(cases, softmax_of_any_width);
    tcase_add_test(cases, softmax_of_a_row_with_nan_or_infinity_is_nan);
    tcase_add_test(cases, results_in_the_memory_of_an_input_are_the_same);
    tcase_add_loop_test(cases, cross_entropy_and_its_gradient, 0, LOSSES);
    tcase_add_loop_test(cases, squared_error_and_its_gradient, 0, LOSSES);
    suite_add_tcase(suite, cases);
}
