/* softmax_op.c - the softmax operation. */
#include "backends/cpu/ops/parallel.h"
#include "backends/cpu/ops/rows.h"

typedef struct job {
    const cek_softmax_desc *d;
    const cpu_kernels *k;
    const void *x;
    void *y;
    float *scratch; /* a row for each worker, where the type is not f32 */
} job;

static cek_status softmax_plan(cek_op *op)
{
    const cek_softmax_desc *d = &op->request.desc.softmax;

    if (!type_in(d->type, CPU_TYPES_REAL))
        return cek__cpu_refuse_type(op, d->type);
    op->info.workspace_bytes = rows_scratch(op, d->type, (int64_t)d->columns);
    op_algorithm(op, "row by row");
    return CEK_OK;
}

static void softmax_rows(void *arg, int64_t begin, int64_t end, int worker)
{
    const job *j = arg;
    const int64_t n = (int64_t)j->d->columns;
    const cek_dtype type = j->d->type;
    float *scratch = j->scratch ? j->scratch + worker * row_floats(n) : NULL;

    for (int64_t i = begin; i < end; i++) {
        const float *x = row_read(j->k, type, j->x, i, n, scratch);
        float *y = row_place(type, j->y, i, n, scratch);

        if (j->d->flags & CEK_SOFTMAX_LOG)
            j->k->ops->loss->log_softmax(n, x, y);
        else
            j->k->ops->loss->softmax(n, x, y);
        row_write(j->k, type, y, j->y, i, n);
    }
}

static void softmax_run(const cek_op *op, cek_queue *queue, void *const *at, void *workspace)
{
    const cek_softmax_desc *d = &op->request.desc.softmax;
    job j = { .d = d, .k = op_kernels(op), .x = at[CEK_SOFTMAX_X], .y = at[CEK_SOFTMAX_Y], .scratch = workspace };

    (void)queue;
    cek__cpu_for(op_dev(op), (int64_t)d->rows, 1, CPU_PS_CALL + d->columns * CPU_PS_EXP, softmax_rows, &j);
}

const cpu_kind cek__cpu_softmax = { sizeof(struct cek_op), softmax_plan, softmax_run, NULL };
