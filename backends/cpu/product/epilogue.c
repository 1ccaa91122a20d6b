/* epilogue.c - see epilogue.h.
 *
 * Owns: rows of a result on their way to memory. Must not know: blocks of products, tasks.
 *
 * What memory has as rows of floats goes there by one pass over all rows. All else goes by pieces, which stay in L1
 * while they are finished, and then become what memory has. */
#include "backends/cpu/product/epilogue.h"

#include <stddef.h>

#include "backends/cpu/sizes.h"

enum {
    PIECE = 1024, /* floats: 4 KiB, of which there may be three */
    ACROSS = 32,  /* columns of a piece that lie along memory, so that a piece has as many of each */
    SHORT = 32,   /* floats of a row, of which many are copied behind each other sooner than each is stored by a call */
};

typedef struct piece {
    int64_t rows, cols;
} piece;

static char *element(const void *at, const gemm_matrix *m, int64_t row, int64_t col)
{
    return (char *)at + (row * m->row_stride + col * m->col_stride) * cpu_type_bytes(m->type);
}

/* Rows of n elements, `bytes` apart in memory. Where nothing lies between them on either side, they are one. */
static void rows_load(const cpu_kernels *kernels, cpu_type type, int64_t rows, int64_t n, const char *from,
                      int64_t bytes, float *to, int64_t ld)
{
    if (ld == n && bytes == n * cpu_type_bytes(type)) {
        kernels->load(type, rows * n, from, to);
        return;
    }
    for (int64_t i = 0; i < rows; i++, from += bytes, to += ld)
        kernels->load(type, n, from, to);
}

static void rows_store(const cpu_kernels *kernels, cpu_type type, int64_t rows, int64_t n, const float *from,
                       int64_t ld, char *to, int64_t bytes)
{
    if (ld == n && bytes == n * cpu_type_bytes(type)) {
        kernels->store(type, rows * n, from, to);
        return;
    }
    for (int64_t i = 0; i < rows; i++, from += ld, to += bytes)
        kernels->store(type, n, from, to);
}

/* Nothing lies between rows of so many columns. */
static int is_dense(const gemm_matrix *m, int64_t cols)
{
    return m->col_stride == 1 && m->row_stride == cols;
}

static int is_plain(const gemm_matrix *m)
{
    return m->type == CPU_F32 && m->col_stride == 1;
}

/* Elements of a matrix to floats and back. */
static void piece_load(const cpu_kernels *kernels, piece p, const gemm_matrix *m, const char *from, float *to,
                       int64_t ld)
{
    const int64_t bytes = cpu_type_bytes(m->type);
    float turned[PIECE] __attribute__((aligned(64)));

    if (m->col_stride == 1) {
        rows_load(kernels, m->type, p.rows, p.cols, from, m->row_stride * bytes, to, ld);
    } else if (m->row_stride == 1) {
        rows_load(kernels, m->type, p.cols, p.rows, from, m->col_stride * bytes, turned, p.rows);
        kernels->transpose(p.cols, p.rows, turned, p.rows, to, ld);
    } else {
        for (int64_t i = 0; i < p.rows; i++)
            for (int64_t j = 0; j < p.cols; j++)
                kernels->load(m->type, 1, from + (i * m->row_stride + j * m->col_stride) * bytes, to + i * ld + j);
    }
}

static void piece_store(const cpu_kernels *kernels, piece p, const gemm_matrix *m, const float *from, int64_t ld,
                        char *to)
{
    const int64_t bytes = cpu_type_bytes(m->type);
    float turned[PIECE] __attribute__((aligned(64)));

    if (m->col_stride == 1) {
        rows_store(kernels, m->type, p.rows, p.cols, from, ld, to, m->row_stride * bytes);
    } else if (m->row_stride == 1) {
        kernels->transpose(p.rows, p.cols, from, ld, turned, p.rows);
        rows_store(kernels, m->type, p.cols, p.rows, turned, p.rows, to, m->col_stride * bytes);
    } else {
        for (int64_t i = 0; i < p.rows; i++)
            for (int64_t j = 0; j < p.cols; j++)
                kernels->store(m->type, 1, from + i * ld + j, to + (i * m->row_stride + j * m->col_stride) * bytes);
    }
}

