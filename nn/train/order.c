/* order.c - see order.h.
 *
 * Who makes which transition of a shard:
 *   gather()   GATHERING, and to MEASURING or UPDATING when the last contribution was given out
 *   judge()    MEASURING to UPDATING, all shards of a step at once, in the order in which forward reads them
 *   spread()   UPDATING to SPREADING
 *   arrived()  SPREADING to GATHERING of the next step
 * and of a device: forward() lets it into the next segment, pump() lets the next contribution leave it. */
#include "nn/train/order.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/status.h"
#include "nn/train/order_queue.h"

typedef enum state { GATHERING, MEASURING, JUDGED, UPDATING, SPREADING } state;

typedef struct shard_state {
    state state;
    int64_t step;       /* that it is in */
    size_t contributed; /* contributions that were given out, counted in the owner's order of devices */
    bool summed;        /* one of them was: there is something to add to */
    size_t spreading;   /* devices that have not received it yet */
} shard_state;

/* From one device to the owner of shards: contributions leave step by step. */
typedef struct channel {
    int64_t step;
    size_t given; /* of the owner's shards, in this step */
    size_t free;  /* places */
} channel;

/* What one device has added to a shard. */
typedef enum contribution { NOT_GIVEN, LEAVING, FETCHED } contribution;

struct cek__order {
    const cek__shards *shards;
    size_t devices, depth, credits, segments, ring;
    size_t *reads; /* [segments] */
    bool *reaches; /* [device][other]: reads its memory */
    bool verdict, failed;
    int64_t submitted, collected;
    bool *present, *counted;     /* [step % ring][device] */
    int64_t *ready;              /* [device]: buckets finished, counted through all steps */
    size_t *owned, *owned_first; /* shards by owner: owned[owned_first[o]] .. owned[owned_first[o + 1] - 1] */
    shard_state *shard;          /* [shard] */
    contribution *fetched;       /* [shard][device] */
    int64_t *version;            /* [device][shard]: the step whose parameters it has */
    channel *channels;           /* [from][owner] */
    cek__action_queue *senders;  /* [owner]: updated shards that wait for a place to be sent from */
    size_t *send_free;           /* [owner] */
    cek__action_queue *lanes;    /* [device][lane] */
    int64_t *forward_step;       /* [device]: the step that it is let into next */
    size_t *forward_segment;     /* [device]: and its segment */
    size_t measured;             /* shards of the step that is being measured */
};

static void give(cek__order *order, cek__lane lane, cek__action a)
{
    cek__action_put(&order->lanes[a.device * CEK__LANE_COUNT + lane], &a);
}

/* ---- what is known ---- */

static bool is_present(const cek__order *order, int64_t step, size_t device)
{
    return order->present[(size_t)(step % (int64_t)order->ring) * order->devices + device];
}

static bool is_ready(const cek__order *order, int64_t step, size_t device, size_t bucket)
{
    return order->ready[device] > (step - 1) * (int64_t)order->shards->buckets + (int64_t)bucket;
}

static bool reaches(const cek__order *order, size_t device, size_t other)
{
    return order->reaches[device * order->devices + other];
}

/* The owner's own contribution is the first, the others' follow in the order of the devices. */
static size_t contributor(size_t owner, size_t position)
{
    return position == 0 ? owner : position <= owner ? position - 1 : position;
}

static bool has_version(const cek__order *order, size_t device, size_t bucket, int64_t step)
{
    const size_t *of_bucket = order->shards->of_bucket;

    for (size_t s = of_bucket[bucket]; s < of_bucket[bucket + 1]; s++)
        if (order->version[device * order->shards->count + s] < step)
            return false;
    return true;
}

/* ---- computing ---- */

static bool may_enter(const cek__order *order, size_t device, int64_t step, size_t segment)
{
    for (size_t b = order->reads[segment]; b < order->shards->buckets; b++)
        if (!has_version(order, device, b, step - 1))
            return false;
    return true;
}

/* Lets the device into the segments whose parameters it has. */
static void forward(cek__order *order, size_t device)
{
    int64_t *step = &order->forward_step[device];
    size_t *segment = &order->forward_segment[device];

    while (*step <= order->submitted) {
        if (!is_present(order, *step, device)) {
            ++*step;
            continue;
        }
        if (!may_enter(order, device, *step, *segment))
            return;
        give(order, CEK__LANE_COMPUTE,
             (cek__action){ .phase = CEK__FORWARD, .device = device, .step = *step, .segment = *segment });
        if (++*segment < order->segments)
            continue;
        give(order, CEK__LANE_COMPUTE, (cek__action){ .phase = CEK__BACKWARD, .device = device, .step = *step });
        *segment = 0;
        ++*step;
    }
}

