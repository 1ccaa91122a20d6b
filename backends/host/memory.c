/* SPDX-License-Identifier: MIT
 *
 * memory.c - device memory that is host memory, really there when an allocation succeeds.
 *
 * Linux promises more memory than it has and kills a process that uses the promise. So an
 * allocation is first held against what is left (headroom.c), then every page of it is touched,
 * both under one lock of the instance.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "backends/common/command.h"
#include "backends/host/host.h"

/* Whether `bytes` more may be taken. Looking costs a dozen system calls, so a look leaves a lease
 * for the small allocations that follow: half of the reserve at most, so that even a stale lease
 * does not use that up. Under the instance's lock. */
static bool headroom_take(cek_instance *instance, uint64_t bytes, uint64_t *free_bytes, uint64_t *total_bytes)
{
    if (bytes <= instance->lease_bytes) {
        instance->lease_bytes -= bytes;
        *free_bytes = *total_bytes = CEK_UNKNOWN;
        return true;
    }
    cek__host_memory(free_bytes, total_bytes);
    if (bytes > *free_bytes)
        return false;
    uint64_t left = *free_bytes - bytes, most = *total_bytes / CEK__HOST_RESERVE_SHARE / 2;
    instance->lease_bytes = left < most ? left : most;
    return true;
}

/* Memory of `bytes` > 0, backed; *mapped_bytes is 0 where it came from the C library and goes back there. */
static cek_status backed_alloc(cek_dev *dev, const char *call, uint64_t bytes, bool map, unsigned char **base,
                               uint64_t *mapped_bytes)
{
    cek_status st = CEK_OK;
    uint64_t grain = map && bytes >= CEK__HUGE_PAGE_BYTES ? CEK__HUGE_PAGE_BYTES : CEK_ALIGNMENT, rounded;
    uint64_t free_bytes, total_bytes;
    if (__builtin_add_overflow(bytes, grain - 1, &rounded) || rounded > INT64_MAX - CEK__HUGE_PAGE_BYTES)
        return cek__host_fail(&dev->instance->host, CEK_OUT_OF_MEMORY, "%s: %llu bytes", call,
                              (unsigned long long)bytes);
    rounded -= rounded % grain;
    *mapped_bytes = grain == CEK__HUGE_PAGE_BYTES ? rounded : 0;

    pthread_mutex_lock(&dev->instance->allocation);
    *base = NULL;
    bool room = headroom_take(dev->instance, rounded, &free_bytes, &total_bytes);
    if (room)
        *base = *mapped_bytes ? cek__pages_map(rounded) : aligned_alloc(CEK_ALIGNMENT, rounded);
    if (*base && !*mapped_bytes)
        cek__pages_touch(*base, rounded);
    pthread_mutex_unlock(&dev->instance->allocation);

    if (!*base && free_bytes == CEK_UNKNOWN)
        cek__host_memory(&free_bytes, &total_bytes); /* for the text */
    if (!*base)
        st = cek__host_fail(&dev->instance->host, CEK_OUT_OF_MEMORY, "%s: %llu bytes; free: %s of %s%s", call,
                            (unsigned long long)bytes, CEK__AMOUNT(free_bytes), CEK__AMOUNT(total_bytes),
                            room ? ", and this process is not given more (a limit such as ulimit -v)" : "");
    return st;
}

cek_status cek__host_mem_alloc(cek_dev *dev, const cek_mem_desc *desc, cek_mem **out)
{
    const cek_host *host = &dev->instance->host;
    uint64_t bytes;
    *out = NULL;
    cek_status st = cek__host_ready(dev, "mem_alloc");
    if (!st)
        st = cek__mem_desc_in(host, desc, &bytes);
    if (st)
        return st;

    cek_mem *mem = calloc(1, sizeof *mem);
    if (!mem)
        return cek__host_fail(host, CEK_OUT_OF_MEMORY, "mem_alloc: no memory for the handle");
    mem->dev = dev;
    mem->bytes = bytes;
    st = backed_alloc(dev, "mem_alloc", bytes, true, &mem->base, &mem->mapped_bytes);
    if (st) {
        free(mem);
        return st;
    }
    *out = mem;
    return CEK_OK;
}

