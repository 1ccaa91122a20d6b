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

void cek__strides(const cek__flow *flow, int64_t samples, int64_t strides[CEK_RANK_MAX])
{
    int order[CEK_RANK_MAX];
    int64_t stride = 1;

    cek__axes_order(&flow->dims, flow->image, order);
    for (int at = flow->dims.rank; at-- > 0;) {
        strides[order[at]] = stride;
        stride *= cek__dims_elements(&flow->dims, order[at], order[at] + 1, samples);
    }
}

int cek__axis_under(const cek__dims *x, const cek__dims *y, int i)
{
    int k = i - (y->rank - x->rank);

    return k >= 0 && (x->size[k] != 1 || x->samples >> k & 1) ? k : -1;
}
