/* idx.c - IDX files into data sets.
 *
 * Owns: the header's checks, byte order, the names of MNIST's files. Must not know: compression (bytes.h). */
#include "nn/data/idx.h"

#include <endian.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/file.h"
#include "nn/data/bytes.h"
#include "nn/data/stored.h"

/* Files of more bytes stay where they are: what a batch wants is read then. */
enum { HELD = 256 << 20 };

/* ---- one file ---- */

static const struct idx_type {
    uint8_t code;
    uint8_t bytes;
    cek_dtype type; /* CEK_DTYPE_NONE: known, but not read */
    const char *name;
} idx_types[] = {
    { 0x08, 1, CEK_U8, "unsigned byte" }, { 0x09, 1, CEK_DTYPE_NONE, "signed byte" },
    { 0x0B, 2, CEK_DTYPE_NONE, "short" }, { 0x0C, 4, CEK_I32, "int" },
    { 0x0D, 4, CEK_F32, "float" },        { 0x0E, 8, CEK_DTYPE_NONE, "double" },
};

static cek_status type_find(const char *path, const uint8_t magic[4], const struct idx_type **out)
{
    *out = NULL;
    if (magic[0] != 0 || magic[1] != 0)
        return cek__fail(CEK_BAD_INPUT, "%s: not an IDX file (it starts with %02x %02x)", path, magic[0], magic[1]);
    for (size_t i = 0; i < sizeof idx_types / sizeof *idx_types; i++)
        if (idx_types[i].code == magic[2])
            *out = &idx_types[i];
    if (*out == NULL)
        return cek__fail(CEK_BAD_INPUT, "%s: no IDX type has the code 0x%02x", path, magic[2]);
    if ((*out)->type == CEK_DTYPE_NONE)
        return cek__fail(CEK_BAD_INPUT, "%s: values of type %s are not read (unsigned byte, int and float are)", path,
                         (*out)->name);
    return CEK_OK;
}

static cek_status rank_take(const char *path, const struct idx_type *type, uint8_t rank, cek__idx *idx)
{
    if (rank < 1 || rank > CEK__IDX_RANK_MAX)
        return cek__fail(CEK_BAD_INPUT, "%s: rank %d, 1 to %d is read", path, rank, CEK__IDX_RANK_MAX);
    idx->type = type->type;
    idx->rank = rank;
    return CEK_OK;
}

/* *size: how many bytes of values follow. */
static cek_status dims_take(const char *path, const struct idx_type *type, const uint32_t *dims, cek__idx *idx,
                            uint64_t *size)
{
    *size = type->bytes;
    for (uint32_t i = 0; i < idx->rank; i++) {
        idx->shape[i] = be32toh(dims[i]);
        if (idx->shape[i] == 0)
            return cek__fail(CEK_BAD_INPUT, "%s: dimension %" PRIu32 " is 0", path, i);
        if (__builtin_mul_overflow(*size, (uint64_t)idx->shape[i], size))
            return cek__fail(CEK_BAD_INPUT, "%s: its header promises more than 2^64 bytes", path);
    }
    return CEK_OK;
}

/* Fills in type, rank and shape, and how many bytes of values follow. */
static cek_status header_read(const char *path, cek__bytes *bytes, cek__idx *idx, uint64_t *size)
{
    const struct idx_type *type;
    uint8_t magic[4];
    uint32_t dims[CEK__IDX_RANK_MAX];
    cek_status st;

    CEK_TRY(cek__bytes_take(bytes, magic, sizeof magic));
    CEK_TRY(type_find(path, magic, &type));
    CEK_TRY(rank_take(path, type, magic[3], idx));
    CEK_TRY(cek__bytes_take(bytes, dims, idx->rank * sizeof *dims));
    st = dims_take(path, type, dims, idx, size);
out:
    return st;
}

static void to_host_order(uint32_t *words, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        words[i] = be32toh(words[i]);
}

/* Of a file that is not compressed and has more than `held` bytes, what its header says and where its values begin;
 * *begin 0 else. */
