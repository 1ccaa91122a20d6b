/* SPDX-License-Identifier: MIT
 *
 * lowering.c - an operation's steps, made one way and warmed: what drivers and libraries leave to a first run is done.
 */
#include "backends/gpu/lowering.h"

#include "backends/common/hash.h"
#include "backends/gpu/lower.h"
#include "backends/gpu/op.h"
#include "backends/gpu/provided.h"

static cek__gpu_lower_fn *const lowers[] = {
    [CEK_OP_GEMM] = cek__gpu_lower_gemm,
    [CEK_OP_CONV_FORWARD] = cek__gpu_lower_conv,
    [CEK_OP_CONV_BACKWARD_DATA] = cek__gpu_lower_conv,
    [CEK_OP_CONV_BACKWARD_WEIGHTS] = cek__gpu_lower_conv,
    [CEK_OP_POOL_FORWARD] = cek__gpu_lower_pool,
    [CEK_OP_POOL_BACKWARD] = cek__gpu_lower_pool,
    [CEK_OP_POINTWISE] = cek__gpu_lower_pointwise,
    [CEK_OP_REDUCE] = cek__gpu_lower_reduce,
    [CEK_OP_SOFTMAX] = cek__gpu_lower_softmax,
    [CEK_OP_CROSS_ENTROPY] = cek__gpu_lower_loss,
    [CEK_OP_SQUARED_ERROR] = cek__gpu_lower_loss,
    [CEK_OP_DROPOUT] = cek__gpu_lower_random,
    [CEK_OP_RANDOM] = cek__gpu_lower_random,
    [CEK_OP_OPTIMIZER] = cek__gpu_lower_optimizer,
    [CEK_OP_COPY] = cek__gpu_lower_copy,
    [CEK_OP_GATHER] = cek__gpu_lower_gather,
    [CEK_OP_SCATTER_ADD] = cek__gpu_lower_scatter_add,
    [CEK_OP_ARG] = cek__gpu_lower_arg,
};

/* What a driver compiles at the first launch, it compiles now. */
static cek_status kernels_warm(cek_op *op)
{
    cek_status st = op->failure;
    for (uint32_t i = 0; !st && i < op->step_count; i++)
        if (op->steps[i].kernel)
            st = op->dev->driver->kernel_warm(op->dev, &op->steps[i]);
    return st;
}

static cek_status provided_try(cek_op *op, const cek__gpu_provider *provider, uint32_t leave, bool *loses_nan)
{
    bool keeps_nan = false;
    uint32_t does = 0;
    cek__gpu_op_clear(op);
    cek_status st = cek__gpu_provided_lower(op, provider, leave, &does);
    if (!st)
        st = kernels_warm(op);
    if (!st)
        st = cek__gpu_provided_warm(op, &keeps_nan);
    *loses_nan = does & CEK__GPU_DOES_ACTIVATION && !keeps_nan;
    return st;
}

/* A library whose activation makes something else of a NaN is left the product alone. */
static cek_status lower_provided(cek_op *op, const cek__gpu_provider *provider)
{
    bool loses_nan;
    cek_status st = provided_try(op, provider, 0, &loses_nan);
    return !st && loses_nan ? provided_try(op, provider, CEK__GPU_DOES_ACTIVATION, &loses_nan) : st;
}

cek_status cek__gpu_lower_as(cek_op *op, const cek__gpu_provider *provider)
{
    uint32_t kind = op->request.desc.op.kind;
    cek__gpu_op_clear(op);
    cek_status st = provider ? lower_provided(op, provider) : lowers[kind](op);
    if (!st && !provider)
        st = kernels_warm(op);
    const uint64_t device = op->dev->traits.numeric_id ^ op->info.numeric_id;
    op->info.numeric_id = cek__hash_number(cek__hash_text(device, op->info.algorithm), kind);
    if (st)
        cek__gpu_op_clear(op);
    return st;
}
