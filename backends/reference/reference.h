/* SPDX-License-Identifier: MIT
 *
 * reference.h - the reference backend inside: one `run` function per kind of operation, one file per family.
 *
 * Each reads its operands through element.h, computes in double, in the order in which the formula
 * in plugin.h is written, and rounds once. A `run` is called with checked operands (backends/host),
 * so it only computes. Scratch that does not fit on the stack is workspace: how much, says
 * `prepare`, which may also refuse a request and fills in what op_info tells.
 */
#ifndef CEK_BACKENDS_REFERENCE_REFERENCE_H
#define CEK_BACKENDS_REFERENCE_REFERENCE_H

#include "backends/common/hash.h"
#include "backends/host/host.h"

/* The plugin's table (plugins/reference.c answers the query with it). */
extern const cek_plugin cek__reference_plugin;

cek__op_run_fn cek__reference_gemm;
cek__op_run_fn cek__reference_conv_forward, cek__reference_conv_backward_data, cek__reference_conv_backward_weights;
cek__op_run_fn cek__reference_pool_forward, cek__reference_pool_backward;
cek__op_run_fn cek__reference_pointwise, cek__reference_reduce, cek__reference_copy;
cek__op_run_fn cek__reference_arg, cek__reference_gather, cek__reference_scatter_add;
cek__op_run_fn cek__reference_softmax, cek__reference_cross_entropy, cek__reference_squared_error;
cek__op_run_fn cek__reference_dropout, cek__reference_random;
cek__op_run_fn cek__reference_optimizer;

cek__op_prepack_fn cek__reference_gemm_prepack, cek__reference_conv_prepack;

/* Sizes that the families need, into op->info. */
void cek__reference_gemm_prepare(cek_op *op);
void cek__reference_conv_prepare(cek_op *op);
void cek__reference_pool_prepare(cek_op *op);
void cek__reference_scatter_prepare(cek_op *op);

#endif
