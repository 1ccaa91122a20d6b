/* activations.c - see activations.h. In each list value 0 is x and the n-th instruction gives value n + 1.
 *
 * What is not chosen must be finite all the same: its gradient is 0 times what it is made of. So an exponential that is
 * not wanted is that of 0. */
#include "nn/layers/activations.h"

#include <math.h>
#include <string.h>

#include "nn/graph/parts.h"

typedef cek_pointwise_instruction instruction;

static cek_status chain(cek__graph *graph, int x, const instruction *code, size_t bytes, int *out)
{
    cek__part part = { .kind = CEK__PART_CHAIN, .inputs = 1, .input = { x } };

    part.chain.count = (uint32_t)(bytes / sizeof *code);
    memcpy(part.chain.code, code, bytes);
    return cek__graph_add(graph, &part, out);
}

cek_status cek__gelu(cek__graph *graph, int x, int *out)
{
    return cek__chain(graph, CEK_PW_GELU, x, CEK__NOTHING, out);
}

/* clang-format off */
cek_status cek__gelu_tanh(cek__graph *graph, int x, int *out)
{
    const instruction code[] = {
        { .code = CEK_PW_MUL, .a = 0, .b = 0 },
        { .code = CEK_PW_MUL_IMM, .a = 1, .imm = 0.044715 },
        { .code = CEK_PW_ADD_IMM, .a = 2, .imm = 1 },
        { .code = CEK_PW_MUL, .a = 3, .b = 0 },
        { .code = CEK_PW_MUL_IMM, .a = 4, .imm = sqrt(2 / acos(-1)) },
        { .code = CEK_PW_TANH, .a = 5 },
        { .code = CEK_PW_ADD_IMM, .a = 6, .imm = 1 },
        { .code = CEK_PW_MUL, .a = 7, .b = 0 },
        { .code = CEK_PW_MUL_IMM, .a = 8, .imm = 0.5 },
    };

    return chain(graph, x, code, sizeof code, out);
}

cek_status cek__silu(cek__graph *graph, int x, int *out)
{
    const instruction code[] = {
        { .code = CEK_PW_SIGMOID, .a = 0 },
        { .code = CEK_PW_MUL, .a = 0, .b = 1 },
    };

    return chain(graph, x, code, sizeof code, out);
}

cek_status cek__leaky_relu(cek__graph *graph, int x, double slope, int *out)
{
    const instruction code[] = {
        { .code = CEK_PW_CONST, .imm = 0 },
        { .code = CEK_PW_LESS, .a = 1, .b = 0 },
        { .code = CEK_PW_MUL_IMM, .a = 0, .imm = slope },
        { .code = CEK_PW_SELECT, .a = 2, .b = 0, .c = 3 },
    };

    return chain(graph, x, code, sizeof code, out);
}

cek_status cek__clip(cek__graph *graph, int x, double low, double high, int *out)
{
    const instruction code[] = {
        { .code = CEK_PW_CONST, .imm = low },
        { .code = CEK_PW_CONST, .imm = high },
        { .code = CEK_PW_LESS, .a = 0, .b = 1 },
        { .code = CEK_PW_LESS, .a = 2, .b = 0 },
        { .code = CEK_PW_SELECT, .a = 3, .b = 1, .c = 0 },
        { .code = CEK_PW_SELECT, .a = 4, .b = 2, .c = 5 },
    };

    return chain(graph, x, code, sizeof code, out);
}

cek_status cek__relu6(cek__graph *graph, int x, int *out)
{
    const instruction code[] = {
        { .code = CEK_PW_RELU, .a = 0 },
        { .code = CEK_PW_CONST, .imm = 6 },
        { .code = CEK_PW_LESS, .a = 2, .b = 1 },
        { .code = CEK_PW_EQUAL, .a = 2, .b = 1 },
        { .code = CEK_PW_ADD, .a = 3, .b = 4 },
        { .code = CEK_PW_SELECT, .a = 5, .b = 2, .c = 1 },
    };

    return chain(graph, x, code, sizeof code, out);
}

cek_status cek__elu(cek__graph *graph, int x, double alpha, int *out)
{
    const instruction code[] = {
        { .code = CEK_PW_CONST, .imm = 0 },
        { .code = CEK_PW_LESS, .a = 1, .b = 0 },
        { .code = CEK_PW_SELECT, .a = 2, .b = 1, .c = 0 },
        { .code = CEK_PW_EXPM1, .a = 3 },
        { .code = CEK_PW_MUL_IMM, .a = 4, .imm = alpha },
        { .code = CEK_PW_SELECT, .a = 2, .b = 0, .c = 5 },
    };

    return chain(graph, x, code, sizeof code, out);
}

cek_status cek__softplus(cek__graph *graph, int x, double beta, int *out)
{
    const instruction code[] = {
        { .code = CEK_PW_MUL_IMM, .a = 0, .imm = beta },
        { .code = CEK_PW_CONST, .imm = 20 },
        { .code = CEK_PW_LESS, .a = 2, .b = 1 },
        { .code = CEK_PW_CONST, .imm = 0 },
        { .code = CEK_PW_SELECT, .a = 3, .b = 4, .c = 1 },
        { .code = CEK_PW_EXP, .a = 5 },
        { .code = CEK_PW_LOG1P, .a = 6 },
        { .code = CEK_PW_MUL_IMM, .a = 7, .imm = 1 / beta },
        { .code = CEK_PW_SELECT, .a = 3, .b = 0, .c = 8 },
    };

    return chain(graph, x, code, sizeof code, out);
}
/* clang-format on */

cek_status cek__hard_sigmoid(cek__graph *graph, int x, int *out)
{
    cek_status st;
    instruction shift = { .code = CEK_PW_ADD_IMM, .imm = 3 }, sixth = { .code = CEK_PW_MUL_IMM, .imm = 1.0 / 6 };

    CEK_TRY(chain(graph, x, &shift, sizeof shift, out));
    CEK_TRY(cek__clip(graph, *out, 0, 6, out));
    return chain(graph, *out, &sixth, sizeof sixth, out);
out:
    return st;
}

cek_status cek__hard_swish(cek__graph *graph, int x, int *out)
{
    cek_status st;
    int gate;

    CEK_TRY(cek__hard_sigmoid(graph, x, &gate));
    return cek__chain(graph, CEK_PW_MUL, x, gate, out);
out:
    return st;
}
