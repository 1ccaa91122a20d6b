/* queue.c - checks of queues and events: order, waiting, deadlines, what was never recorded. */
#include <string.h>
#include <time.h>

#include "spec/check.h"

typedef struct grown_queue_desc {
    cek_queue_desc known;
    uint64_t later;
} grown_queue_desc;

static cek_queue *queue_new(spec_state *s, uint32_t flags)
{
    cek_queue *q = NULL;
    cek_queue_desc desc = { .size = sizeof desc, .flags = flags };
    EXPECT_OK(s->plugin->queue_create(s->dev, &desc, &q));
    return q;
}

static cek_event *event_new(spec_state *s, uint32_t flags)
{
    cek_event *e = NULL;
    cek_event_desc desc = { .size = sizeof desc, .flags = flags };
    EXPECT_OK(s->plugin->event_create(s->dev, &desc, &e));
    return e;
}

static void queue_descriptors(spec_state *s)
{
    cek_queue *q = (cek_queue *)s;
    cek_queue_desc flags = { .size = sizeof flags, .flags = 1u << 31 }, unsized = { .flags = 0 };
    EXPECT(CEK_UNSUPPORTED, s->plugin->queue_create(s->dev, &flags, &q), "with an unknown flag");
    REQUIRE(!q, "what fails leaves its output NULL");
    EXPECT(CEK_INVALID, s->plugin->queue_create(s->dev, &unsized, &q), "with a size of 0");
    REQUIRE(!q, "what fails leaves its output NULL");
    grown_queue_desc grown = { .known.size = sizeof grown };
    if (EXPECT_OK(s->plugin->queue_create(s->dev, &grown.known, &q)))
        s->plugin->queue_destroy(q);
    grown.later = 1;
    EXPECT(CEK_UNSUPPORTED, s->plugin->queue_create(s->dev, &grown.known, &q),
           "with a non-zero byte beyond the struct");
    REQUIRE(!q, "what fails leaves its output NULL");
}

static void event_descriptors(spec_state *s)
{
    cek_event *e = (cek_event *)s;
    cek_event_desc flags = { .size = sizeof flags, .flags = 1u << 31 }, unsized = { .flags = 0 };
    EXPECT(CEK_UNSUPPORTED, s->plugin->event_create(s->dev, &flags, &e), "with an unknown flag");
    REQUIRE(!e, "what fails leaves its output NULL");
    EXPECT(CEK_INVALID, s->plugin->event_create(s->dev, &unsized, &e), "with a size of 0");
    REQUIRE(!e, "what fails leaves its output NULL");
    struct {
        cek_event_desc known;
        uint64_t later;
    } grown = { .known.size = sizeof grown, .later = 1 };
    EXPECT(CEK_UNSUPPORTED, s->plugin->event_create(s->dev, &grown.known, &e),
           "with a non-zero byte beyond the struct");
    if (EXPECT_OK(s->plugin->event_create(s->dev, NULL, &e)))
        s->plugin->event_destroy(e);
}

/* A sync of 0 polls: both answers are right, and the work goes on. */
static void sync_deadlines(spec_state *s)
{
    spec_buffer b;
    char text[32] = "x";
    if (spec_buffer_make(s, 8 << 20, 0, &b) && spec_buffer_upload(s, &b, s->queue)) {
        for (uint32_t i = 0; i < 8; i++)
            EXPECT_OK(s->plugin->fill(s->queue, spec_buffer_ref(&b), i, 4, b.bytes));
        cek_status st = s->plugin->queue_sync(s->queue, 0);
        if (st != CEK_TIMEOUT)
            spec_expect(s, "queue_sync", st, CEK_OK, "of 0 ns");
        EXPECT_OK(s->plugin->queue_status(s->queue, text, sizeof text));
        if (spec_sync(s, s->queue) && EXPECT_OK(s->plugin->queue_sync(s->queue, 0)) &&
            spec_buffer_download(s, &b, s->queue) && spec_sync(s, s->queue))
            REQUIRE(spec_buffer_contents(&b)[b.bytes - 4] == 7, "commands run in order");
    }
    spec_buffer_free(s, &b);
    EXPECT_OK(s->plugin->queue_sync(s->queue, CEK_FOREVER));
}

