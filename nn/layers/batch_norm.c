/* batch_norm.c - normalisation of each channel over the samples of a group and the places of an image. */
#include "nn/layers/batch_norm.h"

#include "core/base/options.h"
#include "core/base/status.h"
#include "nn/graph/normalise.h"

static cek_status layer_take(const cek__layer *l, const cek_batch_norm_layer *from, cek_batch_norm_layer *n)
{
    cek_status st;
    char text[CEK__SHAPE_TEXT];

    CEK_TRY(cek__options_take("cek_model_batch_norm", n, sizeof *n, from));
    n->epsilon = n->epsilon == 0 ? 1e-5 : n->epsilon;
    n->momentum = n->momentum == 0 ? 0.1 : n->momentum;
    if (!(n->epsilon > 0) || !(n->momentum > 0 && n->momentum <= 1))
        CEK_FAIL(CEK_INVALID, "epsilon %g and momentum %g: above 0, and at most 1", n->epsilon, n->momentum);
    if (l->in.rank < 2 || l->in.samples != 1)
        CEK_FAIL(CEK_INVALID, "takes channels and what is behind them, its input has the shape %s",
                 cek__dims_text(&l->in, text));
out:
    return st;
}

/* [C] as it is broadcast to [N,C,..]. */
static cek_status spread(cek__layer *l, int vector, int *out)
{
    cek__dims dims = { .rank = l->in.rank - 1, .size = { l->in.size[1], 1, 1, 1, 1, 1, 1, 1 } };

    return cek__view(l->graph, vector, &dims, out);
}

/* *out = centred / sqrt(variance + epsilon) * gamma + beta */
static cek_status scaled(cek__layer *l, int centred, int variance, double epsilon, const int affine[2], int *out)
{
    cek_status st;
    cek__part chain = { .kind = CEK__PART_CHAIN,
                        .inputs = affine[0] ? 4 : 2,
                        .input = { centred, 0, affine[0], affine[1] },
                        .chain = { .count = affine[0] ? 5 : 3 } };
    const uint32_t at = (uint32_t)chain.inputs;

    CEK_TRY(spread(l, variance, &chain.input[1]));
    chain.chain.code[0] = (cek_pointwise_instruction){ .code = CEK_PW_ADD_IMM, .a = 1, .imm = epsilon };
    chain.chain.code[1] = (cek_pointwise_instruction){ .code = CEK_PW_SQRT, .a = at };
    chain.chain.code[2] = (cek_pointwise_instruction){ .code = CEK_PW_DIV, .a = 0, .b = at + 1 };
    chain.chain.code[3] = (cek_pointwise_instruction){ .code = CEK_PW_MUL, .a = at + 2, .b = 2 };
    chain.chain.code[4] = (cek_pointwise_instruction){ .code = CEK_PW_ADD, .a = at + 3, .b = 3 };
    return cek__graph_add(l->graph, &chain, out);
out:
    return st;
}

/* The sum of squares around `mean`, of what counts, and how many these are. */
static cek_status around(cek__layer *l, int mean, uint32_t axes, int *sum, int *number)
{
    cek_status st;
    cek__part squares = { .kind = CEK__PART_REDUCE,
                          .inputs = 2,
                          .input = { l->x[0], mean },
                          .reduce = { CEK_REDUCE_SUM_SQUARES, axes, .masked = true, .centre = true } };

    CEK_TRY(cek__graph_add(l->graph, &squares, sum));
    st = cek__count(l->graph, l->x[0], axes, number);
out:
    return st;
}

/* sum / (number - 1), the variance that PyTorch keeps; of a single element it is 0. */
static cek_status unbiased(cek__layer *l, int sum, int number, int *out)
{
    cek__part chain = { .kind = CEK__PART_CHAIN,
                        .inputs = 2,
                        .input = { sum, number },
                        .chain = { 4,
                                   { { .code = CEK_PW_ADD_IMM, .a = 1, .imm = -1 },
                                     { .code = CEK_PW_CONST, .imm = 1 },
                                     { .code = CEK_PW_MAX, .a = 2, .b = 3 },
                                     { .code = CEK_PW_DIV, .a = 0, .b = 4 } } } };

    return cek__graph_add(l->graph, &chain, out);
}

