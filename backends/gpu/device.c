/* SPDX-License-Identifier: MIT
 *
 * device.c - the head of a device: the latch of its loss, and the checks of commands that need no driver.
 */
#include <stdio.h>
#include <string.h>

#include "backends/common/growth.h"
#include "backends/gpu/gpu.h"

cek_status cek__gpu_device_init(cek_dev *dev, cek_instance *instance, const cek__gpu_driver *driver, uint32_t index,
                                const cek_device_options *options)
{
    if (options) {
        cek_device_options known;
        cek_status st = cek__struct_in(&instance->host, "device_open: options", options, &known, sizeof known);
        if (st)
            return st;
        if (known.flags)
            return cek__fail(&instance->host, CEK_UNSUPPORTED, "device_open: unknown flags %#x", known.flags);
    }
    dev->instance = instance;
    dev->driver = driver;
    dev->index = index;
    atomic_init(&dev->lost, false);
    pthread_mutex_init(&dev->lock, NULL);
    cek_status st = cek__gpu_tuner_create(dev);
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
        atomic_store(&dev->lost, true);  /* whoever sees it sees the text, which never changes again */
    }
    pthread_mutex_unlock(&dev->lock);
}

cek_status cek__gpu_ready(const cek_dev *dev, const char *call)
{
    if (!atomic_load(&dev->lost))
        return CEK_OK;
    return cek__fail(&dev->instance->host, CEK_DEVICE_LOST, "%s: the device was lost: %s", call, dev->lost_text);
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

cek_status cek__gpu_alloc_check(cek_dev *dev, const cek_mem_desc *desc, uint64_t *bytes)
{
    const cek_host *host = &dev->instance->host;
    cek_mem_desc want;
    cek_status st = cek__gpu_ready(dev, "mem_alloc");
    if (!st)
        st = cek__struct_in(host, "mem_alloc: descriptor", desc, &want, sizeof want);
    if (!st && want.flags)
        st = cek__fail(host, CEK_UNSUPPORTED, "mem_alloc: unknown flags %#x", want.flags);
    if (!st && !want.bytes)
        st = cek__fail(host, CEK_INVALID, "mem_alloc: 0 bytes");
    *bytes = st ? 0 : want.bytes;
    return st;
}

cek_status cek__gpu_copy_check(cek_dev *dev, cek_ref dst, cek_ref src, uint64_t bytes)
{
    const cek_host *host = &dev->instance->host;
    cek_status st = cek__range_check(host, "copy: destination", dst, bytes, cek__gpu_mem_bytes, dev);
    if (st)
        return st;
    if (src.mem && src.mem->dev->instance != dev->instance)
        return cek__fail(host, CEK_UNSUPPORTED, "copy: the source is of another instance");
    st = cek__range_check(host, "copy: source", src, bytes, cek__gpu_mem_bytes, src.mem ? src.mem->dev : dev);
    if (!st && dst.mem == src.mem && dst.offset < src.offset + bytes && src.offset < dst.offset + bytes)
        st = cek__fail(host, CEK_INVALID, "copy: source and destination overlap");
    return st;
}

cek_status cek__gpu_fill_check(cek_dev *dev, cek_ref dst, uint32_t pattern_bytes, uint64_t bytes)
{
    const cek_host *host = &dev->instance->host;
    if (pattern_bytes != 1 && pattern_bytes != 2 && pattern_bytes != 4)
        return cek__fail(host, CEK_INVALID, "fill: a pattern of %u bytes", pattern_bytes);
    if (dst.offset % pattern_bytes || bytes % pattern_bytes)
        return cek__fail(host, CEK_INVALID, "fill: %llu bytes at offset %llu are not multiples of %u",
                         (unsigned long long)bytes, (unsigned long long)dst.offset, pattern_bytes);
    return cek__range_check(host, "fill", dst, bytes, cek__gpu_mem_bytes, dev);
}

cek_status cek__gpu_update_check(cek_dev *dev, cek_ref dst, const void *src, uint64_t bytes)
{
    const cek_host *host = &dev->instance->host;
    cek_status st = cek__range_check(host, "update", dst, bytes, cek__gpu_mem_bytes, dev);
    if (!st && (bytes > 4096 || bytes % 4 || dst.offset % 4))
        st = cek__fail(host, CEK_INVALID, "update: %llu bytes at offset %llu: at most 4096, multiples of 4",
                       (unsigned long long)bytes, (unsigned long long)dst.offset);
    if (!st && !src)
        st = cek__fail(host, CEK_INVALID, "update: no source");
    return st;
}
