/* ops.c - the table of this instruction set's kernels. */
#include "kernels/cpu/ops.h"

#define ISA_TEXT_OF(name) #name
#define ISA_TEXT(name) ISA_TEXT_OF(name)

const cpu_op_kernels ISA_NAME(cek__op_kernels) = {
    .isa = ISA_TEXT(CEK_ISA),
    .pointwise = &ISA_NAME(cek__pointwise_kernels),
    .reduce = &ISA_NAME(cek__reduce_kernels),
    .loss = &ISA_NAME(cek__loss_kernels),
    .random = &ISA_NAME(cek__random_kernels),
    .optimizer = &ISA_NAME(cek__optimizer_kernels),
    .pool = &ISA_NAME(cek__pool_kernels),
};
