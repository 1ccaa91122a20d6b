/* pack.c - the packers of plain matrices; see pack.h.
 *
 * Owns: every way from strided memory of any type to panels of floats.
 * Must not know: the shape of the whole product. */
#include "backends/cpu/product/pack.h"

#include "backends/cpu/product/pack_words.h"
#include "backends/cpu/sizes.h"

#include <stdlib.h>
#include <string.h>

enum {
    LINE = 64,          /* elements converted at once: a part of a row that stays in L1 */
    LOW_ROWS = 7,       /* of a panel whose rows meet in one set of L1: it has 8 places, and one is B's */
    FEW_COLUMNS = 64,   /* of B, which pass by columns of A that have a line or two in each step */
    SHORT_COLUMN = 512, /* of A, in floats: so near to each other that low panels read lines of them three times */
    DEEPEST = 2         /* times kc: of blocks whose A's columns stay */
};

pack_way cek__pack_way_a(const gemm_matrix *a)
{
    return a->col_stride == 1 ? PACK_ALONG : a->row_stride == 1 ? PACK_ACROSS : PACK_GATHER;
}

pack_way cek__pack_way_b(const gemm_matrix *b)
{
    return b->col_stride == 1 ? PACK_ACROSS : b->row_stride == 1 ? PACK_ALONG : PACK_GATHER;
}

/* Columns are panels already, and the panel beside reads their lines again. Where more columns of B pass by, copies
 * stay in L1, as those do not; of low panels three share a line. Offsets have 32 bits. */
