/* data.c - the gradient of a convolution's input as products: windows of dy (A) times weights
 * (B).
 *
 * Owns: which outputs an input position took part in, and the operands that follow from it.
 * Must not know: how products are planned and run.
 *
 * Input position i met output o through tap k where o * stride + k * dilation = i + pad. So all
 * positions of one residue (of i by stride) meet the same taps, every `every`-th, and along them o
 * falls by a constant: for each residue dx is a convolution of dy with stride 1. One product per
 * residue and group; with stride 1 there is one residue, and its rows are dx's own. */
#include <stddef.h>

#include "backends/cpu/conv/method.h"

/* One dimension of one residue. Tap j of the windows is tap last - j * every of the weights: o then
 * rises with j. */
typedef struct residue_dim {
    int64_t residue, last, every;
} residue_dim;

typedef struct residue {
    conv_call call;
    residue_dim dim[3];
    windows w;
    product_plan product;
} residue;

static int64_t gcd(int64_t a, int64_t b)
{
    while (b) {
        const int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

static void residue_dim_set(const conv_desc *d, int i, int64_t number, residue_dim *r, window_dim *w)
{
    const int64_t s = d->stride[i], dilation = d->dilation[i];
    int64_t first = 0, taps = 0;

    r->residue = number;
    r->every = s / gcd(s, dilation);
    while (first < d->kernel[i] && first < r->every && (number + d->pad[i] - first * dilation) % s != 0)
        first++;
    if (first < d->kernel[i] && first < r->every)
        taps = (d->kernel[i] - 1 - first) / r->every + 1;
    r->last = first + (taps - 1) * r->every;
    *w = (window_dim){ .size = d->out[i],
                       .positions = (d->in[i] - number + s - 1) / s,
                       .step = 1,
                       .first = taps ? (number + d->pad[i] - r->last * dilation) / s : 0,
                       .taps = taps,
                       .tap_step = dilation * r->every / s };
}

static void residue_set(const conv_desc *d, const int64_t number[3], residue *r)
{
    r->w = (windows){ .images = d->batch, .channels = conv_group_out(d), .pixel = d->out_channels };
    for (int i = 0; i < 3; i++)
        residue_dim_set(d, i, number[i], &r->dim[i], &r->w.dim[i]);
}

static int is_dense(const conv_desc *d)
{
    return d->stride[0] == 1 && d->stride[1] == 1 && d->stride[2] == 1;
}

/* Residues beyond the input's size are empty. */
static int64_t residues(const conv_desc *d, int i)
{
    return conv_least(d->stride[i], d->in[i]);
}

void cek__conv_data_plan(conv_plan *plan)
{
    const conv_desc *d = &plan->d;
    const int in_place = is_dense(d) && d->x == CPU_F32 && !(d->accumulate && d->deriv != CPU_ACT_NONE);
    int64_t depth = 0;

    /* blocks are those of the first residue, which has the most positions, with the depth of the
     * deepest */
    for (int64_t a = 0; a < residues(d, 0); a++)
        for (int64_t b = 0; b < residues(d, 1); b++)
            for (int64_t c = 0; c < residues(d, 2); c++) {
                residue r;
                residue_set(d, (int64_t[3]){ a, b, c }, &r);
                if (windows_columns(&r.w) > depth)
                    depth = windows_columns(&r.w);
                if (a + b + c == 0)
                    plan->w = r.w;
            }
    plan->product = (product_plan){
        .m = windows_rows(&plan->w),
        .n = conv_group_in(d),
        .k = depth,
        .batch = d->groups,
        .whole = 1,
        .config = plan->config,
        .workers = plan->workers,
        .in_place = in_place,
        .add = in_place && d->accumulate,
        .way_a = PACK_ALONG,
        .way_b = PACK_ACROSS,
    };
    if (plan->method == CONV_WINDOWS && is_dense(d) && cek__conv_slabs_plan(plan))
        plan->method = CONV_SLABS;
    cek__product_plan(&plan->product);
}

static int64_t give_windows(const void *part, int64_t row, int64_t rows, int64_t k, int64_t depth,
                            const walk_scratch *to)
{
    const product_part *p = part;
    const residue *r = p->owner;
    return cek__conv_give_windows(p, &r->w, row, rows, k, depth, to);
}

static int64_t give_slab(const void *part, int64_t row, int64_t rows, int64_t k, int64_t depth, const walk_scratch *to)
{
    const product_part *p = part;
    const residue *r = p->owner;
    return cek__conv_give_slab(p, &r->w, &r->call.plan->slab, row, rows, k, depth, to);
}

/* The weights' tap that tap `tap` of the windows stands for. */
static int64_t weight_tap(const residue *r, int64_t tap)
{
    const conv_desc *d = &r->call.plan->d;
    const int64_t w = tap % r->w.dim[2].taps, h = tap / r->w.dim[2].taps % r->w.dim[1].taps;
    const int64_t dd = tap / r->w.dim[2].taps / r->w.dim[1].taps;
    const int64_t kd = r->dim[0].last - dd * r->dim[0].every, kh = r->dim[1].last - h * r->dim[1].every;
    return (kd * d->kernel[1] + kh) * d->kernel[2] + r->dim[2].last - w * r->dim[2].every;
}

/* Row (tap, out channel) of B is the input channels of that tap: rows of a matrix for as long as
 * the tap stays the same. */
static void give_weights(const void *part, int64_t k, int64_t depth, int64_t col, int64_t cols, const walk_scratch *to)
{
    const product_part *p = part;
    const residue *r = p->owner;
    const conv_desc *d = &r->call.plan->d;
    const int64_t in = conv_group_in(d), group_out = conv_group_out(d), ld = conv_taps(d) * in, nr = p->kernels->nr;

    for (int64_t kk = 0; kk < depth;) {
        const int64_t tap = (k + kk) / group_out, channel = (k + kk) % group_out;
        const int64_t run = conv_least(group_out - channel, depth - kk);
        const char *from = conv_at(p->b.at, d->w, channel * ld + weight_tap(r, tap) * in + col);
        p->kernels->panels(d->w, run, cols, nr, from, ld, to->b + kk * nr, depth * nr);
        kk += run;
    }
    cek__pack_b_panels(p->kernels, depth, cols, to);
}

/* With strides, rows of a residue lie apart in dx: each is finished by itself. */
static void take_scattered(const void *part, int64_t row, int64_t rows, int64_t col, int64_t cols, const float *c,
                           int64_t ldc, const walk_scratch *scratch)
{
    const product_part *p = part;
    const residue *r = p->owner;
    const conv_desc *d = &r->call.plan->d;
    for (int64_t i = 0; i < rows; i++) {
        int64_t at = row + i, index[3];
        for (int j = 2; j >= 0; j--) {
            index[j] = at % r->w.dim[j].positions * d->stride[j] + r->dim[j].residue;
            at /= r->w.dim[j].positions;
        }
        const int64_t pixel = ((at * d->in[0] + index[0]) * d->in[1] + index[1]) * d->in[2] + index[2];
        cek__epilogue(p->kernels, &p->e, pixel, 1, col, cols, c + i * ldc, ldc, scratch->line);
    }
}

static void open_group(const void *owner, int64_t group, product_part *out)
{
    const residue *r = owner;
    const conv_desc *d = &r->call.plan->d;
    const conv_args *args = r->call.args;
    const int64_t in = conv_group_in(d), group_out = conv_group_out(d);

    out->a = pack_floats(conv_at(args->y, d->y, group * group_out), d->y, d->out_channels, 1, PACK_ALONG);
    out->b = (pack_operand){ .at = conv_at(args->w, d->w, group * group_out * conv_taps(d) * in), .type = d->w };
    out->e = (epilogue){ .c = conv_at(args->out, d->x, group * in),
                         .to = { d->x, d->in_channels, 1, 0 },
                         .accumulate = d->accumulate && !r->product.in_place,
                         .deriv = d->deriv,
                         .ref = d->deriv != CPU_ACT_NONE ? conv_at(args->ref, d->ref, group * in) : NULL,
                         .ref_at = { d->ref, d->in_channels, 1, 0 } };
}

static void residue_run(const residue *r, cpu_threads *threads, void *workspace)
{
    const conv_plan *plan = r->call.plan;
    const product_source source = {
        .owner = r,
        .open = open_group,
        .b = give_weights,
        .a = plan->method == CONV_MATRIX  ? cek__product_a
             : plan->method == CONV_SLABS ? give_slab
                                          : give_windows,
        .take = is_dense(&plan->d) ? cek__product_take : take_scattered,
        .plain = plan->d.deriv == CPU_ACT_NONE,
    };
    cek__product_run(&r->product, threads, &source, workspace);
}

void cek__conv_data_run(const conv_call *call, cpu_threads *threads, void *workspace)
{
    const conv_desc *d = &call->plan->d;
    for (int64_t a = 0; a < residues(d, 0); a++)
        for (int64_t b = 0; b < residues(d, 1); b++)
            for (int64_t c = 0; c < residues(d, 2); c++) {
                residue r = { .call = *call, .product = call->plan->product };
                residue_set(d, (int64_t[3]){ a, b, c }, &r);
                r.product.m = windows_rows(&r.w);
                r.product.k = r.product.split_depth = windows_columns(&r.w);
                residue_run(&r, threads, workspace);
            }
}
