/* epilogue.h - from finished sums to the result: bias, activation, derivative, accumulation, type,
 * strides.
 *
 * Owns: the formula of gemm.h, applied to a block. Must not know: how the sums were made. */
#ifndef CEK_BACKENDS_CPU_PRODUCT_EPILOGUE_H
#define CEK_BACKENDS_CPU_PRODUCT_EPILOGUE_H

#include "backends/cpu/product/matrix.h"

typedef struct epilogue {
    void *c;
    gemm_matrix to;
    int accumulate;
    cpu_act act, deriv;
    const float *bias, *row_bias; /* along columns, along rows; NULL = none */
    const void *ref;              /* where deriv */
    gemm_matrix ref_at;
} epilogue;

/* cek__epilogue - takes the sums of rows [row, row + rows) x columns [col, col + cols); `sums` is
 * element (row, col). `sums` may be the place in C itself (f32, col_stride 1) where nothing is
 * accumulated. */
void cek__epilogue(const cpu_kernels *kernels, const epilogue *e, int64_t row, int64_t rows, int64_t col, int64_t cols,
                   const float *sums, int64_t ld);

#endif
