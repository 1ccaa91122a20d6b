/* products.c - gemm through the door: every field of the descriptor reaches the product; whose packed weights may be
 * shared. The product itself is swept by the conformance suite. */
#include "harness.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 60000 };
static float a[MOST], b[MOST], c[MOST], ref[MOST], bias[1000], sum[1000];

typedef struct gemm_case {
    uint64_t m, n, k, batch;
    uint32_t trans;
    bool bias, sum, accumulate;
    cek_activation act, act_grad;
    int64_t pad; /* of every leading dimension */
    bool shared_b;
} gemm_case;

static const gemm_case gemms[] = {
    { 5, 7, 9, 1, 0, false, false, false, 0, 0, 0, false },
    { 64, 10, 128, 1, CEK_GEMM_TRANS_B, true, false, false, 0, 0, 0, false },
    { 64, 33, 50, 1, CEK_GEMM_TRANS_B, true, false, false, CEK_ACT_RELU, 0, 3, false },
    { 33, 50, 64, 1, CEK_GEMM_TRANS_A, false, true, false, 0, 0, 0, false },
    { 33, 50, 64, 1, CEK_GEMM_TRANS_A, false, true, true, 0, 0, 2, false },
    { 64, 50, 33, 1, 0, false, false, false, 0, CEK_ACT_RELU, 1, false },
    { 64, 50, 33, 1, 0, false, false, true, 0, CEK_ACT_TANH, 1, false },
    { 20, 30, 40, 4, 0, true, false, true, CEK_ACT_TANH, 0, 0, false },
    { 20, 30, 40, 4, CEK_GEMM_TRANS_A | CEK_GEMM_TRANS_B, false, false, false, 0, 0, 5, true },
    { 12, 13, 0, 1, 0, true, false, true, CEK_ACT_RELU, 0, 0, false },
    { 1, 1000, 50, 1, 0, true, false, false, CEK_ACT_SIGMOID, 0, 0, false },
    { 40, 1, 500, 1, 0, false, false, false, 0, 0, 0, false },
    { 17, 17, 17, 1, 0, false, false, false, CEK_ACT_GELU, 0, 0, false },
    /* small enough to be read in place: whole panels of B, A either way, its sums */
    { 32, 64, 64, 1, 0, false, false, false, 0, CEK_ACT_RELU, 0, false },
    { 31, 64, 33, 3, 0, true, false, false, CEK_ACT_RELU, 0, 4, false },
    { 64, 32, 32, 1, CEK_GEMM_TRANS_A, false, true, true, 0, 0, 1, false },
    { 45, 96, 7, 2, CEK_GEMM_TRANS_A, false, false, false, 0, CEK_ACT_TANH, 0, true },
    { 3, 64, 40, 1, CEK_GEMM_TRANS_B, true, false, false, CEK_ACT_RELU, 0, 0, false },
    /* and too large: few rows of dot products, others packed */
    { 3, 50, 500, 1, CEK_GEMM_TRANS_B, true, false, true, 0, 0, 0, false },
    { 200, 64, 200, 1, CEK_GEMM_TRANS_A, false, true, true, 0, 0, 1, false },
};
enum { GEMMS = sizeof gemms / sizeof gemms[0] };

static uint64_t matrix_extent(uint64_t rows, uint64_t columns, int64_t ld, uint64_t batch, int64_t stride)
{
    return rows && columns ? (batch - 1) * (uint64_t)stride + (rows - 1) * (uint64_t)ld + columns : 1;
}

