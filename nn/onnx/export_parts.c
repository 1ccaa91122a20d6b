/* export_parts.c - what each part of a graph becomes in an ONNX file, in evaluation (see export.h). */
#include <string.h>

#include "nn/graph/parts.h"
#include "nn/onnx/export.h"

#define COUNT(list) ((int)(sizeof(list) / sizeof *(list)))

static cek__onnx_setting integer(const char *name, int64_t value)
{
    return (cek__onnx_setting){ .name = name, .kind = CEK__ONNX_ATTRIBUTE_INT, .integer = value };
}

static cek__onnx_setting integers(const char *name, const int64_t *list, int count)
{
    return (cek__onnx_setting){ .name = name, .kind = CEK__ONNX_ATTRIBUTE_INTS, .integers = list, .count = count };
}

static const cek__dims *dims_of(const cek__export *e, int flow)
{
    return &e->graph->flows[flow].dims;
}

/* ---- weights ---- */

static int public_put(cek__export *e, const cek_parameter *p)
{
    const int v = cek__export_value(e, p->name);

    if (v >= 0)
        cek__onnx_put_tensor(&e->out, e->names[v], CEK__ONNX_FLOAT, p->rank, p->shape, p->data,
                             (uint64_t)p->count * sizeof *p->data);
    return v;
}

/* The model's buffer that a flow is; NULL: it is none. */
static const cek__buffer *buffer_of(const cek__export *e, int flow)
{
    const cek__part *part = cek__graph_giver(e->graph, flow);

    if (part->kind != CEK__PART_BUFFER || part->buffer.constant)
        return NULL;
    for (size_t i = 0; i < e->model->buffer_count; i++)
        if (e->model->buffers[i].at == part->buffer.at)
            return &e->model->buffers[i];
    return NULL;
}

static int constant_put(cek__export *e, const char *name, int rank, const int64_t *shape, int64_t count,
                        const float *data)
{
    const int v = cek__export_value(e, name);

    if (v >= 0)
        cek__onnx_put_constant(&e->out, e->names[v], CEK__ONNX_FLOAT, rank, shape, data,
                               (uint64_t)count * sizeof *data);
    return v;
}

/* Buffers by their names, arrays that never change by none: what training does not move must not look as if it were to
 * be trained. */
static int buffer_put(cek__export *e, const cek__part *part)
{
    const cek__dims *dims = dims_of(e, part->output[0]);
    const cek__buffer *buffer = buffer_of(e, part->output[0]);

    if (part->buffer.constant)
        return constant_put(e, NULL, dims->rank, dims->size, cek__dims_elements(dims, 0, dims->rank, 1),
                            e->model->constants.values + part->buffer.at);
    if (!buffer)
        return cek__export_refuse(e, "buffer without a name");
    if (buffer->momentum > 0)
        return public_put(e, &buffer->public);
    return constant_put(e, buffer->public.name, buffer->public.rank, buffer->public.shape, buffer->public.count,
                        buffer->public.data);
}

/* ---- batch norm, which evaluation computes with its running statistics ---- */

typedef struct batch_norm {
    int x, mean, variance;  /* flows; the last two of [C], */
    int gamma, beta;        /* and these, or CEK__NOTHING */
    double epsilon, weight; /* of the newest statistics in the running ones */
} batch_norm;

/* The vector of which a flow is a view as [C,1,..]; CEK__NOTHING: it is none. */
static int vector_of(const cek__export *e, int flow, int64_t channels)
{
    const cek__part *view = cek__graph_giver(e->graph, flow);
    const int vector = view->kind == CEK__PART_VIEW ? view->input[0] : flow;
    const cek__dims *dims = dims_of(e, vector), *spread = dims_of(e, flow);

    return dims->rank == 1 && dims->size[0] == channels && !dims->samples && spread->size[0] == channels ? vector
                                                                                                         : CEK__NOTHING;
}

