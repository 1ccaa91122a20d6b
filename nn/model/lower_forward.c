/* lower_forward.c - the ops of a forward pass.
 *
 * An activation that a stage carries is asked of the op's epilogue; a device that answers UNSUPPORTED gets a pointwise
 * operation behind the plain op, which then works in place. */
#include <stdio.h>

#include "core/base/alloc.h"
#include "nn/model/lower.h"

/* The code that computes an activation. */
static uint32_t activation_code(cek_activation activation)
{
    static const uint32_t codes[] = {
        [CEK_ACT_NONE] = CEK_PW_COPY,       [CEK_ACT_RELU] = CEK_PW_RELU, [CEK_ACT_TANH] = CEK_PW_TANH,
        [CEK_ACT_SIGMOID] = CEK_PW_SIGMOID, [CEK_ACT_GELU] = CEK_PW_GELU,
    };

    return codes[activation];
}

/* The value of a tensor: the last one of a prediction is the binder's. */
static cek_status output_value(cek__lowering *l, int tensor)
{
    bool is_result = tensor == l->stages->output && l->options->loss == 0 && !l->options->softmax;
    int64_t elements = l->stages->tensor[tensor].elements;
    cek_status st = cek__lower_value(l, elements, &l->tensor[tensor].value);

    if (st == CEK_OK && is_result)
        l->program->values[l->tensor[tensor].value].place = CEK__PLACE_OUTPUT;
    return st;
}

/* ---- input ---- */

/* x * scale + offset in the layout's type. */
static cek_status convert(cek__lowering *l, int from, int to)
{
    cek_pointwise_input input = { .type = l->options->input_type, .strides = { 1 } };
    cek_pointwise_instruction code[2];
    uint32_t count = 0;
    cek_pointwise_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_POINTWISE },
        .rank = 1,
        .out_type = l->layout->type,
        .shape = { (uint64_t)l->options->rows * (uint64_t)l->stages->tensor[0].elements },
        .out_strides = { 1 },
        .inputs = &input,
        .instructions = code,
        .input_count = 1,
        .input_size = sizeof input,
        .instruction_size = sizeof *code,
    };

    if (l->model->scale != 1)
        code[count++] = (cek_pointwise_instruction){ .code = CEK_PW_MUL_IMM, .imm = l->model->scale };
    if (l->model->offset != 0 || count == 0) {
        code[count] = (cek_pointwise_instruction){ .code = CEK_PW_ADD_IMM, .a = count, .imm = l->model->offset };
        if (l->model->offset == 0)
            code[count].code = CEK_PW_COPY;
        count++;
    }
    desc.instruction_count = count;
    return cek__program_emit(l->program, &desc.op,
                             (int[CEK__SLOTS]){ [CEK_POINTWISE_IN0] = from, [CEK_POINTWISE_OUT] = to }, 0);
}

static cek_status lower_input(cek__lowering *l)
{
    cek_status st;
    uint64_t elements = (uint64_t)l->options->rows * (uint64_t)l->stages->tensor[0].elements;
    cek__value given = { .place = CEK__PLACE_INPUT, .bytes = elements * cek_dtype_bytes(l->options->input_type) };
    /* A model without stages has a result all the same. */
    bool as_it_is = l->options->input_type == l->layout->type && l->model->scale == 1 && l->model->offset == 0 &&
                    !(l->stages->count == 0 && l->options->loss == 0 && !l->options->softmax);
    int input;

    CEK_TRY(cek__program_value(l->program, given, &input));
    if (as_it_is) {
        l->tensor[0].value = input;
        return CEK_OK;
    }
    CEK_TRY(output_value(l, 0));
    return convert(l, input, l->tensor[0].value);
out:
    return st;
}

/* ---- convolution and linear ---- */

static cek_status emit_conv(cek__lowering *l, const cek__stage *stage, const cek_epilogue *epilogue, int out)
{
    const cek__node *node = &l->model->nodes[stage->node];
    cek_conv_desc desc;
    int operands[CEK__SLOTS] = {
        [CEK_CONV_FORWARD_X] = l->tensor[stage->input[0]].value,
        [CEK_CONV_FORWARD_W] = l->parameter[node->weight],
        [CEK_CONV_FORWARD_Y] = out,
        [CEK_CONV_FORWARD_BIAS] = node->bias < 0 ? CEK__NO_VALUE : l->parameter[node->bias],
    };

    cek__lower_conv_desc(l, stage, CEK_OP_CONV_FORWARD, &desc);
    desc.op.epilogue = epilogue;
    return cek__program_emit(l->program, &desc.op, operands, 0);
}

/* Y [rows][out] = X [rows][in] W^T, W [out][in]. */
static cek_status emit_linear(cek__lowering *l, const cek__stage *stage, const cek_epilogue *epilogue, int out)
{
    const cek__node *node = &l->model->nodes[stage->node];
    cek_dtype type = l->layout->type;
    int64_t in = l->stages->tensor[stage->input[0]].elements, columns = node->linear.out;
    cek_gemm_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_GEMM, .epilogue = epilogue },
        .m = (uint64_t)l->options->rows,
        .n = (uint64_t)columns,
        .k = (uint64_t)in,
        .batch = 1,
        .lda = in,
        .ldb = in,
        .ldc = columns,
        .a_type = type,
        .b_type = type,
        .c_type = type,
        .trans = CEK_GEMM_TRANS_B,
    };
    int operands[CEK__SLOTS] = {
        [CEK_GEMM_A] = l->tensor[stage->input[0]].value,
        [CEK_GEMM_B] = l->parameter[node->weight],
        [CEK_GEMM_C] = out,
        [CEK_GEMM_BIAS] = node->bias < 0 ? CEK__NO_VALUE : l->parameter[node->bias],
    };

    return cek__program_emit(l->program, &desc.op, operands, 0);
}

