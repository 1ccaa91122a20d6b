/* join.h - a part of fuse.h: chains that follow each other become one, which passes over memory once. */
#ifndef CEK_NN_GRAPH_JOIN_H
#define CEK_NN_GRAPH_JOIN_H

#include "nn/graph/graph.h"

/* The places of parts are theirs and the readers of flows counted (graph.h); both hold afterwards, and whoever was
 * taken in stands nowhere in the sequence. */
void cek__chains_join(cek__graph *graph);

#endif
