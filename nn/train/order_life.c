/* order_life.c - an order made and freed (see order_inside.h). */
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/status.h"
#include "nn/train/branches.h"
#include "nn/train/order_inside.h"

/* A lane holds what may be given out and not taken: a device's steps, and each phase of each shard once. */
static cek_status lanes_make(cek__order *order, size_t device)
{
    cek_status st;
    const cek__shards *shards = order->shards;
    size_t owned = order->owned[device], adds = 0;
    cek__action_queue *lanes = &order->lanes[device * CEK__LANE_COUNT];

    for (size_t s = 0; s < shards->count; s++)
        adds += cek__branch_givers(shards, s, device);
    CEK_TRY(cek__action_queue_make(&lanes[CEK__LANE_COMPUTE], order->ring * (order->segments + 2)));
    CEK_TRY(cek__action_queue_make(&lanes[CEK__LANE_EXCHANGE], 2 * shards->count + adds + 3 * owned + 1));
    CEK_TRY(cek__action_queue_make(&order->senders[device], owned));
    CEK_TRY(cek__action_queue_make(&order->readers[device], shards->count));
out:
    return st;
}

/* Shards whose contributions go from one device to another. */
static size_t channel_shards(const cek__shards *shards, size_t from, size_t to)
{
    size_t count = 0;

    for (size_t s = 0; s < shards->count; s++)
        count += shards->list[s].owner != from && cek__branch_taker(shards, s, from) == to;
    return count;
}

static cek_status channels_make(cek__order *order)
{
    cek_status st = CEK_OK;

    for (size_t from = 0; from < order->devices; from++)
        for (size_t to = 0; to < order->devices; to++) {
            cek__channel *c = &order->channels[from * order->devices + to];
            c->free = order->credits;
            if (from != to && !cek__order_reaches(order, to, from))
                CEK_TRY(cek__action_queue_make(&c->waiting, channel_shards(order->shards, from, to)));
        }
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
    order->near = true;
    for (size_t i = 0; i < devices * devices; i++)
        order->near = order->near && (order->reaches[i] || i / devices == i % devices);
    return CEK_OK;
out:
    return st;
}

static void begin(cek__order *order)
{
    for (size_t s = 0; s < order->shards->count; s++) {
        order->shard[s].step = 1;
        order->owned[order->shards->list[s].owner]++;
    }
    for (size_t r = 0; r < order->devices; r++) {
        order->forward_step[r] = 1;
        order->send_free[r] = order->credits;
    }
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
    CEK_TRY(cek__calloc(shards * devices, sizeof *order->parts, &order->parts));
    CEK_TRY(cek__calloc(devices, sizeof *order->owned, &order->owned));
    CEK_TRY(cek__calloc(shards * devices, sizeof *order->version, &order->version));
    CEK_TRY(cek__calloc(devices * devices, sizeof *order->channels, &order->channels));
    CEK_TRY(cek__calloc(devices, sizeof *order->senders, &order->senders));
    CEK_TRY(cek__calloc(devices, sizeof *order->send_free, &order->send_free));
    CEK_TRY(cek__calloc(devices, sizeof *order->readers, &order->readers));
    CEK_TRY(cek__calloc(devices, sizeof *order->reading, &order->reading));
    CEK_TRY(cek__calloc(devices, sizeof *order->read, &order->read));
    CEK_TRY(cek__calloc(devices * CEK__LANE_COUNT, sizeof *order->lanes, &order->lanes));
    CEK_TRY(cek__calloc(devices, sizeof *order->forward_step, &order->forward_step));
    CEK_TRY(cek__calloc(devices, sizeof *order->forward_segment, &order->forward_segment));
    begin(order);
    for (size_t r = 0; r < devices; r++)
        CEK_TRY(lanes_make(order, r));
    CEK_TRY(channels_make(order));
    *out = order;
    return CEK_OK;
out:
    cek__order_free(order);
    return st;
}

static void queues_free(cek__action_queue *queues, size_t count)
{
    for (size_t i = 0; queues != NULL && i < count; i++)
        free(queues[i].list);
    free(queues);
}

void cek__order_free(cek__order *order)
{
    if (order == NULL)
        return;
    queues_free(order->lanes, order->devices * CEK__LANE_COUNT);
    for (size_t i = 0; order->channels != NULL && i < order->devices * order->devices; i++)
        free(order->channels[i].waiting.list);
    queues_free(order->senders, order->devices);
    queues_free(order->readers, order->devices);
    free(order->reads);
    free(order->reaches);
    free(order->present);
    free(order->counted);
    free(order->ready);
    free(order->owned);
    free(order->shard);
    free(order->parts);
    free(order->version);
    free(order->channels);
    free(order->send_free);
    free(order->reading);
    free(order->read);
    free(order->forward_step);
    free(order->forward_segment);
    free(order);
}
