/* ops.c - what is computed with tensors: elementwise, reductions, softmax, products, random numbers.
 *
 * Each function checks its operands with names that a user knows, makes the result, and describes one operation of
 * plugin.h.
 * Must not know: how operations are kept and queued (eager.c). */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/device/call.h"
#include "core/device/stream.h"
#include "core/tensor/copy.h"
#include "core/tensor/eager.h"
#include "core/tensor/pointwise.h"

/* ---- elementwise ---- */

static cek_status elementwise(const char *what, const cek__chain *chain, const cek_tensor *const *in,
                              const cek__shape *shape, cek_tensor **out)
{
    cek_status st;
    cek_tensor *y = NULL;
    cek__lane lanes[2], to;

    CEK_TRY(cek__tensor_new(what, in[0]->device, in[0]->type, shape, &y));
    for (int k = 0; k < chain->inputs; k++)
        lanes[k] = cek__lane_of(in[k], shape);
    to = cek__lane_of(y, shape);
    CEK_TRY(cek__pointwise_run(what, y->device, shape, chain, lanes, &to));
    *out = y;
    return CEK_OK;
out:
    cek_tensor_free(y);
    return st;
}

static cek_status unary(const char *what, const cek_tensor *x, const cek__chain *chain, cek_tensor **out)
{
    cek_status st;

    *out = NULL;
    CEK_TRY(cek__tensors_check(what, 1, (const char *const[]){ "x" }, &x));
    CEK_TRY(elementwise(what, chain, &x, &x->shape, out));
out:
    return st;
}

static cek_status binary(const char *what, uint32_t code, const cek_tensor *a, const cek_tensor *b, cek_tensor **out)
{
    cek_status st;
    cek__shape shape;
    const cek_tensor *in[] = { a, b };
    const cek__chain chain = { .inputs = 2, .code = { { .code = code, .a = 0, .b = 1 } }, .length = 1 };

    *out = NULL;
    CEK_TRY(cek__tensors_check(what, 2, (const char *const[]){ "a", "b" }, in));
    CEK_TRY(cek__shape_broadcast(what, &a->shape, &b->shape, &shape));
    CEK_TRY(cek__shape_make(what, shape.rank, shape.dims, cek_dtype_bytes(a->type), &shape));
    CEK_TRY(elementwise(what, &chain, in, &shape, out));
out:
    return st;
}

