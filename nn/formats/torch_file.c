/* torch_file.c - from the pickle of a state dict and the storages beside it to tensors.
 *
 * Owns: what torch's calls and persistent ids mean (torch/serialization.py, torch/_utils.py), and that each tensor lies
 * within its storage. */
#include "nn/formats/torch_file.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "nn/formats/pickle.h"
#include "nn/formats/zip.h"

#define FILE_BYTES_MAX ((uint64_t)256 << 30)

enum { PREFIX_BYTES_MAX = 1024, KEY_BYTES_MAX = 200, TENSOR_ARGUMENTS = 6, PARAMETER_ARGUMENTS = 3, STORAGE_WORDS = 5 };

/* What a pickle may name; the storages' order is that of storage_types. */
enum { ORDERED_DICT, REBUILD_TENSOR, REBUILD_PARAMETER, STORAGES };
static const cek__pickle_global globals[] = {
    [ORDERED_DICT] = { "collections OrderedDict", true },
    [REBUILD_TENSOR] = { "torch._utils _rebuild_tensor_v2", false },
    [REBUILD_PARAMETER] = { "torch._utils _rebuild_parameter", false },
    { "torch FloatStorage", false },
    { "torch DoubleStorage", false },
    { "torch HalfStorage", false },
    { "torch BFloat16Storage", false },
    { "torch LongStorage", false },
    { "torch IntStorage", false },
    { "torch ByteStorage", false },
    { "torch BoolStorage", false },
};
enum { GLOBALS = sizeof globals / sizeof *globals };
static const cek__st_type storage_types[GLOBALS - STORAGES] = {
    CEK__ST_F32, CEK__ST_F64, CEK__ST_F16, CEK__ST_BF16, CEK__ST_I64, CEK__ST_I32, CEK__ST_U8, CEK__ST_BOOL,
};

typedef struct archive {
    const char *path;
    cek__zip zip;
    size_t prefix; /* bytes before "data.pkl" in its name */
    const char *prefix_text;
    cek__pickle pickle;
} archive;

static const cek__pickle_value *value(const archive *a, uint32_t number)
{
    return &a->pickle.values[number];
}

/* ---- one tensor ---- */

/* For errors, before the name has a 0 byte behind it. */
static cek_status tensor_bad(const archive *a, const cek__pickle_value *name, const char *cause)
{
    size_t shown = name->text.length < CEK__ST_NAME_SHOWN ? name->text.length : CEK__ST_NAME_SHOWN;

    return cek__fail(CEK_BAD_INPUT, "%s: tensor '%.*s': %s", a->path, (int)shown, name->text.bytes, cause);
}

static bool is_tensor(const archive *a, uint32_t number)
{
    const cek__pickle_value *v = value(a, number);

    return v->kind == CEK__PICKLE_CALL && (v->call.global == REBUILD_TENSOR || v->call.global == REBUILD_PARAMETER);
}

/* The entry of the archive that is called PREFIX, then `folder`, then the key. */
static const cek__zip_entry *entry_find(const archive *a, const char *folder, const char *key, size_t length)
{
    char name[PREFIX_BYTES_MAX + KEY_BYTES_MAX + 16];
    size_t folder_length = strlen(folder);

    if (length > KEY_BYTES_MAX)
        return NULL;
    memcpy(name, a->prefix_text, a->prefix);
    memcpy(name + a->prefix, folder, folder_length);
    memcpy(name + a->prefix + folder_length, key, length);
    return cek__zip_find(&a->zip, name, a->prefix + folder_length + length);
}

