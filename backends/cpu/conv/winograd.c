/* winograd.c - Winograd's convolutions, forward and backward-data: which shapes, and their run.
 *
 * Owns: when it is worth it and with which squares, squares at the edges of an image, the transformed weights. Must
 * not know: the transforms themselves, how a tile of a product is computed.
 *
 * Sums of rounded transforms are not the sums of the definition: of 4 x 4 outputs some bits less are right, and small
 * integers are not exact. backward-data is the same convolution of dy with the taps turned around and the channels
 * exchanged. */
#include <string.h>

#include "backends/cpu/conv/method.h"

/* Costs in cycles, measured on a Zen 4 core; see product/plan.c. */
static const double cost_transform = 220; /* a vector of channels of one square, in or out */
static const double cost_weight = 8;      /* a vector of transformed weights, made, kept and fetched */
static const double cost_weight_far = 60; /* the same where they are more than caches hold */
static const double cost_product = 1.1;   /* a vector of sums, tiles with their edges */
static const double gain_wanted = 0.85;   /* of the time of the direct way */

enum {
    CHANNELS_LEAST = 16,      /* beneath, tiles of products are too thin */
    WEIGHTS_DEPTH = 64,       /* channels of transformed weights that are turned at once */
    PANELS = 2,               /* of columns, whose sums stay in L2 */
    NEAR_BYTES = 12 << 20,    /* of transformed weights that stay in L3 */
    SHARED_BYTES = 256 << 20, /* at most, of transformed weights and their tables */
    WORKER_BYTES = 16 << 20,  /* at most, of a worker's squares */
    TASKS = 16,               /* wanted of backward-weights, from blocks and splits */
    SUMS_ROWS = 64,           /* with PANELS, what a task of backward-weights sums stays in L2 */
};

static int64_t ceil_div(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}
static int64_t round_up(int64_t n, int64_t to)
{
    return ceil_div(n, to) * to;
}

static int has_taps(const conv_desc *d)
{
    return d->groups == 1 && d->kernel[0] == 1 && d->kernel[1] == 3 && d->kernel[2] == 3 && d->stride[0] == 1 &&
           d->stride[1] == 1 && d->stride[2] == 1 && d->dilation[1] == 1 && d->dilation[2] == 1 && d->pad[0] == 0 &&
           d->in[0] == d->out[0] && d->in_channels >= CHANNELS_LEAST && d->out_channels >= CHANNELS_LEAST;
}

/* Which of an image's sides is covered with tiles. */
static const int64_t *computed(const conv_desc *d)
{
    return d->direction == CONV_BACKWARD_DATA ? d->in : d->out;
}

static void form_set(const conv_desc *d, const cpu_winograd *form, winograd_plan *w)
{
    *w = (winograd_plan){ .form = form, .points = form->outputs + 2 };
    w->planes = w->points * w->points;
    for (int i = 0; i < 2; i++)
        w->tiles[i] = ceil_div(computed(d)[i + 1], form->outputs);
    w->count = d->batch * d->in[0] * w->tiles[0] * w->tiles[1];
    w->from = d->direction == CONV_BACKWARD_DATA ? d->out_channels : d->in_channels;
    w->to = d->direction == CONV_BACKWARD_DATA ? d->in_channels : d->out_channels;
}

static void sizes_choose(const conv_desc *d, const cpu_kernels *kernels, int workers, winograd_plan *w)
{
    const int64_t panel = kernels->nr, most = PANELS * panel;

    w->block = round_up(conv_least(28, w->count), kernels->mr);
    if (d->direction == CONV_BACKWARD_WEIGHTS) {
        w->columns = ceil_div(w->from, ceil_div(w->from, most));
        w->columns = round_up(w->columns, panel);
        w->rows = ceil_div(w->to, ceil_div(w->to, SUMS_ROWS));
        const int64_t blocks = ceil_div(w->from, w->columns) * ceil_div(w->to, w->rows);
        for (w->splits = 1; w->splits * blocks < TASKS && w->splits * 4 * w->block <= w->count;)
            w->splits *= 2;
        return;
    }
    /* a block of tiles is transformed by one task, unless there are too few of them; sums are the same either way */
    if (ceil_div(w->count, w->block) < workers)
        w->block = kernels->mr;
    const int64_t blocks = ceil_div(w->count, w->block), wanted = ceil_div(4 * workers, blocks);
    w->columns = round_up(ceil_div(w->to, workers > 1 ? wanted : 1), panel);
}

/* The estimated times in cycles of one core, where products fill up their last tile of `nr` columns: of the squares,
 * and of multiplying every pixel by all taps. */
