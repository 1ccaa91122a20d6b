/* station.c - see station.h. */
#include "nn/train/station.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/status.h"
#include "core/base/trace.h"
#include "nn/train/room.h"
#include "nn/train/station_update.h"

/* ---- life ---- */

/* An inline device has one stream, a lone one needs no other: what it computes and what it updates is in one order. */
static cek_status tracks_make(cek__station *s)
{
    static const char *const names[CEK__TRACK_COUNT] = { "out", "in", "sums", "more sums" };
    cek_status st;

    for (size_t t = 0; t < CEK__TRACK_COUNT; t++) {
        if (s->at_once) {
            s->tracks[t] = cek__replica_stream(s->replica);
            continue;
        }
        CEK_TRY(cek_stream_create(s->device, &s->tracks[t]));
        cek_stream_set_name(s->tracks[t], names[t]);
        for (size_t i = 0; i < CEK__FLIGHTS; i++)
            CEK_TRY(cek_marker_create(s->device, false, &s->flights[t].ring[i].marker));
    }
    return CEK_OK;
out:
    return st;
}

/* Backward of one step is queued when all parameters of the step before are there, so two steps have milestones at
 * most; counted is one more of each. */
static cek_status milestones_make(cek__station *s)
{
    cek_status st;

    if (s->at_once)
        return CEK_OK;
    s->milestone_capacity = 2 * (s->shards->buckets + 1) + s->depth;
    CEK_TRY(cek__calloc(s->milestone_capacity, sizeof *s->milestones, &s->milestones));
    for (size_t i = 0; i < s->milestone_capacity; i++)
        CEK_TRY(cek_marker_create(s->device, false, &s->milestones[i].marker));
    return CEK_OK;
out:
    return st;
}

static cek_status jobs_make(cek__station *s)
{
    cek_status st;

    s->batch_bytes = cek__replica_share_bytes(s->replica);
    s->job_count = s->depth + CEK__ORDER_LAG;
    CEK_TRY(cek__calloc(s->job_count, sizeof *s->jobs, &s->jobs));
    CEK_TRY(cek_pinned_alloc(s->device, s->job_count * cek__replica_tally_bytes(s->replica), (void **)&s->tallies));
    CEK_TRY(cek_pinned_alloc(s->device, s->depth * s->batch_bytes, (void **)&s->batches));
    for (size_t i = 0; i < s->job_count; i++) {
        s->jobs[i].tally = s->tallies + i * cek__replica_tally_bytes(s->replica);
        CEK_TRY(cek_marker_create(s->device, false, &s->jobs[i].counted));
    }
    return CEK_OK;
out:
    return st;
}

/* Pieces of work of a step: segments of forward, of backward, and what comes between two where it is
 * exchanged in between. */
static cek_status meter_make(cek__station *s)
{
    const size_t *reads;
    size_t spans = cek__replica_forward_count(s->replica, &reads) + s->shards->buckets + 1;

    return cek__meter_create(s->device, cek__replica_stream(s->replica), s->job_count, spans, &s->meter);
}

cek_status cek__station_bytes(const cek__conductor_options *o, size_t index, uint64_t *out)
{
    cek_status st = CEK_OK;
    const bool lone = o->shards->devices == 1;
    const uint64_t blocks = (lone ? 0 : cek__aligned(sizeof(cek_step_block))) +
                            (cek__rules_scale_gradients(o->rules) ? cek__aligned(sizeof(cek_update_block)) : 0);

    *out = cek__reducer_bytes(o->shards, o->rules->layout->type, index) + (lone ? 1 : CEK__REDUCER_SIDES) * blocks;
    for (size_t s = 0; s < o->shards->count; s++)
        if (o->shards->list[s].owner == index)
            CEK_TRY(cek__station_shard_bytes(o->rules, &o->shards->list[s], out));
out:
    return st;
}

cek_status cek__station_room(const cek__station *s, uint64_t *out)
{
    cek_status st = CEK_OK;

    *out = cek__reducer_room(s->reducer) + (s->norms ? cek__norms_workspace_bytes(s->norms) : 0);
    for (size_t i = 0; i < s->sides; i++)
        *out += cek__room_of(s->updates[i].step_block) + cek__room_of(s->updates[i].update_block);
    for (size_t i = 0; i < s->shards->count; i++)
        if (s->optimizers[i] != NULL) {
            CEK_TRY(cek__station_shard_bytes(s->rules, &s->shards->list[i], out));
            *out += cek__shard_optimizer_workspace_bytes(s->optimizers[i]);
        }
out:
    return st;
}

cek_status cek__station_create(const cek__conductor_options *o, cek__exchange *exchange, size_t index, cek__station *s)
{
    cek_status st;

    *s = (cek__station){ .index = index,
                         .depth = o->depth,
                         .devices = o->shards->devices,
                         .replica = o->replicas[index],
                         .device = cek__replica_device(o->replicas[index]),
                         .shards = o->shards,
                         .rules = o->rules,
                         .exchange = exchange };
    s->at_once = s->devices == 1 || cek__replica_is_inline(s->replica);
    s->sides = s->at_once ? 1 : CEK__REDUCER_SIDES;
    CEK_TRY(tracks_make(s));
    CEK_TRY(milestones_make(s));
    CEK_TRY(jobs_make(s));
    if (o->measured)
        CEK_TRY(meter_make(s));
    CEK_TRY(cek__reducer_create(o->shards, s->replica, s->rules->layout->type, index, s->sides, &s->reducer));
    CEK_TRY(cek__station_updates_make(s, o));
    return CEK_OK;
out:
    return st;
}

