/* model.c - builds models: nodes, the parameters they bring, and the questions about them (see model.h, nn.h).
 *
 * Must not know: what a layer computes (layers.c has its shapes), texts (text.c), files (state.c). */
#include "nn/model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/options.h"
#include "core/base/status.h"
#include "nn/model/layers.h"

int64_t cek__shape_elements(const cek__shape *shape)
{
    int64_t n = 1;

    for (int i = 0; i < shape->rank; i++)
        n *= shape->dim[i];
    return n;
}

bool cek__shape_equal(const cek__shape *a, const cek__shape *b)
{
    bool equal = a->rank == b->rank;

    for (int i = 0; equal && i < a->rank; i++)
        equal = a->dim[i] == b->dim[i];
    return equal;
}

char *cek__shape_text(const cek__shape *shape, char text[CEK__SHAPE_TEXT])
{
    size_t used = 0;

    text[0] = '\0';
    for (int i = 0; i < shape->rank; i++)
        used += (size_t)snprintf(text + used, CEK__SHAPE_TEXT - used, "%s%lld", i ? "x" : "", (long long)shape->dim[i]);
    return text;
}

/* Dimensions are at least 1 and the product is within CEK__ELEMENTS_MAX. */
static cek_status shape_check(const char *what, int rank, const int64_t *dim)
{
    int64_t n = 1;

    for (int i = 0; i < rank; i++) {
        if (dim[i] < 1)
            return cek__fail(CEK_INVALID, "%s: dimension %d is %lld", what, i, (long long)dim[i]);
        if (__builtin_mul_overflow(n, dim[i], &n) || n > CEK__ELEMENTS_MAX)
            return cek__fail(CEK_INVALID, "%s: more than %lld elements", what, (long long)CEK__ELEMENTS_MAX);
    }
    return CEK_OK;
}

/* ---- parameters ---- */

static void parameter_clear(cek__parameter *p)
{
    free((char *)p->public.name);
    free(p->public.data);
    *p = (cek__parameter){ 0 };
}

static cek_status parameter_make(const cek__parameter_form *form, int node, cek__parameter *out)
{
    cek_status st;
    cek__parameter p = { .node = node, .fan_in = form->fan_in };
    char *name = NULL;
    float *data = NULL;

    CEK_TRY(shape_check(form->suffix, form->rank, form->shape));
    p.public.rank = form->rank;
    p.public.count = 1;
    for (int i = 0; i < form->rank; i++) {
        p.public.shape[i] = form->shape[i];
        p.public.count *= form->shape[i];
    }
    /* Node 1 is the first of the sequence, which torch.nn.Sequential counts from 0. */
    CEK_TRY(cek__asprintf(&name, "%d.%s", node - 1, form->suffix));
    CEK_TRY(cek__calloc((size_t)p.public.count, sizeof *data, &data));
    p.public.name = name;
    p.public.data = data;
    *out = p;
    return CEK_OK;
out:
    free(name);
    free(data);
    return st;
}

static cek_status parameters_add(cek_model *model, cek__node *node)
{
    cek_status st;
    const cek__layer_class *layer = cek__layer_class_of(node->layer);
    cek__parameter_form forms[2];
    cek__parameter made[2] = { 0 };
    int count = layer->parameters ? layer->parameters(node, &model->nodes[node->input[0]], forms) : 0;

    node->weight = node->bias = -1;
    if (count == 0)
        return CEK_OK;
    for (int i = 0; i < count; i++)
        CEK_TRY(parameter_make(&forms[i], model->node_count, &made[i]));
    CEK_TRY(cek__realloc_array(model->parameter_count + (size_t)count, sizeof *model->parameters, &model->parameters));
    for (int i = 0; i < count; i++) {
        *(i == 0 ? &node->weight : &node->bias) = (int)model->parameter_count;
        model->parameters[model->parameter_count++] = made[i];
    }
    return CEK_OK;
out:
    parameter_clear(&made[0]);
    parameter_clear(&made[1]);
    return st;
}

/* ---- nodes ---- */

/* Appends `node`, whose layer, inputs and options are filled in. On failure the model is as it was. */
static cek_status node_add(cek_model *model, cek__node node, int *out)
{
    cek_status st;
    const cek__node *inputs[2] = { NULL, NULL };
    const char *name = cek__layer_class_of(node.layer)->name;

    if (out)
        *out = -1;
    if (!model)
        return cek__fail(CEK_INVALID, "%s: model is NULL", name);
    for (int i = 0; i < node.inputs; i++)
        if (node.input[i] < 0 || node.input[i] >= model->node_count)
            CEK_FAIL(CEK_INVALID, "input %d is no node, there are 0 to %d", node.input[i], model->node_count - 1);
    if (model->node_count == model->node_capacity) {
        int capacity = model->node_capacity ? 2 * model->node_capacity : 16;

        CEK_TRY(cek__realloc_array((size_t)capacity, sizeof *model->nodes, &model->nodes));
        model->node_capacity = capacity;
    }
    for (int i = 0; i < node.inputs; i++)
        inputs[i] = &model->nodes[node.input[i]];
    CEK_TRY(cek__layer_class_of(node.layer)->infer(&node, inputs));
    CEK_TRY(shape_check("output", node.shape.rank, node.shape.dim));
    CEK_TRY(parameters_add(model, &node));
    model->nodes[model->node_count] = node;
    if (out)
        *out = model->node_count;
    model->node_count++;
    return CEK_OK;
out:
    return cek__fail_prefix(st, "node %d (%s)", model->node_count, name);
}

