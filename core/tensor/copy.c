/* copy.c - elements moved within a device and between devices: packed, converted, permuted, joined, assigned.
 *
 * All of it is the copy of plugin.h, which reads and writes through strides; where both sides are dense and of one
 * type, the queue's own copy. */
#include "core/tensor/copy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/device/call.h"
#include "core/device/stream.h"
#include "core/tensor/eager.h"

cek_status cek__copy_run(const char *what, cek_device *device, const cek__shape *shape, const cek__lane *from,
                         const cek__lane *to)
{
    cek__shape over = *shape;
    int64_t strides[2][CEK_RANK_MAX];
    const cek_ref operands[] = { [CEK_COPY_X] = from->ref, [CEK_COPY_Y] = to->ref };
    cek_copy_desc desc = { .op = { .size = sizeof desc,
                                   .kind = CEK_OP_COPY,
                                   .operands = CEK_BIT(CEK_COPY_X) | CEK_BIT(CEK_COPY_Y),
                                   .align = cek__lanes_align(2, (const cek__lane[]){ *from, *to }) },
                           .x_type = from->type,
                           .y_type = to->type };

    memcpy(strides[0], from->strides, sizeof strides[0]);
    memcpy(strides[1], to->strides, sizeof strides[1]);
    cek__shape_collapse(&over, 2, strides);
    desc.rank = (uint32_t)over.rank;
    for (int i = 0; i < over.rank; i++)
        desc.shape[i] = (uint64_t)over.dims[i];
    memcpy(desc.x_strides, strides[0], sizeof strides[0]);
    memcpy(desc.y_strides, strides[1], sizeof strides[1]);
    return cek__eager_run(what, device, &desc.op, operands, 2);
}

/* ---- within a device ---- */

static cek_status bytes_copy(const char *what, const cek_tensor *src, const cek_tensor *dst)
{
    cek_status st;
    cek_stream *stream;

    CEK_TRY(cek__device_order_take(src->device, &stream));
    st = cek_stream_copy(stream, cek_tensor_ref(dst), stream, cek_tensor_ref(src), cek_tensor_bytes(src));
    cek__device_turn_give(src->device);
    if (st != CEK_OK)
        cek__fail_prefix(st, "%s", what);
out:
    return st;
}

cek_status cek__tensor_copied(const char *what, const cek_tensor *x, const cek__shape *shape, cek_tensor **out)
{
    cek_status st;
    cek_tensor *y = NULL;
    cek__lane from, to;

    *out = NULL;
    CEK_TRY(cek__tensor_new(what, x->device, x->type, shape, &y));
    if (cek_tensor_is_contiguous(x)) {
        CEK_TRY(bytes_copy(what, x, y));
    } else {
        from = cek__lane_of(x, &x->shape);
        to = (cek__lane){ .ref = cek_tensor_ref(y), .type = y->type };
        cek__shape_strides(&x->shape, to.strides);
        CEK_TRY(cek__copy_run(what, x->device, &x->shape, &from, &to));
    }
    *out = y;
    return CEK_OK;
out:
    cek_tensor_free(y);
    return st;
}

cek_status cek__tensor_packed(const char *what, const cek_tensor *x, cek_tensor **out)
{
    if (cek_tensor_is_contiguous(x) && cek_tensor_ref(x).offset % CEK_ALIGNMENT == 0)
        return cek__tensor_view(x, &x->shape, x->strides, x->offset, out);
    return cek__tensor_copied(what, x, &x->shape, out);
}

cek_status cek_tensor_contiguous(const cek_tensor *x, cek_tensor **out)
{
    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(x);
    if (cek_tensor_is_contiguous(x))
        return cek__tensor_view(x, &x->shape, x->strides, x->offset, out);
    return cek__tensor_copied("cek_tensor_contiguous", x, &x->shape, out);
}

