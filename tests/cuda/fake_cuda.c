/* SPDX-License-Identifier: MIT
 *
 * fake_cuda.c - the driver: contexts, memory, streams, events, modules and graphs, as far as
 * backends/cuda/driver.h names them.
 *
 * A stream is a thread with a list of work, so that what is asynchronous on a GPU is so here.
 * Memory is mapped with nothing behind its end. Every call looks at the thread's current context,
 * and at whether its objects are alive and of that context. FAKE_CUDA_DEVICES, FAKE_CUDA_SM,
 * FAKE_CUDA_MEMORY (bytes): what there is. FAKE_CUDA_FAIL="cuMemAlloc:2:719": see fake.h.
 * FAKE_CUDA_KERNELS: the folder of kernels/cuda in the build, whose .cu files stand for the machine
 * code beside them.
 */
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "backends/cuda/driver.h"
#include "tests/cuda/fake.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"  /* of functions that are found by name alone */

#define DEVICES_MAX 4
#define STACK_MAX 16
#define STREAMS_MAX 256
#define PARAMETERS_MAX 16
#define ERROR_INVALID_VALUE 1
#define ERROR_NOT_INITIALIZED 3
#define ERROR_INVALID_CONTEXT 201
#define ERROR_NOT_FOUND 500
#define ERROR_CAPTURE_UNSUPPORTED 900
#define ERROR_CAPTURE_INVALIDATED 901

struct CUctx_st {
    unsigned users, index, live;  /* live: objects made in it */
    uint64_t used;
    uint32_t error;               /* once set, every call answers it */
    bool peers[DEVICES_MAX];
};

typedef struct block {  /* memory of a device, or page-locked */
    struct block *next;
    CUcontext context;
    unsigned char *base;
    size_t bytes, mapped;
    bool host;
} block;

/* One recording of an event. */
typedef struct record {
    unsigned users;
    bool done;
    double time_ms;
} record;

struct CUevent_st {
    CUcontext context;
    bool timing;
    record *latest;
};

struct CUfunc_st {
    CUmodule module;
    fake_kernel *kernel;
    struct CUfunc_st *next;
};

struct CUmod_st {
    CUcontext context;
    fake_module *module;
    struct CUfunc_st *functions;
};

typedef struct work {
    struct work *next;
    enum { COPY, FILL, KERNEL, CALL, RECORD, WAIT, GRAPH } kind;
    unsigned char *to;
    const unsigned char *from;
    unsigned char *copy;       /* what a pageable source held */
    size_t bytes;
    unsigned pattern, pattern_bytes;
    fake_kernel *kernel;
    unsigned grid[3], block[3];
    unsigned char *parameters; /* each 16 bytes aligned, behind one another; of CALL: the data */
    void (*call)(void *data);
    record *record;
    CUgraphExec graph;
} work;

struct CUgraph_st {
    CUcontext context;
    work *first, **end;
};

struct CUgraphExec_st {
    CUcontext context;
    unsigned users;            /* launches that have not finished, and the handle */
    work *first;
};

struct CUstream_st {
    CUcontext context;
    pthread_t thread;
    work *first, **end;
    bool busy, over;
    CUgraph capture;           /* or NULL */
    bool capture_broken;
};

/* One lock for all: this is about rules, not about speed. Kernels and copies run without it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct CUctx_st contexts[DEVICES_MAX];
static block *blocks;
static unsigned live, kernel_fault, hang_generation;
static uint32_t kernel_error;
static bool initialized;

static __thread struct {
    CUcontext stack[STACK_MAX];
    unsigned depth;
    CUstream capturing;
} thread;

/* --- calls: counted, and made to fail on demand ----------------------------------------------- */

enum {
#define NUMBER(NAME, VERSION, PARAMETERS) CALL_##NAME,
    CEK__CUDA_FUNCTIONS(NUMBER)
#undef NUMBER
    CALLS
};
static const char *const call_names[] = {
#define TEXT(NAME, VERSION, PARAMETERS) #NAME,
    CEK__CUDA_FUNCTIONS(TEXT)
#undef TEXT
};
static unsigned calls[CALLS];
static struct {
    unsigned call, nth;
    uint32_t error;
    bool fired;                   /* from then on something may be left behind, which the test counts itself */
} fault;

static unsigned call_find(const char *name)
{
    for (unsigned i = 0; i < CALLS; i++)
        if (!strcmp(call_names[i], name))
            return i;
    fake_die("no function %s", name);
}

