/* depthwise.c - convolutions with one channel in and one out per group, all directions.
 *
 * Owns: which pixels meet, the weights in the order of channels, partial sums of the gradient.
 * Must not know: products. Tasks are runs of lines of pixels; the gradient's parts are a function
 * of the shape alone. */
#include <string.h>

#include "backends/cpu/conv/method.h"
#include "backends/cpu/product/epilogue.h"

enum {
    LINES = 8,         /* lines of one task */
    PARTS_MAX = 16,    /* parts of the gradient that are summed apart */
    RUN_FLOATS = 4096, /* of a run of pixels: half of an L1 of 32 KiB, where they are not made in their place */
    RUN_LEAST = 4      /* pixels that the kernel takes at once */
};

/* One worker's memory. */
typedef struct scratch {
    const float **x, **w; /* of each tap that a pixel meets */
    /* converted pixels, where x or dy is not f32: a line of channels for each tap and one more */
    float *lines;
    float *sums; /* a run of pixels */
} scratch;

typedef struct run {
    const conv_call *call;
    const cpu_kernels *kernels;
    int64_t channels, stride, taps; /* stride: floats of a line of channels */
    float *weights;                 /* [taps][stride] */
    float *ones;                    /* a line of channels */
    float *parts;                   /* [part][taps + 1][stride]: the last line is the bias gradient's */
    int64_t pixels;                 /* of a run */
    int64_t n_parts, lines;         /* lines: of the pixels that are computed, or of dy */
    char *scratch;
    size_t worker_bytes;
    epilogue e;
} run;

static int64_t lines_of(const conv_desc *d)
{
    const int64_t *size = d->direction == CONV_BACKWARD_DATA ? d->in : d->out;
    return d->batch * size[0] * size[1];
}

static void scratch_at(const run *r, int worker, scratch *out)
{
    const size_t pointers = (size_t)round_up(r->taps * 8, 64);
    char *base = r->scratch + (size_t)worker * r->worker_bytes;
    out->x = (void *)base;
    out->w = (void *)(base + pointers);
    out->lines = (float *)(void *)(base + 2 * pointers);
    out->sums = out->lines + (r->taps + 1) * r->stride;
}

/* The sizes of a run; its memory is laid out by run_place. */
static void run_size(const conv_plan *plan, run *r)
{
    const conv_desc *d = &plan->d;
    *r = (run){ .kernels = plan->config->kernels,
                .channels = d->groups,
                .stride = round_up(d->groups, 16),
                .taps = conv_taps(d),
                .lines = lines_of(d) };
    /* pixels of other types are converted one by one */
    const int floats = (d->direction == CONV_BACKWARD_DATA || d->x == CPU_F32) &&
                       (d->direction == CONV_FORWARD || d->y == CPU_F32);
    r->pixels = floats ? most(RUN_FLOATS / r->stride / RUN_LEAST * RUN_LEAST, RUN_LEAST) : 1;
    r->n_parts = d->direction == CONV_BACKWARD_WEIGHTS ? least(r->lines, PARTS_MAX) : 0;
    r->worker_bytes = 2 * (size_t)round_up(r->taps * 8, 64) + (size_t)((r->taps + 1 + r->pixels) * r->stride) * 4;
}

static void run_place(run *r, char *workspace)
{
    r->weights = (float *)(void *)workspace;
    r->ones = r->weights + r->taps * r->stride;
    r->parts = r->ones + r->stride;
    r->scratch = (char *)(r->parts + r->n_parts * (r->taps + 1) * r->stride);
}

void cek__depthwise_plan(conv_plan *plan)
{
    run r;
    run_size(plan, &r);
    plan->workspace_bytes = (size_t)((r.taps + 1 + r.n_parts * (r.taps + 1)) * r.stride) * 4 +
                            (size_t)plan->workers * r.worker_bytes;
}

static const float *pixel_at(const run *r, cpu_type type, const void *image, int64_t pixel, float *line)
{
    const char *at = conv_at(image, type, pixel * r->channels);
    if (type == CPU_F32)
        return (const float *)(const void *)at;
    r->kernels->load(type, r->channels, at, line);
    return line;
}

