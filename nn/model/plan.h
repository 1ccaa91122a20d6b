/* plan.h - a model compiled for one device and one number of samples: op objects, operands, fixed offsets.
 *
 * A plan is created, then bound to memory, then run any number of times on one stream at a time. It owns its op objects
 * and command buffers and nothing else: memory is the binder's (replica). Running compiles no op and allocates no
 * memory of operands. What runs again is recorded: each segment of forward, and of backward in each form, is a command
 * buffer of the device from its second run on, where the device has command buffers; and so is a whole step with what
 * its binder puts behind it.
 * Must not know: other devices, buckets' owners, the optimizer, the loader.
 *
 * Fusion: activations and their gradients go into the epilogues of gemm and convolution where the
 * device takes them (op_create answers), otherwise they are pointwise operations of their own. The
 * gradient of the input is never computed. Gradient writers exist twice: overwriting (the first
 * micro-batch of a step) and accumulating. */
#ifndef CEK_NN_MODEL_PLAN_H
#define CEK_NN_MODEL_PLAN_H

#include "cekernels/nn.h"
#include "core/base/export.h"
#include "nn/program/binding.h"
#include "nn/model/layout.h"

typedef struct cek__plan cek__plan;

typedef struct cek__plan_options {
    int64_t rows;            /* samples of one run */
    cek_dtype input_type;    /* of the input operand: CEK_U8, CEK_F32 (or CEK_F64), where it is data */
    cek_loss loss;           /* 0: none (prediction); in evaluation: loss and counts without gradients */
    uint32_t target_columns; /* MSE: must be the model's outputs; 0 = take them */
    uint32_t math;           /* of products and convolutions, CEK_MATH_... */
    cek_device *fallback;    /* does what the plan's device cannot: an inline one; NULL: that is CEK_UNSUPPORTED */
    /* The most bytes of one memory of the arena, a multiple of CEK_ALIGNMENT; 0, or on paper: any. */
    uint64_t arena_piece;
    bool training; /* dropout, backward; else evaluation. Needs a loss */
    bool softmax;  /* prediction: probabilities */
    /* Prediction: what follows from weights alone is computed by cek__plan_prepare and kept in the arena, which belongs
     * to this plan then; but for CEK_MATH_STRICT, normalisations and biases go into the weights (nn/graph/fold.h). All
     * parameters are where the layout has them then, of those with rounded copies their full values too. */
    bool ahead;
    bool unpacked; /* `ahead` without weights packed for the device's operations, which take as much memory again */
    const int
        *outputs; /* prediction: of these nodes, one behind the other; NULL: the model's output. Copied by nobody */
    size_t output_count;
    bool cut_forward; /* training: forward in the layout's segments, else in one */
} cek__plan_options;

/* Device memory that a plan wants of its binder (0: that reference stays {NULL, 0}), and what a run of it is. */
enum { CEK__ARENA_PIECES = 16 };
typedef struct cek__plan_needs {
    uint64_t arena_bytes; /* activations, their gradients, reserves: by lifetimes, fixed offsets */
    uint64_t arena_piece; /* in memories of that many bytes, the last one of what is left: of all plans of a device */
    uint64_t workspace_bytes;
    uint64_t input_bytes;  /* rows x one sample of each input, where cek__graph_input_at says; images NHWC */
    uint64_t target_bytes; /* i32 labels or values of the layout's type, [rows][columns] */
    uint64_t output_bytes; /* without a loss: outputs [rows][outputs] of the layout's type, PyTorch's order */
    /* On the fallback device, and of the former as many page-locked bytes on the host; 0: nothing is left to it. */
    uint64_t left_bytes, left_workspace_bytes;
    int operations;
} cek__plan_needs;

/* Where things lie. Arrays have layout->bucket_count entries. Unused ones are {NULL, 0}. */
typedef struct cek__plan_binding {
    cek_ref arena[CEK__ARENA_PIECES];
    cek_ref workspace, input, target, output;
    const cek_ref *parameters;
    const cek_ref *rounded;   /* of buckets that have rounded copies (layout.h) */
    const cek_ref *gradients; /* training */
    cek_ref step_block;       /* training */
    cek_ref batch_block;      /* with a loss */
    cek_ref loss;             /* sum type [1], accumulated into; the binder zeroes it */
    cek_ref correct;          /* i32 [1], likewise; cross-entropy */
    cek_ref buffers;          /* evaluation: the model's, each where cek__buffer has it, in the layout's type */
    cek_ref statistics;       /* training: what is to be added to them (nn/graph/part_buffer.c); the binder zeroes it */
    cek_ref constants;        /* each where cek__constants has it, in the layout's type */
    cek__fallback fallback;
} cek__plan_binding;

