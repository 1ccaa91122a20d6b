/* probe.h - how far a device's queues have come: events behind the commands that are outstanding.
 *
 * A plugin tells whether a queue has finished, not that it is coming on; so a stream records an event of its own behind
 * its commands (the last apart, for which the wait itself waits), and a wait looks whether any of the device's has
 * happened. The events are few: where more commands are outstanding, they stand behind every second, fourth, ... of
 * them. Of a long list of commands at least every 16th part is seen to finish, so the list may take 16 times the
 * device's time-out. Where a stream waits for another, the last command there and the first one behind it look like
 * one. Where there is no memory for another there are fewer. An inline device has none: its commands have finished when
 * the call returns. */
#ifndef CEK_CORE_DEVICE_PROBE_H
#define CEK_CORE_DEVICE_PROBE_H

#include <pthread.h>

#include "core/base/status.h"

enum { CEK__PROBES = 32 };

typedef struct cek__probes {
    pthread_mutex_t lock;
    cek_event *events[CEK__PROBES]; /* outstanding, in the order of the queue */
    cek_event *idle[CEK__PROBES];
    unsigned count, idle_count;
    unsigned spacing; /* commands between two events; 0: an event behind each */
    unsigned since;   /* commands behind the last event */
    bool looking;     /* somebody asks events[0], which stays where it is */
} cek__probes;

/* Before the stream's thread enqueues a command: an event behind those before it, where one is due. `call` is the
 * command's, for errors; the command is then not enqueued. */
CEK__CHECKED cek_status cek__probe(cek_stream *stream, const char *call);

/* Counts what has finished, on whatever stream of the device, in device->finished. Threads: any. */
void cek__probes_look(cek_device *device);

void cek__probes_init(cek__probes *probes);
void cek__probes_clear(cek_stream *stream); /* nobody looks any more */

#endif
