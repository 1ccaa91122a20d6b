/* chart_draw.h - figures as pictures: SVG, written here, and PNG, which gnuplot makes of the same lines and texts.
 *
 * Layout is done once, in pixels of a page that is as wide as a column of text; whoever puts it on paper knows
 * lines, rectangles, dots and texts (canvas.h). */
#ifndef BENCH_CHART_DRAW_H
#define BENCH_CHART_DRAW_H

#include <stdio.h>

#include "bench/chart.h"

/* An <svg> element, complete, without a declaration: for a file of its own and for a page of HTML. */
void figure_svg(const figure *f, FILE *to);
/* To FILE.svg or FILE.png, by its name. Complains: 0 or an exit code; EXIT_BAD_INPUT also where gnuplot is missing. */
int figure_save(const figure *f, const char *path);
/* Before the work: whether figure_save could. 0, also of NULL, or an exit code. */
int figure_save_check(const char *path);

#endif
