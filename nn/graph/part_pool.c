/* part_pool.c - the largest or the mean of each window of x [N,C,...], and the way back. */
#include "nn/graph/parts.h"
#include "nn/graph/physical.h"

/* The reserve lies as the device likes. */
static cek_status pool_place(cek__graph *graph, int part)
{
    cek_status st;
    const cek__part *p = &graph->parts[part];

    CEK_TRY(cek__want(graph, part, 0, cek__dims_image(&graph->flows[p->input[0]].dims)));
    p = &graph->parts[part];
    graph->flows[p->output[0]].image = cek__dims_image(&graph->flows[p->output[0]].dims);
    return CEK_OK;
out:
    return st;
}

static void pool_describe(const cek__lowering *l, const cek__part *p, uint32_t kind, int x, cek_pool_desc *out)
{
    const cek__windows *windows = &p->pool.windows;
    const cek__dims *image = &l->graph->flows[x].dims;

    *out = (cek_pool_desc){
        .op = { .size = sizeof *out, .kind = kind },
        .mode = p->pool.mode,
        .flags = p->pool.count_pad ? CEK_POOL_COUNT_PAD : 0,
        .spatial = (uint32_t)image->rank - 2,
        .type = cek__lower_type(l, x),
        .batch = (uint64_t)cek__dims_elements(image, 0, 1, l->rows),
        .channels = (uint64_t)image->size[1],
    };
    for (uint32_t i = 0; i < out->spatial; i++) {
        out->in[i] = (uint64_t)image->size[2 + i];
        out->kernel[i] = (uint64_t)windows->kernel[i];
        out->stride[i] = (uint64_t)windows->stride[i];
        out->pad_lo[i] = (uint64_t)windows->pad_lo[i];
        out->pad_hi[i] = (uint64_t)windows->pad_hi[i];
    }
}

static cek_status pool_infer(const cek__graph *graph, const cek__part *part, cek__flow out[CEK__PART_OUTPUTS])
{
    const cek__dims *x = &graph->flows[part->input[0]].dims;
    const cek__windows *windows = &part->pool.windows;

    if (x->rank < 3 || x->rank > 5 || x->samples > 1)
        return cek__fail(CEK_INVALID, "takes images of samples, with 1 to 3 axes behind their channels");
    if (part->pool.mode != CEK_POOL_MAX && part->pool.mode != CEK_POOL_AVERAGE)
        return cek__fail(CEK_INVALID, "mode %u is neither the largest nor the mean", part->pool.mode);
    out[0].dims = *x;
    for (int i = 0; i < x->rank - 2; i++) {
        int64_t room = x->size[2 + i] + windows->pad_lo[i] + windows->pad_hi[i] - windows->kernel[i];

        if (windows->kernel[i] < 1 || windows->stride[i] < 1 || windows->dilation[i] > 1)
            return cek__fail(CEK_INVALID, "a window or stride below 1, or a dilation, which pools have none of");
        if (windows->pad_lo[i] < 0 || windows->pad_hi[i] < 0 || windows->pad_lo[i] >= windows->kernel[i] ||
            windows->pad_hi[i] >= windows->kernel[i])
            return cek__fail(CEK_INVALID, "padding that is not less than the window");
        if (room < 0)
            return cek__fail(CEK_INVALID, "a window is larger than the image");
        if (room / windows->stride[i] * windows->stride[i] >= x->size[2 + i] + windows->pad_lo[i])
            return cek__fail(CEK_INVALID, "a window wholly in the padding");
        out[0].dims.size[2 + i] = room / windows->stride[i] + 1;
    }
    return CEK_OK;
}

static cek_status pool_gradient(cek__backward *to, int part, int dy)
{
    cek_status st;
    const cek__part p = to->graph->parts[part];
    bool largest = p.pool.mode == CEK_POOL_MAX;
    cek__part back = { .kind = CEK__PART_POOL_BACK,
                       .inputs = largest ? 2 : 1,
                       .input = { dy, largest ? p.output[1] : CEK__NOTHING },
                       .dims = to->graph->flows[p.input[0]].dims,
                       .pool = p.pool };
    int dx;

    back.pool.forward = part;
    CEK_TRY(cek__graph_add(to->graph, &back, &dx));
    return cek__contribute(to, p.input[0], dx);
out:
    return st;
}

static cek_status pool_lower(cek__lowering *l, int part)
{
    cek_status st;
    const cek__part *p = &l->graph->parts[part];
    cek__destination to = { 0 };
    int reserve = CEK__NO_VALUE;
    cek_pool_desc desc;

    pool_describe(l, p, CEK_OP_POOL_FORWARD, p->input[0], &desc);
    CEK_TRY(cek__lower_write(l, p->output[0], CEK_POOL_FORWARD_Y, &to));
    if (l->graph->flows[p->output[1]].readers > 0) {
        CEK_TRY(cek__program_value(l->program, (cek__value){ .place = CEK__PLACE_ARENA }, &reserve));
        cek__lower_alias(l, p->output[1], reserve);
    }
    return cek__lower_emit(l, part, &desc.op,
                           (int[CEK__SLOTS]){ [CEK_POOL_FORWARD_X] = cek__lower_read(l, p->input[0]),
                                              [CEK_POOL_FORWARD_Y] = to.value,
                                              [CEK_POOL_FORWARD_RESERVE] = reserve },
                           &to);
out:
    return st;
}

static cek_status back_lower(cek__lowering *l, int part)
{
    cek_status st;
    const cek__part *p = &l->graph->parts[part];
    cek__destination to = { 0 };
    cek_pool_desc desc;

    pool_describe(l, p, CEK_OP_POOL_BACKWARD, p->output[0], &desc);
    if (p->inputs > 1)
        desc.op.forward = cek__lower_op(l, p->pool.forward);
    CEK_TRY(cek__lower_write(l, p->output[0], CEK_POOL_BACKWARD_DX, &to));
    return cek__lower_emit(l, part, &desc.op,
                           (int[CEK__SLOTS]){ [CEK_POOL_BACKWARD_DY] = cek__lower_read(l, p->input[0]),
                                              [CEK_POOL_BACKWARD_DX] = to.value,
                                              [CEK_POOL_BACKWARD_RESERVE] =
                                                  p->inputs > 1 ? cek__lower_read(l, p->input[1]) : CEK__NO_VALUE },
                           &to);
out:
    return st;
}

const cek__part_class cek__part_pool = { .name = "pool",
                                         .outputs = 2,
                                         .infer = pool_infer,
                                         .gradient = pool_gradient,
                                         .place = pool_place,
                                         .types = CEK__TYPES_FOLLOW,
                                         .lower = pool_lower,
                                         .floats = true };
const cek__part_class cek__part_pool_back = { .name = "pool_back",
                                              .outputs = 1,
                                              .infer = cek__infer_given,
                                              .place = pool_place,
                                              .types = CEK__TYPES_FOLLOW,
                                              .lower = back_lower,
                                              .floats = true };
