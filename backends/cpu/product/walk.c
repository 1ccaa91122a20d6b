/* walk.c - the walk of one task over its blocks; see walk.h.
 *
 * Owns: the order of loops. A block of B stays in L2 while panels of A pass by; a panel of A stays
 * in L1 while the panels of B pass by. Must not know: operands, epilogues, threads. */
#include "backends/cpu/product/walk.h"

#include <stdbool.h>
#include <string.h>

#include "backends/cpu/sizes.h"

size_t cek__walk_scratch(const walk_sizes *s, int64_t nr, void *base, walk_scratch *out)
{
    const int64_t width = round_up(s->nb, nr), pixels = s->mc > s->kc ? s->mc : s->kc;
    const int64_t bytes[] = {
        s->kc * 4,
        s->kc * 4,
        pixels * 4,
        s->mc * 8,
        width / nr * 8,
        s->mc * 8,
        s->a_floats * 4,
        s->b_floats * 4,
        4 * round_up(s->nb, 16) * 4,
        s->with_c ? s->mb * width * 4 : 0,
    };
    void *parts[sizeof bytes / sizeof *bytes];
    size_t used = 0;
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
        parts[i] = base ? (char *)base + used : NULL;
        used += (size_t)round_up(bytes[i], 64);
    }
    *out = (walk_scratch){ parts[0], parts[1], parts[2], parts[3], parts[4],
                           parts[5], parts[6], parts[7], parts[8], parts[9] };
    return used;
}

void cek__walk_panels(int64_t height, const float *at, int64_t lda, int64_t rows, int64_t depth, const walk_scratch *to)
{
    for (int64_t i = 0, p = 0; i < rows; i += height, p++) {
        to->a_panel[p] = at + i * (lda ? lda : depth);
        to->a_rows[p] = rows - i < height ? rows - i : height;
    }
}

void cek__walk_offsets(int32_t *offset, int64_t depth, int64_t step)
{
    for (int64_t k = 0; k < depth; k++)
        offset[k] = (int32_t)(k * step);
}

/* Panels that lie side by side, as those of a transposed A that is read in place. */
static bool are_joined(const walk_scratch *s, int64_t rows)
{
    int64_t p = 0, i = s->a_rows[0];
    while (i < rows && s->a_panel[p + 1] == s->a_panel[0] + i)
        i += s->a_rows[++p];
    return i >= rows;
}

static int64_t panel_columns(const walk *w)
{
    return w->words ? w->words->nr : w->kernels->nr;
}

/* Sums of A and B over k: one chain each, so that it does not matter which of them a matrix is. */
static void sum_lines(const walk *w, int64_t n, int64_t depth, const float *x, const int32_t *offset, float *sum)
{
    if (w->words == NULL)
        w->kernels->sums(depth, n, x, offset, sum);
    else
        for (int64_t k = 0; k < depth; k++)
            w->words->add(n, x + offset[k], sum);
}

static void sum_rows(const walk *w, const walk_scratch *s, int64_t rows, int64_t lda, int64_t depth, float *sum)
{
    if (!w->words && lda == 1 && are_joined(s, rows)) {
        for (int64_t k = 0; k < depth; k++)
            w->kernels->add(rows, sum, s->a_panel[0] + s->a_offset[k], sum);
        return;
    }
    for (int64_t p = 0, i = 0; i < rows; i += s->a_rows[p++])
        if (lda == 1)
            sum_lines(w, s->a_rows[p], depth, s->a_panel[p], s->a_offset, sum + i);
        else
            for (int64_t r = 0; r < s->a_rows[p]; r++)
                sum_lines(w, 1, depth, s->a_panel[p] + r * lda, s->a_offset, sum + i + r);
}

static void sum_columns(const walk *w, const walk_scratch *s, int64_t cols, int64_t depth, float *sum)
{
    const int64_t nr = panel_columns(w);
    for (int64_t p = 0; p * nr < cols; p++)
        sum_lines(w, cols - p * nr < nr ? cols - p * nr : nr, depth, s->b_panel[p], s->b_offset, sum + p * nr);
}

/* The next block of B, as far as the panel `jp` of this one goes: each pass of a panel of A fetches
 * one line of every row. */
