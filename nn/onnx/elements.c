/* elements.c - operators that compute element by element, each a chain of instructions (see operators.h). */
#include <math.h>

#include "nn/layers/activations.h"
#include "nn/onnx/operators.h"

typedef cek_pointwise_instruction instruction;

static bool whole_numbers(const cek__onnx_call *c, int flow)
{
    return c->graph->flows[flow].type == CEK_I32;
}

/* What a chain of whole numbers gives: whole numbers. */
static cek_status kept_whole(cek__onnx_call *c, int x, cek_status st)
{
    return st == CEK_OK && whole_numbers(c, x) && !whole_numbers(c, c->out[0])
               ? cek__cast(c->graph, c->out[0], CEK_I32, &c->out[0])
               : st;
}

/* ---- of one ---- */

cek_status cek__onnx_apply(cek__onnx_call *c)
{
    cek_status st;
    int x;

    CEK_TRY(cek__call_flow(c, 0, &x));
    st = kept_whole(c, x, cek__chain(c->graph, c->argument, x, CEK__NOTHING, &c->out[0]));
out:
    return st;
}

cek_status cek__onnx_identity(cek__onnx_call *c)
{
    return cek__call_flow(c, 0, &c->out[0]);
}

/* Elements are left out in training alone. */
cek_status cek__onnx_dropout(cek__onnx_call *c)
{
    cek_status st;
    cek__part part = { .kind = CEK__PART_DROPOUT, .inputs = 1 };
    double p = 0.5, trains = 0;
    bool known = true;

    CEK_TRY(cek__call_flow(c, 0, &part.input[0]));
    if (cek__call_has(c, 1))
        CEK_TRY(cek__call_number(c, 1, &p, &known));
    if (cek__call_has(c, 2))
        CEK_TRY(cek__call_number(c, 2, &trains, &known));
    if (trains != 0 && p > 0)
        CEK_FAIL(CEK_UNSUPPORTED, "it leaves out elements: a network is written in evaluation mode");
    if (!known || !(p >= 0 && p < 1))
        CEK_FAIL(CEK_UNSUPPORTED, "its ratio is not known, or not from 0 to below 1");
    part.dropout.p = p;
    part.dropout.stream = (uint32_t)c->graph->node;
    c->out[0] = part.input[0];
    if (p > 0 && !c->import->whole)
        CEK_TRY(cek__graph_add(c->graph, &part, &c->out[0]));
out:
    return st;
}

#define COUNT(code) ((uint32_t)(sizeof(code) / sizeof *(code)))

/* A chain over the first one or two inputs. */
static cek_status chain_of(cek__onnx_call *c, int inputs, uint32_t count, const instruction *code)
{
    cek_status st;
    int x[2];

    for (int i = 0; i < inputs; i++)
        CEK_TRY(cek__call_flow(c, (size_t)i, &x[i]));
    st = cek__call_chain(c, inputs, x, count, code);
out:
    return st;
}

/* clang-format off */
cek_status cek__onnx_formula(cek__onnx_call *c)
{
    /* value 0 is x, the n-th instruction gives value n + 1 */
    static const struct {
        uint32_t count;
        instruction code[5];
    } formulas[] = {
        [CEK__FORMULA_CEIL] = { 3,
          { { .code = CEK_PW_NEG }, { .code = CEK_PW_FLOOR, .a = 1 }, { .code = CEK_PW_NEG, .a = 2 } } },
        [CEK__FORMULA_RECIPROCAL] = { 2,
          { { .code = CEK_PW_CONST, .imm = 1 }, { .code = CEK_PW_DIV, .a = 1, .b = 0 } } },
        [CEK__FORMULA_SOFTSIGN] = { 3, { { .code = CEK_PW_ABS }, { .code = CEK_PW_ADD_IMM, .a = 1, .imm = 1 },
                                         { .code = CEK_PW_DIV, .a = 0, .b = 2 } } },
        [CEK__FORMULA_TAN] = { 3,
          { { .code = CEK_PW_SIN }, { .code = CEK_PW_COS }, { .code = CEK_PW_DIV, .a = 1, .b = 2 } } },
        [CEK__FORMULA_ATANH] = { 5,
          { { .code = CEK_PW_LOG1P }, { .code = CEK_PW_NEG }, { .code = CEK_PW_LOG1P, .a = 2 },
                                      { .code = CEK_PW_SUB, .a = 1, .b = 3 },
                                        { .code = CEK_PW_MUL_IMM, .a = 4, .imm = 0.5 } } },
        [CEK__FORMULA_NOT] = { 2, { { .code = CEK_PW_NEG }, { .code = CEK_PW_ADD_IMM, .a = 1, .imm = 1 } } },
        [CEK__FORMULA_IS_NAN] = { 3, { { .code = CEK_PW_EQUAL }, { .code = CEK_PW_NEG, .a = 1 },
                                       { .code = CEK_PW_ADD_IMM, .a = 2, .imm = 1 } } },
    };

    return chain_of(c, 1, formulas[c->argument].count, formulas[c->argument].code);
}

