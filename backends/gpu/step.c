/* SPDX-License-Identifier: MIT
 * step.c - what all lowerings share: steps, places, workspace, shapes. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/gpu/lower.h"

#define GROUP_ITEMS 128  /* of kernels without local memory: a multiple of every device's wavefront */
#define CPU_CHUNK 4096   /* CHUNK in kernels/gpu/dialect.h */
#define CPU_LANES 16     /* LANES there, */
#define GPU_LANES 4      /* on others */
#define GROUP_MOST 256   /* there, too */
#define TERMS_LEAST 8    /* IN_FLIGHT there: so many loads a work-item has under way */
#define WAVE 32          /* work-items that read neighbours at no extra cost */
#define CPU_GROUPS 16384 /* in a row: PoCL compiles grids of 65535 and more once again */

/* Room for one more, all zero. */
static cek__gpu_step *step_next(cek_op *op)
{
    if (op->failure)
        return NULL;
    if (op->step_count == op->step_room) {
        uint32_t room = op->step_room ? 2 * op->step_room : 4;
        cek__gpu_step *larger = realloc(op->steps, room * sizeof *larger);
        if (!larger) {
            op->failure = cek__host_fail(&op->dev->instance->host, CEK_OUT_OF_MEMORY,
                                         "op_create: no memory for %u launches", room);
            return NULL;
        }
        op->steps = larger;
        op->step_room = room;
    }
    cek__gpu_step *step = &op->steps[op->step_count];
    memset(step, 0, sizeof *step);
    return step;
}

/* Without a grid yet. */
static cek__gpu_step *step_load(cek_op *op, const char *source, const char *defines, const char *name)
{
    cek__gpu_step *step = step_next(op);
    if (!step)
        return NULL;
    op->failure = op->dev->driver->kernel_load(op->dev, source, defines, name, &step->kernel);
    if (op->failure)
        return NULL;
    op->step_count++;
    return step;
}

/* What a compiler needs for a kernel can leave room for fewer work-items than the device has for others. */
static uint32_t group_most(const cek_op *op, const cek__gpu_step *step)
{
    const cek__gpu_driver *driver = op->dev->driver;
    uint32_t device = op->dev->traits.max_group, kernel = driver->kernel_group ? driver->kernel_group(step->kernel) : 0;
    uint32_t most = !kernel || (device && device < kernel) ? device : kernel;
    return most ? most : 1;
}

cek__gpu_step *cek__gpu_step_grid(cek_op *op, const char *source, const char *defines, const char *name,
                                  const uint64_t groups[3], const uint32_t group[3])
{
    cek__gpu_step *step = step_load(op, source, defines, name);
    if (!step)
        return NULL;
    memcpy(step->groups, groups, sizeof step->groups);
    memcpy(step->group, group, sizeof step->group);
    return step;
}

bool cek__gpu_step_fits(const cek_op *op, const cek__gpu_step *step)
{
    return (uint64_t)step->group[0] * step->group[1] * step->group[2] <= group_most(op, step);
}

void cek__gpu_step_drop(cek_op *op)
{
    op->dev->driver->kernel_free(op->dev, op->steps[--op->step_count].kernel);
}

void cek__gpu_step_call(cek_op *op, const cek__gpu_provider *provider, const cek__gpu_offer *offer,
                        cek__gpu_place result)
{
    const uint32_t slots = op->request.slot_count;
    cek__gpu_place workspace = { CEK__GPU_NOTHING, 0 };
    if (offer->workspace_bytes)
        workspace = cek__gpu_workspace(op, offer->workspace_bytes);
    cek__gpu_step *step = step_next(op);
    if (!step) {
        provider->plan_free(op->dev, offer->plan);
        return;
    }
    step->provider = provider;
    step->plan = offer->plan;
    for (uint32_t i = 0; i < slots; i++)
        step->buffers[i] = i == CEK__GPU_RESULT ? result : cek__gpu_slot(op, i);
    step->buffers[slots] = workspace;
    step->buffer_count = slots + 1;
    op->step_count++;
}

cek__gpu_step *cek__gpu_step_load(cek_op *op, const char *source, const char *defines, const char *name,
                                  uint32_t *group)
{
    cek__gpu_step *step = step_load(op, source, defines, name);
    const uint32_t most = step && !op->dev->traits.vector_width ? group_most(op, step) : 1;
    *group = cek__gpu_power(most, most < GROUP_MOST ? most : GROUP_MOST);
    return step;
}

/* On a CPU in rows (GROUP_NUMBER of the dialect). */
void cek__gpu_step_groups(const cek_op *op, cek__gpu_step *step, uint64_t groups, uint32_t size, uint64_t layers)
{
    const bool cpu = op->dev->traits.vector_width;
    const uint64_t rows = cpu && groups > CPU_GROUPS ? (groups + CPU_GROUPS - 1) / CPU_GROUPS : 1;
    if (!step)
        return;
    memcpy(step->groups, (uint64_t[]){ (groups + rows - 1) / rows, rows, layers }, sizeof step->groups);
    memcpy(step->group, (uint32_t[]){ size, 1, 1 }, sizeof step->group);
}

cek__gpu_step *cek__gpu_step_add(cek_op *op, const char *source, const char *defines, const char *name, uint64_t items)
{
    /* A CPU's work-items are long: one each, so that few of them still share the cores. */
    cek__gpu_step *step = step_load(op, source, defines, name);
    const uint32_t most = step && !op->dev->traits.vector_width ? group_most(op, step) : 1;
    const uint32_t size = most < GROUP_ITEMS ? most : GROUP_ITEMS;
    cek__gpu_step_groups(op, step, (items + size - 1) / size, size, 1);
    return step;
}