#define BINARY(name, instruction)                                                     \
    cek_status cek_##name(const cek_tensor *a, const cek_tensor *b, cek_tensor **out) \
    {                                                                                 \
        CEK__NOT_NULL(out);                                                           \
        *out = NULL;                                                                  \
        CEK__NOT_NULL(a);                                                             \
        CEK__NOT_NULL(b);                                                             \
        return binary("cek_" #name, instruction, a, b, out);                          \
    }
BINARY(add, CEK_PW_ADD)
BINARY(sub, CEK_PW_SUB)
BINARY(mul, CEK_PW_MUL)
BINARY(div, CEK_PW_DIV)
#undef BINARY

#define UNARY(name, instruction)                                                                                      \
    cek_status cek_##name(const cek_tensor *x, cek_tensor **out)                                                      \
    {                                                                                                                 \
        CEK__NOT_NULL(out);                                                                                           \
        *out = NULL;                                                                                                  \
        CEK__NOT_NULL(x);                                                                                             \
        return unary("cek_" #name, x, &(cek__chain){ .inputs = 1, .code = { { .code = instruction } }, .length = 1 }, \
                     out);                                                                                            \
    }
UNARY(neg, CEK_PW_NEG)
UNARY(exp, CEK_PW_EXP)
UNARY(log, CEK_PW_LOG)
UNARY(sqrt, CEK_PW_SQRT)
UNARY(relu, CEK_PW_RELU)
UNARY(tanh, CEK_PW_TANH)
UNARY(sigmoid, CEK_PW_SIGMOID)
UNARY(gelu, CEK_PW_GELU)
#undef UNARY

cek_status cek_scale(const cek_tensor *x, double factor, double offset, cek_tensor **out)
{
    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(x);
    return unary("cek_scale", x,
                 &(cek__chain){ .inputs = 1,
                                .code = { { .code = CEK_PW_MUL_IMM, .imm = factor },
                                          { .code = CEK_PW_ADD_IMM, .a = 1, .imm = offset } },
                                .length = 2 },
                 out);
}

/* ---- reductions ---- */

/* The mask of the axes, and the shape that remains. */
static cek_status axes_read(const char *what, const cek_tensor *x, int count, const int *axes, uint32_t *mask,
                            cek__shape *rest)
{
    int rank = x->shape.rank;

    *mask = 0;
    *rest = (cek__shape){ 0 };
    if (count < 0)
        return cek__fail(CEK_INVALID, "%s: %d axes", what, count);
    if (count > 0 && axes == NULL)
        return cek__fail(CEK_INVALID, "%s: axes is NULL", what);
    *mask = count == 0 ? (1u << rank) - 1 : 0;
    for (int i = 0; i < count; i++) {
        int axis = axes[i] < 0 ? axes[i] + rank : axes[i];

        if (axis < 0 || axis >= rank)
            return cek__fail(CEK_INVALID, "%s: axis %d of a tensor %s", what, axes[i], CEK__SHAPE_TEXT_OF(&x->shape));
        if ((*mask >> axis & 1) != 0)
            return cek__fail(CEK_INVALID, "%s: axis %d is named twice", what, axes[i]);
        *mask |= 1u << axis;
    }
    for (int i = 0; i < rank; i++)
        if ((*mask >> i & 1) == 0)
            rest->dims[rest->rank++] = x->shape.dims[i];
    return CEK_OK;
}

static cek_status reduce(const char *what, uint32_t function, const cek_tensor *x, int count, const int *axes,
                         cek_tensor **out)
{
    cek_status st;
    cek_tensor *y = NULL;
    cek__shape rest;
    uint32_t mask;

    *out = NULL;
    CEK_TRY(cek__tensors_check(what, 1, (const char *const[]){ "x" }, &x));
    CEK_TRY(axes_read(what, x, count, axes, &mask, &rest));
    CEK_TRY(cek__tensor_new(what, x->device, cek__dtype_sum(x->type), &rest, &y));
    const cek__lane from = cek__lane_of(x, &x->shape);
    cek_ref operands[] = { [CEK_REDUCE_X] = from.ref, [CEK_REDUCE_Y] = cek_tensor_ref(y) };
    cek_reduce_desc desc = { .op = { .size = sizeof desc,
                                     .kind = CEK_OP_REDUCE,
                                     .operands = CEK_BIT(CEK_REDUCE_X) | CEK_BIT(CEK_REDUCE_Y),
                                     .align = cek__lanes_align(1, &from) },
                             .function = function,
                             .axes = x->shape.rank > 0 ? mask : 1,
                             .rank = x->shape.rank > 0 ? (uint32_t)x->shape.rank : 1,
                             .x_type = x->type,
                             .shape = { 1 },
                             .x_strides = { 1 } };
    for (int i = 0; i < x->shape.rank; i++) {
        desc.shape[i] = (uint64_t)x->shape.dims[i];
        desc.x_strides[i] = from.strides[i];
    }
    CEK_TRY(cek__eager_run(what, x->device, &desc.op, operands, 2));
    *out = y;
    return CEK_OK;
out:
    cek_tensor_free(y);
    return st;
}

cek_status cek_sum(const cek_tensor *x, int count, const int *axes, cek_tensor **out)
{
    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(x);
    return reduce("cek_sum", CEK_REDUCE_SUM, x, count, axes, out);
}

cek_status cek_mean(const cek_tensor *x, int count, const int *axes, cek_tensor **out)
{
    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(x);
    return reduce("cek_mean", CEK_REDUCE_MEAN, x, count, axes, out);
}

cek_status cek_max(const cek_tensor *x, int count, const int *axes, cek_tensor **out)
{
    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(x);
    return reduce("cek_max", CEK_REDUCE_MAX, x, count, axes, out);
}

cek_status cek_min(const cek_tensor *x, int count, const int *axes, cek_tensor **out)
{
    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(x);
    return reduce("cek_min", CEK_REDUCE_MIN, x, count, axes, out);
}

static cek_status arg(const char *what, uint32_t function, const cek_tensor *x, int axis, cek_tensor **out)
{
    cek_status st;
    cek_tensor *y = NULL, *packed = NULL;
    cek__shape rest;
    uint32_t mask;

    CEK_TRY(cek__tensors_check(what, 1, (const char *const[]){ "x" }, &x));
    CEK_TRY(cek__axis_take(what, x, axis, &axis));
    CEK_TRY(axes_read(what, x, 1, &axis, &mask, &rest));
    CEK_TRY(cek__tensor_new(what, x->device, CEK_I32, &rest, &y));
    CEK_TRY(cek__tensor_packed(what, x, &packed));
    cek_ref operands[] = { [CEK_ARG_X] = cek_tensor_ref(packed), [CEK_ARG_Y] = cek_tensor_ref(y) };
    cek_arg_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_ARG, .operands = CEK_BIT(CEK_ARG_X) | CEK_BIT(CEK_ARG_Y) },
        .function = function,
        .axis = (uint32_t)axis,
        .rank = (uint32_t)x->shape.rank,
        .type = x->type
    };
    for (int i = 0; i < x->shape.rank; i++) {
        desc.shape[i] = (uint64_t)x->shape.dims[i];
        desc.x_strides[i] = packed->strides[i];
    }
    CEK_TRY(cek__eager_run(what, x->device, &desc.op, operands, 2));
    *out = y;
    y = NULL;