/* Errors: CEK_UNSUPPORTED (names device and layer), CEK_OUT_OF_MEMORY, CEK_INVALID (a shape that
 * does not fit the loss, a layer that does not lead to the output; names it). The layout and the
 * model outlive the plan. `device` NULL: a plan on paper, to see what it needs; it cannot run. */
CEK__SHARED CEK__CHECKED cek_status cek__plan_create(const cek_model *model, const cek__layout *layout,
                                                     cek_device *device, const cek__plan_options *options,
                                                     cek__plan **out);
CEK__SHARED void cek__plan_free(cek__plan *plan);
CEK__SHARED const cek__plan_needs *cek__plan_get_needs(const cek__plan *plan);

/* next_left - the next operation behind number *at that the device leaves to the fallback, which becomes *at; 0 is
 * before the first. False: there is none. */
typedef struct cek__left {
    const char *node, *operation; /* "node 3 (conv) backward", "conv_backward_data"; the plan's */
} cek__left;
bool cek__plan_next_left(const cek__plan *plan, int *at, cek__left *out);

/* bind - makes binding `index`, resolving every operand. A command buffer's addresses are frozen, so who alternates
 * between two places binds the plan to both and says at each run which; their runs must not overlap in time where they
 * share memory. May be called again with other memory when no run of that binding is in flight. The plan is freed
 * before the memory.
 * Errors: CEK_INVALID names what is needed and missing; CEK_OUT_OF_MEMORY. The binding is gone then. */
enum { CEK__PLAN_BINDINGS = 2 };
CEK__SHARED CEK__CHECKED cek_status cek__plan_bind(cek__plan *plan, size_t index, const cek__plan_binding *binding);

/* forward - enqueues the input's conversion, the forward pass and the loss (with its gradient when training): all of
 * it, or a segment, which run in order. With cut_forward these are the layout's, of every plan the same; else
 * it is one. */
CEK__SHARED size_t cek__plan_forward_count(const cek__plan *plan);
CEK__SHARED CEK__CHECKED cek_status cek__plan_forward(cek__plan *plan, size_t index, cek_stream *stream);
CEK__SHARED CEK__CHECKED cek_status cek__plan_forward_segment(cek__plan *plan, size_t index, cek_stream *stream,
                                                              size_t segment);

/* prepare - what is computed ahead, in one of the bindings: before the first forward of any, and again when parameters,
 * buffers or constants have changed. Without options->ahead nothing. */
CEK__SHARED CEK__CHECKED cek_status cek__plan_prepare(cek__plan *plan, size_t index, cek_stream *stream);

/* backward - in segments; when segment i has run, the gradients of the buckets below
 * cek__plan_segment_buckets(i) are complete and their parameters will not be read again. Segments
 * run in order. accumulate: add to the gradients instead of overwriting. A model without
 * parameters, and an evaluation plan, have no segment. */
CEK__SHARED size_t cek__plan_segment_count(const cek__plan *plan);
CEK__SHARED size_t cek__plan_segment_buckets(const cek__plan *plan, size_t segment);
CEK__SHARED CEK__CHECKED cek_status cek__plan_backward(cek__plan *plan, size_t index, cek_stream *stream,
                                                       size_t segment, bool accumulate);

/* step - forward, all of backward, overwriting, and the tail, as one where nobody needs to know of
 * what lies between. */
CEK__SHARED CEK__CHECKED cek_status cek__plan_step(cek__plan *plan, size_t index, cek_stream *stream,
                                                   const cek__tail *tail);
CEK__SHARED bool cek__plan_step_is_refused(const cek__plan *plan, size_t index); /* it gains nothing there */

/* An estimate from the model alone, before any op exists: the needs of a plan with options->rows
 * samples (ignored here) are about fixed + rows * per_row bytes, all of them but the workspace.
 * Parameters, gradients and optimizer state are the layout's buckets and not included. */
CEK__SHARED CEK__CHECKED cek_status cek__plan_estimate(
    const cek_model *model, cek_dtype type, const cek__plan_options *options, uint64_t *fixed, uint64_t *per_row);

#endif
