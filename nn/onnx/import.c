/* import.c - a model of an ONNX file: its inputs, its nodes in order, its output (see nn.h, call.h).
 *
 * Owns: what counts samples. The batch is an axis that the file names, or the first one, whatever number it has there; where the
 * nodes cannot be explained so and all sizes are numbers, the whole batch is one sample.
 * Must not know: what an operator computes. */
#include <stdlib.h>
#include <string.h>

#include "cekernels/parts.h"
#include "core/base/alloc.h"
#include "core/base/log.h"
#include "core/base/options.h"
#include "nn/onnx/operators.h"

enum { NAME_SHOWN = 200 };

typedef struct import {
    cek__onnx_import shared;
    const cek_onnx_options *options;
    int *nodes;   /* of the model, for each value; -1: none */
    bool *needed; /* of each node of the file */
} import;

/* ---- what the output needs ---- */

static cek_status output_find(const import *i, const cek__onnx_link **out)
{
    const cek__onnx *o = i->shared.onnx;

    for (size_t k = 0; k < o->outputs_count; k++)
        if (i->options->output == NULL || strcmp(o->outputs[k].name, i->options->output) == 0) {
            *out = &o->outputs[k];
            return CEK_OK;
        }
    return cek__fail(CEK_BAD_INPUT, "%s: it has no output%s%s", o->path, i->options->output ? " " : "",
                     i->options->output ? i->options->output : "");
}

/* Every node stands behind those that it reads. */
static void needed_mark(import *i, int output)
{
    const cek__onnx *o = i->shared.onnx;

    if (o->values[output].node != CEK__ONNX_NONE)
        i->needed[o->values[output].node] = true;
    for (size_t n = o->nodes_count; n-- > 0;)
        for (size_t k = 0; i->needed[n] && k < o->nodes[n].inputs; k++) {
            int value = o->links[o->nodes[n].first_input + k].value;

            if (value != CEK__ONNX_NONE && o->values[value].node != CEK__ONNX_NONE)
                i->needed[o->values[value].node] = true;
        }
}

/* ---- inputs ---- */

/* The number that options->sizes has for a name; 0: none. */
static int64_t size_given(const import *i, const char *name)
{
    const size_t length = strlen(name);
    char *end;

    for (const char *at = i->options->sizes; at != NULL; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, name, length) == 0 && at[length] == '=') {
            long long size = strtoll(at + length + 1, &end, 10);

            return (*end == '\0' || *end == ',') && size > 0 ? size : 0;
        }
    return 0;
}

/* An input's sizes, and which axis is the batch: -1 of a single number, and where the whole is one sample. */
static cek_status form_read(import *i, const cek__onnx_link *input, int64_t *shape, int *batch)
{
    cek_status st = CEK_OK;
    const cek__onnx *o = i->shared.onnx;
    const cek__onnx_form *form = &o->forms[o->values[input->value].form];

    *batch = -1;
    if (form->shaped && form->rank == 0 && !i->shared.whole)
        CEK_FAIL(CEK_UNSUPPORTED, "%s: input '%.*s' is a single number", o->path, NAME_SHOWN, input->name);
    if (!form->shaped)
        CEK_FAIL(CEK_UNSUPPORTED, "%s: input '%.*s' has no shape", o->path, NAME_SHOWN, input->name);
    for (uint32_t k = 0; k < form->rank; k++) {
        shape[k] = form->size[k];
        if (shape[k] > 0)
            continue;
        shape[k] = form->symbol[k] ? size_given(i, form->symbol[k]) : 0;
        if (shape[k] == 0 && (*batch >= 0 || i->shared.whole))
            CEK_FAIL(CEK_UNSUPPORTED, "%s: input '%.*s': the size of axis %u (%.*s) is not known: it has to be given",
                     o->path, NAME_SHOWN, input->name, k, NAME_SHOWN, form->symbol[k] ? form->symbol[k] : "no name");
        if (shape[k] == 0) {
            *batch = (int)k;
            shape[k] = 1;
        }
    }
    i->shared.fixed = *batch < 0;
    if (*batch < 0 && form->rank > 0 && !i->shared.whole)
        *batch = 0;
    i->shared.batch = *batch < 0 ? 1 : shape[*batch];
out:
    return st;
}

