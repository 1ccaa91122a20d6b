/* cpu_sharing.c - when brief runs are shared with helpers: what takes how long is the test's own. */
#include "backends/cpu/sharing.h"

#include "tests/suite.h"

/* What a unit of work takes. */
typedef struct costs {
    int64_t shared, alone;
} costs;

enum { WORK = 20000, SMALL = 5000 };

/* One run; returns whether it was shared. */
static bool one_run(cpu_sharing *s, const costs *c, double work)
{
    const cpu_sharing_way way = cek__sharing_next(s, work);
    if (way.timed)
        cek__sharing_took(s, &way, (int64_t)((double)(way.shared ? c->shared : c->alone) * work));
    return way.shared;
}

/* How many of n runs are shared. */
static int runs(cpu_sharing *s, const costs *c, double work, int n)
{
    int shared = 0;
    for (int i = 0; i < n; i++)
        shared += one_run(s, c, work);
    return shared;
}

START_TEST(what_is_faster_shared_is_shared_but_for_trials)
{
    cpu_sharing s = { 0 };
    const costs c = { .shared = 60, .alone = 100 };
    for (int period = 0; period < 3; period++)
        ck_assert_int_eq(runs(&s, &c, WORK, SHARING_PERIOD), SHARING_PERIOD - SHARING_TRIAL);
}
END_TEST

START_TEST(what_is_slower_shared_is_done_alone_but_for_trials)
{
    cpu_sharing s = { 0 };
    const costs c = { .shared = 150, .alone = 100 };
    ck_assert_int_le(runs(&s, &c, WORK, SHARING_PERIOD), SHARING_EVERY);
    for (int period = 0; period < 3; period++)
        ck_assert_int_eq(runs(&s, &c, WORK, SHARING_PERIOD), SHARING_TRIAL);
}
END_TEST

START_TEST(little_slower_is_found_by_a_trial)
{
    cpu_sharing s = { 0 };
    const costs c = { .shared = 110, .alone = 100 };
    runs(&s, &c, WORK, 2 * SHARING_PERIOD);
    ck_assert_int_eq(runs(&s, &c, WORK, SHARING_PERIOD), SHARING_TRIAL);
}
END_TEST

START_TEST(what_became_faster_is_found_by_the_next_trial)
{
    cpu_sharing s = { 0 };
    const costs slow = { .shared = 150, .alone = 100 }, fast = { .shared = 60, .alone = 100 };
    runs(&s, &slow, WORK, 3 * SHARING_PERIOD);
    ck_assert_int_eq(runs(&s, &fast, WORK, SHARING_PERIOD), SHARING_PERIOD);
}
END_TEST

START_TEST(a_stall_ends_sharing_and_the_next_trial_brings_it_back)
{
    cpu_sharing s = { 0 };
    const costs c = { .shared = 60, .alone = 100 }, stall = { .shared = 60000, .alone = 100 };
    runs(&s, &c, WORK, SHARING_PERIOD + SHARING_TRIAL);
    runs(&s, &stall, WORK, SHARING_EVERY);
    ck_assert_int_eq(runs(&s, &c, WORK, SHARING_PERIOD - SHARING_TRIAL - SHARING_EVERY), 0);
    ck_assert_int_eq(runs(&s, &c, WORK, SHARING_PERIOD), SHARING_PERIOD);
}
END_TEST

START_TEST(runs_of_another_size_are_judged_apart)
{
    cpu_sharing s = { 0 };
    const costs large = { .shared = 60, .alone = 100 }, small = { .shared = 150, .alone = 100 };
    int by_large = 0, by_small = 0;
    runs(&s, &small, SMALL, SHARING_PERIOD);
    for (int i = 0; i < SHARING_PERIOD; i++) {
        by_large += one_run(&s, &large, WORK);
        by_small += one_run(&s, &small, SMALL);
    }
    ck_assert_int_eq(by_large, SHARING_PERIOD - SHARING_TRIAL);
    ck_assert_int_eq(by_small, SHARING_TRIAL);
}
END_TEST

/* As where helpers sleep: runs that were to be shared are not. */
START_TEST(a_trial_that_did_not_happen_decides_nothing)
{
    cpu_sharing s = { 0 };
    const costs c = { .shared = 150, .alone = 100 };
    runs(&s, &c, WORK, SHARING_PERIOD);
    for (int i = 0; i < SHARING_TRIAL; i++) {
        const cpu_sharing_way way = cek__sharing_next(&s, WORK);
        ck_assert(way.shared);
        if (way.timed)
            cek__sharing_took(&s, &way, -1);
    }
    ck_assert_int_eq(runs(&s, &c, WORK, SHARING_PERIOD - SHARING_TRIAL), 0);
}
END_TEST

START_TEST(work_of_any_size_has_its_place)
{
    cpu_sharing s = { 0 };
    static const double works[] = { 1e-30, .5, 1, 1e9, 1e30, 1e300 };
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        const cpu_sharing_way way = cek__sharing_next(&s, works[i]);
        ck_assert_int_ge(way.size, 0);
        ck_assert_int_lt(way.size, SHARING_SIZES);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cpu_sharing");
    TCase *tests = tcase_create("sharing");
    tcase_add_test(tests, what_is_faster_shared_is_shared_but_for_trials);
    tcase_add_test(tests, what_is_slower_shared_is_done_alone_but_for_trials);
    tcase_add_test(tests, little_slower_is_found_by_a_trial);
    tcase_add_test(tests, what_became_faster_is_found_by_the_next_trial);
    tcase_add_test(tests, a_stall_ends_sharing_and_the_next_trial_brings_it_back);
    tcase_add_test(tests, runs_of_another_size_are_judged_apart);
    tcase_add_test(tests, a_trial_that_did_not_happen_decides_nothing);
    tcase_add_test(tests, work_of_any_size_has_its_place);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
