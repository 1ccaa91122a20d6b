/* lower_forward.c - the input, the stages and the loss. */
#include "nn/model/lower.h"

#include <stdio.h>

/* ---- where outputs go ---- */

/* The value of a tensor that a stage is about to write: the binder's output for the last one of a prediction. */
static cek_status tensor_value(cek__lowering *l, int tensor, int *out)
{
    cek_status st;
    int64_t elements = l->stages->tensor[tensor].elements;
    bool is_output = tensor == l->stages->output && !l->options->loss && !l->options->softmax;
    cek__value v = { .place = CEK__PLACE_OUTPUT, .bytes = l->rows * (uint64_t)elements * cek_dtype_bytes(l->layout->type) };

    if (is_output)
        CEK_TRY(cek__program_value(l->program, v, out));
    else
        CEK_TRY(cek__lower_arena(l, elements, out));
    l->value[tensor] = *out;
    return CEK_OK;
out:
    return st;
}

/* ---- the input ---- */

/* x * scale + offset in the layout's type; nothing where that is what the memory holds already. */
static cek_status input_lower(cek__lowering *l)
{
    cek_status st;
    const cek_model *m = l->model;
    int64_t elements = l->stages->tensor[0].elements;
    bool direct_output = l->stages->output == 0 && !l->options->loss && !l->options->softmax;
    int raw, out;
    cek_pointwise_input input = { .type = l->options->input_type, .strides = { 1 } };
    cek_pointwise_instruction chain[] = { { .code = CEK_PW_MUL_IMM, .a = 0, .imm = m->scale },
                                          { .code = CEK_PW_ADD_IMM, .a = 1, .imm = m->offset } };
    cek_pointwise_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_POINTWISE },
        .rank = 1,
        .out_type = l->layout->type,
        .shape = { l->rows * (uint64_t)elements },
        .out_strides = { 1 },
        .inputs = &input,
        .instructions = chain,
        .input_count = 1,
        .input_size = sizeof input,
        .instruction_count = 2,
        .instruction_size = sizeof *chain,
    };

    CEK_TRY(cek__program_value(l->program, (cek__value){ .place = CEK__PLACE_INPUT,
                                                         .bytes = l->rows * (uint64_t)elements *
                                                                  cek_dtype_bytes(l->options->input_type) }, &raw));
    l->value[0] = raw;
    if (l->options->input_type == l->layout->type && m->scale == 1 && m->offset == 0 && !direct_output)
        return CEK_OK;
    cek__lower_at(l, 0);
    CEK_TRY(tensor_value(l, 0, &out));
    CEK_TRY(cek__program_emit(l->program, &desc.op, (int[CEK__SLOTS]){ [CEK_POINTWISE_IN0] = raw, [CEK_POINTWISE_OUT] = out },
                              0));
    return CEK_OK;
out:
    return st;
}

/* ---- convolution and linear, with the activation behind them ---- */

static uint32_t activation_code(cek_activation activation)
{
    switch (activation) {
    case CEK_ACT_RELU: return CEK_PW_RELU;
    case CEK_ACT_TANH: return CEK_PW_TANH;
    case CEK_ACT_SIGMOID: return CEK_PW_SIGMOID;
    case CEK_ACT_GELU: return CEK_PW_GELU;
    default: return CEK_PW_COPY;
    }
}

/* Emits `desc` with the activation in its epilogue or, where the device does not take that, behind it. */
static cek_status emit_activated(cek__lowering *l, cek_op_desc *desc, int operands[CEK__SLOTS], uint32_t out_slot,
                                 const cek__stage *stage)
{
    cek_status st;
    cek_epilogue epilogue = { .size = sizeof epilogue, .activation = stage->activation };
    int out;

    CEK_TRY(tensor_value(l, stage->output, &out));
    operands[out_slot] = out;
    if (stage->activation != CEK_ACT_NONE) {
        desc->epilogue = &epilogue;
        st = cek__program_emit(l->program, desc, operands, 0);
        if (st != CEK_UNSUPPORTED)
            return st;
        desc->epilogue = NULL;
        CEK_TRY(cek__lower_arena(l, l->stages->tensor[stage->output].elements, &operands[out_slot]));
    }
    CEK_TRY(cek__program_emit(l->program, desc, operands, 0));
    if (stage->activation != CEK_ACT_NONE)
        CEK_TRY(cek__lower_pointwise(l, activation_code(stage->activation), operands[out_slot], 0, out,
                                     l->stages->tensor[stage->output].elements));
    return CEK_OK;
out:
    return st;
}

