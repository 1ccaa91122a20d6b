/* gemm_plan.c - chooses how a product is computed: roles, blocks, splits, workspace.
 *
 * Owns: the cost model and its constants. Must not know: the run (gemm.c).
 *
 * What decides the order of sums (kc, splits) is computed from the shape and the configuration; what only decides who does what
 * (mb, nb, swapped) may also look at the number of workers. */
#include "backends/cpu/gemm.h"

#ifdef TUNE
#include <stdlib.h>
#endif
#include "backends/cpu/pack.h"
#include "backends/cpu/walk.h"

/* Costs in cycles of one fused multiply-add on a whole vector, measured on a Zen 4 core from L2. */
static const double cost_copy = 1.5;             /* packing, a vector of elements, along the way they lie */
static const double cost_transpose = 5;          /* packing across it */
static const double cost_run = 40;               /* beginning to read a row of memory somewhere else */
static const double cost_gather = 40;            /* element by element */
static const double cost_c = 2;                  /* reading and writing a vector of C once per block of k */
static const double cost_store_across = 16;      /* storing a vector of C element by element */
static const double cost_task = 2000;            /* handing out a task, warming up */

enum {
    SPLIT_TASKS = 24,            /* a product with fewer tasks than this is split along k ... */
    SPLIT_DEPTH = 1024,          /* ... into parts no shallower than this: the partial results cost as much as 2% then */
    SPLITS_MAX = 16,
    SCRATCH_C_BYTES = 256 << 10, /* a block of sums that is not made in C itself stays in L2 */
    BLOCKS_MAX = 64,             /* cuts of a dimension that are tried */
};

