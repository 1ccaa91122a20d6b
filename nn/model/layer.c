/* layer.c - adds nodes to a model, all or nothing (see layer.h). */
#include "nn/model/layer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/status.h"

/* ---- names ---- */

/* The node's name by what the user said last, or its position: node 1 is the first of the sequence, which
 * torch.nn.Sequential counts from 0. */
static cek_status names_make(cek_model *model, cek__node *node)
{
    cek_status st;
    cek__scope *scope = &model->scopes[model->depth];

    node->named = model->next_name != NULL;
    if (node->named)
        CEK_TRY(cek__asprintf(&node->name, "%s%s", scope->prefix ? scope->prefix : "", model->next_name));
    else
        CEK_TRY(cek__asprintf(&node->name, "%s%d", scope->prefix ? scope->prefix : "", scope->position));
    node->named |= model->depth > 0;
    if (node->named)
        CEK_TRY(cek__asprintf(&node->label, "%s %s", node->kind, node->name));
    else
        CEK_TRY(cek__strdup(node->kind, &node->label));
out:
    return st;
}

static void node_clear(cek__node *node)
{
    free(node->name);
    free(node->label);
    *node = (cek__node){ 0 };
}

/* ---- a layer ---- */

static cek_status inputs_take(cek__layer *l, int inputs, const int *input)
{
    cek_status st;

    l->node.inputs = inputs;
    for (int i = 0; i < inputs; i++) {
        CEK_TRY(cek__node_check(l->model, input[i], "input"));
        l->node.input[i] = input[i];
        l->x[i] = l->model->nodes[input[i]].flow;
    }
    if (inputs > 0)
        l->in = l->graph->flows[l->x[0]].dims;
    return CEK_OK;
out:
    return st;
}

cek_status cek__layer_begin(cek__layer *l, cek_model *model, const char *kind, int inputs, const int *input)
{
    cek_status st;

    *l = (cek__layer){ .node = { .kind = kind } };
    if (!model)
        CEK_FAIL(CEK_INVALID, "%s: model is NULL", kind);
    l->model = model;
    l->graph = &model->graph;
    l->mark = cek__graph_mark_of(l->graph);
    l->parameters = model->parameter_count;
    l->buffers = model->buffer_count;
    l->buffer_elements = model->buffer_elements;
    l->constant_elements = model->constants.count;
    l->target = model->target;
    l->loss = model->loss;
    l->hits = model->hits;
    CEK_TRY(names_make(model, &l->node));
    CEK_TRY(inputs_take(l, inputs, input));
    if (model->node_count == model->node_capacity) {
        int capacity = model->node_capacity ? 2 * model->node_capacity : 16;

        CEK_TRY(cek__realloc_array((size_t)capacity, sizeof *model->nodes, &model->nodes));
        model->node_capacity = capacity;
    }
    l->graph->node = model->node_count;
    l->graph->name = l->node.label;
out:
    return st;
}

cek_status cek__layer_call(cek__layer *l, const char *name)
{
    cek_status st;
    char *copy = NULL, *label = NULL;

    CEK_TRY(cek__strdup(name, &copy));
    CEK_TRY(cek__asprintf(&label, "%s %s", l->node.kind, name));
    free(l->node.name);
    free(l->node.label);
    l->node.name = copy;
    l->node.label = label;
    l->node.named = true;
    l->graph->name = label;
    l->whole_names = true;
    return CEK_OK;
out:
    free(copy);
    return st;
}

/* Shape, name and memory. */
static cek_status tensor_make(const cek__layer *l, const char *suffix, int rank, const int64_t *shape, cek_parameter *p)
{
    cek_status st;
    char *name = NULL;

    CEK_TRY(cek__shape_check(suffix, rank, shape));
    *p = (cek_parameter){ .rank = rank, .count = 1 };
    for (int i = 0; i < rank; i++) {
        p->shape[i] = shape[i];
        p->count *= shape[i];
    }

    CEK_TRY(*l->node.name && !l->whole_names ? cek__asprintf(&name, "%s%s%s", l->node.name, *suffix ? "." : "", suffix)
                                             : cek__strdup(suffix, &name));
    for (size_t i = 0; i < cek__model_tensor_count(l->model); i++)
        if (strcmp(cek__model_tensor(l->model, i)->name, name) == 0)
            CEK_FAIL(CEK_INVALID, "there is a parameter \"%s\" already", name);
    CEK_TRY(cek__calloc((size_t)p->count, sizeof *p->data, &p->data));
    p->name = name;
    return CEK_OK;
out:
    free(name);
    return st;
}

