/* recurrent.c - LSTM and GRU as ONNX has them: [T,N,D], both directions in one node, gates in an order of its
 * own (see operators.h). */
#include "nn/layers/recurrent.h"

#include <string.h>

#include "nn/onnx/operators.h"

enum { GATES_MOST = 4, DIRECTIONS_MOST = 2 };

typedef struct network {
    int gates, directions;
    const int *order; /* of ONNX's gates in ours */
    int64_t hidden;
    int x; /* [N,T,D] */
} network;

/* Direction d of a weight [directions, ...], as [rows, columns...] of the axes behind. */
static cek_status direction_cut(cek__onnx_call *c, int w, int d, int *out)
{
    cek_status st;
    cek__dims dims;

    CEK_TRY(cek__slice(c->graph, w, 0, d, 1, &w));
    dims = *cek__call_dims(c, w);
    dims.rank--;
    dims.samples >>= 1;
    memmove(dims.size, dims.size + 1, (size_t)dims.rank * sizeof *dims.size);
    st = cek__view(c->graph, w, &dims, out);
out:
    return st;
}

/* Gates' rows from `first` on, in our order. */
static cek_status gates_order(cek__onnx_call *c, const network *cell, int w, int64_t first, int *out)
{
    cek_status st = CEK_OK;
    int gate[GATES_MOST];

    for (int i = 0; i < cell->gates; i++)
        CEK_TRY(cek__slice(c->graph, w, 0, first + cell->order[i] * cell->hidden, cell->hidden, &gate[i]));
    st = cek__concat(c->graph, gate, cell->gates, 0, out);
out:
    return st;
}

/* [directions, N, H], direction d of it as [N,H]; zeros that are known are none. */
static cek_status state_take(cek__onnx_call *c, const network *cell, size_t input, int d, int *out)
{
    cek_status st = CEK_OK;
    const cek__fold_value *v;
    cek__dims dims;
    bool zeros = true;
    int flow;

    *out = CEK__NOTHING;
    if (!cek__call_has(c, input))
        return CEK_OK;
    if (cek__call_known(c, input, &v) == CEK_OK) {
        for (uint64_t i = 0; i < v->count; i++)
            zeros &= v->numbers[i].real == 0 && v->type == CEK__ONNX_FLOAT;
        if (zeros)
            return CEK_OK;
    }
    CEK_TRY(cek__call_flow(c, input, &flow));
    CEK_TRY(direction_cut(c, flow, d, out));
    dims = *cek__call_dims(c, cell->x);
    dims.rank = 2;
    dims.size[1] = cell->hidden;
    st = cek__expand(c->graph, *out, &dims, out);
out:
    return st;
}

static cek_status direction_run(cek__onnx_call *c, const network *cell, int d, bool backwards, cek__recurrence *out)
{
    cek_status st;
    cek__recurrent r = { .x = cell->x, .reverse = backwards };
    int w, state, bias;

    CEK_TRY(cek__call_weight(c, 1, &w));
    CEK_TRY(cek__call_weight(c, 2, &state));
    CEK_TRY(direction_cut(c, w, d, &w));
    CEK_TRY(direction_cut(c, state, d, &state));
    CEK_TRY(gates_order(c, cell, w, 0, &r.w_input));
    CEK_TRY(gates_order(c, cell, state, 0, &r.w_state));
    if (cek__call_has(c, 3)) {
        CEK_TRY(cek__call_weight(c, 3, &bias));
        CEK_TRY(direction_cut(c, bias, d, &bias));
        CEK_TRY(gates_order(c, cell, bias, 0, &r.bias_input));
        CEK_TRY(gates_order(c, cell, bias, cell->gates * cell->hidden, &r.bias_state));
    }
    CEK_TRY(state_take(c, cell, 5, d, &r.state));
    if (cell->gates == 4)
        CEK_TRY(state_take(c, cell, 6, d, &r.cell));
    st = cell->gates == 4 ? cek__layer_lstm(c->graph, &r, out) : cek__layer_gru(c->graph, &r, out);
out:
    return st;
}

