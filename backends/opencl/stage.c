/* SPDX-License-Identifier: MIT
 *
 * stage.c - where updates wait for the device: places of page-locked memory, which a card fetches from by itself. Of
 * anything else its driver first makes a copy of its own, or locks the pages, for each of them.
 *
 * Places are made with the device's first queue, so that no update waits for the driver. Whoever finds none free has
 * memory like any other, which is what all have on devices that are no cards.
 * Threads: any; the lock is the last that anybody takes.
 */
#include <stdlib.h>

#include "backends/common/command.h"
#include "backends/opencl/opencl.h"

#define PLACES 16 /* two steps under way have a step block, an update block and two or three batch blocks each */

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

cek_status cek__opencl_stage_make(opencl_dev *dev, const char *call)
{
    void *made = NULL;
    if (!dev->pins || atomic_exchange(&dev->staged, true))
        return CEK_OK;
    cek_status st = cek__opencl_pinned_alloc(dev, call, (uint64_t)PLACES * CEK__UPDATE_MAX, &made);
    if (st) {
        atomic_store(&dev->staged, false);
        return st;
    }
    atomic_store(&dev->places, made);
    for (int i = 0; i < PLACES; i++)
        place_put(dev, (stage_place *)((unsigned char *)made + i * CEK__UPDATE_MAX));
    return CEK_OK;
}

cek_status cek__opencl_stage_take(opencl_dev *dev, uint64_t bytes, void **out)
{
    *out = place_get(dev);
    if (!*out)
        *out = malloc(bytes);
    return *out ? CEK_OK
                : cek__host_fail(&dev->head.instance->host, CEK_OUT_OF_MEMORY, "update: no memory for %llu bytes",
                                 (unsigned long long)bytes);
}

/* `places` is settled before anybody has a place. */
void cek__opencl_stage_give(opencl_dev *dev, void *place)
{
    const unsigned char *places = atomic_load(&dev->places);
    if (places && (uintptr_t)place - (uintptr_t)places < (uintptr_t)PLACES * CEK__UPDATE_MAX)
        place_put(dev, place);
    else
        free(place);
}
