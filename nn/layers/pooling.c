/* pooling.c - see pooling.h. */
#include "nn/layers/pooling.h"

#include <stdlib.h>

#include "core/base/alloc.h"
#include "nn/graph/parts.h"

/* What the last window of an axis takes behind the padding. */
static int64_t overhang(const cek__windows *w, int axis, int64_t in)
{
    int64_t room = in + w->pad_lo[axis] + w->pad_hi[axis] - w->kernel[axis];
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

cek_status cek__pool(cek__graph *graph, int x, const cek__pooling *p, int *out)
{
    cek_status st;
    cek__part part = { .kind = CEK__PART_POOL, .inputs = 1, .pool = { .windows = p->windows, .mode = p->mode } };
    const cek__dims dims = graph->flows[x].dims;
    int64_t more[CEK_SPATIAL_MAX] = { 0 };
    bool any = false;

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
