/* optimizer.c - see optimizer.h. */
#include "nn/train/optimizer.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/status.h"
#include "nn/train/chains.h"
#include "nn/train/lamb.h"
#include "nn/train/room.h"
#include "nn/train/shards.h"

/* Elements of the shard that one operation updates: those that are read as they are, or those behind them, of which it
 * makes the rounded copies (those of frozen ones stay as they were loaded). LAMB's are all of them, and its step is not
 * yet what is rounded. */
typedef struct section {
    uint64_t first, count;
    bool rounds;
    cek_op *op;
} section;
enum { SECTIONS = 2 };

struct cek__shard_optimizer {
    cek_device *device;
    const cek__rules *rules;
    uint64_t count, moment_bytes;
    cek__range *ranges;
    size_t range_count;
    section sections[SECTIONS];
    size_t section_count;
    uint64_t op_workspace; /* the largest of the sections' */
    cek__chain_op clip, average;
    cek__chain_op rounding; /* where no section does it */
    uint64_t exact;         /* elements in front of those with rounded copies */
    cek__lamb *lamb;        /* NULL: another algorithm */
    cek_memory *step;       /* where Adam's step is written for LAMB */
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

/* The sections of a shard, without their operations; how many. */
static size_t sections_of(const cek__rules *r, const cek__shard *shard, section sections[SECTIONS])
{
    const uint64_t count = cek__shard_elements(shard);
    const cek__halves halves = cek__layout_halves(r->layout, shard->bucket, shard->first, shard->end);
    size_t n = 0;

    if (cek__rules_scale_parameters(r)) {
        sections[0] = (section){ .count = count };
        return 1;
    }
    if (halves.exact > 0 || halves.rounded == 0)
        sections[n++] = (section){ .count = halves.exact };
    if (halves.rounded > 0)
        sections[n++] = (section){ .first = halves.exact, .count = halves.rounded, .rounds = true };
    return n;
}

cek_status cek__shard_optimizer_bytes(const cek__rules *r, const cek__shard *shard, uint64_t *out)
{
    cek_status st;
    const uint64_t bytes = cek__aligned(cek__shard_elements(shard) * cek_dtype_bytes(r->layout->type));
    const bool lamb = cek__rules_scale_parameters(r);
    cek__range *ranges = NULL;
    section sections[SECTIONS];
    size_t count;

    *out = 0;
    CEK_TRY(cek__rules_ranges(r, shard, &ranges, &count));
    *out = (cek__rules_moments(r) + lamb) * bytes + sections_of(r, shard, sections) * CEK__COUNTER_BYTES +
           (lamb ? cek__lamb_bytes(count) : 0);
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

/* What is updated of a section, counted from its first element. */
static uint32_t ranges_of(const cek__shard_optimizer *s, const section *p, cek_param_range *out)
{
    uint32_t count = 0;

    for (size_t i = 0; i < s->range_count; i++) {
        const cek__range *r = &s->ranges[i];
        const uint64_t begin = r->begin > p->first ? r->begin : p->first;
        const uint64_t end = r->end < p->first + p->count ? r->end : p->first + p->count;
        if (begin < end)
            out[count++] = (cek_param_range){ .begin = begin - p->first,
                                              .end = end - p->first,
                                              .group = s->lamb != NULL ? (uint32_t)CEK__GROUP_UNIT : r->group };
    }
    return count;
}

static cek_status op_make(cek__shard_optimizer *s, section *p)
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
                            (cek__rules_scale_gradients(s->rules) ? CEK_BIT(CEK_OPTIMIZER_UPDATE) : 0) |
                            (p->rounds ? CEK_BIT(CEK_OPTIMIZER_LOW) : 0),
                .align = p->rounds ? CEK__ROUNDED_ALIGN : 0 },
        .count = p->count,
        .range_size = sizeof *ranges,
        .momentum = o->momentum,
        .dampening = o->dampening,
        .epsilon = o->epsilon,
        .algorithm = cek__algorithm_of(o),
        .flags = o->flags,
        .type = s->rules->layout->type,
        .low_type = p->rounds ? s->rules->layout->low : CEK_DTYPE_NONE,
        .decay = o->algorithm == CEK_OPTIMIZER_RMSPROP ? o->alpha : o->lr_decay,
    };
    CEK_TRY(cek__calloc(s->range_count + 1, sizeof *ranges, &ranges));
    desc.ranges = ranges;
    desc.range_count = ranges_of(s, p, ranges);
    for (size_t i = 0; i < CEK__MOMENT_AVERAGE; i++)
        desc.op.operands |= has(s->rules, i) ? CEK_BIT(moment_slots[i]) : 0;
    CEK_TRY(cek_op_make(s->device, &desc.op, &info, &p->op));
    s->op_workspace = info.workspace_bytes > s->op_workspace ? info.workspace_bytes : s->op_workspace;
