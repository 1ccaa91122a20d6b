/* scatter.c - the gradient of a convolution's input from the side of dy: a pixel of dy times all weights is what it
 * adds to each pixel of dx that it met.
 *
 * Owns: who adds what to which lines of dx, in which order. Must not know: how products are walked.
 *
 * Such products have a column for each tap and channel, so tiles are full where dx has few channels, and no tap is
 * multiplied in vain whatever the strides. What they give is added to floats that stay in L2, in which taps along w lie
 * side by side, and goes to dx when all of it is there. Lines of dy near the edge of a task are multiplied only by the
 * taps that reach the task's lines, so that tasks share no line and compute nothing twice. */
#include <string.h>

#include "backends/cpu/conv/method.h"

enum {
    SUM_BYTES = 200 << 10,     /* with a block of A and of B and its products, two thirds of a 1 MiB L2 */
    PRODUCT_BYTES = 160 << 10, /* products that wait to be added */
    COLUMNS = 256,             /* of a product, where one line of taps has no more */
    ROWS = 448,                /* of a product: packing the weights is some 1% of it */
    TASKS = 16,                /* that are wanted at least */
    LINES_MIN = 8,             /* of a task: an edge costs another packing of the weights */
    CHANNELS = 192,            /* of a task, over its taps along w */
    SHARING = 4                /* tasks, from which on weights are packed for all of them */
};

/* Whether images are single slices, all of whose lines every product may serve. */
static int is_flat(const conv_desc *d)
{
    return d->in[0] == 1 && d->out[0] == 1 && d->kernel[0] == 1 && d->pad[0] == 0;
}

/* Whether what a task makes of a line is a line of dx. */
static int is_whole(const conv_desc *d, const scatter_plan *s)
{
    return s->channels == d->in_channels;
}

static int64_t slices(const conv_desc *d)
{
    return d->batch * d->in[0];
}

/* A line of 1-D is as long as it likes, but its pixels may as well be lines of their own. */
static void line_turn(conv_desc *d)
{
    int64_t *const of[] = { d->in, d->out, d->kernel, d->stride, d->dilation, d->pad };

    if (d->in[1] > 1 || d->out[1] > 1 || d->kernel[1] > 1 || d->in[2] * conv_group_in(d) * 4 <= SUM_BYTES)
        return;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        const int64_t w = of[i][2];
        of[i][2] = of[i][1];
        of[i][1] = w;
    }
}

/* All channels, so that taps along w are neighbours in weights, products and sums; or, of many channels, whole panels
 * at a time. */
static void channels_choose(const conv_desc *d, const cpu_kernels *kernels, scatter_plan *s)
{
    const int64_t in = conv_group_in(d), nr = kernels->nr, some = most(CHANNELS / d->kernel[2] / nr, 1) * nr;

    s->channels = in <= some || (in % nr != 0 && in * d->kernel[2] <= COLUMNS) ? in : some;
    s->blocks = ceil_div(in, s->channels);
    s->tap = s->blocks == 1 ? in : round_up(s->channels, nr);
}

static void lines_choose(const conv_desc *d, scatter_plan *s)
{
    const int64_t line = d->in[2] * s->channels, tasks = slices(d) * d->groups * s->blocks;
    const int64_t enough = most(ceil_div(d->in[1], ceil_div(TASKS, tasks)), LINES_MIN);

    s->lines = least(d->in[1], least(most(SUM_BYTES / (4 * line), 1), enough));
    s->parts = ceil_div(d->in[1], s->lines);
    s->lines = ceil_div(d->in[1], s->parts);
    s->parts = ceil_div(d->in[1], s->lines);
    s->images = 1;
    if (s->parts == 1 && is_flat(d)) {
        const int64_t fit = SUM_BYTES / (4 * line * s->lines), full = ceil_div(ROWS, d->out[1] * d->out[2]);
        s->images = most(least(least(fit, full), least(tasks / TASKS, d->batch)), 1);
    }
    s->sum_floats = round_up(s->images * s->lines * line, 16);
}

