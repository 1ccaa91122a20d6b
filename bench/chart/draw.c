/* draw.c - see draw.h: the layout of figures in pixels. */
#include "bench/chart/draw.h"

#include <math.h>

#include "bench/chart/canvas.h"

/* A page as wide as a column of text; letters that can be read when it is half as wide. */
enum {
    WIDTH = 720,
    PLOT_HEIGHT = 250,
    LEFT = 62,
    RIGHT = 18,
    TITLE = 30,
    LEGEND = 20,
    AXIS = 46,
    BAR = 13,
    BAR_GAP = 10,
    NOTE = 15
};
static const double TITLE_SIZE = 15, TEXT_SIZE = 12, SMALL_SIZE = 11;
static const char GRID[] = "#dddddd", FRAME[] = "#888888";

/* Told apart by people who do not tell all colours apart (Okabe and Ito), the first ones by their lightness too. */
static const char *const colours[CHART_SERIES_MOST] = { "#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                        "#e69f00", "#56b4e9", "#b2a300", "#000000",
                                                        "#7f7f7f", "#8c564b", "#17a000", "#9467bd" };

/* Where the numbers of one chart lie. */
typedef struct area {
    double x, y, w, h; /* of the plot itself */
    chart_range range;
} area;

/* In so much room: smaller where it is too long. */
static void text_fit(canvas *to, double x, double y, char align, double size, double room, const char *text)
{
    const double width = canvas_text_width(text, size);
    to->text(to, x, y, align, width > room ? size * room / width : size, text);
}

static size_t legend_rows(const chart *c, canvas *to, double y)
{
    double x = LEFT;
    size_t rows = c->series_count > 1 || (c->series_count == 1 && c->kind == CHART_LINES && *c->series[0].name);
    for (size_t i = 0; rows && i < c->series_count; i++) {
        const double width = 18 + canvas_text_width(c->series[i].name, TEXT_SIZE) + 16;
        if (x > LEFT && x + width > WIDTH - RIGHT)
            x = LEFT, rows++;
        const double at = y + LEGEND * ((double)rows - 0.5);
        if (to) {
            to->rect(to, x, at - 5, 12, 10, colours[i]);
            to->text(to, x + 17, at, 'l', TEXT_SIZE, c->series[i].name);
        }
        x += width;
    }
    return rows;
}

static size_t bars_in_category(const chart *c)
{
    return c->kind == CHART_STACKED || !c->series_count ? 1 : c->series_count;
}

static double plot_height(const chart *c)
{
    return c->kind == CHART_LINES ? PLOT_HEIGHT
                                  : (double)(c->category_count * (bars_in_category(c) * BAR + BAR_GAP) + BAR_GAP);
}

/* Dots with a label are letters in the plot, which are explained below it, in two columns. */
static size_t notes_put(const chart *c, canvas *to, double y)
{
    const double column = (WIDTH - LEFT - RIGHT) / 2.0;
    size_t count = 0;
    for (size_t s = 0; s < c->series_count; s++) {
        for (size_t i = 0; c->series[s].dots && i < c->series[s].count; i++) {
            char note[CHART_TEXT + 8];
            snprintf(note, sizeof note, "%c  %s", chart_letter(count), c->series[s].labels[i]);
            if (to && *c->series[s].labels[i])
                text_fit(to, LEFT + (double)(count % 2) * column, y + NOTE * ((double)(count / 2) + 0.5), 'l',
                         SMALL_SIZE, column - 8, note);
            count += *c->series[s].labels[i] != 0;
        }
    }
    return (count + 1) / 2;
}

static double chart_height(const chart *c)
{
    return TITLE + (double)legend_rows(c, NULL, 0) * LEGEND + plot_height(c) + AXIS +
           (double)notes_put(c, NULL, 0) * NOTE + 8;
}

static double x_of(const area *a, const chart *c, double x)
{
    return a->x + a->w * chart_place(x, a->range.x_low, a->range.x_high, c->x_log);
}

