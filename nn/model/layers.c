/* layers.c - the table of layers: shapes, parameters, names (see layers.h). */
#include "nn/model/layers.h"

#include <stdio.h>

#include "core/base/status.h"
#include "nn/graph/parts.h"

/* One spatial axis of a convolution or pool: the output's size, or 0 if the window does not fit. */
static int64_t window_count(int64_t in, uint32_t kernel, uint32_t stride, uint32_t pad, uint32_t dilation)
{
    int64_t room = in + 2 * (int64_t)pad;
    int64_t reach;

    if (__builtin_mul_overflow((int64_t)dilation, (int64_t)kernel - 1, &reach) || reach >= room)
        return 0;
    return (room - reach - 1) / stride + 1;
}

static cek_status image_wanted(const cek__node *input)
{
    char text[CEK__SHAPE_TEXT];

    if (input->shape.rank == 3)
        return CEK_OK;
    return cek__fail(CEK_INVALID, "takes an image C,H,W, its input has the shape %s",
                     cek__shape_text(&input->shape, text));
}

static cek__shape image_shape(int64_t channels, int64_t height, int64_t width)
{
    return (cek__shape){ .rank = 3, .dim = { channels, height, width } };
}

/* ---- convolution ---- */

static cek_status conv_infer(cek__node *node, const cek__node *const inputs[2])
{
    cek_status st;
    const cek_conv2d_layer *c = &node->conv;
    const int64_t *in = inputs[0]->shape.dim;
    char text[CEK__SHAPE_TEXT];
    int64_t h, w;

    CEK_TRY(image_wanted(inputs[0]));
    cek__shape_text(&inputs[0]->shape, text);
    if (c->out_channels < 1 || c->kernel_h < 1 || c->kernel_w < 1)
        CEK_FAIL(CEK_INVALID, "%u output channels, kernel %ux%u: each must be at least 1", c->out_channels, c->kernel_h,
                 c->kernel_w);
    if (in[0] % c->groups != 0 || c->out_channels % c->groups != 0)
        CEK_FAIL(CEK_INVALID, "%u groups do not divide the channels of the input %s and the output channels %u",
                 c->groups, text, c->out_channels);
    h = window_count(in[1], c->kernel_h, c->stride_h, c->pad_h, c->dilation_h);
    w = window_count(in[2], c->kernel_w, c->stride_w, c->pad_w, c->dilation_w);
    if (h < 1 || w < 1)
        CEK_FAIL(CEK_INVALID, "kernel %ux%u (dilation %ux%u) is larger than the input %s with padding %ux%u",
                 c->kernel_h, c->kernel_w, c->dilation_h, c->dilation_w, text, c->pad_h, c->pad_w);
    node->shape = image_shape(c->out_channels, h, w);
    return CEK_OK;
out:
    return st;
}

static int conv_parameters(const cek__node *node, const cek__node *input, cek__parameter_form out[2])
{
    const cek_conv2d_layer *c = &node->conv;
    int64_t in = input->shape.dim[0] / c->groups;
    double fan_in = (double)in * c->kernel_h * c->kernel_w;

    out[0] = (cek__parameter_form){ "weight", 4, { c->out_channels, in, c->kernel_h, c->kernel_w }, fan_in };
    out[1] = (cek__parameter_form){ "bias", 1, { c->out_channels }, fan_in };
    return c->no_bias ? 1 : 2;
}

/* A bias [channels] on y [N,channels,...]. */
static cek_status bias_add(cek__graph *graph, int y, int bias, int *out)
{
    cek_status st;
    cek__dims dims = { .rank = graph->flows[y].dims.rank - 1, .size = { graph->flows[y].dims.size[1], 1, 1, 1 } };

    CEK_TRY(cek__view(graph, bias, &dims, &bias));
    return cek__chain(graph, CEK_PW_ADD, y, bias, out);
out:
    return st;
}

