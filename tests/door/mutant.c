/* SPDX-License-Identifier: MIT
 *
 * mutant.c - a plugin that is wrong on purpose: the reference, with one element wrong in one output
 * of one operation and type. A conformance suite that passes it proves nothing. For tests alone,
 * never installed.
 *
 *     mutant_op      "gemm", "conv_forward", ... (the lower-case names of section 7 of plugin.h)
 *     mutant_output  the slot: "C", "A_SUM", "DX", ...
 *     mutant_type    of the operation: "f32", ... (of its first operand; of OUT for pointwise, of Y for copy)
 *     mutant_where   interior, tail (the third from the end), last
 *
 *     mutant_edge    instead of one element all those in f32 at an edge: "zero" (has the other sign), "denormal"
 *                    (becomes 0), "one" (the value before it), "ulps" (every finite value is as much too large as its
 *                    function must not be)
 *     mutant_code    with mutant_edge: of chains that end with this CEK_PW_... alone, and of activations in epilogues
 *
 *     mutant_flushes the device says that it does: CEK_DEVICE_FLUSHES_DENORMALS
 *     mutant_tells   it says of each operation that is made, in the host's log, which and with what math
 *
 * An integer becomes one more. Any other value is off by a third of its type's significant bits:
 * far above what rounding explains in a case small enough to be checked element by element, far
 * below what an eye would see. NaN and infinities become 1. Each time it strikes it says so in the
 * host's log.
 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/common/extent.h"
#include "backends/reference/element.h"
#include "backends/reference/reference.h"

/* The type that names the operation. */
static cek_dtype op_type(const cek__request *request)
{
    switch (request->desc.op.kind) {
    case CEK_OP_GEMM: return request->desc.gemm.a_type;
    case CEK_OP_CONV_FORWARD:
    case CEK_OP_CONV_BACKWARD_DATA:
    case CEK_OP_CONV_BACKWARD_WEIGHTS: return request->desc.conv.x_type;
    case CEK_OP_POOL_FORWARD:
    case CEK_OP_POOL_BACKWARD: return request->desc.pool.type;
    case CEK_OP_POINTWISE: return request->desc.pointwise.out_type;
    case CEK_OP_REDUCE: return request->desc.reduce.x_type;
    case CEK_OP_SOFTMAX: return request->desc.softmax.type;
    case CEK_OP_CROSS_ENTROPY: return request->desc.cross_entropy.type;
    case CEK_OP_SQUARED_ERROR: return request->desc.squared_error.type;
    case CEK_OP_DROPOUT: return request->desc.dropout.type;
    case CEK_OP_RANDOM: return request->desc.random.type;
    case CEK_OP_OPTIMIZER: return request->desc.optimizer.type;
    case CEK_OP_GATHER:
    case CEK_OP_SCATTER_ADD: return request->desc.gather.type;
    case CEK_OP_ARG: return request->desc.arg.type;
    default: return request->desc.copy.y_type;
    }
}

/* The type of one of its outputs. The reserve and the count of steps are integers of the reference's own. */
static cek_dtype output_type(const cek__request *request, uint32_t slot)
{
    cek_dtype type = op_type(request), sum = cek__type_sum(type);
    switch (request->desc.op.kind) {
    case CEK_OP_GEMM: return slot == CEK_GEMM_C ? request->desc.gemm.c_type : sum;
    case CEK_OP_CONV_BACKWARD_WEIGHTS:
    case CEK_OP_SCATTER_ADD:
    case CEK_OP_REDUCE: return sum;
    case CEK_OP_ARG: return CEK_I32;
    case CEK_OP_POOL_FORWARD: return slot == CEK_POOL_FORWARD_RESERVE ? CEK_I32 : type;
    case CEK_OP_CROSS_ENTROPY:
        return slot == CEK_CROSS_ENTROPY_DLOGITS ? type : slot == CEK_CROSS_ENTROPY_LOSS ? sum : CEK_I32;
    case CEK_OP_SQUARED_ERROR: return slot == CEK_SQUARED_ERROR_DPREDICTION ? type : sum;
    case CEK_OP_OPTIMIZER:
        return slot == CEK_OPTIMIZER_STATE ? CEK_I32
               : slot == CEK_OPTIMIZER_LOW ? request->desc.optimizer.low_type
                                           : type;
    default: return type;
    }
}

/* Elements of an output, as a tensor of a shape. */
typedef struct places {
    uint32_t rank;
    uint64_t shape[CEK_RANK_MAX];
    int64_t strides[CEK_RANK_MAX];
} places;

