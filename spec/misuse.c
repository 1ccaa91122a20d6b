/* misuse.c - what every operation must refuse, tried on a typical case of its kind: operand sets,
 * flags, sizes, places.
 *
 * After each refusal the queue works and the operation still computes: nothing was enqueued. */
#include <stdlib.h>
#include <string.h>

#include "spec/check.h"

void spec_refused(spec_state *s, const cek_op_desc *desc, cek_status want, const char *what)
{
    cek_op *op = (cek_op *)s;
    cek_status st = s->plugin->op_create(s->dev, desc, NULL, &op);
    if (st == CEK_OUT_OF_MEMORY)
        spec_check_starved(s, "op_create with %s answered %s", what, spec_status_name(st));
    else if (st != want)
        spec_check_wrong(s, "op_create with %s answered %s, not %s", what, spec_status_name(st),
                         spec_status_name(want));
    else if (op)
        spec_check_wrong(s, "op_create with %s left an operation behind", what);
    if (st == CEK_OK && op)
        s->plugin->op_destroy(op);
}

/* The head of the descriptor. */
static void head_refusals(spec_state *s, const spec_problem *p)
{
    spec_problem *q = spec_calloc(s, 1, sizeof *q);
    if (!q)
        return;
#define TRY(want, what, change) (*q = *p, (change), spec_refused(s, &q->desc.op, want, what))
    for (uint32_t bit = 2; bit < 32; bit++)
        TRY(CEK_UNSUPPORTED, "an unknown flag", q->desc.op.flags |= 1u << bit);
    TRY(CEK_UNSUPPORTED, "an unknown math mode", q->desc.op.math = 77);
    TRY(CEK_UNSUPPORTED, "a reserved field", q->desc.op.reserved = 1);
    TRY(CEK_UNSUPPORTED, "an unknown kind", q->desc.op.kind = 999);
    TRY(CEK_UNSUPPORTED, "an extra struct", q->desc.op.extra = (const cek_op_extra *)p);
    TRY(CEK_UNSUPPORTED, "an unknown slot", q->desc.op.operands |= CEK_BIT(40));
    TRY(CEK_UNSUPPORTED, "an unknown slot that accumulates", q->desc.op.accumulate |= CEK_BIT(40));
    TRY(CEK_INVALID, "a size that is too small", q->desc.op.size -= 8);
    TRY(CEK_INVALID, "a size of 0", q->desc.op.size = 0);
    TRY(CEK_INVALID, "an alignment that is no power of two", q->desc.op.align = 24);
    TRY(CEK_INVALID, "no operands", q->desc.op.operands = 0);
    for (uint32_t i = 0; i < p->operand_count; i++) {
        uint32_t slot = p->operand[i].slot;
        if (!spec_slot_optional(p->desc.op.kind, slot) || p->desc.op.kind == CEK_OP_POINTWISE)
            TRY(CEK_INVALID, "a required operand left out", q->desc.op.operands &= ~CEK_BIT(slot));
        if (!(p->operand[i].direction & SPEC_OUT) || !spec_slot_accumulates(p->desc.op.kind, slot))
            TRY(CEK_INVALID, "accumulation where there is none", q->desc.op.accumulate |= CEK_BIT(slot));
    }
    if (p->desc.op.kind == CEK_OP_GEMM || p->desc.op.kind == CEK_OP_CONV_FORWARD) {
        cek_epilogue unsized = { .size = 0 }, unknown = { .size = sizeof unknown, .activation = 99 },
                     reserved = { .size = sizeof reserved, .reserved = 1 };
        TRY(CEK_INVALID, "an epilogue of size 0", q->desc.op.epilogue = &unsized);
        TRY(CEK_UNSUPPORTED, "an unknown activation", q->desc.op.epilogue = &unknown);
        TRY(CEK_UNSUPPORTED, "a reserved field of an epilogue", q->desc.op.epilogue = &reserved);
    }
#undef TRY
    free(q);
}

/* A longer descriptor of a later version: fine while it says nothing new. */
static void grown(spec_state *s, const spec_problem *p)
{
    uint32_t size = p->desc.op.size;
    uint8_t *longer = spec_calloc(s, 1, size + 16);
    cek_op *op = NULL;
    if (!longer)
        return;
    memcpy(longer, &p->desc, size);
    ((cek_op_desc *)longer)->size = size + 16;
    if (EXPECT_OK(s->plugin->op_create(s->dev, (cek_op_desc *)longer, NULL, &op)))
        s->plugin->op_destroy(op);
    longer[size + 9] = 1;
    spec_refused(s, (cek_op_desc *)longer, CEK_UNSUPPORTED, "a new field");
    free(longer);
}

