/* device.c - checks of devices: what is told of them, also while they work, several handles, and what they refuse of
 * each other. */
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
    EXPECT(CEK_INVALID, p->device_info(s->target->instance, count, &info),
           "of an index that is not below device_count");
    EXPECT(CEK_INVALID, p->device_info(s->target->instance, s->target->index, &(cek_device_info){ .size = 0 }),
           "of a struct of size 0");
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

static void other_handle(spec_state *s)
{
    cek_dev *other = NULL;
    if (EXPECT_OK(s->plugin->device_open(s->target->instance, s->target->index, NULL, &other)))
        strangers(s, other, CEK_OK);
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
    };
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        if (spec_check_begin(s, "device", 0, !checks[i].optional, "%s", checks[i].name)) {
            checks[i].run(s);
            spec_check_end(s);
        }
    }
}
