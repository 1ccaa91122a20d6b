/* masked.c - reductions over samples, into which padding does not enter: they leave out rows where they can, else what
 * those hold is put aside for what changes nothing. */
#include <math.h>

#include "nn/graph/parts.h"

/* x where the sample counts, else `neutral`. */
static cek_status padding_aside(cek__graph *graph, int x, double neutral, int *out)
{
    cek__part part = { .kind = CEK__PART_CHAIN,
                       .inputs = 1,
                       .input = { x },
                       .chain = { 3,
                                  { { .code = CEK_PW_VALID },
                                    { .code = CEK_PW_CONST, .imm = neutral },
                                    { .code = CEK_PW_SELECT, .a = 1, .b = 0, .c = 2 } } } };

    return cek__graph_add(graph, &part, out);
}

static cek_status reduce(cek__graph *graph, int x, uint32_t function, uint32_t axes, int *out)
{
    cek__part part = { .kind = CEK__PART_REDUCE,
                       .inputs = 1,
                       .input = { x },
                       .reduce = { .function = function, .axes = axes, .masked = true } };

    return cek__graph_add(graph, &part, out);
}

cek_status cek__count(cek__graph *graph, int of, uint32_t axes, int *out)
{
    cek_status st;
    const cek__dims dims = graph->flows[of].dims, *x = &dims;
    double others = 1;
    cek__part valid = { .kind = CEK__PART_CHAIN, .dims = { .rank = 1, .samples = 1 }, .chain = { .count = 1 } };
    cek__part all = { .kind = CEK__PART_CHAIN, .inputs = 1, .chain = { .count = 1 } };
    int mask;

    for (int i = 0; i < x->rank; i++) {
        if (x->samples >> i & 1)
            valid.dims.size[0] = x->size[i];
        else if (axes >> i & 1)
            others *= (double)x->size[i];
    }
    valid.chain.code[0] = (cek_pointwise_instruction){ .code = CEK_PW_VALID };
    CEK_TRY(cek__graph_add(graph, &valid, &mask));
    CEK_TRY(reduce(graph, mask, CEK_REDUCE_SUM, 1, &all.input[0]));
    all.chain.code[0] = (cek_pointwise_instruction){ .code = CEK_PW_MUL_IMM, .imm = others };
    return cek__graph_add(graph, &all, out);
out:
    return st;
}

cek_status cek__reduce_masked(cek__graph *graph, int x, uint32_t function, uint32_t axes, int *out)
{
    cek_status st;
    const cek__dims dims = graph->flows[x].dims;
    const bool leaves_out = cek__reduce_leaves_out(&dims);
    double neutral = function == CEK_REDUCE_MAX ? -INFINITY : function == CEK_REDUCE_MIN ? INFINITY : 0;
    int values, number;

    if (!(axes & dims.samples))
        return cek__reduce(graph, x, function, axes, out);
    values = x;
    if (!leaves_out || function == CEK_REDUCE_MAX || function == CEK_REDUCE_MIN)
        CEK_TRY(padding_aside(graph, x, neutral, &values));
    if (function != CEK_REDUCE_MEAN || leaves_out)
        return reduce(graph, values, function, axes, out);
    CEK_TRY(reduce(graph, values, CEK_REDUCE_SUM, axes, &values));
    CEK_TRY(cek__count(graph, x, axes, &number));
    return cek__chain(graph, CEK_PW_DIV, values, number, out);
out:
    return st;
}
