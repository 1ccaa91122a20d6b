/* eager.h - runs one operation of plugin.h on a device's default stream, now.
 *
 * Must not know: tensors; what an operation means. */
#ifndef CEK_CORE_TENSOR_EAGER_H
#define CEK_CORE_TENSOR_EAGER_H

#include "core/device/device.h"

/* Queues the operation that `desc` describes; operands are indexed by slot. `what` starts the text of an error.
 * Operation objects and workspace are kept for the next call. Memory of operands may be freed at once if it is
 * ordered memory (cek__memory_alloc_order). `desc` names no forward operation.
 * Threads: any. */
CEK__CHECKED cek_status cek__eager_run(const char *what, cek_device *device, const cek_op_desc *desc,
                                       const cek_ref *operands, uint32_t count);

#endif
