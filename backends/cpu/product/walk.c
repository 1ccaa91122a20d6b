/* walk.c - the walk of one task over its blocks; see walk.h.
 *
 * Owns: the order of loops. A block of B stays in L2 while panels of A pass by; a panel of A stays
 * in L1 while the panels of B pass by. Must not know: operands, epilogues, threads. */
#include "backends/cpu/product/walk.h"

#include <string.h>

#include "backends/cpu/sizes.h"

/* The next bytes, of whole lines. */
static void *part_of(uintptr_t *at, int64_t bytes)
{
    const uintptr_t part = *at;
    *at += (uintptr_t)round_up(bytes, 64);
    return (void *)part;
}

size_t cek__walk_scratch(const walk_sizes *s, int64_t nr, void *base, walk_scratch *out)
{
    const int64_t width = round_up(s->nb, nr), pixels = s->mc > s->kc ? s->mc : s->kc;
    const int64_t blocks = s->nc && s->nc < s->nb ? ceil_div(s->mb, s->mc) : 1; /* of A, kept */
    uintptr_t at = (uintptr_t)base;

    out->a_offset = part_of(&at, blocks * s->kc * 4);
    out->b_offset = part_of(&at, s->kc * 4);
    out->pixel_offset = part_of(&at, pixels * 4);
    out->a_panel = part_of(&at, blocks * s->mc * 8);
    out->b_panel = part_of(&at, width / nr * 8);
    out->a_rows = part_of(&at, blocks * s->mc * 8);
    out->a = part_of(&at, blocks * s->a_floats * 4);
    out->b = part_of(&at, s->b_floats * 4);
    out->edge = part_of(&at, s->edge_floats * 4);
    out->edge_offset = part_of(&at, s->kc * 4);
    out->line = part_of(&at, round_up(s->nb, 16) * 4);
    out->c = part_of(&at, s->c_floats * 4);
    return (size_t)(at - (uintptr_t)base);
}

void cek__walk_panels_a(int64_t height, const float *at, int64_t lda, int64_t rows, int64_t depth,
                        const walk_scratch *to)
{
    for (int64_t i = 0, p = 0; i < rows; i += to->a_rows[p++]) {
        to->a_panel[p] = at + i * (lda ? lda : depth);
        to->a_rows[p] = lda ? walk_panel_next(rows - i, height) : least(rows - i, height);
    }
}

void cek__walk_panels_b(int64_t nr, int64_t depth, int64_t cols, const walk_scratch *to)
{
    for (int64_t p = 0; p * nr < cols; p++)
        to->b_panel[p] = to->b + p * depth * nr;
    cek__offsets_make(to->b_offset, depth, nr);
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
        sum_lines(w, rows, depth, s->a_panel[0], s->a_offset, sum);
        return;
    }
    for (int64_t p = 0, i = 0; i < rows; i += s->a_rows[p++])
        if (lda == 1)
            sum_lines(w, s->a_rows[p], depth, s->a_panel[p], s->a_offset, sum + i);
        else
            for (int64_t r = 0; r < s->a_rows[p]; r++)
                sum_lines(w, 1, depth, s->a_panel[p] + r * lda, s->a_offset, sum + i + r);
}

static void sum_columns(const walk *w, const walk_scratch *s, int64_t cols, walk_edge edge, int64_t depth, float *sum)
{
    const int64_t nr = panel_columns(w), last = cols / nr;

    if (edge == WALK_APART) {
        sum_lines(w, cols - last * nr, depth, s->b_panel[last], s->edge_offset, sum + last * nr);
        cols = last * nr;
    }
    /* panels that lie side by side, in an operand that is read in place, are the parts of its rows */
    for (int64_t p = 0, n; p * nr < cols; p += ceil_div(n, nr)) {
        for (n = nr; p * nr + n < cols && s->b_panel[p + n / nr] == s->b_panel[p] + n;)
            n += nr;
        n = least(n, cols - p * nr);
        sum_lines(w, n, depth, s->b_panel[p], s->b_offset, sum + p * nr);
    }
}

/* What comes into L2 while tiles work: during the first panels of A the rows of its next block, during the last ones
 * the next block of B, between them the next panel of A, which may have gone to L3 since it was packed, or lies where
 * no panel came by yet. Without rows: nothing. */
