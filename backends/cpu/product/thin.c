/* thin.c - see thin.h.
 *
 * Owns: the sizes of parts, the rows of A as the kernel wants them. Must not know: who takes the sums. */
#include "backends/cpu/product/thin.h"

#include "backends/cpu/sizes.h"

enum {
    PART_ELEMENTS = 1 << 17, /* of B in one task at least: some 6 us, twenty times what adding its sums costs */
    PARTS = 16,              /* tasks that are worth partial sums: enough for workers that come late or leave early */
    SUMS = 4 << 10,          /* in L1 */
    FEW = 3,                 /* rows up to which memory is the limit on any processor */
};

static const double cost_vector = 2.6; /* cycles for which a vector of B comes from L3; a multiply-add takes 1 */

void cek__thin_plan(product_plan *p)
{
    const int64_t vl = p->config->kernels->nr / 2;
    walk_sizes *s = &p->sizes;

    /* rows of sums stay in L1, and runs of B are as long as that allows, or a page */
    s->nb = least(round_up(p->n, vl), p->m > CPU_THIN_MAX ? 512 : most(SUMS / p->m / 64 * 64, 1024));
    s->mb = s->mc = p->m;
    const int64_t tasks = ceil_div(p->n, s->nb) * p->batch;
    const int64_t parts = most(least(PARTS / tasks, p->k * least(p->n, s->nb) / PART_ELEMENTS), 1);
    s->kc = least(ceil_div(p->k, parts), p->config->floats.kc);
    p->split_depth = round_up(ceil_div(p->k, parts), s->kc);
    p->splits = ceil_div(p->k, p->split_depth);
    s->a_floats = p->m * walk_row_floats(s->kc);
    p->in_place = p->in_place && !p->add && p->splits == 1;
    p->add = 0;
    p->ahead = product_b_is_far(p);
    p->cost = (double)(p->batch * p->k * ceil_div(p->n, vl)) * (p->m <= FEW ? cost_vector : (double)p->m);
    p->brief = p->cost < PRODUCT_SERIAL_CYCLES;
    p->serial = p->brief && p->cost < (double)p->workers * PRODUCT_SHARE_CYCLES;
    p->workers = p->serial ? 1 : p->workers;
    p->alone = *s;
}

/* Floats are read where they lie; everything else is converted. */
static void a_give(const product_part *p, const walk_task *t, int64_t k, cpu_thin *out, const walk_scratch *s)
{
    const pack_operand *a = &p->a;
    const int64_t bytes = cpu_type_bytes(a->type);
    const char *at = (const char *)a->at + (t->row * a->row_stride + k * a->col_stride) * bytes;

    out->a = s->a;
    if (a->type == CPU_F32) {
        out->a = (const float *)(const void *)at;
        out->lda = a->row_stride;
        out->step = a->col_stride;
    } else if (a->col_stride == 1) {
        out->lda = out->depth;
        out->step = 1;
        for (int64_t i = 0; i < out->rows; i++)
            p->kernels->load(a->type, out->depth, at + i * a->row_stride * bytes, s->a + i * out->lda);
    } else {
        out->lda = 1;
        out->step = out->rows;
        for (int64_t i = 0; i < out->depth; i++)
            p->kernels->load(a->type, out->rows, at + i * a->col_stride * bytes, s->a + i * out->step);
    }
}

void cek__thin_walk(const product_part *p, const walk_task *t, const product_plan *plan, walk_take *take,
                    const walk_scratch *s)
{
    const int64_t end = t->k + t->depth, kc = plan->sizes.kc;

    for (int64_t k = t->k; k < end; k += kc) {
        cpu_thin product = { .rows = t->rows,
                             .depth = least(kc, end - k),
                             .columns = t->cols,
                             .type = p->b.type,
                             .b = (const char *)p->b.at + (k * p->b.row_stride + t->col) * cpu_type_bytes(p->b.type),
                             .ldb = p->b.row_stride,
                             .c = t->c,
                             .ldc = t->ldc,
                             .add = k > t->k,
                             .is_far = plan->ahead };
        a_give(p, t, k, &product, s);
        p->kernels->thin(&product);
        for (int64_t i = 0; t->row_sum && i < product.depth; i++)
            for (int64_t row = 0; row < product.rows; row++)
                t->row_sum[row] += product.a[row * product.lda + i * product.step];
    }
    if (take)
        take(p, t->row, t->rows, t->col, t->cols, t->c, t->ldc);
}
