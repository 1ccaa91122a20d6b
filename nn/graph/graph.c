/* graph.c - flows, parts and their sequence (see graph.h). */
#include "nn/graph/graph.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "nn/graph/parts.h"

/* ---- dims ---- */

bool cek__dims_equal(const cek__dims *a, const cek__dims *b)
{
    return a->rank == b->rank && a->samples == b->samples && a->outside == b->outside &&
           !memcmp(a->size, b->size, (size_t)a->rank * sizeof *a->size);
}

int64_t cek__dims_elements(const cek__dims *dims, int first, int end, int64_t samples)
{
    int64_t n = 1;

    for (int i = first; i < end; i++)
        n *= dims->size[i] * (dims->samples >> i & 1 ? samples : 1);
    return n;
}

bool cek__image_equal(cek__image a, cek__image b)
{
    return a.channels == b.channels && a.pixels == b.pixels;
}

cek__image cek__image_of(int64_t channels, int64_t pixels)
{
    return channels > 1 && pixels > 1 ? (cek__image){ channels, pixels } : (cek__image){ 0, 0 };
}

void cek__dims_without(const cek__dims *dims, uint32_t axes, cek__dims *out)
{
    *out = (cek__dims){ .rank = 0 };
    for (int i = 0; i < dims->rank; i++) {
        if (axes >> i & 1)
            continue;
        out->samples |= (dims->samples >> i & 1) << out->rank;
        out->outside = dims->samples >> i & 1 ? dims->outside : out->outside;
        out->size[out->rank++] = dims->size[i];
    }
    if (out->rank == 0)
        out->size[out->rank++] = 1;
}

cek__image cek__dims_image(const cek__dims *dims)
{
    return cek__image_of(dims->size[1], cek__dims_elements(dims, 2, dims->rank, 1));
}

/* ---- life ---- */

static cek_status flow_add(cek__graph *graph, const cek__flow *flow, int *out)
{
    cek_status st;

    if (graph->flow_count == graph->flow_capacity) {
        int capacity = graph->flow_capacity ? 2 * graph->flow_capacity : 64;

        CEK_TRY(cek__realloc_array((size_t)capacity, sizeof *graph->flows, &graph->flows));
        graph->flow_capacity = capacity;
    }
    graph->flows[graph->flow_count] = *flow;
    *out = graph->flow_count++;
    return CEK_OK;
out:
    return st;
}

static cek_status part_add(cek__graph *graph, const cek__part *part)
{
    cek_status st;

    if (graph->part_count == graph->part_capacity) {
        int capacity = graph->part_capacity ? 2 * graph->part_capacity : 64;

        CEK_TRY(cek__realloc_array((size_t)capacity, sizeof *graph->parts, &graph->parts));
        graph->part_capacity = capacity;
    }
    graph->parts[graph->part_count++] = *part;
    return CEK_OK;
out:
    return st;
}

cek_status cek__graph_init(cek__graph *graph)
{
    cek_status st;
    int none;

    *graph = (cek__graph){ 0 };
    CEK_TRY(flow_add(graph, &(cek__flow){ 0 }, &none));
    CEK_TRY(part_add(graph, &(cek__part){ 0 }));
    return CEK_OK;
out:
    cek__graph_clear(graph);
    return st;
}

void cek__graph_clear(cek__graph *graph)
{
    free(graph->flows);
    free(graph->parts);
    free(graph->sequence);
    free(graph->gradients);
    *graph = (cek__graph){ 0 };
}

static cek_status copied(const void *from, int count, size_t size, void *out)
{
    cek_status st;

    CEK_TRY(cek__alloc_array((size_t)count, size, out));
    if (count > 0)
        memcpy(*(void **)out, from, (size_t)count * size);
out:
    return st;
}

cek_status cek__graph_copy(const cek__graph *graph, cek__graph *out)
{
    cek_status st;

    *out = *graph;
    out->flows = NULL;
    out->parts = NULL;
    out->sequence = NULL;
    out->gradients = NULL;
    out->flow_capacity = graph->flow_count;
    out->part_capacity = graph->part_count;
    out->length_capacity = graph->length;
    CEK_TRY(copied(graph->flows, graph->flow_count, sizeof *graph->flows, &out->flows));
    CEK_TRY(copied(graph->parts, graph->part_count, sizeof *graph->parts, &out->parts));
    CEK_TRY(copied(graph->sequence, graph->length, sizeof *graph->sequence, &out->sequence));
    st = copied(graph->gradients, (int)graph->gradient_count, sizeof *graph->gradients, &out->gradients);
out:
    return st;
}

cek__graph_mark cek__graph_mark_of(const cek__graph *graph)
{
    return (cek__graph_mark){ graph->flow_count, graph->part_count, graph->length };
}

void cek__graph_rewind(cek__graph *graph, cek__graph_mark mark)
{
    graph->flow_count = mark.flows;
    graph->part_count = mark.parts;
    graph->length = mark.length;
}