typedef struct fetch {
    cpu_ahead a, b;
    int64_t behind;      /* panels of A behind this block of it */
    bool panels;         /* the next one of A is asked for */
    const float *a_next; /* the first of these, or NULL */
} fetch;

/* A block of B. */
typedef struct b_block {
    const float *lies; /* or NULL: full panels lie there, rows at pixel_offset, and the first panel of A packs them */
    walk_edge edge;
} b_block;

/* What a block's tiles know of its runs of k; see cpu_gemm_tiles. */
typedef struct block_runs {
    bool b;                 /* B's full panels have them */
    bool edge;              /* its last columns do, by steps of their own */
    bool rows;              /* rows of A do, */
    bool whole;             /* and count on from one to the next */
    int64_t column_step;    /* or A's columns, which lie so far apart; 0: they do not */
    const int32_t *offsets; /* of B's last columns */
} block_runs;

static block_runs runs_of(const walk *w, int64_t cols, int64_t lda, int64_t depth, int64_t stretch, walk_edge edge,
                          const walk_scratch *s)
{
    const int64_t nr = panel_columns(w), last = cols % nr;
    block_runs runs = { .offsets = edge == WALK_APART ? s->edge_offset : s->b_offset };
    if (w->words || stretch < CPU_RUN || depth < CPU_RUN)
        return runs;
    const int64_t step = cols >= nr ? (int64_t)s->b_offset[1] - s->b_offset[0] : 0;
    const int64_t edge_step = last && edge != WALK_PARTS ? (int64_t)runs.offsets[1] - runs.offsets[0] : 0;
    runs.b = step && (w->kernels->any_step || step == nr) && cek__offsets_count(s->b_offset, depth, step);
    if (edge_step && (w->kernels->any_step || edge_step == nr || last <= nr / 2))
        runs.edge = (runs.b && edge != WALK_APART) || cek__offsets_count(runs.offsets, depth, edge_step);
    if (!runs.b && !runs.edge)
        return runs;
    runs.whole = cek__offsets_count(s->a_offset, depth, 1);
    runs.rows = runs.whole || cek__offsets_count_in_runs(s->a_offset, depth);
    if (!runs.rows && w->by_columns && lda == 1 && s->a_offset[1] > 1 &&
        cek__offsets_count(s->a_offset, depth, s->a_offset[1]))
        runs.column_step = s->a_offset[1];
    return runs;
}

/* Those of a panel of A and one of B: columns of as many rows, or all where tiles take any step. */
static cpu_runs panel_runs(const walk *w, const block_runs *runs, bool b, int64_t height)
{
    if (!b)
        return CPU_NO_RUNS;
    if (runs->rows)
        return runs->whole ? CPU_WHOLE_ROWS : CPU_RUNS_OF_ROWS;
    if (runs->column_step && (w->kernels->any_step || height == runs->column_step))
        return CPU_RUNS_OF_COLUMNS;
    return w->kernels->any_step ? CPU_RUNS_OF_B : CPU_NO_RUNS;
}

/* Lines that are asked for, a group of them in each stretch. */
static int64_t groups_of(const cpu_ahead *ahead)
{
    return ceil_div(ahead->rows * ahead->width, CPU_FLOATS_AHEAD);
}

/* The longest stretches, whole runs if it can be, in which so many steps ask for so many groups. */
static int64_t stretch_for(int64_t groups, int64_t steps, int64_t shortest, int64_t longest)
{
    return least(most(steps / most(groups, 1) / CPU_RUN * CPU_RUN, shortest), longest);
}

/* How many panels of A, the last ones, bring the next block of B: of high ones in short stretches, so that A's has its
 * turn, too, and of all in shorter ones where panels are few. */
static int64_t b_ahead_panels(const walk *w, cpu_ahead *b, int64_t panels, int64_t panel_tiles, int64_t depth,
                              int64_t stretch)
{
    const int64_t groups = groups_of(b), longest = cpu_stretch_bringing(stretch, w->kernels->mr);
    const int64_t shortest = panels == 1 ? CPU_LINES_AHEAD / 2 : CPU_RUN; /* one panel reads two lines of B in a step */
    b->stretch = w->b_stays || stretch < CPU_RUN ? longest
                                                 : stretch_for(groups, panels * panel_tiles * depth, shortest, longest);
    return ceil_div(groups, panel_tiles * ceil_div(depth, b->stretch));
}

