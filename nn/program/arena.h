/* arena.h - packs values that live at different times into one piece of memory, or into few where a device gives no
 * single one that is large enough.
 *
 * Must not know: what the values are. */
#ifndef CEK_NN_PROGRAM_ARENA_H
#define CEK_NN_PROGRAM_ARENA_H

#include "core/base/status.h"

typedef struct cek__interval {
    uint64_t bytes;
    int first, last; /* lives from `first` to `last`, both included */
    uint64_t offset; /* the answer: a multiple of CEK_ALIGNMENT */
} cek__interval;

/* Gives every interval an offset so that no two that live at one time overlap, and none of at most `piece` bytes (a
 * multiple of CEK_ALIGNMENT, or UINT64_MAX) lies across a multiple of `piece`; *total is the memory they need. */
CEK__SHARED CEK__CHECKED cek_status cek__arena_place(cek__interval *intervals, size_t count, uint64_t piece,
                                                     uint64_t *total);

#endif
