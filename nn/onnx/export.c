/* export.c - a model as an ONNX file (see nn.h, export.h): its inputs, what its output depends on part by
 * part, its output. */
#include "nn/onnx/export.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cekernels/parts.h"
#include "core/base/alloc.h"
#include "core/base/options.h"
#include "nn/graph/parts.h"

/* ---- values ---- */

bool cek__export_goes_on(const cek__export *e)
{
    return e->st == CEK_OK && e->out.st == CEK_OK;
}

int cek__export_refuse(cek__export *e, const char *fmt, ...)
{
    va_list args;

    if (!cek__export_goes_on(e))
        return -1;
    va_start(args, fmt);
    e->st = cek__failv(CEK_UNSUPPORTED, fmt, args);
    va_end(args);
    return -1;
}

static cek_status value_add(cek__export *e, const char *name)
{
    cek_status st;
    char *copy;

    if (e->count == e->room) {
        const int room = e->room ? 2 * e->room : 64;

        CEK_TRY(cek__realloc_array((size_t)room, sizeof *e->names, &e->names));
        e->room = room;
    }
    if (name)
        CEK_TRY(cek__strdup(name, &copy));
    else
        CEK_TRY(cek__asprintf(&copy, "%s%d", e->prefix, e->count));
    e->names[e->count++] = copy;
out:
    return st;
}

int cek__export_value(cek__export *e, const char *name)
{
    if (cek__export_goes_on(e))
        e->st = value_add(e, name);
    return cek__export_goes_on(e) ? e->count - 1 : -1;
}

int cek__export_node(cek__export *e, const char *op, int inputs, const int *input, int settings,
                     const cek__onnx_setting *setting)
{
    const char *names[CEK__PART_INPUTS];
    const int value = cek__export_value(e, NULL);

    if (value < 0)
        return -1;
    for (int i = 0; i < inputs; i++)
        names[i] = e->names[input[i]];
    cek__onnx_put_node(&e->out, op, inputs, names, e->names[value], settings, setting);
    return value;
}

int cek__export_one(cek__export *e, const char *op, int x)
{
    return cek__export_node(e, op, 1, &x, 0, NULL);
}

int cek__export_two(cek__export *e, const char *op, int a, int b)
{
    return cek__export_node(e, op, 2, (int[]){ a, b }, 0, NULL);
}

int cek__export_number(cek__export *e, double value)
{
    const float number = (float)value;
    const int v = cek__export_value(e, NULL);

    if (v >= 0)
        cek__onnx_put_numbers(&e->out, e->names[v], CEK__ONNX_FLOAT, 0, NULL, &number, sizeof number);
    return v;
}

int cek__export_list(cek__export *e, const int64_t *list, int count)
{
    const int64_t shape = count;
    const int v = cek__export_value(e, NULL);

    if (v >= 0)
        cek__onnx_put_numbers(&e->out, e->names[v], CEK__ONNX_INT64, 1, &shape, list, (size_t)count * sizeof *list);
    return v;
}

int cek__export_cast(cek__export *e, int x, cek__onnx_type to)
{
    return cek__export_node(
        e, "Cast", 1, &x, 1,
        &(cek__onnx_setting){ .name = "to", .kind = CEK__ONNX_ATTRIBUTE_INT, .integer = (int64_t)to });
}

/* ---- shapes ---- */

int cek__export_reshape(cek__export *e, int x, const cek__dims *to)
{
    int64_t list[CEK_RANK_MAX];

    for (int i = 0; i < to->rank; i++)
        list[i] = to->samples >> i & 1 ? -1 : to->size[i];
    return cek__export_two(e, "Reshape", x, cek__export_list(e, list, to->rank));
}

/* So many for each sample, as a list of one. */
static int samples_times(cek__export *e, int64_t each)
{
    if (e->samples < 0)
        e->samples = cek__export_two(e, "Gather", cek__export_one(e, "Shape", e->first),
                                     cek__export_list(e, &(int64_t){ 0 }, 1));
    return each == 1 ? e->samples : cek__export_two(e, "Mul", e->samples, cek__export_list(e, &each, 1));
}

