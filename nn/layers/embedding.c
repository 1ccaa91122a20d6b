/* embedding.c - rows of a table of parameters that whole numbers name. */
#include "core/base/options.h"
#include "core/base/status.h"
#include "nn/model/layer.h"

enum { EXACT = 1 << 24 /* whole numbers up to here are floats, as which indices are held against the padding */ };

static cek_status layer_check(const cek_embedding_layer *e)
{
    if (e->count < 1 || e->count > INT32_MAX || e->width < 1 || e->width > CEK__ELEMENTS_MAX)
        return cek__fail(CEK_INVALID, "a table of %lld rows of %lld", (long long)e->count, (long long)e->width);
    if (e->pads && e->count > EXACT)
        return cek__fail(CEK_INVALID, "padding in a table of %lld rows, there are %d at most", (long long)e->count,
                         EXACT);
    if (e->pads && (e->padding < 0 || e->padding >= e->count))
        return cek__fail(CEK_INVALID, "row %lld of %lld as padding", (long long)e->padding, (long long)e->count);
    return CEK_OK;
}

static cek_status rows_name(cek__layer *l, const cek_embedding_layer *e, int *y)
{
    cek_status st;
    cek__part part = { .kind = CEK__PART_GATHER,
                       .inputs = 2,
                       .input = { 0, l->x[0] },
                       .gather = { .pads = e->pads, .padding = (int32_t)e->padding } };
    cek__parameter *table;

    if (l->graph->flows[l->x[0]].type != CEK_I32)
        CEK_TRY(cek__cast(l->graph, l->x[0], CEK_I32, &part.input[1]));
    CEK_TRY(cek__layer_filled(l, "weight", 2, (int64_t[]){ e->count, e->width }, 0, &part.input[0]));
    table = &l->model->parameters[l->model->parameter_count - 1];
    table->init = (cek_init){ .size = sizeof(cek_init), .kind = CEK_INIT_NORMAL, .deviation = 1 };
    table->pads = e->pads;
    table->padding = e->padding;
    st = cek__graph_add(l->graph, &part, y);
out:
    return st;
}

cek_status cek_model_embedding_with(cek_model *model, int input, const cek_embedding_layer *layer, int *node)
{
    cek_status st;
    cek__layer l;
    cek_embedding_layer e;
    int y = CEK__NOTHING;

    if (node)
        *node = -1;
    CEK__NOT_NULL(model);
    CEK__NOT_NULL(layer);
    CEK_TRY(cek__layer_begin(&l, model, "embedding", 1, &input));
    CEK_TRY(cek__options_take("cek_model_embedding_with", &e, sizeof e, layer));
    CEK_TRY(layer_check(&e));
    cek__layer_note(&l, "%lld rows", (long long)e.count);
    if (e.pads)
        cek__layer_note(&l, ", padding %lld", (long long)e.padding);
    CEK_TRY(rows_name(&l, &e, &y));
out:
    return cek__layer_end(&l, st, y, node);
}

cek_status cek_model_embedding(cek_model *model, int input, int64_t count, int64_t width, int *node)
{
    const cek_embedding_layer layer = { .size = sizeof layer, .count = count, .width = width };

    return cek_model_embedding_with(model, input, &layer, node);
}
