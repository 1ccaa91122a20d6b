/* common.c - see common.h. A part's inputs are those that are left before it is looked at, so that whole subexpressions
 * meet, part by part. */
#include "nn/graph/common.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"

typedef struct search {
    int *as;    /* by flow: the one that stands for it */
    int *first; /* by flow: the first part that reads it as input 0, or nothing, and may stand for others */
    int *next;  /* by part */
    bool *ends; /* by flow: a gradient or the result, which lie where somebody else wants them */
} search;

static void search_clear(search *s)
{
    free(s->as);
    free(s->first);
    free(s->next);
    free(s->ends);
}

static cek_status search_begin(const cek__graph *graph, search *s)
{
    cek_status st;

    *s = (search){ 0 };
    CEK_TRY(cek__alloc_array((size_t)graph->flow_count, sizeof *s->as, &s->as));
    CEK_TRY(cek__calloc((size_t)graph->flow_count, sizeof *s->first, &s->first));
    CEK_TRY(cek__calloc((size_t)graph->part_count, sizeof *s->next, &s->next));
    CEK_TRY(cek__calloc((size_t)graph->flow_count, sizeof *s->ends, &s->ends));
    for (int i = 0; i < graph->flow_count; i++)
        s->as[i] = i;
    for (size_t i = 0; i < graph->gradient_count; i++)
        s->ends[graph->gradients[i].flow] = true;
    s->ends[graph->result] = true;
    return CEK_OK;
out:
    search_clear(s);
    return st;
}

static bool is_kept_easily(const cek__dims *dims)
{
    return !dims->samples || (!dims->outside && cek__dims_elements(dims, 0, dims->rank, 1) == 1);
}

static bool may_be_common(const cek__graph *graph, const search *s, const cek__part *part)
{
    return (part->kind == CEK__PART_CHAIN || part->kind == CEK__PART_REDUCE || part->kind == CEK__PART_VIEW) &&
           is_kept_easily(&graph->flows[part->output[0]].dims) && !s->ends[part->output[0]];
}

static bool same_code(const cek__part *a, const cek__part *b)
{
    if (a->chain.count != b->chain.count || a->chain.normalises != b->chain.normalises)
        return false;
    for (uint32_t i = 0; i < a->chain.count; i++) {
        const cek_pointwise_instruction *x = &a->chain.code[i], *y = &b->chain.code[i];

        if (x->code != y->code || x->a != y->a || x->b != y->b || x->c != y->c ||
            memcmp(&x->imm, &y->imm, sizeof x->imm) != 0) /* 0 is not -0 */
            return false;
    }
    return true;
}

static bool same_reduction(const cek__part *a, const cek__part *b)
{
    return a->reduce.function == b->reduce.function && a->reduce.axes == b->reduce.axes &&
           a->reduce.masked == b->reduce.masked && a->reduce.second == b->reduce.second &&
           a->reduce.centre == b->reduce.centre;
}

static bool gives_the_same(const cek__part *a, const cek__part *b)
{
    if (a->kind != b->kind || a->type != b->type || a->inputs != b->inputs || !cek__dims_equal(&a->dims, &b->dims) ||
        memcmp(a->input, b->input, (size_t)a->inputs * sizeof *a->input) != 0)
        return false;
    return a->kind == CEK__PART_VIEW || (a->kind == CEK__PART_CHAIN ? same_code(a, b) : same_reduction(a, b));
}

/* A part before it that gives the same; CEK__NOTHING: there is none, and it is the first. */
static int common_with(const cek__graph *graph, search *s, int number)
{
    const cek__part *part = &graph->parts[number];
    int *head = &s->first[part->inputs ? part->input[0] : CEK__NOTHING];

    for (int other = *head; other; other = s->next[other])
        if (gives_the_same(&graph->parts[other], part))
            return other;
    s->next[number] = *head;
    *head = number;
    return CEK__NOTHING;
}

static void inputs_redirect(const search *s, cek__part *part)
{
    for (int k = 0; k < part->inputs; k++)
        part->input[k] = s->as[part->input[k]];
    if (part->kind == CEK__PART_DROPOUT)
        part->dropout.like = s->as[part->dropout.like];
}

cek_status cek__common(cek__graph *graph)
{
    cek_status st;
    search s;
    int kept = 0;

    CEK_TRY(search_begin(graph, &s));
    for (int i = 0; i < graph->length; i++) {
        cek__part *part = cek__graph_at(graph, i);
        int other = CEK__NOTHING;

        inputs_redirect(&s, part);
        if (may_be_common(graph, &s, part))
            other = common_with(graph, &s, graph->sequence[i]);
        part->gone = other != CEK__NOTHING;
        if (part->gone)
            s.as[part->output[0]] = graph->parts[other].output[0];
        else
            graph->sequence[kept++] = graph->sequence[i];
    }
    graph->length = kept;
    search_clear(&s);
out:
    return st;
}
