/* conv.c - convolution over images. */
#include "core/base/options.h"
#include "core/base/status.h"
#include "nn/layers/bias.h"
#include "nn/layers/window.h"

static void or_one(uint32_t *value)
{
    if (*value == 0)
        *value = 1;
}

static cek_status layer_take(const cek_conv2d_layer *from, cek_conv2d_layer *c)
{
    cek_status st;

    CEK_TRY(cek__options_take("cek_model_conv2d", c, sizeof *c, from));
    or_one(&c->stride_h);
    or_one(&c->stride_w);
    or_one(&c->dilation_h);
    or_one(&c->dilation_w);
    or_one(&c->groups);
out:
    return st;
}

static cek_status layer_check(const cek__layer *l, const cek_conv2d_layer *c)
{
    cek_status st;
    const int64_t *in = l->in.size + 1;
    char text[CEK__SHAPE_TEXT];

    CEK_TRY(cek__image_wanted(l));
    cek__dims_text(&l->in, text);
    if (c->out_channels < 1 || c->kernel_h < 1 || c->kernel_w < 1)
        CEK_FAIL(CEK_INVALID, "%u output channels, kernel %ux%u: each must be at least 1", c->out_channels, c->kernel_h,
                 c->kernel_w);
    if (in[0] % c->groups != 0 || c->out_channels % c->groups != 0)
        CEK_FAIL(CEK_INVALID, "%u groups do not divide the channels of the input %s and the output channels %u",
                 c->groups, text, c->out_channels);
    if (cek__window_count(in[1], c->kernel_h, c->stride_h, c->pad_h, c->dilation_h) < 1 ||
        cek__window_count(in[2], c->kernel_w, c->stride_w, c->pad_w, c->dilation_w) < 1)
        CEK_FAIL(CEK_INVALID, "kernel %ux%u (dilation %ux%u) is larger than the input %s with padding %ux%u",
                 c->kernel_h, c->kernel_w, c->dilation_h, c->dilation_w, text, c->pad_h, c->pad_w);
out:
    return st;
}

static void layer_note(cek__layer *l, const cek_conv2d_layer *c)
{
    cek__layer_note(l, "%ux%u", c->kernel_h, c->kernel_w);
    cek__note_pair(l, "stride", c->stride_h, c->stride_w, 1);
    cek__note_pair(l, "padding", c->pad_h, c->pad_w, 0);
    cek__note_pair(l, "dilation", c->dilation_h, c->dilation_w, 1);
    if (c->groups != 1)
        cek__layer_note(l, ", groups %u", c->groups);
    if (c->no_bias)
        cek__layer_note(l, ", no bias");
}

cek_status cek_model_conv2d(cek_model *model, int input, const cek_conv2d_layer *layer, int *node)
{
    cek_status st;
    cek__layer l;
    cek_conv2d_layer c = { 0 };
    cek__part part = { .kind = CEK__PART_CONV, .inputs = 2 };
    int64_t in;
    double fan_in;
    int y = CEK__NOTHING;

    if (node)
        *node = -1;
    CEK__NOT_NULL(model);
    CEK__NOT_NULL(layer);
    CEK_TRY(cek__layer_begin(&l, model, "conv", 1, &input));
    CEK_TRY(layer_take(layer, &c));
    CEK_TRY(layer_check(&l, &c));
    layer_note(&l, &c);
    in = l.in.size[1] / c.groups;
    fan_in = (double)in * c.kernel_h * c.kernel_w;
    part.input[0] = l.x[0];
    part.conv.groups = c.groups;
    part.conv.windows = (cek__windows){ .stride = { c.stride_h, c.stride_w },
                                        .dilation = { c.dilation_h, c.dilation_w },
                                        .pad_lo = { c.pad_h, c.pad_w },
                                        .pad_hi = { c.pad_h, c.pad_w } };
    CEK_TRY(cek__layer_parameter(&l, "weight", 4, (int64_t[]){ c.out_channels, in, c.kernel_h, c.kernel_w }, fan_in,
                                 &part.input[1]));
    CEK_TRY(cek__graph_add(l.graph, &part, &y));
    if (!c.no_bias)
        CEK_TRY(cek__bias_add(&l, y, 1, fan_in, &y));
out:
    return cek__layer_end(&l, st, y, node);
}
