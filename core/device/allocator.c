/* allocator.c - the caching allocator: segments from the plugin, cut into blocks, kept when they are freed.
 *
 * Owns: every device memory that this library allocates, with its statistics and limit. Blocks are blocks.c's.
 * The lock is given up while the plugin makes memory or takes it back: bytes count as held from before the one until
 * after the other. The turn of the default stream is taken only to empty the cache, when that stream must have finished
 * before its memory may go. */
#include "core/device/allocator.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/options.h"
#include "core/base/log.h"
#include "core/device/blocks.h"
#include "core/device/call.h"
#include "core/device/device.h"

#define UNIT ((uint64_t)CEK_ALIGNMENT)
#define SMALL_MAX ((uint64_t)1 << 20)    /* requests up to this share segments */
#define SEGMENT_STEP ((uint64_t)2 << 20) /* segments are multiples of this: a page of most GPUs */
#define BYTES_MAX ((uint64_t)1 << 62)    /* so that no rounding overflows */

/* ---- segments ---- */

static cek_status segment_mem_make(cek_device *device, cek_dev *dev, uint64_t bytes, cek_mem **out)
{
    cek_status st;
    cek_mem_desc desc = { .size = sizeof desc, .bytes = bytes };

    CEK_TRY(CEK__CALL(device, mem_alloc, dev, &desc, out));
    if (*out == NULL)
        CEK_FAIL(CEK_BAD_PLUGIN, "%s: mem_alloc succeeds without memory", device->name);
out:
    return st;
}

/* Called and left with the lock. */
static cek_status segment_new(cek__allocator *allocator, cek_dev *dev, uint64_t bytes, cek__reuse reuse, bool large,
                              bool alone, cek__segment **out)
{
    cek_status st;
    cek__segment *s = NULL;
    cek_device *device = allocator->device;

    *out = NULL;
    if (bytes > allocator->limit || allocator->held > allocator->limit - bytes)
        CEK_FAIL(CEK_OUT_OF_MEMORY, "%s: the memory limit is reached", device->name);
    CEK_TRY(cek__calloc(1, sizeof *s, &s));
    *s = (cek__segment){ .bytes = bytes, .reuse = reuse, .large = large, .alone = alone };
    CEK_TRY(cek__block_new(allocator, s, 0, bytes, &s->first));
    allocator->held += bytes;
    pthread_mutex_unlock(&allocator->lock);
    st = segment_mem_make(device, dev, bytes, &s->mem);
    pthread_mutex_lock(&allocator->lock);
    if (st != CEK_OK) {
        allocator->held -= bytes;
        goto out;
    }
    allocator->plugin_alloc_count++;
    s->next = allocator->segments;
    if (s->next != NULL)
        s->next->prev = s;
    allocator->segments = s;
    *out = s;
    return CEK_OK;
out:
    if (s != NULL)
        free(s->first);
    free(s);
    return st;
}

/* Takes a segment whose only block is in no bin out of the list, and puts it on another. */
static void segment_take(cek__allocator *allocator, cek__segment *s, cek__segment **taken)
{
    if (s->prev != NULL)
        s->prev->next = s->next;
    else
        allocator->segments = s->next;
    if (s->next != NULL)
        s->next->prev = s->prev;
    s->next = *taken;
    *taken = s;
}

/* Gives them back; called without the lock. */
static void segments_free(cek__allocator *allocator, cek__segment *taken)
{
    for (cek__segment *s = taken, *next; s != NULL; s = next) {
        next = s->next;
        CEK__RELEASE(allocator->device, mem_free, s->mem);
        pthread_mutex_lock(&allocator->lock);
        allocator->held -= s->bytes;
        pthread_mutex_unlock(&allocator->lock);
        free(s->first);
        free(s);
    }
}

static void idle_segments_take(cek__allocator *allocator, cek__segment **taken)
{
    for (cek__segment *s = allocator->segments, *next; s != NULL; s = next) {
        next = s->next;
        if (s->first->free && s->first->right == NULL) {
            cek__bin_take(allocator, s->first);
            segment_take(allocator, s, taken);
        }
    }
}

/* Gives unused segments back. Those of the default stream may be in use by queued work, so that has to finish; if it
 * cannot, the device is beyond caring about memory. */
