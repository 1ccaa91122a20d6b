/* ops.h - what the operations of the CPU backend share.
 *
 * Owns: the list of kinds, the way a kind is planned and run, type conversion of blocks.
 * Must not know: how any kind works inside.
 *
 * A kind is a file: a struct that starts with a cek_op, `plan`, which looks at the checked
 * descriptor, chooses, and sets info (workspace_bytes, reserve_bytes, algorithm) and, where it takes
 * packed weights, op->prepack, and `run`, which computes on addresses. */
#ifndef CEK_BACKENDS_CPU_OPS_OPS_H
#define CEK_BACKENDS_CPU_OPS_OPS_H

#include <string.h>

#include "backends/cpu/device.h"
#include "kernels/cpu/ops.h"

typedef struct cpu_kind {
    size_t bytes; /* of the kind's struct */
    cek_status (*plan)(cek_op *op);
    cek__op_run_fn *run;
    void (*fini)(cek_op *op); /* or NULL */
} cpu_kind;

extern const cpu_kind cek__cpu_gemm, cek__cpu_conv, cek__cpu_pool_forward, cek__cpu_pool_backward, cek__cpu_pointwise,
    cek__cpu_reduce, cek__cpu_softmax, cek__cpu_cross_entropy, cek__cpu_squared_error, cek__cpu_dropout,
    cek__cpu_random, cek__cpu_optimizer, cek__cpu_copy, cek__cpu_gather, cek__cpu_scatter_add, cek__cpu_arg;

/* cek__cpu_op_create - the slot of the table. */
cek_status cek__cpu_op_create(cek_dev *dev, const cek_op_desc *desc, cek_op_info *info, cek_op **out);

/* clang-format off */
static inline const cpu_dev *op_dev(const cek_op *op) { return (const cpu_dev *)op->dev; }
static inline const cpu_kernels *op_kernels(const cek_op *op) { return op_dev(op)->config->kernels; }
static inline const cek_host *op_host(const cek_op *op) { return &op->dev->instance->host; }
static inline void op_algorithm(cek_op *op, const char *text)
{
    strncpy(op->info.algorithm, text, sizeof op->info.algorithm - 1);
}
/* clang-format on */

/* cek__cpu_refuse_type - CEK_UNSUPPORTED, naming kind and type. */
cek_status cek__cpu_refuse_type(const cek_op *op, cek_dtype type) __attribute__((cold));

/* Types whose blocks are computed in f32: everything but f64. */
#define CPU_TYPES (1u << CEK_F32 | 1u << CEK_F16 | 1u << CEK_BF16 | 1u << CEK_U8 | 1u << CEK_I32)
#define CPU_TYPES_REAL (1u << CEK_F32 | 1u << CEK_F16 | 1u << CEK_BF16)
static inline bool type_in(cek_dtype type, uint32_t types)
{
    return type < 32 && (types >> type & 1);
}

/* The kernels' name for f32, f16 or bf16. */
static inline cpu_type type_of(cek_dtype type)
{
    return type == CEK_F16 ? CPU_F16 : type == CEK_BF16 ? CPU_BF16 : CPU_F32;
}

/* cek__cpu_load, cek__cpu_store - n consecutive elements of any of CPU_TYPES to floats and back
 * (nearest even; integers saturate, NaN becomes 0). No overlap. */
void cek__cpu_load(const cpu_kernels *k, cek_dtype type, int64_t n, const void *from, float *to);
void cek__cpu_store(const cpu_kernels *k, cek_dtype type, int64_t n, const float *from, void *to);

/* The value of a cek_f32x2. */
static inline double f32x2(cek_f32x2 x)
{
    return (double)x.hi + x.lo;
}

#endif
