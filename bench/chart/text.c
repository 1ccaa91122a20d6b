/* text.c - see text.h. */
#include "bench/chart/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 14, MARGIN = 9 /* of numbers on the left */, WIDTH_LEAST = 40, WIDTH_MOST = 160, BAR_LEAST = 8 };

static const char *const colours[] = { "34", "33", "32", "35", "36", "31" };
static const char marks[] = "*+ox#@%&=~^?";

/* What one character shows: dots of two columns by four rows, or a mark; and the series that was there last. */
typedef struct cell {
    unsigned char dots;
    char mark;
    unsigned char series;
} cell;

typedef struct plane {
    cell cells[ROWS][WIDTH_MOST];
    int columns;
    bool braille;
} plane;

static void colour_begin(FILE *to, const chart_text_style *style, size_t series)
{
    if (style->colour)
        fprintf(to, "\033[%sm", colours[series % (sizeof colours / sizeof *colours)]);
}

static void colour_end(FILE *to, const chart_text_style *style)
{
    fputs(style->colour ? "\033[0m" : "", to);
}

static void plane_mark(plane *p, double x, double y, size_t series, char mark)
{
    static const unsigned char bits[4][2] = { { 0x01, 0x08 }, { 0x02, 0x10 }, { 0x04, 0x20 }, { 0x40, 0x80 } };
    const int column = (int)lround(x * (2 * p->columns - 1)), row = (int)lround((1 - y) * (4 * ROWS - 1));
    if (column < 0 || column >= 2 * p->columns || row < 0 || row >= 4 * ROWS)
        return;
    cell *c = &p->cells[row / 4][column / 2];
    c->dots |= bits[row % 4][column % 2];
    c->series = (unsigned char)series;
    if (mark || !p->braille)
        c->mark = mark ? mark : marks[series % (sizeof marks - 1)];
}

static void plane_line(plane *p, double x1, double y1, double x2, double y2, size_t series)
{
    const double steps = fmax(fmax(fabs(x2 - x1) * 2 * p->columns, fabs(y2 - y1) * 4 * ROWS), 1);
    for (double i = 0; i <= steps; i++)
        plane_mark(p, x1 + (x2 - x1) * i / steps, y1 + (y2 - y1) * i / steps, series, 0);
}

static void cell_put(FILE *to, const cell *c, const chart_text_style *style)
{
    if (!c->mark && !c->dots) {
        fputc(' ', to);
        return;
    }
    colour_begin(to, style, c->series);
    if (c->mark)
        fputc(c->mark, to);
    else
        fprintf(to, "\xe2%c%c", 0xa0 | c->dots >> 6, 0x80 | (c->dots & 0x3f)); /* U+2800 and the dots */
    colour_end(to, style);
}

/* ---- lines and dots ---- */

static bool place_of(const chart *c, const chart_range *r, double x, double y, double at[2])
{
    if ((c->x_log && !(x > 0)) || (c->y_log && !(y > 0)))
        return false;
    at[0] = chart_place(x, r->x_low, r->x_high, c->x_log);
    at[1] = chart_place(y, r->y_low, r->y_high, c->y_log);
    return true;
}

/* Dots with a label are letters, which the legend explains. */
static void series_plot(plane *p, const chart *c, const chart_range *r, size_t index, size_t *letter)
{
    const chart_series *s = &c->series[index];
    double at[2], before[2];
    bool joined = false;
    for (size_t i = 0; i < s->count; i++) {
        if (!place_of(c, r, s->x[i], s->y[i], at))
            continue;
        if (s->dots && *s->labels[i])
            plane_mark(p, at[0], at[1], index, chart_letter((*letter)++));
        else if (s->dots || !joined)
            plane_mark(p, at[0], at[1], index, 0);
        else
            plane_line(p, before[0], before[1], at[0], at[1], index);
        joined = true;
        memcpy(before, at, sizeof before);
    }
}