out:
    free(ranges);
    return st;
}

/* A device may know no rounded copies: they are made by an operation of their own then. */
static cek_status section_make(cek__shard_optimizer *s, section *p)
{
    cek_status st = op_make(s, p);

    if (st == CEK_UNSUPPORTED && p->rounds) {
        p->rounds = false;
        st = op_make(s, p);
    }
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
    s->exact = halves.exact;
    s->section_count = sections_of(s->rules, shard, s->sections);
    for (size_t i = 0; i < s->section_count; i++)
        CEK_TRY(section_make(s, &s->sections[i]));
    if (halves.rounded > 0 && !s->sections[s->section_count - 1].rounds)
        CEK_TRY(cek__rounding_make(s->device, layout->low, halves.rounded, &s->rounding));
    if (s->rules->max_value > 0)
        CEK_TRY(clip_make(s));
    if (s->rules->average > 0)
        CEK_TRY(average_make(s));
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
    CEK_TRY(filled(s->device, stream, CEK_F32, 0, s->section_count * CEK__COUNTER_BYTES, &s->state));
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
    for (size_t i = 0; i < s->section_count; i++)
        cek_op_free(s->device, s->sections[i].op);
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

static cek_ref behind(cek_ref at, uint64_t bytes)
{
    at.offset += at.mem != NULL ? bytes : 0;
    return at;
}

static cek_cmd step_command(const cek__shard_optimizer *s, size_t number, const cek__update_place *at,
                            cek_ref *operands)
{
    const section *p = &s->sections[number];
    const uint64_t first = p->first * cek_dtype_bytes(s->rules->layout->type);

    operands[CEK_OPTIMIZER_PARAM] = behind(s->lamb != NULL ? cek_memory_ref(s->step) : at->parameters, first);
    operands[CEK_OPTIMIZER_GRAD] = behind(at->gradients, first);
    for (size_t i = 0; i < CEK__MOMENT_AVERAGE; i++)
        operands[moment_slots[i]] = behind(ref_or_none(s->moments[i]), first);
    operands[CEK_OPTIMIZER_LOW] = p->rounds ? at->rounded : (cek_ref){ NULL, 0 };
    operands[CEK_OPTIMIZER_STATE] = behind(cek_memory_ref(s->state), number * CEK__COUNTER_BYTES);
    operands[CEK_OPTIMIZER_STEP] = at->step_block;
    operands[CEK_OPTIMIZER_UPDATE] = cek__rules_scale_gradients(s->rules) ? at->update_block : (cek_ref){ NULL, 0 };
    return command(p->op, operands, CEK_OPTIMIZER_MEAN + 1, ref_or_none(s->workspace));
}

typedef cek_cmd command_fn(const cek__shard_optimizer *s, const cek__update_place *at, cek_ref *operands);

static cek_status command_run(cek_stream *stream, cek_cmd c)
{
    return cek_stream_run(stream, c.op, c.operands, c.operand_count, c.workspace);
}

static cek_status run(const cek__shard_optimizer *s, cek_stream *stream, const cek__update_place *at, command_fn *fn)
{
    cek_ref operands[CEK__UPDATE_SLOTS] = { { NULL, 0 } };

    return command_run(stream, fn(s, at, operands));
}

static cek_status sections_run(const cek__shard_optimizer *s, cek_stream *stream, const cek__update_place *at)
{
    cek_status st = CEK_OK;

    for (size_t i = 0; i < s->section_count; i++) {
        cek_ref operands[CEK__UPDATE_SLOTS] = { { NULL, 0 } };
        CEK_TRY(command_run(stream, step_command(s, i, at, operands)));
    }
out:
    return st;
}

cek_status cek__shard_optimizer_prepare(cek__shard_optimizer *s, cek_stream *stream, const cek__update_place *at)
{
    cek_status st = CEK_OK;

    if (s->clip.op != NULL)
        CEK_TRY(run(s, stream, at, clip_command));
    if (s->lamb == NULL)
        return CEK_OK;
    CEK_TRY(cek_stream_fill(stream, cek_memory_ref(s->step), 0, 4, s->moment_bytes));
    CEK_TRY(sections_run(s, stream, at));
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
        CEK_TRY(sections_run(s, stream, at));
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
    for (size_t i = 0; i < s->section_count; i++)
        out[count] = step_command(s, i, at, operands[count]), count++;
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
    for (size_t i = 0; i < s->section_count; i++) /* which count alike */
        CEK_TRY(cek_stream_upload(stream, behind(cek_memory_ref(s->state), i * CEK__COUNTER_BYTES), state->counter,
                                  CEK__COUNTER_BYTES));
    CEK_TRY(cek_stream_sync(stream, CEK_FOREVER));
out:
    return st;
}
