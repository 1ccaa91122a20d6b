/* tensors.c - pointwise and copy: every instruction, strides of all kinds, types, accumulation,
 * blocks and their ends. */
#include "harness.h"

#include <stdio.h>

enum { MOST = 70000 };
static float in0[MOST], in1[MOST], in2[MOST], out[MOST];

static void numbers(void)
{
    fill_uniform(in0, MOST, 1);
    fill_uniform(in1, MOST, 2);
    fill_uniform(in2, MOST, 3);
    fill_uniform(out, MOST, 4);
    for (int i = 0; i < MOST; i += 97) {
        in0[i] = in1[i]; /* equal pairs */
        in0[(i + 5) % MOST] = NAN;
        in1[(i + 11) % MOST] = NAN;
        in1[(i + 29) % MOST] = i % 2 ? INFINITY : -INFINITY;
        in0[(i + 17) % MOST] = i % 2 ? INFINITY : -INFINITY;
        in0[(i + 23) % MOST] = i % 2 ? 0.0f : -0.0f;
    }
}

static cek_pointwise_desc pointwise(int n_inputs, const cek_pointwise_input *inputs, int n_code,
                                    const cek_pointwise_instruction *code)
{
    return (cek_pointwise_desc){
        .op = { .size = sizeof(cek_pointwise_desc),
                .kind = CEK_OP_POINTWISE,
                .operands = (CEK_BIT(n_inputs) - 1) | CEK_BIT(CEK_POINTWISE_OUT) },
        .out_type = CEK_F32,
        .inputs = inputs,
        .input_count = (uint32_t)n_inputs,
        .input_size = sizeof *inputs,
        .instructions = code,
        .instruction_count = (uint32_t)n_code,
        .instruction_size = sizeof *code,
    };
}

static const int lengths[] = { 1, 3, 15, 16, 17, 100, 511, 512, 513, 1024 + 7, MOST };
enum { LENGTHS = sizeof lengths / sizeof lengths[0] };

START_TEST(every_instruction_gives_what_the_reference_gives)
{
    const uint32_t code = (uint32_t)_i;
    const bool approximate = code == CEK_PW_EXP || code == CEK_PW_LOG || (code >= CEK_PW_TANH && code <= CEK_PW_GELU);
    const bool slope = code >= CEK_PW_TANH_GRAD && code <= CEK_PW_GELU_GRAD;
    const bool imm = code == CEK_PW_CONST || code == CEK_PW_ADD_IMM || code == CEK_PW_MUL_IMM;
    const bool two = (code >= CEK_PW_ADD && code <= CEK_PW_MAX) || (code >= CEK_PW_RELU_GRAD && code <= CEK_PW_POW);
    /* vmath.h's bounds; the products of a slope round three times, and 1 - y*y may cancel where
     * it is not fused */
    const tolerance t = approximate ? (tolerance){ 1e-37, 8 * 0x1p-24 } : slope ? (tolerance){ 4e-7, 4e-7 } : exactly;

    numbers();
    for (int l = 0; l < LENGTHS; l++) {
        const cek_pointwise_input inputs[2] = { { .type = CEK_F32, .strides = { 1 } },
                                                { .type = CEK_F32, .strides = { 1 } } };
        const cek_pointwise_instruction step = {
            .code = code, .a = 0, .b = two, .c = code == CEK_PW_SELECT, .imm = imm ? 0.75 : 0
        };
        const uint64_t bytes = (uint64_t)lengths[l] * 4;
        cek_pointwise_desc d = pointwise(2, inputs, 1, &step);
        const operand o[] = { { 0, in0, bytes, IN }, { 1, in1, bytes, IN }, { CEK_POINTWISE_OUT, out, bytes, OUT } };
        const cek_dtype types[] = { CEK_F32, CEK_F32, CEK_F32 };
        char what[32];

        d.rank = 1;
        d.shape[0] = (uint64_t)lengths[l];
        d.out_strides[0] = 1;
        d.rows_per_sample = code == CEK_PW_VALID ? 3 : 0;
        snprintf(what, sizeof what, "instruction %u, %d", code, lengths[l]);
        compare(what, &d.op, o, types, 3, t);
        d.op.accumulate = CEK_BIT(CEK_POINTWISE_OUT);
        compare(what, &d.op, o, types, 3, (tolerance){ t.absolute + 1e-6, t.relative + 1e-6 });
    }
}
END_TEST

