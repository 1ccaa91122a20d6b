/* conv.c - the choice of a method for a convolution; one file per direction does the rest.
 *
 * Owns: which method serves which shape. Must not know: how a method works. */
#include "backends/cpu/conv.h"

#include "backends/cpu/conv_method.h"

/* Below this many channels a run of one window's row is shorter than a vector or two, and copying it costs more than what is
 * computed with it. */
enum { FEW_CHANNELS = 8 };

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
