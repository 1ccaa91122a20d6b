/* conv.c - convolutions over one to three axes, and the way back of such a one as a layer. */
#include "core/base/options.h"
#include "core/base/status.h"
#include "nn/layers/bias.h"
#include "nn/layers/window.h"

/* One that is looked through: what is left out is filled in. */
typedef struct convolution {
    int axes;
    int64_t out, groups, more[CEK_SPATIAL_MAX];
    cek__windows windows;
    bool same, no_bias;
} convolution;

static int64_t or_one(uint32_t value)
{
    return value ? value : 1;
}

static cek_status layer_take(const char *call, const void *from, int axes, convolution *c)
{
    cek_status st;
    cek_conv_layer given;

    CEK_TRY(cek__options_take(call, &given, sizeof given, from));
    *c = (convolution){ .axes = axes,
                        .out = given.out_channels,
                        .groups = or_one(given.groups),
                        .same = given.same,
                        .no_bias = given.no_bias };
    for (int i = 0; i < axes; i++) {
        c->windows.kernel[i] = given.kernel[i];
        c->windows.stride[i] = or_one(given.stride[i]);
        c->windows.dilation[i] = or_one(given.dilation[i]);
        c->windows.pad_lo[i] = given.pad_lo[i];
        c->windows.pad_hi[i] = given.pad_hi[i];
        c->more[i] = given.more[i];
    }
out:
    return st;
}

/* An image's height and width. */
static cek_status image_take(const char *call, const void *from, int axes, convolution *c)
{
    cek_status st;
    cek_conv2d_layer given;

    CEK_TRY(cek__options_take(call, &given, sizeof given, from));
    return layer_take(call,
                      &(cek_conv_layer){ .size = sizeof(cek_conv_layer),
                                         .out_channels = given.out_channels,
                                         .kernel = { given.kernel_h, given.kernel_w },
                                         .stride = { given.stride_h, given.stride_w },
                                         .dilation = { given.dilation_h, given.dilation_w },
                                         .pad_lo = { given.pad_h, given.pad_w },
                                         .pad_hi = { given.pad_h, given.pad_w },
                                         .groups = given.groups,
                                         .no_bias = given.no_bias },
                      axes, c);
out:
    return st;
}

static cek_status layer_check(const cek__layer *l, const convolution *c)
{
    cek_status st = CEK_OK;
    char text[CEK__SHAPE_TEXT], kernel[CEK__AXES_TEXT];

    cek__dims_text(&l->in, text);
    cek__axes_text(c->axes, c->windows.kernel, kernel);
    for (int i = 0; i < c->axes; i++)
        if (c->out < 1 || c->windows.kernel[i] < 1)
            CEK_FAIL(CEK_INVALID, "%lld output channels, kernel %s: each must be at least 1", (long long)c->out,
                     kernel);
    if (l->in.size[1] % c->groups != 0 || c->out % c->groups != 0)
        CEK_FAIL(CEK_INVALID, "%lld groups do not divide the channels of the input %s and the output channels %lld",
                 (long long)c->groups, text, (long long)c->out);
out:
    return st;
}

/* Padding that follows from `same`; windows that fit. */
static cek_status windows_fit(const cek__layer *l, convolution *c)
{
    cek_status st = CEK_OK;
    cek__windows *w = &c->windows;
    char text[CEK__SHAPE_TEXT], kernel[CEK__AXES_TEXT], dilation[CEK__AXES_TEXT], padding[CEK__PADDING_TEXT];

    for (int i = 0; i < c->axes; i++) {
        if (c->more[i])
            CEK_FAIL(CEK_INVALID, "more elements at the end of axis %d: only of one that is transposed", i + 2);
        if (c->same && (w->pad_lo[i] || w->pad_hi[i]))
            CEK_FAIL(CEK_INVALID, "padding of axis %d is given, and the same size is wanted", i + 2);
        if (c->same)
            cek__windows_same(w, i, l->in.size[2 + i], w->kernel[i]);
        if (cek__window_count(w, i, l->in.size[2 + i]) < 1)
            CEK_FAIL(CEK_INVALID, "kernel %s (dilation %s) is larger than the input %s with padding %s",
                     cek__axes_text(c->axes, w->kernel, kernel), cek__axes_text(c->axes, w->dilation, dilation),
                     cek__dims_text(&l->in, text), cek__padding_text(c->axes, w, padding));
    }
out:
    return st;
}

static void layer_note(cek__layer *l, const convolution *c)
{
    char kernel[CEK__AXES_TEXT];

    cek__layer_note(l, "%s", cek__axes_text(c->axes, c->windows.kernel, kernel));
    cek__note_axes(l, "stride", c->axes, c->windows.stride, 1);
    cek__note_padding(l, c->axes, &c->windows);
    cek__note_axes(l, "dilation", c->axes, c->windows.dilation, 1);
    cek__note_axes(l, "more", c->axes, c->more, 0);
    if (c->groups != 1)
        cek__layer_note(l, ", groups %lld", (long long)c->groups);
    if (c->no_bias)
        cek__layer_note(l, ", no bias");
}

