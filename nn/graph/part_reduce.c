/* part_reduce.c - sums, means, extremes over some axes, which fall away; of products with other elements, and of
 * distances from a centre, which have no gradient. */
#include "nn/graph/chain.h"
#include "nn/graph/parts.h"
#include "nn/graph/physical.h"
#include "nn/graph/strides.h"

static cek_status reduce_infer(const cek__graph *graph, const cek__part *part, cek__flow out[CEK__PART_OUTPUTS])
{
    const cek__dims *x = &graph->flows[part->input[0]].dims;

    if (!graph->backward && !part->reduce.masked && part->reduce.axes & x->samples)
        return cek__fail(CEK_INVALID, "would mix samples, padding among them");
    if (part->reduce.function == CEK_REDUCE_MEAN && part->reduce.axes & x->samples &&
        !(part->reduce.masked && cek__reduce_leaves_out(x)))
        return cek__fail(CEK_INVALID, "a mean of samples is of those that count");
    if (part->reduce.axes >> x->rank)
        return cek__fail(CEK_INVALID, "axes that are not there");
    cek__dims_without(x, part->reduce.axes, &out[0].dims);
    out[0].type = graph->flows[part->input[0]].type == CEK_F32 ? CEK_F32 : CEK_DTYPE_NONE; /* sums have that type */
    if (part->reduce.second && !cek__dims_equal(&graph->flows[part->input[1]].dims, x))
        return cek__fail(CEK_INVALID, "is multiplied by another shape");
    if (part->reduce.centre && !cek__dims_equal(&graph->flows[part->input[part->inputs - 1]].dims, &out[0].dims))
        return cek__fail(CEK_INVALID, "has another centre than results");
    return CEK_OK;
}

bool cek__reduce_leaves_out(const cek__dims *x)
{
    return x->samples == 1 && !x->outside;
}

cek_status cek__reduce(cek__graph *graph, int x, uint32_t function, uint32_t axes, int *out)
{
    cek__part part = {
        .kind = CEK__PART_REDUCE, .inputs = 1, .input = { x }, .reduce = { .function = function, .axes = axes }
    };

    return cek__graph_add(graph, &part, out);
}

cek_status cek__sum(cek__graph *graph, int x, uint32_t axes, int *out)
{
    return cek__reduce(graph, x, CEK_REDUCE_SUM, axes, out);
}

cek_status cek__keep(cek__graph *graph, int reduced, int x, uint32_t axes, int *out)
{
    cek__dims dims = graph->flows[x].dims;

    for (int i = 0; i < dims.rank; i++)
        if (axes >> i & 1) {
            dims.size[i] = 1;
            dims.samples &= ~(1u << i);
        }
    return cek__view(graph, reduced, &dims, out);
}

/* ---- gradient ---- */

/* In equal parts to those that are the extreme: dy / their number, and 0 to the others. `dy` and y have
 * ones for axes. */
static cek_status extreme_gradient(cek__graph *graph, const cek__part *p, int dy, int *dx)
{
    cek_status st;
    int x = p->input[0], y, mask, number;
    cek__part share = { .kind = CEK__PART_CHAIN,
                        .inputs = 3,
                        .chain = { 3,
                                   { { .code = CEK_PW_DIV, .a = 1, .b = 2 },
                                     { .code = CEK_PW_CONST },
                                     { .code = CEK_PW_SELECT, .a = 0, .b = 3, .c = 4 } } } };

    CEK_TRY(cek__keep(graph, p->output[0], x, p->reduce.axes, &y));
    CEK_TRY(cek__chain(graph, CEK_PW_EQUAL, x, y, &mask));
    CEK_TRY(cek__sum(graph, mask, p->reduce.axes, &number));
    CEK_TRY(cek__keep(graph, number, x, p->reduce.axes, &number));
    share.input[0] = mask;
    share.input[1] = dy;
    share.input[2] = number;
    return cek__graph_add(graph, &share, dx);
out:
    return st;
}

