/* reducer.h - the sums of one device: others' gradients added to its own.
 *
 * Owns: the additions' operations, and the inboxes on the device that contributions come into.
 * Must not know: how bytes come from other devices (exchange.h), in which order (order.h), what becomes of a sum
 * (optimizer.h). One thread at a time.
 *
 * It has sides, of an inbox each: what is enqueued for one of them is on a stream of its own, so that contributions
 * come in on one while on the other they wait for their addition. All of a shard is on one side. */
#ifndef CEK_NN_TRAIN_REDUCER_H
#define CEK_NN_TRAIN_REDUCER_H

#include "nn/train/exchange.h"

typedef struct cek__reducer cek__reducer;

enum { CEK__REDUCER_SIDES = 2 }; /* one may come in while the other is added: more would wait for the same link */

/* Device bytes that the reducer of a device will take at most. */
uint64_t cek__reducer_bytes(const cek__shards *shards, cek_dtype type, size_t device);
/* What one takes, with what its operations work in. */
uint64_t cek__reducer_room(const cek__reducer *reducer);

/* `sides`: 1 to CEK__REDUCER_SIDES. */
CEK__CHECKED cek_status cek__reducer_create(const cek__shards *shards, const cek__replica *replica, cek_dtype type,
                                            size_t device, size_t sides, cek__reducer **out);
/* When its work has finished. */
void cek__reducer_free(cek__reducer *reducer);

/* ADD: enqueues the copy of the peer's gradients and their addition to the device's (action->first: over them). */
CEK__CHECKED cek_status cek__reducer_add(cek__reducer *reducer, cek__exchange *exchange, const cek__action *action,
                                         size_t side, cek_stream *stream);

#endif