cek_status cek_model_create(int rank, const int64_t *shape, cek_model **out)
{
    cek_status st;
    cek_model *model = NULL;
    cek__node input = { .layer = CEK__LAYER_INPUT, .weight = -1, .bias = -1 };

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(shape);
    if (rank != 1 && rank != 3)
        CEK_FAIL(CEK_INVALID, "model: an input of rank %d, it is {features} or {channels, height, width}", rank);
    CEK_TRY(shape_check("model: input", rank, shape));
    CEK_TRY(cek__calloc(1, sizeof *model, &model));
    model->scale = 1;
    input.shape.rank = rank;
    memcpy(input.shape.dim, shape, (size_t)rank * sizeof *shape);
    CEK_TRY(node_add(model, input, NULL));
    *out = model;
    return CEK_OK;
out:
    cek_model_free(model);
    return st;
}

void cek_model_free(cek_model *model)
{
    if (!model)
        return;
    for (size_t i = 0; i < model->parameter_count; i++)
        parameter_clear(&model->parameters[i]);
    free(model->parameters);
    free(model->nodes);
    free(model);
}

static void or_one(uint32_t *value)
{
    if (*value == 0)
        *value = 1;
}

cek_status cek_model_conv2d(cek_model *model, int input, const cek_conv2d_layer *layer, int *node)
{
    cek__node n = { .layer = CEK__LAYER_CONV, .inputs = 1, .input = { input } };
    cek_status st;

    if (node)
        *node = -1;
    CEK__NOT_NULL(model);
    CEK__NOT_NULL(layer);
    st = cek__options_take("cek_model_conv2d", &n.conv, sizeof n.conv, layer);
    if (st != CEK_OK)
        return st;
    or_one(&n.conv.stride_h);
    or_one(&n.conv.stride_w);
    or_one(&n.conv.dilation_h);
    or_one(&n.conv.dilation_w);
    or_one(&n.conv.groups);
    return node_add(model, n, node);
}

cek_status cek_model_linear(cek_model *model, int input, int64_t out, bool bias, int *node)
{
    return node_add(model,
                    (cek__node){ .layer = CEK__LAYER_LINEAR, .inputs = 1, .input = { input }, .linear = { out, bias } },
                    node);
}

cek_status cek_model_activation(cek_model *model, int input, cek_activation kind, int *node)
{
    return node_add(model,
                    (cek__node){ .layer = CEK__LAYER_ACTIVATION, .inputs = 1, .input = { input }, .activation = kind },
                    node);
}

cek_status cek_model_pool2d(cek_model *model, int input, const cek_pool2d_layer *layer, int *node)
{
    cek__node n = { .layer = CEK__LAYER_POOL, .inputs = 1, .input = { input } };
    cek_status st;

    if (node)
        *node = -1;
    CEK__NOT_NULL(model);
    CEK__NOT_NULL(layer);
    st = cek__options_take("cek_model_pool2d", &n.pool, sizeof n.pool, layer);
    return st != CEK_OK ? st : node_add(model, n, node);
}

cek_status cek_model_dropout(cek_model *model, int input, double p, int *node)
{
    return node_add(model, (cek__node){ .layer = CEK__LAYER_DROPOUT, .inputs = 1, .input = { input }, .dropout = p },
                    node);
}

cek_status cek_model_flatten(cek_model *model, int input, int *node)
{
    return node_add(model, (cek__node){ .layer = CEK__LAYER_FLATTEN, .inputs = 1, .input = { input } }, node);
}

cek_status cek_model_add(cek_model *model, int a, int b, int *node)
{
    return node_add(model, (cek__node){ .layer = CEK__LAYER_ADD, .inputs = 2, .input = { a, b } }, node);
}

/* ---- settings and questions ---- */

void cek_model_set_input_scale(cek_model *model, double scale, double offset)
{
    if (!model)
        return;
    model->scale = scale;
    model->offset = offset;
}

cek_status cek_model_set_dropout(cek_model *model, double p)
{
    CEK__NOT_NULL(model);
    if (!(p >= 0 && p < 1))
        return cek__fail(CEK_INVALID, "dropout: probability %g, it must be at least 0 and below 1", p);
    for (int i = 0; i < model->node_count; i++)
        if (model->nodes[i].layer == CEK__LAYER_DROPOUT)
            model->nodes[i].dropout = p;
    return CEK_OK;
}

static int shape_get(const cek__shape *from, int64_t shape[CEK_RANK_MAX])
{
    if (!shape)
        return from ? from->rank : 0;
    memset(shape, 0, CEK_RANK_MAX * sizeof *shape);
    if (!from)
        return 0;
    memcpy(shape, from->dim, (size_t)from->rank * sizeof *shape);
    return from->rank;
}

int cek_model_input_shape(const cek_model *model, int64_t shape[CEK_RANK_MAX])
{
    return shape_get(model ? &model->nodes[0].shape : NULL, shape);
}

int cek_model_output_shape(const cek_model *model, int64_t shape[CEK_RANK_MAX])
{
    return shape_get(model ? &model->nodes[model->node_count - 1].shape : NULL, shape);
}

int64_t cek__model_inputs(const cek_model *model)
{
    return cek__shape_elements(&model->nodes[0].shape);
}

int64_t cek__model_outputs(const cek_model *model)
{
    return cek__shape_elements(&model->nodes[model->node_count - 1].shape);
}

size_t cek_model_parameter_count(const cek_model *model)
{
    return model ? model->parameter_count : 0;
}

cek_status cek_model_parameter(const cek_model *model, size_t index, cek_parameter *out)
{
    CEK__NOT_NULL(out);
    *out = (cek_parameter){ 0 };
    CEK__NOT_NULL(model);
    if (index >= model->parameter_count)
        return cek__fail(CEK_INVALID, "parameter %zu: the model has %zu", index, model->parameter_count);
    *out = model->parameters[index].public;
    return CEK_OK;
}
