/* part_permute.c - the axes in another order. Nothing moves: the output lies within what is read, at its strides; where
 * these are an order that all parts know, it is that memory. */
#include "nn/graph/parts.h"
#include "nn/graph/physical.h"
#include "nn/graph/strides.h"

static cek_status permute_infer(const cek__graph *graph, const cek__part *part, cek__flow out[CEK__PART_OUTPUTS])
{
    const cek__flow *x = &graph->flows[part->input[0]];
    uint32_t seen = 0;

    out[0].dims = x->dims;
    out[0].type = x->type;
    out[0].dims.samples = 0;
    for (int i = 0; i < x->dims.rank; i++) {
        int from = part->order[i];

        if (from < 0 || from >= x->dims.rank || seen >> from & 1)
            return cek__fail(CEK_INVALID, "axis %d is not one of %d, each once", i, x->dims.rank);
        seen |= 1u << from;
        out[0].dims.size[i] = x->dims.size[from];
        out[0].dims.samples |= (x->dims.samples >> from & 1) << i;
    }
    return CEK_OK;
}

cek_status cek__permute(cek__graph *graph, int x, const int *order, int *out)
{
    cek__part part = { .kind = CEK__PART_PERMUTE, .inputs = 1, .input = { x } };
    bool same = true;

    for (int i = 0; i < graph->flows[x].dims.rank; i++) {
        part.order[i] = order[i];
        same &= order[i] == i;
    }
    *out = x;
    return same ? CEK_OK : cek__graph_add(graph, &part, out);
}

static cek_status permute_gradient(cek__backward *to, int part, int dy)
{
    cek_status st;
    const cek__part p = to->graph->parts[part];
    int back[CEK_RANK_MAX] = { 0 }, dx;

    for (int i = 0; i < to->graph->flows[dy].dims.rank; i++)
        back[p.order[i]] = i;
    CEK_TRY(cek__permute(to->graph, dy, back, &dx));
    return cek__contribute(to, p.input[0], dx);
out:
    return st;
}

/* In the order of its axes, or as an image, or neither. Several samples tell orders apart that one does not. */
static cek_status permute_place(cek__graph *graph, int part)
{
    cek_status st;
    const cek__part *p;
    cek__flow *y;
    int64_t within[CEK_RANK_MAX], plain[CEK_RANK_MAX];
    const int64_t several = 7;

    CEK_TRY(cek__want_strides(graph, part, 0));
    p = &graph->parts[part];
    y = &graph->flows[p->output[0]];
    y->strided = true;
    if (graph->flows[p->input[0]].strided)
        return CEK_OK;
    cek__strides(graph, p->output[0], several, within);
    y->strided = false;
    cek__strides(graph, p->output[0], several, plain);
    if (cek__strides_equal(&y->dims, several, within, plain))
        return CEK_OK;
    if (y->dims.rank > 2 && y->dims.samples == 1) {
        y->image = cek__dims_image(&y->dims);
        cek__strides(graph, p->output[0], several, plain);
        if (cek__strides_equal(&y->dims, several, within, plain))
            return CEK_OK;
    }
    y->image = (cek__image){ 0, 0 };
    y->strided = true;
    return CEK_OK;
out:
    return st;
}

static cek_status permute_lower(cek__lowering *l, int part)
{
    const cek__part *p = &l->graph->parts[part];

    if (l->graph->flows[p->output[0]].strided)
        return cek__lower_within(l, p->output[0], cek__lower_read(l, p->input[0]), 0);
    cek__lower_alias(l, p->output[0], cek__lower_read(l, p->input[0]));
    return CEK_OK;
}

const cek__part_class cek__part_permute = { .name = "permute",
                                            .outputs = 1,
                                            .infer = permute_infer,
                                            .gradient = permute_gradient,
                                            .place = permute_place,
                                            .types = CEK__TYPES_FOLLOW,
                                            .lower = permute_lower };
