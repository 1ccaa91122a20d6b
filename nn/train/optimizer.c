/* optimizer.c - see optimizer.h. */
#include "nn/train/optimizer.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/status.h"
#include "nn/train/chains.h"
#include "nn/train/lamb.h"
#include "nn/train/room.h"

struct cek__shard_optimizer {
    cek_device *device;
    const cek__rules *rules;
    uint64_t count, moment_bytes;
    cek__range *ranges;
    size_t range_count;
    cek_op *op;
    uint64_t op_workspace;
    cek__chain_op clip, average, rounding;
    uint64_t exact;   /* elements in front of those with rounded copies */
    cek__lamb *lamb;  /* NULL: another algorithm */
    cek_memory *step; /* where Adam's step is written for LAMB */
    cek_memory *moments[CEK__MOMENTS], *state, *workspace;
};

static const uint32_t moment_slots[CEK__MOMENT_AVERAGE] = { CEK_OPTIMIZER_M, CEK_OPTIMIZER_V, CEK_OPTIMIZER_MEAN };

static bool has(const cek__rules *r, size_t moment)
{
    return moment == CEK__MOMENT_AVERAGE ? r->average > 0 : cek__algorithm_has(&r->optimizer, moment_slots[moment]);
}

size_t cek__rules_moments(const cek__rules *r)
{
    size_t count = 0;
    for (size_t i = 0; i < CEK__MOMENTS; i++)
        count += has(r, i);
    return count;
}

/* ---- life ---- */

cek_status cek__shard_optimizer_bytes(const cek__rules *r, const cek__shard *shard, uint64_t *out)
{
    cek_status st;
    const uint64_t bytes = cek__aligned(cek__shard_elements(shard) * cek_dtype_bytes(r->layout->type));
    const bool lamb = cek__rules_scale_parameters(r);
    cek__range *ranges = NULL;
    size_t count;

    *out = 0;
    CEK_TRY(cek__rules_ranges(r, shard, &ranges, &count));
    *out = (cek__rules_moments(r) + lamb) * bytes + CEK__COUNTER_BYTES + (lamb ? cek__lamb_bytes(count) : 0);
out:
    free(ranges);
    return st;
}

uint64_t cek__shard_optimizer_workspace_bytes(const cek__shard_optimizer *s)
{
    return cek__room_of(s->workspace) + cek__lamb_workspace_bytes(s->lamb);
}

/* Full of one number. */
static cek_status filled(cek_device *device, cek_stream *stream, cek_dtype type, double value, uint64_t bytes,
                         cek_memory **out)
{
    cek_status st;
    const float single = (float)value;
    uint32_t pattern;
    double *wide = NULL;

    memcpy(&pattern, &single, sizeof pattern);
    CEK_TRY(cek_memory_alloc(device, bytes, CEK_MEMORY_ALONE, out));
    if (type == CEK_F32 || value == 0) {
        CEK_TRY(cek_stream_fill(stream, cek_memory_ref(*out), pattern, 4, bytes));
        return CEK_OK;
    }
    CEK_TRY(cek__alloc_array(bytes / sizeof *wide, sizeof *wide, &wide)); /* no pattern is so wide */
    for (uint64_t i = 0; i < bytes / sizeof *wide; i++)
        wide[i] = value;
    CEK_TRY(cek_stream_upload(stream, cek_memory_ref(*out), wide, bytes));
    CEK_TRY(cek_stream_sync(stream, CEK_FOREVER));
out:
    cek__free_after(st, wide);
    return st;
}