/* Shapes and strides of an input and the result; 0 ends a shape. */
typedef struct layout {
    const char *what;
    uint64_t shape[5];
    int64_t a[5], b[5], out[5];
} layout;

static const layout layouts[] = {
    { "bias along rows", { 64, 100 }, { 100, 1 }, { 0, 1 }, { 100, 1 } },
    { "long bias", { 5, 3000 }, { 3000, 1 }, { 0, 1 }, { 3000, 1 } },
    { "bias of one", { 640, 1 }, { 1, 1 }, { 0, 1 }, { 1, 1 } },
    { "scalar", { 64, 100 }, { 100, 1 }, { 0, 0 }, { 100, 1 } },
    { "one number per row", { 100, 37 }, { 37, 1 }, { 1, 0 }, { 37, 1 } },
    { "channels of an image", { 3, 17, 5, 24 }, { 2040, 120, 24, 1 }, { 0, 0, 0, 1 }, { 2040, 120, 24, 1 } },
    { "rows of a wider matrix", { 33, 50 }, { 64, 1 }, { 70, 1 }, { 128, 1 } },
    { "transposed input", { 70, 90 }, { 1, 70 }, { 90, 1 }, { 90, 1 } },
    { "transposed result", { 70, 90 }, { 90, 1 }, { 90, 1 }, { 1, 70 } },
    { "every second", { 1000 }, { 2 }, { 1 }, { 3 } },
    { "four axes, permuted", { 3, 4, 5, 6 }, { 120, 1, 4, 20 }, { 1, 3, 12, 60 }, { 120, 30, 6, 1 } },
    { "one element", { 1, 1, 1 }, { 7, 9, 11 }, { 0, 0, 0 }, { 1, 1, 1 } },
    { "middle broadcast", { 10, 20, 30 }, { 600, 30, 1 }, { 30, 0, 1 }, { 600, 30, 1 } },
};
enum { LAYOUTS = sizeof layouts / sizeof layouts[0] };

static uint64_t extent(const uint64_t *shape, const int64_t *strides)
{
    uint64_t last = 0;

    for (int i = 0; i < 5 && shape[i]; i++)
        last += (shape[i] - 1) * (uint64_t)strides[i];
    return last + 1;
}

static void axes_fill(const layout *l, cek_pointwise_desc *d, cek_pointwise_input inputs[2])
{
    for (; d->rank < 5 && l->shape[d->rank]; d->rank++) {
        d->shape[d->rank] = l->shape[d->rank];
        inputs[0].strides[d->rank] = l->a[d->rank];
        inputs[1].strides[d->rank] = l->b[d->rank];
        d->out_strides[d->rank] = l->out[d->rank];
    }
}

START_TEST(chains_over_strided_operands)
{
    const layout *l = &layouts[_i];
    /* relu(a * b + 0.5) - max(a, b), then added to the result or not */
    const cek_pointwise_instruction code[] = {
        { .code = CEK_PW_MUL, .a = 0, .b = 1 }, { .code = CEK_PW_ADD_IMM, .a = 2, .imm = 0.5 },
        { .code = CEK_PW_RELU, .a = 3 },        { .code = CEK_PW_MAX, .a = 0, .b = 1 },
        { .code = CEK_PW_SUB, .a = 4, .b = 5 },
    };
    cek_pointwise_input inputs[2] = { { .type = CEK_F32 }, { .type = CEK_F32 } };
    cek_pointwise_desc d = pointwise(2, inputs, 5, code);
    const operand o[] = { { 0, in0, extent(l->shape, l->a) * 4, IN },
                          { 1, in1, extent(l->shape, l->b) * 4, IN },
                          { CEK_POINTWISE_OUT, out, extent(l->shape, l->out) * 4, OUT } };
    const cek_dtype types[] = { CEK_F32, CEK_F32, CEK_F32 };

    numbers();
    axes_fill(l, &d, inputs);
    compare(l->what, &d.op, o, types, 3, (tolerance){ 3e-7, 0 });
    d.op.accumulate = CEK_BIT(CEK_POINTWISE_OUT);
    compare(l->what, &d.op, o, types, 3, (tolerance){ 6e-7, 0 });
}
END_TEST

