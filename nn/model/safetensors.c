/* safetensors.c - the types of the format, tensors by name, their values; writes safetensors files (safetensors_read.c
 * reads them).
 *
 * Must not know: models, layouts, what a name means. */
#include "nn/model/safetensors.h"

#include <endian.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/file.h"
#include "core/base/text.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values are used as they stand in the file");

static const struct {
    const char *name;
    uint8_t bytes;
} types[CEK__ST_TYPES] = {
    [CEK__ST_F32] = { "F32", 4 },   [CEK__ST_F64] = { "F64", 8 }, [CEK__ST_F16] = { "F16", 2 },
    [CEK__ST_BF16] = { "BF16", 2 }, [CEK__ST_I32] = { "I32", 4 }, [CEK__ST_I64] = { "I64", 8 },
    [CEK__ST_U8] = { "U8", 1 },
};

bool cek__st_type_find(const char *name, cek__st_type *type)
{
    for (*type = 0; *type < CEK__ST_TYPES; ++*type)
        if (strcmp(name, types[*type].name) == 0)
            return true;
    return false;
}

const char *cek__st_type_name(cek__st_type type)
{
    return types[type].name;
}

uint64_t cek__st_type_bytes(cek__st_type type)
{
    return types[type].bytes;
}

/* ---- by name ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const cek__st_tensor *)a)->name, ((const cek__st_tensor *)b)->name);
}

const char *cek__st_sort(cek__st_tensor *tensors, size_t count)
{
    qsort(tensors, count, sizeof *tensors, by_name);
    for (size_t i = 1; i < count; i++)
        if (strcmp(tensors[i - 1].name, tensors[i].name) == 0)
            return tensors[i].name;
    return NULL;
}

const cek__st_tensor *cek__st_find(const cek__st_file *file, const char *name)
{
    cek__st_tensor key = { .name = name };

    return bsearch(&key, file->tensors, file->count, sizeof key, by_name);
}

void cek__st_free(cek__st_file *file)
{
    if (file == NULL)
        return;
    free(file->tensors);
    free(file->values);
    free(file->header);
    free(file->path);
    free(file);
}

/* ---- values ---- */

static float f16_value(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, exponent = bits >> 10 & 31, fraction = bits & 1023;
    uint32_t word;
    float value;

    if (exponent == 0) {
        value = (float)fraction * 0x1p-24f; /* zero and subnormals are exact in a float */
        return sign != 0 ? -value : value;
    }
    word = sign | (exponent == 31 ? 255 : exponent + 112) << 23 | fraction << 13;
    memcpy(&value, &word, sizeof value);
    return value;
}

static float bf16_value(uint16_t bits)
{
    uint32_t word = (uint32_t)bits << 16;
    float value;

    memcpy(&value, &word, sizeof value);
    return value;
}

/* The i-th value, by copying: it may lie at any address. */
static double value_at(const cek__st_tensor *t, uint64_t i)
{
    const char *at = (const char *)t->data + i * types[t->type].bytes;
    uint16_t half;
    float single;
    double wide;

    switch (t->type) {
    case CEK__ST_F64: memcpy(&wide, at, sizeof wide); return wide;
    case CEK__ST_F32: memcpy(&single, at, sizeof single); return (double)single;
    default:
        memcpy(&half, at, sizeof half);
        return (double)(t->type == CEK__ST_F16 ? f16_value(half) : bf16_value(half));
    }
}

static cek_status floating_check(const cek__st_tensor *t)
{
    if (t->type <= CEK__ST_BF16)
        return CEK_OK;
    return cek__fail(CEK_BAD_INPUT, "tensor '%.*s' has type %s, not floating-point numbers", CEK__ST_NAME_SHOWN,
                     t->name, types[t->type].name);
}

cek_status cek__st_to_f32(const cek__st_tensor *t, float *out)
{
    cek_status st = floating_check(t);

    if (st != CEK_OK)
        return st;
    if (t->type == CEK__ST_F32) {
        memcpy(out, t->data, t->count * sizeof *out);
        return CEK_OK;
    }
    for (uint64_t i = 0; i < t->count; i++) {
        double value = value_at(t, i);

        out[i] = (float)value;
        if (isfinite(value) && !isfinite(out[i]))
            return cek__fail(CEK_BAD_INPUT, "tensor '%.*s': value %" PRIu64 ", %g, does not fit a 32-bit float",
                             CEK__ST_NAME_SHOWN, t->name, i, value);
    }
    return CEK_OK;
}

cek_status cek__st_to_f64(const cek__st_tensor *t, double *out)
{
    cek_status st = floating_check(t);

    for (uint64_t i = 0; st == CEK_OK && i < t->count; i++)
        out[i] = value_at(t, i);
    return st;
}

/* ---- writing ---- */

enum { HEADER_ALIGN = 8 }; /* so that values of every type are aligned in the file */

typedef struct text {
    char *bytes;
    size_t length, room;
} text;

