/* loss.c - what batches are compared with, and how: a model's loss by name. */
#include <math.h>
#include <stdlib.h>

#include "cekernels/parts.h"
#include "core/base/alloc.h"
#include "core/base/options.h"
#include "core/base/status.h"
#include "nn/layers/losses.h"
#include "nn/model/layer.h"

typedef struct loss_kind {
    cek_loss kind;
    const char *name;
    bool classes; /* against labels */
} loss_kind;

static const loss_kind kinds[] = {
    { CEK_LOSS_CROSS_ENTROPY, "cross_entropy", true },
    { CEK_LOSS_NLL, "nll", true },
    { CEK_LOSS_SOFT_CROSS_ENTROPY, "soft_cross_entropy", false },
    { CEK_LOSS_BINARY_CROSS_ENTROPY, "binary_cross_entropy", false },
    { CEK_LOSS_MSE, "squared_error", false },
    { CEK_LOSS_L1, "l1", false },
    { CEK_LOSS_SMOOTH_L1, "smooth_l1", false },
    { CEK_LOSS_KL, "kl_divergence", false },
};

static const loss_kind *kind_of(cek_loss kind)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].kind == kind)
            return &kinds[i];
    return NULL;
}

static cek_status weights_check(const cek_loss_options *o, int64_t classes)
{
    for (int64_t i = 0; o->weights && i < classes; i++)
        if (!(o->weights[i] >= 0) || isinf(o->weights[i]))
            return cek__fail(CEK_INVALID, "class %lld weighs %g", (long long)i, (double)o->weights[i]);
    return CEK_OK;
}

/* Options that another kind has. */
static cek_status options_check(const loss_kind *kind, const cek_loss_options *o)
{
    cek_status st = CEK_OK;

    if (!kind->classes && (o->weights || o->ignores))
        CEK_FAIL(CEK_INVALID, "%s has no classes that could weigh differently", kind->name);
    if (o->smoothing != 0 && kind->kind != CEK_LOSS_CROSS_ENTROPY)
        CEK_FAIL(CEK_INVALID, "%s smooths no labels", kind->name);
    if (!(o->smoothing >= 0 && o->smoothing <= 1))
        CEK_FAIL(CEK_INVALID, "smoothing by %g, it must be from 0 to 1", o->smoothing);
    if (!(o->beta > 0) || !(o->positive > 0))
        CEK_FAIL(CEK_INVALID, "beta %g and positive %g, they must be above 0", o->beta, o->positive);
    if (o->sums && kind->classes)
        CEK_FAIL(CEK_INVALID, "sums go with values as targets, not with labels");
out:
    return st;
}

/* All that can be wrong, before anything is added. */
static cek_status loss_check(const cek_model *model, int input, const loss_kind *kind, const cek_loss_options *o)
{
    cek_status st;
    const cek__dims *in;
    char text[CEK__SHAPE_TEXT];

    CEK_TRY(cek__node_check(model, input, "input"));
    if (model->loss || model->target)
        CEK_FAIL(CEK_INVALID, "the model has %s already", model->loss ? "a loss" : "targets");
    in = cek__node_dims(model, input);
    if (model->graph.flows[model->nodes[input].flow].type == CEK_I32)
        CEK_FAIL(CEK_INVALID, "takes values, its input has integers: cast them before (cek_part_cast)");
    if (in->rank < 2 || in->samples != 1 || in->size[0] != 1)
        CEK_FAIL(CEK_INVALID, "takes values of each sample, its input has the shape %s", cek__dims_text(in, text));
    CEK_TRY(options_check(kind, o));
    if (kind->classes)
        CEK_TRY(weights_check(o, in->size[in->rank - 1]));
out:
    return st;
}

/* What each label weighs where not all weigh 1. */
static cek_status labels_weigh(const cek_loss_options *o, int64_t classes, cek__label_weights *out)
{
    cek_status st = CEK_OK;

    *out = (cek__label_weights){ .classes = classes, .ignores = o->ignores, .ignored = o->ignored };
    if (o->weights)
        CEK_TRY(cek__alloc_array((size_t)classes, sizeof *out->weight, &out->weight));
    for (int64_t i = 0; o->weights && i < classes; i++)
        out->weight[i] = o->weights[i];
out:
    return st;
}

/* [N,..,classes] against labels. */
static cek_status classes_compare(cek__layer *l, const cek_loss_options *o, int target, int *v)
{
    cek_status st;
    const int64_t classes = l->in.size[l->in.rank - 1];
    cek__class_options options = {
        .logs = o->kind == CEK_LOSS_NLL, .smoothing = o->smoothing, .ignores = o->ignores, .ignored = o->ignored
    };
    int weights;

    if (o->weights)
        CEK_TRY(cek__layer_constant(l, 1, &classes, o->weights, &options.weights));
    CEK_TRY(cek__class_cross_entropy(l->graph, l->x[0], target, &options, v, &weights));
    st = cek__class_hits(l->graph, l->x[0], target, &options, &l->model->hits);
out:
    return st;
}

