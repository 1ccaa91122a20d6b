/* exchange.c - see exchange.h. */
#include "nn/train/exchange.h"

#include <stdlib.h>

#include "core/base/alloc.h"
#include "core/base/log.h"
#include "core/base/status.h"
#include "nn/train/branches.h"

typedef enum way { WAY_PLACE, WAY_HOST, WAY_PULL } way;

/* Places of equal size, page-locked for one device. */
typedef struct places {
    cek_device *device;
    unsigned char *memory;
    unsigned char **free; /* [free_count] */
    size_t free_count;
} places;

/* Where a shard lies while it is between two devices. */
typedef struct transit {
    unsigned char *place;
    size_t readers; /* of a sent shard, that have not received it yet */
} transit;

/* Memory of a device that lives in the host's, page-locked for another one that uploads from it. */
typedef struct lent {
    cek_device *reader;
    void *memory;
} lent;

struct cek__exchange {
    const cek__shards *shards;
    cek__replica *const *replicas;
    size_t devices, credits;
    uint64_t element_bytes;
    way *ways;        /* [reader * devices + other] */
    bool *reaches;    /* the same: is it not WAY_PLACE */
    places *fetches;  /* [from * devices + taker] */
    places *sends;    /* [owner] */
    transit *fetched; /* [shard * devices + from] */
    transit *sent;    /* [shard] */
    lent *lents;      /* [lent_count] */
    size_t lent_count;
};

static const cek__shard *shard_of(const cek__exchange *x, const cek__action *a)
{
    return &x->shards->list[a->shard];
}

/* What of a shard goes to others: the elements that are read as they are, then rounded copies. */
static cek__halves halves_of(const cek__exchange *x, const cek__shard *s)
{
    return cek__layout_halves(cek__replica_layout(x->replicas[0]), s->bucket, s->first, s->end);
}

static cek_ref at(const cek__exchange *x, cek_ref base, uint64_t element)
{
    return (cek_ref){ base.mem, base.offset + element * x->element_bytes };
}

/* ---- ways ---- */

/* A reader that can copy from there does so once, to where each step has its block. Its station waits for that, with
 * what else was enqueued before it was made. */
static cek_status way_find(cek__exchange *x, size_t reader, size_t other, way *out)
{
    cek_status st;
    cek_stream *stream = cek__replica_stream(x->replicas[reader]);
    const cek_memory *theirs = cek__replica_parameter_memory(x->replicas[other], 0);
    uint64_t bytes = x->element_bytes;

    *out = WAY_PLACE;
    st = cek_stream_pull(stream, cek__replica_step_block(x->replicas[reader]), theirs, 0, bytes);
    if (st == CEK_OK) {
        *out = WAY_PULL;
        return CEK_OK;
    }
    if (st != CEK_UNSUPPORTED)
        return st;
    if (cek_memory_host(theirs) != NULL)
        *out = WAY_HOST;
    return CEK_OK;
}

/* A driver reads memory that is not page-locked in pieces, through memory of its own, while the caller
 * waits inside it. */
static cek_status lend(cek__exchange *x, cek_device *reader, const cek_memory *theirs)
{
    void *host = cek_memory_host(theirs);
    cek_status st;

    if (host == NULL)
        return CEK_OK;
    st = cek_pinned_register(reader, host, cek_memory_bytes(theirs));
    if (st == CEK_OK)
        x->lents[x->lent_count++] = (lent){ reader, host };
    return st;
}

