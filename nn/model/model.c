/* model.c - a model's life, its names, and the questions about it (see model.h, nn.h).
 *
 * Must not know: what a layer computes (nn/layers), files (state.c). */
#include "nn/model/model.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cekernels/parts.h"
#include "core/base/alloc.h"
#include "core/base/options.h"
#include "core/base/status.h"
#include "nn/model/layer.h"

const cek__dims *cek__node_dims(const cek_model *model, int node)
{
    return &model->graph.flows[model->nodes[node].flow].dims;
}

const char *cek__node_name(const cek_model *model, int node)
{
    return model->nodes[node].name ? model->nodes[node].name : "input";
}

int cek__model_find(const cek_model *model, const char *name)
{
    for (int i = model->node_count; i-- > 0;)
        if (strcmp(cek__node_name(model, i), name) == 0)
            return i;
    return -1;
}

/* Axes behind that of the samples. */
static int first_axis(const cek__dims *dims)
{
    return dims->rank > 0 && dims->samples & 1;
}

char *cek__dims_text(const cek__dims *dims, char text[CEK__SHAPE_TEXT])
{
    int first = first_axis(dims);
    size_t used = 0;

    text[0] = '\0';
    for (int i = first; i < dims->rank; i++)
        used += (size_t)snprintf(text + used, CEK__SHAPE_TEXT - used, "%s%lld", i > first ? "x" : "",
                                 (long long)dims->size[i]);
    return text;
}

cek_status cek__shape_check(const char *what, int rank, const int64_t *dim)
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

/* ---- life ---- */

static cek_status input_add(cek_model *model, int rank, const int64_t *shape)
{
    cek_status st;
    cek__part part = { .kind = CEK__PART_INPUT, .dims = { .rank = rank + 1, .samples = 1, .size = { 1 } } };

    memcpy(part.dims.size + 1, shape, (size_t)rank * sizeof *shape);
    CEK_TRY(cek__calloc(1, sizeof *model->nodes, &model->nodes));
    model->node_count = model->node_capacity = 1;
    model->nodes[0].kind = "input";
    CEK_TRY(cek__strdup("input", &model->nodes[0].label));
    model->graph.node = -1;
    model->graph.name = model->nodes[0].label;
    model->input_count = 1;
    st = cek__graph_add(&model->graph, &part, &model->nodes[0].flow);
out:
    return st;
}

cek_status cek_model_create(int rank, const int64_t *shape, cek_model **out)
{
    cek_status st;
    cek_model *model = NULL;

    CEK__NOT_NULL(out);
    *out = NULL;
    if (rank < 0 || rank > CEK__INPUT_RANK_MAX)
        CEK_FAIL(CEK_INVALID, "model: an input of rank %d, it is 1 to %d, or 0: none yet", rank, CEK__INPUT_RANK_MAX);
    if (rank > 0)
        CEK__NOT_NULL(shape);
    CEK_TRY(cek__shape_check("model: input", rank, shape));
    CEK_TRY(cek__calloc(1, sizeof *model, &model));
    CEK_TRY(cek__graph_init(&model->graph));
    model->scale = 1;
    model->output = -1;
    if (rank > 0)
        CEK_TRY(input_add(model, rank, shape));
    *out = model;
    return CEK_OK;
out:
    cek_model_free(model);
    return st;
}

void cek__model_make_whole(cek_model *model)
{
    model->whole = true;
    for (size_t i = 0; i < model->input_count; i++) {
        cek__flow *flow = &model->graph.flows[model->nodes[model->inputs[i]].flow];

        flow->dims.samples = model->graph.parts[flow->part].dims.samples = 0;
    }
}

void cek__tensor_clear(cek_parameter *p)
{
    free((char *)p->name);
    free(p->data);
    *p = (cek_parameter){ 0 };
}

