/* SPDX-License-Identifier: MIT
 * memory.c - memory of simulated devices, held against the cap of each. */
#include <stdlib.h>

#include "backends/common/growth.h"
#include "backends/sim/sim.h"

static bool memory_take(const cek_dev *dev, uint64_t bytes)
{
    cek__sim_device *state = cek__sim_state(dev);
    pthread_mutex_lock(&state->lock);
    bool fits = bytes <= state->memory_bytes - state->used_bytes;
    state->used_bytes += fits ? bytes : 0;
    pthread_mutex_unlock(&state->lock);
    return fits;
}

static void memory_return(const cek_dev *dev, uint64_t bytes)
{
    cek__sim_device *state = cek__sim_state(dev);
    pthread_mutex_lock(&state->lock);
    state->used_bytes -= bytes;
    pthread_mutex_unlock(&state->lock);
}

cek_status cek__sim_mem_alloc(cek_dev *dev, const cek_mem_desc *desc, cek_mem **out)
{
    const cek_host *host = &dev->instance->host;
    cek_mem_desc want;
    *out = NULL;
    cek_status st = cek__sim_pass(dev, CEK__SIM_mem_alloc);
    if (!st)
        st = cek__struct_in(host, "mem_alloc: descriptor", desc, &want, sizeof want);
    if (st)
        return st;
    cek_mem *mem = calloc(1, sizeof *mem);
    if (!mem)
        return cek__host_fail(host, CEK_OUT_OF_MEMORY, "mem_alloc: no memory for the handle");
    *mem = (cek_mem){ .dev = dev, .bytes = want.bytes };
    if (!memory_take(dev, want.bytes)) {
        st = cek__host_fail(host, CEK_OUT_OF_MEMORY, "mem_alloc: %llu bytes, but %llu of %llu are free on sim:%u",
                            (unsigned long long)want.bytes,
                            (unsigned long long)cek__sim_free_bytes(dev->instance, dev->index),
                            (unsigned long long)cek__sim_state(dev)->memory_bytes, dev->index);
        free(mem);
        return st;
    }
    st = UNLESS_IDLE(dev, mem_alloc, dev->inner, desc, &mem->inner);
    if (st) {
        memory_return(dev, want.bytes);
        free(mem);
        return st;
    }
    *out = mem;
    return CEK_OK;
}

/* What somebody else has is none of the device's memory. */
cek_status cek__sim_mem_import(cek_dev *dev, const cek_foreign *foreign, cek_mem **out)
{
    *out = NULL;
    cek_status st = cek__sim_pass(dev, CEK__SIM_mem_import);
    if (!st && !dev->instance->shared)
        st = cek__host_fail(&dev->instance->host, CEK_UNSUPPORTED, "mem_import: sim_shared=0 reaches no other memory");
    if (st)
        return st;
    cek_mem *mem = calloc(1, sizeof *mem);
    if (!mem)
        return cek__host_fail(&dev->instance->host, CEK_OUT_OF_MEMORY, "mem_import: no memory for the handle");
    mem->dev = dev;
    st = INNER(dev, mem_import, dev->inner, foreign, &mem->inner);
    if (st)
        free(mem);
    else
        *out = mem;
    return st;
}

void cek__sim_mem_free(cek_mem *mem)
{
    if (!mem)
        return;
    cek__sim_release_pass(mem->dev, CEK__SIM_mem_free);
    if (mem->inner)
        mem->dev->instance->plugin.mem_free(mem->inner);
    memory_return(mem->dev, mem->bytes);
    free(mem);
}

void *cek__sim_mem_host_ptr(cek_mem *mem)
{
    const cek_instance *instance = mem->dev->instance;
    return instance->shared && mem->inner ? instance->plugin.mem_host_ptr(mem->inner) : NULL;
}

cek_status cek__sim_mem_map(cek_mem *mem, uint32_t access_bits, void **out)
{
    *out = NULL;
    cek_status st = cek__sim_pass(mem->dev, CEK__SIM_mem_map);
    if (!st && mem->dev->instance->work == CEK__SIM_WORK_NONE)
        st = cek__host_fail(&mem->dev->instance->host, CEK_UNSUPPORTED, "mem_map: sim_work=none has no memory");
    if (!st && !mem->dev->instance->shared)
        st = cek__host_fail(&mem->dev->instance->host, CEK_UNSUPPORTED,
                            "mem_map: with sim_shared=0 the host reaches none");
    return st ? st : INNER(mem->dev, mem_map, mem->inner, access_bits, out);
}

cek_status cek__sim_mem_unmap(cek_mem *mem)
{
    cek_status st = cek__sim_pass(mem->dev, CEK__SIM_mem_unmap);
    return st ? st : UNLESS_IDLE(mem->dev, mem_unmap, mem->inner);
}

cek_status cek__sim_host_alloc(cek_dev *dev, uint64_t bytes, void **out)
{
    *out = NULL;
    cek_status st = cek__sim_pass(dev, CEK__SIM_host_alloc);
    return st ? st : INNER(dev, host_alloc, dev->inner, bytes, out);
}

void cek__sim_host_free(cek_dev *dev, void *ptr)
{
    cek__sim_release_pass(dev, CEK__SIM_host_free);
    if (dev->instance->plugin.host_free)
        dev->instance->plugin.host_free(dev->inner, ptr);
}

cek_status cek__sim_host_register(cek_dev *dev, void *ptr, uint64_t bytes)
{
    cek_status st = cek__sim_pass(dev, CEK__SIM_host_register);
    return st ? st : INNER(dev, host_register, dev->inner, ptr, bytes);
}

void cek__sim_host_unregister(cek_dev *dev, void *ptr)
{
    cek__sim_release_pass(dev, CEK__SIM_host_unregister);
    if (dev->instance->plugin.host_unregister)
        dev->instance->plugin.host_unregister(dev->inner, ptr);
}
