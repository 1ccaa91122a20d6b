/* chain.c - reverse mode over the instructions of a chain (see chain.h).
 *
 * Everything is written as if there were no limit: what the derivatives need of the forward values first, then, from the
 * last instruction to the first, what each adds to the derivatives of those it reads. Then what the wanted one does not
 * need is left out. */
#include "nn/graph/chain.h"

#include <string.h>

enum { CODE_MAX = 8 * CEK_POINTWISE_INSTRUCTIONS, VALUES = CEK__PART_INPUTS + CEK_POINTWISE_INSTRUCTIONS, NONE = -1 };

typedef struct writer {
    int inputs; /* of the chain: dy, x..., y in this order */
    uint32_t count;
    cek_pointwise_instruction code[CODE_MAX];
    int adjoint[VALUES]; /* by forward value: the value that is its derivative so far */
    bool full;
} writer;

static int write(writer *w, uint32_t code, int a, int b, double imm)
{
    if (w->count == CODE_MAX) {
        w->full = true;
        return 0;
    }
    w->code[w->count] = (cek_pointwise_instruction){ .code = code, .a = (uint32_t)a, .b = (uint32_t)b, .imm = imm };
    return w->inputs + (int)w->count++;
}

static void add(writer *w, int to, int derivative)
{
    int *adjoint = &w->adjoint[to];

    *adjoint = *adjoint == NONE ? derivative : write(w, CEK_PW_ADD, *adjoint, derivative, 0);
}

/* Of the larger and the smaller of two the derivative goes to that one, to both by halves where they are equal. */
static void add_chosen(writer *w, int to, int self, int other, bool larger, int d)
{
    int wins = larger ? write(w, CEK_PW_LESS, other, self, 0) : write(w, CEK_PW_LESS, self, other, 0);
    int ties = write(w, CEK_PW_MUL_IMM, write(w, CEK_PW_EQUAL, self, other, 0), 0, 0.5);

    add(w, to, write(w, CEK_PW_MUL, d, write(w, CEK_PW_ADD, wins, ties, 0), 0));
}

/* What instruction `in`, whose value is v and whose derivative d, adds to those of its operands a and b, forward values. */
static cek_status instruction_back(writer *w, const cek_pointwise_instruction *in, const int *value, int v, int d)
{
    int a = (int)in->a, b = (int)in->b, va = value[a], vb = value[b];

    switch (in->code) {
    case CEK_PW_CONST:
    case CEK_PW_LESS:
    case CEK_PW_EQUAL: return CEK_OK;
    case CEK_PW_COPY:
    case CEK_PW_ADD_IMM: add(w, a, d); return CEK_OK;
    case CEK_PW_ADD:
        add(w, a, d);
        add(w, b, d);
        return CEK_OK;
    case CEK_PW_SUB:
        add(w, a, d);
        add(w, b, write(w, CEK_PW_NEG, d, 0, 0));
        return CEK_OK;
    case CEK_PW_MUL:
        add(w, a, write(w, CEK_PW_MUL, d, vb, 0));
        add(w, b, write(w, CEK_PW_MUL, d, va, 0));
        return CEK_OK;
    case CEK_PW_DIV:
        add(w, a, write(w, CEK_PW_DIV, d, vb, 0));
        add(w, b, write(w, CEK_PW_NEG, write(w, CEK_PW_DIV, write(w, CEK_PW_MUL, d, v, 0), vb, 0), 0, 0));
        return CEK_OK;
    case CEK_PW_MIN:
    case CEK_PW_MAX:
        add_chosen(w, a, va, vb, in->code == CEK_PW_MAX, d);
        add_chosen(w, b, vb, va, in->code == CEK_PW_MAX, d);
        return CEK_OK;
    case CEK_PW_NEG: add(w, a, write(w, CEK_PW_NEG, d, 0, 0)); return CEK_OK;
    case CEK_PW_MUL_IMM: add(w, a, write(w, CEK_PW_MUL_IMM, d, 0, in->imm)); return CEK_OK;
    case CEK_PW_EXP: add(w, a, write(w, CEK_PW_MUL, d, v, 0)); return CEK_OK;
    case CEK_PW_LOG: add(w, a, write(w, CEK_PW_DIV, d, va, 0)); return CEK_OK;
    case CEK_PW_SQRT: add(w, a, write(w, CEK_PW_DIV, write(w, CEK_PW_MUL_IMM, d, 0, 0.5), v, 0)); return CEK_OK;
    case CEK_PW_ABS: /* the sign is (0 < x) - (x < 0) */
        b = write(w, CEK_PW_CONST, 0, 0, 0);
        b = write(w, CEK_PW_SUB, write(w, CEK_PW_LESS, b, va, 0), write(w, CEK_PW_LESS, va, b, 0), 0);
        add(w, a, write(w, CEK_PW_MUL, d, b, 0));
        return CEK_OK;
    case CEK_PW_RELU: add(w, a, write(w, CEK_PW_RELU_GRAD, d, v, 0)); return CEK_OK;
    case CEK_PW_TANH: add(w, a, write(w, CEK_PW_TANH_GRAD, d, v, 0)); return CEK_OK;
    case CEK_PW_SIGMOID: add(w, a, write(w, CEK_PW_SIGMOID_GRAD, d, v, 0)); return CEK_OK;
    case CEK_PW_GELU: add(w, a, write(w, CEK_PW_GELU_GRAD, d, va, 0)); return CEK_OK;
    default: return cek__fail(CEK_UNSUPPORTED, "instruction %u has no derivative", in->code);
    }
}

