/* SPDX-License-Identifier: MIT
 * status.c - names of OpenCL's errors, what plugin.h calls them, and whether one took the device with it. */
#include <time.h>

#include "backends/opencl/opencl.h"

#define OWN_ERRORS (-1100) /* from here on drivers have numbers of their own: -9999 is NVIDIA's for an illegal access */
#define PROBE_MS 1000      /* for a barrier on a queue of its own */

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

/* What resources a command needs is known when it is enqueued. One that was accepted and ends with
 * CL_OUT_OF_RESOURCES, or an error of the driver's own, has touched memory that is not its, or took too long: so say
 * NVIDIA's driver, Intel's and Mesa's, and nothing on that context works any more. */
cek_status cek__opencl_ended(cl_int error)
{
    return error == CL_OUT_OF_RESOURCES || error <= OWN_ERRORS ? CEK_DEVICE_LOST : cek__opencl_status(error);
}

/* Whether nothing goes through the device's context any more: a call that finds no resources may mean that as well, and
 * trying again with less would never end. A barrier alone needs nothing that could be scarce. */
static bool is_dead(opencl_dev *dev)
{
    cl_int error = CL_SUCCESS, state = CL_QUEUED;
    cl_event event = NULL;
    cl_command_queue queue = clCreateCommandQueue(dev->context, dev->id, 0, &error);
    if (queue)
        error = clEnqueueBarrierWithWaitList(queue, 0, NULL, &event);
    if (queue && !error)
        error = clFlush(queue);
    for (int i = 0; !error && state > CL_COMPLETE && i < PROBE_MS; i++) {
        error = clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
        if (!error && state > CL_COMPLETE)
            nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
    }
    const bool dead = state < 0 || error == CL_OUT_OF_RESOURCES || cek__opencl_status(error) == CEK_DEVICE_LOST;
    if (event)
        clReleaseEvent(event);
    if (queue && state == CL_COMPLETE) /* else releasing it might wait for ever */
        clReleaseCommandQueue(queue);
    return dead;
}

cek_status cek__opencl_judge(opencl_dev *dev, cl_int error)
{
    const bool in_doubt = error == CL_OUT_OF_RESOURCES || error == CL_MEM_OBJECT_ALLOCATION_FAILURE;
    return in_doubt && is_dead(dev) ? CEK_DEVICE_LOST : cek__opencl_status(error);
}

cek_status cek__opencl_fail(opencl_dev *dev, const char *call, const char *function, cl_int error)
{
    cek_status st = cek__opencl_judge(dev, error);
    if (st == CEK_DEVICE_LOST)
        cek__latch_set(&dev->head.lost, "%s: %s: %s (%d)", call, function, cek__opencl_error(error), error);
    return cek__host_fail(&dev->head.instance->host, st, "%s: %s: %s (%d)", call, function, cek__opencl_error(error),
                          error);
}
