/* npy.c - arrays in NumPy's .npy files, in and out (nn.h: cek_npy).
 *
 * The format: the bytes 93 4E 55 4D 50 59 ("\x93NUMPY"), a version's two bytes, the length of what follows (two bytes of version 1,
 * four of 2 and 3, little-endian), a dictionary as Python writes it
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
 * and the elements (numpy.lib.format). The header is held against the file's size before an element is looked at.
 * Must not know: models, what an array is for. */
#include <endian.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cekernels/nn.h"
#include "core/base/alloc.h"
#include "core/base/file.h"
#include "core/base/options.h"

enum { MAGIC = 6, EXACT = 1 << 24 /* whole numbers up to here are floats */, PIECE = 4096, ALIGN = 64 };
#define FILE_BYTES_MAX ((uint64_t)INT64_MAX)
static const char magic[MAGIC + 1] = "\x93NUMPY";

static const struct type {
    const char *descr;
    uint64_t bytes;
    cek_dtype as; /* where nobody says what elements are to become */
} types[] = {
    { "<f4", 4, CEK_F32 }, { "<f8", 8, CEK_F32 }, { "<i4", 4, CEK_I32 }, { "<i8", 8, CEK_I32 }, { "|u1", 1, CEK_U8 }
};
enum { TYPES = sizeof types / sizeof *types };

/* ---- the dictionary ---- */

typedef struct header {
    const char *at, *end;
    const struct type *type;
    int rank;
    int64_t shape[CEK_RANK_MAX];
    uint32_t seen; /* bit i: keys[i] */
} header;

static const char *const keys[] = { "descr", "fortran_order", "shape" };
enum { DESCR, FORTRAN, SHAPE, KEYS };

static void blanks_skip(header *h)
{
    while (h->at < h->end && strchr(" \t\r\n", *h->at) != NULL)
        h->at++;
}

/* Whether the word is next, behind blanks; then it is behind us. */
static bool word_take(header *h, const char *word)
{
    const size_t length = strlen(word);

    blanks_skip(h);
    if ((size_t)(h->end - h->at) < length || memcmp(h->at, word, length) != 0)
        return false;
    h->at += length;
    return true;
}

/* What stands between quotes, up to `room` - 1 characters. */
static bool text_take(header *h, char *text, size_t room)
{
    const char *close;
    char quote;

    if (!word_take(h, "'") && !word_take(h, "\""))
        return false;
    quote = h->at[-1];
    close = memchr(h->at, quote, (size_t)(h->end - h->at));
    if (close == NULL || (size_t)(close - h->at) >= room)
        return false;
    memcpy(text, h->at, (size_t)(close - h->at));
    text[close - h->at] = '\0';
    h->at = close + 1;
    return true;
}

static cek_status descr_take(header *h)
{
    char text[16];

    if (!text_take(h, text, sizeof text))
        return cek__fail(CEK_BAD_INPUT, "its descr is no simple type such as '<f4'");
    for (int i = 0; i < TYPES; i++)
        if (strcmp(types[i].descr, text) == 0) {
            h->type = &types[i];
            return CEK_OK;
        }
    return cek__fail(CEK_BAD_INPUT,
                     "elements of type '%s': little-endian '<f4', '<f8', '<i4' and '<i8', and '|u1' are read", text);
}

static cek_status order_take(header *h)
{
    if (word_take(h, "True"))
        return cek__fail(CEK_BAD_INPUT, "it is in Fortran's order, with the first axis fastest: C's is read");
    return word_take(h, "False") ? CEK_OK : cek__fail(CEK_BAD_INPUT, "its fortran_order is neither True nor False");
}

/* (), (3,) or (3, 4) */
static cek_status shape_take(header *h)
{
    if (!word_take(h, "("))
        return cek__fail(CEK_BAD_INPUT, "its shape is no tuple");
    while (!word_take(h, ")")) {
        int64_t size = 0;
        const char *first;

        blanks_skip(h);
        first = h->at;
        for (; h->at < h->end && *h->at >= '0' && *h->at <= '9'; h->at++)
            if (__builtin_mul_overflow(size, 10, &size) || __builtin_add_overflow(size, *h->at - '0', &size))
                return cek__fail(CEK_BAD_INPUT, "a size of its shape has more than 63 bits");
        if (h->at == first)
            return cek__fail(CEK_BAD_INPUT, "its shape is no tuple of sizes");
        if (h->rank == CEK_RANK_MAX)
            return cek__fail(CEK_BAD_INPUT, "it has more than %d axes", CEK_RANK_MAX);
        h->shape[h->rank++] = size;
        if (!word_take(h, ",") && (h->at == h->end || *h->at != ')'))
            return cek__fail(CEK_BAD_INPUT, "its shape is no tuple of sizes");
    }
    return CEK_OK;
}

