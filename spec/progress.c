/* progress.c - checks of what section 6 of plugin.h promises about progress: queues do what they were given by
 * themselves, calls that enqueue and calls that look do not wait for it, waits end at their time-outs, and a device
 * that was lost stays lost.
 *
 * No clock decides. The device gets work that doubles until it is seen at it: an event behind the work answers
 * NOT_READY before the call in question, and still does after it. A call that waits never leaves it so. A device that
 * is inline keeps these rules by that, and one that is never seen at work has nothing to show here. */
#include <sched.h>
#include <string.h>
#include <time.h>

#include "spec/check.h"

enum {
    PIECE_BYTES = 64 << 20, /* of one fill: much longer than a call takes, on any device */
    PIECE_LEAST = 1 << 20,
    ROUNDS = 9,      /* up to 256 fills */
    IDLE_ROUNDS = 5, /* never seen at work until here: never seen */
    SUSPICIOUS = 3   /* rounds in which all was finished behind the call: by chance once, not always */
};

/* Work on a queue, with what the calls in question use. */
typedef struct load {
    cek_dev *dev;
    cek_queue *queue;
    cek_event *event, *other; /* `event` is behind the work */
    cek_mem *mem;
    uint64_t bytes;
    void *pinned;
    cek_op *op;
    cek_mem *operands;
    uint32_t seen, waited; /* rounds in which the device was at work before the call; and was not behind it */
} load;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void load_free(spec_state *s, load *l)
{
    const cek_plugin *p = s->plugin;
    if (s->abandoned)
        return;
    p->queue_destroy(l->queue);
    p->event_destroy(l->event);
    p->event_destroy(l->other);
    if (l->op)
        p->op_destroy(l->op);
    if (l->pinned)
        p->host_free(l->dev, l->pinned);
    p->mem_free(l->operands);
    p->mem_free(l->mem);
}

static bool queue_open(spec_state *s, load *l, uint64_t deadline_ns)
{
    cek_queue_desc desc = { .size = sizeof desc, .deadline_ns = deadline_ns };
    return EXPECT_OK(s->plugin->queue_create(l->dev, &desc, &l->queue));
}

static bool load_make(spec_state *s, cek_dev *dev, uint64_t deadline_ns, load *l)
{
    const cek_plugin *p = s->plugin;
    cek_status st = CEK_OUT_OF_MEMORY;
    *l = (load){ .dev = dev };
    for (l->bytes = PIECE_BYTES; st == CEK_OUT_OF_MEMORY && l->bytes >= PIECE_LEAST; l->bytes /= 4) {
        cek_mem_desc desc = { .size = sizeof desc, .bytes = l->bytes };
        st = p->mem_alloc(dev, &desc, &l->mem);
    }
    l->bytes *= 4;
    return spec_expect(s, "mem_alloc", st, CEK_OK, "%s", "") && EXPECT_OK(p->event_create(dev, NULL, &l->event)) &&
           EXPECT_OK(p->event_create(dev, NULL, &l->other)) && queue_open(s, l, deadline_ns) &&
           EXPECT_OK(p->event_record(l->queue, l->other));
}

static cek_ref place(const load *l, uint64_t offset)
{
    return (cek_ref){ l->mem, offset };
}

static bool at_work(spec_state *s, load *l)
{
    cek_status st = s->plugin->event_query(l->event);
    return st == CEK_NOT_READY || !spec_expect(s, "event_query", st, CEK_OK, "%s", "");
}

/* Enqueues 2^round fills; whether the device is seen at it. */
static bool load_start(spec_state *s, load *l, uint32_t round)
{
    bool ok = true;
    for (uint32_t i = 0; ok && i < 1u << round; i++)
        ok = EXPECT_OK(s->plugin->fill(l->queue, place(l, 0), i, 4, l->bytes));
    ok = ok && EXPECT_OK(s->plugin->event_record(l->queue, l->event)) && at_work(s, l) && !s->wrong;
    l->seen += ok;
    return ok;
}

