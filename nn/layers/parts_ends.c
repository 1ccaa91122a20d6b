/* parts_ends.c - what is there before a network computes, as nodes: inputs, targets, and the parameters of other nodes
 * (see parts.h of the public headers). */
#include <stdlib.h>
#include <string.h>

#include "nn/layers/parts_inside.h"

/* [N, shape], of which a batch holds a row for each sample. */
static cek_status sample_dims(int rank, const int64_t *shape, cek__dims *out)
{
    cek_status st;
    cek__dims given;

    CEK_TRY(dims_take(rank, shape, &given));
    if (given.samples)
        CEK_FAIL(CEK_INVALID, "the shape is of one sample, without CEK_SAMPLES");
    CEK_TRY(cek__shape_check("shape", rank, given.size));
    *out = (cek__dims){ .rank = rank + 1, .samples = 1, .size = { 1 } };
    memcpy(out->size + 1, given.size, (size_t)rank * sizeof *given.size);
out:
    return st;
}

/* It is called as it was given, and takes no position among the layers. */
int cek_part_input(cek_model *model, const char *name, cek_dtype type, int rank, const int64_t *shape)
{
    cek_status st;
    cek__layer l = { .model = NULL };
    cek__part part = { .kind = CEK__PART_INPUT, .type = type == CEK_I32 ? CEK_I32 : CEK_DTYPE_NONE };
    char *name_before = NULL; /* that of what comes next, if this is refused */
    int node, y = CEK__NOTHING;

    if (model && name) {
        name_before = model->next_name;
        model->next_name = NULL;
        CEK_TRY(cek_model_name(model, name));
    }
    CEK_TRY(begin(&l, model, "input", 0, NULL));
    if (!name)
        CEK_FAIL(CEK_INVALID, "name is NULL");
    if (type != CEK_I32 && type != CEK_F32)
        CEK_FAIL(CEK_UNSUPPORTED, "type %s, inputs are CEK_F32 (data) or CEK_I32 (whole numbers)",
                 cek_dtype_name(type));
    if (rank < 1 || rank > CEK__INPUT_RANK_MAX)
        CEK_FAIL(CEK_INVALID, "a sample of rank %d, it is 1 to %d", rank, CEK__INPUT_RANK_MAX);
    if (model->input_count == CEK_INPUTS_MOST)
        CEK_FAIL(CEK_INVALID, "the model has %d inputs already", CEK_INPUTS_MOST);
    for (size_t i = 0; i < model->input_count; i++)
        if (strcmp(cek__node_name(model, model->inputs[i]), l.node.name) == 0)
            CEK_FAIL(CEK_INVALID, "node %d is the input \"%s\" already", model->inputs[i], l.node.name);
    CEK_TRY(sample_dims(rank, shape, &part.dims));
    CEK_TRY(cek__graph_add(l.graph, &part, &y));
out:
    node = end(model, &l, st, y);
    if (node >= 0) {
        model->scopes[model->depth].position--;
        model->inputs[model->input_count++] = node;
        free(name_before);
    } else if (model && name) {
        free(model->next_name);
        model->next_name = name_before;
    }
    return node;
}

int cek_part_state(cek_model *model, int node, cek_state which)
{
    cek_status st;
    cek__layer l;
    int y = CEK__NOTHING;

    CEK_TRY(begin(&l, model, "state", 1, &node));
    if (which != CEK_STATE_HIDDEN && which != CEK_STATE_CELL)
        CEK_FAIL(CEK_INVALID, "%d is neither states nor cells", (int)which);
    y = model->nodes[node].state[which];
    if (!y)
        CEK_FAIL(CEK_INVALID, "node %d (%s) has no %s", node, model->nodes[node].kind,
                 which == CEK_STATE_CELL ? "cells" : "states");
out:
    return end(model, &l, st, y);
}

int cek_part_target(cek_model *model, cek_dtype type, int rank, const int64_t *shape)
{
    cek_status st;
    cek__layer l;
    cek__dims dims;
    int node, y = CEK__NOTHING;

    CEK_TRY(begin(&l, model, "target", 0, NULL));
    if (rank + 1 > CEK_RANK_MAX)
        CEK_FAIL(CEK_INVALID, "a sample of rank %d, it is 0 to %d", rank, CEK_RANK_MAX - 1);
    CEK_TRY(sample_dims(rank, shape, &dims));
    CEK_TRY(cek__layer_target(&l, type, &dims, &y));
out:
    node = end(model, &l, st, y);
    if (node >= 0 && model->output < 0)
        model->output = node - 1;
    return node;
}

int cek_part_shared(cek_model *model, const char *name)
{
    cek_status st;
    cek__layer l;
    size_t index;
    int y = CEK__NOTHING;

    CEK_TRY(begin(&l, model, "shared", 0, NULL));
    CEK_TRY(cek_model_find_parameter(model, name, &index));
    y = model->parameters[index].flow;
    cek__layer_note(&l, "%s", name);
out:
    return end(model, &l, st, y);
}
