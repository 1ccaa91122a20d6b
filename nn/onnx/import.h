/* import.h - what the two halves of importing share: a model that is being made of an ONNX file. */
#ifndef CEK_NN_ONNX_IMPORT_H
#define CEK_NN_ONNX_IMPORT_H

#include "cekernels/nn.h"
#include "nn/onnx/call.h"

enum { CEK__IMPORT_NAME_SHOWN = 200 };

typedef struct cek__onnx_reading {
    cek__onnx_import shared;
    const cek_onnx_options *options;
    int *nodes;   /* of the model, for each value; -1: none */
    bool *needed; /* of each node of the file: the output depends on it */
} cek__onnx_reading;

/* The inputs that the output depends on, in the file's order; makes the model. */
CEK__CHECKED cek_status cek__onnx_inputs_add(cek__onnx_reading *i);
/* Tells the arithmetic of shapes what a value's is, whose flow is there; `scalar`: it has no axes. */
CEK__CHECKED cek_status cek__onnx_shape_tell(cek__onnx_reading *i, int value, bool scalar);

#endif
