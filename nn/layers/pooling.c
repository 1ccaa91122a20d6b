/* pooling.c - see pooling.h. */
#include "nn/layers/pooling.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "nn/graph/parts.h"

/* Between the elements of a window; one alone has none beside it. */
static int64_t dilation(const cek__windows *w, int axis)
{
    return w->kernel[axis] > 1 && w->dilation[axis] > 1 ? w->dilation[axis] : 1;
}

int64_t cek__pool_reach(const cek__windows *w, int axis)
{
    int64_t reach;

    if (__builtin_mul_overflow(w->kernel[axis] - 1, dilation(w, axis), &reach) || reach == INT64_MAX)
        return INT64_MAX;
    return reach + 1;
}

/* What the last window of an axis takes behind the padding. */
static int64_t overhang(const cek__windows *w, int axis, int64_t in)
{
    int64_t room = in + w->pad_lo[axis] + w->pad_hi[axis] - cek__pool_reach(w, axis);
    int64_t last = (room + w->stride[axis] - 1) / w->stride[axis]; /* its number */
    int64_t reach;

    if (room < 0 || last * w->stride[axis] >= in + w->pad_lo[axis])
        return 0;
    reach = last * w->stride[axis] - room;
    return reach > 0 ? reach : 0;
}

/* Padding that counts, as elements that are there. */
static cek_status pad_with_zeros(cek__graph *graph, cek__windows *w, int *x)
{
    int rank = graph->flows[*x].dims.rank;
    int64_t lo[CEK_RANK_MAX] = { 0 }, hi[CEK_RANK_MAX] = { 0 };

    for (int i = 0; i < rank - 2; i++) {
        lo[2 + i] = w->pad_lo[i];
        hi[2 + i] = w->pad_hi[i];
        w->pad_lo[i] = w->pad_hi[i] = 0;
    }
    return cek__pad(graph, *x, lo, hi, 0, x);
}

/* ---- dilated windows, which devices have none of ---- */

/* An axis of d * n elements is n groups of d: the k-th of each group make an image of their own, over which the windows
 * have no gaps. These images are channels. `count` windows of each axis are kept; all of their elements are there. */
static cek_status gaps_pool(cek__graph *graph, int x, uint32_t mode, const cek__windows *w, const int64_t *count,
                            int *out)
{
    cek_status st;
    const cek__dims dims = graph->flows[x].dims;
    const int axes = dims.rank - 2;
    cek__part part = { .kind = CEK__PART_POOL, .inputs = 1, .pool = { .mode = mode } };
    cek__dims split = { .rank = 2 + 2 * axes, .samples = dims.samples, .outside = dims.outside }, images = dims,
              y = dims;
    int64_t lo[CEK_RANK_MAX] = { 0 }, hi[CEK_RANK_MAX] = { 0 }, elements = dims.size[0] * dims.size[1];
    int apart[CEK_RANK_MAX] = { 0, 1 }, together[CEK_RANK_MAX] = { 0, 1 };

    split.size[0] = dims.size[0];
    split.size[1] = dims.size[1];
    for (int i = 0; i < axes; i++) {
        const int64_t d = dilation(w, i), groups = (dims.size[2 + i] + d - 1) / d;

        if (__builtin_mul_overflow(elements, groups * d, &elements))
            CEK_FAIL(CEK_INVALID, "pool: an image of more than 2^63 elements, with padding for a dilation of %lld",
                     (long long)d);
        hi[2 + i] = groups * d - dims.size[2 + i];
        split.size[2 + 2 * i] = images.size[2 + i] = groups;
        split.size[3 + 2 * i] = d;
        images.size[1] *= d;
        apart[2 + i] = 3 + 2 * i;
        apart[2 + axes + i] = 2 + 2 * i;
        together[2 + 2 * i] = 2 + axes + i;
        together[3 + 2 * i] = 2 + i;
        part.pool.windows.kernel[i] = w->kernel[i];
        part.pool.windows.stride[i] = 1;
        y.size[2 + i] = (groups - w->kernel[i] + 1) * d;
    }
    CEK_TRY(cek__pad(graph, x, lo, hi, 0, &x));
    CEK_TRY(cek__view(graph, x, &split, &x));
    CEK_TRY(cek__permute(graph, x, apart, &x));
    CEK_TRY(cek__view(graph, x, &images, &part.input[0]));
    CEK_TRY(cek__graph_add(graph, &part, &x));
    for (int i = 0; i < axes; i++) {
        split.size[2 + i] = dilation(w, i);
        split.size[2 + axes + i] = y.size[2 + i] / dilation(w, i);
    }
    CEK_TRY(cek__view(graph, x, &split, &x));
    CEK_TRY(cek__permute(graph, x, together, &x));
    CEK_TRY(cek__view(graph, x, &y, &x));
    for (int i = 0; i < axes; i++)
        CEK_TRY(cek__slice_stepped(graph, x, 2 + i, 0, count[i], w->stride[i], &x));
    *out = x;
out:
    return st;
}