static void sizes_choose(const conv_desc *d, const cpu_config *config, scatter_plan *s)
{
    const int64_t nr = config->kernels->nr, taps = d->kernel[2] * s->tap, depth = conv_group_out(d);
    const int64_t heights = least(d->kernel[1], most(COLUMNS / taps, 1));

    s->heights = ceil_div(d->kernel[1], ceil_div(d->kernel[1], heights));
    const int64_t columns = round_up(s->heights * taps, nr);
    const int64_t pixels = s->images * d->out[1] * d->out[2]; /* that a task has at most */
    s->rows = least(least(PRODUCT_BYTES / (4 * columns), ROWS), pixels);
    s->rows = most(s->rows, config->kernels->mr);
    s->sizes = (walk_sizes){ .mc = least(config->floats.mc, s->rows), .mb = s->rows, .nb = columns };
    s->sizes.kc = ceil_div(depth, ceil_div(depth, config->floats.kc));
    s->sizes.a_floats = s->sizes.mc * walk_row_floats(s->sizes.kc);
    s->sizes.b_floats = s->sizes.kc * columns;
    s->sizes.c_floats = s->rows * columns;
}

/* Cycles, of which a multiplication of vectors takes one. */
static double cost_of(const conv_desc *d, const cpu_config *config, const scatter_plan *s)
{
    enum { ADD = 12, ADD_VECTOR = 3, STORE = 2, PACK = 3 };
    const int64_t vl = config->kernels->nr / 2, taps = d->kernel[2] * s->tap;
    const double pixels = (double)(d->batch * d->out[0] * d->out[1] * d->out[2] * d->groups * s->blocks * d->kernel[0]);
    const double depth = (double)conv_group_out(d);
    const int64_t adds = d->dilation[2] == 1 && s->tap == s->channels ? 1 : d->kernel[2];
    double vectors = 0;

    for (int64_t i = 0; i < d->kernel[1]; i += s->heights)
        vectors += 2.0 * (double)ceil_div(least(s->heights, d->kernel[1] - i) * taps, 2 * vl);
    return pixels * (vectors * (depth + STORE + PACK * depth / (double)s->rows) +
                     (double)(d->kernel[1] * adds * (ADD + ADD_VECTOR * ceil_div(taps / adds, vl))));
}

/* Each task packs its weights for every product: less than they wait for where few tasks share them. Heights must begin
 * with panels, whichever of them a product serves. */
static int64_t packed_floats(const conv_desc *d, const cpu_config *config, const scatter_plan *s)
{
    const int shared = slices(d) * s->parts >= SHARING * s->images;
    if (!shared || d->kernel[2] * s->tap % config->kernels->nr != 0)
        return 0;
    return round_up(conv_group_out(d) * conv_taps(d) * s->tap, 16); /* whole lines of the cache */
}

void cek__scatter_plan(conv_plan *plan)
{
    scatter_plan *s = &plan->scatter;
    walk_scratch none;

    line_turn(&plan->d);
    channels_choose(&plan->d, plan->config->kernels, s);
    lines_choose(&plan->d, s);
    sizes_choose(&plan->d, plan->config, s);
    s->worker_bytes = cek__walk_scratch(&s->sizes, plan->config->kernels->nr, NULL, &none) + (size_t)s->sum_floats * 4;
    s->cost = cost_of(&plan->d, plan->config, s);
    s->packed_floats = packed_floats(&plan->d, plan->config, s);
    plan->workspace_bytes = (size_t)(plan->d.groups * s->blocks * s->packed_floats * 4) +
                            (size_t)plan->workers * s->worker_bytes;
}