void cek__gpu_step_fill(cek__gpu_step *step, const cek__gpu_place *buffers, uint32_t count, const void *args,
                        uint32_t bytes)
{
    if (!step)
        return;
    step->buffer_count = count;
    step->args_bytes = bytes;
    memcpy(step->buffers, buffers, count * sizeof *buffers);
    memcpy(step->args, args, bytes);
}

cek__gpu_place cek__gpu_workspace(cek_op *op, uint64_t bytes)
{
    cek__gpu_place place = { CEK__GPU_WORKSPACE, op->info.workspace_bytes };
    uint64_t rounded;
    if (__builtin_add_overflow(bytes, CEK_ALIGNMENT - 1, &rounded) ||
        rounded > INT64_MAX / 2 - op->info.workspace_bytes)
        op->failure = cek__host_fail(&op->dev->instance->host, CEK_UNSUPPORTED, "op_create: the workspace overflows");
    else
        op->info.workspace_bytes += rounded & ~(uint64_t)(CEK_ALIGNMENT - 1);
    return place;
}

cek__gpu_place cek__gpu_slot(const cek_op *op, uint32_t slot)
{
    return (cek__gpu_place){ cek__request_given(&op->request, slot) ? slot : CEK__GPU_NOTHING, 0 };
}

uint64_t cek__gpu_items(const cek_dev *dev, uint64_t count)
{
    return dev->traits.vector_width ? (count + CPU_CHUNK - 1) / CPU_CHUNK : count;
}

uint32_t cek__gpu_lanes(const cek_dev *dev)
{
    return dev->traits.vector_width ? CPU_LANES : GPU_LANES;
}

uint32_t cek__gpu_power(uint64_t least, uint32_t most)
{
    uint32_t power = 1;
    while (power < least && power <= most / 2)
        power *= 2;
    return power;
}

uint32_t cek__gpu_row_items(uint64_t length, uint32_t group)
{
    const uint32_t full = cek__gpu_power((length + TERMS_LEAST - 1) / TERMS_LEAST, group);
    const uint32_t wave = cek__gpu_power(length, group < WAVE ? group : WAVE);
    return full > wave ? full : wave;
}

bool cek__gpu_shape(uint32_t rank, const uint64_t *sizes, cek_k_shape *out)
{
    uint64_t count = 1;
    for (uint32_t d = 0; d < rank; d++) {
        if (sizes[d] > INT32_MAX || (count *= sizes[d]) > INT32_MAX)
            return false;
        /* With 2^(log - 1) < size <= 2^log the multiplier is 2^(31 + log) / size rounded up: off by less than one, so
         * that a number below 2^31 is divided exactly. */
        const uint32_t log = sizes[d] > 1 ? 32 - (uint32_t)__builtin_clz((uint32_t)sizes[d] - 1) : 0;
        out->size[d] = (cek_u32)sizes[d];
        out->shift[d] = 31 + log;
        out->multiplier[d] = (cek_u32)(((UINT64_C(1) << (31 + log)) + sizes[d] - 1) / sizes[d]);
    }
    return true;
}

void cek__gpu_defines(const cek_dev *dev, char *to, const char *format, ...)
{
    va_list args;
    int at = snprintf(to, CEK__GPU_DEFINES, "%s", dev->traits.vector_width ? "#define CEK_CPU 1\n" : "");
    va_start(args, format);
    vsnprintf(to + at, CEK__GPU_DEFINES - (size_t)at, format, args);
    va_end(args);
}

const char *cek__gpu_type(cek_dtype type)
{
    switch (type) {
    case CEK_F32: return "f32";
    case CEK_F16: return "f16";
    case CEK_BF16: return "bf16";
    case CEK_U8: return "u8";
    default: return "i32";
    }
}

uint32_t cek__gpu_collapse(uint32_t rank, uint64_t *shape, uint64_t (*strides)[CEK_RANK_MAX], uint32_t operands)
{
    uint32_t kept = 0;
    for (uint32_t d = 0; d < rank; d++) {
        if (shape[d] == 1)
            continue;
        bool merges = kept > 0;
        for (uint32_t o = 0; merges && o < operands; o++)
            merges = strides[o][kept - 1] == shape[d] * strides[o][d];
        uint32_t to = merges ? kept - 1 : kept++;
        shape[to] = merges ? shape[to] * shape[d] : shape[d];
        for (uint32_t o = 0; o < operands; o++)
            strides[o][to] = strides[o][d];
    }
    for (uint32_t d = kept; d < CEK_RANK_MAX; d++) {
        shape[d] = 1;
        for (uint32_t o = 0; o < operands; o++)
            strides[o][d] = 0;
    }
    return kept ? kept : 1;
}

cek_k_window cek__gpu_window(uint32_t spatial, const uint64_t *in, const uint64_t *out, const uint64_t *kernel,
                             const uint64_t *stride, const uint64_t *dilation, const uint64_t *pad_lo)
{
    cek_k_window w;
    for (uint32_t i = 0; i < 3; i++) {
        bool used = i < spatial;
        w.in[i] = used ? (cek_u32)in[i] : 1;
        w.out[i] = used ? (cek_u32)out[i] : 1;
        w.taps[i] = used ? (cek_u32)kernel[i] : 1;
        w.stride[i] = used ? (cek_u32)stride[i] : 1;
        w.dilation[i] = used && dilation ? (cek_u32)dilation[i] : 1;
        w.pad[i] = used ? (cek_u32)pad_lo[i] : 0;
    }
    return w;
}

uint64_t cek__gpu_positions(const cek_u32 size[3])
{
    return (uint64_t)size[0] * size[1] * size[2];
}
