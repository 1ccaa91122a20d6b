/* gemm.c - runs a planned product; the plan is made in gemm_plan.c.
 *
 * Owns: the tasks of a run and their memory, the order in which partial results are added.
 * Must not know: how blocks are walked (walk.c), packed (pack.c) or stored (epilogue.c). */
#include "backends/cpu/gemm.h"

#include <string.h>

#include "backends/cpu/epilogue.h"
#include "backends/cpu/pack.h"
#include "backends/cpu/walk.h"

/* One run, shared by its tasks. */
typedef struct run {
    const gemm_plan *plan;
    const gemm_args *args;
    float *partial;              /* [split][batch][m][n rounded up to panels] */
    float *sums;                 /* [split][m, or n where swapped] */
    char *scratch;               /* [worker] */
    int64_t row_blocks, col_blocks;
    int64_t ld;                  /* of a partial result */
} run;

/* One product of the batch, as the walk's callbacks see it. */
typedef struct product {
    const cpu_kernels *kernels;
    pack_operand a, b;
    epilogue e;
} product;

static int64_t ceil_div(int64_t n, int64_t by) { return (n + by - 1) / by; }
static int64_t at_most(int64_t n, int64_t limit) { return n < limit ? n : limit; }

static const char *batch_at(const void *p, const gemm_matrix *m, int64_t batch)
{
    return (const char *)p + batch * m->batch_stride * cpu_type_bytes(m->type);
}

static void give_a(const void *source, int64_t row, int64_t rows, int64_t panel_rows, int64_t k, int64_t depth,
                   const walk_scratch *to, walk_a *out)
{
    const product *p = source;
    cek__pack_a(p->kernels, &p->a, row, rows, panel_rows, k, depth, to, out);
}

static void give_b(const void *source, int64_t k, int64_t depth, int64_t col, int64_t cols, const walk_scratch *to, walk_b *out)
{
    const product *p = source;
    cek__pack_b(p->kernels, &p->b, k, depth, col, cols, to, out);
}

static void take_c(const void *source, int64_t row, int64_t rows, int64_t col, int64_t cols, const float *c, int64_t ldc,
                   const walk_scratch *scratch)
{
    const product *p = source;
    cek__epilogue(p->kernels, &p->e, row, rows, col, cols, c, ldc, scratch->line);
}

static void product_at(const run *r, int64_t batch, product *out)
{
    const gemm_desc *d = &r->plan->d;
    const gemm_args *args = r->args;
    const int swapped = r->plan->swapped;

    *out = (product){
        .kernels = r->plan->config->kernels,
        .a = { batch_at(swapped ? args->b : args->a, &d->a, batch), d->a.type, d->a.row_stride, d->a.col_stride,
               (pack_way)r->plan->way_a },
        .b = { batch_at(swapped ? args->a : args->b, &d->b, batch), d->b.type, d->b.row_stride, d->b.col_stride,
               (pack_way)r->plan->way_b },
        .e = { .c = (char *)args->c + batch * d->c.batch_stride * cpu_type_bytes(d->c.type), .to = d->c,
               /* sums made in C include what it held */
               .accumulate = d->accumulate && !r->plan->in_place, .act = d->act, .deriv = d->deriv,
               .bias = swapped ? NULL : args->bias, .row_bias = swapped ? args->bias : NULL,
               .ref_at = d->ref },
    };
    if (d->deriv != CPU_ACT_NONE)
        out->e.ref = batch_at(args->ref, &d->ref, batch);
}

/* Whether finished sums need anything more than to lie in C. */
static int is_plain(const run *r)
{
    return r->plan->in_place && r->plan->d.act == CPU_ACT_NONE && r->plan->d.deriv == CPU_ACT_NONE && !r->args->bias;
}