static cek_status text_add(text *t, const char *bytes, size_t count)
{
    cek_status st;

    if (t->room - t->length < count) {
        size_t room = 2 * (t->length + count);

        CEK_TRY(cek__realloc_array(room, 1, &t->bytes));
        t->room = room;
    }
    memcpy(t->bytes + t->length, bytes, count);
    t->length += count;
    return CEK_OK;
out:
    return st;
}

/* As a JSON string; what comes before it with it. */
static cek_status string_add(text *t, const char *before, const char *string)
{
    char escape[8];
    cek_status st;

    CEK_TRY(text_add(t, before, strlen(before)));
    CEK_TRY(text_add(t, "\"", 1));
    while (*string != '\0') {
        uint32_t code;
        size_t length = cek__utf8_next(string, &code);

        if (length == 0)
            CEK_FAIL(CEK_INVALID, "the name '%.*s' is not UTF-8", CEK__ST_NAME_SHOWN, string);
        if (code < ' ' || code == '"' || code == '\\') {
            snprintf(escape, sizeof escape, code < ' ' ? "\\u%04x" : "\\%c", (unsigned)code);
            CEK_TRY(text_add(t, escape, strlen(escape)));
        } else {
            CEK_TRY(text_add(t, string, length));
        }
        string += length;
    }
    return text_add(t, "\"", 1);
out:
    return st;
}

static cek_status entry_add(text *t, const cek__st_tensor *tensor, uint64_t *at)
{
    char entry[64 + (CEK_RANK_MAX + 2) * 21]; /* the words, and numbers of at most 20 digits with a comma */
    int n = snprintf(entry, sizeof entry, ":{\"dtype\":\"%s\",\"shape\":[", types[tensor->type].name);

    for (uint32_t i = 0; i < tensor->rank; i++)
        n += snprintf(entry + n, sizeof entry - (size_t)n, "%s%" PRId64, i > 0 ? "," : "", tensor->shape[i]);
    n += snprintf(entry + n, sizeof entry - (size_t)n, "],\"data_offsets\":[%" PRIu64, *at);
    *at += tensor->count * types[tensor->type].bytes;
    n += snprintf(entry + n, sizeof entry - (size_t)n, ",%" PRIu64 "]}", *at);
    return text_add(t, entry, (size_t)n);
}

/* The header, padded with blanks as the format allows. */
static cek_status header_make(const cek__st_tensor *tensors, size_t count, const char *const (*metadata)[2],
                              size_t pairs, text *t)
{
    uint64_t at = 0;
    cek_status st;

    CEK_TRY(text_add(t, "{", 1));
    for (size_t i = 0; i < pairs; i++) {
        CEK_TRY(string_add(t, i > 0 ? "," : "\"" CEK__ST_METADATA "\":{", metadata[i][0]));
        CEK_TRY(string_add(t, ":", metadata[i][1]));
    }
    if (pairs > 0)
        CEK_TRY(text_add(t, "}", 1));
    for (size_t i = 0; i < count; i++) {
        CEK_TRY(string_add(t, i > 0 || pairs > 0 ? "," : "", tensors[i].name));
        CEK_TRY(entry_add(t, &tensors[i], &at));
    }
    CEK_TRY(text_add(t, "}", 1));
    while (t->length % HEADER_ALIGN != 0)
        CEK_TRY(text_add(t, " ", 1));
    st = CEK_OK;
out:
    return st;
}

static cek_status sort_checked(cek__st_tensor *tensors, size_t count)
{
    const char *twice = cek__st_sort(tensors, count);

    if (twice != NULL)
        return cek__fail(CEK_INVALID, "two tensors are called '%.*s'", CEK__ST_NAME_SHOWN, twice);
    for (size_t i = 0; i < count; i++)
        if (strcmp(tensors[i].name, CEK__ST_METADATA) == 0)
            return cek__fail(CEK_INVALID, "no tensor may be called '%s'", CEK__ST_METADATA);
    return CEK_OK;
}

cek_status cek__st_write(const char *path, const cek__st_tensor *tensors, size_t count,
                         const char *const (*metadata)[2], size_t pairs)
{
    cek__file_writer *writer = NULL;
    cek__st_tensor *sorted = NULL;
    text header = { 0 };
    uint64_t prefix;
    cek_status st;

    CEK_TRY(cek__alloc_array(count, sizeof *sorted, &sorted));
    for (size_t i = 0; i < count; i++)
        sorted[i] = tensors[i];
    CEK_TRY(sort_checked(sorted, count));
    CEK_TRY(header_make(sorted, count, metadata, pairs, &header));
    prefix = htole64(header.length);
    CEK_TRY(cek__file_create(path, &writer));
    CEK_TRY(cek__file_write(writer, &prefix, sizeof prefix));
    CEK_TRY(cek__file_write(writer, header.bytes, header.length));
    for (size_t i = 0; i < count; i++)
        CEK_TRY(cek__file_write(writer, sorted[i].data, sorted[i].count * types[sorted[i].type].bytes));
    st = cek__file_commit(&writer);
out:
    cek__file_abandon(&writer);
    free(header.bytes);
    free(sorted);
    return st;
}
