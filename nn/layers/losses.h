/* losses.h - values of a loss, element by element or by sample, which cek__loss (nn/graph/parts.h) sums with weights.
 *
 * What is computed for one element is brought to one number a sample by cek__sample_sum or cek__sample_mean.
 * Must not know: the model. */
#ifndef CEK_NN_LAYERS_LOSSES_H
#define CEK_NN_LAYERS_LOSSES_H

#include "nn/graph/graph.h"

/* ---- element by element: x, target -> v ---- */

CEK__SHARED CEK__CHECKED cek_status cek__l1(cek__graph *graph, int x, int target, int *out);
CEK__SHARED CEK__CHECKED cek_status cek__squared_difference(cek__graph *graph, int x, int target, int *out);
/* d^2 / (2 beta) where d = |x - target| is below beta > 0, else d - beta/2 */
CEK__SHARED CEK__CHECKED cek_status cek__smooth_l1(cek__graph *graph, int x, int target, double beta, int *out);
/* The cross-entropy of sigmoid(x) and target, that of targets weighed by `positive`: no logarithm of what is
 * rounded to 0. */
CEK__SHARED CEK__CHECKED cek_status cek__binary_cross_entropy(cek__graph *graph, int x, int target, double positive,
                                                              int *out);
/* target (ln target - x), where x is a logarithm; 0 where target is */
CEK__SHARED CEK__CHECKED cek_status cek__kl_divergence(cek__graph *graph, int x, int target, int *out);

/* ---- by sample ---- */

/* Over all axes but that of the samples, the first: [N]. */
CEK__SHARED CEK__CHECKED cek_status cek__sample_sum(cek__graph *graph, int v, int *out);
CEK__SHARED CEK__CHECKED cek_status cek__sample_mean(cek__graph *graph, int v, int *out);
/* ---- by row of logits [...,classes]: [...] ---- */

/* Against a probability for each class. */
CEK__SHARED CEK__CHECKED cek_status cek__soft_cross_entropy(cek__graph *graph, int logits, int target, int *out);

typedef struct cek__class_options {
    bool logs;        /* what is given are logarithms of probabilities already */
    double smoothing; /* so much of a row's target is spread evenly over all classes */
    int weights;      /* a flow [classes], or CEK__NOTHING */
    bool ignores;
    int32_t ignored; /* with `ignores`: rows with this label count for nothing */
} cek__class_options;

/* Against labels, i32: the values as PyTorch sums them, weights and all. *weights: those of the rows, by whose sum
 * PyTorch divides; CEK__NOTHING where they are all 1. */
CEK__SHARED CEK__CHECKED cek_status cek__class_cross_entropy(cek__graph *graph, int logits, int labels,
                                                             const cek__class_options *options, int *out, int *weights);
/* How many rows have the largest score where their label says, but for what is ignored: *part, which gives no flow. */
CEK__CHECKED cek_status cek__class_hits(cek__graph *graph, int scores, int labels, const cek__class_options *options,
                                        int *part);

#endif
