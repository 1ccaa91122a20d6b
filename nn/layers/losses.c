/* losses.c - see losses.h. In each list values 0 and 1 are x and the target, the n-th instruction gives value n + 2. */
#include "nn/layers/losses.h"

#include <string.h>

#include "core/base/status.h"
#include "nn/graph/parts.h"

typedef cek_pointwise_instruction instruction;

static cek_status chain(cek__graph *graph, int x, int target, const instruction *code, size_t bytes, int *out)
{
    cek__part part = { .kind = CEK__PART_CHAIN, .inputs = 2, .input = { x, target } };

    if (!cek__dims_equal(&graph->flows[x].dims, &graph->flows[target].dims))
        return cek__fail(CEK_INVALID, "loss: the target's shape is another than that of what is predicted");
    part.chain.count = (uint32_t)(bytes / sizeof *code);
    memcpy(part.chain.code, code, bytes);
    return cek__graph_add(graph, &part, out);
}

/* clang-format off */
cek_status cek__l1(cek__graph *graph, int x, int target, int *out)
{
    const instruction code[] = {
        { .code = CEK_PW_SUB, .a = 0, .b = 1 },
        { .code = CEK_PW_ABS, .a = 2 },
    };

    return chain(graph, x, target, code, sizeof code, out);
}

cek_status cek__squared_difference(cek__graph *graph, int x, int target, int *out)
{
    const instruction code[] = {
        { .code = CEK_PW_SUB, .a = 0, .b = 1 },
        { .code = CEK_PW_MUL, .a = 2, .b = 2 },
    };

    return chain(graph, x, target, code, sizeof code, out);
}

cek_status cek__smooth_l1(cek__graph *graph, int x, int target, double beta, int *out)
{
    const instruction code[] = {
        { .code = CEK_PW_SUB, .a = 0, .b = 1 },
        { .code = CEK_PW_ABS, .a = 2 },
        { .code = CEK_PW_CONST, .imm = beta },
        { .code = CEK_PW_LESS, .a = 3, .b = 4 },
        { .code = CEK_PW_MUL, .a = 2, .b = 2 },
        { .code = CEK_PW_MUL_IMM, .a = 6, .imm = 0.5 / beta },
        { .code = CEK_PW_ADD_IMM, .a = 3, .imm = -0.5 * beta },
        { .code = CEK_PW_SELECT, .a = 5, .b = 7, .c = 8 },
    };

    if (!(beta > 0))
        return cek__fail(CEK_INVALID, "smooth L1: beta %g, it must be above 0", beta);
    return chain(graph, x, target, code, sizeof code, out);
}

/* With w = 1 + (positive - 1) t it is (1 - t) x + w ln(1 + exp(-x)), and the logarithm max(-x, 0) + ln(1 + exp(-|x|)). */
cek_status cek__binary_cross_entropy(cek__graph *graph, int x, int target, double positive, int *out)
{
    const instruction code[] = {
        { .code = CEK_PW_ABS, .a = 0 },
        { .code = CEK_PW_NEG, .a = 2 },
        { .code = CEK_PW_EXP, .a = 3 },
        { .code = CEK_PW_LOG1P, .a = 4 },
        { .code = CEK_PW_NEG, .a = 0 },
        { .code = CEK_PW_CONST, .imm = 0 },
        { .code = CEK_PW_MAX, .a = 6, .b = 7 },
        { .code = CEK_PW_ADD, .a = 5, .b = 8 },
        { .code = CEK_PW_MUL_IMM, .a = 1, .imm = positive - 1 },
        { .code = CEK_PW_ADD_IMM, .a = 10, .imm = 1 },
        { .code = CEK_PW_MUL, .a = 9, .b = 11 },
        { .code = CEK_PW_MUL, .a = 0, .b = 1 },
        { .code = CEK_PW_SUB, .a = 0, .b = 13 },
        { .code = CEK_PW_ADD, .a = 12, .b = 14 },
    };

    return chain(graph, x, target, code, sizeof code, out);
}

cek_status cek__kl_divergence(cek__graph *graph, int x, int target, int *out)
{
    const instruction code[] = {
        { .code = CEK_PW_CONST, .imm = 1 },
        { .code = CEK_PW_SELECT, .a = 1, .b = 1, .c = 2 },
        { .code = CEK_PW_LOG, .a = 3 },
        { .code = CEK_PW_SUB, .a = 4, .b = 0 },
        { .code = CEK_PW_MUL, .a = 1, .b = 5 },
        { .code = CEK_PW_CONST, .imm = 0 },
        { .code = CEK_PW_SELECT, .a = 1, .b = 6, .c = 7 },
    };

    return chain(graph, x, target, code, sizeof code, out);
}
/* clang-format on */

/* ---- by sample ---- */

static cek_status sample_reduce(cek__graph *graph, int v, uint32_t function, int *out)
{
    const cek__dims *dims = &graph->flows[v].dims;
    uint32_t axes = ((1u << dims->rank) - 1) & ~1u;

    *out = v;
    if (dims->samples != 1)
        return cek__fail(CEK_INVALID, "loss: takes samples along its first axis");
    return axes ? cek__reduce(graph, v, function, axes, out) : CEK_OK;
}

cek_status cek__sample_sum(cek__graph *graph, int v, int *out)
{
    return sample_reduce(graph, v, CEK_REDUCE_SUM, out);
}

cek_status cek__sample_mean(cek__graph *graph, int v, int *out)
{
    return sample_reduce(graph, v, CEK_REDUCE_MEAN, out);
}

cek_status cek__soft_cross_entropy(cek__graph *graph, int logits, int target, int *out)
{
    cek_status st;
    cek__part softmax = { .kind = CEK__PART_SOFTMAX, .inputs = 1, .input = { logits }, .softmax = { .log = true } };
    const instruction code[] = { { .code = CEK_PW_MUL, .a = 0, .b = 1 }, { .code = CEK_PW_NEG, .a = 2 } };
    int v;

    CEK_TRY(cek__graph_add(graph, &softmax, &v));
    CEK_TRY(chain(graph, v, target, code, sizeof code, &v));
    return cek__sum(graph, v, 1u << (graph->flows[v].dims.rank - 1), out);
out:
    return st;
}
