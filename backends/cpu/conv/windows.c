/* windows.c - windows of an image as the rows of A: packed, or read from slabs.
 *
 * Owns: which windows a convolution has over x; when slabs are worth it, how large they are, and both ways to hand
 * windows out.
 * Must not know: weights, results. */
#include "backends/cpu/conv/method.h"

enum {
    SLAB_BYTES = 168 << 10, /* a slab shares L2 with B */
    SLAB_ROWS = 448,        /* positions of a slab: beyond, lines that slabs share are a small part already */
    LINE_BYTES = 16 << 20,  /* at most, of a slab of one line, which may be as long as a sound: each worker has one */
};

/* One tap that strides sees some elements only: a smaller image of these. */
static void skip(window_dim *dim, int64_t *pitch)
{
    if (dim->taps > 1 || dim->first != 0 || (dim->positions - 1) * dim->step >= dim->size)
        return;
    *pitch *= dim->step;
    *dim = (window_dim){ .size = dim->positions, .positions = dim->positions, .step = 1, .taps = 1, .tap_step = 1 };
}

void cek__conv_windows(const conv_desc *d, windows *out)
{
    *out = (windows){ .images = d->batch, .channels = conv_group_in(d) };
    for (int i = 0; i < 3; i++)
        out->dim[i] = (window_dim){ .size = d->in[i],
                                    .positions = d->out[i],
                                    .step = d->stride[i],
                                    .first = -d->pad[i],
                                    .taps = d->kernel[i],
                                    .tap_step = d->dilation[i] };
    cek__windows_dense(out, d->in_channels);
    for (int i = 0; i < 3; i++)
        skip(&out->dim[i], &out->pitch[i]);
}

int cek__conv_slabs_plan(conv_plan *plan)
{
    const windows *w = &plan->w;
    const cpu_kernels *kernels = plan->config->kernels;
    const int64_t width = w->dim[2].positions, columns = windows_columns(w);
    const int64_t panels = (width + kernels->mr - 1) / kernels->mr;
    int64_t rows = width;

    /* B stays in L2 at full depth; and panels, which end where lines end, are at least half high */
    if (columns == 0 || columns * kernels->nr * 4 > plan->config->floats.b_bytes || width * 2 < panels * kernels->mr)
        return 0;
    for (int64_t more = 2 * width; more <= SLAB_ROWS; more += width) {
        cek__slab_plan(w, more, &plan->slab);
        if (plan->slab.floats * 4 > SLAB_BYTES)
            break;
        rows = more;
    }
    cek__slab_plan(w, rows, &plan->slab);
    if (plan->slab.floats * 4 > LINE_BYTES)
        return 0;
    plan->product.row_unit = rows;
    plan->product.whole = 1;
    plan->product.way_a = PACK_DIRECT;
    plan->product.sizes = (walk_sizes){ .mc = rows, .kc = columns, .a_floats = plan->slab.floats };
    return 1;
}

static int64_t give_windows(const void *part, int64_t row, int64_t rows, int64_t k, int64_t depth,
                            const walk_scratch *to)
{
    const product_part *p = part;
    const conv_call *call = p->owner;
    const int64_t ld = walk_row_floats(depth);
    cek__windows_copy(&call->plan->w, p->kernels, p->a.type, p->a.at, row, rows, k, depth, to->a, ld);
    cek__walk_panels_a(walk_panel_rows(rows, p->kernels->mr), to->a, ld, rows, depth, to);
    cek__offsets_make(to->a_offset, depth, 1);
    return ld;
}

/* How many of `rows` pixels lie `step` apart: `left` of the first line, and those of lines of `width` that go on where
 * the one before ended, as lines of one tap do, which have no padding. */
static int64_t pixels_alike(const int32_t *pixel, int64_t rows, int64_t left, int64_t width, int64_t step)
{
    int64_t alike = least(left, rows);
    while (alike < rows && pixel[alike] - pixel[0] == alike * step)
        alike = least(alike + width, rows);
    return alike;
}

static int64_t give_slab(const void *part, int64_t row, int64_t rows, int64_t k, int64_t depth, const walk_scratch *to)
{
    const product_part *p = part;
    const conv_call *call = p->owner;
    const windows *w = &call->plan->w;
    const slab *s = &call->plan->slab;
    const int64_t width = w->dim[2].positions, step = w->dim[2].step * s->pixel, mr = p->kernels->mr;
    int64_t panel = 0;

    cek__slab_copy(s, w, p->kernels, p->a.type, p->a.at, row, rows, to->a, to->pixel_offset);
    cek__slab_taps(s, w, k, depth, to->a_offset);
    for (int64_t r = 0; r < rows;) { /* a panel's pixels lie the same distance apart */
        const int64_t alike = pixels_alike(to->pixel_offset + r, rows - r, width - (row + r) % width, width, step);
        const int64_t height = walk_panel_rows(alike, mr);
        for (int64_t i = 0; i < alike; i += to->a_rows[panel++]) {
            to->a_panel[panel] = to->a + to->pixel_offset[r + i];
            to->a_rows[panel] = walk_panel_next(alike - i, height);
        }
        r += alike;
    }
    return step;
}

walk_give_a *cek__conv_give_a(const conv_plan *plan)
{
    switch (plan->method) {
    case CONV_MATRIX:
    case CONV_SPREAD: return cek__product_a;
    case CONV_SLABS: return give_slab;
    default: return give_windows;
    }
}
