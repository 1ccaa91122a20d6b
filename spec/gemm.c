/* gemm.c - cases and oracle of matrix products.
 *
 * Text: MxNxK, then :ta :tb (transposed), :bN (batch), :oN (its outer level), :heads (C, and what
 * is not transposed, with the batch inside the rows: [outer][rows][batch][columns]), :ld (rows and matrices further
 * apart than they are long), :a0 :b0 (one matrix for all of the batch), :ao0 :bo0 (the same in all of the outer level),
 * :bias, :acc, :asum, an activation, :g and an activation (times its derivative), :packed, :c32 (a result in f32). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "spec/problem.h"

#define REQUIRED(text_, fills_)                             \
    {                                                       \
        .text = text_, .types = SPEC_T_ALL, .fills = fills_ \
    }
#define OPTIONAL(text_, fills_)                                               \
    {                                                                         \
        .text = text_, .types = SPEC_T_ALL, .fills = fills_, .optional = true \
    }
static const spec_case gemm_cases[] = {
    REQUIRED("1x1x1", SPEC_F_ALL),
    REQUIRED("1x1x0:bias", SPEC_F_ALL), /* k = 0: the epilogue of 0 */
    REQUIRED("3x5x0", SPEC_F_BOTH),
    REQUIRED("3x5x0:acc", SPEC_F_BOTH),
    REQUIRED("3x5x0:asum", SPEC_F_BOTH),
    REQUIRED("3x5x0:ta:asum:acc", SPEC_F_BOTH),
    REQUIRED("700x600x2:bias:acc", SPEC_F(REAL)), /* so many that some tell in which order they are added */
    REQUIRED("2x3x4", SPEC_F_ALL),
    REQUIRED("7x9x11:bare", SPEC_F_BOTH), /* outer = 0 is 1; strides of one matrix are not read */
    REQUIRED("7x9x11", SPEC_F_ALL),       /* no tile is full */
    REQUIRED("1x67x129", SPEC_F_BOTH),    /* a row vector */
    REQUIRED("1x67x129:tb", SPEC_F_BOTH),
    REQUIRED("131x1x65", SPEC_F_BOTH), /* a column */
    REQUIRED("131x1x65:ta:bias", SPEC_F_BOTH),
    REQUIRED("17x33x1", SPEC_F_BOTH),  /* an outer product */
    REQUIRED("4x4x1000", SPEC_F_BOTH), /* long sums, tiny result */
    REQUIRED("64x64x64", SPEC_F_ALL),
    REQUIRED("65x63x66:ta", SPEC_F_ALL),
    REQUIRED("65x63x66:tb", SPEC_F_ALL),
    REQUIRED("65x63x66:ta:tb", SPEC_F_ALL),
    REQUIRED("14x32x48", SPEC_F_BOTH),
    REQUIRED("15x31x47:bias", SPEC_F_ALL),
    REQUIRED("29x65x70:acc", SPEC_F_ALL),
    REQUIRED("29x65x70:ta:acc:bias", SPEC_F_ALL),
    REQUIRED("31x45x29:ld", SPEC_F_ALL),
    REQUIRED("31x45x29:ta:tb:ld:bias:acc", SPEC_F_ALL),
    REQUIRED("5x6x7:b3", SPEC_F_ALL),
    REQUIRED("13x17x19:b4:ta:ld", SPEC_F_BOTH),
    REQUIRED("13x17x19:b4:tb:a0", SPEC_F_BOTH),
    REQUIRED("13x17x19:b4:b0:bias:acc", SPEC_F_BOTH),
    REQUIRED("5x6x7:b3:o2", SPEC_F_ALL),
    REQUIRED("5x6x7:b1:o4:bias", SPEC_F_BOTH),
    REQUIRED("13x17x19:b3:o2:ta:ld:acc", SPEC_F_BOTH),
    REQUIRED("13x17x19:b3:o3:a0:bo0:tb", SPEC_F_BOTH),
    REQUIRED("13x17x19:b3:o3:b0:ao0:bias", SPEC_F_BOTH),
    REQUIRED("16x16x8:b4:o3:tb:heads", SPEC_F_ALL),     /* queries by keys */
    REQUIRED("16x8x16:b4:o3:heads:acc", SPEC_F_BOTH),   /* weights by values */
    REQUIRED("40x33x50:b2:o3:heads:det", SPEC_F(REAL)), /* more than one tile */
    REQUIRED("3x30x2000:b2:o2:tb", SPEC_F(REAL)),       /* k in pieces */
    REQUIRED("10x84x64:ta:asum", SPEC_F_ALL), /* weights of a linear layer: dY^T X, with the gradient of its bias */
    REQUIRED("10x84x64:ta:asum:acc", SPEC_F_BOTH),
    REQUIRED("37x5x90:asum:ld", SPEC_F_BOTH),
    REQUIRED("10x84x64:ta:asum:accc", SPEC_F_BOTH),   /* C alone is added to, */
    REQUIRED("10x84x64:ta:asum:accsum", SPEC_F_BOTH), /* A_SUM alone */
    REQUIRED("37x5x90:ta:asum:ld", SPEC_F_BOTH),
    REQUIRED("64x10x84:tb:bias", SPEC_F_BOTH), /* linear forward */
    REQUIRED("64x84x10", SPEC_F_BOTH),         /* and backward to its input */
    REQUIRED("130x70x260", SPEC_F_BOTH),
    REQUIRED("257x129x300:tb:bias", SPEC_F_BOTH), /* more than one block in every direction */
    REQUIRED("300x40x513:ta", SPEC_F_BOTH),
    REQUIRED("8x700x40", SPEC_F_BOTH), /* wide and flat */
    REQUIRED("700x8x40:tb", SPEC_F_BOTH),
    REQUIRED("33x34x770:det", SPEC_F_BOTH),
    REQUIRED("1x512x700:tb:det", SPEC_F(REAL)),
    REQUIRED("40x50x60:strict:bias", SPEC_F_BOTH),
    OPTIONAL("31x44x29:tb:bias:acc:align8", SPEC_F_BOTH), /* no operand lies where 16 bytes could be read at once */
    OPTIONAL("12x84x64:ta:asum:align8", SPEC_F_BOTH),
    { .text = "31x44x29:tb:bias:acc:align4", .types = SPEC_T_F32 | SPEC_T_LOW, .fills = SPEC_F_BOTH, .optional = true },
    OPTIONAL("64x48x32:bias:align16", SPEC_F_BOTH),
    OPTIONAL("15x31x47:relu", SPEC_F_ALL),
    OPTIONAL("15x31x47:bias:relu", SPEC_F_ALL),
    OPTIONAL("15x31x47:bias:tanh", SPEC_F(REAL)),
    OPTIONAL("15x31x47:bias:sigmoid", SPEC_F(REAL)),
    OPTIONAL("15x31x47:bias:gelu", SPEC_F(REAL)),
    OPTIONAL("65x33x40:tb:bias:relu:acc", SPEC_F_BOTH),
    OPTIONAL("3x5x0:bias:relu", SPEC_F_BOTH),
    OPTIONAL("65x33x40:grelu", SPEC_F_BOTH),
    OPTIONAL("65x33x40:grelu:acc", SPEC_F_BOTH), /* the gradient is added behind the derivative */
    OPTIONAL("33x40x50:tb:packed:bias:acc", SPEC_F_BOTH),
    OPTIONAL("9x33x40:gtanh", SPEC_F(REAL)),
    OPTIONAL("9x33x40:gsigmoid:ld", SPEC_F(REAL)),
    OPTIONAL("9x33x40:ggelu", SPEC_F(REAL)),
    /* A column of edges times ones: what each activation makes of them, and of all pairs with what
     * its backward reads. */
    OPTIONAL("113x35x1:relu", SPEC_F(EDGE)),
    OPTIONAL("113x35x1:tanh", SPEC_F(EDGE)),
    OPTIONAL("113x35x1:sigmoid", SPEC_F(EDGE)),
    OPTIONAL("113x35x1:gelu", SPEC_F(EDGE)),
    OPTIONAL("113x115x1:grelu", SPEC_F(EDGE)),
    OPTIONAL("113x115x1:gtanh", SPEC_F(EDGE)),
    OPTIONAL("113x115x1:gsigmoid", SPEC_F(EDGE)),
    OPTIONAL("113x115x1:ggelu", SPEC_F(EDGE)),
    OPTIONAL("33x40x50:tb:packed:bias", SPEC_F_BOTH),
    OPTIONAL("33x40x50:packed", SPEC_F_BOTH),
    OPTIONAL("5x6x7:b3:o2:packed:tb", SPEC_F_BOTH),
    OPTIONAL("5x6x7:b3:o2:packed:bo0", SPEC_F_BOTH),
    OPTIONAL("13x17x19:b3:o2:bias:relu", SPEC_F_BOTH),
    OPTIONAL("13x17x19:b3:o2:heads:gtanh", SPEC_F(REAL)),
    { .text = "33x40x50:bias:c32", .types = SPEC_T_LOW, .fills = SPEC_F_BOTH, .optional = true },
    { .text = "33x40x50:acc:c32", .types = SPEC_T_LOW, .fills = SPEC_F_BOTH, .optional = true },
};

