/* winograd_images.c - forward and backward-data by Winograd's squares: for each point a product of the transformed
 * images with the transformed weights, then the squares back into pixels.
 *
 * Owns: what is transformed by whom and when, blocks of tiles. Must not know: the transforms themselves, how a tile of
 * a product is computed.
 *
 * backward-data is the same convolution of dy with the taps turned around and the channels exchanged.
 *
 * Of the two operands the smaller one is transformed as a whole, and what a task needs of the other one when it comes
 * to it, in its core's caches: all weights first, then block by block of tiles; or, where tiles are few (`depth`),
 * all tiles first, then panel by panel of weights. */
#include "backends/cpu/conv/method.h"
#include "backends/cpu/conv/winograd_tiles.h"

enum {
    PANELS = 2,            /* of columns, whose sums stay in L2 */
    STAYS_BYTES = 4 << 20, /* of images, or weights: so many are near anyway */
};

/* Where things lie, in floats. */
typedef struct layout {
    int64_t row, plane;         /* of transformed images: of a tile, of a point */
    int64_t sum_row, sum_plane; /* the same of their products with the weights */
    int64_t panel, panel_plane; /* of weights that are kept at once: a panel, a point's */
    int64_t offsets;            /* of tables */
} layout;

static layout layout_of(const winograd_plan *w, const cpu_kernels *kernels)
{
    const int64_t nr = kernels->nr, tiles = w->depth ? w->count : w->block;
    layout l = { .row = walk_row_floats(w->from), .offsets = round_up(w->from, 16) };

    l.sum_row = (w->depth ? 1 : PANELS) * nr;
    l.panel = (w->depth ? w->depth : w->from) * nr;
    /* the points of a square, too, fall into different sets */
    l.plane = walk_row_floats(tiles * l.row);
    l.sum_plane = walk_row_floats(tiles * l.sum_row);
    l.panel_plane = walk_row_floats((w->depth ? 1 : ceil_div(w->to, nr)) * l.panel);
    return l;
}

typedef struct run {
    const conv_call *call;
    const winograd_plan *w;
    const cpu_kernels *kernels;
    layout l;
    winograd_image image;   /* x or dy */
    winograd_image to, ref; /* what is written, and what is read there; ref may be NULL */
    int64_t pad[2];         /* of the image, before it */
    int32_t *a_offset, *b_offset;
    float *shared;  /* by blocks: weights [point][panel][from][nr]; by columns: squares [point][tile][from] */
    float *scratch; /* [worker] */
    epilogue e;
} run;

void cek__winograd_images_place(conv_plan *plan)
{
    winograd_plan *w = &plan->winograd;
    const cpu_kernels *kernels = plan->config->kernels;
    const layout l = layout_of(w, kernels);
    /* a square of either kind, or what weights are turned in */
    const int64_t square = w->planes * round_up(most(w->from, l.sum_row), 16);
    const int64_t room = w->planes * l.sum_plane + most(square, cek__winograd_filters_room(kernels));
    const int64_t squares = w->planes * l.plane, weights = w->planes * l.panel_plane;

    w->shared_floats = (size_t)(2 * l.offsets + (w->depth ? squares : weights));
    w->worker_floats = (size_t)((w->depth ? weights : squares) + room);
}

/* Tiles [first, first + tiles), transformed. */
static void squares(const run *r, int64_t first, int64_t tiles, float *square, float *v)
{
    const winograd_plan *w = r->w;

    for (int64_t t = 0; t < tiles; t++) {
        int64_t image, at[2];
        cek__winograd_ahead(w, &r->image, first + t + WINOGRAD_AHEAD, 0, w->from);
        cek__winograd_tile(w, first + t, &image, at);
        cek__winograd_square(r->kernels, &r->image, w->form->input, w->points, image,
                             (int64_t[2]){ at[0] - r->pad[0], at[1] - r->pad[1] }, 0, w->from, square, v + t * r->l.row,
                             w->points * r->l.plane, r->l.plane);
    }
}

/* Steps in which a panel's tiles bring the next one, or where weights stay near, some of it. */
static int64_t stretch_of(const run *r, int64_t tiles, int64_t depth)
{
    const cpu_kernels *kernels = r->kernels;
    const int64_t wanted = ceil_div(tiles, kernels->mr) * CPU_FLOATS_AHEAD / kernels->nr;

    return winograd_stretch(kernels, depth, r->w->planes * r->l.panel_plane * 4 > STAYS_BYTES ? wanted : depth);
}

