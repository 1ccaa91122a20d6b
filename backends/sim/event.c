/* SPDX-License-Identifier: MIT
 *
 * event.c - events of simulated devices: the inner ones, with what the queue knew at the latest
 * record and those do not: its failure, that it hangs, its virtual time.
 */
#include <stdlib.h>

#include "backends/common/growth.h"
#include "backends/sim/sim.h"

cek_status cek__sim_event_create(cek_dev *dev, const cek_event_desc *desc, cek_event **out)
{
    cek_event_desc want = { .size = sizeof want };
    cek_status st = cek__sim_wrapper_make(dev, CEK__SIM_event_create, sizeof **out, out);
    if (st)
        return st;
    if (desc)
        st = cek__struct_in(&dev->instance->host, "event_create: descriptor", desc, &want, sizeof want);
    if (!st)
        st = INNER(dev, event_create, dev->inner, desc, &(*out)->inner);
    (*out)->timing = want.flags & CEK_EVENT_TIMING;
    st = cek__sim_wrapper_done(*out, st, out);
    if (!st)
        pthread_mutex_init(&(*out)->lock, NULL);
    return st;
}

void cek__sim_event_destroy(cek_event *event)
{
    if (!event)
        return;
    event->dev->instance->plugin.event_destroy(event->inner);
    pthread_mutex_destroy(&event->lock);
    free(event);
}

/* The latest record, as the queue was then. */
typedef struct record {
    bool timed, hangs;
    uint64_t time_ns;
    cek__failure failure;
} record;

static record record_read(cek_event *event)
{
    pthread_mutex_lock(&event->lock);
    record latest = { event->timed, event->hangs, event->time_ns, event->failure };
    pthread_mutex_unlock(&event->lock);
    return latest;
}

cek_status cek__sim_event_record(cek_queue *queue, cek_event *event)
{
    cek_status st;
    bool goes_on = cek__sim_queue_pass(queue, CEK__SIM_event_record, &st);
    if (!goes_on && !queue->failure.status && !queue->hangs)
        return st;
    if (goes_on)
        st = cek__sim_advance(queue, INNER(queue->dev, event_record, queue->inner, event->inner), 0);
    if (goes_on && st)
        return st;
    pthread_mutex_lock(&event->lock);
    event->timed = queue->timing;
    event->hangs = queue->hangs;
    event->time_ns = queue->time_ns;
    event->failure = queue->failure;
    pthread_mutex_unlock(&event->lock);
    return st;
}

cek_status cek__sim_event_wait(cek_queue *queue, cek_event *event)
{
    cek_status st;
    if (!cek__sim_queue_pass(queue, CEK__SIM_event_wait, &st))
        return st;
    if (!event)
        return cek__host_fail(&queue->dev->instance->host, CEK_INVALID, "event_wait: no event");
    record latest = { .failure = { .status = CEK_OK } };
    if (event->dev == queue->dev)
        latest = record_read(event);
    cek__failure_inherit(&queue->failure, &latest.failure);
    queue->hangs = queue->hangs || latest.hangs;
    if (latest.failure.status || latest.hangs)
        return CEK_OK;
    st = INNER(queue->dev, event_wait, queue->inner, event->inner);
    if (!st)
        cek__sim_not_before(queue, latest.time_ns);
    return st;
}

cek_status cek__sim_event_query(cek_event *event)
{
    cek_status st = cek__sim_pass(event->dev, CEK__SIM_event_query);
    if (st)
        return st;
    record latest = record_read(event);
    if (latest.failure.status || latest.hangs)
        return latest.failure.status ? latest.failure.status : CEK_NOT_READY;
    st = INNER(event->dev, event_query, event->inner);
    if (!st)
        cek__sim_host_saw(event->dev->instance, latest.time_ns);
    return st;
}

cek_status cek__sim_event_sync(cek_event *event, uint64_t timeout_ns)
{
    cek_status st;
    record latest = record_read(event);
    if (latest.failure.status && !cek__sim_latch_status(event->dev, NULL, 0))
        return latest.failure.status;
    if (!cek__sim_wait_pass(event->dev, CEK__SIM_event_sync, latest.hangs, timeout_ns, &st))
        return st;
    st = INNER(event->dev, event_sync, event->inner, timeout_ns);
    if (!st)
        cek__sim_host_saw(event->dev->instance, latest.time_ns);
    return st;
}

cek_status cek__sim_event_status(cek_event *event, char *text, uint64_t cap)
{
    if (cek__sim_latch_status(event->dev, text, cap))
        return CEK_DEVICE_LOST;
    record latest = record_read(event);
    cek__text_out(text, cap, latest.failure.text);
    if (latest.failure.status || latest.hangs)
        return latest.failure.status ? latest.failure.status : CEK_NOT_READY;
    return INNER(event->dev, event_status, event->inner, text, cap);
}

/* Whether the record has happened: the inner plugin knows. */
static cek_status happened(cek_event *event, const record *latest)
{
    if (latest->failure.status || latest->hangs)
        return latest->failure.status ? latest->failure.status : CEK_NOT_READY;
    return INNER(event->dev, event_query, event->inner);
}

cek_status cek__sim_event_elapsed(cek_event *start, cek_event *end, uint64_t *ns)
{
    const cek_host *host = &end->dev->instance->host;
    *ns = 0;
    cek_status st = cek__sim_pass(end->dev, CEK__SIM_event_elapsed);
    if (st)
        return st;
    record from = record_read(start), to = record_read(end);
    if ((st = happened(start, &from)) || (st = happened(end, &to)))
        return st;
    if (!start->timing || !end->timing)
        return cek__host_fail(host, CEK_INVALID, "event_elapsed: an event without CEK_EVENT_TIMING");
    if (!from.timed || !to.timed)
        return cek__host_fail(host, CEK_UNSUPPORTED, "event_elapsed: recorded in a queue without CEK_QUEUE_TIMING");
    if (start->dev != end->dev || to.time_ns < from.time_ns)
        return cek__host_fail(host, CEK_INVALID, "event_elapsed: the end is %s",
                              start->dev != end->dev ? "of another device" : "before the start");
    *ns = to.time_ns - from.time_ns;
    return CEK_OK;
}
