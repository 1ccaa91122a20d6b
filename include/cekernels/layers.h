/* SPDX-License-Identifier: MIT
 *
 * layers.h - what networks are made of: layers and losses as PyTorch has them, with its names of parameters, so that
 * state dicts fit. A part of nn.h, which includes it.
 *
 *     cek_conv_layer conv = { .size = sizeof conv, .out_channels = 64, .kernel = { 3, 3 }, .same = true };
 *     cek_model_conv(model, 0, &conv, &x);                          // "0.weight", "0.bias"
 *     cek_model_batch_norm(model, x, &(cek_batch_norm_layer){ .size = sizeof(cek_batch_norm_layer) }, &x);
 *     cek_model_activation(model, x, CEK_ACT_SILU, &x);
 *     cek_model_pool_to(model, x, CEK_POOL_AVERAGE, (int64_t[]){ 1, 1 }, &x);
 *     cek_model_flatten(model, x, &x);
 *     cek_model_linear(model, x, 10, true, &x);
 *     cek_loss_options loss = { .size = sizeof loss, .kind = CEK_LOSS_CROSS_ENTROPY, .smoothing = 0.1 };
 *     cek_model_loss(model, x, &loss, NULL);                        // what the model's trainers minimise
 *
 * Each adds a node that reads node `input`; *node is its number, -1 on failure (`node` may be NULL). Shapes below are
 * PyTorch's, with the samples N, of which nothing is known when a model is built. Options that are 0 are PyTorch's
 * defaults. Errors: CEK_INVALID names the layer and the shapes; nothing was added then.
 */
#ifndef CEKERNELS_LAYERS_H
#define CEKERNELS_LAYERS_H

#include <cekernels/cekernels.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cek_model cek_model;

/* ---- linear layers and convolutions ---------------------------------------------------------- */

/* [N,in] to [N,out], or [N,T,in] to [N,T,out]: "weight" [out,in], "bias" [out]. */
CEK_API CEK_CHECKED cek_status cek_model_linear(cek_model *model, int input, int64_t out, bool bias, int *node);

/* One entry for each axis behind N,C, of which there are 1 to 3. */
typedef struct cek_conv_layer {
    uint32_t size;
    uint32_t out_channels;
    uint32_t kernel[CEK_SPATIAL_MAX];
    uint32_t stride[CEK_SPATIAL_MAX], dilation[CEK_SPATIAL_MAX]; /* 0 = 1 */
    uint32_t pad_lo[CEK_SPATIAL_MAX], pad_hi[CEK_SPATIAL_MAX];
    uint32_t more[CEK_SPATIAL_MAX]; /* transposed: elements at the end of each axis, PyTorch's output_padding */
    uint32_t groups;                /* 0 = 1; as many as there are channels: depthwise */
    /* As much padding as it takes for size / stride elements, rounded up; an odd one is behind; pad_.. are 0. */
    bool same;
    bool no_bias;
    uint8_t reserved[2];
} cek_conv_layer;
/* [N,C,..] to [N,out_channels,..]: "weight" [out_channels, C / groups, kernel..], "bias" [out_channels]. */
CEK_API CEK_CHECKED cek_status cek_model_conv(cek_model *model, int input, const cek_conv_layer *layer, int *node);
/* The way back of such a one, as ConvTranspose: "weight" [C, out_channels / groups, kernel..]; each axis becomes
 * (size - 1) stride - pad_lo - pad_hi + dilation (kernel - 1) + 1 + more. Not `same`. */
CEK_API CEK_CHECKED cek_status cek_model_conv_transposed(cek_model *model, int input, const cek_conv_layer *layer,
                                                         int *node);

/* cek_model_conv of images [N,C,H,W] with equal padding on both sides. */
typedef struct cek_conv2d_layer {
    uint32_t size;
    uint32_t out_channels;
    uint32_t kernel_h, kernel_w;
    uint32_t stride_h, stride_w;     /* 0 = 1 */
    uint32_t dilation_h, dilation_w; /* 0 = 1 */
    uint32_t pad_h, pad_w;
    uint32_t groups; /* 0 = 1 */
    bool no_bias;
    uint8_t reserved[3];
} cek_conv2d_layer;
CEK_API CEK_CHECKED cek_status cek_model_conv2d(cek_model *model, int input, const cek_conv2d_layer *layer, int *node);

/* ---- pools ----------------------------------------------------------------------------------- */

