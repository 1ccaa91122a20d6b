/* SPDX-License-Identifier: MIT
 * status.c - names of OpenCL's errors, and what plugin.h calls them. */
#include "backends/opencl/opencl.h"

/* clang-format off */
#define ERRORS(ROW)                                                                                                   \
    ROW(CL_DEVICE_NOT_FOUND) ROW(CL_DEVICE_NOT_AVAILABLE) ROW(CL_COMPILER_NOT_AVAILABLE)                              \
    ROW(CL_MEM_OBJECT_ALLOCATION_FAILURE) ROW(CL_OUT_OF_RESOURCES) ROW(CL_OUT_OF_HOST_MEMORY)                         \
    ROW(CL_PROFILING_INFO_NOT_AVAILABLE) ROW(CL_MEM_COPY_OVERLAP) ROW(CL_BUILD_PROGRAM_FAILURE) ROW(CL_MAP_FAILURE)   \
    ROW(CL_MISALIGNED_SUB_BUFFER_OFFSET) ROW(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)                            \
    ROW(CL_COMPILE_PROGRAM_FAILURE) ROW(CL_LINKER_NOT_AVAILABLE) ROW(CL_LINK_PROGRAM_FAILURE)                         \
    ROW(CL_DEVICE_PARTITION_FAILED) ROW(CL_INVALID_VALUE) ROW(CL_INVALID_PLATFORM) ROW(CL_INVALID_DEVICE)             \
    ROW(CL_INVALID_CONTEXT) ROW(CL_INVALID_QUEUE_PROPERTIES) ROW(CL_INVALID_COMMAND_QUEUE) ROW(CL_INVALID_HOST_PTR)   \
    ROW(CL_INVALID_MEM_OBJECT) ROW(CL_INVALID_BINARY) ROW(CL_INVALID_BUILD_OPTIONS) ROW(CL_INVALID_PROGRAM)           \
    ROW(CL_INVALID_PROGRAM_EXECUTABLE) ROW(CL_INVALID_KERNEL_NAME) ROW(CL_INVALID_KERNEL_DEFINITION)                  \
    ROW(CL_INVALID_KERNEL) ROW(CL_INVALID_ARG_INDEX) ROW(CL_INVALID_ARG_VALUE) ROW(CL_INVALID_ARG_SIZE)               \
    ROW(CL_INVALID_KERNEL_ARGS) ROW(CL_INVALID_WORK_DIMENSION) ROW(CL_INVALID_WORK_GROUP_SIZE)                        \
    ROW(CL_INVALID_WORK_ITEM_SIZE) ROW(CL_INVALID_GLOBAL_OFFSET) ROW(CL_INVALID_EVENT_WAIT_LIST) ROW(CL_INVALID_EVENT) \
    ROW(CL_INVALID_OPERATION) ROW(CL_INVALID_BUFFER_SIZE) ROW(CL_INVALID_GLOBAL_WORK_SIZE) ROW(CL_INVALID_PROPERTY)   \
    ROW(CL_INVALID_COMPILER_OPTIONS) ROW(CL_INVALID_LINKER_OPTIONS) ROW(CL_INVALID_DEVICE_PARTITION_COUNT)
/* clang-format on */

const char *cek__opencl_error(cl_int error)
{
#define NAME(ERROR) \
    case ERROR: return #ERROR;
    switch (error) {
        ERRORS(NAME)
    default: return "an error of the driver's own";
    }
#undef NAME
}

cek_status cek__opencl_status(cl_int error)
{
    switch (error) {
    case CL_SUCCESS: return CEK_OK;
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_RESOURCES:
    case CL_OUT_OF_HOST_MEMORY:
    case CL_INVALID_BUFFER_SIZE: return CEK_OUT_OF_MEMORY;
    /* A context or queue of ours that is no longer one: how some drivers say that a kernel took the
     * device down with it. */
    case CL_INVALID_CONTEXT:
    case CL_INVALID_COMMAND_QUEUE:
    case CL_DEVICE_NOT_AVAILABLE: return CEK_DEVICE_LOST;
    default: return CEK_INTERNAL;
    }
}

cek_status cek__opencl_fail(opencl_dev *dev, const char *call, const char *function, cl_int error)
{
    cek_status st = cek__opencl_status(error);
    if (st == CEK_DEVICE_LOST)
        cek__latch_set(&dev->head.lost, "%s: %s: %s (%d)", call, function, cek__opencl_error(error), error);
    return cek__host_fail(&dev->head.instance->host, st, "%s: %s: %s (%d)", call, function, cek__opencl_error(error),
                          error);
}
