/* loss.c - softmax, cross-entropy and squared error of one row.
 *
 * Owns: their order of summation and what NaN and infinity do to a row.
 * Must not know: labels out of range, weights, padding, how rows are added up. */
#include <math.h>

#include "kernels/cpu/ops.h"
#include "kernels/cpu/vmath.h"

static float row_max(int64_t n, const float *x)
{
    vf best = v_all(x[0]);
    int64_t i = 0;

    for (; i + VL <= n; i += VL)
        best = v_max(v_load(x + i), best);
    if (i < n)
        best = v_select(v_below(n - i), v_max(v_load_part(x + i, n - i), best), best);
    return v_max_lanes(best);
}

/* y = exp(x - max) unless NULL; returns the sum. */
static inline float row_exp(int64_t n, const float *x, float max, float *y)
{
    vf sum = { 0 };
    int64_t i = 0;

    for (; i + VL <= n; i += VL) {
        vf e = v_exp(v_load(x + i) - max);

        if (y)
            v_store(y + i, e);
        sum += e;
    }
    if (i < n) {
        vf e = v_exp(v_load_part(x + i, n - i) - max);

        if (y)
            v_store_part(y + i, n - i, e);
        sum += v_select(v_below(n - i), e, v_all(0));
    }
    return v_sum_lanes(sum);
}

/* y = (x - shift) * scale + plus */
static inline void row_affine(int64_t n, const float *x, float shift, float scale, float plus, float *y)
{
    int64_t i = 0;

    for (; i + VL <= n; i += VL)
        v_store(y + i, (v_load(x + i) - shift) * scale + plus);
    if (i < n)
        v_store_part(y + i, n - i, (v_load_part(x + i, n - i) - shift) * scale + plus);
}

static void softmax(int64_t n, const float *x, float *y)
{
    const float sum = row_exp(n, x, row_max(n, x), y);

    row_affine(n, y, 0, 1.0f / sum, 0, y);
}

static void log_softmax(int64_t n, const float *x, float *y)
{
    const float max = row_max(n, x);
    const float sum = row_exp(n, x, max, NULL);

    row_affine(n, x, max, 1, (float)-log(sum), y); /* x - max first: it is exact where it matters, for the largest */
}

/* A NaN makes the maximum NaN, +inf makes max - max NaN: the sum, the loss and the whole
 * gradient are NaN then. */
static cpu_row_loss cross_entropy(int64_t n, const float *x, int64_t label, float scale, float *d)
{
    const float max = row_max(n, x), own = x[label];
    int correct = own == max;
    float sum, share;

    for (int64_t i = 0; correct && i < label; i++)
        correct = x[i] < max;
    sum = row_exp(n, x, max, d);
    if (d) {
        share = d[label] / sum;
        row_affine(n, d, 0, scale / sum, 0, d);
        d[label] = (share - 1.0f) * scale;
    }
    return (cpu_row_loss){ .loss = log(sum) + ((double)max - own), .correct = correct };
}

static double squared_error(int64_t n, const float *x, const float *t, float scale, float *d)
{
    vf a = { 0 }, b = { 0 };
    int64_t i = 0;

    for (; i + 2 * VL <= n; i += 2 * VL) {
        vf e = v_load(x + i) - v_load(t + i), f = v_load(x + i + VL) - v_load(t + i + VL);

        a += e * e;
        b += f * f;
        if (d) {
            v_store(d + i, e * scale);
            v_store(d + i + VL, f * scale);
        }
    }
    for (; i < n; i += VL) {
        const int64_t part = n - i < VL ? n - i : VL;
        vf e = v_load_part(x + i, part) - v_load_part(t + i, part);

        a += e * e;
        if (d)
            v_store_part(d + i, part, e * scale);
    }
    return v_sum_lanes(a + b);
}

const cpu_loss_kernels ISA_NAME(cek__loss_kernels) = {
    .softmax = softmax,
    .log_softmax = log_softmax,
    .cross_entropy = cross_entropy,
    .squared_error = squared_error,
};