/* ---- gathering ---- */

/* The shard of the owner's whose contribution should leave next; SIZE_MAX: none may. */
static size_t leaves_next(const cek__order *order, size_t from, size_t owner, int64_t step)
{
    const cek__shard *list = order->shards->list;
    size_t next = SIZE_MAX;

    for (size_t i = order->owned_first[owner]; i < order->owned_first[owner + 1]; i++) {
        size_t s = order->owned[i];
        if (order->shard[s].step == step && order->fetched[s * order->devices + from] == NOT_GIVEN &&
            is_ready(order, step, from, list[s].bucket) && (next == SIZE_MAX || list[s].bucket > list[next].bucket))
            next = s;
    }
    return next;
}

/* Lets contributions of `from` leave for `owner`, while there is room. */
static void pump(cek__order *order, size_t from, size_t owner)
{
    channel *c = &order->channels[from * order->devices + owner];
    size_t count = order->owned_first[owner + 1] - order->owned_first[owner];

    while (count > 0 && c->step <= order->submitted) {
        if (is_present(order, c->step, from)) {
            size_t s = leaves_next(order, from, owner, c->step);
            if (c->free == 0 || s == SIZE_MAX)
                return;
            c->free--;
            order->fetched[s * order->devices + from] = LEAVING;
            give(order, CEK__LANE_EXCHANGE,
                 (cek__action){ .phase = CEK__FETCH, .device = from, .peer = owner, .shard = s, .step = c->step });
            if (++c->given < count)
                continue;
        }
        c->given = 0;
        c->step++;
    }
}

static void update(cek__order *order, size_t s)
{
    order->shard[s].state = UPDATING;
    give(order, CEK__LANE_EXCHANGE,
         (cek__action){
             .phase = CEK__UPDATE, .device = order->shards->list[s].owner, .shard = s, .step = order->shard[s].step });
}

/* Gives out the contributions that have come, in their order. */
static void gather(cek__order *order, size_t s)
{
    shard_state *shard = &order->shard[s];
    size_t owner = order->shards->list[s].owner, bucket = order->shards->list[s].bucket;

    if (shard->state != GATHERING || shard->step > order->submitted)
        return;
    for (; shard->contributed < order->devices; shard->contributed++) {
        size_t r = contributor(owner, shard->contributed);
        if (!is_present(order, shard->step, r))
            continue;
        if (!is_ready(order, shard->step, r, bucket))
            return;
        if (r != owner && !reaches(order, owner, r) && order->fetched[s * order->devices + r] != FETCHED)
            return;
        if (r != owner)
            give(order, CEK__LANE_EXCHANGE,
                 (cek__action){ .phase = CEK__ADD,
                                .device = owner,
                                .peer = r,
                                .shard = s,
                                .step = shard->step,
                                .first = !shard->summed });
        shard->summed = true;
    }
    if (!order->verdict) {
        update(order, s);
        return;
    }
    shard->state = MEASURING;
    give(order, CEK__LANE_EXCHANGE,
         (cek__action){ .phase = CEK__MEASURE, .device = owner, .shard = s, .step = shard->step });
}

static void gather_bucket(cek__order *order, size_t bucket)
{
    for (size_t s = order->shards->of_bucket[bucket]; s < order->shards->of_bucket[bucket + 1]; s++)
        gather(order, s);
}

/* The last shard was measured: every owner hears the verdict, then updates what forward reads first. */
static void judge(cek__order *order, int64_t step)
{
    if (++order->measured < order->shards->count)
        return;
    order->measured = 0;
    for (size_t o = 0; o < order->devices; o++)
        if (order->owned_first[o + 1] > order->owned_first[o])
            give(order, CEK__LANE_EXCHANGE, (cek__action){ .phase = CEK__VERDICT, .device = o, .step = step });
    for (size_t b = order->shards->buckets; b-- > 0;)
        for (size_t s = order->shards->of_bucket[b]; s < order->shards->of_bucket[b + 1]; s++)
            update(order, s);
}

/* ---- spreading ---- */

static void send_next(cek__order *order, size_t owner)
{
    cek__action a;

    while (order->send_free[owner] > 0 && cek__action_take_urgent(&order->senders[owner], order->shards, &a)) {
        order->send_free[owner]--;
        give(order, CEK__LANE_EXCHANGE, a);
    }
}

static bool is_sent(const cek__order *order, size_t owner)
{
    for (size_t r = 0; r < order->devices; r++)
        if (r != owner && !reaches(order, r, owner))
            return true;
    return false;
}

