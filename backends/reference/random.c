/* SPDX-License-Identifier: MIT
 *
 * random.c - dropout and random numbers: a number depends on what it is for, not on where it lies (plugin.h section 9).
 */
#include <string.h>

#include "backends/common/philox.h"
#include "backends/reference/element.h"
#include "backends/reference/reference.h"

/* What the numbers of one run are keyed by. */
typedef struct source {
    uint64_t key, sample_base, rows_per_sample, columns;
    uint32_t stream;
} source;

static source source_of(const void *step_block, const void *batch_block, uint64_t rows_per_sample, uint64_t columns,
                        uint32_t stream)
{
    cek_step_block step;
    cek_batch_block batch = { 0 };
    memcpy(&step, step_block, sizeof step);
    if (batch_block)
        memcpy(&batch, batch_block, sizeof batch);
    return (source){ step.random_key, batch.sample_base, rows_per_sample, columns, stream };
}

/* The block of four words that element `i` (row-major over all rows) belongs to, and which of them is its own. */
static uint32_t source_words(const source *from, uint64_t i, uint32_t words[4])
{
    uint64_t row = i / from->columns, sample = from->sample_base + row / from->rows_per_sample;
    uint64_t index = row % from->rows_per_sample * from->columns + i % from->columns;
    cek__random_block(from->key, from->stream, sample, index / 4, words);
    return index % 4;
}

void cek__reference_dropout(const cek_op *op, cek_queue *queue, void *const *at, void *workspace)
{
    const cek_dropout_desc *desc = &op->request.desc.dropout;
    const source from = source_of(at[CEK_DROPOUT_STEP], at[CEK_DROPOUT_BATCH], desc->rows_per_sample, desc->columns,
                                  desc->stream);
    uint32_t words[4];
    (void)queue, (void)workspace;
    for (uint64_t i = 0; i < desc->rows * desc->columns; i++) {
        uint32_t own = source_words(&from, i, words);
        double x = load(at[CEK_DROPOUT_X], desc->type, i);
        store(at[CEK_DROPOUT_Y], desc->type, i, words[own] >= desc->threshold ? x * desc->scale : 0);
    }
}

/* Words come in pairs: the first of a pair takes the cosine, the second the sine. */
static double normal(const uint32_t words[4], uint32_t own)
{
    double u1 = (double)((words[own & 2] >> 8) + 1) * 0x1p-24, u2 = (double)(words[(own & 2) + 1] >> 8) * 0x1p-24;
    double radius = sqrt(-2 * log(u1)), angle = 2 * M_PI * u2;
    return radius * (own & 1 ? sin(angle) : cos(angle));
}

void cek__reference_random(const cek_op *op, cek_queue *queue, void *const *at, void *workspace)
{
    const cek_random_desc *desc = &op->request.desc.random;
    const source from = source_of(at[CEK_RANDOM_STEP], at[CEK_RANDOM_BATCH], desc->rows_per_sample, desc->columns,
                                  desc->stream);
    uint32_t words[4];
    (void)queue, (void)workspace;
    for (uint64_t i = 0; i < desc->rows * desc->columns; i++) {
        uint32_t own = source_words(&from, i, words);
        double x = desc->distribution == CEK_RANDOM_NORMAL
                       ? desc->a + desc->b * normal(words, own)
                       : desc->a + (desc->b - desc->a) * ((double)(words[own] >> 8) * 0x1p-24);
        store(at[CEK_RANDOM_Y], desc->type, i, x);
    }
}
