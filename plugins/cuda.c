/* cuda.c - the door of the cuda plugin: the table of plugin.h, filled in from backends/cuda and backends/gpu. */
#include "backends/cuda/cuda.h"

static const cek_plugin bare = {
    .create = cek__cuda_create,
    .destroy = cek__cuda_destroy,
    .device_count = cek__cuda_device_count,
    .device_info = cek__cuda_device_info,
    .device_open = cek__cuda_device_open,
    .device_close = cek__cuda_device_close,
    .device_status = cek__gpu_device_status,
    .device_memory = cek__cuda_device_memory,
    .device_sensors = cek__cuda_device_sensors,

    .mem_alloc = cek__cuda_mem_alloc,
    .mem_free = cek__cuda_mem_free,
    .mem_host_ptr = cek__cuda_mem_host_ptr,
    .host_alloc = cek__cuda_host_alloc,
    .host_free = cek__cuda_host_free,
    .host_register = cek__cuda_host_register,
    .host_unregister = cek__cuda_host_unregister,
    .mem_import = cek__cuda_mem_import,
    .mem_export = cek__cuda_mem_export,

    .queue_create = cek__cuda_queue_create,
    .queue_destroy = cek__cuda_queue_destroy,
    .queue_status = cek__cuda_queue_status,
    .queue_sync = cek__cuda_queue_sync,
    .upload = cek__cuda_upload,
    .download = cek__cuda_download,
    .copy = cek__cuda_copy,
    .fill = cek__cuda_fill,
    .update = cek__cuda_update,

    .event_create = cek__cuda_event_create,
    .event_destroy = cek__cuda_event_destroy,
    .event_record = cek__cuda_event_record,
    .event_wait = cek__cuda_event_wait,
    .event_query = cek__cuda_event_query,
    .event_sync = cek__cuda_event_sync,
    .event_status = cek__cuda_event_status,
    .event_elapsed = cek__cuda_event_elapsed,

    .op_create = cek__gpu_op_create,
    .op_destroy = cek__gpu_op_destroy,
    .op_prepack = cek__gpu_op_prepack,
    .op_run = cek__gpu_op_run,

    .cmdbuf_create = cek__cuda_cmdbuf_create,
    .cmdbuf_destroy = cek__cuda_cmdbuf_destroy,
    .cmdbuf_run = cek__cuda_cmdbuf_run,
};

#include "backends/common/nulls.h"

static const cek_plugin plugin = {
    .size = sizeof plugin,
    .abi = CEK_ABI,
    .name = "cuda",
    .version = "0.1.0",
    .build = cek__cuda_build,
    .profile = CEK_PROFILE_TRAINING,
    CEK__DOORS,
    CEK__DOORS_CMDBUF,
    CEK__DOORS_REGISTER,
    CEK__DOORS_IMPORT,
    CEK__DOORS_EXPORT,
    CEK__DOORS_SENSORS,
};

CEK_PLUGIN_EXPORT const cek_plugin *cek_plugin_query(uint32_t host_abi)
{
    return host_abi >> 16 == CEK_ABI_MAJOR ? &plugin : NULL;
}
