/* SPDX-License-Identifier: MIT
 *
 * sim.c - devices as they are wished for, with real results computed through another plugin:
 * several of them, of given speed on a clock of their own, with given memory, that fail, hang or are
 * lost at a given call.
 *
 *     sim_inner        the plugin inside: a name beside this file ("reference"), or an absolute path; cpu
 *     sim_devices      how many devices (1 to 64; 2)
 *     sim_memory       bytes of each; more is CEK_OUT_OF_MEMORY; what the inner device has
 *     sim_flops        floating-point operations a second (1T)
 *     sim_bandwidth    bytes a second of its own memory (100G)
 *     sim_link         bytes a second to the host and to other devices (10G)
 *     sim_latency_ns   what each transfer over the link takes besides (10000)
 *     sim_launch_ns    what each operation, fill and copy takes besides (5000)
 *     sim_wave_ns      how long an operation keeps the compute engine before others that have waited get it; 0: to
 *                      its end (100000)
 *     sim_copy_engines transfers that a device does at a time (2)
 *     sim_clock        "virtual": time stands still while the host works; "real": commands take the machine's time;
 *                      without it virtual where a speed was given, and else no clock: commands take what
 *                      they take inside
 *     sim_work         "late": commands do their work when their time has passed, so that one which does not wait for
 *                      what it needs goes wrong; "none": they do nothing, there is no memory and all is
 *                      zero; "all" (all)
 *     sim_lacks        operations that no device has ("conv_backward_data,pool_backward"):
 *                      op_create answers CEK_UNSUPPORTED
 *     sim_inline       1: calls return when what they enqueued has ended, and devices say that they work inline (0)
 *     sim_quiet_us     a sleeping thread that has not asked for so long does not ask any more, for a
 *                      virtual clock (5000)
 *     sim_shared       1: the host and the other devices reach its memory; 0: uploads and downloads alone do (1)
 *     sim_watchdog_ms  a hang without a nearer deadline ends after that with the loss of the device (10000)
 *     sim_faults       where devices fail; never without
 *
 * From sim_memory to sim_copy_engines: one NUMBER for all devices, or one for each with commas between.
 *
 *     NUMBER = DIGITS [ "k" | "M" | "G" | "T" ]                          (powers of 1000)
 *     FAULTS = FAULT { "," FAULT }                                      (at most 16; the first that is due strikes)
 *     FAULT  = EFFECT "@" CALL [ "#" N [ "+" ] ] [ "/" DEVICE ]
 *     CALL   = a slot that belongs to a device ("op_run", "mem_alloc", "event_sync", ...), or a group:
 *              "make" (device_open and all that make an object), "enqueue" (all that take a queue but queue_sync),
 *              "wait" (queue_sync, event_sync), "any" (but those that give something back, such as mem_free, which
 *              block and sleep alone)
 *     EFFECT = "internal" | "out_of_memory" | "unsupported" | "device_lost"   the call returns that; a loss latches
 *            | "later_internal" | "later_out_of_memory"   what it enqueued fails: sticks to queue and events
 *            | "later_device_lost"                        it succeeds, and then the device is lost
 *            | "hang"    what it enqueued, or the call itself, does not end
 *            | "block"   the call never returns: no watchdog ends that
 *            | "sleep"   it returns 200 ms later
 *            | "halve"   from what it enqueues on, the device computes at half its speed; needs a clock
 *
 * N is the number of the call that is struck, from 1 (1), counted on each device by itself, "+"
 * every one from then on; DEVICE an index, else each device. "hang@op_run#5/1": the fifth operation
 * on sim:1 does not end, nor what is behind it: syncs return CEK_TIMEOUT at their deadline, queries
 * CEK_NOT_READY, destroying the queue loses the handle at its deadline. A wrong setting is
 * CEK_INVALID from create(), with a text that quotes it.
 *
 * An operation takes sim_launch_ns and the longer of FLOPs / sim_flops and bytes / sim_bandwidth (cost.c); a transfer
 * sim_latency_ns and bytes / sim_link. A device has one compute engine, sim_copy_engines, and a link that carries one
 * transfer each way at a time; what has been ready for longest goes first (timeline.h). Work is done when it is
 * enqueued, or late, but queries and syncs know of it when its time has passed (clock.h), and event_elapsed tells that
 * time: on a virtual clock a run's times are the same every time, whatever the machine and however its threads run.
 *
 * Owns the instance: its devices. Knows nothing of what operations mean.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backends/common/growth.h"
#include "backends/sim/sim.h"

static void device_init(cek__sim_device *device)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&device->lock, NULL);
    pthread_cond_init(&device->lost_now, &monotonic);
    cek__latch_init(&device->lost);
    pthread_condattr_destroy(&monotonic);
}

/* How often the host has waited for a device or asked it: at what cost it learns that work has ended. */
static void calls_log(cek_instance *instance)
{
    for (uint64_t i = 0; i < instance->count; i++) {
        const atomic_uint_fast64_t *calls = instance->devices[i].calls;
        if (!calls[CEK__SIM_device_open])
            continue;
        cek__host_log(&instance->host, 3, "sim:%u: queue_sync %llu, event_sync %llu, event_query %llu, mem_map %llu",
                      (unsigned)i, (unsigned long long)calls[CEK__SIM_queue_sync],
                      (unsigned long long)calls[CEK__SIM_event_sync], (unsigned long long)calls[CEK__SIM_event_query],
                      (unsigned long long)calls[CEK__SIM_mem_map]);
    }
}

