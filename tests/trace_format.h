/* trace_format.h - whether a document is what the Trace Event format wants of a file, and a reader expects:
 *
 * an array of events, or an object that has it; spans of a line (a thread of a process) nest or follow one another, and
 * come in the order of their begins; every arrow begins, goes on and ends, in that order, each time at a span; who has
 * spans has names. What our own files have no use for (other phases) is a fault too. */
#ifndef CEK_TESTS_TRACE_FORMAT_H
#define CEK_TESTS_TRACE_FORMAT_H

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRACE_DEPTH = 64, TRACE_LINES = 1024 };

typedef struct trace_line {
    json_int_t pid, tid;
    bool has_spans, process_named, thread_named;
    int64_t latest;            /* ns: where its latest span began */
    int64_t ends[TRACE_DEPTH]; /* of the spans that its next one may lie in */
    int depth;
} trace_line;

typedef struct trace_span {
    const trace_line *line;
    int64_t begin, end;
} trace_span;

typedef struct trace_flow {
    const char *category;
    json_int_t id;
    bool ended;
} trace_flow;

typedef struct trace_check {
    size_t line_count, span_count, flow_count;
    trace_line lines[TRACE_LINES];
    trace_span *spans; /* room for as many as there are events */
    trace_flow *flows; /* likewise */
    char fault[256];   /* the first one; empty: none */
} trace_check;

#define TRACE_FAULT(c, ...)                                             \
    do {                                                                \
        if (!(c)->fault[0])                                             \
            (void)!snprintf((c)->fault, sizeof(c)->fault, __VA_ARGS__); \
        return;                                                         \
    } while (0)

static inline const char *trace_text(const json_t *event, const char *key)
{
    const char *text = json_string_value(json_object_get(event, key));
    return text ? text : "";
}

/* Microseconds with a fraction, as ns. False: the event has none, or one that is no time. */
static inline bool trace_time(const json_t *event, const char *key, int64_t *ns)
{
    const json_t *value = json_object_get(event, key);
    const double us = json_number_value(value);
    *ns = json_is_number(value) && fabs(us) < 1e14 ? llround(us * 1000) : 0;
    return json_is_number(value) && fabs(us) < 1e14;
}

/* NULL: too many. */
static inline trace_line *trace_line_of(trace_check *c, const json_t *event)
{
    const json_int_t pid = json_integer_value(json_object_get(event, "pid"));
    const json_int_t tid = json_integer_value(json_object_get(event, "tid"));
    for (size_t i = 0; i < c->line_count; i++)
        if (c->lines[i].pid == pid && c->lines[i].tid == tid)
            return &c->lines[i];
    if (c->line_count == TRACE_LINES)
        return NULL;
    c->lines[c->line_count] = (trace_line){ .pid = pid, .tid = tid, .latest = INT64_MIN };
    return &c->lines[c->line_count++];
}

static inline void trace_check_name(trace_check *c, const json_t *event, trace_line *line)
{
    const char *kind = trace_text(event, "name");
    const json_t *args = json_object_get(event, "args");
    if (!strcmp(kind, "process_sort_index") || !strcmp(kind, "thread_sort_index")) {
        if (!json_is_integer(json_object_get(args, "sort_index")))
            TRACE_FAULT(c, "a %s without a number", kind);
        return;
    }
    if (strcmp(kind, "process_name") && strcmp(kind, "thread_name"))
        TRACE_FAULT(c, "metadata of an unknown kind: '%s'", kind);
    if (!*trace_text(args, "name"))
        TRACE_FAULT(c, "a %s without a name", kind);
    if (!strcmp(kind, "thread_name"))
        line->thread_named = true;
    for (size_t i = 0; !strcmp(kind, "process_name") && i < c->line_count; i++)
        c->lines[i].process_named |= c->lines[i].pid == line->pid;
}

static inline void trace_check_span(trace_check *c, const json_t *event, trace_line *line)
{
    const char *name = trace_text(event, "name");
    int64_t begin, lasts;
    if (!trace_time(event, "ts", &begin) || !trace_time(event, "dur", &lasts))
        TRACE_FAULT(c, "span '%s' has no begin or no length", name);
    if (lasts < 0)
        TRACE_FAULT(c, "span '%s' lasts %g us", name, (double)lasts / 1000);
    if (begin < line->latest)
        TRACE_FAULT(c, "span '%s' begins before the one that stands before it in line %lld", name,
                    (long long)line->tid);
    while (line->depth > 0 && line->ends[line->depth - 1] <= begin)
        line->depth--;
    if (line->depth > 0 && line->ends[line->depth - 1] < begin + lasts)
        TRACE_FAULT(c, "span '%s' ends behind the one that it begins in, at %g us in line %lld", name,
                    (double)begin / 1000, (long long)line->tid);
    if (line->depth == TRACE_DEPTH)
        TRACE_FAULT(c, "span '%s' lies in more than %d others", name, TRACE_DEPTH);
    line->ends[line->depth++] = begin + lasts;
    line->latest = begin;
    line->has_spans = true;
    c->spans[c->span_count++] = (trace_span){ line, begin, begin + lasts };
}

