/* SPDX-License-Identifier: MIT
 *
 * queue.c - in-order queues, and the commands that move bytes. Every command's event goes to the ledger.
 *
 * No queue that runs commands is profiled: some drivers wait for each command of such a one, or give each a signal.
 * Times come from a queue beside it (cek__opencl_queue_clock) that has nothing but markers.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/common/command.h"
#include "backends/opencl/opencl.h"

#define DEADLINE_NS UINT64_C(10000000000) /* of queue_destroy, where the host names none */

static cek_status queue_make(opencl_dev *dev, const cek_queue_desc *want, cek_queue **out)
{
    const cek_host *host = &dev->head.instance->host;
    cl_int error;
    cek_queue *queue = calloc(1, sizeof *queue);
    *out = NULL;
    if (!queue)
        return cek__host_fail(host, CEK_OUT_OF_MEMORY, "queue_create: no memory for the handle");
    queue->dev = dev;
    queue->timing = want->flags & CEK_QUEUE_TIMING;
    queue->deadline_ns = want->deadline_ns ? want->deadline_ns : DEADLINE_NS;
    queue->ledger = cek__ledger_create(dev);
    queue->queue = clCreateCommandQueue(dev->context, dev->id, 0, &error);
    if (queue->ledger && queue->queue) {
        *out = queue;
        return CEK_OK;
    }
    cek_status st = queue->queue ? cek__host_fail(host, CEK_OUT_OF_MEMORY, "queue_create: no memory for the ledger")
                                 : cek__opencl_fail(dev, "queue_create", "clCreateCommandQueue", error);
    if (queue->queue)
        clReleaseCommandQueue(queue->queue);
    cek__ledger_release(queue->ledger);
    free(queue);
    return st;
}

cek_status cek__opencl_queue_create(cek_dev *head, const cek_queue_desc *desc, cek_queue **out)
{
    cek_queue_desc want;
    *out = NULL;
    cek_status st = cek__gpu_ready(head, "queue_create");
    if (!st)
        st = cek__queue_desc_in(&head->instance->host, desc, &want);
    if (!st)
        st = cek__opencl_stage_make((opencl_dev *)head, "queue_create");
    return st ? st : queue_make((opencl_dev *)head, &want, out);
}

/* What is left behind: of a queue that failed, the driver's queue (releasing it may wait for ever
 * for what never ran), and with it the context until the process ends; nothing else, and nothing of
 * it runs. Of a queue whose work does not end before the deadline, also the events of that work and
 * the copies that `update` made for it; and the device is lost. */
void cek__opencl_queue_destroy(cek_queue *queue)
{
    if (!queue)
        return;
    bool finished = true;
    if (!cek__latched(&queue->dev->head.lost)) {
        (void)cek__opencl_queue_flush(queue);
        cek_status st = cek__ledger_drain(queue->ledger, queue->deadline_ns);
        finished = !st;
        if (st == CEK_TIMEOUT)
            cek__latch_set(&queue->dev->head.lost, "queue_destroy: work still runs after %llu ms",
                           (unsigned long long)(queue->deadline_ns / 1000000));
    } else {
        finished = cek__ledger_look(queue->ledger, CEK__LEDGER_ALL, NULL) == CEK_OK;
    }
    if (finished)
        clReleaseCommandQueue(queue->queue);
    if (finished && queue->clock)
        clReleaseCommandQueue(queue->clock);
    cek__ledger_release(queue->ledger);
    free(queue);
}

cl_int cek__opencl_queue_flush(cek_queue *queue)
{
    if (!queue->unflushed)
        return CL_SUCCESS;
    cl_int error = clFlush(queue->queue);
    queue->unflushed = error != CL_SUCCESS;
    return error;
}

cek_status cek__opencl_queue_clock(cek_queue *queue, const char *call, cl_event *marker)
{
    opencl_dev *dev = queue->dev;
    cl_int error;
    *marker = NULL;
    if (!queue->clock)
        queue->clock = clCreateCommandQueue(dev->context, dev->id, CL_QUEUE_PROFILING_ENABLE, &error);
    if (!queue->clock)
        return cek__opencl_fail(dev, call, "clCreateCommandQueue", error);
    (void)cek__opencl_queue_flush(queue); /* what the marker waits for; a failure shows at the command's own event */
    cl_event before = cek__ledger_event(queue->ledger, cek__ledger_end(queue->ledger));
    error = clEnqueueMarkerWithWaitList(queue->clock, before != NULL, before ? &before : NULL, marker);
    if (before)
        clReleaseEvent(before);
    if (error)
        return cek__opencl_fail(dev, call, "clEnqueueMarkerWithWaitList", error);
    (void)clFlush(queue->clock);
    return CEK_OK;
}

