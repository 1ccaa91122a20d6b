/* reduce_op.c - sums and extremes over axes of a strided tensor.
 *
 * Owns: the cutting of a reduction into blocks. Blocks and the order in which they are added
 * depend on shape and strides alone: a block is summed in f32 by a kernel, blocks are added in
 * f64 in ascending order, whoever computed them.
 *
 * Two walks. Runs: each result's elements are taken in runs of up to RUN (gathered where they
 * are not consecutive floats). Columns: where the results are consecutive and their elements are
 * not, rows are added to many results at once.
 *
 * Terms that are more than elements (a second operand, a centre) are made in scratch memory, a piece of a run or some
 * rows at a time; what a normalisation asks for, distances from a centre squared or times a second operand, a kernel
 * sums as it reads them, by columns of floats. Rows that do not count are not walked: axis 0 is as long as the batch
 * block says. */
#include <math.h>
#include <stdio.h>

#include "backends/common/extent.h"
#include "backends/cpu/ops/elements.h"
#include "backends/cpu/ops/ops.h"
#include "backends/cpu/ops/parallel.h"

enum {
    RUN = 4096,          /* elements of a block: 16 KiB, half of a first-level cache */
    ROWS = 64,           /* rows that a kernel adds in f32 before the sum goes to f64 */
    PANEL = 512,         /* columns at a time: their f64 sums are 4 KiB */
    CONVERTED_ROWS = 16, /* rows, and columns of them, that are converted at once: 8 KiB */
    CONVERTED_COLUMNS = 128,
    GATHERED = 512, /* elements gathered at once: 2 KiB */
    UNITS = 256     /* at most so many partial sums per result */
};

typedef struct reduce_op {
    struct cek_op head;
    cpu_space kept, reduced;   /* tensor 0 is X, the last one X2, or X again */
    bool terms;                /* are not elements alone */
    bool distances;            /* and a kernel makes them as it reads columns */
    int64_t results, elements; /* results, and elements of each */
    bool columns;
    int64_t run;         /* columns: consecutive results, the last axis kept */
    int64_t unit, units; /* elements of a partial sum, and how many there are per result */
} reduce_op;

enum { KEPT_Y = 1, KEPT_X2 = 2, REDUCED_X2 = 1 }; /* tensors of the spaces */

/* `rows`: of axis 0, where that is reduced. */
static void split_axes(reduce_op *r, const cek_reduce_desc *d, uint64_t rows)
{
    const int64_t *x2 = d->op.operands & CEK_BIT(CEK_REDUCE_X2) ? d->x2_strides : d->x_strides;

    r->kept = (cpu_space){ .tensors = 3 };
    r->reduced = (cpu_space){ .tensors = 2 };
    for (uint32_t i = 0; i < d->rank; i++) {
        const bool reduced = d->axes >> i & 1;
        cpu_space *s = reduced ? &r->reduced : &r->kept;

        s->shape[s->rank] = (int64_t)(reduced && i == 0 ? rows : d->shape[i]);
        s->stride[reduced ? REDUCED_X2 : KEPT_X2][s->rank] = x2[i];
        s->stride[0][s->rank++] = d->x_strides[i];
    }
    /* Y is dense in the order of the axes */
    for (int64_t i = r->kept.rank - 1, stride = 1; i >= 0; stride *= r->kept.shape[i--])
        r->kept.stride[KEPT_Y][i] = stride;
    cek__space_simplify(&r->kept, KEPT_Y);
    cek__space_simplify(&r->reduced, 0);
    r->results = cek__space_elements(&r->kept);
    r->elements = cek__space_elements(&r->reduced);
}

/* Whether the walk is by columns. */
static bool is_columns(const reduce_op *r)
{
    const int kept = r->kept.rank - 1, reduced = r->reduced.rank - 1;

    return r->elements > 1 && r->kept.stride[0][kept] == 1 && r->kept.stride[KEPT_X2][kept] == 1 &&
           r->reduced.stride[0][reduced] != 1;
}

/* Units of a result, at most; for fewer elements no more. */
static int64_t units_most(const reduce_op *r)
{
    const int64_t units = (r->elements + ROWS - 1) / ROWS;

    if (!r->columns)
        return (r->elements + RUN - 1) / RUN;
    return units < UNITS ? units : UNITS;
}

/* Units of the walk that was chosen. */
static void units_cut(reduce_op *r)
{
    const int64_t units = units_most(r);

    r->run = r->columns ? r->kept.shape[r->kept.rank - 1] : 1;
    r->unit = r->columns ? (r->elements + units - 1) / units : RUN;
    r->units = (r->elements + r->unit - 1) / r->unit;
}

