/* SPDX-License-Identifier: MIT
 * arg.c - where along an axis the largest or smallest element is. */
#include "backends/common/extent.h"
#include "backends/reference/element.h"
#include "backends/reference/reference.h"

/* Whether x wins over the best of those in front of it. */
static bool is_better(uint32_t function, double x, double best)
{
    if (isnan(best))
        return false;
    return isnan(x) || (function == CEK_ARG_MAX ? x > best : x < best);
}

void cek__reference_arg(const cek_op *op, cek_queue *queue, void *const *at, void *workspace)
{
    const cek_arg_desc *desc = &op->request.desc.arg;
    const uint64_t length = desc->shape[desc->axis], stride = (uint64_t)desc->x_strides[desc->axis];
    uint64_t kept_shape[CEK_RANK_MAX], kept[CEK_RANK_MAX] = { 0 }, place = 0;
    (void)queue, (void)workspace;
    for (uint32_t i = 0; i < desc->rank; i++)
        kept_shape[i] = i == desc->axis ? 1 : desc->shape[i];
    do {
        const uint64_t start = index_place(kept, desc->x_strides, desc->rank);
        double best = load(at[CEK_ARG_X], desc->type, start);
        uint64_t where = 0;
        for (uint64_t i = 1; i < length; i++) {
            double x = load(at[CEK_ARG_X], desc->type, start + i * stride);
            if (is_better(desc->function, x, best))
                best = x, where = i;
        }
        store(at[CEK_ARG_Y], CEK_I32, place++, (double)where);
    } while (index_next(kept, kept_shape, desc->rank));
}