static void legend_put(FILE *to, const chart *c, const chart_text_style *style, bool braille)
{
    size_t letter = 0;
    for (size_t i = 0; i < c->series_count; i++) {
        const chart_series *s = &c->series[i];
        if (!*s->name && !s->dots)
            continue;
        fprintf(to, "%*s", MARGIN + 1, "");
        colour_begin(to, style, i);
        fputs(braille ? "⣀" : (char[]){ marks[i % (sizeof marks - 1)], 0 }, to);
        colour_end(to, style);
        fprintf(to, " %s\n", s->name);
        for (size_t k = 0; s->dots && k < s->count; k++)
            if (*s->labels[k])
                fprintf(to, "%*s%c %.*s\n", MARGIN + 3, "", chart_letter(letter++), style->width - MARGIN - 6,
                        s->labels[k]);
    }
}

static void x_axis_put(FILE *to, const chart *c, const chart_range *r, int columns, bool utf8)
{
    char row[WIDTH_MOST + 1], number[16];
    double ticks[CHART_TICKS];
    const size_t count = chart_ticks(r->x_low, r->x_high, c->x_log, ticks);
    int free_from = 0;
    memset(row, ' ', sizeof row);
    for (size_t i = 0; i < count; i++) {
        chart_number(ticks[i], number);
        const int length = (int)strlen(number);
        int at = (int)lround(chart_place(ticks[i], r->x_low, r->x_high, c->x_log) * (columns - 1)) - length / 2;
        at = at < 0 ? 0 : at > columns - length ? columns - length : at;
        if (at < free_from)
            continue;
        memcpy(row + at, number, (size_t)length);
        free_from = at + length + 1;
    }
    row[columns] = 0;
    fprintf(to, "%*s%s", MARGIN, "", utf8 ? "└" : "+");
    for (int i = 0; i < columns; i++)
        fputs(utf8 ? "─" : "-", to);
    fprintf(to, "\n%*s %s\n", MARGIN, "", row);
    fprintf(to, "%*s %*s\n", MARGIN, "", (columns + (int)strlen(c->x_label)) / 2, c->x_label);
}

static void lines_put(FILE *to, const chart *c, const chart_text_style *style)
{
    static plane p; /* large; one thread prints */
    const chart_range r = chart_range_of(c);
    double ticks[CHART_TICKS];
    const size_t count = chart_ticks(r.y_low, r.y_high, c->y_log, ticks);
    size_t letter = 0;
    char number[16];
    p = (plane){ .columns = style->width - MARGIN - 1,
                 .braille = style->utf8 && (style->colour || c->series_count == 1) };
    for (int dots = 0; dots < 2; dots++) /* over the lines */
        for (size_t i = 0; i < c->series_count; i++)
            if (c->series[i].dots == dots)
                series_plot(&p, c, &r, i, &letter);
    fprintf(to, "%*s\n", MARGIN, c->y_label);
    for (int row = 0; row < ROWS; row++) {
        *number = 0;
        for (size_t i = 0; i < count; i++)
            if ((int)lround((1 - chart_place(ticks[i], r.y_low, r.y_high, c->y_log)) * (4 * ROWS - 1)) / 4 == row)
                chart_number(ticks[i], number);
        fprintf(to, "%*s%s", MARGIN, number, style->utf8 ? (*number ? "┤" : "│") : "|");
        for (int i = 0; i < p.columns; i++)
            cell_put(to, &p.cells[row][i], style);
        fputc('\n', to);
    }
    x_axis_put(to, c, &r, p.columns, style->utf8);
    legend_put(to, c, style, p.braille);
}

/* ---- bars ---- */

