/* SPDX-License-Identifier: MIT
 * gate.c - where simulated devices fail, and what all slots share. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/sim/sim.h"

cek__sim_device *cek__sim_state(const cek_dev *dev)
{
    return &dev->instance->devices[dev->index];
}

/* CEK_OK, or the failure that this call meets. *injected: it is the one that was asked for, not a latch. */
static cek_status gate(const cek_dev *dev, const char *call, bool *injected)
{
    const cek_instance *instance = dev->instance;
    cek__sim_device *state = cek__sim_state(dev);
    bool counts = instance->fail_at && dev->index == instance->fail_device &&
                  (!instance->fail_call || !strcmp(instance->fail_call, call));
    pthread_mutex_lock(&state->lock);
    *injected = !state->lost && counts && ++state->calls == instance->fail_at;
    if (*injected && instance->fail_status == CEK_DEVICE_LOST)
        state->lost = true;
    bool lost = state->lost;
    pthread_mutex_unlock(&state->lock);
    if (!*injected && !lost)
        return CEK_OK;
    return cek__fail(&instance->host, lost ? CEK_DEVICE_LOST : instance->fail_status, "%s: simulated %s of sim:%u", call,
                     lost ? "loss" : "failure", dev->index);
}

cek_status cek__sim_pass(const cek_dev *dev, const char *call)
{
    bool injected;
    return gate(dev, call, &injected);
}

bool cek__sim_queue_pass(cek_queue *queue, const char *call, cek_status *st)
{
    bool injected;
    if (queue->failure) {
        *st = cek__fail(&queue->dev->instance->host, queue->failure, "%s: the queue failed before: %s", call, queue->text);
        return false;
    }
    *st = gate(queue->dev, call, &injected);
    if (injected && *st == CEK_INTERNAL) {
        snprintf(queue->text, sizeof queue->text, "%s: simulated failure of sim:%u", call, queue->dev->index);
        queue->failure = *st;
        *st = CEK_OK;
        return false;
    }
    return !*st;
}

bool cek__sim_is_lost(const cek_dev *dev, char *text, uint64_t cap)
{
    cek__sim_device *state = cek__sim_state(dev);
    pthread_mutex_lock(&state->lock);
    bool lost = state->lost;
    pthread_mutex_unlock(&state->lock);
    if (lost)
        cek__text_out(text, cap, "simulated loss");
    return lost;
}

uint64_t cek__sim_free_bytes(cek_instance *instance, uint32_t index)
{
    cek__sim_device *state = &instance->devices[index];
    pthread_mutex_lock(&state->lock);
    uint64_t left = instance->memory_bytes - state->used_bytes;
    pthread_mutex_unlock(&state->lock);
    return left;
}

cek_status cek__sim_wrapper_make(cek_dev *dev, const char *call, size_t bytes, void *out)
{
    void *wrapper = NULL;
    cek_status st = cek__sim_pass(dev, call);
    if (!st && !(wrapper = calloc(1, bytes)))
        st = cek__fail(&dev->instance->host, CEK_OUT_OF_MEMORY, "%s: no memory for the handle", call);
    if (!st)
        memcpy(wrapper, &dev, sizeof dev);
    memcpy(out, &wrapper, sizeof wrapper);
    return st;
}

cek_status cek__sim_wrapper_done(void *wrapper, cek_status st, void *out)
{
    if (st) {
        free(wrapper);
        wrapper = NULL;
    }
    memcpy(out, &wrapper, sizeof wrapper);
    return st;
}
