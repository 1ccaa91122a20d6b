/* SPDX-License-Identifier: MIT
 *
 * fake_loader.c - a libcuda.so.1 that does nothing but say yes: what the real cuDNN compiles at run time it can
 * load, never run.
 * With it cudnn_plans.c sees plans that need a driver.
 */
#include <stddef.h>

#include "tests/cuda/fake.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* of functions that are found by name alone */

static int anything;

#define YES(NAME)           \
    FAKE_API int NAME(void) \
    {                       \
        return 0;           \
    }
/* clang-format off */
YES(cuCtxGetCurrent) YES(cuCtxGetLimit) YES(cuCtxPopCurrent) YES(cuCtxPushCurrent) YES(cuDeviceGet)
YES(cuDeviceGetCount)
YES(cuDriverGetVersion) YES(cuFuncSetAttribute) YES(cuGetErrorName) YES(cuGetErrorString) YES(cuKernelSetAttribute)
YES(cuLaunchCooperativeKernel) YES(cuLaunchKernel) YES(cuLaunchKernelEx) YES(cuLibraryLoadFromFile) YES(cuLibraryUnload)
YES(cuLinkAddData) YES(cuLinkComplete) YES(cuLinkCreate) YES(cuLinkDestroy) YES(cuOccupancyMaxPotentialClusterSize)
YES(cuStreamGetCtx)
    /* clang-format on */

    FAKE_API int cuLibraryLoadData(void **library, const void *code)
{
    (void)code;
    *library = &anything;
    return 0;
}

FAKE_API int cuLibraryGetKernel(void **kernel, void *library, const char *name)
{
    (void)library, (void)name;
    *kernel = &anything;
    return 0;
}

FAKE_API int cuLibraryGetModule(void **module, void *library)
{
    (void)library;
    *module = &anything;
    return 0;
}

FAKE_API int cuKernelGetFunction(void **function, void *kernel)
{
    (void)kernel;
    *function = &anything;
    return 0;
}

FAKE_API int cuKernelGetAttribute(int *value, int what, void *kernel, int device)
{
    (void)what, (void)kernel, (void)device;
    *value = 0;
    return 0;
}

FAKE_API int cuFuncGetAttribute(int *value, int what, void *function)
{
    (void)what, (void)function;
    *value = 0;
    return 0;
}
