/* vector.c - see vector.h.
 *
 * Owns: tasks of columns. Must not know: blocks, panels. */
#include "backends/cpu/product/vector.h"

enum {
    ROWS_MAX = 4, /* every row reads a block of B again, from L2 at best: packing for tiles wins beyond */
    COLUMNS = 16, /* of one task: with 1,024 of k, 64 KiB of B */
};

typedef struct run {
    const gemm_plan *plan;
    const product_source *source;
    float *scratch; /* [worker][3][COLUMNS]: sums, and two lines for the epilogue */
    int64_t blocks;
} run;

int cek__gemm_is_vector(const gemm_desc *d)
{
    return d->m <= ROWS_MAX && d->k > 0 && !d->sum && d->a.type == CPU_F32 && d->b.type == CPU_F32 &&
           d->a.col_stride == 1 && d->b.row_stride == 1 && (d->n == 1 || d->b.col_stride >= d->k);
}

size_t cek__gemm_vector_workspace(int workers)
{
    return (size_t)workers * 3 * COLUMNS * 4;
}

static void columns_task(void *arg, int64_t task, int worker)
{
    const run *r = arg;
    const gemm_desc *d = &r->plan->d;
    const cpu_kernels *kernels = r->plan->product.config->kernels;
    const int64_t col = task % r->blocks * COLUMNS, cols = d->n - col < COLUMNS ? d->n - col : COLUMNS;
    float *sums = r->scratch + (int64_t)worker * 3 * COLUMNS;
    product_part p = { .kernels = kernels, .owner = r->source->owner, .index = task / r->blocks };

    r->source->open(p.owner, p.index, &p);
    for (int64_t row = 0; row < d->m; row++) {
        kernels->dots(cols, d->k, (const float *)p.a.at + row * d->a.row_stride,
                      (const float *)p.b.at + col * d->b.col_stride, d->b.col_stride, sums);
        cek__epilogue(kernels, &p.e, row, 1, col, cols, sums, 0, sums + COLUMNS);
    }
}

void cek__gemm_vector_run(const gemm_plan *plan, cpu_threads *threads, const product_source *source, void *workspace)
{
    run r = { .plan = plan, .source = source, .scratch = workspace, .blocks = (plan->d.n + COLUMNS - 1) / COLUMNS };
    cek__threads_run(plan->product.serial ? NULL : threads, r.blocks * plan->d.batch, columns_task, &r);
}
