/* conv2d.c - cek_conv2d: options, shapes with the errors that people make, one convolution of plugin.h. */
#include <inttypes.h>
#include <string.h>

#include "core/base/options.h"
#include "core/tensor/copy.h"
#include "core/tensor/eager.h"

static cek_status options_take(const cek_conv2d_options *given, cek_conv2d_options *out)
{
    cek_status st = cek__options_take("cek_conv2d", out, sizeof *out, given);

    out->groups += out->groups == 0;
    out->stride_h += out->stride_h == 0;
    out->stride_w += out->stride_w == 0;
    out->dilation_h += out->dilation_h == 0;
    out->dilation_w += out->dilation_w == 0;
    if (st == CEK_OK && out->math > CEK_MATH_FAST)
        return cek__fail(CEK_INVALID, "cek_conv2d: math %u is none of CEK_MATH_F32, _STRICT, _TF32 and _FAST",
                         out->math);
    return st;
}

/* A bias is added to sums, so it has their type: f32 beside f16 and bf16. */
static cek_status bias_check(const cek_tensor *x, const cek_tensor *w, const cek_tensor *bias)
{
    if (bias == NULL)
        return CEK_OK;
    if (bias->device != x->device)
        return cek__fail(CEK_INVALID,
                         "cek_conv2d: tensors on different devices: x is on %s, bias on %s; move one with "
                         "cek_tensor_to",
                         x->device->name, bias->device->name);
    if (bias->type != cek__dtype_sum(x->type))
        return cek__fail(CEK_INVALID, "cek_conv2d: bias is %s, beside x of %s it has to be %s; cast it first",
                         cek_dtype_name(bias->type), cek_dtype_name(x->type), cek_dtype_name(cek__dtype_sum(x->type)));
    if (bias->shape.rank != 1 || bias->shape.dims[0] != w->shape.dims[0])
        return cek__fail(CEK_INVALID,
                         "cek_conv2d: bias %s and weight %s: a bias for each of %" PRId64 " output channels "
                         "is needed",
                         CEK__SHAPE_TEXT_OF(&bias->shape), CEK__SHAPE_TEXT_OF(&w->shape), w->shape.dims[0]);
    return CEK_OK;
}

static cek_status channels_check(const cek__shape *x, const cek__shape *w, uint32_t groups)
{
    if (x->rank != 4 || w->rank != 4)
        return cek__fail(CEK_INVALID, "cek_conv2d: x %s and weight %s: [n,h,w,in] and [out,kh,kw,in/groups] are needed",
                         CEK__SHAPE_TEXT_OF(x), CEK__SHAPE_TEXT_OF(w));
    if (x->dims[3] % groups != 0 || w->dims[0] % groups != 0)
        return cek__fail(CEK_INVALID,
                         "cek_conv2d: x %s and weight %s: %" PRId64 " input and %" PRId64 " output channels "
                         "are not divisible into %u groups",
                         CEK__SHAPE_TEXT_OF(x), CEK__SHAPE_TEXT_OF(w), x->dims[3], w->dims[0], groups);
    if (x->dims[3] / groups != w->dims[3])
        return cek__fail(CEK_INVALID,
                         "cek_conv2d: x %s and weight %s: x has %" PRId64 " channels, the weight is for %" PRId64,
                         CEK__SHAPE_TEXT_OF(x), CEK__SHAPE_TEXT_OF(w), x->dims[3], w->dims[3] * groups);
    return CEK_OK;
}

static cek_status extent(const char *axis, const cek__shape *x, const cek__shape *w, int64_t in, int64_t kernel,
                         int64_t stride, int64_t dilation, int64_t padding, int64_t *out)
{
    int64_t reach, room;

    if (__builtin_mul_overflow(dilation, kernel - 1, &reach) || __builtin_add_overflow(in, padding, &room) ||
        room <= reach)
        return cek__fail(CEK_INVALID,
                         "cek_conv2d: x %s and weight %s: the kernel is larger than the padded image in %s",
                         CEK__SHAPE_TEXT_OF(x), CEK__SHAPE_TEXT_OF(w), axis);
    *out = (room - reach - 1) / stride + 1;
    return CEK_OK;
}

