/* recurrent.c - see recurrent.h.
 *
 * What the steps read of the input is one product for all of them, with what is added to all steps alike. A step keeps
 * an axis of one element for itself, [N,1,H], so that cuts of it are read where they lie. */
#include "nn/layers/recurrent.h"

#include <stdlib.h>

#include "core/base/alloc.h"
#include "nn/graph/parts.h"

/* One step: from what the input gives, [N,1,gates * H], to the next state, and the cell where there is one. */
typedef cek_status stepper(cek__graph *graph, const cek__recurrent *r, int input, int *state, int *cell);

/* x w^T + bias over the last axis. */
static cek_status linear(cek__graph *graph, int x, int w, int bias, int *out)
{
    cek_status st;
    cek__part product = { .kind = CEK__PART_PRODUCT, .inputs = 2, .input = { x, w } };

    product.product.a = (cek__matrix){ .split = 2 };
    product.product.b = (cek__matrix){ .split = 1, .transposed = true };
    CEK_TRY(cek__graph_add(graph, &product, out));
    if (bias)
        CEK_TRY(cek__chain(graph, CEK_PW_ADD, *out, bias, out));
out:
    return st;
}

static cek_status gates_cut(cek__graph *graph, int x, int count, int *gates)
{
    cek_status st = CEK_OK;
    int64_t size = graph->flows[x].dims.size[2] / count;

    for (int i = 0; i < count; i++)
        CEK_TRY(cek__slice(graph, x, 2, i * size, size, &gates[i]));
out:
    return st;
}

static cek_status chain_add(cek__graph *graph, int inputs, const int *input, uint32_t count,
                            const cek_pointwise_instruction *code, int *out)
{
    cek__part part = { .kind = CEK__PART_CHAIN, .inputs = inputs, .chain = { .count = count } };

    for (int i = 0; i < inputs; i++)
        part.input[i] = input[i];
    for (uint32_t i = 0; i < count; i++)
        part.chain.code[i] = code[i];
    return cek__graph_add(graph, &part, out);
}

/* c' = sigmoid(f) c + sigmoid(i) tanh(g), h' = sigmoid(o) tanh(c'). Both biases come with the input. */
static cek_status lstm_step(cek__graph *graph, const cek__recurrent *r, int input, int *state, int *cell)
{
    static const cek_pointwise_instruction next[] = {
        { .code = CEK_PW_SIGMOID, .a = 1 },     /* 4: of f */
        { .code = CEK_PW_MUL, .a = 4, .b = 3 }, /* 5 */
        { .code = CEK_PW_SIGMOID, .a = 0 },     /* 6: of i */
        { .code = CEK_PW_TANH, .a = 2 },        /* 7: of g */
        { .code = CEK_PW_MUL, .a = 6, .b = 7 }, /* 8 */
        { .code = CEK_PW_ADD, .a = 5, .b = 8 },
    };
    static const cek_pointwise_instruction shown[] = { { .code = CEK_PW_SIGMOID, .a = 0 },
                                                       { .code = CEK_PW_TANH, .a = 1 },
                                                       { .code = CEK_PW_MUL, .a = 2, .b = 3 } };
    cek_status st;
    int all, gate[4];

    CEK_TRY(linear(graph, *state, r->w_state, CEK__NOTHING, &all));
    CEK_TRY(cek__chain(graph, CEK_PW_ADD, all, input, &all));
    CEK_TRY(gates_cut(graph, all, 4, gate));
    CEK_TRY(chain_add(graph, 4, (int[]){ gate[0], gate[1], gate[2], *cell }, 6, next, cell));
    CEK_TRY(chain_add(graph, 2, (int[]){ gate[3], *cell }, 3, shown, state));
out:
    return st;
}