out:
    cek_tensor_free(packed);
    cek_tensor_free(y);
    return st;
}

cek_status cek_argmax(const cek_tensor *x, int axis, cek_tensor **out)
{
    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(x);
    return arg("cek_argmax", CEK_ARG_MAX, x, axis, out);
}

cek_status cek_argmin(const cek_tensor *x, int axis, cek_tensor **out)
{
    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(x);
    return arg("cek_argmin", CEK_ARG_MIN, x, axis, out);
}

cek_status cek_softmax(const cek_tensor *x, cek_tensor **out)
{
    cek_status st;
    cek_tensor *y = NULL, *packed = NULL;
    int64_t columns;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(x);
    CEK_TRY(cek__tensors_check("cek_softmax", 1, (const char *const[]){ "x" }, &x));
    CEK_TRY(cek__tensor_new("cek_softmax", x->device, x->type, &x->shape, &y));
    CEK_TRY(cek__tensor_packed("cek_softmax", x, &packed));
    columns = x->shape.rank > 0 ? x->shape.dims[x->shape.rank - 1] : 1;
    cek_ref operands[] = { [CEK_SOFTMAX_X] = cek_tensor_ref(packed), [CEK_SOFTMAX_Y] = cek_tensor_ref(y) };
    cek_softmax_desc desc = { .op = { .size = sizeof desc,
                                      .kind = CEK_OP_SOFTMAX,
                                      .operands = CEK_BIT(CEK_SOFTMAX_X) | CEK_BIT(CEK_SOFTMAX_Y) },
                              .rows = (uint64_t)(cek_tensor_count(x) / columns),
                              .columns = (uint64_t)columns,
                              .type = x->type };
    CEK_TRY(cek__eager_run("cek_softmax", x->device, &desc.op, operands, 2));
    *out = y;
    y = NULL;
out:
    cek_tensor_free(packed);
    cek_tensor_free(y);
    return st;
}

/* ---- products ---- */

/* What cek_matmul comes to: one product, or a batch of them. */
typedef struct product {
    cek__shape shape; /* of the result */
    uint64_t m, n, k, batch;
    bool a_batched, b_batched;
} product;

