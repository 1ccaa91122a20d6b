/* late.c - a plugin whose work takes time: the reference, with queues in which every fill of a megabyte or more keeps
 * the device busy for a while; and which breaks one rule on request. A conformance suite that passes a breaker proves
 * nothing. For tests alone, never installed.
 *
 *     late_breaks   early       queue_sync answers before the work is done
 *                   deaf        queue_sync does not look at its time-out
 *                   deaf_event  event_sync does not
 *                   blocking    op_run waits for what is queued
 *                   idle        work is done only when somebody waits for it
 *                   patient     queue_destroy waits as long as the work takes
 *                   forgets     a lost device is well again when it is asked
 *                   amnesia     the first failure of a queue is told once
 *                   elements    arrays of elements that are too small are taken
 *                   outer       a product of one level of a batch has to say so
 *                   together    what is added to one output is added to the other
 *                   lenient     a flag that nobody knows is overlooked
 *                   planar      averages over other than planes count the padding
 *                   feverish    sensors tell more work than there is time
 *                   mumbling    and a number that they say is unknown
 *
 * Results are there at once but for downloads, and what is late is the news of it. Memory and operations are the
 * reference's. */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cekernels/plugin.h>

extern const cek_plugin cek__reference_plugin;

enum { BYTES_A_NS = 4, SLOW_BYTES = 1 << 20, DOWNLOADS = 64 };
#define DEADLINE_NS 10000000000u

struct cek_instance {
    cek_instance *inner;
    char breaks[16];
};
struct cek_dev {
    cek_instance *instance;
    cek_dev *inner;
    bool lost;
};
/* Of a download that has not been done yet. */
typedef struct late_download {
    void *dst;
    cek_ref src;
    uint64_t bytes;
} late_download;
struct cek_queue {
    cek_dev *dev;
    cek_queue *inner;
    uint64_t ready_ns, deadline_ns; /* when all is done; how long destroying waits */
    uint32_t pending, syncs;
    late_download downloads[DOWNLOADS];
};
struct cek_event {
    cek_dev *dev;
    cek_event *inner;
    cek_queue *queue;
    uint64_t ready_ns;
};

static const cek_plugin *const inner = &cek__reference_plugin;

