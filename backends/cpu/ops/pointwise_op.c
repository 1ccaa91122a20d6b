/* pointwise_op.c - the pointwise operation: its descriptor as an elementwise chain, and as a shorter one for runs
 * without padding where all that it does is leave that out at the end. */
#include "backends/cpu/ops/elementwise.h"

#include <stdio.h>

typedef struct pointwise_op {
    struct cek_op head;
    cpu_elementwise chain;
    cpu_elementwise whole; /* where all rows count; without instructions: the same */
} pointwise_op;

/* What VALID reads is one more input behind the others, so that results of instructions move up by one. */
static void valid_place(cpu_elementwise *e, const cek_pointwise_desc *d)
{
    for (int i = 0; i < e->instructions; i++)
        e->counts |= e->code[i].code == CEK_PW_VALID;
    if (!e->counts)
        return;
    for (int i = 0; i < e->instructions; i++) {
        cek_pointwise_instruction *c = &e->code[i];

        c->a += c->a >= d->input_count;
        c->b += c->b >= d->input_count;
        c->c += c->c >= d->input_count;
        if (c->code == CEK_PW_VALID)
            *c = (cek_pointwise_instruction){ .code = CEK_PW_COPY, .a = d->input_count };
    }
    e->type[e->inputs] = CEK_F32;
    e->space.stride[e->inputs][0] = 1; /* the row is the index along axis 0 */
    e->inputs++;
}

/* Where all rows count, a chain that ends with a choice by VALID is what gives the value that is chosen. */
static void whole_cut(const cek_pointwise_desc *d, cpu_elementwise *e)
{
    if (e->instructions == 0) /* a copy */
        return;
    const cek_pointwise_instruction *last = &e->code[e->instructions - 1];
    const uint32_t chosen = last->b, inputs = d->input_count;
    int count = (int)(chosen - inputs) + 1;

    if (last->code != CEK_PW_SELECT || last->a < inputs || e->code[last->a - inputs].code != CEK_PW_VALID) {
        e->instructions = 0;
        return;
    }
    if (chosen < inputs) {
        e->code[0] = (cek_pointwise_instruction){ .code = CEK_PW_COPY, .a = chosen };
        count = 1;
    }
    for (int i = 0; i < count; i++)
        if (e->code[i].code == CEK_PW_VALID)
            e->code[i] = (cek_pointwise_instruction){ .code = CEK_PW_CONST, .imm = 1 };
    e->instructions = count;
}

static void chain_fill(cpu_elementwise *e, const cek_op *op)
{
    const cek_pointwise_desc *d = &op->request.desc.pointwise;

    e->inputs = (int)d->input_count;
    e->instructions = (int)d->instruction_count;
    e->accumulate = cek__request_accumulates(&op->request, CEK_POINTWISE_OUT);
    e->space.rank = (int)d->rank;
    for (uint32_t i = 0; i < d->rank; i++)
        e->space.shape[i] = (int64_t)d->shape[i];
    for (int i = 0; i < e->instructions; i++)
        e->code[i] = d->instructions[i];
    for (int t = 0; t < e->inputs; t++) {
        e->type[t] = d->inputs[t].type;
        memcpy(e->space.stride[t], d->inputs[t].strides, sizeof e->space.stride[t]);
    }
}

static void out_fill(cpu_elementwise *e, const cek_pointwise_desc *d)
{
    e->type[e->inputs] = d->out_type;
    memcpy(e->space.stride[e->inputs], d->out_strides, sizeof d->out_strides);
}

static cek_status pointwise_plan(cek_op *op)
{
    pointwise_op *p = (pointwise_op *)op;
    cpu_elementwise *e = &p->chain;
    const cek_pointwise_desc *d = &op->request.desc.pointwise;

    chain_fill(e, op);
    p->whole = *e;
    whole_cut(d, &p->whole);
    valid_place(e, d);
    out_fill(e, d);
    for (int t = 0; t <= e->inputs; t++)
        if (!type_in(e->type[t], CPU_TYPES))
            return cek__cpu_refuse_type(op, e->type[t]);
    if (p->whole.instructions) {
        out_fill(&p->whole, d);
        cek__elementwise_plan(&p->whole);
    }
    cek__elementwise_plan(e);
    snprintf(op->info.algorithm, sizeof op->info.algorithm, "pointwise, blocks of %lld", (long long)e->block);
    return CEK_OK;
}

static void pointwise_run(const cek_op *op, cek_queue *queue, void *const *at, void *workspace)
{
    const pointwise_op *p = (const pointwise_op *)op;
    const cek_pointwise_desc *d = &op->request.desc.pointwise;
    const cek_batch_block *batch = at[CEK_POINTWISE_BATCH];
    uint64_t counted = d->shape[0];

    (void)queue;
    (void)workspace;
    if (p->chain.counts && batch && batch->rows_valid <= counted / d->rows_per_sample)
        counted = batch->rows_valid * d->rows_per_sample;
    cek__elementwise_run(p->whole.instructions && counted >= d->shape[0] ? &p->whole : &p->chain, op_dev(op),
                         (const void *const *)at, (int64_t)counted, at[CEK_POINTWISE_OUT]);
}

const cpu_kind cek__cpu_pointwise = { sizeof(pointwise_op), pointwise_plan, pointwise_run, NULL };
