/* strides.h - where the elements of a flow lie. Pure arithmetic.
 *
 * What is permuted or cut out of another flow lies within it, and so does what is added to a cut: its strides are that
 * one's. */
#ifndef CEK_NN_GRAPH_STRIDES_H
#define CEK_NN_GRAPH_STRIDES_H

#include "nn/graph/graph.h"

/* The axes from the outermost in memory to the innermost. False where one axis is channels and pixels at once, so that
 * no order of axes tells how it lies: `order` is then that of the axes. */
bool cek__axes_order(const cek__dims *dims, cek__image image, int order[CEK_RANK_MAX]);

/* By axis, in elements, of a flow that has an order of axes. */
void cek__strides(const cek__graph *graph, int flow, int64_t samples, int64_t strides[CEK_RANK_MAX]);
/* Whether it has: strides tell how it lies. */
bool cek__has_strides(const cek__graph *graph, int flow);
/* Elements from the first of what a part reads to the first of its strided output. */
int64_t cek__strided_first(const cek__graph *graph, const cek__part *part, int64_t samples);
/* Whether both name the same elements, looking at axes of more than one. */
bool cek__strides_equal(const cek__dims *dims, int64_t samples, const int64_t *a, const int64_t *b);

/* The axis of x under axis i of y, which x is broadcast to; -1: x has one element along it. */
int cek__axis_under(const cek__dims *x, const cek__dims *y, int i);

#endif
