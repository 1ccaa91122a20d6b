/* threads.c - one operation run by several queues at once, each with a workspace of its own;
 * command buffers. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spec/check.h"

enum { THREADS = 3, ROUNDS = 6 };

/* Each thread has a state of its own, since a verdict is not for several at once. */
typedef struct worker {
    pthread_t thread;
    bool started;
    spec_state state;
    spec_report *report;
    spec_problem *problem;
    spec_job job;
    cek_queue *queue;
} worker;

/* Beside the others, and beside the sensors, which any thread may read while the device works. */
static void *work(void *arg)
{
    worker *w = arg;
    const spec_target *t = w->state.target;
    const cek_plugin *p = w->state.plugin;
    for (int i = 0; i < ROUNDS && !w->state.wrong; i++) {
        cek_device_sensors told = { .size = sizeof told };
        const cek_status st = p->device_sensors ? p->device_sensors(t->instance, t->index, &told) : CEK_UNSUPPORTED;
        if (st != CEK_UNSUPPORTED)
            spec_expect(&w->state, "device_sensors", st, CEK_OK, "%s", "while the device works");
        if (spec_job_run(&w->state, &w->job, w->queue))
            spec_job_verify(&w->state, &w->job);
    }
    return NULL;
}

/* The case and its memory; *inexact: with the bounds of a transform, or, set here, to be made again with them. */
static bool job_make(worker *w, const spec_kind *kind, const char *text, bool *inexact)
{
    spec_problem_init(w->problem, kind->kind, CEK_F32, SPEC_REAL, *inexact, 9);
    *inexact = false;
    return kind->build(text, w->problem) && spec_job_make(&w->state, w->problem, &w->job, inexact);
}

static bool worker_make(spec_state *s, worker *w, const spec_kind *kind, const char *text, cek_op *shared,
                        const cek_op_info *info)
{
    bool inexact = shared && info->flags & CEK_OP_INFO_INEXACT;
    w->state = *s;
    w->report = spec_calloc(s, 1, sizeof *w->report);
    w->problem = spec_calloc(s, 1, sizeof *w->problem);
    if (!w->report || !w->problem)
        return false;
    w->state.report = w->report;
    if (!job_make(w, kind, text, &inexact)) {
        if (!inexact)
            return false;
        spec_job_free(&w->state, &w->job);
        spec_problem_free(w->problem);
        if (!job_make(w, kind, text, &inexact))
            return false;
    }
    if (shared) { /* one operation for all; the job's own was needed for its sizes */
        s->plugin->op_destroy(w->job.op);
        w->job.op = shared;
    }
    return spec_expect(&w->state, "queue_create", s->plugin->queue_create(s->dev, NULL, &w->queue), CEK_OK, "%s", "");
}

static void worker_free(spec_state *s, worker *w, bool shared)
{
    if (s->abandoned)
        return;
    if (w->queue)
        s->plugin->queue_destroy(w->queue);
    if (shared)
        w->job.op = NULL;
    spec_job_free(s, &w->job);
    if (w->problem)
        spec_problem_free(w->problem);
    free(w->problem);
    free(w->report);
}

/* With a stack that suffices for drivers, whatever the process's limit says. */
static void worker_start(worker *w)
{
    const size_t needed = 8 << 20;
    pthread_attr_t attributes;
    size_t stack;
    if (pthread_attr_init(&attributes))
        return;
    pthread_attr_getstacksize(&attributes, &stack);
    if (stack < needed)
        pthread_attr_setstacksize(&attributes, needed);
    w->started = !pthread_create(&w->thread, &attributes, work, w);
    pthread_attr_destroy(&attributes);
}

/* Whether one of them ran out of memory, which all of the check then has. */
static bool workers_starved(spec_state *s, const worker *w)
{
    for (int i = 0; w && i < THREADS; i++)
        if (w[i].state.starved)
            spec_check_starved(s, "queue %d of %d: %.150s", i, THREADS, w[i].report->starved);
    return s->starved;
}

