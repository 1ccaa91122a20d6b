/* SPDX-License-Identifier: MIT
 *
 * lower_winograd.c - convolutions of 3 x 3 taps by Winograd's squares (kernels/opencl/winograd.cl), on OpenCL devices
 * that are CPUs: which shapes, and how they are cut into work-items.
 *
 * All of it follows from the shape and the vector width alone, never from the number of threads.
 */
#include <stdio.h>

#include "backends/gpu/tiles.h"

#define SIDE 6
#define POINTS (SIDE * SIDE)
#define OUTPUTS 4
#define TAPS 3

/* Costs in cycles of a vector. */
#define COST_TRANSFORM 220.0  /* of channels of one square, in or out */
#define COST_PRODUCT 1.15     /* of sums of squares, */
#define COST_DIRECT 1.2       /* and of pixels, whose windows are found on the way */
#define COST_WEIGHTS 12.0     /* of transformed weights, made, kept and fetched */
#define COST_WEIGHTS_FAR 60.0 /* the same where they are more than caches hold */
#define GAIN_WANTED 0.9       /* of the time of the definition */

#define BLOCK_TILES 28                  /* transformed at once, if their squares leave room in a second-level cache */
#define BLOCK_DEPTH 128                 /* of more channels than these they do not, and half as many are */
#define NEAR_BYTES ((uint64_t)12 << 20) /* of transformed weights that a last cache holds */
#define PARTS 32     /* work-items, if there is so much to share out: each warms its part of a cache; */
#define SUM_PARTS 16 /* of gradients of weights, which leave sums behind */
/* At most, of transformed weights or sums of their gradients, and of what all work-items have for themselves. */
#define MEMORY_BYTES ((uint64_t)256 << 20)

/* What the shape decides. */
typedef struct plan {
    cek_k_winograd a;
    cek__tile_size size;
    bool weights;
    uint64_t groups;                      /* of panels, or pairs of blocks of channels: parts of each are work-items */
    uint64_t shared_bytes, scratch_bytes; /* of all work-items together */
} plan;

static bool has_taps(const cek_conv_desc *d)
{
    bool has = d->spatial == 2;
    for (uint32_t i = 0; has && i < 2; i++)
        has = d->kernel[i] == TAPS && d->stride[i] == 1 && d->dilation[i] == 1 && d->pad_lo[i] < TAPS;
    return has;
}

static uint64_t blocks_of_channels(uint64_t channels)
{
    return cek__ceil_div(channels, CEK_K_CHANNELS);
}

/* The sums of a point of a block of channels of either side; SUMS of winograd.cl. */
static uint64_t sums_of(const plan *p)
{
    return cek__ceil_div(CEK_K_CHANNELS, p->size.rows) * p->size.rows * CEK_K_CHANNELS;
}

static void images_share_out(plan *p)
{
    cek_k_winograd *a = &p->a;
    const uint64_t blocks = cek__ceil_div(a->count, a->block), panels = cek__ceil_div(a->to, p->size.columns);
    a->parts = blocks < PARTS ? blocks : PARTS;
    a->panels = cek__ceil_div(panels, cek__ceil_div(PARTS, a->parts));
    a->scratch = POINTS * (blocks_of_channels(a->from) * a->chunk + a->block * p->size.columns) +
                 blocks_of_channels(a->from) * CEK_K_CHANNELS;
    p->groups = cek__ceil_div(panels, a->panels);
    p->shared_bytes = panels * POINTS * a->from * p->size.columns * sizeof(float);
}

static void weights_share_out(plan *p)
{
    cek_k_winograd *a = &p->a;
    p->groups = blocks_of_channels(a->from) * blocks_of_channels(a->to);
    a->parts = 1;
    while (a->parts * p->groups < SUM_PARTS && 4 * a->parts * a->block <= a->count)
        a->parts *= 2;
    a->scratch = 2 * POINTS * a->chunk + CEK_K_CHANNELS;
    p->shared_bytes = a->parts * p->groups * POINTS * sums_of(p) * sizeof(float);
}

static void plan_make(const cek_op *op, plan *p)
{
    const cek_conv_desc *d = &op->request.desc.conv;
    cek_k_winograd *a = &p->a;
    *p = (plan){ .size = cek__tile_of(op->dev), .weights = d->op.kind == CEK_OP_CONV_BACKWARD_WEIGHTS };
    a->data = d->op.kind == CEK_OP_CONV_BACKWARD_DATA;
    a->from = a->data ? d->out_channels : d->in_channels;
    a->to = a->data ? d->in_channels : d->out_channels;
    a->count = d->batch;
    for (uint32_t i = 0; i < 2; i++) {
        a->size[i] = (cek_u32)(a->data ? op->request.out : d->in)[i];
        a->result[i] = (cek_u32)(a->data ? d->in : op->request.out)[i];
        a->tiles[i] = (cek_u32)cek__ceil_div(a->result[i], OUTPUTS);
        a->pad[i] = (cek_u32)(a->data ? TAPS - 1 - d->pad_lo[i] : d->pad_lo[i]);
        a->count *= a->tiles[i];
    }
    const uint32_t rows = p->size.rows;
    a->block = rows * (BLOCK_TILES / rows > 1 ? BLOCK_TILES / rows : 1);
    if (!p->weights && a->from > BLOCK_DEPTH)
        a->block = rows * (uint32_t)cek__ceil_div(a->block / 2, rows);
    a->chunk = a->block * CEK_K_PITCH;
    if (!a->count || !a->from || !a->to)
        return;
    if (p->weights)
        weights_share_out(p);
    else
        images_share_out(p);
    p->scratch_bytes = a->parts * p->groups * a->scratch * sizeof(float);
}