static inline void trace_check_arrow(trace_check *c, const json_t *event, char phase)
{
    const json_t *id = json_object_get(event, "id");
    const char *category = trace_text(event, "cat");
    trace_flow *flow = NULL;
    if (!json_is_integer(id) || !*category)
        TRACE_FAULT(c, "an arrow without a number or category");
    for (size_t i = 0; i < c->flow_count && !flow; i++)
        if (c->flows[i].id == json_integer_value(id) && !strcmp(c->flows[i].category, category))
            flow = &c->flows[i];
    if (phase == 's' && flow)
        TRACE_FAULT(c, "arrow %lld begins twice", (long long)flow->id);
    if (phase == 's')
        c->flows[c->flow_count++] = (trace_flow){ category, json_integer_value(id), false };
    else if (!flow)
        TRACE_FAULT(c, "arrow %lld has no begin", (long long)json_integer_value(id));
    else if (flow->ended)
        TRACE_FAULT(c, "arrow %lld goes on behind its end", (long long)flow->id);
    else
        flow->ended = phase == 'f';
}

/* Behind all spans, which may stand behind it in the file. */
static inline void trace_check_arrow_place(trace_check *c, const json_t *event)
{
    const trace_line *line = trace_line_of(c, event);
    int64_t at;
    bool found = false;
    if (!trace_time(event, "ts", &at))
        TRACE_FAULT(c, "an arrow without a time");
    if (strcmp(trace_text(event, "bp"), "e"))
        TRACE_FAULT(c, "an arrow that is tied to the next span, not to the one that it is at");
    for (size_t i = 0; i < c->span_count && !found; i++)
        found = c->spans[i].line == line && c->spans[i].begin <= at && at <= c->spans[i].end;
    if (!found)
        TRACE_FAULT(c, "arrow %lld is at no span at %g us in line %lld",
                    (long long)json_integer_value(json_object_get(event, "id")), (double)at / 1000,
                    (long long)line->tid);
}

static inline void trace_check_event(trace_check *c, const json_t *event)
{
    const char *phase = trace_text(event, "ph");
    trace_line *line;
    if (!json_is_object(event))
        TRACE_FAULT(c, "an event that is no object");
    if (!*trace_text(event, "name"))
        TRACE_FAULT(c, "an event without a name");
    if (!json_is_integer(json_object_get(event, "pid")) || !json_is_integer(json_object_get(event, "tid")))
        TRACE_FAULT(c, "'%s' without process or thread", trace_text(event, "name"));
    if (json_object_get(event, "args") && !json_is_object(json_object_get(event, "args")))
        TRACE_FAULT(c, "'%s' has arguments that are no object", trace_text(event, "name"));
    if (!(line = trace_line_of(c, event)))
        TRACE_FAULT(c, "more than %d lines", TRACE_LINES);
    if (!strcmp(phase, "X"))
        trace_check_span(c, event, line);
    else if (!strcmp(phase, "s") || !strcmp(phase, "t") || !strcmp(phase, "f"))
        trace_check_arrow(c, event, *phase);
    else if (strcmp(phase, "M"))
        TRACE_FAULT(c, "'%s' has the phase '%s'", trace_text(event, "name"), phase);
}

static inline void trace_check_ends(trace_check *c)
{
    for (size_t i = 0; i < c->flow_count; i++)
        if (!c->flows[i].ended)
            TRACE_FAULT(c, "arrow %lld has no end", (long long)c->flows[i].id);
    for (size_t i = 0; i < c->line_count; i++)
        if (c->lines[i].has_spans && !(c->lines[i].process_named && c->lines[i].thread_named))
            TRACE_FAULT(c, "line %lld of process %lld has spans, and no name of its own or of its process",
                        (long long)c->lines[i].tid, (long long)c->lines[i].pid);
    if (!c->span_count)
        TRACE_FAULT(c, "no spans");
}

static inline void trace_check_events(trace_check *c, const json_t *events)
{
    size_t i;
    const json_t *event;
    if (!json_is_array(events))
        TRACE_FAULT(c, "neither an array nor an object with traceEvents");
    json_array_foreach(events, i, event) trace_check_event(c, event);
    json_array_foreach(events, i, event)
    {
        if (c->fault[0])
            return;
        if (!strcmp(trace_text(event, "ph"), "M"))
            trace_check_name(c, event, trace_line_of(c, event));
        else if (strcmp(trace_text(event, "ph"), "X"))
            trace_check_arrow_place(c, event);
    }
    trace_check_ends(c);
}

/* NULL: nothing is wrong; else what is, which the caller frees. */
static inline char *trace_fault(const json_t *document)
{
    const json_t *events = json_is_array(document) ? document : json_object_get(document, "traceEvents");
    trace_check *c = calloc(1, sizeof *c);
    char *fault = NULL;
    if (c) {
        c->spans = calloc(json_array_size(events) + 1, sizeof *c->spans);
        c->flows = calloc(json_array_size(events) + 1, sizeof *c->flows);
    }
    if (!c || !c->spans || !c->flows)
        abort();
    trace_check_events(c, events);
    if (c->fault[0])
        fault = strdup(c->fault);
    free(c->spans);
    free(c->flows);
    free(c);
    return fault;
}

#endif
