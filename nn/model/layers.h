/* layers.h - what every kind of layer is called, which shapes it takes and gives, which parameters it has and which parts it
 * is composed of: one table.
 *
 * A new layer is a line of that table and a builder in model.c.
 * Must not know: devices, gradients, how a model stores its nodes and parameters (model.c). */
#ifndef CEK_NN_MODEL_LAYERS_H
#define CEK_NN_MODEL_LAYERS_H

#include "nn/graph/graph.h"
#include "nn/model/model.h"

/* A parameter that a layer wants; its name is the node's position and this suffix. */
typedef struct cek__parameter_form {
    const char *suffix;
    int rank;
    int64_t shape[4];
    double fan_in; /* PyTorch's default initialisation is uniform in +-1/sqrt(fan_in), for the bias too */
} cek__parameter_form;

typedef struct cek__layer_class {
    const char *name;
    /* Fills in node->shape from the inputs'. Errors (CEK_INVALID) say what does not
     * fit, with the shapes; the caller puts the layer's name in front. */
    cek_status (*infer)(cek__node *node, const cek__node *const inputs[2]);
    /* The parameters, weight before bias; returns how many. NULL: none. */
    int (*parameters)(const cek__node *node, const cek__node *input, cek__parameter_form out[2]);
    /* Adds its parts, which read the flows x and, of the parameters, w; *out is what the layer gives. NULL: the input, which
     * compose.c adds. */
    cek_status (*compose)(const cek__node *node, cek__graph *graph, const int x[2], const int w[2], int *out);
    /* "3x3, stride 2": what the summary says behind the name. NULL: nothing. */
    void (*describe)(const cek__node *node, char *text, size_t cap);
} cek__layer_class;

const cek__layer_class *cek__layer_class_of(cek__layer layer);

/* "relu"; NULL for an unknown one. */
const char *cek__activation_name(cek_activation activation);

#endif
