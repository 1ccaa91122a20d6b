/* arrays.c - see arrays.h. */
#include "nn/data/arrays.h"

#include <endian.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/file.h"
#include "nn/data/folders.h"
#include "nn/data/stored.h"
#include "nn/formats/npy_elements.h"
#include "nn/formats/npz.h"
#include "nn/formats/safetensors.h"

/* ---- what arrays are ---- */

typedef struct pair {
    cek__data_format format;
    int64_t count;
    bool turn; /* images lie channels first */
    size_t pixels, channels, element;
} pair;

/* Images have their channels first, as PyTorch has them, or last, as others: where the last axis can be one of channels
 * and the first cannot. */
static bool channels_last(const int64_t *image)
{
    return (image[2] == 1 || image[2] == 3 || image[2] == 4) && image[0] != 1 && image[0] != 3 && image[0] != 4;
}

static void images_format(const int64_t *image, pair *p)
{
    int64_t *shape = p->format.input_shape;

    p->turn = !channels_last(image);
    shape[0] = image[p->turn ? 1 : 0];
    shape[1] = image[p->turn ? 2 : 1];
    shape[2] = image[p->turn ? 0 : 2];
    p->channels = (size_t)shape[2];
    p->pixels = (size_t)(shape[0] * shape[1]);
    p->turn = p->turn && p->channels > 1;
}

static cek_status inputs_find(const char *x, cek_dtype type, int rank, const int64_t *shape, pair *p)
{
    *p = (pair){ .format.input_type = type, .element = type == CEK_U8 ? 1 : 4 };
    if (rank < 1 || rank > CEK__DATA_RANK_MAX + 1)
        return cek__fail(CEK_BAD_INPUT, "%s: %d axes, samples have 0 to %d behind the first", x, rank,
                         CEK__DATA_RANK_MAX);
    for (int i = 0; i < rank; i++)
        if (shape[i] < 1 || shape[i] > INT64_MAX >> 24)
            return cek__fail(CEK_BAD_INPUT, "%s: axis %d has %" PRId64 " places", x, i, shape[i]);
    p->count = shape[0];
    p->format.input_rank = rank > 1 ? (uint32_t)rank - 1 : 1;
    p->format.input_shape[0] = 1;
    memcpy(p->format.input_shape, shape + 1, (size_t)(rank - 1) * sizeof *shape);
    if (type == CEK_U8 && rank == 3) { /* grey images */
        p->format.input_rank = 3;
        p->format.input_shape[2] = 1;
    } else if (cek__data_is_image(&p->format)) {
        images_format(shape + 1, p);
    }
    return CEK_OK;
}

/* Whole numbers are labels, widened in place of their array, of `classes` (0: as many as the largest says);
 * others are values. */
static cek_status targets_find(const char *y, cek_npy *array, int64_t classes, pair *p)
{
    int64_t largest = 0;
    cek_status st = CEK_OK;

    if (array->rank < 1 || array->shape[0] != p->count)
        CEK_FAIL(CEK_BAD_INPUT, "%s: %" PRId64 " rows, where there are %" PRId64 " samples", y,
                 array->rank < 1 ? 0 : array->shape[0], p->count);
    p->format.target_width = array->count / p->count;
    p->format.target_type = CEK_F32;
    for (int64_t i = 0; array->type == CEK_F32 && i < array->count; i++)
        if (!isfinite(((const float *)array->data)[i]))
            CEK_FAIL(CEK_BAD_INPUT, "%s: element %" PRId64 " is not finite", y, i);
    if (array->type == CEK_F32)
        return CEK_OK;
    p->format.target_type = CEK_I32;
    if (array->type == CEK_U8) {
        int32_t *wide;

        CEK_TRY(cek__alloc_array((size_t)array->count, sizeof *wide, &wide));
        for (int64_t i = 0; i < array->count; i++)
            wide[i] = ((const uint8_t *)array->data)[i];
        free(array->data);
        array->data = wide;
        array->type = CEK_I32;
    }
    for (int64_t i = 0; i < array->count; i++) {
        const int32_t label = ((const int32_t *)array->data)[i];

        if (label < 0)
            CEK_FAIL(CEK_BAD_INPUT, "%s: element %" PRId64 " is %" PRId32 ", and labels count from 0", y, i, label);
        if (classes > 0 && label >= classes)
            CEK_FAIL(CEK_BAD_INPUT,
                     "%s: element %" PRId64 " is %" PRId32 ", and the training set has %" PRId64 " classes", y, i,
                     label, classes);
        largest = label > largest ? label : largest;
    }
    p->format.class_count = classes > 0 ? classes : largest + 1;
out:
    return st;
}