/* [C,1,..] of 1 / sqrt(sum / number + epsilon) */
static cek_status rest_of(cek__layer *l, int sum, int number, double epsilon, int *out)
{
    cek_status st;
    cek__part chain = { .kind = CEK__PART_CHAIN,
                        .inputs = 2,
                        .input = { sum, number },
                        .chain = { 5,
                                   { { .code = CEK_PW_DIV, .a = 0, .b = 1 },
                                     { .code = CEK_PW_ADD_IMM, .a = 2, .imm = epsilon },
                                     { .code = CEK_PW_SQRT, .a = 3 },
                                     { .code = CEK_PW_CONST, .imm = 1 },
                                     { .code = CEK_PW_DIV, .a = 5, .b = 4 } } } };

    CEK_TRY(cek__graph_add(l->graph, &chain, out));
    st = spread(l, *out, out);
out:
    return st;
}

/* By the statistics of what is there, which go to the running ones. */
static cek_status training(cek__layer *l, const cek__batch_norm *n, const int affine[2], int *out)
{
    cek_status st;
    const uint32_t axes = ((1u << l->in.rank) - 1) & ~2u;
    int mean, spread_mean, rest, sum, number, kept;

    CEK_TRY(cek__reduce_masked(l->graph, l->x[0], CEK_REDUCE_MEAN, axes, &mean));
    CEK_TRY(spread(l, mean, &spread_mean));
    CEK_TRY(around(l, mean, axes, &sum, &number));
    CEK_TRY(rest_of(l, sum, number, n->epsilon, &rest));
    CEK_TRY(unbiased(l, sum, number, &kept));
    CEK_TRY(cek__layer_contribute(l, n->running[0], mean, n->momentum));
    CEK_TRY(cek__layer_contribute(l, n->running[1], kept, n->momentum));
    st = cek__normalise(l->graph, l->x[0], spread_mean, rest, affine, out);
out:
    return st;
}

static cek_status evaluation(cek__layer *l, const cek__batch_norm *n, const int affine[2], int *out)
{
    cek_status st;
    int mean, centred;

    CEK_TRY(spread(l, n->running[0], &mean));
    CEK_TRY(cek__chain(l->graph, CEK_PW_SUB, l->x[0], mean, &centred));
    st = scaled(l, centred, n->running[1], n->epsilon, affine, out);
out:
    return st;
}

cek_status cek__batch_norm_parts(cek__layer *l, const cek__batch_norm *n, int *out)
{
    cek_status st = CEK_OK;
    cek__part phase = { .kind = CEK__PART_PHASE, .inputs = 2 };
    int affine[2] = { CEK__NOTHING, CEK__NOTHING };

    for (int i = 0; i < 2 && n->affine[i]; i++)
        CEK_TRY(spread(l, n->affine[i], &affine[i]));
    if (!l->in.samples) /* nothing is trained of a network whose batch is fixed */
        return evaluation(l, n, affine, out);
    CEK_TRY(training(l, n, affine, &phase.input[0]));
    CEK_TRY(evaluation(l, n, affine, &phase.input[1]));
    st = cek__graph_add(l->graph, &phase, out);
out:
    return st;
}

static cek_status affine_make(cek__layer *l, const cek_batch_norm_layer *n, int affine[2])
{
    cek_status st = CEK_OK;
    const int64_t *channels = &l->in.size[1];

    affine[0] = affine[1] = CEK__NOTHING;
    if (n->no_affine)
        return CEK_OK;
    CEK_TRY(cek__layer_filled(l, "weight", 1, channels, 1, &affine[0]));
    st = cek__layer_filled(l, "bias", 1, channels, 0, &affine[1]);
out:
    return st;
}

cek_status cek_model_batch_norm(cek_model *model, int input, const cek_batch_norm_layer *layer, int *node)
{
    cek_status st;
    cek__layer l;
    cek_batch_norm_layer n = { 0 };
    cek__batch_norm parts = { 0 };
    int y = CEK__NOTHING;

    if (node)
        *node = -1;
    CEK__NOT_NULL(model);
    CEK__NOT_NULL(layer);
    CEK_TRY(cek__layer_begin(&l, model, "batch_norm", 1, &input));
    CEK_TRY(layer_take(&l, layer, &n));
    parts.epsilon = n.epsilon;
    parts.momentum = n.momentum;
    CEK_TRY(affine_make(&l, &n, parts.affine));
    CEK_TRY(cek__layer_buffer(&l, "running_mean", 1, &l.in.size[1], 0, &parts.running[0]));
    CEK_TRY(cek__layer_buffer(&l, "running_var", 1, &l.in.size[1], 1, &parts.running[1]));
    CEK_TRY(cek__batch_norm_parts(&l, &parts, &y));
out:
    return cek__layer_end(&l, st, y, node);
}
