/* npy.c - arrays in NumPy's .npy files, in and out (nn.h: cek_npy).
 *
 * The dictionary before the elements is npy_header.c's.
 * Must not know: models, what an array is for. */
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/file.h"
#include "core/base/options.h"
#include "nn/formats/npy_elements.h"

#define FILE_BYTES_MAX ((uint64_t)INT64_MAX)

cek_status cek_npy_read(const char *path, cek_dtype type, cek_npy *out)
{
    cek_status st;
    cek_npy array = { .size = sizeof array };
    void *bytes = NULL;
    size_t size;

    CEK__NOT_NULL(path);
    CEK__NOT_NULL(out);
    CEK_TRY(cek__results_clear("cek_npy_read", out));
    if (out->size < offsetof(cek_npy, data) + sizeof out->data)
        CEK_FAIL(CEK_INVALID, "cek_npy_read: a result of %u bytes has no room for the elements", out->size);
    if (type != CEK_DTYPE_NONE && type != CEK_F32 && type != CEK_I32 && type != CEK_U8)
        CEK_FAIL(CEK_INVALID, "cek_npy_read: elements become f32, i32 or u8, not %s", cek_dtype_name(type));
    CEK_TRY(cek__file_read(path, FILE_BYTES_MAX, &bytes, &size));
    st = cek__npy_take(bytes, size, CEK__NPY_NEAREST, type, &array);
    if (st == CEK_OK)
        cek__results_give(out, &array, sizeof array);
    else
        st = cek__fail_prefix(st, "%s", path);
out:
    free(bytes);
    if (st != CEK_OK)
        free(array.data);
    return st;
}

/* ---- out ---- */

static cek_status array_check(const cek_npy *array)
{
    int64_t count = 1;

    const bool known = array->type == CEK_F32 || array->type == CEK_I32 || array->type == CEK_U8;

    if (!known || array->rank < 0 || array->rank > CEK_RANK_MAX)
        return cek__fail(CEK_INVALID, "cek_npy_write: %d axes of %s", array->rank, cek_dtype_name(array->type));
    for (int i = 0; i < array->rank; i++)
        if (array->shape[i] < 0 || __builtin_mul_overflow(count, array->shape[i], &count))
            return cek__fail(CEK_INVALID, "cek_npy_write: axis %d of %lld", i, (long long)array->shape[i]);
    if (count != array->count || (count > 0 && array->data == NULL))
        return cek__fail(CEK_INVALID, "cek_npy_write: %lld elements, the shape has %lld", (long long)array->count,
                         (long long)count);
    return CEK_OK;
}

cek_status cek_npy_write(const char *path, const cek_npy *array)
{
    cek_status st;
    cek__file_writer *writer = NULL;
    cek_npy a;
    char text[CEK__NPY_HEADER_MAX];

    CEK__NOT_NULL(path);
    CEK__NOT_NULL(array);
    CEK_TRY(cek__options_take("cek_npy_write", &a, sizeof a, array));
    CEK_TRY(array_check(&a));
    CEK_TRY(cek__file_create(path, &writer));
    CEK_TRY(cek__file_write(writer, text, cek__npy_header_make(cek__npy_descr(a.type), a.rank, a.shape, text)));
    CEK_TRY(cek__file_write(writer, a.data, (size_t)a.count * cek_dtype_bytes(a.type)));
    st = cek__file_commit(&writer);
out:
    cek__file_abandon(&writer);
    return st;
}
