/* SPDX-License-Identifier: MIT
 *
 * device.c - instances and devices, in the driver's order, each with the primary context of its GPU.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/common/growth.h"
#include "backends/common/hash.h"
#include "backends/cuda/cublaslt.h"
#include "backends/cuda/cuda.h"
#include "backends/cuda/cudnn.h"
#include "backends/gpu/providers.h"

const char cek__cuda_build[] = __VERSION__;

#define PCI_BYTES 16

/* --- instance --------------------------------------------------------------------------------- */

/* A driver that is there but has nothing to drive is as absent as none; other failures are faults. */
static cek_status driver_fail(cuda_instance *instance, const char *function, CUresult error)
{
    bool absent = error == CUDA_ERROR_NO_DEVICE || error == CUDA_ERROR_STUB_LIBRARY ||
                  error == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH || error == CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE;
    cek_status st = absent ? CEK_UNAVAILABLE : error == CUDA_ERROR_OUT_OF_MEMORY ? CEK_OUT_OF_MEMORY : CEK_INTERNAL;
    return cek__host_fail(&instance->head.host, st, "%s: %s (%u)", function, cek__cuda_error(&instance->driver, error),
                          error);
}

static cek_status devices_count(cuda_instance *instance)
{
    int count = 0;
    CUresult error = instance->driver.cuInit(0);
    if (error)
        return driver_fail(instance, "cuInit", error);
    error = instance->driver.cuDriverGetVersion(&instance->version);
    if (error)
        return driver_fail(instance, "cuDriverGetVersion", error);
    error = instance->driver.cuDeviceGetCount(&count);
    if (error)
        return driver_fail(instance, "cuDeviceGetCount", error);
    if (count <= 0)
        return cek__host_fail(&instance->head.host, CEK_UNAVAILABLE, "the CUDA driver has no device");
    instance->count = (uint32_t)count;
    return CEK_OK;
}

cek_status cek__cuda_create(const cek_host *host, cek_instance **out)
{
    *out = NULL;
    cuda_instance *instance = calloc(1, sizeof *instance);
    if (!instance)
        return CEK_OUT_OF_MEMORY;
    pthread_mutex_init(&instance->lock, NULL);
    pthread_mutex_init(&instance->ranges_lock, NULL);
    pthread_cond_init(&instance->ranges_changed, NULL);
    cek_status st = cek__callbacks_copy(host, &instance->head.host);
    const char *images = cek__host_option(&instance->head.host, "cuda_images");
    instance->images_off = images && !strcmp(images, "off");
    if (!st)
        st = cek__cache_check(&instance->head.host, "cuda_cache");
    if (!st)
        st = cek__gpu_providers_check(&instance->head.host, &cek__cuda_driver);
    if (!st)
        st = cek__cuda_driver_load(&instance->head.host, &instance->driver);
    if (!st)
        st = devices_count(instance);
    if (st) {
        cek__cuda_destroy(&instance->head);
        return st;
    }
    *out = &instance->head;
    return CEK_OK;
}

/* The driver's library stays loaded: its threads and exit handlers do not expect to be unmapped. */
void cek__cuda_destroy(cek_instance *head)
{
    cuda_instance *instance = (cuda_instance *)head;
    if (!instance)
        return;
    cek__cuda_compiler_free(instance->compiler);
    cek__cublaslt_free(instance->cublaslt);
    cek__cudnn_free(instance->cudnn);
    cek__nvml_free(instance->nvml);
    pthread_mutex_destroy(&instance->lock);
    pthread_mutex_destroy(&instance->ranges_lock);
    pthread_cond_destroy(&instance->ranges_changed);
    free(instance);
}

uint32_t cek__cuda_device_count(cek_instance *head)
{
    return ((cuda_instance *)head)->count;
}

/* --- what is told of a device ----------------------------------------------------------------- */

static uint32_t attribute(const cuda_driver *api, CUdevice device, CUdevice_attribute what)
{
    int value = 0;
    return api->cuDeviceGetAttribute(&value, what, device) || value < 0 ? 0 : (uint32_t)value;
}

static cek_status device_get(cuda_instance *instance, const char *call, uint32_t index, CUdevice *device)
{
    if (index >= instance->count)
        return cek__host_fail(&instance->head.host, CEK_INVALID, "%s: device %u, there are %u", call, index,
                              instance->count);
    CUresult error = instance->driver.cuDeviceGet(device, (int)index);
    return error ? driver_fail(instance, "cuDeviceGet", error) : CEK_OK;
}

/* Results depend on the device, on this build, and, for what the driver translates, on the driver. Who compiles at run
 * time is known of an open device alone. */
