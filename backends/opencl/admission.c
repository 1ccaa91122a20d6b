/* SPDX-License-Identifier: MIT
 *
 * admission.c - which devices join a job by themselves: those that can do the work, each processor once.
 *
 * A driver lists what is plugged in, not what it can compile for. Whatever is left out here can still be named; then
 * its driver's own error says what is wrong.
 */
#include <stdio.h>
#include <string.h>

#include "backends/opencl/opencl.h"

/* "OpenCL 1.2 ...", "OpenCL C 1.2 ...": 12; 0 where it is something else. */
static unsigned version_read(cl_device_id id, cl_device_info what, const char *format)
{
    char text[128];
    unsigned major = 0, minor = 0;
    cek__opencl_text(id, what, text, sizeof text);
    return sscanf(text, format, &major, &minor) == 2 ? 10 * major + minor : 0;
}

/* Whether it lacks what every operation needs. */
static bool lacks(cl_device_id id, char *why, uint64_t cap)
{
    cl_bool there = CL_TRUE, compiler = CL_TRUE;
    size_t arguments = 0;
    const unsigned device = version_read(id, CL_DEVICE_VERSION, "OpenCL %u.%u");
    const unsigned language = version_read(id, CL_DEVICE_OPENCL_C_VERSION, "OpenCL C %u.%u");
    clGetDeviceInfo(id, CL_DEVICE_AVAILABLE, sizeof there, &there, NULL);
    clGetDeviceInfo(id, CL_DEVICE_COMPILER_AVAILABLE, sizeof compiler, &compiler, NULL);
    clGetDeviceInfo(id, CL_DEVICE_MAX_PARAMETER_SIZE, sizeof arguments, &arguments, NULL);
    if (!there)
        snprintf(why, cap, "its driver says that it is not available");
    else if (!compiler)
        snprintf(why, cap, "its driver has no compiler");
    else if (device < 12 || language < 12)
        snprintf(why, cap, "it knows OpenCL %u.%u and OpenCL C %u.%u, and 1.2 is needed", device / 10, device % 10,
                 language / 10, language % 10);
    else if (arguments < cek__gpu_arguments_most)
        snprintf(why, cap, "a kernel takes %zu bytes of arguments, and %u are needed", arguments,
                 cek__gpu_arguments_most);
    else
        return false;
    return true;
}

static bool is_processor(const found_device *found)
{
    return cek__opencl_is_cpu(found->id) && !cek__opencl_is_simulator(found->platform);
}

/* Whether `own` is the card that `other`, of another platform, drives too and better or earlier (`before`). Where a
 * driver does not say where its card sits (Mesa's Clover), the vendor's number must do: a card that cannot be told
 * from another driver's is taken for that. */
static bool is_same_card(const found_device *own, const found_device *other, bool before)
{
    cek__opencl_card a, b;
    const bool a_known = cek__opencl_place(own->id, &a), b_known = cek__opencl_place(other->id, &b);
    if (a_known && b_known)
        return before && a.bus == b.bus && a.slot == b.slot && a.function == b.function &&
               (a.domain == b.domain || a.domain < 0 || b.domain < 0);
    if (a_known)
        return false;
    return (b_known || before) &&
           cek__opencl_number(own->id, CL_DEVICE_VENDOR_ID) == cek__opencl_number(other->id, CL_DEVICE_VENDOR_ID);
}

/* Two drivers may reach one processor or card. The index of the other one's view of it, or -1. */
static int64_t first_view(const opencl_instance *instance, const found_device *found)
{
    char why[128];
    for (uint32_t i = 0; i < instance->count; i++) {
        const found_device *other = &instance->devices[i];
        if (other->platform == found->platform || cek__opencl_is_simulator(other->platform) ||
            lacks(other->id, why, sizeof why))
            continue;
        if (is_processor(found) != is_processor(other))
            continue;
        if (is_processor(found) ? other < found : is_same_card(found, other, other < found))
            return i;
    }
    return -1;
}

bool cek__opencl_joins(const opencl_instance *instance, const found_device *found, char *why, uint64_t cap)
{
    int64_t first = -1;
    *why = 0;
    if (lacks(found->id, why, cap))
        return false;
    if (cek__opencl_is_simulator(found->platform))
        snprintf(why, cap, "it is a simulator");
    else if ((first = first_view(instance, found)) >= 0)
        snprintf(why, cap, "opencl:%u is the same, through another driver", (uint32_t)first);
    return !*why;
}
