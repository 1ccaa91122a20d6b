/* SPDX-License-Identifier: MIT
 *
 * memory.c - device memory that is really there: held against what is left, then touched.
 *
 * Where the device lives in host memory and shares it fine-grained, a buffer stands on memory that
 * both sides may use without mapping; elsewhere mem_map is the way in.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "backends/common/command.h"
#include "backends/host/pages.h"
#include "backends/opencl/opencl.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

/* Drivers align to their largest vector at best, so the alignment is made here: of large memory to large pages. */
static cek_status shared_alloc(opencl_dev *dev, opencl_mem *mem, uint64_t rounded)
{
    uint64_t align = rounded >= CEK__HUGE_PAGE_BYTES ? CEK__HUGE_PAGE_BYTES : CEK_ALIGNMENT;
    cl_int error;
    mem->block = clSVMAlloc(dev->context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, rounded + align, 0);
    if (!mem->block)
        return cek__opencl_fail(dev, "mem_alloc", "clSVMAlloc", CL_MEM_OBJECT_ALLOCATION_FAILURE);
    mem->shared = (unsigned char *)(((uintptr_t)mem->block + align - 1) & ~(uintptr_t)(align - 1));
    mem->buffer = clCreateBuffer(dev->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, rounded, mem->shared, &error);
    if (!mem->buffer)
        return cek__opencl_fail(dev, "mem_alloc", "clCreateBuffer", error);
    if (align == CEK__HUGE_PAGE_BYTES) {
        (void)madvise(mem->shared, rounded & ~(align - 1), MADV_HUGEPAGE); /* a wish, and a faster way to touch */
        (void)madvise(mem->shared, rounded & ~(align - 1), MADV_POPULATE_WRITE);
    }
    cek__pages_touch(mem->shared, rounded);
    return CEK_OK;
}

/* A buffer of the driver's, filled once so that it exists. */
static cek_status plain_alloc(opencl_dev *dev, opencl_mem *mem, uint64_t rounded)
{
    cl_int error;
    const cl_uint zero = 0;
    mem->buffer = clCreateBuffer(dev->context, CL_MEM_READ_WRITE, rounded, NULL, &error);
    if (!mem->buffer)
        return cek__opencl_fail(dev, "mem_alloc", "clCreateBuffer", error);
    cek_queue *queue;
    cek_status st = cek__opencl_own_take(dev, &queue);
    if (st)
        return st;
    cl_event event = NULL;
    error = clEnqueueFillBuffer(queue->queue, mem->buffer, &zero, sizeof zero, 0, rounded, 0, NULL, &event);
    if (error) {
        st = cek__opencl_fail(dev, "mem_alloc", "clEnqueueFillBuffer", error);
    } else {
        cek__opencl_enqueued(queue, event, "mem_alloc", NULL);
        st = cek__opencl_queue_sync(queue, UINT64_C(60000000000));
        if (st && st != CEK_DEVICE_LOST)
            st = cek__host_fail(&dev->head.instance->host, CEK_OUT_OF_MEMORY,
                                "mem_alloc: %llu bytes could not be filled", (unsigned long long)rounded);
    }
    cek__opencl_own_give(dev, st);
    return st;
}

