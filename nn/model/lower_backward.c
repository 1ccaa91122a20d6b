/* lower_backward.c - the ops of a backward pass: stages in reverse, each turning the gradient of
 * its output into those of its parameters and inputs.
 *
 * By the time a stage is reached, every reader of its output has given its share. Shares of several
 * readers are added: by the op itself where it can accumulate, else by a pointwise operation. An
 * activation's derivative is multiplied in by the op that writes the gradient of its result, if
 * that is the only one and the device takes such an epilogue; else by a pointwise operation when
 * its stage is reached. Parameters' gradients come before the input's: an activation that only they
 * read then makes room for it. */
#include "nn/model/lower.h"

static uint32_t gradient_code(cek_activation activation)
{
    static const uint32_t codes[] = {
        [CEK_ACT_RELU] = CEK_PW_RELU_GRAD,
        [CEK_ACT_TANH] = CEK_PW_TANH_GRAD,
        [CEK_ACT_SIGMOID] = CEK_PW_SIGMOID_GRAD,
        [CEK_ACT_GELU] = CEK_PW_GELU_GRAD,
    };

    return codes[activation];
}

/* Adds the value `share` to the gradient of a tensor. owned: nobody else reads it. */
static cek_status contribute(cek__lowering *l, int tensor, int share, bool owned)
{
    cek_status st;
    cek__lowered *t = &l->tensor[tensor];
    int64_t elements = l->stages->tensor[tensor].elements;
    int sum;

    if (t->gradient == CEK__NO_VALUE) {
        t->gradient = share;
        t->gradient_owned = owned;
        return CEK_OK;
    }
    CEK_TRY(cek__lower_value(l, elements, &sum));
    CEK_TRY(cek__lower_pointwise(l, CEK_PW_ADD, t->gradient, share, elements, sum));
    t->gradient = sum;
    t->gradient_owned = true;
    return CEK_OK;
out:
    return st;
}

/* The gradient of a stage's output before its activation. */
static cek_status inner_gradient(cek__lowering *l, const cek__stage *stage, int *out)
{
    cek_status st;
    const cek__lowered *y = &l->tensor[stage->output];
    int64_t elements = l->stages->tensor[stage->output].elements;

    *out = y->gradient;
    if (y->activation == CEK_ACT_NONE || y->gradient_inside)
        return CEK_OK;
    CEK_TRY(cek__lower_value(l, elements, out));
    return cek__lower_pointwise(l, gradient_code(y->activation), y->gradient, y->activation_ref, elements, *out);
out:
    return st;
}

/* ---- convolution and linear ---- */

/* DX of a convolution. `ref`: what act_grad reads. */
static cek_status emit_conv_data(cek__lowering *l, const cek__stage *stage, int dy, const cek_epilogue *epilogue,
                                 int ref, bool accumulate, int dx)
{
    const cek__node *node = &l->model->nodes[stage->node];
    cek_conv_desc desc;
    int operands[CEK__SLOTS] = {
        [CEK_CONV_BACKWARD_DATA_DY] = dy,
        [CEK_CONV_BACKWARD_DATA_W] = l->parameter[node->weight],
        [CEK_CONV_BACKWARD_DATA_DX] = dx,
        [CEK_CONV_BACKWARD_DATA_ACT_REF] = ref,
    };

    cek__lower_conv_desc(l, stage, CEK_OP_CONV_BACKWARD_DATA, &desc);
    desc.op.epilogue = epilogue;
    desc.op.accumulate = accumulate ? CEK_BIT(CEK_CONV_BACKWARD_DATA_DX) : 0;
    return cek__program_emit(l->program, &desc.op, operands, 0);
}