static bool is_sum(uint32_t function)
{
    return function == CEK_REDUCE_SUM || function == CEK_REDUCE_MEAN;
}

static cek_status reduce_plan(cek_op *op)
{
    reduce_op *r = (reduce_op *)op;
    const cek_reduce_desc *d = &op->request.desc.reduce;

    if (!type_in(d->x_type, CPU_TYPES))
        return cek__cpu_refuse_type(op, d->x_type);
    r->terms = d->op.operands & (CEK_BIT(CEK_REDUCE_X2) | CEK_BIT(CEK_REDUCE_CENTRE));
    r->distances = d->x_type == CEK_F32 && d->op.operands & CEK_BIT(CEK_REDUCE_CENTRE) &&
                   (d->op.operands & CEK_BIT(CEK_REDUCE_X2) ? is_sum(d->function)
                                                            : d->function == CEK_REDUCE_SUM_SQUARES);
    split_axes(r, d, d->shape[0]);
    r->columns = is_columns(r);
    units_cut(r);
    if (r->units > 1)
        op->info.workspace_bytes = (uint64_t)(r->results * units_most(r)) * sizeof(double);
    snprintf(op->info.algorithm, sizeof op->info.algorithm, "%s, units of %lld", r->columns ? "columns" : "runs",
             (long long)r->unit);
    return CEK_OK;
}

typedef struct job {
    const reduce_op *r;
    const cpu_kernels *k;
    const cek_reduce_desc *d;
    const unsigned char *x, *x2; /* x2: or NULL */
    const float *centre;         /* or NULL */
    float *y;
    double *partial; /* [results][units], or NULL where there is one unit */
    uint32_t bytes;
    int64_t counted; /* results that have terms */
} job;

static double combine(uint32_t function, double a, double b)
{
    if (function == CEK_REDUCE_MAX)
        return a != a || a >= b ? a : b; /* b where it is NaN: a >= NaN does not hold */
    if (function == CEK_REDUCE_MIN)
        return a != a || a <= b ? a : b;
    return a + b;
}

static void result_store(const job *j, int64_t result, double value)
{
    if (result >= j->counted)
        value = j->d->function == CEK_REDUCE_MAX ? -INFINITY : j->d->function == CEK_REDUCE_MIN ? INFINITY : 0;
    else if (j->d->function == CEK_REDUCE_MEAN)
        value /= (double)j->r->elements;
    if (cek__request_accumulates(&j->r->head.request, CEK_REDUCE_Y))
        value += j->y[result];
    j->y[result] = (float)value;
}

static void partial_store(const job *j, int64_t result, int64_t unit, double value)
{
    if (j->partial)
        j->partial[result * j->r->units + unit] = value;
    else
        result_store(j, result, value);
}

/* Elements that are not consecutive floats as such. */
static void run_take(const job *j, int tensor, const unsigned char *x, int64_t first, int64_t n, float *to)
{
    const cpu_space *reduced = &j->r->reduced;
    uint32_t raw[GATHERED];

    if (cek__space_dense(reduced, tensor)) {
        cek__cpu_load(j->k, j->d->x_type, n, x + first * j->bytes, to);
        return;
    }
    for (int64_t i = 0; i < n; i += GATHERED) {
        const int64_t part = n - i < GATHERED ? n - i : GATHERED;

        cek__elements_gather(reduced, tensor, j->bytes, x, first + i, part,
                             j->d->x_type == CEK_F32 ? (void *)(to + i) : raw);
        if (j->d->x_type != CEK_F32)
            cek__cpu_load(j->k, j->d->x_type, part, raw, to + i);
    }
}

/* Makes terms of n elements of a result: less the centre, times the second operand's. */
static void run_terms(const job *j, int64_t result, const unsigned char *x2, int64_t first, int64_t n, float *x)
{
    float second[GATHERED];

    if (j->centre)
        j->k->ops->pointwise->run(CEK_PW_ADD_IMM, n, x, NULL, NULL, -j->centre[result], x);
    for (int64_t i = 0; x2 && i < n; i += GATHERED) {
        const int64_t part = n - i < GATHERED ? n - i : GATHERED;

        run_take(j, REDUCED_X2, x2, first + i, part, second);
        j->k->ops->pointwise->run(CEK_PW_MUL, part, x + i, second, NULL, 0, x + i);
    }
}

