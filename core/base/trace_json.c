/* trace_json.c - a record as JSON in the Trace Event format, which chrome://tracing, Perfetto and others show.
 *
 * A process for the host with a line for each thread, one for each device with a line for each stream; times in
 * microseconds since the trace began. Spans stand in the order of lines and of their begins, what they lie in before
 * them, so that a reader need not sort. Must not know: how the record came about. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/file.h"
#include "core/base/trace.h"

typedef struct writer {
    cek__file_writer *file;
    char buffer[1 << 16];
    size_t used;
    cek_status status; /* of the first write that failed; later ones do nothing */
} writer;

static void flush(writer *w)
{
    if (w->status == CEK_OK)
        w->status = cek__file_write(w->file, w->buffer, w->used);
    w->used = 0;
}

/* `fmt` gives less than 512 bytes. */
static void put(writer *w, const char *fmt, ...) CEK__PRINTF(2, 3);
static void put(writer *w, const char *fmt, ...)
{
    enum { LONGEST = 512 };
    va_list args;

    if (w->used + LONGEST > sizeof w->buffer)
        flush(w);
    va_start(args, fmt);
    w->used += (size_t)vsnprintf(w->buffer + w->used, LONGEST, fmt, args);
    va_end(args);
}

/* A string's inside: names of devices and layers, of which no more is known. */
static const char *inside(const char *text, char out[static 2 * CEK__TRACE_TEXT])
{
    size_t n = 0;

    for (; *text != '\0' && n < 2 * CEK__TRACE_TEXT - 2; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            out[n++] = '\\';
        out[n++] = c < ' ' || c > '~' ? '?' : (char)c;
    }
    out[n] = '\0';
    return out;
}

/* ---- lines ---- */

/* The process that a line belongs to: 1 is the host, devices follow in the order in which they were first seen. */
static unsigned process_of(const cek_trace *t, uint32_t line)
{
    unsigned process = 2;

    if (t->lines[line].owner[0] == '\0')
        return 1;
    for (uint32_t i = 0; strcmp(t->lines[i].owner, t->lines[line].owner) != 0; i++) {
        bool is_new = t->lines[i].owner[0] != '\0';
        for (uint32_t k = 0; k < i && is_new; k++)
            is_new = strcmp(t->lines[k].owner, t->lines[i].owner) != 0;
        process += is_new;
    }
    return process;
}

static void lines_put(writer *w, const cek_trace *t, const unsigned *process)
{
    char name[2 * CEK__TRACE_TEXT];

    for (uint32_t i = 0; i < t->line_count; i++) {
        const char *owner = t->lines[i].owner[0] != '\0' ? t->lines[i].owner : "host";
        put(w, "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%u,\"tid\":%" PRIu32 ",\"args\":{\"name\":\"%s\"}},\n",
            process[i], i, inside(owner, name));
        put(w, "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%u,\"tid\":%" PRIu32 ",\"args\":{\"name\":\"%s\"}},\n",
            process[i], i, inside(t->lines[i].name, name));
    }
}

/* ---- spans and arrows ---- */

static void time_put(writer *w, const char *key, int64_t ns)
{
    put(w, "\"%s\":%s%" PRId64 ".%03d,", key, ns < 0 ? "-" : "", (ns < 0 ? -ns : ns) / 1000,
        (int)((ns < 0 ? -ns : ns) % 1000));
}

static void entry_put(writer *w, const cek_trace *t, const cek__trace_entry *e, unsigned process)
{
    char label[2 * CEK__TRACE_TEXT];

    put(w, "{\"ph\":\"X\",\"pid\":%u,\"tid\":%" PRIu32 ",", process, e->line);
    time_put(w, "ts", e->begin_ns - t->start_ns);
    time_put(w, "dur", e->end_ns - e->begin_ns);
    put(w, "\"name\":\"%s\",\"args\":{\"call\":\"%s\",\"step\":%" PRId64 "}},\n",
        e->note.label[0] != '\0' ? inside(e->note.label, label) : e->call, e->call, e->note.step);
}

