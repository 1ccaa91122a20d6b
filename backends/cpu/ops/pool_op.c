/* pool_op.c - maximum and average pooling, forward and backward.
 *
 * Owns: which places a window reads, which windows a place is read by, the layout of the reserve
 * (per output the number of the winning place within its window, in a byte where windows have at
 * most 256 places, else in 32 bits).
 *
 * Both directions gather: an output (forward: a position of Y, backward: of DX) is computed by
 * one thread from all that it depends on, in a fixed order. Kernels work on all channels of a
 * position at once, and read them as they are stored; a position of f16 or bf16 is computed in its
 * worker's line of floats and stored from there.
 *
 * Maxima go by rows: a kernel has all windows of a row that padding does not reach, and, backward, where
 * windows share no place, a window's gradient goes to its places instead of a place looking for its windows. The
 * numbers and their order are the same. */
#include <stdio.h>

#include "backends/cpu/ops/ops.h"
#include "backends/cpu/ops/parallel.h"
#include "backends/cpu/ops/rows.h"

enum {
    PLACES = 64,             /* handed to a kernel at once; larger windows take several calls */
    STREAM_BYTES = 64 << 20, /* a gradient that is written past the caches, as products' results are */
};

typedef struct pool_op {
    struct cek_op head;
    bool max, count_pad;
    cek_dtype type;
    int64_t bytes; /* of an element */
    int64_t batch, channels;
    int64_t in[3], out[3], kernel[3], stride[3], pad[3];
    int64_t volume; /* places of a window */
    int index_bytes;
    int64_t whole[2]; /* windows of a row by rows: from this one to before that one */
    bool apart;       /* backward by rows: windows share no place, and none is cut off */
    bool stream;      /* and more is written than caches keep */
} pool_op;

typedef struct job {
    const pool_op *p;
    const cpu_kernels *k;
    const char *x;        /* X, or DY */
    char *y;              /* Y, or DX */
    unsigned char *index; /* or NULL */
    float *lines;         /* of each worker one, where the type is not f32; else NULL */
} job;

/* --- planning --------------------------------------------------------------------------------- */

/* What goes by rows; their indices are bytes. */
static void rows_plan(pool_op *p)
{
    const int64_t span = p->in[2] + p->pad[2] - p->kernel[2];

    if (!p->max || p->volume > PLACES || span < 0)
        return;
    p->whole[0] = (p->pad[2] + p->stride[2] - 1) / p->stride[2];
    p->whole[1] = span / p->stride[2] + 1 < p->out[2] ? span / p->stride[2] + 1 : p->out[2];
    p->apart = true;
    p->stream = p->type == CEK_F32 &&
                p->batch * p->in[0] * p->in[1] * p->in[2] * p->channels * p->bytes >= STREAM_BYTES;
    for (int i = 0; i < 3; i++)
        p->apart &= p->kernel[i] == p->stride[i] && p->pad[i] == 0 && p->out[i] * p->kernel[i] <= p->in[i];
}

/* Three spatial dimensions; those that are not there come first and are 1. */
static cek_status pool_plan(cek_op *op)
{
    pool_op *p = (pool_op *)op;
    const cek_pool_desc *d = &op->request.desc.pool;
    const uint32_t missing = 3 - d->spatial;

    if (!type_in(d->type, CPU_TYPES_REAL))
        return cek__cpu_refuse_type(op, d->type);
    p->max = d->mode == CEK_POOL_MAX;
    p->count_pad = d->flags & CEK_POOL_COUNT_PAD;
    p->type = d->type;
    p->bytes = cek__type_bytes(d->type);
    p->batch = (int64_t)d->batch;
    p->channels = (int64_t)d->channels;
    for (uint32_t i = 0; i < 3; i++) {
        const bool there = i >= missing;
        const uint32_t j = there ? i - missing : 0;

        p->in[i] = there ? (int64_t)d->in[j] : 1;
        p->out[i] = there ? (int64_t)op->request.out[j] : 1;
        p->kernel[i] = there ? (int64_t)d->kernel[j] : 1;
        p->stride[i] = there ? (int64_t)d->stride[j] : 1;
        p->pad[i] = there ? (int64_t)d->pad_lo[j] : 0;
    }
    p->volume = p->kernel[0] * p->kernel[1] * p->kernel[2];
    p->index_bytes = p->volume <= 256 ? 1 : 4;
    if (p->volume > UINT32_MAX)
        return cek__host_fail(op_host(op), CEK_UNSUPPORTED, "%s: a window of %lld places", cek__kind_name(d->op.kind),
                              (long long)p->volume);
    rows_plan(p);
    const bool by_rows = d->op.kind == CEK_OP_POOL_BACKWARD ? p->apart : p->whole[0] < p->whole[1];
    op->info.workspace_bytes = rows_scratch(op, d->type, p->channels);
    snprintf(op->info.algorithm, sizeof op->info.algorithm, "%s, all channels of a %s", p->max ? "maximum" : "average",
             by_rows ? "row" : "position");
    return CEK_OK;
}

