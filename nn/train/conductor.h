/* conductor.h - carries out what the order of a step (order.h) gives out, on all devices at once.
 *
 * Owns: the threads, each device's streams beside the computing one, what is under way on them, the batches and results
 * of the steps that are not collected.
 * Must not know: how bytes travel (exchange.h), how gradients are added (reducer.h), what an update is (optimizer.h),
 * what a batch means (trainer.c).
 *
 * A lone device is served when a step is submitted, on the thread of its crew: everything is queued when submit
 * returns. With several devices each has a thread, which on a device that works beside the host is two: the feeder
 * queues uploads and computation, the porter moves bytes, adds and updates on streams of its own, and looks for what
 * has ended. A thread calls one device, a stream has one thread. What needs another device is enqueued when that was
 * seen to have finished, never before: nobody waits for anybody in a driver. */
#ifndef CEK_NN_TRAIN_CONDUCTOR_H
#define CEK_NN_TRAIN_CONDUCTOR_H

#include "nn/train/running.h"
#include "nn/train/crew.h"
#include "nn/train/optimizer.h"
#include "nn/train/order.h"
#include "nn/train/replica.h"
#include "nn/train/scaler.h"

typedef struct cek__conductor cek__conductor;

typedef struct cek__conductor_options {
    cek__replica *const *replicas; /* [shards->devices]; they and the shards outlive the conductor */
    cek__crew *crew;               /* on whose threads devices are called that have no worker, or for once */
    const cek__shards *shards;
    const cek__rules *rules; /* outlive the conductor */
    size_t depth;            /* steps that may be submitted and not collected */
    bool measured;           /* cek__conductor_times will be asked */
    cek__running *running;   /* gathers what steps add to the model's buffers; NULL: there are none */
    cek__scaler
        *scaler; /* is told of each step that is submitted, and what came of it; NULL: gradients are not scaled */
} cek__conductor_options;

/* Device bytes that it takes on device `index`. */
CEK__CHECKED cek_status cek__conductor_bytes(const cek__conductor_options *options, size_t index, uint64_t *out);
/* What it takes, with what operations beside the plans work in, which is known when they are there. */
CEK__CHECKED cek_status cek__conductor_room(const cek__conductor *conductor, size_t index, uint64_t *out);

CEK__CHECKED cek_status cek__conductor_create(const cek__conductor_options *options, cek__conductor **out);
/* Waits for what is under way. */
void cek__conductor_free(cek__conductor *conductor);

/* A step over shares[device] (rows 0: without that device). `lent`: the samples stay as they are until the step was
 * collected; else they are copied. CEK_NOT_READY while `depth` steps are not collected; the failure of
 * an earlier step. */
CEK__CHECKED cek_status cek__conductor_submit(cek__conductor *conductor, const cek__share *shares,
                                              const cek_step_block *block, bool lent);
/* Waits for the oldest uncollected step: loss and right answers of all devices, added up in their order. A failure is
 * that of the first step that failed, whichever is collected. */
CEK__CHECKED cek_status cek__conductor_collect(cek__conductor *conductor, double *loss, int64_t *correct);
/* Of the step that was collected last, with `measured`: the seconds that each device computed, and from the end of the
 * step before to its own. 0: not known. */
void cek__conductor_times(cek__conductor *conductor, double *seconds, double *period);
size_t cek__conductor_uncollected(const cek__conductor *conductor);

/* hold - the step that is submitted next waits with its summed gradients, which await_sums waits for and for nothing to
 * be under way; release - it goes on, and none is held any more; `apply` false: without updates, so that parameters and
 * what optimizers keep stay as they are. When everything submitted was collected. */
void cek__conductor_hold(cek__conductor *conductor);
CEK__CHECKED cek_status cek__conductor_await_sums(cek__conductor *conductor);
CEK__CHECKED cek_status cek__conductor_release(cek__conductor *conductor, bool apply);

/* Waits until all devices have the parameters of the last step and nothing is under way; of a lone device, until all of
 * it is enqueued. */
CEK__CHECKED cek_status cek__conductor_settle(cek__conductor *conductor);
/* The same, and no device computes any more. */
CEK__CHECKED cek_status cek__conductor_finish(cek__conductor *conductor);

/* When it is settled: the owner's optimizer of a shard, and the stream of its device. */
cek__shard_optimizer *cek__conductor_optimizer(cek__conductor *conductor, size_t shard, cek_stream **stream);

#endif
