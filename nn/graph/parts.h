/* parts.h - the closed set of parts: what each is called, gives, how it is differentiated and computed. One file each.
 *
 * A part is a file part_NAME.c with its class, a line in parts.c and its kind in graph.h. */
#ifndef CEK_NN_GRAPH_PARTS_H
#define CEK_NN_GRAPH_PARTS_H

#include "nn/graph/differentiate.h"
#include "nn/graph/graph.h"
#include "nn/graph/lower.h"
#include "nn/graph/types.h"

/* Which of the two types, that which is computed in and that of 16 bits, inputs and outputs have (types.h). */
typedef enum cek__types_rule {
    CEK__TYPES_NONE,
    CEK__TYPES_SOURCE, /* it gives that which is computed in */
    CEK__TYPES_LOW,    /* it multiplies and adds up: it reads 16 bits, and gives them to flows of samples */
    CEK__TYPES_FOLLOW, /* it moves elements: all of them have one type */
    CEK__TYPES_ANY,    /* it reads any; sums have the wide one, chains what they read most of */
    CEK__TYPES_WIDE,   /* both have that which is computed in, whole numbers aside */
    CEK__TYPES_LOSS    /* likewise, and what comes before nothing else */
} cek__types_rule;

typedef struct cek__part_class {
    const char *name;
    int outputs;
    cek__types_rule types;
    /* Fills in dims and type of the outputs. */
    cek_status (*infer)(const cek__graph *graph, const cek__part *part, cek__flow out[CEK__PART_OUTPUTS]);
    /* Gives the gradients of the inputs that need one (cek__contribute), of output 0's, `dy`. NULL: has none. */
    cek_status (*gradient)(cek__backward *to, int part, int dy);
    /* Decides how the outputs lie and asks for inputs that lie so (physical.h). */
    cek_status (*place)(cek__graph *graph, int part);
    /* Emits the operations. */
    cek_status (*lower)(cek__lowering *lowering, int part);
    bool floats; /* no input may be of integers */
    bool adds;   /* output 0 may be added to what is there */
    bool effect; /* it runs in training though nobody reads what it gives, and in training alone */
} cek__part_class;

const cek__part_class *cek__part_class_of(cek__part_kind kind); /* NULL for an unknown one */

extern const cek__part_class cek__part_input, cek__part_target, cek__part_parameter, cek__part_product, cek__part_conv,
    cek__part_conv_data, cek__part_conv_weights, cek__part_pool, cek__part_pool_back, cek__part_chain, cek__part_reduce,
    cek__part_view, cek__part_reorder, cek__part_permute, cek__part_pad, cek__part_concat, cek__part_gather,
    cek__part_scatter_add, cek__part_arg, cek__part_dropout, cek__part_softmax, cek__part_cross_entropy,
    cek__part_squared_error, cek__part_buffer, cek__part_contribute, cek__part_phase, cek__part_random, cek__part_loss,
    cek__part_hits;

/* Shared by classes: output 0 has part->dims; nothing to decide. */
cek_status cek__infer_given(const cek__graph *graph, const cek__part *part, cek__flow out[CEK__PART_OUTPUTS]);
cek_status cek__place_as_is(cek__graph *graph, int part);

/* ---- short ways to add one ---- */

CEK__SHARED CEK__CHECKED cek_status cek__view(cek__graph *graph, int x, const cek__dims *dims, int *out);
/* Axis i of *out is axis order[i] of x. */
CEK__SHARED CEK__CHECKED cek_status cek__permute(cek__graph *graph, int x, const int *order, int *out);
/* lo and hi elements of that value at the ends of each axis; below 0: so many fewer. */
CEK__SHARED CEK__CHECKED cek_status cek__pad(cek__graph *graph, int x, const int64_t *lo, const int64_t *hi,
                                             double value, int *out);
CEK__SHARED CEK__CHECKED cek_status cek__slice(cek__graph *graph, int x, int axis, int64_t first, int64_t count,
                                               int *out);
/* Every step-th of them. */
CEK__SHARED CEK__CHECKED cek_status cek__slice_stepped(cek__graph *graph, int x, int axis, int64_t first, int64_t count,
                                                       int64_t step, int *out);
