/* normalise.c - see normalise.h.
 *
 * With s = the sum of dy, t = that of dy (x - mean) and n elements: the bias gets s, the weight t rest, and
 * x weight rest (dy - s / n - (x - mean) rest^2 t / n). */
#include "nn/graph/normalise.h"

#include "nn/graph/chain.h"
#include "nn/graph/parts.h"

enum { X, MEAN, REST, WEIGHT, BIAS }; /* inputs */

cek_status cek__normalise(cek__graph *graph, int x, int mean, int rest, const int affine[2], int *out)
{
    cek__part chain = { .kind = CEK__PART_CHAIN,
                        .inputs = affine[0] ? 5 : 3,
                        .input = { x, mean, rest, affine[0], affine[1] },
                        .chain = { .count = affine[0] ? 4 : 2, .normalises = true } };
    const uint32_t at = (uint32_t)chain.inputs;

    chain.chain.code[0] = (cek_pointwise_instruction){ .code = CEK_PW_SUB, .a = X, .b = MEAN };
    chain.chain.code[1] = (cek_pointwise_instruction){ .code = CEK_PW_MUL, .a = at, .b = REST };
    chain.chain.code[2] = (cek_pointwise_instruction){ .code = CEK_PW_MUL, .a = at + 1, .b = WEIGHT };
    chain.chain.code[3] = (cek_pointwise_instruction){ .code = CEK_PW_ADD, .a = at + 2, .b = BIAS };
    return cek__graph_add(graph, &chain, out);
}

/* The sum of dy (x - mean), [C]. */
static cek_status product_sum(cek__graph *graph, const cek__part *p, int dy, uint32_t axes, int *out)
{
    cek_status st;
    cek__part part = { .kind = CEK__PART_REDUCE,
                       .inputs = 3,
                       .input = { p->input[X], dy },
                       .reduce = {
                           .function = CEK_REDUCE_SUM, .axes = axes, .masked = true, .second = true, .centre = true } };
    cek__dims channels;

    cek__dims_without(&graph->flows[dy].dims, axes, &channels);
    CEK_TRY(cek__view(graph, p->input[MEAN], &channels, &part.input[2]));
    return cek__graph_add(graph, &part, out);
out:
    return st;
}

/* of[C,1,..] = (one or two of rest) weight sum / n */
static cek_status factor(cek__graph *graph, const cek__part *p, int sum, int number, bool squared, int *of)
{
    cek__part chain = { .kind = CEK__PART_CHAIN, .inputs = 3, .input = { sum, number, p->input[REST] } };
    cek_pointwise_instruction *code = chain.chain.code;
    uint32_t last;

    if (p->inputs > WEIGHT)
        chain.input[chain.inputs++] = p->input[WEIGHT];
    last = (uint32_t)chain.inputs;
    code[chain.chain.count++] = (cek_pointwise_instruction){ .code = CEK_PW_DIV, .a = 0, .b = 1 };
    for (uint32_t k = 0; k < (squared ? 3u : 1u); k++)
        code[chain.chain.count++] = (cek_pointwise_instruction){ .code = CEK_PW_MUL, .a = last++, .b = 2 };
    if (p->inputs > WEIGHT)
        code[chain.chain.count++] = (cek_pointwise_instruction){ .code = CEK_PW_MUL, .a = last, .b = 3 };
    return cek__graph_add(graph, &chain, of);
}

static cek_status of_input(cek__graph *graph, const cek__part *p, int dy, const int sums[2], uint32_t axes, int *dx)
{
    cek_status st;
    cek__part chain = { .kind = CEK__PART_CHAIN,
                        .inputs = 6,
                        .input = { dy, p->input[X], p->input[MEAN] },
                        .chain = { 5,
                                   { { .code = CEK_PW_SUB, .a = 1, .b = 2 },
                                     { .code = CEK_PW_MUL, .a = 6, .b = 5 },
                                     { .code = CEK_PW_MUL, .a = 0, .b = 3 },
                                     { .code = CEK_PW_SUB, .a = 8, .b = 7 },
                                     { .code = CEK_PW_SUB, .a = 9, .b = 4 } } } };
    int number;

    CEK_TRY(cek__count(graph, p->input[X], axes, &number));
    chain.input[3] = p->input[REST];
    if (p->inputs > WEIGHT)
        CEK_TRY(cek__chain(graph, CEK_PW_MUL, p->input[REST], p->input[WEIGHT], &chain.input[3]));
    CEK_TRY(factor(graph, p, sums[0], number, false, &chain.input[4]));
    CEK_TRY(factor(graph, p, sums[1], number, true, &chain.input[5]));
    if (cek__reduce_leaves_out(&graph->flows[dy].dims))
        cek__chain_leave_out(&chain);
    return cek__graph_add(graph, &chain, dx);
out:
    return st;
}

cek_status cek__normalise_back(cek__backward *to, int part, int dy)
{
    cek_status st;
    cek__graph *graph = to->graph;
    const cek__part p = graph->parts[part];
    const uint32_t axes = ((1u << graph->flows[dy].dims.rank) - 1) & ~2u;
    const cek__dims spread = graph->flows[p.input[REST]].dims;
    int sums[2], dx;

    CEK_TRY(cek__sum(graph, dy, axes, &sums[0]));
    CEK_TRY(product_sum(graph, &p, dy, axes, &sums[1]));
    for (int k = 0; k < 2; k++)
        CEK_TRY(cek__view(graph, sums[k], &spread, &sums[k]));
    if (p.inputs > WEIGHT) {
        CEK_TRY(cek__chain(graph, CEK_PW_MUL, sums[1], p.input[REST], &dx));
        CEK_TRY(cek__contribute(to, p.input[WEIGHT], dx));
        CEK_TRY(cek__contribute(to, p.input[BIAS], sums[0]));
    }
    if (!graph->flows[p.input[X]].needs_gradient)
        return CEK_OK;
    CEK_TRY(of_input(graph, &p, dy, sums, axes, &dx));
    return cek__contribute(to, p.input[X], dx);
out:
    return st;
}
