/* SPDX-License-Identifier: MIT
 *
 * device.c - which devices there are, in the order of clinfo: platform by platform, as the ICD loader lists them.
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

#include "backends/common/growth.h"
#include "backends/common/hash.h"
#include "backends/gpu/providers.h"
#include "backends/host/pages.h"
#include "backends/opencl/opencl.h"

const char cek__opencl_build[] = __VERSION__;

#define PLATFORMS_MAX 64
#define DEVICES_MAX 256 /* of one platform */
#define SPLIT_MAX 64

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

static void text_read(cl_device_id id, cl_device_info what, char *to, uint64_t cap)
{
    char text[1024] = "";
    if (clGetDeviceInfo(id, what, sizeof text - 1, text, NULL))
        *text = 0;
    const char *from = text + strspn(text, " "); /* some drivers indent */
    snprintf(to, cap, "%s", from);
    for (size_t end = strlen(to); end && to[end - 1] == ' '; end--)
        to[end - 1] = 0;
}

static uint32_t number_read(cl_device_id id, cl_device_info what)
{
    cl_uint number = 0;
    return clGetDeviceInfo(id, what, sizeof number, &number, NULL) ? 0 : number;
}

static uint64_t long_read(cl_device_id id, cl_device_info what)
{
    cl_ulong number = 0;
    return clGetDeviceInfo(id, what, sizeof number, &number, NULL) ? 0 : number;
}

static bool keeps_denormals(cl_device_id id)
{
    cl_device_fp_config config = 0;
    return !clGetDeviceInfo(id, CL_DEVICE_SINGLE_FP_CONFIG, sizeof config, &config, NULL) && config & CL_FP_DENORM;
}

/* N parts as equal as can be. */
static cek_status device_split(opencl_instance *instance, cl_platform_id platform, cl_device_id id, uint32_t parts)
{
    cl_device_partition_property by_counts[SPLIT_MAX + 3] = { CL_DEVICE_PARTITION_BY_COUNTS };
    cl_device_id made[SPLIT_MAX];
    char name[128];
    uint32_t units = number_read(id, CL_DEVICE_MAX_COMPUTE_UNITS);
    cl_uint count = 0;
    for (uint32_t i = 0; i < parts; i++)
        by_counts[i + 1] = units / parts + (i < units % parts);
    by_counts[parts + 1] = CL_DEVICE_PARTITION_BY_COUNTS_LIST_END;
    cl_int error = units < parts ? CL_INVALID_DEVICE_PARTITION_COUNT
                                 : clCreateSubDevices(id, by_counts, parts, made, &count);
    if (error || count != parts) {
        text_read(id, CL_DEVICE_NAME, name, sizeof name);
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

/* --- what is told of them --------------------------------------------------------------------- */

static bool is_cpu(cl_device_id id)
{
    cl_device_type type = 0;
    return !clGetDeviceInfo(id, CL_DEVICE_TYPE, sizeof type, &type, NULL) && type & CL_DEVICE_TYPE_CPU &&
           !(type & CL_DEVICE_TYPE_GPU);
}

static bool has_extension(cl_device_id id, const char *name)
{
    size_t bytes = 0;
    if (clGetDeviceInfo(id, CL_DEVICE_EXTENSIONS, 0, NULL, &bytes) || !bytes)
        return false;
    char *all = calloc(1, bytes + 1);
    bool found = all && !clGetDeviceInfo(id, CL_DEVICE_EXTENSIONS, bytes, all, NULL) && strstr(all, name);
    free(all);
    return found;
}

/* A simulator that looks for mistakes: nobody wants to train on it unasked. */
static bool is_simulator(cl_platform_id platform)
{
    char name[128] = "";
    clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof name - 1, name, NULL);
    return strstr(name, "Oclgrind") || strstr(name, "oclgrind");
}

#ifndef CL_DEVICE_PCI_BUS_INFO_KHR
#define CL_DEVICE_PCI_BUS_INFO_KHR 0x410F
#endif
#ifndef CL_DEVICE_UUID_KHR
#define CL_DEVICE_UUID_KHR 0x106A
#endif

/* Where the card sits, by the extensions of Khronos, NVIDIA and AMD. False: nobody tells. */
static bool pci_read(cl_device_id id, char *to, uint64_t cap)
{
    cl_uint khr[4];
    struct {
        cl_uint type;
        cl_char unused[17];
        cl_char bus, device, function;
    } amd; /* cl_device_topology_amd */
    if (has_extension(id, "cl_khr_pci_bus_info") &&
        !clGetDeviceInfo(id, CL_DEVICE_PCI_BUS_INFO_KHR, sizeof khr, khr, NULL)) {
        snprintf(to, cap, "%04x:%02x:%02x.%x", khr[0] & 0xffff, khr[1] & 0xff, khr[2] & 0xff, khr[3] & 0xf);
        return true;
    }
    if (has_extension(id, "cl_nv_device_attribute_query")) {
        uint32_t bus = number_read(id, 0x4008), slot = number_read(id, 0x4009), domain = number_read(id, 0x400A);
        snprintf(to, cap, "%04x:%02x:%02x.%x", domain & 0xffff, bus & 0xff, slot >> 3 & 0x1f, slot & 7);
        return true;
    }
    if (has_extension(id, "cl_amd_device_attribute_query") && !clGetDeviceInfo(id, 0x4037, sizeof amd, &amd, NULL)) {
        snprintf(to, cap, "0000:%02x:%02x.%x", amd.bus & 0xff, amd.device & 0xff, amd.function & 0xf);
        return true;
    }
    return false;
}

/* The processors' names that OpenCL and compilers give differ from driver to driver: all texts count. */
static uint64_t numeric_id(const found_device *found)
{
    static const cl_device_info texts[] = { CL_DEVICE_NAME, CL_DEVICE_VENDOR, CL_DEVICE_VERSION, CL_DRIVER_VERSION };
    char text[1024] = "";
    uint64_t hash = cek__hash_text(CEK__HASH_START, "opencl " PACKAGE_VERSION);
    clGetPlatformInfo(found->platform, CL_PLATFORM_VERSION, sizeof text - 1, text, NULL);
    hash = cek__hash_text(hash, text);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        text_read(found->id, texts[i], text, sizeof text);
        hash = cek__hash_text(hash, text);
    }
    return hash;
}