START_TEST(products_of_every_description)
{
    const gemm_case *g = &gemms[_i];
    const bool ta = g->trans & CEK_GEMM_TRANS_A, tb = g->trans & CEK_GEMM_TRANS_B;
    const uint64_t a_rows = ta ? g->k : g->m, a_columns = ta ? g->m : g->k, b_rows = tb ? g->n : g->k,
                   b_columns = tb ? g->k : g->n;
    const cek_epilogue e = { .size = sizeof e, .activation = g->act, .act_grad = g->act_grad };
    cek_gemm_desc d = {
        .op = { .size = sizeof d, .kind = CEK_OP_GEMM, .operands = 7, .epilogue = g->act || g->act_grad ? &e : NULL },
        .m = g->m,
        .n = g->n,
        .k = g->k,
        .batch = g->batch,
        .a_type = CEK_F32,
        .b_type = CEK_F32,
        .c_type = CEK_F32,
        .lda = (int64_t)a_columns + g->pad,
        .ldb = (int64_t)b_columns + g->pad,
        .ldc = (int64_t)g->n + g->pad,
        .trans = g->trans
    };
    cek_dtype types[6] = { CEK_F32, CEK_F32, CEK_F32, CEK_F32, CEK_F32, CEK_F32 };
    int count = 3;

    d.stride_a = (int64_t)a_rows * d.lda + 1;
    d.stride_b = g->shared_b ? 0 : (int64_t)b_rows * d.ldb + 2;
    d.stride_c = (int64_t)g->m * d.ldc + 3;
    const uint64_t c_bytes = matrix_extent(g->m, g->n, d.ldc, g->batch, d.stride_c) * 4;
    operand o[6] = { { 0, a, matrix_extent(a_rows, a_columns, d.lda, g->batch, d.stride_a) * 4, IN },
                     { 1, b, matrix_extent(b_rows, b_columns, d.ldb, g->batch, d.stride_b) * 4, IN },
                     { 2, c, c_bytes, OUT } };

    fill_uniform(a, MOST, 1);
    fill_uniform(b, MOST, 2);
    fill_uniform(c, MOST, 3);
    fill_uniform(ref, MOST, 4);
    fill_uniform(bias, 1000, 5);
    fill_uniform(sum, 1000, 6);
    if (g->bias)
        o[count++] = (operand){ CEK_GEMM_BIAS, bias, g->n * 4, IN };
    if (g->act_grad)
        o[count++] = (operand){ CEK_GEMM_ACT_REF, ref, c_bytes, IN };
    if (g->sum)
        o[count++] = (operand){ CEK_GEMM_A_SUM, sum, g->m * 4, OUT };
    for (int i = 3; i < count; i++)
        d.op.operands |= CEK_BIT(o[i].slot);
    if (g->accumulate)
        d.op.accumulate = CEK_BIT(CEK_GEMM_C) | (g->sum ? CEK_BIT(CEK_GEMM_A_SUM) : 0);
    /* k products of numbers below 1 and their sum, k + 4 roundings of at most k */
    const double k = (double)g->k + 4;
    compare("gemm", &d.op, o, types, count, (tolerance){ k * sqrt(k) * 0x1p-24, 0x1p-22 });
}
END_TEST

/* Two levels of a batch, each with one B for all or its own. apart: rows of the inner one's matrices take turns, which
 * makes one batch of the two impossible. */
static const struct {
    uint64_t batch, outer;
    bool apart, own_b, outer_own_b;
} batches[] = {
    { 1, 0, false, false, false }, { 4, 0, false, false, false }, { 1, 3, false, false, false },
    { 2, 3, false, false, false }, { 2, 3, true, false, false },  { 4, 0, false, true, false },
    { 1, 3, false, false, true },  { 2, 3, false, true, true },   { 2, 3, false, false, true },
    { 2, 3, true, true, false },
};
enum { BATCHES = sizeof batches / sizeof batches[0], ROWS = 32, COLUMNS = 90, DEPTH = 80 };

static cek_gemm_desc batch_of(int i, cek_dtype type, uint32_t trans)
{
    const int64_t batch = (int64_t)batches[i].batch, between = batches[i].apart ? batch : 1;
    const int64_t own_b = batches[i].own_b ? batch : 1;

    return (cek_gemm_desc){ .op = { .size = sizeof(cek_gemm_desc), .kind = CEK_OP_GEMM, .operands = 7 },
                            .m = ROWS,
                            .n = COLUMNS,
                            .k = DEPTH,
                            .batch = batches[i].batch,
                            .outer = batches[i].outer,
                            .a_type = type,
                            .b_type = type,
                            .c_type = type,
                            .lda = between * DEPTH,
                            .ldb = trans ? DEPTH : COLUMNS,
                            .ldc = between * COLUMNS,
                            .stride_a = batches[i].apart ? DEPTH : ROWS * DEPTH,
                            .stride_b = batches[i].own_b ? DEPTH * COLUMNS : 0,
                            .stride_c = batches[i].apart ? COLUMNS : ROWS * COLUMNS,
                            .outer_a = batch * ROWS * DEPTH,
                            .outer_b = batches[i].outer_own_b || batches[i].outer < 2 ? own_b * DEPTH * COLUMNS : 0,
                            .outer_c = batch * ROWS * COLUMNS,
                            .trans = trans };
}

