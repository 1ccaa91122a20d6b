/* part_concat.c - flows one behind the other along an axis: each is copied to its place. */
#include "nn/graph/parts.h"
#include "nn/graph/physical.h"
#include "nn/graph/strides.h"

static cek_status concat_infer(const cek__graph *graph, const cek__part *part, cek__flow out[CEK__PART_OUTPUTS])
{
    const cek__flow *first = &graph->flows[part->input[0]];

    out[0].dims = first->dims;
    out[0].type = first->type;
    if (part->axis < 0 || part->axis >= first->dims.rank)
        return cek__fail(CEK_INVALID, "there is no axis %d", part->axis);
    if (first->dims.samples >> part->axis & 1)
        return cek__fail(CEK_INVALID, "axis %d counts samples, to which none are added", part->axis);
    for (int k = 1; k < part->inputs; k++) {
        cek__dims dims = graph->flows[part->input[k]].dims;
        int64_t size = dims.size[part->axis];

        dims.size[part->axis] = first->dims.size[part->axis];
        if (!cek__dims_equal(&dims, &first->dims) || graph->flows[part->input[k]].type != first->type)
            return cek__fail(CEK_INVALID, "input %d differs from the first in type or along another axis than %d", k,
                             part->axis);
        out[0].dims.size[part->axis] += size;
    }
    return CEK_OK;
}

cek_status cek__concat(cek__graph *graph, const int *x, int count, int axis, int *out)
{
    cek_status st;
    cek__part part = { .kind = CEK__PART_CONCAT, .axis = axis };

    *out = x[0];
    for (int i = 1; i < count;) { /* what there is so far, and as many as go beside it */
        part.input[0] = *out;
        for (part.inputs = 1; i < count && part.inputs < CEK__PART_INPUTS; i++)
            part.input[part.inputs++] = x[i];
        CEK_TRY(cek__graph_add(graph, &part, out));
    }
    return CEK_OK;
out:
    return st;
}

static cek_status concat_gradient(cek__backward *to, int part, int dy)
{
    cek_status st;
    const cek__part p = to->graph->parts[part];
    int64_t first = 0;

    for (int k = 0; k < p.inputs; k++) {
        int64_t size = to->graph->flows[p.input[k]].dims.size[p.axis];
        int dx;

        if (to->graph->flows[p.input[k]].needs_gradient) {
            CEK_TRY(cek__slice(to->graph, dy, p.axis, first, size, &dx));
            CEK_TRY(cek__contribute(to, p.input[k], dx));
        }
        first += size;
    }
    return CEK_OK;
out:
    return st;
}

static cek_status concat_place(cek__graph *graph, int part)
{
    cek_status st = CEK_OK;
    const cek__part p = graph->parts[part];
    cek__image image = { 0, 0 };

    for (int k = 0; k < p.inputs; k++) {
        CEK_TRY(cek__want_strides(graph, part, k));
        if (image.channels == 0)
            image = cek__image_like(&graph->flows[graph->parts[part].input[k]], &graph->flows[p.output[0]].dims);
    }
    graph->flows[p.output[0]].image = image;
out:
    return st;
}

static cek_status concat_lower(cek__lowering *l, int part)
{
    cek_status st;
    const cek__part *p = &l->graph->parts[part];
    int64_t bytes = (int64_t)cek_dtype_bytes(cek__lower_type(l, p->output[0])), first = 0;
    cek__destination all = { 0 };

    CEK_TRY(cek__lower_write(l, p->output[0], CEK_COPY_Y, &all));
    for (int k = 0; k < p->inputs; k++) {
        cek__box box = { .dims = l->graph->flows[p->input[k]].dims };
        cek__destination place = { 0 };

        cek__strides(l->graph, p->input[k], l->rows, box.from);
        cek__strides(l->graph, p->output[0], l->rows, box.to);
        CEK_TRY(cek__program_within(l->program, all.value, (uint64_t)(first * box.to[p->axis] * bytes), &place.value));
        CEK_TRY(cek__lower_box(l, part, &box, cek__lower_read(l, p->input[k]), &place));
        first += box.dims.size[p->axis];
    }
    return CEK_OK;
out:
    return st;
}

const cek__part_class cek__part_concat = { .name = "concat",
                                           .outputs = 1,
                                           .infer = concat_infer,
                                           .gradient = concat_gradient,
                                           .place = concat_place,
                                           .types = CEK__TYPES_FOLLOW,
                                           .lower = concat_lower };
