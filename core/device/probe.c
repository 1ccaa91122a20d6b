/* probe.c - see probe.h. No lock is held while the plugin is asked. */
#include "core/device/probe.h"

#include <string.h>

#include "core/device/stream.h"
#include "core/device/wait.h"

void cek__probes_init(cek__probes *probes)
{
    pthread_mutex_init(&probes->lock, NULL);
}

void cek__probes_clear(cek_stream *stream)
{
    cek__probes *p = &stream->probes;

    for (unsigned i = 0; i < p->count; i++)
        CEK__RELEASE(stream->device, event_destroy, p->events[i]);
    for (unsigned i = 0; i < p->idle_count; i++)
        CEK__RELEASE(stream->device, event_destroy, p->idle[i]);
    pthread_mutex_destroy(&p->lock);
}

/* ---- looking ---- */

static void oldest_retire(cek__probes *p)
{
    p->idle[p->idle_count++] = p->events[0];
    p->count--;
    memmove(p->events, p->events + 1, p->count * sizeof *p->events);
    if (p->count == 0)
        p->spacing = 0;
}

/* What it tells is nobody's failure. */
static cek_status event_look(const cek_device *device, cek_event *event)
{
    cek_status st;

    if (!cek__release_enter(device, "event_query"))
        return CEK_NOT_READY;
    st = device->plugin->event_query(event);
    cek__call_leave();
    return st;
}

/* An event that tells a failure has happened too. */
static void stream_look(cek_stream *stream)
{
    cek__probes *p = &stream->probes;
    cek_status st = CEK_OK;

    pthread_mutex_lock(&p->lock);
    if (p->looking) {
        pthread_mutex_unlock(&p->lock);
        return;
    }
    p->looking = true;
    while (p->count > 0 && st != CEK_NOT_READY) {
        cek_event *event = p->events[0];

        pthread_mutex_unlock(&p->lock);
        st = event_look(stream->device, event);
        pthread_mutex_lock(&p->lock);
        if (st != CEK_NOT_READY) {
            oldest_retire(p);
            atomic_fetch_add(&stream->device->finished, 1);
        }
    }
    p->looking = false;
    pthread_mutex_unlock(&p->lock);
}

void cek__probes_look(cek_device *device)
{
    for (cek_stream *s = cek__stream_next(device, NULL); s != NULL; s = cek__stream_next(device, s))
        if (!cek__device_is_lost(device))
            stream_look(s);
}

/* ---- recording ---- */

/* Every second one goes, and from now on there are half as many. */
static void thin(cek__probes *p)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < p->count; i++)
        if (i % 2 == 0)
            p->events[kept++] = p->events[i];
        else
            p->idle[p->idle_count++] = p->events[i];
    p->count = kept;
    p->spacing = p->spacing == 0 ? 2 : 2 * p->spacing;
}

static cek_status idle_take(cek_stream *stream, const char *call, cek_event **out)
{
    cek__probes *p = &stream->probes;
    cek_device *device = stream->device;
    cek_status st;

    *out = NULL;
    pthread_mutex_lock(&p->lock);
    if (p->count == CEK__PROBES)
        thin(p);
    if (p->idle_count > 0)
        *out = p->idle[--p->idle_count];
    pthread_mutex_unlock(&p->lock);
    if (*out != NULL)
        return CEK_OK;
    if (!cek__call_enter(device, call))
        return CEK_DEVICE_LOST;
    CEK_TRY(cek__call_end(device, call, device->plugin->event_create(device->dev, NULL, out)));
    if (*out == NULL)
        CEK_FAIL(CEK_BAD_PLUGIN, "%s: event_create succeeds without an event", device->name);
out:
    return st;
}

/* Whether enough commands were enqueued since the last event; counts the one to come. */
static bool is_due(cek_stream *stream, bool *full)
{
    cek__probes *p = &stream->probes;
    bool due;

    pthread_mutex_lock(&p->lock);
    due = p->since > 0 && p->since >= p->spacing;
    p->since = due ? 1 : p->since + 1;
    *full = p->count == CEK__PROBES;
    pthread_mutex_unlock(&p->lock);
    return due;
}

/* Its end is cek__stream_call_end, after the event was put where it belongs. */
static cek_status event_put(cek_stream *stream, const char *call, cek_event *event)
{
    cek_status st;

    if (!cek__call_enter(stream->device, call))
        return CEK_DEVICE_LOST;
    st = stream->device->plugin->event_record(stream->queue, event);
    cek__call_leave();
    return st;
}

cek_status cek__probe(cek_stream *stream, const char *call)
{
    cek__probes *p = &stream->probes;
    cek_event *event;
    cek_status st;
    bool full;

    if (cek__device_is_inline(stream->device) || !is_due(stream, &full))
        return CEK_OK;
    if (full)
        stream_look(stream);
    st = idle_take(stream, call, &event);
    if (st == CEK_OUT_OF_MEMORY) /* then fewer are seen to finish, and commands need no more memory than before */
        return CEK_OK;
    CEK_TRY(st);
    st = event_put(stream, call, event);
    pthread_mutex_lock(&p->lock);
    if (st == CEK_OK)
        p->events[p->count++] = event;
    else
        p->idle[p->idle_count++] = event;
    pthread_mutex_unlock(&p->lock);
    if (!cek__device_is_lost(stream->device))
        st = cek__stream_call_end(stream, call, st);
out:
    return st;
}
