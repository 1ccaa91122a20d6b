/* safetensors.c - reads and writes safetensors files.
 *
 * Owns: the format and its checks. A file is read whole; nothing of it is believed before it was
 * compared with the rest.
 * Must not know: models, layouts, what a name means. */
#include "nn/model/safetensors.h"

#include <endian.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/file.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values are used as they stand in the file");

/* The format itself caps the header at 100 MB; the file's cap only keeps a mistake from filling all memory. */
#define HEADER_BYTES_MAX ((uint64_t)100000000)
#define FILE_BYTES_MAX ((uint64_t)256 << 30)
static const char metadata_name[] = "__metadata__";

/* The header is padded so that values of every type are aligned in the file. */
enum { NAME_SHOWN = 200, LENGTH_BYTES = 8, HEADER_ALIGN = 8 };

static const struct {
    const char *name;
    uint8_t bytes;
} types[CEK__ST_TYPES] = {
    [CEK__ST_F32] = { "F32", 4 },   [CEK__ST_F64] = { "F64", 8 }, [CEK__ST_F16] = { "F16", 2 },
    [CEK__ST_BF16] = { "BF16", 2 }, [CEK__ST_I32] = { "I32", 4 }, [CEK__ST_I64] = { "I64", 8 },
    [CEK__ST_U8] = { "U8", 1 },
};

/* ---- reading: one tensor's entry ---- */

typedef struct extent { /* where a tensor lies, for the check that all of them together cover the file */
    uint64_t begin, end;
    const char *name;
} extent;

static cek_status entry_bad(const char *path, const char *name, const char *cause)
{
    return cek__fail(CEK_BAD_INPUT, "%s: tensor '%.*s': %s", path, NAME_SHOWN, name, cause);
}

static cek_status type_read(const char *path, const json_t *value, cek__st_tensor *t)
{
    const char *text = json_string_value(value);

    if (text == NULL)
        return entry_bad(path, t->name, "it has no dtype");
    for (t->type = 0; t->type < CEK__ST_TYPES; t->type++)
        if (strcmp(text, types[t->type].name) == 0)
            return CEK_OK;
    return cek__fail(CEK_BAD_INPUT, "%s: tensor '%.*s': dtype %.20s is not read", path, NAME_SHOWN, t->name, text);
}

static cek_status shape_read(const char *path, const json_t *value, cek__st_tensor *t)
{
    t->count = 1;
    if (!json_is_array(value))
        return entry_bad(path, t->name, "it has no shape");
    if (json_array_size(value) > CEK_RANK_MAX)
        return entry_bad(path, t->name, "its rank is more than 8");
    t->rank = (uint32_t)json_array_size(value);
    for (uint32_t i = 0; i < t->rank; i++) {
        const json_t *dimension = json_array_get(value, i);

        t->shape[i] = json_integer_value(dimension);
        if (!json_is_integer(dimension) || t->shape[i] < 0)
            return entry_bad(path, t->name, "a dimension is not a whole number from 0");
        if (__builtin_mul_overflow(t->count, (uint64_t)t->shape[i], &t->count))
            return entry_bad(path, t->name, "its shape is impossible");
    }
    return CEK_OK;
}

static cek_status extent_read(const char *path, const json_t *value, uint64_t size, const cek__st_tensor *t, extent *e)
{
    const json_t *begin = json_array_get(value, 0), *end = json_array_get(value, 1);
    uint64_t bytes;

    if (json_array_size(value) != 2 || !json_is_integer(begin) || !json_is_integer(end) ||
        json_integer_value(begin) < 0 || json_integer_value(end) < json_integer_value(begin))
        return entry_bad(path, t->name, "its data_offsets are not two rising whole numbers");
    *e = (extent){ (uint64_t)json_integer_value(begin), (uint64_t)json_integer_value(end), t->name };
    if (e->end > size)
        return cek__fail(CEK_BAD_INPUT,
                         "%s: tensor '%.*s' ends at byte %" PRIu64 ", but the file has %" PRIu64 " bytes of values",
                         path, NAME_SHOWN, t->name, e->end, size);
    if (__builtin_mul_overflow(t->count, (uint64_t)types[t->type].bytes, &bytes) || bytes != e->end - e->begin)
        return cek__fail(CEK_BAD_INPUT,
                         "%s: tensor '%.*s': %" PRIu64 " values of %s do not take the %" PRIu64
                         " bytes of its data_offsets",
                         path, NAME_SHOWN, t->name, t->count, types[t->type].name, e->end - e->begin);
    return CEK_OK;
}

/* ---- reading: the file ---- */

static int by_begin(const void *a, const void *b)
{
    const extent *x = a, *y = b;

    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end); /* empty tensors first */
}

