/* onnx_names.c - names become numbers: each is given once, and given before it is read, so that no cycle is left. */
#include <stdlib.h>
#include <string.h>

#include "nn/formats/onnx_inside.h"

enum { NAME_SHOWN = 200 };

static int by_name(const void *left, const void *right)
{
    return strcmp(((const cek__onnx_value *)left)->name, ((const cek__onnx_value *)right)->name);
}

static cek_status value_add(cek__onnx *o, cek__onnx_value made)
{
    cek__onnx_value *v;
    cek_status st;

    if (made.name[0] == '\0')
        CEK_FAIL(CEK_BAD_INPUT, "%s: an input, output or weight has no name", o->path);
    CEK__ONNX_ADD(o, values, v);
    *v = made;
out:
    return st;
}

/* What a node is given whole by an attribute is a tensor of the file, as constants are: one number, or a buffer. */
static cek__onnx_value given_by(cek__onnx *o, size_t n, const char *name)
{
    const cek__onnx_node *node = &o->nodes[n];
    const cek__onnx_attribute *a = node->attributes == 1 ? &o->attributes[node->first_attribute] : NULL;
    cek__onnx_value v = { .name = name, .node = (int)n, .tensor = CEK__ONNX_NONE, .form = CEK__ONNX_NONE };

    if (a == NULL || a->kind != CEK__ONNX_ATTRIBUTE_TENSOR || strcmp(node->op, "Constant") != 0 || *node->domain ||
        node->outputs != 1)
        return v;
    v.tensor = a->tensor;
    v.role = o->tensors[a->tensor].count > 1 ? CEK__ONNX_ROLE_BUFFER : CEK__ONNX_ROLE_NONE;
    o->tensors[a->tensor].name = name;
    return v;
}

/* Everything that is given: weights, inputs, what nodes give. */
static cek_status values_list(cek__onnx_reader *r)
{
    cek__onnx *o = r->o;
    cek_status st = CEK_OK;

    for (size_t i = 0; i < r->initialisers_count; i++) {
        int tensor = r->initialisers[i];

        CEK_TRY(value_add(o, (cek__onnx_value){ .name = o->tensors[tensor].name,
                                                .node = CEK__ONNX_NONE,
                                                .tensor = tensor,
                                                .form = CEK__ONNX_NONE }));
    }
    for (size_t i = 0; i < r->given_count; i++)
        CEK_TRY(value_add(o, r->given[i]));
    for (size_t n = 0; n < o->nodes_count; n++)
        for (size_t i = 0; i < o->nodes[n].outputs; i++) {
            const cek__onnx_link *link = &o->links[o->nodes[n].first_output + i];

            if (link->name[0] != '\0')
                CEK_TRY(value_add(o, given_by(o, n, link->name)));
        }
out:
    return st;
}

/* Into the order of names; an input that is a weight too, as old files list them, is the weight. */
static cek_status values_order(cek__onnx *o)
{
    size_t kept = 0;
    cek_status st = CEK_OK;

    if (o->values_count > 0)
        qsort(o->values, o->values_count, sizeof *o->values, by_name);
    for (size_t i = 0; i < o->values_count; i++) {
        cek__onnx_value *last = kept > 0 ? &o->values[kept - 1] : NULL, *here = &o->values[i];

        if (last == NULL || strcmp(last->name, here->name) != 0) {
            o->values[kept++] = *here;
            continue;
        }
        if ((last->tensor == CEK__ONNX_NONE) == (here->tensor == CEK__ONNX_NONE) || last->node != CEK__ONNX_NONE ||
            here->node != CEK__ONNX_NONE || (last->form != CEK__ONNX_NONE && last->tensor != CEK__ONNX_NONE))
            CEK_FAIL(CEK_BAD_INPUT, "%s: '%.*s' is given twice", o->path, NAME_SHOWN, here->name);
        if (here->tensor != CEK__ONNX_NONE)
            last->tensor = here->tensor;
        else
            last->form = here->form;
    }
    o->values_count = kept;
out:
    return st;
}

static int value_find(const cek__onnx *o, const char *name)
{
    cek__onnx_value key = { .name = name }, *found = NULL;

    if (o->values_count > 0)
        found = bsearch(&key, o->values, o->values_count, sizeof key, by_name);
    return found != NULL ? (int)(found - o->values) : CEK__ONNX_NONE;
}

/* What a node reads was given by the file or by a node before it. */
static cek_status node_link(cek__onnx *o, size_t n)
{
    const cek__onnx_node *node = &o->nodes[n];
    cek_status st = CEK_OK;

    if (node->op[0] == '\0' || node->outputs == 0)
        CEK_FAIL(CEK_BAD_INPUT, "%s: node %zu ('%.*s') has no operator or gives nothing", o->path, n, NAME_SHOWN,
                 node->name);
    for (size_t i = 0; i < node->inputs + node->outputs; i++) {
        cek__onnx_link *link =
            &o->links[i < node->inputs ? node->first_input + i : node->first_output + i - node->inputs];

        if (link->name[0] == '\0')
            continue;
        link->value = value_find(o, link->name);
        if (link->value == CEK__ONNX_NONE || (i < node->inputs && o->values[link->value].node >= (int)n))
            CEK_FAIL(CEK_BAD_INPUT, "%s: node %zu ('%.*s', %.*s) reads '%.*s', which nothing before it gives", o->path,
                     n, NAME_SHOWN, node->name, NAME_SHOWN, node->op, NAME_SHOWN, link->name);
    }
out:
    return st;
}

cek_status cek__onnx_names(cek__onnx_reader *r)
{
    cek__onnx *o = r->o;
    cek__onnx_link *input;
    cek_status st;

    CEK_TRY(values_list(r));
    CEK_TRY(values_order(o));
    for (size_t n = 0; n < o->nodes_count; n++)
        CEK_TRY(node_link(o, n));
    for (size_t i = 0; i < r->said_count; i++) {
        int value = value_find(o, r->said[i].name);

        if (value != CEK__ONNX_NONE)
            o->values[value].role = r->said[i].role;
    }
    for (size_t i = 0; i < r->given_count; i++) {
        int value = value_find(o, r->given[i].name);

        if (o->values[value].tensor != CEK__ONNX_NONE)
            continue;
        CEK__ONNX_ADD(o, inputs, input);
        *input = (cek__onnx_link){ r->given[i].name, value };
    }
    for (size_t i = 0; i < o->outputs_count; i++) {
        o->outputs[i].value = value_find(o, o->outputs[i].name);
        if (o->outputs[i].value == CEK__ONNX_NONE)
            CEK_FAIL(CEK_BAD_INPUT, "%s: nothing gives its output '%.*s'", o->path, NAME_SHOWN, o->outputs[i].name);
    }
    if (o->outputs_count == 0)
        CEK_FAIL(CEK_BAD_INPUT, "%s: it has no output", o->path);
out:
    return st;
}
