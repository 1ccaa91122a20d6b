/* reducer.h - sums the replicas' gradients, bucket by bucket, while backward still runs, and updates the parameters.
 *
 * Each bucket is cut into one shard per device (shares.h); the owner of a shard adds up everybody's
 * gradients in the order of the devices, applies the optimizer, and copies the new parameters to
 * the others. One writer per shard keeps the replicas equal byte for byte although devices round
 * differently.
 *
 * Owns: the order of summation, optimizer state, the inboxes. Knows devices only through streams
 * and markers; never looks inside a gradient.
 * Threads: arrive() and finish() from each replica's thread; everything else from one thread while no replica runs. */
#ifndef CEK_NN_TRAIN_REDUCER_H
#define CEK_NN_TRAIN_REDUCER_H

#include "cekernels/nn.h"
#include "core/base/export.h"
#include "nn/model/layout.h"
#include "nn/train/replica.h"

typedef struct cek__reducer cek__reducer;

/* Device bytes that the reducer will take on owner `owner` of `count`. */
uint64_t cek__reducer_bytes(const cek__layout *layout, const cek_optimizer *optimizer, size_t owner, size_t count);

/* `optimizer` is resolved (optimizer.h); replicas and layout outlive the reducer. */
CEK__CHECKED cek_status cek__reducer_create(const cek__layout *layout, cek__replica *const *replicas, size_t count,
                                            const cek_optimizer *optimizer, cek__reducer **out);
void cek__reducer_free(cek__reducer *reducer);

/* Before a step: replicas with rows[i] = 0 contribute no gradient. */
void cek__reducer_begin(cek__reducer *reducer, const int64_t *rows);

/* Replica `member` has queued the gradients of all buckets below `buckets`. Reduces what is
 * complete; does not wait for others. */
CEK__CHECKED cek_status cek__reducer_arrive(cek__reducer *reducer, size_t member, size_t buckets);
/* Reduces the rest of `member`'s shards as the others arrive. CEK_CANCELLED after cek__reducer_fail. */
CEK__CHECKED cek_status cek__reducer_finish(cek__reducer *reducer, size_t member);
/* Some replica cannot go on: wakes all that wait for it. */
void cek__reducer_fail(cek__reducer *reducer);

/* After a step: each replica's later work waits for the parameters that the others have copied to it. */
CEK__CHECKED cek_status cek__reducer_settle(cek__reducer *reducer);

/* The last step's summed gradient of elements [first, first + count) of a bucket, from the shards' owners; waits. */
CEK__CHECKED cek_status cek__reducer_read_gradient(cek__reducer *reducer, size_t bucket, uint64_t first, uint64_t count,
                                                   void *dst);

#endif
