/* SPDX-License-Identifier: MIT
 *
 * event.c - events: a position in a queue's ledger. Only timing needs an event of the driver's own, a marker beside the
 * queue.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/common/command.h"
#include "backends/opencl/opencl.h"

struct cek_event {
    opencl_dev *dev;
    pthread_mutex_t lock; /* of all that follows: record and query may come from two threads */
    bool timing;
    ledger *ledger; /* NULL: never recorded */
    uint64_t position;
    cl_event marker; /* of a record in a queue with CEK_QUEUE_TIMING */
};

cek_status cek__opencl_event_create(cek_dev *dev, const cek_event_desc *desc, cek_event **out)
{
    const cek_host *host = &dev->instance->host;
    bool timing;
    *out = NULL;
    cek_status st = cek__gpu_ready(dev, "event_create");
    if (!st)
        st = cek__event_desc_in(host, desc, &timing);
    if (st)
        return st;
    cek_event *event = calloc(1, sizeof *event);
    if (!event)
        return cek__host_fail(host, CEK_OUT_OF_MEMORY, "event_create: no memory for the handle");
    event->dev = (opencl_dev *)dev;
    event->timing = timing;
    pthread_mutex_init(&event->lock, NULL);
    *out = event;
    return CEK_OK;
}

static void record_drop(ledger *of, cl_event marker)
{
    cek__ledger_release(of);
    if (marker)
        clReleaseEvent(marker);
}

void cek__opencl_event_destroy(cek_event *event)
{
    if (!event)
        return;
    record_drop(event->ledger, event->marker);
    pthread_mutex_destroy(&event->lock);
    free(event);
}

cek_status cek__opencl_event_record(cek_queue *queue, cek_event *event)
{
    const cek_host *host = &queue->dev->head.instance->host;
    cl_event marker = NULL;
    if (!event || event->dev != queue->dev)
        return cek__host_fail(host, CEK_INVALID, "event_record: the event is of another device");
    cek_status st = cek__opencl_queue_ready(queue, "event_record");
    if (st && !cek__ledger_failure(queue->ledger, NULL))
        return st;
    if (!st && event->timing && queue->timing) {
        st = cek__opencl_queue_clock(queue, "event_record", &marker);
        if (st)
            return st;
        clRetainEvent(marker);
        cek__ledger_add(queue->ledger, marker, "event_record", NULL);
    }
    if (!st) /* whoever polls finds it on its way; a failure shows at the command's own event */
        (void)cek__opencl_queue_flush(queue);
    ledger *now = cek__ledger_share(queue->ledger);
    uint64_t position = cek__ledger_end(now);
    pthread_mutex_lock(&event->lock);
    ledger *before = event->ledger;
    cl_event marker_before = event->marker;
    event->ledger = now;
    event->marker = marker;
    /* In a failed queue the event has failed too, so that nobody takes an older record for this one. */
    event->position = position + (st != CEK_OK);
    pthread_mutex_unlock(&event->lock);
    record_drop(before, marker_before);
    return st;
}

/* The latest record, its ledger shared. CEK_INVALID where there is none. */
static cek_status record_read(cek_event *event, const char *call, ledger **of, uint64_t *position)
{
    *of = NULL;
    cek_status st = cek__gpu_ready(&event->dev->head, call);
    if (st)
        return st;
    pthread_mutex_lock(&event->lock);
    if (event->ledger)
        *of = cek__ledger_share(event->ledger);
    *position = event->position;
    pthread_mutex_unlock(&event->lock);
    if (!*of)
        return cek__host_fail(&event->dev->head.instance->host, CEK_INVALID, "%s: the event was never recorded", call);
    return CEK_OK;
}

