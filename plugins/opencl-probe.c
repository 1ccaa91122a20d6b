/* SPDX-License-Identifier: MIT
 *
 * opencl-probe.c - asks the installed OpenCL drivers for their devices, as opencl.so will: a process that may end in
 * that, as nobody else's should. Says so when it did not (backends/opencl/probe.c listens).
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <string.h>
#include <unistd.h>

#define PLATFORMS_MAX 64
#define DEVICES_MAX 256

int main(void)
{
    static const char good[] = "\nopencl-probe: devices listed\n";
    cl_platform_id platforms[PLATFORMS_MAX];
    cl_uint platform_count = 0;
    if (clGetPlatformIDs(PLATFORMS_MAX, platforms, &platform_count))
        platform_count = 0;
    for (cl_uint p = 0; p < platform_count && p < PLATFORMS_MAX; p++) {
        cl_device_id devices[DEVICES_MAX];
        cl_uint count;
        (void)clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, DEVICES_MAX, devices, &count);
    }
    /* At once: what drivers do when a process ends is another matter. */
    _exit(write(1, good, strlen(good)) == (ssize_t)strlen(good) ? 0 : 1);
}
