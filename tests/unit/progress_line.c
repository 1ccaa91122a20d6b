/* progress_line.c - the progress line of cekernels-bench: what it shows in so many columns, and how much time it
 * says is left. */
#include "bench/progress_line.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/suite.h"

static const progress_view training = {
    .label = "epoch 2/3",
    .facts = { "loss 0.0543 ", "accuracy 0.9812", " 13593 samples/s", "cpu:0  75%  212 MiB", "cuda:0  25% 1012 MiB" },
    .done = 510,
    .total = 939,
    .elapsed = 12.4,
    .left = 9.6,
};

/* Columns that it takes: characters, without escapes. */
static int columns_of(const char *text)
{
    int columns = 0;
    for (; *text; text++) {
        if (*text == '\033')
            text += strcspn(text, "m");
        else
            columns += (*text & 0xc0) != 0x80;
    }
    return columns;
}

static const char *layout(const progress_view *view, int width, bool utf8, bool colour)
{
    static char text[PROGRESS_LINE_MAX];
    const size_t length = progress_layout(view, (progress_style){ width, utf8, colour }, text);
    ck_assert_uint_eq(length, strlen(text));
    return text;
}

START_TEST(no_line_is_wider_than_it_may_be)
{
    for (int width = 1; width <= 250; width++)
        for (int style = 0; style < 4; style++)
            ck_assert_int_le(columns_of(layout(&training, width, style & 1, style & 2)), width);
}
END_TEST

