/* parts.c - parts as callers add them: each a node of its own (see parts.h of the public headers). */
#include "cekernels/parts.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/options.h"
#include "core/base/status.h"
#include "nn/graph/cut.h"
#include "nn/layers/parts_inside.h"
#include "nn/layers/pooling.h"

static cek_status axis_check(const cek__layer *l, int axis)
{
    if (axis >= 0 && axis < l->in.rank)
        return CEK_OK;
    return cek__fail(CEK_INVALID, "axis %d, there are 0 to %d", axis, l->in.rank - 1);
}

/* ---- what a network reads ---- */

static cek_status parameter_add(cek__layer *l, const char *name, const cek_parameter_options *options, int *flow)
{
    cek_status st;
    cek_parameter_options o = { 0 };

    CEK_TRY(cek__options_take("cek_part_parameter", &o, sizeof o, options));
    if (o.rank < 1 || o.rank > 4 || !o.shape)
        CEK_FAIL(CEK_INVALID, "rank %d, it is 1 to 4", o.rank);
    if (!(o.fan_in >= 0))
        CEK_FAIL(CEK_INVALID, "a fan-in of %g", o.fan_in);
    CEK_TRY(cek__layer_parameter(l, name, o.rank, o.shape, o.fan_in, flow));
    l->model->parameters[l->model->parameter_count - 1].value = o.value;
out:
    return st;
}

int cek_part_parameter(cek_model *model, const char *name, const cek_parameter_options *options)
{
    cek_status st;
    cek__layer l;
    int y = CEK__NOTHING;

    CEK_TRY(begin(&l, model, "parameter", 0, NULL));
    if (!name || !options)
        CEK_FAIL(CEK_INVALID, "%s is NULL", name ? "options" : "name");
    if (*name)
        CEK_TRY(cek__name_check(name));
    st = parameter_add(&l, name, options, &y);
out:
    return end(model, &l, st, y);
}

int cek_part_constant(cek_model *model, double value)
{
    cek_status st;
    cek__layer l;
    int y = CEK__NOTHING;

    CEK_TRY(begin(&l, model, "constant", 0, NULL));
    cek__layer_note(&l, "%g", value);
    st = cek__constant(l.graph, value, &(cek__dims){ .rank = 1, .size = { 1 } }, &y);
out:
    return end(model, &l, st, y);
}

/* ---- element by element ---- */

int cek_part_chain(cek_model *model, int count, const int *nodes, int instructions,
                   const cek_pointwise_instruction *code)
{
    cek_status st;
    cek__layer l = { 0 };
    cek__part part = { .kind = CEK__PART_CHAIN };
    int y = CEK__NOTHING;

    if (count < 1 || count > CEK__PART_INPUTS || !nodes)
        CEK_FAIL(CEK_INVALID, "chain: %d nodes, it takes 1 to %d", count, CEK__PART_INPUTS);
    if (instructions < 1 || instructions > CEK_POINTWISE_INSTRUCTIONS || !code)
        CEK_FAIL(CEK_INVALID, "chain: %d instructions, it takes 1 to %d", instructions, CEK_POINTWISE_INSTRUCTIONS);
    CEK_TRY(begin(&l, model, "chain", count, nodes));
    part.inputs = count;
    memcpy(part.input, l.x, (size_t)count * sizeof *l.x);
    part.chain.count = (uint32_t)instructions;
    memcpy(part.chain.code, code, (size_t)instructions * sizeof *code);
    CEK_TRY(cek__graph_add(l.graph, &part, &y));
out:
    return end(model, &l, st, y);
}

int cek_part_apply(cek_model *model, uint32_t code, int a, int b)
{
    int takes = cek__code_reads(code);
    bool by_number = code == CEK_PW_CONST || code == CEK_PW_ADD_IMM || code == CEK_PW_MUL_IMM;

    if (takes != (b == -1 ? 1 : 2) || by_number) {
        cek__layer l = { .model = NULL };

        return end(model, &l,
                   cek__fail(CEK_INVALID, "apply: instruction %u of %d nodes%s", code, b == -1 ? 1 : 2,
                             by_number ? ", which takes a number" : ""),
                   CEK__NOTHING);
    }
    return cek_part_chain(model, b == -1 ? 1 : 2, (int[]){ a, b }, 1,
                          &(cek_pointwise_instruction){ .code = code, .b = b == -1 ? 0 : 1 });
}

