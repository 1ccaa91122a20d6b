/* layer.h - how a layer adds itself to a model: parts of the graph, parameters, and one node for all of it.
 *
 *     cek__layer l;
 *     CEK_TRY(cek__layer_begin(&l, model, "linear", 1, &input));
 *     CEK_TRY(cek__layer_parameter(&l, "weight", 2, shape, fan_in, &w));
 *     ... parts of l.graph, which read l.x and w and give y ...
 * out:
 *     return cek__layer_end(&l, st, y, node);
 *
 * All or nothing: where anything failed, the model is as it was before. */
#ifndef CEK_NN_MODEL_LAYER_H
#define CEK_NN_MODEL_LAYER_H

#include "nn/graph/parts.h"
#include "nn/model/model.h"

typedef struct cek__layer {
    cek_model *model; /* NULL until begin has said yes */
    cek__graph *graph;
    int x[CEK__NODE_INPUTS]; /* flows of the inputs */
    cek__dims in;            /* of the first */
    cek__node node;          /* that is being made */
    cek__graph_mark mark;
    size_t parameters, buffers;
    uint64_t buffer_elements, constant_elements;
    int target, loss, hits; /* of the model, before */
    bool whole_names;       /* suffixes are names */
} cek__layer;

/* begin - Errors: CEK_INVALID: an input that is no node. */
CEK__CHECKED cek_status cek__layer_begin(cek__layer *layer, cek_model *model, const char *kind, int inputs,
                                         const int *input);
/* The node is called that, as another program's file has it: any text, and not after a scope. Its parameters and
 * buffers have names of their own, which are given for suffixes. */
CEK__CHECKED cek_status cek__layer_call(cek__layer *layer, const char *name);
/* Of rank `rank`, zero until it is initialised; its name is the node's and this suffix. *flow is what parts read. */
CEK__CHECKED cek_status cek__layer_parameter(cek__layer *layer, const char *suffix, int rank, const int64_t *shape,
                                             double fan_in, int *flow);
/* The same, each element `value` when it is initialised. */
CEK__CHECKED cek_status cek__layer_filled(cek__layer *layer, const char *suffix, int rank, const int64_t *shape,
                                          double value, int *flow);
/* The same of what nothing differentiates: reads *flow what it is. contribute - in training it becomes (1 - momentum)
 * times what it is and momentum times what v is, for each run. One has one contribution at most. */
CEK__CHECKED cek_status cek__layer_buffer(cek__layer *layer, const char *suffix, int rank, const int64_t *shape,
                                          double value, int *flow);
CEK__CHECKED cek_status cek__layer_contribute(cek__layer *layer, int buffer, int v, double momentum);
/* The same of an array that never changes and that state dicts do not have; values[shape] are copied. */
CEK__CHECKED cek_status cek__layer_constant(cek__layer *layer, int rank, const int64_t *shape, const float *values,
                                            int *flow);
/* What batches have as targets, which a model has once: CEK_I32 or CEK_F32, of these dims. */
CEK__CHECKED cek_status cek__layer_target(cek__layer *layer, cek_dtype type, const cek__dims *dims, int *flow);
/* Appends to what the summary says behind the name; what does not fit is left out. */
void cek__layer_note(cek__layer *layer, const char *fmt, ...) CEK__PRINTF(2, 3);
/* end - after everything went well (`st` CEK_OK) or something did not: `flow` is what the node gives, *node its number,
 * -1 on failure (`node` may be NULL). Gives back the failure with the node's name in front. */
CEK__CHECKED cek_status cek__layer_end(cek__layer *layer, cek_status st, int flow, int *node);

#endif
