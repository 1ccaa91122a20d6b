/* SPDX-License-Identifier: MIT
 *
 * queue.c - queues of simulated devices: the inner ones, the failures and hangs that those know nothing of, and time.
 *
 * What is enqueued behind a command that hangs is taken and never done, so the inner queue never hangs by itself.
 */
#include <stdlib.h>

#include "backends/common/growth.h"
#include "backends/sim/sim.h"

cek_status cek__sim_queue_create(cek_dev *dev, const cek_queue_desc *desc, cek_queue **out)
{
    enum { DEADLINE_NS = 10000000000 }; /* plugin.h, section 6 */
    cek_queue_desc want = { .size = sizeof want };
    cek_status st = cek__sim_wrapper_make(dev, CEK__SIM_queue_create, sizeof **out, out);
    if (st)
        return st;
    if (desc)
        st = cek__struct_in(&dev->instance->host, "queue_create: descriptor", desc, &want, sizeof want);
    if (!st)
        st = INNER(dev, queue_create, dev->inner, desc, &(*out)->inner);
    (*out)->timing = want.flags & CEK_QUEUE_TIMING;
    (*out)->deadline_ns = want.deadline_ns ? want.deadline_ns : DEADLINE_NS;
    return cek__sim_wrapper_done(*out, st, out);
}

/* Nothing in this process runs behind a simulated hang: at the deadline there is a latch, and nothing to leak. */
void cek__sim_queue_destroy(cek_queue *queue)
{
    if (!queue)
        return;
    if (queue->hangs && cek__sim_hold(queue->dev, queue->deadline_ns) == CEK_TIMEOUT)
        cek__sim_lose(queue->dev, "queue_destroy: the work of a queue of sim:%u did not end in %llu ms",
                      queue->dev->index, (unsigned long long)(queue->deadline_ns / 1000000));
    queue->dev->instance->plugin.queue_destroy(queue->inner);
    free(queue);
}

cek_status cek__sim_queue_status(cek_queue *queue, char *text, uint64_t cap)
{
    if (cek__sim_latch_status(queue->dev, text, cap))
        return CEK_DEVICE_LOST;
    if (!queue->failure.status)
        return INNER(queue->dev, queue_status, queue->inner, text, cap);
    cek__text_out(text, cap, queue->failure.text);
    return queue->failure.status;
}

cek_status cek__sim_queue_sync(cek_queue *queue, uint64_t timeout_ns)
{
    cek_status st;
    if (queue->failure.status && !cek__sim_latch_status(queue->dev, NULL, 0))
        return queue->failure.status;
    if (!cek__sim_wait_pass(queue->dev, CEK__SIM_queue_sync, queue->hangs, timeout_ns, &st))
        return st;
    st = INNER(queue->dev, queue_sync, queue->inner, timeout_ns);
    if (!st)
        cek__sim_host_saw(queue->dev->instance, queue->time_ns);
    return st;
}

/* A command that goes to the inner queue unless the gate answers, and takes its time there. */
#define ENQUEUE(queue, slot, cost_ns, ...)                       \
    cek_status st;                                               \
    if (!cek__sim_queue_pass(queue, CEK__SIM_##slot, &st))       \
        return st;                                               \
    st = INNER((queue)->dev, slot, (queue)->inner, __VA_ARGS__); \
    return cek__sim_advance(queue, st, st ? 0 : (cost_ns))

static const cek__sim_speed *speed_of(const cek_queue *queue)
{
    return &cek__sim_state(queue->dev)->speed;
}

cek_status cek__sim_upload(cek_queue *queue, cek_ref dst, const void *src, uint64_t bytes)
{
    ENQUEUE(queue, upload, cek__sim_transfer_ns(speed_of(queue), bytes), inner_ref(dst), src, bytes);
}

cek_status cek__sim_download(cek_queue *queue, void *dst, cek_ref src, uint64_t bytes)
{
    ENQUEUE(queue, download, cek__sim_transfer_ns(speed_of(queue), bytes), dst, inner_ref(src), bytes);
}

cek_status cek__sim_copy(cek_queue *queue, cek_ref dst, cek_ref src, uint64_t bytes)
{
    if (!queue->dev->instance->shared && src.mem && src.mem->dev != queue->dev)
        return cek__host_fail(&queue->dev->instance->host, CEK_UNSUPPORTED, "copy: sim:%u does not reach sim:%u",
                              queue->dev->index, src.mem->dev->index);
    ENQUEUE(queue, copy, cek__sim_copy_ns(queue->dev, src, bytes), inner_ref(dst), inner_ref(src), bytes);
}

cek_status cek__sim_fill(cek_queue *queue, cek_ref dst, uint32_t pattern, uint32_t pattern_bytes, uint64_t bytes)
{
    ENQUEUE(queue, fill, bytes ? cek__sim_work_ns(speed_of(queue), 0, bytes) : 0, inner_ref(dst), pattern,
            pattern_bytes, bytes);
}

cek_status cek__sim_update(cek_queue *queue, cek_ref dst, const void *src, uint64_t bytes)
{
    ENQUEUE(queue, update, cek__sim_transfer_ns(speed_of(queue), bytes), inner_ref(dst), src, bytes);
}
