/* job.c - takes a problem to the device and compares what comes back. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "spec/check.h"

static uint64_t operand_bytes(const spec_job *job, const spec_operand *o)
{
    switch (o->sizing) {
    case SPEC_SIZE_RESERVE: return job->forward ? job->forward->info.reserve_bytes : job->info.reserve_bytes;
    case SPEC_SIZE_PREPACK: return job->info.prepack_bytes;
    default: return o->type ? o->count * spec_type_bytes(o->type) : o->count;
    }
}

/* The reserve of a forward operation belongs to that job; its backward one reads it there. */
static bool shares_forward(const spec_job *job, const spec_operand *o)
{
    return job->forward && o->sizing == SPEC_SIZE_RESERVE;
}

static bool buffers_make(spec_state *s, spec_job *job)
{
    spec_problem *p = job->problem;
    uint32_t align = p->desc.op.align;
    for (uint32_t i = 0; i < p->operand_count; i++) {
        spec_operand *o = &p->operand[i];
        uint64_t shift = align && align < CEK_ALIGNMENT && o->type ? align : 0;
        if (shift && shift < spec_type_bytes(o->type))
            shift = spec_type_bytes(o->type);
        if (o->slot >= job->ref_count && !o->plain)
            job->ref_count = o->slot + 1;
        if (o->alias || shares_forward(job, o))
            continue;
        uint64_t bytes = operand_bytes(job, o);
        if (!spec_buffer_make(s, bytes ? bytes : 1, shift, &job->buffer[i]))
            return false;
        job->refs[o->slot] = spec_buffer_ref(&job->buffer[i]);
    }
    for (uint32_t i = 0; i < p->operand_count; i++) {
        spec_operand *o = &p->operand[i];
        if (o->alias)
            job->refs[o->slot] = job->refs[o->alias - 1];
        if (shares_forward(job, o))
            job->refs[o->slot] = job->forward->refs[CEK_POOL_FORWARD_RESERVE];
    }
    return !job->info.workspace_bytes || spec_buffer_make(s, job->info.workspace_bytes, 0, &job->workspace);
}

/* op_create with everything lent: what it points at is gone when the call returns. */
static cek_status lent_create(spec_state *s, const spec_problem *p, cek_op_info *info, cek_op **op)
{
    spec_problem *lent = spec_calloc(s, 1, sizeof *lent);
    if (!lent)
        return CEK_OUT_OF_MEMORY;
    *lent = *p;
    if (p->desc.op.epilogue == &p->epilogue)
        lent->desc.op.epilogue = &lent->epilogue;
    if (p->desc.op.kind == CEK_OP_POINTWISE)
        lent->desc.pointwise.inputs = lent->inputs, lent->desc.pointwise.instructions = lent->instructions;
    if (p->desc.op.kind == CEK_OP_OPTIMIZER)
        lent->desc.optimizer.ranges = lent->ranges;
    cek_status st = s->plugin->op_create(s->dev, &lent->desc.op, info, op);
    memset(lent, 0xff, sizeof *lent);
    free(lent);
    return st;
}

bool spec_job_make(spec_state *s, spec_problem *p, spec_job *job, bool *inexact)
{
    *job = (spec_job){ .problem = p };
    if (p->forward) {
        job->forward = spec_calloc(s, 1, sizeof *job->forward);
        if (!job->forward)
            return false;
        bool made = spec_job_make(s, p->forward, job->forward, inexact);
        job->created = job->forward->created;
        if (!made || !spec_job_run(s, job->forward, s->queue) || !spec_job_verify(s, job->forward))
            return false;
        p->desc.op.forward = job->forward->op;
    }
    job->info.size = sizeof job->info;
    cek_status st = lent_create(s, p, &job->info, &job->op);
    job->created = st;
    if (st == CEK_UNSUPPORTED) {
        s->unsupported = true;
        return false;
    }
    if (!spec_expect(s, "op_create", st, CEK_OK, "%s", ""))
        return false;
    if (job->info.size != sizeof job->info || !job->op) {
        spec_check_wrong(s, "op_create changed info.size or gave no operation");
        return false;
    }
    if (job->info.reserve_bytes &&
        !(p->desc.op.kind == CEK_OP_POOL_FORWARD && p->desc.op.operands & CEK_BIT(CEK_POOL_FORWARD_RESERVE))) {
        spec_check_wrong(s, "reserve_bytes is not 0, but the mask has no RESERVE");
        return false;
    }
    if (job->info.flags & CEK_OP_INFO_INEXACT && !p->inexact) {
        *inexact = true;
        return false;
    }
    if (p->inexact && p->desc.op.math == CEK_MATH_STRICT) {
        spec_check_wrong(s, "a transform under CEK_MATH_STRICT");
        return false;
    }
    return buffers_make(s, job);
}