static void cache_empty(cek_device *device)
{
    cek__segment *taken = NULL;

    if (cek__device_turn_take(device) != CEK_OK) {
        cek__log(CEK_LOG_WARN, "%s: the cache is not emptied: %s", device->name, cek_error_text());
        return;
    }
    if (device->order != NULL && cek_stream_sync(device->order, CEK_FOREVER) != CEK_OK)
        cek__log(CEK_LOG_WARN, "%s: emptying the cache: %s", device->name, cek_error_text());
    pthread_mutex_lock(&device->allocator.lock);
    idle_segments_take(&device->allocator, &taken);
    pthread_mutex_unlock(&device->allocator.lock);
    segments_free(&device->allocator, taken);
    cek__device_turn_give(device);
}

/* ---- allocation ---- */

static cek_status memory_give(cek__allocator *allocator, cek_memory *memory, uint64_t asked)
{
    cek_status st = cek__block_give(allocator, memory, asked);

    if (st != CEK_OK)
        return st;
    allocator->alloc_count++;
    allocator->used += memory->bytes;
    if (allocator->used > allocator->peak_used)
        allocator->peak_used = allocator->used;
    return CEK_OK;
}

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + UNIT - 1) & ~(UNIT - 1);
}

/* From the cache, else from a new segment of `segment_bytes`. */
static cek_status allocator_alloc(cek__allocator *allocator, cek_dev *dev, uint64_t bytes, uint64_t segment_bytes,
                                  cek__reuse reuse, cek_memory **out)
{
    cek_status st;
    uint64_t need = rounded(bytes);
    bool large = need > SMALL_MAX;
    cek__segment *s;
    cek_memory *block;

    pthread_mutex_lock(&allocator->lock);
    /* above a limit that was lowered the cache gives nothing, until it was emptied */
    block = allocator->held > allocator->limit ? NULL : cek__blocks_best_fit(&allocator->bins[reuse][large], need);
    if (block == NULL) {
        CEK_TRY(segment_new(allocator, dev, segment_bytes, reuse, large, false, &s));
        block = s->first;
        cek__bin_put(allocator, block);
    }
    CEK_TRY(cek__block_cut(allocator, block, need));
    st = memory_give(allocator, block, bytes);
    if (st == CEK_OK)
        *out = block;
    else
        cek__block_release(allocator, block);
out:
    pthread_mutex_unlock(&allocator->lock);
    return st;
}

static cek_status alone_alloc(cek__allocator *allocator, cek_dev *dev, uint64_t bytes, cek_memory **out)
{
    cek__segment *s, *taken = NULL;
    cek_status st;

    pthread_mutex_lock(&allocator->lock);
    CEK_TRY(segment_new(allocator, dev, rounded(bytes), CEK__REUSE_ANY, true, true, &s));
    st = memory_give(allocator, s->first, bytes);
    if (st == CEK_OK)
        *out = s->first;
    else
        segment_take(allocator, s, &taken);
out:
    pthread_mutex_unlock(&allocator->lock);
    segments_free(allocator, taken);
    return st;
}

static void amount(char *out, size_t size, uint64_t bytes, const char *unknown)
{
    if (bytes == CEK_UNKNOWN)
        snprintf(out, size, "%s", unknown);
    else
        snprintf(out, size, "%" PRIu64, bytes);
}

static bool free_bytes_ask(const cek_device *device, cek_dev *dev, uint64_t *out)
{
    uint64_t total;
    cek_status st;

    if (!cek__ask_enter(device, "device_memory"))
        return false;
    st = device->plugin->device_memory(dev, out, &total);
    cek__call_leave();
    return st == CEK_OK;
}

/* The figures that explain a failed request, instead of the plugin's words about its last part. */
static cek_status exhausted(cek_device *device, cek_dev *dev, uint64_t bytes)
{
    char limit[32], available[32], cause[256];
    uint64_t free_bytes;
    cek__allocator *allocator = &device->allocator;

    snprintf(cause, sizeof cause, "%s", cek_error_text());
    if (!free_bytes_ask(device, dev, &free_bytes))
        free_bytes = CEK_UNKNOWN;
    pthread_mutex_lock(&allocator->lock);
    amount(limit, sizeof limit, allocator->limit, "none");
    amount(available, sizeof available, free_bytes, "unknown");
    cek__fail(CEK_OUT_OF_MEMORY,
              "%s: out of memory: %" PRIu64 " bytes needed, %" PRIu64 " used, %" PRIu64
              " cached, limit %s, free %s (%s)",
              device->name, bytes, allocator->used, allocator->held - allocator->used, limit, available, cause);
    pthread_mutex_unlock(&allocator->lock);
    return CEK_OUT_OF_MEMORY;
}

