/* gemm_bf16.c - products of bf16 with sums in f32, where an instruction adds two at once.
 *
 * Owns: words of two bf16 that are neighbours in k, the earlier one in the low half: their tiles, panels and sums.
 * Must not know: who chooses this over floats.
 *
 * The instruction rounds each sum to nearest even, whatever the processor is set to, and takes denormal numbers for 0:
 * of operands, which are denormal floats too, and of sums. That is why one product alone is not made with
 * it (plugin.h, edges). */
#include "kernels/cpu/half.h"
#include "kernels/cpu/table.h"

#if defined CEK_ISA_AVX512BF16
static inline vf all(const float *word)
{
    int32_t bits;
    memcpy(&bits, word, sizeof bits);
    return (vf)v_all_i32(bits);
}

static inline vf add_pairs(vf a, vf b, vf sum)
{
    return (vf)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b);
}

#define TILE_NAME gemm_bf16_tiles
#define TILE_EDGE gemm_bf16_edges
#define TILE_X vf
#define TILE_ALL all
#define TILE_ADD add_pairs
#include "kernels/cpu/tile.h"

/* Two rows of memory are one of words; what is missing of the last is 0. */
static void panels(int64_t depth, int64_t columns, int64_t width, const void *from, int64_t ld, float *to,
                   int64_t panel)
{
    const uint16_t *low = from;

    for (int64_t k = 0; k < depth; k += 2, low += 2 * ld, to += width) {
        const uint16_t *high = k + 1 < depth ? low + ld : NULL;
        float *row = to;
        for (int64_t j = 0; j < columns; j += width, row += panel)
            for (int64_t i = j, end = j + width; i < end; i += VL) {
                const int64_t left = (columns < end ? columns : end) - i, n = left < 0 ? 0 : left < VL ? left : VL;
                const vu even = (vu)v_load_typed_part(CPU_BF16, low + i, n) >> 16;
                const vu odd = high ? (vu)v_load_typed_part(CPU_BF16, high + i, n) : (vu){ 0 };
                v_store_part(row + i - j, width == TILE_COLUMNS ? VL : n, (vf)(even | odd));
            }
    }
}

static void add(int64_t n, const float *words, float *sum)
{
    for (int64_t i = 0; i < n; i += VL) {
        const int64_t part = n - i < VL ? n - i : VL;
        const vu x = (vu)v_load_part(words + i, part);
        v_store_part(sum + i, part, v_load_part(sum + i, part) + (vf)(x << 16) + (vf)(x & 0xffff0000u));
    }
}

const cpu_words ISA_NAME(bf16_words) = { 2, ISA_NAME(gemm_bf16_tiles), ISA_NAME(gemm_bf16_edges), panels, add };
#endif