/* One unit of a result. */
static double run_of(const job *j, int64_t result, const cpu_place *place, int64_t unit, float *scratch)
{
    const reduce_op *r = j->r;
    const int64_t first = unit * r->unit, left = r->elements - first, n = left < r->unit ? left : r->unit;
    const unsigned char *x = j->x + cek__place_offset(&r->kept, place, 0) * j->bytes;

    if (j->d->x_type == CEK_F32 && !r->terms && cek__space_dense(&r->reduced, 0))
        return j->k->ops->reduce->run(j->d->function, n, (const float *)x + first);
    run_take(j, 0, x, first, n, scratch);
    if (r->terms)
        run_terms(j, result, j->x2 ? j->x2 + cek__place_offset(&r->kept, place, KEPT_X2) * j->bytes : NULL, first, n,
                  scratch);
    return j->k->ops->reduce->run(j->d->function, n, scratch);
}

/* Items: results times units, units fastest. */
static void reduce_runs(void *arg, int64_t begin, int64_t end, int worker)
{
    const job *j = arg;
    const reduce_op *r = j->r;
    float scratch[RUN];
    cpu_place place;

    (void)worker;
    cek__place_of(&r->kept, begin / r->units, &place);
    for (int64_t i = begin; i < end; i++) {
        const int64_t unit = i % r->units;

        if (i > begin && unit == 0)
            cek__place_advance(&r->kept, &place, 1);
        partial_store(j, i / r->units, unit, run_of(j, i / r->units, &place, unit, scratch));
    }
}

static void add_part(const job *j, const float *part, int64_t n, bool first, double *sum)
{
    for (int64_t c = 0; c < n; c++)
        sum[c] = first ? part[c] : combine(j->d->function, sum[c], part[c]);
}

static void add_floats(const job *j, const float *x, int64_t rows, int64_t ldx, int64_t n, bool first, double *sum)
{
    float part[PANEL];

    j->k->ops->reduce->columns(j->d->function, rows, n, x, ldx, part);
    add_part(j, part, n, first, sum);
}

/* Some rows of the `n` results from `result` on: where their elements are, ld elements apart. */
typedef struct rows_at {
    const unsigned char *x, *x2;
    int64_t rows, ldx, ldx2, result, n;
} rows_at;

/* Row i from column c on, as terms. */
static void row_terms(const job *j, const rows_at *at, int64_t i, int64_t c, int64_t n, float *to)
{
    float second[CONVERTED_COLUMNS];

    cek__cpu_load(j->k, j->d->x_type, n, at->x + (i * at->ldx + c) * j->bytes, to);
    if (j->centre)
        j->k->ops->pointwise->run(CEK_PW_SUB, n, to, j->centre + at->result + c, NULL, 0, to);
    if (!j->x2)
        return;
    cek__cpu_load(j->k, j->d->x_type, n, at->x2 + (i * at->ldx2 + c) * j->bytes, second);
    j->k->ops->pointwise->run(CEK_PW_MUL, n, to, second, NULL, 0, to);
}

/* Adds rows to sum. */
static void add_rows(const job *j, const rows_at *at, bool first, double *sum)
{
    float scratch[CONVERTED_ROWS * CONVERTED_COLUMNS];

    if (j->r->distances) {
        j->k->ops->reduce->terms(at->rows, at->n, (const float *)at->x, at->ldx, (const float *)at->x2, at->ldx2,
                                 j->centre + at->result, scratch);
        add_part(j, scratch, at->n, first, sum);
        return;
    }
    if (j->d->x_type == CEK_F32 && !j->r->terms) {
        add_floats(j, (const float *)at->x, at->rows, at->ldx, at->n, first, sum);
        return;
    }
    for (int64_t c = 0; c < at->n; c += CONVERTED_COLUMNS) {
        const int64_t columns = at->n - c < CONVERTED_COLUMNS ? at->n - c : CONVERTED_COLUMNS;

        for (int64_t i = 0; i < at->rows; i++)
            row_terms(j, at, i, c, columns, scratch + i * CONVERTED_COLUMNS);
        add_floats(j, scratch, at->rows, CONVERTED_COLUMNS, columns, first, sum + c);
    }
}

