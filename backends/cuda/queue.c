/* SPDX-License-Identifier: MIT
 *
 * queue.c - queues are streams of their own, which wait for no other; and the commands that move bytes.
 *
 * What the driver reports of work that failed ends the context, and so the device. Only failures of
 * our own stick to a queue.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/common/command.h"
#include "backends/cuda/cuda.h"

#define DEADLINE_NS UINT64_C(10000000000) /* of queue_destroy, where the host names none */

cek_status cek__cuda_queue_create(cek_dev *head, const cek_queue_desc *desc, cek_queue **out)
{
    cuda_dev *dev = (cuda_dev *)head;
    const cek_host *host = &head->instance->host;
    cek_queue_desc want;
    *out = NULL;
    cek_status st = cek__gpu_ready(head, "queue_create");
    if (!st)
        st = cek__queue_desc_in(host, desc, &want);
    if (st)
        return st;
    cek_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return cek__host_fail(host, CEK_OUT_OF_MEMORY, "queue_create: no memory for the handle");
    queue->dev = dev;
    queue->deadline_ns = want.deadline_ns ? want.deadline_ns : DEADLINE_NS;
    st = cek__cuda_enter(dev, "queue_create");
    if (!st) {
        CUresult error = cek__cuda_api(dev)->cuStreamCreate(&queue->stream, CU_STREAM_NON_BLOCKING);
        cek__cuda_leave(dev);
        if (error)
            st = cek__cuda_fail(dev, "queue_create", "cuStreamCreate", error);
    }
    if (st) {
        free(queue);
        return st;
    }
    *out = queue;
    return CEK_OK;
}

/* A queue whose work does not end leaves its stream behind, and takes the device with it. */
void cek__cuda_queue_destroy(cek_queue *queue)
{
    if (!queue)
        return;
    cuda_dev *dev = queue->dev;
    if (!cek__latched(&dev->head.lost)) {
        cek_status st = cek__cuda_poll_stream(dev, "queue_destroy", queue->stream, queue->deadline_ns);
        if (st == CEK_TIMEOUT)
            cek__latch_set(&dev->head.lost, "queue_destroy: work still runs after %llu ms",
                           (unsigned long long)(queue->deadline_ns / 1000000));
        if (st != CEK_TIMEOUT && st != CEK_DEVICE_LOST && !cek__cuda_enter(dev, "queue_destroy")) {
            cek__cudnn_queue_destroy(dev, queue->stream);
            CUresult error = cek__cuda_api(dev)->cuStreamDestroy(queue->stream);
            cek__cuda_leave(dev);
            if (error)
                (void)cek__cuda_fail(dev, "queue_destroy", "cuStreamDestroy", error);
        }
    }
    free(queue);
}

cek_status cek__cuda_queue_ready(cek_queue *queue, const char *call)
{
    cek_status st = cek__gpu_ready(&queue->dev->head, call);
    return st ? st : cek__failure_check(&queue->failure, &queue->dev->head.instance->host, call);
}

cek_status cek__cuda_queue_status(cek_queue *queue, char *text, uint64_t cap)
{
    if (!cek__latched(&queue->dev->head.lost))
        /* latches what has happened by now */
        (void)cek__cuda_poll_stream(queue->dev, "queue_status", queue->stream, 0);
    if (cek__gpu_device_status(&queue->dev->head, text, cap))
        return CEK_DEVICE_LOST;
    cek__text_out(text, cap, queue->failure.text);
    return queue->failure.status;
}

cek_status cek__cuda_queue_sync(cek_queue *queue, uint64_t timeout_ns)
{
    cek_status st = cek__gpu_ready(&queue->dev->head, "queue_sync");
    if (!st)
        st = cek__cuda_poll_stream(queue->dev, "queue_sync", queue->stream, timeout_ns);
    return st ? st : cek__failure_check(&queue->failure, &queue->dev->head.instance->host, "queue_sync");
}

/* --- commands --------------------------------------------------------------------------------- */

static cek_status transfer_check(cek_queue *queue, const char *call, cek_ref ref, const void *host_memory,
                                 uint64_t bytes)
{
    cek_status st = cek__cuda_queue_ready(queue, call);
    return st ? st
              : cek__transfer_check(&queue->dev->head.instance->host, call, ref, host_memory, bytes, cek__gpu_mem_bytes,
                                    &queue->dev->head);
}

/* The end of every command: out of the context, and its failure told. */
static cek_status enqueued(cek_queue *queue, const char *call, const char *function, CUresult error)
{
    cek__cuda_leave(queue->dev);
    return error ? cek__cuda_fail(queue->dev, call, function, error) : CEK_OK;
}

cek_status cek__cuda_upload(cek_queue *queue, cek_ref dst, const void *src, uint64_t bytes)
{
    if (!bytes)
        return cek__cuda_queue_ready(queue, "upload");
    cek_status st = transfer_check(queue, "upload", dst, src, bytes);
    if (!st)
        st = cek__cuda_enter(queue->dev, "upload");
    if (st)
        return st;
    CUresult error = cek__cuda_api(queue->dev)->cuMemcpyHtoDAsync(cek__cuda_address(dst), src, bytes, queue->stream);
    return enqueued(queue, "upload", "cuMemcpyHtoDAsync", error);
}