static cek_status conv_compose(const cek__node *node, cek__graph *graph, const int x[2], const int w[2], int *out)
{
    cek_status st;
    const cek_conv2d_layer *c = &node->conv;
    cek__part part = { .kind = CEK__PART_CONV, .inputs = 2, .input = { x[0], w[0] } };

    part.conv.groups = c->groups;
    part.conv.windows = (cek__windows){ .stride = { c->stride_h, c->stride_w },
                                        .dilation = { c->dilation_h, c->dilation_w },
                                        .pad_lo = { c->pad_h, c->pad_w },
                                        .pad_hi = { c->pad_h, c->pad_w } };
    CEK_TRY(cek__graph_add(graph, &part, out));
    return c->no_bias ? CEK_OK : bias_add(graph, *out, w[1], out);
out:
    return st;
}

/* Appends to a text of `cap` bytes that holds `used`; what does not fit is left out. */
__attribute__((format(printf, 4, 5))) static void append(char *text, size_t cap, size_t *used, const char *fmt, ...)
{
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(text + *used, cap - *used, fmt, args);
    va_end(args);
    if (n > 0)
        *used = *used + (size_t)n < cap ? *used + (size_t)n : cap - 1;
}

/* ", stride 2" or ", stride 2x1"; nothing where both are the usual value. */
static void append_pair(char *text, size_t cap, size_t *used, const char *name, uint32_t h, uint32_t w, uint32_t usual)
{
    if (h == usual && w == usual)
        return;
    if (h == w)
        append(text, cap, used, ", %s %u", name, h);
    else
        append(text, cap, used, ", %s %ux%u", name, h, w);
}

static void conv_describe(const cek__node *node, char *text, size_t cap)
{
    const cek_conv2d_layer *c = &node->conv;
    size_t used = 0;

    append(text, cap, &used, "%ux%u", c->kernel_h, c->kernel_w);
    append_pair(text, cap, &used, "stride", c->stride_h, c->stride_w, 1);
    append_pair(text, cap, &used, "padding", c->pad_h, c->pad_w, 0);
    append_pair(text, cap, &used, "dilation", c->dilation_h, c->dilation_w, 1);
    if (c->groups != 1)
        append(text, cap, &used, ", groups %u", c->groups);
    if (c->no_bias)
        append(text, cap, &used, ", no bias");
}

/* ---- linear ---- */

static cek_status linear_infer(cek__node *node, const cek__node *const inputs[2])
{
    char text[CEK__SHAPE_TEXT];

    if (inputs[0]->shape.rank != 1)
        return cek__fail(CEK_INVALID, "takes features, its input is the image %s: put a flatten layer between them",
                         cek__shape_text(&inputs[0]->shape, text));
    if (node->linear.out < 1 || node->linear.out >= CEK__ELEMENTS_MAX)
        return cek__fail(CEK_INVALID, "%lld outputs", (long long)node->linear.out);
    node->shape = (cek__shape){ .rank = 1, .dim = { node->linear.out } };
    return CEK_OK;
}

static int linear_parameters(const cek__node *node, const cek__node *input, cek__parameter_form out[2])
{
    int64_t in = input->shape.dim[0];

    out[0] = (cek__parameter_form){ "weight", 2, { node->linear.out, in }, (double)in };
    out[1] = (cek__parameter_form){ "bias", 1, { node->linear.out }, (double)in };
    return node->linear.bias ? 2 : 1;
}

/* y [N,out] = x [N,in] w[out,in]^T */
static cek_status linear_compose(const cek__node *node, cek__graph *graph, const int x[2], const int w[2], int *out)
{
    cek_status st;
    cek__part part = { .kind = CEK__PART_PRODUCT,
                       .inputs = 2,
                       .input = { x[0], w[0] },
                       .product = { { .split = 1 }, { .split = 1, .transposed = true } } };

    CEK_TRY(cek__graph_add(graph, &part, out));
    return node->linear.bias ? bias_add(graph, *out, w[1], out) : CEK_OK;
out:
    return st;
}

static void linear_describe(const cek__node *node, char *text, size_t cap)
{
    snprintf(text, cap, "%s", node->linear.bias ? "" : "no bias");
}

/* ---- pool ---- */

