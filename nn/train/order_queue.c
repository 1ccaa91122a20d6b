/* order_queue.c - see order_queue.h. */
#include "nn/train/order_queue.h"

#include "core/base/alloc.h"

cek_status cek__action_queue_make(cek__action_queue *q, size_t capacity)
{
    q->capacity = capacity ? capacity : 1;
    return cek__calloc(q->capacity, sizeof *q->list, &q->list);
}

static cek__action *at(const cek__action_queue *q, size_t i)
{
    return &q->list[(q->first + i) % q->capacity];
}

void cek__action_put(cek__action_queue *q, const cek__action *a)
{
    *at(q, q->count++) = *a;
}

bool cek__action_take(cek__action_queue *q, cek__action *out)
{
    if (q->count == 0)
        return false;
    *out = *at(q, 0);
    q->first = (q->first + 1) % q->capacity;
    q->count--;
    return true;
}

static bool is_more_urgent(const cek__shards *shards, const size_t *load, const cek__action *a, const cek__action *than)
{
    size_t bucket, other;

    if (a->step != than->step || than->phase == CEK__VERDICT)
        return a->step < than->step;
    if (a->phase == CEK__VERDICT)
        return true;
    bucket = shards->list[a->shard].bucket;
    other = shards->list[than->shard].bucket;
    return bucket > other || (bucket == other && load != NULL && load[a->peer] < load[than->peer]);
}

bool cek__action_take_urgent(cek__action_queue *q, const cek__shards *shards, const size_t *load, cek__action *out)
{
    size_t found = 0;

    for (size_t i = 1; i < q->count; i++)
        if (is_more_urgent(shards, load, at(q, i), at(q, found)))
            found = i;
    for (; found > 0; found--) {
        cek__action moved = *at(q, found);
        *at(q, found) = *at(q, found - 1);
        *at(q, found - 1) = moved;
    }
    return cek__action_take(q, out);
}
