/* lower.h - from a graph to a program: each part emits its operations, in sequence.
 *
 * Must not know: who owns the memory, when the program runs. */
#ifndef CEK_NN_GRAPH_LOWER_H
#define CEK_NN_GRAPH_LOWER_H

#include "nn/graph/graph.h"
#include "nn/program/program.h"

typedef struct cek__lowering {
    const cek__graph *graph;
    cek__program *program;
    int64_t rows;                    /* samples of one run */
    cek_dtype type, input_type;      /* that is computed in; of samples of data as they come */
    double scale, offset;            /* the network sees x * scale + offset of them */
    const int *parameter, *gradient; /* values by parameter; gradient: NULL without backward */
    const int *rounded;              /* of those that are read in 16 bits; NULL: none is */
    int step, batch;                 /* values of the blocks */
    /* lower.c's own */
    int *value;       /* by flow */
    int *instruction; /* by part: its last, + 1 */
    bool *within;     /* by part: computed within another */
    int *listed;      /* by flow: which of the graph's gradients it is, + 1 */
    int *begun;       /* by a parameter's flow: that of its gradients which was written first */
    int next;         /* of the sequence */
    int missing;      /* a flow that was read before it was given: emit fails */
} cek__lowering;

/* Where input `index` of a graph lies behind the others, in bytes, for so many samples, data of type `data`; with their
 * number, where the last one ends. */
CEK__SHARED uint64_t cek__graph_input_at(const cek__graph *graph, size_t index, int64_t rows, cek_dtype data);

/* begin - after the fields above its own are filled in; end gives back its own, whatever came of it. */
CEK__SHARED CEK__CHECKED cek_status cek__lower_begin(cek__lowering *lowering);
CEK__SHARED void cek__lower_end(cek__lowering *lowering);
/* forward - all parts before the first of backward, the loss among them; backward - the rest. */
CEK__SHARED CEK__CHECKED cek_status cek__lower_forward(cek__lowering *lowering);
CEK__SHARED CEK__CHECKED cek_status cek__lower_backward(cek__lowering *lowering);

/* ---- for the parts ---- */

/* Where an output goes: a value, and whether the operation adds to what is there, or does so in its second form. */
typedef struct cek__destination {
    int value;
    uint64_t accumulate, twice;
} cek__destination;

/* The value of a flow that was computed. */
int cek__lower_read(cek__lowering *lowering, int flow);
/* The value that an operation shall write a flow to; asked again, the same. Joins the bits of `slot` to `to`. */
CEK__CHECKED cek_status cek__lower_write(cek__lowering *lowering, int flow, uint32_t slot, cek__destination *to);
/* A flow is another's memory. */
void cek__lower_alias(cek__lowering *lowering, int flow, int of);
CEK__CHECKED cek_status cek__lower_emit(cek__lowering *lowering, int part, cek_op_desc *desc, int operands[CEK__SLOTS],
                                        const cek__destination *to);
/* A flow lies in a value, from that byte on. */
CEK__CHECKED cek_status cek__lower_within(cek__lowering *lowering, int flow, int of, int64_t at);
/* A box of elements, in so many steps along each axis, and their strides on both sides; it goes from a value to the
 * destination of output 0 (with its type), or is added to that. */
typedef struct cek__box {
    cek__dims dims;
    int64_t from[CEK_RANK_MAX], to[CEK_RANK_MAX];
} cek__box;
CEK__CHECKED cek_status cek__lower_box(cek__lowering *lowering, int part, const cek__box *box, int from,
                                       const cek__destination *to);
CEK__CHECKED cek_status cek__lower_box_add(cek__lowering *lowering, int part, const cek__box *box, int from,
                                           const cek__destination *to);
/* As operations have it: with the samples that the program takes. */
void cek__lower_shape(const cek__lowering *lowering, const cek__dims *dims, uint64_t shape[CEK_RANK_MAX]);
cek_dtype cek__lower_type(const cek__lowering *lowering, int flow);
uint64_t cek__lower_elements(const cek__lowering *lowering, int flow);

/* What the network gives is this flow, or a view of it. */
bool cek__lower_is_result(const cek__lowering *lowering, int flow);

/* A part that may have a follower: `emit` writes `flow`, with the follower's epilogue (which reads `ref` beside) where
 * the device takes it; else without, and the follower comes behind. A base's memory becomes the output's. */
typedef cek_status cek__lower_emitter(cek__lowering *lowering, int part, int flow, const cek_epilogue *epilogue,
                                      int ref);
/* Whether a chain of that one instruction can be an epilogue. */
bool cek__lower_is_epilogue(const cek_pointwise_instruction *instruction);
CEK__CHECKED cek_status cek__lower_with_follower(cek__lowering *lowering, int part, cek__lower_emitter *emit);

/* The operation of a part that was lowered, for one that comes behind it. */
const cek_op *cek__lower_op(const cek__lowering *lowering, int part);

#endif
