/* SPDX-License-Identifier: MIT
 *
 * fake_cuda.c - the fake driver, as far as backends/cuda/driver.h names it: devices, contexts, how
 * calls are counted and made to fail, and the way in. Memory, streams and events, modules and
 * graphs have files of their own.
 *
 * A stream is a thread with a list of work, so that what is asynchronous on a GPU is so here. Every
 * call looks at the thread's current context, and at whether its objects are alive and of that
 * context. FAKE_CUDA_DEVICES, FAKE_CUDA_SM, FAKE_CUDA_MEMORY (bytes): what there is.
 * FAKE_CUDA_FAIL="cuMemAlloc:2:719": see fake.h.
 */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "tests/cuda/fake_cuda.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* of functions that are found by name alone */

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
unsigned live;
__thread fake_thread thread;
static struct CUctx_st contexts[DEVICES_MAX];
static bool initialized;

/* --- calls: counted, and made to fail on demand ----------------------------------------------- */

static const char *const call_names[] = {
#define TEXT(NAME, VERSION, PARAMETERS) #NAME,
    CEK__CUDA_FUNCTIONS(TEXT)
#undef TEXT
};
static unsigned calls[CALLS];
static struct {
    unsigned call, nth;
    uint32_t error;
    bool fired; /* from then on something may be left behind, which the test counts itself */
} fault;

static unsigned call_find(const char *name)
{
    for (unsigned i = 0; i < CALLS; i++)
        if (!strcmp(call_names[i], name))
            return i;
    fake_die("no function %s", name);
}

uint32_t enter(unsigned call, CUcontext *context)
{
    uint32_t error = 0;
    pthread_mutex_lock(&lock);
    calls[call]++;
    if (fault.nth && fault.call == call && --fault.nth == 0) {
        error = fault.error;
        fault.fired = true;
    }
    if (!error && call != CALL_cuInit && !initialized && call != CALL_cuGetErrorName && call != CALL_cuGetErrorString)
        error = ERROR_NOT_INITIALIZED;
    if (context) {
        *context = thread.depth ? thread.stack[thread.depth - 1] : NULL;
        if (!*context)
            fake_die("%s: no context is current", call_names[call]);
        if (!(*context)->users)
            fake_die("%s: the context was released", call_names[call]);
        if (error >= CUDA_ERROR_ILLEGAL_ADDRESS && error <= CUDA_ERROR_LAUNCH_FAILED)
            (*context)->error = error;
        if (!error)
            error = (*context)->error;
    }
    pthread_mutex_unlock(&lock);
    return error;
}
uint32_t no_capture(void)
{
    if (thread.capturing)
        thread.capturing->capture_broken = true;
    return thread.capturing ? ERROR_CAPTURE_UNSUPPORTED : 0;
}
void own(const char *what, CUcontext of, CUcontext current)
{
    if (of != current)
        fake_die("%s of one context used in another", what);
}

void made(CUcontext context, int by)
{
    pthread_mutex_lock(&lock);
    context->live += (unsigned)by;
    live += (unsigned)by;
    pthread_mutex_unlock(&lock);
}

static void machine_make(void)
{
    const char *text = getenv("FAKE_CUDA_FAIL");
    char name[64];
    if (text && sscanf(text, "%63[^:]:%u:%u", name, &fault.nth, &fault.error) == 3)
        fault.call = call_find(name);
    for (unsigned i = 0; i < DEVICES_MAX; i++)
        contexts[i].index = i;
}

unsigned number(const char *variable, unsigned otherwise)
{
    const char *text = getenv(variable);
    return text ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

uint64_t memory_total(void)
{
    const char *text = getenv("FAKE_CUDA_MEMORY");
    return text ? strtoull(text, NULL, 10) : (uint64_t)4 << 30;
}

double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

/* --- devices and contexts --------------------------------------------------------------------- */

CUresult fake_cuInit(unsigned int flags)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, machine_make);
    if (flags)
        return ERROR_INVALID_VALUE;
    ENTER(cuInit, NULL);
    if (!number("FAKE_CUDA_DEVICES", 2))
        return CUDA_ERROR_NO_DEVICE;
    initialized = true;
    return CUDA_SUCCESS;
}

CUresult fake_cuDriverGetVersion(int *version)
{
    ENTER(cuDriverGetVersion, NULL);
    *version = (int)number("FAKE_CUDA_VERSION", 13000);
    return CUDA_SUCCESS;
}

