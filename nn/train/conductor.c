/* conductor.c - see conductor.h. One lock over the order and what is known; it is never held across a call of a device. */
#include "nn/train/conductor.h"

#include <errno.h> /* ETIMEDOUT */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/alloc.h"
#include "core/base/status.h"
#include "core/base/thread.h"
#include "core/base/trace.h"
#include "core/device/gate.h"
#include "nn/train/station.h"

/* Fetches under way between two devices, and sends of one. A place is taken while its shard leaves and while it arrives, so two
 * keep a link busy if nobody is ever late; with four, of half the size, a step that the exchange holds up is a tenth shorter. */
enum { CREDITS = 4 };
/* Between two looks at what is under way: a tenth of what a step of a small model takes. */
enum { LOOK_NS = 50 * 1000 };
/* So long nothing of a device has ended: it is waited for in its driver, which knows when it hangs. */
enum { SILENCE_NS = 50 * 1000 * 1000 };
static const double NORM_FLOOR = 1e-6; /* added to the norm, as PyTorch does */

/* A thread of one device. */
typedef struct worker {
    struct cek__conductor *conductor;
    cek__station *station;
    bool computes, exchanges, started;
    bool acts;        /* carries out an action, which `busy` counts */
    pthread_t thread; /* of an inline device */
    cek__gate *gate;  /* of another: a thread that may be left there, and then is NULL */
    pthread_cond_t work;
} worker;

struct cek__conductor {
    cek__crew *crew;
    const cek__shards *shards;
    cek__exchange *exchange;
    cek__order *order;
    cek__station *stations; /* [devices] */
    worker *workers;
    size_t devices, worker_count;
    double max_norm;
    bool *present; /* [devices] of the step that is being submitted */
    int64_t submitted, collected;
    pthread_mutex_t lock;
    pthread_cond_t told; /* the caller: a result, a failure, or all is settled */
    bool closing;
    size_t busy; /* actions that are being carried out, which may be inside a device */
    cek_status failure;
    char failure_text[CEK__ERROR_TEXT_MAX];
};

/* ---- what happened; under the lock ---- */

/* After every event: whoever may have something to do looks. */
static void wake(cek__conductor *c)
{
    for (size_t i = 0; i < c->worker_count; i++)
        pthread_cond_signal(&c->workers[i].work);
    pthread_cond_signal(&c->told);
}

/* The first failure stays; the text is this thread's. */
static void fail(cek__conductor *c, cek_status status)
{
    if (c->failure == CEK_OK) {
        c->failure = status;
        strncpy(c->failure_text, cek_error_text(), sizeof c->failure_text - 1);
    }
    cek__order_fail(c->order);
    wake(c);
}

static void ended(cek__conductor *c, const cek__action *a)
{
    cek__exchange_release(c->exchange, a);
    if (a->phase != CEK__VERDICT)
        cek__order_done(c->order, a);
    wake(c);
}

/* What gradients are multiplied by: the same number on every owner. */
static double verdict(const cek__conductor *c)
{
    double sum = 0, scale;

    for (size_t s = 0; s < c->shards->count; s++)
        sum += cek__reducer_squares(c->stations[c->shards->list[s].owner].reducer, s);
    scale = c->max_norm / (sqrt(sum) + NORM_FLOOR);
    return scale < 1 || isnan(scale) ? scale : 1;
}

/* ---- exchanging ---- */

/* What a lone device has measured counts as done when it is queued: the host, which judges, waits for it here. */
static cek_status carry_out(cek__conductor *c, cek__station *s, const cek__action *a)
{
    cek_trace *trace = cek_device_trace(s->device);
    int64_t began = cek__trace_begin(trace);
    cek_status st = CEK_OK;

    if (a->phase == CEK__VERDICT && s->at_once)
        st = cek__replica_drain(s->replica);
    if (st == CEK_OK)
        st = cek__station_exchange(s, a, a->phase == CEK__VERDICT ? verdict(c) : 1);
    cek__trace_end(trace, began, cek__station_phase_name(a->phase));
    return st;
}

