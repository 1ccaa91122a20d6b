/* gemm_op.c - the gemm operation: from plugin.h's descriptor to a plan of backends/cpu/product/gemm.h. */
#include "backends/common/extent.h"
#include "backends/common/hash.h"
#include "backends/cpu/product/gemm.h"
#include "backends/cpu/ops/ops.h"

typedef struct gemm_op {
    struct cek_op head;
    gemm_plan plan;
    int64_t outer;                     /* plans, one after the other */
    int64_t a_bytes, b_bytes, c_bytes; /* from one to the next */
} gemm_op;

static gemm_matrix matrix(cek_dtype type, int64_t ld, bool transposed, int64_t stride)
{
    return (gemm_matrix){ type_of(type), transposed ? 1 : ld, transposed ? ld : 1, stride };
}

static bool follows(const gemm_matrix *m, int64_t batch, int64_t outer)
{
    return outer == batch * m->batch_stride;
}

/* Both levels of the batch as one where the outer one goes on as the inner one does, or where there is only one; else
 * the outer one is a loop around the plan. */
static void outer_fold(gemm_op *g, const cek_gemm_desc *d, gemm_desc *want)
{
    const int64_t outer = (int64_t)d->outer, batch = want->batch;

    g->outer = 1;
    if (outer > 1 && batch == 1) {
        want->batch = outer;
        want->a.batch_stride = d->outer_a;
        want->b.batch_stride = d->outer_b;
        want->c.batch_stride = d->outer_c;
    } else if (outer > 1 && follows(&want->a, batch, d->outer_a) && follows(&want->b, batch, d->outer_b) &&
               follows(&want->c, batch, d->outer_c)) {
        want->batch *= outer;
    } else if (outer > 1) {
        g->outer = outer;
        g->a_bytes = d->outer_a * cek__type_bytes(d->a_type);
        g->b_bytes = d->outer_b * cek__type_bytes(d->b_type);
        g->c_bytes = d->outer_c * cek__type_bytes(d->c_type);
    }
}

static void gemm_op_prepack(const cek_op *op, cek_queue *queue, void *const *at, void *packed)
{
    (void)queue;
    cek__gemm_pack(&((const gemm_op *)op)->plan, op_dev(op)->threads, at[CEK_GEMM_B], packed);
}

/* Where it would not pay it stays without (ops.c). */
static void packing_offer(cek_op *op, const gemm_op *g)
{
    const product_plan *product = &g->plan.product;
    const gemm_matrix *b = &g->plan.d.b;
    const uint64_t form[] = { CEK_OP_GEMM,
                              (uint64_t)product->n,
                              (uint64_t)product->k,
                              (uint64_t)product->nr,
                              product->words ? (uint64_t)product->words->unit : 1,
                              (uint64_t)b->type,
                              (uint64_t)b->row_stride,
                              (uint64_t)b->col_stride };

    if (g->plan.packed_bytes == 0 || g->b_bytes != 0)
        return;
    op->info.prepack_bytes = g->plan.packed_bytes;
    op->info.prepack_layout = cek__hash(CEK__HASH_START, form, sizeof form);
    op->prepack = gemm_op_prepack;
}

static cek_status gemm_op_plan(cek_op *op)
{
    gemm_op *g = (gemm_op *)op;
    const cek_gemm_desc *d = &op->request.desc.gemm;
    const cek_epilogue *e = &op->request.epilogue;
    gemm_desc want = {
        .m = (int64_t)d->m,
        .n = (int64_t)d->n,
        .k = (int64_t)d->k,
        .batch = (int64_t)d->batch,
        .a = matrix(d->a_type, d->lda, d->trans & CEK_GEMM_TRANS_A, d->stride_a),
        .b = matrix(d->b_type, d->ldb, d->trans & CEK_GEMM_TRANS_B, d->stride_b),
        .c = matrix(d->c_type, d->ldc, false, d->stride_c),
        .accumulate = cek__request_accumulates(&op->request, CEK_GEMM_C),
        .bias = (d->op.operands & CEK_BIT(CEK_GEMM_BIAS)) != 0,
        .sum = (d->op.operands & CEK_BIT(CEK_GEMM_A_SUM)) != 0,
        .sum_accumulate = cek__request_accumulates(&op->request, CEK_GEMM_A_SUM),
        .packed = (d->op.flags & CEK_OP_PREPACKED) != 0,
        .act = (cpu_act)e->activation,
        .deriv = (cpu_act)e->act_grad,
    };

    if (!type_in(d->a_type, CPU_TYPES_REAL))
        return cek__cpu_refuse_type(op, d->a_type);
    if (!type_in(d->c_type, CPU_TYPES_REAL))
        return cek__cpu_refuse_type(op, d->c_type);
    outer_fold(g, d, &want);
    want.ref = want.c;
    cek__gemm_plan(&want, op_dev(op)->config, op_dev(op)->workers, &g->plan);
    packing_offer(op, g);
    op->info.workspace_bytes = g->plan.workspace_bytes;
    op_algorithm(op, g->plan.algorithm);
    return CEK_OK;
}

/* An operand that is not given stays away. */
static void *after(void *at, int64_t bytes)
{
    return at ? (char *)at + bytes : NULL;
}

static void gemm_op_run(const cek_op *op, cek_queue *queue, void *const *at, void *workspace)
{
    const gemm_op *g = (const gemm_op *)op;
    void *b = at[g->plan.packed_bytes ? CEK_GEMM_PACKED : CEK_GEMM_B];

    (void)queue;
    for (int64_t i = 0; i < g->outer; i++)
        cek__gemm_run(&g->plan, op_dev(op)->threads,
                      &(gemm_args){ .a = after(at[CEK_GEMM_A], i * g->a_bytes),
                                    .b = after(b, i * g->b_bytes),
                                    .c = after(at[CEK_GEMM_C], i * g->c_bytes),
                                    .bias = at[CEK_GEMM_BIAS],
                                    .ref = after(at[CEK_GEMM_ACT_REF], i * g->c_bytes),
                                    .sum = at[CEK_GEMM_A_SUM] },
                      workspace);
}

const cpu_kind cek__cpu_gemm = { sizeof(gemm_op), gemm_op_plan, gemm_op_run, NULL };