static cek_status pool_infer(cek__node *node, const cek__node *const inputs[2])
{
    cek_status st;
    cek_pool2d_layer *p = &node->pool;
    const int64_t *in = inputs[0]->shape.dim;
    char text[CEK__SHAPE_TEXT];
    int64_t h, w;

    CEK_TRY(image_wanted(inputs[0]));
    cek__shape_text(&inputs[0]->shape, text);
    if (p->mode != CEK_POOL_MAX && p->mode != CEK_POOL_AVERAGE)
        CEK_FAIL(CEK_INVALID, "mode %u is neither maximum nor average", p->mode);
    if ((p->kernel_h == 0 && in[1] > UINT32_MAX) || (p->kernel_w == 0 && in[2] > UINT32_MAX))
        CEK_FAIL(CEK_INVALID, "an input of %s is too large for a global pool", text);
    p->kernel_h = p->kernel_h ? p->kernel_h : (uint32_t)in[1];
    p->kernel_w = p->kernel_w ? p->kernel_w : (uint32_t)in[2];
    p->stride_h = p->stride_h ? p->stride_h : p->kernel_h;
    p->stride_w = p->stride_w ? p->stride_w : p->kernel_w;
    if (p->pad_h > p->kernel_h / 2 || p->pad_w > p->kernel_w / 2)
        CEK_FAIL(CEK_INVALID, "padding %ux%u is more than half of the kernel %ux%u", p->pad_h, p->pad_w, p->kernel_h,
                 p->kernel_w);
    h = window_count(in[1], p->kernel_h, p->stride_h, p->pad_h, 1);
    w = window_count(in[2], p->kernel_w, p->stride_w, p->pad_w, 1);
    if (h < 1 || w < 1)
        CEK_FAIL(CEK_INVALID, "kernel %ux%u is larger than the input %s with padding %ux%u", p->kernel_h, p->kernel_w,
                 text, p->pad_h, p->pad_w);
    node->shape = image_shape(in[0], h, w);
    return CEK_OK;
out:
    return st;
}

static cek_status pool_compose(const cek__node *node, cek__graph *graph, const int x[2], const int w[2], int *out)
{
    const cek_pool2d_layer *p = &node->pool;
    cek__part part = { .kind = CEK__PART_POOL, .inputs = 1, .input = { x[0] } };

    (void)w;
    part.pool.mode = p->mode;
    part.pool.count_pad = p->mode == CEK_POOL_AVERAGE;
    part.pool.windows = (cek__windows){ .kernel = { p->kernel_h, p->kernel_w },
                                        .stride = { p->stride_h, p->stride_w },
                                        .pad_lo = { p->pad_h, p->pad_w },
                                        .pad_hi = { p->pad_h, p->pad_w } };
    return cek__graph_add(graph, &part, out);
}

static void pool_describe(const cek__node *node, char *text, size_t cap)
{
    const cek_pool2d_layer *p = &node->pool;
    size_t used = 0;

    append(text, cap, &used, "%s %ux%u", p->mode == CEK_POOL_MAX ? "max" : "average", p->kernel_h, p->kernel_w);
    if (p->stride_h != p->kernel_h || p->stride_w != p->kernel_w)
        append_pair(text, cap, &used, "stride", p->stride_h, p->stride_w, 0);
    append_pair(text, cap, &used, "padding", p->pad_h, p->pad_w, 0);
}

/* ---- elementwise, flatten, add ---- */

static cek_status same_infer(cek__node *node, const cek__node *const inputs[2])
{
    node->shape = inputs[0]->shape;
    return CEK_OK;
}

static cek_status activation_infer(cek__node *node, const cek__node *const inputs[2])
{
    if (!cek__activation_name(node->activation))
        return cek__fail(CEK_INVALID, "unknown kind %u", node->activation);
    return same_infer(node, inputs);
}

static cek_status activation_compose(const cek__node *node, cek__graph *graph, const int x[2], const int w[2], int *out)
{
    static const uint32_t codes[] = {
        [CEK_ACT_RELU] = CEK_PW_RELU,
        [CEK_ACT_TANH] = CEK_PW_TANH,
        [CEK_ACT_SIGMOID] = CEK_PW_SIGMOID,
        [CEK_ACT_GELU] = CEK_PW_GELU,
    };

    (void)w;
    return cek__chain(graph, codes[node->activation], x[0], CEK__NOTHING, out);
}