static double y_of(const area *a, const chart *c, double y)
{
    return a->y + a->h * (1 - chart_place(y, a->range.y_low, a->range.y_high, c->y_log));
}

/* Along an axis: a rectangle one pixel wide, for what is drawn later to lie above it. */
static void straight(canvas *to, double x1, double y1, double x2, double y2, const char *colour)
{
    to->rect(to, x1 - 0.5, y1 - 0.5, x2 - x1 + 1, y2 - y1 + 1, colour);
}

/* ---- lines and dots ---- */

static void axes_draw(canvas *to, const chart *c, const area *a)
{
    double ticks[CHART_TICKS];
    char number[16];
    size_t count = chart_ticks(a->range.x_low, a->range.x_high, c->x_log, ticks);
    for (size_t i = 0; i < count; i++) {
        const double x = x_of(a, c, ticks[i]);
        chart_number(ticks[i], number);
        straight(to, x, a->y, x, a->y + a->h, GRID);
        to->text(to, x, a->y + a->h + 12, 'c', SMALL_SIZE, number);
    }
    count = chart_ticks(a->range.y_low, a->range.y_high, c->y_log, ticks);
    for (size_t i = 0; i < count; i++) {
        const double y = y_of(a, c, ticks[i]);
        chart_number(ticks[i], number);
        straight(to, a->x, y, a->x + a->w, y, GRID);
        to->text(to, a->x - 6, y, 'r', SMALL_SIZE, number);
    }
    straight(to, a->x, a->y, a->x, a->y + a->h, FRAME);
    straight(to, a->x, a->y + a->h, a->x + a->w, a->y + a->h, FRAME);
    to->text(to, a->x + a->w / 2, a->y + a->h + 30, 'c', TEXT_SIZE, c->x_label);
    to->text(to, 12, a->y + a->h / 2, 'v', TEXT_SIZE, c->y_label);
}

static bool on_chart(const chart *c, double x, double y)
{
    return (!c->x_log || x > 0) && (!c->y_log || y > 0);
}

/* As many points as there are pixels show all that there is to see: of more, every so manieth, and the last. */
static void line_draw(canvas *to, const chart *c, const area *a, const chart_series *s, const char *colour)
{
    enum { SHOWN = 2 * WIDTH };
    double xy[2 * (SHOWN + 1)];
    const size_t every = s->count / SHOWN + 1;
    size_t count = 0;
    for (size_t i = 0; i < s->count; i++) {
        if ((i % every && i + 1 < s->count) || !on_chart(c, s->x[i], s->y[i]))
            continue;
        xy[2 * count] = x_of(a, c, s->x[i]);
        xy[2 * count++ + 1] = y_of(a, c, s->y[i]);
    }
    if (count > 1)
        to->path(to, xy, count, colour, 1.8);
    for (size_t i = 0; i < count && count <= 12 && !c->x_log; i++) /* few, which were measured */
        to->dot(to, xy[2 * i], xy[2 * i + 1], colour);
}

static void dots_draw(canvas *to, const chart *c, const area *a, const chart_series *s, const char *colour,
                      size_t *letter)
{
    for (size_t i = 0; i < s->count; i++) {
        const char name[] = { *s->labels[i] ? chart_letter((*letter)++) : 0, 0 };
        if (!on_chart(c, s->x[i], s->y[i]))
            continue;
        to->dot(to, x_of(a, c, s->x[i]), y_of(a, c, s->y[i]), colour);
        to->text(to, x_of(a, c, s->x[i]) + 6, y_of(a, c, s->y[i]) - 7, 'l', SMALL_SIZE, name);
    }
}

static void lines_draw(canvas *to, const chart *c, double y)
{
    const area a = { LEFT, y, WIDTH - LEFT - RIGHT, plot_height(c), chart_range_of(c) };
    size_t letter = 0;
    axes_draw(to, c, &a);
    for (size_t i = 0; i < c->series_count; i++)
        if (!c->series[i].dots)
            line_draw(to, c, &a, &c->series[i], colours[i]);
    for (size_t i = 0; i < c->series_count; i++)
        if (c->series[i].dots)
            dots_draw(to, c, &a, &c->series[i], colours[i], &letter);
    notes_put(c, to, y + a.h + AXIS - 4);
}