bool cek__pack_columns_stay(const cpu_config *config, const gemm_matrix *a, int64_t n)
{
    const int64_t longest = config->kernels->mr <= CPU_LOW ? SHORT_COLUMN : INT32_MAX / (DEEPEST * config->floats.kc);
    return a->type == CPU_F32 && a->row_stride == 1 && llabs(a->col_stride) <= longest && n <= FEW_COLUMNS;
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

int64_t cek__pack_a(const cpu_kernels *kernels, const pack_operand *a, int64_t row, int64_t rows, int64_t k,
                    int64_t depth, const walk_scratch *to)
{
    int64_t height = walk_panel_rows(rows, kernels->mr);
    const float *at = to->a;
    int64_t lda = walk_row_floats(depth), step = 1;

    if (a->words)
        return cek__pack_words_a(kernels, a, row, rows, k, depth, to);
    switch (a->way) {
    case PACK_DIRECT:
        at = (const float *)element(a, row, k);
        lda = a->row_stride;
        step = a->col_stride;
        if (cek__pack_rows_meet(lda))
            height = walk_panel_rows(rows, least(kernels->mr, LOW_ROWS));
        break;
    case PACK_TURNED:
        for (int64_t i = 0; i < rows; i += height)
            kernels->transpose(least(height, rows - i), depth, (const float *)element(a, row + i, k), a->row_stride,
                               to->a + i * depth, height);
        cek__walk_panels_a(height, at, 0, rows, depth, to);
        cek__offsets_make(to->a_offset, depth, height);
        return 1;
    case PACK_ALONG:
        for (int64_t i = 0; i < rows; i++) {
            if (i + CPU_ROWS_AHEAD < rows)
                cek__pack_row_ahead(element(a, row + i + CPU_ROWS_AHEAD, k), depth * cpu_type_bytes(a->type));
            kernels->load(a->type, depth, element(a, row + i, k), to->a + i * lda);
        }
        break;
    case PACK_ACROSS:
        kernels->panels(a->type, depth, rows, height, element(a, row, k), a->col_stride, to->a, depth * height);
        cek__walk_panels_a(height, at, 0, rows, depth, to);
        cek__offsets_make(to->a_offset, depth, height);
        return 1;
    case PACK_GATHER:
        for (int64_t i = 0; i < rows; i++)
            for (int64_t kk = 0; kk < depth; kk++)
                to->a[i * lda + kk] = gather_one(kernels, a, row + i, k + kk);
        break;
    case PACK_PANELS: break; /* a way of B alone */
    }
    cek__walk_panels_a(height, at, lda, rows, depth, to);
    cek__offsets_make(to->a_offset, depth, step);
    return lda;
}

/* Columns of B are rows of memory: each panel is a transpose. Types other than f32 are converted in
 * squares. */
static void b_along(const cpu_kernels *kernels, const pack_operand *b, int64_t k, int64_t depth, int64_t col,
                    int64_t cols, int64_t width, float *to)
{
    for (int64_t j = 0; j < cols; j += width, to += depth * width) {
        const int64_t n = least(cols - j, width);
        if (n < width)
            memset(to, 0, (size_t)(depth * width) * 4);
        if (b->type == CPU_F32) {
            kernels->transpose(n, depth, (const float *)element(b, k, col + j), b->col_stride, to, width);
            continue;
        }
        for (int64_t kk = 0; kk < depth; kk += LINE) {
            float square[CPU_NR_MAX * LINE];
            const int64_t part = depth - kk < LINE ? depth - kk : LINE;
            for (int64_t i = 0; i < n; i++)
                kernels->load(b->type, part, element(b, k + kk, col + j + i), square + i * LINE);
            kernels->transpose(n, part, square, LINE, to + kk * width, width);
        }
    }
}

static void b_gather(const cpu_kernels *kernels, const pack_operand *b, int64_t k, int64_t depth, int64_t col,
                     int64_t cols, int64_t width, float *to)
{
    for (int64_t j = 0; j < cols; j += width)
        for (int64_t kk = 0; kk < depth; kk++, to += width)
            for (int64_t i = 0; i < width; i++)
                to[i] = j + i < cols ? gather_one(kernels, b, k + kk, col + j + i) : 0;
}

/* Panels are where B is, except a last one whose rows end in the second half. */
static walk_edge b_direct(const cpu_kernels *kernels, const pack_operand *b, int64_t k, int64_t depth, int64_t col,
                          int64_t cols, const walk_scratch *to)
{
    const int64_t nr = kernels->nr, edge = cols % nr, last = cols - edge;

    for (int64_t j = 0; j < cols; j += nr)
        to->b_panel[j / nr] = (const float *)element(b, k, col + j);
    cek__offsets_make(to->b_offset, depth, b->row_stride);
    if (edge <= nr / 2)
        return edge % (nr / 2) ? WALK_PARTS : WALK_WHOLE;
    kernels->panels(b->type, depth, edge, nr, element(b, k, col + last), b->row_stride, to->edge, depth * nr);
    to->b_panel[last / nr] = to->edge;
    cek__offsets_make(to->edge_offset, depth, nr);
    return WALK_APART;
}

static walk_edge b_packed(const pack_operand *b, int64_t nr, int64_t k, int64_t depth, int64_t col, int64_t cols,
                          const walk_scratch *to)
{
    for (int64_t j = 0; j < cols; j += nr)
        to->b_panel[j / nr] = (const float *)b->at + (col + j) * b->row_stride + k * nr;
    cek__offsets_make(to->b_offset, depth, nr);
    return WALK_WHOLE;
}

static void panels_make(const cpu_kernels *kernels, const pack_operand *b, int64_t k, int64_t depth, int64_t col,
                        int64_t cols, int64_t width, float *to)
{
    if (b->words)
        cek__pack_words_b(kernels, b, k, depth, col, cols, to);
    else if (b->way == PACK_ACROSS)
        kernels->panels(b->type, depth, cols, width, element(b, k, col), b->row_stride, to, depth * width);
    else if (b->way == PACK_ALONG)
        b_along(kernels, b, k, depth, col, cols, width, to);
    else
        b_gather(kernels, b, k, depth, col, cols, width, to);
}

/* A panel alone that is half as wide, or less, is packed so: more of it is in L1. */
walk_edge cek__pack_b(const cpu_kernels *kernels, const pack_operand *b, int64_t k, int64_t depth, int64_t col,
                      int64_t cols, const walk_scratch *to)
{
    const int64_t nr = b->words ? b->words->nr : kernels->nr, width = b->words || cols > nr / 2 ? nr : nr / 2;

    if (b->way == PACK_PANELS)
        return b_packed(b, nr, k, depth, col, cols, to);
    if (b->way == PACK_DIRECT && !b->words)
        return b_direct(kernels, b, k, depth, col, cols, to);
    cek__walk_panels_b(width, depth, cols, to);
    panels_make(kernels, b, k, depth, col, cols, width, to->b);
    if (width == nr)
        return WALK_WHOLE;
    cek__offsets_make(to->edge_offset, depth, width);
    return WALK_APART;
}

void cek__pack_panel(const cpu_kernels *kernels, const pack_operand *b, int64_t depth, int64_t col, int64_t cols,
                     float *to)
{
    panels_make(kernels, b, 0, depth, col, cols, b->words ? b->words->nr : kernels->nr, to);
}
