/* matrix.h - a batch of strided matrices in memory.
 *
 * Owns: the description alone. */
#ifndef CEK_BACKENDS_CPU_PRODUCT_MATRIX_H
#define CEK_BACKENDS_CPU_PRODUCT_MATRIX_H

#include <stdint.h>

#include "kernels/cpu/kernels.h"

/* Element (i, j) of matrix b is at p[b * batch_stride + i * row_stride + j * col_stride]; strides
 * count elements. */
typedef struct gemm_matrix {
    cpu_type type;
    int64_t row_stride, col_stride, batch_stride;
} gemm_matrix;

#endif
