/* device.c - checks of devices: what is told of them, also while they work, several handles, and what they refuse of
 * each other. */
#include <stdlib.h>
#include <string.h>

#include "spec/check.h"

static void device_info(spec_state *s)
{
    const cek_plugin *p = s->plugin;
    cek_device_info info = { .size = sizeof info };
    uint32_t count = p->device_count(s->target->instance);
    REQUIRE(count > s->target->index, "device_count counts the devices from 0");
    EXPECT_OK(p->device_info(s->target->instance, s->target->index, &info));
    REQUIRE(info.size == sizeof info, "device_info leaves size alone");
    REQUIRE(info.types & 1u << CEK_F32, "types has f32, which every device stores");
    if (p->profile > CEK_PROFILE_MEMORY) /* images and labels are uploaded as they are */
        REQUIRE(info.types & 1u << CEK_U8 && info.types & 1u << CEK_I32,
                "types has u8 and i32 in profiles with operations: images and labels are uploaded as they are");
    REQUIRE(memchr(info.name, 0, sizeof info.name) && *info.name, "name is a NUL-terminated text, not empty");
    REQUIRE(memchr(info.processor, 0, sizeof info.processor) && *info.processor,
            "processor is a NUL-terminated text, not empty");
    REQUIRE(info.total_bytes > 0 && info.max_alloc_bytes > 0, "total_bytes and max_alloc_bytes are not 0");
    spec_buffer b;
    if (spec_buffer_make(s, 1 << 20, 0, &b))
        REQUIRE(info.max_alloc_bytes >= b.total, "max_alloc_bytes is at least what can be allocated");
    spec_buffer_free(s, &b);
    REQUIRE(info.kind >= CEK_KIND_CPU && info.kind <= CEK_KIND_ACCELERATOR, "kind is one of the header's");
    REQUIRE(!(info.types & ~(uint64_t)0x7e), "types has bits of types alone");
    REQUIRE(!(info.flags & CEK_DEVICE_ONLY_WHEN_NAMED) || *info.reason,
            "reason says why CEK_DEVICE_ONLY_WHEN_NAMED is set");
    EXPECT(CEK_INVALID, p->device_info(s->target->instance, count, &info),
           "of an index that is not below device_count");
    EXPECT(CEK_INVALID, p->device_info(s->target->instance, s->target->index, &(cek_device_info){ .size = 0 }),
           "of a struct of size 0");
    EXPECT(CEK_INVALID,
           p->device_info(s->target->instance, s->target->index, &(cek_device_info){ .size = sizeof info - 8 }),
           "of a struct smaller than that of version 1.0");
}

/* A host that knows more fields than the plugin: what the plugin does not know stays as it was. */
static void device_info_grown(spec_state *s)
{
    struct {
        cek_device_info known;
        uint64_t later;
    } info = { .known.size = sizeof info, .later = 0 };
    EXPECT_OK(s->plugin->device_info(s->target->instance, s->target->index, &info.known));
    REQUIRE(info.known.size == sizeof info, "device_info leaves size alone");
    REQUIRE(info.later == 0, "what the plugin does not know of a longer struct stays as it was");
}

/* Every number is in range, or unknown and 0. */
static void sensors_hold(spec_state *s, const cek_device_sensors *told)
{
    const cek_device_sensors *t = told;
    const uint32_t known = t->known;
    REQUIRE(t->size == sizeof *t && t->reserved == 0, "device_sensors leaves size and reserved alone");
    REQUIRE(known & CEK_SENSOR_UTILIZATION ? t->utilization >= 0 && t->utilization <= 1
                                           : t->utilization == 0 && t->interval_ns == 0,
            "utilization is 0 to 1, or unknown and 0");
    REQUIRE(known & CEK_SENSOR_TEMPERATURE ? t->celsius > -100 && t->celsius < 200 : t->celsius == 0,
            "celsius is what a chip works at, or unknown and 0");
    REQUIRE(known & CEK_SENSOR_POWER ? t->watts >= 0 && t->watts < 1e5 : t->watts == 0,
            "watts are what a device draws, or unknown and 0");
    REQUIRE(known & CEK_SENSOR_CLOCK ? t->hertz >= 0 && t->hertz < 1e11 : t->hertz == 0,
            "hertz are those of a clock, or unknown and 0");
    REQUIRE(known & CEK_SENSOR_MEMORY ? t->used_bytes <= t->total_bytes && t->total_bytes > 0
                                      : t->used_bytes == 0 && t->total_bytes == 0,
            "no more bytes are used than there are, or both are unknown and 0");
    REQUIRE(t->throttled <= (known & CEK_SENSOR_THROTTLED ? 1u : 0u), "throttled is 0 or 1, or unknown and 0");
}