/* A piece from (row, col) on, whose sums are at `sums`; `width` floats are a row of it. */
static void piece_finish(const cpu_kernels *kernels, const epilogue *e, piece p, int64_t row, int64_t col,
                         const float *sums, int64_t ld, int64_t width)
{
    float floats[PIECE] __attribute__((aligned(64))), other[PIECE] __attribute__((aligned(64)));
    char *c = element(e->c, &e->to, row, col);

    if (e->act != CPU_ACT_NONE || e->bias || e->row_bias) {
        kernels->finish(e->act, p.rows, p.cols, sums, ld, e->bias ? e->bias + col : NULL,
                        e->row_bias ? e->row_bias + row : NULL, floats, width);
        sums = floats, ld = width;
    }
    if (e->deriv != CPU_ACT_NONE) {
        piece_load(kernels, p, &e->ref_at, element(e->ref, &e->ref_at, row, col), other, width);
        kernels->deriv(e->deriv, p.rows, p.cols, sums, ld, other, width, floats, width);
        sums = floats, ld = width;
    }
    if (e->accumulate && is_plain(&e->to)) {
        float *to = (float *)(void *)c;
        for (int64_t i = 0; i < p.rows; i++, to += e->to.row_stride)
            kernels->add(p.cols, to, sums + i * ld, to);
        return;
    }
    if (e->accumulate) {
        piece_load(kernels, p, &e->to, c, other, width);
        for (int64_t i = 0; i < p.rows; i++)
            kernels->add(p.cols, other + i * width, sums + i * ld, floats + i * width);
        sums = floats, ld = width;
    }
    if (ld != p.cols && p.cols <= SHORT && is_dense(&e->to, p.cols)) {
        kernels->finish(CPU_ACT_NONE, p.rows, p.cols, sums, ld, NULL, NULL, floats, p.cols);
        sums = floats, ld = p.cols;
    }
    piece_store(kernels, p, &e->to, sums, ld, c);
}

void cek__epilogue(const cpu_kernels *kernels, const epilogue *e, int64_t row, int64_t rows, int64_t col, int64_t cols,
                   const float *sums, int64_t ld)
{
    const int nothing = e->act == CPU_ACT_NONE && !e->bias && !e->row_bias;
    const int derived = e->deriv != CPU_ACT_NONE;

    if (is_plain(&e->to) && !e->accumulate && (!derived || (nothing && is_plain(&e->ref_at)))) {
        float *c = (float *)(void *)element(e->c, &e->to, row, col);
        const int64_t ldc = e->to.row_stride;
        if (derived)
            kernels->deriv(e->deriv, rows, cols, sums, ld,
                           (const float *)(const void *)element(e->ref, &e->ref_at, row, col), e->ref_at.row_stride, c,
                           ldc);
        else if (c != sums || !nothing)
            kernels->finish(e->act, rows, cols, sums, ld, e->bias ? e->bias + col : NULL,
                            e->row_bias ? e->row_bias + row : NULL, c, ldc);
        return;
    }
    /* columns that are rows there, as those of sums that were made in exchanged roles */
    if (nothing && !derived && !e->accumulate && e->to.type == CPU_F32 && e->to.row_stride == 1) {
        kernels->transpose(rows, cols, sums, ld, (float *)(void *)element(e->c, &e->to, row, col), e->to.col_stride);
        return;
    }

    const int64_t most_cols = e->to.col_stride == 1 ? PIECE : ACROSS;
    const int64_t width = cols <= PIECE && is_dense(&e->to, cols) ? cols : round_up(least(cols, most_cols), 16);
    const int64_t height = PIECE / width;
    for (int64_t i = 0; i < rows; i += height)
        for (int64_t j = 0; j < cols; j += width)
            piece_finish(kernels, e, (piece){ least(height, rows - i), least(width, cols - j) }, row + i, col + j,
                         sums + i * ld + j, ld, width);
}