static cek_status conv_lower(cek__lowering *l, const cek__stage *stage)
{
    cek_status st;
    const cek__node *node = &l->model->nodes[stage->node];
    cek_conv_desc desc = cek__lower_conv_desc(l, stage, CEK_OP_CONV_FORWARD);
    int operands[CEK__SLOTS] = { [CEK_CONV_FORWARD_X] = l->value[stage->input[0]] };

    CEK_TRY(cek__lower_parameter(l, node->weight, false, &operands[CEK_CONV_FORWARD_W]));
    if (node->bias >= 0)
        CEK_TRY(cek__lower_parameter(l, node->bias, false, &operands[CEK_CONV_FORWARD_BIAS]));
    return emit_activated(l, &desc.op, operands, CEK_CONV_FORWARD_Y, stage);
out:
    return st;
}

static cek_status linear_lower(cek__lowering *l, const cek__stage *stage)
{
    cek_status st;
    const cek__node *node = &l->model->nodes[stage->node];
    int64_t in = l->stages->tensor[stage->input[0]].elements, out = l->stages->tensor[stage->output].elements;
    cek_dtype type = l->layout->type;
    int operands[CEK__SLOTS] = { [CEK_GEMM_A] = l->value[stage->input[0]] };
    cek_gemm_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_GEMM },
        .m = l->rows, .n = (uint64_t)out, .k = (uint64_t)in, .batch = 1,
        .lda = in, .ldb = in, .ldc = out,
        .a_type = type, .b_type = type, .c_type = type,
        .trans = CEK_GEMM_TRANS_B, /* weights are [out][in] */
    };

    CEK_TRY(cek__lower_parameter(l, node->weight, false, &operands[CEK_GEMM_B]));
    if (node->bias >= 0)
        CEK_TRY(cek__lower_parameter(l, node->bias, false, &operands[CEK_GEMM_BIAS]));
    return emit_activated(l, &desc.op, operands, CEK_GEMM_C, stage);
out:
    return st;
}

/* ---- the other stages ---- */

static cek_status activation_lower(cek__lowering *l, int index)
{
    cek_status st;
    const cek__stage *stage = &l->stages->stage[index];
    int out;

    l->input_of[index] = l->value[stage->input[0]];
    CEK_TRY(tensor_value(l, stage->output, &out));
    CEK_TRY(cek__lower_pointwise(l, activation_code(stage->activation), l->value[stage->input[0]], 0, out,
                                 l->stages->tensor[stage->output].elements));
    return CEK_OK;
out:
    return st;
}

static cek_status pool_lower(cek__lowering *l, int index)
{
    cek_status st;
    const cek__stage *stage = &l->stages->stage[index];
    cek_pool_desc desc = cek__lower_pool_desc(l, stage, CEK_OP_POOL_FORWARD);
    bool keeps = l->options->training && desc.mode == CEK_POOL_MAX && l->stages->tensor[stage->input[0]].needs_gradient;
    int operands[CEK__SLOTS] = { [CEK_POOL_FORWARD_X] = l->value[stage->input[0]] };

    CEK_TRY(tensor_value(l, stage->output, &operands[CEK_POOL_FORWARD_Y]));
    if (keeps) { /* the op says how large */
        CEK_TRY(cek__program_value(l->program, (cek__value){ .place = CEK__PLACE_ARENA }, &l->reserve[index]));
        operands[CEK_POOL_FORWARD_RESERVE] = l->reserve[index];
    }
    CEK_TRY(cek__program_emit(l->program, &desc.op, operands, 0));
    l->forward[index] = keeps ? l->program->instructions[l->program->count - 1].op : NULL;
    return CEK_OK;
out:
    return st;
}

