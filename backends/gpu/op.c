/* SPDX-License-Identifier: MIT
 *
 * op.c - operations: validated, lowered to steps once, launched step by step at every run.
 *
 * A step's kernel object carries its arguments from setting them to the launch, so runs of one
 * operation take turns for that long.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/common/hash.h"
#include "backends/common/op.h"
#include "backends/gpu/lower.h"

/* --- create ----------------------------------------------------------------------------------- */

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
};

static void steps_clear(cek_op *op)
{
    for (uint32_t i = 0; i < op->step_count; i++) {
        cek__gpu_step *step = &op->steps[i];
        if (step->kernel)
            op->dev->driver->kernel_free(op->dev, step->kernel);
        else
            step->provider->plan_free(op->dev, step->plan);
    }
    op->step_count = 0;
    op->failure = CEK_OK;
    op->info = (cek_op_info){ .algorithm = "one launch per step" };
}

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
    steps_clear(op);
    cek_status st = cek__gpu_lower_provided(op, provider, leave, &does);
    if (!st)
        st = kernels_warm(op);
    if (!st)
        st = cek__gpu_call_warm(op, &keeps_nan);
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
    steps_clear(op);
    cek_status st = provider ? lower_provided(op, provider) : lowers[kind](op);
    if (!st && !provider)
        st = kernels_warm(op);
    const uint64_t device = op->dev->traits.numeric_id ^ op->info.numeric_id;
    op->info.numeric_id = cek__hash_number(cek__hash_text(device, op->info.algorithm), kind);
    if (st)
        steps_clear(op);
    return st;
}

/* By the first provider that is to be taken unmeasured, or the one that was measured to be the
 * fastest, else by our own kernels. */
static cek_status lower(cek_op *op)
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
    return cek__gpu_lower_as(op, NULL);
}

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

cek_status cek__gpu_op_create(cek_dev *dev, const cek_op_desc *desc, cek_op_info *info, cek_op **out)
{
    const cek_host *host = &dev->instance->host;
    *out = NULL;
    cek_status st = cek__gpu_ready(dev, "op_create");
    if (st)
        return st;
    cek_op *op = calloc(1, sizeof *op);
    if (!op)
        return cek__host_fail(host, CEK_OUT_OF_MEMORY, "op_create: no memory for the handle");
    op->dev = dev;
    pthread_mutex_init(&op->lock, NULL);
    st = cek__request_init(host, desc, &op->request);
    const cek_op *forward = st ? NULL : op->request.desc.op.forward;
    if (forward)
        st = cek__op_forward(host, &op->request, dev, &forward->request, forward->dev, forward->info.reserve_bytes);
    if (!st)
        st = types_check(op);
    if (!st)
        st = extents_check(op);
    if (!st && op->request.desc.op.flags & CEK_OP_PREPACKED)
        st = cek__host_fail(host, CEK_UNSUPPORTED, "%s: packed weights", cek__kind_name(op->request.desc.op.kind));
    if (!st)
        st = lower(op);
    if (!st)
        st = cek__op_publish(host, &op->request, &op->info, info);
    if (st) {
        cek__gpu_op_destroy(op);
        return st;
    }
    *out = op;
    return CEK_OK;
}

void cek__gpu_op_destroy(cek_op *op)
{
    if (!op)
        return;
    steps_clear(op);
    free(op->steps);
    cek__request_free(&op->request);
    pthread_mutex_destroy(&op->lock);
    free(op);
}

/* --- run -------------------------------------------------------------------------------------- */

/* clang-format off */
static void refs_resolve(const cek__gpu_step *step, const cek_ref *operands, cek_ref workspace, cek_ref *refs)
{
    for (uint32_t i = 0; i < step->buffer_count; i++) {
        const cek__gpu_place *place = &step->buffers[i];
        refs[i] = place->slot == CEK__GPU_NOTHING ? (cek_ref){ NULL, 0 }
                : place->slot == CEK__GPU_WORKSPACE ? workspace : operands[place->slot];
        refs[i].offset += place->offset;
    }
}
/* clang-format on */

cek_status cek__gpu_steps_run(cek_queue *queue, const cek_op *op, const cek_ref *operands, cek_ref workspace)
{
    const cek__gpu_driver *driver = op->dev->driver;
    cek_ref refs[CEK__GPU_BUFFERS];
    cek_status st = CEK_OK;
    for (uint32_t i = 0; !st && i < op->step_count; i++) {
        const cek__gpu_step *step = &op->steps[i];
        refs_resolve(step, operands, workspace, refs);
        st = step->kernel ? driver->launch(queue, step, refs) : step->provider->call(queue, step->plan, refs);
        if (st && i) /* half an operation is on its way: the queue's contents are no longer what anyone asked for */
            driver->queue_fail(queue, st, "op_run: only a part of an operation could be launched");
    }
    return st;
}

cek_status cek__gpu_op_run(cek_queue *queue, const cek_op *op, const cek_ref *operands, uint32_t count,
                           cek_ref workspace)
{
    if (!op)
        return CEK_INVALID;
    const cek__gpu_driver *driver = op->dev->driver;
    cek_dev *dev = driver->queue_dev(queue);
    const cek_host *host = &dev->instance->host;
    cek_status st = driver->queue_ready(queue, "op_run");
    if (!st && op->dev != dev)
        st = cek__host_fail(host, CEK_INVALID, "op_run: the operation is of another device");
    if (!st)
        st = cek__request_operands(host, &op->request, operands, count, workspace, op->info.workspace_bytes,
                                   cek__gpu_mem_bytes, dev);
    if (st)
        return st;
    pthread_mutex_t *lock = &((cek_op *)op)->lock;
    pthread_mutex_lock(lock);
    st = cek__gpu_steps_run(queue, op, operands, workspace);
    pthread_mutex_unlock(lock);
    return st;
}

cek_status cek__gpu_op_prepack(cek_queue *queue, const cek_op *op, const cek_ref *operands, uint32_t count,
                               cek_ref packed)
{
    (void)operands, (void)count, (void)packed;
    if (!op)
        return CEK_INVALID;
    const cek__gpu_driver *driver = op->dev->driver;
    cek_status st = driver->queue_ready(queue, "op_prepack");
    return st ? st
              : cek__host_fail(&op->dev->instance->host, CEK_INVALID,
                               "op_prepack: the operation was not made with CEK_OP_PREPACKED");
}
