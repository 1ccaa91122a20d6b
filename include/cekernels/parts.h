/* SPDX-License-Identifier: MIT
 *
 * parts.h - the differentiable parts that layers are composed of: for layers and losses of one's own.
 *
 *     // squeeze and excitation: x * sigmoid(linear(relu(linear(mean of each channel))))
 *     int s = cek_part_reduce(m, x, CEK_REDUCE_MEAN, 1 << 2 | 1 << 3, false);       // [N,C]
 *     cek_model_linear(m, s, channels / 16, true, &s);
 *     s = cek_part_apply(m, CEK_PW_RELU, s, -1);
 *     cek_model_linear(m, s, channels, true, &s);
 *     s = cek_part_apply(m, CEK_PW_SIGMOID, s, -1);
 *     s = cek_part_reshape(m, s, 4, (int64_t[]){ CEK_SAMPLES, channels, 1, 1 });
 *     y = cek_part_apply(m, CEK_PW_MUL, x, s);
 *
 * Their gradients are derived, so what is composed of them can be trained, over any devices and in any split.
 *
 * A part takes nodes (numbers, as of the layers in nn.h) and returns the node that it gives, or -1. The first failure
 * stays with the model: parts that are given its -1, or that of a layer that failed, fail in turn, cek_model_status
 * says what it was, and no trainer or predictor is made of such a model. (A layer that fails says so by its status
 * alone.) So a composition is written as an expression and looked at once, at its end.
 *
 * Shapes are PyTorch's, with the samples: [N,C,H,W]. How many samples there are is not known when a model is built, and
 * written as CEK_SAMPLES; 3 * CEK_SAMPLES is an axis of 3 for each sample. Nothing may mix samples but cek_part_loss;
 * what would is refused.
 */
#ifndef CEKERNELS_PARTS_H
#define CEKERNELS_PARTS_H

#include <cekernels/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { CEK_SAMPLES = -1 };

/* The first failure of a part, again: its status and text; CEK_OK. */
CEK_API CEK_CHECKED cek_status cek_model_status(const cek_model *model);
/* The shape of what a node gives, CEK_SAMPLES among it; the rank, 0 of no node. */
CEK_API int cek_model_shape(const cek_model *model, int node, int64_t shape[CEK_RANK_MAX]);
/* What a prediction gives and what the losses of nn.h compare with the targets. Where nobody says, it is the last node
 * that was added before cek_part_target, or at all. Errors: CEK_INVALID: no node. */
CEK_API CEK_CHECKED cek_status cek_model_set_output(cek_model *model, int node);
/* That node; -1 of a model without any. */
CEK_API int cek_model_output(const cek_model *model);

/* ---- what a network reads -------------------------------------------------------------------- */

typedef struct cek_parameter_options {
    uint32_t size;
    int32_t rank;         /* 1 to 4 */
    const int64_t *shape; /* [rank]; without samples */
    double fan_in;        /* cek_model_init draws from +-1/sqrt(fan_in), uniformly; 0: each is `value` */
    double value;
} cek_parameter_options;
/* Its name is the node's, a dot and `name`; where that is "", the node's alone. It is zero until cek_model_init. */
CEK_API int cek_part_parameter(cek_model *model, const char *name, const cek_parameter_options *options);
/* What the batches hold, [N, shape] with the shape of one sample, of 1 to 5 axes. It is called `name` and takes no
 * position among layers. CEK_F32: data, which the network sees in the type that is computed in, whatever the batches
 * have (u8 or f32), scaled (cek_model_set_input_scale); of three axes they are images, which batches and data sets hold
 * channels last. CEK_I32: whole numbers, as they come: what names rows of a table. A model has CEK_INPUTS_MOST at most,
 * that of cek_model_create (not with rank
 * 0) as the first; batches have an array for each (cek_batch.arrays). */
CEK_API int cek_part_input(cek_model *model, const char *name, cek_dtype type, int rank, const int64_t *shape);
/* A parameter that is there already, of a part or of a layer, by its whole name (cek_parameter.name): for what is tied.
 * It is one parameter, whose gradient is the sum over all who read it, with one name, saved once; a file may have it
 * under others too (cek_model_load). Of a language model's head:
 *     y = cek_part_matmul(m, x, cek_part_shared(m, "wte.weight"), true);
 * Errors: CEK_NOT_FOUND. */
