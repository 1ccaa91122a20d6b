/* pointwise.c - cases and oracle of instruction chains.
 *
 * Text: SHAPE/PROGRAM, the program in reverse Polish notation with commas: x0 to x7 inputs, v0...
 * results of instructions, a number = a constant, add_imm=2.5, and the instructions' names in lower
 * case. Then :x1=u8 (another type), :x1~LAYOUT (see spec_layout), :x0+ (positive values), :y=TYPE,
 * :y~LAYOUT, :acc, :inN (the output is input N), :perN (rows_per_sample, for valid), :validN (BATCH, with so many
 * valid samples). */
#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "spec/problem.h"

/* clang-format off */
#define FILLS (SPEC_F_ALL | SPEC_F(EDGE))
/* All pairs of edges, then patterns of bits at random. */
#define EDGES(program) REQUIRED("15000/" program, SPEC_F(EDGE))
#define SWEEP(program) REQUIRED("20001/" program, SPEC_F(EDGE))
#define REQUIRED(text_, fills_) { .text = text_, .types = SPEC_T_ALL, .fills = fills_ }
#define F32(text_, fills_) { .text = text_, .types = SPEC_T_F32, .fills = fills_ }
#define OPTIONAL(text_, fills_) { .text = text_, .types = SPEC_T_F32, .fills = fills_, .optional = true }
static const spec_case pointwise_cases[] = {
    REQUIRED("1/x0,x1,add", FILLS),
    REQUIRED("37/x0,copy", FILLS),
    REQUIRED("37/x0", FILLS),                                /* no instruction: the last input */
    REQUIRED("1000/2.5,const", SPEC_F(WHOLE)),
    REQUIRED("37/x0,x1,add", FILLS),
    REQUIRED("37/x0,x1,sub", FILLS),
    REQUIRED("37/x0,x1,mul", FILLS),
    REQUIRED("37/x0,x1,div:x1+", FILLS),
    REQUIRED("37/x0,x1,div", SPEC_F(WHOLE)),                 /* division by zero */
    REQUIRED("37/x0,x1,min", FILLS),
    REQUIRED("37/x0,x1,max", FILLS),
    REQUIRED("37/x1,x0,min", SPEC_F(NAN)),
    REQUIRED("37/x1,x0,max", SPEC_F(NAN)),
    REQUIRED("37/x0,neg", FILLS),
    REQUIRED("37/x0,abs", FILLS),
    REQUIRED("37/x0,sqrt:x0+", FILLS),
    REQUIRED("37/x0,sqrt", SPEC_F(WHOLE)),                   /* of negative numbers: NaN */
    REQUIRED("37/x0,exp", FILLS),
    REQUIRED("37/x0,log:x0+", FILLS),
    REQUIRED("37/x0,log", SPEC_F(WHOLE)),                    /* of 0: -inf; of negative numbers: NaN */
    REQUIRED("37/x0,add_imm=2.5", FILLS),
    REQUIRED("37/x0,mul_imm=-0.5", FILLS),
    REQUIRED("37/x0,mul_imm=0.1,add_imm=0.3", SPEC_F_BOTH),  /* more bits than f32 has */
    REQUIRED("37/x0,relu", FILLS),
    REQUIRED("37/x0,tanh", FILLS),
    REQUIRED("37/x0,sigmoid", FILLS),
    REQUIRED("37/x0,gelu", FILLS),
    REQUIRED("37/x0,x1,relu_grad", FILLS),
    REQUIRED("37/x0,x1,tanh_grad", FILLS),
    REQUIRED("37/x0,x1,sigmoid_grad", FILLS),
    REQUIRED("37/x0,x1,gelu_grad", FILLS),
    REQUIRED("37/x0,x1,less", FILLS),
    REQUIRED("37/x0,x1,equal", FILLS),
    REQUIRED("37/x1,x0,relu_grad", SPEC_F(NAN)),             /* a NaN output passes the gradient on */
    REQUIRED("70000/x0,x1,add,relu", SPEC_F_BOTH),           /* more than one block */
    REQUIRED("5x7/x0,x1,add:x1~0", FILLS),              /* a bias */
    REQUIRED("5x7/x0,x1,add:x1~1", SPEC_F_BOTH),
    REQUIRED("5x7/x0,x1,mul:x1~01", SPEC_F_BOTH),            /* a scalar */
    REQUIRED("5x7/x0,x1,sub:x0~^", SPEC_F_BOTH),
    REQUIRED("5x7/x0,x1,sub:y~^", SPEC_F_BOTH),
    REQUIRED("5x7/x0,x1,sub:y~_", SPEC_F_BOTH),              /* what lies between stays */
    REQUIRED("5x7/x0,neg:x0~_", SPEC_F_BOTH),
    REQUIRED("2x3x4x5/x0,x1,mul,x2,add:x1~02:x2~13", SPEC_F_BOTH),
    REQUIRED("2x3x2x2x3x2x2x3/x0,x1,add:x1~0246:x0~^", SPEC_F_BOTH),
    REQUIRED("11x13/x0,x1,add:acc", SPEC_F_BOTH),
    REQUIRED("11x13/x0,x1,add:y~_:acc", SPEC_F_BOTH),
    REQUIRED("43/x0,relu:in0", FILLS),
    REQUIRED("43/x0,x1,add:in1", SPEC_F_BOTH),
    REQUIRED("6x7/x0,x1,add:in0:x1~0", SPEC_F_BOTH),
    REQUIRED("43/x0,x1,sub,x2,add,x3,mul,x4,sub,x5,add,x6,max,x7,min", SPEC_F_BOTH),          /* all inputs */
    /* of unlike strides */
    REQUIRED("5x7/x0,x1,sub,x2,add,x3,mul,x4,sub,x5,add,x6,max,x7,min:x1~1:x5~0:x6~^:x7~0", SPEC_F_BOTH),
    /* all instructions */
    REQUIRED("43/x0,neg,neg,neg,neg,neg,neg,neg,neg,neg,neg,neg,neg,neg,neg,neg,neg", SPEC_F_BOTH),
    REQUIRED("43/x0,x1,sub,v0,v0,mul,v1,abs,sqrt", SPEC_F_BOTH), /* an earlier result twice */
    REQUIRED("43/x0,x1,less,x0,mul,1,const,x0,x1,less,sub,x1,mul,add", FILLS),
    REQUIRED("101/x0,x1,add:det", SPEC_F(REAL)),
    REQUIRED("37/x0,x1,x2,select", FILLS),
    REQUIRED("37/x1,x0,x2,select", SPEC_F(NAN)),             /* what is not selected may be NaN */
    REQUIRED("5x7/x0,x1,x2,select:x0~0:x2~01", SPEC_F_BOTH),
    REQUIRED("37/x0,x1,pow:x0+", FILLS),
    REQUIRED("37/x0,x1,pow", SPEC_F(WHOLE)),                 /* whole powers of negative numbers, 0 to the power of 0 */
    REQUIRED("37/x1,x0,pow", SPEC_F(NAN)),
    REQUIRED("37/x0,erf", FILLS),
    REQUIRED("37/x0,log1p:x0+", FILLS),
    REQUIRED("37/x0,log1p", SPEC_F(WHOLE)),                  /* of -1: -inf; of less: NaN */
    REQUIRED("37/x0,expm1", FILLS),
    REQUIRED("37/x0,mul_imm=2.25,floor", FILLS),
    REQUIRED("37/x0,sign", FILLS),
    REQUIRED("37/x0,sin", FILLS),
    REQUIRED("37/x0,cos", FILLS),
    REQUIRED("43/x0,exp,erf,log1p,expm1,sin,cos", SPEC_F_BOTH), /* errors that add up */
    REQUIRED("43/x0,abs,add_imm=1,x1,pow", SPEC_F_BOTH),
    REQUIRED("7x5/valid,x0,x1,select:per1:valid3", FILLS),   /* a NaN in padding is selected out */
    REQUIRED("7x5/valid,x0,mul,x1,add:per2:valid2", SPEC_F_BOTH), /* half a sample at the end */
    REQUIRED("6x4x3/valid,x0,0,const,select:per2:valid0", FILLS),
    REQUIRED("6x4x3/valid,x0,0,const,select:per2:valid3", SPEC_F_BOTH),
    REQUIRED("6x4x3/valid,x0,0,const,select:per3", SPEC_F_BOTH), /* without BATCH all count */
    REQUIRED("6x4x3/valid,x0,x1,mul,x2,sub,0,const,select:per3:valid2", SPEC_F_BOTH), /* and here with it */
    REQUIRED("6x4x3/valid,x0,x1,mul,x2,sub,0,const,select:per3:valid1", SPEC_F_BOTH),
    REQUIRED("6x4x3/valid,x0,valid,add,0,const,select:per3:valid2:acc", SPEC_F_BOTH),
    REQUIRED("6x4x3/valid,x0,0,const,select:per9:valid1", SPEC_F_BOTH), /* a sample longer than the tensor */
    REQUIRED("5x7/valid,x0,x1,select:per1:valid2:x0~^:x1~0:y~_", SPEC_F_BOTH),
    REQUIRED("5x7/valid,x0,x1,select:per1:valid2:y~^:acc", SPEC_F_BOTH),
    REQUIRED("301x300/valid,x0,x1,select:per3:valid40:in1", SPEC_F(WHOLE)),
    REQUIRED("1000/valid:per7:valid100", SPEC_F(WHOLE)),     /* no input */
    REQUIRED("5x7/valid,x0,0,const,select:per2147483648:valid2", SPEC_F_BOTH), /* rows beyond 32 bits count */
    REQUIRED("1x12/valid,x0,0,const,select:per1:valid0", SPEC_F(WHOLE)),
    REQUIRED("9x8/x0,x1,add,x2,add,x3,add,x4,add,x5,add,x6,add,x7,add,valid,mul:per4:valid2", SPEC_F_BOTH),
    EDGES("x0,copy"), EDGES("x0,x1,add"), EDGES("x0,x1,sub"), EDGES("x0,x1,mul"), EDGES("x0,x1,div"),
    EDGES("x0,x1,min"), EDGES("x0,x1,max"), EDGES("x0,neg"), EDGES("x0,abs"), EDGES("x0,add_imm=2.5"),
    EDGES("x0,mul_imm=-0.5"), EDGES("x0,relu"), EDGES("x0,x1,less"), EDGES("x0,x1,equal"), EDGES("x0,x1,add:acc"),
    SWEEP("x0,sqrt"), SWEEP("x0,exp"), SWEEP("x0,log"), SWEEP("x0,tanh"), SWEEP("x0,sigmoid"), SWEEP("x0,gelu"),
    SWEEP("x0,x1,relu_grad"), SWEEP("x0,x1,tanh_grad"), SWEEP("x0,x1,sigmoid_grad"), SWEEP("x0,x1,gelu_grad"),
    SWEEP("1,const,x0,gelu_grad"), /* the derivative itself */
    EDGES("x0,x1,x0,select"), EDGES("x0,x1,pow"), SWEEP("x0,erf"), SWEEP("x0,log1p"), SWEEP("x0,expm1"),
    SWEEP("x0,floor"), SWEEP("x0,sign"), SWEEP("x0,sin"), SWEEP("x0,cos"),
    F32("97/x0,x1,add:align4", SPEC_F_BOTH),
    F32("300x3/x0,x1,mul:x1~0:align4", SPEC_F_BOTH),
    F32("300/x0,mul_imm=0.00784313725490196,add_imm=-1:x0=u8", SPEC_F(WHOLE)), /* pixels to [-1, 1] */
    F32("20x28x28x1/x0,x1,sub,x2,mul:x0=u8:x1~012:x2~012", SPEC_F_BOTH),
    F32("300/x0,copy:x0=i32", SPEC_F(WHOLE)),
    F32("300/x0:x0=u8", SPEC_F(WHOLE)),
    F32("37/x0,x1,equal:x0=i32:x1=u8", SPEC_F(WHOLE)),
    OPTIONAL("300/x0,mul_imm=1.5:x0=u8:y=u8", SPEC_F(WHOLE)),      /* ties and saturation */
    OPTIONAL("300/x0,mul_imm=100.25:y=u8", FILLS),
    OPTIONAL("300/x0,mul_imm=2147483648:y=i32", FILLS),
    OPTIONAL("300/x0,mul_imm=1.5:x0=i32:y=i32", SPEC_F(WHOLE)),
    OPTIONAL("300/x0,copy:y=bf16", FILLS),
    OPTIONAL("300/x0,copy:x0=bf16", FILLS),
    OPTIONAL("97x5/x0,x1,mul,x2,add:x0=bf16:align2", SPEC_F_BOTH), /* few bits at odd places, many at theirs */
    OPTIONAL("97x5/x0,x1,mul:x1=f16:y=f16:align2", SPEC_F_BOTH),
    OPTIONAL("300/x0,mul_imm=100000:y=f16", FILLS),           /* overflow to infinity */
};
/* clang-format on */

