/* sums.c - products, reductions, softmax and norms (see operators.h). */
#include <math.h>

#include "nn/layers/batch_norm.h"
#include "nn/layers/norms.h"
#include "nn/onnx/operators.h"

typedef cek_pointwise_instruction instruction;

/* ---- products ---- */

/* A vector counts as a matrix of one row on the left, of one column on the right; that axis is not there in
 * what is given. */
static cek_status as_matrix(cek__onnx_call *c, int x, bool left, int *out)
{
    cek__dims dims = *cek__call_dims(c, x);

    *out = x;
    if (dims.rank != 1)
        return CEK_OK;
    dims.rank = 2;
    dims.size[1] = left ? dims.size[0] : 1;
    dims.size[0] = left ? 1 : dims.size[0];
    dims.samples = left ? dims.samples << 1 : dims.samples;
    return cek__view(c->graph, x, &dims, out);
}

static cek_status axis_drop(cek__onnx_call *c, int axis)
{
    cek__dims dims = *cek__call_dims(c, c->out[0]), y = { .outside = dims.outside };

    for (int i = 0; i < dims.rank; i++) {
        if (i == axis)
            continue;
        y.samples |= (dims.samples >> i & 1) << y.rank;
        y.size[y.rank++] = dims.size[i];
    }
    if (y.rank == 0)
        y = (cek__dims){ .rank = 1, .size = { 1 } };
    return cek__view(c->graph, c->out[0], &y, &c->out[0]);
}

cek_status cek__onnx_matmul(cek__onnx_call *c)
{
    cek_status st;
    int a, b, rank[2];

    CEK_TRY(cek__call_weight(c, 0, &a));
    CEK_TRY(cek__call_weight(c, 1, &b));
    rank[0] = cek__call_dims(c, a)->rank;
    rank[1] = cek__call_dims(c, b)->rank;
    c->scalar = rank[0] == 1 && rank[1] == 1;
    CEK_TRY(as_matrix(c, a, true, &a));
    CEK_TRY(as_matrix(c, b, false, &b));
    CEK_TRY(cek__matmul(c->graph, a, b, &c->out[0]));
    if (rank[1] == 1)
        CEK_TRY(axis_drop(c, cek__call_dims(c, c->out[0])->rank - 1));
    if (rank[0] == 1)
        CEK_TRY(axis_drop(c, cek__call_dims(c, c->out[0])->rank - (rank[1] == 1 ? 1 : 2)));
out:
    return st;
}

/* alpha op(A) op(B) + beta C */
cek_status cek__onnx_gemm(cek__onnx_call *c)
{
    cek_status st;
    const double alpha = cek__call_float(c, "alpha", 1), beta = cek__call_float(c, "beta", 1);
    cek__part part = { .kind = CEK__PART_PRODUCT, .inputs = 2 };
    int bias;

    CEK_TRY(cek__call_flow(c, 0, &part.input[0]));
    CEK_TRY(cek__call_weight(c, 1, &part.input[1]));
    if (cek__call_dims(c, part.input[0])->rank != 2 || cek__call_dims(c, part.input[1])->rank != 2)
        CEK_FAIL(CEK_BAD_INPUT, "of what are no matrices");
    part.product.a = (cek__matrix){ .split = 1, .transposed = cek__call_int(c, "transA", 0) != 0 };
    part.product.b = (cek__matrix){ .split = 1, .transposed = cek__call_int(c, "transB", 0) != 0 };
    CEK_TRY(cek__graph_add(c->graph, &part, &c->out[0]));
    if (alpha != 1)
        CEK_TRY(cek__call_chain(c, 1, (int[]){ c->out[0] }, 1, &(instruction){ .code = CEK_PW_MUL_IMM, .imm = alpha }));
    if (!cek__call_has(c, 2) || beta == 0)
        return CEK_OK;
    CEK_TRY(cek__call_weight(c, 2, &bias));
    if (beta != 1) {
        const instruction code[] = { { .code = CEK_PW_MUL_IMM, .a = 1, .imm = beta },
                                     { .code = CEK_PW_ADD, .a = 0, .b = 2 } };

        return cek__call_chain(c, 2, (int[]){ c->out[0], bias }, 2, code);
    }
    st = cek__chain(c->graph, CEK_PW_ADD, c->out[0], bias, &c->out[0]);
out:
    return st;
}

/* ---- reductions ---- */

/* By the second input, or (before opset 18, of sums before 13) by an attribute. *axes 0: nothing is done. */
static cek_status axes_take(cek__onnx_call *c, int rank, uint32_t *axes)
{
    cek_status st;
    int64_t list[CEK__CALL_LIST];
    int count = -1;

    CEK_TRY(cek__call_ints(c, "axes", list, &count));
    if (cek__call_has(c, 1))
        CEK_TRY(cek__call_integers(c, 1, list, &count));
    if (count > 0)
        return cek__call_axes(list, count, rank, axes);
    *axes = cek__call_int(c, "noop_with_empty_axes", 0) != 0 ? 0 : (1u << rank) - 1;
out:
    return st;
}

