/* call.h - one node of an ONNX file on its way to parts: what the function of its operator reads, and what it gives.
 *
 * Owns: which of a file's values are flows of the model's graph. An operator's function reads its inputs as flows, or
 * as numbers that are known while the file is read, adds parts and gives the flows of the outputs.
 * What it refuses is CEK_UNSUPPORTED with the cause alone; file, node and operator are put before it (import.c).
 * Must not know: how a file is read. */
#ifndef CEK_NN_ONNX_CALL_H
#define CEK_NN_ONNX_CALL_H

#include "nn/formats/onnx_fold.h"
#include "nn/model/layer.h"

struct cek__onnx_call;

typedef struct cek__onnx_import {
    const cek__onnx *onnx;
    cek_model *model;
    cek__fold fold;
    int *flows;    /* of each value; CEK__NOTHING: none so far */
    int *readers;  /* of each value: how often it is read by what the output depends on */
    int *types;    /* of each value; 0: nobody has asked (cek__onnx_type_of) */
    bool whole;    /* no axis counts samples: one sample is all that the file has as a batch */
    int64_t batch; /* where one does: how many the file has, 1 of any number */
    bool fixed;    /* they are a number in the file, and reshapes may have it among their sizes */
    int within;    /* nodes that are being computed for others, of weights alone */
    /* The flow of what a node gives that reads nothing but weights and constants. */
    cek_status (*weight_compute)(struct cek__onnx_call *call, int value, int *flow);
} cek__onnx_import;

enum { CEK__CALL_EXACT = 1 << 24 /* integers up to here are floats */ };
enum { CEK__CALL_OUTPUTS = 16, CEK__CALL_LIST = 64, CEK__CALL_WITHIN = 64 /* nodes, one behind the other */ };

typedef struct cek__onnx_call {
    cek__onnx_import *import;
    const cek__onnx_node *node;
    uint32_t argument; /* of the operator's line in the table */
    cek__layer layer;
    cek__graph *graph;
    int out[CEK__CALL_OUTPUTS]; /* flows; CEK__NOTHING: nobody may read it */
    bool scalar;                /* the first has no axes in the file; to begin with, whether no input has any */
} cek__onnx_call;

/* ---- inputs ---- */

bool cek__call_has(const cek__onnx_call *c, size_t input);
/* A flow: what a node gave; a weight of several numbers, which is a parameter if all of them are finite and else a
 * buffer; a constant. What the file says of a weight (cek__onnx_role) counts more. What is computed of weights alone is
 * computed when it runs, so that they can be trained. Integers are i32: CEK_UNSUPPORTED where one is too large. */
CEK__CHECKED cek_status cek__call_flow(cek__onnx_call *c, size_t input, int *flow);
/* The same, of which a single number is a parameter too. */
CEK__CHECKED cek_status cek__call_weight(cek__onnx_call *c, size_t input, int *flow);
/* A buffer of this node alone, of what is a weight of the file, under its name there; a weight that others read too
 * stays theirs, and the buffer is called as the node's output, and `suffix` behind it. */
CEK__CHECKED cek_status cek__call_buffer(cek__onnx_call *c, size_t input, const char *suffix, int *flow);
/* What is known while the file is read. CEK_UNSUPPORTED where it is not. */
CEK__CHECKED cek_status cek__call_known(cek__onnx_call *c, size_t input, const cek__fold_value **out);
/* The same, as integers without the batch, at most CEK__CALL_LIST. */
CEK__CHECKED cek_status cek__call_integers(cek__onnx_call *c, size_t input, int64_t *list, int *count);
/* One number that is known; *known false: it is not. */
CEK__CHECKED cek_status cek__call_number(cek__onnx_call *c, size_t input, double *number, bool *known);

/* ---- attributes ---- */

int64_t cek__call_int(const cek__onnx_call *c, const char *name, int64_t otherwise);
double cek__call_float(const cek__onnx_call *c, const char *name, double otherwise);
/* Which word of a list, that ends with NULL, a text is; the first where there is none. CEK_BAD_INPUT: it is another. */
CEK__CHECKED cek_status cek__call_word(const cek__onnx_call *c, const char *name, const char *const *words, int *out);
/* *count -1: there is none of that name. */
CEK__CHECKED cek_status cek__call_ints(const cek__onnx_call *c, const char *name, int64_t *list, int *count);

/* ---- shapes ---- */

const cek__dims *cek__call_dims(const cek__onnx_call *c, int flow);
/* Whether the file has an input without axes: flows have one, of one element, then. */
bool cek__call_scalar(const cek__onnx_call *c, size_t input);
/* An axis from 0 to below `rank`, counted from the end where it is negative. */
CEK__CHECKED cek_status cek__call_axis(int64_t axis, int rank, int *out);
/* CEK_UNSUPPORTED of an axis that counts samples: none of them is known by its place. */
CEK__CHECKED cek_status cek__call_apart(const cek__onnx_call *c, int flow, int axis);
/* The axes that a list names, as a mask. */
CEK__CHECKED cek_status cek__call_axes(const int64_t *list, int count, int rank, uint32_t *mask);
/* A chain over flows, which gives the first output. */
CEK__CHECKED cek_status cek__call_chain(cek__onnx_call *c, int inputs, const int *flows, uint32_t count,
                                        const cek_pointwise_instruction *code);

#endif
