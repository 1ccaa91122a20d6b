/* fuse.h - after physical.h: which parts become one operation.
 *
 * What every device can do is taken into the part: a bias added to a product or convolution, the sum of what a gradient
 * of weights reads, a gradient that is added to another in its place, a product that is added to what is cut out of
 * another, as a recurrent layer's steps are. What some cannot, activations and their
 * derivatives, becomes a follower: lower.h asks the device. Other chains that follow each other are one (join.h). */
#ifndef CEK_NN_GRAPH_FUSE_H
#define CEK_NN_GRAPH_FUSE_H

#include "nn/graph/fold.h"

/* folding: of a prediction (fold.h), between what every device can do and followers; NULL: nothing is known ahead.
 * Errors: CEK_OUT_OF_MEMORY. */
CEK__SHARED CEK__CHECKED cek_status cek__fuse(cek__graph *graph, const cek__folding *folding);

#endif
