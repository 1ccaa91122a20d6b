/* branches.c - see branches.h. */
#include "nn/train/branches.h"

/* Places behind the owner, and back. */
static size_t place_of(const cek__shards *shards, size_t shard, size_t device)
{
    return (device + shards->devices - shards->list[shard].owner) % shards->devices;
}

static size_t device_at(const cek__shards *shards, size_t shard, size_t place)
{
    return (shards->list[shard].owner + place) % shards->devices;
}

size_t cek__branch_taker(const cek__shards *shards, size_t shard, size_t device)
{
    size_t place = place_of(shards, shard, device);

    return device_at(shards, shard, shards->list[shard].branched ? place & (place - 1) : 0);
}

size_t cek__branch_giver(const cek__shards *shards, size_t shard, size_t device, size_t index)
{
    bool branched = shards->list[shard].branched;
    size_t place = place_of(shards, shard, device), step = branched ? (size_t)1 << index : index + 1;
    size_t taken = branched ? place & (2 * step - 1) : place; /* by branches nearer to the owner */

    return taken == 0 && place + step < shards->devices ? device_at(shards, shard, place + step) : SIZE_MAX;
}

size_t cek__branch_givers(const cek__shards *shards, size_t shard, size_t device)
{
    size_t count = 0;

    while (cek__branch_giver(shards, shard, device, count) != SIZE_MAX)
        count++;
    return count;
}