/* Whether another round is worth it. */
static bool goes_on(const spec_state *s, const load *l, uint32_t round)
{
    return !s->wrong && !s->broken && round < ROUNDS && (l->seen || round < IDLE_ROUNDS);
}

/* The call in question; false: it failed, and the check was found wrong. */
typedef bool call_fn(spec_state *s, load *l);

/* Finds the check wrong if `call` waits for work that was enqueued before it. */
static void must_not_wait(spec_state *s, load *l, const char *name, call_fn *call)
{
    l->seen = l->waited = 0;
    for (uint32_t round = 0; goes_on(s, l, round); round++) {
        bool before = load_start(s, l, round), ok = !s->wrong && call(s, l), after = ok && at_work(s, l);
        if (!spec_sync(s, l->queue) || !ok || (before && after))
            return;
        l->waited += before;
    }
    if (!s->wrong && l->waited >= SUSPICIOUS)
        spec_check_wrong(s, "%s waited for the work that was queued before it, in %u of %u tries", name, l->waited,
                         l->seen);
}

/* ---- calls that enqueue ---- */

static bool enqueue_fill(spec_state *s, load *l)
{
    return EXPECT_OK(s->plugin->fill(l->queue, place(l, 0), 0, 4, 4096));
}

static bool enqueue_copy(spec_state *s, load *l)
{
    return EXPECT_OK(s->plugin->copy(l->queue, place(l, 0), place(l, 8192), 4096));
}

static bool enqueue_update(spec_state *s, load *l)
{
    static const uint32_t data[16];
    return EXPECT_OK(s->plugin->update(l->queue, place(l, 0), data, sizeof data));
}

static bool enqueue_record(spec_state *s, load *l)
{
    return EXPECT_OK(s->plugin->event_record(l->queue, l->other));
}

static bool enqueue_wait(spec_state *s, load *l)
{
    return EXPECT_OK(s->plugin->event_wait(l->queue, l->event));
}

static bool enqueue_upload(spec_state *s, load *l)
{
    return EXPECT_OK(s->plugin->upload(l->queue, place(l, 0), l->pinned, 4096));
}

static bool enqueue_download(spec_state *s, load *l)
{
    return EXPECT_OK(s->plugin->download(l->queue, l->pinned, place(l, 0), 4096));
}

enum { VALUES = 64 };

static bool enqueue_run(spec_state *s, load *l)
{
    cek_ref refs[CEK_POINTWISE_OUT + 1] = { [0] = { l->operands, 0 }, [CEK_POINTWISE_OUT] = { l->operands, 1024 } };
    return EXPECT_OK(s->plugin->op_run(l->queue, l->op, refs, CEK_POINTWISE_OUT + 1, (cek_ref){ NULL, 0 }));
}

/* The smallest operation, with memory of its own. Without: *op stays NULL. */
static bool operation_make(spec_state *s, load *l)
{
    const cek_pointwise_input input = { .type = CEK_F32, .strides = { 1 } };
    const cek_pointwise_instruction negate = { .code = CEK_PW_NEG };
    const cek_pointwise_desc desc = {
        .op = { .size = sizeof desc,
                .kind = CEK_OP_POINTWISE,
                .operands = CEK_BIT(CEK_POINTWISE_IN0) | CEK_BIT(CEK_POINTWISE_OUT) },
        .rank = 1,
        .out_type = CEK_F32,
        .shape = { VALUES },
        .out_strides = { 1 },
        .inputs = &input,
        .input_count = 1,
        .input_size = sizeof input,
        .instructions = &negate,
        .instruction_count = 1,
        .instruction_size = sizeof negate,
    };
    cek_mem_desc want = { .size = sizeof want, .bytes = 2048 };
    cek_op_info info = { .size = sizeof info };
    if (s->plugin->profile < CEK_PROFILE_INFERENCE)
        return true;
    if (!EXPECT_OK(s->plugin->mem_alloc(l->dev, &want, &l->operands)) ||
        !EXPECT_OK(s->plugin->op_create(l->dev, &desc.op, &info, &l->op)))
        return false;
    if (info.workspace_bytes) { /* not the operation that is wanted here */
        s->plugin->op_destroy(l->op);
        l->op = NULL;
    }
    return true;
}

