/* lower.c - descriptors and values that forward and backward share. */
#include "nn/model/lower.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/alloc.h"
#include "nn/model/layers.h"

cek_status cek__lower_open(cek__lowering *l)
{
    cek_status st;
    size_t tensors = (size_t)l->stages->tensor_count, stages = (size_t)l->stages->count + 1;

    CEK_TRY(cek__calloc(tensors, sizeof *l->value, &l->value));
    CEK_TRY(cek__calloc(tensors, sizeof *l->gradient, &l->gradient));
    CEK_TRY(cek__calloc(stages, sizeof *l->input_of, &l->input_of));
    CEK_TRY(cek__calloc(stages, sizeof *l->reserve, &l->reserve));
    CEK_TRY(cek__calloc(stages, sizeof *l->forward, &l->forward));
    CEK_TRY(cek__program_value(l->program, (cek__value){ .place = CEK__PLACE_STEP, .bytes = sizeof(cek_step_block) }, &l->step));
    CEK_TRY(cek__program_value(l->program, (cek__value){ .place = CEK__PLACE_BATCH, .bytes = sizeof(cek_batch_block) },
                               &l->batch));
    return CEK_OK;
out:
    return st;
}

void cek__lower_close(cek__lowering *l)
{
    free(l->value);
    free(l->gradient);
    free(l->input_of);
    free(l->reserve);
    free(l->forward);
    *l = (cek__lowering){ 0 };
}

void cek__lower_at(cek__lowering *l, int node)
{
    snprintf(l->program->where, sizeof l->program->where, "node %d (%s)", node,
             cek__layer_class_of(l->model->nodes[node].layer)->name);
}

static uint64_t unit(const cek__lowering *l)
{
    return cek_dtype_bytes(l->layout->type);
}

cek_status cek__lower_arena(cek__lowering *l, int64_t elements, int *out)
{
    cek__value v = { .place = CEK__PLACE_ARENA, .bytes = l->rows * (uint64_t)elements * unit(l) };

    return cek__program_value(l->program, v, out);
}

cek_status cek__lower_parameter(cek__lowering *l, int parameter, bool gradient, int *out)
{
    const cek__placement *place = &l->layout->placement[parameter];
    cek__value v = { .place = gradient ? CEK__PLACE_GRADIENT : CEK__PLACE_PARAMETER,
                     .bucket = place->bucket,
                     .offset = place->first * unit(l),
                     .bytes = place->count * unit(l) };

    return cek__program_value(l->program, v, out);
}

cek_status cek__lower_pointwise(cek__lowering *l, uint32_t code, int a, int b, int out, int64_t elements)
{
    cek_pointwise_input inputs[2] = { { .type = l->layout->type, .strides = { 1 } },
                                      { .type = l->layout->type, .strides = { 1 } } };
    cek_pointwise_instruction instruction = { .code = code, .a = 0, .b = b ? 1 : 0 };
    int operands[CEK__SLOTS] = { [CEK_POINTWISE_IN0] = a, [CEK_POINTWISE_IN1] = b, [CEK_POINTWISE_OUT] = out };
    cek_pointwise_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_POINTWISE },
        .rank = 1,
        .out_type = l->layout->type,
        .shape = { l->rows * (uint64_t)elements },
        .out_strides = { 1 },
        .inputs = inputs,
        .instructions = &instruction,
        .input_count = b ? 2 : 1,
        .input_size = sizeof *inputs,
        .instruction_count = 1,
        .instruction_size = sizeof instruction,
    };

    return cek__program_emit(l->program, &desc.op, operands, 0);
}

cek_conv_desc cek__lower_conv_desc(const cek__lowering *l, const cek__stage *stage, uint32_t kind)
{
    const cek__node *node = &l->model->nodes[stage->node];
    const cek__shape *in = &l->model->nodes[node->input[0]].shape;
    const cek_conv2d_layer *c = &node->conv;
    cek_dtype type = l->layout->type;

    return (cek_conv_desc){
        .op = { .size = sizeof(cek_conv_desc), .kind = kind },
        .spatial = 2,
        .groups = c->groups,
        .batch = l->rows,
        .in_channels = (uint64_t)in->dim[0],
        .out_channels = c->out_channels,
        .in = { (uint64_t)in->dim[1], (uint64_t)in->dim[2] },
        .kernel = { c->kernel_h, c->kernel_w },
        .stride = { c->stride_h, c->stride_w },
        .dilation = { c->dilation_h, c->dilation_w },
        .pad_lo = { c->pad_h, c->pad_w },
        .pad_hi = { c->pad_h, c->pad_w },
        .x_type = type,
        .w_type = type,
        .y_type = type,
    };
}

cek_pool_desc cek__lower_pool_desc(const cek__lowering *l, const cek__stage *stage, uint32_t kind)
{
    const cek__node *node = &l->model->nodes[stage->node];
    const cek__shape *in = &l->model->nodes[node->input[0]].shape;
    const cek_pool2d_layer *p = &node->pool;

    return (cek_pool_desc){
        .op = { .size = sizeof(cek_pool_desc), .kind = kind },
        .mode = p->mode,
        .flags = p->mode == CEK_POOL_AVERAGE ? CEK_POOL_COUNT_PAD : 0,
        .spatial = 2,
        .type = l->layout->type,
        .batch = l->rows,
        .channels = (uint64_t)in->dim[0],
        .in = { (uint64_t)in->dim[1], (uint64_t)in->dim[2] },
        .kernel = { p->kernel_h, p->kernel_w },
        .stride = { p->stride_h, p->stride_w },
        .pad_lo = { p->pad_h, p->pad_w },
        .pad_hi = { p->pad_h, p->pad_w },
    };
}

cek_dropout_desc cek__lower_dropout_desc(const cek__lowering *l, const cek__stage *stage)
{
    double p = l->model->nodes[stage->node].dropout;

    return (cek_dropout_desc){
        .op = { .size = sizeof(cek_dropout_desc), .kind = CEK_OP_DROPOUT },
        .rows = l->rows,
        .columns = (uint64_t)l->stages->tensor[stage->output].elements,
        .rows_per_sample = 1,
        .scale = 1 / (1 - p),
        .threshold = (uint32_t)fmin(floor(p * 4294967296.0 + 0.5), UINT32_MAX),
        .stream = (uint32_t)stage->node,
        .type = l->layout->type,
    };
}

cek_copy_desc cek__reorder_desc(const cek__shape *image, uint64_t rows, cek_dtype type, bool back)
{
    int64_t c = image->dim[0], h = image->dim[1], w = image->dim[2];
    cek_copy_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_COPY },
        .rank = 4,
        .x_type = type,
        .y_type = type,
        .shape = { rows, (uint64_t)c, (uint64_t)h, (uint64_t)w },
    };
    const int64_t device[4] = { h * w * c, 1, w * c, c }, plain[4] = { c * h * w, h * w, w, 1 };

    for (int i = 0; i < 4; i++) {
        desc.x_strides[i] = back ? plain[i] : device[i];
        desc.y_strides[i] = back ? device[i] : plain[i];
    }
    return desc;
}
