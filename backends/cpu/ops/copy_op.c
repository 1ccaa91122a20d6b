/* copy_op.c - the copy operation: conversion as an elementwise chain without instructions, and,
 * between equal types, moves of runs and blocked transposition. */
#include "backends/common/extent.h"
#include "backends/cpu/ops/elementwise.h"
#include "backends/cpu/ops/parallel.h"

enum { X = 0, Y = 1 }; /* tensors of the space */
enum { TILE = 64 };    /* a transposition has 64 x 64 elements of either side in the cache: 16 KiB each */

typedef enum { RUNS, TRANSPOSE, CONVERT } method;

typedef struct copy_op {
    struct cek_op head;
    cpu_elementwise chain; /* its space is used by every method */
    method method;
    uint32_t bytes;
    int fast; /* TRANSPOSE: the axis along which X is dense; Y is along the innermost */
} copy_op;

/* The axis other than the innermost along which X is dense, or -1. */
static int dense_axis(const cpu_space *s)
{
    for (int i = 0; i < s->rank - 1; i++)
        if (s->stride[X][i] == 1)
            return i;
    return -1;
}

static cek_status copy_plan(cek_op *op)
{
    copy_op *c = (copy_op *)op;
    cpu_elementwise *e = &c->chain;
    cpu_space *s = &e->space;
    const cek_copy_desc *d = &op->request.desc.copy;
    const bool narrow = d->y_type == CEK_F16 || d->y_type == CEK_BF16;

    *e = (cpu_elementwise){ .inputs = 1, .type = { d->x_type, d->y_type }, .space.rank = (int)d->rank };
    for (uint32_t i = 0; i < d->rank; i++)
        s->shape[i] = (int64_t)d->shape[i];
    memcpy(s->stride[X], d->x_strides, sizeof s->stride[X]);
    memcpy(s->stride[Y], d->y_strides, sizeof s->stride[Y]);
    c->bytes = cek__type_bytes(d->x_type);
    c->method = d->x_type == d->y_type ? RUNS : CONVERT;
    if (c->method == CONVERT && !(type_in(d->x_type, CPU_TYPES) && type_in(d->y_type, CPU_TYPES)))
        return cek__cpu_refuse_type(op, type_in(d->x_type, CPU_TYPES) ? d->y_type : d->x_type);
    if (c->method == CONVERT && d->x_type == CEK_I32 && narrow)
        return cek__host_fail(op_host(op), CEK_UNSUPPORTED, "copy: i32 to %s would be rounded twice",
                              cek__type_name(d->y_type));
    cek__elementwise_plan(e);
    c->fast = dense_axis(s);
    if (c->method == RUNS && c->bytes == 4 && c->fast >= 0 && s->stride[X][s->rank - 1] != 1 &&
        s->stride[Y][s->rank - 1] == 1)
        c->method = TRANSPOSE;
    op_algorithm(op, c->method == RUNS ? "runs" : c->method == TRANSPOSE ? "transposition" : "conversion");
    return CEK_OK;
}

typedef struct job {
    const copy_op *c;
    const cpu_kernels *k;
    const unsigned char *x;
    unsigned char *y;
    cpu_space outer; /* TRANSPOSE: all axes but two, and the number of tiles along those */
    int64_t rows, columns, row_tiles, column_tiles;
} job;

/* Elements from begin to behind end, run by run. */
static void copy_runs(void *arg, int64_t begin, int64_t end, int worker)
{
    const job *j = arg;
    const cpu_space *s = &j->c->chain.space;
    const int inner = s->rank - 1;
    const uint32_t bytes = j->c->bytes;
    cpu_place place;

    (void)worker;
    cek__place_of(s, begin, &place);
    while (begin < end) {
        const int64_t left = s->shape[inner] - place.at[inner], n = left < end - begin ? left : end - begin;
        const unsigned char *x = j->x + cek__place_offset(s, &place, X) * bytes;
        unsigned char *y = j->y + cek__place_offset(s, &place, Y) * bytes;

        if (s->stride[X][inner] == 1 && s->stride[Y][inner] == 1)
            memcpy(y, x, (size_t)n * bytes);
        else
            for (int64_t i = 0; i < n; i++)
                memcpy(y + i * s->stride[Y][inner] * bytes, x + i * s->stride[X][inner] * bytes, bytes);
        begin += n;
        cek__place_advance(s, &place, n);
    }
}

/* Tiles, numbered with the columns of X's rows fastest: rows run along Y's dense axis, columns
 * along X's. */
static void copy_tiles(void *arg, int64_t begin, int64_t end, int worker)
{
    const job *j = arg;
    const cpu_space *s = &j->c->chain.space;
    const int inner = s->rank - 1, fast = j->c->fast;
    const int64_t ldx = s->stride[X][inner], ldy = s->stride[Y][fast];

    (void)worker;
    for (int64_t t = begin; t < end; t++) {
        const int64_t column = t % j->column_tiles * TILE, row = t / j->column_tiles % j->row_tiles * TILE;
        const int64_t rows = j->rows - row < TILE ? j->rows - row : TILE;
        const int64_t columns = j->columns - column < TILE ? j->columns - column : TILE;
        cpu_place place;

        cek__place_of(&j->outer, t / j->column_tiles / j->row_tiles, &place);
        j->k->transpose(rows, columns,
                        (const float *)j->x + cek__place_offset(&j->outer, &place, X) + row * ldx + column, ldx,
                        (float *)j->y + cek__place_offset(&j->outer, &place, Y) + column * ldy + row, ldy);
    }
}

static void run_transpose(job *j, const cpu_dev *dev)
{
    const cpu_space *s = &j->c->chain.space;
    const int inner = s->rank - 1, fast = j->c->fast;

    j->outer = *s;
    j->outer.shape[inner] = j->outer.shape[fast] = 1;
    j->rows = s->shape[inner];
    j->columns = s->shape[fast];
    j->row_tiles = (j->rows + TILE - 1) / TILE;
    j->column_tiles = (j->columns + TILE - 1) / TILE;
    cek__cpu_for(dev, cek__space_elements(&j->outer) * j->row_tiles * j->column_tiles, 1,
                 (uint64_t)TILE * TILE * 8 * CPU_PS_BYTE, copy_tiles, j);
}

static void copy_run(const cek_op *op, cek_queue *queue, void *const *at, void *workspace)
{
    const copy_op *c = (const copy_op *)op;
    const cpu_dev *dev = op_dev(op);
    job j = { .c = c, .k = op_kernels(op), .x = at[CEK_COPY_X], .y = at[CEK_COPY_Y] };

    (void)queue;
    (void)workspace;
    if (c->method == CONVERT)
        cek__elementwise_run(&c->chain, dev, (const void *const *)at, 0, at[CEK_COPY_Y]);
    else if (c->method == TRANSPOSE)
        run_transpose(&j, dev);
    else
        cek__cpu_for(dev, c->chain.elements, 64, 2 * (uint64_t)c->bytes * CPU_PS_BYTE, copy_runs, &j);
}

const cpu_kind cek__cpu_copy = { sizeof(copy_op), copy_plan, copy_run, NULL };
