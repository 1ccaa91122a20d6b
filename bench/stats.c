/* stats.c - medians and spreads; see stats.h. */
#include "bench/stats.h"

#include <math.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The value below which `part` of the sorted ones lie, between neighbours in proportion. */
static double quantile(const double *sorted, size_t count, double part)
{
    double at = part * (double)(count - 1);
    size_t low = (size_t)at;
    return low + 1 < count ? sorted[low] + (at - (double)low) * (sorted[low + 1] - sorted[low]) : sorted[low];
}

double stats_median(double *values, size_t count)
{
    if (!count)
        return NAN;
    qsort(values, count, sizeof *values, ascending);
    return quantile(values, count, 0.5);
}

double stats_spread(double *values, size_t count)
{
    double median = stats_median(values, count);
    return count && median > 0 ? (quantile(values, count, 0.75) - quantile(values, count, 0.25)) / median : 0;
}

double stats_geometric_mean(const double *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += log(values[i]);
    return count ? exp(sum / (double)count) : NAN;
}