cek_status cek__opencl_event_wait(cek_queue *queue, cek_event *event)
{
    const cek_host *host = &queue->dev->head.instance->host;
    char text[CEK__TEXT_BYTES], whole[CEK__TEXT_BYTES];
    ledger *of = NULL;
    uint64_t position;
    cek_status st = cek__opencl_queue_ready(queue, "event_wait");
    if (!st && !event)
        st = cek__host_fail(host, CEK_INVALID, "event_wait: no event");
    else if (!st && event->dev != queue->dev)
        st = cek__host_fail(host, CEK_UNSUPPORTED, "event_wait: the event is of another device");
    if (!st)
        st = record_read(event, "event_wait", &of, &position);
    if (st)
        return st;
    if (of == queue->ledger) { /* in order anyway */
        cek__ledger_release(of);
        return CEK_OK;
    }
    cek_status now = cek__ledger_look(of, position, text);
    cl_event before = now == CEK_NOT_READY ? cek__ledger_event(of, position) : NULL;
    if (before) {
        cl_event barrier = NULL;
        cl_int error = clEnqueueBarrierWithWaitList(queue->queue, 1, &before, &barrier);
        if (error) {
            st = cek__opencl_fail(queue->dev, "event_wait", "clEnqueueBarrierWithWaitList", error);
        } else {
            cek__ledger_depend(queue->ledger, of, position);
            cek__opencl_enqueued(queue, barrier, "event_wait", NULL);
        }
        clReleaseEvent(before);
    } else if (now && now != CEK_NOT_READY) {
        snprintf(whole, sizeof whole, "waited for an event that failed: %.200s", text);
        cek__ledger_fail(queue->ledger, now, whole);
    }
    cek__ledger_release(of);
    return st;
}

static cek_status event_look(cek_event *event, const char *call, uint64_t timeout_ns, char *text)
{
    ledger *of;
    uint64_t position;
    cek_status st = record_read(event, call, &of, &position);
    if (st)
        return st;
    st = timeout_ns ? cek__ledger_wait(of, position, timeout_ns, text) : cek__ledger_look(of, position, text);
    cek__ledger_release(of);
    return st;
}

cek_status cek__opencl_event_query(cek_event *event)
{
    return event_look(event, "event_query", 0, NULL);
}

cek_status cek__opencl_event_sync(cek_event *event, uint64_t timeout_ns)
{
    cek_status st = event_look(event, "event_sync", timeout_ns, NULL);
    return st == CEK_NOT_READY ? CEK_TIMEOUT : st;
}

cek_status cek__opencl_event_status(cek_event *event, char *text, uint64_t cap)
{
    char why[CEK__TEXT_BYTES] = "";
    if (cek__gpu_device_status(&event->dev->head, text, cap))
        return CEK_DEVICE_LOST;
    cek_status st = event_look(event, "event_status", 0, why);
    cek__text_out(text, cap, why);
    return st;
}

/* When the recorded marker completed, in the driver's nanoseconds. */
static cek_status time_read(cek_event *event, cl_ulong *ns)
{
    const cek_host *host = &event->dev->head.instance->host;
    cek_status st = event_look(event, "event_elapsed", 0, NULL);
    if (st)
        return st;
    if (!event->timing)
        return cek__host_fail(host, CEK_INVALID, "event_elapsed: an event without CEK_EVENT_TIMING");
    pthread_mutex_lock(&event->lock);
    cl_event marker = event->marker;
    if (marker)
        clRetainEvent(marker);
    pthread_mutex_unlock(&event->lock);
    if (!marker)
        return cek__host_fail(host, CEK_UNSUPPORTED, "event_elapsed: recorded in a queue without CEK_QUEUE_TIMING");
    cl_int error = clGetEventProfilingInfo(marker, CL_PROFILING_COMMAND_END, sizeof *ns, ns, NULL);
    clReleaseEvent(marker);
    return error ? cek__opencl_fail(event->dev, "event_elapsed", "clGetEventProfilingInfo", error) : CEK_OK;
}

cek_status cek__opencl_event_elapsed(cek_event *start, cek_event *end, uint64_t *ns)
{
    const cek_host *host = &end->dev->head.instance->host;
    cl_ulong from, to;
    *ns = 0;
    cek_status st = time_read(start, &from);
    if (!st)
        st = time_read(end, &to);
    if (st)
        return st;
    if (start->dev != end->dev || to < from)
        return cek__host_fail(host, CEK_INVALID, "event_elapsed: the end is %s",
                              start->dev != end->dev ? "of another device" : "before the start");
    *ns = to - from;
    return CEK_OK;
}