void cek__station_close(cek__station *s, bool idle)
{
    if (s->update_operands != NULL)
        (void)!cek__replica_set_updates(s->replica, NULL, 0);
    free(s->update_operands);
    for (size_t i = 0; s->optimizers != NULL && i < s->shards->count; i++)
        cek__shard_optimizer_free(s->optimizers[i]);
    cek__reducer_free(s->reducer);
    cek__norms_free(s->norms);
    free(s->first_norm);
    free(s->squares);
    cek__meter_free(s->meter);
    for (size_t t = 0; t < CEK__TRACK_COUNT; t++) {
        for (size_t i = 0; i < CEK__FLIGHTS; i++)
            cek_marker_free(s->flights[t].ring[i].marker);
        if (!s->at_once)
            cek_stream_free(s->tracks[t]);
    }
    for (size_t i = 0; s->milestones != NULL && i < s->milestone_capacity; i++)
        cek_marker_free(s->milestones[i].marker);
    for (size_t i = 0; s->jobs != NULL && i < s->job_count; i++)
        cek_marker_free(s->jobs[i].counted);
    for (size_t i = 0; i < CEK__REDUCER_SIDES; i++) {
        cek_memory_free(s->updates[i].step_block);
        cek_memory_free(s->updates[i].update_block);
    }
    if (idle) {
        cek_pinned_free(s->device, s->batches);
        cek_pinned_free(s->device, s->tallies);
    } else { /* the device may still use them (plugin.h, Errors) */
        cek_pinned_abandon(s->device, s->batches);
        cek_pinned_abandon(s->device, s->tallies);
    }
    free(s->optimizers);
    free(s->milestones);
    free(s->jobs);
    memset(s, 0, sizeof *s);
}

cek_status cek__station_drain(cek__station *s)
{
    cek_status st = cek__replica_drain(s->replica), other;

    for (size_t t = 0; !s->at_once && t < CEK__TRACK_COUNT; t++) {
        other = s->tracks[t] != NULL ? cek__replica_drain_stream(s->tracks[t]) : CEK_OK;
        st = st == CEK_OK || other == CEK_DEVICE_LOST ? other : st;
    }
    return st;
}

/* ---- computing ---- */

void cek__station_take_share(cek__station *s, int64_t step, const cek__share *share, const cek_step_block *block,
                             bool lent)
{
    cek__step_job *job = cek__station_job(s, step);

    job->block = *block;
    job->share = *share;
    job->apart = job->discarded = false;
    if (!lent && share->rows > 0)
        cek__replica_copy_share(s->replica, share, s->batches + (size_t)step % s->depth * s->batch_bytes, &job->share);
}

typedef struct passage {
    cek__station *station;
    const cek__action *action;
    cek__reached_fn reached;
    void *user;
} passage;

static cek_status segment_queued(void *user, size_t buckets)
{
    const passage *p = user;
    cek__meter *meter = p->station->meter;
    int64_t step = p->action->step;
    cek_status st;

    if (!p->station->at_once)
        return p->reached(p->user, step, buckets);
    CEK_TRY(cek__meter_stop(meter, step)); /* what is exchanged meanwhile is not computing */
    CEK_TRY(p->reached(p->user, step, buckets));
    return cek__meter_start(meter, step);
out:
    return st;
}

/* Of a step that was announced. */
static cek_status upload(cek__station *s, int64_t step)
{
    return cek__replica_upload_ahead(s->replica, &cek__station_job(s, step)->share);
}

static cek_status forward(cek__station *s, const cek__action *a)
{
    cek_status st;
    cek__step_job *job = cek__station_job(s, a->step);

    if (a->segment == 0) {
        job->whole = !job->apart && cek__replica_is_whole(s->replica, &job->share);
        cek__replica_set_step(s->replica, &job->block);
    }
    if (job->whole) /* with backward */
        return CEK_OK;
    CEK_TRY(cek__meter_start(s->meter, a->step));
    CEK_TRY(cek__replica_forward(s->replica, &job->share, a->segment));
    return cek__meter_stop(s->meter, a->step);
out:
    return st;
}

/* All of it with one call, then what others would want to hear between its parts. */
static cek_status whole(cek__station *s, const cek__step_job *job, const passage *p)
{
    cek_status st;

    CEK_TRY(cek__replica_train_whole(s->replica, &job->share));
    CEK_TRY(p->reached(p->user, p->action->step, s->shards->buckets));
    return cek__replica_count_whole(s->replica, job->tally);
out:
    return st;
}