static cek_status shape_tell(import *i, int value)
{
    const cek__dims *dims = &i->shared.model->graph.flows[i->shared.flows[value]].dims;
    cek__fold_number sizes[CEK_RANK_MAX] = { 0 };

    for (int k = 0; k < dims->rank; k++) {
        if (dims->samples >> k & 1)
            sizes[k].factor = dims->size[k];
        else
            sizes[k].constant = dims->size[k];
    }
    return cek__fold_shape_set(&i->shared.fold, value, (uint32_t)dims->rank, sizes);
}

/* Samples as the model gets them, [N, the other axes], become what the file has. */
static cek_status input_shape(const cek__onnx_form *form, const int64_t *shape, int batch, cek__layer *l, int *flow)
{
    cek_status st;
    cek__dims dims = { .rank = (int)form->rank, .samples = batch < 0 ? 0 : 1 };
    int order[CEK_RANK_MAX], at = 1;

    if (batch >= 0)
        dims.size[0] = 1;
    else
        at = 0;
    for (int k = 0; k < (int)form->rank; k++) {
        order[k] = k == batch ? 0 : at;
        if (k != batch)
            dims.size[at++] = shape[k];
    }
    if (dims.rank == 0)
        dims = (cek__dims){ .rank = 1, .size = { 1 } };
    CEK_TRY(cek__view(l->graph, l->x[0], &dims, flow));
    if (form->rank > 0)
        st = cek__permute(l->graph, *flow, order, flow);
out:
    return st;
}

static cek_status input_add(import *i, const cek__onnx_link *input)
{
    cek_status st;
    const cek__onnx_form *form = &i->shared.onnx->forms[i->shared.onnx->values[input->value].form];
    int64_t shape[CEK_RANK_MAX] = { 0 }, sample[CEK_RANK_MAX], all = 1;
    int batch, rank = 0, node, flow = CEK__NOTHING;
    cek__layer l;

    if (form->type != CEK__ONNX_FLOAT && form->type != CEK__ONNX_INT64 && form->type != CEK__ONNX_INT32)
        CEK_FAIL(CEK_UNSUPPORTED, "%s: input '%.*s' is of %s: float, int32 and int64 are taken", i->shared.onnx->path,
                 NAME_SHOWN, input->name,
                 cek__onnx_type_name(form->type) ? cek__onnx_type_name(form->type) : "another type");
    CEK_TRY(form_read(i, input, shape, &batch));
    for (int k = 0; k < (int)form->rank; k++) {
        if (k != batch)
            sample[rank++] = shape[k];
        if (k != batch && __builtin_mul_overflow(all, shape[k], &all))
            CEK_FAIL(CEK_BAD_INPUT, "%s: input '%.*s' is too large", i->shared.onnx->path, NAME_SHOWN, input->name);
    }
    if (i->shared.whole || rank == 0) {
        sample[0] = all;
        rank = 1;
    }
    CEK_TRY(cek_model_create(0, NULL, &i->shared.model));
    node = cek_part_input(i->shared.model, "input", form->type == CEK__ONNX_FLOAT ? CEK_F32 : CEK_I32, rank, sample);
    CEK_TRY(cek_model_status(i->shared.model));
    if (i->shared.whole)
        cek__model_make_whole(i->shared.model);
    st = cek__layer_begin(&l, i->shared.model, "Input", 1, &node);
    if (st == CEK_OK)
        st = cek__layer_call(&l, input->name);
    if (st == CEK_OK)
        st = input_shape(form, shape, batch, &l, &flow);
    CEK_TRY(cek__layer_end(&l, st, flow, &i->nodes[input->value]));
    i->shared.flows[input->value] = flow;
    st = shape_tell(i, input->value);
out:
    return st;
}

/* ---- nodes ---- */

static const cek__onnx_operator *kind_of(const cek__onnx_node *node)
{
    return node->domain[0] == '\0' ? cek__onnx_operator_find(node->op) : NULL;
}

/* Nodes of the model that it reads, for people. */
static int inputs_list(const import *i, const cek__onnx_node *node, int *list)
{
    int count = 0;

    for (size_t k = 0; k < node->inputs && count < CEK__NODE_INPUTS; k++) {
        int value = i->shared.onnx->links[node->first_input + k].value;

        if (value != CEK__ONNX_NONE && i->nodes[value] >= 0)
            list[count++] = i->nodes[value];
    }
    return count;
}

