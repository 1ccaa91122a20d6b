/* part_chain.c - a few instructions of plugin.h for each element, over inputs that are broadcast as in NumPy. */
#include <string.h>

#include "nn/graph/chain.h"
#include "nn/graph/cut.h"
#include "nn/graph/normalise.h"
#include "nn/graph/parts.h"
#include "nn/graph/physical.h"
#include "nn/graph/strides.h"

static cek_status code_check(const cek__part *part)
{
    if (part->inputs > CEK__PART_INPUTS || part->chain.count > CEK_POINTWISE_INSTRUCTIONS)
        return cek__fail(CEK_INVALID, "%d inputs and %u instructions, it takes %d and %d", part->inputs,
                         part->chain.count, CEK__PART_INPUTS, CEK_POINTWISE_INSTRUCTIONS);
    if (part->inputs == 0 && part->chain.count == 0)
        return cek__fail(CEK_INVALID, "neither inputs nor instructions");
    for (uint32_t i = 0; i < part->chain.count; i++) {
        const cek_pointwise_instruction *in = &part->chain.code[i];
        const uint32_t read[3] = { in->a, in->b, in->c };

        if (in->code < CEK_PW_CONST || in->code > CEK_PW_VALID)
            return cek__fail(CEK_INVALID, "instruction %u has the unknown code %u", i, in->code);
        for (int k = 0; k < 3; k++) { /* an operand that is not read is 0 */
            if (read[k] > 0 && k >= cek__code_reads(in->code))
                return cek__fail(CEK_INVALID, "instruction %u has %d operands, it takes %d", i, k + 1,
                                 cek__code_reads(in->code));
            if (k < cek__code_reads(in->code) && read[k] >= (uint32_t)part->inputs + i)
                return cek__fail(CEK_INVALID, "instruction %u reads value %u, before which it stands", i, read[k]);
        }
    }
    return CEK_OK;
}

static bool knows_padding(const cek__part *part)
{
    for (uint32_t i = 0; i < part->chain.count; i++)
        if (part->chain.code[i].code == CEK_PW_VALID)
            return true;
    return false;
}

/* The only axis that counts samples; -1: there is none, or several. */
static int samples_axis(const cek__dims *dims)
{
    for (int i = 0; i < dims->rank; i++)
        if (dims->samples == 1u << i)
            return i;
    return -1;
}

static cek_status chain_infer(const cek__graph *graph, const cek__part *part, cek__flow out[CEK__PART_OUTPUTS])
{
    cek_status st;
    cek__dims *y = &out[0].dims;

    CEK_TRY(code_check(part));
    out[0].type = part->type;
    y->rank = part->dims.rank; /* more than the inputs have */
    for (int n = 0; n < part->inputs; n++)
        if (graph->flows[part->input[n]].dims.rank > y->rank)
            y->rank = graph->flows[part->input[n]].dims.rank;
    for (int i = 0; i < y->rank; i++)
        y->size[i] = part->dims.rank ? part->dims.size[i] : 1;
    y->samples = part->dims.samples;
    y->outside = part->dims.outside;
    for (int n = 0; n < part->inputs; n++) {
        const cek__dims *x = &graph->flows[part->input[n]].dims;

        for (int i = 0; i < y->rank; i++) {
            int k = cek__axis_under(x, y, i);
            bool first = y->size[i] == 1 && !(y->samples >> i & 1);

            if (k < 0)
                continue;
            if (!first && (x->size[k] != y->size[i] || (x->samples >> k & 1) != (y->samples >> i & 1)))
                CEK_FAIL(CEK_INVALID, "axis %d is %lld in one input and %lld in another", i, (long long)y->size[i],
                         (long long)x->size[k]);
            if (x->samples >> k & 1 && y->samples >> i & 1 && x->outside != y->outside)
                CEK_FAIL(CEK_INVALID, "would mix samples along axis %d", i);
            y->size[i] = x->size[k];
            y->samples |= (x->samples >> k & 1) << i;
            y->outside = x->samples >> k & 1 ? x->outside : y->outside;
        }
    }
    if (knows_padding(part) && (samples_axis(y) < 0 || y->outside))
        CEK_FAIL(CEK_INVALID, "it tells samples from padding, and has not one axis of samples");
    return CEK_OK;
out:
    return st;
}

cek_status cek__chain(cek__graph *graph, uint32_t code, int a, int b, int *out)
{
    cek__part part = { .kind = CEK__PART_CHAIN, .inputs = b ? 2 : 1, .input = { a, b }, .chain = { .count = 1 } };

    part.chain.code[0] = (cek_pointwise_instruction){ .code = code, .b = b ? 1 : 0 };
    return cek__graph_add(graph, &part, out);
}