/* Rows are indices along axis 0, wherever that lies in memory; none of them is written down. */
START_TEST(rows_that_count_are_told_from_padding_in_every_layout)
{
    const layout *l = &layouts[_i];
    const cek_pointwise_instruction code[] = { { .code = CEK_PW_VALID },
                                               { .code = CEK_PW_SELECT, .a = 2, .b = 0, .c = 1 } };
    cek_pointwise_input inputs[2] = { { .type = CEK_F32 }, { .type = CEK_F32 } };
    cek_pointwise_desc d = pointwise(2, inputs, 2, code);
    cek_batch_block batch = { .rows_valid = 0 };
    const operand o[] = { { 0, in0, extent(l->shape, l->a) * 4, IN },
                          { 1, in1, extent(l->shape, l->b) * 4, IN },
                          { CEK_POINTWISE_OUT, out, extent(l->shape, l->out) * 4, OUT },
                          { CEK_POINTWISE_BATCH, &batch, sizeof batch, IN } };
    const cek_dtype types[] = { CEK_F32, CEK_F32, CEK_F32, CEK_U8 };

    numbers();
    axes_fill(l, &d, inputs);
    d.op.operands |= CEK_BIT(CEK_POINTWISE_BATCH);
    d.rows_per_sample = d.shape[0] > 6 ? 3 : 1;
    for (uint32_t rows = 0; rows <= d.shape[0] / d.rows_per_sample + 1; rows += 1 + (uint32_t)d.shape[0] / 20) {
        batch.rows_valid = rows;
        compare(l->what, &d.op, o, types, 4, exactly);
    }
    for (int f = 0; f < form_count(); f++) {
        cek_op_info info = { .size = sizeof info };
        cek_op *op;

        ck_assert_uint_eq(form(f)->p.op_create(form(f)->dev, &d.op, &info, &op), CEK_OK);
        ck_assert_uint_eq(info.workspace_bytes, 0);
        form(f)->p.op_destroy(op);
    }
}
END_TEST