static cek_status node_convert(import *i, const cek__onnx_node *node, const cek__onnx_operator *kind)
{
    cek_status st;
    const cek__onnx_link *outputs = &i->shared.onnx->links[node->first_output];
    cek__onnx_call call = { .import = &i->shared, .node = node, .argument = kind->argument };
    int list[CEK__NODE_INPUTS], count = inputs_list(i, node, list), number;

    st = cek__layer_begin(&call.layer, i->shared.model, kind->name, count, list);
    call.graph = call.layer.graph;
    if (st == CEK_OK)
        st = cek__layer_call(&call.layer, outputs[0].value != CEK__ONNX_NONE ? outputs[0].name : node->name);
    if (st == CEK_OK)
        st = kind->add(&call);
    CEK_TRY(cek__layer_end(&call.layer, st, call.out[0], &number));
    for (size_t k = 0; k < node->outputs && k < CEK__CALL_OUTPUTS; k++) {
        if (outputs[k].value == CEK__ONNX_NONE || !call.out[k])
            continue;
        i->shared.flows[outputs[k].value] = call.out[k];
        i->nodes[outputs[k].value] = number;
        CEK_TRY(shape_tell(i, outputs[k].value));
    }
out:
    return st;
}

/* Before anything is added: what there is no operator for, and nothing else, is said of a file that has such. */
static cek_status operators_check(const import *i)
{
    const cek__onnx *o = i->shared.onnx;

    for (size_t n = 0; n < o->nodes_count; n++) {
        const cek__onnx_node *node = &o->nodes[n];

        if (i->needed[n] && (node->outputs == 0 || (!kind_of(node) && !cek__fold_knows(node))))
            return cek__fail(CEK_UNSUPPORTED, "%s: node %zu ('%.*s'): there is no operator %.*s%s%.*s here", o->path, n,
                             NAME_SHOWN, node->name, NAME_SHOWN, node->domain, *node->domain ? "." : "", NAME_SHOWN,
                             node->op);
    }
    return CEK_OK;
}

static cek_status nodes_convert(import *i)
{
    cek_status st = CEK_OK;
    const cek__onnx *o = i->shared.onnx;

    for (size_t n = 0; n < o->nodes_count; n++) {
        const cek__onnx_node *node = &o->nodes[n];
        const cek__onnx_operator *kind = kind_of(node);
        bool known;

        if (!i->needed[n])
            continue;
        CEK_TRY(cek__fold_node(&i->shared.fold, n, &known));
        if (known)
            continue;
        if (kind == NULL)
            CEK_FAIL(CEK_UNSUPPORTED, "%s: node %zu ('%.*s', %.*s): what it is given is not known before it runs",
                     o->path, n, NAME_SHOWN, node->name, NAME_SHOWN, node->op);
        st = node_convert(i, node, kind);
        if (st == CEK_INVALID)
            st = cek__fail(CEK_UNSUPPORTED, "%s", cek_error_text());
        if (st != CEK_OK)
            return cek__fail_prefix(st, "%s", o->path);
    }
out:
    return st;
}

/* ---- output ---- */

/* Samples first, each with all that it has. */
static cek_status output_shape(cek__layer *l, int *flow)
{
    cek_status st = CEK_OK;
    cek__dims dims = l->graph->flows[*flow].dims;
    int order[CEK_RANK_MAX], at = 1, axis = 0;

    if (l->graph->flows[*flow].type == CEK_I32)
        CEK_TRY(cek__cast(l->graph, *flow, CEK_DTYPE_NONE, flow));
    if (!dims.samples) { /* the whole batch is one */
        if (dims.rank == CEK_RANK_MAX)
            CEK_FAIL(CEK_UNSUPPORTED, "an output of %d axes", CEK_RANK_MAX);
        memmove(dims.size + 1, dims.size, (size_t)dims.rank++ * sizeof *dims.size);
        dims.size[0] = 1;
        dims.samples = 1;
        return cek__expand(l->graph, *flow, &dims, flow);
    }
    while (axis < dims.rank && !(dims.samples >> axis & 1))
        axis++;
    for (int k = 0; k < dims.rank && axis < dims.rank; k++)
        order[k == axis ? 0 : at++] = k;
    if (axis < dims.rank)
        CEK_TRY(cek__permute(l->graph, *flow, order, flow));
    dims = l->graph->flows[*flow].dims;
    if (dims.samples && dims.size[0] > 1) {
        if (dims.rank == CEK_RANK_MAX || dims.outside)
            CEK_FAIL(CEK_UNSUPPORTED, "the samples lie among other elements");
        memmove(dims.size + 1, dims.size, (size_t)dims.rank * sizeof *dims.size);
        dims.size[0] = 1;
        dims.rank++;
        CEK_TRY(cek__view(l->graph, *flow, &dims, flow));
    }
out:
    return st;
}

