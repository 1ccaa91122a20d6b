/* device.c - devices: opening, description, the default stream, pinned memory.
 *
 * Owns: the plugin's device handle and the default stream. Memory is allocator.c's, other streams are stream.c's,
 * what a program registers is registered.c's. */
#include "core/device/device.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/options.h"
#include "core/base/log.h"
#include "core/base/thread.h"
#include "core/device/call.h"
#include "core/device/engine.h"
#include "core/device/stream.h"
#include "core/device/wait.h"

cek_status cek__device_create(cek_engine *engine, cek__module *module, uint32_t index, cek_device **out)
{
    cek_status st;
    cek_device *device;

    *out = NULL;
    CEK_TRY(cek__calloc(1, sizeof *device, &device));
    device->engine = engine;
    device->module = module;
    device->plugin = &module->table;
    device->index = index;
    device->timeout_ns = engine->timeout_ns;
    device->making_timeout_ns = engine->making_timeout_ns;
    device->info = module->infos[index];
    snprintf(device->name, sizeof device->name, "%s:%u", module->table.name, index);
    pthread_mutex_init(&device->lock, NULL);
    cek__cond_init(&device->changed);
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
    if (cek__device_is_lost(device)) { /* the plugin's callbacks may still tell its name */
        device->module->left = device->engine->left = true;
        cek__abandon(device);
        return;
    }
    pthread_cond_destroy(&device->changed);
    pthread_mutex_destroy(&device->lock);
    free(device);
}

/* ---- opening ---- */

static cek_status dev_open(cek_device *device, cek_dev **out)
{
    cek_status st;

    *out = NULL;
    cek__log(CEK_LOG_INFO, "%s is opened: %s", device->name, device->info.name);
    CEK_TRY(CEK__CALL(device, device_open, device->module->instance, device->index, NULL, out));
    if (*out == NULL)
        CEK_FAIL(CEK_BAD_PLUGIN, "%s: device_open succeeds without a device", device->name);
    cek__log(CEK_LOG_INFO, "%s is open", device->name);
    return CEK_OK;
out:
    *out = NULL;
    return st;
}

/* One thread opens; the others wait for it, and try themselves where it failed. */
static cek_status opened(cek_device *device, cek_dev **out)
{
    cek_status st = CEK_OK;
    cek__wait wait = cek__wait_begin_making(device);

    pthread_mutex_lock(&device->lock);
    while (device->opening && cek__wait_changed(&wait, "device_open", &st))
        ;
    *out = device->dev;
    if (st == CEK_OK && *out == NULL) {
        device->opening = true;
        pthread_mutex_unlock(&device->lock);
        st = dev_open(device, out);
        pthread_mutex_lock(&device->lock);
        device->opening = false;
        atomic_store_explicit(&device->dev, *out, memory_order_release);
        pthread_cond_broadcast(&device->changed);
    }
    pthread_mutex_unlock(&device->lock);
    return st;
}

cek_status cek__device_open(cek_device *device, cek_dev **out)
{
    cek_dev *dev = atomic_load_explicit(&device->dev, memory_order_acquire);
    cek_status st = cek__device_check(device);

    if (st == CEK_OK && dev == NULL)
        st = opened(device, &dev);
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

    CEK__NOT_NULL(out);
    CEK__NOT_NULL(device);
    CEK_TRY(cek__results_clear(device->name, out));
    info = device->info; /* of a lost device */
    if (cek__ask_enter(device, "device_info"))
        CEK_TRY(cek__module_device_info(device->module, device->index, &info));
    cek__results_give(out, &info, sizeof info);
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
    CEK_TRY(cek__device_turn_take(device));
    if (device->order != NULL)
        st = cek_stream_sync(device->order, CEK_FOREVER);
    cek__device_turn_give(device);
    first = cek__streams_sync(device);
    return st != CEK_OK ? st : first;
out:
    return st;
}

cek_status cek_device_read_times(cek_device *device, cek_device_times *out)
{
    cek_status st;
    cek_dev *dev;
    cek_device_times told = { .size = sizeof told };

    CEK__NOT_NULL(out);
    CEK__NOT_NULL(device);
    CEK_TRY(cek__results_clear(device->name, out));
    CEK_TRY(cek__device_open(device, &dev));
    CEK_TRY(CEK__CALL(device, device_times, dev, &told));
    cek__results_give(out, &told, sizeof told);
out:
    return st;
}

/* Who reads them computes and draws with them: what cannot be is not passed on. NaN is never in between. */
static cek_status sensors_check(const cek_device *device, const cek_device_sensors *s)
{
    cek_status st = CEK_OK;
    const struct {
        uint32_t sensor;
        const char *name;
        double value, least, most;
    } told[] = {
        { CEK_SENSOR_UTILIZATION, "a utilization", s->utilization, 0, 1 },
        { CEK_SENSOR_TEMPERATURE, "a temperature", s->celsius, -273.15, DBL_MAX },
        { CEK_SENSOR_POWER, "a power", s->watts, 0, DBL_MAX },
        { CEK_SENSOR_CLOCK, "a clock", s->hertz, 0, DBL_MAX },
        { CEK_SENSOR_MEMORY, "used memory", (double)s->used_bytes, 0, (double)s->total_bytes },
        { CEK_SENSOR_THROTTLED, "throttled", s->throttled, 0, 1 },
    };

    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        if (s->known & told[i].sensor && !(told[i].value >= told[i].least && told[i].value <= told[i].most))
            CEK_FAIL(CEK_BAD_PLUGIN, "%s: device_sensors tells %s of %g, not %g to %g", device->name, told[i].name,
                     told[i].value, told[i].least, told[i].most);
out:
    return st;
}

