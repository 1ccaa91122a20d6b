/* npy.c - arrays in NumPy's .npy files, in and out (nn.h: cek_npy).
 *
 * The dictionary before the elements is npy_header.c's.
 * Must not know: models, what an array is for. */
#include "nn/formats/npy.h"

#include <endian.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/file.h"
#include "core/base/options.h"
#include "nn/formats/npy_header.h"

enum { EXACT = 1 << 24 /* whole numbers up to here are floats */, PIECE = 4096 };
#define FILE_BYTES_MAX ((uint64_t)INT64_MAX)

static const struct type {
    const char *descr;
    uint64_t bytes;
    cek_dtype as; /* where nobody says what elements are to become */
} types[] = {
    { "<f4", 4, CEK_F32 }, { "<f8", 8, CEK_F32 }, { "<i4", 4, CEK_I32 }, { "<i8", 8, CEK_I32 }, { "|u1", 1, CEK_U8 }
};
enum { TYPES = sizeof types / sizeof *types };

static cek_status type_find(const cek__npy_header *h, const struct type **out)
{
    *out = NULL;
    for (int i = 0; i < TYPES && *out == NULL; i++)
        if (strcmp(types[i].descr, h->descr) == 0)
            *out = &types[i];
    if (*out == NULL)
        return cek__fail(CEK_BAD_INPUT,
                         "elements of type '%s': little-endian '<f4', '<f8', '<i4' and '<i8', and '|u1' are read",
                         h->descr);
    if (h->fortran)
        return cek__fail(CEK_BAD_INPUT, "it is in Fortran's order, with the first axis fastest: C's is read");
    return CEK_OK;
}

/* ---- elements ---- */

static uint64_t bits_of(const uint8_t *at, uint64_t bytes)
{
    uint64_t bits = 0;

    for (uint64_t i = 0; i < bytes; i++)
        bits |= (uint64_t)at[i] << 8 * i;
    return bits;
}

static double real_of(const uint8_t *at, uint64_t bytes)
{
    const uint64_t bits = bits_of(at, bytes);
    const uint32_t half = (uint32_t)bits;
    double wide;
    float narrow;

    memcpy(&wide, &bits, sizeof wide);
    memcpy(&narrow, &half, sizeof narrow);
    return bytes == sizeof wide ? wide : (double)narrow;
}

static int64_t whole_of(const uint8_t *at, uint64_t bytes)
{
    const uint64_t bits = bits_of(at, bytes);

    return bytes == 4 ? (int32_t)(uint32_t)bits : (int64_t)bits;
}

static cek_status reals_take(const uint8_t *at, const struct type *type, int64_t count, float *out)
{
    for (int64_t i = 0; i < count; i++) {
        const double value = real_of(at + (uint64_t)i * type->bytes, type->bytes);

        out[i] = (float)value;
        if (isfinite(value) && !isfinite(out[i]))
            return cek__fail(CEK_BAD_INPUT, "element %lld is %g, which is too large for a float", (long long)i, value);
    }
    return CEK_OK;
}

static cek_status wholes_take(const uint8_t *at, const struct type *type, int64_t count, cek_dtype to, void *out)
{
    const int64_t most = to == CEK_F32 ? EXACT : to == CEK_I32 ? INT32_MAX : UINT8_MAX;
    const int64_t least = to == CEK_F32 ? -EXACT : to == CEK_I32 ? INT32_MIN : 0;

    for (int64_t i = 0; i < count; i++) {
        const int64_t value = whole_of(at + (uint64_t)i * type->bytes, type->bytes);

        if (value < least || value > most)
            return cek__fail(CEK_BAD_INPUT, "element %lld is %lld, which is not from %lld to %lld", (long long)i,
                             (long long)value, (long long)least, (long long)most);
        if (to == CEK_F32)
            ((float *)out)[i] = (float)value;
        else if (to == CEK_I32)
            ((int32_t *)out)[i] = (int32_t)value;
        else
            ((uint8_t *)out)[i] = (uint8_t)value;
    }
    return CEK_OK;
}

cek_status cek__npy_take(const uint8_t *bytes, size_t size, cek_dtype type, cek_npy *out)
{
    cek_status st;
    const struct type *from;
    cek__npy_header h;

    CEK_TRY(cek__npy_header_read(bytes, size, &h));
    CEK_TRY(type_find(&h, &from));
    CEK_TRY(cek__npy_size_check(&h, from->bytes, size - h.values, &out->count));
    out->type = type ? type : from->as;
    out->rank = h.rank;
    memcpy(out->shape, h.shape, sizeof out->shape);
    if (from->as == CEK_F32 && out->type != CEK_F32)
        CEK_FAIL(CEK_BAD_INPUT, "it holds '%s', and whole numbers are wanted", from->descr);
    CEK_TRY(cek__alloc_array((size_t)out->count + 1, cek_dtype_bytes(out->type), &out->data));
    st = from->as == CEK_F32 ? reals_take(bytes + h.values, from, out->count, out->data)
                             : wholes_take(bytes + h.values, from, out->count, out->type, out->data);
out:
    return st;
}

cek_status cek_npy_read(const char *path, cek_dtype type, cek_npy *out)
{
    cek_status st;
    cek_npy array = { .size = sizeof array };
    void *bytes = NULL;
    size_t size;

    CEK__NOT_NULL(path);
    CEK__NOT_NULL(out);
    CEK_TRY(cek__results_check("cek_npy_read", out));
    if (out->size < offsetof(cek_npy, data) + sizeof out->data)
        CEK_FAIL(CEK_INVALID, "cek_npy_read: a result of %u bytes has no room for the elements", out->size);
    if (type != CEK_DTYPE_NONE && type != CEK_F32 && type != CEK_I32 && type != CEK_U8)
        CEK_FAIL(CEK_INVALID, "cek_npy_read: elements become f32, i32 or u8, not %s", cek_dtype_name(type));
    CEK_TRY(cek__file_read(path, FILE_BYTES_MAX, &bytes, &size));
    st = cek__npy_take(bytes, size, type, &array);
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

static const char *descr_of(cek_dtype type)
{
    return type == CEK_F32 ? "<f4" : type == CEK_I32 ? "<i4" : type == CEK_U8 ? "|u1" : NULL;
}

/* In pieces, whose bytes are turned around where the machine has them otherwise. */
static cek_status elements_write(cek__file_writer *writer, const cek_npy *array)
{
    cek_status st = CEK_OK;
    uint32_t piece[PIECE];

    if (array->type == CEK_U8)
        return cek__file_write(writer, array->data, (size_t)array->count);
    for (int64_t i = 0; i < array->count; i += PIECE) {
        const int64_t now = array->count - i < PIECE ? array->count - i : PIECE;

        memcpy(piece, (const uint32_t *)array->data + i, (size_t)now * sizeof *piece);
        for (int64_t k = 0; k < now; k++)
            piece[k] = htole32(piece[k]);
        CEK_TRY(cek__file_write(writer, piece, (size_t)now * sizeof *piece));
    }
out:
    return st;
}

static cek_status array_check(const cek_npy *array)
{
    int64_t count = 1;

    if (descr_of(array->type) == NULL || array->rank < 0 || array->rank > CEK_RANK_MAX)
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
    CEK_TRY(cek__file_write(writer, text, cek__npy_header_make(descr_of(a.type), a.rank, a.shape, text)));
    CEK_TRY(elements_write(writer, &a));
    st = cek__file_commit(&writer);
out:
    cek__file_abandon(&writer);
    return st;
}
