/* tensor.c - tensors: making, reading, writing, and moving them.
 *
 * Owns: one piece of ordered memory per tensor: all its uses are queued on the device's default stream, so it may be
 * freed while they are still to come. What is computed with tensors stands in the files beside this one. */
#include "core/tensor/tensor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/device/call.h"
#include "core/device/stream.h"
#include "core/tensor/eager.h"

enum { UPDATE_MAX = 4096 };      /* bytes that a queue takes over at once (plugin.h, update) */
enum { FILL_CHUNK = 64 * 1024 }; /* of patterns that no queue fills with */

/* ---- making ---- */

cek_status cek__tensor_new(const char *what, cek_device *device, cek_dtype type, const cek__shape *shape,
                           cek_tensor **out)
{
    cek_status st;
    cek_tensor *tensor = NULL;

    *out = NULL;
    if (cek_dtype_bytes(type) == 0)
        CEK_FAIL(CEK_INVALID, "%s: unknown element type %u", what, type);
    if ((device->info.types >> type & 1) == 0)
        CEK_FAIL(CEK_UNSUPPORTED, "%s: %s does not store %s", what, device->name, cek_dtype_name(type));
    CEK_TRY(cek__calloc(1, sizeof *tensor, &tensor));
    *tensor = (cek_tensor){ .device = device, .type = type, .shape = *shape };
    st = cek__memory_alloc_order(device, cek_tensor_bytes(tensor), &tensor->memory);
    if (st != CEK_OK) {
        cek__fail_prefix(st, "%s: a %s tensor %s", what, cek_dtype_name(type), CEK__SHAPE_TEXT_OF(shape));
        goto out;
    }
    cek__device_take(device);
    *out = tensor;
    return CEK_OK;
out:
    free(tensor);
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

cek_status cek_tensor_from_host(cek_device *device, cek_dtype type, int rank, const int64_t *shape, const void *data,
                                cek_tensor **out)
{
    cek_status st;
    cek_tensor *tensor = NULL;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(device);
    CEK__NOT_NULL(data);
    CEK_TRY(cek_tensor_create(device, type, rank, shape, &tensor));
    CEK_TRY(cek_tensor_write(tensor, data, cek_tensor_bytes(tensor)));
    *out = tensor;
    return CEK_OK;
out:
    cek_tensor_free(tensor);
    return st;
}

/* An 8-byte pattern whose halves differ: no queue fills with that, so it travels. */
static cek_status fill_wide(cek_stream *stream, cek_ref dst, const uint8_t pattern[8], uint64_t bytes)
{
    cek_status st;
    uint8_t *chunk = NULL;

    CEK_TRY(cek__malloc(FILL_CHUNK, &chunk));
    for (size_t i = 0; i < FILL_CHUNK; i += 8)
        memcpy(chunk + i, pattern, 8);
    for (uint64_t done = 0; done < bytes && st == CEK_OK; done += FILL_CHUNK)
        st = cek_stream_upload(stream, (cek_ref){ dst.mem, dst.offset + done }, chunk,
                               bytes - done < FILL_CHUNK ? bytes - done : FILL_CHUNK);
    if (st == CEK_OK)
        st = cek_stream_sync(stream, CEK_FOREVER);
    if (st != CEK_OK && !cek__stream_quiesce(stream)) {
        cek__abandon(chunk); /* rather than freed under a lost device */
        chunk = NULL;
    }
out:
    free(chunk);
    return st;
}

static cek_status fill_queue(cek_tensor *tensor, cek_stream *stream, double value)
{
    uint8_t element[8] = { 0 };
    size_t size = cek_dtype_bytes(tensor->type);
    uint32_t pattern;

    cek__dtype_put(tensor->type, value, element);
    memcpy(&pattern, element, sizeof pattern);
    if (size == 8 && memcmp(element, element + 4, 4) != 0)
        return fill_wide(stream, cek_tensor_ref(tensor), element, cek_tensor_bytes(tensor));
    return cek_stream_fill(stream, cek_tensor_ref(tensor), pattern, size < 4 ? (uint32_t)size : 4,
                           cek_tensor_bytes(tensor));
}

cek_status cek_tensor_full(cek_device *device, cek_dtype type, int rank, const int64_t *shape, double value,
                           cek_tensor **out)
{
    cek_status st;
    cek_tensor *tensor = NULL;
    cek_stream *stream;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(device);
    CEK_TRY(cek_tensor_create(device, type, rank, shape, &tensor));
    CEK_TRY(cek__device_order_take(device, &stream));
    st = fill_queue(tensor, stream, value);
    cek__device_turn_give(device);
    CEK_TRY(st);
    *out = tensor;
    return CEK_OK;
out:
    cek_tensor_free(tensor);
    return st;
}

void cek_tensor_free(cek_tensor *tensor)
{
    cek_device *device;

    if (tensor == NULL)
        return;
    device = tensor->device;
    cek_memory_free(tensor->memory);
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
    return tensor != NULL ? cek_memory_ref(tensor->memory) : (cek_ref){ NULL, 0 };
}

cek_status cek__tensors_check(const char *what, int count, const char *const *names, const cek_tensor *const *tensors)
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
        if (!cek__dtype_is_float(t->type))
            return cek__fail(CEK_INVALID, "%s: %s is %s; cast it to a floating type first", what, names[i],
                             cek_dtype_name(t->type));
    }
    return CEK_OK;
}

