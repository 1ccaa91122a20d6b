/* SPDX-License-Identifier: MIT
 *
 * cmdbuf.c - command buffers as CUDA graphs: the commands are captured once from a stream of their
 * own, and launched as one.
 *
 * Capture belongs to the thread that captures; others go on. All kernels were launched once when
 * their operations were made, so nothing is left for the driver to load now. What cannot be
 * captured is CEK_UNSUPPORTED: the host then runs the commands one by one.
 */
#include <stdlib.h>

#include "backends/common/command.h"
#include "backends/cuda/cuda.h"

struct cek_cmdbuf {
    cuda_dev *dev;
    CUgraphExec exec; /* NULL: no commands */
};

static cek_status command_enqueue(cek_queue *queue, const cek_cmd *cmd)
{
    const cek_host *host = &queue->dev->head.instance->host;
    switch (cmd->kind) {
    case CEK_CMD_RUN: return cek__gpu_op_run(queue, cmd->op, cmd->operands, cmd->operand_count, cmd->workspace);
    case CEK_CMD_FILL: return cek__cuda_fill(queue, cmd->dst, cmd->pattern, cmd->pattern_bytes, cmd->bytes);
    case CEK_CMD_COPY:
        if (cmd->bytes && cmd->src.mem && cmd->src.mem->dev != &queue->dev->head)
            return cek__host_fail(host, CEK_INVALID, "cmdbuf_create: a copy within the device");
        return cek__cuda_copy(queue, cmd->dst, cmd->src, cmd->bytes);
    default: return cek__host_fail(host, CEK_UNSUPPORTED, "cmdbuf_create: command %u is unknown", cmd->kind);
    }
}

/* Begins and ends a capture around all commands; on failure there is no graph. */
static cek_status capture(cek_queue *queue, const cek_cmd *cmds, uint32_t count, uint32_t cmd_size, CUgraph *graph)
{
    cuda_dev *dev = queue->dev;
    const cuda_driver *api = cek__cuda_api(dev);
    *graph = NULL;
    CUresult error = api->cuStreamBeginCapture(queue->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    if (error)
        return cek__cuda_fail(dev, "cmdbuf_create", "cuStreamBeginCapture", error);
    cek_status st = CEK_OK;
    for (uint32_t i = 0; !st && i < count; i++) {
        cek_cmd cmd;
        st = cek__cmd_in(&dev->head.instance->host, cmds, i, cmd_size, &cmd);
        if (!st)
            st = command_enqueue(queue, &cmd);
    }
    error = api->cuStreamEndCapture(queue->stream, graph);
    if (cek__cuda_is_capture(error)) /* whatever the command itself said */
        st = cek__host_fail(&dev->head.instance->host, CEK_UNSUPPORTED,
                            "cmdbuf_create: a command cannot be captured: %s (%u)", cek__cuda_error(api, error), error);
    else if (!st && error)
        st = cek__cuda_fail(dev, "cmdbuf_create", "cuStreamEndCapture", error);
    if (st && *graph) {
        (void)api->cuGraphDestroy(*graph);
        *graph = NULL;
    }
    return st;
}

static cek_status graph_make(cek_queue *queue, const cek_cmd *cmds, uint32_t count, uint32_t cmd_size,
                             CUgraphExec *exec)
{
    cuda_dev *dev = queue->dev;
    const cuda_driver *api = cek__cuda_api(dev);
    CUgraph graph;
    cek_status st = cek__cuda_enter(dev, "cmdbuf_create");
    if (st)
        return st;
    st = capture(queue, cmds, count, cmd_size, &graph);
    if (!st) {
        CUresult error = api->cuGraphInstantiateWithFlags(exec, graph, 0);
        if (error)
            st = cek__cuda_fail(dev, "cmdbuf_create", "cuGraphInstantiateWithFlags", error);
        (void)api->cuGraphDestroy(graph);
    }
    cek__cuda_leave(dev);
    return st;
}

cek_status cek__cuda_cmdbuf_create(cek_dev *head, const cek_cmd *cmds, uint32_t count, uint32_t cmd_size,
                                   cek_cmdbuf **out)
{
    const cek_host *host = &head->instance->host;
    cek_queue *queue;
    *out = NULL;
    cek_status st = cek__gpu_ready(head, "cmdbuf_create");
    if (st)
        return st;
    if (count && (!cmds || cmd_size < sizeof *cmds))
        return cek__host_fail(host, CEK_INVALID, "cmdbuf_create: %u commands of %u bytes, at least %zu",
                              cmds ? count : 0, cmd_size, sizeof *cmds);
    cek_cmdbuf *cmdbuf = calloc(1, sizeof *cmdbuf);
    if (!cmdbuf)
        return cek__host_fail(host, CEK_OUT_OF_MEMORY, "cmdbuf_create: no memory for the handle");
    cmdbuf->dev = (cuda_dev *)head;
    if (count) {
        st = cek__cuda_queue_create(head, NULL, &queue);
        if (!st) {
            st = graph_make(queue, cmds, count, cmd_size, &cmdbuf->exec);
            cek__cuda_queue_destroy(queue);
        }
    }
    if (st) {
        free(cmdbuf);
        return st;
    }
    *out = cmdbuf;
    return CEK_OK;
}

void cek__cuda_cmdbuf_destroy(cek_cmdbuf *cmdbuf)
{
    if (!cmdbuf)
        return;
    cuda_dev *dev = cmdbuf->dev;
    if (cmdbuf->exec && !cek__latched(&dev->head.lost) && !cek__cuda_enter(dev, "cmdbuf_destroy")) {
        CUresult error = cek__cuda_api(dev)->cuGraphExecDestroy(cmdbuf->exec);
        cek__cuda_leave(dev);
        if (error)
            (void)cek__cuda_fail(dev, "cmdbuf_destroy", "cuGraphExecDestroy", error);
    }
    free(cmdbuf);
}

cek_status cek__cuda_cmdbuf_run(cek_queue *queue, cek_cmdbuf *cmdbuf)
{
    cuda_dev *dev = queue->dev;
    cek_status st = cek__cuda_queue_ready(queue, "cmdbuf_run");
    if (st)
        return st;
    if (!cmdbuf || cmdbuf->dev != dev)
        return cek__host_fail(&dev->head.instance->host, CEK_INVALID,
                              "cmdbuf_run: the command buffer is of another device");
    if (!cmdbuf->exec)
        return CEK_OK;
    st = cek__cuda_enter(dev, "cmdbuf_run");
    if (st)
        return st;
    CUresult error = cek__cuda_api(dev)->cuGraphLaunch(cmdbuf->exec, queue->stream);
    cek__cuda_leave(dev);
    return error ? cek__cuda_fail(dev, "cmdbuf_run", "cuGraphLaunch", error) : CEK_OK;
}
