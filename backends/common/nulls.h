/* SPDX-License-Identifier: MIT
 *
 * nulls.h - the rule of NULL (plugin.h, section 1), in one place: a door in front of every slot of a table.
 *
 *     static const cek_plugin bare = { .create = ..., .destroy = ... };
 *     #include "backends/common/nulls.h"
 *     static const cek_plugin plugin = { .size = ..., .abi = CEK_ABI, .name = ..., CEK__DOORS, CEK__DOORS_MAP };
 *
 * Read once, by the file with the table, behind `bare`, whose slots are called when no argument is NULL that must not
 * be. What is, the host is told by name. Slots that a plugin may lack are in CEK__DOORS_MAP, _CMDBUF, _TIMES,
 * _REGISTER, _IMPORT, _EXPORT and _SENSORS. To find the host it relies on this: an instance begins with its cek_host, a
 * device with a pointer to its instance, every other handle with a pointer to its device. */
#ifndef CEK_BACKENDS_COMMON_NULLS_H
#define CEK_BACKENDS_COMMON_NULLS_H

#include <stddef.h>

#include "backends/common/fail.h"

/* clang-format off */
#define CEK__STEPS(handle) _Generic((handle), cek_instance *: 0, cek_dev *: 1, default: 2)
#define CEK__MUST(argument) !(argument) ? #argument :
#define CEK__MUST_IF(count, argument) (count) && !(argument) ? #argument :

