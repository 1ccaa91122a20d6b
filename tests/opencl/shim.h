/* shim.h - stands between the opencl plugin and the ICD loader: makes calls fail, devices look different, and counts.
 *
 * A program that links shim.c with -export-dynamic (its functions then come before the loader's)
 * sets `shim` directly. As a library to be preloaded it reads the environment:
 *   SHIM_DEVICE=gpu|cpu    the kind that every device claims to be
 *   SHIM_GROUP=N           the most work-items of a group that it claims
 *   SHIM_WIDTH=N           its vectors of f32
 *   SHIM_SVM=no            no shared virtual memory
 *   SHIM_PLATFORM=TEXT     the name of every platform
 *   SHIM_KERNELS=FILE      gets the name of every kernel that was launched with something to do
 *   SHIM_SERIAL=yes        one call at a time: for a driver that is not safe to use from several threads
 *   SHIM_FAIL=CALL,ERROR,N the call (a member below) that fails with this error from the N-th time on, counted from 0
 *   SHIM_EVENTS=ERROR,N    commands end with this error from the N-th on
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
    X(copy) X(fill) X(map) X(unmap) X(marker) X(barrier) X(flush) X(event_info) X(profiling)
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
    cl_int victim_error;
    /* What a device claims. */
    cl_device_type device;
    size_t group;
    cl_uint width;
    bool no_svm, secure;
    const char *platform;
    const char *text;            /* what is compiled instead */
    atomic_int probes, finishes; /* calls of clGetPlatformIDs, clFinish */
    atomic_int waits; /* others that return when the device has done something: clWaitForEvents, blocking ones */
    size_t watched;   /* bytes of the writes that are counted */
    atomic_int watched_writes;
    /* Objects that live. */
    atomic_int contexts, queues, buffers, blocks, programs, kernels;
} shim_state;

extern shim_state shim;

#endif