static const char *const instruction_names[] = {
    [CEK_PW_CONST] = "const",
    [CEK_PW_COPY] = "copy",
    [CEK_PW_ADD] = "add",
    [CEK_PW_SUB] = "sub",
    [CEK_PW_MUL] = "mul",
    [CEK_PW_DIV] = "div",
    [CEK_PW_MIN] = "min",
    [CEK_PW_MAX] = "max",
    [CEK_PW_NEG] = "neg",
    [CEK_PW_ABS] = "abs",
    [CEK_PW_SQRT] = "sqrt",
    [CEK_PW_EXP] = "exp",
    [CEK_PW_LOG] = "log",
    [CEK_PW_ADD_IMM] = "add_imm",
    [CEK_PW_MUL_IMM] = "mul_imm",
    [CEK_PW_RELU] = "relu",
    [CEK_PW_TANH] = "tanh",
    [CEK_PW_SIGMOID] = "sigmoid",
    [CEK_PW_GELU] = "gelu",
    [CEK_PW_RELU_GRAD] = "relu_grad",
    [CEK_PW_TANH_GRAD] = "tanh_grad",
    [CEK_PW_SIGMOID_GRAD] = "sigmoid_grad",
    [CEK_PW_GELU_GRAD] = "gelu_grad",
    [CEK_PW_LESS] = "less",
    [CEK_PW_EQUAL] = "equal",
    [CEK_PW_SELECT] = "select",
    [CEK_PW_POW] = "pow",
    [CEK_PW_ERF] = "erf",
    [CEK_PW_LOG1P] = "log1p",
    [CEK_PW_EXPM1] = "expm1",
    [CEK_PW_FLOOR] = "floor",
    [CEK_PW_SIGN] = "sign",
    [CEK_PW_SIN] = "sin",
    [CEK_PW_COS] = "cos",
    [CEK_PW_VALID] = "valid",
};

