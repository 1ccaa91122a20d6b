/* run.c - the order of a run, and its verdict. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/table/table.h"
#include "spec/check.h"

static const char *const fill_names[] = { "", "whole", "real", "nan", "edge", "infinite" };

static uint64_t seed_of(const char *text)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (; *text; text++)
        h = (h ^ (uint8_t)*text) * 0x100000001b3u;
    return h;
}

/* What the device left is where the next step starts. */
static void carry_on(spec_job *job)
{
    spec_problem *p = job->problem;
    for (uint32_t i = 0; i < p->operand_count; i++) {
        spec_operand *o = &p->operand[i];
        if (o->direction != SPEC_INOUT)
            continue;
        if (o->raw)
            memcpy(o->raw, spec_buffer_contents(&job->buffer[i]), o->count);
        else
            spec_decode(o->type, spec_buffer_contents(&job->buffer[i]), o->count, o->value);
    }
}

static bool run_again_equals(spec_state *s, spec_job *job)
{
    uint8_t *first[SPEC_OPERANDS_MAX] = { 0 };
    bool ok = true;
    for (uint32_t i = 0; i < job->problem->operand_count; i++) {
        const spec_buffer *b = &job->buffer[i];
        if (b->mem && (first[i] = spec_calloc(s, 1, b->total)))
            memcpy(first[i], b->image, b->total);
    }
    if ((ok = spec_job_run(s, job, s->queue))) {
        for (uint32_t i = 0; i < job->problem->operand_count; i++) {
            if (first[i] && memcmp(first[i], job->buffer[i].image, job->buffer[i].total)) {
                spec_check_wrong(s, "%s has other bits in a second run, with DETERMINISTIC",
                                 job->problem->operand[i].name);
                ok = false;
            }
        }
    }
    for (uint32_t i = 0; i < SPEC_OPERANDS_MAX; i++)
        free(first[i]);
    return ok;
}

/* The case on the device, under STRICT if `strict`, else as it is. *inexact: it must be built again with the bounds
 * of a transform. */
static void case_attempt(spec_state *s, const spec_kind *kind, const spec_case *c, cek_dtype type, uint32_t fill,
                         bool strict, bool *inexact)
{
    spec_problem *p = spec_calloc(s, 1, sizeof *p);
    spec_job job = { 0 };
    bool again = false;
    if (!p)
        return;
    spec_problem_init(p, kind->kind, type, fill, *inexact, seed_of(c->text) + fill);
    p->flushes = s->flushes;
    bool built = kind->build(c->text, p);
    if (strict)
        p->desc.op.math = CEK_MATH_STRICT;
    if (!built) {
        spec_check_unbuilt(s, p);
    } else if (spec_job_make(s, p, &job, &again)) {
        for (uint32_t step = 0; step == 0 || step < p->steps; step++) {
            if (step) {
                carry_on(&job);
                p->next(p, step);
            }
            if (!spec_job_run(s, &job, s->queue) || !spec_job_verify(s, &job))
                break;
        }
        if (p->twice && !s->wrong)
            run_again_equals(s, &job);
    }
    spec_job_free(s, &job);
    spec_problem_free(p);
    free(p);
    *inexact = again;
}

/* What a device transforms it must be able to do without, and exactly where numbers are whole. */
static void case_run_strict(spec_state *s, const spec_kind *kind, const spec_case *c, cek_dtype type, uint32_t fill)
{
    bool inexact = false;
    size_t used = strlen(s->name);
    snprintf(s->name + used, sizeof s->name - used, ", strict");
    case_attempt(s, kind, c, type, fill, true, &inexact);
    if (inexact)
        spec_check_wrong(s, "a transform under CEK_MATH_STRICT");
    if (s->unsupported)
        spec_check_wrong(s, "it is unsupported under CEK_MATH_STRICT alone");
    s->unsupported = false;
    s->name[used] = 0;
}

/* Whether the case was selected; so case_count. */
static bool case_run(spec_state *s, const spec_kind *kind, const spec_case *c, cek_dtype type, uint32_t fill)
{
    bool required = !c->optional && (type == CEK_F32 || c->any_type) && s->report->profile >= kind->profile;
    if (!spec_check_begin(s, kind->name, type, required, "%s %s", c->text, fill_names[fill]))
        return false;
    bool inexact = false;
    case_attempt(s, kind, c, type, fill, false, &inexact);
    if (inexact) {
        case_attempt(s, kind, c, type, fill, false, &inexact);
        if (!s->wrong && !s->starved && !s->unsupported)
            case_run_strict(s, kind, c, type, fill);
    }
    spec_check_end(s);
    return true;
}

