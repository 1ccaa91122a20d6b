/* plan.c - chooses blocks, splits and workspace of a batch of products.
 *
 * Owns: the cost model and its constants. Must not know: the run (product.c). */
#include "backends/cpu/product/product.h"

#include "backends/cpu/product/thin.h"
#include "backends/cpu/sizes.h"

/* Costs in cycles of one fused multiply-add on a whole vector, measured on a Zen 4 core from L2; of what comes ahead,
 * meets or is narrow on a Zen 5. */
static const double cost_copy = 1.5;    /* packing, a vector of elements, along the way they lie */
static const double cost_transpose = 5; /* packing across it */
static const double cost_gather = 40;   /* element by element */
static const double cost_far = 10;      /* waiting for a vector of what is packed and comes from L3 or beyond */
static const double cost_ahead = 5;     /* the same, where it was asked for while tiles worked */
static const double cost_panels = 1.5;  /* the same, of panels packed before, which processors follow */
static const double cost_meeting = 7;   /* of what was asked for, and rows of two blocks meet in few sets of L2 */
static const double cost_beside = 5;    /* meeting a vector in L2, not in L1 */
static const double cost_narrow = 0.4;  /* of a last tile of one vector, which takes as long as 1.4 of a wide one's */
static const double cost_run = 40;      /* beginning to read a row of memory somewhere else */
static const double cost_run_near = 8;  /* the same, in L2 and side by side */
static const double cost_c = 2;         /* reading and writing a vector of C once per block of k */
static const double cost_store_across = 16; /* storing a vector of C element by element */
static const double cost_task = 2000;       /* handing out a task, warming up */
static const double cost_tail = 0.025;      /* of a task, not a cycle: what is waited for at the end */

enum {
    SPLIT_TASKS = 96,   /* a product with fewer tasks than this is split along k ... */
    SPLIT_DEPTH = 1024, /* ... into parts no shallower: the partial results then cost 2% */
    SPLITS_MAX = 16,
    SCRATCH_C_BYTES = 4 << 20, /* a block of sums not made in C itself: past L2, since its rows share a packed B */
    FLAT_C_BYTES = 128 << 10,  /* a block of sums that flat blocks of B pass by, each of which reads and writes it */
    STREAM_BYTES = 64 << 20,   /* a result that no L3 holds until it is read again */
    KEPT_A_BYTES = 4 << 20,    /* of packed A, in L3, while blocks of B pass by: B's packing is nothing then */
    DIRECT_BLOCKS = 2,         /* of B, from which on a copy of A is read sooner than A where it lies */
    FEW_BLOCKS = 4,            /* of A: 448 rows of AVX-512; of more, blocks of B half as large gain nothing */
    BLOCKS_MAX = 64,           /* cuts of a dimension that are tried */
};

/* The next block of a far B comes into L2 while few panels of A, all of them or most, still pass by this one: both must
 * have room there, in the few sets, too, that their lines may share. */
static bool has_next_beside(const product_plan *p)
{
    const bool deep = p->depth_most > product_blocks(p)->kc; /* all columns, which A passes once */
    return p->ahead && p->keeps_a && !p->words && !deep && product_b_is_far(p) &&
           p->m <= FEW_BLOCKS * product_blocks(p)->mc;
}

/* Bringing an operand to the tiles, by how it lies in memory: `vectors` of elements, in runs.
 * `slab` is what is copied instead where tiles read a slab (0: they read the operand itself). */
static double way_cost(pack_way way, double vectors, double transpose, double runs_along, double runs_across,
                       double run_across, double slab)
{
    switch (way) {
    case PACK_DIRECT: return (slab > 0 ? slab : vectors) * cost_copy;
    case PACK_ALONG: return vectors * transpose + runs_along * cost_run;
    case PACK_TURNED: return vectors * cost_transpose + runs_along * cost_run;
    case PACK_ACROSS: return vectors * cost_copy + runs_across * run_across;
    case PACK_PANELS: return 0;
    case PACK_GATHER: break;
    }
    return vectors * cost_gather;
}