cek_status cek__layer_parameter(cek__layer *l, const char *suffix, int rank, const int64_t *shape, double fan_in,
                                int *flow)
{
    cek_status st;
    cek_model *model = l->model;
    cek__part part = { .kind = CEK__PART_PARAMETER, .parameter = model->parameter_count, .dims = { .rank = rank } };
    cek__parameter p = { .node = model->node_count, .fan_in = fan_in };

    CEK_TRY(cek__realloc_array(model->parameter_count + 1, sizeof *model->parameters, &model->parameters));
    CEK_TRY(tensor_make(l, suffix, rank, shape, &p.public));
    memcpy(part.dims.size, shape, (size_t)rank * sizeof *shape);
    CEK_TRY(cek__graph_add(l->graph, &part, flow));
    p.flow = *flow;
    model->parameters[model->parameter_count++] = p;
    return CEK_OK;
out:
    cek__tensor_clear(&p.public);
    return st;
}

cek_status cek__layer_filled(cek__layer *l, const char *suffix, int rank, const int64_t *shape, double value, int *flow)
{
    cek_status st = cek__layer_parameter(l, suffix, rank, shape, 0, flow);

    if (st == CEK_OK)
        l->model->parameters[l->model->parameter_count - 1].value = value;
    return st;
}

/* Where what lies behind so many elements begins, in any type. */
static uint64_t aligned(uint64_t elements)
{
    const uint64_t align = CEK_ALIGNMENT / sizeof(float);

    return (elements + align - 1) / align * align;
}

cek_status cek__layer_buffer(cek__layer *l, const char *suffix, int rank, const int64_t *shape, double value, int *flow)
{
    cek_status st;
    cek_model *model = l->model;
    cek__part part = { .kind = CEK__PART_BUFFER, .dims = { .rank = rank } };
    cek__buffer b = { .at = model->buffer_elements, .value = value };

    CEK_TRY(cek__realloc_array(model->buffer_count + 1, sizeof *model->buffers, &model->buffers));
    CEK_TRY(tensor_make(l, suffix, rank, shape, &b.public));
    for (int64_t i = 0; i < b.public.count; i++)
        b.public.data[i] = (float)value;
    memcpy(part.dims.size, shape, (size_t)rank * sizeof *shape);
    part.buffer.at = b.at;
    CEK_TRY(cek__graph_add(l->graph, &part, flow));
    model->buffer_elements += aligned((uint64_t)b.public.count);
    model->buffers[model->buffer_count++] = b;
    return CEK_OK;
out:
    cek__tensor_clear(&b.public);
    return st;
}

cek_status cek__layer_constant(cek__layer *l, int rank, const int64_t *shape, const float *values, int *flow)
{
    cek_status st;
    cek__constants *all = &l->model->constants;
    cek__part part = { .kind = CEK__PART_BUFFER,
                       .dims = { .rank = rank },
                       .buffer = { .at = all->count, .constant = true } };
    uint64_t count = 1, end;

    CEK_TRY(cek__shape_check("array", rank, shape));
    for (int i = 0; i < rank; i++)
        count *= (uint64_t)shape[i];
    end = all->count + aligned(count);
    CEK_TRY(cek__realloc_array((size_t)end, sizeof *all->values, &all->values));
    memset(all->values + all->count, 0, (size_t)(end - all->count) * sizeof *all->values);
    memcpy(all->values + all->count, values, (size_t)count * sizeof *values);
    memcpy(part.dims.size, shape, (size_t)rank * sizeof *shape);
    all->count = end;
    CEK_TRY(cek__graph_add(l->graph, &part, flow));
out:
    return st;
}

