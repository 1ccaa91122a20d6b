/* device.h - one device of one plugin: opened when first used; what the parts of core/device share about it.
 *
 * Must not know: tensors. What a higher floor keeps per device hangs on `attachment`. */
#ifndef CEK_CORE_DEVICE_DEVICE_H
#define CEK_CORE_DEVICE_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/device/module.h"
#include "core/device/allocator.h"

struct cek_device {
    cek_engine *engine;
    cek__module *module;
    const cek_plugin *plugin; /* &module->table */
    uint32_t index;           /* in the plugin */
    char name[48];            /* "cpu:0" */
    cek_device_info info;     /* as it was at the start */

    uint64_t timeout_ns; /* how long no command may finish before the device counts as lost (wait.h) */
    atomic_bool lost;    /* for good, with `lost_text`, which is written once before */
    char lost_text[128];
    atomic_ullong finished; /* commands that were seen to finish, by anybody: changes where the device comes on */

    pthread_mutex_t lock; /* over opening, `streams` with their pins, `pinned`, `lost_text` */
    pthread_cond_t unpinned;
    _Atomic(cek_dev *) dev; /* NULL until opened */
    cek_stream *streams;
    enum { CEK__PINNED_UNKNOWN, CEK__PINNED_BY_PLUGIN, CEK__PINNED_PLAIN } pinned;
    cek__allocator allocator;

    /* The default stream, one thread at a time under its lock. Recursive: whoever holds it may allocate memory, and
     * an allocator short of memory waits for the stream. Taken before allocator.lock. */
    pthread_mutex_t order_lock;
    cek_stream *order;

    pthread_mutex_t staging_lock; /* over `staging`, the bounce buffer of copies from this device (transfer.c) */
    void *staging;

    void *attachment; /* under order_lock; freed by attachment_free before the default stream and memory go */
    void (*attachment_free)(cek_device *device, void *attachment);
};

CEK__CHECKED cek_status cek__device_create(cek_engine *engine, cek__module *module, uint32_t index, cek_device **out);
/* What a lost device may still use is left to it, and its module with it (module->left). */
void cek__device_free(cek_device *device);

/* An object of the device that a program may hold takes the device when it is made and drops it last of all: the
 * engine lives as long. */
CEK__SHARED void cek__device_take(cek_device *device);
CEK__SHARED void cek__device_drop(cek_device *device);
/* A condition variable on the monotonic clock. */
void cek__cond_init(pthread_cond_t *cond);

/* Opens the device if it is not; *out may be NULL. Threads: any. */
CEK__CHECKED cek_status cek__device_open(cek_device *device, cek_dev **out);

/* The default stream, locked; opens and creates what is missing. Nothing is locked after a failure. */
CEK__CHECKED cek_status cek__device_order_lock(cek_device *device, cek_stream **out);
void cek__device_order_unlock(cek_device *device);

/* As cek_pinned_alloc and cek_pinned_free, for what is the device's own: it does not keep the engine. */
CEK__CHECKED cek_status cek__pinned_alloc(cek_device *device, uint64_t bytes, void **out);
void cek__pinned_free(cek_device *device, void *ptr);

static inline bool cek__device_is_inline(const cek_device *device)
{
    return (device->info.flags & CEK_DEVICE_INLINE) != 0;
}

/* Called lost by this library; a plugin latches a loss of its own. */
static inline bool cek__device_is_lost(const cek_device *device)
{
    return device->lost;
}

#endif
