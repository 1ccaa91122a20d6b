/* binding.c - operands resolved, stretches run and recorded (see binding.h). */
#include "nn/program/binding.h"

#include <stdlib.h>

#include "core/base/alloc.h"
#include "core/base/log.h"
#include "core/base/trace.h"

/* A stretch is recorded when it runs for the second time. Making a command buffer costs a device as much as many runs
 * of it gain (a CUDA graph's instantiation takes milliseconds), and a plan of the last, smaller batch or of a single
 * prediction may never run again. The first run also has every operand checked by op_run, whose text says more, and
 * lets a device's libraries load what they load at first use, which a recording may not. */
typedef struct recording {
    enum { NEVER_RAN, RAN_ONCE, RECORDED, NOT_RECORDABLE } state;
    cek_cmdbuf *commands;
    uint64_t tail; /* the serial of what is recorded behind the stretch; 0: nothing */
    bool left;     /* a part of it is another device's, which no recording of one has */
} recording;

struct cek__binding {
    const cek__program *program;
    const cek__stretch *stretches;
    size_t count;
    recording *recordings;       /* [count] */
    cek_ref (*refs)[CEK__SLOTS]; /* by instruction */
    cek_ref *weights;            /* by packing */
    cek_ref workspace;
    cek__fallback fallback;
};

/* ---- binding ---- */

static const char *place_name(cek__place place)
{
    static const char *const names[] = {
        [CEK__PLACE_ARENA] = "the arena",
        [CEK__PLACE_INPUT] = "the input",
        [CEK__PLACE_TARGET] = "the target",
        [CEK__PLACE_OUTPUT] = "the output",
        [CEK__PLACE_STEP] = "the step block",
        [CEK__PLACE_BATCH] = "the batch block",
        [CEK__PLACE_LOSS] = "the loss",
        [CEK__PLACE_CORRECT] = "the right answers",
        [CEK__PLACE_BUFFERS] = "the buffers",
        [CEK__PLACE_STATISTICS] = "the statistics",
        [CEK__PLACE_CONSTANTS] = "the constants",
        [CEK__PLACE_PARAMETER] = "the parameters",
        [CEK__PLACE_ROUNDED] = "the rounded parameters",
        [CEK__PLACE_GRADIENT] = "the gradients",
    };

    return names[place];
}

static cek_ref value_ref(const cek__value *v, const cek__places *places, uint64_t piece)
{
    const cek_ref *buckets = v->place == CEK__PLACE_PARAMETER ? places->parameters
                             : v->place == CEK__PLACE_ROUNDED ? places->rounded
                                                              : places->gradients;
    cek_ref ref = { NULL, 0 };

    if (v->place == CEK__PLACE_ARENA) {
        ref = places->arena[v->offset / piece];
        ref.offset += v->offset % piece;
        return ref;
    }
    if (v->place < CEK__PLACE_SINGLE)
        ref = places->single[v->place];
    else if (buckets)
        ref = buckets[v->bucket];
    ref.offset += v->offset;
    return ref;
}

static cek_status operands_resolve(cek__binding *b, const cek__places *places)
{
    const cek__program *program = b->program;

    for (int i = 0; i < program->count; i++) {
        const cek__instruction *in = &program->instructions[i];

        for (uint32_t slot = 0; slot < in->slots; slot++) {
            const cek__value *v = &program->values[in->operand[slot]];

            if (in->operand[slot] == CEK__NO_VALUE)
                continue;
            b->refs[i][slot] = value_ref(v, places, program->arena_piece);
            b->refs[i][slot].offset += in->shift[slot];
            if (!b->refs[i][slot].mem)
                return cek__fail(CEK_INVALID, "plan on %s: no memory is bound for %s", cek_device_name(program->device),
                                 place_name(v->place));
        }
    }
    b->workspace = places->workspace;
    if (program->workspace_bytes && !b->workspace.mem)
        return cek__fail(CEK_INVALID, "plan on %s: no memory is bound for the workspace",
                         cek_device_name(program->device));
    b->fallback = places->fallback;
    if (program->left_bytes && !b->fallback.room.mem)
        return cek__fail(CEK_INVALID, "plan on %s: no memory is bound for what it leaves to %s",
                         cek_device_name(program->device), cek_device_name(program->fallback));
    return CEK_OK;
}