cek_status cek_tensor_cast(const cek_tensor *x, cek_dtype type, cek_tensor **out)
{
    cek_status st;
    cek_tensor *y = NULL;
    cek__lane from, to;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(x);
    if (type == x->type)
        return cek__tensor_copied("cek_tensor_cast", x, &x->shape, out);
    CEK_TRY(cek__tensor_new("cek_tensor_cast", x->device, type, &x->shape, &y));
    from = cek__lane_of(x, &x->shape);
    to = cek__lane_of(y, &x->shape);
    CEK_TRY(cek__copy_run("cek_tensor_cast", x->device, &x->shape, &from, &to));
    *out = y;
    return CEK_OK;
out:
    cek_tensor_free(y);
    return st;
}

cek_status cek_tensor_permute(const cek_tensor *x, const int *axes, cek_tensor **out)
{
    cek_status st;
    cek_tensor *view = NULL;
    cek__shape shape = { 0 };
    int64_t strides[CEK_RANK_MAX] = { 0 };
    unsigned seen = 0;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(x);
    shape.rank = x->shape.rank;
    if (shape.rank > 0)
        CEK__NOT_NULL(axes);
    for (int i = 0; i < shape.rank; i++) {
        if (axes[i] < 0 || axes[i] >= shape.rank || (seen >> axes[i] & 1) != 0)
            CEK_FAIL(CEK_INVALID, "cek_tensor_permute: axis %d at place %d is no permutation of 0 to %d", axes[i], i,
                     shape.rank - 1);
        seen |= 1u << axes[i];
        shape.dims[i] = x->shape.dims[axes[i]];
        strides[i] = x->strides[axes[i]];
    }
    CEK_TRY(cek__tensor_view(x, &shape, strides, x->offset, &view));
    CEK_TRY(cek__tensor_copied("cek_tensor_permute", view, &shape, out));
out:
    cek_tensor_free(view);
    return st;
}

/* The dimension written as -1 from the others. */
static cek_status dims_complete(const cek_tensor *x, int rank, const int64_t *given, int64_t dims[CEK_RANK_MAX])
{
    int64_t known = 1, count = cek_tensor_count(x);
    int open = -1;

    if (rank < 0 || rank > CEK_RANK_MAX)
        return CEK_OK; /* cek__shape_make refuses it */
    if (rank > 0 && given == NULL)
        return cek__fail(CEK_INVALID, "cek_tensor_reshape: shape is NULL");
    for (int i = 0; i < rank; i++) {
        dims[i] = given[i];
        if (given[i] == -1 && open >= 0)
            return cek__fail(CEK_INVALID, "cek_tensor_reshape: dimensions %d and %d are both -1", open, i);
        if (given[i] == -1)
            open = i;
        else if (given[i] < 1)
            return cek__fail(CEK_INVALID, "cek_tensor_reshape: dimension %d is %" PRId64 ": at least 1, or one -1", i,
                             given[i]);
        else if (__builtin_mul_overflow(known, given[i], &known))
            return cek__fail(CEK_INVALID, "cek_tensor_reshape: more elements than an address has room for");
    }
    if (open >= 0 && count % known != 0)
        return cek__fail(CEK_INVALID, "cek_tensor_reshape: %" PRId64 " elements of %s cannot be divided by %" PRId64,
                         count, CEK__SHAPE_TEXT_OF(&x->shape), known);
    if (open >= 0)
        dims[open] = count / known;
    return CEK_OK;
}

cek_status cek_tensor_reshape(const cek_tensor *x, int rank, const int64_t *shape, cek_tensor **out)
{
    cek_status st;
    int64_t dims[CEK_RANK_MAX] = { 0 };
    cek__shape checked;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(x);
    CEK_TRY(dims_complete(x, rank, shape, dims));
    CEK_TRY(cek__shape_make("cek_tensor_reshape", rank, dims, cek_dtype_bytes(x->type), &checked));
    if (cek__shape_count(&checked) != cek_tensor_count(x))
        CEK_FAIL(CEK_INVALID, "cek_tensor_reshape: shapes %s and %s have different numbers of elements",
                 CEK__SHAPE_TEXT_OF(&x->shape), CEK__SHAPE_TEXT_OF(&checked));
    CEK_TRY(cek__tensor_copied("cek_tensor_reshape", x, &checked, out));
out:
    return st;
}

/* ---- into a place ---- */

