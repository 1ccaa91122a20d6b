/* SPDX-License-Identifier: MIT
 *
 * clock.c - see clock.h.
 */
#include <stdlib.h>
#include <time.h>

#include "backends/sim/clock.h"
#include "backends/sim/hosts.h"

/* Between two looks of a thread that waits: a loss of the device, or that the host has come to rest, tells itself in no
 * other way. */
#define LOOK_NS UINT64_C(100000)

struct cek__clock {
    cek__clock_kind kind;
    uint64_t start_ns; /* of the machine's clock */
    pthread_mutex_t lock;
    pthread_cond_t told;
    cek__timeline *timeline;
    cek__hosts hosts;
};

static uint64_t machine_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

cek__clock *cek__clock_create(cek__clock_kind kind, uint64_t quiet_ns, cek__timeline *timeline)
{
    cek__clock *c = calloc(1, sizeof *c);
    pthread_condattr_t monotonic;
    if (!c)
        return NULL;
    *c = (cek__clock){ .kind = kind, .start_ns = machine_ns(), .timeline = timeline };
    if (!cek__hosts_init(&c->hosts, &c->lock, quiet_ns)) {
        free(c);
        return NULL;
    }
    pthread_mutex_init(&c->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&c->told, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return c;
}

void cek__clock_free(cek__clock *c)
{
    if (!c)
        return;
    cek__timeline_free(c->timeline);
    cek__hosts_fini(&c->hosts);
    pthread_cond_destroy(&c->told);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

/* ---- time; with the lock ---- */

/* The next mark that has happened; false if there is none. *watched: somebody has asked for it, and now acts. */
static bool tell(cek__clock *c, bool *watched)
{
    cek__mark *mark = cek__timeline_tell(c->timeline);
    if (!mark)
        return false;
    *watched = cek__mark_watched(mark);
    if (*watched && c->kind == CEK__CLOCK_VIRTUAL)
        cek__hosts_wake(&c->hosts, mark);
    cek__mark_release(mark);
    return true;
}

/* All that has ended by now on the machine's clock. */
static void catch_up(cek__clock *c)
{
    uint64_t now_ns = machine_ns() - c->start_ns;
    bool watched;
    while (cek__timeline_next(c->timeline, now_ns))
        ;
    cek__timeline_pass(c->timeline, now_ns);
    while (tell(c, &watched))
        ;
}

/* On to the next mark that somebody has asked for. */
static void go_on(cek__clock *c)
{
    bool watched = false;
    do
        while (!watched && tell(c, &watched))
            ;
    while (!watched && cek__timeline_next(c->timeline, UINT64_MAX));
    if (watched)
        pthread_cond_broadcast(&c->told);
}

static void enter(cek__clock *c)
{
    cek__hosts_enter(&c->hosts);
    if (c->kind == CEK__CLOCK_REAL)
        catch_up(c);
}

static void enter_to_ask(cek__clock *c)
{
    cek__hosts_enter_to_ask(&c->hosts);
    if (c->kind == CEK__CLOCK_REAL)
        catch_up(c);
}

/* The calling thread has done something. */
static void leave(cek__clock *c)
{
    if (c->kind == CEK__CLOCK_VIRTUAL)
        cek__hosts_acted(&c->hosts);
    pthread_mutex_unlock(&c->lock);
}

/* ---- lines ---- */

cek__line *cek__clock_open(cek__clock *c, uint32_t device)
{
    enter(c);
    cek__line *line = cek__timeline_open(c->timeline, device);
    leave(c);
    return line;
}

void cek__clock_close(cek__clock *c, cek__line *line)
{
    enter(c);
    cek__timeline_close(line);
    leave(c);
}

bool cek__clock_spend(cek__clock *c, cek__line *line, const cek__need *need, const uint64_t *costs_ns, size_t count)
{
    bool taken = true;
    enter(c);
    for (size_t i = 0; i < count && taken; i++)
        taken = cek__timeline_enqueue(line, need, costs_ns[i]);
    leave(c);
    return taken;
}

bool cek__clock_speed(cek__clock *c, cek__line *line, uint64_t percent)
{
    enter(c);
    bool taken = cek__timeline_speed(line, percent);
    leave(c);
    return taken;
}

bool cek__clock_task(cek__clock *c, cek__line *line, cek__task *task)
{
    enter(c);
    bool taken = cek__timeline_task(line, task);
    leave(c);
    return taken;
}

bool cek__clock_mark(cek__clock *c, cek__line *line, cek__mark **place)
{
    cek__mark *mark;
    enter(c);
    bool made = cek__timeline_mark(line, &mark);
    if (made) {
        cek__mark_release(*place);
        *place = mark;
    }
    leave(c);
    return made;
}

void cek__clock_forget(cek__clock *c, cek__mark **place)
{
    enter(c);
    cek__mark_release(*place);
    *place = NULL;
    leave(c);
}

bool cek__clock_wait(cek__clock *c, cek__line *line, cek__mark *const *place)
{
    enter(c);
    bool taken = !*place || cek__timeline_wait(line, *place);
    leave(c);
    return taken;
}

/* ---- asking and waiting ---- */

bool cek__clock_ask(cek__clock *c, cek__mark *const *place, uint64_t *ns)
{
    *ns = 0;
    enter_to_ask(c);
    cek__mark *mark = *place;
    if (mark && !cek__mark_seen(mark) && c->kind == CEK__CLOCK_VIRTUAL) {
        cek__mark_watch(mark);
        cek__hosts_asked(&c->hosts, mark);
        if (cek__hosts_rest(&c->hosts))
            go_on(c);
        mark = *place;
    }
    bool happened = !mark || cek__mark_seen(mark);
    if (happened && mark)
        cek__mark_time(mark, ns);
    if (happened)
        leave(c);
    else
        pthread_mutex_unlock(&c->lock);
    return happened;
}

/* Until a mark is told, or for a while. */
static void nap(cek__clock *c, uint64_t span_ns)
{
    uint64_t until = machine_ns() + span_ns;
    struct timespec t = { .tv_sec = (time_t)(until / 1000000000), .tv_nsec = (long)(until % 1000000000) };
    pthread_cond_timedwait(&c->told, &c->lock, &t);
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* One look at a mark that was not seen, and what may bring it nearer. */
static void wait_a_little(cek__clock *c, cek__mark *mark, uint64_t left_ns)
{
    if (c->kind == CEK__CLOCK_VIRTUAL) {
        cek__hosts_waits(&c->hosts, mark);
        if (cek__hosts_rest(&c->hosts))
            go_on(c);
        else if (!cek__mark_seen(mark))
            nap(c, least(LOOK_NS, left_ns));
        return;
    }
    uint64_t end_ns = cek__timeline_horizon(c->timeline), now_ns = machine_ns() - c->start_ns;
    nap(c, least(least(10 * LOOK_NS, left_ns), end_ns > now_ns ? end_ns - now_ns : 1));
    catch_up(c);
}

/* Holds the mark. */
static cek_status sync_mark(cek__clock *c, cek__mark *mark, uint64_t *timeout_ns, const cek__latch *lost)
{
    uint64_t start_ns = machine_ns(), left_ns = *timeout_ns;
    cek_status st = CEK_OK;
    cek__mark_hold(mark);
    cek__mark_watch(mark);
    while (!cek__mark_seen(mark) && !st) {
        if (cek__latched(lost))
            st = CEK_DEVICE_LOST;
        else if (left_ns == 0)
            st = CEK_TIMEOUT;
        else
            wait_a_little(c, mark, left_ns);
        if (*timeout_ns != CEK_FOREVER)
            left_ns = *timeout_ns - least(*timeout_ns, machine_ns() - start_ns);
    }
    cek__mark_release(mark);
    *timeout_ns = left_ns;
    return st;
}

cek_status cek__clock_sync(cek__clock *c, cek__mark *const *place, uint64_t *timeout_ns, const cek__latch *lost)
{
    enter(c);
    cek_status st = *place ? sync_mark(c, *place, timeout_ns, lost) : CEK_OK;
    leave(c);
    return st;
}

cek_status cek__clock_drain(cek__clock *c, cek__line *line, uint64_t *timeout_ns, const cek__latch *lost)
{
    cek__mark *mark;
    cek_status st = CEK_OUT_OF_MEMORY;
    enter(c);
    if (cek__timeline_mark(line, &mark)) {
        st = sync_mark(c, mark, timeout_ns, lost);
        cek__mark_release(mark);
    }
    leave(c);
    return st;
}

uint64_t cek__clock_read(cek__clock *c, uint32_t device, cek__busy *busy)
{
    enter(c);
    *busy = cek__timeline_busy(c->timeline, device);
    uint64_t now_ns = cek__timeline_now(c->timeline);
    leave(c);
    return now_ns;
}
