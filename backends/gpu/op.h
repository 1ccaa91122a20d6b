/* SPDX-License-Identifier: MIT
 *
 * op.h - an operation as it stands: its request and its list of steps, from an empty list to the last run.
 *
 * Knows neither how steps are found nor which way was chosen. Destroying and running it are slots (gpu.h).
 */
#ifndef CEK_BACKENDS_GPU_OP_H
#define CEK_BACKENDS_GPU_OP_H

#include "backends/gpu/gpu.h"

/* cek__gpu_op_make - the descriptor, checked, without steps yet. cek__gpu_op_destroy() undoes it. */
cek_status cek__gpu_op_make(cek_dev *dev, const cek_op_desc *desc, cek_op **out);
/* cek__gpu_op_clear - without steps again, and without what lowering said of them. */
void cek__gpu_op_clear(cek_op *op);
/* cek__gpu_steps_run - every step, in order, on a queue. Of steps that lowering just made: no lock is taken. */
cek_status cek__gpu_steps_run(cek_queue *queue, const cek_op *op, const cek_ref *operands, cek_ref workspace);

#endif
