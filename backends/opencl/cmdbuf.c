/* SPDX-License-Identifier: MIT
 *
 * cmdbuf.c - command buffers: a list of launches whose arguments were set when it was made, each with a kernel object
 * of its own; and where the driver has cl_khr_command_buffer, the same list as one command of the driver's.
 *
 * The list is there in any case: for calls of a library, copies and fills, whose recording differs from version to
 * version of the extension, and for queues that the driver finds not to fit its recording.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/common/command.h"
#include "backends/opencl/opencl.h"

/* Of cl_khr_command_buffer, which older headers lack. */
#define COMMAND_BUFFER_CAPABILITIES 0x12A9 /* CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR */
#define SIMULTANEOUS_USE (1 << 2)          /* CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR */
#define COMMAND_BUFFER_FLAGS 0x1293        /* CL_COMMAND_BUFFER_FLAGS_KHR */
#define FLAG_SIMULTANEOUS_USE (1 << 0)     /* CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR */
#define INCOMPATIBLE_QUEUE (-1140)         /* CL_INCOMPATIBLE_COMMAND_QUEUE_KHR */

typedef struct command {
    cek__gpu_kernel *kernel; /* with its arguments; or NULL: */
    size_t global[3], local[3];
    const cek__gpu_provider *provider; /* a library's call; or NULL: a fill, a copy */
    const cek__gpu_plan *plan;
    cek_ref refs[CEK__GPU_BUFFERS];
    cek_cmd bytes;
} command;

struct cek_cmdbuf {
    opencl_dev *dev;
    uint32_t count, room;
    command *commands;
    cek__opencl_recording recording; /* or NULL */
};

/* --- the driver's ----------------------------------------------------------------------------- */

void cek__opencl_recorder_find(opencl_dev *dev)
{
    cl_bitfield capabilities = 0;
    cek__opencl_recorder found;
    /* The host runs a command buffer again before its last run has ended. A driver for processors takes longer for a
     * recording than for the list: PoCL 44 us for 54 launches, and 37. */
    if (dev->head.traits.vector_width || !cek__opencl_has(dev->id, "cl_khr_command_buffer") ||
        clGetDeviceInfo(dev->id, COMMAND_BUFFER_CAPABILITIES, sizeof capabilities, &capabilities, NULL) ||
        !(capabilities & SIMULTANEOUS_USE))
        return;
#define FIND(member, name) *(void **)&found.member = clGetExtensionFunctionAddressForPlatform(dev->platform, name)
    FIND(create, "clCreateCommandBufferKHR");
    FIND(launch, "clCommandNDRangeKernelKHR");
    FIND(finalize, "clFinalizeCommandBufferKHR");
    FIND(release, "clReleaseCommandBufferKHR");
    FIND(enqueue, "clEnqueueCommandBufferKHR");
#undef FIND
    if (found.create && found.launch && found.finalize && found.release && found.enqueue)
        dev->recorder = found;
}

/* Each launch behind the one before it, whatever the driver takes the order of recording for. */
static cl_int launches_record(const cek_cmdbuf *cmdbuf, cek__opencl_recording recording)
{
    const cek__opencl_recorder *driver = &cmdbuf->dev->recorder;
    cl_uint before = 0, point = 0;
    cl_int error = CL_SUCCESS;
    for (uint32_t i = 0; !error && i < cmdbuf->count; i++) {
        const command *c = &cmdbuf->commands[i];
        /* the queue is the one that the recording was made for */
        error = driver->launch(recording, NULL, NULL, cek__opencl_kernel_object(c->kernel), 3, NULL, c->global,
                               c->local, i > 0, i ? &before : NULL, &point, NULL);
        before = point;
    }
    return error ? error : driver->finalize(recording);
}

