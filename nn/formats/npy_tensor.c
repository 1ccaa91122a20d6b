/* npy_tensor.c - tensors as NumPy's files: .npy, one array, and .npz, a zip archive of such (nn.h).
 *
 * A file's bytes become a tensor's elements on the host, then travel once. Nothing in them is believed before it was
 * held against the size of what holds them. Must not know: models, what a tensor is for. */
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cekernels/nn.h"
#include "core/base/alloc.h"
#include "core/base/file.h"
#include "nn/formats/npy_header.h"
#include "nn/formats/zip.h"
#include "nn/formats/zip_write.h"

#define FILE_BYTES_MAX ((uint64_t)INT64_MAX)

/* ---- types ---- */

/* As the file says it behind the byte order. WHOLE: becomes i32, element by element, where each is one. */
static const struct type {
    const char *name;
    uint64_t bytes;
    cek_dtype as;
    bool whole, is_signed;
} types[] = {
    { "f4", 4, CEK_F32, false, true }, { "f8", 8, CEK_F64, false, true }, { "f2", 2, CEK_F16, false, true },
    { "i4", 4, CEK_I32, false, true }, { "u1", 1, CEK_U8, false, false }, { "b1", 1, CEK_U8, false, false },
    { "i1", 1, CEK_I32, true, true },  { "i2", 2, CEK_I32, true, true },  { "i8", 8, CEK_I32, true, true },
    { "u2", 2, CEK_I32, true, false }, { "u4", 4, CEK_I32, true, false }, { "u8", 8, CEK_I32, true, false },
};
enum { TYPES = sizeof types / sizeof *types };

static cek_status type_find(const char *descr, const struct type **out, bool *swapped)
{
    const char order = descr[0];

    *out = NULL;
    *swapped = order == '>';
    if (order != '\0' && strchr("<>|=", order) != NULL)
        for (int i = 0; i < TYPES; i++)
            if (strcmp(types[i].name, descr + 1) == 0 && (order != '|' || types[i].bytes == 1)) {
                *out = &types[i];
                return CEK_OK;
            }
    return cek__fail(CEK_BAD_INPUT,
                     "elements of type '%s': floats of 16 to 64 bits, whole numbers and bool are read; convert them in "
                     "Python with .astype('float32')",
                     descr);
}

static const char *descr_of(cek_dtype type)
{
    return type == CEK_F32   ? "<f4"
           : type == CEK_F64 ? "<f8"
           : type == CEK_F16 ? "<f2"
           : type == CEK_I32 ? "<i4"
           : type == CEK_U8  ? "|u1"
                             : NULL;
}

/* ---- in ---- */

static void bytes_turn(uint8_t *at, uint64_t count, uint64_t bytes)
{
    for (; count > 0; count--, at += bytes)
        for (uint64_t i = 0; i < bytes / 2; i++) {
            const uint8_t kept = at[i];

            at[i] = at[bytes - 1 - i];
            at[bytes - 1 - i] = kept;
        }
}

/* The element as 64 bits, sign and all. */
static uint64_t whole_at(const uint8_t *at, const struct type *type)
{
    uint64_t bits = 0;

    for (uint64_t i = 0; i < type->bytes; i++)
        bits |= (uint64_t)at[i] << 8 * i;
    if (type->is_signed && type->bytes < 8 && (bits >> (8 * type->bytes - 1) & 1) != 0)
        bits |= UINT64_MAX << 8 * type->bytes;
    return bits;
}

static cek_status wholes_take(const uint8_t *at, const struct type *type, int64_t count, int32_t *out)
{
    for (int64_t i = 0; i < count; i++) {
        const uint64_t bits = whole_at(at + (uint64_t)i * type->bytes, type);
        const int64_t value = (int64_t)bits;

        if ((!type->is_signed && bits > INT32_MAX) || value < INT32_MIN || value > INT32_MAX)
            return cek__fail(CEK_BAD_INPUT,
                             type->is_signed ? "element %" PRId64 " is %" PRId64 ", which 32 bits do not hold"
                                             : "element %" PRId64 " is %" PRIu64 ", which 32 bits do not hold",
                             i, bits);
        out[i] = (int32_t)value;
    }
    return CEK_OK;
}

/* A tensor of elements that lie in this machine's order of bytes, the first axis fastest if `fortran`. */
static cek_status elements_place(cek_device *device, cek_dtype type, const cek__npy_header *h, const void *elements,
                                 cek_tensor **out)
{
    cek_status st;
    cek_tensor *turned = NULL;
    int64_t shape[CEK_RANK_MAX];
    int axes[CEK_RANK_MAX];

    if (!h->fortran || h->rank < 2)
        return cek_tensor_from_host(device, type, h->rank, h->shape, elements, out);
    for (int i = 0; i < h->rank; i++) {
        axes[i] = h->rank - 1 - i;
        shape[i] = h->shape[axes[i]];
    }
    CEK_TRY(cek_tensor_from_host(device, type, h->rank, shape, elements, &turned));
    CEK_TRY(cek_tensor_permute(turned, axes, out));
out:
    cek_tensor_free(turned);
    return st;
}