START_TEST(what_fits_is_shown_in_order_of_importance)
{
    static const struct {
        int width;
        const char *text;
    } cases[] = {
        { 20, "epoch 2/3   54%" },
        { 24, "epoch 2/3   54%  510/939" },
        { 40, "epoch 2/3   54%  510/939   0:10 left" },
        { 55, "epoch 2/3   54%  510/939   0:10 left  loss 0.0543 " },
        { 79, "epoch 2/3  =====.....   54%  510/939   0:10 left  loss 0.0543   accuracy 0.9812" },
        { 120, "epoch 2/3  ======......   54%  510/939   0:10 left  loss 0.0543   accuracy 0.9812   13593 samples/s  "
               "cpu:0  75%  212 MiB" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_str_eq(layout(&training, cases[i].width, false, false), cases[i].text);
}
END_TEST

START_TEST(nothing_moves_but_digits)
{
    static const char *const words[] = { "left", "loss", "accuracy", "MiB" };
    char first[PROGRESS_LINE_MAX], later[PROGRESS_LINE_MAX];
    progress_view view = training;
    for (int width = 20; width <= 200; width++) {
        view.done = 9;
        view.left = 599;
        strcpy(first, layout(&view, width, false, false));
        view.done = 900;
        view.left = 8;
        strcpy(later, layout(&view, width, false, false));
        ck_assert_uint_eq(strlen(first), strlen(later));
        ck_assert(!strchr(first, '/') || strchr(first, '/') - first == strchr(later, '/') - later);
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            ck_assert_msg(!strstr(first, words[i]) ||
                              strstr(first, words[i]) - first == strstr(later, words[i]) - later,
                          "\"%s\" moves: [%s] [%s]", words[i], first, later);
    }
}
END_TEST

START_TEST(the_bar_is_as_full_as_the_work_is_done)
{
    progress_view view = { .label = "x", .total = 1000, .left = -1 };
    for (view.done = 0; view.done <= 1000; view.done += 125) {
        const char *text = layout(&view, 60, false, false);
        int full = 0, empty = 0;
        for (; *text; text++)
            full += *text == '=', empty += *text == '.';
        ck_assert_int_eq(full + empty, 30);
        ck_assert_int_eq(full, (int)(30 * view.done / 1000));
    }
    view.done = 1200; /* more than was said */
    ck_assert(strstr(layout(&view, 60, false, false), "100%") != NULL);
    ck_assert(strchr(layout(&view, 60, false, false), '.') == NULL);
}
END_TEST

START_TEST(colours_and_characters_take_no_columns)
{
    for (int width = 20; width <= 200; width++) {
        const int plain = columns_of(layout(&training, width, false, false));
        ck_assert_int_eq(columns_of(layout(&training, width, true, false)), plain);
        ck_assert_int_eq(columns_of(layout(&training, width, true, true)), plain);
        ck_assert_int_eq(columns_of(layout(&training, width, false, true)), plain);
        ck_assert(strchr(layout(&training, width, true, false), '\033') == NULL);
    }
    ck_assert(strchr(layout(&training, 100, true, true), '\033') != NULL);
}
END_TEST

START_TEST(what_nobody_knows_is_not_shown)
{
    progress_view view = { .label = "reading table.csv", .elapsed = 75, .left = -1 };
    ck_assert_str_eq(layout(&view, 79, true, false), "reading table.csv   1:15");
    view.done = 384;
    ck_assert_str_eq(layout(&view, 79, true, false), "reading table.csv  384   1:15");
    view.total = 400;
    ck_assert(strstr(layout(&view, 79, true, false), "left") == NULL);
    ck_assert(strstr(layout(&view, 79, true, false), "1:15") == NULL);
}
END_TEST

START_TEST(a_plain_line_says_all_of_it)
{
    ck_assert_str_eq(layout(&training, 0, true, true),
                     "epoch 2/3, 510/939 (54%), 0:10 left, loss 0.0543, accuracy 0.9812, 13593 samples/s, "
                     "cpu:0 75% 212 MiB, cuda:0 25% 1012 MiB");
}
END_TEST

START_TEST(times_are_told_as_people_do)
{
    static const struct {
        double seconds;
        const char *text;
    } cases[] = { { 0, "0:00" },           { 7.4, "0:07" },       { 59.6, "1:00" },     { 3599, "59:59" },
                  { 3600, "1:00:00" },     { 90061, "25:01:01" }, { 172800, "2 days" }, { 86400 * 99.0, "99 days" },
                  { 1e18, "over 99 days" } };
    char text[24];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        progress_time(cases[i].seconds, text);
        ck_assert_str_eq(text, cases[i].text);
    }
    progress_time(NAN, text);
    ck_assert_str_eq(text, "over 99 days");
}
END_TEST

/* Steps of 10 ms, each a half longer or shorter by chance, after a first one that took 3 s. */
START_TEST(time_left_is_right_within_a_tenth_and_steady)
{
    enum { STEPS = 6000 };
    progress_rate rate = { .begun = false };
    double now = 3, worst = 0, last = -1, jump = 0;
    unsigned random = 1;
    const double truth = STEPS * 0.010;
    progress_rate_add(&rate, now, 1);
    for (int i = 2; i <= STEPS; i++) {
        random = random * 1664525u + 1013904223u;
        now += 0.005 + 0.010 * (random >> 8) / (1 << 24);
        progress_rate_add(&rate, now, i);
        const double left = progress_rate_left(&rate, now, STEPS), rest = truth - i * 0.010;
        if (i > 300 && rest > 1)
            worst = fmax(worst, fabs(left - rest) / rest);
        if (i > 300 && last >= 0)
            jump = fmax(jump, fabs(left - last));
        last = left;
    }
    ck_assert_msg(worst < 0.1, "wrong by %g", worst);
    ck_assert_msg(jump < 0.5, "jumps by %g s", jump);
}
END_TEST

START_TEST(time_left_follows_when_the_speed_changes)
{
    progress_rate rate = { .begun = false };
    double now = 0;
    int done = 0;
    for (; done < 1000; done++, now += 0.01)
        progress_rate_add(&rate, now, done);
    for (; done < 6000; done++, now += 0.02)
        progress_rate_add(&rate, now, done);
    const double left = progress_rate_left(&rate, now, 7000);
    ck_assert_msg(fabs(left - 20) < 2, "%g s left, not 20", left);
}
END_TEST

START_TEST(time_left_goes_down_between_two_steps)
{
    progress_rate rate = { .begun = false };
    ck_assert(progress_rate_left(&rate, 5, 10) < 0);
    progress_rate_add(&rate, 0, 1);
    ck_assert(progress_rate_left(&rate, 5, 10) < 0); /* one alone tells nothing */
    progress_rate_add(&rate, 10, 2);
    ck_assert_double_eq_tol(progress_rate_left(&rate, 10, 10), 80, 1e-9);
    ck_assert_double_eq_tol(progress_rate_left(&rate, 14, 10), 76, 1e-9);
    ck_assert_double_eq_tol(progress_rate_left(&rate, 500, 10), 0, 1e-9);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("progress_line");
    TCase *c = tcase_create("progress_line");
    tcase_add_test(c, no_line_is_wider_than_it_may_be);
    tcase_add_test(c, what_fits_is_shown_in_order_of_importance);
    tcase_add_test(c, nothing_moves_but_digits);
    tcase_add_test(c, the_bar_is_as_full_as_the_work_is_done);
    tcase_add_test(c, colours_and_characters_take_no_columns);
    tcase_add_test(c, what_nobody_knows_is_not_shown);
    tcase_add_test(c, a_plain_line_says_all_of_it);
    tcase_add_test(c, times_are_told_as_people_do);
    tcase_add_test(c, time_left_is_right_within_a_tenth_and_steady);
    tcase_add_test(c, time_left_follows_when_the_speed_changes);
    tcase_add_test(c, time_left_goes_down_between_two_steps);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
