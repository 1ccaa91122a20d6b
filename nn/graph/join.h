/* join.h - a part of fuse.h: chains that follow each other become one, which passes over memory once. */
#ifndef CEK_NN_GRAPH_JOIN_H
#define CEK_NN_GRAPH_JOIN_H

#include "nn/graph/graph.h"

/* The places of parts are theirs and the readers of flows counted (graph.h), and still are afterwards: where somebody
 * was who was taken in, nothing stands (CEK__NOTHING). */
void cek__chains_join(cek__graph *graph);

#endif
