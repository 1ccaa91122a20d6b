/* part_softmax.c - the softmax over the last axis. */
#include "nn/graph/parts.h"
#include "nn/graph/physical.h"

static cek_status softmax_infer(const cek__graph *graph, const cek__part *part, cek__flow out[CEK__PART_OUTPUTS])
{
    out[0].dims = graph->flows[part->input[0]].dims;
    return CEK_OK;
}

/* dx = y (dy - sum of dy y) */
static cek_status softmax_gradient(cek__backward *to, int part, int dy)
{
    cek_status st;
    cek__graph *graph = to->graph;
    int x = graph->parts[part].input[0], y = graph->parts[part].output[0], weighed, sum, dx;
    uint32_t last = 1u << (graph->flows[y].dims.rank - 1);

    CEK_TRY(cek__chain(graph, CEK_PW_MUL, dy, y, &weighed));
    CEK_TRY(cek__sum(graph, weighed, last, &sum));
    CEK_TRY(cek__keep(graph, sum, y, last, &sum));
    CEK_TRY(cek__chain(graph, CEK_PW_SUB, dy, sum, &dx));
    CEK_TRY(cek__chain(graph, CEK_PW_MUL, dx, y, &dx));
    return cek__contribute(to, x, dx);
out:
    return st;
}

static cek_status softmax_lower(cek__lowering *l, int part)
{
    cek_status st;
    const cek__part *p = &l->graph->parts[part];
    const cek__dims *x = &l->graph->flows[p->input[0]].dims;
    cek__destination to = { 0 };
    cek_softmax_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_SOFTMAX },
        .rows = (uint64_t)cek__dims_elements(x, 0, x->rank - 1, l->rows),
        .columns = (uint64_t)cek__dims_elements(x, x->rank - 1, x->rank, l->rows),
        .type = l->type,
    };

    CEK_TRY(cek__lower_write(l, p->output[0], CEK_SOFTMAX_Y, &to));
    return cek__lower_emit(
        l, part, &desc.op,
        (int[CEK__SLOTS]){ [CEK_SOFTMAX_X] = cek__lower_read(l, p->input[0]), [CEK_SOFTMAX_Y] = to.value }, &to);
out:
    return st;
}

const cek__part_class cek__part_softmax = { .name = "softmax",
                                            .outputs = 1,
                                            .infer = softmax_infer,
                                            .gradient = softmax_gradient,
                                            .place = cek__place_plain,
                                            .lower = softmax_lower };
