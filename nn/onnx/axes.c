/* axes.c - operators that give the same elements by other axes, some of them, or several inputs' (see operators.h).
 *
 * The axis that counts samples is told by where its elements lie: what stands before it in memory stays before it. */
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "nn/onnx/operators.h"

/* ---- reshape ---- */

/* What comes before the samples among x's elements; 0: x has none. */
static int64_t before_samples(const cek__dims *x)
{
    int64_t before = x->outside ? x->outside : 1;

    if (!x->samples)
        return 0;
    for (int i = 0; !(x->samples >> i & 1); i++)
        before *= x->size[i];
    return before;
}

/* Sizes as the file has them: 0 is that of x, -1 what is left, where `open` is. *of_batch: the axis of those that
 * depend on it. */
static cek_status sizes_take(const cek__onnx_call *c, const cek__fold_value *v, const cek__dims *x, cek__dims *y,
                             int *open)
{
    const bool zeros = cek__call_int(c, "allowzero", 0) != 0;

    *y = (cek__dims){ .rank = (int)v->count };
    *open = -1;
    if (v->type == CEK__ONNX_FLOAT || v->count > CEK_RANK_MAX)
        return cek__fail(CEK_UNSUPPORTED, "a shape of %llu axes, there are at most %d", (unsigned long long)v->count,
                         CEK_RANK_MAX);
    for (int i = 0; i < y->rank; i++) {
        const cek__fold_number *n = &v->numbers[i];

        y->size[i] = n->factor ? n->factor : n->constant;
        if (n->factor != 0 && (n->constant != 0 || n->factor < 0 || y->samples))
            return cek__fail(CEK_UNSUPPORTED, "axis %d depends on the number of samples, not as a multiple", i);
        y->samples |= (uint32_t)(n->factor != 0) << i;
        if (n->factor != 0)
            continue;
        if (n->constant == 0 && !zeros && i < x->rank) {
            y->size[i] = x->size[i];
            y->samples |= (x->samples >> i & 1) << i;
        } else if (n->constant == -1 && *open < 0) {
            *open = i;
            y->size[i] = 1;
        } else if (n->constant < 1) {
            return cek__fail(CEK_UNSUPPORTED, "axis %d of size %lld", i, (long long)n->constant);
        }
    }
    return CEK_OK;
}

/* How an axis of a shape may hold the samples, the likeliest first: it begins where they do; or before, with what
 * stands in front of them in one axis; or it begins there and takes in all that is behind. Where the batch is 1 each
 * may be true, and only what follows would tell. */
typedef enum fit { FIT_NONE, FIT_BEGINS, FIT_CONTAINS, FIT_SWALLOWS } fit;

/* Of axis i, which begins behind `at` elements and has `size` for each sample. */
static fit axis_fit(int64_t before, int64_t at, int64_t size, bool last)
{
    int64_t reach;

    if (at == before)
        return last && size > 1 ? FIT_SWALLOWS : FIT_BEGINS;
    if (at > before || before % at || __builtin_mul_overflow(at, size, &reach))
        return FIT_NONE;
    return reach % before == 0 ? FIT_CONTAINS : FIT_NONE;
}

/* The axis that is the batch has no number of its own (the open one), or where the file's batch is one, a
 * multiple of it. */
static void samples_place(const cek__onnx_import *import, const cek__dims *x, cek__dims *y, int open)
{
    const int64_t all = cek__dims_elements(x, 0, x->rank, 1), before = before_samples(x);
    const bool given = y->samples != 0 || before == 0;

    for (fit wanted = FIT_BEGINS; wanted <= FIT_SWALLOWS && !given && !y->samples; wanted++) {
        int64_t at = 1, others = 1;

        for (int i = 0; i < y->rank; i++)
            if (i != open && __builtin_mul_overflow(others, y->size[i], &others))
                return;
        for (int i = 0; i < y->rank && !y->samples; i++) {
            int64_t size = i == open ? all / others : y->size[i] / import->batch;
            bool may = i == open ? all % others == 0 : import->fixed && y->size[i] % import->batch == 0;

            if (may && axis_fit(before, at, size, i == y->rank - 1) == wanted) {
                y->samples = 1u << i;
                y->size[i] = i == open ? 1 : size;
            }
            if (__builtin_mul_overflow(at, i == open && size > 0 ? size : y->size[i], &at))
                return;
        }
    }
}

