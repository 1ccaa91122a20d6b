/* trace.h - the record of what ran where and when (cek_trace_start): lines, and what stands on them.
 *
 * A line belongs to a thread, which says its spans itself, or to a stream of a device (core/device/watch.h). What a
 * thread says of itself - the step it works at, what for - stands by all that it records until it says something else.
 * Nothing that is recorded makes anything fail: where memory runs out, the record says how much it lacks.
 * Must not know: devices, what a command is. Threads: any. */
#ifndef CEK_CORE_BASE_TRACE_H
#define CEK_CORE_BASE_TRACE_H

#include <pthread.h>

#include "core/base/status.h"

enum { CEK__TRACE_TEXT = 48, CEK__TRACE_MOST = 1 << 20 /* entries: some 100 MB */ };

/* ---- what this thread says ---- */

/* The step that it works at, and the flow: commands of one flow are joined by arrows in the order in which they were
 * enqueued. 0: none. */
CEK__SHARED void cek__trace_step(int64_t step, uint64_t flow);
/* What for, "node 3 (conv)"; NULL: nothing. Kept. */
CEK__SHARED void cek__trace_label(const char *label);
/* The name of its line. */
CEK__SHARED void cek__trace_name_thread(const char *fmt, ...) CEK__PRINTF(1, 2);

/* The time at which a span of it begins; 0 where `trace` is NULL: nobody records. */
CEK__SHARED int64_t cek__trace_begin(const cek_trace *trace);
/* It has ended. `name` is a string that stays. Nothing where `began` is 0. */
CEK__SHARED void cek__trace_end(cek_trace *trace, int64_t began, const char *name);

/* ---- the record, for core/device ---- */

typedef struct cek__trace_note {
    char label[CEK__TRACE_TEXT];
    int64_t step;
    uint64_t flow;
} cek__trace_note;
const cek__trace_note *cek__trace_said(void);

typedef struct cek__trace_entry {
    uint32_t line;
    const char *call;
    int64_t begin_ns, end_ns; /* CLOCK_MONOTONIC, or a device's clock that was tied to it */
    cek__trace_note note;
    uint64_t order; /* in which it was enqueued: clocks of devices differ */
} cek__trace_entry;

int64_t cek__trace_now(void);
uint64_t cek__trace_order(cek_trace *trace); /* the next entry's */
/* A line of its own for each call. `owner`: the device; "" for threads. False: no memory. */
CEK__CHECKED bool cek__trace_line(cek_trace *trace, const char *owner, const char *name, uint32_t *out);
void cek__trace_add(cek_trace *trace, const cek__trace_entry *entry);
void cek__trace_miss(cek_trace *trace); /* something that could not be recorded */

CEK__CHECKED cek_status cek__trace_create(cek_trace **out);
void cek__trace_free(cek_trace *trace);
CEK__CHECKED cek_status cek__trace_save(cek_trace *trace, const char *path);

/* ---- inside: trace.c and trace_json.c ---- */

typedef struct cek__trace_row {
    char owner[CEK__TRACE_TEXT], name[CEK__TRACE_TEXT];
    uint64_t thread; /* 0: a stream's */
} cek__trace_row;

struct cek_trace {
    int64_t start_ns;
    pthread_mutex_t lock; /* over what follows */
    cek__trace_row *lines;
    cek__trace_entry *entries;
    size_t line_count, line_capacity, count, capacity;
    uint64_t missing, order;
};

/* One more of `capacity` items of `size` bytes: false where there is no memory for it. */
CEK__CHECKED bool cek__make_room(void *items, size_t size, size_t count, size_t *capacity);

#endif