static double form_cost(const conv_desc *d, const winograd_plan *w, int64_t nr)
{
    const int weights = d->direction == CONV_BACKWARD_WEIGHTS;
    const double vl = (double)nr / 2, size = (double)w->planes / 36;
    const int64_t sums = weights ? w->to * round_up(w->from, nr) : w->from * round_up(w->to, nr);
    const double product = (double)(w->planes * sums) / vl;
    /* each block of weights transforms what it reads */
    const int64_t channels = weights ? w->from * ceil_div(w->to, w->rows) + w->to * ceil_div(w->from, w->columns)
                                     : w->from + w->to;
    return (double)w->count * (product * cost_product + size * cost_transform * (double)channels / vl) +
           product * (product * vl * 4 <= NEAR_BYTES ? cost_weight : cost_weight_far);
}

static double direct_cost(const conv_desc *d, const winograd_plan *w, int64_t nr)
{
    const int64_t pixels = d->batch * d->in[0] * computed(d)[1] * computed(d)[2];
    const int64_t sums = d->direction == CONV_BACKWARD_WEIGHTS ? w->to * round_up(9 * w->from, nr)
                                                               : 9 * w->from * round_up(w->to, nr);
    return (double)pixels * (double)sums / ((double)nr / 2);
}

/* Whether its memory is in proportion: `from` and `to` may be any number. */
static int is_small(const winograd_plan *w)
{
    return w->shared_floats * 4 <= SHARED_BYTES && w->worker_floats * 4 <= WORKER_BYTES;
}

int cek__winograd_plan(conv_plan *plan)
{
    const conv_desc *d = &plan->d;
    const cpu_kernels *kernels = plan->config->kernels;
    winograd_plan best = { .form = NULL };
    double least = 0;

    if (d->strict || !has_taps(d))
        return 0;
    for (int i = 0; i < CPU_WINOGRADS; i++) {
        winograd_plan *w = &plan->winograd;
        form_set(d, &kernels->winograd[i], w);
        sizes_choose(d, kernels, plan->workers, w);
        if (d->direction == CONV_BACKWARD_WEIGHTS)
            cek__winograd_weights_place(plan);
        else
            cek__winograd_place(plan);
        const double cost = form_cost(d, w, kernels->nr);
        if (is_small(w) && cost < (best.form ? least : gain_wanted * direct_cost(d, w, kernels->nr))) {
            least = cost;
            best = *w;
        }
    }
    plan->winograd = best;
    plan->workspace_bytes = (best.shared_floats + (size_t)plan->workers * best.worker_floats) * 4;
    return best.form != NULL;
}

/* ---- squares of images ---- */

void cek__winograd_tile(const winograd_plan *w, int64_t tile, int64_t *image, int64_t at[2])
{
    at[1] = tile % w->tiles[1] * w->form->outputs;
    at[0] = tile / w->tiles[1] % w->tiles[0] * w->form->outputs;
    *image = tile / (w->tiles[0] * w->tiles[1]);
}

void cek__winograd_square(const cpu_kernels *kernels, const winograd_image *from, cpu_transform *transform,
                          int64_t side, int64_t image, const int64_t at[2], int64_t channel, int64_t channels,
                          float *square, float *to, int64_t line_to, int64_t pixel_to)
{
    const int64_t h = from->size[0], w = from->size[1], ld = round_up(channels, 16);
    const int64_t first = ((image * h + at[0]) * w + at[1]) * from->channels + channel;

    if (from->type == CPU_F32 && at[0] >= 0 && at[1] >= 0 && at[0] + side <= h && at[1] + side <= w) {
        transform(channels, (const float *)from->at + first, w * from->channels, from->channels, to, line_to, pixel_to);
        return;
    }
    for (int64_t i = 0; i < side; i++)
        for (int64_t j = 0; j < side; j++) {
            const int64_t y = at[0] + i, x = at[1] + j;
            float *pixel = square + (i * side + j) * ld;
            if (y < 0 || x < 0 || y >= h || x >= w)
                memset(pixel, 0, (size_t)channels * 4);
            else
                kernels->load(from->type, channels, conv_at(from->at, from->type, first + (i * w + j) * from->channels),
                              pixel);
        }
    transform(channels, square, side * ld, ld, to, line_to, pixel_to);
}

/* ---- forward and backward-data ---- */

/* Where things lie, in floats. */
typedef struct layout {
    int64_t row, plane;         /* of transformed images: of a tile, of a point */
    int64_t sum_row, sum_plane; /* the same of their products with the weights */
    int64_t panels, panel;      /* of a point's weights */
    int64_t offsets;            /* of tables */
} layout;