static places output_places(const cek__request *request, uint32_t slot)
{
    const cek_gemm_desc *gemm = &request->desc.gemm;
    const cek_pointwise_desc *pointwise = &request->desc.pointwise;
    const cek_copy_desc *copy = &request->desc.copy;
    places p = { .rank = 1,
                 .shape = { request->slots[slot].bytes / cek__type_bytes(output_type(request, slot)) },
                 .strides = { 1 } };
    if (request->desc.op.kind == CEK_OP_GEMM && slot == CEK_GEMM_C)
        p = (places){ 4,
                      { gemm->outer, gemm->batch, gemm->m, gemm->n },
                      { gemm->outer_c, gemm->stride_c, gemm->ldc, 1 } };
    if (request->desc.op.kind == CEK_OP_POINTWISE) {
        p.rank = pointwise->rank;
        memcpy(p.shape, pointwise->shape, sizeof p.shape);
        memcpy(p.strides, pointwise->out_strides, sizeof p.strides);
    }
    if (request->desc.op.kind == CEK_OP_COPY) {
        p.rank = copy->rank;
        memcpy(p.shape, copy->shape, sizeof p.shape);
        memcpy(p.strides, copy->y_strides, sizeof p.strides);
    }
    if (request->desc.op.kind == CEK_OP_OPTIMIZER && slot == CEK_OPTIMIZER_STATE)
        p.shape[0] = 1;
    return p;
}

/* Where in memory the chosen element lies. */
static uint64_t place_of(const places *p, const char *where)
{
    uint64_t count, at, place = 0;
    cek__product(p->shape, p->rank, &count);
    at = count - 1;
    if (!strcmp(where, "interior"))
        at = count / 2;
    else if (!strcmp(where, "tail"))
        at -= at < 2 ? at : 2;
    for (uint32_t i = p->rank; i-- > 0; at /= p->shape[i])
        place += at % p->shape[i] * (uint64_t)p->strides[i];
    return place;
}

static double wrong(double x, cek_dtype type)
{
    static const int significant_bits[] = { [CEK_F32] = 24, [CEK_F16] = 11, [CEK_BF16] = 8, [CEK_F64] = 53 };
    if (!isfinite(x))
        return 1;
    if (type == CEK_U8)
        return x < 255 ? x + 1 : 0;
    if (x == rint(x) && fabs(x) < 255)
        return x + 1;
    return type == CEK_I32 ? x + 1 : x * (1 + ldexp(1, -significant_bits[type] / 3));
}

/* --- edges -------------------------------------------------------------------------------------------------------- */

/* The instruction that made the result, for an epilogue the one that does the same; 0: none. */
static uint32_t last_code(const cek__request *request)
{
    static const uint32_t forward[] = { 0, CEK_PW_RELU, CEK_PW_TANH, CEK_PW_SIGMOID, CEK_PW_GELU };
    static const uint32_t backward[] = { 0, CEK_PW_RELU_GRAD, CEK_PW_TANH_GRAD, CEK_PW_SIGMOID_GRAD, CEK_PW_GELU_GRAD };
    const cek_pointwise_desc *d = &request->desc.pointwise;
    if (d->op.kind == CEK_OP_POINTWISE)
        return d->instruction_count ? d->instructions[d->instruction_count - 1].code : 0;
    return request->epilogue.act_grad ? backward[request->epilogue.act_grad] : forward[request->epilogue.activation];
}

/* One unit more than the function may be off at the worst place of a binade. */
static int32_t too_many(uint32_t code)
{
    static const double ulps[] = {
        [CEK_PW_DIV] = CEK_ULP_DIV,     [CEK_PW_SQRT] = CEK_ULP_SQRT,
        [CEK_PW_EXP] = CEK_ULP_EXP,     [CEK_PW_LOG] = CEK_ULP_LOG,
        [CEK_PW_TANH] = CEK_ULP_TANH,   [CEK_PW_SIGMOID] = CEK_ULP_SIGMOID,
        [CEK_PW_GELU] = CEK_ULP_GELU,   [CEK_PW_GELU_GRAD] = CEK_ULP_GELU_GRAD,
        [CEK_PW_POW] = CEK_ULP_POW,     [CEK_PW_ERF] = CEK_ULP_ERF,
        [CEK_PW_LOG1P] = CEK_ULP_LOG1P, [CEK_PW_EXPM1] = CEK_ULP_EXPM1,
        [CEK_PW_SIN] = CEK_ULP_SIN,     [CEK_PW_COS] = CEK_ULP_COS,
    };
    return (int32_t)((code < sizeof ulps / sizeof *ulps ? ulps[code] : 0) + 2);
}