/* No gap, no overlap, nothing behind the last: each byte has one owner. */
static cek_status extents_check(const char *path, extent *extents, size_t count, uint64_t size)
{
    uint64_t at = 0;

    qsort(extents, count, sizeof *extents, by_begin);
    for (size_t i = 0; i < count; i++) {
        if (extents[i].begin < at)
            return entry_bad(path, extents[i].name, "its values overlap those of another");
        if (extents[i].begin > at)
            return entry_bad(path, extents[i].name, "nothing describes the bytes before its values");
        at = extents[i].end;
    }
    if (at != size)
        return cek__fail(CEK_BAD_INPUT, "%s: nothing describes the last %" PRIu64 " bytes", path, size - at);
    return CEK_OK;
}

static cek_status metadata_check(const char *path, json_t *metadata)
{
    const char *key;
    json_t *value;

    if (!json_is_object(metadata))
        return cek__fail(CEK_BAD_INPUT, "%s: %s is not an object", path, metadata_name);
    json_object_foreach(metadata, key, value) if (!json_is_string(value)) return cek__fail(
        CEK_BAD_INPUT, "%s: a value of %s is not a string", path, metadata_name);
    return CEK_OK;
}

/* The header's JSON; *values is where the values begin, *size how many bytes of them there are. */
static cek_status header_parse(cek__st_file *file, size_t bytes, const char **values, uint64_t *size)
{
    const char *start = file->bytes;
    json_error_t error;
    uint64_t length;

    if (bytes < LENGTH_BYTES)
        return cek__fail(CEK_BAD_INPUT, "%s: %zu bytes are too few for a safetensors file", file->path, bytes);
    memcpy(&length, start, sizeof length);
    length = le64toh(length);
    if (length > HEADER_BYTES_MAX || length > bytes - LENGTH_BYTES)
        return cek__fail(CEK_BAD_INPUT, "%s: a header of %" PRIu64 " bytes does not fit a file of %zu", file->path,
                         length, bytes);
    if (length == 0 || start[LENGTH_BYTES] != '{')
        return cek__fail(CEK_BAD_INPUT, "%s: not a safetensors file (its header does not start with '{')", file->path);
    file->header = json_loadb(start + LENGTH_BYTES, length, JSON_REJECT_DUPLICATES, &error);
    if (file->header == NULL && json_error_code(&error) == json_error_out_of_memory)
        return cek__fail(CEK_OUT_OF_MEMORY, "%s: no memory for its header", file->path);
    if (file->header == NULL)
        return cek__fail(CEK_BAD_INPUT, "%s: the header is not valid JSON: %s (byte %d)", file->path, error.text,
                         error.position);
    *values = start + LENGTH_BYTES + length;
    *size = bytes - LENGTH_BYTES - length;
    return CEK_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const cek__st_tensor *)a)->name, ((const cek__st_tensor *)b)->name);
}

static cek_status entries_read(cek__st_file *file, const char *values, uint64_t size)
{
    extent *extents = NULL;
    const char *name;
    json_t *entry;
    cek_status st;

    CEK_TRY(cek__calloc(json_object_size(file->header), sizeof *file->tensors, &file->tensors));
    CEK_TRY(cek__calloc(json_object_size(file->header), sizeof *extents, &extents));
    json_object_foreach(file->header, name, entry)
    {
        cek__st_tensor *t = &file->tensors[file->count];
        extent *e = &extents[file->count];

        if (strcmp(name, metadata_name) == 0) {
            CEK_TRY(metadata_check(file->path, entry));
            continue;
        }
        for (const char *c = name; *c != '\0'; c++)
            if ((unsigned char)*c < ' ') /* errors and tables quote names, and are lines */
                CEK_FAIL(CEK_BAD_INPUT, "%s: tensor %zu has a control character in its name", file->path, file->count);
        t->name = name;
        CEK_TRY(type_read(file->path, json_object_get(entry, "dtype"), t));
        CEK_TRY(shape_read(file->path, json_object_get(entry, "shape"), t));
        CEK_TRY(extent_read(file->path, json_object_get(entry, "data_offsets"), size, t, e));
        t->data = values + e->begin;
        file->count++;
    }
    CEK_TRY(extents_check(file->path, extents, file->count, size));
    qsort(file->tensors, file->count, sizeof *file->tensors, by_name);
out:
    free(extents);
    return st;
}

cek_status cek__st_read(const char *path, cek__st_file **out)
{
    cek__st_file *file = NULL;
    const char *values = NULL;
    uint64_t size = 0;
    size_t bytes = 0;
    cek_status st;

    *out = NULL;
    CEK_TRY(cek__calloc(1, sizeof *file, &file));
    CEK_TRY(cek__strdup(path, &file->path));
    CEK_TRY(cek__file_read(path, FILE_BYTES_MAX, &file->bytes, &bytes));
    CEK_TRY(header_parse(file, bytes, &values, &size));
    CEK_TRY(entries_read(file, values, size));
    *out = file;
    return CEK_OK;
out:
    cek__st_free(file);
    return st;
}

