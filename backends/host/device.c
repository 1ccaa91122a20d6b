/* SPDX-License-Identifier: MIT
 * device.c - instances and devices in host memory. */
#include "backends/common/command.h"
#include "backends/host/host.h"

cek_status cek__host_instance_init(cek_instance *instance, const cek_host *host)
{
    cek_status st = cek__callbacks_copy(host, &instance->host);
    if (st)
        return st;
    pthread_mutex_init(&instance->allocation, NULL);
    return CEK_OK;
}

void cek__host_instance_fini(cek_instance *instance)
{
    pthread_mutex_destroy(&instance->allocation);
}

cek_status cek__host_device_init(cek_dev *dev, cek_instance *instance, uint32_t index,
                                 const cek_device_options *options)
{
    cek_status st = cek__device_options_in(&instance->host, options);
    if (st)
        return st;
    dev->instance = instance;
    dev->index = index;
    cek__latch_init(&dev->lost);
    return CEK_OK;
}

void cek__host_device_fini(cek_dev *dev)
{
    cek__latch_fini(&dev->lost);
}

cek_status cek__host_device_status(cek_dev *dev, char *text, uint64_t cap)
{
    return cek__latch_status(&dev->lost, text, cap);
}

cek_status cek__host_device_memory(cek_dev *dev, uint64_t *free_bytes, uint64_t *total_bytes)
{
    *free_bytes = *total_bytes = 0;
    cek_status st = cek__host_ready(dev, "device_memory");
    if (!st)
        cek__host_memory(free_bytes, total_bytes);
    return st;
}
