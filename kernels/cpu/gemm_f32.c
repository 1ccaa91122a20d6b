/* gemm_f32.c - tiles of products of floats.
 *
 * Owns: what a word is to tile.h: a float; sums by fused multiply-add. Must not know: the loop. */
#include "kernels/cpu/isa.h"

#define TILE_NAME gemm_f32_tiles
#define TILE_EDGE gemm_f32_edges
#define TILE_COPY gemm_f32_copies

#if defined CEK_ISA_AVX512 || defined CEK_ISA_AVX2
/* An asm of all that a row does keeps each sum in its register, where gcc 12 moves some to others, or to memory and
 * back, once a turn of the loop, and asks for no float sooner than it is wanted. */
V_INLINE void row_in_place(const float *p, const vf y[TILE_VECTORS], vf sum[TILE_VECTORS])
{
    vf x;
    __asm__("vbroadcastss %5, %2\n\tvfmadd231ps %3, %2, %0\n\tvfmadd231ps %4, %2, %1"
            : "+v"(sum[0]), "+v"(sum[1]), "=&v"(x)
            : "v"(y[0]), "v"(y[1]), "m"(*p));
}
#endif

#if defined CEK_ISA_AVX512
/* 14 x 32 gain 2 to 3 %. */
#define TILE_RUNS 1
/* Every third row is spread by the multiply-adds themselves: a load more and an instruction less, of which two threads
 * of one core have too few. */
V_INLINE void row_of_column(int i, const float *p, const vf y[TILE_VECTORS], vf sum[TILE_VECTORS])
{
    if (i % 3 != 1) {
        row_in_place(p, y, sum);
        return;
    }
    UNROLL
    for (int j = 0; j < TILE_VECTORS; j++)
        sum[j] = v_fma_spread(p, y[j], sum[j]);
}
#define TILE_ROW_OF_COLUMN row_of_column

#elif defined CEK_ISA_AVX2
/* 6 x 16 gain a third where another thread shares their core. */
#define TILE_RUNS 1
/* Of 16 registers 15 are taken, and gcc 12 would move sums about to have more for others. */
V_INLINE vf add_in_place(vf x, vf y, vf sum)
{
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(sum) : "x"(x), "x"(y));
    return sum;
}
#define TILE_ADD add_in_place
#define TILE_ROW_OF_COLUMN(i, p, y, sum) row_in_place(p, y, sum)
#define TILE_ASM_RUNS

#elif defined CEK_ISA_NEON
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
#endif

#if !defined TILE_RUNS
#define TILE_RUNS 0
#endif
#if !defined TILE_X
#define TILE_X vf
#define TILE_ALL(p) v_all(*(p))
#endif
#if !defined TILE_ADD
#define TILE_ADD v_fma
#endif
#include "kernels/cpu/tile.h"

void ISA_NAME(drain)(void)
{
    v_drain();
}
