/* shim_limits.c - what devices say of themselves, and what they hold programs to. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/opencl/shim_inside.h"

#define KERNELS 4096 /* that live at one time */
#define ARGUMENTS 32
#define PINNED 256 /* memories at one time */

/* --- platforms and devices -------------------------------------------------------------------- */

EXPORT cl_int clGetPlatformIDs(cl_uint room, cl_platform_id *platforms, cl_uint *count)
{
    atomic_fetch_add(&shim.probes, 1);
    return REAL(clGetPlatformIDs)(room, platforms, count);
}

static cl_int text_give(const char *text, size_t bytes, void *value, size_t *length)
{
    if (length)
        *length = strlen(text) + 1;
    if (value)
        snprintf(value, bytes, "%s", text);
    return CL_SUCCESS;
}

EXPORT cl_int clGetPlatformInfo(cl_platform_id platform, cl_platform_info what, size_t bytes, void *value,
                                size_t *length)
{
    return what == CL_PLATFORM_NAME && shim.platform ? text_give(shim.platform, bytes, value, length)
                                                     : REAL(clGetPlatformInfo)(platform, what, bytes, value, length);
}

EXPORT void *clGetExtensionFunctionAddressForPlatform(cl_platform_id platform, const char *name)
{
    return !shim.recorder && strstr(name, "KHR") ? NULL
                                                 : REAL(clGetExtensionFunctionAddressForPlatform)(platform, name);
}

static cl_ulong memory_of(cl_device_id device)
{
    cl_ulong bytes = shim.memory;
    if (!bytes)
        REAL(clGetDeviceInfo)(device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof bytes, &bytes, NULL);
    return bytes;
}

static cl_ulong largest_of(cl_device_id device)
{
    cl_ulong bytes = 0;
    if (shim.memory || shim.quarter)
        return memory_of(device) / 4;
    REAL(clGetDeviceInfo)(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof bytes, &bytes, NULL);
    return bytes;
}

EXPORT cl_int clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t bytes, void *value, size_t *length)
{
    if (what == CL_DEVICE_SVM_CAPABILITIES && (shim.no_svm || shim.old))
        return CL_INVALID_VALUE;
    if (shim.old && what == CL_DEVICE_VERSION)
        return text_give("OpenCL 1.1 strict", bytes, value, length);
    if (shim.old && what == CL_DEVICE_OPENCL_C_VERSION)
        return text_give("OpenCL C 1.1 strict", bytes, value, length);
    cl_int error = REAL(clGetDeviceInfo)(device, what, bytes, value, length);
    if (error || !value)
        return error;
    switch (what) {
    case CL_DEVICE_TYPE:
        if (shim.device)
            *(cl_device_type *)value = shim.device;
        break;
    case CL_DEVICE_MAX_WORK_GROUP_SIZE:
        if (shim.group)
            *(size_t *)value = shim.group;
        break;
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT:
        if (shim.width)
            *(cl_uint *)value = shim.width;
        break;
    case CL_DEVICE_HOST_UNIFIED_MEMORY:
        if (shim.device == CL_DEVICE_TYPE_GPU)
            *(cl_bool *)value = shim.integrated;
        break;
    case CL_DEVICE_MAX_CLOCK_FREQUENCY:
        if (shim.clock)
            *(cl_uint *)value = shim.clock;
        break;
    case CL_DEVICE_VENDOR_ID:
        if (shim.vendor)
            *(cl_uint *)value = shim.vendor;
        break;
    case CL_DEVICE_MAX_PARAMETER_SIZE:
        if (shim.parameters)
            *(size_t *)value = shim.parameters;
        break;
    case CL_DEVICE_GLOBAL_MEM_SIZE: *(cl_ulong *)value = shim.unsaid ? 0 : memory_of(device); break;
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE: *(cl_ulong *)value = shim.unsaid ? 0 : largest_of(device); break;
    case CL_DEVICE_SINGLE_FP_CONFIG:
        if (shim.inexact)
            *(cl_device_fp_config *)value &= ~(cl_device_fp_config)CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT;
        break;
    case CL_DEVICE_AVAILABLE: *(cl_bool *)value &= !shim.unavailable; break;
    case CL_DEVICE_COMPILER_AVAILABLE:
    case CL_DEVICE_LINKER_AVAILABLE: *(cl_bool *)value &= !shim.no_compiler; break;
    default: break;
    }
    return error;
}

/* --- memory ----------------------------------------------------------------------------------- */

static _Atomic cl_ulong taken; /* of all contexts: one device is meant where memory is limited */

cl_int shim_memory_check(cl_context context, size_t bytes)
{
    cl_device_id device;
    if (!shim.memory && !shim.quarter)
        return CL_SUCCESS;
    if (REAL(clGetContextInfo)(context, CL_CONTEXT_DEVICES, sizeof device, &device, NULL))
        return CL_INVALID_CONTEXT;
    if (bytes > largest_of(device))
        return CL_INVALID_BUFFER_SIZE;
    if (atomic_fetch_add(&taken, bytes) + bytes <= memory_of(device))
        return CL_SUCCESS;
    atomic_fetch_sub(&taken, bytes);
    return CL_MEM_OBJECT_ALLOCATION_FAILURE;
}

void shim_memory_freed(size_t bytes)
{
    if (shim.memory || shim.quarter)
        atomic_fetch_sub(&taken, bytes);
}

/* Of buffers with CL_MEM_ALLOC_HOST_PTR, whose pages drivers of cards lock. */
static struct {
    const unsigned char *at;
    size_t bytes;
} pinned[PINNED];
static pthread_mutex_t pinned_lock = PTHREAD_MUTEX_INITIALIZER;

