/* fuse.c - see fuse.h. Each rule looks at a part that was emitted before what it takes in. */
#include "nn/graph/fuse.h"

#include <limits.h>
#include <stdlib.h>

#include "core/base/alloc.h"
#include "nn/graph/join.h"
#include "nn/graph/parts.h"

static bool is_product(const cek__part *part)
{
    return part->kind == CEK__PART_PRODUCT || part->kind == CEK__PART_CONV || part->kind == CEK__PART_CONV_DATA;
}

/* A chain of one instruction with that code over both inputs in their order. */
static bool is_pair(const cek__part *part, uint32_t code)
{
    return part->kind == CEK__PART_CHAIN && part->inputs == 2 && part->chain.count == 1 &&
           part->chain.code[0].code == code && part->chain.code[0].a == 0 && part->chain.code[0].b == 1;
}

/* Where a flow is given in the sequence; -1: from the beginning. */
static int position(const cek__graph *graph, int flow)
{
    const cek__part *giver = cek__graph_giver(graph, flow);

    return giver->kind == CEK__PART_PARAMETER ? -1 : giver->place;
}

/* Takes what stands there out of the sequence; removed_close: once for all of a rule, before anybody else looks. */
static void remove_at(cek__graph *graph, int at)
{
    graph->sequence[at] = CEK__NOTHING;
}

static void removed_close(cek__graph *graph)
{
    int kept = 0;

    for (int i = 0; i < graph->length; i++)
        if (graph->sequence[i])
            graph->sequence[kept++] = graph->sequence[i];
    graph->length = kept;
}

/* The product or convolution that alone feeds input k of a part, as it is or viewed by other axes; NULL:
 * there is none. */
static cek__part *feeder(const cek__graph *graph, const cek__part *part, int k)
{
    int flow = part->input[k];
    cek__part *giver = cek__graph_giver(graph, flow);

    while (giver->kind == CEK__PART_VIEW && graph->flows[flow].readers == 1) {
        flow = giver->input[0];
        giver = cek__graph_giver(graph, flow);
    }
    return is_product(giver) && giver->output[0] == flow && graph->flows[flow].readers == 1 && !giver->follower ? giver
                                                                                                                : NULL;
}

/* Its output stands for the part's, axis by axis and in its type. */
static bool gives_all(const cek__graph *graph, const cek__part *giver, const cek__part *part)
{
    const cek__flow *from = &graph->flows[giver->output[0]], *to = &graph->flows[part->output[0]];

    return cek__dims_equal(&from->dims, &to->dims) && from->type == to->type;
}

static void output_take(cek__graph *graph, cek__part *part, const cek__part *from)
{
    part->output[0] = from->output[0];
    graph->flows[from->output[0]].part = (int)(part - graph->parts);
}

/* ---- bias ---- */

/* The vector that a bias broadcast over y is a view of, one element for each of y's channels or columns; 0:
 * it is none. */
static int bias_vector(const cek__graph *graph, const cek__part *product, const cek__part *add)
{
    const cek__dims *y = &graph->flows[add->output[0]].dims, *b = &graph->flows[add->input[1]].dims;
    int axis = product->kind == CEK__PART_CONV ? 1 : y->rank - 1, vector = add->input[1];

    if (y->samples >> axis & 1)
        return CEK__NOTHING;
    for (int i = 0; i < y->rank; i++) {
        int k = i - (y->rank - b->rank);
        int64_t size = k < 0 ? 1 : b->size[k];

        if ((k >= 0 && b->samples >> k & 1) || size != (i == axis ? y->size[axis] : 1))
            return CEK__NOTHING;
    }
    while (cek__graph_giver(graph, vector)->kind == CEK__PART_VIEW && graph->flows[vector].dims.rank > 1)
        vector = cek__graph_giver(graph, vector)->input[0];
    return graph->flows[vector].dims.rank == 1 && !graph->flows[vector].strided &&
                   graph->flows[vector].type == CEK_DTYPE_NONE
               ? vector
               : CEK__NOTHING;
}

/* Columns of a product are its last axis alone. */
static bool has_columns(const cek__graph *graph, const cek__part *product)
{
    const cek__matrix *b = &product->product.b;

    return (b->transposed ? b->split - b->batch : graph->flows[product->input[1]].dims.rank - b->split) == 1;
}