/* ---- parts ---- */

cek_status cek__graph_append(cek__graph *graph, int part)
{
    cek_status st;

    if (graph->length == graph->length_capacity) {
        int capacity = graph->length_capacity ? 2 * graph->length_capacity : 64;

        CEK_TRY(cek__realloc_array((size_t)capacity, sizeof *graph->sequence, &graph->sequence));
        graph->length_capacity = capacity;
    }
    graph->sequence[graph->length++] = part;
    graph->parts[part].gone = false;
    return CEK_OK;
out:
    return st;
}

static bool gradient_needed(const cek__graph *graph, const cek__part *part)
{
    bool needed = part->kind == CEK__PART_PARAMETER;

    for (int k = 0; k < part->inputs; k++)
        needed |= graph->flows[part->input[k]].needs_gradient;
    return needed;
}

/* ---- what a part was given, for its error ---- */

typedef struct words {
    char text[320];
    int used;
} words;

static void words_add(words *w, const char *fmt, ...) CEK__PRINTF(2, 3);
static void words_add(words *w, const char *fmt, ...)
{
    const int room = (int)sizeof w->text - w->used;
    int wanted;
    va_list args;

    va_start(args, fmt);
    wanted = vsnprintf(w->text + w->used, (size_t)room, fmt, args);
    va_end(args);
    w->used += wanted < room ? wanted : room - 1;
}

/* "[N,3,2N]": an axis that counts samples by N for each. */
static void words_add_dims(words *w, const char *before, const cek__dims *dims)
{
    words_add(w, "%s[", before);
    for (int i = 0; i < dims->rank; i++) {
        const bool samples = dims->samples >> i & 1;

        words_add(w, "%s", i ? "," : "");
        if (!samples || dims->size[i] != 1)
            words_add(w, "%lld", (long long)dims->size[i]);
        words_add(w, "%s", samples ? "N" : "");
    }
    words_add(w, "]");
}

/* " (of [N,3,4] to [N,5])" */
static void words_add_shapes(words *w, const cek__graph *graph, const cek__part *part)
{
    if (part->inputs == 0)
        return;
    for (int k = 0; k < part->inputs; k++)
        words_add_dims(w, k ? ", " : " (of ", &graph->flows[part->input[k]].dims);
    if (part->dims.rank > 0)
        words_add_dims(w, " to ", &part->dims);
    words_add(w, ")");
}

cek_status cek__graph_add(cek__graph *graph, const cek__part *from, int *out)
{
    cek_status st;
    cek__part part = *from;
    cek__flow flows[CEK__PART_OUTPUTS] = { 0 };
    const cek__part_class *class = cek__part_class_of(part.kind);
    words given = { .used = 0 };

    *out = CEK__NOTHING;
    if (!class)
        CEK_FAIL(CEK_INVALID, "a part of the unknown kind %d", (int)part.kind);
    part.node = graph->node;
    part.name = graph->name;
    part.backward = graph->backward;
    part.outputs = class->outputs;
    for (int k = 0; k < part.inputs && class->floats; k++)
        if (graph->flows[part.input[k]].type == CEK_I32)
            CEK_FAIL(CEK_INVALID, "input %d has integers: cast them before", k);
    CEK_TRY(class->infer(graph, &part, flows));
    for (int k = 0; k < part.outputs; k++) {
        flows[k].part = graph->part_count;
        flows[k].needs_gradient = flows[k].type != CEK_I32 && flows[k].type != CEK_U8 && gradient_needed(graph, &part);
        CEK_TRY(flow_add(graph, &flows[k], &part.output[k]));
    }
    CEK_TRY(part_add(graph, &part));
    CEK_TRY(cek__graph_append(graph, graph->part_count - 1));
    *out = part.output[0];
    return CEK_OK;
out:
    if (st == CEK_OUT_OF_MEMORY || !class)
        return cek__fail_prefix(st, "graph");
    words_add_shapes(&given, graph, from);
    return cek__fail(st, "%s: %s%s", class->name, cek_error_text(), given.text);
}

static _Thread_local uint64_t looks;

cek__part *cek__graph_at(const cek__graph *graph, int at)
{
    looks++;
    return &graph->parts[graph->sequence[at]];
}

uint64_t cek__graph_looks(void)
{
    return looks;
}

void cek__graph_number(cek__graph *graph)
{
    for (int i = 0; i < graph->part_count; i++)
        graph->parts[i].place = -1;
    for (int i = 0; i < graph->length; i++)
        cek__graph_at(graph, i)->place = i;
}

void cek__graph_remove(cek__graph *graph, int at)
{
    graph->parts[graph->sequence[at]].gone = true;
    graph->length--;
    memmove(graph->sequence + at, graph->sequence + at + 1, (size_t)(graph->length - at) * sizeof *graph->sequence);
}

