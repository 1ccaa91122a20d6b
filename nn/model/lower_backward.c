/* lower_backward.c - gradients, stage by stage, from the loss to the first parameter.
 *
 * The gradient of a tensor is complete when all its readers have contributed, which they have when the stage that wrote it is
 * reached. Where that stage ends in an activation, the gradient must be multiplied by its derivative; if a single convolution or
 * linear layer reads the tensor, its backward does that in its epilogue (`activated`). */
#include "nn/model/lower.h"

/* ---- contributions ---- */

/* Adds `value` to what others have contributed to the tensor's gradient. */
static cek_status contribute(cek__lowering *l, int tensor, int value, bool activated)
{
    cek_status st;
    cek__gradient *g = &l->gradient[tensor];
    int sum;

    if (g->value == CEK__NO_VALUE) {
        *g = (cek__gradient){ value, activated };
        return CEK_OK;
    }
    CEK_TRY(cek__lower_arena(l, l->stages->tensor[tensor].elements, &sum));
    CEK_TRY(cek__lower_pointwise(l, CEK_PW_ADD, g->value, value, sum, l->stages->tensor[tensor].elements));
    g->value = sum;
    return CEK_OK;
out:
    return st;
}

/* The stage that wrote a tensor; NULL for the input. */
static const cek__stage *writer(const cek__lowering *l, int tensor, int *index)
{
    for (int i = 0; i < l->stages->count; i++)
        if (l->stages->stage[i].output == tensor) {
            *index = i;
            return &l->stages->stage[i];
        }
    return NULL;
}

/* The activation that made a tensor, and the value that its derivative reads; NONE if an epilogue must not apply it. */
static cek_activation activation_of(const cek__lowering *l, int tensor, int *reference)
{
    int index;
    const cek__stage *stage = writer(l, tensor, &index);

    *reference = CEK__NO_VALUE;
    if (!stage || stage->activation == CEK_ACT_NONE)
        return CEK_ACT_NONE;
    *reference = stage->activation == CEK_ACT_GELU ? l->input_of[index] : l->value[tensor];
    return stage->activation;
}

/* Emits the gradient of the tensor `input` into a value of its own, with the derivative of its activation in the epilogue where
 * the tensor has one reader and the device takes it. */
static cek_status emit_data(cek__lowering *l, cek_op_desc *desc, int operands[CEK__SLOTS], uint32_t out_slot, uint32_t ref_slot,
                            int input)
{
    cek_status st;
    int reference, out;
    cek_activation activation = activation_of(l, input, &reference);
    cek_epilogue epilogue = { .size = sizeof epilogue, .act_grad = activation };
    bool fused = false;

    CEK_TRY(cek__lower_arena(l, l->stages->tensor[input].elements, &out));
    operands[out_slot] = out;
    if (activation != CEK_ACT_NONE && l->stages->tensor[input].readers == 1) {
        operands[ref_slot] = reference;
        desc->epilogue = &epilogue;
        st = cek__program_emit(l->program, desc, operands, 0);
        if (st != CEK_OK && st != CEK_UNSUPPORTED)
            goto out;
        fused = st == CEK_OK;
        desc->epilogue = NULL;
        operands[ref_slot] = CEK__NO_VALUE;
    }
    if (!fused)
        CEK_TRY(cek__program_emit(l->program, desc, operands, 0));
    CEK_TRY(contribute(l, input, out, fused));
    return CEK_OK;
out:
    return st;
}

/* ---- stages ---- */