/* n = tanh(input's n + sigmoid(r) state's n), h' = n + sigmoid(z) (h - n), with r and z the sums of both. */
static cek_status gru_step(cek__graph *graph, const cek__recurrent *r, int input, int *state, int *cell)
{
    static const cek_pointwise_instruction fresh[] = {
        { .code = CEK_PW_ADD, .a = 0, .b = 1 }, /* 4 */
        { .code = CEK_PW_SIGMOID, .a = 4 },     /* 5: of r */
        { .code = CEK_PW_MUL, .a = 5, .b = 3 }, /* 6 */
        { .code = CEK_PW_ADD, .a = 2, .b = 6 }, /* 7 */
        { .code = CEK_PW_TANH, .a = 7 },
    };
    static const cek_pointwise_instruction next[] = {
        { .code = CEK_PW_ADD, .a = 0, .b = 1 }, /* 4 */
        { .code = CEK_PW_SIGMOID, .a = 4 },     /* 5: of z */
        { .code = CEK_PW_SUB, .a = 3, .b = 2 }, /* 6 */
        { .code = CEK_PW_MUL, .a = 5, .b = 6 }, /* 7 */
        { .code = CEK_PW_ADD, .a = 2, .b = 7 },
    };
    cek_status st;
    int all, of_input[3], of_state[3], n;

    (void)cell;
    CEK_TRY(linear(graph, *state, r->w_state, r->bias_state, &all));
    CEK_TRY(gates_cut(graph, input, 3, of_input));
    CEK_TRY(gates_cut(graph, all, 3, of_state));
    CEK_TRY(chain_add(graph, 4, (int[]){ of_input[0], of_state[0], of_input[2], of_state[2] }, 5, fresh, &n));
    CEK_TRY(chain_add(graph, 4, (int[]){ of_input[1], of_state[1], n, *state }, 5, next, state));
out:
    return st;
}

/* [N,H] that was given, or zeros, as [N,1,H]. */
static cek_status start(cek__graph *graph, const cek__recurrent *r, int given, int64_t size, int *out)
{
    cek__dims dims = graph->flows[r->x].dims;

    dims.size[1] = 1;
    dims.size[2] = size;
    return given ? cek__view(graph, given, &dims, out) : cek__constant(graph, 0, &dims, out);
}

static cek_status end(cek__graph *graph, int flow, int64_t size, int *out)
{
    cek__dims dims = graph->flows[flow].dims;

    dims.rank = 2;
    dims.size[1] = size;
    return cek__view(graph, flow, &dims, out);
}

static cek_status shapes_check(const cek__graph *graph, const cek__recurrent *r, int gates)
{
    const cek__dims *x = &graph->flows[r->x].dims, *w = &graph->flows[r->w_state].dims;

    if (x->rank != 3 || x->samples > 1 || (x->samples && x->size[0] != 1))
        return cek__fail(CEK_INVALID, "recurrent: takes [N,T,D]");
    if (w->rank != 2 || w->size[0] != gates * w->size[1])
        return cek__fail(CEK_INVALID, "recurrent: weights of the state are not [%d H,H]", gates);
    if (graph->flows[r->w_input].dims.size[0] != w->size[0])
        return cek__fail(CEK_INVALID, "recurrent: weights of input and state give different numbers of gates");
    return CEK_OK;
}

static cek_status steps_add(cek__graph *graph, const cek__recurrent *r, int gates, stepper *step, cek__recurrence *out)
{
    cek_status st;
    int64_t count = graph->flows[r->x].dims.size[1], size = graph->flows[r->w_state].dims.size[1];
    int *states = NULL, all, one, bias, state, cell = CEK__NOTHING;

    *out = (cek__recurrence){ 0 };
    CEK_TRY(shapes_check(graph, r, gates));
    CEK_TRY(cek__alloc_array((size_t)count, sizeof *states, &states));
    bias = r->bias_input;
    if (gates == 4 && bias && r->bias_state)
        CEK_TRY(cek__chain(graph, CEK_PW_ADD, bias, r->bias_state, &bias));
    else if (gates == 4 && !bias)
        bias = r->bias_state;
    CEK_TRY(linear(graph, r->x, r->w_input, bias, &all));
    CEK_TRY(start(graph, r, r->state, size, &state));
    if (gates == 4)
        CEK_TRY(start(graph, r, r->cell, size, &cell));
    for (int64_t i = 0; i < count; i++) {
        int64_t t = r->reverse ? count - 1 - i : i;

        CEK_TRY(cek__slice(graph, all, 1, t, 1, &one));
        CEK_TRY(step(graph, r, one, &state, &cell));
        states[t] = state;
    }
    CEK_TRY(cek__concat(graph, states, (int)count, 1, &out->steps));
    CEK_TRY(end(graph, state, size, &out->state));
    if (cell)
        CEK_TRY(end(graph, cell, size, &out->cell));
    st = CEK_OK;
out:
    free(states);
    return st;
}

cek_status cek__layer_lstm(cek__graph *graph, const cek__recurrent *recurrent, cek__recurrence *out)
{
    return steps_add(graph, recurrent, 4, lstm_step, out);
}

cek_status cek__layer_gru(cek__graph *graph, const cek__recurrent *recurrent, cek__recurrence *out)
{
    return steps_add(graph, recurrent, 3, gru_step, out);
}
