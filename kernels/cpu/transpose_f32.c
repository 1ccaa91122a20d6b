/* transpose_f32.c - a block of a matrix, transposed: what packing along the wrong direction costs.
 *
 * Owns: the 4 x 4 blocks in registers and their edges.
 * Must not know: panels, blocks of products. */
#include "kernels/cpu/table.h"
#include "kernels/cpu/vector.h"

static inline void transpose_4x4(const float *from, int64_t ld, float *to, int64_t ldto)
{
    const v4 a = *(const v4_mem *)from, b = *(const v4_mem *)(from + ld);
    const v4 c = *(const v4_mem *)(from + 2 * ld), d = *(const v4_mem *)(from + 3 * ld);
    const v4 ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const v4 cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *(v4_mem *)to = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
    *(v4_mem *)(to + ldto) = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
    *(v4_mem *)(to + 2 * ldto) = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
    *(v4_mem *)(to + 3 * ldto) = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
}

void ISA_NAME(transpose_f32)(int64_t rows, int64_t columns, const float *from, int64_t ld, float *to, int64_t ldto)
{
    int64_t i = 0;
    for (; i + 4 <= rows; i += 4) {
        int64_t j = 0;
        for (; j + 4 <= columns; j += 4)
            transpose_4x4(from + i * ld + j, ld, to + j * ldto + i, ldto);
        for (; j < columns; j++)
            for (int64_t r = i; r < i + 4; r++)
                to[j * ldto + r] = from[r * ld + j];
    }
    for (; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            to[j * ldto + i] = from[i * ld + j];
}
