/* chain.c - reverse mode over the instructions of a chain (see chain.h).
 *
 * Everything is written as if there were no limit: what the derivatives need of the forward values first, then, from
 * the last instruction to the first, what each adds to the derivatives of those it reads. cut.h makes parts of it. */
#include "nn/graph/chain.h"

#include <math.h>
#include <string.h>

#include "nn/graph/cut.h"

enum { VALUES = CEK__PART_INPUTS + CEK_POINTWISE_INSTRUCTIONS, NONE = -1 };

typedef struct writer {
    cek__code code;      /* its inputs: dy, x..., y in this order */
    int adjoint[VALUES]; /* by forward value: the value that is its derivative so far */
} writer;

static int write3(writer *w, uint32_t code, int a, int b, int c)
{
    return cek__code_add(
        &w->code, &(cek_pointwise_instruction){ .code = code, .a = (uint32_t)a, .b = (uint32_t)b, .c = (uint32_t)c });
}

static int write(writer *w, uint32_t code, int a, int b)
{
    return write3(w, code, a, b, 0);
}

static int write_imm(writer *w, uint32_t code, int a, double imm)
{
    return cek__code_add(&w->code, &(cek_pointwise_instruction){ .code = code, .a = (uint32_t)a, .imm = imm });
}

static void add(writer *w, int to, int derivative)
{
    int *adjoint = &w->adjoint[to];

    *adjoint = *adjoint == NONE ? derivative : write(w, CEK_PW_ADD, *adjoint, derivative);
}

/* Of the larger and the smaller of two the derivative goes to that one, to both by halves where they are equal. */
static void add_chosen(writer *w, int to, int self, int other, bool larger, int d)
{
    int wins = larger ? write(w, CEK_PW_LESS, other, self) : write(w, CEK_PW_LESS, self, other);
    int ties = write_imm(w, CEK_PW_MUL_IMM, write(w, CEK_PW_EQUAL, self, other), 0.5);

    add(w, to, write(w, CEK_PW_MUL, d, write(w, CEK_PW_ADD, wins, ties)));
}

/* Of a to the power of b: d b a^(b-1), 0 where b is; d v ln a, 0 where a is and b is not negative. */
static void add_power(writer *w, int a, int b, int va, int vb, int v, int d)
{
    int zero = write_imm(w, CEK_PW_CONST, 0, 0), below, log;

    below = write(w, CEK_PW_POW, va, write_imm(w, CEK_PW_ADD_IMM, vb, -1));
    add(w, a, write3(w, CEK_PW_SELECT, vb, write(w, CEK_PW_MUL, d, write(w, CEK_PW_MUL, vb, below)), zero));
    log = write(w, CEK_PW_MUL, d, write(w, CEK_PW_MUL, v, write(w, CEK_PW_LOG, va, 0)));
    below = write3(w, CEK_PW_SELECT, write(w, CEK_PW_LESS, vb, zero), log, zero);
    add(w, b, write3(w, CEK_PW_SELECT, va, log, below));
}

/* scale * exp(-x^2 / width) */
static int bell(writer *w, int x, double width, double scale)
{
    int exponent = write_imm(w, CEK_PW_MUL_IMM, write(w, CEK_PW_MUL, x, x), -1 / width);

    return write_imm(w, CEK_PW_MUL_IMM, write(w, CEK_PW_EXP, exponent, 0), scale);
}

/* d a, times what is still missing of the derivative of a product with a */
static void add_product(writer *w, int to, int d, int va, int rest)
{
    add(w, to, write(w, CEK_PW_MUL, write(w, CEK_PW_MUL, d, va), rest));
}

/* What instruction `in`, whose value is v and whose derivative d, adds to those of its operands a, b and
 * c, forward values. */
