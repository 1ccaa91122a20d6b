/* simplify.h - before the graph is differentiated: what can be left out or done with less. */
#ifndef CEK_NN_GRAPH_SIMPLIFY_H
#define CEK_NN_GRAPH_SIMPLIFY_H

#include "nn/graph/graph.h"

/* In evaluation dropout passes its input on, as it does with p = 0; when training, ReLU before a max-pool comes behind
 * it. What nobody reads is left out. */
CEK__SHARED void cek__simplify(cek__graph *graph, bool training);

#endif