/* The other devices may take the shard: those that reach the owner's memory, or those that do not. */
static void receive(cek__order *order, size_t s, bool direct)
{
    size_t owner = order->shards->list[s].owner;

    for (size_t r = 0; r < order->devices; r++)
        if (r != owner && reaches(order, r, owner) == direct)
            give(order, CEK__LANE_EXCHANGE,
                 (cek__action){
                     .phase = CEK__RECEIVE, .device = r, .peer = owner, .shard = s, .step = order->shard[s].step });
}

static void arrived(cek__order *order, size_t s, size_t device)
{
    shard_state *shard = &order->shard[s];
    size_t owner = order->shards->list[s].owner;

    order->version[device * order->shards->count + s] = shard->step;
    if (--shard->spreading == 0) {
        *shard = (shard_state){ .state = GATHERING, .step = shard->step + 1 };
        memset(order->fetched + s * order->devices, 0, order->devices * sizeof *order->fetched);
        if (is_sent(order, owner)) {
            order->send_free[owner]++;
            send_next(order, owner);
        }
        for (size_t r = 0; r < order->devices; r++)
            if (r != owner && !reaches(order, owner, r))
                pump(order, r, owner);
        gather(order, s);
    }
    forward(order, device);
}

static void spread(cek__order *order, size_t s)
{
    shard_state *shard = &order->shard[s];
    size_t owner = order->shards->list[s].owner;

    shard->state = SPREADING;
    shard->spreading = order->devices;
    if (is_sent(order, owner)) {
        cek__action_put(&order->senders[owner],
                        &(cek__action){ .phase = CEK__SEND, .device = owner, .shard = s, .step = shard->step });
        send_next(order, owner);
    }
    receive(order, s, true);
    arrived(order, s, owner);
}

/* ---- events ---- */

/* Steps without samples are over as soon as the device has finished those before. */
static void pass_absent(cek__order *order, size_t device)
{
    int64_t buckets = (int64_t)order->shards->buckets;

    if (buckets == 0)
        return;
    while (order->ready[device] % buckets == 0 && order->ready[device] / buckets < order->submitted &&
           !is_present(order, order->ready[device] / buckets + 1, device))
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
            give(order, CEK__LANE_COMPUTE,
                 (cek__action){ .phase = CEK__UPLOAD, .device = r, .step = order->submitted });
        pass_absent(order, r);
        forward(order, r);
        for (size_t o = 0; o < order->devices; o++)
            if (o != r && !reaches(order, o, r))
                pump(order, r, o);
    }
    for (size_t s = 0; s < order->shards->count; s++)
        gather(order, s);
    return true;
}

void cek__order_ready(cek__order *order, size_t device, int64_t step, size_t buckets)
{
    int64_t all = (int64_t)order->shards->buckets, before = order->ready[device];
    int64_t now = (step - 1) * all + (int64_t)buckets;

    if (order->failed || now <= before)
        return;
    order->ready[device] = now;
    pass_absent(order, device);
    for (size_t o = 0; o < order->devices; o++)
        if (o != device && !reaches(order, o, device))
            pump(order, device, o);
    for (int64_t b = before; b < now; b++)
        gather_bucket(order, (size_t)(b % all));
}

