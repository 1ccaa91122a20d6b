/* watch.c - see watch.h. */
#include "core/device/watch.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/device/call.h"
#include "core/device/stream.h"

/* A command whose events are outstanding. */
typedef struct pending {
    cek_event *begin, *end;
    const char *call;
    cek__trace_note note;
    uint64_t order;
} pending;

struct cek__watch {
    uint32_t line;
    cek_event *zero; /* NULL on an inline device, whose clock is the host's */
    int64_t zero_ns;
    pending *list; /* in the order of the queue */
    size_t first, count, capacity;
    cek_event **idle; /* room for all that were made */
    size_t idle_count, idle_capacity, made;
};

/* ---- events ---- */

static cek_status left(cek_status status)
{
    cek__call_leave();
    return status;
}

/* A call whose failure is nobody's: the command that is recorded tells its own, and the text of one on its
 * way up stays. */
#define QUIETLY(device, slot, ...) \
    (cek__release_enter((device), #slot) ? left((device)->plugin->slot(__VA_ARGS__)) : CEK_DEVICE_LOST)

static cek_event *event_take(cek_stream *stream)
{
    cek__watch *w = stream->watch;
    cek_event *event = NULL;
    cek_event_desc desc = { .size = sizeof desc, .flags = CEK_EVENT_TIMING };

    if (w->idle_count > 0)
        return w->idle[--w->idle_count];
    if (!cek__make_room(&w->idle, sizeof *w->idle, w->made, &w->idle_capacity) ||
        QUIETLY(stream->device, event_create, stream->device->dev, &desc, &event) != CEK_OK)
        return NULL;
    w->made += event != NULL;
    return event;
}

/* An event of the stream's clock, recorded now. */
static cek_event *event_stamp(cek_stream *stream)
{
    cek_event *event = event_take(stream);

    if (event != NULL && QUIETLY(stream->device, event_record, stream->queue, event) != CEK_OK) {
        stream->watch->idle[stream->watch->idle_count++] = event;
        return NULL;
    }
    return event;
}

/* Ties the device's clock to the host's: what was queued before has ended. */
static bool clock_tie(cek_stream *stream)
{
    cek__watch *w = stream->watch;
    cek_status st;

    if (cek__device_is_inline(stream->device))
        return true;
    w->zero = event_stamp(stream);
    if (w->zero == NULL)
        return false;
    st = cek_stream_sync(stream, CEK_FOREVER);
    w->zero_ns = cek__trace_now();
    return st == CEK_OK;
}

static bool watch_start(cek_stream *stream, cek_trace *trace)
{
    cek__watch *w = NULL;

    if (stream->watch != NULL)
        return true;
    if (stream->is_order && !cek__device_is_inline(stream->device))
        return false;
    if (cek__calloc(1, sizeof *w, &w) != CEK_OK)
        return false;
    stream->watch = w;
    if (cek__trace_line(trace, stream->device->name, stream->name != NULL ? stream->name : "stream", &w->line) &&
        clock_tie(stream))
        return true;
    cek__watch_free(stream);
    return false;
}

static cek_status command_times(cek_stream *stream, const pending *p, cek__trace_entry *entry)
{
    const cek__watch *w = stream->watch;
    uint64_t begin, end;
    cek_status st;

    CEK_TRY(QUIETLY(stream->device, event_query, p->end));
    CEK_TRY(QUIETLY(stream->device, event_elapsed, w->zero, p->begin, &begin));
    CEK_TRY(QUIETLY(stream->device, event_elapsed, w->zero, p->end, &end));
    *entry = (cek__trace_entry){ w->line, p->call, w->zero_ns + (int64_t)begin, w->zero_ns + (int64_t)end,
                                 p->note, p->order };
out:
    return st;
}

static void look(cek_stream *stream)
{
    cek__watch *w = stream->watch;
    cek_trace *trace = cek__trace_of(stream->device);

    while (w != NULL && w->count > 0) {
        pending *p = &w->list[w->first];
        cek__trace_entry entry;
        cek_status st = command_times(stream, p, &entry);

        if (st == CEK_NOT_READY || st == CEK_DEVICE_LOST)
            return;
        if (st == CEK_OK)
            cek__trace_add(trace, &entry);
        else
            cek__trace_miss(trace);
        w->idle[w->idle_count++] = p->begin;
        w->idle[w->idle_count++] = p->end;
        w->first++;
        w->count--;
    }
}

cek__watched cek__watch_begin(cek_stream *stream)
{
    cek_trace *trace = cek__trace_of(stream->device);
    cek__watched watched = { .is_on = false };

    if (trace == NULL)
        return watched;
    if (!watch_start(stream, trace)) {
        cek__trace_miss(trace);
        return watched;
    }
    if (stream->watch->zero != NULL) {
        look(stream);
        watched.begin = event_stamp(stream);
    }
    watched.is_on = stream->watch->zero == NULL || watched.begin != NULL;
    watched.began_ns = cek__trace_now();
    return watched;
}

static bool pending_add(cek__watch *w, const pending *command)
{
    if (w->first > 0 && w->first + w->count == w->capacity) {
        memmove(w->list, w->list + w->first, w->count * sizeof *w->list);
        w->first = 0;
    }
    if (!cek__make_room(&w->list, sizeof *w->list, w->first + w->count, &w->capacity))
        return false;
    w->list[w->first + w->count++] = *command;
    return true;
}

void cek__watch_end(cek_stream *stream, const cek__watched *watched, const char *call, cek_status status)
{
    cek_trace *trace = cek__trace_of(stream->device);
    cek__watch *w = stream->watch;
    cek_event *end = NULL;

    if (!watched->is_on)
        return;
    if (status != CEK_OK) { /* a failed queue has no times */
        if (watched->begin != NULL)
            w->idle[w->idle_count++] = watched->begin;
        return;
    }
    if (w->zero == NULL) {
        cek__trace_add(trace, &(cek__trace_entry){ w->line, call, watched->began_ns, cek__trace_now(),
                                                   *cek__trace_said(), cek__trace_order(trace) });
        return;
    }
    end = event_stamp(stream);
    if (end != NULL &&
        pending_add(w, &(pending){ watched->begin, end, call, *cek__trace_said(), cek__trace_order(trace) }))
        return;
    cek__trace_miss(trace);
    w->idle[w->idle_count++] = watched->begin;
    if (end != NULL)
        w->idle[w->idle_count++] = end;
}

void cek__watch_free(cek_stream *stream)
{
    cek__watch *w = stream->watch;

    if (w == NULL)
        return;
    look(stream);
    for (size_t i = 0; i < w->count; i++) {
        CEK__RELEASE(stream->device, event_destroy, w->list[w->first + i].begin);
        CEK__RELEASE(stream->device, event_destroy, w->list[w->first + i].end);
    }
    for (size_t i = 0; i < w->idle_count; i++)
        CEK__RELEASE(stream->device, event_destroy, w->idle[i]);
    if (w->zero != NULL)
        CEK__RELEASE(stream->device, event_destroy, w->zero);
    free(w->idle);
    free(w->list);
    free(w);
    stream->watch = NULL;
}
