/* allocator.h - the caching allocator of one device.
 *
 * Must not know: what memory is used for, beyond one thing: memory of the default stream is kept apart (below). */
#ifndef CEK_CORE_DEVICE_ALLOCATOR_H
#define CEK_CORE_DEVICE_ALLOCATOR_H

#include <pthread.h>

#include "core/base/status.h"

/* Size classes of free blocks: eight to each power of two, counted in units of CEK_ALIGNMENT. */
enum { CEK__BINS = 448, CEK__BIN_WORDS = CEK__BINS / 64 };

typedef struct cek__bins {
    cek_memory *first[CEK__BINS];
    uint64_t used[CEK__BIN_WORDS]; /* bit i: first[i] is not NULL */
} cek__bins;

/* Who may reuse a freed block at once. Tensors free memory that queued work still uses: safe as long as only later
 * work of the same stream gets it. Others free memory that is idle. */
typedef enum cek__reuse { CEK__REUSE_ANY, CEK__REUSE_ORDER, CEK__REUSE_COUNT } cek__reuse;

typedef struct cek__allocator {
    cek_device *device;
    pthread_mutex_t lock;
    cek__bins bins[CEK__REUSE_COUNT]
                  [2]; /* small blocks apart from large ones: a small block must not pin a large segment */
    void *given;       /* blocks in the hands of callers, by place (blocks.c) */
    struct cek__segment *segments;
    uint64_t limit; /* of `held`; CEK_UNKNOWN: none */
    uint64_t held;  /* bytes got from the plugin and not given back */
    uint64_t used, peak_used;
    uint64_t alloc_count, plugin_alloc_count;
} cek__allocator;

void cek__allocator_init(cek__allocator *allocator, cek_device *device);

/* Gives everything back, also what was not freed. No work may be queued any more. */
void cek__allocator_clear(cek__allocator *allocator);

/* Where the host reaches a plugin's memory, or NULL. */
void *cek__mem_host(const cek_device *device, cek_mem *mem);

/* As cek_memory_alloc, for memory whose last use is queued on the default stream when it is freed. Either free
 * function takes either kind. */
CEK__CHECKED cek_status cek__memory_alloc_order(cek_device *device, uint64_t bytes, cek_memory **out);

/* Whether `bytes` from `ref` on lie in memory that a caller has of this allocator, or in memory that is not the
 * allocator's and that the plugin judges. CEK_INVALID names the call, the place and what was asked for. */
CEK__CHECKED cek_status cek__memory_check(cek_device *device, const char *call, cek_ref ref, uint64_t bytes);

#endif
