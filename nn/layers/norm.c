/* norm.c - normalisations within a sample as layers. */
#include "core/base/options.h"
#include "core/base/status.h"
#include "nn/layers/norms.h"
#include "nn/model/layer.h"

/* gamma, beta: CEK__NOTHING where the layer has none. */
typedef cek_status normaliser(cek__layer *l, const cek_norm_layer *n, int gamma, int beta, int *y);

typedef struct norm_kind {
    const char *name, *call;
    double epsilon;
    bool channels; /* weight and bias are of channels, not of the last axes */
    bool no_bias;
    normaliser *add;
} norm_kind;

static uint32_t last_axes(const cek__layer *l, const cek_norm_layer *n)
{
    return ((1u << l->in.rank) - 1) & ~((1u << (l->in.rank - (int)n->axes)) - 1);
}

static cek_status layer_add(cek__layer *l, const cek_norm_layer *n, int gamma, int beta, int *y)
{
    return cek__layer_norm(l->graph, l->x[0], last_axes(l, n), n->epsilon, gamma, beta, y);
}

static cek_status rms_add(cek__layer *l, const cek_norm_layer *n, int gamma, int beta, int *y)
{
    (void)beta; /* it has none */
    return cek__rms_norm(l->graph, l->x[0], last_axes(l, n), n->epsilon, gamma, y);
}

static cek_status group_add(cek__layer *l, const cek_norm_layer *n, int gamma, int beta, int *y)
{
    return cek__group_norm(l->graph, l->x[0], n->groups, n->epsilon, gamma, beta, y);
}

static cek_status instance_add(cek__layer *l, const cek_norm_layer *n, int gamma, int beta, int *y)
{
    return cek__instance_norm(l->graph, l->x[0], n->epsilon, gamma, beta, y);
}

static const norm_kind kinds[] = {
    { "layer_norm", "cek_model_layer_norm", 1e-5, false, false, layer_add },
    { "rms_norm", "cek_model_rms_norm", 0x1p-23, false, true, rms_add },
    { "group_norm", "cek_model_group_norm", 1e-5, true, false, group_add },
    { "instance_norm", "cek_model_instance_norm", 1e-5, true, false, instance_add },
};

static cek_status layer_take(cek__layer *l, const norm_kind *kind, const cek_norm_layer *from, cek_norm_layer *n)
{
    cek_status st;
    char text[CEK__SHAPE_TEXT];

    CEK_TRY(cek__options_take(kind->call, n, sizeof *n, from));
    n->epsilon = n->epsilon == 0 ? kind->epsilon : n->epsilon;
    n->groups = n->groups ? n->groups : 1;
    n->axes = n->axes ? n->axes : 1;
    if (!(n->epsilon > 0))
        CEK_FAIL(CEK_INVALID, "epsilon %g, it must be above 0", n->epsilon);
    cek__dims_text(&l->in, text);
    if (l->in.rank < 2 || l->in.samples != 1)
        CEK_FAIL(CEK_INVALID, "takes samples along the first axis and what is behind it, its input has the shape %s",
                 text);
    if (!kind->channels && n->axes > (uint32_t)l->in.rank - 1)
        CEK_FAIL(CEK_INVALID, "over the last %u axes of an input of the shape %s", n->axes, text);
    if (kind->channels && l->in.size[1] % n->groups)
        CEK_FAIL(CEK_INVALID, "%u groups do not divide the channels of the input %s", n->groups, text);
out:
    return st;
}

static cek_status norm_add(cek_model *model, const norm_kind *kind, int input, const cek_norm_layer *layer, int *node)
{
    cek_status st;
    cek__layer l;
    cek_norm_layer n;
    int gamma = CEK__NOTHING, beta = CEK__NOTHING, y = CEK__NOTHING, rank;
    const int64_t *shape;

    CEK_TRY(cek__layer_begin(&l, model, kind->name, 1, &input));
    CEK_TRY(layer_take(&l, kind, layer, &n));
    rank = kind->channels ? 1 : (int)n.axes;
    shape = kind->channels ? l.in.size + 1 : l.in.size + l.in.rank - rank;
    if (!n.no_affine)
        CEK_TRY(cek__layer_filled(&l, "weight", rank, shape, 1, &gamma));
    if (!n.no_affine && !n.no_bias && !kind->no_bias)
        CEK_TRY(cek__layer_filled(&l, "bias", rank, shape, 0, &beta));
    if (kind->add == group_add)
        cek__layer_note(&l, "%u groups", n.groups);
    CEK_TRY(kind->add(&l, &n, gamma, beta, &y));
out:
    return cek__layer_end(&l, st, y, node);
}

#define NORM(name, kind)                                                                             \
    cek_status cek_model_##name(cek_model *model, int input, const cek_norm_layer *layer, int *node) \
    {                                                                                                \
        if (node)                                                                                    \
            *node = -1;                                                                              \
        CEK__NOT_NULL(model);                                                                        \
        CEK__NOT_NULL(layer);                                                                        \
        return norm_add(model, &kinds[kind], input, layer, node);                                    \
    }
NORM(layer_norm, 0)
NORM(rms_norm, 1)
NORM(group_norm, 2)
NORM(instance_norm, 3)
