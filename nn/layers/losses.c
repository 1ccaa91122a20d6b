/* losses.c - see losses.h. In each list values 0 and 1 are x and the target, those behind them are of the instructions
 * in their order. */
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

/* With w = 1 + (positive - 1) t it is (1 - t) x + w ln(1 + exp(-x)), and the logarithm max(-x, 0) +
 * ln(1 + exp(-|x|)). */
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
    const instruction code[] = { { .code = CEK_PW_MUL, .a = 0, .b = 1 }, { .code = CEK_PW_NEG, .a = 2 } };
    int last = graph->flows[logits].dims.rank - 1, v;

    CEK_TRY(cek__log_softmax(graph, logits, last, &v));
    CEK_TRY(chain(graph, v, target, code, sizeof code, &v));
    return cek__sum(graph, v, 1u << last, out);
out:
    return st;
}

/* ---- against labels ---- */

/* x where the label is not the ignored one, else `other`; of the label's own type where x is the labels. */
static cek_status unless_ignored(cek__graph *graph, int labels, int x, const cek__class_options *options, double other,
                                 int *out)
{
    cek__part part = { .kind = CEK__PART_CHAIN,
                       .inputs = 2,
                       .input = { labels, x },
                       .type = x == labels ? CEK_I32 : CEK_DTYPE_NONE,
                       .chain = { 4,
                                  { { .code = CEK_PW_CONST, .imm = options->ignored },
                                    { .code = CEK_PW_EQUAL, .a = 0, .b = 2 },
                                    { .code = CEK_PW_CONST, .imm = other },
                                    { .code = CEK_PW_SELECT, .a = 3, .b = 4, .c = 1 } } } };

    *out = x;
    return options->ignores ? cek__graph_add(graph, &part, out) : CEK_OK;
}

/* a + scale b, or scale a where there is no b */
static cek_status add_scaled(cek__graph *graph, int a, int b, double scale, int *out)
{
    cek__part part = {
        .kind = CEK__PART_CHAIN, .inputs = b ? 2 : 1, .input = { a, b }, .chain = { .count = b ? 2 : 1 }
    };

    part.chain.code[0] = (instruction){ .code = CEK_PW_MUL_IMM, .a = b ? 1 : 0, .imm = scale };
    part.chain.code[1] = (instruction){ .code = CEK_PW_ADD, .a = 0, .b = 2 };
    return cek__graph_add(graph, &part, out);
}

/* The sum over the classes of the logarithms, weighed. */
static cek_status spread(cek__graph *graph, int logs, int weights, int *out)
{
    cek_status st = CEK_OK;

    if (weights)
        CEK_TRY(cek__chain(graph, CEK_PW_MUL, logs, weights, &logs));
    return cek__sum(graph, logs, 1u << (graph->flows[logs].dims.rank - 1), out);
out:
    return st;
}

cek_status cek__class_cross_entropy(cek__graph *graph, int logits, int labels, const cek__class_options *options,
                                    int *out, int *weights)
{
    cek_status st;
    const cek__dims dims = graph->flows[logits].dims;
    int last = dims.rank - 1, logs, named, v, even;

    *weights = CEK__NOTHING;
    if (!(options->smoothing >= 0 && options->smoothing <= 1))
        CEK_FAIL(CEK_INVALID, "cross-entropy: smoothing by %g, it must be from 0 to 1", options->smoothing);
    logs = logits;
    if (!options->logs)
        CEK_TRY(cek__log_softmax(graph, logits, last, &logs));
    CEK_TRY(unless_ignored(graph, labels, labels, options, 0, &named));
    CEK_TRY(cek__gather(graph, logs, named, last, &v));
    CEK_TRY(add_scaled(graph, v, CEK__NOTHING, options->smoothing - 1, &v));
    if (options->weights) {
        CEK_TRY(cek__gather(graph, options->weights, named, 0, weights));
        CEK_TRY(cek__chain(graph, CEK_PW_MUL, v, *weights, &v));
    } else if (options->ignores) {
        CEK_TRY(cek__constant(graph, 1, &graph->flows[v].dims, weights));
    }
    if (options->smoothing > 0) {
        CEK_TRY(spread(graph, logs, options->weights, &even));
        CEK_TRY(add_scaled(graph, v, even, -options->smoothing / (double)dims.size[last], &v));
    }
    CEK_TRY(unless_ignored(graph, labels, v, options, 0, out));
    if (*weights)
        CEK_TRY(unless_ignored(graph, labels, *weights, options, 0, weights));
    return CEK_OK;
out:
    return st;
}

cek_status cek__class_hits(cek__graph *graph, int scores, int labels, const cek__class_options *options, int *part)
{
    cek_status st;
    cek__part hits = { .kind = CEK__PART_HITS, .inputs = 2, .input = { scores } };
    int nothing;

    CEK_TRY(unless_ignored(graph, labels, labels, options, -1, &hits.input[1])); /* no class */
    *part = graph->part_count;
    return cek__graph_add(graph, &hits, &nothing);
out:
    return st;
}