cek_status cek_tensor_assign(cek_tensor *dst, const cek_tensor *src)
{
    static const char what[] = "cek_tensor_assign";
    cek_status st;
    cek_tensor *apart = NULL;
    cek__shape shape;
    cek__lane from, to;

    CEK__NOT_NULL(dst);
    CEK__NOT_NULL(src);
    if (dst->device != src->device)
        CEK_FAIL(CEK_INVALID,
                 "%s: tensors on different devices: dst is on %s, src on %s; move one with "
                 "cek_tensor_to",
                 what, dst->device->name, src->device->name);
    if (cek__storage_is_read_only(dst->storage))
        CEK_FAIL(CEK_INVALID, "%s: the memory of dst is another's and may only be read", what);
    CEK_TRY(cek__shape_broadcast(what, &dst->shape, &src->shape, &shape));
    if (!cek__shape_equal(&shape, &dst->shape))
        CEK_FAIL(CEK_INVALID, "%s: shape %s of src does not stretch to %s of dst", what,
                 CEK__SHAPE_TEXT_OF(&src->shape), CEK__SHAPE_TEXT_OF(&dst->shape));
    if (cek__storages_may_meet(dst->storage, src->storage)) {
        CEK_TRY(cek__tensor_copied(what, src, &src->shape, &apart));
        src = apart;
    }
    from = cek__lane_of(src, &dst->shape);
    to = cek__lane_of(dst, &dst->shape);
    CEK_TRY(cek__copy_run(what, dst->device, &dst->shape, &from, &to));
out:
    cek_tensor_free(apart);
    return st;
}

/* All of one rank, type and device, and of one shape but for the axis; *shape is that of the whole. */
static cek_status parts_check(const char *what, int count, const cek_tensor *const *parts, int axis, cek__shape *shape)
{
    cek_status st;
    const cek_tensor *first = parts[0];

    *shape = first->shape;
    for (int i = 1; i < count; i++) {
        char name[32];
        cek__shape other = parts[i]->shape;

        snprintf(name, sizeof name, "parts[%d]", i);
        CEK_TRY(cek__tensors_meet(what, 2, (const char *const[]){ "parts[0]", name },
                                  (const cek_tensor *const[]){ first, parts[i] }));
        if (other.rank == first->shape.rank)
            other.dims[axis] = first->shape.dims[axis];
        if (!cek__shape_equal(&other, &first->shape))
            CEK_FAIL(CEK_INVALID, "%s: shapes %s and %s differ beside axis %d", what, CEK__SHAPE_TEXT_OF(&first->shape),
                     CEK__SHAPE_TEXT_OF(&parts[i]->shape), axis);
        if (__builtin_add_overflow(shape->dims[axis], parts[i]->shape.dims[axis], &shape->dims[axis]))
            CEK_FAIL(CEK_INVALID, "%s: more elements than an address has room for", what);
    }
    CEK_TRY(cek__shape_make(what, shape->rank, shape->dims, cek_dtype_bytes(first->type), shape));
out:
    return st;
}

static cek_status join(const char *what, int count, const cek_tensor *const *parts, int axis, cek_tensor **out)
{
    cek_status st;
    cek_tensor *y = NULL;
    cek__shape shape;
    cek__lane from, to;

    CEK_TRY(cek__axis_take(what, parts[0], axis, &axis));
    CEK_TRY(parts_check(what, count, parts, axis, &shape));
    CEK_TRY(cek__tensor_new(what, parts[0]->device, parts[0]->type, &shape, &y));
    to = cek__lane_of(y, &shape);
    for (int i = 0; i < count; i++) {
        from = cek__lane_of(parts[i], &parts[i]->shape);
        CEK_TRY(cek__copy_run(what, y->device, &parts[i]->shape, &from, &to));
        to.ref.offset += (uint64_t)(parts[i]->shape.dims[axis] * y->strides[axis]) * cek_dtype_bytes(y->type);
    }
    *out = y;
    return CEK_OK;
out:
    cek_tensor_free(y);
    return st;
}

static cek_status parts_given(const char *what, int count, const cek_tensor *const *parts)
{
    if (count < 1)
        return cek__fail(CEK_INVALID, "%s: %d tensors", what, count);
    for (int i = 0; i < count; i++)
        if (parts[i] == NULL)
            return cek__fail(CEK_INVALID, "%s: parts[%d] is NULL", what, i);
    return CEK_OK;
}

