/* windows.c - convolutions and pools (see operators.h). */
#include <string.h>

#include "nn/layers/pooling.h"
#include "nn/onnx/operators.h"

enum { PADS, SAME_UPPER, SAME_LOWER, VALID }; /* auto_pad */

/* What a node says of windows over the axes behind N,C. */
typedef struct windows {
    cek__windows windows;
    int axes, automatic;
    bool ceil;
} windows;

/* As many numbers as there are axes, or none. */
static cek_status numbers_take(cek__onnx_call *c, const char *name, int wanted, int64_t otherwise, int64_t *out)
{
    cek_status st;
    int64_t list[CEK__CALL_LIST];
    int count;

    CEK_TRY(cek__call_ints(c, name, list, &count));
    if (count >= 0 && count != wanted)
        CEK_FAIL(CEK_BAD_INPUT, "%d numbers in %s, there are %d", count, name, wanted);
    for (int i = 0; i < wanted; i++) {
        out[i] = count >= 0 ? list[i] : otherwise;
        if (out[i] < 0 || out[i] > INT32_MAX)
            CEK_FAIL(CEK_UNSUPPORTED, "%lld among its %s", (long long)out[i], name);
    }
out:
    return st;
}

static cek_status windows_take(cek__onnx_call *c, const cek__dims *x, const int64_t *kernel, windows *out)
{
    cek_status st;
    int64_t pads[2 * CEK_SPATIAL_MAX];
    static const char *const automatic[] = { "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", NULL };
    cek__windows *w = &out->windows;

    *out = (windows){ .axes = x->rank - 2, .ceil = cek__call_int(c, "ceil_mode", 0) != 0 };
    if (out->axes < 1 || out->axes > 3)
        CEK_FAIL(CEK_UNSUPPORTED, "windows over %d axes, there are 1 to 3", out->axes);
    CEK_TRY(cek__call_word(c, "auto_pad", automatic, &out->automatic));
    CEK_TRY(numbers_take(c, "strides", out->axes, 1, w->stride));
    CEK_TRY(numbers_take(c, "dilations", out->axes, 1, w->dilation));
    CEK_TRY(numbers_take(c, "pads", 2 * out->axes, 0, pads));
    for (int i = 0; i < out->axes; i++) {
        if (w->stride[i] < 1 || w->dilation[i] < 1 || kernel[i] < 1)
            CEK_FAIL(CEK_BAD_INPUT, "a stride, dilation or window of 0");
        if (kernel[i] > INT32_MAX)
            CEK_FAIL(CEK_UNSUPPORTED, "a window of %lld", (long long)kernel[i]);
        w->kernel[i] = kernel[i];
        if (out->automatic == PADS) {
            w->pad_lo[i] = pads[i];
            w->pad_hi[i] = pads[out->axes + i];
        } else if (out->automatic != VALID) {
            cek__windows_same(w, i, x->size[2 + i], kernel[i]);
        }
        if (out->automatic == SAME_LOWER) {
            int64_t less = w->pad_lo[i];

            w->pad_lo[i] = w->pad_hi[i];
            w->pad_hi[i] = less;
        }
    }
out:
    return st;
}

/* The third input, a number for each channel. */
static cek_status bias_add(cek__onnx_call *c)
{
    cek_status st = CEK_OK;
    cek__dims dims = { .rank = cek__call_dims(c, c->out[0])->rank - 1, .size = { 1, 1, 1, 1 } };
    int bias;

    if (!cek__call_has(c, 2))
        return CEK_OK;
    CEK_TRY(cek__call_weight(c, 2, &bias));
    dims.size[0] = cek__call_dims(c, c->out[0])->size[1];
    CEK_TRY(cek__view(c->graph, bias, &dims, &bias));
    st = cek__chain(c->graph, CEK_PW_ADD, c->out[0], bias, &c->out[0]);
out:
    return st;
}

static cek_status image_take(cek__onnx_call *c, int *x, int *w)
{
    cek_status st;

    CEK_TRY(cek__call_flow(c, 0, x));
    CEK_TRY(cek__call_weight(c, 1, w));
    if (cek__call_dims(c, *x)->rank != cek__call_dims(c, *w)->rank)
        CEK_FAIL(CEK_BAD_INPUT, "weights of %d axes for an image of %d", cek__call_dims(c, *w)->rank,
                 cek__call_dims(c, *x)->rank);
out:
    return st;
}