int cek__export_spread(cek__export *e, int x, const cek__dims *from, const cek__dims *to)
{
    int64_t list[CEK_RANK_MAX];
    int open = -1, pieces = 0, piece[3];

    if (cek__dims_equal(from, to))
        return x;
    for (int i = 0; i < to->rank; i++) {
        const int k = i - (to->rank - from->rank);
        const bool counts = to->samples >> i & 1, there = k >= 0 && from->samples >> k & 1;

        list[i] = there || (k >= 0 && !counts && from->size[k] == to->size[i]) ? 1 : to->size[i];
        if (counts && !there)
            open = i;
    }
    if (open < 0)
        return cek__export_two(e, "Expand", x, cek__export_list(e, list, to->rank));
    if (open > 0)
        piece[pieces++] = cek__export_list(e, list, open);
    piece[pieces++] = samples_times(e, to->size[open]);
    if (open + 1 < to->rank)
        piece[pieces++] = cek__export_list(e, list + open + 1, to->rank - open - 1);
    return cek__export_two(
        e, "Expand", x,
        pieces == 1 ? piece[0]
                    : cek__export_node(e, "Concat", pieces, piece, 1,
                                       &(cek__onnx_setting){ .name = "axis", .kind = CEK__ONNX_ATTRIBUTE_INT }));
}

/* ---- inputs, output ---- */

/* Sizes as the file says them: 0 the batch, -1 a multiple of it. */
static void sizes_of(const cek__dims *dims, int64_t *size)
{
    for (int i = 0; i < dims->rank; i++)
        size[i] = !(dims->samples >> i & 1) ? dims->size[i] : dims->size[i] == 1 ? 0 : -1;
}

static int element_of(const cek__flow *flow)
{
    return flow->type == CEK_I32 ? CEK__ONNX_INT32 : CEK__ONNX_FLOAT;
}

static bool name_taken(const cek__export *e, const char *name)
{
    for (size_t i = 0; i < cek__model_tensor_count(e->model); i++)
        if (strcmp(cek__model_tensor(e->model, i)->name, name) == 0)
            return true;
    for (int i = 0; i < e->count; i++)
        if (strcmp(e->names[i], name) == 0)
            return true;
    return false;
}

/* A name that is nobody's: this one, or with lines behind. */
static int end_value(cek__export *e, const char *name)
{
    char *other = NULL;
    int value = -1;

    if (e->st == CEK_OK)
        e->st = cek__strdup(name, &other);
    while (e->st == CEK_OK && name_taken(e, other)) {
        char *longer = NULL;

        e->st = cek__asprintf(&longer, "%s_", other);
        free(other);
        other = longer;
    }
    if (e->st == CEK_OK)
        value = cek__export_value(e, other);
    free(other);
    return value;
}

/* As the batches have it, then as the network sees it. */
static int input_put(cek__export *e, int node)
{
    const cek__flow *flow = &e->graph->flows[e->model->nodes[node].flow];
    int64_t size[CEK_RANK_MAX];
    int v = end_value(e, cek__node_name(e->model, node));

    if (v < 0)
        return -1;
    sizes_of(&flow->dims, size);
    cek__onnx_put_input(&e->out, e->names[v], element_of(flow), flow->dims.rank, size, e->batch);
    if (e->first < 0)
        e->first = v;
    if (flow->type == CEK_I32)
        return v;
    if (e->model->scale != 1)
        v = cek__export_two(e, "Mul", v, cek__export_number(e, e->model->scale));
    if (e->model->offset != 0)
        v = cek__export_two(e, "Add", v, cek__export_number(e, e->model->offset));
    return v;
}

static void output_put(cek__export *e)
{
    const int node = cek__model_output(e->model);
    const cek__flow *flow = &e->graph->flows[e->model->nodes[node].flow];
    const char *from, *to;
    int64_t size[CEK_RANK_MAX];
    int v = end_value(e, "output");

    if (v < 0)
        return;
    from = e->names[e->values[e->model->nodes[node].flow]];
    to = e->names[v];
    sizes_of(&flow->dims, size);
    cek__onnx_put_node(&e->out, "Identity", 1, &from, to, 0, NULL);
    cek__onnx_put_output(&e->out, to, element_of(flow), flow->dims.rank, size, e->batch);
}

