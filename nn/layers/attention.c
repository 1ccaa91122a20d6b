/* attention.c - see attention.h. */
#include "nn/layers/attention.h"

#include <math.h>

#include "nn/graph/parts.h"

/* [N,T,E] to [N,heads,T,E/heads]. */
static cek_status heads_split(cek__graph *graph, int x, int64_t heads, int *out)
{
    cek_status st;
    cek__dims dims = graph->flows[x].dims;

    *out = CEK__NOTHING;
    if (dims.rank != 3 || dims.samples != 1 || heads < 1 || dims.size[2] % heads)
        CEK_FAIL(CEK_INVALID, "attention: takes [N,T,E], and E is a multiple of the %lld heads", (long long)heads);
    dims.rank = 4;
    dims.size[3] = dims.size[2] / heads;
    dims.size[2] = heads;
    CEK_TRY(cek__view(graph, x, &dims, out));
    CEK_TRY(cek__permute(graph, *out, (int[]){ 0, 2, 1, 3 }, out));
out:
    return st;
}

/* [T,S], 1 where S is later than T, of no numbers but the shape: rows of T with one 0, then ones, then zeros, read in
 * rows that are shorter by one, so that each begins one element further to the left. */
static cek_status future(cek__graph *graph, int64_t t, int64_t s, int *out)
{
    cek_status st;
    const cek__dims ones = { .rank = 2, .size = { t, s } }, flat = { .rank = 1, .size = { t * (s + t + 1) } };
    const cek__dims shorter = { .rank = 2, .size = { t, s + t } };

    CEK_TRY(cek__constant(graph, 1, &ones, out));
    CEK_TRY(cek__pad(graph, *out, (int64_t[]){ 0, 1 }, (int64_t[]){ 0, t }, 0, out));
    CEK_TRY(cek__view(graph, *out, &flat, out));
    CEK_TRY(cek__slice(graph, *out, 0, 0, t * (s + t), out));
    CEK_TRY(cek__view(graph, *out, &shorter, out));
    CEK_TRY(cek__slice(graph, *out, 1, 0, s, out));
out:
    return st;
}

/* scale * scores, plus the mask, and nothing of the future. */
static cek_status scores_mask(cek__graph *graph, const cek__attention *a, double scale, int scores, int *out)
{
    cek_status st;
    const cek__dims dims = graph->flows[scores].dims;
    cek__part chain = { .kind = CEK__PART_CHAIN, .inputs = 1, .input = { scores } };
    cek_pointwise_instruction *code = chain.chain.code;
    uint32_t mask = 0, later = 0, last;

    if (a->mask)
        chain.input[mask = (uint32_t)chain.inputs++] = a->mask;
    if (a->causal) {
        later = (uint32_t)chain.inputs++;
        CEK_TRY(future(graph, dims.size[2], dims.size[3], &chain.input[later]));
    }
    last = (uint32_t)chain.inputs;
    code[chain.chain.count++] = (cek_pointwise_instruction){ .code = CEK_PW_MUL_IMM, .imm = scale };
    if (a->mask)
        code[chain.chain.count++] = (cek_pointwise_instruction){ .code = CEK_PW_ADD, .a = last++, .b = mask };
    if (a->causal) {
        code[chain.chain.count++] = (cek_pointwise_instruction){ .code = CEK_PW_CONST, .imm = -INFINITY };
        code[chain.chain.count++] =
            (cek_pointwise_instruction){ .code = CEK_PW_SELECT, .a = later, .b = last + 1, .c = last };
    }
    CEK_TRY(cek__graph_add(graph, &chain, out));
    if (!cek__dims_equal(&graph->flows[*out].dims, &dims))
        CEK_FAIL(CEK_INVALID, "attention: a mask that is not broadcast to the scores");
out:
    return st;
}

cek_status cek__layer_attention(cek__graph *graph, const cek__attention *a, int *out)
{
    cek_status st;
    cek__part scores = { .kind = CEK__PART_PRODUCT, .inputs = 2, .product = { { 2, 3, false }, { 2, 3, true } } };
    cek__part mix = { .kind = CEK__PART_PRODUCT, .inputs = 2, .product = { { 2, 3, false }, { 2, 3, false } } };
    cek__part softmax = { .kind = CEK__PART_SOFTMAX, .inputs = 1 };
    cek__dims dims = graph->flows[a->q].dims;
    double scale = a->scale;

    *out = CEK__NOTHING;
    CEK_TRY(heads_split(graph, a->q, a->heads, &scores.input[0]));
    CEK_TRY(heads_split(graph, a->k, a->heads, &scores.input[1]));
    CEK_TRY(heads_split(graph, a->v, a->heads, &mix.input[1]));
    dims.size[2] = graph->flows[a->v].dims.size[2];
    if (scale == 0)
        scale = 1 / sqrt((double)graph->flows[scores.input[0]].dims.size[3]);
    CEK_TRY(cek__graph_add(graph, &scores, &softmax.input[0]));
    CEK_TRY(scores_mask(graph, a, scale, softmax.input[0], &softmax.input[0]));
    CEK_TRY(cek__graph_add(graph, &softmax, &mix.input[0]));
    CEK_TRY(cek__graph_add(graph, &mix, out));
    CEK_TRY(cek__permute(graph, *out, (int[]){ 0, 2, 1, 3 }, out));
    CEK_TRY(cek__view(graph, *out, &dims, out));
out:
    return st;
}