/* Elements of arrays of a later version; and arrays without elements, whose element size says nothing. */
static void elements_grown(spec_state *s)
{
    struct {
        cek_pointwise_input known;
        uint64_t later;
    } inputs[2] = { { .known = { .type = CEK_F32, .strides = { 1 } } },
                    { .known = { .type = CEK_F32, .strides = { 1 } } } };
    struct {
        cek_pointwise_instruction known;
        uint64_t later;
    } instructions[2] = { { .known = { .code = CEK_PW_ADD, .b = 1 } }, { .known = { .code = CEK_PW_NEG, .a = 2 } } };
    cek_pointwise_desc desc = {
        .op = { .size = sizeof desc,
                .kind = CEK_OP_POINTWISE,
                .operands = CEK_BIT(CEK_POINTWISE_IN0) | CEK_BIT(CEK_POINTWISE_IN1) | CEK_BIT(CEK_POINTWISE_OUT) },
        .rank = 1,
        .out_type = CEK_F32,
        .shape = { 7 },
        .out_strides = { 1 },
        .inputs = &inputs[0].known,
        .input_count = 2,
        .input_size = sizeof inputs[0],
        .instructions = &instructions[0].known,
        .instruction_count = 2,
        .instruction_size = sizeof instructions[0],
    };
    cek_op *op = NULL;
    cek_status st = s->plugin->op_create(s->dev, &desc.op, NULL, &op);
    s->unsupported = st == CEK_UNSUPPORTED; /* which a profile without operations may answer */
    if (s->unsupported || !spec_expect(s, "op_create", st, CEK_OK, "%s", "with elements of a newer host"))
        return;
    s->plugin->op_destroy(op);
    inputs[1].later = 1;
    spec_refused(s, &desc.op, CEK_UNSUPPORTED, "a new field of an input");
    inputs[1].later = 0;
    instructions[1].later = 1;
    spec_refused(s, &desc.op, CEK_UNSUPPORTED, "a new field of an instruction");
    desc.instructions = NULL;
    desc.instruction_count = desc.instruction_size = 0;
    if (EXPECT_OK(s->plugin->op_create(s->dev, &desc.op, NULL, &op)))
        s->plugin->op_destroy(op);
}

static void ranges_grown(spec_state *s, spec_job *job)
{
    struct {
        cek_param_range known;
        uint64_t later;
    } ranges[2] = { { .known = { .begin = 0, .end = 3 } }, { .known = { .begin = 3, .end = 7 } } };
    cek_optimizer_desc desc = job->problem->desc.optimizer;
    cek_op *op = NULL;
    desc.ranges = &ranges[0].known;
    desc.range_count = 2;
    desc.range_size = sizeof ranges[0];
    if (EXPECT_OK(s->plugin->op_create(s->dev, &desc.op, NULL, &op)))
        s->plugin->op_destroy(op);
    ranges[1].later = 1;
    spec_refused(s, &desc.op, CEK_UNSUPPORTED, "a new field of a range");
}

