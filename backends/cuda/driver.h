/* SPDX-License-Identifier: MIT
 *
 * driver.h - the part of NVIDIA's driver API that is used here, declared by hand: the plugin builds
 * where no toolkit is, and links nothing of it.
 *
 * A row of the table is a function, the version of CUDA whose form of it is meant (cuGetProcAddress
 * gives that one, whatever the driver's age), and its parameters. tests/cuda/declarations.c holds
 * all this against NVIDIA's own headers where they are.
 */
#ifndef CEK_BACKENDS_CUDA_DRIVER_H
#define CEK_BACKENDS_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#ifndef CUDA_VERSION /* else cuda.h was here first: the test of these declarations */
typedef uint32_t CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef uint32_t CUdevice_attribute;
typedef uint32_t CUstreamCaptureMode;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUuuid_st {
    char bytes[16];
} CUuuid;

#endif

/* The constants that are used, with their values. */
/* clang-format off */
#define CEK__CUDA_NUMBERS(ROW)                                                                                        \
    ROW(CUDA_SUCCESS, 0) ROW(CUDA_ERROR_OUT_OF_MEMORY, 2) ROW(CUDA_ERROR_NOT_INITIALIZED, 3)                          \
    ROW(CUDA_ERROR_DEINITIALIZED, 4)                                                                                  \
    ROW(CUDA_ERROR_STUB_LIBRARY, 34) ROW(CUDA_ERROR_DEVICE_UNAVAILABLE, 46) ROW(CUDA_ERROR_NO_DEVICE, 100)            \
    ROW(CUDA_ERROR_INVALID_IMAGE, 200) ROW(CUDA_ERROR_INVALID_CONTEXT, 201) ROW(CUDA_ERROR_NO_BINARY_FOR_GPU, 209)    \
    ROW(CUDA_ERROR_ECC_UNCORRECTABLE, 214) ROW(CUDA_ERROR_INVALID_PTX, 218)                                           \
    ROW(CUDA_ERROR_NVLINK_UNCORRECTABLE, 220) ROW(CUDA_ERROR_JIT_COMPILER_NOT_FOUND, 221)                             \
    ROW(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222) ROW(CUDA_ERROR_JIT_COMPILATION_DISABLED, 223)                        \
    ROW(CUDA_ERROR_CONTAINED, 226) ROW(CUDA_ERROR_INVALID_SOURCE, 300)                                                \
    ROW(CUDA_ERROR_NOT_READY, 600) ROW(CUDA_ERROR_ILLEGAL_ADDRESS, 700) ROW(CUDA_ERROR_LAUNCH_TIMEOUT, 702)           \
    ROW(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, 704) ROW(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709)                        \
    ROW(CUDA_ERROR_ASSERT, 710) ROW(CUDA_ERROR_HARDWARE_STACK_ERROR, 714)                                             \
    ROW(CUDA_ERROR_ILLEGAL_INSTRUCTION, 715) ROW(CUDA_ERROR_MISALIGNED_ADDRESS, 716)                                  \
    ROW(CUDA_ERROR_INVALID_ADDRESS_SPACE, 717) ROW(CUDA_ERROR_INVALID_PC, 718)                                        \
    ROW(CUDA_ERROR_LAUNCH_FAILED, 719) ROW(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803)                                    \
    ROW(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, 712) ROW(CUDA_ERROR_NOT_PERMITTED, 800)                            \
    ROW(CUDA_ERROR_NOT_SUPPORTED, 801)                                                                                \
    ROW(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, 804) ROW(CUDA_ERROR_MPS_RPC_FAILURE, 806)                          \
    ROW(CUDA_ERROR_MPS_CLIENT_TERMINATED, 810) ROW(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900)                        \
    ROW(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 908) ROW(CUDA_ERROR_EXTERNAL_DEVICE, 911)                             \
    ROW(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1) ROW(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 8)         \
    ROW(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 13) ROW(CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT, 17)                          \
    ROW(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16) ROW(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 40)                 \
    ROW(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75) ROW(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)       \
    ROW(CU_STREAM_NON_BLOCKING, 1) ROW(CU_EVENT_DISABLE_TIMING, 2) ROW(CU_MEMHOSTALLOC_PORTABLE, 1)                   \
    ROW(CU_MEMHOSTREGISTER_PORTABLE, 1) ROW(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 1)
/* clang-format on */

#ifndef CUDA_VERSION
enum {
#define CEK__CUDA_NUMBER(NAME, VALUE) NAME = VALUE,
    CEK__CUDA_NUMBERS(CEK__CUDA_NUMBER)
#undef CEK__CUDA_NUMBER
};
#endif

