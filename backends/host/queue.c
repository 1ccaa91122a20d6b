/* SPDX-License-Identifier: MIT
 *
 * queue.c - queues that execute at once, and the commands that move bytes.
 *
 * A queue is the failure that stuck to it; there is nothing to wait for.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/common/command.h"
#include "backends/host/host.h"

cek_status cek__host_queue_create(cek_dev *dev, const cek_queue_desc *desc, cek_queue **out)
{
    const cek_host *host = &dev->instance->host;
    cek_queue_desc want;
    *out = NULL;
    cek_status st = cek__host_ready(dev, "queue_create");
    if (!st)
        st = cek__queue_desc_in(host, desc, &want);
    if (st)
        return st;
    cek_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return cek__host_fail(host, CEK_OUT_OF_MEMORY, "queue_create: no memory for the handle");
    queue->dev = dev;
    queue->timing = want.flags & CEK_QUEUE_TIMING;
    *out = queue;
    return CEK_OK;
}

void cek__host_queue_destroy(cek_queue *queue)
{
    free(queue);
}

cek_status cek__host_queue_ready(const cek_queue *queue, const char *call)
{
    cek_status st = cek__host_ready(queue->dev, call);
    return st ? st : cek__failure_check(&queue->failure, &queue->dev->instance->host, call);
}

cek_status cek__host_queue_status(cek_queue *queue, char *text, uint64_t cap)
{
    if (cek__host_device_status(queue->dev, text, cap))
        return CEK_DEVICE_LOST;
    cek__text_out(text, cap, queue->failure.text);
    return queue->failure.status;
}

cek_status cek__host_queue_sync(cek_queue *queue, uint64_t timeout_ns)
{
    (void)timeout_ns; /* all has finished */
    return cek__host_queue_ready(queue, "queue_sync");
}

/* --- commands ----------------------------------------------------------------------------------------------------- */

/* Of an upload or download of `bytes` > 0. */
static cek_status transfer_check(cek_queue *queue, const char *call, cek_ref ref, const void *host_memory,
                                 uint64_t bytes)
{
    cek_status st = cek__host_queue_ready(queue, call);
    return st ? st
              : cek__transfer_check(&queue->dev->instance->host, call, ref, host_memory, bytes, cek__host_mem_bytes,
                                    queue->dev);
}

cek_status cek__host_upload(cek_queue *queue, cek_ref dst, const void *src, uint64_t bytes)
{
    if (!bytes)
        return cek__host_queue_ready(queue, "upload");
    cek_status st = transfer_check(queue, "upload", dst, src, bytes);
    if (!st)
        memmove(dst.mem->base + dst.offset, src, bytes);
    return st;
}

cek_status cek__host_download(cek_queue *queue, void *dst, cek_ref src, uint64_t bytes)
{
    if (!bytes)
        return cek__host_queue_ready(queue, "download");
    cek_status st = transfer_check(queue, "download", src, dst, bytes);
    if (!st)
        memmove(dst, src.mem->base + src.offset, bytes);
    return st;
}

cek_status cek__host_copy_check(cek_dev *dev, cek_ref dst, cek_ref src, uint64_t bytes)
{
    const cek_host *host = &dev->instance->host;
    const cek_dev *from = src.mem ? src.mem->dev : dev;
    if (from->instance != dev->instance)
        return cek__host_fail(host, CEK_UNSUPPORTED, "copy: the source is of another instance");
    return cek__copy_check(host, dst, src, bytes, cek__host_mem_bytes, dev, from);
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

/* What is written is copied on, twice as much each time, but no more than stays in a first cache. */
void cek__host_fill_bytes(unsigned char *at, uint32_t pattern, uint32_t pattern_bytes, uint64_t bytes)
{
    enum { MOST = 4096 };
    const uint16_t half = (uint16_t)pattern;
    if (pattern_bytes == 1 || bytes == 0) {
        memset(at, (int)(pattern & 0xff), bytes);
        return;
    }
    memcpy(at, pattern_bytes == 2 ? (const void *)&half : &pattern, pattern_bytes);
    for (uint64_t done = pattern_bytes, more; done < bytes; done += more) {
        more = done < MOST ? done : MOST;
        more = more < bytes - done ? more : bytes - done;
        memcpy(at + done, at, more);
    }
}

cek_status cek__host_fill(cek_queue *queue, cek_ref dst, uint32_t pattern, uint32_t pattern_bytes, uint64_t bytes)
{
    cek_status st = cek__host_queue_ready(queue, "fill");
    if (st || !bytes)
        return st;
    st = cek__fill_check(&queue->dev->instance->host, dst, pattern_bytes, bytes, cek__host_mem_bytes, queue->dev);
    if (!st)
        cek__host_fill_bytes(dst.mem->base + dst.offset, pattern, pattern_bytes, bytes);
    return st;
}

cek_status cek__host_update(cek_queue *queue, cek_ref dst, const void *src, uint64_t bytes)
{
    cek_status st = cek__host_queue_ready(queue, "update");
    if (st || !bytes)
        return st;
    st = cek__update_check(&queue->dev->instance->host, dst, src, bytes, cek__host_mem_bytes, queue->dev);
    if (!st)
        memmove(dst.mem->base + dst.offset, src, bytes);
    return st;
}
