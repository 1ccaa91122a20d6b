/* epilogue.c - see epilogue.h.
 *
 * Owns: rows of a result on their way to memory. Must not know: blocks, tasks. */
#include "backends/cpu/product/epilogue.h"

#include <string.h>

static char *element(const void *at, const gemm_matrix *m, int64_t row, int64_t col)
{
    return (char *)at + (row * m->row_stride + col * m->col_stride) * cpu_type_bytes(m->type);
}

/* n elements, `stride` apart, to floats and back. */
static void row_load(const cpu_kernels *kernels, cpu_type type, int64_t n, const char *from, int64_t stride, float *to)
{
    if (stride == 1) {
        kernels->load(type, n, from, to);
        return;
    }
    const int64_t bytes = stride * cpu_type_bytes(type);
    for (int64_t i = 0; i < n; i++)
        if (type == CPU_F32)
            memcpy(to + i, from + i * bytes, 4);
        else
            kernels->load(type, 1, from + i * bytes, to + i);
}

static void row_store(const cpu_kernels *kernels, cpu_type type, int64_t n, const float *from, char *to, int64_t stride)
{
    if (stride == 1) {
        kernels->store(type, n, from, to);
        return;
    }
    const int64_t bytes = stride * cpu_type_bytes(type);
    for (int64_t i = 0; i < n; i++)
        if (type == CPU_F32)
            memcpy(to + i * bytes, from + i, 4);
        else
            kernels->store(type, 1, from + i, to + i * bytes);
}

void cek__epilogue(const cpu_kernels *kernels, const epilogue *e, int64_t row, int64_t rows, int64_t col, int64_t cols,
                   const float *sums, int64_t ld, float *line)
{
    const int plain = e->to.type == CPU_F32 && e->to.col_stride == 1;
    const int ref_plain = e->ref_at.type == CPU_F32 && e->ref_at.col_stride == 1;
    const int nothing = e->act == CPU_ACT_NONE && !e->bias && !e->row_bias;
    const int as_it_is = nothing && e->deriv == CPU_ACT_NONE && !e->accumulate;
    float *other = line + (cols + 15) / 16 * 16;

    /* all rows at once, which may be short, where they go to floats by one pass */
    if (plain && !e->accumulate && (e->deriv == CPU_ACT_NONE || (nothing && ref_plain))) {
        float *c = (float *)(void *)element(e->c, &e->to, row, col);
        const int64_t ldc = e->to.row_stride;
        if (e->deriv != CPU_ACT_NONE)
            kernels->deriv(e->deriv, rows, cols, sums, ld,
                           (const float *)(const void *)element(e->ref, &e->ref_at, row, col), e->ref_at.row_stride, c,
                           ldc);
        else if (c != sums || !nothing)
            kernels->finish(e->act, rows, cols, sums, ld, e->bias ? e->bias + col : NULL,
                            e->row_bias ? e->row_bias + row : NULL, c, ldc);
        return;
    }
    if (as_it_is && e->to.col_stride == 1) {
        for (int64_t i = 0; i < rows; i++, sums += ld)
            kernels->store(e->to.type, cols, sums, element(e->c, &e->to, row + i, col));
        return;
    }
    /* and columns that are rows there, as those of sums that were made in exchanged roles */
    if (as_it_is && e->to.type == CPU_F32 && e->to.row_stride == 1) {
        kernels->transpose(rows, cols, sums, ld, (float *)(void *)element(e->c, &e->to, row, col), e->to.col_stride);
        return;
    }

    for (int64_t i = 0; i < rows; i++, sums += ld) {
        char *c = element(e->c, &e->to, row + i, col);
        float *to = plain && !e->accumulate ? (float *)c : line;
        if (to != sums || !nothing)
            kernels->finish(e->act, 1, cols, sums, 0, e->bias ? e->bias + col : NULL,
                            e->row_bias ? e->row_bias + row + i : NULL, to, 0);
        if (e->deriv != CPU_ACT_NONE) {
            const char *ref = element(e->ref, &e->ref_at, row + i, col);
            if (!ref_plain)
                row_load(kernels, e->ref_at.type, cols, ref, e->ref_at.col_stride, other);
            kernels->deriv(e->deriv, 1, cols, to, 0, ref_plain ? (const float *)(const void *)ref : other, 0, to, 0);
        }
        if (e->accumulate && plain) {
            kernels->add(cols, (float *)c, line, (float *)c);
            continue;
        }
        if (e->accumulate) {
            row_load(kernels, e->to.type, cols, c, e->to.col_stride, other);
            kernels->add(cols, other, line, line);
        }
        if (to == line)
            row_store(kernels, e->to.type, cols, line, c, e->to.col_stride);
    }
}
