/* conv.c - the choice of a method for a convolution; one file per direction does the rest.
 *
 * Owns: which method serves which shape. Must not know: how a method works. */
#include "backends/cpu/conv/conv.h"

#include "backends/cpu/conv/method.h"

static int is_matrix(const conv_desc *d)
{
    for (int i = 0; i < 3; i++)
        if (d->kernel[i] != 1 || d->stride[i] != 1 || d->pad[i] != 0 || d->in[i] != d->out[i])
            return 0;
    return 1;
}

/* One tap without padding, each of whose windows is a pixel of its own: with strides, some pixels are no window's. */
static int is_spread(const conv_desc *d)
{
    for (int i = 0; i < 3; i++)
        if (d->kernel[i] != 1 || d->pad[i] != 0 || (d->out[i] - 1) * d->stride[i] >= d->in[i])
            return 0;
    return 1;
}

/* Whether the gradient of weights had better be computed transposed: cycles for one output position. */
static int is_transposed(const conv_desc *d, const cpu_config *config)
{
    enum { LINE_COPY = 60, VECTOR_COPY = 6 }; /* of copying lines of taps, where windows are packed as B */
    const int64_t out = conv_group_out(d), vl = config->kernels->nr / 2, columns = conv_taps(d) * conv_group_in(d);
    const int64_t windows_b = (out + VECTOR_COPY) * ceil_div(columns, vl) + d->kernel[0] * d->kernel[1] * LINE_COPY;
    const int64_t windows_a = columns * ceil_div(out, vl);
    /* channels of neighbouring taps must follow each other in a slab (slab.c pads pixels of more channels) */
    return conv_group_in(d) <= 16 && d->dilation[2] == 1 && windows_a < windows_b;
}

/* Cycles of the windows of a result of `channels`, whose sums have so many terms. */
static double windows_cost(const conv_desc *d, const cpu_config *config, int64_t pixels, int64_t terms,
                           int64_t channels)
{
    return (double)(d->batch * d->groups * pixels) * (double)terms *
           (double)ceil_div(channels, config->kernels->nr / 2);
}

/* Whether the gradient of an input had better be added up: always where there are strides, which windows of it know
 * nothing of; else where it costs less than a tile for each tap. Plans it then. */
static int is_scattered(conv_plan *plan)
{
    const conv_desc *d = &plan->d;
    const double by_windows = windows_cost(d, plan->config, d->in[0] * d->in[1] * d->in[2],
                                           conv_taps(d) * conv_group_out(d), conv_group_in(d));
    const int strided = d->stride[0] > 1 || d->stride[1] > 1 || d->stride[2] > 1;
    conv_plan trial = *plan;

    cek__scatter_plan(&trial);
    if (!strided && trial.scatter.cost >= by_windows)
        return 0;
    *plan = trial;
    return 1;
}

/* By products of matrices or windows. */
static void direction_plan(conv_plan *plan)
{
    switch (plan->d.direction) {
    case CONV_FORWARD: cek__conv_forward_plan(plan); break;
    case CONV_BACKWARD_DATA: cek__conv_data_plan(plan); break;
    case CONV_BACKWARD_WEIGHTS: cek__conv_weights_plan(plan); break;
    }
    plan->workspace_bytes = plan->product.workspace_bytes;
}

/* Whether pixels had better be taken together, which tiles then read from slabs. Plans it then. */
static int is_widened(conv_plan *plan)
{
    const conv_desc *d = &plan->d;
    conv_plan wide = *plan, added = *plan;

    if (!cek__pixels_choose(&wide))
        return 0;
    if (d->direction == CONV_BACKWARD_WEIGHTS && !is_transposed(&wide.d, plan->config))
        return 0;
    wide.method = d->direction == CONV_BACKWARD_WEIGHTS ? CONV_TRANSPOSED : CONV_WINDOWS;
    direction_plan(&wide);
    if (wide.method == CONV_WINDOWS)
        return 0;
    if (d->direction == CONV_BACKWARD_DATA) {
        cek__scatter_plan(&added);
        if (added.scatter.cost < windows_cost(&wide.d, plan->config, wide.d.out[0] * wide.d.out[1] * wide.d.out[2],
                                              conv_taps(&wide.d) * wide.d.in_channels, wide.d.out_channels))
            return 0;
    }
    cek__pixels_place(&wide);
    wide.inexact = d->direction != CONV_BACKWARD_WEIGHTS; /* integers are exact, but a NaN may spread */
    *plan = wide;
    return 1;
}

