/* SPDX-License-Identifier: MIT
 *
 * descriptors.h - a good descriptor of each kind, for tests that spoil copies of them. Never
 * written; not const, so that a copy of their type can be.
 */
#ifndef CEK_TESTS_DOOR_DESCRIPTORS_H
#define CEK_TESTS_DOOR_DESCRIPTORS_H

#include <cekernels/plugin.h>

/* clang-format off */
static cek_gemm_desc gemm = {
    .op = { .size = sizeof gemm, .kind = CEK_OP_GEMM, .operands = 7 }, .m = 3, .n = 4, .k = 5,
        .batch = 2, .lda = 6, .ldb = 7,
    .ldc = 8, .stride_a = 100, .stride_b = 0, .stride_c = 50, .a_type = CEK_F32, .b_type = CEK_F32, .c_type = CEK_F32,
};
static cek_conv_desc conv = {
    .op = { .size = sizeof conv, .kind = CEK_OP_CONV_FORWARD, .operands = 7 }, .spatial = 2, .groups = 2, .batch = 3,
    .in_channels = 4, .out_channels = 6, .in = { 9, 8 }, .kernel = { 3, 2 }, .stride = { 2, 1 }, .dilation = { 1, 3 },
    .pad_lo = { 1, 0 }, .pad_hi = { 0, 2 }, .x_type = CEK_F32, .w_type = CEK_F32, .y_type = CEK_F32,
};
static cek_pool_desc pool = {
    .op = { .size = sizeof pool, .kind = CEK_OP_POOL_FORWARD, .operands = 3 }, .mode = CEK_POOL_MAX, .spatial = 2,
    .type = CEK_F32, .batch = 2, .channels = 3, .in = { 7, 6 }, .kernel = { 3, 2 },
    .stride = { 2, 2 }, .pad_lo = { 1, 0 },
    .pad_hi = { 1, 1 },
};
static const cek_pointwise_input inputs[] = { { .type = CEK_U8, .strides = { 4, 1 } },
                                              { .type = CEK_F32, .strides = { 0, 1 } } };
static const cek_pointwise_instruction program[] =
    { { .code = CEK_PW_ADD, .a = 0, .b = 1 }, { .code = CEK_PW_RELU, .a = 2 } };
static cek_pointwise_desc pointwise = {
    .op = { .size = sizeof pointwise, .kind = CEK_OP_POINTWISE, .operands = CEK_BIT(0) | CEK_BIT(1) | CEK_BIT(8) },
        .rank = 2,
    .out_type = CEK_F32, .shape = { 3, 4 }, .out_strides = { 5, 1 }, .inputs = inputs, .instructions = program,
    .input_count = 2, .input_size = sizeof *inputs, .instruction_count = 2, .instruction_size = sizeof *program,
};
static cek_reduce_desc reduce = {
    .op = { .size = sizeof reduce, .kind = CEK_OP_REDUCE, .operands = 3 },
        .function = CEK_REDUCE_SUM, .axes = 2, .rank = 3,
    .x_type = CEK_F16, .shape = { 3, 4, 5 }, .x_strides = { 20, 5, 1 },
};
static cek_softmax_desc softmax = {
    .op = { .size = sizeof softmax, .kind = CEK_OP_SOFTMAX, .operands = 3 }, .rows = 3, .columns = 5, .type = CEK_BF16,
};
static cek_cross_entropy_desc cross_entropy = {
    .op = { .size = sizeof cross_entropy, .kind = CEK_OP_CROSS_ENTROPY,
            .operands = CEK_BIT(CEK_CROSS_ENTROPY_LOGITS) | CEK_BIT(CEK_CROSS_ENTROPY_LABELS) |
                        CEK_BIT(CEK_CROSS_ENTROPY_STEP) | CEK_BIT(CEK_CROSS_ENTROPY_DLOGITS) |
                        CEK_BIT(CEK_CROSS_ENTROPY_LOSS) },
    .rows = 6, .classes = 5, .rows_per_sample = 2, .type = CEK_F32,
};
static cek_squared_error_desc squared_error = {
    .op = { .size = sizeof squared_error, .kind = CEK_OP_SQUARED_ERROR,
            .operands = CEK_BIT(CEK_SQUARED_ERROR_PREDICTION) | CEK_BIT(CEK_SQUARED_ERROR_TARGET) |
                        CEK_BIT(CEK_SQUARED_ERROR_LOSS) },
    .rows = 6, .columns = 5, .rows_per_sample = 1, .type = CEK_F16,
};
static cek_dropout_desc dropout = {
    .op = { .size = sizeof dropout, .kind = CEK_OP_DROPOUT, .operands = 7 }, .rows = 6,
        .columns = 5, .rows_per_sample = 3,
    .scale = 2, .threshold = 1u << 31, .stream = 4, .type = CEK_F32,
};
static cek_random_desc random_desc = {
    .op = { .size = sizeof random_desc, .kind = CEK_OP_RANDOM, .operands = 3 }, .rows = 6,
        .columns = 5, .rows_per_sample = 1,
    .a = 0, .b = 1, .distribution = CEK_RANDOM_NORMAL, .type = CEK_F32,
};
static const cek_param_range ranges[] = { { .begin = 0, .end = 4 }, { .begin = 4, .end = 9, .group = 31 } };
static cek_optimizer_desc adam = {
    .op = { .size = sizeof adam, .kind = CEK_OP_OPTIMIZER, .operands = 0x3f }, .count = 10,
        .ranges = ranges, .range_count = 2,
    .range_size = sizeof *ranges, .epsilon = 1e-8, .algorithm = CEK_OPTIMIZER_ADAM, .type = CEK_F32,
};
static cek_optimizer_desc sgd = {
    .op = { .size = sizeof sgd, .kind = CEK_OP_OPTIMIZER, .operands = 0x33 }, .count = 10,
        .algorithm = CEK_OPTIMIZER_SGD,
    .type = CEK_F64,
};
static cek_copy_desc copy = {
    .op = { .size = sizeof copy, .kind = CEK_OP_COPY, .operands = 3 }, .rank = 2, .x_type = CEK_I32, .y_type = CEK_F64,
    .shape = { 3, 4 }, .x_strides = { 1, 3 }, .y_strides = { 4, 1 },
};
static cek_gather_desc gather = {
    .op = { .size = sizeof gather, .kind = CEK_OP_GATHER, .operands = 7 }, .batch = 2, .rows = 5, .count = 3,
      .columns = 4,
    .type = CEK_F16,
};
static cek_arg_desc arg = {
    .op = { .size = sizeof arg, .kind = CEK_OP_ARG, .operands = 3 }, .function = CEK_ARG_MIN, .axis = 1, .rank = 3,
    .type = CEK_BF16, .shape = { 3, 4, 5 }, .x_strides = { 20, 5, 1 },
};
/* clang-format on */

#endif