/* Each command sees what the ones before it left. */
static void order_within(spec_state *s)
{
    spec_buffer a, b = { 0 };
    if (spec_buffer_make(s, 65536, 0, &a) && spec_buffer_make(s, 65536, 0, &b)) {
        cek_ref ra = spec_buffer_ref(&a), rb = spec_buffer_ref(&b);
        bool ok = spec_buffer_upload(s, &a, s->queue) && spec_buffer_upload(s, &b, s->queue);
        for (uint32_t i = 0; ok && i < 50; i++)
            ok = EXPECT_OK(s->plugin->fill(s->queue, ra, i, 4, 65536)) &&
                 EXPECT_OK(s->plugin->copy(s->queue, rb, ra, 65536)) &&
                 EXPECT_OK(s->plugin->update(s->queue, ra, &(uint32_t){ 1000 + i }, 4)) &&
                 EXPECT_OK(s->plugin->copy(s->queue, (cek_ref){ rb.mem, rb.offset + 4 * i }, ra, 4));
        if (ok && spec_buffer_download(s, &b, s->queue) && spec_sync(s, s->queue)) {
            uint32_t word;
            REQUIRE((memcpy(&word, spec_buffer_contents(&b) + 4 * 49, 4), word == 1049),
                    "each command sees what the ones before it left");
            REQUIRE((memcpy(&word, spec_buffer_contents(&b) + 4 * 48, 4), word == 49),
                    "each command sees what the ones before it left");
            REQUIRE((memcpy(&word, spec_buffer_contents(&b) + 65532, 4), word == 49), "commands run in order");
        }
    }
    spec_buffer_free(s, &a);
    spec_buffer_free(s, &b);
}

/* Work of another queue behind an event_wait sees what was before the record; each queue ping-pongs
 * with the other. */
static void order_between(spec_state *s)
{
    cek_queue *q[2] = { queue_new(s, 0), queue_new(s, 0) };
    cek_event *e[2] = { event_new(s, 0), event_new(s, 0) };
    spec_buffer b;
    bool ok = spec_buffer_make(s, 1 << 20, 0, &b) && q[0] && q[1] && e[0] && e[1] && spec_buffer_upload(s, &b, q[0]);
    uint64_t half = (1 << 20) / 2;
    for (uint32_t i = 0; ok && i < 40; i++) {
        uint32_t me = i % 2;
        if (i)
            ok = EXPECT_OK(s->plugin->event_wait(q[me], e[!me]));
        /* The odd rounds copy what the even ones filled. */
        if (me == 0)
            ok = ok && EXPECT_OK(s->plugin->fill(q[me], spec_buffer_ref(&b), i, 4, half));
        else
            ok = ok &&
                 EXPECT_OK(s->plugin->copy(q[me], (cek_ref){ b.mem, b.offset + half }, spec_buffer_ref(&b), half));
        ok = ok && EXPECT_OK(s->plugin->event_record(q[me], e[me]));
    }
    if (ok && EXPECT_OK(s->plugin->event_sync(e[1], s->timeout_ns)) && EXPECT_OK(s->plugin->event_query(e[1])) &&
        EXPECT_OK(s->plugin->event_status(e[1], NULL, 0)) && spec_buffer_download(s, &b, q[1]) && spec_sync(s, q[1])) {
        uint32_t word;
        REQUIRE((memcpy(&word, spec_buffer_contents(&b) + half, 4), word == 38),
                "work behind an event_wait sees what was before the record");
        REQUIRE((memcpy(&word, spec_buffer_contents(&b) + 2 * half - 4, 4), word == 38),
                "work behind an event_wait sees what was before the record");
    }
    for (int i = 0; i < 2; i++) {
        if (q[i])
            s->plugin->queue_sync(q[i], s->timeout_ns);
        s->plugin->event_destroy(e[i]);
        s->plugin->queue_destroy(q[i]);
    }
    spec_buffer_free(s, &b);
}