static cek_status dropout_lower(cek__lowering *l, const cek__stage *stage)
{
    cek_status st;
    cek_dropout_desc desc = cek__lower_dropout_desc(l, stage);
    int operands[CEK__SLOTS] = { [CEK_DROPOUT_X] = l->value[stage->input[0]], [CEK_DROPOUT_STEP] = l->step,
                                 [CEK_DROPOUT_BATCH] = l->batch };

    CEK_TRY(tensor_value(l, stage->output, &operands[CEK_DROPOUT_Y]));
    CEK_TRY(cek__program_emit(l->program, &desc.op, operands, 0));
    return CEK_OK;
out:
    return st;
}

static cek_status add_lower(cek__lowering *l, const cek__stage *stage)
{
    cek_status st;
    int out;

    CEK_TRY(tensor_value(l, stage->output, &out));
    CEK_TRY(cek__lower_pointwise(l, CEK_PW_ADD, l->value[stage->input[0]], l->value[stage->input[1]], out,
                                 l->stages->tensor[stage->output].elements));
    return CEK_OK;
out:
    return st;
}

static cek_status reorder_lower(cek__lowering *l, const cek__stage *stage)
{
    cek_status st;
    const cek__shape *image = &l->stages->tensor[stage->input[0]].image;
    cek_copy_desc desc = cek__reorder_desc(image, l->rows, l->layout->type, false);
    int operands[CEK__SLOTS] = { [CEK_COPY_X] = l->value[stage->input[0]] };

    CEK_TRY(tensor_value(l, stage->output, &operands[CEK_COPY_Y]));
    CEK_TRY(cek__program_emit(l->program, &desc.op, operands, 0));
    return CEK_OK;
out:
    return st;
}

static cek_status stage_lower(cek__lowering *l, int index)
{
    const cek__stage *stage = &l->stages->stage[index];

    cek__lower_at(l, stage->node);
    switch (stage->kind) {
    case CEK__STAGE_CONV: return conv_lower(l, stage);
    case CEK__STAGE_LINEAR: return linear_lower(l, stage);
    case CEK__STAGE_ACTIVATION: return activation_lower(l, index);
    case CEK__STAGE_POOL: return pool_lower(l, index);
    case CEK__STAGE_DROPOUT: return dropout_lower(l, stage);
    case CEK__STAGE_ADD: return add_lower(l, stage);
    case CEK__STAGE_REORDER: return reorder_lower(l, stage);
    }
    return cek__fail(CEK_INTERNAL, "stage of kind %d", (int)stage->kind);
}

static cek_status softmax_lower(cek__lowering *l)
{
    cek_status st;
    uint64_t columns = (uint64_t)l->stages->tensor[l->stages->output].elements;
    cek_softmax_desc desc = { .op = { .size = sizeof desc, .kind = CEK_OP_SOFTMAX },
                              .rows = l->rows, .columns = columns, .type = l->layout->type };
    int operands[CEK__SLOTS] = { [CEK_SOFTMAX_X] = l->value[l->stages->output] };
    cek__value out = { .place = CEK__PLACE_OUTPUT, .bytes = l->rows * columns * cek_dtype_bytes(l->layout->type) };

    CEK_TRY(cek__program_value(l->program, out, &operands[CEK_SOFTMAX_Y]));
    CEK_TRY(cek__program_emit(l->program, &desc.op, operands, 0));
    return CEK_OK;
out:
    return st;
}

cek_status cek__lower_forward(cek__lowering *l)
{
    cek_status st;

    CEK_TRY(input_lower(l));
    for (int i = 0; i < l->stages->count; i++)
        CEK_TRY(stage_lower(l, i));
    if (!l->options->loss && l->options->softmax)
        CEK_TRY(softmax_lower(l));
    return CEK_OK;
out:
    return st;
}

/* ---- the loss ---- */