/* What a persistent id stands for: ("storage", its class, its key, where it was, how many values). */
static cek_status storage_find(const archive *a, const cek__pickle_value *name, uint32_t number, cek__st_tensor *t,
                               uint64_t *values)
{
    const cek__pickle_value *v = value(a, number), *words[STORAGE_WORDS];
    uint32_t word[STORAGE_WORDS];
    const cek__zip_entry *entry;
    uint64_t bytes;

    if (v->kind != CEK__PICKLE_PERSISTENT || !cek__pickle_tuple(&a->pickle, v->id, STORAGE_WORDS, word))
        return tensor_bad(a, name, "it has no storage");
    for (int i = 0; i < STORAGE_WORDS; i++)
        words[i] = value(a, word[i]);
    if (!cek__pickle_text_is(words[0], "storage") || words[1]->kind != CEK__PICKLE_GLOBAL ||
        words[1]->global < STORAGES || words[2]->kind != CEK__PICKLE_TEXT || words[4]->kind != CEK__PICKLE_INTEGER)
        return tensor_bad(a, name, "its storage is described in an unknown way");
    t->type = storage_types[words[1]->global - STORAGES];
    entry = entry_find(a, "data/", words[2]->text.bytes, words[2]->text.length);
    if (entry == NULL)
        return tensor_bad(a, name, "the archive lacks its storage");
    *values = (uint64_t)words[4]->integer;
    if (words[4]->integer < 0 || __builtin_mul_overflow(*values, cek__st_type_bytes(t->type), &bytes) ||
        bytes != entry->size)
        return tensor_bad(a, name, "its storage has another size than the archive says");
    t->data = entry->data;
    return CEK_OK;
}

/* The whole numbers from 0 of a tuple; false where it is none. */
static bool wholes_read(const archive *a, uint32_t number, uint32_t count, int64_t *out)
{
    uint32_t item[CEK_RANK_MAX];

    if (!cek__pickle_tuple(&a->pickle, number, count, item))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        if (value(a, item[i])->kind != CEK__PICKLE_INTEGER || value(a, item[i])->integer < 0)
            return false;
        out[i] = value(a, item[i])->integer;
    }
    return true;
}

/* Shape and strides from `offset` on lie within so many values. */
static cek_status extent_check(const archive *a, const cek__pickle_value *name, cek__st_tensor *t, uint64_t offset,
                               uint64_t values)
{
    uint64_t last = offset, packed = 1, step;

    t->count = 1;
    for (uint32_t i = 0; i < t->rank; i++)
        if (__builtin_mul_overflow(t->count, (uint64_t)t->shape[i], &t->count))
            return tensor_bad(a, name, "its shape is impossible");
    for (uint32_t i = t->rank; t->count > 0 && i-- > 0;) {
        if (t->shape[i] == 1) {
            t->stride[i] = 0; /* nobody goes along it, however far that is said to be */
            continue;
        }
        t->strided = t->strided || (uint64_t)t->stride[i] != packed;
        packed *= (uint64_t)t->shape[i];
        if (__builtin_mul_overflow((uint64_t)t->shape[i] - 1, (uint64_t)t->stride[i], &step) ||
            __builtin_add_overflow(last, step, &last))
            return tensor_bad(a, name, "its strides are impossible");
    }
    if (t->count == 0 ? offset > values : last >= values)
        return tensor_bad(a, name, "it does not lie within its storage");
    t->data = (const char *)t->data + offset * cek__st_type_bytes(t->type);
    return CEK_OK;
}

/* The arguments of the call that rebuilds the tensor; a parameter's data is one. */
static bool arguments_find(const archive *a, uint32_t number, uint32_t out[TENSOR_ARGUMENTS])
{
    const cek__pickle_value *v = value(a, number);
    uint32_t outer[PARAMETER_ARGUMENTS];

    if (v->call.global == REBUILD_PARAMETER) {
        if (!cek__pickle_tuple(&a->pickle, v->call.arguments, PARAMETER_ARGUMENTS, outer))
            return false;
        v = value(a, outer[0]);
    }
    return v->kind == CEK__PICKLE_CALL && v->call.global == REBUILD_TENSOR &&
           cek__pickle_tuple(&a->pickle, v->call.arguments, TENSOR_ARGUMENTS, out);
}

