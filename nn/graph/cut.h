/* cut.h - instructions without a limit on their number or that of their inputs, which become chains
 * within those limits. */
#ifndef CEK_NN_GRAPH_CUT_H
#define CEK_NN_GRAPH_CUT_H

#include "nn/graph/graph.h"

enum {
    CEK__CODE_INPUTS = CEK__PART_INPUTS + 2,
    CEK__CODE_MAX = 16 *
                    CEK_POINTWISE_INSTRUCTIONS, /* an instruction and what its derivative takes are fewer than 16 */
    CEK__CODE_VALUES = CEK__CODE_INPUTS + CEK__CODE_MAX
};

/* Values are numbered as in a chain: inputs, then one for each instruction. */
typedef struct cek__code {
    int inputs, count, lost;    /* lost: instructions that found no room */
    int flow[CEK__CODE_INPUTS]; /* the inputs */
    cek__dims dims;             /* of a chain with VALID, whatever it reads */
    cek_pointwise_instruction instruction[CEK__CODE_MAX];
} cek__code;

/* The number of the new value. */
int cek__code_add(cek__code *code, const cek_pointwise_instruction *instruction);

/* Adds chains that compute `wanted` and no more; *out is the flow that it is, an input's own if it is one.
 * Errors: CEK_UNSUPPORTED: instructions were lost; CEK_OUT_OF_MEMORY. */
CEK__CHECKED cek_status cek__code_cut(cek__graph *graph, const cek__code *code, int wanted, int *out);

/* How many of its operands, of a, b and c in this order, an instruction reads. */
int cek__code_reads(uint32_t code);

#endif