/* What the owner has of its buckets. Where a driver refuses, the rest is read as it lies. */
static cek_status memory_lend(cek__exchange *x, size_t reader, size_t other)
{
    cek_device *device = cek__replica_device(x->replicas[reader]);
    const cek__replica *owner = x->replicas[other];
    size_t buckets = cek__replica_layout(owner)->bucket_count;
    cek_status st = CEK_OK;

    for (size_t b = 0; st == CEK_OK && b < buckets; b++) {
        const cek_memory *of[] = { cek__replica_parameter_memory(owner, b), cek__replica_rounded_memory(owner, b),
                                   cek__replica_gradient_memory(owner, b) };
        for (size_t i = 0; st == CEK_OK && i < sizeof of / sizeof *of; i++)
            st = lend(x, device, of[i]);
    }
    if (st == CEK_OK || st == CEK_DEVICE_LOST)
        return st;
    if (!cek__replica_is_inline(x->replicas[reader]))
        cek__log(st == CEK_UNSUPPORTED ? CEK_LOG_INFO : CEK_LOG_WARN,
                 "%s: copies from the memory of %s, which is not page-locked, are slower: %s", cek_device_name(device),
                 cek_device_name(cek__replica_device(owner)), cek_error_text());
    return CEK_OK;
}

static void lents_end(cek__exchange *x)
{
    while (x->lent_count > 0) {
        const lent *l = &x->lents[--x->lent_count];
        cek_pinned_unregister(l->reader, l->memory);
    }
}

static cek_status ways_find(cek__exchange *x)
{
    cek_status st = CEK_OK;

    for (size_t reader = 0; reader < x->devices; reader++) {
        for (size_t other = 0; other < x->devices; other++) {
            way *w = &x->ways[reader * x->devices + other];
            if (reader == other)
                continue;
            CEK_TRY(way_find(x, reader, other, w));
            if (*w == WAY_HOST)
                CEK_TRY(memory_lend(x, reader, other));
            x->reaches[reader * x->devices + other] = *w != WAY_PLACE;
        }
    }
out:
    return st;
}

/* ---- places ---- */

static uint64_t largest_owned(const cek__exchange *x, size_t owner)
{
    uint64_t most = 0;

    for (size_t s = 0; s < x->shards->count; s++)
        if (x->shards->list[s].owner == owner && cek__shard_elements(&x->shards->list[s]) > most)
            most = cek__shard_elements(&x->shards->list[s]);
    return most * x->element_bytes;
}

/* Of those whose contributions go from one device to another. */
static uint64_t largest_given(const cek__exchange *x, size_t from, size_t to)
{
    uint64_t most = 0;

    for (size_t s = 0; s < x->shards->count; s++)
        if (x->shards->list[s].owner != from && cek__branch_taker(x->shards, s, from) == to &&
            cek__shard_elements(&x->shards->list[s]) > most)
            most = cek__shard_elements(&x->shards->list[s]);
    return most * x->element_bytes;
}

static cek_status places_make(places *p, cek_device *device, size_t count, uint64_t bytes)
{
    cek_status st;

    bytes = (bytes + CEK_ALIGNMENT - 1) / CEK_ALIGNMENT * CEK_ALIGNMENT;
    if (bytes == 0)
        return CEK_OK;
    CEK_TRY(cek__calloc(count, sizeof *p->free, &p->free));
    CEK_TRY(cek_pinned_alloc(device, count * bytes, (void **)&p->memory));
    p->device = device;
    for (; p->free_count < count; p->free_count++)
        p->free[p->free_count] = p->memory + p->free_count * bytes;
    return CEK_OK;
out:
    return st;
}

static void places_drop(places *p, bool idle)
{
    if (idle && p->memory != NULL)
        cek_pinned_free(p->device, p->memory);
    else
        cek_pinned_abandon(p->device, p->memory);
    free(p->free);
}

/* Gradients on the way to an owner lie in memory of the device that they leave, and so do parameters. */
static cek_status all_places_make(cek__exchange *x)
{
    cek_status st;

    for (size_t to = 0; to < x->devices; to++) {
        bool sends = false;
        for (size_t r = 0; r < x->devices; r++) {
            if (r == to)
                continue;
            sends = sends || !x->reaches[r * x->devices + to];
            if (!x->reaches[to * x->devices + r])
                CEK_TRY(places_make(&x->fetches[r * x->devices + to], cek__replica_device(x->replicas[r]), x->credits,
                                    largest_given(x, r, to)));
        }
        if (sends)
            CEK_TRY(places_make(&x->sends[to], cek__replica_device(x->replicas[to]), x->credits, largest_owned(x, to)));
    }
    return CEK_OK;
out:
    return st;
}