/* Counts a call; whether it is to fail. Names the context that it runs in. */
static uint32_t enter(unsigned call, CUcontext *context)
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
#define ENTER(NAME, CONTEXT)                              \
    do {                                                  \
        uint32_t error_ = enter(CALL_##NAME, CONTEXT);    \
        if (error_)                                       \
            return error_;                                \
    } while (0)

/* What may not be called while this thread captures. */
static uint32_t no_capture(void)
{
    if (thread.capturing)
        thread.capturing->capture_broken = true;
    return thread.capturing ? ERROR_CAPTURE_UNSUPPORTED : 0;
}
#define NO_CAPTURE()                    \
    do {                                \
        if (no_capture())               \
            return no_capture();        \
    } while (0)

static void own(const char *what, CUcontext of, CUcontext current)
{
    if (of != current)
        fake_die("%s of one context used in another", what);
}

static void made(CUcontext context, int by)
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

static unsigned number(const char *variable, unsigned otherwise)
{
    const char *text = getenv(variable);
    return text ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

static uint64_t memory_total(void)
{
    const char *text = getenv("FAKE_CUDA_MEMORY");
    return text ? strtoull(text, NULL, 10) : (uint64_t)4 << 30;
}

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

/* --- devices and contexts --------------------------------------------------------------------- */

static CUresult fake_cuInit(unsigned int flags)
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

static CUresult fake_cuDriverGetVersion(int *version)
{
    ENTER(cuDriverGetVersion, NULL);
    *version = (int)number("FAKE_CUDA_VERSION", 13000);
    return CUDA_SUCCESS;
}

static CUresult fake_cuGetErrorName(CUresult error, const char **name)
{
    ENTER(cuGetErrorName, NULL);
    *name = error == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
        : error == CUDA_ERROR_NO_DEVICE ? "CUDA_ERROR_NO_DEVICE"
          : error == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_OF_THE_FAKE";
    return CUDA_SUCCESS;
}

static CUresult fake_cuGetErrorString(CUresult error, const char **text)
{
    return fake_cuGetErrorName(error, text);
}

static CUresult fake_cuDeviceGetCount(int *count)
{
    ENTER(cuDeviceGetCount, NULL);
    *count = (int)number("FAKE_CUDA_DEVICES", 2);
    return CUDA_SUCCESS;
}

static CUresult fake_cuDeviceGet(CUdevice *device, int ordinal)
{
    ENTER(cuDeviceGet, NULL);
    *device = ordinal;
    return ordinal < (int)number("FAKE_CUDA_DEVICES", 2) ? CUDA_SUCCESS : 101;
}

static CUresult fake_cuDeviceGetName(char *name, int cap, CUdevice device)
{
    ENTER(cuDeviceGetName, NULL);
    (void)device;
    snprintf(name, (size_t)cap, "Fake GPU");
    return CUDA_SUCCESS;
}

static CUresult fake_cuDeviceGetAttribute(int *value, CUdevice_attribute what, CUdevice device)
{
    (void)device;
    ENTER(cuDeviceGetAttribute, NULL);
    switch (what) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: *value = 49152; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 7; break;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT: *value = 3; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = (int)number("FAKE_CUDA_SM", 90) / 10; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = (int)number("FAKE_CUDA_SM", 90) % 10; break;
    default: fake_die("cuDeviceGetAttribute: %u is not one that is used here", what);
    }
    return CUDA_SUCCESS;
}

static CUresult fake_cuDeviceTotalMem(size_t *bytes, CUdevice device)
{
    (void)device;
    ENTER(cuDeviceTotalMem, NULL);
    *bytes = memory_total();
    return CUDA_SUCCESS;
}

static CUresult fake_cuDeviceGetPCIBusId(char *id, int cap, CUdevice device)
{
    ENTER(cuDeviceGetPCIBusId, NULL);
    snprintf(id, (size_t)cap, "0000:%02X:00.0", 0xA0 + device);
    return CUDA_SUCCESS;
}

static CUresult fake_cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    ENTER(cuDeviceGetUuid, NULL);
    memset(uuid->bytes, 0x40 + device, sizeof uuid->bytes);
    return CUDA_SUCCESS;
}

static CUresult fake_cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    ENTER(cuDeviceCanAccessPeer, NULL);
    *can = device != peer;
    return CUDA_SUCCESS;
}

static CUresult fake_cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    ENTER(cuDevicePrimaryCtxRetain, NULL);
    *context = &contexts[device];
    pthread_mutex_lock(&lock);
    if (!contexts[device].users++)
        live++;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

static CUresult fake_cuDevicePrimaryCtxRelease(CUdevice device)
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

