/* SPDX-License-Identifier: MIT
 *
 * lower_product.c - products and convolutions: the tiled kernel of kernels/gpu/product.cl, unless
 * the device has a faster way.
 */
#include <stdio.h>

#include "backends/gpu/lower.h"

#define EACH 8  /* a work-item of product.cl has EACH x EACH results */
#define DEPTH 8 /* of k that its strips hold, at most; PITCH is what lies behind their lines */
#define PITCH 4
#define SMALL_BYTES 2048         /* of local memory besides strips and lines: what follows from p, TABLE at a time */
#define ITEMS_ENOUGH (256 * 256) /* work-items that fill any device of today */
#define PIECE_LEAST 256          /* of k, that is worth a pass over the results */
#define PIECE_MOST (1 << 17)  /* of k: what a group sums alone, 2 s at one multiply-add a cycle; no launch is shorter */
#define CPU_GROUPS_ENOUGH 256 /* on CPUs, where a group is one work-item, */
#define CPU_PIECE_LEAST 1024  /* and memory is slow */
#define WASTE_MOST 1.125      /* what a large tile may compute beyond the results, held against the tightest tile */

enum { MODE_GEMM, MODE_FORWARD, MODE_DATA, MODE_WEIGHTS }; /* as in product.cl */

/* An operation as the kernel sees it. `buffers` are A, B, C, BIAS, ACT_REF and partial sums. */
typedef struct product {
    cek_k_product a;
    uint32_t mode;
    cek_dtype a_type, b_type, c_type;
    cek__gpu_place buffers[6];
} product;

static const cek__gpu_place nothing = { CEK__GPU_NOTHING, 0 };

/* The work-items of a group, along columns and along rows. The first are for devices, the largest one first; the last
 * for groups that are limited, and for CPUs, whose compilers make vectors of one work-item's results. kernels/images.sh
 * has the same shapes for the same products. */
typedef struct shape {
    uint32_t x, y;
} shape;
static const shape shapes[] = { { 16, 16 }, { 8, 8 }, { 4, 16 }, { 16, 4 }, { 4, 4 }, { 2, 2 }, { 1, 1 } };
enum { SHAPES = sizeof shapes / sizeof *shapes, SHAPES_FULL = CEK__GPU_TILES };

static void gemm_describe(const cek_op *op, product *p)
{
    const cek_gemm_desc *desc = &op->request.desc.gemm;
    bool ta = desc->trans & CEK_GEMM_TRANS_A, tb = desc->trans & CEK_GEMM_TRANS_B;
    *p = (product){
        .a = { .m = desc->m,
               .n = desc->n,
               .k = desc->k,
               .batch = desc->outer * desc->batch,
               .a_row = ta ? 1 : (uint64_t)desc->lda,
               .a_column = ta ? (uint64_t)desc->lda : 1,
               .a_batch = (uint64_t)desc->stride_a,
               .b_row = tb ? 1 : (uint64_t)desc->ldb,
               .b_column = tb ? (uint64_t)desc->ldb : 1,
               .b_batch = (uint64_t)desc->stride_b,
               .c_row = (uint64_t)desc->ldc,
               .c_batch = (uint64_t)desc->stride_c,
               .a_outer = (uint64_t)desc->outer_a,
               .b_outer = (uint64_t)desc->outer_b,
               .c_outer = (uint64_t)desc->outer_c,
               .inner = (cek_u32)desc->batch,
               .bias = cek__request_given(&op->request, CEK_GEMM_BIAS) },
        .mode = MODE_GEMM,
        .a_type = desc->a_type,
        .b_type = desc->b_type,
        .c_type = desc->c_type,
        .buffers = { { CEK_GEMM_A, 0 },
                     { CEK_GEMM_B, 0 },
                     { CEK_GEMM_C, 0 },
                     cek__gpu_slot(op, CEK_GEMM_BIAS),
                     cek__gpu_slot(op, CEK_GEMM_ACT_REF),
                     nothing },
    };
}

