/* import.c - a model of an ONNX file: its inputs (inputs.c), its nodes in order, its output (see nn.h, call.h).
 *
 * Where the nodes cannot be explained with an axis that counts samples, and all sizes are numbers, the whole batch
 * is one sample.
 * Must not know: what an operator computes. */
#include <stdlib.h>
#include <string.h>

#include "cekernels/parts.h"
#include "core/base/alloc.h"
#include "core/base/log.h"
#include "core/base/options.h"
#include "nn/onnx/import.h"
#include "nn/onnx/operators.h"

/* ---- what the output needs ---- */

static cek_status output_find(const cek__onnx_reading *i, const cek__onnx_link **out)
{
    const cek__onnx *o = i->shared.onnx;

    for (size_t k = 0; k < o->outputs_count; k++)
        if (i->options->output == NULL || strcmp(o->outputs[k].name, i->options->output) == 0) {
            *out = &o->outputs[k];
            return CEK_OK;
        }
    return cek__fail(CEK_BAD_INPUT, "it has no output%s%s", i->options->output ? " " : "",
                     i->options->output ? i->options->output : "");
}

/* By one more; a value that is a tensor needs nothing. */
static void value_mark(cek__onnx_reading *i, int value)
{
    const cek__onnx_value *v = &i->shared.onnx->values[value];

    i->shared.readers[value]++;
    if (v->node != CEK__ONNX_NONE && v->tensor == CEK__ONNX_NONE)
        i->needed[v->node] = true;
}

/* Every node stands behind those that it reads. */
static void needed_mark(cek__onnx_reading *i, int output)
{
    const cek__onnx *o = i->shared.onnx;

    value_mark(i, output);
    for (size_t n = o->nodes_count; n-- > 0;)
        for (size_t k = 0; i->needed[n] && k < o->nodes[n].inputs; k++) {
            int value = o->links[o->nodes[n].first_input + k].value;

            if (value != CEK__ONNX_NONE)
                value_mark(i, value);
        }
}

/* ---- nodes ---- */

static const cek__onnx_operator *kind_of(const cek__onnx_node *node)
{
    return node->domain[0] == '\0' ? cek__onnx_operator_find(node->op) : NULL;
}

/* Nodes of the model that it reads, for people. */
static int inputs_list(const cek__onnx_reading *i, const cek__onnx_node *node, int *list)
{
    int count = 0;

    for (size_t k = 0; k < node->inputs && count < CEK__NODE_INPUTS; k++) {
        int value = i->shared.onnx->links[node->first_input + k].value;

        if (value != CEK__ONNX_NONE && i->nodes[value] >= 0)
            list[count++] = i->nodes[value];
    }
    return count;
}

/* For a node that reads it: a part of that node's layer. */
static cek_status weight_compute(cek__onnx_call *reader, int value, int *flow)
{
    cek_status st;
    cek__onnx_import *import = reader->import;
    const cek__onnx_node *node = &import->onnx->nodes[import->onnx->values[value].node];
    const cek__onnx_operator *kind = kind_of(node);
    cek__onnx_call call = { .import = import, .node = node, .layer = reader->layer, .graph = reader->graph };

    if (kind == NULL || import->within == CEK__CALL_WITHIN)
        CEK_FAIL(CEK_UNSUPPORTED, "its input '%.*s' is computed of weights by %s", CEK__IMPORT_NAME_SHOWN,
                 import->onnx->values[value].name, kind ? "more than 64 nodes" : "what is no part");
    call.argument = kind->argument;
    import->within++;
    st = kind->add(&call);
    import->within--;
    reader->layer = call.layer;
    *flow = call.out[0];
out:
    return st;
}

static cek_status node_convert(cek__onnx_reading *i, const cek__onnx_node *node, const cek__onnx_operator *kind)
{
    cek_status st;
    const cek__onnx_link *outputs = &i->shared.onnx->links[node->first_output];
    cek__onnx_call call = { .import = &i->shared, .node = node, .argument = kind->argument };
    int list[CEK__NODE_INPUTS], count = inputs_list(i, node, list), number;

    st = cek__layer_begin(&call.layer, i->shared.model, kind->name, count, list);
    call.graph = call.layer.graph;
    if (st == CEK_OK)
        st = cek__layer_call(&call.layer, outputs[0].value != CEK__ONNX_NONE ? outputs[0].name : node->name);
    call.scalar = node->inputs > 0;
    for (size_t k = 0; k < node->inputs; k++)
        call.scalar &= !cek__call_has(&call, k) || cek__call_scalar(&call, k);
    if (st == CEK_OK)
        st = kind->add(&call);
    CEK_TRY(cek__layer_end(&call.layer, st, call.out[0], &number));
    for (size_t k = 0; k < node->outputs && k < CEK__CALL_OUTPUTS; k++) {
        if (outputs[k].value == CEK__ONNX_NONE || !call.out[k])
            continue;
        i->shared.flows[outputs[k].value] = call.out[k];
        i->nodes[outputs[k].value] = number;
        CEK_TRY(cek__onnx_shape_tell(i, outputs[k].value, k == 0 && call.scalar));
    }
out:
    return st;
}

/* Before anything is added: what there is no operator for, and nothing else, is said of a file that has such. */
static cek_status operators_check(const cek__onnx_reading *i)
{
    const cek__onnx *o = i->shared.onnx;

    for (size_t n = 0; n < o->nodes_count; n++) {
        const cek__onnx_node *node = &o->nodes[n];

        if (i->needed[n] && (node->outputs == 0 || (!kind_of(node) && !cek__fold_knows(node))))
            return cek__fail(CEK_UNSUPPORTED, "node %zu ('%.*s'): there is no operator %.*s%s%.*s here", n,
                             CEK__IMPORT_NAME_SHOWN, node->name, CEK__IMPORT_NAME_SHOWN, node->domain,
                             *node->domain ? "." : "", CEK__IMPORT_NAME_SHOWN, node->op);
    }
    return CEK_OK;
}

