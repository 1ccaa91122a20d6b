/* SPDX-License-Identifier: MIT
 *
 * lower_product.c - products and convolutions: the tiled kernel of kernels/gpu/product.cl, unless the device has a faster way.
 */
#include <stdio.h>

#include "backends/gpu/lower.h"

#define TILE 64             /* of product.cl */
#define SIDE 16
#define SPLIT_LEAST 1024    /* of k, that are worth a pass over the results */
#define TILES_ENOUGH 256    /* groups that fill any device of today */

/* Two launches at most: the product and, where k is split, the sum of its pieces. `buffers` are A, B, C, BIAS, ACT_REF. */
static void product_add(cek_op *op, cek_k_product *a, uint32_t mode, cek_dtype a_type, cek_dtype b_type, cek_dtype c_type,
                        cek__gpu_place *buffers)
{
    char defines[CEK__GPU_DEFINES];
    uint64_t columns = (a->n + TILE - 1) / TILE, rows = (a->m + TILE - 1) / TILE, tiles = columns * rows * a->batch;
    a->splits = 1;
    while (tiles * a->splits < TILES_ENOUGH && a->k / (2 * a->splits) >= SPLIT_LEAST)
        a->splits *= 2;
    a->split_k = (a->k + a->splits - 1) / a->splits;
    bool split = a->splits > 1;
    cek__gpu_defines(op->dev, defines, "#define MODE %u\n#define A_TYPE %s\n#define B_TYPE %s\n#define C_TYPE %s\n%s", mode,
                     cek__gpu_type(a_type), cek__gpu_type(b_type), cek__gpu_type(c_type), split ? "#define SPLIT 1\n" : "");
    buffers[5] = split ? cek__gpu_workspace(op, a->batch * a->splits * a->m * a->n * sizeof(float)) : (cek__gpu_place){ CEK__GPU_NOTHING, 0 };
    const uint64_t groups[3] = { columns, rows, a->batch * a->splits };
    const uint32_t group[3] = { SIDE, SIDE, 1 };
    if (op->dev->traits.max_group < SIDE * SIDE) {
        op->failure = cek__fail(&op->dev->instance->host, CEK_UNSUPPORTED, "%s: groups of %u work-items at most, %u are needed",
                                cek__kind_name(op->request.desc.op.kind), op->dev->traits.max_group, SIDE * SIDE);
        return;
    }
    cek__gpu_step_fill(cek__gpu_step_grid(op, "product.cl", defines, "product", groups, group), buffers, 6, a, sizeof *a);
    if (split)
        cek__gpu_step_fill(cek__gpu_step_add(op, "product.cl", defines, "product_finish", a->batch * a->m * a->n), buffers, 6, a, sizeof *a);
    snprintf(op->info.algorithm, sizeof op->info.algorithm, "tiles of %ux%u in local memory", TILE, TILE);
}

/* A_SUM: row sums of op(A). */
static void a_sum_add(cek_op *op)
{
    const cek_gemm_desc *desc = &op->request.desc.gemm;
    bool trans = desc->trans & CEK_GEMM_TRANS_A;
    cek__gpu_reduction r = { .from = { CEK_GEMM_A, 0 }, .to = { CEK_GEMM_A_SUM, 0 }, .type = desc->a_type, .function = CEK_REDUCE_SUM,
                             .accumulate = cek__request_accumulates(&op->request, CEK_GEMM_A_SUM), .rank = 2, .axes = 2,
                             .shape = { desc->m, desc->k }, .strides = { trans ? 1 : desc->lda, trans ? desc->lda : 1 } };
    cek__gpu_reduce_add(op, &r);
}

cek_status cek__gpu_lower_gemm(cek_op *op)
{
    const cek_gemm_desc *desc = &op->request.desc.gemm;
    const cek_epilogue *epilogue = &op->request.epilogue;
    cek_status st = CEK_OK;
    if (cek__request_given(&op->request, CEK_GEMM_A_SUM))
        a_sum_add(op);
    if (cek__gpu_lower_gemm_tiles(op, &st))
        return st ? st : op->failure;
    bool ta = desc->trans & CEK_GEMM_TRANS_A, tb = desc->trans & CEK_GEMM_TRANS_B;
    cek_k_product a = { .m = desc->m, .n = desc->n, .k = desc->k, .batch = desc->batch,
                        .a_row = ta ? 1 : (uint64_t)desc->lda, .a_column = ta ? (uint64_t)desc->lda : 1, .a_batch = (uint64_t)desc->stride_a,
                        .b_row = tb ? 1 : (uint64_t)desc->ldb, .b_column = tb ? (uint64_t)desc->ldb : 1, .b_batch = (uint64_t)desc->stride_b,
                        .c_row = (uint64_t)desc->ldc, .c_batch = (uint64_t)desc->stride_c,
                        .bias = cek__request_given(&op->request, CEK_GEMM_BIAS),
                        .accumulate = cek__request_accumulates(&op->request, CEK_GEMM_C),
                        .activation = epilogue->activation, .act_grad = epilogue->act_grad };
    cek__gpu_place buffers[6] = { { CEK_GEMM_A, 0 }, { CEK_GEMM_B, 0 }, { CEK_GEMM_C, 0 }, cek__gpu_slot(op, CEK_GEMM_BIAS),
                                  cek__gpu_slot(op, CEK_GEMM_ACT_REF) };
    product_add(op, &a, 0, desc->a_type, desc->b_type, desc->c_type, buffers);
    return op->failure;
}