/* e^88 is a float, of half of which more can be had: sinh and cosh of m, which is x within 88 of 0, times exp(|x| - 88)
 * where that is above 0, as they grow from there on. */
cek_status cek__onnx_sinh(cek__onnx_call *c)
{
    const bool even = c->argument; /* cosh */
    const instruction code[] = {
        { .code = CEK_PW_CONST, .imm = 88 },
        { .code = CEK_PW_MIN, .a = 0, .b = 1 },
        { .code = CEK_PW_CONST, .imm = -88 },
        { .code = CEK_PW_MAX, .a = 2, .b = 3 }, /* 4: m */
        { .code = even ? CEK_PW_EXP : CEK_PW_EXPM1, .a = 4 },
        { .code = CEK_PW_NEG, .a = 4 },
        { .code = even ? CEK_PW_EXP : CEK_PW_EXPM1, .a = 6 },
        { .code = even ? CEK_PW_ADD : CEK_PW_SUB, .a = 5, .b = 7 },
        { .code = CEK_PW_MUL_IMM, .a = 8, .imm = 0.5 },
        { .code = CEK_PW_ABS },
        { .code = CEK_PW_ADD_IMM, .a = 10, .imm = -88 },
        { .code = CEK_PW_RELU, .a = 11 },
        { .code = CEK_PW_EXP, .a = 12 },
        { .code = CEK_PW_MUL, .a = 9, .b = 13 },
    };

    return chain_of(c, 1, COUNT(code), code);
}

/* From here on, whose square is far from the largest float, both grow as ln x, but for 2^-34. */
#define LOGARITHM 0x1p16

/* y + ln(|x| / LOGARITHM) where that is above 0. */
static cek_status grown(cek__onnx_call *c, uint32_t count, const instruction *code)
{
    static const instruction more[] = {
        { .code = CEK_PW_ABS, .a = 0 },
        { .code = CEK_PW_MUL_IMM, .a = 2, .imm = 1 / LOGARITHM },
        { .code = CEK_PW_CONST, .imm = 1 },
        { .code = CEK_PW_MAX, .a = 3, .b = 4 },
        { .code = CEK_PW_LOG, .a = 5 },
        { .code = CEK_PW_ADD, .a = 1, .b = 6 },
    };
    cek_status st;
    int x;

    CEK_TRY(cek__call_flow(c, 0, &x));
    CEK_TRY(cek__call_chain(c, 1, &x, count, code));
    st = cek__call_chain(c, 2, (int[]){ x, c->out[0] }, COUNT(more), more);
out:
    return st;
}

