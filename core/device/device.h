/* device.h - one device of one plugin: opened when first used; what the parts of core/device share about it.
 *
 * Must not know: tensors. What a higher floor keeps per device hangs on `attachment`. */
#ifndef CEK_CORE_DEVICE_DEVICE_H
#define CEK_CORE_DEVICE_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/device/module.h"
#include "core/device/allocator.h"

typedef struct cek__registered cek__registered;

/* Who may use the default stream. */
typedef struct cek__turn {
    atomic_uintptr_t owner; /* a thread; 0: nobody */
    atomic_uint waiting;    /* threads */
    unsigned depth;         /* how often the owner has taken it */
} cek__turn;

struct cek_device {
    cek_engine *engine;
    cek__module *module;
    const cek_plugin *plugin; /* &module->table */
    uint32_t index;           /* in the plugin */
    char name[48];            /* "cpu:0" */
    cek_device_info info;     /* as it was at the start */

    /* How long no command may finish, and how long a call that makes something may take, before the device counts as
     * lost (wait.h). */
    uint64_t timeout_ns, making_timeout_ns;
    atomic_bool lost; /* for good, with `lost_text`, which is written once before */
    char lost_text[128];
    atomic_bool occupied;   /* and a thread was left inside (gate.h) */
    atomic_ullong finished; /* commands that were seen to finish, by anybody: changes where the device comes on */

    /* Over `opening`, `streams` with their pins, `pinned`, `registered`, `staging`, `lost_text`. As every lock of these
     * libraries it is never held across a call of the plugin, which may not return: what one thread makes, others wait
     * for, with the deadline of all waits. */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* opened or not, a stream without pins, the turn given back, memory registered, lost */
    _Atomic(cek_dev *) dev; /* NULL until opened */
    bool opening;           /* by a thread that is inside device_open */
    cek_stream *streams;
    cek__registered *registered; /* memory of the program's (registered.c) */
    enum { CEK__PINNED_UNKNOWN, CEK__PINNED_BY_PLUGIN, CEK__PINNED_PLAIN } pinned;
    cek__allocator allocator;

    /* The default stream, one thread at a time in its turn, which it may take again: whoever has it may allocate
     * memory, and an allocator short of memory waits for the stream. */
    cek__turn turn;
    cek_stream *order;

    void *staging; /* the bounce buffer of copies from this device, while no copy has it (transfer.c) */

    void *attachment; /* in the turn; freed by attachment_free before the default stream and memory go */
    void (*attachment_free)(cek_device *device, void *attachment);
};

CEK__CHECKED cek_status cek__device_create(cek_engine *engine, cek__module *module, uint32_t index, cek_device **out);
/* What a lost device may still use is left to it, and its module with it (module->left). */
void cek__device_free(cek_device *device);

/* An object of the device that a program may hold takes the device when it is made and drops it last of all: the
 * engine lives as long. */
CEK__SHARED void cek__device_take(cek_device *device);
CEK__SHARED void cek__device_drop(cek_device *device);
/* Opens the device if it is not; *out may be NULL. Threads: any. */
CEK__CHECKED cek_status cek__device_open(cek_device *device, cek_dev **out);

/* This thread's turn at the default stream. CEK_TIMEOUT: another thread has not given it back for the device's
 * time-out, in which nothing of the device has come on. */
CEK__CHECKED cek_status cek__device_turn_take(cek_device *device);
void cek__device_turn_give(cek_device *device);

/* The same with the stream; opens and creates what is missing. The turn is not had after a failure. */
CEK__CHECKED cek_status cek__device_order_take(cek_device *device, cek_stream **out);

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
