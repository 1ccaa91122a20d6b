/* data.c - the gradient of a convolution's input as a product: windows of dy (A) times weights (B), one product per
 * group, where strides are 1 or there is one tap.
 *
 * Owns: which outputs an input position took part in, and the operands that follow from it.
 * Must not know: how products are planned and run; strides of more taps, which are scatter.c's.
 *
 * Input position i met output o through tap k where o + k * dilation = i + pad: dx is a convolution of dy with the taps
 * turned around. */
#include <stddef.h>
#include <string.h>

#include "backends/cpu/conv/method.h"

void cek__conv_data_plan(conv_plan *plan)
{
    const conv_desc *d = &plan->d;
    const int spread = plan->method == CONV_SPREAD;
    const int in_place = !spread && d->x == CPU_F32 && !(d->accumulate && d->deriv != CPU_ACT_NONE);

    plan->w = (windows){ .images = d->batch, .channels = conv_group_out(d) };
    for (int i = 0; i < 3; i++)
        plan->w.dim[i] = (window_dim){ .size = d->out[i],
                                       .positions = spread ? d->out[i] : d->in[i],
                                       .step = 1,
                                       .first = d->pad[i] - (d->kernel[i] - 1) * d->dilation[i],
                                       .taps = d->kernel[i],
                                       .tap_step = d->dilation[i] };
    cek__windows_dense(&plan->w, d->out_channels);
    plan->product = (product_plan){
        .m = windows_rows(&plan->w),
        .n = conv_group_in(d),
        .k = windows_columns(&plan->w),
        .batch = d->groups,
        .whole = 1,
        .config = plan->config,
        .workers = plan->workers,
        .in_place = in_place,
        .add = in_place && d->accumulate,
        .way_a = PACK_ALONG,
        .way_b = PACK_ACROSS,
    };
    if (plan->method == CONV_MATRIX || spread)
        cek__conv_matrix_plan(plan, (gemm_matrix){ d->y, d->out_channels, 1, 0 },
                              (gemm_matrix){ d->w, plan->product.n, 1, 0 });
    if (plan->method == CONV_WINDOWS && cek__conv_slabs_plan(plan))
        plan->method = CONV_SLABS;
    cek__product_plan(&plan->product);
}

/* Row (tap, out channel) of B is the input channels of that tap: rows of a matrix for as long as
 * the tap stays the same. */
static walk_edge give_weights(const void *part, int64_t k, int64_t depth, int64_t col, int64_t cols,
                              const walk_scratch *to)
{
    const product_part *p = part;
    const conv_call *call = p->owner;
    const conv_desc *d = &call->plan->d;
    const int64_t in = conv_group_in(d), group_out = conv_group_out(d), ld = conv_taps(d) * in, nr = p->kernels->nr;

    for (int64_t kk = 0; kk < depth;) {
        const int64_t tap = conv_taps(d) - 1 - (k + kk) / group_out, channel = (k + kk) % group_out;
        const int64_t run = least(group_out - channel, depth - kk);
        const char *from = conv_at(p->b.at, d->w, channel * ld + tap * in + col);
        p->kernels->panels(d->w, run, cols, nr, from, ld, to->b + kk * nr, depth * nr);
        kk += run;
    }
    cek__walk_panels_b(nr, depth, cols, to);
    return WALK_WHOLE;
}

/* The rows of a spread product: each pixel of dy becomes one of dx, and the others of its cell, which are no window's,
 * zeros. */
static void take_cells(const void *part, int64_t row, int64_t rows, int64_t col, int64_t cols, const float *c,
                       int64_t ldc)
{
    const product_part *p = part;
    const conv_call *call = p->owner;
    const conv_desc *d = &call->plan->d;
    const size_t bytes = (size_t)(cols * cpu_type_bytes(d->x));

    for (int64_t i = 0; i < rows; i++, c += ldc) {
        int64_t at[3], size[3], image = row + i;
        for (int k = 2; k >= 0; k--) {
            const int64_t o = image % d->out[k];
            image /= d->out[k];
            at[k] = o * d->stride[k];
            size[k] = o + 1 < d->out[k] ? d->stride[k] : d->in[k] - at[k];
        }
        const int64_t first = ((image * d->in[0] + at[0]) * d->in[1] + at[1]) * d->in[2] + at[2];
        cek__epilogue(p->kernels, &p->e, first, 1, col, cols, c, ldc);
        for (int64_t j = 1; !d->accumulate && j < size[0] * size[1] * size[2]; j++) {
            const int64_t z = j / size[2] / size[1], y = j / size[2] % size[1], x = j % size[2];
            const int64_t pixel = first + (z * d->in[1] + y) * d->in[2] + x;
            memset(conv_at(p->e.c, d->x, pixel * d->in_channels + col), 0, bytes);
        }
    }
}

static void open_group(const void *owner, int64_t group, product_part *out)
{
    const conv_call *call = owner;
    const conv_desc *d = &call->plan->d;
    const conv_args *args = call->args;
    const int64_t in = conv_group_in(d), group_out = conv_group_out(d);

    out->a = pack_of(conv_at(args->y, d->y, group * group_out), d->y, d->out_channels, 1, call->plan->product.way_a);
    out->b = pack_of(conv_at(args->w, d->w, group * group_out * conv_taps(d) * in), d->w, in, 1,
                     call->plan->product.way_b);
    out->e = (epilogue){ .c = conv_at(args->out, d->x, group * in),
                         .to = { d->x, d->in_channels, 1, 0 },
                         .accumulate = d->accumulate && !call->plan->product.in_place,
                         .deriv = d->deriv,
                         .ref = d->deriv != CPU_ACT_NONE ? conv_at(args->ref, d->ref, group * in) : NULL,
                         .ref_at = { d->ref, d->in_channels, 1, 0 } };
}

void cek__conv_data_run(const conv_call *call, cpu_threads *threads, void *workspace)
{
    const conv_plan *plan = call->plan;
    const product_source source = {
        .owner = call,
        .open = open_group,
        .b = plan->method == CONV_MATRIX || plan->method == CONV_SPREAD ? cek__product_b : give_weights,
        .a = cek__conv_give_a(plan),
        .take = plan->method == CONV_SPREAD ? take_cells : cek__product_take,
        .plain = plan->d.deriv == CPU_ACT_NONE,
    };
    cek__product_run(&plan->product, threads, &source, workspace);
}
