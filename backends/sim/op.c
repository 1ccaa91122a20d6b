/* SPDX-License-Identifier: MIT
 *
 * op.c - operations of simulated devices: descriptors and operands with the inner plugin's handles,
 * and what a run costs.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/common/growth.h"
#include "backends/common/validate.h"
#include "backends/sim/sim.h"

/* The inner operation for the same descriptor. */
static cek_status inner_create(cek_dev *dev, const cek_op_desc *desc, cek_op_info *info, cek_op **out)
{
    const cek_host *host = &dev->instance->host;
    if (!desc || desc->size < sizeof *desc)
        return cek__host_fail(host, CEK_INVALID, "op_create: descriptor smaller than its head");
    if (desc->kind <= CEK_OP_ARG && dev->instance->lacks >> desc->kind & 1)
        return cek__host_fail(host, CEK_UNSUPPORTED, "op_create: %s is among sim_lacks", cek__kind_name(desc->kind));
    cek_op_desc *inner = malloc(desc->size);
    if (!inner)
        return cek__host_fail(host, CEK_OUT_OF_MEMORY, "op_create: no memory for the descriptor");
    memcpy(inner, desc, desc->size);
    inner->forward = desc->forward ? desc->forward->inner : NULL;
    cek_status st = INNER(dev, op_create, dev->inner, inner, info, out);
    free(inner);
    return st;
}

/* What a run takes. The reserve of a backward operation is its forward one's. */
static cek_status cost_set(cek_op *op, const cek_op_desc *desc, const cek_op_info *info)
{
    const cek__sim_speed *speed = &cek__sim_state(op->dev)->speed;
    uint64_t flops, bytes;
    op->reserve_bytes = desc->forward ? desc->forward->reserve_bytes : info->reserve_bytes;
    cek_status st = cek__sim_op_cost(&op->dev->instance->host, desc, info->prepack_bytes, op->reserve_bytes, &flops,
                                     &bytes);
    if (st)
        return st;
    op->cost_ns = cek__sim_work_ns(speed, flops, bytes);
    op->prepack_ns = cek__sim_work_ns(speed, 0, 2 * info->prepack_bytes);
    return CEK_OK;
}

cek_status cek__sim_op_create(cek_dev *dev, const cek_op_desc *desc, cek_op_info *info, cek_op **out)
{
    cek_op_info full = { .size = sizeof full };
    cek_status st = cek__sim_wrapper_make(dev, CEK__SIM_op_create, sizeof **out, out);
    if (st)
        return st;
    cek_op *op = *out;
    st = inner_create(dev, desc, &full, &op->inner);
    if (st)
        return cek__sim_wrapper_done(op, st, out);
    st = cost_set(op, desc, &full);
    if (!st)
        st = cek__struct_out(&dev->instance->host, "op_create: info", info, &full, sizeof full);
    if (st)
        dev->instance->plugin.op_destroy(op->inner);
    return cek__sim_wrapper_done(op, st, out);
}

void cek__sim_op_destroy(cek_op *op)
{
    if (!op)
        return;
    cek__sim_release_pass(op->dev, CEK__SIM_op_destroy);
    op->dev->instance->plugin.op_destroy(op->inner);
    free(op);
}

cek_status cek__sim_operands(const cek_dev *dev, const cek_ref *operands, uint32_t count, cek_ref *to)
{
    if (count > CEK_SLOT_MAX || (count && !operands))
        return cek__host_fail(&dev->instance->host, CEK_INVALID, "%u operands do not cover what was promised",
                              operands ? count : 0);
    for (uint32_t i = 0; i < count; i++)
        to[i] = inner_ref(operands[i]);
    return CEK_OK;
}

cek_status cek__sim_op_prepack(cek_queue *queue, const cek_op *op, const cek_ref *operands, uint32_t count,
                               cek_ref packed)
{
    cek_status st;
    cek__sim_work work = { .call = CEK__SIM_op_prepack, .op = op->inner, .count = count, .dst = inner_ref(packed) };
    if (!cek__sim_queue_pass(queue, CEK__SIM_op_prepack, &st) ||
        (st = cek__sim_operands(queue->dev, operands, count, work.operands)))
        return st;
    st = cek__sim_do(queue, &work);
    return cek__sim_spend(queue, st, &op->prepack_ns, 1);
}

cek_status cek__sim_op_run(cek_queue *queue, const cek_op *op, const cek_ref *operands, uint32_t count,
                           cek_ref workspace)
{
    cek_status st;
    cek__sim_work work = { .call = CEK__SIM_op_run, .op = op->inner, .count = count, .dst = inner_ref(workspace) };
    if (!cek__sim_queue_pass(queue, CEK__SIM_op_run, &st) ||
        (st = cek__sim_operands(queue->dev, operands, count, work.operands)))
        return st;
    st = cek__sim_do(queue, &work);
    return cek__sim_spend(queue, st, &op->cost_ns, 1);
}
