/* vector.c - see vector.h.
 *
 * Owns: tasks of columns; strips of a matrix of 16 bits, of which memory, for which these products wait, gives half as
 * much. Must not know: blocks, panels. */
#include "backends/cpu/product/vector.h"

#include <string.h>

#include "backends/cpu/sizes.h"

enum {
    FEW = 7,              /* rows: tiles, for which B would have to be packed, are never faster */
    SOME = 12,            /* the most, where A does not stay in L1 from end to end */
    ROWS_MAX = 24,        /* the most of all */
    FAR_BYTES = 16 << 20, /* of B, which no L3 holds: tiles ask for it ahead */
    DEEP = 2048,          /* terms of which L1 does not hold more rows than these from one pass to the next ... */
    NEAR_FLOATS = 8192,   /* ... but so much of A and B */
    COLUMNS = 64,         /* of one task at most, */
    COLUMNS_LEAST = 8,    /* and as few as this ... */
    ELEMENTS = 1 << 14,   /* of B: 64 KiB of floats, where k is large */
    STRIP = 1024,         /* elements of a column: four are 16 KiB of floats, in L1 beside two or three rows; */
    STRIP_LD = STRIP + 16 /* and do not lie in the same sets */
};

enum { TASKS = 4 }; /* at least, where columns are enough */

/* Cycles, in plan.c's sense. */
static const double cost_vector = 4.5; /* a vector of B that comes from L2 or L3 */
static const double cost_term = 1.2;   /* a multiply-add: there is a load for each two of them */
static const double cost_lanes = 4;    /* adding up those of a sum */
static const double narrow = 1.1;      /* narrow tiles, which they compete with, take more than is estimated */

/* What a worker has. */
typedef struct room {
    float strip[CPU_NARROW_ROWS * STRIP_LD];
    float sums[ROWS_MAX * COLUMNS], more[ROWS_MAX * COLUMNS];
    float part[(FEW + 1) * CPU_NARROW_ROWS]; /* sums over a strip; whole lines, as a strip begins with one */
} room;

typedef struct run {
    const gemm_plan *plan;
    const product_source *source;
    float *floats;           /* A, where it has 16 bits: [batch, or 1 that all share][m][vectors_ld] */
    room *rooms;             /* [worker] */
    int64_t columns, blocks; /* columns of a task; tasks of a product */
} run;

static bool is_far(const gemm_desc *d)
{
    return d->n * d->k * 4 > FAR_BYTES;
}

double cek__gemm_vector_cost(const gemm_desc *d, const cpu_config *config)
{
    const double depth = (double)ceil_div(d->k, config->kernels->nr / 2), rows = (double)d->m;
    const double vector = rows * cost_term < cost_vector ? cost_vector : rows * cost_term;
    return (double)(d->batch * d->n) * (depth * vector + rows * cost_lanes);
}

/* Of short rows most of the work is to add up what is in a vector's lanes: tiles multiply several of them sooner. */
static bool pays(const gemm_desc *d, const cpu_config *config, double cost)
{
    if (d->m <= FEW)
        return d->m <= 2 || d->n <= 2 || d->k >= config->kernels->nr;
    return d->m <= (d->k > DEEP ? SOME : ROWS_MAX) && d->a.type == CPU_F32 && d->b.type == CPU_F32 && !is_far(d) &&
           cek__gemm_vector_cost(d, config) < narrow * cost;
}

int cek__gemm_is_vector(const gemm_desc *d, const cpu_config *config, double cost)
{
    return d->k > 0 && !d->sum && d->a.col_stride == 1 && d->b.row_stride == 1 &&
           (d->n == 1 || d->b.col_stride >= d->k) && pays(d, config, cost);
}

static int64_t vectors_ld(const gemm_desc *d)
{
    return round_up(d->k, 16);
}

/* Products whose A is another one's, too, have it once. */
static int64_t vectors_batch(const gemm_desc *d)
{
    return d->a.batch_stride == 0 ? 1 : d->batch;
}

static size_t floats_bytes(const gemm_desc *d)
{
    return d->a.type == CPU_F32 ? 0 : (size_t)(vectors_batch(d) * d->m * vectors_ld(d)) * 4;
}

size_t cek__gemm_vector_workspace(const gemm_desc *d, int workers)
{
    return floats_bytes(d) + (size_t)workers * sizeof(room);
}

/* Rows of A, as floats. */
typedef struct vectors {
    const float *at;
    int64_t ld;
} vectors;

static vectors vectors_of(const run *r, const product_part *p)
{
    const gemm_desc *d = &r->plan->d;
    const int64_t ld = vectors_ld(d), index = vectors_batch(d) == 1 ? 0 : p->index;

    return d->a.type == CPU_F32 ? (vectors){ p->a.at, d->a.row_stride }
                                : (vectors){ r->floats + index * d->m * ld, ld };
}

static void vectors_task(void *arg, int64_t index, int worker)
{
    const run *r = arg;
    const gemm_desc *d = &r->plan->d;
    const int64_t bytes = cpu_type_bytes(d->a.type), ld = vectors_ld(d);
    product_part p = { .kernels = r->plan->product.config->kernels, .owner = r->source->owner, .index = index };

    (void)worker;
    r->source->open(p.owner, index, &p);
    for (int64_t i = 0; i < d->m; i++)
        p.kernels->load(d->a.type, d->k, (const char *)p.a.at + i * d->a.row_stride * bytes,
                        r->floats + (index * d->m + i) * ld);
}

