/* exchange.h - bytes between the owners of shards and everybody else.
 *
 * Owns: which way bytes go from one device to another, and the page-locked places in host memory through which they
 * go where neither device reaches the other's memory. Ways, best first: the reader's plugin copies from the other's
 * memory; the reader uploads from the other's memory where that is the host's, page-locked for it where its driver
 * does that; the other downloads into a place (fetch, send) and the reader uploads from there.
 * Must not know: what is added or updated, in what order (order.h), whose turn it is (conductor.h).
 * Threads: assign and release one at a time; the rest from the thread of the device that acts. */
#ifndef CEK_NN_TRAIN_EXCHANGE_H
#define CEK_NN_TRAIN_EXCHANGE_H

#include "nn/train/order.h"
#include "nn/train/replica.h"

typedef struct cek__exchange cek__exchange;

/* `shards` and replicas outlive the exchange. `credits`: fetches under way between two devices, sends of one owner. */
CEK__CHECKED cek_status cek__exchange_create(const cek__shards *shards, cek__replica *const *replicas, size_t credits,
                                             cek__exchange **out);
/* When no device that is well reads another's memory any more, and before the replicas, whose memory is page-locked
 * until then. `idle`: no device uses the places either; else they are given up rather than freed. */
void cek__exchange_free(cek__exchange *exchange, bool idle);

/* [a * devices + b]: a reads b's memory. As in cek__order_options. */
const bool *cek__exchange_reaches(const cek__exchange *exchange);

/* Before a FETCH or SEND is carried out: it gets a place, which the order has seen to be free. */
void cek__exchange_assign(cek__exchange *exchange, const cek__action *action);
/* After an ADD or RECEIVE has ended: its place may be used again. */
void cek__exchange_release(cek__exchange *exchange, const cek__action *action);

/* FETCH, SEND: enqueues the download of the shard's gradients or parameters. */
CEK__CHECKED cek_status cek__exchange_download(cek__exchange *exchange, const cek__action *action, cek_stream *out);
/* ADD: enqueues the copy of `count` of the peer's gradients, from element `first` of the shard, to `dst`. */
CEK__CHECKED cek_status cek__exchange_gradients(cek__exchange *exchange, const cek__action *action, cek_stream *in,
                                                cek_ref dst, uint64_t first, uint64_t count);
/* RECEIVE: enqueues the copy of the owner's parameters over the device's own: of those with a rounded copy, that. */
CEK__CHECKED cek_status cek__exchange_parameters(cek__exchange *exchange, const cek__action *action, cek_stream *in);

#endif