/* ---- host memory ---- */

static cek_status size_check(const char *what, const cek_tensor *tensor, uint64_t bytes)
{
    if (bytes == cek_tensor_bytes(tensor))
        return CEK_OK;
    return cek__fail(CEK_INVALID, "%s: %" PRIu64 " bytes for a %s tensor %s of %" PRIu64, what, bytes,
                     cek_dtype_name(tensor->type), CEK__SHAPE_TEXT_OF(&tensor->shape), cek_tensor_bytes(tensor));
}

cek_status cek_tensor_read(const cek_tensor *tensor, void *dst, uint64_t bytes)
{
    cek_status st;
    cek_stream *stream;

    CEK__NOT_NULL(tensor);
    CEK__NOT_NULL(dst);
    CEK_TRY(size_check("cek_tensor_read", tensor, bytes));
    CEK_TRY(cek__device_order_take(tensor->device, &stream));
    st = cek_stream_download(stream, dst, cek_tensor_ref(tensor), bytes);
    if (st == CEK_OK)
        st = cek_stream_sync(stream, CEK_FOREVER);
    cek__device_turn_give(tensor->device);
out:
    return st;
}

cek_status cek_tensor_write(cek_tensor *tensor, const void *src, uint64_t bytes)
{
    cek_status st;
    cek_stream *stream;
    cek_device *device;

    CEK__NOT_NULL(tensor);
    CEK__NOT_NULL(src);
    device = tensor->device;
    CEK_TRY(size_check("cek_tensor_write", tensor, bytes));
    CEK_TRY(cek__device_order_take(device, &stream));
    if (bytes <= UPDATE_MAX && bytes % 4 == 0) {
        st = cek_stream_update(stream, cek_tensor_ref(tensor), src, bytes);
    } else {
        st = cek_stream_upload(stream, cek_tensor_ref(tensor), src, bytes);
        if (st == CEK_OK)
            st = cek_stream_sync(stream, CEK_FOREVER); /* `src` is the caller's again */
    }
    cek__device_turn_give(device);
out:
    return st;
}

/* ---- copies ---- */

static cek_status copy_within(const cek_tensor *src, cek_tensor *dst)
{
    cek_status st;
    cek_stream *stream;
    cek_device *device = src->device;

    CEK_TRY(cek__device_order_take(device, &stream));
    st = cek_stream_copy(stream, cek_tensor_ref(dst), stream, cek_tensor_ref(src), cek_tensor_bytes(src));
    cek__device_turn_give(device);
out:
    return st;
}

