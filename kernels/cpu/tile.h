/* tile.h - the tile of a matrix product: the one loop in which the CPU backend spends its time.
 *
 * Owns: the register tile, in every number of rows up to the full one, so that no row is ever
 * computed in vain; the table of them, TILE_NAME. Whoever includes it says what a word of 4 bytes is: TILE_ALL(p) has
 * it in every lane, TILE_ADD(x, y, sum) multiplies and adds.
 * Must not know: where A and B come from (packed panels or the caller's own memory; see
 * cpu_gemm_tile), blocks, threads.
 *
 * Every sum is one chain over k, in order, whatever the number of rows: results do not depend on
 * how a matrix is cut. */
#include "kernels/cpu/isa.h"
#include "kernels/cpu/table.h"

/* Sums are registers only where the loops over them are gone. clang 14 takes no number of times for that. */
#if defined __clang__
#define TILE_UNROLL _Pragma("clang loop unroll(full)")
#else
#define TILE_UNROLL _Pragma("GCC unroll 16")
#endif

/* The rows of A are reached from one pointer that walks down three rows at a time, because 14 row
 * pointers would not fit the 16 integer registers. The empty asm keeps compilers from "improving"
 * this: without it gcc 12 computes all row addresses first (and loses 15% in spills for some
 * numbers of rows), clang 14 loads all of A's column first (and loses half). */
static inline __attribute__((always_inline)) void tile(int rows, int64_t depth, const float *a, int64_t lda,
                                                       const int32_t *a_offset, const float *b, const int32_t *b_offset,
                                                       float *c, int64_t ldc, cpu_store store, const float *next,
                                                       int64_t ldnext)
{
    vf sum[TILE_ROWS][TILE_VECTORS] = { 0 };
    const int64_t three = 3 * lda;

    for (int64_t k = 0; k < depth; k++) {
        const float *row = a + a_offset[k], *column = b + b_offset[k];
        const vf b0 = v_load(column), b1 = v_load(column + VL);
        __builtin_prefetch(next, 0, 2);
        next += ldnext;
        TILE_UNROLL
        for (int i = 0; i < rows; i++) {
            if (i > 0 && i % 3 == 0) {
                row += three;
                __asm__ volatile("" : "+r"(row) : : "memory");
            }
            const vf x = TILE_ALL(row + i % 3 * lda);
            sum[i][0] = TILE_ADD(x, b0, sum[i][0]);
            sum[i][1] = TILE_ADD(x, b1, sum[i][1]);
        }
    }
    TILE_UNROLL
    for (int i = 0; i < rows; i++, c += ldc) {
        TILE_UNROLL
        for (int j = 0; j < TILE_VECTORS; j++) {
            if (store == CPU_STREAM)
                v_stream(c + j * VL, sum[i][j]);
            else
                v_store(c + j * VL, store == CPU_ADD ? sum[i][j] + v_load(c + j * VL) : sum[i][j]);
        }
    }
}

#define TILE(rows)                                                                                               \
    static void gemm_##rows(int64_t depth, const float *a, int64_t lda, const int32_t *a_offset, const float *b, \
                            const int32_t *b_offset, float *c, int64_t ldc, cpu_store store, const float *next,  \
                            int64_t ldnext)                                                                      \
    {                                                                                                            \
        tile(rows, depth, a, lda, a_offset, b, b_offset, c, ldc, store, next, ldnext);                           \
    }

/* clang-format off */
TILE(1) TILE(2) TILE(3) TILE(4) TILE(5) TILE(6)
#if defined CEK_ISA_AVX512
TILE(7) TILE(8) TILE(9) TILE(10) TILE(11) TILE(12) TILE(13) TILE(14)
#endif
    /* clang-format on */

    cpu_gemm_tile *const ISA_NAME(TILE_NAME)[CPU_MR_MAX + 1] = {
        NULL,   gemm_1, gemm_2, gemm_3,  gemm_4,  gemm_5,  gemm_6,
#if defined CEK_ISA_AVX512
        gemm_7, gemm_8, gemm_9, gemm_10, gemm_11, gemm_12, gemm_13, gemm_14,
#endif
    };
