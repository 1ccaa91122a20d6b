/* order.c - events in, answers out; computing (see order.h and order_inside.h). */
#include "nn/train/order.h"

#include "nn/train/order_inside.h"

/* ---- computing ---- */

static bool has_version(const cek__order *order, size_t device, size_t bucket, int64_t step)
{
    const size_t *of_bucket = order->shards->of_bucket;

    for (size_t s = of_bucket[bucket]; s < of_bucket[bucket + 1]; s++)
        if (order->version[device * order->shards->count + s] < step)
            return false;
    return true;
}

static bool may_enter(const cek__order *order, size_t device, int64_t step, size_t segment)
{
    for (size_t b = order->reads[segment]; b < order->shards->buckets; b++)
        if (!has_version(order, device, b, step - 1))
            return false;
    return true;
}

void cek__order_forward(cek__order *order, size_t device)
{
    int64_t *step = &order->forward_step[device];
    size_t *segment = &order->forward_segment[device];

    while (*step <= order->submitted) {
        if (!cek__order_present(order, *step, device)) {
            ++*step;
            continue;
        }
        if (!may_enter(order, device, *step, *segment))
            return;
        cek__order_give(order, CEK__LANE_COMPUTE,
                        (cek__action){ .phase = CEK__FORWARD, .device = device, .step = *step, .segment = *segment });
        if (++*segment < order->segments)
            continue;
        cek__order_give(order, CEK__LANE_COMPUTE,
                        (cek__action){ .phase = CEK__BACKWARD, .device = device, .step = *step });
        *segment = 0;
        ++*step;
    }
}

/* ---- events ---- */

/* Steps without samples are over as soon as the device has finished those before. */
static void pass_absent(cek__order *order, size_t device)
{
    int64_t buckets = (int64_t)order->shards->buckets;

    if (buckets == 0)
        return;
    while (order->ready[device] % buckets == 0 && order->ready[device] / buckets < order->submitted &&
           !cek__order_present(order, order->ready[device] / buckets + 1, device))
        order->ready[device] += buckets;
}

bool cek__order_submit(cek__order *order, const bool *present)
{
    size_t at;

    if (order->failed || cek__order_uncollected(order) >= order->depth)
        return false;
    order->submitted++;
    at = (size_t)(order->submitted % (int64_t)order->ring) * order->devices;
    for (size_t r = 0; r < order->devices; r++) {
        order->present[at + r] = present[r];
        order->counted[at + r] = !present[r];
    }
    for (size_t r = 0; r < order->devices; r++) {
        if (present[r])
            cek__order_give(order, CEK__LANE_COMPUTE,
                            (cek__action){ .phase = CEK__UPLOAD, .device = r, .step = order->submitted });
        pass_absent(order, r);
        cek__order_forward(order, r);
    }
    return true;
}

static void gather_bucket(cek__order *order, size_t device, size_t bucket)
{
    for (size_t s = order->shards->of_bucket[bucket]; s < order->shards->of_bucket[bucket + 1]; s++)
        cek__order_gather(order, s, device);
}

void cek__order_ready(cek__order *order, size_t device, int64_t step, size_t buckets)
{
    int64_t all = (int64_t)order->shards->buckets, before = order->ready[device];
    int64_t now = (step - 1) * all + (int64_t)buckets;

    if (order->failed || now <= before)
        return;
    order->ready[device] = now;
    pass_absent(order, device);
    for (int64_t b = now; b-- > before;) /* of places, what forward reads first has the first */
        gather_bucket(order, device, (size_t)(b % all));
}

void cek__order_done(cek__order *order, const cek__action *a)
{
    if (order->failed)
        return;
    switch (a->phase) {
    case CEK__FETCH: cek__order_fetched(order, a); break;
    case CEK__ADD: cek__order_added(order, a); break;
    case CEK__MEASURE: cek__order_judge(order, a->step); break;
    case CEK__UPDATE: cek__order_spread(order, a->shard); break;
    case CEK__SEND: cek__order_sent(order, a->shard); break;
    case CEK__RECEIVE: cek__order_received(order, a); break;
    default: break;
    }
}

void cek__order_counted(cek__order *order, size_t device, int64_t step)
{
    order->counted[(size_t)(step % (int64_t)order->ring) * order->devices + device] = true;
}

void cek__order_fail(cek__order *order)
{
    order->failed = true;
    for (size_t i = 0; i < order->devices * CEK__LANE_COUNT; i++)
        order->lanes[i].count = 0;
}

/* ---- answers ---- */

bool cek__order_next(cek__order *order, size_t device, cek__lane lane, cek__action *out)
{
    cek__action_queue *q = &order->lanes[device * CEK__LANE_COUNT + lane];

    return lane == CEK__LANE_COMPUTE ? cek__action_take(q, out) : cek__action_take_urgent(q, order->shards, NULL, out);
}

bool cek__order_has(const cek__order *order, size_t device, cek__lane lane)
{
    return order->lanes[device * CEK__LANE_COUNT + lane].count > 0;
}

bool cek__order_has_result(const cek__order *order)
{
    size_t at = (size_t)((order->collected + 1) % (int64_t)order->ring) * order->devices;

    if (order->collected == order->submitted)
        return false;
    for (size_t r = 0; r < order->devices; r++)
        if (!order->counted[at + r])
            return false;
    return true;
}

bool cek__order_collect(cek__order *order)
{
    if (!cek__order_has_result(order))
        return false;
    order->collected++;
    return true;
}

size_t cek__order_uncollected(const cek__order *order)
{
    return (size_t)(order->submitted - order->collected);
}

bool cek__order_settled(const cek__order *order)
{
    if (order->failed)
        return false;
    for (size_t s = 0; s < order->shards->count; s++)
        if (order->shard[s].step <= order->submitted)
            return false;
    return true;
}