/* Runs that must be refused. */
static void run_refusals(spec_state *s, spec_job *job)
{
    const cek_plugin *p = s->plugin;
    uint32_t n = job->ref_count, first = job->problem->operand[0].slot;
    cek_ref workspace = job->workspace.mem ? spec_buffer_ref(&job->workspace) : (cek_ref){ NULL, 0 },
            none = { NULL, 0 };
    cek_ref refs[CEK_SLOT_MAX];
#define TRY(count, place, change, ...)               \
    (memcpy(refs, job->refs, sizeof refs), (change), \
     EXPECT(CEK_INVALID, p->op_run(s->queue, job->op, refs, count, place), __VA_ARGS__))
    for (uint32_t i = 0; i < job->problem->operand_count; i++) {
        const spec_operand *o = &job->problem->operand[i];
        const spec_buffer *b = &job->buffer[i];
        TRY(n, workspace, refs[o->slot] = none, "without %s", o->name);
        if (!b->mem)
            continue;
        TRY(n, workspace, refs[o->slot].offset = b->total - b->total % CEK_ALIGNMENT + CEK_ALIGNMENT,
            "with %s behind its memory", o->name);
        TRY(n, workspace, refs[o->slot].offset = UINT64_MAX - UINT64_MAX % CEK_ALIGNMENT,
            "with %s at the end of all offsets", o->name);
        if (b->bytes > 1) {
            uint64_t last = (b->total - 1) / CEK_ALIGNMENT * CEK_ALIGNMENT;
            if (last + b->bytes > b->total)
                TRY(n, workspace, refs[o->slot].offset = last, "with %s ending behind its memory", o->name);
        }
        TRY(n, workspace, refs[o->slot].offset += 1, "with %s at an offset that is not aligned", o->name);
        TRY(n, workspace, refs[o->slot].offset += CEK_ALIGNMENT / 2, "with %s half-way between multiples of 256",
            o->name);
    }
    TRY(n - 1, workspace, (void)0, "with fewer operands than the mask covers");
    for (uint32_t slot = 0; slot < n; slot++) {
        if (!(job->problem->desc.op.operands & CEK_BIT(slot))) {
            TRY(n, workspace, refs[slot] = refs[first], "with an operand that is not in the mask");
            break;
        }
    }
    EXPECT_OK(p->op_run(s->queue, job->op, job->refs, n + 3, workspace)); /* of which the last are {NULL, 0} */
    TRY(n + 3, workspace, refs[n + 2] = refs[first], "with an operand behind those of the mask");
    if (job->workspace.mem) {
        TRY(n, none, (void)0, "without the workspace");
        for (uint32_t i = 0; i < job->problem->operand_count; i++)
            if (job->buffer[i].mem && job->buffer[i].bytes <= job->workspace.bytes + SPEC_GUARD)
                TRY(n, workspace, refs[job->problem->operand[i].slot] = workspace, "with %s in the workspace",
                    job->problem->operand[i].name);
        TRY(n, ((cek_ref){ workspace.mem, workspace.offset + CEK_ALIGNMENT / 2 }), (void)0,
            "with a workspace that is not aligned");
        TRY(n,
            ((cek_ref){ workspace.mem,
                        workspace.offset + CEK_ALIGNMENT * ((job->workspace.bytes + 512) / CEK_ALIGNMENT) }),
            (void)0, "with a workspace that ends behind its memory");
    }
#undef TRY
}

/* An output in the place of an input, where the table does not allow that. */
static void overlap_refusals(spec_state *s, spec_job *job)
{
    spec_problem *p = job->problem;
    cek_ref workspace = job->workspace.mem ? spec_buffer_ref(&job->workspace) : (cek_ref){ NULL, 0 };
    for (uint32_t o = 0; o < p->operand_count; o++) {
        for (uint32_t i = 0; i < p->operand_count; i++) {
            const spec_operand *out = &p->operand[o], *in = &p->operand[i];
            /* The input's memory must hold the output, or the refusal could be for the bounds. */
            if (!(out->direction & SPEC_OUT) || i == o || out->alias || in->alias || !job->buffer[i].mem ||
                !job->buffer[o].mem || job->buffer[o].bytes > job->buffer[i].bytes ||
                spec_slot_aliases(p->desc.op.kind, out->slot) & CEK_BIT(in->slot))
                continue;
            cek_ref refs[CEK_SLOT_MAX];
            memcpy(refs, job->refs, sizeof refs);
            refs[out->slot] = refs[in->slot];
            EXPECT(CEK_INVALID, s->plugin->op_run(s->queue, job->op, refs, job->ref_count, workspace),
                   "with %s in the place of %s", out->name, in->name);
        }
    }
}

/* Two operands without gaps that share a byte and begin at different places; job of one input and one output. */
static void partial_overlap(spec_state *s, spec_job *job)
{
    const uint32_t in = job->problem->operand[0].slot, out = job->problem->operand[1].slot;
    cek_ref workspace = job->workspace.mem ? spec_buffer_ref(&job->workspace) : (cek_ref){ NULL, 0 };
    cek_ref refs[CEK_SLOT_MAX];
    memcpy(refs, job->refs, sizeof refs);
    refs[out] = refs[in];
    refs[out].offset += 4;
    EXPECT(CEK_INVALID, s->plugin->op_run(s->queue, job->op, refs, job->ref_count, workspace),
           "with its output one element behind its input");
    refs[out].offset -= 8;
    EXPECT(CEK_INVALID, s->plugin->op_run(s->queue, job->op, refs, job->ref_count, workspace),
           "with its output one element in front of its input");
}

/* The same place, but not the same elements in it. */
static void other_view(spec_state *s, spec_job *job)
{
    cek_ref workspace = job->workspace.mem ? spec_buffer_ref(&job->workspace) : (cek_ref){ NULL, 0 };
    cek_ref refs[CEK_SLOT_MAX];
    memcpy(refs, job->refs, sizeof refs);
    refs[CEK_POINTWISE_OUT] = refs[CEK_POINTWISE_IN0];
    EXPECT(CEK_INVALID, s->plugin->op_run(s->queue, job->op, refs, job->ref_count, workspace),
           "with OUT in the place of an input of another type or other strides");
}

