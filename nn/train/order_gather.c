/* order_gather.c - contributions on their way to the owner of a shard, and what becomes of the
 * sum (see order_inside.h).
 *
 * Every device does the same: it waits for its own gradients, adds what those give who give to it (branches.h), and
 * gives the sum on when the additions were seen to have ended. The owner is the one who gives to nobody. */
#include "nn/train/branches.h"
#include "nn/train/order_inside.h"

static size_t owner_of(const cek__order *order, size_t shard)
{
    return order->shards->list[shard].owner;
}

/* The device, or one that gives through it, has samples. */
static bool contributes(const cek__order *order, size_t s, size_t device)
{
    size_t giver;

    if (cek__order_present(order, order->shard[s].step, device))
        return true;
    for (size_t i = 0; (giver = cek__branch_giver(order->shards, s, device, i)) != SIZE_MAX; i++)
        if (contributes(order, s, giver))
            return true;
    return false;
}

static bool has_come(const cek__order *order, size_t s, size_t taker, size_t giver)
{
    return cek__order_part(order, s, giver)->offer == (cek__order_reaches(order, taker, giver) ? WHOLE : HERE);
}

static void update(cek__order *order, size_t s)
{
    order->shard[s].state = UPDATING;
    cek__order_give(
        order, CEK__LANE_EXCHANGE,
        (cek__action){ .phase = CEK__UPDATE, .device = owner_of(order, s), .shard = s, .step = order->shard[s].step });
}

/* A sum is complete, and nobody wants to see it first. */
static void go_on(cek__order *order, size_t s)
{
    if (!order->verdict) {
        update(order, s);
        return;
    }
    order->shard[s].state = MEASURING;
    cek__order_give(
        order, CEK__LANE_EXCHANGE,
        (cek__action){ .phase = CEK__MEASURE, .device = owner_of(order, s), .shard = s, .step = order->shard[s].step });
}

static void summed(cek__order *order, size_t s)
{
    if (order->held > 0 && order->shard[s].step >= order->held)
        order->shard[s].state = HELD;
    else
        go_on(order, s);
}

/* Lets contributions of `from` leave for `to`, while there is room. */
static void pump(cek__order *order, size_t from, size_t to)
{
    cek__channel *c = &order->channels[from * order->devices + to];
    cek__action fetch;

    while (c->free > 0 && cek__action_take_urgent(&c->waiting, order->shards, NULL, &fetch)) {
        c->free--;
        cek__order_part(order, fetch.shard, from)->offer = LEAVING;
        cek__order_give(order, CEK__LANE_EXCHANGE, fetch);
    }
}

/* All that goes through the device was added up. */
static void offer(cek__order *order, size_t s, size_t device)
{
    size_t taker = cek__branch_taker(order->shards, s, device);
    cek__part *part = cek__order_part(order, s, device);

    if (cek__order_reaches(order, taker, device)) {
        part->offer = WHOLE;
        cek__order_gather(order, s, taker);
        return;
    }
    part->offer = WAITING;
    cek__action_put(
        &order->channels[device * order->devices + taker].waiting,
        &(cek__action){
            .phase = CEK__FETCH, .device = device, .peer = taker, .shard = s, .step = order->shard[s].step });
    pump(order, device, taker);
}

/* The next that comes to the device is added there. */
static void add(cek__order *order, size_t s, size_t device, size_t giver)
{
    cek__part *part = cek__order_part(order, s, device);

    cek__order_give(order, CEK__LANE_EXCHANGE,
                    (cek__action){ .phase = CEK__ADD,
                                   .device = device,
                                   .peer = giver,
                                   .shard = s,
                                   .step = order->shard[s].step,
                                   .first = !part->holds });
    part->holds = true;
    part->adding++;
}

void cek__order_gather(cek__order *order, size_t s, size_t device)
{
    const cek__shard_order *shard = &order->shard[s];
    cek__part *part = cek__order_part(order, s, device);
    size_t giver;

    if (shard->state != GATHERING || shard->step > order->submitted || part->offer != OPEN)
        return;
    if (cek__order_present(order, shard->step, device)) {
        if (!cek__order_is_ready(order, shard->step, device, order->shards->list[s].bucket))
            return;
        part->holds = true;
    }
    for (; (giver = cek__branch_giver(order->shards, s, device, part->asked)) != SIZE_MAX; part->asked++) {
        if (!contributes(order, s, giver))
            continue;
        if (!has_come(order, s, device, giver))
            return;
        add(order, s, device, giver);
    }
    if (device == owner_of(order, s))
        summed(order, s);
    else if (part->holds && part->adding == 0)
        offer(order, s, device);
}

void cek__order_hold(cek__order *order)
{
    order->held = order->submitted + 1;
}

void cek__order_release(cek__order *order)
{
    order->held = 0;
    for (size_t b = order->shards->buckets; !order->failed && b-- > 0;)
        for (size_t s = order->shards->of_bucket[b]; s < order->shards->of_bucket[b + 1]; s++)
            if (order->shard[s].state == HELD)
                go_on(order, s);
}

bool cek__order_holds(const cek__order *order)
{
    if (order->failed)
        return false;
    for (size_t s = 0; s < order->shards->count; s++) {
        if (order->shard[s].state != HELD)
            return false;
        for (size_t d = 0; d < order->devices; d++)
            if (cek__order_part(order, s, d)->adding > 0)
                return false;
    }
    return true;
}

void cek__order_fetched(cek__order *order, const cek__action *a)
{
    cek__order_part(order, a->shard, a->device)->offer = HERE;
    cek__order_gather(order, a->shard, a->peer);
}

void cek__order_added(cek__order *order, const cek__action *a)
{
    cek__order_part(order, a->shard, a->device)->adding--;
    if (!cek__order_reaches(order, a->device, a->peer)) {
        order->channels[a->peer * order->devices + a->device].free++;
        pump(order, a->peer, a->device);
    }
    cek__order_gather(order, a->shard, a->device);
}

void cek__order_judge(cek__order *order, int64_t step)
{
    if (++order->measured < order->shards->count)
        return;
    order->measured = 0;
    for (size_t o = 0; o < order->devices; o++)
        if (order->owned[o] > 0)
            cek__order_give(order, CEK__LANE_EXCHANGE,
                            (cek__action){ .phase = CEK__VERDICT, .device = o, .step = step });
    for (size_t b = order->shards->buckets; b-- > 0;)
        for (size_t s = order->shards->of_bucket[b]; s < order->shards->of_bucket[b + 1]; s++)
            update(order, s);
}
