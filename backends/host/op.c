/* SPDX-License-Identifier: MIT
 *
 * op.c - the head of operations: from a descriptor to a request, from operands to addresses.
 *
 * What an operation computes is the backend's; it is called once everything it gets has been checked.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/common/command.h"
#include "backends/common/op.h"
#include "backends/host/host.h"

cek_status cek__host_op_init(cek_op *op, cek_dev *dev, const cek_op_desc *desc)
{
    const cek_host *host = &dev->instance->host;
    op->dev = dev;
    cek_status st = cek__host_ready(dev, "op_create");
    if (!st)
        st = cek__request_init(host, desc, &op->request);
    const cek_op *forward = st ? NULL : op->request.desc.op.forward;
    if (forward)
        st = cek__op_forward(host, &op->request, dev, &forward->request, forward->dev, forward->info.reserve_bytes);
    if (st)
        cek__request_free(&op->request);
    return st;
}

void cek__host_op_fini(cek_op *op)
{
    cek__request_free(&op->request);
}

void cek__host_op_destroy(cek_op *op)
{
    if (!op)
        return;
    if (op->fini)
        op->fini(op);
    cek__host_op_fini(op);
    free(op);
}

cek_status cek__host_op_publish(cek_op *op, cek_op_info *info, cek_op **out)
{
    cek_status st = cek__op_publish(&op->dev->instance->host, &op->request, &op->info, info);
    if (st)
        cek__host_op_destroy(op);
    *out = st ? NULL : op;
    return st;
}

cek_status cek__host_op_addresses(cek_dev *dev, const cek_op *op, const cek_ref *operands, uint32_t count,
                                  cek_ref workspace, cek__host_addresses *out)
{
    const cek_host *host = &dev->instance->host;
    if (!op || op->dev != dev)
        return cek__host_fail(host, CEK_INVALID, "op_run: the operation is of another device");
    cek_status st = cek__request_operands(host, &op->request, operands, count, workspace, op->info.workspace_bytes,
                                          cek__host_mem_bytes, dev);
    if (st)
        return st;
    memset(out, 0, sizeof *out);
    for (uint32_t i = 0; i < op->request.slot_count; i++)
        if (op->request.slots[i].given)
            out->at[i] = operands[i].mem->base + operands[i].offset;
    if (op->info.workspace_bytes)
        out->workspace = workspace.mem->base + workspace.offset;
    return CEK_OK;
}

cek_status cek__host_op_run(cek_queue *queue, const cek_op *op, const cek_ref *operands, uint32_t count,
                            cek_ref workspace)
{
    cek__host_addresses addresses;
    cek_status st = cek__host_queue_ready(queue, "op_run");
    if (!st)
        st = cek__host_op_addresses(queue->dev, op, operands, count, workspace, &addresses);
    if (!st)
        op->run(op, queue, addresses.at, addresses.workspace);
    return st;
}

cek_status cek__host_op_prepack(cek_queue *queue, const cek_op *op, const cek_ref *operands, uint32_t count,
                                cek_ref packed)
{
    const cek_host *host = &queue->dev->instance->host;
    cek_status st = cek__host_queue_ready(queue, "op_prepack");
    if (st)
        return st;
    if (!op || op->dev != queue->dev)
        return cek__host_fail(host, CEK_INVALID, "op_prepack: the operation is of another device");
    if (!op->prepack || !(op->request.desc.op.flags & CEK_OP_PREPACKED))
        return cek__host_fail(host, CEK_INVALID, "op_prepack: the operation was not made with CEK_OP_PREPACKED");
    uint32_t plain = op->request.desc.op.kind == CEK_OP_GEMM ? CEK_GEMM_B : CEK_CONV_FORWARD_W;
    const cek__slot *slot = &op->request.slots[plain];
    if (!operands || count <= plain)
        return cek__host_fail(host, CEK_INVALID, "op_prepack: %u operands do not cover slot %s", count, slot->name);
    const cek_ref from = operands[plain];
    st = cek__range_check(host, "op_prepack: weights", from, slot->bytes, cek__host_mem_bytes, queue->dev);
    if (!st)
        st = cek__range_check(host, "op_prepack: packed", packed, op->info.prepack_bytes, cek__host_mem_bytes,
                              queue->dev);
    if (st)
        return st;
    if (from.offset % slot->align || packed.offset % CEK_ALIGNMENT)
        return cek__host_fail(host, CEK_INVALID, "op_prepack: offsets %llu, %llu are not multiples of %u, %u",
                              (unsigned long long)from.offset, (unsigned long long)packed.offset, slot->align,
                              CEK_ALIGNMENT);
    if (from.mem == packed.mem && from.offset < packed.offset + op->info.prepack_bytes &&
        packed.offset < from.offset + slot->bytes)
        return cek__host_fail(host, CEK_INVALID, "op_prepack: weights and packed overlap");
    void *at[CEK__SLOTS] = { NULL };
    at[plain] = from.mem->base + from.offset;
    op->prepack(op, queue, at, packed.mem->base + packed.offset);
    return CEK_OK;
}
