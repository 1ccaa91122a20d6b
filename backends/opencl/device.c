/* SPDX-License-Identifier: MIT
 *
 * device.c - which devices there are, in the order of clinfo: platform by platform, as the ICD loader lists them; and
 * open ones.
 *
 * With the option opencl_split=N every device that can be partitioned stands as N sub-devices instead.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "backends/gpu/providers.h"
#include "backends/opencl/opencl.h"

const char cek__opencl_build[] = __VERSION__;

#define PLATFORMS_MAX 64
#define DEVICES_MAX 256 /* of one platform */
#define SPLIT_MAX 64
#define KERNEL_EXEC_TIMEOUT_NV 0x4005 /* of cl_nv_device_attribute_query */

/* --- what is found ---------------------------------------------------------------------------- */

static cek_status device_add(opencl_instance *instance, found_device device)
{
    found_device *larger = realloc(instance->devices, (instance->count + 1) * sizeof *larger);
    if (!larger)
        return cek__host_fail(&instance->head.host, CEK_OUT_OF_MEMORY, "create: no memory for the list of devices");
    instance->devices = larger;
    larger[instance->count++] = device;
    return CEK_OK;
}

/* N parts as equal as can be. */
static cek_status device_split(opencl_instance *instance, cl_platform_id platform, cl_device_id id, uint32_t parts)
{
    cl_device_partition_property by_counts[SPLIT_MAX + 3] = { CL_DEVICE_PARTITION_BY_COUNTS };
    cl_device_id made[SPLIT_MAX];
    char name[128];
    uint32_t units = cek__opencl_number(id, CL_DEVICE_MAX_COMPUTE_UNITS);
    cl_uint count = 0;
    for (uint32_t i = 0; i < parts; i++)
        by_counts[i + 1] = units / parts + (i < units % parts);
    by_counts[parts + 1] = CL_DEVICE_PARTITION_BY_COUNTS_LIST_END;
    cl_int error = units < parts ? CL_INVALID_DEVICE_PARTITION_COUNT
                                 : clCreateSubDevices(id, by_counts, parts, made, &count);
    if (error || count != parts) {
        cek__opencl_text(id, CL_DEVICE_NAME, name, sizeof name);
        return cek__host_fail(&instance->head.host, CEK_INVALID,
                              "create: opencl_split=%u: %s has %u compute units: %s (%d)", parts, name, units,
                              cek__opencl_error(error), error);
    }
    cek_status st = CEK_OK;
    for (uint32_t i = 0; i < count; i++)
        if (st)
            clReleaseDevice(made[i]);
        else if ((st = device_add(instance, (found_device){ platform, made[i], true })))
            clReleaseDevice(made[i]);
    return st;
}

static bool can_split(cl_device_id id)
{
    cl_device_partition_property ways[16] = { 0 };
    size_t bytes = 0;
    if (clGetDeviceInfo(id, CL_DEVICE_PARTITION_PROPERTIES, sizeof ways, ways, &bytes))
        return false;
    for (size_t i = 0; i < bytes / sizeof *ways; i++)
        if (ways[i] == CL_DEVICE_PARTITION_BY_COUNTS)
            return true;
    return false;
}

static cek_status devices_find(opencl_instance *instance, uint32_t split)
{
    cl_platform_id platforms[PLATFORMS_MAX];
    cl_uint platform_count = 0;
    cl_int error = clGetPlatformIDs(PLATFORMS_MAX, platforms, &platform_count);
    if (error || !platform_count)
        return cek__host_fail(
            &instance->head.host, CEK_UNAVAILABLE,
            "no OpenCL platform: install the vendor's driver, or PoCL for the processor (Debian: pocl-opencl-icd)");
    for (cl_uint p = 0; p < platform_count && p < PLATFORMS_MAX; p++) {
        cl_device_id ids[DEVICES_MAX];
        cl_uint count = 0;
        error = clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, DEVICES_MAX, ids, &count);
        if (error && error != CL_DEVICE_NOT_FOUND)
            cek__host_log(&instance->head.host, CEK_LOG_WARN, "OpenCL platform %u: clGetDeviceIDs: %s (%d)", p,
                          cek__opencl_error(error), error);
        for (cl_uint i = 0; !error && i < count && i < DEVICES_MAX; i++) {
            cek_status st = split > 1 && can_split(ids[i])
                                ? device_split(instance, platforms[p], ids[i], split)
                                : device_add(instance, (found_device){ platforms[p], ids[i], false });
            if (st)
                return st;
        }
    }
    return instance->count ? CEK_OK
                           : cek__host_fail(&instance->head.host, CEK_UNAVAILABLE, "no device on any OpenCL platform");
}