bool spec_gemm_read(const char *text, cek_gemm_desc *out, const char **rest, char *error, size_t cap)
{
    uint64_t shape[CEK_RANK_MAX];
    const char *p = text;
    *out = (cek_gemm_desc){ .op = { .size = sizeof *out, .kind = CEK_OP_GEMM }, .batch = 1, .outer = 1 };
    if (spec_shape_read(&p, shape) != 3 || (*p && *p != ':')) {
        snprintf(error, cap, "%s: not a product MxNxK", text);
        return false;
    }
    if (!shape[0] || !shape[1]) {
        snprintf(error, cap, "%s: M and N must not be 0", text);
        return false;
    }
    out->m = shape[0], out->n = shape[1], out->k = shape[2];
    out->lda = (int64_t)out->k, out->ldb = out->ldc = (int64_t)out->n;
    *rest = p;
    return true;
}

double spec_gemm_flops(const cek_gemm_desc *d)
{
    return 2.0 * d->m * d->n * d->k * d->batch * d->outer;
}

/* Where matrix number z of both levels begins. */
static uint64_t matrix_at(const cek_gemm_desc *d, uint64_t z, int64_t stride, int64_t outer)
{
    return z / d->batch * (uint64_t)outer + z % d->batch * (uint64_t)stride;
}

