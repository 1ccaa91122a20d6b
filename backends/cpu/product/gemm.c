/* gemm.c - matrix products: strided matrices as operands of a batch of products.
 *
 * Owns: the choice of roles (which operand is packed in which way), the meaning of the descriptor.
 * Must not know: how a batch of products is planned and run (product.c). */
#include "backends/cpu/product/gemm.h"

#include <stdlib.h>

#include "backends/cpu/product/vector.h"
#include "backends/cpu/sizes.h"

enum {
    NEAR_BYTES = 32768,    /* operands that L1 holds: a tile reads them as fast as what was packed */
    LARGE_C = 1 << 20,     /* bytes: more than L2 keeps between two blocks of k */
    TURNED_PANELS = 8,     /* of B, from which on columns of A that lie one after the other are worth transposing it */
    FEW_PANELS = 4,        /* of B: a float of A is used so seldom that its way here is most of the work */
    MEETING = 512,         /* floats: lines so far apart fall into two sets of L1 */
    FEW_ROWS = 16,         /* of A: the same of a float of B that is far */
    LATE_ROWS = 32,        /* of A: the same where rows of B come late (walk.h) from an L3 ... */
    LATE_BYTES = 16 << 20, /* ... that holds so much of it: what comes from memory is as late in any order */
    THIN_DEPTH = 128,      /* from which on sums of a few more rows may come and go */
    THIN_BYTES = 16 << 20, /* of B: the same */
    LONG_SUMS = 256,       /* terms: turning the result around costs little beside them */
    DEPTH_MOST = 2048      /* floats: longer runs of a row are no faster */
};

static const double packed_pays = 0.97; /* of the time: what a copy of all weights has to save */

static gemm_matrix flipped(gemm_matrix m)
{
    return (gemm_matrix){ m.type, m.col_stride, m.row_stride, m.batch_stride };
}

static int64_t span_bytes(const gemm_matrix *m, int64_t rows, int64_t cols)
{
    return ((rows - 1) * llabs(m->row_stride) + (cols - 1) * llabs(m->col_stride) + 1) * cpu_type_bytes(m->type);
}

/* Nothing is between a tile and its operands, wherever they lie. */
static int is_near(const gemm_desc *d)
{
    return d->a.type == CPU_F32 && d->b.type == CPU_F32 && d->k > 0 &&
           span_bytes(&d->a, d->m, d->k) + span_bytes(&d->b, d->k, d->n) <= NEAR_BYTES;
}

static int has_few_columns(const gemm_desc *d, const cpu_config *config)
{
    return d->n <= FEW_PANELS * config->kernels->nr;
}

static pack_way copy_way(const gemm_desc *d, const product_plan *p)
{
    const pack_way way = cek__pack_way_a(&d->a);
    return way == PACK_ALONG && d->a.type == CPU_F32 && p->config->turns ? PACK_TURNED : way;
}

/* Whole rows of words, and whole tiles of them: nothing is read beside A. */
static int is_words(const gemm_desc *d, const cpu_words *words)
{
    return words->along && d->a.col_stride == 1 && d->a.row_stride % words->unit == 0 && d->m % words->height == 0 &&
           d->k % (words->unit * words->step) == 0;
}

/* Floats whose rows lie along k are read where they are, as a panel of packed ones would be: so many streams. Copying
 * them is waiting for each row to begin. Only where rows fall into one set of L1 are panels of them low, and B passes
 * by more often: then they are copied, unless columns are few. */
static bool rows_stay(const gemm_desc *d, const cpu_config *config)
{
    const int turns = config->turns && d->n >= TURNED_PANELS * config->kernels->nr;
    return d->a.type == CPU_F32 && d->a.col_stride == 1 && !turns &&
           (!cek__pack_rows_meet(d->a.row_stride) || has_few_columns(d, config));
}

static pack_way way_a(const gemm_desc *d, const product_plan *p)
{
    if (p->words)
        return is_words(d, p->words) ? PACK_DIRECT : copy_way(d, p);
    return rows_stay(d, p->config) || cek__pack_columns_stay(p->config, &d->a, d->n) || is_near(d) ? PACK_DIRECT
                                                                                                   : copy_way(d, p);
}

/* All of k (floats or words) in one block, or 0: where B stays in L2 as it is, a panel of A may do so too. That costs
 * less than passing a large C by once more. */
static int64_t whole_depth(const gemm_desc *d, const product_plan *p)
{
    const cpu_blocks *blocks = product_blocks(p);
    const int narrow = d->n * p->k * 4 <= blocks->b_bytes && p->k <= 2 * blocks->kc;
    return narrow && d->m * d->n * 4 >= LARGE_C ? p->k : 0;
}

