/* fold.c - see fold.h. */
#include "nn/graph/fold.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "nn/graph/cut.h"
#include "nn/graph/parts.h"

/* ---- what is known ---- */

static bool is_given(const cek__part *part)
{
    return part->kind == CEK__PART_PARAMETER || part->kind == CEK__PART_BUFFER;
}

/* Samples come in by parts without inputs, or with axes of them. */
static bool is_known(const cek__graph *graph, const cek__part *part)
{
    bool known = part->kind != CEK__PART_RANDOM && part->kind != CEK__PART_DROPOUT &&
                 (part->inputs > 0 || part->kind == CEK__PART_CHAIN) && part->outputs > 0 &&
                 !graph->flows[part->output[0]].dims.samples;

    for (int k = 0; k < part->inputs; k++)
        known &= cek__graph_giver(graph, part->input[k])->known;
    return known || is_given(part);
}

static void known_mark(cek__graph *graph)
{
    for (int i = 0; i < graph->length; i++) {
        cek__part *part = cek__graph_at(graph, i);

        part->known = is_known(graph, part);
    }
}

/* Those that are known in their order, then the others in theirs; what was taken out is gone. */
static cek_status known_first(cek__graph *graph)
{
    cek_status st;
    int *others, known = 0, count = 0;

    CEK_TRY(cek__alloc_array((size_t)graph->length + 1, sizeof *others, &others));
    for (int i = 0; i < graph->length; i++) {
        int part = graph->sequence[i];

        if (part && graph->parts[part].known)
            graph->sequence[known++] = part;
        else if (part)
            others[count++] = part;
    }
    memcpy(graph->sequence + known, others, (size_t)count * sizeof *others);
    graph->length = known + count;
    free(others);
out:
    return st;
}

/* ---- a y + b ---- */

static uint32_t without(uint32_t value, uint32_t y, uint32_t inputs)
{
    return value == y ? inputs - 1 : value - (value > y && value < inputs);
}

/* Of a chain whose value `y` is its input of that number: the chain of the other inputs that gives a, its first
 * instruction being the 1 that stands for y. False: what it gives is not a y + b, or does not fit. *one: a is 1. */
static bool factor_of(const cek__part *chain, uint32_t y, cek__part *out, bool *one)
{
    bool of_y[CEK__PART_INPUTS + CEK_POINTWISE_INSTRUCTIONS] = { false };
    const uint32_t n = (uint32_t)chain->inputs;

    *one = true;
    if (chain->chain.count == 0 || chain->chain.count >= CEK_POINTWISE_INSTRUCTIONS)
        return false;
    *out = (cek__part){ .kind = CEK__PART_CHAIN, .inputs = (int)n - 1, .chain = { .count = chain->chain.count + 1 } };
    for (uint32_t k = 0; k < n; k++)
        out->input[without(k, y, n)] = chain->input[k]; /* y's is beyond the end */
    out->chain.code[0] = (cek_pointwise_instruction){ .code = CEK_PW_CONST, .imm = 1 };
    of_y[y] = true;
    for (uint32_t i = 0; i < chain->chain.count; i++) {
        cek_pointwise_instruction in = chain->chain.code[i];
        const int reads = cek__code_reads(in.code);
        const bool a = reads > 0 && of_y[in.a], b = reads > 1 && of_y[in.b], c = reads > 2 && of_y[in.c];
        const uint32_t from = without(a ? in.a : in.b, y, n);

        of_y[n + i] = a || b || c;
        in.a = reads > 0 ? without(in.a, y, n) : 0;
        in.b = reads > 1 ? without(in.b, y, n) : 0;
        in.c = reads > 2 ? without(in.c, y, n) : 0;
        if (of_y[n + i])
            switch (in.code) {
            case CEK_PW_COPY: break;
            case CEK_PW_ADD_IMM: in = (cek_pointwise_instruction){ .code = CEK_PW_COPY, .a = from }; break;
            case CEK_PW_ADD:
            case CEK_PW_SUB:
                *one &= a && b ? false : in.code == CEK_PW_ADD || a;
                if (a != b)
                    in = (cek_pointwise_instruction){ .code = CEK_PW_MUL_IMM,
                                                      .a = from,
                                                      .imm = in.code == CEK_PW_SUB && b ? -1 : 1 };
                break;
            case CEK_PW_MUL:
            case CEK_PW_DIV:
                if (b && (a || in.code == CEK_PW_DIV))
                    return false;
                *one = false;
                break;
            case CEK_PW_MUL_IMM: *one = false; break;
            default: return false;
            }
        out->chain.code[i + 1] = in;
    }
    return of_y[n + chain->chain.count - 1];
}

