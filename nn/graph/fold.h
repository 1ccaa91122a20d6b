/* fold.h - of a prediction, what follows from weights alone, and what of the parts behind a product goes into them.
 *
 * Must not know: who computes ahead what comes first, and how often. */
#ifndef CEK_NN_GRAPH_FOLD_H
#define CEK_NN_GRAPH_FOLD_H

#include "nn/graph/graph.h"

/* How far weights are seen through. */
typedef struct cek__folding {
    bool scales;         /* what multiplies and adds by channels goes into the weights before it: other roundings */
    const bool *divided; /* by parameter: it lies in pieces, which products alone read; NULL: none does */
} cek__folding;

/* fold - a pass of evaluation, after types.h. Parts that depend on parameters, buffers and constants alone are marked
 * `known` and come first in the sequence, which changes no result. With `scales`, a chain that alone reads a product or
 * a convolution and gives a y + b, with a and b of its channels (a normalisation in evaluation, a bias), becomes the
 * product of weights that are multiplied by a, with another bias; both are known.
 * Of products of n terms and chains of i instructions it differs from what stood there by at most
 * 2 (n + i + 2) u (|a| (sum |x w| + |c|) + |d|), where u is the unit of rounding of the type that is computed in, c all
 * that is added before a multiplies (a bias, less the mean) and d what is added behind. Integers, too, are not exact.
 * Weights of which products read copies in bf16 are multiplied before they are rounded, once, as without it; what they
 * give is rounded once where without it each part's is. Those in f16 stay, which has not the range of products.
 * Readers are counted afterwards, and parts numbered. Errors: CEK_OUT_OF_MEMORY. */
CEK__SHARED CEK__CHECKED cek_status cek__fold(cek__graph *graph, const cek__folding *folding);

#endif
