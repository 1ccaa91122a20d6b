/* arena.c - first fit over intervals, the largest first.
 *
 * The few large values decide the size of the arena; placed first they lie without gaps, and the
 * many small ones fill in what is left. O(n^2), with n some hundreds. */
#include "nn/program/arena.h"

#include <stdlib.h>

#include "core/base/alloc.h"

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + CEK_ALIGNMENT - 1) / CEK_ALIGNMENT * CEK_ALIGNMENT;
}

/* Larger first; among equals the one that lives earlier, so that the result does not depend on the sort. */
static int larger_first(const void *a, const void *b)
{
    const cek__interval *x = *(cek__interval *const *)a, *y = *(cek__interval *const *)b;

    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* The lowest place from `offset` on that is in one piece. */
static uint64_t in_one_piece(uint64_t offset, uint64_t bytes, uint64_t piece)
{
    return bytes > piece || piece - offset % piece >= bytes ? offset : offset + (piece - offset % piece);
}

/* Puts `item` into the lowest gap among `placed`, which is sorted by offset, and inserts it there. */
static void place(cek__interval **placed, size_t count, uint64_t piece, cek__interval *item)
{
    uint64_t offset = 0;
    size_t at;

    for (size_t i = 0; i < count; i++) {
        const cek__interval *p = placed[i];

        if (p->last < item->first || item->last < p->first)
            continue;
        offset = in_one_piece(offset, item->bytes, piece);
        if (offset + item->bytes <= p->offset)
            break;
        if (p->offset + aligned(p->bytes) > offset)
            offset = p->offset + aligned(p->bytes);
    }
    item->offset = offset = in_one_piece(offset, item->bytes, piece);
    for (at = count; at > 0 && placed[at - 1]->offset > offset; at--)
        placed[at] = placed[at - 1];
    placed[at] = item;
}

cek_status cek__arena_place(cek__interval *intervals, size_t count, uint64_t piece, uint64_t *total)
{
    cek_status st;
    cek__interval **order = NULL, **placed = NULL;

    *total = 0;
    CEK_TRY(cek__alloc_array(count, sizeof *order, &order));
    CEK_TRY(cek__alloc_array(count, sizeof *placed, &placed));
    for (size_t i = 0; i < count; i++)
        order[i] = &intervals[i];
    qsort(order, count, sizeof *order, larger_first);
    for (size_t i = 0; i < count; i++) {
        place(placed, i, piece, order[i]);
        if (order[i]->offset + aligned(order[i]->bytes) > *total)
            *total = order[i]->offset + aligned(order[i]->bytes);
    }
    st = CEK_OK;
out:
    free(order);
    free(placed);
    return st;
}
