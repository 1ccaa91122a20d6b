/* part_conv.c - convolution with 1 to 3 axes of windows, and its two gradients, each of which is a part; that of x is
 * the transposed convolution too, with a gradient of its own.
 *
 * x [N,C,...], w [O,C/groups,kernel...], y [N,O,...]. */
#include "nn/graph/parts.h"
#include "nn/graph/physical.h"

void cek__windows_same(cek__windows *windows, int axis, int64_t in, int64_t kernel)
{
    int64_t out = (in + windows->stride[axis] - 1) / windows->stride[axis];
    int64_t all = (out - 1) * windows->stride[axis] + windows->dilation[axis] * (kernel - 1) + 1 - in;

    windows->pad_lo[axis] = all > 0 ? all / 2 : 0;
    windows->pad_hi[axis] = all > 0 ? all - all / 2 : 0;
}

/* Images lie with their channels last on all sides; biases are plain. */
static cek_status conv_place(cek__graph *graph, int part)
{
    cek_status st = CEK_OK;
    const cek__part p = graph->parts[part];

    for (int k = 0; k < p.inputs; k++) {
        const cek__dims *dims = &graph->flows[p.input[k]].dims;

        CEK_TRY(cek__want(graph, part, k, dims->rank > 2 ? cek__dims_image(dims) : (cek__image){ 0, 0 }));
    }
    graph->flows[p.output[0]].image = cek__dims_image(&graph->flows[p.output[0]].dims);
out:
    return st;
}

static void conv_describe(const cek__lowering *l, const cek__part *p, uint32_t kind, int x, int w, cek_conv_desc *out)
{
    const cek__windows *windows = &p->conv.windows;
    const cek__dims *image = &l->graph->flows[x].dims, *weights = &l->graph->flows[w].dims;

    *out = (cek_conv_desc){
        .op = { .size = sizeof *out, .kind = kind },
        .spatial = (uint32_t)image->rank - 2,
        .groups = (uint32_t)p->conv.groups,
        .batch = (uint64_t)cek__dims_elements(image, 0, 1, l->rows),
        .in_channels = (uint64_t)image->size[1],
        .out_channels = (uint64_t)weights->size[0],
        .x_type = cek__lower_type(l, p->input[0]),
        .w_type = cek__lower_type(l, p->input[0]),
        .y_type = cek__lower_type(l, p->input[0]),
    };
    for (uint32_t i = 0; i < out->spatial; i++) {
        out->in[i] = (uint64_t)image->size[2 + i];
        out->kernel[i] = (uint64_t)weights->size[2 + i];
        out->stride[i] = (uint64_t)windows->stride[i];
        out->dilation[i] = (uint64_t)windows->dilation[i];
        out->pad_lo[i] = (uint64_t)windows->pad_lo[i];
        out->pad_hi[i] = (uint64_t)windows->pad_hi[i];
    }
}

/* ---- forward ---- */

/* What the windows of w make of an image. */
static cek_status windows_fit(const cek__part *part, const cek__dims *x, const cek__dims *w, cek__dims *y)
{
    const cek__windows *windows = &part->conv.windows;
    int64_t channels, reach, room;

    if (x->rank < 3 || x->rank > 5 || x->samples > 1 || x->size[1] < 1)
        return cek__fail(CEK_INVALID, "takes images of samples, with 1 to 3 axes behind their channels");
    if (w->rank != x->rank || w->samples || part->conv.groups < 1 ||
        __builtin_mul_overflow(w->size[1], part->conv.groups, &channels) || channels != x->size[1] ||
        w->size[0] % part->conv.groups)
        return cek__fail(CEK_INVALID, "weights that do not fit the image");
    *y = *x;
    y->size[1] = w->size[0];
    for (int i = 0; i < x->rank - 2; i++) {
        if (windows->stride[i] < 1 || windows->dilation[i] < 1 || windows->pad_lo[i] < 0 || windows->pad_hi[i] < 0)
            return cek__fail(CEK_INVALID, "a stride or dilation below 1, or padding below 0");
        if (__builtin_mul_overflow(windows->dilation[i], w->size[2 + i] - 1, &reach) ||
            __builtin_add_overflow(windows->pad_lo[i], windows->pad_hi[i], &room) ||
            __builtin_add_overflow(x->size[2 + i], room, &room) || __builtin_sub_overflow(room, reach, &room) ||
            room < 1)
            return cek__fail(CEK_INVALID, "a window is larger than the image");
        y->size[2 + i] = (room - 1) / windows->stride[i] + 1;
    }
    return CEK_OK;
}