/* DX [rows][in] = DY [rows][out] W [out][in]. */
static cek_status emit_linear_data(cek__lowering *l, const cek__stage *stage, int dy, const cek_epilogue *epilogue,
                                   int ref, bool accumulate, int dx)
{
    const cek__node *node = &l->model->nodes[stage->node];
    cek_dtype type = l->layout->type;
    int64_t in = l->stages->tensor[stage->input[0]].elements, columns = node->linear.out;
    cek_gemm_desc desc = {
        .op = { .size = sizeof desc,
                .kind = CEK_OP_GEMM,
                .accumulate = accumulate ? CEK_BIT(CEK_GEMM_C) : 0,
                .epilogue = epilogue },
        .m = (uint64_t)l->options->rows,
        .n = (uint64_t)in,
        .k = (uint64_t)columns,
        .batch = 1,
        .lda = columns,
        .ldb = in,
        .ldc = in,
        .a_type = type,
        .b_type = type,
        .c_type = type,
    };
    int operands[CEK__SLOTS] = {
        [CEK_GEMM_A] = dy,
        [CEK_GEMM_B] = l->parameter[node->weight],
        [CEK_GEMM_C] = dx,
        [CEK_GEMM_ACT_REF] = ref,
    };

    return cek__program_emit(l->program, &desc.op, operands, 0);
}

static cek_status emit_data(cek__lowering *l, const cek__stage *stage, int dy, const cek_epilogue *epilogue, int ref,
                            bool accumulate, int dx)
{
    return (stage->kind == CEK__STAGE_CONV ? emit_conv_data : emit_linear_data)(l, stage, dy, epilogue, ref, accumulate,
                                                                                dx);
}

static cek_status lower_data(cek__lowering *l, const cek__stage *stage, int dy)
{
    cek_status st;
    int tensor = stage->input[0], dx;
    cek__lowered *x = &l->tensor[tensor];
    const cek__flow *flow = &l->stages->tensor[tensor];

    if (x->gradient != CEK__NO_VALUE && x->gradient_owned)
        return emit_data(l, stage, dy, NULL, CEK__NO_VALUE, true, x->gradient);
    CEK_TRY(cek__lower_value(l, flow->elements, &dx));
    if (x->activation != CEK_ACT_NONE && flow->readers == 1) {
        const cek_epilogue epilogue = { .size = sizeof epilogue, .act_grad = x->activation };

        st = emit_data(l, stage, dy, &epilogue, x->activation_ref, false, dx);
        x->gradient_inside = st == CEK_OK;
        if (st != CEK_UNSUPPORTED)
            return st == CEK_OK ? contribute(l, tensor, dx, true) : st;
    }
    CEK_TRY(emit_data(l, stage, dy, NULL, CEK__NO_VALUE, false, dx));
    return contribute(l, tensor, dx, true);
out:
    return st;
}

static cek_status lower_conv_weights(cek__lowering *l, const cek__stage *stage, int dy)
{
    const cek__node *node = &l->model->nodes[stage->node];
    cek_conv_desc desc;
    uint64_t twice = CEK_BIT(CEK_CONV_BACKWARD_WEIGHTS_DW);
    int operands[CEK__SLOTS] = {
        [CEK_CONV_BACKWARD_WEIGHTS_X] = l->tensor[stage->input[0]].value,
        [CEK_CONV_BACKWARD_WEIGHTS_DY] = dy,
        [CEK_CONV_BACKWARD_WEIGHTS_DW] = l->gradient[node->weight],
    };

    if (node->bias >= 0) {
        operands[CEK_CONV_BACKWARD_WEIGHTS_BIAS_GRAD] = l->gradient[node->bias];
        twice |= CEK_BIT(CEK_CONV_BACKWARD_WEIGHTS_BIAS_GRAD);
    }
    cek__lower_conv_desc(l, stage, CEK_OP_CONV_BACKWARD_WEIGHTS, &desc);
    return cek__program_emit(l->program, &desc.op, operands, twice);
}

/* DW [out][in] = DY^T X; the bias gradient is the sum over rows of DY^T, which the same pass makes. */
static cek_status lower_linear_weights(cek__lowering *l, const cek__stage *stage, int dy)
{
    const cek__node *node = &l->model->nodes[stage->node];
    cek_dtype type = l->layout->type;
    int64_t in = l->stages->tensor[stage->input[0]].elements, columns = node->linear.out;
    uint64_t twice = CEK_BIT(CEK_GEMM_C);
    cek_gemm_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_GEMM },
        .m = (uint64_t)columns,
        .n = (uint64_t)in,
        .k = (uint64_t)l->options->rows,
        .batch = 1,
        .lda = columns,
        .ldb = in,
        .ldc = in,
        .a_type = type,
        .b_type = type,
        .c_type = type,
        .trans = CEK_GEMM_TRANS_A,
    };
    int operands[CEK__SLOTS] = {
        [CEK_GEMM_A] = dy,
        [CEK_GEMM_B] = l->tensor[stage->input[0]].value,
        [CEK_GEMM_C] = l->gradient[node->weight],
    };

    if (node->bias >= 0) {
        operands[CEK_GEMM_A_SUM] = l->gradient[node->bias];
        twice |= CEK_BIT(CEK_GEMM_A_SUM);
    }
    return cek__program_emit(l->program, &desc.op, operands, twice);
}