/* Carries out the next action of the lane; true if there was one. Called and left with the lock. */
static bool exchange_one(cek__conductor *c, cek__station *s)
{
    cek_status st;
    cek__action a;
    cek__flights *flights;
    cek__flight *flight = NULL;

    for (size_t t = 0; t < CEK__TRACK_COUNT; t++)
        if (s->flights[t].count == CEK__FLIGHTS)
            return false;
    if (!cek__order_next(c->order, s->index, CEK__LANE_EXCHANGE, &a))
        return false;
    cek__exchange_assign(c->exchange, &a);
    flights = &s->flights[cek__station_track(a.phase)];
    c->busy++;
    pthread_mutex_unlock(&c->lock);
    st = carry_out(c, s, &a);
    if (st == CEK_OK && !s->at_once) {
        flight = &flights->ring[(flights->first + flights->count) % CEK__FLIGHTS];
        st = cek_marker_record(flight->marker, s->tracks[cek__station_track(a.phase)]);
    }
    pthread_mutex_lock(&c->lock);
    c->busy--;
    if (st != CEK_OK) {
        fail(c, st);
    } else if (flight != NULL) {
        flight->action = a;
        flights->count++;
    } else {
        ended(c, &a);
    }
    wake(c);
    return true;
}

/* Looks whether the oldest action of each track has ended; true if one has. Called and left with the lock. */
static bool flights_land(cek__conductor *c, cek__station *s)
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
                fail(c, st);
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
    wake(c);
    pthread_mutex_unlock(&c->lock);
out:
    return st;
}

/* A segment of backward was queued: on a device that works beside the host, a point to look out for; else it has ended, and
 * what that allows goes first. */
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
    wake(c);
    while (c->failure == CEK_OK && exchange_one(c, s))
        ;
    pthread_mutex_unlock(&c->lock);
    cek__trace_step(step, 0); /* the exchanges have said theirs */
    return CEK_OK;
}

static bool milestones_pass(cek__conductor *c, cek__station *s)
{
    bool any = false;
    cek_status st = CEK_OK;

    while (s->milestone_count > 0 && st == CEK_OK) {
        cek__milestone m = s->milestones[s->milestone_first];
        pthread_mutex_unlock(&c->lock);
        st = cek_marker_query(m.marker);
        pthread_mutex_lock(&c->lock);
        if (st == CEK_NOT_READY)
            break;
        s->milestone_first = (s->milestone_first + 1) % s->milestone_capacity;
        s->milestone_count--;
        any = true;
        if (st != CEK_OK)
            fail(c, st);
        else if (m.counted)
            cek__order_counted(c->order, s->index, m.step);
        else
            cek__order_ready(c->order, s->index, m.step, m.buckets);
        wake(c);
    }
    return any;
}

/* Called and left with the lock. */
static bool compute_one(cek__conductor *c, cek__station *s)
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
    if (st == CEK_OK && a.phase == CEK__BACKWARD && !s->at_once)
        st = milestone_set(c, s, &(cek__milestone){ .step = a.step, .counted = true });
    pthread_mutex_lock(&c->lock);
    c->busy--;
    if (st != CEK_OK)
        fail(c, st);
    else if (a.phase == CEK__BACKWARD && s->at_once)
        cek__order_counted(c->order, s->index, a.step);
    wake(c);
    return true;
}

/* ---- threads ---- */

static bool under_way(const cek__station *s)
{
    size_t count = s->milestone_count;

    for (size_t t = 0; t < CEK__TRACK_COUNT; t++)
        count += s->flights[t].count;
    return count > 0;
}

/* What is under way for longest on one of the streams: it waits for nothing but its own device. */
static cek_marker *oldest(const cek__station *s)
{
    for (size_t t = 0; t < CEK__TRACK_COUNT; t++)
        if (s->flights[t].count > 0)
            return s->flights[t].ring[s->flights[t].first].marker;
    return s->milestones[s->milestone_first].marker;
}

/* A device that has been silent is waited for in its driver, with the deadline of all waits. */
static void wait_for_device(cek__conductor *c, cek__station *s)
{
    cek_status st;
    cek_marker *marker = oldest(s);

    pthread_mutex_unlock(&c->lock);
    st = cek__replica_await(marker);
    pthread_mutex_lock(&c->lock);
    if (st != CEK_OK)
        fail(c, st);
}

/* False if somebody had news before that. */
static bool wait_a_little(cek__conductor *c, pthread_cond_t *cond)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK_NS;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    return pthread_cond_timedwait(cond, &c->lock, &until) == ETIMEDOUT;
}

static void worker_run(void *arg)
{
    worker *w = arg;
    cek__conductor *c = w->conductor;
    cek__station *s = w->station;
    uint64_t silent_ns = 0;

    cek__trace_name_thread("%s: %s", cek_device_name(s->device),
                           !w->exchanges ? "feeder"
                           : w->computes ? "everything"
                                         : "porter");
    pthread_mutex_lock(&c->lock);
    while (!c->closing) {
        bool did = false;
        w->acts = false;
        if (w->exchanges && c->failure == CEK_OK) {
            did = flights_land(c, s) || did;
            did = milestones_pass(c, s) || did;
            w->acts = true;
            did = exchange_one(c, s) || did;
        }
        w->acts = true;
        if (w->computes && !did && c->failure == CEK_OK)
            did = compute_one(c, s);
        w->acts = false;
        if (did || !under_way(s))
            silent_ns = 0;
        if (did)
            continue;
        if (!w->exchanges || c->failure != CEK_OK || !under_way(s))
            pthread_cond_wait(&w->work, &c->lock);
        else if (silent_ns < SILENCE_NS)
            silent_ns += wait_a_little(c, &w->work) ? LOOK_NS : 0;
        else
            wait_for_device(c, s);
    }
    pthread_mutex_unlock(&c->lock);
}

