/* part_pad.c - elements of one value at the ends of axes, or fewer elements there; each is the other's gradient.
 *
 * What only leaves out moves nothing: it lies within what is read. What adds is filled, then copied into; a gradient
 * that is added to another (fuse.h) is added in its place alone, so that many cuts of one flow cost what one does. */
#include "nn/graph/parts.h"
#include "nn/graph/physical.h"
#include "nn/graph/strides.h"

static int64_t above(int64_t n)
{
    return n > 0 ? n : 0;
}

static int64_t below(int64_t n)
{
    return n < 0 ? n : 0;
}

static cek_status pad_infer(const cek__graph *graph, const cek__part *part, cek__flow out[CEK__PART_OUTPUTS])
{
    const cek__flow *x = &graph->flows[part->input[0]];

    out[0].dims = x->dims;
    out[0].type = x->type;
    for (int i = 0; i < x->dims.rank; i++) {
        int64_t lo = part->pad.lo[i], hi = part->pad.hi[i];

        if ((lo || hi) && x->dims.samples >> i & 1)
            return cek__fail(CEK_INVALID, "axis %d counts samples, of which none are left out or added", i);
        if (x->dims.size[i] + below(lo) + below(hi) < 1)
            return cek__fail(CEK_INVALID, "axis %d: of %lld elements %lld and %lld are left out", i,
                             (long long)x->dims.size[i], (long long)-below(lo), (long long)-below(hi));
        out[0].dims.size[i] += lo + hi;
    }
    return CEK_OK;
}

cek_status cek__pad(cek__graph *graph, int x, const int64_t *lo, const int64_t *hi, double value, int *out)
{
    cek__part part = { .kind = CEK__PART_PAD, .inputs = 1, .input = { x }, .pad = { .value = value } };
    bool any = false;

    for (int i = 0; i < graph->flows[x].dims.rank; i++) {
        part.pad.lo[i] = lo[i];
        part.pad.hi[i] = hi[i];
        any |= lo[i] || hi[i];
    }
    *out = x;
    return any ? cek__graph_add(graph, &part, out) : CEK_OK;
}

cek_status cek__slice(cek__graph *graph, int x, int axis, int64_t first, int64_t count, int *out)
{
    const cek__dims *dims = &graph->flows[x].dims;
    int64_t lo[CEK_RANK_MAX] = { 0 }, hi[CEK_RANK_MAX] = { 0 };

    *out = CEK__NOTHING;
    if (axis < 0 || axis >= dims->rank || first < 0 || count < 1 || count > dims->size[axis] - first)
        return cek__fail(CEK_INVALID, "slice: %lld elements from %lld on are not there along axis %d", (long long)count,
                         (long long)first, axis);
    lo[axis] = -first;
    hi[axis] = first + count - dims->size[axis];
    return cek__pad(graph, x, lo, hi, 0, out);
}

/* The first of as many groups of `step`; what is filled up is not taken. */
cek_status cek__slice_stepped(cek__graph *graph, int x, int axis, int64_t first, int64_t count, int64_t step, int *out)
{
    cek_status st;
    cek__dims dims = graph->flows[x].dims, split;
    int64_t lo[CEK_RANK_MAX] = { 0 }, hi[CEK_RANK_MAX] = { 0 };

    if (step == 1)
        return cek__slice(graph, x, axis, first, count, out);
    *out = CEK__NOTHING;
    if (dims.rank == CEK_RANK_MAX)
        CEK_FAIL(CEK_UNSUPPORTED, "steps along one of %d axes", CEK_RANK_MAX);
    lo[axis] = -first;
    hi[axis] = first + count * step - dims.size[axis];
    CEK_TRY(cek__pad(graph, x, lo, hi, 0, &x));
    split = (cek__dims){ .rank = dims.rank + 1, .outside = dims.outside };
    for (int i = 0; i < split.rank; i++) {
        int from = i > axis ? i - 1 : i;

        split.size[i] = i == axis ? count : i == axis + 1 ? step : dims.size[from];
        split.samples |= i == axis || i == axis + 1 ? 0 : (dims.samples >> from & 1) << i;
    }
    CEK_TRY(cek__view(graph, x, &split, &x));
    CEK_TRY(cek__slice(graph, x, axis + 1, 0, 1, &x));
    dims.size[axis] = count;
    st = cek__view(graph, x, &dims, out);
out:
    return st;
}

