/* SPDX-License-Identifier: MIT
 *
 * lower.h - how an operation becomes steps. One function per family; each adds steps and may refuse with
 * UNSUPPORTED.
 *
 * Sizes of groups, chunks and tiles follow from the descriptor and the model of the device alone, so every operation is
 * deterministic.
 */
#ifndef CEK_BACKENDS_GPU_LOWER_H
#define CEK_BACKENDS_GPU_LOWER_H

#include "backends/common/extent.h"
#include "backends/gpu/gpu.h"
#include "kernels/gpu/args.h"

typedef cek_status cek__gpu_lower_fn(cek_op *op);
cek__gpu_lower_fn cek__gpu_lower_gemm, cek__gpu_lower_conv, cek__gpu_lower_pool, cek__gpu_lower_pointwise,
    cek__gpu_lower_reduce, cek__gpu_lower_copy, cek__gpu_lower_softmax, cek__gpu_lower_loss, cek__gpu_lower_random,
    cek__gpu_lower_optimizer, cek__gpu_lower_gather, cek__gpu_lower_scatter_add, cek__gpu_lower_arg;

/* The fast way on OpenCL devices that are CPUs: true where it added the steps of the product, or failed trying
 * (op->failure). */
bool cek__gpu_lower_gemm_tiles(cek_op *op);
bool cek__gpu_lower_conv_tiles(cek_op *op);

/* The slot of the result, of every kind that providers do. */
enum { CEK__GPU_RESULT = CEK_GEMM_C };
_Static_assert(CEK_GEMM_C == CEK_CONV_FORWARD_Y && CEK_GEMM_C == CEK_CONV_BACKWARD_DATA_DX &&
                   CEK_GEMM_C == CEK_CONV_BACKWARD_WEIGHTS_DW,
               "one slot for all");

/* What of an operation a provider leaves: its sums beside the product, before the call; the
 * epilogue from plain sums, which lie at `sums` as the result lies, after it. */
void cek__gpu_lower_sums(cek_op *op);
void cek__gpu_lower_finish(cek_op *op, cek__gpu_place sums);

/* cek__gpu_tiles - the tiles that a product or a convolution may be computed by, as numbers for `tile` of an operation,
 * at most CEK__GPU_TILES; 0 where there is no choice. Whether the compiled kernel takes one is seen when
 * it is lowered. */
enum { CEK__GPU_TILES = 4 };
uint32_t cek__gpu_tiles(const cek_op *op, uint32_t tiles[CEK__GPU_TILES]);

/* cek__gpu_pool_ways - the same of a pool: the ways to compute it, where the user names none. */
uint32_t cek__gpu_pool_ways(const cek_op *op, uint32_t ways[CEK__GPU_TILES]);

/* cek__gpu_step_call - the call of a provider; takes the plan over. The result's slot lies at `result`. */
void cek__gpu_step_call(cek_op *op, const cek__gpu_provider *provider, const cek__gpu_offer *offer,
                        cek__gpu_place result);

/* cek__gpu_step_add - one launch of kernel `name`: `items` work-items at least, along x, in groups
 * that suit the device. The step's buffers and arguments are the caller's to fill in; NULL without
 * memory or kernel (then op->failure is set). */
cek__gpu_step *cek__gpu_step_add(cek_op *op, const char *source, const char *defines, const char *name, uint64_t items);
/* The same in two parts, for work-items that share local memory: the kernel, and how many of them a group has at most,
 * a power of two that the kernel, as it was compiled, takes (1 on a CPU, and without a step); then the grid, groups
 * that are numbered, of `size` work-items, in layers along z. */
cek__gpu_step *cek__gpu_step_load(cek_op *op, const char *source, const char *defines, const char *name,
                                  uint32_t *group);
void cek__gpu_step_groups(const cek_op *op, cek__gpu_step *step, uint64_t groups, uint32_t size, uint64_t layers);
/* The same with groups of a given size. cek__gpu_step_fits - whether the kernel, as it was compiled, takes
 * such a group.
 * cek__gpu_step_drop - without the last step again: another size is tried. */
