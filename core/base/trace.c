/* trace.c - see trace.h. What is made of the record is trace_json.c's. */
#include "core/base/trace.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/alloc.h"

/* ---- what this thread says, and who it is ---- */

static _Thread_local cek__trace_note said;
static _Thread_local struct {
    uint64_t number; /* 0: not seen yet */
    char name[CEK__TRACE_TEXT];
} self;

void cek__trace_step(int64_t step, uint64_t flow)
{
    said.step = step;
    said.flow = flow;
}

void cek__trace_label(const char *label)
{
    snprintf(said.label, sizeof said.label, "%s", label != NULL ? label : "");
}

const cek__trace_note *cek__trace_said(void)
{
    return &said;
}

void cek__trace_name_thread(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(self.name, sizeof self.name, fmt, args);
    va_end(args);
}

int64_t cek__trace_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- life ---- */

cek_status cek__trace_create(cek_trace **out)
{
    cek_status st;

    CEK_TRY(cek__calloc(1, sizeof **out, out));
    pthread_mutex_init(&(*out)->lock, NULL);
    (*out)->start_ns = cek__trace_now();
out:
    return st;
}

void cek__trace_free(cek_trace *trace)
{
    if (trace == NULL)
        return;
    pthread_mutex_destroy(&trace->lock);
    free(trace->lines);
    free(trace->entries);
    free(trace);
}

/* ---- the record ---- */

bool cek__make_room(void *items, size_t size, size_t count, size_t *capacity)
{
    size_t more = *capacity ? 2 * *capacity : 64;

    if (count < *capacity)
        return true;
    if (cek__realloc_array(more, size, items) != CEK_OK)
        return false;
    *capacity = more;
    return true;
}

/* Under the lock. */
static bool line_add(cek_trace *trace, const char *owner, const char *name, uint64_t thread, uint32_t *out)
{
    cek__trace_row *line;

    if (!cek__make_room(&trace->lines, sizeof *trace->lines, trace->line_count, &trace->line_capacity))
        return false;
    line = &trace->lines[trace->line_count];
    line->thread = thread;
    snprintf(line->owner, sizeof line->owner, "%s", owner);
    snprintf(line->name, sizeof line->name, "%s", name);
    *out = (uint32_t)trace->line_count++;
    return true;
}

bool cek__trace_line(cek_trace *trace, const char *owner, const char *name, uint32_t *out)
{
    bool added;

    pthread_mutex_lock(&trace->lock);
    added = line_add(trace, owner, name, 0, out);
    pthread_mutex_unlock(&trace->lock);
    return added;
}

/* This thread's line. */
static bool line_of_self(cek_trace *trace, uint32_t *out)
{
    static atomic_ullong threads;
    bool found = false;

    if (self.number == 0)
        self.number = atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) + 1;
    pthread_mutex_lock(&trace->lock);
    for (size_t i = 0; i < trace->line_count && !found; i++) {
        found = trace->lines[i].thread == self.number;
        *out = (uint32_t)i;
    }
    if (!found)
        found = line_add(trace, "", self.name[0] != '\0' ? self.name : "a thread of the program", self.number, out);
    pthread_mutex_unlock(&trace->lock);
    return found;
}

void cek__trace_add(cek_trace *trace, const cek__trace_entry *entry)
{
    pthread_mutex_lock(&trace->lock);
    if (trace->count < CEK__TRACE_MOST &&
        cek__make_room(&trace->entries, sizeof *trace->entries, trace->count, &trace->capacity))
        trace->entries[trace->count++] = *entry;
    else
        trace->missing++;
    pthread_mutex_unlock(&trace->lock);
}

uint64_t cek__trace_order(cek_trace *trace)
{
    uint64_t order;

    pthread_mutex_lock(&trace->lock);
    order = trace->order++;
    pthread_mutex_unlock(&trace->lock);
    return order;
}

void cek__trace_miss(cek_trace *trace)
{
    pthread_mutex_lock(&trace->lock);
    trace->missing++;
    pthread_mutex_unlock(&trace->lock);
}

/* ---- spans ---- */

int64_t cek__trace_begin(const cek_trace *trace)
{
    return trace != NULL ? cek__trace_now() : 0;
}

void cek__trace_end(cek_trace *trace, int64_t began, const char *name)
{
    cek__trace_entry entry = { .call = name, .begin_ns = began, .note = said };

    if (trace == NULL || began == 0)
        return;
    entry.end_ns = cek__trace_now();
    entry.note.flow = 0; /* arrows join commands */
    if (line_of_self(trace, &entry.line))
        cek__trace_add(trace, &entry);
    else
        cek__trace_miss(trace);
}
