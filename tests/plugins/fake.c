/* fake.c - a plugin for tests of the registry, the allocator, and of copies and streams: see fake.h.
 *
 * Its memory is malloc'ed. A sound one is inline with memory in the host's reach; in mode "lazy" nothing is executed
 * before somebody waits for it and memory is out of reach, so a missing wait shows as a wrong result every time.
 * Operations: pointwise over f32 with few instructions, in profile inference. */
#include <cekernels/plugin.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

#define EXPORT __attribute__((visibility("default")))
enum { DEVICES = 2, COMMANDS_MAX = 4096, INPUTS_MAX = 8 };

static fake_control control = { .capacity = 1ull << 40 };
static char plugin_name[64], mode[64];

struct cek_instance {
    cek_host host;
    pthread_mutex_t lock; /* over all queues: a wait on one may run another */
};
struct cek_dev {
    cek_instance *instance;
};
struct cek_mem {
    cek_dev *dev;
    uint64_t bytes;
    uint8_t *data;
};
struct cek_op {
    uint32_t inputs, instructions, rank;
    uint64_t shape[CEK_RANK_MAX];
    int64_t out_strides[CEK_RANK_MAX];
    cek_pointwise_input input[INPUTS_MAX];
    cek_pointwise_instruction instruction[CEK_POINTWISE_INSTRUCTIONS];
};
typedef struct command {
    enum { COPY, UPLOAD, DOWNLOAD, FILL, UPDATE, WAIT, RUN } kind;
    cek_ref dst, src;
    void *host;
    uint64_t bytes;
    uint32_t pattern;
    cek_queue *other;
    uint64_t position;
    const cek_op *op;
    cek_ref operands[INPUTS_MAX + 1];
} command;
struct cek_queue {
    cek_dev *dev;
    command *commands; /* a ring */
    uint64_t count, done;
    cek_status failed;
    bool timing;
};
struct cek_event {
    cek_dev *dev;
    cek_queue *queue;
    uint64_t position;
};

EXPORT fake_control *fake_control_get(void);
EXPORT fake_control *fake_control_get(void)
{
    return &control;
}

static bool mode_is(const char *m)
{
    return strcmp(mode, m) == 0;
}

static cek_status fail(const cek_instance *in, cek_status status, const char *text)
{
    if (in->host.fail != NULL)
        in->host.fail(in->host.user, status, text);
    return status;
}

static void *make(size_t size)
{
    atomic_fetch_add(&control.live, 1);
    return calloc(1, size);
}

static void unmake(void *object)
{
    if (object != NULL)
        atomic_fetch_sub(&control.live, 1);
    free(object);
}

/* ---- instance and devices ---- */

static cek_status create(const cek_host *host, cek_instance **out)
{
    cek_instance *in;
    uint32_t known = host != NULL && host->size < sizeof in->host ? host->size : (uint32_t)sizeof in->host;
    cek_host ours = { 0 };
    const char *option;

    *out = NULL;
    if (host != NULL)
        memcpy(&ours, host, known);
    control.host_size = ours.size;
    control.host_abi = ours.abi;
    option = ours.option != NULL ? ours.option(ours.user, "fake_option") : NULL;
    snprintf(control.option, sizeof control.option, "%s", option != NULL ? option : "(unset)");
    if (mode_is("unavailable")) {
        ours.fail(ours.user, CEK_UNAVAILABLE, "no fake hardware\nin this machine");
        return CEK_UNAVAILABLE;
    }
    if (mode_is("failing"))
        return CEK_INTERNAL;
    if (mode_is("status"))
        return 4711;
    if (mode_is("noinstance"))
        return CEK_OK;
    in = make(sizeof *in);
    in->host = ours;
    pthread_mutex_init(&in->lock, NULL);
    atomic_fetch_add(&control.instances, 1);
    if (ours.log != NULL)
        ours.log(ours.user, CEK_LOG_INFO, "created\nand well");
    *out = in;
    return CEK_OK;
}

static void destroy(cek_instance *in)
{
    if (in == NULL)
        return;
    atomic_fetch_sub(&control.instances, 1);
    pthread_mutex_destroy(&in->lock);
    unmake(in);
}

static uint32_t device_count(cek_instance *in)
{
    (void)in;
    return mode_is("counts") ? UINT32_MAX : mode_is("zero") ? 0 : mode_is("card") ? 1 : DEVICES;
}