static places *places_of(cek__exchange *x, const cek__action *a)
{
    return a->phase == CEK__FETCH ? &x->fetches[a->device * x->devices + a->peer] : &x->sends[a->device];
}

static transit *transit_of(cek__exchange *x, const cek__action *a)
{
    switch (a->phase) {
    case CEK__FETCH: return &x->fetched[a->shard * x->devices + a->device];
    case CEK__ADD: return &x->fetched[a->shard * x->devices + a->peer];
    default: return &x->sent[a->shard];
    }
}

void cek__exchange_assign(cek__exchange *x, const cek__action *a)
{
    places *p;
    transit *t;

    if (a->phase != CEK__FETCH && a->phase != CEK__SEND)
        return;
    p = places_of(x, a);
    t = transit_of(x, a);
    t->place = p->free[--p->free_count];
    t->readers = 0;
    for (size_t r = 0; r < x->devices; r++)
        t->readers += r != a->device && !x->reaches[r * x->devices + a->device];
    if (a->phase == CEK__FETCH)
        t->readers = 1;
}

void cek__exchange_release(cek__exchange *x, const cek__action *a)
{
    cek__action before = *a;
    places *p;
    transit *t;

    if ((a->phase != CEK__ADD && a->phase != CEK__RECEIVE) || x->reaches[a->device * x->devices + a->peer])
        return;
    t = transit_of(x, a);
    if (--t->readers > 0)
        return;
    before.phase = a->phase == CEK__ADD ? CEK__FETCH : CEK__SEND;
    before.device = a->peer;
    before.peer = a->device;
    p = places_of(x, &before);
    p->free[p->free_count++] = t->place;
    t->place = NULL;
}

/* ---- copies ---- */

/* The exact ones first in the place, the rounded ones behind them. */
static cek_status parameters_download(cek__exchange *x, const cek__action *a, cek_stream *out)
{
    cek_status st = CEK_OK;
    const cek__shard *s = shard_of(x, a);
    const cek__replica *r = x->replicas[a->device];
    const cek__halves h = halves_of(x, s);
    cek_ref rounded = cek__replica_rounded(r, s->bucket);
    unsigned char *place = transit_of(x, a)->place;

    rounded.offset += h.rounded_first * sizeof(uint16_t);
    if (h.exact > 0)
        CEK_TRY(cek_stream_download(out, place, at(x, cek__replica_parameters(r, s->bucket), s->first),
                                    h.exact * x->element_bytes));
    if (h.rounded > 0)
        CEK_TRY(cek_stream_download(out, place + h.exact * x->element_bytes, rounded, h.rounded * sizeof(uint16_t)));
out:
    return st;
}

cek_status cek__exchange_download(cek__exchange *x, const cek__action *a, cek_stream *out)
{
    const cek__shard *s = shard_of(x, a);

    if (a->phase == CEK__SEND)
        return parameters_download(x, a, out);
    return cek_stream_download(out, transit_of(x, a)->place,
                               at(x, cek__replica_gradients(x->replicas[a->device], s->bucket), s->first),
                               cek__shard_elements(s) * x->element_bytes);
}

/* Bytes of the peer's memory from `offset` on, or those in its place from `placed` on, to `dst` on the
 * device that acts. */
static cek_status bring(cek__exchange *x, const cek__action *a, cek_stream *in, cek_ref dst, const cek_memory *theirs,
                        uint64_t offset, uint64_t placed, uint64_t bytes)
{
    const unsigned char *host;

    switch (x->ways[a->device * x->devices + a->peer]) {
    case WAY_PULL: return cek_stream_pull(in, dst, theirs, offset, bytes);
    case WAY_HOST:
        host = cek_memory_host(theirs);
        if (host == NULL)
            return cek__fail(CEK_DEVICE_LOST, "%s: its memory is out of the host's reach",
                             cek_device_name(cek_memory_device(theirs)));
        return cek_stream_upload(in, dst, host + offset, bytes);
    default: return cek_stream_upload(in, dst, transit_of(x, a)->place + placed, bytes);
    }
}

