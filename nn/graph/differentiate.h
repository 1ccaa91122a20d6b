/* differentiate.h - the backward pass, made of the same parts: from a loss to the gradients of all
 * parameters before it. */
#ifndef CEK_NN_GRAPH_DIFFERENTIATE_H
#define CEK_NN_GRAPH_DIFFERENTIATE_H

#include "nn/graph/graph.h"

typedef struct cek__backward {
    cek__graph *graph;
    int *of; /* by flow: the gradient so far; CEK__NOTHING before anybody gave one */
    int flows;
} cek__backward;

/* Appends the parts behind graph->loss and lists graph->gradients. Errors: CEK_UNSUPPORTED names a part that has no
 * gradient; CEK_INVALID a parameter that the loss does not depend on; CEK_OUT_OF_MEMORY. */
CEK__SHARED CEK__CHECKED cek_status cek__differentiate(cek__graph *graph);

/* Adds `gradient` to that of `flow`, which needs one; else nothing happens. For the parts. */
CEK__CHECKED cek_status cek__contribute(cek__backward *to, int flow, int gradient);

#endif