START_TEST(integers_come_in_and_go_out)
{
    enum { N = 3000, COLUMNS = 30 };
    static uint8_t bytes[N], rounded[N];
    static int32_t words[N], large[N];
    const cek_pointwise_instruction code[] = { { .code = CEK_PW_MUL_IMM, .a = 0, .imm = 2.0 / 255 },
                                               { .code = CEK_PW_ADD_IMM, .a = 2, .imm = -1 },
                                               { .code = CEK_PW_ADD, .a = 3, .b = 1 } };
    cek_pointwise_input inputs[2] = { { .type = CEK_U8, .strides = { COLUMNS, 1 } },
                                      { .type = CEK_I32, .strides = { 0, 1 } } };
    cek_pointwise_desc d = pointwise(2, inputs, 3, code);
    const operand o[] = { { 0, bytes, N, IN }, { 1, words, COLUMNS * 4, IN }, { CEK_POINTWISE_OUT, out, N * 4, OUT } };
    const cek_dtype types[] = { CEK_U8, CEK_I32, CEK_F32 };

    d.rank = 2;
    d.shape[0] = N / COLUMNS;
    d.shape[1] = COLUMNS;
    d.out_strides[0] = COLUMNS;
    d.out_strides[1] = 1;
    for (int i = 0; i < N; i++) {
        bytes[i] = (uint8_t)(i * 7);
        words[i] = i % 5 - 2;
    }
    compare("u8 and i32 to f32", &d.op, o, types, 3, (tolerance){ 5e-7, 0 });

    /* f32 to u8 and i32: halves to even, saturation, NaN */
    static const float hard[] = { 0.5f,           1.5f,       2.5f,       -0.5f,       -1.5f,
                                  254.5f,         255.5f,     300,        -7,          NAN,
                                  INFINITY,       -INFINITY,  3e9f,       -3e9f,       2147483520.0f,
                                  -2147483648.0f, 8388609.0f, 4194304.5f, -4194305.5f, 1e-30f,
                                  -0.0f };
    for (int i = 0; i < N; i++)
        in0[i] = i < 1000 ? hard[(size_t)i % (sizeof hard / sizeof hard[0])] : (float)(i - 2000) * 0.5f;
    inputs[0] = (cek_pointwise_input){ .type = CEK_F32, .strides = { COLUMNS, 1 } };
    const cek_pointwise_instruction same = { .code = CEK_PW_COPY, .a = 0 };
    cek_pointwise_desc e = pointwise(1, inputs, 1, &same);
    const operand to_u8[] = { { 0, in0, N * 4, IN }, { CEK_POINTWISE_OUT, rounded, N, OUT } };
    const operand to_i32[] = { { 0, in0, N * 4, IN }, { CEK_POINTWISE_OUT, large, N * 4, OUT } };

    e.rank = 2;
    memcpy(e.shape, d.shape, sizeof e.shape);
    memcpy(e.out_strides, d.out_strides, sizeof e.out_strides);
    e.out_type = CEK_U8;
    compare("f32 to u8", &e.op, to_u8, (cek_dtype[]){ CEK_F32, CEK_U8 }, 2, exactly);
    e.out_type = CEK_I32;
    compare("f32 to i32", &e.op, to_i32, (cek_dtype[]){ CEK_F32, CEK_I32 }, 2, exactly);
}
END_TEST

START_TEST(halves_are_read_and_written)
{
    enum { N = 5000 };
    static uint16_t a[N], b[N];
    const cek_dtype half[] = { CEK_BF16, CEK_F16 };

    numbers();
    for (int h = 0; h < 2; h++) {
        const cek_pointwise_input inputs[2] = { { .type = half[h], .strides = { 1 } },
                                                { .type = CEK_F32, .strides = { 1 } } };
        const cek_pointwise_instruction code = { .code = CEK_PW_MUL, .a = 0, .b = 1 };
        cek_pointwise_desc d = pointwise(2, inputs, 1, &code);
        const operand o[] = { { 0, a, N * 2, IN }, { 1, in1, N * 4, IN }, { CEK_POINTWISE_OUT, b, N * 2, OUT } };

        for (int i = 0; i < N; i++) /* every exponent, both signs */
            a[i] = (uint16_t)(i * 13);
        d.rank = 1;
        d.shape[0] = N;
        d.out_strides[0] = 1;
        d.out_type = half[h];
        /* one rounding of the same f32 product */
        compare(h ? "f16" : "bf16", &d.op, o, (cek_dtype[]){ half[h], CEK_F32, half[h] }, 3, exactly);
    }
}
END_TEST