/* A span before those that lie in it. */
static int by_line_and_begin(const void *a, const void *b)
{
    const cek__trace_entry *x = *(const cek__trace_entry *const *)a, *y = *(const cek__trace_entry *const *)b;

    if (x->line != y->line)
        return x->line < y->line ? -1 : 1;
    if (x->begin_ns != y->begin_ns)
        return x->begin_ns < y->begin_ns ? -1 : 1;
    return x->end_ns > y->end_ns ? -1 : x->end_ns < y->end_ns;
}

static cek_status spans_put(writer *w, const cek_trace *t, const unsigned *process)
{
    cek_status st;
    const cek__trace_entry **list = NULL;

    CEK_TRY(cek__alloc_array(t->count, sizeof *list, &list));
    for (size_t i = 0; i < t->count; i++)
        list[i] = &t->entries[i];
    qsort(list, t->count, sizeof *list, by_line_and_begin);
    for (size_t i = 0; i < t->count; i++)
        entry_put(w, t, list[i], process[list[i]->line]);
out:
    free(list);
    return st;
}

static int by_flow_and_order(const void *a, const void *b)
{
    const cek__trace_entry *x = *(const cek__trace_entry *const *)a, *y = *(const cek__trace_entry *const *)b;

    if (x->note.flow != y->note.flow)
        return x->note.flow < y->note.flow ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* An arrow leaves the middle of a span, where no neighbour's is. */
static void arrow_put(writer *w, const cek_trace *t, const cek__trace_entry *e, unsigned process, char phase)
{
    put(w,
        "{\"ph\":\"%c\",\"bp\":\"e\",\"cat\":\"shard\",\"name\":\"shard\",\"id\":%" PRIu64
        ",\"pid\":%u,\"tid\":%" PRIu32 ",",
        phase, e->note.flow, process, e->line);
    time_put(w, "ts", e->begin_ns + (e->end_ns - e->begin_ns) / 2 - t->start_ns);
    put(w, "\"args\":{}},\n");
}

static cek_status arrows_put(writer *w, const cek_trace *t, const unsigned *process)
{
    cek_status st;
    const cek__trace_entry **list = NULL;
    size_t count = 0;

    CEK_TRY(cek__alloc_array(t->count, sizeof *list, &list));
    for (size_t i = 0; i < t->count; i++)
        if (t->entries[i].note.flow != 0)
            list[count++] = &t->entries[i];
    qsort(list, count, sizeof *list, by_flow_and_order);
    for (size_t i = 0; i < count; i++) {
        bool first = i == 0 || list[i - 1]->note.flow != list[i]->note.flow;
        bool last = i + 1 == count || list[i + 1]->note.flow != list[i]->note.flow;
        if (!(first && last))
            arrow_put(w, t, list[i], process[list[i]->line], first ? 's' : last ? 'f' : 't');
    }
out:
    free(list);
    return st;
}

/* ---- the file ---- */

static cek_status record_put(writer *w, const cek_trace *t)
{
    cek_status st;
    unsigned *process = NULL;

    CEK_TRY(cek__alloc_array(t->line_count, sizeof *process, &process));
    for (uint32_t i = 0; i < t->line_count; i++)
        process[i] = process_of(t, i);
    put(w, "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"not_recorded\":%" PRIu64 "},\"traceEvents\":[\n", t->missing);
    lines_put(w, t, process);
    CEK_TRY(spans_put(w, t, process));
    CEK_TRY(arrows_put(w, t, process));
    put(w, "{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":1,\"tid\":0,\"args\":{\"sort_index\":0}}\n]}\n");
    flush(w);
    st = w->status;
out:
    free(process);
    return st;
}

cek_status cek__trace_save(cek_trace *trace, const char *path)
{
    cek_status st;
    writer *w = NULL;

    CEK_TRY(cek__calloc(1, sizeof *w, &w));
    CEK_TRY(cek__file_create(path, &w->file));
    pthread_mutex_lock(&trace->lock);
    st = record_put(w, trace);
    pthread_mutex_unlock(&trace->lock);
    if (st == CEK_OK)
        st = cek__file_commit(&w->file);
out:
    if (w != NULL)
        cek__file_abandon(&w->file);
    free(w);
    return st;
}
