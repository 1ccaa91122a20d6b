/* stream.h - queues and events of the plugins as streams and markers. */
#ifndef CEK_CORE_DEVICE_STREAM_H
#define CEK_CORE_DEVICE_STREAM_H

#include "core/device/call.h"
#include "core/device/device.h"
#include "core/device/probe.h"
#include "core/device/watch.h"

struct cek_stream {
    cek_device *device;
    cek_queue *queue;
    cek_event *fence;        /* recorded where another stream of the device has to wait for this one */
    cek_stream *prev, *next; /* in the device's list */
    bool listed;             /* in the list */
    bool is_order;           /* the device's default stream */
    unsigned pins;           /* threads that look at it as they walk the list: it is not freed before they let go */
    bool closing;            /* being freed: no new pins */
    cek__probes probes;
    const char *name;  /* of its line in a trace; NULL: none */
    cek__watch *watch; /* of a trace; NULL until it has a command there */
};

/* A call whose first argument is the stream's queue. A failure that stuck to the queue is told with the text that the
 * plugin keeps with it. */
#define CEK__STREAM_CALL(stream, slot, ...)                                                                    \
    (cek__call_enter((stream)->device, #slot)                                                                  \
         ? cek__stream_call_end((stream), #slot, (stream)->device->plugin->slot((stream)->queue, __VA_ARGS__)) \
         : CEK_DEVICE_LOST)
CEK__CHECKED cek_status cek__stream_call_end(const cek_stream *stream, const char *call, cek_status status);

/* The same of a call that enqueues work, of which waits want to see that it finishes (probe.h) and a trace
 * when it ran. */
#define CEK__STREAM_COMMAND(stream, slot, ...)                         \
    ({                                                                 \
        cek_status enqueued_ = cek__probe((stream), #slot);            \
        if (enqueued_ == CEK_OK) {                                     \
            cek__watched watched_ = cek__watch_begin((stream));        \
            enqueued_ = CEK__STREAM_CALL((stream), slot, __VA_ARGS__); \
            cek__watch_end((stream), &watched_, #slot, enqueued_);     \
        }                                                              \
        enqueued_;                                                     \
    })

/* As cek_op_make and cek_op_free, for what is the device's own: it does not keep the engine. */
CEK__CHECKED cek_status cek__op_make(cek_device *device, const cek_op_desc *desc, cek_op_info *info, cek_op **out);
void cek__op_free(cek_device *device, cek_op *op);

CEK__CHECKED cek_status cek__stream_create(cek_device *device, bool is_order, cek_stream **out);

/* Walks the streams of a device, each pinned until the walk goes on: NULL gives the first, and the last gives NULL. */
cek_stream *cek__stream_next(cek_device *device, cek_stream *stream);

/* Waits for all streams but the default one; the first failure. */
CEK__CHECKED cek_status cek__streams_sync(cek_device *device);

/* After a failure, whose text stays: waits for what is still queued. False if the device is lost,
 * when host memory that was given to it must never be freed. */
bool cek__stream_quiesce(cek_stream *stream);

/* Work queued on `stream` later waits for all that is queued on `before` now. Across devices the calling thread
 * waits. */
CEK__CHECKED cek_status cek__stream_after(cek_stream *stream, cek_stream *before);

#endif
