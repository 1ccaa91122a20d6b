/* onnx_fold_move.c - folding: the same elements under another shape, some of them, or several tensors' in one. */
#include "nn/formats/onnx_fold_inside.h"

/* Elements of the axes from `first` to before `end`. */
static uint64_t elements(const cek__fold_value *v, uint32_t first, uint32_t end)
{
    uint64_t count = 1;

    for (uint32_t i = first; i < end; i++)
        count *= (uint64_t)v->shape[i];
    return count;
}

/* All elements of the first input under another shape. */
static cek_status renamed(cek__fold_call *c, uint32_t rank, const int64_t *shape)
{
    cek_status st;

    CEK_TRY(cek__fold_make(c, c->in[0]->type, rank, shape));
    if (c->out.numbers != NULL && c->out.count != c->in[0]->count)
        return cek__fold_bad(c, "the shape that it gives has another number of elements");
    for (uint64_t i = 0; i < c->out.count; i++)
        c->out.numbers[i] = c->in[0]->numbers[i];
out:
    return st;
}

cek_status cek__fold_identity(cek__fold_call *c)
{
    return renamed(c, c->in[0]->rank, c->in[0]->shape);
}

/* Along one axis, the elements that the second input counts. */
cek_status cek__fold_gather(cek__fold_call *c)
{
    const cek__fold_value *data = c->in[0], *indices = c->in[1];
    int64_t shape[2 * CEK_RANK_MAX];
    uint32_t axis, rank = 0;
    uint64_t inner;
    cek_status st;

    CEK_TRY(cek__fold_axis(c, cek__fold_integer(c, "axis", 0), data->rank, &axis));
    if (indices->type == CEK__ONNX_FLOAT || data->rank - 1 + indices->rank > CEK_RANK_MAX)
        return cek__fold_bad(c, "its second input is no list of indices");
    if (!cek__fold_constant(indices))
        goto out;
    for (uint32_t i = 0; i < axis; i++)
        shape[rank++] = data->shape[i];
    for (uint32_t i = 0; i < indices->rank; i++)
        shape[rank++] = indices->shape[i];
    for (uint32_t i = axis + 1; i < data->rank; i++)
        shape[rank++] = data->shape[i];
    CEK_TRY(cek__fold_make(c, data->type, rank, shape));
    inner = elements(data, axis + 1, data->rank);
    for (uint64_t i = 0; i < c->out.count; i++) {
        uint64_t outer = i / inner / indices->count;
        int64_t index = indices->numbers[i / inner % indices->count].constant;

        index += index < 0 ? data->shape[axis] : 0;
        if (index < 0 || index >= data->shape[axis])
            return cek__fold_bad(c, "an index lies outside of its axis");
        c->out.numbers[i] = data->numbers[(outer * (uint64_t)data->shape[axis] + (uint64_t)index) * inner + i % inner];
    }
out:
    return st;
}

cek_status cek__fold_concat(cek__fold_call *c)
{
    const cek__fold_value *first = c->in[0];
    int64_t shape[CEK_RANK_MAX];
    uint64_t before = 0, row;
    uint32_t axis;
    cek_status st;

    CEK_TRY(cek__fold_axis(c, cek__fold_integer(c, "axis", INT64_MAX), first->rank, &axis));
    for (uint32_t i = 0; i < first->rank; i++)
        shape[i] = i == axis ? 0 : first->shape[i];
    for (size_t k = 0; k < c->inputs; k++) {
        bool same = c->in[k] != NULL && c->in[k]->rank == first->rank && c->in[k]->type == first->type;

        for (uint32_t i = 0; same && i < first->rank; i++)
            same = i == axis || c->in[k]->shape[i] == first->shape[i];
        if (!same)
            return cek__fold_bad(c, "its inputs differ beside the axis");
        shape[axis] += c->in[k]->shape[axis];
    }
    CEK_TRY(cek__fold_make(c, first->type, first->rank, shape));
    row = c->out.numbers != NULL ? elements(&c->out, axis, first->rank) : 0;
    for (size_t k = 0; row > 0 && k < c->inputs; k++) {
        uint64_t piece = elements(c->in[k], axis, first->rank);

        for (uint64_t i = 0; i < c->in[k]->count; i++)
            c->out.numbers[i / piece * row + before + i % piece] = c->in[k]->numbers[i];
        before += piece;
    }
out:
    return st;
}

/* ---- slices ---- */

typedef struct cut {
    int64_t start, step;
} cut;

