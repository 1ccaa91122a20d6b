/* SPDX-License-Identifier: MIT
 *
 * device.c - the head of a device, and whose memory is whose.
 */
#include "backends/common/command.h"
#include "backends/gpu/gpu.h"
#include "backends/gpu/tuner.h"

/* Watchdogs of displays end a launch after 2 s (Windows) to 10 s (amdgpu). A launch has half a second where a compute
 * unit does one multiply-add a cycle: the narrowest there is could do eight (an execution unit of Intel's), so our
 * kernels would have to reach no more than a thirtieth of a device's peak to meet the shortest. */
#define LAUNCH_SECONDS 0.5
#define CLOCK_MHZ 1000 /* of a device that does not tell */

cek_status cek__gpu_device_init(cek_dev *dev, cek_instance *instance, const cek__gpu_driver *driver, uint32_t index,
                                const cek_device_options *options)
{
    cek_status st = cek__device_options_in(&instance->host, options);
    if (st)
        return st;
    dev->instance = instance;
    dev->driver = driver;
    dev->index = index;
    cek__latch_init(&dev->lost);
    st = cek__gpu_tuner_create(dev);
    if (st)
        cek__latch_fini(&dev->lost);
    return st;
}

uint64_t cek__gpu_launch_work(uint32_t compute_units, uint32_t clock_mhz)
{
    return (uint64_t)(LAUNCH_SECONDS * 1e6 * (compute_units ? compute_units : 1) * (clock_mhz ? clock_mhz : CLOCK_MHZ));
}

void cek__gpu_device_fini(cek_dev *dev)
{
    cek__gpu_tuner_free(dev);
    cek__latch_fini(&dev->lost);
}

cek_status cek__gpu_device_status(cek_dev *dev, char *text, uint64_t cap)
{
    return cek__latch_status(&dev->lost, text, cap);
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
