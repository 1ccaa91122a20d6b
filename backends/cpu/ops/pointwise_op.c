/* pointwise_op.c - the pointwise operation: its descriptor as an elementwise chain. */
#include "backends/cpu/ops/elementwise.h"

#include <stdio.h>

typedef struct pointwise_op {
    struct cek_op head;
    cpu_elementwise chain;
} pointwise_op;

static cek_status pointwise_plan(cek_op *op)
{
    cpu_elementwise *e = &((pointwise_op *)op)->chain;
    const cek_pointwise_desc *d = &op->request.desc.pointwise;

    e->inputs = (int)d->input_count;
    e->instructions = (int)d->instruction_count;
    e->accumulate = cek__request_accumulates(&op->request, CEK_POINTWISE_OUT);
    e->space.rank = (int)d->rank;
    for (uint32_t i = 0; i < d->rank; i++)
        e->space.shape[i] = (int64_t)d->shape[i];
    for (int t = 0; t <= e->inputs; t++) {
        e->type[t] = t < e->inputs ? d->inputs[t].type : d->out_type;
        if (!type_in(e->type[t], CPU_TYPES))
            return cek__cpu_refuse_type(op, e->type[t]);
        memcpy(e->space.stride[t], t < e->inputs ? d->inputs[t].strides : d->out_strides, sizeof e->space.stride[t]);
    }
    for (int i = 0; i < e->instructions; i++)
        e->code[i] = d->instructions[i];
    cek__elementwise_plan(e);
    snprintf(op->info.algorithm, sizeof op->info.algorithm, "pointwise, blocks of %lld", (long long)e->block);
    return CEK_OK;
}

static void pointwise_run(const cek_op *op, cek_queue *queue, void *const *at, void *workspace)
{
    const cpu_elementwise *e = &((const pointwise_op *)op)->chain;

    (void)queue;
    (void)workspace;
    cek__elementwise_run(e, op_dev(op), (const void *const *)at, at[CEK_POINTWISE_OUT]);
}

const cpu_kind cek__cpu_pointwise = { sizeof(pointwise_op), pointwise_plan, pointwise_run, NULL };
