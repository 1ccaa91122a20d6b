/* loss_op.c - cross-entropy and squared error.
 *
 * Owns: which rows count, labels out of range, weights, and the order in which rows are added:
 * blocks of rows fixed by the shape, each summed in f64, then added in ascending order. */
#include <math.h>

#include "backends/cpu/ops/parallel.h"
#include "backends/cpu/ops/rows.h"

enum { BLOCK_ELEMENTS = 4096 }; /* a block of rows is at least so many numbers: several us of exponentials */

typedef struct partial {
    double loss;
    int64_t correct;
} partial;

typedef struct loss_op {
    struct cek_op head;
    int64_t rows, columns, rows_per_sample;
    int64_t block, blocks; /* rows of a block */
    cek_dtype type;
    uint64_t partial_bytes; /* of the workspace; scratch rows follow */
} loss_op;

typedef struct job {
    const loss_op *l;
    const cpu_kernels *k;
    const void *x; /* logits or prediction */
    const void *t; /* labels or target */
    const float *weights;
    void *d;       /* gradient or NULL */
    float scale;   /* loss scale / N, twice that for squared error */
    int64_t valid; /* rows that count */
    partial *partials;
    float *scratch;
} job;

static void plan_rows(cek_op *op, uint64_t rows, uint64_t columns, uint64_t rows_per_sample, cek_dtype type)
{
    loss_op *l = (loss_op *)op;

    l->rows = (int64_t)rows;
    l->columns = (int64_t)columns;
    l->rows_per_sample = (int64_t)rows_per_sample;
    l->type = type;
    l->block = (BLOCK_ELEMENTS + l->columns - 1) / l->columns;
    l->blocks = (l->rows + l->block - 1) / l->block;
    l->partial_bytes = ((uint64_t)l->blocks * sizeof(partial) + 63) & ~(uint64_t)63;
    op->info.workspace_bytes = l->partial_bytes + rows_scratch(op, type, l->columns);
    op_algorithm(op, "row by row");
}

static cek_status cross_entropy_plan(cek_op *op)
{
    const cek_cross_entropy_desc *d = &op->request.desc.cross_entropy;

    if (!type_in(d->type, CPU_TYPES_REAL))
        return cek__cpu_refuse_type(op, d->type);
    plan_rows(op, d->rows, d->classes, d->rows_per_sample, d->type);
    return CEK_OK;
}

static cek_status squared_error_plan(cek_op *op)
{
    const cek_squared_error_desc *d = &op->request.desc.squared_error;

    if (!type_in(d->type, CPU_TYPES_REAL))
        return cek__cpu_refuse_type(op, d->type);
    plan_rows(op, d->rows, d->columns, d->rows_per_sample, d->type);
    return CEK_OK;
}

static void row_fill(const job *j, int64_t row, float value, float *scratch)
{
    float *d = row_place(j->l->type, j->d, row, j->l->columns, scratch);

    for (int64_t c = 0; c < j->l->columns; c++)
        d[c] = value;
    row_write(j->k, j->l->type, d, j->d, row, j->l->columns);
}

static void cross_entropy_row(const job *j, int64_t row, float *scratch, partial *sum)
{
    const int64_t n = j->l->columns;
    const float w = j->weights ? j->weights[row] : 1.0f;
    const int32_t label = ((const int32_t *)j->t)[row];
    float *d = j->d && w != 0 ? row_place(j->l->type, j->d, row, n, scratch) : NULL;
    const float *x;
    cpu_row_loss of_row;

    if (label < 0 || label >= n) {
        sum->loss += w != 0 ? NAN : 0;
        if (j->d)
            row_fill(j, row, w != 0 ? NAN : 0, scratch);
        return;
    }
    x = row_read(j->k, j->l->type, j->x, row, n, scratch);
    of_row = j->k->ops->loss->cross_entropy(n, x, label, j->scale * w, d);
    sum->correct += of_row.correct;
    if (w != 0)
        sum->loss += w * of_row.loss;
    if (d)
        row_write(j->k, j->l->type, d, j->d, row, n);
    else if (j->d)
        row_fill(j, row, 0, scratch);
}

static void squared_error_row(const job *j, int64_t row, float *scratch, partial *sum)
{
    const int64_t n = j->l->columns;
    const float w = j->weights ? j->weights[row] : 1.0f;
    const float *t = (const float *)j->t + row * n;
    float *d = j->d ? row_place(j->l->type, j->d, row, n, scratch) : NULL;
    const float *x;

    if (w == 0) {
        if (j->d)
            row_fill(j, row, 0, scratch);
        return;
    }
    x = row_read(j->k, j->l->type, j->x, row, n, scratch);
    if (n == 1) { /* the kernel's numbers, without the way there */
        const float e = x[0] - t[0];

        sum->loss += w * (double)(e * e);
        if (d)
            d[0] = e * (j->scale * w);
    } else {
        sum->loss += w * j->k->ops->loss->squared_error(n, x, t, j->scale * w, d);
    }
    if (d)
        row_write(j->k, j->l->type, d, j->d, row, n);
}

