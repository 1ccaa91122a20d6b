/* canvas.c - see canvas.h. */
#include "bench/chart/canvas.h"

#include <string.h>

double canvas_text_width(const char *text, double size)
{
    return 0.61 * size * (double)strlen(text);
}

/* ---- SVG ---- */

static void xml_put(FILE *to, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '<': fputs("&lt;", to); break;
        case '>': fputs("&gt;", to); break;
        case '&': fputs("&amp;", to); break;
        case '"': fputs("&quot;", to); break;
        default: fputc(*text, to);
        }
    }
}

/* On white, so that it can be read in front of any page. */
static void svg_begin(canvas *c, const char *title)
{
    fprintf(c->to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\""
            " font-family=\"Helvetica, Arial, sans-serif\" fill=\"#333\">\n<title>",
            c->width, c->height);
    xml_put(c->to, title);
    fprintf(c->to, "</title>\n<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n", c->width, c->height);
}

static void svg_path(canvas *c, const double *xy, size_t count, const char *colour, double width)
{
    fprintf(c->to, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"%g\" stroke-linejoin=\"round\" d=\"M", colour,
            width);
    for (size_t i = 0; i < count; i++)
        fprintf(c->to, "%s%.1f,%.1f", i ? " " : "", xy[2 * i], xy[2 * i + 1]);
    fputs("\"/>\n", c->to);
}

static void svg_rect(canvas *c, double x, double y, double w, double h, const char *colour)
{
    fprintf(c->to, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>\n", x, y, w, h, colour);
}

static void svg_dot(canvas *c, double x, double y, const char *colour)
{
    fprintf(c->to, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"%s\"/>\n", x, y, colour);
}

static void svg_text(canvas *c, double x, double y, char align, double size, const char *text)
{
    const double down = 0.35 * size; /* from the middle of the letters to the line that they stand on */
    if (align == 'v')
        fprintf(c->to, "<text transform=\"translate(%.1f,%.1f) rotate(-90)\" font-size=\"%g\" text-anchor=\"middle\">",
                x + down, y, size);
    else
        fprintf(c->to, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%g\" text-anchor=\"%s\">", x, y + down, size,
                align == 'l'   ? "start"
                : align == 'c' ? "middle"
                               : "end");
    xml_put(c->to, text);
    fputs("</text>\n", c->to);
}

static void svg_end(canvas *c)
{
    fputs("</svg>\n", c->to);
}

canvas canvas_svg(FILE *to, int width, int height)
{
    return (canvas){ to, width, height, svg_begin, svg_path, svg_rect, svg_dot, svg_text, svg_end };
}

/* ---- gnuplot: objects and labels in a plane of pixels, over an empty plot ---- */

static void gnuplot_begin(canvas *c, const char *title)
{
    (void)title;
    fprintf(c->to,
            "set terminal pngcairo size %d,%d background rgb '#ffffff' font 'sans,9'\n"
            "set encoding utf8\nunset border\nunset tics\nunset key\n"
            "set lmargin at screen 0\nset rmargin at screen 1\nset tmargin at screen 1\nset bmargin at screen 0\n"
            "set xrange [0:%d]\nset yrange [%d:0]\n",
            c->width, c->height, c->width, c->height);
}

static void gnuplot_path(canvas *c, const double *xy, size_t count, const char *colour, double width)
{
    for (size_t i = 0; i + 1 < count; i++)
        fprintf(c->to, "set arrow from %.1f,%.1f to %.1f,%.1f nohead lc rgb '%s' lw %g back\n", xy[2 * i],
                xy[2 * i + 1], xy[2 * i + 2], xy[2 * i + 3], colour, width);
}

static void gnuplot_rect(canvas *c, double x, double y, double w, double h, const char *colour)
{
    if (w > 0 && h > 0)
        fprintf(c->to, "set object rect from %.1f,%.1f to %.1f,%.1f fc rgb '%s' fs solid noborder\n", x, y, x + w,
                y + h, colour);
}

static void gnuplot_dot(canvas *c, double x, double y, const char *colour)
{
    fprintf(c->to, "set object circle at %.1f,%.1f size 3.5 fc rgb '%s' fs solid noborder front\n", x, y, colour);
}

static void gnuplot_text(canvas *c, double x, double y, char align, double size, const char *text)
{
    fputs("set label '", c->to);
    for (; *text; text++)
        fputs(*text == '\'' ? "''" : (char[]){ *text, 0 }, c->to);
    fprintf(c->to, "' at %.1f,%.1f %s font ',%g' tc rgb '#333333' noenhanced front\n", x, y,
            align == 'l'   ? "left"
            : align == 'c' ? "center"
            : align == 'r' ? "right"
                           : "center rotate by 90",
            0.75 * size);
}

static void gnuplot_end(canvas *c)
{
    fputs("plot NaN notitle\n", c->to);
}

canvas canvas_gnuplot(FILE *to, int width, int height)
{
    return (canvas){ to,           width,       height,       gnuplot_begin, gnuplot_path,
                     gnuplot_rect, gnuplot_dot, gnuplot_text, gnuplot_end };
}