/* One reading as the next, and for a host that knows more fields. */
static void device_sensors(spec_state *s)
{
    const cek_plugin *p = s->plugin;
    cek_instance *in = s->target->instance;
    const uint32_t index = s->target->index;
    struct {
        cek_device_sensors known;
        uint64_t later;
    } grown = { .known.size = sizeof grown };
    cek_device_sensors told = { .size = sizeof told }, unsized = { .celsius = 7 };
    const cek_status st = p->device_sensors ? p->device_sensors(in, index, &told) : CEK_UNSUPPORTED;
    s->unsupported = st == CEK_UNSUPPORTED;
    if (s->unsupported || !spec_expect(s, "device_sensors", st, CEK_OK, "%s", ""))
        return;
    sensors_hold(s, &told);
    for (int again = 0; again < 3; again++) {
        told = (cek_device_sensors){ .size = sizeof told };
        EXPECT_OK(p->device_sensors(in, index, &told));
        sensors_hold(s, &told);
    }
    EXPECT_OK(p->device_sensors(in, index, &grown.known));
    REQUIRE(grown.known.size == sizeof grown && grown.later == 0,
            "what the plugin does not know of a longer struct stays as it was");
    EXPECT(CEK_INVALID, p->device_sensors(in, p->device_count(in), &told),
           "of an index that is not below device_count");
    EXPECT(CEK_INVALID, p->device_sensors(in, index, &unsized), "of a struct of size 0");
    REQUIRE(unsized.celsius == 7, "what fails leaves the sensors alone");
}

static void device_open_twice(spec_state *s)
{
    cek_dev *other = NULL;
    cek_mem *mem = NULL;
    cek_mem_desc desc = { .size = sizeof desc, .bytes = 4096 };
    if (!EXPECT_OK(s->plugin->device_open(s->target->instance, s->target->index, NULL, &other)))
        return;
    REQUIRE(other && other != s->dev, "opening a device twice gives two handles");
    if (EXPECT_OK(s->plugin->mem_alloc(other, &desc, &mem)))
        s->plugin->mem_free(mem);
    s->plugin->device_close(other);
    EXPECT_OK(s->plugin->device_status(s->dev, NULL, 0));
    uint32_t count = s->plugin->device_count(s->target->instance);
    EXPECT(CEK_INVALID, s->plugin->device_open(s->target->instance, count, NULL, &other),
           "of an index that is not below device_count");
    REQUIRE(!other, "what fails leaves its output NULL");
    cek_device_options unknown = { .size = sizeof unknown, .flags = 1u << 31 };
    EXPECT(CEK_UNSUPPORTED, s->plugin->device_open(s->target->instance, s->target->index, &unknown, &other),
           "with an unknown flag");
    REQUIRE(!other, "what fails leaves its output NULL");
    cek_device_options unsized = { .size = 0 };
    EXPECT(CEK_INVALID, s->plugin->device_open(s->target->instance, s->target->index, &unsized, &other),
           "with options of size 0");
    struct {
        cek_device_options known;
        uint64_t later;
    } grown = { .known.size = sizeof grown, .later = 1 };
    EXPECT(CEK_UNSUPPORTED, s->plugin->device_open(s->target->instance, s->target->index, &grown.known, &other),
           "with a non-zero byte beyond the struct");
    REQUIRE(!other, "what fails leaves its output NULL");
}

/* Memory and events of another handle, in commands of a queue of ours: refused, but for the source of copy and for
 * event_wait, which tell whether there is a way. */
static void strangers(spec_state *s, cek_dev *other, cek_status no_way)
{
    const cek_plugin *p = s->plugin;
    cek_mem_desc desc = { .size = sizeof desc, .bytes = 4096 };
    cek_ref own = { NULL, 0 }, theirs = { NULL, 0 };
    cek_event *event = NULL;
    uint32_t words[4] = { 0 };
    if (EXPECT_OK(p->mem_alloc(s->dev, &desc, &own.mem)) && EXPECT_OK(p->mem_alloc(other, &desc, &theirs.mem)) &&
        EXPECT_OK(p->event_create(other, NULL, &event))) {
        EXPECT(CEK_INVALID, p->upload(s->queue, theirs, words, 16), "to memory of another handle");
        EXPECT(CEK_INVALID, p->download(s->queue, words, theirs, 16), "from memory of another handle");
        EXPECT(CEK_INVALID, p->fill(s->queue, theirs, 0, 4, 16), "of memory of another handle");
        EXPECT(CEK_INVALID, p->update(s->queue, theirs, words, 16), "of memory of another handle");
        EXPECT(CEK_INVALID, p->copy(s->queue, theirs, own, 16), "to memory of another handle");
        EXPECT(CEK_INVALID, p->event_record(s->queue, event), "of an event of another handle");
        cek_status st = p->copy(s->queue, own, theirs, 16);
        if (st != no_way)
            spec_expect(s, "copy", st, CEK_UNSUPPORTED, "from memory of another handle");
        EXPECT_OK(p->queue_status(s->queue, NULL, 0));
        spec_sync(s, s->queue);
    }
    p->event_destroy(event);
    p->mem_free(theirs.mem);
    p->mem_free(own.mem);
}