cek_status cek__onnx_conv(cek__onnx_call *c)
{
    cek_status st;
    cek__part part = { .kind = CEK__PART_CONV, .inputs = 2 };
    windows w;

    CEK_TRY(image_take(c, &part.input[0], &part.input[1]));
    CEK_TRY(windows_take(c, cek__call_dims(c, part.input[0]), cek__call_dims(c, part.input[1])->size + 2, &w));
    part.conv.windows = w.windows;
    part.conv.groups = cek__call_int(c, "group", 1);
    memset(part.conv.windows.kernel, 0, sizeof part.conv.windows.kernel); /* the weights say it */
    CEK_TRY(cek__graph_add(c->graph, &part, &c->out[0]));
    st = bias_add(c);
out:
    return st;
}

/* Padding as the wanted size has it: what is over is cut off behind, or in front. */
static void transposed_pads(const cek__dims *x, int64_t wanted, int64_t more, int axis, windows *of)
{
    cek__windows *w = &of->windows;
    int64_t all = w->stride[axis] * (x->size[2 + axis] - 1) + more + (w->kernel[axis] - 1) * w->dilation[axis] + 1 -
                  wanted;

    all = all > 0 ? all : 0;
    w->pad_lo[axis] = of->automatic == SAME_UPPER ? all / 2 : all - all / 2;
    w->pad_hi[axis] = all - w->pad_lo[axis];
}

cek_status cek__onnx_conv_transposed(cek__onnx_call *c)
{
    cek_status st;
    int64_t more[CEK_SPATIAL_MAX], shape[CEK_SPATIAL_MAX];
    const cek__dims *image;
    int x, weights;
    windows w;

    CEK_TRY(image_take(c, &x, &weights));
    image = cek__call_dims(c, x);
    CEK_TRY(windows_take(c, image, cek__call_dims(c, weights)->size + 2, &w));
    CEK_TRY(numbers_take(c, "output_padding", w.axes, 0, more));
    CEK_TRY(numbers_take(c, "output_shape", w.axes, 0, shape));
    for (int i = 0; i < w.axes; i++) {
        if (shape[i] || w.automatic == SAME_UPPER || w.automatic == SAME_LOWER)
            transposed_pads(image, shape[i] ? shape[i] : image->size[2 + i] * w.windows.stride[i], more[i], i, &w);
        if (shape[i]) /* where no padding gives so much, the rest is put behind */
            more[i] = shape[i] - (w.windows.stride[i] * (image->size[2 + i] - 1) +
                                  (w.windows.kernel[i] - 1) * w.windows.dilation[i] + 1 - w.windows.pad_lo[i] -
                                  w.windows.pad_hi[i]);
    }
    memset(w.windows.kernel, 0, sizeof w.windows.kernel);
    CEK_TRY(cek__conv_transposed(c->graph, x, weights, &w.windows, cek__call_int(c, "group", 1), more, &c->out[0]));
    st = bias_add(c);
out:
    return st;
}

/* ---- pools ---- */

static cek_status pooling_take(cek__onnx_call *c, int *x, cek__pooling *out)
{
    cek_status st;
    int64_t kernel[CEK_SPATIAL_MAX];
    windows w;

    CEK_TRY(cek__call_flow(c, 0, x));
    if (cek__call_dims(c, *x)->rank < 3 || cek__call_dims(c, *x)->rank > 5)
        CEK_FAIL(CEK_UNSUPPORTED, "windows over %d axes, there are 1 to 3", cek__call_dims(c, *x)->rank - 2);
    CEK_TRY(numbers_take(c, "kernel_shape", cek__call_dims(c, *x)->rank - 2, 0, kernel));
    CEK_TRY(windows_take(c, cek__call_dims(c, *x), kernel, &w));
    *out = (cek__pooling){ .mode = CEK_POOL_AVERAGE, .windows = w.windows, .ceil = w.ceil, .count_pad = true };
out:
    return st;
}

cek_status cek__onnx_pool(cek__onnx_call *c)
{
    cek_status st;
    cek__pooling pooling;
    int x;

    CEK_TRY(pooling_take(c, &x, &pooling));
    pooling.mode = c->argument;
    pooling.count_pad = cek__call_int(c, "count_include_pad", 0) != 0;
    st = cek__pool(c->graph, x, &pooling, &c->out[0]);
out:
    return st;
}

