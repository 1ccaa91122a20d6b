/* inputs.c - the inputs of an ONNX file on their way into a model (see import.h).
 *
 * Owns: what counts samples. The batch is an axis that the file names, or the first one, whatever number
 * it has there. */
#include <stdlib.h>
#include <string.h>

#include "nn/onnx/import.h"

/* The number that options->sizes has for a name; 0: none. */
static int64_t size_given(const cek__onnx_reading *i, const char *name)
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

/* An input on its way into the model. */
typedef struct entry {
    const cek__onnx_link *link;
    const cek__onnx_form *form;
    int64_t shape[CEK_RANK_MAX]; /* as the file has it; 1 of the batch by a name */
    int batch;                   /* which axis that is; -1 of a single number, and where the whole is one sample */
    bool named;                  /* it is no number */
    int node;                    /* of the model: its samples */
} entry;

/* Its sizes, and which axis is the batch. */
static cek_status form_read(cek__onnx_reading *i, entry *e)
{
    cek_status st = CEK_OK;
    const char *name = e->link->name;

    e->batch = -1;
    if (e->form->shaped && e->form->rank == 0 && !i->shared.whole)
        CEK_FAIL(CEK_UNSUPPORTED, "input '%.*s' is a single number", CEK__IMPORT_NAME_SHOWN, name);
    if (!e->form->shaped)
        CEK_FAIL(CEK_UNSUPPORTED, "input '%.*s' has no shape", CEK__IMPORT_NAME_SHOWN, name);
    for (uint32_t k = 0; k < e->form->rank; k++) {
        const char *symbol = e->form->symbol[k];

        e->shape[k] = e->form->size[k];
        if (e->shape[k] > 0)
            continue;
        e->shape[k] = symbol ? size_given(i, symbol) : 0;
        if (e->shape[k] == 0 && (e->named || i->shared.whole))
            CEK_FAIL(CEK_UNSUPPORTED, "input '%.*s': the size of axis %u (%.*s) is not known: it has to be given",
                     CEK__IMPORT_NAME_SHOWN, name, k, CEK__IMPORT_NAME_SHOWN, symbol ? symbol : "no name");
        if (e->shape[k] == 0) {
            e->named = true;
            e->batch = (int)k;
            e->shape[k] = 1;
        }
    }
    if (e->batch < 0 && e->form->rank > 0 && !i->shared.whole)
        e->batch = 0;
out:
    return st;
}

/* All of them have as many samples: by one name, or by one number. */
static cek_status batches_agree(cek__onnx_reading *i, const entry *entries, size_t count)
{
    cek_status st = CEK_OK;
    const entry *first = &entries[0];

    i->shared.fixed = !first->named;
    i->shared.batch = first->batch < 0 ? 1 : first->shape[first->batch];
    for (size_t k = 1; k < count && !i->shared.whole; k++) {
        const entry *e = &entries[k];
        const char *one = first->named ? first->form->symbol[first->batch] : NULL;
        const char *other = e->named ? e->form->symbol[e->batch] : NULL;

        if (e->named != first->named || (one && other && strcmp(one, other) != 0))
            CEK_FAIL(CEK_UNSUPPORTED, "inputs '%.*s' and '%.*s' do not call the batch the same: %.*s and %.*s",
                     CEK__IMPORT_NAME_SHOWN, first->link->name, CEK__IMPORT_NAME_SHOWN, e->link->name,
                     CEK__IMPORT_NAME_SHOWN, one ? one : "no name", CEK__IMPORT_NAME_SHOWN, other ? other : "no name");
        if (e->shape[e->batch] != i->shared.batch)
            CEK_FAIL(CEK_UNSUPPORTED, "input '%.*s' is a batch of %lld, '%.*s' of %lld", CEK__IMPORT_NAME_SHOWN,
                     first->link->name, (long long)i->shared.batch, CEK__IMPORT_NAME_SHOWN, e->link->name,
                     (long long)e->shape[e->batch]);
    }
out:
    return st;
}