/* How many values an instruction reads. */
static uint32_t reads(uint32_t code)
{
    if (code == CEK_PW_SELECT)
        return 3;
    if (code == CEK_PW_CONST || code == CEK_PW_VALID)
        return 0;
    const bool two = (code >= CEK_PW_ADD && code <= CEK_PW_MAX) || (code >= CEK_PW_RELU_GRAD && code <= CEK_PW_EQUAL);
    return two || code == CEK_PW_POW ? 2 : 1;
}

/* Results of instructions are numbered behind the inputs, of which the number is known only at the
 * end. */
enum { RESULT = 1000, STACK_MAX = 32 };

static bool program_token(spec_problem *p, const char *word, uint32_t *stack, uint32_t *depth, double *constant)
{
    cek_pointwise_desc *d = &p->desc.pointwise;
    uint64_t n;
    if (*depth == STACK_MAX)
        return spec_fail(p, "pointwise: program too deep");
    if (spec_modifier_number(word, "x", &n) && n < CEK_POINTWISE_INPUTS) {
        stack[(*depth)++] = (uint32_t)n;
        if (n >= d->input_count)
            d->input_count = (uint32_t)n + 1;
        return true;
    }
    if (spec_modifier_number(word, "v", &n) && n < d->instruction_count) {
        stack[(*depth)++] = RESULT + (uint32_t)n;
        return true;
    }
    if (isdigit((unsigned char)*word)) {
        *constant = strtod(word, NULL);
        return true;
    }
    size_t length = strcspn(word, "=");
    for (uint32_t code = CEK_PW_CONST; code <= CEK_PW_VALID; code++) {
        if (strncmp(instruction_names[code], word, length) || instruction_names[code][length])
            continue;
        uint32_t needs = reads(code);
        if (*depth < needs || d->instruction_count == CEK_POINTWISE_INSTRUCTIONS)
            break;
        cek_pointwise_instruction *in = &p->instructions[d->instruction_count];
        *in = (cek_pointwise_instruction){ .code = code, .imm = word[length] ? strtod(word + length + 1, NULL) : 0 };
        if (code == CEK_PW_CONST)
            in->imm = *constant;
        uint32_t *const values[] = { &in->a, &in->b, &in->c };
        while (needs)
            *values[--needs] = stack[--*depth];
        stack[(*depth)++] = RESULT + d->instruction_count++;
        return true;
    }
    return spec_fail(p, "pointwise: \"%s\" does not belong here", word);
}