/* [N,...,H] of each direction as an axis before H, then the axes in another order. */
static cek_status directions_join(cek__onnx_call *c, const int *flow, int count, const int *order, int *out)
{
    cek_status st = CEK_OK;
    int each[DIRECTIONS_MOST] = { 0 };

    for (int d = 0; d < count; d++) {
        cek__dims dims = *cek__call_dims(c, flow[d]);

        dims.size[dims.rank] = dims.size[dims.rank - 1];
        dims.size[dims.rank - 1] = 1;
        dims.rank++;
        CEK_TRY(cek__view(c->graph, flow[d], &dims, &each[d]));
    }
    CEK_TRY(cek__concat(c->graph, each, count, cek__call_dims(c, each[0])->rank - 2, out));
    st = cek__permute(c->graph, *out, order, out);
out:
    return st;
}

static cek_status outputs_give(cek__onnx_call *c, const network *cell, const cek__recurrence *r)
{
    static const int steps[] = { 1, 2, 0, 3 }, states[] = { 1, 0, 2 };
    cek_status st;
    int flow[DIRECTIONS_MOST];

    for (int d = 0; d < cell->directions; d++)
        flow[d] = r[d].steps;
    CEK_TRY(directions_join(c, flow, cell->directions, steps, &c->out[0]));
    for (int d = 0; d < cell->directions; d++)
        flow[d] = r[d].state;
    CEK_TRY(directions_join(c, flow, cell->directions, states, &c->out[1]));
    for (int d = 0; d < cell->directions; d++)
        flow[d] = r[d].cell;
    if (cell->gates == 4)
        CEK_TRY(directions_join(c, flow, cell->directions, states, &c->out[2]));
out:
    return st;
}

static cek_status supported(const cek__onnx_call *c, const network *cell)
{
    const char *const odd[] = { "activations", "clip", "activation_alpha", "activation_beta" };

    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        if (cek__onnx_attribute_find(c->import->onnx, c->node, odd[i]) != NULL)
            return cek__fail(CEK_UNSUPPORTED, "%s of its own", odd[i]);
    if (cek__call_int(c, "layout", 0) != 0 || cek__call_int(c, "input_forget", 0) != 0 || cek__call_has(c, 4) ||
        (cell->gates == 4 && cek__call_has(c, 7)))
        return cek__fail(CEK_UNSUPPORTED, "a layout, lengths of sequences, peepholes or an input_forget");
    if (cell->gates == 3 && cek__call_int(c, "linear_before_reset", 0) == 0)
        return cek__fail(CEK_UNSUPPORTED, "a GRU that resets before its product");
    return CEK_OK;
}

cek_status cek__onnx_recurrent(cek__onnx_call *c)
{
    static const int lstm[] = { 0, 2, 3, 1 }, gru[] = { 1, 0, 2 }; /* i o f c, z r h; ours i f g o, r z n */
    static const char *const directions[] = { "forward", "reverse", "bidirectional", NULL };
    network cell = { .gates = (int)c->argument, .order = c->argument == 4 ? lstm : gru };
    const int swap[] = { 1, 0, 2 };
    cek__recurrence r[DIRECTIONS_MOST];
    cek_status st;
    int state, direction;

    CEK_TRY(supported(c, &cell));
    CEK_TRY(cek__call_word(c, "direction", directions, &direction));
    cell.directions = direction == 2 ? 2 : 1;
    CEK_TRY(cek__call_flow(c, 0, &cell.x));
    CEK_TRY(cek__call_weight(c, 2, &state));
    if (cek__call_dims(c, cell.x)->rank != 3 || cek__call_dims(c, state)->rank != 3)
        CEK_FAIL(CEK_BAD_INPUT, "takes [T,N,D] and weights of three axes");
    cell.hidden = cek__call_dims(c, state)->size[2];
    CEK_TRY(cek__permute(c->graph, cell.x, swap, &cell.x));
    for (int d = 0; d < cell.directions; d++)
        CEK_TRY(direction_run(c, &cell, d, d == 1 || direction == 1, &r[d]));
    st = outputs_give(c, &cell, r);
out:
    return st;
}
