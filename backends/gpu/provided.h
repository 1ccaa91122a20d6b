/* SPDX-License-Identifier: MIT
 *
 * provided.h - an operation by the call of a provider, with our own kernels for what the call leaves.
 */
#ifndef CEK_BACKENDS_GPU_PROVIDED_H
#define CEK_BACKENDS_GPU_PROVIDED_H

#include "backends/gpu/gpu.h"

/* cek__gpu_provided_lower - the steps of a product or convolution; `leave` as in cek__gpu_offer, *does what the call
 * does. CEK_UNSUPPORTED: the provider does not take it. */
cek_status cek__gpu_provided_lower(cek_op *op, const cek__gpu_provider *provider, uint32_t leave, uint32_t *does);
/* cek__gpu_provided_warm - makes the operation run once, on scratch memory: libraries load code and
 * compile at first use. All operands are NaN; *keeps_nan: so was all of the result. */
cek_status cek__gpu_provided_warm(cek_op *op, bool *keeps_nan);

#endif
