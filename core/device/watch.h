/* watch.h - a stream's commands in a trace: when each began and ended.
 *
 * On an inline device from call to return; elsewhere between two events of the device, on its clock, which is tied to
 * the host's when the stream has its first command. The default stream of a device that is not inline has no clock and
 * is not watched. Owns: those events. Must not know: what a command is for. */
#ifndef CEK_CORE_DEVICE_WATCH_H
#define CEK_CORE_DEVICE_WATCH_H

#include "core/base/trace.h"
#include "core/device/engine.h"

typedef struct cek__watch cek__watch; /* its stream's thread's alone */

static inline cek_trace *cek__trace_of(const cek_device *device)
{
    return atomic_load_explicit(&device->engine->trace, memory_order_acquire);
}

/* Around the call that enqueues a command; `status` is what it answered. */
typedef struct cek__watched {
    bool is_on;
    int64_t began_ns;
    cek_event *begin;
} cek__watched;
cek__watched cek__watch_begin(cek_stream *stream);
void cek__watch_end(cek_stream *stream, const cek__watched *watched, const char *call, cek_status status);

/* With the stream, once nothing runs there any more: what has finished goes into the record. */
void cek__watch_free(cek_stream *stream);

#endif