/* ---- products ---- */

/* Weights that can be multiplied and then have their type: of those that are rounded, parameters with the range of
 * floats, which are somewhere as they were before. */
static bool can_scale(const cek__flow *weights, const cek__part *giver)
{
    return weights->type == CEK_DTYPE_NONE || (weights->type == CEK_BF16 && giver->kind == CEK__PART_PARAMETER);
}

/* How the weights of a product lie, whose columns or channels are one axis of them. */
typedef struct weights {
    int axis;        /* of what the product gives */
    int64_t outputs; /* along it */
    bool first;      /* of the weights' elements it is the outermost, else the innermost */
} weights;

static bool weights_of(const cek__graph *graph, const cek__part *product, const cek__folding *folding, weights *out)
{
    const cek__flow *w = &graph->flows[product->input[1]], *y = &graph->flows[product->output[0]];
    const cek__part *giver = cek__graph_giver(graph, product->input[1]);
    const cek__matrix *b = &product->product.b;

    if (product->known || !giver->known ||
        (product->inputs > 2 && !cek__graph_giver(graph, product->input[2])->known) || !can_scale(w, giver) ||
        w->strided || w->open ||
        (giver->kind == CEK__PART_PARAMETER && folding->divided && folding->divided[giver->parameter]))
        return false;
    if (product->kind == CEK__PART_CONV) {
        *out = (weights){ 1, w->dims.size[0], true };
        return true;
    }
    if (product->kind != CEK__PART_PRODUCT || b->batch || (b->transposed ? b->split : w->dims.rank - b->split) != 1 ||
        (!b->transposed && w->image.channels))
        return false;
    *out = (weights){ y->dims.rank - 1, w->dims.size[b->transposed ? 0 : w->dims.rank - 1], b->transposed };
    return true;
}

/* One element for each of y's elements along that axis, or one for all. */
static bool is_along(const cek__flow *x, const cek__dims *y, int axis)
{
    for (int k = 0; k < x->dims.rank; k++)
        if (x->dims.size[k] != 1 && k + (y->rank - x->dims.rank) != axis)
            return false;
    return x->type == CEK_DTYPE_NONE && !x->image.channels && !x->open;
}

/* The only input that is not known; the others are numbers of its channels. -1: there is none such. */
static int input_of(const cek__graph *graph, const cek__part *chain, const cek__dims *y)
{
    int found = -1;

    for (int k = 0; k < chain->inputs; k++) {
        if (cek__graph_giver(graph, chain->input[k])->known)
            continue;
        if (found >= 0)
            return -1;
        found = k;
    }
    return found >= 0 && cek__dims_equal(&graph->flows[chain->input[found]].dims, y) ? found : -1;
}

static cek_status view(cek__graph *graph, int x, cek__dims dims, int *out)
{
    return cek__graph_add(graph, &(cek__part){ .kind = CEK__PART_VIEW, .inputs = 1, .input = { x }, .dims = dims },
                          out);
}

/* [1,C,1,..], as y has its channels. */
static cek__dims along(const cek__dims *y, const weights *w)
{
    cek__dims dims = { .rank = y->rank };

    for (int i = 0; i < y->rank; i++)
        dims.size[i] = i == w->axis ? w->outputs : 1;
    return dims;
}

/* Weights as they were before they were rounded. */
static cek_status unrounded(cek__graph *graph, int *flow)
{
    cek_status st = CEK_OK;
    cek__flow exact = graph->flows[*flow];
    const cek__part parameter = *cek__graph_giver(graph, *flow);

    if (exact.type == CEK_DTYPE_NONE)
        return CEK_OK;
    CEK_TRY(cek__graph_add(graph, &parameter, flow));
    exact.type = CEK_DTYPE_NONE;
    exact.part = graph->flows[*flow].part;
    graph->flows[*flow] = exact;
out:
    return st;
}