/* sign(x) log1p(a + a^2 / (1 + sqrt(a^2 + 1))) of a = |x| */
cek_status cek__onnx_asinh(cek__onnx_call *c)
{
    static const instruction code[] = {
        { .code = CEK_PW_ABS },
        { .code = CEK_PW_CONST, .imm = LOGARITHM },
        { .code = CEK_PW_MIN, .a = 1, .b = 2 },
        { .code = CEK_PW_MUL, .a = 3, .b = 3 },
        { .code = CEK_PW_ADD_IMM, .a = 4, .imm = 1 },
        { .code = CEK_PW_SQRT, .a = 5 },
        { .code = CEK_PW_ADD_IMM, .a = 6, .imm = 1 },
        { .code = CEK_PW_DIV, .a = 4, .b = 7 },
        { .code = CEK_PW_ADD, .a = 3, .b = 8 },
        { .code = CEK_PW_LOG1P, .a = 9 },
    };
    static const instruction sign[] = { { .code = CEK_PW_SIGN }, { .code = CEK_PW_MUL, .a = 1, .b = 2 } };
    cek_status st;
    int x;

    CEK_TRY(cek__call_flow(c, 0, &x));
    CEK_TRY(grown(c, COUNT(code), code));
    st = cek__call_chain(c, 2, (int[]){ x, c->out[0] }, COUNT(sign), sign);
out:
    return st;
}

/* log1p(t + sqrt(t) sqrt(t + 2)) of t = x - 1 */
cek_status cek__onnx_acosh(cek__onnx_call *c)
{
    static const instruction code[] = {
        { .code = CEK_PW_CONST, .imm = LOGARITHM },
        { .code = CEK_PW_MIN, .a = 0, .b = 1 },
        { .code = CEK_PW_ADD_IMM, .a = 2, .imm = -1 },
        { .code = CEK_PW_SQRT, .a = 3 },
        { .code = CEK_PW_ADD_IMM, .a = 3, .imm = 2 },
        { .code = CEK_PW_SQRT, .a = 5 },
        { .code = CEK_PW_MUL, .a = 4, .b = 6 },
        { .code = CEK_PW_ADD, .a = 3, .b = 7 },
        { .code = CEK_PW_LOG1P, .a = 8 },
    };

    return grown(c, COUNT(code), code);
}

/* To the nearest whole number, halves to the even one: floor f, f + 1 above the middle, in the middle the even
 * one of both. */
cek_status cek__onnx_round(cek__onnx_call *c)
{
    const instruction code[] = {
        { .code = CEK_PW_FLOOR },                        /* 1: f */
        { .code = CEK_PW_SUB, .a = 0, .b = 1 },          /* 2: what is above it */
        { .code = CEK_PW_CONST, .imm = 0.5 },            /* 3 */
        { .code = CEK_PW_LESS, .a = 3, .b = 2 },         /* 4: it is more */
        { .code = CEK_PW_EQUAL, .a = 3, .b = 2 },        /* 5: it is a half */
        { .code = CEK_PW_MUL_IMM, .a = 1, .imm = 0.5 },  /* 6 */
        { .code = CEK_PW_FLOOR, .a = 6 },                /* 7 */
        { .code = CEK_PW_SUB, .a = 6, .b = 7 },          /* 8: 0.5 of an odd one */
        { .code = CEK_PW_ADD, .a = 8, .b = 8 },          /* 9: 1 */
        { .code = CEK_PW_ADD, .a = 1, .b = 9 },          /* 10 */
        { .code = CEK_PW_ADD, .a = 1, .b = 4 },          /* 11: of an infinity too, above which nothing is known */
        { .code = CEK_PW_SELECT, .a = 5, .b = 10, .c = 11 },
    };

    return chain_of(c, 1, COUNT(code), code);
}

cek_status cek__onnx_is_inf(cek__onnx_call *c)
{
    const bool above = cek__call_int(c, "detect_positive", 1) != 0, below = cek__call_int(c, "detect_negative", 1) != 0;
    const instruction code[] = {
        { .code = CEK_PW_CONST, .imm = above ? INFINITY : (double)NAN },
        { .code = CEK_PW_CONST, .imm = below ? -INFINITY : (double)NAN },
        { .code = CEK_PW_EQUAL, .a = 0, .b = 1 },
        { .code = CEK_PW_EQUAL, .a = 0, .b = 2 },
        { .code = CEK_PW_MAX, .a = 3, .b = 4 },
    };

    return chain_of(c, 1, COUNT(code), code);
}

