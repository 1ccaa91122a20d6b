/* conductor.c - steps in, results out, life (see conductor.h and conductor_inside.h). */
#include "nn/train/conductor.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/status.h"
#include "core/base/thread.h"
#include "nn/train/conductor_inside.h"

/* Fetches under way between two devices, and sends of one. A place is taken while its shard leaves and while it
 * arrives, so two keep a link busy if nobody is ever late; with four, of half the size, a step that the exchange holds
 * up is a tenth shorter. */
enum { CREDITS = 4 };

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

static bool nobody_acts(const cek__conductor *c)
{
    return c->busy == 0;
}

/* After a failure: no thread is inside a device any more, and no device that still answers reads
 * the caller's samples. */
static cek_status give_up(cek__conductor *c)
{
    cek__conductor_await(c, nobody_acts);
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
        cek__station_job(&c->stations[i], c->submitted + 1)->apart = c->holds;
    }
    pthread_mutex_lock(&c->lock);
    c->submitted++;
    if (c->scaler != NULL)
        cek__scaler_submit(c->scaler);
    (void)cek__order_submit(c->order, c->present);
    cek__conductor_wake(c);
    if (c->worker_count == 0)
        cek__conductor_serve(c);
    if (c->failure != CEK_OK)
        st = give_up(c);
out:
    pthread_mutex_unlock(&c->lock);
    return st;
}

static cek_status counted_job(void *user)
{
    const cek__conductor *c = user;
    cek__station *s = &c->stations[0];
    cek_status st = cek__replica_await(cek__station_job(s, c->collected + 1)->counted);

    if (st == CEK_OK)
        cek__station_read_times(s, c->collected + 1);
    return st;
}

/* A lone device that works beside the host: nobody else looks. */
static void wait_alone(cek__conductor *c)
{
    if (c->worker_count == 0 && c->failure == CEK_OK && c->collected < c->submitted &&
        !cek__replica_is_inline(c->stations[0].replica))
        cek__conductor_on_its_thread(c, counted_job);
}

static bool has_result(const cek__conductor *c)
{
    return c->failure != CEK_OK || cek__order_has_result(c->order);
}

cek_status cek__conductor_collect(cek__conductor *c, double *loss, int64_t *correct)
{
    cek_status st = CEK_OK;

    *loss = 0;
    *correct = 0;
    pthread_mutex_lock(&c->lock);
    wait_alone(c);
    cek__conductor_await(c, has_result);
    if (c->failure != CEK_OK) {
        st = give_up(c);
        goto out;
    }
    (void)cek__order_collect(c->order);
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
        if (c->running)
            cek__running_add(c->running, job->tally + CEK__TALLY_BYTES, c->rules->layout->type,
                             cek__replica_runs(c->stations[i].replica, job->share.rows));
    }
out:
    pthread_mutex_unlock(&c->lock);
    return st;
}

void cek__conductor_times(cek__conductor *c, double *seconds, double *period)
{
    size_t count = 0;

    *period = 0;
    for (size_t i = 0; i < c->devices; i++) {
        const cek__step_job *job = cek__station_job(&c->stations[i], c->collected);
        bool present = job->share.rows > 0;
        seconds[i] = present ? job->seconds : 0;
        *period += present ? job->period : 0;
        count += present && job->period > 0;
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
    bool quiet = nobody_acts(c);

    for (size_t i = 0; i < c->devices; i++)
        quiet = quiet && !cek__station_under_way(&c->stations[i]);
    return quiet;
}

static bool is_settled(const cek__conductor *c)
{
    return c->failure != CEK_OK || (cek__order_settled(c->order) && is_quiet(c));
}

cek_status cek__conductor_settle(cek__conductor *c)
{
    cek_status st;

    pthread_mutex_lock(&c->lock);
    cek__conductor_await(c, is_settled);
    st = c->failure == CEK_OK ? CEK_OK : give_up(c);
    pthread_mutex_unlock(&c->lock);
    return st;
}

cek_status cek__conductor_finish(cek__conductor *c)
{
    cek_status st = cek__conductor_settle(c);

    for (size_t i = 0; st == CEK_OK && i < c->devices; i++)
        st = drain(c, &c->stations[i]);
    return st;
}

/* ---- a step that waits with its sums ---- */

void cek__conductor_hold(cek__conductor *c)
{
    pthread_mutex_lock(&c->lock);
    c->holds = true;
    cek__order_hold(c->order);
    pthread_mutex_unlock(&c->lock);
}

static bool has_sums(const cek__conductor *c)
{
    return c->failure != CEK_OK || (cek__order_holds(c->order) && is_quiet(c));
}

cek_status cek__conductor_await_sums(cek__conductor *c)
{
    cek_status st;

    pthread_mutex_lock(&c->lock);
    cek__conductor_await(c, has_sums);
    st = c->failure == CEK_OK ? CEK_OK : give_up(c);
    pthread_mutex_unlock(&c->lock);
    return st;
}

cek_status cek__conductor_release(cek__conductor *c, bool apply)
{
    cek_status st;

    pthread_mutex_lock(&c->lock);
    c->holds = false;
    for (size_t i = 0; i < c->devices; i++)
        cek__station_job(&c->stations[i], c->submitted)->discarded = !apply;
    cek__order_release(c->order);
    cek__conductor_wake(c);
    if (c->worker_count == 0)
        cek__conductor_serve(c);
    st = c->failure == CEK_OK ? CEK_OK : give_up(c);
    pthread_mutex_unlock(&c->lock);
    return st;
}

/* ---- life ---- */

cek_status cek__conductor_bytes(const cek__conductor_options *o, size_t index, uint64_t *out)
{
    return cek__station_bytes(o, index, out);
}

cek_status cek__conductor_room(const cek__conductor *c, size_t index, uint64_t *out)
{
    return cek__station_room(&c->stations[index], out);
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
        .shards = o->shards, .depth = o->depth, .credits = CREDITS, .verdict = cek__rules_judge(o->rules)
    };

    making m = { .options = o };

    *out = NULL;
    CEK_TRY(cek__calloc(1, sizeof *c, &c));
    m.conductor = c;
    c->crew = o->crew;
    c->shards = o->shards;
    c->devices = o->shards->devices;
    c->rules = o->rules;
    c->running = o->running;
    c->scaler = o->scaler;
    c->scaler_before = o->scaler != NULL ? o->scaler->submitted : 0;
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
    CEK_TRY(cek__conductor_threads_start(c));
    *out = c;
    return CEK_OK;
out:
    cek__conductor_free(c);
    return st;
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
            o.idle = cek__replica_drained(drain(c, &c->stations[i])) && o.idle;
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
    cek__conductor_threads_stop(c);
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