static float edge_wrong(const char *edge, uint32_t code, float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (!strcmp(edge, "zero"))
        return x == 0 ? -x : x;
    if (!strcmp(edge, "denormal"))
        return fpclassify(x) == FP_SUBNORMAL ? 0 : x;
    if (!strcmp(edge, "one"))
        bits -= fabsf(x) == 1;
    else if (isfinite(x))
        bits += too_many(code);
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void edges_strike(const cek_host *host, const cek__request *request, const char *edge, float *y, uint64_t count)
{
    const char *text = cek__host_option(host, "mutant_code");
    uint32_t code = last_code(request);
    uint64_t struck = 0;
    if (!text || !code || code != (uint32_t)atoi(text))
        return;
    for (uint64_t i = 0; i < count; i++) {
        float before = y[i];
        y[i] = edge_wrong(edge, code, before);
        struck += memcmp(&before, &y[i], sizeof before) != 0;
    }
    if (struck)
        cek__host_log(host, CEK_LOG_INFO, "mutant: %s, %llu elements", edge, (unsigned long long)struck);
}

/* The slot that is to be wrong, or -1. */
static int slot_of(const cek__request *request, const cek_host *host)
{
    const char *op = cek__host_option(host, "mutant_op"), *output = cek__host_option(host, "mutant_output"),
               *type = cek__host_option(host, "mutant_type");
    if (!op || !output || !type || strcmp(op, cek__kind_name(request->desc.op.kind)) ||
        strcmp(type, cek__type_name(op_type(request))))
        return -1;
    for (uint32_t i = 0; i < request->slot_count; i++)
        if (request->slots[i].given && request->slots[i].written && !strcmp(request->slots[i].name, output))
            return (int)i;
    return -1;
}

static cek_status op_create(cek_dev *dev, const cek_op_desc *desc, cek_op_info *info, cek_op **out)
{
    const cek_host *host = &dev->instance->host;
    const cek_status st = cek__reference_plugin.op_create(dev, desc, info, out);
    if (!st && cek__host_option(host, "mutant_tells"))
        cek__host_log(host, CEK_LOG_INFO, "made: %s, math %u", cek__kind_name(desc->kind), desc->math);
    return st;
}

static cek_status op_run(cek_queue *queue, const cek_op *op, const cek_ref *operands, uint32_t count, cek_ref workspace)
{
    const cek_host *host = &queue->dev->instance->host;
    cek_status st = cek__host_op_run(queue, op, operands, count, workspace);
    int slot = st ? -1 : slot_of(&op->request, host);
    const char *where = cek__host_option(host, "mutant_where");
    if (slot < 0 || !op->request.slots[slot].bytes)
        return st;
    cek_dtype type = output_type(&op->request, (uint32_t)slot);
    const places p = output_places(&op->request, (uint32_t)slot);
    uint64_t place = place_of(&p, where ? where : "last");
    void *base = operands[slot].mem->base + operands[slot].offset;
    const char *edge = cek__host_option(host, "mutant_edge");
    if (edge && type == CEK_F32)
        edges_strike(host, &op->request, edge, base, op->request.slots[slot].bytes / sizeof(float));
    if (edge)
        return st;
    store(base, type, place, wrong(load(base, type, place), type));
    cek__host_log(host, CEK_LOG_INFO, "mutant: %s %s, element %llu", cek__kind_name(op->request.desc.op.kind),
                  op->request.slots[slot].name, (unsigned long long)place);
    return st;
}

static cek_status device_info(cek_instance *instance, uint32_t index, cek_device_info *info)
{
    cek_status st = cek__reference_plugin.device_info(instance, index, info);
    if (!st && cek__host_option(&instance->host, "mutant_flushes"))
        info->flags |= CEK_DEVICE_FLUSHES_DENORMALS;
    return st;
}

static cek_plugin mutant;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The reference's table with another op_run. No command buffers, whose runs would not come by here. */
static void table_make(void)
{
    mutant = cek__reference_plugin;
    mutant.name = "mutant";
    mutant.device_info = device_info;
    mutant.op_create = op_create;
    mutant.op_run = op_run;
    mutant.cmdbuf_create = NULL;
    mutant.cmdbuf_destroy = NULL;
    mutant.cmdbuf_run = NULL;
}

const cek_plugin *cek_plugin_query(uint32_t host_abi)
{
    pthread_once(&once, table_make);
    return host_abi >> 16 == CEK_ABI_MAJOR ? &mutant : NULL;
}
