/* product.c - runs a planned batch of products; see product.h.
 *
 * Owns: the tasks of a run and their memory, the order in which partial results are added.
 * Must not know: operands, blocks within a task, the formula of the result. */
#include "backends/cpu/product/product.h"

#include <string.h>

#include "backends/cpu/product/thin.h"
#include "backends/cpu/sizes.h"

enum {
    REDUCE_ROWS = 8,        /* of partial results added by one task */
    FAR_A_BYTES = 16 << 20, /* more than L3 may hold, from where rows come in time without being asked for */
    NEAR_C_BYTES = 4 << 20, /* of L2 and L3 */
    LONG_C_PANELS = 16,     /* of a row of C */
    FEW_B_PANELS = 4,       /* for which a row of such an A takes longer to come than to multiply */
    FEW_A_PANELS = 5        /* packing a near B for these takes longer than it saves, and L2 holds it twice meanwhile */
};

/* One run, shared by its tasks. */
typedef struct run {
    const product_plan *plan;
    const product_source *source;
    float *partial; /* [split][batch][m][n rounded up to panels] */
    float *sums;    /* [split][batch][m or n] */
    char *scratch;  /* [worker] */
    int64_t row_blocks, col_blocks;
    int64_t ld; /* of a partial result */
} run;

int64_t cek__product_a(const void *part, int64_t row, int64_t rows, int64_t k, int64_t depth, const walk_scratch *to)
{
    const product_part *p = part;
    return cek__pack_a(p->kernels, &p->a, row, rows, k, depth, to);
}

walk_edge cek__product_b(const void *part, int64_t k, int64_t depth, int64_t col, int64_t cols, const walk_scratch *to)
{
    const product_part *p = part;
    return cek__pack_b(p->kernels, &p->b, k, depth, col, cols, to);
}

/* Rows, or columns, lie along memory: element (row, col), and how far the next one of these is. */
static const char *row_at(const pack_operand *m, int64_t row, int64_t col, int64_t *row_bytes)
{
    const int64_t bytes = cpu_type_bytes(m->type);

    *row_bytes = (m->col_stride == 1 ? m->row_stride : m->col_stride) * bytes;
    return (const char *)m->at + (row * m->row_stride + col * m->col_stride) * bytes;
}

static const char *a_ahead(const void *part, int64_t row, int64_t k, int64_t *row_bytes)
{
    const product_part *p = part;
    return row_at(&p->a, row, k, row_bytes);
}

static const char *b_ahead(const void *part, int64_t k, int64_t col, int64_t *row_bytes)
{
    const product_part *p = part;
    return row_at(&p->b, k, col, row_bytes);
}

/* Columns of A lie along memory, and tiles read them there. */
static bool a_lies_across(const product_part *p)
{
    return p->a.way == PACK_DIRECT && p->a.row_stride == 1;
}

/* Rows of A that tiles have fetched before they are packed, or columns before others read them where they lie. */
static int a_comes_ahead(const run *r, const product_part *p)
{
    const bool packed = p->a.way == PACK_ALONG || p->a.way == PACK_TURNED;
    return r->source->a == cek__product_a && (packed || a_lies_across(p)) && !p->a.words;
}

/* Rows of B likewise; who hands out B by a function of its own may have it elsewhere. */
static int b_comes_ahead(const run *r)
{
    return r->plan->ahead && r->source->b == cek__product_b && !r->plan->words;
}

void cek__product_take(const void *part, int64_t row, int64_t rows, int64_t col, int64_t cols, const float *c,
                       int64_t ldc)
{
    const product_part *p = part;
    cek__epilogue(p->kernels, &p->e, row, rows, col, cols, c, ldc);
}

/* Few panels of A and a near B: what of it fills panels is not packed, unless its rows meet (walk.c). */
static bool b_stays(const product_plan *plan)
{
    return plan->m <= FEW_A_PANELS * plan->mr && plan->k * plan->n * 4 <= plan->config->near_bytes;
}

/* Asked for by shallow tiles, lines of a near C, or of long rows, come no sooner. */
static bool c_waits(const product_plan *plan)
{
    return plan->batch * plan->m * plan->n * 4 > NEAR_C_BYTES && plan->n < LONG_C_PANELS * plan->nr;
}

/* Of rows that tiles read where they lie. Processors follow those of a low panel by themselves once they have begun,
 * sooner than tiles could ask; a high narrow tile, which has a load for each multiply-add, has no time for more. Of
 * other high ones, and of short rows, all must be asked for, where A is far, and tiles so few that they would wait. */