static void enqueuing(spec_state *s)
{
    static const struct {
        const char *name;
        call_fn *call;
    } calls[] = {
        { "fill", enqueue_fill },
        { "copy", enqueue_copy },
        { "update", enqueue_update },
        { "event_record", enqueue_record },
        { "event_wait", enqueue_wait },
        { "upload from memory of host_alloc", enqueue_upload },
        { "download to memory of host_alloc", enqueue_download },
        { "op_run", enqueue_run },
    };
    load l;
    if (load_make(s, s->dev, 0, &l) && operation_make(s, &l)) {
        if (s->plugin->host_alloc && s->plugin->host_alloc(s->dev, 4096, &l.pinned) != CEK_OK)
            l.pinned = NULL;
        for (size_t i = 0; i < sizeof calls / sizeof *calls && (!i || l.seen); i++) {
            bool transfer = calls[i].call == enqueue_upload || calls[i].call == enqueue_download;
            if (transfer ? l.pinned != NULL : calls[i].call != enqueue_run || l.op)
                must_not_wait(s, &l, calls[i].name, calls[i].call);
        }
    }
    load_free(s, &l);
}

/* ---- waits and their time-outs ---- */

static bool done_or_timed_out(spec_state *s, const char *call, cek_status st)
{
    return st == CEK_TIMEOUT || spec_expect(s, call, st, CEK_OK, "with a time-out of 0");
}

static bool poll_queue(spec_state *s, load *l)
{
    return done_or_timed_out(s, "queue_sync", s->plugin->queue_sync(l->queue, 0));
}

static bool poll_event(spec_state *s, load *l)
{
    return done_or_timed_out(s, "event_sync", s->plugin->event_sync(l->event, 0));
}

static bool look(spec_state *s, load *l)
{
    return EXPECT_OK(s->plugin->queue_status(l->queue, NULL, 0)) &&
           EXPECT_OK(s->plugin->device_status(l->dev, NULL, 0));
}

static void time_outs(spec_state *s)
{
    load l;
    if (load_make(s, s->dev, 0, &l)) {
        must_not_wait(s, &l, "queue_sync with a time-out of 0", poll_queue);
        if (l.seen)
            must_not_wait(s, &l, "event_sync with a time-out of 0", poll_event);
        if (l.seen)
            must_not_wait(s, &l, "queue_status or device_status", look);
    }
    load_free(s, &l);
}

/* ---- starting ---- */

enum { WORDS = 1024 };

/* What the device writes to host memory, watched without a call. The two are not ordered by anything that a thread
 * sanitizer knows. */
__attribute__((no_sanitize("thread"))) static bool arrived(const volatile uint32_t *words, uint32_t expected)
{
    return words[0] == expected && words[WORDS - 1] == expected;
}

/* Two queues are given work with a record behind it, and then no call is made until both results are seen. */
static void starts_by_itself(spec_state *s)
{
    static uint32_t result[2][WORDS]; /* what never arrives could still be written later */
    load l[2] = { { .dev = NULL }, { .dev = NULL } };
    bool ok = true;
    for (uint32_t i = 0; ok && i < 2; i++) {
        memset(result[i], 0xff, sizeof result[i]);
        ok = load_make(s, s->dev, 0, &l[i]) &&
             EXPECT_OK(s->plugin->fill(l[i].queue, place(&l[i], 0), 77 + i, 4, l[i].bytes)) &&
             EXPECT_OK(s->plugin->download(l[i].queue, result[i], place(&l[i], 4096), sizeof result[i])) &&
             EXPECT_OK(s->plugin->event_record(l[i].queue, l[i].event));
    }
    const uint64_t end = now_ns() + s->timeout_ns;
    while (ok && !(arrived(result[0], 77) && arrived(result[1], 78)) && now_ns() < end)
        sched_yield();
    if (ok && !(arrived(result[0], 77) && arrived(result[1], 78)))
        spec_check_wrong(s, "work in front of an event_record had not been done after %llu ms without a call",
                         (unsigned long long)(s->timeout_ns / 1000000));
    for (uint32_t i = 0; ok && i < 2; i++)
        spec_sync(s, l[i].queue);
    load_free(s, &l[0]);
    load_free(s, &l[1]);
}

