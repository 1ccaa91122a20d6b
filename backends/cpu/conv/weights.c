/* weights.c - the gradient of a convolution's weights as a product over all output positions,
 * one per group.
 *
 * Owns: operands and result: dw = dy^T (A) x windows of x (B); with few channels, or few beside dy's, dw^T = windows^T
 * (A) x dy (B).
 * Must not know: how products are planned and run. */
#include "backends/cpu/conv/method.h"

#include <string.h>

enum {
    TERMS_TURNED = 4096, /* of a sum: turning the result around costs little beside them */
    MANY_PANELS = 4,     /* of A, by which copies of windows are multiplied */
    SHORT_LINE = 4       /* floats: a tile of so few rows waits for its own sums */
};

/* Slabs of as many lines of positions as fit: a block of k. */
static int64_t slab_depth(conv_plan *plan)
{
    const int64_t width = plan->w.dim[2].positions, rows = windows_rows(&plan->w);
    int64_t lines = plan->config->floats.kc / width;

    for (lines = lines > 0 ? lines : 1; lines > 0; lines--) {
        const int64_t depth = least(lines * width, rows);
        cek__slab_plan(&plan->w, depth, &plan->slab);
        if (plan->slab.floats * 4 <= plan->config->floats.b_bytes)
            return depth;
    }
    return 0;
}

/* Blocks of k so low that a large C would be passed by again and again: copies of all windows cost less. */
static int is_shallow(const conv_plan *plan, int64_t depth)
{
    return depth < plan->config->floats.kc / 4 && plan->product.m >= MANY_PANELS * plan->config->kernels->mr;
}

/* Windows as B: a panel lies within one tap. */
static int slabs_plan(conv_plan *plan)
{
    const int64_t depth = plan->w.channels % plan->config->kernels->nr == 0 ? slab_depth(plan) : 0;
    if (depth == 0 || is_shallow(plan, depth))
        return 0;
    plan->product.way_b = PACK_DIRECT;
    plan->product.sizes = (walk_sizes){ .kc = depth, .b_floats = plan->slab.floats };
    return 1;
}

/* Floats that follow each other in a window: the channels of a line of taps. */
static int64_t line_floats(const windows *w)
{
    return w->dim[2].taps * w->channels;
}

/* Lines of a window are so short that they had better be one panel of A, which a tile holds: each window is copied, for
 * at least one full panel of B. */
static int are_joined(const conv_plan *plan)
{
    const cpu_kernels *kernels = plan->config->kernels;
    const int64_t line = line_floats(&plan->w), rows = plan->product.m;
    return line <= SHORT_LINE && line < rows && rows <= kernels->mr && plan->product.n >= kernels->nr;
}

/* Windows as A: all of them in one block, so that a slab is copied once. */
static int transposed_plan(conv_plan *plan)
{
    const int64_t depth = slab_depth(plan);
    /* a line of any length is one block, and dy's offsets in it are of 32 bits where it is read in place */
    if (depth == 0 || depth * plan->d.out_channels > INT32_MAX)
        return 0;
    plan->product.way_a = PACK_DIRECT;
    plan->product.row_unit = plan->product.m;
    plan->product.sizes = (walk_sizes){ .mc = plan->product.m, .kc = depth, .a_floats = plan->slab.floats };
    if (are_joined(plan))
        plan->product.sizes.a_floats += depth * plan->product.m + SHORT_LINE;
    return 1;
}

/* Vectors of so many columns are full, or nearly so. */
static bool fill_vectors(const conv_plan *plan, int64_t columns)
{
    return 8 * round_up(columns, plan->config->kernels->nr / 2) <= 9 * columns;
}

/* One tap: an image as A is read where it lies if the other one has few channels. */
static bool stays(const conv_plan *plan, cpu_type type, int64_t channels, int64_t others)
{
    const gemm_matrix image = { type, 1, channels, 0 };
    return plan->method == CONV_MATRIX && cek__pack_columns_stay(plan->config, &image, others);
}

/* One tap: the wider image is A where it stays, and B where it does not: rows of B come near while tiles work, those of
 * an A that is copied are waited for. */
