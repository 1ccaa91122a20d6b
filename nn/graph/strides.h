/* strides.h - where the elements of a flow lie. Pure arithmetic. */
#ifndef CEK_NN_GRAPH_STRIDES_H
#define CEK_NN_GRAPH_STRIDES_H

#include "nn/graph/graph.h"

/* The axes from the outermost in memory to the innermost. False where one axis is channels and pixels at once, so that no order
 * of axes tells how it lies: `order` is then that of the axes. */
bool cek__axes_order(const cek__dims *dims, cek__image image, int order[CEK_RANK_MAX]);

/* By axis, in elements. */
void cek__strides(const cek__flow *flow, int64_t samples, int64_t strides[CEK_RANK_MAX]);

/* The axis of x under axis i of y, which x is broadcast to; -1: x has one element along it. */
int cek__axis_under(const cek__dims *x, const cek__dims *y, int i);

#endif
