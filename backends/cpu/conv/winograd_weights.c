/* winograd_weights.c - the gradient of a convolution's weights by Winograd's squares: for each point a product of dy's
 * transposed with x's, over all tiles, then the squares back into taps.
 *
 * Owns: blocks of channels as tasks, parts of the tiles that are summed apart and added in order, the gradient of the
 * bias. Must not know: the transforms themselves. */
#include <string.h>

#include "backends/cpu/conv/method.h"

/* Where things lie, in floats. */
typedef struct layout {
    int64_t x_row, x_plane;     /* of transformed x: of a tile, of a point */
    int64_t dy_row, dy_plane;   /* of transformed dy */
    int64_t sum_row, sum_plane; /* of a block's sums: of a channel of dy, of a point */
    int64_t row_blocks, column_blocks;
    int64_t part;   /* a block's sums, and those of the bias */
    int64_t widest; /* pixels of squares */
} layout;

typedef struct run {
    const conv_plan *plan;
    const winograd_plan *w;
    const cpu_kernels *kernels;
    layout l;
    winograd_image x, dy;
    int32_t *a_offset, *b_offset; /* [block] */
    int32_t pixel_offset[4];      /* of a line of a tile of dy */
    float *parts;                 /* [split][row block][column block] */
    float *scratch;               /* [worker] */
    const conv_args *args;
} run;

static layout layout_of(const winograd_plan *w)
{
    layout l = { .x_row = walk_row_floats(w->columns), .dy_row = walk_row_floats(w->rows), .sum_row = w->columns };
    l.x_plane = walk_row_floats(w->block * l.x_row);
    l.dy_plane = walk_row_floats(w->block * l.dy_row);
    l.sum_plane = walk_row_floats(w->rows * l.sum_row);
    l.row_blocks = ceil_div(w->to, w->rows);
    l.column_blocks = ceil_div(w->from, w->columns);
    l.part = w->planes * l.sum_plane + l.dy_row;
    l.widest = l.x_row > l.dy_row ? l.x_row : l.dy_row;
    return l;
}

void cek__winograd_weights_place(conv_plan *plan)
{
    winograd_plan *w = &plan->winograd;
    const layout l = layout_of(w);

    w->shared_floats = (size_t)(2 * ceil_div(w->block, 16) * 16 + w->splits * l.row_blocks * l.column_blocks * l.part);
    w->worker_floats =
        (size_t)(w->planes * (l.x_plane + l.dy_plane + l.widest) + 9 * l.sum_row + 2 * round_up(l.sum_row, 16));
}

static float *part_at(const run *r, int64_t split, int64_t row_block, int64_t column_block)
{
    return r->parts + ((split * r->l.row_blocks + row_block) * r->l.column_blocks + column_block) * r->l.part;
}

/* One block's products, added to its sums. */
static void products(const run *r, int64_t tiles, int64_t rows, int64_t columns, const float *v, const float *z,
                     float *sums, cpu_store store)
{
    const cpu_kernels *kernels = r->kernels;
    const layout *l = &r->l;
    const int64_t height = walk_panel_rows(rows, kernels->mr);
    const cpu_runs runs = kernels->any_step ? CPU_RUNS_OF_COLUMNS : CPU_NO_RUNS;
    cpu_ahead none = cpu_ahead_none(v, cpu_stretch(tiles, kernels->mr));

    for (int64_t p = 0; p < r->w->planes; p++, v += l->x_plane, z += l->dy_plane, sums += l->sum_plane)
        for (int64_t j = 0; j < columns; j += kernels->nr)
            for (int64_t i = 0, high, alike; i < rows; i += high * alike) {
                const float *b = v + j;
                high = walk_panel_next(rows - i, height), alike = walk_panels_alike(rows - i, height);
                kernels->gemm[high](&(cpu_tiles){ .count = alike, .a = high, .c = high * l->sum_row }, tiles, z + i, 1,
                                    r->a_offset, &b, r->b_offset, sums + i * l->sum_row + j, l->sum_row, store, &none,
                                    runs, (int)high);
            }
}

/* The pixels of a tile of dy, one after the other. */
static void bias_add(const run *r, int64_t image, const int64_t at[2], int64_t row, int64_t rows, float *pixel,
                     float *bias)
{
    const winograd_image *dy = &r->dy;
    const int64_t high = least(r->w->form->outputs, dy->size[0] - at[0]);
    const int64_t wide = least(r->w->form->outputs, dy->size[1] - at[1]);
    const int64_t first = ((image * dy->size[0] + at[0]) * dy->size[1] + at[1]) * dy->channels + row;

    for (int64_t i = 0; i < high; i++) {
        const char *line = conv_at(dy->at, dy->type, first + i * dy->size[1] * dy->channels);
        if (dy->type == CPU_F32)
            r->kernels->sums(wide, rows, (const float *)(const void *)line, r->pixel_offset, bias);
        for (int64_t j = 0; dy->type != CPU_F32 && j < wide; j++) {
            r->kernels->load(dy->type, rows, line + j * dy->channels * cpu_type_bytes(dy->type), pixel);
            r->kernels->add(rows, bias, pixel, bias);
        }
    }
}