static walk_rows a_rows_ahead(const run *r, const product_part *p)
{
    const product_plan *plan = r->plan;
    const int64_t bytes = plan->m * plan->k * 4;
    const bool low = plan->mr <= CPU_LOW, joined = walk_rows_join(p->a.row_stride, plan->sizes.kc);
    const bool narrow = !low && !plan->words && plan->n <= plan->nr / 2;
    if (r->source->a != cek__product_a || p->a.way != PACK_DIRECT || p->a.col_stride != 1 || (narrow && joined))
        return WALK_NO_ROWS;
    if (narrow || (low && !joined))
        return bytes > product_blocks(plan)->b_bytes ? WALK_ROW_STARTS : WALK_NO_ROWS;
    return plan->n <= FEW_B_PANELS * plan->nr && bytes > FAR_A_BYTES ? WALK_WHOLE_ROWS : WALK_NO_ROWS;
}

static void part_open(const run *r, int64_t index, product_part *out)
{
    *out = (product_part){ .kernels = r->plan->config->kernels, .owner = r->source->owner, .index = index };
    r->source->open(r->source->owner, index, out);
    out->a.words = out->b.words = r->plan->words;
    out->a.k = out->b.k = r->plan->elements;
}

static void scratch_of(const run *r, int worker, walk_scratch *out)
{
    const product_plan *plan = r->plan;
    cek__walk_scratch(&plan->sizes, plan->nr, r->scratch + (size_t)worker * plan->worker_bytes, out);
}

static void block_task(void *arg, int64_t task, int worker)
{
    const run *r = arg;
    const product_plan *plan = r->plan;
    const int64_t row_block = task % r->row_blocks, rest = task / r->row_blocks;
    const int64_t col_block = rest % r->col_blocks, part = rest / r->col_blocks;
    const int64_t index = part % plan->batch, split = part / plan->batch;
    product_part p;
    walk_scratch scratch;

    part_open(r, index, &p);
    scratch_of(r, worker, &scratch);
    walk w = { .kernels = plan->config->kernels,
               .words = plan->words,
               .mc = plan->sizes.mc,
               .kc = plan->sizes.kc,
               .nc = plan->sizes.nc,
               .a_floats = plan->sizes.a_floats,
               .b_floats = plan->sizes.b_floats,
               .a = r->source->a,
               .b = r->source->b,
               .a_ahead = a_comes_ahead(r, &p) ? a_ahead : NULL,
               .b_ahead = b_comes_ahead(r) ? b_ahead : NULL,
               .a_across = a_lies_across(&p),
               .b_along = p.b.way == PACK_ALONG,
               .by_columns = plan->config->by_columns,
               .a_rows_ahead = a_rows_ahead(r, &p),
               .b_stays = b_stays(plan),
               .c_waits = c_waits(plan),
               .a_bytes = (int)cpu_type_bytes(p.a.type),
               .b_bytes = (int)cpu_type_bytes(p.b.type),
               .source = &p };
    walk_task t = { .row = row_block * plan->sizes.mb,
                    .col = col_block * plan->sizes.nb,
                    .k = split * plan->split_depth };
    t.rows = least(plan->sizes.mb, plan->m - t.row);
    t.cols = least(plan->sizes.nb, plan->n - t.col);
    t.depth = least(plan->split_depth, plan->k - t.k);
    if (plan->row_unit == 0) { /* blocks of like heights, in whole panels */
        const int64_t mr = plan->mr, like = ceil_div(t.rows, ceil_div(t.rows, w.mc));
        w.mc = least(ceil_div(like, mr) * mr, w.mc);
    }
    if (plan->splits > 1) {
        t.c = r->partial + ((split * plan->batch + index) * plan->m + t.row) * r->ld + t.col;
        t.ldc = r->ld;
    } else if (plan->in_place) {
        t.c = (float *)p.e.c + t.row * p.e.to.row_stride + t.col;
        t.ldc = p.e.to.row_stride;
        t.add = plan->add;
        t.stream = plan->stream && r->source->plain && (uintptr_t)t.c % 64 == 0 && t.ldc % 16 == 0;
        w.take = r->source->plain ? NULL : r->source->take;
    } else {
        t.c = scratch.c;
        t.ldc = plan->ldc;
        t.again = plan->again;
        w.take = r->source->take;
    }
    float *sums = r->sums + (split * plan->batch + index) * plan->sum_length;
    if (plan->sum == PRODUCT_ROW_SUM && p.sum && col_block == 0)
        t.row_sum = sums + t.row;
    if (plan->sum == PRODUCT_COLUMN_SUM && p.sum && row_block == 0)
        t.col_sum = sums + t.col;
    if (plan->thin) {
        cek__thin_walk(&p, &t, plan, w.take, &scratch);
        return;
    }
    if (plan->words && plan->words->begin)
        plan->words->begin();
    cek__walk(&w, &t, &scratch);
    if (plan->words && plan->words->end)
        plan->words->end();
}