static cek_status record(cek_cmdbuf *cmdbuf)
{
    opencl_dev *dev = cmdbuf->dev;
    const cl_bitfield properties[] = { COMMAND_BUFFER_FLAGS, FLAG_SIMULTANEOUS_USE, 0 };
    cek_queue *queue;
    cl_int error = CL_SUCCESS;
    bool launches = cmdbuf->count > 0;
    for (uint32_t i = 0; i < cmdbuf->count; i++)
        launches = launches && cmdbuf->commands[i].kernel;
    if (!launches || !dev->recorder.create)
        return CEK_OK;
    cek_status st = cek__opencl_own_take(dev, &queue);
    if (st)
        return st;
    cmdbuf->recording = dev->recorder.create(1, &queue->queue, properties, &error);
    if (cmdbuf->recording)
        error = launches_record(cmdbuf, cmdbuf->recording);
    cek__opencl_own_give(dev, CEK_OK);
    if (!error)
        return CEK_OK;
    cek__host_log(&dev->head.instance->host, CEK_LOG_INFO,
                  "%u launches cannot be recorded, and are enqueued one by one: %s (%d)", cmdbuf->count,
                  cek__opencl_error(error), error);
    if (cmdbuf->recording)
        (void)dev->recorder.release(cmdbuf->recording);
    cmdbuf->recording = NULL;
    return CEK_OK;
}

/* --- making ----------------------------------------------------------------------------------- */

static cek_status command_next(cek_cmdbuf *cmdbuf, command **out)
{
    *out = NULL;
    if (cmdbuf->count == cmdbuf->room) {
        uint32_t room = cmdbuf->room ? 2 * cmdbuf->room : 16;
        command *larger = realloc(cmdbuf->commands, room * sizeof *larger);
        if (!larger)
            return cek__host_fail(&cmdbuf->dev->head.instance->host, CEK_OUT_OF_MEMORY,
                                  "cmdbuf_create: no memory for %u commands", room);
        cmdbuf->commands = larger;
        cmdbuf->room = room;
    }
    *out = &cmdbuf->commands[cmdbuf->count];
    memset(*out, 0, sizeof **out);
    return CEK_OK;
}

static cek_status step_add(void *user, const cek__gpu_step *step, const cek_ref *refs)
{
    cek_cmdbuf *cmdbuf = user;
    cek_dev *dev = &cmdbuf->dev->head;
    command *c;
    cek_status st = command_next(cmdbuf, &c);
    if (st)
        return st;
    if (step->kernel) {
        st = cek__opencl_kernel_copy(dev, step->kernel, &c->kernel);
        if (st)
            return st;
        cek__opencl_grid(step, c->global, c->local);
    }
    c->provider = step->provider;
    c->plan = step->plan;
    memcpy(c->refs, refs, step->buffer_count * sizeof *refs);
    cmdbuf->count++;
    cl_int error = step->kernel ? cek__opencl_arguments_set(c->kernel, step, refs) : CL_SUCCESS;
    return error ? cek__opencl_fail(cmdbuf->dev, "cmdbuf_create", "clSetKernelArg", error) : CEK_OK;
}

static cek_status bytes_check(cek_dev *dev, const cek_cmd *cmd)
{
    const cek_host *host = &dev->instance->host;
    if (cmd->kind == CEK_CMD_FILL)
        return cek__fill_check(host, cmd->dst, cmd->pattern_bytes, cmd->bytes, cek__gpu_mem_bytes, dev);
    if (cmd->src.mem->dev != dev)
        return cek__host_fail(host, CEK_INVALID, "cmdbuf_create: a copy within the device");
    return cek__gpu_copy_check(dev, cmd->dst, cmd->src, cmd->bytes);
}

static cek_status command_add(cek_cmdbuf *cmdbuf, const cek_cmd *cmd)
{
    cek_dev *dev = &cmdbuf->dev->head;
    command *c;
    if (cmd->kind == CEK_CMD_RUN)
        return cek__gpu_op_steps(dev, "cmdbuf_create", cmd->op, cmd->operands, cmd->operand_count, cmd->workspace,
                                 step_add, cmdbuf);
    if (cmd->kind != CEK_CMD_FILL && cmd->kind != CEK_CMD_COPY)
        return cek__host_fail(&dev->instance->host, CEK_UNSUPPORTED, "cmdbuf_create: command %u is unknown", cmd->kind);
    if (!cmd->bytes)
        return CEK_OK;
    cek_status st = bytes_check(dev, cmd);
    if (!st)
        st = command_next(cmdbuf, &c);
    if (st)
        return st;
    c->bytes = *cmd;
    cmdbuf->count++;
    return CEK_OK;
}

