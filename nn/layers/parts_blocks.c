/* parts_blocks.c - what is often wanted in a composition and made of several parts: softmax along an axis,
 * normalisation, attention (see parts.h of the public headers). */
#include "core/base/options.h"
#include "nn/layers/attention.h"
#include "nn/layers/norms.h"
#include "nn/layers/parts_inside.h"

static cek_status axis_from_front(const cek__layer *l, int axis, int *out)
{
    *out = axis < 0 ? axis + l->in.rank : axis;
    if (*out < 0 || *out >= l->in.rank)
        return cek__fail(CEK_INVALID, "axis %d, there are 0 to %d, or -1 to %d from the last one", axis, l->in.rank - 1,
                         -l->in.rank);
    return CEK_OK;
}

typedef cek_status along(cek__graph *graph, int x, int axis, int *out);

static int along_axis(cek_model *model, const char *kind, int x, int axis, along *add)
{
    cek_status st;
    cek__layer l;
    int y = CEK__NOTHING;

    CEK_TRY(begin(&l, model, kind, 1, &x));
    CEK_TRY(axis_from_front(&l, axis, &axis));
    CEK_TRY(add(l.graph, l.x[0], axis, &y));
out:
    return end(model, &l, st, y);
}

int cek_part_softmax(cek_model *model, int x, int axis)
{
    return along_axis(model, "softmax", x, axis, cek__softmax);
}

int cek_part_log_softmax(cek_model *model, int x, int axis)
{
    return along_axis(model, "log_softmax", x, axis, cek__log_softmax);
}

int cek_part_normalise(cek_model *model, int x, uint32_t axes, double epsilon)
{
    cek_status st;
    cek__layer l;
    int y = CEK__NOTHING;

    CEK_TRY(begin(&l, model, "normalise", 1, &x));
    if (axes == 0 || axes >> l.in.rank != 0)
        CEK_FAIL(CEK_INVALID, "axes 0x%x of %d", axes, l.in.rank);
    if (!(epsilon > 0))
        CEK_FAIL(CEK_INVALID, "epsilon %g, it must be above 0", epsilon);
    CEK_TRY(cek__layer_norm(l.graph, l.x[0], axes, epsilon, CEK__NOTHING, CEK__NOTHING, &y));
out:
    return end(model, &l, st, y);
}

int cek_part_attention(cek_model *model, int q, int k, int v, const cek_attention_part *options)
{
    cek_status st;
    cek__layer l = { .model = NULL };
    cek_attention_part o;
    int y = CEK__NOTHING;

    CEK_TRY(cek__options_take("cek_part_attention", &o, sizeof o, options));
    CEK_TRY(begin(&l, model, "attention", o.masked ? 4 : 3, (int[]){ q, k, v, o.mask }));
    CEK_TRY(cek__layer_attention(l.graph,
                                 &(cek__attention){ .q = l.x[0],
                                                    .k = l.x[1],
                                                    .v = l.x[2],
                                                    .heads = o.heads ? o.heads : 1,
                                                    .causal = o.causal,
                                                    .mask = o.masked ? l.x[3] : CEK__NOTHING,
                                                    .scale = o.scale },
                                 &y));
out:
    return end(model, &l, st, y);
}