static CUresult fake_cuCtxPushCurrent(CUcontext context)
{
    ENTER(cuCtxPushCurrent, NULL);
    if (thread.depth == STACK_MAX)
        fake_die("cuCtxPushCurrent: %d contexts pushed and none popped", STACK_MAX);
    if (!context || !context->users)
        fake_die("cuCtxPushCurrent: a context that was released");
    thread.stack[thread.depth++] = context;
    return CUDA_SUCCESS;
}

static CUresult fake_cuCtxPopCurrent(CUcontext *context)
{
    ENTER(cuCtxPopCurrent, NULL);
    if (!thread.depth)
        fake_die("cuCtxPopCurrent: nothing to pop");
    *context = thread.stack[--thread.depth];
    return CUDA_SUCCESS;
}

static CUresult fake_cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
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

/* --- memory ----------------------------------------------------------------------------------- */

static CUresult fake_cuMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    CUcontext context;
    ENTER(cuMemGetInfo, &context);
    *total_bytes = memory_total();
    *free_bytes = *total_bytes - context->used;
    return CUDA_SUCCESS;
}

/* The end of the memory is the end of a page, and what follows cannot be touched; the start is aligned to 256 bytes. */
static block *block_make(CUcontext context, size_t bytes, bool host)
{
    size_t rounded = (bytes + 255) & ~(size_t)255, page = (size_t)sysconf(_SC_PAGESIZE);
    size_t inside = (rounded + page - 1) & ~(page - 1);
    unsigned char *map = mmap(NULL, inside + page, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED)
        return NULL;
    mprotect(map + inside, page, PROT_NONE);
    block *of = calloc(1, sizeof *of);
    *of = (block){ NULL, context, map + (inside - rounded), bytes, inside + page, host };
    if (bytes < (1 << 20))
        memset(of->base, 0xa5, bytes);
    pthread_mutex_lock(&lock);
    of->next = blocks;
    blocks = of;
    context->live++;
    live++;
    if (!host)
        context->used += bytes;
    pthread_mutex_unlock(&lock);
    return of;
}

static block *block_of(const void *address, size_t bytes)
{
    const unsigned char *at = address;
    for (block *of = blocks; of; of = of->next)
        if (at >= of->base && at + bytes <= of->base + of->bytes)
            return of;
    return NULL;
}

static void block_free(const char *call, const void *base, bool host, CUcontext context)
{
    pthread_mutex_lock(&lock);
    block **at = &blocks;
    while (*at && (*at)->base != base)
        at = &(*at)->next;
    block *of = *at;
    if (!of || of->host != host)
        fake_die("%s: %p was not allocated, or was freed before", call, base);
    if (!host)
        own("memory", of->context, context);
    *at = of->next;
    of->context->live--;
    live--;
    if (!host)
        of->context->used -= of->bytes;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    munmap((void *)((uintptr_t)of->base & ~(page - 1)), of->mapped);
    free(of);
    pthread_mutex_unlock(&lock);
}

static unsigned char *device_memory(const char *call, CUdeviceptr address, size_t bytes, CUcontext context)
{
    pthread_mutex_lock(&lock);
    block *of = block_of((void *)address, bytes);
    if (!of || of->host)
        fake_die("%s: %zu bytes at %#llx are not all memory of a device", call, bytes, address);
    own("memory", of->context, context);
    pthread_mutex_unlock(&lock);
    return (unsigned char *)address;
}

static CUresult fake_cuMemAlloc(CUdeviceptr *address, size_t bytes)
{
    CUcontext context;
    ENTER(cuMemAlloc, &context);
    NO_CAPTURE();
    if (!bytes)
        return ERROR_INVALID_VALUE;
    if (bytes > memory_total() - context->used)
        return CUDA_ERROR_OUT_OF_MEMORY;
    block *of = block_make(context, bytes, false);
    if (!of)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *address = (CUdeviceptr)of->base;
    return CUDA_SUCCESS;
}

static void idle_wait(CUcontext context);

static CUresult fake_cuMemFree(CUdeviceptr address)
{
    CUcontext context;
    ENTER(cuMemFree, &context);
    NO_CAPTURE();
    idle_wait(context);
    block_free("cuMemFree", (void *)address, false, context);
    return CUDA_SUCCESS;
}

static CUresult fake_cuMemHostAlloc(void **address, size_t bytes, unsigned int flags)
{
    CUcontext context;
    ENTER(cuMemHostAlloc, &context);
    NO_CAPTURE();
    if (flags != CU_MEMHOSTALLOC_PORTABLE || !bytes)
        return ERROR_INVALID_VALUE;
    block *of = block_make(context, (bytes + 4095) & ~(size_t)4095, true);
    if (!of)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *address = of->base;
    return CUDA_SUCCESS;
}

