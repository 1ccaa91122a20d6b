/* compose.c - layers add their parts, then the passes (see compose.h). */
#include "nn/model/compose.h"

#include <stdlib.h>

#include "core/base/alloc.h"
#include "nn/graph/fuse.h"
#include "nn/graph/parts.h"
#include "nn/graph/physical.h"
#include "nn/graph/simplify.h"
#include "nn/model/layers.h"

/* A shape of one sample, with the samples before it. */
static cek__dims sample_dims(const cek__shape *shape)
{
    cek__dims dims = { .rank = shape->rank + 1, .samples = 1, .size = { 1 } };

    for (int i = 0; i < shape->rank; i++)
        dims.size[i + 1] = shape->dim[i];
    return dims;
}

static void live_mark(const cek_model *model, bool *live)
{
    live[model->node_count - 1] = true;
    for (int i = model->node_count - 1; i > 0; i--)
        for (int k = 0; live[i] && k < model->nodes[i].inputs; k++)
            live[model->nodes[i].input[k]] = true;
}

static cek_status parameter_add(const cek_model *model, cek__graph *graph, int parameter, int *out)
{
    cek__part part = { .kind = CEK__PART_PARAMETER };
    const cek_parameter *p;

    *out = CEK__NOTHING;
    if (parameter < 0)
        return CEK_OK;
    p = &model->parameters[parameter].public;
    part.parameter = (size_t)parameter;
    part.dims.rank = p->rank;
    for (int i = 0; i < p->rank; i++)
        part.dims.size[i] = p->shape[i];
    return cek__graph_add(graph, &part, out);
}

/* flows[i]: what node i gives. */
static cek_status layers_add(const cek_model *model, cek__graph *graph, const bool *live, int *flows)
{
    cek_status st;
    cek__part input = { .kind = CEK__PART_INPUT, .dims = sample_dims(&model->nodes[0].shape) };

    graph->node = -1;
    graph->name = "input";
    CEK_TRY(cek__graph_add(graph, &input, &flows[0]));
    for (int i = 1; i < model->node_count; i++) {
        const cek__node *node = &model->nodes[i];
        const cek__layer_class *layer = cek__layer_class_of(node->layer);
        int x[2] = { flows[node->input[0]], flows[node->input[1]] }, w[2];

        if (!live[i])
            continue;
        graph->node = i;
        graph->name = layer->name;
        CEK_TRY(parameter_add(model, graph, node->weight, &w[0]));
        CEK_TRY(parameter_add(model, graph, node->bias, &w[1]));
        CEK_TRY(layer->compose(node, graph, x, w, &flows[i]));
    }
    return CEK_OK;
out:
    return st;
}

static cek_status loss_add(cek__graph *graph, int output, const cek__purpose *purpose)
{
    cek_status st;
    bool classes = purpose->loss == CEK_LOSS_CROSS_ENTROPY;
    cek__part target = { .kind = CEK__PART_TARGET, .dims = graph->flows[output].dims, .type = purpose->target_type };
    cek__part loss = { .kind = classes ? CEK__PART_CROSS_ENTROPY : CEK__PART_SQUARED_ERROR, .inputs = 2 };
    int gradient;

    graph->node = -1;
    graph->name = "loss";
    if (classes)
        target.dims.rank--;
    CEK_TRY(cek__graph_add(graph, &target, &loss.input[1]));
    loss.input[0] = output;
    CEK_TRY(cek__graph_add(graph, &loss, &gradient));
    graph->loss = graph->flows[gradient].part;
    return CEK_OK;
out:
    return st;
}

static cek_status ends_add(cek__graph *graph, int output, const cek__purpose *purpose)
{
    cek__part softmax = { .kind = CEK__PART_SOFTMAX, .inputs = 1, .input = { output } };

    if (purpose->loss)
        return loss_add(graph, output, purpose);
    graph->result = output;
    graph->node = -1;
    graph->name = "softmax";
    return purpose->softmax ? cek__graph_add(graph, &softmax, &graph->result) : CEK_OK;
}

static cek_status passes_run(cek__graph *graph, bool training)
{
    cek_status st;

    cek__simplify(graph, training);
    if (training)
        CEK_TRY(cek__differentiate(graph));
    CEK_TRY(cek__physical(graph));
    cek__fuse(graph);
    return CEK_OK;
out:
    return st;
}

cek_status cek__model_compose(const cek_model *model, const cek__purpose *purpose, cek__graph *out)
{
    cek_status st;
    bool *live = NULL;
    int *flows = NULL;

    CEK_TRY(cek__graph_init(out));
    CEK_TRY(cek__calloc((size_t)model->node_count, sizeof *live, &live));
    CEK_TRY(cek__calloc((size_t)model->node_count, sizeof *flows, &flows));
    live_mark(model, live);
    for (int i = 0; i < model->node_count && purpose->training; i++)
        if (!live[i])
            CEK_FAIL(CEK_INVALID, "node %d (%s) does not lead to the output, which is node %d, and cannot be trained",
                     i, cek__layer_class_of(model->nodes[i].layer)->name, model->node_count - 1);
    CEK_TRY(layers_add(model, out, live, flows));
    CEK_TRY(ends_add(out, flows[model->node_count - 1], purpose));
    CEK_TRY(passes_run(out, purpose->training));
    st = CEK_OK;
out:
    free(live);
    free(flows);
    if (st != CEK_OK)
        cek__graph_clear(out);
    return st;
}

cek_status cek__model_images(const cek_model *model, cek__image *images)
{
    cek_status st;
    cek__graph graph;

    CEK_TRY(cek__model_compose(model, &(cek__purpose){ 0 }, &graph));
    for (int i = 0; i < graph.part_count; i++)
        if (graph.parts[i].kind == CEK__PART_PARAMETER)
            images[graph.parts[i].parameter] = graph.flows[graph.parts[i].output[0]].image;
    cek__graph_clear(&graph);
out:
    return st;
}
