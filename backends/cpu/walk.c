/* walk.c - the walk of one task over its blocks; see walk.h.
 *
 * Owns: the order of loops. A block of B stays in L2 while panels of A pass by; a panel of A stays in L1 while the panels of B
 * pass by. Must not know: operands, epilogues, threads. */
#include "backends/cpu/walk.h"

#include <string.h>

static int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

size_t cek__walk_scratch(const cpu_config *config, int64_t kc, int64_t mb, int64_t nb, int64_t line_floats, int with_c,
                         void *base, walk_scratch *out)
{
    const int64_t width = round_up(nb, config->kernels->nr);
    /* enough for both ways to pack A: rows with their padding, and columns config->mc apart */
    const int64_t by_rows = config->mc * walk_row_floats(kc);
    const int64_t sizes[] = {
        round_up(kc, 16), by_rows + 16, round_up(kc * width, 16), 4 * round_up(line_floats, 16),
        with_c ? round_up(mb * width, 16) : 0,
    };
    void **const parts[] = { (void **)&out->offset, (void **)&out->a, (void **)&out->b, (void **)&out->line, (void **)&out->c };
    size_t used = 0;
    for (int i = 0; i < 5; i++) {
        *parts[i] = base ? (char *)base + used : NULL;
        used += (size_t)sizes[i] * 4;
    }
    return used;
}

/* The sums of a panel of A over k: one chain each, as for the columns of B, so that it does not matter which operand is A. */
static void sum_rows(const walk_a *a, const float *panel, int64_t rows, const int32_t *offset, int64_t depth, float *sum)
{
    for (int64_t k = 0; k < depth; k++)
        for (int64_t i = 0; i < rows; i++)
            sum[i] += panel[offset[k] + i * a->lda];
}

static const float *b_panel(const walk_b *b, int64_t p, int64_t panels, int64_t *ldb, int64_t nr)
{
    const int is_last = b->last && p == panels - 1;
    *ldb = is_last ? nr : b->ldb;
    return is_last ? b->last : b->at + p * b->panel;
}

static void sum_columns(const walk *w, const walk_b *b, int64_t cols, int64_t depth, float *sum)
{
    const int64_t nr = w->config->kernels->nr, panels = (cols + nr - 1) / nr;
    for (int64_t p = 0; p < panels; p++) {
        int64_t ldb;
        const float *row = b_panel(b, p, panels, &ldb, nr);
        const int64_t width = cols - p * nr < nr ? cols - p * nr : nr;
        for (int64_t k = 0; k < depth; k++, row += ldb)
            w->config->kernels->add(width, sum + p * nr, row, sum + p * nr);
    }
}

/* A tile at the right edge of a C without room for it. */
static void edge_tile(cpu_gemm_tile *tile, int64_t depth, const float *a, int64_t lda, const int32_t *offset,
                      const float *b, int64_t ldb, int64_t rows, int64_t cols, float *c, int64_t ldc, int add)
{
    float whole[CPU_MR_MAX * CPU_NR_MAX] __attribute__((aligned(64)));
    tile(depth, a, lda, offset, b, ldb, whole, CPU_NR_MAX, 0, a, 0);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            c[i * ldc + j] = whole[i * CPU_NR_MAX + j] + (add ? c[i * ldc + j] : 0);
}

/* All tiles of a block: `rows` rows of A against all columns. */
static void tiles(const walk *w, const walk_task *t, const walk_a *a, int64_t rows, int64_t panel_rows,
                  const walk_b *b, int64_t depth, float *c, int add, const walk_scratch *s)
{
    const cpu_kernels *kernels = w->config->kernels;
    const int64_t nr = kernels->nr, panels = (t->cols + nr - 1) / nr;

    for (int64_t i = 0, ip = 0; i < rows; i += panel_rows, ip++) {
        const int64_t height = rows - i < panel_rows ? rows - i : panel_rows;
        const float *panel = a->at + ip * a->panel;
        for (int64_t p = 0; p < panels; p++) {
            int64_t ldb;
            const float *bp = b_panel(b, p, panels, &ldb, nr);
            const int64_t width = t->cols - p * nr;
            float *to = c + i * t->ldc + p * nr;
            if (width >= nr || t->padded)
                kernels->gemm[height](depth, panel, a->lda, s->offset, bp, ldb, to, t->ldc, add, bp, 0);
            else
                edge_tile(kernels->gemm[height], depth, panel, a->lda, s->offset, bp, ldb, height, width, to, t->ldc, add);
        }
    }
}

/* An empty sum: zeros, or what was there. */
static void walk_empty(const walk *w, const walk_task *t, const walk_scratch *s)
{
    for (int64_t i = 0; i < t->rows && !t->add; i++)
        memset(t->c + i * t->ldc, 0, (size_t)t->cols * 4);
    if (w->finish)
        w->finish(w->source, t->row, t->rows, t->col, t->cols, t->c, t->ldc, s);
}

void cek__walk(const walk *w, const walk_task *t, const walk_scratch *s)
{
    const int64_t end = t->k + t->depth;
    /* whole panels per block of rows, and panels of like heights */
    const int64_t panel_rows = walk_panel_rows(t->rows, w->config->kernels->mr);
    const int64_t mc = w->config->mc / w->config->kernels->mr * panel_rows;
    const int64_t step = w->step ? w->step : panel_rows;

    if (t->depth == 0) {
        walk_empty(w, t, s);
        return;
    }
    for (int64_t i = 0; i < w->kc; i++)
        s->offset[i] = (int32_t)(i * step);
    for (int64_t k = t->k; k < end; k += w->kc) {
        const int64_t depth = end - k < w->kc ? end - k : w->kc;
        walk_b b;
        w->b(w->source, k, depth, t->col, t->cols, s, &b);
        if (t->col_sum)
            sum_columns(w, &b, t->cols, depth, t->col_sum);
        for (int64_t i = 0; i < t->rows; i += mc) {
            const int64_t rows = t->rows - i < mc ? t->rows - i : mc;
            float *c = t->c + i * t->ldc;
            walk_a a;
            w->a(w->source, t->row + i, rows, panel_rows, k, depth, s, &a);
            if (t->row_sum)
                for (int64_t r = 0; r < rows; r += panel_rows)
                    sum_rows(&a, a.at + r / panel_rows * a.panel, rows - r < panel_rows ? rows - r : panel_rows,
                             s->offset, depth, t->row_sum + i + r);
            tiles(w, t, &a, rows, panel_rows, &b, depth, c, t->add || k > t->k, s);
            if (w->finish && k + depth == end)
                w->finish(w->source, t->row + i, rows, t->col, t->cols, c, t->ldc, s);
        }
    }
}
