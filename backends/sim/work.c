/* SPDX-License-Identifier: MIT
 *
 * work.c - what a command does in the inner plugin: when it is enqueued, or, with sim_work=late, when its
 * time has passed.
 *
 * Late, a command that does not wait for what it needs finds what was there before, and one that does not wait until a
 * place is free spoils it for who still reads: as on a device, and without luck.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/sim/sim.h"

struct cek__sim_later {
    cek__task task;
    cek__sim_work work;
    cek_queue *queue;
    unsigned char bytes[]; /* what an update writes */
};

static cek_status perform(cek_queue *queue, const cek__sim_work *w)
{
    const cek_plugin *inner = &queue->dev->instance->plugin;
    switch (w->call) {
    case CEK__SIM_upload: return inner->upload(queue->inner, w->dst, w->from, w->bytes);
    case CEK__SIM_download: return inner->download(queue->inner, w->to, w->src, w->bytes);
    case CEK__SIM_copy: return inner->copy(queue->inner, w->dst, w->src, w->bytes);
    case CEK__SIM_fill: return inner->fill(queue->inner, w->dst, w->pattern, w->pattern_bytes, w->bytes);
    case CEK__SIM_update: return inner->update(queue->inner, w->dst, w->from, w->bytes);
    case CEK__SIM_op_prepack: return INNER(queue->dev, op_prepack, queue->inner, w->op, w->operands, w->count, w->dst);
    case CEK__SIM_op_run: return inner->op_run(queue->inner, w->op, w->operands, w->count, w->dst);
    case CEK__SIM_event_record: return inner->event_record(queue->inner, w->event);
    default: return INNER(queue->dev, cmdbuf_run, queue->inner, w->cmdbuf);
    }
}

/* Its call returned long ago, so a failure can only be the device's. What ends behind this may need it
 * on another queue. */
static void later_end(cek__task *task, bool reached)
{
    struct cek__sim_later *later = (struct cek__sim_later *)task;
    cek_status st = reached ? perform(later->queue, &later->work) : CEK_OK;
    if (reached && !st)
        st = INNER(later->queue->dev, queue_sync, later->queue->inner, CEK_FOREVER);
    if (st)
        cek__sim_lose(later->queue->dev, "%s: status %u of the plugin inside, when its time had passed",
                      cek__sim_call_name(later->work.call), (unsigned)st);
    free(later);
}

static cek_status hold(cek_queue *queue, const cek__sim_work *w)
{
    uint64_t copied = w->call == CEK__SIM_update ? w->bytes : 0;
    struct cek__sim_later *later = malloc(sizeof *later + copied);
    if (!later)
        return cek__host_fail(&queue->dev->instance->host, CEK_OUT_OF_MEMORY, "%s: no memory for the command",
                              cek__sim_call_name(w->call));
    *later = (struct cek__sim_later){ .task = { later_end }, .work = *w, .queue = queue };
    if (copied) {
        memcpy(later->bytes, w->from, copied);
        later->work.from = later->bytes;
    }
    queue->later = later;
    return CEK_OK;
}

cek_status cek__sim_do(cek_queue *queue, const cek__sim_work *work)
{
    switch (queue->dev->instance->work) {
    case CEK__SIM_WORK_NONE: return CEK_OK;
    case CEK__SIM_WORK_LATE: return hold(queue, work);
    default: return perform(queue, work);
    }
}

cek_status cek__sim_work_follow(cek_queue *queue)
{
    struct cek__sim_later *later = queue->later;
    queue->later = NULL;
    if (!later || cek__clock_task(queue->dev->instance->clock, queue->line, &later->task))
        return CEK_OK;
    free(later);
    return cek__host_fail(&queue->dev->instance->host, CEK_OUT_OF_MEMORY, "no memory for a command on the clock");
}

void cek__sim_work_drop(cek_queue *queue)
{
    free(queue->later);
    queue->later = NULL;
}
