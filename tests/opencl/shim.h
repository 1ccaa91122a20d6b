/* shim.h - stands between the opencl plugin and the ICD loader: makes calls fail, devices look different, drivers be
 * strict, and counts.
 *
 * A program that links $(shim_sources) with -export-dynamic (its functions then come before the
 * loader's) sets `shim` directly. As a library to be preloaded it reads the environment:
 *   SHIM_DEVICE=gpu|cpu    the kind that every device claims to be
 *   SHIM_GROUP=N           the most work-items of a group that it claims
 *   SHIM_WIDTH=N           its vectors of f32
 *   SHIM_SVM=no            no shared virtual memory
 *   SHIM_PLATFORM=TEXT     the name of every platform
 *   SHIM_VENDOR=N          the number of every device's vendor
 *   SHIM_KERNELS=FILE      gets the name of every kernel that was launched with something to do
 *   SHIM_SERIAL=yes        one call at a time: for a driver that is not safe to use from several threads
 *   SHIM_FAIL=CALL,ERROR,N the call (a member below) that fails with this error from the N-th time on, counted from 0
 *   SHIM_EVENTS=ERROR,N    commands end with this error from the N-th on
 * What real drivers are strict about and PoCL forgives:
 *   SHIM_STRICT=yes        all of what shim_be_strict() sets; a line below then changes one of them
 *   SHIM_KERNEL_GROUP=N    the most work-items of a group that any kernel takes, said when it was compiled
 *   SHIM_QUARTER=yes       a buffer has at most a quarter of the memory
 *   SHIM_MEMORY=BYTES      that a device has; a buffer at most a quarter of it
 *   SHIM_UNSAID=yes        sizes of memory and of a buffer are 0
 *   SHIM_DIVISION=inexact  quotients and square roots are not rounded correctly, and what is compiled may not
 *                          ask for it
 *   SHIM_PARAMETERS=BYTES  of the arguments of a kernel
 *   SHIM_VERSION=OLD       OpenCL 1.1: device and compiler say so, and know nothing newer
 *   SHIM_COMPILER=no       none
 *   SHIM_AVAILABLE=no      devices are listed, but not to be had
 *   SHIM_QUEUED=yes        commands stay CL_QUEUED until their queue was flushed
 *   SHIM_POISON=yes        behind the first command that failed every call on its context fails
 *   SHIM_FAULT=ERROR,N     the N-th launch that has something to do (counted from 0) ends with this error, and does so
 *   SHIM_PROFILING=slow    a queue with profiling waits for each command
 *   SHIM_QUEUE_MS=N        that it takes to make a queue
 * What was asked of the driver:
 *   SHIM_COUNTS=FILE       gets one line of "name number" pairs when the process ends (shim_counts,
 *                          dead, unflushed, unordered)
 *   SHIM_STEP=BYTES        and one before each write of so many bytes, which begins a step
 */
#ifndef CEK_TESTS_OPENCL_SHIM_H
#define CEK_TESTS_OPENCL_SHIM_H

#define CL_TARGET_OPENCL_VERSION 200
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <stdatomic.h>
#include <stdbool.h>

/* What can be made to fail, each by its own member of `shim`. */
/* clang-format off */
#define SHIM_CALLS(X) \
    X(context) X(queue) X(buffer) X(svm) X(source) X(binary) X(build) X(kernel) X(argument) X(launch) X(write) X(read) \
    X(copy) X(fill) X(map) X(unmap) X(marker) X(barrier) X(flush) X(event_info) X(profiling) X(wait) X(callback)
/* clang-format on */

typedef struct shim_call {
    cl_int error;     /* to give; 0: pass on */
    atomic_int after; /* calls that still work */
    atomic_int calls; /* how often it was called */
} shim_call;

typedef struct shim_state {
#define SHIM_MEMBER(name) shim_call name;
    SHIM_CALLS(SHIM_MEMBER)
    /* What statuses of commands say: all of them, or that of one event alone. */
    cl_int event_error;
    atomic_int event_error_after; /* commands that still end well */
    atomic_bool running;
    const void *unread;               /* what a write that does not end may still read */
    _Atomic(cl_event) victim, latest; /* latest: of the last command that was enqueued */
    _Atomic(cl_event) asked;          /* whose status was asked for last */
    cl_int victim_error;
    /* What a device claims. */
    cl_device_type device;
    size_t group;
    cl_uint width, vendor, clock;
    bool no_svm, secure;
    bool integrated; /* a GPU whose memory is the host's; else one's is not */
    bool recorder;   /* functions of cl_khr_command_buffer are found: what they enqueue is not counted */
    bool deaf;       /* callbacks are taken and never called */
    const char *platform;
    const char *text;            /* what is compiled instead */
    atomic_int probes, finishes; /* calls of clGetPlatformIDs, clFinish */
    atomic_int waits; /* others that returned when the device had done something: clWaitForEvents, blocking ones */
    const char *watched_kernel;
    atomic_size_t groups; /* of its launch that had the most, and something to do */
    atomic_int pageable;  /* writes from and reads to memory that is not a mapped one of CL_MEM_ALLOC_HOST_PTR */
    size_t watched;       /* bytes of the writes that are counted */
    size_t step;          /* bytes of the write that begins a step */
    atomic_int watched_writes;
    atomic_int profiling_queues, profiled; /* queues with profiling that were made, commands in them */
    /* How strict the driver is. */
    size_t kernel_group, parameters;
    cl_ulong memory;
    bool unsaid;  /* how large a buffer may be, and its memory is: 0 */
    bool inexact; /* no device rounds quotients and square roots correctly, and none compiles what wants that */
    bool quarter, old, no_compiler, unavailable, queued, poisons, slow_profiling;
    int queue_ms;
    cl_int fault; /* that a launch ends with, and takes its context with it */
    atomic_int fault_after;
    _Atomic(cl_context) dead; /* the context that a failed command took with it */
    atomic_int dead_calls;    /* on that context, releases aside */
    atomic_int unflushed;     /* commands that wait for one of another queue, which nobody flushed */
    atomic_int unordered; /* commands that may build on one of another queue, which a poll alone told to have ended */
    /* Objects that live. */
    atomic_int contexts, queues, buffers, blocks, programs, kernels;
} shim_state;

extern shim_state shim;

/* As real drivers are at their strictest: a GPU without shared virtual memory, 64 work-items in a group of any kernel,
 * buffers of a quarter of the memory, 1,024 bytes of arguments, statuses that stay CL_QUEUED until somebody flushes, a
 * context that dies of the first failed command, profiling that waits for each command, 5 ms for a queue. */
void shim_be_strict(void);

/* What was asked of the driver since the process began; the difference of two is what happened in between. */
typedef struct shim_counts {
    int commands; /* enqueued: launches, transfers, fills, maps, markers, barriers */
    int launches, arguments, flushes;
    int finishes; /* calls of clFinish */
    int waits;    /* others that had to wait for the device: clWaitForEvents, blocking transfers */
    int queues;   /* made */
    int buffers;  /* made */
    int polls;    /* of statuses */
    int pageable; /* transfers of memory that is not page-locked: of another kind than the driver gave for it */
} shim_counts;
shim_counts shim_count(void);

#endif
