/* vector.c - see vector.h.
 *
 * Owns: tasks of columns. Must not know: blocks, panels. */
#include "backends/cpu/product/vector.h"

#include "backends/cpu/sizes.h"

enum {
    ROWS_MAX = 7,      /* with more, tiles of what was packed are the faster */
    COLUMNS = 64,      /* of one task at most, */
    COLUMNS_LEAST = 8, /* and as few as this ... */
    ELEMENTS = 1 << 14 /* of B: 64 KiB, where k is large */
};

typedef struct run {
    const gemm_plan *plan;
    const product_source *source;
    float *scratch;          /* [worker][ROWS_MAX][COLUMNS]: sums */
    int64_t columns, blocks; /* columns of a task; tasks of a product */
} run;

int cek__gemm_is_vector(const gemm_desc *d)
{
    return d->m <= ROWS_MAX && d->k > 0 && !d->sum && d->a.type == CPU_F32 && d->b.type == CPU_F32 &&
           d->a.col_stride == 1 && d->b.row_stride == 1 && (d->n == 1 || d->b.col_stride >= d->k);
}

size_t cek__gemm_vector_workspace(int workers)
{
    return (size_t)workers * ROWS_MAX * COLUMNS * 4;
}

static void columns_task(void *arg, int64_t task, int worker)
{
    const run *r = arg;
    const gemm_desc *d = &r->plan->d;
    const cpu_kernels *kernels = r->plan->product.config->kernels;
    const int64_t col = task % r->blocks * r->columns, cols = least(r->columns, d->n - col);
    float *sums = r->scratch + (int64_t)worker * ROWS_MAX * COLUMNS;
    product_part p = { .kernels = kernels, .owner = r->source->owner, .index = task / r->blocks };
    int64_t ld = COLUMNS;

    r->source->open(p.owner, p.index, &p);
    if (p.e.to.type == CPU_F32 && p.e.to.col_stride == 1 && !p.e.accumulate) {
        sums = (float *)p.e.c + col;
        ld = p.e.to.row_stride;
    }
    kernels->dots(d->m, cols, d->k, p.a.at, d->a.row_stride, (const float *)p.b.at + col * d->b.col_stride,
                  d->b.col_stride, sums, ld);
    cek__epilogue(kernels, &p.e, 0, d->m, col, cols, sums, ld);
}

void cek__gemm_vector_run(const gemm_plan *plan, cpu_threads *threads, const product_source *source, void *workspace)
{
    const int64_t columns = least(most(ELEMENTS / plan->d.k / COLUMNS_LEAST * COLUMNS_LEAST, COLUMNS_LEAST), COLUMNS);
    run r = { plan, source, workspace, columns, ceil_div(plan->d.n, columns) };
    cek__threads_run(plan->product.brief ? NULL : threads, r.blocks * plan->d.batch, columns_task, &r);
}
