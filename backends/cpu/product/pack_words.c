/* pack_words.c - see pack_words.h.
 *
 * Owns: the last word of k, which may not be full, and the words that are missing of a family's step.
 * Must not know: the shape of the whole product. */
#include "backends/cpu/product/pack_words.h"

#include <string.h>

#include "backends/cpu/sizes.h"

enum { LINE = 64 }; /* words copied before they are transposed: a square of them stays in L1 */

/* Elements of k in `depth` words from word k on: one at least. */
static int64_t elements(const pack_operand *m, int64_t k, int64_t depth)
{
    const int64_t unit = m->words->unit;
    return least(depth * unit, m->k - k * unit);
}

/* Element `along` of k in line `across` of what is not k; `stride` is that of k. */
static const char *element(const pack_operand *m, int64_t along, int64_t stride, int64_t across, int64_t other)
{
    return (const char *)m->at + (along * stride + across * other) * cpu_type_bytes(m->type);
}

/* Words of elements that are `stride` apart in memory. */
static void line_copy(const pack_operand *m, const char *from, int64_t stride, int64_t n, float *to, int64_t depth)
{
    const size_t bytes = (size_t)cpu_type_bytes(m->type);
    char *at = (char *)to;

    if (stride == 1)
        memcpy(at, from, (size_t)n * bytes);
    else
        for (int64_t i = 0; i < n; i++)
            memcpy(at + (size_t)i * bytes, from + i * stride * (int64_t)bytes, bytes);
    memset(at + (size_t)n * bytes, 0, (size_t)depth * sizeof *to - (size_t)n * bytes);
}

/* Panels of words where rows of memory lie across k, `depth` words of each, zeros included. */
static void panels_across(const pack_operand *m, const char *from, int64_t ld, int64_t n, int64_t columns,
                          int64_t width, float *to, int64_t depth)
{
    const int64_t full = ceil_div(n, m->words->unit);

    m->words->panels(m->words->nr, n, columns, width, from, ld, to, depth * width);
    for (int64_t j = 0; full < depth && j < columns; j += width)
        memset(to + j * depth + full * width, 0, (size_t)((depth - full) * width) * sizeof *to);
}

/* Rows of A that lie across k in memory, turned along it: squares of words, transposed. */
static void a_turn(const cpu_kernels *kernels, const pack_operand *a, int64_t row, int64_t rows, int64_t k,
                   int64_t depth, float *to, int64_t lda)
{
    for (int64_t i = 0; i < rows; i += a->words->mr)
        for (int64_t kk = 0; kk < depth; kk += LINE) {
            float square[CPU_MR_MAX * LINE];
            const int64_t part = least(LINE, depth - kk), n = least(a->words->mr, rows - i);
            panels_across(a, element(a, (k + kk) * a->words->unit, a->col_stride, row + i, 1), a->col_stride,
                          elements(a, k + kk, part), n, n, square, part);
            kernels->transpose(part, n, square, n, to + i * lda + kk, lda);
        }
}

int64_t cek__pack_words_a(const cpu_kernels *kernels, const pack_operand *a, int64_t row, int64_t rows, int64_t k,
                          int64_t depth, const walk_scratch *to)
{
    const int64_t first = k * a->words->unit, n = elements(a, k, depth), lda = walk_row_floats(depth);
    const int64_t height = round_up(walk_panel_rows(rows, a->words->mr), a->words->height);

    if (a->way == PACK_DIRECT) {
        const int64_t distance = a->row_stride / a->words->unit;
        cek__walk_panels_a(height, (const float *)(const void *)element(a, first, 1, row, a->row_stride), distance,
                           rows, depth, to);
        cek__offsets_make(to->a_offset, depth, 1);
        return distance;
    }
    if (a->way == PACK_ACROSS && !a->words->along) {
        panels_across(a, element(a, first, a->col_stride, row, 1), a->col_stride, n, rows, height, to->a, depth);
        cek__walk_panels_a(height, to->a, 0, rows, depth, to);
        cek__offsets_make(to->a_offset, depth, height);
        return 1;
    }
    if (a->way == PACK_ACROSS)
        a_turn(kernels, a, row, rows, k, depth, to->a, lda);
    else
        for (int64_t i = 0; i < rows; i++) {
            if (a->col_stride == 1 && i + CPU_ROWS_AHEAD < rows)
                cek__pack_row_ahead(element(a, first, 1, row + i + CPU_ROWS_AHEAD, a->row_stride), n * 2);
            line_copy(a, element(a, first, a->col_stride, row + i, a->row_stride), a->col_stride, n, to->a + i * lda,
                      depth);
        }
    cek__walk_panels_a(height, to->a, lda, rows, depth, to);
    cek__offsets_make(to->a_offset, depth, 1);
    return lda;
}

void cek__pack_words_b(const cpu_kernels *kernels, const pack_operand *b, int64_t k, int64_t depth, int64_t col,
                       int64_t cols, float *to)
{
    const int64_t unit = b->words->unit, nr = b->words->nr;

    if (b->way == PACK_ACROSS) {
        panels_across(b, element(b, k * unit, b->row_stride, col, 1), b->row_stride, elements(b, k, depth), cols, nr,
                      to, depth);
        return;
    }
    for (int64_t j = 0; j < cols; j += nr) {
        float *panel = to + j * depth;
        const int64_t n = least(nr, cols - j);
        if (n < nr)
            memset(panel, 0, (size_t)(depth * nr) * sizeof *panel);
        for (int64_t kk = 0; kk < depth; kk += LINE) {
            float square[CPU_NR_MAX * LINE];
            const int64_t part = least(LINE, depth - kk);
            for (int64_t i = 0; i < n; i++)
                line_copy(b, element(b, (k + kk) * unit, b->row_stride, col + j + i, b->col_stride), b->row_stride,
                          elements(b, k + kk, part), square + i * LINE, part);
            kernels->transpose(n, part, square, LINE, panel + kk * nr, nr);
        }
    }
}
