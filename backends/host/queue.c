/* SPDX-License-Identifier: MIT
 *
 * queue.c - queues that execute at once, and the commands that move bytes.
 *
 * A queue is the failure that stuck to it; there is nothing to wait for.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/common/growth.h"
#include "backends/host/host.h"

cek_status cek__host_queue_create(cek_dev *dev, const cek_queue_desc *desc, cek_queue **out)
{
    const cek_host *host = &dev->instance->host;
    cek_queue_desc want = { .size = sizeof want };
    *out = NULL;
    cek_status st = cek__host_ready(dev, "queue_create");
    if (!st && desc)
        st = cek__struct_in(host, "queue_create: descriptor", desc, &want, sizeof want);
    if (!st && want.flags & ~(uint32_t)CEK_QUEUE_TIMING)
        st = cek__fail(host, CEK_UNSUPPORTED, "queue_create: unknown flags %#x", want.flags);
    if (st)
        return st;
    cek_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return cek__fail(host, CEK_OUT_OF_MEMORY, "queue_create: no memory for the handle");
    queue->dev = dev;
    queue->timing = want.flags & CEK_QUEUE_TIMING;
    *out = queue;
    return CEK_OK;
}

void cek__host_queue_destroy(cek_queue *queue)
{
    free(queue);
}

void cek__host_queue_fail(cek_queue *queue, cek_status status, const char *format, ...)
{
    va_list args;
    if (queue->failure)
        return;  /* the first one stays */
    va_start(args, format);
    vsnprintf(queue->text, sizeof queue->text, format, args);
    va_end(args);
    queue->failure = status;
}

cek_status cek__host_queue_ready(const cek_queue *queue, const char *call)
{
    cek_status st = cek__host_ready(queue->dev, call);
    if (!st && queue->failure)
        st = cek__fail(&queue->dev->instance->host, queue->failure,
                       "%s: the queue failed before: %s", call, queue->text);
    return st;
}

cek_status cek__host_queue_status(cek_queue *queue, char *text, uint64_t cap)
{
    if (cek__host_device_status(queue->dev, text, cap))
        return CEK_DEVICE_LOST;
    cek__text_out(text, cap, queue->text);
    return queue->failure;
}

cek_status cek__host_queue_sync(cek_queue *queue, uint64_t timeout_ns)
{
    (void)timeout_ns;  /* all has finished */
    return cek__host_queue_ready(queue, "queue_sync");
}

/* --- commands ----------------------------------------------------------------------------------------------------- */

/* The start of every command on `bytes` > 0 at `ref`. */
static cek_status command_check(cek_queue *queue, const char *call, cek_ref ref, uint64_t bytes)
{
    cek_status st = cek__host_queue_ready(queue, call);
    if (!st)
        st = cek__range_check(&queue->dev->instance->host, call, ref, bytes, cek__host_mem_bytes, queue->dev);
    return st;
}

cek_status cek__host_upload(cek_queue *queue, cek_ref dst, const void *src, uint64_t bytes)
{
    if (!bytes)
        return cek__host_queue_ready(queue, "upload");
    cek_status st = command_check(queue, "upload", dst, bytes);
    if (!st && !src)
        st = cek__fail(&queue->dev->instance->host, CEK_INVALID, "upload: no source");
    if (!st)
        memmove(dst.mem->base + dst.offset, src, bytes);
    return st;
}

cek_status cek__host_download(cek_queue *queue, void *dst, cek_ref src, uint64_t bytes)
{
    if (!bytes)
        return cek__host_queue_ready(queue, "download");
    cek_status st = command_check(queue, "download", src, bytes);
    if (!st && !dst)
        st = cek__fail(&queue->dev->instance->host, CEK_INVALID, "download: no destination");
    if (!st)
        memmove(dst, src.mem->base + src.offset, bytes);
    return st;
}

cek_status cek__host_copy_check(cek_dev *dev, cek_ref dst, cek_ref src, uint64_t bytes)
{
    const cek_host *host = &dev->instance->host;
    cek_status st = cek__range_check(host, "copy: destination", dst, bytes, cek__host_mem_bytes, dev);
    if (st)
        return st;
    if (src.mem && src.mem->dev->instance != dev->instance)
        return cek__fail(host, CEK_UNSUPPORTED, "copy: the source is of another instance");
    st = cek__range_check(host, "copy: source", src, bytes, cek__host_mem_bytes, src.mem ? src.mem->dev : dev);
    if (!st && dst.mem == src.mem && dst.offset < src.offset + bytes && src.offset < dst.offset + bytes)
        st = cek__fail(host, CEK_INVALID, "copy: source and destination overlap");
    return st;
}

cek_status cek__host_copy_mem(cek_queue *queue, cek_ref dst, cek_ref src, uint64_t bytes)
{
    cek_status st = cek__host_queue_ready(queue, "copy");
    if (st || !bytes)
        return st;
    st = cek__host_copy_check(queue->dev, dst, src, bytes);
    if (!st)
        memcpy(dst.mem->base + dst.offset, src.mem->base + src.offset, bytes);
    return st;
}

cek_status cek__host_fill_check(cek_dev *dev, cek_ref dst, uint32_t pattern_bytes, uint64_t bytes)
{
    const cek_host *host = &dev->instance->host;
    if (pattern_bytes != 1 && pattern_bytes != 2 && pattern_bytes != 4)
        return cek__fail(host, CEK_INVALID, "fill: a pattern of %u bytes", pattern_bytes);
    if (dst.offset % pattern_bytes || bytes % pattern_bytes)
        return cek__fail(host, CEK_INVALID, "fill: %llu bytes at offset %llu are not multiples of %u",
                         (unsigned long long)bytes, (unsigned long long)dst.offset, pattern_bytes);
    return cek__range_check(host, "fill", dst, bytes, cek__host_mem_bytes, dev);
}

void cek__host_fill_bytes(unsigned char *at, uint32_t pattern, uint32_t pattern_bytes, uint64_t bytes)
{
    const uint16_t half = (uint16_t)pattern;
    if (pattern_bytes == 1)
        memset(at, (int)(pattern & 0xff), bytes);
    for (uint64_t i = 0; pattern_bytes == 2 && i < bytes; i += 2)
        memcpy(at + i, &half, 2);
    for (uint64_t i = 0; pattern_bytes == 4 && i < bytes; i += 4)
        memcpy(at + i, &pattern, 4);
}

cek_status cek__host_fill(cek_queue *queue, cek_ref dst, uint32_t pattern, uint32_t pattern_bytes, uint64_t bytes)
{
    cek_status st = cek__host_queue_ready(queue, "fill");
    if (st || !bytes)
        return st;
    st = cek__host_fill_check(queue->dev, dst, pattern_bytes, bytes);
    if (!st)
        cek__host_fill_bytes(dst.mem->base + dst.offset, pattern, pattern_bytes, bytes);
    return st;
}

cek_status cek__host_update(cek_queue *queue, cek_ref dst, const void *src, uint64_t bytes)
{
    const cek_host *host = &queue->dev->instance->host;
    if (!bytes)
        return cek__host_queue_ready(queue, "update");
    cek_status st = command_check(queue, "update", dst, bytes);
    if (st)
        return st;
    if (bytes > 4096 || bytes % 4 || dst.offset % 4)
        return cek__fail(host, CEK_INVALID, "update: %llu bytes at offset %llu: at most 4096, multiples of 4",
                         (unsigned long long)bytes, (unsigned long long)dst.offset);
    if (!src)
        return cek__fail(host, CEK_INVALID, "update: no source");
    memmove(dst.mem->base + dst.offset, src, bytes);
    return CEK_OK;
}
