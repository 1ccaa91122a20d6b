/* types.c - looks ahead once, from the end, then goes through the sequence and gives each flow its
 * type (see types.h). */
#include "nn/graph/types.h"

#include <stdlib.h>

#include "core/base/alloc.h"
#include "nn/graph/parts.h"

/* By flow of the graph as it came. */
typedef struct note {
    bool read;        /* by parts of forward, or it is what the network gives */
    bool exact;       /* and all of those are of the loss, or come before nothing but it */
    bool multiplied;  /* by all parts that read it */
    int narrow, wide; /* its copy of that type, once there is one */
    int instead;      /* what others read for it */
} note;

typedef struct pass {
    cek__graph *graph;
    cek_dtype low;
    const bool *rounded; /* by parameter; NULL: all that can be */
    int flows;           /* that have notes */
    note *notes;
} pass;

static bool is_float(cek_dtype type)
{
    return type != CEK_U8 && type != CEK_I32;
}

static cek__types_rule rule_of(const cek__part *part)
{
    return cek__part_class_of(part->kind)->types;
}

/* ---- what is read by whom ---- */

/* Whether what it reads comes before nothing but the loss, as what it gives does. */
static bool is_of_loss(const pass *p, const cek__part *part)
{
    const note *y = &p->notes[part->output[0]];

    return rule_of(part) == CEK__TYPES_LOSS ||
           (rule_of(part) != CEK__TYPES_LOW && part->outputs && y->read && y->exact);
}

/* Who reads what it gives reads the same elements: a view; of a parameter that is kept in 16 bits, and lies as the
 * graph of training wants it, what brings it into another order. */
static bool passes_on(const pass *p, const cek__part *part)
{
    return part->kind == CEK__PART_VIEW || (p->rounded && part->kind == CEK__PART_REORDER);
}

static void readers_note(pass *p)
{
    const cek__graph *graph = p->graph;

    for (int i = 0; i < p->flows; i++)
        p->notes[i] = (note){ .exact = true, .multiplied = i != graph->result };
    p->notes[graph->result].read = graph->result != CEK__NOTHING;
    for (int i = graph->length; i-- > 0;) {
        const cek__part *part = cek__graph_at(graph, i);
        bool multiplies = rule_of(part) == CEK__TYPES_LOW ||
                          (passes_on(p, part) && p->notes[part->output[0]].multiplied);

        for (int k = 0; k < part->inputs; k++) {
            note *x = &p->notes[part->input[k]];

            x->multiplied &= multiplies;
            if (part->backward)
                continue;
            x->read = true;
            x->exact &= is_of_loss(p, part);
        }
    }
}

/* ---- casts ---- */

/* The flow in that type; the copy stands before what is appended next. */
static cek_status cast(pass *p, const cek__part *reader, int flow, cek_dtype type, int *out)
{
    cek_status st;
    cek__graph *graph = p->graph;
    int *copy = NULL, index;

    *out = flow;
    if (graph->flows[flow].type == type || !is_float(graph->flows[flow].type))
        return CEK_OK;
    if (flow < p->flows && (type == CEK_DTYPE_NONE || type == p->low))
        copy = type == CEK_DTYPE_NONE ? &p->notes[flow].wide : &p->notes[flow].narrow;
    if (copy && *copy) {
        *out = *copy;
        return CEK_OK;
    }
    graph->node = reader->node;
    graph->name = reader->name;
    graph->backward = reader->backward;
    CEK_TRY(cek__cast(graph, flow, type, out));
    index = graph->sequence[--graph->length];
    CEK_TRY(cek__part_class_of(CEK__PART_CHAIN)->place(graph, index)); /* which may want another order of it before */
    CEK_TRY(cek__graph_append(graph, index));
    if (copy)
        *copy = *out;
out:
    return st;
}