/* Both default streams, taken in the order of their addresses, so that two copies crossing each other cannot wait
 * for one another. The destination is waited for as well: `src` may be freed or overwritten when this returns. */
static cek_status copy_across(const cek_tensor *src, cek_tensor *dst)
{
    cek_status st;
    bool src_first = (uintptr_t)src->device < (uintptr_t)dst->device;
    cek_device *outer = src_first ? src->device : dst->device, *inner = src_first ? dst->device : src->device;
    cek_stream *outer_stream, *inner_stream, *from, *to;

    st = cek__device_order_take(outer, &outer_stream);
    if (st != CEK_OK)
        return st;
    CEK_TRY(cek__device_order_take(inner, &inner_stream));
    from = src_first ? outer_stream : inner_stream;
    to = src_first ? inner_stream : outer_stream;
    st = cek_stream_copy(to, cek_tensor_ref(dst), from, cek_tensor_ref(src), cek_tensor_bytes(src));
    if (st == CEK_OK)
        st = cek_stream_sync(to, CEK_FOREVER);
    cek__device_turn_give(inner);
out:
    cek__device_turn_give(outer);
    return st;
}

/* A copy of the bytes of x as a tensor of another shape or on another device. */
static cek_status copy_as(const char *what, const cek_tensor *x, cek_device *device, const cek__shape *shape,
                          cek_tensor **out)
{
    cek_status st;
    cek_tensor *copy = NULL;

    CEK_TRY(cek__tensor_new(what, device, x->type, shape, &copy));
    st = device == x->device ? copy_within(x, copy) : copy_across(x, copy);
    if (st != CEK_OK) {
        cek__fail_prefix(st, "%s: from %s to %s", what, x->device->name, device->name);
        goto out;
    }
    *out = copy;
    return CEK_OK;
out:
    cek_tensor_free(copy);
    return st;
}

cek_status cek_tensor_to(const cek_tensor *src, cek_device *device, cek_tensor **out)
{
    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(src);
    CEK__NOT_NULL(device);
    return copy_as("cek_tensor_to", src, device, &src->shape, out);
}

/* The dimension written as -1 from the others. */
static cek_status dims_complete(const cek_tensor *x, int rank, const int64_t *given, int64_t dims[CEK_RANK_MAX])
{
    int64_t known = 1, count = cek_tensor_count(x);
    int open = -1;

    if (rank < 0 || rank > CEK_RANK_MAX)
        return CEK_OK; /* cek__shape_make refuses it */
    if (rank > 0 && given == NULL)
        return cek__fail(CEK_INVALID, "cek_tensor_reshape: shape is NULL");
    for (int i = 0; i < rank; i++) {
        dims[i] = given[i];
        if (given[i] == -1 && open >= 0)
            return cek__fail(CEK_INVALID, "cek_tensor_reshape: dimensions %d and %d are both -1", open, i);
        if (given[i] == -1)
            open = i;
        else if (given[i] < 1)
            return cek__fail(CEK_INVALID, "cek_tensor_reshape: dimension %d is %" PRId64 ": at least 1, or one -1", i,
                             given[i]);
        else if (__builtin_mul_overflow(known, given[i], &known))
            return cek__fail(CEK_INVALID, "cek_tensor_reshape: more elements than an address has room for");
    }
    if (open >= 0 && count % known != 0)
        return cek__fail(CEK_INVALID, "cek_tensor_reshape: %" PRId64 " elements of %s cannot be divided by %" PRId64,
                         count, CEK__SHAPE_TEXT_OF(&x->shape), known);
    if (open >= 0)
        dims[open] = count / known;
    return CEK_OK;
}