/* What each mean is to be divided by, of what counts: `counted` elements from the first one of the padding on,
 * or behind it. */
static cek_status shares_divide(cek__graph *graph, int y, const cek__dims *counted, const int64_t *lo,
                                const int64_t *hi, const cek__windows *w, const int64_t *count, int *out)
{
    cek_status st;
    int ones;

    CEK_TRY(cek__constant(graph, 1, counted, &ones));
    CEK_TRY(cek__pad(graph, ones, lo, hi, 0, &ones));
    CEK_TRY(gaps_pool(graph, ones, CEK_POOL_AVERAGE, w, count, &ones));
    st = cek__chain(graph, CEK_PW_DIV, y, ones, out);
out:
    return st;
}

/* more[i] elements behind the padding are none that count. */
static cek_status dilated_pool(cek__graph *graph, int x, const cek__pooling *p, const int64_t *more, int *out)
{
    cek_status st;
    const cek__windows *w = &p->windows;
    const cek__dims dims = graph->flows[x].dims;
    const bool mean = p->mode == CEK_POOL_AVERAGE;
    cek__dims counted = { .rank = dims.rank, .size = { 1, 1 } };
    int64_t lo[CEK_RANK_MAX] = { 0 }, hi[CEK_RANK_MAX] = { 0 }, count[CEK_SPATIAL_MAX];
    bool fewer = false;

    for (int i = 0; i < dims.rank - 2; i++) {
        const int64_t in = dims.size[2 + i], room = in + w->pad_lo[i] + w->pad_hi[i] + more[i] - cek__pool_reach(w, i);

        if (w->kernel[i] < 1 || w->stride[i] < 1 || room < 0)
            CEK_FAIL(CEK_INVALID, "pool: a window or stride below 1, or a window larger than the image");
        if (w->pad_lo[i] > 0 && dilation(w, i) > in)
            CEK_FAIL(CEK_INVALID, "pool: a dilation of %lld of an axis of %lld elements and padding",
                     (long long)dilation(w, i), (long long)in);
        if (w->pad_lo[i] < 0 || w->pad_hi[i] < 0 || w->pad_lo[i] >= cek__pool_reach(w, i) ||
            w->pad_hi[i] >= cek__pool_reach(w, i) || room / w->stride[i] * w->stride[i] >= in + w->pad_lo[i])
            CEK_FAIL(CEK_INVALID, "pool: a window wholly in the padding");
        count[i] = room / w->stride[i] + 1;
        lo[2 + i] = w->pad_lo[i];
        hi[2 + i] = w->pad_hi[i] + more[i];
        counted.size[2 + i] = p->count_pad ? in + w->pad_lo[i] + w->pad_hi[i] : in;
        fewer |= p->count_pad ? more[i] > 0 : lo[2 + i] > 0 || hi[2 + i] > 0;
    }
    CEK_TRY(cek__pad(graph, x, lo, hi, mean ? 0 : -INFINITY, &x));
    CEK_TRY(gaps_pool(graph, x, p->mode, w, count, out));
    if (!mean || !fewer)
        return CEK_OK;
    for (int i = 0; i < dims.rank - 2; i++) {
        lo[2 + i] = p->count_pad ? 0 : lo[2 + i];
        hi[2 + i] = p->count_pad ? more[i] : hi[2 + i];
    }
    st = shares_divide(graph, *out, &counted, lo, hi, w, count, out);
out:
    return st;
}