/* The rows of the next panel, whole or where they start, all of them asked for by the last of the tiles. */
static cpu_ahead rows_next(walk_rows ahead, const float *a, int64_t height, int64_t depth, int64_t lda, int64_t tiles,
                           int64_t stretch)
{
    cpu_ahead next = cpu_ahead_rows(a, height, ahead == WALK_ROW_STARTS ? CPU_FLOATS_AHEAD : depth, lda);
    next.stretch = stretch_for(groups_of(&next), tiles * depth, 1, stretch);
    return next;
}

/* The next panel where it is packed, or one run of memory: of high tiles all of it, if there are enough of them; low
 * and narrow ones have no time for more than its start. */
static cpu_ahead panel_next(const float *a, int64_t height, int64_t depth, int64_t tiles, bool whole, int64_t stretch)
{
    const int64_t groups = ceil_div(height * depth, CPU_FLOATS_AHEAD);
    return cpu_ahead_from(a, whole ? stretch_for(groups, tiles * depth, CPU_PACE, stretch) : stretch);
}

/* Steps of k, of which high tiles make one stretch where nothing of C must be asked for: what they do between two costs
 * a fifth of 8 steps, a twentieth of 48. */
enum { SHALLOW = 64 };

/* All tiles of a block: `rows` rows of A against `cols` columns. */
static void tiles(const walk *w, int64_t rows, int64_t cols, int64_t lda, int64_t depth, float *c, int64_t ldc,
                  cpu_store store, fetch *f, b_block from, const walk_scratch *s)
{
    cpu_gemm_copy *const *copy = w->kernels->copy;
    cpu_gemm_tiles *const *gemm = w->words ? w->words->gemm : w->kernels->gemm;
    cpu_gemm_edge *const *edge = w->words ? w->words->edge : w->kernels->edge;
    const int64_t nr = panel_columns(w), panel_tiles = ceil_div(cols, nr);
    const int64_t a_panels = ceil_div(rows, s->a_rows[0]), panels = a_panels + f->behind;
    const bool shallow = depth < SHALLOW && !w->words && w->kernels->mr > CPU_LOW && !w->c_waits;
    const int64_t stretch = shallow ? SHALLOW
                                    : cpu_stretch(depth, w->words ? w->words->mr : w->kernels->mr, cols <= nr / 2);
    const bool whole = w->kernels->mr > CPU_LOW && cols > nr / 2; /* there is time to ask for a whole panel */
    const int64_t b_panels = b_ahead_panels(w, &f->b, panels, panel_tiles, depth, stretch);
    const int64_t a_asking = most(a_panels - most(b_panels - f->behind, 0), 1);
    f->a.stretch = stretch_for(groups_of(&f->a), a_asking * panel_tiles * depth, 1, stretch);
    const block_runs block = runs_of(w, cols, lda, depth, stretch, from.edge, s);

    for (int64_t ip = 0, i = 0; i < rows; c += s->a_rows[ip++] * ldc) {
        const int64_t height = s->a_rows[ip];
        const float *a = s->a_panel[ip];
        const cpu_runs runs = panel_runs(w, &block, block.b, height);
        i += height;
        const float *a_next = !f->panels ? NULL : i < rows ? s->a_panel[ip + 1] : f->a_next;
        cpu_ahead next = a_next ? panel_next(a_next, height, depth, panel_tiles, whole, stretch)
                                : cpu_ahead_none(a, stretch);
        if (w->a_rows_ahead)
            next = rows_next(w->a_rows_ahead, a + height * lda, height, depth, lda, panel_tiles, stretch);
        for (int64_t jp = 0, full; jp < panel_tiles; jp += full) {
            const float *const *b = &s->b_panel[jp];
            const int64_t left = cols - jp * nr;
            cpu_ahead *ahead = f->b.rows > 0 && panels - ip <= b_panels ? &f->b : f->a.rows > 0 ? &f->a : &next;
            const bool copies = from.lies && ip == 0;
            full = left > nr && ahead == &next && !copies ? left / nr : 1; /* what others ask for ends within rows */
            if (left < nr)
                edge[height](left, depth, a, lda, s->a_offset, *b, block.offsets, c + jp * nr, ldc, store, ahead,
                             panel_runs(w, &block, block.edge, height), (int)height);
            else if (copies)
                copy[height](depth, a, lda, s->a_offset, from.lies + jp * nr, s->pixel_offset, c + jp * nr, ldc, store,
                             ahead, s->b + jp * depth * nr);
            else
                gemm[height](&(cpu_tiles){ .count = full, .b = 1, .c = nr }, depth, a, lda, s->a_offset, b, s->b_offset,
                             c + jp * nr, ldc, store, ahead, runs, (int)height);
        }
    }
}

