/* conductor_act.c - one action of a device carried out, one event taken in (see conductor_inside.h). */
#include <math.h>
#include <string.h>

#include "core/base/status.h"
#include "core/base/trace.h"
#include "nn/train/conductor_inside.h"

static const double NORM_FLOOR = 1e-6; /* added to the norm, as PyTorch does */

/* ---- what happened; under the lock ---- */

static bool has_work(const cek__conductor *c, const worker *w)
{
    return (w->computes && cek__order_has(c->order, w->station->index, CEK__LANE_COMPUTE)) ||
           (w->exchanges && cek__order_has(c->order, w->station->index, CEK__LANE_EXCHANGE));
}

void cek__conductor_wake(cek__conductor *c)
{
    for (size_t i = 0; i < c->worker_count; i++)
        if (c->closing || c->failure != CEK_OK || has_work(c, &c->workers[i]))
            pthread_cond_signal(&c->workers[i].work);
    if (c->awaited != NULL && c->awaited(c))
        pthread_cond_signal(&c->told);
}

/* Something is under way from now on, which its porter looks for. */
static void wake_porter(cek__conductor *c, const cek__station *s)
{
    for (size_t i = 0; i < c->worker_count; i++)
        if (c->workers[i].station == s && c->workers[i].exchanges)
            pthread_cond_signal(&c->workers[i].work);
}

void cek__conductor_fail(cek__conductor *c, cek_status status)
{
    if (c->failure == CEK_OK) {
        c->failure = status;
        strncpy(c->failure_text, cek_error_text(), sizeof c->failure_text - 1);
    }
    cek__order_fail(c->order);
    cek__conductor_wake(c);
}

static void ended(cek__conductor *c, const cek__action *a)
{
    cek__exchange_release(c->exchange, a);
    if (a->phase != CEK__VERDICT)
        cek__order_done(c->order, a);
    cek__conductor_wake(c);
}

/* What gradients are multiplied by, and how long parameters and their steps are: the same numbers on every owner. Where
 * they were scaled, their norm was too, and a step is skipped that is not finite. */
static cek__verdict verdict(const cek__conductor *c, cek__station *station, int64_t step)
{
    const double scaled = c->rules->scaled ? (double)cek__station_job(station, step)->block.loss_scale.hi : 1;
    double sum = 0, scale;

    cek__station_forget(station);
    for (size_t s = 0; s < c->shards->count; s++)
        sum += cek__station_hear(station, &c->stations[c->shards->list[s].owner], s);
    if (c->rules->scaled && !isfinite(sum))
        return (cek__verdict){ .scale = 1, .skip = true };
    if (c->rules->max_norm == 0)
        return (cek__verdict){ .scale = 1 / scaled };
    scale = c->rules->max_norm / (sqrt(sum) / scaled + NORM_FLOOR);
    return (cek__verdict){ .scale = (scale < 1 || isnan(scale) ? scale : 1) / scaled };
}

/* ---- exchanging ---- */

/* What a lone device has measured counts as done when it is queued: the host, which judges, waits for it here. */
static cek_status carry_out(cek__conductor *c, cek__station *s, const cek__action *a)
{
    cek_trace *trace = cek_device_trace(s->device);
    int64_t began = cek__trace_begin(trace);
    cek_status st = CEK_OK;
    cek__verdict said = { .scale = 1 };

    if (a->phase == CEK__VERDICT && s->at_once)
        st = cek__replica_drain(s->replica);
    if (st == CEK_OK && a->phase == CEK__VERDICT) {
        said = verdict(c, s, a->step);
        if (c->scaler != NULL)
            cek__scaler_hear(c->scaler, c->scaler_before + a->step, said.skip);
    }
    if (st == CEK_OK)
        st = cek__station_exchange(s, a, &said);
    cek__trace_end(trace, began, cek__station_phase_name(a->phase));
    return st;
}

bool cek__conductor_exchange_one(cek__conductor *c, cek__station *s)
{
    cek_status st;
    cek__action a;
    cek__track track;
    cek__flights *flights;
    cek__flight *flight = NULL;

    for (size_t t = 0; t < CEK__TRACK_COUNT; t++)
        if (s->flights[t].count == CEK__FLIGHTS)
            return false;
    if (!cek__order_next(c->order, s->index, CEK__LANE_EXCHANGE, &a))
        return false;
    cek__exchange_assign(c->exchange, &a);
    track = cek__station_track(s, &a);
    flights = &s->flights[track];
    c->busy++;
    pthread_mutex_unlock(&c->lock);
    st = carry_out(c, s, &a);
    if (st == CEK_OK && !s->at_once) {
        flight = &flights->ring[(flights->first + flights->count) % CEK__FLIGHTS];
        st = cek_marker_record(flight->marker, s->tracks[track]);
    }
    pthread_mutex_lock(&c->lock);
    c->busy--;
    if (st != CEK_OK) {
        cek__conductor_fail(c, st);
    } else if (flight != NULL) {
        flight->action = a;
        flights->count++;
    } else {
        ended(c, &a);
    }
    cek__conductor_wake(c);
    return true;
}

