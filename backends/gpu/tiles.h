/* SPDX-License-Identifier: MIT
 *
 * tiles.h - register tiles of OpenCL devices that are CPUs: what products and convolutions by them share.
 */
#ifndef CEK_BACKENDS_GPU_TILES_H
#define CEK_BACKENDS_GPU_TILES_H

#include "backends/gpu/lower.h"

typedef struct cek__tile_size {
    uint32_t width, rows, columns; /* VW, MR, NR of kernels/opencl/tile.h */
} cek__tile_size;
cek__tile_size cek__tile_of(const cek_dev *dev);

/* cek__tile_step - a launch of x * y * z work-items, each a group, of a kernel of kernels/opencl; NULL as
 * cek__gpu_step_grid. */
cek__gpu_step *cek__tile_step(cek_op *op, const char *source, const char *name, uint64_t x, uint64_t y, uint64_t z);

/* cek__tile_as_f32 - a dense operand as f32: in place, or widened into workspace. */
cek__gpu_place cek__tile_as_f32(cek_op *op, uint32_t slot, cek_dtype type);

/* cek__gpu_lower_conv_winograd - a convolution of one group by Winograd's squares: true where it added the steps, or
 * failed trying; false where the definition is faster, or asked for. */
bool cek__gpu_lower_conv_winograd(cek_op *op);

static inline uint64_t cek__ceil_div(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

#endif
