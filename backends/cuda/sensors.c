/* SPDX-License-Identifier: MIT
 *
 * sensors.c - load, heat, power, clock and memory of a GPU by NVML, the library below nvidia-smi.
 *
 * It is opened at the first question, never to start or to list devices. A device is found by its UUID: numbers are
 * NVML's own, whatever CUDA_VISIBLE_DEVICES says, and a part of a card (MIG) has a UUID that no GPU has, so that
 * nothing is told of it. What the library, the driver or the card does not tell is unknown, and no failure. Nothing is
 * locked while NVML is inside the driver: threads that come first together each begin it, and one is kept.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/common/growth.h"
#include "backends/cuda/cuda.h"
#include "backends/cuda/nvml.h"

struct cek__nvml {
    bool begun; /* false: there is none, which is not tried again */
#define MEMBER(NAME, NEEDED, PARAMETERS) nvmlReturn_t(*NAME) PARAMETERS;
    CEK__NVML_FUNCTIONS(MEMBER)
#undef MEMBER
    _Atomic(nvmlDevice_t) devices[]; /* of the instance, as they were found */
};

/* --- the library ------------------------------------------------------------------------------ */

/* The first name that is needed and missing, or NULL. */
static const char *functions_find(cek__nvml *nvml, void *library)
{
    const char *missing = NULL;
#define FIND(NAME, NEEDED, PARAMETERS)                    \
    *(void **)&nvml->NAME = dlsym(library, "nvml" #NAME); \
    missing = missing || nvml->NAME || !NEEDED ? missing : "nvml" #NAME;
    CEK__NVML_FUNCTIONS(FIND)
#undef FIND
    return missing;
}

static void library_begin(const cek_host *host, cek__nvml *nvml)
{
    static const char *const names[] = { "libnvidia-ml.so.1", NULL };
    char path[CEK__TEXT_BYTES];
    void *library = cek__cuda_library_open(host, names, path, sizeof path);
    const char *missing = library ? functions_find(nvml, library) : NULL;
    if (!library || missing) {
        cek__host_log(host, CEK_LOG_INFO, "no sensors: %s%s%s", path, missing ? " has no " : "",
                      missing ? missing : "");
        return;
    }
    const nvmlReturn_t error = nvml->Init_v2();
    nvml->begun = error == NVML_SUCCESS;
    if (nvml->begun)
        cek__host_log(host, CEK_LOG_INFO, "sensors: %s", path);
    else
        cek__host_log(host, CEK_LOG_WARN, "no sensors: %s: nvmlInit fails (%u)", path, error);
}

void cek__nvml_free(cek__nvml *nvml)
{
    if (nvml && nvml->begun)
        (void)nvml->Shutdown();
    free(nvml);
}

/* NULL: no memory. */
static cek__nvml *nvml_get(cuda_instance *instance)
{
    cek__nvml *there = atomic_load(&instance->nvml);
    if (there)
        return there;
    cek__nvml *nvml = calloc(1, sizeof *nvml + instance->count * sizeof *nvml->devices);
    if (!nvml)
        return NULL;
    library_begin(&instance->head.host, nvml);
    if (atomic_compare_exchange_strong(&instance->nvml, &there, nvml))
        return nvml;
    cek__nvml_free(nvml);
    return there;
}

/* --- the device ------------------------------------------------------------------------------- */

/* NULL where NVML knows none that is this one; *error says what it answered. */
static nvmlDevice_t device_find(cuda_instance *instance, cek__nvml *nvml, uint32_t index, nvmlReturn_t *error)
{
    nvmlDevice_t found = atomic_load(&nvml->devices[index]);
    char text[48] = "GPU-";
    CUdevice device;
    CUuuid uuid;
    if (found || instance->driver.cuDeviceGet(&device, (int)index) || instance->driver.cuDeviceGetUuid(&uuid, device))
        return found;
    for (int i = 0, at = 4; i < 16; i++)
        at += sprintf(text + at, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                      (unsigned char)uuid.bytes[i]);
    *error = nvml->DeviceGetHandleByUUID(text, &found);
    if (*error)
        return NULL;
    atomic_store(&nvml->devices[index], found);
    return found;
}

/* --- what it tells ---------------------------------------------------------------------------- */

#define THROTTLED                                                                                  \
    ((unsigned long long)nvmlClocksThrottleReasonSwPowerCap | nvmlClocksThrottleReasonHwSlowdown | \
     nvmlClocksThrottleReasonSwThermalSlowdown | nvmlClocksThrottleReasonHwThermalSlowdown |       \
     nvmlClocksThrottleReasonHwPowerBrakeSlowdown)

/* Whether a question was answered; that the card is gone stays in *lost. */
static bool answered(nvmlReturn_t error, bool *lost)
{
    *lost |= error == NVML_ERROR_GPU_IS_LOST;
    return error == NVML_SUCCESS;
}
#define ASK(FUNCTION, ...) (nvml->FUNCTION && answered(nvml->FUNCTION(device, __VA_ARGS__), lost))

static void sensors_read(const cek__nvml *nvml, nvmlDevice_t device, cek_device_sensors *to, bool *lost)
{
    nvmlUtilization_t rates;
    nvmlMemory_t memory;
    unsigned celsius, milliwatts, megahertz;
    unsigned long long reasons;
    if (ASK(DeviceGetUtilizationRates, &rates) && rates.gpu <= 100) {
        to->known |= CEK_SENSOR_UTILIZATION;
        to->utilization = rates.gpu / 100.0;
    }
    if (ASK(DeviceGetTemperature, NVML_TEMPERATURE_GPU, &celsius)) {
        to->known |= CEK_SENSOR_TEMPERATURE;
        to->celsius = celsius;
    }
    if (ASK(DeviceGetPowerUsage, &milliwatts)) {
        to->known |= CEK_SENSOR_POWER;
        to->watts = milliwatts / 1000.0;
    }
    if (ASK(DeviceGetClockInfo, NVML_CLOCK_SM, &megahertz)) {
        to->known |= CEK_SENSOR_CLOCK;
        to->hertz = megahertz * 1e6;
    }
    if (ASK(DeviceGetMemoryInfo, &memory) && memory.used <= memory.total) {
        to->known |= CEK_SENSOR_MEMORY;
        to->used_bytes = memory.used;
        to->total_bytes = memory.total;
    }
    if (ASK(DeviceGetCurrentClocksThrottleReasons, &reasons)) {
        to->known |= CEK_SENSOR_THROTTLED;
        to->throttled = (reasons & THROTTLED) != 0;
    }
}

cek_status cek__cuda_device_sensors(cek_instance *head, uint32_t index, cek_device_sensors *out)
{
    cuda_instance *instance = (cuda_instance *)head;
    cek_device_sensors full = { .size = sizeof full };
    nvmlReturn_t error = NVML_SUCCESS;
    bool lost = false;
    if (index >= instance->count)
        return cek__host_fail(&head->host, CEK_INVALID, "device_sensors: device %u, there are %u", index,
                              instance->count);
    cek__nvml *nvml = nvml_get(instance);
    if (!nvml)
        return cek__host_fail(&head->host, CEK_OUT_OF_MEMORY, "device_sensors: no memory for NVML's functions");
    nvmlDevice_t device = nvml->begun ? device_find(instance, nvml, index, &error) : NULL;
    (void)answered(error, &lost);
    if (device)
        sensors_read(nvml, device, &full, &lost);
    if (lost)
        return cek__host_fail(&head->host, CEK_DEVICE_LOST, "device_sensors: NVML: the GPU is lost");
    return cek__struct_out(&head->host, "device_sensors: out", out, &full, sizeof full);
}