static int64_t row_bytes_b(const gemm_desc *d)
{
    return d->b.row_stride * cpu_type_bytes(d->b.type);
}

/* Blocks of B are flat, no deeper than this, where so few rows of A meet so much of it that they would wait for it; 0:
 * they need not be. */
static int64_t flat_depth(const gemm_desc *d, const product_plan *p)
{
    const cpu_blocks *blocks = product_blocks(p);
    const int64_t mr = p->config->kernels->mr, bytes = d->k * d->n * 4;
    const int64_t row_bytes = row_bytes_b(d);
    const int late = walk_rows_come_late(row_bytes);
    if (p->way_b != PACK_ACROSS || p->words)
        return 0;
    if (d->m <= mr)
        return late && d->b.type == CPU_F32 && bytes > blocks->b_bytes ? WALK_LATE_DEPTH : 0;
    const int slow = late && bytes >= LATE_BYTES / 2 && bytes <= LATE_BYTES;
    if (d->m > (slow ? LATE_ROWS : FEW_ROWS) || !product_b_is_far(p))
        return 0;
    /* what an L3 may hold is read where it lies, if it stays in L2 */
    const int stays = d->m <= FEW_ROWS && bytes <= LATE_BYTES && !walk_rows_meet(row_bytes, blocks->kc / 2);
    return stays ? blocks->kc / 2 : blocks->kc / 4;
}

/* Of few columns rows of A that are read where they lie come from memory as fast as they are asked for, if runs of them
 * are long: deep blocks, as long as B stays in L2. Of few rows the same is true of rows of B: flat blocks. 0: neither.
 */
static int64_t depth_most(const gemm_desc *d, const product_plan *p)
{
    const int64_t kc = product_blocks(p)->kc;
    const int64_t flat = flat_depth(d, p);
    if (flat > 0)
        return flat;
    if (p->way_a != PACK_DIRECT || d->a.col_stride != 1 || !has_few_columns(d, p->config))
        return 0;
    const int64_t fit = product_blocks(p)->b_bytes / (4 * round_up(d->n, p->config->kernels->nr));
    return most(least(fit, DEPTH_MOST), kc);
}

/* Tiles read whole panels of B. */
static int is_near_b(const gemm_desc *d, const cpu_config *config)
{
    return is_near(d) && d->b.col_stride == 1 && d->n % config->kernels->nr == 0;
}

/* Short rows that lie side by side are a panel already. */
static pack_way way_b(const gemm_desc *d, const cpu_config *config)
{
    const int nr = config->kernels->nr;
    if (d->packed)
        return PACK_PANELS;
    const int is_panel = d->b.type == CPU_F32 && d->b.col_stride == 1 && d->n <= nr && llabs(d->b.row_stride) <= nr;
    return is_panel || is_near_b(d, config) ? PACK_DIRECT : cek__pack_way_b(&d->b);
}

/* Up to seven rows; of low tiles, which would pack B for a second panel, up to two of these, where B is no further than
 * in L3 and deep enough (8 to 12 rows by 1000 x 1000 or 512 x 2048: 0.55 to 0.85 of the time). */
static bool is_few(const gemm_desc *d, const cpu_config *config)
{
    const int64_t more = config->kernels->mr <= CPU_LOW ? least(2 * config->kernels->mr, 2 * CPU_THIN_MAX) : 0;
    return d->m <= CPU_THIN_MAX ||
           (d->m <= more && d->b.type == CPU_F32 && d->k >= THIN_DEPTH && d->k * d->n * 4 <= THIN_BYTES);
}

/* A few rows of A, or columns of B where those are its roles, against rows of memory. Near operands that need no
 * packing are tiles' work: their sums stay in registers. */
static int is_thin(const gemm_desc *d, const cpu_config *config)
{
    return is_few(d, config) && d->k > 0 && d->b.col_stride == 1 &&
           (d->a.type == CPU_F32 || d->a.col_stride == 1 || d->a.row_stride == 1) &&
           (d->m == 1 || !is_near_b(d, config));
}

void cek__gemm_operands(const gemm_desc *d, product_plan *p)
{
    if (!p->thin)
        cek__product_words(p, d->a.type, d->b.type);
    p->way_a = way_a(d, p);
    p->way_b = way_b(d, p->config);
    /* most of the time of packing B, or transposing it, is waiting for memory */
    p->ahead = p->way_b == PACK_ACROSS || p->way_b == PACK_ALONG;
    p->copy_a = copy_way(d, p);
    p->a_meets = p->way_a == PACK_DIRECT && d->a.col_stride != 1 && d->a.col_stride % MEETING == 0;
    p->keeps_a = 1;
    if (p->thin)
        return;
    p->sizes.kc = whole_depth(d, p);
    p->depth_most = depth_most(d, p);
    const int64_t depth = p->depth_most ? p->depth_most : product_blocks(p)->kc;
    p->b_meets = p->way_b == PACK_ACROSS && d->k * d->n * 4 > LATE_BYTES && walk_rows_meet(row_bytes_b(d), 2 * depth);
}