static bool program_read(spec_problem *p, const char **cursor)
{
    cek_pointwise_desc *d = &p->desc.pointwise;
    uint32_t stack[STACK_MAX], depth = 0;
    double constant = 0;
    do {
        char word[32] = "";
        size_t length = strcspn(++*cursor, ",:");
        memcpy(word, *cursor, length < sizeof word ? length : sizeof word - 1);
        *cursor += length;
        if (!program_token(p, word, stack, &depth, &constant))
            return false;
    } while (**cursor == ',');
    for (uint32_t i = 0; i < d->instruction_count; i++) {
        cek_pointwise_instruction *in = &p->instructions[i];
        in->a = in->a >= RESULT ? in->a - RESULT + d->input_count : in->a;
        in->b = in->b >= RESULT ? in->b - RESULT + d->input_count : in->b;
        in->c = in->c >= RESULT ? in->c - RESULT + d->input_count : in->c;
    }
    return true;
}

/* What a modifier says of an input or of the output, "x1=u8", "y~^", "x0+". */
static bool layout_read(spec_problem *p, const char *word, bool *positive)
{
    cek_pointwise_desc *d = &p->desc.pointwise;
    bool output = word[0] == 'y';
    uint32_t n = output ? 0 : (uint32_t)(word[1] - '0');
    const char *what = word + (output ? 1 : 2);
    if ((!output && word[0] != 'x') || (!output && n >= d->input_count))
        return false;
    int64_t *strides = output ? d->out_strides : p->inputs[n].strides;
    cek_dtype *type = output ? &d->out_type : &p->inputs[n].type;
    switch (*what) {
    case '=': return (*type = spec_type_parse(what + 1, strlen(what + 1))) != CEK_DTYPE_NONE;
    case '~': return spec_layout(what + 1, d->rank, d->shape, strides);
    case '+': return !output && (positive[n] = true);
    default: return false;
    }
}

