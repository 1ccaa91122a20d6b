/* SPDX-License-Identifier: MIT
 *
 * loss.c - softmax, cross-entropy and squared error.
 *
 * A loss selects the rows that count; it does not multiply the others by zero, since they may hold anything.
 */
#include <string.h>

#include "backends/common/extent.h"
#include "backends/reference/element.h"
#include "backends/reference/reference.h"

/* What softmax needs to know of a row: exp(x - largest) / sum never overflows. */
typedef struct row_sum {
    double largest, sum;
    uint64_t first_largest;
    bool has_nan;
} row_sum;

static row_sum row_read(const void *x, cek_dtype type, uint64_t first, uint64_t columns)
{
    row_sum row = { .largest = load(x, type, first) };
    for (uint64_t j = 0; j < columns; j++) {
        double value = load(x, type, first + j);
        row.has_nan |= isnan(value);
        if (value > row.largest) {
            row.largest = value;
            row.first_largest = j;
        }
    }
    for (uint64_t j = 0; j < columns; j++)
        row.sum += exp(load(x, type, first + j) - row.largest);
    return row;
}

void cek__reference_softmax(const cek_op *op, cek_queue *queue, void *const *at, void *workspace)
{
    const cek_softmax_desc *desc = &op->request.desc.softmax;
    (void)queue, (void)workspace;
    for (uint64_t i = 0; i < desc->rows * desc->columns; i += desc->columns) {
        row_sum row = row_read(at[CEK_SOFTMAX_X], desc->type, i, desc->columns);
        for (uint64_t j = i; j < i + desc->columns; j++) {
            double x = load(at[CEK_SOFTMAX_X], desc->type, j) - row.largest;
            store(at[CEK_SOFTMAX_Y], desc->type, j,
                  desc->flags & CEK_SOFTMAX_LOG ? x - log(row.sum) : exp(x) / row.sum);
        }
    }
}

/* Samples that count: all without a batch block. */
static uint64_t samples_valid(const void *block)
{
    cek_batch_block batch;
    if (!block)
        return UINT64_MAX;
    memcpy(&batch, block, sizeof batch);
    return batch.rows_valid;
}

/* loss_scale / N, the factor of every gradient; 0 without a step block (then there is no gradient). */
static double gradient_scale(const void *block, cek_dtype type)
{
    cek_step_block step;
    if (!block)
        return 0;
    memcpy(&step, block, sizeof step);
    return block_number(step.loss_scale, type) * block_number(step.inv_n, type);
}

static double row_weight(const void *weights, uint64_t row)
{
    return weights ? load(weights, CEK_F32, row) : 1;
}

static void row_zero(void *to, cek_dtype type, uint64_t first, uint64_t columns)
{
    for (uint64_t j = first; to && j < first + columns; j++)
        store(to, type, j, 0);
}

void cek__reference_cross_entropy(const cek_op *op, cek_queue *queue, void *const *at, void *workspace)
{
    const cek_cross_entropy_desc *desc = &op->request.desc.cross_entropy;
    const void *logits = at[CEK_CROSS_ENTROPY_LOGITS];
    void *gradient = at[CEK_CROSS_ENTROPY_DLOGITS];
    uint64_t valid = samples_valid(at[CEK_CROSS_ENTROPY_BATCH]);
    double scale = gradient_scale(at[CEK_CROSS_ENTROPY_STEP], desc->type), loss = 0;
    int32_t correct = 0;
    (void)queue, (void)workspace;

    for (uint64_t r = 0; r < desc->rows; r++) {
        uint64_t first = r * desc->classes;
        double weight = row_weight(at[CEK_CROSS_ENTROPY_WEIGHTS], r);
        if (r / desc->rows_per_sample >= valid) {
            row_zero(gradient, desc->type, first, desc->classes);
            continue;
        }
        int32_t label = ((const int32_t *)at[CEK_CROSS_ENTROPY_LABELS])[r];
        bool known = label >= 0 && (uint64_t)label < desc->classes;
        row_sum row = row_read(logits, desc->type, first, desc->classes);
        correct += known && !row.has_nan && row.first_largest == (uint64_t)label;
        if (weight == 0) {
            row_zero(gradient, desc->type, first, desc->classes);
            continue;
        }
        double label_logit = known ? load(logits, desc->type, first + (uint64_t)label) : NAN;
        loss += weight * (log(row.sum) - (label_logit - row.largest));
        for (uint64_t j = 0; gradient && j < desc->classes; j++) {
            double p = exp(load(logits, desc->type, first + j) - row.largest) / row.sum;
            double target = known ? j == (uint64_t)label : NAN;
            store(gradient, desc->type, first + j, scale * weight * (p - target));
        }
    }
    if (at[CEK_CROSS_ENTROPY_LOSS])
        store_or_add(at[CEK_CROSS_ENTROPY_LOSS], cek__type_sum(desc->type), 0, loss,
                     cek__request_accumulates(&op->request, CEK_CROSS_ENTROPY_LOSS));
    if (at[CEK_CROSS_ENTROPY_CORRECT])
        store_or_add(at[CEK_CROSS_ENTROPY_CORRECT], CEK_I32, 0, correct,
                     cek__request_accumulates(&op->request, CEK_CROSS_ENTROPY_CORRECT));
}

void cek__reference_squared_error(const cek_op *op, cek_queue *queue, void *const *at, void *workspace)
{
    const cek_squared_error_desc *desc = &op->request.desc.squared_error;
    void *gradient = at[CEK_SQUARED_ERROR_DPREDICTION];
    uint64_t valid = samples_valid(at[CEK_SQUARED_ERROR_BATCH]);
    double scale = gradient_scale(at[CEK_SQUARED_ERROR_STEP], desc->type), loss = 0;
    (void)queue, (void)workspace;

    for (uint64_t r = 0; r < desc->rows; r++) {
        uint64_t first = r * desc->columns;
        double weight = row_weight(at[CEK_SQUARED_ERROR_WEIGHTS], r);
        if (r / desc->rows_per_sample >= valid || weight == 0) {
            row_zero(gradient, desc->type, first, desc->columns);
            continue;
        }
        for (uint64_t j = first; j < first + desc->columns; j++) {
            double error = load(at[CEK_SQUARED_ERROR_PREDICTION], desc->type, j) -
                           load(at[CEK_SQUARED_ERROR_TARGET], cek__type_sum(desc->type), j);
            loss += weight * error * error;
            if (gradient)
                store(gradient, desc->type, j, scale * weight * 2 * error);
        }
    }
    if (at[CEK_SQUARED_ERROR_LOSS])
        store_or_add(at[CEK_SQUARED_ERROR_LOSS], cek__type_sum(desc->type), 0, loss,
                     cek__request_accumulates(&op->request, CEK_SQUARED_ERROR_LOSS));
}