/* An empty sum: zeros, or what was there. */
static void walk_empty(const walk *w, const walk_task *t)
{
    for (int64_t i = 0; i < t->rows && !t->add; i++)
        memset(t->c + i * t->ldc, 0, (size_t)t->cols * 4);
    if (w->take)
        w->take(w->source, t->row, t->rows, t->col, t->cols, t->c, t->ldc);
}

/* The memory of the rows from i on: where A is kept for several blocks of B, all have their own. */
static walk_scratch rows_scratch(const walk *w, const walk_scratch *s, int64_t i)
{
    walk_scratch at = *s;

    if (w->nc) {
        at.a += i / w->mc * w->a_floats;
        at.a_offset += i / w->mc * w->kc;
        at.a_panel += i;
        at.a_rows += i;
    }
    return at;
}

/* The block of B that follows columns [col, col + cols) of block `k`. Rows that begin within a line are asked for by
 * the ends of lines: the first came with the block before, as its last. Of the task's first columns it did not. */
static cpu_ahead b_block_next(const walk *w, const walk_task *t, int64_t k, int64_t depth, int64_t col, int64_t cols)
{
    const bool is_last = col + cols == t->cols; /* of these k */
    const int64_t next_k = is_last ? k + depth : k, next_col = is_last ? 0 : col + cols;
    const int64_t deep = least(t->k + t->depth - next_k, w->kc), wide = least(t->cols - next_col, w->nc ? w->nc : cols);
    int64_t row_bytes;
    if (w->b_ahead == NULL || deep <= 0)
        return (cpu_ahead){ 0 };
    const float *first = (const float *)(const void *)w->b_ahead(w->source, next_k, t->col + next_col, &row_bytes);
    const int64_t along = ceil_div((w->b_along ? deep : wide) * w->b_bytes, 4), ld = row_bytes / 4; /* floats */
    if (w->b_along)
        return cpu_ahead_rows(first, wide, along, ld);
    const bool within = ((uintptr_t)first | (uintptr_t)row_bytes) % 64 && ld >= along + CPU_FLOATS_AHEAD;
    const int64_t to_end = within ? 15 : 0;
    return is_last ? cpu_ahead_rows(first, deep, along + to_end, ld) : cpu_ahead_rows(first + to_end, deep, along, ld);
}

static cpu_ahead a_block_at(const walk *w, int64_t row, int64_t k, int64_t rows, int64_t depth)
{
    int64_t ld;
    const char *at = w->a_ahead(w->source, row, k, &ld);
    const int64_t lines = w->a_across ? depth : rows, along = w->a_across ? rows : depth;
    return cpu_ahead_rows((const float *)(const void *)at, lines, ceil_div(along * w->a_bytes, 4), ld / 4);
}

/* The block of A that follows `rows` rows from row `i` on, of block `k`. */
static cpu_ahead a_block_next(const walk *w, const walk_task *t, int64_t k, int64_t depth, int64_t i, int64_t rows)
{
    const int64_t next = least(t->rows - i - rows, rows);
    if (w->a_ahead && next > 0)
        return a_block_at(w, t->row + i + rows, k, next, depth);
    if (w->a_ahead && w->a_across && k + depth < t->k + t->depth)
        return a_block_at(w, t->row, k + depth, least(w->mc, t->rows), depth);
    return (cpu_ahead){ 0 };
}

/* Whether rows of B lie as tiles may read them: once, or again and again. Where vectors are in lines does not matter.
 */
static bool lies_well(int64_t row_bytes, int64_t rows, bool once)
{
    return once ? rows <= WALK_LATE_DEPTH || !walk_rows_come_late(row_bytes) : !walk_rows_meet(row_bytes, rows);
}

