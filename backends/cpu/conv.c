/* conv.c - the choice of a method for a convolution; one file per direction does the rest.
 *
 * Owns: which method serves which shape. Must not know: how a method works. */
#include "backends/cpu/conv.h"

#include "backends/cpu/conv_method.h"

/* Below this many channels a run of one window's row is shorter than a vector or two, and copying it costs more than what is
 * computed with it. */
enum { FEW_CHANNELS = 8 };

void cek__conv_windows(const conv_desc *d, windows *out)
{
    *out = (windows){ .images = d->batch, .channels = conv_group_in(d), .pixel = d->in_channels };
    for (int i = 0; i < 3; i++)
        out->dim[i] = (window_dim){ .size = d->in[i], .positions = d->out[i], .step = d->stride[i], .first = -d->pad[i],
                                    .taps = d->kernel[i], .tap_step = d->dilation[i] };
}

enum {
    SLAB_BYTES = 160 << 10,      /* a slab shares L2 with B */
    SLAB_ROWS = 448,             /* positions of a slab: beyond, lines that slabs share are a small part already */
};

int cek__conv_slabs_plan(conv_plan *plan)
{
    const windows *w = &plan->w;
    const cpu_kernels *kernels = plan->config->kernels;
    const int64_t width = w->dim[2].positions, columns = windows_columns(w);
    const int64_t panels = (width + kernels->mr - 1) / kernels->mr;
    int64_t rows = width;

    /* B stays in L2 at full depth; and panels, which end where lines end, are at least half high */
    if (columns == 0 || columns * kernels->nr * 4 > plan->config->b_bytes || width * 2 < panels * kernels->mr)
        return 0;
    for (int64_t more = 2 * width; more <= SLAB_ROWS; more += width) {
        cek__slab_plan(w, more, &plan->slab);
        if (plan->slab.floats * 4 > SLAB_BYTES)
            break;
        rows = more;
    }
    cek__slab_plan(w, rows, &plan->slab);
    if (plan->slab.floats > INT32_MAX)
        return 0;
    plan->product.row_unit = rows;
    plan->product.whole = 1;
    plan->product.way_a = PACK_DIRECT;
    plan->product.sizes = (walk_sizes){ .mc = rows, .kc = columns, .a_floats = plan->slab.floats };
    return 1;
}

int64_t cek__conv_give_windows(const product_part *p, const windows *w, int64_t row, int64_t rows, int64_t k, int64_t depth,
                               const walk_scratch *to)
{
    const int64_t ld = walk_row_floats(depth);
    cek__windows_copy(w, p->kernels, p->a.type, p->a.at, row, rows, k, depth, to->a, ld);
    cek__walk_panels(p->kernels, to->a, ld, rows, depth, to);
    cek__walk_offsets(to->a_offset, depth, 1);
    return ld;
}

int64_t cek__conv_give_slab(const product_part *p, const windows *w, const slab *s, int64_t row, int64_t rows, int64_t k,
                            int64_t depth, const walk_scratch *to)
{
    const int64_t width = w->dim[2].positions, mr = p->kernels->mr;
    int64_t panel = 0;

    cek__slab_copy(s, w, p->kernels, p->a.type, p->a.at, row, rows, to->a, to->pixel_offset);
    cek__slab_taps(s, w, k, depth, to->a_offset);
    for (int64_t r = 0; r < rows; ) {    /* a panel does not go beyond its line */
        const int64_t left = width - (row + r) % width, line = left < rows - r ? left : rows - r;
        const int64_t height = walk_panel_rows(line, mr);
        for (int64_t i = 0; i < line; i += height, panel++) {
            to->a_panel[panel] = to->a + to->pixel_offset[r + i];
            to->a_rows[panel] = line - i < height ? line - i : height;
        }
        r += line;
    }
    return w->dim[2].step * s->pixel;
}

static int is_matrix(const conv_desc *d)
{
    for (int i = 0; i < 3; i++)
        if (d->kernel[i] != 1 || d->stride[i] != 1 || d->pad[i] != 0 || d->in[i] != d->out[i])
            return 0;
    return 1;
}

static enum conv_method method_choose(const conv_desc *d, const cpu_config *config)
{
    const int64_t in = conv_group_in(d), out = conv_group_out(d), nr = config->kernels->nr;
    if (in == 1 && out == 1 && d->groups > 1)
        return CONV_DEPTHWISE;
    if (is_matrix(d))
        return CONV_MATRIX;
    if (d->direction != CONV_BACKWARD_WEIGHTS)
        return CONV_WINDOWS;     /* or CONV_SLABS, which the direction decides */
    /* the side that is B is rounded up to whole panels */
    const int64_t columns = conv_taps(d) * in;
    const int64_t windows_b = out * ((columns + nr - 1) / nr), windows_a = columns * ((out + nr - 1) / nr);
    return in < FEW_CHANNELS && windows_a < windows_b ? CONV_TRANSPOSED : CONV_WINDOWS;
}

void cek__conv_plan(const conv_desc *desc, const cpu_config *config, int workers, conv_plan *out)
{
    static const char *const names[] = {
        [CONV_MATRIX] = "gemm", [CONV_WINDOWS] = "implicit gemm", [CONV_SLABS] = "direct",
        [CONV_TRANSPOSED] = "implicit gemm, few channels", [CONV_DEPTHWISE] = "depthwise",
    };
    *out = (conv_plan){ .d = *desc, .config = config, .workers = workers > 0 ? workers : 1 };
    out->method = method_choose(desc, config);
    if (out->method == CONV_DEPTHWISE) {
        cek__depthwise_plan(out);
        out->algorithm = names[out->method];
        return;
    }
    switch (desc->direction) {
    case CONV_FORWARD: cek__conv_forward_plan(out); break;
    case CONV_BACKWARD_DATA: cek__conv_data_plan(out); break;
    case CONV_BACKWARD_WEIGHTS: cek__conv_weights_plan(out); break;
    }
    out->workspace_bytes = out->product.workspace_bytes;
    out->algorithm = names[out->method];
}

void cek__conv_run(const conv_plan *plan, cpu_pool *pool, const conv_args *args, void *workspace)
{
    const conv_call call = { plan, args };
    if (plan->method == CONV_DEPTHWISE) {
        cek__depthwise_run(&call, pool, workspace);
        return;
    }
    switch (plan->d.direction) {
    case CONV_FORWARD: cek__conv_forward_run(&call, pool, workspace); break;
    case CONV_BACKWARD_DATA: cek__conv_data_run(&call, pool, workspace); break;
    case CONV_BACKWARD_WEIGHTS: cek__conv_weights_run(&call, pool, workspace); break;
    }
}
