/* reduce.c - sums and extremes of a run, and of the columns of a matrix.
 *
 * Owns: the order of summation inside one block: four vectors of partial sums, then a tree over
 * them and their lanes.
 * Must not know: how a tensor is cut into blocks. */
#include <cekernels/plugin.h>

#include "kernels/cpu/ops.h"
#include "kernels/cpu/vector.h"

/* What one number contributes to a sum. */
/* clang-format off */
V_INLINE vf term_value(vf x) { return x; }
V_INLINE vf term_square(vf x) { return x * x; }
V_INLINE vf term_nonfinite(vf x) { return v_select(v_abs(x) <= 3.40282347e38f, v_all(0), v_all(1)); }
/* clang-format on */

V_INLINE float run_sum(int64_t n, const float *x, vf (*term)(vf))
{
    vf a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 };
    int64_t i = 0;

    for (; i + 4 * VL <= n; i += 4 * VL) {
        a += term(v_load(x + i));
        b += term(v_load(x + i + VL));
        c += term(v_load(x + i + 2 * VL));
        d += term(v_load(x + i + 3 * VL));
    }
    for (; i + VL <= n; i += VL)
        a += term(v_load(x + i));
    if (i < n)
        b += term(v_load_part(x + i, n - i)); /* the other lanes are 0, which adds nothing to any sum */
    return v_sum_lanes((a + b) + (c + d));
}

/* An element may be looked at twice: the last vector overlaps the one before it. */
V_INLINE float run_extreme(int64_t n, const float *x, vf (*best)(vf, vf), float (*of_lanes)(vf))
{
    vf a, b;
    int64_t i = 0;

    if (n < VL) {
        a = v_all(x[0]);
        for (i = 1; i < n; i++)
            a[i] = x[i];
        return of_lanes(a);
    }
    a = b = v_load(x + n - VL);
    for (; i + 2 * VL <= n; i += 2 * VL) {
        a = best(v_load(x + i), a);
        b = best(v_load(x + i + VL), b);
    }
    if (i + VL <= n)
        a = best(v_load(x + i), a);
    return of_lanes(best(a, b));
}

static float reduce_run(uint32_t function, int64_t n, const float *x)
{
    switch (function) {
    case CEK_REDUCE_MAX: return run_extreme(n, x, v_max, v_max_lanes);
    case CEK_REDUCE_MIN: return run_extreme(n, x, v_min, v_min_lanes);
    case CEK_REDUCE_SUM_SQUARES: return run_sum(n, x, term_square);
    case CEK_REDUCE_COUNT_NONFINITE: return run_sum(n, x, term_nonfinite);
    default: return run_sum(n, x, term_value);
    }
}

/* clang-format off */
V_INLINE vf take_value(vf sum, vf x) { return sum + x; }
V_INLINE vf take_square(vf sum, vf x) { return sum + x * x; }
V_INLINE vf take_nonfinite(vf sum, vf x) { return sum + term_nonfinite(x); }
V_INLINE vf take_max(vf best, vf x) { return v_max(x, best); }
V_INLINE vf take_min(vf best, vf x) { return v_min(x, best); }
/* clang-format on */

/* `fast`: four vectors at once, of what is asked for often. */
V_INLINE void columns(int fast, int64_t rows, int64_t n, const float *x, int64_t ldx, float *y, int extreme,
                      vf (*take)(vf, vf))
{
    int64_t j = 0;

    for (; fast && j + 4 * VL <= n; j += 4 * VL) {
        const float *row = x + j;
        vf s[4] = { { 0 } };

        for (int q = 0; extreme && q < 4; q++)
            s[q] = v_load(row + q * VL);
        for (int64_t i = 0; i < rows; i++, row += ldx)
            for (int q = 0; q < 4; q++)
                s[q] = take(s[q], v_load(row + q * VL));
        for (int q = 0; q < 4; q++)
            v_store(y + j + q * VL, s[q]);
    }
    for (; j < n; j += VL) {
        const int64_t part = n - j < VL ? n - j : VL;
        const float *row = x + j;
        vf s = { 0 };

        if (extreme)
            s = v_load_part(row, part);
        for (int64_t i = 0; i < rows; i++, row += ldx)
            s = take(s, v_load_part(row, part));
        v_store_part(y + j, part, s);
    }
}

static void reduce_columns(uint32_t function, int64_t rows, int64_t n, const float *x, int64_t ldx, float *y)
{
    switch (function) {
    case CEK_REDUCE_MAX: columns(1, rows, n, x, ldx, y, 1, take_max); return;
    case CEK_REDUCE_MIN: columns(0, rows, n, x, ldx, y, 1, take_min); return;
    case CEK_REDUCE_SUM_SQUARES: columns(1, rows, n, x, ldx, y, 0, take_square); return;
    case CEK_REDUCE_COUNT_NONFINITE: columns(0, rows, n, x, ldx, y, 0, take_nonfinite); return;
    default: columns(1, rows, n, x, ldx, y, 0, take_value); return;
    }
}

V_INLINE void terms(int64_t rows, int64_t n, const float *x, int64_t ldx, const float *x2, int64_t ldx2,
                    const float *centre, float *y)
{
    int64_t j = 0;

    for (; j + 4 * VL <= n; j += 4 * VL) {
        vf s[4] = { { 0 } }, middle[4];

        for (int q = 0; q < 4; q++)
            middle[q] = v_load(centre + j + q * VL);
        for (int64_t i = 0; i < rows; i++)
            for (int q = 0; q < 4; q++) {
                const vf from = v_load(x + i * ldx + j + q * VL) - middle[q];

                s[q] += from * (x2 ? v_load(x2 + i * ldx2 + j + q * VL) : from);
            }
        for (int q = 0; q < 4; q++)
            v_store(y + j + q * VL, s[q]);
    }
    for (; j < n; j += VL) {
        const int64_t part = n - j < VL ? n - j : VL;
        const vf middle = v_load_part(centre + j, part);
        vf s = { 0 };

        for (int64_t i = 0; i < rows; i++) {
            const vf from = v_load_part(x + i * ldx + j, part) - middle;

            s += from * (x2 ? v_load_part(x2 + i * ldx2 + j, part) : from);
        }
        v_store_part(y + j, part, s);
    }
}

static void reduce_terms(int64_t rows, int64_t n, const float *x, int64_t ldx, const float *x2, int64_t ldx2,
                         const float *centre, float *y)
{
    if (x2)
        terms(rows, n, x, ldx, x2, ldx2, centre, y);
    else
        terms(rows, n, x, ldx, NULL, 0, centre, y);
}

const cpu_reduce_kernels ISA_NAME(cek__reduce_kernels) = {
    .run = reduce_run,
    .columns = reduce_columns,
    .terms = reduce_terms,
};
