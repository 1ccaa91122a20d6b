/* safetensors_read.c - reads safetensors files.
 *
 * Owns: the checks. Nothing of a file is believed before it was compared with the rest, and nothing is read before what
 * describes it was: first the header's length, then the header, then the values.
 * Must not know: models, layouts, what a name means. */
#include <endian.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/file.h"
#include "nn/formats/json.h"
#include "nn/formats/safetensors.h"

/* The format itself caps the header at 100 MB; the file's cap only keeps a mistake from filling all memory. */
#define HEADER_BYTES_MAX ((uint64_t)100000000)
#define FILE_BYTES_MAX ((uint64_t)256 << 30)

enum { LENGTH_BYTES = 8 };

typedef struct entry { /* a tensor, and where its values lie behind the header */
    cek__st_tensor t;
    uint64_t begin, end;
} entry;

typedef struct header {
    const char *path;
    cek__json json;
    uint64_t values; /* bytes of them in the file */
    entry *entries;
    size_t count, room;
    bool metadata;
    const char *classes; /* cek__st_file */
} header;

/* ---- one tensor's entry ---- */

static cek_status entry_bad(const header *h, const char *name, const char *cause)
{
    return cek__fail(CEK_BAD_INPUT, "%s: tensor '%.*s': %s", h->path, CEK__ST_NAME_SHOWN, name, cause);
}

/* Asked before what was read is judged. */
static cek_status syntax(const header *h)
{
    if (h->json.cause == NULL)
        return CEK_OK;
    return cek__fail(CEK_BAD_INPUT, "%s: the header is not valid JSON: %s (byte %td)", h->path, h->json.cause,
                     h->json.at - h->json.text);
}

/* A whole number from 0, or else the entry is bad for this cause. */
static cek_status whole_read(header *h, const entry *e, const char *cause, int64_t *out)
{
    if (cek__json_kind(&h->json) == '0' && cek__json_integer(&h->json, out) && *out >= 0)
        return CEK_OK;
    cek_status st = syntax(h);

    return st != CEK_OK ? st : entry_bad(h, e->t.name, cause);
}

static cek_status type_read(header *h, entry *e)
{
    bool is_string = cek__json_kind(&h->json) == '"';
    const char *text = is_string ? cek__json_string(&h->json) : NULL;
    cek_status st;

    CEK_TRY(syntax(h));
    if (!is_string)
        return entry_bad(h, e->t.name, "its dtype is not a string");
    if (cek__st_type_find(text, &e->t.type))
        return CEK_OK;
    CEK_FAIL(CEK_BAD_INPUT, "%s: tensor '%.*s': dtype %.20s is not read", h->path, CEK__ST_NAME_SHOWN, e->t.name, text);
out:
    return st;
}

static cek_status shape_read(header *h, entry *e)
{
    cek__st_tensor *t = &e->t;
    cek_status st;

    if (cek__json_kind(&h->json) != '[') {
        CEK_TRY(syntax(h));
        return entry_bad(h, t->name, "its shape is not a list");
    }
    t->count = 1;
    for (bool first = true; cek__json_next(&h->json, '[', &first);) {
        if (t->rank == CEK_RANK_MAX)
            return entry_bad(h, t->name, "its rank is more than 8");
        CEK_TRY(whole_read(h, e, "a dimension is not a whole number from 0", &t->shape[t->rank]));
        if (__builtin_mul_overflow(t->count, (uint64_t)t->shape[t->rank++], &t->count))
            return entry_bad(h, t->name, "its shape is impossible");
    }
    st = syntax(h);
out:
    return st;
}

static cek_status offsets_read(header *h, entry *e)
{
    static const char cause[] = "its data_offsets are not two rising whole numbers";
    int64_t offset[2];
    int count = 0;
    cek_status st;

    if (cek__json_kind(&h->json) != '[') {
        CEK_TRY(syntax(h));
        return entry_bad(h, e->t.name, cause);
    }
    for (bool first = true; cek__json_next(&h->json, '[', &first);) {
        if (count == 2)
            return entry_bad(h, e->t.name, cause);
        CEK_TRY(whole_read(h, e, cause, &offset[count++]));
    }
    CEK_TRY(syntax(h));
    if (count < 2 || offset[1] < offset[0])
        return entry_bad(h, e->t.name, cause);
    e->begin = (uint64_t)offset[0];
    e->end = (uint64_t)offset[1];
out:
    return st;
}