/* So that n / stride is the high half of 2n * multiplier, shifted: with 2^(shift - 1) < stride <= 2^shift that is
 * 2^(31 + shift) / stride and one more at most, so that for n below 2^31 the error stays below 1 / stride. */
static void strides_invert(cek_k_product *a)
{
    for (uint32_t i = 0; i < 3; i++) {
        const uint64_t stride = a->window.stride[i];
        uint32_t shift = 0;
        while (UINT64_C(1) << shift < stride)
            shift++;
        a->stride_shift[i] = shift;
        a->stride_multiplier[i] = (cek_u32)((UINT64_C(1) << (31 + shift)) / stride + 1);
    }
}

static void conv_describe(const cek_op *op, product *p)
{
    const cek_conv_desc *desc = &op->request.desc.conv;
    *p = (product){ .a = { .batch = desc->groups,
                           .in_channels = (cek_u32)desc->in_channels,
                           .out_channels = (cek_u32)desc->out_channels,
                           .in_group = (cek_u32)(desc->in_channels / desc->groups),
                           .out_group = (cek_u32)(desc->out_channels / desc->groups) } };
    cek_k_product *a = &p->a;
    a->window = cek__gpu_window(desc->spatial, desc->in, op->request.out, desc->kernel, desc->stride, desc->dilation,
                                desc->pad_lo);
    strides_invert(a);
    const uint64_t ins = desc->batch * cek__gpu_positions(a->window.in),
                   outs = desc->batch * cek__gpu_positions(a->window.out);
    const uint64_t filter = cek__gpu_positions(a->window.taps) * a->in_group; /* weights of an output channel */
    for (uint32_t i = 0; i < 6; i++)
        p->buffers[i] = i < 3 ? (cek__gpu_place){ i, 0 } : nothing;
    if (desc->op.kind == CEK_OP_CONV_FORWARD) {
        p->mode = MODE_FORWARD;
        a->m = outs, a->n = a->out_group, a->k = filter;
        a->a_batch = a->in_group;
        a->b_row = 1, a->b_column = filter, a->b_batch = a->out_group * filter;
        a->c_row = a->out_channels, a->c_batch = a->bias_batch = a->out_group;
        a->bias = cek__request_given(&op->request, CEK_CONV_FORWARD_BIAS);
        p->a_type = desc->x_type, p->b_type = desc->w_type, p->c_type = desc->y_type;
        p->buffers[3] = cek__gpu_slot(op, CEK_CONV_FORWARD_BIAS);
    } else if (desc->op.kind == CEK_OP_CONV_BACKWARD_DATA) {
        p->mode = MODE_DATA;
        a->m = ins, a->n = a->in_group, a->k = cek__gpu_positions(a->window.taps) * a->out_group;
        a->a_batch = a->out_group;
        a->b_row = filter, a->b_column = 1, a->b_batch = a->out_group * filter;
        a->c_row = a->in_channels, a->c_batch = a->in_group;
        p->a_type = desc->y_type, p->b_type = desc->w_type, p->c_type = desc->x_type;
        p->buffers[4] = cek__gpu_slot(op, CEK_CONV_BACKWARD_DATA_ACT_REF);
    } else {
        p->mode = MODE_WEIGHTS;
        a->m = a->out_group, a->n = filter, a->k = outs;
        a->a_row = 1, a->a_column = a->out_channels, a->a_batch = a->out_group;
        a->b_batch = a->in_group;
        a->c_row = filter, a->c_batch = a->out_group * filter;
        p->a_type = desc->y_type, p->b_type = desc->x_type, p->c_type = CEK_F32;
        p->buffers[0] = (cek__gpu_place){ CEK_CONV_BACKWARD_WEIGHTS_DY, 0 };
        p->buffers[1] = (cek__gpu_place){ CEK_CONV_BACKWARD_WEIGHTS_X, 0 };
    }
}

