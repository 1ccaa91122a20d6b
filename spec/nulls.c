/* nulls.c - checks that a slot refuses NULL for each argument that the header does not let be NULL: CEK_INVALID, with a
 * text where there is a host to tell, outputs NULL or zero, and nothing else has changed.
 *
 * A plugin that looks at such an argument crashes here. So each of them is a check of its own, named before the call,
 * and all stand at the end of a run. */
#include <stdlib.h>
#include <string.h>

#include "spec/check.h"

/* What the calls are made with: all there but for the one argument. */
typedef struct whole {
    cek_instance *instance;
    uint32_t index;
    cek_dev *dev;
    cek_queue *queue;
    spec_buffer buffer;
    cek_ref ref, none;
    cek_event *event;
    cek_op *op; /* NULL: the plugin has no operations */
    cek_ref refs[CEK_SLOT_MAX];
    uint32_t ref_count;
    cek_ref workspace;
    cek_cmdbuf *cmdbuf; /* NULL: or no command buffers */
} whole;

/* Slots that a plugin may have and still answer UNSUPPORTED to everything; event_elapsed without a queue that times. */
static bool may_lack(const char *slot)
{
    static const char *const slots[] = { "mem_map",       "mem_unmap",  "host_alloc",    "host_register",
                                         "mem_import",    "mem_export", "event_elapsed", "op_prepack",
                                         "cmdbuf_create", "cmdbuf_run", "device_sensors" };
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++)
        if (!strcmp(slots[i], slot))
            return true;
    return false;
}

/* `told`: the first argument is there, and so is the way to the host. */
static void refused(spec_state *s, const char *call, cek_status st, bool told)
{
    if (st == CEK_UNSUPPORTED && may_lack(call))
        return;
    if (spec_expect(s, call, st, CEK_INVALID, "%s", "with NULL") && told)
        REQUIRE(!s->target->error_text || *s->target->error_text(s->target->user),
                "what fails calls host->fail with a text");
}

static bool begins(spec_state *s, uint32_t profile, const char *slot, const char *argument)
{
    return spec_check_begin(s, "null", 0, s->report->profile >= profile, "%s without %s", slot, argument);
}

