/* dlpack.c - tensors handed to and taken from other libraries in place, by DLPack's structs.
 *
 * What is handed out is a tensor of its own over the same storage, freed by the deleter: the storage and the device
 * live as long as the other library wants. What is taken in is a storage whose owner is the other library's struct. */
#include "cekernels/dlpack.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/device/call.h"
#include "core/device/stream.h"
#include "core/tensor/tensor.h"

static const struct {
    cek_dtype type;
    uint8_t code, bits;
} types[] = {
    { CEK_F32, kDLFloat, 32 }, { CEK_F64, kDLFloat, 64 }, { CEK_F16, kDLFloat, 16 }, { CEK_BF16, kDLBfloat, 16 },
    { CEK_I32, kDLInt, 32 },   { CEK_U8, kDLUInt, 8 },    { CEK_U8, kDLBool, 8 }, /* in */
};
enum { TYPES = sizeof types / sizeof *types };

/* ---- out ---- */

/* Both structs begin what they belong to; the deleter gets the one that was given out. */
typedef struct handed {
    union {
        DLManagedTensor plain;
        DLManagedTensorVersioned versioned;
    } as;
    cek_tensor *tensor;
    int64_t shape[CEK_RANK_MAX], strides[CEK_RANK_MAX];
} handed;

static void plain_delete(DLManagedTensor *self)
{
    handed *h = self->manager_ctx;

    cek_tensor_free(h->tensor);
    free(h);
}

static void versioned_delete(DLManagedTensorVersioned *self)
{
    handed *h = self->manager_ctx;

    cek_tensor_free(h->tensor);
    free(h);
}

/* Where others find the memory. */
static cek_status place_of(const char *what, const cek_tensor *x, DLDevice *device, void **data)
{
    cek_status st;
    const cek_ref ref = cek_tensor_ref(x);
    cek_foreign place = { .size = sizeof place, .kind = CEK_FOREIGN_HOST };
    void *base = cek__mem_host(x->device, ref.mem);

    place.address = (uint64_t)(uintptr_t)base;
    if (base == NULL)
        CEK_TRY(CEK__CALL(x->device, mem_export, ref.mem, &place));
    if (place.kind != CEK_FOREIGN_HOST && place.kind != CEK_FOREIGN_CUDA)
        CEK_FAIL(CEK_UNSUPPORTED, "%s has memory of kind %u, which DLPack does not know", x->device->name, place.kind);
    device->device_type = place.kind == CEK_FOREIGN_HOST ? kDLCPU : kDLCUDA;
    device->device_id = (int32_t)place.ordinal;
    *data = (void *)(uintptr_t)(place.address + ref.offset); /* NOLINT: an address is what it is */
    return CEK_OK;
out:
    return cek__fail_prefix(st, "%s: the memory cannot be shared; copy it with cek_tensor_to or cek_tensor_read", what);
}

/* Of other libraries none waits for our queues: all that was queued has finished. */
static cek_status settle(const cek_tensor *x)
{
    cek_status st;
    cek_stream *stream;

    CEK_TRY(cek__device_order_take(x->device, &stream));
    st = cek_stream_sync(stream, CEK_FOREVER);
    cek__device_turn_give(x->device);
out:
    return st;
}

static cek_status hand(const char *what, const cek_tensor *x, handed **out, DLTensor *to)
{
    cek_status st;
    handed *h = NULL;
    int t = 0;

    CEK_TRY(cek__calloc(1, sizeof *h, &h));
    CEK_TRY(place_of(what, x, &to->device, &to->data));
    CEK_TRY(cek__tensor_view(x, &x->shape, x->strides, x->offset, &h->tensor));
    CEK_TRY(settle(x));
    while (types[t].type != x->type)
        t++;
    memcpy(h->shape, x->shape.dims, sizeof h->shape);
    memcpy(h->strides, x->strides, sizeof h->strides);
    to->ndim = x->shape.rank;
    to->dtype = (DLDataType){ .code = types[t].code, .bits = types[t].bits, .lanes = 1 };
    to->shape = h->shape;
    to->strides = h->strides;
    *out = h;
    return CEK_OK;
out:
    if (h != NULL)
        cek_tensor_free(h->tensor);
    free(h);
    return st;
}

cek_status cek_tensor_to_dlpack(const cek_tensor *x, uint32_t flags, struct DLManagedTensorVersioned **out)
{
    static const char what[] = "cek_tensor_to_dlpack";
    cek_status st;
    handed *h;
    DLTensor tensor = { 0 };

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(x);
    if ((flags & ~CEK_DLPACK_READ_ONLY) != 0)
        CEK_FAIL(CEK_UNSUPPORTED, "%s: unknown flags %#x", what, flags);
    CEK_TRY(hand(what, x, &h, &tensor));
    h->as.versioned = (DLManagedTensorVersioned){ .version = { DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION },
                                                  .manager_ctx = h,
                                                  .deleter = versioned_delete,
                                                  .dl_tensor = tensor };
    if (flags != 0 || cek__storage_is_read_only(x->storage))
        h->as.versioned.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
    *out = &h->as.versioned;
out:
    return st;
}

cek_status cek_tensor_to_dlpack_unversioned(const cek_tensor *x, struct DLManagedTensor **out)
{
    static const char what[] = "cek_tensor_to_dlpack_unversioned";
    cek_status st;
    handed *h;
    DLTensor tensor = { 0 };

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(x);
    if (cek__storage_is_read_only(x->storage))
        CEK_FAIL(CEK_UNSUPPORTED, "%s: the memory may only be read, which this struct cannot say", what);
    CEK_TRY(hand(what, x, &h, &tensor));
    h->as.plain = (DLManagedTensor){ .dl_tensor = tensor, .manager_ctx = h, .deleter = plain_delete };
    *out = &h->as.plain;
out:
    return st;
}