cek_status cek__cuda_download(cek_queue *queue, void *dst, cek_ref src, uint64_t bytes)
{
    if (!bytes)
        return cek__cuda_queue_ready(queue, "download");
    cek_status st = transfer_check(queue, "download", src, dst, bytes);
    if (!st)
        st = cek__cuda_enter(queue->dev, "download");
    if (st)
        return st;
    CUresult error = cek__cuda_api(queue->dev)->cuMemcpyDtoHAsync(dst, cek__cuda_address(src), bytes, queue->stream);
    return enqueued(queue, "download", "cuMemcpyDtoHAsync", error);
}

/* Asks once for direct access to another device; without it the driver copies through the host. */
static void peer_enable(cuda_dev *dev, cuda_dev *peer)
{
    const cuda_driver *api = cek__cuda_api(dev);
    int can = 0;
    uint64_t bit = UINT64_C(1) << (peer->head.index & 63);
    pthread_mutex_lock(&dev->programs_lock);
    bool tried = dev->peers_tried & bit;
    dev->peers_tried |= bit;
    pthread_mutex_unlock(&dev->programs_lock);
    if (!tried && !api->cuDeviceCanAccessPeer(&can, dev->device, peer->device) && can)
        (void)api->cuCtxEnablePeerAccess(peer->context, 0);
}

cek_status cek__cuda_copy(cek_queue *queue, cek_ref dst, cek_ref src, uint64_t bytes)
{
    cuda_dev *dev = queue->dev;
    const cuda_driver *api = cek__cuda_api(dev);
    cek_status st = cek__cuda_queue_ready(queue, "copy");
    if (st || !bytes)
        return st;
    st = cek__gpu_copy_check(&dev->head, dst, src, bytes);
    if (!st)
        st = cek__cuda_enter(dev, "copy");
    if (st)
        return st;
    cuda_dev *from = (cuda_dev *)src.mem->dev;
    CUdeviceptr to_address = cek__cuda_address(dst), from_address = cek__cuda_address(src);
    if (from->context == dev->context)
        return enqueued(queue, "copy", "cuMemcpyDtoDAsync",
                        api->cuMemcpyDtoDAsync(to_address, from_address, bytes, queue->stream));
    peer_enable(dev, from);
    CUresult error = api->cuMemcpyPeerAsync(to_address, dev->context, from_address, from->context, bytes,
                                            queue->stream);
    return enqueued(queue, "copy", "cuMemcpyPeerAsync", error);
}

cek_status cek__cuda_fill(cek_queue *queue, cek_ref dst, uint32_t pattern, uint32_t pattern_bytes, uint64_t bytes)
{
    const cuda_driver *api = cek__cuda_api(queue->dev);
    CUresult error;
    cek_status st = cek__cuda_queue_ready(queue, "fill");
    if (st || !bytes)
        return st;
    st = cek__fill_check(&queue->dev->head.instance->host, dst, pattern_bytes, bytes, cek__gpu_mem_bytes,
                         &queue->dev->head);
    if (!st)
        st = cek__cuda_enter(queue->dev, "fill");
    if (st)
        return st;
    CUdeviceptr to = cek__cuda_address(dst);
    if (pattern_bytes == 1)
        error = api->cuMemsetD8Async(to, (unsigned char)pattern, bytes, queue->stream);
    else if (pattern_bytes == 2)
        error = api->cuMemsetD16Async(to, (unsigned short)pattern, bytes / 2, queue->stream);
    else
        error = api->cuMemsetD32Async(to, pattern, bytes / 4, queue->stream);
    return enqueued(queue, "fill", "cuMemsetAsync", error);
}

/* The driver reads page-locked memory later, anything else before it returns: the stack is never page-locked. */
cek_status cek__cuda_update(cek_queue *queue, cek_ref dst, const void *src, uint64_t bytes)
{
    unsigned char copy[CEK__UPDATE_MAX];
    cek_status st = cek__cuda_queue_ready(queue, "update");
    if (st || !bytes)
        return st;
    st = cek__update_check(&queue->dev->head.instance->host, dst, src, bytes, cek__gpu_mem_bytes, &queue->dev->head);
    if (!st)
        st = cek__cuda_enter(queue->dev, "update");
    if (st)
        return st;
    memcpy(copy, src, bytes);
    CUresult error = cek__cuda_api(queue->dev)->cuMemcpyHtoDAsync(cek__cuda_address(dst), copy, bytes, queue->stream);
    return enqueued(queue, "update", "cuMemcpyHtoDAsync", error);
}

/* --- for the shared part ---------------------------------------------------------------------- */

cek_dev *cek__cuda_queue_dev(cek_queue *queue)
{
    return &queue->dev->head;
}

void cek__cuda_queue_fail(cek_queue *queue, cek_status status, const char *text)
{
    cek__failure_set(&queue->failure, status, "%s", text);
}
