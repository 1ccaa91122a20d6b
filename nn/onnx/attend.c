/* attend.c - Attention as ONNX has it since opset 23: heads as an axis or not, fewer of keys than of queries, what came
 * before (see operators.h).
 *
 * A mask is what is added to the scores: truth values become 0 and -infinity. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "nn/onnx/operators.h"

typedef cek_pointwise_instruction instruction;

enum { QUERY, KEY, VALUE, MASK, PAST_KEY, PAST_VALUE, LENGTHS, OPERANDS };

typedef struct attention {
    int flow[3];  /* [N,heads,T,E], of keys and values [N,heads of theirs,S,...] */
    int64_t past; /* steps that came before */
    bool flat;    /* the file has [N,T,heads * E] */
    double scale, softcap;
} attention;

/* [N,T,heads * E] to [N,heads,T,E]. */
static cek_status heads_split(cek__onnx_call *c, int64_t heads, int *flow)
{
    cek_status st;
    cek__dims dims = *cek__call_dims(c, *flow);

    CEK_TRY(cek__call_apart(c, *flow, 2));
    if (heads < 1 || dims.size[2] % heads)
        CEK_FAIL(CEK_BAD_INPUT, "%lld heads of %lld numbers", (long long)heads, (long long)dims.size[2]);
    dims.rank = 4;
    dims.size[3] = dims.size[2] / heads;
    dims.size[2] = heads;
    CEK_TRY(cek__view(c->graph, *flow, &dims, flow));
    st = cek__permute(c->graph, *flow, (int[]){ 0, 2, 1, 3 }, flow);
out:
    return st;
}

static cek_status operands_take(cek__onnx_call *c, attention *a)
{
    cek_status st = CEK_OK;
    const char *const heads[3] = { "q_num_heads", "kv_num_heads", "kv_num_heads" };

    for (int i = QUERY; i <= VALUE; i++) {
        CEK_TRY(cek__call_flow(c, (size_t)i, &a->flow[i]));
        const int rank = cek__call_dims(c, a->flow[i])->rank;

        a->flat = rank == 3;
        if (rank != 3 && rank != 4)
            CEK_FAIL(CEK_BAD_INPUT, "takes three or four axes, not %d", rank);
        if (a->flat)
            CEK_TRY(heads_split(c, cek__call_int(c, heads[i], 0), &a->flow[i]));
    }
    a->scale = cek__call_float(c, "scale", 1 / sqrt((double)cek__call_dims(c, a->flow[QUERY])->size[3]));
    a->softcap = cek__call_float(c, "softcap", 0);
out:
    return st;
}

/* Keys and values of the steps before, in front; what is there then is given to whom it comes after. */
static cek_status past_join(cek__onnx_call *c, attention *a)
{
    cek_status st = CEK_OK;

    for (int i = KEY; i <= VALUE; i++) {
        int both[2] = { 0, a->flow[i] };

        if (cek__call_has(c, (size_t)(PAST_KEY + i - KEY))) {
            CEK_TRY(cek__call_flow(c, (size_t)(PAST_KEY + i - KEY), &both[0]));
            a->past = cek__call_dims(c, both[0])->size[2];
            CEK_TRY(cek__concat(c->graph, both, 2, 2, &a->flow[i]));
        }
        c->out[i] = a->flow[i];
    }
out:
    return st;
}

/* Where several heads of queries have one of keys: that one, as often. */
static cek_status heads_repeat(cek__onnx_call *c, int64_t heads, int *flow)
{
    const int64_t own = cek__call_dims(c, *flow)->size[1];

    if (own == heads)
        return CEK_OK;
    if (heads % own)
        return cek__fail(CEK_BAD_INPUT, "%lld heads of queries, %lld of keys", (long long)heads, (long long)own);
    return cek__onnx_repeat(c, *flow, 1, 2, heads / own, flow);
}