/* clang-format on */

enum { QUOTIENT_BITS = 32, BITS_AT_ONCE = 4 };

/* What is left of a where b is taken away as often as it goes into it, less often than 2^32: b times each power of two,
 * from the largest on, once at most. What is taken is more than half of what is there, so the difference is exact. */
static cek_status remainder_of(cek__onnx_call *c, int a, int b, int *out)
{
    cek_status st = CEK_OK;

    for (int bit = QUOTIENT_BITS; bit > 0;) {
        instruction code[4 * BITS_AT_ONCE], *at = code;
        uint32_t left = 0, next = 2; /* values of the chain */

        for (int i = 0; i < BITS_AT_ONCE; i++, next += 4, left = next - 1) {
            *at++ = (instruction){ .code = CEK_PW_MUL_IMM, .a = 1, .imm = ldexp(1, --bit) };
            *at++ = (instruction){ .code = CEK_PW_LESS, .a = left, .b = next };
            *at++ = (instruction){ .code = CEK_PW_SUB, .a = left, .b = next };
            *at++ = (instruction){ .code = CEK_PW_SELECT, .a = next + 1, .b = left, .c = next + 2 };
        }
        CEK_TRY(cek__call_chain(c, 2, (int[]){ a, b }, COUNT(code), code));
        a = c->out[0];
    }
    *out = a;
out:
    return st;
}

/* A remainder has the sign of x (fmod), or y is added where y has the other one. NaN where y is 0, or goes into x 2^32
 * times: the rest would take as many more steps. */
cek_status cek__onnx_mod(cek__onnx_call *c)
{
    static const instruction code[] = {
        { .code = CEK_PW_ABS, .a = 0 }, /* 3; 2 is the remainder of both without their signs */
        { .code = CEK_PW_ABS, .a = 1 },
        { .code = CEK_PW_MUL_IMM, .a = 4, .imm = (double)(UINT64_C(1) << QUOTIENT_BITS) },
        { .code = CEK_PW_LESS, .a = 3, .b = 5 },
        { .code = CEK_PW_CONST, .imm = (double)NAN },
        { .code = CEK_PW_SELECT, .a = 6, .b = 2, .c = 7 },
        { .code = CEK_PW_CONST },
        { .code = CEK_PW_LESS, .a = 0, .b = 9 },
        { .code = CEK_PW_NEG, .a = 8 },
        { .code = CEK_PW_SELECT, .a = 10, .b = 11, .c = 8 }, /* 12: fmod */
        { .code = CEK_PW_SIGN, .a = 12 },
        { .code = CEK_PW_SIGN, .a = 1 },
        { .code = CEK_PW_MUL, .a = 13, .b = 14 },
        { .code = CEK_PW_LESS, .a = 15, .b = 9 },
        { .code = CEK_PW_ADD, .a = 12, .b = 1 },
        { .code = CEK_PW_SELECT, .a = 16, .b = 17, .c = 12 },
    };
    cek_status st;
    int x[3], a, b;

    CEK_TRY(cek__call_flow(c, 0, &x[0]));
    CEK_TRY(cek__call_flow(c, 1, &x[1]));
    if (whole_numbers(c, x[0]))
        CEK_FAIL(CEK_UNSUPPORTED, "of integers that are not known before it runs");
    CEK_TRY(cek__chain(c->graph, CEK_PW_ABS, x[0], CEK__NOTHING, &a));
    CEK_TRY(cek__chain(c->graph, CEK_PW_ABS, x[1], CEK__NOTHING, &b));
    CEK_TRY(remainder_of(c, a, b, &x[2]));
    st = cek__call_chain(c, 3, x, cek__call_int(c, "fmod", 0) != 0 ? 10 : COUNT(code), code);
out:
    return st;
}

/* ---- activations with numbers of their own ---- */

