/* gather_op.c - rows of a table that an index names, and sums of rows into them.
 *
 * Owns: who adds to which rows of the table: a piece has a range of them, looks through the whole
 * index and adds what belongs there, so that the order of each sum is that of the index whatever
 * the threads. */
#include <math.h>

#include "backends/common/extent.h"
#include "backends/cpu/ops/ops.h"
#include "backends/cpu/ops/parallel.h"

typedef struct job {
    const cek_gather_desc *d;
    const cpu_kernels *k;
    const int32_t *index;
    const unsigned char *from;
    unsigned char *to;
    uint32_t bytes;
    bool accumulate;
} job;

/* The index of batch b. */
static const int32_t *index_of(const job *j, int64_t b)
{
    return j->index + (j->d->flags & CEK_GATHER_SHARED ? 0 : (uint64_t)b * j->d->count);
}

static bool is_inside(const job *j, int32_t row)
{
    return row >= 0 && (uint64_t)row < j->d->rows;
}

/* --- gather ----------------------------------------------------------------------------------- */

static cek_status gather_plan(cek_op *op)
{
    op_algorithm(op, "rows");
    return CEK_OK;
}

/* NaN in each element, or zeros of integers. */
static void nothing_put(const job *j, unsigned char *to)
{
    const uint16_t half = j->d->type == CEK_F16 ? 0x7e00 : 0x7fc0;

    for (uint64_t c = 0; c < j->d->columns; c++)
        switch (j->d->type) {
        case CEK_F32: memcpy(to + 4 * c, &(float){ NAN }, 4); break;
        case CEK_F64: memcpy(to + 8 * c, &(double){ NAN }, 8); break;
        case CEK_F16:
        case CEK_BF16: memcpy(to + 2 * c, &half, 2); break;
        default: memset(to + j->bytes * c, 0, j->bytes);
        }
}

/* Rows of Y, those of all batches numbered on. */
static void gather_rows(void *arg, int64_t begin, int64_t end, int worker)
{
    const job *j = arg;
    const uint64_t bytes = j->d->columns * j->bytes, count = j->d->count;

    (void)worker;
    for (int64_t n = begin; n < end; n++) {
        const uint64_t b = (uint64_t)n / count;
        const int32_t row = index_of(j, (int64_t)b)[(uint64_t)n % count];

        if (is_inside(j, row))
            memcpy(j->to + (uint64_t)n * bytes, j->from + (b * j->d->rows + (uint64_t)row) * bytes, bytes);
        else
            nothing_put(j, j->to + (uint64_t)n * bytes);
    }
}

static void gather_run(const cek_op *op, cek_queue *queue, void *const *at, void *workspace)
{
    const cek_gather_desc *d = &op->request.desc.gather;
    job j = { .d = d,
              .index = at[CEK_GATHER_INDEX],
              .from = at[CEK_GATHER_TABLE],
              .to = at[CEK_GATHER_Y],
              .bytes = cek__type_bytes(d->type) };

    (void)queue;
    (void)workspace;
    cek__cpu_for(op_dev(op), (int64_t)(d->batch * d->count), 1, CPU_PS_SIMPLE + 2 * d->columns * j.bytes * CPU_PS_BYTE,
                 gather_rows, &j);
}

/* --- scatter_add ------------------------------------------------------------------------------ */

static cek_status scatter_plan(cek_op *op)
{
    const cek_gather_desc *d = &op->request.desc.gather;

    if (!type_in(d->type, CPU_TYPES_REAL))
        return cek__cpu_refuse_type(op, d->type);
    op_algorithm(op, "rows in the order of the index");
    return CEK_OK;
}

/* to += dy, of any type of CPU_TYPES_REAL. */
static void row_add(const job *j, const unsigned char *dy, float *to)
{
    enum { PIECE = 512 }; /* floats that stay in the cache */
    float wide[PIECE];

    for (uint64_t c = 0; c < j->d->columns; c += PIECE) {
        const int64_t n = (int64_t)(j->d->columns - c < PIECE ? j->d->columns - c : PIECE);

        cek__cpu_load(j->k, j->d->type, n, dy + c * j->bytes, wide);
        j->k->add(n, to + c, wide, to + c);
    }
}

/* Rows of DTABLE, those of all batches numbered on. */
static void scatter_rows(void *arg, int64_t begin, int64_t end, int worker)
{
    const job *j = arg;
    const int64_t rows = (int64_t)j->d->rows;
    const uint64_t columns = j->d->columns, count = j->d->count;

    (void)worker;
    for (int64_t first = begin; first < end;) {
        const int64_t b = first / rows, last = (b + 1) * rows < end ? (b + 1) * rows : end;
        float *table = (float *)j->to + (uint64_t)(b * rows) * columns;
        const int32_t *index = index_of(j, b);

        if (!j->accumulate)
            memset(table + (uint64_t)(first - b * rows) * columns, 0, (uint64_t)(last - first) * columns * 4);
        for (uint64_t i = 0; i < count; i++)
            if (index[i] >= first - b * rows && index[i] < last - b * rows)
                row_add(j, j->from + ((uint64_t)b * count + i) * columns * j->bytes,
                        table + (uint64_t)index[i] * columns);
        first = last;
    }
}

static void scatter_run(const cek_op *op, cek_queue *queue, void *const *at, void *workspace)
{
    const cek_gather_desc *d = &op->request.desc.gather;
    job j = { .d = d,
              .k = op_kernels(op),
              .index = at[CEK_SCATTER_ADD_INDEX],
              .from = at[CEK_SCATTER_ADD_DY],
              .to = at[CEK_SCATTER_ADD_DTABLE],
              .bytes = cek__type_bytes(d->type),
              .accumulate = cek__request_accumulates(&op->request, CEK_SCATTER_ADD_DTABLE) };
    /* A piece looks through the index: so many rows that this is little beside what it writes. */
    const uint64_t row = d->columns * 4 * CPU_PS_BYTE * (1 + d->count / d->rows);
    const uint64_t least = d->count * CPU_PS_SIMPLE / row + 1;

    (void)queue;
    (void)workspace;
    cek__cpu_for(op_dev(op), (int64_t)(d->batch * d->rows), (int64_t)(least < d->rows ? least : d->rows), row,
                 scatter_rows, &j);
}

const cpu_kind cek__cpu_gather = { sizeof(struct cek_op), gather_plan, gather_run, NULL };
const cpu_kind cek__cpu_scatter_add = { sizeof(struct cek_op), scatter_plan, scatter_run, NULL };
