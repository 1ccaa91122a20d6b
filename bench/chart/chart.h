/* chart.h - pictures of numbers: what is shown. How it is drawn is draw.h's (SVG, PNG) and text.h's.
 *
 * A figure is a column of charts; a chart has lines and dots over two axes, or bars along categories. Nobody who
 * adds asks whether there was memory: a figure that lacks something says so in the end. Texts are kept as
 * cek_text_printable leaves them. */
#ifndef BENCH_CHART_CHART_H
#define BENCH_CHART_CHART_H

#include <stdbool.h>
#include <stddef.h>

enum { CHART_SERIES_MOST = 12, CHART_TEXT = 64 };

typedef struct chart_series {
    char name[CHART_TEXT];
    bool dots; /* not joined by a line */
    size_t count, room;
    double *x, *y; /* of bars, x is the category's number; a stacked one has a part for each series */
    char (*labels)[CHART_TEXT];
} chart_series;

typedef enum chart_kind { CHART_LINES, CHART_BARS, CHART_STACKED } chart_kind;

typedef struct chart {
    chart_kind kind;
    char title[2 * CHART_TEXT], x_label[CHART_TEXT], y_label[CHART_TEXT]; /* of bars, x_label belongs to their length */
    bool x_log, y_log;
    chart_series series[CHART_SERIES_MOST];
    size_t series_count, category_count;
    char (*categories)[CHART_TEXT];
} chart;

typedef struct figure {
    chart *charts;
    size_t count;
    bool no_memory;
    size_t lost; /* series that there was no room for */
} figure;

/* Empties it and frees what it held. */
void figure_free(figure *f);
/* The next chart; NULL: no memory. Until the next one is added. */
chart *figure_add(figure *f, chart_kind kind, const char *title, const char *x_label, const char *y_label);

/* The series of that name, made if there is none; NULL: no room. */
chart_series *chart_series_of(figure *f, chart *c, const char *name);
/* The category's number, made if there is none. */
size_t chart_category(figure *f, chart *c, const char *name);
/* Numbers that are none, or beyond 1e100, are left out; `label` may be NULL. */
void chart_point(figure *f, chart_series *s, double x, double y, const char *label);
/* Of bars; a length below 0 is none. */
void chart_bar(figure *f, chart_series *s, size_t category, double length);

/* The range of both axes over all points: logarithmic ones from power to power of ten, others between round numbers,
 * those of bars from 0. */
typedef struct chart_range {
    double x_low, x_high, y_low, y_high;
} chart_range;
chart_range chart_range_of(const chart *c);
/* Where a number lies between the ends, 0 to 1. */
double chart_place(double value, double low, double high, bool logarithmic);
/* Round numbers from low to high, some 5; how many. */
enum { CHART_TICKS = 24 };
size_t chart_ticks(double low, double high, bool logarithmic, double ticks[CHART_TICKS]);
/* What a dot with a label is called in the picture: a to z, A to Z; any later one is a star. */
char chart_letter(size_t index);
/* "0.001", "250", "1e+06". */
void chart_number(double value, char out[16]);

#endif
