/* softmax.c - softmax and its logarithm along an axis, as layers. */
#include "core/base/status.h"
#include "nn/model/layer.h"

typedef cek_status along_axis(cek__graph *graph, int x, int axis, int *out);

static cek_status softmax_add(cek_model *model, const char *kind, along_axis *compose, int input, int axis, int *node)
{
    cek_status st;
    cek__layer l;
    char text[CEK__SHAPE_TEXT];
    int y = CEK__NOTHING, from_front;

    CEK_TRY(cek__layer_begin(&l, model, kind, 1, &input));
    from_front = axis < 0 ? axis + l.in.rank : axis;
    if (from_front < 0 || from_front >= l.in.rank)
        CEK_FAIL(CEK_INVALID, "axis %d of an input of the shape %s, which has %d axes with the samples", axis,
                 cek__dims_text(&l.in, text), l.in.rank);
    cek__layer_note(&l, "axis %d", from_front);
    CEK_TRY(compose(l.graph, l.x[0], from_front, &y));
out:
    return cek__layer_end(&l, st, y, node);
}

cek_status cek_model_softmax(cek_model *model, int input, int axis, int *node)
{
    return softmax_add(model, "softmax", cek__softmax, input, axis, node);
}

cek_status cek_model_log_softmax(cek_model *model, int input, int axis, int *node)
{
    return softmax_add(model, "log_softmax", cek__log_softmax, input, axis, node);
}
