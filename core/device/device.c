/* device.c - devices: opening, description, the default stream, pinned memory.
 *
 * Owns: the plugin's device handle and the default stream. Memory is allocator.c's, other streams are stream.c's. */
#include "core/device/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/log.h"
#include "core/device/call.h"
#include "core/device/engine.h"
#include "core/device/stream.h"

void cek__cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t monotonic;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

cek_status cek__device_create(cek_engine *engine, cek__module *module, uint32_t index, cek_device **out)
{
    cek_status st;
    cek_device *device;
    pthread_mutexattr_t recursive;

    *out = NULL;
    CEK_TRY(cek__calloc(1, sizeof *device, &device));
    device->engine = engine;
    device->module = module;
    device->plugin = &module->table;
    device->index = index;
    device->timeout_ns = engine->timeout_ns;
    device->info = module->infos[index];
    snprintf(device->name, sizeof device->name, "%s:%u", module->table.name, index);
    pthread_mutex_init(&device->lock, NULL);
    cek__cond_init(&device->unpinned);
    pthread_mutex_init(&device->staging_lock, NULL);
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&device->order_lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
    cek__allocator_init(&device->allocator, device);
    *out = device;
    return CEK_OK;
out:
    return st;
}

void cek__device_free(cek_device *device)
{
    if (device == NULL)
        return;
    if (device->order != NULL)
        (void)cek__stream_quiesce(device->order);
    if (device->attachment != NULL)
        device->attachment_free(device, device->attachment);
    cek_stream_free(device->order);
    cek__pinned_free(device, device->staging);
    cek__allocator_clear(&device->allocator);
    if (device->dev != NULL)
        CEK__RELEASE(device, device_close, device->dev);
    if (cek__device_is_lost(device))
        device->module->left = device->engine->left = true;
    pthread_cond_destroy(&device->unpinned);
    pthread_mutex_destroy(&device->order_lock);
    pthread_mutex_destroy(&device->staging_lock);
    pthread_mutex_destroy(&device->lock);
    free(device);
}

cek_status cek__device_open(cek_device *device, cek_dev **out)
{
    cek_dev *dev = atomic_load_explicit(&device->dev, memory_order_acquire);
    cek_status st = cek__device_check(device);

    if (st == CEK_OK && dev == NULL) {
        pthread_mutex_lock(&device->lock);
        dev = device->dev;
        if (dev == NULL) {
            cek__log(CEK_LOG_INFO, "%s is opened: %s", device->name, device->info.name);
            st = CEK__CALL(device, device_open, device->module->instance, device->index, NULL, &dev);
            if (st == CEK_OK && dev == NULL)
                st = cek__fail(CEK_BAD_PLUGIN, "%s: device_open succeeds without a device", device->name);
            if (st == CEK_OK)
                cek__log(CEK_LOG_INFO, "%s is open", device->name);
            atomic_store_explicit(&device->dev, st == CEK_OK ? dev : NULL, memory_order_release);
        }
        pthread_mutex_unlock(&device->lock);
    }
    if (out != NULL)
        *out = st == CEK_OK ? dev : NULL;
    return st;
}

const char *cek_device_name(const cek_device *device)
{
    return device != NULL ? device->name : "";
}

cek_engine *cek_device_engine(const cek_device *device)
{
    return device != NULL ? device->engine : NULL;
}

cek_status cek_device_describe(cek_device *device, cek_device_info *out)
{
    cek_status st;
    cek_device_info info;
    uint32_t size;

    CEK__NOT_NULL(out);
    CEK__NOT_NULL(device);
    size = out->size;
    if (size < sizeof size)
        CEK_FAIL(CEK_INVALID, "%s: describe: out->size is not set", device->name);
    memset(out, 0, size);
    out->size = size;
    CEK_TRY(cek__module_device_info(device->module, device->index, &info));
    info.size = size;
    memcpy(out, &info, size < sizeof info ? size : sizeof info);
    return CEK_OK;
out:
    return st;
}

