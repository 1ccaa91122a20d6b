/* npy_elements.c - see npy_elements.h. */
#include "nn/formats/npy_elements.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/half.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "elements are used as they stand in the file");

enum { EXACT = 1 << 24 /* whole numbers up to here are floats */ };
enum kind { REAL, SIGNED, UNSIGNED, TRUTH };

static const struct type {
    const char *name; /* behind the order of bytes */
    uint64_t bytes;
    enum kind kind;
    cek_dtype as[2]; /* by cek__npy_as */
} types[] = {
    { "f4", 4, REAL, { CEK_F32, CEK_F32 } },     { "f8", 8, REAL, { CEK_F32, CEK_F64 } },
    { "f2", 2, REAL, { CEK_F32, CEK_F16 } },     { "i4", 4, SIGNED, { CEK_I32, CEK_I32 } },
    { "u1", 1, UNSIGNED, { CEK_U8, CEK_U8 } },   { "b1", 1, TRUTH, { CEK_U8, CEK_U8 } },
    { "i1", 1, SIGNED, { CEK_I32, CEK_I32 } },   { "i2", 2, SIGNED, { CEK_I32, CEK_I32 } },
    { "i8", 8, SIGNED, { CEK_I32, CEK_I32 } },   { "u2", 2, UNSIGNED, { CEK_I32, CEK_I32 } },
    { "u4", 4, UNSIGNED, { CEK_I32, CEK_I32 } }, { "u8", 8, UNSIGNED, { CEK_I32, CEK_I32 } },
};
enum { TYPES = sizeof types / sizeof *types };

/* NULL: it is none that is read. */
static const struct type *type_of(const cek__npy_header *h)
{
    const char order = h->descr[0];

    if (order != '\0' && strchr("<>|=", order) != NULL)
        for (int i = 0; i < TYPES; i++)
            if (strcmp(types[i].name, h->descr + 1) == 0 && (order != '|' || types[i].bytes == 1))
                return &types[i];
    return NULL;
}

cek_dtype cek__npy_lies_as(const cek__npy_header *h)
{
    const struct type *type = type_of(h);
    const bool ordered = (!h->fortran || h->rank < 2) && (h->descr[0] != '>' || (type != NULL && type->bytes == 1));
    cek_dtype as;

    if (type == NULL || !ordered)
        return CEK_DTYPE_NONE;
    as = type->as[CEK__NPY_KEPT];
    if (cek_dtype_bytes(as) != type->bytes || (as == CEK_I32 && type->kind == UNSIGNED) || type->kind == TRUTH)
        return CEK_DTYPE_NONE;
    return as;
}

const char *cek__npy_descr(cek_dtype type)
{
    switch (type) {
    case CEK_F32: return "<f4";
    case CEK_F64: return "<f8";
    case CEK_F16: return "<f2";
    case CEK_I32: return "<i4";
    case CEK_U8: return "|u1";
    default: return NULL;
    }
}

/* ---- one after the other, the last axis fastest ---- */

typedef struct walk {
    const cek__npy_header *h;
    const uint8_t *at;
    int64_t bytes, stride[CEK_RANK_MAX], index[CEK_RANK_MAX]; /* strides of bytes */
    bool big;
} walk;

static walk walk_begin(const cek__npy_header *h, const uint8_t *elements, const struct type *type)
{
    walk w = { .h = h, .at = elements, .bytes = (int64_t)type->bytes, .big = h->descr[0] == '>' };
    int64_t stride = w.bytes;

    for (int i = 0; i < h->rank; i++) {
        const int axis = h->fortran ? i : h->rank - 1 - i;

        w.stride[axis] = stride;
        stride *= h->shape[axis];
    }
    return w;
}

static uint64_t walk_next(walk *w)
{
    uint64_t bits = 0;

    for (int64_t i = 0; i < w->bytes; i++)
        bits |= (uint64_t)w->at[w->big ? w->bytes - 1 - i : i] << 8 * i;
    for (int axis = w->h->rank - 1; axis >= 0; axis--) {
        w->at += w->stride[axis];
        if (++w->index[axis] < w->h->shape[axis])
            break;
        w->at -= w->h->shape[axis] * w->stride[axis];
        w->index[axis] = 0;
    }
    return bits;
}

/* ---- into a type ---- */

