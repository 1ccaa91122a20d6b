/* random_op.c - dropout and random numbers.
 *
 * Owns: the way from an element to its sample and index (plugin.h section 9). The rows of one
 * sample are one run of indices, so the unit of work is a piece of a sample. */
#include <stdio.h>

#include "backends/common/extent.h"
#include "backends/cpu/ops/parallel.h"
#include "backends/cpu/ops/ops.h"

enum { CHUNK = 1024 }; /* words that are made, then used, in the first-level cache */

typedef struct random_op {
    struct cek_op head;
    int64_t elements, per_sample; /* of all rows, and of one sample */
    int64_t chunks;               /* per sample */
    cek_dtype type;
} random_op;

typedef struct job {
    const random_op *r;
    const cpu_kernels *k;
    uint64_t key, base; /* of the step; the first sample */
    uint32_t stream;
    const cek_dropout_desc *dropout;
    const cek_random_desc *random;
    const char *x;
    char *y;
} job;

static cek_status plan_samples(cek_op *op, uint64_t rows, uint64_t columns, uint64_t rows_per_sample, cek_dtype type)
{
    random_op *r = (random_op *)op;

    if (!type_in(type, CPU_TYPES_REAL))
        return cek__cpu_refuse_type(op, type);
    r->elements = (int64_t)(rows * columns);
    r->per_sample = rows_per_sample < rows ? (int64_t)(rows_per_sample * columns) : r->elements;
    r->chunks = (r->per_sample + CHUNK - 1) / CHUNK;
    r->type = type;
    op_algorithm(op, "philox4x32-10");
    return CEK_OK;
}

static cek_status dropout_plan(cek_op *op)
{
    const cek_dropout_desc *d = &op->request.desc.dropout;

    return plan_samples(op, d->rows, d->columns, d->rows_per_sample, d->type);
}

static cek_status random_plan(cek_op *op)
{
    const cek_random_desc *d = &op->request.desc.random;

    return plan_samples(op, d->rows, d->columns, d->rows_per_sample, d->type);
}

/* A chunk of one sample: its first element in memory, its length, and the words that belong to
 * it. */
typedef struct chunk {
    int64_t at, n;
    uint32_t words[CHUNK + CPU_PHILOX_SLACK];
} chunk;

static bool chunk_make(const job *j, int64_t item, chunk *c)
{
    const random_op *r = j->r;
    const int64_t sample = item / r->chunks, index = item % r->chunks * CHUNK;
    const int64_t left_sample = r->per_sample - index;
    int64_t left;

    c->at = sample * r->per_sample + index;
    left = r->elements - c->at; /* the last sample may be short of rows */
    if (left <= 0)
        return false;
    c->n = left_sample < left ? left_sample : left;
    c->n = c->n < CHUNK ? c->n : CHUNK;
    j->k->ops->random->words(j->key, j->stream, j->base + (uint64_t)sample, (uint64_t)index / 4, (c->n + 3) / 4,
                             c->words);
    return true;
}

static void dropout_chunks(void *arg, int64_t begin, int64_t end, int worker)
{
    const job *j = arg;
    const uint32_t bytes = cek__type_bytes(j->r->type);
    float block[CHUNK];
    chunk c;

    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        if (!chunk_make(j, i, &c))
            continue;
        const char *from = j->x + c.at * bytes;
        char *to = j->y + c.at * bytes;
        const float *x = (const float *)from;
        float *y = (float *)to;

        if (j->r->type != CEK_F32) {
            cek__cpu_load(j->k, j->r->type, c.n, from, block);
            x = y = block;
        }
        j->k->ops->random->dropout(c.n, c.words, j->dropout->threshold, (float)j->dropout->scale, x, y);
        if (j->r->type != CEK_F32)
            cek__cpu_store(j->k, j->r->type, c.n, block, to);
    }
}

static void random_chunks(void *arg, int64_t begin, int64_t end, int worker)
{
    const job *j = arg;
    const cek_random_desc *d = j->random;
    const cpu_random_kernels *k = j->k->ops->random;
    float block[CHUNK + CPU_PHILOX_SLACK];
    chunk c;

    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        if (!chunk_make(j, i, &c))
            continue;
        if (d->distribution == CEK_RANDOM_UNIFORM)
            k->uniform(c.n, c.words, (float)d->a, (float)(d->b - d->a), block);
        else
            k->normal(c.n, c.words, (float)d->a, (float)d->b, block);
        cek__cpu_store(j->k, j->r->type, c.n, block, j->y + c.at * cek__type_bytes(j->r->type));
    }
}

static job job_of(const cek_op *op, const cek_step_block *step, const cek_batch_block *batch, uint32_t stream)
{
    return (job){ .r = (const random_op *)op,
                  .k = op_kernels(op),
                  .key = step->random_key,
                  .base = batch ? batch->sample_base : 0,
                  .stream = stream };
}

static int64_t items(const random_op *r)
{
    return (r->elements + r->per_sample - 1) / r->per_sample * r->chunks;
}

static uint64_t item_ps(const random_op *r, uint64_t ps_element)
{
    const int64_t n = r->per_sample < CHUNK ? r->per_sample : CHUNK;

    return 2 * CPU_PS_CALL + (uint64_t)n * (CPU_PS_WORD + ps_element);
}

static void dropout_run(const cek_op *op, cek_queue *queue, void *const *at, void *workspace)
{
    const cek_dropout_desc *d = &op->request.desc.dropout;
    job j = job_of(op, at[CEK_DROPOUT_STEP], at[CEK_DROPOUT_BATCH], d->stream);

    (void)queue;
    (void)workspace;
    j.dropout = d;
    j.x = at[CEK_DROPOUT_X];
    j.y = at[CEK_DROPOUT_Y];
    cek__cpu_for(op_dev(op), items(j.r), 1, item_ps(j.r, 8 * CPU_PS_BYTE), dropout_chunks, &j);
}

static void random_run(const cek_op *op, cek_queue *queue, void *const *at, void *workspace)
{
    const cek_random_desc *d = &op->request.desc.random;
    job j = job_of(op, at[CEK_RANDOM_STEP], at[CEK_RANDOM_BATCH], d->stream);

    (void)queue;
    (void)workspace;
    j.random = d;
    j.y = at[CEK_RANDOM_Y];
    cek__cpu_for(op_dev(op), items(j.r), 1, item_ps(j.r, 2 * CPU_PS_EXP), random_chunks, &j);
}

const cpu_kind cek__cpu_dropout = { sizeof(random_op), dropout_plan, dropout_run, NULL };
const cpu_kind cek__cpu_random = { sizeof(random_op), random_plan, random_run, NULL };
