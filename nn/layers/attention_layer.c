/* attention_layer.c - attention with several heads between two projections, with PyTorch's parameters. */
#include "core/base/options.h"
#include "core/base/status.h"
#include "nn/layers/attention.h"
#include "nn/model/layer.h"

enum { QUERY, KEY, VALUE, PARTS };
static const char *const names[PARTS] = { "q_proj_weight", "k_proj_weight", "v_proj_weight" };

/* x w^T over the last axis, plus the bias. */
static cek_status project(cek__graph *graph, int x, int w, int bias, int *out)
{
    cek_status st;
    cek__part product = { .kind = CEK__PART_PRODUCT, .inputs = 2, .input = { x, w } };

    product.product.a = (cek__matrix){ .split = 2 };
    product.product.b = (cek__matrix){ .split = 1, .transposed = true };
    CEK_TRY(cek__graph_add(graph, &product, out));
    return bias ? cek__chain(graph, CEK_PW_ADD, *out, bias, out) : CEK_OK;
out:
    return st;
}

static cek_status inputs_check(const cek__layer *l, const cek_attention_layer *a)
{
    cek_status st = CEK_OK;
    char q[CEK__SHAPE_TEXT], k[CEK__SHAPE_TEXT], v[CEK__SHAPE_TEXT];
    const cek__dims *in[PARTS];
    bool fit = true;

    for (int i = 0; i < PARTS; i++) {
        in[i] = &l->graph->flows[l->x[i]].dims;
        fit &= in[i]->rank == 3 && in[i]->samples == 1 && in[i]->size[0] == 1;
    }
    if (!fit || in[KEY]->size[1] != in[VALUE]->size[1])
        CEK_FAIL(CEK_INVALID, "takes query [N,T,E], key and value [N,S,..], its inputs have the shapes %s, %s and %s",
                 cek__dims_text(in[QUERY], q), cek__dims_text(in[KEY], k), cek__dims_text(in[VALUE], v));
    if (a->heads < 1 || l->in.size[2] % a->heads)
        CEK_FAIL(CEK_INVALID, "%u heads do not divide the input %s", a->heads, cek__dims_text(&l->in, q));
out:
    return st;
}

/* Of one width all three weights are one parameter, each a third of its rows. xavier_uniform_ draws from +-sqrt(6 /
 * (rows + columns)). */
static cek_status weights_make(cek__layer *l, int64_t width, int w[PARTS])
{
    cek_status st;
    bool one = true;
    int all;

    for (int i = 0; i < PARTS; i++)
        one &= l->graph->flows[l->x[i]].dims.size[2] == width;
    if (one) {
        CEK_TRY(cek__layer_parameter(l, "in_proj_weight", 2, (int64_t[]){ 3 * width, width }, 4 * (double)width / 6,
                                     &all));
        for (int i = 0; i < PARTS; i++)
            CEK_TRY(cek__slice(l->graph, all, 0, i * width, width, &w[i]));
        return CEK_OK;
    }
    for (int i = 0; i < PARTS; i++) {
        int64_t in = l->graph->flows[l->x[i]].dims.size[2];

        CEK_TRY(cek__layer_parameter(l, names[i], 2, (int64_t[]){ width, in }, (double)(width + in) / 6, &w[i]));
    }
    return CEK_OK;
out:
    return st;
}

static cek_status biases_make(cek__layer *l, int64_t width, int bias[PARTS])
{
    cek_status st;
    int all;

    CEK_TRY(cek__layer_filled(l, "in_proj_bias", 1, (int64_t[]){ 3 * width }, 0, &all));
    for (int i = 0; i < PARTS; i++)
        CEK_TRY(cek__slice(l->graph, all, 0, i * width, width, &bias[i]));
out:
    return st;
}

static cek_status attention_add(cek__layer *l, const cek_attention_layer *a, int mask, int *y)
{
    cek_status st;
    int64_t width = l->in.size[2];
    int w[PARTS], bias[PARTS] = { 0 }, x[PARTS], out, out_bias = CEK__NOTHING;
    cek__attention inner = { .heads = a->heads, .causal = a->causal, .mask = mask };

    CEK_TRY(weights_make(l, width, w));
    if (!a->no_bias)
        CEK_TRY(biases_make(l, width, bias));
    for (int i = 0; i < PARTS; i++)
        CEK_TRY(project(l->graph, l->x[i], w[i], bias[i], &x[i]));
    inner.q = x[QUERY];
    inner.k = x[KEY];
    inner.v = x[VALUE];
    CEK_TRY(cek__layer_attention(l->graph, &inner, y));
    CEK_TRY(cek__layer_parameter(l, "out_proj.weight", 2, (int64_t[]){ width, width }, (double)width, &out));
    if (!a->no_bias)
        CEK_TRY(cek__layer_filled(l, "out_proj.bias", 1, &width, 0, &out_bias));
    CEK_TRY(project(l->graph, *y, out, out_bias, y));
out:
    return st;
}

cek_status cek_model_attention(cek_model *model, int query, int key, int value, int mask,
                               const cek_attention_layer *layer, int *node)
{
    cek_status st;
    cek__layer l;
    cek_attention_layer a = { 0 };
    int y = CEK__NOTHING;

    if (node)
        *node = -1;
    CEK__NOT_NULL(model);
    CEK__NOT_NULL(layer);
    CEK_TRY(cek__layer_begin(&l, model, "attention", mask == -1 ? 3 : 4, (int[]){ query, key, value, mask }));
    CEK_TRY(cek__options_take("cek_model_attention", &a, sizeof a, layer));
    CEK_TRY(inputs_check(&l, &a));
    cek__layer_note(&l, "%u heads%s%s", a.heads, a.causal ? ", causal" : "", a.no_bias ? ", no bias" : "");
    CEK_TRY(attention_add(&l, &a, mask == -1 ? CEK__NOTHING : l.x[3], &y));
out:
    return cek__layer_end(&l, st, y, node);
}
