/* tensor.h - the inside of a tensor, for the operations. */
#ifndef CEK_CORE_TENSOR_TENSOR_H
#define CEK_CORE_TENSOR_TENSOR_H

#include "core/device/device.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"
#include "core/tensor/storage.h"

struct cek_tensor {
    cek_device *device;
    cek_dtype type;
    cek__shape shape;
    int64_t strides[CEK_RANK_MAX]; /* of elements, >= 0; of a dimension of 1 whatever they are */
    uint64_t offset;               /* of the first element from where the storage begins, in bytes */
    cek__storage *storage;
};

/* An operand of an operation: elements of `type` from `ref` on, walked through strides. */
typedef struct cek__lane {
    cek_ref ref;
    cek_dtype type;
    int64_t strides[CEK_RANK_MAX];
} cek__lane;

/* The tensor read as a tensor of the shape `over`, to which it stretches. */
cek__lane cek__lane_of(const cek_tensor *x, const cek__shape *over);

/* What the head of a descriptor says of the operands' offsets (cek_op_desc.align). */
uint32_t cek__lanes_align(int count, const cek__lane *lanes);

/* A dense tensor of a checked shape, contents undefined; `what` starts the error. */
CEK__CHECKED cek_status cek__tensor_new(const char *what, cek_device *device, cek_dtype type, const cek__shape *shape,
                                        cek_tensor **out);

/* Another tensor over the same storage, `offset` bytes behind where that begins. */
CEK__CHECKED cek_status cek__tensor_view(const cek_tensor *x, const cek__shape *shape, const int64_t *strides,
                                         uint64_t offset, cek_tensor **out);

/* The same over a storage that no tensor has yet, which becomes the tensor's. */
CEK__CHECKED cek_status cek__tensor_over(cek_device *device, cek_dtype type, const cek__shape *shape,
                                         const int64_t *strides, cek__storage *storage, cek_tensor **out);

/* All given, on one device, of one type; _check: of a floating one. `names` are those of the parameters: "a", "b". */
CEK__CHECKED cek_status cek__tensors_meet(const char *what, int count, const char *const *names,
                                          const cek_tensor *const *tensors);
CEK__CHECKED cek_status cek__tensors_check(const char *what, int count, const char *const *names,
                                           const cek_tensor *const *tensors);

/* An axis, counted from the end if it is negative. */
CEK__CHECKED cek_status cek__axis_take(const char *what, const cek_tensor *x, int axis, int *out);

#endif