static bool is_far(const product_plan *p, double elements)
{
    return elements * 4 > (double)product_blocks(p)->b_bytes;
}

static double run_cost(const product_plan *p, double elements)
{
    return is_far(p, elements) ? cost_run : cost_run_near;
}

/* What waiting for memory adds to bringing near `vectors` of an operand of so many elements. */
static double far_cost(const product_plan *p, pack_way way, double elements, double vectors, double cost)
{
    return p->keeps_a && way != PACK_DIRECT && is_far(p, elements) ? vectors * cost : 0;
}

/* The estimated time of a block of C, in cycles. */
static double block_cost(const product_plan *p, int64_t mb, int64_t nb)
{
    const double vl = p->config->kernels->nr / 2.0, depth = (double)p->split_depth;
    const int64_t width = least(nb, p->n), last = width % p->nr;
    const double narrow = p->mr > CPU_LOW && width > p->nr && last > 0 && last <= p->nr / 2 ? cost_narrow : 0;
    const double columns = (double)round_up(width, p->nr / 2) / vl + narrow; /* vectors of them */
    const double blocks = (double)ceil_div(p->split_depth, p->sizes.kc);
    /* fewer than 4 rows leave multipliers idle while B is loaded */
    const double rows = (double)(p->words ? round_up(most(mb, 4), p->words->height) : most(mb, 4));
    const double multiply = depth * rows * columns / (p->words ? p->words->pace : 1);
    const double store = blocks * cost_c + (p->store_across && p->splits == 1 ? cost_store_across : 0);
    const double slab_a = blocks * (double)(ceil_div(mb, most(p->sizes.mc, 1)) * p->sizes.a_floats) / vl;
    const double slab_b = blocks * (double)p->sizes.b_floats / vl;
    /* cores that are in the same rows of B and C fetch ahead of each other what the other one writes; columns of a
     * transposed B are rows of memory */
    const double cut = p->keeps_a && p->workers > 1 && nb < p->n
                           ? blocks * (double)mb + (p->way_b == PACK_ALONG ? 0 : depth)
                           : 0;
    /* to ask for columns of a transposed B takes 2 to 5 % off a product: they are counted as if nobody had */
    const bool b_is_ahead = p->ahead && p->way_b == PACK_ACROSS;
    const double wait_b = p->way_b == PACK_PANELS ? cost_panels
                          : !b_is_ahead           ? cost_far
                          : p->b_meets            ? cost_meeting
                                                  : cost_ahead;
    /* panels of B that pass by meet columns of A in L2, not in L1 */
    const double beside = p->a_meets ? depth * (double)mb / vl * cost_beside : 0;
    const double all_a = (double)p->m * (double)p->k, all_b = (double)p->k * (double)p->n; /* elements */
    const double run_a = run_cost(p, all_a), run_b = run_cost(p, all_b);
    return multiply + (double)mb * columns * store + cut * cost_run + cost_task + beside +
           far_cost(p, p->way_a, all_a, depth * (double)mb / vl, cost_far) +
           far_cost(p, p->way_b, all_b, depth * (double)nb / vl, wait_b) +
           way_cost(p->way_a, depth * (double)mb / vl, cost_copy, blocks * (double)mb,
                    depth * (double)ceil_div(mb, product_blocks(p)->mc), run_a, slab_a) +
           way_cost(p->way_b, depth * (double)nb / vl, cost_transpose, blocks * (double)nb, depth, run_b, slab_b);
}

/* Blocks of B pass by once or twice, as fast as memory brings them: many columns of a few rows at a time. */
static bool is_flat(const product_plan *p)
{
    return p->depth_most > 0 && p->depth_most < product_blocks(p)->kc;
}

