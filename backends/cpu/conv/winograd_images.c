/* winograd_images.c - forward and backward-data by Winograd's squares: for each point a product of the transformed
 * images with the transformed weights, then the squares back into pixels.
 *
 * Owns: the transformed weights, blocks of tiles as tasks. Must not know: the transforms themselves, how a tile of a
 * product is computed.
 *
 * backward-data is the same convolution of dy with the taps turned around and the channels exchanged. */
#include "backends/cpu/conv/method.h"

enum { WEIGHTS_DEPTH = 64 }; /* channels of transformed weights that are turned at once */

/* Where things lie, in floats. */
typedef struct layout {
    int64_t row, plane;         /* of transformed images: of a tile, of a point */
    int64_t sum_row, sum_plane; /* the same of their products with the weights */
    int64_t panels, panel;      /* of a point's weights */
    int64_t offsets;            /* of tables */
} layout;

static layout layout_of(const winograd_plan *w, const cpu_kernels *kernels)
{
    layout l = { .row = walk_row_floats(w->from), .sum_row = WINOGRAD_PANELS * kernels->nr };
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

void cek__winograd_images_place(conv_plan *plan)
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
    const int64_t nr = r->kernels->nr, columns = least(nr, w->to - panel * nr);
    float *points = line + 9 * round_up(w->from, 16);

    for (int64_t k = 0; k < w->from; k += WEIGHTS_DEPTH) {
        const int64_t depth = least(w->from - k, WEIGHTS_DEPTH);
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
    const int64_t nr = r->kernels->nr, columns = least(nr, w->to - panel * nr), plane = r->l.panels * r->l.panel;

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
                kernels->gemm[least(height, tiles - i)](r->w->from, v + i * l->row, l->row, r->a_offset, b, r->b_offset,
                                                        m + i * l->sum_row + j * nr, l->sum_row, CPU_STORE,
                                                        b + l->panel + line * 16 % nr, nr);
        }
}

/* A tile's outputs: those that are in the image, from its column `col` on. */
static void output_store(const run *r, int64_t tile, int64_t col, int64_t cols, const float *m, float *square,
                         float *line)
{
    const winograd_plan *w = r->w;
    const int64_t *size = w->size, outputs = w->form->outputs, ld = r->l.sum_row;
    int64_t image, at[2];

    cek__winograd_tile(w, tile, &image, at);
    w->form->output(cols, m, w->points * r->l.sum_plane, r->l.sum_plane, square, outputs * ld, ld);
    for (int64_t i = 0; i < least(outputs, size[0] - at[0]); i++)
        cek__epilogue(r->kernels, &r->e, (image * size[0] + at[0] + i) * size[1] + at[1],
                      least(outputs, size[1] - at[1]), col, cols, square + i * outputs * ld, ld, line);
}

static void block_task(void *arg, int64_t task, int worker)
{
    const run *r = arg;
    const winograd_plan *w = r->w;
    const layout *l = &r->l;
    const int64_t nr = r->kernels->nr, groups = ceil_div(w->to, w->columns);
    const int64_t first = task / groups * w->block, tiles = least(w->block, w->count - first);
    const int64_t begin = task % groups * w->columns, end = least(begin + w->columns, w->to);
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
        const int64_t cols = least(l->sum_row, end - col);
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

void cek__winograd_images_run(const conv_call *call, cpu_threads *threads, void *workspace)
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