/* [T,S]: -infinity of the steps that come later than a query's own. */
static cek_status future(cek__onnx_call *c, const cek__dims *scores, int64_t past, int *out)
{
    cek_status st;
    const int64_t shape[2] = { scores->size[2], scores->size[3] };
    float *values = NULL;
    int64_t count;

    if (scores->samples >> 2)
        CEK_FAIL(CEK_UNSUPPORTED, "causal over steps that count samples");
    if (__builtin_mul_overflow(shape[0], shape[1], &count))
        CEK_FAIL(CEK_UNSUPPORTED, "scores of %lld by %lld steps", (long long)shape[0], (long long)shape[1]);
    CEK_TRY(cek__alloc_array((size_t)count, sizeof *values, &values));
    for (int64_t i = 0; i < count; i++)
        values[i] = i % shape[1] > i / shape[1] + past ? -INFINITY : 0;
    st = cek__layer_constant(&c->layer, 2, shape, values, out);
out:
    free(values);
    return st;
}

static bool is_among(const char *name, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i], name) == 0)
            return true;
    return false;
}

/* The fourth input, as what is added; of a shorter one none of the steps behind it are seen. */
static cek_status mask_take(cek__onnx_call *c, const cek__dims *scores, int *out)
{
    const cek__part seen = { .kind = CEK__PART_CHAIN,
                             .inputs = 1,
                             .chain = { 3,
                                        { { .code = CEK_PW_CONST },
                                          { .code = CEK_PW_CONST, .imm = -INFINITY },
                                          { .code = CEK_PW_SELECT, .a = 0, .b = 1, .c = 2 } } } };
    int64_t none[CEK_RANK_MAX] = { 0 }, behind[CEK_RANK_MAX] = { 0 }, more, size;
    cek__part part = seen;
    cek_status st;
    int rank, type;

    CEK_TRY(cek__call_flow(c, MASK, out));
    part.input[0] = *out;
    type = cek__onnx_type_of(c->import, c->import->onnx->links[c->node->first_input + MASK].value);
    if (type == 0)
        CEK_FAIL(CEK_UNSUPPORTED, "a mask of truths or of numbers: it cannot be told which");
    if (type == CEK__ONNX_BOOL)
        CEK_TRY(cek__graph_add(c->graph, &part, out));
    rank = cek__call_dims(c, *out)->rank;
    size = cek__call_dims(c, *out)->size[rank - 1];
    more = scores->size[3] - size;
    behind[rank - 1] = more;
    if (more > 0 && size > 1)
        CEK_TRY(cek__pad(c->graph, *out, none, behind, -INFINITY, out));
    st = CEK_OK;
out:
    return st;
}

/* What is added to the scores; CEK__NOTHING: nothing is. *blind: it may be that a query sees none. */
static cek_status bias_take(cek__onnx_call *c, const attention *a, const cek__dims *scores, int *out, bool *blind)
{
    cek_status st = CEK_OK;
    int later = CEK__NOTHING;

    *out = CEK__NOTHING;
    *blind = cek__call_has(c, MASK);
    if (*blind)
        CEK_TRY(mask_take(c, scores, out));
    if (cek__call_int(c, "is_causal", 0) != 0)
        CEK_TRY(future(c, scores, a->past, &later));
    if (*out && later)
        CEK_TRY(cek__chain(c->graph, CEK_PW_ADD, *out, later, out));
    else
        *out = later ? later : *out;
out:
    return st;
}

/* softcap tanh(scores / softcap) */
static cek_status scores_cap(cek__onnx_call *c, double softcap, int *scores)
{
    const cek__part part = { .kind = CEK__PART_CHAIN,
                             .inputs = 1,
                             .input = { *scores },
                             .chain = { 3,
                                        { { .code = CEK_PW_MUL_IMM, .imm = 1 / softcap },
                                          { .code = CEK_PW_TANH, .a = 1 },
                                          { .code = CEK_PW_MUL_IMM, .a = 2, .imm = softcap } } } };

    return softcap != 0 ? cek__graph_add(c->graph, &part, scores) : CEK_OK;
}

/* Of queries that see no step nothing is left. */
static cek_status blind_clear(cek__onnx_call *c, int bias, int *shares)
{
    const int axis = cek__call_dims(c, bias)->rank - 1;
    cek__part part = { .kind = CEK__PART_CHAIN,
                       .inputs = 2,
                       .chain = { 3,
                                  { { .code = CEK_PW_CONST, .imm = -INFINITY },
                                    { .code = CEK_PW_EQUAL, .a = 1, .b = 2 },
                                    { .code = CEK_PW_CONST } } } };
    cek_status st;
    int most;

    part.chain.code[part.chain.count++] = (instruction){ .code = CEK_PW_SELECT, .a = 3, .b = 4, .c = 0 };
    CEK_TRY(cek__reduce(c->graph, bias, CEK_REDUCE_MAX, 1u << axis, &most));
    CEK_TRY(cek__keep(c->graph, most, bias, 1u << axis, &most));
    part.input[0] = *shares;
    part.input[1] = most;
    st = cek__graph_add(c->graph, &part, shares);
out:
    return st;
}