/* ---- the other stages ---- */

static cek_status lower_pool(cek__lowering *l, const cek__stage *stage, int dy)
{
    cek_status st;
    const cek__lowered *y = &l->tensor[stage->output];
    cek_pool_desc desc;
    int dx;

    cek__lower_pool_desc(l, stage, CEK_OP_POOL_BACKWARD, &desc);
    if (y->reserve)
        desc.op.forward = l->program->instructions[y->pool].op;
    CEK_TRY(cek__lower_value(l, l->stages->tensor[stage->input[0]].elements, &dx));
    CEK_TRY(cek__program_emit(
        l->program, &desc.op,
        (int[CEK__SLOTS]){
            [CEK_POOL_BACKWARD_DY] = dy, [CEK_POOL_BACKWARD_DX] = dx, [CEK_POOL_BACKWARD_RESERVE] = y->reserve },
        0));
    return contribute(l, stage->input[0], dx, true);
out:
    return st;
}

static cek_status lower_dropout(cek__lowering *l, const cek__stage *stage, int dy)
{
    cek_status st;
    int dx;

    CEK_TRY(cek__lower_value(l, l->stages->tensor[stage->input[0]].elements, &dx));
    CEK_TRY(cek__lower_dropout(l, stage, dy, dx));
    return contribute(l, stage->input[0], dx, true);
out:
    return st;
}

static cek_status lower_reorder(cek__lowering *l, const cek__stage *stage, int dy)
{
    cek_status st;
    const cek__flow *flow = &l->stages->tensor[stage->input[0]];
    int dx;

    CEK_TRY(cek__lower_value(l, flow->elements, &dx));
    CEK_TRY(cek__lower_reorder(l, &flow->image, true, dy, dx));
    return contribute(l, stage->input[0], dx, true);
out:
    return st;
}

/* The gradient passes as it is, to one input or two. */
static cek_status lower_pass(cek__lowering *l, const cek__stage *stage, int dy)
{
    cek_status st = CEK_OK;

    for (int k = 0; k < stage->inputs && st == CEK_OK; k++)
        if (l->stages->tensor[stage->input[k]].needs_gradient)
            st = contribute(l, stage->input[k], dy, false);
    return st;
}

static cek_status lower_stage(cek__lowering *l, const cek__stage *stage)
{
    cek_status st;
    bool further = l->stages->tensor[stage->input[0]].needs_gradient;
    int dy;

    cek__lower_at(l, stage, " backward");
    CEK_TRY(inner_gradient(l, stage, &dy));
    switch (stage->kind) {
    case CEK__STAGE_CONV:
    case CEK__STAGE_LINEAR:
        CEK_TRY((stage->kind == CEK__STAGE_CONV ? lower_conv_weights : lower_linear_weights)(l, stage, dy));
        return further ? lower_data(l, stage, dy) : CEK_OK;
    case CEK__STAGE_ACTIVATION:
    case CEK__STAGE_ADD: return lower_pass(l, stage, dy);
    case CEK__STAGE_POOL: return lower_pool(l, stage, dy);
    case CEK__STAGE_DROPOUT: return lower_dropout(l, stage, dy);
    default: return lower_reorder(l, stage, dy);
    }
out:
    return st;
}

cek_status cek__lower_backward(cek__lowering *l)
{
    for (int i = l->stages->count; i-- > 0;) {
        const cek__stage *stage = &l->stages->stage[i];
        cek_status st;

        if (!l->stages->tensor[stage->output].needs_gradient)
            continue;
        st = lower_stage(l, stage);
        if (st != CEK_OK)
            return st;
    }
    return CEK_OK;
}