static void memory_tell(const found_device *found, uint64_t *free_bytes, uint64_t *total_bytes)
{
    uint64_t device_bytes = long_read(found->id, CL_DEVICE_GLOBAL_MEM_SIZE);
    *free_bytes = CEK_UNKNOWN;
    *total_bytes = device_bytes ? device_bytes : CEK_UNKNOWN;
    if (is_cpu(found->id)) {
        uint64_t host_total;
        cek__host_memory(free_bytes, &host_total);
        if (*free_bytes != CEK_UNKNOWN && *free_bytes > *total_bytes)
            *free_bytes = *total_bytes;
        return;
    }
    size_t amd_kilobytes[2] = { 0 };
    if (has_extension(found->id, "cl_amd_device_attribute_query") &&
        !clGetDeviceInfo(found->id, 0x4039, sizeof amd_kilobytes, amd_kilobytes, NULL))
        *free_bytes = (uint64_t)amd_kilobytes[0] * 1024;
}

    .kernel_group = cek__opencl_kernel_group,
/* Two drivers may reach one card: the later one's view joins only when it is named. */
static bool is_second_view(const opencl_instance *instance, const found_device *found)
{
    char own[16], other[16];
    if (is_cpu(found->id) || !pci_read(found->id, own, sizeof own))
        return false;
    for (const found_device *at = instance->devices; at < found; at++)
        if (at->platform != found->platform && !is_cpu(at->id) && pci_read(at->id, other, sizeof other) &&
            !strcmp(own, other))
            return true;
    return false;
}

static cek_status found_get(cek_instance *head, const char *call, uint32_t index, const found_device **out)
{
    opencl_instance *instance = (opencl_instance *)head;
    if (index >= instance->count)
        return cek__host_fail(&head->host, CEK_INVALID, "%s: device %u, there are %u", call, index, instance->count);
    *out = &instance->devices[index];
    return CEK_OK;
}

