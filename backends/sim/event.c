/* SPDX-License-Identifier: MIT
 *
 * event.c - events of simulated devices: the inner ones, with what the queue knew at the latest
 * record and those do not: its failure, that it hangs; and a mark on the clock, before which they have not happened.
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
    cek__sim_release_pass(event->dev, CEK__SIM_event_destroy);
    event->dev->instance->plugin.event_destroy(event->inner);
    if (event->mark)
        cek__clock_forget(event->dev->instance->clock, &event->mark);
    pthread_mutex_destroy(&event->lock);
    free(event);
}

/* The latest record, as the queue was then. */
typedef struct record {
    bool is_there, timed, hangs;
    cek__failure failure;
} record;

static record record_read(cek_event *event)
{
    pthread_mutex_lock(&event->lock);
    record latest = { event->recorded, event->timed, event->hangs, event->failure };
    pthread_mutex_unlock(&event->lock);
    return latest;
}

/* Whether the mark has happened, as far as the host may know, and when. */
static bool passed(cek_event *event, uint64_t *ns)
{
    cek__clock *clock = event->dev->instance->clock;
    *ns = 0;
    return !clock || cek__clock_ask(clock, &event->mark, ns);
}

/* Leaves what is left of the time-out. */
static cek_status wait_for_mark(cek_event *event, uint64_t *timeout_ns)
{
    cek__clock *clock = event->dev->instance->clock;
    cek_status st = clock ? cek__clock_sync(clock, &event->mark, timeout_ns, &cek__sim_state(event->dev)->lost)
                          : CEK_OK;
    return !st || st == CEK_DEVICE_LOST ? cek__sim_lost(event->dev, "event_sync") : st;
}

static cek_status mark_set(cek_queue *queue, cek_event *event)
{
    cek_instance *instance = queue->dev->instance;
    if (!queue->line)
        return CEK_OK;
    if (!cek__clock_mark(instance->clock, queue->line, &event->mark))
        return cek__host_fail(&instance->host, CEK_OUT_OF_MEMORY, "event_record: no memory for the clock");
    return CEK_OK;
}

/* Late, the inner queue does nothing before its time, and this is in front of the mark. */
static cek_status inner_record(cek_queue *queue, cek_event *event)
{
    if (queue->dev->instance->work != CEK__SIM_WORK_LATE)
        return INNER(queue->dev, event_record, queue->inner, event->inner);
    cek_status st = cek__sim_do(queue, &(cek__sim_work){ .call = CEK__SIM_event_record, .event = event->inner });
    return st ? st : cek__sim_work_follow(queue);
}

cek_status cek__sim_event_record(cek_queue *queue, cek_event *event)
{
    cek_status st;
    bool goes_on = cek__sim_queue_pass(queue, CEK__SIM_event_record, &st);
    if (!goes_on && !queue->failure.status && !queue->hangs)
        return st;
    if (goes_on)
        st = inner_record(queue, event);
    if (goes_on && !st)
        st = mark_set(queue, event);
    if (goes_on && st)
        return st;
    pthread_mutex_lock(&event->lock);
    event->recorded = true;
    event->timed = queue->timing;
    event->hangs = queue->hangs;
    event->failure = queue->failure;
    pthread_mutex_unlock(&event->lock);
    return st;
}

/* Late, the clock's order is all there is, and the inner plugin is not asked. */
static cek_status inner_wait(cek_queue *queue, cek_event *event, const record *latest)
{
    const cek_host *host = &queue->dev->instance->host;
    if (queue->dev->instance->work != CEK__SIM_WORK_LATE)
        return INNER(queue->dev, event_wait, queue->inner, event->inner);
    if (event->dev != queue->dev)
        return cek__host_fail(host, CEK_UNSUPPORTED, "event_wait: the event is of another device");
    if (!latest->is_there)
        return cek__host_fail(host, CEK_INVALID, "event_wait: the event was never recorded");
    return CEK_OK;
}