void shim_mapped(cl_mem memory, const void *at, size_t bytes)
{
    cl_mem_flags flags = 0;
    REAL(clGetMemObjectInfo)(memory, CL_MEM_FLAGS, sizeof flags, &flags, NULL);
    if (!(flags & CL_MEM_ALLOC_HOST_PTR))
        return;
    int i = 0;
    pthread_mutex_lock(&pinned_lock);
    while (i < PINNED && pinned[i].at)
        i++;
    if (i == PINNED)
        abort();
    pinned[i].at = at;
    pinned[i].bytes = bytes;
    pthread_mutex_unlock(&pinned_lock);
}

void shim_unmapped(const void *at)
{
    pthread_mutex_lock(&pinned_lock);
    for (int i = 0; i < PINNED; i++)
        if (pinned[i].at == at)
            pinned[i].at = NULL;
    pthread_mutex_unlock(&pinned_lock);
}

bool shim_is_pinned(const void *at, size_t bytes)
{
    bool found = false;
    const unsigned char *from = at;
    pthread_mutex_lock(&pinned_lock);
    for (int i = 0; i < PINNED; i++)
        found |= pinned[i].at && from >= pinned[i].at && from + bytes <= pinned[i].at + pinned[i].bytes;
    pthread_mutex_unlock(&pinned_lock);
    return found;
}

/* --- kernels ---------------------------------------------------------------------------------- */

/* What was set of each kernel, by the pointer that it is: the bytes of every argument, and whether its numbers
 * (whatever is longer than a handle) were zero. */
typedef struct kernel_state {
    cl_kernel kernel;
    size_t bytes[ARGUMENTS];
    uint32_t numbers, zero; /* which of them are numbers; which of those are all zero */
} kernel_state;
static kernel_state kernels[KERNELS];
#define RELEASED ((cl_kernel)kernels) /* one stood here: another may, and a search goes on */
static pthread_mutex_t kernels_lock = PTHREAD_MUTEX_INITIALIZER;

/* Where a kernel stands; else where it may, emptied. Under the lock. */
static kernel_state *kernel_find(cl_kernel kernel)
{
    kernel_state *room = NULL;
    for (size_t i = 0, at = (size_t)kernel >> 4; i < KERNELS; i++, at++) {
        kernel_state *row = &kernels[at % KERNELS];
        if (row->kernel == kernel)
            return row;
        if (!room && (!row->kernel || row->kernel == RELEASED))
            room = row;
        if (!row->kernel)
            break;
    }
    if (!room)
        abort();
    *room = (kernel_state){ kernel, { 0 }, 0, 0 };
    return room;
}

void shim_kernel_released(cl_kernel kernel)
{
    pthread_mutex_lock(&kernels_lock);
    kernel_find(kernel)->kernel = RELEASED;
    pthread_mutex_unlock(&kernels_lock);
}

cl_int shim_argument_check(cl_kernel kernel, cl_uint index, size_t bytes, const void *value)
{
    static const unsigned char zeros[1024];
    size_t sum = 0;
    if (index >= ARGUMENTS)
        abort();
    pthread_mutex_lock(&kernels_lock);
    kernel_state *row = kernel_find(kernel);
    row->bytes[index] = value ? bytes : sizeof(size_t); /* else it is local memory: where that begins */
    for (int i = 0; i < ARGUMENTS; i++)
        sum += row->bytes[i];
    if (value && bytes > sizeof(cl_mem)) {
        const uint32_t bit = UINT32_C(1) << index;
        row->numbers |= bit;
        row->zero = bytes <= sizeof zeros && !memcmp(value, zeros, bytes) ? row->zero | bit : row->zero & ~bit;
    }
    pthread_mutex_unlock(&kernels_lock);
    return shim.parameters && sum > shim.parameters ? CL_INVALID_ARG_SIZE : CL_SUCCESS;
}

bool shim_kernel_idle(cl_kernel kernel)
{
    pthread_mutex_lock(&kernels_lock);
    const kernel_state *row = kernel_find(kernel);
    const bool idle = row->numbers && row->zero == row->numbers;
    pthread_mutex_unlock(&kernels_lock);
    return idle;
}

EXPORT cl_int clGetKernelWorkGroupInfo(cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info what,
                                       size_t bytes, void *value, size_t *length)
{
    cl_int error = REAL(clGetKernelWorkGroupInfo)(kernel, device, what, bytes, value, length);
    if (!error && value && what == CL_KERNEL_WORK_GROUP_SIZE && shim.kernel_group &&
        *(size_t *)value > shim.kernel_group)
        *(size_t *)value = shim.kernel_group;
    return error;
}

cl_int shim_launch_check(cl_uint dims, const size_t *local)
{
    size_t items = 1;
    for (cl_uint i = 0; local && i < dims; i++)
        items *= local[i];
    return (shim.kernel_group && items > shim.kernel_group) || (shim.group && items > shim.group)
               ? CL_INVALID_WORK_GROUP_SIZE
               : CL_SUCCESS;
}

cl_int shim_build_check(const char *options)
{
    if (shim.no_compiler)
        return CL_COMPILER_NOT_AVAILABLE;
    if (shim.inexact && options && strstr(options, "correctly-rounded"))
        return CL_INVALID_BUILD_OPTIONS;
    return shim.old && options && strstr(options, "CL1.2") ? CL_INVALID_BUILD_OPTIONS : CL_SUCCESS;
}