void spec_job_free(spec_state *s, spec_job *job)
{
    if (s->abandoned)
        return;
    for (uint32_t i = 0; i < SPEC_OPERANDS_MAX; i++)
        spec_buffer_free(s, &job->buffer[i]);
    spec_buffer_free(s, &job->workspace);
    if (job->op)
        s->plugin->op_destroy(job->op);
    if (job->forward) {
        spec_job_free(s, job->forward);
        free(job->forward);
    }
    *job = (spec_job){ .op = NULL };
}

/* Outputs that are overwritten keep the 0xff of a fresh buffer: NaN, so that reading them shows. */
static void contents_write(spec_job *job, uint32_t i)
{
    const spec_operand *o = &job->problem->operand[i];
    spec_buffer *b = &job->buffer[i];
    memset(b->image, 0xff, b->total);
    if (o->raw)
        memcpy(spec_buffer_contents(b), o->raw, o->count);
    else if (o->value && (o->direction != SPEC_OUT || o->accumulated))
        spec_encode(o->type, o->value, o->count, spec_buffer_contents(b));
}

static bool prepack(spec_state *s, spec_job *job, cek_queue *queue)
{
    uint32_t count = job->ref_count;
    cek_ref packed = { NULL, 0 };
    for (uint32_t i = 0; i < job->problem->operand_count; i++) {
        const spec_operand *o = &job->problem->operand[i];
        if (o->sizing == SPEC_SIZE_PREPACK)
            packed = job->refs[o->slot];
        if (o->plain && o->slot >= count)
            count = o->slot + 1;
    }
    return EXPECT_OK(s->plugin->op_prepack(queue, job->op, job->refs, count, packed));
}

void spec_job_operands(const spec_job *job, cek_ref refs[CEK_SLOT_MAX])
{
    const spec_problem *p = job->problem;
    memset(refs, 0, CEK_SLOT_MAX * sizeof *refs);
    for (uint32_t i = 0; i < p->operand_count; i++)
        if (!p->operand[i].plain)
            refs[p->operand[i].slot] = job->refs[p->operand[i].slot];
}

bool spec_job_run(spec_state *s, spec_job *job, cek_queue *queue)
{
    spec_problem *p = job->problem;
    cek_ref refs[CEK_SLOT_MAX];
    for (uint32_t i = 0; i < p->operand_count; i++) {
        if (!job->buffer[i].mem)
            continue;
        contents_write(job, i);
        if (!spec_buffer_upload(s, &job->buffer[i], queue))
            return false;
    }
    if (job->workspace.mem) {
        memset(job->workspace.image, 0xff, job->workspace.total);
        if (!spec_buffer_upload(s, &job->workspace, queue))
            return false;
    }
    if (p->desc.op.flags & CEK_OP_PREPACKED && !prepack(s, job, queue))
        return false;
    spec_job_operands(job, refs);
    cek_ref workspace = job->workspace.mem ? spec_buffer_ref(&job->workspace) : (cek_ref){ NULL, 0 };
    bool ok = EXPECT_OK(s->plugin->op_run(queue, job->op, refs, job->ref_count, workspace));
    for (uint32_t i = 0; ok && i < p->operand_count; i++)
        if (job->buffer[i].mem)
            ok = spec_buffer_download(s, &job->buffer[i], queue);
    if (ok && job->workspace.mem)
        ok = spec_buffer_download(s, &job->workspace, queue);
    return spec_sync(s, queue) && ok;
}