void cek__st_free(cek__st_file *file)
{
    if (file == NULL)
        return;
    json_decref(file->header);
    free(file->tensors);
    free(file->bytes);
    free(file->path);
    free(file);
}

const cek__st_tensor *cek__st_find(const cek__st_file *file, const char *name)
{
    cek__st_tensor key = { .name = name };

    return bsearch(&key, file->tensors, file->count, sizeof key, by_name);
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
    return cek__fail(CEK_BAD_INPUT, "tensor '%.*s' has type %s, not floating-point numbers", NAME_SHOWN, t->name,
                     types[t->type].name);
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
                             NAME_SHOWN, t->name, i, value);
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

/* Adds `value` (a new reference, or NULL if there was no memory) under `key`. */
static bool json_put(json_t *object, const char *key, json_t *value)
{
    return value != NULL && json_object_set_new(object, key, value) == 0;
}

static json_t *entry_json(const cek__st_tensor *t, uint64_t begin)
{
    uint64_t end = begin + t->count * types[t->type].bytes;
    json_t *shape = json_array();
    bool ok = shape != NULL;
    json_t *entry;

    for (uint32_t i = 0; ok && i < t->rank; i++)
        ok = json_array_append_new(shape, json_integer(t->shape[i])) == 0;
    entry = ok ? json_pack("{s:s, s:O, s:[I, I]}", "dtype", types[t->type].name, "shape", shape, "data_offsets",
                           (json_int_t)begin, (json_int_t)end)
               : NULL;
    json_decref(shape);
    return entry;
}

static json_t *metadata_json(const char *const (*metadata)[2], size_t pairs)
{
    json_t *object = json_object();

    for (size_t i = 0; object != NULL && i < pairs; i++)
        if (!json_put(object, metadata[i][0], json_string(metadata[i][1]))) {
            json_decref(object);
            return NULL;
        }
    return object;
}

/* The header as text, padded with blanks (as the format allows) to where values of any type are aligned. */
static cek_status header_text(const char *path, const cek__st_tensor *tensors, size_t count,
                              const char *const (*metadata)[2], size_t pairs, char **out, size_t *length)
{
    json_t *header = json_object();
    char *text = NULL;
    uint64_t at = 0;
    cek_status st = CEK_OK;
    bool ok = header != NULL;

    *out = NULL;
    if (ok && pairs > 0)
        ok = json_put(header, metadata_name, metadata_json(metadata, pairs));
    for (size_t i = 0; ok && i < count; i++) {
        ok = json_put(header, tensors[i].name, entry_json(&tensors[i], at));
        at += tensors[i].count * types[tensors[i].type].bytes;
    }
    if (ok)
        text = json_dumps(header, JSON_COMPACT);
    if (text == NULL)
        CEK_FAIL(CEK_OUT_OF_MEMORY, "%s: its header cannot be made: no memory, or a name that is not UTF-8", path);
    *length = (strlen(text) + HEADER_ALIGN - 1) / HEADER_ALIGN * HEADER_ALIGN;
    CEK_TRY(cek__malloc(*length + 1, out));
    snprintf(*out, *length + 1, "%-*s", (int)*length, text);
out:
    free(text);
    json_decref(header);
    return st;
}

static cek_status names_check(const cek__st_tensor *tensors, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(tensors[i].name, metadata_name) == 0)
            return cek__fail(CEK_INVALID, "no tensor may be called '%s'", metadata_name);
        if (i > 0 && strcmp(tensors[i - 1].name, tensors[i].name) == 0)
            return cek__fail(CEK_INVALID, "two tensors are called '%.*s'", NAME_SHOWN, tensors[i].name);
    }
    return CEK_OK;
}

cek_status cek__st_write(const char *path, const cek__st_tensor *tensors, size_t count,
                         const char *const (*metadata)[2], size_t pairs)
{
    cek__file_writer *writer = NULL;
    cek__st_tensor *sorted = NULL;
    char *header = NULL;
    size_t length = 0;
    uint64_t prefix;
    cek_status st;

    CEK_TRY(cek__alloc_array(count, sizeof *sorted, &sorted));
    for (size_t i = 0; i < count; i++)
        sorted[i] = tensors[i];
    qsort(sorted, count, sizeof *sorted, by_name);
    CEK_TRY(names_check(sorted, count));
    CEK_TRY(header_text(path, sorted, count, metadata, pairs, &header, &length));
    prefix = htole64(length);
    CEK_TRY(cek__file_create(path, &writer));
    CEK_TRY(cek__file_write(writer, &prefix, sizeof prefix));
    CEK_TRY(cek__file_write(writer, header, length));
    for (size_t i = 0; i < count; i++)
        CEK_TRY(cek__file_write(writer, sorted[i].data, sorted[i].count * types[sorted[i].type].bytes));
    st = cek__file_commit(&writer);
out:
    cek__file_abandon(&writer);
    free(header);
    free(sorted);
    return st;
}