static bool windows_are_a(const conv_plan *plan)
{
    const conv_desc *d = &plan->d;
    const int64_t in = conv_group_in(d), out = conv_group_out(d);
    if (plan->method != CONV_MATRIX || d->y != CPU_F32 || windows_rows(&plan->w) < TERMS_TURNED)
        return plan->method == CONV_TRANSPOSED;
    if (out >= in && fill_vectors(plan, in) && stays(plan, d->y, d->out_channels, in))
        return false;
    return out >= 2 * in || (in > out && fill_vectors(plan, out) && stays(plan, d->x, d->in_channels, out));
}

/* B lies as rows of floats, for which tiles would wait: dy, of which few windows meet a pixel, or one of two images. */
static int comes_ahead(const conv_plan *plan, cpu_type b)
{
    return b == CPU_F32 && (plan->method == CONV_TRANSPOSED || plan->method == CONV_MATRIX);
}

static void product_set(conv_plan *plan)
{
    const conv_desc *d = &plan->d;
    const int64_t columns = windows_columns(&plan->w), out = conv_group_out(d);
    const bool turned = windows_are_a(plan);
    const int in_place = d->w == CPU_F32 && !turned;
    /* dy is read where it is: with few windows to multiply it by, copying would be a large part */
    const int dy_in_place = plan->method == CONV_TRANSPOSED && d->y == CPU_F32;
    const bool a_stays = turned ? stays(plan, d->x, d->in_channels, out) : stays(plan, d->y, d->out_channels, columns);
    plan->product = (product_plan){
        .m = turned ? columns : out,
        .n = turned ? out : columns,
        .k = windows_rows(&plan->w),
        .batch = d->groups,
        .config = plan->config,
        .workers = plan->workers,
        .in_place = in_place,
        .add = in_place && d->accumulate,
        .sum = turned ? PRODUCT_COLUMN_SUM : PRODUCT_ROW_SUM,
        .way_a = a_stays ? PACK_DIRECT : PACK_ACROSS,
        .way_b = dy_in_place ? PACK_DIRECT : PACK_ACROSS,
        .store_across = turned,
        .ahead = comes_ahead(plan, turned ? d->y : d->x),
    };
}

void cek__conv_weights_plan(conv_plan *plan)
{
    cek__conv_windows(&plan->d, &plan->w);
    product_set(plan);
    if (plan->method == CONV_TRANSPOSED && !transposed_plan(plan)) {
        plan->method = CONV_WINDOWS;
        product_set(plan);
    }
    if (plan->method == CONV_MATRIX)
        cek__product_words(&plan->product, plan->d.y, plan->d.x);
    if (plan->method == CONV_WINDOWS && slabs_plan(plan))
        plan->method = CONV_SLABS;
    cek__product_plan(&plan->product);
}

/* Windows as B: a row at a time through a line, then cut into panels. */
static walk_edge give_windows(const void *part, int64_t k, int64_t depth, int64_t col, int64_t cols,
                              const walk_scratch *to)
{
    const product_part *p = part;
    const conv_call *call = p->owner;
    const int64_t nr = p->kernels->nr;
    for (int64_t kk = 0; kk < depth; kk++) {
        cek__windows_copy(&call->plan->w, p->kernels, p->b.type, p->b.at, k + kk, 1, col, cols, to->line, cols);
        p->kernels->panels(CPU_F32, 1, cols, nr, to->line, cols, to->b + kk * nr, depth * nr);
    }
    cek__walk_panels_b(nr, depth, cols, to);
    return WALK_WHOLE;
}

static walk_edge give_slab(const void *part, int64_t k, int64_t depth, int64_t col, int64_t cols,
                           const walk_scratch *to)
{
    const product_part *p = part;
    const conv_call *call = p->owner;
    const slab *s = &call->plan->slab;
    const int64_t nr = p->kernels->nr;
    cek__slab_copy(s, &call->plan->w, p->kernels, p->b.type, p->b.at, k, depth, to->b, to->b_offset);
    for (int64_t panel = 0; panel * nr < cols; panel++) {
        int32_t tap;
        cek__slab_taps(s, &call->plan->w, col + panel * nr, 1, &tap);
        to->b_panel[panel] = to->b + tap;
    }
    return WALK_WHOLE;
}