/* (x - mean) / sqrt(variance + epsilon), where it has them times gamma plus beta */
static bool batch_norm_match(const cek__export *e, const cek__part *part, batch_norm *out)
{
    const uint32_t at = (uint32_t)part->inputs;
    const cek_pointwise_instruction formula[] = { { .code = CEK_PW_ADD_IMM, .a = 1 },
                                                  { .code = CEK_PW_SQRT, .a = at },
                                                  { .code = CEK_PW_DIV, .a = 0, .b = at + 1 },
                                                  { .code = CEK_PW_MUL, .a = at + 2, .b = 2 },
                                                  { .code = CEK_PW_ADD, .a = at + 3, .b = 3 } };
    const bool affine = part->inputs == 4;
    const cek__buffer *mean;
    const cek__part *centred;
    const cek__dims *x;

    if (part->kind != CEK__PART_CHAIN || (part->inputs != 2 && !affine) || part->chain.count != (affine ? 5 : 3))
        return false;
    for (uint32_t i = 0; i < part->chain.count; i++) {
        const cek_pointwise_instruction *in = &part->chain.code[i];

        if (in->code != formula[i].code || in->a != formula[i].a || in->b != formula[i].b)
            return false;
    }
    centred = cek__graph_giver(e->graph, part->input[0]);
    if (centred->kind != CEK__PART_CHAIN || centred->inputs != 2 || centred->chain.count != 1 ||
        centred->chain.code[0].code != CEK_PW_SUB || centred->chain.code[0].a != 0 || centred->chain.code[0].b != 1)
        return false;
    x = dims_of(e, centred->input[0]);
    if (x->rank < 2 || x->samples != 1)
        return false;
    for (int i = 0; i < part->inputs; i++) {
        const int flow = i == 0 ? centred->input[1] : part->input[i];

        if (dims_of(e, flow)->rank != x->rank - 1)
            return false;
    }
    *out = (batch_norm){ .x = centred->input[0],
                         .mean = vector_of(e, centred->input[1], x->size[1]),
                         .variance = vector_of(e, part->input[1], x->size[1]),
                         .gamma = affine ? vector_of(e, part->input[2], x->size[1]) : CEK__NOTHING,
                         .beta = affine ? vector_of(e, part->input[3], x->size[1]) : CEK__NOTHING,
                         .epsilon = part->chain.code[0].imm };
    mean = buffer_of(e, out->mean);
    if (!mean || !buffer_of(e, out->variance) || (affine && (!out->gamma || !out->beta)))
        return false;
    out->weight = mean->momentum;
    return true;
}

/* What the file must have and the network has not: one number, again for each channel, which nobody trains. */
static int filled_put(cek__export *e, double value, const cek__dims *vector)
{
    const cek__dims one = { .rank = 0 };

    return cek__export_spread(e, cek__export_number(e, value), &one, vector);
}

static int batch_norm_put(cek__export *e, const batch_norm *n)
{
    const cek__dims *vector = dims_of(e, n->mean);
    const int gamma = n->gamma ? e->values[n->gamma] : filled_put(e, 1, vector),
              beta = n->beta ? e->values[n->beta] : filled_put(e, 0, vector);
    const cek__onnx_setting settings[] = {
        { .name = "epsilon", .kind = CEK__ONNX_ATTRIBUTE_FLOAT, .number = n->epsilon },
        { .name = "momentum", .kind = CEK__ONNX_ATTRIBUTE_FLOAT, .number = 1 - n->weight }
    };

    return cek__export_node(e, "BatchNormalization", 5,
                            (int[]){ e->values[n->x], gamma, beta, e->values[n->mean], e->values[n->variance] },
                            (float)(1 - n->weight) == 0.9f ? 1 : 2, settings); /* 0.9 where a file says nothing */
}

/* ---- products ---- */

static cek__dims axes_joined(const cek__dims *x, int first, int end)
{
    cek__dims y = { .rank = 1, .size = { 1 } };

    for (int i = first; i < end; i++) {
        y.size[0] *= x->size[i];
        y.samples |= x->samples >> i & 1;
    }
    return y;
}

/* [count.., rows, columns], the first of them as they are. */
static int matrix_put(cek__export *e, int flow, const cek__matrix *m)
{
    const cek__dims *x = dims_of(e, flow);
    const cek__dims rows = axes_joined(x, m->batch, m->split), columns = axes_joined(x, m->split, x->rank);
    cek__dims y = { .rank = m->batch + 2, .samples = x->samples & ((1u << m->batch) - 1) };
    int64_t perm[CEK_RANK_MAX];
    int v = e->values[flow];

    memcpy(y.size, x->size, (size_t)m->batch * sizeof *y.size);
    y.size[m->batch] = rows.size[0];
    y.size[m->batch + 1] = columns.size[0];
    y.samples |= rows.samples << m->batch | columns.samples << (m->batch + 1);
    if (m->split != m->batch + 1 || x->rank != m->split + 1)
        v = cek__export_reshape(e, v, &y);
    if (!m->transposed)
        return v;
    for (int i = 0; i < y.rank; i++)
        perm[i] = i < m->batch ? i : i == m->batch ? i + 1 : i - 1;
    return cek__export_node(e, "Transpose", 1, &v, 1, (cek__onnx_setting[]){ integers("perm", perm, y.rank) });
}

