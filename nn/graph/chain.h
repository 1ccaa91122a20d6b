/* chain.h - the derivative of a chain of instructions, which is a chain, or several where one would be too long. */
#ifndef CEK_NN_GRAPH_CHAIN_H
#define CEK_NN_GRAPH_CHAIN_H

#include "nn/graph/graph.h"

/* Adds the gradient of input n of the chain `p`, before broadcasting is undone. It reads `dy`, inputs of p that it
 * must, and p's own result. *out is dy itself where nothing is to be done, no flow where the result does not depend
 * on the input.
 * Errors: CEK_UNSUPPORTED: an instruction that is unknown; CEK_OUT_OF_MEMORY. */
CEK__CHECKED cek_status cek__chain_back(cek__graph *graph, const cek__part *p, int n, int dy, int *out);

/* Three instructions more: the chain gives 0 for what is padding. */
void cek__chain_leave_out(cek__part *chain);

#endif