void cek_model_free(cek_model *model)
{
    if (!model)
        return;
    cek__graph_clear(&model->graph);
    for (size_t i = 0; i < model->parameter_count; i++)
        cek__tensor_clear(&model->parameters[i].public);
    for (int i = 0; i < model->node_count; i++) {
        free(model->nodes[i].name);
        free(model->nodes[i].label);
    }
    for (int i = 0; i < CEK__SCOPES; i++)
        free(model->scopes[i].prefix);
    for (size_t i = 0; i < model->buffer_count; i++)
        cek__tensor_clear(&model->buffers[i].public);
    free(model->buffers);
    free(model->constants.values);
    free(model->labels.weight);
    free(model->next_name);
    cek__class_names_clear(&model->class_names);
    free(model->failure);
    free(model->parameters);
    free(model->nodes);
    free(model);
}

/* ---- names ---- */

cek_status cek__name_check(const char *name)
{
    size_t length = strlen(name);

    if (length < 1 || length > CEK_NAME_MAX)
        return cek__fail(CEK_INVALID, "a name of %zu characters, it has 1 to %d", length, CEK_NAME_MAX);
    for (const char *at = name; *at; at++)
        if (!isalnum((unsigned char)*at) && !strchr("._-", *at))
            return cek__fail(CEK_INVALID, "character %d of the name \"%.*s...\" is no letter, digit, . _ or -",
                             (int)(at - name) + 1, (int)(at - name), name);
    return CEK_OK;
}

cek_status cek_model_name(cek_model *model, const char *name)
{
    cek_status st;
    char *copy;

    CEK__NOT_NULL(model);
    CEK__NOT_NULL(name);
    CEK_TRY(cek__name_check(name));
    CEK_TRY(cek__strdup(name, &copy));
    free(model->next_name);
    model->next_name = copy;
out:
    return st;
}

cek_status cek_model_enter(cek_model *model, const char *name)
{
    cek_status st;
    const char *outer;

    CEK__NOT_NULL(model);
    CEK__NOT_NULL(name);
    CEK_TRY(cek__name_check(name));
    if (model->depth + 1 == CEK__SCOPES)
        CEK_FAIL(CEK_INVALID, "%s: %d names are entered already, one within the other", name, model->depth);
    outer = model->scopes[model->depth].prefix;
    CEK_TRY(cek__asprintf(&model->scopes[model->depth + 1].prefix, "%s%s.", outer ? outer : "", name));
    model->scopes[++model->depth].position = 0;
out:
    return st;
}

cek_status cek_model_leave(cek_model *model)
{
    CEK__NOT_NULL(model);
    if (model->depth == 0)
        return cek__fail(CEK_INVALID, "cek_model_leave: no name is entered");
    free(model->scopes[model->depth].prefix);
    model->scopes[model->depth--] = (cek__scope){ 0 };
    model->scopes[model->depth].position++;
    return CEK_OK;
}

/* ---- settings and questions ---- */

cek_status cek_model_status(const cek_model *model)
{
    CEK__NOT_NULL(model);
    if (model->failed == CEK_OK)
        return CEK_OK;
    return cek__fail(model->failed, "%s", model->failure ? model->failure : "a part");
}

int cek_model_shape(const cek_model *model, int node, int64_t shape[CEK_RANK_MAX])
{
    const cek__dims *dims;

    if (shape)
        memset(shape, 0, CEK_RANK_MAX * sizeof *shape);
    if (!model || node < 0 || node >= model->node_count)
        return 0;
    dims = cek__node_dims(model, node);
    for (int i = 0; shape && i < dims->rank; i++)
        shape[i] = dims->samples >> i & 1 ? -dims->size[i] : dims->size[i];
    return dims->rank;
}