static cek_status instruction_back(writer *w, const cek_pointwise_instruction *in, const int *value, int v, int d)
{
    const double pi = acos(-1);
    int a = (int)in->a, b = (int)in->b, va = value[a], vb = value[b], zero;

    switch (in->code) {
    case CEK_PW_CONST:
    case CEK_PW_LESS:
    case CEK_PW_EQUAL:
    case CEK_PW_FLOOR:
    case CEK_PW_SIGN:
    case CEK_PW_VALID: return CEK_OK;
    case CEK_PW_COPY:
    case CEK_PW_ADD_IMM: add(w, a, d); return CEK_OK;
    case CEK_PW_ADD:
        add(w, a, d);
        add(w, b, d);
        return CEK_OK;
    case CEK_PW_SUB:
        add(w, a, d);
        add(w, b, write(w, CEK_PW_NEG, d, 0));
        return CEK_OK;
    case CEK_PW_MUL:
        add(w, a, write(w, CEK_PW_MUL, d, vb));
        add(w, b, write(w, CEK_PW_MUL, d, va));
        return CEK_OK;
    case CEK_PW_DIV:
        add(w, a, write(w, CEK_PW_DIV, d, vb));
        add(w, b, write(w, CEK_PW_NEG, write(w, CEK_PW_DIV, write(w, CEK_PW_MUL, d, v), vb), 0));
        return CEK_OK;
    case CEK_PW_MIN:
    case CEK_PW_MAX:
        add_chosen(w, a, va, vb, in->code == CEK_PW_MAX, d);
        add_chosen(w, b, vb, va, in->code == CEK_PW_MAX, d);
        return CEK_OK;
    case CEK_PW_SELECT:
        zero = write_imm(w, CEK_PW_CONST, 0, 0);
        add(w, b, write3(w, CEK_PW_SELECT, va, d, zero));
        add(w, (int)in->c, write3(w, CEK_PW_SELECT, va, zero, d));
        return CEK_OK;
    case CEK_PW_POW: add_power(w, a, b, va, vb, v, d); return CEK_OK;
    case CEK_PW_NEG: add(w, a, write(w, CEK_PW_NEG, d, 0)); return CEK_OK;
    case CEK_PW_ABS: add(w, a, write(w, CEK_PW_MUL, d, write(w, CEK_PW_SIGN, va, 0))); return CEK_OK;
    case CEK_PW_MUL_IMM: add(w, a, write_imm(w, CEK_PW_MUL_IMM, d, in->imm)); return CEK_OK;
    case CEK_PW_EXP: add(w, a, write(w, CEK_PW_MUL, d, v)); return CEK_OK;
    case CEK_PW_EXPM1: add(w, a, write(w, CEK_PW_MUL, d, write_imm(w, CEK_PW_ADD_IMM, v, 1))); return CEK_OK;
    case CEK_PW_LOG: add(w, a, write(w, CEK_PW_DIV, d, va)); return CEK_OK;
    case CEK_PW_LOG1P: add(w, a, write(w, CEK_PW_DIV, d, write_imm(w, CEK_PW_ADD_IMM, va, 1))); return CEK_OK;
    case CEK_PW_SQRT: add(w, a, write(w, CEK_PW_DIV, write_imm(w, CEK_PW_MUL_IMM, d, 0.5), v)); return CEK_OK;
    case CEK_PW_ERF: add(w, a, write(w, CEK_PW_MUL, d, bell(w, va, 1, 2 / sqrt(pi)))); return CEK_OK;
    case CEK_PW_SIN: add(w, a, write(w, CEK_PW_MUL, d, write(w, CEK_PW_COS, va, 0))); return CEK_OK;
    case CEK_PW_COS:
        add(w, a, write(w, CEK_PW_NEG, write(w, CEK_PW_MUL, d, write(w, CEK_PW_SIN, va, 0)), 0));
        return CEK_OK;
    case CEK_PW_RELU: add(w, a, write(w, CEK_PW_RELU_GRAD, d, v)); return CEK_OK;
    case CEK_PW_TANH: add(w, a, write(w, CEK_PW_TANH_GRAD, d, v)); return CEK_OK;
    case CEK_PW_SIGMOID: add(w, a, write(w, CEK_PW_SIGMOID_GRAD, d, v)); return CEK_OK;
    case CEK_PW_GELU: add(w, a, write(w, CEK_PW_GELU_GRAD, d, va)); return CEK_OK;
    case CEK_PW_RELU_GRAD: add(w, a, write(w, CEK_PW_RELU_GRAD, d, vb)); return CEK_OK;
    case CEK_PW_TANH_GRAD: /* a (1 - b^2) */
        add(w, a, write(w, CEK_PW_TANH_GRAD, d, vb));
        add_product(w, b, d, va, write_imm(w, CEK_PW_MUL_IMM, vb, -2));
        return CEK_OK;
    case CEK_PW_SIGMOID_GRAD: /* a b (1 - b) */
        add(w, a, write(w, CEK_PW_SIGMOID_GRAD, d, vb));
        add_product(w, b, d, va, write_imm(w, CEK_PW_ADD_IMM, write_imm(w, CEK_PW_MUL_IMM, vb, -2), 1));
        return CEK_OK;
    case CEK_PW_GELU_GRAD: /* a (Phi(b) + b phi(b)), whose derivative is a phi(b) (2 - b^2) */
        add(w, a, write(w, CEK_PW_GELU_GRAD, d, vb));
        zero = write_imm(w, CEK_PW_ADD_IMM, write(w, CEK_PW_NEG, write(w, CEK_PW_MUL, vb, vb), 0), 2);
        add_product(w, b, d, va, write(w, CEK_PW_MUL, zero, bell(w, vb, 2, 1 / sqrt(2 * pi))));
        return CEK_OK;
    default: return cek__fail(CEK_UNSUPPORTED, "instruction %u has no derivative", in->code);
    }
}

