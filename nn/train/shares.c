/* shares.c - see shares.h. */
#include "nn/train/shares.h"

static void split_equal(int64_t total, size_t count, int64_t *out)
{
    int64_t each = total / (int64_t)count, rest = total % (int64_t)count;
    for (size_t i = 0; i < count; i++)
        out[i] = each + ((int64_t)i < rest);
}

void cek__shares_split(int64_t total, size_t count, const double *weights, int64_t *out)
{
    double sum = 0;
    int64_t given = 0;
    if (!weights) {
        split_equal(total, count, out);
        return;
    }
    for (size_t i = 0; i < count; i++)
        sum += weights[i];
    for (size_t i = 0; i < count; i++) {
        out[i] = (int64_t)((double)total * (weights[i] / sum));
        given += out[i];
    }
    for (; given < total; given++) { /* fewer than count rounds: each share lost less than one sample */
        size_t best = count;
        double most = -1;
        for (size_t i = 0; i < count; i++) {
            double missing = (double)total * (weights[i] / sum) - (double)out[i];
            if (weights[i] > 0 && missing > most) {
                most = missing;
                best = i;
            }
        }
        out[best]++;
    }
}

void cek__shares_split_groups(int64_t total, int64_t group, size_t count, const double *weights, int64_t *out)
{
    int64_t given = 0;
    if (group == 0) {
        cek__shares_split(total, count, weights, out);
        return;
    }
    cek__shares_split((total + group - 1) / group, count, weights, out);
    for (size_t i = 0; i < count; i++) {
        out[i] = out[i] * group < total - given ? out[i] * group : total - given;
        given += out[i];
    }
}
