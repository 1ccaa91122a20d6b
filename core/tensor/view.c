/* view.c - other ways to walk the same memory: slices, dimensions turned, added and dropped. Nothing is computed or
 * copied. */
#include <inttypes.h>
#include <string.h>

#include "core/tensor/tensor.h"

/* A view that begins `first` elements of the axis later. */
static cek_status view(const cek_tensor *x, const cek__shape *shape, const int64_t *strides, int axis, int64_t first,
                       cek_tensor **out)
{
    const uint64_t skipped = first == 0 ? 0 : (uint64_t)(first * x->strides[axis]) * cek_dtype_bytes(x->type);

    return cek__tensor_view(x, shape, strides, x->offset + skipped, out);
}

/* As Python: a negative place counts from the end, and what lies outside is the end that it passed. */
static int64_t place_clip(int64_t place, int64_t size)
{
    place = place < 0 ? (place < -size ? 0 : place + size) : place;
    return place < size ? place : size;
}

cek_status cek_tensor_slice(const cek_tensor *x, int axis, int64_t start, int64_t stop, int64_t step, cek_tensor **out)
{
    static const char what[] = "cek_tensor_slice";
    cek_status st;
    cek__shape shape;
    int64_t strides[CEK_RANK_MAX], first, end;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(x);
    CEK_TRY(cek__axis_take(what, x, axis, &axis));
    if (step < 1)
        CEK_FAIL(CEK_INVALID, "%s: step %" PRId64 ": at least 1", what, step);
    shape = x->shape;
    first = place_clip(start, shape.dims[axis]);
    end = place_clip(stop, shape.dims[axis]);
    if (first >= end)
        CEK_FAIL(CEK_INVALID, "%s: %" PRId64 ":%" PRId64 " of axis %d of %s is empty; a tensor has an element", what,
                 start, stop, axis, CEK__SHAPE_TEXT_OF(&x->shape));
    memcpy(strides, x->strides, sizeof strides);
    shape.dims[axis] = (end - first - 1) / step + 1;
    if (shape.dims[axis] > 1) /* else the step leads nowhere, and may be too large for a product */
        strides[axis] *= step;
    CEK_TRY(view(x, &shape, strides, axis, first, out));
out:
    return st;
}

cek_status cek_tensor_narrow(const cek_tensor *x, int axis, int64_t start, int64_t length, cek_tensor **out)
{
    static const char what[] = "cek_tensor_narrow";
    cek_status st;
    cek__shape shape;
    int64_t size, first;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(x);
    CEK_TRY(cek__axis_take(what, x, axis, &axis));
    shape = x->shape;
    size = shape.dims[axis];
    first = start < 0 && start >= -size ? start + size : start;
    if (first < 0 || length < 1 || first > size || length > size - first)
        CEK_FAIL(CEK_INVALID, "%s: %" PRId64 " from %" PRId64 " on do not lie in axis %d of %s", what, length, start,
                 axis, CEK__SHAPE_TEXT_OF(&x->shape));
    shape.dims[axis] = length;
    CEK_TRY(view(x, &shape, x->strides, axis, first, out));
out:
    return st;
}

/* Without the axis. */
static void axis_drop(cek__shape *shape, int64_t strides[CEK_RANK_MAX], int axis)
{
    shape->rank--;
    for (int i = axis; i < shape->rank; i++) {
        shape->dims[i] = shape->dims[i + 1];
        strides[i] = strides[i + 1];
    }
    shape->dims[shape->rank] = 0;
}

cek_status cek_tensor_select(const cek_tensor *x, int axis, int64_t index, cek_tensor **out)
{
    static const char what[] = "cek_tensor_select";
    cek_status st;
    cek__shape shape;
    int64_t strides[CEK_RANK_MAX], first;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(x);
    CEK_TRY(cek__axis_take(what, x, axis, &axis));
    shape = x->shape;
    first = index < 0 ? index + shape.dims[axis] : index;
    if (first < 0 || first >= shape.dims[axis])
        CEK_FAIL(CEK_INVALID, "%s: index %" PRId64 " of axis %d of %s", what, index, axis,
                 CEK__SHAPE_TEXT_OF(&x->shape));
    memcpy(strides, x->strides, sizeof strides);
    axis_drop(&shape, strides, axis);
    CEK_TRY(view(x, &shape, strides, axis, first, out));
out:
    return st;
}

cek_status cek_tensor_squeeze(const cek_tensor *x, int axis, cek_tensor **out)
{
    static const char what[] = "cek_tensor_squeeze";
    cek_status st;
    cek__shape shape;
    int64_t strides[CEK_RANK_MAX];

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(x);
    CEK_TRY(cek__axis_take(what, x, axis, &axis));
    if (x->shape.dims[axis] != 1)
        CEK_FAIL(CEK_INVALID, "%s: axis %d of %s is not 1", what, axis, CEK__SHAPE_TEXT_OF(&x->shape));
    shape = x->shape;
    memcpy(strides, x->strides, sizeof strides);
    axis_drop(&shape, strides, axis);
    CEK_TRY(view(x, &shape, strides, axis, 0, out));
out:
    return st;
}

cek_status cek_tensor_unsqueeze(const cek_tensor *x, int axis, cek_tensor **out)
{
    static const char what[] = "cek_tensor_unsqueeze";
    cek_status st;
    cek__shape shape;
    int64_t strides[CEK_RANK_MAX] = { 0 };
    int rank, place;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(x);
    rank = x->shape.rank;
    place = axis < 0 ? axis + rank + 1 : axis;
    if (rank == CEK_RANK_MAX)
        CEK_FAIL(CEK_INVALID, "%s: %s has %d dimensions already", what, CEK__SHAPE_TEXT_OF(&x->shape), rank);
    if (place < 0 || place > rank)
        CEK_FAIL(CEK_INVALID, "%s: axis %d beside those of %s", what, axis, CEK__SHAPE_TEXT_OF(&x->shape));
    shape = (cek__shape){ .rank = rank + 1 };
    for (int i = 0; i < rank; i++) {
        shape.dims[i + (i >= place)] = x->shape.dims[i];
        strides[i + (i >= place)] = x->strides[i];
    }
    shape.dims[place] = 1;
    strides[place] = place < rank ? x->shape.dims[place] * x->strides[place] : 1;
    CEK_TRY(cek__tensor_view(x, &shape, strides, x->offset, out));
out:
    return st;
}

cek_status cek_tensor_transpose(const cek_tensor *x, int axis0, int axis1, cek_tensor **out)
{
    static const char what[] = "cek_tensor_transpose";
    cek_status st;
    cek__shape shape;
    int64_t strides[CEK_RANK_MAX];

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(x);
    CEK_TRY(cek__axis_take(what, x, axis0, &axis0));
    CEK_TRY(cek__axis_take(what, x, axis1, &axis1));
    shape = x->shape;
    memcpy(strides, x->strides, sizeof strides);
    shape.dims[axis0] = x->shape.dims[axis1];
    shape.dims[axis1] = x->shape.dims[axis0];
    strides[axis0] = x->strides[axis1];
    strides[axis1] = x->strides[axis0];
    CEK_TRY(cek__tensor_view(x, &shape, strides, x->offset, out));
out:
    return st;
}