static bool breaks(const cek_dev *dev, const char *rule)
{
    return strcmp(dev->instance->breaks, rule) == 0;
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Until that time, or until the time-out. */
static cek_status wait_for(uint64_t ready_ns, uint64_t timeout_ns)
{
    uint64_t start = now_ns(), end = timeout_ns > UINT64_MAX - start ? UINT64_MAX : start + timeout_ns;
    while (now_ns() < ready_ns) {
        if (now_ns() >= end)
            return CEK_TIMEOUT;
        nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
    }
    return CEK_OK;
}

static void downloads_do(cek_queue *queue)
{
    for (uint32_t i = 0; i < queue->pending; i++)
        inner->download(queue->inner, queue->downloads[i].dst, queue->downloads[i].src, queue->downloads[i].bytes);
    queue->pending = 0;
}

/* ---- instance and devices ---- */

static cek_status create(const cek_host *host, cek_instance **out)
{
    cek_instance *made = calloc(1, sizeof *made);
    const char *rule = host && host->option ? host->option(host->user, "late_breaks") : NULL;
    cek_status st = inner->create(host, &made->inner);
    strncpy(made->breaks, rule ? rule : "", sizeof made->breaks - 1);
    *out = st ? NULL : made;
    if (st)
        free(made);
    return st;
}

static void destroy(cek_instance *instance)
{
    if (instance)
        inner->destroy(instance->inner);
    free(instance);
}

static uint32_t device_count(cek_instance *instance)
{
    return inner->device_count(instance->inner);
}

static cek_status device_info(cek_instance *instance, uint32_t index, cek_device_info *info)
{
    cek_status st = inner->device_info(instance->inner, index, info);
    if (!st)
        info->flags &= ~(uint32_t)CEK_DEVICE_INLINE;
    return st;
}

static cek_status device_sensors(cek_instance *instance, uint32_t index, cek_device_sensors *out)
{
    if (index >= device_count(instance) || out->size < sizeof *out)
        return CEK_INVALID;
    out->known = CEK_SENSOR_UTILIZATION | CEK_SENSOR_TEMPERATURE;
    out->utilization = strcmp(instance->breaks, "feverish") ? 0.5 : 1.5;
    out->celsius = 40;
    out->watts = strcmp(instance->breaks, "mumbling") ? 0 : 7;
    return CEK_OK;
}

static cek_status device_open(cek_instance *instance, uint32_t index, const cek_device_options *options, cek_dev **out)
{
    cek_dev *dev = calloc(1, sizeof *dev);
    dev->instance = instance;
    cek_status st = inner->device_open(instance->inner, index, options, &dev->inner);
    *out = st ? NULL : dev;
    if (st)
        free(dev);
    return st;
}

static void device_close(cek_dev *dev)
{
    if (dev)
        inner->device_close(dev->inner);
    free(dev);
}

static cek_status ready(const cek_dev *dev)
{
    return dev->lost ? CEK_DEVICE_LOST : CEK_OK;
}
#define READY(dev)                  \
    do {                            \
        if (ready(dev))             \
            return CEK_DEVICE_LOST; \
    } while (0)

static cek_status device_status(cek_dev *dev, char *text, uint64_t cap)
{
    cek_status st = inner->device_status(dev->inner, text, cap);
    if (dev->lost && text && cap > 4)
        memcpy(text, "late", 5);
    st = dev->lost ? CEK_DEVICE_LOST : st;
    if (breaks(dev, "forgets"))
        dev->lost = false;
    return st;
}

static cek_status device_memory(cek_dev *dev, uint64_t *free_bytes, uint64_t *total_bytes)
{
    READY(dev);
    return inner->device_memory(dev->inner, free_bytes, total_bytes);
}

static cek_status mem_alloc(cek_dev *dev, const cek_mem_desc *desc, cek_mem **out)
{
    *out = NULL;
    READY(dev);
    return inner->mem_alloc(dev->inner, desc, out);
}

static cek_status mem_import(cek_dev *dev, const cek_foreign *foreign, cek_mem **out)
{
    *out = NULL;
    READY(dev);
    return inner->mem_import(dev->inner, foreign, out);
}

static cek_status host_alloc(cek_dev *dev, uint64_t bytes, void **out)
{
    *out = NULL;
    READY(dev);
    return inner->host_alloc(dev->inner, bytes, out);
}

static void host_free(cek_dev *dev, void *ptr)
{
    inner->host_free(dev->inner, ptr);
}

/* ---- queues ---- */

static cek_status queue_create(cek_dev *dev, const cek_queue_desc *desc, cek_queue **out)
{
    *out = NULL;
    READY(dev);
    cek_queue *queue = calloc(1, sizeof *queue);
    queue->dev = dev;
    cek_status st = inner->queue_create(dev->inner, desc, &queue->inner);
    queue->deadline_ns = desc && desc->deadline_ns ? desc->deadline_ns : DEADLINE_NS;
    *out = st ? NULL : queue;
    if (st)
        free(queue);
    return st;
}

static void queue_destroy(cek_queue *queue)
{
    if (!queue)
        return;
    downloads_do(queue);
    if (!queue->dev->lost &&
        wait_for(queue->ready_ns, breaks(queue->dev, "patient") ? CEK_FOREVER : queue->deadline_ns) == CEK_TIMEOUT)
        queue->dev->lost = true;
    inner->queue_destroy(queue->inner);
    free(queue);
}

static cek_status queue_status(cek_queue *queue, char *text, uint64_t cap)
{
    cek_status st = inner->queue_status(queue->inner, text, cap);
    return queue->dev->lost ? CEK_DEVICE_LOST : st;
}

static cek_status queue_sync(cek_queue *queue, uint64_t timeout_ns)
{
    READY(queue->dev);
    if (breaks(queue->dev, "early"))
        return CEK_OK;
    cek_status st = wait_for(queue->ready_ns, breaks(queue->dev, "deaf") ? CEK_FOREVER : timeout_ns);
    if (st)
        return st;
    downloads_do(queue);
    if (breaks(queue->dev, "amnesia") && queue->syncs++ == 2)
        return CEK_INTERNAL;
    return inner->queue_sync(queue->inner, 0);
}

static cek_status upload(cek_queue *queue, cek_ref dst, const void *src, uint64_t bytes)
{
    READY(queue->dev);
    return inner->upload(queue->inner, dst, src, bytes);
}

static cek_status download(cek_queue *queue, void *dst, cek_ref src, uint64_t bytes)
{
    READY(queue->dev);
    if (!breaks(queue->dev, "early") && !breaks(queue->dev, "idle"))
        return inner->download(queue->inner, dst, src, bytes);
    if (queue->pending == DOWNLOADS)
        downloads_do(queue);
    queue->downloads[queue->pending++] = (late_download){ dst, src, bytes };
    return CEK_OK;
}

static cek_status copy(cek_queue *queue, cek_ref dst, cek_ref src, uint64_t bytes)
{
    READY(queue->dev);
    return inner->copy(queue->inner, dst, src, bytes);
}

static cek_status fill(cek_queue *queue, cek_ref dst, uint32_t pattern, uint32_t pattern_bytes, uint64_t bytes)
{
    READY(queue->dev);
    cek_status st = inner->fill(queue->inner, dst, pattern, pattern_bytes, bytes);
    uint64_t now = now_ns();
    if (!st && bytes >= SLOW_BYTES)
        queue->ready_ns = (queue->ready_ns > now ? queue->ready_ns : now) + bytes / BYTES_A_NS;
    return st;
}

static cek_status update(cek_queue *queue, cek_ref dst, const void *src, uint64_t bytes)
{
    READY(queue->dev);
    return inner->update(queue->inner, dst, src, bytes);
}

/* ---- events ---- */

static cek_status event_create(cek_dev *dev, const cek_event_desc *desc, cek_event **out)
{
    *out = NULL;
    READY(dev);
    cek_event *event = calloc(1, sizeof *event);
    event->dev = dev;
    cek_status st = inner->event_create(dev->inner, desc, &event->inner);
    *out = st ? NULL : event;
    if (st)
        free(event);
    return st;
}

static void event_destroy(cek_event *event)
{
    if (event)
        inner->event_destroy(event->inner);
    free(event);
}

static cek_status event_record(cek_queue *queue, cek_event *event)
{
    READY(queue->dev);
    cek_status st = inner->event_record(queue->inner, event->inner);
    if (!st) {
        event->queue = queue;
        event->ready_ns = queue->ready_ns > now_ns() ? queue->ready_ns : now_ns();
    }
    return st;
}

static cek_status event_wait(cek_queue *queue, cek_event *event)
{
    READY(queue->dev);
    cek_status st = inner->event_wait(queue->inner, event->inner);
    if (!st && queue->ready_ns < event->ready_ns)
        queue->ready_ns = event->ready_ns;
    return st;
}

static cek_status event_query(cek_event *event)
{
    READY(event->dev);
    cek_status st = inner->event_query(event->inner);
    return !st && now_ns() < event->ready_ns ? CEK_NOT_READY : st;
}

static cek_status event_sync(cek_event *event, uint64_t timeout_ns)
{
    READY(event->dev);
    cek_status st = inner->event_query(event->inner);
    if (!st)
        st = wait_for(event->ready_ns, breaks(event->dev, "deaf_event") ? CEK_FOREVER : timeout_ns);
    if (!st)
        downloads_do(event->queue);
    return st;
}

static cek_status event_status(cek_event *event, char *text, uint64_t cap)
{
    READY(event->dev);
    cek_status st = inner->event_status(event->inner, text, cap);
    return !st && now_ns() < event->ready_ns ? CEK_NOT_READY : st;
}

static cek_status event_elapsed(cek_event *start, cek_event *end, uint64_t *ns)
{
    *ns = 0;
    READY(end->dev);
    if (now_ns() < end->ready_ns)
        return CEK_NOT_READY;
    cek_status st = inner->event_elapsed(start->inner, end->inner, ns);
    if (!st && end->ready_ns > start->ready_ns && *ns < end->ready_ns - start->ready_ns)
        *ns = end->ready_ns - start->ready_ns;
    return st;
}

/* ---- operations ---- */

/* A descriptor as it is misread. */
typedef union misread {
    cek_op_desc op;
    cek_gemm_desc gemm;
    cek_pool_desc pool;
} misread;

/* False: it is refused. */
static bool read_wrongly(const cek_dev *dev, misread *d)
{
    const uint32_t both = CEK_BIT(CEK_GEMM_C) | CEK_BIT(CEK_GEMM_A_SUM);
    const bool pools = d->op.kind == CEK_OP_POOL_FORWARD || d->op.kind == CEK_OP_POOL_BACKWARD;
    if (breaks(dev, "outer") && d->op.kind == CEK_OP_GEMM && d->gemm.outer == 0)
        return false;
    if (breaks(dev, "together") && d->op.kind == CEK_OP_GEMM && d->op.accumulate & both)
        d->op.accumulate |= d->op.operands & both;
    if (breaks(dev, "lenient"))
        d->op.flags &= ~(1u << 5);
    if (breaks(dev, "planar") && pools && d->pool.mode == CEK_POOL_AVERAGE && d->pool.spatial != 2)
        d->pool.flags |= CEK_POOL_COUNT_PAD;
    return true;
}

/* As a plugin would that copies the smaller of both sizes into zeros. */
static cek_status op_create(cek_dev *dev, const cek_op_desc *desc, cek_op_info *info, cek_op **out)
{
    *out = NULL;
    READY(dev);
    misread wrong;
    if (desc->size >= sizeof wrong.op && desc->size <= sizeof wrong) {
        memcpy(&wrong, desc, desc->size);
        if (!read_wrongly(dev, &wrong))
            return CEK_INVALID;
        desc = &wrong.op;
    }
    cek_pointwise_desc taken = { .rank = 0 };
    const uint32_t size = sizeof(cek_pointwise_input);
    if (!breaks(dev, "elements") || desc->kind != CEK_OP_POINTWISE || desc->size < sizeof taken)
        return inner->op_create(dev->inner, desc, info, out);
    memcpy(&taken, desc, sizeof taken);
    cek_pointwise_input inputs[CEK_POINTWISE_INPUTS] = { { .type = 0 } };
    for (uint32_t i = 0; i < taken.input_count && taken.input_count <= CEK_POINTWISE_INPUTS; i++)
        memcpy(&inputs[i], (const char *)taken.inputs + (uint64_t)i * taken.input_size,
               taken.input_size < size ? taken.input_size : size);
    if (taken.input_size < size) {
        taken.inputs = inputs;
        taken.input_size = size;
    }
    taken.op.size = sizeof taken;
    return inner->op_create(dev->inner, taken.input_size == size ? &taken.op : desc, info, out);
}

static cek_status op_prepack(cek_queue *queue, const cek_op *op, const cek_ref *operands, uint32_t count,
                             cek_ref packed)
{
    READY(queue->dev);
    return inner->op_prepack(queue->inner, op, operands, count, packed);
}

static cek_status op_run(cek_queue *queue, const cek_op *op, const cek_ref *operands, uint32_t count, cek_ref workspace)
{
    READY(queue->dev);
    if (breaks(queue->dev, "blocking"))
        wait_for(queue->ready_ns, CEK_FOREVER);
    return inner->op_run(queue->inner, op, operands, count, workspace);
}

/* ---- the table ---- */

static cek_plugin late;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The reference's table with these slots. No command buffers. */
static void table_make(void)
{
    late = cek__reference_plugin;
    late.name = "late";
#define MINE(slot) late.slot = slot
    MINE(create), MINE(destroy), MINE(device_count), MINE(device_info), MINE(device_open), MINE(device_close);
    MINE(device_sensors);
    MINE(device_status), MINE(device_memory), MINE(mem_alloc), MINE(mem_import), MINE(host_alloc), MINE(host_free);
    MINE(queue_create), MINE(queue_destroy), MINE(queue_status), MINE(queue_sync);
    MINE(upload), MINE(download), MINE(copy), MINE(fill), MINE(update);
    MINE(event_create), MINE(event_destroy), MINE(event_record), MINE(event_wait), MINE(event_query);
    MINE(event_sync), MINE(event_status), MINE(event_elapsed);
    MINE(op_create), MINE(op_prepack), MINE(op_run);
    late.cmdbuf_create = NULL;
    late.cmdbuf_destroy = NULL;
    late.cmdbuf_run = NULL;
}

const cek_plugin *cek_plugin_query(uint32_t host_abi)
{
    pthread_once(&once, table_make);
    return host_abi >> 16 == CEK_ABI_MAJOR ? &late : NULL;
}