static cek_status nodes_convert(cek__onnx_reading *i)
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
            CEK_FAIL(CEK_UNSUPPORTED, "node %zu ('%.*s', %.*s): what it is given is not known before it runs", n,
                     CEK__IMPORT_NAME_SHOWN, node->name, CEK__IMPORT_NAME_SHOWN, node->op);
        st = node_convert(i, node, kind);
        if (st != CEK_OK)
            return cek__fail_prefix(st, "node %zu ('%.*s')", n, CEK__IMPORT_NAME_SHOWN, node->name);
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

static cek_status output_add(cek__onnx_reading *i, const cek__onnx_link *output)
{
    cek_status st;
    int flow = i->shared.flows[output->value], node;
    uint32_t samples;
    cek__layer l;

    if (!flow)
        CEK_FAIL(CEK_UNSUPPORTED, "output '%.*s' does not depend on the input", CEK__IMPORT_NAME_SHOWN, output->name);
    samples = i->shared.model->graph.flows[flow].dims.samples;
    if (!samples && !i->shared.whole)
        CEK_FAIL(CEK_UNSUPPORTED, "output '%.*s' has nothing of each sample", CEK__IMPORT_NAME_SHOWN, output->name);
    if (samples & (samples - 1))
        CEK_FAIL(CEK_UNSUPPORTED, "output '%.*s' counts samples along several axes", CEK__IMPORT_NAME_SHOWN,
                 output->name);
    st = cek__layer_begin(&l, i->shared.model, "Output", 1, &i->nodes[output->value]);
    if (st == CEK_OK)
        st = cek__layer_call(&l, output->name);
    if (st == CEK_OK)
        st = output_shape(&l, &flow);
    CEK_TRY(cek__layer_end(&l, st, flow, &node));
    st = cek_model_set_output(i->shared.model, node);
out:
    return st;
}

/* ---- all of it ---- */

/* Of the inputs that the output depends on. */
static bool sizes_known(const cek__onnx_reading *i)
{
    const cek__onnx *o = i->shared.onnx;

    for (size_t k = 0; k < o->inputs_count; k++) {
        const int value = o->inputs[k].value;
        const cek__onnx_form *form = &o->forms[o->values[value].form];

        for (uint32_t a = 0; a < form->rank && i->shared.readers[value] > 0; a++)
            if (form->size[a] < 0)
                return false;
    }
    return true;
}

/* *fixed: no size of what it reads is open, so that the whole batch may be one sample. Errors do not name the file. */
static cek_status import_run(const cek__onnx *onnx, const cek_onnx_options *options, bool whole, bool *fixed,
                             cek_model **out)
{
    cek_status st;
    cek__onnx_reading i = { .shared = { .onnx = onnx, .whole = whole, .weight_compute = weight_compute },
                            .options = options };
    const cek__onnx_link *output = NULL;

    *out = NULL;
    *fixed = false;
    CEK_TRY(cek__fold_begin(onnx, &i.shared.fold));
    CEK_TRY(cek__calloc(onnx->values_count + 1, sizeof *i.shared.flows, &i.shared.flows));
    CEK_TRY(cek__alloc_array(onnx->values_count + 1, sizeof *i.nodes, &i.nodes));
    for (size_t k = 0; k < onnx->values_count; k++)
        i.nodes[k] = -1;
    CEK_TRY(cek__calloc(onnx->nodes_count + 1, sizeof *i.needed, &i.needed));
    CEK_TRY(cek__calloc(onnx->values_count + 1, sizeof *i.shared.readers, &i.shared.readers));
    CEK_TRY(cek__calloc(onnx->values_count + 1, sizeof *i.shared.types, &i.shared.types));
    CEK_TRY(output_find(&i, &output));
    needed_mark(&i, output->value);
    *fixed = sizes_known(&i);
    CEK_TRY(operators_check(&i));
    CEK_TRY(cek__onnx_inputs_add(&i));
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
    free(i.shared.readers);
    free(i.shared.types);
    return st == CEK_INVALID ? cek__fail(CEK_UNSUPPORTED, "%s", cek_error_text()) : st;
}

cek_status cek_model_read_onnx(const char *path, const cek_onnx_options *options, cek_model **out)
{
    cek_status st;
    cek__onnx *onnx = NULL;
    cek_onnx_options o = { 0 };
    char *why = NULL;
    bool fixed;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(path);
    if (options)
        CEK_TRY(cek__options_take("cek_model_read_onnx", &o, sizeof o, options));
    CEK_TRY(cek__onnx_read(path, &onnx));
    st = import_run(onnx, &o, false, &fixed, out);
    if ((st == CEK_UNSUPPORTED || st == CEK_BAD_INPUT) && fixed) {
        CEK_TRY(cek__strdup(cek_error_text(), &why));
        st = import_run(onnx, &o, true, &fixed, out);
        if (st == CEK_OK)
            cek__log(CEK_LOG_WARN, "%s: it runs at the batch that it was written with, as one sample: %s", path, why);
        else if (strcmp(why, cek_error_text()) != 0)
            st = cek__fail(st, "%s; nor as one sample that is the whole batch: %s", why, cek_error_text());
    }
    if (st != CEK_OK)
        st = cek__fail_prefix(st, "%s", path);
out:
    free(why);
    cek__onnx_free(onnx);
    return st;
}