static bool takes_bias(const cek__graph *graph, const cek__part *part)
{
    return part->inputs == 2 && part->kind != CEK__PART_CONV_DATA &&
           (part->kind == CEK__PART_CONV || has_columns(graph, part));
}

static void biases_take(cek__graph *graph)
{
    for (int i = 0; i < graph->length; i++) {
        const cek__part *add = cek__graph_at(graph, i);
        cek__part *product;
        int bias;

        if (!is_pair(add, CEK_PW_ADD) || !(product = feeder(graph, add, 0)) || !gives_all(graph, product, add) ||
            !takes_bias(graph, product) || !(bias = bias_vector(graph, product, add)) ||
            position(graph, bias) > position(graph, product->output[0]))
            continue;
        product->input[product->inputs++] = bias;
        output_take(graph, product, add);
        remove_at(graph, i);
    }
    removed_close(graph);
}

/* ---- sums beside gradients of weights ---- */

/* The axes that stay when dy is summed are those that the gradient of the weights keeps of it. */
static bool sums_beside(const cek__graph *graph, const cek__part *weights, const cek__part *reduce)
{
    const cek__dims *dy = &graph->flows[reduce->input[0]].dims;
    uint32_t all = (1u << dy->rank) - 1, kept = all & ~reduce->reduce.axes;

    if (weights->output[1] || reduce->reduce.function != CEK_REDUCE_SUM || reduce->inputs != 1)
        return false;
    if (weights->kind == CEK__PART_CONV_WEIGHTS)
        return weights->input[1] == reduce->input[0] && kept == 2;
    return weights->kind == CEK__PART_PRODUCT && weights->input[0] == reduce->input[0] &&
           weights->product.a.transposed && weights->product.a.batch == 0 &&
           kept == (all & ~((1u << weights->product.a.split) - 1));
}

/* Who reads a flow: the first of all, by place, and in their order the backward parts that give weights'
 * gradients of it. */
typedef struct readers {
    int *first;   /* by flow: a place; INT_MAX: nobody */
    int *weights; /* by flow: a part, whose successor is next[part] */
    int *next;
} readers;

/* The flow of which a part gives the gradient of weights; CEK__NOTHING: it gives none. */
static int summed_beside(const cek__part *part)
{
    if (!part->backward || (part->kind != CEK__PART_PRODUCT && part->kind != CEK__PART_CONV_WEIGHTS))
        return CEK__NOTHING;
    return part->input[part->kind == CEK__PART_CONV_WEIGHTS];
}

static void readers_clear(readers *r)
{
    free(r->first);
    free(r->weights);
    free(r->next);
}

static cek_status readers_find(const cek__graph *graph, readers *r)
{
    cek_status st;

    *r = (readers){ 0 };
    CEK_TRY(cek__alloc_array((size_t)graph->flow_count, sizeof *r->first, &r->first));
    CEK_TRY(cek__calloc((size_t)graph->flow_count, sizeof *r->weights, &r->weights));
    CEK_TRY(cek__calloc((size_t)graph->part_count, sizeof *r->next, &r->next));
    for (int i = 0; i < graph->flow_count; i++)
        r->first[i] = INT_MAX;
    for (int i = graph->length; i-- > 0;) { /* so that lists begin with the first */
        const cek__part *part = cek__graph_at(graph, i);
        int flow = summed_beside(part);

        for (int k = 0; k < part->inputs; k++)
            r->first[part->input[k]] = part->place;
        if (flow) {
            r->next[graph->sequence[i]] = r->weights[flow];
            r->weights[flow] = graph->sequence[i];
        }
    }
    return CEK_OK;
out:
    readers_clear(r);
    return st;
}

static cek_status sums_take(cek__graph *graph)
{
    cek_status st;
    readers r;

    CEK_TRY(readers_find(graph, &r));
    for (int i = 0; i < graph->length; i++) {
        const cek__part *reduce = cek__graph_at(graph, i);

        if (reduce->kind != CEK__PART_REDUCE || !reduce->backward)
            continue;
        for (int k = r.weights[reduce->input[0]]; k; k = r.next[k]) {
            cek__part *weights = &graph->parts[k];

            if (!sums_beside(graph, weights, reduce) || r.first[reduce->output[0]] < weights->place)
                continue;
            weights->outputs = 2;
            weights->output[1] = reduce->output[0];
            graph->flows[reduce->output[0]].part = k;
            remove_at(graph, i);
            break;
        }
    }
    removed_close(graph);
    readers_clear(&r);
out:
    return st;
}