static cek_status device_info(cek_instance *in, uint32_t index, cek_device_info *info)
{
    bool card = mode_is("card") || (mode_is("both") && index == 0);
    bool host = mode_is("host") || (mode_is("both") && index == 1);
    cek_device_info mine = { .kind = card ? CEK_KIND_GPU : CEK_KIND_CPU,
                             .flags = mode_is("lazy") ? 0 : CEK_DEVICE_INLINE | CEK_DEVICE_UNIFIED_MEMORY,
                             .total_bytes = control.capacity,
                             .free_bytes = control.capacity - control.bytes,
                             .max_alloc_bytes = control.capacity,
                             .types = 1u << CEK_F32 | 1u << CEK_F64 | 1u << CEK_I32 | 1u << CEK_U8 };

    if (mode_is("infofail"))
        return fail(in, CEK_INTERNAL, "the device does not answer");
    if (mode_is("named") || (mode_is("second") && index == 1))
        mine.flags |= CEK_DEVICE_ONLY_WHEN_NAMED;
    if (mode_is("kinds"))
        mine.kind = 77, mine.flags |= 1u << 30;
    snprintf(mine.name, sizeof mine.name, "fake device %u", index);
    if (card)
        strcpy(mine.processor, "pci:0000:01:00.0");
    else if (host)
        strcpy(mine.processor, "cpu");
    else
        snprintf(mine.processor, sizeof mine.processor, "%.31s:%u", plugin_name, index);
    mine.size = info->size;
    memcpy(info, &mine, info->size < sizeof mine ? info->size : sizeof mine);
    if (mode_is("unterminated"))
        memset(info->name, 'x', sizeof info->name);
    if (mode_is("sizechange"))
        info->size += 8;
    if (mode_is("overrun"))
        ((uint8_t *)info)[info->size] = 1;
    return CEK_OK;
}

static cek_status device_open(cek_instance *in, uint32_t index, const cek_device_options *options, cek_dev **out)
{
    (void)options;
    *out = NULL;
    if (mode_is("noopen"))
        return fail(in, CEK_INTERNAL, "the device is in use elsewhere");
    if (index >= device_count(in))
        return fail(in, CEK_INVALID, "no such device");
    *out = make(sizeof **out);
    (*out)->instance = in;
    return CEK_OK;
}

static void device_close(cek_dev *dev)
{
    unmake(dev);
}

static cek_status device_status(cek_dev *dev, char *text, uint64_t cap)
{
    (void)dev;
    if (text != NULL && cap > 0)
        snprintf(text, cap, "%s", control.lost ? "the fake cable was pulled" : "");
    return control.lost ? CEK_DEVICE_LOST : CEK_OK;
}

static cek_status device_memory(cek_dev *dev, uint64_t *free_bytes, uint64_t *total_bytes)
{
    (void)dev;
    *total_bytes = control.capacity;
    *free_bytes = control.capacity - control.bytes;
    return CEK_OK;
}

/* ---- memory ---- */

static cek_status mem_alloc(cek_dev *dev, const cek_mem_desc *desc, cek_mem **out)
{
    *out = NULL;
    if (control.lost)
        return CEK_DEVICE_LOST;
    if (control.silent_status != 0)
        return (cek_status)control.silent_status;
    if (desc->bytes > control.capacity || control.bytes > control.capacity - desc->bytes)
        return fail(dev->instance, CEK_OUT_OF_MEMORY, "the fake is full");
    *out = make(sizeof **out);
    (*out)->dev = dev;
    (*out)->bytes = desc->bytes;
    (*out)->data = aligned_alloc(CEK_ALIGNMENT, desc->bytes);
    memset((*out)->data, 0xff, desc->bytes); /* NaN: nobody relies on what is there */
    atomic_fetch_add(&control.bytes, desc->bytes);
    atomic_fetch_add(&control.allocations, 1);
    return CEK_OK;
}

static void mem_free(cek_mem *mem)
{
    if (mem == NULL)
        return;
    atomic_fetch_sub(&control.bytes, mem->bytes);
    free(mem->data);
    unmake(mem);
}

static void *mem_host_ptr(cek_mem *mem)
{
    return mode_is("lazy") ? NULL : mem->data;
}

/* ---- queues ---- */

static float *place(cek_ref ref)
{
    return (float *)(ref.mem->data + ref.offset);
}

