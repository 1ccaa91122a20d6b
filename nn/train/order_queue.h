/* order_queue.h - actions that were given out and not taken: first come, first served, or by what forward reads first.
 *
 * Must not know: what an action waits for. */
#ifndef CEK_NN_TRAIN_ORDER_QUEUE_H
#define CEK_NN_TRAIN_ORDER_QUEUE_H

#include "nn/train/order.h"

typedef struct cek__action_queue {
    cek__action *list; /* ring; free() when done */
    size_t capacity, first, count;
} cek__action_queue;

CEK__CHECKED cek_status cek__action_queue_make(cek__action_queue *queue, size_t capacity);
void cek__action_put(cek__action_queue *queue, const cek__action *action); /* there is room */

/* False if there is none. Urgent: of the earliest step, in it the verdict, then of the bucket that forward reads first;
 * with `load` [device], of those alike, the one whose peer has the least; else the first that came. */
bool cek__action_take(cek__action_queue *queue, cek__action *out);
bool cek__action_take_urgent(cek__action_queue *queue, const cek__shards *shards, const size_t *load, cek__action *out);

#endif