static cek_status extent_check(const header *h, const entry *e)
{
    const cek__st_tensor *t = &e->t;
    uint64_t bytes;

    if (e->end > h->values)
        return cek__fail(CEK_BAD_INPUT,
                         "%s: tensor '%.*s' ends at byte %" PRIu64 ", but the file has %" PRIu64 " bytes of values",
                         h->path, CEK__ST_NAME_SHOWN, t->name, e->end, h->values);
    if (__builtin_mul_overflow(t->count, cek__st_type_bytes(t->type), &bytes) || bytes != e->end - e->begin)
        return cek__fail(CEK_BAD_INPUT,
                         "%s: tensor '%.*s': %" PRIu64 " values of %s do not take the %" PRIu64
                         " bytes of its data_offsets",
                         h->path, CEK__ST_NAME_SHOWN, t->name, t->count, cek__st_type_name(t->type), e->end - e->begin);
    return CEK_OK;
}

static const struct {
    const char *key, *missing, *twice;
    cek_status (*read)(header *h, entry *e);
} fields[] = {
    { "dtype", "it has no dtype", "it has two dtypes", type_read },
    { "shape", "it has no shape", "it has two shapes", shape_read },
    { "data_offsets", "it has no data_offsets", "it has data_offsets twice", offsets_read },
};
enum { FIELDS = sizeof fields / sizeof *fields };

/* Keys that a later version of the format may add are left alone. */
static cek_status field_read(header *h, entry *e, const char *key, bool *seen)
{
    for (int i = 0; i < FIELDS; i++) {
        if (strcmp(key, fields[i].key) != 0)
            continue;
        if (seen[i])
            return entry_bad(h, e->t.name, fields[i].twice);
        seen[i] = true;
        return fields[i].read(h, e);
    }
    cek__json_skip(&h->json);
    return syntax(h);
}

static cek_status entry_read(header *h, const char *name)
{
    bool seen[FIELDS] = { false };
    entry *e;
    cek_status st;

    if (h->count == h->room) {
        size_t room = h->room > 0 ? 2 * h->room : 64;

        CEK_TRY(cek__realloc_array(room, sizeof *h->entries, &h->entries));
        h->room = room;
    }
    e = &h->entries[h->count++];
    *e = (entry){ .t.name = name };
    if (cek__json_kind(&h->json) != '{') {
        CEK_TRY(syntax(h));
        return entry_bad(h, name, "it is not described by an object");
    }
    for (bool first = true; cek__json_next(&h->json, '{', &first);) {
        const char *key = cek__json_key(&h->json);

        CEK_TRY(syntax(h));
        CEK_TRY(field_read(h, e, key, seen));
    }
    CEK_TRY(syntax(h));
    for (int i = 0; i < FIELDS; i++)
        if (!seen[i])
            return entry_bad(h, name, fields[i].missing);
    st = extent_check(h, e);
out:
    return st;
}

/* ---- the header ---- */

static cek_status metadata_read(header *h)
{
    cek_status st;

    if (h->metadata)
        CEK_FAIL(CEK_BAD_INPUT, "%s: %s is there twice", h->path, CEK__ST_METADATA);
    h->metadata = true;
    if (cek__json_kind(&h->json) != '{') {
        CEK_TRY(syntax(h));
        CEK_FAIL(CEK_BAD_INPUT, "%s: %s is not an object", h->path, CEK__ST_METADATA);
    }
    for (bool first = true; cek__json_next(&h->json, '{', &first);) {
        const char *key = cek__json_key(&h->json), *value;

        if (cek__json_kind(&h->json) != '"') {
            CEK_TRY(syntax(h));
            CEK_FAIL(CEK_BAD_INPUT, "%s: a value of %s is not a string", h->path, CEK__ST_METADATA);
        }
        value = cek__json_string(&h->json);
        if (value != NULL && strcmp(key, CEK__ST_CLASSES) == 0)
            h->classes = value;
    }
    st = syntax(h);
out:
    return st;
}

static int by_begin(const void *a, const void *b)
{
    const entry *x = a, *y = b;

    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end); /* empty tensors first */
}

