/* progress_line.c - see progress_line.h. */
#include "bench/progress_line.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BAR_LEAST = 10, BAR_MOST = 30, GAP = 2 };

/* ---- time ---- */

void progress_time(double seconds, char out[24])
{
    const double days = 86400;
    const long s = seconds < 100 * days ? (long)(seconds + 0.5) : 0;
    if (!(seconds < 100 * days))
        snprintf(out, 24, "over 99 days");
    else if (seconds >= 2 * days)
        snprintf(out, 24, "%ld days", s / 86400);
    else if (s >= 3600)
        snprintf(out, 24, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(out, 24, "%ld:%02ld", s / 60, s % 60);
}

void progress_rate_add(progress_rate *r, double now, double done)
{
    const double seconds = now - r->at, kept = exp(-seconds / PROGRESS_MEMORY);
    if (r->begun && seconds > 0) {
        r->work = r->work * kept + (done - r->done);
        r->time = r->time * kept + seconds;
    }
    if (!r->begun || seconds > 0) {
        r->begun = true;
        r->at = now;
        r->done = done;
    }
}

double progress_rate_now(const progress_rate *r)
{
    return r->time > 0 && r->work > 0 ? r->work / r->time : 0;
}

double progress_rate_left(const progress_rate *r, double now, double total)
{
    const double rate = progress_rate_now(r);
    if (!(rate > 0))
        return -1;
    const double left = (total - r->done) / rate - (now - r->at);
    return left > 0 ? left : 0;
}

/* ---- the line ---- */

/* What there is room for, each with the columns it takes. */
typedef struct pieces {
    char part[8], count[48], left[40]; /* of a length that does not change with their digits */
    bool with_part, with_left, with_fact[PROGRESS_FACTS];
    int bar; /* columns; 0: none */
} pieces;

static int digits(int64_t n)
{
    int count = 1;
    for (; n >= 10; n /= 10)
        count++;
    return count;
}

static void pieces_write(const progress_view *v, pieces *p)
{
    char time[24];
    progress_time(v->left >= 0 ? v->left : v->elapsed, time);
    if (v->total > 0) {
        const double part = (double)v->done / (double)v->total;
        snprintf(p->part, sizeof p->part, "%3d%%", (int)(100 * (part > 1 ? 1 : part)));
        snprintf(p->count, sizeof p->count, "%*lld/%lld", digits(v->total), (long long)v->done, (long long)v->total);
    } else if (v->done > 0) {
        snprintf(p->count, sizeof p->count, "%lld", (long long)v->done);
    }
    if (v->total > 0 && v->left >= 0)
        snprintf(p->left, sizeof p->left, "%5s left", time);
    else if (v->total <= 0)
        snprintf(p->left, sizeof p->left, "%5s", time);
}

static bool fits(const char *text, int *room)
{
    const int columns = (int)strlen(text) + GAP;
    if (!*text || columns > *room)
        return false;
    *room -= columns;
    return true;
}

static void pieces_choose(const progress_view *v, int room, pieces *p)
{
    p->with_part = fits(p->part, &room);
    if (!fits(p->count, &room))
        *p->count = 0;
    p->with_left = fits(p->left, &room);
    p->with_fact[0] = fits(v->facts[0], &room);
    if (v->total > 0 && room >= BAR_LEAST + GAP)
        p->bar = BAR_LEAST, room -= BAR_LEAST + GAP;
    for (int i = 1; i < PROGRESS_FACTS; i++)
        p->with_fact[i] = fits(v->facts[i], &room);
    if (p->bar)
        p->bar += room < BAR_MOST - BAR_LEAST ? room : BAR_MOST - BAR_LEAST;
}

typedef struct line {
    char *out;
    size_t used;
} line;

static void put(line *l, const char *text)
{
    const size_t length = strlen(text);
    if (l->used + length >= PROGRESS_LINE_MAX)
        return;
    memcpy(l->out + l->used, text, length + 1);
    l->used += length;
}

static void put_after(line *l, const char *gap, const char *text)
{
    put(l, l->used ? gap : "");
    put(l, text);
}

/* Half a column at the end of what is done, where the characters have one. */
static void bar_put(line *l, const progress_view *v, const pieces *p, progress_style style)
{
    const double part = v->done < v->total ? (double)v->done / (double)v->total : 1;
    const int halves = (int)(2 * p->bar * part), full = halves / 2;
    put(l, "  ");
    put(l, style.colour ? "\033[32m" : "");
    for (int i = 0; i < full; i++)
        put(l, style.utf8 ? "━" : "=");
    if (style.utf8 && halves % 2)
        put(l, "╸");
    put(l, style.colour ? "\033[90m" : "");
    for (int i = full + (style.utf8 && halves % 2); i < p->bar; i++)
        put(l, !style.utf8 ? "." : style.colour ? "━" : "─");
    put(l, style.colour ? "\033[0m" : "");
}

/* Blanks that keep digits in their places have none to keep here. */
static void put_squeezed(line *l, const char *gap, const char *text)
{
    char words[PROGRESS_FACT_MAX + PROGRESS_LABEL_MAX] = "";
    size_t used = 0;
    for (; *text && used < sizeof words - 1; text++)
        if (*text != ' ' || (used && text[1] && text[1] != ' '))
            words[used++] = *text;
    words[used] = 0;
    if (used)
        put_after(l, gap, words);
}

static void plain_put(line *l, const progress_view *v, const pieces *p)
{
    put_squeezed(l, "", v->label);
    put_squeezed(l, ", ", p->count);
    if (*p->part) {
        put_squeezed(l, " (", p->part);
        put(l, ")");
    }
    put_squeezed(l, ", ", p->left);
    for (int i = 0; i < PROGRESS_FACTS; i++)
        put_squeezed(l, ", ", v->facts[i]);
}

size_t progress_layout(const progress_view *v, progress_style style, char out[PROGRESS_LINE_MAX])
{
    pieces p = { .bar = 0 };
    line l = { out, 0 };
    char label[PROGRESS_LABEL_MAX];
    *out = 0;
    pieces_write(v, &p);
    if (!style.width) {
        plain_put(&l, v, &p);
        return l.used;
    }
    snprintf(label, sizeof label, "%.*s", style.width, v->label);
    put(&l, label);
    pieces_choose(v, style.width - (int)strlen(label), &p);
    if (p.bar)
        bar_put(&l, v, &p, style);
    if (p.with_part)
        put_after(&l, "  ", p.part);
    if (*p.count)
        put_after(&l, "  ", p.count);
    if (p.with_left)
        put_after(&l, "  ", p.left);
    for (int i = 0; i < PROGRESS_FACTS; i++)
        if (p.with_fact[i])
            put_after(&l, "  ", v->facts[i]);
    return l.used;
}
