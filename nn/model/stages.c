/* stages.c - from nodes to stages (see stages.h).
 *
 * ReLU before max-pooling changes places with it when training. The two commute exactly: ReLU is
 * monotone, so the maximum of its results is its result for the maximum, NaN included. Gradients
 * agree too: where the maximum is positive, the first place that attains it is the same before and
 * after ReLU; where it is not, both orders send zero. After the pool there are fewer elements (a
 * quarter, for 2x2), the convolution's output need not be kept, and ReLU's gradient can ride in the
 * epilogue of the next layer's. In evaluation it stays where it is: fused with the convolution it
 * costs nothing. */
#include "nn/model/stages.h"

#include <stdlib.h>

#include "core/base/alloc.h"
#include "core/base/status.h"
#include "nn/model/layers.h"

typedef struct builder {
    const cek_model *model;
    bool training;
    cek__stages *out;
    bool *live;    /* by node: leads to the output */
    int *source;   /* by node: the node whose output it passes on; itself if it computes something */
    int *readers;  /* by node that is its own source */
    int *tensor;   /* by node: tensor of its output */
    int *producer; /* by tensor: stage that writes it, -1 for the input */
    int *delayed;  /* by node: the relu node that was moved behind the pool reading it, 0 = none */
} builder;

/* The node passes its input on as it is. */
static bool is_view(const builder *b, const cek__node *node)
{
    return node->layer == CEK__LAYER_FLATTEN ||
           (node->layer == CEK__LAYER_DROPOUT && (!b->training || node->dropout == 0));
}

static void survey(builder *b)
{
    const cek_model *model = b->model;
    int last = model->node_count - 1;

    b->live[last] = true;
    for (int i = last; i > 0; i--)
        for (int k = 0; b->live[i] && k < model->nodes[i].inputs; k++)
            b->live[model->nodes[i].input[k]] = true;
    for (int i = 0; i < model->node_count; i++) {
        const cek__node *node = &model->nodes[i];
        bool view = is_view(b, node);

        b->source[i] = view ? b->source[node->input[0]] : i;
        for (int k = 0; b->live[i] && !view && k < node->inputs; k++)
            b->readers[b->source[node->input[k]]]++;
    }
    b->readers[b->source[last]]++;
}

/* ---- adding ---- */

static int tensor_add(builder *b, int64_t elements, const cek__shape *image, int producer, int readers)
{
    cek__stages *s = b->out;

    s->tensor[s->tensor_count] = (cek__flow){ .elements = elements, .image = *image, .readers = readers };
    b->producer[s->tensor_count] = producer;
    return s->tensor_count++;
}

/* Appends a stage with an output of its own; returns the tensor. */
static int stage_add(builder *b, cek__stage stage, int64_t elements, const cek__shape *image, int readers)
{
    cek__stages *s = b->out;
    bool needs = stage.kind == CEK__STAGE_CONV || stage.kind == CEK__STAGE_LINEAR;

    for (int k = 0; k < stage.inputs; k++)
        needs |= s->tensor[stage.input[k]].needs_gradient;
    stage.output = tensor_add(b, elements, image, s->count, readers);
    s->tensor[stage.output].needs_gradient = needs;
    s->stage[s->count++] = stage;
    return stage.output;
}

/* The tensor in PyTorch's order: a reorder stage where that differs from the device's. */
static int plain(builder *b, int node, int tensor)
{
    cek__flow *t = &b->out->tensor[tensor];
    const cek__shape none = { 0 };

    if (!cek__image_reordered(&t->image))
        return tensor;
    return stage_add(b, (cek__stage){ .kind = CEK__STAGE_REORDER, .node = node, .inputs = 1, .input = { tensor } },
                     t->elements, &none, 1);
}

/* ---- activations ---- */

/* The one node that reads node i's output, if it is a pool that ReLU should follow. */
static bool delay_relu(builder *b, int i)
{
    const cek_model *model = b->model;

    if (!b->training || model->nodes[i].activation != CEK_ACT_RELU || b->readers[i] != 1)
        return false;
    for (int k = i + 1; k < model->node_count; k++) {
        const cek__node *node = &model->nodes[k];

        if (!b->live[k] || node->inputs < 1 || node->input[0] != i)
            continue;
        if (node->layer != CEK__LAYER_POOL || node->pool.mode != CEK_POOL_MAX ||
            cek__shape_elements(&node->shape) >= cek__shape_elements(&model->nodes[i].shape))
            return false;
        b->delayed[k] = i;
        return true;
    }
    return false;
}

static int activation_stage(builder *b, int i, int tensor, int readers)
{
    const cek__flow *in = &b->out->tensor[tensor];
    int64_t elements = in->elements;
    cek__shape image = in->image;

    return stage_add(b,
                     (cek__stage){ .kind = CEK__STAGE_ACTIVATION,
                                   .node = i,
                                   .inputs = 1,
                                   .input = { tensor },
                                   .activation = b->model->nodes[i].activation },
                     elements, &image, readers);
}

