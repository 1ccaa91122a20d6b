/* SPDX-License-Identifier: MIT
 *
 * info.c - what is told of a device: the driver's words, and where in the machine it sits.
 *
 * Knows nothing of open devices. Whether one joins a job by itself is admission.c's.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/common/growth.h"
#include "backends/common/hash.h"
#include "backends/gpu/providers.h"
#include "backends/host/pages.h"
#include "backends/opencl/opencl.h"
#include "backends/opencl/pci.h"

#ifndef CL_DEVICE_PCI_BUS_INFO_KHR
#define CL_DEVICE_PCI_BUS_INFO_KHR 0x410F
#endif
#ifndef CL_DEVICE_UUID_KHR
#define CL_DEVICE_UUID_KHR 0x106A
#endif

/* --- the driver's words ----------------------------------------------------------------------- */

void cek__opencl_text(cl_device_id id, cl_device_info what, char *to, uint64_t cap)
{
    char text[1024] = "";
    if (clGetDeviceInfo(id, what, sizeof text - 1, text, NULL))
        *text = 0;
    const char *from = text + strspn(text, " "); /* some drivers indent */
    snprintf(to, cap, "%s", from);
    for (size_t end = strlen(to); end && to[end - 1] == ' '; end--)
        to[end - 1] = 0;
}

uint32_t cek__opencl_number(cl_device_id id, cl_device_info what)
{
    cl_uint number = 0;
    return clGetDeviceInfo(id, what, sizeof number, &number, NULL) ? 0 : number;
}

uint64_t cek__opencl_long(cl_device_id id, cl_device_info what)
{
    cl_ulong number = 0;
    return clGetDeviceInfo(id, what, sizeof number, &number, NULL) ? 0 : number;
}

uint64_t cek__opencl_max_alloc(cl_device_id id)
{
    const uint64_t bytes = cek__opencl_long(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    return bytes ? bytes : CEK_UNKNOWN;
}

static bool keeps_denormals(cl_device_id id)
{
    cl_device_fp_config config = 0;
    return !clGetDeviceInfo(id, CL_DEVICE_SINGLE_FP_CONFIG, sizeof config, &config, NULL) && config & CL_FP_DENORM;
}

bool cek__opencl_has(cl_device_id id, const char *name)
{
    size_t bytes = 0;
    if (clGetDeviceInfo(id, CL_DEVICE_EXTENSIONS, 0, NULL, &bytes) || !bytes)
        return false;
    char *all = calloc(1, bytes + 1);
    bool found = all && !clGetDeviceInfo(id, CL_DEVICE_EXTENSIONS, bytes, all, NULL) && strstr(all, name);
    free(all);
    return found;
}

bool cek__opencl_is_cpu(cl_device_id id)
{
    cl_device_type type = 0;
    return !clGetDeviceInfo(id, CL_DEVICE_TYPE, sizeof type, &type, NULL) && type & CL_DEVICE_TYPE_CPU &&
           !(type & CL_DEVICE_TYPE_GPU);
}

/* A simulator that looks for mistakes: nobody wants to train on it unasked. */
bool cek__opencl_is_simulator(cl_platform_id platform)
{
    char name[128] = "";
    clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof name - 1, name, NULL);
    return strstr(name, "Oclgrind") || strstr(name, "oclgrind");
}

bool cek__opencl_in_host_memory(const found_device *found)
{
    return cek__opencl_is_cpu(found->id) || cek__opencl_is_simulator(found->platform) ||
           cek__opencl_number(found->id, CL_DEVICE_HOST_UNIFIED_MEMORY);
}

bool cek__opencl_shares_memory(const found_device *found)
{
    cl_device_svm_capabilities svm = 0;
    if (clGetDeviceInfo(found->id, CL_DEVICE_SVM_CAPABILITIES, sizeof svm, &svm, NULL))
        return false; /* OpenCL 1.x */
    return cek__opencl_in_host_memory(found) && svm & CL_DEVICE_SVM_FINE_GRAIN_BUFFER;
}

/* --- where a card sits ------------------------------------------------------------------------ */

/* By the extensions of Khronos, NVIDIA and AMD. AMD's has no domain: the system knows. */
bool cek__opencl_place(cl_device_id id, cek__opencl_card *to)
{
    cl_uint khr[4];
    struct {
        cl_uint type;
        cl_char unused[17];
        cl_char bus, device, function;
    } amd; /* cl_device_topology_amd */
    if (cek__opencl_has(id, "cl_khr_pci_bus_info") &&
        !clGetDeviceInfo(id, CL_DEVICE_PCI_BUS_INFO_KHR, sizeof khr, khr, NULL)) {
        *to = (cek__opencl_card){ (int)(khr[0] & 0xffff), khr[1] & 0xff, khr[2] & 0xff, khr[3] & 0xf };
        return true;
    }
    if (cek__opencl_has(id, "cl_nv_device_attribute_query")) {
        uint32_t bus = cek__opencl_number(id, 0x4008), slot = cek__opencl_number(id, 0x4009);
        *to = (cek__opencl_card){ (int)(cek__opencl_number(id, 0x400A) & 0xffff), bus & 0xff, slot >> 3 & 0x1f,
                                  slot & 7 };
        return true;
    }
    if (cek__opencl_has(id, "cl_amd_device_attribute_query") && !clGetDeviceInfo(id, 0x4037, sizeof amd, &amd, NULL)) {
        *to = (cek__opencl_card){ -1, amd.bus & 0xff, amd.device & 0xff, amd.function & 0xf };
        to->domain = cek__pci_domain("/sys/bus/pci/devices", to->bus, to->slot, to->function,
                                     cek__opencl_number(id, CL_DEVICE_VENDOR_ID));
        return true;
    }
    return false;
}