/* What stands before a sum, and behind it. */
static const struct {
    uint32_t before, function, behind;
} sums[] = {
    [CEK__SUM] = { 0, CEK_REDUCE_SUM, 0 },
    [CEK__SUM_MEAN] = { 0, CEK_REDUCE_MEAN, 0 },
    [CEK__SUM_MAX] = { 0, CEK_REDUCE_MAX, 0 },
    [CEK__SUM_MIN] = { 0, CEK_REDUCE_MIN, 0 },
    [CEK__SUM_SQUARES] = { 0, CEK_REDUCE_SUM_SQUARES, 0 },
    [CEK__SUM_L1] = { CEK_PW_ABS, CEK_REDUCE_SUM, 0 },
    [CEK__SUM_L2] = { 0, CEK_REDUCE_SUM_SQUARES, CEK_PW_SQRT },
    [CEK__SUM_LOG] = { 0, CEK_REDUCE_SUM, CEK_PW_LOG },
    [CEK__SUM_LOG_EXP] = { CEK_PW_EXP, CEK_REDUCE_SUM, CEK_PW_LOG },
};

/* ln of the sum of exp(x - m), plus m: nothing overflows, since that is the largest, or 0 where that is not finite. */
static cek_status log_sum_exp(cek__onnx_call *c, int x, uint32_t axes)
{
    static const instruction finite[] = { { .code = CEK_PW_ABS },
                                          { .code = CEK_PW_CONST, .imm = INFINITY },
                                          { .code = CEK_PW_LESS, .a = 1, .b = 2 },
                                          { .code = CEK_PW_CONST },
                                          { .code = CEK_PW_SELECT, .a = 3, .b = 0, .c = 4 } };
    cek_status st;
    int most, kept;

    CEK_TRY(cek__reduce(c->graph, x, CEK_REDUCE_MAX, axes, &most));
    CEK_TRY(cek__call_chain(c, 1, &most, 5, finite));
    most = c->out[0];
    CEK_TRY(cek__keep(c->graph, most, x, axes, &kept));
    CEK_TRY(cek__chain(c->graph, CEK_PW_SUB, x, kept, &x));
    CEK_TRY(cek__chain(c->graph, CEK_PW_EXP, x, CEK__NOTHING, &x));
    CEK_TRY(cek__sum(c->graph, x, axes, &x));
    CEK_TRY(cek__chain(c->graph, CEK_PW_LOG, x, CEK__NOTHING, &x));
    st = cek__chain(c->graph, CEK_PW_ADD, x, most, &c->out[0]);
out:
    return st;
}

cek_status cek__onnx_reduce(cek__onnx_call *c)
{
    cek_status st;
    const bool keeps = cek__call_int(c, "keepdims", 1) != 0;
    uint32_t axes;
    int x, y, rank;

    CEK_TRY(cek__call_flow(c, 0, &x));
    rank = cek__call_dims(c, x)->rank;
    CEK_TRY(axes_take(c, rank, &axes));
    c->scalar = cek__call_scalar(c, 0) || (axes == (1u << rank) - 1 && !keeps);
    y = x;
    if (!axes && sums[c->argument].behind && c->graph->flows[x].type == CEK_I32)
        CEK_FAIL(CEK_UNSUPPORTED, "of integers: cast them before");
    if (sums[c->argument].before && (c->argument != CEK__SUM_LOG_EXP || !axes))
        CEK_TRY(cek__chain(c->graph, sums[c->argument].before, y, CEK__NOTHING, &y));
    if (axes && c->argument == CEK__SUM_LOG_EXP) {
        CEK_TRY(log_sum_exp(c, x, axes));
        y = c->out[0];
    } else {
        if (axes)
            CEK_TRY(cek__reduce(c->graph, y, sums[c->argument].function, axes, &y));
        else if (sums[c->argument].function == CEK_REDUCE_SUM_SQUARES)
            CEK_TRY(cek__chain(c->graph, CEK_PW_MUL, y, y, &y));
        if (sums[c->argument].behind)
            CEK_TRY(cek__chain(c->graph, sums[c->argument].behind, y, CEK__NOTHING, &y));
    }
    if (axes && keeps)
        CEK_TRY(cek__keep(c->graph, y, x, axes, &y));
    c->out[0] = y;
out:
    return st;
}

