/* order_spread.c - new parameters of a shard on their way from its owner to everybody (see order_inside.h).
 *
 * Through places: the owner sends once, all others take it from there, each over a link of its own. From memory to
 * memory the link out of the owner is everybody's: a reader has few copies under way, so that which comes next is
 * chosen late, from where the fewest read; and a branched shard (branches.h) goes the way back
 * that contributions came. */
#include <string.h>

#include "nn/train/branches.h"
#include "nn/train/order_inside.h"

static size_t owner_of(const cek__order *order, size_t shard)
{
    return order->shards->list[shard].owner;
}

/* ---- through places ---- */

static void send_next(cek__order *order, size_t owner)
{
    cek__action a;

    while (order->send_free[owner] > 0 && cek__action_take_urgent(&order->senders[owner], order->shards, NULL, &a)) {
        order->send_free[owner]--;
        cek__order_give(order, CEK__LANE_EXCHANGE, a);
    }
}

static bool is_sent(const cek__order *order, size_t owner)
{
    for (size_t r = 0; r < order->devices; r++)
        if (r != owner && !cek__order_reaches(order, r, owner))
            return true;
    return false;
}

static cek__action receive(const cek__order *order, size_t s, size_t device, size_t peer)
{
    return (
        cek__action){ .phase = CEK__RECEIVE, .device = device, .peer = peer, .shard = s, .step = order->shard[s].step };
}

void cek__order_sent(cek__order *order, size_t s)
{
    size_t owner = owner_of(order, s);

    for (size_t r = 0; r < order->devices; r++)
        if (r != owner && !cek__order_reaches(order, r, owner))
            cek__order_give(order, CEK__LANE_EXCHANGE, receive(order, s, r, owner));
}

/* ---- from memory to memory ---- */

static void read_next(cek__order *order, size_t device)
{
    cek__action a;

    while (order->reading[device] < order->credits &&
           cek__action_take_urgent(&order->readers[device], order->shards, order->read, &a)) {
        order->reading[device]++;
        order->read[a.peer]++;
        cek__order_give(order, CEK__LANE_EXCHANGE, a);
    }
}

static void let_read(cek__order *order, size_t s, size_t device, size_t peer)
{
    cek__action a = receive(order, s, device, peer);

    cek__action_put(&order->readers[device], &a);
    read_next(order, device);
}

static bool goes_back(const cek__order *order, size_t s)
{
    return order->near && order->shards->list[s].branched;
}

/* One at a time, first who has most to tell it to. */
static void tell_next(cek__order *order, size_t s, size_t device)
{
    cek__part *part = cek__order_part(order, s, device);
    size_t givers = cek__branch_givers(order->shards, s, device);

    if (part->told < givers)
        let_read(order, s, cek__branch_giver(order->shards, s, device, givers - ++part->told), device);
}

/* ---- all of it ---- */

/* Everybody has it: the next step's contributions may come. */
static void close_step(cek__order *order, size_t s)
{
    cek__shard_order *shard = &order->shard[s];
    size_t owner = owner_of(order, s);

    *shard = (cek__shard_order){ .state = GATHERING, .step = shard->step + 1 };
    memset(cek__order_part(order, s, 0), 0, order->devices * sizeof(cek__part));
    if (is_sent(order, owner)) {
        order->send_free[owner]++;
        send_next(order, owner);
    }
    for (size_t r = 0; r < order->devices; r++)
        cek__order_gather(order, s, r);
}

static void arrived(cek__order *order, size_t s, size_t device)
{
    cek__shard_order *shard = &order->shard[s];

    order->version[device * order->shards->count + s] = shard->step;
    if (goes_back(order, s))
        tell_next(order, s, device);
    if (--shard->spreading == 0)
        close_step(order, s);
    cek__order_forward(order, device);
}

void cek__order_spread(cek__order *order, size_t s)
{
    cek__shard_order *shard = &order->shard[s];
    size_t owner = owner_of(order, s);

    shard->state = SPREADING;
    shard->spreading = order->devices;
    if (is_sent(order, owner)) {
        cek__action_put(&order->senders[owner],
                        &(cek__action){ .phase = CEK__SEND, .device = owner, .shard = s, .step = shard->step });
        send_next(order, owner);
    }
    for (size_t r = 0; r < order->devices && !goes_back(order, s); r++)
        if (r != owner && cek__order_reaches(order, r, owner))
            let_read(order, s, r, owner);
    arrived(order, s, owner);
}

void cek__order_received(cek__order *order, const cek__action *a)
{
    if (cek__order_reaches(order, a->device, a->peer)) {
        order->reading[a->device]--;
        order->read[a->peer]--;
        read_next(order, a->device);
    }
    if (goes_back(order, a->shard))
        tell_next(order, a->shard, a->peer);
    arrived(order, a->shard, a->device);
}