/* One unit of the `n` results from `result` on, at `kept`. */
static void columns_of(const job *j, int64_t result, const cpu_place *kept, int64_t unit, int64_t n, double *sum)
{
    const reduce_op *r = j->r;
    const int inner = r->reduced.rank - 1;
    const int64_t most = j->d->x_type == CEK_F32 && (!r->terms || r->distances) ? ROWS : CONVERTED_ROWS;
    const int64_t base = cek__place_offset(&r->kept, kept, 0), base2 = cek__place_offset(&r->kept, kept, KEPT_X2);
    const int64_t first = unit * r->unit, end = first + r->unit < r->elements ? first + r->unit : r->elements;
    cpu_place place;

    cek__place_of(&r->reduced, first, &place);
    for (int64_t i = first; i < end;) {
        int64_t rows = r->reduced.shape[inner] - place.at[inner];

        rows = rows < end - i ? rows : end - i;
        rows = rows < most ? rows : most;
        const rows_at at = { .x = j->x + (base + cek__place_offset(&r->reduced, &place, 0)) * j->bytes,
                             .x2 = j->x2
                                       ? j->x2 + (base2 + cek__place_offset(&r->reduced, &place, REDUCED_X2)) * j->bytes
                                       : NULL,
                             .rows = rows,
                             .ldx = r->reduced.stride[0][inner],
                             .ldx2 = r->reduced.stride[REDUCED_X2][inner],
                             .result = result,
                             .n = n };
        add_rows(j, &at, i == first, sum);
        cek__place_advance(&r->reduced, &place, rows);
        i += rows;
    }
}

static int64_t panels(const reduce_op *r)
{
    return (r->run + PANEL - 1) / PANEL;
}

/* Items: (results / run) times units times panels, panels fastest. */
static void reduce_columns(void *arg, int64_t begin, int64_t end, int worker)
{
    const job *j = arg;
    const reduce_op *r = j->r;
    double sum[PANEL];

    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        const int64_t column = i % panels(r) * PANEL, unit = i / panels(r) % r->units;
        const int64_t result = i / panels(r) / r->units * r->run + column;
        const int64_t left = r->run - column, n = left < PANEL ? left : PANEL;
        cpu_place place;

        cek__place_of(&r->kept, result, &place);
        columns_of(j, result, &place, unit, n, sum);
        for (int64_t c = 0; c < n; c++)
            partial_store(j, result + c, unit, sum[c]);
    }
}

static void finish(void *arg, int64_t begin, int64_t end, int worker)
{
    const job *j = arg;
    const int64_t units = j->r->units;

    (void)worker;
    for (int64_t result = begin; result < end; result++) {
        const double *partial = j->partial + result * units;
        double value = partial[0];

        for (int64_t u = 1; u < units; u++)
            value = combine(j->d->function, value, partial[u]);
        result_store(j, result, value);
    }
}

/* The operation as it is where `batch`, or NULL, leaves rows out: with a shorter axis 0 where that is reduced, else
 * with fewer results that have terms. At least a row is walked, whatever becomes of it. */
static const reduce_op *rows_count(const reduce_op *r, const cek_batch_block *batch, reduce_op *to, int64_t *results)
{
    const cek_reduce_desc *d = &r->head.request.desc.reduce;
    const uint64_t rows = d->shape[0];

    *results = r->results;
    if (!batch || batch->rows_valid > (rows - 1) / d->rows_per_sample)
        return r;
    const uint64_t counted = batch->rows_valid * d->rows_per_sample;
    if (!(d->axes & 1) || !counted) {
        *results = r->results / (int64_t)rows * (int64_t)counted;
        return r;
    }
    *to = *r;
    split_axes(to, d, counted);
    units_cut(to);
    return to;
}

static void reduce_run(const cek_op *op, cek_queue *queue, void *const *at, void *workspace)
{
    const cek_reduce_desc *d = &op->request.desc.reduce;
    reduce_op counted;
    int64_t results;
    const reduce_op *r = rows_count((const reduce_op *)op, at[CEK_REDUCE_BATCH], &counted, &results);
    const cpu_dev *dev = op_dev(op);
    job j = { .r = r,
              .k = op_kernels(op),
              .d = d,
              .x = at[CEK_REDUCE_X],
              .x2 = at[CEK_REDUCE_X2],
              .centre = at[CEK_REDUCE_CENTRE],
              .y = at[CEK_REDUCE_Y],
              .partial = r->units > 1 ? workspace : NULL,
              .bytes = cek__type_bytes(d->x_type),
              .counted = results };
    const uint64_t ps_element = j.bytes * CPU_PS_BYTE;

    (void)queue;
    if (r->columns)
        cek__cpu_for(dev, r->results / r->run * r->units * panels(r), 1,
                     (uint64_t)(r->unit * (r->run < PANEL ? r->run : PANEL)) * ps_element, reduce_columns, &j);
    else
        cek__cpu_for(dev, r->results * r->units, 1,
                     CPU_PS_CALL + (uint64_t)(r->elements < RUN ? r->elements : RUN) * ps_element, reduce_runs, &j);
    if (j.partial)
        cek__cpu_for(dev, r->results, 16, (uint64_t)r->units * 1000, finish, &j);
}

const cpu_kind cek__cpu_reduce = { sizeof(reduce_op), reduce_plan, reduce_run, NULL };