/* One axis's start, step and length of what is left of `size`, as ONNX cuts. */
static int64_t cut_make(int64_t start, int64_t end, int64_t step, int64_t size, cut *out)
{
    int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;

    start += start < 0 ? size : 0;
    end += end < 0 ? size : 0;
    start = start < 0 ? 0 : start;
    start = start > high ? high : start;
    end = end < low ? low : end > high ? high : end;
    *out = (cut){ start, step };
    if (step > 0)
        return end > start ? (end - start - 1) / step + 1 : 0;
    /* counted in 64 bits without a sign: the step may be the smallest number there is */
    return start > end ? (int64_t)((uint64_t)(start - end - 1) / -(uint64_t)step) + 1 : 0;
}

/* (data, starts, ends, axes, steps), lists of one length; the last two may be left out. */
cek_status cek__fold_slice(cek__fold_call *c)
{
    const cek__fold_value *data = c->in[0], *axes = c->inputs > 3 ? c->in[3] : NULL,
                          *steps = c->inputs > 4 ? c->in[4] : NULL;
    uint64_t count = c->in[1]->count;
    int64_t shape[CEK_RANK_MAX];
    cut cuts[CEK_RANK_MAX];
    cek_status st = CEK_OK;

    for (size_t k = 1; k < c->inputs; k++) {
        if (c->in[k] != NULL && (c->in[k]->rank != 1 || c->in[k]->count != count || c->in[k]->type == CEK__ONNX_FLOAT))
            return cek__fold_bad(c, "starts, ends, axes and steps are not lists of one length");
        if (c->in[k] != NULL && !cek__fold_constant(c->in[k]))
            goto out;
    }
    for (uint32_t i = 0; i < data->rank; i++) {
        shape[i] = data->shape[i];
        cuts[i] = (cut){ 0, 1 };
    }
    for (uint64_t k = 0; k < count; k++) {
        int64_t step = steps != NULL ? steps->numbers[k].constant : 1;
        uint32_t axis;

        CEK_TRY(cek__fold_axis(c, axes != NULL ? axes->numbers[k].constant : (int64_t)k, data->rank, &axis));
        if (step == 0)
            return cek__fold_bad(c, "a step is zero");
        shape[axis] = cut_make(c->in[1]->numbers[k].constant, c->in[2]->numbers[k].constant, step, data->shape[axis],
                               &cuts[axis]);
    }
    CEK_TRY(cek__fold_make(c, data->type, data->rank, shape));
    for (uint64_t i = 0; i < c->out.count; i++) {
        uint64_t left = i, at = 0, row = 1;

        for (uint32_t k = data->rank; k-- > 0; row *= (uint64_t)data->shape[k]) {
            at += (uint64_t)(cuts[k].start + (int64_t)(left % (uint64_t)shape[k]) * cuts[k].step) * row;
            left /= (uint64_t)shape[k];
        }
        c->out.numbers[i] = data->numbers[at];
    }
out:
    return st;
}

/* ---- shapes ---- */

/* The axes of a list, as a mask over `rank`; each once. */
static cek_status axes_read(const cek__fold_call *c, const cek__fold_value *list, uint32_t rank, uint32_t *mask)
{
    cek_status st = CEK_OK;

    *mask = 0;
    for (uint64_t i = 0; i < list->count; i++) {
        uint32_t axis;

        CEK_TRY(cek__fold_axis(c, list->numbers[i].constant, rank, &axis));
        if ((*mask >> axis & 1) != 0)
            return cek__fold_bad(c, "an axis is named twice");
        *mask |= UINT32_C(1) << axis;
    }
out:
    return st;
}

cek_status cek__fold_unsqueeze(cek__fold_call *c)
{
    int64_t shape[CEK_RANK_MAX];
    uint32_t mask, from = 0;
    uint64_t rank = c->in[0]->rank + c->in[1]->count;
    cek_status st = CEK_OK;

    if (!cek__fold_constant(c->in[1]) || rank > CEK_RANK_MAX)
        return cek__fold_bad(c, "its second input is no list of axes");
    CEK_TRY(axes_read(c, c->in[1], (uint32_t)rank, &mask));
    for (uint32_t i = 0; i < rank; i++)
        shape[i] = (mask >> i & 1) != 0 ? 1 : c->in[0]->shape[from++];
    st = renamed(c, (uint32_t)rank, shape);
out:
    return st;
}