static float instruction_run(const cek_pointwise_instruction *i, const float *value)
{
    float a = value[i->a], b = value[i->b], imm = (float)i->imm;

    switch (i->code) {
    case CEK_PW_CONST: return imm;
    case CEK_PW_ADD: return a + b;
    case CEK_PW_SUB: return a - b;
    case CEK_PW_MUL: return a * b;
    case CEK_PW_ADD_IMM: return a + imm;
    case CEK_PW_MUL_IMM: return a * imm;
    default: return a;
    }
}

static void pointwise_run(const command *c)
{
    const cek_op *op = c->op;
    uint64_t count = 1;

    for (uint32_t d = 0; d < op->rank; d++)
        count *= op->shape[d];
    for (uint64_t n = 0; n < count; n++) {
        int64_t at[INPUTS_MAX + 1] = { 0 };
        float value[INPUTS_MAX + CEK_POINTWISE_INSTRUCTIONS];
        uint64_t rest = n;

        for (uint32_t d = op->rank; d-- > 0; rest /= op->shape[d]) {
            int64_t i = (int64_t)(rest % op->shape[d]);

            for (uint32_t k = 0; k < op->inputs; k++)
                at[k] += i * op->input[k].strides[d];
            at[INPUTS_MAX] += i * op->out_strides[d];
        }
        for (uint32_t k = 0; k < op->inputs; k++)
            value[k] = place(c->operands[k])[at[k]];
        for (uint32_t k = 0; k < op->instructions; k++)
            value[op->inputs + k] = instruction_run(&op->instruction[k], value);
        place(c->operands[CEK_POINTWISE_OUT])[at[INPUTS_MAX]] = value[op->inputs + op->instructions - 1];
    }
}

static void queue_run(cek_queue *queue, uint64_t until);

static void command_run(cek_queue *queue, command *c)
{
    if (control.lose_after > 0 && --control.lose_after == 0)
        control.lost = true;
    if (control.lost)
        queue->failed = CEK_DEVICE_LOST;
    if (atomic_exchange(&control.poison, false))
        queue->failed = CEK_INTERNAL;
    if (queue->failed != CEK_OK)
        return;
    switch (c->kind) {
    case COPY: memcpy(place(c->dst), place(c->src), c->bytes); break;
    case UPLOAD: memcpy(place(c->dst), c->host, c->bytes); break;
    case DOWNLOAD: memcpy(c->host, place(c->src), c->bytes); break;
    case UPDATE: memcpy(place(c->dst), c->host, c->bytes); free(c->host); break;
    case FILL:
        for (uint64_t i = 0; i < c->bytes; i += c->position)
            memcpy((uint8_t *)place(c->dst) + i, &c->pattern, c->position);
        break;
    case WAIT:
        queue_run(c->other, c->position);
        queue->failed = c->other->failed;
        break;
    case RUN: pointwise_run(c); break;
    }
}

static void queue_run(cek_queue *queue, uint64_t until)
{
    while (queue->done < until)
        command_run(queue, &queue->commands[queue->done++ % COMMANDS_MAX]);
}

static cek_status enqueue(cek_queue *queue, command c)
{
    cek_instance *in = queue->dev->instance;
    cek_status st = control.lost ? CEK_DEVICE_LOST : queue->failed;

    if (st != CEK_OK)
        return st;
    pthread_mutex_lock(&in->lock);
    if (queue->count - queue->done == COMMANDS_MAX)
        queue_run(queue, queue->count);
    queue->commands[queue->count++ % COMMANDS_MAX] = c;
    if (!mode_is("lazy"))
        queue_run(queue, queue->count);
    pthread_mutex_unlock(&in->lock);
    return CEK_OK;
}

static cek_status queue_create(cek_dev *dev, const cek_queue_desc *desc, cek_queue **out)
{
    *out = make(sizeof **out);
    (*out)->dev = dev;
    (*out)->timing = desc != NULL && (desc->flags & CEK_QUEUE_TIMING) != 0;
    (*out)->commands = calloc(COMMANDS_MAX, sizeof(command));
    return CEK_OK;
}

static cek_status run_and_tell(cek_queue *queue, uint64_t until)
{
    pthread_mutex_lock(&queue->dev->instance->lock);
    queue_run(queue, until);
    pthread_mutex_unlock(&queue->dev->instance->lock);
    return control.lost ? CEK_DEVICE_LOST : queue->failed;
}

static void queue_destroy(cek_queue *queue)
{
    if (queue == NULL)
        return;
    run_and_tell(queue, queue->count);
    free(queue->commands);
    unmake(queue);
}

