/* lower.c - descriptors and instructions that forward and backward have in common (see lower.h). */
#include "nn/model/lower.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "nn/model/layers.h"

void cek__lower_at(cek__lowering *l, const cek__stage *stage, const char *pass)
{
    snprintf(l->program->where, sizeof l->program->where, "node %d (%s)%s", stage->node,
             cek__layer_class_of(l->model->nodes[stage->node].layer)->name, pass);
}

cek_status cek__lower_value(cek__lowering *l, int64_t elements, int *out)
{
    uint64_t bytes = (uint64_t)l->options->rows * (uint64_t)elements * cek_dtype_bytes(l->layout->type);

    return cek__program_value(l->program, (cek__value){ .place = CEK__PLACE_ARENA, .bytes = bytes }, out);
}

cek_status cek__lower_pointwise(cek__lowering *l, uint32_t code, int a, int b, int64_t elements, int out)
{
    cek_dtype type = l->layout->type;
    uint32_t inputs = b == CEK__NO_VALUE ? 1 : 2;
    cek_pointwise_input input[2] = { { .type = type, .strides = { 1 } }, { .type = type, .strides = { 1 } } };
    cek_pointwise_instruction instruction = { .code = code, .b = inputs - 1 };
    cek_pointwise_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_POINTWISE },
        .rank = 1,
        .out_type = type,
        .shape = { (uint64_t)l->options->rows * (uint64_t)elements },
        .out_strides = { 1 },
        .inputs = input,
        .instructions = &instruction,
        .input_count = inputs,
        .input_size = sizeof *input,
        .instruction_count = 1,
        .instruction_size = sizeof instruction,
    };

    return cek__program_emit(
        l->program, &desc.op,
        (int[CEK__SLOTS]){ [CEK_POINTWISE_IN0] = a, [CEK_POINTWISE_IN1] = b, [CEK_POINTWISE_OUT] = out }, 0);
}

cek_status cek__lower_reorder(cek__lowering *l, const cek__shape *image, bool back, int from, int to)
{
    uint64_t c = (uint64_t)image->dim[0], hw = (uint64_t)(image->dim[1] * image->dim[2]);
    /* [row][c][hw] through both orders. */
    int64_t device[3] = { (int64_t)(c * hw), 1, (int64_t)c }, user[3] = { (int64_t)(c * hw), (int64_t)hw, 1 };
    cek_copy_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_COPY },
        .rank = 3,
        .x_type = l->layout->type,
        .y_type = l->layout->type,
        .shape = { (uint64_t)l->options->rows, c, hw },
    };

    memcpy(desc.x_strides, back ? user : device, sizeof user);
    memcpy(desc.y_strides, back ? device : user, sizeof user);
    return cek__program_emit(l->program, &desc.op, (int[CEK__SLOTS]){ [CEK_COPY_X] = from, [CEK_COPY_Y] = to }, 0);
}

void cek__lower_conv_desc(const cek__lowering *l, const cek__stage *stage, uint32_t kind, cek_conv_desc *out)
{
    const cek__node *node = &l->model->nodes[stage->node];
    const cek_conv2d_layer *c = &node->conv;
    const int64_t *in = l->model->nodes[node->input[0]].shape.dim;

    *out = (cek_conv_desc){
        .op = { .size = sizeof *out, .kind = kind },
        .spatial = 2,
        .groups = c->groups,
        .batch = (uint64_t)l->options->rows,
        .in_channels = (uint64_t)in[0],
        .out_channels = c->out_channels,
        .in = { (uint64_t)in[1], (uint64_t)in[2] },
        .kernel = { c->kernel_h, c->kernel_w },
        .stride = { c->stride_h, c->stride_w },
        .dilation = { c->dilation_h, c->dilation_w },
        .pad_lo = { c->pad_h, c->pad_w },
        .pad_hi = { c->pad_h, c->pad_w },
        .x_type = l->layout->type,
        .w_type = l->layout->type,
        .y_type = l->layout->type,
    };
}

void cek__lower_pool_desc(const cek__lowering *l, const cek__stage *stage, uint32_t kind, cek_pool_desc *out)
{
    const cek__node *node = &l->model->nodes[stage->node];
    const cek_pool2d_layer *p = &node->pool;
    const int64_t *in = l->model->nodes[node->input[0]].shape.dim;

    *out = (cek_pool_desc){
        .op = { .size = sizeof *out, .kind = kind },
        .mode = p->mode,
        .flags = p->mode == CEK_POOL_AVERAGE ? CEK_POOL_COUNT_PAD : 0,
        .spatial = 2,
        .type = l->layout->type,
        .batch = (uint64_t)l->options->rows,
        .channels = (uint64_t)in[0],
        .in = { (uint64_t)in[1], (uint64_t)in[2] },
        .kernel = { p->kernel_h, p->kernel_w },
        .stride = { p->stride_h, p->stride_w },
        .pad_lo = { p->pad_h, p->pad_w },
        .pad_hi = { p->pad_h, p->pad_w },
    };
}

cek_status cek__lower_dropout(cek__lowering *l, const cek__stage *stage, int from, int to)
{
    double p = l->model->nodes[stage->node].dropout;
    double threshold = floor(p * 4294967296.0 + 0.5);
    cek_dropout_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_DROPOUT },
        .rows = (uint64_t)l->options->rows,
        .columns = (uint64_t)l->stages->tensor[stage->output].elements,
        .rows_per_sample = 1,
        .scale = 1 / (1 - p),
        .threshold = threshold > UINT32_MAX ? UINT32_MAX : (uint32_t)threshold,
        .stream = (uint32_t)stage->node,
        .type = l->layout->type,
    };

    return cek__program_emit(l->program, &desc.op,
                             (int[CEK__SLOTS]){ [CEK_DROPOUT_X] = from,
                                                [CEK_DROPOUT_Y] = to,
                                                [CEK_DROPOUT_STEP] = l->step,
                                                [CEK_DROPOUT_BATCH] = l->batch },
                             0);
}
