/* event_graph.c - a model's layers as the graph that TensorBoard draws: a box for each, in boxes by their names, with
 * the shapes that go between them.
 *
 * Field numbers are those of graph.proto, node_def.proto and attr_value.proto. Must not know: what a layer computes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "nn/model/model.h"
#include "nn/report/event_log.h"

enum { OP_SET = 22 }; /* of the graph: what readers of TensorFlow's graphs accept */

/* AttrValue under its name; `value` is empty afterwards. */
static cek_status attribute_add(cek__message *node, const char *name, cek__message *value)
{
    cek_status st;
    cek__message entry = { 0 };

    CEK_TRY(cek__message_text(&entry, 1, name));
    CEK_TRY(cek__message_within(&entry, 2, value));
    st = cek__message_within(node, 5, &entry);
out:
    free(entry.at);
    return st;
}

/* What is written at arrows: samples as "?". */
static cek_status shape_add(cek__message *node, const cek__dims *dims)
{
    cek_status st;
    cek__message size = { 0 }, shape = { 0 }, list = { 0 }, value = { 0 };

    for (int i = 0; i < dims->rank; i++) {
        CEK_TRY(cek__message_integer(&size, 1, dims->samples >> i & 1 ? -1 : dims->size[i]));
        CEK_TRY(cek__message_within(&shape, 2, &size));
    }
    CEK_TRY(cek__message_within(&list, 7, &shape));
    CEK_TRY(cek__message_within(&value, 1, &list));
    st = attribute_add(node, "_output_shapes", &value);
out:
    free(size.at);
    free(shape.at);
    free(list.at);
    free(value.at);
    return st;
}

static cek_status parameters_add(cek__message *node, const cek_model *model, int index)
{
    cek_status st;
    cek__message value = { 0 };
    int64_t count = 0;

    for (size_t i = 0; i < model->parameter_count; i++)
        if (model->parameters[i].node == index)
            count += model->parameters[i].public.count;
    CEK_TRY(cek__message_integer(&value, 3, count));
    st = attribute_add(node, "parameters", &value);
out:
    free(value.at);
    return st;
}

/* "layer1.0.conv1" as a box in a box in a box; what was called by its position also says what it is, "0-conv"; what
 * another node is called already, its number. */
static cek_status name_make(const cek_model *model, int index, char *const *before, char **out)
{
    cek_status st;
    const cek__node *node = &model->nodes[index];
    char *other;

    if (node->name == NULL || node->named)
        CEK_TRY(cek__strdup(cek__node_name(model, index), out));
    else
        CEK_TRY(cek__asprintf(out, "%s-%s", node->name, node->kind));
    for (char *at = *out; *at != '\0'; at++)
        if (*at == '.')
            *at = '/';
    for (int i = 0; i < index; i++)
        if (strcmp(before[i], *out) == 0) {
            CEK_TRY(cek__asprintf(&other, "%s-%d", *out, index));
            free(*out);
            *out = other;
        }
    return CEK_OK;
out:
    return st;
}

static cek_status node_add(cek__message *graph, const cek_model *model, int index, char *const *names)
{
    cek_status st;
    const cek__node *node = &model->nodes[index];
    cek__message m = { 0 }, value = { 0 };

    CEK_TRY(cek__message_text(&m, 1, names[index]));
    CEK_TRY(cek__message_text(&m, 2, node->kind));
    for (int i = 0; i < node->inputs; i++)
        CEK_TRY(cek__message_text(&m, 3, names[node->input[i]]));
    CEK_TRY(shape_add(&m, cek__node_dims(model, index)));
    CEK_TRY(parameters_add(&m, model, index));
    if (node->note[0] != '\0') {
        CEK_TRY(cek__message_text(&value, 2, node->note));
        CEK_TRY(attribute_add(&m, "how", &value));
    }
    st = cek__message_within(graph, 1, &m);
out:
    free(m.at);
    free(value.at);
    return st;
}

cek_status cek_event_log_graph(cek_event_log *log, const cek_model *model)
{
    cek_status st;
    char **names = NULL;
    cek__message graph = { 0 }, versions = { 0 }, *event;

    CEK__NOT_NULL(log);
    CEK__NOT_NULL(model);
    CEK_TRY(cek__calloc((size_t)model->node_count, sizeof *names, &names));
    for (int i = 0; i < model->node_count; i++)
        CEK_TRY(name_make(model, i, names, &names[i]));
    for (int i = 0; i < model->node_count; i++)
        CEK_TRY(node_add(&graph, model, i, names));
    CEK_TRY(cek__message_integer(&versions, 1, OP_SET));
    CEK_TRY(cek__message_within(&graph, 4, &versions));
    CEK_TRY(cek__event_begin(log, 0, &event));
    CEK_TRY(cek__message_within(event, CEK__EVENT_GRAPH, &graph));
    st = cek__records_add(&log->records);
out:
    for (int i = 0; names != NULL && i < model->node_count; i++)
        free(names[i]);
    free(names);
    free(graph.at);
    free(versions.at);
    return st;
}
