/* conductor_threads.c - the threads of devices, and who waits for them (see conductor_inside.h). */
#include <stdlib.h>

#include "core/base/alloc.h"
#include "core/base/status.h"
#include "core/base/thread.h"
#include "core/base/trace.h"
#include "nn/train/conductor_inside.h"

/* Between two looks at what is under way: a tenth of what a step of a small model takes. */
enum { LOOK_NS = 50 * 1000, LATER_LOOK_NS = 1000 * 1000, LATER_NS = 50 * 1000 * 1000 };
/* So long, in looks of who waits at a gate, nothing of a device has ended: it is waited for in its driver, which knows
 * when it hangs. Not before: in there nobody hears what other devices have finished meanwhile. */
enum { SILENT_SLICES = 4 };

/* ---- a thread ---- */

/* A device that has been silent is waited for in its driver, with the deadline of all waits. */
static void wait_for_device(cek__conductor *c, cek__station *s)
{
    cek_status st;
    cek_marker *marker = cek__station_oldest(s);

    pthread_mutex_unlock(&c->lock);
    st = cek__replica_await(marker);
    pthread_mutex_lock(&c->lock);
    if (st != CEK_OK)
        cek__conductor_fail(c, st);
}

/* Until there is news, or it is time to look again: the longer nothing has ended, the seldomer. How long
 * it was silent. */
static uint64_t look_later(cek__conductor *c, worker *w, uint64_t silent_ns)
{
    uint64_t ns = silent_ns < LATER_NS ? LOOK_NS : LATER_LOOK_NS;

    return cek__cond_wait(&w->work, &c->lock, ns) ? 0 : ns;
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
            did = cek__conductor_flights_land(c, s) || did;
            did = cek__conductor_milestones_pass(c, s) || did;
            w->acts = true;
            did = cek__conductor_exchange_one(c, s) || did;
        }
        w->acts = true;
        if (w->computes && !did && c->failure == CEK_OK)
            did = cek__conductor_compute_one(c, s);
        w->acts = false;
        if (did || !cek__station_under_way(s))
            silent_ns = 0;
        if (did)
            continue;
        if (!w->exchanges || c->failure != CEK_OK || !cek__station_under_way(s))
            pthread_cond_wait(&w->work, &c->lock);
        else if (silent_ns < SILENT_SLICES * cek__gate_slice(s->device))
            silent_ns += look_later(c, w, silent_ns);
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

cek_status cek__conductor_threads_start(cek__conductor *c)
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

/* Until the caller hears something, or a slice has passed. */
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
        cek__conductor_fail(c, CEK_DEVICE_LOST);
    }
}

void cek__conductor_await(cek__conductor *c, cek__conductor_fact *fact)
{
    c->awaited = fact;
    while (!fact(c))
        await_news(c);
    c->awaited = NULL;
}

/* A lone device: everything that can be queued is. */
static void serve_alone(cek__conductor *c)
{
    while (c->failure == CEK_OK &&
           (cek__conductor_exchange_one(c, &c->stations[0]) || cek__conductor_compute_one(c, &c->stations[0])))
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

void cek__conductor_on_its_thread(cek__conductor *c, cek__crew_job job)
{
    cek_status st;

    pthread_mutex_unlock(&c->lock);
    st = cek__crew_call(c->crew, c->stations[0].device, job, c);
    pthread_mutex_lock(&c->lock);
    if (st == CEK_OK)
        return;
    c->busy = 0;
    cek__conductor_fail(c, st);
}

void cek__conductor_serve(cek__conductor *c)
{
    if (cek__replica_is_inline(c->stations[0].replica))
        serve_alone(c);
    else
        cek__conductor_on_its_thread(c, serve_job);
}

/* Each may still wake all others, so none goes before the last has ended. */
void cek__conductor_threads_stop(cek__conductor *c)
{
    pthread_mutex_lock(&c->lock);
    c->closing = true;
    cek__conductor_wake(c);
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
