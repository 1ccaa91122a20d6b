/* SPDX-License-Identifier: MIT
 * gemm.c - matrix products, with the epilogue and the row sums of A. */
#include <string.h>

#include "backends/common/extent.h"
#include "backends/reference/activation.h"
#include "backends/reference/element.h"
#include "backends/reference/reference.h"

/* B as a run reads it: plain, or dense k x n matrices as prepack wrote them. */
typedef struct factor {
    const void *base;
    uint64_t row, column; /* elements from (p, j) to (p+1, j) and to (p, j+1) */
    uint64_t batch, outer;
} factor;

/* A matrix of both levels of the batch. */
typedef struct number {
    uint64_t outer, batch;
} number;

/* Different matrices B of an outer one, and of all. */
static uint64_t b_inner(const cek_gemm_desc *desc)
{
    return desc->stride_b ? desc->batch : 1;
}
static uint64_t b_outer(const cek_gemm_desc *desc)
{
    return desc->outer_b ? desc->outer : 1;
}

static factor b_factor(const cek_gemm_desc *desc, void *const *at)
{
    uint64_t ld = (uint64_t)desc->ldb, stride = (uint64_t)desc->stride_b, outer = (uint64_t)desc->outer_b;
    if (desc->op.flags & CEK_OP_PREPACKED)
        return (factor){ at[CEK_GEMM_PACKED], desc->n, 1, stride ? desc->k * desc->n : 0,
                         outer ? b_inner(desc) * desc->k * desc->n : 0 };
    if (desc->trans & CEK_GEMM_TRANS_B)
        return (factor){ at[CEK_GEMM_B], 1, ld, stride, outer };
    return (factor){ at[CEK_GEMM_B], ld, 1, stride, outer };
}

/* Row i of op(A): element p is A[first + p * step]. */
static void a_row(const cek_gemm_desc *desc, number z, uint64_t i, uint64_t *first, uint64_t *step)
{
    bool trans = desc->trans & CEK_GEMM_TRANS_A;
    *first = z.outer * (uint64_t)desc->outer_a + z.batch * (uint64_t)desc->stride_a +
             (trans ? i : i * (uint64_t)desc->lda);
    *step = trans ? (uint64_t)desc->lda : 1;
}

/* One row of C: the sums, then the epilogue on each. */
static void row_run(const cek_op *op, void *const *at, number z, uint64_t i, const factor *b, double *sums)
{
    const cek_gemm_desc *desc = &op->request.desc.gemm;
    const cek_epilogue *epilogue = &op->request.epilogue;
    cek_dtype sum_type = cek__type_sum(desc->a_type);
    bool add = cek__request_accumulates(&op->request, CEK_GEMM_C);
    uint64_t first, step;

    a_row(desc, z, i, &first, &step);
    zero(sums, desc->n);
    for (uint64_t p = 0; p < desc->k; p++)
        add_scaled(sums, load(at[CEK_GEMM_A], desc->a_type, first + p * step), desc->a_type, b->base,
                   z.outer * b->outer + z.batch * b->batch + p * b->row, b->column, desc->n);

    for (uint64_t j = 0; j < desc->n; j++) {
        uint64_t place = z.outer * (uint64_t)desc->outer_c + z.batch * (uint64_t)desc->stride_c +
                         i * (uint64_t)desc->ldc + j;
        double v = sums[j];
        if (at[CEK_GEMM_BIAS])
            v += load(at[CEK_GEMM_BIAS], sum_type, j);
        v = activate(epilogue->activation, v);
        if (at[CEK_GEMM_ACT_REF])
            v = activate_backward(epilogue->act_grad, v, load(at[CEK_GEMM_ACT_REF], desc->c_type, place));
        store_or_add(at[CEK_GEMM_C], desc->c_type, place, v, add);
    }
}

static void a_sum_run(const cek_op *op, void *const *at)
{
    const cek_gemm_desc *desc = &op->request.desc.gemm;
    bool add = cek__request_accumulates(&op->request, CEK_GEMM_A_SUM);
    for (uint64_t i = 0; i < desc->m; i++) {
        uint64_t first, step;
        double sum = 0;
        a_row(desc, (number){ 0, 0 }, i, &first, &step);
        for (uint64_t p = 0; p < desc->k; p++)
            sum += load(at[CEK_GEMM_A], desc->a_type, first + p * step);
        store_or_add(at[CEK_GEMM_A_SUM], cek__type_sum(desc->a_type), i, sum, add);
    }
}

void cek__reference_gemm(const cek_op *op, cek_queue *queue, void *const *at, void *workspace)
{
    const cek_gemm_desc *desc = &op->request.desc.gemm;
    const factor b = b_factor(desc, at);
    (void)queue;
    for (number z = { 0, 0 }; z.outer < desc->outer; z.outer++)
        for (z.batch = 0; z.batch < desc->batch; z.batch++)
            for (uint64_t i = 0; i < desc->m; i++)
                row_run(op, at, z, i, &b, workspace);
    if (at[CEK_GEMM_A_SUM])
        a_sum_run(op, at);
}

void cek__reference_gemm_prepare(cek_op *op)
{
    const cek_gemm_desc *desc = &op->request.desc.gemm;
    op->info.workspace_bytes = desc->n * sizeof(double);
    if (!(desc->op.flags & CEK_OP_PREPACKED))
        return;
    const uint64_t matrices = b_outer(desc) * b_inner(desc);
    op->info.prepack_bytes = matrices * desc->k * desc->n * cek__type_bytes(desc->b_type);
    const uint64_t layout[] = { CEK_OP_GEMM, desc->b_type, matrices, desc->k, desc->n };
    op->info.prepack_layout = cek__hash(CEK__HASH_START, layout, sizeof layout);
}

void cek__reference_gemm_prepack(const cek_op *op, cek_queue *queue, void *const *at, void *packed)
{
    const cek_gemm_desc *desc = &op->request.desc.gemm;
    uint64_t bytes = cek__type_bytes(desc->b_type), ld = (uint64_t)desc->ldb;
    bool trans = desc->trans & CEK_GEMM_TRANS_B;
    char *to = packed;
    (void)queue;
    for (uint64_t z = 0; z < b_outer(desc) * b_inner(desc); z++) {
        const char *from =
            (const char *)at[CEK_GEMM_B] +
            (z / b_inner(desc) * (uint64_t)desc->outer_b + z % b_inner(desc) * (uint64_t)desc->stride_b) * bytes;
        for (uint64_t p = 0; p < desc->k; p++)
            for (uint64_t j = 0; j < desc->n; j++, to += bytes)
                memcpy(to, from + (trans ? j * ld + p : p * ld + j) * bytes, bytes);
    }
}