cek_status cek__exchange_gradients(cek__exchange *x, const cek__action *a, cek_stream *in, cek_ref dst, uint64_t first,
                                   uint64_t count)
{
    const cek__shard *s = shard_of(x, a);

    return bring(x, a, in, dst, cek__replica_gradient_memory(x->replicas[a->peer], s->bucket),
                 (s->first + first) * x->element_bytes, first * x->element_bytes, count * x->element_bytes);
}

cek_status cek__exchange_parameters(cek__exchange *x, const cek__action *a, cek_stream *in)
{
    cek_status st = CEK_OK;
    const cek__shard *s = shard_of(x, a);
    const cek__replica *own = x->replicas[a->device], *theirs = x->replicas[a->peer];
    const cek__halves h = halves_of(x, s);
    const uint64_t exact = h.exact * x->element_bytes, at_rounded = h.rounded_first * sizeof(uint16_t);
    cek_ref rounded = cek__replica_rounded(own, s->bucket);

    rounded.offset += at_rounded;
    if (h.exact > 0)
        CEK_TRY(bring(x, a, in, at(x, cek__replica_parameters(own, s->bucket), s->first),
                      cek__replica_parameter_memory(theirs, s->bucket), s->first * x->element_bytes, 0, exact));
    if (h.rounded > 0)
        CEK_TRY(bring(x, a, in, rounded, cek__replica_rounded_memory(theirs, s->bucket), at_rounded, exact,
                      h.rounded * sizeof(uint16_t)));
out:
    return st;
}

/* ---- life ---- */

cek_status cek__exchange_create(const cek__shards *shards, cek__replica *const *replicas, size_t credits,
                                cek__exchange **out)
{
    cek_status st;
    cek__exchange *x = NULL;
    size_t devices = shards->devices;

    *out = NULL;
    CEK_TRY(cek__calloc(1, sizeof *x, &x));
    x->shards = shards;
    x->replicas = replicas;
    x->devices = devices;
    x->credits = credits;
    x->element_bytes = cek__replica_element_bytes(replicas[0]);
    CEK_TRY(cek__calloc(devices * devices, sizeof *x->ways, &x->ways));
    CEK_TRY(cek__calloc(devices * devices, sizeof *x->reaches, &x->reaches));
    CEK_TRY(cek__calloc(devices * devices, sizeof *x->fetches, &x->fetches));
    CEK_TRY(cek__calloc(devices, sizeof *x->sends, &x->sends));
    CEK_TRY(cek__calloc(shards->count * devices, sizeof *x->fetched, &x->fetched));
    CEK_TRY(cek__calloc(shards->count, sizeof *x->sent, &x->sent));
    CEK_TRY(cek__calloc(3 * devices * devices * cek__replica_layout(replicas[0])->bucket_count, sizeof *x->lents,
                        &x->lents));
    if (shards->count > 0)
        CEK_TRY(ways_find(x));
    CEK_TRY(all_places_make(x));
    *out = x;
    return CEK_OK;
out:
    cek__exchange_free(x, true); /* no copy knows its places yet */
    return st;
}

void cek__exchange_free(cek__exchange *x, bool idle)
{
    if (x == NULL)
        return;
    lents_end(x);
    for (size_t i = 0; x->fetches != NULL && i < x->devices * x->devices; i++)
        places_drop(&x->fetches[i], idle);
    for (size_t i = 0; x->sends != NULL && i < x->devices; i++)
        places_drop(&x->sends[i], idle);
    free(x->ways);
    free(x->reaches);
    free(x->fetches);
    free(x->sends);
    free(x->fetched);
    free(x->sent);
    free(x->lents);
    free(x);
}

const bool *cek__exchange_reaches(const cek__exchange *x)
{
    return x->reaches;
}
