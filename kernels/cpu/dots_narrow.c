/* dots_narrow.c - one vector against rows of 16 bits, both along k: what memory gives is all that there is to wait for.
 *
 * Owns: the sums of dot products. Must not know: where rows come from. */
#include "kernels/cpu/half.h"
#include "kernels/cpu/table.h"

V_INLINE void dots(cpu_type type, int64_t depth, const float *x, const uint16_t *w, int64_t ldw, float *out)
{
    vf sum[CPU_NARROW_ROWS] = { 0 };
    int64_t k = 0;

    for (; k + VL <= depth; k += VL) {
        const vf u = v_load(x + k);
        UNROLL
        for (int r = 0; r < CPU_NARROW_ROWS; r++)
            sum[r] = v_fma(v_load_typed(type, w + r * ldw + k), u, sum[r]);
    }
    if (k < depth) {
        const vf u = v_load_part(x + k, depth - k);
        for (int r = 0; r < CPU_NARROW_ROWS; r++)
            sum[r] = v_fma(v_load_typed_part(type, w + r * ldw + k, depth - k), u, sum[r]);
    }
    *(v4_mem *)out = v_sums_lanes(sum[0], sum[1], sum[2], sum[3]);
}

void ISA_NAME(dots_narrow)(cpu_type type, int64_t depth, const float *x, const void *w, int64_t ldw, float *out)
{
    if (type == CPU_BF16)
        dots(CPU_BF16, depth, x, w, ldw, out);
    else
        dots(CPU_F16, depth, x, w, ldw, out);
}
