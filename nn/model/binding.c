/* binding.c - operands resolved, stretches run and recorded (see binding.h). */
#include "nn/model/binding.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"

/* A stretch is recorded when it runs for the second time. Making a command buffer costs a device as much as many runs
 * of it gain (a CUDA graph's instantiation takes milliseconds), and a plan of the last, smaller batch or of a single
 * prediction may never run again. The first run also has every operand checked by op_run, whose text says more, and
 * lets a device's libraries load what they load at first use, which a recording may not. */
typedef struct recording {
    enum { NEVER_RAN, RAN_ONCE, RECORDED, NOT_RECORDABLE } state;
    cek_cmdbuf *cmdbuf;
} recording;

struct cek__binding {
    const cek__program *program;
    const cek__stretch *stretches;
    size_t count;
    recording *recordings;       /* [count] */
    cek_ref (*refs)[CEK__SLOTS]; /* by instruction */
    cek_ref workspace;
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
        [CEK__PLACE_PARAMETER] = "the parameters",
        [CEK__PLACE_GRADIENT] = "the gradients",
    };

    return names[place];
}

static cek_ref value_ref(const cek__value *v, const cek__places *places)
{
    const cek_ref *buckets = v->place == CEK__PLACE_PARAMETER ? places->parameters : places->gradients;
    cek_ref ref = { NULL, 0 };

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
            b->refs[i][slot] = value_ref(v, places);
            if (!b->refs[i][slot].mem)
                return cek__fail(CEK_INVALID, "plan on %s: no memory is bound for %s", program->device_name,
                                 place_name(v->place));
        }
    }
    b->workspace = places->workspace;
    if (program->workspace_bytes && !b->workspace.mem)
        return cek__fail(CEK_INVALID, "plan on %s: no memory is bound for the workspace", program->device_name);
    return CEK_OK;
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
    CEK_TRY(operands_resolve(b, places));
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
        if (b->recordings[i].cmdbuf)
            b->program->plugin->cmdbuf_destroy(b->recordings[i].cmdbuf);
    free(b->recordings);
    free(b->refs);
    free(b);
}

/* ---- running ---- */

static const cek_op *instruction_op(const cek__instruction *in, const cek__stretch *s)
{
    return s->accumulate && in->accumulating ? in->accumulating : in->op;
}

static cek_ref instruction_workspace(const cek__binding *b, const cek__instruction *in)
{
    return in->workspace_bytes ? b->workspace : (cek_ref){ NULL, 0 };
}

static cek_status instructions_run(const cek__binding *b, cek_queue *queue, const cek__stretch *s)
{
    const cek__program *program = b->program;

    for (int i = s->begin; i < s->end; i++) {
        const cek__instruction *in = &program->instructions[i];
        cek_status st = program->plugin->op_run(queue, instruction_op(in, s), b->refs[i], in->slots,
                                                instruction_workspace(b, in));

        if (st != CEK_OK)
            return cek__fail_prefix(st, "%s", program->device_name);
    }
    return CEK_OK;
}

static cek_status cmdbuf_create(const cek__binding *b, const cek_cmd *cmds, uint32_t count, cek_cmdbuf **out)
{
    const cek__program *program = b->program;
    char before[CEK__ERROR_TEXT_MAX];
    cek_status st;

    *out = NULL;
    if (!program->plugin->cmdbuf_create)
        return CEK_UNSUPPORTED;
    strcpy(before, cek_error_text());
    st = program->plugin->cmdbuf_create(program->dev, cmds, count, sizeof *cmds, out);
    if (st == CEK_OK && !*out)
        return cek__fail(CEK_BAD_PLUGIN, "%s: cmdbuf_create succeeds without a command buffer", program->device_name);
    if (st == CEK_OK)
        return CEK_OK;
    if (st == CEK_UNSUPPORTED)
        return cek__fail(st, "%s", before);    /* no failure of ours: no later one may seem to have this reason */
    if (strcmp(before, cek_error_text()) == 0) /* the plugin gave no reason; an older failure's is none */
        cek__fail(st, "cmdbuf_create: %s", cek__status_text(st));
    return cek__fail_prefix(st, "%s", program->device_name);
}

/* Leaves the recording RECORDED; or NOT_RECORDABLE, where the device has no command buffers or none for this. */
static cek_status record(const cek__binding *b, const cek__stretch *s, recording *r)
{
    cek_status st;
    cek_cmd *cmds = NULL;
    uint32_t count = 0;

    CEK_TRY(cek__calloc((size_t)(s->end - s->begin), sizeof *cmds, &cmds));
    for (int i = s->begin; i < s->end; i++) {
        const cek__instruction *in = &b->program->instructions[i];

        cmds[count++] = (cek_cmd){ .kind = CEK_CMD_RUN,
                                   .op = instruction_op(in, s),
                                   .operands = b->refs[i],
                                   .operand_count = in->slots,
                                   .workspace = instruction_workspace(b, in) };
    }
    st = cmdbuf_create(b, cmds, count, &r->cmdbuf);
    if (st == CEK_OK || st == CEK_UNSUPPORTED) {
        r->state = st == CEK_OK ? RECORDED : NOT_RECORDABLE;
        st = CEK_OK;
    }
out:
    free(cmds);
    return st;
}

cek_status cek__binding_run(cek__binding *b, cek_queue *queue, size_t stretch)
{
    cek_status st;
    const cek__stretch *s = &b->stretches[stretch];
    recording *r = &b->recordings[stretch];

    if (r->state == RAN_ONCE)
        CEK_TRY(record(b, s, r));
    if (r->state == RECORDED) {
        st = b->program->plugin->cmdbuf_run(queue, r->cmdbuf);
        return st == CEK_OK ? st : cek__fail_prefix(st, "%s", b->program->device_name);
    }
    CEK_TRY(instructions_run(b, queue, s));
    if (r->state == NEVER_RAN)
        r->state = RAN_ONCE;
out:
    return st;
}
