/* transpose_f32.c - a block of a matrix, transposed: what packing along the wrong direction costs.
 *
 * Owns: blocks of 4 columns in registers, of 8 rows where an instruction moves lanes within both halves of a register,
 * and their edges: a line's last block of columns ends with it, and writes a part again.
 * Must not know: panels, blocks of products. */
#include "kernels/cpu/table.h"
#include "kernels/cpu/vector.h"

enum { STRIP = 32 /* floats of each row at a time: 32 rows and their places in the result stay in L1 */ };

/* Row r of a block; lanes i and j of two rows in turn; lanes i and i + 1 of both. */
#define BLOCK(name, vector, memory, ROW, TURN, PAIR)                                \
    static inline void name(const float *from, int64_t ld, float *to, int64_t ldto) \
    {                                                                               \
        const vector a = ROW(0), b = ROW(1), c = ROW(2), d = ROW(3);                \
        const vector ab_low = TURN(a, b, 0, 1), ab_high = TURN(a, b, 2, 3);         \
        const vector cd_low = TURN(c, d, 0, 1), cd_high = TURN(c, d, 2, 3);         \
        *(memory *)to = PAIR(ab_low, cd_low, 0);                                    \
        *(memory *)(to + ldto) = PAIR(ab_low, cd_low, 2);                           \
        *(memory *)(to + 2 * ldto) = PAIR(ab_high, cd_high, 0);                     \
        *(memory *)(to + 3 * ldto) = PAIR(ab_high, cd_high, 2);                     \
    }

#define ROW4(r) (*(const v4_mem *)(from + (r)*ld))
#define TURN4(a, b, i, j) __builtin_shufflevector(a, b, i, 4 + i, j, 4 + j)
#define PAIR4(a, b, i) __builtin_shufflevector(a, b, i, 1 + i, 4 + i, 5 + i)
BLOCK(block_4x4, v4, v4_mem, ROW4, TURN4, PAIR4)

#if defined CEK_ISA_AVX512 || defined CEK_ISA_AVX2
typedef float v8 __attribute__((vector_size(32)));
typedef float v8_mem __attribute__((vector_size(32), aligned(4), may_alias));
#define ROW8(r) __builtin_shufflevector(ROW4(r), ROW4((r) + 4), 0, 1, 2, 3, 4, 5, 6, 7)
#define TURN8(a, b, i, j) __builtin_shufflevector(a, b, i, 8 + i, j, 8 + j, 4 + i, 12 + i, 4 + j, 12 + j)
#define PAIR8(a, b, i) __builtin_shufflevector(a, b, i, 1 + i, 8 + i, 9 + i, 4 + i, 5 + i, 12 + i, 13 + i)
BLOCK(block_8x4, v8, v8_mem, ROW8, TURN8, PAIR8)
enum { HAS_WIDE = 1 };
#else
#define block_8x4 block_4x4
enum { HAS_WIDE = 0 };
#endif

/* All columns of as many rows as a block has. */
#define LINE(block)                                                      \
    for (int64_t j = 0; j < columns; j += 4) {                           \
        const int64_t column = j + 4 < columns ? j : columns - 4;        \
        block(from + i * ld + column, ld, to + column * ldto + i, ldto); \
    }

static void strip(int64_t rows, int64_t columns, const float *from, int64_t ld, float *to, int64_t ldto)
{
    int64_t i = 0;
    if (columns >= 4) {
        for (; HAS_WIDE && i + 8 <= rows; i += 8)
            LINE(block_8x4)
        for (; i + 4 <= rows; i += 4)
            LINE(block_4x4)
    }
    for (; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            to[j * ldto + i] = from[i * ld + j];
}

void ISA_NAME(transpose_f32)(int64_t rows, int64_t columns, const float *from, int64_t ld, float *to, int64_t ldto)
{
    for (int64_t j = 0; j < columns; j += STRIP)
        strip(rows, columns - j < STRIP ? columns - j : STRIP, from + j, ld, to + j * ldto, ldto);
}