static void turn(const pair *p, const char *from, char *to)
{
    for (size_t i = 0; i < p->pixels; i++)
        for (size_t c = 0; c < p->channels; c++)
            memcpy(to + (i * p->channels + c) * p->element, from + (c * p->pixels + i) * p->element, p->element);
}

/* What is wrong with the targets' number or the largest label is the second file's. */
static cek_status format_check(const char *y, const pair *p)
{
    const cek_status st = cek__data_format_check(&p->format, p->count);

    return st == CEK_OK ? st : cek__fail_prefix(CEK_BAD_INPUT, "%s", y);
}

/* Takes the data of both over, on failure too. */
static cek_status pair_dataset(const char *x_name, cek_npy *x, const char *y_name, cek_npy *y, int64_t classes,
                               cek_dataset **out)
{
    cek_status st;
    pair p;
    char *inputs = NULL;
    size_t bytes;

    CEK_TRY(inputs_find(x_name, x->type, x->rank, x->shape, &p));
    CEK_TRY(targets_find(y_name, y, classes, &p));
    CEK_TRY(format_check(y_name, &p));
    if (p.turn) {
        bytes = cek__data_input_bytes(&p.format);
        CEK_TRY(cek__alloc_array((size_t)p.count, bytes, &inputs));
        for (int64_t i = 0; i < p.count; i++)
            turn(&p, (const char *)x->data + (size_t)i * bytes, inputs + (size_t)i * bytes);
        free(x->data);
        x->data = inputs;
    }
    st = cek__dataset_adopt(&p.format, p.count, x->data, y->data, out);
    x->data = y->data = NULL;
    if (st != CEK_OK)
        cek__fail_prefix(st, "%s", x_name);
out:
    free(x->data);
    free(y->data);
    x->data = y->data = NULL;
    return st;
}

/* ---- an array that stays in its file ---- */

typedef struct kept {
    cek__stored *rows;
    pair pair;
    char *targets, *path;
} kept;

static void kept_free(void *user)
{
    kept *k = user;

    if (k == NULL)
        return;
    cek__stored_free(k->rows);
    free(k->targets);
    free(k->path);
    free(k);
}

static cek_status sample_read(const kept *k, int64_t row, char *record, char *to, size_t bytes)
{
    cek_status st;

    CEK_TRY(cek__stored_take(k->rows, row, k->pair.turn ? record : to));
    if (k->pair.turn)
        turn(&k->pair, record, to);
    if (k->pair.element == 4 && BYTE_ORDER == BIG_ENDIAN)
        for (size_t i = 0; i < bytes / 4; i++)
            ((uint32_t *)(void *)to)[i] = le32toh(((uint32_t *)(void *)to)[i]);
    for (size_t i = 0; k->pair.format.input_type == CEK_F32 && i < bytes / 4; i++)
        if (!isfinite(((const float *)(const void *)to)[i]))
            CEK_FAIL(CEK_BAD_INPUT, "%s: sample %" PRId64 " has a value that is not finite", k->path, row);
out:
    return st;
}

static cek_status kept_read(void *user, const cek__data_draw *draw, const int64_t *rows, int64_t count, void *inputs,
                            void *targets)
{
    const kept *k = user;
    const size_t bytes = cek__data_input_bytes(&k->pair.format), target = cek__data_target_bytes(&k->pair.format);
    char *record = NULL;
    cek_status st;

    (void)draw;
    CEK_TRY(cek__malloc(bytes, &record));
    for (int64_t i = 0; i < count; i++) {
        CEK_TRY(sample_read(k, rows[i], record, (char *)inputs + (size_t)i * bytes, bytes));
        memcpy((char *)targets + (size_t)i * target, k->targets + (size_t)rows[i] * target, target);
    }
out:
    free(record);
    return st;
}

/* What a file's first bytes say of an array that can be read as it lies; *type CEK_DTYPE_NONE: it is none. */
static cek_status header_look(const char *path, cek__npy_header *h, uint64_t *size, cek_dtype *type)
{
    enum { HEADER = 1 << 16 };
    cek__file file = CEK__FILE_NONE;
    uint8_t *bytes = NULL;
    int64_t count;
    cek_status st;

    *type = CEK_DTYPE_NONE;
    CEK_TRY(cek__file_open(path, INT64_MAX, &file));
    *size = file.size;
    CEK_TRY(cek__malloc(HEADER, &bytes));
    CEK_TRY(cek__file_take(&file, bytes, file.size < HEADER ? (size_t)file.size : HEADER));
    st = cek__npy_header_read(bytes, file.size < HEADER ? (size_t)file.size : HEADER, h);
    if (st == CEK_OK) {
        *type = cek__npy_lies_as(h);
        if (*type != CEK_F32 && *type != CEK_I32 && *type != CEK_U8)
            *type = CEK_DTYPE_NONE;
        else
            st = cek__npy_size_check(h, cek_dtype_bytes(*type), file.size - h->values, &count);
    }
    if (st != CEK_OK)
        cek__fail_prefix(st, "%s", path);
out:
    cek__file_close(&file);
    free(bytes);
    return st;
}

