/* stream.c - streams and markers: in-order queues of one device, and points in them.
 *
 * Owns: one queue and one event per stream. A failure that stuck to a queue or an event is told with the text that
 * the plugin kept with it. Copies between devices are transfer.c's. */
#include "core/device/stream.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/base/alloc.h"
#include "core/device/call.h"
#include "core/device/wait.h"

struct cek_marker {
    cek_device *device;
    cek_event *event;
};

/* ---- failures that stuck ---- */

static bool is_progress(cek_status status)
{
    return status == CEK_OK || status == CEK_TIMEOUT || status == CEK_NOT_READY;
}

/* Apart from call_end, so that a call that succeeds clears no room for a text. */
static cek_status queue_failed(const cek_stream *stream, const char *call, cek_status status)
{
    char reason[512] = "";

    stream->device->plugin->queue_status(stream->queue, reason, sizeof reason);
    cek__call_leave();
    reason[sizeof reason - 1] = '\0';
    if (reason[0] != '\0')
        cek__call_told(status, reason);
    return cek__call_end(stream->device, call, status);
}

cek_status cek__stream_call_end(const cek_stream *stream, const char *call, cek_status status)
{
    cek__call_leave();
    if (is_progress(status) || !cek__ask_enter(stream->device, "queue_status"))
        return cek__call_end(stream->device, call, status);
    return queue_failed(stream, call, status);
}

static cek_status event_failed(const cek_marker *marker, const char *call, cek_status status)
{
    char reason[512] = "";

    marker->device->plugin->event_status(marker->event, reason, sizeof reason);
    cek__call_leave();
    reason[sizeof reason - 1] = '\0';
    if (reason[0] != '\0')
        cek__call_told(status, reason);
    return cek__call_end(marker->device, call, status);
}

static cek_status event_call_end(const cek_marker *marker, const char *call, cek_status status)
{
    cek__call_leave();
    if (is_progress(status) || status == CEK_INVALID || !cek__ask_enter(marker->device, "event_status"))
        return cek__call_end(marker->device, call, status);
    return event_failed(marker, call, status);
}

/* ---- streams ---- */

static void list_add(cek_stream *stream)
{
    cek_device *device = stream->device;

    pthread_mutex_lock(&device->lock);
    stream->next = device->streams;
    if (stream->next != NULL)
        stream->next->prev = stream;
    device->streams = stream;
    stream->listed = true;
    pthread_mutex_unlock(&device->lock);
}

cek_stream *cek__stream_next(cek_device *device, cek_stream *stream)
{
    cek_stream *next;

    pthread_mutex_lock(&device->lock);
    next = stream != NULL ? stream->next : device->streams;
    while (next != NULL && next->closing)
        next = next->next;
    if (next != NULL)
        next->pins++;
    if (stream != NULL && --stream->pins == 0)
        pthread_cond_broadcast(&device->changed);
    pthread_mutex_unlock(&device->lock);
    return next;
}

/* False: somebody who looks at the stream does not come back. It stays where it is. */
static bool list_remove(cek_stream *stream)
{
    cek_device *device = stream->device;
    cek__wait wait = cek__wait_begin(device, CEK_FOREVER);
    cek_status st;
    bool free_of_pins;

    pthread_mutex_lock(&device->lock);
    stream->closing = true;
    while (stream->pins > 0 && cek__wait_changed(&wait, "event_query", &st))
        ;
    free_of_pins = stream->pins == 0;
    if (free_of_pins && stream->prev != NULL)
        stream->prev->next = stream->next;
    else if (free_of_pins)
        device->streams = stream->next;
    if (free_of_pins && stream->next != NULL)
        stream->next->prev = stream->prev;
    pthread_mutex_unlock(&device->lock);
    return free_of_pins;
}

cek_status cek__stream_create(cek_device *device, bool is_order, cek_stream **out)
{
    cek_status st;
    cek_stream *stream = NULL;
    cek_dev *dev;
    cek_queue *queue = NULL;
    cek_event *fence = NULL;
    /* Markers may be asked for times on any stream of a caller; the default stream is never timed. */
    cek_queue_desc desc = { .size = sizeof desc, .flags = is_order ? 0 : CEK_QUEUE_TIMING };

    *out = NULL;
    CEK_TRY(cek__device_open(device, &dev));
    CEK_TRY(cek__calloc(1, sizeof *stream, &stream));
    stream->device = device;
    stream->is_order = is_order;
    cek__probes_init(&stream->probes);
    /* what a failed call leaves in its result is nobody's */
    CEK_TRY(CEK__CALL(device, queue_create, dev, &desc, &queue));
    stream->queue = queue;
    CEK_TRY(CEK__CALL(device, event_create, dev, NULL, &fence));
    stream->fence = fence;
    if (stream->queue == NULL || stream->fence == NULL)
        CEK_FAIL(CEK_BAD_PLUGIN, "%s: queue_create or event_create succeeds without a result", device->name);
    list_add(stream);
    *out = stream;
    return CEK_OK;
out:
    cek_stream_free(stream);
    return st;
}

