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

/* Of a period: all but those that try to be alone; none but those that try to be shared. */
enum { MOST = SHARING_PERIOD - SHARING_TRIAL, FEW = SHARING_TRIAL };

START_TEST(what_is_faster_shared_is_shared_but_for_trials)
{
    cpu_sharing s = { 0 };
    const costs c = { .shared = 60, .alone = 100 };
    for (int period = 0; period < 3; period++)
        ck_assert_int_eq(runs(&s, &c, WORK, SHARING_PERIOD), MOST);
}
END_TEST

START_TEST(what_is_not_is_done_alone_but_for_trials)
{
    for (int shared = 95; shared < 1000; shared *= 3) {
        cpu_sharing s = { 0 };
        const costs c = { .shared = shared, .alone = 100 };
        for (int period = 0; period < 3; period++)
            ck_assert_int_eq(runs(&s, &c, WORK, SHARING_PERIOD), FEW);
    }
}
END_TEST

START_TEST(a_change_is_found_by_the_next_trial)
{
    cpu_sharing s = { 0 };
    const costs slow = { .shared = 150, .alone = 100 }, fast = { .shared = 60, .alone = 100 };
    for (int times = 0; times < 3; times++) {
        ck_assert_int_eq(runs(&s, &slow, WORK, SHARING_PERIOD), FEW);
        ck_assert_int_eq(runs(&s, &fast, WORK, SHARING_PERIOD), MOST);
    }
}
END_TEST

START_TEST(single_runs_that_take_long_decide_nothing)
{
    for (int lengthened = 0; lengthened < 2; lengthened++) {
        cpu_sharing s = { 0 };
        const costs c = { .shared = lengthened ? 60 : 150, .alone = 100 };
        for (int i = 0, timed = 0; i < 2 * SHARING_TRIAL; i++) {
            const cpu_sharing_way way = cek__sharing_next(&s, WORK);
            timed += way.timed;
            if (way.timed)
                cek__sharing_took(&s, &way,
                                  (way.shared ? c.shared : c.alone) * WORK *
                                      (way.shared == lengthened && timed % 3 == 0 ? 1000 : 1));
        }
        ck_assert_int_eq(runs(&s, &c, WORK, SHARING_PERIOD - 2 * SHARING_TRIAL),
                         lengthened ? SHARING_PERIOD - 2 * SHARING_TRIAL : 0);
    }
}
END_TEST

START_TEST(a_helper_that_does_not_run_ends_sharing_until_the_next_trial)
{
    cpu_sharing s = { 0 };
    const costs c = { .shared = 60, .alone = 100 };
    runs(&s, &c, WORK, 3 * SHARING_TRIAL);
    const cpu_sharing_way way = cek__sharing_next(&s, WORK);
    ck_assert(way.shared);
    cek__sharing_stalled(&s, &way);
    ck_assert_int_eq(runs(&s, &c, WORK, SHARING_PERIOD - 3 * SHARING_TRIAL - 1), 0);
    ck_assert_int_eq(runs(&s, &c, WORK, SHARING_PERIOD), MOST);
}
END_TEST

START_TEST(runs_of_another_size_are_judged_apart)
{
    cpu_sharing s = { 0 };
    const costs large = { .shared = 60, .alone = 100 }, small = { .shared = 150, .alone = 100 };
    int by_large = 0, by_small = 0;
    for (int i = 0; i < SHARING_PERIOD; i++) {
        by_large += one_run(&s, &large, WORK);
        by_small += one_run(&s, &small, SMALL);
    }
    ck_assert_int_eq(by_large, MOST);
    ck_assert_int_eq(by_small, FEW);
}
END_TEST

/* As where helpers sleep, or another caller has the pool: some runs of a trial are not done as they should be. */
START_TEST(a_trial_that_did_not_happen_decides_nothing)
{
    const int rest = SHARING_PERIOD - 2 * SHARING_TRIAL;
    for (int kind = 0; kind < 4; kind++) {
        const bool alone = kind & 1, missing = kind & 2;
        cpu_sharing s = { 0 };
        const costs before = { .shared = alone ? 150 : 60, .alone = 100 },
                    now = { .shared = alone ? 1 : 1000, .alone = alone ? 1000 : 1 };
        runs(&s, &before, WORK, SHARING_PERIOD);
        for (int i = 0; i < 2 * SHARING_TRIAL; i++) {
            const cpu_sharing_way way = cek__sharing_next(&s, WORK);
            if (way.timed && (way.shared != missing || i % 4 == 0))
                cek__sharing_took(&s, &way, (way.shared ? now.shared : now.alone) * WORK);
        }
        ck_assert_int_eq(runs(&s, &before, WORK, rest), alone ? 0 : rest);
    }
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
    tcase_add_test(tests, what_is_not_is_done_alone_but_for_trials);
    tcase_add_test(tests, a_change_is_found_by_the_next_trial);
    tcase_add_test(tests, single_runs_that_take_long_decide_nothing);
    tcase_add_test(tests, a_helper_that_does_not_run_ends_sharing_until_the_next_trial);
    tcase_add_test(tests, runs_of_another_size_are_judged_apart);
    tcase_add_test(tests, a_trial_that_did_not_happen_decides_nothing);
    tcase_add_test(tests, work_of_any_size_has_its_place);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
