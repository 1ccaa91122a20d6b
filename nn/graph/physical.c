/* physical.c - asks each part in turn (see physical.h). */
#include "nn/graph/physical.h"

#include <stdlib.h>

#include "nn/graph/parts.h"
#include "nn/graph/strides.h"

static cek_status reorder_add(cek__graph *graph, int from, cek__image image, int *out)
{
    cek_status st;
    cek__part reorder = { .kind = CEK__PART_REORDER, .inputs = 1, .input = { from } };

    for (int i = graph->part_count; i-- > graph->flows[from].part + 1;) { /* is there one already? */
        const cek__part *other = &graph->parts[i];

        if (other->kind == CEK__PART_REORDER && other->input[0] == from &&
            cek__image_equal(graph->flows[other->output[0]].image, image)) {
            *out = other->output[0];
            return CEK_OK;
        }
    }
    CEK_TRY(cek__graph_add(graph, &reorder, out));
    graph->flows[*out].image = image;
out:
    return st;
}

/* The flow lying otherwise; from one image to another by the order of the axes. What is added belongs to `part`. */
static cek_status reordered(cek__graph *graph, const cek__part *part, int from, cek__image image, int *out)
{
    cek_status st;
    const cek__image none = { 0, 0 };
    int plain = from, order[CEK_RANK_MAX];

    graph->node = part->node;
    graph->name = part->name;
    graph->backward = part->backward;
    if (image.channels && (graph->flows[from].image.channels ||
                           (graph->flows[from].strided && !cek__axes_order(&graph->flows[from].dims, image, order))))
        CEK_TRY(reorder_add(graph, from, none, &plain));
    return reorder_add(graph, plain, image, out);
out:
    return st;
}

cek_status cek__want(cek__graph *graph, int part, int k, cek__image image)
{
    cek_status st;
    int from = graph->parts[part].input[k], to;
    cek__flow *flow = &graph->flows[from];
    const cek__part reader = graph->parts[part];

    if (flow->open)
        flow->image = image;
    flow->open = false;
    if (cek__image_equal(flow->image, image) && !flow->strided)
        return CEK_OK;
    CEK_TRY(reordered(graph, &reader, from, image, &to));
    graph->parts[part].input[k] = to;
    return CEK_OK;
out:
    return st;
}

cek_status cek__want_strides(cek__graph *graph, int part, int k)
{
    if (cek__has_strides(graph, graph->parts[part].input[k]))
        return CEK_OK;
    return cek__want(graph, part, k, (cek__image){ 0, 0 });
}

cek_status cek__place_strided(cek__graph *graph, int part)
{
    return cek__want_strides(graph, part, 0);
}

cek_status cek__place_plain(cek__graph *graph, int part)
{
    cek_status st = CEK_OK;

    for (int k = 0; k < graph->parts[part].inputs; k++)
        CEK_TRY(cek__want(graph, part, k, (cek__image){ 0, 0 }));
out:
    return st;
}

cek__image cek__image_like(const cek__flow *x, const cek__dims *dims)
{
    bool image = dims->rank > 2 && x->image.channels && cek__image_equal(x->image, cek__dims_image(&x->dims));

    return image ? cek__dims_image(dims) : (cek__image){ 0, 0 };
}

cek_status cek__place_same(cek__graph *graph, int part)
{
    cek_status st;
    const cek__part *p = &graph->parts[part];

    CEK_TRY(cek__want(graph, part, 0, graph->flows[p->input[0]].image));
    p = &graph->parts[part];
    graph->flows[p->output[0]].image = graph->flows[p->input[0]].image;
out:
    return st;
}

/* A gradient lies as its parameter does: it is copied there where it came otherwise. */
static cek_status gradients_place(cek__graph *graph)
{
    cek_status st = CEK_OK;

    for (size_t i = 0; i < graph->gradient_count; i++) {
        int *flow = &graph->gradients[i].flow;
        const cek__image image = graph->flows[graph->gradients[i].of].image;
        cek__part giver;

        if (cek__image_equal(graph->flows[*flow].image, image) && !graph->flows[*flow].strided)
            continue;
        giver = *cek__graph_giver(graph, *flow);
        CEK_TRY(reordered(graph, &giver, *flow, image, flow));
        CEK_TRY(cek__chain(graph, CEK_PW_COPY, *flow, CEK__NOTHING, flow));
        graph->flows[*flow].image = image;
    }
out:
    return st;
}

/* What the network gives is in the order of its axes. */
static cek_status result_place(cek__graph *graph)
{
    const cek__part giver = *cek__graph_giver(graph, graph->result);

    if (graph->flows[graph->result].image.channels == 0 && !graph->flows[graph->result].strided)
        return CEK_OK;
    return reordered(graph, &giver, graph->result, (cek__image){ 0, 0 }, &graph->result);
}

cek_status cek__physical(cek__graph *graph)
{
    cek_status st;
    int length = graph->length;
    int *before = graph->sequence;

    graph->sequence = NULL;
    graph->length = graph->length_capacity = 0;
    for (int i = 0; i < length; i++) {
        CEK_TRY(cek__part_class_of(graph->parts[before[i]].kind)->place(graph, before[i]));
        CEK_TRY(cek__graph_append(graph, before[i]));
    }
    CEK_TRY(result_place(graph));
    st = gradients_place(graph);
out:
    free(before);
    return st;
}
