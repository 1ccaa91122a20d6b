/* SPDX-License-Identifier: MIT
 *
 * memory.c - device memory, page-locked host memory, and what of the host's is page-locked in place.
 */
#include <stdlib.h>

#include "backends/common/command.h"
#include "backends/common/growth.h"
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
    if (!((cuda_mem *)head)->foreign && !cek__latched(&dev->head.lost) && !cek__cuda_enter(dev, "mem_free")) {
        CUresult error = cek__cuda_api(dev)->cuMemFree(((cuda_mem *)head)->address);
        cek__cuda_leave(dev);
        if (error)
            (void)cek__cuda_fail(dev, "mem_free", "cuMemFree", error);
    }
    free(head);
}

/* All contexts of a program are the device's primary one, as ours is: its memory has one address everywhere. */
cek_status cek__cuda_mem_import(cek_dev *head, const cek_foreign *foreign, cek_mem **out)
{
    const cek_host *host = &head->instance->host;
    cek_foreign from;
    *out = NULL;
    cek_status st = cek__gpu_ready(head, "mem_import");
    if (!st)
        st = cek__foreign_in(host, foreign, CEK_FOREIGN_CUDA, (uint32_t)((cuda_dev *)head)->device, &from);
    if (st)
        return st;
    cuda_mem *mem = calloc(1, sizeof *mem);
    if (!mem)
        return cek__host_fail(host, CEK_OUT_OF_MEMORY, "mem_import: no memory for the handle");
    *mem = (cuda_mem){ .head = { head, from.bytes }, .address = from.address, .foreign = true };
    *out = &mem->head;
    return CEK_OK;
}

cek_status cek__cuda_mem_export(cek_mem *head, cek_foreign *out)
{
    const cuda_mem *mem = (const cuda_mem *)head;
    const cek_foreign place = { .kind = CEK_FOREIGN_CUDA,
                                .ordinal = (uint32_t)((cuda_dev *)head->dev)->device,
                                .address = mem->address,
                                .bytes = head->bytes };
    cek_status st = cek__gpu_ready(head->dev, "mem_export");
    return st ? st : cek__struct_out(&head->dev->instance->host, "mem_export: out", out, &place, sizeof place);
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

/* Who has a range. A driver refuses to lock a page twice: what begins at one place is locked once, for all contexts,
 * and unlocked by the last of its users that is not lost. */
typedef struct cuda_range {
    struct cuda_range *next;
    cek_dev *user;
    void *at;
    uint64_t bytes;
    bool locked; /* as all that begin there are */
    bool busy;   /* its user is inside the driver, for all that begin there */
} cuda_range;

/* Under ranges_lock, as the next three: what begins there, of this user or (NULL) of any. */
static cuda_range *range_find(const cuda_instance *instance, const void *at, const cek_dev *user)
{
    cuda_range *r = instance->ranges;
    while (r && (r->at != at || (user && r->user != user)))
        r = r->next;
    return r;
}

static void ranges_settle(cuda_instance *instance, const void *at)
{
    for (cuda_range *r = instance->ranges; r;) {
        const bool busy = r->at == at && r->busy;
        if (busy)
            pthread_cond_wait(&instance->ranges_changed, &instance->ranges_lock);
        r = busy ? instance->ranges : r->next;
    }
}

/* What was done in the driver, for all that begin where the range does. */
static void ranges_set(cuda_instance *instance, cuda_range *range, bool locked)
{
    for (cuda_range *r = instance->ranges; r; r = r->next)
        if (r->at == range->at)
            r->locked = locked;
    range->busy = false;
    pthread_cond_broadcast(&instance->ranges_changed);
}

static void range_free(cuda_instance *instance, cuda_range *range)
{
    cuda_range **at = &instance->ranges;
    while (*at != range)
        at = &(*at)->next;
    *at = range->next;
    free(range);
}

/* What a system, or this memory, does not allow is no failure of the device's. */
static cek_status range_lock(cuda_dev *dev, void *at, uint64_t bytes)
{
    cek_status st = cek__cuda_enter(dev, "host_register");
    if (st)
        return st;
    CUresult error = cek__cuda_api(dev)->cuMemHostRegister(at, bytes, CU_MEMHOSTREGISTER_PORTABLE);
    cek__cuda_leave(dev);
    if (error && cek__cuda_status(error) == CEK_INTERNAL)
        return cek__host_fail(&dev->head.instance->host, CEK_UNSUPPORTED, "host_register: cuMemHostRegister: %s (%u)",
                              cek__cuda_error(cek__cuda_api(dev), error), error);
    return error ? cek__cuda_fail(dev, "host_register", "cuMemHostRegister", error) : CEK_OK;
}

static void range_unlock(cuda_dev *dev, void *at)
{
    if (cek__cuda_enter(dev, "host_unregister"))
        return;
    CUresult error = cek__cuda_api(dev)->cuMemHostUnregister(at);
    cek__cuda_leave(dev);
    if (error)
        (void)cek__cuda_fail(dev, "host_unregister", "cuMemHostUnregister", error);
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
    ranges_settle(instance, ptr);
    const cuda_range *other = range_find(instance, ptr, NULL);
    const bool locked = other && other->locked;
    cuda_range *range;
    if (other && (other->bytes != bytes || range_find(instance, ptr, head))) {
        st = cek__host_fail(host, CEK_INVALID, "host_register: %llu bytes are registered there already",
                            (unsigned long long)other->bytes);
    } else if (!(range = malloc(sizeof *range))) {
        st = cek__host_fail(host, CEK_OUT_OF_MEMORY, "host_register: no memory for the range");
    } else {
        *range = (cuda_range){ instance->ranges, head, ptr, bytes, locked, !locked };
        instance->ranges = range;
        if (!locked) {
            pthread_mutex_unlock(&instance->ranges_lock);
            st = range_lock((cuda_dev *)head, ptr, bytes);
            pthread_mutex_lock(&instance->ranges_lock);
            ranges_set(instance, range, !st);
        }
        if (st)
            range_free(instance, range);
    }
    pthread_mutex_unlock(&instance->ranges_lock);
    return st;
}

void cek__cuda_host_unregister(cek_dev *head, void *ptr)
{
    cuda_instance *instance = cek__cuda_instance(head);
    pthread_mutex_lock(&instance->ranges_lock);
    ranges_settle(instance, ptr);
    cuda_range *range = range_find(instance, ptr, head);
    bool last = range && range->locked && !cek__latched(&head->lost);
    for (const cuda_range *r = instance->ranges; r && last; r = r->next)
        last = r->at != ptr || r == range || cek__latched(&r->user->lost);
    if (last) {
        range->busy = true;
        pthread_mutex_unlock(&instance->ranges_lock);
        range_unlock((cuda_dev *)head, ptr);
        pthread_mutex_lock(&instance->ranges_lock);
        ranges_set(instance, range, false);
    }
    if (range)
        range_free(instance, range);
    pthread_mutex_unlock(&instance->ranges_lock);
}

void cek__cuda_host_forget(cek_dev *head)
{
    cuda_instance *instance = cek__cuda_instance(head);
    for (;;) {
        pthread_mutex_lock(&instance->ranges_lock);
        const cuda_range *r = instance->ranges;
        while (r && r->user != head)
            r = r->next;
        void *at = r ? r->at : NULL;
        pthread_mutex_unlock(&instance->ranges_lock);
        if (!at)
            return;
        cek__cuda_host_unregister(head, at);
    }
}