cek_status cek__opencl_create(const cek_host *host, cek_instance **out)
{
    uint64_t split = 1;
    *out = NULL;
    opencl_instance *instance = calloc(1, sizeof *instance);
    if (!instance)
        return CEK_OUT_OF_MEMORY;
    pthread_mutex_init(&instance->allocation, NULL);
    pthread_mutex_init(&instance->clblast_lock, NULL);
    cek_status st = cek__callbacks_copy(host, &instance->head.host);
    /* The loader reads the caller's environment to find drivers: not with more rights than the caller has. */
    if (!st && getauxval(AT_SECURE))
        st = cek__host_fail(&instance->head.host, CEK_UNAVAILABLE, "not in a process that runs with raised privileges");
    if (!st)
        st = cek__host_option_number(&instance->head.host, "opencl_split", 1, SPLIT_MAX, &split);
    if (!st)
        st = cek__cache_check(&instance->head.host, "opencl_cache");
    if (!st)
        st = cek__gpu_providers_check(&instance->head.host, &cek__opencl_driver);
    if (!st)
        st = cek__opencl_probe(&instance->head.host);
    if (!st)
        st = devices_find(instance, (uint32_t)split);
    if (st) {
        cek__opencl_destroy(&instance->head);
        return st;
    }
    *out = &instance->head;
    return CEK_OK;
}

void cek__opencl_destroy(cek_instance *head)
{
    opencl_instance *instance = (opencl_instance *)head;
    if (!instance)
        return;
    for (uint32_t i = 0; i < instance->count; i++)
        if (instance->devices[i].part)
            clReleaseDevice(instance->devices[i].id);
    free(instance->devices);
    pthread_mutex_destroy(&instance->allocation);
    pthread_mutex_destroy(&instance->clblast_lock);
    cek__clblast_free(instance->clblast);
    free(instance);
}

uint32_t cek__opencl_device_count(cek_instance *head)
{
    return ((opencl_instance *)head)->count;
}

/* --- open ------------------------------------------------------------------------------------- */

/* PoCL keeps what it compiled, by source and by size of a group. Asked for a program's binary it
 * compiles every kernel of it for any size of a group, which takes longer than all else: there we
 * store kernels only in a folder that somebody named. */
static bool keeps_kernels(const opencl_dev *dev)
{
    char name[128] = "";
    const char *own = secure_getenv("POCL_KERNEL_CACHE");
    clGetPlatformInfo(dev->platform, CL_PLATFORM_NAME, sizeof name - 1, name, NULL);
    bool driver_does = strstr(name, "Portable Computing Language") && !(own && !strcmp(own, "0"));
    return !driver_does || cek__host_option(&dev->head.instance->host, "opencl_cache");
}

static void build_options_choose(opencl_dev *dev)
{
    cl_device_fp_config single = 0;
    clGetDeviceInfo(dev->id, CL_DEVICE_SINGLE_FP_CONFIG, sizeof single, &single, NULL);
    snprintf(dev->build_options, sizeof dev->build_options, "-cl-std=CL1.2%s",
             single & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT ? " -cl-fp32-correctly-rounded-divide-sqrt" : "");
}

/* Whether a launch that takes seconds may be ended: NVIDIA's driver tells, of others' GPUs it must be assumed. */
static bool watched(cl_device_id id)
{
    return !cek__opencl_has(id, "cl_nv_device_attribute_query") || cek__opencl_number(id, KERNEL_EXEC_TIMEOUT_NV);
}

static void traits_read(opencl_dev *dev, const found_device *found)
{
    size_t group = 0;
    cek__gpu_traits *traits = &dev->head.traits;
    clGetDeviceInfo(dev->id, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof group, &group, NULL);
    traits->compute_units = cek__opencl_number(dev->id, CL_DEVICE_MAX_COMPUTE_UNITS);
    traits->max_group = (uint32_t)group;
    traits->local_bytes = cek__opencl_long(dev->id, CL_DEVICE_LOCAL_MEM_SIZE);
    traits->numeric_id = cek__opencl_numeric_id(found);
    dev->host_memory = cek__opencl_in_host_memory(found);
    dev->fine_grained = cek__opencl_shares_memory(found);
    dev->pins = !cek__opencl_is_cpu(dev->id) && !cek__opencl_is_simulator(dev->platform);
    if (cek__opencl_is_cpu(dev->id) && !cek__opencl_is_simulator(dev->platform)) {
        /* The width that the compiler vectorises for; some drivers call 0 what they do not say. */
        uint32_t width = cek__opencl_number(dev->id, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT);
        traits->vector_width = width ? width : 4;
    }
    if (!traits->vector_width && watched(dev->id))
        traits->launch_work = cek__gpu_launch_work(traits->compute_units,
                                                   cek__opencl_number(dev->id, CL_DEVICE_MAX_CLOCK_FREQUENCY));
    dev->max_alloc_bytes = cek__opencl_max_alloc(dev->id);
    dev->keeps_kernels = keeps_kernels(dev);
    build_options_choose(dev);
    snprintf(dev->cache_key, sizeof dev->cache_key, "%016llx", (unsigned long long)traits->numeric_id);
}

