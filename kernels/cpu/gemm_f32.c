/* gemm_f32.c - tiles of products of floats.
 *
 * Owns: what a word is to tile.h: a float; sums by fused multiply-add. Must not know: the loop. */
#include "kernels/cpu/isa.h"

#define TILE_NAME gemm_f32_tiles
#define TILE_EDGE gemm_f32_edges
#if defined CEK_ISA_AVX512 || defined CEK_ISA_AVX2
#define TILE_RUNS 1 /* 14 x 32 gain 2 to 3 %, 6 x 16 a fifth where another thread shares their core */
#else
#define TILE_RUNS 0
#endif
#if defined CEK_ISA_AVX512
/* Every other row is spread by the multiply-adds themselves: a load more and an instruction less, of which two threads
 * of one core have too few. */
#define TILE_ADD_AT(i, p, y, sum) ((i) % 2 ? v_fma_spread(p, y, sum) : v_fma(v_all(*(p)), y, sum))
#else
#define TILE_ADD_AT(i, p, y, sum) TILE_ADD(TILE_ALL(p), y, sum)
#endif
#define TILE_COPY gemm_f32_copies
#if defined CEK_ISA_NEON
/* NEON multiplies a vector by an element of another: a plain load of 4 bytes, where spreading them takes some
 * processors' multipliers (LD1R). The empty asm keeps gcc from spreading them all the same. */
V_INLINE vf add_by_element(float x, vf b, vf sum)
{
    return (vf)vfmaq_n_f32((float32x4_t)sum, (float32x4_t)b, x);
}
V_INLINE float element(const float *p)
{
    float x = *p;
    __asm__("" : "+w"(x));
    return x;
}
#define TILE_X float
#define TILE_ALL element
#define TILE_ADD add_by_element
#else
#define TILE_X vf
#define TILE_ALL(p) v_all(*(p))
#if defined CEK_ISA_AVX2
/* Of 16 registers gcc 12 has none left for sums that move from one to another: an asm keeps each where it is. */
V_INLINE vf add_in_place(vf x, vf y, vf sum)
{
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(sum) : "x"(x), "x"(y));
    return sum;
}
#define TILE_ADD add_in_place
#else
#define TILE_ADD v_fma
#endif
#endif
#include "kernels/cpu/tile.h"

void ISA_NAME(drain)(void)
{
    v_drain();
}