/* ---- parts ---- */

static void needed_mark(cek__export *e)
{
    e->needed[e->model->nodes[cek__model_output(e->model)].flow] = true;
    for (int i = e->graph->length; i-- > 0;) {
        const cek__part *part = cek__graph_at(e->graph, i);
        int flows[CEK__PART_INPUTS];
        const int reads = e->needed[part->output[0]] ? cek__export_reads(e, part, flows) : 0;

        for (int k = 0; k < reads; k++)
            e->needed[flows[k]] = true;
    }
}

static cek_status parts_put(cek__export *e)
{
    for (int i = 0; i < e->graph->length && cek__export_goes_on(e); i++) {
        const cek__part *part = cek__graph_at(e->graph, i);
        const int flow = part->output[0];

        if (!flow || !e->needed[flow] || e->values[flow] >= 0)
            continue;
        e->values[flow] = cek__export_part(e, part);
        if (e->st == CEK_UNSUPPORTED)
            e->st = cek__fail_prefix(e->st, "%s: an ONNX file has nothing for its %s", part->name,
                                     cek__part_class_of(part->kind)->name);
    }
    return e->st != CEK_OK ? e->st : e->out.st;
}

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* As many lines as it takes for no tensor's and no input's name to begin so. */
static cek_status prefix_make(cek__export *e)
{
    cek_status st;
    size_t longest = 0;

    for (size_t i = 0; i < cek__model_tensor_count(e->model); i++)
        longest = most(longest, strspn(cek__model_tensor(e->model, i)->name, "_"));
    for (size_t i = 0; i < e->model->input_count; i++)
        longest = most(longest, strspn(cek__node_name(e->model, e->model->inputs[i]), "_"));
    CEK_TRY(cek__malloc(longest + 2, &e->prefix));
    memset(e->prefix, '_', longest + 1);
    e->prefix[longest + 1] = '\0';
out:
    return st;
}

static cek_status export_run(cek__export *e)
{
    cek_status st;
    const size_t flows = (size_t)e->graph->flow_count + 1;

    CEK_TRY(prefix_make(e));
    CEK_TRY(cek__alloc_array(flows, sizeof *e->values, &e->values));
    memset(e->values, -1, flows * sizeof *e->values);
    CEK_TRY(cek__calloc(flows, sizeof *e->needed, &e->needed));
    needed_mark(e);
    for (size_t i = 0; i < e->model->input_count; i++)
        e->values[e->model->nodes[e->model->inputs[i]].flow] = input_put(e, e->model->inputs[i]);
    CEK_TRY(parts_put(e));
    output_put(e);
    st = e->st != CEK_OK ? e->st : e->out.st;
out:
    return st;
}

cek_status cek_model_write_onnx(const cek_model *model, const char *path, const cek_onnx_write_options *options)
{
    cek_status st;
    cek_onnx_write_options o = { 0 };
    cek__export e = { .model = model, .first = -1, .samples = -1 };

    CEK__NOT_NULL(model);
    CEK__NOT_NULL(path);
    if (options)
        CEK_TRY(cek__options_take("cek_model_write_onnx", &o, sizeof o, options));
    if (model->whole)
        CEK_FAIL(CEK_UNSUPPORTED, "a model whose one sample is a whole batch is not written");
    CEK_TRY(cek_model_status(model));
    if (model->input_count == 0 || model->node_count == (int)model->input_count)
        CEK_FAIL(CEK_INVALID, "a model without %s", model->input_count ? "layers" : "inputs");
    e.graph = &model->graph;
    e.batch = o.batch ? o.batch : "batch";
    CEK_TRY(export_run(&e));
    st = cek__onnx_write(&e.out, path, CEK__EXPORT_OPSET);
out:
    cek__onnx_out_clear(&e.out);
    for (int i = 0; i < e.count; i++)
        free(e.names[i]);
    free(e.names);
    free(e.values);
    free(e.needed);
    free(e.prefix);
    return st;
}
