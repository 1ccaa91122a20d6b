/* rows.h - operations that take a matrix row by row in floats, whatever the storage type.
 *
 * Owns: the scratch rows of each worker where the type is not f32.
 * Must not know: what is done to a row. */
#ifndef CEK_BACKENDS_CPU_OPS_ROWS_H
#define CEK_BACKENDS_CPU_OPS_ROWS_H

#include "backends/common/extent.h"
#include "backends/cpu/ops/ops.h"

/* Scratch of one worker: one row of floats, rounded up to a cache line so that no two workers
 * share one. */
static inline int64_t row_floats(int64_t columns)
{
    return (columns + 15) & ~(int64_t)15;
}
static inline uint64_t rows_scratch(const cek_op *op, cek_dtype type, int64_t columns)
{
    return type == CEK_F32 ? 0 : (uint64_t)row_floats(columns) * sizeof(float) * (uint64_t)op_dev(op)->workers;
}

/* Row i of a matrix as floats: itself, or converted into the worker's scratch. */
static inline const float *row_read(const cpu_kernels *k, cek_dtype type, const void *matrix, int64_t i,
                                    int64_t columns, float *scratch)
{
    if (type == CEK_F32)
        return (const float *)matrix + i * columns;
    cek__cpu_load(k, type, columns, (const char *)matrix + i * columns * cek__type_bytes(type), scratch);
    return scratch;
}

/* Where to compute row i, and what to do when it is there. */
static inline float *row_place(cek_dtype type, void *matrix, int64_t i, int64_t columns, float *scratch)
{
    return type == CEK_F32 ? (float *)matrix + i * columns : scratch;
}
static inline void row_write(const cpu_kernels *k, cek_dtype type, const float *row, void *matrix, int64_t i,
                             int64_t columns)
{
    if (type != CEK_F32)
        cek__cpu_store(k, type, columns, row, (char *)matrix + i * columns * cek__type_bytes(type));
}

#endif
