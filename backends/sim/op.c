/* SPDX-License-Identifier: MIT
 * op.c - operations and command buffers of simulated devices: descriptors and operands with the inner plugin's handles. */
#include <stdlib.h>
#include <string.h>

#include "backends/common/growth.h"
#include "backends/sim/sim.h"

cek_status cek__sim_op_create(cek_dev *dev, const cek_op_desc *desc, cek_op_info *info, cek_op **out)
{
    const cek_host *host = &dev->instance->host;
    cek_status st = cek__sim_wrapper_make(dev, "op_create", sizeof **out, out);
    if (st)
        return st;
    if (!desc || desc->size < sizeof *desc)
        return cek__sim_wrapper_done(*out, cek__fail(host, CEK_INVALID, "op_create: descriptor smaller than its head"), out);
    cek_op_desc *inner = malloc(desc->size);
    if (!inner)
        return cek__sim_wrapper_done(*out, cek__fail(host, CEK_OUT_OF_MEMORY, "op_create: no memory for the descriptor"), out);
    memcpy(inner, desc, desc->size);
    inner->forward = desc->forward ? desc->forward->inner : NULL;
    st = cek__sim_wrapper_done(*out, INNER(dev, op_create, dev->inner, inner, info, &(*out)->inner), out);
    free(inner);
    return st;
}

void cek__sim_op_destroy(cek_op *op)
{
    if (!op)
        return;
    op->dev->instance->plugin.op_destroy(op->inner);
    free(op);
}

/* Operands of the inner plugin; at most CEK_SLOT_MAX slots exist. */
static cek_status inner_refs(const cek_dev *dev, const cek_ref *operands, uint32_t count, cek_ref *to)
{
    if (count > CEK_SLOT_MAX || (count && !operands))
        return cek__fail(&dev->instance->host, CEK_INVALID, "%u operands do not cover what was promised",
                         operands ? count : 0);
    for (uint32_t i = 0; i < count; i++)
        to[i] = inner_ref(operands[i]);
    return CEK_OK;
}

cek_status cek__sim_op_prepack(cek_queue *queue, const cek_op *op, const cek_ref *operands, uint32_t count, cek_ref packed)
{
    cek_status st;
    cek_ref refs[CEK_SLOT_MAX];
    if (!cek__sim_queue_pass(queue, "op_prepack", &st) || (st = inner_refs(queue->dev, operands, count, refs)))
        return st;
    return INNER(queue->dev, op_prepack, queue->inner, op->inner, refs, count, inner_ref(packed));
}

cek_status cek__sim_op_run(cek_queue *queue, const cek_op *op, const cek_ref *operands, uint32_t count, cek_ref workspace)
{
    cek_status st;
    cek_ref refs[CEK_SLOT_MAX];
    if (!cek__sim_queue_pass(queue, "op_run", &st) || (st = inner_refs(queue->dev, operands, count, refs)))
        return st;
    return INNER(queue->dev, op_run, queue->inner, op->inner, refs, count, inner_ref(workspace));
}

/* One command with the inner plugin's handles; its operands are written to `refs`. */
static cek_status inner_cmd(const cek_dev *dev, cek_cmd *cmd, cek_ref *refs)
{
    cek_status st = inner_refs(dev, cmd->operands, cmd->operand_count, refs);
    if (st)
        return st;
    cmd->op = cmd->op ? cmd->op->inner : NULL;
    cmd->operands = refs;
    cmd->workspace = inner_ref(cmd->workspace);
    cmd->dst = inner_ref(cmd->dst);
    cmd->src = inner_ref(cmd->src);
    return CEK_OK;
}

cek_status cek__sim_cmdbuf_create(cek_dev *dev, const cek_cmd *cmds, uint32_t count, uint32_t cmd_size, cek_cmdbuf **out)
{
    const cek_host *host = &dev->instance->host;
    cek_status st = cek__sim_wrapper_make(dev, "cmdbuf_create", sizeof **out, out);
    if (st)
        return st;
    cek_cmd *inner = calloc(count ? count : 1, sizeof *inner);
    cek_ref *refs = calloc(count ? count : 1, CEK_SLOT_MAX * sizeof *refs);
    if (!inner || !refs)
        st = cek__fail(host, CEK_OUT_OF_MEMORY, "cmdbuf_create: no memory for %u commands", count);
    else if (count && (!cmds || cmd_size < sizeof *cmds))
        st = cek__fail(host, CEK_INVALID, "cmdbuf_create: commands of %u bytes", cmd_size);
    for (uint32_t i = 0; !st && i < count; i++) {
        st = cek__element_in(host, "cmdbuf_create: command", cmds, i, cmd_size, &inner[i], sizeof inner[i]);
        if (!st)
            st = inner_cmd(dev, &inner[i], refs + (size_t)i * CEK_SLOT_MAX);
    }
    if (!st)
        st = INNER(dev, cmdbuf_create, dev->inner, inner, count, sizeof *inner, &(*out)->inner);
    free(inner);
    free(refs);
    return cek__sim_wrapper_done(*out, st, out);
}

void cek__sim_cmdbuf_destroy(cek_cmdbuf *cmdbuf)
{
    if (!cmdbuf)
        return;
    cmdbuf->dev->instance->plugin.cmdbuf_destroy(cmdbuf->inner);
    free(cmdbuf);
}

cek_status cek__sim_cmdbuf_run(cek_queue *queue, cek_cmdbuf *cmdbuf)
{
    cek_status st;
    return cek__sim_queue_pass(queue, "cmdbuf_run", &st) ? INNER(queue->dev, cmdbuf_run, queue->inner, cmdbuf->inner) : st;
}