/* ---- in ---- */

static cek_status type_take(const char *what, DLDataType given, cek_dtype *out)
{
    *out = CEK_DTYPE_NONE;
    for (int t = 0; t < TYPES; t++)
        if (types[t].code == given.code && types[t].bits == given.bits && given.lanes == 1) {
            *out = types[t].type;
            return CEK_OK;
        }
    return cek__fail(CEK_UNSUPPORTED, "%s: elements of DLPack's type %u with %u bits and %u lanes", what, given.code,
                     given.bits, given.lanes);
}

static cek_status strides_take(const char *what, const DLTensor *from, const cek__shape *shape,
                               int64_t strides[CEK_RANK_MAX], uint64_t *span)
{
    int64_t last = 0, reach;

    cek__shape_strides(shape, strides);
    *span = 0;
    for (int i = 0; i < shape->rank; i++) {
        if (from->strides != NULL && shape->dims[i] > 1)
            strides[i] = from->strides[i];
        if (strides[i] < 0)
            return cek__fail(CEK_UNSUPPORTED,
                             "%s: dimension %d has the stride %" PRId64 ": tensors run forwards; copy it", what, i,
                             strides[i]);
        if (__builtin_mul_overflow(strides[i], shape->dims[i], &reach) || /* views have this product as a stride */
            __builtin_add_overflow(last, reach - strides[i], &last))
            return cek__fail(CEK_INVALID, "%s: strides beyond what an address has room for", what);
    }
    *span = (uint64_t)last + 1;
    return CEK_OK;
}

static cek_status place_take(const char *what, const DLTensor *from, cek_foreign *out)
{
    const DLDeviceType at = from->device.device_type;

    if (from->data == NULL)
        return cek__fail(CEK_INVALID, "%s: data is NULL", what);
    if (at != kDLCPU && at != kDLCUDAHost && at != kDLCUDA && at != kDLCUDAManaged)
        return cek__fail(CEK_UNSUPPORTED, "%s: memory of DLPack's device type %d", what, (int)at);
    *out = (cek_foreign){ .size = sizeof *out,
                          .kind = at == kDLCPU || at == kDLCUDAHost ? CEK_FOREIGN_HOST : CEK_FOREIGN_CUDA,
                          .ordinal = at == kDLCUDA ? (uint32_t)from->device.device_id : 0,
                          .address = (uint64_t)(uintptr_t)from->data };
    if (__builtin_add_overflow(out->address, from->byte_offset, &out->address))
        return cek__fail(CEK_INVALID, "%s: byte_offset %" PRIu64, what, from->byte_offset);
    return CEK_OK;
}

static cek_status take(const char *what, cek_device *device, const DLTensor *from, bool read_only,
                       void (*release)(void *owner), void *owner, cek_tensor **out)
{
    cek_status st;
    cek_dtype type;
    cek__shape shape;
    cek__storage *storage = NULL;
    cek_foreign place;
    int64_t strides[CEK_RANK_MAX];
    uint64_t span, size;

    CEK_TRY(type_take(what, from->dtype, &type));
    size = cek_dtype_bytes(type);
    if ((device->info.types >> type & 1) == 0)
        CEK_FAIL(CEK_UNSUPPORTED, "%s: %s does not store %s", what, device->name, cek_dtype_name(type));
    CEK_TRY(cek__shape_make(what, from->ndim, from->shape, size, &shape));
    CEK_TRY(strides_take(what, from, &shape, strides, &span));
    CEK_TRY(place_take(what, from, &place));
    if (place.address % size != 0)
        CEK_FAIL(CEK_INVALID, "%s: elements of %" PRIu64 " bytes at the odd address %#" PRIx64, what, size,
                 place.address);
    if (__builtin_mul_overflow(span, size, &place.bytes))
        CEK_FAIL(CEK_INVALID, "%s: strides beyond what an address has room for", what);
    st = cek__storage_foreign(device, &place, read_only, release, owner, &storage);
    if (st != CEK_OK) {
        cek__fail_prefix(st, "%s: the memory cannot be shared", what);
        goto out;
    }
    CEK_TRY(cek__tensor_over(device, type, &shape, strides, storage, out));
    return CEK_OK;
out:
    if (storage != NULL)
        cek__storage_disown(storage);
    return st;
}

static void versioned_release(void *owner)
{
    DLManagedTensorVersioned *managed = owner;

    if (managed->deleter != NULL)
        managed->deleter(managed);
}

static void plain_release(void *owner)
{
    DLManagedTensor *managed = owner;

    if (managed->deleter != NULL)
        managed->deleter(managed);
}

cek_status cek_tensor_from_dlpack(cek_device *device, struct DLManagedTensorVersioned *managed, cek_tensor **out)
{
    static const char what[] = "cek_tensor_from_dlpack";
    cek_status st;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(device);
    CEK__NOT_NULL(managed);
    if (managed->version.major != DLPACK_MAJOR_VERSION)
        CEK_FAIL(CEK_UNSUPPORTED, "%s: DLPack %u.%u: version %d is understood", what, managed->version.major,
                 managed->version.minor, DLPACK_MAJOR_VERSION);
    CEK_TRY(take(what, device, &managed->dl_tensor, (managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0,
                 versioned_release, managed, out));
out:
    return st;
}

cek_status cek_tensor_from_dlpack_unversioned(cek_device *device, struct DLManagedTensor *managed, cek_tensor **out)
{
    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(device);
    CEK__NOT_NULL(managed);
    return take("cek_tensor_from_dlpack_unversioned", device, &managed->dl_tensor, false, plain_release, managed, out);
}
