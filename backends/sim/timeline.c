/* SPDX-License-Identifier: MIT
 *
 * timeline.c - see timeline.h.
 *
 * A command is WAITING behind others, then READY, then RUNNING, then gone:
 *   settle()   WAITING to READY when it is the first of its line; marks, waits and what takes no time go at once
 *   grant()    READY to RUNNING, in order of readiness
 *   end()      RUNNING to gone, or, with waves still to come, to READY
 * settle() runs after every end and before every grant, so that between two calls of cek__timeline_next only what was
 * enqueued since is unsettled.
 */
#include <stdlib.h>

#include "backends/sim/timeline.h"

struct cek__mark {
    uint32_t holders;
    bool happened, watched, seen;
    uint64_t ns;
    cek__mark *next; /* of those that were not told */
};

typedef struct command {
    struct command *next;
    cek__need need;
    uint64_t cost_ns, enqueued_ns;
    uint64_t left_ns; /* of what it takes, once it has started */
    cek__mark *mark;  /* to set, or, with `waits`, to wait for */
    bool waits;
    cek__task *task;
    uint64_t percent; /* of its speed, at which the device then goes on; 0: as it was */
} command;

struct cek__line {
    cek__timeline *timeline;
    cek__line *next; /* in the order of the list */
    uint32_t device;
    command *first, **last;
    bool ready, started, running;
    uint64_t free_ns;  /* when the latest command ended */
    uint64_t ready_ns; /* of the first command */
    uint64_t end_ns;   /* of the first command, which runs */
};

typedef struct engines {
    uint64_t copy_engines, copying, wave_ns, percent;
    bool computing, into, out_of;
    cek__busy busy;
} engines;

struct cek__timeline {
    uint32_t devices;
    uint64_t now_ns;
    cek__line *lines; /* by device, then in the order of opening */
    cek__mark *untold, **untold_last;
    engines at[]; /* [devices] */
};

/* ---- life ---- */

cek__timeline *cek__timeline_create(uint32_t devices)
{
    cek__timeline *t = calloc(1, sizeof *t + devices * sizeof *t->at);
    if (!t)
        return NULL;
    t->devices = devices;
    t->untold_last = &t->untold;
    for (uint32_t i = 0; i < devices; i++)
        t->at[i] = (engines){ .copy_engines = 1, .percent = 100 };
    return t;
}

void cek__timeline_free(cek__timeline *t)
{
    while (t && t->untold)
        cek__mark_release(cek__timeline_tell(t));
    free(t);
}

void cek__timeline_engines(cek__timeline *t, uint32_t device, uint64_t copy_engines)
{
    t->at[device].copy_engines = copy_engines;
}

void cek__timeline_waves(cek__timeline *t, uint32_t device, uint64_t wave_ns)
{
    t->at[device].wave_ns = wave_ns;
}

cek__line *cek__timeline_open(cek__timeline *t, uint32_t device)
{
    cek__line **at = &t->lines, *line = calloc(1, sizeof *line);
    if (!line)
        return NULL;
    while (*at && (*at)->device <= device)
        at = &(*at)->next;
    *line = (cek__line){ .timeline = t, .next = *at, .device = device, .last = &line->first, .free_ns = t->now_ns };
    *at = line;
    return line;
}

/* ---- what commands need ---- */

static bool crosses(const cek__need *need, uint32_t device)
{
    return need->copies && device != UINT32_MAX;
}

static bool is_free(const cek__line *line, const cek__need *need)
{
    const engines *all = line->timeline->at, *here = &all[line->device];
    return !(need->computes && here->computing) && !(need->copies && here->copying == here->copy_engines) &&
           !(crosses(need, need->into) && all[need->into].into) &&
           !(crosses(need, need->out_of) && all[need->out_of].out_of);
}

static void occupy(cek__line *line, const cek__need *need, bool busy)
{
    engines *all = line->timeline->at, *here = &all[line->device];
    if (need->computes)
        here->computing = busy;
    if (need->copies)
        here->copying += busy ? 1 : -UINT64_C(1);
    if (crosses(need, need->into))
        all[need->into].into = busy;
    if (crosses(need, need->out_of))
        all[need->out_of].out_of = busy;
}

