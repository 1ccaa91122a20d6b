/* norms.h - what is normalised over axes of a sample: centred values by the root of their mean square,
 * PyTorch's biased variance.
 *
 * `gamma` and `beta` (CEK__NOTHING: none) are the factor and what is added behind it. Samples are never mixed, so
 * nothing here knows padding.
 * Must not know: the model. */
#ifndef CEK_NN_LAYERS_NORMS_H
#define CEK_NN_LAYERS_NORMS_H

#include "nn/graph/graph.h"

/* (x - mean) / sqrt(variance + eps) over the axes in the mask; gamma and beta are broadcast to x. */
CEK__SHARED CEK__CHECKED cek_status cek__layer_norm(cek__graph *graph, int x, uint32_t axes, double eps, int gamma,
                                                    int beta, int *out);
/* x / sqrt(mean square + eps) */
CEK__SHARED CEK__CHECKED cek_status cek__rms_norm(cek__graph *graph, int x, uint32_t axes, double eps, int gamma,
                                                  int *out);
/* x [N,C,...]: over what a group of channels has in a sample; gamma and beta [C].
 * Errors: CEK_INVALID: channels that are no whole groups. */
CEK__SHARED CEK__CHECKED cek_status cek__group_norm(cek__graph *graph, int x, int64_t groups, double eps, int gamma,
                                                    int beta, int *out);
/* Over what one channel has in a sample. */
CEK__SHARED CEK__CHECKED cek_status cek__instance_norm(cek__graph *graph, int x, double eps, int gamma, int beta,
                                                       int *out);

#endif
