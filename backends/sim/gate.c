/* SPDX-License-Identifier: MIT
 *
 * gate.c - where simulated devices fail, hang and are lost, and what all slots share.
 *
 * A hang is a wait on the device's own condition, so that a loss ends it. The watchdog bounds it: a
 * wait that would last longer than that loses the device, as drivers reset a device that does not
 * answer.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backends/sim/sim.h"

/* --- the latch -------------------------------------------------------------------------------- */

static void lose(const cek_dev *dev, cek__latch *latch, const char *format, va_list args)
{
    cek__sim_device *state = cek__sim_state(dev);
    cek__latch_vset(latch, format, args);
    pthread_mutex_lock(&state->lock);
    pthread_cond_broadcast(&state->lost_now);
    pthread_mutex_unlock(&state->lock);
}

void cek__sim_lose(const cek_dev *dev, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    lose(dev, &cek__sim_state(dev)->lost, format, args);
    va_end(args);
}

void cek__sim_lose_handle(cek_dev *dev, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    lose(dev, &dev->lost, format, args);
    va_end(args);
}

cek_status cek__sim_lost(const cek_dev *dev, const char *call)
{
    const cek_status st = cek__latch_check(&dev->lost, &dev->instance->host, call, dev->index);
    return st ? st : cek__latch_check(&cek__sim_state(dev)->lost, &dev->instance->host, call, dev->index);
}

static bool is_lost(const cek_dev *dev)
{
    return cek__latched(&dev->lost) || cek__latched(&cek__sim_state(dev)->lost);
}

cek_status cek__sim_hold(const cek_dev *dev, uint64_t timeout_ns)
{
    cek__sim_device *state = cek__sim_state(dev);
    uint64_t watchdog_ns = dev->instance->watchdog_ns, left_ns, wait_ns;
    struct timespec until;
    pthread_mutex_lock(&state->lock);
    left_ns = watchdog_ns - state->held_ns;
    wait_ns = timeout_ns < left_ns ? timeout_ns : left_ns;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(wait_ns / 1000000000);
    until.tv_nsec += (long)(wait_ns % 1000000000);
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    while (!is_lost(dev) && pthread_cond_timedwait(&state->lost_now, &state->lock, &until) != ETIMEDOUT)
        ;
    bool lost = is_lost(dev);
    left_ns = watchdog_ns - state->held_ns;
    state->held_ns += wait_ns < left_ns ? wait_ns : left_ns;
    pthread_mutex_unlock(&state->lock);
    if (!lost && timeout_ns <= left_ns)
        return CEK_TIMEOUT;
    if (!lost)
        cek__sim_lose(dev, "the watchdog ended a simulated hang of sim:%u after %llu ms", dev->index,
                      (unsigned long long)(watchdog_ns / 1000000));
    return cek__sim_lost(dev, "a wait");
}

/* --- faults ----------------------------------------------------------------------------------- */

/* The fault that strikes this call. All that match count it; the first in the list that is due wins. */
static cek__sim_fault strike(const cek_dev *dev, cek__sim_call call)
{
    const cek_instance *instance = dev->instance;
    cek__sim_device *state = cek__sim_state(dev);
    cek__sim_fault struck = { .effect = CEK__SIM_NONE };
    if (!instance->fault_count)
        return struck;
    pthread_mutex_lock(&state->lock);
    for (uint32_t i = 0; i < instance->fault_count; i++) {
        const cek__sim_fault *fault = &instance->faults[i];
        if (!(fault->calls >> call & 1) || (fault->device != UINT32_MAX && fault->device != dev->index))
            continue;
        uint64_t seen = ++state->seen[i];
        if (!struck.effect && (seen == fault->at || (seen > fault->at && fault->from_then_on)))
            struck = *fault;
    }
    pthread_mutex_unlock(&state->lock);
    if (struck.effect)
        cek__host_log(&instance->host, 3, "sim:%u: %s: struck by %s", dev->index, cek__sim_call_name(call),
                      cek__sim_fault_name(&struck));
    while (struck.effect == CEK__SIM_BLOCK)
        pause();
    if (struck.effect == CEK__SIM_SLEEP) {
        usleep(CEK__SIM_SLEEP_MS * 1000);
        struck.effect = CEK__SIM_NONE;
    }
    return struck;
}

