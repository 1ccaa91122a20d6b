/* table.c - the table of one instruction set: every kernel under the name its callers use. */
#include "kernels/cpu/ops.h"
#include "kernels/cpu/table.h"

extern const cpu_kernels ISA_NAME(cek__kernels);

const cpu_kernels ISA_NAME(cek__kernels) = {
    .mr = TILE_ROWS,
    .nr = TILE_COLUMNS,
    .streams = TILE_STREAMS,
    .any_step = TILE_ANY_STEP,
    .gemm = ISA_NAME(gemm_f32_tiles),
    .edge = ISA_NAME(gemm_f32_edges),
    .copy = ISA_NAME(gemm_f32_copies),
    .drain = ISA_NAME(drain),
    .thin = ISA_NAME(thin),
    .dots = ISA_NAME(dots_f32),
    .dots_narrow = ISA_NAME(dots_narrow),
    .transpose = ISA_NAME(transpose_f32),
    .panels = ISA_NAME(panels),
    .load = ISA_NAME(load),
    .store = ISA_NAME(store),
    .finish = ISA_NAME(finish_f32),
    .deriv = ISA_NAME(deriv_f32),
    .add = ISA_NAME(add_f32),
    .sums = ISA_NAME(sums_f32),
    .ops = &ISA_NAME(cek__op_kernels),
    .depthwise_sum = ISA_NAME(depthwise_sum_f32),
    .depthwise_add = ISA_NAME(depthwise_add_f32),
    .winograd = ISA_NAME(winograd_f32),
};