static bool is_plain(const cek__matrix *m, int rank)
{
    return rank == 2 && m->batch == 0 && m->split == 1;
}

/* With a bias that is added to each row; -1: none. */
static int product_put(cek__export *e, const cek__part *part, int bias)
{
    const cek__matrix *a = &part->product.a, *b = &part->product.b;
    const cek__dims *x = dims_of(e, part->input[0]), *y = dims_of(e, part->output[0]);
    const bool flat = is_plain(b, dims_of(e, part->input[1])->rank);
    int v;

    if (flat && is_plain(a, x->rank))
        return cek__export_node(
            e, "Gemm", bias < 0 ? 2 : 3, (int[]){ e->values[part->input[0]], e->values[part->input[1]], bias }, 2,
            (cek__onnx_setting[]){ integer("transA", a->transposed), integer("transB", b->transposed) });
    if (flat && a->batch == 0 && !a->transposed && a->split == x->rank - 1) /* one for all rows, whatever counts them */
        return cek__export_two(e, "MatMul", e->values[part->input[0]], matrix_put(e, part->input[1], b));
    v = cek__export_two(e, "MatMul", matrix_put(e, part->input[0], a), matrix_put(e, part->input[1], b));
    return y->rank == a->batch + 2 ? v : cek__export_reshape(e, v, y);
}

/* ---- windows ---- */

enum { SETTINGS = 6 };

/* Strides, dilations (not of pools), padding. */
static int windows_settings(const cek__windows *w, int axes, int64_t pads[2 * CEK_SPATIAL_MAX], cek__onnx_setting *out)
{
    memcpy(pads, w->pad_lo, (size_t)axes * sizeof *pads);
    memcpy(pads + axes, w->pad_hi, (size_t)axes * sizeof *pads);
    out[0] = integers("strides", w->stride, axes);
    out[1] = integers("pads", pads, 2 * axes);
    return 2;
}

static int conv_put(cek__export *e, const cek__part *part, int bias)
{
    const int axes = dims_of(e, part->output[0])->rank - 2;
    int64_t pads[2 * CEK_SPATIAL_MAX];
    cek__onnx_setting s[SETTINGS];
    int count = windows_settings(&part->conv.windows, axes, pads, s);

    s[count++] = integers("dilations", part->conv.windows.dilation, axes);
    s[count++] = integers("kernel_shape", dims_of(e, part->input[1])->size + 2, axes);
    s[count++] = integer("group", part->conv.groups);
    return cek__export_node(e, "Conv", bias < 0 ? 2 : 3,
                            (int[]){ e->values[part->input[0]], e->values[part->input[1]], bias }, count, s);
}

static int conv_data_put(cek__export *e, const cek__part *part, int bias)
{
    const cek__windows *w = &part->conv.windows;
    const cek__dims *x = dims_of(e, part->input[0]), *y = dims_of(e, part->output[0]);
    const int64_t *kernel = dims_of(e, part->input[1])->size + 2;
    const int axes = y->rank - 2;
    int64_t pads[2 * CEK_SPATIAL_MAX], more[CEK_SPATIAL_MAX];
    cek__onnx_setting s[SETTINGS];
    int count = windows_settings(w, axes, pads, s);

    for (int i = 0; i < axes; i++)
        more[i] = y->size[2 + i] - (w->stride[i] * (x->size[2 + i] - 1) + (kernel[i] - 1) * w->dilation[i] + 1 -
                                    w->pad_lo[i] - w->pad_hi[i]);
    s[count++] = integers("dilations", w->dilation, axes);
    s[count++] = integers("kernel_shape", kernel, axes);
    s[count++] = integers("output_padding", more, axes);
    s[count++] = integer("group", part->conv.groups);
    return cek__export_node(e, "ConvTranspose", bias < 0 ? 2 : 3,
                            (int[]){ e->values[part->input[0]], e->values[part->input[1]], bias }, count, s);
}

static int pool_put(cek__export *e, const cek__part *part)
{
    const int axes = dims_of(e, part->output[0])->rank - 2;
    const bool mean = part->pool.mode == CEK_POOL_AVERAGE;
    int64_t pads[2 * CEK_SPATIAL_MAX];
    cek__onnx_setting s[SETTINGS];
    int count = windows_settings(&part->pool.windows, axes, pads, s);

    s[count++] = integers("kernel_shape", part->pool.windows.kernel, axes);
    if (mean)
        s[count++] = integer("count_include_pad", part->pool.count_pad);
    return cek__export_node(e, mean ? "AveragePool" : "MaxPool", 1, &e->values[part->input[0]], count, s);
}

