/* progress_line.h - what a progress line says: how it is laid out in so many columns, and how much time is left.
 *
 * Arithmetic alone: no clock, no terminal, no memory of its own. Who draws the line, and when, is progress.h's. */
#ifndef BENCH_PROGRESS_LINE_H
#define BENCH_PROGRESS_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROGRESS_FACTS = 12, PROGRESS_FACT_MAX = 40, PROGRESS_LABEL_MAX = 64, PROGRESS_LINE_MAX = 1024 };

typedef struct progress_view {
    char label[PROGRESS_LABEL_MAX]; /* "epoch 2/3", "gemm cpu:0" */
    char facts[PROGRESS_FACTS]
              [PROGRESS_FACT_MAX]; /* "loss 0.0543"; the most important first, empty ones are left out */
    int64_t done, total;           /* total 0: nobody knows */
    double elapsed, left;          /* seconds; left < 0: not known */
} progress_view;

typedef struct progress_style {
    int width;   /* columns; 0: a plain line of any length, without a bar */
    bool utf8;   /* a bar of line-drawing characters, each one column; else of = and blanks */
    bool colour; /* escapes, which take no column, around the bar */
} progress_style;

/* progress_layout - the line without an end of line, at most `width` columns and ended by a 0; its length in bytes.
 *
 * The label comes first and is cut short where it alone is too long. What else there is comes by importance - part
 * and count, time left, the first fact, a bar of at least 10 columns, the other facts - each if it still fits, and
 * then stands in a place of its own: label, bar, part, count, time, facts. Columns that are left over make the bar
 * longer, up to 30. Nothing that changes from one line to the next within a run changes where things stand but the
 * digits themselves. */
size_t progress_layout(const progress_view *view, progress_style style, char out[PROGRESS_LINE_MAX]);

/* "0:07", "12:34", "3:25:45", "41 days". */
void progress_time(double seconds, char out[24]);

/* How fast it goes: a mean over the last PROGRESS_MEMORY seconds or so, weighed by age; before that over all there
 * is. Zeroed: nothing is known. What ran ahead of the first thing done - compiling, warming up - counts for nothing. */
enum { PROGRESS_MEMORY = 20 };
typedef struct progress_rate {
    bool begun;
    double at, done;   /* when the latest one was done, and how many there were */
    double work, time; /* what was done lately, and in how many seconds; both fade */
} progress_rate;

/* At `now` (seconds, any clock) `done` things were done. One call for each time at which their number changed, not
 * between. */
void progress_rate_add(progress_rate *rate, double now, double done);
/* Things per second; 0: not known. */
double progress_rate_now(const progress_rate *rate);
/* Seconds from `now` until there are `total`; < 0: not known. */
double progress_rate_left(const progress_rate *rate, double now, double total);

#endif