cek__gpu_step *cek__gpu_step_grid(cek_op *op, const char *source, const char *defines, const char *name,
                                  const uint64_t groups[3], const uint32_t group[3]);
bool cek__gpu_step_fits(const cek_op *op, const cek__gpu_step *step);
void cek__gpu_step_drop(cek_op *op);
/* cek__gpu_step_fill - the buffers, as places, and the arguments. */
void cek__gpu_step_fill(cek__gpu_step *step, const cek__gpu_place *buffers, uint32_t count, const void *args,
                        uint32_t bytes);

/* cek__gpu_workspace - `bytes` more of workspace: the place where they begin. */
cek__gpu_place cek__gpu_workspace(cek_op *op, uint64_t bytes);
/* cek__gpu_slot - a slot of the operation where it is given, else nothing. */
cek__gpu_place cek__gpu_slot(const cek_op *op, uint32_t slot);

/* cek__gpu_items - work-items for `count` elements in kernels that use FOR_EACH; cek__gpu_lanes - LANES there. */
uint64_t cek__gpu_items(const cek_dev *dev, uint64_t count);
uint32_t cek__gpu_lanes(const cek_dev *dev);

/* cek__gpu_power - the smallest power of two of at least `least`, or the largest of at most `most`. cek__gpu_row_items
 * - how many work-items of a group share what `length` neighbours in memory are reduced to; a power of two too. */
uint32_t cek__gpu_power(uint64_t least, uint32_t most);
uint32_t cek__gpu_row_items(uint64_t length, uint32_t group);

/* cek__gpu_shape - how a number is taken apart by dimensions; false where it may be 2^31 or more. */
bool cek__gpu_shape(uint32_t rank, const uint64_t *sizes, cek_k_shape *out);

/* cek__gpu_defines - what every source is told of the device, followed by the given lines. */
#define CEK__GPU_DEFINES 8192
void cek__gpu_defines(const cek_dev *dev, char *to, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* "f32", as the kernels' macros want it. */
const char *cek__gpu_type(cek_dtype type);

/* cek__gpu_collapse - fewer dimensions for the same elements: those of size 1 go, neighbours that
 * lie in a row in every operand merge. `strides` are `operands` rows of CEK_RANK_MAX. At least rank
 * 1 remains. */
uint32_t cek__gpu_collapse(uint32_t rank, uint64_t *shape, uint64_t (*strides)[CEK_RANK_MAX], uint32_t operands);

/* cek__gpu_reduce_add - the steps of a reduction from one place to another; the workspace that it needs comes on
 * top. */
typedef struct cek__gpu_terms { /* what plugin.h says of X2, CENTRE and BATCH; a place may be nothing */
    cek__gpu_place second, centre, batch;
    int64_t second_strides[CEK_RANK_MAX]; /* without a second operand the first one's */
    uint64_t rows, rows_per_sample;       /* of axis 0; the rest is 0 without a batch block */
    uint64_t row_count;                   /* of a row: terms of each output, or outputs, as `rows_are` says */
    uint32_t rows_are;                    /* CEK_K_TERMS_ROWS or _OUTPUTS, and _MEAN where that is of what counts */
} cek__gpu_terms;
typedef struct cek__gpu_reduction {
    cek__gpu_place from, to;
    const cek__gpu_terms *terms; /* or NULL */
    cek_dtype type;
    uint32_t function;
    bool accumulate;
    uint32_t rank, axes;
    uint64_t shape[CEK_RANK_MAX];
    int64_t strides[CEK_RANK_MAX];
    float number; /* what a result is divided by; 0 is 1 */
    bool last;    /* not in pieces */
} cek__gpu_reduction;
void cek__gpu_reduce_add(cek_op *op, const cek__gpu_reduction *reduction);

/* cek__gpu_window - the window of a convolution or a pool in three dimensions. `dilation` may be NULL. */
cek_k_window cek__gpu_window(uint32_t spatial, const uint64_t *in, const uint64_t *out, const uint64_t *kernel,
                             const uint64_t *stride, const uint64_t *dilation, const uint64_t *pad_lo);
uint64_t cek__gpu_positions(const cek_u32 size[3]);

#endif