static cek_status pool_forward_plan(cek_op *op)
{
    const pool_op *p = (const pool_op *)op;
    const cek_status st = pool_plan(op);

    if (st == CEK_OK && cek__request_given(&op->request, CEK_POOL_FORWARD_RESERVE))
        op->info.reserve_bytes =
            (uint64_t)(p->batch * p->out[0] * p->out[1] * p->out[2] * p->channels * p->index_bytes + CPU_INDEX_SLACK);
    return st;
}

/* --- one position ----------------------------------------------------------------------------- */

/* Places collected for one position, flushed to a kernel when they are PLACES or the last. */
typedef struct places {
    int count;
    bool more; /* a kernel was called for this position before */
    const void *at[PLACES];
    const void *index[PLACES];
    uint32_t number[PLACES];
    float divisor[PLACES];
} places;

typedef struct span {
    int64_t begin, end;
} span;

static span clip(int64_t begin, int64_t end, int64_t limit)
{
    return (span){ begin < 0 ? 0 : begin, end > limit ? limit : end };
}

/* Positions inside the image that window `o` reads, along dimension i. */
static inline span window_of(const pool_op *p, int i, int64_t o)
{
    const int64_t first = o * p->stride[i] - p->pad[i];

    return clip(first, first + p->kernel[i], p->in[i]);
}

/* Windows that read position `x`, along dimension i. */
static inline span readers_of(const pool_op *p, int i, int64_t x)
{
    const int64_t from = x + p->pad[i] - p->kernel[i] + 1;

    return clip(from <= 0 ? 0 : (from + p->stride[i] - 1) / p->stride[i], (x + p->pad[i]) / p->stride[i] + 1,
                p->out[i]);
}

static inline int64_t offset_of(const int64_t *size, int64_t batch, int64_t d, int64_t h, int64_t w)
{
    return ((batch * size[0] + d) * size[1] + h) * size[2] + w;
}

/* The number of a place within its window: padding is counted. */
static inline uint32_t number_of(const pool_op *p, int64_t d, int64_t h, int64_t w)
{
    return (uint32_t)((d * p->kernel[1] + h) * p->kernel[2] + w);
}

/* Where a position is computed, and that it is there: the same where it is f32. */
static inline float *position_begin(const job *j, int64_t element, int worker)
{
    return j->lines ? j->lines + worker * row_floats(j->p->channels) : (float *)(void *)(j->y + element * j->p->bytes);
}

static inline void position_end(const job *j, int64_t element, const float *at)
{
    row_write(j->k, j->p->type, at, j->y + element * j->p->bytes, 0, j->p->channels);
}

static void forward_flush(const job *j, places *s, float divisor, float *y, void *index)
{
    const pool_op *p = j->p;

    if (p->max)
        j->k->ops->pool->max(type_of(p->type), p->channels, s->count, s->at, s->number, s->more, y, index,
                             index ? p->index_bytes : 0);
    else
        j->k->ops->pool->average(type_of(p->type), p->channels, s->count, s->at, divisor, s->more, y);
    s->count = 0;
    s->more = true;
}

static void forward_position(const job *j, places *s, int64_t n, const int64_t o[3], span d, span h, int worker)
{
    const pool_op *p = j->p;
    const span w = window_of(p, 2, o[2]);
    const int64_t inside = (d.end - d.begin) * (h.end - h.begin) * (w.end - w.begin);
    const int64_t out = offset_of(p->out, n, o[0], o[1], o[2]) * p->channels;
    const int64_t origin[3] = { o[0] * p->stride[0] - p->pad[0], o[1] * p->stride[1] - p->pad[1],
                                o[2] * p->stride[2] - p->pad[2] };
    unsigned char *index = j->index ? j->index + out * p->index_bytes : NULL;
    float *y = position_begin(j, out, worker);

    s->count = 0;
    s->more = false;
    for (int64_t a = d.begin; a < d.end; a++)
        for (int64_t b = h.begin; b < h.end; b++)
            for (int64_t c = w.begin; c < w.end; c++) {
                if (s->count == PLACES)
                    forward_flush(j, s, 1, y, index);
                s->at[s->count] = j->x + offset_of(p->in, n, a, b, c) * p->channels * p->bytes;
                s->number[s->count++] = number_of(p, a - origin[0], b - origin[1], c - origin[2]);
            }
    forward_flush(j, s, (float)(p->count_pad ? p->volume : inside), y, index);
    position_end(j, out, y);
}