static double real_of(uint64_t bits, uint64_t bytes)
{
    const uint32_t low = (uint32_t)bits;
    double wide;
    float narrow;

    memcpy(&wide, &bits, sizeof wide);
    memcpy(&narrow, &low, sizeof narrow);
    return bytes == 8 ? wide : (double)(bytes == 4 ? narrow : cek__f16_value((uint16_t)bits));
}

static cek_status reals_take(walk w, int64_t count, cek_dtype to, void *out)
{
    for (int64_t i = 0; i < count; i++) {
        const uint64_t bits = walk_next(&w);
        const double value = real_of(bits, (uint64_t)w.bytes);

        if (to == CEK_F64)
            ((double *)out)[i] = value;
        else if (to == CEK_F16)
            ((uint16_t *)out)[i] = (uint16_t)bits;
        else
            ((float *)out)[i] = (float)value;
        if (to == CEK_F32 && isfinite(value) && !isfinite((float)value))
            return cek__fail(CEK_BAD_INPUT, "element %" PRId64 " is %g, which is too large for a float", i, value);
    }
    return CEK_OK;
}

static cek_status wholes_take(walk w, int64_t count, enum kind kind, cek_dtype to, void *out)
{
    const int64_t most = to == CEK_F32 ? EXACT : to == CEK_I32 ? INT32_MAX : UINT8_MAX;
    const int64_t least = to == CEK_F32 ? -EXACT : to == CEK_I32 ? INT32_MIN : 0;

    for (int64_t i = 0; i < count; i++) {
        uint64_t bits = walk_next(&w);
        int64_t value;

        if (kind == SIGNED && w.bytes < 8 && (bits >> (8 * w.bytes - 1) & 1) != 0)
            bits |= UINT64_MAX << 8 * w.bytes;
        if (kind == TRUTH)
            bits = bits != 0;
        value = (int64_t)bits;
        if (kind == UNSIGNED && bits > INT64_MAX)
            return cek__fail(CEK_BAD_INPUT,
                             "element %" PRId64 " is %" PRIu64 ", which is not from %" PRId64 " to %" PRId64, i, bits,
                             least, most);
        if (value < least || value > most)
            return cek__fail(CEK_BAD_INPUT,
                             "element %" PRId64 " is %" PRId64 ", which is not from %" PRId64 " to %" PRId64, i, value,
                             least, most);
        if (to == CEK_F32)
            ((float *)out)[i] = (float)value;
        else if (to == CEK_I32)
            ((int32_t *)out)[i] = (int32_t)value;
        else
            ((uint8_t *)out)[i] = (uint8_t)value;
    }
    return CEK_OK;
}

cek_status cek__npy_take(const uint8_t *bytes, size_t size, cek__npy_as as, cek_dtype type, cek_npy *out)
{
    cek_status st;
    const struct type *from;
    cek__npy_header h;
    walk w;

    CEK_TRY(cek__npy_header_read(bytes, size, &h));
    from = type_of(&h);
    if (from == NULL)
        CEK_FAIL(CEK_BAD_INPUT,
                 "elements of type '%s': floats of 16 to 64 bits, whole numbers and bool are read; convert them in "
                 "Python with .astype('float32')",
                 h.descr);
    CEK_TRY(cek__npy_size_check(&h, from->bytes, size - h.values, &out->count));
    out->type = type ? type : from->as[as];
    out->rank = h.rank;
    memcpy(out->shape, h.shape, sizeof out->shape);
    if (from->kind == REAL && (out->type == CEK_I32 || out->type == CEK_U8))
        CEK_FAIL(CEK_BAD_INPUT, "it holds '%s', and whole numbers are wanted", h.descr);
    CEK_TRY(cek__alloc_array((size_t)out->count + 1, cek_dtype_bytes(out->type), &out->data));
    if (out->count == 0)
        goto out; /* the other axes may be of any length: strides would be too long for any number */
    w = walk_begin(&h, bytes + h.values, from);
    if (cek__npy_lies_as(&h) == out->type)
        memcpy(out->data, w.at, (size_t)out->count * from->bytes);
    else
        st = from->kind == REAL ? reals_take(w, out->count, out->type, out->data)
                                : wholes_take(w, out->count, from->kind, out->type, out->data);
out:
    return st;
}
