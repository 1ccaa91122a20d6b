/* gemm_f32.c - tiles of products of floats.
 *
 * Owns: what a word is to tile.h: a float; sums by fused multiply-add. Must not know: the loop. */
#include "kernels/cpu/isa.h"

#define TILE_NAME gemm_f32_tiles
#define TILE_EDGE gemm_f32_edges
#define TILE_ALL(p) v_all(*(p))
#define TILE_ADD v_fma
#include "kernels/cpu/tile.h"

void ISA_NAME(drain)(void)
{
    v_drain();
}
