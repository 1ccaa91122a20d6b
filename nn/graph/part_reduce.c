/* part_reduce.c - the sum over some axes, which fall away. */
#include "nn/graph/parts.h"
#include "nn/graph/physical.h"
#include "nn/graph/strides.h"

static cek_status reduce_infer(const cek__graph *graph, const cek__part *part, cek__flow out[CEK__PART_OUTPUTS])
{
    const cek__dims *x = &graph->flows[part->input[0]].dims;
    cek__dims *y = &out[0].dims;

    if (!graph->backward && part->reduce.axes & x->samples)
        return cek__fail(CEK_INVALID, "would sum over samples");
    for (int i = 0; i < x->rank; i++) {
        if (part->reduce.axes >> i & 1)
            continue;
        y->samples |= (x->samples >> i & 1) << y->rank;
        y->size[y->rank++] = x->size[i];
    }
    if (y->rank == 0)
        y->size[y->rank++] = 1;
    return CEK_OK;
}

cek_status cek__sum(cek__graph *graph, int x, uint32_t axes, int *out)
{
    cek__part part = {
        .kind = CEK__PART_REDUCE, .inputs = 1, .input = { x }, .reduce = { .function = CEK_REDUCE_SUM, .axes = axes }
    };

    return cek__graph_add(graph, &part, out);
}

/* To all that were summed the same. */
static cek_status reduce_gradient(cek__backward *to, int part, int dy)
{
    cek_status st;
    cek__graph *graph = to->graph;
    const cek__part p = graph->parts[part];
    cek__dims dims = graph->flows[p.input[0]].dims;
    cek__part copy = { .kind = CEK__PART_CHAIN, .inputs = 1, .dims = dims, .chain = { .count = 1 } };
    int dx;

    for (int i = 0; i < dims.rank; i++)
        if (p.reduce.axes >> i & 1) {
            dims.size[i] = 1;
            dims.samples &= ~(1u << i);
        }
    CEK_TRY(cek__view(graph, dy, &dims, &copy.input[0]));
    copy.chain.code[0] = (cek_pointwise_instruction){ .code = CEK_PW_COPY };
    CEK_TRY(cek__graph_add(graph, &copy, &dx));
    return cek__contribute(to, p.input[0], dx);
out:
    return st;
}

/* Any order of the axes is read by its strides; what remains lies in the order of its axes. */
static cek_status reduce_place(cek__graph *graph, int part)
{
    const cek__flow *x = &graph->flows[graph->parts[part].input[0]];
    int order[CEK_RANK_MAX];

    if (!x->open && cek__axes_order(&x->dims, x->image, order))
        return CEK_OK;
    return cek__want(graph, part, 0, (cek__image){ 0, 0 });
}

static cek_status reduce_lower(cek__lowering *l, int part)
{
    cek_status st;
    const cek__part *p = &l->graph->parts[part];
    const cek__dims *x = &l->graph->flows[p->input[0]].dims;
    cek__destination to = { 0 };
    cek_reduce_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_REDUCE },
        .function = p->reduce.function,
        .axes = p->reduce.axes,
        .rank = (uint32_t)x->rank,
        .x_type = cek__lower_type(l, p->input[0]),
    };

    cek__strides(&l->graph->flows[p->input[0]], l->rows, desc.x_strides);
    for (int i = 0; i < x->rank; i++)
        desc.shape[i] = (uint64_t)cek__dims_elements(x, i, i + 1, l->rows);
    CEK_TRY(cek__lower_write(l, p->output[0], CEK_REDUCE_Y, &to));
    return cek__lower_emit(
        l, part, &desc.op,
        (int[CEK__SLOTS]){ [CEK_REDUCE_X] = cek__lower_read(l, p->input[0]), [CEK_REDUCE_Y] = to.value }, &to);
out:
    return st;
}

const cek__part_class cek__part_reduce = { .name = "reduce",
                                           .outputs = 1,
                                           .infer = reduce_infer,
                                           .gradient = reduce_gradient,
                                           .place = reduce_place,
                                           .lower = reduce_lower,
                                           .adds = true };
