/* winograd_weights.c - the gradient of a convolution's weights by Winograd's squares: for each point a product of dy's
 * transposed with x's, over all tiles, then the squares back into taps.
 *
 * Owns: blocks of channels as tasks, parts of the tiles whose taps are summed apart and added in order, the gradient of
 * the bias. Must not know: the transforms themselves. */
#include <string.h>

#include "backends/cpu/conv/method.h"
#include "backends/cpu/conv/winograd_tiles.h"

/* Where things lie, in floats. */
typedef struct layout {
    int64_t x_row, x_plane;     /* of transformed x: of a tile, of a point */
    int64_t dy_row, dy_plane;   /* of transformed dy */
    int64_t sum_row, sum_plane; /* of a block's sums: of a channel of dy, of a point */
    int64_t taps;               /* of a part: of a channel of dy */
    int64_t row_blocks, column_blocks;
    int64_t part, bias; /* its taps, and where behind them the gradient of the bias is */
    int64_t widest;     /* pixels of squares */
} layout;

typedef struct run {
    const conv_plan *plan;
    const winograd_plan *w;
    const cpu_kernels *kernels;
    layout l;
    winograd_image x, dy;
    int32_t *a_offset, *b_offset; /* [block] */
    int32_t pixel_offset[4];      /* of a line of a tile of dy */
    float *parts;                 /* [split] */
    float *taps;                  /* of the first part: there, or the result itself */
    float *scratch;               /* [worker]: transformed x and dy, sums, a square */
    const conv_args *args;
} run;

/* A single part's taps are the result. */
static bool is_result(const conv_plan *plan)
{
    return plan->winograd.splits == 1 && plan->d.w == CPU_F32 && !plan->d.accumulate;
}

static layout layout_of(const conv_plan *plan)
{
    const winograd_plan *w = &plan->winograd;
    layout l = { .x_row = walk_row_floats(w->columns), .dy_row = walk_row_floats(w->rows), .sum_row = w->columns };
    l.x_plane = walk_row_floats(w->block * l.x_row);
    l.dy_plane = walk_row_floats(w->block * l.dy_row);
    l.sum_plane = walk_row_floats(w->rows * l.sum_row);
    l.row_blocks = ceil_div(w->to, w->rows);
    l.column_blocks = ceil_div(w->from, w->columns);
    l.taps = 9 * w->from;
    l.bias = is_result(plan) ? 0 : w->to * l.taps;
    l.part = round_up(l.bias + w->to, 16);
    l.widest = l.x_row > l.dy_row ? l.x_row : l.dy_row;
    return l;
}

void cek__winograd_weights_place(conv_plan *plan)
{
    winograd_plan *w = &plan->winograd;
    const layout l = layout_of(plan);

    w->shared_floats = (size_t)(2 * round_up(w->block, 16) + w->splits * l.part);
    w->worker_floats = (size_t)(w->planes * (l.x_plane + l.dy_plane + l.sum_plane + l.widest));
}

/* A block: tiles, channels of dy, channels of x. */
typedef struct block {
    int64_t first, tiles;
    int64_t row, rows;
    int64_t column, columns;
} block;

/* What the next block reads, which ends before tile `end`: a fifth of all time where nothing is multiplied meanwhile.
 * Spread over this block's products as evenly as stretches can be. */
static winograd_coming coming_next(const run *r, const block *b, int64_t end)
{
    const winograd_plan *w = r->w;
    const int64_t first = b->first + b->tiles, to = least(first + w->block, end), outputs = w->form->outputs;
    const int64_t pixel = b->rows * cpu_type_bytes(r->dy.type) + b->columns * cpu_type_bytes(r->x.type);
    const int64_t groups = (to - first) * outputs * outputs * pixel / 4 / CPU_FLOATS_AHEAD;
    const int64_t called = w->planes * ceil_div(b->columns, r->kernels->nr) * ceil_div(b->rows, r->kernels->mr);

    return (winograd_coming){
        .count = 2,
        .of = { { .image = r->x, .first = first, .end = to, .channel = b->column, .channels = b->columns },
                { .image = r->dy, .first = first, .end = to, .channel = b->row, .channels = b->rows } },
        .stretch = winograd_stretch(r->kernels, b->tiles, called * b->tiles / most(groups, 1)),
    };
}

