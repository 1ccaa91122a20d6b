/* stream.h - queues and events of the plugins as streams and markers. */
#ifndef CEK_CORE_DEVICE_STREAM_H
#define CEK_CORE_DEVICE_STREAM_H

#include "core/device/device.h"

struct cek_stream {
    cek_device *device;
    cek_queue *queue;
    cek_event *fence;         /* recorded where another stream of the device has to wait for this one */
    cek_stream *prev, *next;  /* in the device's list, if listed */
    bool listed;
};

/* `listed`: cek_device_sync waits for it through the device's list. */
CEK__CHECKED cek_status cek__stream_create(cek_device *device, bool listed, cek_stream **out);

/* Waits for all listed streams; the first failure. */
CEK__CHECKED cek_status cek__streams_sync(cek_device *device);

/* Work queued on `stream` later waits for all that is queued on `before` now. Across devices the calling thread
 * waits. */
CEK__CHECKED cek_status cek__stream_after(cek_stream *stream, cek_stream *before);

#endif