cek_status cek__opencl_device_info(cek_instance *head, uint32_t index, cek_device_info *info)
{
    const found_device *found = NULL;
    cek_device_info full = { .size = sizeof full };
    char version[128], driver[64];
    cl_device_type type = 0;
    cek_status st = found_get(head, "device_info", index, &found);
    if (st)
        return st;
    clGetDeviceInfo(found->id, CL_DEVICE_TYPE, sizeof type, &type, NULL);
    bool simulator = is_simulator(found->platform), cpu = is_cpu(found->id);
    full.kind = cpu ? CEK_KIND_CPU : type & CL_DEVICE_TYPE_GPU ? CEK_KIND_GPU : CEK_KIND_ACCELERATOR;
    full.flags = (cpu ? CEK_DEVICE_UNIFIED_MEMORY : 0) |
                 (keeps_denormals(found->id) ? 0 : CEK_DEVICE_FLUSHES_DENORMALS) |
                 (simulator || is_second_view((opencl_instance *)head, found) ? CEK_DEVICE_ONLY_WHEN_NAMED : 0);
    full.compute_units = number_read(found->id, CL_DEVICE_MAX_COMPUTE_UNITS);
    memory_tell(found, &full.free_bytes, &full.total_bytes);
    full.max_alloc_bytes = long_read(found->id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    full.types = 1u << CEK_F32 | 1u << CEK_F16 | 1u << CEK_BF16 | 1u << CEK_U8 | 1u << CEK_I32;
    full.numeric_id = numeric_id(found);
    text_read(found->id, CL_DEVICE_NAME, full.name, sizeof full.name);
    text_read(found->id, CL_DEVICE_VENDOR, full.vendor, sizeof full.vendor);
    text_read(found->id, CL_DEVICE_VERSION, version, sizeof version);
    text_read(found->id, CL_DRIVER_VERSION, driver, sizeof driver);
    snprintf(full.driver, sizeof full.driver, "%.40s, %.50s", driver, version);
    cek__gpu_versions(head, &cek__opencl_driver, full.driver, sizeof full.driver);
    if (simulator)
        snprintf(full.processor, sizeof full.processor, "simulated");
    else if (cpu)
        snprintf(full.processor, sizeof full.processor, "cpu");
    else if (pci_read(found->id, full.pci, sizeof full.pci))
        snprintf(full.processor, sizeof full.processor, "pci:%s", full.pci);
    else
        snprintf(full.processor, sizeof full.processor, "opencl:%u %.40s", index, full.name);
    if (has_extension(found->id, "cl_khr_device_uuid"))
        clGetDeviceInfo(found->id, CL_DEVICE_UUID_KHR, sizeof full.uuid, full.uuid, NULL);
    return cek__struct_out(&head->host, "device_info", info, &full, sizeof full);
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

static void traits_read(opencl_dev *dev, const found_device *found)
{
    size_t group = 0;
    cl_device_svm_capabilities svm = 0;
    cek__gpu_traits *traits = &dev->head.traits;
    clGetDeviceInfo(dev->id, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof group, &group, NULL);
    traits->compute_units = number_read(dev->id, CL_DEVICE_MAX_COMPUTE_UNITS);
    traits->max_group = (uint32_t)group;
    traits->local_bytes = long_read(dev->id, CL_DEVICE_LOCAL_MEM_SIZE);
    traits->numeric_id = numeric_id(found);
    dev->host_memory = is_cpu(dev->id) || is_simulator(dev->platform);
    if (is_cpu(dev->id) && !is_simulator(dev->platform)) {
        /* The width that the compiler vectorises for; some drivers call 0 what they do not say. */
        uint32_t width = number_read(dev->id, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT);
        traits->vector_width = width ? width : 4;
    }
    if (clGetDeviceInfo(dev->id, CL_DEVICE_SVM_CAPABILITIES, sizeof svm, &svm, NULL))
        svm = 0; /* OpenCL 1.x */
    dev->fine_grained = dev->host_memory && svm & CL_DEVICE_SVM_FINE_GRAIN_BUFFER;
    dev->max_alloc_bytes = long_read(dev->id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
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
    cek_status st = found_get(head, "device_open", index, &found);
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
    *out = &dev->head;
    return CEK_OK;
}

/* On a lost device the driver may wait for ever: what it still holds is left to it. */
void cek__opencl_device_close(cek_dev *head)
{
    opencl_dev *dev = (opencl_dev *)head;
    if (!dev)
        return;
    cek__opencl_programs_free(dev);
    cek__opencl_pinned_free(dev);
    if (dev->context && !cek__latched(&head->lost)) {
        cek__clblast_device_close(dev);
        clReleaseContext(dev->context);
    }
    pthread_mutex_destroy(&dev->programs_lock);
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
        memory_tell(&(found_device){ dev->platform, dev->id, false }, free_bytes, total_bytes);
    return st;
}

static const cek__gpu_provider *const providers[] = { &cek__clblast_provider, NULL };

const cek__gpu_driver cek__opencl_driver = {
    .providers = providers,
    .providers_option = "opencl_providers",
    .cache_option = "opencl_cache",
    .kernel_load = cek__opencl_kernel_load,
    .kernel_free = cek__opencl_kernel_free,
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