cek_status cek_device_raw(cek_device *device, const cek_plugin **plugin, cek_dev **dev)
{
    cek_status st;

    CEK__NOT_NULL(plugin);
    *plugin = NULL;
    CEK__NOT_NULL(dev);
    *dev = NULL;
    CEK__NOT_NULL(device);
    st = cek__device_open(device, dev);
    *plugin = st == CEK_OK ? device->plugin : NULL;
    return st;
}

cek_status cek_device_sync(cek_device *device)
{
    cek_status st = CEK_OK, first;

    CEK__NOT_NULL(device);
    if (device->dev == NULL)
        return CEK_OK;
    pthread_mutex_lock(&device->order_lock);
    if (device->order != NULL)
        st = cek_stream_sync(device->order, CEK_FOREVER);
    pthread_mutex_unlock(&device->order_lock);
    first = cek__streams_sync(device);
    return st != CEK_OK ? st : first;
}

/* ---- the default stream ---- */

cek_status cek__device_order_lock(cek_device *device, cek_stream **out)
{
    cek_status st = CEK_OK;

    pthread_mutex_lock(&device->order_lock);
    if (device->order == NULL)
        st = cek__stream_create(device, true, &device->order);
    *out = device->order;
    if (st != CEK_OK)
        pthread_mutex_unlock(&device->order_lock);
    return st;
}

void cek__device_order_unlock(cek_device *device)
{
    pthread_mutex_unlock(&device->order_lock);
}

/* ---- pinned memory ---- */

/* A backend has page-locked memory or it has none: the first request tells, and cek__pinned_free knows whose it is. */
cek_status cek__pinned_alloc(cek_device *device, uint64_t bytes, void **out)
{
    cek_status st;
    cek_dev *dev;

    *out = NULL;
    if (bytes == 0 || bytes > SIZE_MAX / 2)
        CEK_FAIL(CEK_INVALID, "%s: %llu bytes of pinned memory", device->name, (unsigned long long)bytes);
    CEK_TRY(cek__device_open(device, &dev));
    pthread_mutex_lock(&device->lock);
    st = CEK_UNSUPPORTED;
    if (device->pinned != CEK__PINNED_PLAIN)
        st = CEK__CALL(device, host_alloc, dev, bytes, out);
    if (st == CEK_UNSUPPORTED && device->pinned != CEK__PINNED_BY_PLUGIN)
        device->pinned = CEK__PINNED_PLAIN;
    else if (st == CEK_OK)
        device->pinned = CEK__PINNED_BY_PLUGIN;
    if (device->pinned == CEK__PINNED_PLAIN)
        st = cek__alloc_aligned(CEK_ALIGNMENT, bytes, out);
    pthread_mutex_unlock(&device->lock);
    if (st == CEK_OK && *out == NULL)
        CEK_FAIL(CEK_BAD_PLUGIN, "%s: host_alloc succeeds without memory", device->name);
    return st;
out:
    *out = NULL;
    return st;
}

void cek__pinned_free(cek_device *device, void *ptr)
{
    if (ptr == NULL)
        return;
    if (cek__device_is_lost(device))
        cek__abandon(ptr);
    else if (device->pinned == CEK__PINNED_BY_PLUGIN)
        CEK__RELEASE_(device, host_free, ptr, device->dev, ptr);
    else
        free(ptr);
}

cek_status cek_pinned_alloc(cek_device *device, uint64_t bytes, void **out)
{
    cek_status st;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(device);
    st = cek__pinned_alloc(device, bytes, out);
    if (st == CEK_OK)
        cek__device_take(device);
    return st;
}

void cek_pinned_free(cek_device *device, void *ptr)
{
    if (device == NULL || ptr == NULL)
        return;
    cek__pinned_free(device, ptr);
    cek__device_drop(device);
}

void cek_pinned_abandon(cek_device *device, void *ptr)
{
    if (device == NULL || ptr == NULL)
        return;
    cek__abandon(ptr);
    cek__device_drop(device);
}