/* The weights times a, lying as they do and of their type. */
static cek_status weights_scale(cek__graph *graph, cek__part *factor, const cek__dims *y, const weights *w, int *flow)
{
    cek_status st;
    const cek__flow whole = graph->flows[*flow];
    const int64_t rest = cek__dims_elements(&whole.dims, 0, whole.dims.rank, 1) / w->outputs;
    cek__part scale = { .kind = CEK__PART_CHAIN, .inputs = 2, .type = whole.type, .chain = { .count = 1 } };

    factor->dims = along(y, w);
    CEK_TRY(cek__graph_add(graph, factor, &scale.input[1]));
    CEK_TRY(view(graph, scale.input[1],
                 (cek__dims){ .rank = 2, .size = { w->first ? w->outputs : 1, w->first ? 1 : w->outputs } },
                 &scale.input[1]));
    CEK_TRY(unrounded(graph, flow));
    CEK_TRY(view(graph, *flow,
                 (cek__dims){ .rank = 2, .size = { w->first ? w->outputs : rest, w->first ? rest : w->outputs } },
                 &scale.input[0]));
    scale.chain.code[0] = (cek_pointwise_instruction){ .code = CEK_PW_MUL, .b = 1 };
    CEK_TRY(cek__graph_add(graph, &scale, flow));
    CEK_TRY(view(graph, *flow, whole.dims, flow));
    graph->flows[*flow].image = whole.image;
out:
    return st;
}

/* What the chain makes of the bias that is there, or of 0. */
static cek_status bias_make(cek__graph *graph, const cek__part *chain, int y_input, int bias, const cek__dims *y,
                            const weights *w, int *out)
{
    cek_status st;
    const cek__dims dims = along(y, w);
    cek__part part = { .kind = CEK__PART_CHAIN, .inputs = chain->inputs, .dims = dims, .chain = chain->chain };

    memcpy(part.input, chain->input, sizeof part.input);
    if (bias)
        CEK_TRY(view(graph, bias, dims, &part.input[y_input]));
    else
        CEK_TRY(cek__constant(graph, 0, &dims, &part.input[y_input]));
    CEK_TRY(cek__graph_add(graph, &part, out));
    CEK_TRY(view(graph, *out, (cek__dims){ .rank = 1, .size = { w->outputs } }, out));
out:
    return st;
}

/* The chain at that place, if it can go into the product before it. */
static cek_status chain_take(cek__graph *graph, const cek__folding *folding, int at)
{
    cek_status st;
    const int index = graph->sequence[at];
    const cek__part chain = graph->parts[index];
    const cek__flow y = graph->flows[chain.output[0]];
    const int k = chain.kind == CEK__PART_CHAIN && chain.inputs > 1 ? input_of(graph, &chain, &y.dims) : -1;
    const int before = graph->part_count, taken = k < 0 ? CEK__NOTHING : graph->flows[chain.input[k]].part;
    cek__part product = graph->parts[taken], factor;
    weights w;
    bool one;

    if (!taken || y.type != graph->flows[chain.input[k]].type || graph->flows[chain.input[k]].readers != 1 ||
        product.output[0] != chain.input[k] || !cek__image_equal(y.image, graph->flows[chain.input[k]].image) ||
        (product.kind != CEK__PART_PRODUCT && product.kind != CEK__PART_CONV) ||
        !weights_of(graph, &product, folding, &w) || !factor_of(&chain, (uint32_t)k, &factor, &one))
        return CEK_OK;
    for (int i = 0; i < chain.inputs; i++)
        if (i != k && !is_along(&graph->flows[chain.input[i]], &y.dims, w.axis))
            return CEK_OK;
    graph->node = product.node;
    graph->name = product.name;
    if (!one)
        CEK_TRY(weights_scale(graph, &factor, &y.dims, &w, &product.input[1]));
    CEK_TRY(bias_make(graph, &chain, k, product.inputs > 2 ? product.input[2] : CEK__NOTHING, &y.dims, &w,
                      &product.input[2]));
    product.inputs = 3;
    product.output[0] = chain.output[0];
    graph->flows[chain.output[0]].part = taken;
    graph->parts[taken] = product;
    graph->sequence[at] = CEK__NOTHING;
    for (int i = before; i < graph->part_count; i++)
        graph->parts[i].known = true;
    return CEK_OK;
out:
    return st;
}

cek_status cek__fold(cek__graph *graph, const cek__folding *folding)
{
    cek_status st;
    const int length = graph->length;

    known_mark(graph);
    cek__graph_count_readers(graph);
    for (int i = 0; i < length && folding->scales; i++)
        CEK_TRY(chain_take(graph, folding, i));
    CEK_TRY(known_first(graph));
    cek__graph_prune(graph);
    cek__graph_number(graph);
out:
    return st;
}