/* (storage, offset, shape, strides, whether it needs a gradient, hooks) */
static cek_status tensor_read(const archive *a, const cek__pickle_value *name, uint32_t number, cek__st_tensor *t)
{
    uint32_t argument[TENSOR_ARGUMENTS];
    const cek__pickle_value *offset, *shape, *hooks;
    uint64_t values = 0;
    cek_status st;

    *t = (cek__st_tensor){ .name = name->text.bytes };
    if (!arguments_find(a, number, argument))
        return tensor_bad(a, name, "it is built in an unknown way");
    offset = value(a, argument[1]);
    shape = value(a, argument[2]);
    hooks = value(a, argument[5]);
    if (shape->kind == CEK__PICKLE_TUPLE && shape->count > CEK_RANK_MAX)
        return tensor_bad(a, name, "its rank is more than 8");
    t->rank = shape->count;
    if (offset->kind != CEK__PICKLE_INTEGER || offset->integer < 0 || shape->kind != CEK__PICKLE_TUPLE ||
        !wholes_read(a, argument[2], t->rank, t->shape) || !wholes_read(a, argument[3], t->rank, t->stride) ||
        hooks->kind != CEK__PICKLE_DICT || hooks->count != 0)
        return tensor_bad(a, name, "offset, shape, strides or hooks are none");
    CEK_TRY(storage_find(a, name, argument[0], t, &values));
    st = extent_check(a, name, t, (uint64_t)offset->integer, values);
out:
    return st;
}

/* ---- the dict ---- */

/* Some of its values are tensors. */
static bool holds_tensors(const archive *a, uint32_t number)
{
    const cek__pickle_value *v = value(a, number);

    for (uint32_t at = v->kind == CEK__PICKLE_DICT ? v->items.first : 0; at != 0; at = a->pickle.cells[at].next)
        if (is_tensor(a, a->pickle.cells[at].value))
            return true;
    return false;
}

/* The text of a key, or what it is instead. */
static const char *key_text(const cek__pickle_value *key, int *length)
{
    if (key->kind != CEK__PICKLE_TEXT) {
        *length = CEK__ST_NAME_SHOWN;
        return cek__pickle_kind_name(key->kind);
    }
    *length = (int)(key->text.length < CEK__ST_NAME_SHOWN ? key->text.length : CEK__ST_NAME_SHOWN);
    return key->text.bytes;
}

/* The dict that holds the tensors: the file's, or the only one within it. */
static cek_status dict_find(const archive *a, uint32_t *out)
{
    const cek__pickle_value *root = value(a, a->pickle.root), *key = NULL;
    int length, other;
    cek_status st = CEK_OK;

    *out = a->pickle.root;
    if (root->kind != CEK__PICKLE_DICT)
        CEK_FAIL(CEK_BAD_INPUT, "%s: holds %s, not a state dict", a->path, cek__pickle_kind_name(root->kind));
    if (root->count == 0 || holds_tensors(a, a->pickle.root))
        goto out;
    for (uint32_t at = root->items.first; at != 0; at = a->pickle.cells[at].next) {
        const cek__pickle_value *here = value(a, a->pickle.cells[at].key);

        if (!holds_tensors(a, a->pickle.cells[at].value))
            continue;
        if (key != NULL) {
            const char *first = key_text(key, &length), *second = key_text(here, &other);

            CEK_FAIL(CEK_BAD_INPUT, "%s: both '%.*s' and '%.*s' hold tensors; which is meant? Save one of them alone",
                     a->path, length, first, other, second);
        }
        key = here;
        *out = a->pickle.cells[at].value;
    }
    if (key == NULL)
        CEK_FAIL(CEK_BAD_INPUT, "%s: no state dict: neither it nor a dict within it holds tensors", a->path);
    key_text(key, &length);
    cek__log(CEK_LOG_INFO, "%s: the state dict is its '%.*s'", a->path, length, key_text(key, &other));
out:
    return st;
}

/* Ends the name where it stands, which no text of the pickle needs any more. */
static cek_status name_end(const archive *a, const cek__pickle_value *key)
{
    char *at = key->text.bytes, *end = at + key->text.length;
    uint32_t code;

    *end = '\0';
    while (at < end) {
        size_t length = cek__utf8_next(at, &code);

        if (length == 0)
            return cek__fail(CEK_BAD_INPUT, "%s: tensor '%.*s': its name is not text", a->path, CEK__ST_NAME_SHOWN,
                             key->text.bytes);
        at += length;
    }
    return CEK_OK;
}