static layout layout_of(const winograd_plan *w, const cpu_kernels *kernels)
{
    layout l = { .row = walk_row_floats(w->from), .sum_row = PANELS * kernels->nr };
    /* the points of a square, too, fall into different sets */
    l.plane = walk_row_floats(w->block * l.row);
    l.sum_plane = walk_row_floats(w->block * l.sum_row);
    l.panels = ceil_div(w->to, kernels->nr);
    l.panel = w->from * kernels->nr;
    l.offsets = round_up(w->from, 16);
    return l;
}

typedef struct run {
    const conv_plan *plan;
    const winograd_plan *w;
    const cpu_kernels *kernels;
    const void *weights;
    layout l;
    winograd_image image; /* x or dy */
    int64_t pad[2];       /* of the image, before it */
    int32_t *a_offset, *b_offset;
    float *u;       /* [point][panel][from][nr] */
    float *scratch; /* [worker] */
    epilogue e;
} run;

void cek__winograd_place(conv_plan *plan)
{
    winograd_plan *w = &plan->winograd;
    const cpu_kernels *kernels = plan->config->kernels;
    const layout l = layout_of(w, kernels);
    const int64_t widest = round_up(w->from > l.sum_row ? w->from : l.sum_row, 16);
    const int64_t tiles = w->planes * (l.plane + l.sum_plane + widest) + 2 * l.sum_row;
    const int64_t weights = 9 * round_up(w->from > w->to ? w->from : w->to, 16) +
                            kernels->nr * w->planes * WEIGHTS_DEPTH;

    w->shared_floats = (size_t)(2 * l.offsets + w->planes * l.panels * l.panel);
    w->worker_floats = (size_t)(tiles > weights ? tiles : weights);
}

/* The nine taps of one output channel as floats, from `line` if they are not. */
static const float *taps_of(const run *r, int64_t out, float *line)
{
    const conv_desc *d = &r->plan->d;
    const void *at = conv_at(r->weights, d->w, out * 9 * d->in_channels);

    if (d->w == CPU_F32)
        return at;
    r->kernels->load(d->w, 9 * d->in_channels, at, line);
    return line;
}

/* A panel of the weights, forward: rows are input channels, which lie side by side, so each square of points is
 * turned. */
static void panel_forward(const run *r, int64_t panel, float *line)
{
    const winograd_plan *w = r->w;
    const int64_t nr = r->kernels->nr, columns = conv_least(nr, w->to - panel * nr);
    float *points = line + 9 * round_up(w->from, 16);

    for (int64_t k = 0; k < w->from; k += WEIGHTS_DEPTH) {
        const int64_t depth = conv_least(w->from - k, WEIGHTS_DEPTH);
        for (int64_t j = 0; j < columns; j++)
            w->form->weights(depth, taps_of(r, panel * nr + j, line) + k, 3 * w->from, w->from,
                             points + j * w->planes * WEIGHTS_DEPTH, w->points * WEIGHTS_DEPTH, WEIGHTS_DEPTH);
        for (int64_t p = 0; p < w->planes; p++)
            r->kernels->transpose(columns, depth, points + p * WEIGHTS_DEPTH, w->planes * WEIGHTS_DEPTH,
                                  r->u + (p * r->l.panels + panel) * r->l.panel + k * nr, nr);
    }
}

/* Backward-data: rows are output channels; the taps are turned around. */
static void panel_data(const run *r, int64_t panel, float *line)
{
    const winograd_plan *w = r->w;
    const int64_t nr = r->kernels->nr, columns = conv_least(nr, w->to - panel * nr), plane = r->l.panels * r->l.panel;

    for (int64_t k = 0; k < w->from; k++)
        w->form->weights(columns, taps_of(r, k, line) + 8 * w->to + panel * nr, -3 * w->to, -w->to,
                         r->u + panel * r->l.panel + k * nr, w->points * plane, plane);
}

static void panel_task(void *arg, int64_t panel, int worker)
{
    const run *r = arg;
    float *scratch = r->scratch + (size_t)worker * r->w->worker_floats;

    if (r->plan->d.direction == CONV_FORWARD)
        panel_forward(r, panel, scratch);
    else
        panel_data(r, panel, scratch);
}

/* The products of a block: `panels` of columns from the first one. */
static void products(const run *r, int64_t tiles, int64_t first, int64_t panels, const float *v, float *m)
{
    const cpu_kernels *kernels = r->kernels;
    const layout *l = &r->l;
    const int64_t nr = kernels->nr, height = walk_panel_rows(tiles, kernels->mr);

    for (int64_t p = 0; p < r->w->planes; p++, v += l->plane, m += l->sum_plane)
        for (int64_t j = 0; j < panels; j++) {
            const float *b = r->u + (p * l->panels + first + j) * l->panel;
            for (int64_t i = 0, line = 0; i < tiles;
                 i += height, line++) /* each fetches a line of the next panel's rows */
                kernels->gemm[conv_least(height, tiles - i)](r->w->from, v + i * l->row, l->row, r->a_offset, b,
                                                             r->b_offset, m + i * l->sum_row + j * nr, l->sum_row,
                                                             CPU_STORE, b + l->panel + line * 16 % nr, nr);
        }
}