/* One entry for each axis behind N,C, of which there are 1 to 3. */
typedef struct cek_pool_layer {
    uint32_t size;
    uint32_t mode;                                             /* CEK_POOL_MAX or CEK_POOL_AVERAGE */
    uint32_t kernel[CEK_SPATIAL_MAX];                          /* 0 = the whole axis */
    uint32_t stride[CEK_SPATIAL_MAX];                          /* 0 = kernel */
    uint32_t pad_lo[CEK_SPATIAL_MAX], pad_hi[CEK_SPATIAL_MAX]; /* half of the kernel at most */
    bool ceil;                                                 /* sizes are rounded up (ceil_mode) */
    bool valid; /* a mean is of what is there; else padding counts as zeros (count_include_pad) */
    uint8_t reserved[2];
    uint32_t dilation[CEK_SPATIAL_MAX]; /* from one element of a window to the next; 0 = 1 */
} cek_pool_layer;
CEK_API CEK_CHECKED cek_status cek_model_pool(cek_model *model, int input, const cek_pool_layer *layer, int *node);
/* Adaptive: to size[i] elements along axis i behind N,C, each of those from floor(i in / size) to before ceil((i + 1)
 * in / size). */
CEK_API CEK_CHECKED cek_status cek_model_pool_to(cek_model *model, int input, uint32_t mode, const int64_t *size,
                                                 int *node);

/* cek_model_pool of images [N,C,H,W] with equal padding on both sides, which counts. */
typedef struct cek_pool2d_layer {
    uint32_t size;
    uint32_t mode;
    uint32_t kernel_h, kernel_w; /* 0 = the whole image */
    uint32_t stride_h, stride_w; /* 0 = kernel */
    uint32_t pad_h, pad_w;
} cek_pool2d_layer;
CEK_API CEK_CHECKED cek_status cek_model_pool2d(cek_model *model, int input, const cek_pool2d_layer *layer, int *node);

/* ---- element by element ---------------------------------------------------------------------- */

/* Kinds beside those of plugin.h (CEK_ACT_RELU, _TANH, _SIGMOID, _GELU), made of them. */
enum {
    CEK_ACT_GELU_TANH = 100,   /* GELU(approximate="tanh") */
    CEK_ACT_SILU = 101,        /* x sigmoid(x) */
    CEK_ACT_LEAKY_RELU = 102,  /* x where it is positive, else slope x */
    CEK_ACT_RELU6 = 103,       /* 0 to 6 */
    CEK_ACT_CLIP = 104,        /* low to high (Hardtanh), whose gradient is 1 at either */
    CEK_ACT_ELU = 105,         /* x where it is positive, else alpha (exp(x) - 1) */
    CEK_ACT_SOFTPLUS = 106,    /* ln(1 + exp(beta x)) / beta, and x where beta x is above 20 */
    CEK_ACT_HARD_SWISH = 107,  /* x clip(x + 3, 0, 6) / 6 */
    CEK_ACT_HARD_SIGMOID = 108 /* clip(x + 3, 0, 6) / 6 */
};
CEK_API CEK_CHECKED cek_status cek_model_activation(cek_model *model, int input, cek_activation kind, int *node);
typedef struct cek_activation_layer {
    uint32_t size;
    cek_activation kind;
    double slope;     /* LEAKY_RELU; 0 = 0.01 */
    double alpha;     /* ELU; 0 = 1 */
    double beta;      /* SOFTPLUS; 0 = 1 */
    double low, high; /* CLIP; 0, 0 = -1, 1 */
} cek_activation_layer;
CEK_API CEK_CHECKED cek_status cek_model_activation_with(cek_model *model, int input, const cek_activation_layer *layer,
                                                         int *node);
/* x where it is positive, else x times a slope that is learnt, from 0.25 on: "weight" [slopes]. There is 1, or one for
 * each channel (axis 1). */
CEK_API CEK_CHECKED cek_status cek_model_prelu(cek_model *model, int input, uint32_t slopes, int *node);
/* In training each element is 0 with probability p and x / (1 - p) else; otherwise x. */
CEK_API CEK_CHECKED cek_status cek_model_dropout(cek_model *model, int input, double p, int *node);
/* a + b, equal shapes */
CEK_API CEK_CHECKED cek_status cek_model_add(cek_model *model, int a, int b, int *node);
/* [N,..] to [N,features] */
CEK_API CEK_CHECKED cek_status cek_model_flatten(cek_model *model, int input, int *node);
/* Over any axis but that of the samples; axes below 0 count from the last one, -1. */
CEK_API CEK_CHECKED cek_status cek_model_softmax(cek_model *model, int input, int axis, int *node);
CEK_API CEK_CHECKED cek_status cek_model_log_softmax(cek_model *model, int input, int axis, int *node);