static cek_status op_make(cek__shard_optimizer *s)
{
    cek_status st;
    const cek_optimizer *o = &s->rules->optimizer;
    cek_param_range *ranges = NULL;
    cek_op_info info = { .size = sizeof info };
    cek_optimizer_desc desc = {
        .op = { .size = sizeof desc,
                .kind = CEK_OP_OPTIMIZER,
                .operands = CEK_BIT(CEK_OPTIMIZER_PARAM) | CEK_BIT(CEK_OPTIMIZER_GRAD) | CEK_BIT(CEK_OPTIMIZER_STATE) |
                            CEK_BIT(CEK_OPTIMIZER_STEP) |
                            (cek__rules_scale_gradients(s->rules) ? CEK_BIT(CEK_OPTIMIZER_UPDATE) : 0) },
        .count = s->count,
        .range_count = (uint32_t)s->range_count,
        .range_size = sizeof *ranges,
        .momentum = o->momentum,
        .dampening = o->dampening,
        .epsilon = o->epsilon,
        .algorithm = cek__algorithm_of(o),
        .flags = o->flags,
        .type = s->rules->layout->type,
        .decay = o->algorithm == CEK_OPTIMIZER_RMSPROP ? o->alpha : o->lr_decay,
    };
    CEK_TRY(cek__calloc(s->range_count + 1, sizeof *ranges, &ranges));
    for (size_t i = 0; i < s->range_count; i++)
        ranges[i] = (cek_param_range){ .begin = s->ranges[i].begin,
                                       .end = s->ranges[i].end,
                                       .group = s->lamb != NULL ? (uint32_t)CEK__GROUP_UNIT : s->ranges[i].group };
    desc.ranges = ranges;
    for (size_t i = 0; i < CEK__MOMENT_AVERAGE; i++)
        desc.op.operands |= has(s->rules, i) ? CEK_BIT(moment_slots[i]) : 0;
    CEK_TRY(cek_op_make(s->device, &desc.op, &info, &s->op));
    s->op_workspace = info.workspace_bytes;
out:
    free(ranges);
    return st;
}

/* g = min(max(g, -most), most): a NaN stays. */
static cek_status clip_make(cek__shard_optimizer *s)
{
    const double most = s->rules->max_value;
    const cek_pointwise_instruction clip[] = { { .code = CEK_PW_CONST, .imm = -most },
                                               { .code = CEK_PW_MAX, .a = 0, .b = 1 },
                                               { .code = CEK_PW_CONST, .imm = most },
                                               { .code = CEK_PW_MIN, .a = 2, .b = 3 } };
    return cek__chain_make(s->device, s->rules->layout->type, s->count, 1, clip, 4, &s->clip);
}

/* average += (1 - decay) * (p - average), which leaves alone what does not move. */
static cek_status average_make(cek__shard_optimizer *s)
{
    const cek_pointwise_instruction average[] = { { .code = CEK_PW_SUB, .a = 1, .b = 0 },
                                                  { .code = CEK_PW_MUL_IMM, .a = 2, .imm = 1 - s->rules->average },
                                                  { .code = CEK_PW_ADD, .a = 0, .b = 3 } };
    return cek__chain_make(s->device, s->rules->layout->type, s->count, 2, average, 3, &s->average);
}

static cek_status ops_make(cek__shard_optimizer *s, cek_stream *stream, const cek__shard *shard)
{
    cek_status st;
    const cek__layout *layout = s->rules->layout;
    const cek__halves halves = cek__layout_halves(layout, shard->bucket, shard->first, shard->end);

    if (cek__rules_scale_parameters(s->rules))
        CEK_TRY(cek__lamb_create(s->device, stream, s->rules, s->ranges, s->range_count, &s->lamb));
    CEK_TRY(op_make(s));
    if (s->rules->max_value > 0)
        CEK_TRY(clip_make(s));
    if (s->rules->average > 0)
        CEK_TRY(average_make(s));
    s->exact = halves.exact;
    if (halves.rounded > 0)
        CEK_TRY(cek__rounding_make(s->device, layout->low, halves.rounded, &s->rounding));
    return CEK_OK;
out:
    return cek__fail_prefix(st, "optimizer of %llu parameters", (unsigned long long)s->count);
}

static cek_status memory_make(cek__shard_optimizer *s, cek_stream *stream, cek_ref parameters)
{
    cek_status st;
    const cek_dtype type = s->rules->layout->type;
    uint64_t workspace = s->op_workspace;

    workspace = s->clip.workspace_bytes > workspace ? s->clip.workspace_bytes : workspace;
    workspace = s->average.workspace_bytes > workspace ? s->average.workspace_bytes : workspace;
    workspace = s->rounding.workspace_bytes > workspace ? s->rounding.workspace_bytes : workspace;
    if (workspace > 0)
        CEK_TRY(cek_memory_alloc(s->device, workspace, 0, &s->workspace));
    for (size_t i = 0; i < CEK__MOMENTS; i++)
        if (has(s->rules, i))
            CEK_TRY(filled(s->device, stream, type, i == 1 ? s->rules->optimizer.initial_sum : 0, s->moment_bytes,
                           &s->moments[i]));
    if (s->rules->average > 0)
        CEK_TRY(cek_stream_copy(stream, cek_memory_ref(s->moments[CEK__MOMENT_AVERAGE]), stream, parameters,
                                s->moment_bytes));
    CEK_TRY(filled(s->device, stream, CEK_F32, 0, CEK__COUNTER_BYTES, &s->state));
    if (s->lamb != NULL)
        CEK_TRY(filled(s->device, stream, type, 0, s->moment_bytes, &s->step));
out:
    return st;
}

