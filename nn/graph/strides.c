/* strides.c - see strides.h. */
#include "nn/graph/strides.h"

bool cek__axes_order(const cek__dims *dims, cek__image image, int order[CEK_RANK_MAX])
{
    int64_t elements = 1;
    int channels = -1, at = 0;

    for (int i = dims->rank; i-- > 0 && image.channels && channels < 0;) {
        if (elements == image.pixels && dims->size[i] == image.channels)
            channels = i;
        elements *= dims->size[i];
    }
    for (int i = 0; i < dims->rank; i++)
        if (i != channels)
            order[at++] = i;
    if (channels >= 0)
        order[at++] = channels;
    return channels >= 0 || image.channels == 0;
}

void cek__strides(const cek__graph *graph, int flow, int64_t samples, int64_t strides[CEK_RANK_MAX])
{
    const cek__flow *f = &graph->flows[flow];
    const cek__part *giver = &graph->parts[f->part];
    int order[CEK_RANK_MAX];
    int64_t within[CEK_RANK_MAX], stride = 1;

    if (f->strided) {
        cek__strides(graph, giver->base ? giver->base : giver->input[0], samples, within);
        for (int i = 0; i < f->dims.rank; i++)
            strides[i] = within[giver->kind == CEK__PART_PERMUTE ? giver->order[i] : i];
        return;
    }
    cek__axes_order(&f->dims, f->image, order);
    for (int at = f->dims.rank; at-- > 0;) {
        strides[order[at]] = stride;
        stride *= cek__dims_elements(&f->dims, order[at], order[at] + 1, samples);
    }
}

bool cek__has_strides(const cek__graph *graph, int flow)
{
    int order[CEK_RANK_MAX];

    return !graph->flows[flow].open && cek__axes_order(&graph->flows[flow].dims, graph->flows[flow].image, order);
}

int64_t cek__strided_first(const cek__graph *graph, const cek__part *part, int64_t samples)
{
    int64_t strides[CEK_RANK_MAX], first = 0;

    cek__strides(graph, part->input[0], samples, strides);
    for (int i = 0; i < graph->flows[part->input[0]].dims.rank && part->kind == CEK__PART_PAD; i++)
        first -= part->pad.lo[i] * strides[i];
    return first;
}

bool cek__strides_equal(const cek__dims *dims, int64_t samples, const int64_t *a, const int64_t *b)
{
    bool equal = true;

    for (int i = 0; i < dims->rank; i++)
        equal &= a[i] == b[i] || cek__dims_elements(dims, i, i + 1, samples) == 1;
    return equal;
}

int cek__axis_under(const cek__dims *x, const cek__dims *y, int i)
{
    int k = i - (y->rank - x->rank);

    return k >= 0 && (x->size[k] != 1 || x->samples >> k & 1) ? k : -1;
}
