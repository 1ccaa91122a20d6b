/* station_update.c - see station_update.h. */
#include "nn/train/station_update.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/status.h"

/* Where a shard begins in its bucket. */
static cek_ref at(const cek__station *s, cek_ref base, const cek__shard *shard)
{
    base.offset += shard->first * cek__replica_element_bytes(s->replica);
    return base;
}

/* Where its rounded copies begin. */
static cek_ref rounded_at(const cek__station *s, const cek__shard *shard)
{
    cek_ref ref = cek__replica_rounded(s->replica, shard->bucket);

    ref.offset += cek__layout_halves(s->rules->layout, shard->bucket, shard->first, shard->end).rounded_first *
                  sizeof(uint16_t);
    return ref;
}

/* ---- life ---- */

/* Sums that are made of a shard. */
static size_t norms_of(const cek__rules *rules, size_t ranges)
{
    return !cek__rules_judge(rules) ? 0 : cek__rules_scale_parameters(rules) ? 2 * ranges : ranges;
}

static cek_status norms_make(cek__station *s)
{
    cek_status st;
    const cek__range *ranges;
    size_t count;

    CEK_TRY(cek__calloc(s->shards->count + 1, sizeof *s->first_norm, &s->first_norm));
    for (size_t i = 0; i < s->shards->count; i++) {
        count = 0;
        if (s->optimizers[i] != NULL)
            (void)cek__shard_optimizer_ranges(s->optimizers[i], &count);
        s->first_norm[i + 1] = s->first_norm[i] + norms_of(s->rules, count);
    }
    CEK_TRY(cek__norms_create(s->device, s->rules->layout->type, s->first_norm[s->shards->count], s->sides, &s->norms));
    for (size_t i = 0; i < s->shards->count; i++) {
        if (s->optimizers[i] == NULL)
            continue;
        ranges = cek__shard_optimizer_ranges(s->optimizers[i], &count);
        for (size_t r = 0; r < count; r++)
            CEK_TRY(cek__norms_want(s->norms, ranges[r].end - ranges[r].begin));
    }
    CEK_TRY(cek__norms_ready(s->norms));
    CEK_TRY(cek__calloc(2 * s->rules->layout->parameter_count, sizeof *s->squares, &s->squares));
out:
    return st;
}

static cek_status optimizers_make(cek__station *s)
{
    cek_status st;

    CEK_TRY(cek__calloc(s->shards->count, sizeof *s->optimizers, &s->optimizers));
    for (size_t i = 0; i < s->shards->count; i++) {
        const cek__shard *shard = &s->shards->list[i];
        if (shard->owner == s->index)
            CEK_TRY(cek__shard_optimizer_create(s->device, cek__replica_stream(s->replica), s->rules, shard,
                                                at(s, cek__replica_parameters(s->replica, shard->bucket), shard),
                                                &s->optimizers[i]));
    }
    if (cek__rules_judge(s->rules))
        CEK_TRY(norms_make(s));
    return cek__replica_drain(s->replica); /* the states are there before another stream uses them */
out:
    return st;
}

static cek_status updates_make(cek__station *s, bool scales)
{
    cek_status st = CEK_OK;

    for (size_t i = 0; i < s->sides; i++) {
        cek__update_side *side = &s->updates[i];
        if (s->devices > 1)
            CEK_TRY(cek_memory_alloc(s->device, sizeof(cek_step_block), CEK_MEMORY_ALONE, &side->step_block));
        if (scales)
            CEK_TRY(cek_memory_alloc(s->device, sizeof(cek_update_block), CEK_MEMORY_ALONE, &side->update_block));
    }
out:
    return st;
}

/* A lone device has nothing to wait for between a step's parts, unless its norm is judged; and nobody asks how long
 * each took where it is not measured. */
static cek_status whole_make(cek__station *s, const cek__conductor_options *o)
{
    cek_status st = CEK_OK;
    cek_cmd *cmds = NULL;
    uint32_t count = 0;

    if (s->devices > 1 || cek__rules_judge(o->rules) || o->measured || s->shards->count == 0)
        return CEK_OK;
    CEK_TRY(cek__calloc(CEK__UPDATE_COMMANDS * s->shards->count, sizeof *cmds, &cmds));
    CEK_TRY(cek__calloc(s->shards->count, sizeof *s->update_operands, &s->update_operands));
    for (size_t i = 0; i < s->shards->count; i++) {
        const cek__shard *shard = &s->shards->list[i];
        const cek__update_place place = { .parameters = at(s, cek__replica_parameters(s->replica, shard->bucket),
                                                           shard),
                                          .gradients = at(s, cek__replica_gradients(s->replica, shard->bucket), shard),
                                          .rounded = rounded_at(s, shard),
                                          .step_block = cek__replica_step_block(s->replica) };
        count += cek__shard_optimizer_commands(s->optimizers[i], &place, s->update_operands[i], cmds + count);
    }
    CEK_TRY(cek__replica_set_updates(s->replica, cmds, count));
out:
    free(cmds);
    return st;
}

cek_status cek__station_updates_make(cek__station *s, const cek__conductor_options *o)
{
    cek_status st;

    CEK_TRY(updates_make(s, cek__rules_scale_gradients(s->rules)));
    CEK_TRY(optimizers_make(s));
    CEK_TRY(whole_make(s, o));
out:
    return st;
}

