/* SPDX-License-Identifier: MIT
 *
 * command.c - the checks of command.h.
 */
#include "backends/common/command.h"

#include "backends/common/fail.h"
#include "backends/common/growth.h"

/* --- descriptors ---------------------------------------------------------------------------------------------- */

static cek_status flags_check(const cek_host *host, const char *call, uint32_t flags, uint32_t known)
{
    return flags & ~known ? cek__host_fail(host, CEK_UNSUPPORTED, "%s: unknown flags %#x", call, flags) : CEK_OK;
}

cek_status cek__device_options_in(const cek_host *host, const cek_device_options *given)
{
    cek_device_options options;
    if (!given)
        return CEK_OK;
    cek_status st = cek__struct_in(host, "device_open: options", given, &options, sizeof options);
    return st ? st : flags_check(host, "device_open", options.flags, 0);
}

cek_status cek__mem_desc_in(const cek_host *host, const cek_mem_desc *given, uint64_t *bytes)
{
    cek_mem_desc want;
    *bytes = 0;
    cek_status st = cek__struct_in(host, "mem_alloc: descriptor", given, &want, sizeof want);
    if (!st)
        st = flags_check(host, "mem_alloc", want.flags, 0);
    if (!st && !want.bytes)
        st = cek__host_fail(host, CEK_INVALID, "mem_alloc: 0 bytes");
    if (!st)
        *bytes = want.bytes;
    return st;
}

cek_status cek__foreign_in(const cek_host *host, const cek_foreign *given, uint32_t kind, uint32_t ordinal,
                           cek_foreign *to)
{
    cek_status st = cek__struct_in(host, "mem_import: descriptor", given, to, sizeof *to);
    if (st)
        return st;
    if (to->kind != kind || to->ordinal != ordinal || to->reserved)
        return cek__host_fail(host, CEK_UNSUPPORTED,
                              "mem_import: memory of kind %u, device %u: this device takes kind %u, device %u",
                              to->kind, to->ordinal, kind, ordinal);
    if (!to->bytes || !to->address || to->address % CEK_ALIGNMENT || to->bytes > INT64_MAX)
        return cek__host_fail(host, CEK_INVALID, "mem_import: %llu bytes at %#llx: an address that is a multiple of %u",
                              (unsigned long long)to->bytes, (unsigned long long)to->address, CEK_ALIGNMENT);
    return CEK_OK;
}

cek_status cek__queue_desc_in(const cek_host *host, const cek_queue_desc *given, cek_queue_desc *to)
{
    *to = (cek_queue_desc){ .size = sizeof *to };
    cek_status st = given ? cek__struct_in(host, "queue_create: descriptor", given, to, sizeof *to) : CEK_OK;
    return st ? st : flags_check(host, "queue_create", to->flags, CEK_QUEUE_TIMING);
}

cek_status cek__event_desc_in(const cek_host *host, const cek_event_desc *given, bool *timing)
{
    cek_event_desc want = { .size = sizeof want };
    cek_status st = given ? cek__struct_in(host, "event_create: descriptor", given, &want, sizeof want) : CEK_OK;
    *timing = want.flags & CEK_EVENT_TIMING;
    return st ? st : flags_check(host, "event_create", want.flags, CEK_EVENT_TIMING);
}

cek_status cek__cmd_in(const cek_host *host, const cek_cmd *cmds, uint32_t index, uint32_t cmd_size, cek_cmd *to)
{
    cek_status st = cek__element_in(host, "cmdbuf_create: command", cmds, index, cmd_size, to, sizeof *to);
    if (st)
        return st;
    const bool run = to->kind == CEK_CMD_RUN, copy = to->kind == CEK_CMD_COPY,
               writes = (copy || to->kind == CEK_CMD_FILL) && to->bytes;
    const char *absent = run && !to->op                              ? "op"
                         : run && to->operand_count && !to->operands ? "operands"
                         : writes && !to->dst.mem                    ? "dst.mem"
                         : writes && copy && !to->src.mem            ? "src.mem"
                                                                     : NULL;
    return absent ? cek__host_fail(host, CEK_INVALID, "cmdbuf_create: command %u: %s is NULL", index, absent) : CEK_OK;
}

/* --- commands ------------------------------------------------------------------------------------------------- */

cek_status cek__transfer_check(const cek_host *host, const char *call, cek_ref ref, const void *host_memory,
                               uint64_t bytes, cek__mem_bytes_fn *mem_bytes, const cek_dev *dev)
{
    cek_status st = cek__range_check(host, call, ref, bytes, mem_bytes, dev);
    if (!st && !host_memory)
        st = cek__host_fail(host, CEK_INVALID, "%s: no host memory", call);
    return st;
}

cek_status cek__fill_check(const cek_host *host, cek_ref dst, uint32_t pattern_bytes, uint64_t bytes,
                           cek__mem_bytes_fn *mem_bytes, const cek_dev *dev)
{
    if (pattern_bytes != 1 && pattern_bytes != 2 && pattern_bytes != 4)
        return cek__host_fail(host, CEK_INVALID, "fill: a pattern of %u bytes", pattern_bytes);
    if (dst.offset % pattern_bytes || bytes % pattern_bytes)
        return cek__host_fail(host, CEK_INVALID, "fill: %llu bytes at offset %llu are not multiples of %u",
                              (unsigned long long)bytes, (unsigned long long)dst.offset, pattern_bytes);
    return cek__range_check(host, "fill", dst, bytes, mem_bytes, dev);
}

cek_status cek__update_check(const cek_host *host, cek_ref dst, const void *src, uint64_t bytes,
                             cek__mem_bytes_fn *mem_bytes, const cek_dev *dev)
{
    cek_status st = cek__range_check(host, "update", dst, bytes, mem_bytes, dev);
    if (!st && (bytes > CEK__UPDATE_MAX || bytes % 4 || dst.offset % 4))
        st = cek__host_fail(host, CEK_INVALID, "update: %llu bytes at offset %llu: at most %d, multiples of 4",
                            (unsigned long long)bytes, (unsigned long long)dst.offset, CEK__UPDATE_MAX);
    if (!st && !src)
        st = cek__host_fail(host, CEK_INVALID, "update: no source");
    return st;
}

cek_status cek__copy_check(const cek_host *host, cek_ref dst, cek_ref src, uint64_t bytes, cek__mem_bytes_fn *mem_bytes,
                           const cek_dev *dev, const cek_dev *src_dev)
{
    cek_status st = cek__range_check(host, "copy: destination", dst, bytes, mem_bytes, dev);
    if (!st)
        st = cek__range_check(host, "copy: source", src, bytes, mem_bytes, src_dev);
    if (!st && dst.mem == src.mem && dst.offset < src.offset + bytes && src.offset < dst.offset + bytes)
        st = cek__host_fail(host, CEK_INVALID, "copy: source and destination overlap");
    return st;
}
