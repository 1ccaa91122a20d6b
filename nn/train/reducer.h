/* reducer.h - the sums of one owner: others' gradients added to its own, and how large they are.
 *
 * Owns: the additions' and measures' operations, and the inbox on the owner's device that contributions come into.
 * Must not know: how bytes come from other devices (exchange.h), in which order (order.h), what becomes of a sum
 * (optimizer.h). One thread at a time. */
#ifndef CEK_NN_TRAIN_REDUCER_H
#define CEK_NN_TRAIN_REDUCER_H

#include "nn/train/exchange.h"

typedef struct cek__reducer cek__reducer;

/* Device bytes that the reducer of `owner` will take at most. */
uint64_t cek__reducer_bytes(const cek__shards *shards, cek_dtype type, size_t owner, bool measures);

/* `measures`: cek__reducer_measure will be called. */
CEK__CHECKED cek_status cek__reducer_create(const cek__shards *shards, const cek__replica *replica, cek_dtype type,
                                            size_t owner, bool measures, cek__reducer **out);
/* When its work has finished. */
void cek__reducer_free(cek__reducer *reducer);

/* ADD: enqueues the copy of the peer's gradients and their addition to the owner's (action->first: over them). */
CEK__CHECKED cek_status cek__reducer_add(cek__reducer *reducer, cek__exchange *exchange, const cek__action *action,
                                         cek_stream *stream);
/* MEASURE: enqueues the sum of the squares of the shard's gradient; the number is there when that has finished. */
CEK__CHECKED cek_status cek__reducer_measure(cek__reducer *reducer, size_t shard, cek_stream *stream);
double cek__reducer_squares(const cek__reducer *reducer, size_t shard);

#endif