static cek_status conv_backward(cek__lowering *l, const cek__stage *stage, int dy)
{
    cek_status st;
    const cek__node *node = &l->model->nodes[stage->node];
    cek_conv_desc weights = cek__lower_conv_desc(l, stage, CEK_OP_CONV_BACKWARD_WEIGHTS);
    cek_conv_desc data = cek__lower_conv_desc(l, stage, CEK_OP_CONV_BACKWARD_DATA);
    uint64_t twice = CEK_BIT(CEK_CONV_BACKWARD_WEIGHTS_DW);
    int w[CEK__SLOTS] = { [CEK_CONV_BACKWARD_WEIGHTS_X] = l->value[stage->input[0]], [CEK_CONV_BACKWARD_WEIGHTS_DY] = dy };
    int x[CEK__SLOTS] = { [CEK_CONV_BACKWARD_DATA_DY] = dy };

    CEK_TRY(cek__lower_parameter(l, node->weight, true, &w[CEK_CONV_BACKWARD_WEIGHTS_DW]));
    if (node->bias >= 0) {
        CEK_TRY(cek__lower_parameter(l, node->bias, true, &w[CEK_CONV_BACKWARD_WEIGHTS_BIAS_GRAD]));
        twice |= CEK_BIT(CEK_CONV_BACKWARD_WEIGHTS_BIAS_GRAD);
    }
    CEK_TRY(cek__program_emit(l->program, &weights.op, w, twice));
    if (!l->stages->tensor[stage->input[0]].needs_gradient)
        return CEK_OK;
    CEK_TRY(cek__lower_parameter(l, node->weight, false, &x[CEK_CONV_BACKWARD_DATA_W]));
    return emit_data(l, &data.op, x, CEK_CONV_BACKWARD_DATA_DX, CEK_CONV_BACKWARD_DATA_ACT_REF, stage->input[0]);
out:
    return st;
}

/* y = x W^T:  dW = dy^T x, its bias the sums of dy^T's rows;  dx = dy W. */
static cek_status linear_backward(cek__lowering *l, const cek__stage *stage, int dy)
{
    cek_status st;
    const cek__node *node = &l->model->nodes[stage->node];
    int64_t in = l->stages->tensor[stage->input[0]].elements, out = l->stages->tensor[stage->output].elements;
    cek_dtype type = l->layout->type;
    uint64_t twice = CEK_BIT(CEK_GEMM_C);
    int w[CEK__SLOTS] = { [CEK_GEMM_A] = dy, [CEK_GEMM_B] = l->value[stage->input[0]] };
    int x[CEK__SLOTS] = { [CEK_GEMM_A] = dy };
    cek_gemm_desc weights = {
        .op = { .size = sizeof weights, .kind = CEK_OP_GEMM },
        .m = (uint64_t)out, .n = (uint64_t)in, .k = l->rows, .batch = 1,
        .lda = out, .ldb = in, .ldc = in,
        .a_type = type, .b_type = type, .c_type = type,
        .trans = CEK_GEMM_TRANS_A,
    };
    cek_gemm_desc data = {
        .op = { .size = sizeof data, .kind = CEK_OP_GEMM },
        .m = l->rows, .n = (uint64_t)in, .k = (uint64_t)out, .batch = 1,
        .lda = out, .ldb = in, .ldc = in,
        .a_type = type, .b_type = type, .c_type = type,
    };

    CEK_TRY(cek__lower_parameter(l, node->weight, true, &w[CEK_GEMM_C]));
    if (node->bias >= 0) {
        CEK_TRY(cek__lower_parameter(l, node->bias, true, &w[CEK_GEMM_A_SUM]));
        twice |= CEK_BIT(CEK_GEMM_A_SUM);
    }
    CEK_TRY(cek__program_emit(l->program, &weights.op, w, twice));
    if (!l->stages->tensor[stage->input[0]].needs_gradient)
        return CEK_OK;
    CEK_TRY(cek__lower_parameter(l, node->weight, false, &x[CEK_GEMM_B]));
    return emit_data(l, &data.op, x, CEK_GEMM_C, CEK_GEMM_ACT_REF, stage->input[0]);
out:
    return st;
}

static cek_status pool_backward(cek__lowering *l, int index, int dy)
{
    cek_status st;
    const cek__stage *stage = &l->stages->stage[index];
    cek_pool_desc desc = cek__lower_pool_desc(l, stage, CEK_OP_POOL_BACKWARD);
    int operands[CEK__SLOTS] = { [CEK_POOL_BACKWARD_DY] = dy, [CEK_POOL_BACKWARD_RESERVE] = l->reserve[index] };

    desc.op.forward = l->forward[index];
    CEK_TRY(cek__lower_arena(l, l->stages->tensor[stage->input[0]].elements, &operands[CEK_POOL_BACKWARD_DX]));
    CEK_TRY(cek__program_emit(l->program, &desc.op, operands, 0));
    return contribute(l, stage->input[0], operands[CEK_POOL_BACKWARD_DX], false);
out:
    return st;
}