static cek_status thresholded(cek__onnx_call *c, int x, double alpha)
{
    const instruction code[] = { { .code = CEK_PW_CONST, .imm = alpha },
                                 { .code = CEK_PW_LESS, .a = 1, .b = 0 },
                                 { .code = CEK_PW_CONST },
                                 { .code = CEK_PW_SELECT, .a = 2, .b = 0, .c = 3 } };

    return cek__call_chain(c, 1, &x, COUNT(code), code);
}

/* x + bias below -limit, x - bias above it, 0 between. */
static cek_status shrunk(cek__onnx_call *c, int x, double limit, double bias)
{
    const instruction code[] = {
        { .code = CEK_PW_ABS },                           /* 1 */
        { .code = CEK_PW_CONST, .imm = limit },           /* 2 */
        { .code = CEK_PW_LESS, .a = 2, .b = 1 },          /* 3 */
        { .code = CEK_PW_SIGN },                          /* 4 */
        { .code = CEK_PW_MUL_IMM, .a = 4, .imm = -bias }, /* 5 */
        { .code = CEK_PW_ADD, .a = 0, .b = 5 },           /* 6 */
        { .code = CEK_PW_CONST },                         /* 7 */
        { .code = CEK_PW_SELECT, .a = 3, .b = 6, .c = 7 },
    };

    return cek__call_chain(c, 1, &x, COUNT(code), code);
}

static cek_status scaled_elu(cek__onnx_call *c, int x, double alpha, double gamma)
{
    cek_status st;

    CEK_TRY(cek__elu(c->graph, x, alpha, &x));
    st = cek__call_chain(c, 1, &x, 1, &(instruction){ .code = CEK_PW_MUL_IMM, .imm = gamma });
out:
    return st;
}

static cek_status hard_sigmoid(cek__onnx_call *c, int x, double alpha, double beta)
{
    const instruction line[] = { { .code = CEK_PW_MUL_IMM, .imm = alpha },
                                 { .code = CEK_PW_ADD_IMM, .a = 1, .imm = beta } };
    cek_status st;

    CEK_TRY(cek__call_chain(c, 1, &x, COUNT(line), line));
    st = cek__clip(c->graph, c->out[0], 0, 1, &c->out[0]);
out:
    return st;
}

/* x tanh(ln(1 + exp(x))) */
static cek_status mish(cek__onnx_call *c, int x)
{
    const instruction code[] = { { .code = CEK_PW_TANH, .a = 1 }, { .code = CEK_PW_MUL, .a = 0, .b = 2 } };
    cek_status st;
    int soft;

    CEK_TRY(cek__softplus(c->graph, x, 1, &soft));
    st = cek__call_chain(c, 2, (int[]){ x, soft }, COUNT(code), code);
out:
    return st;
}

static cek_status swish(cek__onnx_call *c, int x, double alpha)
{
    const instruction code[] = { { .code = CEK_PW_MUL_IMM, .imm = alpha },
                                 { .code = CEK_PW_SIGMOID, .a = 1 },
                                 { .code = CEK_PW_MUL, .a = 0, .b = 2 } };

    return cek__call_chain(c, 1, &x, COUNT(code), code);
}

/* alpha elu(x / alpha) with elu's own 1. */
static cek_status celu(cek__onnx_call *c, int x, double alpha)
{
    cek_status st;

    CEK_TRY(cek__call_chain(c, 1, &x, 1, &(instruction){ .code = CEK_PW_MUL_IMM, .imm = 1 / alpha }));
    st = scaled_elu(c, c->out[0], 1, alpha);
out:
    return st;
}