void cek__order_done(cek__order *order, const cek__action *a)
{
    if (order->failed)
        return;
    switch (a->phase) {
    case CEK__FETCH:
        order->fetched[a->shard * order->devices + a->device] = FETCHED;
        gather(order, a->shard);
        break;
    case CEK__ADD:
        if (!reaches(order, a->device, a->peer)) {
            order->channels[a->peer * order->devices + a->device].free++;
            pump(order, a->peer, a->device);
        }
        break;
    case CEK__MEASURE: judge(order, a->step); break;
    case CEK__UPDATE: spread(order, a->shard); break;
    case CEK__SEND: receive(order, a->shard, false); break;
    case CEK__RECEIVE: arrived(order, a->shard, a->device); break;
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

    return lane == CEK__LANE_COMPUTE ? cek__action_take(q, out) : cek__action_take_urgent(q, order->shards, out);
}

bool cek__order_collect(cek__order *order)
{
    size_t at = (size_t)((order->collected + 1) % (int64_t)order->ring) * order->devices;

    if (order->collected == order->submitted)
        return false;
    for (size_t r = 0; r < order->devices; r++)
        if (!order->counted[at + r])
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

/* ---- life ---- */

static cek_status owned_make(cek__order *order)
{
    cek_status st;
    size_t at = 0;

    CEK_TRY(cek__calloc(order->shards->count, sizeof *order->owned, &order->owned));
    CEK_TRY(cek__calloc(order->devices + 1, sizeof *order->owned_first, &order->owned_first));
    for (size_t o = 0; o < order->devices; o++) {
        for (size_t s = 0; s < order->shards->count; s++)
            if (order->shards->list[s].owner == o)
                order->owned[at++] = s;
        order->owned_first[o + 1] = at;
    }
    return CEK_OK;
out:
    return st;
}

/* A lane holds what may be given out and not taken: a device's steps, and each phase of each shard once. */
static cek_status lanes_make(cek__order *order)
{
    cek_status st;

    CEK_TRY(cek__calloc(order->devices * CEK__LANE_COUNT, sizeof *order->lanes, &order->lanes));
    CEK_TRY(cek__calloc(order->devices, sizeof *order->senders, &order->senders));
    for (size_t r = 0; r < order->devices; r++) {
        size_t owned = order->owned_first[r + 1] - order->owned_first[r];
        CEK_TRY(cek__action_queue_make(&order->lanes[r * CEK__LANE_COUNT + CEK__LANE_COMPUTE],
                                       order->ring * (order->segments + 2)));
        CEK_TRY(cek__action_queue_make(&order->lanes[r * CEK__LANE_COUNT + CEK__LANE_EXCHANGE],
                                       2 * order->shards->count + owned * (order->devices + 3) + 1));
        CEK_TRY(cek__action_queue_make(&order->senders[r], owned));
    }
    return CEK_OK;
out:
    return st;
}

static cek_status shape_take(cek__order *order, const cek__order_options *o)
{
    cek_status st;
    size_t devices = o->shards->devices;

    order->shards = o->shards;
    order->devices = devices;
    order->depth = o->depth;
    order->credits = o->credits;
    order->segments = o->segments;
    order->verdict = o->verdict;
    order->ring = o->depth + CEK__ORDER_LAG;
    CEK_TRY(cek__calloc(o->segments, sizeof *order->reads, &order->reads));
    if (o->reads)
        memcpy(order->reads, o->reads, o->segments * sizeof *order->reads);
    CEK_TRY(cek__calloc(devices * devices, sizeof *order->reaches, &order->reaches));
    if (o->reaches)
        memcpy(order->reaches, o->reaches, devices * devices * sizeof *order->reaches);
    return CEK_OK;
out:
    return st;
}

static void begin(cek__order *order)
{
    for (size_t s = 0; s < order->shards->count; s++)
        order->shard[s].step = 1;
    for (size_t r = 0; r < order->devices; r++) {
        order->forward_step[r] = 1;
        order->send_free[r] = order->credits;
    }
    for (size_t i = 0; i < order->devices * order->devices; i++)
        order->channels[i] = (channel){ .step = 1, .free = order->credits };
}

cek_status cek__order_create(const cek__order_options *options, cek__order **out)
{
    cek_status st;
    cek__order *order = NULL;
    size_t devices = options->shards->devices, shards = options->shards->count;

    *out = NULL;
    CEK_TRY(cek__calloc(1, sizeof *order, &order));
    CEK_TRY(shape_take(order, options));
    CEK_TRY(cek__calloc(order->ring * devices, sizeof *order->present, &order->present));
    CEK_TRY(cek__calloc(order->ring * devices, sizeof *order->counted, &order->counted));
    CEK_TRY(cek__calloc(devices, sizeof *order->ready, &order->ready));
    CEK_TRY(cek__calloc(shards, sizeof *order->shard, &order->shard));
    CEK_TRY(cek__calloc(shards * devices, sizeof *order->fetched, &order->fetched));
    CEK_TRY(cek__calloc(shards * devices, sizeof *order->version, &order->version));
    CEK_TRY(cek__calloc(devices * devices, sizeof *order->channels, &order->channels));
    CEK_TRY(cek__calloc(devices, sizeof *order->send_free, &order->send_free));
    CEK_TRY(cek__calloc(devices, sizeof *order->forward_step, &order->forward_step));
    CEK_TRY(cek__calloc(devices, sizeof *order->forward_segment, &order->forward_segment));
    CEK_TRY(owned_make(order));
    CEK_TRY(lanes_make(order));
    begin(order);
    *out = order;
    return CEK_OK;
out:
    cek__order_free(order);
    return st;
}

void cek__order_free(cek__order *order)
{
    if (order == NULL)
        return;
    for (size_t i = 0; order->lanes != NULL && i < order->devices * CEK__LANE_COUNT; i++)
        free(order->lanes[i].list);
    for (size_t o = 0; order->senders != NULL && o < order->devices; o++)
        free(order->senders[o].list);
    free(order->lanes);
    free(order->senders);
    free(order->reads);
    free(order->reaches);
    free(order->present);
    free(order->counted);
    free(order->ready);
    free(order->owned);
    free(order->owned_first);
    free(order->shard);
    free(order->fetched);
    free(order->version);
    free(order->channels);
    free(order->send_free);
    free(order->forward_step);
    free(order->forward_segment);
    free(order);
}
