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
    switch (d->direction) {
    case CONV_FORWARD:
        return in < FEW_CHANNELS ? CONV_TRANSPOSED_WINDOWS : CONV_WINDOWS;
    case CONV_BACKWARD_DATA:
        return out < FEW_CHANNELS ? CONV_TRANSPOSED_WINDOWS : CONV_WINDOWS;
    case CONV_BACKWARD_WEIGHTS:
        break;
    }
    /* the side that is B is rounded up to whole panels */
    const int64_t columns = conv_taps(d) * in;
    const int64_t windows_b = out * ((columns + nr - 1) / nr), windows_a = columns * ((out + nr - 1) / nr);
    return in < FEW_CHANNELS && windows_a < windows_b ? CONV_TRANSPOSED_WINDOWS : CONV_WINDOWS;
}

void cek__conv_plan(const conv_desc *desc, const cpu_config *config, int workers, conv_plan *out)
{
    static const char *const names[] = {
        [CONV_MATRIX] = "gemm", [CONV_WINDOWS] = "implicit gemm", [CONV_TRANSPOSED_WINDOWS] = "implicit gemm, few channels",
        [CONV_DEPTHWISE] = "depthwise",
    };
    *out = (conv_plan){ .d = *desc, .config = config, .workers = workers > 0 ? workers : 1 };
    out->method = method_choose(desc, config);
    out->algorithm = names[out->method];
    if (out->method == CONV_DEPTHWISE) {
        cek__depthwise_plan(out);
        return;
    }
    switch (desc->direction) {
    case CONV_FORWARD: cek__conv_forward_plan(out); break;
    case CONV_BACKWARD_DATA: cek__conv_data_plan(out); break;
    case CONV_BACKWARD_WEIGHTS: cek__conv_weights_plan(out); break;
    }
    out->workspace_bytes = out->product.workspace_bytes;
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
