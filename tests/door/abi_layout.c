/* SPDX-License-Identifier: MIT
 *
 * abi_layout.c - the binary layout of plugin.h 1.0: every size, offset and number that a compiled plugin relies on.
 *
 * Compiled by abi_layout.sh as C and as C++; there is nothing to run. A line here that has to change is a
 * break of the ABI:
 * only lines behind the last field of a struct, or new numbers, may be added within one major version.
 */
#include <cekernels/plugin.h>

#ifdef __cplusplus
#define REQUIRE(condition, text) static_assert(condition, text)
#else
#define REQUIRE(condition, text) _Static_assert(condition, text)
#endif
#define STRUCT(type, bytes) REQUIRE(sizeof(type) == bytes, "size of " #type);
#define FIELD(type, field, offset, bytes)                                       \
    REQUIRE(offsetof(type, field) == offset, "offset of " #field " in " #type); \
    REQUIRE(sizeof(((type *)0)->field) == bytes, "size of " #field " in " #type);
#define VALUE(name, number) REQUIRE((name) == number, #name);

/* clang-format off */
#ifdef ABI_LAYOUT_MUST_FAIL /* proves that a wrong line is seen */
STRUCT(cek_ref, 24)
#endif

STRUCT(cek_ref, 16)
FIELD(cek_ref, mem, 0, 8) FIELD(cek_ref, offset, 8, 8)

STRUCT(cek_host, 40)
FIELD(cek_host, size, 0, 4) FIELD(cek_host, abi, 4, 4) FIELD(cek_host, user, 8, 8)
FIELD(cek_host, fail, 16, 8) FIELD(cek_host, log, 24, 8) FIELD(cek_host, option, 32, 8)

STRUCT(cek_device_info, 608)
FIELD(cek_device_info, size, 0, 4) FIELD(cek_device_info, kind, 4, 4) FIELD(cek_device_info, flags, 8, 4)
FIELD(cek_device_info, compute_units, 12, 4) FIELD(cek_device_info, copy_engines, 16, 4)
FIELD(cek_device_info, reserved, 20, 4) FIELD(cek_device_info, total_bytes, 24, 8)
FIELD(cek_device_info, free_bytes, 32, 8) FIELD(cek_device_info, max_alloc_bytes, 40, 8)
FIELD(cek_device_info, types, 48, 8) FIELD(cek_device_info, numeric_id, 56, 8)
FIELD(cek_device_info, name, 64, 128) FIELD(cek_device_info, vendor, 192, 64)
FIELD(cek_device_info, driver, 256, 128) FIELD(cek_device_info, pci, 384, 16)
FIELD(cek_device_info, uuid, 400, 16) FIELD(cek_device_info, processor, 416, 64)
FIELD(cek_device_info, reason, 480, 128)

STRUCT(cek_device_options, 8)
FIELD(cek_device_options, size, 0, 4) FIELD(cek_device_options, flags, 4, 4)

STRUCT(cek_mem_desc, 16)
FIELD(cek_mem_desc, size, 0, 4) FIELD(cek_mem_desc, flags, 4, 4) FIELD(cek_mem_desc, bytes, 8, 8)

STRUCT(cek_queue_desc, 16)
FIELD(cek_queue_desc, size, 0, 4) FIELD(cek_queue_desc, flags, 4, 4) FIELD(cek_queue_desc, deadline_ns, 8, 8)

STRUCT(cek_event_desc, 8)
FIELD(cek_event_desc, size, 0, 4) FIELD(cek_event_desc, flags, 4, 4)

STRUCT(cek_epilogue, 16)
FIELD(cek_epilogue, size, 0, 4) FIELD(cek_epilogue, activation, 4, 4) FIELD(cek_epilogue, act_grad, 8, 4)
FIELD(cek_epilogue, reserved, 12, 4)

STRUCT(cek_op_desc, 64)
FIELD(cek_op_desc, size, 0, 4) FIELD(cek_op_desc, kind, 4, 4) FIELD(cek_op_desc, operands, 8, 8)
FIELD(cek_op_desc, accumulate, 16, 8) FIELD(cek_op_desc, flags, 24, 4) FIELD(cek_op_desc, math, 28, 4)
FIELD(cek_op_desc, align, 32, 4) FIELD(cek_op_desc, reserved, 36, 4) FIELD(cek_op_desc, forward, 40, 8)
FIELD(cek_op_desc, epilogue, 48, 8) FIELD(cek_op_desc, extra, 56, 8)

STRUCT(cek_op_info, 112)
FIELD(cek_op_info, size, 0, 4) FIELD(cek_op_info, flags, 4, 4) FIELD(cek_op_info, workspace_bytes, 8, 8)
FIELD(cek_op_info, reserve_bytes, 16, 8) FIELD(cek_op_info, prepack_bytes, 24, 8)
FIELD(cek_op_info, prepack_layout, 32, 8) FIELD(cek_op_info, numeric_id, 40, 8)
FIELD(cek_op_info, algorithm, 48, 64)

STRUCT(cek_f32x2, 8)
FIELD(cek_f32x2, hi, 0, 4) FIELD(cek_f32x2, lo, 4, 4)

STRUCT(cek_step_block, 768)
FIELD(cek_step_block, random_key, 0, 8) FIELD(cek_step_block, inv_n, 8, 8)
FIELD(cek_step_block, loss_scale, 16, 8) FIELD(cek_step_block, ln_beta1, 24, 8)
FIELD(cek_step_block, ln_beta2, 32, 8) FIELD(cek_step_block, reserved, 40, 216)
FIELD(cek_step_block, lr, 256, 256) FIELD(cek_step_block, weight_decay, 512, 256)

STRUCT(cek_update_block, 256)
FIELD(cek_update_block, grad_scale, 0, 8) FIELD(cek_update_block, skip, 8, 4)
FIELD(cek_update_block, reserved, 12, 244)

STRUCT(cek_batch_block, 256)
FIELD(cek_batch_block, sample_base, 0, 8) FIELD(cek_batch_block, rows_valid, 8, 4)
FIELD(cek_batch_block, reserved, 12, 244)

STRUCT(cek_gemm_desc, 192)
FIELD(cek_gemm_desc, op, 0, 64) FIELD(cek_gemm_desc, m, 64, 8) FIELD(cek_gemm_desc, n, 72, 8)
FIELD(cek_gemm_desc, k, 80, 8) FIELD(cek_gemm_desc, batch, 88, 8) FIELD(cek_gemm_desc, lda, 96, 8)
FIELD(cek_gemm_desc, ldb, 104, 8) FIELD(cek_gemm_desc, ldc, 112, 8) FIELD(cek_gemm_desc, stride_a, 120, 8)
FIELD(cek_gemm_desc, stride_b, 128, 8) FIELD(cek_gemm_desc, stride_c, 136, 8)
FIELD(cek_gemm_desc, outer, 144, 8) FIELD(cek_gemm_desc, outer_a, 152, 8) FIELD(cek_gemm_desc, outer_b, 160, 8)
FIELD(cek_gemm_desc, outer_c, 168, 8) FIELD(cek_gemm_desc, a_type, 176, 4) FIELD(cek_gemm_desc, b_type, 180, 4)
FIELD(cek_gemm_desc, c_type, 184, 4) FIELD(cek_gemm_desc, trans, 188, 4)

STRUCT(cek_conv_desc, 304)
FIELD(cek_conv_desc, op, 0, 64) FIELD(cek_conv_desc, spatial, 64, 4) FIELD(cek_conv_desc, groups, 68, 4)
FIELD(cek_conv_desc, batch, 72, 8) FIELD(cek_conv_desc, in_channels, 80, 8)
FIELD(cek_conv_desc, out_channels, 88, 8) FIELD(cek_conv_desc, in, 96, 32)
FIELD(cek_conv_desc, kernel, 128, 32) FIELD(cek_conv_desc, stride, 160, 32)
FIELD(cek_conv_desc, dilation, 192, 32) FIELD(cek_conv_desc, pad_lo, 224, 32)
FIELD(cek_conv_desc, pad_hi, 256, 32) FIELD(cek_conv_desc, x_type, 288, 4)
FIELD(cek_conv_desc, w_type, 292, 4) FIELD(cek_conv_desc, y_type, 296, 4)
FIELD(cek_conv_desc, reserved, 300, 4)

STRUCT(cek_pool_desc, 256)
FIELD(cek_pool_desc, op, 0, 64) FIELD(cek_pool_desc, mode, 64, 4) FIELD(cek_pool_desc, flags, 68, 4)
FIELD(cek_pool_desc, spatial, 72, 4) FIELD(cek_pool_desc, type, 76, 4) FIELD(cek_pool_desc, batch, 80, 8)
FIELD(cek_pool_desc, channels, 88, 8) FIELD(cek_pool_desc, in, 96, 32) FIELD(cek_pool_desc, kernel, 128, 32)
FIELD(cek_pool_desc, stride, 160, 32) FIELD(cek_pool_desc, pad_lo, 192, 32)
FIELD(cek_pool_desc, pad_hi, 224, 32)

STRUCT(cek_pointwise_input, 72)
FIELD(cek_pointwise_input, type, 0, 4) FIELD(cek_pointwise_input, reserved, 4, 4)
FIELD(cek_pointwise_input, strides, 8, 64)

STRUCT(cek_pointwise_instruction, 24)
FIELD(cek_pointwise_instruction, code, 0, 4) FIELD(cek_pointwise_instruction, a, 4, 4)
FIELD(cek_pointwise_instruction, b, 8, 4) FIELD(cek_pointwise_instruction, c, 12, 4)
FIELD(cek_pointwise_instruction, imm, 16, 8)

STRUCT(cek_pointwise_desc, 240)
FIELD(cek_pointwise_desc, op, 0, 64) FIELD(cek_pointwise_desc, rank, 64, 4)
FIELD(cek_pointwise_desc, out_type, 68, 4) FIELD(cek_pointwise_desc, shape, 72, 64)
FIELD(cek_pointwise_desc, out_strides, 136, 64) FIELD(cek_pointwise_desc, inputs, 200, 8)
FIELD(cek_pointwise_desc, instructions, 208, 8) FIELD(cek_pointwise_desc, input_count, 216, 4)
FIELD(cek_pointwise_desc, input_size, 220, 4) FIELD(cek_pointwise_desc, instruction_count, 224, 4)
FIELD(cek_pointwise_desc, instruction_size, 228, 4) FIELD(cek_pointwise_desc, rows_per_sample, 232, 8)

STRUCT(cek_gather_desc, 104)
FIELD(cek_gather_desc, op, 0, 64) FIELD(cek_gather_desc, batch, 64, 8) FIELD(cek_gather_desc, rows, 72, 8)
FIELD(cek_gather_desc, count, 80, 8) FIELD(cek_gather_desc, columns, 88, 8) FIELD(cek_gather_desc, type, 96, 4)
FIELD(cek_gather_desc, flags, 100, 4)

STRUCT(cek_reduce_desc, 280)
FIELD(cek_reduce_desc, op, 0, 64) FIELD(cek_reduce_desc, function, 64, 4) FIELD(cek_reduce_desc, axes, 68, 4)
FIELD(cek_reduce_desc, rank, 72, 4) FIELD(cek_reduce_desc, x_type, 76, 4)
FIELD(cek_reduce_desc, shape, 80, 64) FIELD(cek_reduce_desc, x_strides, 144, 64)
FIELD(cek_reduce_desc, x2_strides, 208, 64) FIELD(cek_reduce_desc, rows_per_sample, 272, 8)

STRUCT(cek_arg_desc, 208)
FIELD(cek_arg_desc, op, 0, 64) FIELD(cek_arg_desc, function, 64, 4) FIELD(cek_arg_desc, axis, 68, 4)
FIELD(cek_arg_desc, rank, 72, 4) FIELD(cek_arg_desc, type, 76, 4)
FIELD(cek_arg_desc, shape, 80, 64) FIELD(cek_arg_desc, x_strides, 144, 64)

STRUCT(cek_softmax_desc, 88)
FIELD(cek_softmax_desc, op, 0, 64) FIELD(cek_softmax_desc, rows, 64, 8)
FIELD(cek_softmax_desc, columns, 72, 8) FIELD(cek_softmax_desc, type, 80, 4)
FIELD(cek_softmax_desc, flags, 84, 4)

STRUCT(cek_cross_entropy_desc, 96)
FIELD(cek_cross_entropy_desc, op, 0, 64) FIELD(cek_cross_entropy_desc, rows, 64, 8)
FIELD(cek_cross_entropy_desc, classes, 72, 8) FIELD(cek_cross_entropy_desc, rows_per_sample, 80, 8)
FIELD(cek_cross_entropy_desc, type, 88, 4) FIELD(cek_cross_entropy_desc, reserved, 92, 4)

STRUCT(cek_squared_error_desc, 96)
FIELD(cek_squared_error_desc, op, 0, 64) FIELD(cek_squared_error_desc, rows, 64, 8)
FIELD(cek_squared_error_desc, columns, 72, 8) FIELD(cek_squared_error_desc, rows_per_sample, 80, 8)
FIELD(cek_squared_error_desc, type, 88, 4) FIELD(cek_squared_error_desc, reserved, 92, 4)

STRUCT(cek_dropout_desc, 112)
FIELD(cek_dropout_desc, op, 0, 64) FIELD(cek_dropout_desc, rows, 64, 8)
FIELD(cek_dropout_desc, columns, 72, 8) FIELD(cek_dropout_desc, rows_per_sample, 80, 8)
FIELD(cek_dropout_desc, scale, 88, 8) FIELD(cek_dropout_desc, threshold, 96, 4)
FIELD(cek_dropout_desc, stream, 100, 4) FIELD(cek_dropout_desc, type, 104, 4)
FIELD(cek_dropout_desc, reserved, 108, 4)

STRUCT(cek_random_desc, 120)
FIELD(cek_random_desc, op, 0, 64) FIELD(cek_random_desc, rows, 64, 8) FIELD(cek_random_desc, columns, 72, 8)
FIELD(cek_random_desc, rows_per_sample, 80, 8) FIELD(cek_random_desc, a, 88, 8)
FIELD(cek_random_desc, b, 96, 8) FIELD(cek_random_desc, distribution, 104, 4)
FIELD(cek_random_desc, stream, 108, 4) FIELD(cek_random_desc, type, 112, 4)
FIELD(cek_random_desc, reserved, 116, 4)

STRUCT(cek_param_range, 24)
FIELD(cek_param_range, begin, 0, 8) FIELD(cek_param_range, end, 8, 8) FIELD(cek_param_range, group, 16, 4)
FIELD(cek_param_range, reserved, 20, 4)

STRUCT(cek_optimizer_desc, 136)
FIELD(cek_optimizer_desc, op, 0, 64) FIELD(cek_optimizer_desc, count, 64, 8)
FIELD(cek_optimizer_desc, ranges, 72, 8) FIELD(cek_optimizer_desc, range_count, 80, 4)
FIELD(cek_optimizer_desc, range_size, 84, 4) FIELD(cek_optimizer_desc, momentum, 88, 8)
FIELD(cek_optimizer_desc, dampening, 96, 8) FIELD(cek_optimizer_desc, epsilon, 104, 8)
FIELD(cek_optimizer_desc, algorithm, 112, 4) FIELD(cek_optimizer_desc, flags, 116, 4)
FIELD(cek_optimizer_desc, type, 120, 4) FIELD(cek_optimizer_desc, low_type, 124, 4)
FIELD(cek_optimizer_desc, decay, 128, 8)

STRUCT(cek_copy_desc, 272)
FIELD(cek_copy_desc, op, 0, 64) FIELD(cek_copy_desc, rank, 64, 4) FIELD(cek_copy_desc, x_type, 68, 4)
FIELD(cek_copy_desc, y_type, 72, 4) FIELD(cek_copy_desc, reserved, 76, 4) FIELD(cek_copy_desc, shape, 80, 64)
FIELD(cek_copy_desc, x_strides, 144, 64) FIELD(cek_copy_desc, y_strides, 208, 64)

STRUCT(cek_cmd, 88)
FIELD(cek_cmd, kind, 0, 4) FIELD(cek_cmd, operand_count, 4, 4) FIELD(cek_cmd, op, 8, 8)
FIELD(cek_cmd, operands, 16, 8) FIELD(cek_cmd, workspace, 24, 16) FIELD(cek_cmd, dst, 40, 16)
FIELD(cek_cmd, src, 56, 16) FIELD(cek_cmd, bytes, 72, 8) FIELD(cek_cmd, pattern, 80, 4)
FIELD(cek_cmd, pattern_bytes, 84, 4)

STRUCT(cek_plugin, 392)
FIELD(cek_plugin, size, 0, 4) FIELD(cek_plugin, abi, 4, 4) FIELD(cek_plugin, name, 8, 8)
FIELD(cek_plugin, version, 16, 8) FIELD(cek_plugin, build, 24, 8) FIELD(cek_plugin, profile, 32, 4)
FIELD(cek_plugin, reserved, 36, 4) FIELD(cek_plugin, create, 40, 8) FIELD(cek_plugin, destroy, 48, 8)
FIELD(cek_plugin, device_count, 56, 8) FIELD(cek_plugin, device_info, 64, 8)
FIELD(cek_plugin, device_open, 72, 8) FIELD(cek_plugin, device_close, 80, 8)
FIELD(cek_plugin, device_status, 88, 8) FIELD(cek_plugin, device_memory, 96, 8)
FIELD(cek_plugin, mem_alloc, 104, 8) FIELD(cek_plugin, mem_free, 112, 8)
FIELD(cek_plugin, mem_host_ptr, 120, 8) FIELD(cek_plugin, mem_map, 128, 8)
FIELD(cek_plugin, mem_unmap, 136, 8) FIELD(cek_plugin, host_alloc, 144, 8)
FIELD(cek_plugin, host_free, 152, 8) FIELD(cek_plugin, queue_create, 160, 8)
FIELD(cek_plugin, queue_destroy, 168, 8) FIELD(cek_plugin, queue_status, 176, 8)
FIELD(cek_plugin, queue_sync, 184, 8) FIELD(cek_plugin, upload, 192, 8) FIELD(cek_plugin, download, 200, 8)
FIELD(cek_plugin, copy, 208, 8) FIELD(cek_plugin, fill, 216, 8) FIELD(cek_plugin, update, 224, 8)
FIELD(cek_plugin, event_create, 232, 8) FIELD(cek_plugin, event_destroy, 240, 8)
FIELD(cek_plugin, event_record, 248, 8) FIELD(cek_plugin, event_wait, 256, 8)
FIELD(cek_plugin, event_query, 264, 8) FIELD(cek_plugin, event_sync, 272, 8)
FIELD(cek_plugin, event_status, 280, 8) FIELD(cek_plugin, event_elapsed, 288, 8)
FIELD(cek_plugin, op_create, 296, 8) FIELD(cek_plugin, op_destroy, 304, 8)
FIELD(cek_plugin, op_prepack, 312, 8) FIELD(cek_plugin, op_run, 320, 8)
FIELD(cek_plugin, cmdbuf_create, 328, 8) FIELD(cek_plugin, cmdbuf_destroy, 336, 8)
FIELD(cek_plugin, cmdbuf_run, 344, 8) FIELD(cek_plugin, device_times, 352, 8)
FIELD(cek_plugin, host_register, 360, 8) FIELD(cek_plugin, host_unregister, 368, 8)
FIELD(cek_plugin, mem_import, 376, 8) FIELD(cek_plugin, mem_export, 384, 8)

STRUCT(cek_foreign, 32)
FIELD(cek_foreign, size, 0, 4) FIELD(cek_foreign, kind, 4, 4) FIELD(cek_foreign, ordinal, 8, 4)
FIELD(cek_foreign, reserved, 12, 4) FIELD(cek_foreign, address, 16, 8) FIELD(cek_foreign, bytes, 24, 8)

STRUCT(cek_device_times, 40)
FIELD(cek_device_times, size, 0, 4) FIELD(cek_device_times, reserved, 4, 4)
FIELD(cek_device_times, now_ns, 8, 8) FIELD(cek_device_times, compute_ns, 16, 8)
FIELD(cek_device_times, copy_ns, 24, 8) FIELD(cek_device_times, exposed_ns, 32, 8)

VALUE(CEK_ABI, 65537) VALUE(CEK_SPATIAL_MAX, 4) VALUE(CEK_RANK_MAX, 8)
VALUE(CEK_ALIGNMENT, 256) VALUE(CEK_PARAM_GROUPS, 32) VALUE(CEK_POINTWISE_INPUTS, 8)
VALUE(CEK_POINTWISE_INSTRUCTIONS, 16) VALUE(CEK_OK, 0) VALUE(CEK_INVALID, 1) VALUE(CEK_UNSUPPORTED, 2)
VALUE(CEK_UNAVAILABLE, 3) VALUE(CEK_OUT_OF_MEMORY, 4) VALUE(CEK_DEVICE_LOST, 5) VALUE(CEK_TIMEOUT, 6)
VALUE(CEK_NOT_READY, 7) VALUE(CEK_INTERNAL, 8) VALUE(CEK_DTYPE_NONE, 0) VALUE(CEK_F32, 1) VALUE(CEK_F16, 2)
VALUE(CEK_BF16, 3) VALUE(CEK_F64, 4) VALUE(CEK_U8, 5) VALUE(CEK_I32, 6) VALUE(CEK_MATH_F32, 0)
VALUE(CEK_MATH_STRICT, 1) VALUE(CEK_MATH_TF32, 2) VALUE(CEK_MATH_FAST, 3) VALUE(CEK_ACT_NONE, 0)
VALUE(CEK_ACT_RELU, 1) VALUE(CEK_ACT_TANH, 2) VALUE(CEK_ACT_SIGMOID, 3) VALUE(CEK_ACT_GELU, 4)
VALUE(CEK_LOG_ERROR, 1) VALUE(CEK_LOG_WARN, 2) VALUE(CEK_LOG_INFO, 3) VALUE(CEK_LOG_DEBUG, 4)
VALUE(CEK_PROFILE_MEMORY, 1) VALUE(CEK_PROFILE_INFERENCE, 2) VALUE(CEK_PROFILE_TRAINING, 3)
VALUE(CEK_KIND_CPU, 1) VALUE(CEK_KIND_GPU, 2) VALUE(CEK_KIND_ACCELERATOR, 3)
VALUE(CEK_DEVICE_UNIFIED_MEMORY, 1) VALUE(CEK_DEVICE_ONLY_WHEN_NAMED, 2) VALUE(CEK_DEVICE_INLINE, 4)
VALUE(CEK_DEVICE_FLUSHES_DENORMALS, 8)
VALUE(CEK_MAP_READ, 1) VALUE(CEK_MAP_WRITE, 2) VALUE(CEK_QUEUE_TIMING, 1) VALUE(CEK_EVENT_TIMING, 1)
VALUE(CEK_OP_GEMM, 1) VALUE(CEK_OP_CONV_FORWARD, 2) VALUE(CEK_OP_CONV_BACKWARD_DATA, 3)
VALUE(CEK_OP_CONV_BACKWARD_WEIGHTS, 4) VALUE(CEK_OP_POOL_FORWARD, 5) VALUE(CEK_OP_POOL_BACKWARD, 6)
VALUE(CEK_OP_POINTWISE, 7) VALUE(CEK_OP_REDUCE, 8) VALUE(CEK_OP_SOFTMAX, 9) VALUE(CEK_OP_CROSS_ENTROPY, 10)
VALUE(CEK_OP_SQUARED_ERROR, 11) VALUE(CEK_OP_DROPOUT, 12) VALUE(CEK_OP_RANDOM, 13) VALUE(CEK_OP_OPTIMIZER, 14)
VALUE(CEK_OP_COPY, 15) VALUE(CEK_OP_DETERMINISTIC, 1) VALUE(CEK_OP_PREPACKED, 2) VALUE(CEK_OP_INFO_INEXACT, 1)
VALUE(CEK_GEMM_TRANS_A, 1) VALUE(CEK_GEMM_TRANS_B, 2) VALUE(CEK_POOL_MAX, 1) VALUE(CEK_POOL_AVERAGE, 2)
VALUE(CEK_POOL_COUNT_PAD, 1) VALUE(CEK_PW_CONST, 1) VALUE(CEK_PW_COPY, 2) VALUE(CEK_PW_ADD, 3)
VALUE(CEK_PW_SUB, 4) VALUE(CEK_PW_MUL, 5) VALUE(CEK_PW_DIV, 6) VALUE(CEK_PW_MIN, 7) VALUE(CEK_PW_MAX, 8)
VALUE(CEK_PW_NEG, 9) VALUE(CEK_PW_ABS, 10) VALUE(CEK_PW_SQRT, 11) VALUE(CEK_PW_EXP, 12) VALUE(CEK_PW_LOG, 13)
VALUE(CEK_PW_ADD_IMM, 14) VALUE(CEK_PW_MUL_IMM, 15) VALUE(CEK_PW_RELU, 16) VALUE(CEK_PW_TANH, 17)
VALUE(CEK_PW_SIGMOID, 18) VALUE(CEK_PW_GELU, 19) VALUE(CEK_PW_RELU_GRAD, 20) VALUE(CEK_PW_TANH_GRAD, 21)
VALUE(CEK_PW_SIGMOID_GRAD, 22) VALUE(CEK_PW_GELU_GRAD, 23) VALUE(CEK_PW_LESS, 24) VALUE(CEK_PW_EQUAL, 25)
VALUE(CEK_PW_SELECT, 26) VALUE(CEK_PW_POW, 27) VALUE(CEK_PW_ERF, 28) VALUE(CEK_PW_LOG1P, 29)
VALUE(CEK_PW_EXPM1, 30) VALUE(CEK_PW_FLOOR, 31) VALUE(CEK_PW_SIGN, 32) VALUE(CEK_PW_SIN, 33) VALUE(CEK_PW_COS, 34)
VALUE(CEK_PW_VALID, 35)
VALUE(CEK_REDUCE_SUM, 1) VALUE(CEK_REDUCE_MEAN, 2) VALUE(CEK_REDUCE_MAX, 3) VALUE(CEK_REDUCE_MIN, 4)
VALUE(CEK_REDUCE_SUM_SQUARES, 5) VALUE(CEK_REDUCE_COUNT_NONFINITE, 6) VALUE(CEK_SOFTMAX_LOG, 1)
VALUE(CEK_RANDOM_UNIFORM, 1) VALUE(CEK_RANDOM_NORMAL, 2) VALUE(CEK_OPTIMIZER_SGD, 1)
VALUE(CEK_OPTIMIZER_ADAM, 2) VALUE(CEK_OPTIMIZER_RMSPROP, 3) VALUE(CEK_OPTIMIZER_ADAGRAD, 4)
VALUE(CEK_OPTIMIZER_CENTERED, 4) VALUE(CEK_OPTIMIZER_NESTEROV, 1) VALUE(CEK_OPTIMIZER_DECOUPLED, 2)
VALUE(CEK_CMD_RUN, 1) VALUE(CEK_CMD_FILL, 2) VALUE(CEK_CMD_COPY, 3) VALUE(CEK_GEMM_A, 0) VALUE(CEK_GEMM_B, 1)
VALUE(CEK_GEMM_C, 2) VALUE(CEK_GEMM_BIAS, 3) VALUE(CEK_GEMM_ACT_REF, 4) VALUE(CEK_GEMM_A_SUM, 5)
VALUE(CEK_GEMM_PACKED, 6) VALUE(CEK_CONV_FORWARD_X, 0) VALUE(CEK_CONV_FORWARD_W, 1)
VALUE(CEK_CONV_FORWARD_Y, 2) VALUE(CEK_CONV_FORWARD_BIAS, 3) VALUE(CEK_CONV_FORWARD_PACKED, 4)
VALUE(CEK_CONV_BACKWARD_DATA_DY, 0) VALUE(CEK_CONV_BACKWARD_DATA_W, 1) VALUE(CEK_CONV_BACKWARD_DATA_DX, 2)
VALUE(CEK_CONV_BACKWARD_DATA_ACT_REF, 3) VALUE(CEK_CONV_BACKWARD_WEIGHTS_X, 0)
VALUE(CEK_CONV_BACKWARD_WEIGHTS_DY, 1) VALUE(CEK_CONV_BACKWARD_WEIGHTS_DW, 2)
VALUE(CEK_CONV_BACKWARD_WEIGHTS_BIAS_GRAD, 3) VALUE(CEK_POOL_FORWARD_X, 0) VALUE(CEK_POOL_FORWARD_Y, 1)
VALUE(CEK_POOL_FORWARD_RESERVE, 2) VALUE(CEK_POOL_BACKWARD_DY, 0) VALUE(CEK_POOL_BACKWARD_DX, 1)
VALUE(CEK_POOL_BACKWARD_RESERVE, 2) VALUE(CEK_POINTWISE_IN0, 0) VALUE(CEK_POINTWISE_IN1, 1)
VALUE(CEK_POINTWISE_IN2, 2) VALUE(CEK_POINTWISE_IN3, 3) VALUE(CEK_POINTWISE_IN4, 4)
VALUE(CEK_POINTWISE_IN5, 5) VALUE(CEK_POINTWISE_IN6, 6) VALUE(CEK_POINTWISE_IN7, 7)
VALUE(CEK_POINTWISE_OUT, 8) VALUE(CEK_POINTWISE_BATCH, 9) VALUE(CEK_REDUCE_X, 0) VALUE(CEK_REDUCE_Y, 1) VALUE(CEK_REDUCE_X2, 2)
VALUE(CEK_REDUCE_CENTRE, 3) VALUE(CEK_REDUCE_BATCH, 4) VALUE(CEK_SOFTMAX_X, 0)
VALUE(CEK_SOFTMAX_Y, 1) VALUE(CEK_CROSS_ENTROPY_LOGITS, 0) VALUE(CEK_CROSS_ENTROPY_LABELS, 1)
VALUE(CEK_CROSS_ENTROPY_WEIGHTS, 2) VALUE(CEK_CROSS_ENTROPY_STEP, 3) VALUE(CEK_CROSS_ENTROPY_BATCH, 4)
VALUE(CEK_CROSS_ENTROPY_DLOGITS, 5) VALUE(CEK_CROSS_ENTROPY_LOSS, 6) VALUE(CEK_CROSS_ENTROPY_CORRECT, 7)
VALUE(CEK_SQUARED_ERROR_PREDICTION, 0) VALUE(CEK_SQUARED_ERROR_TARGET, 1) VALUE(CEK_SQUARED_ERROR_WEIGHTS, 2)
VALUE(CEK_SQUARED_ERROR_STEP, 3) VALUE(CEK_SQUARED_ERROR_BATCH, 4) VALUE(CEK_SQUARED_ERROR_DPREDICTION, 5)
VALUE(CEK_SQUARED_ERROR_LOSS, 6) VALUE(CEK_DROPOUT_X, 0) VALUE(CEK_DROPOUT_Y, 1) VALUE(CEK_DROPOUT_STEP, 2)
VALUE(CEK_DROPOUT_BATCH, 3) VALUE(CEK_RANDOM_Y, 0) VALUE(CEK_RANDOM_STEP, 1) VALUE(CEK_RANDOM_BATCH, 2)
VALUE(CEK_OPTIMIZER_PARAM, 0) VALUE(CEK_OPTIMIZER_GRAD, 1) VALUE(CEK_OPTIMIZER_M, 2) VALUE(CEK_OPTIMIZER_V, 3)
VALUE(CEK_OPTIMIZER_STATE, 4) VALUE(CEK_OPTIMIZER_STEP, 5) VALUE(CEK_OPTIMIZER_UPDATE, 6)
VALUE(CEK_OPTIMIZER_LOW, 7) VALUE(CEK_OPTIMIZER_MEAN, 8) VALUE(CEK_COPY_X, 0) VALUE(CEK_COPY_Y, 1)
VALUE(CEK_OP_GATHER, 16) VALUE(CEK_OP_SCATTER_ADD, 17) VALUE(CEK_GATHER_SHARED, 1) VALUE(CEK_GATHER_TABLE, 0)
VALUE(CEK_GATHER_INDEX, 1) VALUE(CEK_GATHER_Y, 2) VALUE(CEK_SCATTER_ADD_DY, 0) VALUE(CEK_SCATTER_ADD_INDEX, 1)
VALUE(CEK_SCATTER_ADD_DTABLE, 2)
VALUE(CEK_OP_ARG, 18) VALUE(CEK_ARG_MAX, 1) VALUE(CEK_ARG_MIN, 2) VALUE(CEK_ARG_X, 0) VALUE(CEK_ARG_Y, 1)
    /* clang-format on */
