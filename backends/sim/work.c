/* SPDX-License-Identifier: MIT
 *
 * work.c - what a command does in the inner plugin: when it is enqueued, or, with sim_work=late, when its
 * time has passed.
 *
 * Late, a command that does not wait for what it needs finds what was there before, and one that does not wait until a
 * place is free spoils it for who still reads. A transfer takes its whole span for that: when it could begin its
 * destination becomes garbage, and a source that is another by its end loses the device. An operation reads and writes
 * at its end: two operations that miss a wait may come in the right order all the same.
 */
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "backends/sim/sim.h"

struct cek__sim_later {
    cek__task begin, end; /* of a transfer, and of every command */
    atomic_uint users;    /* the tasks that are still to come, and the queue as long as it keeps this */
    cek__sim_work work;
    cek_queue *queue;
    unsigned char *seen;   /* of a source, when the transfer could begin */
    unsigned char bytes[]; /* what an update writes */
};

static void release(struct cek__sim_later *later)
{
    if (atomic_fetch_sub(&later->users, 1) == 1) {
        free(later->seen);
        free(later);
    }
}

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

/* Another device's memory can be looked into where the host reaches it. */
static bool reads(const cek_queue *queue, const cek__sim_work *w)
{
    const cek_plugin *inner = &queue->dev->instance->plugin;
    return w->bytes && (w->call == CEK__SIM_download || (w->call == CEK__SIM_copy && inner->mem_host_ptr(w->src.mem)));
}

/* Whole bytes of device memory. */
static bool writes(const cek__sim_work *w)
{
    return w->bytes && (w->call == CEK__SIM_upload || w->call == CEK__SIM_update || w->call == CEK__SIM_fill ||
                        w->call == CEK__SIM_copy);
}

static cek_status settle(cek_queue *queue, cek_status st)
{
    return st ? st : INNER(queue->dev, queue_sync, queue->inner, CEK_FOREVER);
}

static cek_status source_read(cek_queue *queue, const cek__sim_work *w, unsigned char *to)
{
    const cek_plugin *inner = &queue->dev->instance->plugin;
    const unsigned char *lies = inner->mem_host_ptr(w->src.mem);
    if (!lies)
        return settle(queue, inner->download(queue->inner, to, w->src, w->bytes));
    memcpy(to, lies + w->src.offset, w->bytes);
    return CEK_OK;
}

static void lose(const struct cek__sim_later *later, cek_status st)
{
    if (st)
        cek__sim_lose(later->queue->dev, "%s: status %u of the plugin inside, when its time had passed",
                      cek__sim_call_name(later->work.call), (unsigned)st);
}

/* A device that is lost does nothing any more: its memory may have been given back. */
static bool does(const struct cek__sim_later *later, bool reached)
{
    return reached && !cek__sim_latch_status(later->queue->dev, NULL, 0);
}

/* NaN of every type that has any. */
static void later_begin(cek__task *task, bool reached)
{
    enum { GARBAGE = 0xff };
    struct cek__sim_later *later =
        (struct cek__sim_later *)(void *)((char *)task - offsetof(struct cek__sim_later, begin));
    reached = does(later, reached);
    const cek__sim_work *w = &later->work;
    cek_queue *queue = later->queue;
    cek_status st = CEK_OK;
    if (reached && later->seen)
        st = source_read(queue, w, later->seen);
    if (reached && !st && w->call == CEK__SIM_download)
        memset(w->to, GARBAGE, w->bytes);
    if (reached && !st && writes(w))
        st = settle(queue, queue->dev->instance->plugin.fill(queue->inner, w->dst, GARBAGE, 1, w->bytes));
    lose(later, st);
    release(later);
}

/* *same: the source is what it was. */
static cek_status source_compare(cek_queue *queue, const struct cek__sim_later *later, bool *same)
{
    unsigned char *now = malloc(later->work.bytes);
    cek_status st = now ? source_read(queue, &later->work, now) : CEK_OUT_OF_MEMORY;
    *same = st || !memcmp(now, later->seen, later->work.bytes);
    free(now);
    return st;
}

/* Its call returned long ago, so a failure can only be the device's. What ends behind this may need it
 * on another queue. */
static void later_end(cek__task *task, bool reached)
{
    struct cek__sim_later *later =
        (struct cek__sim_later *)(void *)((char *)task - offsetof(struct cek__sim_later, end));
    reached = does(later, reached);
    bool same = true;
    cek_status st = CEK_OK;
    if (reached && later->seen)
        st = source_compare(later->queue, later, &same);
    if (reached && !st)
        st = settle(later->queue, perform(later->queue, &later->work));
    lose(later, st);
    if (!same)
        cek__sim_lose(later->queue->dev, "%s: its source was written to before it had been read: a wait is missing",
                      cek__sim_call_name(later->work.call));
    release(later);
}

/* Where the queue is now is where a transfer begins, as soon as it gets what it occupies. */
static bool begin_enqueue(cek_queue *queue, struct cek__sim_later *later)
{
    const cek__sim_work *w = &later->work;
    const bool looks = reads(queue, w);
    if (!looks && !writes(w))
        return true;
    if (looks && !(later->seen = malloc(w->bytes)))
        return false;
    atomic_store(&later->users, 2);
    if (cek__clock_task(queue->dev->instance->clock, queue->line, &later->begin))
        return true;
    atomic_store(&later->users, 1);
    return false;
}

static cek_status hold(cek_queue *queue, const cek__sim_work *w)
{
    uint64_t copied = w->call == CEK__SIM_update ? w->bytes : 0;
    struct cek__sim_later *later = malloc(sizeof *later + copied);
    if (later) {
        *later = (struct cek__sim_later){
            .begin = { later_begin }, .end = { later_end }, .users = 1, .work = *w, .queue = queue
        };
        if (copied) {
            memcpy(later->bytes, w->from, copied);
            later->work.from = later->bytes;
        }
    }
    if (!later || !begin_enqueue(queue, later)) {
        if (later)
            release(later);
        return cek__host_fail(&queue->dev->instance->host, CEK_OUT_OF_MEMORY, "%s: no memory for the command",
                              cek__sim_call_name(w->call));
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
    if (!later || cek__clock_task(queue->dev->instance->clock, queue->line, &later->end))
        return CEK_OK;
    release(later);
    return cek__host_fail(&queue->dev->instance->host, CEK_OUT_OF_MEMORY, "no memory for a command on the clock");
}

void cek__sim_work_drop(cek_queue *queue)
{
    if (queue->later)
        release(queue->later);
    queue->later = NULL;
}
