/* measure.c - one problem of an operation: run and compared as a case of conformance is, then
 * timed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "spec/check.h"

/* What the layers of a small convolutional network ask for at batch 64; products and convolutions
 * as large as the oracle computes in a moment. */
static const struct {
    uint32_t kind;
    const char *text;
} typical[] = {
    { CEK_OP_GEMM, "256x256x256" },
    { CEK_OP_CONV_FORWARD, "mb4ic32ih28oc64oh28kh3ph1:bias:relu" },
    { CEK_OP_CONV_BACKWARD_DATA, "mb4ic32ih28oc64oh28kh3ph1" },
    { CEK_OP_CONV_BACKWARD_WEIGHTS, "mb4ic32ih28oc64oh28kh3ph1:bias" },
    { CEK_OP_POOL_FORWARD, "mb64c32ih28kh2sh2:max:res" },
    { CEK_OP_POOL_BACKWARD, "mb64c32ih28kh2sh2:max" },
    { CEK_OP_POINTWISE, "1000000/x0,x1,add" },
    { CEK_OP_REDUCE, "1000x1000:a0:sum" },
    { CEK_OP_SOFTMAX, "1000x1000" },
    { CEK_OP_CROSS_ENTROPY, "4096x10" },
    { CEK_OP_SQUARED_ERROR, "4096x10" },
    { CEK_OP_DROPOUT, "64x10000:p500" },
    { CEK_OP_RANDOM, "64x10000:uniform" },
    { CEK_OP_OPTIMIZER, "1000000:adam" },
    { CEK_OP_COPY, "1000x1000:fromf32:x~^" },
    { CEK_OP_GATHER, "1x10000x4096x256" },
    { CEK_OP_SCATTER_ADD, "1x10000x4096x256" },
    { CEK_OP_ARG, "4096x1000:a1:max" },
};

const char *spec_measure_typical(uint32_t kind)
{
    for (size_t i = 0; i < sizeof typical / sizeof *typical; i++)
        if (typical[i].kind == kind)
            return typical[i].text;
    return NULL;
}