static cek_status single(cek__lowering *l, cek__place place, uint64_t bytes, int *out)
{
    return cek__program_value(l->program, (cek__value){ .place = place, .bytes = bytes }, out);
}

static cek_status cross_entropy_lower(cek__lowering *l, int gradient)
{
    cek_status st;
    int prediction = l->value[l->stages->output];
    cek_cross_entropy_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_CROSS_ENTROPY,
                .accumulate = CEK_BIT(CEK_CROSS_ENTROPY_LOSS) | CEK_BIT(CEK_CROSS_ENTROPY_CORRECT) },
        .rows = l->rows,
        .classes = (uint64_t)l->stages->tensor[l->stages->output].elements,
        .rows_per_sample = 1,
        .type = l->layout->type,
    };
    int operands[CEK__SLOTS] = { [CEK_CROSS_ENTROPY_LOGITS] = prediction,
                                 [CEK_CROSS_ENTROPY_STEP] = gradient ? l->step : CEK__NO_VALUE,
                                 [CEK_CROSS_ENTROPY_BATCH] = l->batch,
                                 [CEK_CROSS_ENTROPY_DLOGITS] = gradient };

    CEK_TRY(single(l, CEK__PLACE_TARGET, l->rows * sizeof(int32_t), &operands[CEK_CROSS_ENTROPY_LABELS]));
    if (l->options->weighted)
        CEK_TRY(single(l, CEK__PLACE_WEIGHTS, l->rows * sizeof(float), &operands[CEK_CROSS_ENTROPY_WEIGHTS]));
    CEK_TRY(single(l, CEK__PLACE_LOSS, sizeof(double), &operands[CEK_CROSS_ENTROPY_LOSS]));
    CEK_TRY(single(l, CEK__PLACE_CORRECT, sizeof(int32_t), &operands[CEK_CROSS_ENTROPY_CORRECT]));
    CEK_TRY(cek__program_emit(l->program, &desc.op, operands, 0));
    return CEK_OK;
out:
    return st;
}

static cek_status squared_error_lower(cek__lowering *l, int gradient)
{
    cek_status st;
    uint64_t columns = (uint64_t)l->stages->tensor[l->stages->output].elements;
    cek_squared_error_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_SQUARED_ERROR, .accumulate = CEK_BIT(CEK_SQUARED_ERROR_LOSS) },
        .rows = l->rows,
        .columns = columns,
        .rows_per_sample = 1,
        .type = l->layout->type,
    };
    int operands[CEK__SLOTS] = { [CEK_SQUARED_ERROR_PREDICTION] = l->value[l->stages->output],
                                 [CEK_SQUARED_ERROR_STEP] = gradient ? l->step : CEK__NO_VALUE,
                                 [CEK_SQUARED_ERROR_BATCH] = l->batch,
                                 [CEK_SQUARED_ERROR_DPREDICTION] = gradient };

    CEK_TRY(single(l, CEK__PLACE_TARGET, l->rows * columns * cek_dtype_bytes(l->layout->type),
                   &operands[CEK_SQUARED_ERROR_TARGET]));
    if (l->options->weighted)
        CEK_TRY(single(l, CEK__PLACE_WEIGHTS, l->rows * sizeof(float), &operands[CEK_SQUARED_ERROR_WEIGHTS]));
    CEK_TRY(single(l, CEK__PLACE_LOSS, sizeof(double), &operands[CEK_SQUARED_ERROR_LOSS]));
    CEK_TRY(cek__program_emit(l->program, &desc.op, operands, 0));
    return CEK_OK;
out:
    return st;
}

cek_status cek__lower_loss(cek__lowering *l)
{
    cek_status st;
    int output = l->stages->output, gradient = CEK__NO_VALUE;

    snprintf(l->program->where, sizeof l->program->where, "the loss");
    if (l->options->training)
        CEK_TRY(cek__lower_arena(l, l->stages->tensor[output].elements, &gradient));
    l->gradient[output].value = gradient;
    return l->options->loss == CEK_LOSS_MSE ? squared_error_lower(l, gradient) : cross_entropy_lower(l, gradient);
out:
    return st;
}
