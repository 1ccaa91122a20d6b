/* gemm_op.c - the gemm operation: from plugin.h's descriptor to a plan of backends/cpu/gemm.h. */
#include "backends/cpu/gemm.h"
#include "backends/cpu/ops/ops.h"

typedef struct gemm_op {
    struct cek_op head;
    gemm_plan plan;
} gemm_op;

static gemm_matrix matrix(cek_dtype type, int64_t ld, bool transposed, int64_t stride)
{
    return (gemm_matrix){ type_of(type), transposed ? 1 : ld, transposed ? ld : 1, stride };
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
        .sum = (d->op.operands & CEK_BIT(CEK_GEMM_A_SUM)) != 0,
        .sum_accumulate = cek__request_accumulates(&op->request, CEK_GEMM_A_SUM),
        .act = (cpu_act)e->activation,
        .deriv = (cpu_act)e->act_grad,
    };

    if (!type_in(d->a_type, CPU_TYPES_REAL))
        return cek__cpu_refuse_type(op, d->a_type);
    if (!type_in(d->c_type, CPU_TYPES_REAL))
        return cek__cpu_refuse_type(op, d->c_type);
    want.ref = want.c;
    cek__gemm_plan(&want, op_dev(op)->config, op_dev(op)->workers, &g->plan);
    op->info.workspace_bytes = g->plan.workspace_bytes;
    op_algorithm(op, g->plan.algorithm);
    return CEK_OK;
}

static void gemm_op_run(const cek_op *op, cek_queue *queue, void *const *at, void *workspace)
{
    const gemm_op *g = (const gemm_op *)op;

    (void)queue;
    cek__gemm_run(&g->plan, op_dev(op)->threads,
                  &(gemm_args){ .a = at[CEK_GEMM_A],
                                .b = at[CEK_GEMM_B],
                                .c = at[CEK_GEMM_C],
                                .bias = at[CEK_GEMM_BIAS],
                                .ref = at[CEK_GEMM_ACT_REF],
                                .sum = at[CEK_GEMM_A_SUM] },
                  workspace);
}

const cpu_kind cek__cpu_gemm = { sizeof(gemm_op), gemm_op_plan, gemm_op_run, NULL };