/* The shares of each step in each query; what the file asks to see on the way is output 3. */
static cek_status shares_compute(cek__onnx_call *c, const attention *a, int *out)
{
    const int64_t mode = cek__call_int(c, "qk_matmul_output_mode", 0);
    cek__part product = { .kind = CEK__PART_PRODUCT, .inputs = 2, .product = { { 2, 3, false }, { 2, 3, true } } };
    cek_status st;
    cek__dims dims;
    int bias, scores[4];
    bool blind;

    /* what a mode shows, as ONNX's reference numbers it: products, capped ones, with the mask, shares */
    memcpy(product.input, a->flow, 2 * sizeof *a->flow);
    CEK_TRY(cek__graph_add(c->graph, &product, &scores[0]));
    dims = *cek__call_dims(c, scores[0]);
    CEK_TRY(cek__call_chain(c, 1, scores, 1, &(instruction){ .code = CEK_PW_MUL_IMM, .imm = a->scale }));
    scores[0] = scores[1] = c->out[0];
    CEK_TRY(scores_cap(c, a->softcap, &scores[1]));
    CEK_TRY(bias_take(c, a, &dims, &bias, &blind));
    scores[2] = scores[1];
    if (bias)
        CEK_TRY(cek__chain(c->graph, CEK_PW_ADD, scores[1], bias, &scores[2]));
    if (!cek__dims_equal(cek__call_dims(c, scores[2]), &dims))
        CEK_FAIL(CEK_BAD_INPUT, "a mask that is not spread over the scores");
    CEK_TRY(cek__softmax(c->graph, scores[2], 3, &scores[3]));
    if (blind)
        CEK_TRY(blind_clear(c, bias, &scores[3]));
    if (mode < 0 || mode > 3)
        CEK_FAIL(CEK_BAD_INPUT, "qk_matmul_output_mode %lld", (long long)mode);
    c->out[3] = scores[mode];
    *out = scores[3];
out:
    return st;
}

static cek_status supported(const cek__onnx_call *c)
{
    static const char *const known[] = { "is_causal", "kv_num_heads",      "q_num_heads", "qk_matmul_output_mode",
                                         "scale",     "softmax_precision", "softcap" };

    for (size_t i = 0; i < c->node->attributes; i++) {
        const cek__onnx_attribute *a = &c->import->onnx->attributes[c->node->first_attribute + i];
        const bool open = strstr(a->name, "window_size") != NULL && a->integer == -1; /* all steps are near enough */

        if (!open && !is_among(a->name, known, sizeof known / sizeof *known))
            return cek__fail(CEK_UNSUPPORTED, "its %.200s", a->name);
    }
    return cek__call_has(c, LENGTHS) ? cek__fail(CEK_UNSUPPORTED, "lengths of sequences") : CEK_OK;
}

cek_status cek__onnx_attention(cek__onnx_call *c)
{
    cek__part mix = { .kind = CEK__PART_PRODUCT, .inputs = 2, .product = { { 2, 3, false }, { 2, 3, false } } };
    attention a = { .past = 0 };
    cek_status st;
    cek__dims dims;
    int y;

    CEK_TRY(supported(c));
    CEK_TRY(operands_take(c, &a));
    CEK_TRY(past_join(c, &a));
    for (int i = KEY; i <= VALUE; i++)
        CEK_TRY(heads_repeat(c, cek__call_dims(c, a.flow[QUERY])->size[1], &a.flow[i]));
    CEK_TRY(shares_compute(c, &a, &mix.input[0]));
    mix.input[1] = a.flow[VALUE];
    CEK_TRY(cek__graph_add(c->graph, &mix, &y));
    if (a.flat) {
        CEK_TRY(cek__permute(c->graph, y, (int[]){ 0, 2, 1, 3 }, &y));
        dims = *cek__call_dims(c, y);
        dims.rank = 3;
        dims.size[2] *= dims.size[3];
        CEK_TRY(cek__view(c->graph, y, &dims, &y));
    }
    c->out[0] = y;
out:
    return st;
}