/* `bytes` may be changed. */
static cek_status array_take(cek_device *device, uint8_t *bytes, size_t size, cek_tensor **out)
{
    cek_status st;
    const struct type *type = NULL;
    cek__npy_header h;
    bool swapped;
    int64_t count;
    int32_t *wholes = NULL;
    void *elements;

    CEK_TRY(cek__npy_header_read(bytes, size, &h));
    CEK_TRY(type_find(h.descr, &type, &swapped));
    CEK_TRY(cek__npy_size_check(&h, type->bytes, size - h.values, &count));
    if (count == 0)
        CEK_FAIL(CEK_BAD_INPUT, "it has no element, and a tensor has one at least");
    CEK_TRY(cek__alloc_aligned(8, size - h.values, &elements)); /* where each element may be read as what it is */
    memcpy(elements, bytes + h.values, size - h.values);
    if (swapped != (BYTE_ORDER == BIG_ENDIAN))
        bytes_turn(elements, (uint64_t)count, type->bytes);
    if (type->whole) {
        st = cek__alloc_array((size_t)count, sizeof *wholes, &wholes);
        if (st == CEK_OK)
            st = wholes_take(elements, type, count, wholes);
    }
    if (st == CEK_OK)
        st = elements_place(device, type->as, &h, type->whole ? wholes : elements, out);
    cek__free_after(st, wholes);
    cek__free_after(st, elements);
out:
    return st;
}

cek_status cek_tensor_load(cek_device *device, const char *path, cek_tensor **out)
{
    cek_status st;
    void *bytes = NULL;
    size_t size;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(device);
    CEK__NOT_NULL(path);
    CEK_TRY(cek__file_read(path, FILE_BYTES_MAX, &bytes, &size));
    st = array_take(device, bytes, size, out);
    if (st != CEK_OK)
        cek__fail_prefix(st, "%s", path);
out:
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
    if (descr_of(type) == NULL)
        CEK_FAIL(CEK_UNSUPPORTED, "%s: NumPy has no %s; cast it to f32 first", what, cek_dtype_name(type));
    begin = cek__npy_header_make(descr_of(type), cek_tensor_rank(tensor), cek_tensor_shape(tensor), header);
    CEK_TRY(cek__malloc(begin + bytes, out));
    memcpy(*out, header, begin);
    st = cek_tensor_read(tensor, *out + begin, bytes);
    if (st != CEK_OK) {
        cek__free_after(st, *out);
        *out = NULL;
        goto out;
    }
    if (BYTE_ORDER == BIG_ENDIAN)
        bytes_turn(*out + begin, (uint64_t)cek_tensor_count(tensor), cek_dtype_bytes(type));
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

struct cek_npz {
    char *path;
    void *bytes;
    cek__zip zip;
    size_t count;
    char **names; /* of the arrays, without the ".npy" */
};

static const char ending[] = ".npy";

void cek_npz_close(cek_npz *npz)
{
    if (npz == NULL)
        return;
    for (size_t i = 0; npz->names != NULL && i < npz->count; i++)
        free(npz->names[i]);
    free(npz->names);
    cek__zip_close(&npz->zip);
    free(npz->bytes);
    free(npz->path);
    free(npz);
}

cek_status cek_npz_open(const char *path, cek_npz **out)
{
    cek_status st;
    cek_npz *npz = NULL;
    size_t size;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(path);
    CEK_TRY(cek__calloc(1, sizeof *npz, &npz));
    CEK_TRY(cek__strdup(path, &npz->path));
    CEK_TRY(cek__file_read(path, FILE_BYTES_MAX, &npz->bytes, &size));
    CEK_TRY(cek__zip_open(npz->path, npz->bytes, size, true, &npz->zip));
    CEK_TRY(cek__calloc(npz->zip.count, sizeof *npz->names, &npz->names));
    for (size_t i = 0; i < npz->zip.count; i++) {
        const cek__zip_entry *e = &npz->zip.entries[i];
        const size_t length = e->name_length;

        if (length > sizeof ending - 1 &&
            memcmp(e->name + length - (sizeof ending - 1), ending, sizeof ending - 1) == 0)
            CEK_TRY(cek__strndup(e->name, length - (sizeof ending - 1), &npz->names[npz->count++]));
    }
    *out = npz;
    return CEK_OK;
out:
    cek_npz_close(npz);
    return st;
}

size_t cek_npz_count(const cek_npz *npz)
{
    return npz != NULL ? npz->count : 0;
}

const char *cek_npz_name(const cek_npz *npz, size_t index)
{
    return npz != NULL && index < npz->count ? npz->names[index] : NULL;
}

cek_status cek_npz_tensor(const cek_npz *npz, const char *name, cek_device *device, cek_tensor **out)
{
    cek_status st;
    char *file = NULL;
    uint8_t *bytes = NULL;
    const cek__zip_entry *e;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(npz);
    CEK__NOT_NULL(name);
    CEK__NOT_NULL(device);
    CEK_TRY(cek__asprintf(&file, "%s%s", name, ending));
    e = cek__zip_find(&npz->zip, file, strlen(file));
    if (e == NULL)
        CEK_FAIL(CEK_NOT_FOUND,
                 npz->count > 0 ? "%s: no array '%s'; it has %zu, the first is '%s'"
                                : "%s: no array '%s', nor any other",
                 npz->path, name, npz->count, npz->count > 0 ? npz->names[0] : "");
    CEK_TRY(cek__zip_unpack(&npz->zip, e, &bytes));
    st = array_take(device, bytes, e->size, out);
    if (st != CEK_OK)
        cek__fail_prefix(st, "%s: array '%s'", npz->path, name);
out:
    free(bytes);
    free(file);
    return st;
}

static cek_status names_check(size_t count, const char *const *names, const cek_tensor *const *tensors)
{
    static const char what[] = "cek_npz_save";

    for (size_t i = 0; i < count; i++) {
        if (names[i] == NULL || tensors[i] == NULL)
            return cek__fail(CEK_INVALID, "%s: %s[%zu] is NULL", what, names[i] == NULL ? "names" : "tensors", i);
        if (names[i][0] == '\0' || strlen(names[i]) > CEK__ZIP_NAME_MAX - sizeof ending)
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
        CEK_TRY(cek__asprintf(&file, "%s%s", names[i], ending));
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
