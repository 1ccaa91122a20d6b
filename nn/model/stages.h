/* stages.h - a model as the steps that a device would do: what is fused, left out and moved, before
 * any device is asked.
 *
 * Flatten, and dropout in evaluation, are no steps: their output is their input. An activation joins the convolution or
 * linear layer before it. Nodes that do not lead to the output are left out.
 * Must not know: devices, ops, memory. */
#ifndef CEK_NN_MODEL_STAGES_H
#define CEK_NN_MODEL_STAGES_H

#include "nn/model/graph.h"

typedef enum cek__stage_kind {
    CEK__STAGE_CONV,
    CEK__STAGE_LINEAR,
    CEK__STAGE_ACTIVATION,
    CEK__STAGE_POOL,
    CEK__STAGE_DROPOUT,
    CEK__STAGE_ADD,
    CEK__STAGE_REORDER /* H,W,C to PyTorch's C,H,W */
} cek__stage_kind;

typedef struct cek__stage {
    cek__stage_kind kind;
    int node; /* of the model: geometry, parameters, name */
    int inputs;
    int input[2]; /* tensors */
    int output;
    cek_activation activation; /* of ACTIVATION; of CONV and LINEAR: follows within, if the device can */
} cek__stage;

/* What flows between stages. */
typedef struct cek__flow {
    int64_t elements;    /* of one sample */
    cek__shape image;    /* as cek__node.image */
    int readers;         /* stages, and the loss or whoever takes the output */
    bool needs_gradient; /* a parameter lies before it */
} cek__flow;

typedef struct cek__stages {
    int count;
    cek__stage *stage;
    int tensor_count;
    cek__flow *tensor; /* [0] is the input */
    int output;        /* tensor, in PyTorch's order */
} cek__stages;

/* Errors: CEK_INVALID when training a model with a node that does not lead to the output. */
cek_status cek__stages_build(const cek_model *model, bool training, cek__stages *out);
void cek__stages_clear(cek__stages *stages); /* a zeroed one is accepted */

#endif