void cek__opencl_place_text(const cek__opencl_card *card, char *to, uint64_t cap)
{
    snprintf(to, cap, "%04x:%02x:%02x.%x", card->domain < 0 ? 0 : (unsigned)card->domain & 0xfffff, card->bus & 0xff,
             card->slot & 0x1f, card->function & 7);
}

/* --- device_info ------------------------------------------------------------------------------ */

/* The processors' names that OpenCL and compilers give differ from driver to driver: all texts count. */
uint64_t cek__opencl_numeric_id_with(const found_device *found, const char *algorithms)
{
    static const cl_device_info texts[] = { CL_DEVICE_NAME, CL_DEVICE_VENDOR, CL_DEVICE_VERSION, CL_DRIVER_VERSION };
    char text[1024] = "", build[80];
    snprintf(build, sizeof build, "opencl " PACKAGE_VERSION " %s", algorithms);
    uint64_t hash = cek__hash_text(CEK__HASH_START, build);
    clGetPlatformInfo(found->platform, CL_PLATFORM_VERSION, sizeof text - 1, text, NULL);
    hash = cek__hash_text(hash, text);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        cek__opencl_text(found->id, texts[i], text, sizeof text);
        hash = cek__hash_text(hash, text);
    }
    return hash;
}

uint64_t cek__opencl_numeric_id(const found_device *found)
{
    return cek__opencl_numeric_id_with(found, CEK__GPU_ALGORITHMS);
}

void cek__opencl_memory_tell(const found_device *found, uint64_t *free_bytes, uint64_t *total_bytes)
{
    uint64_t device_bytes = cek__opencl_long(found->id, CL_DEVICE_GLOBAL_MEM_SIZE);
    *free_bytes = CEK_UNKNOWN;
    *total_bytes = device_bytes ? device_bytes : CEK_UNKNOWN;
    if (cek__opencl_in_host_memory(found)) {
        uint64_t host_total;
        cek__host_memory(free_bytes, &host_total);
        if (*free_bytes != CEK_UNKNOWN && *free_bytes > *total_bytes)
            *free_bytes = *total_bytes;
        return;
    }
    size_t amd_kilobytes[2] = { 0 };
    if (cek__opencl_has(found->id, "cl_amd_device_attribute_query") &&
        !clGetDeviceInfo(found->id, 0x4039, sizeof amd_kilobytes, amd_kilobytes, NULL))
        *free_bytes = (uint64_t)amd_kilobytes[0] * 1024;
}

cek_status cek__opencl_found(cek_instance *head, const char *call, uint32_t index, const found_device **out)
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
    cek__opencl_card place;
    cek_status st = cek__opencl_found(head, "device_info", index, &found);
    if (st)
        return st;
    clGetDeviceInfo(found->id, CL_DEVICE_TYPE, sizeof type, &type, NULL);
    bool simulator = cek__opencl_is_simulator(found->platform), cpu = cek__opencl_is_cpu(found->id);
    full.kind = cpu ? CEK_KIND_CPU : type & CL_DEVICE_TYPE_GPU ? CEK_KIND_GPU : CEK_KIND_ACCELERATOR;
    full.flags = (cek__opencl_shares_memory(found) ? CEK_DEVICE_UNIFIED_MEMORY : 0) |
                 (keeps_denormals(found->id) ? 0 : CEK_DEVICE_FLUSHES_DENORMALS) |
                 (cek__opencl_joins((opencl_instance *)head, found, full.reason, sizeof full.reason)
                      ? 0
                      : CEK_DEVICE_ONLY_WHEN_NAMED);
    full.compute_units = cek__opencl_number(found->id, CL_DEVICE_MAX_COMPUTE_UNITS);
    cek__opencl_memory_tell(found, &full.free_bytes, &full.total_bytes);
    full.max_alloc_bytes = cek__opencl_max_alloc(found->id);
    full.types = 1u << CEK_F32 | 1u << CEK_F16 | 1u << CEK_BF16 | 1u << CEK_U8 | 1u << CEK_I32;
    full.numeric_id = cek__opencl_numeric_id(found);
    cek__opencl_text(found->id, CL_DEVICE_NAME, full.name, sizeof full.name);
    cek__opencl_text(found->id, CL_DEVICE_VENDOR, full.vendor, sizeof full.vendor);
    cek__opencl_text(found->id, CL_DEVICE_VERSION, version, sizeof version);
    cek__opencl_text(found->id, CL_DRIVER_VERSION, driver, sizeof driver);
    snprintf(full.driver, sizeof full.driver, "%.40s, %.50s", driver, version);
    cek__gpu_versions(head, &cek__opencl_driver, full.driver, sizeof full.driver);
    if (simulator)
        snprintf(full.processor, sizeof full.processor, "simulated");
    else if (cpu)
        snprintf(full.processor, sizeof full.processor, "cpu");
    else if (cek__opencl_place(found->id, &place)) {
        cek__opencl_place_text(&place, full.pci, sizeof full.pci);
        snprintf(full.processor, sizeof full.processor, "pci:%s", full.pci);
    } else
        snprintf(full.processor, sizeof full.processor, "opencl:%u %.40s", index, full.name);
    if (cek__opencl_has(found->id, "cl_khr_device_uuid"))
        clGetDeviceInfo(found->id, CL_DEVICE_UUID_KHR, sizeof full.uuid, full.uuid, NULL);
    return cek__struct_out(&head->host, "device_info", info, &full, sizeof full);
}
