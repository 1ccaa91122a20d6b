/* SPDX-License-Identifier: MIT
 *
 * event.c - events. The driver takes one that was never recorded for one that has happened; here it is an error.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/common/command.h"
#include "backends/cuda/cuda.h"

struct cek_event {
    cuda_dev *dev;
    CUevent event;
    bool timing;
    pthread_mutex_t lock; /* of all that follows: record and query may come from two threads */
    bool recorded;
    cek__failure failure; /* of the queue that it was last recorded in */
};

cek_status cek__cuda_event_create(cek_dev *head, const cek_event_desc *desc, cek_event **out)
{
    cuda_dev *dev = (cuda_dev *)head;
    const cek_host *host = &head->instance->host;
    bool timing;
    *out = NULL;
    cek_status st = cek__gpu_ready(head, "event_create");
    if (!st)
        st = cek__event_desc_in(host, desc, &timing);
    if (st)
        return st;
    cek_event *event = calloc(1, sizeof *event);
    if (!event)
        return cek__host_fail(host, CEK_OUT_OF_MEMORY, "event_create: no memory for the handle");
    event->dev = dev;
    event->timing = timing;
    st = cek__cuda_enter(dev, "event_create");
    if (!st) {
        CUresult error = cek__cuda_api(dev)->cuEventCreate(&event->event, event->timing ? 0 : CU_EVENT_DISABLE_TIMING);
        cek__cuda_leave(dev);
        if (error)
            st = cek__cuda_fail(dev, "event_create", "cuEventCreate", error);
    }
    if (st) {
        free(event);
        return st;
    }
    pthread_mutex_init(&event->lock, NULL);
    *out = event;
    return CEK_OK;
}

void cek__cuda_event_destroy(cek_event *event)
{
    if (!event)
        return;
    cuda_dev *dev = event->dev;
    if (!cek__latched(&dev->head.lost) && !cek__cuda_enter(dev, "event_destroy")) {
        CUresult error = cek__cuda_api(dev)->cuEventDestroy(event->event); /* what waits for it still may */
        cek__cuda_leave(dev);
        if (error)
            (void)cek__cuda_fail(dev, "event_destroy", "cuEventDestroy", error);
    }
    pthread_mutex_destroy(&event->lock);
    free(event);
}

cek_status cek__cuda_event_record(cek_queue *queue, cek_event *event)
{
    cuda_dev *dev = queue->dev;
    if (!event || event->dev != dev)
        return cek__host_fail(&dev->head.instance->host, CEK_INVALID, "event_record: the event is of another device");
    cek_status st = cek__cuda_queue_ready(queue, "event_record");
    if (st == CEK_DEVICE_LOST)
        return st;
    /* in a failed queue the event has failed too, so that nobody takes an older record for this one */
    const cek__failure failure = st ? queue->failure : (cek__failure){ .status = CEK_OK };
    const bool is_failed = st;
    if (!is_failed && !(st = cek__cuda_enter(dev, "event_record"))) {
        /* may wait for long, so that nobody who asks for the event may wait for this */
        CUresult error = cek__cuda_api(dev)->cuEventRecord(event->event, queue->stream);
        cek__cuda_leave(dev);
        if (error)
            st = cek__cuda_fail(dev, "event_record", "cuEventRecord", error);
    }
    if (st && !is_failed)
        return st;
    pthread_mutex_lock(&event->lock);
    event->recorded = true;
    event->failure = failure;
    pthread_mutex_unlock(&event->lock);
    return st;
}

/* What its queue had met at the latest record. CEK_DEVICE_LOST, or CEK_INVALID where there is none; a failure of the
 * recorded work is not one of this. */
static cek_status record_read(cek_event *event, const char *call, cek__failure *failure)
{
    cek_status st = cek__gpu_ready(&event->dev->head, call);
    if (st)
        return st;
    pthread_mutex_lock(&event->lock);
    bool recorded = event->recorded;
    *failure = event->failure;
    pthread_mutex_unlock(&event->lock);
    if (!recorded)
        st = cek__host_fail(&event->dev->head.instance->host, CEK_INVALID, "%s: the event was never recorded", call);
    return st;
}