cek_status cek__shard_optimizer_create(cek_device *device, cek_stream *stream, const cek__rules *rules,
                                       const cek__shard *shard, cek_ref parameters, cek__shard_optimizer **out)
{
    cek_status st;
    cek__shard_optimizer *s = NULL;

    *out = NULL;
    CEK_TRY(cek__calloc(1, sizeof *s, &s));
    s->device = device;
    s->rules = rules;
    s->count = cek__shard_elements(shard);
    s->moment_bytes = s->count * cek_dtype_bytes(rules->layout->type);
    CEK_TRY(cek__rules_ranges(rules, shard, &s->ranges, &s->range_count));
    CEK_TRY(ops_make(s, stream, shard));
    CEK_TRY(memory_make(s, stream, parameters));
    *out = s;
    return CEK_OK;
out:
    cek__shard_optimizer_free(s);
    return st;
}

void cek__shard_optimizer_free(cek__shard_optimizer *s)
{
    if (!s)
        return;
    cek__lamb_free(s->lamb);
    cek_op_free(s->device, s->op);
    cek_op_free(s->device, s->clip.op);
    cek_op_free(s->device, s->average.op);
    cek_op_free(s->device, s->rounding.op);
    for (size_t i = 0; i < CEK__MOMENTS; i++)
        cek_memory_free(s->moments[i]);
    cek_memory_free(s->step);
    cek_memory_free(s->state);
    cek_memory_free(s->workspace);
    free(s->ranges);
    free(s);
}

const cek__range *cek__shard_optimizer_ranges(const cek__shard_optimizer *s, size_t *count)
{
    *count = s->range_count;
    return s->ranges;
}

cek_ref cek__shard_optimizer_step(const cek__shard_optimizer *s)
{
    return cek_memory_ref(s->step);
}

/* ---- updates ---- */

static cek_ref ref_or_none(const cek_memory *memory)
{
    return memory ? cek_memory_ref(memory) : (cek_ref){ NULL, 0 };
}

static cek_cmd command(cek_op *op, const cek_ref *operands, uint32_t count, cek_ref workspace)
{
    return (
        cek_cmd){ .kind = CEK_CMD_RUN, .op = op, .operands = operands, .operand_count = count, .workspace = workspace };
}

static cek_cmd clip_command(const cek__shard_optimizer *s, const cek__update_place *at, cek_ref *operands)
{
    operands[CEK_POINTWISE_IN0] = operands[CEK_POINTWISE_OUT] = at->gradients;
    return command(s->clip.op, operands, CEK_POINTWISE_OUT + 1, ref_or_none(s->workspace));
}

static cek_cmd average_command(const cek__shard_optimizer *s, const cek__update_place *at, cek_ref *operands)
{
    operands[CEK_POINTWISE_IN0] = operands[CEK_POINTWISE_OUT] = cek_memory_ref(s->moments[CEK__MOMENT_AVERAGE]);
    operands[CEK_POINTWISE_IN1] = at->parameters;
    return command(s->average.op, operands, CEK_POINTWISE_OUT + 1, ref_or_none(s->workspace));
}

static cek_cmd rounding_command(const cek__shard_optimizer *s, const cek__update_place *at, cek_ref *operands)
{
    operands[CEK_POINTWISE_IN0] = at->parameters;
    operands[CEK_POINTWISE_IN0].offset += s->exact * cek_dtype_bytes(s->rules->layout->type);
    operands[CEK_POINTWISE_OUT] = at->rounded;
    return command(s->rounding.op, operands, CEK_POINTWISE_OUT + 1, ref_or_none(s->workspace));
}