static CUresult fake_cuMemFreeHost(void *address)
{
    CUcontext context;
    ENTER(cuMemFreeHost, &context);
    NO_CAPTURE();
    idle_wait(context);
    block_free("cuMemFreeHost", address, true, context);
    return CUDA_SUCCESS;
}

/* --- streams: a thread each ------------------------------------------------------------------- */

static void work_free(work *of)
{
    free(of->copy);
    free(of->parameters);
    if (of->record && !--of->record->users)
        free(of->record);
    if (of->graph && !--of->graph->users) {
        while (of->graph->first) {
            work *next = of->graph->first->next;
            work_free(of->graph->first);
            of->graph->first = next;
        }
        free(of->graph);
    }
    free(of);
}

static void fill_run(const work *of)
{
    for (size_t i = 0; i < of->bytes; i += of->pattern_bytes)
        memcpy(of->to + i, &of->pattern, of->pattern_bytes);
}

/* A kernel, unless it is the one that is to fail: that ends the context or hangs until the machine is reset. */
static void kernel_run(CUcontext context, const work *of)
{
    void *parameters[PARAMETERS_MAX];
    unsigned char *at = of->parameters;
    pthread_mutex_lock(&lock);
    bool fails = kernel_fault && --kernel_fault == 0;
    unsigned generation = hang_generation;
    if (fails && kernel_error)
        context->error = kernel_error;
    while (fails && !kernel_error && generation == hang_generation)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    if (fails)
        return;
    for (unsigned i = 0; i < of->kernel->parameter_count; i++) {
        parameters[i] = at;
        if (of->kernel->pointers[i] && *(void **)at) {
            pthread_mutex_lock(&lock);
            block *memory = block_of(*(void **)at, 1);
            if (!memory || memory->host || memory->context != context)
                fake_die("%s: parameter %u is no memory of this device any more", of->kernel->name, i);
            pthread_mutex_unlock(&lock);
        }
        at += (of->kernel->sizes[i] + 15) & ~(uint64_t)15;
    }
    fake_kernel_run(of->kernel, of->grid, of->block, parameters);
}

static void work_run(CUstream stream, work *of)
{
    switch (of->kind) {
    case COPY: memcpy(of->to, of->copy ? of->copy : of->from, of->bytes); break;
    case FILL: fill_run(of); break;
    case KERNEL: kernel_run(stream->context, of); break;
    case CALL: of->call(of->parameters); break;
    case GRAPH:
        for (work *at = of->graph->first; at && !stream->context->error; at = at->next)
            work_run(stream, at);
        break;
    default: break;
    }
}

static void *stream_main(void *user)
{
    CUstream stream = user;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!stream->first && !stream->over)
            pthread_cond_wait(&changed, &lock);
        work *now = stream->first;
        if (!now)
            break;
        stream->busy = true;
        while (now->kind == WAIT && !now->record->done && !stream->context->error)
            pthread_cond_wait(&changed, &lock);
        if (!stream->context->error && now->kind != WAIT && now->kind != RECORD) {
            pthread_mutex_unlock(&lock);
            work_run(stream, now);
            pthread_mutex_lock(&lock);
        }
        if (now->kind == RECORD) {
            now->record->done = true;
            now->record->time_ms = now_ms();
        }
        stream->first = now->next;
        if (!stream->first)
            stream->end = &stream->first;
        stream->busy = stream->first != NULL;
        work_free(now);
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* Under lock. A capturing stream's work goes to its graph. */
static void append(CUstream stream, work of)
{
    work *copy = malloc(sizeof *copy);
    *copy = of;
    copy->next = NULL;
    if (stream->capture) {
        *stream->capture->end = copy;
        stream->capture->end = &copy->next;
        return;
    }
    if (!stream->first)
        stream->end = &stream->first;
    *stream->end = copy;
    stream->end = &copy->next;
    stream->busy = true;
    pthread_cond_broadcast(&changed);
}

static void enqueue(CUstream stream, CUcontext context, work of)
{
    if (!stream)
        fake_die("the default stream, which is the host application's");
    own("a stream", stream->context, context);
    pthread_mutex_lock(&lock);
    append(stream, of);
    pthread_mutex_unlock(&lock);
}

/* All streams of a context are threads of this list. */
static CUstream streams[STREAMS_MAX];