static void bias_grad_add(cek_op *op, uint64_t rows)
{
    const cek_conv_desc *desc = &op->request.desc.conv;
    cek__gpu_reduction r = { .from = { CEK_CONV_BACKWARD_WEIGHTS_DY, 0 }, .to = { CEK_CONV_BACKWARD_WEIGHTS_BIAS_GRAD, 0 },
                             .type = desc->y_type, .function = CEK_REDUCE_SUM,
                             .accumulate = cek__request_accumulates(&op->request, CEK_CONV_BACKWARD_WEIGHTS_BIAS_GRAD), .rank = 2,
                             .axes = 1, .shape = { rows, desc->out_channels }, .strides = { (int64_t)desc->out_channels, 1 } };
    cek__gpu_reduce_add(op, &r);
}

cek_status cek__gpu_lower_conv(cek_op *op)
{
    const cek_conv_desc *desc = &op->request.desc.conv;
    const cek_epilogue *epilogue = &op->request.epilogue;
    cek_status st = CEK_OK;
    cek_k_product a = { .batch = desc->groups, .in_channels = (cek_u32)desc->in_channels, .out_channels = (cek_u32)desc->out_channels,
                        .in_group = (cek_u32)(desc->in_channels / desc->groups), .out_group = (cek_u32)(desc->out_channels / desc->groups),
                        .activation = epilogue->activation, .act_grad = epilogue->act_grad };
    a.window = cek__gpu_window(desc->spatial, desc->in, op->request.out, desc->kernel, desc->stride, desc->dilation, desc->pad_lo);
    uint64_t ins = desc->batch * cek__gpu_positions(a.window.in), outs = desc->batch * cek__gpu_positions(a.window.out);
    uint64_t taps = cek__gpu_positions(a.window.taps);
    if (desc->op.kind == CEK_OP_CONV_BACKWARD_WEIGHTS && cek__request_given(&op->request, CEK_CONV_BACKWARD_WEIGHTS_BIAS_GRAD))
        bias_grad_add(op, outs);
    if (cek__gpu_lower_conv_tiles(op, &st))
        return st ? st : op->failure;
    if (desc->op.kind == CEK_OP_CONV_FORWARD) {
        a.m = outs, a.n = a.out_group, a.k = taps * a.in_group;
        a.bias = cek__request_given(&op->request, CEK_CONV_FORWARD_BIAS);
        cek__gpu_place buffers[6] = { { CEK_CONV_FORWARD_X, 0 }, { CEK_CONV_FORWARD_W, 0 }, { CEK_CONV_FORWARD_Y, 0 },
                                      cek__gpu_slot(op, CEK_CONV_FORWARD_BIAS), { CEK__GPU_NOTHING, 0 } };
        product_add(op, &a, 1, desc->x_type, desc->w_type, desc->y_type, buffers);
    } else if (desc->op.kind == CEK_OP_CONV_BACKWARD_DATA) {
        a.m = ins, a.n = a.in_group, a.k = taps * a.out_group;
        a.accumulate = cek__request_accumulates(&op->request, CEK_CONV_BACKWARD_DATA_DX);
        cek__gpu_place buffers[6] = { { CEK_CONV_BACKWARD_DATA_DY, 0 }, { CEK_CONV_BACKWARD_DATA_W, 0 }, { CEK_CONV_BACKWARD_DATA_DX, 0 },
                                      { CEK__GPU_NOTHING, 0 }, cek__gpu_slot(op, CEK_CONV_BACKWARD_DATA_ACT_REF) };
        product_add(op, &a, 2, desc->y_type, desc->w_type, desc->x_type, buffers);
    } else {
        a.m = a.out_group, a.n = taps * a.in_group, a.k = outs;
        a.accumulate = cek__request_accumulates(&op->request, CEK_CONV_BACKWARD_WEIGHTS_DW);
        cek__gpu_place buffers[6] = { { CEK_CONV_BACKWARD_WEIGHTS_DY, 0 }, { CEK_CONV_BACKWARD_WEIGHTS_X, 0 },
                                      { CEK_CONV_BACKWARD_WEIGHTS_DW, 0 }, { CEK__GPU_NOTHING, 0 }, { CEK__GPU_NOTHING, 0 } };
        product_add(op, &a, 3, desc->y_type, desc->x_type, CEK_F32, buffers);
    }
    return op->failure;
}
