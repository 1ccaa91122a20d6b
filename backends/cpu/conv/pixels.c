/* pixels.c - results of few channels: neighbouring pixels, which lie side by side, fill a vector together.
 *
 * Owns: when that pays, and the weights that follow from it. Must not know: how products are planned and run.
 *
 * `count` pixels of n channels are one pixel of count * n channels. Its window is as much wider as the last of them
 * lies behind the first, and windows are count times as far apart. Its weights are those of each part, shifted, and
 * zeros where a part does not see. So 8 channels of 3 x 3 taps take 12 steps for two pixels instead of 9 for each in
 * half a vector. The gradient of an input is such a convolution of dy with its taps turned around; of the gradient of
 * weights, what is made for wide windows is added up by what each part saw.
 *
 * Sums of forward are made in the order of single pixels, to the bit. What is multiplied by zero spreads a NaN to the
 * pixels beside its window: not under strict mathematics. */
#include <string.h>

#include "backends/cpu/conv/method.h"

enum {
    STEP = 2,  /* loads of a step of a tile beside its rows', in cycles */
    CHAIN = 4, /* cycles of a sum's step: fewer rows wait */
};
static const double gain_wanted = 0.9;

static int is_weights(const conv_desc *d)
{
    return d->direction == CONV_BACKWARD_WEIGHTS;
}

/* Channels of a pixel of the result; of weights, of the pixels that they are summed over. */
static int64_t pixel_channels(const conv_desc *d)
{
    return d->direction == CONV_BACKWARD_DATA ? d->in_channels : d->out_channels;
}

static int64_t line_pixels(const conv_desc *d)
{
    return (d->direction == CONV_BACKWARD_DATA ? d->in : d->out)[2];
}

static int64_t wide_taps(const conv_desc *d, int64_t count)
{
    return d->kernel[2] + (count - 1) * d->stride[2];
}

static int is_possible(const conv_desc *d, const cpu_config *config)
{
    const int data = d->direction == CONV_BACKWARD_DATA;

    return d->groups == 1 && d->dilation[2] == 1 && cek__conv_window_words(d, config) == NULL &&
           (is_weights(d) ? d->w == CPU_F32 : !d->strict) &&
           (!data || (d->stride[0] == 1 && d->stride[1] == 1 && d->stride[2] == 1));
}

/* Cycles of a line of pixels for each line of taps and channel; 0: too few of them for a panel of rows. */
static double line_cost(const conv_desc *d, int64_t mr, int64_t count)
{
    const int64_t columns = line_pixels(d) / count, taps = wide_taps(d, count) * d->in_channels;
    const int64_t panels = ceil_div(columns, mr);

    if (is_weights(d))
        return (double)(columns * (most(taps, CHAIN) + STEP * ceil_div(taps, mr)));
    return columns * 2 < panels * mr ? 0 : (double)(wide_taps(d, count) * (columns + STEP * panels));
}

/* How many pixels are best: 1, or what fits into a vector. */
static int64_t count_choose(const conv_desc *d, const cpu_kernels *kernels)
{
    const int64_t most_pixels = kernels->nr / 2 / pixel_channels(d);
    double best = gain_wanted * line_cost(d, kernels->mr, 1);
    int64_t count = 1;

    for (int64_t i = 2; i <= most_pixels; i++) {
        const double cost = line_pixels(d) % i == 0 ? line_cost(d, kernels->mr, i) : 0;
        if (cost > 0 && cost < best) {
            best = cost;
            count = i;
        }
    }
    return count;
}

/* The convolution of wide pixels. */
static void desc_widen(conv_desc *d, int64_t count)
{
    const conv_desc asked = *d;

    if (asked.direction == CONV_BACKWARD_DATA) {
        d->direction = CONV_FORWARD;
        d->x = asked.y;
        d->y = asked.x;
        d->in_channels = asked.out_channels;
        d->out_channels = asked.in_channels;
        for (int i = 0; i < 3; i++) {
            d->in[i] = asked.out[i];
            d->out[i] = asked.in[i];
            d->pad[i] = (asked.kernel[i] - 1) * asked.dilation[i] - asked.pad[i];
        }
    }
    d->out_channels *= count;
    d->out[2] /= count;
    d->kernel[2] = wide_taps(&asked, count);
    d->stride[2] *= count;
    d->w = CPU_F32;
    d->packed = d->direction == CONV_FORWARD;
    if (is_weights(d))
        d->accumulate = d->bias_accumulate = 0;
}

static int64_t weights_floats(const conv_desc *d)
{
    return d->out_channels * conv_taps(d) * d->in_channels;
}

static int64_t packed_floats(const conv_plan *plan)
{
    return conv_taps(&plan->d) * plan->d.in_channels * plan->config->kernels->nr;
}

