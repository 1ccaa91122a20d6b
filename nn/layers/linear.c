/* linear.c - y = x w^T + bias over the last axis. */
#include "core/base/status.h"
#include "nn/layers/bias.h"

static cek_status input_check(const cek__layer *l, int64_t out)
{
    char text[CEK__SHAPE_TEXT];

    if (l->in.rank < 2)
        return cek__fail(CEK_INVALID, "takes features, its input has %d axes", l->in.rank);
    if (l->in.rank > 3)
        return cek__fail(CEK_INVALID, "takes features, its input is the image %s: put a flatten layer between them",
                         cek__dims_text(&l->in, text));
    if (out < 1 || out >= CEK__ELEMENTS_MAX)
        return cek__fail(CEK_INVALID, "%lld outputs", (long long)out);
    return CEK_OK;
}

cek_status cek_model_linear(cek_model *model, int input, int64_t out, bool bias, int *node)
{
    cek_status st;
    cek__layer l;
    cek__part part = { .kind = CEK__PART_PRODUCT, .inputs = 2 };
    int last, y = CEK__NOTHING;
    int64_t in;

    CEK_TRY(cek__layer_begin(&l, model, "linear", 1, &input));
    CEK_TRY(input_check(&l, out));
    if (!bias)
        cek__layer_note(&l, "no bias");
    last = l.in.rank - 1;
    in = l.in.size[last];
    part.input[0] = l.x[0];
    part.product.a = (cek__matrix){ .split = last };
    part.product.b = (cek__matrix){ .split = 1, .transposed = true };
    CEK_TRY(cek__layer_parameter(&l, "weight", 2, (int64_t[]){ out, in }, (double)in, &part.input[1]));
    CEK_TRY(cek__graph_add(l.graph, &part, &y));
    if (bias)
        CEK_TRY(cek__bias_add(&l, y, last, (double)in, &y));
out:
    return cek__layer_end(&l, st, y, node);
}
