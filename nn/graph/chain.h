/* chain.h - the derivative of a chain of instructions, which is a chain. */
#ifndef CEK_NN_GRAPH_CHAIN_H
#define CEK_NN_GRAPH_CHAIN_H

#include "nn/graph/graph.h"

/* The gradient of input n of the chain `p`, before broadcasting is undone, as a part that is ready to be added. It reads `dy`,
 * inputs of p that it must, and p's own result. No instructions: it is dy itself; no inputs: it is zero.
 * Errors: CEK_UNSUPPORTED: it takes more inputs or instructions than a chain has; an instruction without a derivative. */
CEK__CHECKED cek_status cek__chain_back(const cek__part *p, int n, int dy, cek__part *back);

#endif