static uint64_t a_index(const cek_gemm_desc *d, uint64_t b, uint64_t i, uint64_t p)
{
    uint64_t ld = (uint64_t)d->lda;
    return matrix_at(d, b, d->stride_a, d->outer_a) + (d->trans & CEK_GEMM_TRANS_A ? p * ld + i : i * ld + p);
}

static uint64_t b_index(const cek_gemm_desc *d, uint64_t b, uint64_t p, uint64_t j)
{
    uint64_t ld = (uint64_t)d->ldb;
    return matrix_at(d, b, d->stride_b, d->outer_b) + (d->trans & CEK_GEMM_TRANS_B ? j * ld + p : p * ld + j);
}

double spec_gemm_at(const cek_gemm_desc *d, const float *a, const float *b, uint64_t index, double *tolerance)
{
    uint64_t i = index / d->n % d->m, j = index % d->n, batch = index / (d->m * d->n);
    long double sum = 0, magnitude = 0;
    for (uint64_t p = 0; p < d->k; p++) {
        long double term = (long double)a[a_index(d, batch, i, p)] * b[b_index(d, batch, p, j)];
        sum += term;
        magnitude += fabsl(term);
    }
    *tolerance = (double)spec_sum(CEK_F32, sum, magnitude, d->k, false).e;
    *tolerance += (double)magnitude * spec_operands(d->op.math);
    return (double)sum;
}

typedef struct gemm_choice {
    bool bias, acc, acc_c, acc_sum, asum, packed, c32;
    bool bare;
    cek_activation activation, act_grad;
} gemm_choice;

/* Rows of all of a batch side by side. */
static void heads_lay(uint64_t batch, uint64_t row, int64_t *ld, int64_t *stride)
{
    *ld = (int64_t)(batch * row);
    *stride = (int64_t)row;
}

