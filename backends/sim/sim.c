/* SPDX-License-Identifier: MIT
 *
 * sim.c - devices that fail on demand: several devices, a cap on the memory of each, and a failure at the Nth call, with real
 * results computed through another plugin.
 *
 *     sim_plugin       the plugin inside: a name beside this file ("reference") or a path; "cpu" if there is one
 *     sim_devices      how many devices (1 to 64; 2)
 *     sim_memory       bytes that each device has; more is CEK_OUT_OF_MEMORY
 *     sim_fail_at      the Nth call (from 1) of sim_fail_call on sim_fail_device fails; never without
 *     sim_fail_call    a slot that belongs to a device ("op_run", "mem_alloc", "upload", "queue_sync"); any without
 *     sim_fail_device  its index; 0
 *     sim_fail_status  device_lost (latches), internal (sticks to the queue, where there is one), out_of_memory; internal
 *
 * Owns the instance: its options, the inner plugin, the devices. Knows nothing of what operations mean.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/common/growth.h"
#include "backends/sim/sim.h"

/* The path of the plugin inside: `name` itself if it is one, else beside this shared object. */
static void inner_path(const char *name, char *path, size_t cap)
{
    Dl_info self;
    const char *slash = NULL;
    if (!strchr(name, '/') && dladdr((const void *)(uintptr_t)inner_path, &self) && self.dli_fname)
        slash = strrchr(self.dli_fname, '/');
    if (slash)
        snprintf(path, cap, "%.*s/%s.so", (int)(slash - self.dli_fname), self.dli_fname, name);
    else
        snprintf(path, cap, "%s", name);
}

/* Loads the inner plugin. It stays loaded: a plugin may not be unloaded once an instance was made. */
static cek_status inner_load(cek_instance *instance)
{
    char path[4096];
    const char *name = cek__option(&instance->host, "sim_plugin");
    inner_path(name ? name : "cpu", path, sizeof path);
    if (!name && access(path, R_OK))
        inner_path("reference", path, sizeof path);
    void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!so)
        return cek__fail(&instance->host, name ? CEK_INVALID : CEK_UNAVAILABLE, "sim: %s", dlerror());
    cek_plugin_query_fn query = (cek_plugin_query_fn)dlsym(so, CEK_PLUGIN_SYMBOL);
    const cek_plugin *table = query ? query(CEK_ABI) : NULL;
    if (!table || table->abi >> 16 != CEK_ABI_MAJOR)
        return cek__fail(&instance->host, CEK_INVALID, "sim: %s: no plugin of ABI %u", path, CEK_ABI_MAJOR);
    memcpy(&instance->plugin, table, table->size < sizeof *table ? table->size : sizeof *table);
    if (instance->plugin.profile < CEK_PROFILE_TRAINING)
        return cek__fail(&instance->host, CEK_INVALID, "sim: %s cannot train", path);
    if (!strcmp(instance->plugin.name, "sim"))
        return cek__fail(&instance->host, CEK_INVALID, "sim: %s is sim itself", path);
    return CEK_OK;
}

static cek_status options_read(cek_instance *instance)
{
    static const struct { const char *name; cek_status status; } statuses[] = {
        { "out_of_memory", CEK_OUT_OF_MEMORY }, { "device_lost", CEK_DEVICE_LOST }, { "internal", CEK_INTERNAL },
    };
    const cek_host *host = &instance->host;
    const char *status = cek__option(host, "sim_fail_status");
    instance->count = 2;
    instance->memory_bytes = CEK_UNKNOWN;
    instance->fail_call = cek__option(host, "sim_fail_call");
    instance->fail_status = status ? CEK_OK : CEK_INTERNAL;
    for (size_t i = 0; status && i < sizeof statuses / sizeof *statuses; i++)
        if (!strcmp(status, statuses[i].name))
            instance->fail_status = statuses[i].status;
    if (!instance->fail_status)
        return cek__fail(host, CEK_INVALID, "option sim_fail_status=\"%.64s\": not out_of_memory, device_lost or internal",
                         status);
    cek_status st = cek__option_number(host, "sim_devices", 1, CEK__SIM_DEVICES, &instance->count);
    if (!st)
        st = cek__option_number(host, "sim_memory", 1, INT64_MAX, &instance->memory_bytes);
    if (!st)
        st = cek__option_number(host, "sim_fail_at", 1, INT64_MAX, &instance->fail_at);
    if (!st)
        st = cek__option_number(host, "sim_fail_device", 0, instance->count - 1, &instance->fail_device);
    return st;
}

static void destroy(cek_instance *instance)
{
    if (!instance)
        return;
    if (instance->inner)
        instance->plugin.destroy(instance->inner);
    for (int i = 0; i < CEK__SIM_DEVICES; i++)
        pthread_mutex_destroy(&instance->devices[i].lock);
    free(instance);
}

static cek_status create(const cek_host *host, cek_instance **out)
{
    *out = NULL;
    cek_instance *instance = calloc(1, sizeof *instance);
    if (!instance)
        return CEK_OUT_OF_MEMORY;
    for (int i = 0; i < CEK__SIM_DEVICES; i++)
        pthread_mutex_init(&instance->devices[i].lock, NULL);
    cek_status st = cek__callbacks_copy(host, &instance->host);
    if (!st)
        st = options_read(instance);
    if (!st)
        st = inner_load(instance);
    if (!st)
        st = instance->plugin.create(host, &instance->inner);
    if (!st && !instance->plugin.device_count(instance->inner))
        st = cek__fail(&instance->host, CEK_UNAVAILABLE, "sim: %s has no device", instance->plugin.name);
    if (st) {
        destroy(instance);
        return st;
    }
    *out = instance;
    return CEK_OK;
}

