/* SPDX-License-Identifier: MIT
 *
 * memory.c - device memory, page-locked host memory, and what of the host's is page-locked in place.
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

/* --- the host's memory, page-locked in place ------------------------------------------------------- */

/* Locked once, for all contexts: a driver refuses to lock a page twice. */
typedef struct cuda_range {
    struct cuda_range *next;
    void *at;
    uint64_t bytes;
    uint32_t users; /* devices */
} cuda_range;

static cuda_range **range_find(cuda_instance *instance, const void *at)
{
    cuda_range **found = &instance->ranges;
    while (*found && (*found)->at != at)
        found = &(*found)->next;
    return found;
}

/* What a system, or this memory, does not allow is no failure of the device's. */
static cek_status range_lock(cuda_dev *dev, void *at, uint64_t bytes)
{
    cek_status st = cek__cuda_enter(dev, "host_register");
    if (st)
        return st;
    CUresult error = cek__cuda_api(dev)->cuMemHostRegister(at, bytes, CU_MEMHOSTREGISTER_PORTABLE);
    cek__cuda_leave(dev);
    if (error == CUDA_ERROR_NOT_SUPPORTED || error == CUDA_ERROR_NOT_PERMITTED ||
        error == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED)
        return cek__host_fail(&dev->head.instance->host, CEK_UNSUPPORTED, "host_register: cuMemHostRegister: %s",
                              cek__cuda_error(cek__cuda_api(dev), error));
    return error ? cek__cuda_fail(dev, "host_register", "cuMemHostRegister", error) : CEK_OK;
}

cek_status cek__cuda_host_register(cek_dev *head, void *ptr, uint64_t bytes)
{
    cuda_instance *instance = cek__cuda_instance(head);
    const cek_host *host = &head->instance->host;
    cek_status st = cek__gpu_ready(head, "host_register");
    if (!st && !bytes)
        st = cek__host_fail(host, CEK_INVALID, "host_register: 0 bytes");
    if (st)
        return st;
    pthread_mutex_lock(&instance->ranges_lock);
    cuda_range *range = *range_find(instance, ptr);
    if (range && range->bytes != bytes) {
        st = cek__host_fail(host, CEK_INVALID, "host_register: %llu bytes are registered there, not %llu",
                            (unsigned long long)range->bytes, (unsigned long long)bytes);
    } else if (range) {
        range->users++;
    } else if (!(range = malloc(sizeof *range))) {
        st = cek__host_fail(host, CEK_OUT_OF_MEMORY, "host_register: no memory for the range");
    } else if ((st = range_lock((cuda_dev *)head, ptr, bytes)) != CEK_OK) {
        free(range);
    } else {
        *range = (cuda_range){ instance->ranges, ptr, bytes, 1 };
        instance->ranges = range;
    }
    pthread_mutex_unlock(&instance->ranges_lock);
    return st;
}

void cek__cuda_host_unregister(cek_dev *head, void *ptr)
{
    cuda_dev *dev = (cuda_dev *)head;
    cuda_instance *instance = cek__cuda_instance(head);
    pthread_mutex_lock(&instance->ranges_lock);
    cuda_range **at = range_find(instance, ptr), *range = *at;
    const bool last = range && !--range->users;
    if (last)
        *at = range->next;
    if (last && !cek__latched(&head->lost) && !cek__cuda_enter(dev, "host_unregister")) {
        CUresult error = cek__cuda_api(dev)->cuMemHostUnregister(ptr);
        cek__cuda_leave(dev);
        if (error)
            (void)cek__cuda_fail(dev, "host_unregister", "cuMemHostUnregister", error);
    }
    pthread_mutex_unlock(&instance->ranges_lock);
    if (last)
        free(range);
}