static cek_status open_fill(const cek__dims *x, cek__dims *y, int open)
{
    int64_t all = cek__dims_elements(x, 0, x->rank, 1), others = 1;

    for (int i = 0; i < y->rank; i++)
        if (i != open && __builtin_mul_overflow(others, y->size[i], &others))
            return cek__fail(CEK_BAD_INPUT, "its shape has too many elements");
    if (open >= 0 && (others < 1 || all % others))
        return cek__fail(CEK_UNSUPPORTED, "%lld elements for each sample do not fill axes of %lld", (long long)all,
                         (long long)others);
    if (open >= 0)
        y->size[open] = all / others;
    return CEK_OK;
}

cek_status cek__onnx_reshape(cek__onnx_call *c)
{
    cek_status st;
    const cek__fold_value *shape;
    cek__dims y;
    int x, open;

    CEK_TRY(cek__call_flow(c, 0, &x));
    CEK_TRY(cek__call_known(c, 1, &shape));
    CEK_TRY(sizes_take(c, shape, cek__call_dims(c, x), &y, &open));
    c->scalar = y.rank == 0;
    if (c->scalar)
        y = (cek__dims){ .rank = 1, .size = { 1 } };
    samples_place(c->import, cek__call_dims(c, x), &y, open);
    CEK_TRY(open_fill(cek__call_dims(c, x), &y, open));
    st = cek__view(c->graph, x, &y, &c->out[0]);
out:
    return st;
}

/* Two axes: those before `axis`, and the others. */
cek_status cek__onnx_flatten(cek__onnx_call *c)
{
    cek_status st;
    cek__dims y = { .rank = 2, .size = { 1, 1 } };
    int x, axis;
    int64_t given = cek__call_int(c, "axis", 1);

    CEK_TRY(cek__call_flow(c, 0, &x));
    if (given == cek__call_dims(c, x)->rank)
        axis = (int)given;
    else
        CEK_TRY(cek__call_axis(given, cek__call_dims(c, x)->rank, &axis));
    for (int i = 0; i < cek__call_dims(c, x)->rank; i++) {
        y.size[i >= axis] *= cek__call_dims(c, x)->size[i];
        y.samples |= (cek__call_dims(c, x)->samples >> i & 1) << (i >= axis);
    }
    st = cek__view(c->graph, x, &y, &c->out[0]);
out:
    return st;
}

cek_status cek__onnx_squeeze(cek__onnx_call *c)
{
    cek_status st;
    cek__dims dims, y = { 0 };
    int64_t list[CEK__CALL_LIST];
    uint32_t mask = 0;
    int x, count = 0;

    CEK_TRY(cek__call_flow(c, 0, &x));
    dims = *cek__call_dims(c, x);
    if (cek__call_has(c, 1)) {
        CEK_TRY(cek__call_integers(c, 1, list, &count));
        CEK_TRY(cek__call_axes(list, count, dims.rank, &mask));
    } else {
        for (int i = 0; i < dims.rank; i++) {
            bool samples = dims.samples >> i & 1;

            if (samples && c->import->fixed && dims.size[i] * c->import->batch == 1)
                CEK_FAIL(CEK_UNSUPPORTED, "axis %d, which goes where it has one element, counts samples", i);
            mask |= (uint32_t)(dims.size[i] == 1 && !samples) << i;
        }
    }
    for (int i = 0; i < dims.rank; i++) {
        if (mask >> i & 1) {
            if (dims.size[i] != 1 || dims.samples >> i & 1)
                CEK_FAIL(CEK_UNSUPPORTED, "axis %d has several elements", i);
            continue;
        }
        y.samples |= (dims.samples >> i & 1) << y.rank;
        y.size[y.rank++] = dims.size[i];
    }
    c->scalar = y.rank == 0;
    if (c->scalar)
        y = (cek__dims){ .rank = 1, .size = { 1 } };
    st = cek__view(c->graph, x, &y, &c->out[0]);
out:
    return st;
}

