/* registered.c - memory of a program's that devices have registered (cek_pinned_register).
 *
 * Owns: each device's list of ranges, which do not overlap, with how often each was registered: the plugin hears of
 * the first and the last. No lock is held meanwhile; the range is marked, and who wants the same bytes waits. Each
 * time keeps the engine.
 * Must not know: what a plugin does with the memory, who reads it. */
#include <stdlib.h>

#include "core/base/alloc.h"
#include "core/device/call.h"
#include "core/device/device.h"
#include "core/device/wait.h"

struct cek__registered {
    cek__registered *next;
    uintptr_t at;
    uint64_t bytes;
    size_t count;
    bool busy; /* a thread is inside the plugin with it */
};

/* The lock is held. */
static cek__registered *overlapping(const cek_device *device, uintptr_t at, uint64_t bytes)
{
    cek__registered *r = device->registered;

    while (r != NULL && (at >= r->at + r->bytes || r->at >= at + bytes))
        r = r->next;
    return r;
}

/* The lock is held. The range, with one more user or, `busy`, as the first one's to register. */
static cek_status range_take(cek_device *device, uintptr_t at, uint64_t bytes, cek__registered **out)
{
    cek_status st = CEK_OK;
    cek__registered *r;
    cek__wait wait = cek__wait_begin_making(device);

    *out = NULL;
    do
        r = overlapping(device, at, bytes);
    while (r != NULL && r->busy && cek__wait_changed(&wait, "host_register", &st));
    if (st != CEK_OK)
        return st;
    if (r != NULL && (r->at != at || r->bytes != bytes))
        return cek__fail(CEK_INVALID, "%s: %llu bytes at %#llx to register overlap %llu registered ones at %#llx",
                         device->name, (unsigned long long)bytes, (unsigned long long)at, (unsigned long long)r->bytes,
                         (unsigned long long)r->at);
    if (r == NULL) {
        CEK_TRY(cek__calloc(1, sizeof *r, &r));
        *r = (cek__registered){ .next = device->registered, .at = at, .bytes = bytes, .busy = true };
        device->registered = r;
    }
    r->count++;
    *out = r;
out:
    return st;
}

/* The plugin has been told. */
static void range_told(cek_device *device, cek__registered *r, bool stays)
{
    pthread_mutex_lock(&device->lock);
    r->busy = false;
    if (!stays) {
        cek__registered **at = &device->registered;

        while (*at != r)
            at = &(*at)->next;
        *at = r->next;
        free(r);
    }
    pthread_cond_broadcast(&device->changed);
    pthread_mutex_unlock(&device->lock);
}

cek_status cek_pinned_register(cek_device *device, void *ptr, uint64_t bytes)
{
    cek_status st;
    cek_dev *dev;
    cek__registered *r;
    bool first;

    CEK__NOT_NULL(device);
    CEK__NOT_NULL(ptr);
    if (bytes == 0 || bytes > UINTPTR_MAX - (uintptr_t)ptr)
        CEK_FAIL(CEK_INVALID, "%s: %llu bytes to register", device->name, (unsigned long long)bytes);
    if (cek__device_is_inline(device))
        CEK_FAIL(CEK_UNSUPPORTED, "%s: reads the host's memory itself", device->name);
    CEK_TRY(cek__device_open(device, &dev));
    pthread_mutex_lock(&device->lock);
    st = range_take(device, (uintptr_t)ptr, bytes, &r);
    first = st == CEK_OK && r->busy;
    pthread_mutex_unlock(&device->lock);
    if (first) {
        st = CEK__CALL(device, host_register, dev, ptr, bytes);
        range_told(device, r, st == CEK_OK);
    }
    if (st == CEK_OK)
        cek__device_take(device);
out:
    return st;
}

void cek_pinned_unregister(cek_device *device, void *ptr)
{
    cek__registered *r;
    bool last;

    if (device == NULL || ptr == NULL)
        return;
    pthread_mutex_lock(&device->lock);
    r = overlapping(device, (uintptr_t)ptr, 1);
    if (r == NULL || r->at != (uintptr_t)ptr || r->busy) { /* not registered, not yet, or not any more */
        pthread_mutex_unlock(&device->lock);
        return;
    }
    last = --r->count == 0;
    r->busy = last;
    pthread_mutex_unlock(&device->lock);
    if (last) {
        if (cek__release_enter(device, "host_unregister")) {
            device->plugin->host_unregister(device->dev, ptr);
            cek__call_leave();
        }
        range_told(device, r, false);
    }
    cek__device_drop(device);
}