static cek_status output_add(import *i, const cek__onnx_link *output)
{
    cek_status st;
    int flow = i->shared.flows[output->value], node;
    cek__layer l;

    if (!flow)
        CEK_FAIL(CEK_UNSUPPORTED, "%s: output '%.*s' does not depend on the input", i->shared.onnx->path, NAME_SHOWN,
                 output->name);
    if (!i->shared.model->graph.flows[flow].dims.samples && !i->shared.whole)
        CEK_FAIL(CEK_UNSUPPORTED, "%s: output '%.*s' has nothing of each sample", i->shared.onnx->path, NAME_SHOWN,
                 output->name);
    st = cek__layer_begin(&l, i->shared.model, "Output", 1, &i->nodes[output->value]);
    if (st == CEK_OK)
        st = cek__layer_call(&l, output->name);
    if (st == CEK_OK)
        st = output_shape(&l, &flow);
    CEK_TRY(cek__layer_end(&l, st, flow, &node));
    st = cek_model_set_output(i->shared.model, node);
out:
    return st == CEK_INVALID ? cek__fail(CEK_UNSUPPORTED, "%s: %s", i->shared.onnx->path, cek_error_text()) : st;
}

/* ---- all of it ---- */

static cek_status inputs_add(import *i)
{
    cek_status st = CEK_OK;
    const cek__onnx *o = i->shared.onnx;

    if (o->inputs_count != 1)
        CEK_FAIL(CEK_UNSUPPORTED, "%s: it has %zu inputs, one is taken", o->path, o->inputs_count);
    st = input_add(i, &o->inputs[0]);
out:
    return st;
}

static cek_status import_run(const cek__onnx *onnx, const cek_onnx_options *options, bool whole, cek_model **out)
{
    cek_status st;
import i = {.shared = {.onnx = onnx, .whole = whole }, .options = options };
    const cek__onnx_link *output = NULL;

    *out = NULL;
    CEK_TRY(cek__fold_begin(onnx, &i.shared.fold));
    CEK_TRY(cek__calloc(onnx->values_count + 1, sizeof *i.shared.flows, &i.shared.flows));
    CEK_TRY(cek__alloc_array(onnx->values_count + 1, sizeof *i.nodes, &i.nodes));
    for (size_t k = 0; k < onnx->values_count; k++)
        i.nodes[k] = -1;
    CEK_TRY(cek__calloc(onnx->nodes_count + 1, sizeof *i.needed, &i.needed));
    CEK_TRY(output_find(&i, &output));
    needed_mark(&i, output->value);
    CEK_TRY(operators_check(&i));
    CEK_TRY(inputs_add(&i));
    CEK_TRY(nodes_convert(&i));
    CEK_TRY(output_add(&i, output));
    *out = i.shared.model;
    i.shared.model = NULL;
out:
    cek_model_free(i.shared.model);
    cek__fold_end(&i.shared.fold);
    free(i.shared.flows);
    free(i.nodes);
    free(i.needed);
    return st;
}

static bool all_sizes_known(const cek__onnx *o)
{
    for (size_t k = 0; k < o->inputs_count; k++) {
        const cek__onnx_form *form = &o->forms[o->values[o->inputs[k].value].form];

        for (uint32_t a = 0; a < form->rank; a++)
            if (form->size[a] < 0)
                return false;
    }
    return true;
}

cek_status cek_model_read_onnx(const char *path, const cek_onnx_options *options, cek_model **out)
{
    cek_status st;
    cek__onnx *onnx = NULL;
    cek_onnx_options o = { 0 };
    char *why = NULL;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(path);
    if (options)
        CEK_TRY(cek__options_take("cek_model_read_onnx", &o, sizeof o, options));
    CEK_TRY(cek__onnx_read(path, &onnx));
    st = import_run(onnx, &o, false, out);
    if ((st == CEK_UNSUPPORTED || st == CEK_BAD_INPUT) && all_sizes_known(onnx)) {
        CEK_TRY(cek__strdup(cek_error_text(), &why));
        st = import_run(onnx, &o, true, out);
        if (st == CEK_OK)
            cek__log(CEK_LOG_WARN, "%s: it runs at the batch that it was written with, as one sample: %s", path, why);
        else
            st = cek__fail(st, "%s", why);
    }
out:
    free(why);
    cek__onnx_free(onnx);
    return st;
}