cek_status cek__onnx_unsqueeze(cek__onnx_call *c)
{
    cek_status st;
    cek__dims dims, y = { 0 };
    int64_t list[CEK__CALL_LIST];
    uint32_t mask;
    int x, count, from = 0;

    CEK_TRY(cek__call_flow(c, 0, &x));
    CEK_TRY(cek__call_integers(c, 1, list, &count));
    dims = *cek__call_dims(c, x);
    dims.rank = cek__call_scalar(c, 0) ? 0 : dims.rank;
    if (dims.rank + count > CEK_RANK_MAX)
        CEK_FAIL(CEK_UNSUPPORTED, "more than %d axes", CEK_RANK_MAX);
    CEK_TRY(cek__call_axes(list, count, dims.rank + count, &mask));
    for (; y.rank < dims.rank + count; y.rank++) {
        y.size[y.rank] = 1;
        if (mask >> y.rank & 1)
            continue;
        y.samples |= (dims.samples >> from & 1) << y.rank;
        y.size[y.rank] = dims.size[from++];
    }
    c->scalar = y.rank == 0;
    c->out[0] = x;
    if (!c->scalar)
        st = cek__view(c->graph, x, &y, &c->out[0]);
out:
    return st;
}

cek_status cek__onnx_transpose(cek__onnx_call *c)
{
    cek_status st;
    int64_t perm[CEK__CALL_LIST];
    int x, count, order[CEK_RANK_MAX], rank;

    CEK_TRY(cek__call_flow(c, 0, &x));
    CEK_TRY(cek__call_ints(c, "perm", perm, &count));
    rank = cek__call_dims(c, x)->rank;
    if (count >= 0 && count != rank)
        CEK_FAIL(CEK_BAD_INPUT, "an order of %d axes, there are %d", count, rank);
    for (int i = 0; i < rank; i++) {
        order[i] = rank - 1 - i;
        if (count >= 0)
            CEK_TRY(cek__call_axis(perm[i], rank, &order[i]));
    }
    st = cek__permute(c->graph, x, order, &c->out[0]);
out:
    return st;
}

/* ---- more of the same ---- */

/* y's axes by what is wanted of x's: those of samples are x's, or new ones of the batch. */
static cek_status spread_to(const cek__onnx_import *import, const cek__fold_value *v, const cek__dims *x, cek__dims *y)
{
    *y = (cek__dims){ .rank = (int)v->count > x->rank ? (int)v->count : x->rank };
    if (v->count > CEK_RANK_MAX || v->type == CEK__ONNX_FLOAT)
        return cek__fail(CEK_UNSUPPORTED, "more than %d axes", CEK_RANK_MAX);
    y->outside = x->outside;
    for (int i = 0; i < y->rank; i++) {
        int k = i - (y->rank - x->rank), n = i - (y->rank - (int)v->count);
        const cek__fold_number one = { .constant = 1 }, *to = n >= 0 ? &v->numbers[n] : &one;
        int64_t size = k >= 0 ? x->size[k] : 1;

        y->size[i] = size;
        if (k >= 0 && x->samples >> k & 1) {
            if (to->factor != size && to->constant != size * import->batch && to->constant != 1)
                return cek__fail(CEK_UNSUPPORTED, "axis %d counts samples", i);
            y->samples |= 1u << i;
        } else if (to->factor > 0 && to->constant == 0 && size == 1) {
            y->samples |= 1u << i;
            y->size[i] = to->factor;
        } else if (to->factor == 0 && (size == 1 || to->constant == 1 || to->constant == size) && to->constant > 0) {
            y->size[i] = to->constant == 1 ? size : to->constant;
        } else {
            return cek__fail(CEK_UNSUPPORTED, "axis %d of %lld elements is not spread over %lld", i, (long long)size,
                             (long long)to->constant);
        }
    }
    return CEK_OK;
}

cek_status cek__onnx_expand(cek__onnx_call *c)
{
    cek_status st;
    const cek__fold_value *shape;
    cek__dims y;
    int x;

    CEK_TRY(cek__call_flow(c, 0, &x));
    CEK_TRY(cek__call_known(c, 1, &shape));
    CEK_TRY(spread_to(c->import, shape, cek__call_dims(c, x), &y));
    c->scalar = shape->count == 0 && cek__call_scalar(c, 0);
    st = cek__expand(c->graph, x, &y, &c->out[0]);
out:
    return st;
}