static cek_status memory_alloc(cek_device *device, uint64_t bytes, bool alone, cek__reuse reuse, cek_memory **out)
{
    cek_status st;
    cek_dev *dev;
    uint64_t preferred;

    *out = NULL;
    if (bytes == 0)
        CEK_FAIL(CEK_INVALID, "%s: 0 bytes of memory", device->name);
    CEK_TRY(cek__device_open(device, &dev));
    if (bytes > BYTES_MAX) {
        cek__fail(CEK_OUT_OF_MEMORY, "no device has that much");
        return exhausted(device, dev, bytes);
    }
    preferred = (bytes + SEGMENT_STEP - 1) & ~(SEGMENT_STEP - 1);
    /* With room to share, then with the cache given back, then with nothing to spare. */
    for (int attempt = 0; attempt < 3; attempt++) {
        if (attempt == 1)
            cache_empty(device);
        st = alone ? alone_alloc(&device->allocator, dev, bytes, out)
                   : allocator_alloc(&device->allocator, dev, bytes, attempt < 2 ? preferred : rounded(bytes), reuse,
                                     out);
        if (st != CEK_OUT_OF_MEMORY)
            return st;
    }
    return exhausted(device, dev, bytes);
out:
    return st;
}

cek_status cek_memory_alloc(cek_device *device, uint64_t bytes, uint32_t flags, cek_memory **out)
{
    cek_status st;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(device);
    if ((flags & ~CEK_MEMORY_ALONE) != 0)
        return cek__fail(CEK_UNSUPPORTED, "%s: unknown memory flags %#x", device->name, flags);
    st = memory_alloc(device, bytes, (flags & CEK_MEMORY_ALONE) != 0, CEK__REUSE_ANY, out);
    if (st == CEK_OK) {
        (*out)->holds = true;
        cek__device_take(device);
    }
    return st;
}

cek_status cek__memory_alloc_order(cek_device *device, uint64_t bytes, cek_memory **out)
{
    /* An inline device has finished all work when a call returns: nothing needs to be kept apart. */
    return memory_alloc(device, bytes, false, cek__device_is_inline(device) ? CEK__REUSE_ANY : CEK__REUSE_ORDER, out);
}

void cek_memory_free(cek_memory *memory)
{
    cek__allocator *allocator;
    cek_device *device;
    cek__segment *taken = NULL;
    bool holds;

    if (memory == NULL)
        return;
    device = memory->device;
    allocator = &device->allocator;
    holds = memory->holds;
    memory->holds = false; /* the block may be the next caller's */
    pthread_mutex_lock(&allocator->lock);
    allocator->used -= memory->bytes;
    cek__block_take_back(allocator, memory);
    if (memory->segment->alone)
        segment_take(allocator, memory->segment, &taken);
    else
        cek__block_release(allocator, memory);
    pthread_mutex_unlock(&allocator->lock);
    segments_free(allocator, taken);
    if (holds)
        cek__device_drop(device);
}

cek_ref cek_memory_ref(const cek_memory *memory)
{
    return memory != NULL ? (cek_ref){ memory->segment->mem, memory->offset } : (cek_ref){ NULL, 0 };
}

void *cek__mem_host(const cek_device *device, cek_mem *mem)
{
    void *base;

    if (!cek__release_enter(device, "mem_host_ptr"))
        return NULL;
    base = device->plugin->mem_host_ptr(mem);
    cek__call_leave();
    return base;
}

void *cek_memory_host(const cek_memory *memory)
{
    unsigned char *base;

    if (memory == NULL)
        return NULL;
    base = cek__mem_host(memory->device, memory->segment->mem);
    return base != NULL ? base + memory->offset : NULL;
}

uint64_t cek_memory_bytes(const cek_memory *memory)
{
    return memory != NULL ? memory->asked : 0;
}

cek_device *cek_memory_device(const cek_memory *memory)
{
    return memory != NULL ? memory->device : NULL;
}

