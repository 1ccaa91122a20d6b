/* packed.c - the right sides of products, packed before they are used.
 *
 * Owns: the form, panels of nr columns with all steps of k, one behind the other, zeros beyond the last column: so a
 * block's panel is a place in it, whatever blocks there are (PACK_PANELS). Must not know: when it pays (gemm.c). */
#include "backends/cpu/product/gemm.h"

#include "backends/cpu/sizes.h"

typedef struct packing {
    const gemm_plan *plan;
    pack_operand from;
    float *to;
} packing;

static void panel_task(void *arg, int64_t task, int worker)
{
    const packing *p = arg;
    const product_plan *product = &p->plan->product;
    const int64_t nr = product->nr, col = task * nr;

    (void)worker;
    cek__pack_panel(product->config->kernels, &p->from, product->k, col, least(nr, product->n - col),
                    p->to + col * product->k);
}

void cek__gemm_pack(const gemm_plan *plan, cpu_threads *threads, const void *b, float *to)
{
    const gemm_matrix *m = &plan->d.b;
    packing p = { plan, pack_of(b, m->type, m->row_stride, m->col_stride, cek__pack_way_b(m)), to };

    p.from.words = plan->product.words;
    p.from.k = plan->product.elements;
    cek__threads_run(threads, ceil_div(plan->product.n, plan->product.nr), panel_task, &p);
}
