/* stats.h - what is said of repeated measurements: the median, and how far they lie apart. */
#ifndef BENCH_STATS_H
#define BENCH_STATS_H

#include <stddef.h>

/* Sorts `values`. The mean of the two in the middle where the count is even; NaN of none. */
double stats_median(double *values, size_t count);
/* Distance of the quartiles as a fraction of the median. */
double stats_spread(double *values, size_t count);
double stats_geometric_mean(const double *values, size_t count);

#endif