/* The left half of a matrix and its right half, as input and output: in each other's gaps, without an element in
 * common.
 */
static void interlocked(spec_state *s)
{
    enum { ROWS = 4, COLUMNS = 3, BYTES = ROWS * 2 * COLUMNS * 4 };
    const cek_pointwise_input input = { .type = CEK_F32, .strides = { 2 * COLUMNS, 1 } };
    const cek_pointwise_instruction negate = { .code = CEK_PW_NEG };
    const cek_pointwise_desc desc = {
        .op = { .size = sizeof desc,
                .kind = CEK_OP_POINTWISE,
                .operands = CEK_BIT(CEK_POINTWISE_IN0) | CEK_BIT(CEK_POINTWISE_OUT),
                .align = 4 },
        .rank = 2,
        .out_type = CEK_F32,
        .shape = { ROWS, COLUMNS },
        .out_strides = { 2 * COLUMNS, 1 },
        .inputs = &input,
        .input_count = 1,
        .input_size = sizeof input,
        .instructions = &negate,
        .instruction_count = 1,
        .instruction_size = sizeof negate,
    };
    cek_op_info info = { .size = sizeof info };
    cek_op *op = NULL;
    spec_buffer matrix = { 0 }, workspace = { 0 };
    cek_status st = s->plugin->op_create(s->dev, &desc.op, &info, &op);
    s->unsupported = st == CEK_UNSUPPORTED; /* which a profile without operations may answer */
    if (!s->unsupported && spec_expect(s, "op_create", st, CEK_OK, "%s", "") &&
        spec_buffer_make(s, BYTES, 0, &matrix) &&
        (!info.workspace_bytes || spec_buffer_make(s, info.workspace_bytes, 0, &workspace))) {
        float *at = (float *)(void *)spec_buffer_contents(&matrix);
        cek_ref refs[CEK_POINTWISE_OUT + 1] = {
            [CEK_POINTWISE_IN0] = spec_buffer_ref(&matrix), [CEK_POINTWISE_OUT] = spec_buffer_ref(&matrix)
        };
        refs[CEK_POINTWISE_OUT].offset += COLUMNS * 4;
        for (uint32_t i = 0; i < BYTES / 4; i++)
            at[i] = (float)(i + 1);
        if (spec_buffer_upload(s, &matrix, s->queue) &&
            EXPECT_OK(s->plugin->op_run(s->queue, op, refs, CEK_POINTWISE_OUT + 1,
                                        info.workspace_bytes ? spec_buffer_ref(&workspace) : (cek_ref){ NULL, 0 })) &&
            spec_buffer_download(s, &matrix, s->queue) && spec_sync(s, s->queue))
            for (uint32_t i = 0; i < BYTES / 4; i++)
                REQUIRE(at[i] == (i % (2 * COLUMNS) < COLUMNS ? (float)(i + 1) : -(float)(i + 1 - COLUMNS)),
                        "an operand may lie in the gaps of another");
    }
    spec_buffer_free(s, &workspace);
    spec_buffer_free(s, &matrix);
    if (op && !s->abandoned)
        s->plugin->op_destroy(op);
}

/* Of an operation whose operands need not be aligned at all: elements still lie at multiples of their size, and blocks
 * at those of CEK_ALIGNMENT. */
static void unaligned_refusals(spec_state *s, spec_job *job)
{
    cek_ref workspace = job->workspace.mem ? spec_buffer_ref(&job->workspace) : (cek_ref){ NULL, 0 };
    for (uint32_t i = 0; i < job->problem->operand_count; i++) {
        const spec_operand *o = &job->problem->operand[i];
        cek_ref refs[CEK_SLOT_MAX];
        memcpy(refs, job->refs, sizeof refs);
        refs[o->slot].offset += o->type ? spec_type_bytes(o->type) / 2 : 4;
        EXPECT(CEK_INVALID, s->plugin->op_run(s->queue, job->op, refs, job->ref_count, workspace),
               "with %s between the places of its elements", o->name);
    }
}

typedef void (*job_fn)(spec_state *s, spec_job *job);

static void head_check(spec_state *s, spec_job *job)
{
    head_refusals(s, job->problem);
}

static void shapes_check(spec_state *s, spec_job *job)
{
    spec_shapes_refused(s, job->problem);
}

