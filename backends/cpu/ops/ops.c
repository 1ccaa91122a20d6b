/* ops.c - op_create: a checked descriptor becomes a planned operation; see ops.h. */
#include "backends/cpu/ops/ops.h"

#include <stdlib.h>

#include "backends/common/extent.h"

static const cpu_kind *const kinds[] = {
    [CEK_OP_GEMM] = &cek__cpu_gemm,
    [CEK_OP_CONV_FORWARD] = &cek__cpu_conv,
    [CEK_OP_CONV_BACKWARD_DATA] = &cek__cpu_conv,
    [CEK_OP_CONV_BACKWARD_WEIGHTS] = &cek__cpu_conv,
    [CEK_OP_POOL_FORWARD] = &cek__cpu_pool_forward,
    [CEK_OP_POOL_BACKWARD] = &cek__cpu_pool_backward,
    [CEK_OP_POINTWISE] = &cek__cpu_pointwise,
    [CEK_OP_REDUCE] = &cek__cpu_reduce,
    [CEK_OP_SOFTMAX] = &cek__cpu_softmax,
    [CEK_OP_CROSS_ENTROPY] = &cek__cpu_cross_entropy,
    [CEK_OP_SQUARED_ERROR] = &cek__cpu_squared_error,
    [CEK_OP_DROPOUT] = &cek__cpu_dropout,
    [CEK_OP_RANDOM] = &cek__cpu_random,
    [CEK_OP_OPTIMIZER] = &cek__cpu_optimizer,
    [CEK_OP_COPY] = &cek__cpu_copy,
    [CEK_OP_GATHER] = &cek__cpu_gather,
    [CEK_OP_SCATTER_ADD] = &cek__cpu_scatter_add,
    [CEK_OP_ARG] = &cek__cpu_arg,
};

cek_status cek__cpu_refuse_type(const cek_op *op, cek_dtype type)
{
    return cek__host_fail(op_host(op), CEK_UNSUPPORTED, "%s: the cpu device does not compute with %s",
                          cek__kind_name(op->request.desc.op.kind), cek__type_name(type));
}

static cek_status plan(cek_op *op, const cpu_kind *kind)
{
    cek_status st;

    op->run = kind->run;
    op->fini = kind->fini;
    st = kind->plan(op);
    if (st == CEK_OK && op->request.desc.op.flags & CEK_OP_PREPACKED && !op->prepack)
        st = cek__host_fail(op_host(op), CEK_UNSUPPORTED, "%s: the cpu device packs such weights as it goes, not ahead",
                            cek__kind_name(op->request.desc.op.kind));
    if (st == CEK_OK)
        op->info.numeric_id = cek__cpu_numeric_id(op_dev(op)->config, op->info.algorithm);
    return st;
}

cek_status cek__cpu_op_create(cek_dev *dev, const cek_op_desc *desc, cek_op_info *info, cek_op **out)
{
    const cek_host *host = &dev->instance->host;
    const cpu_kind *kind;
    cek_op *op;
    cek_status st;

    *out = NULL;
    if (!desc || desc->kind >= sizeof kinds / sizeof kinds[0] || !kinds[desc->kind])
        return cek__host_fail(host, desc ? CEK_UNSUPPORTED : CEK_INVALID, "op_create: %s",
                              desc ? "an operation that this version does not know" : "no descriptor");
    kind = kinds[desc->kind];
    op = calloc(1, kind->bytes);
    if (!op)
        return cek__host_fail(host, CEK_OUT_OF_MEMORY, "op_create: no memory for %s", cek__kind_name(desc->kind));
    st = cek__host_op_init(op, dev, desc);
    if (st != CEK_OK) {
        free(op);
        return st;
    }
    st = plan(op, kind);
    if (st != CEK_OK) {
        cek__host_op_destroy(op);
        return st;
    }
    return cek__host_op_publish(op, info, out);
}

void cek__cpu_load(const cpu_kernels *k, cek_dtype type, int64_t n, const void *from, float *to)
{
    if (type == CEK_U8)
        k->ops->pointwise->from_u8(n, from, to);
    else if (type == CEK_I32)
        k->ops->pointwise->from_i32(n, from, to);
    else
        k->load(type_of(type), n, from, to);
}

void cek__cpu_store(const cpu_kernels *k, cek_dtype type, int64_t n, const float *from, void *to)
{
    if (type == CEK_U8)
        k->ops->pointwise->to_u8(n, from, to);
    else if (type == CEK_I32)
        k->ops->pointwise->to_i32(n, from, to);
    else
        k->store(type_of(type), n, from, to);
}