/* Eighths of a column where there are blocks. */
static void bar_put(FILE *to, double columns, size_t series, bool stacked, const chart_text_style *style)
{
    static const char *const eighths[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
    static const char *const shades[] = { "█", "▓", "▒", "░" };
    enum { SHADES = sizeof shades / sizeof *shades, COLOURS = sizeof colours / sizeof *colours };
    const size_t shade = !stacked ? 0 : style->colour ? series / COLOURS : series; /* then marks: each has its own */
    const int eight = (int)lround(columns * (style->utf8 && !stacked ? 8 : 1)) * (style->utf8 && !stacked ? 1 : 8);
    colour_begin(to, style, series);
    for (int i = 0; i < eight / 8; i++)
        fputs(!style->utf8     ? (char[]){ stacked ? marks[series % (sizeof marks - 1)] : '=', 0 }
              : shade < SHADES ? shades[shade]
                               : (char[]){ marks[shade % (sizeof marks - 1)], 0 },
              to);
    fputs(style->utf8 ? eighths[eight % 8] : "", to);
    colour_end(to, style);
}

/* The end of a name, of at most so many bytes: what tells files and devices apart. */
static const char *end_of(const char *name, size_t most)
{
    const char *at = name + (strlen(name) > most ? strlen(name) - most : 0);
    while (((unsigned char)*at & 0xc0) == 0x80)
        at++;
    return at;
}

static void bars_put(FILE *to, const chart *c, const chart_text_style *style)
{
    const chart_range r = chart_range_of(c);
    const bool stacked = c->kind == CHART_STACKED;
    const int most = style->width / 2;
    int names = 0;
    char number[16];
    for (size_t k = 0; k < c->category_count; k++)
        names = (int)strlen(c->categories[k]) > names ? (int)strlen(c->categories[k]) : names;
    names = names < most ? names : most;
    int owners = 0; /* whose bar it is, where there are several */
    for (size_t s = 0; s < c->series_count && !stacked && c->series_count > 1; s++)
        owners = (int)strlen(c->series[s].name) + 2 > owners ? (int)strlen(c->series[s].name) + 2 : owners;
    const int behind = style->width - names - 10; /* the name: the bar, its number, the owner */
    owners = owners < behind - BAR_LEAST ? owners : behind - BAR_LEAST;
    const int columns = behind - owners;
    for (size_t k = 0; k < c->category_count; k++) {
        const char *name = c->categories[k];
        double sum = 0, drawn = 0;
        for (size_t s = 0; s < c->series_count; s++) {
            for (size_t i = 0; i < c->series[s].count; i++) {
                const double v = c->series[s].y[i];
                if ((size_t)c->series[s].x[i] != k)
                    continue;
                if (!stacked || !sum)
                    fprintf(to, "%*.*s ", names, names, name);
                sum += v;
                const double end = stacked ? round(sum / r.y_high * columns) : v / r.y_high * columns;
                bar_put(to, end - drawn, s, stacked, style);
                drawn = stacked ? end : 0;
                chart_number(v, number);
                if (!stacked)
                    fprintf(to, " %s%s%s\n", number, owners ? "  " : "",
                            owners ? end_of(c->series[s].name, (size_t)owners - 2) : "");
                name = "";
            }
        }
        chart_number(sum, number);
        if (stacked && sum > 0)
            fprintf(to, " %s\n", number);
    }
    fprintf(to, "%*s %s\n", names, "", c->x_label);
    for (size_t s = 0; s < c->series_count && stacked; s++) {
        fprintf(to, "%*s ", names, "");
        bar_put(to, 2, s, stacked, style);
        fprintf(to, " %s\n", c->series[s].name);
    }
}

void figure_text(const figure *f, chart_text_style style, FILE *to)
{
    style.width = style.width < WIDTH_LEAST ? WIDTH_LEAST : style.width > WIDTH_MOST ? WIDTH_MOST : style.width;
    for (size_t i = 0; i < f->count; i++) {
        fprintf(to, "%s%s\n\n", i ? "\n" : "", f->charts[i].title);
        if (f->charts[i].kind == CHART_LINES)
            lines_put(to, &f->charts[i], &style);
        else
            bars_put(to, &f->charts[i], &style);
    }
}