/* A tile's outputs: those that are in the image, from its column `col` on. */
static void output_store(const run *r, int64_t tile, int64_t col, int64_t cols, const float *m, float *square,
                         float *line)
{
    const winograd_plan *w = r->w;
    const int64_t *size = computed(&r->plan->d) + 1, outputs = w->form->outputs, ld = r->l.sum_row;
    int64_t image, at[2];

    cek__winograd_tile(w, tile, &image, at);
    w->form->output(cols, m, w->points * r->l.sum_plane, r->l.sum_plane, square, outputs * ld, ld);
    for (int64_t i = 0; i < conv_least(outputs, size[0] - at[0]); i++)
        cek__epilogue(r->kernels, &r->e, (image * size[0] + at[0] + i) * size[1] + at[1],
                      conv_least(outputs, size[1] - at[1]), col, cols, square + i * outputs * ld, ld, line);
}

static void block_task(void *arg, int64_t task, int worker)
{
    const run *r = arg;
    const winograd_plan *w = r->w;
    const layout *l = &r->l;
    const int64_t nr = r->kernels->nr, groups = ceil_div(w->to, w->columns);
    const int64_t first = task / groups * w->block, tiles = conv_least(w->block, w->count - first);
    const int64_t begin = task % groups * w->columns, end = conv_least(begin + w->columns, w->to);
    float *v = r->scratch + (size_t)worker * w->worker_floats, *m = v + w->planes * l->plane;
    float *line = m + w->planes * l->sum_plane, *square = line + 2 * l->sum_row;

    for (int64_t t = 0; t < tiles; t++) {
        int64_t image, at[2];
        cek__winograd_tile(w, first + t, &image, at);
        cek__winograd_square(r->kernels, &r->image, w->form->input, w->points, image,
                             (int64_t[2]){ at[0] - r->pad[0], at[1] - r->pad[1] }, 0, w->from, square, v + t * l->row,
                             w->points * l->plane, l->plane);
    }
    for (int64_t col = begin; col < end; col += l->sum_row) {
        const int64_t cols = conv_least(l->sum_row, end - col);
        products(r, tiles, col / nr, ceil_div(cols, nr), v, m);
        for (int64_t t = 0; t < tiles; t++)
            output_store(r, first + t, col, cols, m + t * l->sum_row, square, line);
    }
}

/* The operands of a direction. */
static void run_open(const conv_call *call, run *r)
{
    const conv_desc *d = &call->plan->d;
    const conv_args *args = call->args;
    const int back = d->direction == CONV_BACKWARD_DATA;
    const int64_t *size = back ? d->out : d->in;

    r->weights = args->w;
    r->image = (winograd_image){ back ? args->y : args->x, back ? d->y : d->x, { size[1], size[2] }, r->w->from };
    for (int i = 0; i < 2; i++)
        r->pad[i] = back ? 2 - d->pad[i + 1] : d->pad[i + 1];
    r->e = (epilogue){ .c = args->out,
                       .to = { back ? d->x : d->y, r->w->to, 1, 0 },
                       .accumulate = d->accumulate,
                       .act = back ? CPU_ACT_NONE : d->act,
                       .bias = back ? NULL : args->bias,
                       .deriv = back ? d->deriv : CPU_ACT_NONE,
                       .ref = args->ref,
                       .ref_at = { d->ref, r->w->to, 1, 0 } };
}

void cek__winograd_run(const conv_call *call, cpu_threads *threads, void *workspace)
{
    const winograd_plan *w = &call->plan->winograd;
    const cpu_kernels *kernels = call->plan->config->kernels;
    run r = { .plan = call->plan, .w = w, .kernels = kernels, .l = layout_of(w, kernels) };

    run_open(call, &r);
    r.a_offset = workspace;
    r.b_offset = r.a_offset + r.l.offsets;
    r.u = (float *)workspace + 2 * r.l.offsets;
    r.scratch = (float *)workspace + w->shared_floats;
    cek__walk_offsets(r.a_offset, w->from, 1);
    cek__walk_offsets(r.b_offset, w->from, kernels->nr);
    cek__threads_run(threads, r.l.panels, panel_task, &r);
    cek__threads_run(threads, ceil_div(w->count, w->block) * ceil_div(w->to, w->columns), block_task, &r);
}
