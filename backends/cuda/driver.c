/* SPDX-License-Identifier: MIT
 *
 * driver.c - the driver's functions by name and version, its errors in plugin.h's words, its
 * context around a call, and waiting with a deadline, which the driver does not offer.
 */
#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "backends/cuda/cuda.h"

/* --- load ------------------------------------------------------------------------------------- */

/* 11.3 */
typedef CUresult get_address_fn(const char *name, void **address, int version, uint64_t flags);
/* 12.0 */
typedef CUresult get_address_2_fn(const char *name, void **address, int version, uint64_t flags, uint32_t *how);

typedef struct resolver {
    get_address_fn *get;
    get_address_2_fn *get_2;
    const char *missing;
} resolver;

static void *resolve(resolver *by, const char *name, int version)
{
    void *address = NULL;
    CUresult error = by->get_2 ? by->get_2(name, &address, version, 0, NULL) : by->get(name, &address, version, 0);
    if (error || !address) {
        by->missing = by->missing ? by->missing : name;
        return NULL;
    }
    return address;
}

cek_status cek__cuda_driver_load(const cek_host *host, cuda_driver *out)
{
    static const char *const names[] = { "libcuda.so.1", NULL };
    char path[256];
    memset(out, 0, sizeof *out);
    out->library = cek__cuda_library_open(host, names, path, sizeof path);
    if (!out->library)
        return cek__host_fail(host, CEK_UNAVAILABLE, "%s: install NVIDIA's driver, which has it", path);
    resolver by = { .get = (get_address_fn *)dlsym(out->library, "cuGetProcAddress"),
                    .get_2 = (get_address_2_fn *)dlsym(out->library, "cuGetProcAddress_v2") };
    if (!by.get && !by.get_2)
        return cek__host_fail(host, CEK_UNAVAILABLE, "%s: a driver older than CUDA 11.4", path);
#define RESOLVE(NAME, VERSION, PARAMETERS) *(void **)&out->NAME = resolve(&by, #NAME, VERSION);
    CEK__CUDA_FUNCTIONS(RESOLVE)
#undef RESOLVE
    if (by.missing)
        return cek__host_fail(host, CEK_UNAVAILABLE, "%s: a driver older than CUDA 11.4: it has no %s", path,
                              by.missing);
    return CEK_OK;
}

/* --- errors ----------------------------------------------------------------------------------- */

bool cek__cuda_is_lost(CUresult error)
{
    switch (error) {
    case CUDA_ERROR_NOT_INITIALIZED: /* in a child that was forked */
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_INVALID_CONTEXT: /* ours is always pushed: somebody reset the device */
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_MPS_RPC_FAILURE:
    case CUDA_ERROR_MPS_CLIENT_TERMINATED:
    case CUDA_ERROR_EXTERNAL_DEVICE: return true;
    default: return false;
    }
}

bool cek__cuda_is_capture(CUresult error)
{
    return error >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && error <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
}

cek_status cek__cuda_status(CUresult error)
{
    if (error == CUDA_SUCCESS)
        return CEK_OK;
    if (error == CUDA_ERROR_OUT_OF_MEMORY)
        return CEK_OUT_OF_MEMORY;
    return cek__cuda_is_lost(error) ? CEK_DEVICE_LOST : CEK_INTERNAL;
}

const char *cek__cuda_error(const cuda_driver *driver, CUresult error)
{
    const char *name = NULL;
    return driver->cuGetErrorName && !driver->cuGetErrorName(error, &name) && name ? name : "an error without a name";
}

cek_status cek__cuda_fail(cuda_dev *dev, const char *call, const char *function, CUresult error)
{
    const char *name = cek__cuda_error(cek__cuda_api(dev), error);
    cek_status st = cek__cuda_status(error);
    if (st == CEK_DEVICE_LOST)
        cek__latch_set(&dev->head.lost, "%s: %s: %s (%u)", call, function, name, error);
    return cek__host_fail(&dev->head.instance->host, st, "%s: %s: %s (%u)", call, function, name, error);
}

/* --- the context ------------------------------------------------------------------------------ */

cek_status cek__cuda_enter(cuda_dev *dev, const char *call)
{
    CUresult error = cek__cuda_api(dev)->cuCtxPushCurrent(dev->context);
    return error ? cek__cuda_fail(dev, call, "cuCtxPushCurrent", error) : CEK_OK;
}

void cek__cuda_leave(cuda_dev *dev)
{
    CUcontext was;
    (void)cek__cuda_api(dev)->cuCtxPopCurrent(&was);
}

/* --- waiting ---------------------------------------------------------------------------------- */

/* most waits of a training step; a sleep, which takes twice its time, would be felt in them */
#define SPIN_NS UINT64_C(2000000)
#define SLEEP_NS 50000L

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* What a query reports is of work that ran before, whatever its name: nobody knows what that work
 * did. But for a refusal to be asked. */
static cek_status work_failed(cuda_dev *dev, const char *call, const char *function, CUresult error)
{
    if (cek__cuda_is_capture(error))
        return cek__cuda_fail(dev, call, function, error);
    cek__latch_set(&dev->head.lost, "%s: %s: %s (%u)", call, function, cek__cuda_error(cek__cuda_api(dev), error),
                   error);
    return cek__gpu_ready(&dev->head, call);
}

/* Asks about the stream, or the event where there is none. */
static cek_status poll_until(cuda_dev *dev, const char *call, CUstream stream, CUevent event, uint64_t timeout_ns)
{
    const cuda_driver *api = cek__cuda_api(dev);
    uint64_t start = 0, waited = 0;
    cek_status st = cek__cuda_enter(dev, call);
    if (st)
        return st;
    for (;;) {
        CUresult error = event ? api->cuEventQuery(event) : api->cuStreamQuery(stream);
        if (error != CUDA_ERROR_NOT_READY) {
            st = error ? work_failed(dev, call, event ? "cuEventQuery" : "cuStreamQuery", error) : CEK_OK;
            break;
        }
        if (cek__latched(&dev->head.lost)) { /* by another thread */
            st = cek__gpu_ready(&dev->head, call);
            break;
        }
        start = start ? start : now_ns();
        waited = now_ns() - start;
        if (waited >= timeout_ns) {
            st = CEK_TIMEOUT;
            break;
        }
        if (waited < SPIN_NS)
            sched_yield();
        else
            nanosleep(&(struct timespec){ 0, SLEEP_NS }, NULL);
    }
    cek__cuda_leave(dev);
    return st;
}

cek_status cek__cuda_poll_stream(cuda_dev *dev, const char *call, CUstream stream, uint64_t timeout_ns)
{
    return poll_until(dev, call, stream, NULL, timeout_ns);
}

cek_status cek__cuda_poll_event(cuda_dev *dev, const char *call, CUevent event, uint64_t timeout_ns)
{
    return poll_until(dev, call, NULL, event, timeout_ns);
}
