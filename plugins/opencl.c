/* opencl.c - the door of the opencl plugin: the table of plugin.h, filled in from backends/opencl and backends/gpu. */
#include "backends/opencl/opencl.h"

static const cek_plugin bare = {
    .create = cek__opencl_create,
    .destroy = cek__opencl_destroy,
    .device_count = cek__opencl_device_count,
    .device_info = cek__opencl_device_info,
    .device_open = cek__opencl_device_open,
    .device_close = cek__opencl_device_close,
    .device_status = cek__gpu_device_status,
    .device_memory = cek__opencl_device_memory,

    .mem_alloc = cek__opencl_mem_alloc,
    .mem_free = cek__opencl_mem_free,
    .mem_host_ptr = cek__opencl_mem_host_ptr,
    .mem_map = cek__opencl_mem_map,
    .mem_unmap = cek__opencl_mem_unmap,
    .host_alloc = cek__opencl_host_alloc,
    .host_free = cek__opencl_host_free,

    .queue_create = cek__opencl_queue_create,
    .queue_destroy = cek__opencl_queue_destroy,
    .queue_status = cek__opencl_queue_status,
    .queue_sync = cek__opencl_queue_sync,
    .upload = cek__opencl_upload,
    .download = cek__opencl_download,
    .copy = cek__opencl_copy,
    .fill = cek__opencl_fill,
    .update = cek__opencl_update,

    .event_create = cek__opencl_event_create,
    .event_destroy = cek__opencl_event_destroy,
    .event_record = cek__opencl_event_record,
    .event_wait = cek__opencl_event_wait,
    .event_query = cek__opencl_event_query,
    .event_sync = cek__opencl_event_sync,
    .event_status = cek__opencl_event_status,
    .event_elapsed = cek__opencl_event_elapsed,

    .op_create = cek__gpu_op_create,
    .op_destroy = cek__gpu_op_destroy,
    .op_prepack = cek__gpu_op_prepack,
    .op_run = cek__gpu_op_run,

    .cmdbuf_create = cek__opencl_cmdbuf_create,
    .cmdbuf_destroy = cek__opencl_cmdbuf_destroy,
    .cmdbuf_run = cek__opencl_cmdbuf_run,
};

#include "backends/common/nulls.h"

static const cek_plugin plugin = {
    .size = sizeof plugin,
    .abi = CEK_ABI,
    .name = "opencl",
    .version = "0.1.0",
    .build = cek__opencl_build,
    .profile = CEK_PROFILE_TRAINING,
    CEK__DOORS,
    CEK__DOORS_MAP,
    CEK__DOORS_CMDBUF,
};

CEK_PLUGIN_EXPORT const cek_plugin *cek_plugin_query(uint32_t host_abi)
{
    return host_abi >> 16 == CEK_ABI_MAJOR ? &plugin : NULL;
}
