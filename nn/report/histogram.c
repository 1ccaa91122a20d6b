/* histogram.c - see histogram.h. Limits are those of TensorFlow's own histograms (core/lib/histogram), which others'
 * are compared with. */
#include "nn/report/histogram.h"

#include <float.h>
#include <math.h>
#include <string.h>

static void limits_fill(double limit[CEK__HISTOGRAM_BUCKETS])
{
    double *middle = limit + CEK__HISTOGRAM_SIDE, value = 1e-12;

    *middle = 0;
    for (int i = 1; i < CEK__HISTOGRAM_SIDE; i++, value *= 1.1) {
        middle[i] = value;
        middle[-i] = -value;
    }
    middle[CEK__HISTOGRAM_SIDE] = DBL_MAX;
    middle[-CEK__HISTOGRAM_SIDE] = -DBL_MAX;
}

/* The first limit above the value, which is above the lowest limit. */
static int bucket_of(const double *limit, double value)
{
    int low = 0, high = CEK__HISTOGRAM_BUCKETS - 1;

    while (low < high) {
        const int middle = (low + high) / 2;

        if (limit[middle] > value)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

void cek__histogram_of(const float *values, int64_t count, cek__histogram *out)
{
    memset(out, 0, sizeof *out);
    limits_fill(out->limit);
    for (int64_t i = 0; i < count; i++) {
        const double value = (double)values[i];

        if (!isfinite(value))
            continue;
        out->low = out->counted && out->low < value ? out->low : value;
        out->high = out->counted && out->high > value ? out->high : value;
        out->sum += value;
        out->squares += value * value;
        out->counted++;
        out->count[bucket_of(out->limit, value)]++;
    }
}

cek_status cek__histogram_write(const cek__histogram *h, cek__message *out)
{
    cek_status st;
    double limit[CEK__HISTOGRAM_BUCKETS], count[CEK__HISTOGRAM_BUCKETS];
    size_t kept = 0;

    for (int i = 0; i < CEK__HISTOGRAM_BUCKETS; i++) {
        if (kept > 0 && count[kept - 1] == 0 && h->count[i] == 0)
            kept--; /* the empty one before reaches further */
        limit[kept] = h->limit[i];
        count[kept++] = (double)h->count[i];
    }
    CEK_TRY(cek__message_double(out, 1, h->low));
    CEK_TRY(cek__message_double(out, 2, h->high));
    CEK_TRY(cek__message_double(out, 3, (double)h->counted));
    CEK_TRY(cek__message_double(out, 4, h->sum));
    CEK_TRY(cek__message_double(out, 5, h->squares));
    CEK_TRY(cek__message_doubles(out, 6, limit, kept));
    st = cek__message_doubles(out, 7, count, kept);
out:
    return st;
}