/* ---- biases, which belong to the node of what they are added to ---- */

/* Of a chain that adds a vector to a convolution's channels or to a product's rows: that part, and
 * the vector's flow. */
static const cek__part *biased_match(const cek__export *e, const cek__part *part, int *bias)
{
    const cek__part *of;
    const cek__dims *y, *vector;

    if (part->kind != CEK__PART_CHAIN || part->inputs != 2 || part->chain.count != 1 ||
        part->chain.code[0].code != CEK_PW_ADD || part->chain.code[0].a != 0 || part->chain.code[0].b != 1)
        return NULL;
    of = cek__graph_giver(e->graph, part->input[0]);
    y = dims_of(e, part->input[0]);
    vector = dims_of(e, part->input[1]);
    if (of->kind == CEK__PART_CONV || of->kind == CEK__PART_CONV_DATA)
        *bias = vector->rank == y->rank - 1 ? vector_of(e, part->input[1], y->size[1]) : CEK__NOTHING;
    else if (of->kind == CEK__PART_PRODUCT && is_plain(&of->product.a, dims_of(e, of->input[0])->rank) &&
             is_plain(&of->product.b, dims_of(e, of->input[1])->rank))
        *bias = vector->rank == 1 ? vector_of(e, part->input[1], y->size[1]) : CEK__NOTHING;
    else
        return NULL;
    return *bias && of->inputs == 2 ? of : NULL;
}

static int biased_put(cek__export *e, const cek__part *of, int bias)
{
    if (of->inputs != 2)
        return cek__export_refuse(e, "bias of its own");
    return of->kind == CEK__PART_CONV        ? conv_put(e, of, bias)
           : of->kind == CEK__PART_CONV_DATA ? conv_data_put(e, of, bias)
                                             : product_put(e, of, bias);
}

static int chain_put(cek__export *e, const cek__part *part)
{
    int bias;
    batch_norm n;
    const cek__part *of = biased_match(e, part, &bias);

    if (of)
        return biased_put(e, of, e->values[bias]);
    return batch_norm_match(e, part, &n) ? batch_norm_put(e, &n) : cek__export_chain(e, part);
}

/* ---- axes ---- */

static int reduce_put(cek__export *e, const cek__part *part)
{
    static const char *const names[] = { [CEK_REDUCE_SUM] = "ReduceSum",
                                         [CEK_REDUCE_MEAN] = "ReduceMean",
                                         [CEK_REDUCE_MAX] = "ReduceMax",
                                         [CEK_REDUCE_MIN] = "ReduceMin",
                                         [CEK_REDUCE_SUM_SQUARES] = "ReduceSumSquare" };
    const cek__dims *x = dims_of(e, part->input[0]);
    const uint32_t f = part->reduce.function;
    int64_t axes[CEK_RANK_MAX];
    int count = 0, v;

    if (f < CEK_REDUCE_SUM || f > CEK_REDUCE_SUM_SQUARES)
        return cek__export_refuse(e, "function %u", f);
    for (int i = 0; i < x->rank; i++)
        if (part->reduce.axes >> i & 1)
            axes[count++] = i;
    if (count == 0)
        return cek__export_refuse(e, "sum over no axes");
    v = cek__export_node(e, names[f], 2, (int[]){ e->values[part->input[0]], cek__export_list(e, axes, count) }, 1,
                         (cek__onnx_setting[]){ integer("keepdims", 0) });
    return count < x->rank ? v : cek__export_reshape(e, v, dims_of(e, part->output[0]));
}

static int permute_put(cek__export *e, const cek__part *part)
{
    const int rank = dims_of(e, part->output[0])->rank;
    int64_t perm[CEK_RANK_MAX];

    for (int i = 0; i < rank; i++)
        perm[i] = part->order[i];
    return cek__export_node(e, "Transpose", 1, &e->values[part->input[0]], 1,
                            (cek__onnx_setting[]){ integers("perm", perm, rank) });
}

static int pad_put(cek__export *e, const cek__part *part)
{
    const int rank = dims_of(e, part->output[0])->rank;
    int64_t pads[2 * CEK_RANK_MAX];

    memcpy(pads, part->pad.lo, (size_t)rank * sizeof *pads);
    memcpy(pads + rank, part->pad.hi, (size_t)rank * sizeof *pads);
    if (e->graph->flows[part->output[0]].type == CEK_I32)
        return cek__export_refuse(e, "padding of whole numbers");
    return cek__export_node(e, "Pad", 3,
                            (int[]){ e->values[part->input[0]], cek__export_list(e, pads, 2 * rank),
                                     cek__export_number(e, part->pad.value) },
                            0, NULL);
}

