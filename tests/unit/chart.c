/* chart.c - charts of cekernels-bench: axes, and pictures made of text. */
#include "bench/chart/chart.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/chart/text.h"
#include "bench/chart/training.h"
#include "tests/suite.h"

START_TEST(ticks_are_round_and_within)
{
    static const double ranges[][2] = { { 0, 1 },      { 0, 0.97 },    { 12, 13 }, { -5, 5 },
                                        { 0, 123456 }, { 1e-7, 3e-7 }, { 0.9, 1 } };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        double ticks[CHART_TICKS];
        const size_t count = chart_ticks(ranges[i][0], ranges[i][1], false, ticks);
        ck_assert_msg(count >= 4 && count <= 12, "%zu ticks", count);
        for (size_t k = 0; k < count; k++) {
            ck_assert(ticks[k] >= ranges[i][0] - 1e-9 && ticks[k] <= ranges[i][1] * (1 + 1e-9) + 1e-12);
            const double step = ticks[1] - ticks[0], digit = step / pow(10, floor(log10(step) + 1e-9));
            ck_assert_msg(fabs(digit - 1) < 1e-6 || fabs(digit - 2) < 1e-6 || fabs(digit - 5) < 1e-6, "steps of %g",
                          step);
        }
    }
}
END_TEST

START_TEST(logarithmic_axes_go_by_powers_of_ten)
{
    double ticks[CHART_TICKS];
    ck_assert_uint_eq(chart_ticks(0.01, 1000, true, ticks), 6);
    ck_assert_double_eq_tol(ticks[5], 1000, 1e-6);
    ck_assert_uint_le(chart_ticks(1e-12, 1e12, true, ticks), 9);
    ck_assert_double_eq_tol(chart_place(10, 1, 100, true), 0.5, 1e-12);
}
END_TEST

static chart *curve(figure *f, size_t points, bool logarithmic)
{
    chart *c = figure_add(f, CHART_LINES, "Loss", "step", "loss");
    ck_assert(c != NULL);
    c->y_log = logarithmic;
    for (size_t i = 0; i < points; i++)
        chart_point(f, chart_series_of(f, c, "training"), (double)i, exp(-(double)i / 30), NULL);
    return c;
}

START_TEST(every_number_lies_between_the_ends)
{
    figure f = { .count = 0 };
    chart *c = curve(&f, 100, false);
    chart_point(&f, chart_series_of(&f, c, "test"), 50, 2.5, NULL);
    chart_point(&f, chart_series_of(&f, c, "test"), NAN, 9, NULL);
    chart_point(&f, chart_series_of(&f, c, "test"), 50, INFINITY, NULL);
    chart_point(&f, chart_series_of(&f, c, "test"), 50, 1e308, NULL); /* from one to the other there is no number */
    chart_point(&f, chart_series_of(&f, c, "test"), 50, -1e308, NULL);
    ck_assert_double_eq_tol(chart_place(1, 1e-200, 1e200, true), 0.5, 1e-12);
    const chart_range r = chart_range_of(c);
    ck_assert_double_eq(r.x_low, 0);
    ck_assert_double_eq(r.x_high, 99);
    ck_assert(r.y_low <= 0.037 && r.y_low >= 0 && r.y_high >= 2.5 && r.y_high <= 3);
    c->y_log = true;
    chart_point(&f, chart_series_of(&f, c, "test"), 51, 0, NULL); /* has no place on such an axis */
    ck_assert_double_eq_tol(chart_range_of(c).y_low, 0.01, 1e-12);
    ck_assert_double_eq_tol(chart_range_of(c).y_high, 10, 1e-9);
    figure_free(&f);
    ck_assert_uint_eq(f.count, 0);
}
END_TEST

START_TEST(one_point_and_none_have_axes_too)
{
    figure least_of = { .count = 0 };
    for (size_t points = 0; points < 2; points++) {
        for (int logarithmic = 0; logarithmic < 2; logarithmic++) {
            figure f = { .count = 0 };
            const chart_range r = chart_range_of(curve(&f, points, logarithmic));
            ck_assert(isfinite(r.x_low) && r.x_high > r.x_low && isfinite(r.y_low) && r.y_high > r.y_low);
            figure_free(&f);
        }
    }
    chart *least = figure_add(&least_of, CHART_LINES, "", "", "");
    chart_point(&least_of, chart_series_of(&least_of, least, "s"), -9e18, 5e-324,
                NULL); /* no part of which is a number */
    const chart_range around = chart_range_of(least);
    ck_assert(around.y_low < 0 && around.y_high > 0.1 && around.x_high > around.x_low);
    figure_free(&least_of);
}
END_TEST

