/* SPDX-License-Identifier: MIT
 *
 * device.c - the head of a device: the latch of its loss, and whose memory is whose.
 */
#include <stdio.h>
#include <string.h>

#include "backends/common/command.h"
#include "backends/gpu/gpu.h"

cek_status cek__gpu_device_init(cek_dev *dev, cek_instance *instance, const cek__gpu_driver *driver, uint32_t index,
                                const cek_device_options *options)
{
    cek_status st = cek__device_options_in(&instance->host, options);
    if (st)
        return st;
    dev->instance = instance;
    dev->driver = driver;
    dev->index = index;
    atomic_init(&dev->lost, false);
    pthread_mutex_init(&dev->lock, NULL);
    st = cek__gpu_tuner_create(dev);
    if (st)
        pthread_mutex_destroy(&dev->lock);
    return st;
}

void cek__gpu_device_fini(cek_dev *dev)
{
    cek__gpu_tuner_free(dev);
    pthread_mutex_destroy(&dev->lock);
}

void cek__gpu_device_lose(cek_dev *dev, const char *format, ...)
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

cek_status cek__gpu_ready(const cek_dev *dev, const char *call)
{
    if (!atomic_load(&dev->lost))
        return CEK_OK;
    return cek__host_fail(&dev->instance->host, CEK_DEVICE_LOST, "%s: the device was lost: %s", call, dev->lost_text);
}

cek_status cek__gpu_device_status(cek_dev *dev, char *text, uint64_t cap)
{
    bool lost = atomic_load(&dev->lost);
    cek__text_out(text, cap, lost ? dev->lost_text : "");
    return lost ? CEK_DEVICE_LOST : CEK_OK;
}

bool cek__gpu_mem_bytes(const void *dev, const cek_mem *mem, uint64_t *bytes)
{
    *bytes = mem->bytes;
    return mem->dev == dev;
}

cek_status cek__gpu_copy_check(cek_dev *dev, cek_ref dst, cek_ref src, uint64_t bytes)
{
    const cek_host *host = &dev->instance->host;
    const cek_dev *from = src.mem ? src.mem->dev : dev;
    if (from->instance != dev->instance)
        return cek__host_fail(host, CEK_UNSUPPORTED, "copy: the source is of another instance");
    return cek__copy_check(host, dst, src, bytes, cek__gpu_mem_bytes, dev, from);
}
