/* host_waits.h - a host that waits behind each bucket: two devices whose feeders, having queued a segment of backward,
 * sleep until all that others have for them of its buckets has come over the link. In front of the tables of both; for
 * models of two buckets. */
#ifndef CEK_TESTS_UNIT_HOST_WAITS_H
#define CEK_TESTS_UNIT_HOST_WAITS_H

#include <pthread.h>

#include "core/device/device.h"
#include "tests/suite.h"

/* Stretches of a step that is recorded: forward, then backward, a bucket each. The last begins when the first
 * bucket is there. */
enum { WAITED_LAST = 3, WAITED_DEVICES = 2, WAITED_QUEUES = 8 };

typedef struct waited_device {
    cek_dev *dev;
    pthread_t feeder;
    size_t runs;            /* stretches of its step that were queued */
    uint64_t arrived_bytes; /* over the link and not by the feeder, since the step began */
    cek_queue *queues[WAITED_QUEUES];
    bool is_in[WAITED_QUEUES]; /* something arrives there */
    size_t queue_count;
} waited_device;

static struct {
    cek_plugin table, own;
    pthread_mutex_t lock;
    pthread_cond_t arrival;
    waited_device devices[WAITED_DEVICES + 1]; /* the last is none */
    uint64_t first_bytes;                      /* of the first bucket */
    size_t waits;
} waited = { .lock = PTHREAD_MUTEX_INITIALIZER, .arrival = PTHREAD_COND_INITIALIZER };

static waited_device *waited_of(const cek_queue *queue, size_t *index)
{
    for (waited_device *d = waited.devices; d < waited.devices + WAITED_DEVICES; d++)
        for (*index = 0; *index < d->queue_count; ++*index)
            if (d->queues[*index] == queue)
                return d;
    ck_abort_msg("a queue of neither device");
}

static cek_status waited_queue_create(cek_dev *dev, const cek_queue_desc *desc, cek_queue **out)
{
    cek_status st = waited.own.queue_create(dev, desc, out);
    waited_device *d = waited.devices;

    pthread_mutex_lock(&waited.lock);
    while (d->dev != dev && d->dev != NULL)
        d++;
    ck_assert(d < waited.devices + WAITED_DEVICES);
    d->dev = dev;
    ck_assert_uint_lt(d->queue_count, WAITED_QUEUES);
    d->queues[d->queue_count++] = *out;
    pthread_mutex_unlock(&waited.lock);
    return st;
}

static cek_status waited_upload(cek_queue *queue, cek_ref dst, const void *src, uint64_t bytes)
{
    cek_status st = waited.own.upload(queue, dst, src, bytes);
    size_t index;

    pthread_mutex_lock(&waited.lock);
    waited_device *d = waited_of(queue, &index);
    if (d->runs > 0 && !pthread_equal(d->feeder, pthread_self())) {
        d->arrived_bytes += bytes;
        d->is_in[index] = true;
        pthread_cond_broadcast(&waited.arrival);
    }
    pthread_mutex_unlock(&waited.lock);
    return st;
}

/* The result is cleared for the next step: this one is queued. */
static cek_status waited_fill(cek_queue *queue, cek_ref dst, uint32_t pattern, uint32_t pattern_bytes, uint64_t bytes)
{
    size_t index;

    pthread_mutex_lock(&waited.lock);
    waited_of(queue, &index)->runs = 0;
    pthread_mutex_unlock(&waited.lock);
    return waited.own.fill(queue, dst, pattern, pattern_bytes, bytes);
}

static cek_status waited_run(cek_queue *queue, cek_cmdbuf *cmdbuf)
{
    size_t index;

    pthread_mutex_lock(&waited.lock);
    waited_device *d = waited_of(queue, &index);
    if (d->runs == 0) {
        d->feeder = pthread_self();
        d->arrived_bytes = 0;
    }
    if (d->runs == WAITED_LAST) {
        waited.waits++;
        while (d->arrived_bytes < waited.first_bytes)
            pthread_cond_wait(&waited.arrival, &waited.lock);
        for (size_t i = 0; i < d->queue_count; i++) {
            pthread_mutex_unlock(&waited.lock);
            if (d->is_in[i])
                ck_assert_int_eq(waited.own.queue_sync(d->queues[i], CEK_FOREVER), CEK_OK);
            pthread_mutex_lock(&waited.lock);
        }
    }
    d->runs++;
    pthread_mutex_unlock(&waited.lock);
    return waited.own.cmdbuf_run(queue, cmdbuf);
}

/* Before anything is made of the devices. It waits once every stretch is recorded. */
static inline void waited_wrap(cek_device *const *devices, uint64_t first_bytes)
{
    waited.table = waited.own = *devices[0]->plugin;
    waited.table.queue_create = waited_queue_create;
    waited.table.upload = waited_upload;
    waited.table.fill = waited_fill;
    waited.table.cmdbuf_run = waited_run;
    waited.first_bytes = first_bytes;
    for (size_t i = 0; i < WAITED_DEVICES; i++)
        devices[i]->plugin = &waited.table;
}

#endif
