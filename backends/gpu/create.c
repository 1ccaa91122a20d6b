/* SPDX-License-Identifier: MIT
 *
 * create.c - op_create: refuses what no kernel here does, and chooses which way the rest is done.
 *
 * Owns the order of choices: a provider that is to be taken, the fastest that was measured, our own kernels.
 */
#include "backends/common/op.h"
#include "backends/gpu/lowering.h"
#include "backends/gpu/op.h"
#include "backends/gpu/providers.h"
#include "backends/gpu/tuner.h"

/* --- what is refused -------------------------------------------------------------------------- */

/* The step block's sums, losses and gradients are f32 here. */
static cek_status types_check(cek_op *op)
{
    const cek__request *r = &op->request;
    cek_dtype type = CEK_F32;
    switch (r->desc.op.kind) {
    case CEK_OP_GEMM: type = r->desc.gemm.a_type; break;
    case CEK_OP_CONV_FORWARD:
    case CEK_OP_CONV_BACKWARD_DATA:
    case CEK_OP_CONV_BACKWARD_WEIGHTS: type = r->desc.conv.x_type; break;
    case CEK_OP_POOL_FORWARD:
    case CEK_OP_POOL_BACKWARD: type = r->desc.pool.type; break;
    case CEK_OP_REDUCE: type = r->desc.reduce.x_type; break;
    case CEK_OP_SOFTMAX: type = r->desc.softmax.type; break;
    case CEK_OP_CROSS_ENTROPY: type = r->desc.cross_entropy.type; break;
    case CEK_OP_SQUARED_ERROR: type = r->desc.squared_error.type; break;
    case CEK_OP_DROPOUT: type = r->desc.dropout.type; break;
    case CEK_OP_RANDOM: type = r->desc.random.type; break;
    case CEK_OP_OPTIMIZER: type = r->desc.optimizer.type; break;
    case CEK_OP_COPY: type = r->desc.copy.x_type == CEK_F64 ? CEK_F64 : r->desc.copy.y_type; break;
    case CEK_OP_GATHER:
    case CEK_OP_SCATTER_ADD: type = r->desc.gather.type; break;
    case CEK_OP_ARG: type = r->desc.arg.type; break;
    default:
        type = r->desc.pointwise.out_type;
        for (uint32_t i = 0; i < r->desc.pointwise.input_count; i++)
            if (r->desc.pointwise.inputs[i].type == CEK_F64)
                type = CEK_F64;
    }
    return type == CEK_F64
               ? cek__host_fail(&op->dev->instance->host, CEK_UNSUPPORTED, "%s: f64", cek__kind_name(r->desc.op.kind))
               : CEK_OK;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Windows are computed in 32 bits: images, positions with their padding, strides and channels must stay below 2^31. */
static cek_status extents_check(const cek_op *op)
{
    const cek_conv_desc *conv = &op->request.desc.conv;
    const cek_pool_desc *pool = &op->request.desc.pool;
    uint32_t kind = op->request.desc.op.kind;
    bool pools = kind == CEK_OP_POOL_FORWARD || kind == CEK_OP_POOL_BACKWARD;
    if (!pools && (kind < CEK_OP_CONV_FORWARD || kind > CEK_OP_CONV_BACKWARD_WEIGHTS))
        return CEK_OK;
    const uint64_t *in = pools ? pool->in : conv->in, *lo = pools ? pool->pad_lo : conv->pad_lo,
                   *hi = pools ? pool->pad_hi : conv->pad_hi;
    const uint64_t *stride = pools ? pool->stride : conv->stride, *dilation = pools ? pool->stride : conv->dilation;
    uint64_t largest = pools ? larger(pool->batch, pool->channels)
                             : larger(conv->batch, larger(conv->in_channels, conv->out_channels));
    for (uint32_t i = 0; i < (pools ? pool->spatial : conv->spatial); i++)
        largest = larger(larger(largest, in[i] + lo[i] + hi[i]), larger(stride[i], dilation[i]));
    return largest > INT32_MAX
               ? cek__host_fail(&op->dev->instance->host, CEK_UNSUPPORTED, "%s: an extent of %llu is beyond 32 bits",
                                cek__kind_name(kind), (unsigned long long)largest)
               : CEK_OK;
}

/* --- which way -------------------------------------------------------------------------------- */

/* By the first provider that is to be taken unmeasured, or the one that was measured to be the
 * fastest, else by our own kernels. */
static cek_status way_choose(cek_op *op)
{
    const cek__gpu_provider *list[CEK__GPU_CANDIDATES];
    bool decided;
    uint32_t count = cek__gpu_candidates(op, list, &decided);
    if (!decided && count) {
        list[0] = cek__gpu_tune(op, list, count);
        count = list[0] != NULL;
        decided = true;
    }
    for (uint32_t i = 0; decided && i < count; i++) {
        cek_status st = cek__gpu_lower_as(op, list[i]);
        if (!st)
            return CEK_OK;
        if (st != CEK_UNSUPPORTED)
            cek__host_log(&op->dev->instance->host, CEK_LOG_WARN, "%s: %s failed (status %u): our own kernels do it",
                          cek__kind_name(op->request.desc.op.kind), list[i]->name, st);
    }
    op->tile = cek__gpu_tune_tile(op);
    return cek__gpu_lower_as(op, NULL);
}

cek_status cek__gpu_op_create(cek_dev *dev, const cek_op_desc *desc, cek_op_info *info, cek_op **out)
{
    const cek_host *host = &dev->instance->host;
    *out = NULL;
    cek_status st = cek__gpu_ready(dev, "op_create");
    if (st)
        return st;
    cek_op *op;
    st = cek__gpu_op_make(dev, desc, &op);
    if (st)
        return st;
    const cek_op *forward = op->request.desc.op.forward;
    if (forward)
        st = cek__op_forward(host, &op->request, dev, &forward->request, forward->dev, forward->info.reserve_bytes);
    if (!st)
        st = types_check(op);
    if (!st)
        st = extents_check(op);
    if (!st && op->request.desc.op.flags & CEK_OP_PREPACKED)
        st = cek__host_fail(host, CEK_UNSUPPORTED, "%s: packed weights", cek__kind_name(op->request.desc.op.kind));
    if (!st)
        st = way_choose(op);
    if (!st)
        st = cek__op_publish(host, &op->request, &op->info, info);
    if (st) {
        cek__gpu_op_destroy(op);
        return st;
    }
    *out = op;
    return CEK_OK;
}