static bool gemm_modifiers(const char *rest, spec_problem *p, gemm_choice *c)
{
    cek_gemm_desc *d = &p->desc.gemm;
    char word[32];
    bool ld = false, one_a = false, one_b = false, heads = false, outer_a = true, outer_b = true;
    while (spec_modifier(&rest, word, sizeof word)) {
        if (!strcmp(word, "ta"))
            d->trans |= CEK_GEMM_TRANS_A;
        else if (!strcmp(word, "tb"))
            d->trans |= CEK_GEMM_TRANS_B;
        else if (!strcmp(word, "ld"))
            ld = true;
        else if (!strcmp(word, "a0"))
            one_a = true;
        else if (!strcmp(word, "b0"))
            one_b = true;
        else if (!strcmp(word, "ao0"))
            outer_a = false;
        else if (!strcmp(word, "bo0"))
            outer_b = false;
        else if (!strcmp(word, "heads"))
            heads = true;
        else if (!strcmp(word, "bias"))
            c->bias = true;
        else if (!strcmp(word, "acc"))
            c->acc = true;
        else if (!strcmp(word, "accc"))
            c->acc_c = true;
        else if (!strcmp(word, "accsum"))
            c->acc_sum = true;
        else if (!strcmp(word, "bare"))
            c->bare = true;
        else if (!strcmp(word, "asum"))
            c->asum = true;
        else if (!strcmp(word, "packed"))
            c->packed = true;
        else if (!strcmp(word, "c32"))
            c->c32 = true;
        else if (spec_modifier_number(word, "b", &d->batch) || spec_modifier_number(word, "o", &d->outer) ||
                 spec_modifier_common(p, word))
            continue;
        else if (spec_activation_parse(word))
            c->activation = spec_activation_parse(word);
        else if (word[0] == 'g' && spec_activation_parse(word + 1))
            c->act_grad = spec_activation_parse(word + 1);
        else
            return spec_fail(p, "gemm: unknown modifier \"%s\"", word);
    }
    uint64_t a_rows = d->trans & CEK_GEMM_TRANS_A ? d->k : d->m, a_row = d->trans & CEK_GEMM_TRANS_A ? d->m : d->k;
    uint64_t b_rows = d->trans & CEK_GEMM_TRANS_B ? d->n : d->k, b_row = d->trans & CEK_GEMM_TRANS_B ? d->k : d->n;
    /* Unlike gaps: a backend that confuses two leading dimensions is wrong somewhere. */
    d->lda = (int64_t)(a_row + (ld ? 3 : 0)), d->ldb = (int64_t)(b_row + (ld ? 5 : 0)),
    d->ldc = (int64_t)(d->n + (ld ? 7 : 0));
    d->stride_a = one_a ? 0 : (int64_t)(a_rows * (uint64_t)d->lda + (ld ? 11 : 0));
    d->stride_b = one_b ? 0 : (int64_t)(b_rows * (uint64_t)d->ldb + (ld ? 13 : 0));
    d->stride_c = (int64_t)(d->m * (uint64_t)d->ldc + (ld ? 17 : 0));
    d->outer_a = outer_a
                     ? (int64_t)((one_a ? a_rows * (uint64_t)d->lda : d->batch * (uint64_t)d->stride_a) + (ld ? 2 : 0))
                     : 0;
    d->outer_b = outer_b
                     ? (int64_t)((one_b ? b_rows * (uint64_t)d->ldb : d->batch * (uint64_t)d->stride_b) + (ld ? 4 : 0))
                     : 0;
    d->outer_c = (int64_t)(d->batch * (uint64_t)d->stride_c + (ld ? 6 : 0));
    if (heads) {
        heads_lay(d->batch, a_row, &d->lda, &d->stride_a);
        heads_lay(d->batch, b_row, &d->ldb, &d->stride_b);
        heads_lay(d->batch, d->n, &d->ldc, &d->stride_c);
    }
    return true;
}

/* Elements from the first to the last that all matrices of rows x row touch. */
static uint64_t extent(const cek_gemm_desc *d, int64_t stride, int64_t outer, uint64_t rows, int64_t ld, uint64_t row)
{
    if (!rows || !row)
        return 1;
    return matrix_at(d, d->outer * d->batch - 1, stride, outer) + (rows - 1) * (uint64_t)ld + row;
}

static void gemm_expect(spec_problem *p, const gemm_choice *c, const spec_operand *a, const spec_operand *b,
                        spec_operand *out)
{
    const cek_gemm_desc *d = &p->desc.gemm;
    cek_dtype sum = spec_sum_type(d->a_type);
    const spec_operand *bias = c->bias ? spec_operand_find(p, CEK_GEMM_BIAS) : NULL;
    const spec_operand *ref = c->act_grad ? spec_operand_find(p, CEK_GEMM_ACT_REF) : NULL;
    for (uint64_t n = 0; n < d->outer * d->batch * d->m * d->n; n++) {
        uint64_t j = n % d->n, i = n / d->n % d->m, batch = n / d->n / d->m;
        uint64_t at = matrix_at(d, batch, d->stride_c, d->outer_c) + i * (uint64_t)d->ldc + j;
        long double v = 0, magnitude = 0;
        for (uint64_t k = 0; k < d->k; k++) {
            long double term = (long double)a->value[a_index(d, batch, i, k)] * b->value[b_index(d, batch, k, j)];
            v += term;
            magnitude += fabsl(term);
        }
        spec_num r = d->k ? spec_sum(sum, v, magnitude, d->k, spec_whole(p)) : spec_exact(0);
        if (bias)
            r = spec_add(sum, r, spec_exact(bias->value[j]));
        r = spec_activation(spec_arithmetic(p, sum), c->activation, r);
        if (ref)
            r = spec_act_grad(spec_arithmetic(p, sum), c->act_grad, r, spec_exact(ref->value[at]));
        spec_operand_expect(out, at, r, sum);
        out->written[at] = 1;
    }
}

