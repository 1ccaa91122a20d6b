/* onnx_weights.c - the values of tensors: in the message, as raw bytes or lists of numbers, or in an external file.
 *
 * Owns: that shape, type and bytes agree, and that no external file lies outside of the model's folder. */
#include <stdlib.h>
#include <string.h>

#include "core/base/file.h"
#include "nn/formats/onnx_inside.h"

#define EXTERNAL_BYTES_MAX ((uint64_t)256 << 30)

enum { NAME_SHOWN = 200 };

typedef struct external { /* a file that is in memory */
    const char *location;
    uint8_t *bytes;
    size_t size;
} external;

typedef struct externals {
    CEK__ONNX_LIST(external, files);
} externals;

static cek_status bad(const cek__onnx_reader *r, const cek__onnx_tensor *t, const char *cause)
{
    return cek__fail(CEK_BAD_INPUT, "%s: tensor '%.*s': %s", r->o->path, NAME_SHOWN, t->name, cause);
}

/* ---- external files ---- */

/* A path below the folder of the model, by its words: not from the root, no step up. */
static bool location_stays(const char *location)
{
    if (location == NULL || location[0] == '\0' || location[0] == '/')
        return false;
    for (const char *at = location; at != NULL; at = strchr(at, '/')) {
        at += *at == '/';
        if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || at[2] == '\0'))
            return false;
    }
    return true;
}

/* Where the file really lies, if that is below where the model's folder really is. */
static cek_status place_find(const cek__onnx_reader *r, const cek__onnx_tensor *t, const char *location, char **out)
{
    const char *slash = strrchr(r->o->path, '/');
    char *folder = NULL, *real_folder = NULL, *joined = NULL, *place = NULL;
    size_t length;
    cek_status st;

    *out = NULL;
    if (!location_stays(location)) {
        st = bad(r, t, "its values are in a file that is not named as one in the model's folder");
        goto out;
    }
    if (slash != NULL)
        CEK_TRY(cek__strndup(r->o->path, (size_t)(slash - r->o->path) + 1, &folder));
    else
        CEK_TRY(cek__strdup("./", &folder));
    CEK_TRY(cek__asprintf(&joined, "%s%s", folder, location));
    real_folder = realpath(folder, NULL);
    place = realpath(joined, NULL);
    if (real_folder == NULL || place == NULL)
        CEK_FAIL(CEK_IO, "%s: tensor '%.*s': its values are in %s, which cannot be found", r->o->path, NAME_SHOWN,
                 t->name, joined);
    length = strlen(real_folder);
    if (strncmp(place, real_folder, length) != 0 || (length > 1 && place[length] != '/')) {
        st = bad(r, t, "its values are in a file that a symbolic link puts outside of the model's folder");
        goto out;
    }
    *out = place;
    place = NULL;
    st = CEK_OK;
out:
    free(folder);
    free(joined);
    free(real_folder);
    free(place);
    return st;
}

/* The bytes of an external file, which are read once. */
static cek_status external_open(cek__onnx_reader *r, externals *e, const cek__onnx_tensor *t, const char *location,
                                external *out)
{
    char *place = NULL;
    external *added;
    void **block;
    size_t size;
    cek_status st;

    for (size_t i = 0; location != NULL && i < e->files_count; i++)
        if (strcmp(e->files[i].location, location) == 0) {
            *out = e->files[i];
            return CEK_OK;
        }
    CEK_TRY(place_find(r, t, location, &place));
    CEK__ONNX_ADD(r->o, blocks, block);
    CEK_TRY(cek__file_read(place, EXTERNAL_BYTES_MAX, block, &size));
    CEK__ONNX_ADD(e, files, added);
    *added = (external){ location, *block, size };
    *out = *added;
out:
    free(place);
    return st;
}

/* A whole number from 0 in decimal digits, as external files' offsets and lengths are said. */
static bool whole(const char *text, uint64_t *out)
{
    *out = 0;
    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++)
        if (*text < '0' || *text > '9' || __builtin_mul_overflow(*out, 10, out) ||
            __builtin_add_overflow(*out, (uint64_t)(*text - '0'), out))
            return false;
    return true;
}