static void never_recorded(spec_state *s)
{
    cek_event *e = event_new(s, CEK_EVENT_TIMING), *other = event_new(s, CEK_EVENT_TIMING);
    uint64_t ns = 1;
    char text[64] = "";
    if (e && other) {
        EXPECT(CEK_INVALID, s->plugin->event_query(e), "of an event that was never recorded");
        EXPECT(CEK_INVALID, s->plugin->event_sync(e, 0), "of an event that was never recorded");
        EXPECT(CEK_INVALID, s->plugin->event_sync(e, 1000000000), "of an event that was never recorded");
        EXPECT(CEK_INVALID, s->plugin->event_wait(s->queue, e), "for an event that was never recorded");
        EXPECT(CEK_INVALID, s->plugin->event_status(e, text, sizeof text), "of an event that was never recorded");
        EXPECT(CEK_INVALID, s->plugin->event_elapsed(e, other, &ns), "of events that were never recorded");
        REQUIRE(ns == 0, "what fails leaves its output 0");
        EXPECT_OK(s->plugin->queue_status(s->queue, NULL, 0));
        EXPECT_OK(s->plugin->event_record(s->queue, e));
        EXPECT_OK(s->plugin->event_sync(e, s->timeout_ns));
        EXPECT_OK(s->plugin->event_query(e));
        EXPECT_OK(s->plugin->event_record(s->queue, e)); /* again */
        EXPECT_OK(s->plugin->event_sync(e, s->timeout_ns));
    }
    s->plugin->event_destroy(e);
    s->plugin->event_destroy(other);
}

static void elapsed(spec_state *s)
{
    cek_queue *q = queue_new(s, CEK_QUEUE_TIMING);
    cek_event *start = event_new(s, CEK_EVENT_TIMING), *end = event_new(s, CEK_EVENT_TIMING), *plain = event_new(s, 0);
    spec_buffer b;
    uint64_t ns = 0;
    if (spec_buffer_make(s, 16 << 20, 0, &b) && q && start && end && plain && spec_buffer_upload(s, &b, q)) {
        EXPECT_OK(s->plugin->event_record(q, plain));
        EXPECT_OK(s->plugin->event_record(q, start));
        for (uint32_t i = 0; i < 4; i++)
            EXPECT_OK(s->plugin->fill(q, spec_buffer_ref(&b), i, 4, b.bytes));
        EXPECT_OK(s->plugin->event_record(q, end));
        if (EXPECT_OK(s->plugin->event_sync(end, s->timeout_ns)) &&
            EXPECT_OK(s->plugin->event_elapsed(start, end, &ns))) {
            REQUIRE(ns > 0, "64 MiB are not written in no time");
            REQUIRE(ns < 60000000000u, "event_elapsed counts nanoseconds");
        }
        /* Records that the host holds apart by 30 ms of its own. */
        if (EXPECT_OK(s->plugin->event_record(q, start)) && EXPECT_OK(s->plugin->event_sync(start, s->timeout_ns)) &&
            nanosleep(&(struct timespec){ .tv_nsec = 30000000 }, NULL) == 0 &&
            EXPECT_OK(s->plugin->event_record(q, end)) && EXPECT_OK(s->plugin->event_sync(end, s->timeout_ns)) &&
            EXPECT_OK(s->plugin->event_elapsed(start, end, &ns)))
            REQUIRE(ns >= 15000000, "event_elapsed counts nanoseconds");
        if (EXPECT_OK(s->plugin->event_record(q, start)) && EXPECT_OK(s->plugin->event_sync(start, s->timeout_ns)) &&
            nanosleep(&(struct timespec){ .tv_nsec = 90000000 }, NULL) == 0 &&
            EXPECT_OK(s->plugin->event_record(q, end)) && EXPECT_OK(s->plugin->event_sync(end, s->timeout_ns)) &&
            EXPECT_OK(s->plugin->event_elapsed(start, end, &ns)))
            REQUIRE(ns >= 75000000, "of a record that is repeated the latest counts");
        EXPECT(CEK_INVALID, s->plugin->event_elapsed(end, start, &ns), "to an event that happened before");
        EXPECT(CEK_INVALID, s->plugin->event_elapsed(plain, end, &ns), "of an event without CEK_EVENT_TIMING");
        EXPECT_OK(s->plugin->event_record(q, plain));
        EXPECT_OK(s->plugin->event_sync(plain, s->timeout_ns));
        EXPECT(CEK_INVALID, s->plugin->event_elapsed(start, plain, &ns), "to an event without CEK_EVENT_TIMING");
        spec_sync(s, q);
    }
    s->plugin->event_destroy(start);
    s->plugin->event_destroy(end);
    s->plugin->event_destroy(plain);
    s->plugin->queue_destroy(q);
    spec_buffer_free(s, &b);
}