CUresult fake_cuGetErrorName(CUresult error, const char **name)
{
    ENTER(cuGetErrorName, NULL);
    *name = error == CUDA_ERROR_OUT_OF_MEMORY        ? "CUDA_ERROR_OUT_OF_MEMORY"
            : error == CUDA_ERROR_NO_DEVICE          ? "CUDA_ERROR_NO_DEVICE"
            : error == CUDA_ERROR_ILLEGAL_ADDRESS    ? "CUDA_ERROR_ILLEGAL_ADDRESS"
            : error == CUDA_ERROR_MISALIGNED_ADDRESS ? "CUDA_ERROR_MISALIGNED_ADDRESS"
                                                     : "CUDA_ERROR_OF_THE_FAKE";
    return CUDA_SUCCESS;
}

CUresult fake_cuGetErrorString(CUresult error, const char **text)
{
    return fake_cuGetErrorName(error, text);
}

CUresult fake_cuDeviceGetCount(int *count)
{
    ENTER(cuDeviceGetCount, NULL);
    *count = (int)number("FAKE_CUDA_DEVICES", 2);
    return CUDA_SUCCESS;
}

CUresult fake_cuDeviceGet(CUdevice *device, int ordinal)
{
    ENTER(cuDeviceGet, NULL);
    *device = ordinal;
    return ordinal < (int)number("FAKE_CUDA_DEVICES", 2) ? CUDA_SUCCESS : 101;
}

CUresult fake_cuDeviceGetName(char *name, int cap, CUdevice device)
{
    ENTER(cuDeviceGetName, NULL);
    (void)device;
    snprintf(name, (size_t)cap, "Fake GPU");
    return CUDA_SUCCESS;
}

CUresult fake_cuDeviceGetAttribute(int *value, CUdevice_attribute what, CUdevice device)
{
    (void)device;
    ENTER(cuDeviceGetAttribute, NULL);
    switch (what) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: *value = 49152; break;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: *value = (int)number("FAKE_CUDA_CLOCK", 1000000); break;
    case CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT: *value = getenv("FAKE_CUDA_WATCHDOG") != NULL; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 7; break;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT: *value = 3; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = (int)number("FAKE_CUDA_SM", 90) / 10; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = (int)number("FAKE_CUDA_SM", 90) % 10; break;
    default: fake_die("cuDeviceGetAttribute: %u is not one that is used here", what);
    }
    return CUDA_SUCCESS;
}

CUresult fake_cuDeviceTotalMem(size_t *bytes, CUdevice device)
{
    (void)device;
    ENTER(cuDeviceTotalMem, NULL);
    *bytes = memory_total();
    return CUDA_SUCCESS;
}

CUresult fake_cuDeviceGetPCIBusId(char *id, int cap, CUdevice device)
{
    ENTER(cuDeviceGetPCIBusId, NULL);
    snprintf(id, (size_t)cap, "0000:%02X:00.0", 0xA0 + device);
    return CUDA_SUCCESS;
}

CUresult fake_cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    ENTER(cuDeviceGetUuid, NULL);
    memset(uuid->bytes, 0x40 + device, sizeof uuid->bytes);
    return CUDA_SUCCESS;
}

CUresult fake_cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    ENTER(cuDeviceCanAccessPeer, NULL);
    *can = device != peer;
    return CUDA_SUCCESS;
}

CUresult fake_cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    ENTER(cuDevicePrimaryCtxRetain, NULL);
    *context = &contexts[device];
    pthread_mutex_lock(&lock);
    if (!contexts[device].users++)
        live++;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult fake_cuDevicePrimaryCtxRelease(CUdevice device)
{
    ENTER(cuDevicePrimaryCtxRelease, NULL);
    pthread_mutex_lock(&lock);
    if (!contexts[device].users)
        fake_die("cuDevicePrimaryCtxRelease: more often than retained");
    if (!--contexts[device].users) {
        live--;
        if (contexts[device].live && !contexts[device].error && !fault.fired)
            fake_die("cuDevicePrimaryCtxRelease: %u objects of the context are alive", contexts[device].live);
    }
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult fake_cuCtxPushCurrent(CUcontext context)
{
    ENTER(cuCtxPushCurrent, NULL);
    if (thread.depth == STACK_MAX)
        fake_die("cuCtxPushCurrent: %d contexts pushed and none popped", STACK_MAX);
    if (!context || !context->users)
        fake_die("cuCtxPushCurrent: a context that was released");
    thread.stack[thread.depth++] = context;
    return CUDA_SUCCESS;
}

CUresult fake_cuCtxPopCurrent(CUcontext *context)
{
    ENTER(cuCtxPopCurrent, NULL);
    if (!thread.depth)
        fake_die("cuCtxPopCurrent: nothing to pop");
    *context = thread.stack[--thread.depth];
    return CUDA_SUCCESS;
}

CUresult fake_cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
    CUcontext context;
    ENTER(cuCtxEnablePeerAccess, &context);
    if (flags || peer == context)
        return ERROR_INVALID_VALUE;
    if (context->peers[peer->index])
        return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    context->peers[peer->index] = true;
    return CUDA_SUCCESS;
}

