/* differentiate.c - parts in reverse, each giving its inputs their share (see differentiate.h). */
#include "nn/graph/differentiate.h"

#include <stdlib.h>

#include "core/base/alloc.h"
#include "nn/graph/parts.h"

static cek_status gradient_list(cek__graph *graph, size_t parameter, int of, int flow)
{
    cek_status st;

    CEK_TRY(cek__realloc_array(graph->gradient_count + 1, sizeof *graph->gradients, &graph->gradients));
    graph->gradients[graph->gradient_count++] = (cek__gradient){ parameter, of, flow };
    return CEK_OK;
out:
    return st;
}

cek_status cek__contribute(cek__backward *to, int flow, int gradient)
{
    cek__graph *graph = to->graph;
    const cek__part *giver = cek__graph_giver(graph, flow);

    if (!graph->flows[flow].needs_gradient)
        return CEK_OK;
    if (giver->kind == CEK__PART_PARAMETER)
        return gradient_list(graph, giver->parameter, flow, gradient);
    if (to->of[flow])
        return cek__chain(graph, CEK_PW_ADD, to->of[flow], gradient, &to->of[flow]);
    to->of[flow] = gradient;
    return CEK_OK;
}

/* A parameter's gradient is written where it is kept, by a part that can add to it, and read by nobody else. */
static cek_status gradients_own(cek__graph *graph)
{
    cek_status st;

    cek__graph_prune(graph);
    for (size_t i = 0; i < graph->gradient_count; i++) {
        int *flow = &graph->gradients[i].flow;

        const cek__part *giver = cek__graph_giver(graph, *flow);

        if (graph->flows[*flow].readers <= 1 && cek__part_class_of(giver->kind)->adds)
            continue;
        graph->node = giver->node;
        graph->name = giver->name;
        CEK_TRY(cek__chain(graph, CEK_PW_COPY, *flow, CEK__NOTHING, flow));
    }
    return CEK_OK;
out:
    return st;
}

/* Of a parameter that nothing differentiable reads there is no gradient, and the optimizer would take what
 * its memory holds. */
static cek_status gradients_complete(const cek__graph *graph)
{
    for (int i = 0; i < graph->length; i++) {
        const cek__part *part = cek__graph_at(graph, i);
        bool listed = part->kind != CEK__PART_PARAMETER;

        for (size_t k = 0; k < graph->gradient_count && !listed; k++)
            listed = graph->gradients[k].parameter == part->parameter;
        if (!listed)
            return cek__fail(CEK_INVALID, "node %d (%s): the loss does not depend on parameter %zu", part->node,
                             part->name, part->parameter);
    }
    return CEK_OK;
}

cek_status cek__differentiate(cek__graph *graph)
{
    cek_status st;
    const cek__part *loss = &graph->parts[graph->loss];
    cek__backward to = { .graph = graph, .flows = graph->flow_count };

    CEK_TRY(cek__calloc((size_t)to.flows, sizeof *to.of, &to.of));
    if (graph->flows[loss->input[0]].needs_gradient)
        to.of[loss->input[0]] = loss->output[0];
    graph->backward = true;
    for (int i = graph->length; i-- > 0;) {
        int index = graph->sequence[i];
        const cek__part *part = &graph->parts[index];
        int dy = to.of[part->output[0]];

        if (index == graph->loss || !part->output[0] || !dy || part->kind == CEK__PART_PARAMETER)
            continue;
        graph->node = part->node;
        graph->name = part->name;
        if (!cek__part_class_of(part->kind)->gradient)
            CEK_FAIL(CEK_UNSUPPORTED, "node %d (%s): %s has no gradient", part->node, part->name,
                     cek__part_class_of(part->kind)->name);
        CEK_TRY(cek__part_class_of(part->kind)->gradient(&to, index, dy));
    }
    CEK_TRY(gradients_complete(graph));
    st = gradients_own(graph);
out:
    free(to.of);
    return st;
}
