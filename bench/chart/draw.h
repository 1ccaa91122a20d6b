/* draw.h - figures as pictures: SVG, and a script of which gnuplot makes a PNG of the same lines and texts.
 *
 * Layout is done once, in pixels of a page that is as wide as a column of text; whoever puts it on paper knows
 * lines, rectangles, dots and texts (canvas.h). What became of the stream is its owner's to ask. */
#ifndef BENCH_CHART_DRAW_H
#define BENCH_CHART_DRAW_H

#include <stdio.h>

#include "bench/chart/chart.h"

/* An <svg> element, complete, without a declaration: for a file of its own and for a page of HTML. */
void figure_svg(const figure *f, FILE *to);
/* For gnuplot's standard input: the picture is on its standard output. */
void figure_gnuplot(const figure *f, FILE *to);

#endif