/* Packs columns [col, col + cols) of a block of B, or where they lie in rows of memory, only those that fill no panel:
 * full ones stay, or are packed by the first of several tiles that read them, which multiplies while others would wait:
 * with an A whose panels are of like height, as cek__pack_a cuts them. Who cuts it otherwise, at the ends of an image's
 * lines, gives a B that lies along k, or hands it out himself (CPU_COPIES). Offsets have 32 bits. */
static b_block b_take(const walk *w, const walk_task *t, int64_t k, int64_t depth, int64_t col, int64_t cols,
                      const walk_scratch *s)
{
    const int64_t nr = panel_columns(w), whole = cols / nr;
    const bool once = t->rows <= w->kernels->mr;
    const float *lies = NULL;
    int64_t row_bytes = 0;
    walk_scratch rest = *s;

    if (w->b_ahead && !w->b_along && w->b_bytes == 4 && w->b_floats && !t->col_sum && whole > 0)
        lies = (const float *)(const void *)w->b_ahead(w->source, k, t->col + col, &row_bytes);
    const bool stays = lies && (once || w->b_stays) && lies_well(row_bytes, depth, once);
    if (lies == NULL || (once && !stays) || depth * (row_bytes < 0 ? -row_bytes : row_bytes) > INT32_MAX)
        return (b_block){ NULL, w->b(w->source, k, depth, t->col + col, cols, s) };
    rest.b += whole * depth * nr;
    rest.b_panel += whole;
    walk_edge edge = WALK_WHOLE;
    if (cols > whole * nr)
        edge = w->b(w->source, k, depth, t->col + col + whole * nr, cols - whole * nr, &rest);
    if (stays) {
        for (int64_t p = 0; p < whole; p++)
            s->b_panel[p] = lies + p * nr;
        if (edge == WALK_WHOLE)
            cek__offsets_make(s->edge_offset, depth, nr);
        cek__offsets_make(s->b_offset, depth, row_bytes / 4);
        return (b_block){ NULL, WALK_APART };
    }
    cek__walk_panels_b(nr, depth, whole * nr, s);
    cek__offsets_make(s->pixel_offset, depth, row_bytes / 4);
    return (b_block){ lies, edge };
}

void cek__walk(const walk *w, const walk_task *t, const walk_scratch *s)
{
    const int64_t end = t->k + t->depth, nc = w->nc ? w->nc : t->cols;

    if (t->depth == 0) {
        walk_empty(w, t);
        return;
    }
    for (int64_t k = t->k; k < end; k += w->kc)
        for (int64_t col = 0, lda = 0; col < t->cols; col += nc) {
            const int64_t depth = least(end - k, w->kc), cols = least(t->cols - col, nc);
            const cpu_store store = t->add || k > t->k ? CPU_ADD : t->stream ? CPU_STREAM : CPU_STORE;
            fetch f = { .b = b_block_next(w, t, k, depth, col, cols) };
            b_block b = b_take(w, t, k, depth, col, cols, s);
            if (t->col_sum)
                sum_columns(w, s, cols, b.edge, depth, t->col_sum + col);
            for (int64_t i = 0; i < t->rows; i += w->mc) {
                const int64_t rows = least(t->rows - i, w->mc);
                const walk_scratch at = rows_scratch(w, s, i);
                float *c = t->again ? t->c : t->c + i * t->ldc + col;
                if (col == 0)
                    lda = w->a(w->source, t->row + i, rows, k, depth, &at);
                if (col == 0 && t->row_sum)
                    sum_rows(w, &at, rows, lda, depth, t->row_sum + i);
                f.a = col == 0 ? a_block_next(w, t, k, depth, i, rows) : (cpu_ahead){ 0 };
                f.behind = ceil_div(t->rows - i - rows, at.a_rows[0]);
                f.panels = w->a_floats ? col > 0 && !w->words : walk_rows_join(lda, depth) && (col == 0 || !w->words);
                if (col > 0 && w->a_floats)
                    f.a_next = rows_scratch(w, s, f.behind ? i + w->mc : 0).a;
                tiles(w, rows, cols, lda, depth, c, t->ldc, store, &f, b, &at);
                b.lies = NULL;
                if (w->take && k + depth == end)
                    w->take(w->source, t->row + i, rows, t->col + col, cols, c, t->ldc);
            }
        }
    if (t->stream)
        w->kernels->drain();
}
