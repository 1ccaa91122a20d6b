/* SPDX-License-Identifier: MIT
 *
 * validate.h - whether a host's request is what plugin.h allows: descriptors when an operation is
 * made, operands when it runs.
 *
 * One place for all backends, driven by CEK_ALL_OPERANDS. A backend calls
 *     cek__request_init()      in op_create: the descriptor, checked, copied, with the size of every operand;
 *     cek__request_reserve()   after it chose the sizes that are its own (reserve, packed weights);
 *     cek__request_operands()  in op_run and cmdbuf_create: the operands of a run against that.
 * What the header allows but a backend does not implement (a type, a math mode) the backend refuses itself, after
 * cek__request_init(), with CEK_UNSUPPORTED.
 *
 * Knows nothing of memories: a callback tells the size of one.
 */
#ifndef CEK_BACKENDS_COMMON_VALIDATE_H
#define CEK_BACKENDS_COMMON_VALIDATE_H

#include <stdbool.h>

#include <cekernels/plugin.h>

#define CEK__SLOTS 10 /* the most that any kind of 1.0 has (pointwise) */

/* One operand slot of one request. */
typedef struct cek__slot {
    const char *name; /* "BIAS" */
    uint64_t aliases; /* slots whose operand it may be identical with, types and strides considered */
    uint64_t bytes;   /* from the operand's offset to behind the last element that is touched */
    uint32_t element; /* bytes of one element; 1 for blocks and private layouts */
    uint32_t align;   /* of its offset: the descriptor's, or CEK_ALIGNMENT for blocks and private layouts */
    bool given;       /* in the mask */
    bool written;     /* out or inout */
    bool accumulated; /* in the mask `accumulate` */
    bool dense;       /* every byte of the extent belongs to it (no gaps between rows) */
} cek__slot;

/* A descriptor given by a host, checked and copied. Nothing in it points at the caller's memory,
 * but desc.pointwise.inputs, desc.pointwise.instructions and desc.op.epilogue point into the
 * request itself: it must not be moved. */
typedef struct cek__request {
    union {
        cek_op_desc op;
        cek_gemm_desc gemm;
        cek_conv_desc conv;
        cek_pool_desc pool;
        cek_pointwise_desc pointwise;
        cek_reduce_desc reduce;
        cek_softmax_desc softmax;
        cek_cross_entropy_desc cross_entropy;
        cek_squared_error_desc squared_error;
        cek_dropout_desc dropout;
        cek_random_desc random;
        cek_optimizer_desc optimizer;
        cek_copy_desc copy;
        cek_gather_desc gather; /* and scatter_add */
        cek_arg_desc arg;
    } desc;
    cek_epilogue epilogue; /* all zero where there is none */
    cek_pointwise_input inputs[CEK_POINTWISE_INPUTS];
    cek_pointwise_instruction instructions[CEK_POINTWISE_INSTRUCTIONS];
    cek_param_range *ranges;       /* of the optimizer, owned; desc.optimizer.ranges points here */
    uint64_t out[CEK_SPATIAL_MAX]; /* output positions of convolutions and pools; 1 past `spatial` */
    uint32_t align;                /* of operand offsets: 0 resolved */
    uint32_t slot_count;           /* slots of this kind */
    cek__slot slots[CEK__SLOTS];   /* by slot number */
} cek__request;

/* cek__request_init - checks `desc` and fills in *to. CEK_INVALID where it breaks a rule of
 * plugin.h, CEK_UNSUPPORTED for what is unknown to 1.0; the text names kind, field and values. On
 * error *to needs no cek__request_free. `forward` is only checked for presence: that it is a pool
 * of the same device and shape is for the backend to see. */
cek_status cek__request_init(const cek_host *host, const cek_op_desc *desc, cek__request *to);
void cek__request_free(cek__request *request);

/* cek__request_reserve - sets the size of a slot whose layout is the backend's own (RESERVE, PACKED). */
void cek__request_reserve(cek__request *request, uint32_t slot, uint64_t bytes);

/* cek__request_given - whether the mask has the slot. */
static inline bool cek__request_given(const cek__request *request, uint32_t slot)
{
    return request->desc.op.operands >> slot & 1;
}
static inline bool cek__request_accumulates(const cek__request *request, uint32_t slot)
{
    return request->desc.op.accumulate >> slot & 1;
}

/* cek__kind_name - "gemm", "conv_forward", ...; "unknown operation" for any other number. */
const char *cek__kind_name(uint32_t kind);

/* How a backend tells the size of a memory: false where it is not of the device that `user` stands for. */
typedef bool cek__mem_bytes_fn(const void *user, const cek_mem *mem, uint64_t *bytes);

/* cek__range_check - whether `bytes` from `ref` on lie inside its memory. `what` names it in the text. */
cek_status cek__range_check(const cek_host *host, const char *what, cek_ref ref, uint64_t bytes,
                            cek__mem_bytes_fn *mem_bytes, const void *user);

/* cek__request_operands - whether a run may go ahead: exactly the slots of the mask are given,
 * offsets are aligned, extents lie inside their memories, nothing that is written overlaps anything
 * else but an input that it may be identical with. Overlap of operands with gaps (dense false) is
 * seen only where both begin at the same place. A workspace is needed where workspace_bytes > 0, at
 * a multiple of CEK_ALIGNMENT, apart from all operands. Allocates nothing. */
cek_status cek__request_operands(const cek_host *host, const cek__request *request, const cek_ref *operands,
                                 uint32_t count, cek_ref workspace, uint64_t workspace_bytes,
                                 cek__mem_bytes_fn *mem_bytes, const void *user);

#endif