/* One task: lines [first, last) of slice d of images [image, image + images). */
typedef struct task {
    const conv_call *call;
    product_part part; /* A is dy, by its pixels */
    int64_t group, channel, channels;
    int64_t tap;   /* columns from one tap to the next */
    float *packed; /* weights of the block: [block of k][panel][k][nr], where there are such */
    int64_t image, images, d, first, last;
    float *sum;
    walk_scratch scratch;
} task;

/* Weights as B: a column for each tap and channel of the block. */
static walk_edge give_weights(const void *part, int64_t k, int64_t depth, int64_t col, int64_t cols,
                              const walk_scratch *to)
{
    const product_part *p = part;
    const task *t = p->owner;
    const conv_desc *d = &t->call->plan->d;
    const scatter_plan *s = &t->call->plan->scatter;
    const int64_t in = conv_group_in(d), nr = p->kernels->nr, ld = conv_taps(d) * in, whole = s->blocks == 1;

    for (int64_t done = 0; done < cols; done += whole ? cols : t->tap) {
        const int64_t at = (col + done) / t->tap * in + t->channel;
        p->kernels->panels(d->w, depth, whole ? cols : t->channels, nr, conv_at(p->b.at, d->w, k * ld + at), ld,
                           to->b + done * depth, depth * nr);
    }
    cek__walk_panels_b(nr, depth, cols, to);
    return WALK_WHOLE;
}

static walk_edge give_packed(const void *part, int64_t k, int64_t depth, int64_t col, int64_t cols,
                             const walk_scratch *to)
{
    const product_part *p = part;
    const task *t = p->owner;
    const int64_t nr = p->kernels->nr;
    const float *at = t->packed + k * conv_taps(&t->call->plan->d) * t->tap + col * depth;

    for (const float **panel = to->b_panel; cols > 0; cols -= nr, at += depth * nr)
        *panel++ = at;
    cek__offsets_make(to->b_offset, depth, nr);
    return WALK_WHOLE;
}

/* Adds one pixel's products for one line of taps to the line of dx, from pixel `w` on. */
static void taps_add(const task *t, int64_t w, const float *from, float *line)
{
    const conv_desc *d = &t->call->plan->d;
    const int64_t c = t->channels, tap_floats = t->tap, step = d->dilation[2], taps = d->kernel[2];
    const cpu_kernels *kernels = t->part.kernels;

    if (step == 1 && tap_floats == c) {
        const int64_t low = w < 0 ? -w : 0, high = least(taps, d->in[2] - w);
        if (low < high)
            kernels->add((high - low) * c, line + (w + low) * c, from + low * c, line + (w + low) * c);
        return;
    }
    for (int64_t tap = 0; tap < taps; tap++, w += step, from += tap_floats)
        if (w >= 0 && w < d->in[2])
            kernels->add(c, line + w * c, from, line + w * c);
}

/* Takes finished rows: pixels of dy, each with a line of taps for one or more heights. */
static void take_pixels(const void *part, int64_t row, int64_t rows, int64_t col, int64_t cols, const float *c,
                        int64_t ldc)
{
    const product_part *p = part;
    const task *t = p->owner;
    const conv_desc *d = &t->call->plan->d;
    const int64_t taps = d->kernel[2] * t->tap, line = d->in[2] * t->channels, lines = t->last - t->first;
    const int64_t height = col / taps % d->kernel[1];

    for (int64_t left = rows, r = row, some; left > 0;
         left -= some, r += some, c += some * ldc) { /* of one line of dy */
        const int64_t image = r / d->out[2] / d->out[1] / d->out[0], at = r % d->out[2];
        int64_t h = r / d->out[2] % d->out[1] * d->stride[1] - d->pad[1] + height * d->dilation[1];
        some = least(left, d->out[2] - at);
        for (int64_t i = 0; i < cols; i += taps, h += d->dilation[1])
            if (h >= t->first && h < t->last)
                for (int64_t j = 0; j < some; j++)
                    taps_add(t, (at + j) * d->stride[2] - d->pad[2], c + j * ldc + i,
                             t->sum + ((image - t->image) * lines + h - t->first) * line);
    }
}