cek_status cek_tensor_reshape(const cek_tensor *x, int rank, const int64_t *shape, cek_tensor **out)
{
    cek_status st;
    int64_t dims[CEK_RANK_MAX] = { 0 };
    cek__shape checked;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(x);
    CEK_TRY(dims_complete(x, rank, shape, dims));
    CEK_TRY(cek__shape_make("cek_tensor_reshape", rank, dims, cek_dtype_bytes(x->type), &checked));
    if (cek__shape_count(&checked) != cek_tensor_count(x))
        CEK_FAIL(CEK_INVALID, "cek_tensor_reshape: shapes %s and %s have different numbers of elements",
                 CEK__SHAPE_TEXT_OF(&x->shape), CEK__SHAPE_TEXT_OF(&checked));
    CEK_TRY(copy_as("cek_tensor_reshape", x, x->device, &checked, out));
out:
    return st;
}

/* ---- copies that convert or permute ---- */

/* Runs the copy operation from x, read through `strides` over `shape`, into the dense `y`. */
static cek_status copy_run(const char *what, const cek_tensor *x, const cek__shape *shape, const int64_t *x_strides,
                           cek_tensor *y)
{
    cek__shape over = *shape;
    int64_t strides[2][CEK_RANK_MAX];
    cek_ref operands[] = { [CEK_COPY_X] = cek_tensor_ref(x), [CEK_COPY_Y] = cek_tensor_ref(y) };
    cek_copy_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_COPY, .operands = CEK_BIT(CEK_COPY_X) | CEK_BIT(CEK_COPY_Y) },
        .x_type = x->type,
        .y_type = y->type
    };

    memcpy(strides[0], x_strides, sizeof strides[0]);
    cek__shape_strides(&y->shape, shape, strides[1]);
    cek__shape_collapse(&over, 2, strides);
    desc.rank = (uint32_t)over.rank;
    for (int i = 0; i < over.rank; i++)
        desc.shape[i] = (uint64_t)over.dims[i];
    memcpy(desc.x_strides, strides[0], sizeof strides[0]);
    memcpy(desc.y_strides, strides[1], sizeof strides[1]);
    return cek__eager_run(what, x->device, &desc.op, operands, 2);
}

cek_status cek_tensor_cast(const cek_tensor *x, cek_dtype type, cek_tensor **out)
{
    cek_status st;
    cek_tensor *y = NULL;
    int64_t strides[CEK_RANK_MAX];

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(x);
    if (type == x->type)
        return copy_as("cek_tensor_cast", x, x->device, &x->shape, out);
    CEK_TRY(cek__tensor_new("cek_tensor_cast", x->device, type, &x->shape, &y));
    cek__shape_strides(&x->shape, &x->shape, strides);
    CEK_TRY(copy_run("cek_tensor_cast", x, &x->shape, strides, y));
    *out = y;
    return CEK_OK;
out:
    cek_tensor_free(y);
    return st;
}

cek_status cek_tensor_permute(const cek_tensor *x, const int *axes, cek_tensor **out)
{
    cek_status st;
    cek_tensor *y = NULL;
    cek__shape shape = { 0 };
    int64_t x_strides[CEK_RANK_MAX], strides[CEK_RANK_MAX] = { 0 };
    unsigned seen = 0;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(x);
    shape.rank = x->shape.rank;
    if (shape.rank > 0)
        CEK__NOT_NULL(axes);
    cek__shape_strides(&x->shape, &x->shape, x_strides);
    for (int i = 0; i < shape.rank; i++) {
        if (axes[i] < 0 || axes[i] >= shape.rank || (seen >> axes[i] & 1) != 0)
            CEK_FAIL(CEK_INVALID, "cek_tensor_permute: axis %d at place %d is no permutation of 0 to %d", axes[i], i,
                     shape.rank - 1);
        seen |= 1u << axes[i];
        shape.dims[i] = x->shape.dims[axes[i]];
        strides[i] = x_strides[axes[i]];
    }
    CEK_TRY(cek__tensor_new("cek_tensor_permute", x->device, x->type, &shape, &y));
    CEK_TRY(copy_run("cek_tensor_permute", x, &shape, strides, y));
    *out = y;
    return CEK_OK;
out:
    cek_tensor_free(y);
    return st;
}
