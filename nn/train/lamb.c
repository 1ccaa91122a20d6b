/* lamb.c - see lamb.h. */
#include "nn/train/lamb.h"

#include <math.h>
#include <stdlib.h>

#include "core/base/alloc.h"
#include "core/base/status.h"
#include "nn/train/algorithm.h"
#include "nn/train/chains.h"
#include "nn/train/room.h"

enum { BLOCKS_AT_ONCE = 4096 / sizeof(cek_update_block) }; /* what one update of a stream moves */

/* Of one range. */
typedef struct part {
    cek__chain_op decay; /* op NULL: there is none */
    cek_op *apply;
    uint64_t apply_workspace;
} part;

struct cek__lamb {
    cek_device *device;
    const cek__range *ranges;
    size_t count;
    uint64_t element_bytes;
    part *parts;
    cek_memory *blocks, *counters,
        *workspace;         /* of each range: what its step is multiplied by; how often it was updated */
    cek_update_block *told; /* [count] in host memory */
};

uint64_t cek__lamb_bytes(size_t ranges)
{
    return cek__aligned(ranges * sizeof(cek_update_block)) + ranges * CEK_ALIGNMENT;
}

uint64_t cek__lamb_workspace_bytes(const cek__lamb *l)
{
    return l ? cek__room_of(l->workspace) : 0;
}

/* step += -decay * p, in place. */
static cek_status decay_make(cek__lamb *l, cek_dtype type, double decay, uint64_t count, part *out)
{
    const cek_pointwise_instruction chain[] = { { .code = CEK_PW_MUL_IMM, .a = 1, .imm = -decay },
                                                { .code = CEK_PW_ADD, .a = 0, .b = 2 } };
    return cek__chain_make(l->device, type, count, 2, chain, 2, &out->decay);
}

/* SGD along what was found: p -= lr * grad_scale * step. */
static cek_status apply_make(cek__lamb *l, cek_dtype type, const cek__range *range, part *out)
{
    cek_status st;
    cek_op_info info = { .size = sizeof info };
    const cek_param_range all = { .end = range->end - range->begin, .group = range->group };
    cek_optimizer_desc desc = {
        .op = { .size = sizeof desc,
                .kind = CEK_OP_OPTIMIZER,
                .operands = CEK_BIT(CEK_OPTIMIZER_PARAM) | CEK_BIT(CEK_OPTIMIZER_GRAD) | CEK_BIT(CEK_OPTIMIZER_STATE) |
                            CEK_BIT(CEK_OPTIMIZER_STEP) | CEK_BIT(CEK_OPTIMIZER_UPDATE) },
        .count = all.end,
        .ranges = &all,
        .range_count = 1,
        .range_size = sizeof all,
        .algorithm = CEK_OPTIMIZER_SGD,
        .type = type,
    };
    CEK_TRY(cek_op_make(l->device, &desc.op, &info, &out->apply));
    out->apply_workspace = info.workspace_bytes;
out:
    return st;
}

static cek_status memory_make(cek__lamb *l, cek_stream *stream)
{
    cek_status st;
    uint64_t workspace = 0;

    for (size_t i = 0; i < l->count; i++) {
        workspace = l->parts[i].decay.workspace_bytes > workspace ? l->parts[i].decay.workspace_bytes : workspace;
        workspace = l->parts[i].apply_workspace > workspace ? l->parts[i].apply_workspace : workspace;
    }
    if (workspace > 0)
        CEK_TRY(cek_memory_alloc(l->device, workspace, 0, &l->workspace));
    CEK_TRY(cek_memory_alloc(l->device, l->count * sizeof(cek_update_block), CEK_MEMORY_ALONE, &l->blocks));
    CEK_TRY(cek_memory_alloc(l->device, l->count * CEK_ALIGNMENT, CEK_MEMORY_ALONE, &l->counters));
    CEK_TRY(cek_stream_fill(stream, cek_memory_ref(l->counters), 0, 4, l->count * CEK_ALIGNMENT));
out:
    return st;
}