/* --- the device's own ----------------------------------------------------------------------------- */

cek_status cek__opencl_own_take(opencl_dev *dev, cek_queue **out)
{
    const cek_queue_desc plain = { .size = sizeof plain };
    cek_status st = CEK_OK;
    pthread_mutex_lock(&dev->own_lock);
    if (!dev->own)
        st = queue_make(dev, &plain, &dev->own);
    *out = dev->own;
    if (st)
        pthread_mutex_unlock(&dev->own_lock);
    return st;
}

void cek__opencl_own_give(opencl_dev *dev, cek_status st)
{
    cek_queue *failed = NULL;
    if (st) {
        failed = dev->own;
        dev->own = NULL;
    }
    pthread_mutex_unlock(&dev->own_lock);
    cek__opencl_queue_destroy(failed);
}

cek_status cek__opencl_queue_ready(cek_queue *queue, const char *call)
{
    char text[CEK__TEXT_BYTES];
    cek_status st = cek__gpu_ready(&queue->dev->head, call);
    if (st)
        return st;
    st = cek__ledger_failure(queue->ledger, text);
    if (st)
        return cek__host_fail(&queue->dev->head.instance->host, st, "%s: the queue failed before: %s", call, text);
    if (!cek__ledger_reserve(queue->ledger))
        return cek__host_fail(&queue->dev->head.instance->host, CEK_OUT_OF_MEMORY,
                              "%s: no memory to remember one more command", call);
    return CEK_OK;
}

cek_status cek__opencl_queue_status(cek_queue *queue, char *text, uint64_t cap)
{
    char why[CEK__TEXT_BYTES] = "";
    if (cek__gpu_device_status(&queue->dev->head, text, cap))
        return CEK_DEVICE_LOST;
    cek_status st = cek__ledger_look(queue->ledger, CEK__LEDGER_ALL, why);
    cek__text_out(text, cap, why);
    return st == CEK_NOT_READY ? CEK_OK : st;
}

cek_status cek__opencl_queue_sync(cek_queue *queue, uint64_t timeout_ns)
{
    char text[CEK__TEXT_BYTES];
    cek_status st = cek__gpu_ready(&queue->dev->head, "queue_sync");
    if (st)
        return st;
    cl_int error = cek__opencl_queue_flush(queue);
    if (error)
        return cek__opencl_fail(queue->dev, "queue_sync", "clFlush", error);
    st = cek__ledger_wait(queue->ledger, CEK__LEDGER_ALL, timeout_ns, text);
    if (st && st != CEK_TIMEOUT)
        cek__host_fail(&queue->dev->head.instance->host, st, "queue_sync: %s", text);
    return st;
}

/* --- commands ----------------------------------------------------------------------------------------------------- */

void cek__opencl_enqueued(cek_queue *queue, cl_event event, const char *call, void *copy)
{
    queue->unflushed = true;
    cek__ledger_add(queue->ledger, event, call, copy);
}

static cl_mem buffer_of(cek_ref ref)
{
    return ((opencl_mem *)ref.mem)->buffer;
}

static cek_status enqueued(cek_queue *queue, const char *call, const char *function, cl_int error, cl_event event,
                           void *copy)
{
    if (error) {
        cek__opencl_stage_give(queue->dev, copy);
        return cek__opencl_fail(queue->dev, call, function, error);
    }
    cek__opencl_enqueued(queue, event, call, copy);
    return CEK_OK;
}

static cek_status transfer_check(cek_queue *queue, const char *call, cek_ref ref, const void *host_memory,
                                 uint64_t bytes)
{
    cek_status st = cek__opencl_queue_ready(queue, call);
    return st ? st
              : cek__transfer_check(&queue->dev->head.instance->host, call, ref, host_memory, bytes, cek__gpu_mem_bytes,
                                    &queue->dev->head);
}