/* Pixels [row, row + rows) of dy by tap `depth` along d and [low, high) along h. */
static void product_add(task *t, int64_t row, int64_t rows, int64_t depth, int64_t low, int64_t high)
{
    const conv_plan *plan = t->call->plan;
    const scatter_plan *s = &plan->scatter;
    const int64_t taps = plan->d.kernel[2] * t->tap, some = ceil_div(rows, ceil_div(rows, s->rows));
    const walk w = { .kernels = t->part.kernels,
                     .mc = s->sizes.mc,
                     .kc = s->sizes.kc,
                     .a = cek__product_a,
                     .b = s->packed_floats ? give_packed : give_weights,
                     .take = take_pixels,
                     .source = &t->part };

    for (int64_t i = 0; i < rows; i += some)
        for (int64_t h = low; h < high; h += s->heights)
            cek__walk(&w,
                      &(walk_task){ .row = row + i,
                                    .rows = least(some, rows - i),
                                    .col = (depth * plan->d.kernel[1] + h) * taps,
                                    .cols = least(s->heights, high - h) * taps,
                                    .depth = conv_group_out(&plan->d),
                                    .c = t->scratch.c,
                                    .ldc = s->sizes.nb },
                      &t->scratch);
}

/* The taps along h by which line `h` of dy meets lines of the task. */
static void heights_of(const task *t, int64_t h, int64_t *low, int64_t *high)
{
    const conv_desc *d = &t->call->plan->d;
    const int64_t at = h * d->stride[1] - d->pad[1], step = d->dilation[1];

    *low = at < t->first ? ceil_div(t->first - at, step) : 0;
    *high = at < t->last ? least(d->kernel[1], ceil_div(t->last - at, step)) : 0;
}

/* Lines of slice `z` of dy by tap `depth` along d, as many at once as meet the task by the same taps. */
static void slice_add(task *t, int64_t z, int64_t depth)
{
    const conv_desc *d = &t->call->plan->d;
    const int64_t line = (t->image * d->out[0] + z) * d->out[1];

    if (t->images > 1) {
        product_add(t, line * d->out[2], t->images * d->out[1] * d->out[2], depth, 0, d->kernel[1]);
        return;
    }
    for (int64_t h = 0, end; h < d->out[1]; h = end) {
        int64_t low, high, same_low, same_high;
        heights_of(t, h, &low, &high);
        for (end = h + 1; end < d->out[1]; end++) {
            heights_of(t, end, &same_low, &same_high);
            if (same_low != low || same_high != high)
                break;
        }
        if (low < high)
            product_add(t, (line + h) * d->out[2], (end - h) * d->out[2], depth, low, high);
    }
}

static void task_finish(const task *t)
{
    const conv_desc *d = &t->call->plan->d;
    const conv_args *args = t->call->args;
    const int whole = is_whole(d, &t->call->plan->scatter);
    /* rows of the result: lines, or pixels */
    const int64_t in_line = whole ? 1 : d->in[2], stride = whole ? d->in[2] * d->in_channels : d->in_channels;
    const int64_t col = t->group * conv_group_in(d) + t->channel, cols = whole ? stride : t->channels;
    const epilogue e = { .c = args->out,
                         .to = { d->x, stride, 1, 0 },
                         .accumulate = d->accumulate,
                         .deriv = d->deriv,
                         .ref = args->ref,
                         .ref_at = { d->ref, stride, 1, 0 } };

    cek__epilogue(t->part.kernels, &e, ((t->image * d->in[0] + t->d) * d->in[1] + t->first) * in_line,
                  t->images * (t->last - t->first) * in_line, col, cols, t->sum, cols);
}

typedef struct run {
    const conv_call *call;
    char *scratch;
} run;