static void ledgers_lock_init(opencl_dev *dev)
{
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&dev->ledgers_lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
}

cek_status cek__opencl_device_open(cek_instance *head, uint32_t index, const cek_device_options *options, cek_dev **out)
{
    const found_device *found = NULL;
    cl_int error;
    *out = NULL;
    cek_status st = cek__opencl_found(head, "device_open", index, &found);
    if (st)
        return st;
    opencl_dev *dev = calloc(1, sizeof *dev);
    if (!dev)
        return cek__host_fail(&head->host, CEK_OUT_OF_MEMORY, "device_open: no memory for the handle");
    st = cek__gpu_device_init(&dev->head, head, &cek__opencl_driver, index, options);
    if (st) {
        free(dev);
        return st;
    }
    pthread_mutex_init(&dev->programs_lock, NULL);
    pthread_mutex_init(&dev->stage_lock, NULL);
    pthread_mutex_init(&dev->own_lock, NULL);
    ledgers_lock_init(dev);
    dev->platform = found->platform;
    dev->id = found->id;
    const cl_context_properties properties[] = { CL_CONTEXT_PLATFORM, (cl_context_properties)found->platform, 0 };
    dev->context = clCreateContext(properties, 1, &dev->id, NULL, NULL, &error);
    if (!dev->context) {
        st = cek__opencl_fail(dev, "device_open", "clCreateContext", error);
        cek__opencl_device_close(&dev->head);
        return st;
    }
    traits_read(dev, found);
    cek__opencl_recorder_find(dev);
    *out = &dev->head;
    return CEK_OK;
}

/* On a lost device the driver may wait for ever: what it still holds is left to it. */
void cek__opencl_device_close(cek_dev *head)
{
    opencl_dev *dev = (opencl_dev *)head;
    if (!dev)
        return;
    cek__opencl_pinned_free(dev);
    cek__opencl_queue_destroy(dev->own);
    cek__opencl_programs_free(dev);
    cek__clblast_device_close(dev);
    if (dev->context && !cek__latched(&head->lost))
        clReleaseContext(dev->context);
    pthread_mutex_destroy(&dev->programs_lock);
    pthread_mutex_destroy(&dev->stage_lock);
    pthread_mutex_destroy(&dev->own_lock);
    pthread_mutex_destroy(&dev->ledgers_lock);
    cek__gpu_device_fini(head);
    free(dev);
}

cek_status cek__opencl_device_memory(cek_dev *head, uint64_t *free_bytes, uint64_t *total_bytes)
{
    opencl_dev *dev = (opencl_dev *)head;
    *free_bytes = *total_bytes = CEK_UNKNOWN;
    cek_status st = cek__gpu_ready(head, "device_memory");
    if (!st)
        cek__opencl_memory_tell(&(found_device){ dev->platform, dev->id, false }, free_bytes, total_bytes);
    return st;
}

static const cek__gpu_provider *const providers[] = { &cek__clblast_provider, NULL };

const cek__gpu_driver cek__opencl_driver = {
    .providers = providers,
    .providers_option = "opencl_providers",
    .pools_option = "opencl_pools",
    .cache_option = "opencl_cache",
    .kernel_load = cek__opencl_kernel_load,
    .kernel_free = cek__opencl_kernel_free,
    .kernel_group = cek__opencl_kernel_group,
    .kernel_warm = cek__opencl_kernel_warm,
    .launch = cek__opencl_launch,
    .queue_ready = cek__opencl_queue_ready,
    .queue_dev = cek__opencl_queue_dev,
    .queue_fail = cek__opencl_queue_fail,
    .mem_alloc = cek__opencl_mem_alloc,
    .mem_free = cek__opencl_mem_free,
    .queue_create = cek__opencl_queue_create,
    .queue_destroy = cek__opencl_queue_destroy,
    .queue_sync = cek__opencl_queue_sync,
    .fill = cek__opencl_fill,
    .download = cek__opencl_download,
};