static void describe(const cek_op *op, product *p)
{
    if (op->request.desc.op.kind == CEK_OP_GEMM)
        gemm_describe(op, p);
    else
        conv_describe(op, p);
    p->a.accumulate = cek__request_accumulates(&op->request, CEK__GPU_RESULT);
    p->a.activation = op->request.epilogue.activation;
    p->a.act_grad = op->request.epilogue.act_grad;
}

static void defines_make(const cek_op *op, const product *p, const char *more, char *to)
{
    cek__gpu_defines(op->dev, to, "#define MODE %u\n%s#define A_TYPE %s\n#define B_TYPE %s\n#define C_TYPE %s\n%s",
                     p->mode, p->a.inner < p->a.batch && p->mode == MODE_GEMM ? "#define OUTER 1\n" : "",
                     cek__gpu_type(p->a_type), cek__gpu_type(p->b_type), cek__gpu_type(p->c_type), more);
}

static void finish_add(cek_op *op, const product *p, const char *more)
{
    char defines[CEK__GPU_DEFINES];
    defines_make(op, p, more, defines);
    cek__gpu_step_fill(cek__gpu_step_add(op, "product.cl", defines, "product_finish", p->a.batch * p->a.m * p->a.n),
                       p->buffers, 6, &p->a, sizeof p->a);
}

/* --- tiles and pieces ------------------------------------------------------------------------- */

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

/* Tiles of all batches. */
static double tiles_of(const product *p, shape s)
{
    return (double)ceil_div(p->a.m, EACH * s.y) * (double)ceil_div(p->a.n, EACH * s.x) * (double)p->a.batch;
}

/* Whether such groups can be run, of `most` work-items at most, and the product's kernel is made for them. Long tiles
 * are for products with few columns or few rows: in f32 and along the side that a kind has long. */
static bool shape_fits(const cek_op *op, const product *p, uint32_t most, shape s)
{
    const cek__gpu_traits *traits = &op->dev->traits;
    const uint64_t items = s.x * s.y, lines = EACH * (s.x + s.y), depth = items < DEPTH ? items : DEPTH;
    const uint64_t bytes = 2 * depth * (lines + 2 * PITCH) * sizeof(float) + lines * (sizeof(uint64_t) + 16) +
                           SMALL_BYTES;
    if (traits->vector_width)
        return items == 1;
    if (items > most || (traits->local_bytes && bytes > traits->local_bytes))
        return false;
    if (s.x == s.y)
        return true;
    return p->a_type == CEK_F32 && p->b_type == CEK_F32 && p->c_type == CEK_F32 &&
           (p->mode == MODE_GEMM || (s.x > s.y) == (p->mode == MODE_WEIGHTS));
}

/* The one that was asked for; else the largest that fills a device and computes little for nothing; else the small one
 * that computes the least for nothing, of those for limited groups the first that can be run. */
static shape shape_choose(const cek_op *op, const product *p, uint32_t most)
{
    uint32_t tightest = SHAPES - 1;
    double least = 0;
    if (op->tile && op->tile <= SHAPES && shape_fits(op, p, most, shapes[op->tile - 1]))
        return shapes[op->tile - 1];
    for (uint32_t i = 1; i < SHAPES; i++) {
        const double items = tiles_of(p, shapes[i]) * shapes[i].x * shapes[i].y;
        if (shape_fits(op, p, most, shapes[i]) && (!least || (i < SHAPES_FULL && items < least))) {
            tightest = i;
            least = items;
        }
    }
    for (uint32_t i = 0; i < tightest; i++) {
        const double items = tiles_of(p, shapes[i]) * shapes[i].x * shapes[i].y;
        if (shape_fits(op, p, most, shapes[i]) && items <= WASTE_MOST * least && items >= ITEMS_ENOUGH)
            return shapes[i];
    }
    return shapes[tightest];
}

/* Those for full groups, since the others are for devices that have no choice. */
uint32_t cek__gpu_tiles(const cek_op *op, uint32_t tiles[CEK__GPU_TILES])
{
    uint32_t count = 0;
    product p;
    describe(op, &p);
    for (uint32_t i = 0; i < SHAPES_FULL && !op->dev->traits.vector_width; i++)
        if (shape_fits(op, &p, op->dev->traits.max_group, shapes[i]))
            tiles[count++] = i + 1;
    return count > 1 ? count : 0;
}