/* ---- gradients that are added in place ---- */

/* The pad that alone feeds input k of a part, all of what it does not copy being 0; NULL: there is none. */
static cek__part *padder(const cek__graph *graph, const cek__part *part, int k)
{
    cek__part *giver = cek__graph_giver(graph, part->input[k]);
    const cek__flow *y = &graph->flows[part->input[k]];

    return giver->kind == CEK__PART_PAD && giver->pad.value == 0 && y->readers == 1 && !y->strided ? giver : NULL;
}

/* Its memory is not another's. */
static bool is_own(const cek__graph *graph, int flow)
{
    cek__part_kind kind = cek__graph_giver(graph, flow)->kind;

    return kind != CEK__PART_VIEW && kind != CEK__PART_PERMUTE && !graph->flows[flow].strided;
}

/* base + product, where the base is computed before, is arena's own, and nobody else reads it. */
static void sums_add_in_place(cek__graph *graph)
{
    for (int i = 0; i < graph->length; i++) {
        const cek__part *add = cek__graph_at(graph, i);
        cek__part *product;
        int base;

        if (!is_pair(add, CEK_PW_ADD) || !add->backward ||
            (!(product = feeder(graph, add, 1)) && !(product = padder(graph, add, 1))) || product->base ||
            !gives_all(graph, product, add) || product->kind == CEK__PART_CONV)
            continue;
        base = add->input[0];
        if (graph->flows[base].readers != 1 || !is_own(graph, base) || !cek__graph_giver(graph, base)->backward ||
            !cek__dims_equal(&graph->flows[base].dims, &graph->flows[add->output[0]].dims) ||
            graph->flows[base].type != graph->flows[add->output[0]].type ||
            position(graph, base) > position(graph, product->output[0]))
            continue;
        product->base = base;
        output_take(graph, product, add);
        remove_at(graph, i);
    }
    removed_close(graph);
}

/* ---- sums in place of what is cut out of a product ---- */

/* What is cut out of a flow, along one axis. */
typedef struct cuts {
    int count, axis;
    int64_t low, high; /* all of them lie there */
    bool apart;        /* and none within another */
} cuts;

static void cut_count(const cek__graph *graph, const cek__part *cut, cuts *all)
{
    const cek__dims *dims = &graph->flows[cut->input[0]].dims;
    int axis = 0;

    while (cut->pad.lo[axis] == 0 && cut->pad.hi[axis] == 0 && axis < dims->rank - 1)
        axis++;
    const int64_t low = -cut->pad.lo[axis], high = dims->size[axis] + cut->pad.hi[axis];

    for (int i = axis + 1; i < dims->rank; i++)
        all->apart &= cut->pad.lo[i] == 0 && cut->pad.hi[i] == 0;
    if (all->count++ == 0)
        *all = (cuts){ .count = 1, .axis = axis, .low = low, .high = high, .apart = all->apart };
    all->apart &= all->axis == axis && (all->count == 1 || low >= all->high || high <= all->low);
    all->low = low < all->low ? low : all->low;
    all->high = high > all->high ? high : all->high;
}

static bool is_cut(const cek__graph *graph, const cek__part *part)
{
    return part->kind == CEK__PART_PAD && graph->flows[part->output[0]].strided;
}

/* By flow. */
static cek_status cuts_find(const cek__graph *graph, cuts **out)
{
    cek_status st;

    CEK_TRY(cek__calloc((size_t)graph->flow_count, sizeof **out, out));
    for (int i = 0; i < graph->flow_count; i++)
        (*out)[i].apart = true;
    for (int i = 0; i < graph->length; i++)
        if (is_cut(graph, cek__graph_at(graph, i)))
            cut_count(graph, cek__graph_at(graph, i), &(*out)[cek__graph_at(graph, i)->input[0]]);
out:
    return st;
}

