/* order_inside.h - what the files of the order share: its state, and who calls whom.
 *
 *     order.c          events in, answers out; computing
 *     order_gather.c   contributions on their way to the owner, and what becomes of the sum
 *     order_spread.c   new parameters on their way to everybody
 *     order_life.c     made and freed
 *
 * Who makes which transition of a shard:
 *   cek__order_gather    GATHERING, and to HELD, MEASURING or UPDATING when the owner's last contribution was given out
 *   cek__order_release   HELD to MEASURING or UPDATING, all shards at once, in the order in which forward reads them
 *   cek__order_judge     MEASURING to UPDATING, all shards of a step at once, in the order in which forward reads them
 *   cek__order_spread    UPDATING to SPREADING
 *   cek__order_arrived   SPREADING to GATHERING of the next step
 * of what a device has of its sum: cek__order_gather OPEN to WHOLE and WAITING, cek__order_pump WAITING to LEAVING,
 * cek__order_fetched to HERE, cek__order_arrived back to OPEN; and of a device: cek__order_forward lets it into
 * the next segment. */
#ifndef CEK_NN_TRAIN_ORDER_INSIDE_H
#define CEK_NN_TRAIN_ORDER_INSIDE_H

#include "nn/train/order.h"
#include "nn/train/order_queue.h"

typedef enum cek__shard_state { GATHERING, HELD, MEASURING, UPDATING, SPREADING } cek__shard_state;

typedef struct cek__shard_order {
    cek__shard_state state;
    int64_t step;     /* that it is in */
    size_t spreading; /* devices that have not received it yet */
} cek__shard_order;

/* What a device gives to whoever takes it: nothing yet; the sum of its branch, where the taker reaches it; the same,
 * and it waits for a place; it is on its way; it lies in its place. */
typedef enum cek__offer { OPEN, WHOLE, WAITING, LEAVING, HERE } cek__offer;

/* One device's part in one shard's step. */
typedef struct cek__part {
    cek__offer offer;
    size_t
        asked; /* of those from whom it takes, in their order: their contributions were given out, or they have none */
    size_t adding; /* of these, that have not been seen to have ended */
    bool holds;    /* there is something to add to */
    size_t told;   /* of those who give to it, the farthest first: were let to read the new parameters from it */
} cek__part;

/* From one device to another. */
typedef struct cek__channel {
    cek__action_queue waiting; /* FETCHes that wait for a place */
    size_t free;               /* places */
} cek__channel;

struct cek__order {
    const cek__shards *shards;
    size_t devices, depth, credits, segments, ring;
    size_t *reads; /* [segments] */
    bool *reaches; /* [device][other]: reads its memory */
    bool near;     /* everybody reads everybody's */
    bool verdict, failed;
    int64_t submitted, collected;
    int64_t held;               /* the first step that waits with its sums; 0: none does */
    bool *present, *counted;    /* [step % ring][device] */
    int64_t *ready;             /* [device]: buckets finished, counted through all steps */
    size_t *owned;              /* [device]: shards of its own */
    cek__shard_order *shard;    /* [shard] */
    cek__part *parts;           /* [shard][device] */
    int64_t *version;           /* [device][shard]: the step whose parameters it has */
    cek__channel *channels;     /* [from][to] */
    cek__action_queue *senders; /* [owner]: updated shards that wait for a place to be sent from */
    size_t *send_free;          /* [owner] */
    cek__action_queue *readers; /* [device]: RECEIVEs from others' memory that wait for their turn */
    size_t *reading, *read;     /* [device] such RECEIVEs under way: of the device, and out of its memory */
    cek__action_queue *lanes;   /* [device][lane] */
    int64_t *forward_step;      /* [device]: the step that it is let into next */
    size_t *forward_segment;    /* [device]: and its segment */
    size_t measured;            /* shards of the step that is being measured */
};

static inline void cek__order_give(cek__order *order, cek__lane lane, cek__action a)
{
    cek__action_put(&order->lanes[a.device * CEK__LANE_COUNT + lane], &a);
}

/* ---- what is known ---- */

static inline bool cek__order_present(const cek__order *order, int64_t step, size_t device)
{
    return order->present[(size_t)(step % (int64_t)order->ring) * order->devices + device];
}

static inline bool cek__order_is_ready(const cek__order *order, int64_t step, size_t device, size_t bucket)
{
    return order->ready[device] > (step - 1) * (int64_t)order->shards->buckets + (int64_t)bucket;
}

static inline bool cek__order_reaches(const cek__order *order, size_t device, size_t other)
{
    return order->reaches[device * order->devices + other];
}

static inline cek__part *cek__order_part(const cek__order *order, size_t shard, size_t device)
{
    return &order->parts[shard * order->devices + device];
}

/* ---- order.c ---- */

/* Lets the device into the segments whose parameters it has. */
void cek__order_forward(cek__order *order, size_t device);

/* ---- order_gather.c ---- */

/* Gives out the contributions that have come to the device, in their order; with the last its own goes on. */
void cek__order_gather(cek__order *order, size_t shard, size_t device);
void cek__order_fetched(cek__order *order, const cek__action *fetch);
void cek__order_added(cek__order *order, const cek__action *add);
/* A shard was measured. With the last every owner hears the verdict, then updates what forward reads first. */
void cek__order_judge(cek__order *order, int64_t step);

/* ---- order_spread.c ---- */

/* A shard was updated. */
void cek__order_spread(cek__order *order, size_t shard);
/* It lies in its place. */
void cek__order_sent(cek__order *order, size_t shard);
void cek__order_received(cek__order *order, const cek__action *receive);

#endif