static void backward_flush(const job *j, places *s, float *dx)
{
    const pool_op *p = j->p;

    if (p->max)
        j->k->ops->pool->max_grad(type_of(p->type), p->channels, s->count, s->at, s->index, s->number, p->index_bytes,
                                  s->more, dx);
    else
        j->k->ops->pool->average_grad(type_of(p->type), p->channels, s->count, s->at, s->divisor, s->more, dx);
    s->count = 0;
    s->more = true;
}

static inline float divisor_of(const pool_op *p, int64_t a, int64_t b, int64_t c)
{
    const span d = window_of(p, 0, a), h = window_of(p, 1, b), w = window_of(p, 2, c);

    return (float)(p->count_pad ? p->volume : (d.end - d.begin) * (h.end - h.begin) * (w.end - w.begin));
}

static void backward_position(const job *j, places *s, int64_t n, const int64_t x[3], span d, span h, span w,
                              int worker)
{
    const pool_op *p = j->p;
    const int64_t out = offset_of(p->in, n, x[0], x[1], x[2]) * p->channels;
    float *dx = position_begin(j, out, worker);

    s->count = 0;
    s->more = false;
    for (int64_t a = d.begin; a < d.end; a++)
        for (int64_t b = h.begin; b < h.end; b++)
            for (int64_t c = w.begin; c < w.end; c++) {
                const int64_t from = offset_of(p->out, n, a, b, c) * p->channels;

                if (s->count == PLACES)
                    backward_flush(j, s, dx);
                s->at[s->count] = j->x + from * p->bytes;
                if (p->max) {
                    s->index[s->count] = j->index + from * p->index_bytes;
                    s->number[s->count] = number_of(p, x[0] + p->pad[0] - a * p->stride[0],
                                                    x[1] + p->pad[1] - b * p->stride[1],
                                                    x[2] + p->pad[2] - c * p->stride[2]);
                } else {
                    s->divisor[s->count] = divisor_of(p, a, b, c);
                }
                s->count++;
            }
    backward_flush(j, s, dx);
    position_end(j, out, dx);
}

/* --- all positions: items are rows (batch, depth, height) ------------------------------------- */

/* The windows of a row that padding does not reach. */
static void forward_whole(const job *j, places *s, int64_t n, const int64_t o[3], span d, span h)
{
    const pool_op *p = j->p;
    const int64_t out = offset_of(p->out, n, o[0], o[1], p->whole[0]) * p->channels;
    const int64_t left = p->whole[0] * p->stride[2] - p->pad[2];

    s->count = 0;
    for (int64_t a = d.begin; a < d.end; a++)
        for (int64_t b = h.begin; b < h.end; b++)
            for (int64_t c = 0; c < p->kernel[2]; c++) {
                s->at[s->count] = j->x + offset_of(p->in, n, a, b, left + c) * p->channels * p->bytes;
                s->number[s->count++] = number_of(p, a - o[0] * p->stride[0] + p->pad[0],
                                                  b - o[1] * p->stride[1] + p->pad[1], c);
            }
    j->k->ops->pool->max_row(type_of(p->type), p->whole[1] - p->whole[0], p->channels, p->stride[2] * p->channels,
                             s->count, s->at, s->number, j->y + out * p->bytes, j->index ? j->index + out : NULL);
}

static void forward_rows(void *arg, int64_t begin, int64_t end, int worker)
{
    const job *j = arg;
    const pool_op *p = j->p;
    places s;

    for (int64_t i = begin; i < end; i++) {
        int64_t o[3] = { i / p->out[1] % p->out[0], i % p->out[1], 0 };
        const span d = window_of(p, 0, o[0]), h = window_of(p, 1, o[1]);

        if (p->whole[0] < p->whole[1])
            forward_whole(j, &s, i / p->out[1] / p->out[0], o, d, h);
        for (; o[2] < p->out[2]; o[2]++)
            if (o[2] < p->whole[0] || o[2] >= p->whole[1])
                forward_position(j, &s, i / p->out[1] / p->out[0], o, d, h, worker);
    }
}

static void backward_rows(void *arg, int64_t begin, int64_t end, int worker)
{
    const job *j = arg;
    const pool_op *p = j->p;
    places s;

    for (int64_t i = begin; i < end; i++) {
        int64_t x[3] = { i / p->in[1] % p->in[0], i % p->in[1], 0 };
        const span d = readers_of(p, 0, x[0]), h = readers_of(p, 1, x[1]);
        span w = { 0, 0 };

        for (; x[2] < p->in[2]; x[2]++) {
            /* readers_of(p, 2, x[2]), kept up to date without a division for each position */
            while (w.end < p->out[2] && w.end * p->stride[2] - p->pad[2] <= x[2])
                w.end++;
            while (w.begin < w.end && w.begin * p->stride[2] - p->pad[2] + p->kernel[2] <= x[2])
                w.begin++;
            backward_position(j, &s, i / p->in[1] / p->in[0], x, d, h, w, worker);
        }
    }
}