/* A block of channels over one part of the tiles. */
static void part_task(void *arg, int64_t task, int worker)
{
    const run *r = arg;
    const winograd_plan *w = r->w;
    const layout *l = &r->l;
    const conv_desc *d = &r->plan->d;
    const int64_t column_block = task % l->column_blocks, row_block = task / l->column_blocks % l->row_blocks;
    const int64_t split = task / l->column_blocks / l->row_blocks, blocks = ceil_div(w->count, w->block);
    const int64_t row = row_block * w->rows, rows = least(w->rows, w->to - row);
    const int64_t column = column_block * w->columns, columns = least(w->columns, w->from - column);
    const int64_t end = least(blocks * (split + 1) / w->splits * w->block, w->count);
    const int64_t begin = blocks * split / w->splits * w->block;
    float *v = r->scratch + (size_t)worker * w->worker_floats, *z = v + w->planes * l->x_plane;
    float *square = z + w->planes * l->dy_plane;
    float *sums = part_at(r, split, row_block, column_block), *bias = sums + w->planes * l->sum_plane;

    memset(bias, 0, (size_t)l->dy_row * 4);
    for (int64_t first = begin; first < end; first += w->block) {
        const int64_t tiles = least(w->block, end - first);
        for (int64_t t = 0; t < tiles; t++) {
            int64_t image, at[2];
            cek__winograd_ahead(w, &r->dy, first + t + WINOGRAD_AHEAD, row, rows);
            cek__winograd_ahead(w, &r->x, first + t + WINOGRAD_AHEAD, column, columns);
            cek__winograd_tile(w, first + t, &image, at);
            cek__winograd_square(r->kernels, &r->dy, w->form->gradient, w->form->outputs, image, at, row, rows, square,
                                 z + t * l->dy_row, w->points * l->dy_plane, l->dy_plane);
            if (column_block == 0)
                bias_add(r, image, at, row, rows, square, bias);
            cek__winograd_square(r->kernels, &r->x, w->form->input, w->points, image,
                                 (int64_t[2]){ at[0] - d->pad[1], at[1] - d->pad[2] }, column, columns, square,
                                 v + t * l->x_row, w->points * l->x_plane, l->x_plane);
        }
        products(r, tiles, rows, columns, v, z, sums, first == begin ? CPU_STORE : CPU_ADD);
    }
}

/* One channel of dy: the parts, in order, and its taps. */
static void taps_task(void *arg, int64_t out, int worker)
{
    const run *r = arg;
    const winograd_plan *w = r->w;
    const layout *l = &r->l;
    const conv_desc *d = &r->plan->d;
    const int64_t row_block = out / w->rows, row = out % w->rows;
    const epilogue e = { .c = conv_at(r->args->out, d->w, out * 9 * w->from),
                         .to = { d->w, w->from, 1, 0 },
                         .accumulate = d->accumulate };
    float *taps = r->scratch + (size_t)worker * w->worker_floats, *line = taps + 9 * l->sum_row;

    for (int64_t block = 0; block < l->column_blocks; block++) {
        const int64_t column = block * w->columns, columns = least(w->columns, w->from - column);
        float *sums = part_at(r, 0, row_block, block) + row * l->sum_row;
        for (int64_t split = 1; split < w->splits; split++) {
            const float *more = part_at(r, split, row_block, block) + row * l->sum_row;
            for (int64_t p = 0; p < w->planes; p++)
                r->kernels->add(columns, sums + p * l->sum_plane, more + p * l->sum_plane, sums + p * l->sum_plane);
        }
        w->form->weights_gradient(columns, sums, w->points * l->sum_plane, l->sum_plane, taps, 3 * l->sum_row,
                                  l->sum_row);
        cek__epilogue(r->kernels, &e, 0, 9, column, columns, taps, l->sum_row, line);
    }
    if (r->args->dbias) {
        float sum = 0;
        for (int64_t split = 0; split < w->splits; split++)
            sum += part_at(r, split, row_block, 0)[w->planes * l->sum_plane + row];
        r->args->dbias[out] = sum + (d->bias_accumulate ? r->args->dbias[out] : 0);
    }
}

void cek__winograd_weights_run(const conv_call *call, cpu_threads *threads, void *workspace)
{
    const conv_desc *d = &call->plan->d;
    const winograd_plan *w = &call->plan->winograd;
    const int64_t table = ceil_div(w->block, 16) * 16;
    run r = {
        .plan = call->plan, .w = w, .kernels = call->plan->config->kernels, .l = layout_of(w), .args = call->args
    };

    r.x = (winograd_image){ call->args->x, d->x, { d->in[1], d->in[2] }, w->from };
    r.dy = (winograd_image){ call->args->y, d->y, { d->out[1], d->out[2] }, w->to };
    r.a_offset = workspace;
    r.b_offset = r.a_offset + table;
    r.parts = (float *)workspace + 2 * table;
    r.scratch = (float *)workspace + w->shared_floats;
    cek__offsets_make(r.a_offset, w->block, r.l.dy_row);
    cek__offsets_make(r.b_offset, w->block, r.l.x_row);
    cek__offsets_make(r.pixel_offset, w->form->outputs, w->to);
    cek__threads_run(threads, w->splits * r.l.row_blocks * r.l.column_blocks, part_task, &r);
    cek__threads_run(threads, w->to, taps_task, &r);
}
