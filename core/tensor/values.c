/* values.c - what the host puts into tensors and takes out of them: arrays, one value, ranges, random whole numbers.
 *
 * Owns: the rules of host memory that a device may still read or write when something fails. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/random.h"
#include "core/device/call.h"
#include "core/device/stream.h"
#include "core/tensor/copy.h"

enum { UPDATE_MAX = 4096 };      /* bytes that a queue takes over at once (plugin.h, update) */
enum { FILL_CHUNK = 64 * 1024 }; /* of patterns that no queue fills with */

/* ---- reading and writing ---- */

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
    cek_tensor *dense = NULL;

    CEK__NOT_NULL(tensor);
    CEK__NOT_NULL(dst);
    CEK_TRY(size_check("cek_tensor_read", tensor, bytes));
    CEK_TRY(cek_tensor_contiguous(tensor, &dense));
    CEK_TRY(cek__device_order_take(tensor->device, &stream));
    st = cek_stream_download(stream, dst, cek_tensor_ref(dense), bytes);
    if (st == CEK_OK)
        st = cek_stream_sync(stream, CEK_FOREVER);
    cek__device_turn_give(tensor->device);
out:
    cek_tensor_free(dense);
    return st;
}

static cek_status dense_write(cek_tensor *tensor, const void *src, uint64_t bytes)
{
    cek_status st;
    cek_stream *stream;
    cek_device *device = tensor->device;
    cek_ref to = cek_tensor_ref(tensor);

    CEK_TRY(cek__device_order_take(device, &stream));
    if (bytes <= UPDATE_MAX && bytes % 4 == 0 && to.offset % 4 == 0) {
        st = cek_stream_update(stream, to, src, bytes);
    } else {
        st = cek_stream_upload(stream, to, src, bytes);
        if (st == CEK_OK)
            st = cek_stream_sync(stream, CEK_FOREVER); /* `src` is the caller's again */
    }
    cek__device_turn_give(device);
out:
    return st;
}

cek_status cek_tensor_write(cek_tensor *tensor, const void *src, uint64_t bytes)
{
    cek_status st;
    cek_tensor *dense = NULL;

    CEK__NOT_NULL(tensor);
    CEK__NOT_NULL(src);
    CEK_TRY(size_check("cek_tensor_write", tensor, bytes));
    if (cek__storage_is_read_only(tensor->storage))
        CEK_FAIL(CEK_INVALID, "cek_tensor_write: the memory of the tensor is another's and may only be read");
    if (cek_tensor_is_contiguous(tensor))
        return dense_write(tensor, src, bytes);
    CEK_TRY(cek_tensor_from_host(tensor->device, tensor->type, tensor->shape.rank, tensor->shape.dims, src, &dense));
    CEK_TRY(cek_tensor_assign(tensor, dense));
out:
    cek_tensor_free(dense);
    return st;
}

cek_status cek_tensor_item(const cek_tensor *tensor, double *out)
{
    cek_status st;
    void *element = NULL; /* which a device that was lost may still write */

    CEK__NOT_NULL(out);
    *out = 0;
    CEK__NOT_NULL(tensor);
    if (cek_tensor_count(tensor) != 1)
        CEK_FAIL(CEK_INVALID, "cek_tensor_item: a tensor %s has %" PRId64 " elements",
                 CEK__SHAPE_TEXT_OF(&tensor->shape), cek_tensor_count(tensor));
    CEK_TRY(cek__malloc(cek_tensor_bytes(tensor), &element));
    CEK_TRY(cek_tensor_read(tensor, element, cek_tensor_bytes(tensor)));
    *out = cek__dtype_get(tensor->type, element);
out:
    cek__free_after(st, element);
    return st;
}

/* ---- tensors of values ---- */

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
    CEK_TRY(dense_write(tensor, data, cek_tensor_bytes(tensor)));
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

