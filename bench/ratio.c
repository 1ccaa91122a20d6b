/* ratio.c - see ratio.h. */
#include "bench/ratio.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bench/stats.h"

static int ascending(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* Two-sided normal quantile, to 3 digits: by halving. */
static double normal_quantile(double confidence)
{
    double low = 0, high = 10;
    for (int i = 0; i < 60; i++) {
        const double middle = (low + high) / 2;
        if (erf(middle / sqrt(2)) < confidence)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* How many ratios to leave out at each end: the largest k with P(U < k) <= (1 - confidence) / 2. Exact where the
 * counts are small, by counting orders: those of n and m runs with statistic u are those that end in a b, whose
 * other runs have u, or in an a, which m b come before: N(n, m, u) = N(n, m - 1, u) + N(n - 1, m, u - m). None,
 * where not even the outermost are far enough out. */
static bool trim_exact(size_t n, size_t m, double confidence, double *k)
{
    const size_t most = n * m + 1;
    double *row = calloc((n + 1) * most, sizeof *row), all = 0, sum = 0;
    if (!row)
        return false;
    for (size_t i = 0; i <= n; i++)
        row[i * most] = 1; /* without any b there is one order, with u = 0 */
    for (size_t j = 1; j <= m; j++)
        for (size_t i = 1; i <= n; i++)
            for (size_t u = i * j + 1; u-- > 0;)
                row[i * most + u] += u >= j ? row[(i - 1) * most + (u - j)] : 0;
    for (size_t u = 0; u < most; u++)
        all += row[n * most + u];
    *k = 0;
    for (size_t u = 0; u < most && (sum += row[n * most + u]) <= all * (1 - confidence) / 2; u++)
        *k = (double)(u + 1);
    free(row);
    return true;
}

static double trim_normal(double n, double m, double confidence)
{
    return floor(n * m / 2 - normal_quantile(confidence) * sqrt(n * m * (n + m + 1) / 12));
}

/* Not more than RATIO_MOST, spread over all. */
static size_t thin(double *values, size_t count)
{
    qsort(values, count, sizeof *values, ascending);
    if (count <= RATIO_MOST)
        return count;
    for (size_t i = 0; i < RATIO_MOST; i++)
        values[i] = values[(size_t)(((double)i + 0.5) * (double)count / RATIO_MOST)];
    return RATIO_MOST;
}

bool ratio_of(double *a, size_t count_a, double *b, size_t count_b, double confidence, ratio *out)
{
    enum { EXACT = 30 };
    *out = (ratio){ NAN, 0, INFINITY };
    if (!count_a || !count_b)
        return true;
    const size_t n = thin(a, count_a), m = thin(b, count_b), count = n * m;
    double *ratios = malloc(count * sizeof *ratios), k = 0;
    bool room = ratios != NULL;
    if (room && n <= EXACT && m <= EXACT)
        room = trim_exact(n, m, confidence, &k);
    else if (room)
        k = trim_normal((double)n, (double)m, confidence);
    for (size_t i = 0; room && i < count; i++)
        ratios[i] = b[i % m] / a[i / m];
    if (room)
        out->estimate = stats_median(ratios, count);
    if (room && k >= 1)
        out->low = ratios[(size_t)k - 1], out->high = ratios[count - (size_t)k];
    free(ratios);
    return room;
}