int cek_part_scale(cek_model *model, int x, double scale, double offset)
{
    return cek_part_chain(model, 1, &x, 2,
                          (cek_pointwise_instruction[]){ { .code = CEK_PW_MUL_IMM, .imm = scale },
                                                         { .code = CEK_PW_ADD_IMM, .a = 1, .imm = offset } });
}

int cek_part_cast(cek_model *model, int x, cek_dtype type)
{
    cek_status st;
    cek__layer l;
    int y = CEK__NOTHING;

    CEK_TRY(begin(&l, model, "cast", 1, &x));
    if (type != CEK_F32 && type != CEK_I32 && type != CEK_DTYPE_NONE)
        CEK_FAIL(CEK_UNSUPPORTED, "to type %s", cek_dtype_name(type));
    CEK_TRY(cek__cast(l.graph, l.x[0], type, &y));
out:
    return end(model, &l, st, y);
}

/* ---- axes ---- */

int cek_part_reshape(cek_model *model, int x, int rank, const int64_t *shape)
{
    cek_status st;
    cek__layer l;
    cek__dims dims;
    int y = CEK__NOTHING;

    CEK_TRY(begin(&l, model, "reshape", 1, &x));
    if (rank < 1)
        CEK_FAIL(CEK_INVALID, "a shape of rank %d, it is 1 to %d", rank, CEK_RANK_MAX);
    CEK_TRY(dims_take(rank, shape, &dims));
    CEK_TRY(cek__view(l.graph, l.x[0], &dims, &y));
out:
    return end(model, &l, st, y);
}

int cek_part_permute(cek_model *model, int x, const int *order)
{
    cek_status st;
    cek__layer l;
    uint32_t seen = 0;
    int y = CEK__NOTHING;

    CEK_TRY(begin(&l, model, "permute", 1, &x));
    if (!order)
        CEK_FAIL(CEK_INVALID, "order is NULL");
    for (int i = 0; i < l.in.rank; i++) {
        CEK_TRY(axis_check(&l, order[i]));
        if (seen >> order[i] & 1)
            CEK_FAIL(CEK_INVALID, "axis %d twice", order[i]);
        seen |= 1u << order[i];
    }
    CEK_TRY(cek__permute(l.graph, l.x[0], order, &y));
out:
    return end(model, &l, st, y);
}

int cek_part_expand(cek_model *model, int x, int rank, const int64_t *shape)
{
    cek_status st;
    cek__layer l;
    cek__dims dims;
    int y = CEK__NOTHING;

    CEK_TRY(begin(&l, model, "expand", 1, &x));
    CEK_TRY(dims_take(rank, shape, &dims));
    CEK_TRY(cek__expand(l.graph, l.x[0], &dims, &y));
out:
    return end(model, &l, st, y);
}

int cek_part_slice(cek_model *model, int x, int axis, int64_t first, int64_t count)
{
    cek_status st;
    cek__layer l;
    int y = CEK__NOTHING;

    CEK_TRY(begin(&l, model, "slice", 1, &x));
    CEK_TRY(axis_check(&l, axis));
    if (l.in.samples >> axis & 1)
        CEK_FAIL(CEK_INVALID, "axis %d counts samples", axis);
    if (first < 0 || count < 1 || first > l.in.size[axis] - count)
        CEK_FAIL(CEK_INVALID, "%lld elements from %lld on of the %lld of axis %d", (long long)count, (long long)first,
                 (long long)l.in.size[axis], axis);
    CEK_TRY(cek__slice(l.graph, l.x[0], axis, first, count, &y));
out:
    return end(model, &l, st, y);
}