static void task_open(const run *r, int64_t number, int worker, task *t)
{
    const conv_plan *plan = r->call->plan;
    const conv_desc *d = &plan->d;
    const scatter_plan *s = &plan->scatter;
    const int64_t in = conv_group_in(d), out = conv_group_out(d), part = number % s->parts;
    const int64_t block = number / s->parts % s->blocks, group = number / s->parts / s->blocks % d->groups;
    const int64_t slice = number / s->parts / s->blocks / d->groups * s->images;
    float *packed = (float *)(void *)r->scratch;
    char *at = r->scratch + (size_t)(d->groups * s->blocks * s->packed_floats * 4) + (size_t)worker * s->worker_bytes;
    /* pixels that follow each other fall into different sets of the cache as they lie */
    const int direct = d->y == CPU_F32 && out == d->out_channels && out <= plan->config->floats.kc;

    *t = (task){ .call = r->call,
                 .group = group,
                 .channel = block * s->channels,
                 .packed = packed + (group * s->blocks + block) * s->packed_floats,
                 .image = slice / d->in[0],
                 .d = slice % d->in[0],
                 .first = part * s->lines };
    t->channels = least(s->channels, in - t->channel);
    t->tap = s->blocks == 1 ? in : round_up(t->channels, plan->config->kernels->nr);
    t->images = least(s->images, d->batch - t->image);
    t->last = least(t->first + s->lines, d->in[1]);
    t->part = (product_part){ .kernels = plan->config->kernels,
                              .a = pack_of(conv_at(r->call->args->y, d->y, group * out), d->y, d->out_channels, 1,
                                           direct ? PACK_DIRECT : PACK_ALONG),
                              .b = { .at = conv_at(r->call->args->w, d->w, group * out * conv_taps(d) * in) },
                              .owner = t };
    at += cek__walk_scratch(&s->sizes, plan->config->kernels->nr, at, &t->scratch);
    t->sum = (float *)(void *)at;
}

static void task_run(void *arg, int64_t number, int worker)
{
    const run *r = arg;
    const conv_desc *d = &r->call->plan->d;
    task t;

    task_open(r, number, worker, &t);
    memset(t.sum, 0, (size_t)(t.images * (t.last - t.first) * d->in[2] * t.channels) * 4);
    for (int64_t tap = 0; tap < d->kernel[0]; tap++) {
        const int64_t at = t.d + d->pad[0] - tap * d->dilation[0];
        if (at >= 0 && at % d->stride[0] == 0 && at / d->stride[0] < d->out[0])
            slice_add(&t, at / d->stride[0], tap);
    }
    task_finish(&t);
}

/* The weights of one line of taps, of a block of channels. */
static void pack_task(void *arg, int64_t number, int worker)
{
    const run *r = arg;
    const conv_desc *d = &r->call->plan->d;
    const scatter_plan *s = &r->call->plan->scatter;
    const int64_t lines = d->kernel[0] * d->kernel[1];
    task t;

    task_open(r, number / lines * s->parts, worker, &t);
    const int64_t taps = d->kernel[2] * t.tap, col = number % lines * taps;
    for (int64_t k = 0, depth; k < conv_group_out(d); k += depth) {
        depth = least(conv_group_out(d) - k, s->sizes.kc);
        t.scratch.b = t.packed + k * lines * taps + col * depth;
        give_weights(&t.part, k, depth, col, taps, &t.scratch);
    }
}

void cek__scatter_run(const conv_call *call, cpu_threads *threads, void *workspace)
{
    const conv_desc *d = &call->plan->d;
    const scatter_plan *s = &call->plan->scatter;
    run r = { call, workspace };
    const int64_t groups_of_slices = ceil_div(slices(d), s->images);

    threads = s->cost < PRODUCT_SERIAL_CYCLES ? NULL : threads;
    if (s->packed_floats)
        cek__threads_run(threads, d->groups * s->blocks * d->kernel[0] * d->kernel[1], pack_task, &r);
    cek__threads_run(threads, groups_of_slices * d->groups * s->blocks * s->parts, task_run, &r);
}