static void idle_wait(CUcontext context)
{
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < STREAMS_MAX; i++)
        while (streams[i] && streams[i]->context == context && streams[i]->busy && !context->error)
            pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static CUresult fake_cuStreamCreate(CUstream *stream, unsigned int flags)
{
    CUcontext context;
    unsigned slot = 0;
    ENTER(cuStreamCreate, &context);
    if (flags != CU_STREAM_NON_BLOCKING)
        return ERROR_INVALID_VALUE;
    CUstream of = calloc(1, sizeof *of);
    of->context = context;
    of->end = &of->first;
    pthread_mutex_lock(&lock);
    while (slot < STREAMS_MAX && streams[slot])
        slot++;
    if (slot == STREAMS_MAX)
        fake_die("cuStreamCreate: more than %d streams", STREAMS_MAX);
    streams[slot] = of;
    pthread_mutex_unlock(&lock);
    if (pthread_create(&of->thread, NULL, stream_main, of))
        fake_die("cuStreamCreate: no thread");
    made(context, 1);
    *stream = of;
    return CUDA_SUCCESS;
}

static CUresult fake_cuStreamDestroy(CUstream stream)
{
    CUcontext context;
    ENTER(cuStreamDestroy, &context);
    own("a stream", stream->context, context);
    pthread_mutex_lock(&lock);
    if (stream->capture)
        fake_die("cuStreamDestroy: the stream captures");
    stream->over = true;
    for (unsigned i = 0; i < STREAMS_MAX; i++)
        if (streams[i] == stream)
            streams[i] = NULL;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(stream->thread, NULL);
    free(stream);
    made(context, -1);
    return CUDA_SUCCESS;
}

static CUresult fake_cuStreamQuery(CUstream stream)
{
    CUcontext context;
    ENTER(cuStreamQuery, &context);
    own("a stream", stream->context, context);
    if (stream->capture) {
        stream->capture_broken = true;
        return ERROR_CAPTURE_UNSUPPORTED;
    }
    pthread_mutex_lock(&lock);
    CUresult answer = context->error ? context->error : stream->busy ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
    pthread_mutex_unlock(&lock);
    return answer;
}

/* What a fake library computes keeps its place in the stream, or in the graph that the stream captures. */
FAKE_API void fake_cuda_call(void *stream, void (*call)(void *data), const void *data, size_t bytes)
{
    CUcontext context = thread.depth ? thread.stack[thread.depth - 1] : NULL;
    work of = { .kind = CALL, .call = call, .parameters = malloc(bytes) };
    if (!context)
        fake_die("a library is called without a context");
    memcpy(of.parameters, data, bytes);
    enqueue(stream, context, of);
}

FAKE_API bool fake_cuda_capturing(void)
{
    return thread.capturing != NULL;
}

/* --- copies and fills ------------------------------------------------------------------------- */

/* Page-locked memory is read when its turn comes, anything else now. */
static CUresult fake_cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    CUcontext context;
    ENTER(cuMemcpyHtoDAsync, &context);
    work of = { .kind = COPY, .bytes = bytes, .from = from,
                .to = device_memory("cuMemcpyHtoDAsync", to, bytes, context) };
    pthread_mutex_lock(&lock);
    bool pinned = block_of(from, bytes) != NULL;
    pthread_mutex_unlock(&lock);
    if (!pinned) {
        NO_CAPTURE();
        of.copy = malloc(bytes);
        memcpy(of.copy, from, bytes);
    }
    enqueue(stream, context, of);
    return CUDA_SUCCESS;
}

/* To memory that is not page-locked the call returns when the copy is done. */
static CUresult fake_cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    CUcontext context;
    ENTER(cuMemcpyDtoHAsync, &context);
    work of = { .kind = COPY, .bytes = bytes, .to = to,
                .from = device_memory("cuMemcpyDtoHAsync", from, bytes, context) };
    pthread_mutex_lock(&lock);
    bool pinned = block_of(to, bytes) != NULL;
    pthread_mutex_unlock(&lock);
    if (!pinned)
        NO_CAPTURE();
    enqueue(stream, context, of);
    pthread_mutex_lock(&lock);
    while (!pinned && stream->busy && !context->error)
        pthread_cond_wait(&changed, &lock);
    CUresult answer = context->error;
    pthread_mutex_unlock(&lock);
    return answer;
}

static CUresult fake_cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    CUcontext context;
    ENTER(cuMemcpyDtoDAsync, &context);
    enqueue(stream, context, (work){ .kind = COPY, .bytes = bytes,
                                     .to = device_memory("cuMemcpyDtoDAsync", to, bytes, context),
                                     .from = device_memory("cuMemcpyDtoDAsync", from, bytes, context) });
    return CUDA_SUCCESS;
}

