/* cut.c - see cut.h.
 *
 * Instructions are taken in their order until one more would make a chain too long or read too much. What is read
 * behind that place becomes a flow, each by a chain of its own that computes only what it needs, and is an input from
 * there on. What reads nothing is never a flow: whoever reads that has it among its own instructions. */
#include "nn/graph/cut.h"

#include <string.h>

#include "nn/graph/parts.h"

int cek__code_add(cek__code *code, const cek_pointwise_instruction *instruction)
{
    if (code->count == CEK__CODE_MAX) {
        code->lost++;
        return 0;
    }
    code->instruction[code->count] = *instruction;
    return code->inputs + code->count++;
}

int cek__code_reads(uint32_t code)
{
    switch (code) {
    case CEK_PW_CONST:
    case CEK_PW_VALID: return 0;
    case CEK_PW_ADD:
    case CEK_PW_SUB:
    case CEK_PW_MUL:
    case CEK_PW_DIV:
    case CEK_PW_MIN:
    case CEK_PW_MAX:
    case CEK_PW_RELU_GRAD:
    case CEK_PW_TANH_GRAD:
    case CEK_PW_SIGMOID_GRAD:
    case CEK_PW_GELU_GRAD:
    case CEK_PW_LESS:
    case CEK_PW_EQUAL:
    case CEK_PW_POW: return 2;
    case CEK_PW_SELECT: return 3;
    default: return 1;
    }
}

/* The value in operand k of an instruction; -1: it reads none there. */
static int operand(const cek_pointwise_instruction *in, int k)
{
    const uint32_t operands[3] = { in->a, in->b, in->c };

    return k < cek__code_reads(in->code) ? (int)operands[k] : -1;
}

typedef struct cutter {
    const cek__code *code;
    int flow[CEK__CODE_VALUES]; /* by value: what it became; CEK__NOTHING: not yet */
    bool needed[CEK__CODE_VALUES];
} cutter;

/* What the flows that are there leave to be computed for a value, as one chain. False: it does not fit. */
static bool chain_of(const cutter *c, int wanted, cek__part *part)
{
    bool needed[CEK__CODE_VALUES] = { 0 };
    int number[CEK__CODE_VALUES], first = c->code->inputs;

    *part = (cek__part){ .kind = CEK__PART_CHAIN };
    needed[wanted] = true;
    for (int v = wanted; v >= first; v--)
        for (int k = 0; k < 3 && needed[v] && !c->flow[v]; k++)
            if (operand(&c->code->instruction[v - first], k) >= 0)
                needed[operand(&c->code->instruction[v - first], k)] = true;
    for (int v = 0; v <= wanted; v++) {
        if (!needed[v] || !c->flow[v])
            continue;
        if (part->inputs == CEK__PART_INPUTS)
            return false;
        number[v] = part->inputs;
        part->input[part->inputs++] = c->flow[v];
    }
    for (int v = first; v <= wanted; v++) {
        cek_pointwise_instruction in;

        if (!needed[v] || c->flow[v])
            continue;
        if (part->chain.count == CEK_POINTWISE_INSTRUCTIONS)
            return false;
        in = c->code->instruction[v - first];
        if (in.code == CEK_PW_VALID)
            part->dims = c->code->dims;
        in.a = operand(&in, 0) < 0 ? 0 : (uint32_t)number[in.a];
        in.b = operand(&in, 1) < 0 ? 0 : (uint32_t)number[in.b];
        in.c = operand(&in, 2) < 0 ? 0 : (uint32_t)number[in.c];
        number[v] = part->inputs + (int)part->chain.count;
        part->chain.code[part->chain.count++] = in;
    }
    return true;
}

/* Whether anything that is needed from `at` on reads the value. */
static bool read_behind(const cutter *c, int value, int at, int wanted)
{
    for (int v = at; v <= wanted; v++)
        for (int k = 0; k < 3 && c->needed[v]; k++)
            if (operand(&c->code->instruction[v - c->code->inputs], k) == value)
                return true;
    return false;
}

/* Makes flows of what stands before `at` and is read from there on. */
static cek_status flows_make(cek__graph *graph, cutter *c, int at, int wanted)
{
    cek_status st;
    int made[CEK__CODE_VALUES] = { 0 };

    for (int v = c->code->inputs; v < at; v++) {
        cek__part part;

        if (!c->needed[v] || c->flow[v] || cek__code_reads(c->code->instruction[v - c->code->inputs].code) == 0 ||
            !read_behind(c, v, at, wanted))
            continue;
        if (!chain_of(c, v, &part))
            CEK_FAIL(CEK_INTERNAL, "a chain that fitted does so no longer");
        CEK_TRY(cek__graph_add(graph, &part, &made[v]));
    }
    for (int v = 0; v < at; v++)
        c->flow[v] = made[v] ? made[v] : c->flow[v];
    return CEK_OK;
out:
    return st;
}

cek_status cek__code_cut(cek__graph *graph, const cek__code *code, int wanted, int *out)
{
    cek_status st;
    cutter c = { .code = code };
    cek__part part;

    if (code->lost)
        CEK_FAIL(CEK_UNSUPPORTED, "its derivative takes %d instructions more than %d", code->lost, CEK__CODE_MAX);
    memcpy(c.flow, code->flow, (size_t)code->inputs * sizeof *code->flow);
    c.needed[wanted] = true;
    for (int v = wanted; v >= code->inputs; v--)
        for (int k = 0; k < 3 && c.needed[v]; k++)
            if (operand(&code->instruction[v - code->inputs], k) >= 0)
                c.needed[operand(&code->instruction[v - code->inputs], k)] = true;
    for (int v = code->inputs; v <= wanted; v++)
        if (c.needed[v] && !chain_of(&c, v, &part))
            CEK_TRY(flows_make(graph, &c, v, wanted));
    *out = c.flow[wanted];
    if (!*out) {
        chain_of(&c, wanted, &part);
        CEK_TRY(cek__graph_add(graph, &part, out));
    }
    return CEK_OK;
out:
    return st;
}
