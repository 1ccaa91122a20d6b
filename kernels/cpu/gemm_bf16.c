/* gemm_bf16.c - products of bf16 with sums in f32, where an instruction adds two at once (VDPBF16PS).
 *
 * Owns: their tiles, as a family. Must not know: who chooses this over floats.
 *
 * The instruction rounds each sum to nearest even, whatever the processor is set to, and takes denormal numbers for 0:
 * of operands, which are denormal floats too, and of sums. That is why one product alone is not made with
 * it (plugin.h, edges). */
#include "kernels/cpu/pairs.h"
#include "kernels/cpu/table.h"

V_INLINE vf all(const float *word)
{
    int32_t bits;
    memcpy(&bits, word, sizeof bits);
    return (vf)v_all_i32(bits);
}

V_INLINE vf add_pairs(vf a, vf b, vf sum)
{
    return (vf)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b);
}

extern cpu_gemm_tiles *const ISA_NAME(gemm_bf16_tiles)[CPU_MR_MAX + 1];
extern cpu_gemm_edge *const ISA_NAME(gemm_bf16_edges)[CPU_MR_MAX + 1];
#define TILE_NAME gemm_bf16_tiles
#define TILE_EDGE gemm_bf16_edges
#define TILE_RUNS 0
#define TILE_X vf
#define TILE_ALL all
#define TILE_ADD add_pairs
#include "kernels/cpu/tile.h"

extern const cpu_words ISA_NAME(cek__bf16_words);

const cpu_words ISA_NAME(cek__bf16_words) = {
    .type = CPU_BF16,
    .unit = 2,
    .mr = TILE_ROWS,
    .nr = TILE_COLUMNS,
    .gemm = ISA_NAME(gemm_bf16_tiles),
    .edge = ISA_NAME(gemm_bf16_edges),
    .step = 1,
    .height = 1,
    .pace = 1,
    .panels = pairs_panels,
    .add = pairs_add,
};