static int columns_of(const char *line)
{
    int columns = 0;
    for (; *line; line++) {
        if (*line == '\033')
            line += strcspn(line, "m");
        else
            columns += (*line & 0xc0) != 0x80;
    }
    return columns;
}

/* The text of a figure; the caller's. */
static char *text_of(const figure *f, chart_text_style style)
{
    char *text;
    size_t length;
    FILE *to = open_memstream(&text, &length);
    figure_text(f, style, to);
    ck_assert_int_eq(fclose(to), 0);
    return text;
}

static void bars(figure *f, chart_kind kind)
{
    chart *c = figure_add(f, kind, "Products", "GFLOP/s", "");
    for (size_t s = 0; s < 3; s++)
        for (size_t i = 0; i < 4; i++) {
            char name[64];
            snprintf(name, sizeof name, "%zux1024x25088 with a name that is rather long f32", i);
            const size_t category = chart_category(f, c, name);
            snprintf(name, sizeof name, "device:%zu", s);
            chart_point(f, chart_series_of(f, c, name), (double)category, (double)(100 * s + 10 * i + 1), NULL);
        }
}

START_TEST(no_line_of_text_is_wider_than_it_may_be)
{
    for (int width = 40; width <= 160; width += 7) {
        for (int style = 0; style < 4; style++) {
            figure f = { .count = 0 };
            curve(&f, 500, false);
            bars(&f, CHART_BARS);
            bars(&f, CHART_STACKED);
            chart_series *dots = chart_series_of(&f, curve(&f, 50, true), "dots");
            dots->dots = true;
            chart_point(&f, dots, 3, 0.5, "an operation with a long description of its problem");
            char *text = text_of(&f, (chart_text_style){ width, style & 1, style & 2 }), *rest = text;
            for (char *line; (line = strsep(&rest, "\n"));)
                ck_assert_msg(columns_of(line) <= width, "%d columns of %d: %s", columns_of(line), width, line);
            free(text);
            figure_free(&f);
        }
    }
}
END_TEST

START_TEST(ascii_is_ascii_and_without_escapes)
{
    figure f = { .count = 0 };
    curve(&f, 500, false);
    bars(&f, CHART_BARS);
    bars(&f, CHART_STACKED);
    char *text = text_of(&f, (chart_text_style){ 80, false, false });
    for (const char *c = text; *c; c++)
        ck_assert(*c == '\n' || (*c >= ' ' && *c <= '~'));
    free(text);
    figure_free(&f);
}
END_TEST

START_TEST(a_curve_that_falls_falls_on_paper)
{
    figure f = { .count = 0 };
    curve(&f, 200, false);
    char *text = text_of(&f, (chart_text_style){ 60, false, false }), *rest = text;
    int last = -1, rows = 0;
    for (char *line; (line = strsep(&rest, "\n"));) {
        const char *bar = strchr(line, '|'), *mark = bar ? strrchr(line, '*') : NULL;
        if (!mark)
            continue;
        ck_assert_int_ge((int)(mark - line), last);
        last = (int)(mark - line);
        rows++;
    }
    ck_assert_int_ge(rows, 10);
    free(text);
    figure_free(&f);
}
END_TEST

START_TEST(bars_are_as_long_as_their_numbers)
{
    figure f = { .count = 0 };
    chart *c = figure_add(&f, CHART_BARS, "x", "y", "");
    for (int i = 0; i < 3; i++)
        chart_point(&f, chart_series_of(&f, c, "one"), (double)chart_category(&f, c, (char[]){ (char)('a' + i), 0 }),
                    10 << i, NULL);
    char *text = text_of(&f, (chart_text_style){ 80, false, false }), *rest = text;
    int lengths[3] = { 0 }, at = 0;
    for (char *line; (line = strsep(&rest, "\n"));)
        if (strchr(line, '=') && at < 3)
            for (const char *p = line; *p; p++)
                lengths[at] += *p == '=', at += !p[1];
    ck_assert_int_eq(at, 3);
    ck_assert_int_le(abs(lengths[1] - 2 * lengths[0]), 1);
    ck_assert_int_le(abs(lengths[2] - 4 * lengths[0]), 3);
    free(text);
    figure_free(&f);
}
END_TEST