/* The most columns of B that are in L2 at once. */
static int64_t columns_most(const product_plan *p)
{
    const int64_t whole = product_blocks(p)->b_bytes;
    /* slabs are copied again for each block of columns: B may half come from L3 instead */
    const int64_t bytes = p->row_unit ? 2 * whole : has_next_beside(p) ? whole / 2 : whole;
    return round_up(p->way_b == PACK_DIRECT ? p->n : most(bytes / (4 * p->sizes.kc), 1), p->nr);
}

/* The most columns of a block of C. */
static int64_t block_columns_most(const product_plan *p)
{
    if (!p->keeps_a)
        return columns_most(p);
    return round_up(is_flat(p) ? least(FLAT_C_BYTES / 4 / p->m, p->n) : p->n, p->nr);
}

/* Tries cuts of C into blocks and keeps the best. */
static void blocks_choose(product_plan *p)
{
    const int64_t nc_max = columns_most(p), nb_max = block_columns_most(p);
    const int64_t kept = KEPT_A_BYTES / (4 * walk_row_floats(p->sizes.kc));
    /* panels have any height: tasks are alike */
    const int64_t unit = p->row_unit ? p->row_unit : p->words ? p->words->height : 1;

    p->cost = 0;
    for (int64_t cols = ceil_div(p->n, nb_max), tries = 0; tries < BLOCKS_MAX; cols++, tries++) {
        const int64_t nb = ceil_div(ceil_div(p->n, cols), p->nr) * p->nr;
        for (int64_t rows = 1; rows <= BLOCKS_MAX; rows++) {
            int64_t mb = ceil_div(ceil_div(p->m, rows), unit) * unit;
            if (!p->in_place && p->splits == 1 && !p->again)
                mb = least(mb, most(SCRATCH_C_BYTES / (4 * nb) / unit, 1) * unit);
            if (nb > nc_max && p->way_a != PACK_DIRECT)
                mb = least(mb, most(kept / unit, 1) * unit);
            mb = least(mb, p->m);
            const int64_t tasks = ceil_div(p->m, mb) * ceil_div(p->n, nb) * p->batch * p->splits;
            const double one = block_cost(p, mb, nb);
            /* tasks do not all begin and take equally long */
            const double cost = (double)ceil_div(tasks, p->workers) * one + (p->workers > 1 ? cost_tail * one : 0);
            if (p->cost == 0 || cost < p->cost) {
                p->cost = cost;
                p->sizes.mb = mb;
                p->sizes.nb = nb;
            }
            if (mb <= most(unit, p->mr))
                break;
        }
        if (nb <= p->nr)
            break;
    }
}

/* Parts of k and its blocks: functions of the shape and of how A and B lie, never of the workers. */
static void depth_choose(product_plan *p)
{
    const int64_t tasks = p->batch * ceil_div(p->m, product_blocks(p)->mc) * ceil_div(p->n, product_blocks(p)->mc);
    const int64_t whole = product_blocks(p)->kc;
    const int64_t depth = p->depth_most ? p->depth_most : p->b_meets && has_next_beside(p) ? whole / 2 : whole;
    const int64_t splits = p->whole ? 1 : least(least(SPLIT_TASKS / most(tasks, 1), p->k / SPLIT_DEPTH), SPLITS_MAX);
    for (p->splits = 1; p->splits * 2 <= splits;)
        p->splits *= 2; /* even numbers of tasks for even numbers of workers */
    p->split_depth = ceil_div(p->k, p->splits);
    if (p->sizes.kc == 0)
        p->sizes.kc = most(ceil_div(p->split_depth, most(ceil_div(p->split_depth, depth), 1)), 1);
    p->sizes.kc = round_up(p->sizes.kc, p->words ? p->words->step : 1);
    p->split_depth = most(ceil_div(p->split_depth, p->sizes.kc) * p->sizes.kc, 1);
    p->splits = most(ceil_div(p->k, p->split_depth), 1);
    p->again = p->k > 0 && p->k <= p->sizes.kc;
}