typedef struct fetch {
    const char *at;
    int64_t row_bytes, row;
} fetch;

static const float *fetch_at(const fetch *f, int64_t ip, int64_t jp, int64_t nr, const float *b, int64_t *ld)
{
    if (f->at == NULL || ip * 64 >= nr * 4) {
        *ld = 0; /* a line that is in L1 anyway */
        return b;
    }
    *ld = f->row_bytes / 4;
    return (const float *)(const void *)(f->at + jp * nr * 4 + ip * 64);
}

/* What a tile's sums will meet in C comes nearer while they are made. */
static void c_ahead(int64_t rows, int64_t columns, const float *c, int64_t ldc)
{
    for (; rows > 0; rows--, c += ldc)
        for (int64_t j = 0; j < columns; j += 16)
            __builtin_prefetch(c + j, 1, 3);
}

/* All tiles of a block: `rows` rows of A against all columns. */
static void tiles(const walk *w, const walk_task *t, int64_t rows, int64_t lda, int64_t depth, float *c,
                  cpu_store store, const fetch *f, const walk_scratch *s)
{
    cpu_gemm_tile *const *gemm = w->words ? w->words->gemm : w->kernels->gemm;
    cpu_gemm_edge *const *edge = w->words ? w->words->edge : w->kernels->edge;
    const int64_t nr = panel_columns(w);

    for (int64_t ip = 0, i = 0; i < rows; c += s->a_rows[ip] * t->ldc, i += s->a_rows[ip++])
        for (int64_t jp = 0, left = t->cols; left > 0; jp++, left -= nr) {
            const int64_t height = s->a_rows[ip];
            const float *a = s->a_panel[ip], *b = s->b_panel[jp];
            int64_t ldnext;
            const float *next = fetch_at(f, f->row + ip, jp, nr, b, &ldnext);
            if (store != CPU_STREAM)
                c_ahead(height, left < nr ? left : nr, c + jp * nr, t->ldc);
            if (left >= nr)
                gemm[height](depth, a, lda, s->a_offset, b, s->b_offset, c + jp * nr, t->ldc, store, next, ldnext);
            else
                edge[height](left, depth, a, lda, s->a_offset, b, s->b_offset, c + jp * nr, t->ldc, store);
        }
}

/* An empty sum: zeros, or what was there. */
static void walk_empty(const walk *w, const walk_task *t, const walk_scratch *s)
{
    for (int64_t i = 0; i < t->rows && !t->add; i++)
        memset(t->c + i * t->ldc, 0, (size_t)t->cols * 4);
    if (w->take)
        w->take(w->source, t->row, t->rows, t->col, t->cols, t->c, t->ldc, s);
}

void cek__walk(const walk *w, const walk_task *t, const walk_scratch *s)
{
    const int64_t end = t->k + t->depth;

    if (t->depth == 0) {
        walk_empty(w, t, s);
        return;
    }
    for (int64_t k = t->k; k < end; k += w->kc) {
        const int64_t depth = end - k < w->kc ? end - k : w->kc;
        w->b(w->source, k, depth, t->col, t->cols, s);
        fetch f = { 0 };
        if (w->ahead && k + depth < end)
            f.at = w->ahead(w->source, k + depth, t->col, &f.row_bytes);
        if (t->col_sum)
            sum_columns(w, s, t->cols, depth, t->col_sum);
        for (int64_t i = 0; i < t->rows; i += w->mc) {
            const int64_t rows = t->rows - i < w->mc ? t->rows - i : w->mc;
            float *c = t->c + i * t->ldc;
            const int64_t lda = w->a(w->source, t->row + i, rows, k, depth, s);
            if (t->row_sum)
                sum_rows(w, s, rows, lda, depth, t->row_sum + i);
            f.row = i; /* later blocks of A have nothing left to fetch */
            tiles(w, t, rows, lda, depth, c, t->add || k > t->k ? CPU_ADD : t->stream ? CPU_STREAM : CPU_STORE, &f, s);
            if (w->take && k + depth == end)
                w->take(w->source, t->row + i, rows, t->col, t->cols, c, t->ldc, s);
        }
    }
    if (t->stream)
        w->kernels->drain();
}
