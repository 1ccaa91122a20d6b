/* pairs.h - words of two bf16 that are neighbours in k, the earlier one in the low half.
 *
 * Owns: panels of such words and sums of them, for a family of tiles (cpu_words) that includes this.
 * Must not know: tiles. */
#include "kernels/cpu/half.h"

/* Words of two rows of memory, a vector of each. */
V_INLINE vf pairs_of(const uint16_t *low, const uint16_t *high)
{
    return (vf)(v_from_u16(*(const vh_mem *)low) | v_from_u16(*(const vh_mem *)high) << 16);
}

/* Two rows of memory are one of words; what is missing of the last is 0. B's last panel, `nr` wide, is filled up. */
static void pairs_panels(int64_t nr, int64_t depth, int64_t columns, int64_t width, const void *from, int64_t ld,
                         float *to, int64_t panel)
{
    const uint16_t *low = from;

    for (int64_t k = 0; k < depth; k += 2, low += 2 * ld, to += width) {
        const uint16_t *high = k + 1 < depth ? low + ld : NULL;
        float *row = to;
        for (int64_t i = 0; k + 2 * CPU_ROWS_AHEAD + 1 < depth && i < columns; i += 32) {
            __builtin_prefetch(low + 2 * CPU_ROWS_AHEAD * ld + i);
            __builtin_prefetch(low + (2 * CPU_ROWS_AHEAD + 1) * ld + i);
        }
        int64_t j = 0;
        for (; high && width % VL == 0 && j + width <= columns; j += width, row += panel)
            for (int64_t i = 0; i < width; i += VL)
                v_store(row + i, pairs_of(low + j + i, high + j + i));
        for (; j < columns; j += width, row += panel)
            for (int64_t i = j, end = j + width; i < end; i += VL) {
                const int64_t left = (columns < end ? columns : end) - i, n = left < 0 ? 0 : left < VL ? left : VL;
                const vu even = (vu)v_load_typed_part(CPU_BF16, low + i, n) >> 16;
                const vu odd = high ? (vu)v_load_typed_part(CPU_BF16, high + i, n) : (vu){ 0 };
                v_store_part(row + i - j, width == nr ? VL : n, (vf)(even | odd));
            }
    }
}

static void pairs_add(int64_t n, const float *words, float *sum)
{
    for (int64_t i = 0; i < n; i += VL) {
        const int64_t part = n - i < VL ? n - i : VL;
        const vu x = (vu)v_load_part(words + i, part);
        v_store_part(sum + i, part, v_load_part(sum + i, part) + (vf)(x << 16) + (vf)(x & 0xffff0000u));
    }
}