cek_status cek_tensor_cat(int count, const cek_tensor *const *parts, int axis, cek_tensor **out)
{
    cek_status st;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(parts);
    CEK_TRY(parts_given("cek_tensor_cat", count, parts));
    CEK_TRY(join("cek_tensor_cat", count, parts, axis, out));
out:
    return st;
}

cek_status cek_tensor_stack(int count, const cek_tensor *const *parts, int axis, cek_tensor **out)
{
    static const char what[] = "cek_tensor_stack";
    cek_status st;
    cek_tensor **views = NULL;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(parts);
    CEK_TRY(parts_given(what, count, parts));
    for (int i = 1; i < count; i++)
        if (!cek__shape_equal(&parts[i]->shape, &parts[0]->shape))
            CEK_FAIL(CEK_INVALID, "%s: shapes %s and %s differ", what, CEK__SHAPE_TEXT_OF(&parts[0]->shape),
                     CEK__SHAPE_TEXT_OF(&parts[i]->shape));
    CEK_TRY(cek__calloc((size_t)count, sizeof *views, &views));
    for (int i = 0; i < count; i++) {
        st = cek_tensor_unsqueeze(parts[i], axis, &views[i]);
        if (st != CEK_OK) {
            cek__fail_prefix(st, "%s", what);
            goto out;
        }
    }
    CEK_TRY(join(what, count, (const cek_tensor *const *)views, axis, out));
out:
    for (int i = 0; views != NULL && i < count; i++)
        cek_tensor_free(views[i]);
    free(views);
    return st;
}

/* ---- between devices ---- */

/* Both default streams, taken in the order of their addresses, so that two copies crossing each other cannot wait
 * for one another. The destination is waited for as well: `src` may be freed or overwritten when this returns, unless a
 * device was lost on the way that may still reach either's memory: *reached. */
static cek_status copy_across(const cek_tensor *src, cek_tensor *dst, bool *reached)
{
    cek_status st;
    bool src_first = (uintptr_t)src->device < (uintptr_t)dst->device;
    cek_device *outer = src_first ? src->device : dst->device, *inner = src_first ? dst->device : src->device;
    cek_stream *outer_stream, *inner_stream, *from, *to;

    *reached = false;
    st = cek__device_order_take(outer, &outer_stream);
    if (st != CEK_OK)
        return st;
    CEK_TRY(cek__device_order_take(inner, &inner_stream));
    from = src_first ? outer_stream : inner_stream;
    to = src_first ? inner_stream : outer_stream;
    st = cek_stream_copy(to, cek_tensor_ref(dst), from, cek_tensor_ref(src), cek_tensor_bytes(src));
    if (st == CEK_OK)
        st = cek_stream_sync(to, CEK_FOREVER);
    if (st != CEK_OK)
        *reached = !(cek__stream_quiesce(from) & cek__stream_quiesce(to));
    cek__device_turn_give(inner);
out:
    cek__device_turn_give(outer);
    return st;
}

cek_status cek_tensor_to(const cek_tensor *src, cek_device *device, cek_tensor **out)
{
    static const char what[] = "cek_tensor_to";
    cek_status st;
    cek_tensor *packed = NULL, *copy = NULL;
    bool reached;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(src);
    CEK__NOT_NULL(device);
    if (device == src->device)
        return cek__tensor_copied(what, src, &src->shape, out);
    CEK_TRY(cek__tensor_new(what, device, src->type, &src->shape, &copy));
    CEK_TRY(cek_tensor_contiguous(src, &packed));
    st = copy_across(packed, copy, &reached);
    if (st != CEK_OK) {
        cek__fail_prefix(st, "%s: from %s to %s", what, src->device->name, device->name);
        if (reached) { /* neither memory is anybody's again, and no engine gives it back */
            cek__abandon(packed);
            cek__abandon(copy);
            return st;
        }
        goto out;
    }
    cek_tensor_free(packed);
    *out = copy;
    return CEK_OK;
out:
    cek_tensor_free(packed);
    cek_tensor_free(copy);
    return st;
}
