/* SPDX-License-Identifier: MIT
 * conv.c - convolution and its two gradients, each as the sum in its definition. */
#include <string.h>

#include "backends/common/extent.h"
#include "backends/reference/activation.h"
#include "backends/reference/element.h"
#include "backends/reference/reference.h"
#include "backends/reference/window.h"

/* The shape of a convolution as its loops use it. */
typedef struct shape {
    window window;
    uint64_t taps, in_positions, out_positions;
    uint64_t in_channels, out_channels;
    uint64_t in_group, out_group; /* channels of a group */
} shape;

static shape shape_of(const cek_op *op)
{
    const cek_conv_desc *desc = &op->request.desc.conv;
    shape s = {
        .window = window_make(desc->spatial, desc->in, op->request.out, desc->kernel, desc->stride, desc->dilation,
                              desc->pad_lo),
        .in_channels = desc->in_channels,
        .out_channels = desc->out_channels,
        .in_group = desc->in_channels / desc->groups,
        .out_group = desc->out_channels / desc->groups,
    };
    s.taps = positions(s.window.kernel);
    s.in_positions = positions(s.window.in);
    s.out_positions = positions(s.window.out);
    return s;
}

/* First element of the weights of output channel o at a tap, and of the channels of an image at a position. */
static uint64_t weights_at(const shape *s, uint64_t o, uint64_t tap)
{
    return (o * s->taps + tap) * s->in_group;
}

static uint64_t in_at(const shape *s, uint64_t image, uint64_t position)
{
    return (image * s->in_positions + position) * s->in_channels;
}

static uint64_t out_at(const shape *s, uint64_t image, uint64_t position)
{
    return (image * s->out_positions + position) * s->out_channels;
}

/* First input channel of the group of output channel o. */
static uint64_t group_start(const shape *s, uint64_t o)
{
    return o / s->out_group * s->in_group;
}

void cek__reference_conv_forward(const cek_op *op, cek_queue *queue, void *const *at, void *workspace)
{
    const cek_conv_desc *desc = &op->request.desc.conv;
    const shape s = shape_of(op);
    const void *weights = desc->op.flags & CEK_OP_PREPACKED ? at[CEK_CONV_FORWARD_PACKED] : at[CEK_CONV_FORWARD_W];
    double *sums = workspace;
    (void)queue;
    for (uint64_t row = 0; row < desc->batch * s.out_positions; row++) {
        uint64_t image = row / s.out_positions, position = row % s.out_positions, from;
        zero(sums, s.out_channels);
        for (uint64_t tap = 0; tap < s.taps; tap++)
            if (window_reads(&s.window, position, tap, &from))
                for (uint64_t o = 0; o < s.out_channels; o++)
                    sums[o] += dot(desc->x_type, at[CEK_CONV_FORWARD_X], in_at(&s, image, from) + group_start(&s, o),
                                   weights, weights_at(&s, o, tap), 1, s.in_group);
        for (uint64_t o = 0; o < s.out_channels; o++) {
            double v = sums[o];
            if (at[CEK_CONV_FORWARD_BIAS])
                v += load(at[CEK_CONV_FORWARD_BIAS], cek__type_sum(desc->x_type), o);
            store(at[CEK_CONV_FORWARD_Y], desc->y_type, out_at(&s, image, position) + o,
                  activate(op->request.epilogue.activation, v));
        }
    }
}

