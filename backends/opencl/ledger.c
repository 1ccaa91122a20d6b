/* SPDX-License-Identifier: MIT
 *
 * ledger.c - the commands of a queue whose outcome nobody has seen yet.
 *
 * A driver may forget that a command failed, run what is behind it, or never run what waits for it.
 * So the ledger keeps each command's event until it has looked at its status, in order, and
 * remembers the first failure and its position. A command that waits for another queue is looked at
 * through that queue's ledger first: where that failed, this one fails too, although the driver may
 * leave the command waiting for ever. Commands are numbered from 0; a position is the number of the
 * first command that it does not cover.
 *
 * That a status was found to be CL_COMPLETE orders nothing: only a wait for the event is a
 * synchronisation point, behind which the host and other queues see what the command wrote. So what
 * was found to be complete is waited for, which takes no time, before it counts as seen. Commands of
 * a queue end in order, so the last of several is enough.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backends/opencl/opencl.h"

/* With so many commands unseen, adding one looks at the oldest: keeps the ledger short without
 * asking the driver each time (a look costs about as much as a launch). */
#define LEDGER_LONG 256

/* How often the oldest command is looked at while the one that is asked for has not ended: for a
 * failure, behind which a driver may never end anything. Between them only the latter is looked at,
 * since some drivers enqueue a command of their own for every event that is asked too early. */
#define WALK_NS 1000000

#define SPIN_NS 100000  /* short work ends sooner than a thread goes to sleep and is woken */
#define BELL_NS 2000000 /* a driver may never ring for what failed, or for what waits for that */
#define NAP_NS 20000    /* without a bell; then ever longer ones */

typedef struct entry {
    cl_event event;
    const char *call;
    void *copy; /* given back to the stage once the command has finished */
    ledger *on; /* what it waits for, or NULL */
    uint64_t on_position;
} entry;

struct ledger {
    opencl_dev *dev;
    uint32_t users;
    uint64_t seen, end; /* commands seen to have finished; commands added */
    entry *entries;     /* of seen to end, a ring of `room` (a power of two) */
    uint64_t room;
    cl_event latest;    /* of the command before `seen`, until it was waited for; or NULL */
    uint64_t walked_ns; /* when the oldest was looked at */
    ledger *next_on;    /* dependency of the next command to be added */
    uint64_t next_position;
    cek_status failure;
    uint64_t failed_at; /* position from which on the failure counts: commands before it are looked at as ever */
    char text[CEK__TEXT_BYTES];
};

ledger *cek__ledger_create(opencl_dev *dev)
{
    ledger *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->room = 64;
    made->entries = calloc(made->room, sizeof *made->entries);
    if (!made->entries) {
        free(made);
        return NULL;
    }
    made->dev = dev;
    made->users = 1;
    return made;
}

ledger *cek__ledger_share(ledger *of)
{
    pthread_mutex_lock(&of->dev->ledgers_lock);
    of->users++;
    pthread_mutex_unlock(&of->dev->ledgers_lock);
    return of;
}

static entry *entry_at(ledger *of, uint64_t number)
{
    return &of->entries[number & (of->room - 1)];
}

/* `finished`: the command reads its copy no more. */
static void entry_drop(opencl_dev *dev, entry *at, bool finished)
{
    if (at->event)
        clReleaseEvent(at->event);
    if (finished)
        cek__opencl_stage_give(dev, at->copy);
    if (at->on)
        cek__ledger_release(at->on);
    *at = (entry){ 0 };
}

void cek__ledger_release(ledger *of)
{
    if (!of)
        return;
    pthread_mutex_lock(&of->dev->ledgers_lock);
    bool last = !--of->users;
    pthread_mutex_unlock(&of->dev->ledgers_lock);
    if (!last)
        return;
    for (; of->seen < of->end; of->seen++)
        entry_drop(of->dev, entry_at(of, of->seen), false);
    if (of->next_on)
        cek__ledger_release(of->next_on);
    if (of->latest)
        clReleaseEvent(of->latest);
    free(of->entries);
    free(of);
}

static void fail_locked(ledger *of, uint64_t position, cek_status status, const char *text)
{
    if (of->failure) { /* the first one stays, but it may reach further back */
        of->failed_at = position < of->failed_at ? position : of->failed_at;
        return;
    }
    of->failure = status;
    of->failed_at = position;
    snprintf(of->text, sizeof of->text, "%s", text);
}

void cek__ledger_fail(ledger *of, cek_status status, const char *text)
{
    pthread_mutex_lock(&of->dev->ledgers_lock);
    fail_locked(of, of->end + 1, status, text);
    pthread_mutex_unlock(&of->dev->ledgers_lock);
}