static cek_status reduce_gradient(cek__backward *to, int part, int dy)
{
    cek_status st;
    cek__graph *graph = to->graph;
    const cek__part p = graph->parts[part];
    const cek__dims dims = graph->flows[p.input[0]].dims;
    cek__part spread = { .kind = CEK__PART_CHAIN, .inputs = 1, .dims = dims, .chain = { .count = 1 } };
    double count = 1;
    int dx, number;

    if (p.reduce.second || p.reduce.centre)
        CEK_FAIL(CEK_UNSUPPORTED, "a reduction of terms has no gradient");
    if (p.reduce.function == CEK_REDUCE_MEAN && p.reduce.axes & dims.samples) {
        CEK_TRY(cek__count(graph, p.input[0], p.reduce.axes, &number));
        CEK_TRY(cek__chain(graph, CEK_PW_DIV, dy, number, &dy));
    } else {
        for (int i = 0; i < dims.rank; i++)
            count *= p.reduce.axes >> i & 1 ? (double)dims.size[i] : 1;
    }
    CEK_TRY(cek__keep(graph, dy, p.input[0], p.reduce.axes, &dy));
    spread.input[0] = dy;
    switch (p.reduce.function) {
    case CEK_REDUCE_SUM: spread.chain.code[0] = (cek_pointwise_instruction){ .code = CEK_PW_COPY }; break;
    case CEK_REDUCE_MEAN:
        spread.chain.code[0] = (cek_pointwise_instruction){ .code = CEK_PW_MUL_IMM, .imm = 1 / count };
        break;
    case CEK_REDUCE_SUM_SQUARES:
        spread.inputs = 2;
        spread.input[1] = p.input[0];
        spread.chain.count = 2;
        spread.chain.code[0] = (cek_pointwise_instruction){ .code = CEK_PW_MUL, .a = 0, .b = 1 };
        spread.chain.code[1] = (cek_pointwise_instruction){ .code = CEK_PW_MUL_IMM, .a = 2, .imm = 2 };
        break;
    case CEK_REDUCE_MAX:
    case CEK_REDUCE_MIN: CEK_TRY(extreme_gradient(graph, &p, dy, &dx)); return cek__contribute(to, p.input[0], dx);
    default: CEK_FAIL(CEK_UNSUPPORTED, "reduction %u has no gradient", p.reduce.function);
    }
    if (p.reduce.masked && cek__reduce_leaves_out(&dims))
        cek__chain_leave_out(&spread);
    CEK_TRY(cek__graph_add(graph, &spread, &dx));
    return cek__contribute(to, p.input[0], dx);
out:
    return st;
}

static cek_status reduce_lower(cek__lowering *l, int part)
{
    cek_status st;
    const cek__part *p = &l->graph->parts[part];
    const cek__dims *x = &l->graph->flows[p->input[0]].dims;
    cek__destination to = { 0 };
    int operands[CEK__SLOTS] = { [CEK_REDUCE_X] = cek__lower_read(l, p->input[0]) };
    cek_reduce_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_REDUCE },
        .function = p->reduce.function,
        .axes = p->reduce.axes,
        .rank = (uint32_t)x->rank,
        .x_type = cek__lower_type(l, p->input[0]),
    };

    cek__lower_shape(l, x, desc.shape);
    cek__strides(l->graph, p->input[0], l->rows, desc.x_strides);
    if (p->reduce.second) {
        cek__strides(l->graph, p->input[1], l->rows, desc.x2_strides);
        operands[CEK_REDUCE_X2] = cek__lower_read(l, p->input[1]);
    }
    if (p->reduce.centre)
        operands[CEK_REDUCE_CENTRE] = cek__lower_read(l, p->input[p->inputs - 1]);
    if (p->reduce.masked && cek__reduce_leaves_out(x)) {
        desc.rows_per_sample = (uint64_t)x->size[0];
        operands[CEK_REDUCE_BATCH] = l->batch;
    }
    CEK_TRY(cek__lower_write(l, p->output[0], CEK_REDUCE_Y, &to));
    operands[CEK_REDUCE_Y] = to.value;
    return cek__lower_emit(l, part, &desc.op, operands, &to);
out:
    return st;
}

static cek_status reduce_place(cek__graph *graph, int part)
{
    cek_status st;
    const cek__part p = graph->parts[part];

    CEK_TRY(cek__want_strides(graph, part, 0));
    if (p.reduce.second)
        CEK_TRY(cek__want_strides(graph, part, 1));
    if (p.reduce.centre)
        CEK_TRY(cek__want(graph, part, p.inputs - 1, (cek__image){ 0, 0 }));
out:
    return st;
}

const cek__part_class cek__part_reduce = { .name = "reduce",
                                           .outputs = 1,
                                           .infer = reduce_infer,
                                           .gradient = reduce_gradient,
                                           .place = reduce_place,
                                           .types = CEK__TYPES_ANY,
                                           .lower = reduce_lower,
                                           .adds = true,
                                           .floats = true };
