/* plots.c - see plots.h: tables and roofs. Trainings and traces are in plots_time.c. */
#include "bench/plots.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/plots_time.h"

/* The file too, where several of a kind are shown. */
static void series_name(const results *r, const results *list, size_t count, const char *device, char out[CHART_TEXT])
{
    size_t alike = 0;
    for (size_t i = 0; i < count; i++)
        alike += list[i].kind == r->kind;
    if (alike > 1)
        snprintf(out, CHART_TEXT, "%s: %s", results_name(r), device);
    else
        snprintf(out, CHART_TEXT, "%s", device);
}

/* ---- throughput ---- */

/* What the table's command is about, what is counted, and in which unit. */
typedef struct measure {
    results_kind kind;
    const char *title, *key, *label;
    double scale;
} measure;

static const measure measures[] = {
    { RESULTS_PEAK, "Peak: products", "flops", "GFLOP/s", 1e-9 },
    { RESULTS_PEAK, "Peak: memory, and the way from and to the host", "bytes_per_second", "GB/s", 1e-9 },
    { RESULTS_PEAK, "How long an operation takes to begin", "median_ns", "us", 1e-3 },
    { RESULTS_GEMM, "Matrix products", "flops", "GFLOP/s", 1e-9 },
    { RESULTS_CONV, "Convolutions", "flops", "GFLOP/s", 1e-9 },
    { RESULTS_OP, "Operations", "flops", "GFLOP/s", 1e-9 },
    { RESULTS_OP, "Operations: memory", "bytes_per_second", "GB/s", 1e-9 },
    { RESULTS_COPY, "Copies", "bytes_per_second", "GB/s", 1e-9 },
};

/* The third of peak's are the rows that are neither: launches. */
static bool counts(const measure *m, const json_t *row)
{
    if (!json_is_number(json_object_get(row, m->key)))
        return false;
    return strcmp(m->key, "median_ns") != 0 ||
           (!json_object_get(row, "flops") && !json_object_get(row, "bytes_per_second"));
}

static void row_add(figure *f, chart *c, const measure *m, const json_t *row, const char *series)
{
    char what[2 * CHART_TEXT];
    const double bytes = row_number(row, "bytes");
    if (m->kind == RESULTS_COPY && bytes >= 1 << 20)
        snprintf(what, sizeof what, "%s to %s, %g MiB", row_text(row, "from"), row_text(row, "to"), bytes * 0x1p-20);
    else if (m->kind == RESULTS_COPY)
        snprintf(what, sizeof what, "%s to %s, %g KiB", row_text(row, "from"), row_text(row, "to"), bytes * 0x1p-10);
    else
        row_what(m->kind, row, what, sizeof what);
    const size_t category = chart_category(f, c, what);
    chart_bar(f, chart_series_of(f, c, series), category, row_number(row, m->key) * m->scale);
}

static void throughput_add(figure *f, const measure *m, const results *list, size_t count)
{
    char series[CHART_TEXT];
    chart *c = NULL;
    for (size_t i = 0; i < count; i++) {
        size_t k;
        const json_t *row;
        if (list[i].kind != m->kind)
            continue;
        json_array_foreach(list[i].rows, k, row)
        {
            if (!counts(m, row))
                continue;
            if (!c && !(c = figure_add(f, CHART_BARS, m->title, m->label, "")))
                return;
            series_name(&list[i], list, count, row_text(row, "device"), series);
            row_add(f, c, m, row, series);
        }
    }
}

/* ---- roofs ---- */

typedef struct roof {
    double flops, bytes; /* per second */
} roof;

/* Products of `type`, and memory. */
static roof roof_of(const results *list, size_t count, const char *device, const char *type)
{
    roof r = { 0, 0 };
    for (size_t i = 0; i < count; i++) {
        size_t k;
        const json_t *row;
        if (list[i].kind != RESULTS_PEAK)
            continue;
        json_array_foreach(list[i].rows, k, row)
        {
            if (strcmp(row_text(row, "device"), device) != 0)
                continue;
            if (!strcmp(row_text(row, "type"), type))
                r.flops = fmax(r.flops, row_number(row, "flops"));
            if (!strncmp(row_text(row, "peak"), "memory", 6))
                r.bytes = fmax(r.bytes, row_number(row, "bytes_per_second"));
        }
    }
    return r;
}