START_TEST(the_result_may_be_an_input)
{
    enum { N = 40000 };
    const cek_pointwise_input inputs[2] = { { .type = CEK_F32, .strides = { 1 } },
                                            { .type = CEK_F32, .strides = { 1 } } };
    const cek_pointwise_instruction code[] = { { .code = CEK_PW_SUB, .a = 0, .b = 1 },
                                               { .code = CEK_PW_MUL, .a = 2, .b = 0 } };
    cek_pointwise_desc d = pointwise(2, inputs, 2, code);

    fill_uniform(in0, N, 5);
    fill_uniform(in1, N, 6);
    d.rank = 1;
    d.shape[0] = N;
    d.out_strides[0] = 1;
    for (int f = 0; f < form_count(); f++) {
        backend *b = form(f);
        const cek_mem_desc want = { .size = sizeof want, .bytes = N * 4 };
        cek_mem *x, *y;
        cek_op *op;

        ck_assert_uint_eq(b->p.mem_alloc(b->dev, &want, &x), CEK_OK);
        ck_assert_uint_eq(b->p.mem_alloc(b->dev, &want, &y), CEK_OK);
        memcpy(b->p.mem_host_ptr(x), in0, N * 4);
        memcpy(b->p.mem_host_ptr(y), in1, N * 4);
        ck_assert_uint_eq(b->p.op_create(b->dev, &d.op, NULL, &op), CEK_OK);
        const cek_ref refs[9] = { [0] = { x, 0 }, [1] = { y, 0 }, [CEK_POINTWISE_OUT] = { x, 0 } };
        ck_assert_uint_eq(b->p.op_run(b->queue, op, refs, 9, (cek_ref){ NULL, 0 }), CEK_OK);
        const float *got = b->p.mem_host_ptr(x);
        for (int i = 0; i < N; i++)
            must(fabsf(got[i] - (in0[i] - in1[i]) * in0[i]) <= 2e-7f, "element %d is %g", i, got[i]);
        b->p.op_destroy(op);
        b->p.mem_free(x);
        b->p.mem_free(y);
    }
}
END_TEST

START_TEST(offsets_need_only_the_alignment_of_the_descriptor)
{
    enum { N = 1000 };
    const cek_pointwise_input input = { .type = CEK_F32, .strides = { 1 } };
    const cek_pointwise_instruction code = { .code = CEK_PW_TANH, .a = 0 };
    cek_pointwise_desc d = pointwise(1, &input, 1, &code);
    static float straight[N];
    operand o[] = { { 0, in0, N * 4, IN }, { CEK_POINTWISE_OUT, straight, N * 4, OUT } };
    operand shifted[] = { { 0, in0, N * 4, IN }, { CEK_POINTWISE_OUT, out, N * 4, OUT } };

    fill_uniform(in0, N, 5);
    d.rank = 1;
    d.shape[0] = N;
    d.out_strides[0] = 1;
    d.op.align = 4;
    for (int f = 0; f < form_count(); f++) {
        ck_assert_uint_eq(run_op(form(f), &d.op, o, 2, 0), CEK_OK);
        ck_assert_uint_eq(run_op(form(f), &d.op, shifted, 2, 4), CEK_OK);
        ck_assert_mem_eq(straight, out, sizeof straight);
    }
}
END_TEST

/* --- copy ------------------------------------------------------------------------------------- */

static const layout copies[] = {
    { "whole", { 50000 }, { 1 }, { 0 }, { 1 } },
    { "images to channels first", { 5, 12, 13, 7 }, { 1092, 7, 84, 1 }, { 0 }, { 1092, 91, 7, 1 } },
    { "permuted", { 6, 7, 30, 20 }, { 4200, 600, 20, 1 }, { 0 }, { 4200, 1, 140, 7 } },
    { "transposed", { 130, 200 }, { 1, 130 }, { 0 }, { 200, 1 } },
    { "transposed batch", { 3, 65, 70 }, { 4550, 1, 65 }, { 0 }, { 4550, 70, 1 } },
    { "slice", { 20, 30 }, { 100, 1 }, { 0 }, { 30, 1 } },
    { "into a slice", { 20, 30 }, { 30, 1 }, { 0 }, { 100, 1 } },
    { "broadcast", { 20, 30 }, { 0, 1 }, { 0 }, { 30, 1 } },
    { "one number", { 20, 30 }, { 0, 0 }, { 0 }, { 30, 1 } },
    { "gaps", { 20, 30 }, { 90, 3 }, { 0 }, { 64, 2 } },
};
enum { COPIES = sizeof copies / sizeof copies[0] };