static bool is_ours(const cek__allocator *allocator, const cek_mem *mem)
{
    for (const cek__segment *s = allocator->segments; s != NULL; s = s->next)
        if (s->mem == mem)
            return true;
    return false;
}

cek_status cek__memory_check(cek_device *device, const char *call, cek_ref ref, uint64_t bytes)
{
    cek__allocator *allocator = &device->allocator;
    const cek_memory *block;
    uint64_t first = 0, asked = 0;
    bool ours = true;

    if (ref.mem == NULL)
        return cek__fail(CEK_INVALID, "%s: %s: no memory is given", device->name, call);
    pthread_mutex_lock(&allocator->lock);
    block = cek__block_at(allocator, ref);
    if (block != NULL) {
        first = ref.offset - block->offset;
        asked = block->asked;
    } else {
        ours = is_ours(allocator, ref.mem);
    }
    pthread_mutex_unlock(&allocator->lock);
    if (!ours || (first <= asked && bytes <= asked - first))
        return CEK_OK;
    if (block == NULL)
        return cek__fail(CEK_INVALID, "%s: %s: byte %" PRIu64 " is in no memory that is in use (freed, or beyond it)",
                         device->name, call, ref.offset);
    return cek__fail(CEK_INVALID, "%s: %s: %" PRIu64 " bytes at byte %" PRIu64 " of a memory of %" PRIu64, device->name,
                     call, bytes, first, asked);
}

/* ---- the allocator as a whole ---- */

void cek__allocator_init(cek__allocator *allocator, cek_device *device)
{
    memset(allocator, 0, sizeof *allocator);
    allocator->device = device;
    allocator->limit = CEK_UNKNOWN;
    pthread_mutex_init(&allocator->lock, NULL);
}

void cek__allocator_clear(cek__allocator *allocator)
{
    cek__segment *taken = NULL;

    while (allocator->segments != NULL) {
        cek__segment *s = allocator->segments;

        for (cek_memory *m = s->first; m != NULL; m = m->right)
            if (!m->free)
                cek__block_take_back(allocator, m);
        while (s->first->right != NULL)
            cek__block_join(s->first);
        segment_take(allocator, s, &taken);
    }
    segments_free(allocator, taken);
    pthread_mutex_destroy(&allocator->lock);
}

cek_status cek_device_memory_stats(cek_device *device, cek_memory_stats *out)
{
    cek_status st;
    cek_dev *dev;
    cek__allocator *allocator;
    cek_memory_stats stats = { .device_free_bytes = CEK_UNKNOWN, .device_total_bytes = CEK_UNKNOWN };

    CEK__NOT_NULL(out);
    CEK__NOT_NULL(device);
    allocator = &device->allocator;
    CEK_TRY(cek__results_clear(device->name, out));
    CEK_TRY(cek__device_open(device, &dev));
    CEK_TRY(CEK__CALL(device, device_memory, dev, &stats.device_free_bytes, &stats.device_total_bytes));
    pthread_mutex_lock(&allocator->lock);
    stats.used_bytes = allocator->used;
    stats.cached_bytes = allocator->held - allocator->used;
    stats.peak_used_bytes = allocator->peak_used;
    stats.limit_bytes = allocator->limit;
    stats.alloc_count = allocator->alloc_count;
    stats.plugin_alloc_count = allocator->plugin_alloc_count;
    pthread_mutex_unlock(&allocator->lock);
    cek__results_give(out, &stats, sizeof stats);
    return CEK_OK;
out:
    return st;
}

void cek_device_reset_peak(cek_device *device)
{
    if (device == NULL)
        return;
    pthread_mutex_lock(&device->allocator.lock);
    device->allocator.peak_used = device->allocator.used;
    pthread_mutex_unlock(&device->allocator.lock);
}

cek_status cek_device_set_memory_limit(cek_device *device, uint64_t bytes)
{
    CEK__NOT_NULL(device);
    pthread_mutex_lock(&device->allocator.lock);
    device->allocator.limit = bytes != 0 ? bytes : CEK_UNKNOWN;
    pthread_mutex_unlock(&device->allocator.lock);
    return CEK_OK;
}

void cek_device_empty_cache(cek_device *device)
{
    if (device != NULL && device->dev != NULL)
        cache_empty(device);
}