cek_status cek__node_check(const cek_model *model, int node, const char *what)
{
    if (node >= 0 && node < model->node_count)
        return CEK_OK;
    if (node == -1 && (model->failed != CEK_OK || model->failure))
        return model->failed != CEK_OK ? cek_model_status(model) : cek__fail(CEK_INVALID, "%s", model->failure);
    if (model->node_count == 0)
        return cek__fail(CEK_INVALID, "%s %d is no node, there are none yet", what, node);
    return cek__fail(CEK_INVALID, "%s %d is no node, there are 0 to %d", what, node, model->node_count - 1);
}

cek_status cek_model_set_output(cek_model *model, int node)
{
    cek_status st;

    CEK__NOT_NULL(model);
    CEK_TRY(cek__node_check(model, node, "output"));
    model->output = node;
out:
    return st;
}

int cek_model_output(const cek_model *model)
{
    return model ? cek__model_output(model) : -1;
}

size_t cek__model_tensor_count(const cek_model *model)
{
    return model->parameter_count + model->buffer_count;
}

const cek_parameter *cek__model_tensor(const cek_model *model, size_t index)
{
    return index < model->parameter_count ? &model->parameters[index].public
                                          : &model->buffers[index - model->parameter_count].public;
}

bool cek__model_mixes_samples(const cek_model *model)
{
    for (int i = 1; i < model->graph.part_count; i++)
        if (model->graph.parts[i].kind == CEK__PART_REDUCE && model->graph.parts[i].reduce.masked)
            return true;
    return false;
}

int64_t cek__node_elements(const cek_model *model, int node)
{
    const cek__dims *dims = cek__node_dims(model, node);

    return cek__dims_elements(dims, 0, dims->rank, 1);
}

int cek__model_output(const cek_model *model)
{
    return model->output < 0 ? model->node_count - 1 : model->output;
}

/* Of a sample. */
static int64_t target_elements(const cek_model *model)
{
    const cek__dims *dims = &model->graph.flows[model->target].dims;

    return cek__dims_elements(dims, 0, dims->rank, 1);
}

bool cek__model_own_targets(const cek_model *model, cek__targets *out)
{
    *out = (cek__targets){ CEK_I32, 1 }; /* of a loss that reads none */
    if (!model->loss || !model->target)
        return model->loss != 0;
    out->columns = (uint32_t)target_elements(model);
    if (model->graph.flows[model->target].type != CEK_I32)
        out->type = CEK_F32;
    return true;
}

cek_status cek__model_weigh(const cek_model *model, const int32_t *labels, const int64_t *rows, int64_t samples,
                            cek__amount *out)
{
    cek_status st = CEK_OK;
    const cek__label_weights *w = &model->labels;
    int64_t columns = target_elements(model), count = samples * columns;

    *out = (cek__amount){ .labels = 0 };
    for (int64_t i = 0; i < count; i++) {
        if (w->ignores && labels[i] == w->ignored)
            continue;
        if (labels[i] < 0 || labels[i] >= w->classes)
            CEK_FAIL(CEK_BAD_INPUT, "label %d of sample %lld is outside the loss's %lld classes", labels[i],
                     (long long)(rows ? rows[i / columns] : i / columns), (long long)w->classes);
        out->weight += w->weight ? w->weight[labels[i]] : 1;
        out->labels++;
    }
out:
    return st;
}

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
    for (int i = 0; i < model->graph.part_count; i++)
        if (model->graph.parts[i].kind == CEK__PART_DROPOUT) {
            model->graph.parts[i].dropout.p = p;
            snprintf(model->nodes[model->graph.parts[i].node].note, CEK__NODE_NOTE, "%g", p);
        }
    return CEK_OK;
}

int cek__dims_sample(const cek__dims *from, int64_t shape[CEK_RANK_MAX])
{
    int first = from ? first_axis(from) : 0, rank = from ? from->rank - first : 0;

    if (!shape)
        return rank;
    memset(shape, 0, CEK_RANK_MAX * sizeof *shape);
    if (from)
        memcpy(shape, from->size + first, (size_t)rank * sizeof *shape);
    return rank;
}