cek_status cek__cast(cek__graph *graph, int x, cek_dtype type, int *out)
{
    cek__part part = { .kind = CEK__PART_CHAIN, .inputs = 1, .input = { x }, .type = type, .chain = { .count = 1 } };

    part.chain.code[0] = (cek_pointwise_instruction){ .code = CEK_PW_COPY };
    return cek__graph_add(graph, &part, out);
}

cek_status cek__constant(cek__graph *graph, double value, const cek__dims *dims, int *out)
{
    cek__part part = { .kind = CEK__PART_CHAIN, .dims = *dims, .chain = { .count = 1 } };

    part.chain.code[0] = (cek_pointwise_instruction){ .code = CEK_PW_CONST, .imm = value };
    return cek__graph_add(graph, &part, out);
}

cek_status cek__expand(cek__graph *graph, int x, const cek__dims *dims, int *out)
{
    cek__part part = { .kind = CEK__PART_CHAIN, .inputs = 1, .input = { x }, .dims = *dims, .chain = { .count = 1 } };

    part.chain.code[0] = (cek_pointwise_instruction){ .code = CEK_PW_COPY };
    *out = x;
    return cek__dims_equal(&graph->flows[x].dims, dims) ? CEK_OK : cek__graph_add(graph, &part, out);
}

/* ---- gradient ---- */

/* The axes that an input was broadcast along are summed over. */
static cek_status unbroadcast(cek__graph *graph, const cek__dims *x, int dy, int *out)
{
    cek_status st;
    const cek__dims y = graph->flows[dy].dims;
    uint32_t axes = 0;

    for (int i = 0; i < y.rank; i++)
        if (cek__axis_under(x, &y, i) < 0 && (y.size[i] != 1 || y.samples >> i & 1))
            axes |= 1u << i;
    *out = dy;
    if (axes)
        CEK_TRY(cek__sum(graph, dy, axes, out));
    return cek__view(graph, *out, x, out);
out:
    return st;
}

static cek_status chain_gradient(cek__backward *to, int part, int dy)
{
    cek_status st;
    cek__graph *graph = to->graph;
    const cek__part p = graph->parts[part];

    if (p.chain.normalises)
        return cek__normalise_back(to, part, dy);
    for (int n = 0; n < p.inputs; n++) {
        const cek__dims dims = graph->flows[p.input[n]].dims;
        int gradient;

        if (!graph->flows[p.input[n]].needs_gradient)
            continue;
        CEK_TRY(cek__chain_back(graph, &p, n, dy, &gradient));
        if (!gradient)
            continue;
        CEK_TRY(unbroadcast(graph, &dims, gradient, &gradient));
        CEK_TRY(cek__contribute(to, p.input[n], gradient));
    }
    return CEK_OK;
out:
    return st;
}

/* ---- how it lies ---- */

/* Inputs that have all of the axes of the output's image lie as it does, which is as the first of them lies. */
static bool covers(const cek__dims *x, const cek__dims *y, cek__image image)
{
    int64_t elements = 1;

    for (int i = y->rank; i-- > 0 && elements < image.channels * image.pixels;) {
        if (cek__axis_under(x, y, i) < 0 && y->size[i] != 1)
            return false;
        elements *= y->size[i];
    }
    return true;
}

static cek_status chain_place(cek__graph *graph, int part)
{
    cek_status st;
    const cek__part p = graph->parts[part];
    const cek__dims y = graph->flows[p.output[0]].dims;
    cek__image image = { 0, 0 };
    int order[CEK_RANK_MAX];

    for (int n = 0; n < p.inputs && image.channels == 0; n++) {
        const cek__flow *x = &graph->flows[p.input[n]];

        if (x->image.channels && covers(&x->dims, &y, x->image))
            image = x->image;
    }
    /* Two vectors in different orders meet in that of their axes. */
    for (int n = 0; n < p.inputs && y.rank < 3; n++) {
        const cek__flow *x = &graph->flows[p.input[n]];

        if (!x->open && covers(&x->dims, &y, image) && !cek__image_equal(x->image, image))
            image = (cek__image){ 0, 0 };
    }
    /* No strides tell what is broadcast within channels and pixels that are not axes. */
    for (int n = 0; n < p.inputs; n++) {
        const cek__dims *x = &graph->flows[p.input[n]].dims;

        if (!covers(x, &y, image) && cek__dims_elements(x, 0, x->rank, 1) > 1 && !cek__axes_order(&y, image, order))
            image = (cek__image){ 0, 0 };
    }
    for (int n = 0; n < p.inputs; n++)
        if (!graph->flows[p.input[n]].strided || !cek__axes_order(&y, image, order))
            CEK_TRY(cek__want(graph, part, n,
                              covers(&graph->flows[p.input[n]].dims, &y, image) ? image : (cek__image){ 0, 0 }));
    graph->flows[p.output[0]].image = image;
    return CEK_OK;
out:
    return st;
}

