/* arg_op.c - where along an axis the largest or smallest element is.
 *
 * Owns: the walk: each result's line is read in pieces, gathered where its elements are not consecutive floats. */
#include "backends/common/extent.h"
#include "backends/cpu/ops/elements.h"
#include "backends/cpu/ops/ops.h"
#include "backends/cpu/ops/parallel.h"

enum { PIECE = 512 }; /* elements gathered at once: 2 KiB */

typedef struct arg_op {
    struct cek_op head;
    cpu_space kept, line; /* tensor 0 is X; of the kept axes tensor 1 is Y */
} arg_op;

typedef struct job {
    const arg_op *a;
    const cpu_kernels *k;
    const cek_arg_desc *d;
    const unsigned char *x;
    int32_t *y;
    uint32_t bytes;
} job;

static cek_status arg_plan(cek_op *op)
{
    arg_op *a = (arg_op *)op;
    const cek_arg_desc *d = &op->request.desc.arg;

    if (!type_in(d->type, CPU_TYPES))
        return cek__cpu_refuse_type(op, d->type);
    a->kept = (cpu_space){ .tensors = 2 };
    a->line = (cpu_space){ .tensors = 1, .rank = 1, .shape = { (int64_t)d->shape[d->axis] } };
    a->line.stride[0][0] = a->line.shape[0] > 1 ? d->x_strides[d->axis] : 0;
    for (uint32_t i = 0; i < d->rank; i++) {
        if (i == d->axis)
            continue;
        a->kept.shape[a->kept.rank] = (int64_t)d->shape[i];
        a->kept.stride[0][a->kept.rank++] = d->x_strides[i];
    }
    for (int64_t i = a->kept.rank - 1, stride = 1; i >= 0; stride *= a->kept.shape[i--])
        a->kept.stride[1][i] = stride;
    cek__space_simplify(&a->kept, 1);
    op_algorithm(op, "lines");
    return CEK_OK;
}

/* The place of the best of n elements, or -1 where none is better than `best`, which becomes it. */
static int64_t best_of_floats(uint32_t function, const float *x, int64_t n, float *best)
{
    const float sign = function == CEK_ARG_MAX ? 1 : -1;
    int64_t where = -1;

    for (int64_t i = 0; i < n && *best == *best; i++)
        if (x[i] != x[i] || sign * x[i] > sign * *best) {
            *best = x[i];
            where = i;
        }
    return where;
}

static int64_t best_of_integers(uint32_t function, const int32_t *x, int64_t n, int32_t *best)
{
    int64_t where = -1;

    for (int64_t i = 0; i < n; i++)
        if (function == CEK_ARG_MAX ? x[i] > *best : x[i] < *best) {
            *best = x[i];
            where = i;
        }
    return where;
}

/* Of the line that begins at x. */
static int32_t line_arg(const job *j, const unsigned char *x)
{
    const int64_t n = j->a->line.shape[0];
    int64_t best = 0;
    int32_t integer = 0;
    uint32_t raw[PIECE];
    float real = 0, wide[PIECE];

    for (int64_t i = 0; i < n; i += PIECE) {
        const int64_t part = n - i < PIECE ? n - i : PIECE;
        int64_t where;

        cek__elements_gather(&j->a->line, 0, j->bytes, x, i, part, raw);
        if (j->d->type == CEK_I32) {
            if (i == 0)
                integer = (int32_t)raw[0];
            where = best_of_integers(j->d->function, (const int32_t *)raw, part, &integer);
        } else {
            cek__cpu_load(j->k, j->d->type, part, raw, wide);
            if (i == 0)
                real = wide[0];
            where = best_of_floats(j->d->function, wide, part, &real);
        }
        if (where >= 0)
            best = i + where;
    }
    return (int32_t)best;
}

static void arg_lines(void *arg, int64_t begin, int64_t end, int worker)
{
    const job *j = arg;
    cpu_place place;

    (void)worker;
    cek__place_of(&j->a->kept, begin, &place);
    for (int64_t i = begin; i < end; i++) {
        j->y[i] = line_arg(j, j->x + cek__place_offset(&j->a->kept, &place, 0) * j->bytes);
        cek__place_advance(&j->a->kept, &place, 1);
    }
}

static void arg_run(const cek_op *op, cek_queue *queue, void *const *at, void *workspace)
{
    const arg_op *a = (const arg_op *)op;
    const cek_arg_desc *d = &op->request.desc.arg;
    job j = {
        .a = a, .k = op_kernels(op), .d = d, .x = at[CEK_ARG_X], .y = at[CEK_ARG_Y], .bytes = cek__type_bytes(d->type)
    };

    (void)queue;
    (void)workspace;
    cek__cpu_for(op_dev(op), cek__space_elements(&a->kept), 1,
                 CPU_PS_CALL + (uint64_t)a->line.shape[0] * (j.bytes * CPU_PS_BYTE + 4 * CPU_PS_SIMPLE), arg_lines, &j);
}

const cpu_kind cek__cpu_arg = { sizeof(arg_op), arg_plan, arg_run, NULL };
