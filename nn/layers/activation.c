/* activation.c - activations as layers: those of plugin.h, one instruction each, and those that are made of several. */
#include "core/base/options.h"
#include "core/base/status.h"
#include "nn/layers/activations.h"
#include "nn/model/layer.h"

/* By cek_activation. */
static const struct {
    const char *name;
    uint32_t code;
} simple[] = {
    [CEK_ACT_RELU] = { "relu", CEK_PW_RELU },
    [CEK_ACT_TANH] = { "tanh", CEK_PW_TANH },
    [CEK_ACT_SIGMOID] = { "sigmoid", CEK_PW_SIGMOID },
    [CEK_ACT_GELU] = { "gelu", CEK_PW_GELU },
};

static const char *const composed[] = { "gelu_tanh", "silu",     "leaky_relu", "relu6",       "clip",
                                        "elu",       "softplus", "hard_swish", "hard_sigmoid" };

static const char *name_of(cek_activation kind)
{
    if (kind < sizeof simple / sizeof *simple)
        return simple[kind].name;
    if (kind >= CEK_ACT_GELU_TANH && kind <= CEK_ACT_HARD_SIGMOID)
        return composed[kind - CEK_ACT_GELU_TANH];
    return NULL;
}

static double or_usual(double value, double usual)
{
    return value == 0 ? usual : value;
}

/* A number that a kind has, in the summary and within bounds. */
static cek_status numbers_check(cek__layer *l, cek_activation_layer *a)
{
    cek_status st = CEK_OK;

    a->slope = or_usual(a->slope, 0.01);
    a->alpha = or_usual(a->alpha, 1);
    a->beta = or_usual(a->beta, 1);
    if (a->low == 0 && a->high == 0) {
        a->low = -1;
        a->high = 1;
    }
    switch (a->kind) {
    case CEK_ACT_LEAKY_RELU: cek__layer_note(l, "%g", a->slope); break;
    case CEK_ACT_ELU: cek__layer_note(l, "%g", a->alpha); break;
    case CEK_ACT_SOFTPLUS:
        if (!(a->beta > 0))
            CEK_FAIL(CEK_INVALID, "beta %g, it must be above 0", a->beta);
        cek__layer_note(l, "%g", a->beta);
        break;
    case CEK_ACT_CLIP:
        if (!(a->low <= a->high))
            CEK_FAIL(CEK_INVALID, "from %g to %g", a->low, a->high);
        cek__layer_note(l, "%g to %g", a->low, a->high);
        break;
    default: break; /* the others have none */
    }
out:
    return st;
}

static cek_status activation_compose(cek__layer *l, const cek_activation_layer *a, int *y)
{
    switch (a->kind) {
    case CEK_ACT_GELU_TANH: return cek__gelu_tanh(l->graph, l->x[0], y);
    case CEK_ACT_SILU: return cek__silu(l->graph, l->x[0], y);
    case CEK_ACT_LEAKY_RELU: return cek__leaky_relu(l->graph, l->x[0], a->slope, y);
    case CEK_ACT_RELU6: return cek__relu6(l->graph, l->x[0], y);
    case CEK_ACT_CLIP: return cek__clip(l->graph, l->x[0], a->low, a->high, y);
    case CEK_ACT_ELU: return cek__elu(l->graph, l->x[0], a->alpha, y);
    case CEK_ACT_SOFTPLUS: return cek__softplus(l->graph, l->x[0], a->beta, y);
    case CEK_ACT_HARD_SWISH: return cek__hard_swish(l->graph, l->x[0], y);
    case CEK_ACT_HARD_SIGMOID: return cek__hard_sigmoid(l->graph, l->x[0], y);
    default: return cek__chain(l->graph, simple[a->kind].code, l->x[0], CEK__NOTHING, y);
    }
}

cek_status cek_model_activation_with(cek_model *model, int input, const cek_activation_layer *layer, int *node)
{
    cek_status st;
    cek__layer l;
    cek_activation_layer a;
    const char *name;
    int y = CEK__NOTHING;

    if (node)
        *node = -1;
    CEK__NOT_NULL(model);
    CEK__NOT_NULL(layer);
    st = cek__options_take("cek_model_activation_with", &a, sizeof a, layer);
    if (st != CEK_OK)
        return st;
    name = name_of(a.kind);
    CEK_TRY(cek__layer_begin(&l, model, name ? name : "activation", 1, &input));
    if (!name)
        CEK_FAIL(CEK_INVALID, "unknown kind %u", a.kind);
    CEK_TRY(numbers_check(&l, &a));
    CEK_TRY(activation_compose(&l, &a, &y));
out:
    return cek__layer_end(&l, st, y, node);
}

cek_status cek_model_activation(cek_model *model, int input, cek_activation kind, int *node)
{
    return cek_model_activation_with(
        model, input, &(cek_activation_layer){ .size = sizeof(cek_activation_layer), .kind = kind }, node);
}