cek_status cek__chain_back(cek__graph *graph, const cek__part *p, int n, int dy, int *out)
{
    cek_status st;
    int value[VALUES], last = p->inputs + (int)p->chain.count - 1;
    writer w = { .code = { .inputs = p->inputs + 2, .dims = graph->flows[p->output[0]].dims } };

    *out = CEK__NOTHING;
    w.code.flow[0] = dy;
    memcpy(w.code.flow + 1, p->input, (size_t)p->inputs * sizeof *p->input);
    w.code.flow[p->inputs + 1] = p->output[0];
    for (int v = 0; v < VALUES; v++) {
        w.adjoint[v] = NONE;
        value[v] = v + 1;
    }
    for (int v = p->inputs; v < last; v++) { /* forward; the last is at hand */
        cek_pointwise_instruction in = p->chain.code[v - p->inputs];

        in.a = (uint32_t)value[in.a];
        in.b = (uint32_t)value[in.b];
        in.c = (uint32_t)value[in.c];
        value[v] = cek__code_add(&w.code, &in);
    }
    value[last] = p->chain.count ? p->inputs + 1 : last + 1;
    w.adjoint[last] = 0;
    for (int v = last; v >= p->inputs; v--)
        if (w.adjoint[v] != NONE)
            CEK_TRY(instruction_back(&w, &p->chain.code[v - p->inputs], value, value[v], w.adjoint[v]));
    return w.adjoint[n] == NONE ? CEK_OK : cek__code_cut(graph, &w.code, w.adjoint[n], out);
out:
    return st;
}

void cek__chain_leave_out(cek__part *chain)
{
    const uint32_t at = (uint32_t)chain->inputs, count = chain->chain.count;
    cek_pointwise_instruction *code = chain->chain.code + count;

    code[0] = (cek_pointwise_instruction){ .code = CEK_PW_VALID };
    code[1] = (cek_pointwise_instruction){ .code = CEK_PW_CONST };
    code[2] =
        (cek_pointwise_instruction){ .code = CEK_PW_SELECT, .a = at + count, .b = at + count - 1, .c = at + count + 1 };
    chain->chain.count += 3;
}