CEK__SHARED CEK__CHECKED cek_status cek__concat(cek__graph *graph, const int *x, int count, int axis, int *out);
/* NumPy's matmul of two stacks of matrices; b may be one matrix for all rows of a. */
CEK__SHARED CEK__CHECKED cek_status cek__matmul(cek__graph *graph, int a, int b, int *out);
/* Whether a product may write where a flow lies: its rows, of the last axis, are equally far apart, of any samples. */
bool cek__product_writes(const cek__graph *graph, int flow);
/* The rows of a table that an index of i32 names, and the sums of rows into a table (part_gather.c). */
CEK__SHARED CEK__CHECKED cek_status cek__gather(cek__graph *graph, int table, int index, int batch, int *out);
CEK__SHARED CEK__CHECKED cek_status cek__scatter_add(cek__graph *graph, int rows, int index, int batch,
                                                     const cek__dims *table, int *out);
/* CEK_ARG_MAX or MIN: where along an axis the first of the largest or smallest elements lies, i32. */
CEK__SHARED CEK__CHECKED cek_status cek__arg(cek__graph *graph, int x, uint32_t function, int axis, int *out);
/* Those of x's elements again along the axes of which it has one, or which it lacks in front. */
CEK__SHARED CEK__CHECKED cek_status cek__expand(cek__graph *graph, int x, const cek__dims *dims, int *out);
/* One instruction over one or two flows (`b` 0: one), the smaller one broadcast as in NumPy. */
CEK__SHARED CEK__CHECKED cek_status cek__chain(cek__graph *graph, uint32_t code, int a, int b, int *out);
/* The same numbers in another type: rounded to nearest even, integers saturate. CEK_DTYPE_NONE: the one that is
 * computed in. Integers have no gradient. */
CEK__SHARED CEK__CHECKED cek_status cek__cast(cek__graph *graph, int x, cek_dtype type, int *out);
/* One number for all elements. */
CEK__SHARED CEK__CHECKED cek_status cek__constant(cek__graph *graph, double value, const cek__dims *dims, int *out);
/* The sum over the axes in the mask, which fall away. */
CEK__SHARED CEK__CHECKED cek_status cek__sum(cek__graph *graph, int x, uint32_t axes, int *out);
/* SUM, MEAN, MAX, MIN or SUM_SQUARES, whose gradients they have: that of MAX and MIN goes in equal parts to all
 * that are it.
 * Errors: CEK_INVALID: over samples. */
CEK__SHARED CEK__CHECKED cek_status cek__reduce(cek__graph *graph, int x, uint32_t function, uint32_t axes, int *out);
/* The same, over samples too: those that count, whatever padding holds. */
CEK__SHARED CEK__CHECKED cek_status cek__reduce_masked(cek__graph *graph, int x, uint32_t function, uint32_t axes,
                                                       int *out);
/* The first axis alone counts samples: a reduction that is masked leaves padding out by itself. */
bool cek__reduce_leaves_out(const cek__dims *x);
/* How many elements of `x` along the axes count, as one number: samples without padding. */
CEK__SHARED CEK__CHECKED cek_status cek__count(cek__graph *graph, int x, uint32_t axes, int *out);
/* What is left of `x` behind a reduction, with one element along each axis that fell away. */
CEK__SHARED CEK__CHECKED cek_status cek__keep(cek__graph *graph, int reduced, int x, uint32_t axes, int *out);
/* Along any axis but the samples'; the last one needs no copies. */
CEK__SHARED CEK__CHECKED cek_status cek__softmax(cek__graph *graph, int x, int axis, int *out);
CEK__SHARED CEK__CHECKED cek_status cek__log_softmax(cek__graph *graph, int x, int axis, int *out);
/* A loss of one's own: the sum of v, samples along its first axis, of those that count; with weights `w` (0: none) that
 * of v w, where w is not 0. The trainer divides by the number of samples, or by what their labels weigh
 * (cek__model_weigh). *out: the gradient of what is summed; its part is the graph's loss. */
CEK__SHARED CEK__CHECKED cek_status cek__loss(cek__graph *graph, int v, int w, int *out);
/* PyTorch's transposed convolution: w [channels of x, channels of *out / groups, kernel...], and `more` elements at
 * each axis' end (NULL: none), fewer than the stride. */
CEK__SHARED CEK__CHECKED cek_status cek__conv_transposed(cek__graph *graph, int x, int w, const cek__windows *windows,
                                                         int64_t groups, const int64_t *more, int *out);
/* The padding with which an axis of windows, whose stride and dilation are set, gives in / stride elements, rounded up;
 * an odd one is behind. */
CEK__SHARED void cek__windows_same(cek__windows *windows, int axis, int64_t in, int64_t kernel);

#endif