static void sizes_complete(const product_plan *p, walk_sizes *s, int64_t *ldc)
{
    if (s->mc == 0)
        s->mc = product_blocks(p)->mc;
    if (p->keeps_a && !p->thin && s->nb > columns_most(p))
        s->nc = round_up(ceil_div(s->nb, ceil_div(s->nb, columns_most(p))), p->nr);
    /* what tiles read where it lies needs no room */
    if (s->a_floats == 0 && p->way_a != PACK_DIRECT)
        s->a_floats = s->mc * walk_row_floats(s->kc);
    if (s->b_floats == 0 && !p->thin && p->way_b != PACK_DIRECT && p->way_b != PACK_PANELS)
        s->b_floats = s->kc * round_up(s->nc ? s->nc : s->nb, p->nr);
    if (p->way_b == PACK_DIRECT && p->n % p->nr > p->nr / 2)
        s->edge_floats = s->kc * p->nr;
    *ldc = product_sums_ld(p, p->again && s->nc ? s->nc : s->nb);
    s->c_floats = p->in_place || p->splits > 1 ? 0 : (p->again ? least(s->mc, s->mb) : s->mb) * *ldc;
}

void cek__product_words(product_plan *p, cpu_type a, cpu_type b)
{
    const cpu_words *words = p->config->bf16;

    /* of one term the contract wants denormal numbers, which these products take for 0 (gemm_bf16.c) */
    if (words == NULL || a != words->type || b != words->type || p->k < 2)
        return;
    p->words = words;
    p->elements = p->k;
    p->k = round_up(ceil_div(p->k, words->unit), words->step);
}

static void all_choose(product_plan *p)
{
    const int workers = p->workers;

    depth_choose(p);
    if (p->splits > 1)
        p->in_place = p->add = 0;
    /* rows that are read where they lie begin anew for each block of B */
    if (p->keeps_a && p->way_a == PACK_DIRECT && p->n > DIRECT_BLOCKS * columns_most(p))
        p->way_a = p->copy_a;
    p->workers = 1;
    blocks_choose(p);
    p->alone = p->sizes;
    p->brief = p->cost < PRODUCT_SERIAL_CYCLES;
    p->serial = p->brief && p->cost < (double)workers * PRODUCT_SHARE_CYCLES;
    if (workers > 1 && !p->serial) {
        p->workers = workers;
        blocks_choose(p);
    }
}

void cek__product_plan(product_plan *p)
{
    walk_scratch none;

    p->mr = p->words ? p->words->mr : p->config->kernels->mr;
    p->nr = p->words ? p->words->nr : p->config->kernels->nr;
    if (p->workers < 1)
        p->workers = 1;
    if (p->thin)
        cek__thin_plan(p);
    else
        all_choose(p);
    sizes_complete(p, &p->sizes, &p->ldc);
    if (p->brief && p->workers > 1)
        sizes_complete(p, &p->alone, &p->alone_ldc);
    p->stream = p->config->kernels->streams && !p->thin && p->in_place && !p->add && p->k <= p->sizes.kc &&
                p->batch * p->m * p->n * 4 >= STREAM_BYTES;
    p->sum_length = p->sum == PRODUCT_NO_SUM ? 0 : p->sum == PRODUCT_ROW_SUM ? p->m : p->n;
    p->sum_bytes = p->partial_bytes = (size_t)round_up(p->splits * p->batch * p->sum_length * 4, 64);
    if (p->splits > 1)
        p->partial_bytes += (size_t)round_up(p->splits * p->batch * p->m * product_sums_ld(p, p->n) * 4, 64);
    p->worker_bytes = cek__walk_scratch(&p->sizes, p->nr, NULL, &none);
    if (p->brief && p->workers > 1)
        p->worker_bytes = most((int64_t)p->worker_bytes, (int64_t)cek__walk_scratch(&p->alone, p->nr, NULL, &none));
    p->workspace_bytes = p->partial_bytes + (size_t)p->workers * p->worker_bytes;
}