void cek__reference_conv_backward_data(const cek_op *op, cek_queue *queue, void *const *at, void *workspace)
{
    const cek_conv_desc *desc = &op->request.desc.conv;
    const shape s = shape_of(op);
    bool add = cek__request_accumulates(&op->request, CEK_CONV_BACKWARD_DATA_DX);
    double *sums = workspace;
    (void)queue;
    for (uint64_t row = 0; row < desc->batch * s.in_positions; row++) {
        uint64_t image = row / s.in_positions, position = row % s.in_positions, from;
        zero(sums, s.in_channels);
        for (uint64_t tap = 0; tap < s.taps; tap++)
            if (window_read_by(&s.window, position, tap, &from))
                for (uint64_t o = 0; o < s.out_channels; o++)
                    add_scaled(sums + group_start(&s, o),
                               load(at[CEK_CONV_BACKWARD_DATA_DY], desc->y_type, out_at(&s, image, from) + o),
                               desc->w_type, at[CEK_CONV_BACKWARD_DATA_W], weights_at(&s, o, tap), 1, s.in_group);
        for (uint64_t c = 0; c < s.in_channels; c++) {
            uint64_t place = in_at(&s, image, position) + c;
            double v = sums[c];
            if (at[CEK_CONV_BACKWARD_DATA_ACT_REF])
                v = activate_backward(op->request.epilogue.act_grad, v,
                                      load(at[CEK_CONV_BACKWARD_DATA_ACT_REF], desc->x_type, place));
            store_or_add(at[CEK_CONV_BACKWARD_DATA_DX], desc->x_type, place, v, add);
        }
    }
}

static void bias_grad_run(const cek_op *op, void *const *at, const shape *s, double *sums)
{
    const cek_conv_desc *desc = &op->request.desc.conv;
    bool add = cek__request_accumulates(&op->request, CEK_CONV_BACKWARD_WEIGHTS_BIAS_GRAD);
    zero(sums, s->out_channels);
    for (uint64_t row = 0; row < desc->batch * s->out_positions; row++)
        add_scaled(sums, 1, desc->y_type, at[CEK_CONV_BACKWARD_WEIGHTS_DY], row * s->out_channels, 1, s->out_channels);
    for (uint64_t o = 0; o < s->out_channels; o++)
        store_or_add(at[CEK_CONV_BACKWARD_WEIGHTS_BIAS_GRAD], cek__type_sum(desc->x_type), o, sums[o], add);
}

void cek__reference_conv_backward_weights(const cek_op *op, cek_queue *queue, void *const *at, void *workspace)
{
    const cek_conv_desc *desc = &op->request.desc.conv;
    const shape s = shape_of(op);
    bool add = cek__request_accumulates(&op->request, CEK_CONV_BACKWARD_WEIGHTS_DW);
    double *sums = workspace;
    (void)queue;
    for (uint64_t row = 0; row < s.out_channels * s.taps; row++) {
        uint64_t o = row / s.taps, tap = row % s.taps, from;
        zero(sums, s.in_group);
        for (uint64_t position = 0; position < s.out_positions; position++)
            if (window_reads(&s.window, position, tap, &from))
                for (uint64_t image = 0; image < desc->batch; image++)
                    add_scaled(sums,
                               load(at[CEK_CONV_BACKWARD_WEIGHTS_DY], desc->y_type, out_at(&s, image, position) + o),
                               desc->x_type, at[CEK_CONV_BACKWARD_WEIGHTS_X],
                               in_at(&s, image, from) + group_start(&s, o), 1, s.in_group);
        for (uint64_t c = 0; c < s.in_group; c++)
            store_or_add(at[CEK_CONV_BACKWARD_WEIGHTS_DW], cek__type_sum(desc->x_type), weights_at(&s, o, tap) + c,
                         sums[c], add);
    }
    if (at[CEK_CONV_BACKWARD_WEIGHTS_BIAS_GRAD])
        bias_grad_run(op, at, &s, sums);
}

void cek__reference_conv_prepare(cek_op *op)
{
    const cek_conv_desc *desc = &op->request.desc.conv;
    uint64_t channels = desc->in_channels > desc->out_channels ? desc->in_channels : desc->out_channels;
    op->info.workspace_bytes = channels * sizeof(double);
    if (!(desc->op.flags & CEK_OP_PREPACKED))
        return;
    op->info.prepack_bytes = op->request.slots[CEK_CONV_FORWARD_W].bytes;
    const uint64_t layout[] = { CEK_OP_CONV_FORWARD, op->info.prepack_bytes };
    op->info.prepack_layout = cek__hash(CEK__HASH_START, layout, sizeof layout);
}

/* The packed form is the plain one. */
void cek__reference_conv_prepack(const cek_op *op, cek_queue *queue, void *const *at, void *packed)
{
    (void)queue;
    memcpy(packed, at[CEK_CONV_FORWARD_W], op->info.prepack_bytes);
}
