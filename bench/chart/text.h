/* text.h - figures as lines of text, for a terminal: braille dots and blocks where it has them, else ASCII.
 *
 * A layout of its own, in characters; what the terminal is like is told by who asks. */
#ifndef BENCH_CHART_TEXT_H
#define BENCH_CHART_TEXT_H

#include <stdio.h>

#include "bench/chart/chart.h"

typedef struct chart_text_style {
    int width;   /* columns: no line is longer; at least 40 are used */
    bool utf8;   /* braille and blocks */
    bool colour; /* else series are told apart by marks */
} chart_text_style;

void figure_text(const figure *f, chart_text_style style, FILE *to);

#endif
