/* stream.c - streams and markers: in-order queues of one device, and points in them.
 *
 * Owns: one queue and one event per stream. A failure that stuck to a queue or an event is told with the text that
 * the plugin kept with it. Copies between devices are transfer.c's. */
#include "core/device/stream.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/base/alloc.h"
#include "core/device/call.h"

struct cek_marker {
    cek_device *device;
    cek_event *event;
};

/* ---- failures that stuck ---- */

static bool is_progress(cek_status status)
{
    return status == CEK_OK || status == CEK_TIMEOUT || status == CEK_NOT_READY;
}

cek_status cek__stream_call_end(const cek_stream *stream, const char *call, cek_status status)
{
    char reason[512] = "";

    if (is_progress(status))
        return cek__call_end(stream->device, call, status);
    stream->device->plugin->queue_status(stream->queue, reason, sizeof reason);
    reason[sizeof reason - 1] = '\0';
    if (reason[0] != '\0')
        cek__call_told(status, reason);
    return cek__call_end(stream->device, call, status);
}

static cek_status event_call_end(const cek_marker *marker, const char *call, cek_status status)
{
    char reason[512] = "";

    if (is_progress(status) || status == CEK_INVALID)
        return cek__call_end(marker->device, call, status);
    marker->device->plugin->event_status(marker->event, reason, sizeof reason);
    reason[sizeof reason - 1] = '\0';
    if (reason[0] != '\0')
        cek__call_told(status, reason);
    return cek__call_end(marker->device, call, status);
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

static void list_remove(cek_stream *stream)
{
    cek_device *device = stream->device;

    pthread_mutex_lock(&device->lock);
    if (stream->prev != NULL)
        stream->prev->next = stream->next;
    else
        device->streams = stream->next;
    if (stream->next != NULL)
        stream->next->prev = stream->prev;
    pthread_mutex_unlock(&device->lock);
}

cek_status cek__stream_create(cek_device *device, bool listed, cek_stream **out)
{
    cek_status st;
    cek_stream *stream = NULL;
    cek_dev *dev;
    /* Markers may be asked for times on any stream of a caller; the default stream is never timed. */
    cek_queue_desc desc = { .size = sizeof desc, .flags = listed ? CEK_QUEUE_TIMING : 0 };

    *out = NULL;
    CEK_TRY(cek__device_open(device, &dev));
    CEK_TRY(cek__calloc(1, sizeof *stream, &stream));
    stream->device = device;
    CEK_TRY(CEK__CALL(device, device->plugin, queue_create, dev, &desc, &stream->queue));
    CEK_TRY(CEK__CALL(device, device->plugin, event_create, dev, NULL, &stream->fence));
    if (stream->queue == NULL || stream->fence == NULL)
        CEK_FAIL(CEK_BAD_PLUGIN, "%s: queue_create or event_create succeeds without a result", device->name);
    if (listed)
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
    st = cek__stream_create(device, true, out);
    if (st == CEK_OK)
        cek__device_take(device);
    return st;
}

void cek_stream_free(cek_stream *stream)
{
    cek_device *device;
    bool listed;

    if (stream == NULL)
        return;
    device = stream->device;
    listed = stream->listed;
    if (listed)
        list_remove(stream);
    CEK__RELEASE(device, queue_destroy, stream->queue);
    CEK__RELEASE(device, event_destroy, stream->fence);
    free(stream);
    if (listed)
        cek__device_drop(device);
}

cek_device *cek_stream_device(const cek_stream *stream)
{
    return stream != NULL ? stream->device : NULL;
}

cek_queue *cek_stream_raw(const cek_stream *stream)
{
    return stream != NULL ? stream->queue : NULL;
}

cek_status cek_stream_sync(cek_stream *stream, uint64_t timeout_ns)
{
    CEK__NOT_NULL(stream);
    return CEK__STREAM_CALL(stream, queue_sync, timeout_ns);
}

cek_status cek__streams_sync(cek_device *device)
{
    cek_status st = CEK_OK;

    pthread_mutex_lock(&device->lock);
    for (cek_stream *s = device->streams; s != NULL && st == CEK_OK; s = s->next)
        st = cek_stream_sync(s, CEK_FOREVER);
    pthread_mutex_unlock(&device->lock);
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
    return st != CEK_OK || bytes == 0 ? st : CEK__STREAM_CALL(stream, upload, dst, src, bytes);
}

cek_status cek_stream_download(cek_stream *stream, void *dst, cek_ref src, uint64_t bytes)
{
    cek_status st;

    CEK__NOT_NULL(stream);
    if (bytes > 0)
        CEK__NOT_NULL(dst);
    st = memory_check(stream, "download", src, bytes);
    return st != CEK_OK || bytes == 0 ? st : CEK__STREAM_CALL(stream, download, dst, src, bytes);
}

cek_status cek_stream_fill(cek_stream *stream, cek_ref dst, uint32_t pattern, uint32_t pattern_bytes, uint64_t bytes)
{
    cek_status st;

    CEK__NOT_NULL(stream);
    st = memory_check(stream, "fill", dst, bytes);
    return st != CEK_OK || bytes == 0 ? st : CEK__STREAM_CALL(stream, fill, dst, pattern, pattern_bytes, bytes);
}

cek_status cek_stream_update(cek_stream *stream, cek_ref dst, const void *src, uint64_t bytes)
{
    cek_status st;

    CEK__NOT_NULL(stream);
    if (bytes > 0)
        CEK__NOT_NULL(src);
    st = memory_check(stream, "update", dst, bytes);
    return st != CEK_OK || bytes == 0 ? st : CEK__STREAM_CALL(stream, update, dst, src, bytes);
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
    CEK_TRY(CEK__CALL(device, device->plugin, event_create, dev, &desc, &marker->event));
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

cek_status cek_marker_query(cek_marker *marker)
{
    CEK__NOT_NULL(marker);
    cek__call_begin(marker->device->name, "event_query");
    return event_call_end(marker, "event_query", marker->device->plugin->event_query(marker->event));
}

cek_status cek_marker_sync(cek_marker *marker, uint64_t timeout_ns)
{
    CEK__NOT_NULL(marker);
    cek__call_begin(marker->device->name, "event_sync");
    return event_call_end(marker, "event_sync", marker->device->plugin->event_sync(marker->event, timeout_ns));
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
    cek__call_begin(end->device->name, "event_elapsed");
    return event_call_end(end, "event_elapsed", end->device->plugin->event_elapsed(start->event, end->event, ns));
}

cek_status cek_stream_wait(cek_stream *stream, cek_marker *marker)
{
    CEK__NOT_NULL(stream);
    CEK__NOT_NULL(marker);
    if (marker->device != stream->device)
        return cek_marker_sync(marker, CEK_FOREVER);
    return CEK__STREAM_CALL(stream, event_wait, marker->event);
}