static cek_status queue_status(cek_queue *queue, char *text, uint64_t cap)
{
    if (text != NULL && cap > 0)
        snprintf(text, cap, "%s",
                 control.lost ? "the fake cable was pulled" : queue->failed != CEK_OK ? "a fake kernel caught fire" : "");
    return queue->failed;
}

static cek_status queue_sync(cek_queue *queue, uint64_t timeout_ns)
{
    (void)timeout_ns;
    return control.slow ? CEK_TIMEOUT : run_and_tell(queue, queue->count);
}

static cek_status upload(cek_queue *queue, cek_ref dst, const void *src, uint64_t bytes)
{
    return enqueue(queue, (command){ .kind = UPLOAD, .dst = dst, .host = (void *)(uintptr_t)src, .bytes = bytes });
}

static cek_status download(cek_queue *queue, void *dst, cek_ref src, uint64_t bytes)
{
    return enqueue(queue, (command){ .kind = DOWNLOAD, .src = src, .host = dst, .bytes = bytes });
}

static cek_status copy(cek_queue *queue, cek_ref dst, cek_ref src, uint64_t bytes)
{
    if (src.mem->dev != queue->dev) {
        if (!mode_is("linked"))
            return fail(queue->dev->instance, CEK_UNSUPPORTED, "no link");
        atomic_fetch_add(&control.copies, 1);
    }
    return enqueue(queue, (command){ .kind = COPY, .dst = dst, .src = src, .bytes = bytes });
}

static cek_status fill(cek_queue *queue, cek_ref dst, uint32_t pattern, uint32_t pattern_bytes, uint64_t bytes)
{
    return enqueue(
        queue, (command){ .kind = FILL, .dst = dst, .pattern = pattern, .position = pattern_bytes, .bytes = bytes });
}

static cek_status update(cek_queue *queue, cek_ref dst, const void *src, uint64_t bytes)
{
    void *copied = malloc(bytes);

    memcpy(copied, src, bytes);
    return enqueue(queue, (command){ .kind = UPDATE, .dst = dst, .host = copied, .bytes = bytes });
}

/* ---- events ---- */

static cek_status event_create(cek_dev *dev, const cek_event_desc *desc, cek_event **out)
{
    (void)desc;
    *out = make(sizeof **out);
    (*out)->dev = dev;
    return CEK_OK;
}

static void event_destroy(cek_event *event)
{
    unmake(event);
}

static cek_status event_record(cek_queue *queue, cek_event *event)
{
    event->queue = queue;
    event->position = queue->count;
    return queue->failed;
}

static cek_status event_wait(cek_queue *queue, cek_event *event)
{
    if (event->dev != queue->dev)
        return fail(queue->dev->instance, CEK_INVALID, "an event of another device");
    return enqueue(queue, (command){ .kind = WAIT, .other = event->queue, .position = event->position });
}

static cek_status event_query(cek_event *event)
{
    if (event->queue == NULL)
        return fail(event->dev->instance, CEK_INVALID, "the event was never recorded");
    return event->queue->done >= event->position ? event->queue->failed : CEK_NOT_READY;
}

static cek_status event_sync(cek_event *event, uint64_t timeout_ns)
{
    (void)timeout_ns;
    if (event->queue == NULL)
        return event_query(event);
    return control.slow ? CEK_TIMEOUT : run_and_tell(event->queue, event->position);
}

static cek_status event_status(cek_event *event, char *text, uint64_t cap)
{
    queue_status(event->queue, text, cap);
    return event_query(event);
}

static cek_status event_elapsed(cek_event *start, cek_event *end, uint64_t *ns)
{
    if (!start->queue->timing || !end->queue->timing)
        return fail(start->dev->instance, CEK_UNSUPPORTED, "a queue without timing");
    *ns = 1000;
    return CEK_OK;
}

/* ---- operations ---- */

static cek_status op_create(cek_dev *dev, const cek_op_desc *desc, cek_op_info *info, cek_op **out)
{
    const cek_pointwise_desc *d = (const cek_pointwise_desc *)desc;

    *out = NULL;
    if (info != NULL)
        *info = (cek_op_info){ .size = info->size };
    if (desc->kind != CEK_OP_POINTWISE || d->out_type != CEK_F32)
        return fail(dev->instance, CEK_UNSUPPORTED, "the fake knows nothing but pointwise");
    *out = make(sizeof **out);
    **out = (cek_op){ .inputs = d->input_count, .instructions = d->instruction_count, .rank = d->rank };
    memcpy((*out)->shape, d->shape, sizeof d->shape);
    memcpy((*out)->out_strides, d->out_strides, sizeof d->out_strides);
    memcpy((*out)->input, d->inputs, d->input_count * sizeof *d->inputs);
    memcpy((*out)->instruction, d->instructions, d->instruction_count * sizeof *d->instructions);
    return CEK_OK;
}

