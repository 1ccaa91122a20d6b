/* tensors.c - the types of tensors in files, tensors by name, their values as floats or doubles.
 *
 * Must not know: any form of file. */
#include "nn/formats/tensors.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/half.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values are used as they stand in the file");

static const struct {
    const char *name;
    uint8_t bytes;
} types[CEK__ST_TYPES] = {
    [CEK__ST_F32] = { "F32", 4 },   [CEK__ST_F64] = { "F64", 8 },   [CEK__ST_F16] = { "F16", 2 },
    [CEK__ST_BF16] = { "BF16", 2 }, [CEK__ST_I32] = { "I32", 4 },   [CEK__ST_I64] = { "I64", 8 },
    [CEK__ST_U8] = { "U8", 1 },     [CEK__ST_BOOL] = { "BOOL", 1 },
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
    if (count > 0)
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

/* One value, by copying: it may lie at any address. */
static double value_at(cek__st_type type, const char *at)
{
    uint16_t half;
    float single;
    double wide;

    switch (type) {
    case CEK__ST_F64: memcpy(&wide, at, sizeof wide); return wide;
    case CEK__ST_F32: memcpy(&single, at, sizeof single); return (double)single;
    default:
        memcpy(&half, at, sizeof half);
        return (double)(type == CEK__ST_F16 ? cek__f16_value(half) : cek__bf16_value(half));
    }
}

/* Goes through a tensor's values in row-major order. */
typedef struct walk {
    const cek__st_tensor *t;
    int64_t index[CEK_RANK_MAX];
    const char *at;
} walk;

static double walk_next(walk *w)
{
    const cek__st_tensor *t = w->t;
    int64_t bytes = types[t->type].bytes;
    double value = value_at(t->type, w->at);

    if (!t->strided) {
        w->at += bytes;
        return value;
    }
    for (int i = (int)t->rank - 1; i >= 0; i--) {
        w->at += t->stride[i] * bytes;
        if (++w->index[i] < t->shape[i])
            break;
        w->at -= t->shape[i] * t->stride[i] * bytes;
        w->index[i] = 0;
    }
    return value;
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
    walk w = { .t = t, .at = t->data };

    if (st != CEK_OK)
        return st;
    if (t->type == CEK__ST_F32 && !t->strided) {
        memcpy(out, t->data, t->count * sizeof *out);
        return CEK_OK;
    }
    for (uint64_t i = 0; i < t->count; i++) {
        double value = walk_next(&w);

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
    walk w = { .t = t, .at = t->data };

    for (uint64_t i = 0; st == CEK_OK && i < t->count; i++)
        out[i] = walk_next(&w);
    return st;
}