/* Adds the partial results of a few rows, in order, and finishes them. */
static void reduce_task(void *arg, int64_t task, int worker)
{
    const run *r = arg;
    const product_plan *plan = r->plan;
    const cpu_kernels *kernels = plan->config->kernels;
    const int64_t first = task * REDUCE_ROWS, last = least(first + REDUCE_ROWS, plan->batch * plan->m);
    const int64_t stride = plan->batch * plan->m * r->ld;
    product_part p;

    (void)worker;
    for (int64_t i = first, rows; i < last; i += rows) {
        rows = least(last - i, plan->m - i % plan->m);
        part_open(r, i / plan->m, &p);
        float *sum = r->partial + i * r->ld;
        for (int64_t row = 0; row < rows; row++)
            for (int64_t split = 1; split < plan->splits; split++)
                kernels->add(plan->n, sum + row * r->ld, sum + row * r->ld + split * stride, sum + row * r->ld);
        r->source->take(&p, i % plan->m, rows, 0, plan->n, sum, r->ld);
    }
}

static void sums_finish(const run *r)
{
    const product_plan *plan = r->plan;
    const cpu_kernels *kernels = plan->config->kernels;
    const int64_t n = plan->sum_length;

    for (int64_t index = 0; index < plan->batch; index++) {
        float *sum = r->sums + index * n;
        product_part p;
        part_open(r, index, &p);
        if (p.sum == NULL)
            continue;
        for (int64_t split = 1; split < plan->splits; split++)
            kernels->add(n, sum, sum + split * plan->batch * n, sum);
        if (p.sum_accumulate)
            kernels->add(n, p.sum, sum, p.sum);
        else
            memcpy(p.sum, sum, (size_t)n * 4);
    }
}

static run run_of(const product_plan *plan, const product_source *source, void *workspace)
{
    return (run){ .plan = plan,
                  .source = source,
                  .sums = workspace,
                  .partial = (float *)((char *)workspace + plan->sum_bytes),
                  .scratch = (char *)workspace + plan->partial_bytes,
                  .row_blocks = ceil_div(plan->m, plan->sizes.mb),
                  .col_blocks = ceil_div(plan->n, plan->sizes.nb),
                  .ld = product_sums_ld(plan, plan->n) };
}

static int64_t tasks_of(const run *r)
{
    return r->row_blocks * r->col_blocks * r->plan->batch * r->plan->splits;
}

/* Not cut up for others. */
static void alone_run(void *arg)
{
    const run *shared = arg;
    product_plan plan = *shared->plan;
    plan.sizes = plan.alone;
    plan.ldc = plan.alone_ldc;
    run r = run_of(&plan, shared->source, shared->sums);
    for (int64_t task = 0; task < tasks_of(&r); task++)
        block_task(&r, task, 0);
}

static void tasks_run(const product_plan *plan, cpu_threads *threads, int64_t tasks, cpu_task *fn, cpu_whole *alone,
                      double work, void *arg)
{
    if (plan->workers == 1 || !plan->brief)
        cek__threads_run(plan->workers == 1 ? NULL : threads, tasks, fn, arg);
    else
        cek__threads_run_brief(threads, work, tasks, fn, alone, arg);
}

void cek__product_run(const product_plan *plan, cpu_threads *threads, const product_source *source, void *workspace)
{
    run r = run_of(plan, source, workspace);
    /* as many vectors are added as partial results have */
    const double sums = (double)(plan->splits * plan->batch * plan->m * r.ld) / (plan->config->kernels->nr / 2.0);

    if (plan->sum != PRODUCT_NO_SUM)
        memset(r.sums, 0, plan->sum_bytes);
    tasks_run(plan, threads, tasks_of(&r), block_task, alone_run, plan->cost, &r);
    if (plan->splits > 1)
        tasks_run(plan, threads, ceil_div(plan->batch * plan->m, REDUCE_ROWS), reduce_task, NULL, sums, &r);
    if (plan->sum != PRODUCT_NO_SUM)
        sums_finish(&r);
}