int cek_part_pad(cek_model *model, int x, const int64_t *lo, const int64_t *hi, double value)
{
    cek_status st;
    cek__layer l;
    int y = CEK__NOTHING;

    CEK_TRY(begin(&l, model, "pad", 1, &x));
    if (!lo || !hi)
        CEK_FAIL(CEK_INVALID, "%s is NULL", lo ? "hi" : "lo");
    for (int i = 0; i < l.in.rank; i++)
        if (llabs(lo[i]) > CEK__ELEMENTS_MAX || llabs(hi[i]) > CEK__ELEMENTS_MAX)
            CEK_FAIL(CEK_INVALID, "axis %d by %lld and %lld elements", i, (long long)lo[i], (long long)hi[i]);
    CEK_TRY(cek__pad(l.graph, l.x[0], lo, hi, value, &y));
out:
    return end(model, &l, st, y);
}

static int concat_some(cek_model *model, int count, const int *nodes, int axis)
{
    cek_status st;
    cek__layer l;
    int y = CEK__NOTHING;

    CEK_TRY(begin(&l, model, "concat", count, nodes));
    CEK_TRY(axis_check(&l, axis));
    CEK_TRY(cek__concat(l.graph, l.x, count, axis, &y));
out:
    return end(model, &l, st, y);
}

/* More than one part takes: what came of the first ones, with the next. */
int cek_part_concat(cek_model *model, int count, const int *nodes, int axis)
{
    int some[CEK__PART_INPUTS], at = 0, taken = 0;
    char *name = NULL; /* the last one's, which is returned */

    if (count < 1 || !nodes) {
        cek__layer l = { .model = NULL };

        return end(model, &l, cek__fail(CEK_INVALID, "concat: %d nodes", count), CEK__NOTHING);
    }
    if (model && count > CEK__PART_INPUTS) {
        name = model->next_name;
        model->next_name = NULL;
    }
    while (at < count) {
        while (taken < CEK__PART_INPUTS && at < count)
            some[taken++] = nodes[at++];
        if (name && at == count) {
            model->next_name = name;
            name = NULL;
        }
        some[0] = concat_some(model, taken, some, axis);
        taken = 1;
    }
    return some[0];
}

int cek_part_reduce(cek_model *model, int x, uint32_t function, uint32_t axes, bool keep)
{
    cek_status st;
    cek__layer l;
    int y = CEK__NOTHING;

    CEK_TRY(begin(&l, model, "reduce", 1, &x));
    if (function < CEK_REDUCE_SUM || function > CEK_REDUCE_SUM_SQUARES)
        CEK_FAIL(CEK_INVALID, "unknown function %u", function);
    if (axes == 0 || axes >> l.in.rank != 0)
        CEK_FAIL(CEK_INVALID, "axes 0x%x of %d", axes, l.in.rank);
    CEK_TRY(cek__reduce(l.graph, l.x[0], function, axes, &y));
    if (keep)
        CEK_TRY(cek__keep(l.graph, y, l.x[0], axes, &y));
out:
    return end(model, &l, st, y);
}

/* ---- products and windows ---- */

int cek_part_matmul(cek_model *model, int a, int b, bool transposed)
{
    cek_status st;
    cek__layer l;
    cek__part part = { .kind = CEK__PART_PRODUCT, .inputs = 2 };
    int rank[2], batch, y = CEK__NOTHING;

    CEK_TRY(begin(&l, model, "matmul", 2, (int[]){ a, b }));
    rank[0] = l.in.rank;
    rank[1] = cek__node_dims(model, b)->rank;
    if (rank[0] < 2 || rank[1] < 2 || (rank[1] > 2 && rank[1] != rank[0]))
        CEK_FAIL(CEK_INVALID, "matrices of %d and %d axes", rank[0], rank[1]);
    batch = rank[1] > 2 ? rank[1] - 2 : 0;
    memcpy(part.input, l.x, 2 * sizeof *l.x);
    part.product.a = (cek__matrix){ .batch = batch, .split = rank[0] - 1 };
    part.product.b = (cek__matrix){ .batch = batch, .split = rank[1] - 1, .transposed = transposed };
    CEK_TRY(cek__graph_add(l.graph, &part, &y));
out:
    return end(model, &l, st, y);
}

