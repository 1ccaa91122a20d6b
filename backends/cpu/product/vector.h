/* vector.h - products with hardly any rows, whose B has its columns along k: dot products,
 * nothing packed.
 *
 * Owns: which products those are, and their tasks. Must not know: how other products are computed. */
#ifndef CEK_BACKENDS_CPU_PRODUCT_VECTOR_H
#define CEK_BACKENDS_CPU_PRODUCT_VECTOR_H

#include "backends/cpu/product/gemm.h"

/* Kernels take so many rows at once, or half as many: B is read once for them, and nothing is gained by a copy. */
enum { VECTOR_PASS_ROWS = 4 };

/* cek__gemm_is_vector - whether the product (in plan->d's roles) is one of them; `cost`: what tiles would take, in
 * plan.c's cycles, on one worker. */
int cek__gemm_is_vector(const gemm_desc *d, const cpu_config *config, double cost);

/* cek__gemm_vector_cost - of such a product, in these cycles. */
double cek__gemm_vector_cost(const gemm_desc *d, const cpu_config *config);

/* cek__gemm_vector_workspace - bytes for `workers` workers, of such a product. */
size_t cek__gemm_vector_workspace(const gemm_desc *d, int workers);

/* cek__gemm_vector_run - computes; `source` opens the products of the batch. */
void cek__gemm_vector_run(const gemm_plan *plan, cpu_threads *threads, const product_source *source, void *workspace);

#endif
