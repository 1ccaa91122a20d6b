/* tensor.c - tensors: making and freeing them, and what they say of themselves.
 *
 * A tensor is a way to walk a storage (storage.h), which several may share. What is computed with tensors stands in the
 * files beside this one. */
#include "core/tensor/tensor.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"

/* ---- making ---- */

cek_status cek__tensor_over(cek_device *device, cek_dtype type, const cek__shape *shape, const int64_t *strides,
                            cek__storage *storage, cek_tensor **out)
{
    cek_status st;
    cek_tensor *tensor;

    *out = NULL;
    CEK_TRY(cek__calloc(1, sizeof *tensor, &tensor));
    *tensor = (cek_tensor){ .device = device, .type = type, .shape = *shape, .storage = storage };
    memcpy(tensor->strides, strides, (size_t)shape->rank * sizeof *strides);
    cek__device_take(device);
    *out = tensor;
out:
    return st;
}

cek_status cek__tensor_new(const char *what, cek_device *device, cek_dtype type, const cek__shape *shape,
                           cek_tensor **out)
{
    cek_status st;
    cek__storage *storage = NULL;
    int64_t strides[CEK_RANK_MAX];

    *out = NULL;
    if (cek_dtype_bytes(type) == 0)
        CEK_FAIL(CEK_INVALID, "%s: unknown element type %u", what, type);
    if ((device->info.types >> type & 1) == 0)
        CEK_FAIL(CEK_UNSUPPORTED, "%s: %s does not store %s", what, device->name, cek_dtype_name(type));
    st = cek__storage_new(device, (uint64_t)cek__shape_count(shape) * cek_dtype_bytes(type), &storage);
    if (st != CEK_OK) {
        cek__fail_prefix(st, "%s: a %s tensor %s", what, cek_dtype_name(type), CEK__SHAPE_TEXT_OF(shape));
        goto out;
    }
    cek__shape_strides(shape, strides);
    CEK_TRY(cek__tensor_over(device, type, shape, strides, storage, out));
    return CEK_OK;
out:
    if (storage != NULL)
        cek__storage_drop(storage);
    return st;
}

cek_status cek__tensor_view(const cek_tensor *x, const cek__shape *shape, const int64_t *strides, uint64_t offset,
                            cek_tensor **out)
{
    cek_status st;

    CEK_TRY(cek__tensor_over(x->device, x->type, shape, strides, x->storage, out));
    cek__storage_keep(x->storage);
    (*out)->offset = offset;
out:
    return st;
}

cek_status cek_tensor_create(cek_device *device, cek_dtype type, int rank, const int64_t *shape, cek_tensor **out)
{
    cek_status st;
    cek__shape checked;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(device);
    CEK_TRY(cek__shape_make("cek_tensor_create", rank, shape, cek_dtype_bytes(type), &checked));
    CEK_TRY(cek__tensor_new("cek_tensor_create", device, type, &checked, out));
out:
    return st;
}

void cek_tensor_free(cek_tensor *tensor)
{
    cek_device *device;

    if (tensor == NULL)
        return;
    device = tensor->device;
    cek__storage_drop(tensor->storage);
    free(tensor);
    cek__device_drop(device);
}

/* ---- what it is ---- */

cek_device *cek_tensor_device(const cek_tensor *tensor)
{
    return tensor != NULL ? tensor->device : NULL;
}

cek_dtype cek_tensor_type(const cek_tensor *tensor)
{
    return tensor != NULL ? tensor->type : CEK_DTYPE_NONE;
}

int cek_tensor_rank(const cek_tensor *tensor)
{
    return tensor != NULL ? tensor->shape.rank : 0;
}

const int64_t *cek_tensor_shape(const cek_tensor *tensor)
{
    return tensor != NULL ? tensor->shape.dims : NULL;
}

const int64_t *cek_tensor_strides(const cek_tensor *tensor)
{
    return tensor != NULL ? tensor->strides : NULL;
}

bool cek_tensor_is_contiguous(const cek_tensor *tensor)
{
    return tensor != NULL && cek__shape_is_dense(&tensor->shape, tensor->strides);
}

int64_t cek_tensor_count(const cek_tensor *tensor)
{
    return tensor != NULL ? cek__shape_count(&tensor->shape) : 0;
}

uint64_t cek_tensor_bytes(const cek_tensor *tensor)
{
    return (uint64_t)cek_tensor_count(tensor) * cek_dtype_bytes(cek_tensor_type(tensor));
}

cek_ref cek_tensor_ref(const cek_tensor *tensor)
{
    cek_ref ref = { NULL, 0 };

    if (tensor != NULL)
        ref = cek__storage_ref(tensor->storage);
    return (cek_ref){ ref.mem, ref.offset + (tensor != NULL ? tensor->offset : 0) };
}

/* ---- as operands ---- */

cek__lane cek__lane_of(const cek_tensor *x, const cek__shape *over)
{
    cek__lane lane = { .ref = cek_tensor_ref(x), .type = x->type };

    for (int back = 1; back <= x->shape.rank; back++)
        if (x->shape.dims[x->shape.rank - back] != 1)
            lane.strides[over->rank - back] = x->strides[x->shape.rank - back];
    return lane;
}

/* Three classes, so that an operation is not made anew for every place of a view: as memory begins, as the widest
 * access of a device wants it, and as elements lie. */
uint32_t cek__lanes_align(int count, const cek__lane *lanes)
{
    uint64_t offsets = 0;

    for (int i = 0; i < count; i++)
        offsets |= lanes[i].ref.offset;
    return offsets % CEK_ALIGNMENT == 0 ? 0 : offsets % 16 == 0 ? 16 : 1;
}

cek_status cek__tensors_meet(const char *what, int count, const char *const *names, const cek_tensor *const *tensors)
{
    const cek_tensor *first = tensors[0];

    for (int i = 0; i < count; i++) {
        const cek_tensor *t = tensors[i];

        if (t == NULL)
            return cek__fail(CEK_INVALID, "%s: %s is NULL", what, names[i]);
        if (t->device != first->device)
            return cek__fail(CEK_INVALID,
                             "%s: tensors on different devices: %s is on %s, %s on %s; move one with "
                             "cek_tensor_to",
                             what, names[0], first->device->name, names[i], t->device->name);
        if (t->type != first->type)
            return cek__fail(CEK_INVALID, "%s: tensors of different types: %s is %s, %s is %s; cast one first", what,
                             names[0], cek_dtype_name(first->type), names[i], cek_dtype_name(t->type));
    }
    return CEK_OK;
}

cek_status cek__tensors_check(const char *what, int count, const char *const *names, const cek_tensor *const *tensors)
{
    cek_status st;

    CEK_TRY(cek__tensors_meet(what, count, names, tensors));
    if (!cek__dtype_is_float(tensors[0]->type))
        CEK_FAIL(CEK_INVALID, "%s: %s is %s; cast it to a floating type first", what, names[0],
                 cek_dtype_name(tensors[0]->type));
out:
    return st;
}

cek_status cek__axis_take(const char *what, const cek_tensor *x, int axis, int *out)
{
    const int rank = x->shape.rank;

    *out = axis < 0 ? axis + rank : axis;
    return *out >= 0 && *out < rank
               ? CEK_OK
               : cek__fail(CEK_INVALID, "%s: axis %d of a tensor %s", what, axis, CEK__SHAPE_TEXT_OF(&x->shape));
}
