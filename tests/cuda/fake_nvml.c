/* SPDX-License-Identifier: MIT
 *
 * fake_nvml.c - an NVML for machines without a GPU: the cards of the fake driver, in another order than its own, as
 * CUDA_VISIBLE_DEVICES makes it, and one more that is hidden from it.
 *
 * It ends a program that asks before it has begun, or after it has ended, and one that gives it what is no device of
 * its. FAKE_NVML=refuses: no question is supported; lost: the card fell off the bus; parts: it knows the cards by
 * other UUIDs, as where they are divided; init: it does not begin. Built with FAKE_NVML_OLD it lacks what an old
 * driver's library does.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/nvml.h"
#include "tests/cuda/fake.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* of functions that are found by name alone */

struct nvmlDevice_st {
    char uuid; /* each byte of it */
    unsigned percent, celsius, milliwatts, megahertz;
    unsigned long long used, reasons;
};

static struct nvmlDevice_st cards[] = {
    { 0x7f, 1, 2, 3, 4, 5, 0 },
    { 0x41, 0, 31, 68250, 345, 1ull << 30, 1 }, /* idle, which is no throttling */
    { 0x40, 87, 74, 612500, 1755, 70ull << 30, nvmlClocksThrottleReasonSwPowerCap },
};
static atomic_int begun, ever;

static bool is(const char *way)
{
    const char *set = getenv("FAKE_NVML");
    return set && !strcmp(set, way);
}

static void used(const struct nvmlDevice_st *device)
{
    if (begun < 1 || (device && (device < cards || device > cards + 2))) {
        fprintf(stderr, "fake NVML: %s\n", begun < 1 ? "not begun, or ended" : "no device of its");
        abort();
    }
}

/* How often it was begun, and how often it was not ended. */
FAKE_API void fake_nvml_begun(int *all, int *left)
{
    *all = ever;
    *left = begun;
}

FAKE_API nvmlReturn_t nvmlInit_v2(void)
{
    if (is("init"))
        return 9; /* no driver */
    atomic_fetch_add(&begun, 1);
    atomic_fetch_add(&ever, 1);
    return NVML_SUCCESS;
}

FAKE_API nvmlReturn_t nvmlShutdown(void)
{
    used(NULL);
    atomic_fetch_sub(&begun, 1);
    return NVML_SUCCESS;
}

FAKE_API nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    used(NULL);
    for (size_t i = 0; i < sizeof cards / sizeof *cards; i++) {
        char text[48], *at = text + sprintf(text, is("parts") ? "MIG-" : "GPU-");
        for (int b = 0; b < 16; b++)
            at += sprintf(at, "%s%02x", b == 4 || b == 6 || b == 8 || b == 10 ? "-" : "", cards[i].uuid);
        if (!strcmp(text, uuid)) {
            *device = &cards[i];
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

/* What every question begins with. */
#define QUESTION(device)                                                                                       \
    do {                                                                                                       \
        used(device);                                                                                          \
        if (is("refuses") || is("lost"))                                                                       \
            return is("lost") ? (nvmlReturn_t)NVML_ERROR_GPU_IS_LOST : (nvmlReturn_t)NVML_ERROR_NOT_SUPPORTED; \
    } while (0)

FAKE_API nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *rates)
{
    QUESTION(device);
    *rates = (nvmlUtilization_t){ .gpu = device->percent, .memory = 99 };
    return NVML_SUCCESS;
}

FAKE_API nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t which, unsigned *celsius)
{
    QUESTION(device);
    *celsius = device->celsius;
    return which == NVML_TEMPERATURE_GPU ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

FAKE_API nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t which, unsigned *megahertz)
{
    QUESTION(device);
    *megahertz = device->megahertz;
    return which == NVML_CLOCK_SM ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

FAKE_API nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    QUESTION(device);
    *memory = (nvmlMemory_t){ .total = 80ull << 30, .used = device->used, .free = (80ull << 30) - device->used };
    return NVML_SUCCESS;
}

#ifndef FAKE_NVML_OLD
FAKE_API nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned *milliwatts)
{
    QUESTION(device);
    *milliwatts = device->milliwatts;
    return NVML_SUCCESS;
}

FAKE_API nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device, unsigned long long *reasons)
{
    QUESTION(device);
    *reasons = device->reasons;
    return NVML_SUCCESS;
}
#endif
