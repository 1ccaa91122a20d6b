/* normalise.h - a chain that makes its input's mean 0 and its variance 1, and its gradient, given as a whole.
 *
 * Left to the rules of the instructions, the ways over mean and variance are twenty passes over memory instead of
 * three. */
#ifndef CEK_NN_GRAPH_NORMALISE_H
#define CEK_NN_GRAPH_NORMALISE_H

#include "nn/graph/differentiate.h"

/* (x - mean) rest [weight + bias], with mean and rest = 1 / sqrt(variance + epsilon) of x [N,C,..] over all axes but
 * C, padding left out; all but x are [C,1,..], weight and bias 0 where there is none. */
CEK__SHARED CEK__CHECKED cek_status cek__normalise(cek__graph *graph, int x, int mean, int rest, const int affine[2],
                                                   int *out);

/* The gradients of x, weight and bias, those of x through mean and rest too. */
CEK__CHECKED cek_status cek__normalise_back(cek__backward *to, int part, int dy);

#endif