static void destroy(cek_instance *instance)
{
    if (!instance)
        return;
    calls_log(instance);
    if (instance->inner)
        instance->plugin.destroy(instance->inner);
    for (int i = 0; i < CEK__SIM_DEVICES; i++) {
        pthread_mutex_destroy(&instance->devices[i].lock);
        pthread_cond_destroy(&instance->devices[i].lost_now);
        cek__latch_fini(&instance->devices[i].lost);
    }
    cek__clock_free(instance->clock);
    free(instance);
}

static cek_status create(const cek_host *host, cek_instance **out)
{
    *out = NULL;
    cek_instance *instance = calloc(1, sizeof *instance);
    if (!instance)
        return CEK_OUT_OF_MEMORY;
    for (int i = 0; i < CEK__SIM_DEVICES; i++)
        device_init(&instance->devices[i]);
    cek_status st = cek__callbacks_copy(host, &instance->host);
    if (!st)
        st = cek__sim_options_read(instance);
    if (!st)
        st = cek__sim_inner_load(instance);
    if (!st)
        st = instance->plugin.create(host, &instance->inner);
    if (!st && !instance->plugin.device_count(instance->inner))
        st = cek__host_fail(&instance->host, CEK_UNAVAILABLE, "sim: %s has no device", instance->plugin.name);
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
        return cek__host_fail(&instance->host, CEK_INVALID, "device_info: device %u of %u", index,
                              (uint32_t)instance->count);
    cek_status st = instance->plugin.device_info(instance->inner, inner_index(instance, index), &full);
    if (st)
        return st;
    snprintf(name, sizeof name, "simulated, %.100s inside", full.name);
    memcpy(full.name, name, sizeof name);
    /* Not inline, whatever the inner device is: hosts then order their work as for a device that runs beside them. */
    full.flags = (full.flags & ~(uint32_t)CEK_DEVICE_INLINE) | CEK_DEVICE_ONLY_WHEN_NAMED;
    if (instance->inline_work)
        full.flags |= CEK_DEVICE_INLINE;
    if (instance->clock)
        full.copy_engines = (uint32_t)instance->devices[index].copy_engines;
    if (instance->work == CEK__SIM_WORK_NONE || !instance->shared)
        full.flags &= ~(uint32_t)CEK_DEVICE_UNIFIED_MEMORY; /* nothing answers mem_host_ptr */
    snprintf(full.reason, sizeof full.reason, "it is simulated");
    memset(full.uuid, 0, sizeof full.uuid);
    memset(full.processor, 0, sizeof full.processor);
    snprintf(full.processor, sizeof full.processor, "sim");
    uint64_t memory_bytes = instance->devices[index].memory_bytes;
    if (memory_bytes != CEK_UNKNOWN) {
        full.total_bytes = full.max_alloc_bytes = memory_bytes;
        full.free_bytes = cek__sim_free_bytes(instance, index);
    }
    return cek__struct_out(&instance->host, "device_info", info, &full, sizeof full);
}