/* Whatever a plugin left where it says that it knows nothing. */
static void unknown_clear(cek_device_sensors *s)
{
    if (!(s->known & CEK_SENSOR_UTILIZATION))
        s->utilization = 0, s->interval_ns = 0;
    if (!(s->known & CEK_SENSOR_TEMPERATURE))
        s->celsius = 0;
    if (!(s->known & CEK_SENSOR_POWER))
        s->watts = 0;
    if (!(s->known & CEK_SENSOR_CLOCK))
        s->hertz = 0;
    if (!(s->known & CEK_SENSOR_MEMORY))
        s->used_bytes = s->total_bytes = 0;
    if (!(s->known & CEK_SENSOR_THROTTLED))
        s->throttled = 0;
}

cek_status cek_device_read_sensors(cek_device *device, cek_device_sensors *out)
{
    cek_status st;
    cek_device_sensors told = { .size = sizeof told };

    CEK__NOT_NULL(out);
    CEK__NOT_NULL(device);
    CEK_TRY(cek__results_clear(device->name, out));
    CEK_TRY(CEK__CALL(device, device_sensors, device->module->instance, device->index, &told));
    CEK_TRY(sensors_check(device, &told));
    unknown_clear(&told);
    cek__results_give(out, &told, sizeof told);
out:
    return st;
}

/* ---- the default stream ---- */

static uintptr_t this_thread(void)
{
    static _Thread_local char place;

    return (uintptr_t)&place;
}

static bool turn_is_free(cek__turn *turn, uintptr_t me)
{
    uintptr_t nobody = 0;

    return atomic_compare_exchange_strong(&turn->owner, &nobody, me);
}

/* Who has it may be inside another device, as a copy between two is: this one is not called lost. */
static cek_status turn_await(cek_device *device, uintptr_t me)
{
    cek__turn *turn = &device->turn;
    cek__wait wait = cek__wait_begin_thread(device);
    cek_status st = CEK_OK;

    pthread_mutex_lock(&device->lock);
    atomic_fetch_add(&turn->waiting, 1);
    while (!turn_is_free(turn, me) && cek__wait_changed(&wait, "the default stream", &st))
        ;
    atomic_fetch_sub(&turn->waiting, 1);
    pthread_mutex_unlock(&device->lock);
    return st;
}

cek_status cek__device_turn_take(cek_device *device)
{
    cek_status st = CEK_OK;
    uintptr_t me = this_thread();

    if (atomic_load_explicit(&device->turn.owner, memory_order_relaxed) != me && !turn_is_free(&device->turn, me))
        st = turn_await(device, me);
    if (st == CEK_OK)
        device->turn.depth++;
    return st;
}

void cek__device_turn_give(cek_device *device)
{
    cek__turn *turn = &device->turn;

    if (--turn->depth > 0)
        return;
    atomic_store(&turn->owner, 0);
    if (atomic_load(&turn->waiting) == 0)
        return;
    atomic_fetch_add(&device->finished, 1); /* for those who wait something has come on */
    pthread_mutex_lock(&device->lock);
    pthread_cond_broadcast(&device->changed);
    pthread_mutex_unlock(&device->lock);
}

cek_status cek__device_order_take(cek_device *device, cek_stream **out)
{
    cek_status st;

    *out = NULL;
    CEK_TRY(cek__device_turn_take(device));
    if (device->order == NULL)
        st = cek__stream_create(device, true, &device->order);
    *out = device->order;
    if (st != CEK_OK)
        cek__device_turn_give(device);
out:
    return st;
}

/* ---- pinned memory ---- */

/* A backend has page-locked memory or it has none: the first answer tells, and cek__pinned_free knows whose it is. */
static bool pinned_is_plain(cek_device *device, cek_status st)
{
    bool plain;

    pthread_mutex_lock(&device->lock);
    if (device->pinned == CEK__PINNED_UNKNOWN && (st == CEK_OK || st == CEK_UNSUPPORTED))
        device->pinned = st == CEK_OK ? CEK__PINNED_BY_PLUGIN : CEK__PINNED_PLAIN;
    plain = device->pinned == CEK__PINNED_PLAIN;
    pthread_mutex_unlock(&device->lock);
    return plain;
}

cek_status cek__pinned_alloc(cek_device *device, uint64_t bytes, void **out)
{
    cek_status st;
    cek_dev *dev;

    *out = NULL;
    if (bytes == 0 || bytes > SIZE_MAX / 2)
        CEK_FAIL(CEK_INVALID, "%s: %llu bytes of pinned memory", device->name, (unsigned long long)bytes);
    CEK_TRY(cek__device_open(device, &dev));
    if (pinned_is_plain(device, CEK_NOT_READY))
        return cek__alloc_aligned(CEK_ALIGNMENT, bytes, out);
    st = CEK__CALL(device, host_alloc, dev, bytes, out);
    if (st == CEK_OK && *out == NULL)
        CEK_FAIL(CEK_BAD_PLUGIN, "%s: host_alloc succeeds without memory", device->name);
    if (pinned_is_plain(device, st)) {
        if (st == CEK_OK) /* another thread was told that there is none */
            CEK__RELEASE_(device, host_free, *out, dev, *out);
        return cek__alloc_aligned(CEK_ALIGNMENT, bytes, out);
    }
    if (st == CEK_OK)
        return CEK_OK;
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
    else if (pinned_is_plain(device, CEK_NOT_READY))
        free(ptr);
    else
        CEK__RELEASE_(device, host_free, ptr, device->dev, ptr);
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
