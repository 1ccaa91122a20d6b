/* copy.h - elements moved within a device: through strides, converted, into another tensor's place. */
#ifndef CEK_CORE_TENSOR_COPY_H
#define CEK_CORE_TENSOR_COPY_H

#include "core/tensor/tensor.h"

/* Queues to[i...] = from[i...] for all of `shape`; the types may differ as cek_tensor_cast's. */
CEK__CHECKED cek_status cek__copy_run(const char *what, cek_device *device, const cek__shape *shape,
                                      const cek__lane *from, const cek__lane *to);

/* A tensor of x's elements that is dense and begins where any operation takes an operand: another name for x, or a
 * copy. */
CEK__CHECKED cek_status cek__tensor_packed(const char *what, const cek_tensor *x, cek_tensor **out);

/* The same as another shape of as many elements, never x's own memory. */
CEK__CHECKED cek_status cek__tensor_copied(const char *what, const cek_tensor *x, const cek__shape *shape,
                                           cek_tensor **out);

#endif
