/* export_chain.c - the instructions of a chain as nodes, one or a few for each (see export.h).
 *
 * They are computed in floats; whole numbers become such before, and again behind. */
#include "nn/graph/cut.h"
#include "nn/graph/parts.h"
#include "nn/onnx/export.h"

enum { VALUES = CEK__PART_INPUTS + CEK_POINTWISE_INSTRUCTIONS };

static const char *const names[] = {
    [CEK_PW_ADD] = "Add",   [CEK_PW_SUB] = "Sub",   [CEK_PW_MUL] = "Mul",         [CEK_PW_DIV] = "Div",
    [CEK_PW_MIN] = "Min",   [CEK_PW_MAX] = "Max",   [CEK_PW_NEG] = "Neg",         [CEK_PW_ABS] = "Abs",
    [CEK_PW_SQRT] = "Sqrt", [CEK_PW_EXP] = "Exp",   [CEK_PW_LOG] = "Log",         [CEK_PW_ADD_IMM] = "Add",
    [CEK_PW_RELU] = "Relu", [CEK_PW_TANH] = "Tanh", [CEK_PW_SIGMOID] = "Sigmoid", [CEK_PW_MUL_IMM] = "Mul",
    [CEK_PW_POW] = "Pow",   [CEK_PW_ERF] = "Erf",   [CEK_PW_FLOOR] = "Floor",     [CEK_PW_SIGN] = "Sign",
    [CEK_PW_SIN] = "Sin",   [CEK_PW_COS] = "Cos",
};
enum { NAMES = sizeof names / sizeof *names };

/* x/2 (1 + erf(x / sqrt 2)) */
static int gelu(cek__export *e, int x)
{
    const int erf = cek__export_one(e, "Erf", cek__export_two(e, "Mul", x, cek__export_number(e, 0.70710678118654752)));
    const int half = cek__export_two(e, "Mul", x, cek__export_number(e, 0.5));

    return cek__export_two(e, "Mul", half, cek__export_two(e, "Add", erf, cek__export_number(e, 1)));
}

static int select(cek__export *e, int truth, int yes, int no)
{
    return cek__export_node(e, "Where", 3, (int[]){ cek__export_cast(e, truth, CEK__ONNX_BOOL), yes, no }, 0, NULL);
}

static int instruction_put(cek__export *e, const cek_pointwise_instruction *in, const int *value)
{
    const int a = value[in->a], b = value[in->b];

    switch (in->code) {
    case CEK_PW_CONST: return cek__export_number(e, in->imm);
    case CEK_PW_VALID: return cek__export_number(e, 1); /* a file knows no padding */
    case CEK_PW_COPY: return a;
    case CEK_PW_GELU: return gelu(e, a);
    case CEK_PW_LOG1P: return cek__export_one(e, "Log", cek__export_two(e, "Add", a, cek__export_number(e, 1)));
    case CEK_PW_EXPM1: return cek__export_two(e, "Sub", cek__export_one(e, "Exp", a), cek__export_number(e, 1));
    case CEK_PW_LESS: return cek__export_cast(e, cek__export_two(e, "Less", a, b), CEK__ONNX_FLOAT);
    case CEK_PW_EQUAL: return cek__export_cast(e, cek__export_two(e, "Equal", a, b), CEK__ONNX_FLOAT);
    case CEK_PW_SELECT: return select(e, a, b, value[in->c]);
    case CEK_PW_ADD_IMM:
    case CEK_PW_MUL_IMM: return cek__export_two(e, names[in->code], a, cek__export_number(e, in->imm));
    default: break;
    }
    if (in->code >= NAMES || !names[in->code])
        return cek__export_refuse(e, "instruction %u", in->code);
    return cek__code_reads(in->code) == 1 ? cek__export_one(e, names[in->code], a)
                                          : cek__export_two(e, names[in->code], a, b);
}

/* As NumPy broadcasts; that they fit was seen when the part was added. */
static void dims_join(cek__dims *to, const cek__dims *x)
{
    cek__dims y = to->rank >= x->rank ? *to : *x;
    const cek__dims *less = to->rank >= x->rank ? x : to;

    for (int k = 0; k < less->rank; k++) {
        const int i = y.rank - less->rank + k;

        if (less->size[k] == 1 && !(less->samples >> k & 1))
            continue;
        y.size[i] = less->size[k];
        y.samples |= (less->samples >> k & 1) << i;
        y.outside = less->samples >> k & 1 ? less->outside : y.outside;
    }
    *to = y;
}

static int as_whole(cek__export *e, int x)
{
    return cek__export_cast(e, cek__export_one(e, "Round", x), CEK__ONNX_INT32);
}

int cek__export_chain(cek__export *e, const cek__part *part)
{
    const cek__flow *y = &e->graph->flows[part->output[0]];
    const bool copies = part->chain.count == 1 && part->chain.code[0].code == CEK_PW_COPY;
    int last = part->inputs - 1, value[VALUES];
    cek__dims dims[VALUES] = { { .rank = 0 } };
    bool whole = y->type == CEK_I32;

    for (int n = 0; n < part->inputs; n++) {
        const cek__flow *x = &e->graph->flows[part->input[n]];
        const bool stays = copies && x->type == CEK_I32 && whole;

        value[n] = e->values[part->input[n]];
        dims[n] = x->dims;
        if (x->type == CEK_I32 && !stays)
            value[n] = cek__export_cast(e, value[n], CEK__ONNX_FLOAT);
        whole = whole && !stays;
    }
    for (uint32_t i = 0; i < part->chain.count; i++) {
        const cek_pointwise_instruction *in = &part->chain.code[i];
        const uint32_t read[3] = { in->a, in->b, in->c };

        last = part->inputs + (int)i;
        value[last] = instruction_put(e, in, value);
        for (int k = 0; k < cek__code_reads(in->code); k++)
            dims_join(&dims[last], &dims[read[k]]);
    }
    if (!cek__export_goes_on(e))
        return -1;
    if (whole)
        value[last] = as_whole(e, value[last]);
    return cek__export_spread(e, value[last], &dims[last], &y->dims);
}
