/* SPDX-License-Identifier: MIT
 *
 * op.h - what op_create does around a backend's choice, whatever the backend: the forward operation that a descriptor
 * names, and the sizes of its own that an operation tells.
 *
 * Owns no state. An operation is its request and its info here; the handle is the backend's.
 */
#ifndef CEK_BACKENDS_COMMON_OP_H
#define CEK_BACKENDS_COMMON_OP_H

#include "backends/common/validate.h"

/* cek__op_forward - whether `backward`, an operation of `dev`, may name `forward`, one of `forward_dev` that writes a
 * reserve of `reserve_bytes`; takes over that size. */
cek_status cek__op_forward(const cek_host *host, cek__request *backward, const cek_dev *dev,
                           const cek__request *forward, const cek_dev *forward_dev, uint64_t reserve_bytes);

/* cek__op_publish - the operation is made and `own` says what of: runs are checked against those sizes from here on,
 * and the caller's *info (may be NULL) is filled in. */
cek_status cek__op_publish(const cek_host *host, cek__request *request, cek_op_info *own, cek_op_info *info);

#endif