cek_status cek__opencl_mem_alloc(cek_dev *head, const cek_mem_desc *desc, cek_mem **out)
{
    opencl_dev *dev = (opencl_dev *)head;
    opencl_instance *instance = (opencl_instance *)head->instance;
    uint64_t bytes, free_bytes = CEK_UNKNOWN, total_bytes = CEK_UNKNOWN;
    *out = NULL;
    cek_status st = cek__gpu_ready(head, "mem_alloc");
    if (!st)
        st = cek__mem_desc_in(&head->instance->host, desc, &bytes);
    if (st)
        return st;
    if (bytes > dev->max_alloc_bytes)
        return cek__host_fail(&head->instance->host, CEK_OUT_OF_MEMORY,
                              "mem_alloc: %llu bytes, but the driver gives %llu at once", (unsigned long long)bytes,
                              (unsigned long long)dev->max_alloc_bytes);
    opencl_mem *mem = calloc(1, sizeof *mem);
    if (!mem)
        return cek__host_fail(&head->instance->host, CEK_OUT_OF_MEMORY, "mem_alloc: no memory for the handle");
    mem->head = (cek_mem){ head, bytes };
    mem->generation = atomic_fetch_add(&dev->generations, 1) + CEK__GENERATION_FIRST;
    uint64_t rounded = (bytes + CEK_ALIGNMENT - 1) & ~(uint64_t)(CEK_ALIGNMENT - 1);
    if (dev->host_memory)
        pthread_mutex_lock(&instance->allocation);
    /* a look at the system costs more than small memory is worth: the reserve covers it */
    if (dev->host_memory && bytes >= 65536)
        cek__host_memory(&free_bytes, &total_bytes);
    if (rounded > free_bytes)
        st = cek__host_fail(&head->instance->host, CEK_OUT_OF_MEMORY,
                            "mem_alloc: %llu bytes, but %llu of %llu are free", (unsigned long long)bytes,
                            (unsigned long long)free_bytes, (unsigned long long)total_bytes);
    else
        st = dev->fine_grained ? shared_alloc(dev, mem, rounded) : plain_alloc(dev, mem, rounded);
    if (dev->host_memory)
        pthread_mutex_unlock(&instance->allocation);
    if (st) {
        cek__opencl_mem_free(&mem->head);
        return st;
    }
    *out = &mem->head;
    return CEK_OK;
}

void cek__opencl_mem_free(cek_mem *head)
{
    opencl_mem *mem = (opencl_mem *)head;
    if (!mem)
        return;
    /* Work on a lost device may still write here: then the memory is left to the driver. */
    if (!cek__latched(&head->dev->lost)) {
        if (mem->buffer)
            clReleaseMemObject(mem->buffer);
        if (mem->block)
            clSVMFree(((opencl_dev *)head->dev)->context, mem->block);
    }
    free(mem);
}

void *cek__opencl_mem_host_ptr(cek_mem *mem)
{
    return ((opencl_mem *)mem)->shared;
}

/* Maps and unmaps on the device's own queue, waited for: no work on this memory is queued. */
static cek_status map_sync(opencl_dev *dev, const char *call, opencl_mem *mem, cl_map_flags flags, bool unmap)
{
    cek_queue *queue;
    cl_event event = NULL;
    cl_int error = CL_SUCCESS;
    cek_status st = cek__opencl_own_take(dev, &queue);
    if (st)
        return st;
    if (unmap)
        error = clEnqueueUnmapMemObject(queue->queue, mem->buffer, mem->map, 0, NULL, &event);
    else
        mem->map = clEnqueueMapBuffer(queue->queue, mem->buffer, CL_FALSE, flags, 0, mem->head.bytes, 0, NULL, &event,
                                      &error);
    if (error) {
        st = cek__opencl_fail(dev, call, unmap ? "clEnqueueUnmapMemObject" : "clEnqueueMapBuffer", error);
    } else {
        cek__opencl_enqueued(queue, event, call, NULL);
        st = cek__opencl_queue_sync(queue, CEK_FOREVER);
    }
    cek__opencl_own_give(dev, st);
    return st;
}

cek_status cek__opencl_mem_map(cek_mem *head, uint32_t access, void **out)
{
    opencl_mem *mem = (opencl_mem *)head;
    opencl_dev *dev = (opencl_dev *)head->dev;
    const cek_host *host = &head->dev->instance->host;
    *out = NULL;
    cek_status st = cek__gpu_ready(head->dev, "mem_map");
    if (st)
        return st;
    if (access & ~(uint32_t)(CEK_MAP_READ | CEK_MAP_WRITE))
        return cek__host_fail(host, CEK_UNSUPPORTED, "mem_map: unknown access %#x", access);
    if (!access)
        return cek__host_fail(host, CEK_INVALID, "mem_map: neither read nor write");
    if (atomic_exchange(&mem->mapped, true))
        return cek__host_fail(host, CEK_INVALID, "mem_map: the memory is mapped already");
    if (mem->shared)
        mem->map = mem->shared;
    else
        st = map_sync(dev, "mem_map", mem,
                      access == CEK_MAP_WRITE
                          ? CL_MAP_WRITE_INVALIDATE_REGION
                          : (access & CEK_MAP_READ ? CL_MAP_READ : 0) | (access & CEK_MAP_WRITE ? CL_MAP_WRITE : 0),
                      false);
    if (st)
        atomic_store(&mem->mapped, false);
    else
        *out = mem->map;
    return st;
}