/* No gap, no overlap, nothing behind the last: each byte has one owner. */
static cek_status extents_check(header *h)
{
    uint64_t at = 0;

    if (h->count > 0)
        qsort(h->entries, h->count, sizeof *h->entries, by_begin);
    for (size_t i = 0; i < h->count; i++) {
        const entry *e = &h->entries[i];

        if (e->begin < at)
            return entry_bad(h, e->t.name, "its values overlap those of another");
        if (e->begin > at)
            return entry_bad(h, e->t.name, "nothing describes the bytes before its values");
        at = e->end;
    }
    if (at != h->values)
        return cek__fail(CEK_BAD_INPUT, "%s: nothing describes the last %" PRIu64 " bytes", h->path, h->values - at);
    return CEK_OK;
}

static cek_status header_read(header *h)
{
    cek_status st;

    for (bool first = true; cek__json_next(&h->json, '{', &first);) {
        const char *name = cek__json_key(&h->json);

        CEK_TRY(syntax(h));
        CEK_TRY(strcmp(name, CEK__ST_METADATA) == 0 ? metadata_read(h) : entry_read(h, name));
    }
    cek__json_end(&h->json);
    CEK_TRY(syntax(h));
    st = extents_check(h);
out:
    return st;
}

/* ---- the file ---- */

/* The header's text, of a length that the file can hold, with a 0 behind it. */
static cek_status header_take(cek__file *in, char **text, uint64_t *length)
{
    uint64_t size = in->size;
    cek_status st;

    *text = NULL;
    if (size < LENGTH_BYTES)
        CEK_FAIL(CEK_BAD_INPUT, "%s: %" PRIu64 " bytes are too few for a safetensors file", in->path, size);
    CEK_TRY(cek__file_take(in, length, sizeof *length));
    *length = le64toh(*length);
    if (*length > HEADER_BYTES_MAX || *length > size - LENGTH_BYTES)
        CEK_FAIL(CEK_BAD_INPUT, "%s: a header of %" PRIu64 " bytes does not fit a file of %" PRIu64, in->path, *length,
                 size);
    CEK_TRY(cek__malloc(*length + 1, text));
    CEK_TRY(cek__file_take(in, *text, *length));
    (*text)[*length] = '\0';
    if (**text != '{')
        CEK_FAIL(CEK_BAD_INPUT, "%s: not a safetensors file (its header does not start with '{')", in->path);
out:
    return st;
}

/* In the order of names, each with its values. */
static cek_status tensors_take(const header *h, cek__st_file *file)
{
    const char *twice;
    cek_status st;

    CEK_TRY(cek__calloc(h->count, sizeof *file->tensors, &file->tensors));
    for (size_t i = 0; i < h->count; i++) {
        file->tensors[i] = h->entries[i].t;
        file->tensors[i].data = (const char *)file->values + h->entries[i].begin;
    }
    file->count = h->count;
    twice = cek__st_sort(file->tensors, file->count);
    if (twice != NULL)
        st = entry_bad(h, twice, "another one has the same name");
out:
    return st;
}

cek_status cek__safetensors_read(const char *path, cek__st_file **out)
{
    header h = { .path = path };
    cek__file in = CEK__FILE_NONE;
    cek__st_file *file = NULL;
    uint64_t length = 0;
    cek_status st;

    *out = NULL;
    CEK_TRY(cek__calloc(1, sizeof *file, &file));
    CEK_TRY(cek__strdup(path, &file->path));
    CEK_TRY(cek__file_open(path, FILE_BYTES_MAX, &in));
    CEK_TRY(header_take(&in, &file->header, &length));
    h.json = (cek__json){ .text = file->header, .at = file->header, .end = file->header + length };
    h.values = in.size - LENGTH_BYTES - length;
    CEK_TRY(header_read(&h));
    file->classes = h.classes;
    CEK_TRY(cek__malloc(h.values, &file->values));
    CEK_TRY(tensors_take(&h, file));
    CEK_TRY(cek__file_take(&in, file->values, h.values));
    *out = file;
out:
    cek__file_close(&in);
    free(h.entries);
    if (st != CEK_OK)
        cek__st_free(file);
    return st;
}
