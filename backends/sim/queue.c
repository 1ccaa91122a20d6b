/* SPDX-License-Identifier: MIT
 *
 * queue.c - queues and events of simulated devices: the inner ones, and the failures that they know nothing of.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/sim/sim.h"

cek_status cek__sim_queue_create(cek_dev *dev, const cek_queue_desc *desc, cek_queue **out)
{
    cek_status st = cek__sim_wrapper_make(dev, "queue_create", sizeof **out, out);
    return st ? st : cek__sim_wrapper_done(*out, INNER(dev, queue_create, dev->inner, desc, &(*out)->inner), out);
}

void cek__sim_queue_destroy(cek_queue *queue)
{
    if (!queue)
        return;
    queue->dev->instance->plugin.queue_destroy(queue->inner);
    free(queue);
}

cek_status cek__sim_queue_status(cek_queue *queue, char *text, uint64_t cap)
{
    if (cek__sim_is_lost(queue->dev, text, cap))
        return CEK_DEVICE_LOST;
    if (!queue->failure)
        return INNER(queue->dev, queue_status, queue->inner, text, cap);
    cek__text_out(text, cap, queue->text);
    return queue->failure;
}

cek_status cek__sim_queue_sync(cek_queue *queue, uint64_t timeout_ns)
{
    cek_status st;
    if (cek__sim_queue_pass(queue, "queue_sync", &st))
        return INNER(queue->dev, queue_sync, queue->inner, timeout_ns);
    return st ? st : queue->failure;
}

cek_status cek__sim_upload(cek_queue *queue, cek_ref dst, const void *src, uint64_t bytes)
{
    cek_status st;
    return cek__sim_queue_pass(queue, "upload", &st) ? INNER(queue->dev, upload, queue->inner, inner_ref(dst), src, bytes) : st;
}

cek_status cek__sim_download(cek_queue *queue, void *dst, cek_ref src, uint64_t bytes)
{
    cek_status st;
    return cek__sim_queue_pass(queue, "download", &st) ? INNER(queue->dev, download, queue->inner, dst, inner_ref(src), bytes) : st;
}

cek_status cek__sim_copy(cek_queue *queue, cek_ref dst, cek_ref src, uint64_t bytes)
{
    cek_status st;
    return cek__sim_queue_pass(queue, "copy", &st) ? INNER(queue->dev, copy, queue->inner, inner_ref(dst), inner_ref(src), bytes) : st;
}

cek_status cek__sim_fill(cek_queue *queue, cek_ref dst, uint32_t pattern, uint32_t pattern_bytes, uint64_t bytes)
{
    cek_status st;
    return cek__sim_queue_pass(queue, "fill", &st)
        ? INNER(queue->dev, fill, queue->inner, inner_ref(dst), pattern, pattern_bytes, bytes) : st;
}

cek_status cek__sim_update(cek_queue *queue, cek_ref dst, const void *src, uint64_t bytes)
{
    cek_status st;
    return cek__sim_queue_pass(queue, "update", &st) ? INNER(queue->dev, update, queue->inner, inner_ref(dst), src, bytes) : st;
}

/* --- events -------------------------------------------------------------------------------------------------------- */

cek_status cek__sim_event_create(cek_dev *dev, const cek_event_desc *desc, cek_event **out)
{
    cek_status st = cek__sim_wrapper_make(dev, "event_create", sizeof **out, out);
    if (!st)
        st = cek__sim_wrapper_done(*out, INNER(dev, event_create, dev->inner, desc, &(*out)->inner), out);
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

/* The failure of the latest record that the inner plugin does not know of, with its text. */
static cek_status event_failure(cek_event *event, char *text, uint64_t cap)
{
    pthread_mutex_lock(&event->lock);
    cek_status failure = event->failure;
    if (failure)
        cek__text_out(text, cap, event->text);
    pthread_mutex_unlock(&event->lock);
    return failure;
}

cek_status cek__sim_event_record(cek_queue *queue, cek_event *event)
{
    cek_status st;
    bool goes_on = cek__sim_queue_pass(queue, "event_record", &st);
    if (!goes_on && !queue->failure)
        return st;
    pthread_mutex_lock(&event->lock);
    event->failure = queue->failure;
    memcpy(event->text, queue->text, sizeof event->text);
    pthread_mutex_unlock(&event->lock);
    return goes_on ? INNER(queue->dev, event_record, queue->inner, event->inner) : st;
}

cek_status cek__sim_event_wait(cek_queue *queue, cek_event *event)
{
    cek_status st;
    char text[CEK__TEXT_BYTES];
    if (!cek__sim_queue_pass(queue, "event_wait", &st))
        return st;
    cek_status failure = event->dev == queue->dev ? event_failure(event, text, sizeof text) : CEK_OK;
    if (!failure)
        return INNER(queue->dev, event_wait, queue->inner, event->inner);
    snprintf(queue->text, sizeof queue->text, "waited for an event that failed: %.200s", text);
    queue->failure = failure;
    return CEK_OK;
}

cek_status cek__sim_event_query(cek_event *event)
{
    cek_status st = cek__sim_pass(event->dev, "event_query");
    if (!st)
        st = event_failure(event, NULL, 0);
    return st ? st : INNER(event->dev, event_query, event->inner);
}

cek_status cek__sim_event_sync(cek_event *event, uint64_t timeout_ns)
{
    cek_status st = cek__sim_pass(event->dev, "event_sync");
    if (!st)
        st = event_failure(event, NULL, 0);
    return st ? st : INNER(event->dev, event_sync, event->inner, timeout_ns);
}

cek_status cek__sim_event_status(cek_event *event, char *text, uint64_t cap)
{
    if (cek__sim_is_lost(event->dev, text, cap))
        return CEK_DEVICE_LOST;
    cek_status st = event_failure(event, text, cap);
    return st ? st : INNER(event->dev, event_status, event->inner, text, cap);
}

cek_status cek__sim_event_elapsed(cek_event *start, cek_event *end, uint64_t *ns)
{
    *ns = 0;
    cek_status st = cek__sim_pass(end->dev, "event_elapsed");
    if (!st)
        st = event_failure(start, NULL, 0);
    if (!st)
        st = event_failure(end, NULL, 0);
    return st ? st : INNER(end->dev, event_elapsed, start->inner, end->inner, ns);
}