/* ---- a deadline that passes ---- */

/* Everything on the lost device says so, each time it is asked. */
static void stays_lost(spec_state *s, load *l, cek_queue *queue)
{
    const cek_plugin *p = s->plugin;
    char text[SPEC_TEXT_MAX] = "";
    cek_mem_desc desc = { .size = sizeof desc, .bytes = 4096 };
    cek_mem *mem = NULL;
    cek_queue *more = NULL;
    cek_event *event = NULL;
    for (int again = 0; again < 2; again++) {
        EXPECT(CEK_DEVICE_LOST, p->device_status(l->dev, text, sizeof text), "of a lost device");
        REQUIRE(*text, "device_status tells why a device was lost");
        EXPECT(CEK_DEVICE_LOST, p->mem_alloc(l->dev, &desc, &mem), "of a lost device");
        EXPECT(CEK_DEVICE_LOST, p->queue_create(l->dev, NULL, &more), "of a lost device");
        EXPECT(CEK_DEVICE_LOST, p->event_create(l->dev, NULL, &event), "of a lost device");
        EXPECT(CEK_DEVICE_LOST, p->fill(queue, place(l, 0), 0, 4, 4096), "of a lost device");
        EXPECT(CEK_DEVICE_LOST, p->event_record(queue, l->other), "of a lost device");
        EXPECT(CEK_DEVICE_LOST, p->queue_sync(queue, 0), "of a lost device");
        EXPECT(CEK_DEVICE_LOST, p->queue_status(queue, NULL, 0), "of a lost device");
    }
    REQUIRE(!mem && !more && !event, "what fails leaves its output NULL");
}

/* A queue that is destroyed with work in it waits to its deadline, and no longer; what runs on takes the device with
 * it: this handle of it, which was opened for that. */
static void deadline_passes(spec_state *s)
{
    cek_dev *dev = NULL;
    cek_queue *queue = NULL;
    load l = { .dev = NULL };
    bool lost = false;
    if (!EXPECT_OK(s->plugin->device_open(s->target->instance, s->target->index, NULL, &dev)))
        return;
    bool ok = load_make(s, dev, 1, &l) && EXPECT_OK(s->plugin->queue_create(dev, NULL, &queue));
    for (uint32_t round = 0; ok && !lost && goes_on(s, &l, round); round++) {
        load_start(s, &l, round);
        s->plugin->queue_destroy(l.queue);
        l.queue = NULL;
        cek_status st = s->plugin->device_status(dev, NULL, 0);
        lost = st == CEK_DEVICE_LOST;
        ok = lost || (spec_expect(s, "device_status", st, CEK_OK, "%s", "") && queue_open(s, &l, 1));
    }
    if (lost)
        stays_lost(s, &l, queue);
    else if (ok && l.seen >= SUSPICIOUS)
        spec_check_wrong(s,
                         "queue_destroy with a deadline of 1 ns waited for the work, or left it running on a device "
                         "that is not lost, in %u tries",
                         l.seen);
    s->plugin->queue_destroy(queue);
    load_free(s, &l);
    s->plugin->device_close(dev);
}

void spec_check_progress(spec_state *s)
{
    static const struct {
        const char *name;
        void (*run)(spec_state *s);
    } checks[] = {
        { "work starts by itself", starts_by_itself },
        { "enqueuing", enqueuing },
        { "time-outs", time_outs },
        { "a deadline that passes", deadline_passes }, /* last: it leaves work behind */
    };
    cek_device_info info = { .size = sizeof info };
    s->plugin->device_info(s->target->instance, s->target->index, &info);
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        if (spec_check_begin(s, "queue", 0, true, "%s", checks[i].name)) {
            if (!(info.flags & CEK_DEVICE_INLINE))
                checks[i].run(s);
            spec_check_end(s);
        }
    }
}