cek_status cek__onnx_activation(cek__onnx_call *c)
{
    static const char *const approximations[] = { "none", "tanh", NULL };
    cek_status st;
    int x, approximation;

    CEK_TRY(cek__call_flow(c, 0, &x));
    switch (c->argument) {
    case CEK__ACTIVATION_ELU: return cek__elu(c->graph, x, cek__call_float(c, "alpha", 1), &c->out[0]);
    case CEK__ACTIVATION_SELU:
        return scaled_elu(c, x, cek__call_float(c, "alpha", 1.67326319217681884765625),
                          cek__call_float(c, "gamma", 1.05070102214813232421875));
    case CEK__ACTIVATION_CELU: return celu(c, x, cek__call_float(c, "alpha", 1));
    case CEK__ACTIVATION_LEAKY_RELU: return cek__leaky_relu(c->graph, x, cek__call_float(c, "alpha", 0.01), &c->out[0]);
    case CEK__ACTIVATION_THRESHOLDED: return thresholded(c, x, cek__call_float(c, "alpha", 1));
    case CEK__ACTIVATION_SHRINK: return shrunk(c, x, cek__call_float(c, "lambd", 0.5), cek__call_float(c, "bias", 0));
    case CEK__ACTIVATION_HARD_SIGMOID:
        return hard_sigmoid(c, x, cek__call_float(c, "alpha", 0.2), cek__call_float(c, "beta", 0.5));
    case CEK__ACTIVATION_HARD_SWISH: return cek__hard_swish(c->graph, x, &c->out[0]);
    case CEK__ACTIVATION_SOFTPLUS: return cek__softplus(c->graph, x, 1, &c->out[0]);
    case CEK__ACTIVATION_MISH: return mish(c, x);
    case CEK__ACTIVATION_SWISH: return swish(c, x, cek__call_float(c, "alpha", 1));
    case CEK__ACTIVATION_GELU:
        CEK_TRY(cek__call_word(c, "approximate", approximations, &approximation));
        return approximation ? cek__gelu_tanh(c->graph, x, &c->out[0]) : cek__gelu(c->graph, x, &c->out[0]);
    default: CEK_FAIL(CEK_UNSUPPORTED, "activation %u", c->argument);
    }
out:
    return st;
}

/* Both ends may be left out; where both are there, the upper one counts. */
cek_status cek__onnx_clip(cek__onnx_call *c)
{
    cek_status st;
    double end[2] = { -INFINITY, INFINITY };
    bool known[2] = { true, true };
    int x, bound;

    CEK_TRY(cek__call_flow(c, 0, &x));
    for (int i = 0; i < 2; i++)
        if (cek__call_has(c, 1 + (size_t)i))
            CEK_TRY(cek__call_number(c, 1 + (size_t)i, &end[i], &known[i]));
    c->out[0] = x;
    if (known[0] && known[1] && end[0] == 0 && end[1] == 6)
        return kept_whole(c, x, cek__relu6(c->graph, x, &c->out[0]));
    if (known[0] && known[1] && end[0] <= end[1] && isfinite(end[0]) && isfinite(end[1]))
        return kept_whole(c, x, cek__clip(c->graph, x, end[0], end[1], &c->out[0]));
    for (int i = 0; i < 2; i++)
        if (cek__call_has(c, 1 + (size_t)i)) {
            CEK_TRY(cek__call_flow(c, 1 + (size_t)i, &bound));
            CEK_TRY(cek__chain(c->graph, i == 0 ? CEK_PW_MAX : CEK_PW_MIN, c->out[0], bound, &c->out[0]));
        }
    st = kept_whole(c, x, CEK_OK);
out:
    return st;
}

/* ---- of several ---- */

/* One instruction over two; of integers where both are. */
static cek_status two(cek__onnx_call *c, uint32_t code, int a, int b, int *out)
{
    cek__part part = {
        .kind = CEK__PART_CHAIN, .inputs = 2, .input = { a, b }, .chain = { 1, { { .code = code, .a = 0, .b = 1 } } }
    };
    bool closed = code == CEK_PW_ADD || code == CEK_PW_SUB || code == CEK_PW_MUL || code == CEK_PW_MIN ||
                  code == CEK_PW_MAX;

    if (whole_numbers(c, a) && whole_numbers(c, b)) {
        if (code == CEK_PW_DIV || code == CEK_PW_POW)
            return cek__fail(CEK_UNSUPPORTED, "of integers that are not known before it runs");
        part.type = closed ? CEK_I32 : CEK_DTYPE_NONE;
    }
    return cek__graph_add(c->graph, &part, out);
}