/* A host that knows fewer fields, or more: the plugin writes what both know. */
static void info_check(spec_state *s, spec_job *job)
{
    struct {
        cek_op_info known;
        uint64_t later;
    } info = { .known.size = sizeof info, .later = 0 };
    cek_op *op = NULL;
    if (EXPECT_OK(s->plugin->op_create(s->dev, &job->problem->desc.op, &info.known, &op)))
        s->plugin->op_destroy(op);
    REQUIRE(info.known.size == sizeof info && info.later == 0,
            "op_create leaves info.size and what it does not know alone");
    REQUIRE(info.known.workspace_bytes == job->info.workspace_bytes, "workspace_bytes does not depend on who asks");
    REQUIRE(memchr(info.known.algorithm, 0, sizeof info.known.algorithm), "algorithm is a NUL-terminated text");
    info.known.size = 0;
    EXPECT(CEK_INVALID, s->plugin->op_create(s->dev, &job->problem->desc.op, &info.known, &op),
           "with an info of size 0");
    info.known.size = sizeof info.known - 8;
    EXPECT(CEK_INVALID, s->plugin->op_create(s->dev, &job->problem->desc.op, &info.known, &op),
           "with an info smaller than that of version 1.0");
    REQUIRE(!op, "what fails leaves its output NULL");
}

static void grown_check(spec_state *s, spec_job *job)
{
    grown(s, job->problem);
}

static void with_job(spec_state *s, const spec_kind *kind, const char *text, job_fn fn)
{
    spec_problem *p = spec_calloc(s, 1, sizeof *p);
    spec_job job = { 0 };
    bool inexact = false;
    if (!p)
        return;
    for (int attempt = 0; attempt < 2; attempt++) {
        spec_problem_init(p, kind->kind, CEK_F32, SPEC_REAL, inexact, 1);
        inexact = false;
        if (!kind->build(text, p))
            spec_check_unbuilt(s, p);
        else if (spec_job_make(s, p, &job, &inexact)) {
            fn(s, &job);
            if (!s->wrong && spec_job_run(s, &job, s->queue))
                spec_job_verify(s, &job);
        }
        spec_job_free(s, &job);
        spec_problem_free(p);
        if (!inexact)
            break;
    }
    free(p);
}

void spec_check_misuse(spec_state *s, const spec_kind *kind, bool required)
{
    static const struct {
        const char *name;
        job_fn fn;
    } checks[] = {
        { "refused descriptors", head_check },  { "refused shapes", shapes_check },
        { "info of a newer host", info_check }, { "a newer descriptor", grown_check },
        { "refused runs", run_refusals },       { "refused overlaps", overlap_refusals },
    };
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        if (spec_check_begin(s, kind->name, CEK_F32, required, "%s", checks[i].name)) {
            with_job(s, kind, kind->typical, checks[i].fn);
            spec_check_end(s);
        }
    }
    if (kind->kind == CEK_OP_REDUCE && spec_check_begin(s, kind->name, CEK_F32, required, "refused offsets")) {
        with_job(s, kind, "6x4:a0:sum:s1:v4:align1", unaligned_refusals);
        spec_check_end(s);
    }
    if ((kind->kind == CEK_OP_POINTWISE || kind->kind == CEK_OP_COPY) &&
        spec_check_begin(s, kind->name, CEK_F32, required, "operands that overlap in part")) {
        with_job(s, kind, kind->kind == CEK_OP_COPY ? "37:fromf32:align4" : "37/x0,neg:align4", partial_overlap);
        spec_check_end(s);
    }
    if (kind->kind == CEK_OP_POINTWISE &&
        spec_check_begin(s, kind->name, CEK_F32, required, "operands seen otherwise")) {
        with_job(s, kind, "5x7/x0,neg:x0~^", other_view);
        with_job(s, kind, "37/x0,neg:x0=i32", other_view);
        spec_check_end(s);
    }
    if (kind->kind == CEK_OP_GEMM && spec_check_begin(s, kind->name, CEK_F32, required, "two outputs in one place")) {
        with_job(s, kind, "10x84x64:ta:asum", overlap_refusals);
        spec_check_end(s);
    }
    if (kind->kind == CEK_OP_POINTWISE && spec_check_begin(s, kind->name, CEK_F32, required, "newer elements")) {
        elements_grown(s);
        spec_check_end(s);
    }
    if (kind->kind == CEK_OP_OPTIMIZER && spec_check_begin(s, kind->name, CEK_F32, required, "newer elements")) {
        with_job(s, kind, kind->typical, ranges_grown);
        spec_check_end(s);
    }
    if (kind->kind == CEK_OP_POINTWISE &&
        spec_check_begin(s, kind->name, CEK_F32, required, "operands in each other's gaps")) {
        interlocked(s);
        spec_check_end(s);
    }
}