static cek_status input_cast(pass *p, int part, int k, cek_dtype type)
{
    cek_status st;
    int to;

    CEK_TRY(cast(p, &p->graph->parts[part], p->graph->parts[part].input[k], type, &to));
    p->graph->parts[part].input[k] = to;
out:
    return st;
}

/* ---- parts ---- */

static cek_dtype given_type(const pass *p, const cek__part *part, int k)
{
    return p->graph->flows[part->input[k]].type;
}

/* Of forward, and read by nothing but the loss, or the network's result. */
static bool is_exact(const pass *p, const cek__part *part)
{
    const note *y = &p->notes[part->output[0]];

    return !part->backward && y->read && y->exact;
}

/* A chain reads any types. It gives few bits where it reads few, and nothing of its own size that has more. */
static cek_dtype chain_type(const pass *p, const cek__part *part)
{
    const cek__flow *y = &p->graph->flows[part->output[0]];
    bool low = false;

    if (part->type != CEK_DTYPE_NONE || !y->dims.samples || is_exact(p, part))
        return part->type;
    for (int k = 0; k < part->inputs; k++) {
        const cek__flow *x = &p->graph->flows[part->input[k]];

        if (x->type == CEK_DTYPE_NONE && cek__dims_equal(&x->dims, &y->dims))
            return CEK_DTYPE_NONE;
        low |= x->type == p->low;
    }
    return low ? p->low : CEK_DTYPE_NONE;
}

static cek_dtype product_type(const pass *p, const cek__part *part)
{
    if (!p->graph->flows[part->output[0]].dims.samples)
        return CEK_DTYPE_NONE;
    return part->kind == CEK__PART_PRODUCT && is_exact(p, part) ? CEK_DTYPE_NONE : p->low;
}

/* All inputs that are what is moved, in one type: the one with few bits if one of them has. */
static cek_status follow(pass *p, int part, cek_dtype *out)
{
    cek_status st = CEK_OK;
    const cek__part *at = &p->graph->parts[part];
    int moved = at->kind == CEK__PART_CONCAT ? at->inputs : 1;

    *out = given_type(p, at, 0);
    for (int k = 1; k < moved && *out == CEK_DTYPE_NONE; k++)
        *out = given_type(p, at, k);
    if (moved > 1 && is_exact(p, at)) /* nothing loses digits on its way to the loss, or out */
        *out = *out == p->low ? CEK_DTYPE_NONE : *out;
    if (at->kind == CEK__PART_POOL_BACK) /* as the pool that it belongs to */
        *out = p->graph->flows[p->graph->parts[at->pool.forward].output[0]].type;
    for (int k = 0; k < moved; k++)
        CEK_TRY(input_cast(p, part, k, *out));
out:
    return st;
}

/* What a reduction multiplies has one type. */
static cek_status factors_cast(pass *p, int part)
{
    cek_status st = CEK_OK;
    const cek__part *at = &p->graph->parts[part];

    if (given_type(p, at, 0) == given_type(p, at, 1))
        return CEK_OK;
    for (int k = 0; k < 2; k++)
        CEK_TRY(input_cast(p, part, k, CEK_DTYPE_NONE));
out:
    return st;
}

static cek_status inputs_cast(pass *p, int part, cek_dtype type)
{
    cek_status st = CEK_OK;

    for (int k = 0; k < p->graph->parts[part].inputs; k++)
        CEK_TRY(input_cast(p, part, k, type));
out:
    return st;
}

/* Of samples and parameters that nothing but products read, from the beginning. */
static cek_dtype source_type(const pass *p, const cek__part *part)
{
    const cek_dtype type = p->graph->flows[part->output[0]].type;
    const bool known = part->kind == CEK__PART_INPUT ||
                       (part->kind == CEK__PART_PARAMETER && (!p->rounded || p->rounded[part->parameter]));

    return known && type == CEK_DTYPE_NONE && p->notes[part->output[0]].multiplied ? p->low : type;
}

