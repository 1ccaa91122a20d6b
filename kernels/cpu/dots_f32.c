/* dots_f32.c - a few vectors against rows of a matrix, both along k: what a product with hardly any
 * rows is.
 *
 * Owns: the sums of dot products. Must not know: where rows come from. */
#include "kernels/cpu/table.h"
#include "kernels/cpu/vector.h"

/* Four rows at a time are enough streams from memory, and a vector of each is loaded once for as many x as there are
 * registers for the sums of; the next x find the rows in L1. */
enum { ROWS = 4, XS = REGISTERS < 32 ? 2 : 4 };

/* The terms of one vector's lanes, the first n of them where is_part. */
V_INLINE void terms(int xs, int rows, int is_part, int64_t n, const float *x, int64_t ldx, const float *w, int64_t ldw,
                    vf sum[XS][ROWS])
{
    vf v[ROWS];

#pragma GCC unroll 4 /* clang may leave parts of vectors, which take it a loop, rolled up */
    for (int r = 0; r < rows; r++)
        v[r] = is_part ? v_load_part(w + r * ldw, n) : v_load(w + r * ldw);
    if (xs > 1) {
        UNROLL
        for (int r = 0; r < rows; r++)
            v[r] = v_once(v[r]);
    }
    UNROLL
    for (int i = 0; i < xs; i++) {
        const vf u = is_part ? v_load_part(x + i * ldx, n) : v_load(x + i * ldx);
        UNROLL
        for (int r = 0; r < rows; r++)
            sum[i][r] = v_fma(v[r], u, sum[i][r]);
    }
}

V_INLINE void dots(int xs, int rows, int64_t depth, const float *x, int64_t ldx, const float *w, int64_t ldw,
                   float *out, int64_t ldout)
{
    vf sum[XS][ROWS] = { 0 };
    int64_t k = 0;

    for (; k + VL <= depth; k += VL)
        terms(xs, rows, 0, VL, x + k, ldx, w + k, ldw, sum);
    if (k < depth)
        terms(xs, rows, 1, depth - k, x + k, ldx, w + k, ldw, sum);
    UNROLL
    for (int i = 0; i < xs; i++) {
        if (rows == ROWS)
            *(v4_mem *)(out + i * ldout) = v_sums_lanes(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
        else
            out[i * ldout] = v_sum_lanes(sum[i][0]);
    }
}

/* All x against ROWS rows, or one. */
V_INLINE void some_rows(int rows, int64_t xs, int64_t depth, const float *x, int64_t ldx, const float *w, int64_t ldw,
                        float *out, int64_t ldout)
{
    for (; xs >= XS; xs -= XS, x += XS * ldx, out += XS * ldout)
        dots(XS, rows, depth, x, ldx, w, ldw, out, ldout);
    if (XS > 3 && xs == 3) /* clang is to unroll no loop that never runs */
        dots(3, rows, depth, x, ldx, w, ldw, out, ldout);
    else if (XS > 2 && xs == 2)
        dots(2, rows, depth, x, ldx, w, ldw, out, ldout);
    else if (xs == 1)
        dots(1, rows, depth, x, ldx, w, ldw, out, ldout);
}

void ISA_NAME(dots_f32)(int64_t xs, int64_t rows, int64_t depth, const float *x, int64_t ldx, const float *w,
                        int64_t ldw, float *out, int64_t ldout)
{
    for (; rows >= ROWS; rows -= ROWS, w += ROWS * ldw, out += ROWS)
        some_rows(ROWS, xs, depth, x, ldx, w, ldw, out, ldout);
    for (; rows > 0; rows--, w += ldw, out++)
        some_rows(1, xs, depth, x, ldx, w, ldw, out, ldout);
}
