/* SPDX-License-Identifier: MIT
 *
 * lower_product.c - products and convolutions: the tiled kernel of kernels/gpu/product.cl, unless
 * the device has a faster way.
 */
#include <stdio.h>

#include "backends/gpu/lower.h"

#define SIDE 16          /* of product.cl: a group has SIDE x SIDE work-items, */
#define EACH 4           /* each with EACH x EACH results */
#define SPLIT_LEAST 1024 /* of k, that are worth a pass over the results */
#define TILES_ENOUGH 256 /* groups that fill any device of today */

enum { MODE_GEMM, MODE_FORWARD, MODE_DATA, MODE_WEIGHTS }; /* as in product.cl */

/* An operation as the kernel sees it. `buffers` are A, B, C, BIAS, ACT_REF and partial sums. */
typedef struct product {
    cek_k_product a;
    uint32_t mode;
    cek_dtype a_type, b_type, c_type;
    cek__gpu_place buffers[6];
} product;

static const cek__gpu_place nothing = { CEK__GPU_NOTHING, 0 };

static void gemm_describe(const cek_op *op, product *p)
{
    const cek_gemm_desc *desc = &op->request.desc.gemm;
    bool ta = desc->trans & CEK_GEMM_TRANS_A, tb = desc->trans & CEK_GEMM_TRANS_B;
    *p = (product){
        .a = { .m = desc->m,
               .n = desc->n,
               .k = desc->k,
               .batch = desc->batch,
               .a_row = ta ? 1 : (uint64_t)desc->lda,
               .a_column = ta ? (uint64_t)desc->lda : 1,
               .a_batch = (uint64_t)desc->stride_a,
               .b_row = tb ? 1 : (uint64_t)desc->ldb,
               .b_column = tb ? (uint64_t)desc->ldb : 1,
               .b_batch = (uint64_t)desc->stride_b,
               .c_row = (uint64_t)desc->ldc,
               .c_batch = (uint64_t)desc->stride_c,
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
    uint64_t ins = desc->batch * cek__gpu_positions(a->window.in),
             outs = desc->batch * cek__gpu_positions(a->window.out);
    uint64_t taps = cek__gpu_positions(a->window.taps);
    for (uint32_t i = 0; i < 6; i++)
        p->buffers[i] = i < 3 ? (cek__gpu_place){ i, 0 } : nothing;
    if (desc->op.kind == CEK_OP_CONV_FORWARD) {
        p->mode = MODE_FORWARD;
        a->m = outs, a->n = a->out_group, a->k = taps * a->in_group;
        a->bias = cek__request_given(&op->request, CEK_CONV_FORWARD_BIAS);
        p->a_type = desc->x_type, p->b_type = desc->w_type, p->c_type = desc->y_type;
        p->buffers[3] = cek__gpu_slot(op, CEK_CONV_FORWARD_BIAS);
    } else if (desc->op.kind == CEK_OP_CONV_BACKWARD_DATA) {
        p->mode = MODE_DATA;
        a->m = ins, a->n = a->in_group, a->k = taps * a->out_group;
        p->a_type = desc->y_type, p->b_type = desc->w_type, p->c_type = desc->x_type;
        p->buffers[4] = cek__gpu_slot(op, CEK_CONV_BACKWARD_DATA_ACT_REF);
    } else {
        p->mode = MODE_WEIGHTS;
        a->m = a->out_group, a->n = taps * a->in_group, a->k = outs;
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
    cek__gpu_defines(op->dev, to, "#define MODE %u\n#define A_TYPE %s\n#define B_TYPE %s\n#define C_TYPE %s\n%s",
                     p->mode, cek__gpu_type(p->a_type), cek__gpu_type(p->b_type), cek__gpu_type(p->c_type), more);
}

static void finish_add(cek_op *op, const product *p, const char *more)
{
    char defines[CEK__GPU_DEFINES];
    defines_make(op, p, more, defines);
    cek__gpu_step_fill(cek__gpu_step_add(op, "product.cl", defines, "product_finish", p->a.batch * p->a.m * p->a.n),
                       p->buffers, 6, &p->a, sizeof p->a);
}

/* The product's launch by groups of side x side work-items, still without its buffers. */
static cek__gpu_step *side_try(cek_op *op, product *p, uint32_t side, char *more, size_t cap)
{
    char defines[CEK__GPU_DEFINES];
    const uint64_t tile = side * EACH;
    cek_k_product *a = &p->a;
    uint64_t columns = (a->n + tile - 1) / tile, rows = (a->m + tile - 1) / tile, tiles = columns * rows * a->batch;
    a->splits = 1;
    while (tiles * a->splits < TILES_ENOUGH && a->k / (2 * a->splits) >= SPLIT_LEAST)
        a->splits *= 2;
    a->split_k = (a->k + a->splits - 1) / a->splits;
    snprintf(more, cap, "#define SIDE %u\n%s", side, a->splits > 1 ? "#define SPLIT 1\n" : "");
    defines_make(op, p, more, defines);
    return cek__gpu_step_grid(op, "product.cl", defines, "product", (uint64_t[]){ tiles * a->splits, 1, 1 },
                              (uint32_t[]){ side, side, 1 });
}

/* Two launches at most: the product and, where k is split, the sum of its pieces. How large a group the compiled kernel
 * takes is known once it is compiled: many devices take fewer work-items with many registers each. */
static cek_status product_add(cek_op *op)
{
    char more[64];
    uint32_t side = SIDE;
    product p;
    describe(op, &p);
    cek_k_product *a = &p.a;
    while (side > 1 && side * side > op->dev->traits.max_group)
        side /= 2;
    cek__gpu_step *step = side_try(op, &p, side, more, sizeof more);
    while (step && side > 1 && !cek__gpu_step_fits(op, step)) {
        cek__gpu_step_drop(op);
        side /= 2;
        step = side_try(op, &p, side, more, sizeof more);
    }
    if (a->splits > 1)
        p.buffers[5] = cek__gpu_workspace(op, a->batch * a->splits * a->m * a->n * sizeof(float));
    cek__gpu_step_fill(step, p.buffers, 6, a, sizeof *a);
    if (a->splits > 1)
        finish_add(op, &p, more);
    snprintf(op->info.algorithm, sizeof op->info.algorithm, "tiles of %ux%u in local memory", side * EACH, side * EACH);
    return op->failure;
}

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
    cek__gpu_lower_sums(op);
    return cek__gpu_lower_gemm_tiles(op) ? op->failure : product_add(op);
}

cek_status cek__gpu_lower_conv(cek_op *op)
{
    cek__gpu_lower_sums(op);
    return cek__gpu_lower_conv_tiles(op) ? op->failure : product_add(op);
}