static CUresult fake_cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                                       CUcontext from_context, size_t bytes,
                                       CUstream stream)
{
    CUcontext context;
    ENTER(cuMemcpyPeerAsync, &context);
    enqueue(stream, context, (work){ .kind = COPY, .bytes = bytes,
                                     .to = device_memory("cuMemcpyPeerAsync", to, bytes, to_context),
                                     .from = device_memory("cuMemcpyPeerAsync", from, bytes, from_context) });
    return CUDA_SUCCESS;
}

static CUresult fill(const char *call, CUdeviceptr to, unsigned pattern, unsigned pattern_bytes,
                     size_t count, CUstream stream,
                     CUcontext context)
{
    if (to % pattern_bytes)
        return ERROR_INVALID_VALUE;
    enqueue(stream, context, (work){ .kind = FILL, .bytes = count * pattern_bytes,
                                     .pattern = pattern, .pattern_bytes = pattern_bytes,
                                     .to = device_memory(call, to, count * pattern_bytes, context) });
    return CUDA_SUCCESS;
}

static CUresult fake_cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream)
{
    CUcontext context;
    ENTER(cuMemsetD8Async, &context);
    return fill("cuMemsetD8Async", to, value, 1, count, stream, context);
}

static CUresult fake_cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream)
{
    CUcontext context;
    ENTER(cuMemsetD16Async, &context);
    return fill("cuMemsetD16Async", to, value, 2, count, stream, context);
}

static CUresult fake_cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream)
{
    CUcontext context;
    ENTER(cuMemsetD32Async, &context);
    return fill("cuMemsetD32Async", to, value, 4, count, stream, context);
}

/* --- events ----------------------------------------------------------------------------------- */

static CUresult fake_cuEventCreate(CUevent *event, unsigned int flags)
{
    CUcontext context;
    ENTER(cuEventCreate, &context);
    if (flags & ~(unsigned)CU_EVENT_DISABLE_TIMING)
        return ERROR_INVALID_VALUE;
    *event = calloc(1, sizeof **event);
    (*event)->context = context;
    (*event)->timing = !flags;
    made(context, 1);
    return CUDA_SUCCESS;
}

static CUresult fake_cuEventDestroy(CUevent event)
{
    CUcontext context;
    ENTER(cuEventDestroy, &context);
    own("an event", event->context, context);
    pthread_mutex_lock(&lock);
    if (event->latest && !--event->latest->users)
        free(event->latest);
    pthread_mutex_unlock(&lock);
    free(event);
    made(context, -1);
    return CUDA_SUCCESS;
}

