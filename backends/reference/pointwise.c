/* SPDX-License-Identifier: MIT
 *
 * pointwise.c - chains of instructions over strided tensors.
 *
 * Values are f32 where the result is not f64, so each instruction is computed in double and rounded
 * to f32: what a machine that computes in f32 gets at best. Comparisons then come out as they do
 * there.
 */
#include "backends/reference/activation.h"
#include "backends/reference/element.h"
#include "backends/reference/reference.h"

static double smaller(double a, double b)
{
    return isnan(a) ? a : isnan(b) ? b : a < b ? a : b;
}

static double larger(double a, double b)
{
    return isnan(a) ? a : isnan(b) ? b : a > b ? a : b;
}

static double evaluate(const cek_pointwise_instruction *at, double a, double b, double c, double imm)
{
    switch (at->code) {
    case CEK_PW_CONST: return imm;
    case CEK_PW_COPY: return a;
    case CEK_PW_ADD: return a + b;
    case CEK_PW_SUB: return a - b;
    case CEK_PW_MUL: return a * b;
    case CEK_PW_DIV: return a / b;
    case CEK_PW_MIN: return smaller(a, b);
    case CEK_PW_MAX: return larger(a, b);
    case CEK_PW_NEG: return -a;
    case CEK_PW_ABS: return fabs(a);
    case CEK_PW_SQRT: return sqrt(a);
    case CEK_PW_EXP: return exp(a);
    case CEK_PW_LOG: return log(a);
    case CEK_PW_ADD_IMM: return a + imm;
    case CEK_PW_MUL_IMM: return a * imm;
    case CEK_PW_RELU: return activate(CEK_ACT_RELU, a);
    case CEK_PW_TANH: return activate(CEK_ACT_TANH, a);
    case CEK_PW_SIGMOID: return activate(CEK_ACT_SIGMOID, a);
    case CEK_PW_GELU: return activate(CEK_ACT_GELU, a);
    case CEK_PW_RELU_GRAD: return activate_backward(CEK_ACT_RELU, a, b);
    case CEK_PW_TANH_GRAD: return activate_backward(CEK_ACT_TANH, a, b);
    case CEK_PW_SIGMOID_GRAD: return activate_backward(CEK_ACT_SIGMOID, a, b);
    case CEK_PW_GELU_GRAD: return activate_backward(CEK_ACT_GELU, a, b);
    case CEK_PW_LESS: return a < b;
    case CEK_PW_EQUAL: return a == b;
    case CEK_PW_SELECT: return a != 0 ? b : c;
    case CEK_PW_POW: return pow(a, b);
    case CEK_PW_ERF: return erf(a);
    case CEK_PW_LOG1P: return log1p(a);
    case CEK_PW_EXPM1: return expm1(a);
    case CEK_PW_FLOOR: return floor(a);
    case CEK_PW_SIGN: return a > 0 ? 1 : a < 0 ? -1 : a;
    case CEK_PW_SIN: return sin(a);
    default: return cos(a); /* CEK_PW_COS */
    }
}

void cek__reference_pointwise(const cek_op *op, cek_queue *queue, void *const *at, void *workspace)
{
    const cek_pointwise_desc *desc = &op->request.desc.pointwise;
    bool wide = desc->out_type == CEK_F64, add = cek__request_accumulates(&op->request, CEK_POINTWISE_OUT);
    double values[CEK_POINTWISE_INPUTS + CEK_POINTWISE_INSTRUCTIONS];
    uint64_t index[CEK_RANK_MAX] = { 0 };
    const cek_batch_block *batch = at[CEK_POINTWISE_BATCH];
    (void)queue, (void)workspace;
    do {
        uint32_t count = 0;
        for (uint32_t i = 0; i < desc->input_count; i++, count++) {
            double x = load(at[i], desc->inputs[i].type, index_place(index, desc->inputs[i].strides, desc->rank));
            values[count] = wide ? x : (double)(float)x;
        }
        for (uint32_t i = 0; i < desc->instruction_count; i++, count++) {
            const cek_pointwise_instruction *instruction = &desc->instructions[i];
            double imm = wide ? instruction->imm : (double)(float)instruction->imm;
            double x = instruction->code == CEK_PW_VALID
                           ? !batch || index[0] / desc->rows_per_sample < batch->rows_valid
                           : evaluate(instruction, values[instruction->a], values[instruction->b],
                                      values[instruction->c], imm);
            values[count] = wide ? x : (double)(float)x;
        }
        store_or_add(at[CEK_POINTWISE_OUT], desc->out_type, index_place(index, desc->out_strides, desc->rank),
                     values[count - 1], add);
    } while (index_next(index, desc->shape, desc->rank));
}