/* ---- normalisations -------------------------------------------------------------------------- */

typedef struct cek_batch_norm_layer {
    uint32_t size;
    bool no_affine; /* neither weight nor bias */
    uint8_t reserved[3];
    double epsilon;  /* 0 = 1e-5 */
    double momentum; /* 0 = 0.1: the weight of the newest statistics in the running ones */
} cek_batch_norm_layer;
/* Of [N,C,..]: each channel to mean 0 and variance 1 over its group of samples (cek_trainer_options.norm_group) and
 * what is behind C, then times its weight plus its bias; in evaluation by the running statistics, which are buffers. */
CEK_API CEK_CHECKED cek_status cek_model_batch_norm(cek_model *model, int input, const cek_batch_norm_layer *layer,
                                                    int *node);

typedef struct cek_norm_layer {
    uint32_t size;
    uint32_t axes;   /* LayerNorm, RMSNorm: the last so many, PyTorch's normalized_shape; 0 = 1 */
    uint32_t groups; /* GroupNorm: they divide the channels; 0 = 1 */
    bool no_affine;  /* neither weight nor bias; PyTorch's default for InstanceNorm alone */
    bool no_bias;
    uint8_t reserved[2];
    double epsilon; /* 0 = 1e-5; of RMSNorm 2^-23 */
} cek_norm_layer;
/* Within each sample, in training and evaluation alike: to mean 0 and variance 1, times "weight" plus "bias".
 * layer_norm: over the last axes; weight and bias have their shape. rms_norm: there divided by the root of the mean
 * square; it has no bias. group_norm: [N,C,..], over the channels of a group and all behind C; instance_norm: over all
 * behind C; weight and bias [C]. */
CEK_API CEK_CHECKED cek_status cek_model_layer_norm(cek_model *model, int input, const cek_norm_layer *layer,
                                                    int *node);
CEK_API CEK_CHECKED cek_status cek_model_rms_norm(cek_model *model, int input, const cek_norm_layer *layer, int *node);
CEK_API CEK_CHECKED cek_status cek_model_group_norm(cek_model *model, int input, const cek_norm_layer *layer,
                                                    int *node);
CEK_API CEK_CHECKED cek_status cek_model_instance_norm(cek_model *model, int input, const cek_norm_layer *layer,
                                                       int *node);

/* ---- sequences ------------------------------------------------------------------------------- */

/* [N,..] to [N,..,width]: the rows of "weight" [count,width] that whole numbers name, i32 or rounded to it; what names
 * no row gives NaN. cek_model_init draws it from the normal distribution, as PyTorch does. */
CEK_API CEK_CHECKED cek_status cek_model_embedding(cek_model *model, int input, int64_t count, int64_t width,
                                                   int *node);

typedef struct cek_embedding_layer {
    uint32_t size;
    bool pads; /* row `padding` is that of places without a word (padding_idx) */
    uint8_t reserved[3];
    int64_t count, width;
    int64_t padding; /* of 2^24 rows at most */
} cek_embedding_layer;
/* The same. The row of padding begins with zeros, and what it gives does not train it; weight decay does, and whoever
 * else reads the table, such as a tied output. */
CEK_API CEK_CHECKED cek_status cek_model_embedding_with(cek_model *model, int input, const cek_embedding_layer *layer,
                                                        int *node);

typedef struct cek_attention_layer {
    uint32_t size;
    uint32_t heads; /* they divide E */
    bool causal;    /* step t sees steps 0 to t alone */
    bool no_bias;
    uint8_t reserved[6];
} cek_attention_layer;
/* MultiheadAttention(batch_first=True): query [N,T,E], key [N,S,..], value [N,S,..] to [N,T,E]. `mask`: a node that is
 * added to the scores [N,heads,T,S], to which it is broadcast (-INFINITY: is not seen); -1: none. "in_proj_weight"
 * [3E,E], where key and value are of another width than E "q_proj_weight", "k_proj_weight" and "v_proj_weight" instead;
 * "in_proj_bias" [3E], "out_proj.weight" [E,E], "out_proj.bias" [E]. */
