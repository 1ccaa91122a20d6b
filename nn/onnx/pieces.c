/* pieces.c - operators that take elements out of their input, or put more at its ends (see operators.h). */
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "nn/onnx/operators.h"

enum { PIECES = 256 }; /* cuts of one node that are put side by side */

/* ---- split ---- */

cek_status cek__onnx_split(cek__onnx_call *c)
{
    cek_status st;
    int64_t sizes[CEK__CALL_LIST], all, each, first = 0;
    int x, axis, count = (int)c->node->outputs;

    CEK_TRY(cek__call_flow(c, 0, &x));
    CEK_TRY(cek__call_axis(cek__call_int(c, "axis", 0), cek__call_dims(c, x)->rank, &axis));
    CEK_TRY(cek__call_apart(c, x, axis));
    all = cek__call_dims(c, x)->size[axis];
    if (count > CEK__CALL_OUTPUTS)
        CEK_FAIL(CEK_UNSUPPORTED, "%d outputs, there are at most %d", count, CEK__CALL_OUTPUTS);
    each = (all + count - 1) / count;
    for (int i = 0; i < count; i++)
        sizes[i] = each * (i + 1) > all ? all - each * i : each;
    if (cek__call_has(c, 1))
        CEK_TRY(cek__call_integers(c, 1, sizes, &count));
    if (count != (int)c->node->outputs)
        CEK_FAIL(CEK_BAD_INPUT, "%d sizes for %zu outputs", count, c->node->outputs);
    for (int i = 0; i < count; i++) {
        if (sizes[i] != 0) /* an empty one is given to nobody */
            CEK_TRY(cek__slice(c->graph, x, axis, first, sizes[i], &c->out[i]));
        first += sizes[i];
    }
    if (first != all)
        CEK_FAIL(CEK_BAD_INPUT, "pieces of %lld elements in all, axis %d has %lld", (long long)first, axis,
                 (long long)all);
out:
    return st;
}

/* ---- slice ---- */

/* From the last to the first: one by one. */
static cek_status reversed(cek__onnx_call *c, int x, int axis, int64_t first, int64_t count, int64_t step, int *out)
{
    cek_status st = CEK_OK;
    int one[PIECES];

    if (count > PIECES)
        CEK_FAIL(CEK_UNSUPPORTED, "%lld elements backwards, at most %d", (long long)count, PIECES);
    for (int64_t i = 0; i < count; i++)
        CEK_TRY(cek__slice(c->graph, x, axis, first + i * step, 1, &one[i]));
    st = cek__concat(c->graph, one, (int)count, axis, out);
out:
    return st;
}