static CUresult fake_cuEventRecord(CUevent event, CUstream stream)
{
    CUcontext context;
    ENTER(cuEventRecord, &context);
    own("an event", event->context, context);
    own("a stream", stream->context, context);
    pthread_mutex_lock(&lock);
    if (event->latest && !--event->latest->users)
        free(event->latest);
    event->latest = calloc(1, sizeof *event->latest);
    event->latest->users = 2;
    append(stream, (work){ .kind = RECORD, .record = event->latest });
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

static CUresult fake_cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
    CUcontext context;
    ENTER(cuStreamWaitEvent, &context);
    own("a stream", stream->context, context);
    if (flags)
        return ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    if (event->latest) {
        event->latest->users++;
        append(stream, (work){ .kind = WAIT, .record = event->latest });
    }
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

/* As the real one: what was never recorded has happened. */
static CUresult fake_cuEventQuery(CUevent event)
{
    CUcontext context;
    ENTER(cuEventQuery, &context);
    own("an event", event->context, context);
    pthread_mutex_lock(&lock);
    CUresult answer = context->error ? context->error : !event->latest ||
        event->latest->done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
    pthread_mutex_unlock(&lock);
    return answer;
}

static CUresult fake_cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
    CUcontext context;
    ENTER(cuEventElapsedTime, &context);
    if (!start->timing || !end->timing || !start->latest || !end->latest)
        return 400;  /* CUDA_ERROR_INVALID_HANDLE */
    pthread_mutex_lock(&lock);
    bool done = start->latest->done && end->latest->done;
    *milliseconds = (float)(end->latest->time_ms - start->latest->time_ms);
    pthread_mutex_unlock(&lock);
    return done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

/* --- modules and kernels ---------------------------------------------------------------------- */

static bool same_bytes(const char *path, const void *image)
{
    unsigned char part[4096];
    const unsigned char *at = image;
    FILE *file = fopen(path, "rb");
    bool same = file != NULL;
    size_t got;
    while (same && (got = fread(part, 1, sizeof part, file))) {
        same = !memcmp(part, at, got);
        at += got;
    }
    if (file)
        fclose(file);
    return same;
}

/* nvcc's machine code: the file of the build that holds the same, and its source. NULL: none. */
static void *object_of(const void *image, uint64_t *bytes)
{
    const char *folder = getenv("FAKE_CUDA_KERNELS"), *sources = getenv("FAKE_CUDA_SOURCES");
    DIR *open = folder ? opendir(folder) : NULL;
    char path[1024], log[4096];
    void *object = NULL;
    for (struct dirent *entry; open && !object && (entry = readdir(open));) {
        size_t length = strlen(entry->d_name);
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (length < 8 || strcmp(entry->d_name + length - 7, ".fatbin") || !same_bytes(path, image))
            continue;
        strcpy(strrchr(path, '.'), ".cu");
        char text[1100];
        snprintf(text, sizeof text, "#include \"%s\"\n", path);
        object = fake_compile(text, sources ? sources : "", bytes, log, sizeof log);
        if (!object)
            fake_die("%s: %s", path, log);
    }
    if (open)
        closedir(open);
    return object;
}

static CUresult fake_cuModuleLoadData(CUmodule *module, const void *image)
{
    CUcontext context;
    ENTER(cuModuleLoadData, &context);
    NO_CAPTURE();
    const fake_image *head = image;
    int own_arch = (int)number("FAKE_CUDA_SM", 90);
    uint64_t bytes = 0;
    void *object = NULL;
    if (!memcmp(head->magic, "FAKECUBN", 8)) {
        if (head->arch / 10 != own_arch / 10 || head->arch > own_arch)
            return CUDA_ERROR_NO_BINARY_FOR_GPU;
    } else if (!memcmp(head->magic, "FAKEPTX", 8)) {
        if (head->arch > own_arch)
            return CUDA_ERROR_NO_BINARY_FOR_GPU;
    } else if (*(const uint32_t *)image == 0xba55ed50u) {
        object = object_of(image, &bytes);
        if (!object || own_arch < 75)
            return free(object), CUDA_ERROR_NO_BINARY_FOR_GPU;
    } else {
        return CUDA_ERROR_INVALID_IMAGE;
    }
    CUmodule of = calloc(1, sizeof *of);
    of->context = context;
    of->module = object ? fake_module_load(object, bytes) : fake_module_load(head + 1, head->bytes);
    free(object);
    if (!of->module) {
        free(of);
        return CUDA_ERROR_INVALID_IMAGE;
    }
    made(context, 1);
    *module = of;
    return CUDA_SUCCESS;
}

static CUresult fake_cuModuleUnload(CUmodule module)
{
    CUcontext context;
    ENTER(cuModuleUnload, &context);
    NO_CAPTURE();
    own("a module", module->context, context);
    idle_wait(context);
    while (module->functions) {
        CUfunction next = module->functions->next;
        free(module->functions);
        module->functions = next;
    }
    fake_module_free(module->module);
    free(module);
    made(context, -1);
    return CUDA_SUCCESS;
}

static CUresult fake_cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    CUcontext context;
    ENTER(cuModuleGetFunction, &context);
    own("a module", module->context, context);
    fake_kernel *kernel = fake_module_kernel(module->module, name);
    if (!kernel)
        return ERROR_NOT_FOUND;
    CUfunction of = calloc(1, sizeof *of);
    *of = (struct CUfunc_st){ module, kernel, module->functions };
    for (CUfunction at = module->functions; at; at = at->next)
        if (at->kernel == kernel) {
            free(of);
            *function = at;  /* the same handle each time, as the driver's */
            return CUDA_SUCCESS;
        }
    module->functions = of;
    *function = of;
    return CUDA_SUCCESS;
}