/* Every output passes here on its way to the comparison. */
static void output_judge(void *user, const spec_output *o)
{
    spec_measurement *m = user;
    double *got = malloc(o->count * sizeof *got);
    if (!got) {
        m->uncompared = true;
        return;
    }
    spec_decode(o->type, o->bytes, o->count, got);
    for (uint64_t i = 0; i < o->count; i++) {
        if (o->written && !o->written[i])
            continue;
        m->compared++;
        if (isnan(got[i]) && isnan(o->expect[i]))
            continue;
        double error = fabs(got[i] - o->expect[i]);
        m->wrong += !(got[i] == o->expect[i] || error <= o->bound[i]);
        if (error > m->max_error || isnan(error))
            m->max_error = error;
    }
    free(got);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

cek_status spec_time(spec_timing *t, cek_status (*run)(void *user, uint64_t times),
                     cek_status (*before)(void *user, uint32_t turn, uint64_t times), void *user)
{
    const double enough = 0.01; /* many ticks of the clock, and many wake-ups of a pool */
    double once = 0;
    cek_status st = CEK_OK;
    for (uint32_t i = 0; i <= t->warmup && !st; i++) {
        double start = now();
        st = run(user, 1);
        once = now() - start;
    }
    if (!t->repeats) {
        double times = ceil(enough / (once > 1e-9 ? once : 1e-9));
        t->repeats = times < 1 ? 1 : times > 10000 ? 10000 : (uint64_t)times;
    }
    for (uint32_t i = 0; i < t->runs && !st; i++) {
        if (before)
            st = before(user, i, t->repeats);
        double start = now();
        if (!st)
            st = run(user, t->repeats);
        t->seconds[i] = (now() - start) / (double)t->repeats;
    }
    return st;
}

typedef struct running {
    spec_state *state;
    const spec_job *job;
} running;

static cek_status job_repeat(void *user, uint64_t times)
{
    const running *r = user;
    spec_state *s = r->state;
    const spec_job *job = r->job;
    const cek_ref workspace = job->workspace.mem ? spec_buffer_ref(&job->workspace) : (cek_ref){ NULL, 0 };
    cek_ref refs[CEK_SLOT_MAX];
    spec_job_operands(job, refs);
    for (uint64_t i = 0; i < times; i++)
        if (!EXPECT_OK(s->plugin->op_run(s->queue, job->op, refs, job->ref_count, workspace)))
            return CEK_INTERNAL; /* the state has it */
    return spec_sync(s, s->queue) ? CEK_OK : CEK_INTERNAL;
}

static void counts_note(const spec_kind *kind, const spec_job *job, spec_measurement *m)
{
    const spec_problem *p = job->problem;
    for (uint32_t i = 0; i < p->operand_count; i++) {
        const spec_operand *o = &p->operand[i];
        uint64_t bytes = o->type ? o->count * spec_type_bytes(o->type) : o->count;
        m->bytes += o->direction == SPEC_INOUT || o->accumulated ? 2 * bytes : bytes;
    }
    m->flops = kind->kind == CEK_OP_GEMM ? spec_gemm_flops(&p->desc.gemm)
               : kind->kind >= CEK_OP_CONV_FORWARD && kind->kind <= CEK_OP_CONV_BACKWARD_WEIGHTS
                   ? spec_conv_flops(&p->desc.conv)
                   : 0;
    snprintf(m->algorithm, sizeof m->algorithm, "%s", job->info.algorithm);
}

/* True where the problem must be built again, with the bounds of a transform. */
static bool attempt(spec_state *s, const spec_kind *kind, const char *text, cek_dtype type, bool inexact,
                    spec_measurement *m)
{
    spec_problem *p = spec_calloc(s, 1, sizeof *p);
    spec_job job = { 0 };
    bool again = false;
    if (!p)
        return false;
    spec_problem_init(p, kind->kind, type, SPEC_REAL, inexact, 1);
    p->flushes = s->flushes;
    if (!kind->build(text, p)) {
        if (p->no_memory)
            spec_check_starved(s, "%.200s", p->error);
        else
            spec_check_wrong(s, "%.200s", p->error);
        s->broken = CEK_INVALID;
    } else if (spec_job_make(s, p, &job, &again) && spec_job_run(s, &job, s->queue)) {
        spec_job_verify(s, &job);
        counts_note(kind, &job, m);
        spec_time(&m->timing, job_repeat, NULL, &(running){ s, &job });
        if (m->uncompared)
            spec_check_starved(s, "there was no host memory to compare what came out");
    } else if (job.created == CEK_INVALID) {
        s->broken = CEK_INVALID; /* the problem is at fault, as long as conformance has the plugin's word */
    }
    spec_job_free(s, &job);
    spec_problem_free(p);
    free(p);
    return again;
}

cek_status spec_measure(const spec_target *target, uint32_t kind, const char *text, cek_dtype type, spec_measurement *m)
{
    cek_plugin plugin = { 0 };
    spec_report *report = calloc(1, sizeof *report);
    uint32_t count, k = 0;
    const spec_kind *const *kinds = spec_kinds(&count);
    if (!report)
        return CEK_OUT_OF_MEMORY;
    m->timing.repeats = m->bytes = m->compared = m->wrong = 0;
    m->flops = m->max_error = 0;
    m->uncompared = false;
    *m->algorithm = *m->error = 0;
    while (k < count && kinds[k]->kind != kind)
        k++;
    memcpy(&plugin, target->plugin, target->plugin->size < sizeof plugin ? target->plugin->size : sizeof plugin);
    spec_state s = {
        .target = target, .plugin = &plugin, .dev = target->dev, .report = report, .timeout_ns = 60000000000u
    };
    s.flushes = spec_device_flushes(&s);
    s.options.tamper = output_judge;
    s.options.user = m;
    cek_status st = k == count                            ? CEK_INVALID
                    : !plugin.op_create || !plugin.op_run ? CEK_UNSUPPORTED
                                                          : plugin.queue_create(s.dev, NULL, &s.queue);
    if (!st) {
        spec_check_begin(&s, kinds[k]->name, type, true, "%s", text);
        if (attempt(&s, kinds[k], text, type, false, m))
            attempt(&s, kinds[k], text, type, true, m);
        st = s.starved              ? CEK_OUT_OF_MEMORY
             : s.broken             ? s.broken
             : s.unsupported        ? CEK_UNSUPPORTED
             : s.wrong && !m->wrong ? CEK_INTERNAL
                                    : CEK_OK;
        spec_check_end(&s);
        if (s.starved)
            snprintf(m->error, sizeof m->error, "%s", report->starved);
        else if (report->failure_count)
            snprintf(m->error, sizeof m->error, "%s", report->failure[0].what);
        if (!s.abandoned)
            plugin.queue_destroy(s.queue);
    }
    free(report);
    return st;
}