bool cek__conductor_flights_land(cek__conductor *c, cek__station *s)
{
    bool any = false;

    for (size_t t = 0; t < CEK__TRACK_COUNT; t++) {
        cek__flights *f = &s->flights[t];
        cek_status st = CEK_OK;
        while (f->count > 0 && st == CEK_OK) {
            cek__flight *flight = &f->ring[f->first];
            pthread_mutex_unlock(&c->lock);
            st = cek_marker_query(flight->marker);
            pthread_mutex_lock(&c->lock);
            if (st == CEK_NOT_READY)
                break;
            f->first = (f->first + 1) % CEK__FLIGHTS;
            f->count--;
            any = true;
            if (st != CEK_OK)
                cek__conductor_fail(c, st);
            else
                ended(c, &flight->action);
        }
    }
    return any;
}

/* ---- computing ---- */

/* Marks a point of the computing stream to look out for. Only the feeder adds, only the porter takes away. */
static cek_status milestone_set(cek__conductor *c, cek__station *s, const cek__milestone *what)
{
    cek_status st;
    cek__milestone *m;

    pthread_mutex_lock(&c->lock);
    m = &s->milestones[(s->milestone_first + s->milestone_count) % s->milestone_capacity];
    pthread_mutex_unlock(&c->lock);
    CEK_TRY(cek_marker_record(m->marker, cek__replica_stream(s->replica)));
    pthread_mutex_lock(&c->lock);
    m->step = what->step;
    m->buckets = what->buckets;
    m->counted = what->counted;
    s->milestone_count++;
    wake_porter(c, s);
    pthread_mutex_unlock(&c->lock);
out:
    return st;
}

/* A segment of backward was queued: on a device that works beside the host, a point to look out for; else it has ended,
 * and what that allows goes first. */
typedef struct passage {
    cek__conductor *conductor;
    cek__station *station;
} passage;

static cek_status reached(void *user, int64_t step, size_t buckets)
{
    const passage *p = user;
    cek__conductor *c = p->conductor;
    cek__station *s = p->station;

    if (!s->at_once)
        return milestone_set(c, s, &(cek__milestone){ .step = step, .buckets = buckets });
    pthread_mutex_lock(&c->lock);
    cek__order_ready(c->order, s->index, step, buckets);
    cek__conductor_wake(c);
    while (c->failure == CEK_OK && cek__conductor_exchange_one(c, s))
        ;
    pthread_mutex_unlock(&c->lock);
    cek__trace_step(step, 0); /* the exchanges have said theirs */
    return CEK_OK;
}

bool cek__conductor_milestones_pass(cek__conductor *c, cek__station *s)
{
    bool any = false;
    cek_status st = CEK_OK;

    while (s->milestone_count > 0 && st == CEK_OK) {
        cek__milestone m = s->milestones[s->milestone_first];
        pthread_mutex_unlock(&c->lock);
        st = cek_marker_query(m.marker);
        if (st == CEK_OK && m.counted)
            cek__station_read_times(s, m.step);
        pthread_mutex_lock(&c->lock);
        if (st == CEK_NOT_READY)
            break;
        s->milestone_first = (s->milestone_first + 1) % s->milestone_capacity;
        s->milestone_count--;
        any = true;
        if (st != CEK_OK)
            cek__conductor_fail(c, st);
        else if (m.counted)
            cek__order_counted(c->order, s->index, m.step);
        else
            cek__order_ready(c->order, s->index, m.step, m.buckets);
        cek__conductor_wake(c);
    }
    return any;
}

bool cek__conductor_compute_one(cek__conductor *c, cek__station *s)
{
    cek_status st;
    cek__action a;
    passage p = { c, s };
    cek_trace *trace = cek_device_trace(s->device);
    int64_t began;

    if (!cek__order_next(c->order, s->index, CEK__LANE_COMPUTE, &a))
        return false;
    c->busy++;
    pthread_mutex_unlock(&c->lock);
    began = cek__trace_begin(trace);
    cek__trace_step(a.step, 0);
    st = cek__station_compute(s, &a, reached, &p);
    cek__trace_end(trace, began, cek__station_phase_name(a.phase));
    cek__trace_step(0, 0);
    if (st == CEK_OK && a.phase == CEK__BACKWARD && cek__replica_is_inline(s->replica))
        cek__station_read_times(s, a.step);
    if (st == CEK_OK && a.phase == CEK__BACKWARD && !s->at_once)
        st = milestone_set(c, s, &(cek__milestone){ .step = a.step, .counted = true });
    pthread_mutex_lock(&c->lock);
    c->busy--;
    if (st != CEK_OK)
        cek__conductor_fail(c, st);
    else if (a.phase == CEK__BACKWARD && s->at_once)
        cek__order_counted(c->order, s->index, a.step);
    cek__conductor_wake(c);
    return true;
}