/* One number, in a shape that depends on the batch or is too large to be known. */
cek_status cek__onnx_constant_of_shape(cek__onnx_call *c)
{
    cek_status st;
    const cek__onnx_attribute *a = cek__onnx_attribute_find(c->import->onnx, c->node, "value");
    const cek__dims one = { .rank = 1, .size = { 1 } };
    const cek__fold_value *shape;
    const cek__onnx_tensor *t;
    cek__dims y;
    int64_t whole = 0;
    bool integers = false;
    float value = 0;

    CEK_TRY(cek__call_known(c, 0, &shape));
    CEK_TRY(spread_to(c->import, shape, &one, &y));
    if (a != NULL && a->kind == CEK__ONNX_ATTRIBUTE_TENSOR) {
        t = &c->import->onnx->tensors[a->tensor];
        if ((t->type != CEK__ONNX_FLOAT && t->type != CEK__ONNX_INT64 && t->type != CEK__ONNX_BOOL) || t->count != 1)
            CEK_FAIL(CEK_UNSUPPORTED, "its value is not one float, int64 or bool");
        if (t->type == CEK__ONNX_FLOAT)
            memcpy(&value, t->data, sizeof value);
        else if (t->type == CEK__ONNX_BOOL)
            value = *(const uint8_t *)t->data != 0;
        else
            memcpy(&whole, t->data, sizeof whole);
        if (whole > CEK__CALL_EXACT || whole < -CEK__CALL_EXACT)
            CEK_FAIL(CEK_UNSUPPORTED, "its value is %lld, at most %d is taken", (long long)whole, CEK__CALL_EXACT);
        integers = t->type == CEK__ONNX_INT64;
    }
    CEK_TRY(cek__constant(c->graph, integers ? (double)whole : (double)value, &y, &c->out[0]));
    if (integers)
        CEK_TRY(cek__cast(c->graph, c->out[0], CEK_I32, &c->out[0]));
out:
    return st;
}

cek_status cek__onnx_repeat(cek__onnx_call *c, int x, int axis, int at, int64_t times, int *out)
{
    cek_status st;
    cek__dims all = *cek__call_dims(c, x), split = all;

    if (all.rank == CEK_RANK_MAX || all.samples >> axis & 1)
        CEK_FAIL(CEK_UNSUPPORTED, "axis %d is of samples, or one of %d", axis, CEK_RANK_MAX);
    memmove(split.size + at + 1, split.size + at, (size_t)(all.rank - at) * sizeof *split.size);
    split.rank++;
    split.size[at] = 1;
    split.samples = (all.samples & ((1u << at) - 1)) | all.samples >> at << (at + 1);
    CEK_TRY(cek__view(c->graph, x, &split, &x));
    split.size[at] = times;
    CEK_TRY(cek__expand(c->graph, x, &split, &x));
    all.size[axis] *= times;
    st = cek__view(c->graph, x, &all, out);
out:
    return st;
}

cek_status cek__onnx_tile(cek__onnx_call *c)
{
    cek_status st;
    int64_t repeats[CEK__CALL_LIST];
    int x, count;

    CEK_TRY(cek__call_flow(c, 0, &x));
    CEK_TRY(cek__call_integers(c, 1, repeats, &count));
    if (count != cek__call_dims(c, x)->rank)
        CEK_FAIL(CEK_BAD_INPUT, "%d repeats of %d axes", count, cek__call_dims(c, x)->rank);
    for (int i = 0; i < count; i++) {
        if (repeats[i] < 1 || repeats[i] > INT32_MAX)
            CEK_FAIL(CEK_UNSUPPORTED, "%lld repeats", (long long)repeats[i]);
        if (repeats[i] > 1)
            CEK_TRY(cek__onnx_repeat(c, x, i, i, repeats[i], &x));
    }
    c->out[0] = x;
out:
    return st;
}

/* ---- several ---- */

/* Where the file's batch is 1, an axis of one element beside samples is of them. */
static cek_status samples_join(cek__onnx_call *c, size_t count, int *x)
{
    cek_status st = CEK_OK;
    uint32_t samples = 0;

    for (size_t i = 0; i < count; i++)
        samples |= cek__call_dims(c, x[i])->samples;
    for (size_t i = 0; i < count && c->import->fixed && c->import->batch == 1; i++) {
        cek__dims dims = *cek__call_dims(c, x[i]);

        for (int k = 0; k < dims.rank && !dims.samples; k++)
            if (samples >> k & 1 && dims.size[k] == 1) {
                dims.samples = 1u << k;
                CEK_TRY(cek__expand(c->graph, x[i], &dims, &x[i]));
            }
    }
out:
    return st;
}

