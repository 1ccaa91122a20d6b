/* ratio.h - how many times as long one thing takes as another, from a few runs of each, and how sure that is.
 *
 * The estimate is the median of all ratios b/a of a run of the one and a run of the other (Hodges and Lehmann's, of
 * logarithms). Its interval goes from one of these ratios in order of size to another, so far in from both ends as
 * the distribution of Mann and Whitney's statistic allows: it holds the true ratio with the confidence that is asked
 * for, whatever the runs are distributed like, so long as they are independent and those of a and b alike but for
 * the factor. Arithmetic alone. */
#ifndef BENCH_RATIO_H
#define BENCH_RATIO_H

#include <stdbool.h>
#include <stddef.h>

typedef struct ratio {
    double estimate, low, high; /* an interval that nothing is known of, for want of runs, is 0 to infinity */
} ratio;

/* Of positive numbers, which it sorts and, where they are too many, overwrites. NaN where one has none. `confidence`
 * such as 0.95. Allocates count_a * count_b numbers: false where there is no memory. Of more than RATIO_MOST runs of
 * one so many quantiles are taken. */
enum { RATIO_MOST = 400 };
bool ratio_of(double *a, size_t count_a, double *b, size_t count_b, double confidence, ratio *out);

#endif
