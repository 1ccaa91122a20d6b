/* SPDX-License-Identifier: MIT
 *
 * cmdbuf.c - command buffers as a plain list: checked and turned into addresses once, walked at every run.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/common/command.h"
#include "backends/host/host.h"

typedef struct command {
    uint32_t kind;
    uint32_t pattern, pattern_bytes;
    const cek_op *op;
    cek__host_addresses operands;
    unsigned char *dst;
    const unsigned char *src;
    uint64_t bytes;
} command;

struct cek_cmdbuf {
    cek_dev *dev;
    uint32_t count;
    command commands[];
};

static cek_status command_prepare(cek_dev *dev, const cek_cmd *cmd, command *to)
{
    cek_status st = CEK_OK;
    *to = (command){ .kind = cmd->kind, .bytes = cmd->bytes };
    switch (cmd->kind) {
    case CEK_CMD_RUN:
        to->op = cmd->op;
        return cek__host_op_addresses(dev, cmd->op, cmd->operands, cmd->operand_count, cmd->workspace, &to->operands);
    case CEK_CMD_FILL:
        to->pattern = cmd->pattern;
        to->pattern_bytes = cmd->pattern_bytes;
        st = cmd->bytes ? cek__fill_check(&dev->instance->host, cmd->dst, cmd->pattern_bytes, cmd->bytes,
                                          cek__host_mem_bytes, dev)
                        : CEK_OK;
        break;
    case CEK_CMD_COPY:
        st = cmd->bytes ? cek__host_copy_check(dev, cmd->dst, cmd->src, cmd->bytes) : CEK_OK;
        if (!st && cmd->bytes && cmd->src.mem->dev != dev)
            st = cek__host_fail(&dev->instance->host, CEK_INVALID, "cmdbuf_create: a copy within the device");
        break;
    default:
        return cek__host_fail(&dev->instance->host, CEK_UNSUPPORTED, "cmdbuf_create: command %u is unknown", cmd->kind);
    }
    if (!st && cmd->bytes) {
        to->dst = cmd->dst.mem->base + cmd->dst.offset;
        to->src = cmd->kind == CEK_CMD_COPY ? cmd->src.mem->base + cmd->src.offset : NULL;
    }
    return st;
}

cek_status cek__host_cmdbuf_create(cek_dev *dev, const cek_cmd *cmds, uint32_t count, uint32_t cmd_size,
                                   cek_cmdbuf **out)
{
    const cek_host *host = &dev->instance->host;
    *out = NULL;
    cek_status st = cek__host_ready(dev, "cmdbuf_create");
    if (st)
        return st;
    if (count && (!cmds || cmd_size < sizeof *cmds))
        return cek__host_fail(host, CEK_INVALID, "cmdbuf_create: %u commands of %u bytes, at least %zu",
                              cmds ? count : 0, cmd_size, sizeof *cmds);
    cek_cmdbuf *cmdbuf = calloc(1, sizeof *cmdbuf + count * sizeof *cmdbuf->commands);
    if (!cmdbuf)
        return cek__host_fail(host, CEK_OUT_OF_MEMORY, "cmdbuf_create: no memory for %u commands", count);
    cmdbuf->dev = dev;
    cmdbuf->count = count;
    for (uint32_t i = 0; !st && i < count; i++) {
        cek_cmd cmd;
        st = cek__cmd_in(host, cmds, i, cmd_size, &cmd);
        if (!st)
            st = command_prepare(dev, &cmd, &cmdbuf->commands[i]);
    }
    if (st) {
        free(cmdbuf);
        return st;
    }
    *out = cmdbuf;
    return CEK_OK;
}

void cek__host_cmdbuf_destroy(cek_cmdbuf *cmdbuf)
{
    free(cmdbuf);
}

cek_status cek__host_cmdbuf_run(cek_queue *queue, cek_cmdbuf *cmdbuf)
{
    cek_status st = cek__host_queue_ready(queue, "cmdbuf_run");
    if (st)
        return st;
    if (!cmdbuf || cmdbuf->dev != queue->dev)
        return cek__host_fail(&queue->dev->instance->host, CEK_INVALID,
                              "cmdbuf_run: the command buffer is of another device");
    for (uint32_t i = 0; i < cmdbuf->count && !queue->failure.status; i++) {
        const command *at = &cmdbuf->commands[i];
        if (at->kind == CEK_CMD_RUN)
            at->op->run(at->op, queue, at->operands.at, at->operands.workspace);
        else if (at->kind == CEK_CMD_FILL)
            cek__host_fill_bytes(at->dst, at->pattern, at->pattern_bytes, at->bytes);
        else if (at->bytes)
            memcpy(at->dst, at->src, at->bytes);
    }
    return CEK_OK;
}