/* The oldest command has finished: its event is kept to be waited for. */
static void oldest_pass(ledger *of)
{
    entry *at = entry_at(of, of->seen);
    if (of->latest)
        clReleaseEvent(of->latest);
    of->latest = at->event;
    at->event = NULL;
    entry_drop(of->dev, at, true);
    of->seen++;
}

static void command_failed(ledger *of, uint64_t position, const char *call, cl_int code, cek_status st)
{
    char text[CEK__TEXT_BYTES];
    snprintf(text, sizeof text, "%s failed on the device: %s (%d)", call, cek__opencl_error(code), code);
    if (st == CEK_DEVICE_LOST)
        cek__latch_set(&of->dev->head.lost, "%s", text);
    fail_locked(of, position, st, text);
}

/* Makes a synchronisation point of what was seen. */
static void latest_wait(ledger *of)
{
    if (!of->latest)
        return;
    cl_int error = clWaitForEvents(1, &of->latest);
    clReleaseEvent(of->latest);
    of->latest = NULL;
    if (error)
        command_failed(of, of->seen, "a wait for what has finished", error, cek__opencl_status(error));
}

/* The oldest command that was not seen: whether it has finished. A failure sticks. */
static bool oldest_look(ledger *of)
{
    entry *at = entry_at(of, of->seen);
    char text[CEK__TEXT_BYTES];
    cl_int state = CL_QUEUED;
    if (at->on) {
        cek_status st = cek__ledger_look(at->on, at->on_position, text);
        if (st == CEK_NOT_READY)
            return false;
        if (st) {
            char whole[CEK__TEXT_BYTES];
            snprintf(whole, sizeof whole, "waited for an event that failed: %.200s", text);
            fail_locked(of, of->seen + 1, st, whole);
            return false;
        }
        cek__ledger_release(at->on);
        at->on = NULL;
    }
    cl_int error = clGetEventInfo(at->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
    if (!error && state > CL_COMPLETE)
        return false;
    if (error || state < 0) {
        command_failed(of, of->seen + 1, at->call, error ? error : state,
                       error ? cek__opencl_status(error) : cek__opencl_ended(state));
        return false;
    }
    oldest_pass(of);
    return true;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Whether a look at what is before `target` can tell anything: the command there has ended, or a failure may
 * have been missed. */
static bool walk_is_due(ledger *of, uint64_t target)
{
    cl_int state = CL_QUEUED;
    uint64_t now = now_ns();
    bool due = now - of->walked_ns >= WALK_NS || target <= of->seen + 1 ||
               clGetEventInfo(entry_at(of, target - 1)->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state,
                              NULL) ||
               state <= CL_COMPLETE;
    if (due)
        of->walked_ns = now;
    return due;
}

static cek_status look_locked(ledger *of, uint64_t position, char *text)
{
    uint64_t target = position < of->end ? position : of->end;
    if (of->seen < target && walk_is_due(of, target)) {
        while (of->seen < target && !(of->failure && of->seen + 1 >= of->failed_at) && oldest_look(of))
            ;
        latest_wait(of);
    }
    if (of->failure && of->failed_at <= position) {
        if (text)
            memcpy(text, of->text, CEK__TEXT_BYTES);
        return of->failure;
    }
    return of->seen >= target ? CEK_OK : CEK_NOT_READY;
}

cek_status cek__ledger_failure(ledger *of, char *text)
{
    pthread_mutex_lock(&of->dev->ledgers_lock);
    cek_status st = of->failure;
    if (st && text)
        memcpy(text, of->text, CEK__TEXT_BYTES);
    pthread_mutex_unlock(&of->dev->ledgers_lock);
    return st;
}

cek_status cek__ledger_look(ledger *of, uint64_t position, char *text)
{
    pthread_mutex_lock(&of->dev->ledgers_lock);
    cek_status st = look_locked(of, position, text);
    pthread_mutex_unlock(&of->dev->ledgers_lock);
    return st;
}

typedef struct patience {
    uint64_t start, timeout, pause;
    bool rang; /* the bell, or it cannot */
} patience;

/* Rests between two looks, until the bell rings where there is one. False: the time is over. */
static bool rest(patience *p, bell *b)
{
    uint64_t spent = now_ns() - p->start;
    if (spent >= p->timeout)
        return false;
    if (spent < SPIN_NS) {
        sched_yield();
        return true;
    }
    uint64_t left = p->timeout - spent;
    if (b && !p->rang) {
        p->rang = cek__bell_wait(b, left < BELL_NS ? left : BELL_NS);
        return true;
    }
    nanosleep(&(struct timespec){ 0, (long)(left < p->pause ? left : p->pause) }, NULL);
    p->pause = p->pause < 500000 ? p->pause + p->pause / 4 : p->pause;
    return true;
}

/* A bell that the driver rings when all before `position` has ended; NULL: it cannot, or has. */
static bell *bell_hang(ledger *of, uint64_t position)
{
    cl_event event = cek__ledger_event(of, position < CEK__LEDGER_ALL ? position : cek__ledger_end(of));
    bell *made = event ? cek__bell_hang(event) : NULL;
    if (event)
        clReleaseEvent(event);
    return made;
}

cek_status cek__ledger_wait(ledger *of, uint64_t position, uint64_t timeout_ns, char *text)
{
    patience p = { now_ns(), timeout_ns, NAP_NS, false };
    bell *b = NULL;
    cek_status st;
    do {
        st = cek__ledger_look(of, position, text);
        if (st == CEK_NOT_READY && !b && !p.rang && now_ns() - p.start >= SPIN_NS) {
            b = bell_hang(of, position);
            p.rang = !b;
        }
    } while (st == CEK_NOT_READY && rest(&p, b));
    cek__bell_drop(b);
    return st == CEK_NOT_READY ? CEK_TIMEOUT : st;
}

/* Whether the oldest command has ended, well or badly: then it touches no memory any more. Drivers
 * run on behind a failure. */
static bool oldest_ended(ledger *of)
{
    entry *at = entry_at(of, of->seen);
    cl_int state = CL_QUEUED;
    if (!of->failure && oldest_look(of))
        return true;
    if (!clGetEventInfo(at->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL) &&
        state > CL_COMPLETE)
        return false;
    entry_drop(of->dev, at, true);
    of->seen++;
    return true;
}

cek_status cek__ledger_drain(ledger *of, uint64_t timeout_ns)
{
    patience p = { now_ns(), timeout_ns, NAP_NS, true };
    do {
        pthread_mutex_lock(&of->dev->ledgers_lock);
        while (of->seen < of->end && oldest_ended(of))
            ;
        bool empty = of->seen == of->end;
        if (empty && !of->failure)
            latest_wait(of);
        cek_status st = of->failure;
        pthread_mutex_unlock(&of->dev->ledgers_lock);
        if (empty)
            return st;
    } while (rest(&p, NULL));
    return CEK_TIMEOUT;
}

uint64_t cek__ledger_end(ledger *of)
{
    pthread_mutex_lock(&of->dev->ledgers_lock);
    uint64_t end = of->end;
    pthread_mutex_unlock(&of->dev->ledgers_lock);
    return end;
}

/* Room for one more. False without memory. */
static bool room_make(ledger *to)
{
    if (to->end - to->seen >= LEDGER_LONG) {
        while (!to->failure && to->seen < to->end && oldest_look(to))
            ;
        latest_wait(to);
    }
    if (to->end - to->seen < to->room)
        return true;
    entry *larger = calloc(2 * to->room, sizeof *larger);
    if (!larger)
        return false;
    for (uint64_t i = to->seen; i < to->end; i++)
        larger[i & (2 * to->room - 1)] = *entry_at(to, i);
    free(to->entries);
    to->entries = larger;
    to->room *= 2;
    return true;
}

bool cek__ledger_reserve(ledger *to)
{
    pthread_mutex_lock(&to->dev->ledgers_lock);
    bool made = room_make(to);
    pthread_mutex_unlock(&to->dev->ledgers_lock);
    return made;
}

void cek__ledger_depend(ledger *to, ledger *on, uint64_t position)
{
    pthread_mutex_lock(&to->dev->ledgers_lock);
    ledger *before = to->next_on;
    to->next_on = cek__ledger_share(on);
    to->next_position = position;
    pthread_mutex_unlock(&to->dev->ledgers_lock);
    cek__ledger_release(before);
}

void cek__ledger_add(ledger *to, cl_event event, const char *call, void *copy)
{
    pthread_mutex_lock(&to->dev->ledgers_lock);
    *entry_at(to, to->end) = (entry){ event, call, copy, to->next_on, to->next_position };
    to->next_on = NULL;
    to->end++;
    pthread_mutex_unlock(&to->dev->ledgers_lock);
}

cl_event cek__ledger_event(ledger *of, uint64_t position)
{
    cl_event event = NULL;
    pthread_mutex_lock(&of->dev->ledgers_lock);
    if (position > of->seen && position <= of->end) {
        event = entry_at(of, position - 1)->event;
        clRetainEvent(event);
    }
    pthread_mutex_unlock(&of->dev->ledgers_lock);
    return event;
}
