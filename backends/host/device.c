/* SPDX-License-Identifier: MIT
 * device.c - instances and devices in host memory, and the latch of a lost device. */
#include <stdio.h>
#include <string.h>

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
    atomic_init(&dev->lost, false);
    pthread_mutex_init(&dev->lock, NULL);
    return CEK_OK;
}

void cek__host_device_fini(cek_dev *dev)
{
    pthread_mutex_destroy(&dev->lock);
}

void cek__host_device_lose(cek_dev *dev, const char *format, ...)
{
    pthread_mutex_lock(&dev->lock);
    if (!atomic_load(&dev->lost)) {
        va_list args;
        va_start(args, format);
        vsnprintf(dev->lost_text, sizeof dev->lost_text, format, args);
        va_end(args);
        atomic_store(&dev->lost, true); /* whoever sees it sees the text, which never changes again */
    }
    pthread_mutex_unlock(&dev->lock);
}

cek_status cek__host_ready(const cek_dev *dev, const char *call)
{
    if (!atomic_load(&dev->lost))
        return CEK_OK;
    return cek__host_fail(&dev->instance->host, CEK_DEVICE_LOST, "%s: device %u is lost: %s", call, dev->index,
                          dev->lost_text);
}

cek_status cek__host_device_status(cek_dev *dev, char *text, uint64_t cap)
{
    bool lost = atomic_load(&dev->lost);
    cek__text_out(text, cap, lost ? dev->lost_text : "");
    return lost ? CEK_DEVICE_LOST : CEK_OK;
}

cek_status cek__host_device_memory(cek_dev *dev, uint64_t *free_bytes, uint64_t *total_bytes)
{
    *free_bytes = *total_bytes = 0;
    cek_status st = cek__host_ready(dev, "device_memory");
    if (!st)
        cek__host_memory(free_bytes, total_bytes);
    return st;
}
