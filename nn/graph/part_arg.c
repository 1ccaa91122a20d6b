/* part_arg.c - where along an axis the largest or the smallest element lies, as a whole number: of equal ones the
 * first. It has no gradient. */
#include "nn/graph/parts.h"
#include "nn/graph/physical.h"
#include "nn/graph/strides.h"

static cek_status arg_infer(const cek__graph *graph, const cek__part *part, cek__flow out[CEK__PART_OUTPUTS])
{
    const cek__dims *x = &graph->flows[part->input[0]].dims;

    if (part->arg.axis < 0 || part->arg.axis >= x->rank)
        return cek__fail(CEK_INVALID, "there is no axis %d", part->arg.axis);
    if (x->samples >> part->arg.axis & 1)
        return cek__fail(CEK_INVALID, "would mix samples");
    cek__dims_without(x, 1u << part->arg.axis, &out[0].dims);
    out[0].type = CEK_I32;
    return CEK_OK;
}

cek_status cek__arg(cek__graph *graph, int x, uint32_t function, int axis, int *out)
{
    cek__part part = {
        .kind = CEK__PART_ARG, .inputs = 1, .input = { x }, .arg = { .function = function, .axis = axis }
    };

    return cek__graph_add(graph, &part, out);
}

static cek_status arg_lower(cek__lowering *l, int part)
{
    cek_status st;
    const cek__part *p = &l->graph->parts[part];
    const cek__dims *x = &l->graph->flows[p->input[0]].dims;
    cek__destination to = { 0 };
    cek_arg_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_ARG },
        .function = p->arg.function,
        .axis = (uint32_t)p->arg.axis,
        .rank = (uint32_t)x->rank,
        .type = cek__lower_type(l, p->input[0]),
    };

    cek__lower_shape(l, x, desc.shape);
    cek__strides(l->graph, p->input[0], l->rows, desc.x_strides);
    CEK_TRY(cek__lower_write(l, p->output[0], CEK_ARG_Y, &to));
    return cek__lower_emit(l, part, &desc.op,
                           (int[CEK__SLOTS]){ [CEK_ARG_X] = cek__lower_read(l, p->input[0]), [CEK_ARG_Y] = to.value },
                           &to);
out:
    return st;
}

const cek__part_class cek__part_arg = { .name = "arg",
                                        .outputs = 1,
                                        .infer = arg_infer,
                                        .place = cek__place_strided,
                                        .lower = arg_lower,
                                        .types = CEK__TYPES_WIDE,
                                        .floats = true };