static cek_status conv_infer(const cek__graph *graph, const cek__part *part, cek__flow out[CEK__PART_OUTPUTS])
{
    return windows_fit(part, &graph->flows[part->input[0]].dims, &graph->flows[part->input[1]].dims, &out[0].dims);
}

static cek_status conv_gradient(cek__backward *to, int part, int dy)
{
    cek_status st;
    const cek__part p = to->graph->parts[part];
    const cek__flow *x = cek__graph_flow(to->graph, p.input[0]), *w = cek__graph_flow(to->graph, p.input[1]);
    bool for_x = x->needs_gradient, for_w = w->needs_gradient;
    cek__part data = { .kind = CEK__PART_CONV_DATA, .inputs = 2, .input = { dy, p.input[1] }, .dims = x->dims };
    cek__part weights = { .kind = CEK__PART_CONV_WEIGHTS, .inputs = 2, .input = { p.input[0], dy }, .dims = w->dims };
    int gradient;

    data.conv = weights.conv = p.conv;
    if (for_w) {
        CEK_TRY(cek__graph_add(to->graph, &weights, &gradient));
        CEK_TRY(cek__contribute(to, p.input[1], gradient));
    }
    if (for_x) {
        CEK_TRY(cek__graph_add(to->graph, &data, &gradient));
        CEK_TRY(cek__contribute(to, p.input[0], gradient));
    }
    return CEK_OK;
out:
    return st;
}

static cek_status conv_emit(cek__lowering *l, int part, int flow, const cek_epilogue *epilogue, int ref)
{
    cek_status st;
    const cek__part *p = &l->graph->parts[part];
    cek__destination to = { 0 };
    cek_conv_desc desc;

    (void)ref; /* forward takes activations alone */
    conv_describe(l, p, CEK_OP_CONV_FORWARD, p->input[0], p->input[1], &desc);
    desc.op.epilogue = epilogue;
    CEK_TRY(cek__lower_write(l, flow, CEK_CONV_FORWARD_Y, &to));
    return cek__lower_emit(l, part, &desc.op,
                           (int[CEK__SLOTS]){
                               [CEK_CONV_FORWARD_X] = cek__lower_read(l, p->input[0]),
                               [CEK_CONV_FORWARD_W] = cek__lower_read(l, p->input[1]),
                               [CEK_CONV_FORWARD_Y] = to.value,
                               [CEK_CONV_FORWARD_BIAS] = p->inputs > 2 ? cek__lower_read(l, p->input[2])
                                                                       : CEK__NO_VALUE,
                           },
                           &to);
out:
    return st;
}

static cek_status conv_lower(cek__lowering *l, int part)
{
    return cek__lower_with_follower(l, part, conv_emit);
}

/* ---- the gradient of x, which is the transposed convolution of dy ---- */

static cek_status data_infer(const cek__graph *graph, const cek__part *part, cek__flow out[CEK__PART_OUTPUTS])
{
    cek_status st;
    cek__dims y;

    CEK_TRY(windows_fit(part, &part->dims, &graph->flows[part->input[1]].dims, &y));
    if (!cek__dims_equal(&y, &graph->flows[part->input[0]].dims))
        CEK_FAIL(CEK_INVALID, "an image that no window over the result reaches so");
    out[0].dims = part->dims;
    return CEK_OK;
out:
    return st;
}

cek_status cek__conv_transposed(cek__graph *graph, int x, int w, const cek__windows *windows, int64_t groups,
                                const int64_t *more, int *out)
{
    cek__part part = { .kind = CEK__PART_CONV_DATA, .inputs = 2, .input = { x, w }, .dims = graph->flows[x].dims };
    const cek__dims *weights = &graph->flows[w].dims;
    bool large = __builtin_mul_overflow(weights->size[1], groups, &part.dims.size[1]);

    part.conv.windows = *windows;
    part.conv.groups = groups;
    for (int i = 0; i < part.dims.rank - 2 && i < CEK_SPATIAL_MAX && weights->rank == part.dims.rank; i++) {
        int64_t *size = &part.dims.size[2 + i], reach = windows->dilation[i] * (weights->size[2 + i] - 1) + 1 -
                                                        windows->pad_lo[i] - windows->pad_hi[i] + (more ? more[i] : 0);

        large |= __builtin_mul_overflow(*size - 1, windows->stride[i], size) ||
                 __builtin_add_overflow(*size, reach, size);
    }
    if (large)
        return cek__fail(CEK_INVALID, "transposed convolution: its result is too large");
    return cek__graph_add(graph, &part, out);
}

