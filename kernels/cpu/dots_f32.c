/* dots_f32.c - a few vectors against rows of a matrix, both along k: what a product with hardly any
 * rows is.
 *
 * Owns: the sums of dot products. Must not know: where rows come from. */
#include "kernels/cpu/table.h"
#include "kernels/cpu/vector.h"

/* Four rows at a time: enough streams from memory, and a vector of x is loaded once for four
 * products. */
static inline __attribute__((always_inline)) void dots(int rows, int64_t depth, const float *x, const float *w,
                                                       int64_t ldw, float *out)
{
    vf sum[CPU_DOTS] = { 0 };
    int64_t k = 0;
    for (; k + VL <= depth; k += VL) {
        const vf v = v_load(x + k);
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++)
            sum[r] = v_fma(v_load(w + r * ldw + k), v, sum[r]);
    }
    if (k < depth)
        for (int r = 0; r < rows; r++)
            sum[r] = v_fma(v_load_part(w + r * ldw + k, depth - k), v_load_part(x + k, depth - k), sum[r]);
    for (int r = 0; r < rows; r++)
        out[r] = v_sum_lanes(sum[r]);
}

void ISA_NAME(dots_f32)(int64_t rows, int64_t depth, const float *x, const float *w, int64_t ldw, float *out)
{
    for (; rows >= CPU_DOTS; rows -= CPU_DOTS, w += CPU_DOTS * ldw, out += CPU_DOTS)
        dots(CPU_DOTS, depth, x, w, ldw, out);
    for (; rows > 0; rows--, w += ldw)
        dots(1, depth, x, w, ldw, out++);
}