static void queues_at_once(spec_state *s, const spec_kind *kind, const char *text)
{
    worker *w = spec_calloc(s, THREADS, sizeof *w);
    bool ok = w && worker_make(s, &w[0], kind, text, NULL, NULL);
    for (int i = 1; ok && i < THREADS; i++)
        ok = worker_make(s, &w[i], kind, text, w[0].job.op, &w[0].job.info);
    if (w && w[0].state.unsupported)
        s->unsupported = true;
    else if (!ok && !workers_starved(s, w))
        spec_check_wrong(s, "cannot make what the threads need: %.150s",
                         w && w->report && w->report->failure_count ? w->report->failure[0].what
                                                                    : "see the other cases");
    for (int i = 0; ok && i < THREADS; i++)
        worker_start(&w[i]);
    for (int i = 0; ok && i < THREADS; i++) {
        if (w[i].started)
            pthread_join(w[i].thread, NULL);
        else
            spec_check_starved(s, "no thread can be started");
        if (w[i].state.broken)
            s->broken = w[i].state.broken;
        s->abandoned |= w[i].state.abandoned;
        if (w[i].state.wrong)
            spec_check_wrong(s, "queue %d of %d: %.200s", i, THREADS, w[i].report->failure[0].what);
    }
    workers_starved(s, w);
    for (int i = THREADS - 1; w && i >= 0; i--)
        worker_free(s, &w[i], i > 0);
    free(w);
}

/* Fills of a pattern of 2 bytes, of commands of a later version; and what is refused. */
static void command_forms(spec_state *s, const spec_buffer *b)
{
    const cek_plugin *p = s->plugin;
    struct {
        cek_cmd known;
        uint64_t later;
    } grown[2] = {
        { .known = { .kind = CEK_CMD_FILL,
                     .dst = spec_buffer_ref(b),
                     .bytes = 8,
                     .pattern = 0x99995566u,
                     .pattern_bytes = 2 } },
        { .known = { .kind = CEK_CMD_FILL,
                     .dst = { b->mem, b->offset + 8 },
                     .bytes = 1,
                     .pattern = 0x99999977u,
                     .pattern_bytes = 1 } },
    };
    cek_cmd outside = grown[0].known, odd = grown[0].known;
    uint8_t bytes[10];
    cek_cmdbuf *buffer = NULL;
    if (EXPECT_OK(p->cmdbuf_create(s->dev, &grown[0].known, 2, sizeof grown[0], &buffer))) {
        if (EXPECT_OK(p->cmdbuf_run(s->queue, buffer)) &&
            EXPECT_OK(p->download(s->queue, bytes, spec_buffer_ref(b), sizeof bytes)) && spec_sync(s, s->queue))
            REQUIRE(bytes[0] == 0x66 && bytes[1] == 0x55 && bytes[2] == 0x66 && bytes[7] == 0x55 && bytes[8] == 0x77,
                    "a fill of a command buffer repeats the low bytes of its pattern");
        p->cmdbuf_destroy(buffer);
    }
    outside.dst.offset = b->total - 4;
    odd.pattern_bytes = 3;
    EXPECT(CEK_INVALID, p->cmdbuf_create(s->dev, &outside, 1, sizeof outside, &buffer),
           "with a fill that ends behind its memory");
    REQUIRE(!buffer, "what fails leaves its output NULL");
    EXPECT(CEK_INVALID, p->cmdbuf_create(s->dev, &odd, 1, sizeof odd, &buffer), "with a pattern of 3 bytes");
    grown[1].later = 1;
    EXPECT(CEK_UNSUPPORTED, p->cmdbuf_create(s->dev, &grown[0].known, 2, sizeof grown[0], &buffer),
           "with a non-zero byte beyond a command");
}

