/* SPDX-License-Identifier: MIT
 *
 * event.c - events of queues that execute at once: a record has happened when it returns.
 *
 * An event may be recorded by one thread and queried by another, so its lock guards all but the device.
 */
#include <stdlib.h>
#include <time.h>

#include "backends/common/command.h"
#include "backends/host/host.h"

cek_status cek__host_event_create(cek_dev *dev, const cek_event_desc *desc, cek_event **out)
{
    const cek_host *host = &dev->instance->host;
    bool timing;
    *out = NULL;
    cek_status st = cek__host_ready(dev, "event_create");
    if (!st)
        st = cek__event_desc_in(host, desc, &timing);
    if (st)
        return st;
    cek_event *event = calloc(1, sizeof *event);
    if (!event)
        return cek__host_fail(host, CEK_OUT_OF_MEMORY, "event_create: no memory for the handle");
    event->dev = dev;
    event->timing = timing;
    pthread_mutex_init(&event->lock, NULL);
    *out = event;
    return CEK_OK;
}

void cek__host_event_destroy(cek_event *event)
{
    if (!event)
        return;
    pthread_mutex_destroy(&event->lock);
    free(event);
}

cek_status cek__host_event_record(cek_queue *queue, cek_event *event)
{
    const cek_host *host = &queue->dev->instance->host;
    struct timespec now;
    if (!event || event->dev != queue->dev)
        return cek__host_fail(host, CEK_INVALID, "event_record: the event is of another device");
    clock_gettime(CLOCK_MONOTONIC, &now);
    pthread_mutex_lock(&event->lock);
    event->recorded = true;
    event->timed = queue->timing;
    event->failure = queue->failure;
    event->time_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    pthread_mutex_unlock(&event->lock);
    /* In a failed queue the event has failed too, so that nobody takes an older record for this one. */
    return cek__host_queue_ready(queue, "event_record");
}

/* What an event says of itself, read under its lock. */
typedef struct record {
    bool timing, recorded, timed;
    uint64_t time_ns;
    cek__failure failure;
} record;

/* The latest record. CEK_DEVICE_LOST, or CEK_INVALID if there is none; a failure of the recorded
 * work is not one of this. */
static cek_status record_read(cek_event *event, const char *call, record *out)
{
    cek_status st = cek__host_ready(event->dev, call);
    if (st)
        return st;
    pthread_mutex_lock(&event->lock);
    *out = (record){ event->timing, event->recorded, event->timed, event->time_ns, event->failure };
    pthread_mutex_unlock(&event->lock);
    if (!out->recorded)
        return cek__host_fail(&event->dev->instance->host, CEK_INVALID, "%s: the event was never recorded", call);
    return CEK_OK;
}

cek_status cek__host_event_wait(cek_queue *queue, cek_event *event)
{
    const cek_host *host = &queue->dev->instance->host;
    record latest;
    cek_status st = cek__host_queue_ready(queue, "event_wait");
    if (!st && !event)
        st = cek__host_fail(host, CEK_INVALID, "event_wait: no event");
    else if (!st && event->dev != queue->dev)
        st = cek__host_fail(host, CEK_UNSUPPORTED, "event_wait: the event is of another device");
    if (!st)
        st = record_read(event, "event_wait", &latest);
    if (!st)
        cek__failure_inherit(&queue->failure, &latest.failure);
    return st;
}

cek_status cek__host_event_query(cek_event *event)
{
    record latest;
    cek_status st = record_read(event, "event_query", &latest);
    return st ? st : latest.failure.status;
}

cek_status cek__host_event_sync(cek_event *event, uint64_t timeout_ns)
{
    record latest;
    (void)timeout_ns; /* the record has happened */
    cek_status st = record_read(event, "event_sync", &latest);
    return st ? st : latest.failure.status;
}

cek_status cek__host_event_status(cek_event *event, char *text, uint64_t cap)
{
    record latest;
    if (cek__host_device_status(event->dev, text, cap))
        return CEK_DEVICE_LOST;
    cek_status st = record_read(event, "event_status", &latest);
    if (!st)
        cek__text_out(text, cap, latest.failure.text);
    return st ? st : latest.failure.status;
}

cek_status cek__host_event_elapsed(cek_event *start, cek_event *end, uint64_t *ns)
{
    const cek_host *host = &end->dev->instance->host;
    record from, to;
    *ns = 0;
    cek_status st = record_read(start, "event_elapsed", &from);
    if (!st)
        st = record_read(end, "event_elapsed", &to);
    if (st || from.failure.status || to.failure.status)
        return st ? st : from.failure.status ? from.failure.status : to.failure.status;
    if (!from.timing || !to.timing)
        return cek__host_fail(host, CEK_INVALID, "event_elapsed: an event without CEK_EVENT_TIMING");
    if (!from.timed || !to.timed)
        return cek__host_fail(host, CEK_UNSUPPORTED, "event_elapsed: recorded in a queue without CEK_QUEUE_TIMING");
    if (start->dev != end->dev || to.time_ns < from.time_ns)
        return cek__host_fail(host, CEK_INVALID, "event_elapsed: the end is %s",
                              start->dev != end->dev ? "of another device" : "before the start");
    *ns = to.time_ns - from.time_ns;
    return CEK_OK;
}
