/* SPDX-License-Identifier: MIT
 *
 * timeline.h - when commands run on simulated devices: a pure model, events in, times out.
 *
 * A device has one compute engine, some copy engines, and a link that carries one transfer each way at a time. A
 * command is the next of its line (a queue's commands), needs an engine and perhaps directions of links, and occupies
 * them from its start to its end. It starts when the one before it has ended and all that it needs is free. What is
 * free goes to whoever has been ready for longest, ties to the lowest device, then the line that was opened first: who
 * called first at one instant, and on which thread, makes no difference, since nothing is given out before the
 * time goes on.
 *
 *     cek__mark *mark;
 *     cek__timeline_enqueue(line, &(cek__need){ .computes = true }, 1000);
 *     cek__timeline_mark(line, &mark);
 *     while (!cek__mark_time(mark, &ns) && cek__timeline_next(timeline, UINT64_MAX))
 *         ...
 *
 * Knows no thread, no clock of the machine, no plugin. One caller at a time.
 */
#ifndef CEK_BACKENDS_SIM_TIMELINE_H
#define CEK_BACKENDS_SIM_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct cek__timeline cek__timeline;
typedef struct cek__line cek__line; /* the commands of a queue, in order */
typedef struct cek__mark cek__mark; /* a point of a line: when what stands before it has ended */

/* What is to be done when the commands before it have ended, or, not `reached`, when the line is
 * closed before: once. */
typedef struct cek__task cek__task;
struct cek__task {
    void (*end)(cek__task *task, bool reached);
};

/* What a command occupies. Links are those of the devices named, UINT32_MAX: none. */
typedef struct cek__need {
    bool computes, copies; /* an engine of the line's own device */
    uint32_t into, out_of; /* the device into which, and that out of which, bytes cross a link; where `copies` */
} cek__need;

/* What a device has done up to now. */
typedef struct cek__busy {
    uint64_t compute_ns; /* its compute engine was occupied */
    uint64_t copy_ns;    /* one of its copy engines, or its link */
    uint64_t exposed_ns; /* one of those, and the compute engine was not */
} cek__busy;

/* NULL: no memory. */
cek__timeline *cek__timeline_create(uint32_t devices);
/* All lines are closed before, all marks may still be held. */
void cek__timeline_free(cek__timeline *timeline);
/* Before the first command: one engine each without it. */
void cek__timeline_engines(cek__timeline *timeline, uint32_t device, uint64_t copy_engines);
/* Likewise: a command computes in waves of so many ns at most, as the groups of a kernel are given to a device's
 * processors, and behind each the engine goes to what has been ready for longest; 0, as without it: in one. */
void cek__timeline_waves(cek__timeline *timeline, uint32_t device, uint64_t wave_ns);

cek__line *cek__timeline_open(cek__timeline *timeline, uint32_t device);
/* What has not ended does not: marks behind it never happen. */
void cek__timeline_close(cek__line *line);

/* A command behind all others of the line. False: no memory, and nothing was enqueued. A need of nothing, or a cost of
 * 0, takes no time once those before it have ended. */
bool cek__timeline_enqueue(cek__line *line, const cek__need *need, uint64_t cost_ns);
/* When those before it have ended, the line's device goes on at `percent` of its speed: what it computes takes 100 /
 * percent of its cost, but a command that has started keeps its own. */
bool cek__timeline_speed(cek__line *line, uint64_t percent);
/* A task behind all others of the line, which is the timeline's from now on. False: no memory. It must not
 * call the timeline. */
bool cek__timeline_task(cek__line *line, cek__task *task);
/* Until the mark has happened, nothing behind this does. */
bool cek__timeline_wait(cek__line *line, cek__mark *mark);
/* A mark, which the caller releases. Behind nothing that is outstanding it has happened at once. */
bool cek__timeline_mark(cek__line *line, cek__mark **out);
bool cek__timeline_is_idle(const cek__line *line);

/* Whether it has happened, and when. */
bool cek__mark_time(const cek__mark *mark, uint64_t *ns);
cek__mark *cek__mark_hold(cek__mark *mark);
void cek__mark_release(cek__mark *mark); /* NULL: nothing */

/* What the host knows of a mark is for whoever drives the timeline: `watched`, it has asked; `seen`, it was told. A
 * mark that happened at once, and all that cek__timeline_tell handed out, was seen. */
bool cek__mark_seen(const cek__mark *mark);
void cek__mark_watch(cek__mark *mark);
bool cek__mark_watched(const cek__mark *mark);

/* Tells the next mark that has happened and was not seen, in the order of time; within an instant in an order that does
 * not depend on who called first; the caller releases it. NULL: there is none. */
cek__mark *cek__timeline_tell(cek__timeline *timeline);

/* Gives out what is free and goes on to the next instant at which a command ends, if that is not behind `limit_ns`.
 * False: it is, or nothing runs. */
bool cek__timeline_next(cek__timeline *timeline, uint64_t limit_ns);
/* When the next command ends that runs now; UINT64_MAX: none does. */
uint64_t cek__timeline_horizon(cek__timeline *timeline);
/* Lets time pass in which nothing ends. */
void cek__timeline_pass(cek__timeline *timeline, uint64_t now_ns);
uint64_t cek__timeline_now(const cek__timeline *timeline);

cek__busy cek__timeline_busy(const cek__timeline *timeline, uint32_t device);

#endif
