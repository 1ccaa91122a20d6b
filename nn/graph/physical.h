/* physical.h - how each flow lies in memory: images with their channels last, all else in the order of its axes.
 *
 * A pass over a whole graph, backward included, that asks no device: a mask and a sum never depend on one. A view of an
 * image costs nothing; who needs another order gets a reorder before it. A parameter lies as its first
 * reader wants it. */
#ifndef CEK_NN_GRAPH_PHYSICAL_H
#define CEK_NN_GRAPH_PHYSICAL_H

#include "nn/graph/graph.h"

/* Errors: CEK_OUT_OF_MEMORY. */
CEK__SHARED CEK__CHECKED cek_status cek__physical(cek__graph *graph);

/* For the parts: input k lies so from here on. */
CEK__CHECKED cek_status cek__want(cek__graph *graph, int part, int k, cek__image image);
/* Input k lies in an order of its axes, whichever: it is read by its strides. */
CEK__CHECKED cek_status cek__want_strides(cek__graph *graph, int part, int k);
/* So input 0; what is given lies in the order of its axes. */
cek_status cek__place_strided(cek__graph *graph, int part);
/* All inputs in the order of their axes, and so the outputs. */
cek_status cek__place_plain(cek__graph *graph, int part);
/* What dims of an image lie as when they are made of x: as an image if x does, else in the order of their axes. */
cek__image cek__image_like(const cek__flow *x, const cek__dims *dims);
/* Output 0 lies as input 0. */
cek_status cek__place_same(cek__graph *graph, int part);

#endif