static cek_status device_open(cek_instance *instance, uint32_t index, const cek_device_options *options, cek_dev **out)
{
    *out = NULL;
    if (index >= instance->count)
        return cek__host_fail(&instance->host, CEK_INVALID, "device_open: device %u of %u", index,
                              (uint32_t)instance->count);
    cek_dev *dev = calloc(1, sizeof *dev);
    if (!dev)
        return cek__host_fail(&instance->host, CEK_OUT_OF_MEMORY, "device_open: no memory for the handle");
    *dev = (cek_dev){ .instance = instance, .index = index };
    cek__latch_init(&dev->lost);
    cek_status st = cek__sim_pass(dev, CEK__SIM_device_open);
    if (!st)
        st = instance->plugin.device_open(instance->inner, inner_index(instance, index), options, &dev->inner);
    if (st) {
        cek__latch_fini(&dev->lost);
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
    cek__latch_fini(&dev->lost);
    free(dev);
}

static cek_status device_status(cek_dev *dev, char *text, uint64_t cap)
{
    cek_status st = cek__sim_latch_status(dev, text, cap);
    return st ? st : INNER(dev, device_status, dev->inner, text, cap);
}

static cek_status device_memory(cek_dev *dev, uint64_t *free_bytes, uint64_t *total_bytes)
{
    *free_bytes = *total_bytes = 0;
    cek_status st = cek__sim_pass(dev, CEK__SIM_device_memory);
    if (!st)
        st = INNER(dev, device_memory, dev->inner, free_bytes, total_bytes);
    if (!st && cek__sim_state(dev)->memory_bytes != CEK_UNKNOWN) {
        *free_bytes = cek__sim_free_bytes(dev->instance, dev->index);
        *total_bytes = cek__sim_state(dev)->memory_bytes;
    }
    return st;
}

static cek_status device_times(cek_dev *dev, cek_device_times *times)
{
    const cek_host *host = &dev->instance->host;
    cek__busy busy;
    cek_status st = cek__sim_lost(dev, "device_times");
    if (st)
        return st;
    if (!dev->instance->clock)
        return cek__host_fail(host, CEK_UNSUPPORTED, "device_times: sim:%u has no clock", dev->index);
    cek_device_times full = { .size = sizeof full, .now_ns = cek__clock_read(dev->instance->clock, dev->index, &busy) };
    full.compute_ns = busy.compute_ns;
    full.copy_ns = busy.copy_ns;
    full.exposed_ns = busy.exposed_ns;
    return cek__struct_out(host, "device_times", times, &full, sizeof full);
}

/* The silicon is the one inside; how much memory there is, is the simulator's to say. */
static cek_status device_sensors(cek_instance *instance, uint32_t index, cek_device_sensors *out)
{
    const cek_dev dev = { .instance = instance, .index = index };
    cek_device_sensors full = { .size = sizeof full };
    if (index >= instance->count)
        return cek__host_fail(&instance->host, CEK_INVALID, "device_sensors: device %u of %u", index,
                              (uint32_t)instance->count);
    cek_status st = cek__sim_pass(&dev, CEK__SIM_device_sensors);
    if (!st)
        st = INNER(&dev, device_sensors, instance->inner, inner_index(instance, index), &full);
    if (st)
        return st;
    if (cek__sim_state(&dev)->memory_bytes != CEK_UNKNOWN) {
        full.known |= CEK_SENSOR_MEMORY;
        full.total_bytes = cek__sim_state(&dev)->memory_bytes;
        full.used_bytes = full.total_bytes - cek__sim_free_bytes(instance, index);
    }
    return cek__struct_out(&instance->host, "device_sensors: out", out, &full, sizeof full);
}

static const cek_plugin bare = {
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
    .host_register = cek__sim_host_register,
    .host_unregister = cek__sim_host_unregister,
    .mem_import = cek__sim_mem_import,

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
    .device_times = device_times,
    .device_sensors = device_sensors,
};

#include "backends/common/nulls.h"

const cek_plugin cek__sim_plugin = {
    .size = sizeof cek__sim_plugin,
    .abi = CEK_ABI,
    .name = "sim",
    .version = PACKAGE_VERSION,
    .build = __VERSION__,
    .profile = CEK_PROFILE_TRAINING,
    CEK__DOORS,
    CEK__DOORS_MAP,
    CEK__DOORS_CMDBUF,
    CEK__DOORS_TIMES,
    CEK__DOORS_REGISTER,
    CEK__DOORS_IMPORT,
    CEK__DOORS_SENSORS,
};
