/* elementwise.c - layers that compute element by element: dropout, the sum of two; and flatten, which moves nothing. */
#include "core/base/status.h"
#include "nn/model/layer.h"

cek_status cek_model_dropout(cek_model *model, int input, double p, int *node)
{
    cek_status st;
    cek__layer l;
    cek__part part = { .kind = CEK__PART_DROPOUT, .inputs = 1 };
    int y = CEK__NOTHING;

    CEK_TRY(cek__layer_begin(&l, model, "dropout", 1, &input));
    if (!(p >= 0 && p < 1))
        CEK_FAIL(CEK_INVALID, "probability %g, it must be at least 0 and below 1", p);
    cek__layer_note(&l, "%g", p);
    part.input[0] = l.x[0];
    part.dropout.p = p;
    part.dropout.stream = (uint32_t)l.graph->node;
    CEK_TRY(cek__graph_add(l.graph, &part, &y));
out:
    return cek__layer_end(&l, st, y, node);
}

cek_status cek_model_flatten(cek_model *model, int input, int *node)
{
    cek_status st;
    cek__layer l;
    cek__dims dims = { .rank = 2, .samples = 1, .size = { 1 } };
    int y = CEK__NOTHING;

    CEK_TRY(cek__layer_begin(&l, model, "flatten", 1, &input));
    dims.size[1] = cek__dims_elements(&l.in, 0, l.in.rank, 1);
    CEK_TRY(cek__view(l.graph, l.x[0], &dims, &y));
out:
    return cek__layer_end(&l, st, y, node);
}

cek_status cek_model_add(cek_model *model, int a, int b, int *node)
{
    cek_status st;
    cek__layer l;
    const cek__dims *of[2];
    char text[2][CEK__SHAPE_TEXT];
    int y = CEK__NOTHING;

    CEK_TRY(cek__layer_begin(&l, model, "add", 2, (int[]){ a, b }));
    of[0] = cek__node_dims(model, a);
    of[1] = cek__node_dims(model, b);
    if (!cek__dims_equal(of[0], of[1]))
        CEK_FAIL(CEK_INVALID, "the shapes %s of node %d and %s of node %d differ", cek__dims_text(of[0], text[0]), a,
                 cek__dims_text(of[1], text[1]), b);
    CEK_TRY(cek__chain(l.graph, CEK_PW_ADD, l.x[0], l.x[1], &y));
out:
    return cek__layer_end(&l, st, y, node);
}