/* Of zeros with different signs, either is the smaller. */
static spec_num extreme(spec_num a, spec_num b, long double v)
{
    if (isnan(a.v) || isnan(b.v))
        return spec_exact(NAN);
    bool either = v == 0 && signbit(a.v) != signbit(b.v);
    return (spec_num){ v, either ? DBL_TRUE_MIN : fmaxl(a.e, b.e) };
}

/* The input of which an element is what an activation put out. */
static cek_activation output_of(const cek_pointwise_desc *d, uint32_t input)
{
    for (uint32_t i = 0; i < d->instruction_count; i++) {
        const cek_pointwise_instruction *in = &d->instructions[i];
        if (in->b == input && (in->code == CEK_PW_TANH_GRAD || in->code == CEK_PW_SIGMOID_GRAD))
            return in->code == CEK_PW_TANH_GRAD ? CEK_ACT_TANH : CEK_ACT_SIGMOID;
    }
    return CEK_ACT_NONE;
}

static spec_num evaluate(cek_dtype type, const cek_pointwise_instruction *in, const spec_num *v)
{
    spec_num a = v[in->a], b = v[in->b], imm = spec_exact(spec_round(in->imm, spec_plain(type)));
    switch (in->code) {
    case CEK_PW_CONST: return imm;
    case CEK_PW_COPY: return a;
    case CEK_PW_ADD: return spec_add(type, a, b);
    case CEK_PW_SUB: return spec_sub(type, a, b);
    case CEK_PW_MUL: return spec_mul(type, a, b);
    case CEK_PW_DIV: return spec_div(type, a, b);
    case CEK_PW_MIN: return extreme(a, b, fminl(a.v, b.v));
    case CEK_PW_MAX: return extreme(a, b, fmaxl(a.v, b.v));
    case CEK_PW_NEG: return (spec_num){ -a.v, a.e };
    case CEK_PW_ABS: return (spec_num){ fabsl(a.v), a.e };
    case CEK_PW_SQRT: return spec_sqrt(type, a);
    case CEK_PW_EXP: return spec_exp(type, a);
    case CEK_PW_LOG: return spec_log(type, a);
    case CEK_PW_ADD_IMM: return spec_add(type, a, imm);
    case CEK_PW_MUL_IMM: return spec_mul(type, a, imm);
    case CEK_PW_RELU: return spec_activation(type, CEK_ACT_RELU, a);
    case CEK_PW_TANH: return spec_activation(type, CEK_ACT_TANH, a);
    case CEK_PW_SIGMOID: return spec_activation(type, CEK_ACT_SIGMOID, a);
    case CEK_PW_GELU: return spec_activation(type, CEK_ACT_GELU, a);
    case CEK_PW_RELU_GRAD: return spec_act_grad(type, CEK_ACT_RELU, a, b);
    case CEK_PW_TANH_GRAD: return spec_act_grad(type, CEK_ACT_TANH, a, b);
    case CEK_PW_SIGMOID_GRAD: return spec_act_grad(type, CEK_ACT_SIGMOID, a, b);
    case CEK_PW_GELU_GRAD: return spec_act_grad(type, CEK_ACT_GELU, a, b);
    case CEK_PW_LESS: return spec_exact(a.v < b.v);
    case CEK_PW_EQUAL: return spec_exact(a.v == b.v);
    case CEK_PW_SELECT: return a.e > 0 && fabsl(a.v) <= a.e ? (spec_num){ 0, INFINITY } : a.v != 0 ? b : v[in->c];
    case CEK_PW_POW: return spec_pow(type, a, b);
    case CEK_PW_ERF: return spec_erf(type, a);
    case CEK_PW_LOG1P: return spec_log1p(type, a);
    case CEK_PW_EXPM1: return spec_expm1(type, a);
    case CEK_PW_FLOOR: return spec_floor(a);
    case CEK_PW_SIGN: return spec_sign(a);
    case CEK_PW_SIN: return spec_sin(type, a);
    default: return spec_cos(type, a); /* CEK_PW_COS */
    }
}

