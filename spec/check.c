/* check.c - verdicts and guarded memory; see check.h. */
#include "spec/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *spec_status_name(cek_status status)
{
    static const char *const names[] = { "OK",          "INVALID", "UNSUPPORTED", "UNAVAILABLE", "OUT_OF_MEMORY",
                                         "DEVICE_LOST", "TIMEOUT", "NOT_READY",   "INTERNAL" };
    return status < sizeof names / sizeof *names ? names[status] : "an unknown status";
}

bool spec_device_flushes(const spec_state *s)
{
    cek_device_info info = { .size = sizeof info };
    if (!s->target->instance)
        return s->target->flags & CEK_DEVICE_FLUSHES_DENORMALS;
    return s->plugin->device_info(s->target->instance, s->target->index, &info) == CEK_OK &&
           info.flags & CEK_DEVICE_FLUSHES_DENORMALS;
}

static spec_line *line_of(spec_report *r, const char *group, cek_dtype type)
{
    const char *name = spec_type_name(type);
    for (uint32_t i = 0; i < r->line_count; i++)
        if (!strcmp(r->line[i].group, group) && !strcmp(r->line[i].type, name))
            return &r->line[i];
    spec_line *line = &r->line[r->line_count < SPEC_LINES_MAX ? r->line_count++ : SPEC_LINES_MAX - 1];
    snprintf(line->group, sizeof line->group, "%s", group);
    snprintf(line->type, sizeof line->type, "%s", name);
    return line;
}