/* Takes the data of `y` over, on failure too. */
static cek_status kept_dataset(const char *x, const cek__npy_header *h, cek_dtype type, const char *y_name, cek_npy *y,
                               int64_t classes, cek_dataset **out)
{
    cek__data_source source = { .read = kept_read, .destroy = kept_free };
    cek_status st;
    kept *k = NULL;

    CEK_TRY(cek__calloc(1, sizeof *k, &k));
    CEK_TRY(cek__strdup(x, &k->path));
    CEK_TRY(inputs_find(x, type, h->rank, h->shape, &k->pair));
    CEK_TRY(targets_find(y_name, y, classes, &k->pair));
    CEK_TRY(format_check(y_name, &k->pair));
    CEK_TRY(cek__stored_create(cek__data_input_bytes(&k->pair.format), &k->rows));
    CEK_TRY(cek__stored_add(k->rows, x, h->values));
    k->targets = y->data;
    y->data = NULL;
    source.user = k;
    CEK_TRY(cek__dataset_from_source(&k->pair.format, k->pair.count, &source, out));
    return CEK_OK;
out:
    free(y->data);
    y->data = NULL;
    kept_free(k);
    return st;
}

static cek_status files_dataset(const char *x, const char *y, uint64_t held, int64_t classes, cek_dataset **out)
{
    cek_npy inputs = { .size = sizeof inputs }, targets = { .size = sizeof targets };
    cek__npy_header h;
    cek_dtype type;
    uint64_t size;
    cek_status st;

    *out = NULL;
    CEK_TRY(header_look(x, &h, &size, &type));
    CEK_TRY(cek_npy_read(y, CEK_DTYPE_NONE, &targets));
    if (size > held && type != CEK_DTYPE_NONE)
        return kept_dataset(x, &h, type, y, &targets, classes, out);
    CEK_TRY(cek_npy_read(x, CEK_DTYPE_NONE, &inputs));
    return pair_dataset(x, &inputs, y, &targets, classes, out);
out:
    free(targets.data);
    return st;
}

cek_status cek__npy_dataset(const char *x, const char *y, uint64_t held, cek_dataset **out)
{
    return files_dataset(x, y, held, 0, out);
}

/* ---- arrays by name ---- */

/* A folder of .npy files, an archive, or safetensors. */
typedef struct bag {
    const char *path;
    cek_npz *archive;
    cek__st_file *tensors;
    bool folder;
} bag;

static bool ends(const char *path, const char *end)
{
    const size_t length = strlen(path);

    return length > strlen(end) && strcmp(path + length - strlen(end), end) == 0;
}

static void bag_close(bag *b)
{
    cek_npz_close(b->archive);
    cek__st_free(b->tensors);
}

static cek_status bag_open(const char *path, bag *out)
{
    *out = (bag){ .path = path, .folder = cek__is_folder(path) };
    if (out->folder)
        return CEK_OK;
    return ends(path, ".safetensors") ? cek__safetensors_read(path, &out->tensors) : cek_npz_open(path, &out->archive);
}

/* The file of an array in a folder, its entry in an archive, its name where there is neither: for errors, too. */
static cek_status name_of(const bag *b, const char *name, char **out)
{
    return b->folder ? cek__asprintf(out, "%s/%s.npy", b->path, name)
                     : cek__asprintf(out, "%s: array '%s'", b->path, name);
}

static bool bag_has(const bag *b, const char *name)
{
    char path[PATH_MAX]; /* what is longer is no path to access either */
    int length;

    if (b->tensors != NULL)
        return cek__st_find(b->tensors, name) != NULL;
    if (!b->folder)
        return cek__npz_has(b->archive, name);
    length = snprintf(path, sizeof path, "%s/%s.npy", b->path, name);
    return length >= 0 && (size_t)length < sizeof path && access(path, F_OK) == 0;
}

static cek_status wholes_take(const cek__st_tensor *t, cek_npy *out)
{
    int32_t *values = out->data;

    for (uint64_t i = 0; i < t->count; i++) {
        int64_t wide;
        int32_t narrow;

        if (t->type == CEK__ST_I32) {
            memcpy(&narrow, (const char *)t->data + 4 * i, 4);
            values[i] = (int32_t)le32toh((uint32_t)narrow);
            continue;
        }
        memcpy(&wide, (const char *)t->data + 8 * i, 8);
        wide = (int64_t)le64toh((uint64_t)wide);
        if (wide < INT32_MIN || wide > INT32_MAX)
            return cek__fail(CEK_BAD_INPUT, "element %" PRIu64 " is %" PRId64 ", which 32 bits do not hold", i, wide);
        values[i] = (int32_t)wide;
    }
    return CEK_OK;
}