/* It is linear in both: what comes back goes the other way. */
static cek_status data_gradient(cek__backward *to, int part, int dx)
{
    cek_status st;
    const cek__part p = to->graph->parts[part];
    bool for_dy = to->graph->flows[p.input[0]].needs_gradient, for_w = to->graph->flows[p.input[1]].needs_gradient;
    cek__part conv = { .kind = CEK__PART_CONV, .inputs = 2, .input = { dx, p.input[1] } };
    cek__part weights = { .kind = CEK__PART_CONV_WEIGHTS, .inputs = 2, .input = { dx, p.input[0] } };
    int gradient;

    weights.dims = to->graph->flows[p.input[1]].dims;
    conv.conv = weights.conv = p.conv;
    if (for_w) {
        CEK_TRY(cek__graph_add(to->graph, &weights, &gradient));
        CEK_TRY(cek__contribute(to, p.input[1], gradient));
    }
    if (for_dy) {
        CEK_TRY(cek__graph_add(to->graph, &conv, &gradient));
        CEK_TRY(cek__contribute(to, p.input[0], gradient));
    }
    return CEK_OK;
out:
    return st;
}

static cek_status data_emit(cek__lowering *l, int part, int flow, const cek_epilogue *epilogue, int ref)
{
    cek_status st;
    const cek__part *p = &l->graph->parts[part];
    cek__destination to = { 0 };
    cek_conv_desc desc;

    conv_describe(l, p, CEK_OP_CONV_BACKWARD_DATA, p->output[0], p->input[1], &desc);
    desc.op.epilogue = epilogue;
    CEK_TRY(cek__lower_write(l, flow, CEK_CONV_BACKWARD_DATA_DX, &to));
    to.accumulate |= p->base ? CEK_BIT(CEK_CONV_BACKWARD_DATA_DX) : 0;
    return cek__lower_emit(l, part, &desc.op,
                           (int[CEK__SLOTS]){
                               [CEK_CONV_BACKWARD_DATA_DY] = cek__lower_read(l, p->input[0]),
                               [CEK_CONV_BACKWARD_DATA_W] = cek__lower_read(l, p->input[1]),
                               [CEK_CONV_BACKWARD_DATA_DX] = to.value,
                               [CEK_CONV_BACKWARD_DATA_ACT_REF] = ref,
                           },
                           &to);
out:
    return st;
}

static cek_status data_lower(cek__lowering *l, int part)
{
    return cek__lower_with_follower(l, part, data_emit);
}

/* ---- the gradient of w ---- */

static cek_status weights_lower(cek__lowering *l, int part)
{
    cek_status st;
    const cek__part *p = &l->graph->parts[part];
    cek__destination to = { 0 }, sums = { 0 };
    cek_conv_desc desc;

    conv_describe(l, p, CEK_OP_CONV_BACKWARD_WEIGHTS, p->input[0], p->output[0], &desc);
    CEK_TRY(cek__lower_write(l, p->output[0], CEK_CONV_BACKWARD_WEIGHTS_DW, &to));
    if (p->output[1])
        CEK_TRY(cek__lower_write(l, p->output[1], CEK_CONV_BACKWARD_WEIGHTS_BIAS_GRAD, &sums));
    to.accumulate |= sums.accumulate;
    to.twice |= sums.twice;
    return cek__lower_emit(l, part, &desc.op,
                           (int[CEK__SLOTS]){
                               [CEK_CONV_BACKWARD_WEIGHTS_X] = cek__lower_read(l, p->input[0]),
                               [CEK_CONV_BACKWARD_WEIGHTS_DY] = cek__lower_read(l, p->input[1]),
                               [CEK_CONV_BACKWARD_WEIGHTS_DW] = to.value,
                               [CEK_CONV_BACKWARD_WEIGHTS_BIAS_GRAD] = sums.value,
                           },
                           &to);
out:
    return st;
}

const cek__part_class cek__part_conv = { .name = "conv",
                                         .outputs = 1,
                                         .infer = conv_infer,
                                         .gradient = conv_gradient,
                                         .place = conv_place,
                                         .types = CEK__TYPES_LOW,
                                         .lower = conv_lower,
                                         .floats = true };
const cek__part_class cek__part_conv_data = { .name = "conv_data",
                                              .outputs = 1,
                                              .infer = data_infer,
                                              .gradient = data_gradient,
                                              .place = conv_place,
                                              .types = CEK__TYPES_LOW,
                                              .lower = data_lower,
                                              .floats = true };
const cek__part_class cek__part_conv_weights = { .name = "conv_weights",
                                                 .outputs = 1,
                                                 .infer = cek__infer_given,
                                                 .place = conv_place,
                                                 .types = CEK__TYPES_LOW,
                                                 .lower = weights_lower,
                                                 .adds = true,
                                                 .floats = true };
