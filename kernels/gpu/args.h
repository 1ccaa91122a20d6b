/* SPDX-License-Identifier: MIT
 *
 * args.h - the plain numbers that kernels get, one struct per family; read by the host's compiler and by the device's.
 *
 * Every struct begins with the byte offset of each buffer in its memory. All zero means "nothing to do": a kernel then
 * touches no memory. Sizes are multiples of 8 without padding.
 */
#ifndef CEK_KERNELS_GPU_ARGS_H
#define CEK_KERNELS_GPU_ARGS_H

#ifndef CEK_DEVICE_CODE
#include <stdint.h>
typedef uint64_t cek_u64;
typedef int64_t cek_i64;
typedef uint32_t cek_u32;
typedef int32_t cek_i32;
typedef float cek_f32;
#endif

#define CEK_K_RANK 8
#define CEK_K_INPUTS 8

/* The dimensions that a number below 2^31 is taken apart by, the last one first: it is divided by size[d] as
 * number * multiplier[d] >> shift[d]. */
typedef struct cek_k_shape {
    cek_u32 size[CEK_K_RANK], multiplier[CEK_K_RANK], shift[CEK_K_RANK];
} cek_k_shape;

/* copy, pointwise: elements in blocks of WIDE along the last dimension, whose size in `shape` is that in blocks. An
 * element lies at the sum of index * stride, per operand. Of pointwise, CEK_K_INPUTS is the output; what is behind it
 * is the batch block, and its strides number the elements from `first` on: those below samples valid
 * times `sample` count. */
#define CEK_K_STRIDED (CEK_K_INPUTS + 2)
typedef struct cek_k_strided {
    cek_u64 at[CEK_K_STRIDED];
    cek_u64 count;       /* of elements */
    cek_u32 blocks, row; /* of all; elements of the last dimension */
    cek_u32 rank, batch; /* batch: whether there is such a block */
    cek_k_shape shape;
    cek_i32 stride[CEK_K_STRIDED][CEK_K_RANK];
    cek_u64 first, sample, samples; /* elements of a sample; samples in all, the last perhaps cut short */
} cek_k_strided;

/* pointwise without a compiler: the chain of instructions as numbers of plugin.h. */
#define CEK_K_INSTRUCTIONS 16
typedef struct cek_k_chain {
    cek_k_strided strided;
    cek_u32 types[CEK_K_INPUTS + 1], accumulate; /* cek_dtype, 0 where there is no input */
    cek_u32 inputs, instructions;
    cek_u32 instruction[CEK_K_INSTRUCTIONS]; /* code | a << 8 | b << 16 | c << 24 */
    cek_f32 imm[CEK_K_INSTRUCTIONS];
} cek_k_chain;

/* reduce: `outputs` results over `length` elements each. A group has `lanes` work-items for each of `results` results;
 * what is reduced is cut into pieces, each with results of its own. */
typedef struct cek_k_reduce {
    cek_u64 at[5]; /* X, Y, X2, CENTRE, BATCH */
    cek_u64 outputs, length, piece;
    cek_u32 kept_rank, reduced_rank;
    cek_k_shape kept, reduced; /* for ranks above 1 */
    cek_u64 kept_stride[CEK_K_RANK], reduced_stride[CEK_K_RANK];
    cek_u32 lanes, results;           /* powers of two */
    cek_u32 lane_shift, result_shift; /* of a work-item's number */
    cek_u32 accumulate;
    cek_f32 number; /* what a result is divided by: the length, for a mean */
    /* TERMS: the second operand's strides; rows of axis 0, and of each the terms of an output, or the outputs. */
    cek_u64 second_kept[CEK_K_RANK], second_reduced[CEK_K_RANK];
    cek_u64 rows, rows_per_sample, samples, row_count; /* samples: the last perhaps cut short */
    cek_u32 terms, unused;                             /* CEK_K_TERMS_ */
} cek_k_reduce;
#define CEK_K_TERMS_SECOND 1u
#define CEK_K_TERMS_CENTRE 2u
#define CEK_K_TERMS_BATCH 4u
#define CEK_K_TERMS_ROWS 8u     /* rows hold terms: those that do not count are none */
#define CEK_K_TERMS_OUTPUTS 16u /* rows hold outputs: those that do not count have no terms */
#define CEK_K_TERMS_MEAN 32u    /* of what counts: row_count terms a row */