static int activation_add(builder *b, int i)
{
    const cek__node *node = &b->model->nodes[i];
    int before = b->source[node->input[0]];
    int tensor = b->tensor[before];
    cek__stage *producer = b->producer[tensor] < 0 ? NULL : &b->out->stage[b->producer[tensor]];
    /* Backward through GELU reads its input, which a fused one does not leave behind. */
    bool keep_input = b->training && node->activation == CEK_ACT_GELU;

    if (delay_relu(b, i))
        return tensor;
    if (!producer || (producer->kind != CEK__STAGE_CONV && producer->kind != CEK__STAGE_LINEAR) ||
        producer->activation != CEK_ACT_NONE || b->readers[before] != 1 || keep_input)
        return activation_stage(b, i, tensor, b->readers[i]);
    producer->activation = node->activation;
    b->out->tensor[tensor].readers = b->readers[i];
    return tensor;
}

/* ---- the other layers ---- */

static int add_add(builder *b, int i)
{
    const cek__node *node = &b->model->nodes[i];
    int in[2];

    for (int k = 0; k < 2; k++) {
        in[k] = b->tensor[node->input[k]];
        if (node->image.rank == 0)
            in[k] = plain(b, i, in[k]);
    }
    return stage_add(b, (cek__stage){ .kind = CEK__STAGE_ADD, .node = i, .inputs = 2, .input = { in[0], in[1] } },
                     cek__shape_elements(&node->shape), &node->image, b->readers[i]);
}

static int layer_add(builder *b, int i, cek__stage_kind kind)
{
    const cek__node *node = &b->model->nodes[i];
    int relu = b->delayed[i];
    int tensor = stage_add(b,
                           (cek__stage){ .kind = kind, .node = i, .inputs = 1, .input = { b->tensor[node->input[0]] } },
                           cek__shape_elements(&node->shape), &node->image, relu ? 1 : b->readers[i]);

    return relu ? activation_stage(b, relu, tensor, b->readers[i]) : tensor;
}

static int node_lower(builder *b, int i)
{
    const cek__node *node = &b->model->nodes[i];

    if (b->source[i] != i)
        return b->tensor[node->input[0]];
    switch (node->layer) {
    case CEK__LAYER_CONV: return layer_add(b, i, CEK__STAGE_CONV);
    case CEK__LAYER_LINEAR: return layer_add(b, i, CEK__STAGE_LINEAR);
    case CEK__LAYER_POOL: return layer_add(b, i, CEK__STAGE_POOL);
    case CEK__LAYER_DROPOUT: return layer_add(b, i, CEK__STAGE_DROPOUT);
    case CEK__LAYER_ACTIVATION: return activation_add(b, i);
    case CEK__LAYER_ADD: return add_add(b, i);
    default: return tensor_add(b, cek__shape_elements(&node->shape), &node->image, -1, b->readers[i]); /* the input */
    }
}

static cek_status builder_alloc(builder *b)
{
    cek_status st;
    size_t nodes = (size_t)b->model->node_count;
    /* a node gives at most itself and, before it, two reorders; one more for the output */
    size_t tensors = 4 * nodes + 1;

    CEK_TRY(cek__calloc(nodes, sizeof *b->live, &b->live));
    CEK_TRY(cek__calloc(nodes, sizeof *b->source, &b->source));
    CEK_TRY(cek__calloc(nodes, sizeof *b->readers, &b->readers));
    CEK_TRY(cek__calloc(nodes, sizeof *b->tensor, &b->tensor));
    CEK_TRY(cek__calloc(nodes, sizeof *b->delayed, &b->delayed));
    CEK_TRY(cek__calloc(tensors, sizeof *b->producer, &b->producer));
    CEK_TRY(cek__calloc(tensors, sizeof *b->out->stage, &b->out->stage));
    CEK_TRY(cek__calloc(tensors, sizeof *b->out->tensor, &b->out->tensor));
    return CEK_OK;
out:
    return st;
}

cek_status cek__stages_build(const cek_model *model, bool training, cek__stages *out)
{
    cek_status st;
    builder b = { .model = model, .training = training, .out = out };

    *out = (cek__stages){ 0 };
    CEK_TRY(builder_alloc(&b));
    survey(&b);
    for (int i = 0; i < model->node_count; i++) {
        if (b.live[i] || i == 0)
            b.tensor[i] = node_lower(&b, i);
        else if (training)
            CEK_FAIL(CEK_INVALID,
                     "node %d (%s) does not lead to the output, which is node %d, "
                     "and cannot be trained",
                     i, cek__layer_class_of(model->nodes[i].layer)->name, model->node_count - 1);
    }
    out->output = plain(&b, model->node_count - 1, b.tensor[model->node_count - 1]);
    st = CEK_OK;
out:
    free(b.live);
    free(b.source);
    free(b.readers);
    free(b.tensor);
    free(b.delayed);
    free(b.producer);
    if (st != CEK_OK)
        cek__stages_clear(out);
    return st;
}

void cek__stages_clear(cek__stages *stages)
{
    free(stages->stage);
    free(stages->tensor);
    *stages = (cek__stages){ 0 };
}