static cek_status full_make(const char *what, cek_device *device, cek_dtype type, const cek__shape *shape, double value,
                            cek_tensor **out)
{
    cek_status st;
    cek_tensor *tensor;
    cek_stream *stream;

    CEK_TRY(cek__tensor_new(what, device, type, shape, &tensor));
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

cek_status cek_tensor_full(cek_device *device, cek_dtype type, int rank, const int64_t *dims, double value,
                           cek_tensor **out)
{
    static const char what[] = "cek_tensor_full";
    cek_status st;
    cek__shape shape;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(device);
    CEK_TRY(cek__shape_make(what, rank, dims, cek_dtype_bytes(type), &shape));
    st = full_make(what, device, type, &shape, value, out);
out:
    return st;
}

/* ---- values that are counted ---- */

cek_status cek_tensor_arange(cek_device *device, cek_dtype type, double start, double stop, double step,
                             cek_tensor **out)
{
    static const char what[] = "cek_tensor_arange";
    cek_status st;
    cek__shape shape;
    unsigned char *values = NULL;
    const size_t size = cek_dtype_bytes(type);
    const double count = ceil((stop - start) / step);
    int64_t length = count >= 1 && count < 0x1p62 ? (int64_t)count : 0;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(device);
    if (length == 0)
        CEK_FAIL(CEK_INVALID, "%s: %g to %g in steps of %g: %s", what, start, stop, step,
                 step == 0    ? "it never ends"
                 : count >= 1 ? "too many"
                              : "no value; a tensor has an element");
    if (size == 0)
        CEK_FAIL(CEK_INVALID, "%s: unknown element type %u", what, type);
    CEK_TRY(cek__shape_make(what, 1, &length, size, &shape));
    CEK_TRY(cek__alloc_array((size_t)length, size, &values));
    for (int64_t i = 0; i < length; i++)
        cek__dtype_put(type, start + (double)i * step, values + (size_t)i * size);
    CEK_TRY(cek_tensor_from_host(device, type, 1, &length, values, out));
out:
    cek__free_after(st, values);
    return st;
}

cek_status cek_tensor_eye(cek_device *device, cek_dtype type, int64_t rows, int64_t columns, cek_tensor **out)
{
    static const char what[] = "cek_tensor_eye";
    cek_status st;
    cek_tensor *y = NULL, *one = NULL;
    cek__shape shape, diagonal = { .rank = 1, .dims = { rows < columns ? rows : columns } };
    cek__lane from, to;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(device);
    CEK_TRY(cek__shape_make(what, 2, (int64_t[]){ rows, columns }, cek_dtype_bytes(type), &shape));
    CEK_TRY(full_make(what, device, type, &shape, 0, &y));
    CEK_TRY(full_make(what, device, type, &(cek__shape){ .rank = 0 }, 1, &one));
    from = cek__lane_of(one, &diagonal);
    to = (cek__lane){ .ref = cek_tensor_ref(y), .type = type, .strides = { columns + 1 } };
    CEK_TRY(cek__copy_run(what, device, &diagonal, &from, &to));
    *out = y;
    y = NULL;
out:
    cek_tensor_free(one);
    cek_tensor_free(y);
    return st;
}

cek_status cek_tensor_randint(cek_device *device, int rank, const int64_t *dims, int32_t low, int32_t high,
                              uint64_t seed, uint32_t stream, cek_tensor **out)
{
    static const char what[] = "cek_tensor_randint";
    cek_status st;
    cek__shape shape;
    int32_t *values = NULL;
    int64_t count;
    const uint64_t range = (uint64_t)((int64_t)high - low);

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(device);
    if (low >= high)
        CEK_FAIL(CEK_INVALID, "%s: no whole number from %d up to but not %d", what, low, high);
    CEK_TRY(cek__shape_make(what, rank, dims, sizeof *values, &shape));
    count = cek__shape_count(&shape);
    if (count >= (int64_t)1 << 34)
        CEK_FAIL(CEK_INVALID, "%s: shape %s: a stream has 2^34 numbers", what, CEK__SHAPE_TEXT_OF(&shape));
    CEK_TRY(cek__alloc_array((size_t)count, sizeof *values, &values));
    for (int64_t i = 0; i < count; i += 4) {
        const uint32_t counter[4] = { (uint32_t)(i / 4), stream }, key[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };
        uint32_t words[4];

        cek__philox4x32_10(counter, key, words);
        for (int64_t k = i; k < count && k < i + 4; k++)
            values[k] = (int32_t)(low + (int64_t)(words[k - i] * range >> 32));
    }
    CEK_TRY(cek_tensor_from_host(device, CEK_I32, rank, dims, values, out));
out:
    cek__free_after(st, values);
    return st;
}