/* Of as many axes as the input has behind N,C. `pool`: strides are those of its kernel where they are 0. */
static cek_status windows_take(const cek__layer *l, const char *call, const cek_windows *given, bool pool,
                               cek__windows *out, int64_t *groups)
{
    cek_status st = CEK_OK;
    cek_windows w = { 0 };
    int axes = l->in.rank - 2;

    *out = (cek__windows){ 0 };
    if (axes < 1 || axes > 3)
        CEK_FAIL(CEK_INVALID, "windows over %d axes: [N,C,..] has 1 to 3 behind its channels", axes);
    if (given)
        CEK_TRY(cek__options_take(call, &w, sizeof w, given));
    *groups = w.groups ? w.groups : 1;
    for (int i = 0; i < axes; i++) {
        if (pool && w.kernel[i] == 0)
            CEK_FAIL(CEK_INVALID, "a kernel of 0 on axis %d", i + 2);
        out->kernel[i] = w.kernel[i];
        out->stride[i] = w.stride[i] ? w.stride[i] : pool ? w.kernel[i] : 1;
        out->dilation[i] = w.dilation[i] ? w.dilation[i] : 1;
        out->pad_lo[i] = w.pad_lo[i];
        out->pad_hi[i] = w.pad_hi[i];
    }
out:
    return st;
}

int cek_part_conv(cek_model *model, int x, int w, const cek_windows *windows)
{
    cek_status st;
    cek__layer l;
    cek__part part = { .kind = CEK__PART_CONV, .inputs = 2 };
    int y = CEK__NOTHING;

    CEK_TRY(begin(&l, model, "conv", 2, (int[]){ x, w }));
    CEK_TRY(windows_take(&l, "cek_part_conv", windows, false, &part.conv.windows, &part.conv.groups));
    memcpy(part.input, l.x, 2 * sizeof *l.x);
    CEK_TRY(cek__graph_add(l.graph, &part, &y));
out:
    return end(model, &l, st, y);
}

int cek_part_pool(cek_model *model, int x, uint32_t mode, bool valid, const cek_windows *windows)
{
    cek_status st;
    cek__layer l;
    cek__pooling pooling = { .mode = mode, .count_pad = !valid };
    int64_t groups;
    int y = CEK__NOTHING;

    CEK_TRY(begin(&l, model, "pool", 1, &x));
    if (mode != CEK_POOL_MAX && mode != CEK_POOL_AVERAGE)
        CEK_FAIL(CEK_INVALID, "mode %u is neither maximum nor average", mode);
    if (!windows)
        CEK_FAIL(CEK_INVALID, "windows is NULL");
    CEK_TRY(windows_take(&l, "cek_part_pool", windows, true, &pooling.windows, &groups));
    CEK_TRY(cek__pool(l.graph, l.x[0], &pooling, &y));
out:
    return end(model, &l, st, y);
}

/* ---- training ---- */

int cek_part_dropout(cek_model *model, int x, double p)
{
    cek__layer l = { .model = NULL };
    int node;
    cek_status st = x == -1 && model && model->failed != CEK_OK ? cek_model_status(model)
                                                                : cek_model_dropout(model, x, p, &node);

    return st == CEK_OK ? node : end(model, &l, st, CEK__NOTHING);
}

int cek_part_phase(cek_model *model, int training, int evaluation)
{
    cek_status st;
    cek__layer l;
    cek__part part = { .kind = CEK__PART_PHASE, .inputs = 2 };
    int y = CEK__NOTHING;

    CEK_TRY(begin(&l, model, "phase", 2, (int[]){ training, evaluation }));
    memcpy(part.input, l.x, 2 * sizeof *l.x);
    CEK_TRY(cek__graph_add(l.graph, &part, &y));
out:
    return end(model, &l, st, y);
}

int cek_part_loss(cek_model *model, int v, int w)
{
    cek_status st;
    cek__layer l;
    int gradient, y = CEK__NOTHING;

    CEK_TRY(begin(&l, model, "loss", w == -1 ? 1 : 2, (int[]){ v, w }));
    if (model->loss)
        CEK_FAIL(CEK_INVALID, "the model has a loss already");
    CEK_TRY(cek__loss(l.graph, l.x[0], w == -1 ? CEK__NOTHING : l.x[1], &gradient));
    y = l.x[0];
    model->loss = l.graph->flows[gradient].part;
out:
    return end(model, &l, st, y);
}