static CUresult fake_cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                                    unsigned int block_x, unsigned int block_y,
                                    unsigned int block_z, unsigned int shared_bytes,
                                    CUstream stream, void **parameters, void **extra)
{
    CUcontext context;
    ENTER(cuLaunchKernel, &context);
    fake_kernel *kernel = function->kernel;
    own("a module", function->module->context, context);
    if (!grid_x || grid_x > INT32_MAX || !grid_y || grid_y > 65535 || !grid_z || grid_z > 65535 ||
        !block_x || !block_y || !block_z ||
        block_x > 1024 || block_y > 1024 || block_z > 64 ||
        (uint64_t)block_x * block_y * block_z > 1024 || shared_bytes || extra)
        return ERROR_INVALID_VALUE;
    if (stream->capture && !kernel->launched)
        fake_die("%s: its first launch is inside a capture", kernel->name);
    uint64_t bytes = 0;
    for (unsigned i = 0; i < kernel->parameter_count; i++)
        bytes += (kernel->sizes[i] + 15) & ~(uint64_t)15;
    if (bytes > 4096)
        fake_die("%s: %llu bytes of parameters", kernel->name, (unsigned long long)bytes);
    unsigned char *copy = aligned_alloc(16, bytes + 16), *at = copy;
    for (unsigned i = 0; i < kernel->parameter_count; i++) {
        memcpy(at, parameters[i], kernel->sizes[i]);
        at += (kernel->sizes[i] + 15) & ~(uint64_t)15;
    }
    kernel->launched = true;
    enqueue(stream, context, (work){ .kind = KERNEL, .kernel = kernel, .grid = { grid_x, grid_y, grid_z },
                                     .block = { block_x, block_y, block_z }, .parameters = copy });
    return CUDA_SUCCESS;
}

/* --- graphs ----------------------------------------------------------------------------------- */

static CUresult fake_cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode)
{
    CUcontext context;
    ENTER(cuStreamBeginCapture, &context);
    own("a stream", stream->context, context);
    if (mode != CU_STREAM_CAPTURE_MODE_THREAD_LOCAL || thread.capturing || stream->capture || stream->busy)
        return ERROR_INVALID_VALUE;
    stream->capture = calloc(1, sizeof *stream->capture);
    stream->capture->context = context;
    stream->capture->end = &stream->capture->first;
    stream->capture_broken = false;
    thread.capturing = stream;
    made(context, 1);
    return CUDA_SUCCESS;
}

static CUresult fake_cuGraphDestroy(CUgraph graph);

static CUresult fake_cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    CUcontext context;
    uint32_t error = enter(CALL_cuStreamEndCapture, &context);
    if (!stream->capture || thread.capturing != stream)
        fake_die("cuStreamEndCapture: not in the thread and stream that began");
    *graph = stream->capture;
    stream->capture = NULL;
    thread.capturing = NULL;
    if (error || stream->capture_broken) {
        (void)fake_cuGraphDestroy(*graph);
        *graph = NULL;
    }
    return error ? error : stream->capture_broken ? ERROR_CAPTURE_INVALIDATED : CUDA_SUCCESS;
}

static CUresult fake_cuGraphDestroy(CUgraph graph)
{
    CUcontext context;
    ENTER(cuGraphDestroy, &context);
    while (graph->first) {
        work *next = graph->first->next;
        work_free(graph->first);
        graph->first = next;
    }
    free(graph);
    made(context, -1);
    return CUDA_SUCCESS;
}

static CUresult fake_cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    CUcontext context;
    ENTER(cuGraphInstantiateWithFlags, &context);
    if (flags)
        return ERROR_INVALID_VALUE;
    *exec = calloc(1, sizeof **exec);
    (*exec)->context = context;
    (*exec)->users = 1;
    (*exec)->first = graph->first;  /* as far as anyone can tell, a copy */
    graph->first = NULL;
    made(context, 1);
    return CUDA_SUCCESS;
}

static CUresult fake_cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    CUcontext context;
    ENTER(cuGraphLaunch, &context);
    own("a graph", exec->context, context);
    pthread_mutex_lock(&lock);
    exec->users++;
    pthread_mutex_unlock(&lock);
    enqueue(stream, context, (work){ .kind = GRAPH, .graph = exec });
    return CUDA_SUCCESS;
}

static CUresult fake_cuGraphExecDestroy(CUgraphExec exec)
{
    CUcontext context;
    ENTER(cuGraphExecDestroy, &context);
    own("a graph", exec->context, context);
    pthread_mutex_lock(&lock);
    work *handle = calloc(1, sizeof *handle);
    handle->graph = exec;
    work_free(handle);
    pthread_mutex_unlock(&lock);
    made(context, -1);
    return CUDA_SUCCESS;
}

/* --- the door --------------------------------------------------------------------------------- */

FAKE_API CUresult cuGetProcAddress_v2(const char *symbol, void **address, int version, uint64_t flags, uint32_t *how)
{
    static const struct { const char *name; int version; void *address; } table[] = {
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

FAKE_API unsigned fake_cuda_calls(const char *function)
{
    return calls[call_find(function)];
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
    pthread_mutex_lock(&lock);
    hang_generation++;
    for (unsigned i = 0; i < DEVICES_MAX; i++)
        contexts[i].error = ERROR_INVALID_CONTEXT;  /* what is queued runs dry */
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
