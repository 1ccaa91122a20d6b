/* norms.c - see norms.h: the mean, the centred values, the sum of their squares, then one chain. */
#include "nn/layers/norms.h"

#include "core/base/status.h"
#include "nn/graph/parts.h"

static int write(cek__part *chain, uint32_t code, int a, int b, double imm)
{
    chain->chain.code[chain->chain.count] =
        (cek_pointwise_instruction){ .code = code, .a = (uint32_t)a, .b = (uint32_t)b, .imm = imm };
    return chain->inputs + (int)chain->chain.count++;
}

/* x / sqrt(mean of x^2 over the axes + eps), times gamma, plus beta. */
static cek_status scaled(cek__graph *graph, int x, uint32_t axes, double eps, int gamma, int beta, int *out)
{
    cek_status st;
    const cek__dims dims = graph->flows[x].dims;
    cek__part chain = { .kind = CEK__PART_CHAIN, .inputs = 2, .input = { x } };
    double count = 1;
    int gamma_at = 0, beta_at = 0, root, y;

    for (int i = 0; i < dims.rank; i++)
        count *= axes >> i & 1 ? (double)dims.size[i] : 1;
    CEK_TRY(cek__reduce(graph, x, CEK_REDUCE_SUM_SQUARES, axes, &chain.input[1]));
    CEK_TRY(cek__keep(graph, chain.input[1], x, axes, &chain.input[1]));
    if (gamma) {
        gamma_at = chain.inputs++;
        chain.input[gamma_at] = gamma;
    }
    if (beta) {
        beta_at = chain.inputs++;
        chain.input[beta_at] = beta;
    }
    root = write(&chain, CEK_PW_MUL_IMM, 1, 0, 1 / count);
    root = write(&chain, CEK_PW_ADD_IMM, root, 0, eps);
    root = write(&chain, CEK_PW_SQRT, root, 0, 0);
    y = write(&chain, CEK_PW_DIV, 0, root, 0);
    if (gamma)
        y = write(&chain, CEK_PW_MUL, y, gamma_at, 0);
    if (beta)
        write(&chain, CEK_PW_ADD, y, beta_at, 0);
    return cek__graph_add(graph, &chain, out);
out:
    return st;
}

cek_status cek__layer_norm(cek__graph *graph, int x, uint32_t axes, double eps, int gamma, int beta, int *out)
{
    cek_status st;
    int mean, centred;

    CEK_TRY(cek__reduce(graph, x, CEK_REDUCE_MEAN, axes, &mean));
    CEK_TRY(cek__keep(graph, mean, x, axes, &mean));
    CEK_TRY(cek__chain(graph, CEK_PW_SUB, x, mean, &centred));
    return scaled(graph, centred, axes, eps, gamma, beta, out);
out:
    return st;
}

cek_status cek__rms_norm(cek__graph *graph, int x, uint32_t axes, double eps, int gamma, int *out)
{
    return scaled(graph, x, axes, eps, gamma, CEK__NOTHING, out);
}

/* A vector of channels as one that is broadcast to `axes` axes behind the channels' own,
 * [groups][channels of one][1...]. */
static cek_status channels_view(cek__graph *graph, int vector, int64_t groups, int64_t each, int axes, int *out)
{
    cek__dims dims = { .rank = 1 };

    *out = vector;
    if (!vector)
        return CEK_OK;
    dims.size[0] = groups;
    if (each)
        dims.size[dims.rank++] = each;
    while (axes-- > 0)
        dims.size[dims.rank++] = 1;
    return cek__view(graph, vector, &dims, out);
}

cek_status cek__group_norm(cek__graph *graph, int x, int64_t groups, double eps, int gamma, int beta, int *out)
{
    cek_status st;
    const cek__dims dims = graph->flows[x].dims;
    cek__dims grouped = { .rank = 4, .samples = dims.samples, .size = { dims.size[0], groups } };

    if (dims.rank < 2 || dims.samples > 1)
        CEK_FAIL(CEK_INVALID, "group norm: takes N,C,...");
    if (groups < 1 || dims.size[1] % groups)
        CEK_FAIL(CEK_INVALID, "group norm: %lld channels are not %lld groups", (long long)dims.size[1],
                 (long long)groups);
    grouped.size[2] = dims.size[1] / groups;
    grouped.size[3] = cek__dims_elements(&dims, 2, dims.rank, 1);
    CEK_TRY(channels_view(graph, gamma, groups, grouped.size[2], 1, &gamma));
    CEK_TRY(channels_view(graph, beta, groups, grouped.size[2], 1, &beta));
    CEK_TRY(cek__view(graph, x, &grouped, &x));
    CEK_TRY(cek__layer_norm(graph, x, 1u << 2 | 1u << 3, eps, gamma, beta, out));
    return cek__view(graph, *out, &dims, out);
out:
    return st;
}

cek_status cek__instance_norm(cek__graph *graph, int x, double eps, int gamma, int beta, int *out)
{
    cek_status st;
    const cek__dims dims = graph->flows[x].dims;

    if (dims.rank < 3 || dims.samples > 1)
        CEK_FAIL(CEK_INVALID, "instance norm: takes N,C and axes behind them");
    CEK_TRY(channels_view(graph, gamma, dims.size[1], 0, dims.rank - 2, &gamma));
    CEK_TRY(channels_view(graph, beta, dims.size[1], 0, dims.rank - 2, &beta));
    return cek__layer_norm(graph, x, ((1u << dims.rank) - 1) & ~3u, eps, gamma, beta, out);
out:
    return st;
}