static cek_status tensor_take(const cek__st_tensor *t, cek_npy *out)
{
    cek_status st;
    const bool whole = t->type == CEK__ST_I32 || t->type == CEK__ST_I64;

    out->type = whole ? CEK_I32 : t->type == CEK__ST_U8 || t->type == CEK__ST_BOOL ? CEK_U8 : CEK_F32;
    out->rank = (int32_t)t->rank;
    out->count = (int64_t)t->count;
    memcpy(out->shape, t->shape, sizeof out->shape);
    CEK_TRY(cek__alloc_array(t->count + 1, cek_dtype_bytes(out->type), &out->data));
    if (out->type == CEK_U8)
        memcpy(out->data, t->data, t->count);
    else
        st = whole ? wholes_take(t, out) : cek__st_to_f32(t, out->data);
out:
    return st;
}

static cek_status bag_take(const bag *b, const char *name, const char *shown, cek_npy *out)
{
    cek_status st;

    if (b->archive != NULL)
        return cek__npz_take(b->archive, name, CEK__NPY_NEAREST, out);
    *out = (cek_npy){ .size = sizeof *out };
    st = tensor_take(cek__st_find(b->tensors, name), out);
    if (st != CEK_OK) {
        cek__fail_prefix(st, "%s", shown);
        free(out->data);
        out->data = NULL;
    }
    return st;
}

static cek_status targets_take(const bag *b, const char *name, const char *shown, cek_npy *out)
{
    return b->folder ? cek_npy_read(shown, CEK_DTYPE_NONE, out) : bag_take(b, name, shown, out);
}

/* How many classes the training set has, whose a test set's are; 0: none, or no training set. */
static cek_status classes_of(const bag *b, int64_t *out)
{
    const char *const name = bag_has(b, "y_train") ? "y_train" : "y";
    cek_npy targets = { .size = sizeof targets };
    pair p = { .count = 0 };
    char *shown = NULL;
    cek_status st = CEK_OK;

    *out = 0;
    if (!bag_has(b, name))
        goto out;
    CEK_TRY(name_of(b, name, &shown));
    CEK_TRY(targets_take(b, name, shown, &targets));
    p.count = targets.rank > 0 ? targets.shape[0] : 0;
    if (p.count > 0)
        CEK_TRY(targets_find(shown, &targets, 0, &p));
    *out = p.format.class_count;
out:
    free(targets.data);
    free(shown);
    return st;
}

static cek_status part_open(const bag *b, const char *x, const char *y, int64_t classes, cek_dataset **out)
{
    cek_npy inputs = { .size = sizeof inputs }, targets = inputs;
    char *x_name = NULL, *y_name = NULL;
    cek_status st;

    CEK_TRY(name_of(b, x, &x_name));
    CEK_TRY(name_of(b, y, &y_name));
    if (!bag_has(b, y))
        CEK_FAIL(CEK_BAD_INPUT, "%s: there is %s and no %s", b->path, x, y);
    if (b->folder) {
        st = files_dataset(x_name, y_name, CEK__ARRAYS_HELD, classes, out);
        goto out;
    }
    CEK_TRY(bag_take(b, x, x_name, &inputs));
    CEK_TRY(bag_take(b, y, y_name, &targets));
    st = pair_dataset(x_name, &inputs, y_name, &targets, classes, out);
out:
    free(inputs.data);
    free(targets.data);
    free(x_name);
    free(y_name);
    return st;
}

static const char *const parts[][2] = { { "x_train", "y_train" }, { "x", "y" }, { "x_test", "y_test" } };

bool cek__arrays_there(const char *path)
{
    bag b = { .path = path, .folder = true };

    if (!cek__is_folder(path))
        return ends(path, ".npz") || ends(path, ".safetensors");
    return bag_has(&b, "x") || bag_has(&b, "x_train");
}

cek_status cek__arrays_dataset(const char *path, bool train, cek_dataset **out)
{
    cek_status st;
    bag b;
    int part;
    int64_t classes = 0;

    *out = NULL;
    CEK_TRY(bag_open(path, &b));
    part = !train ? 2 : bag_has(&b, parts[0][0]) ? 0 : 1;
    if (!train)
        st = classes_of(&b, &classes);
    if (st == CEK_OK && bag_has(&b, parts[part][0]))
        st = part_open(&b, parts[part][0], parts[part][1], classes, out);
    else if (st == CEK_OK && train)
        st = cek__fail(CEK_BAD_INPUT, "%s: there is neither an array x nor x_train", path);
    else if (st == CEK_OK)
        st = cek__fail(CEK_NOT_FOUND, "%s: has no part for testing, x_test", path);
    bag_close(&b);
out:
    return st;
}