/* As many pieces of k as fill the device, and none that is too long for a launch or, on CPUs, for 32 bits to count
 * through. */
static void splits_choose(const cek_op *op, product *p, shape s)
{
    cek_k_product *a = &p->a;
    const bool cpu = op->dev->traits.vector_width;
    const double enough = cpu ? CPU_GROUPS_ENOUGH : (double)ITEMS_ENOUGH / (s.x * s.y);
    const uint64_t least = cpu ? CPU_PIECE_LEAST : PIECE_LEAST, most = cpu ? UINT32_MAX - DEPTH : PIECE_MOST;
    a->splits = 1;
    while (tiles_of(p, s) * (double)a->splits < enough && a->k / (2 * a->splits) >= least)
        a->splits *= 2;
    while (ceil_div(a->k, a->splits) > most)
        a->splits *= 2;
    a->split_k = ceil_div(a->k, a->splits);
}

/* The product's launch by groups of a shape: `count` of them at most from number a.first on, still
 * without its buffers. */
static cek__gpu_step *launch_add(cek_op *op, const product *p, shape s, const char *more, uint64_t count)
{
    char defines[CEK__GPU_DEFINES];
    const cek_k_product *a = &p->a;
    const uint64_t tiles = ceil_div(a->m, EACH * s.y) * ceil_div(a->n, EACH * s.x) * a->batch,
                   left = tiles * a->splits - a->first;
    defines_make(op, p, more, defines);
    return cek__gpu_step_grid(op, "product.cl", defines, "product", (uint64_t[]){ left < count ? left : count, 1, 1 },
                              (uint32_t[]){ s.x, s.y, 1 });
}

static cek__gpu_step *shape_try(cek_op *op, product *p, shape s, char *more, size_t cap)
{
    splits_choose(op, p, s);
    snprintf(more, cap, "#define SIDE_X %u\n#define SIDE_Y %u\n", s.x, s.y);
    return launch_add(op, p, s, more, UINT64_MAX);
}

/* The groups of a launch. One for each compute unit does no longer than one alone. */
static uint64_t launch_groups(const cek_op *op, const product *p, shape s)
{
    const cek__gpu_traits *traits = &op->dev->traits;
    const double work = (double)EACH * EACH * s.x * s.y * (double)p->a.split_k; /* of a group */
    const uint64_t least = traits->compute_units ? traits->compute_units : 1;
    if (!traits->launch_work || tiles_of(p, s) * (double)p->a.splits * work <= (double)traits->launch_work)
        return UINT64_MAX;
    return (double)least * work < (double)traits->launch_work ? (uint64_t)((double)traits->launch_work / work) : least;
}

/* The launches of all groups, the first of which is there. Each computes the results that it would in any number of
 * them. */
static void launches_fill(cek_op *op, product *p, shape s, const char *more, cek__gpu_step *step)
{
    const uint64_t count = launch_groups(op, p, s), all = step ? step->groups[0] : 0;
    if (step && count < all)
        step->groups[0] = count;
    while (step) {
        cek__gpu_step_fill(step, p->buffers, 6, &p->a, sizeof p->a);
        p->a.first += step->groups[0];
        step = p->a.first < all ? launch_add(op, p, s, more, count) : NULL;
    }
}

/* The product and, where k is split, the sum of its pieces. How large a group the compiled kernel takes is known once
 * it is compiled: many devices take fewer work-items with many registers each. */
