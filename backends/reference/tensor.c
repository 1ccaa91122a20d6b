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

/* The result of no terms. */
static double reduce_nothing(uint32_t function)
{
    return function == CEK_REDUCE_MAX ? -INFINITY : function == CEK_REDUCE_MIN ? INFINITY : 0;
}

/* What each term is made of, and which count. */
typedef struct terms {
    const cek_reduce_desc *desc;
    void *const *at;
    uint64_t rows; /* of axis 0 that count */
} terms;

static terms terms_make(const cek_reduce_desc *desc, void *const *at)
{
    terms t = { desc, at, desc->shape[0] };
    const cek_batch_block *batch = at[CEK_REDUCE_BATCH];
    if (batch && batch->rows_valid <= (t.rows - 1) / desc->rows_per_sample)
        t.rows = batch->rows_valid * desc->rows_per_sample;
    return t;
}

/* The term of an element of the result's line: `kept` and `reduced` are the two parts of its index. */
static double term_of(const terms *t, const uint64_t *kept, const uint64_t *reduced, double centre)
{
    const cek_reduce_desc *d = t->desc;
    double x = load(t->at[CEK_REDUCE_X], d->x_type,
                    index_place(kept, d->x_strides, d->rank) + index_place(reduced, d->x_strides, d->rank)) -
               centre;
    if (t->at[CEK_REDUCE_X2])
        x *= load(t->at[CEK_REDUCE_X2], d->x_type,
                  index_place(kept, d->x2_strides, d->rank) + index_place(reduced, d->x2_strides, d->rank));
    return x;
}

void cek__reference_reduce(const cek_op *op, cek_queue *queue, void *const *at, void *workspace)
{
    const cek_reduce_desc *desc = &op->request.desc.reduce;
    const cek_dtype sum = cek__type_sum(desc->x_type);
    const terms t = terms_make(desc, at);
    bool add = cek__request_accumulates(&op->request, CEK_REDUCE_Y);
    uint64_t kept_shape[CEK_RANK_MAX], reduced_shape[CEK_RANK_MAX], kept[CEK_RANK_MAX] = { 0 }, place = 0;
    (void)queue, (void)workspace;
    for (uint32_t i = 0; i < desc->rank; i++) {
        bool reduced = desc->axes >> i & 1;
        kept_shape[i] = reduced ? 1 : desc->shape[i];
        reduced_shape[i] = reduced ? desc->shape[i] : 1;
    }
    do {
        uint64_t reduced[CEK_RANK_MAX] = { 0 }, count = 0;
        const double centre = at[CEK_REDUCE_CENTRE] ? load(at[CEK_REDUCE_CENTRE], sum, place) : 0;
        double result = reduce_nothing(desc->function);
        do
            if (kept[0] + reduced[0] < t.rows)
                result = reduce_step(desc->function, result, term_of(&t, kept, reduced, centre), count++ == 0);
        while (index_next(reduced, reduced_shape, desc->rank));
        if (desc->function == CEK_REDUCE_MEAN && count)
            result /= (double)count;
        store_or_add(at[CEK_REDUCE_Y], sum, place++, result, add);
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
