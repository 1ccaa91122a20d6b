/* SPDX-License-Identifier: MIT
 * tensor.c - reductions and copies of strided tensors. */
#include "backends/common/extent.h"
#include "backends/reference/element.h"
#include "backends/reference/reference.h"

/* The result so far, with one more element. */
static double reduce_step(uint32_t function, double so_far, double x, bool first)
{
    switch (function) {
    case CEK_REDUCE_MAX: return first || x > so_far || isnan(x) ? x : so_far;
    case CEK_REDUCE_MIN: return first || x < so_far || isnan(x) ? x : so_far;
    case CEK_REDUCE_SUM_SQUARES: return so_far + x * x;
    case CEK_REDUCE_COUNT_NONFINITE: return so_far + !isfinite(x);
    default: return so_far + x;
    }
}

void cek__reference_reduce(const cek_op *op, cek_queue *queue, void *const *at, void *workspace)
{
    const cek_reduce_desc *desc = &op->request.desc.reduce;
    bool add = cek__request_accumulates(&op->request, CEK_REDUCE_Y);
    uint64_t kept_shape[CEK_RANK_MAX], reduced_shape[CEK_RANK_MAX], kept[CEK_RANK_MAX] = { 0 }, place = 0;
    (void)queue, (void)workspace;
    for (uint32_t i = 0; i < desc->rank; i++) {
        bool reduced = desc->axes >> i & 1;
        kept_shape[i] = reduced ? 1 : desc->shape[i];
        reduced_shape[i] = reduced ? desc->shape[i] : 1;
    }
    do {
        uint64_t reduced[CEK_RANK_MAX] = { 0 }, start = index_place(kept, desc->x_strides, desc->rank), count = 0;
        double result = 0;
        do {
            double x = load(at[CEK_REDUCE_X], desc->x_type, start + index_place(reduced, desc->x_strides, desc->rank));
            result = reduce_step(desc->function, result, x, count++ == 0);
        } while (index_next(reduced, reduced_shape, desc->rank));
        if (desc->function == CEK_REDUCE_MEAN)
            result /= (double)count;
        store_or_add(at[CEK_REDUCE_Y], cek__type_sum(desc->x_type), place++, result, add);
    } while (index_next(kept, kept_shape, desc->rank));
}

/* Double holds every value of every type, so that one rounding is left. */
void cek__reference_copy(const cek_op *op, cek_queue *queue, void *const *at, void *workspace)
{
    const cek_copy_desc *desc = &op->request.desc.copy;
    uint64_t index[CEK_RANK_MAX] = { 0 };
    (void)queue, (void)workspace;
    do {
        double x = load(at[CEK_COPY_X], desc->x_type, index_place(index, desc->x_strides, desc->rank));
        store(at[CEK_COPY_Y], desc->y_type, index_place(index, desc->y_strides, desc->rank), x);
    } while (index_next(index, desc->shape, desc->rank));
}