static int concat_put(cek__export *e, const cek__part *part)
{
    int in[CEK__PART_INPUTS];

    for (int i = 0; i < part->inputs; i++)
        in[i] = e->values[part->input[i]];
    return cek__export_node(e, "Concat", part->inputs, in, 1, (cek__onnx_setting[]){ integer("axis", part->axis) });
}

/* ---- the rest ---- */

static int gather_put(cek__export *e, const cek__part *part)
{
    const int table = e->values[part->input[0]], index = e->values[part->input[1]];
    int last;

    if (part->gather.batch == 0)
        return cek__export_two(e, "Gather", table, index);
    last = cek__export_list(e, (int64_t[]){ -1 }, 1);
    return cek__export_node(
        e, "GatherND", 2,
        (int[]){ table, cek__export_cast(e, cek__export_two(e, "Unsqueeze", index, last), CEK__ONNX_INT64) }, 1,
        (cek__onnx_setting[]){ integer("batch_dims", part->gather.batch) });
}

static int arg_put(cek__export *e, const cek__part *part)
{
    const int v = cek__export_node(e, part->arg.function == CEK_ARG_MIN ? "ArgMin" : "ArgMax", 1,
                                   &e->values[part->input[0]], 2,
                                   (cek__onnx_setting[]){ integer("axis", part->arg.axis), integer("keepdims", 0) });

    return cek__export_cast(e, v, CEK__ONNX_INT32);
}

static int softmax_put(cek__export *e, const cek__part *part)
{
    return cek__export_node(e, part->softmax.log ? "LogSoftmax" : "Softmax", 1, &e->values[part->input[0]], 1,
                            (cek__onnx_setting[]){ integer("axis", -1) });
}

/* Where a network is not trained, their mean. */
static int random_put(cek__export *e, const cek__part *part)
{
    const double mean = part->random.distribution == CEK_RANDOM_UNIFORM ? (part->random.a + part->random.b) / 2
                                                                        : part->random.a;
    const cek__dims one = { .rank = 0 };

    return cek__export_spread(e, cek__export_number(e, mean), &one, dims_of(e, part->output[0]));
}

int cek__export_reads(const cek__export *e, const cek__part *part, int flows[CEK__PART_INPUTS])
{
    int bias;
    batch_norm n;
    const cek__part *of = biased_match(e, part, &bias);

    if (of) {
        memcpy(flows, (int[]){ of->input[0], of->input[1], bias }, 3 * sizeof *flows);
        return 3;
    }
    if (part->kind == CEK__PART_PHASE) {
        flows[0] = part->input[1];
        return 1;
    }
    if (batch_norm_match(e, part, &n)) {
        memcpy(flows, (int[]){ n.x, n.mean, n.variance, n.gamma, n.beta }, 5 * sizeof *flows);
        return n.gamma ? 5 : 3;
    }
    memcpy(flows, part->input, (size_t)part->inputs * sizeof *flows);
    return part->inputs;
}

int cek__export_part(cek__export *e, const cek__part *part)
{
    switch (part->kind) {
    case CEK__PART_PARAMETER: return public_put(e, &e->model->parameters[part->parameter].public);
    case CEK__PART_BUFFER: return buffer_put(e, part);
    case CEK__PART_PRODUCT:
    case CEK__PART_CONV:
    case CEK__PART_CONV_DATA: return biased_put(e, part, -1);
    case CEK__PART_POOL: return pool_put(e, part);
    case CEK__PART_CHAIN: return chain_put(e, part);
    case CEK__PART_REDUCE: return reduce_put(e, part);
    case CEK__PART_VIEW: return cek__export_reshape(e, e->values[part->input[0]], dims_of(e, part->output[0]));
    case CEK__PART_PERMUTE: return permute_put(e, part);
    case CEK__PART_PAD: return pad_put(e, part);
    case CEK__PART_CONCAT: return concat_put(e, part);
    case CEK__PART_GATHER: return gather_put(e, part);
    case CEK__PART_ARG: return arg_put(e, part);
    case CEK__PART_SOFTMAX: return softmax_put(e, part);
    case CEK__PART_RANDOM: return random_put(e, part);
    case CEK__PART_DROPOUT: return e->values[part->input[0]]; /* leaves out nothing in evaluation */
    case CEK__PART_PHASE: return e->values[part->input[1]];
    default: return cek__export_refuse(e, "part of training alone");
    }
}