START_TEST(each_part_of_a_stacked_bar_is_told_from_the_others)
{
    for (int style = 0; style < 4; style++) {
        figure f = { .count = 0 };
        chart *c = figure_add(&f, CHART_STACKED, "x", "y", "");
        char shown[CHART_SERIES_MOST][64], name[32];
        for (int i = 0; i < CHART_SERIES_MOST; i++) {
            snprintf(name, sizeof name, "name %02d", i);
            chart_point(&f, chart_series_of(&f, c, name), (double)chart_category(&f, c, "a"), 1, NULL);
        }
        char *text = text_of(&f, (chart_text_style){ 80, style & 1, style & 2 }), *rest = text;
        int count = 0;
        for (char *line; (line = strsep(&rest, "\n"));) {
            char *at = strstr(line, "name ");
            if (!at)
                continue;
            ck_assert_int_lt(count, CHART_SERIES_MOST);
            snprintf(shown[count], sizeof *shown, "%.*s", (int)(at - line), line);
            for (int k = 0; k < count; k++)
                ck_assert_str_ne(shown[k], shown[count]);
            count++;
        }
        ck_assert_int_eq(count, CHART_SERIES_MOST);
        free(text);
        figure_free(&f);
    }
}
END_TEST

START_TEST(series_beyond_the_most_are_told_of)
{
    figure f = { .count = 0 };
    chart *c = figure_add(&f, CHART_LINES, "x", "x", "y");
    for (int i = 0; i < CHART_SERIES_MOST + 2; i++)
        chart_point(&f, chart_series_of(&f, c, (char[]){ (char)('a' + i), 0 }), i, i, NULL);
    ck_assert_uint_eq(c->series_count, CHART_SERIES_MOST);
    ck_assert_uint_eq(f.lost, 2);
    figure_free(&f);
}
END_TEST

/* The loss of step s is s: the mean of the steps of a point lies (every - 1) / 2 before its last one. */
START_TEST(a_long_training_has_few_points_which_are_means_of_its_steps)
{
    static chart_training t; /* large */
    figure f = { .count = 0 };
    const int steps = 10 * CHART_TRAINING_POINTS + 7;
    for (int s = 1; s <= steps; s++)
        chart_training_step(&t, s, s % 2);
    chart_training_test(&t, 5, 0.25, 0.75);
    chart_training_add(&t, "it", &f);
    ck_assert_uint_eq(f.count, 2);
    for (size_t which = 0; which < 2; which++) {
        const chart_series *points = &f.charts[which].series[0], *test = &f.charts[which].series[1];
        ck_assert_uint_ge(points->count, CHART_TRAINING_POINTS / 2);
        ck_assert_uint_le(points->count, CHART_TRAINING_POINTS);
        const double every = points->x[0];
        ck_assert_double_ge(points->x[points->count - 1], steps - every + 1);
        for (size_t i = 0; i < points->count; i++) {
            ck_assert_double_eq(points->x[i], (double)(i + 1) * every);
            ck_assert_double_eq(points->y[i], which ? 0.5 : points->x[i] - (every - 1) / 2);
        }
        ck_assert_uint_eq(test->count, 1);
        ck_assert_double_eq(test->x[0], 5);
        ck_assert_double_eq(test->y[0], which ? 0.75 : 0.25);
    }
    figure_free(&f);
    chart_training_free(&t);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("chart");
    TCase *c = tcase_create("chart");
    tcase_add_test(c, ticks_are_round_and_within);
    tcase_add_test(c, logarithmic_axes_go_by_powers_of_ten);
    tcase_add_test(c, every_number_lies_between_the_ends);
    tcase_add_test(c, one_point_and_none_have_axes_too);
    tcase_add_test(c, no_line_of_text_is_wider_than_it_may_be);
    tcase_add_test(c, ascii_is_ascii_and_without_escapes);
    tcase_add_test(c, a_curve_that_falls_falls_on_paper);
    tcase_add_test(c, bars_are_as_long_as_their_numbers);
    tcase_add_test(c, each_part_of_a_stacked_bar_is_told_from_the_others);
    tcase_add_test(c, series_beyond_the_most_are_told_of);
    tcase_add_test(c, a_long_training_has_few_points_which_are_means_of_its_steps);
    suite_add_tcase(s, c);
    return suite_run(s);
}