static cek_status product_plan(const cek__shape *a, const cek__shape *b, product *p)
{
    cek__shape lead_a = *a, lead_b = *b;

    if (a->rank < 2 || b->rank < 2)
        return cek__fail(CEK_INVALID, "cek_matmul: shapes %s and %s: matrices are needed", CEK__SHAPE_TEXT_OF(a),
                         CEK__SHAPE_TEXT_OF(b));
    if (a->dims[a->rank - 1] != b->dims[b->rank - 2])
        return cek__fail(CEK_INVALID, "cek_matmul: shapes %s and %s: %" PRId64 " columns against %" PRId64 " rows",
                         CEK__SHAPE_TEXT_OF(a), CEK__SHAPE_TEXT_OF(b), a->dims[a->rank - 1], b->dims[b->rank - 2]);
    lead_a.rank -= 2;
    lead_b.rank -= 2;
    if (lead_a.rank > 0 && lead_b.rank > 0 && !cek__shape_equal(&lead_a, &lead_b))
        return cek__fail(CEK_INVALID, "cek_matmul: shapes %s and %s: the batches differ", CEK__SHAPE_TEXT_OF(a),
                         CEK__SHAPE_TEXT_OF(b));
    *p = (product){ .shape = lead_a.rank > 0 ? *a : *b,
                    .m = (uint64_t)a->dims[a->rank - 2],
                    .n = (uint64_t)b->dims[b->rank - 1],
                    .k = (uint64_t)a->dims[a->rank - 1],
                    .batch = (uint64_t)cek__shape_count(lead_a.rank > 0 ? &lead_a : &lead_b),
                    .a_batched = lead_a.rank > 0,
                    .b_batched = lead_b.rank > 0 };
    p->shape.dims[p->shape.rank - 2] = a->dims[a->rank - 2];
    p->shape.dims[p->shape.rank - 1] = b->dims[b->rank - 1];
    if (p->a_batched && !p->b_batched) {
        p->m *= p->batch; /* the matrices of `a` stand one below the other: one tall product */
        p->batch = 1;
        p->a_batched = false;
    }
    return CEK_OK;
}

cek_status cek_matmul(const cek_tensor *a, const cek_tensor *b, cek_tensor **out)
{
    cek_status st;
    cek_tensor *c = NULL, *pa = NULL, *pb = NULL;
    product p;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(a);
    CEK__NOT_NULL(b);
    CEK_TRY(cek__tensors_check("cek_matmul", 2, (const char *const[]){ "a", "b" }, (const cek_tensor *[]){ a, b }));
    CEK_TRY(product_plan(&a->shape, &b->shape, &p));
    CEK_TRY(cek__shape_make("cek_matmul", p.shape.rank, p.shape.dims, cek_dtype_bytes(a->type), &p.shape));
    CEK_TRY(cek__tensor_new("cek_matmul", a->device, a->type, &p.shape, &c));
    CEK_TRY(cek__tensor_packed("cek_matmul", a, &pa));
    CEK_TRY(cek__tensor_packed("cek_matmul", b, &pb));
    cek_ref operands[] = {
        [CEK_GEMM_A] = cek_tensor_ref(pa), [CEK_GEMM_B] = cek_tensor_ref(pb), [CEK_GEMM_C] = cek_tensor_ref(c)
    };
    cek_gemm_desc desc = { .op = { .size = sizeof desc,
                                   .kind = CEK_OP_GEMM,
                                   .operands = CEK_BIT(CEK_GEMM_A) | CEK_BIT(CEK_GEMM_B) | CEK_BIT(CEK_GEMM_C) },
                           .m = p.m,
                           .n = p.n,
                           .k = p.k,
                           .batch = p.batch,
                           .lda = (int64_t)p.k,
                           .ldb = (int64_t)p.n,
                           .ldc = (int64_t)p.n,
                           .stride_a = p.a_batched ? (int64_t)(p.m * p.k) : 0,
                           .stride_b = p.b_batched ? (int64_t)(p.k * p.n) : 0,
                           .stride_c = (int64_t)(p.m * p.n),
                           .a_type = a->type,
                           .b_type = b->type,
                           .c_type = c->type };
    CEK_TRY(cek__eager_run("cek_matmul", a->device, &desc.op, operands, 3));
    *out = c;
    c = NULL;
out:
    cek_tensor_free(pa);
    cek_tensor_free(pb);
    cek_tensor_free(c);
    return st;
}