static cek_status tensors_take(const archive *a, uint32_t dict, cek__st_file *file)
{
    const cek__pickle_value *d = value(a, dict);
    const char *twice;
    cek_status st;

    CEK_TRY(cek__calloc(d->count, sizeof *file->tensors, &file->tensors));
    for (uint32_t at = d->items.first; at != 0; at = a->pickle.cells[at].next) {
        const cek__pickle_value *key = value(a, a->pickle.cells[at].key);
        uint32_t number = a->pickle.cells[at].value;

        if (key->kind != CEK__PICKLE_TEXT)
            CEK_FAIL(CEK_BAD_INPUT, "%s: a key of its state dict is %s, not a name", a->path,
                     cek__pickle_kind_name(key->kind));
        if (!is_tensor(a, number)) {
            st = tensor_bad(a, key, "it is no tensor");
            goto out;
        }
        CEK_TRY(tensor_read(a, key, number, &file->tensors[file->count++]));
    }
    for (uint32_t at = d->items.first; at != 0; at = a->pickle.cells[at].next)
        CEK_TRY(name_end(a, value(a, a->pickle.cells[at].key)));
    twice = cek__st_sort(file->tensors, file->count);
    if (twice != NULL)
        CEK_FAIL(CEK_BAD_INPUT, "%s: tensor '%.*s': another one has the same name", a->path, CEK__ST_NAME_SHOWN, twice);
out:
    return st;
}

/* ---- the file ---- */

/* The only entry PREFIX/data.pkl; what it says of the storages' bytes is not the other order. */
static cek_status pickle_find(archive *a, const cek__zip_entry **out)
{
    static const char last[] = "/data.pkl";
    const cek__zip_entry *order;
    cek_status st = CEK_OK;

    *out = NULL;
    for (size_t i = 0; i < a->zip.count; i++) {
        const cek__zip_entry *e = &a->zip.entries[i];
        size_t slash = sizeof last - 1 <= e->name_length ? e->name_length - (sizeof last - 1) : 0;

        if (e->name_length < sizeof last || memcmp(e->name + slash, last, sizeof last - 1) != 0)
            continue;
        if (*out != NULL)
            CEK_FAIL(CEK_BAD_INPUT, "%s: two entries are called data.pkl", a->path);
        *out = e;
        a->prefix = slash + 1;
        a->prefix_text = e->name;
    }
    if (*out == NULL)
        CEK_FAIL(CEK_BAD_INPUT, "%s: a zip archive, but none of torch.save: it has no entry data.pkl", a->path);
    if (a->prefix > PREFIX_BYTES_MAX)
        CEK_FAIL(CEK_BAD_INPUT, "%s: the names of its entries are too long", a->path);
    order = entry_find(a, "", "byteorder", strlen("byteorder"));
    if (order != NULL && (order->size != 6 || memcmp(order->data, "little", 6) != 0))
        CEK_FAIL(CEK_BAD_INPUT, "%s: its values are not little-endian", a->path);
out:
    return st;
}

cek_status cek__torch_read(const char *path, cek__st_file **out)
{
    archive a = { .path = path };
    cek__st_file *file = NULL;
    const cek__zip_entry *pickle;
    uint32_t dict;
    size_t size;
    cek_status st;

    *out = NULL;
    CEK_TRY(cek__calloc(1, sizeof *file, &file));
    CEK_TRY(cek__strdup(path, &file->path));
    CEK_TRY(cek__file_read(path, FILE_BYTES_MAX, &file->values, &size));
    CEK_TRY(cek__zip_open(path, file->values, size, false, &a.zip));
    CEK_TRY(pickle_find(&a, &pickle));
    CEK_TRY(cek__pickle_read(path, pickle->data, pickle->size, globals, GLOBALS, &a.pickle));
    CEK_TRY(dict_find(&a, &dict));
    CEK_TRY(tensors_take(&a, dict, file));
    *out = file;
out:
    cek__pickle_clear(&a.pickle);
    cek__zip_close(&a.zip);
    if (st != CEK_OK)
        cek__st_free(file);
    return st;
}