cek_status cek__onnx_shape_tell(cek__onnx_reading *i, int value, bool scalar)
{
    const cek__dims *dims = &i->shared.model->graph.flows[i->shared.flows[value]].dims;
    cek__fold_number sizes[CEK_RANK_MAX] = { 0 };

    for (int k = 0; k < dims->rank; k++) {
        if (dims->samples >> k & 1)
            sizes[k].factor = dims->size[k];
        else
            sizes[k].constant = dims->size[k];
    }
    return cek__fold_shape_set(&i->shared.fold, value, scalar ? 0 : (uint32_t)dims->rank, sizes);
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

/* The samples as batches have them, called as in the file. */
static cek_status samples_add(cek__onnx_reading *i, entry *e)
{
    cek_status st;
    cek_model *model = i->shared.model;
    cek__part part = { .kind = CEK__PART_INPUT,
                       .type = e->form->type == CEK__ONNX_FLOAT ? CEK_DTYPE_NONE : CEK_I32,
                       .dims = { .rank = 1, .samples = 1, .size = { 1 } } };
    int64_t all = 1;
    int flow = CEK__NOTHING;
    cek__layer l;

    for (int k = 0; k < (int)e->form->rank; k++) {
        if (k == e->batch)
            continue;
        if (__builtin_mul_overflow(all, e->shape[k], &all))
            CEK_FAIL(CEK_BAD_INPUT, "input '%.*s' is too large", CEK__IMPORT_NAME_SHOWN, e->link->name);
        if (i->shared.whole)
            continue;
        if (part.dims.rank > CEK__INPUT_RANK_MAX)
            CEK_FAIL(CEK_UNSUPPORTED, "input '%.*s': a sample of more than %d axes", CEK__IMPORT_NAME_SHOWN,
                     e->link->name, CEK__INPUT_RANK_MAX);
        part.dims.size[part.dims.rank++] = e->shape[k];
    }
    if (i->shared.whole || part.dims.rank == 1)
        part.dims = (cek__dims){ .rank = 2, .samples = 1, .size = { 1, all } };
    CEK_TRY(cek__shape_check(e->link->name, part.dims.rank, part.dims.size));
    st = cek__layer_begin(&l, model, "input", 0, NULL);
    if (st == CEK_OK)
        st = cek__layer_call(&l, e->link->name);
    if (st == CEK_OK)
        st = cek__graph_add(l.graph, &part, &flow);
    CEK_TRY(cek__layer_end(&l, st, flow, &e->node));
    model->inputs[model->input_count++] = e->node;
out:
    return st;
}

/* And as the file has them. */
static cek_status input_add(cek__onnx_reading *i, const entry *e)
{
    cek_status st;
    const int value = e->link->value;
    int flow = CEK__NOTHING;
    cek__layer l;

    st = cek__layer_begin(&l, i->shared.model, "Input", 1, &e->node);
    if (st == CEK_OK)
        st = cek__layer_call(&l, e->link->name);
    if (st == CEK_OK)
        st = input_shape(e->form, e->shape, e->batch, &l, &flow);
    CEK_TRY(cek__layer_end(&l, st, flow, &i->nodes[value]));
    i->shared.flows[value] = flow;
    st = cek__onnx_shape_tell(i, value, e->form->rank == 0);
out:
    return st;
}

static cek_status type_check(const entry *e)
{
    const char *name = cek__onnx_type_name(e->form->type);

    if (e->form->type == CEK__ONNX_FLOAT || e->form->type == CEK__ONNX_INT64 || e->form->type == CEK__ONNX_INT32)
        return CEK_OK;
    return cek__fail(CEK_UNSUPPORTED, "input '%.*s' is of %s: float, int32 and int64 are taken", CEK__IMPORT_NAME_SHOWN,
                     e->link->name, name ? name : "another type");
}

/* Those that the output depends on, in the file's order. */
cek_status cek__onnx_inputs_add(cek__onnx_reading *i)
{
    cek_status st;
    const cek__onnx *o = i->shared.onnx;
    entry entries[CEK_INPUTS_MOST];
    size_t count = 0;

    CEK_TRY(cek_model_create(0, NULL, &i->shared.model));
    for (size_t k = 0; k < o->inputs_count; k++) {
        entry *e = &entries[count];

        if (!i->shared.readers[o->inputs[k].value])
            continue;
        if (count++ == CEK_INPUTS_MOST)
            CEK_FAIL(CEK_UNSUPPORTED, "more than %d inputs", CEK_INPUTS_MOST);
        *e = (entry){ .link = &o->inputs[k], .form = &o->forms[o->values[o->inputs[k].value].form] };
        CEK_TRY(type_check(e));
        CEK_TRY(form_read(i, e));
    }
    if (count == 0)
        CEK_FAIL(CEK_UNSUPPORTED, "its output depends on no input");
    CEK_TRY(batches_agree(i, entries, count));
    for (size_t k = 0; k < count; k++)
        CEK_TRY(samples_add(i, &entries[k]));
    if (i->shared.whole)
        cek__model_make_whole(i->shared.model);
    for (size_t k = 0; k < count; k++)
        CEK_TRY(input_add(i, &entries[k]));
out:
    return st;
}
