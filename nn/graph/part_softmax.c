/* part_softmax.c - the softmax over the last axis, or its logarithm. */
#include "nn/graph/parts.h"
#include "nn/graph/physical.h"

static cek_status softmax_infer(const cek__graph *graph, const cek__part *part, cek__flow out[CEK__PART_OUTPUTS])
{
    const cek__dims *x = &graph->flows[part->input[0]].dims;

    if (x->rank < 1)
        return cek__fail(CEK_INVALID, "of a single number");
    if (x->samples >> (x->rank - 1) & 1)
        return cek__fail(CEK_INVALID, "would mix samples");
    out[0].dims = *x;
    return CEK_OK;
}

static cek_status along(cek__graph *graph, int x, int axis, bool log, int *out)
{
    cek_status st;
    cek__part part = { .kind = CEK__PART_SOFTMAX, .inputs = 1, .softmax = { .log = log } };
    int last = graph->flows[x].dims.rank - 1, order[CEK_RANK_MAX];

    if (axis < 0 || axis > last)
        CEK_FAIL(CEK_INVALID, "softmax: axis %d of %d", axis, last + 1);
    for (int i = 0; i <= last; i++)
        order[i] = i;
    order[axis] = last;
    order[last] = axis;
    part.input[0] = x;
    if (axis != last)
        CEK_TRY(cek__permute(graph, x, order, &part.input[0]));
    CEK_TRY(cek__graph_add(graph, &part, out));
    return axis != last ? cek__permute(graph, *out, order, out) : CEK_OK;
out:
    return st;
}

cek_status cek__softmax(cek__graph *graph, int x, int axis, int *out)
{
    return along(graph, x, axis, false, out);
}

cek_status cek__log_softmax(cek__graph *graph, int x, int axis, int *out)
{
    return along(graph, x, axis, true, out);
}

/* dx = y (dy - sum of dy y), with y = softmax(x); of its logarithm l, dx = dy - exp(l) (sum of dy). */
static cek_status softmax_gradient(cek__backward *to, int part, int dy)
{
    cek_status st;
    cek__graph *graph = to->graph;
    const cek__part p = graph->parts[part];
    int y = p.output[0], sum, dx;
    uint32_t last = 1u << (graph->flows[y].dims.rank - 1);
    cek__part back = { .kind = CEK__PART_CHAIN,
                       .inputs = 3,
                       .chain = {
                           2, { { .code = CEK_PW_SUB, .a = 0, .b = 2 }, { .code = CEK_PW_MUL, .a = 3, .b = 1 } } } };

    if (p.softmax.log) {
        back.chain.count = 3;
        back.chain.code[0] = (cek_pointwise_instruction){ .code = CEK_PW_EXP, .a = 1 };
        back.chain.code[1] = (cek_pointwise_instruction){ .code = CEK_PW_MUL, .a = 3, .b = 2 };
        back.chain.code[2] = (cek_pointwise_instruction){ .code = CEK_PW_SUB, .a = 0, .b = 4 };
        sum = dy;
    } else {
        CEK_TRY(cek__chain(graph, CEK_PW_MUL, dy, y, &sum));
    }
    CEK_TRY(cek__sum(graph, sum, last, &sum));
    CEK_TRY(cek__keep(graph, sum, y, last, &sum));
    back.input[0] = dy;
    back.input[1] = y;
    back.input[2] = sum;
    CEK_TRY(cek__graph_add(graph, &back, &dx));
    return cek__contribute(to, p.input[0], dx);
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
        .flags = p->softmax.log ? CEK_SOFTMAX_LOG : 0,
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
                                            .types = CEK__TYPES_WIDE,
                                            .lower = softmax_lower,
                                            .floats = true };
