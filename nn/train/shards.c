/* shards.c - see shards.h. */
#include "nn/train/shards.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/status.h"

/* The part of a bucket that belongs to one device; empty where first == end. */
static cek__shard part_of(size_t bucket, uint64_t elements, size_t owner, size_t devices)
{
    uint64_t units = (elements + CEK__SHARD_UNIT - 1) / CEK__SHARD_UNIT, each, rest, first, end;

    if (elements < CEK__SHARD_LEAST)
        return (cek__shard){ bucket, owner, 0, bucket % devices == owner ? elements : 0, true };
    each = units / devices;
    rest = units % devices;
    first = (owner * each + (owner < rest ? owner : rest)) * CEK__SHARD_UNIT;
    end = first + (each + (owner < rest)) * CEK__SHARD_UNIT;
    return (cek__shard){ bucket, owner, first < elements ? first : elements, end < elements ? end : elements, false };
}

/* Piece `index` of a device's part. */
static cek__shard piece_of(cek__shard part, uint64_t most, uint64_t index)
{
    uint64_t first = part.first + index * most;

    part.end = part.end - first < most ? part.end : first + most;
    part.first = first;
    return part;
}

static uint64_t pieces(const cek__shard *part, uint64_t most)
{
    return (cek__shard_elements(part) + most - 1) / most;
}

/* One bucket: the devices' first pieces, their second ones, and so on, so that all owners have work from the start.
 * Without `list` only counts. */
static size_t bucket_cut(size_t bucket, uint64_t elements, size_t devices, cek__shard *list)
{
    /* A lone device copies nothing, and has nothing to overlap: one operation a bucket. */
    uint64_t most = devices > 1 ? CEK__SHARD_MOST : UINT64_MAX;
    size_t count = 0, last;

    for (uint64_t i = 0;; i++) {
        last = count;
        for (size_t owner = 0; owner < devices; owner++) {
            cek__shard part = part_of(bucket, elements, owner, devices);
            if (part.end == part.first || i >= (most == UINT64_MAX ? 1 : pieces(&part, most)))
                continue;
            if (list)
                list[count] = most == UINT64_MAX ? part : piece_of(part, most, i);
            count++;
        }
        if (count == last)
            return count;
    }
}

cek_status cek__shards_create(size_t buckets, const uint64_t *elements, size_t devices, cek__shards *out)
{
    cek_status st;

    *out = (cek__shards){ .devices = devices, .buckets = buckets };
    CEK_TRY(cek__calloc(buckets + 1, sizeof *out->of_bucket, &out->of_bucket));
    for (size_t b = 0; b < buckets; b++)
        out->of_bucket[b + 1] = out->of_bucket[b] + bucket_cut(b, elements[b], devices, NULL);
    out->count = out->of_bucket[buckets];
    CEK_TRY(cek__calloc(out->count ? out->count : 1, sizeof *out->list, &out->list));
    for (size_t b = 0; b < buckets; b++)
        bucket_cut(b, elements[b], devices, out->list + out->of_bucket[b]);
    return CEK_OK;
out:
    cek__shards_close(out);
    return st;
}

void cek__shards_close(cek__shards *shards)
{
    free(shards->list);
    free(shards->of_bucket);
    memset(shards, 0, sizeof *shards);
}