static void op_destroy(cek_op *op)
{
    unmake(op);
}

static cek_status op_run(cek_queue *queue, const cek_op *op, const cek_ref *operands, uint32_t count,
                         cek_ref workspace)
{
    command c = { .kind = RUN, .op = op };

    (void)workspace;
    memcpy(c.operands, operands, count * sizeof *operands);
    return enqueue(queue, c);
}

/* ---- the door ---- */

static cek_status host_alloc(cek_dev *dev, uint64_t bytes, void **out)
{
    (void)dev;
    atomic_fetch_add(&control.pinned, 1);
    *out = make(bytes);
    return CEK_OK;
}

static void host_free(cek_dev *dev, void *ptr)
{
    (void)dev;
    atomic_fetch_sub(&control.pinned, 1);
    unmake(ptr);
}

static struct {
    cek_plugin table;
    void *later[4]; /* slots of a minor to come */
} door = {
    .table = { .size = sizeof(cek_plugin), .abi = CEK_ABI, .version = "0.1", .build = "for tests",
               .profile = CEK_PROFILE_INFERENCE, .create = create, .destroy = destroy, .device_count = device_count,
               .device_info = device_info, .device_open = device_open, .device_close = device_close,
               .device_status = device_status, .device_memory = device_memory, .mem_alloc = mem_alloc,
               .mem_free = mem_free, .mem_host_ptr = mem_host_ptr, .queue_create = queue_create,
               .queue_destroy = queue_destroy, .queue_status = queue_status, .queue_sync = queue_sync,
               .upload = upload, .download = download, .copy = copy, .fill = fill, .update = update,
               .event_create = event_create, .event_destroy = event_destroy, .event_record = event_record,
               .event_wait = event_wait, .event_query = event_query, .event_sync = event_sync,
               .event_status = event_status, .event_elapsed = event_elapsed, .op_create = op_create,
               .op_destroy = op_destroy, .op_run = op_run },
    .later = { &door, &door, &door, &door },
};

static void name_read(void)
{
    Dl_info self;
    const char *base;

    dladdr((void *)(uintptr_t)name_read, &self);
    base = strrchr(self.dli_fname, '/') + 1;
    sscanf(base, "%63[a-z0-9_]-%63[a-z0-9]", plugin_name, mode);
}

EXPORT const cek_plugin *cek_plugin_query(uint32_t host_abi)
{
    cek_plugin *t = &door.table;

    (void)host_abi;
    name_read();
    t->name = plugin_name;
    if (mode_is("null"))
        return NULL;
    if (mode_is("major"))
        t->abi = 2u << 16;
    if (mode_is("newer"))
        t->abi = CEK_ABI + 7, t->size = sizeof door, t->profile = CEK_PROFILE_TRAINING + 1;
    if (mode_is("older")) /* as if the table had ended before the first optional slot */
        t->size = offsetof(cek_plugin, cmdbuf_create);
    if (mode_is("short"))
        t->size = 8;
    if (mode_is("odd"))
        t->size = sizeof *t - 3;
    if (mode_is("cut"))
        t->size = offsetof(cek_plugin, event_create);
    if (mode_is("huge"))
        t->size = UINT32_MAX;
    if (mode_is("noname"))
        t->name = NULL;
    if (mode_is("badname"))
        t->name = "Not a name";
    if (mode_is("longname"))
        t->name = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz";
    if (mode_is("noversion"))
        t->version = t->build = NULL;
    if (mode_is("profile"))
        t->profile = 9;
    if (mode_is(
            "training")) /* claims what its slots do not show to be wrong: allowed here, for conformance to find */
        t->profile = CEK_PROFILE_TRAINING;
    if (mode_is("slot"))
        t->mem_alloc = NULL;
    if (mode_is("noops"))
        t->op_create = NULL, t->op_destroy = NULL, t->op_run = NULL;
    if (mode_is("memory"))
        t->profile = CEK_PROFILE_MEMORY, t->op_create = NULL, t->op_destroy = NULL, t->op_run = NULL;
    if (mode_is("half") || mode_is("pinned"))
        t->host_free = host_free;
    if (mode_is("pinned"))
        t->host_alloc = host_alloc;
    return t;
}