/* How many operands an instruction reads. */
static int reads(uint32_t code)
{
    switch (code) {
    case CEK_PW_CONST: return 0;
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
    case CEK_PW_EQUAL: return 2;
    default: return 1;
    }
}

/* What `wanted` needs of what was written, as a part; `flow`: by input of the writer. */
static cek_status extract(const writer *w, int wanted, const int *flow, cek__part *back)
{
    bool needed[CEK__PART_INPUTS + 2 + CODE_MAX] = { 0 };
    int number[CEK__PART_INPUTS + 2 + CODE_MAX], total = w->inputs + (int)w->count;

    *back = (cek__part){ .kind = CEK__PART_CHAIN };
    needed[wanted] = true;
    for (int v = total; v-- > w->inputs;) {
        const cek_pointwise_instruction *in = &w->code[v - w->inputs];

        if (needed[v] && reads(in->code) > 0)
            needed[in->a] = true;
        if (needed[v] && reads(in->code) > 1)
            needed[in->b] = true;
    }
    for (int v = 0; v < w->inputs; v++) {
        if (!needed[v])
            continue;
        if (back->inputs == CEK__PART_INPUTS)
            return cek__fail(CEK_UNSUPPORTED, "its derivative reads more than %d inputs", CEK__PART_INPUTS);
        number[v] = back->inputs;
        back->input[back->inputs++] = flow[v];
    }
    for (int v = w->inputs; v < total; v++) {
        cek_pointwise_instruction in = w->code[v - w->inputs];

        if (!needed[v])
            continue;
        if (back->chain.count == CEK_POINTWISE_INSTRUCTIONS)
            return cek__fail(CEK_UNSUPPORTED, "its derivative takes more than %d instructions",
                             CEK_POINTWISE_INSTRUCTIONS);
        in.a = reads(in.code) > 0 ? (uint32_t)number[in.a] : 0;
        in.b = reads(in.code) > 1 ? (uint32_t)number[in.b] : 0;
        number[v] = back->inputs + (int)back->chain.count;
        back->chain.code[back->chain.count++] = in;
    }
    return CEK_OK;
}

cek_status cek__chain_back(const cek__part *p, int n, int dy, cek__part *back)
{
    cek_status st;
    int flow[CEK__PART_INPUTS + 2], value[VALUES], last = p->inputs + (int)p->chain.count - 1;
    writer w = { .inputs = p->inputs + 2 };

    *back = (cek__part){ .kind = CEK__PART_CHAIN };
    flow[0] = dy;
    memcpy(flow + 1, p->input, (size_t)p->inputs * sizeof *flow);
    flow[p->inputs + 1] = p->output[0];
    for (int v = 0; v < VALUES; v++) {
        w.adjoint[v] = NONE;
        value[v] = v + 1;
    }
    for (int v = p->inputs; v < last; v++) { /* forward; the last is at hand */
        const cek_pointwise_instruction *in = &p->chain.code[v - p->inputs];

        if (in->code > CEK_PW_EQUAL)
            CEK_FAIL(CEK_UNSUPPORTED, "instruction %u has no derivative, nor what is made of it", in->code);
        value[v] = write(&w, in->code, value[in->a], value[in->b], in->imm);
    }
    value[last] = p->chain.count ? p->inputs + 1 : last + 1;
    w.adjoint[last] = 0;
    for (int v = last; v >= p->inputs; v--)
        if (w.adjoint[v] != NONE)
            CEK_TRY(instruction_back(&w, &p->chain.code[v - p->inputs], value, value[v], w.adjoint[v]));
    if (w.full)
        CEK_FAIL(CEK_UNSUPPORTED, "its derivative takes too many instructions");
    return w.adjoint[n] == NONE ? CEK_OK : extract(&w, w.adjoint[n], flow, back);
out:
    return st;
}