void cek__sim_release_pass(const cek_dev *dev, cek__sim_call call)
{
    (void)strike(dev, call);
}

/* What a call returns that fails by itself. */
static cek_status fail_now(const cek_dev *dev, cek__sim_call call, cek_status status)
{
    const char *name = cek__sim_call_name(call);
    if (status != CEK_DEVICE_LOST)
        return cek__host_fail(&dev->instance->host, status, "%s: simulated failure of sim:%u", name, dev->index);
    cek__sim_lose(dev, "%s: simulated loss of sim:%u", name, dev->index);
    return cek__sim_lost(dev, name);
}

cek_status cek__sim_pass(const cek_dev *dev, cek__sim_call call)
{
    atomic_fetch_add(&cek__sim_state(dev)->calls[call], 1);
    cek_status st = cek__sim_lost(dev, cek__sim_call_name(call));
    if (st)
        return st;
    cek__sim_fault fault = strike(dev, call);
    switch (fault.effect) {
    case CEK__SIM_FAIL: return fail_now(dev, call, fault.status);
    case CEK__SIM_HANG: return cek__sim_hold(dev, CEK_FOREVER);
    default: return CEK_OK;
    }
}

static cek_status halve(cek_queue *queue, const char *call)
{
    if (cek__clock_speed(queue->dev->instance->clock, queue->line, 50))
        return CEK_OK;
    return cek__host_fail(&queue->dev->instance->host, CEK_OUT_OF_MEMORY, "%s: no memory for the clock", call);
}

bool cek__sim_queue_pass(cek_queue *queue, cek__sim_call call, cek_status *st)
{
    const cek_dev *dev = queue->dev;
    const char *name = cek__sim_call_name(call);
    *st = cek__sim_lost(dev, name);
    if (!*st)
        *st = cek__failure_check(&queue->failure, &dev->instance->host, name);
    if (*st)
        return false;
    cek__sim_fault fault = strike(dev, call);
    if (fault.effect == CEK__SIM_FAIL)
        *st = fail_now(dev, call, fault.status);
    else if (fault.effect == CEK__SIM_LATER && fault.status == CEK_DEVICE_LOST)
        cek__sim_lose(dev, "%s: simulated loss of sim:%u by work in a queue", name, dev->index);
    else if (fault.effect == CEK__SIM_LATER)
        cek__failure_set(&queue->failure, fault.status, "%s: simulated failure of sim:%u by work in a queue", name,
                         dev->index);
    else if (fault.effect == CEK__SIM_HANG && dev->instance->inline_work)
        *st = cek__sim_hold(dev, CEK_FOREVER); /* the call is the work */
    else if (fault.effect == CEK__SIM_HANG)
        queue->hangs = true;
    else if (fault.effect == CEK__SIM_HALVE)
        *st = halve(queue, name);
    return !*st && (!fault.effect || fault.effect == CEK__SIM_HALVE) && !queue->hangs;
}

bool cek__sim_wait_pass(const cek_dev *dev, cek__sim_call call, bool hangs, uint64_t timeout_ns, cek_status *st)
{
    atomic_fetch_add(&cek__sim_state(dev)->calls[call], 1);
    *st = cek__sim_lost(dev, cek__sim_call_name(call));
    if (*st)
        return false;
    cek__sim_fault fault = strike(dev, call);
    if (fault.effect == CEK__SIM_FAIL)
        *st = fail_now(dev, call, fault.status);
    else if (hangs || fault.effect == CEK__SIM_HANG)
        *st = cek__sim_hold(dev, timeout_ns);
    return !*st;
}

/* --- memory and handles ----------------------------------------------------------------------- */

uint64_t cek__sim_free_bytes(cek_instance *instance, uint32_t index)
{
    cek__sim_device *state = &instance->devices[index];
    pthread_mutex_lock(&state->lock);
    uint64_t left = state->memory_bytes - state->used_bytes;
    pthread_mutex_unlock(&state->lock);
    return left;
}

cek_status cek__sim_wrapper_make(cek_dev *dev, cek__sim_call call, size_t bytes, void *out)
{
    void *wrapper = NULL;
    cek_status st = cek__sim_pass(dev, call);
    if (!st && !(wrapper = calloc(1, bytes)))
        st = cek__host_fail(&dev->instance->host, CEK_OUT_OF_MEMORY, "%s: no memory for the handle",
                            cek__sim_call_name(call));
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