CEK_API int cek_part_shared(cek_model *model, const char *name);
/* What the batches have as targets, for a loss of one's own, [N, shape]: CEK_I32: labels, with rank 0 one for each
 * sample, with {T} one for each of T words; CEK_F32: values. A model has one at most. */
CEK_API int cek_part_target(cek_model *model, cek_dtype type, int rank, const int64_t *shape);
/* One number. */
CEK_API int cek_part_constant(cek_model *model, double value);
/* An array that never changes and is in no state dict; values[shape] are copied. */
CEK_API int cek_part_array(cek_model *model, int rank, const int64_t *shape, const float *values);
/* Random numbers [N, shape], other ones for each sample and step, the same on every device and in any split:
 * CEK_RANDOM_UNIFORM from a to b, or CEK_RANDOM_NORMAL of mean a and deviation b. Where the model is not
 * trained, their mean. */
CEK_API int cek_part_random(cek_model *model, int rank, const int64_t *shape, uint32_t distribution, double a,
                            double b);

/* ---- element by element ---------------------------------------------------------------------- */

/* Inputs are broadcast as in NumPy: aligned at their last axes, those of size 1 repeated. */

/* One instruction of plugin.h (CEK_PW_EXP, CEK_PW_ADD, ...) of one operand (b = -1) or two, and no number. */
CEK_API int cek_part_apply(cek_model *model, uint32_t code, int a, int b);
/* x * scale + offset */
CEK_API int cek_part_scale(cek_model *model, int x, double scale, double offset);
/* Up to CEK_POINTWISE_INSTRUCTIONS in one pass over memory: values 0 to count - 1 are the nodes, each instruction gives
 * the next; the last one is the result. 1 to 8 nodes. */
CEK_API int cek_part_chain(cek_model *model, int count, const int *nodes, int instructions,
                           const cek_pointwise_instruction *code);
/* The same numbers as CEK_F32, CEK_I32, or CEK_DTYPE_NONE: the type that is computed in. */
CEK_API int cek_part_cast(cek_model *model, int x, cek_dtype type);

/* ---- axes ------------------------------------------------------------------------------------ */

CEK_API int cek_part_reshape(cek_model *model, int x, int rank, const int64_t *shape);
/* Axis i of the result is axis order[i] of x; as many as x has. */
CEK_API int cek_part_permute(cek_model *model, int x, const int *order);
/* `count` elements from `first` on. */
CEK_API int cek_part_slice(cek_model *model, int x, int axis, int64_t first, int64_t count);
/* lo[i] and hi[i] elements of `value` at the ends of axis i; below 0: so many fewer. */
CEK_API int cek_part_pad(cek_model *model, int x, const int64_t *lo, const int64_t *hi, double value);
CEK_API int cek_part_concat(cek_model *model, int count, const int *nodes, int axis);
/* CEK_REDUCE_SUM, MEAN, MAX, MIN or SUM_SQUARES over the axes in the mask (bit i: axis i); `keep`: with size 1, else
 * they fall away. The gradient of a maximum goes in equal parts to all that are it, as torch.amax has it. */
CEK_API int cek_part_reduce(cek_model *model, int x, uint32_t function, uint32_t axes, bool keep);
/* x's elements again along axes of which it has one, or which it lacks in front: [N,1,4] to [N,3,4]. */
CEK_API int cek_part_expand(cek_model *model, int x, int rank, const int64_t *shape);
/* CEK_ARG_MAX or CEK_ARG_MIN: where along an axis the largest or smallest element lies, CEK_I32 without that axis; of
 * equal ones the first. No gradient goes through it. */
CEK_API int cek_part_arg(cek_model *model, int x, uint32_t function, int axis);
/* The rows of `table` that an index of CEK_I32 names. The first `batch` axes of both count tables: table [batch..,
 * rows, columns..] and index [batch.., which..] give [batch.., which.., columns..]. Of logarithms [N,classes] those of
 * labels [N] with batch 1; words of a table [words,width] by an index [N,T] with 0. What names no row gives NaN,
 * and no gradient. */