void cek__host_mem_free(cek_mem *mem)
{
    if (!mem)
        return;
    if (mem->mapped_bytes)
        munmap(mem->base, mem->mapped_bytes);
    else if (!mem->foreign)
        free(mem->base);
    free(mem);
}

/* Neither touched nor held against what is left: it is there already, with its owner. */
cek_status cek__host_mem_import(cek_dev *dev, const cek_foreign *foreign, cek_mem **out)
{
    const cek_host *host = &dev->instance->host;
    cek_foreign from;
    *out = NULL;
    cek_status st = cek__host_ready(dev, "mem_import");
    if (!st)
        st = cek__foreign_in(host, foreign, CEK_FOREIGN_HOST, 0, &from);
    if (st)
        return st;
    cek_mem *mem = calloc(1, sizeof *mem);
    if (!mem)
        return cek__host_fail(host, CEK_OUT_OF_MEMORY, "mem_import: no memory for the handle");
    mem->dev = dev;
    mem->base = (unsigned char *)(uintptr_t)from.address;
    mem->bytes = from.bytes;
    mem->foreign = true;
    *out = mem;
    return CEK_OK;
}

bool cek__host_mem_bytes(const void *dev, const cek_mem *mem, uint64_t *bytes)
{
    *bytes = mem->bytes;
    return mem->dev == dev;
}

void *cek__host_mem_host_ptr(cek_mem *mem)
{
    return mem->base;
}

/* A host has no need of map here, since mem_host_ptr answers; it keeps the rules all the same. */
cek_status cek__host_mem_map(cek_mem *mem, uint32_t access, void **out)
{
    const cek_host *host = &mem->dev->instance->host;
    *out = NULL;
    cek_status st = cek__host_ready(mem->dev, "mem_map");
    if (st)
        return st;
    if (access & ~(CEK_MAP_READ | CEK_MAP_WRITE))
        return cek__host_fail(host, CEK_UNSUPPORTED, "mem_map: unknown access %#x", access);
    if (!access)
        return cek__host_fail(host, CEK_INVALID, "mem_map: neither read nor write");
    if (atomic_exchange(&mem->mapped, true))
        return cek__host_fail(host, CEK_INVALID, "mem_map: the memory is mapped already");
    *out = mem->base;
    return CEK_OK;
}

cek_status cek__host_mem_unmap(cek_mem *mem)
{
    cek_status st = cek__host_ready(mem->dev, "mem_unmap");
    if (!st && !atomic_exchange(&mem->mapped, false))
        st = cek__host_fail(&mem->dev->instance->host, CEK_INVALID, "mem_unmap: the memory is not mapped");
    return st;
}

cek_status cek__host_host_alloc(cek_dev *dev, uint64_t bytes, void **out)
{
    unsigned char *base = NULL;
    uint64_t mapped_bytes;
    *out = NULL;
    cek_status st = cek__host_ready(dev, "host_alloc");
    if (!st && !bytes)
        st = cek__host_fail(&dev->instance->host, CEK_INVALID, "host_alloc: 0 bytes");
    if (!st)
        st = backed_alloc(dev, "host_alloc", bytes, false, &base, &mapped_bytes);
    *out = base;
    return st;
}

void cek__host_host_free(cek_dev *dev, void *ptr)
{
    (void)dev;
    free(ptr);
}

/* All of the host's memory is as good as any other here. */
cek_status cek__host_host_register(cek_dev *dev, void *ptr, uint64_t bytes)
{
    (void)ptr;
    cek_status st = cek__host_ready(dev, "host_register");
    return !st && !bytes ? cek__host_fail(&dev->instance->host, CEK_INVALID, "host_register: 0 bytes") : st;
}

void cek__host_host_unregister(cek_dev *dev, void *ptr)
{
    (void)dev, (void)ptr;
}