static uint64_t numeric_id(cuda_instance *instance, CUdevice device)
{
    char name[128] = "";
    uint64_t hash = cek__hash_text(CEK__HASH_START, "cuda " PACKAGE_VERSION " " CEK__GPU_ALGORITHMS);
    instance->driver.cuDeviceGetName(name, sizeof name - 1, device);
    hash = cek__hash_text(hash, name);
    hash = cek__hash_number(hash, attribute(&instance->driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
    hash = cek__hash_number(hash, attribute(&instance->driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
    hash = cek__hash_number(hash, instance->images_off);
    return cek__hash_number(hash, (uint64_t)instance->version);
}

static void pci_read(const cuda_driver *api, CUdevice device, char *to)
{
    *to = 0;
    if (api->cuDeviceGetPCIBusId(to, PCI_BYTES, device))
        *to = 0;
    for (; *to; to++)
        *to = (char)tolower((unsigned char)*to);
}

/* The libraries that are in use: to load those that might be takes longer than all else. */
static void libraries_tell(cuda_instance *instance, char *text, size_t cap)
{
    pthread_mutex_lock(&instance->lock);
    const char *const in_use[] = { instance->compiler_text, instance->cublaslt ? instance->cublaslt->version : "",
                                   instance->cudnn ? instance->cudnn->version : "" };
    for (size_t i = 0; i < sizeof in_use / sizeof *in_use; i++) {
        size_t at = strlen(text);
        if (*in_use[i])
            snprintf(text + at, cap - at, "; %.60s", in_use[i]);
    }
    pthread_mutex_unlock(&instance->lock);
}

/* Free memory is known in a context alone, and one costs hundreds of megabytes: none is made to answer a question. */
cek_status cek__cuda_device_info(cek_instance *head, uint32_t index, cek_device_info *info)
{
    cuda_instance *instance = (cuda_instance *)head;
    const cuda_driver *api = &instance->driver;
    CUdevice device;
    size_t total = 0;
    CUuuid uuid;
    cek_status st = device_get(instance, "device_info", index, &device);
    if (st)
        return st;
    cek_device_info full = {
        .size = sizeof full,
        .kind = CEK_KIND_GPU,
        .vendor = "NVIDIA",
        .compute_units = attribute(api, device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
        .copy_engines = attribute(api, device, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT),
        .total_bytes = CEK_UNKNOWN,
        .free_bytes = CEK_UNKNOWN,
        .types = 1u << CEK_F32 | 1u << CEK_F16 | 1u << CEK_BF16 | 1u << CEK_U8 | 1u << CEK_I32,
        .numeric_id = numeric_id(instance, device),
    };
    CUresult error = api->cuDeviceGetName(full.name, sizeof full.name - 1, device);
    if (error)
        return driver_fail(instance, "cuDeviceGetName", error);
    if (!api->cuDeviceTotalMem(&total, device))
        full.total_bytes = full.max_alloc_bytes = total;
    if (!api->cuDeviceGetUuid(&uuid, device))
        memcpy(full.uuid, uuid.bytes, sizeof full.uuid);
    snprintf(full.driver, sizeof full.driver, "CUDA %d.%d, sm_%u%u", instance->version / 1000,
             instance->version % 1000 / 10, attribute(api, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
             attribute(api, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
    libraries_tell(instance, full.driver, sizeof full.driver);
    pci_read(api, device, full.pci);
    if (*full.pci)
        snprintf(full.processor, sizeof full.processor, "pci:%s", full.pci);
    else
        snprintf(full.processor, sizeof full.processor, "cuda:%u", index);
    return cek__struct_out(&head->host, "device_info: info", info, &full, sizeof full);
}

/* --- device ----------------------------------------------------------------------------------- */

static cek_status attribute_need(cuda_dev *dev, CUdevice_attribute what, int *value)
{
    CUresult error = cek__cuda_api(dev)->cuDeviceGetAttribute(value, what, dev->device);
    return error ? cek__cuda_fail(dev, "device_open", "cuDeviceGetAttribute", error) : CEK_OK;
}

static cek_status traits_read(cuda_dev *dev)
{
    cuda_instance *instance = cek__cuda_instance(&dev->head);
    cek__gpu_traits *traits = &dev->head.traits;
    int group = 0, local_bytes = 0, units = 0;
    cek_status st = attribute_need(dev, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &dev->major);
    if (!st)
        st = attribute_need(dev, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &dev->minor);
    if (!st)
        st = attribute_need(dev, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &units);
    if (!st)
        st = attribute_need(dev, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &group);
    if (!st)
        st = attribute_need(dev, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, &local_bytes);
    if (st)
        return st;
    traits->compute_units = (uint32_t)units;
    if (attribute(&instance->driver, dev->device, CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT))
        traits->launch_work = cek__gpu_launch_work(
            traits->compute_units, attribute(&instance->driver, dev->device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE) / 1000);
    traits->max_group = (uint32_t)group;
    traits->local_bytes = (uint64_t)local_bytes;
    traits->built_in_only = !cek__cuda_compiler(instance);
    traits->numeric_id = cek__hash_text(numeric_id(instance, dev->device), cek__cuda_compiler_text(instance));
    snprintf(dev->cache_key, sizeof dev->cache_key, "sm_%d%d %d", dev->major, dev->minor, instance->version);
    return CEK_OK;
}

/* A context that died is given again, dead, for as long as anybody holds it: it says so when something is asked. */
static cek_status context_try(cuda_dev *dev)
{
    size_t free_bytes, total;
    cek_status st = cek__cuda_enter(dev, "device_open");
    if (st)
        return st;
    CUresult error = cek__cuda_api(dev)->cuMemGetInfo(&free_bytes, &total);
    cek__cuda_leave(dev);
    return error ? cek__cuda_fail(dev, "device_open", "cuMemGetInfo", error) : CEK_OK;
}

cek_status cek__cuda_device_open(cek_instance *head, uint32_t index, const cek_device_options *options, cek_dev **out)
{
    cuda_instance *instance = (cuda_instance *)head;
    CUdevice device;
    *out = NULL;
    cek_status st = device_get(instance, "device_open", index, &device);
    if (st)
        return st;
    cuda_dev *dev = calloc(1, sizeof *dev);
    if (!dev)
        return cek__host_fail(&head->host, CEK_OUT_OF_MEMORY, "device_open: no memory for the handle");
    st = cek__gpu_device_init(&dev->head, head, &cek__cuda_driver, index, options);
    if (st) {
        free(dev);
        return st;
    }
    pthread_mutex_init(&dev->programs_lock, NULL);
    pthread_mutex_init(&dev->cudnn_lock, NULL);
    dev->device = device;
    CUresult error = instance->driver.cuDevicePrimaryCtxRetain(&dev->context, device);
    if (error) {
        dev->context = NULL;
        st = cek__cuda_fail(dev, "device_open", "cuDevicePrimaryCtxRetain", error);
    } else {
        st = context_try(dev);
    }
    if (!st)
        st = traits_read(dev);
    if (st) {
        cek__cuda_device_close(&dev->head);
        return st;
    }
    *out = &dev->head;
    return CEK_OK;
}

/* On a lost device the driver may wait for ever: what it still holds is left to it. */
void cek__cuda_device_close(cek_dev *head)
{
    cuda_dev *dev = (cuda_dev *)head;
    if (!dev)
        return;
    cek__cuda_host_forget(head);
    cek__cuda_programs_free(dev);
    cek__cublaslt_device_close(dev);
    cek__cudnn_device_close(dev);
    if (dev->context && !cek__latched(&head->lost))
        (void)cek__cuda_api(dev)->cuDevicePrimaryCtxRelease(dev->device);
    pthread_mutex_destroy(&dev->programs_lock);
    pthread_mutex_destroy(&dev->cudnn_lock);
    cek__gpu_device_fini(head);
    free(dev);
}

cek_status cek__cuda_device_memory(cek_dev *head, uint64_t *free_bytes, uint64_t *total_bytes)
{
    cuda_dev *dev = (cuda_dev *)head;
    size_t now_free, total;
    *free_bytes = *total_bytes = CEK_UNKNOWN;
    cek_status st = cek__gpu_ready(head, "device_memory");
    if (!st)
        st = cek__cuda_enter(dev, "device_memory");
    if (st)
        return st;
    CUresult error = cek__cuda_api(dev)->cuMemGetInfo(&now_free, &total);
    cek__cuda_leave(dev);
    if (error)
        return cek__cuda_fail(dev, "device_memory", "cuMemGetInfo", error);
    *free_bytes = now_free;
    *total_bytes = total;
    return CEK_OK;
}

static const cek__gpu_provider *const providers[] = { &cek__cublaslt_provider, &cek__cudnn_provider, NULL };

/* NVIDIA's own libraries know their devices: what they take needs no measuring against ours. */
const cek__gpu_driver cek__cuda_driver = {
    .providers = providers,
    .providers_option = "cuda_providers",
    .pools_option = "cuda_pools",
    .cache_option = "cuda_cache",
    .providers_first = true,
    .kernel_load = cek__cuda_kernel_load,
    .kernel_free = cek__cuda_kernel_free,
    .kernel_warm = cek__cuda_kernel_warm,
    .launch = cek__cuda_launch,
    .queue_ready = cek__cuda_queue_ready,
    .queue_dev = cek__cuda_queue_dev,
    .queue_fail = cek__cuda_queue_fail,
    .mem_alloc = cek__cuda_mem_alloc,
    .mem_free = cek__cuda_mem_free,
    .queue_create = cek__cuda_queue_create,
    .queue_destroy = cek__cuda_queue_destroy,
    .queue_sync = cek__cuda_queue_sync,
    .fill = cek__cuda_fill,
    .download = cek__cuda_download,
};
