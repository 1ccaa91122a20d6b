/* SPDX-License-Identifier: MIT
 *
 * validate.c - backends/common: every refusal of a descriptor, with its status and the words that
 * name the cause; sizes of operands; the size rules of structs; and that no descriptor, however
 * wild, is more than refused.
 */
#include <float.h>
#include <math.h>

#include "backends/common/growth.h"
#include "backends/common/validate.h"
#include "tests/door/common.h"
#include "tests/door/descriptors.h"

static cek__request request;

static void accept(const cek_op_desc *desc)
{
    cek_status st = cek__request_init(&host, desc, &request);
    ck_assert_msg(st == CEK_OK, "refused: %s", text);
}

static void refuse(const cek_op_desc *desc, cek_status status, const char *words, const char *change)
{
    text[0] = 0;
    cek_status st = cek__request_init(&host, desc, &request);
    ck_assert_msg(st == status, "%s: %u instead of %u (%s)", change, st, status, text);
    ck_assert_msg(strstr(text, words) != NULL, "%s: \"%s\" says nothing of \"%s\"", change, text, words);
    ck_assert_uint_eq(told, status);
    ck_assert_ptr_null(request.ranges);
}

/* The good descriptor of a kind, changed in one way. */
#define REFUSE(base, status, words, ...)                   \
    do {                                                   \
        __typeof__(base) it = base;                        \
        __VA_ARGS__;                                       \
        refuse(&it.op, CEK_##status, words, #__VA_ARGS__); \
    } while (0)
#define ACCEPT(base, ...)           \
    do {                            \
        __typeof__(base) it = base; \
        __VA_ARGS__;                \
        accept(&it.op);             \
    } while (0)
#define BYTES(slot) request.slots[slot].bytes
#define BITS(...) bits((const uint32_t[]){ __VA_ARGS__ }, sizeof((const uint32_t[]){ __VA_ARGS__ }) / 4)

static uint64_t bits(const uint32_t *slots, size_t count)
{
    uint64_t mask = 0;
    while (count-- > 0)
        mask |= CEK_BIT(slots[count]);
    return mask;
}

/* --- the head --------------------------------------------------------------------------------- */

START_TEST(the_head)
{
    ACCEPT(gemm, (void)it);
    refuse(NULL, CEK_INVALID, "no descriptor", "NULL");
    REFUSE(gemm, INVALID, "0 bytes", it.op.size = 0);
    REFUSE(gemm, INVALID, "size", it.op.size = sizeof it - 8);
    REFUSE(gemm, UNSUPPORTED, "operation 99", it.op.kind = 99);
    REFUSE(gemm, UNSUPPORTED, "operation 0", it.op.kind = 0);
    REFUSE(gemm, UNSUPPORTED, "flags", it.op.flags = 4);
    REFUSE(gemm, UNSUPPORTED, "math", it.op.math = 4);
    REFUSE(gemm, UNSUPPORTED, "reserved", it.op.reserved = 1);
    REFUSE(gemm, UNSUPPORTED, "extra", it.op.extra = (const void *)&it);
    REFUSE(gemm, UNSUPPORTED, "operand mask", it.op.operands |= CEK_BIT(40));
    REFUSE(gemm, INVALID, "C is missing", it.op.operands = 3);
    REFUSE(gemm, UNSUPPORTED, "accumulate mask", it.op.accumulate = CEK_BIT(30));
    REFUSE(gemm, INVALID, "A cannot be accumulated", it.op.accumulate = 1);
    REFUSE(gemm, INVALID, "A_SUM cannot be accumulated, or is not given", it.op.accumulate = CEK_BIT(CEK_GEMM_A_SUM));
    REFUSE(gemm, INVALID, "align", it.op.align = 3);
    REFUSE(gemm, INVALID, "align", it.op.align = 512);
    ACCEPT(gemm, it.op.align = 2); /* but none lies across its own elements */
    ck_assert_uint_eq(request.align, 2);
    ck_assert_uint_eq(request.slots[CEK_GEMM_A].align, 4);
    REFUSE(gemm, INVALID, "no reserve", it.op.forward = (const void *)&it);
    REFUSE(softmax, INVALID, "packed", it.op.flags = CEK_OP_PREPACKED);
    ACCEPT(gemm, it.op.align = 4, it.op.math = CEK_MATH_FAST, it.op.flags = CEK_OP_DETERMINISTIC, it.op.accumulate = 4);
    ck_assert_uint_eq(request.align, 4);
    ck_assert(request.slots[CEK_GEMM_C].accumulated && request.slots[CEK_GEMM_C].written &&
              !request.slots[CEK_GEMM_A].written);

    /* A later minor: larger, and the rest zero or not. */
    struct {
        cek_gemm_desc gemm;
        uint64_t later;
    } grown = { gemm, 0 };
    grown.gemm.op.size = sizeof grown;
    accept(&grown.gemm.op);
    grown.later = 1;
    refuse(&grown.gemm.op, CEK_UNSUPPORTED, "not zero", "later");
}
END_TEST

START_TEST(the_epilogue)
{
    const cek_epilogue relu = { .size = sizeof relu, .activation = CEK_ACT_RELU };
    const cek_epilogue grad = { .size = sizeof grad, .act_grad = CEK_ACT_GELU };
    cek_epilogue bad = relu;
    ACCEPT(gemm, it.op.epilogue = &relu);
    ck_assert_uint_eq(request.epilogue.activation, CEK_ACT_RELU);
    ACCEPT(gemm, it.op.epilogue = &grad, it.op.operands |= CEK_BIT(CEK_GEMM_ACT_REF));
    ck_assert_uint_eq(BYTES(CEK_GEMM_ACT_REF), BYTES(CEK_GEMM_C));
    REFUSE(gemm, INVALID, "ACT_REF is missing", it.op.epilogue = &grad);
    REFUSE(gemm, INVALID, "ACT_REF is in the mask", it.op.operands |= CEK_BIT(CEK_GEMM_ACT_REF));
    REFUSE(softmax, INVALID, "no epilogue", it.op.epilogue = &relu);
    REFUSE(conv, INVALID, "no ACT_REF", it.op.epilogue = &grad);
    REFUSE(conv, INVALID, "act_grad only", it.op.kind = CEK_OP_CONV_BACKWARD_DATA, it.op.epilogue = &relu);
    REFUSE(conv, INVALID, "no epilogue", it.op.kind = CEK_OP_CONV_BACKWARD_WEIGHTS, it.op.epilogue = &relu);
    bad.activation = 5;
    REFUSE(gemm, UNSUPPORTED, "activation 5", it.op.epilogue = &bad);
    bad = (cek_epilogue){ .size = sizeof bad, .act_grad = 77 };
    REFUSE(gemm, UNSUPPORTED, "act_grad 77", it.op.epilogue = &bad);
    bad = (cek_epilogue){ .size = sizeof bad, .reserved = 1 };
    REFUSE(gemm, UNSUPPORTED, "reserved", it.op.epilogue = &bad);
    bad = (cek_epilogue){ .size = 4 };
    REFUSE(gemm, INVALID, "size 4", it.op.epilogue = &bad);
}
END_TEST

/* --- kinds ------------------------------------------------------------------------------------ */

START_TEST(gemm_fields)
{
    ACCEPT(gemm, (void)it);
    ck_assert_uint_eq(BYTES(CEK_GEMM_A), (100 + 2 * 6 + 5) * 4);
    ck_assert_uint_eq(BYTES(CEK_GEMM_B), (4 * 7 + 4) * 4);
    ck_assert_uint_eq(BYTES(CEK_GEMM_C), (50 + 2 * 8 + 4) * 4);
    ck_assert(!request.slots[CEK_GEMM_C].dense);
    ACCEPT(gemm, it.trans = 3, it.k = 0, it.lda = 3, it.ldb = 0, it.batch = 1, it.ldc = 4);
    ck_assert_uint_eq(BYTES(CEK_GEMM_A), 0);
    ck_assert(request.slots[CEK_GEMM_C].dense);
    ACCEPT(gemm, it.ldc = 8, it.stride_c = 4); /* matrices beside each other */
    ck_assert_uint_eq(request.desc.gemm.outer, 1);
    ACCEPT(gemm, it.outer = 3, it.outer_a = 1000, it.outer_b = 0, it.outer_c = 200);
    ck_assert_uint_eq(BYTES(CEK_GEMM_A), (2 * 1000 + 100 + 2 * 6 + 5) * 4);
    ck_assert_uint_eq(BYTES(CEK_GEMM_B), (4 * 7 + 4) * 4);
    ck_assert_uint_eq(BYTES(CEK_GEMM_C), (2 * 200 + 50 + 2 * 8 + 4) * 4);
    REFUSE(gemm, INVALID, "one place", it.outer = 3, it.outer_a = 1000, it.outer_c = 50);
    REFUSE(gemm, INVALID, "outer_b is -1", it.outer = 3, it.outer_b = -1, it.outer_c = 200);
    REFUSE(gemm, INVALID, "A_SUM of 3", it.batch = 1, it.outer = 3, it.outer_c = 200,
           it.op.operands |= CEK_BIT(CEK_GEMM_A_SUM));
    ACCEPT(gemm, it.a_type = it.b_type = CEK_BF16, it.batch = 1, it.op.operands |= BITS(CEK_GEMM_BIAS, CEK_GEMM_A_SUM));
    ck_assert_uint_eq(BYTES(CEK_GEMM_BIAS), 16);
    ck_assert_uint_eq(BYTES(CEK_GEMM_A_SUM), 12);
    ACCEPT(gemm, it.op.flags = CEK_OP_PREPACKED, it.op.operands = BITS(CEK_GEMM_A, CEK_GEMM_C, CEK_GEMM_PACKED));
    REFUSE(gemm, INVALID, "PACKED is missing", it.op.flags = CEK_OP_PREPACKED);
    REFUSE(gemm, INVALID, "PACKED is in the mask", it.op.operands |= CEK_BIT(CEK_GEMM_PACKED));
    REFUSE(gemm, INVALID, "m is 0", it.m = 0);
    REFUSE(gemm, INVALID, "n is 0", it.n = 0);
    REFUSE(gemm, INVALID, "batch is 0", it.batch = 0);
    REFUSE(gemm, UNSUPPORTED, "trans", it.trans = 4);
    REFUSE(gemm, INVALID, "lda is 4", it.lda = 4);
    REFUSE(gemm, INVALID, "ldb is 3", it.ldb = 3);
    REFUSE(gemm, INVALID, "ldc is 3", it.ldc = 3);
    REFUSE(gemm, INVALID, "lda is 2", it.trans = CEK_GEMM_TRANS_A, it.lda = 2);
    REFUSE(gemm, INVALID, "lda is -6", it.lda = -6);
    REFUSE(gemm, INVALID, "stride_a is -1", it.stride_a = -1);
    REFUSE(gemm, INVALID, "one place", it.stride_c = 0);
    REFUSE(gemm, INVALID, "one place", it.stride_c = 8);
    REFUSE(gemm, INVALID, "A_SUM of 2", it.op.operands |= CEK_BIT(CEK_GEMM_A_SUM));
    REFUSE(gemm, INVALID, "a_type is not set", it.a_type = 0);
    REFUSE(gemm, UNSUPPORTED, "a_type", it.a_type = CEK_I32);
    REFUSE(gemm, UNSUPPORTED, "unknown type", it.a_type = 7);
    REFUSE(gemm, UNSUPPORTED, "b_type is f16", it.b_type = CEK_F16);
    REFUSE(gemm, UNSUPPORTED, "c_type is f32", it.a_type = it.b_type = CEK_F64);
    REFUSE(gemm, UNSUPPORTED, "c_type is bf16", it.a_type = it.b_type = CEK_F16, it.c_type = CEK_BF16);
    REFUSE(gemm, INVALID, "overflow", it.m = UINT64_MAX / 2);
    REFUSE(gemm, INVALID, "overflow", it.k = INT64_MAX, it.lda = INT64_MAX, it.ldb = INT64_MAX);
}
END_TEST

START_TEST(conv_fields)
{
    ACCEPT(conv, (void)it);
    ck_assert_uint_eq(request.out[0], 4);
    ck_assert_uint_eq(request.out[1], 7);
    ck_assert_uint_eq(request.out[2], 1);
    ck_assert_uint_eq(BYTES(CEK_CONV_FORWARD_X), 3 * 9 * 8 * 4 * 4);
    ck_assert_uint_eq(BYTES(CEK_CONV_FORWARD_W), 6 * 3 * 2 * 2 * 4);
    ck_assert_uint_eq(BYTES(CEK_CONV_FORWARD_Y), 3 * 4 * 7 * 6 * 4);
    ACCEPT(conv, it.op.kind = CEK_OP_CONV_BACKWARD_WEIGHTS, it.op.operands = 15, it.op.accumulate = 12,
           it.x_type = it.y_type = CEK_BF16, it.w_type = CEK_F32);
    ck_assert_uint_eq(BYTES(CEK_CONV_BACKWARD_WEIGHTS_DW), 6 * 3 * 2 * 2 * 4);
    ck_assert_uint_eq(BYTES(CEK_CONV_BACKWARD_WEIGHTS_BIAS_GRAD), 24);
    ACCEPT(conv, it.op.kind = CEK_OP_CONV_BACKWARD_DATA, it.op.accumulate = 4);
    ck_assert_uint_eq(BYTES(CEK_CONV_BACKWARD_DATA_DX), 3 * 9 * 8 * 4 * 4);
    REFUSE(conv, INVALID, "accumulated", it.op.accumulate = 4);
    REFUSE(conv, INVALID, "spatial is 0", it.spatial = 0);
    REFUSE(conv, INVALID, "spatial is 4", it.spatial = 4);
    REFUSE(conv, INVALID, "entry 1 is not 0", it.spatial = 1);
    REFUSE(conv, INVALID, "entry 3 is not 0", it.pad_hi[3] = 1);
    REFUSE(conv, INVALID, "groups", it.groups = 0);
    REFUSE(conv, INVALID, "groups", it.groups = 4);
    REFUSE(conv, INVALID, "groups", it.in_channels = 3);
    REFUSE(conv, INVALID, "batch is 0", it.batch = 0);
    REFUSE(conv, INVALID, "in_channels is 0", it.in_channels = 0);
    REFUSE(conv, INVALID, "out_channels is 0", it.out_channels = 0);
    REFUSE(conv, INVALID, "0 is 0", it.in[0] = 0);
    REFUSE(conv, INVALID, "1 is 0", it.kernel[1] = 0);
    REFUSE(conv, INVALID, "0 is 0", it.stride[0] = 0);
    REFUSE(conv, INVALID, "1 is 0", it.dilation[1] = 0);
    REFUSE(conv, INVALID, "does not fit", it.kernel[0] = 11);
    REFUSE(conv, INVALID, "does not fit", it.dilation[1] = 10);
    REFUSE(conv, INVALID, "does not fit", it.dilation[1] = UINT64_MAX);
    REFUSE(conv, INVALID, "does not fit", it.pad_lo[0] = UINT64_MAX);
    REFUSE(conv, INVALID, "overflow", it.pad_lo[0] = INT64_MAX - 100);
    REFUSE(conv, INVALID, "overflow", it.batch = UINT64_MAX / 64);
    REFUSE(conv, UNSUPPORTED, "reserved", it.reserved = 9);
    REFUSE(conv, UNSUPPORTED, "x_type is u8", it.x_type = CEK_U8);
    REFUSE(conv, UNSUPPORTED, "w_type is f64", it.w_type = CEK_F64);
    REFUSE(conv, UNSUPPORTED, "y_type", it.y_type = CEK_F16);
}
END_TEST

START_TEST(pool_fields)
{
    ACCEPT(pool, (void)it);
    ck_assert_uint_eq(request.out[0], 4);
    ck_assert_uint_eq(request.out[1], 3);
    ck_assert_uint_eq(BYTES(CEK_POOL_FORWARD_Y), 2 * 4 * 3 * 3 * 4);
    ACCEPT(pool, it.mode = CEK_POOL_AVERAGE, it.flags = CEK_POOL_COUNT_PAD);
    ACCEPT(pool, it.op.kind = CEK_OP_POOL_BACKWARD, it.mode = CEK_POOL_AVERAGE);
    ACCEPT(pool, it.op.kind = CEK_OP_POOL_BACKWARD, it.op.operands = 7, it.op.forward = (const void *)&it);
    REFUSE(pool, INVALID, "forward operation", it.op.kind = CEK_OP_POOL_BACKWARD, it.op.operands = 7);
    REFUSE(pool, INVALID, "RESERVE", it.op.kind = CEK_OP_POOL_BACKWARD, it.op.forward = (const void *)&it);
    REFUSE(pool, INVALID, "reads no reserve", it.op.kind = CEK_OP_POOL_BACKWARD, it.mode = CEK_POOL_AVERAGE,
           it.op.forward = (const void *)&it);
    REFUSE(pool, INVALID, "RESERVE", it.mode = CEK_POOL_AVERAGE, it.op.operands = 7);
    REFUSE(pool, UNSUPPORTED, "mode 3", it.mode = 3);
    REFUSE(pool, UNSUPPORTED, "flags", it.flags = 2);
    REFUSE(pool, INVALID, "averages", it.flags = CEK_POOL_COUNT_PAD);
    REFUSE(pool, UNSUPPORTED, "type is i32", it.type = CEK_I32);
    REFUSE(pool, INVALID, "channels is 0", it.channels = 0);
    REFUSE(pool, INVALID, "batch is 0", it.batch = 0);
    REFUSE(pool, INVALID, "not below the kernel", it.pad_lo[1] = 2);
    REFUSE(pool, INVALID, "not below the kernel", it.pad_hi[0] = 3);
    REFUSE(pool, INVALID, "spatial", it.spatial = 9);
}
END_TEST

START_TEST(pointwise_fields)
{
    cek_pointwise_input in[9] = { inputs[0], inputs[1] };
    cek_pointwise_instruction op[17] = { program[0], program[1] };
    ACCEPT(pointwise, (void)it);
    ck_assert_uint_eq(BYTES(0), 2 * 4 + 4);
    ck_assert_uint_eq(BYTES(1), 16);
    ck_assert_uint_eq(BYTES(8), (2 * 5 + 4) * 4);
    ck_assert_uint_eq(request.slots[8].aliases & 3, 0);
    ck_assert_ptr_eq(request.desc.pointwise.inputs, request.inputs);
    in[0] = (cek_pointwise_input){ .type = CEK_F32, .strides = { 5, 1 } };
    ACCEPT(pointwise, it.inputs = in);
    ck_assert_uint_eq(request.slots[8].aliases & 3, 1);
    in[0] = inputs[0];
    ACCEPT(pointwise, it.instruction_count = 0);
    REFUSE(pointwise, INVALID, "neither", it.instruction_count = it.input_count = 0);
    REFUSE(pointwise, INVALID, "mask", it.op.operands |= CEK_BIT(2));
    REFUSE(pointwise, INVALID, "mask", it.op.operands = CEK_BIT(0) | CEK_BIT(8));
    REFUSE(pointwise, INVALID, "rank is 0", it.rank = 0);
    REFUSE(pointwise, INVALID, "rank is 9", it.rank = 9);
    REFUSE(pointwise, INVALID, "size 1 is 0", it.shape[1] = 0);
    REFUSE(pointwise, INVALID, "size 2 is 1", it.shape[2] = 1);
    REFUSE(pointwise, INVALID, "stride 7", it.out_strides[7] = 1);
    REFUSE(pointwise, INVALID, "OUT: stride 0 is -5", it.out_strides[0] = -5);
    REFUSE(pointwise, INVALID, "one place", it.out_strides[0] = 0);
    REFUSE(pointwise, INVALID, "one place", it.out_strides[0] = 3);
    REFUSE(pointwise, UNSUPPORTED, "interlock", it.shape[0] = 2, it.shape[1] = 3, it.out_strides[0] = 3,
           it.out_strides[1] = 2);
    REFUSE(pointwise, INVALID, "elements overflows", it.shape[0] = it.shape[1] = UINT64_C(1) << 32,
           it.out_strides[0] = INT64_C(1) << 32);
    REFUSE(pointwise, UNSUPPORTED, "out_type", it.out_type = 7);
    REFUSE(pointwise, INVALID, "integers (i32)", it.out_type = CEK_I32, it.op.accumulate = CEK_BIT(8));
    REFUSE(pointwise, UNSUPPORTED, "9 inputs", it.input_count = 9, it.inputs = in);
    REFUSE(pointwise, UNSUPPORTED, "17 instructions", it.instruction_count = 17, it.instructions = op);
    REFUSE(pointwise, INVALID, "not given", it.inputs = NULL);
    REFUSE(pointwise, INVALID, "elements of 0 bytes", it.instruction_size = 0);
    REFUSE(pointwise, INVALID, "elements of 8 bytes", it.instruction_size = 8);
    REFUSE(pointwise, INVALID, "elements of 8 bytes", it.input_size = 8);
    in[1].strides[0] = -1;
    REFUSE(pointwise, INVALID, "IN1: stride 0 is -1", it.inputs = in);
    in[1] = inputs[1], in[1].type = 9;
    REFUSE(pointwise, UNSUPPORTED, "input type", it.inputs = in);
    in[1] = inputs[1], in[1].reserved = 9;
    REFUSE(pointwise, UNSUPPORTED, "reserved", it.inputs = in);
    op[1].a = 3;
    REFUSE(pointwise, INVALID, "a is 3 of 3", it.instructions = op);
    op[1] = program[1], op[1].b = 1;
    REFUSE(pointwise, INVALID, "b is 1", it.instructions = op);
    op[1] = program[1], op[1].code = 36;
    REFUSE(pointwise, UNSUPPORTED, "instruction 36", it.instructions = op);
    op[1] = program[1], op[1].code = 0;
    REFUSE(pointwise, UNSUPPORTED, "instruction 0", it.instructions = op);
    op[1] = program[1], op[1].c = 1;
    REFUSE(pointwise, INVALID, "c is 1", it.instructions = op);
    op[1] = (cek_pointwise_instruction){ .code = CEK_PW_SELECT, .a = 2, .b = 1, .c = 2 };
    ACCEPT(pointwise, it.instructions = op);
    op[1].c = 3;
    REFUSE(pointwise, INVALID, "c is 3 of 3", it.instructions = op);
    REFUSE(pointwise, INVALID, "no instruction is VALID", it.rows_per_sample = 1);
    REFUSE(pointwise, INVALID, "BATCH", it.op.operands |= CEK_BIT(CEK_POINTWISE_BATCH));
    op[1] = (cek_pointwise_instruction){ .code = CEK_PW_VALID };
    REFUSE(pointwise, INVALID, "rows_per_sample is 0", it.instructions = op);
    ACCEPT(pointwise, (it.instructions = op, it.rows_per_sample = 2));
    ACCEPT(pointwise, (it.instructions = op, it.rows_per_sample = 2, it.op.operands |= CEK_BIT(CEK_POINTWISE_BATCH)));
    /* Elements that grew. */
    struct {
        cek_pointwise_instruction op;
        uint64_t later;
    } grown[2] = { { program[0], 0 }, { program[1], 0 } };
    ACCEPT(pointwise, it.instructions = &grown[0].op, it.instruction_size = sizeof *grown);
    ck_assert_uint_eq(request.instructions[1].code, CEK_PW_RELU);
    grown[1].later = 1;
    REFUSE(pointwise, UNSUPPORTED, "not zero", it.instructions = &grown[0].op, it.instruction_size = sizeof *grown);
}
END_TEST

START_TEST(gather_fields)
{
    ACCEPT(gather, (void)it);
    ck_assert_uint_eq(request.slots[CEK_GATHER_TABLE].bytes, 2 * 5 * 4 * 2);
    ck_assert_uint_eq(request.slots[CEK_GATHER_INDEX].bytes, 2 * 3 * 4);
    ck_assert_uint_eq(request.slots[CEK_GATHER_Y].bytes, 2 * 3 * 4 * 2);
    ACCEPT(gather, it.flags = CEK_GATHER_SHARED);
    ck_assert_uint_eq(request.slots[CEK_GATHER_INDEX].bytes, 3 * 4);
    ACCEPT(gather, it.type = CEK_U8);
    REFUSE(gather, INVALID, "accumulated", it.op.accumulate = CEK_BIT(CEK_GATHER_Y));
    REFUSE(gather, INVALID, "rows is 0", it.rows = 0);
    REFUSE(gather, UNSUPPORTED, "unknown bits", it.flags = 2);
    ACCEPT(gather, (it.op.kind = CEK_OP_SCATTER_ADD, it.op.accumulate = CEK_BIT(CEK_SCATTER_ADD_DTABLE)));
    ck_assert_uint_eq(request.slots[CEK_SCATTER_ADD_DTABLE].bytes, 2 * 5 * 4 * 4); /* the sum type */
    REFUSE(gather, UNSUPPORTED, "type is i32", (it.op.kind = CEK_OP_SCATTER_ADD, it.type = CEK_I32));
}
END_TEST

START_TEST(arg_fields)
{
    ACCEPT(arg, it.x_strides[0] = 0);
    ck_assert_uint_eq(BYTES(CEK_ARG_X), 20 * 2);
    ck_assert_uint_eq(BYTES(CEK_ARG_Y), 3 * 5 * 4);
    REFUSE(arg, INVALID, "axis 3", it.axis = 3);
    REFUSE(arg, UNSUPPORTED, "function 3", it.function = 3);
    REFUSE(arg, INVALID, "accumulated", it.op.accumulate = CEK_BIT(CEK_ARG_Y));
    REFUSE(arg, INVALID, "i32 does not number", it.shape[1] = UINT64_C(1) << 32);
    REFUSE(arg, INVALID, "stride 1", it.x_strides[1] = -1);
}
END_TEST

START_TEST(reduce_and_copy_fields)
{
    ACCEPT(reduce, it.x_strides[0] = 0);
    ck_assert_uint_eq(BYTES(CEK_REDUCE_Y), 3 * 5 * 4);
    ck_assert_uint_eq(BYTES(CEK_REDUCE_X), 20 * 2);
    ACCEPT(reduce, it.axes = 7, it.op.accumulate = 2, it.x_type = CEK_F64);
    ck_assert_uint_eq(BYTES(CEK_REDUCE_Y), 8);
    REFUSE(reduce, UNSUPPORTED, "function 7", it.function = 7);
    REFUSE(reduce, INVALID, "axes 0x8", it.axes = 8);
    REFUSE(reduce, INVALID, "not accumulated", it.function = CEK_REDUCE_MAX, it.op.accumulate = 2);
    REFUSE(reduce, INVALID, "rank", it.rank = 2);
    REFUSE(reduce, INVALID, "stride 1", it.x_strides[1] = -1);
    REFUSE(reduce, UNSUPPORTED, "x_type", it.x_type = 99);
    REFUSE(reduce, INVALID, "overflow", it.shape[0] = it.shape[1] = UINT64_C(1) << 40);
    ACCEPT(reduce, it.op.operands |= BITS(CEK_REDUCE_X2, CEK_REDUCE_CENTRE, CEK_REDUCE_BATCH), it.x2_strides[2] = 2,
           it.rows_per_sample = 2);
    ck_assert_uint_eq(BYTES(CEK_REDUCE_X2), 9 * 2);
    ck_assert_uint_eq(BYTES(CEK_REDUCE_CENTRE), 3 * 5 * 4);
    ck_assert_uint_eq(BYTES(CEK_REDUCE_BATCH), sizeof(cek_batch_block));
    REFUSE(reduce, INVALID, "x2_strides without X2", it.x2_strides[2] = 2);
    REFUSE(reduce, INVALID, "there is no BATCH", it.rows_per_sample = 2);
    REFUSE(reduce, INVALID, "rows_per_sample is 0", it.op.operands |= CEK_BIT(CEK_REDUCE_BATCH));
    ACCEPT(copy, it.x_strides[0] = it.x_strides[1] = 0);
    REFUSE(copy, INVALID, "Y: its strides", it.y_strides[1] = 0);
    REFUSE(copy, UNSUPPORTED, "reserved", it.reserved = 1);
    REFUSE(copy, INVALID, "x_type is not set", it.x_type = 0);
    REFUSE(copy, UNSUPPORTED, "y_type", it.y_type = 8);
    REFUSE(copy, INVALID, "X overflows", it.x_strides[0] = INT64_MAX);
    ACCEPT(copy, it.op.align = 4);
    ck_assert_uint_eq(request.slots[CEK_COPY_X].align, 4); /* i32 */
    ck_assert_uint_eq(request.slots[CEK_COPY_Y].align, 8); /* f64 */
}
END_TEST

START_TEST(row_wise_fields)
{
    ACCEPT(softmax, (void)it);
    ck_assert_uint_eq(BYTES(CEK_SOFTMAX_Y), 30);
    ck_assert_uint_eq(request.slots[CEK_SOFTMAX_Y].aliases, 1);
    REFUSE(softmax, INVALID, "rows is 0", it.rows = 0);
    REFUSE(softmax, INVALID, "columns is 0", it.columns = 0);
    REFUSE(softmax, UNSUPPORTED, "flags", it.flags = 2);
    REFUSE(softmax, UNSUPPORTED, "type is u8", it.type = CEK_U8);
    ACCEPT(cross_entropy, it.op.align = 4);
    ck_assert_uint_eq(BYTES(CEK_CROSS_ENTROPY_STEP), 768);
    ck_assert_uint_eq(request.slots[CEK_CROSS_ENTROPY_STEP].align, CEK_ALIGNMENT);
    ck_assert_uint_eq(request.slots[CEK_CROSS_ENTROPY_LOGITS].align, 4);
    REFUSE(cross_entropy, INVALID, "needs STEP", it.op.operands &= ~CEK_BIT(CEK_CROSS_ENTROPY_STEP));
    REFUSE(cross_entropy, INVALID, "no output", it.op.operands = 3);
    REFUSE(cross_entropy, INVALID, "LABELS", it.op.operands &= ~CEK_BIT(CEK_CROSS_ENTROPY_LABELS));
    REFUSE(cross_entropy, INVALID, "rows_per_sample is 0", it.rows_per_sample = 0);
    REFUSE(cross_entropy, INVALID, "classes is 0", it.classes = 0);
    REFUSE(cross_entropy, UNSUPPORTED, "reserved", it.reserved = 1);
    REFUSE(cross_entropy, INVALID, "DLOGITS cannot be accumulated",
           it.op.accumulate = CEK_BIT(CEK_CROSS_ENTROPY_DLOGITS));
    ACCEPT(squared_error, (void)it);
    ck_assert_uint_eq(BYTES(CEK_SQUARED_ERROR_TARGET), 120);
    REFUSE(squared_error, INVALID, "needs STEP", it.op.operands |= CEK_BIT(CEK_SQUARED_ERROR_DPREDICTION));
    REFUSE(squared_error, INVALID, "no output", it.op.operands = 3);
    REFUSE(squared_error, INVALID, "columns is 0", it.columns = 0);
    ACCEPT(dropout, it.op.operands = 15);
    REFUSE(dropout, INVALID, "rows_per_sample", it.rows_per_sample = 0);
    REFUSE(dropout, INVALID, "2^34", it.rows_per_sample = UINT64_C(1) << 33, it.columns = 4);
    REFUSE(dropout, INVALID, "STEP", it.op.operands = 3);
    REFUSE(dropout, UNSUPPORTED, "reserved", it.reserved = 1);
    ACCEPT(random_desc, (void)it);
    REFUSE(random_desc, UNSUPPORTED, "distribution 3", it.distribution = 3);
    REFUSE(random_desc, UNSUPPORTED, "type is i32", it.type = CEK_I32);
    REFUSE(random_desc, INVALID, "overflow", it.rows = UINT64_MAX / 8);
}
END_TEST

START_TEST(optimizer_fields)
{
    cek_param_range bad[2] = { ranges[0], ranges[1] };
    ACCEPT(adam, (void)it);
    ck_assert_ptr_ne(request.ranges, NULL);
    ck_assert_uint_eq(request.desc.optimizer.ranges[1].group, 31);
    ck_assert_uint_eq(BYTES(CEK_OPTIMIZER_STATE), 256);
    cek__request_free(&request);
    ACCEPT(sgd, (void)it);
    ACCEPT(sgd, it.momentum = 0.9, it.op.operands |= CEK_BIT(CEK_OPTIMIZER_M), it.flags = CEK_OPTIMIZER_NESTEROV);
    ACCEPT(adam, it.low_type = CEK_BF16, it.op.operands |= CEK_BIT(CEK_OPTIMIZER_LOW),
           it.flags = CEK_OPTIMIZER_DECOUPLED);
    ck_assert_uint_eq(BYTES(CEK_OPTIMIZER_LOW), 20);
    cek__request_free(&request);
    REFUSE(adam, INVALID, "count is 0", it.count = 0);
    REFUSE(adam, INVALID, "ends behind 8", it.count = 8);
    REFUSE(adam, INVALID, "not given", it.ranges = NULL);
    REFUSE(adam, INVALID, "elements of 0 bytes", it.range_size = 0);
    REFUSE(adam, INVALID, "elements of 8 bytes", it.range_size = 8);
    bad[1].begin = 3;
    REFUSE(adam, INVALID, "does not ascend", it.ranges = bad);
    bad[1] = (cek_param_range){ 6, 5, 0, 0 };
    REFUSE(adam, INVALID, "[6, 5)", it.ranges = bad);
    bad[1] = (cek_param_range){ 4, 5, 32, 0 };
    REFUSE(adam, INVALID, "group 32", it.ranges = bad);
    bad[1] = (cek_param_range){ 4, 5, 0, 1 };
    REFUSE(adam, UNSUPPORTED, "reserved", it.ranges = bad);
    REFUSE(adam, UNSUPPORTED, "algorithm 5", it.algorithm = 5);
    REFUSE(adam, UNSUPPORTED, "flags", it.flags = 8);
    REFUSE(adam, INVALID, "NESTEROV", it.flags = CEK_OPTIMIZER_NESTEROV);
    REFUSE(sgd, INVALID, "NESTEROV", it.flags = CEK_OPTIMIZER_NESTEROV);
    ACCEPT(adam, it.algorithm = CEK_OPTIMIZER_RMSPROP, it.decay = 0.9, it.op.operands &= ~CEK_BIT(CEK_OPTIMIZER_M));
    cek__request_free(&request);
    ACCEPT(adam, it.algorithm = CEK_OPTIMIZER_RMSPROP, it.momentum = 0.5, it.flags = CEK_OPTIMIZER_CENTERED,
           it.op.operands |= CEK_BIT(CEK_OPTIMIZER_MEAN));
    ck_assert_uint_eq(BYTES(CEK_OPTIMIZER_MEAN), 40);
    cek__request_free(&request);
    ACCEPT(adam, it.algorithm = CEK_OPTIMIZER_ADAGRAD, it.decay = 5, it.op.operands &= ~CEK_BIT(CEK_OPTIMIZER_M));
    cek__request_free(&request);
    REFUSE(adam, INVALID, "M is in the mask", it.algorithm = CEK_OPTIMIZER_ADAGRAD);
    REFUSE(adam, INVALID, "MEAN is missing", it.algorithm = CEK_OPTIMIZER_RMSPROP, it.momentum = 0.5,
           it.flags = CEK_OPTIMIZER_CENTERED);
    REFUSE(adam, INVALID, "MEAN is in the mask", it.op.operands |= CEK_BIT(CEK_OPTIMIZER_MEAN));
    REFUSE(adam, INVALID, "CENTERED", it.flags = CEK_OPTIMIZER_CENTERED);
    REFUSE(adam, INVALID, "decay", it.decay = 0.5);
    REFUSE(adam, INVALID, "decay of 1.5", it.algorithm = CEK_OPTIMIZER_RMSPROP, it.decay = 1.5,
           it.op.operands &= ~CEK_BIT(CEK_OPTIMIZER_M));
    REFUSE(sgd, INVALID, "epsilon", it.epsilon = 1e-8);
    REFUSE(sgd, INVALID, "DECOUPLED", it.flags = CEK_OPTIMIZER_DECOUPLED);
    REFUSE(sgd, INVALID, "M is missing", it.momentum = 0.5);
    REFUSE(sgd, INVALID, "M is in the mask", it.op.operands |= CEK_BIT(CEK_OPTIMIZER_M));
    REFUSE(sgd, INVALID, "V is in the mask", it.op.operands |= CEK_BIT(CEK_OPTIMIZER_V));
    REFUSE(adam, INVALID, "V is missing", it.op.operands &= ~CEK_BIT(CEK_OPTIMIZER_V));
    REFUSE(adam, INVALID, "LOW is missing", it.low_type = CEK_F16);
    REFUSE(adam, INVALID, "LOW is in the mask", it.op.operands |= CEK_BIT(CEK_OPTIMIZER_LOW));
    REFUSE(adam, UNSUPPORTED, "low_type is f32", it.low_type = CEK_F32, it.op.operands |= CEK_BIT(CEK_OPTIMIZER_LOW));
    REFUSE(adam, UNSUPPORTED, "type is f16", it.type = CEK_F16);
    REFUSE(adam, INVALID, "epsilon", it.epsilon = -1);
    REFUSE(adam, INVALID, "epsilon", it.epsilon = NAN);
    REFUSE(adam, INVALID, "SGD's", it.momentum = 0.5);
    REFUSE(sgd, INVALID, "Adam's", it.epsilon = 0.5);
    REFUSE(sgd, INVALID, "momentum", it.momentum = INFINITY);
    REFUSE(sgd, INVALID, "dampening", it.dampening = NAN);
}
END_TEST

/* Whatever is thrown at it: no crash, no overflow that the sanitizers see, and what is accepted has sizes that fit. */
START_TEST(wild_descriptors_are_only_refused)
{
    static const cek_op_desc *const good[] = { &gemm.op,          &conv.op,          &pool.op,
                                               &pointwise.op,     &reduce.op,        &softmax.op,
                                               &cross_entropy.op, &squared_error.op, &dropout.op,
                                               &random_desc.op,   &adam.op,          &sgd.op,
                                               &copy.op,          &gather.op,        &arg.op };
    static const uint64_t wild[] = {
        0, 1, 2, 3, 7, 255, 1u << 31, UINT32_MAX, INT64_MAX, UINT64_MAX, UINT64_C(1) << 62
    };
    const size_t head = sizeof(cek_op_desc), from = offsetof(cek_op_desc, operands);
    uint64_t seed = 1;
    int accepted = 0;
    for (int round = 0; round < 200000; round++) {
        uint64_t copy_of[64];
        const cek_op_desc *base = good[round % (int)(sizeof good / sizeof *good)];
        memcpy(copy_of, base, base->size);
        for (int changes = round % 3; changes >= 0; changes--) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
            size_t word = (seed >> 33) % (base->size / 4) * 4;
            if (word < from || (word >= head - 24 && word < head)) /* size, kind and the pointers of the head */
                continue;
            uint32_t part = (uint32_t)(wild[(seed >> 20) % (sizeof wild / sizeof *wild)] >> (word % 8 * 8));
            bool pointer = (base->kind == CEK_OP_POINTWISE && word >= offsetof(cek_pointwise_desc, inputs)) ||
                           (base->kind == CEK_OP_OPTIMIZER && word >= offsetof(cek_optimizer_desc, ranges) &&
                            word < offsetof(cek_optimizer_desc, momentum));
            if (!pointer)
                memcpy((char *)copy_of + word, &part, sizeof part);
        }
        if (cek__request_init(&host, (const cek_op_desc *)copy_of, &request))
            continue;
        accepted++;
        for (uint32_t i = 0; i < request.slot_count; i++)
            ck_assert(!request.slots[i].given || request.slots[i].bytes <= INT64_MAX);
        cek__request_free(&request);
    }
    ck_assert_int_gt(accepted, 1000);
    ck_assert_int_lt(accepted, 190000);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("backends/common");
    TCase *tc = tcase_create("validation");
    tcase_add_test(tc, the_head);
    tcase_add_test(tc, the_epilogue);
    tcase_add_test(tc, gemm_fields);
    tcase_add_test(tc, conv_fields);
    tcase_add_test(tc, pool_fields);
    tcase_add_test(tc, pointwise_fields);
    tcase_add_test(tc, reduce_and_copy_fields);
    tcase_add_test(tc, arg_fields);
    tcase_add_test(tc, gather_fields);
    tcase_add_test(tc, row_wise_fields);
    tcase_add_test(tc, optimizer_fields);
    tcase_add_test(tc, wild_descriptors_are_only_refused);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