static cek_status header_look(const char *path, uint64_t held, cek__idx *out, uint64_t *begin)
{
    cek__file file = CEK__FILE_NONE;
    uint8_t magic[4];
    uint32_t dims[CEK__IDX_RANK_MAX];
    const struct idx_type *type;
    uint64_t size;
    cek_status st;

    *begin = 0;
    CEK_TRY(cek__file_open(path, INT64_MAX, &file));
    if (file.size <= held || file.size < sizeof magic)
        goto out;
    CEK_TRY(cek__file_take(&file, magic, sizeof magic));
    if (magic[0] == 0x1f && magic[1] == 0x8b)
        goto out;
    CEK_TRY(type_find(path, magic, &type));
    CEK_TRY(rank_take(path, type, magic[3], out));
    if (file.size < sizeof magic + out->rank * sizeof *dims)
        CEK_FAIL(CEK_BAD_INPUT, "%s: ends within its header", path);
    CEK_TRY(cek__file_take(&file, dims, out->rank * sizeof *dims));
    CEK_TRY(dims_take(path, type, dims, out, &size));
    *begin = sizeof magic + out->rank * sizeof *dims;
    if (file.size - *begin != size)
        CEK_FAIL(CEK_BAD_INPUT, "%s: its header promises %" PRIu64 " bytes of values, there are %" PRIu64, path, size,
                 file.size - *begin);
out:
    cek__file_close(&file);
    return st;
}

cek_status cek__idx_read(const char *path, cek__idx *out)
{
    cek_status st;
    cek__bytes *bytes = NULL;
    cek__idx idx = { 0 };
    uint64_t size = 0;

    memset(out, 0, sizeof *out);
    CEK_TRY(cek__bytes_open(path, &bytes));
    CEK_TRY(header_read(path, bytes, &idx, &size));
    CEK_TRY(cek__bytes_could_hold(bytes, size));
    CEK_TRY(cek__malloc(size, &idx.data));
    CEK_TRY(cek__bytes_take(bytes, idx.data, size));
    CEK_TRY(cek__bytes_end(bytes));
    if (idx.type != CEK_U8)
        to_host_order(idx.data, size / 4);
    *out = idx;
    idx.data = NULL;
out:
    free(idx.data);
    cek__bytes_close(bytes);
    return st;
}

/* ---- inputs and labels together ---- */

static cek_status format_of(const char *path, const cek__idx *inputs, cek__data_format *format)
{
    if (inputs->type == CEK_I32 || inputs->rank < 2 || inputs->rank > 4)
        return cek__fail(CEK_BAD_INPUT, "%s: inputs must be unsigned bytes or floats of rank 2, 3 or 4", path);
    *format = (cek__data_format){
        .input_type = inputs->type, .input_rank = inputs->rank - 1, .target_type = CEK_I32, .target_width = 1
    };
    memcpy(format->input_shape, inputs->shape + 1, format->input_rank * sizeof *format->input_shape);
    if (format->input_rank == 2) /* grey images */
        format->input_shape[format->input_rank++] = 1;
    return CEK_OK;
}

/* Widens u8 labels in place of their array; the range is checked here, where the file can be named. */
static cek_status labels_to_i32(const char *path, cek__idx *labels, int64_t *class_count)
{
    cek_status st;
    int32_t *wide = labels->data;
    int64_t largest = 0;

    if (labels->rank != 1 || labels->type == CEK_F32)
        CEK_FAIL(CEK_BAD_INPUT, "%s: labels must be unsigned bytes or ints of rank 1", path);
    if (labels->type == CEK_U8) {
        const uint8_t *narrow = labels->data;

        CEK_TRY(cek__alloc_array((size_t)labels->shape[0], sizeof *wide, &wide));
        for (int64_t i = 0; i < labels->shape[0]; i++)
            wide[i] = narrow[i];
        free(labels->data);
        labels->data = wide;
        labels->type = CEK_I32;
    }
    for (int64_t i = 0; i < labels->shape[0]; i++) {
        if (wide[i] < 0 || (*class_count > 0 && wide[i] >= *class_count))
            CEK_FAIL(CEK_BAD_INPUT, "%s: label %" PRId32 " at row %" PRId64 " is out of range", path, wide[i], i);
        largest = wide[i] > largest ? wide[i] : largest;
    }
    if (*class_count == 0)
        *class_count = largest + 1;
    return CEK_OK;
out:
    return st;
}

/* ---- inputs that stay in their file ---- */

typedef struct kept {
    cek__stored *rows;
    int32_t *labels;
    size_t bytes;
    bool floats;
    char *path;
} kept;

static void kept_free(void *user)
{
    kept *k = user;

    cek__stored_free(k->rows);
    free(k->labels);
    free(k->path);
    free(k);
}

