/* chains.h - chains of pointwise instructions over some elements of a shard. */
#ifndef CEK_NN_TRAIN_CHAINS_H
#define CEK_NN_TRAIN_CHAINS_H

#include "cekernels/nn.h"
#include "core/base/export.h"

typedef struct cek__chain_op {
    cek_op *op;
    uint64_t workspace_bytes;
} cek__chain_op;

/* Of `inputs` operands, IN0 first, of `count` contiguous elements each; OUT may be one of them. */
CEK__CHECKED cek_status cek__chain_make(cek_device *device, cek_dtype type, uint64_t count, uint32_t inputs,
                                        const cek_pointwise_instruction *instructions, uint32_t length,
                                        cek__chain_op *out);

/* The same elements in `low`, of 16 bits: IN0 of f32 to OUT, at any place that is a multiple of CEK__SHARD_UNIT. */
CEK__CHECKED cek_status cek__rounding_make(cek_device *device, cek_dtype low, uint64_t count, cek__chain_op *out);

#endif