cek_status cek__sim_event_wait(cek_queue *queue, cek_event *event)
{
    cek_status st;
    const cek_instance *instance = queue->dev->instance;
    if (!cek__sim_queue_pass(queue, CEK__SIM_event_wait, &st))
        return st;
    record latest = { .failure = { .status = CEK_OK } };
    if (event->dev == queue->dev)
        latest = record_read(event);
    cek__failure_inherit(&queue->failure, &latest.failure);
    queue->hangs = queue->hangs || latest.hangs;
    if (latest.failure.status || latest.hangs)
        return CEK_OK;
    st = inner_wait(queue, event, &latest);
    if (!st && queue->line && !cek__clock_wait(instance->clock, queue->line, &event->mark))
        st = cek__host_fail(&instance->host, CEK_OUT_OF_MEMORY, "event_wait: no memory for the clock");
    return st;
}

/* Whether the record has happened, on the clock and in the inner plugin; and when, on the clock. */
static cek_status happened(cek_event *event, uint64_t *ns)
{
    record latest = record_read(event);
    *ns = 0;
    if (latest.failure.status || latest.hangs)
        return latest.failure.status ? latest.failure.status : CEK_NOT_READY;
    return passed(event, ns) ? INNER(event->dev, event_query, event->inner) : CEK_NOT_READY;
}

cek_status cek__sim_event_query(cek_event *event)
{
    uint64_t ns;
    cek_status st = cek__sim_pass(event->dev, CEK__SIM_event_query);
    return st ? st : happened(event, &ns);
}

cek_status cek__sim_event_sync(cek_event *event, uint64_t timeout_ns)
{
    cek_status st;
    record latest = record_read(event);
    if (latest.failure.status && !cek__sim_latch_status(event->dev, NULL, 0))
        return latest.failure.status;
    if (!cek__sim_wait_pass(event->dev, CEK__SIM_event_sync, latest.hangs, timeout_ns, &st))
        return st;
    st = wait_for_mark(event, &timeout_ns);
    return st ? st : INNER(event->dev, event_sync, event->inner, timeout_ns);
}

cek_status cek__sim_event_status(cek_event *event, char *text, uint64_t cap)
{
    uint64_t ns;
    if (cek__sim_latch_status(event->dev, text, cap))
        return CEK_DEVICE_LOST;
    record latest = record_read(event);
    cek__text_out(text, cap, latest.failure.text);
    if (latest.failure.status || latest.hangs)
        return latest.failure.status ? latest.failure.status : CEK_NOT_READY;
    return passed(event, &ns) ? INNER(event->dev, event_status, event->inner, text, cap) : CEK_NOT_READY;
}

cek_status cek__sim_event_elapsed(cek_event *start, cek_event *end, uint64_t *ns)
{
    const cek_host *host = &end->dev->instance->host;
    uint64_t from_ns, to_ns;
    *ns = 0;
    cek_status st = cek__sim_pass(end->dev, CEK__SIM_event_elapsed);
    if (st || (st = happened(start, &from_ns)) || (st = happened(end, &to_ns)))
        return st;
    if (!end->dev->instance->clock)
        return INNER(end->dev, event_elapsed, start->inner, end->inner, ns);
    if (!start->timing || !end->timing)
        return cek__host_fail(host, CEK_INVALID, "event_elapsed: an event without CEK_EVENT_TIMING");
    if (!record_read(start).timed || !record_read(end).timed)
        return cek__host_fail(host, CEK_UNSUPPORTED, "event_elapsed: recorded in a queue without CEK_QUEUE_TIMING");
    if (start->dev != end->dev || to_ns < from_ns)
        return cek__host_fail(host, CEK_INVALID, "event_elapsed: the end is %s",
                              start->dev != end->dev ? "of another device" : "before the start");
    *ns = to_ns - from_ns;
    return CEK_OK;
}