/* `clear` leaves the outputs NULL or zero, whatever comes; `musts` are the arguments that may not be NULL, in order. */
#define CEK__DOOR(slot, first, parameters, arguments, clear, musts)                                                  \
    __attribute__((unused)) static cek_status door_##slot parameters                                                 \
    {                                                                                                                 \
        clear;                                                                                                        \
        const char *absent = musts NULL;                                                                              \
        return absent ? cek__null_refused(first, CEK__STEPS(first), #slot, absent) : bare.slot arguments;             \
    }
#define CEK__CLEAR(out) if (out) *(out) = 0
#define CEK__NOTHING (void)0

CEK__DOOR(device_info, instance, (cek_instance *instance, uint32_t index, cek_device_info *info),
          (instance, index, info), CEK__NOTHING, CEK__MUST(instance) CEK__MUST(info))
CEK__DOOR(device_open, instance,
          (cek_instance *instance, uint32_t index, const cek_device_options *options, cek_dev **out),
          (instance, index, options, out), CEK__CLEAR(out), CEK__MUST(instance) CEK__MUST(out))
CEK__DOOR(device_status, dev, (cek_dev *dev, char *text, uint64_t cap), (dev, text, cap), CEK__NOTHING, CEK__MUST(dev))
CEK__DOOR(device_memory, dev, (cek_dev *dev, uint64_t *free_bytes, uint64_t *total_bytes),
          (dev, free_bytes, total_bytes), CEK__CLEAR(free_bytes); CEK__CLEAR(total_bytes),
          CEK__MUST(dev) CEK__MUST(free_bytes) CEK__MUST(total_bytes))

CEK__DOOR(device_times, dev, (cek_dev *dev, cek_device_times *times), (dev, times), CEK__NOTHING,
          CEK__MUST(dev) CEK__MUST(times))

CEK__DOOR(device_sensors, instance, (cek_instance *instance, uint32_t index, cek_device_sensors *out),
          (instance, index, out), CEK__NOTHING, CEK__MUST(instance) CEK__MUST(out))

CEK__DOOR(mem_alloc, dev, (cek_dev *dev, const cek_mem_desc *desc, cek_mem **out), (dev, desc, out), CEK__CLEAR(out),
          CEK__MUST(dev) CEK__MUST(desc) CEK__MUST(out))
CEK__DOOR(mem_import, dev, (cek_dev *dev, const cek_foreign *foreign, cek_mem **out), (dev, foreign, out),
          CEK__CLEAR(out), CEK__MUST(dev) CEK__MUST(foreign) CEK__MUST(out))
CEK__DOOR(mem_export, mem, (cek_mem *mem, cek_foreign *out), (mem, out), CEK__NOTHING, CEK__MUST(mem) CEK__MUST(out))
CEK__DOOR(mem_map, mem, (cek_mem *mem, uint32_t access, void **out), (mem, access, out), CEK__CLEAR(out),
          CEK__MUST(mem) CEK__MUST(out))
CEK__DOOR(mem_unmap, mem, (cek_mem *mem), (mem), CEK__NOTHING, CEK__MUST(mem))
CEK__DOOR(host_alloc, dev, (cek_dev *dev, uint64_t bytes, void **out), (dev, bytes, out), CEK__CLEAR(out),
          CEK__MUST(dev) CEK__MUST(out))

CEK__DOOR(queue_create, dev, (cek_dev *dev, const cek_queue_desc *desc, cek_queue **out), (dev, desc, out),
          CEK__CLEAR(out), CEK__MUST(dev) CEK__MUST(out))
CEK__DOOR(queue_status, queue, (cek_queue *queue, char *text, uint64_t cap), (queue, text, cap), CEK__NOTHING,
          CEK__MUST(queue))
CEK__DOOR(queue_sync, queue, (cek_queue *queue, uint64_t timeout_ns), (queue, timeout_ns), CEK__NOTHING,
          CEK__MUST(queue))
CEK__DOOR(upload, queue, (cek_queue *queue, cek_ref dst, const void *src, uint64_t bytes), (queue, dst, src, bytes),
          CEK__NOTHING, CEK__MUST(queue) CEK__MUST_IF(bytes, dst.mem) CEK__MUST_IF(bytes, src))
CEK__DOOR(download, queue, (cek_queue *queue, void *dst, cek_ref src, uint64_t bytes), (queue, dst, src, bytes),
          CEK__NOTHING, CEK__MUST(queue) CEK__MUST_IF(bytes, dst) CEK__MUST_IF(bytes, src.mem))
CEK__DOOR(copy, queue, (cek_queue *queue, cek_ref dst, cek_ref src, uint64_t bytes), (queue, dst, src, bytes),
          CEK__NOTHING, CEK__MUST(queue) CEK__MUST_IF(bytes, dst.mem) CEK__MUST_IF(bytes, src.mem))
CEK__DOOR(fill, queue, (cek_queue *queue, cek_ref dst, uint32_t pattern, uint32_t pattern_bytes, uint64_t bytes),
          (queue, dst, pattern, pattern_bytes, bytes), CEK__NOTHING, CEK__MUST(queue) CEK__MUST_IF(bytes, dst.mem))
CEK__DOOR(update, queue, (cek_queue *queue, cek_ref dst, const void *src, uint64_t bytes), (queue, dst, src, bytes),
          CEK__NOTHING, CEK__MUST(queue) CEK__MUST_IF(bytes, dst.mem) CEK__MUST_IF(bytes, src))

CEK__DOOR(event_create, dev, (cek_dev *dev, const cek_event_desc *desc, cek_event **out), (dev, desc, out),
          CEK__CLEAR(out), CEK__MUST(dev) CEK__MUST(out))
CEK__DOOR(event_record, queue, (cek_queue *queue, cek_event *event), (queue, event), CEK__NOTHING,
          CEK__MUST(queue) CEK__MUST(event))
CEK__DOOR(event_wait, queue, (cek_queue *queue, cek_event *event), (queue, event), CEK__NOTHING,
          CEK__MUST(queue) CEK__MUST(event))
CEK__DOOR(event_query, event, (cek_event *event), (event), CEK__NOTHING, CEK__MUST(event))
CEK__DOOR(event_sync, event, (cek_event *event, uint64_t timeout_ns), (event, timeout_ns), CEK__NOTHING,
          CEK__MUST(event))
CEK__DOOR(event_status, event, (cek_event *event, char *text, uint64_t cap), (event, text, cap), CEK__NOTHING,
          CEK__MUST(event))
CEK__DOOR(event_elapsed, start, (cek_event *start, cek_event *end, uint64_t *ns), (start, end, ns), CEK__CLEAR(ns),
          CEK__MUST(start) CEK__MUST(end) CEK__MUST(ns))

CEK__DOOR(op_create, dev, (cek_dev *dev, const cek_op_desc *desc, cek_op_info *info, cek_op **out),
          (dev, desc, info, out), CEK__CLEAR(out), CEK__MUST(dev) CEK__MUST(desc) CEK__MUST(out))
CEK__DOOR(op_prepack, queue,
          (cek_queue *queue, const cek_op *op, const cek_ref *operands, uint32_t count, cek_ref packed),
          (queue, op, operands, count, packed), CEK__NOTHING,
          CEK__MUST(queue) CEK__MUST(op) CEK__MUST_IF(count, operands))
CEK__DOOR(op_run, queue,
          (cek_queue *queue, const cek_op *op, const cek_ref *operands, uint32_t count, cek_ref workspace),
          (queue, op, operands, count, workspace), CEK__NOTHING,
          CEK__MUST(queue) CEK__MUST(op) CEK__MUST_IF(count, operands))

CEK__DOOR(cmdbuf_create, dev,
          (cek_dev *dev, const cek_cmd *cmds, uint32_t count, uint32_t cmd_size, cek_cmdbuf **out),
          (dev, cmds, count, cmd_size, out), CEK__CLEAR(out),
          CEK__MUST(dev) CEK__MUST_IF(count, cmds) CEK__MUST(out))
CEK__DOOR(cmdbuf_run, queue, (cek_queue *queue, cek_cmdbuf *cmdbuf), (queue, cmdbuf), CEK__NOTHING,
          CEK__MUST(queue) CEK__MUST(cmdbuf))

/* Those that answer no status, and create, whose host is not yet anybody's. */
#define CEK__DOOR_END(slot, type)                                                                                     \
    __attribute__((unused)) static void door_##slot(type *handle)                                                    \
    {                                                                                                                 \
        if (handle)                                                                                                   \
            bare.slot(handle);                                                                                        \
    }
CEK__DOOR_END(destroy, cek_instance)
CEK__DOOR_END(device_close, cek_dev)
CEK__DOOR_END(mem_free, cek_mem)
CEK__DOOR_END(queue_destroy, cek_queue)
CEK__DOOR_END(event_destroy, cek_event)
CEK__DOOR_END(op_destroy, cek_op)
CEK__DOOR_END(cmdbuf_destroy, cek_cmdbuf)

static cek_status door_create(const cek_host *host, cek_instance **out)
{
    return out ? bare.create(host, out) : cek__null_refused(host, 0, "create", "out");
}
static uint32_t door_device_count(cek_instance *instance)
{
    return instance ? bare.device_count(instance) : 0;
}
static void *door_mem_host_ptr(cek_mem *mem)
{
    return mem ? bare.mem_host_ptr(mem) : NULL;
}
static void door_host_free(cek_dev *dev, void *ptr)
{
    if (dev)
        bare.host_free(dev, ptr);
}
CEK__DOOR(host_register, dev, (cek_dev *dev, void *ptr, uint64_t bytes), (dev, ptr, bytes), CEK__NOTHING,
          CEK__MUST(dev) CEK__MUST(ptr))
__attribute__((unused)) static void door_host_unregister(cek_dev *dev, void *ptr)
{
    if (dev && ptr)
        bare.host_unregister(dev, ptr);
}

#define CEK__DOORS                                                                                                    \
    .create = door_create, .destroy = door_destroy, .device_count = door_device_count,                                \
    .device_info = door_device_info, .device_open = door_device_open, .device_close = door_device_close,              \
    .device_status = door_device_status, .device_memory = door_device_memory, .mem_alloc = door_mem_alloc,            \
    .mem_free = door_mem_free, .mem_host_ptr = door_mem_host_ptr,                            \
    .host_alloc = door_host_alloc, .host_free = door_host_free,                          \
    .queue_create = door_queue_create, .queue_destroy = door_queue_destroy, .queue_status = door_queue_status,        \
    .queue_sync = door_queue_sync, .upload = door_upload, .download = door_download, .copy = door_copy,               \
    .fill = door_fill, .update = door_update, .event_create = door_event_create,                                      \
    .event_destroy = door_event_destroy, .event_record = door_event_record, .event_wait = door_event_wait,            \
    .event_query = door_event_query, .event_sync = door_event_sync, .event_status = door_event_status,                \
    .event_elapsed = door_event_elapsed, .op_create = door_op_create, .op_destroy = door_op_destroy,                  \
    .op_prepack = door_op_prepack, .op_run = door_op_run
#define CEK__DOORS_MAP .mem_map = door_mem_map, .mem_unmap = door_mem_unmap
#define CEK__DOORS_TIMES .device_times = door_device_times
#define CEK__DOORS_REGISTER .host_register = door_host_register, .host_unregister = door_host_unregister
#define CEK__DOORS_IMPORT .mem_import = door_mem_import
#define CEK__DOORS_EXPORT .mem_export = door_mem_export
#define CEK__DOORS_SENSORS .device_sensors = door_device_sensors
#define CEK__DOORS_CMDBUF                                                                                             \
    .cmdbuf_create = door_cmdbuf_create, .cmdbuf_destroy = door_cmdbuf_destroy, .cmdbuf_run = door_cmdbuf_run
/* clang-format on */

#endif