/* A fill, a copy and a product in one call; twice, the second time on other data. */
static void command_buffer(spec_state *s)
{
    const cek_plugin *p = s->plugin;
    if (!p->cmdbuf_create || !p->cmdbuf_run || !p->cmdbuf_destroy) {
        s->unsupported = true;
        return;
    }
    spec_problem *problem = spec_calloc(s, 1, sizeof *problem);
    spec_job job = { 0 };
    spec_buffer copy = { 0 };
    cek_cmdbuf *buffer = NULL;
    bool inexact = false;
    if (!problem)
        return;
    spec_problem_init(problem, CEK_OP_GEMM, CEK_F32, SPEC_WHOLE, true, 3);
    if (spec_kind_gemm.build("7x9x11", problem) && spec_job_make(s, problem, &job, &inexact) &&
        spec_job_run(s, &job, s->queue) && spec_buffer_make(s, 7 * 9 * 4, 0, &copy) &&
        spec_buffer_upload(s, &copy, s->queue)) {
        cek_ref workspace = job.workspace.mem ? spec_buffer_ref(&job.workspace) : (cek_ref){ NULL, 0 };
        cek_cmd cmds[] = {
            { .kind = CEK_CMD_FILL,
              .dst = job.refs[CEK_GEMM_C],
              .bytes = 7 * 9 * 4,
              .pattern = 0x7fc00000,
              .pattern_bytes = 4 },
            { .kind = CEK_CMD_RUN,
              .operand_count = job.ref_count,
              .op = job.op,
              .operands = job.refs,
              .workspace = workspace },
            { .kind = CEK_CMD_COPY, .dst = spec_buffer_ref(&copy), .src = job.refs[CEK_GEMM_C], .bytes = 7 * 9 * 4 },
        };
        cek_status st = p->cmdbuf_create(s->dev, cmds, 3, sizeof *cmds, &buffer);
        s->unsupported = st == CEK_UNSUPPORTED;
        if (!s->unsupported && spec_expect(s, "cmdbuf_create", st, CEK_OK, "%s", "")) {
            memset(cmds, 0, sizeof cmds); /* everything was copied */
            const float *got = (const float *)(const void *)spec_buffer_contents(&copy),
                        *once = (const float *)(const void *)spec_buffer_contents(&job.buffer[CEK_GEMM_C]);
            for (int run = 0; run < 2; run++) {
                for (uint32_t i = 0; run && i < 7 * 11; i++) /* of -A the product is the other */
                    spec_buffer_contents(&job.buffer[CEK_GEMM_A])[4 * i + 3] ^= 0x80;
                if (spec_buffer_upload(s, &job.buffer[CEK_GEMM_A], s->queue) &&
                    EXPECT_OK(p->cmdbuf_run(s->queue, buffer)) && spec_buffer_download(s, &copy, s->queue) &&
                    spec_sync(s, s->queue))
                    for (uint32_t i = 0; i < 7 * 9; i++)
                        REQUIRE(got[i] == (run ? -once[i] : once[i]),
                                "a command buffer does what its commands would, on the data of each run");
            }
            p->cmdbuf_destroy(buffer);
            command_forms(s, &copy);
            cek_cmd unknown = { .kind = 99 };
            EXPECT(CEK_UNSUPPORTED, p->cmdbuf_create(s->dev, &unknown, 1, sizeof unknown, &buffer),
                   "with an unknown kind");
            cek_cmd nothing = { .kind = CEK_CMD_FILL, .pattern_bytes = 4 };
            EXPECT(CEK_INVALID, p->cmdbuf_create(s->dev, &nothing, 1, sizeof nothing - 8, &buffer),
                   "with commands that are too small");
        }
    } else if (!s->wrong && !s->unsupported) {
        spec_check_wrong(s, "the product for the command buffer cannot be made: %.100s", problem->error);
    }
    spec_buffer_free(s, &copy);
    spec_job_free(s, &job);
    spec_problem_free(problem);
    free(problem);
}

void spec_check_threads(spec_state *s)
{
    static const struct {
        const spec_kind *kind;
        const char *text;
    } cases[] = {
        { &spec_kind_gemm, "130x70x260:bias" },
        { &spec_kind_conv_forward, "mb2ic16ih10oc24oh10kh3ph1:bias" },
        { &spec_kind_reduce, "3000:a0:sum" },
        { &spec_kind_conv_backward_weights, "mb2ic16ih9oc20oh9kh3ph1:bias" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const spec_kind *kind = cases[i].kind;
        if (spec_check_begin(s, kind->name, CEK_F32, s->report->profile >= kind->profile, "%s on %d queues at once",
                             cases[i].text, THREADS)) {
            queues_at_once(s, kind, cases[i].text);
            spec_check_end(s);
        }
    }
    if (spec_check_begin(s, "command_buffer", 0, false, "fill, product, copy")) {
        command_buffer(s);
        spec_check_end(s);
    }
}
