/* embedding.c - rows of a table of parameters that whole numbers name. */
#include "core/base/status.h"
#include "nn/model/layer.h"

cek_status cek_model_embedding(cek_model *model, int input, int64_t count, int64_t width, int *node)
{
    cek_status st;
    cek__layer l;
    int index, table, y = CEK__NOTHING;

    CEK_TRY(cek__layer_begin(&l, model, "embedding", 1, &input));
    if (count < 1 || count > INT32_MAX || width < 1 || width > CEK__ELEMENTS_MAX)
        CEK_FAIL(CEK_INVALID, "a table of %lld rows of %lld", (long long)count, (long long)width);
    cek__layer_note(&l, "%lld rows", (long long)count);
    index = l.x[0];
    if (l.graph->flows[index].type != CEK_I32)
        CEK_TRY(cek__cast(l.graph, index, CEK_I32, &index));
    CEK_TRY(cek__layer_filled(&l, "weight", 2, (int64_t[]){ count, width }, 0, &table));
    model->parameters[model->parameter_count - 1].init =
        (cek_init){ .size = sizeof(cek_init), .kind = CEK_INIT_NORMAL, .deviation = 1 };
    CEK_TRY(cek__gather(l.graph, table, index, 0, &y));
out:
    return cek__layer_end(&l, st, y, node);
}