static uint64_t later(uint64_t at, uint64_t span)
{
    return at > UINT64_MAX - 1 - span ? UINT64_MAX - 1 : at + span;
}

/* What the command takes if it starts now. */
static uint64_t span_of(const cek__line *line, const command *c)
{
    uint64_t percent = line->timeline->at[line->device].percent;
    if (!c->need.computes)
        return c->cost_ns;
    __extension__ unsigned __int128 ns = ((unsigned __int128)c->cost_ns * 100 + percent - 1) / percent;
    return ns > UINT64_MAX ? UINT64_MAX : (uint64_t)ns;
}

/* ---- transitions ---- */

static void drop_first(cek__line *line, bool reached)
{
    command *c = line->first;
    line->first = c->next;
    if (!line->first)
        line->last = &line->first;
    line->ready = line->started = line->running = false;
    cek__mark_release(c->mark);
    if (c->task)
        c->task->end(c->task, reached);
    free(c);
}

static void happen(cek__timeline *t, cek__mark *mark, uint64_t ns)
{
    mark->happened = true;
    mark->ns = ns;
    mark->next = NULL;
    *t->untold_last = cek__mark_hold(mark);
    t->untold_last = &mark->next;
}

static bool takes_time(const command *c)
{
    return (c->need.computes || c->need.copies) && c->cost_ns;
}

/* Lets go what takes no time and makes the first command of the line ready; true if anything else may depend on it. */
static bool line_settle(cek__line *line)
{
    bool any = false;
    for (command *c = line->first; c && !line->ready; c = line->first) {
        uint64_t ns = line->free_ns > c->enqueued_ns ? line->free_ns : c->enqueued_ns;
        if (c->waits && !c->mark->happened)
            break;
        if (takes_time(c)) {
            line->ready = true;
            line->ready_ns = ns;
            break;
        }
        line->free_ns = c->waits && c->mark->ns > ns ? c->mark->ns : ns;
        if (c->mark && !c->waits) {
            happen(line->timeline, c->mark, line->free_ns);
            any = true;
        }
        if (c->percent)
            line->timeline->at[line->device].percent = c->percent;
        drop_first(line, true);
    }
    return any;
}

static void settle(cek__timeline *t)
{
    bool any = true;
    while (any) {
        any = false;
        for (cek__line *line = t->lines; line; line = line->next)
            any = line_settle(line) || any;
    }
}

/* The line whose first command has been ready for longest, of those that find what they need. */
static cek__line *next_startable(const cek__timeline *t)
{
    cek__line *best = NULL;
    for (cek__line *line = t->lines; line; line = line->next)
        if (line->ready && !line->running && (!best || line->ready_ns < best->ready_ns) &&
            is_free(line, &line->first->need))
            best = line;
    return best;
}

static void grant(cek__timeline *t)
{
    for (cek__line *line = next_startable(t); line; line = next_startable(t)) {
        command *c = line->first;
        uint64_t wave_ns = c->need.computes ? t->at[line->device].wave_ns : 0;
        if (!line->started)
            c->left_ns = span_of(line, c);
        uint64_t span_ns = wave_ns && wave_ns < c->left_ns ? wave_ns : c->left_ns;
        c->left_ns -= span_ns;
        line->started = line->running = true;
        line->end_ns = later(t->now_ns, span_ns);
        occupy(line, &line->first->need, true);
    }
}

static void end(cek__line *line)
{
    line->free_ns = line->end_ns;
    occupy(line, &line->first->need, false);
    line->running = false;
    line->ready_ns = line->end_ns;
    if (!line->first->left_ns)
        drop_first(line, true);
}

/* ---- enqueuing ---- */

static bool append(cek__line *line, command given)
{
    command *c = malloc(sizeof *c);
    if (!c)
        return false;
    *c = given;
    c->next = NULL;
    c->enqueued_ns = line->timeline->now_ns;
    *line->last = c;
    line->last = &c->next;
    return true;
}

bool cek__timeline_enqueue(cek__line *line, const cek__need *need, uint64_t cost_ns)
{
    return append(line, (command){ .need = *need, .cost_ns = cost_ns });
}