/* "weight" [first, second, kernel..]; fan_in: PyTorch's, the second by the kernel. */
static cek_status weight_make(cek__layer *l, const convolution *c, int64_t first, int64_t second, double *fan_in,
                              int *flow)
{
    int64_t shape[2 + CEK_SPATIAL_MAX] = { first, second };

    *fan_in = (double)second;
    for (int i = 0; i < c->axes; i++) {
        shape[2 + i] = c->windows.kernel[i];
        *fan_in *= (double)shape[2 + i];
    }
    return cek__layer_parameter(l, "weight", 2 + c->axes, shape, *fan_in, flow);
}

/* The part's windows have the kernel's size from the weights. */
static cek__windows of_part(const convolution *c)
{
    cek__windows windows = c->windows;

    for (int i = 0; i < CEK_SPATIAL_MAX; i++)
        windows.kernel[i] = 0;
    return windows;
}

static cek_status conv_add(cek__layer *l, convolution *c, int *y)
{
    cek_status st;
    cek__part part = { .kind = CEK__PART_CONV, .inputs = 2, .input = { l->x[0] } };
    double fan_in;

    CEK_TRY(layer_check(l, c));
    CEK_TRY(windows_fit(l, c));
    layer_note(l, c);
    part.conv.groups = c->groups;
    part.conv.windows = of_part(c);
    CEK_TRY(weight_make(l, c, c->out, l->in.size[1] / c->groups, &fan_in, &part.input[1]));
    CEK_TRY(cek__graph_add(l->graph, &part, y));
    if (!c->no_bias)
        CEK_TRY(cek__bias_add(l, *y, 1, fan_in, y));
out:
    return st;
}

/* What every axis becomes must be there. */
static cek_status transposed_fit(const cek__layer *l, const convolution *c)
{
    cek_status st = CEK_OK;
    const cek__windows *w = &c->windows;
    char text[CEK__SHAPE_TEXT], kernel[CEK__AXES_TEXT], padding[CEK__PADDING_TEXT];

    if (c->same)
        CEK_FAIL(CEK_INVALID, "the same size is not to be had of one that is transposed");
    for (int i = 0; i < c->axes; i++) {
        int64_t reach, size;

        if (c->more[i] >= w->stride[i])
            CEK_FAIL(CEK_INVALID, "%lld more elements at the end of axis %d, they must be fewer than the stride %lld",
                     (long long)c->more[i], i + 2, (long long)w->stride[i]);
        if (__builtin_mul_overflow(w->dilation[i], w->kernel[i] - 1, &reach) ||
            __builtin_mul_overflow(l->in.size[2 + i] - 1, w->stride[i], &size) ||
            __builtin_add_overflow(size, reach + 1 + c->more[i], &size) || size <= w->pad_lo[i] + w->pad_hi[i])
            CEK_FAIL(CEK_INVALID, "kernel %s with padding %s leaves nothing of axis %d of the input %s",
                     cek__axes_text(c->axes, w->kernel, kernel), cek__padding_text(c->axes, w, padding), i + 2,
                     cek__dims_text(&l->in, text));
    }
out:
    return st;
}

static cek_status transposed_add(cek__layer *l, convolution *c, int *y)
{
    cek_status st;
    cek__windows windows = of_part(c);
    double fan_in;
    int w;

    CEK_TRY(layer_check(l, c));
    CEK_TRY(transposed_fit(l, c));
    layer_note(l, c);
    CEK_TRY(weight_make(l, c, l->in.size[1], c->out / c->groups, &fan_in, &w));
    CEK_TRY(cek__conv_transposed(l->graph, l->x[0], w, &windows, c->groups, c->more, y));
    if (!c->no_bias)
        CEK_TRY(cek__bias_add(l, *y, 1, fan_in, y));
out:
    return st;
}

/* One of the calls. */
typedef struct layer_call {
    const char *function, *kind;
    int axes; /* 0: as many as the input has */
    cek_status (*take)(const char *call, const void *from, int axes, convolution *c);
    cek_status (*add)(cek__layer *l, convolution *c, int *y);
} layer_call;

static cek_status layer_add(cek_model *model, int input, const layer_call *call, const void *layer, int *node)
{
    cek_status st;
    cek__layer l;
    convolution c;
    int axes, y = CEK__NOTHING;

    if (node)
        *node = -1;
    if (!model || !layer)
        return cek__fail(CEK_INVALID, "%s: %s is NULL", call->function, model ? "layer" : "model");
    CEK_TRY(cek__layer_begin(&l, model, call->kind, 1, &input));
    CEK_TRY(cek__image_wanted(&l, call->axes, &axes));
    CEK_TRY(call->take(call->function, layer, axes, &c));
    CEK_TRY(call->add(&l, &c, &y));
out:
    return cek__layer_end(&l, st, y, node);
}

cek_status cek_model_conv(cek_model *model, int input, const cek_conv_layer *layer, int *node)
{
    return layer_add(model, input, &(layer_call){ "cek_model_conv", "conv", 0, layer_take, conv_add }, layer, node);
}

cek_status cek_model_conv_transposed(cek_model *model, int input, const cek_conv_layer *layer, int *node)
{
    return layer_add(model, input,
                     &(layer_call){ "cek_model_conv_transposed", "conv_transposed", 0, layer_take, transposed_add },
                     layer, node);
}

cek_status cek_model_conv2d(cek_model *model, int input, const cek_conv2d_layer *layer, int *node)
{
    return layer_add(model, input, &(layer_call){ "cek_model_conv2d", "conv", 2, image_take, conv_add }, layer, node);
}