/* Where along an axis the first of the largest or smallest elements lies. */
cek_status cek__onnx_arg(cek__onnx_call *c)
{
    cek_status st;
    const bool keeps = cek__call_int(c, "keepdims", 1) != 0;
    int x, axis;

    CEK_TRY(cek__call_flow(c, 0, &x));
    CEK_TRY(cek__call_axis(cek__call_int(c, "axis", 0), cek__call_dims(c, x)->rank, &axis));
    if (cek__call_int(c, "select_last_index", 0) != 0)
        CEK_FAIL(CEK_UNSUPPORTED, "the last of several that are equal");
    CEK_TRY(cek__arg(c->graph, x, c->argument, axis, &c->out[0]));
    c->scalar = cek__call_scalar(c, 0) || (cek__call_dims(c, x)->rank == 1 && !keeps);
    if (keeps)
        st = cek__keep(c->graph, c->out[0], x, 1u << axis, &c->out[0]);
out:
    return st;
}

cek_status cek__onnx_softmax(cek__onnx_call *c)
{
    cek_status st;
    int x, axis;

    CEK_TRY(cek__call_flow(c, 0, &x));
    CEK_TRY(cek__call_axis(cek__call_int(c, "axis", -1), cek__call_dims(c, x)->rank, &axis));
    st = c->argument ? cek__log_softmax(c->graph, x, axis, &c->out[0]) : cek__softmax(c->graph, x, axis, &c->out[0]);
out:
    return st;
}

/* ---- norms ---- */

/* The weights of a norm, inputs 1 and 2, the second of which may be left out. */
static cek_status weights_take(cek__onnx_call *c, int *x, int *gamma, int *beta)
{
    cek_status st;

    *gamma = *beta = CEK__NOTHING;
    CEK_TRY(cek__call_flow(c, 0, x));
    CEK_TRY(cek__call_weight(c, 1, gamma));
    if (cek__call_has(c, 2))
        CEK_TRY(cek__call_weight(c, 2, beta));
out:
    return st;
}

cek_status cek__onnx_batch_norm(cek__onnx_call *c)
{
    cek_status st;
    cek__batch_norm n = { .epsilon = cek__call_float(c, "epsilon", 1e-5),
                          .momentum = 1 - cek__call_float(c, "momentum", 0.9) };

    CEK_TRY(weights_take(c, &c->layer.x[0], &n.affine[0], &n.affine[1]));
    if (!cek__call_has(c, 2))
        CEK_FAIL(CEK_BAD_INPUT, "its third input, the bias, is missing");
    CEK_TRY(cek__call_buffer(c, 3, "running_mean", &n.running[0]));
    CEK_TRY(cek__call_buffer(c, 4, "running_var", &n.running[1]));
    c->layer.in = *cek__call_dims(c, c->layer.x[0]);
    if (c->layer.in.rank < 2 || c->layer.in.samples > 1)
        CEK_FAIL(CEK_UNSUPPORTED, "takes samples, channels and what is behind them");
    if (cek__call_int(c, "training_mode", 0) != 0)
        CEK_FAIL(CEK_UNSUPPORTED, "by the statistics of its batch: a network is written in evaluation mode");
    if (!(n.momentum >= 0 && n.momentum <= 1))
        CEK_FAIL(CEK_UNSUPPORTED, "a momentum of %g", 1 - n.momentum);
    st = cek__batch_norm_parts(&c->layer, &n, &c->out[0]);
out:
    return st;
}

/* Over some axes, which stay: the mean, x without it, and the mean of the squares of that. */
static cek_status moments(cek__onnx_call *c, int x, uint32_t axes, int *mean, int *centred, int *variance)
{
    cek_status st;

    CEK_TRY(cek__reduce(c->graph, x, CEK_REDUCE_MEAN, axes, mean));
    CEK_TRY(cek__keep(c->graph, *mean, x, axes, mean));
    CEK_TRY(cek__chain(c->graph, CEK_PW_SUB, x, *mean, centred));
    CEK_TRY(cek__chain(c->graph, CEK_PW_MUL, *centred, *centred, variance));
    CEK_TRY(cek__reduce(c->graph, *variance, CEK_REDUCE_MEAN, axes, variance));
    st = cek__keep(c->graph, *variance, x, axes, variance);
out:
    return st;
}

/* The mean over some axes, and 1 by the deviation. */
static cek_status statistics(cek__onnx_call *c, int x, uint32_t axes, double epsilon)
{
    const instruction code[] = { { .code = CEK_PW_ADD_IMM, .imm = epsilon },
                                 { .code = CEK_PW_SQRT, .a = 1 },
                                 { .code = CEK_PW_CONST, .imm = 1 },
                                 { .code = CEK_PW_DIV, .a = 3, .b = 2 } };
    const int whole = c->out[0];
    cek_status st;
    int mean, centred, variance;

    CEK_TRY(moments(c, x, axes, &mean, &centred, &variance));
    CEK_TRY(cek__call_chain(c, 1, &variance, 4, code));
    c->out[2] = c->out[0];
    c->out[1] = mean;
    c->out[0] = whole;
out:
    return st;
}

