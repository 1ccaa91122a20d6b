/* example.c - the smallest useful plugin: one device whose memory is host memory and which executes
 * each command inside the call that enqueues it. Profile CEK_PROFILE_MEMORY: no operations; a real
 * backend goes on with op_create (clone ../reference for that, which has all of them).
 *
 * Everything here follows <cekernels/plugin.h>, section by section; cekernels-plugin(7) is the way in. */
#define _POSIX_C_SOURCE 200809L
#include <cekernels/plugin.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- What the handles are -------------------------------------------------------------------- */

struct cek_instance {
    cek_host host; /* a copy: zeros where the host has less than we know, or is absent */
};
struct cek_dev {
    cek_instance *instance;
};
struct cek_mem {
    cek_dev *dev;
    uint64_t bytes;
    unsigned char *data;
};
struct cek_queue {
    cek_dev *dev;
};
struct cek_event {
    cek_dev *dev;
    int recorded, timing;
    uint64_t ns;
};

/* Every failure leaves one line with the host and returns its status. */
static cek_status fail(const cek_instance *instance, cek_status status, const char *text)
{
    if (instance && instance->host.fail)
        instance->host.fail(instance->host.user, status, text);
    return status;
}

/* What must not be NULL is refused by name; where `instance` is NULL, because it is the first argument that is missing,
 * there is no host to tell. */