cek_status cek__pool(cek__graph *graph, int x, const cek__pooling *p, int *out)
{
    cek_status st;
    cek__part part = { .kind = CEK__PART_POOL, .inputs = 1, .pool = { .windows = p->windows, .mode = p->mode } };
    const cek__dims dims = graph->flows[x].dims;
    int64_t more[CEK_SPATIAL_MAX] = { 0 };
    bool any = false, gaps = false;

    *out = CEK__NOTHING;
    part.pool.count_pad = p->mode == CEK_POOL_AVERAGE && p->count_pad;
    if (dims.rank < 3 || dims.rank > 5)
        CEK_FAIL(CEK_INVALID, "pool: takes an image, with 1 to 3 axes behind its channels");
    for (int i = 0; i < dims.rank - 2 && p->ceil; i++) {
        if (p->windows.stride[i] < 1)
            CEK_FAIL(CEK_INVALID, "pool: a stride below 1");
        more[i] = overhang(&p->windows, i, dims.size[2 + i]);
        any |= more[i] > 0;
    }
    for (int i = 0; i < dims.rank - 2; i++)
        gaps |= p->windows.dilation[i] > 1 && p->windows.kernel[i] > 1;
    if (gaps)
        return dilated_pool(graph, x, p, more, out);
    memset(part.pool.windows.dilation, 0, sizeof part.pool.windows.dilation);
    if (any && part.pool.count_pad) {
        CEK_TRY(pad_with_zeros(graph, &part.pool.windows, &x));
        part.pool.count_pad = false;
    }
    for (int i = 0; i < dims.rank - 2; i++)
        part.pool.windows.pad_hi[i] += more[i];
    part.input[0] = x;
    CEK_TRY(cek__graph_add(graph, &part, out));
out:
    return st;
}

/* ---- to a size ---- */

static cek__pooling windows_of_one(uint32_t mode)
{
    cek__pooling p = { .mode = mode };

    for (int i = 0; i < CEK_SPATIAL_MAX; i++)
        p.windows.kernel[i] = p.windows.stride[i] = 1;
    return p;
}

/* Windows of unlike sizes along one axis: each is cut out, pooled, and put behind the one before. */
static cek_status axis_pool(cek__graph *graph, int x, uint32_t mode, int axis, int64_t size, int *out)
{
    cek_status st;
    int64_t in = graph->flows[x].dims.size[2 + axis];
    int *ones = NULL;

    *out = CEK__NOTHING;
    CEK_TRY(cek__alloc_array((size_t)size, sizeof *ones, &ones));
    for (int64_t i = 0; i < size; i++) {
        int64_t first = i * in / size, end = ((i + 1) * in + size - 1) / size;
        cek__pooling p = windows_of_one(mode);

        p.windows.kernel[axis] = end - first;
        CEK_TRY(cek__slice(graph, x, 2 + axis, first, end - first, &ones[i]));
        if (end - first > 1)
            CEK_TRY(cek__pool(graph, ones[i], &p, &ones[i]));
    }
    st = cek__concat(graph, ones, (int)size, 2 + axis, out);
out:
    free(ones);
    return st;
}

cek_status cek__pool_to(cek__graph *graph, int x, uint32_t mode, const int64_t *size, int *out)
{
    cek_status st;
    const cek__dims dims = graph->flows[x].dims;
    cek__pooling p = windows_of_one(mode);
    bool any = false;

    *out = x;
    for (int i = 0; i < dims.rank - 2; i++) {
        int64_t in = dims.size[2 + i];

        if (size[i] < 1)
            CEK_FAIL(CEK_INVALID, "pool: to %lld elements", (long long)size[i]);
        if (in % size[i] == 0) {
            p.windows.kernel[i] = p.windows.stride[i] = in / size[i];
            any |= in != size[i];
            continue;
        }
        CEK_TRY(axis_pool(graph, *out, mode, i, size[i], out));
    }
    if (any)
        CEK_TRY(cek__pool(graph, *out, &p, out));
    return CEK_OK;
out:
    return st;
}
