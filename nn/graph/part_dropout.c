/* part_dropout.c - zeroes elements by a mask that follows from the sample and the place in it; backward is the same. */
#include <math.h>

#include "nn/graph/parts.h"
#include "nn/graph/physical.h"

static cek_status dropout_infer(const cek__graph *graph, const cek__part *part, cek__flow out[CEK__PART_OUTPUTS])
{
    const cek__dims *x = &graph->flows[part->input[0]].dims;

    if (x->samples != 1 || x->size[0] != 1)
        return cek__fail(CEK_INVALID, "takes samples along its first axis");
    out[0].dims = *x;
    return CEK_OK;
}

static cek_status dropout_gradient(cek__backward *to, int part, int dy)
{
    cek_status st;
    cek__part back = to->graph->parts[part];
    int x = back.input[0], dx;

    back.input[0] = dy;
    back.dropout.like = x;
    CEK_TRY(cek__graph_add(to->graph, &back, &dx));
    return cek__contribute(to, x, dx);
out:
    return st;
}

static cek_status dropout_place(cek__graph *graph, int part)
{
    cek_status st = CEK_OK;
    int like = graph->parts[part].dropout.like;

    if (like)
        CEK_TRY(cek__want(graph, part, 0, graph->flows[like].image));
    return cek__place_same(graph, part);
out:
    return st;
}

static cek_status dropout_lower(cek__lowering *l, int part)
{
    cek_status st;
    const cek__part *p = &l->graph->parts[part];
    double threshold = floor(p->dropout.p * 4294967296.0 + 0.5);
    cek__destination to = { 0 };
    cek_dropout_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_DROPOUT },
        .rows = (uint64_t)l->rows,
        .columns = cek__lower_elements(l, p->input[0]) / (uint64_t)l->rows,
        .rows_per_sample = 1,
        .scale = 1 / (1 - p->dropout.p),
        .threshold = threshold > UINT32_MAX ? UINT32_MAX : (uint32_t)threshold,
        .stream = p->dropout.stream,
        .type = cek__lower_type(l, p->output[0]),
    };

    CEK_TRY(cek__lower_write(l, p->output[0], CEK_DROPOUT_Y, &to));
    return cek__lower_emit(l, part, &desc.op,
                           (int[CEK__SLOTS]){ [CEK_DROPOUT_X] = cek__lower_read(l, p->input[0]),
                                              [CEK_DROPOUT_Y] = to.value,
                                              [CEK_DROPOUT_STEP] = l->step,
                                              [CEK_DROPOUT_BATCH] = l->batch },
                           &to);
out:
    return st;
}

const cek__part_class cek__part_dropout = { .name = "dropout",
                                            .outputs = 1,
                                            .infer = dropout_infer,
                                            .gradient = dropout_gradient,
                                            .place = dropout_place,
                                            .types = CEK__TYPES_FOLLOW,
                                            .lower = dropout_lower,
                                            .floats = true };
