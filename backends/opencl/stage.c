/* SPDX-License-Identifier: MIT
 *
 * stage.c - where updates wait for the device: places of page-locked memory, which a card fetches from by itself. Of anything
 * else its driver first makes a copy of its own, or locks the pages, for each of them.
 *
 * Places are never given back to the driver before the device is closed: they are as many as updates were under way at once.
 * On devices that are no cards a place is memory like any other.
 * Threads: any; the lock is the last that anybody takes.
 */
#include <stdlib.h>

#include "backends/common/command.h"
#include "backends/opencl/opencl.h"

#define PLACES 16 /* made at once: two steps under way have a step block, a batch block and an update block each */

struct stage_place {
    stage_place *next; /* that is free too */
};

static void place_put(opencl_dev *dev, stage_place *place)
{
    pthread_mutex_lock(&dev->stage_lock);
    place->next = dev->stage;
    dev->stage = place;
    pthread_mutex_unlock(&dev->stage_lock);
}

static stage_place *place_get(opencl_dev *dev)
{
    pthread_mutex_lock(&dev->stage_lock);
    stage_place *place = dev->stage;
    if (place)
        dev->stage = place->next;
    pthread_mutex_unlock(&dev->stage_lock);
    return place;
}

cek_status cek__opencl_stage_take(opencl_dev *dev, uint64_t bytes, void **out)
{
    void *made = NULL;
    *out = dev->pins ? place_get(dev) : malloc(bytes);
    if (*out)
        return CEK_OK;
    if (!dev->pins)
        return cek__host_fail(&dev->head.instance->host, CEK_OUT_OF_MEMORY, "update: no memory for %llu bytes",
                              (unsigned long long)bytes);
    cek_status st = cek__opencl_host_alloc(&dev->head, (uint64_t)PLACES * CEK__UPDATE_MAX, &made);
    for (int i = 1; !st && i < PLACES; i++)
        place_put(dev, (stage_place *)((unsigned char *)made + i * CEK__UPDATE_MAX));
    *out = made;
    return st;
}

void cek__opencl_stage_give(opencl_dev *dev, void *place)
{
    if (!dev->pins)
        free(place);
    else if (place)
        place_put(dev, place);
}
