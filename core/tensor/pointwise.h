/* pointwise.h - one chain of instructions of plugin.h over the elements of strided operands. */
#ifndef CEK_CORE_TENSOR_POINTWISE_H
#define CEK_CORE_TENSOR_POINTWISE_H

#include "core/tensor/tensor.h"

enum { CEK__CHAIN_INPUTS = 6, CEK__CHAIN_LENGTH = CEK_POINTWISE_INSTRUCTIONS };

/* Inputs are values 0 to inputs - 1, then each instruction gives one. */
typedef struct cek__chain {
    int inputs, length;
    cek_pointwise_instruction code[CEK__CHAIN_LENGTH];
} cek__chain;

/* Appends an instruction; its value's number. */
uint32_t cek__chain_add(cek__chain *chain, cek_pointwise_instruction instruction);

/* Queues out[i...] = chain(in[0][i...], in[1][i...], ...) for all of `shape`. */
CEK__CHECKED cek_status cek__pointwise_run(const char *what, cek_device *device, const cek__shape *shape,
                                           const cek__chain *chain, const cek__lane *in, const cek__lane *out);

#endif