/* Windows of a slab, one after the other. Of each line as much is copied as any has; what is too much is overwritten
 * by the next. */
static void lines_join(const conv_plan *plan, int64_t rows, int64_t depth, const walk_scratch *to)
{
    const int64_t line = line_floats(&plan->w);
    float *panel = to->a + plan->slab.floats;
    int32_t tap[CPU_MR_MAX];

    cek__slab_taps(&plan->slab, &plan->w, 0, rows, tap);
    for (int64_t k = 0; k < depth; k++)
        for (int64_t i = 0; i < rows; i += line)
            memcpy(panel + k * rows + i, to->a + to->a_offset[k] + tap[i], SHORT_LINE * sizeof *panel);
    cek__walk_panels_a(rows, panel, 0, rows, depth, to);
    cek__offsets_make(to->a_offset, depth, rows);
}

/* Windows, transposed, as A: the channels of a line of taps follow each other, so they are panels
 * with rows 1 apart. */
static int64_t give_transposed(const void *part, int64_t row, int64_t rows, int64_t k, int64_t depth,
                               const walk_scratch *to)
{
    const product_part *p = part;
    const conv_call *call = p->owner;
    const windows *w = &call->plan->w;
    const int64_t line = line_floats(w);
    int64_t panel = 0;

    cek__slab_copy(&call->plan->slab, w, p->kernels, p->a.type, p->a.at, k, depth, to->a, to->a_offset);
    if (are_joined(call->plan)) {
        lines_join(call->plan, rows, depth, to);
        return 1;
    }
    for (int64_t r = 0; r < rows;) {
        const int64_t left = least(line - (row + r) % line, rows - r), height = walk_panel_rows(left, p->kernels->mr);
        int32_t tap;
        cek__slab_taps(&call->plan->slab, w, row + r, 1, &tap);
        for (int64_t i = 0; i < left; i += to->a_rows[panel++]) {
            to->a_panel[panel] = to->a + tap + i;
            to->a_rows[panel] = walk_panel_next(left - i, height);
        }
        r += left;
    }
    return 1;
}

static void open_group(const void *owner, int64_t group, product_part *out)
{
    const conv_call *call = owner;
    const conv_desc *d = &call->plan->d;
    const conv_args *args = call->args;
    const int64_t in = conv_group_in(d), n = conv_group_out(d), columns = conv_taps(d) * in;
    const void *x = conv_at(args->x, d->x, group * in), *dy = conv_at(args->y, d->y, group * n);
    const product_plan *p = &call->plan->product;

    if (p->store_across) {
        out->a = pack_of(x, d->x, 1, d->in_channels, p->way_a);
        out->b = pack_of(dy, d->y, d->out_channels, 1, p->way_b);
    } else {
        out->a = pack_of(dy, d->y, 1, d->out_channels, p->way_a);
        out->b = pack_of(x, d->x, d->in_channels, 1, PACK_ACROSS);
    }
    out->e = (epilogue){ .c = conv_at(args->out, d->w, group * n * columns),
                         .to = p->store_across ? (gemm_matrix){ d->w, 1, columns, 0 }
                                               : (gemm_matrix){ d->w, columns, 1, 0 },
                         .accumulate = d->accumulate && !p->in_place };
    out->sum = args->dbias ? args->dbias + group * n : NULL;
    out->sum_accumulate = d->bias_accumulate;
}

void cek__conv_weights_run(const conv_call *call, cpu_threads *threads, void *workspace)
{
    const int method = call->plan->method;
    const product_source source = {
        .owner = call,
        .open = open_group,
        .take = cek__product_take,
        .plain = 1,
        .a = method == CONV_TRANSPOSED ? give_transposed : cek__product_a,
        .b = method == CONV_SLABS     ? give_slab
             : method == CONV_WINDOWS ? give_windows
                                      : cek__product_b,
    };
    cek__product_run(&call->plan->product, threads, &source, workspace);
}