/* The products of tiles with `columns` of weights, `depth` channels from `v` and `u` on. */
static void products(const run *r, int64_t tiles, int64_t columns, int64_t depth, const float *v, const float *u,
                     float *m, cpu_store store, winograd_coming *coming)
{
    const cpu_kernels *kernels = r->kernels;
    const layout *l = &r->l;
    const int64_t nr = kernels->nr, height = walk_panel_rows(tiles, kernels->mr);

    for (int64_t p = 0; p < r->w->planes; p++, v += l->plane, u += l->panel_plane, m += l->sum_plane)
        for (int64_t j = 0; j < columns; j += nr) {
            const float *b = u + j / nr * l->panel, *next = j + nr < columns ? b + l->panel : u + l->panel_plane;
            cpu_ahead ahead = cpu_ahead_from(next, stretch_of(r, tiles, depth));
            for (int64_t i = 0, rows, alike; i < tiles; i += rows * alike) {
                rows = walk_panel_next(tiles - i, height), alike = walk_panels_alike(tiles - i, height);
                kernels->gemm[rows](&(cpu_tiles){ .count = alike, .a = rows * l->row, .c = rows * l->sum_row }, depth,
                                    v + i * l->row, l->row, r->a_offset, &b, r->b_offset, m + i * l->sum_row + j,
                                    l->sum_row, store, cek__winograd_comes(r->w, coming, &ahead), CPU_WHOLE_ROWS,
                                    (int)rows);
            }
        }
}

/* A tile's outputs: those that are in the image, from its column `col` on. */
static void output_store(const run *r, int64_t tile, int64_t col, int64_t cols, const float *m, float *square)
{
    const winograd_plan *w = r->w;
    const int64_t *size = w->size, outputs = w->form->outputs, ld = r->l.sum_row;
    int64_t image, at[2];

    cek__winograd_tile(w, tile, &image, at);
    w->form->output(cols, m, w->points * r->l.sum_plane, r->l.sum_plane, square, outputs * ld, ld);
    for (int64_t i = 0; i < least(outputs, size[0] - at[0]); i++)
        cek__epilogue(r->kernels, &r->e, (image * size[0] + at[0] + i) * size[1] + at[1],
                      least(outputs, size[1] - at[1]), col, cols, square + i * outputs * ld, ld);
}

/* Columns [col, col + cols) of tiles whose sums are complete, and behind them room for a square. */
static void columns_store(const run *r, int64_t first, int64_t tiles, int64_t col, int64_t cols, float *m)
{
    const winograd_plan *w = r->w;
    float *square = m + w->planes * r->l.sum_plane;

    for (int64_t t = 0; t < tiles; t++) {
        if (r->e.ref)
            cek__winograd_ahead(w, &r->ref, first + t + WINOGRAD_AHEAD, col, cols);
        cek__winograd_ahead(w, &r->to, first + t + WINOGRAD_AHEAD, col, cols);
        output_store(r, first + t, col, cols, m + t * r->l.sum_row, square);
    }
}

/* ---- by blocks ---- */

static void filters_task(void *arg, int64_t panel, int worker)
{
    const run *r = arg;

    cek__winograd_filters(r->call, panel, 0, r->w->from, r->scratch + (size_t)worker * r->w->worker_floats,
                          r->shared + panel * r->l.panel, r->l.panel_plane);
}

/* What a block's products bring along: what it writes, and reads there, and what this worker reads next if all take
 * equally long. */
static winograd_coming coming_of(const run *r, int64_t first, int64_t col, int64_t cols)
{
    const winograd_plan *w = r->w;
    const int64_t blocks = ceil_div(r->call->plan->workers, ceil_div(w->to, w->columns)); /* at once */
    const int64_t end = least(first + w->block, w->count), next = first + blocks * w->block;
    const int64_t pixel = w->from * cpu_type_bytes(r->image.type) + w->to * cpu_type_bytes(r->to.type);

    return (winograd_coming){
        .count = w->count * w->form->outputs * w->form->outputs * pixel > STAYS_BYTES ? 3 : 0,
        .of = { { .image = r->image, .first = next, .end = least(next + w->block, w->count), .channels = w->from },
                { .image = r->ref, .first = first, .end = end, .channel = col, .channels = cols },
                { .image = r->to, .first = first, .end = end, .channel = col, .channels = cols } },
        .stretch = stretch_of(r, w->block, w->from),
    };
}