static cek_status product_add(cek_op *op)
{
    char more[64];
    product p;
    describe(op, &p);
    cek_k_product *a = &p.a;
    shape s = shape_choose(op, &p, op->dev->traits.max_group);
    cek__gpu_step *step = shape_try(op, &p, s, more, sizeof more);
    while (step && s.x * s.y > 1 && !cek__gpu_step_fits(op, step)) {
        cek__gpu_step_drop(op);
        s = shape_choose(op, &p, s.x * s.y - 1);
        step = shape_try(op, &p, s, more, sizeof more);
    }
    if (a->splits > 1)
        p.buffers[5] = cek__gpu_workspace(op, a->batch * a->splits * a->m * a->n * sizeof(float));
    launches_fill(op, &p, s, more, step);
    if (a->splits > 1)
        finish_add(op, &p, more);
    snprintf(op->info.algorithm, sizeof op->info.algorithm, "tiles of %ux%u in local memory", EACH * s.y, EACH * s.x);
    op->tile = 1;
    while (shapes[op->tile - 1].x != s.x || shapes[op->tile - 1].y != s.y)
        op->tile++;
    return op->failure;
}

/* --- what goes with a product ----------------------------------------------------------------- */

/* A_SUM: row sums of op(A). */
static void a_sum_add(cek_op *op)
{
    const cek_gemm_desc *desc = &op->request.desc.gemm;
    bool trans = desc->trans & CEK_GEMM_TRANS_A;
    cek__gpu_reduction r = { .from = { CEK_GEMM_A, 0 },
                             .to = { CEK_GEMM_A_SUM, 0 },
                             .type = desc->a_type,
                             .function = CEK_REDUCE_SUM,
                             .accumulate = cek__request_accumulates(&op->request, CEK_GEMM_A_SUM),
                             .rank = 2,
                             .axes = 2,
                             .shape = { desc->m, desc->k },
                             .strides = { trans ? 1 : desc->lda, trans ? desc->lda : 1 } };
    cek__gpu_reduce_add(op, &r);
}

static void bias_grad_add(cek_op *op)
{
    const cek_conv_desc *desc = &op->request.desc.conv;
    uint64_t rows = desc->batch;
    for (uint32_t i = 0; i < desc->spatial; i++)
        rows *= op->request.out[i];
    cek__gpu_reduction r = { .from = { CEK_CONV_BACKWARD_WEIGHTS_DY, 0 },
                             .to = { CEK_CONV_BACKWARD_WEIGHTS_BIAS_GRAD, 0 },
                             .type = desc->y_type,
                             .function = CEK_REDUCE_SUM,
                             .accumulate = cek__request_accumulates(&op->request, CEK_CONV_BACKWARD_WEIGHTS_BIAS_GRAD),
                             .rank = 2,
                             .axes = 1,
                             .shape = { rows, desc->out_channels },
                             .strides = { (int64_t)desc->out_channels, 1 } };
    cek__gpu_reduce_add(op, &r);
}

void cek__gpu_lower_sums(cek_op *op)
{
    uint32_t kind = op->request.desc.op.kind;
    if (kind == CEK_OP_GEMM && cek__request_given(&op->request, CEK_GEMM_A_SUM))
        a_sum_add(op);
    if (kind == CEK_OP_CONV_BACKWARD_WEIGHTS && cek__request_given(&op->request, CEK_CONV_BACKWARD_WEIGHTS_BIAS_GRAD))
        bias_grad_add(op);
}

void cek__gpu_lower_finish(cek_op *op, cek__gpu_place sums)
{
    product p;
    describe(op, &p);
    p.a.splits = 1;
    p.buffers[5] = sums;
    finish_add(op, &p, "#define WHOLE 1\n");
}

cek_status cek__gpu_lower_gemm(cek_op *op)
{
    const cek_gemm_desc *desc = &op->request.desc.gemm;
    if (desc->batch > UINT32_MAX / desc->outer)
        return cek__host_fail(&op->dev->instance->host, CEK_UNSUPPORTED, "gemm: a batch of more than 2^32 matrices");
    cek__gpu_lower_sums(op);
    return cek__gpu_lower_gemm_tiles(op) ? op->failure : product_add(op);
}

cek_status cek__gpu_lower_conv(cek_op *op)
{
    cek__gpu_lower_sums(op);
    return cek__gpu_lower_conv_tiles(op) ? op->failure : product_add(op);
}