typedef void row_fn(const job *j, int64_t row, float *scratch, partial *sum);

static inline void blocks_of(const job *j, int64_t begin, int64_t end, int worker, row_fn *fn)
{
    const loss_op *l = j->l;
    float *scratch = l->type == CEK_F32 ? NULL : j->scratch + worker * row_floats(l->columns);

    for (int64_t b = begin; b < end; b++) {
        const int64_t first = b * l->block, left = l->rows - first;
        const int64_t last = first + (left < l->block ? left : l->block);
        partial sum = { 0 };

        for (int64_t row = first; row < last; row++) {
            if (row < j->valid)
                fn(j, row, scratch, &sum);
            else if (j->d)
                row_fill(j, row, 0, scratch);
        }
        j->partials[b] = sum;
    }
}

static void cross_entropy_blocks(void *arg, int64_t begin, int64_t end, int worker)
{
    blocks_of(arg, begin, end, worker, cross_entropy_row);
}

static void squared_error_blocks(void *arg, int64_t begin, int64_t end, int worker)
{
    blocks_of(arg, begin, end, worker, squared_error_row);
}

static int64_t valid_rows(const loss_op *l, const cek_batch_block *batch)
{
    if (!batch || (int64_t)batch->rows_valid >= (l->rows + l->rows_per_sample - 1) / l->rows_per_sample)
        return l->rows;
    return (int64_t)batch->rows_valid * l->rows_per_sample;
}

static partial total(const job *j)
{
    partial all = { 0 };

    for (int64_t b = 0; b < j->l->blocks; b++) {
        all.loss += j->partials[b].loss;
        all.correct += j->partials[b].correct;
    }
    return all;
}

static float step_scale(const cek_step_block *step)
{
    return step ? (float)(f32x2(step->loss_scale) * f32x2(step->inv_n)) : 0;
}

static void loss_store(const cek_op *op, uint32_t slot, float *to, double loss)
{
    if (to)
        *to = (float)(cek__request_accumulates(&op->request, slot) ? *to + loss : loss);
}

static job job_of(const cek_op *op, void *workspace, const cek_batch_block *batch)
{
    const loss_op *l = (const loss_op *)op;

    return (job){ .l = l,
                  .k = op_kernels(op),
                  .valid = valid_rows(l, batch),
                  .partials = workspace,
                  .scratch = (float *)((char *)workspace + l->partial_bytes) };
}

static void cross_entropy_run(const cek_op *op, cek_queue *queue, void *const *at, void *workspace)
{
    job j = job_of(op, workspace, at[CEK_CROSS_ENTROPY_BATCH]);
    int32_t *correct = at[CEK_CROSS_ENTROPY_CORRECT];
    partial all;

    (void)queue;
    j.x = at[CEK_CROSS_ENTROPY_LOGITS];
    j.t = at[CEK_CROSS_ENTROPY_LABELS];
    j.weights = at[CEK_CROSS_ENTROPY_WEIGHTS];
    j.d = at[CEK_CROSS_ENTROPY_DLOGITS];
    j.scale = step_scale(at[CEK_CROSS_ENTROPY_STEP]);
    cek__cpu_for(op_dev(op), j.l->blocks, 1, (uint64_t)(j.l->block * (CPU_PS_CALL * 2 + j.l->columns * CPU_PS_EXP)),
                 cross_entropy_blocks, &j);
    all = total(&j);
    loss_store(op, CEK_CROSS_ENTROPY_LOSS, at[CEK_CROSS_ENTROPY_LOSS], all.loss);
    if (correct)
        *correct = (int32_t)(cek__request_accumulates(&op->request, CEK_CROSS_ENTROPY_CORRECT) ? *correct + all.correct
                                                                                               : all.correct);
}

static void squared_error_run(const cek_op *op, cek_queue *queue, void *const *at, void *workspace)
{
    job j = job_of(op, workspace, at[CEK_SQUARED_ERROR_BATCH]);

    (void)queue;
    j.x = at[CEK_SQUARED_ERROR_PREDICTION];
    j.t = at[CEK_SQUARED_ERROR_TARGET];
    j.weights = at[CEK_SQUARED_ERROR_WEIGHTS];
    j.d = at[CEK_SQUARED_ERROR_DPREDICTION];
    j.scale = 2 * step_scale(at[CEK_SQUARED_ERROR_STEP]);
    cek__cpu_for(op_dev(op), j.l->blocks, 1, (uint64_t)(j.l->block * (CPU_PS_CALL + j.l->columns * 12 * CPU_PS_BYTE)),
                 squared_error_blocks, &j);
    loss_store(op, CEK_SQUARED_ERROR_LOSS, at[CEK_SQUARED_ERROR_LOSS], total(&j).loss);
}

const cpu_kind cek__cpu_cross_entropy = { sizeof(loss_op), cross_entropy_plan, cross_entropy_run, NULL };
const cpu_kind cek__cpu_squared_error = { sizeof(loss_op), squared_error_plan, squared_error_run, NULL };