static void weights_resolve(cek__binding *b, const cek__places *places)
{
    for (int i = 0; i < b->program->packing_count; i++)
        b->weights[i] = value_ref(&b->program->values[b->program->packings[i].weights], places,
                                  b->program->arena_piece);
}

static void left_find(cek__binding *b)
{
    for (size_t s = 0; s < b->count; s++)
        for (int i = b->stretches[s].begin; i < b->stretches[s].end; i++)
            b->recordings[s].left |= cek__program_left(b->program, &b->program->instructions[i]);
}

cek_status cek__binding_create(const cek__program *program, const cek__stretch *stretches, size_t count,
                               const cek__places *places, cek__binding **out)
{
    cek_status st;
    cek__binding *b = NULL;

    *out = NULL;
    CEK_TRY(cek__calloc(1, sizeof *b, &b));
    *b = (cek__binding){ .program = program, .stretches = stretches, .count = count };
    CEK_TRY(cek__calloc((size_t)program->count, sizeof *b->refs, &b->refs));
    CEK_TRY(cek__calloc(count, sizeof *b->recordings, &b->recordings));
    CEK_TRY(cek__calloc((size_t)program->packing_count, sizeof *b->weights, &b->weights));
    CEK_TRY(operands_resolve(b, places));
    weights_resolve(b, places);
    left_find(b);
    *out = b;
    return CEK_OK;
out:
    cek__binding_free(b);
    return st;
}

void cek__binding_free(cek__binding *b)
{
    if (!b)
        return;
    for (size_t i = 0; b->recordings && i < b->count; i++)
        cek_commands_free(b->program->device, b->recordings[i].commands);
    free(b->recordings);
    free(b->refs);
    free(b->weights);
    free(b);
}

/* ---- running ---- */

static const cek_op *instruction_op(const cek__instruction *in, const cek__stretch *s)
{
    return s->accumulate && in->forms.accumulating ? in->forms.accumulating : in->forms.op;
}

static cek_ref instruction_workspace(const cek__binding *b, const cek__instruction *in)
{
    return in->forms.workspace_bytes ? b->workspace : (cek_ref){ NULL, 0 };
}

static cek_status instructions_run(const cek__binding *b, cek_stream *stream, const cek__stretch *s, bool is_traced)
{
    cek_status st = CEK_OK;

    for (int i = s->begin; i < s->end; i++) {
        const cek__instruction *in = &b->program->instructions[i];

        if (is_traced)
            cek__trace_label(in->what);
        if (cek__program_left(b->program, in))
            CEK_TRY(cek__fallback_run(&b->fallback, b->program, i, instruction_op(in, s), b->refs[i], stream));
        else
            CEK_TRY(cek_stream_run(stream, instruction_op(in, s), b->refs[i], in->slots, instruction_workspace(b, in)));
    }
out:
    if (is_traced)
        cek__trace_label(NULL);
    return st;
}

cek_status cek__binding_pack(const cek__binding *b, cek_stream *stream)
{
    cek_status st = CEK_OK;

    for (int i = 0; i < b->program->packing_count; i++) {
        const int at = b->program->packings[i].instruction;
        const cek__instruction *in = &b->program->instructions[at];
        cek_ref operands[CEK__SLOTS] = { { NULL, 0 } };
        uint32_t plain, packed;

        if (!cek__weights_slots(in->kind, &plain, &packed))
            return cek__fail(CEK_INTERNAL, "%s: weights of an operation that has none are to be packed", in->what);
        operands[plain] = b->weights[i];
        CEK_TRY(cek_stream_prepack(stream, in->forms.op, operands, plain + 1, b->refs[at][packed]));
    }
out:
    return st;
}