/* One block's products, added to its sums. */
static void products(const run *r, const block *of, const float *v, const float *z, float *sums, cpu_store store,
                     winograd_coming coming)
{
    const cpu_kernels *kernels = r->kernels;
    const layout *l = &r->l;
    const int64_t height = walk_panel_rows(of->rows, kernels->mr);
    const cpu_runs runs = kernels->any_step ? CPU_RUNS_OF_COLUMNS : CPU_NO_RUNS;
    cpu_ahead none = cpu_ahead_none(v, cpu_stretch(of->tiles, kernels->mr, false));

    for (int64_t p = 0; p < r->w->planes; p++, v += l->x_plane, z += l->dy_plane, sums += l->sum_plane)
        for (int64_t j = 0; j < of->columns; j += kernels->nr)
            for (int64_t i = 0, high, alike; i < of->rows; i += high * alike) {
                const float *b = v + j;
                high = walk_panel_next(of->rows - i, height), alike = walk_panels_alike(of->rows - i, height);
                kernels->gemm[high](&(cpu_tiles){ .count = alike, .a = high, .c = high * l->sum_row }, of->tiles, z + i,
                                    1, r->a_offset, &b, r->b_offset, sums + i * l->sum_row + j, l->sum_row, store,
                                    cek__winograd_comes(r->w, &coming, &none), runs, (int)high);
            }
}

/* The pixels of a tile of dy, one after the other. */
static void bias_add(const run *r, int64_t image, const int64_t at[2], const block *of, float *pixel, float *bias)
{
    const winograd_image *dy = &r->dy;
    const int64_t high = least(r->w->form->outputs, dy->size[0] - at[0]);
    const int64_t wide = least(r->w->form->outputs, dy->size[1] - at[1]);
    const int64_t first = ((image * dy->size[0] + at[0]) * dy->size[1] + at[1]) * dy->channels + of->row;

    for (int64_t i = 0; i < high; i++) {
        const char *line = conv_at(dy->at, dy->type, first + i * dy->size[1] * dy->channels);
        if (dy->type == CPU_F32)
            r->kernels->sums(wide, of->rows, (const float *)(const void *)line, r->pixel_offset, bias);
        for (int64_t j = 0; dy->type != CPU_F32 && j < wide; j++) {
            r->kernels->load(dy->type, of->rows, line + j * dy->channels * cpu_type_bytes(dy->type), pixel);
            r->kernels->add(of->rows, bias, pixel, bias);
        }
    }
}

/* Transforms a block, and adds to `bias` if it is not NULL. */
static void squares(const run *r, const block *of, bool asks, float *v, float *z, float *square, float *bias)
{
    const winograd_plan *w = r->w;
    const layout *l = &r->l;
    const int64_t *pad = r->plan->d.pad;

    for (int64_t t = 0; t < of->tiles; t++, v += l->x_row, z += l->dy_row) {
        int64_t image, at[2];
        if (asks) {
            cek__winograd_ahead(w, &r->dy, of->first + t + WINOGRAD_AHEAD, of->row, of->rows);
            cek__winograd_ahead(w, &r->x, of->first + t + WINOGRAD_AHEAD, of->column, of->columns);
        }
        cek__winograd_tile(w, of->first + t, &image, at);
        cek__winograd_square(r->kernels, &r->dy, w->form->gradient, w->form->outputs, image, at, of->row, of->rows,
                             square, z, w->points * l->dy_plane, l->dy_plane);
        if (bias)
            bias_add(r, image, at, of, square, bias);
        cek__winograd_square(r->kernels, &r->x, w->form->input, w->points, image,
                             (int64_t[2]){ at[0] - pad[1], at[1] - pad[2] }, of->column, of->columns, square, v,
                             w->points * l->x_plane, l->x_plane);
    }
}

