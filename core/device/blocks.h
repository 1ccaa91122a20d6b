/* blocks.h - the pieces of segments: cut, joined, found by size while they are free and by place while they are not.
 *
 * Must not know: plugins, locks (the allocator's is held), who wants memory. */
#ifndef CEK_CORE_DEVICE_BLOCKS_H
#define CEK_CORE_DEVICE_BLOCKS_H

#include "core/device/allocator.h"

typedef struct cek__segment {
    struct cek__segment *prev, *next;
    cek_mem *mem;
    uint64_t bytes;
    cek_memory *first;
    cek__reuse reuse;
    bool large, alone;
} cek__segment;

struct cek_memory {
    cek_device *device;
    cek__segment *segment;
    uint64_t offset, bytes;
    uint64_t asked;                  /* of `bytes`, by the caller who has it */
    cek_memory *left, *right;        /* neighbours in the segment */
    cek_memory *bin_prev, *bin_next; /* while free */
    bool free;
    bool holds; /* the engine, for a caller from outside (cek__device_take) */
};

CEK__CHECKED cek_status cek__block_new(cek__allocator *allocator, cek__segment *s, uint64_t offset, uint64_t bytes,
                                       cek_memory **out);

void cek__bin_put(cek__allocator *allocator, cek_memory *block);
void cek__bin_take(cek__allocator *allocator, cek_memory *block);

/* The smallest free block that fits, or NULL; it stays in its bin. */
cek_memory *cek__blocks_best_fit(const cek__bins *bins, uint64_t bytes);

/* Takes a free block out of its bin, cut to `bytes` where the rest is worth keeping. */
CEK__CHECKED cek_status cek__block_cut(cek__allocator *allocator, cek_memory *block, uint64_t bytes);

/* Makes one block of `left` and its right neighbour; both are in no bin. */
void cek__block_join(cek_memory *left);

/* A block that is in no bin is free again: joined with free neighbours, in a bin. */
void cek__block_release(cek__allocator *allocator, cek_memory *block);

/* A block that is in no bin passes into a caller's hands, and back. */
CEK__CHECKED cek_status cek__block_give(cek__allocator *allocator, cek_memory *block, uint64_t asked);
void cek__block_take_back(cek__allocator *allocator, cek_memory *block);

/* The block in a caller's hands that holds the byte at `ref`, or NULL. */
const cek_memory *cek__block_at(const cek__allocator *allocator, cek_ref ref);

#endif
