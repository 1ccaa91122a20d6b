/* SPDX-License-Identifier: MIT
 *
 * memory.c - device memory and page-locked host memory.
 */
#include <stdlib.h>

#include "backends/common/command.h"
#include "backends/cuda/cuda.h"
#include "backends/host/pages.h"

cek_status cek__cuda_mem_alloc(cek_dev *head, const cek_mem_desc *desc, cek_mem **out)
{
    cuda_dev *dev = (cuda_dev *)head;
    const cek_host *host = &head->instance->host;
    uint64_t bytes;
    *out = NULL;
    cek_status st = cek__gpu_ready(head, "mem_alloc");
    if (!st)
        st = cek__mem_desc_in(&head->instance->host, desc, &bytes);
    if (st)
        return st;
    cuda_mem *mem = calloc(1, sizeof *mem);
    if (!mem)
        return cek__host_fail(host, CEK_OUT_OF_MEMORY, "mem_alloc: no memory for the handle");
    mem->head = (cek_mem){ head, bytes };
    st = cek__cuda_enter(dev, "mem_alloc");
    if (st) {
        free(mem);
        return st;
    }
    CUresult error = bytes > INT64_MAX ? CUDA_ERROR_OUT_OF_MEMORY
                                       : cek__cuda_api(dev)->cuMemAlloc(&mem->address, bytes);
    size_t now_free = 0, total = 0;
    if (error == CUDA_ERROR_OUT_OF_MEMORY)
        (void)cek__cuda_api(dev)->cuMemGetInfo(&now_free, &total);
    cek__cuda_leave(dev);
    if (error) {
        free(mem);
        if (error == CUDA_ERROR_OUT_OF_MEMORY)
            return cek__host_fail(host, CEK_OUT_OF_MEMORY, "mem_alloc: %llu bytes, but %zu of %zu are free",
                                  (unsigned long long)bytes, now_free, total);
        return cek__cuda_fail(dev, "mem_alloc", "cuMemAlloc", error);
    }
    *out = &mem->head;
    return CEK_OK;
}

/* Of a lost device the memory is gone with the context, or in use for ever. */
void cek__cuda_mem_free(cek_mem *head)
{
    if (!head)
        return;
    cuda_dev *dev = (cuda_dev *)head->dev;
    if (!cek__latched(&dev->head.lost) && !cek__cuda_enter(dev, "mem_free")) {
        CUresult error = cek__cuda_api(dev)->cuMemFree(((cuda_mem *)head)->address);
        cek__cuda_leave(dev);
        if (error)
            (void)cek__cuda_fail(dev, "mem_free", "cuMemFree", error);
    }
    free(head);
}

void *cek__cuda_mem_host_ptr(cek_mem *mem)
{
    (void)mem; /* device memory has no address of the host's */
    return NULL;
}

cek_status cek__cuda_host_alloc(cek_dev *head, uint64_t bytes, void **out)
{
    cuda_dev *dev = (cuda_dev *)head;
    const cek_host *host = &head->instance->host;
    *out = NULL;
    cek_status st = cek__gpu_ready(head, "host_alloc");
    if (!st)
        st = cek__host_room_check(host, "host_alloc", bytes);
    if (!st)
        st = cek__cuda_enter(dev, "host_alloc");
    if (st)
        return st;
    void *made = NULL; /* whole pages: aligned as it should be */
    CUresult error = cek__cuda_api(dev)->cuMemHostAlloc(&made, bytes, CU_MEMHOSTALLOC_PORTABLE);
    cek__cuda_leave(dev);
    if (error)
        return cek__cuda_fail(dev, "host_alloc", "cuMemHostAlloc", error);
    *out = made;
    return CEK_OK;
}

void cek__cuda_host_free(cek_dev *head, void *ptr)
{
    cuda_dev *dev = (cuda_dev *)head;
    if (!ptr || cek__latched(&head->lost) || cek__cuda_enter(dev, "host_free"))
        return;
    CUresult error = cek__cuda_api(dev)->cuMemFreeHost(ptr);
    cek__cuda_leave(dev);
    if (error)
        (void)cek__cuda_fail(dev, "host_free", "cuMemFreeHost", error);
}
