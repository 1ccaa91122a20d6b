/* activations.h - functions of one element, each a chain of its own: values and gradients as PyTorch's, corners
 * too. NaN passes.
 *
 * Must not know: the model. */
#ifndef CEK_NN_LAYERS_ACTIVATIONS_H
#define CEK_NN_LAYERS_ACTIVATIONS_H

#include "nn/graph/graph.h"

CEK__SHARED CEK__CHECKED cek_status cek__gelu(cek__graph *graph, int x, int *out);
/* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
CEK__SHARED CEK__CHECKED cek_status cek__gelu_tanh(cek__graph *graph, int x, int *out);
CEK__SHARED CEK__CHECKED cek_status cek__silu(cek__graph *graph, int x, int *out);
/* x where it is positive, else slope x */
CEK__SHARED CEK__CHECKED cek_status cek__leaky_relu(cek__graph *graph, int x, double slope, int *out);
/* What is outside of [low, high] becomes its nearer end. The ends belong to it: their gradient is 1. */
CEK__SHARED CEK__CHECKED cek_status cek__clip(cek__graph *graph, int x, double low, double high, int *out);
/* The same from 0 to 6, whose gradient is 0 at either. */
CEK__SHARED CEK__CHECKED cek_status cek__relu6(cek__graph *graph, int x, int *out);
/* x where it is positive, else alpha (exp(x) - 1) */
CEK__SHARED CEK__CHECKED cek_status cek__elu(cek__graph *graph, int x, double alpha, int *out);
/* ln(1 + exp(beta x)) / beta, and x where beta x is above 20 */
CEK__SHARED CEK__CHECKED cek_status cek__softplus(cek__graph *graph, int x, double beta, int *out);
/* x clip(x + 3, 0, 6) / 6 */
CEK__SHARED CEK__CHECKED cek_status cek__hard_swish(cek__graph *graph, int x, int *out);
/* clip(x + 3, 0, 6) / 6 */
CEK__SHARED CEK__CHECKED cek_status cek__hard_sigmoid(cek__graph *graph, int x, int *out);

#endif
