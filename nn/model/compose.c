/* compose.c - the model's graph, what stands at its end, the passes (see compose.h). */
#include "nn/model/compose.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "cekernels/parts.h"
#include "core/base/status.h"
#include "nn/graph/common.h"
#include "nn/graph/fuse.h"
#include "nn/graph/parts.h"
#include "nn/graph/physical.h"
#include "nn/graph/simplify.h"
#include "nn/graph/types.h"

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

/* [N, elements] of floats. */
static cek_status row_add(cek__graph *graph, const cek__node *node, int *out)
{
    cek_status st;
    const cek__flow *flow = &graph->flows[node->flow];
    const cek__dims *dims = &flow->dims;
    cek__dims row = { .rank = 2, .samples = 1, .size = { 1, cek__dims_elements(dims, 0, dims->rank, 1) } };

    if (dims->samples != 1 || dims->size[0] != 1 || dims->outside)
        return cek__fail(CEK_INVALID, "the output %s is not a row of numbers for each sample", node->label);
    graph->name = node->label;
    *out = node->flow;
    if (flow->type != CEK_DTYPE_NONE)
        CEK_TRY(cek__cast(graph, *out, CEK_DTYPE_NONE, out));
    st = cek__view(graph, *out, &row, out);
out:
    return st;
}

/* One behind the other; of one alone its elements by their axes too. */
static cek_status outputs_add(cek__graph *graph, const cek_model *model, const cek__purpose *purpose)
{
    cek_status st = CEK_OK;
    int rows[CEK__PART_INPUTS], count = 0;

    graph->node = -1;
    for (size_t i = 0; i < purpose->output_count; i++) {
        if (count == CEK__PART_INPUTS) {
            CEK_TRY(cek__concat(graph, rows, count, 1, &rows[0]));
            count = 1;
        }
        CEK_TRY(row_add(graph, &model->nodes[purpose->outputs[i]], &rows[count++]));
    }
    st = count == 1 ? CEK_OK : cek__concat(graph, rows, count, 1, &rows[0]);
    graph->result = rows[0];
out:
    return st;
}

static cek_status ends_add(cek__graph *graph, const cek_model *model, const cek__purpose *purpose)
{
    int output = model->nodes[cek__model_output(model)].flow;
    cek__part softmax = { .kind = CEK__PART_SOFTMAX, .inputs = 1, .input = { output } };

    if (purpose->loss == CEK_LOSS_OWN) {
        graph->loss = model->loss;
        graph->hits = model->hits;
        return CEK_OK;
    }
    if (purpose->loss)
        return loss_add(graph, output, purpose);
    if (purpose->output_count > 0)
        return outputs_add(graph, model, purpose);
    graph->result = output;
    graph->node = -1;
    graph->name = "softmax";
    return purpose->softmax ? cek__graph_add(graph, &softmax, &graph->result) : CEK_OK;
}

/* What a pass left out cannot be trained. */
static cek_status parameters_read(const cek_model *model, const cek__graph *graph, const cek__purpose *purpose)
{
    cek_status st;
    bool *read;

    CEK_TRY(cek__calloc(model->parameter_count, sizeof *read, &read));
    for (int i = 0; i < graph->length; i++) {
        const cek__part *part = cek__graph_at(graph, i);

        if (part->kind == CEK__PART_PARAMETER)
            read[part->parameter] = true;
    }
    for (size_t i = 0; i < model->parameter_count && st == CEK_OK; i++) {
        int node = model->parameters[i].node;

        if (!read[i] && purpose->loss == CEK_LOSS_OWN)
            st = cek__fail(CEK_INVALID, "node %d (%s) does not lead to the loss and cannot be trained", node,
                           model->nodes[node].label);
        else if (!read[i])
            st = cek__fail(CEK_INVALID,
                           "node %d (%s) does not lead to the output, which is node %d, and cannot be trained", node,
                           model->nodes[node].label, cek__model_output(model));
    }
    free(read);
out:
    return st;
}

/* A prediction has no targets. */
static cek_status target_unread(const cek_model *model, const cek__graph *graph)
{
    for (int i = 0; i < graph->length; i++)
        if (cek__graph_at(graph, i)->kind == CEK__PART_TARGET)
            return cek__fail(CEK_INVALID, "the output, node %d (%s), depends on the target", cek__model_output(model),
                             model->nodes[cek__model_output(model)].label);
    return CEK_OK;
}

