/* SPDX-License-Identifier: MIT
 *
 * queue.c - queues of simulated devices: the inner ones, the failures and hangs that those know nothing of, and a line
 * on the clock.
 *
 * What is enqueued behind a command that hangs is taken and never done, so the inner queue never hangs by itself.
 */
#include <stdlib.h>
#include <string.h>

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
    if (!st && dev->instance->clock && !((*out)->line = cek__clock_open(dev->instance->clock, dev->index))) {
        dev->instance->plugin.queue_destroy((*out)->inner);
        st = cek__host_fail(&dev->instance->host, CEK_OUT_OF_MEMORY, "queue_create: no memory for the clock");
    }
    (*out)->timing = want.flags & CEK_QUEUE_TIMING;
    (*out)->deadline_ns = want.deadline_ns ? want.deadline_ns : DEADLINE_NS;
    return cek__sim_wrapper_done(*out, st, out);
}

static cek_status drain(cek_queue *queue, uint64_t *timeout_ns)
{
    const cek_dev *dev = queue->dev;
    return queue->line ? cek__clock_drain(dev->instance->clock, queue->line, timeout_ns, &cek__sim_state(dev)->lost)
                       : CEK_OK;
}

/* Nothing in this process runs behind a simulated hang: at the deadline there is a latch, and nothing to leak. */
void cek__sim_queue_destroy(cek_queue *queue)
{
    if (!queue)
        return;
    cek_dev *dev = queue->dev;
    cek__sim_release_pass(dev, CEK__SIM_queue_destroy);
    uint64_t left_ns = queue->deadline_ns;
    cek_status st = queue->hangs ? cek__sim_hold(dev, queue->deadline_ns) : drain(queue, &left_ns);
    if (st == CEK_TIMEOUT)
        cek__sim_lose_handle(dev, "queue_destroy: the work of a queue of sim:%u did not end in %llu ms", dev->index,
                             (unsigned long long)(queue->deadline_ns / 1000000));
    if (queue->line)
        cek__clock_close(dev->instance->clock, queue->line);
    dev->instance->plugin.queue_destroy(queue->inner);
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

/* What came before a failure still takes its time. */
cek_status cek__sim_queue_sync(cek_queue *queue, uint64_t timeout_ns)
{
    cek_status st;
    bool failed = queue->failure.status && !cek__sim_latch_status(queue->dev, NULL, 0);
    if (!failed && !cek__sim_wait_pass(queue->dev, CEK__SIM_queue_sync, queue->hangs, timeout_ns, &st))
        return st;
    st = drain(queue, &timeout_ns);
    if (!st || st == CEK_DEVICE_LOST) /* what was done late may have lost it */
        st = cek__sim_lost(queue->dev, "queue_sync");
    if (st)
        return st;
    return failed ? queue->failure.status : INNER(queue->dev, queue_sync, queue->inner, timeout_ns);
}

/* An inline device takes the caller's thread for as long as its work takes. */
static cek_status spend(cek_queue *queue, cek_status st, const cek__need *need, const uint64_t *costs_ns, size_t count)
{
    const cek_instance *instance = queue->dev->instance;
    uint64_t for_ever = CEK_FOREVER;
    if (st || !queue->line)
        return st;
    if (!cek__clock_spend(instance->clock, queue->line, need, costs_ns, count)) {
        cek__sim_work_drop(queue);
        return cek__host_fail(&instance->host, CEK_OUT_OF_MEMORY, "no memory for %zu commands on the clock", count);
    }
    st = cek__sim_work_follow(queue);
    if (st)
        return st;
    if (!instance->inline_work || drain(queue, &for_ever) != CEK_DEVICE_LOST)
        return CEK_OK;
    return cek__sim_lost(queue->dev, "a command");
}

cek_status cek__sim_spend(cek_queue *queue, cek_status st, const uint64_t *costs_ns, size_t count)
{
    static const cek__need compute = { .computes = true, .into = UINT32_MAX, .out_of = UINT32_MAX };
    return spend(queue, st, &compute, costs_ns, count);
}

/* Over a link: into the device, or out of it. */
static cek_status spend_transfer(cek_queue *queue, cek_status st, uint32_t into, uint32_t out_of, uint64_t cost_ns)
{
    const cek__need copy = { .copies = true, .into = into, .out_of = out_of };
    return spend(queue, st, &copy, &cost_ns, 1);
}

static const cek__sim_speed *speed_of(const cek_queue *queue)
{
    return &cek__sim_state(queue->dev)->speed;
}

cek_status cek__sim_upload(cek_queue *queue, cek_ref dst, const void *src, uint64_t bytes)
{
    cek_status st;
    if (!cek__sim_queue_pass(queue, CEK__SIM_upload, &st))
        return st;
    st = cek__sim_do(queue,
                     &(cek__sim_work){ .call = CEK__SIM_upload, .dst = inner_ref(dst), .from = src, .bytes = bytes });
    return spend_transfer(queue, st, queue->dev->index, UINT32_MAX, cek__sim_transfer_ns(speed_of(queue), bytes));
}

/* What was never computed is zero. */
cek_status cek__sim_download(cek_queue *queue, void *dst, cek_ref src, uint64_t bytes)
{
    cek_status st;
    if (!cek__sim_queue_pass(queue, CEK__SIM_download, &st))
        return st;
    st = cek__sim_do(queue,
                     &(cek__sim_work){ .call = CEK__SIM_download, .to = dst, .src = inner_ref(src), .bytes = bytes });
    if (queue->dev->instance->work == CEK__SIM_WORK_NONE && bytes)
        memset(dst, 0, bytes);
    return spend_transfer(queue, st, UINT32_MAX, queue->dev->index, cek__sim_transfer_ns(speed_of(queue), bytes));
}

cek_status cek__sim_copy(cek_queue *queue, cek_ref dst, cek_ref src, uint64_t bytes)
{
    cek_status st;
    const cek_dev *from = src.mem ? src.mem->dev : queue->dev;
    if (!queue->dev->instance->shared && from != queue->dev)
        return cek__host_fail(&queue->dev->instance->host, CEK_UNSUPPORTED, "copy: sim:%u does not reach sim:%u",
                              queue->dev->index, from->index);
    if (!cek__sim_queue_pass(queue, CEK__SIM_copy, &st))
        return st;
    st = cek__sim_do(
        queue, &(cek__sim_work){ .call = CEK__SIM_copy, .dst = inner_ref(dst), .src = inner_ref(src), .bytes = bytes });
    uint64_t cost_ns = st ? 0 : cek__sim_copy_ns(queue->dev, src, bytes);
    return from->index == queue->dev->index ? cek__sim_spend(queue, st, &cost_ns, 1)
                                            : spend_transfer(queue, st, queue->dev->index, from->index, cost_ns);
}

cek_status cek__sim_fill(cek_queue *queue, cek_ref dst, uint32_t pattern, uint32_t pattern_bytes, uint64_t bytes)
{
    cek_status st;
    if (!cek__sim_queue_pass(queue, CEK__SIM_fill, &st))
        return st;
    st = cek__sim_do(queue, &(cek__sim_work){ .call = CEK__SIM_fill,
                                              .dst = inner_ref(dst),
                                              .pattern = pattern,
                                              .pattern_bytes = pattern_bytes,
                                              .bytes = bytes });
    uint64_t cost_ns = bytes ? cek__sim_work_ns(speed_of(queue), 0, bytes) : 0;
    return cek__sim_spend(queue, st, &cost_ns, 1);
}

cek_status cek__sim_update(cek_queue *queue, cek_ref dst, const void *src, uint64_t bytes)
{
    cek_status st;
    if (!cek__sim_queue_pass(queue, CEK__SIM_update, &st))
        return st;
    st = cek__sim_do(queue,
                     &(cek__sim_work){ .call = CEK__SIM_update, .dst = inner_ref(dst), .from = src, .bytes = bytes });
    return spend_transfer(queue, st, queue->dev->index, UINT32_MAX, cek__sim_transfer_ns(speed_of(queue), bytes));
}