static uint32_t device_count(cek_instance *instance)
{
    return (uint32_t)instance->count;
}

/* Simulated devices share the inner ones, round and round. */
static uint32_t inner_index(const cek_instance *instance, uint32_t index)
{
    return index % instance->plugin.device_count(instance->inner);
}

static cek_status device_info(cek_instance *instance, uint32_t index, cek_device_info *info)
{
    cek_device_info full = { .size = sizeof full };
    char name[sizeof full.name];
    if (index >= instance->count)
        return cek__fail(&instance->host, CEK_INVALID, "device_info: device %u of %u", index, (uint32_t)instance->count);
    cek_status st = instance->plugin.device_info(instance->inner, inner_index(instance, index), &full);
    if (st)
        return st;
    snprintf(name, sizeof name, "simulated, %.100s inside", full.name);
    memcpy(full.name, name, sizeof name);
    /* Not inline, whatever the inner device is: hosts then order their work as for a device that runs beside them. */
    full.flags = (full.flags & ~(uint32_t)CEK_DEVICE_INLINE) | CEK_DEVICE_ONLY_WHEN_NAMED;
    memset(full.uuid, 0, sizeof full.uuid);
    memset(full.processor, 0, sizeof full.processor);
    snprintf(full.processor, sizeof full.processor, "sim");
    if (instance->memory_bytes != CEK_UNKNOWN) {
        full.total_bytes = full.max_alloc_bytes = instance->memory_bytes;
        full.free_bytes = cek__sim_free_bytes(instance, index);
    }
    return cek__struct_out(&instance->host, "device_info", info, &full, sizeof full);
}

static cek_status device_open(cek_instance *instance, uint32_t index, const cek_device_options *options, cek_dev **out)
{
    *out = NULL;
    if (index >= instance->count)
        return cek__fail(&instance->host, CEK_INVALID, "device_open: device %u of %u", index, (uint32_t)instance->count);
    cek_dev *dev = calloc(1, sizeof *dev);
    if (!dev)
        return cek__fail(&instance->host, CEK_OUT_OF_MEMORY, "device_open: no memory for the handle");
    *dev = (cek_dev){ .instance = instance, .index = index };
    cek_status st = cek__sim_pass(dev, "device_open");
    if (!st)
        st = instance->plugin.device_open(instance->inner, inner_index(instance, index), options, &dev->inner);
    if (st) {
        free(dev);
        return st;
    }
    *out = dev;
    return CEK_OK;
}

static void device_close(cek_dev *dev)
{
    if (!dev)
        return;
    dev->instance->plugin.device_close(dev->inner);
    free(dev);
}

static cek_status device_status(cek_dev *dev, char *text, uint64_t cap)
{
    return cek__sim_is_lost(dev, text, cap) ? CEK_DEVICE_LOST : INNER(dev, device_status, dev->inner, text, cap);
}

static cek_status device_memory(cek_dev *dev, uint64_t *free_bytes, uint64_t *total_bytes)
{
    *free_bytes = *total_bytes = 0;
    cek_status st = cek__sim_pass(dev, "device_memory");
    if (!st)
        st = INNER(dev, device_memory, dev->inner, free_bytes, total_bytes);
    if (!st && dev->instance->memory_bytes != CEK_UNKNOWN) {
        *free_bytes = cek__sim_free_bytes(dev->instance, dev->index);
        *total_bytes = dev->instance->memory_bytes;
    }
    return st;
}

const cek_plugin cek__sim_plugin = {
    .size = sizeof cek__sim_plugin,
    .abi = CEK_ABI,
    .name = "sim",
    .version = PACKAGE_VERSION,
    .build = __VERSION__,
    .profile = CEK_PROFILE_TRAINING,

    .create = create,
    .destroy = destroy,
    .device_count = device_count,
    .device_info = device_info,
    .device_open = device_open,
    .device_close = device_close,
    .device_status = device_status,
    .device_memory = device_memory,

    .mem_alloc = cek__sim_mem_alloc,
    .mem_free = cek__sim_mem_free,
    .mem_host_ptr = cek__sim_mem_host_ptr,
    .mem_map = cek__sim_mem_map,
    .mem_unmap = cek__sim_mem_unmap,
    .host_alloc = cek__sim_host_alloc,
    .host_free = cek__sim_host_free,

    .queue_create = cek__sim_queue_create,
    .queue_destroy = cek__sim_queue_destroy,
    .queue_status = cek__sim_queue_status,
    .queue_sync = cek__sim_queue_sync,
    .upload = cek__sim_upload,
    .download = cek__sim_download,
    .copy = cek__sim_copy,
    .fill = cek__sim_fill,
    .update = cek__sim_update,

    .event_create = cek__sim_event_create,
    .event_destroy = cek__sim_event_destroy,
    .event_record = cek__sim_event_record,
    .event_wait = cek__sim_event_wait,
    .event_query = cek__sim_event_query,
    .event_sync = cek__sim_event_sync,
    .event_status = cek__sim_event_status,
    .event_elapsed = cek__sim_event_elapsed,

    .op_create = cek__sim_op_create,
    .op_destroy = cek__sim_op_destroy,
    .op_prepack = cek__sim_op_prepack,
    .op_run = cek__sim_op_run,
    .cmdbuf_create = cek__sim_cmdbuf_create,
    .cmdbuf_destroy = cek__sim_cmdbuf_destroy,
    .cmdbuf_run = cek__sim_cmdbuf_run,
};