static cek_status tail_run(cek_stream *stream, const cek__tail *tail)
{
    cek_status st = CEK_OK;

    for (uint32_t i = 0; i < tail->count; i++) {
        const cek_cmd *c = &tail->cmds[i];

        switch (c->kind) {
        case CEK_CMD_RUN: CEK_TRY(cek_stream_run(stream, c->op, c->operands, c->operand_count, c->workspace)); break;
        case CEK_CMD_COPY: CEK_TRY(cek_stream_copy(stream, c->dst, stream, c->src, c->bytes)); break;
        default: CEK_TRY(cek_stream_fill(stream, c->dst, c->pattern, c->pattern_bytes, c->bytes)); break;
        }
    }
out:
    return st;
}

static cek_status commands_make(const cek__binding *b, const cek__stretch *s, const cek__tail *tail, cek_cmdbuf **out)
{
    cek_status st;
    cek_cmd *cmds = NULL;
    uint32_t count = 0;

    CEK_TRY(cek__calloc((size_t)(s->end - s->begin) + tail->count, sizeof *cmds, &cmds));
    for (int i = s->begin; i < s->end; i++) {
        const cek__instruction *in = &b->program->instructions[i];

        cmds[count++] = (cek_cmd){ .kind = CEK_CMD_RUN,
                                   .op = instruction_op(in, s),
                                   .operands = b->refs[i],
                                   .operand_count = in->slots,
                                   .workspace = instruction_workspace(b, in) };
    }
    for (uint32_t i = 0; i < tail->count; i++)
        cmds[count++] = tail->cmds[i];
    st = cek_commands_make(b->program->device, cmds, count, out);
out:
    free(cmds);
    return st;
}

/* Leaves the recording RECORDED; or NOT_RECORDABLE, where the device has no command buffers or none for this, or there
 * is no memory for it: that costs time, not the step. */
static cek_status record(const cek__binding *b, const cek__stretch *s, const cek__tail *tail, recording *r)
{
    const cek_status st = commands_make(b, s, tail, &r->commands);

    if (st == CEK_OUT_OF_MEMORY)
        cek__log(CEK_LOG_WARN, "%s: runs a part of the model operation by operation: %s",
                 cek_device_name(b->program->device), cek_error_text());
    else if (st != CEK_OK && st != CEK_UNSUPPORTED)
        return st;
    r->state = st == CEK_OK ? RECORDED : NOT_RECORDABLE;
    return CEK_OK;
}

cek_status cek__binding_run_with(cek__binding *b, cek_stream *stream, size_t stretch, const cek__tail *tail)
{
    cek_status st;
    const cek__stretch *s = &b->stretches[stretch];
    recording *r = &b->recordings[stretch];

    if (cek_device_trace(b->program->device) != NULL) {
        CEK_TRY(instructions_run(b, stream, s, true));
        return tail_run(stream, tail);
    }
    if (r->tail != tail->serial) { /* what lay behind it may be gone */
        cek_commands_free(b->program->device, r->commands);
        *r = (recording){ .tail = tail->serial, .left = r->left };
    }
    if (r->state == RAN_ONCE && !r->left)
        CEK_TRY(record(b, s, tail, r));
    if (r->state == RECORDED)
        return cek_stream_run_commands(stream, r->commands);
    CEK_TRY(instructions_run(b, stream, s, false));
    CEK_TRY(tail_run(stream, tail));
    if (r->state == NEVER_RAN)
        r->state = RAN_ONCE;
out:
    return st;
}

cek_status cek__binding_run(cek__binding *b, cek_stream *stream, size_t stretch)
{
    return cek__binding_run_with(b, stream, stretch, &(cek__tail){ 0 });
}

bool cek__binding_is_refused(const cek__binding *b, size_t stretch)
{
    return b->recordings[stretch].state == NOT_RECORDABLE || b->recordings[stretch].left;
}