static int64_t ceil_div(int64_t n, int64_t by) { return (n + by - 1) / by; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

static double way_cost(pack_way way)
{
    return way == PACK_DIRECT ? 0 : way == PACK_GATHER ? cost_gather : cost_copy;
}

static double way_cost_b(pack_way way)
{
    return way == PACK_ALONG ? cost_transpose : way_cost(way);
}

/* The estimated time of a block of C, in cycles. */
static double block_cost(const gemm_plan *p, int64_t mb, int64_t nb)
{
    const cpu_kernels *kernels = p->config->kernels;
    const double vl = kernels->nr / 2.0, depth = (double)p->split_depth;
    const double panels = (double)ceil_div(nb, kernels->nr);
    /* fewer than 4 rows leave multipliers idle while B is loaded */
    const double rows = (double)most(mb, 4);
    const double blocks = (double)ceil_div(p->split_depth, p->kc);
    const double runs = (p->way_b == PACK_ACROSS ? depth : p->way_b == PACK_ALONG ? blocks * (double)nb : 0)
                      + (p->way_a == PACK_ACROSS ? depth * (double)ceil_div(mb, p->config->mc) : p->way_a == PACK_ALONG ? blocks * (double)mb : 0);
    const double across = p->d.c.col_stride != 1 && p->splits == 1 ? cost_store_across : 0;
    return depth * rows * panels * 2
         + depth * (double)nb / vl * way_cost_b((pack_way)p->way_b)
         + depth * (double)mb / vl * way_cost((pack_way)p->way_a)
         + (double)mb * panels * 2 * (blocks * cost_c + across)
         + runs * cost_run
         + cost_task;
}

/* Tries cuts of C into blocks; returns the estimated time of the best. */
static double blocks_choose(gemm_plan *p)
{
    const gemm_desc *d = &p->d;
    const cpu_kernels *kernels = p->config->kernels;
    const int64_t nb_max = most(p->config->b_bytes / (4 * p->kc) / kernels->nr, 1) * kernels->nr;
    double best = 0;

    for (int64_t cols = ceil_div(d->n, nb_max), col_tries = 0; col_tries < BLOCKS_MAX; cols++, col_tries++) {
        const int64_t nb = ceil_div(ceil_div(d->n, cols), kernels->nr) * kernels->nr;
        for (int64_t rows = 1; rows <= BLOCKS_MAX; rows++) {
            int64_t mb = ceil_div(ceil_div(d->m, rows), kernels->mr) * kernels->mr;
            if (!p->in_place && p->splits == 1)
                mb = least(mb, most(SCRATCH_C_BYTES / (4 * nb) / kernels->mr, 1) * kernels->mr);
            mb = least(mb, d->m);
            const double tasks = (double)(ceil_div(d->m, mb) * ceil_div(d->n, nb) * d->batch * p->splits);
            const double one = block_cost(p, mb, nb), rounds = (double)ceil_div((int64_t)tasks, p->workers);
            /* tasks do not all begin and take equally long: part of one is waited for at the end */
            const double cost = rounds * one + (p->workers > 1 ? 0.25 * one : 0);
            if (best == 0 || cost < best) {
                best = cost;
                p->mb = mb;
                p->nb = nb;
            }
            if (mb <= kernels->mr)
                break;
        }
        if (nb <= kernels->nr)
            break;
    }
#ifdef TUNE
    if (getenv("MB")) p->mb = atoi(getenv("MB"));
    if (getenv("NB")) p->nb = atoi(getenv("NB"));
#endif
    return best;
}

/* Parts of k: a function of the shape alone, and the same when A and B change roles. */
static void depth_choose(gemm_plan *p)
{
    const gemm_desc *d = &p->d;
    const int64_t tasks = d->batch * ceil_div(d->m, p->config->mc) * ceil_div(d->n, p->config->mc);
    p->splits = most(least(least(SPLIT_TASKS / most(tasks, 1), d->k / SPLIT_DEPTH), SPLITS_MAX), 1);
#ifdef TUNE
    if (getenv("SP")) p->splits = atoi(getenv("SP"));
#endif
    p->split_depth = ceil_div(d->k, p->splits);
    p->kc = most(ceil_div(p->split_depth, most(ceil_div(p->split_depth, p->config->kc), 1)), 1);
    p->split_depth = most(ceil_div(p->split_depth, p->kc) * p->kc, 1);
    p->splits = most(ceil_div(d->k, p->split_depth), 1);
}

static double plan_one(const gemm_desc *d, const cpu_config *config, int workers, int swapped, gemm_plan *p)
{
    *p = (gemm_plan){ .d = *d, .config = config, .swapped = swapped, .workers = workers > 0 ? workers : 1 };
    if (swapped) {
        const gemm_matrix a = d->a, b = d->b;
        p->d.m = d->n;
        p->d.n = d->m;
        p->d.a = (gemm_matrix){ b.type, b.col_stride, b.row_stride, b.batch_stride };
        p->d.b = (gemm_matrix){ a.type, a.col_stride, a.row_stride, a.batch_stride };
        p->d.c = (gemm_matrix){ d->c.type, d->c.col_stride, d->c.row_stride, d->c.batch_stride };
        p->d.ref = (gemm_matrix){ d->ref.type, d->ref.col_stride, d->ref.row_stride, d->ref.batch_stride };
    }
    depth_choose(p);
    p->way_a = (int)cek__pack_way_a(&p->d.a);
    p->way_b = (int)cek__pack_way_b(&p->d.b);
#ifdef TUNE
    if (getenv("WA")) p->way_a = atoi(getenv("WA"));
    if (getenv("WB")) p->way_b = atoi(getenv("WB"));
#endif
    /* an epilogue comes before accumulation, so with both the sums need a place of their own */
    p->in_place = p->splits == 1 && p->d.c.type == CPU_F32 && p->d.c.col_stride == 1 && p->d.c.row_stride >= p->d.n &&
                  !(d->accumulate && (d->act != CPU_ACT_NONE || d->deriv != CPU_ACT_NONE));
    return blocks_choose(p);
}

static void workspace_measure(gemm_plan *p)
{
    const gemm_desc *d = &p->d;
    const int64_t nr = p->config->kernels->nr, ld = ceil_div(d->n, nr) * nr;
    const size_t sum_bytes = ((size_t)(p->splits * (p->swapped ? d->n : d->m)) * 4 + 63) / 64 * 64;
    walk_scratch none;
    p->partial_bytes = sum_bytes + (p->splits > 1 ? (size_t)(p->splits * d->batch * d->m * ld) * 4 : 0);
    p->worker_bytes = cek__walk_scratch(p->config, p->kc, p->mb, p->nb, p->nb, !p->in_place && p->splits == 1, NULL, &none);
    p->workspace_bytes = p->partial_bytes + (size_t)p->workers * p->worker_bytes;
}

void cek__gemm_plan(const gemm_desc *desc, const cpu_config *config, int workers, gemm_plan *out)
{
    gemm_plan swapped;
    if (desc->m == 0 || desc->n == 0 || desc->batch == 0) {
        *out = (gemm_plan){ .d = *desc, .config = config, .algorithm = "gemm, empty", .mb = 1, .nb = 1, .splits = 1 };
        return;
    }
    const double plain_cost = plan_one(desc, config, workers, 0, out);
    const double swapped_cost = plan_one(desc, config, workers, 1, &swapped);
    if (swapped_cost < plain_cost)
        *out = swapped;
    out->algorithm = out->splits > 1 ? (out->swapped ? "gemm, swapped, split k" : "gemm, split k")
                                     : (out->swapped ? "gemm, swapped" : "gemm");
    workspace_measure(out);
}