/* Several B, and what is shared by threads, may be packed as they are used; one B is packed ahead on one thread. */
START_TEST(packed_weights_give_the_same_bits_in_every_batch)
{
    static uint16_t low_a[MOST], low_b[MOST];
    const uint64_t packed = CEK_BIT(CEK_GEMM_PACKED);
    const uint64_t levels = batches[_i].batch * (batches[_i].outer ? batches[_i].outer : 1);
    const bool one_b = !batches[_i].own_b && !batches[_i].outer_own_b;

    fill_uniform(a, MOST, 1);
    fill_uniform(b, MOST, 2);
    to_bf16(a, low_a, MOST);
    to_bf16(b, low_b, MOST);
    for (int low = 0; low < 2; low++)
        for (uint32_t trans = 0; trans <= CEK_GEMM_TRANS_B; trans += CEK_GEMM_TRANS_B) {
            const uint64_t bytes = low ? 2 : 4, c_bytes = levels * ROWS * COLUMNS * bytes;
            operand o[] = { { CEK_GEMM_A, low ? (void *)low_a : a, levels * ROWS * DEPTH * bytes, IN },
                            { CEK_GEMM_C, c, c_bytes, OUT },
                            { CEK_GEMM_B, low ? (void *)low_b : b, levels * DEPTH * COLUMNS * bytes, IN },
                            { CEK_GEMM_PACKED, NULL, 0, PACKED } };
            cek_gemm_desc d = batch_of(_i, low ? CEK_BF16 : CEK_F32, trans);

            for (int f = 0; f < form_count(); f++) {
                cek_status st;

                d.op.flags = 0;
                d.op.operands &= ~packed;
                o[1].data = ref;
                ck_assert_uint_eq(run_op(form(f), &d.op, o, 3, 0), CEK_OK);
                d.op.flags = CEK_OP_PREPACKED;
                d.op.operands |= packed;
                o[1].data = c;
                memset(c, 0xff, c_bytes);
                st = run_op(form(f), &d.op, o, 4, 0);
                ck_assert_msg(st == CEK_OK || (st == CEK_UNSUPPORTED && (f % 2 || !one_b)), "%s", form(f)->failure);
                ck_assert_msg(st != CEK_OK || !memcmp(c, ref, c_bytes), "other bits on %s with %s threads",
                              form(f)->settings[1], form(f)->settings[3]);
            }
        }
}
END_TEST

START_TEST(f64_products_are_refused_by_name)
{
    cek_gemm_desc d = { .op = { .size = sizeof d, .kind = CEK_OP_GEMM, .operands = 7 },
                        .m = 2,
                        .n = 2,
                        .k = 2,
                        .batch = 1,
                        .lda = 2,
                        .ldb = 2,
                        .ldc = 2,
                        .a_type = CEK_F64,
                        .b_type = CEK_F64,
                        .c_type = CEK_F64 };
    cek_op *op;

    ck_assert_uint_eq(form(0)->p.op_create(form(0)->dev, &d.op, NULL, &op), CEK_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(form(0)->failure, "gemm"));
    ck_assert_ptr_nonnull(strstr(form(0)->failure, "f64"));
}
END_TEST

/* The layout of packed weights of `rows` x `columns` taps that are `stride` columns apart, or 0 where pixels are not
 * taken together. */
static uint64_t wide_layout(backend *on, uint64_t channels, uint64_t rows, uint64_t columns, uint64_t stride)
{
    const uint64_t slots = CEK_BIT(CEK_CONV_FORWARD_X) | CEK_BIT(CEK_CONV_FORWARD_Y) | CEK_BIT(CEK_CONV_FORWARD_PACKED);
    const cek_conv_desc d = {
        .op = { .size = sizeof d, .kind = CEK_OP_CONV_FORWARD, .flags = CEK_OP_PREPACKED, .operands = slots },
        .spatial = 2,
        .groups = 1,
        .batch = 1,
        .in_channels = 1,
        .out_channels = channels,
        .in = { 8, 47 * stride + columns },
        .kernel = { rows, columns },
        .stride = { 1, stride },
        .dilation = { 1, 1 },
        .x_type = CEK_F32,
        .w_type = CEK_F32,
        .y_type = CEK_F32
    };
    cek_op_info info = { .size = sizeof info };
    cek_op *op;

    ck_assert_msg(on->p.op_create(on->dev, &d.op, &info, &op) == CEK_OK, "%s", on->failure);
    on->p.op_destroy(op);
    return strstr(info.algorithm, "together") ? info.prepack_layout : 0;
}

/* As many weights and as many of wide pixels, in lines of other lengths. */
START_TEST(packed_weights_of_wide_pixels_are_shared_by_equal_lines_alone)
{
    for (int f = 0; f < form_count(); f++) {
        int compared = 0;

        for (uint64_t channels = 1; channels <= 8; channels *= 2) {
            const uint64_t one = wide_layout(form(f), channels, 1, 6, 2), two = wide_layout(form(f), channels, 2, 3, 1);

            compared += one && two;
            ck_assert(!one || one != two);
            ck_assert_uint_eq(one, wide_layout(form(f), channels, 1, 6, 2));
        }
        ck_assert_int_gt(compared, 0);
    }
}
END_TEST

void add_products(Suite *suite)
{
    TCase *cases = tcase_create("products");

    tcase_add_checked_fixture(cases, forms_open, forms_close);
    tcase_add_loop_test(cases, products_of_every_description, 0, GEMMS);
    tcase_add_loop_test(cases, packed_weights_give_the_same_bits_in_every_batch, 0, BATCHES);
    tcase_add_test(cases, f64_products_are_refused_by_name);
    tcase_add_test(cases, packed_weights_of_wide_pixels_are_shared_by_equal_lines_alone);
    suite_add_tcase(suite, cases);
}