/* ---- random numbers ---- */

/* The step block that carries the key, written in stream order. */
static cek_status key_upload(cek_device *device, uint64_t seed, cek_memory **out)
{
    cek_status st;
    cek_stream *stream;
    cek_step_block block = { .random_key = seed };

    CEK_TRY(cek__memory_alloc_order(device, sizeof block, out));
    CEK_TRY(cek__device_order_take(device, &stream));
    st = cek_stream_update(stream, cek_memory_ref(*out), &block, sizeof block);
    cek__device_turn_give(device);
out:
    return st;
}

static cek_status random_fill(const char *what, uint32_t distribution, cek_device *device, int rank,
                              const int64_t *dims, double a, double b, uint64_t seed, uint32_t stream, cek_tensor **out)
{
    cek_status st;
    cek__shape shape;
    cek_tensor *y = NULL;
    cek_memory *step = NULL;

    *out = NULL;
    CEK_TRY(cek__shape_make(what, rank, dims, sizeof(float), &shape));
    if (cek__shape_count(&shape) >= (int64_t)1 << 34)
        CEK_FAIL(CEK_INVALID, "%s: shape %s: a stream has 2^34 numbers", what, CEK__SHAPE_TEXT_OF(&shape));
    CEK_TRY(cek__tensor_new(what, device, CEK_F32, &shape, &y));
    CEK_TRY(key_upload(device, seed, &step));
    cek_ref operands[] = { [CEK_RANDOM_Y] = cek_tensor_ref(y), [CEK_RANDOM_STEP] = cek_memory_ref(step) };
    cek_random_desc desc = { .op = { .size = sizeof desc,
                                     .kind = CEK_OP_RANDOM,
                                     .operands = CEK_BIT(CEK_RANDOM_Y) | CEK_BIT(CEK_RANDOM_STEP) },
                             .rows = 1,
                             .columns = (uint64_t)cek_tensor_count(y),
                             .rows_per_sample = 1,
                             .a = a,
                             .b = b,
                             .distribution = distribution,
                             .stream = stream,
                             .type = CEK_F32 };
    CEK_TRY(cek__eager_run(what, device, &desc.op, operands, 2));
    cek_memory_free(step);
    *out = y;
    return CEK_OK;
out:
    cek_memory_free(step);
    cek_tensor_free(y);
    return st;
}

cek_status cek_tensor_uniform(cek_device *device, int rank, const int64_t *shape, double low, double high,
                              uint64_t seed, uint32_t stream, cek_tensor **out)
{
    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(device);
    if (!(low <= high && low >= -FLT_MAX && high <= FLT_MAX))
        return cek__fail(CEK_INVALID, "cek_tensor_uniform: from %g to %g", low, high);
    return random_fill("cek_tensor_uniform", CEK_RANDOM_UNIFORM, device, rank, shape, low, high, seed, stream, out);
}

cek_status cek_tensor_normal(cek_device *device, int rank, const int64_t *shape, double mean, double std, uint64_t seed,
                             uint32_t stream, cek_tensor **out)
{
    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(device);
    if (!(fabs(mean) <= FLT_MAX && std >= 0 && std <= FLT_MAX))
        return cek__fail(CEK_INVALID, "cek_tensor_normal: a mean of %g and a deviation of %g", mean, std);
    return random_fill("cek_tensor_normal", CEK_RANDOM_NORMAL, device, rank, shape, mean, std, seed, stream, out);
}