cek_status cek__station_shard_bytes(const cek__rules *rules, const cek__shard *shard, uint64_t *bytes)
{
    cek_status st;
    cek__range *ranges = NULL;
    uint64_t more;
    size_t count;

    CEK_TRY(cek__shard_optimizer_bytes(rules, shard, &more));
    CEK_TRY(cek__rules_ranges(rules, shard, &ranges, &count));
    *bytes += more + cek__norms_bytes(norms_of(rules, count));
out:
    free(ranges);
    return st;
}

/* ---- a step ---- */

/* Where the shard's update works, with the step's block there. A device without samples has not set its computing block
 * in this step, and it may be the next step's already; a lone device has set it, and computes nothing before
 * all is updated. */
static cek_status place_make(cek__station *s, const cek__action *a, size_t side_index, cek_stream *stream,
                             cek__update_place *out)
{
    cek_status st = CEK_OK;
    const cek__shard *shard = &s->shards->list[a->shard];
    cek__update_side *side = &s->updates[side_index];

    *out = (cek__update_place){
        .parameters = at(s, cek__replica_parameters(s->replica, shard->bucket), shard),
        .gradients = at(s, cek__replica_gradients(s->replica, shard->bucket), shard),
        .rounded = rounded_at(s, shard),
        .step_block = side->step_block ? cek_memory_ref(side->step_block) : cek__replica_step_block(s->replica),
        .update_block = side->update_block ? cek_memory_ref(side->update_block) : (cek_ref){ NULL, 0 },
    };
    if (side->step_block && side->step != a->step) {
        CEK_TRY(cek_stream_update(stream, out->step_block, &cek__station_job(s, a->step)->block,
                                  sizeof(cek_step_block)));
        side->step = a->step;
    }
out:
    return st;
}

static cek_ref behind(const cek__station *s, cek_ref base, uint64_t elements)
{
    base.offset += elements * cek__replica_element_bytes(s->replica);
    return base;
}

/* Of each range, the gradient; where parameters are scaled, the parameter and its step. */
cek_status cek__station_measure(cek__station *s, const cek__action *a, size_t side, cek_stream *stream)
{
    cek_status st;
    const bool scales = cek__rules_scale_parameters(s->rules);
    const size_t first = s->first_norm[a->shard];
    cek__update_place place;
    const cek__range *ranges;
    size_t count, slot = first;

    if (scales && cek__station_job(s, a->step)->discarded) /* whose steps would be a part of its moments already */
        return CEK_OK;
    CEK_TRY(place_make(s, a, side, stream, &place));
    CEK_TRY(cek__shard_optimizer_prepare(s->optimizers[a->shard], stream, &place));
    ranges = cek__shard_optimizer_ranges(s->optimizers[a->shard], &count);
    for (size_t i = 0; i < count; i++) {
        const uint64_t n = ranges[i].end - ranges[i].begin;
        const cek_ref one = scales ? place.parameters : place.gradients;
        CEK_TRY(cek__norms_measure(s->norms, slot++, behind(s, one, ranges[i].begin), n, side, stream));
        if (scales)
            CEK_TRY(cek__norms_measure(s->norms, slot++,
                                       behind(s, cek__shard_optimizer_step(s->optimizers[a->shard]), ranges[i].begin),
                                       n, side, stream));
    }
    CEK_TRY(cek__norms_fetch(s->norms, first, slot - first, stream));
out:
    return st;
}

void cek__station_forget(cek__station *s)
{
    memset(s->squares, 0, 2 * s->rules->layout->parameter_count * sizeof *s->squares);
}

double cek__station_hear(cek__station *s, const cek__station *owner, size_t shard)
{
    const bool scales = cek__rules_scale_parameters(s->rules);
    size_t count, slot = owner->first_norm[shard];
    const cek__range *ranges = cek__shard_optimizer_ranges(owner->optimizers[shard], &count);
    double sum = 0;

    for (size_t i = 0; i < count; i++) {
        if (!scales) {
            sum += cek__norms_square(owner->norms, slot++);
            continue;
        }
        s->squares[2 * ranges[i].parameter] += cek__norms_square(owner->norms, slot++);
        s->squares[2 * ranges[i].parameter + 1] += cek__norms_square(owner->norms, slot++);
    }
    return sum;
}

cek_status cek__station_update(cek__station *s, const cek__action *a, size_t side, cek_stream *stream)
{
    cek_status st;
    cek__update_place place;
    cek__shard_optimizer *optimizer = s->optimizers[a->shard];

    if (cek__station_job(s, a->step)->whole || cek__station_job(s, a->step)->discarded || s->skips)
        return CEK_OK;
    CEK_TRY(place_make(s, a, side, stream, &place));
    if (!cek__rules_judge(s->rules))
        CEK_TRY(cek__shard_optimizer_prepare(optimizer, stream, &place));
    CEK_TRY(cek__shard_optimizer_update(optimizer, stream, &place, s->squares));
out:
    return st;
}

/* Behind this come updates on all sides. */
cek_status cek__station_verdict(cek__station *s, const cek__verdict *verdict)
{
    cek_status st = CEK_OK;
    cek_update_block block = { .grad_scale = cek__f32x2(verdict->scale) };

    s->skips = verdict->skip;
    for (size_t i = 0; cek__rules_scale_gradients(s->rules) && i < s->sides; i++)
        CEK_TRY(cek_stream_update(s->tracks[CEK__TRACK_SUMS + i], cek_memory_ref(s->updates[i].update_block), &block,
                                  sizeof block));
out:
    return st;
}