/* gather, scatter_add: `elements` is what the kernel at hand has one work-item for. Of gather TABLE, INDEX, Y; of
 * scatter_add's steps INDEX, links; DTABLE; DY, INDEX, links, DTABLE. index_batch: elements of INDEX for a
 * batch, or 0. */
typedef struct cek_k_gather {
    cek_u64 at[4];
    cek_u64 elements, rows, count, columns, index_batch, first;
} cek_k_gather;

/* Windows over images, in three dimensions. */
typedef struct cek_k_window {
    cek_u32 in[3], out[3], taps[3], stride[3], dilation[3], pad[3];
} cek_k_window;

/* Results of a work-item that has several: neighbours in a row forward, a square of that side backward. */
#define CEK_K_POOL_ROW 4
#define CEK_K_POOL_SQUARE 2
#define CEK_K_POOL_PIECE 64 /* of them for a work-item of a CPU */
typedef struct cek_k_pool {
    cek_u64 at[3];               /* X or DY, Y or DX, reserve */
    cek_u64 image_in, image_out; /* elements of an image */
    cek_k_window window;
    cek_k_shape shape;  /* of the work-items of an image: positions or blocks of them, then blocks of channels */
    cek_k_shape stride; /* of the window */
    cek_u32 count;      /* work-items */
    cek_u32 channels, count_pad, reserve;
} cek_k_pool;

/* softmax, cross_entropy, squared_error: a group has `lanes` work-items for each of `group_rows` rows. */
typedef struct cek_k_rows {
    cek_u64 at[8];
    cek_u64 rows, columns, rows_per_sample, groups;
    cek_u32 log, weights, step, batch, gradient;
    cek_u32 lanes, lane_bits, group_rows; /* powers of two; lanes is 1 << lane_bits */
} cek_k_rows;

/* The sum of the groups' losses and hits, by one group of `lanes` work-items. */
typedef struct cek_k_total {
    cek_u64 at[3]; /* of each group: loss, then hits, as f32; LOSS; CORRECT */
    cek_u64 groups;
    cek_u32 loss, correct, accumulate_loss, accumulate_correct;
    cek_u32 lanes, unused;
} cek_k_total;

typedef struct cek_k_random {
    cek_u64 at[4];                            /* X, Y, STEP, BATCH */
    cek_u64 samples, sample_elements, blocks; /* blocks of four numbers per sample */
    cek_u64 elements;                         /* of all samples: the last may be cut short */
    cek_u32 threshold, stream, batch, normal;
    cek_f32 a, b; /* scale of dropout; low and high; mean and deviation */
} cek_k_random;

typedef struct cek_k_optimizer {
    cek_u64 at[9];        /* PARAM GRAD M V STATE STEP UPDATE LOW MEAN */
    cek_u64 begin, count; /* of elements */
    cek_u32 group, update, low, nesterov, decoupled, momentum_given;
    cek_f32 momentum, one_minus_dampening, epsilon, decay, one_minus_decay;
    cek_u32 centered;
} cek_k_optimizer;

/* Products: C(i,j) = sum over p of A(i,p) B(p,j); what A and B are in memory is said by the kernel's MODE: matrices,
 * whose strides are in elements, or images, whose places follow from `window` and the channels of one group. */
typedef struct cek_k_product {
    cek_u64 at[6];          /* A, B, C, BIAS, ACT_REF, partial sums */
    cek_u64 m, n, k, batch; /* batch: matrices, fewer than 2^32, or groups of a convolution */
    cek_u64 a_row, a_column, a_batch;
    cek_u64 b_row, b_column, b_batch; /* backward data: b_row is an output channel's, a tap's is in_group */
    cek_u64 c_row, c_batch, bias_batch;
    cek_u64 a_outer, b_outer, c_outer; /* of matrices: from one `inner` of them to the next */
    cek_u64 splits, split_k;           /* k is summed in `splits` pieces of split_k, which is below 2^32 */
    cek_u64 first;                     /* the number of the launch's first group */
    cek_k_window window;
    /* n / stride is the high half of 2n * multiplier, shifted by shift, for n below 2^31. */
    cek_u32 stride_multiplier[3], stride_shift[3];
    cek_u32 in_channels, out_channels, in_group, out_group;
    cek_u32 bias, accumulate, activation, act_grad;
    cek_u32 inner, unused;
} cek_k_product;