/* Parameters lie as they do already; who wants one otherwise gets a copy. */
static void images_give(cek__graph *graph, const cek__image *images)
{
    for (int i = 0; i < graph->length && images; i++) {
        const cek__part *part = cek__graph_at(graph, i);

        if (part->kind != CEK__PART_PARAMETER)
            continue;
        graph->flows[part->output[0]].image = images[part->parameter];
        graph->flows[part->output[0]].open = false;
    }
}

cek_status cek__model_compose(const cek_model *model, const cek__purpose *purpose, cek__graph *out)
{
    cek_status st;

    *out = (cek__graph){ 0 };
    CEK_TRY(cek_model_status(model));
    if (model->node_count == 0)
        CEK_FAIL(CEK_INVALID, "the model has no nodes");
    CEK_TRY(cek__graph_copy(&model->graph, out));
    CEK_TRY(ends_add(out, model, purpose));
    cek__simplify(out, purpose->training);
    if (!purpose->loss)
        CEK_TRY(target_unread(model, out));
    if (purpose->training) {
        CEK_TRY(parameters_read(model, out, purpose));
        CEK_TRY(cek__differentiate(out));
    }
    CEK_TRY(cek__common(out));
    images_give(out, purpose->images);
    CEK_TRY(cek__physical(out));
    CEK_TRY(cek__types(out, purpose->low, purpose->rounded));
    CEK_TRY(cek__fuse(out, purpose->folding));
    return CEK_OK;
out:
    cek__graph_clear(out);
    return st;
}

/* Of the parameters that this purpose reads: how they lie, where nobody has looked before, and whether few bits do. */
static cek_status images_take(const cek_model *model, const cek__purpose *purpose, bool *seen, cek__image *images,
                              bool *rounded)
{
    cek_status st;
    cek__graph graph;

    CEK_TRY(cek__model_compose(model, purpose, &graph));
    for (int i = 0; i < graph.length; i++) {
        const cek__part *part = cek__graph_at(&graph, i);

        if (part->kind != CEK__PART_PARAMETER)
            continue;
        rounded[part->parameter] &= graph.flows[part->output[0]].type != CEK_DTYPE_NONE;
        if (seen[part->parameter])
            continue;
        seen[part->parameter] = true;
        images[part->parameter] = graph.flows[part->output[0]].image;
    }
    cek__graph_clear(&graph);
out:
    return st;
}

cek_status cek__model_images(const cek_model *model, cek_dtype low, cek__image *images, bool *rounded)
{
    cek_status st;
    const cek__purpose training = {
        .training = true, .loss = model->loss ? CEK_LOSS_OWN : CEK_LOSS_MSE, .target_type = CEK_DTYPE_NONE, .low = low
    };
    bool *seen, all = true;

    memset(images, 0, model->parameter_count * sizeof *images);
    memset(rounded, low != CEK_DTYPE_NONE, model->parameter_count * sizeof *rounded);
    CEK_TRY(cek__calloc(model->parameter_count, sizeof *seen, &seen));
    st = images_take(model, &(cek__purpose){ .low = low }, seen, images, rounded);
    for (size_t i = 0; i < model->parameter_count; i++)
        all &= seen[i];
    if (st == CEK_OK && (!all || low)) {
        st = images_take(model, &training, seen, images, rounded);
        st = st == CEK_INVALID || st == CEK_UNSUPPORTED ? CEK_OK
                                                        : st; /* it cannot be trained, and nobody reads the rest */
    }
    for (size_t i = 0; i < model->parameter_count; i++)
        rounded[i] &= seen[i];
    free(seen);
out:
    return st;
}

bool cek__model_is_divisible(const cek_model *model, size_t parameter)
{
    const cek__graph *graph = &model->graph;
    int flow = model->parameters[parameter].flow;
    bool read = false;

    if (model->parameters[parameter].public.rank != 2)
        return false;
    for (int i = 1; i < graph->part_count; i++) {
        const cek__part *part = &graph->parts[i];

        for (int k = 0; k < part->inputs; k++) {
            if (part->input[k] != flow)
                continue;
            if (part->kind != CEK__PART_PRODUCT || k != 1 || part->product.b.batch != 0 || part->product.b.split != 1)
                return false;
            read = true;
        }
    }
    return read;
}