static void *worker_main(void *arg)
{
    worker_run(arg);
    return NULL;
}

static cek_status worker_start(cek__conductor *c, cek__station *s, bool computes, bool exchanges)
{
    worker *w = &c->workers[c->worker_count];
    int error;

    *w = (worker){ .conductor = c, .station = s, .computes = computes, .exchanges = exchanges };
    cek__cond_init(&w->work);
    c->worker_count++;
    if (cek__gate_is_needed(s->device))
        return cek__gate_start(s->device, worker_run, w, &w->gate);
    error = cek__thread_start(&w->thread, worker_main, w);
    w->started = error == 0;
    return error ? cek__fail_errno(CEK_OUT_OF_MEMORY, error, "%s: thread of the device", cek_device_name(s->device))
                 : CEK_OK;
}

static cek_status workers_start(cek__conductor *c)
{
    cek_status st;

    CEK_TRY(cek__calloc(2 * c->devices, sizeof *c->workers, &c->workers));
    for (size_t i = 0; i < c->devices && c->devices > 1; i++) {
        cek__station *s = &c->stations[i];
        CEK_TRY(worker_start(c, s, true, s->at_once));
        if (!s->at_once)
            CEK_TRY(worker_start(c, s, false, true));
    }
    return CEK_OK;
out:
    return st;
}

/* Waits for news. Meanwhile threads of devices that work beside the host are looked at: what one does in a call that
 * does not return ends here, with the loss of the device. */
static void await_news(cek__conductor *c)
{
    uint64_t slice = UINT64_MAX;

    for (size_t i = 0; i < c->worker_count; i++)
        if (c->workers[i].gate != NULL && cek__gate_slice(c->workers[i].station->device) < slice)
            slice = cek__gate_slice(c->workers[i].station->device);
    if (slice == UINT64_MAX) {
        pthread_cond_wait(&c->told, &c->lock);
        return;
    }
    if (cek__cond_wait(&c->told, &c->lock, slice))
        return;
    for (size_t i = 0; i < c->worker_count; i++) {
        worker *w = &c->workers[i];
        if (w->gate == NULL || !cek__gate_watch(w->gate))
            continue;
        w->gate = NULL;
        c->busy -= w->acts;
        fail(c, CEK_DEVICE_LOST);
    }
}

/* A lone device: everything that can be queued is. */
static void serve_alone(cek__conductor *c)
{
    while (c->failure == CEK_OK && (exchange_one(c, &c->stations[0]) || compute_one(c, &c->stations[0])))
        ;
}

static cek_status serve_job(void *user)
{
    cek__conductor *c = user;

    pthread_mutex_lock(&c->lock);
    serve_alone(c);
    pthread_mutex_unlock(&c->lock);
    return CEK_OK;
}

/* Runs a job of a lone device on its thread, the lock given up. Nobody acts any more where that was left. */
static void on_its_thread(cek__conductor *c, cek__crew_job job)
{
    cek_status st;

    pthread_mutex_unlock(&c->lock);
    st = cek__crew_call(c->crew, c->stations[0].device, job, c);
    pthread_mutex_lock(&c->lock);
    if (st == CEK_OK)
        return;
    c->busy = 0;
    fail(c, st);
}

static void serve(cek__conductor *c)
{
    if (cek__replica_is_inline(c->stations[0].replica))
        serve_alone(c);
    else
        on_its_thread(c, serve_job);
}

/* ---- steps ---- */

static cek_status failure_again(const cek__conductor *c)
{
    return c->failure == CEK_OK ? CEK_OK : cek__fail(c->failure, "%s", c->failure_text);
}

static cek_status drain_job(void *station)
{
    return cek__station_drain(station);
}

static cek_status drain(cek__conductor *c, cek__station *s)
{
    return cek__crew_call(c->crew, s->device, drain_job, s);
}