static cek_status dictionary_take(header *h)
{
    cek_status st = CEK_OK;

    if (!word_take(h, "{"))
        CEK_FAIL(CEK_BAD_INPUT, "its header is no dictionary");
    while (!word_take(h, "}")) {
        char key[16];
        uint32_t k = 0;

        if (!text_take(h, key, sizeof key) || !word_take(h, ":"))
            CEK_FAIL(CEK_BAD_INPUT, "its header is no dictionary of descr, fortran_order and shape");
        while (k < KEYS && strcmp(keys[k], key) != 0)
            k++;
        if (k == KEYS || h->seen >> k & 1)
            CEK_FAIL(CEK_BAD_INPUT, "its header has the key '%s'%s", key, k == KEYS ? "" : " twice");
        CEK_TRY(k == DESCR ? descr_take(h) : k == FORTRAN ? order_take(h) : shape_take(h));
        h->seen |= 1u << k;
        if (!word_take(h, ",") && (h->at == h->end || *h->at != '}'))
            CEK_FAIL(CEK_BAD_INPUT, "its header is no dictionary");
    }
    blanks_skip(h);
    if (h->at != h->end)
        CEK_FAIL(CEK_BAD_INPUT, "something stands behind the dictionary of its header");
    for (int k = 0; k < KEYS; k++)
        if (!(h->seen >> k & 1))
            CEK_FAIL(CEK_BAD_INPUT, "its header has no %s", keys[k]);
out:
    return st;
}

/* *values: where the elements begin. */
static cek_status header_read(const uint8_t *bytes, size_t size, header *h, size_t *values)
{
    uint32_t length;
    size_t wide, begin;

    *h = (header){ .at = NULL };
    *values = 0;
    if (size < MAGIC + 4 || memcmp(bytes, magic, MAGIC) != 0)
        return cek__fail(CEK_BAD_INPUT, "it is no .npy file");
    if (bytes[MAGIC] < 1 || bytes[MAGIC] > 3 || bytes[MAGIC + 1] != 0)
        return cek__fail(CEK_BAD_INPUT, "version %u.%u of the format: 1.0, 2.0 and 3.0 are read", bytes[MAGIC],
                         bytes[MAGIC + 1]);
    wide = bytes[MAGIC] > 1 ? 4 : 2;
    begin = MAGIC + 2 + wide;
    if (size < begin)
        return cek__fail(CEK_BAD_INPUT, "it ends within its header");
    length = (uint32_t)bytes[MAGIC + 2] | (uint32_t)bytes[MAGIC + 3] << 8;
    if (wide == 4)
        length |= (uint32_t)bytes[MAGIC + 4] << 16 | (uint32_t)bytes[MAGIC + 5] << 24;
    if (length > size - begin)
        return cek__fail(CEK_BAD_INPUT, "it ends within its header");
    *h = (header){ .at = (const char *)bytes + begin, .end = (const char *)bytes + begin + length };
    *values = begin + length;
    return dictionary_take(h);
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

/* What the header promises is what there is. */
static cek_status size_check(const header *h, uint64_t there, int64_t *count)
{
    uint64_t bytes;

    *count = 1;
    for (int i = 0; i < h->rank; i++)
        if (__builtin_mul_overflow(*count, h->shape[i], count))
            return cek__fail(CEK_BAD_INPUT, "its shape has more elements than there can be");
    if (__builtin_mul_overflow((uint64_t)*count, h->type->bytes, &bytes) || bytes != there)
        return cek__fail(CEK_BAD_INPUT, "its header promises %" PRIu64 " bytes of elements, there are %" PRIu64, bytes,
                         there);
    return CEK_OK;
}

static cek_status array_take(const uint8_t *bytes, size_t size, cek_dtype type, cek_npy *out)
{
    cek_status st;
    const struct type *from;
    size_t values;
    header h;

    CEK_TRY(header_read(bytes, size, &h, &values));
    CEK_TRY(size_check(&h, size - values, &out->count));
    from = h.type;
    out->type = type ? type : from->as;
    out->rank = h.rank;
    memcpy(out->shape, h.shape, sizeof out->shape);
    if (from->as == CEK_F32 && out->type != CEK_F32)
        CEK_FAIL(CEK_BAD_INPUT, "it holds '%s', and whole numbers are wanted", from->descr);
    CEK_TRY(cek__alloc_array((size_t)out->count + 1, cek_dtype_bytes(out->type), &out->data));
    st = from->as == CEK_F32 ? reals_take(bytes + values, from, out->count, out->data)
                             : wholes_take(bytes + values, from, out->count, out->type, out->data);
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
    st = array_take(bytes, size, type, &array);
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

/* The header with blanks behind, so that elements are aligned; its length. */
static size_t header_make(const cek_npy *array, char *text, size_t room)
{
    size_t used = MAGIC + 4, length;

    memcpy(text, magic, MAGIC);
    text[MAGIC] = 1;
    text[MAGIC + 1] = 0;
    used += (size_t)snprintf(text + used, room - used, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                             descr_of(array->type));
    for (int i = 0; i < array->rank; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%" PRId64 "%s", i > 0 ? " " : "", array->shape[i],
                                 i + 1 < array->rank || array->rank == 1 ? "," : "");
    used += (size_t)snprintf(text + used, room - used, "), }");
    while ((used + 1) % ALIGN != 0)
        text[used++] = ' ';
    text[used++] = '\n';
    length = used - (MAGIC + 4);
    text[MAGIC + 2] = (char)(length & 0xff);
    text[MAGIC + 3] = (char)(length >> 8);
    return used;
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
    char text[128 + CEK_RANK_MAX * 24];

    CEK__NOT_NULL(path);
    CEK__NOT_NULL(array);
    CEK_TRY(cek__options_take("cek_npy_write", &a, sizeof a, array));
    CEK_TRY(array_check(&a));
    CEK_TRY(cek__file_create(path, &writer));
    CEK_TRY(cek__file_write(writer, text, header_make(&a, text, sizeof text)));
    CEK_TRY(elements_write(writer, &a));
    st = cek__file_commit(&writer);
out:
    cek__file_abandon(&writer);
    return st;
}