static void a_sum_expect(spec_problem *p, const spec_operand *a, spec_operand *out)
{
    const cek_gemm_desc *d = &p->desc.gemm;
    for (uint64_t i = 0; i < d->m; i++) {
        long double v = 0, magnitude = 0;
        for (uint64_t k = 0; k < d->k; k++) {
            v += a->value[a_index(d, 0, i, k)];
            magnitude += fabs(a->value[a_index(d, 0, i, k)]);
        }
        spec_operand_expect(out, i, spec_sum(out->type, v, magnitude, d->k, spec_whole(p)), out->type);
    }
}

static bool gemm_build(const char *text, spec_problem *p)
{
    cek_gemm_desc *d = &p->desc.gemm;
    const char *rest;
    gemm_choice c = { 0 };
    if (!spec_gemm_read(text, d, &rest, p->error, sizeof p->error) || !gemm_modifiers(rest, p, &c))
        return false;
    cek_dtype sum = spec_sum_type(p->type);
    d->a_type = d->b_type = p->type;
    d->c_type = c.c32 ? CEK_F32 : p->type;
    uint64_t a_rows = d->trans & CEK_GEMM_TRANS_A ? d->k : d->m, a_row = d->trans & CEK_GEMM_TRANS_A ? d->m : d->k;
    uint64_t b_rows = d->trans & CEK_GEMM_TRANS_B ? d->n : d->k, b_row = d->trans & CEK_GEMM_TRANS_B ? d->k : d->n;
    uint64_t c_extent = extent(d, d->stride_c, d->outer_c, d->m, d->ldc, d->n);

    spec_operand *a = spec_operand_add(p, CEK_GEMM_A, d->a_type,
                                       extent(d, d->stride_a, d->outer_a, a_rows, d->lda, a_row));
    spec_operand *b = spec_operand_add(p, CEK_GEMM_B, d->b_type,
                                       extent(d, d->stride_b, d->outer_b, b_rows, d->ldb, b_row));
    spec_operand *out = spec_operand_add(p, CEK_GEMM_C, d->c_type, c_extent);
    if (!a || !b || !out || !(out->written = spec_problem_alloc(p, c_extent, 1)))
        return false;
    if (p->fill == SPEC_EDGE) {
        spec_operand_edges(p, a, 1, CEK_ACT_NONE);
        spec_operand_ones(b);
    } else {
        spec_operand_fill(p, a, -3, 3, true);
        spec_operand_fill(p, b, -3, 3, false);
    }
    if (c.acc || c.acc_c)
        spec_operand_accumulate(p, out);
    if (c.bias) {
        spec_operand *bias = spec_operand_add(p, CEK_GEMM_BIAS, sum, d->n);
        if (!bias)
            return false;
        spec_operand_fill(p, bias, -9, 9, false);
    }
    if (c.act_grad) {
        spec_operand *ref = spec_operand_add(p, CEK_GEMM_ACT_REF, d->c_type, c_extent);
        if (!ref)
            return false;
        if (p->fill == SPEC_EDGE)
            spec_operand_edges(p, ref, 1, c.act_grad);
        else
            spec_operand_fill(p, ref, -1, 1, false);
    }
    if (c.activation || c.act_grad || c.bias) {
        p->epilogue.activation = c.activation;
        p->epilogue.act_grad = c.act_grad;
        d->op.epilogue = c.activation || c.act_grad ? &p->epilogue : NULL;
    }
    if (c.asum) {
        spec_operand *a_sum = spec_operand_add(p, CEK_GEMM_A_SUM, sum, d->m);
        if (!a_sum)
            return false;
        if (c.acc || c.acc_sum)
            spec_operand_accumulate(p, a_sum);
        a_sum_expect(p, a, a_sum);
    }
    if (c.packed) {
        if (!spec_operand_sized(p, CEK_GEMM_PACKED, SPEC_SIZE_PREPACK))
            return false;
        d->op.flags |= CEK_OP_PREPACKED;
        d->op.operands &= ~CEK_BIT(CEK_GEMM_B);
        b->plain = true;
    }
    gemm_expect(p, &c, a, b, out);
    if (c.bare)
        d->outer = 0, d->stride_a = d->stride_b = d->stride_c = d->outer_a = d->outer_b = d->outer_c = 1;
    return true;
}

const spec_kind spec_kind_gemm = SPEC_KIND("gemm", CEK_OP_GEMM, CEK_PROFILE_INFERENCE, "7x9x11:bias", gemm_cases,
                                           gemm_build);
