/* ratio.c - ratios of times from a few runs, and their intervals. */
#include "bench/ratio.h"

#include <math.h>

#include "tests/suite.h"

/* n runs of a and m of b whose ratios are all different and known: a_i = 1, b_j = 1 + j / 1000 but for what orders
 * them. */
static ratio of_series(size_t n, size_t m)
{
    double a[RATIO_MOST], b[RATIO_MOST];
    ratio r;
    for (size_t i = 0; i < n; i++)
        a[i] = exp((double)i * 1e-6);
    for (size_t i = 0; i < m; i++)
        b[i] = 2 * exp((double)i * 1e-3);
    ck_assert(ratio_of(a, n, b, m, 0.95, &r));
    return r;
}

/* The published critical values of Mann and Whitney's U at 5 %, two-sided: the interval leaves out as many ratios at
 * each end. */
START_TEST(intervals_are_those_of_the_tables)
{
    static const struct {
        size_t n, m;
        int critical;
    } table[] = { { 4, 4, 0 },  { 5, 5, 2 },    { 5, 9, 7 },    { 7, 7, 8 },
                  { 9, 9, 17 }, { 10, 10, 23 }, { 15, 15, 64 }, { 20, 20, 127 } };
    for (size_t t = 0; t < sizeof table / sizeof *table; t++) {
        const size_t n = table[t].n, m = table[t].m;
        double ratios[400];
        const ratio r = of_series(n, m);
        size_t count = 0, below = 0;
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < m; j++)
                ratios[count++] = 2 * exp((double)j * 1e-3) / exp((double)i * 1e-6);
        for (size_t i = 0; i < count; i++)
            below += ratios[i] < r.low * (1 - 1e-12);
        ck_assert_msg(below == (size_t)table[t].critical, "%zu and %zu: %zu below, not %d", n, m, below,
                      table[t].critical);
    }
}
END_TEST

START_TEST(too_few_runs_say_nothing_for_sure)
{
    const ratio few = of_series(3, 3), one = of_series(1, 40);
    ck_assert(few.low == 0 && isinf(few.high));
    ck_assert(few.estimate > 1.9 && few.estimate < 2.1);
    ck_assert(one.low > 0 || isinf(one.high));
    const ratio none = of_series(0, 5);
    ck_assert(isnan(none.estimate) && none.low == 0 && isinf(none.high));
}
END_TEST

static double uniform(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return ((*state >> 8) + 0.5) / (1 << 24);
}

/* Times as they are: mostly near the shortest, now and then much longer. */
static double run_time(unsigned *state)
{
    return 1 - 0.02 * log(uniform(state)) + (uniform(state) < 0.1 ? 0.3 * uniform(state) : 0);
}

START_TEST(the_true_ratio_is_inside_as_often_as_is_said)
{
    enum { TRIALS = 4000, RUNS = 9 };
    unsigned state = 7;
    int inside = 0;
    double width = 0;
    for (int t = 0; t < TRIALS; t++) {
        double a[RUNS], b[RUNS];
        ratio r;
        for (int i = 0; i < RUNS; i++)
            a[i] = run_time(&state), b[i] = 1.25 * run_time(&state);
        ck_assert(ratio_of(a, RUNS, b, RUNS, 0.95, &r));
        ck_assert(r.low <= r.estimate && r.estimate <= r.high);
        inside += r.low <= 1.25 && 1.25 <= r.high;
        width += (r.high - r.low) / TRIALS;
    }
    /* 95 % of 4000 are 3800, with a deviation of 14 */
    ck_assert_msg(inside > 3800 - 4 * 14, "inside in %d of %d", inside, TRIALS);
    ck_assert_msg(width < 0.15, "as wide as %g says nothing", width);
}
END_TEST

/* Beyond what is counted exactly, the normal distribution's: narrower with more runs, and inside as often. */
START_TEST(many_runs_make_it_surer)
{
    unsigned state = 3;
    double a[1000], b[1000], widths[3];
    const size_t counts[] = { 9, 100, 1000 };
    for (int k = 0; k < 3; k++) {
        ratio r;
        for (size_t i = 0; i < counts[k]; i++)
            a[i] = run_time(&state), b[i] = run_time(&state);
        ck_assert(ratio_of(a, counts[k], b, counts[k], 0.95, &r));
        widths[k] = r.high - r.low;
        ck_assert(r.low < 1.02 && r.high > 0.98);
    }
    ck_assert(widths[1] < widths[0] / 2);
    ck_assert(widths[2] < widths[0] / 2);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ratio");
    TCase *c = tcase_create("ratio");
    tcase_add_test(c, intervals_are_those_of_the_tables);
    tcase_add_test(c, too_few_runs_say_nothing_for_sure);
    tcase_add_test(c, the_true_ratio_is_inside_as_often_as_is_said);
    tcase_add_test(c, many_runs_make_it_surer);
    suite_add_tcase(s, c);
    return suite_run(s);
}