static uint64_t weight_bytes(const plan *p)
{
    return POINTS * sizeof(float) * p->a.from * p->a.to;
}

static bool is_faster(const cek_op *op, const plan *p)
{
    const cek_conv_desc *d = &op->request.desc.conv;
    const cek_k_winograd *a = &p->a;
    const double width = p->size.width, from = (double)a->from, to = (double)a->to, count = (double)a->count;
    const double columns = (double)(cek__ceil_div(p->weights ? a->from : a->to, p->size.columns) * p->size.columns);
    const double sums = (p->weights ? to : from) * columns / width; /* vectors of a point, of a tap */
    const double outputs = (double)d->batch * a->result[0] * a->result[1];
    /* each block of weights transforms what it reads */
    const double channels = p->weights
                                ? from * (double)blocks_of_channels(a->to) + to * (double)blocks_of_channels(a->from)
                                : from + to;
    const double squares = count * (POINTS * sums * COST_PRODUCT + channels / width * COST_TRANSFORM) +
                           POINTS * sums * (weight_bytes(p) > NEAR_BYTES ? COST_WEIGHTS_FAR : COST_WEIGHTS);
    return squares < GAIN_WANTED * outputs * TAPS * TAPS * sums * COST_DIRECT;
}

static void images_add(cek_op *op, plan *p)
{
    const cek_conv_desc *d = &op->request.desc.conv;
    const cek__gpu_place nothing = { CEK__GPU_NOTHING, 0 };
    cek_k_winograd *a = &p->a;
    a->accumulate = a->data && cek__request_accumulates(&op->request, CEK_CONV_BACKWARD_DATA_DX);
    a->bias = !a->data && cek__request_given(&op->request, CEK_CONV_FORWARD_BIAS);
    a->activation = op->request.epilogue.activation;
    a->act_grad = op->request.epilogue.act_grad;
    a->type = d->x_type;

    const cek__gpu_place weights = cek__tile_as_f32(op, a->data ? CEK_CONV_BACKWARD_DATA_W : CEK_CONV_FORWARD_W,
                                                    d->w_type);
    const cek__gpu_place packed = cek__gpu_workspace(op, p->shared_bytes);
    const cek__gpu_place filters[] = { weights, packed };
    cek__gpu_step_fill(cek__tile_step(op, "winograd.cl", "winograd_filters", cek__ceil_div(a->to, p->size.columns),
                                      cek__ceil_div(a->from, CEK_K_FILTERS), 1),
                       filters, 2, a, sizeof *a);
    const cek__gpu_place buffers[] = { cek__tile_as_f32(op, a->data ? CEK_CONV_BACKWARD_DATA_DY : CEK_CONV_FORWARD_X,
                                                        a->data ? d->y_type : d->x_type),
                                       packed,
                                       { a->data ? CEK_CONV_BACKWARD_DATA_DX : CEK_CONV_FORWARD_Y, 0 },
                                       a->data ? nothing : cek__gpu_slot(op, CEK_CONV_FORWARD_BIAS),
                                       a->data ? cek__gpu_slot(op, CEK_CONV_BACKWARD_DATA_ACT_REF) : nothing,
                                       cek__gpu_workspace(op, p->scratch_bytes) };
    cek__gpu_step_fill(cek__tile_step(op, "winograd.cl", "winograd_images", a->parts, p->groups, 1), buffers, 6, a,
                       sizeof *a);
}

static void weights_add(cek_op *op, plan *p)
{
    const cek_conv_desc *d = &op->request.desc.conv;
    cek_k_winograd *a = &p->a;
    a->accumulate = cek__request_accumulates(&op->request, CEK_CONV_BACKWARD_WEIGHTS_DW);
    const cek__gpu_place partial = cek__gpu_workspace(op, p->shared_bytes);
    const cek__gpu_place buffers[] = { cek__tile_as_f32(op, CEK_CONV_BACKWARD_WEIGHTS_X, d->x_type),
                                       cek__tile_as_f32(op, CEK_CONV_BACKWARD_WEIGHTS_DY, d->y_type), partial,
                                       cek__gpu_workspace(op, p->scratch_bytes) };
    const cek__gpu_place finish[] = { partial, { CEK_CONV_BACKWARD_WEIGHTS_DW, 0 } };
    cek__gpu_step_fill(cek__tile_step(op, "winograd.cl", "winograd_weights", p->groups, a->parts, 1), buffers, 4, a,
                       sizeof *a);
    cek__gpu_step_fill(cek__tile_step(op, "winograd.cl", "winograd_weights_finish", a->to, 1, 1), finish, 2, a,
                       sizeof *a);
}

bool cek__gpu_lower_conv_winograd(cek_op *op)
{
    const cek_conv_desc *d = &op->request.desc.conv;
    plan p;
    if (d->op.math == CEK_MATH_STRICT || !has_taps(d))
        return false;
    plan_make(op, &p);
    const uint64_t width = p.size.width;
    if (!p.a.count || p.a.from % width || p.a.to % width || p.shared_bytes > MEMORY_BYTES ||
        p.scratch_bytes > MEMORY_BYTES || !is_faster(op, &p))
        return false;
    if (p.weights)
        weights_add(op, &p);
    else
        images_add(op, &p);
    op->info.flags |= CEK_OP_INFO_INEXACT;
    snprintf(op->info.algorithm, sizeof op->info.algorithm, "winograd %ux%u, register tiles of %ux%u", OUTPUTS, OUTPUTS,
             p.size.rows, p.size.columns);
    return true;
}
