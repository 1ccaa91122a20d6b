/* fallback.c - see fallback.h. */
#include "nn/program/fallback.h"

/* Of one instruction: where its operands lie on the other device, and as far into the host's side. On the stack of the
 * thread, which keeps it should the other device not return. */
typedef struct cargo {
    cek_ref there[CEK__SLOTS];
    uint64_t at[CEK__SLOTS], bytes[CEK__SLOTS];
} cargo;

static void cargo_place(const cek__fallback *f, const cek__program *program, const cek__instruction *in, cargo *c)
{
    uint64_t at = 0;

    *c = (cargo){ 0 };
    for (uint32_t slot = 0; slot < in->slots; slot++) {
        if (in->operand[slot] == CEK__NO_VALUE)
            continue;
        c->at[slot] = at;
        c->bytes[slot] = cek__operand_bytes(program, in, slot);
        c->there[slot] = (cek_ref){ f->room.mem, f->room.offset + at };
        at += cek__operand_room(program, in, slot);
    }
}

/* A result of which nothing was there before need not go down. Others may be written in part, or added to. */
static bool is_begun(const cek__program *program, int index, uint32_t slot)
{
    const cek__instruction *in = &program->instructions[index];
    const cek__value *value = &program->values[in->operand[slot]];

    return cek__operand_is_output(in, slot) && value->place == CEK__PLACE_ARENA && !value->of &&
           value->first == index && !(in->accumulate & CEK_BIT(slot));
}

static cek_status bring_down(const cek__fallback *f, const cek__program *program, int index, const cargo *c,
                             const cek_ref operands[CEK__SLOTS], cek_stream *stream)
{
    cek_status st = CEK_OK;

    for (uint32_t slot = 0; slot < CEK__SLOTS; slot++)
        if (c->bytes[slot] && !is_begun(program, index, slot))
            CEK_TRY(cek_stream_download(stream, f->host + c->at[slot], operands[slot], c->bytes[slot]));
    /* With that, what came up the last time has been read. */
    CEK_TRY(cek_stream_sync(stream, CEK_FOREVER));
    for (uint32_t slot = 0; slot < CEK__SLOTS; slot++)
        if (c->bytes[slot] && !is_begun(program, index, slot))
            CEK_TRY(cek_stream_upload(f->stream, c->there[slot], f->host + c->at[slot], c->bytes[slot]));
out:
    return st;
}

static cek_status bring_up(const cek__fallback *f, const cek__instruction *in, const cargo *c,
                           const cek_ref operands[CEK__SLOTS], cek_stream *stream)
{
    cek_status st = CEK_OK;

    for (uint32_t slot = 0; slot < CEK__SLOTS; slot++)
        if (c->bytes[slot] && cek__operand_is_output(in, slot))
            CEK_TRY(cek_stream_download(f->stream, f->host + c->at[slot], c->there[slot], c->bytes[slot]));
    CEK_TRY(cek_stream_sync(f->stream, CEK_FOREVER)); /* what has failed there is told here */
    for (uint32_t slot = 0; slot < CEK__SLOTS; slot++)
        if (c->bytes[slot] && cek__operand_is_output(in, slot))
            CEK_TRY(cek_stream_upload(stream, operands[slot], f->host + c->at[slot], c->bytes[slot]));
out:
    return st;
}

cek_status cek__fallback_run(const cek__fallback *f, const cek__program *program, int index, const cek_op *op,
                             const cek_ref operands[CEK__SLOTS], cek_stream *stream)
{
    cek_status st;
    const cek__instruction *in = &program->instructions[index];
    cek_ref workspace = { NULL, 0 };
    cargo c;

    cargo_place(f, program, in, &c);
    if (in->forms.workspace_bytes > 0)
        workspace = (cek_ref){ f->room.mem, f->room.offset + program->left_bytes };
    CEK_TRY(bring_down(f, program, index, &c, operands, stream));
    CEK_TRY(cek_stream_run(f->stream, op, c.there, in->slots, workspace));
    CEK_TRY(bring_up(f, in, &c, operands, stream));
    return CEK_OK;
out:
    return cek__fail_prefix(st, "%s, left to %s by %s", in->what, cek_device_name(cek_stream_device(f->stream)),
                            cek_device_name(program->device));
}
