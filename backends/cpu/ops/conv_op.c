/* conv_op.c - the three convolution operations: from plugin.h's descriptor to a plan of
 * backends/cpu/conv/conv.h. */
#include "backends/common/hash.h"
#include "backends/cpu/conv/conv.h"
#include "backends/cpu/ops/ops.h"

typedef struct conv_op {
    struct cek_op head;
    conv_plan plan;
} conv_op;

static conv_direction direction(uint32_t kind)
{
    return kind == CEK_OP_CONV_FORWARD         ? CONV_FORWARD
           : kind == CEK_OP_CONV_BACKWARD_DATA ? CONV_BACKWARD_DATA
                                               : CONV_BACKWARD_WEIGHTS;
}

/* conv.h counts three spatial dimensions from the last one; the ones that are not there come
 * first and do nothing. */
static void geometry(const cek__request *request, conv_desc *to)
{
    const cek_conv_desc *d = &request->desc.conv;
    const uint32_t missing = 3 - d->spatial;

    for (uint32_t i = 0; i < 3; i++) {
        const bool there = i >= missing;
        const uint32_t j = there ? i - missing : 0;

        to->in[i] = there ? (int64_t)d->in[j] : 1;
        to->out[i] = there ? (int64_t)request->out[j] : 1;
        to->kernel[i] = there ? (int64_t)d->kernel[j] : 1;
        to->stride[i] = there ? (int64_t)d->stride[j] : 1;
        to->dilation[i] = there ? (int64_t)d->dilation[j] : 1;
        to->pad[i] = there ? (int64_t)d->pad_lo[j] : 0;
    }
}

static void conv_op_prepack(const cek_op *op, cek_queue *queue, void *const *at, void *packed)
{
    const conv_op *c = (const conv_op *)op;

    (void)queue;
    cek__conv_pack(&c->plan, op_dev(op)->threads, at[CEK_CONV_FORWARD_W], packed);
}

/* Where no method reads packed weights it stays without (ops.c). */
static void packing_offer(cek_op *op, const conv_plan *plan)
{
    enum { FIXED = 7 };
    const conv_desc *d = &plan->d;
    const bool whole = plan->pixels == 1 && !plan->cut; /* else it matters how taps lie in lines, and which there are */
    uint64_t form[] = { CEK_OP_CONV_FORWARD,       (uint64_t)plan->config->kernels->nr,
                        (uint64_t)d->groups,       (uint64_t)d->in_channels,
                        (uint64_t)d->out_channels, (uint64_t)(d->kernel[0] * d->kernel[1] * d->kernel[2]),
                        (uint64_t)plan->pixels,    [FIXED + 8] = 0 };

    for (int i = 0; i < 3 && !whole; i++) {
        form[FIXED + i] = (uint64_t)d->kernel[i];
        form[FIXED + 3 + i] = (uint64_t)plan->asked.kernel[i];
        form[FIXED + 6 + i] = (uint64_t)plan->first_tap[i];
    }
    op->info.prepack_bytes = (uint64_t)cek__conv_packed_floats(plan) * 4;
    if (op->info.prepack_bytes == 0)
        return;
    op->info.prepack_layout = cek__hash(CEK__HASH_START, form, sizeof form);
    op->prepack = conv_op_prepack;
}

static cek_status conv_op_plan(cek_op *op)
{
    conv_op *c = (conv_op *)op;
    const cek__request *r = &op->request;
    const cek_conv_desc *d = &r->desc.conv;
    const conv_direction way = direction(d->op.kind);
    conv_desc want = {
        .direction = way,
        .x = type_of(d->x_type),
        .w = type_of(d->w_type),
        .y = type_of(d->y_type),
        .batch = (int64_t)d->batch,
        .groups = (int64_t)d->groups,
        .in_channels = (int64_t)d->in_channels,
        .out_channels = (int64_t)d->out_channels,
        .packed = (d->op.flags & CEK_OP_PREPACKED) != 0,
        .strict = d->op.math == CEK_MATH_STRICT,
        .act = (cpu_act)r->epilogue.activation,
        .deriv = (cpu_act)r->epilogue.act_grad,
    };
    const cek_dtype types[] = { d->x_type, d->w_type, d->y_type };

    for (int i = 0; i < 3; i++)
        if (!type_in(types[i], CPU_TYPES_REAL))
            return cek__cpu_refuse_type(op, types[i]);
    want.ref = want.x;
    if (way == CONV_BACKWARD_WEIGHTS)
        want.w = CPU_F32;
    want.accumulate = way == CONV_BACKWARD_DATA
                          ? cek__request_accumulates(r, CEK_CONV_BACKWARD_DATA_DX)
                          : way == CONV_BACKWARD_WEIGHTS && cek__request_accumulates(r, CEK_CONV_BACKWARD_WEIGHTS_DW);
    want.bias_accumulate = way == CONV_BACKWARD_WEIGHTS &&
                           cek__request_accumulates(r, CEK_CONV_BACKWARD_WEIGHTS_BIAS_GRAD);
    geometry(r, &want);
    cek__conv_plan(&want, op_dev(op)->config, op_dev(op)->workers, &c->plan);
    if (want.packed)
        packing_offer(op, &c->plan);
    op->info.workspace_bytes = c->plan.workspace_bytes;
    op->info.flags |= c->plan.inexact ? CEK_OP_INFO_INEXACT : 0;
    op_algorithm(op, c->plan.algorithm);
    return CEK_OK;
}

static void conv_op_run(const cek_op *op, cek_queue *queue, void *const *at, void *workspace)
{
    const conv_op *c = (const conv_op *)op;
    conv_args args = { 0 };

    (void)queue;
    switch (c->plan.asked.direction) {
    case CONV_FORWARD:
        args = (conv_args){ .x = at[CEK_CONV_FORWARD_X],
                            .w = at[c->plan.asked.packed ? CEK_CONV_FORWARD_PACKED : CEK_CONV_FORWARD_W],
                            .out = at[CEK_CONV_FORWARD_Y],
                            .bias = at[CEK_CONV_FORWARD_BIAS] };
        break;
    case CONV_BACKWARD_DATA:
        args = (conv_args){ .w = at[CEK_CONV_BACKWARD_DATA_W],
                            .y = at[CEK_CONV_BACKWARD_DATA_DY],
                            .out = at[CEK_CONV_BACKWARD_DATA_DX],
                            .ref = at[CEK_CONV_BACKWARD_DATA_ACT_REF] };
        break;
    case CONV_BACKWARD_WEIGHTS:
        args = (conv_args){ .x = at[CEK_CONV_BACKWARD_WEIGHTS_X],
                            .y = at[CEK_CONV_BACKWARD_WEIGHTS_DY],
                            .out = at[CEK_CONV_BACKWARD_WEIGHTS_DW],
                            .dbias = at[CEK_CONV_BACKWARD_WEIGHTS_BIAS_GRAD] };
        break;
    }
    cek__conv_run(&c->plan, op_dev(op)->threads, &args, workspace);
}

const cpu_kind cek__cpu_conv = { sizeof(conv_op), conv_op_plan, conv_op_run, NULL };