/* ---- comparing ---- */

static spec_buffer *place_of(spec_job *job, uint32_t i)
{
    const spec_operand *o = &job->problem->operand[i];
    for (uint32_t n = 0; o->alias && n < job->problem->operand_count; n++)
        if (job->problem->operand[n].slot == o->alias - 1)
            return &job->buffer[n];
    return &job->buffer[i];
}

/* A bound of 0: the value is exact, and so is the sign of a zero where operations have one order. */
static bool right(const spec_problem *p, const spec_operand *o, uint64_t i, double got)
{
    double expect = o->expect[i], bound = o->bound[i];
    if (isnan(expect))
        return isnan(got);
    if (isnan(got) && p->inexact && (p->fill == SPEC_NAN || p->fill == SPEC_EDGE))
        return true; /* a transform spreads a NaN over its tile */
    if (isinf(expect) && p->inexact && p->fill == SPEC_INFINITE)
        return isnan(got) || got == expect; /* and may make one of an infinity, which has no other bound */
    if (o->zeros && bound == 0 && expect == 0)
        return got == 0 && !signbit(got) == !signbit(expect);
    return got == expect || fabs(got - expect) <= bound || isinf(bound);
}

static bool values_verify(spec_state *s, spec_job *job, const spec_operand *o, const spec_buffer *b)
{
    uint64_t wrong = 0, first = 0, width = spec_type_bytes(o->type);
    uint8_t *bytes = spec_buffer_contents(b);
    if (s->options.tamper)
        s->options.tamper(s->options.user, &(spec_output){ .name = o->name,
                                                           .type = o->type,
                                                           .count = o->count,
                                                           .bytes = bytes,
                                                           .expect = o->expect,
                                                           .bound = o->bound,
                                                           .written = o->written });
    double *got = spec_calloc(s, o->count, sizeof *got);
    if (!got)
        return false;
    spec_decode(o->type, bytes, o->count, got);
    for (uint64_t i = 0; i < o->count; i++) {
        bool written = !o->written || o->written[i];
        bool ok = written ? right(job->problem, o, i, got[i])
                          : !memcmp(bytes + i * width, b->before + b->offset + i * width, width);
        if (!ok && !wrong++)
            first = i;
    }
    if (wrong && o->written && !o->written[first])
        spec_check_wrong(s, "%s[%llu] was written, though it is not part of the result; %llu wrong", o->name,
                         (unsigned long long)first, (unsigned long long)wrong);
    else if (wrong)
        spec_check_wrong_value(s, o->name, first, wrong, got[first], o->expect[first], o->bound[first]);
    free(got);
    return !wrong;
}

static bool unchanged_verify(spec_state *s, const spec_operand *o, const spec_buffer *b)
{
    if (!memcmp(b->image, b->before, b->total))
        return true;
    spec_check_wrong(s, "input %s was written", o->name);
    return false;
}

static bool shared_output(const spec_problem *p, uint32_t slot)
{
    for (uint32_t i = 0; i < p->operand_count; i++)
        if (p->operand[i].alias == slot + 1)
            return true;
    return false;
}

bool spec_job_verify(spec_state *s, spec_job *job)
{
    spec_problem *p = job->problem;
    for (uint32_t i = 0; i < p->operand_count; i++) {
        const spec_operand *o = &p->operand[i];
        const spec_buffer *b = place_of(job, i);
        if (!b->mem || shares_forward(job, o))
            continue;
        if (!spec_buffer_guards(s, b, o->name))
            return false;
        if (o->direction == SPEC_IN && !o->sizing && !shared_output(p, o->slot) && !unchanged_verify(s, o, b))
            return false;
        if (o->expect && !values_verify(s, job, o, b))
            return false;
        if (o->raw_expect && memcmp(spec_buffer_contents(b), o->raw_expect, o->count)) {
            spec_check_wrong(s, "%s does not hold what it should", o->name);
            return false;
        }
    }
    return !job->workspace.mem || spec_buffer_guards(s, &job->workspace, "workspace");
}
