/* SPDX-License-Identifier: MIT
 * validate_window.c - what convolution and pool descriptors may say: windows that slide over NHWC images. */
#include "backends/common/validate_inside.h"

/* The part that convolution and pooling share. */
typedef struct window {
    uint32_t spatial;
    const uint64_t *in, *kernel, *stride, *dilation, *pad_lo, *pad_hi;
} window;

static cek_status window_check(const cek__validation *check, const window *w, uint64_t *out)
{
    if (w->spatial < 1 || w->spatial >= CEK_SPATIAL_MAX)
        return CEK__INVALID(check, "spatial is %u, not 1 to %u", w->spatial, CEK_SPATIAL_MAX - 1);
    for (uint32_t i = 0; i < CEK_SPATIAL_MAX; i++) {
        if (i >= w->spatial) {
            if (w->in[i] || w->kernel[i] || w->stride[i] || w->dilation[i] || w->pad_lo[i] || w->pad_hi[i])
                return CEK__INVALID(check, "spatial is %u, but entry %u is not 0", w->spatial, i);
            continue;
        }
        if (!w->in[i] || !w->kernel[i] || !w->stride[i] || !w->dilation[i])
            return CEK__INVALID(check, "in, kernel, stride or dilation %u is 0", i);
        if (!cek__window_out(w->in[i], w->kernel[i], w->stride[i], w->dilation[i], w->pad_lo[i], w->pad_hi[i], &out[i]))
            return CEK__INVALID(check, "dimension %u: kernel %llu, dilation %llu does not fit in %llu + %llu + %llu", i,
                                (unsigned long long)w->kernel[i], (unsigned long long)w->dilation[i],
                                (unsigned long long)w->pad_lo[i], (unsigned long long)w->in[i],
                                (unsigned long long)w->pad_hi[i]);
    }
    return CEK_OK;
}

/* Entries past `spatial` count as 1 in sizes. */
static uint64_t or_one(uint64_t size)
{
    return size ? size : 1;
}

static cek_status image_size(const cek__validation *check, uint32_t slot, cek_dtype type, uint64_t batch,
                             const uint64_t *size, uint64_t channels)
{
    return CEK__SLOT_SIZE(check, slot, type, batch, or_one(size[0]), or_one(size[1]), or_one(size[2]), channels);
}

static cek_status weights_size(const cek__validation *check, uint32_t slot, cek_dtype type)
{
    const cek_conv_desc *desc = &check->request->desc.conv;
    return CEK__SLOT_SIZE(check, slot, type, desc->out_channels, or_one(desc->kernel[0]), or_one(desc->kernel[1]),
                          or_one(desc->kernel[2]), desc->in_channels / desc->groups);
}

static cek_status conv_slots(const cek__validation *check)
{
    const cek_conv_desc *desc = &check->request->desc.conv;
    const cek_epilogue *epilogue = &check->request->epilogue;
    const uint64_t *out = check->request->out;
    cek_dtype sum = cek__type_sum(desc->x_type);
    switch (desc->op.kind) {
    case CEK_OP_CONV_FORWARD:
        CEK__VALIDATE(image_size(check, CEK_CONV_FORWARD_X, desc->x_type, desc->batch, desc->in, desc->in_channels));
        CEK__VALIDATE(weights_size(check, CEK_CONV_FORWARD_W, desc->w_type));
        CEK__VALIDATE(image_size(check, CEK_CONV_FORWARD_Y, desc->y_type, desc->batch, out, desc->out_channels));
        CEK__VALIDATE(CEK__SLOT_SIZE(check, CEK_CONV_FORWARD_BIAS, sum, desc->out_channels));
        if (epilogue->act_grad)
            return CEK__INVALID(check, "has no ACT_REF, so no act_grad");
        return cek__validate_presence(check, CEK_CONV_FORWARD_PACKED, desc->op.flags & CEK_OP_PREPACKED,
                                      "with CEK_OP_PREPACKED");
    case CEK_OP_CONV_BACKWARD_DATA:
        CEK__VALIDATE(image_size(check, CEK_CONV_BACKWARD_DATA_DY, desc->y_type, desc->batch, out, desc->out_channels));
        CEK__VALIDATE(weights_size(check, CEK_CONV_BACKWARD_DATA_W, desc->w_type));
        CEK__VALIDATE(image_size(check, CEK_CONV_BACKWARD_DATA_DX, desc->x_type, desc->batch, desc->in,
                                 desc->in_channels));
        CEK__VALIDATE(image_size(check, CEK_CONV_BACKWARD_DATA_ACT_REF, desc->x_type, desc->batch, desc->in,
                                 desc->in_channels));
        if (epilogue->activation)
            return CEK__INVALID(check, "takes act_grad only, no activation");
        return cek__validate_presence(check, CEK_CONV_BACKWARD_DATA_ACT_REF, epilogue->act_grad != CEK_ACT_NONE,
                                      "with act_grad");
    default:
        CEK__VALIDATE(image_size(check, CEK_CONV_BACKWARD_WEIGHTS_X, desc->x_type, desc->batch, desc->in,
                                 desc->in_channels));
        CEK__VALIDATE(image_size(check, CEK_CONV_BACKWARD_WEIGHTS_DY, desc->y_type, desc->batch, out,
                                 desc->out_channels));
        CEK__VALIDATE(weights_size(check, CEK_CONV_BACKWARD_WEIGHTS_DW, sum));
        CEK__VALIDATE(CEK__SLOT_SIZE(check, CEK_CONV_BACKWARD_WEIGHTS_BIAS_GRAD, sum, desc->out_channels));
        return epilogue->activation || epilogue->act_grad ? CEK__INVALID(check, "has no epilogue") : CEK_OK;
    }
}

