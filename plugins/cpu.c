/* cpu.c - the door of the cpu plugin: the table of plugin.h, filled in from backends/cpu and backends/host. */
#include "backends/cpu/ops/ops.h"

static const cek_plugin bare = {
    .create = cek__cpu_create,
    .destroy = cek__cpu_destroy,
    .device_count = cek__cpu_device_count,
    .device_info = cek__cpu_device_info,
    .device_open = cek__cpu_device_open,
    .device_close = cek__cpu_device_close,
    .device_status = cek__host_device_status,
    .device_memory = cek__host_device_memory,

    .mem_alloc = cek__host_mem_alloc,
    .mem_free = cek__host_mem_free,
    .mem_host_ptr = cek__host_mem_host_ptr,
    .mem_map = cek__host_mem_map,
    .mem_unmap = cek__host_mem_unmap,
    .host_alloc = cek__host_host_alloc,
    .host_free = cek__host_host_free,
    .host_register = cek__host_host_register,
    .host_unregister = cek__host_host_unregister,
    .mem_import = cek__host_mem_import,

    .queue_create = cek__host_queue_create,
    .queue_destroy = cek__host_queue_destroy,
    .queue_status = cek__host_queue_status,
    .queue_sync = cek__host_queue_sync,
    .upload = cek__cpu_upload,
    .download = cek__cpu_download,
    .copy = cek__cpu_copy_mem,
    .fill = cek__cpu_fill,
    .update = cek__host_update,

    .event_create = cek__host_event_create,
    .event_destroy = cek__host_event_destroy,
    .event_record = cek__host_event_record,
    .event_wait = cek__host_event_wait,
    .event_query = cek__host_event_query,
    .event_sync = cek__host_event_sync,
    .event_status = cek__host_event_status,
    .event_elapsed = cek__host_event_elapsed,

    .op_create = cek__cpu_op_create,
    .op_destroy = cek__host_op_destroy,
    .op_prepack = cek__host_op_prepack,
    .op_run = cek__cpu_op_run,

    .cmdbuf_create = cek__host_cmdbuf_create,
    .cmdbuf_destroy = cek__host_cmdbuf_destroy,
    .cmdbuf_run = cek__cpu_cmdbuf_run,
    .device_sensors = cek__cpu_device_sensors,
};

#include "backends/common/nulls.h"

static const cek_plugin plugin = {
    .size = sizeof plugin,
    .abi = CEK_ABI,
    .name = "cpu",
    .version = "0.1.0",
    .build = cek__cpu_build,
    .profile = CEK_PROFILE_TRAINING,
    CEK__DOORS,
    CEK__DOORS_MAP,
    CEK__DOORS_CMDBUF,
    CEK__DOORS_REGISTER,
    CEK__DOORS_IMPORT,
    CEK__DOORS_SENSORS,
};

CEK_PLUGIN_EXPORT const cek_plugin *cek_plugin_query(uint32_t host_abi)
{
    return host_abi >> 16 == CEK_ABI_MAJOR ? &plugin : NULL;
}