#define CEK__CUDA_FUNCTIONS(ROW)                                                                                    \
    ROW(cuInit, 2000, (unsigned int flags))                                                                         \
    ROW(cuDriverGetVersion, 2020, (int *version))                                                                   \
    ROW(cuGetErrorName, 6000, (CUresult error, const char **name))                                                  \
    ROW(cuGetErrorString, 6000, (CUresult error, const char **text))                                                \
    ROW(cuDeviceGetCount, 2000, (int *count))                                                                       \
    ROW(cuDeviceGet, 2000, (CUdevice * device, int ordinal))                                                        \
    ROW(cuDeviceGetName, 2000, (char *name, int cap, CUdevice device))                                              \
    ROW(cuDeviceGetAttribute, 2000, (int *value, CUdevice_attribute what, CUdevice device))                         \
    ROW(cuDeviceTotalMem, 3020, (size_t * bytes, CUdevice device))                                                  \
    ROW(cuDeviceGetPCIBusId, 4010, (char *id, int cap, CUdevice device))                                            \
    ROW(cuDeviceGetUuid, 11040, (CUuuid * uuid, CUdevice device))                                                   \
    ROW(cuDeviceCanAccessPeer, 4000, (int *can, CUdevice device, CUdevice peer))                                    \
    ROW(cuDevicePrimaryCtxRetain, 7000, (CUcontext * context, CUdevice device))                                     \
    ROW(cuDevicePrimaryCtxRelease, 11000, (CUdevice device))                                                        \
    ROW(cuCtxPushCurrent, 4000, (CUcontext context))                                                                \
    ROW(cuCtxPopCurrent, 4000, (CUcontext * context))                                                               \
    ROW(cuCtxEnablePeerAccess, 4000, (CUcontext peer, unsigned int flags))                                          \
    ROW(cuMemGetInfo, 3020, (size_t * free_bytes, size_t * total_bytes))                                            \
    ROW(cuMemAlloc, 3020, (CUdeviceptr * address, size_t bytes))                                                    \
    ROW(cuMemFree, 3020, (CUdeviceptr address))                                                                     \
    ROW(cuMemHostAlloc, 2020, (void **address, size_t bytes, unsigned int flags))                                   \
    ROW(cuMemFreeHost, 2000, (void *address))                                                                       \
    ROW(cuMemHostRegister, 6050, (void *address, size_t bytes, unsigned int flags))                                 \
    ROW(cuMemHostUnregister, 4000, (void *address))                                                                 \
    ROW(cuMemcpyHtoDAsync, 3020, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream))                 \
    ROW(cuMemcpyDtoHAsync, 3020, (void *to, CUdeviceptr from, size_t bytes, CUstream stream))                       \
    ROW(cuMemcpyDtoDAsync, 3020, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))                 \
    ROW(cuMemcpyPeerAsync, 4000,                                                                                    \
        (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,              \
         CUstream stream))                                                                                          \
    ROW(cuMemsetD8Async, 3020, (CUdeviceptr to, unsigned char value, size_t count, CUstream stream))                \
    ROW(cuMemsetD16Async, 3020, (CUdeviceptr to, unsigned short value, size_t count, CUstream stream))              \
    ROW(cuMemsetD32Async, 3020, (CUdeviceptr to, unsigned int value, size_t count, CUstream stream))                \
    ROW(cuStreamCreate, 2000, (CUstream * stream, unsigned int flags))                                              \
    ROW(cuStreamDestroy, 4000, (CUstream stream))                                                                   \
    ROW(cuStreamQuery, 2000, (CUstream stream))                                                                     \
    ROW(cuStreamWaitEvent, 3020, (CUstream stream, CUevent event, unsigned int flags))                              \
    ROW(cuStreamBeginCapture, 10010, (CUstream stream, CUstreamCaptureMode mode))                                   \
    ROW(cuStreamEndCapture, 10000, (CUstream stream, CUgraph * graph))                                              \
    ROW(cuEventCreate, 2000, (CUevent * event, unsigned int flags))                                                 \
    ROW(cuEventDestroy, 4000, (CUevent event))                                                                      \
    ROW(cuEventRecord, 2000, (CUevent event, CUstream stream))                                                      \
    ROW(cuEventQuery, 2000, (CUevent event))                                                                        \
    ROW(cuEventElapsedTime, 2000, (float *milliseconds, CUevent start, CUevent end))                                \
    ROW(cuModuleLoadData, 2000, (CUmodule * module, const void *image))                                             \
    ROW(cuModuleUnload, 2000, (CUmodule module))                                                                    \
    ROW(cuModuleGetFunction, 2000, (CUfunction * function, CUmodule module, const char *name))                      \
    ROW(cuLaunchKernel, 4000,                                                                                       \
        (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,  \
         unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, CUstream stream, void **parameters, \
         void **extra))                                                                                             \
    ROW(cuGraphInstantiateWithFlags, 11040, (CUgraphExec * exec, CUgraph graph, unsigned long long flags))          \
    ROW(cuGraphLaunch, 10000, (CUgraphExec exec, CUstream stream))                                                  \
    ROW(cuGraphExecDestroy, 10000, (CUgraphExec exec))                                                              \
    ROW(cuGraphDestroy, 10000, (CUgraph graph))

/* The functions of one loaded driver. */
typedef struct cuda_driver {
    void *library;
#define CEK__CUDA_MEMBER(NAME, VERSION, PARAMETERS) CUresult(*NAME) PARAMETERS;
    CEK__CUDA_FUNCTIONS(CEK__CUDA_MEMBER)
#undef CEK__CUDA_MEMBER
} cuda_driver;

#endif