static void block_task(void *arg, int64_t task, int worker)
{
    const run *r = arg;
    const winograd_plan *w = r->w;
    const layout *l = &r->l;
    const int64_t groups = ceil_div(w->to, w->columns);
    const int64_t first = task / groups * w->block, tiles = least(w->block, w->count - first);
    const int64_t begin = task % groups * w->columns, end = least(begin + w->columns, w->to);
    float *v = r->scratch + (size_t)worker * w->worker_floats, *m = v + w->planes * l->plane;
    winograd_coming coming = coming_of(r, first, begin, end - begin);

    squares(r, first, tiles, m, v);
    for (int64_t col = begin; col < end; col += l->sum_row) {
        const int64_t cols = least(l->sum_row, end - col);
        products(r, tiles, cols, w->from, v, r->shared + col / r->kernels->nr * l->panel, m, CPU_STORE, &coming);
        columns_store(r, first, tiles, col, cols, m);
    }
}

/* ---- by columns ---- */

static void squares_task(void *arg, int64_t task, int worker)
{
    const run *r = arg;
    const int64_t first = task * r->w->block;

    squares(r, first, least(r->w->block, r->w->count - first), r->scratch + (size_t)worker * r->w->worker_floats,
            r->shared + first * r->l.row);
}

static void panel_task(void *arg, int64_t panel, int worker)
{
    const run *r = arg;
    const winograd_plan *w = r->w;
    const int64_t nr = r->kernels->nr, col = panel * nr, cols = least(nr, w->to - col);
    float *u = r->scratch + (size_t)worker * w->worker_floats, *m = u + w->planes * r->l.panel_plane;
    winograd_coming none = { 0 };

    for (int64_t k = 0; k < w->from; k += w->depth) {
        const int64_t depth = least(w->depth, w->from - k);
        cek__winograd_filters(r->call, panel, k, depth, m + w->planes * r->l.sum_plane, u, r->l.panel_plane);
        products(r, w->count, cols, depth, r->shared + k, u, m, k == 0 ? CPU_STORE : CPU_ADD, &none);
    }
    columns_store(r, 0, w->count, col, cols, m);
}

/* The operands of a direction. */
static void run_open(const conv_call *call, run *r)
{
    const conv_desc *d = &call->plan->d;
    const conv_args *args = call->args;
    const int back = d->direction == CONV_BACKWARD_DATA;
    const int64_t *size = back ? d->out : d->in;

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
    r->to = (winograd_image){ args->out, r->e.to.type, { r->w->size[0], r->w->size[1] }, r->w->to };
    r->ref = (winograd_image){ args->ref, d->ref, { r->w->size[0], r->w->size[1] }, r->w->to };
}

void cek__winograd_images_run(const conv_call *call, cpu_threads *threads, void *workspace)
{
    const winograd_plan *w = &call->plan->winograd;
    const cpu_kernels *kernels = call->plan->config->kernels;
    const int64_t blocks = ceil_div(w->count, w->block), panels = ceil_div(w->to, kernels->nr);
    run r = { .call = call, .w = w, .kernels = kernels, .l = layout_of(w, kernels) };

    run_open(call, &r);
    r.a_offset = workspace;
    r.b_offset = r.a_offset + r.l.offsets;
    r.shared = (float *)workspace + 2 * r.l.offsets;
    r.scratch = (float *)workspace + w->shared_floats;
    cek__offsets_make(r.a_offset, w->from, 1);
    cek__offsets_make(r.b_offset, w->from, kernels->nr);
    if (w->depth) {
        cek__threads_run(threads, blocks, squares_task, &r);
        cek__threads_run(threads, panels, panel_task, &r);
    } else {
        cek__threads_run(threads, panels, filters_task, &r);
        cek__threads_run(threads, blocks * ceil_div(w->to, w->columns), block_task, &r);
    }
}