static cek_status dropout_backward(cek__lowering *l, const cek__stage *stage, int dy)
{
    cek_status st;
    cek_dropout_desc desc = cek__lower_dropout_desc(l, stage);
    int operands[CEK__SLOTS] = { [CEK_DROPOUT_X] = dy, [CEK_DROPOUT_STEP] = l->step, [CEK_DROPOUT_BATCH] = l->batch };

    CEK_TRY(cek__lower_arena(l, l->stages->tensor[stage->input[0]].elements, &operands[CEK_DROPOUT_Y]));
    CEK_TRY(cek__program_emit(l->program, &desc.op, operands, 0));
    return contribute(l, stage->input[0], operands[CEK_DROPOUT_Y], false);
out:
    return st;
}

static cek_status reorder_backward(cek__lowering *l, const cek__stage *stage, int dy)
{
    cek_status st;
    cek_copy_desc desc = cek__reorder_desc(&l->stages->tensor[stage->input[0]].image, l->rows, l->layout->type, true);
    int operands[CEK__SLOTS] = { [CEK_COPY_X] = dy };

    CEK_TRY(cek__lower_arena(l, l->stages->tensor[stage->input[0]].elements, &operands[CEK_COPY_Y]));
    CEK_TRY(cek__program_emit(l->program, &desc.op, operands, 0));
    return contribute(l, stage->input[0], operands[CEK_COPY_Y], false);
out:
    return st;
}

static uint32_t gradient_code(cek_activation activation)
{
    switch (activation) {
    case CEK_ACT_RELU: return CEK_PW_RELU_GRAD;
    case CEK_ACT_TANH: return CEK_PW_TANH_GRAD;
    case CEK_ACT_SIGMOID: return CEK_PW_SIGMOID_GRAD;
    default: return CEK_PW_GELU_GRAD;
    }
}

/* The gradient before the stage's activation. */
static cek_status before_activation(cek__lowering *l, const cek__stage *stage, int *dz)
{
    cek_status st;
    cek__gradient g = l->gradient[stage->output];
    int reference;
    cek_activation activation = activation_of(l, stage->output, &reference);
    int64_t elements = l->stages->tensor[stage->output].elements;

    *dz = g.value;
    if (activation == CEK_ACT_NONE || g.activated)
        return CEK_OK;
    CEK_TRY(cek__lower_arena(l, elements, dz));
    CEK_TRY(cek__lower_pointwise(l, gradient_code(activation), g.value, reference, *dz, elements));
    return CEK_OK;
out:
    return st;
}

cek_status cek__lower_backward(cek__lowering *l, int index)
{
    cek_status st;
    const cek__stage *stage = &l->stages->stage[index];
    int dz;

    if (!l->stages->tensor[stage->output].needs_gradient)
        return CEK_OK;
    cek__lower_at(l, stage->node);
    CEK_TRY(before_activation(l, stage, &dz));
    switch (stage->kind) {
    case CEK__STAGE_CONV: return conv_backward(l, stage, dz);
    case CEK__STAGE_LINEAR: return linear_backward(l, stage, dz);
    case CEK__STAGE_POOL: return pool_backward(l, index, dz);
    case CEK__STAGE_DROPOUT: return dropout_backward(l, stage, dz);
    case CEK__STAGE_REORDER: return reorder_backward(l, stage, dz);
    case CEK__STAGE_ACTIVATION: return contribute(l, stage->input[0], dz, false);
    case CEK__STAGE_ADD:
        for (int k = 0; k < 2; k++)
            if (l->stages->tensor[stage->input[k]].needs_gradient)
                CEK_TRY(contribute(l, stage->input[k], dz, false));
        return CEK_OK;
    }
    st = cek__fail(CEK_INTERNAL, "stage of kind %d", (int)stage->kind);
out:
    return st;
}