cek_status cek__opencl_cmdbuf_create(cek_dev *head, const cek_cmd *cmds, uint32_t count, uint32_t cmd_size,
                                     cek_cmdbuf **out)
{
    const cek_host *host = &head->instance->host;
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
    cmdbuf->dev = (opencl_dev *)head;
    for (uint32_t i = 0; !st && i < count; i++) {
        cek_cmd cmd;
        st = cek__cmd_in(host, cmds, i, cmd_size, &cmd);
        if (!st)
            st = command_add(cmdbuf, &cmd);
    }
    if (!st)
        st = record(cmdbuf);
    if (st) {
        cek__opencl_cmdbuf_destroy(cmdbuf);
        return st;
    }
    *out = cmdbuf;
    return CEK_OK;
}

void cek__opencl_cmdbuf_destroy(cek_cmdbuf *cmdbuf)
{
    if (!cmdbuf)
        return;
    opencl_dev *dev = cmdbuf->dev;
    if (cmdbuf->recording && !cek__latched(&dev->head.lost))
        (void)dev->recorder.release(cmdbuf->recording);
    for (uint32_t i = 0; i < cmdbuf->count; i++)
        cek__opencl_kernel_free(&dev->head, cmdbuf->commands[i].kernel);
    free(cmdbuf->commands);
    free(cmdbuf);
}

/* --- running ---------------------------------------------------------------------------------- */

static cek_status command_run(cek_queue *queue, const command *c)
{
    if (c->kernel)
        return cek__opencl_kernel_enqueue(queue, "cmdbuf_run", c->kernel, c->global, c->local);
    if (c->provider)
        return c->provider->call(queue, c->plan, c->refs);
    if (c->bytes.kind == CEK_CMD_FILL)
        return cek__opencl_fill(queue, c->bytes.dst, c->bytes.pattern, c->bytes.pattern_bytes, c->bytes.bytes);
    return cek__opencl_copy(queue, c->bytes.dst, c->bytes.src, c->bytes.bytes);
}

static cek_status commands_run(cek_queue *queue, const cek_cmdbuf *cmdbuf)
{
    cek_status st = CEK_OK;
    for (uint32_t i = 0; !st && i < cmdbuf->count; i++) {
        st = command_run(queue, &cmdbuf->commands[i]);
        if (st && i)
            cek__opencl_queue_fail(queue, st, "cmdbuf_run: only a part of a command buffer could be enqueued");
    }
    return st;
}

static cek_status recording_run(cek_queue *queue, const cek_cmdbuf *cmdbuf, bool *fits)
{
    cl_event event = NULL;
    cl_int error = cmdbuf->dev->recorder.enqueue(1, &queue->queue, cmdbuf->recording, 0, NULL, &event);
    *fits = error != INCOMPATIBLE_QUEUE;
    if (!*fits)
        return CEK_OK;
    if (error)
        return cek__opencl_fail(queue->dev, "cmdbuf_run", "clEnqueueCommandBufferKHR", error);
    cek__opencl_enqueued(queue, event, "a command buffer", NULL);
    return CEK_OK;
}

/* A segment of a step: flushed, so that the device is at it while the host enqueues the next. */
cek_status cek__opencl_cmdbuf_run(cek_queue *queue, cek_cmdbuf *cmdbuf)
{
    bool fits = false;
    cek_status st = cek__opencl_queue_ready(queue, "cmdbuf_run");
    if (st)
        return st;
    if (!cmdbuf || cmdbuf->dev != queue->dev)
        return cek__host_fail(&queue->dev->head.instance->host, CEK_INVALID,
                              "cmdbuf_run: the command buffer is of another device");
    if (cmdbuf->recording)
        st = recording_run(queue, cmdbuf, &fits);
    if (!st && !fits)
        st = commands_run(queue, cmdbuf);
    if (!st) /* a failure shows at the command's own event */
        (void)cek__opencl_queue_flush(queue);
    return st;
}
