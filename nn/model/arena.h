/* arena.h - packs values that live at different times into one piece of memory.
 *
 * Must not know: what the values are. */
#ifndef CEK_NN_MODEL_ARENA_H
#define CEK_NN_MODEL_ARENA_H

#include "core/base/status.h"

typedef struct cek__interval {
    uint64_t bytes;
    int first, last; /* lives from `first` to `last`, both included */
    uint64_t offset; /* the answer: a multiple of CEK_ALIGNMENT */
} cek__interval;

/* Gives every interval an offset so that no two that live at one time overlap; *total is the memory they need. */
CEK__SHARED CEK__CHECKED cek_status cek__arena_place(cek__interval *intervals, size_t count, uint64_t *total);

#endif