/* --- the door --------------------------------------------------------------------------------- */

FAKE_API CUresult cuGetProcAddress_v2(const char *symbol, void **address, int version, uint64_t flags, uint32_t *how)
{
    static const struct {
        const char *name;
        int version;
        void *address;
    } table[] = {
#define ROW(NAME, VERSION, PARAMETERS) { #NAME, VERSION, (void *)fake_##NAME },
        CEK__CUDA_FUNCTIONS(ROW)
#undef ROW
    };
    (void)how;
    *address = NULL;
    for (size_t i = 0; !flags && i < sizeof table / sizeof *table; i++)
        if (!strcmp(table[i].name, symbol) && version >= table[i].version)
            *address = table[i].address;
    return *address ? CUDA_SUCCESS : ERROR_NOT_FOUND;
}

FAKE_API void fake_cuda_fail(const char *function, unsigned nth, uint32_t error)
{
    pthread_mutex_lock(&lock);
    fault.nth = function ? nth : 0;
    fault.call = function ? call_find(function) : 0;
    fault.error = error;
    fault.fired = false;
    pthread_mutex_unlock(&lock);
}

FAKE_API void fake_cuda_kernel(unsigned nth, uint32_t error)
{
    pthread_mutex_lock(&lock);
    kernel_fault = nth;
    kernel_error = error;
    pthread_mutex_unlock(&lock);
}

FAKE_API void fake_cuda_faults(bool faults)
{
    kernel_faults = faults;
}

FAKE_API unsigned fake_cuda_calls(const char *function)
{
    return calls[call_find(function)];
}

fake_watch watch;

FAKE_API void fake_cuda_watch(size_t bytes)
{
    pthread_mutex_lock(&lock);
    watch.bytes = bytes;
    watch.uploads = 0;
    pthread_mutex_unlock(&lock);
}

FAKE_API unsigned fake_cuda_watched(void)
{
    pthread_mutex_lock(&lock);
    unsigned now = watch.uploads;
    pthread_mutex_unlock(&lock);
    return now;
}

FAKE_API void fake_cuda_blind(bool blind)
{
    pthread_mutex_lock(&lock);
    watch.blind = blind;
    pthread_mutex_unlock(&lock);
}

FAKE_API unsigned fake_cuda_waits(void)
{
    pthread_mutex_lock(&lock);
    unsigned now = watch.waits;
    pthread_mutex_unlock(&lock);
    return now;
}

FAKE_API unsigned fake_cuda_live(void)
{
    pthread_mutex_lock(&lock);
    unsigned now = live;
    pthread_mutex_unlock(&lock);
    return now;
}

FAKE_API unsigned fake_cuda_depth(void)
{
    return thread.depth;
}

FAKE_API void *fake_cuda_current(void)
{
    return thread.depth ? thread.stack[thread.depth - 1] : NULL;
}

/* What lost devices left behind ends and is forgotten. */
FAKE_API void fake_cuda_reset(void)
{
    fake_cuda_fail(NULL, 0, 0);
    fake_cuda_kernel(0, 0);
    fake_cuda_faults(false);
    pthread_mutex_lock(&lock);
    hang_generation++;
    for (unsigned i = 0; i < DEVICES_MAX; i++)
        contexts[i].error = ERROR_INVALID_CONTEXT; /* what is queued runs dry */
    for (unsigned i = 0; i < STREAMS_MAX; i++)
        if (streams[i])
            streams[i]->over = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    for (unsigned i = 0; i < STREAMS_MAX; i++)
        if (streams[i]) {
            pthread_join(streams[i]->thread, NULL);
            free(streams[i]);
            streams[i] = NULL;
        }
    live = 0;
    memory_forget();
    for (unsigned i = 0; i < DEVICES_MAX; i++)
        contexts[i] = (struct CUctx_st){ .index = i };
}

/* At the end of a program everything was given back, and its main thread's contexts are popped. */
__attribute__((destructor)) static void end_check(void)
{
    bool lost = false;
    for (unsigned i = 0; i < DEVICES_MAX; i++)
        lost |= contexts[i].error != 0;
    if (!lost && getenv("FAKE_CUDA_STRICT") && (live || thread.depth)) {
        fprintf(stderr, "fake CUDA: at the end %u objects are alive, %u contexts pushed\n", live, thread.depth);
        _exit(97);
    }
}