cek_status cek__lamb_create(cek_device *device, cek_stream *stream, const cek__rules *rules, const cek__range *ranges,
                            size_t count, cek__lamb **out)
{
    cek_status st;
    cek__lamb *l = NULL;
    const cek_dtype type = rules->layout->type;

    *out = NULL;
    CEK_TRY(cek__calloc(1, sizeof *l, &l));
    *l = (cek__lamb){ .device = device, .ranges = ranges, .count = count, .element_bytes = cek_dtype_bytes(type) };
    CEK_TRY(cek__calloc(count, sizeof *l->parts, &l->parts));
    CEK_TRY(cek__calloc(count, sizeof *l->told, &l->told));
    for (size_t i = 0; i < count; i++) {
        const double decay = rules->weight_decay[ranges[i].group];
        if (decay > 0)
            CEK_TRY(decay_make(l, type, decay, ranges[i].end - ranges[i].begin, &l->parts[i]));
        CEK_TRY(apply_make(l, type, &ranges[i], &l->parts[i]));
    }
    if (count > 0)
        CEK_TRY(memory_make(l, stream));
    *out = l;
    return CEK_OK;
out:
    cek__lamb_free(l);
    return st;
}

void cek__lamb_free(cek__lamb *l)
{
    if (l == NULL)
        return;
    for (size_t i = 0; l->parts != NULL && i < l->count; i++) {
        cek_op_free(l->device, l->parts[i].decay.op);
        cek_op_free(l->device, l->parts[i].apply);
    }
    cek_memory_free(l->blocks);
    cek_memory_free(l->counters);
    cek_memory_free(l->workspace);
    free(l->parts);
    free(l->told);
    free(l);
}

static cek_ref behind(cek_ref base, uint64_t bytes)
{
    base.offset += bytes;
    return base;
}

static cek_ref workspace_ref(const cek__lamb *l, uint64_t bytes)
{
    return bytes > 0 ? cek_memory_ref(l->workspace) : (cek_ref){ NULL, 0 };
}

cek_status cek__lamb_decay(cek__lamb *l, cek_stream *stream, cek_ref parameters, cek_ref step)
{
    cek_status st = CEK_OK;

    for (size_t i = 0; i < l->count; i++) {
        const uint64_t at = l->ranges[i].begin * l->element_bytes;
        const cek_ref operands[] = { [CEK_POINTWISE_IN0] = behind(step, at),
                                     [CEK_POINTWISE_IN1] = behind(parameters, at),
                                     [CEK_POINTWISE_OUT] = behind(step, at) };
        if (l->parts[i].decay.op != NULL)
            CEK_TRY(cek_stream_run(stream, l->parts[i].decay.op, operands, CEK_POINTWISE_OUT + 1,
                                   workspace_ref(l, l->parts[i].decay.workspace_bytes)));
    }
out:
    return st;
}

/* Minus, since what was found points the way that the parameter goes. */
static double factor(const double *squares)
{
    return squares[0] > 0 && squares[1] > 0 ? -sqrt(squares[0] / squares[1]) : -1;
}

static cek_status blocks_tell(cek__lamb *l, cek_stream *stream, const double *squares)
{
    cek_status st = CEK_OK;

    for (size_t i = 0; i < l->count; i++)
        l->told[i] = (cek_update_block){ .grad_scale = cek__f32x2(factor(squares + 2 * l->ranges[i].parameter)) };
    for (size_t i = 0; i < l->count; i += BLOCKS_AT_ONCE) {
        const size_t n = l->count - i < BLOCKS_AT_ONCE ? l->count - i : BLOCKS_AT_ONCE;
        CEK_TRY(cek_stream_update(stream, behind(cek_memory_ref(l->blocks), i * sizeof *l->told), l->told + i,
                                  n * sizeof *l->told));
    }
out:
    return st;
}

cek_status cek__lamb_apply(cek__lamb *l, cek_stream *stream, cek_ref parameters, cek_ref step, cek_ref step_block,
                           const double *squares)
{
    cek_status st;

    CEK_TRY(blocks_tell(l, stream, squares));
    for (size_t i = 0; i < l->count; i++) {
        const uint64_t at = l->ranges[i].begin * l->element_bytes;
        const cek_ref operands[] = {
            [CEK_OPTIMIZER_PARAM] = behind(parameters, at),
            [CEK_OPTIMIZER_GRAD] = behind(step, at),
            [CEK_OPTIMIZER_STATE] = behind(cek_memory_ref(l->counters), i * CEK_ALIGNMENT),
            [CEK_OPTIMIZER_STEP] = step_block,
            [CEK_OPTIMIZER_UPDATE] = behind(cek_memory_ref(l->blocks), i * sizeof *l->told),
        };
        CEK_TRY(cek_stream_run(stream, l->parts[i].apply, operands, CEK_OPTIMIZER_UPDATE + 1,
                               workspace_ref(l, l->parts[i].apply_workspace)));
    }
out:
    return st;
}