/* Whole numbers to a power that is none, cut off; what lies below a whole one by no more than POW errs is that one. */
static cek_status power_cut(cek__onnx_call *c, const int *x)
{
    const cek__part part = { .kind = CEK__PART_CHAIN,
                             .inputs = 2,
                             .input = { x[0], x[1] },
                             .type = CEK_I32,
                             .chain = { 9,
                                        { { .code = CEK_PW_POW, .a = 0, .b = 1 },
                                          { .code = CEK_PW_ABS, .a = 2 },
                                          { .code = CEK_PW_MUL_IMM, .a = 3, .imm = CEK_ULP_POW * 0x1p-23 },
                                          { .code = CEK_PW_CONST, .imm = 0.25 }, /* a large one is whole already */
                                          { .code = CEK_PW_MIN, .a = 4, .b = 5 },
                                          { .code = CEK_PW_ADD, .a = 3, .b = 6 },
                                          { .code = CEK_PW_FLOOR, .a = 7 },
                                          { .code = CEK_PW_SIGN, .a = 2 },
                                          { .code = CEK_PW_MUL, .a = 8, .b = 9 } } } };

    return cek__graph_add(c->graph, &part, &c->out[0]);
}

cek_status cek__onnx_binary(cek__onnx_call *c)
{
    cek_status st;
    int x[2];

    CEK_TRY(cek__call_flow(c, 0, &x[0]));
    CEK_TRY(cek__call_flow(c, 1, &x[1]));
    if (c->argument == CEK_PW_POW && whole_numbers(c, x[0]) && !whole_numbers(c, x[1]))
        return power_cut(c, x);
    st = two(c, c->argument, x[0], x[1], &c->out[0]);
out:
    return st;
}

/* a > b, a >= b, a <= b; a NaN among them is none of these. */
cek_status cek__onnx_compare(cek__onnx_call *c)
{
    const instruction code[] = { { .code = CEK_PW_LESS, .a = 0, .b = 1 },
                                 { .code = CEK_PW_EQUAL, .a = 0, .b = 1 },
                                 { .code = CEK_PW_MAX, .a = 2, .b = 3 } };
    const bool swapped = (c->argument & CEK__COMPARE_SWAPPED) != 0;
    cek_status st;
    int x[2];

    CEK_TRY(cek__call_flow(c, swapped, &x[0]));
    CEK_TRY(cek__call_flow(c, !swapped, &x[1]));
    st = cek__call_chain(c, 2, x, (c->argument & CEK__COMPARE_OR_EQUAL) != 0 ? 3 : 1, code);
out:
    return st;
}

cek_status cek__onnx_xor(cek__onnx_call *c)
{
    const instruction code[] = { { .code = CEK_PW_EQUAL, .a = 0, .b = 1 },
                                 { .code = CEK_PW_NEG, .a = 2 },
                                 { .code = CEK_PW_ADD_IMM, .a = 3, .imm = 1 } };

    return chain_of(c, 2, COUNT(code), code);
}

/* Any number of inputs, one after the other; of MEAN their sum by how many there are. */
cek_status cek__onnx_variadic(cek__onnx_call *c)
{
    cek_status st;
    bool mean = c->argument == CEK__VARIADIC_MEAN;
    int x;

    CEK_TRY(cek__call_flow(c, 0, &c->out[0]));
    for (size_t i = 1; i < c->node->inputs; i++) {
        CEK_TRY(cek__call_flow(c, i, &x));
        CEK_TRY(two(c, mean ? CEK_PW_ADD : c->argument, c->out[0], x, &c->out[0]));
    }
    if (mean)
        CEK_TRY(cek__call_chain(c, 1, (int[]){ c->out[0] }, 1,
                                &(instruction){ .code = CEK_PW_MUL_IMM, .imm = 1 / (double)c->node->inputs }));
out:
    return st;
}

