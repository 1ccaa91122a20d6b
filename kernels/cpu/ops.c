/* ops.c - the table of this instruction set's kernels. */
#include "kernels/cpu/ops.h"

const cpu_op_kernels ISA_NAME(cek__op_kernels) = {
    .pointwise = &ISA_NAME(cek__pointwise_kernels),
    .reduce = &ISA_NAME(cek__reduce_kernels),
    .loss = &ISA_NAME(cek__loss_kernels),
    .random = &ISA_NAME(cek__random_kernels),
    .optimizer = &ISA_NAME(cek__optimizer_kernels),
    .pool = &ISA_NAME(cek__pool_kernels),
};