/* Channels of both over one part of the tiles. */
static void part_task(void *arg, int64_t task, int worker)
{
    const run *r = arg;
    const winograd_plan *w = r->w;
    const layout *l = &r->l;
    const int64_t column = task % l->column_blocks * w->columns;
    const int64_t row = task / l->column_blocks % l->row_blocks * w->rows;
    const int64_t split = task / l->column_blocks / l->row_blocks, blocks = ceil_div(w->count, w->block);
    const int64_t begin = blocks * split / w->splits * w->block;
    const int64_t end = least(blocks * (split + 1) / w->splits * w->block, w->count);
    block of = { .row = row,
                 .rows = least(w->rows, w->to - row),
                 .column = column,
                 .columns = least(w->columns, w->from - column) };
    float *v = r->scratch + (size_t)worker * w->worker_floats, *z = v + w->planes * l->x_plane;
    float *sums = z + w->planes * l->dy_plane, *square = sums + w->planes * l->sum_plane;
    float *taps = r->taps + split * l->part + row * l->taps + column;
    float *bias = column == 0 && r->args->dbias ? r->parts + split * l->part + l->bias + row : NULL;

    if (bias)
        memset(bias, 0, (size_t)of.rows * 4);
    for (of.first = begin; of.first < end; of.first += of.tiles) {
        of.tiles = least(w->block, end - of.first);
        squares(r, &of, of.first == begin, v, z, square, bias);
        products(r, &of, v, z, sums, of.first == begin ? CPU_STORE : CPU_ADD, coming_next(r, &of, end));
    }
    for (int64_t i = 0; i < of.rows; i++, sums += l->sum_row, taps += l->taps)
        w->form->weights_gradient(of.columns, sums, w->points * l->sum_plane, l->sum_plane, taps, 3 * w->from, w->from);
}

/* One channel of dy: its parts, in order. */
static void taps_task(void *arg, int64_t out, int worker)
{
    const run *r = arg;
    const winograd_plan *w = r->w;
    const layout *l = &r->l;
    const conv_desc *d = &r->plan->d;
    const epilogue e = { .c = conv_at(r->args->out, d->w, out * 9 * w->from),
                         .to = { d->w, w->from, 1, 0 },
                         .accumulate = d->accumulate };
    float *taps = r->taps + out * l->taps, *bias = r->parts + l->bias + out;

    (void)worker;
    for (int64_t split = 1; split < w->splits; split++) {
        r->kernels->add(l->taps, taps, taps + split * l->part, taps);
        if (r->args->dbias)
            *bias += bias[split * l->part];
    }
    if (!is_result(r->plan))
        cek__epilogue(r->kernels, &e, 0, 9, 0, w->from, taps, w->from);
    if (r->args->dbias)
        r->args->dbias[out] = *bias + (d->bias_accumulate ? r->args->dbias[out] : 0);
}

void cek__winograd_weights_run(const conv_call *call, cpu_threads *threads, void *workspace)
{
    const conv_desc *d = &call->plan->d;
    const winograd_plan *w = &call->plan->winograd;
    const int64_t table = round_up(w->block, 16);
    run r = { .plan = call->plan,
              .w = w,
              .kernels = call->plan->config->kernels,
              .l = layout_of(call->plan),
              .args = call->args };

    r.x = (winograd_image){ call->args->x, d->x, { d->in[1], d->in[2] }, w->from };
    r.dy = (winograd_image){ call->args->y, d->y, { d->out[1], d->out[2] }, w->to };
    r.a_offset = workspace;
    r.b_offset = r.a_offset + table;
    r.parts = (float *)workspace + 2 * table;
    r.taps = is_result(call->plan) ? call->args->out : r.parts;
    r.scratch = (float *)workspace + w->shared_floats;
    cek__offsets_make(r.a_offset, w->block, r.l.dy_row);
    cek__offsets_make(r.b_offset, w->block, r.l.x_row);
    cek__offsets_make(r.pixel_offset, w->form->outputs, w->to);
    cek__threads_run(threads, w->splits * r.l.row_blocks * r.l.column_blocks, part_task, &r);
    if (!is_result(call->plan) || call->args->dbias)
        cek__threads_run(threads, w->to, taps_task, &r);
}
