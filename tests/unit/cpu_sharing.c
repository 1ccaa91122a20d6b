/* cpu_sharing.c - when brief runs are shared with helpers: what takes how long is the test's own. */
#include "backends/cpu/sharing.h"

#include "tests/suite.h"

/* A program: what a unit of work takes, and whatever comes before the next run. */
typedef struct costs {
    int64_t shared, alone, after_shared, after_alone;
} costs;

static int64_t the_time;

static int64_t now(void)
{
    return the_time;
}

enum { WORK = 20000, SMALL = 5000, LONG = 1000 };

static const costs slow = { .shared = 150, .alone = 100 }, fast = { .shared = 60, .alone = 100 };

/* A run that takes `times` as long as it should; `missed` where it is the caller's alone though it was to be shared. */
static bool odd_run(cpu_sharing *s, const costs *c, double work, int times, bool missed)
{
    const cpu_sharing_way way = cek__sharing_next(s, work, now);
    if (way.shared && missed)
        cek__sharing_missed(s, &way);
    const bool shared = way.shared && !missed;
    the_time += (int64_t)((double)(shared ? c->shared + c->after_shared : c->alone + c->after_alone) * work) * times;
    return way.shared;
}

static bool one_run(cpu_sharing *s, const costs *c, double work)
{
    return odd_run(s, c, work, 1, false);
}

/* How many of n runs are shared. */
static int runs(cpu_sharing *s, const costs *c, double work, int n)
{
    int shared = 0;
    for (int i = 0; i < n; i++)
        shared += one_run(s, c, work);
    return shared;
}

/* The lengths of periods, one after the other. */
static int next_period(int period)
{
    return period < SHARING_PERIOD ? period * SHARING_MORE : period;
}

/* A program whose periods have their full length, of which one begins. */
static cpu_sharing settled(const costs *c, double work)
{
    cpu_sharing s = { 0 };
    for (int period = SHARING_FIRST; period < SHARING_PERIOD; period = next_period(period))
        runs(&s, c, work, period);
    return s;
}

START_TEST(what_is_faster_shared_is_shared_but_for_trials)
{
    cpu_sharing s = { 0 };
    for (int i = 0, period = SHARING_FIRST; i < 6; i++, period = next_period(period))
        ck_assert_int_eq(runs(&s, &fast, WORK, period), period - SHARING_HALF);
}
END_TEST

START_TEST(what_is_not_is_done_alone_but_for_trials)
{
    for (int shared = 98; shared < 1000; shared *= 3) {
        const costs c = { .shared = shared, .alone = 100 };
        cpu_sharing s = { 0 };
        for (int i = 0, period = SHARING_FIRST; i < 6; i++, period = next_period(period))
            ck_assert_int_eq(runs(&s, &c, WORK, period), SHARING_HALF);
    }
}
END_TEST

/* A result that lies in another core's cache. */
START_TEST(what_comes_after_a_run_counts)
{
    const costs bad = { .shared = 60, .alone = 100, .after_shared = 90, .after_alone = 30 },
                good = { .shared = 100, .alone = 100, .after_shared = 30, .after_alone = 90 };
    cpu_sharing s = settled(&bad, WORK), t = settled(&good, WORK);
    ck_assert_int_eq(runs(&s, &bad, WORK, SHARING_PERIOD), SHARING_HALF);
    ck_assert_int_eq(runs(&t, &good, WORK, SHARING_PERIOD), SHARING_PERIOD - SHARING_HALF);
}
END_TEST

START_TEST(a_change_is_found_by_the_next_trial)
{
    cpu_sharing s = settled(&slow, WORK);
    for (int times = 0; times < 3; times++) {
        ck_assert_int_eq(runs(&s, &slow, WORK, SHARING_PERIOD), SHARING_HALF);
        ck_assert_int_eq(runs(&s, &fast, WORK, SHARING_PERIOD), SHARING_PERIOD - SHARING_HALF);
    }
}
END_TEST

/* One in each of two spans of either way. */
START_TEST(single_runs_that_take_long_decide_nothing)
{
    for (int is_fast = 0; is_fast < 2; is_fast++) {
        const costs *c = is_fast ? &fast : &slow;
        cpu_sharing s = settled(c, WORK);
        for (int i = 0; i < SHARING_TRIAL; i++) {
            const int at = i % SHARING_HALF - SHARING_WARM - SHARING_SPAN / 2;
            const bool is_long = i / SHARING_HALF != is_fast && (at == 0 || at == 2 * SHARING_SPAN);
            odd_run(&s, c, WORK, is_long ? LONG : 1, false);
        }
        const int rest = SHARING_PERIOD - SHARING_TRIAL;
        ck_assert_int_eq(runs(&s, c, WORK, rest), is_fast ? rest : 0);
    }
}
END_TEST

static void stall(cpu_sharing *s)
{
    const cpu_sharing_way way = cek__sharing_next(s, WORK, now);
    ck_assert(way.shared);
    cek__sharing_stalled(s, &way);
}

START_TEST(a_helper_that_does_not_run_ends_sharing_until_a_trial_soon)
{
    cpu_sharing s = settled(&fast, WORK);
    runs(&s, &fast, WORK, SHARING_TRIAL + 1);
    stall(&s);
    ck_assert_int_eq(runs(&s, &fast, WORK, SHARING_FIRST), 0);
    ck_assert_int_eq(runs(&s, &fast, WORK, SHARING_FIRST * SHARING_MORE), SHARING_FIRST * SHARING_MORE - SHARING_HALF);
}
END_TEST