static bool case_count(spec_state *s, const spec_kind *kind, const spec_case *c, cek_dtype type, uint32_t fill)
{
    return spec_check_begin(s, kind->name, type, false, "%s %s", c->text, fill_names[fill]);
}

typedef bool case_visit(spec_state *s, const spec_kind *kind, const spec_case *c, cek_dtype type, uint32_t fill);

/* Each case with each of its types and fills; how many were selected. */
static uint32_t kind_visit(spec_state *s, const spec_kind *kind, case_visit *visit)
{
    uint32_t selected = 0;
    for (uint32_t i = 0; i < kind->case_count; i++) {
        const spec_case *c = &kind->cases[i];
        for (cek_dtype type = CEK_F32; type <= CEK_I32; type++)
            for (uint32_t fill = SPEC_WHOLE; fill < SPEC_FILLS; fill++)
                if (c->types >> type & 1 && c->fills >> fill & 1)
                    selected += visit(s, kind, c, type, fill);
    }
    return selected;
}

uint32_t spec_case_count(const spec_options *options)
{
    spec_state s = { .broken = CEK_OK };
    uint32_t count, selected = 0;
    const spec_kind *const *kinds = spec_kinds(&count);
    if (options)
        s.options = (spec_options){ .match = options->match, .group = options->group, .type = options->type };
    for (uint32_t i = 0; i < count; i++)
        selected += kind_visit(&s, kinds[i], case_count);
    return selected;
}

static void kind_run(spec_state *s, const spec_kind *kind)
{
    kind_visit(s, kind, case_run);
    spec_check_misuse(s, kind, s->report->profile >= kind->profile);
}

/* A claim that nothing was run for is no claim. */
static void claims_examine(spec_state *s)
{
    spec_report *r = s->report;
    uint32_t count;
    const spec_kind *const *kinds = spec_kinds(&count);
    bool selected = s->options.match || s->options.group || s->options.type;
    for (uint32_t i = 0; !selected && !r->starved_count && i < count; i++) {
        uint32_t run = 0;
        for (uint32_t l = 0; l < r->line_count; l++)
            if (!strcmp(r->line[l].group, kinds[i]->name))
                run += r->line[l].count.required;
        if (!run && r->profile >= kinds[i]->profile)
            snprintf(r->missing, sizeof r->missing, "profile %u is claimed, but no required case of %s was run",
                     r->profile, kinds[i]->name);
    }
    if (!s->broken && r->starved_count)
        s->broken = CEK_OUT_OF_MEMORY;
    if (!r->total.required && !r->total.optional && !s->broken) {
        snprintf(r->missing, sizeof r->missing, "no case was run");
        s->broken = CEK_INVALID;
    }
    r->ok = !s->broken && !r->failure_count && !*r->missing;
}

bool spec_table_take(const cek_plugin *theirs, cek_plugin *out, char *error, size_t cap)
{
    return cek__table_take(theirs, out, error, cap);
}

cek_status spec_run(const spec_target *target, const spec_options *options, spec_report *report)
{
    cek_plugin plugin = { 0 };
    *report = (spec_report){ .ok = false };
    if (!cek__table_take(target->plugin, &plugin, report->missing, sizeof report->missing)) {
        report->profile = target->plugin->profile;
        return CEK_OK;
    }
    report->profile = plugin.profile;
    spec_state s = { .target = target, .plugin = &plugin, .dev = target->dev, .report = report };
    if (options)
        s.options = *options;
    s.timeout_ns = s.options.timeout_ns ? s.options.timeout_ns : 60000000000u;
    s.flushes = spec_device_flushes(&s);
    cek_status st = plugin.queue_create(s.dev, NULL, &s.queue);
    if (st != CEK_OK) {
        snprintf(report->missing, sizeof report->missing, "queue_create answered %s", spec_status_name(st));
        return st == CEK_OUT_OF_MEMORY ? st : CEK_OK;
    }
    spec_check_ground(&s);
    spec_check_device(&s);
    spec_check_memory(&s);
    spec_check_queues(&s);
    uint32_t count;
    const spec_kind *const *kinds = spec_kinds(&count);
    for (uint32_t i = 0; plugin.op_create && i < count; i++)
        kind_run(&s, kinds[i]);
    if (plugin.op_create)
        spec_check_threads(&s);
    spec_check_nulls(&s);
    spec_check_progress(&s);
    if (!s.abandoned)
        plugin.queue_destroy(s.queue);
    report->abandoned = s.abandoned;
    claims_examine(&s);
    return s.broken;
}
