/* SPDX-License-Identifier: MIT
 * op.c - see op.h. */
#include "backends/common/op.h"

#include <stddef.h>
#include <string.h>

#include "backends/common/fail.h"
#include "backends/common/growth.h"

/* A reserve is read by the operation that its writer was made for. */
cek_status cek__op_forward(const cek_host *host, cek__request *backward, const cek_dev *dev,
                           const cek__request *forward, const cek_dev *forward_dev, uint64_t reserve_bytes)
{
    const cek_pool_desc *pool = &forward->desc.pool, *own = &backward->desc.pool;
    const size_t geometry = offsetof(cek_pool_desc, mode);
    if (forward_dev != dev || pool->op.kind != CEK_OP_POOL_FORWARD)
        return cek__host_fail(host, CEK_INVALID, "pool_backward: forward is not a pool_forward of this device");
    if (!cek__request_given(forward, CEK_POOL_FORWARD_RESERVE))
        return cek__host_fail(host, CEK_INVALID, "pool_backward: forward writes no reserve");
    if (memcmp((const char *)pool + geometry, (const char *)own + geometry, sizeof *pool - geometry))
        return cek__host_fail(host, CEK_INVALID, "pool_backward: forward has another geometry or type");
    cek__request_reserve(backward, CEK_POOL_BACKWARD_RESERVE, reserve_bytes);
    return CEK_OK;
}

cek_status cek__op_publish(const cek_host *host, cek__request *request, cek_op_info *own, cek_op_info *info)
{
    switch (request->desc.op.kind) {
    case CEK_OP_POOL_FORWARD: cek__request_reserve(request, CEK_POOL_FORWARD_RESERVE, own->reserve_bytes); break;
    case CEK_OP_GEMM: cek__request_reserve(request, CEK_GEMM_PACKED, own->prepack_bytes); break;
    case CEK_OP_CONV_FORWARD: cek__request_reserve(request, CEK_CONV_FORWARD_PACKED, own->prepack_bytes); break;
    default: break;
    }
    own->size = sizeof *own;
    return cek__struct_out(host, "op_create: info", info, own, sizeof *own);
}