cek_status cek_stream_create(cek_device *device, cek_stream **out)
{
    cek_status st;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(device);
    st = cek__stream_create(device, false, out);
    if (st == CEK_OK)
        cek__device_take(device);
    return st;
}

/* A queue that is stuck is found out here: the plugin's queue_destroy might wait for it. */
void cek_stream_free(cek_stream *stream)
{
    cek_device *device;
    bool holds;

    if (stream == NULL)
        return;
    device = stream->device;
    holds = stream->listed && !stream->is_order;
    if (stream->queue != NULL)
        (void)cek__stream_quiesce(stream);
    if (stream->listed && !list_remove(stream)) {
        cek__abandon(stream);
        return;
    }
    cek__watch_free(stream);
    cek__probes_clear(stream);
    CEK__RELEASE(device, queue_destroy, stream->queue);
    CEK__RELEASE(device, event_destroy, stream->fence);
    free(stream);
    if (holds)
        cek__device_drop(device);
}

cek_device *cek_stream_device(const cek_stream *stream)
{
    return stream != NULL ? stream->device : NULL;
}

void cek_stream_set_name(cek_stream *stream, const char *name)
{
    if (stream != NULL)
        stream->name = name;
}

cek_queue *cek_stream_raw(const cek_stream *stream)
{
    return stream != NULL ? stream->queue : NULL;
}

/* A wait that had no memory, of a queue that has not failed: its work goes on, and uses what it was given. */
static bool is_starved(const cek_stream *stream, cek_status status)
{
    bool starved;

    if (status != CEK_OUT_OF_MEMORY || !cek__ask_enter(stream->device, "queue_status"))
        return false;
    starved = stream->device->plugin->queue_status(stream->queue, NULL, 0) == CEK_OK;
    cek__call_leave();
    return starved;
}

cek_status cek_stream_sync(cek_stream *stream, uint64_t timeout_ns)
{
    cek_status st;
    cek__wait wait;
    int64_t began;

    CEK__NOT_NULL(stream);
    began = cek__trace_begin(cek__trace_of(stream->device));
    wait = cek__wait_begin(stream->device, timeout_ns);
    do
        st = CEK__STREAM_CALL(stream, queue_sync, cek__wait_slice(&wait));
    while ((st == CEK_TIMEOUT || is_starved(stream, st)) && cek__wait_goes_on(&wait, "queue_sync", &st));
    cek__trace_end(cek__trace_of(stream->device), began, "queue_sync");
    return st;
}

cek_status cek__streams_sync(cek_device *device)
{
    cek_status st = CEK_OK;

    for (cek_stream *s = cek__stream_next(device, NULL); s != NULL; s = cek__stream_next(device, s))
        if (st == CEK_OK && !s->is_order)
            st = cek_stream_sync(s, CEK_FOREVER);
    return st;
}

/* ---- memory's contents ---- */

/* Slabs of the allocator hold others' memory behind a caller's: the plugin cannot know where that ends. */
static cek_status memory_check(const cek_stream *stream, const char *call, cek_ref ref, uint64_t bytes)
{
    return bytes != 0 ? cek__memory_check(stream->device, call, ref, bytes) : CEK_OK;
}

cek_status cek_stream_upload(cek_stream *stream, cek_ref dst, const void *src, uint64_t bytes)
{
    cek_status st;

    CEK__NOT_NULL(stream);
    if (bytes > 0)
        CEK__NOT_NULL(src);
    st = memory_check(stream, "upload", dst, bytes);
    return st != CEK_OK || bytes == 0 ? st : CEK__STREAM_COMMAND(stream, upload, dst, src, bytes);
}

cek_status cek_stream_download(cek_stream *stream, void *dst, cek_ref src, uint64_t bytes)
{
    cek_status st;

    CEK__NOT_NULL(stream);
    if (bytes > 0)
        CEK__NOT_NULL(dst);
    st = memory_check(stream, "download", src, bytes);
    return st != CEK_OK || bytes == 0 ? st : CEK__STREAM_COMMAND(stream, download, dst, src, bytes);
}

cek_status cek_stream_fill(cek_stream *stream, cek_ref dst, uint32_t pattern, uint32_t pattern_bytes, uint64_t bytes)
{
    cek_status st;

    CEK__NOT_NULL(stream);
    st = memory_check(stream, "fill", dst, bytes);
    return st != CEK_OK || bytes == 0 ? st : CEK__STREAM_COMMAND(stream, fill, dst, pattern, pattern_bytes, bytes);
}

