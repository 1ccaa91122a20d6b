/* tensor.h - the inside of a tensor, for the operations. */
#ifndef CEK_CORE_TENSOR_TENSOR_H
#define CEK_CORE_TENSOR_TENSOR_H

#include "core/device/device.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

struct cek_tensor {
    cek_device *device;
    cek_dtype type;
    cek__shape shape;
    cek_memory *memory; /* ordered on the device's default stream */
};

/* A tensor of a checked shape, contents undefined; `what` starts the error. */
CEK__CHECKED cek_status cek__tensor_new(const char *what, cek_device *device, cek_dtype type, const cek__shape *shape,
                                        cek_tensor **out);

/* All given, on one device, of one floating type. `names` are those of the parameters: "a", "b". */
CEK__CHECKED cek_status cek__tensors_check(const char *what, int count, const char *const *names,
                                           const cek_tensor *const *tensors);

#endif