/* Tiles in registers (kernels/opencl/tile.cl); sizes and strides in elements. Where a pixel has few channels, values
 * are collected first: of a window so many at most, or of so many pixels at a time. */
#define CEK_K_GATHER_VALUES 256
#define CEK_K_GATHER_PIXELS 256
#define CEK_K_LONG_RUN 8      /* values side by side that are worth to be copied together */
#define CEK_K_FINISH_TILES 16 /* of gradients of weights, for a work-item that adds them up */
#define CEK_K_PACK_ROWS 16    /* outputs whose weights a work-item packs for the gradient of the input */

typedef struct cek_k_pack {
    cek_u64 at[2];
    cek_u64 rows, k, row, column; /* rows of A, or columns of B; from one to the next, and from one k to the next */
    cek_u64 piece;                /* of k for a work-item */
    cek_u64 inner, from_batch, from_outer; /* matrices are numbered through both levels of a batch */
} cek_k_pack;

typedef struct cek_k_tile {
    cek_u64 at[6];                      /* A, B, C, BIAS, ACT_REF, partial sums */
    cek_u64 m, n, k, row_tiles, panels; /* tiles of A and panels of B for a work-item */
    cek_u64 a_row, a_batch, b_k, b_panel, b_batch, c_row, c_column, c_batch;
    cek_u64 inner, a_outer, b_outer, c_outer; /* as in cek_k_product */
    cek_u64 splits, split_k, back;            /* back: columns by which B's last panel lies back */
    cek_u32 bias, bias_rows, accumulate, activation, act_grad, type; /* of C and ACT_REF, by its number in plugin.h */
    cek_u32 stream, unused;                                          /* stream: C is written past the caches */
} cek_k_tile;

/* The taps of a window that see a pixel anywhere: a box, which goes into cek_k_window as if there were no others. */
typedef struct cek_k_taps {
    cek_u32 all[2], first[2], seen[2];
} cek_k_taps;

typedef struct cek_k_pack_weights {
    cek_u64 at[2];
    cek_u64 out, in, zeros, data;
    cek_k_taps taps;
    cek_u32 nothing, unused; /* nothing: but zeros */
} cek_k_pack_weights;

typedef struct cek_k_conv_tile {
    cek_u64 at[6];                  /* X or DY, weights, Y or DX, BIAS, ACT_REF, zeros */
    cek_u64 pixels, columns, depth; /* columns: channels of the result; depth: of what is read */
    cek_u64 row_tiles, panels;      /* tiles of pixels and panels of weights for a work-item */
    cek_k_window window;
    cek_k_taps taps;
    cek_u32 bias, accumulate, activation, act_grad, strided, type;
} cek_k_conv_tile;

typedef struct cek_k_weights_tile {
    cek_u64 at[3]; /* X, DY, partial sums; to finish: partial sums, DW */
    cek_u64 batch, slices, in, out, dy_panel, dy_pixel;
    cek_u64 panels; /* of DY for a work-item */
    cek_k_window window;
    cek_k_taps taps;
    cek_u32 images, band; /* images, or rows of one, that tiles go through at once */
    cek_u32 accumulate, gather;
} cek_k_weights_tile;

/* Winograd's squares (kernels/opencl/winograd.cl). CHANNELS of a tile's point lie in a row, PITCH elements from that of
 * the next tile, so that no two rows of a register tile meet in one set of the first cache. */
#define CEK_K_CHANNELS 64
#define CEK_K_PITCH 80
#define CEK_K_FILTERS 16 /* channels of weights that a work-item transforms */
typedef struct cek_k_winograd {
    cek_u64 at[6];    /* X or DY, U, Y or DX, BIAS, ACT_REF, scratch; X, DY, partial sums, scratch; W, U; partial, DW */
    cek_u64 from, to; /* channels of what is read, and of the result; of gradients of weights X's and DY's */
    cek_u64 count, block, parts; /* tiles; tiles transformed at once; work-items that share the blocks */
    cek_u64 panels;              /* of weights for a work-item */
    cek_u64 chunk, scratch;      /* elements: of CHANNELS of a block's point; of a work-item */
    cek_u32 size[2], result[2];  /* pixels of what is read, and of what is cut into tiles */
    cek_u32 tiles[2], pad[2];
    cek_u32 bias, accumulate, activation, act_grad, type, data;
} cek_k_winograd;

#endif