#define NEED(instance, pointer)                                                    \
    do {                                                                           \
        if (!(pointer))                                                            \
            return fail((instance), CEK_INVALID, "example: " #pointer " is NULL"); \
    } while (0)

/* Growth rule: what is beyond the struct that we know must be zero. */
static int tail_is_zero(const void *from_host, uint32_t size, uint32_t known)
{
    const unsigned char *bytes = from_host;
    for (uint32_t i = known; i < size; i++)
        if (bytes[i])
            return 0;
    return 1;
}

/* Checks the head of any option struct: NULL is fine, flags must be among `allowed`. All of them
 * start with size, flags. */
static cek_status options_check(const cek_instance *in, const void *options, uint32_t known, uint32_t allowed)
{
    const uint32_t *head = options;
    if (!options)
        return CEK_OK;
    if (head[0] < known)
        return fail(in, CEK_INVALID, "example: an options struct smaller than that of version 1.0");
    if ((head[1] & ~allowed) || !tail_is_zero(options, head[0], known))
        return fail(in, CEK_UNSUPPORTED, "example: an option that this plugin does not know");
    return CEK_OK;
}

/* ---- Devices --------------------------------------------------------------------------------- */

static cek_status create(const cek_host *host, cek_instance **out)
{
    cek_instance *in;
    if (!out) {
        if (host && host->fail)
            host->fail(host->user, CEK_INVALID, "example: out is NULL");
        return CEK_INVALID;
    }
    in = *out = calloc(1, sizeof *in);
    if (!in)
        return CEK_OUT_OF_MEMORY;
    if (host) /* cek_host may be longer than ours: the rest is ignored */
        memcpy(&in->host, host, host->size < sizeof in->host ? host->size : sizeof in->host);
    return CEK_OK;
}

static void destroy(cek_instance *instance)
{
    free(instance);
}

static uint32_t device_count(cek_instance *instance)
{
    return instance ? 1 : 0;
}

static cek_status device_info(cek_instance *instance, uint32_t index, cek_device_info *out)
{
    cek_device_info info = {
        .kind = CEK_KIND_ACCELERATOR,
        .flags = CEK_DEVICE_UNIFIED_MEMORY | CEK_DEVICE_INLINE | CEK_DEVICE_ONLY_WHEN_NAMED,
        .compute_units = 1,
        .total_bytes = CEK_UNKNOWN,
        .free_bytes = CEK_UNKNOWN,
        .max_alloc_bytes = CEK_UNKNOWN,
        .types = 1u << CEK_F32,
        .name = "example device in host memory",
        .vendor = "example",
        .processor = "example",
        .reason = "it is an example",
    };
    NEED(NULL, instance);
    NEED(instance, out);
    if (index != 0)
        return fail(instance, CEK_INVALID, "example: there is one device");
    if (out->size < sizeof info) /* no host of version 1.0 has a smaller one */
        return fail(instance, CEK_INVALID, "example: cek_device_info smaller than that of version 1.0");
    info.size = out->size;
    memcpy(out, &info, sizeof info);
    return CEK_OK;
}

static cek_status device_open(cek_instance *instance, uint32_t index, const cek_device_options *options, cek_dev **out)
{
    cek_status st;
    if (out)
        *out = NULL;
    NEED(NULL, instance);
    NEED(instance, out);
    st = options_check(instance, options, sizeof *options, 0);
    if (st != CEK_OK)
        return st;
    if (index != 0)
        return fail(instance, CEK_INVALID, "example: there is one device");
    *out = calloc(1, sizeof **out);
    if (!*out)
        return fail(instance, CEK_OUT_OF_MEMORY, "example: no memory for a device");
    (*out)->instance = instance;
    return CEK_OK;
}

static void device_close(cek_dev *dev)
{
    free(dev);
}

static void text_clear(char *text, uint64_t cap)
{
    if (text && cap)
        text[0] = 0;
}

static cek_status device_status(cek_dev *dev, char *text, uint64_t cap)
{
    NEED(NULL, dev);
    text_clear(text, cap);
    return CEK_OK; /* this device cannot be lost */
}

static cek_status device_memory(cek_dev *dev, uint64_t *free_bytes, uint64_t *total_bytes)
{
    NEED(NULL, dev);
    NEED(dev->instance, free_bytes);
    NEED(dev->instance, total_bytes);
    *free_bytes = *total_bytes = CEK_UNKNOWN;
    return CEK_OK;
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static cek_status mem_alloc(cek_dev *dev, const cek_mem_desc *desc, cek_mem **out)
{
    cek_status st;
    uint64_t rounded;
    cek_mem *mem;
    if (out)
        *out = NULL;
    NEED(NULL, dev);
    NEED(dev->instance, desc);
    NEED(dev->instance, out);
    st = options_check(dev->instance, desc, sizeof *desc, 0);
    if (st != CEK_OK)
        return st;
    if (desc->bytes == 0)
        return fail(dev->instance, CEK_INVALID, "example: an allocation of 0 bytes");
    if (desc->bytes > INT64_MAX - CEK_ALIGNMENT)
        return fail(dev->instance, CEK_OUT_OF_MEMORY, "example: an allocation larger than any memory");
    rounded = (desc->bytes + CEK_ALIGNMENT - 1) / CEK_ALIGNMENT * CEK_ALIGNMENT;
    mem = calloc(1, sizeof *mem);
    if (mem)
        mem->data = aligned_alloc(CEK_ALIGNMENT, rounded);
    if (!mem || !mem->data) {
        free(mem);
        return fail(dev->instance, CEK_OUT_OF_MEMORY, "example: host memory is exhausted");
    }
    memset(mem->data, 0, rounded); /* touched: the memory is really there when this returns */
    mem->dev = dev;
    mem->bytes = desc->bytes;
    *out = mem;
    return CEK_OK;
}

static void mem_free(cek_mem *mem)
{
    if (mem)
        free(mem->data);
    free(mem);
}

static void *mem_host_ptr(cek_mem *mem)
{
    return mem ? mem->data : NULL;
}

/* ---- Queues: every command is finished when its call returns --------------------------------- */

static cek_status queue_create(cek_dev *dev, const cek_queue_desc *desc, cek_queue **out)
{
    cek_status st;
    if (out)
        *out = NULL;
    NEED(NULL, dev);
    NEED(dev->instance, out);
    st = options_check(dev->instance, desc, sizeof *desc, CEK_QUEUE_TIMING);
    if (st != CEK_OK)
        return st;
    *out = calloc(1, sizeof **out);
    if (!*out)
        return fail(dev->instance, CEK_OUT_OF_MEMORY, "example: no memory for a queue");
    (*out)->dev = dev;
    return CEK_OK;
}

static void queue_destroy(cek_queue *queue)
{
    free(queue);
}

static cek_status queue_status(cek_queue *queue, char *text, uint64_t cap)
{
    NEED(NULL, queue);
    text_clear(text, cap);
    return CEK_OK;
}

static cek_status queue_sync(cek_queue *queue, uint64_t timeout_ns)
{
    NEED(NULL, queue);
    (void)timeout_ns;
    return CEK_OK;
}

/* The address of `bytes` bytes at a reference to memory of `dev`, or NULL after leaving the reason with the host. */
static unsigned char *range(const cek_queue *queue, const cek_dev *dev, cek_ref ref, uint64_t bytes)
{
    if (!ref.mem)
        fail(queue->dev->instance, CEK_INVALID, "example: no memory given");
    else if (ref.mem->dev != dev)
        fail(queue->dev->instance, CEK_INVALID, "example: memory of another device");
    else if (ref.offset > ref.mem->bytes || bytes > ref.mem->bytes - ref.offset)
        fail(queue->dev->instance, CEK_INVALID, "example: a range that leaves its memory");
    else
        return ref.mem->data + ref.offset;
    return NULL;
}

static cek_status upload(cek_queue *queue, cek_ref dst, const void *src, uint64_t bytes)
{
    unsigned char *to;
    NEED(NULL, queue);
    if (bytes == 0)
        return CEK_OK;
    if (!(to = range(queue, queue->dev, dst, bytes)))
        return CEK_INVALID;
    NEED(queue->dev->instance, src);
    memcpy(to, src, bytes);
    return CEK_OK;
}

static cek_status download(cek_queue *queue, void *dst, cek_ref src, uint64_t bytes)
{
    const unsigned char *from;
    NEED(NULL, queue);
    if (bytes == 0)
        return CEK_OK;
    if (!(from = range(queue, queue->dev, src, bytes)))
        return CEK_INVALID;
    NEED(queue->dev->instance, dst);
    memcpy(dst, from, bytes);
    return CEK_OK;
}

static cek_status copy(cek_queue *queue, cek_ref dst, cek_ref src, uint64_t bytes)
{
    unsigned char *to;
    const unsigned char *from;
    NEED(NULL, queue);
    if (bytes == 0)
        return CEK_OK;
    if (src.mem && src.mem->dev->instance != queue->dev->instance)
        return fail(queue->dev->instance, CEK_UNSUPPORTED, "example: no way from another instance");
    if (!(to = range(queue, queue->dev, dst, bytes)) ||
        !(from = range(queue, src.mem ? src.mem->dev : queue->dev, src, bytes))) /* all devices lie in host memory */
        return CEK_INVALID;
    if (to < from + bytes && from < to + bytes)
        return fail(queue->dev->instance, CEK_INVALID, "example: the ranges of a copy overlap");
    memcpy(to, from, bytes);
    return CEK_OK;
}

static cek_status fill(cek_queue *queue, cek_ref dst, uint32_t pattern, uint32_t pattern_bytes, uint64_t bytes)
{
    unsigned char *to;
    NEED(NULL, queue);
    if (pattern_bytes != 1 && pattern_bytes != 2 && pattern_bytes != 4)
        return fail(queue->dev->instance, CEK_INVALID, "example: a pattern has 1, 2 or 4 bytes");
    if (bytes % pattern_bytes || dst.offset % pattern_bytes)
        return fail(queue->dev->instance, CEK_INVALID, "example: fill in parts of a pattern");
    if (bytes == 0)
        return CEK_OK;
    if (!(to = range(queue, queue->dev, dst, bytes)))
        return CEK_INVALID;
    for (uint64_t i = 0; i < bytes; i++)
        to[i] = (unsigned char)(pattern >> 8 * (i % pattern_bytes));
    return CEK_OK;
}

static cek_status update(cek_queue *queue, cek_ref dst, const void *src, uint64_t bytes)
{
    NEED(NULL, queue);
    if (bytes > 4096 || bytes % 4 || dst.offset % 4)
        return fail(queue->dev->instance, CEK_INVALID, "example: update takes up to 4096 bytes, in multiples of 4");
    return upload(queue, dst, src, bytes);
}

/* ---- Events: points in time ------------------------------------------------------------------ */

static cek_status event_create(cek_dev *dev, const cek_event_desc *desc, cek_event **out)
{
    cek_status st;
    if (out)
        *out = NULL;
    NEED(NULL, dev);
    NEED(dev->instance, out);
    st = options_check(dev->instance, desc, sizeof *desc, CEK_EVENT_TIMING);
    if (st != CEK_OK)
        return st;
    *out = calloc(1, sizeof **out);
    if (!*out)
        return fail(dev->instance, CEK_OUT_OF_MEMORY, "example: no memory for an event");
    (*out)->dev = dev;
    (*out)->timing = desc && (desc->flags & CEK_EVENT_TIMING);
    return CEK_OK;
}

static void event_destroy(cek_event *event)
{
    free(event);
}

static cek_status event_record(cek_queue *queue, cek_event *event)
{
    struct timespec now;
    NEED(NULL, queue);
    NEED(queue->dev->instance, event);
    if (event->dev != queue->dev)
        return fail(queue->dev->instance, CEK_INVALID, "example: an event of another device");
    clock_gettime(CLOCK_MONOTONIC, &now);
    event->ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    event->recorded = 1;
    return CEK_OK;
}

static cek_status event_query(cek_event *event)
{
    NEED(NULL, event);
    return event->recorded ? CEK_OK
                           : fail(event->dev->instance, CEK_INVALID, "example: an event that was never recorded");
}

static cek_status event_wait(cek_queue *queue, cek_event *event)
{
    NEED(NULL, queue);
    NEED(queue->dev->instance, event);
    if (event->dev != queue->dev)
        return fail(queue->dev->instance, CEK_UNSUPPORTED, "example: an event of another device");
    return event_query(event);
}

static cek_status event_sync(cek_event *event, uint64_t timeout_ns)
{
    (void)timeout_ns;
    return event_query(event);
}

static cek_status event_status(cek_event *event, char *text, uint64_t cap)
{
    text_clear(text, cap);
    return event_query(event);
}

static cek_status event_elapsed(cek_event *start, cek_event *end, uint64_t *ns)
{
    if (ns)
        *ns = 0;
    NEED(NULL, start);
    NEED(start->dev->instance, end);
    NEED(start->dev->instance, ns);
    if (!start->timing || !end->timing)
        return fail(start->dev->instance, CEK_INVALID, "example: an event made without CEK_EVENT_TIMING");
    if (event_query(start) != CEK_OK || event_query(end) != CEK_OK)
        return CEK_INVALID;
    if (end->ns < start->ns)
        return fail(start->dev->instance, CEK_INVALID, "example: the end is before the start");
    *ns = end->ns - start->ns;
    return CEK_OK;
}

/* ---- The table ------------------------------------------------------------------------------- */

const cek_plugin *cek_plugin_query(uint32_t host_abi)
{
    static const cek_plugin plugin = {
        .size = sizeof plugin,
        .abi = CEK_ABI,
        .name = "example",
        .version = "1.0",
        .build = "C11",
        .profile = CEK_PROFILE_MEMORY,
        .create = create,
        .destroy = destroy,
        .device_count = device_count,
        .device_info = device_info,
        .device_open = device_open,
        .device_close = device_close,
        .device_status = device_status,
        .device_memory = device_memory,
        .mem_alloc = mem_alloc,
        .mem_free = mem_free,
        .mem_host_ptr = mem_host_ptr,
        .queue_create = queue_create,
        .queue_destroy = queue_destroy,
        .queue_status = queue_status,
        .queue_sync = queue_sync,
        .upload = upload,
        .download = download,
        .copy = copy,
        .fill = fill,
        .update = update,
        .event_create = event_create,
        .event_destroy = event_destroy,
        .event_record = event_record,
        .event_wait = event_wait,
        .event_query = event_query,
        .event_sync = event_sync,
        .event_status = event_status,
        .event_elapsed = event_elapsed,
    };
    return host_abi >> 16 == CEK_ABI_MAJOR ? &plugin : NULL;
}