/* Without the axes that are named, or without all of one element. */
cek_status cek__fold_squeeze(cek__fold_call *c)
{
    const cek__fold_value *data = c->in[0], *axes = c->inputs > 1 ? c->in[1] : NULL;
    int64_t shape[CEK_RANK_MAX];
    uint32_t mask = 0, rank = 0;
    cek_status st = CEK_OK;

    if (axes != NULL) {
        if (!cek__fold_constant(axes))
            return cek__fold_bad(c, "its second input is no list of axes");
        CEK_TRY(axes_read(c, axes, data->rank, &mask));
    }
    for (uint32_t i = 0; i < data->rank; i++) {
        bool goes = axes != NULL ? (mask >> i & 1) != 0 : data->shape[i] == 1;

        if (goes && data->shape[i] != 1)
            return cek__fold_bad(c, "an axis that it is to take away has several elements");
        if (!goes)
            shape[rank++] = data->shape[i];
    }
    st = renamed(c, rank, shape);
out:
    return st;
}

/* A list of sizes; false where it is none, or they depend on the batch. */
static bool sizes_read(const cek__fold_value *list, int64_t shape[CEK_RANK_MAX])
{
    if (list->rank != 1 || list->count > CEK_RANK_MAX || !cek__fold_constant(list))
        return false;
    for (uint64_t i = 0; i < list->count; i++)
        shape[i] = list->numbers[i].constant;
    return true;
}

/* 0 keeps a size (unless `allowzero`), -1 is what is left. */
cek_status cek__fold_reshape(cek__fold_call *c)
{
    const cek__fold_value *data = c->in[0];
    int64_t shape[CEK_RANK_MAX], left = (int64_t)data->count;
    uint32_t rank = (uint32_t)c->in[1]->count, open = CEK_RANK_MAX;
    bool keeps = cek__fold_integer(c, "allowzero", 0) == 0;

    if (!sizes_read(c->in[1], shape) || data->count == 0)
        return CEK_OK;
    for (uint32_t i = 0; i < rank; i++) {
        if (shape[i] == 0 && keeps && i < data->rank)
            shape[i] = data->shape[i];
        if (shape[i] == -1 && open == CEK_RANK_MAX)
            open = i;
        else if (shape[i] <= 0 || left % shape[i] != 0)
            return cek__fold_bad(c, "the shape that it gives has another number of elements");
        else
            left /= shape[i];
    }
    if (open < CEK_RANK_MAX)
        shape[open] = left;
    return renamed(c, rank, shape);
}

cek_status cek__fold_expand(cek__fold_call *c)
{
    cek__fold_value wanted = { 0 };
    int64_t shape[CEK_RANK_MAX];
    uint32_t rank;
    cek_status st = CEK_OK;

    if (!sizes_read(c->in[1], wanted.shape))
        goto out;
    wanted.rank = (uint32_t)c->in[1]->count;
    if (!cek__fold_broadcast(c->in[0], &wanted, &rank, shape))
        return cek__fold_bad(c, "its input cannot be spread over that shape");
    CEK_TRY(cek__fold_make(c, c->in[0]->type, rank, shape));
    for (uint64_t i = 0; i < c->out.count; i++)
        c->out.numbers[i] = *cek__fold_at(c->in[0], rank, shape, i);
out:
    return st;
}

/* What lies below a diagonal of each matrix, or above it, is 0. */
cek_status cek__fold_trilu(cek__fold_call *c)
{
    const cek__fold_value *x = c->in[0], *k = c->inputs > 1 ? c->in[1] : NULL;
    const bool upper = cek__fold_integer(c, "upper", 1) != 0;
    int64_t diagonal = 0;
    cek_status st = CEK_OK;

    if (x->rank < 2 || (k != NULL && (k->count != 1 || k->type == CEK__ONNX_FLOAT)))
        return cek__fold_bad(c, "takes matrices, and the number of a diagonal");
    if (k != NULL && !cek__fold_constant(k))
        goto out;
    diagonal = k != NULL ? k->numbers[0].constant : 0;
    CEK_TRY(cek__fold_make(c, x->type, x->rank, x->shape));
    for (uint64_t i = 0; i < c->out.count; i++) {
        const int64_t column = (int64_t)(i % (uint64_t)x->shape[x->rank - 1]);
        const int64_t row = (int64_t)(i / (uint64_t)x->shape[x->rank - 1] % (uint64_t)x->shape[x->rank - 2]);

        if (upper ? column - row >= diagonal : column - row <= diagonal)
            c->out.numbers[i] = x->numbers[i];
    }
out:
    return st;
}