void cek__graph_redirect(cek__graph *graph, int first, int from, int to)
{
    for (int i = first; i < graph->length; i++) {
        cek__part *part = cek__graph_at(graph, i);

        for (int k = 0; k < part->inputs; k++)
            if (part->input[k] == from)
                part->input[k] = to;
    }
    if (graph->result == from)
        graph->result = to;
}

void cek__graph_count_readers(cek__graph *graph)
{
    for (int i = 0; i < graph->flow_count; i++)
        graph->flows[i].readers = 0;
    for (int i = 0; i < graph->length; i++) {
        const cek__part *part = cek__graph_at(graph, i);

        for (int k = 0; k < part->inputs; k++)
            graph->flows[part->input[k]].readers++;
        graph->flows[part->base].readers++;
    }
    for (size_t i = 0; i < graph->gradient_count; i++)
        graph->flows[graph->gradients[i].flow].readers++;
    graph->flows[graph->result].readers++;
}

void cek__graph_prune(cek__graph *graph)
{
    int kept = graph->length;

    cek__graph_count_readers(graph);
    for (int i = graph->length; i-- > 0;) {
        const cek__part *part = cek__graph_at(graph, i);
        bool read = graph->sequence[i] == graph->loss || graph->sequence[i] == graph->hits ||
                    cek__part_class_of(part->kind)->effect;

        for (int k = 0; k < part->outputs; k++)
            read |= part->output[k] && graph->flows[part->output[k]].readers > 0;
        if (read) {
            graph->sequence[--kept] = graph->sequence[i];
            continue;
        }
        graph->parts[graph->sequence[i]].gone = true;
        for (int k = 0; k < part->inputs; k++)
            graph->flows[part->input[k]].readers--;
        graph->flows[part->base].readers--;
    }
    graph->length -= kept;
    memmove(graph->sequence, graph->sequence + kept, (size_t)graph->length * sizeof *graph->sequence);
}

const cek__flow *cek__graph_flow(const cek__graph *graph, int flow)
{
    return &graph->flows[flow];
}

cek__part *cek__graph_giver(const cek__graph *graph, int flow)
{
    return &graph->parts[graph->flows[flow].part];
}

/* ---- text ---- */

/* "%7 [N,32,26,26]" */
static void flow_text(const cek__graph *graph, int index, char *text, size_t cap)
{
    const cek__flow *flow = &graph->flows[index];
    size_t at = (size_t)snprintf(text, cap, "%%%d [", index);

    for (int i = 0; i < flow->dims.rank && at < cap; i++) {
        const char *comma = i ? "," : "";

        if (flow->dims.samples >> i & 1 && flow->dims.size[i] == 1)
            at += (size_t)snprintf(text + at, cap - at, "%sN", comma);
        else
            at += (size_t)snprintf(text + at, cap - at, "%s%s%lld", comma, flow->dims.samples >> i & 1 ? "N*" : "",
                                   (long long)flow->dims.size[i]);
    }
    if (at < cap)
        snprintf(text + at, cap - at, "]%s%s%s%s", flow->type ? " " : "", flow->type ? cek_dtype_name(flow->type) : "",
                 flow->image.channels ? " channels last" : "", flow->strided ? " strided" : "");
}

static cek_status line_add(const cek__graph *graph, const cek__part *part, char **text)
{
    cek_status st;
    char out[128] = "", in[512] = "", with[64] = "";
    char *grown = NULL;
    size_t at = 0;

    for (int k = 0; k < part->outputs && at < sizeof out; k++)
        if (k == 0 || (part->output[k] && graph->flows[part->output[k]].readers > 0)) {
            at += (size_t)snprintf(out + at, sizeof out - at, "%s", at ? ", " : "");
            flow_text(graph, part->output[k], out + at, sizeof out - at);
            at = strlen(out);
        }
    at = 0;
    for (int k = 0; k < part->inputs && at + 8 < sizeof in; k++)
        at += (size_t)snprintf(in + at, sizeof in - at, " %%%d", part->input[k]);
    if (part->base)
        snprintf(with, sizeof with, " onto %%%d", part->base);
    if (part->follower)
        snprintf(with, sizeof with, " then %%%d", graph->parts[part->follower].output[0]);
    CEK_TRY(cek__asprintf(&grown, "%s%s = %s%s%s%s\n", *text ? *text : "", out, cek__part_class_of(part->kind)->name,
                          in, with, part->backward ? " (backward)" : ""));
    free(*text);
    *text = grown;
    return CEK_OK;
out:
    return st;
}

cek_status cek__graph_text(const cek__graph *graph, char **text)
{
    cek_status st = CEK_OK;

    *text = NULL;
    for (int i = 0; i < graph->length; i++)
        CEK_TRY(line_add(graph, cek__graph_at(graph, i), text));
    return CEK_OK;
out:
    free(*text);
    *text = NULL;
    return st;
}
