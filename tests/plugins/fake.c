/* fake.c - a plugin for tests of the registry, the allocator, and of copies and streams: see
 * fake.h. Queues: fake_queue.c.
 *
 * Its memory is malloc'ed. A sound one is inline with memory in the host's reach; in mode "lazy" nothing is executed
 * before somebody waits for it and memory is out of reach, so a missing wait shows as a wrong result every time.
 * Operations: pointwise over f32 with few instructions, in profile inference. */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_objects.h"

#define EXPORT __attribute__((visibility("default")))
enum { DEVICES = 2 };

fake_control control = { .capacity = 1ull << 40 };
char plugin_name[64], mode[64];

EXPORT fake_control *fake_control_get(void);
EXPORT fake_control *fake_control_get(void)
{
    return &control;
}

bool mode_is(const char *m)
{
    return strcmp(mode, m) == 0;
}

cek_status fail(const cek_instance *in, cek_status status, const char *text)
{
    if (in->host.fail != NULL)
        in->host.fail(in->host.user, status, text);
    return status;
}

void *make(size_t size)
{
    atomic_fetch_add(&control.live, 1);
    return calloc(1, size);
}

void unmake(void *object)
{
    if (object != NULL)
        atomic_fetch_sub(&control.live, 1);
    free(object);
}

void block(fake_call call)
{
    int due = (int)call;

    if (!atomic_compare_exchange_strong(&control.blocks, &due, FAKE_NONE))
        return;
    control.waiting = true;
    while (!control.go)
        sched_yield();
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
    if (mode_is("crash"))
        raise(SIGSEGV);
    if (mode_is("waits")) {
        control.waiting = true;
        while (!control.go)
            sched_yield();
    }
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
    bool gpus = mode_is("gpus"); /* cards of their own, the second with more units */
    cek_device_info mine = { .kind = card || gpus ? CEK_KIND_GPU : CEK_KIND_CPU,
                             .compute_units = gpus ? 10 * (index + 1) : 0,
                             .flags = mode_is("lazy")    ? 0
                                      : mode_is("flush") ? CEK_DEVICE_INLINE | CEK_DEVICE_FLUSHES_DENORMALS
                                                         : CEK_DEVICE_INLINE | CEK_DEVICE_UNIFIED_MEMORY,
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
    block(FAKE_DEVICE_OPEN);
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

static cek_status device_sensors(cek_instance *in, uint32_t index, cek_device_sensors *out)
{
    (void)in, (void)index;
    memcpy((char *)out + sizeof out->size, (char *)&control.sensors + sizeof out->size, out->size - sizeof out->size);
    return control.lost ? CEK_DEVICE_LOST : CEK_OK;
}

/* ---- memory ---- */

static cek_status mem_alloc(cek_dev *dev, const cek_mem_desc *desc, cek_mem **out)
{
    *out = NULL;
    block(FAKE_MEM_ALLOC);
    if (control.lost)
        return CEK_DEVICE_LOST;
    if (control.silent_status != 0)
        return (cek_status)control.silent_status;
    if (desc->bytes > control.capacity || control.bytes > control.capacity - desc->bytes)
        return fail(dev->instance, CEK_OUT_OF_MEMORY, "the fake is full");
    *out = make(sizeof **out);
    (*out)->dev = dev;
    (*out)->bytes = desc->bytes;
    (*out)->data = aligned_alloc(CEK_ALIGNMENT, (desc->bytes + CEK_ALIGNMENT - 1) / CEK_ALIGNMENT * CEK_ALIGNMENT);
    memset((*out)->data, 0xff, desc->bytes); /* NaN: nobody relies on what is there */
    atomic_fetch_add(&control.bytes, desc->bytes);
    atomic_fetch_add(&control.allocations, 1);
    return CEK_OK;
}

static void mem_free(cek_mem *mem)
{
    if (mem == NULL)
        return;
    block(FAKE_MEM_FREE);
    atomic_fetch_sub(&control.bytes, mem->bytes);
    free(mem->data);
    unmake(mem);
}

static void *mem_host_ptr(cek_mem *mem)
{
    return mode_is("lazy") ? NULL : mem->data;
}

/* ---- operations ---- */

static cek_status op_create(cek_dev *dev, const cek_op_desc *desc, cek_op_info *info, cek_op **out)
{
    const cek_pointwise_desc *d = (const cek_pointwise_desc *)desc;

    *out = NULL;
    block(FAKE_OP_CREATE);
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

/* ---- the door ---- */

static cek_status host_alloc(cek_dev *dev, uint64_t bytes, void **out)
{
    (void)dev;
    block(FAKE_HOST_ALLOC);
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

/* clang-format off */
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
/* clang-format on */

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
    if (mode_is("first")) /* as ABI 1.0 was */
        t->abi = 1u << 16, t->size = offsetof(cek_plugin, host_register);
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
    if (mode_is("training")) /* claims what its slots do not show to be wrong: allowed here, for conformance to find */
        t->profile = CEK_PROFILE_TRAINING;
    if (mode_is("slot"))
        t->mem_alloc = NULL;
    if (mode_is("nocount"))
        t->device_count = NULL;
    if (mode_is("noclose"))
        t->device_close = NULL;
    if (mode_is("noops"))
        t->op_create = NULL, t->op_destroy = NULL, t->op_run = NULL;
    if (mode_is("memory"))
        t->profile = CEK_PROFILE_MEMORY, t->op_create = NULL, t->op_destroy = NULL, t->op_run = NULL;
    if (mode_is("half") || mode_is("pinned"))
        t->host_free = host_free;
    if (mode_is("sensors"))
        t->device_sensors = device_sensors;
    if (mode_is("pinned"))
        t->host_alloc = host_alloc;
    return t;
}