/* The same of operations, of their operands, and of command buffers. */
static void strange_operations(spec_state *s, cek_dev *other)
{
    const cek_plugin *p = s->plugin;
    const cek_mem_desc desc = { .size = sizeof desc, .bytes = 4096 };
    spec_problem *problem = p->op_create ? spec_calloc(s, 1, sizeof *problem) : NULL;
    spec_job job = { 0 };
    cek_op *op = NULL;
    cek_mem *mem = NULL;
    cek_cmdbuf *cmdbuf = NULL;
    bool inexact = false;
    if (!problem)
        return;
    spec_problem_init(problem, CEK_OP_POINTWISE, CEK_F32, SPEC_WHOLE, false, 1);
    if (spec_kind_pointwise.build("7/x0,x1,add", problem) && spec_job_make(s, problem, &job, &inexact) &&
        EXPECT_OK(p->op_create(other, &problem->desc.op, NULL, &op)) && EXPECT_OK(p->mem_alloc(other, &desc, &mem))) {
        const cek_ref workspace = job.workspace.mem ? spec_buffer_ref(&job.workspace) : (cek_ref){ NULL, 0 };
        const cek_cmd fill = { .kind = CEK_CMD_FILL, .dst = { mem, 0 }, .bytes = 16, .pattern_bytes = 4 };
        EXPECT(CEK_INVALID, p->op_run(s->queue, op, job.refs, job.ref_count, workspace),
               "of an operation of another handle");
        job.refs[CEK_POINTWISE_IN1] = (cek_ref){ mem, 0 };
        EXPECT(CEK_INVALID, p->op_run(s->queue, job.op, job.refs, job.ref_count, workspace),
               "with an operand of another handle");
        if (p->cmdbuf_create && p->cmdbuf_create(other, &fill, 1, sizeof fill, &cmdbuf) == CEK_OK) {
            EXPECT(CEK_INVALID, p->cmdbuf_run(s->queue, cmdbuf), "of a command buffer of another handle");
            p->cmdbuf_destroy(cmdbuf);
        }
    }
    s->unsupported = false; /* of a profile without operations */
    p->mem_free(mem);
    if (op)
        p->op_destroy(op);
    spec_job_free(s, &job);
    spec_problem_free(problem);
    free(problem);
}

static void other_handle(spec_state *s)
{
    cek_dev *other = NULL;
    if (EXPECT_OK(s->plugin->device_open(s->target->instance, s->target->index, NULL, &other))) {
        strangers(s, other, CEK_OK);
        strange_operations(s, other);
    }
    s->plugin->device_close(other);
}

/* A second host in the process. */
static void other_instance(spec_state *s)
{
    cek_instance *instance = NULL;
    cek_dev *other = NULL;
    if (EXPECT_OK(s->plugin->create(s->target->host, &instance)) &&
        s->plugin->device_count(instance) > s->target->index &&
        EXPECT_OK(s->plugin->device_open(instance, s->target->index, NULL, &other)))
        strangers(s, other, CEK_UNSUPPORTED);
    s->plugin->device_close(other);
    s->plugin->destroy(instance);
}

/* A host that hears what fails. Its options are the target's. */
typedef struct ear {
    const cek_host *options;
    uint32_t told; /* texts since it was last asked */
    cek_status status;
    bool odd; /* a text that is none, or more than one line */
} ear;

static void ear_fail(void *user, cek_status status, const char *text)
{
    ear *heard = user;
    heard->told++;
    heard->status = status;
    heard->odd |= !text || !*text || strchr(text, '\n');
}

static const char *ear_option(void *user, const char *key)
{
    const cek_host *host = ((const ear *)user)->options;
    return host && host->option ? host->option(host->user, key) : NULL;
}