/* After a failure: no thread is inside a device any more, and no device that still answers reads the caller's samples. */
static cek_status give_up(cek__conductor *c)
{
    while (c->busy > 0)
        await_news(c);
    pthread_mutex_unlock(&c->lock);
    for (size_t i = 0; i < c->devices; i++)
        (void)!drain(c, &c->stations[i]);
    pthread_mutex_lock(&c->lock);
    return failure_again(c);
}

cek_status cek__conductor_submit(cek__conductor *c, const cek__share *shares, const cek_step_block *block, bool lent)
{
    cek_status st = CEK_OK;

    pthread_mutex_lock(&c->lock);
    CEK_TRY(failure_again(c));
    if (cek__order_uncollected(c->order) == c->stations[0].depth)
        CEK_FAIL(CEK_NOT_READY, "%zu steps are submitted and not collected", c->stations[0].depth);
    pthread_mutex_unlock(&c->lock); /* nobody looks at the next step's places yet, and a batch may be large */
    for (size_t i = 0; i < c->devices; i++) {
        c->present[i] = shares[i].rows > 0;
        cek__station_take_share(&c->stations[i], c->submitted + 1, &shares[i], block,
                                lent && cek__replica_is_inline(c->stations[i].replica));
    }
    pthread_mutex_lock(&c->lock);
    c->submitted++;
    (void)cek__order_submit(c->order, c->present);
    wake(c);
    if (c->worker_count == 0)
        serve(c);
    if (c->failure != CEK_OK)
        st = give_up(c);
out:
    pthread_mutex_unlock(&c->lock);
    return st;
}

static cek_status counted_job(void *user)
{
    const cek__conductor *c = user;

    return cek__replica_await(cek__station_job(&c->stations[0], c->collected + 1)->counted);
}

/* A lone device that works beside the host: nobody else looks. */
static void wait_alone(cek__conductor *c)
{
    if (c->worker_count == 0 && c->failure == CEK_OK && c->collected < c->submitted &&
        !cek__replica_is_inline(c->stations[0].replica))
        on_its_thread(c, counted_job);
}

cek_status cek__conductor_collect(cek__conductor *c, double *loss, int64_t *correct)
{
    cek_status st = CEK_OK;

    *loss = 0;
    *correct = 0;
    pthread_mutex_lock(&c->lock);
    wait_alone(c);
    while (c->failure == CEK_OK && !cek__order_collect(c->order))
        await_news(c);
    if (c->failure != CEK_OK) {
        st = give_up(c);
        goto out;
    }
    c->collected++;
    for (size_t i = 0; i < c->devices; i++) {
        const cek__step_job *job = cek__station_job(&c->stations[i], c->collected);
        double part;
        int64_t right;
        if (job->share.rows == 0)
            continue;
        cek__replica_read_tally(c->stations[i].replica, job->tally, &part, &right);
        *loss += part;
        *correct += right;
    }
out:
    pthread_mutex_unlock(&c->lock);
    return st;
}

typedef struct times {
    const cek__meter *meter;
    int64_t step;
    double busy, period;
} times;

static cek_status times_read(void *user)
{
    times *t = user;

    cek__meter_read(t->meter, t->step, &t->busy, &t->period);
    return CEK_OK;
}

void cek__conductor_times(cek__conductor *c, double *seconds, double *period)
{
    size_t count = 0;

    *period = 0;
    for (size_t i = 0; i < c->devices; i++) {
        const cek__station *s = &c->stations[i];
        times t = { .meter = s->meter, .step = c->collected };
        if (cek__station_job(s, c->collected)->share.rows == 0 ||
            cek__crew_call(c->crew, s->device, times_read, &t) != CEK_OK)
            t.busy = t.period = 0;
        seconds[i] = t.busy;
        *period += t.period;
        count += t.period > 0;
    }
    *period /= count > 0 ? (double)count : 1;
}

cek__shard_optimizer *cek__conductor_optimizer(cek__conductor *c, size_t shard, cek_stream **stream)
{
    const cek__station *owner = &c->stations[c->shards->list[shard].owner];

    *stream = cek__replica_stream(owner->replica);
    return owner->optimizers[shard];
}

size_t cek__conductor_uncollected(const cek__conductor *c)
{
    return (size_t)(c->submitted - c->collected);
}

static bool is_quiet(const cek__conductor *c)
{
    bool quiet = c->busy == 0;

    for (size_t i = 0; i < c->devices; i++)
        quiet = quiet && !under_way(&c->stations[i]);
    return quiet;
}

cek_status cek__conductor_settle(cek__conductor *c)
{
    cek_status st;

    pthread_mutex_lock(&c->lock);
    while (c->failure == CEK_OK && !(cek__order_settled(c->order) && is_quiet(c)))
        await_news(c);
    st = c->failure == CEK_OK ? CEK_OK : give_up(c);
    pthread_mutex_unlock(&c->lock);
    return st;
}