static cek_cmd step_command(const cek__shard_optimizer *s, const cek__update_place *at, cek_ref *operands)
{
    operands[CEK_OPTIMIZER_PARAM] = s->lamb != NULL ? cek_memory_ref(s->step) : at->parameters;
    operands[CEK_OPTIMIZER_GRAD] = at->gradients;
    for (size_t i = 0; i < CEK__MOMENT_AVERAGE; i++)
        operands[moment_slots[i]] = ref_or_none(s->moments[i]);
    operands[CEK_OPTIMIZER_STATE] = cek_memory_ref(s->state);
    operands[CEK_OPTIMIZER_STEP] = at->step_block;
    operands[CEK_OPTIMIZER_UPDATE] = cek__rules_scale_gradients(s->rules) ? at->update_block : (cek_ref){ NULL, 0 };
    return command(s->op, operands, CEK_OPTIMIZER_MEAN + 1, ref_or_none(s->workspace));
}

typedef cek_cmd command_fn(const cek__shard_optimizer *s, const cek__update_place *at, cek_ref *operands);

static cek_status run(const cek__shard_optimizer *s, cek_stream *stream, const cek__update_place *at, command_fn *fn)
{
    cek_ref operands[CEK__UPDATE_SLOTS] = { { NULL, 0 } };
    cek_cmd c = fn(s, at, operands);

    return cek_stream_run(stream, c.op, c.operands, c.operand_count, c.workspace);
}

cek_status cek__shard_optimizer_prepare(cek__shard_optimizer *s, cek_stream *stream, const cek__update_place *at)
{
    cek_status st = CEK_OK;

    if (s->clip.op != NULL)
        CEK_TRY(run(s, stream, at, clip_command));
    if (s->lamb == NULL)
        return CEK_OK;
    CEK_TRY(cek_stream_fill(stream, cek_memory_ref(s->step), 0, 4, s->moment_bytes));
    CEK_TRY(run(s, stream, at, step_command));
    CEK_TRY(cek__lamb_decay(s->lamb, stream, at->parameters, cek_memory_ref(s->step)));
out:
    return st;
}

cek_status cek__shard_optimizer_update(cek__shard_optimizer *s, cek_stream *stream, const cek__update_place *at,
                                       const double *squares)
{
    cek_status st;

    if (s->lamb != NULL)
        CEK_TRY(cek__lamb_apply(s->lamb, stream, at->parameters, cek_memory_ref(s->step), at->step_block, squares));
    else
        CEK_TRY(run(s, stream, at, step_command));
    if (s->rounding.op != NULL)
        CEK_TRY(run(s, stream, at, rounding_command));
    if (s->average.op != NULL)
        CEK_TRY(run(s, stream, at, average_command));
out:
    return st;
}

uint32_t cek__shard_optimizer_commands(const cek__shard_optimizer *s, const cek__update_place *at,
                                       cek__update_operands operands, cek_cmd *out)
{
    uint32_t count = 0;

    if (s->clip.op != NULL)
        out[count] = clip_command(s, at, operands[count]), count++;
    out[count] = step_command(s, at, operands[count]), count++;
    if (s->rounding.op != NULL)
        out[count] = rounding_command(s, at, operands[count]), count++;
    if (s->average.op != NULL)
        out[count] = average_command(s, at, operands[count]), count++;
    return count;
}

/* ---- state ---- */

cek_status cek__shard_optimizer_read(const cek__shard_optimizer *s, cek_stream *stream, cek__optimizer_state *out)
{
    cek_status st;
    for (size_t i = 0; i < CEK__MOMENTS; i++)
        if (s->moments[i])
            CEK_TRY(cek_stream_download(stream, out->moments[i], cek_memory_ref(s->moments[i]), s->moment_bytes));
    CEK_TRY(cek_stream_download(stream, out->counter, cek_memory_ref(s->state), CEK__COUNTER_BYTES));
    CEK_TRY(cek_stream_sync(stream, CEK_FOREVER));
out:
    return st;
}

cek_status cek__shard_optimizer_write(cek__shard_optimizer *s, cek_stream *stream, const cek__optimizer_state *state)
{
    cek_status st;
    for (size_t i = 0; i < CEK__MOMENTS; i++)
        if (s->moments[i])
            CEK_TRY(cek_stream_upload(stream, cek_memory_ref(s->moments[i]), state->moments[i], s->moment_bytes));
    CEK_TRY(cek_stream_upload(stream, cek_memory_ref(s->state), state->counter, CEK__COUNTER_BYTES));
    CEK_TRY(cek_stream_sync(stream, CEK_FOREVER));
out:
    return st;
}