bool spec_check_begin(spec_state *s, const char *group, cek_dtype type, bool required, const char *fmt, ...)
{
    char rest[SPEC_TEXT_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(rest, sizeof rest, fmt, args);
    va_end(args);
    snprintf(s->name, sizeof s->name, "%.40s %s%s%.200s", group, type ? spec_type_name(type) : "", type ? " " : "",
             rest);
    s->group = group;
    s->type = type;
    s->required = required;
    s->wrong = s->unsupported = s->starved = false;
    bool selected = !s->broken && (!s->options.group || !strcmp(s->options.group, group)) &&
                    (!s->options.type || s->options.type == type) &&
                    (!s->options.match || strstr(s->name, s->options.match));
    if (selected && s->options.begin)
        s->options.begin(s->options.user, s->name);
    return selected;
}

static spec_failure *failure_new(spec_state *s)
{
    static __thread spec_failure beyond; /* what does not fit the report is counted, not kept */
    if (s->wrong || s->starved)
        return NULL;
    s->wrong = true;
    uint32_t n = s->report->failure_count++;
    spec_failure *f = n < SPEC_FAILURES_MAX ? &s->report->failure[n] : &beyond;
    *f = (spec_failure){ .operand = "" };
    snprintf(f->name, sizeof f->name, "%s", s->name);
    return f;
}

void spec_check_wrong(spec_state *s, const char *fmt, ...)
{
    spec_failure *f = failure_new(s);
    if (!f)
        return;
    va_list args;
    va_start(args, fmt);
    vsnprintf(f->what, sizeof f->what, fmt, args);
    va_end(args);
}

void spec_check_wrong_value(spec_state *s, const char *operand, uint64_t index, uint64_t wrong, double got,
                            double expected, double tolerance)
{
    spec_failure *f = failure_new(s);
    if (!f)
        return;
    snprintf(f->operand, sizeof f->operand, "%s", operand);
    snprintf(f->what, sizeof f->what, "%s[%llu] is %.9g, expected %.9g within %.3g; %llu wrong", operand,
             (unsigned long long)index, got, expected, tolerance, (unsigned long long)wrong);
    f->index = index, f->wrong = wrong;
    f->got = got, f->expected = expected, f->tolerance = tolerance;
}

void spec_check_starved(spec_state *s, const char *fmt, ...)
{
    char what[SPEC_TEXT_MAX];
    va_list args;
    if (s->wrong || s->starved)
        return;
    s->starved = true;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    if (!s->report->starved_count++)
        snprintf(s->report->starved, sizeof s->report->starved, "%.90s: %.160s", s->name, what);
}

void *spec_calloc(spec_state *s, uint64_t count, size_t size)
{
    void *made = calloc(count ? count : 1, size);
    if (!made)
        spec_check_starved(s, "no host memory for %llu times %zu bytes", (unsigned long long)count, size);
    return made;
}

void spec_check_unbuilt(spec_state *s, const spec_problem *p)
{
    if (p->no_memory)
        spec_check_starved(s, "%.200s", p->error);
    else
        spec_check_wrong(s, "the case itself: %.200s", p->error);
}

static void count(spec_count *c, bool required, bool passed, bool unsupported)
{
    if (required) {
        c->required++;
        c->required_passed += passed;
    } else {
        c->optional++;
        c->optional_passed += passed;
        c->optional_unsupported += unsupported;
    }
}

void spec_check_end(spec_state *s)
{
    if (s->starved) {
        if (s->options.progress)
            s->options.progress(s->options.user, s->name, SPEC_STARVED, s->required);
        return;
    }
    if (s->unsupported && s->required)
        spec_check_wrong(s, "answered UNSUPPORTED, but this is required");
    bool passed = !s->wrong && !s->unsupported, unsupported = !s->wrong && s->unsupported;
    count(&line_of(s->report, s->group, s->type)->count, s->required, passed, unsupported);
    count(&s->report->total, s->required, passed, unsupported);
    if (s->options.progress)
        s->options.progress(s->options.user, s->name,
                            passed        ? SPEC_PASSED
                            : unsupported ? SPEC_UNSUPPORTED
                                          : SPEC_FAILED,
                            s->required);
}

/* "mem_alloc" of "s->plugin->mem_alloc(s->dev, &desc, &mem)". */
static const char *slot_name(const char *call, int *length)
{
    size_t end = strcspn(call, "("), start = end;
    while (start > 0 && !strchr(">. ", call[start - 1]))
        start--;
    *length = (int)(end - start);
    return call + start;
}

bool spec_expect(spec_state *s, const char *call, cek_status got, cek_status want, const char *fmt, ...)
{
    if (got == CEK_DEVICE_LOST && want != got) {
        s->broken = got;
        s->abandoned = true;
    }
    if (got == want)
        return true;
    const char *text = got && s->target->error_text ? s->target->error_text(s->target->user) : "";
    char what[SPEC_TEXT_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    int length;
    const char *name = slot_name(call, &length);
    if (got == CEK_OUT_OF_MEMORY) { /* an answer that is never wrong, and says nothing of what was asked */
        spec_check_starved(s, "%.*s%s%.60s answered %s: %.120s", length, name, *what ? " " : "", what,
                           spec_status_name(got), text ? text : "");
        return false;
    }
    spec_check_wrong(s, "%.*s%s%.80s answered %s%s%.100s, not %s", length, name, *what ? " " : "", what,
                     spec_status_name(got), text && *text ? ": " : "", text ? text : "", spec_status_name(want));
    return false;
}

bool spec_buffer_make(spec_state *s, uint64_t bytes, uint64_t shift, spec_buffer *b)
{
    *b = (spec_buffer){ .offset = SPEC_GUARD + shift, .bytes = bytes, .total = 2 * SPEC_GUARD + shift + bytes };
    b->image = malloc(b->total);
    b->before = malloc(b->total);
    if (!b->image || !b->before) {
        spec_check_starved(s, "no host memory for %llu bytes", (unsigned long long)b->total);
        return false;
    }
    memset(b->image, 0xff, b->total);
    cek_mem_desc desc = { .size = sizeof desc, .bytes = b->total };
    return EXPECT_OK(s->plugin->mem_alloc(s->dev, &desc, &b->mem));
}

void spec_buffer_free(spec_state *s, spec_buffer *b)
{
    if (s->abandoned)
        return;
    if (b->mem)
        s->plugin->mem_free(b->mem);
    free(b->image);
    free(b->before);
    *b = (spec_buffer){ .mem = NULL };
}

bool spec_buffer_upload(spec_state *s, spec_buffer *b, cek_queue *queue)
{
    memcpy(b->before, b->image, b->total);
    return EXPECT_OK(s->plugin->upload(queue, (cek_ref){ b->mem, 0 }, b->before, b->total));
}

bool spec_buffer_download(spec_state *s, spec_buffer *b, cek_queue *queue)
{
    return EXPECT_OK(s->plugin->download(queue, b->image, (cek_ref){ b->mem, 0 }, b->total));
}

bool spec_sync(spec_state *s, cek_queue *queue)
{
    cek_status st = s->plugin->queue_sync(queue, s->timeout_ns), again;
    if (st == CEK_TIMEOUT) { /* it hangs: nothing more can be tried */
        s->broken = CEK_DEVICE_LOST;
        s->abandoned = true;
    } else if (st != CEK_OK && (again = s->plugin->queue_sync(queue, s->timeout_ns)) != st) {
        spec_check_wrong(s, "queue_sync answered %s, and then %s: a failure stays with its queue", spec_status_name(st),
                         spec_status_name(again));
    }
    return spec_expect(s, "queue_sync", st, CEK_OK, "%s", "");
}

bool spec_buffer_guards(spec_state *s, const spec_buffer *b, const char *what)
{
    for (uint64_t i = 0; i < b->total; i++) {
        if (i == b->offset)
            i += b->bytes;
        if (i < b->total && b->image[i] != 0xff) {
            spec_check_wrong(s, "%s: byte %lld was written, outside its %llu bytes", what,
                             (long long)i - (long long)b->offset, (unsigned long long)b->bytes);
            return false;
        }
    }
    return true;
}