static void activation_describe(const cek__node *node, char *text, size_t cap)
{
    snprintf(text, cap, "%s", cek__activation_name(node->activation));
}

static cek_status dropout_infer(cek__node *node, const cek__node *const inputs[2])
{
    if (!(node->dropout >= 0 && node->dropout < 1))
        return cek__fail(CEK_INVALID, "probability %g, it must be at least 0 and below 1", node->dropout);
    return same_infer(node, inputs);
}

static cek_status dropout_compose(const cek__node *node, cek__graph *graph, const int x[2], const int w[2], int *out)
{
    cek__part part = { .kind = CEK__PART_DROPOUT, .inputs = 1, .input = { x[0] } };

    (void)w;
    part.dropout.p = node->dropout;
    part.dropout.stream = (uint32_t)graph->node;
    return cek__graph_add(graph, &part, out);
}

static void dropout_describe(const cek__node *node, char *text, size_t cap)
{
    snprintf(text, cap, "%g", node->dropout);
}

static cek_status flatten_infer(cek__node *node, const cek__node *const inputs[2])
{
    node->shape = (cek__shape){ .rank = 1, .dim = { cek__shape_elements(&inputs[0]->shape) } };
    return CEK_OK;
}

static cek_status flatten_compose(const cek__node *node, cek__graph *graph, const int x[2], const int w[2], int *out)
{
    (void)w;
    return cek__view(graph, x[0], &(cek__dims){ .rank = 2, .samples = 1, .size = { 1, node->shape.dim[0] } }, out);
}

static cek_status add_compose(const cek__node *node, cek__graph *graph, const int x[2], const int w[2], int *out)
{
    (void)node;
    (void)w;
    return cek__chain(graph, CEK_PW_ADD, x[0], x[1], out);
}

static cek_status add_infer(cek__node *node, const cek__node *const inputs[2])
{
    char a[CEK__SHAPE_TEXT], b[CEK__SHAPE_TEXT];

    if (!cek__shape_equal(&inputs[0]->shape, &inputs[1]->shape))
        return cek__fail(CEK_INVALID, "the shapes %s of node %d and %s of node %d differ",
                         cek__shape_text(&inputs[0]->shape, a), node->input[0], cek__shape_text(&inputs[1]->shape, b),
                         node->input[1]);
    node->shape = inputs[0]->shape;
    return CEK_OK;
}

/* Its shape is what the model was made with. */
static cek_status input_infer(cek__node *node, const cek__node *const inputs[2])
{
    (void)node;
    (void)inputs;
    return CEK_OK;
}

static const cek__layer_class classes[CEK__LAYER_COUNT] = {
    [CEK__LAYER_INPUT] = { "input", input_infer, NULL, NULL, NULL },
    [CEK__LAYER_CONV] = { "conv", conv_infer, conv_parameters, conv_compose, conv_describe },
    [CEK__LAYER_LINEAR] = { "linear", linear_infer, linear_parameters, linear_compose, linear_describe },
    [CEK__LAYER_ACTIVATION] = { "activation", activation_infer, NULL, activation_compose, activation_describe },
    [CEK__LAYER_POOL] = { "pool", pool_infer, NULL, pool_compose, pool_describe },
    [CEK__LAYER_DROPOUT] = { "dropout", dropout_infer, NULL, dropout_compose, dropout_describe },
    [CEK__LAYER_FLATTEN] = { "flatten", flatten_infer, NULL, flatten_compose, NULL },
    [CEK__LAYER_ADD] = { "add", add_infer, NULL, add_compose, NULL },
};

const cek__layer_class *cek__layer_class_of(cek__layer layer)
{
    return &classes[layer];
}

const char *cek__activation_name(cek_activation activation)
{
    static const char *const names[] = {
        [CEK_ACT_RELU] = "relu",
        [CEK_ACT_TANH] = "tanh",
        [CEK_ACT_SIGMOID] = "sigmoid",
        [CEK_ACT_GELU] = "gelu",
    };

    return activation < sizeof names / sizeof *names ? names[activation] : NULL;
}