static cek_status kept_read(void *user, const cek__data_draw *draw, const int64_t *rows, int64_t count, void *inputs,
                            void *targets)
{
    const kept *k = user;
    cek_status st = CEK_OK;

    (void)draw;
    for (int64_t i = 0; i < count; i++) {
        float *values = (float *)(void *)((char *)inputs + (size_t)i * k->bytes);

        CEK_TRY(cek__stored_take(k->rows, rows[i], values));
        ((int32_t *)targets)[i] = k->labels[rows[i]];
        if (!k->floats)
            continue;
        to_host_order((uint32_t *)(void *)values, k->bytes / sizeof *values);
        for (size_t e = 0; e < k->bytes / sizeof *values; e++)
            if (!isfinite(values[e]))
                CEK_FAIL(CEK_BAD_INPUT, "%s: sample %" PRId64 " has a value that is not finite", k->path, rows[i]);
    }
out:
    return st;
}

/* Takes the labels over, on failure too. */
static cek_status kept_dataset(const char *path, uint64_t begin, const cek__data_format *format, int64_t count,
                               int32_t *labels, cek_dataset **out)
{
    cek__data_source source = { .read = kept_read, .destroy = kept_free };
    kept *k = NULL;
    cek_status st;

    CEK_TRY(cek__calloc(1, sizeof *k, &k));
    k->labels = labels;
    labels = NULL;
    k->bytes = cek__data_input_bytes(format);
    k->floats = format->input_type == CEK_F32;
    CEK_TRY(cek__strdup(path, &k->path));
    CEK_TRY(cek__stored_create(k->bytes, &k->rows));
    CEK_TRY(cek__stored_add(k->rows, path, begin));
    source.user = k;
    CEK_TRY(cek__dataset_from_source(format, count, &source, out));
    return CEK_OK;
out:
    free(labels);
    if (k != NULL)
        kept_free(k);
    return st;
}

cek_status cek__idx_dataset_held(const char *inputs_path, const char *labels_path, int64_t class_count, uint64_t held,
                                 cek_dataset **out)
{
    cek_status st;
    cek__idx inputs = { 0 }, labels = { 0 };
    cek__data_format format;
    uint64_t begin;

    *out = NULL;
    CEK_TRY(header_look(inputs_path, held, &inputs, &begin));
    if (begin == 0)
        CEK_TRY(cek__idx_read(inputs_path, &inputs));
    CEK_TRY(format_of(inputs_path, &inputs, &format));
    CEK_TRY(cek__idx_read(labels_path, &labels));
    CEK_TRY(labels_to_i32(labels_path, &labels, &class_count));
    if (inputs.shape[0] != labels.shape[0])
        CEK_FAIL(CEK_BAD_INPUT, "%s has %" PRId64 " labels, but %s has %" PRId64 " samples", labels_path,
                 labels.shape[0], inputs_path, inputs.shape[0]);
    format.class_count = class_count;
    CEK_TRY(cek__data_format_check(&format, inputs.shape[0])); /* before its sizes are believed */
    if (begin != 0)
        return kept_dataset(inputs_path, begin, &format, inputs.shape[0], labels.data, out);
    st = cek__dataset_adopt(&format, inputs.shape[0], inputs.data, labels.data, out);
    return st == CEK_OK ? st : cek__fail_prefix(st, "%s", inputs_path);
out:
    free(inputs.data);
    free(labels.data);
    return st;
}

cek_status cek__idx_dataset(const char *inputs_path, const char *labels_path, int64_t class_count, cek_dataset **out)
{
    return cek__idx_dataset_held(inputs_path, labels_path, class_count, HELD, out);
}

/* ---- a folder of MNIST's files ---- */

/* FOLDER/NAME or FOLDER/NAME.gz, the plain one first. */
static cek_status file_find(const char *folder, const char *name, char **out)
{
    static const char *const endings[] = { "", ".gz" };
    cek_status st;

    *out = NULL;
    for (size_t i = 0; i < 2; i++) {
        free(*out);
        CEK_TRY(cek__asprintf(out, "%s/%s%s", folder, name, endings[i]));
        if (access(*out, F_OK) == 0)
            return CEK_OK;
    }
    CEK_FAIL(CEK_IO, "%s: there is neither %s nor %s.gz", folder, name, name);
out:
    free(*out);
    *out = NULL;
    return st;
}

cek_status cek__idx_mnist(const char *folder, bool train, cek_dataset **out)
{
    enum { CLASSES = 10 };
    cek_status st;
    char *images = NULL, *labels = NULL;

    *out = NULL;
    CEK_TRY(file_find(folder, train ? "train-images-idx3-ubyte" : "t10k-images-idx3-ubyte", &images));
    CEK_TRY(file_find(folder, train ? "train-labels-idx1-ubyte" : "t10k-labels-idx1-ubyte", &labels));
    st = cek__idx_dataset(images, labels, CLASSES, out);
out:
    free(images);
    free(labels);
    return st;
}