#define TELLS(want, call, ...)                                                                     \
    do {                                                                                           \
        heard.told = 0;                                                                            \
        if (EXPECT(want, call, __VA_ARGS__))                                                       \
            REQUIRE(heard.told &&heard.status == (want) && !heard.odd,                             \
                    "what fails calls host->fail with its status and a text of one line: " #call); \
    } while (0)

/* Refusals of every sort on a handle of `instance`, whose host is `heard`. */
static void texts(spec_state *s, cek_instance *instance, ear *user)
{
#define heard (*user)
    const cek_plugin *p = s->plugin;
    const cek_mem_desc none = { .size = sizeof none }, some = { .size = sizeof some, .bytes = 4096 };
    const cek_queue_desc unknown = { .size = sizeof unknown, .flags = 1u << 31 };
    const cek_op_desc kind = { .size = sizeof kind, .kind = 999 };
    cek_device_info info = { .size = sizeof info };
    cek_dev *dev = NULL;
    cek_queue *queue = NULL, *other = NULL;
    cek_event *event = NULL;
    cek_op *op = NULL;
    cek_ref ref = { NULL, 0 };
    cek_mem *mem = NULL;
    uint32_t words[4] = { 0 };
    TELLS(CEK_INVALID, p->device_info(instance, p->device_count(instance), &info), "of no device");
    if (EXPECT_OK(p->device_open(instance, s->target->index, NULL, &dev)) &&
        EXPECT_OK(p->queue_create(dev, NULL, &queue)) && EXPECT_OK(p->event_create(dev, NULL, &event)) &&
        EXPECT_OK(p->mem_alloc(dev, &some, &ref.mem))) {
        const cek_ref end = { ref.mem, 4092 };
        TELLS(CEK_INVALID, p->mem_alloc(dev, &none, &mem), "of 0 bytes");
        TELLS(CEK_UNSUPPORTED, p->queue_create(dev, &unknown, &other), "with an unknown flag");
        TELLS(CEK_INVALID, p->upload(queue, end, words, 16), "behind its memory");
        TELLS(CEK_INVALID, p->download(queue, words, end, 16), "behind its memory");
        TELLS(CEK_INVALID, p->copy(queue, end, ref, 16), "behind its memory");
        TELLS(CEK_INVALID, p->copy(queue, (cek_ref){ ref.mem, 8 }, ref, 16), "of ranges that overlap");
        TELLS(CEK_INVALID, p->fill(queue, ref, 0, 3, 6), "with a pattern of 3 bytes");
        TELLS(CEK_INVALID, p->update(queue, ref, words, 6), "of 6 bytes");
        TELLS(CEK_INVALID, p->event_wait(queue, event), "for an event that was never recorded");
        TELLS(CEK_INVALID, p->event_query(event), "of an event that was never recorded");
        if (p->op_create && p->profile > CEK_PROFILE_MEMORY)
            TELLS(CEK_UNSUPPORTED, p->op_create(dev, &kind, NULL, &op), "with an unknown kind");
    }
    p->mem_free(ref.mem);
    p->event_destroy(event);
    p->queue_destroy(queue);
    p->device_close(dev);
#undef heard
}

/* A host of a later version, which is gone when create returns; one without callbacks; none. */
static void hosts(spec_state *s)
{
    const cek_plugin *p = s->plugin;
    const cek_mem_desc none = { .size = sizeof none };
    const cek_host mute = { .size = sizeof mute, .abi = CEK_ABI }, *const silent[] = { &mute, NULL };
    ear heard = { .options = s->target->host };
    struct {
        cek_host known;
        uint64_t later;
    } host = { .known = { .size = sizeof host, .abi = CEK_ABI, .user = &heard, .fail = ear_fail, .option = ear_option },
               .later = 1 };
    cek_instance *instance = NULL;
    if (EXPECT_OK(p->create(&host.known, &instance))) {
        memset(&host, 0xff, sizeof host);
        if (p->device_count(instance) > s->target->index)
            texts(s, instance, &heard);
        p->destroy(instance);
    }
    for (size_t i = 0; i < 2; i++) {
        cek_dev *dev = NULL;
        cek_mem *mem = NULL;
        cek_status st = p->create(silent[i], &instance);
        if (st == CEK_UNAVAILABLE) /* without the options that the target's host gives */
            continue;
        if (!spec_expect(s, "create", st, CEK_OK, i ? "without a host" : "with a host without callbacks"))
            continue;
        if (p->device_count(instance) > 0 && EXPECT_OK(p->device_open(instance, 0, NULL, &dev))) {
            EXPECT(CEK_INVALID, p->mem_alloc(dev, &none, &mem), "of 0 bytes, with nobody to tell");
            p->device_close(dev);
        }
        p->destroy(instance);
    }
}

void spec_check_device(spec_state *s)
{
    static const struct {
        const char *name;
        void (*run)(spec_state *s);
        bool optional;
    } checks[] = {
        { "info", device_info, false },
        { "info of a newer host", device_info_grown, false },
        { "sensors", device_sensors, true },
        { "open twice", device_open_twice, false },
        { "another handle", other_handle, false },
        { "another instance", other_instance, false },
        { "other hosts", hosts, false },
    };
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        if (spec_check_begin(s, "device", 0, !checks[i].optional, "%s", checks[i].name)) {
            checks[i].run(s);
            spec_check_end(s);
        }
    }
}
