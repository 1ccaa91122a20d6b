/* SPDX-License-Identifier: MIT
 *
 * clock.c - virtual time: what commands cost, where each queue has got to, and how far each thread
 * of the host has seen.
 *
 * A command starts when its queue is free, and not before the thread that enqueues it had seen
 * other work end. Nothing real is measured, so the same calls give the same times. Queues of one
 * device run side by side at full speed each: only what events and waits say makes one follow
 * another. What one thread tells another without an event the clock does not see.
 */
#include "backends/sim/sim.h"

static uint64_t add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Nanoseconds for `amount` at `rate` a second, rounded up. */
static uint64_t span(uint64_t amount, uint64_t rate)
{
    __extension__ unsigned __int128 ns = ((unsigned __int128)amount * 1000000000 + rate - 1) / rate;
    return ns > UINT64_MAX ? UINT64_MAX : (uint64_t)ns;
}

uint64_t cek__sim_work_ns(const cek__sim_speed *speed, uint64_t flops, uint64_t bytes)
{
    uint64_t computing = span(flops, speed->flops), moving = span(bytes, speed->bandwidth);
    return add(speed->launch_ns, computing > moving ? computing : moving);
}

uint64_t cek__sim_transfer_ns(const cek__sim_speed *speed, uint64_t bytes)
{
    return bytes ? add(speed->latency_ns, span(bytes, speed->link)) : 0;
}

uint64_t cek__sim_copy_ns(const cek_dev *dev, cek_ref src, uint64_t bytes)
{
    const cek__sim_speed *here = &cek__sim_state(dev)->speed;
    if (!bytes)
        return 0;
    if (src.mem->dev->index == dev->index)
        return cek__sim_work_ns(here, 0, add(bytes, bytes));
    /* The slower of the two links is what the bytes wait for. */
    uint64_t to = cek__sim_transfer_ns(here, bytes),
             from = cek__sim_transfer_ns(&cek__sim_state(src.mem->dev)->speed, bytes);
    return to > from ? to : from;
}

void cek__sim_not_before(cek_queue *queue, uint64_t time_ns)
{
    if (queue->time_ns < time_ns)
        queue->time_ns = time_ns;
}

/* A thread's value of the key is the time itself: pointers have 64 bits (plugin.h), and nothing is to be freed. */
static uint64_t host_time(const cek_instance *instance)
{
    return (uint64_t)(uintptr_t)pthread_getspecific(instance->host_time);
}

cek_status cek__sim_advance(cek_queue *queue, cek_status st, uint64_t cost_ns)
{
    if (st)
        return st;
    cek__sim_not_before(queue, host_time(queue->dev->instance));
    queue->time_ns = add(queue->time_ns, cost_ns);
    return CEK_OK;
}

void cek__sim_host_saw(cek_instance *instance, uint64_t time_ns)
{
    if (host_time(instance) < time_ns)
        pthread_setspecific(instance->host_time, (void *)(uintptr_t)time_ns);
}