/* ---- lowering ---- */

/* VALID's rows are along the first axis that is described. */
static void samples_first(const cek__dims *y, int order[CEK_RANK_MAX], cek_pointwise_desc *desc)
{
    int axis = samples_axis(y), at = 0;

    while (order[at] != axis)
        at++;
    memmove(order + 1, order, (size_t)at * sizeof *order);
    order[0] = axis;
    desc->rows_per_sample = (uint64_t)y->size[axis];
}

/* The axes of y in this order, and how the inputs lie under them. Along one element there is no stride: whether an
 * input lies as the output does, which may take its place, does not hang on an axis of one. */
static void axes_describe(const cek__lowering *l, const cek__part *p, const int order[CEK_RANK_MAX],
                          cek_pointwise_input *inputs, cek_pointwise_desc *desc)
{
    const cek__flow *y = &l->graph->flows[p->output[0]];
    int64_t strides[CEK_RANK_MAX];

    desc->rank = (uint32_t)y->dims.rank;
    cek__strides(l->graph, p->output[0], l->rows, strides);
    for (int at = 0; at < y->dims.rank; at++) {
        desc->shape[at] = (uint64_t)cek__dims_elements(&y->dims, order[at], order[at] + 1, l->rows);
        desc->out_strides[at] = desc->shape[at] > 1 ? strides[order[at]] : 0;
    }
    for (int n = 0; n < p->inputs; n++) {
        const cek__flow *x = &l->graph->flows[p->input[n]];

        cek__strides(l->graph, p->input[n], l->rows, strides);
        for (int at = 0; at < y->dims.rank; at++) {
            int k = cek__axis_under(&x->dims, &y->dims, order[at]);

            inputs[n].strides[at] = k < 0 || desc->shape[at] == 1 ? 0 : strides[k];
        }
    }
}

/* In one axis, where all lie alike. */
static void operands_describe(const cek__lowering *l, const cek__part *p, cek_pointwise_input *inputs,
                              cek_pointwise_desc *desc)
{
    const cek__flow *y = &l->graph->flows[p->output[0]];
    int order[CEK_RANK_MAX];
    bool padding = knows_padding(p), alike = !padding || y->dims.samples == 1;

    for (int n = 0; n < p->inputs; n++) {
        alike &= cek__dims_equal(&l->graph->flows[p->input[n]].dims, &y->dims) &&
                 cek__image_equal(l->graph->flows[p->input[n]].image, y->image) &&
                 !l->graph->flows[p->input[n]].strided;
        inputs[n] = (cek_pointwise_input){ .type = cek__lower_type(l, p->input[n]), .strides = { 1 } };
    }
    if (alike) {
        desc->rank = 1;
        desc->shape[0] = cek__lower_elements(l, p->output[0]);
        desc->out_strides[0] = 1;
        desc->rows_per_sample = padding ? desc->shape[0] / (uint64_t)l->rows : 0;
        return;
    }
    cek__axes_order(&y->dims, y->image, order);
    if (padding)
        samples_first(&y->dims, order, desc);
    axes_describe(l, p, order, inputs, desc);
}

static cek_status chain_lower(cek__lowering *l, int part)
{
    cek_status st;
    const cek__part *p = &l->graph->parts[part];
    cek_pointwise_input inputs[CEK__PART_INPUTS];
    int operands[CEK__SLOTS] = { 0 };
    cek__destination to = { 0 };
    cek_pointwise_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_POINTWISE },
        .out_type = cek__lower_type(l, p->output[0]),
        .inputs = inputs,
        .instructions = p->chain.code,
        .input_count = (uint32_t)p->inputs,
        .input_size = sizeof *inputs,
        .instruction_count = p->chain.count,
        .instruction_size = sizeof *p->chain.code,
    };

    operands_describe(l, p, inputs, &desc);
    for (int n = 0; n < p->inputs; n++)
        operands[CEK_POINTWISE_IN0 + n] = cek__lower_read(l, p->input[n]);
    CEK_TRY(cek__lower_write(l, p->output[0], CEK_POINTWISE_OUT, &to));
    operands[CEK_POINTWISE_OUT] = to.value;
    if (knows_padding(p))
        operands[CEK_POINTWISE_BATCH] = l->batch;
    return cek__lower_emit(l, part, &desc.op, operands, &to);
out:
    return st;
}

const cek__part_class cek__part_chain = { .name = "chain",
                                          .outputs = 1,
                                          .infer = chain_infer,
                                          .gradient = chain_gradient,
                                          .place = chain_place,
                                          .types = CEK__TYPES_ANY,
                                          .lower = chain_lower,
                                          .adds = true };