cek_status cek_stream_update(cek_stream *stream, cek_ref dst, const void *src, uint64_t bytes)
{
    cek_status st;

    CEK__NOT_NULL(stream);
    if (bytes > 0)
        CEK__NOT_NULL(src);
    st = memory_check(stream, "update", dst, bytes);
    return st != CEK_OK || bytes == 0 ? st : CEK__STREAM_COMMAND(stream, update, dst, src, bytes);
}

bool cek__stream_quiesce(cek_stream *stream)
{
    char cause[CEK__ERROR_TEXT_MAX];
    cek_status st;

    snprintf(cause, sizeof cause, "%s", cek_error_text());
    st = cek_stream_sync(stream, CEK_FOREVER);
    cek__fail(CEK_INTERNAL, "%s", cause);
    return st != CEK_DEVICE_LOST;
}

cek_status cek__stream_after(cek_stream *stream, cek_stream *before)
{
    cek_status st;

    if (stream == before)
        return CEK_OK;
    if (stream->device != before->device)
        return cek_stream_sync(before, CEK_FOREVER);
    CEK_TRY(CEK__STREAM_CALL(before, event_record, before->fence));
    CEK_TRY(CEK__STREAM_CALL(stream, event_wait, before->fence));
out:
    return st;
}

/* ---- markers ---- */

cek_status cek_marker_create(cek_device *device, bool timing, cek_marker **out)
{
    cek_status st;
    cek_marker *marker = NULL;
    cek_dev *dev;
    cek_event_desc desc = { .size = sizeof desc, .flags = timing ? CEK_EVENT_TIMING : 0 };

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(device);
    CEK_TRY(cek__device_open(device, &dev));
    CEK_TRY(cek__calloc(1, sizeof *marker, &marker));
    marker->device = device;
    CEK_TRY(CEK__CALL(device, event_create, dev, &desc, &marker->event));
    if (marker->event == NULL)
        CEK_FAIL(CEK_BAD_PLUGIN, "%s: event_create succeeds without an event", device->name);
    cek__device_take(device);
    *out = marker;
    return CEK_OK;
out:
    free(marker);
    return st;
}

void cek_marker_free(cek_marker *marker)
{
    cek_device *device;

    if (marker == NULL)
        return;
    device = marker->device;
    CEK__RELEASE(device, event_destroy, marker->event);
    free(marker);
    cek__device_drop(device);
}

cek_status cek_marker_record(cek_marker *marker, cek_stream *stream)
{
    CEK__NOT_NULL(marker);
    CEK__NOT_NULL(stream);
    if (marker->device != stream->device)
        return cek__fail(CEK_INVALID, "a marker of %s cannot be recorded on a stream of %s", marker->device->name,
                         stream->device->name);
    return CEK__STREAM_CALL(stream, event_record, marker->event);
}

/* A call whose first argument is the marker's event. */
#define EVENT_CALL(marker, slot, ...)                                                   \
    (cek__call_enter((marker)->device, #slot)                                           \
         ? event_call_end((marker), #slot, (marker)->device->plugin->slot(__VA_ARGS__)) \
         : CEK_DEVICE_LOST)

cek_status cek_marker_query(cek_marker *marker)
{
    CEK__NOT_NULL(marker);
    return EVENT_CALL(marker, event_query, marker->event);
}

cek_status cek_marker_sync(cek_marker *marker, uint64_t timeout_ns)
{
    cek_status st;
    cek__wait wait;
    int64_t began;

    CEK__NOT_NULL(marker);
    began = cek__trace_begin(cek__trace_of(marker->device));
    wait = cek__wait_begin(marker->device, timeout_ns);
    do
        st = EVENT_CALL(marker, event_sync, marker->event, cek__wait_slice(&wait));
    while (st == CEK_TIMEOUT && cek__wait_goes_on(&wait, "event_sync", &st));
    cek__trace_end(cek__trace_of(marker->device), began, "event_sync");
    return st;
}

cek_status cek_marker_elapsed(cek_marker *start, cek_marker *end, uint64_t *ns)
{
    CEK__NOT_NULL(ns);
    *ns = 0;
    CEK__NOT_NULL(start);
    CEK__NOT_NULL(end);
    if (start->device != end->device)
        return cek__fail(CEK_INVALID, "no time passes between markers of %s and %s", start->device->name,
                         end->device->name);
    return EVENT_CALL(end, event_elapsed, start->event, end->event, ns);
}

cek_status cek_stream_wait(cek_stream *stream, cek_marker *marker)
{
    CEK__NOT_NULL(stream);
    CEK__NOT_NULL(marker);
    if (marker->device != stream->device)
        return cek_marker_sync(marker, CEK_FOREVER);
    return CEK__STREAM_CALL(stream, event_wait, marker->event);
}