static void zero(const job *j, int64_t n, int64_t a, int64_t b, int64_t from, int64_t to)
{
    const pool_op *p = j->p;

    memset(j->y + offset_of(p->in, n, a, b, from) * p->channels * p->bytes, 0,
           (size_t)((to - from) * p->channels * p->bytes));
}

/* Items are rows of windows: all of their places, the last ones those behind them that no window reads, too. */
static void backward_apart(void *arg, int64_t begin, int64_t end, int worker)
{
    const job *j = arg;
    const pool_op *p = j->p;
    void *at[PLACES];
    uint32_t number[PLACES];

    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        const int64_t n = i / p->out[1] / p->out[0], o[2] = { i / p->out[1] % p->out[0], i % p->out[1] };
        const span d = { o[0] * p->kernel[0], o[0] + 1 < p->out[0] ? (o[0] + 1) * p->kernel[0] : p->in[0] };
        const span h = { o[1] * p->kernel[1], o[1] + 1 < p->out[1] ? (o[1] + 1) * p->kernel[1] : p->in[1] };
        const int64_t from = offset_of(p->out, n, o[0], o[1], 0) * p->channels;
        int count = 0;

        for (int64_t a = d.begin; a < d.end; a++)
            for (int64_t b = h.begin; b < h.end; b++) {
                const bool read = a - d.begin < p->kernel[0] && b - h.begin < p->kernel[1];

                zero(j, n, a, b, read ? p->out[2] * p->kernel[2] : 0, p->in[2]);
                for (int64_t c = 0; read && c < p->kernel[2]; c++) {
                    at[count] = j->y + offset_of(p->in, n, a, b, c) * p->channels * p->bytes;
                    number[count++] = number_of(p, a - d.begin, b - h.begin, c);
                }
            }
        j->k->ops->pool->max_grad_row(type_of(p->type), p->out[2], p->channels, p->kernel[2] * p->channels, count, at,
                                      number, j->x + from * p->bytes, j->index + from, p->stream);
    }
    if (p->stream)
        j->k->drain();
}

static void run_forward(const job *j, const cpu_dev *dev)
{
    const pool_op *p = j->p;
    const uint64_t position = CPU_PS_CALL + (uint64_t)(p->volume + 1) * (uint64_t)p->channels * 4 * CPU_PS_BYTE;

    cek__cpu_for(dev, p->batch * p->out[0] * p->out[1], 1, (uint64_t)p->out[2] * position, forward_rows, (void *)j);
}

static void run_backward(const job *j, const cpu_dev *dev)
{
    const pool_op *p = j->p;
    const uint64_t position = CPU_PS_CALL + (uint64_t)p->channels * 10 * CPU_PS_BYTE;

    if (p->apart)
        cek__cpu_for(dev, p->batch * p->out[0] * p->out[1], 1,
                     (uint64_t)p->out[2] * (uint64_t)p->volume * (uint64_t)p->channels * 5 * CPU_PS_BYTE,
                     backward_apart, (void *)j);
    else
        cek__cpu_for(dev, p->batch * p->in[0] * p->in[1], 1, (uint64_t)p->in[2] * position, backward_rows, (void *)j);
}

static void pool_forward_run(const cek_op *op, cek_queue *queue, void *const *at, void *workspace)
{
    const pool_op *p = (const pool_op *)op;
    job j = { .p = p,
              .k = op_kernels(op),
              .x = at[CEK_POOL_FORWARD_X],
              .y = at[CEK_POOL_FORWARD_Y],
              .index = at[CEK_POOL_FORWARD_RESERVE],
              .lines = p->type == CEK_F32 ? NULL : workspace };

    (void)queue;
    run_forward(&j, op_dev(op));
}

static void pool_backward_run(const cek_op *op, cek_queue *queue, void *const *at, void *workspace)
{
    const pool_op *p = (const pool_op *)op;
    job j = { .p = p,
              .k = op_kernels(op),
              .x = at[CEK_POOL_BACKWARD_DY],
              .y = at[CEK_POOL_BACKWARD_DX],
              .index = at[CEK_POOL_BACKWARD_RESERVE],
              .lines = p->type == CEK_F32 ? NULL : workspace };

    (void)queue;
    run_backward(&j, op_dev(op));
}

const cpu_kind cek__cpu_pool_forward = { sizeof(pool_op), pool_forward_plan, pool_forward_run, NULL };
const cpu_kind cek__cpu_pool_backward = { sizeof(pool_op), pool_plan, pool_backward_run, NULL };