CEK_API int cek_part_gather(cek_model *model, int table, int index, int batch);

/* ---- made of several ------------------------------------------------------------------------- */

/* The layers of layers.h take nodes and give nodes too; these are for expressions. */

/* Along an axis, below 0 from the last one: -1. */
CEK_API int cek_part_softmax(cek_model *model, int x, int axis);
CEK_API int cek_part_log_softmax(cek_model *model, int x, int axis);
/* (x - mean) / sqrt(variance + epsilon) over the axes in the mask, without the samples. */
CEK_API int cek_part_normalise(cek_model *model, int x, uint32_t axes, double epsilon);
typedef struct cek_attention_part {
    uint32_t size;
    uint32_t heads; /* 0 = 1 */
    bool causal;    /* step t sees steps 0 to t alone */
    bool masked;    /* `mask` is a node that is added to the scores [N,heads,T,S], to which it is broadcast */
    uint8_t reserved[2];
    int mask;
    double scale; /* of the scores; 0: 1 / sqrt(E / heads) */
} cek_attention_part;
/* q [N,T,E], k [N,S,E], v [N,S,F] give [N,T,F]: for each head the softmax over S of scale q k^T, times v.
 * NULL: one head. */
CEK_API int cek_part_attention(cek_model *model, int q, int k, int v, const cek_attention_part *options);

/* ---- products and windows -------------------------------------------------------------------- */

/* [.., n, k] by [.., k, m], or by [.., m, k] where `transposed`. Leading axes are equal, or b has two axes. */
CEK_API int cek_part_matmul(cek_model *model, int a, int b, bool transposed);

typedef struct cek_windows {
    uint32_t size;
    uint32_t groups;                                             /* of convolutions; 0 = 1 */
    uint32_t kernel[CEK_SPATIAL_MAX];                            /* of pools; one entry for each axis behind N,C */
    uint32_t stride[CEK_SPATIAL_MAX], dilation[CEK_SPATIAL_MAX]; /* 0 = 1; a pool's stride 0 = its kernel */
    uint32_t pad_lo[CEK_SPATIAL_MAX], pad_hi[CEK_SPATIAL_MAX];
} cek_windows;
/* x [N,C,..], w [out, C / groups, kernel..]; NULL: stride 1, no padding. */
CEK_API int cek_part_conv(cek_model *model, int x, int w, const cek_windows *windows);
/* CEK_POOL_MAX, or CEK_POOL_AVERAGE, whose padding counts as zeros unless `valid`; windows may have gaps (dilation). */
CEK_API int cek_part_pool(cek_model *model, int x, uint32_t mode, bool valid, const cek_windows *windows);

/* What a node of cek_model_lstm or cek_model_gru has behind its last step, [N, layers * directions, H], the second
 * direction of a layer behind its first: the states (PyTorch's h_n, with the samples first), or the cells of
 * an LSTM (c_n). */
typedef enum cek_state { CEK_STATE_HIDDEN = 0, CEK_STATE_CELL = 1 } cek_state;
CEK_API int cek_part_state(cek_model *model, int node, cek_state which);

/* ---- training -------------------------------------------------------------------------------- */

/* Elements are 0 with probability p and x / (1 - p) else, in training; x otherwise. */
CEK_API int cek_part_dropout(cek_model *model, int x, double p);
/* One node where the model is trained, another where it is not; equal shapes. */
CEK_API int cek_part_phase(cek_model *model, int training, int evaluation);
/* A loss of one's own: v [N] or [N,..], summed over all samples, and divided by their number; with weights w of v's
 * shape (-1: none) v w is summed where w is not 0. What a trainer with the loss CEK_LOSS_OWN minimises; a model has one
 * at most. Batches have labels where it reads no target. Returns v, or -1. */
CEK_API int cek_part_loss(cek_model *model, int v, int w);

#ifdef __cplusplus
}
#endif

#endif /* CEKERNELS_PARTS_H */