cek_status cek__cuda_event_wait(cek_queue *queue, cek_event *event)
{
    cuda_dev *dev = queue->dev;
    const cek_host *host = &dev->head.instance->host;
    cek__failure failure;
    cek_status st = cek__cuda_queue_ready(queue, "event_wait");
    if (!st && !event)
        st = cek__host_fail(host, CEK_INVALID, "event_wait: no event");
    else if (!st && event->dev != dev)
        st = cek__host_fail(host, CEK_UNSUPPORTED, "event_wait: the event is of another device");
    if (!st)
        st = record_read(event, "event_wait", &failure);
    if (st)
        return st;
    cek__failure_inherit(&queue->failure, &failure);
    if (failure.status)
        return CEK_OK;
    st = cek__cuda_enter(dev, "event_wait");
    if (st)
        return st;
    CUresult error = cek__cuda_api(dev)->cuStreamWaitEvent(queue->stream, event->event, 0);
    cek__cuda_leave(dev);
    return error ? cek__cuda_fail(dev, "event_wait", "cuStreamWaitEvent", error) : CEK_OK;
}

static cek_status event_look(cek_event *event, const char *call, uint64_t timeout_ns, char *text)
{
    cek__failure failure;
    cek_status st = record_read(event, call, &failure);
    if (st)
        return st;
    if (text)
        snprintf(text, CEK__TEXT_BYTES, "%s", failure.text);
    return failure.status ? failure.status : cek__cuda_poll_event(event->dev, call, event->event, timeout_ns);
}

cek_status cek__cuda_event_query(cek_event *event)
{
    cek_status st = event_look(event, "event_query", 0, NULL);
    return st == CEK_TIMEOUT ? CEK_NOT_READY : st;
}

cek_status cek__cuda_event_sync(cek_event *event, uint64_t timeout_ns)
{
    return event_look(event, "event_sync", timeout_ns, NULL);
}

cek_status cek__cuda_event_status(cek_event *event, char *text, uint64_t cap)
{
    char why[CEK__TEXT_BYTES] = "";
    cek_status st = cek__latched(&event->dev->head.lost) ? CEK_DEVICE_LOST : event_look(event, "event_status", 0, why);
    if (st == CEK_DEVICE_LOST)
        return cek__gpu_device_status(&event->dev->head, text, cap);
    cek__text_out(text, cap, why);
    return st == CEK_TIMEOUT ? CEK_NOT_READY : st;
}

cek_status cek__cuda_event_elapsed(cek_event *start, cek_event *end, uint64_t *ns)
{
    const cek_host *host = &end->dev->head.instance->host;
    cuda_dev *dev = end->dev;
    float milliseconds = 0;
    *ns = 0;
    if (start->dev != dev)
        return cek__host_fail(host, CEK_INVALID, "event_elapsed: the events are of two devices");
    cek_status st = cek__cuda_event_query(start);
    if (!st)
        st = cek__cuda_event_query(end);
    if (!st && !(start->timing && end->timing))
        st = cek__host_fail(host, CEK_INVALID, "event_elapsed: an event without CEK_EVENT_TIMING");
    if (!st)
        st = cek__cuda_enter(dev, "event_elapsed");
    if (st)
        return st;
    CUresult error = cek__cuda_api(dev)->cuEventElapsedTime(&milliseconds, start->event, end->event);
    cek__cuda_leave(dev);
    if (error)
        return cek__cuda_fail(dev, "event_elapsed", "cuEventElapsedTime", error);
    if (milliseconds < 0)
        return cek__host_fail(host, CEK_INVALID, "event_elapsed: the end is before the start");
    *ns = (uint64_t)llrint((double)milliseconds * 1e6);
    return CEK_OK;
}