/* What overflows is infinite for the instructions behind. */
static spec_num overflowed(cek_dtype type, spec_num a)
{
    return isinf(spec_round(a.v, type)) && isinf(spec_round(fabsl(a.v) - a.e, type)) ? spec_exact(a.v * INFINITY) : a;
}

/* `valid`: samples, the first of them, that count. */
static void pointwise_expect(spec_problem *p, spec_operand *const *inputs, spec_operand *out, uint64_t valid)
{
    cek_pointwise_desc *d = &p->desc.pointwise;
    cek_dtype type = spec_sum_type(d->out_type), arithmetic = spec_arithmetic(p, d->out_type);
    uint64_t count = 1;
    for (uint32_t i = 0; i < d->rank; i++)
        count *= d->shape[i];
    for (uint64_t n = 0; n < count; n++) {
        spec_num v[CEK_POINTWISE_INPUTS + CEK_POINTWISE_INSTRUCTIONS] = { 0 };
        for (uint32_t i = 0; i < d->input_count; i++) {
            double x = inputs[i]->value[spec_offset(d->rank, d->shape, p->inputs[i].strides, n)];
            v[i] = spec_exact(spec_round(x, type));
        }
        const uint64_t row = n / (count / d->shape[0]);
        for (uint32_t i = 0; i < d->instruction_count; i++)
            v[d->input_count + i] = p->instructions[i].code == CEK_PW_VALID
                                        ? spec_exact(row / d->rows_per_sample < valid)
                                        : overflowed(type, evaluate(arithmetic, &p->instructions[i], v));
        uint64_t at = spec_offset(d->rank, d->shape, d->out_strides, n);
        spec_operand_expect(out, at, v[d->input_count + d->instruction_count - 1], arithmetic);
        out->written[at] = 1;
    }
}

