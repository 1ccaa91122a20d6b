/* recurrent_layer.c - LSTM and GRU of several layers, in one or both directions, with PyTorch's parameters. */
#include <stdio.h>

#include "cekernels/parts.h"
#include "core/base/options.h"
#include "core/base/status.h"
#include "nn/layers/recurrent.h"
#include "nn/model/layer.h"

typedef struct recurrent_kind {
    const char *name, *call;
    int gates;
    cek_status (*add)(cek__graph *graph, const cek__recurrent *recurrent, cek__recurrence *out);
} recurrent_kind;

enum { LAYERS_MOST = 100 };

static const recurrent_kind lstm = { "lstm", "cek_model_lstm", 4, cek__layer_lstm };
static const recurrent_kind gru = { "gru", "cek_model_gru", 3, cek__layer_gru };

static cek_status layer_take(const cek__layer *l, const recurrent_kind *kind, const cek_recurrent_layer *from,
                             cek_recurrent_layer *r)
{
    cek_status st;
    char text[CEK__SHAPE_TEXT];

    CEK_TRY(cek__options_take(kind->call, r, sizeof *r, from));
    r->layers = r->layers ? r->layers : 1;
    if (l->in.rank != 3 || l->in.samples != 1 || l->in.size[0] != 1)
        CEK_FAIL(CEK_INVALID, "takes steps [N,T,D], its input has the shape %s", cek__dims_text(&l->in, text));
    if (r->hidden < 1)
        CEK_FAIL(CEK_INVALID, "a state of %u", r->hidden);
    if (r->layers > LAYERS_MOST)
        CEK_FAIL(CEK_INVALID, "%u layers: at most %d are possible", r->layers, LAYERS_MOST);
out:
    return st;
}

/* "weight_ih_l0_reverse" */
static cek_status parameter_make(cek__layer *l, const char *what, uint32_t layer, bool reverse, int rank,
                                 const int64_t *shape, uint32_t hidden, int *flow)
{
    char name[48];

    snprintf(name, sizeof name, "%s_l%u%s", what, layer, reverse ? "_reverse" : "");
    return cek__layer_parameter(l, name, rank, shape, hidden, flow);
}

/* One layer in one direction. */
static cek_status direction_add(cek__layer *l, const recurrent_kind *kind, const cek_recurrent_layer *r, uint32_t layer,
                                bool reverse, int x, cek__recurrence *out)
{
    cek_status st;
    const int64_t rows = (int64_t)kind->gates * r->hidden, in = l->graph->flows[x].dims.size[2];
    cek__recurrent one = { .x = x, .reverse = reverse };

    CEK_TRY(parameter_make(l, "weight_ih", layer, reverse, 2, (int64_t[]){ rows, in }, r->hidden, &one.w_input));
    CEK_TRY(parameter_make(l, "weight_hh", layer, reverse, 2, (int64_t[]){ rows, r->hidden }, r->hidden, &one.w_state));
    if (!r->no_bias) {
        CEK_TRY(parameter_make(l, "bias_ih", layer, reverse, 1, &rows, r->hidden, &one.bias_input));
        CEK_TRY(parameter_make(l, "bias_hh", layer, reverse, 1, &rows, r->hidden, &one.bias_state));
    }
    st = kind->add(l->graph, &one, out);
out:
    return st;
}

/* Flows [N,H] as [N,count,H]. */
static cek_status states_join(cek__graph *graph, int *flow, int count, int *out)
{
    cek_status st = CEK_OK;

    for (int i = 0; i < count; i++) {
        cek__dims dims = graph->flows[flow[i]].dims;

        dims.rank = 3;
        dims.size[2] = dims.size[1];
        dims.size[1] = 1;
        CEK_TRY(cek__view(graph, flow[i], &dims, &flow[i]));
    }
    st = cek__concat(graph, flow, count, 1, out);
out:
    return st;
}

static cek_status layers_add(cek__layer *l, const recurrent_kind *kind, const cek_recurrent_layer *r, int *y)
{
    cek_status st = CEK_OK;
    int both[2], hidden[2 * LAYERS_MOST], cell[2 * LAYERS_MOST], count = 0;

    *y = l->x[0];
    for (uint32_t i = 0; i < r->layers; i++) {
        for (int d = 0; d <= r->bidirectional; d++) {
            cek__recurrence out;

            CEK_TRY(direction_add(l, kind, r, i, d, *y, &out));
            both[d] = out.steps;
            hidden[count] = out.state;
            cell[count++] = out.cell;
        }
        if (r->bidirectional)
            CEK_TRY(cek__concat(l->graph, both, 2, 2, &both[0]));
        *y = both[0];
    }
    CEK_TRY(states_join(l->graph, hidden, count, &l->node.state[CEK_STATE_HIDDEN]));
    if (kind == &lstm)
        CEK_TRY(states_join(l->graph, cell, count, &l->node.state[CEK_STATE_CELL]));
out:
    return st;
}

static cek_status recurrent_add(cek_model *model, const recurrent_kind *kind, int input,
                                const cek_recurrent_layer *layer, int *node)
{
    cek_status st;
    cek__layer l;
    cek_recurrent_layer r = { 0 };
    int y = CEK__NOTHING;

    CEK_TRY(cek__layer_begin(&l, model, kind->name, 1, &input));
    CEK_TRY(layer_take(&l, kind, layer, &r));
    cek__layer_note(&l, "%u layer%s%s%s", r.layers, r.layers == 1 ? "" : "s",
                    r.bidirectional ? ", both directions" : "", r.no_bias ? ", no bias" : "");
    CEK_TRY(layers_add(&l, kind, &r, &y));
out:
    return cek__layer_end(&l, st, y, node);
}

cek_status cek_model_lstm(cek_model *model, int input, const cek_recurrent_layer *layer, int *node)
{
    if (node)
        *node = -1;
    CEK__NOT_NULL(model);
    CEK__NOT_NULL(layer);
    return recurrent_add(model, &lstm, input, layer, node);
}

cek_status cek_model_gru(cek_model *model, int input, const cek_recurrent_layer *layer, int *node)
{
    if (node)
        *node = -1;
    CEK__NOT_NULL(model);
    CEK__NOT_NULL(layer);
    return recurrent_add(model, &gru, input, layer, node);
}