static void product_task(void *arg, int64_t task, int worker)
{
    const run *r = arg;
    const gemm_plan *plan = r->plan;
    const gemm_desc *d = &plan->d;
    const int64_t row_block = task % r->row_blocks, rest = task / r->row_blocks;
    const int64_t col_block = rest % r->col_blocks, part = rest / r->col_blocks;
    const int64_t batch = part % d->batch, split = part / d->batch;
    product p;
    walk_scratch scratch;

    product_at(r, batch, &p);
    cek__walk_scratch(plan->config, plan->kc, plan->mb, plan->nb, plan->nb, !plan->in_place && plan->splits == 1,
                      r->scratch + (size_t)worker * plan->worker_bytes, &scratch);
    walk w = { .config = plan->config, .kc = plan->kc, .step = cek__pack_step(&p.a), .a = give_a, .b = give_b, .source = &p };
    walk_task t = { .row = row_block * plan->mb, .col = col_block * plan->nb, .k = split * plan->split_depth };
    t.rows = at_most(plan->mb, d->m - t.row);
    t.cols = at_most(plan->nb, d->n - t.col);
    t.depth = at_most(plan->split_depth, d->k - t.k);
    if (plan->splits > 1) {
        t.c = r->partial + ((split * d->batch + batch) * d->m + t.row) * r->ld + t.col;
        t.ldc = r->ld;
        t.padded = 1;
    } else if (plan->in_place) {
        t.c = (float *)p.e.c + t.row * d->c.row_stride + t.col;
        t.ldc = d->c.row_stride;
        t.add = d->accumulate;
        w.finish = is_plain(r) ? NULL : take_c;
    } else {
        t.c = scratch.c;
        t.ldc = ceil_div(plan->nb, p.kernels->nr) * p.kernels->nr;
        t.padded = 1;
        w.finish = take_c;
    }
    if (r->sums && !plan->swapped && col_block == 0)
        t.row_sum = r->sums + split * d->m + t.row;
    if (r->sums && plan->swapped && row_block == 0)
        t.col_sum = r->sums + split * d->n + t.col;
    cek__walk(&w, &t, &scratch);
}

/* Adds the partial results of a few rows, in order, and finishes them. */
static void reduce_task(void *arg, int64_t task, int worker)
{
    const run *r = arg;
    const gemm_desc *d = &r->plan->d;
    const cpu_kernels *kernels = r->plan->config->kernels;
    const int64_t first = task * GEMM_REDUCE_ROWS, last = at_most(first + GEMM_REDUCE_ROWS, d->batch * d->m);
    const int64_t stride = d->batch * d->m * r->ld;
    walk_scratch scratch;
    product p;

    cek__walk_scratch(r->plan->config, r->plan->kc, r->plan->mb, r->plan->nb, r->plan->nb, 0,
                      r->scratch + (size_t)worker * r->plan->worker_bytes, &scratch);
    for (int64_t i = first; i < last; i++) {
        product_at(r, i / d->m, &p);
        for (int64_t col = 0; col < d->n; col += r->plan->nb) {
            const int64_t cols = at_most(r->plan->nb, d->n - col);
            float *sum = r->partial + i * r->ld + col;
            for (int64_t split = 1; split < r->plan->splits; split++)
                kernels->add(cols, sum, sum + split * stride, sum);
            cek__epilogue(kernels, &p.e, i % d->m, 1, col, cols, sum, r->ld, scratch.line);
        }
    }
}

static void sums_finish(const run *r)
{
    const int64_t n = r->plan->swapped ? r->plan->d.n : r->plan->d.m;
    const cpu_kernels *kernels = r->plan->config->kernels;
    for (int64_t split = 1; split < r->plan->splits; split++)
        kernels->add(n, r->sums, r->sums + split * n, r->sums);
    if (r->plan->d.sum_accumulate)
        kernels->add(n, r->args->sum, r->sums, r->args->sum);
    else
        memcpy(r->args->sum, r->sums, (size_t)n * 4);
}

void cek__gemm_run(const gemm_plan *plan, cpu_pool *pool, const gemm_args *args, void *workspace)
{
    const gemm_desc *d = &plan->d;
    const int64_t nr = plan->config->kernels->nr, sums = plan->swapped ? d->n : d->m;
    run r = { .plan = plan, .args = args,
              .row_blocks = ceil_div(d->m, plan->mb), .col_blocks = ceil_div(d->n, plan->nb),
              .ld = ceil_div(d->n, nr) * nr };
    const size_t sum_bytes = ((size_t)(plan->splits * sums) * 4 + 63) / 64 * 64;

    if (d->m == 0 || d->n == 0 || d->batch == 0)
        return;
    r.sums = args->sum ? workspace : NULL;
    r.partial = (float *)((char *)workspace + sum_bytes);
    r.scratch = (char *)workspace + plan->partial_bytes;
    if (r.sums)
        memset(r.sums, 0, sum_bytes);
    cek__pool_run(pool, r.row_blocks * r.col_blocks * d->batch * plan->splits, product_task, &r);
    if (plan->splits > 1)
        cek__pool_run(pool, ceil_div(d->batch * d->m, GEMM_REDUCE_ROWS), reduce_task, &r);
    if (r.sums)
        sums_finish(&r);
}