cek_status cek__onnx_prelu(cek__onnx_call *c)
{
    const instruction code[] = { { .code = CEK_PW_CONST },
                                 { .code = CEK_PW_MIN, .a = 0, .b = 2 },
                                 { .code = CEK_PW_MUL, .a = 1, .b = 3 },
                                 { .code = CEK_PW_RELU, .a = 0 },
                                 { .code = CEK_PW_ADD, .a = 4, .b = 5 } };
    cek_status st;
    int slope;

    CEK_TRY(cek__call_weight(c, 1, &slope)); /* a single number is a parameter too */
    st = chain_of(c, 2, COUNT(code), code);
out:
    return st;
}

cek_status cek__onnx_where(cek__onnx_call *c)
{
    const instruction code = { .code = CEK_PW_SELECT, .a = 0, .b = 1, .c = 2 };
    cek__part part = { .kind = CEK__PART_CHAIN, .inputs = 3, .chain = { 1, { code } } };
    cek_status st;

    for (size_t i = 0; i < 3; i++)
        CEK_TRY(cek__call_flow(c, i, &part.input[i]));
    if (whole_numbers(c, part.input[1]) && whole_numbers(c, part.input[2]))
        part.type = CEK_I32;
    st = cek__graph_add(c->graph, &part, &c->out[0]);
out:
    return st;
}

/* ---- types ---- */

/* Integers are cut off, as ONNX does, not rounded. */
static cek_status to_integer(cek__onnx_call *c, int x)
{
    cek__part part = { .kind = CEK__PART_CHAIN,
                       .inputs = 1,
                       .input = { x },
                       .type = CEK_I32,
                       .chain = { 4,
                                  { { .code = CEK_PW_ABS },
                                    { .code = CEK_PW_FLOOR, .a = 1 },
                                    { .code = CEK_PW_SIGN },
                                    { .code = CEK_PW_MUL, .a = 2, .b = 3 } } } };

    return cek__graph_add(c->graph, &part, &c->out[0]);
}

static cek_status cast_to(cek__onnx_call *c, int x, int64_t type)
{
    const instruction truth[] = { { .code = CEK_PW_CONST },
                                  { .code = CEK_PW_EQUAL, .a = 0, .b = 1 },
                                  { .code = CEK_PW_NEG, .a = 2 },
                                  { .code = CEK_PW_ADD_IMM, .a = 3, .imm = 1 } };
    const char *name = type > 0 && type < INT32_MAX ? cek__onnx_type_name((int)type) : NULL;

    c->out[0] = x;
    switch (type) {
    case CEK__ONNX_FLOAT: return whole_numbers(c, x) ? cek__cast(c->graph, x, CEK_DTYPE_NONE, &c->out[0]) : CEK_OK;
    case CEK__ONNX_BOOL: return cek__call_chain(c, 1, &x, COUNT(truth), truth);
    case CEK__ONNX_INT32:
    case CEK__ONNX_INT64: return whole_numbers(c, x) ? CEK_OK : to_integer(c, x);
    default:
        return cek__fail(CEK_UNSUPPORTED, "to %s: float, int32, int64 and bool are given",
                         name ? name : "another type");
    }
}

cek_status cek__onnx_cast(cek__onnx_call *c)
{
    cek_status st;
    int x;

    CEK_TRY(cek__call_flow(c, 0, &x));
    st = cast_to(c, x, cek__call_int(c, "to", 0));
out:
    return st;
}

/* To the type of the second input, whose values do not matter; of floats there is one. */
cek_status cek__onnx_cast_like(cek__onnx_call *c)
{
    cek_status st;
    int x, like;
    int64_t type;

    CEK_TRY(cek__call_flow(c, 0, &x));
    CEK_TRY(cek__call_flow(c, 1, &like));
    c->scalar = cek__call_scalar(c, 0);
    type = whole_numbers(c, like) ? CEK__ONNX_INT64 : CEK__ONNX_FLOAT;
    if (cek__onnx_type_of(c->import, c->import->onnx->links[c->node->first_input + 1].value) == CEK__ONNX_BOOL)
        type = CEK__ONNX_BOOL;
    st = cast_to(c, x, type);
out:
    return st;
}