cek_status cek__layer_contribute(cek__layer *l, int buffer, int v, double momentum)
{
    const cek__part *giver = cek__graph_giver(l->graph, buffer);
    cek__part part = { .kind = CEK__PART_CONTRIBUTE,
                       .inputs = 1,
                       .input = { v },
                       .buffer = { .at = giver->buffer.at, .momentum = momentum } };
    int nothing;

    if (giver->kind != CEK__PART_BUFFER || !cek__dims_equal(&giver->dims, &l->graph->flows[v].dims))
        return cek__fail(CEK_INVALID, "a contribution of another shape than the buffer's");
    for (size_t i = 0; i < l->model->buffer_count; i++)
        if (l->model->buffers[i].at == giver->buffer.at)
            l->model->buffers[i].momentum = momentum;
    return cek__graph_add(l->graph, &part, &nothing);
}

cek_status cek__layer_target(cek__layer *l, cek_dtype type, const cek__dims *dims, int *flow)
{
    cek_status st;
    cek__part part = { .kind = CEK__PART_TARGET, .type = type == CEK_I32 ? CEK_I32 : CEK_DTYPE_NONE, .dims = *dims };

    if (l->model->target)
        CEK_FAIL(CEK_INVALID, "the model has targets already");
    if (type != CEK_I32 && type != CEK_F32)
        CEK_FAIL(CEK_UNSUPPORTED, "type %s, targets are i32 labels or f32 values", cek_dtype_name(type));
    if (cek__dims_elements(dims, 0, dims->rank, 1) > INT32_MAX)
        CEK_FAIL(CEK_UNSUPPORTED, "more than %d %s", INT32_MAX, type == CEK_I32 ? "labels" : "values");
    CEK_TRY(cek__graph_add(l->graph, &part, flow));
    l->model->target = *flow;
out:
    return st;
}

void cek__layer_note(cek__layer *l, const char *fmt, ...)
{
    size_t used = strlen(l->node.note);
    va_list args;

    va_start(args, fmt);
    vsnprintf(l->node.note + used, sizeof l->node.note - used, fmt, args);
    va_end(args);
}

static cek_status outcome_check(const cek__layer *l, int flow)
{
    const cek__dims *dims = &l->graph->flows[flow].dims;
    int first = dims->rank > 0 && dims->samples & 1;

    return cek__shape_check("output", dims->rank - first, dims->size + first);
}

static void layer_undo(cek__layer *l)
{
    cek_model *model = l->model;

    cek__graph_rewind(l->graph, l->mark);
    while (model->parameter_count > l->parameters)
        cek__tensor_clear(&model->parameters[--model->parameter_count].public);
    while (model->buffer_count > l->buffers)
        cek__tensor_clear(&model->buffers[--model->buffer_count].public);
    model->buffer_elements = l->buffer_elements;
    model->constants.count = l->constant_elements;
    model->target = l->target;
    model->loss = l->loss;
    model->hits = l->hits;
}

/* For a part that is given its -1 as a node. Where there is no memory for the text, it says less. */
static void failure_keep(cek_model *model)
{
    if (model->failed != CEK_OK)
        return;
    free(model->failure);
    model->failure = strdup(cek_error_text()); /* whose own failure would take the text's place */
}

cek_status cek__layer_end(cek__layer *l, cek_status st, int flow, int *node)
{
    cek_model *model = l->model;

    if (node)
        *node = -1;
    if (!model)
        return st;
    if (st == CEK_OK)
        st = outcome_check(l, flow);
    if (st != CEK_OK) {
        layer_undo(l);
        if (l->whole_names) /* of a file, which numbers its nodes otherwise */
            cek__fail_prefix(st, "%s", l->node.label);
        else
            cek__fail_prefix(st, "node %d (%s)", model->node_count, l->node.label ? l->node.label : l->node.kind);
        node_clear(&l->node);
        failure_keep(model);
        return st;
    }
    l->node.flow = flow;
    model->nodes[model->node_count] = l->node;
    model->scopes[model->depth].position++;
    free(model->next_name);
    model->next_name = NULL;
    if (node)
        *node = model->node_count;
    model->node_count++;
    return CEK_OK;
}