CEK_API CEK_CHECKED cek_status cek_model_attention(cek_model *model, int query, int key, int value, int mask,
                                                   const cek_attention_layer *layer, int *node);

typedef struct cek_recurrent_layer {
    uint32_t size;
    uint32_t hidden; /* H */
    uint32_t layers; /* 0 = 1; at most 100 */
    bool bidirectional;
    bool no_bias;
    uint8_t reserved[2];
} cek_recurrent_layer;
/* LSTM(batch_first=True), GRU(batch_first=True): [N,T,D] to [N,T,H], bidirectional [N,T,2H], from states of 0. For
 * layer k "weight_ih_lk", "weight_hh_lk", "bias_ih_lk", "bias_hh_lk", and those with "_reverse" behind. What is left
 * behind the last step of each layer and direction: cek_part_state. Each step becomes parts of its own, so that making
 * a trainer or predictor takes longer with T: a second at some thousand steps. */
CEK_API CEK_CHECKED cek_status cek_model_lstm(cek_model *model, int input, const cek_recurrent_layer *layer, int *node);
CEK_API CEK_CHECKED cek_status cek_model_gru(cek_model *model, int input, const cek_recurrent_layer *layer, int *node);

/* ---- losses ---------------------------------------------------------------------------------- */

typedef uint32_t cek_loss;
enum {
    CEK_LOSS_CROSS_ENTROPY = 1,
    CEK_LOSS_MSE = 2,
    CEK_LOSS_OWN = 3, /* of a trainer: the one that the model has, by cek_model_loss or cek_part_loss */
    /* These and the first two of cek_model_loss: */
    CEK_LOSS_NLL = 100,                  /* cross-entropy of logarithms of probabilities (cek_model_log_softmax) */
    CEK_LOSS_SOFT_CROSS_ENTROPY = 101,   /* against a probability for each class */
    CEK_LOSS_BINARY_CROSS_ENTROPY = 102, /* of sigmoid(x), each element against a probability (BCEWithLogitsLoss) */
    CEK_LOSS_L1 = 103,
    CEK_LOSS_SMOOTH_L1 = 104,
    CEK_LOSS_KL = 105 /* target (ln target - x), where x is a logarithm (KLDivLoss) */
};
typedef struct cek_loss_options {
    uint32_t size;
    cek_loss kind;
    const float *weights; /* CROSS_ENTROPY, NLL: [classes], copied; NULL: 1 each */
    double smoothing;     /* CROSS_ENTROPY: so much of a target, 0 to 1, is spread evenly over all classes */
    double beta;          /* SMOOTH_L1: where the square ends, above 0; 0 = 1 */
    double positive;      /* BINARY_CROSS_ENTROPY: what targets of 1 weigh, above 0; 0 = 1 */
    int32_t ignored;      /* with `ignores`, CROSS_ENTROPY, NLL: samples with this label count for nothing */
    bool ignores;
    bool sums;   /* the values of a sample are summed, not averaged ("batchmean"); not CROSS_ENTROPY, NLL */
    bool weighs; /* `sample_weights` is there */
    uint8_t reserved[1];
    int sample_weights; /* with `weighs`: a node of one value for each sample (an input, say), or of *node's shape, of
                         * any sign and type: losses times these are summed, and divided by what they are without
                         * them; gradients go through them */
} cek_loss_options;
/* cek_model_loss - adds what batches have as targets, and a loss that compares node `input` with them: what trainers of
 * the model minimise (cek_trainer_options.loss = 0); the node is what a prediction gives, unless cek_model_set_output
 * said otherwise. CROSS_ENTROPY and NLL: input [N,..,classes], targets labels [N,..], of which none may lie outside of
 * the classes but the ignored one (nor that in a data set: it goes by batches). The classes come last: from images
 * [N,classes,H,W] cek_part_permute brings them there. The others: targets values of the input's shape, in the order of
 * its axes, of images too: channels first. The loss is the mean over all elements (SOFT_CROSS_ENTROPY: rows); with
 * weights or an ignored label the sum by what the labels of the whole batch weigh, on however many devices: batches in
 * which they weigh nothing are refused (CEK_BAD_INPUT). *node: the loss of each sample or row.
 * Errors: CEK_INVALID (shapes, options, a model that has a loss or targets already). */
CEK_API CEK_CHECKED cek_status cek_model_loss(cek_model *model, int input, const cek_loss_options *options, int *node);

#ifdef __cplusplus
}
#endif

#endif /* CEKERNELS_LAYERS_H */
