/* scaler.c - the loss scale: halved once for what was too large, doubled after enough good steps, the same
 * whoever was faster. */
#include <stdlib.h>

#include "nn/train/scaler.h"
#include "scratch.h"
#include "tests/suite.h"

enum { DEPTH = 2 };

static cek__scaler made(double first, uint32_t interval)
{
    cek__scaler s;

    assert_ok(cek__scaler_create(first, interval, DEPTH, &s));
    return s;
}

/* One step after the other, each heard of at once. Returns its factor. */
static double step(cek__scaler *s, bool skipped)
{
    double factor = cek__scaler_next(s);

    cek__scaler_submit(s);
    cek__scaler_hear(s, s->submitted, skipped);
    return factor;
}

START_TEST(begins_at_two_to_the_16_and_doubles_after_2000)
{
    cek__scaler s = made(0, 0);

    for (int i = 0; i < 2000 + DEPTH; i++)
        ck_assert_double_eq(step(&s, false), 65536);
    for (int i = 0; i < 2000 + DEPTH; i++)
        ck_assert_double_eq(step(&s, false), 131072);
    ck_assert_double_eq(step(&s, false), 262144);
}
END_TEST

/* Steps that were under way with it when it was given up halve nothing more. */
START_TEST(what_is_too_large_is_halved_once)
{
    cek__scaler s = made(64, 5);

    for (int i = 0; i <= DEPTH; i++)
        ck_assert_double_eq(step(&s, true), 64);
    for (int i = 0; i <= DEPTH; i++)
        ck_assert_double_eq(step(&s, i == 0), 32);
    ck_assert_uint_eq(cek__scaler_skipped(&s), DEPTH + 2);
    for (int i = 0; i < 5 + DEPTH; i++)
        ck_assert_double_eq(step(&s, false), 16);
    ck_assert_double_eq(step(&s, false), 32);
    ck_assert_uint_eq(cek__scaler_skipped(&s), DEPTH + 2);
}
END_TEST

/* One skipped step begins the count of good ones anew. */
START_TEST(good_steps_are_counted_in_a_row)
{
    cek__scaler s = made(4, 3);

    (void)step(&s, false);
    (void)step(&s, false);
    (void)step(&s, true);
    (void)step(&s, false);
    ck_assert_double_eq(step(&s, false), 4);
    ck_assert_double_eq(step(&s, false), 2);
}
END_TEST

/* Verdicts come late and in any order, but not later than the step that needs them. */
START_TEST(the_factor_does_not_depend_on_who_was_faster)
{
    cek__scaler early = made(1024, 4), late = made(1024, 4);
    uint32_t state = 1;
    bool skipped[500];

    for (int i = 0; i < 500; i++) {
        state = state * 1664525u + 1013904223u;
        skipped[i] = state >> 28 == 0;
        ck_assert_double_eq(step(&early, skipped[i]), cek__scaler_next(&late));
        ck_assert_double_eq(cek__scaler_given(&early, i + 1), cek__scaler_next(&late));
        cek__scaler_submit(&late);
        if (i >= DEPTH)
            cek__scaler_hear(&late, i + 1 - DEPTH, skipped[i - DEPTH]);
    }
}
END_TEST

START_TEST(factors_out_of_range_are_refused)
{
    static const double wrong[] = { -1, INFINITY, NAN, 1e30, 1e-30 };
    cek__scaler s;

    ck_assert_uint_eq(cek__scaler_create(wrong[_i], 0, DEPTH, &s), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "a loss scale of"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scaler");
    TCase *tcase = tcase_create("scaler");

    tcase_add_test(tcase, begins_at_two_to_the_16_and_doubles_after_2000);
    tcase_add_test(tcase, what_is_too_large_is_halved_once);
    tcase_add_test(tcase, good_steps_are_counted_in_a_row);
    tcase_add_test(tcase, the_factor_does_not_depend_on_who_was_faster);
    tcase_add_loop_test(tcase, factors_out_of_range_are_refused, 0, 5);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