/* Over the axes from one on; RMSNormalization leaves the mean where it is. */
cek_status cek__onnx_layer_norm(cek__onnx_call *c)
{
    cek_status st;
    const double epsilon = cek__call_float(c, "epsilon", 1e-5);
    int x, gamma, beta, axis, rank;
    uint32_t axes;

    CEK_TRY(weights_take(c, &x, &gamma, &beta));
    rank = cek__call_dims(c, x)->rank;
    CEK_TRY(cek__call_axis(cek__call_int(c, "axis", -1), rank, &axis));
    axes = ((1u << rank) - 1) & ~((1u << axis) - 1);
    if (c->argument)
        return cek__rms_norm(c->graph, x, axes, epsilon, gamma, &c->out[0]);
    CEK_TRY(cek__layer_norm(c->graph, x, axes, epsilon, gamma, beta, &c->out[0]));
    if (c->node->outputs > 1)
        st = statistics(c, x, axes, epsilon);
out:
    return st;
}

cek_status cek__onnx_instance_norm(cek__onnx_call *c)
{
    cek_status st;
    int x, gamma, beta;

    CEK_TRY(weights_take(c, &x, &gamma, &beta));
    st = cek__instance_norm(c->graph, x, cek__call_float(c, "epsilon", 1e-5), gamma, beta, &c->out[0]);
out:
    return st;
}

/* Weights for each channel, since opset 21. */
cek_status cek__onnx_group_norm(cek__onnx_call *c)
{
    cek_status st;
    int x, gamma, beta;

    CEK_TRY(weights_take(c, &x, &gamma, &beta));
    if (cek__call_dims(c, x)->rank < 2 || cek__call_dims(c, gamma)->size[0] != cek__call_dims(c, x)->size[1])
        CEK_FAIL(CEK_UNSUPPORTED, "weights that are not for each channel");
    st = cek__group_norm(c->graph, x, cek__call_int(c, "num_groups", 0), cek__call_float(c, "epsilon", 1e-5), gamma,
                         beta, &c->out[0]);
out:
    return st;
}

/* x by its norm along an axis: the sum of magnitudes, or the root of that of squares. Zeros stay what they are. */
cek_status cek__onnx_lp_norm(cek__onnx_call *c)
{
    const instruction code[] = { { .code = CEK_PW_CONST },
                                 { .code = CEK_PW_EQUAL, .a = 1, .b = 2 },
                                 { .code = CEK_PW_ADD, .a = 1, .b = 3 },
                                 { .code = CEK_PW_DIV, .a = 0, .b = 4 } };
    const int64_t p = cek__call_int(c, "p", 2);
    cek_status st;
    int x, axis, norm;

    CEK_TRY(cek__call_flow(c, 0, &x));
    CEK_TRY(cek__call_axis(cek__call_int(c, "axis", -1), cek__call_dims(c, x)->rank, &axis));
    if (p != 1 && p != 2)
        CEK_FAIL(CEK_UNSUPPORTED, "the norm %lld, there are 1 and 2", (long long)p);
    norm = x;
    if (p == 1)
        CEK_TRY(cek__chain(c->graph, CEK_PW_ABS, x, CEK__NOTHING, &norm));
    CEK_TRY(cek__reduce(c->graph, norm, p == 1 ? CEK_REDUCE_SUM : CEK_REDUCE_SUM_SQUARES, 1u << axis, &norm));
    if (p == 2)
        CEK_TRY(cek__chain(c->graph, CEK_PW_SQRT, norm, CEK__NOTHING, &norm));
    CEK_TRY(cek__keep(c->graph, norm, x, 1u << axis, &norm));
    st = cek__call_chain(c, 2, (int[]){ x, norm }, 4, code);
out:
    return st;
}

/* (x - mean) / (deviation + 1e-9) over the axes. */
cek_status cek__onnx_mean_variance(cek__onnx_call *c)
{
    const instruction code[] = { { .code = CEK_PW_SQRT, .a = 1 },
                                 { .code = CEK_PW_ADD_IMM, .a = 2, .imm = 1e-9 },
                                 { .code = CEK_PW_DIV, .a = 0, .b = 3 } };
    cek_status st;
    int64_t list[CEK__CALL_LIST] = { 0, 2, 3 };
    int count, x, mean, variance;
    uint32_t axes;

    CEK_TRY(cek__call_flow(c, 0, &x));
    CEK_TRY(cek__call_ints(c, "axes", list, &count));
    CEK_TRY(cek__call_axes(list, count < 0 ? 3 : count, cek__call_dims(c, x)->rank, &axes));
    CEK_TRY(moments(c, x, axes, &mean, &x, &variance));
    st = cek__call_chain(c, 2, (int[]){ x, variance }, 3, code);
out:
    return st;
}
