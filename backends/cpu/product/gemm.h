/* gemm.h - matrix products on one CPU device.
 *
 * Owns: the plan of a product (blocking, threads, workspace), packing, the walk over blocks, the
 * epilogue.
 * Must not know: plugin.h, devices, queues. Allocates nothing; immutable after planning; no state.
 *
 *     V = A x B  (+ bias[j])                        f32 sums, whatever the operand types
 *     V = act(V),  then  V = V * act'(ref)          each optional
 *     C = V        or    C = C + V where accumulate, rounded to C's type, to nearest even
 *     sum[i] = (sum[i] +) sum over k of A[i][k]     optional
 *
 * A is m x k, B is k x n, C and ref are m x n, each for `batch` independent products; element
 * (i, j) of a matrix is at p[b * batch_stride + i * row_stride + j * col_stride] (matrix.h), so a
 * transpose is a swap of strides and a batch stride of 0 shares an operand between all products.
 * Strides are in elements, any sign or order, 0 only along what there is one of; C may not overlap
 * another operand.
 * Summation order is a function of the descriptor and the configuration alone: never of
 * timing, never of the number of threads.
 *
 *     gemm_desc d = { .m = m, .n = n, .k = k, .batch = 1,
 *                     .a = { CPU_F32, k, 1, 0 }, .b = { CPU_F32, n, 1, 0 },
 *                     .c = { CPU_F32, n, 1, 0 } };
 *     gemm_plan plan;
 *     cek__gemm_plan(&d, config, cek__threads_workers(threads), &plan);           // plan.workspace_bytes
 *     cek__gemm_run(&plan, threads, &(gemm_args){ .a = A, .b = B, .c = C }, workspace);
 */
#ifndef CEK_BACKENDS_CPU_PRODUCT_GEMM_H
#define CEK_BACKENDS_CPU_PRODUCT_GEMM_H

#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/product/product.h"

typedef struct gemm_desc {
    int64_t m, n, k, batch; /* >= 0; k == 0 gives V = 0 */
    gemm_matrix a, b, c;
    int accumulate; /* add C's old value */
    int bias;       /* args.bias may be given */
    cpu_act act;    /* activation on store */
    cpu_act deriv;  /* activation whose derivative multiplies */
    /* where deriv: the activation's output for relu, tanh, sigmoid, its input for gelu */
    gemm_matrix ref;
    int packed;         /* B comes as cek__gemm_pack has packed it, where the plan says so */
    int sum;            /* args.sum may be given */
    int sum_accumulate; /* add sum's old value */
} gemm_desc;

typedef struct gemm_args {
    const void *a, *b; /* B packed, where it is */
    void *c;
    const float *bias; /* where desc.bias: n values, or NULL */
    const void *ref;   /* where deriv */
    float *sum;        /* where desc.sum: batch x m values, or NULL */
} gemm_args;

/* Filled by cek__gemm_plan; `workspace_bytes`, `algorithm` and `packed_bytes` are for the caller, who may tell from
 * `product` and `d` which packed forms are the same. */
typedef struct gemm_plan {
    size_t workspace_bytes; /* alignment 64 */
    const char *algorithm;  /* a static text: "gemm", "gemm, split k", "dot products" ... */
    size_t packed_bytes;    /* of a packed B; 0: it comes as the descriptor says, since packing it would not pay */
    gemm_desc d;            /* with the roles of A and B exchanged where `swapped` */
    int swapped;            /* C^T = B^T A^T is computed */
    int vector;             /* nothing is packed: dot products */
    product_plan product;
} gemm_plan;

/* cek__gemm_plan - chooses. Cannot fail: every descriptor that keeps the rules above has a plan.
 * `workers` is the largest number of workers of the pools that will run it. */
void cek__gemm_plan(const gemm_desc *desc, const cpu_config *config, int workers, gemm_plan *out);

/* cek__gemm_operands - how A and B of a product of strided matrices are brought to the tiles, and how deep its blocks
 * are: for plans whose fields before these are set. Of `desc` only sizes, A and B are looked at. */
void cek__gemm_operands(const gemm_desc *desc, product_plan *plan);

/* cek__gemm_pack - packs one B, which all products of the batch read, for this plan and others of equal B and
 * configuration. `to`: plan->packed_bytes, aligned to 64. The same bits come of it, but where a plain B would be met by
 * dot products. */
void cek__gemm_pack(const gemm_plan *plan, cpu_threads *threads, const void *b, float *to);

/* cek__gemm_run - computes. `workspace` has plan->workspace_bytes, aligned to 64, and belongs to
 * this call until it returns.
 * Threads: one plan may run on several threads at once, each with its own workspace. */
void cek__gemm_run(const gemm_plan *plan, cpu_threads *threads, const gemm_args *args, void *workspace);

#endif