/* ---- life ---- */

uint64_t cek__conductor_bytes(const cek__conductor_options *o, size_t index)
{
    return cek__station_bytes(o, index);
}

typedef struct making {
    const cek__conductor_options *options;
    cek__conductor *conductor;
    size_t index; /* of a device */
} making;

static cek_status exchange_make(void *user)
{
    const making *m = user;

    return cek__exchange_create(m->options->shards, m->options->replicas, CREDITS, &m->conductor->exchange);
}

static cek_status station_make(void *user)
{
    const making *m = user;
    cek__conductor *c = m->conductor;

    return cek__station_create(m->options, c->exchange, m->index, &c->stations[m->index]);
}

cek_status cek__conductor_create(const cek__conductor_options *o, cek__conductor **out)
{
    cek_status st;
    cek__conductor *c = NULL;
    cek__order_options order = {
        .shards = o->shards, .depth = o->depth, .credits = CREDITS, .verdict = o->max_norm > 0
    };

    making m = { .options = o };

    *out = NULL;
    CEK_TRY(cek__calloc(1, sizeof *c, &c));
    m.conductor = c;
    c->crew = o->crew;
    c->shards = o->shards;
    c->devices = o->shards->devices;
    c->max_norm = o->max_norm;
    pthread_mutex_init(&c->lock, NULL);
    cek__cond_init(&c->told);
    CEK_TRY(cek__calloc(c->devices, sizeof *c->present, &c->present));
    CEK_TRY(cek__calloc(c->devices, sizeof *c->stations, &c->stations));
    CEK_TRY(cek__crew_call_any(c->crew, exchange_make, &m));
    for (m.index = 0; m.index < c->devices; m.index++)
        CEK_TRY(cek__crew_call(c->crew, cek__replica_device(o->replicas[m.index]), station_make, &m));
    order.reaches = cek__exchange_reaches(c->exchange);
    order.segments = cek__replica_forward_count(o->replicas[0], &order.reads);
    CEK_TRY(cek__order_create(&order, &c->order));
    CEK_TRY(workers_start(c));
    *out = c;
    return CEK_OK;
out:
    cek__conductor_free(c);
    return st;
}

/* Each may still wake all others, so none goes before the last has ended. */
static void workers_stop(cek__conductor *c)
{
    pthread_mutex_lock(&c->lock);
    c->closing = true;
    wake(c);
    pthread_mutex_unlock(&c->lock);
    for (size_t i = 0; i < c->worker_count; i++)
        if (c->workers[i].started)
            pthread_join(c->workers[i].thread, NULL);
        else if (c->workers[i].gate != NULL)
            cek__gate_join(c->workers[i].gate);
    for (size_t i = 0; i < c->worker_count; i++)
        pthread_cond_destroy(&c->workers[i].work);
    free(c->workers);
}

typedef struct closing {
    cek__station *station;
    cek__exchange *exchange;
    bool idle; /* nothing is under way anywhere */
} closing;

static cek_status station_close(void *user)
{
    const closing *o = user;

    cek__station_close(o->station, o->idle);
    return CEK_OK;
}

static cek_status exchange_close(void *user)
{
    const closing *o = user;

    cek__exchange_free(o->exchange, o->idle);
    return CEK_OK;
}

/* What hangs on a device in which a thread was left is left to that thread: false. */
static bool rooms_close(cek__conductor *c)
{
    closing o = { .exchange = c->exchange, .idle = true };
    bool all = true;

    for (size_t i = 0; i < c->devices; i++)
        if (c->stations[i].replica != NULL)
            o.idle = drain(c, &c->stations[i]) == CEK_OK && o.idle;
    for (size_t i = 0; i < c->devices; i++) {
        o.station = &c->stations[i];
        if (o.station->replica != NULL)
            all = !cek__gate_is_occupied(o.station->device) &&
                  cek__crew_call(c->crew, o.station->device, station_close, &o) == CEK_OK && all;
    }
    if (!all || cek__crew_call_any(c->crew, exchange_close, &o) != CEK_OK)
        cek__abandon(c->exchange);
    return all;
}

void cek__conductor_free(cek__conductor *c)
{
    bool all = true;

    if (c == NULL)
        return;
    workers_stop(c);
    if (c->stations != NULL)
        all = rooms_close(c);
    cek__order_free(c->order);
    pthread_cond_destroy(&c->told);
    pthread_mutex_destroy(&c->lock);
    if (all)
        free(c->stations);
    else
        cek__abandon(c->stations);
    free(c->present);
    free(c);
}