bool cek__timeline_speed(cek__line *line, uint64_t percent)
{
    return append(line, (command){ .percent = percent });
}

bool cek__timeline_task(cek__line *line, cek__task *task)
{
    return append(line, (command){ .task = task });
}

bool cek__timeline_wait(cek__line *line, cek__mark *mark)
{
    if (mark->happened)
        return true;
    if (!append(line, (command){ .mark = mark, .waits = true }))
        return false;
    cek__mark_hold(mark);
    return true;
}

bool cek__timeline_mark(cek__line *line, cek__mark **out)
{
    cek__mark *mark = calloc(1, sizeof *mark);
    *out = NULL;
    if (!mark)
        return false;
    mark->holders = 1;
    if (!line->first) {
        mark->happened = mark->seen = true;
        mark->ns = line->timeline->now_ns;
    } else if (append(line, (command){ .mark = mark })) {
        cek__mark_hold(mark);
    } else {
        free(mark);
        return false;
    }
    *out = mark;
    return true;
}

bool cek__timeline_is_idle(const cek__line *line)
{
    return !line->first;
}

void cek__timeline_close(cek__line *line)
{
    cek__line **at = &line->timeline->lines;
    if (line->running)
        occupy(line, &line->first->need, false);
    while (line->first)
        drop_first(line, false);
    while (*at != line)
        at = &(*at)->next;
    *at = line->next;
    free(line);
}

/* ---- marks ---- */

bool cek__mark_time(const cek__mark *mark, uint64_t *ns)
{
    *ns = mark->ns;
    return mark->happened;
}

cek__mark *cek__mark_hold(cek__mark *mark)
{
    mark->holders++;
    return mark;
}

void cek__mark_release(cek__mark *mark)
{
    if (mark && --mark->holders == 0)
        free(mark);
}

bool cek__mark_seen(const cek__mark *mark)
{
    return mark->seen;
}

void cek__mark_watch(cek__mark *mark)
{
    mark->watched = true;
}

bool cek__mark_watched(const cek__mark *mark)
{
    return mark->watched;
}

/* Within an instant marks happen in the order of the lines, and in rounds where one line waits for another. */
cek__mark *cek__timeline_tell(cek__timeline *t)
{
    cek__mark *mark = t->untold;
    if (!mark)
        return NULL;
    t->untold = mark->next;
    if (!t->untold)
        t->untold_last = &t->untold;
    mark->seen = true;
    return mark;
}

/* ---- time ---- */

static void busy_count(engines *e, uint64_t ns)
{
    bool copying = e->copying || e->into || e->out_of;
    e->busy.compute_ns += e->computing ? ns : 0;
    e->busy.copy_ns += copying ? ns : 0;
    e->busy.exposed_ns += copying && !e->computing ? ns : 0;
}

static void move_to(cek__timeline *t, uint64_t now_ns)
{
    for (uint32_t i = 0; i < t->devices; i++)
        busy_count(&t->at[i], now_ns - t->now_ns);
    t->now_ns = now_ns;
}

uint64_t cek__timeline_horizon(cek__timeline *t)
{
    uint64_t end_ns = UINT64_MAX;
    settle(t);
    grant(t);
    for (cek__line *line = t->lines; line; line = line->next)
        if (line->running && line->end_ns < end_ns)
            end_ns = line->end_ns;
    return end_ns;
}

bool cek__timeline_next(cek__timeline *t, uint64_t limit_ns)
{
    uint64_t end_ns = cek__timeline_horizon(t);
    if (end_ns == UINT64_MAX || end_ns > limit_ns)
        return false;
    move_to(t, end_ns);
    for (cek__line *line = t->lines; line; line = line->next)
        if (line->running && line->end_ns == end_ns)
            end(line);
    settle(t);
    return true;
}

void cek__timeline_pass(cek__timeline *t, uint64_t now_ns)
{
    if (now_ns > t->now_ns)
        move_to(t, now_ns);
}

uint64_t cek__timeline_now(const cek__timeline *t)
{
    return t->now_ns;
}

cek__busy cek__timeline_busy(const cek__timeline *t, uint32_t device)
{
    return t->at[device].busy;
}