static int64_t clamped(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

static cek_status axis_cut(cek__onnx_call *c, int x, int axis, int64_t start, int64_t end, int64_t step, int *out)
{
    const int64_t size = cek__call_dims(c, x)->size[axis];
    const bool samples = cek__call_dims(c, x)->samples >> axis & 1;
    int64_t count;

    *out = x;
    if (step == 0)
        return cek__fail(CEK_BAD_INPUT, "a step of 0");
    if (samples && start == 0 && step == 1 && end >= INT32_MAX)
        return CEK_OK; /* all of them */
    if (samples)
        return cek__call_apart(c, x, axis);
    start = clamped(start < 0 ? start + size : start, 0, step > 0 ? size : size - 1);
    end = clamped(end < 0 ? end + size : end, step > 0 ? 0 : -1, size);
    step = clamped(step, -size - 1, size + 1);
    count = step > 0 ? (end - start + step - 1) / step : (start - end - step - 1) / -step;
    if (count < 1)
        return cek__fail(CEK_UNSUPPORTED, "nothing is left of axis %d", axis);
    if (step < 0)
        return reversed(c, x, axis, start, count, step, out);
    return cek__slice_stepped(c->graph, x, axis, start, count, step, out);
}

cek_status cek__onnx_slice(cek__onnx_call *c)
{
    cek_status st;
    int64_t starts[CEK__CALL_LIST], ends[CEK__CALL_LIST], axes[CEK__CALL_LIST], steps[CEK__CALL_LIST];
    int x, count, counts[3], axis;

    CEK_TRY(cek__call_flow(c, 0, &x));
    CEK_TRY(cek__call_integers(c, 1, starts, &count));
    CEK_TRY(cek__call_integers(c, 2, ends, &counts[0]));
    for (int i = 0; i < count; i++) {
        axes[i] = i;
        steps[i] = 1;
    }
    counts[1] = counts[2] = count;
    if (cek__call_has(c, 3))
        CEK_TRY(cek__call_integers(c, 3, axes, &counts[1]));
    if (cek__call_has(c, 4))
        CEK_TRY(cek__call_integers(c, 4, steps, &counts[2]));
    if (counts[0] != count || counts[1] != count || counts[2] != count)
        CEK_FAIL(CEK_BAD_INPUT, "starts, ends, axes and steps are not as many");
    for (int i = 0; i < count; i++) {
        CEK_TRY(cek__call_axis(axes[i], cek__call_dims(c, x)->rank, &axis));
        CEK_TRY(axis_cut(c, x, axis, starts[i], ends[i], steps[i], &x));
    }
    c->out[0] = x;
out:
    return st;
}

/* ---- gather ---- */

/* Places may count from the end: chains compute in floats, so the end's must be one of theirs. */
static cek_status places_take(cek__onnx_call *c, size_t input, int64_t size, int *out)
{
    cek_status st;
    const cek__fold_value *known;
    cek__part part = { .kind = CEK__PART_CHAIN,
                       .inputs = 1,
                       .type = CEK_I32,
                       .chain = { 4,
                                  { { .code = CEK_PW_CONST },
                                    { .code = CEK_PW_LESS, .a = 0, .b = 1 },
                                    { .code = CEK_PW_ADD_IMM, .a = 0, .imm = (double)size },
                                    { .code = CEK_PW_SELECT, .a = 2, .b = 3, .c = 0 } } } };
    bool below = cek__call_known(c, input, &known) != CEK_OK;

    CEK_TRY(cek__call_flow(c, input, out));
    for (uint64_t i = 0; !below && i < known->count; i++)
        below = known->numbers[i].constant < 0;
    if (below && size > CEK__CALL_EXACT)
        CEK_FAIL(CEK_UNSUPPORTED, "indices that may count from the end of %lld elements, at most of %d",
                 (long long)size, CEK__CALL_EXACT);
    if (c->graph->flows[*out].type != CEK_I32)
        CEK_TRY(cek__cast(c->graph, *out, CEK_I32, out));
    part.input[0] = *out;
    if (below)
        CEK_TRY(cek__graph_add(c->graph, &part, out));
out:
    return st;
}

/* The elements of known places, each cut out; neighbours in one piece. */
static cek_status known_gather(cek__onnx_call *c, int x, int axis, const cek__fold_value *v, int *out)
{
    cek_status st = CEK_OK;
    const int64_t size = cek__call_dims(c, x)->size[axis];
    int pieces = 0, piece[PIECES];

    for (uint64_t i = 0, run; i < v->count; i += run) {
        int64_t first = v->numbers[i].constant + (v->numbers[i].constant < 0 ? size : 0);

        if (v->numbers[i].factor != 0)
            CEK_FAIL(CEK_UNSUPPORTED, "an index that depends on the number of samples");
        if (first < 0 || first >= size)
            CEK_FAIL(CEK_BAD_INPUT, "index %lld lies outside of its axis of %lld", (long long)first, (long long)size);
        for (run = 1; i + run < v->count && first + (int64_t)run < size && v->numbers[i + run].factor == 0 &&
                      v->numbers[i + run].constant == v->numbers[i].constant + (int64_t)run;)
            run++;
        if (pieces == PIECES)
            CEK_FAIL(CEK_UNSUPPORTED, "more than %d pieces", PIECES);
        CEK_TRY(cek__slice(c->graph, x, axis, first, (int64_t)run, &piece[pieces++]));
    }
    if (pieces == 0)
        CEK_FAIL(CEK_UNSUPPORTED, "no elements");
    st = cek__concat(c->graph, piece, pieces, axis, out);
out:
    return st;
}

/* The axis that was cut becomes those of the indices. */
static cek_status axis_replace(cek__onnx_call *c, int x, int axis, int rank, const int64_t *shape, int *out)
{
    const cek__dims dims = *cek__call_dims(c, x);
    cek__dims y = { .outside = dims.outside };

    if (dims.rank - 1 + rank > CEK_RANK_MAX)
        return cek__fail(CEK_UNSUPPORTED, "more than %d axes", CEK_RANK_MAX);
    for (int i = 0; i < dims.rank; i++) {
        if (i == axis) {
            for (int k = 0; k < rank; k++)
                y.size[y.rank++] = shape[k];
            continue;
        }
        y.samples |= (dims.samples >> i & 1) << y.rank;
        y.size[y.rank++] = dims.size[i];
    }
    if (y.rank == 0)
        y = (cek__dims){ .rank = 1, .size = { 1 } };
    return cek__view(c->graph, x, &y, out);
}

/* By indices that come while it runs: rows of a table, whose axis goes to the front and back. */
static cek_status table_gather(cek__onnx_call *c, int x, int axis, int index, int *out)
{
    cek_status st;
    const int rank = cek__call_dims(c, x)->rank, more = cek__call_dims(c, index)->rank;
    int order[CEK_RANK_MAX], at = 0;

    if (rank - 1 + more > CEK_RANK_MAX)
        CEK_FAIL(CEK_UNSUPPORTED, "more than %d axes", CEK_RANK_MAX);
    order[at++] = axis;
    for (int i = 0; i < rank; i++)
        if (i != axis)
            order[at++] = i;
    CEK_TRY(cek__permute(c->graph, x, order, &x));
    CEK_TRY(cek__gather(c->graph, x, index, 0, out));
    at = 0;
    for (int i = 0; i < axis; i++)
        order[at++] = more + i;
    for (int i = 0; i < more; i++)
        order[at++] = i;
    for (int i = axis; i < rank - 1; i++)
        order[at++] = more + i;
    st = cek__permute(c->graph, *out, order, out);
out:
    return st;
}

cek_status cek__onnx_gather(cek__onnx_call *c)
{
    cek_status st;
    const cek__fold_value *known;
    int x, axis, index;

    CEK_TRY(cek__call_weight(c, 0, &x));
    CEK_TRY(cek__call_axis(cek__call_int(c, "axis", 0), cek__call_dims(c, x)->rank, &axis));
    CEK_TRY(cek__call_apart(c, x, axis));
    c->scalar = cek__call_dims(c, x)->rank == 1 && cek__call_has(c, 1) && cek__call_scalar(c, 1);
    if (cek__call_has(c, 1) && cek__call_known(c, 1, &known) == CEK_OK) {
        CEK_TRY(known_gather(c, x, axis, known, &x));
        return axis_replace(c, x, axis, (int)known->rank, known->shape, &c->out[0]);
    }
    CEK_TRY(places_take(c, 1, cek__call_dims(c, x)->size[axis], &index));
    CEK_TRY(table_gather(c, x, axis, index, &c->out[0]));
    if (cek__call_scalar(c, 1))
        st = axis_replace(c, c->out[0], axis, 0, NULL, &c->out[0]);
out:
    return st;
}

/* Of rows that one number each names. */
cek_status cek__onnx_gather_nd(cek__onnx_call *c)
{
    cek_status st;
    const int64_t batch = cek__call_int(c, "batch_dims", 0);
    const cek__dims *dims;
    cek__dims names;
    int x, index, named;

    CEK_TRY(cek__call_weight(c, 0, &x));
    CEK_TRY(cek__call_flow(c, 1, &index));
    dims = cek__call_dims(c, index);
    named = dims->rank;
    if (dims->size[dims->rank - 1] != 1 || dims->samples >> (dims->rank - 1) & 1)
        CEK_FAIL(CEK_UNSUPPORTED, "elements that several numbers name");
    if (batch < 0 || batch >= dims->rank || batch >= cek__call_dims(c, x)->rank)
        CEK_FAIL(CEK_BAD_INPUT, "batch_dims %lld", (long long)batch);
    CEK_TRY(places_take(c, 1, cek__call_dims(c, x)->size[batch], &index));
    dims = cek__call_dims(c, index);
    cek__dims_without(dims, 1u << (dims->rank - 1), &names);
    CEK_TRY(cek__view(c->graph, index, &names, &index));
    CEK_TRY(cek__gather(c->graph, x, index, (int)batch, &c->out[0]));
    if (named == 1) { /* one row, without an axis of rows */
        c->scalar = cek__call_dims(c, x)->rank == 1;
        st = axis_replace(c, c->out[0], 0, 0, NULL, &c->out[0]);
    }
out:
    return st;
}

/* Along an axis, the element that the index at the same place names: rows of as many tables as there are
 * places beside it. */
cek_status cek__onnx_gather_elements(cek__onnx_call *c)
{
    cek_status st;
    int x, index, axis, rank, order[CEK_RANK_MAX], back[CEK_RANK_MAX];

    CEK_TRY(cek__call_weight(c, 0, &x));
    rank = cek__call_dims(c, x)->rank;
    CEK_TRY(cek__call_axis(cek__call_int(c, "axis", 0), rank, &axis));
    CEK_TRY(places_take(c, 1, cek__call_dims(c, x)->size[axis], &index));
    if (cek__call_dims(c, index)->rank != rank)
        CEK_FAIL(CEK_BAD_INPUT, "indices of %d axes of what has %d", cek__call_dims(c, index)->rank, rank);
    for (int i = 0; i < rank; i++) {
        const int64_t size = cek__call_dims(c, index)->size[i];

        order[i] = i < axis ? i : i < rank - 1 ? i + 1 : axis;
        back[i] = i < axis ? i : i == axis ? rank - 1 : i - 1;
        if (i != axis && size < cek__call_dims(c, x)->size[i])
            CEK_TRY(cek__slice(c->graph, x, i, 0, size, &x));
    }
    CEK_TRY(cek__permute(c->graph, x, order, &x));
    CEK_TRY(cek__permute(c->graph, index, order, &index));
    CEK_TRY(cek__gather(c->graph, x, index, rank - 1, &x));
    st = cek__permute(c->graph, x, back, &c->out[0]);
out:
    return st;
}

/* ---- triangles ---- */

/* What lies below a diagonal of each matrix, or above it, is 0. */
cek_status cek__onnx_trilu(cek__onnx_call *c)
{
    cek_status st;
    const bool upper = cek__call_int(c, "upper", 1) != 0;
    cek__part part = { .kind = CEK__PART_CHAIN,
                       .inputs = 2,
                       .chain = { 2,
                                  { { .code = CEK_PW_CONST }, { .code = CEK_PW_SELECT, .a = 1, .b = 0, .c = 2 } } } };
    cek__dims dims;
    int64_t list[CEK__CALL_LIST] = { 0 }, shape[2], count;
    float *kept = NULL;
    int one;

    CEK_TRY(cek__call_flow(c, 0, &part.input[0]));
    dims = *cek__call_dims(c, part.input[0]);
    part.type = c->graph->flows[part.input[0]].type;
    if (dims.rank < 2 || dims.samples >> (dims.rank - 2))
        CEK_FAIL(CEK_UNSUPPORTED, "of what are no matrices of each sample");
    if (cek__call_has(c, 1)) {
        CEK_TRY(cek__call_integers(c, 1, list, &one));
        if (one != 1)
            CEK_FAIL(CEK_BAD_INPUT, "%d diagonals", one);
    }
    memcpy(shape, dims.size + dims.rank - 2, sizeof shape);
    if (__builtin_mul_overflow(shape[0], shape[1], &count))
        CEK_FAIL(CEK_UNSUPPORTED, "matrices of %lld by %lld", (long long)shape[0], (long long)shape[1]);
    CEK_TRY(cek__alloc_array((size_t)count, sizeof *kept, &kept));
    for (int64_t i = 0; i < count; i++) {
        const int64_t above = i % shape[1] - i / shape[1];

        kept[i] = upper ? above >= *list : above <= *list;
    }
    CEK_TRY(cek__layer_constant(&c->layer, 2, shape, kept, &part.input[1]));
    st = cek__graph_add(c->graph, &part, &c->out[0]);
out:
    free(kept);
    return st;
}

/* ---- pad ---- */

enum { CONSTANT, REFLECT, EDGE, WRAP };

/* Which element stands `before` the first of an axis of `size`; -1: it is none of its own. */
static int64_t reflected(int mode, int64_t before, int64_t size)
{
    if (mode == EDGE)
        return 0;
    if (mode == REFLECT)
        return before < size ? before : -1;
    return before <= size ? size - before : -1; /* wrap */
}

static cek_status axis_mirror(cek__onnx_call *c, int x, int axis, int64_t lo, int64_t hi, int mode, int *out)
{
    cek_status st = CEK_OK;
    const int64_t size = cek__call_dims(c, x)->size[axis];
    int piece[PIECES], count = 0;

    if (lo < 0 || hi < 0 || lo + hi >= PIECES || cek__call_dims(c, x)->samples >> axis & 1)
        CEK_FAIL(CEK_UNSUPPORTED, "axis %d by %lld and %lld elements of its own", axis, (long long)lo, (long long)hi);
    for (int64_t i = lo; i > 0; i--) {
        int64_t at = reflected(mode, i, size);

        CEK_TRY(cek__slice(c->graph, x, axis, at, 1, &piece[count++]));
    }
    piece[count++] = x;
    for (int64_t i = 1; i <= hi; i++) {
        int64_t at = reflected(mode, i, size);

        CEK_TRY(cek__slice(c->graph, x, axis, at < 0 ? -1 : size - 1 - at, 1, &piece[count++]));
    }
    st = cek__concat(c->graph, piece, count, axis, out);
out:
    return st;
}

cek_status cek__onnx_pad(cek__onnx_call *c)
{
    cek_status st;
    static const char *const modes[] = { "constant", "reflect", "edge", "wrap", NULL };
    int64_t pads[CEK__CALL_LIST], axes[CEK__CALL_LIST], lo[CEK_RANK_MAX] = { 0 }, hi[CEK_RANK_MAX] = { 0 };
    int x, rank, count, named, mode;
    double value = 0;
    bool known = true;

    CEK_TRY(cek__call_flow(c, 0, &x));
    CEK_TRY(cek__call_word(c, "mode", modes, &mode));
    rank = named = cek__call_dims(c, x)->rank;
    CEK_TRY(cek__call_integers(c, 1, pads, &count));
    if (cek__call_has(c, 2))
        CEK_TRY(cek__call_number(c, 2, &value, &known));
    for (int i = 0; i < rank; i++)
        axes[i] = i;
    if (cek__call_has(c, 3))
        CEK_TRY(cek__call_integers(c, 3, axes, &named));
    if (!known || count != 2 * named)
        CEK_FAIL(CEK_UNSUPPORTED, "%d numbers for %d axes, or a value that is not known", count, named);
    for (int i = 0; i < named; i++) {
        int axis;

        CEK_TRY(cek__call_axis(axes[i], rank, &axis));
        if (pads[i] > INT32_MAX || pads[named + i] > INT32_MAX || pads[i] < INT32_MIN || pads[named + i] < INT32_MIN)
            CEK_FAIL(CEK_UNSUPPORTED, "axis %d by more than %d elements", axis, INT32_MAX);
        lo[axis] = pads[i];
        hi[axis] = pads[named + i];
    }
    if (mode == CONSTANT)
        return cek__pad(c->graph, x, lo, hi, value, &c->out[0]);
    for (int i = 0; i < rank; i++)
        if (lo[i] || hi[i])
            CEK_TRY(axis_mirror(c, x, i, lo[i], hi[i], mode, &x));
    c->out[0] = x;
out:
    return st;
}