static cek_status values_compare(cek__layer *l, const cek_loss_options *o, int target, int *v)
{
    const int x = l->x[0];

    switch (o->kind) {
    case CEK_LOSS_SOFT_CROSS_ENTROPY: return cek__soft_cross_entropy(l->graph, x, target, v);
    case CEK_LOSS_BINARY_CROSS_ENTROPY: return cek__binary_cross_entropy(l->graph, x, target, o->positive, v);
    case CEK_LOSS_L1: return cek__l1(l->graph, x, target, v);
    case CEK_LOSS_SMOOTH_L1: return cek__smooth_l1(l->graph, x, target, o->beta, v);
    case CEK_LOSS_KL: return cek__kl_divergence(l->graph, x, target, v);
    default: return cek__squared_difference(l->graph, x, target, v);
    }
}

/* The second input as weights of v's rows. */
static cek_status rows_weigh(cek__layer *l, int v, int *w)
{
    const cek__dims *rows = &l->graph->flows[v].dims, *weights = &l->graph->flows[l->x[1]].dims;
    cek__dims one = { .rank = rows->rank, .samples = 1, .size = { 1, 1, 1, 1, 1, 1, 1, 1 } };
    char text[2][CEK__SHAPE_TEXT];

    *w = l->x[1];
    if (cek__dims_equal(rows, weights))
        return CEK_OK;
    if (weights->samples != 1 || cek__dims_elements(weights, 0, weights->rank, 1) != 1)
        return cek__fail(CEK_INVALID, "sample weights %s for losses %s", cek__dims_text(weights, text[0]),
                         cek__dims_text(rows, text[1]));
    return cek__view(l->graph, l->x[1], &one, w);
}

/* Targets, what is compared with them, and its sum, in one node. */
static cek_status loss_add(cek__layer *l, const loss_kind *kind, const cek_loss_options *o, int *v)
{
    cek_status st;
    cek__dims dims = l->in;
    int target, gradient, weights = CEK__NOTHING;

    dims.rank -= kind->classes;
    CEK_TRY(cek__layer_target(l, kind->classes ? CEK_I32 : CEK_F32, &dims, &target));
    if (kind->classes) {
        CEK_TRY(classes_compare(l, o, target, v));
    } else {
        CEK_TRY(values_compare(l, o, target, v));
        CEK_TRY(o->sums ? cek__sample_sum(l->graph, *v, v) : cek__sample_mean(l->graph, *v, v));
    }
    if (o->weighs)
        CEK_TRY(rows_weigh(l, *v, &weights));
    CEK_TRY(cek__loss(l->graph, *v, weights, &gradient));
    l->model->loss = l->graph->flows[gradient].part;
out:
    return st;
}

static cek_status node_add(cek_model *model, int input, const loss_kind *kind, const cek_loss_options *o, int *node)
{
    cek_status st;
    cek__layer l;
    int y = CEK__NOTHING;

    CEK_TRY(cek__layer_begin(&l, model, kind->name, 1 + o->weighs, (int[]){ input, o->sample_weights }));
    CEK_TRY(loss_add(&l, kind, o, &y));
out:
    return cek__layer_end(&l, st, y, node);
}

cek_status cek_model_loss(cek_model *model, int input, const cek_loss_options *options, int *node)
{
    cek_status st;
    cek_loss_options o;
    const loss_kind *kind;
    cek__label_weights labels = { .classes = 0 };

    if (node)
        *node = -1;
    CEK__NOT_NULL(model);
    CEK__NOT_NULL(options);
    CEK_TRY(cek__options_take("cek_model_loss", &o, sizeof o, options));
    kind = kind_of(o.kind);
    if (!kind)
        CEK_FAIL(CEK_INVALID, "unknown kind %u", o.kind);
    o.beta = o.beta == 0 ? 1 : o.beta;
    o.positive = o.positive == 0 ? 1 : o.positive;
    CEK_TRY(loss_check(model, input, kind, &o));
    if (kind->classes)
        CEK_TRY(labels_weigh(&o, cek__node_dims(model, input)->size[cek__node_dims(model, input)->rank - 1], &labels));
    CEK_TRY(node_add(model, input, kind, &o, node));
    model->labels = labels;
    if (model->output < 0)
        model->output = input;
    return CEK_OK;
out:
    free(labels.weight);
    return cek__fail_prefix(st, "loss");
}