/* What position `at` of one dimension meets through tap `tap` on the other side, or -1. */
static int64_t meets(const conv_desc *d, int i, int64_t at, int64_t tap)
{
    if (d->direction != CONV_BACKWARD_DATA) {
        const int64_t in = at * d->stride[i] - d->pad[i] + tap * d->dilation[i];
        return in >= 0 && in < d->in[i] ? in : -1;
    }
    const int64_t scaled = at + d->pad[i] - tap * d->dilation[i];
    return scaled >= 0 && scaled % d->stride[i] == 0 && scaled / d->stride[i] < d->out[i] ? scaled / d->stride[i] : -1;
}

/* Lists the pixels of the other side that a pixel meets, and the lines of `weights` that belong to
 * them; returns their number. */
static int64_t taps_list(const run *r, int64_t image, const int64_t at[3], float *weights, const scratch *s)
{
    const conv_desc *d = &r->call->plan->d;
    const int back = d->direction == CONV_BACKWARD_DATA;
    const int64_t *size = back ? d->out : d->in;
    const void *other = back ? r->call->args->y : r->call->args->x;
    int64_t n = 0, tap = 0;

    for (int64_t a = 0; a < d->kernel[0]; a++)
        for (int64_t b = 0; b < d->kernel[1]; b++) {
            const int64_t z = meets(d, 0, at[0], a), y = meets(d, 1, at[1], b);
            for (int64_t c = 0; c < d->kernel[2]; c++, tap++) {
                const int64_t x = z < 0 || y < 0 ? -1 : meets(d, 2, at[2], c);
                if (x < 0)
                    continue;
                const int64_t pixel = ((image * size[0] + z) * size[1] + y) * size[2] + x;
                s->x[n] = pixel_at(r, back ? d->y : d->x, other, pixel, s->lines + n * r->stride);
                s->w[n++] = weights + tap * r->stride;
            }
        }
    return n;
}

/* The positions of a line through which all taps meet pixels: [*low, *high), of backward-data those of one residue that
 * meet any. */
static void inner_set(const conv_desc *d, int64_t *low, int64_t *high)
{
    const int64_t s = d->stride[2], pad = d->pad[2], reach = (d->kernel[2] - 1) * d->dilation[2];

    if (d->direction == CONV_BACKWARD_DATA) {
        *low = most(reach - pad, 0);
        *high = least(d->in[2], (d->out[2] - 1) * s - pad + 1);
        return;
    }
    *low = (pad + s - 1) / s;
    *high = d->in[2] + pad > reach ? least(d->out[2], (d->in[2] - 1 + pad - reach) / s + 1) : 0;
}

/* Positions from `i` on, every `step`-th before `end`, that meet pixels by the same taps; at most a run. */
static int64_t run_length(const run *r, int64_t i, int64_t step, int64_t end)
{
    int64_t low, high;

    inner_set(&r->call->plan->d, &low, &high);
    return i < low || i >= high ? 1 : least(r->pixels, (least(high, end) - i + step - 1) / step);
}

/* Makes a run of y or dx, `step` pixels apart, from what `s` lists. */
static void run_make(const run *r, int64_t taps, int64_t pixel, int64_t pixels, int64_t step, const scratch *s)
{
    const conv_desc *d = &r->call->plan->d;
    const int64_t c = r->channels, x_step = d->direction == CONV_BACKWARD_DATA ? c : d->stride[2] * c;
    const int plain = r->e.to.type == CPU_F32 && !r->e.accumulate && !r->e.bias && r->e.act == CPU_ACT_NONE &&
                      r->e.deriv == CPU_ACT_NONE;
    epilogue e = r->e;

    if (plain) {
        r->kernels->depthwise_sum(pixels, taps, c, s->x, x_step, s->w, (float *)r->e.c + pixel * c, step * c);
        return;
    }
    r->kernels->depthwise_sum(pixels, taps, c, s->x, x_step, s->w, s->sums, c);
    e.c = conv_at(e.c, e.to.type, pixel * c);
    if (e.deriv != CPU_ACT_NONE)
        e.ref = conv_at(e.ref, e.ref_at.type, pixel * c);
    e.to.row_stride = e.ref_at.row_stride = step * c;
    /* neighbours are one long row, unless a bias is added to each */
    const int64_t rows = step == 1 && !e.bias ? 1 : pixels, cols = pixels / rows * c;
    cek__epilogue(r->kernels, &e, 0, rows, 0, cols, s->sums, c);
}

