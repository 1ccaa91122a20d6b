/* shape.c - shapes, strides and broadcasting. Pure functions. */
#include "core/tensor/shape.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

char *cek__shape_text(const cek__shape *shape, char *out)
{
    int used = sprintf(out, "[");

    for (int i = 0; i < shape->rank; i++)
        used += sprintf(out + used, "%s%" PRId64, i > 0 ? "," : "", shape->dims[i]);
    strcpy(out + used, "]");
    return out;
}

cek_status cek__shape_make(const char *what, int rank, const int64_t *dims, size_t element_bytes, cek__shape *out)
{
    cek__shape shape = { .rank = rank };
    int64_t bytes = (int64_t)element_bytes;
    bool fits = true;

    if (rank < 0 || rank > CEK_RANK_MAX)
        return cek__fail(CEK_INVALID, "%s: rank %d, 0 to %d are possible", what, rank, CEK_RANK_MAX);
    if (rank > 0 && dims == NULL)
        return cek__fail(CEK_INVALID, "%s: shape is NULL", what);
    for (int i = 0; i < rank; i++)
        shape.dims[i] = dims[i];
    *out = shape; /* `dims` may be those of *out */
    for (int i = 0; i < rank; i++) {
        if (shape.dims[i] < 1)
            return cek__fail(CEK_INVALID, "%s: shape %s: dimension %d is less than 1", what, CEK__SHAPE_TEXT_OF(out),
                             i);
        fits = fits && !__builtin_mul_overflow(bytes, shape.dims[i], &bytes);
    }
    if (!fits)
        return cek__fail(CEK_INVALID, "%s: shape %s: more elements than an address has room for", what,
                         CEK__SHAPE_TEXT_OF(out));
    return CEK_OK;
}

int64_t cek__shape_count(const cek__shape *shape)
{
    int64_t count = 1;

    for (int i = 0; i < shape->rank; i++)
        count *= shape->dims[i];
    return count;
}

bool cek__shape_equal(const cek__shape *a, const cek__shape *b)
{
    return a->rank == b->rank && memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0;
}

cek_status cek__shape_broadcast(const char *what, const cek__shape *a, const cek__shape *b, cek__shape *out)
{
    *out = (cek__shape){ .rank = a->rank > b->rank ? a->rank : b->rank };
    for (int back = 1; back <= out->rank; back++) {
        int64_t da = back <= a->rank ? a->dims[a->rank - back] : 1;
        int64_t db = back <= b->rank ? b->dims[b->rank - back] : 1;

        if (da != db && da != 1 && db != 1)
            return cek__fail(CEK_INVALID, "%s: shapes %s and %s do not fit: %" PRId64 " against %" PRId64, what,
                             CEK__SHAPE_TEXT_OF(a), CEK__SHAPE_TEXT_OF(b), da, db);
        out->dims[out->rank - back] = da != 1 ? da : db;
    }
    return CEK_OK;
}

void cek__shape_strides(const cek__shape *shape, int64_t strides[CEK_RANK_MAX])
{
    int64_t stride = 1;

    memset(strides, 0, CEK_RANK_MAX * sizeof *strides);
    for (int i = shape->rank - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= shape->dims[i];
    }
}

bool cek__shape_is_dense(const cek__shape *shape, const int64_t *strides)
{
    int64_t dense[CEK_RANK_MAX];

    cek__shape_strides(shape, dense);
    for (int i = 0; i < shape->rank; i++)
        if (shape->dims[i] != 1 && strides[i] != dense[i])
            return false;
    return true;
}

void cek__shape_collapse(cek__shape *shape, int count, int64_t strides[][CEK_RANK_MAX])
{
    int kept = 0; /* dimensions in front that are settled; the last of them may still grow */

    for (int i = 0; i < shape->rank; i++) {
        bool joins = kept > 0;

        if (shape->dims[i] == 1)
            continue;
        for (int k = 0; k < count; k++)
            joins = joins && strides[k][kept - 1] == strides[k][i] * shape->dims[i];
        kept += !joins;
        shape->dims[kept - 1] = joins ? shape->dims[kept - 1] * shape->dims[i] : shape->dims[i];
        for (int k = 0; k < count; k++)
            strides[k][kept - 1] = strides[k][i];
    }
    if (kept == 0) {
        shape->dims[kept++] = 1;
        for (int k = 0; k < count; k++)
            strides[k][0] = 1;
    }
    for (int i = kept; i < CEK_RANK_MAX; i++) {
        shape->dims[i] = 0;
        for (int k = 0; k < count; k++)
            strides[k][i] = 0;
    }
    shape->rank = kept;
}