/* What serves the shape. What had to be planned to be weighed is planned. */
static enum conv_method method_choose(conv_plan *plan)
{
    const conv_desc *d = &plan->d;

    if (cek__winograd_plan(plan))
        return CONV_WINOGRAD;
    if (conv_group_in(d) == 1 && conv_group_out(d) == 1 && d->groups > 1)
        return CONV_DEPTHWISE;
    if (is_matrix(d))
        return CONV_MATRIX;
    if (is_widened(plan))
        return (enum conv_method)plan->method;
    if (d->direction == CONV_BACKWARD_WEIGHTS && is_transposed(d, plan->config))
        return CONV_TRANSPOSED;
    if (d->direction == CONV_BACKWARD_DATA && is_spread(d))
        return CONV_SPREAD;
    if (d->direction == CONV_BACKWARD_DATA && is_scattered(plan))
        return CONV_SCATTER;
    return CONV_WINDOWS; /* or CONV_SLABS, which the direction decides */
}

static void direction_run(const conv_call *call, cpu_threads *threads, void *workspace)
{
    switch (call->plan->d.direction) {
    case CONV_FORWARD: cek__conv_forward_run(call, threads, workspace); break;
    case CONV_BACKWARD_DATA: cek__conv_data_run(call, threads, workspace); break;
    case CONV_BACKWARD_WEIGHTS: cek__conv_weights_run(call, threads, workspace); break;
    }
}

static const char *winograd_name(const conv_plan *plan)
{
    return plan->winograd.form->outputs == 4 ? "winograd 4x4" : "winograd 2x2";
}

void cek__conv_plan(const conv_desc *desc, const cpu_config *config, int workers, conv_plan *out)
{
    static const char *const names[] = {
        [CONV_MATRIX] = "gemm",
        [CONV_SPREAD] = "gemm, spread",
        [CONV_WINDOWS] = "implicit gemm",
        [CONV_SLABS] = "direct",
        [CONV_TRANSPOSED] = "direct, few channels",
        [CONV_SCATTER] = "scattered gemm",
        [CONV_DEPTHWISE] = "depthwise",
    };
    *out =
        (conv_plan){ .asked = *desc, .d = *desc, .pixels = 1, .config = config, .workers = workers > 0 ? workers : 1 };
    cek__taps_choose(out);
    out->method = method_choose(out);
    switch (out->method) {
    case CONV_SCATTER: break;
    case CONV_DEPTHWISE: cek__depthwise_plan(out); break;
    case CONV_WINOGRAD: out->inexact = 1; break;
    default:
        if (out->pixels == 1)
            direction_plan(out);
    }
    out->algorithm = out->method == CONV_WINOGRAD     ? winograd_name(out)
                     : out->pixels == 1               ? names[out->method]
                     : out->method == CONV_TRANSPOSED ? "direct, few channels, pixels together"
                                                      : "direct, pixels together";
    if (out->cut)
        cek__taps_place(out);
}

void cek__conv_run(const conv_plan *plan, cpu_threads *threads, const conv_args *args, void *workspace)
{
    conv_args other;
    const conv_call call = { plan, plan->cut || plan->pixels > 1 ? &other : args };

    if (plan->cut)
        cek__taps_begin(plan, threads, args, workspace, &other);
    if (plan->pixels > 1)
        cek__pixels_begin(plan, args, workspace, &other);
    switch (plan->method) {
    case CONV_SCATTER: cek__scatter_run(&call, threads, workspace); break;
    case CONV_DEPTHWISE: cek__depthwise_run(&call, threads, workspace); break;
    case CONV_WINOGRAD: cek__winograd_run(&call, threads, workspace); break;
    default: direction_run(&call, threads, workspace);
    }
    if (plan->pixels > 1)
        cek__pixels_end(plan, args, workspace);
    if (plan->cut)
        cek__taps_end(plan, threads, args, workspace);
}