#define CALL(profile, told, slot, argument, ...)              \
    do {                                                      \
        if (p->slot && begins(s, profile, #slot, argument)) { \
            refused(s, #slot, p->slot(__VA_ARGS__), told);    \
            spec_check_end(s);                                \
        }                                                     \
    } while (0)
/* The first argument, and another one. */
#define FIRST(slot, argument, ...) CALL(CEK_PROFILE_MEMORY, false, slot, argument, __VA_ARGS__)
#define OTHER(slot, argument, ...) CALL(CEK_PROFILE_MEMORY, true, slot, argument, __VA_ARGS__)
/* The same with an output, which may not be left as it was. */
#define CLEARS(told, slot, argument, out, ...)                           \
    do {                                                                 \
        if (p->slot && begins(s, CEK_PROFILE_MEMORY, #slot, argument)) { \
            (out) = (void *)s;                                           \
            refused(s, #slot, p->slot(__VA_ARGS__), told);               \
            REQUIRE(!(out), "what fails leaves its output NULL");        \
            spec_check_end(s);                                           \
        }                                                                \
    } while (0)

static void instances_and_devices(spec_state *s, const whole *w)
{
    const cek_plugin *p = s->plugin;
    cek_device_info info = { .size = sizeof info };
    cek_device_sensors sensors = { .size = sizeof sensors };
    uint64_t bytes = 0;
    cek_dev *dev;
    FIRST(create, "out", s->target->host, NULL);
    FIRST(device_info, "instance", NULL, w->index, &info);
    OTHER(device_info, "info", w->instance, w->index, NULL);
    FIRST(device_sensors, "instance", NULL, w->index, &sensors);
    OTHER(device_sensors, "out", w->instance, w->index, NULL);
    CLEARS(false, device_open, "instance", dev, NULL, w->index, NULL, &dev);
    OTHER(device_open, "out", w->instance, w->index, NULL, NULL);
    FIRST(device_status, "dev", NULL, NULL, 0);
    FIRST(device_memory, "dev", NULL, &bytes, &bytes);
    OTHER(device_memory, "free_bytes", w->dev, NULL, &bytes);
    OTHER(device_memory, "total_bytes", w->dev, &bytes, NULL);
}

static void memories(spec_state *s, const whole *w)
{
    const cek_plugin *p = s->plugin;
    const cek_mem_desc desc = { .size = sizeof desc, .bytes = 256 };
    cek_mem *mem;
    void *address;
    CLEARS(false, mem_alloc, "dev", mem, NULL, &desc, &mem);
    CLEARS(true, mem_alloc, "desc", mem, w->dev, NULL, &mem);
    OTHER(mem_alloc, "out", w->dev, &desc, NULL);
    if (begins(s, CEK_PROFILE_MEMORY, "mem_host_ptr", "mem")) {
        REQUIRE(!p->mem_host_ptr(NULL), "mem_host_ptr of NULL is NULL");
        spec_check_end(s);
    }
    CLEARS(false, mem_map, "mem", address, NULL, CEK_MAP_READ, &address);
    OTHER(mem_map, "out", w->buffer.mem, CEK_MAP_READ, NULL);
    FIRST(mem_unmap, "mem", NULL);
    CLEARS(false, host_alloc, "dev", address, NULL, 256, &address);
    OTHER(host_alloc, "out", w->dev, 256, NULL);
    FIRST(host_register, "dev", NULL, &address, sizeof address);
    OTHER(host_register, "ptr", w->dev, NULL, 256);
    const cek_foreign foreign = { .size = sizeof foreign };
    cek_foreign place = { .size = sizeof place };
    CLEARS(false, mem_import, "dev", mem, NULL, &foreign, &mem);
    CLEARS(true, mem_import, "foreign", mem, w->dev, NULL, &mem);
    OTHER(mem_import, "out", w->dev, &foreign, NULL);
    FIRST(mem_export, "mem", NULL, &place);
    OTHER(mem_export, "out", w->buffer.mem, NULL);
}

static void queues(spec_state *s, const whole *w)
{
    const cek_plugin *p = s->plugin;
    uint32_t words[4] = { 0 };
    cek_queue *queue;
    CLEARS(false, queue_create, "dev", queue, NULL, NULL, &queue);
    OTHER(queue_create, "out", w->dev, NULL, NULL);
    FIRST(queue_status, "queue", NULL, NULL, 0);
    FIRST(queue_sync, "queue", NULL, 0);
    FIRST(upload, "queue", NULL, w->ref, words, 16);
    OTHER(upload, "memory", w->queue, w->none, words, 16);
    OTHER(upload, "src", w->queue, w->ref, NULL, 16);
    FIRST(download, "queue", NULL, words, w->ref, 16);
    OTHER(download, "dst", w->queue, NULL, w->ref, 16);
    OTHER(download, "memory", w->queue, words, w->none, 16);
    FIRST(copy, "queue", NULL, w->ref, w->ref, 16);
    OTHER(copy, "memory to write", w->queue, w->none, w->ref, 16);
    OTHER(copy, "memory to read", w->queue, w->ref, w->none, 16);
    FIRST(fill, "queue", NULL, w->ref, 0, 4, 16);
    OTHER(fill, "memory", w->queue, w->none, 0, 4, 16);
    FIRST(update, "queue", NULL, w->ref, words, 16);
    OTHER(update, "memory", w->queue, w->none, words, 16);
    OTHER(update, "src", w->queue, w->ref, NULL, 16);
}

static void events(spec_state *s, const whole *w)
{
    const cek_plugin *p = s->plugin;
    cek_event *event;
    uint64_t ns = 0;
    CLEARS(false, event_create, "dev", event, NULL, NULL, &event);
    OTHER(event_create, "out", w->dev, NULL, NULL);
    FIRST(event_record, "queue", NULL, w->event);
    OTHER(event_record, "event", w->queue, NULL);
    FIRST(event_wait, "queue", NULL, w->event);
    OTHER(event_wait, "event", w->queue, NULL);
    FIRST(event_query, "event", NULL);
    FIRST(event_sync, "event", NULL, 0);
    FIRST(event_status, "event", NULL, NULL, 0);
    FIRST(event_elapsed, "start", NULL, w->event, &ns);
    OTHER(event_elapsed, "end", w->event, NULL, &ns);
    OTHER(event_elapsed, "ns", w->event, w->event, NULL);
}

static void operations(spec_state *s, const whole *w, const cek_op_desc *desc)
{
    const cek_plugin *p = s->plugin;
    const uint32_t profile = CEK_PROFILE_INFERENCE;
    const uint32_t n = w->ref_count;
    cek_op *op = NULL;
    cek_cmdbuf *cmdbuf = NULL;
    const cek_cmd fill = { .kind = CEK_CMD_FILL, .dst = w->ref, .bytes = 16, .pattern_bytes = 4 };
    const cek_cmd run = { .kind = CEK_CMD_RUN, .operand_count = n, .operands = w->refs, .workspace = w->workspace };
    const cek_cmd bare = { .kind = CEK_CMD_RUN, .operand_count = n, .op = w->op, .workspace = w->workspace };
    const cek_cmd nowhere = { .kind = CEK_CMD_FILL, .bytes = 16, .pattern_bytes = 4 };
    if (!w->op)
        return;
    CALL(profile, false, op_create, "dev", NULL, desc, NULL, &op);
    CALL(profile, true, op_create, "desc", w->dev, NULL, NULL, &op);
    CALL(profile, true, op_create, "out", w->dev, desc, NULL, NULL);
    CALL(profile, false, op_run, "queue", NULL, w->op, w->refs, n, w->workspace);
    CALL(profile, true, op_run, "op", w->queue, NULL, w->refs, n, w->workspace);
    CALL(profile, true, op_run, "operands", w->queue, w->op, NULL, n, w->workspace);
    CALL(profile, false, op_prepack, "queue", NULL, w->op, w->refs, n, w->ref);
    CALL(profile, true, op_prepack, "op", w->queue, NULL, w->refs, n, w->ref);
    CALL(profile, true, op_prepack, "operands", w->queue, w->op, NULL, n, w->ref);
    if (!w->cmdbuf)
        return;
    FIRST(cmdbuf_create, "dev", NULL, &fill, 1, sizeof fill, &cmdbuf);
    OTHER(cmdbuf_create, "commands", w->dev, NULL, 1, sizeof fill, &cmdbuf);
    OTHER(cmdbuf_create, "out", w->dev, &fill, 1, sizeof fill, NULL);
    OTHER(cmdbuf_create, "the operation to run", w->dev, &run, 1, sizeof run, &cmdbuf);
    OTHER(cmdbuf_create, "the operands of a run", w->dev, &bare, 1, sizeof bare, &cmdbuf);
    OTHER(cmdbuf_create, "the memory to fill", w->dev, &nowhere, 1, sizeof nowhere, &cmdbuf);
    FIRST(cmdbuf_run, "queue", NULL, w->cmdbuf);
    OTHER(cmdbuf_run, "cmdbuf", w->queue, NULL);
}

/* Arrays that a descriptor counts, and does not have. */
static void descriptors(spec_state *s, const cek_op_desc *given)
{
    static const char *const absent[] = { "inputs", "instructions" };
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        cek_pointwise_desc desc = *(const cek_pointwise_desc *)given;
        if (i == 0)
            desc.inputs = NULL;
        else
            desc.instructions = NULL;
        if (begins(s, CEK_PROFILE_INFERENCE, "a chain", absent[i])) {
            spec_refused(s, &desc.op, CEK_INVALID, "a count and no array");
            spec_check_end(s);
        }
    }
}

/* An operation that every plugin with operations has; s->unsupported without. */
static bool operation_make(spec_state *s, spec_job *job, spec_problem *problem, whole *w)
{
    const cek_cmd fill = { .kind = CEK_CMD_FILL, .dst = w->ref, .bytes = 16, .pattern_bytes = 4 };
    bool inexact = false;
    if (!s->plugin->op_create)
        return true;
    spec_problem_init(problem, CEK_OP_POINTWISE, CEK_F32, SPEC_WHOLE, false, 1);
    if (!spec_kind_pointwise.build("7/x0,x1,add", problem) || !spec_job_make(s, problem, job, &inexact))
        return s->unsupported; /* of a profile without operations, which may have the slots */
    w->op = job->op;
    memcpy(w->refs, job->refs, sizeof w->refs);
    w->ref_count = job->ref_count;
    w->workspace = job->workspace.mem ? spec_buffer_ref(&job->workspace) : w->none;
    if (s->plugin->cmdbuf_create && s->plugin->cmdbuf_create(s->dev, &fill, 1, sizeof fill, &w->cmdbuf))
        w->cmdbuf = NULL;
    return true;
}

/* That all of this has touched nothing: the queue works, and memory is what it was. */
static void untouched(spec_state *s, whole *w)
{
    if (begins(s, CEK_PROFILE_MEMORY, "a queue that goes on", "harm")) {
        EXPECT_OK(s->plugin->queue_status(w->queue, NULL, 0));
        if (spec_buffer_download(s, &w->buffer, w->queue) && spec_sync(s, w->queue))
            REQUIRE(!memcmp(w->buffer.image, w->buffer.before, w->buffer.total),
                    "a refused command has touched nothing");
        spec_check_end(s);
    }
}

void spec_check_nulls(spec_state *s)
{
    whole w = { .instance = s->target->instance, .index = s->target->index, .dev = s->dev, .queue = s->queue };
    const cek_event_desc timing = { .size = sizeof timing, .flags = CEK_EVENT_TIMING };
    spec_job job = { 0 };
    if (s->broken || s->options.type || (s->options.group && strcmp(s->options.group, "null")))
        return;
    (void)begins(s, CEK_PROFILE_MEMORY, "what it is tried with", "NULL");
    spec_problem *problem = spec_calloc(s, 1, sizeof *problem);
    bool made = problem && spec_buffer_make(s, 256, 0, &w.buffer) && spec_buffer_upload(s, &w.buffer, s->queue) &&
                EXPECT_OK(s->plugin->event_create(s->dev, &timing, &w.event)) &&
                EXPECT_OK(s->plugin->event_record(s->queue, w.event)) && spec_sync(s, s->queue);
    w.ref = spec_buffer_ref(&w.buffer);
    made = made && operation_make(s, &job, problem, &w);
    if (!made)
        spec_check_end(s);
    else {
        instances_and_devices(s, &w);
        memories(s, &w);
        queues(s, &w);
        events(s, &w);
        operations(s, &w, w.op ? &problem->desc.op : NULL);
        if (w.op)
            descriptors(s, &problem->desc.op);
        untouched(s, &w);
    }
    if (!s->abandoned) {
        if (w.cmdbuf)
            s->plugin->cmdbuf_destroy(w.cmdbuf);
        s->plugin->event_destroy(w.event);
    }
    spec_job_free(s, &job);
    spec_buffer_free(s, &w.buffer);
    if (problem)
        spec_problem_free(problem);
    free(problem);
}
