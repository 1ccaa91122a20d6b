/* pack.c - the packers of plain matrices; see pack.h.
 *
 * Owns: every way from strided memory of any type to panels of floats.
 * Must not know: the shape of the whole product. */
#include "backends/cpu/pack.h"

#include <string.h>

enum { LINE = 64 };                      /* elements converted at once: a part of a row that stays in L1 */

pack_way cek__pack_way_a(const gemm_matrix *a)
{
    return a->col_stride == 1 ? PACK_ALONG : a->row_stride == 1 ? PACK_ACROSS : PACK_GATHER;
}

pack_way cek__pack_way_b(const gemm_matrix *b)
{
    return b->col_stride == 1 ? PACK_ACROSS : b->row_stride == 1 ? PACK_ALONG : PACK_GATHER;
}

int64_t cek__pack_step(const pack_operand *a)
{
    return a->way == PACK_DIRECT ? a->col_stride : a->way == PACK_ACROSS ? 0 : 1;
}

static const char *element(const pack_operand *m, int64_t row, int64_t col)
{
    return (const char *)m->at + (row * m->row_stride + col * m->col_stride) * cpu_type_bytes(m->type);
}

static float gather_one(const cpu_kernels *kernels, const pack_operand *m, int64_t row, int64_t col)
{
    float value;
    if (m->type == CPU_F32)
        memcpy(&value, element(m, row, col), 4);
    else
        kernels->load(m->type, 1, element(m, row, col), &value);
    return value;
}

/* [k, k + depth) x [first, first + count), rows of memory across k, into panels of `width`; converted a line at a time. */
static void across(const cpu_kernels *kernels, const pack_operand *m, const char *from, int64_t stride, int64_t depth,
                   int64_t count, int64_t width, float *to)
{
    if (m->type == CPU_F32) {
        kernels->panels(depth, count, width, (const float *)from, stride, to, depth * width);
        return;
    }
    for (int64_t j = 0; j < count; j += width, to += depth * width) {
        const int64_t n = count - j < width ? count - j : width;
        for (int64_t k = 0; k < depth; k++) {
            float line[CPU_NR_MAX] = { 0 };
            kernels->load(m->type, n, from + (k * stride + j) * cpu_type_bytes(m->type), line);
            memcpy(to + k * width, line, (size_t)width * 4);
        }
    }
}

void cek__pack_a(const cpu_kernels *kernels, const pack_operand *a, int64_t row, int64_t rows, int64_t panel_rows,
                 int64_t k, int64_t depth, const walk_scratch *to, walk_a *out)
{
    const int64_t ld = walk_row_floats(depth);
    switch (a->way) {
    case PACK_DIRECT:
        *out = (walk_a){ (const float *)element(a, row, k), panel_rows * a->row_stride, a->row_stride };
        return;
    case PACK_ALONG:
        for (int64_t i = 0; i < rows; i++)
            kernels->load(a->type, depth, element(a, row + i, k), to->a + i * ld);
        *out = (walk_a){ to->a, panel_rows * ld, ld };
        return;
    case PACK_ACROSS:
        across(kernels, a, element(a, row, k), a->col_stride, depth, rows, panel_rows, to->a);
        *out = (walk_a){ to->a, panel_rows * depth, 1 };
        return;
    case PACK_GATHER:
        for (int64_t i = 0; i < rows; i++)
            for (int64_t kk = 0; kk < depth; kk++)
                to->a[i * ld + kk] = gather_one(kernels, a, row + i, k + kk);
        *out = (walk_a){ to->a, panel_rows * ld, ld };
        return;
    }
}

/* Columns of B are rows of memory: each panel is a transpose. Types other than f32 are converted in squares. */
static void b_along(const cpu_kernels *kernels, const pack_operand *b, int64_t k, int64_t depth, int64_t col, int64_t cols,
                    float *to)
{
    const int64_t nr = kernels->nr;
    for (int64_t j = 0; j < cols; j += nr, to += depth * nr) {
        const int64_t n = cols - j < nr ? cols - j : nr;
        if (n < nr)
            memset(to, 0, (size_t)(depth * nr) * 4);
        if (b->type == CPU_F32) {
            kernels->transpose(n, depth, (const float *)element(b, k, col + j), b->col_stride, to, nr);
            continue;
        }
        for (int64_t kk = 0; kk < depth; kk += LINE) {
            float square[CPU_NR_MAX * LINE];
            const int64_t part = depth - kk < LINE ? depth - kk : LINE;
            for (int64_t i = 0; i < n; i++)
                kernels->load(b->type, part, element(b, k + kk, col + j + i), square + i * LINE);
            kernels->transpose(n, part, square, LINE, to + kk * nr, nr);
        }
    }
}

static void b_gather(const cpu_kernels *kernels, const pack_operand *b, int64_t k, int64_t depth, int64_t col, int64_t cols,
                     float *to)
{
    const int64_t nr = kernels->nr;
    for (int64_t j = 0; j < cols; j += nr)
        for (int64_t kk = 0; kk < depth; kk++, to += nr)
            for (int64_t i = 0; i < nr; i++)
                to[i] = j + i < cols ? gather_one(kernels, b, k + kk, col + j + i) : 0;
}

void cek__pack_b(const cpu_kernels *kernels, const pack_operand *b, int64_t k, int64_t depth, int64_t col, int64_t cols,
                 const walk_scratch *to, walk_b *out)
{
    const int64_t nr = kernels->nr, rest = cols % nr;
    *out = (walk_b){ to->b, depth * nr, nr, NULL };
    switch (b->way) {
    case PACK_DIRECT:
        *out = (walk_b){ (const float *)element(b, k, col), nr, b->row_stride, NULL };
        if (rest > 0) {          /* a tile reads whole panels: the last one is copied and filled up */
            kernels->panels(depth, rest, nr, (const float *)element(b, k, col + cols - rest), b->row_stride,
                            to->b, depth * nr);
            out->last = to->b;
        }
        return;
    case PACK_ACROSS:
        across(kernels, b, element(b, k, col), b->row_stride, depth, cols, nr, to->b);
        return;
    case PACK_ALONG:
        b_along(kernels, b, k, depth, col, cols, to->b);
        return;
    case PACK_GATHER:
        b_gather(kernels, b, k, depth, col, cols, to->b);
        return;
    }
}