cek_status cek__opencl_upload(cek_queue *queue, cek_ref dst, const void *src, uint64_t bytes)
{
    cl_event event = NULL;
    if (!bytes)
        return cek__opencl_queue_ready(queue, "upload");
    cek_status st = transfer_check(queue, "upload", dst, src, bytes);
    if (st)
        return st;
    cl_int error = clEnqueueWriteBuffer(queue->queue, buffer_of(dst), CL_FALSE, dst.offset, bytes, src, 0, NULL,
                                        &event);
    return enqueued(queue, "upload", "clEnqueueWriteBuffer", error, event, NULL);
}

cek_status cek__opencl_download(cek_queue *queue, void *dst, cek_ref src, uint64_t bytes)
{
    cl_event event = NULL;
    if (!bytes)
        return cek__opencl_queue_ready(queue, "download");
    cek_status st = transfer_check(queue, "download", src, dst, bytes);
    if (st)
        return st;
    cl_int error = clEnqueueReadBuffer(queue->queue, buffer_of(src), CL_FALSE, src.offset, bytes, dst, 0, NULL, &event);
    return enqueued(queue, "download", "clEnqueueReadBuffer", error, event, NULL);
}

cek_status cek__opencl_copy(cek_queue *queue, cek_ref dst, cek_ref src, uint64_t bytes)
{
    cl_event event = NULL;
    cl_int error;
    cek_status st = cek__opencl_queue_ready(queue, "copy");
    if (st || !bytes)
        return st;
    st = cek__gpu_copy_check(&queue->dev->head, dst, src, bytes);
    if (st)
        return st;
    if (src.mem->dev == &queue->dev->head) {
        error = clEnqueueCopyBuffer(queue->queue, buffer_of(src), buffer_of(dst), src.offset, dst.offset, bytes, 0,
                                    NULL, &event);
        return enqueued(queue, "copy", "clEnqueueCopyBuffer", error, event, NULL);
    }
    /* Contexts share nothing, but what the host can read can be written here. */
    const unsigned char *from = cek__opencl_mem_host_ptr(src.mem);
    if (!from)
        return cek__host_fail(&queue->dev->head.instance->host, CEK_UNSUPPORTED,
                              "copy: the source's device shares no memory with the host");
    error = clEnqueueWriteBuffer(queue->queue, buffer_of(dst), CL_FALSE, dst.offset, bytes, from + src.offset, 0, NULL,
                                 &event);
    return enqueued(queue, "copy", "clEnqueueWriteBuffer", error, event, NULL);
}

cek_status cek__opencl_fill(cek_queue *queue, cek_ref dst, uint32_t pattern, uint32_t pattern_bytes, uint64_t bytes)
{
    cl_event event = NULL;
    cek_status st = cek__opencl_queue_ready(queue, "fill");
    if (st || !bytes)
        return st;
    st = cek__fill_check(&queue->dev->head.instance->host, dst, pattern_bytes, bytes, cek__gpu_mem_bytes,
                         &queue->dev->head);
    if (st)
        return st;
    /* The low bytes of the pattern come first: hosts of OpenCL devices that this project runs on are little-endian. */
    cl_int error = clEnqueueFillBuffer(queue->queue, buffer_of(dst), &pattern, pattern_bytes, dst.offset, bytes, 0,
                                       NULL, &event);
    return enqueued(queue, "fill", "clEnqueueFillBuffer", error, event, NULL);
}

cek_status cek__opencl_update(cek_queue *queue, cek_ref dst, const void *src, uint64_t bytes)
{
    cl_event event = NULL;
    cek_status st = cek__opencl_queue_ready(queue, "update");
    if (st || !bytes)
        return st;
    st = cek__update_check(&queue->dev->head.instance->host, dst, src, bytes, cek__gpu_mem_bytes, &queue->dev->head);
    if (st)
        return st;
    void *copy;
    st = cek__opencl_stage_take(queue->dev, bytes, &copy);
    if (st)
        return st;
    memcpy(copy, src, bytes);
    cl_int error = clEnqueueWriteBuffer(queue->queue, buffer_of(dst), CL_FALSE, dst.offset, bytes, copy, 0, NULL,
                                        &event);
    return enqueued(queue, "update", "clEnqueueWriteBuffer", error, event, copy);
}

/* --- for the shared part ---------------------------------------------------------------------- */

cek_dev *cek__opencl_queue_dev(cek_queue *queue)
{
    return &queue->dev->head;
}

void cek__opencl_queue_fail(cek_queue *queue, cek_status status, const char *text)
{
    cek__ledger_fail(queue->ledger, status, text);
}