/* Forward and backward-data: lines of y or dx. */
static void lines_task(void *arg, int64_t task, int worker)
{
    const run *r = arg;
    const conv_desc *d = &r->call->plan->d;
    const int back = d->direction == CONV_BACKWARD_DATA;
    const int64_t *size = back ? d->in : d->out, step = back ? d->stride[2] : 1;
    scratch s;

    scratch_at(r, worker, &s);
    for (int64_t line = task * LINES; line < least((task + 1) * LINES, r->lines); line++)
        for (int64_t first = 0; first < least(step, size[2]); first++)
            for (int64_t i = first, n; i < size[2]; i += n * step) {
                const int64_t at[3] = { line / size[1] % size[0], line % size[1], i };
                const int64_t taps = taps_list(r, line / size[1] / size[0], at, r->weights, &s);
                n = run_length(r, i, step, size[2]);
                run_make(r, taps, line * size[2] + i, n, step, &s);
            }
}

/* Backward-weights: one part of the lines of dy. */
static void part_task(void *arg, int64_t task, int worker)
{
    const run *r = arg;
    const conv_desc *d = &r->call->plan->d;
    const int64_t first = r->lines * task / r->n_parts, last = r->lines * (task + 1) / r->n_parts, c = r->channels;
    float *part = r->parts + task * (r->taps + 1) * r->stride, *bias = part + r->taps * r->stride;
    const float *ones = r->ones;
    scratch s;

    scratch_at(r, worker, &s);
    memset(part, 0, (size_t)((r->taps + 1) * r->stride) * 4);
    for (int64_t line = first; line < last; line++)
        for (int64_t i = 0, n; i < d->out[2]; i += n) {
            const int64_t at[3] = { line / d->out[1] % d->out[0], line % d->out[1], i };
            const int64_t taps = taps_list(r, line / d->out[1] / d->out[0], at, part, &s);
            const float *dy = pixel_at(r, d->y, r->call->args->y, line * d->out[2] + i, s.lines + r->taps * r->stride);
            n = run_length(r, i, 1, d->out[2]);
            r->kernels->depthwise_add(n, taps, c, s.x, d->stride[2] * c, dy, c, (float *const *)(const void *)s.w);
            if (r->call->args->dbias)
                r->kernels->depthwise_add(n, 1, c, &ones, 0, dy, c, &bias);
        }
}

static void parts_add(const run *r)
{
    const conv_args *args = r->call->args;
    const int64_t n = (r->taps + 1) * r->stride;

    for (int64_t part = 1; part < r->n_parts; part++)
        r->kernels->add(n, r->parts, r->parts + part * n, r->parts);
    for (int64_t tap = 0; tap < r->taps; tap++)
        cek__epilogue(r->kernels, &r->e, tap, 1, 0, r->channels, r->parts + tap * r->stride, 0);
    if (args->dbias) {
        const float *sum = r->parts + r->taps * r->stride;
        if (r->call->plan->d.bias_accumulate)
            r->kernels->add(r->channels, args->dbias, sum, args->dbias);
        else
            memcpy(args->dbias, sum, (size_t)r->channels * 4);
    }
}

void cek__depthwise_run(const conv_call *call, cpu_threads *threads, void *workspace)
{
    const conv_desc *d = &call->plan->d;
    const conv_args *args = call->args;
    const cpu_type type = d->direction == CONV_FORWARD ? d->y : d->direction == CONV_BACKWARD_DATA ? d->x : d->w;
    run r;

    run_size(call->plan, &r);
    run_place(&r, workspace);
    r.call = call;
    r.e = (epilogue){ .c = args->out,
                      .to = { type, r.channels, 1, 0 },
                      .accumulate = d->accumulate,
                      .ref = args->ref,
                      .ref_at = { d->ref, r.channels, 1, 0 } };
    if (d->direction == CONV_BACKWARD_WEIGHTS) {
        for (int64_t c = 0; c < r.channels; c++)
            r.ones[c] = 1;
        r.e.to = (gemm_matrix){ type, 1, r.taps, 0 }; /* row = tap, column = channel, of dw[channel][tap] */
        cek__threads_run(threads, r.n_parts, part_task, &r);
        parts_add(&r);
        return;
    }
    for (int64_t c = 0; c < r.channels; c++)
        for (int64_t tap = 0; tap < r.taps; tap++)
            r.kernels->load(d->w, 1, conv_at(args->w, d->w, c * r.taps + tap), r.weights + tap * r.stride + c);
    if (d->direction == CONV_FORWARD) {
        r.e.act = d->act;
        r.e.bias = args->bias;
    } else {
        r.e.deriv = d->deriv;
    }
    cek__threads_run(threads, (r.lines + LINES - 1) / LINES, lines_task, &r);
}
