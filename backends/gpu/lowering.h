/* SPDX-License-Identifier: MIT
 *
 * lowering.h - one way to do an operation: by a provider, or by our own kernels. Knows nothing of why that way.
 */
#ifndef CEK_BACKENDS_GPU_LOWERING_H
#define CEK_BACKENDS_GPU_LOWERING_H

#include "backends/gpu/gpu.h"

/* cek__gpu_lower_as - the operation's steps anew, by a provider, or by our own kernels alone
 * (NULL), ready to run. CEK_UNSUPPORTED: the provider does not take it; the operation then has no steps. */
cek_status cek__gpu_lower_as(cek_op *op, const cek__gpu_provider *provider);

#endif
