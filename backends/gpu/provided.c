/* SPDX-License-Identifier: MIT
 *
 * provided.c - operations that a library does: the steps around the library's call, its first run.
 *
 * Knows providers through cek__gpu_provider alone.
 */
#include "backends/gpu/provided.h"

#include <stdio.h>
#include <stdlib.h>

#include "backends/gpu/lower.h"
#include "backends/gpu/op.h"

#define WARM_TIMEOUT_NS UINT64_C(300000000000) /* five minutes: libraries compile too */
#define NAN_PATTERN UINT32_MAX                 /* a NaN in f32, two in f16 and bf16 */
#define LOOK_BYTES 65536                       /* of a result, for NaN: tiles of all kinds are among them */

/* --- steps ------------------------------------------------------------------------------------ */

static bool has_epilogue(const cek__request *request)
{
    uint32_t kind = request->desc.op.kind;
    bool bias = (kind == CEK_OP_GEMM && cek__request_given(request, CEK_GEMM_BIAS)) ||
                (kind == CEK_OP_CONV_FORWARD && cek__request_given(request, CEK_CONV_FORWARD_BIAS));
    return bias || request->epilogue.activation || request->epilogue.act_grad;
}

static bool result_is_f32(const cek__request *request)
{
    switch (request->desc.op.kind) {
    case CEK_OP_GEMM: return request->desc.gemm.c_type == CEK_F32;
    case CEK_OP_CONV_FORWARD: return request->desc.conv.y_type == CEK_F32;
    case CEK_OP_CONV_BACKWARD_DATA: return request->desc.conv.x_type == CEK_F32;
    default: return true;
    }
}

cek_status cek__gpu_provided_lower(cek_op *op, const cek__gpu_provider *provider, uint32_t leave, uint32_t *does)
{
    const cek__request *request = &op->request;
    const bool accumulates = cek__request_accumulates(request, CEK__GPU_RESULT);
    cek__gpu_offer offer = { .leave = leave };
    cek_status st = provider->offer(op->dev, request, &offer);
    *does = offer.does;
    if (st)
        return st;
    snprintf(op->info.algorithm, sizeof op->info.algorithm, "%s", offer.algorithm);
    op->info.flags = offer.info_flags;
    op->info.numeric_id = offer.numeric_id;
    if (!(offer.does & CEK__GPU_DOES_SUMS))
        cek__gpu_lower_sums(op);
    cek__gpu_place result = { CEK__GPU_RESULT, 0 };
    if (offer.does & CEK__GPU_DOES_EPILOGUE) {
        cek__gpu_step_call(op, provider, &offer, result);
        return op->failure;
    }
    /* Plain sums can stand where the result will, unless what stands there is still needed, or is too narrow. */
    bool in_place = result_is_f32(request) && !accumulates;
    if (!in_place) {
        uint64_t bytes = request->slots[CEK__GPU_RESULT].bytes;
        result = cek__gpu_workspace(op, result_is_f32(request) ? bytes : 2 * bytes);
    }
    cek__gpu_step_call(op, provider, &offer, result);
    if (!in_place || has_epilogue(request))
        cek__gpu_lower_finish(op, result);
    return op->failure;
}

/* --- the first run ---------------------------------------------------------------------------- */

static bool all_nan(const void *data, uint64_t bytes, uint32_t element)
{
    for (uint64_t i = 0; element == 4 && i < bytes / 4; i++)
        if ((((const uint32_t *)data)[i] & 0x7fffffff) <= 0x7f800000)
            return false;
    for (uint64_t i = 0; element == 2 && i < bytes / 2; i++) {
        uint16_t bits = ((const uint16_t *)data)[i];
        /* Whatever of the two types it is: a NaN of bf16 is at least 0x7f81, one of f16 too when it came from all
         * ones. */
        if ((bits & 0x7fff) <= 0x7c00)
            return false;
    }
    return true;
}

/* Looks at the beginning of a result that should be NaN throughout; gaps between rows still are, from before. */
static cek_status result_look(const cek_op *op, cek_queue *queue, cek_mem *scratch, bool *keeps_nan)
{
    const cek__slot *result = &op->request.slots[CEK__GPU_RESULT];
    /* whole words: NaN is all around it */
    const uint64_t bytes = ((result->bytes < LOOK_BYTES ? result->bytes : LOOK_BYTES) + 3) & ~(uint64_t)3;
    void *data = malloc(LOOK_BYTES);
    if (!data)
        return cek__host_fail(&op->dev->instance->host, CEK_OUT_OF_MEMORY, "op_create: no memory to look at a result");
    cek_status st = op->dev->driver->download(queue, data, (cek_ref){ scratch, 0 }, bytes);
    if (!st)
        st = op->dev->driver->queue_sync(queue, WARM_TIMEOUT_NS);
    *keeps_nan = !st && all_nan(data, bytes, result->element);
    if (st == CEK_TIMEOUT)
        return cek__host_fail(&op->dev->instance->host, CEK_INTERNAL, "op_create: the first run of %s did not end",
                              op->info.algorithm);
    if (st != CEK_DEVICE_LOST) /* a lost device may still write there */
        free(data);
    return st;
}

/* All operands lie in one scratch memory, on top of each other: what is computed does not matter. */
static cek_status scratch_run(cek_op *op, cek_queue *queue, cek_mem *scratch, uint64_t bytes, bool *keeps_nan)
{
    cek_ref operands[CEK__SLOTS] = { { NULL, 0 } }, workspace = { NULL, 0 };
    for (uint32_t i = 0; i < op->request.slot_count; i++)
        if (cek__request_given(&op->request, i))
            operands[i].mem = scratch;
    if (op->info.workspace_bytes)
        workspace = (cek_ref){ scratch, bytes };
    cek_status st = op->dev->driver->fill(queue, (cek_ref){ scratch, 0 }, NAN_PATTERN, 4, bytes);
    if (!st)
        st = cek__gpu_steps_run(queue, op, operands, workspace);
    return st ? st : result_look(op, queue, scratch, keeps_nan);
}

cek_status cek__gpu_provided_warm(cek_op *op, bool *keeps_nan)
{
    const cek__gpu_driver *driver = op->dev->driver;
    cek_mem_desc want = { .size = sizeof want };
    cek_mem *scratch = NULL;
    cek_queue *queue = NULL;
    uint64_t bytes = CEK_ALIGNMENT;
    *keeps_nan = false;
    for (uint32_t i = 0; i < op->request.slot_count; i++)
        if (op->request.slots[i].bytes > bytes)
            bytes = op->request.slots[i].bytes;
    bytes = (bytes + CEK_ALIGNMENT - 1) & ~(uint64_t)(CEK_ALIGNMENT - 1);
    want.bytes = bytes + op->info.workspace_bytes;
    cek_status st = driver->mem_alloc(op->dev, &want, &scratch);
    if (st == CEK_OUT_OF_MEMORY)
        return CEK_OK; /* the first run will be slow, no more; of activations nothing is known, so they are ours */
    if (!st)
        st = driver->queue_create(op->dev, NULL, &queue);
    if (!st)
        st = scratch_run(op, queue, scratch, bytes, keeps_nan);
    driver->queue_destroy(queue);
    driver->mem_free(scratch);
    return st;
}