static cek_status external_take(cek__onnx_reader *r, externals *e, cek__onnx_tensor *t, const cek__onnx_source *s,
                                uint64_t bytes)
{
    uint64_t offset = 0, length = bytes;
    external file = { 0 };
    cek_status st;

    if ((s->offset != NULL && !whole(s->offset, &offset)) || (s->length != NULL && !whole(s->length, &length)))
        return bad(r, t, "offset and length in its external file are no whole numbers");
    if (length != bytes)
        return bad(r, t, "its shape does not take the bytes that it has in its external file");
    CEK_TRY(external_open(r, e, t, s->location, &file));
    if (offset > file.size || length > file.size - offset)
        return bad(r, t, "its external file is too short");
    t->data = file.bytes + offset;
out:
    return st;
}

/* ---- values in the message ---- */

/* Lists of varints stand for integers of every size: into packed ones. */
static cek_status varints_take(cek__onnx_reader *r, cek__onnx_tensor *t, cek__wire w)
{
    uint64_t bytes = cek__onnx_type_bytes(t->type), value;
    void **block;
    uint8_t *to;
    cek_status st;

    /* A varint has a byte at least, so the list vouches for this memory, eight times its size at most. */
    if (t->count > (uint64_t)(w.end - w.at))
        return bad(r, t, "it has fewer values than its shape takes");
    CEK__ONNX_ADD(r->o, blocks, block);
    CEK_TRY(cek__alloc_array(t->count, bytes, block));
    t->data = to = *block;
    for (uint64_t i = 0; i < t->count; i++, to += bytes) {
        if (!cek__wire_number(&w, CEK__WIRE_VARINT, &value))
            return bad(r, t, "it has fewer values than its shape takes");
        memcpy(to, &value, bytes); /* little-endian, as the values are */
    }
    if (w.at != w.end)
        return bad(r, t, "it has more values than its shape takes");
out:
    return st;
}

/* The field of TensorProto in which a type's values stand, where they are not raw. */
static int field_of(int type)
{
    switch (type) {
    case CEK__ONNX_FLOAT: return CEK__ONNX_FLOAT_DATA;
    case CEK__ONNX_DOUBLE: return CEK__ONNX_DOUBLE_DATA;
    case CEK__ONNX_INT64: return CEK__ONNX_INT64_DATA;
    default: return CEK__ONNX_INT32_DATA;
    }
}

static cek_status tensor_check(cek__onnx_reader *r, externals *e, cek__onnx_tensor *t, const cek__onnx_source *s)
{
    uint64_t bytes;

    if (cek__onnx_type_name(t->type) == NULL)
        return cek__fail(CEK_BAD_INPUT, "%s: tensor '%.*s': its type, %d of ONNX's, is not read", r->o->path,
                         NAME_SHOWN, t->name, t->type);
    t->count = 1;
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->shape[i] < 0 || __builtin_mul_overflow(t->count, (uint64_t)t->shape[i], &t->count))
            return bad(r, t, "its shape is impossible");
    if (__builtin_mul_overflow(t->count, cek__onnx_type_bytes(t->type), &bytes))
        return bad(r, t, "its shape is impossible");
    if (s->external)
        return external_take(r, e, t, s, bytes);
    if (s->twice)
        return bad(r, t, "it has values twice");
    if (s->field == 0 && t->count > 0)
        return bad(r, t, "it has no values");
    if (s->field != 0 && s->field != CEK__ONNX_RAW_DATA && s->field != field_of(t->type))
        return bad(r, t, "its values are of another type");
    if (s->field == CEK__ONNX_INT64_DATA || s->field == CEK__ONNX_INT32_DATA)
        return varints_take(r, t, s->bytes);
    if ((uint64_t)(s->bytes.end - s->bytes.at) != bytes)
        return bad(r, t, "its shape does not take the bytes that it has");
    t->data = s->bytes.at;
    return CEK_OK;
}

cek_status cek__onnx_weights(cek__onnx_reader *r)
{
    externals e = { 0 };
    cek_status st = CEK_OK;

    for (size_t i = 0; i < r->o->tensors_count; i++)
        CEK_TRY(tensor_check(r, &e, &r->o->tensors[i], &r->sources[i]));
out:
    free(e.files);
    return st;
}