START_TEST(one_that_does_not_run_in_a_trial_ends_it)
{
    for (int before = 0; before < SHARING_HALF; before += SHARING_HALF / 3) {
        cpu_sharing s = settled(&fast, WORK);
        runs(&s, &fast, WORK, before);
        stall(&s);
        ck_assert_int_eq(runs(&s, &fast, WORK, SHARING_PERIOD - before - 1), 0);
        ck_assert_int_eq(runs(&s, &fast, WORK, SHARING_PERIOD), SHARING_PERIOD - SHARING_HALF);
    }
}
END_TEST

START_TEST(runs_of_another_size_are_judged_apart)
{
    cpu_sharing s = { 0 };
    int by_large = 0, by_small = 0;
    for (int i = 0; i < SHARING_PERIOD; i++) {
        one_run(&s, &fast, WORK);
        one_run(&s, &slow, SMALL);
    }
    for (int i = 0; i < SHARING_PERIOD; i++) {
        by_large += one_run(&s, &fast, WORK);
        by_small += one_run(&s, &slow, SMALL);
    }
    ck_assert_int_ge(by_large, SHARING_PERIOD - SHARING_TRIAL);
    ck_assert_int_le(by_small, SHARING_TRIAL);
}
END_TEST

START_TEST(one_size_is_tried_at_a_time)
{
    cpu_sharing s = { 0 };
    for (int i = 0; i < SHARING_TRIAL; i++) {
        one_run(&s, &fast, WORK);
        ck_assert(!one_run(&s, &fast, SMALL)); /* as before any trial */
    }
    one_run(&s, &fast, WORK); /* its beginning is the end of the last span */
    ck_assert(one_run(&s, &fast, SMALL));
}
END_TEST

START_TEST(a_trial_whose_runs_no_longer_come_is_given_up)
{
    cpu_sharing s = { 0 };
    runs(&s, &fast, WORK, SHARING_TRIAL / 2);
    ck_assert_int_eq(runs(&s, &fast, SMALL, SHARING_OTHERS), 0);
    ck_assert_int_gt(runs(&s, &fast, SMALL, SHARING_FIRST), SHARING_FIRST / 2);
    /* nothing is known of it */
    ck_assert_int_eq(runs(&s, &fast, WORK, SHARING_FIRST - SHARING_TRIAL / 2), 0);
    ck_assert_int_gt(runs(&s, &fast, WORK, SHARING_FIRST * SHARING_MORE), SHARING_FIRST);
}
END_TEST

/* As where helpers sleep: some runs of a trial are not shared as they should be. */
START_TEST(a_trial_that_did_not_happen_decides_nothing)
{
    for (int was_fast = 0; was_fast < 2; was_fast++) {
        const costs *before = was_fast ? &fast : &slow, *then = was_fast ? &slow : &fast;
        cpu_sharing s = settled(before, WORK);
        for (int i = 0; i < SHARING_TRIAL; i++)
            odd_run(&s, then, WORK, 1, i % SHARING_SPAN == 0);
        const int rest = SHARING_PERIOD - SHARING_TRIAL;
        ck_assert_int_eq(runs(&s, before, WORK, rest), was_fast ? rest : 0);
    }
}
END_TEST

START_TEST(a_helper_that_wakes_late_is_in_time_for_most_of_a_trial)
{
    cpu_sharing s = settled(&slow, WORK);
    for (int i = 0; i < SHARING_TRIAL; i++)
        odd_run(&s, &fast, WORK, 1, i < SHARING_WARM + SHARING_SPAN);
    ck_assert_int_eq(runs(&s, &fast, WORK, SHARING_PERIOD - SHARING_TRIAL), SHARING_PERIOD - SHARING_TRIAL);
}
END_TEST

START_TEST(runs_that_come_seldom_are_tried_all_the_same)
{
    enum { OTHERS = SHARING_OTHERS / 16 };
    cpu_sharing s = { 0 };
    for (int i = 0; i <= SHARING_TRIAL; i++) {
        one_run(&s, &fast, WORK);
        runs(&s, &fast, 1, OTHERS);
    }
    ck_assert(one_run(&s, &fast, WORK));
}
END_TEST

START_TEST(work_of_any_size_has_its_place)
{
    cpu_sharing s = { 0 };
    static const double works[] = { 1e-30, .5, 1, 1e9, 1e30, 1e300 };
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        const cpu_sharing_way way = cek__sharing_next(&s, works[i], now);
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
    tcase_add_test(tests, what_comes_after_a_run_counts);
    tcase_add_test(tests, a_change_is_found_by_the_next_trial);
    tcase_add_test(tests, single_runs_that_take_long_decide_nothing);
    tcase_add_test(tests, a_helper_that_does_not_run_ends_sharing_until_a_trial_soon);
    tcase_add_test(tests, one_that_does_not_run_in_a_trial_ends_it);
    tcase_add_test(tests, runs_of_another_size_are_judged_apart);
    tcase_add_test(tests, one_size_is_tried_at_a_time);
    tcase_add_test(tests, a_trial_whose_runs_no_longer_come_is_given_up);
    tcase_add_test(tests, a_trial_that_did_not_happen_decides_nothing);
    tcase_add_test(tests, a_helper_that_wakes_late_is_in_time_for_most_of_a_trial);
    tcase_add_test(tests, runs_that_come_seldom_are_tried_all_the_same);
    tcase_add_test(tests, work_of_any_size_has_its_place);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