/* kc: of blocks; 0: to be chosen. */
static void plan_one(const gemm_desc *desc, const cpu_config *config, int workers, int swapped, int64_t kc,
                     gemm_plan *out)
{
    const gemm_desc *d = desc;

    *out = (gemm_plan){ .d = *d, .swapped = swapped };
    if (swapped) {
        out->d.m = d->n;
        out->d.n = d->m;
        out->d.a = flipped(d->b);
        out->d.b = flipped(d->a);
        out->d.c = flipped(d->c);
        out->d.ref = flipped(d->ref);
    }
    d = &out->d;
    /* an epilogue comes before accumulation, so with both the sums need a place of their own */
    const int has_epilogue = d->bias || d->act != CPU_ACT_NONE || d->deriv != CPU_ACT_NONE;
    const int in_place = d->c.type == CPU_F32 && d->c.col_stride == 1 && d->c.row_stride >= d->n &&
                         !(d->accumulate && has_epilogue);
    out->product = (product_plan){
        .m = d->m,
        .n = d->n,
        .k = d->k,
        .batch = d->batch,
        .config = config,
        .workers = workers,
        .in_place = in_place,
        .add = in_place && d->accumulate,
        .sum = !d->sum   ? PRODUCT_NO_SUM
               : swapped ? PRODUCT_COLUMN_SUM
                         : PRODUCT_ROW_SUM,
        .store_across = d->c.col_stride != 1,
        .thin = is_thin(d, config) && !(swapped && d->sum),
    };
    cek__gemm_operands(d, &out->product);
    if (!out->product.thin)
        out->product.sizes.kc = kc ? kc : whole_depth(desc, &out->product);
    cek__product_plan(&out->product);
}

/* Columns of A that high narrow tiles would read where they lie, a load for each multiply-add: as rows of B they meet
 * whole tiles, if they have a length that fills these. Sums that this turns around are long enough for that. */
static bool columns_pay_as_b(const gemm_plan *plan)
{
    const gemm_desc *d = &plan->d;
    const int64_t nr = plan->product.nr, last = d->n % nr;
    const bool narrow = last > 0 && last <= nr / 2, filled = d->m >= 2 * nr && 8 * round_up(d->m, nr) <= 9 * d->m;
    return plan->product.mr > CPU_LOW && plan->product.way_a == PACK_DIRECT && d->a.row_stride == 1 && !is_near(d) &&
           narrow && filled && (d->c.col_stride != 1 || d->k >= LONG_SUMS);
}

static int swap_pays(const gemm_plan *as_it_is, const gemm_plan *swapped)
{
    const product_plan *p = &as_it_is->product, *s = &swapped->product;
    if (p->thin != s->thin)
        return s->thin;
    if (p->thin)
        return s->m < p->m;
    return columns_pay_as_b(as_it_is) || (s->cost < p->cost && !columns_pay_as_b(swapped));
}

static void product_name(gemm_plan *plan)
{
    static const char *const names[3][2][2] = {
        { { "gemm", "gemm, swapped" }, { "gemm, split k", "gemm, swapped, split k" } },
        { { "gemm, thin", "gemm, thin, swapped" }, { "gemm, thin, split k", "gemm, thin, swapped, split k" } },
        { { "gemm, words", "gemm, words, swapped" }, { "gemm, words, split k", "gemm, words, swapped, split k" } },
    };

    plan->workspace_bytes = plan->product.workspace_bytes;
    plan->algorithm = names[plan->product.thin    ? 1
                            : plan->product.words ? 2
                                                  : 0][plan->product.splits > 1][plan->swapped];
}

static void plan_unpacked(const gemm_desc *desc, const cpu_config *config, int workers, gemm_plan *out)
{
    gemm_plan swapped;
    if (desc->m == 0 || desc->n == 0 || desc->batch == 0) {
        *out = (gemm_plan){ .d = *desc, .algorithm = "gemm, empty" };
        return;
    }
    /* roles are those that are best for one worker: in which order sums are made may follow from them */
    plan_one(desc, config, 1, 0, 0, out);
    plan_one(desc, config, 1, 1, 0, &swapped);
    const double cost = out->product.cost < swapped.product.cost ? out->product.cost : swapped.product.cost;
    const bool is_vector = cek__gemm_is_vector(&out->d, config, cost);
    const bool turned_is = cek__gemm_is_vector(&swapped.d, config, cost);
    if (is_vector || turned_is) {
        if (!is_vector || (turned_is && swapped.d.m < out->d.m))
            *out = swapped;
        out->vector = 1;
        out->product.cost = cek__gemm_vector_cost(&out->d, config);
        out->workspace_bytes = cek__gemm_vector_workspace(&out->d, workers > 1 ? workers : 1);
        out->algorithm = "dot products";
        return;
    }
    plan_one(desc, config, workers, swap_pays(out, &swapped), 0, out);
    product_name(out);
}

