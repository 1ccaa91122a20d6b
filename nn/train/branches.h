/* branches.h - through whom the contributions to a shard come to its owner.
 *
 * Devices stand in a ring. To the owner of a large shard all others give theirs themselves, the next in the ring first,
 * so that at one time each gives to another. A small shard's meet on the way: each device adds those of its branch to
 * its own and gives the sum, so that n devices take log2(n) rounds rather than n - 1. Such a branch is the devices
 * behind it in the ring, up to the next branch; of n devices q places behind the owner, q gives to the one at q with
 * its lowest bit cleared.
 *
 * Whoever takes contributions takes the nearest in the ring first, of every shard, so places that are taken by one
 * shard are never waited for by a nearer one's: what waits, waits for a shorter way.
 *
 * Pure arithmetic: knows no device, no step, who has samples. */
#ifndef CEK_NN_TRAIN_BRANCHES_H
#define CEK_NN_TRAIN_BRANCHES_H

#include "nn/train/shards.h"

/* Who takes the contribution of `device`, which is not the owner. */
CEK__SHARED size_t cek__branch_taker(const cek__shards *shards, size_t shard, size_t device);
/* From whom `device` takes contributions: the index-th, the nearest first; SIZE_MAX: there are no more. */
CEK__SHARED size_t cek__branch_giver(const cek__shards *shards, size_t shard, size_t device, size_t index);
CEK__SHARED size_t cek__branch_givers(const cek__shards *shards, size_t shard, size_t device);

#endif
