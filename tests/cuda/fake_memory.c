/* SPDX-License-Identifier: MIT
 *
 * fake_memory.c - the fake driver's memory, of devices and page-locked, and copies and fills.
 *
 * Every block ends where a page ends, with nothing behind it.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "tests/cuda/fake_cuda.h"

static block *blocks;

/* Bytes that a driver copies aside before the call returns; more it reads in pieces while the caller waits. */
enum { TAKEN_OVER = 64 << 10 };

/* --- memory ----------------------------------------------------------------------------------- */

CUresult fake_cuMemGetInfo(size_t *free_bytes, size_t *total_bytes)
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
    unsigned char *map = mmap(NULL, inside + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                              -1, 0);
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

block *block_of(const void *address, size_t bytes)
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
    if (of->mapped)
        munmap((void *)((uintptr_t)of->base & ~(page - 1)), of->mapped);
    free(of);
    pthread_mutex_unlock(&lock);
}

unsigned char *device_memory(const char *call, CUdeviceptr address, size_t bytes, CUcontext context)
{
    pthread_mutex_lock(&lock);
    block *of = block_of((void *)address, bytes);
    if (!of || of->host)
        fake_die("%s: %zu bytes at %#llx are not all memory of a device", call, bytes, address);
    own("memory", of->context, context);
    pthread_mutex_unlock(&lock);
    return (unsigned char *)address;
}

CUresult fake_cuMemAlloc(CUdeviceptr *address, size_t bytes)
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

CUresult fake_cuMemFree(CUdeviceptr address)
{
    CUcontext context;
    ENTER(cuMemFree, &context);
    NO_CAPTURE();
    idle_wait(context);
    block_free("cuMemFree", (void *)address, false, context);
    return CUDA_SUCCESS;
}

CUresult fake_cuMemHostAlloc(void **address, size_t bytes, unsigned int flags)
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

CUresult fake_cuMemFreeHost(void *address)
{
    CUcontext context;
    ENTER(cuMemFreeHost, &context);
    NO_CAPTURE();
    idle_wait(context);
    block_free("cuMemFreeHost", address, true, context);
    return CUDA_SUCCESS;
}

/* Memory of the program's, as it lies. A page is locked once. */
CUresult fake_cuMemHostRegister(void *address, size_t bytes, unsigned int flags)
{
    CUcontext context;
    ENTER(cuMemHostRegister, &context);
    NO_CAPTURE();
    if (flags != CU_MEMHOSTREGISTER_PORTABLE || !bytes)
        return ERROR_INVALID_VALUE;
    block *of = calloc(1, sizeof *of);
    *of = (block){ NULL, context, address, bytes, 0, true };
    pthread_mutex_lock(&lock);
    for (const block *other = blocks; other; other = other->next)
        if ((unsigned char *)address < other->base + other->bytes && other->base < (unsigned char *)address + bytes) {
            pthread_mutex_unlock(&lock);
            free(of);
            return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
        }
    of->next = blocks;
    blocks = of;
    context->live++;
    live++;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

void memory_forget(void)
{
    for (block **at = &blocks; *at;) {
        block *of = *at;
        if (of->mapped) {
            at = &of->next;
        } else {
            *at = of->next;
            free(of);
        }
    }
}

/* Whoever has given the memory back before ends here. */
CUresult fake_cuMemHostUnregister(void *address)
{
    CUcontext context;
    ENTER(cuMemHostUnregister, &context);
    NO_CAPTURE();
    idle_wait(context);
    pthread_mutex_lock(&lock);
    const block *of = block_of(address, 1);
    if (!of || !of->host || of->mapped)
        fake_die("cuMemHostUnregister: %p is not registered", address);
    for (size_t at = 0; at < of->bytes; at += 4096)
        (void)((volatile const unsigned char *)of->base)[at];
    pthread_mutex_unlock(&lock);
    block_free("cuMemHostUnregister", address, true, context);
    return CUDA_SUCCESS;
}

/* --- copies and fills ------------------------------------------------------------------------- */

/* Page-locked memory is read when its turn comes, anything else now. */
CUresult fake_cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    CUcontext context;
    ENTER(cuMemcpyHtoDAsync, &context);
    work of = {
        .kind = COPY, .bytes = bytes, .from = from, .to = device_memory("cuMemcpyHtoDAsync", to, bytes, context)
    };
    pthread_mutex_lock(&lock);
    bool pinned = block_of(from, bytes) != NULL;
    watch.uploads += bytes == watch.bytes;
    watch.waits += !pinned && bytes > TAKEN_OVER;
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
CUresult fake_cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    CUcontext context;
    ENTER(cuMemcpyDtoHAsync, &context);
    work of = {
        .kind = COPY, .bytes = bytes, .to = to, .from = device_memory("cuMemcpyDtoHAsync", from, bytes, context)
    };
    pthread_mutex_lock(&lock);
    bool pinned = block_of(to, bytes) != NULL;
    watch.waits += !pinned;
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

CUresult fake_cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    CUcontext context;
    ENTER(cuMemcpyDtoDAsync, &context);
    enqueue(stream, context,
            (work){ .kind = COPY,
                    .bytes = bytes,
                    .to = device_memory("cuMemcpyDtoDAsync", to, bytes, context),
                    .from = device_memory("cuMemcpyDtoDAsync", from, bytes, context) });
    return CUDA_SUCCESS;
}

CUresult fake_cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                                size_t bytes, CUstream stream)
{
    CUcontext context;
    ENTER(cuMemcpyPeerAsync, &context);
    enqueue(stream, context,
            (work){ .kind = COPY,
                    .bytes = bytes,
                    .to = device_memory("cuMemcpyPeerAsync", to, bytes, to_context),
                    .from = device_memory("cuMemcpyPeerAsync", from, bytes, from_context) });
    return CUDA_SUCCESS;
}

static CUresult fill(const char *call, CUdeviceptr to, unsigned pattern, unsigned pattern_bytes, size_t count,
                     CUstream stream, CUcontext context)
{
    if (to % pattern_bytes)
        return ERROR_INVALID_VALUE;
    enqueue(stream, context,
            (work){ .kind = FILL,
                    .bytes = count * pattern_bytes,
                    .pattern = pattern,
                    .pattern_bytes = pattern_bytes,
                    .to = device_memory(call, to, count * pattern_bytes, context) });
    return CUDA_SUCCESS;
}

CUresult fake_cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream)
{
    CUcontext context;
    ENTER(cuMemsetD8Async, &context);
    return fill("cuMemsetD8Async", to, value, 1, count, stream, context);
}

CUresult fake_cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream)
{
    CUcontext context;
    ENTER(cuMemsetD16Async, &context);
    return fill("cuMemsetD16Async", to, value, 2, count, stream, context);
}

CUresult fake_cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream)
{
    CUcontext context;
    ENTER(cuMemsetD32Async, &context);
    return fill("cuMemsetD32Async", to, value, 4, count, stream, context);
}
