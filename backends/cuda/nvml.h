/* SPDX-License-Identifier: MIT
 *
 * nvml.h - the part of NVIDIA's management library that is used here, declared by hand: the plugin builds where no
 * toolkit is, and links nothing of it.
 *
 * A row of the table is the name behind "nvml", whether nothing can be told without it, and its parameters; all return
 * an nvmlReturn_t. tests/cuda/nvml_declarations.c holds this against NVIDIA's nvml.h where it is.
 */
#ifndef CEK_BACKENDS_CUDA_NVML_H
#define CEK_BACKENDS_CUDA_NVML_H

#include <stdint.h>

#ifndef NVML_API_VERSION /* else NVIDIA's header was here first: the test of these declarations */
typedef uint32_t nvmlReturn_t;
typedef uint32_t nvmlTemperatureSensors_t;
typedef uint32_t nvmlClockType_t;
typedef struct nvmlDevice_st *nvmlDevice_t;
typedef struct nvmlUtilization_st {
    unsigned int gpu, memory; /* percent of the time: any kernel ran; memory was read or written */
} nvmlUtilization_t;
typedef struct nvmlMemory_st {
    unsigned long long total, free, used; /* bytes; what the driver keeps for itself is used */
} nvmlMemory_t;
#endif

/* The constants that are used, with their values. */
/* clang-format off */
#define CEK__NVML_NUMBERS(ROW)                                                                               \
    ROW(NVML_SUCCESS, 0) ROW(NVML_ERROR_NOT_SUPPORTED, 3) ROW(NVML_ERROR_NOT_FOUND, 6)                       \
    ROW(NVML_ERROR_GPU_IS_LOST, 15) ROW(NVML_TEMPERATURE_GPU, 0) ROW(NVML_CLOCK_SM, 1)                       \
    ROW(nvmlClocksThrottleReasonSwPowerCap, 0x04) ROW(nvmlClocksThrottleReasonHwSlowdown, 0x08)              \
    ROW(nvmlClocksThrottleReasonSwThermalSlowdown, 0x20)                                                     \
    ROW(nvmlClocksThrottleReasonHwThermalSlowdown, 0x40) ROW(nvmlClocksThrottleReasonHwPowerBrakeSlowdown, 0x80)
/* clang-format on */

#ifndef NVML_API_VERSION
enum {
#define CEK__NVML_NUMBER(NAME, VALUE) NAME = VALUE,
    CEK__NVML_NUMBERS(CEK__NVML_NUMBER)
#undef CEK__NVML_NUMBER
};
#endif

#define CEK__NVML_FUNCTIONS(ROW)                                                                               \
    ROW(Init_v2, true, (void))                                                                                 \
    ROW(Shutdown, true, (void))                                                                                \
    ROW(DeviceGetHandleByUUID, true, (const char *uuid, nvmlDevice_t *device))                                 \
    ROW(DeviceGetUtilizationRates, false, (nvmlDevice_t device, nvmlUtilization_t * rates))                    \
    ROW(DeviceGetTemperature, false, (nvmlDevice_t device, nvmlTemperatureSensors_t which, unsigned *celsius)) \
    ROW(DeviceGetPowerUsage, false, (nvmlDevice_t device, unsigned *milliwatts))                               \
    ROW(DeviceGetClockInfo, false, (nvmlDevice_t device, nvmlClockType_t which, unsigned *megahertz))          \
    ROW(DeviceGetMemoryInfo, false, (nvmlDevice_t device, nvmlMemory_t * memory))                              \
    ROW(DeviceGetCurrentClocksThrottleReasons, false, (nvmlDevice_t device, unsigned long long *reasons))

#endif