static bool pointwise_read(const char *text, spec_problem *p, bool *acc, uint64_t *in_place, uint64_t *valid,
                           bool *positive)
{
    cek_pointwise_desc *d = &p->desc.pointwise;
    const char *rest = text;
    char word[64];
    if (!(d->rank = spec_shape_read(&rest, d->shape)) || *rest != '/')
        return spec_fail(p, "%s: not SHAPE/PROGRAM", text);
    if (!program_read(p, &rest))
        return false;
    d->out_type = p->type;
    spec_strides(d->rank, d->shape, d->out_strides);
    for (uint32_t i = 0; i < d->input_count; i++) {
        p->inputs[i].type = p->type;
        spec_strides(d->rank, d->shape, p->inputs[i].strides);
    }
    while (spec_modifier(&rest, word, sizeof word)) {
        if (!strcmp(word, "acc"))
            *acc = true;
        else if (!spec_modifier_number(word, "in", in_place) && !layout_read(p, word, positive) &&
                 !spec_modifier_number(word, "per", &d->rows_per_sample) &&
                 !spec_modifier_number(word, "valid", valid) && !spec_modifier_common(p, word))
            return spec_fail(p, "pointwise: unknown modifier \"%s\"", word);
    }
    d->inputs = p->inputs, d->input_size = sizeof *p->inputs;
    d->instructions = p->instructions, d->instruction_size = sizeof *p->instructions;
    return true;
}

static bool pointwise_build(const char *text, spec_problem *p)
{
    cek_pointwise_desc *d = &p->desc.pointwise;
    spec_operand *inputs[CEK_POINTWISE_INPUTS];
    bool acc = false, positive[CEK_POINTWISE_INPUTS] = { false };
    uint64_t in_place = CEK_POINTWISE_INPUTS, valid = UINT64_MAX;
    if (!pointwise_read(text, p, &acc, &in_place, &valid, positive))
        return false;
    for (uint32_t i = 0; i < d->input_count; i++) {
        inputs[i] = spec_operand_add(p, i, p->inputs[i].type, spec_extent(d->rank, d->shape, p->inputs[i].strides));
        if (!inputs[i])
            return false;
        if (p->fill == SPEC_EDGE && inputs[i]->type != CEK_U8 && inputs[i]->type != CEK_I32) {
            uint64_t all = spec_edge_count();
            uint64_t step = inputs[i]->count < all * all ? 0 : i == 0 ? 1 : all;
            spec_operand_edges(p, inputs[i], step, output_of(d, i));
            continue;
        }
        int high = inputs[i]->type == CEK_U8 ? 255 : inputs[i]->type == CEK_I32 ? 100000 : positive[i] ? 8 : 3;
        spec_operand_fill(p, inputs[i], positive[i] ? 1 : inputs[i]->type == CEK_U8 ? 0 : -high, high, i == 0);
        for (uint64_t n = 0; positive[i] && n < inputs[i]->count; n++)
            inputs[i]->value[n] = spec_round(inputs[i]->value[n] + (p->fill == SPEC_REAL ? 0.125 : 0), inputs[i]->type);
    }
    uint64_t extent = spec_extent(d->rank, d->shape, d->out_strides);
    spec_operand *out = spec_operand_add(p, CEK_POINTWISE_OUT, d->out_type, extent);
    if (!out || !(out->written = spec_problem_alloc(p, extent, 1)))
        return false;
    out->zeros = d->out_type != CEK_U8 && d->out_type != CEK_I32;
    if (acc)
        spec_operand_accumulate(p, out);
    if (in_place < d->input_count)
        out->alias = 1 + (uint32_t)in_place;
    const cek_batch_block batch = { .rows_valid = (uint32_t)valid };
    if (valid != UINT64_MAX && !spec_operand_block(p, CEK_POINTWISE_BATCH, &batch, sizeof batch))
        return false;
    pointwise_expect(p, inputs, out, valid);
    return true;
}

const spec_kind spec_kind_pointwise = SPEC_KIND("pointwise", CEK_OP_POINTWISE, CEK_PROFILE_INFERENCE, "37/x0,x1,add",
                                                pointwise_cases, pointwise_build);