/* Columns of B, of 16 bits, `b` the first: one vector meets them as they lie, more of them floats. */
static void strip_dot(const gemm_desc *d, const cpu_kernels *kernels, const float *x, int64_t ldx, const char *b,
                      int64_t cols, int64_t depth, room *to)
{
    const int64_t bytes = d->b.col_stride * cpu_type_bytes(d->b.type);

    if (d->m == 1 && cols == CPU_NARROW_ROWS) {
        kernels->dots_narrow(d->b.type, depth, x, b, d->b.col_stride, to->part);
        return;
    }
    for (int64_t i = 0; i < cols; i++)
        kernels->load(d->b.type, depth, b + i * bytes, to->strip + i * STRIP_LD);
    kernels->dots(d->m, cols, depth, x, ldx, to->strip, STRIP_LD, to->part, CPU_NARROW_ROWS);
}

static void narrow_dots(const gemm_desc *d, const cpu_kernels *kernels, vectors x, const char *b, int64_t cols,
                        room *to)
{
    const int64_t bytes = cpu_type_bytes(d->b.type);

    memset(to->sums, 0, sizeof to->sums);
    for (int64_t k = 0; k < d->k; k += STRIP)
        for (int64_t j = 0; j < cols; j += CPU_NARROW_ROWS) {
            const int64_t some = least(CPU_NARROW_ROWS, cols - j);
            strip_dot(d, kernels, x.at + k, x.ld, b + (j * d->b.col_stride + k) * bytes, some, least(STRIP, d->k - k),
                      to);
            for (int64_t i = 0; i < d->m; i++) {
                float *sum = to->sums + i * COLUMNS + j;
                kernels->add(some, sum, to->part + i * CPU_NARROW_ROWS, sum);
            }
        }
}

/* Columns of B, of floats: a strip at a time where A does not stay in L1 otherwise. */
static void float_dots(const gemm_desc *d, const cpu_kernels *kernels, vectors x, const float *b, int64_t cols,
                       float *sums, int64_t ld, float *more)
{
    const bool deep = d->m > VECTOR_PASS_ROWS && d->k > DEEP && !is_far(d);
    const int64_t strip = deep ? NEAR_FLOATS / (d->m + VECTOR_PASS_ROWS) / 16 * 16 : d->k;

    kernels->dots(d->m, cols, least(strip, d->k), x.at, x.ld, b, d->b.col_stride, sums, ld);
    for (int64_t k = strip; k < d->k; k += strip) {
        kernels->dots(d->m, cols, least(strip, d->k - k), x.at + k, x.ld, b + k, d->b.col_stride, more, COLUMNS);
        for (int64_t i = 0; i < d->m; i++)
            kernels->add(cols, sums + i * ld, more + i * COLUMNS, sums + i * ld);
    }
}

static void columns_task(void *arg, int64_t task, int worker)
{
    const run *r = arg;
    const gemm_desc *d = &r->plan->d;
    const cpu_kernels *kernels = r->plan->product.config->kernels;
    const int64_t col = task % r->blocks * r->columns, cols = least(r->columns, d->n - col);
    product_part p = { .kernels = kernels, .owner = r->source->owner, .index = task / r->blocks };
    float *sums = r->rooms[worker].sums;
    int64_t ld = COLUMNS;

    r->source->open(p.owner, p.index, &p);
    const vectors x = vectors_of(r, &p);
    const char *b = (const char *)p.b.at + col * d->b.col_stride * cpu_type_bytes(d->b.type);
    if (d->b.type == CPU_F32) {
        if (p.e.to.type == CPU_F32 && p.e.to.col_stride == 1 && !p.e.accumulate) {
            sums = (float *)p.e.c + col;
            ld = p.e.to.row_stride;
        }
        float_dots(d, kernels, x, (const float *)(const void *)b, cols, sums, ld, r->rooms[worker].more);
    } else {
        narrow_dots(d, kernels, x, b, cols, &r->rooms[worker]);
    }
    cek__epilogue(kernels, &p.e, 0, d->m, col, cols, sums, ld);
}

/* Columns of a task, where there are so many at least. */
static void columns_cut(run *r, int64_t tasks)
{
    const gemm_desc *d = &r->plan->d;
    const int64_t near = most(ELEMENTS / d->k / COLUMNS_LEAST * COLUMNS_LEAST, COLUMNS_LEAST);
    const int64_t like = round_up(ceil_div(d->n, tasks), COLUMNS_LEAST);
    r->columns = least(least(near, like), COLUMNS);
    r->blocks = ceil_div(d->n, r->columns);
}

/* Not cut up for others. */
static void alone_run(void *arg)
{
    run r = *(const run *)arg;
    columns_cut(&r, 1);
    for (int64_t task = 0; task < r.blocks * r.plan->d.batch; task++)
        columns_task(&r, task, 0);
}

void cek__gemm_vector_run(const gemm_plan *plan, cpu_threads *threads, const product_source *source, void *workspace)
{
    const gemm_desc *d = &plan->d;
    const double cost = plan->product.cost;
    run r = { .plan = plan,
              .source = source,
              .floats = workspace,
              .rooms = (room *)(void *)((char *)workspace + floats_bytes(d)) };

    columns_cut(&r, TASKS);
    if (d->a.type != CPU_F32)
        cek__threads_run(cost < PRODUCT_SERIAL_CYCLES ? NULL : threads, vectors_batch(d), vectors_task, &r);
    if (cost < 2 * PRODUCT_SHARE_CYCLES)
        alone_run(&r);
    else if (cost < PRODUCT_SERIAL_CYCLES)
        cek__threads_run_brief(threads, cost, r.blocks * d->batch, columns_task, alone_run, &r);
    else
        cek__threads_run(threads, r.blocks * d->batch, columns_task, &r);
}