/* Under it an operation lies by how much it computes for each byte that it must move. */
static void operations_add(figure *f, chart *c, const results *r, const char *device, double *least, double *most)
{
    char what[2 * CHART_TEXT], label[CHART_TEXT];
    const json_t *row;
    size_t k;
    json_array_foreach(r->rows, k, row)
    {
        const double flops = row_number(row, "flops"), bytes = row_number(row, "bytes_per_second");
        if (strcmp(row_text(row, "device"), device) != 0 || !(flops > 0) || !(bytes > 0))
            continue;
        row_what(r->kind, row, what, sizeof what);
        snprintf(label, sizeof label, "%.60s", what);
        *least = fmin(*least, flops / bytes);
        *most = fmax(*most, flops / bytes);
        chart_series *s = chart_series_of(f, c,
                                          r->kind == RESULTS_GEMM   ? "products"
                                          : r->kind == RESULTS_CONV ? "convolutions"
                                                                    : "operations");
        if (s)
            s->dots = true;
        chart_point(f, s, flops / bytes, flops * 1e-9, label);
    }
}

static void roof_line(figure *f, chart *c, const char *name, roof r, double least, double most)
{
    const double ridge = r.flops / r.bytes;
    chart_series *s = chart_series_of(f, c, name);
    chart_point(f, s, least, fmin(r.flops, least * r.bytes) * 1e-9, NULL);
    if (ridge > least && ridge < most)
        chart_point(f, s, ridge, r.flops * 1e-9, NULL);
    chart_point(f, s, most, fmin(r.flops, most * r.bytes) * 1e-9, NULL);
}

static void roof_add(figure *f, const results *list, size_t count, const char *device)
{
    static const char *const types[] = { "f32", "bf16", "f16" };
    const roof f32 = roof_of(list, count, device, "f32");
    char title[2 * CHART_TEXT], name[CHART_TEXT];
    double least = INFINITY, most = 0;
    if (!(f32.flops > 0) || !(f32.bytes > 0))
        return;
    snprintf(title, sizeof title, "Roof of %s, and operations under it", device);
    chart *c = figure_add(f, CHART_LINES, title, "FLOP per byte of operands", "GFLOP/s");
    if (!c)
        return;
    c->x_log = c->y_log = true;
    for (size_t i = 0; i < count; i++)
        if (list[i].kind == RESULTS_GEMM || list[i].kind == RESULTS_CONV || list[i].kind == RESULTS_OP)
            operations_add(f, c, &list[i], device, &least, &most);
    if (!(most > 0)) {
        f->count--; /* nothing lies under it; it holds nothing yet */
        return;
    }
    least = fmin(least, f32.flops / f32.bytes / 8);
    most = fmax(most, f32.flops / f32.bytes * 8);
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        const roof r = roof_of(list, count, device, types[t]);
        snprintf(name, sizeof name, "%s: %.4g GFLOP/s, %.3g GB/s", types[t], r.flops * 1e-9, r.bytes * 1e-9);
        if (r.flops > 0)
            roof_line(f, c, name, r, least, most);
    }
}

/* Whether a row before this one is of its device. */
static bool told_before(const results *list, size_t file, size_t row)
{
    const char *device = row_text(json_array_get(list[file].rows, row), "device");
    for (size_t i = 0; i <= file; i++)
        for (size_t k = 0; list[i].kind == RESULTS_PEAK && k < (i < file ? json_array_size(list[i].rows) : row); k++)
            if (!strcmp(row_text(json_array_get(list[i].rows, k), "device"), device))
                return true;
    return false;
}

/* Each device once that a peak is told of, in whichever of the files. */
void plots_roofs(figure *f, const results *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; list[i].kind == RESULTS_PEAK && k < json_array_size(list[i].rows); k++)
            if (!told_before(list, i, k))
                roof_add(f, list, count, row_text(json_array_get(list[i].rows, k), "device"));
}

/* Where there are roofs, what lies under them has no bars of its own, and neither have they. */
void plots_add(figure *f, const results *list, size_t count)
{
    plots_trainings(f, list, count);
    const size_t before = f->count;
    plots_roofs(f, list, count);
    const bool roofs = f->count > before;
    for (size_t i = 0; i < sizeof measures / sizeof *measures; i++)
        if (!roofs || (measures[i].kind != RESULTS_PEAK && strcmp(measures[i].key, "flops") != 0))
            throughput_add(f, &measures[i], list, count);
    for (size_t i = 0; i < count; i++)
        if (list[i].kind == RESULTS_TRACE)
            plots_trace(f, &list[i]);
}