START_TEST(copies_of_all_shapes_and_types)
{
    static const cek_dtype pairs[][2] = {
        { CEK_F32, CEK_F32 }, { CEK_U8, CEK_U8 },    { CEK_I32, CEK_I32 }, { CEK_BF16, CEK_BF16 },
        { CEK_F16, CEK_F16 }, { CEK_U8, CEK_F32 },   { CEK_I32, CEK_F32 }, { CEK_F32, CEK_BF16 },
        { CEK_F32, CEK_F16 }, { CEK_BF16, CEK_F32 }, { CEK_F16, CEK_F32 }, { CEK_F32, CEK_U8 },
        { CEK_F32, CEK_I32 }, { CEK_F64, CEK_F64 },
    };
    const layout *l = &copies[_i];
    static unsigned char x[MOST * 8], y[MOST * 8];
    uint64_t seed = 9;

    for (size_t t = 0; t < sizeof pairs / sizeof pairs[0]; t++) {
        cek_copy_desc d = { .op = { .size = sizeof d, .kind = CEK_OP_COPY, .operands = 3 },
                            .x_type = pairs[t][0],
                            .y_type = pairs[t][1] };
        const operand o[] = { { CEK_COPY_X, x, extent(l->shape, l->a) * type_bytes(pairs[t][0]), IN },
                              { CEK_COPY_Y, y, extent(l->shape, l->out) * type_bytes(pairs[t][1]), OUT } };

        for (int i = 0; i < MOST; i++) {
            const float value = (float)((int64_t)(next_random(&seed) % 100000) - 50000) / 150;

            if (pairs[t][0] == CEK_F32)
                memcpy(x + 4 * i, &value, 4);
            else
                for (int k = 0; k < 8; k++)
                    x[8 * i + k] = (unsigned char)(i * 7 + k * (k % 2 ? 3 : 5));
        }
        memset(y, 0x11, sizeof y);
        for (; d.rank < 5 && l->shape[d.rank]; d.rank++) {
            d.shape[d.rank] = l->shape[d.rank];
            d.x_strides[d.rank] = l->a[d.rank];
            d.y_strides[d.rank] = l->out[d.rank];
        }
        compare(l->what, &d.op, o, pairs[t], 2, exactly);
    }
}
END_TEST

START_TEST(what_would_be_rounded_twice_is_refused)
{
    cek_copy_desc d = { .op = { .size = sizeof d, .kind = CEK_OP_COPY, .operands = 3 },
                        .rank = 1,
                        .x_type = CEK_I32,
                        .y_type = CEK_F16,
                        .shape = { 10 },
                        .x_strides = { 1 },
                        .y_strides = { 1 } };
    cek_op *op;

    ck_assert_uint_eq(form(0)->p.op_create(form(0)->dev, &d.op, NULL, &op), CEK_UNSUPPORTED);
    ck_assert_ptr_null(op);
    ck_assert_ptr_nonnull(strstr(form(0)->failure, "rounded twice"));
    d.x_type = CEK_F64;
    ck_assert_uint_eq(form(0)->p.op_create(form(0)->dev, &d.op, NULL, &op), CEK_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(form(0)->failure, "f64"));
}
END_TEST

void add_tensors(Suite *suite)
{
    TCase *cases = tcase_create("tensors");

    tcase_add_checked_fixture(cases, forms_open, forms_close);
    tcase_add_loop_test(cases, every_instruction_gives_what_the_reference_gives, CEK_PW_CONST, CEK_PW_VALID + 1);
    tcase_add_loop_test(cases, chains_over_strided_operands, 0, LAYOUTS);
    tcase_add_loop_test(cases, rows_that_count_are_told_from_padding_in_every_layout, 0, LAYOUTS);
    tcase_add_test(cases, integers_come_in_and_go_out);
    tcase_add_test(cases, halves_are_read_and_written);
    tcase_add_test(cases, the_result_may_be_an_input);
    tcase_add_test(cases, offsets_need_only_the_alignment_of_the_descriptor);
    tcase_add_loop_test(cases, copies_of_all_shapes_and_types, 0, COPIES);
    tcase_add_test(cases, what_would_be_rounded_twice_is_refused);
    suite_add_tcase(suite, cases);
}
