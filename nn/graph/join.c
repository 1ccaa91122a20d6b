/* join.c - see join.h.
 *
 * What lies between two chains and has no other reader is never written. It is not rounded to 16 bits either, unless
 * somebody asked for that: a cast stays. */
#include "nn/graph/join.h"

#include "nn/graph/cut.h"

/* Two chains as one: its inputs, and where values of the first and the second are among its own. */
typedef struct joint {
    cek__part part;
    uint32_t first[CEK__PART_INPUTS], second[CEK__PART_INPUTS]; /* of their inputs */
} joint;

/* Nothing stands between them any more. */
static bool is_next(const cek__graph *graph, const cek__part *first, const cek__part *second)
{
    int at = first->place + 1;

    while (at < second->place && !graph->sequence[at])
        at++;
    return at == second->place;
}

/* What the first one reads is kept until the second: no more than what is no longer kept between them, of one input of
 * that size; of several if the result may take the place of one of them, as what lay between did. */
static bool keeps_no_more(const cek__graph *graph, const cek__part *first, const cek__part *second)
{
    const cek__flow *between = &graph->flows[first->output[0]];
    int as_large = 0;

    for (int k = 0; k < first->inputs; k++)
        as_large += cek__dims_equal(&graph->flows[first->input[k]].dims, &between->dims);
    return as_large <= 1 || (is_next(graph, first, second) && between->type == graph->flows[second->output[0]].type);
}

static bool may_join(const cek__graph *graph, const cek__part *first, const cek__part *second)
{
    const cek__flow *between = &graph->flows[first->output[0]], *y = &graph->flows[second->output[0]];
    int reads = 0;

    for (int k = 0; k < second->inputs; k++)
        reads += second->input[k] == first->output[0];
    return first->kind == CEK__PART_CHAIN && first->chain.count > 0 && first->type == CEK_DTYPE_NONE &&
           first->known == second->known && between->readers == reads && cek__dims_equal(&between->dims, &y->dims) &&
           cek__image_equal(between->image, y->image) && keeps_no_more(graph, first, second);
}

/* The number of an input, which is one more if it is not there; -1: there is no room. */
static int input_of(cek__part *part, int flow)
{
    for (int k = 0; k < part->inputs; k++)
        if (part->input[k] == flow)
            return k;
    if (part->inputs == CEK__PART_INPUTS)
        return -1;
    part->input[part->inputs] = flow;
    return part->inputs++;
}

/* Appends the code of a chain whose inputs are those values, and whose instructions begin at value `base`. */
static void code_append(cek__part *part, const cek__part *of, const uint32_t *inputs, uint32_t base)
{
    for (uint32_t i = 0; i < of->chain.count; i++) {
        cek_pointwise_instruction in = of->chain.code[i];
        uint32_t *operand[3] = { &in.a, &in.b, &in.c };

        for (int k = 0; k < cek__code_reads(in.code); k++)
            *operand[k] = *operand[k] < (uint32_t)of->inputs ? inputs[*operand[k]]
                                                             : base + *operand[k] - (uint32_t)of->inputs;
        part->chain.code[part->chain.count++] = in;
    }
}

static bool join(const cek__part *first, const cek__part *second, joint *j)
{
    const uint32_t count = first->chain.count + second->chain.count;
    uint32_t inputs;

    j->part = *second;
    j->part.inputs = 0;
    j->part.chain.count = 0;
    if (count > CEK_POINTWISE_INSTRUCTIONS)
        return false;
    for (int k = 0; k < second->inputs + first->inputs; k++) {
        const bool own = k < second->inputs;
        const int flow = own ? second->input[k] : first->input[k - second->inputs];
        int number = own && flow == first->output[0] ? 0 : input_of(&j->part, flow);

        if (number < 0)
            return false;
        (own ? j->second : j->first)[own ? k : k - second->inputs] = (uint32_t)number;
    }
    inputs = (uint32_t)j->part.inputs;
    for (int k = 0; k < second->inputs; k++)
        if (second->input[k] == first->output[0])
            j->second[k] = inputs + first->chain.count - 1;
    code_append(&j->part, first, j->first, inputs);
    code_append(&j->part, second, j->second, inputs + first->chain.count);
    return true;
}

static void readers_count(cek__graph *graph, const cek__part *part, int by)
{
    for (int k = 0; k < part->inputs; k++)
        graph->flows[part->input[k]].readers += by;
}

/* Computed within a product, if the device can: the one that it reads, maybe by other axes. */
static bool is_follower(const cek__graph *graph, const cek__part *chain)
{
    const cek__part *giver = cek__graph_giver(graph, chain->input[0]);

    while (giver->kind == CEK__PART_VIEW)
        giver = cek__graph_giver(graph, giver->input[0]);
    return giver->follower && &graph->parts[giver->follower] == chain;
}

/* Takes in what one of its inputs is given by; false: it stays as it is. */
static bool takes_one(cek__graph *graph, cek__part *second)
{
    joint j;

    for (int k = 0; k < second->inputs; k++) {
        cek__part *first = cek__graph_giver(graph, second->input[k]);

        if (!may_join(graph, first, second) || is_follower(graph, first) || !join(first, second, &j))
            continue;
        readers_count(graph, first, -1);
        readers_count(graph, second, -1);
        readers_count(graph, &j.part, 1);
        *second = j.part;
        graph->sequence[first->place] = CEK__NOTHING;
        first->gone = true;
        return true;
    }
    return false;
}

void cek__chains_join(cek__graph *graph)
{
    for (int i = 0; i < graph->length; i++) {
        cek__part *part = cek__graph_at(graph, i);

        while (part->kind == CEK__PART_CHAIN && !is_follower(graph, part) && takes_one(graph, part)) {
        }
    }
}