cek_status cek__validate_conv(const cek__validation *check)
{
    const cek_conv_desc *desc = &check->request->desc.conv;
    const window w = {
        desc->spatial, desc->in, desc->kernel, desc->stride, desc->dilation, desc->pad_lo, desc->pad_hi
    };
    CEK__VALIDATE(cek__validate_reserved(check, desc->reserved));
    CEK__VALIDATE(cek__validate_positive(check, "batch", desc->batch));
    CEK__VALIDATE(cek__validate_positive(check, "in_channels", desc->in_channels));
    CEK__VALIDATE(cek__validate_positive(check, "out_channels", desc->out_channels));
    if (!desc->groups || desc->in_channels % desc->groups || desc->out_channels % desc->groups)
        return CEK__INVALID(check, "%u groups do not divide %llu input and %llu output channels", desc->groups,
                            (unsigned long long)desc->in_channels, (unsigned long long)desc->out_channels);
    CEK__VALIDATE(cek__validate_type(check, "x_type", desc->x_type, CEK__TYPES_REAL));
    CEK__VALIDATE(cek__validate_type(check, "y_type", desc->y_type, 1u << desc->x_type));
    if (desc->op.kind != CEK_OP_CONV_BACKWARD_WEIGHTS)
        CEK__VALIDATE(cek__validate_type(check, "w_type", desc->w_type, 1u << desc->x_type));
    else if (desc->w_type) /* DW has the sum type whatever the weights are stored in */
        CEK__VALIDATE(cek__validate_type(check, "w_type", desc->w_type, CEK__TYPES_REAL));
    CEK__VALIDATE(window_check(check, &w, check->request->out));
    return conv_slots(check);
}

static cek_status pool_slots(const cek__validation *check)
{
    const cek_pool_desc *desc = &check->request->desc.pool;
    const uint64_t *out = check->request->out;
    bool backward = desc->op.kind == CEK_OP_POOL_BACKWARD, maximum = desc->mode == CEK_POOL_MAX;
    CEK__VALIDATE(image_size(check, backward ? CEK_POOL_BACKWARD_DX : CEK_POOL_FORWARD_X, desc->type, desc->batch,
                             desc->in, desc->channels));
    CEK__VALIDATE(image_size(check, backward ? CEK_POOL_BACKWARD_DY : CEK_POOL_FORWARD_Y, desc->type, desc->batch, out,
                             desc->channels));
    if (backward) {
        if (maximum != (desc->op.forward != NULL))
            return CEK__INVALID(check, maximum ? "maximum needs the forward operation" : "average reads no reserve");
        return cek__validate_presence(check, CEK_POOL_BACKWARD_RESERVE, maximum, "for maximum");
    }
    if (!maximum)
        return cek__validate_presence(check, CEK_POOL_FORWARD_RESERVE, false, "for maximum");
    return CEK_OK;
}

cek_status cek__validate_pool(const cek__validation *check)
{
    const cek_pool_desc *desc = &check->request->desc.pool;
    uint64_t dilation[CEK_SPATIAL_MAX] = { 0 };
    CEK__VALIDATE(cek__validate_enum(check, "mode", desc->mode, CEK_POOL_MAX, CEK_POOL_AVERAGE));
    CEK__VALIDATE(cek__validate_flags(check, "pool flags", desc->flags, CEK_POOL_COUNT_PAD));
    if (desc->flags && desc->mode == CEK_POOL_MAX)
        return CEK__INVALID(check, "CEK_POOL_COUNT_PAD is for averages");
    CEK__VALIDATE(cek__validate_type(check, "type", desc->type, CEK__TYPES_REAL));
    CEK__VALIDATE(cek__validate_positive(check, "batch", desc->batch));
    CEK__VALIDATE(cek__validate_positive(check, "channels", desc->channels));
    for (uint32_t i = 0; i < desc->spatial && i < CEK_SPATIAL_MAX; i++)
        dilation[i] = 1;
    const window w = { desc->spatial, desc->in, desc->kernel, desc->stride, dilation, desc->pad_lo, desc->pad_hi };
    CEK__VALIDATE(window_check(check, &w, check->request->out));
    /* With less padding than kernel on either side no window lies wholly in the padding. */
    for (uint32_t i = 0; i < desc->spatial; i++)
        if (desc->pad_lo[i] >= desc->kernel[i] || desc->pad_hi[i] >= desc->kernel[i])
            return CEK__INVALID(check, "dimension %u: padding %llu, %llu is not below the kernel %llu", i,
                                (unsigned long long)desc->pad_lo[i], (unsigned long long)desc->pad_hi[i],
                                (unsigned long long)desc->kernel[i]);
    return pool_slots(check);
}