/* Events belong to their device handle: a queue of another cannot wait for them. */
static void foreign_event(spec_state *s)
{
    cek_dev *other = NULL;
    cek_queue *q = NULL;
    cek_event *e = event_new(s, 0);
    if (e && EXPECT_OK(s->plugin->device_open(s->target->instance, s->target->index, NULL, &other)) &&
        EXPECT_OK(s->plugin->queue_create(other, NULL, &q)) && EXPECT_OK(s->plugin->event_record(s->queue, e))) {
        EXPECT(CEK_UNSUPPORTED, s->plugin->event_wait(q, e), "for an event of another device");
        EXPECT_OK(s->plugin->queue_status(q, NULL, 0));
        EXPECT_OK(s->plugin->event_sync(e, s->timeout_ns));
    }
    s->plugin->event_destroy(e);
    s->plugin->queue_destroy(q);
    s->plugin->device_close(other);
}

/* Destroying waits for what is queued. */
static void destroy_waits(spec_state *s)
{
    spec_buffer b;
    cek_queue *q = queue_new(s, 0);
    bool ok = spec_buffer_make(s, 8 << 20, 0, &b) && q && spec_buffer_upload(s, &b, q) &&
              EXPECT_OK(s->plugin->fill(q, spec_buffer_ref(&b), 0x12345678, 4, b.bytes));
    s->plugin->queue_destroy(q);
    if (ok && spec_buffer_download(s, &b, s->queue) && spec_sync(s, s->queue))
        REQUIRE(spec_buffer_contents(&b)[b.bytes - 1] == 0x12, "queue_destroy waits for what is queued");
    spec_buffer_free(s, &b);
}

/* On memory that is never freed if it fails. Filling takes a device longer than answering. */
static void sync_waits(spec_state *s)
{
    spec_buffer b;
    if (!spec_buffer_make(s, 32 << 20, 0, &b))
        return;
    bool ok = true;
    for (uint32_t i = 0; ok && i < 8; i++)
        ok = EXPECT_OK(s->plugin->fill(s->queue, spec_buffer_ref(&b), i, 4, b.bytes));
    ok = ok && spec_buffer_download(s, &b, s->queue) && spec_sync(s, s->queue);
    const uint8_t *bytes = spec_buffer_contents(&b);
    if (ok && !(bytes[0] == 7 && bytes[b.bytes / 2] == 7 && bytes[b.bytes - 4] == 7)) {
        spec_check_wrong(s, "queue_sync answered OK before what was queued had been done; nothing more can be tried");
        s->broken = CEK_INTERNAL;
        s->abandoned = true;
    }
    spec_buffer_free(s, &b);
}

void spec_check_ground(spec_state *s)
{
    bool selected = spec_check_begin(s, "queue", 0, true, "sync waits");
    sync_waits(s);
    if (selected || s->wrong)
        spec_check_end(s);
}

void spec_check_queues(spec_state *s)
{
    static const struct {
        const char *name;
        void (*run)(spec_state *s);
    } checks[] = {
        { "queue descriptors", queue_descriptors },
        { "event descriptors", event_descriptors },
        { "deadlines", sync_deadlines },
        { "order within a queue", order_within },
        { "order between queues", order_between },
        { "an event never recorded", never_recorded },
        { "elapsed time", elapsed },
        { "an event of another device", foreign_event },
        { "destroy waits", destroy_waits },
    };
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        if (spec_check_begin(s, "queue", 0, true, "%s", checks[i].name)) {
            checks[i].run(s);
            spec_check_end(s);
        }
    }
}