static cek_status output_shape(const cek__shape *x, const cek__shape *w, const cek_conv2d_options *o, size_t element,
                               cek__shape *out)
{
    cek_status st;
    int64_t dims[4] = { x->dims[0], 0, 0, w->dims[0] };

    CEK_TRY(extent("height", x, w, x->dims[1], w->dims[1], o->stride_h, o->dilation_h,
                   (int64_t)o->pad_top + o->pad_bottom, &dims[1]));
    CEK_TRY(extent("width", x, w, x->dims[2], w->dims[2], o->stride_w, o->dilation_w,
                   (int64_t)o->pad_left + o->pad_right, &dims[2]));
    CEK_TRY(cek__shape_make("cek_conv2d", 4, dims, element, out));
out:
    return st;
}

static cek_conv_desc describe(const cek_tensor *x, const cek_tensor *w, const cek_conv2d_options *o, bool bias)
{
    const int64_t *xd = x->shape.dims, *wd = w->shape.dims;

    return (cek_conv_desc){
        .op = { .size = sizeof(cek_conv_desc),
                .kind = CEK_OP_CONV_FORWARD,
                .math = o->math,
                .operands = CEK_BIT(CEK_CONV_FORWARD_X) | CEK_BIT(CEK_CONV_FORWARD_W) | CEK_BIT(CEK_CONV_FORWARD_Y) |
                            (bias ? CEK_BIT(CEK_CONV_FORWARD_BIAS) : 0) },
        .spatial = 2,
        .groups = o->groups,
        .batch = (uint64_t)xd[0],
        .in_channels = (uint64_t)xd[3],
        .out_channels = (uint64_t)wd[0],
        .in = { (uint64_t)xd[1], (uint64_t)xd[2] },
        .kernel = { (uint64_t)wd[1], (uint64_t)wd[2] },
        .stride = { o->stride_h, o->stride_w },
        .dilation = { o->dilation_h, o->dilation_w },
        .pad_lo = { o->pad_top, o->pad_left },
        .pad_hi = { o->pad_bottom, o->pad_right },
        .x_type = x->type,
        .w_type = w->type,
        .y_type = x->type,
    };
}

cek_status cek_conv2d(const cek_tensor *x, const cek_tensor *weight, const cek_tensor *bias,
                      const cek_conv2d_options *options, cek_tensor **out)
{
    cek_status st;
    cek_conv2d_options o;
    cek_conv_desc desc;
    cek__shape shape;
    cek_tensor *y = NULL, *px = NULL, *pw = NULL, *pb = NULL;
    const char *const names[] = { "x", "weight" };

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(x);
    CEK__NOT_NULL(weight);
    CEK_TRY(options_take(options, &o));
    CEK_TRY(cek__tensors_check("cek_conv2d", 2, names, (const cek_tensor *[]){ x, weight }));
    CEK_TRY(channels_check(&x->shape, &weight->shape, o.groups));
    CEK_TRY(bias_check(x, weight, bias));
    CEK_TRY(output_shape(&x->shape, &weight->shape, &o, cek_dtype_bytes(x->type), &shape));
    CEK_TRY(cek__tensor_new("cek_conv2d", x->device, x->type, &shape, &y));
    CEK_TRY(cek__tensor_packed("cek_conv2d", x, &px));
    CEK_TRY(cek__tensor_packed("cek_conv2d", weight, &pw));
    if (bias != NULL)
        CEK_TRY(cek__tensor_packed("cek_conv2d", bias, &pb));
    cek_ref operands[] = { [CEK_CONV_FORWARD_X] = cek_tensor_ref(px),
                           [CEK_CONV_FORWARD_W] = cek_tensor_ref(pw),
                           [CEK_CONV_FORWARD_Y] = cek_tensor_ref(y),
                           [CEK_CONV_FORWARD_BIAS] = cek_tensor_ref(pb) };
    desc = describe(x, weight, &o, bias != NULL);
    CEK_TRY(cek__eager_run("cek_conv2d", x->device, &desc.op, operands, bias != NULL ? 4 : 3));
    *out = y;
    y = NULL;
out:
    cek_tensor_free(px);
    cek_tensor_free(pw);
    cek_tensor_free(pb);
    cek_tensor_free(y);
    return st;
}
