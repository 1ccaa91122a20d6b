/* npy_tensor.c - tensors as NumPy's files: .npy, one array, and .npz, a zip archive of such (nn.h).
 *
 * A file's bytes become a tensor's elements on the host, then travel once. Nothing in them is believed before it was
 * held against the size of what holds them. Must not know: models, what a tensor is for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cekernels/nn.h"
#include "core/base/alloc.h"
#include "core/base/file.h"
#include "nn/formats/npz.h"
#include "nn/formats/zip_write.h"

static cek_status tensor_of(cek_device *device, const cek_npy *array, cek_tensor **out)
{
    if (array->count == 0)
        return cek__fail(CEK_BAD_INPUT, "it has no element, and a tensor has one at least");
    return cek_tensor_from_host(device, array->type, array->rank, array->shape, array->data, out);
}

cek_status cek_tensor_load(cek_device *device, const char *path, cek_tensor **out)
{
    cek_status st;
    cek_npy array = { .size = sizeof array };
    void *bytes = NULL;
    size_t size;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(device);
    CEK__NOT_NULL(path);
    CEK_TRY(cek__file_read(path, INT64_MAX, &bytes, &size));
    st = cek__npy_take(bytes, size, CEK__NPY_KEPT, CEK_DTYPE_NONE, &array);
    if (st == CEK_OK)
        st = tensor_of(device, &array, out);
    if (st != CEK_OK)
        cek__fail_prefix(st, "%s", path);
out:
    cek__free_after(st, array.data);
    free(bytes);
    return st;
}

/* ---- out ---- */

/* Header and elements of a tensor; the caller's (free). */
static cek_status array_make(const char *what, const cek_tensor *tensor, uint8_t **out, size_t *size)
{
    cek_status st;
    char header[CEK__NPY_HEADER_MAX];
    const cek_dtype type = cek_tensor_type(tensor);
    const uint64_t bytes = cek_tensor_bytes(tensor);
    size_t begin;

    *out = NULL;
    *size = 0;
    if (cek__npy_descr(type) == NULL)
        CEK_FAIL(CEK_UNSUPPORTED, "%s: NumPy has no %s; cast it to f32 first", what, cek_dtype_name(type));
    begin = cek__npy_header_make(cek__npy_descr(type), cek_tensor_rank(tensor), cek_tensor_shape(tensor), header);
    CEK_TRY(cek__malloc(begin + bytes, out));
    memcpy(*out, header, begin);
    st = cek_tensor_read(tensor, *out + begin, bytes);
    if (st != CEK_OK) {
        cek__free_after(st, *out);
        *out = NULL;
        goto out;
    }
    *size = begin + bytes;
out:
    return st;
}

cek_status cek_tensor_save(const cek_tensor *tensor, const char *path)
{
    cek_status st;
    cek__file_writer *writer = NULL;
    uint8_t *bytes = NULL;
    size_t size;

    CEK__NOT_NULL(tensor);
    CEK__NOT_NULL(path);
    CEK_TRY(array_make("cek_tensor_save", tensor, &bytes, &size));
    CEK_TRY(cek__file_create(path, &writer));
    CEK_TRY(cek__file_write(writer, bytes, size));
    st = cek__file_commit(&writer);
out:
    cek__file_abandon(&writer);
    free(bytes);
    return st;
}

/* ---- archives ---- */

cek_status cek_npz_tensor(const cek_npz *npz, const char *name, cek_device *device, cek_tensor **out)
{
    cek_status st;
    cek_npy array = { .size = sizeof array };

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(npz);
    CEK__NOT_NULL(name);
    CEK__NOT_NULL(device);
    CEK_TRY(cek__npz_take(npz, name, CEK__NPY_KEPT, &array));
    st = tensor_of(device, &array, out);
    if (st != CEK_OK)
        cek__fail_prefix(st, "%s: array '%s'", npz->path, name);
out:
    cek__free_after(st, array.data);
    return st;
}

static cek_status names_check(size_t count, const char *const *names, const cek_tensor *const *tensors)
{
    static const char what[] = "cek_npz_save";

    for (size_t i = 0; i < count; i++) {
        if (names[i] == NULL || tensors[i] == NULL)
            return cek__fail(CEK_INVALID, "%s: %s[%zu] is NULL", what, names[i] == NULL ? "names" : "tensors", i);
        if (names[i][0] == '\0' || strlen(names[i]) > CEK__ZIP_NAME_MAX - sizeof CEK__NPZ_ENDING)
            return cek__fail(CEK_INVALID, "%s: names[%zu] has %zu bytes", what, i, strlen(names[i]));
        for (size_t k = 0; k < i; k++)
            if (strcmp(names[i], names[k]) == 0)
                return cek__fail(CEK_INVALID, "%s: two tensors are called '%s'", what, names[i]);
    }
    return CEK_OK;
}

cek_status cek_npz_save(const char *path, size_t count, const char *const *names, const cek_tensor *const *tensors,
                        bool compress)
{
    cek_status st;
    cek__zip_writer *zip = NULL;
    uint8_t *bytes = NULL;
    char *file = NULL;
    size_t size;

    CEK__NOT_NULL(path);
    if (count > 0) {
        CEK__NOT_NULL(names);
        CEK__NOT_NULL(tensors);
    }
    CEK_TRY(names_check(count, names, tensors));
    CEK_TRY(cek__zip_create(path, &zip));
    for (size_t i = 0; i < count; i++) {
        CEK_TRY(cek__asprintf(&file, "%s" CEK__NPZ_ENDING, names[i]));
        CEK_TRY(array_make("cek_npz_save", tensors[i], &bytes, &size));
        CEK_TRY(cek__zip_add(zip, file, bytes, size, compress));
        free(bytes);
        free(file);
        bytes = NULL;
        file = NULL;
    }
    st = cek__zip_commit(&zip);
out:
    cek__zip_abandon(&zip);
    free(bytes);
    free(file);
    return st;
}