/* (the sum of |x|^p)^(1/p) over each window: its mean times how many elements it has, those of the
 * padding among them. */
cek_status cek__onnx_lp_pool(cek__onnx_call *c)
{
    cek_status st;
    const double p = (double)cek__call_int(c, "p", 2);
    const cek_pointwise_instruction power[] = { { .code = CEK_PW_ABS },
                                                { .code = CEK_PW_CONST, .imm = p },
                                                { .code = CEK_PW_POW, .a = 1, .b = 2 } };
    cek_pointwise_instruction root[] = { { .code = CEK_PW_MUL_IMM, .imm = 1 },
                                         { .code = CEK_PW_CONST, .imm = 1 / p },
                                         { .code = CEK_PW_POW, .a = 1, .b = 2 } };
    cek__pooling pooling;
    int x;

    CEK_TRY(pooling_take(c, &x, &pooling));
    if (p < 1 || pooling.ceil)
        CEK_FAIL(CEK_UNSUPPORTED, "the norm %g, or sizes that are rounded up", p);
    for (int i = 0; i < cek__call_dims(c, x)->rank - 2; i++)
        root[0].imm *= (double)pooling.windows.kernel[i];
    CEK_TRY(cek__call_chain(c, 1, &x, 3, power));
    CEK_TRY(cek__pool(c->graph, c->out[0], &pooling, &x));
    st = cek__call_chain(c, 1, &x, 3, root);
out:
    return st;
}

/* Over the whole image, whose axes stay with one element. */
cek_status cek__onnx_global_pool(cek__onnx_call *c)
{
    cek_status st;
    uint32_t axes;
    int x;

    CEK_TRY(cek__call_flow(c, 0, &x));
    if (cek__call_dims(c, x)->rank < 3)
        CEK_FAIL(CEK_BAD_INPUT, "takes an image");
    axes = ((1u << cek__call_dims(c, x)->rank) - 1) & ~3u;
    CEK_TRY(cek__reduce(c->graph, x, c->argument, axes, &c->out[0]));
    st = cek__keep(c->graph, c->out[0], x, axes, &c->out[0]);
out:
    return st;
}

/* x / (bias + alpha * mean of the squares of `size` channels around it)^beta */
cek_status cek__onnx_lrn(cek__onnx_call *c)
{
    cek_status st;
    const int64_t size = cek__call_int(c, "size", 0);
    cek__pooling pooling = { .mode = CEK_POOL_AVERAGE, .count_pad = true };
    const cek_pointwise_instruction code[] = {
        { .code = CEK_PW_MUL_IMM, .a = 1, .imm = cek__call_float(c, "alpha", 1e-4) },
        { .code = CEK_PW_ADD_IMM, .a = 2, .imm = cek__call_float(c, "bias", 1) },
        { .code = CEK_PW_CONST, .imm = cek__call_float(c, "beta", 0.75) },
        { .code = CEK_PW_POW, .a = 3, .b = 4 },
        { .code = CEK_PW_DIV, .a = 0, .b = 5 },
    };
    cek__dims dims, flat;
    int x, squares;

    CEK_TRY(cek__call_flow(c, 0, &x));
    dims = *cek__call_dims(c, x);
    if (dims.rank < 3 || size < 1 || size > INT16_MAX)
        CEK_FAIL(CEK_UNSUPPORTED, "%lld channels at a time, of %d axes", (long long)size, dims.rank);
    flat = (cek__dims){ .rank = 4, .samples = dims.samples, .size = { dims.size[0], 1, dims.size[1] } };
    flat.size[3] = cek__dims_elements(&dims, 2, dims.rank, 1);
    pooling.windows = (cek__windows){
        .kernel = { size, 1 }, .stride = { 1, 1 }, .pad_lo = { (size - 1) / 2 }, .pad_hi = { size / 2 }
    };
    CEK_TRY(cek__chain(c->graph, CEK_PW_MUL, x, x, &squares));
    CEK_TRY(cek__view(c->graph, squares, &flat, &squares));
    CEK_TRY(cek__pool(c->graph, squares, &pooling, &squares));
    CEK_TRY(cek__view(c->graph, squares, &dims, &squares));
    st = cek__call_chain(c, 2, (int[]){ x, squares }, 5, code);
out:
    return st;
}