/* A packed B in place of what was chosen, if that saves time. Sums are made in the same order, but for those that would
 * be dot products. */
static void plan_packed(const gemm_desc *desc, const cpu_config *config, int workers, gemm_plan *out)
{
    const product_plan *p = &out->product;
    gemm_plan packed;

    const bool dots = out->vector; /* planned for one worker, with other bits anyway */
    if (p->thin || p->n == 0 || p->k == 0 || (desc->batch > 1 && desc->b.batch_stride != 0))
        return;
    if (dots && (out->d.m <= VECTOR_PASS_ROWS || desc->a.type != CPU_F32 || desc->b.type != CPU_F32))
        return;
    plan_one(desc, config, dots ? 1 : workers, 0, dots ? 0 : p->sizes.kc, &packed);
    /* to what C holds sums of several blocks are added one by one, or all together */
    const bool adds_otherwise = desc->accumulate && packed.product.in_place != p->in_place && p->k > p->sizes.kc;
    if ((adds_otherwise && !dots) || packed.product.cost > packed_pays * p->cost)
        return;
    if (dots && workers > 1)
        plan_one(desc, config, workers, 0, 0, &packed);
    product_name(&packed);
    packed.packed_bytes = (size_t)(round_up(desc->n, packed.product.nr) * packed.product.k) * sizeof(float);
    *out = packed;
}

void cek__gemm_plan(const gemm_desc *desc, const cpu_config *config, int workers, gemm_plan *out)
{
    gemm_desc plain = *desc;

    plain.packed = 0;
    plan_unpacked(&plain, config, workers, out);
    if (desc->packed)
        plan_packed(desc, config, workers, out);
}

typedef struct call {
    const gemm_plan *plan;
    const gemm_args *args;
} call;

static char *batch_at(const void *p, const gemm_matrix *m, int64_t batch)
{
    return (char *)p + batch * m->batch_stride * cpu_type_bytes(m->type);
}

/* Field by field: of a whole, made apart and copied, the copy would wait for the stores. */
static void operand_open(const void *at, const gemm_matrix *m, pack_way way, int64_t index, pack_operand *out)
{
    out->at = batch_at(at, m, index);
    out->type = m->type;
    out->row_stride = m->row_stride;
    out->col_stride = m->col_stride;
    out->way = way;
}

static void open_part(const void *owner, int64_t index, product_part *out)
{
    const call *c = owner;
    const gemm_plan *plan = c->plan;
    const gemm_desc *d = &plan->d;
    const gemm_args *args = c->args;
    const int swapped = plan->swapped;
    epilogue *e = &out->e;

    operand_open(swapped ? args->b : args->a, &d->a, plan->product.way_a, index, &out->a);
    operand_open(swapped ? args->a : args->b, &d->b, plan->product.way_b, index, &out->b);
    if (plan->packed_bytes)
        out->b.row_stride = plan->product.k;
    e->c = batch_at(args->c, &d->c, index);
    e->to = d->c;
    /* sums made in place include what C held */
    e->accumulate = d->accumulate && (!plan->product.in_place || plan->vector);
    e->act = d->act;
    e->deriv = d->deriv;
    e->bias = swapped ? NULL : args->bias;
    e->row_bias = swapped ? args->bias : NULL;
    e->ref = d->deriv != CPU_ACT_NONE ? batch_at(args->ref, &d->ref, index) : NULL;
    e->ref_at = d->ref;
    out->sum = args->sum ? args->sum + index * (swapped ? d->n : d->m) : NULL;
    out->sum_accumulate = d->sum_accumulate;
}

void cek__gemm_run(const gemm_plan *plan, cpu_threads *threads, const gemm_args *args, void *workspace)
{
    const gemm_desc *d = &plan->d;
    const call c = { plan, args };

    if (d->m == 0 || d->n == 0 || d->batch == 0)
        return;
    const product_source source = {
        .owner = &c,
        .open = open_part,
        .a = cek__product_a,
        .b = cek__product_b,
        .take = cek__product_take,
        .plain = d->act == CPU_ACT_NONE && d->deriv == CPU_ACT_NONE && !args->bias,
    };
    if (plan->vector)
        cek__gemm_vector_run(plan, threads, &source, workspace);
    else
        cek__product_run(&plan->product, threads, &source, workspace);
}