/* ---- bars ---- */

static double labels_width(const chart *c)
{
    double widest = 0;
    for (size_t i = 0; i < c->category_count; i++)
        widest = fmax(widest, canvas_text_width(c->categories[i], SMALL_SIZE));
    return fmin(widest + 14, WIDTH * 0.5);
}

static void bars_draw(canvas *to, const chart *c, double y)
{
    const double left = labels_width(c), step = (double)bars_in_category(c) * BAR + BAR_GAP;
    const double value = 52; /* for the number behind a bar */
    const area a = { left, y, WIDTH - left - RIGHT - value, plot_height(c), chart_range_of(c) };
    double ticks[CHART_TICKS];
    char number[16];
    const size_t count = chart_ticks(0, a.range.y_high, false, ticks);
    for (size_t i = 0; i < count; i++) {
        const double x = a.x + a.w * ticks[i] / a.range.y_high;
        chart_number(ticks[i], number);
        straight(to, x, a.y, x, a.y + a.h, GRID);
        to->text(to, x, a.y + a.h + 12, 'c', SMALL_SIZE, number);
    }
    to->text(to, a.x + a.w / 2, a.y + a.h + 30, 'c', TEXT_SIZE, c->x_label);
    for (size_t k = 0; k < c->category_count; k++) {
        const double top = a.y + BAR_GAP + (double)k * step;
        double end = 0;
        text_fit(to, left - 7, top + (step - BAR_GAP) / 2, 'r', SMALL_SIZE, left - 14, c->categories[k]);
        for (size_t s = 0; s < c->series_count; s++) {
            for (size_t i = 0; i < c->series[s].count; i++) {
                const double v = c->series[s].y[i], w = a.w * v / a.range.y_high;
                if ((size_t)c->series[s].x[i] != k)
                    continue;
                const double at = c->kind == CHART_STACKED ? top : top + (double)s * BAR;
                to->rect(to, a.x + a.w * end / a.range.y_high, at, w, BAR - 1, colours[s]);
                chart_number(v, number);
                if (c->kind == CHART_STACKED)
                    end += v;
                else
                    to->text(to, a.x + w + 5, at + BAR / 2.0, 'l', SMALL_SIZE, number);
            }
        }
        chart_number(end, number);
        if (c->kind == CHART_STACKED)
            to->text(to, a.x + a.w * end / a.range.y_high + 5, top + BAR / 2.0, 'l', SMALL_SIZE, number);
    }
    straight(to, a.x, a.y, a.x, a.y + a.h, FRAME);
}

/* ---- figures ---- */

static int figure_height(const figure *f)
{
    double height = 0;
    for (size_t i = 0; i < f->count; i++)
        height += chart_height(&f->charts[i]);
    return (int)height + 4;
}

static void figure_draw(const figure *f, canvas *to)
{
    double y = 0;
    to->begin(to, f->count ? f->charts[0].title : "");
    for (size_t i = 0; i < f->count; i++) {
        const chart *c = &f->charts[i];
        text_fit(to, LEFT, y + TITLE / 2.0 + 2, 'l', TITLE_SIZE, WIDTH - LEFT - RIGHT, c->title);
        const double plot = y + TITLE + (double)legend_rows(c, to, y + TITLE) * LEGEND;
        if (c->kind == CHART_LINES)
            lines_draw(to, c, plot + 4);
        else
            bars_draw(to, c, plot + 4);
        y += chart_height(c);
    }
    to->end(to);
}

void figure_svg(const figure *f, FILE *to)
{
    canvas svg = canvas_svg(to, WIDTH, figure_height(f));
    figure_draw(f, &svg);
}

void figure_gnuplot(const figure *f, FILE *to)
{
    canvas gnuplot = canvas_gnuplot(to, WIDTH, figure_height(f));
    figure_draw(f, &gnuplot);
}