static cek_status type_give(pass *p, int part, cek_dtype *type)
{
    cek_status st = CEK_OK;
    const cek__part *at = &p->graph->parts[part];

    *type = at->outputs ? p->graph->flows[at->output[0]].type : CEK_DTYPE_NONE;
    switch (rule_of(at)) {
    case CEK__TYPES_FOLLOW: return follow(p, part, type);
    case CEK__TYPES_LOW: *type = product_type(p, at); return inputs_cast(p, part, p->low);
    case CEK__TYPES_WIDE:
    case CEK__TYPES_LOSS:
        *type = *type == CEK_I32 ? CEK_I32 : CEK_DTYPE_NONE;
        return inputs_cast(p, part, CEK_DTYPE_NONE);
    case CEK__TYPES_ANY:
        *type = at->kind == CEK__PART_CHAIN ? chain_type(p, at) : *type == CEK_F32 ? CEK_F32 : CEK_DTYPE_NONE;
        return at->kind == CEK__PART_REDUCE && at->reduce.second ? factors_cast(p, part) : CEK_OK;
    case CEK__TYPES_SOURCE: *type = source_type(p, at); return CEK_OK;
    default: CEK_FAIL(CEK_INVALID, "%s: no rule for its types", cek__part_class_of(at->kind)->name);
    }
out:
    return st;
}

/* Rows of a table of parameters are activations. */
static bool gives_activations(const pass *p, const cek__part *part)
{
    return part->kind == CEK__PART_GATHER && p->graph->flows[part->output[0]].type == CEK_DTYPE_NONE &&
           p->graph->flows[part->output[0]].dims.samples && !p->graph->flows[part->input[0]].dims.samples;
}

static cek_status part_take(pass *p, int part)
{
    cek_status st;
    cek__graph *graph = p->graph;
    cek_dtype type;
    cek__part at;

    for (int k = 0; k < graph->parts[part].inputs; k++) {
        int instead = p->notes[graph->parts[part].input[k]].instead;

        graph->parts[part].input[k] = instead ? instead : graph->parts[part].input[k];
    }
    CEK_TRY(type_give(p, part, &type));
    CEK_TRY(cek__graph_append(graph, part));
    at = graph->parts[part];
    if (at.outputs)
        graph->flows[at.output[0]].type = type;
    if (gives_activations(p, &at))
        CEK_TRY(cast(p, &at, at.output[0], p->low, &p->notes[at.output[0]].instead));
    return CEK_OK;
out:
    return st;
}

/* What parameters get and what the network gives. */
static cek_status ends_cast(pass *p)
{
    cek_status st;
    cek__graph *graph = p->graph;
    cek__part giver;

    for (size_t i = 0; i < graph->gradient_count; i++) {
        giver = *cek__graph_giver(graph, graph->gradients[i].flow);
        CEK_TRY(cast(p, &giver, graph->gradients[i].flow, CEK_DTYPE_NONE, &graph->gradients[i].flow));
    }
    giver = *cek__graph_giver(graph, graph->result);
    st = graph->result ? cast(p, &giver, graph->result, CEK_DTYPE_NONE, &graph->result) : CEK_OK;
out:
    return st;
}

cek_status cek__types(cek__graph *graph, cek_dtype low, const bool *rounded)
{
    cek_status st;
    int length = graph->length;
    int *before = graph->sequence;
    pass p = { .graph = graph, .low = low, .rounded = rounded, .flows = graph->flow_count };

    CEK_TRY(cek__calloc((size_t)p.flows, sizeof *p.notes, &p.notes));
    readers_note(&p);
    graph->sequence = NULL;
    graph->length = graph->length_capacity = 0;
    for (int i = 0; i < length; i++)
        CEK_TRY(part_take(&p, before[i]));
    CEK_TRY(ends_cast(&p));
out:
    if (graph->sequence != before)
        free(before);
    free(p.notes);
    return st;
}