cek_status cek__onnx_concat(cek__onnx_call *c)
{
    cek_status st;
    int *x = NULL, axis;

    CEK_TRY(cek__alloc_array(c->node->inputs + 1, sizeof *x, &x));
    for (size_t i = 0; i < c->node->inputs; i++)
        CEK_TRY(cek__call_flow(c, i, &x[i]));
    if (c->node->inputs == 0 || c->node->inputs > INT32_MAX)
        CEK_FAIL(CEK_BAD_INPUT, "it has no inputs");
    CEK_TRY(cek__call_axis(cek__call_int(c, "axis", INT64_MAX), cek__call_dims(c, x[0])->rank, &axis));
    CEK_TRY(samples_join(c, c->node->inputs, x));
    st = cek__concat(c->graph, x, (int)c->node->inputs, axis, &c->out[0]);
out:
    free(x);
    return st;
}

/* ---- space and depth ---- */

static const char *const orders[] = { "DCR", "CRD", NULL };

/* [N,b,b,C,H,W] or [N,C,b,b,H,W] with each b behind its H or W. */
cek_status cek__onnx_depth_to_space(cek__onnx_call *c)
{
    cek_status st;
    const int64_t b = cek__call_int(c, "blocksize", 0);
    const int order[2][6] = { { 0, 3, 4, 1, 5, 2 }, { 0, 1, 4, 2, 5, 3 } };
    cek__dims x, six, y;
    int flow, crd;

    CEK_TRY(cek__call_word(c, "mode", orders, &crd));
    CEK_TRY(cek__call_flow(c, 0, &flow));
    x = *cek__call_dims(c, flow);
    if (x.rank != 4 || b < 1 || b > INT16_MAX || x.size[1] % (b * b))
        CEK_FAIL(CEK_BAD_INPUT, "blocks of %lld in what has %lld channels", (long long)b, (long long)x.size[1]);
    six = (cek__dims){ .rank = 6,
                       .samples = x.samples,
                       .size = { x.size[0], b, b, x.size[1] / (b * b), x.size[2], x.size[3] } };
    if (crd) {
        six.size[1] = x.size[1] / (b * b);
        six.size[3] = b;
    }
    y = (cek__dims){ .rank = 4,
                     .samples = x.samples,
                     .size = { x.size[0], x.size[1] / (b * b), x.size[2] * b, x.size[3] * b } };
    CEK_TRY(cek__view(c->graph, flow, &six, &flow));
    CEK_TRY(cek__permute(c->graph, flow, order[crd], &flow));
    st = cek__view(c->graph, flow, &y, &c->out[0]);
out:
    return st;
}

cek_status cek__onnx_space_to_depth(cek__onnx_call *c)
{
    cek_status st;
    const int64_t b = cek__call_int(c, "blocksize", 0);
    const int order[2][6] = { { 0, 3, 5, 1, 2, 4 }, { 0, 1, 3, 5, 2, 4 } };
    cek__dims x, six, y;
    int flow, crd;

    CEK_TRY(cek__call_word(c, "mode", orders, &crd));
    CEK_TRY(cek__call_flow(c, 0, &flow));
    x = *cek__call_dims(c, flow);
    if (x.rank != 4 || b < 1 || x.size[2] % b || x.size[3] % b)
        CEK_FAIL(CEK_BAD_INPUT, "blocks of %lld in an image", (long long)b);
    six = (cek__dims){ .rank = 6,
                       .samples = x.samples,
                       .size = { x.size[0], x.size[1], x.size[2] / b, b, x.size[3] / b, b } };
    y = (cek__dims){ .rank = 4,
                     .samples = x.samples,
                     .size = { x.size[0], x.size[1] * b * b, x.size[2] / b, x.size[3] / b } };
    CEK_TRY(cek__view(c->graph, flow, &six, &flow));
    CEK_TRY(cek__permute(c->graph, flow, order[crd], &flow));
    st = cek__view(c->graph, flow, &y, &c->out[0]);
out:
    return st;
}
