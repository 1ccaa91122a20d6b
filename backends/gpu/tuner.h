/* SPDX-License-Identifier: MIT
 *
 * tuner.h - the fastest of several ways to do an operation, by measurement.
 */
#ifndef CEK_BACKENDS_GPU_TUNER_H
#define CEK_BACKENDS_GPU_TUNER_H

#include "backends/gpu/gpu.h"

/* cek__gpu_tune - the fastest of the candidates for this operation, NULL for our own kernels:
 * measured once per device and class of shapes. NULL for everything that is not worth measuring,
 * and for DETERMINISTIC operations. At most CEK__GPU_CANDIDATES of them. */
const cek__gpu_provider *cek__gpu_tune(const cek_op *op, const cek__gpu_provider *const *list, uint32_t count);

/* cek__gpu_tune_tile - the fastest tile of our own kernels for this convolution, or way to pool, measured once per
 * device and geometry; 0 for the rule's, and for everything that is not worth measuring, has no choice
 * or is DETERMINISTIC. */
uint32_t cek__gpu_tune_tile(const cek_op *op);

/* cek__gpu_tuner_create, _free - of a device. */
cek_status cek__gpu_tuner_create(cek_dev *dev);
void cek__gpu_tuner_free(cek_dev *dev);

#endif