int cek__pixels_choose(conv_plan *plan)
{
    const int possible = !plan->cut && is_possible(&plan->d, plan->config);
    const int64_t count = possible ? count_choose(&plan->d, plan->config->kernels) : 1;

    plan->pixels = count;
    if (count > 1)
        desc_widen(&plan->d, count);
    return count > 1;
}

void cek__pixels_place(conv_plan *plan)
{
    const conv_desc *d = &plan->d, *asked = &plan->asked;
    const int64_t floats = is_weights(d) ? weights_floats(d) : packed_floats(plan) + weights_floats(asked);

    plan->pixels_at = (size_t)round_up((int64_t)plan->workspace_bytes, 64);
    plan->workspace_bytes = plan->pixels_at + (size_t)(floats + d->out_channels) * 4; /* and a bias, or its gradient */
}

/* Weights of wide pixels, packed (packed.c): one panel, in which a part has the columns of its channels. */
void cek__pixels_weights(const conv_plan *plan, const float *weights, float *packed)
{
    const conv_desc *d = &plan->d, *asked = &plan->asked;
    const cpu_kernels *kernels = plan->config->kernels;
    const int64_t in = d->in_channels, n = d->out_channels / plan->pixels, nr = kernels->nr;
    const int64_t lines = d->kernel[0] * d->kernel[1], taps = asked->kernel[2];

    memset(packed, 0, (size_t)packed_floats(plan) * 4);
    for (int64_t part = 0; part < plan->pixels; part++)
        for (int64_t line = 0; line < lines; line++) {
            float *to = packed + (line * d->kernel[2] + part * asked->stride[2]) * in * nr + part * n;
            if (asked->direction == CONV_FORWARD) {
                kernels->transpose(n, taps * in, weights + line * taps * in, lines * taps * in, to, nr);
                continue;
            }
            for (int64_t tap = 0; tap < taps; tap++)
                for (int64_t c = 0; c < in; c++)
                    memcpy(to + (tap * in + c) * nr,
                           weights + ((c * lines + lines - 1 - line) * taps + taps - 1 - tap) * n, (size_t)n * 4);
        }
}

/* What `own` holds of the run: packed weights, the bias, weights as floats. */
static void images_prepare(const conv_plan *plan, const conv_args *args, float *own, conv_args *wide)
{
    const conv_desc *d = &plan->d, *asked = &plan->asked;
    const int64_t n = d->out_channels / plan->pixels;
    float *bias = own + packed_floats(plan), *floats = bias + d->out_channels;

    if (asked->direction == CONV_BACKWARD_DATA)
        wide->x = args->y;
    if (!asked->packed) {
        if (asked->w != CPU_F32)
            plan->config->kernels->load(asked->w, weights_floats(asked), args->w, floats);
        cek__pixels_weights(plan, asked->w == CPU_F32 ? args->w : floats, own);
        wide->w = own;
    }
    for (int64_t part = 0; args->bias && part < plan->pixels; part++)
        memcpy(bias + part * n, args->bias, (size_t)n * 4);
    wide->bias = args->bias ? bias : NULL;
}

/* Adds up what the parts of wide pixels gave, in their order. */
static void weights_fold(const conv_plan *plan, const conv_args *args, const float *own)
{
    const conv_desc *d = &plan->d, *asked = &plan->asked;
    const cpu_kernels *kernels = plan->config->kernels;
    const int64_t in = d->in_channels, n = asked->out_channels, lines = d->kernel[0] * d->kernel[1];
    const int64_t line = asked->kernel[2] * in, wide = d->kernel[2] * in;
    const float *dbias = own + weights_floats(d);

    for (int64_t part = 0; part < plan->pixels; part++) {
        const int add = part > 0 || asked->accumulate, add_bias = part > 0 || asked->bias_accumulate;
        for (int64_t i = 0; i < n * lines; i++) {
            const float *from = own + (part * n * lines + i) * wide + part * asked->stride[2] * in;
            float *to = (float *)args->out + i * line;
            if (add)
                kernels->add(line, to, from, to);
            else
                memcpy(to, from, (size_t)line * 4);
        }
        if (args->dbias && add_bias)
            kernels->add(n, args->dbias, dbias + part * n, args->dbias);
        else if (args->dbias)
            memcpy(args->dbias, dbias, (size_t)n * 4);
    }
}

void cek__pixels_begin(const conv_plan *plan, const conv_args *args, void *workspace, conv_args *wide)
{
    float *own = (float *)(void *)((char *)workspace + plan->pixels_at);

    *wide = *args;
    if (is_weights(&plan->d)) {
        wide->out = own;
        wide->dbias = args->dbias ? own + weights_floats(&plan->d) : NULL;
    } else {
        images_prepare(plan, args, own, wide);
    }
}

void cek__pixels_end(const conv_plan *plan, const conv_args *args, const void *workspace)
{
    if (is_weights(&plan->d))
        weights_fold(plan, args, (const float *)(const void *)((const char *)workspace + plan->pixels_at));
}