cek_status cek__opencl_mem_unmap(cek_mem *head)
{
    opencl_mem *mem = (opencl_mem *)head;
    cek_status st = cek__gpu_ready(head->dev, "mem_unmap");
    if (st)
        return st;
    if (!atomic_load(&mem->mapped))
        return cek__host_fail(&head->dev->instance->host, CEK_INVALID, "mem_unmap: the memory is not mapped");
    if (!mem->shared)
        st = map_sync((opencl_dev *)head->dev, "mem_unmap", mem, 0, true);
    if (!st)
        atomic_store(&mem->mapped, false);
    return st;
}

/* --- host memory for copies ------------------------------------------------------------------- */

/* Page-locked memory is a buffer of the driver's, mapped for as long as it lives. */
struct pinned_block {
    pinned_block *next;
    void *given; /* in it: drivers align less than plugin.h says */
    opencl_mem mem;
};

cek_status cek__opencl_pinned_alloc(opencl_dev *dev, const char *call, uint64_t bytes, void **out)
{
    const cek_host *host = &dev->head.instance->host;
    cl_int error;
    *out = NULL;
    pinned_block *block = calloc(1, sizeof *block);
    if (!block)
        return cek__host_fail(host, CEK_OUT_OF_MEMORY, "%s: no memory for the handle", call);
    block->mem.head = (cek_mem){ &dev->head, bytes + CEK_ALIGNMENT };
    block->mem.buffer = clCreateBuffer(dev->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, block->mem.head.bytes,
                                       NULL, &error);
    cek_status st = block->mem.buffer ? map_sync(dev, call, &block->mem, CL_MAP_READ | CL_MAP_WRITE, false)
                                      : cek__opencl_fail(dev, call, "clCreateBuffer", error);
    if (st) {
        if (block->mem.buffer)
            clReleaseMemObject(block->mem.buffer);
        free(block);
        return st;
    }
    block->given = (void *)(((uintptr_t)block->mem.map + CEK_ALIGNMENT - 1) & ~(uintptr_t)(CEK_ALIGNMENT - 1));
    pthread_mutex_lock(&dev->programs_lock);
    block->next = dev->pinned;
    dev->pinned = block;
    pthread_mutex_unlock(&dev->programs_lock);
    *out = block->given;
    return CEK_OK;
}

cek_status cek__opencl_host_alloc(cek_dev *head, uint64_t bytes, void **out)
{
    opencl_dev *dev = (opencl_dev *)head;
    const cek_host *host = &head->instance->host;
    *out = NULL;
    cek_status st = cek__gpu_ready(head, "host_alloc");
    if (!st)
        st = cek__host_room_check(host, "host_alloc", bytes);
    if (st)
        return st;
    uint64_t rounded = (bytes + CEK_ALIGNMENT - 1) & ~(uint64_t)(CEK_ALIGNMENT - 1);
    if (dev->pins)
        return cek__opencl_pinned_alloc(dev, "host_alloc", rounded, out);
    *out = aligned_alloc(CEK_ALIGNMENT, rounded); /* there is no bus to be fast on */
    if (!*out)
        return cek__host_fail(host, CEK_OUT_OF_MEMORY, "host_alloc: %llu bytes", (unsigned long long)bytes);
    cek__pages_touch(*out, rounded);
    return CEK_OK;
}

static void block_free(opencl_dev *dev, pinned_block *block)
{
    if (!cek__latched(&dev->head.lost)) {
        (void)map_sync(dev, "host_free", &block->mem, 0, true);
        clReleaseMemObject(block->mem.buffer);
    }
    free(block);
}

void cek__opencl_host_free(cek_dev *head, void *ptr)
{
    opencl_dev *dev = (opencl_dev *)head;
    if (!ptr)
        return;
    if (!dev->pins) {
        free(ptr);
        return;
    }
    pthread_mutex_lock(&dev->programs_lock);
    pinned_block **at = &dev->pinned;
    while (*at && (*at)->given != ptr)
        at = &(*at)->next;
    pinned_block *block = *at;
    if (block)
        *at = block->next;
    pthread_mutex_unlock(&dev->programs_lock);
    if (block)
        block_free(dev, block);
}

void cek__opencl_pinned_free(opencl_dev *dev)
{
    while (dev->pinned) {
        pinned_block *block = dev->pinned;
        dev->pinned = block->next;
        block_free(dev, block);
    }
}
