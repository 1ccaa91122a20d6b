/* chart.c - see chart.h. */
#include "bench/chart/chart.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cekernels/cekernels.h>

/* Texts come from files that anybody may have written, and go to terminals, into XML and into scripts, where a new line
 * would be a command. */
static void text_take(char *out, size_t cap, const char *text)
{
    snprintf(out, cap, "%s", text);
    cek_text_printable(out);
}

void figure_free(figure *f)
{
    for (size_t i = 0; i < f->count; i++) {
        for (size_t s = 0; s < f->charts[i].series_count; s++) {
            free(f->charts[i].series[s].x);
            free(f->charts[i].series[s].y);
            free(f->charts[i].series[s].labels);
        }
        free(f->charts[i].categories);
    }
    free(f->charts);
    *f = (figure){ .count = 0 };
}

chart *figure_add(figure *f, chart_kind kind, const char *title, const char *x_label, const char *y_label)
{
    chart *more = realloc(f->charts, (f->count + 1) * sizeof *more);
    if (!more) {
        f->no_memory = true;
        return NULL;
    }
    f->charts = more;
    chart *c = &more[f->count++];
    *c = (chart){ .kind = kind };
    text_take(c->title, sizeof c->title, title);
    text_take(c->x_label, sizeof c->x_label, x_label);
    text_take(c->y_label, sizeof c->y_label, y_label);
    return c;
}

chart_series *chart_series_of(figure *f, chart *c, const char *name)
{
    char own[CHART_TEXT];
    text_take(own, sizeof own, name);
    for (size_t i = 0; c && i < c->series_count; i++)
        if (!strcmp(c->series[i].name, own))
            return &c->series[i];
    if (!c || c->series_count == CHART_SERIES_MOST) {
        f->lost += c != NULL;
        return NULL;
    }
    chart_series *s = &c->series[c->series_count++];
    strcpy(s->name, own);
    return s;
}

size_t chart_category(figure *f, chart *c, const char *name)
{
    char own[CHART_TEXT];
    text_take(own, sizeof own, name);
    for (size_t i = 0; c && i < c->category_count; i++)
        if (!strcmp(c->categories[i], own))
            return i;
    char(*more)[CHART_TEXT] = c ? realloc(c->categories, (c->category_count + 1) * sizeof *more) : NULL;
    if (!more) {
        f->no_memory = true;
        return 0;
    }
    c->categories = more;
    strcpy(more[c->category_count], own);
    return c->category_count++;
}

void chart_point(figure *f, chart_series *s, double x, double y, const char *label)
{
    const double most = 1e100; /* beyond it ranges and sums overflow */
    if (!s || !(fabs(x) <= most) || !(fabs(y) <= most))
        return;
    if (s->count == s->room) {
        const size_t room = s->room ? 2 * s->room : 16;
        double *xs = realloc(s->x, room * sizeof *xs);
        s->x = xs ? xs : s->x;
        double *ys = realloc(s->y, room * sizeof *ys);
        s->y = ys ? ys : s->y;
        char(*labels)[CHART_TEXT] = realloc(s->labels, room * sizeof *labels);
        s->labels = labels ? labels : s->labels;
        f->no_memory |= !xs || !ys || !labels;
        if (!xs || !ys || !labels)
            return;
        s->room = room;
    }
    s->x[s->count] = x;
    s->y[s->count] = y;
    text_take(s->labels[s->count++], CHART_TEXT, label ? label : "");
}

void chart_bar(figure *f, chart_series *s, size_t category, double length)
{
    if (length >= 0)
        chart_point(f, s, (double)category, length, NULL);
}

/* ---- axes ---- */

/* 1, 2 or 5 times a power of ten: about a fifth of the span. */
static double step_of(double span)
{
    const double rough = span / 5, power = pow(10, floor(log10(rough))), part = rough / power;
    return power * (part < 1.5 ? 1 : part < 3.5 ? 2 : part < 7.5 ? 5 : 10);
}

static void round_out(double *low, double *high, bool logarithmic)
{
    if (logarithmic) {
        *low = pow(10, floor(log10(*low) + 1e-9));
        *high = pow(10, ceil(log10(*high) - 1e-9));
        if (*low == *high)
            *high *= 10;
        return;
    }
    const double least = 1e-100; /* less has no round parts */
    if (!(*high - *low > least)) {
        const double half = fabs(*low) > least ? fabs(*low) / 2 : 0.5;
        *low -= half, *high += half;
    }
    const double step = step_of(*high - *low);
    *low = step * floor(*low / step + 1e-9);
    *high = step * ceil(*high / step - 1e-9);
}

chart_range chart_range_of(const chart *c)
{
    chart_range r = { INFINITY, -INFINITY, INFINITY, -INFINITY };
    for (size_t s = 0; s < c->series_count; s++) {
        for (size_t i = 0; i < c->series[s].count; i++) {
            const double x = c->series[s].x[i], y = c->series[s].y[i];
            if ((c->x_log && !(x > 0)) || (c->y_log && !(y > 0)))
                continue;
            r.x_low = fmin(r.x_low, x), r.x_high = fmax(r.x_high, x);
            r.y_low = fmin(r.y_low, y), r.y_high = fmax(r.y_high, y);
        }
    }
    if (!(r.x_high >= r.x_low))
        r = (chart_range){ 1, 10, 1, 10 };
    if (c->kind != CHART_LINES)
        r.y_low = 0, r.y_high = fmax(r.y_high, 1e-12);
    for (size_t k = 0; c->kind == CHART_STACKED && k < c->category_count; k++) {
        double sum = 0;
        for (size_t s = 0; s < c->series_count; s++)
            for (size_t i = 0; i < c->series[s].count; i++)
                sum += (size_t)c->series[s].x[i] == k ? c->series[s].y[i] : 0;
        r.y_high = fmax(r.y_high, sum);
    }
    round_out(&r.y_low, &r.y_high, c->y_log);
    if (!c->x_log && r.x_low > 0 && r.x_low < r.x_high / 2)
        r.x_low = 0; /* where the rest is so near that the beginning may be seen */
    if (c->x_log)
        round_out(&r.x_low, &r.x_high, true);
    else if (!(r.x_high > r.x_low))
        r.x_high = r.x_low + fmax(1, fabs(r.x_low) * 1e-9); /* where 1 more is no other number */
    return r;
}

double chart_place(double value, double low, double high, bool logarithmic)
{
    return logarithmic ? (log(value) - log(low)) / (log(high) - log(low)) : (value - low) / (high - low);
}

size_t chart_ticks(double low, double high, bool logarithmic, double ticks[CHART_TICKS])
{
    size_t count = 0;
    if (logarithmic) {
        const double every = ceil((log10(high) - log10(low)) / 8 - 1e-9);
        for (double t = low; t <= high * 1.001 && count < CHART_TICKS; t *= pow(10, every))
            ticks[count++] = t;
        return count;
    }
    const double step = step_of(high - low);
    for (double n = ceil(low / step - 1e-6); n * step <= high + step * 1e-6 && count < CHART_TICKS; n++)
        ticks[count++] = n * step;
    return count;
}

void chart_number(double value, char out[16])
{
    snprintf(out, 16, "%.4g", fabs(value) < 1e-12 ? 0 : value);
    if (fabs(value) >= 1e4 && fabs(value) < 1e7)
        snprintf(out, 16, "%.0f", value);
}

char chart_letter(size_t index)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    return index < sizeof letters - 1 ? letters[index] : '*';
}