int cek_model_input_shape(const cek_model *model, int64_t shape[CEK_RANK_MAX])
{
    return cek__dims_sample(model && model->input_count > 0 ? cek__node_dims(model, model->inputs[0]) : NULL, shape);
}

size_t cek_model_input_count(const cek_model *model)
{
    return model ? model->input_count : 0;
}

cek_status cek_model_input(const cek_model *model, size_t index, cek_input *out)
{
    cek_status st;
    cek_input input = { .size = sizeof input };

    CEK__NOT_NULL(model);
    CEK__NOT_NULL(out);
    CEK_TRY(cek__results_clear("cek_model_input", out));
    if (index >= model->input_count)
        CEK_FAIL(CEK_INVALID, "input %zu of a model that has %zu", index, model->input_count);
    input.type = model->graph.flows[model->nodes[model->inputs[index]].flow].type == CEK_I32 ? CEK_I32 : CEK_F32;
    input.name = cek__node_name(model, model->inputs[index]);
    input.rank = cek__dims_sample(cek__node_dims(model, model->inputs[index]), input.shape);
    cek__results_give(out, &input, sizeof input);
out:
    return st;
}

int cek_model_output_shape(const cek_model *model, int64_t shape[CEK_RANK_MAX])
{
    return cek__dims_sample(model && model->node_count > 0 ? cek__node_dims(model, cek__model_output(model)) : NULL,
                            shape);
}

cek_status cek__model_take_input_type(const cek_model *model, cek_dtype asked, cek_dtype *out)
{
    bool whole = true;

    *out = CEK_DTYPE_NONE;
    if (model->input_count == 0)
        return cek__fail(CEK_INVALID, "the model has no input");
    for (size_t i = 0; i < model->input_count; i++)
        whole &= model->graph.flows[model->nodes[model->inputs[i]].flow].type == CEK_I32;
    *out = asked != CEK_DTYPE_NONE ? asked : whole ? CEK_I32 : CEK_F32;
    if (whole ? *out == CEK_I32 : *out == CEK_U8 || *out == CEK_F32)
        return CEK_OK;
    return cek__fail(CEK_INVALID, "inputs of type %s: the model takes %s", cek_dtype_name(*out),
                     whole ? "whole numbers, i32" : "data, u8 or f32");
}

int64_t cek__model_inputs(const cek_model *model, size_t input)
{
    return cek__node_elements(model, model->inputs[input]);
}

int64_t cek__model_outputs(const cek_model *model)
{
    return cek__node_elements(model, cek__model_output(model));
}

/* Tensor `index` of those from `first` on, which are `count`. */
static cek_status tensor_get(const cek_model *model, const char *what, size_t first, size_t count, size_t index,
                             cek_parameter *out)
{
    if (index >= count)
        return cek__fail(CEK_INVALID, "%s %zu: the model has %zu", what, index, count);
    *out = *cek__model_tensor(model, first + index);
    return CEK_OK;
}

size_t cek_model_buffer_count(const cek_model *model)
{
    return model ? model->buffer_count : 0;
}

cek_status cek_model_buffer(const cek_model *model, size_t index, cek_parameter *out)
{
    CEK__NOT_NULL(out);
    *out = (cek_parameter){ 0 };
    CEK__NOT_NULL(model);
    return tensor_get(model, "buffer", model->parameter_count, model->buffer_count, index, out);
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
    return tensor_get(model, "parameter", 0, model->parameter_count, index, out);
}

cek_status cek_model_find_parameter(const cek_model *model, const char *name, size_t *index)
{
    CEK__NOT_NULL(index);
    *index = 0;
    CEK__NOT_NULL(model);
    CEK__NOT_NULL(name);
    for (size_t i = 0; i < model->parameter_count; i++)
        if (strcmp(model->parameters[i].public.name, name) == 0) {
            *index = i;
            return CEK_OK;
        }
    return cek__fail(CEK_NOT_FOUND, "no parameter is called \"%s\"", name);
}