static cek_status pad_gradient(cek__backward *to, int part, int dy)
{
    cek_status st;
    const cek__part p = to->graph->parts[part];
    int64_t lo[CEK_RANK_MAX], hi[CEK_RANK_MAX];
    int dx;

    for (int i = 0; i < CEK_RANK_MAX; i++) {
        lo[i] = -p.pad.lo[i];
        hi[i] = -p.pad.hi[i];
    }
    CEK_TRY(cek__pad(to->graph, dy, lo, hi, 0, &dx));
    return cek__contribute(to, p.input[0], dx);
out:
    return st;
}

static cek_status pad_place(cek__graph *graph, int part)
{
    cek_status st;
    const cek__part *p;
    cek__flow *y;
    bool adds = false;

    CEK_TRY(cek__want_strides(graph, part, 0));
    p = &graph->parts[part];
    y = &graph->flows[p->output[0]];
    for (int i = 0; i < y->dims.rank; i++)
        adds |= p->pad.lo[i] > 0 || p->pad.hi[i] > 0;
    y->strided = !adds;
    if (adds)
        y->image = cek__image_like(&graph->flows[p->input[0]], &y->dims);
    return CEK_OK;
out:
    return st;
}

static cek_status fill(cek__lowering *l, int part, const cek__destination *to)
{
    const cek__part *p = &l->graph->parts[part];
    const cek_pointwise_instruction code = { .code = CEK_PW_CONST, .imm = p->pad.value };
    cek_pointwise_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_POINTWISE },
        .rank = 1,
        .out_type = cek__lower_type(l, p->output[0]),
        .shape = { cek__lower_elements(l, p->output[0]) },
        .out_strides = { 1 },
        .instructions = &code,
        .instruction_count = 1,
        .instruction_size = sizeof code,
    };

    return cek__lower_emit(l, part, &desc.op, (int[CEK__SLOTS]){ [CEK_POINTWISE_OUT] = to->value }, to);
}

/* The box that both have; *from and *to: its first element in either. */
static void box_of(const cek__lowering *l, const cek__part *p, cek__box *box, int64_t *from, int64_t *to)
{
    const cek__dims *y = &l->graph->flows[p->output[0]].dims;

    *box = (cek__box){ .dims = *y };
    *from = *to = 0;
    cek__strides(l->graph, p->input[0], l->rows, box->from);
    cek__strides(l->graph, p->output[0], l->rows, box->to);
    for (int i = 0; i < y->rank; i++) {
        box->dims.size[i] -= above(p->pad.lo[i]) + above(p->pad.hi[i]);
        *from -= below(p->pad.lo[i]) * box->from[i];
        *to += above(p->pad.lo[i]) * box->to[i];
    }
}

static cek_status pad_lower(cek__lowering *l, int part)
{
    cek_status st;
    const cek__part *p = &l->graph->parts[part];
    const cek__graph *graph = l->graph;
    int64_t bytes = (int64_t)cek_dtype_bytes(cek__lower_type(l, p->output[0])), from, to;
    cek__destination all = { 0 }, inner = { 0 };
    int x = cek__lower_read(l, p->input[0]);
    cek__box box;

    if (graph->flows[p->output[0]].strided)
        return cek__lower_within(l, p->output[0], x, cek__strided_first(graph, p, l->rows) * bytes);
    box_of(l, p, &box, &from, &to);
    if (p->base) {
        all.value = cek__lower_read(l, p->base);
        cek__lower_alias(l, p->output[0], all.value);
    } else {
        CEK_TRY(cek__lower_write(l, p->output[0], CEK_POINTWISE_OUT, &all));
        CEK_TRY(fill(l, part, &all));
    }
    CEK_TRY(cek__program_within(l->program, x, (uint64_t)(from * bytes), &x));
    CEK_TRY(cek__program_within(l->program, all.value, (uint64_t)(to * bytes), &inner.value));
    return p->base ? cek__lower_box_add(l, part, &box, x, &inner) : cek__lower_box(l, part, &box, x, &inner);
out:
    return st;
}

const cek__part_class cek__part_pad = { .name = "pad",
                                        .outputs = 1,
                                        .infer = pad_infer,
                                        .gradient = pad_gradient,
                                        .place = pad_place,
                                        .types = CEK__TYPES_FOLLOW,
                                        .lower = pad_lower };