/* Nobody reads the base but the sum, and what it is cut out of is a product's, of which others read other parts. */
static bool may_be_base(const cek__graph *graph, const cuts *all, int base)
{
    const cek__part *cut = cek__graph_giver(graph, base), *giver;
    const cek__flow *whole;

    if (!is_cut(graph, cut) || graph->flows[base].readers != 1)
        return false;
    whole = &graph->flows[cut->input[0]];
    giver = &graph->parts[whole->part];
    return giver->kind == CEK__PART_PRODUCT && giver->output[0] == cut->input[0] && !giver->base && !giver->known &&
           !giver->follower && all[cut->input[0]].apart && all[cut->input[0]].count == whole->readers;
}

/* base + product of steps of a sequence, where the product of all its inputs is one: the sum stays there, cut out, too.
 * Who reads it reads cuts of it, wherever they lie. */
static cek_status cuts_add_in_place(cek__graph *graph)
{
    cek_status st;
    cuts *all = NULL;

    CEK_TRY(cuts_find(graph, &all));
    for (int i = 0; i < graph->length; i++) {
        const cek__part *add = cek__graph_at(graph, i);
        cek__part *product = NULL;
        int base = CEK__NOTHING;

        for (int k = 0; k < 2 && is_pair(add, CEK_PW_ADD) && !product; k++) {
            product = feeder(graph, add, k);
            base = add->input[1 - k];
        }
        if (!product || product->kind != CEK__PART_PRODUCT || product->base || product->product.a.batch ||
            !has_columns(graph, product) || !gives_all(graph, product, add) || !may_be_base(graph, all, base) ||
            all[add->output[0]].count != graph->flows[add->output[0]].readers ||
            !cek__dims_equal(&graph->flows[base].dims, &graph->flows[add->output[0]].dims) ||
            graph->flows[base].type != graph->flows[add->output[0]].type || !cek__product_writes(graph, base) ||
            position(graph, base) > position(graph, product->output[0]))
            continue;
        product->base = base;
        output_take(graph, product, add);
        graph->flows[product->output[0]].strided = true;
        remove_at(graph, i);
    }
    removed_close(graph);
out:
    free(all);
    return st;
}

/* ---- activations and their derivatives ---- */

/* An activation of one input or a derivative of two, all that it reads of its own shape. */
static bool is_epilogue(const cek__graph *graph, const cek__part *chain)
{
    const cek_pointwise_instruction *in = &chain->chain.code[0];

    if (chain->kind != CEK__PART_CHAIN || chain->chain.count != 1 || !cek__lower_is_epilogue(in) || in->a != 0 ||
        in->b != (chain->inputs > 1) || chain->inputs != (in->code >= CEK_PW_RELU_GRAD ? 2 : 1))
        return false;
    for (int k = 0; k < chain->inputs; k++)
        if (!cek__dims_equal(&graph->flows[chain->input[k]].dims, &graph->flows[chain->output[0]].dims) ||
            graph->flows[chain->input[k]].type != graph->flows[chain->output[0]].type ||
            graph->flows[chain->input[k]].strided)
            return false;
    return true;
}

static void followers_mark(cek__graph *graph)
{
    for (int i = 0; i < graph->length; i++) {
        const cek__part *chain = cek__graph_at(graph, i);
        cek__part *product;

        if (!is_epilogue(graph, chain) || !(product = feeder(graph, chain, 0)) || product->base)
            continue;
        /* forward takes activations alone, the gradient of data their derivatives */
        if ((product->kind == CEK__PART_CONV && chain->inputs != 1) ||
            (product->kind == CEK__PART_CONV_DATA && chain->inputs != 2))
            continue;
        if (chain->inputs == 2 && position(graph, chain->input[1]) > position(graph, product->output[0]))
            continue;
        product->follower = graph->sequence[i];
    }
}

cek_status cek__fuse(cek__graph *graph, const cek__folding *folding)
{
    cek_status st;

    cek__graph_number(graph);
    cek__graph_count_readers(graph);
    biases_take(graph);
    cek__graph_prune(graph);
    if (folding)
        CEK_TRY(cek__fold(graph, folding));
    CEK_TRY(sums_take(graph));
    sums_add_in_place(graph);
    CEK_TRY(cuts_add_in_place(graph));
    cek__graph_prune(graph);
    followers_mark(graph);
    cek__graph_number(graph);
    cek__chains_join(graph);
    removed_close(graph);
out:
    return st;
}