static cek_status in_parts(cek__station *s, const cek__step_job *job, passage *p)
{
    cek_status st;

    CEK_TRY(cek__meter_start(s->meter, p->action->step));
    CEK_TRY(cek__replica_train(s->replica, &job->share, segment_queued, p));
    CEK_TRY(cek__meter_stop(s->meter, p->action->step));
    return cek__replica_count(s->replica, job->tally);
out:
    return st;
}

/* All of a step is queued with that, so the samples of the next that has any may come; it was not their turn before. */
static cek_status backward(cek__station *s, const cek__action *a, cek__reached_fn reached, void *user)
{
    cek_status st;
    cek__step_job *job = cek__station_job(s, a->step);
    passage p = { s, a, reached, user };
    int64_t next = a->step + 1;

    CEK_TRY(job->whole ? whole(s, job, &p) : in_parts(s, job, &p));
    if (s->devices == 1 && !cek__replica_is_inline(s->replica))
        CEK_TRY(cek_marker_record(job->counted, cek__replica_stream(s->replica)));
    if (--s->announced == 0)
        return CEK_OK;
    while (cek__station_job(s, next)->share.rows == 0)
        next++;
    return upload(s, next);
out:
    return st;
}

cek_status cek__station_compute(cek__station *s, const cek__action *a, cek__reached_fn reached, void *user)
{
    switch (a->phase) {
    case CEK__UPLOAD: return s->announced++ == 0 ? upload(s, a->step) : CEK_OK;
    case CEK__FORWARD: return forward(s, a);
    default: return backward(s, a, reached, user);
    }
}

void cek__station_read_times(cek__station *s, int64_t step)
{
    cek__step_job *job = cek__station_job(s, step);

    if (s->meter != NULL)
        cek__meter_read(s->meter, step, &job->seconds, &job->period);
}

/* ---- exchanging ---- */

const char *cek__station_phase_name(cek__phase phase)
{
    static const char *const names[CEK__PHASE_COUNT] = {
        [CEK__UPLOAD] = "upload", [CEK__FORWARD] = "forward", [CEK__BACKWARD] = "backward", [CEK__FETCH] = "fetch",
        [CEK__ADD] = "add",       [CEK__MEASURE] = "measure", [CEK__VERDICT] = "verdict",   [CEK__UPDATE] = "update",
        [CEK__SEND] = "send",     [CEK__RECEIVE] = "receive",
    };

    return names[phase];
}

/* An owner's shards of a bucket lie as far apart as there are devices. */
static size_t side_of(const cek__station *s, const cek__action *a)
{
    return a->phase == CEK__VERDICT ? 0 : a->shard / s->devices % s->sides;
}

cek__track cek__station_track(const cek__station *s, const cek__action *a)
{
    switch (a->phase) {
    case CEK__FETCH:
    case CEK__SEND: return CEK__TRACK_OUT;
    case CEK__RECEIVE: return CEK__TRACK_IN;
    default: return (cek__track)(CEK__TRACK_SUMS + side_of(s, a));
    }
}

static cek_status carry_out(cek__station *s, const cek__action *a, const cek__verdict *verdict)
{
    cek_stream *stream = s->tracks[cek__station_track(s, a)];

    switch (a->phase) {
    case CEK__FETCH:
    case CEK__SEND: return cek__exchange_download(s->exchange, a, stream);
    case CEK__RECEIVE: return cek__exchange_parameters(s->exchange, a, stream);
    case CEK__ADD: return cek__reducer_add(s->reducer, s->exchange, a, side_of(s, a), stream);
    case CEK__MEASURE: return cek__station_measure(s, a, side_of(s, a), stream);
    case CEK__VERDICT: return cek__station_verdict(s, verdict);
    default: return cek__station_update(s, a, side_of(s, a), stream);
    }
}

/* What a trace shows: "add shard 3", in the flow of that shard in that step. */
static void tell(const cek__station *s, const cek__action *a)
{
    char label[CEK__TRACE_TEXT];

    snprintf(label, sizeof label, "%s shard %zu", cek__station_phase_name(a->phase), a->shard);
    cek__trace_label(label);
    cek__trace_step(a->step, (uint64_t)a->step * s->shards->count + a->shard + 1);
}

cek_status cek__station_exchange(cek__station *s, const cek__action *a, const cek__verdict *verdict)
{
    cek_status st;

    if (cek_device_trace(s->device) == NULL)
        return carry_out(s, a, verdict);
    tell(s, a);
    st = carry_out(s, a, verdict);
    cek__trace_label(NULL);
    cek__trace_step(0, 0);
    return st;
}

/* ---- what is under way ---- */

bool cek__station_under_way(const cek__station *s)
{
    size_t count = s->milestone_count;

    for (size_t t = 0; t < CEK__TRACK_COUNT; t++)
        count += s->flights[t].count;
    return count > 0;
}

cek_marker *cek__station_oldest(const cek__station *s)
{
    for (size_t t = 0; t < CEK__TRACK_COUNT; t++)
        if (s->flights[t].count > 0)
            return s->flights[t].ring[s->flights[t].first].marker;
    return s->milestones[s->milestone_first].marker;
}