static cek_status emit_product(cek__lowering *l, const cek__stage *stage, const cek_epilogue *epilogue, int out)
{
    return stage->kind == CEK__STAGE_CONV ? emit_conv(l, stage, epilogue, out) : emit_linear(l, stage, epilogue, out);
}

static cek_status lower_product(cek__lowering *l, const cek__stage *stage)
{
    cek_status st;
    cek__lowered *y = &l->tensor[stage->output];
    int64_t elements = l->stages->tensor[stage->output].elements;
    const cek_epilogue epilogue = { .size = sizeof epilogue, .activation = stage->activation };
    int sum;

    CEK_TRY(output_value(l, stage->output));
    y->activation = stage->activation;
    y->activation_ref = y->value;
    if (stage->activation == CEK_ACT_NONE)
        return emit_product(l, stage, NULL, y->value);
    st = emit_product(l, stage, &epilogue, y->value);
    if (st != CEK_UNSUPPORTED)
        return st;
    CEK_TRY(cek__lower_value(l, elements, &sum));
    CEK_TRY(emit_product(l, stage, NULL, sum));
    return cek__lower_pointwise(l, activation_code(stage->activation), sum, CEK__NO_VALUE, elements, y->value);
out:
    return st;
}

/* ---- the other stages ---- */

static cek_status lower_activation(cek__lowering *l, const cek__stage *stage)
{
    cek__lowered *x = &l->tensor[stage->input[0]], *y = &l->tensor[stage->output];

    y->activation = stage->activation;
    y->activation_ref = stage->activation == CEK_ACT_GELU ? x->value : y->value;
    return cek__lower_pointwise(l, activation_code(stage->activation), x->value, CEK__NO_VALUE,
                                l->stages->tensor[stage->output].elements, y->value);
}

static cek_status lower_pool(cek__lowering *l, const cek__stage *stage)
{
    cek_status st;
    cek__lowered *y = &l->tensor[stage->output];
    cek_pool_desc desc;

    cek__lower_pool_desc(l, stage, CEK_OP_POOL_FORWARD, &desc);
    if (desc.mode == CEK_POOL_MAX && l->options->training && l->stages->tensor[stage->output].needs_gradient)
        CEK_TRY(cek__program_value(l->program, (cek__value){ .place = CEK__PLACE_ARENA }, &y->reserve));
    CEK_TRY(cek__program_emit(l->program, &desc.op,
                              (int[CEK__SLOTS]){ [CEK_POOL_FORWARD_X] = l->tensor[stage->input[0]].value,
                                                 [CEK_POOL_FORWARD_Y] = y->value,
                                                 [CEK_POOL_FORWARD_RESERVE] = y->reserve },
                              0));
    y->pool = l->program->count - 1;
    return CEK_OK;
out:
    return st;
}

static cek_status lower_stage(cek__lowering *l, const cek__stage *stage)
{
    cek_status st;
    const cek__lowered *in[2] = { &l->tensor[stage->input[0]], &l->tensor[stage->input[1]] };
    const cek__flow *flow = &l->stages->tensor[stage->output];

    cek__lower_at(l, stage, "");
    if (stage->kind == CEK__STAGE_CONV || stage->kind == CEK__STAGE_LINEAR)
        return lower_product(l, stage);
    CEK_TRY(output_value(l, stage->output));
    switch (stage->kind) {
    case CEK__STAGE_ACTIVATION: return lower_activation(l, stage);
    case CEK__STAGE_POOL: return lower_pool(l, stage);
    case CEK__STAGE_DROPOUT: return cek__lower_dropout(l, stage, in[0]->value, l->tensor[stage->output].value);
    case CEK__STAGE_ADD:
        return cek__lower_pointwise(l, CEK_PW_ADD, in[0]->value, in[1]->value, flow->elements,
                                    l->tensor[stage->output].value);
    default:
        return cek__lower_reorder(l, &l->stages->tensor[stage->input[0]].image, false, in[0]->value,
                                  l->tensor[stage->output].value);
    }
out:
    return st;
}

static cek_status lower_softmax(cek__lowering *l)
{
    cek_status st;
    const cek__flow *flow = &l->stages->tensor[l->stages->output];
    cek_softmax_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_SOFTMAX },
        .rows = (uint64_t)l->options->rows,
        .columns = (uint64_t)flow->elements,
        .type = l->layout->type,
    };
    int out;

    CEK_TRY(cek__lower_value(l, flow->elements, &out));
    l->program->values[out].place = CEK__PLACE_OUTPUT;
    return cek__program_emit(
        l->program, &desc.op,
        (int[CEK__SLOTS]){ [CEK_SOFTMAX_X] = l->tensor[l->stages->output].value, [CEK_SOFTMAX_Y] = out }, 0);
out:
    return st;
}

cek_status cek__lower_forward(cek__lowering *l)
{
    cek_status st;

    snprintf(l->program->where, sizeof l->program->where, "the input");
    CEK_TRY(lower_input(l));
    for (int i = 0; i < l->stages->count; i++)
        CEK_TRY(lower_stage(l, &l->stages->stage[i]));
    return l->options->softmax ? lower_softmax(l) : CEK_OK;
out:
    return st;
}
