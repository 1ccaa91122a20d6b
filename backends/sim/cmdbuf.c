/* SPDX-License-Identifier: MIT
 *
 * cmdbuf.c - command buffers of simulated devices: the inner one, and what each of its commands costs.
 */
#include <stdlib.h>

#include "backends/common/command.h"
#include "backends/sim/sim.h"

/* What a command costs, before its handles are the inner plugin's. The inner plugin looks whether it is one at all. */
static uint64_t cmd_cost(const cek_dev *dev, const cek_cmd *cmd)
{
    if (cmd->kind == CEK_CMD_RUN && cmd->op)
        return cmd->op->cost_ns;
    if (cmd->kind == CEK_CMD_COPY && cmd->src.mem)
        return cek__sim_copy_ns(dev, cmd->src, cmd->bytes);
    if (cmd->kind == CEK_CMD_FILL && cmd->bytes)
        return cek__sim_work_ns(&cek__sim_state(dev)->speed, 0, cmd->bytes);
    return 0;
}

/* One command with the inner plugin's handles; its operands are written to `refs`. */
static cek_status inner_cmd(const cek_dev *dev, cek_cmd *cmd, cek_ref *refs)
{
    cek_status st = cek__sim_operands(dev, cmd->operands, cmd->operand_count, refs);
    if (st)
        return st;
    cmd->op = cmd->op ? cmd->op->inner : NULL;
    cmd->operands = refs;
    cmd->workspace = inner_ref(cmd->workspace);
    cmd->dst = inner_ref(cmd->dst);
    cmd->src = inner_ref(cmd->src);
    return CEK_OK;
}

/* All commands, and what they cost. Room is the caller's. */
static cek_status inner_cmds(const cek_dev *dev, const cek_cmd *cmds, uint32_t count, uint32_t cmd_size, cek_cmd *inner,
                             cek_ref *refs, uint64_t *costs_ns)
{
    const cek_host *host = &dev->instance->host;
    cek_status st = CEK_OK;
    if (count && (!cmds || cmd_size < sizeof *cmds))
        return cek__host_fail(host, CEK_INVALID, "cmdbuf_create: commands of %u bytes", cmd_size);
    for (uint32_t i = 0; !st && i < count; i++) {
        st = cek__cmd_in(host, cmds, i, cmd_size, &inner[i]);
        if (st)
            break;
        costs_ns[i] = cmd_cost(dev, &inner[i]);
        st = inner_cmd(dev, &inner[i], refs + (size_t)i * CEK_SLOT_MAX);
    }
    return st;
}

cek_status cek__sim_cmdbuf_create(cek_dev *dev, const cek_cmd *cmds, uint32_t count, uint32_t cmd_size,
                                  cek_cmdbuf **out)
{
    const cek_host *host = &dev->instance->host;
    cek_status st = cek__sim_wrapper_make(dev, CEK__SIM_cmdbuf_create, sizeof **out, out);
    if (st)
        return st;
    cek_cmd *inner = calloc(count ? count : 1, sizeof *inner);
    cek_ref *refs = calloc(count ? count : 1, CEK_SLOT_MAX * sizeof *refs);
    (*out)->costs_ns = calloc(count ? count : 1, sizeof *(*out)->costs_ns);
    (*out)->count = count;
    if (!inner || !refs || !(*out)->costs_ns)
        st = cek__host_fail(host, CEK_OUT_OF_MEMORY, "cmdbuf_create: no memory for %u commands", count);
    else
        st = inner_cmds(dev, cmds, count, cmd_size, inner, refs, (*out)->costs_ns);
    if (!st)
        st = UNLESS_IDLE(dev, cmdbuf_create, dev->inner, inner, count, sizeof *inner, &(*out)->inner);
    free(inner);
    free(refs);
    if (st)
        free((*out)->costs_ns);
    return cek__sim_wrapper_done(*out, st, out);
}

void cek__sim_cmdbuf_destroy(cek_cmdbuf *cmdbuf)
{
    if (!cmdbuf)
        return;
    cek__sim_release_pass(cmdbuf->dev, CEK__SIM_cmdbuf_destroy);
    if (cmdbuf->inner)
        cmdbuf->dev->instance->plugin.cmdbuf_destroy(cmdbuf->inner);
    free(cmdbuf->costs_ns);
    free(cmdbuf);
}

cek_status cek__sim_cmdbuf_run(cek_queue *queue, cek_cmdbuf *cmdbuf)
{
    cek_status st;
    if (!cek__sim_queue_pass(queue, CEK__SIM_cmdbuf_run, &st))
        return st;
    st = cek__sim_do(queue, &(cek__sim_work){ .call = CEK__SIM_cmdbuf_run, .cmdbuf = cmdbuf->inner });
    return cek__sim_spend(queue, st, cmdbuf->costs_ns, cmdbuf->count);
}
