/* canvas.h - what a picture is put together from, and two ways to write that down: SVG, and a script for gnuplot.
 *
 * Pixels, y downwards. Texts are taken as they are, and written so that none is a command or markup. Must not know
 * charts. */
#ifndef BENCH_CHART_CANVAS_H
#define BENCH_CHART_CANVAS_H

#include <stddef.h>
#include <stdio.h>

typedef struct canvas canvas;
struct canvas {
    FILE *to;
    int width, height;
    void (*begin)(canvas *c, const char *title);
    void (*path)(canvas *c, const double *xy, size_t count, const char *colour, double width);
    void (*rect)(canvas *c, double x, double y, double w, double h, const char *colour);
    void (*dot)(canvas *c, double x, double y, const char *colour);
    /* `align`: l, c or r; x and y are of that end, or middle, at half the height of the letters; v: upwards, centred */
    void (*text)(canvas *c, double x, double y, char align, double size, const char *text);
    void (*end)(canvas *c);
};

canvas canvas_svg(FILE *to, int width, int height);
/* A script that has gnuplot write a PNG to its standard output. */
canvas canvas_gnuplot(FILE *to, int width, int height);
/* About how wide such a text is. */
double canvas_text_width(const char *text, double size);

#endif
