/* program.c - instructions, their lifetimes, the arena (see program.h). */
#include "nn/program/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "nn/program/arena.h"

/* What plugin.h's tables say about a slot. */
typedef struct slot_rule {
    bool output;
    uint64_t aliases; /* inputs whose place it may take */
} slot_rule;

enum { IS_in = false, IS_out = true, IS_inout = true };
#define RULE(KIND, SLOT, NUMBER, DIRECTION, PRESENCE, ACCUMULATE, ALIASES, SHAPE) \
    [CEK_OP_##KIND][NUMBER] = { IS_##DIRECTION, ALIASES },
static const slot_rule rules[][CEK__SLOTS] = { CEK_ALL_OPERANDS(RULE) };

cek_status cek__program_init(cek__program *program, cek_device *device, uint32_t math)
{
    int none;

    *program = (cek__program){ .device = device, .math = math, .arena_piece = UINT64_MAX };
    return cek__program_value(program, (cek__value){ 0 }, &none);
}

void cek__program_clear(cek__program *program)
{
    /* Backwards: an op that reads a reserve goes before the one that fills it. */
    for (int i = program->count; i-- > 0;)
        cek__forms_free(&program->instructions[i].forms);
    free(program->instructions);
    free(program->values);
    free(program->packings);
    *program = (cek__program){ 0 };
}

cek_status cek__program_value(cek__program *program, cek__value value, int *out)
{
    cek_status st;

    *out = CEK__NO_VALUE;
    if (program->value_count == program->value_capacity) {
        int capacity = program->value_capacity ? 2 * program->value_capacity : 64;

        CEK_TRY(cek__realloc_array((size_t)capacity, sizeof *program->values, &program->values));
        program->value_capacity = capacity;
    }
    value.storage = program->value_count;
    program->values[program->value_count] = value;
    *out = program->value_count++;
    return CEK_OK;
out:
    return st;
}

cek_status cek__program_within(cek__program *program, int of, uint64_t at, int *out)
{
    cek_status st = CEK_OK;
    cek__value value = program->values[of];

    *out = CEK__NO_VALUE;
    if (value.pieces)
        return cek__fail(CEK_UNSUPPORTED, "%s: reads part of weights that lie in pieces", program->where);
    value.of = value.of ? value.of : of;
    value.at += at;
    value.offset += at; /* of the arena: finish gives it */
    value.bytes -= at;
    CEK_TRY(cek__program_value(program, value, out));
out:
    return st;
}

/* ---- emitting ---- */

/* The instruction that fills the reserve which an operation reads; NULL: it reads none. */
static cek__instruction *filler_of(const cek__program *program, const cek_op_desc *desc)
{
    for (int i = program->count; desc->forward && i-- > 0;)
        if (program->instructions[i].forms.op == desc->forward)
            return &program->instructions[i];
    return NULL;
}

/* Its one reader was refused. */
static cek_status filler_leave(cek__program *program, cek__instruction *filler)
{
    cek_status st;
    cek__forms forms;

    CEK_TRY(cek__forms_make(program->fallback, &filler->filler.op, 0, &forms));
    cek__forms_free(&filler->forms);
    filler->forms = forms;
    program->values[filler->operand[CEK_POOL_FORWARD_RESERVE]].bytes = forms.reserve_bytes ? forms.reserve_bytes : 1;
out:
    return st;
}

/* The program's device has refused an operation, with the text that is there. */
static cek_status leave(cek__program *program, cek_op_desc *desc, uint64_t twice, cek__forms *out)
{
    cek_status st;
    char reason[CEK__ERROR_TEXT_MAX];
    cek__instruction *filler = filler_of(program, desc);

    snprintf(reason, sizeof reason, "%s", cek_error_text());
    if (filler) {
        if (!cek__program_left(program, filler))
            CEK_TRY(filler_leave(program, filler));
        desc->forward = filler->forms.op;
    }
    CEK_TRY(cek__forms_make(program->fallback, desc, twice, out));
    return CEK_OK;
out:
    return st == CEK_UNSUPPORTED ? cek__fail(st, "%s; nor can it be left: %s", reason, cek_error_text()) : st;
}

/* What falls apart where a device does not fuse it is no reason to leave it. */
static bool is_fused(const cek_op_desc *desc)
{
    return desc->epilogue && (desc->epilogue->activation || desc->epilogue->act_grad);
}

static cek_status forms_make(cek__program *program, cek_op_desc *desc, uint64_t twice, cek__forms *out)
{
    cek_status st;
    const cek__instruction *filler = filler_of(program, desc);
    const bool left = filler && cek__program_left(program, filler);

    st = cek__forms_make(left ? program->fallback : program->device, desc, twice, out);
    if (st == CEK_UNSUPPORTED && !left && program->fallback && !is_fused(desc))
        st = leave(program, desc, twice, out);
    return st != CEK_OK ? cek__fail_prefix(st, "%s, %s", program->where, cek__operation_name(desc->kind)) : CEK_OK;
}

/* Where an operand lies within another value its offset is a multiple of less. */
static uint32_t alignment(const cek__program *program, const int operands[CEK__SLOTS])
{
    uint64_t at = CEK_ALIGNMENT;

    for (uint32_t slot = 0; slot < CEK__SLOTS; slot++)
        at |= program->values[operands[slot]].at;
    return (at & -at) < CEK_ALIGNMENT ? (uint32_t)(at & -at) : 0;
}

/* An elementwise operation takes the place of an input of its own type and strides alone. */
static uint64_t apart_of(const cek_op_desc *desc)
{
    const cek_pointwise_desc *chain = (const cek_pointwise_desc *)desc;
    uint64_t apart = 0;

    for (uint32_t i = 0; desc->kind == CEK_OP_POINTWISE && i < chain->input_count; i++)
        if (chain->inputs[i].type != chain->out_type ||
            memcmp(chain->inputs[i].strides, chain->out_strides, chain->rank * sizeof *chain->out_strides) != 0)
            apart |= CEK_BIT(CEK_POINTWISE_IN0 + i);
    return apart;
}

/* What may be rounded or transformed is what is multiplied and added up; statistics and updates are not. */
static bool multiplies(uint32_t kind)
{
    return kind == CEK_OP_GEMM || kind == CEK_OP_CONV_FORWARD || kind == CEK_OP_CONV_BACKWARD_DATA ||
           kind == CEK_OP_CONV_BACKWARD_WEIGHTS;
}

bool cek__weights_slots(uint32_t kind, uint32_t *plain, uint32_t *packed)
{
    *plain = kind == CEK_OP_GEMM ? CEK_GEMM_B : CEK_CONV_FORWARD_W;
    *packed = kind == CEK_OP_GEMM ? CEK_GEMM_PACKED : CEK_CONV_FORWARD_PACKED;
    return kind == CEK_OP_GEMM || kind == CEK_OP_CONV_FORWARD;
}

/* What is there before samples come: the binder's, or given by one of those that run ahead. */
static bool is_there(const cek__program *program, int value)
{
    const cek__place place = program->values[value].place;

    value = program->values[value].of ? program->values[value].of : value;
    if (place != CEK__PLACE_ARENA)
        return place == CEK__PLACE_PARAMETER || place == CEK__PLACE_ROUNDED || place == CEK__PLACE_BUFFERS ||
               place == CEK__PLACE_CONSTANTS;
    for (int i = 0; i < program->ahead; i++)
        for (uint32_t slot = 0; slot < program->instructions[i].slots; slot++)
            if (program->instructions[i].operand[slot] == value)
                return true;
    return false;
}

static void weights_describe(const cek_op_desc *desc, uint64_t read[CEK__WEIGHTS_WORDS])
{
    if (desc->kind == CEK_OP_GEMM) {
        const cek_gemm_desc *d = (const cek_gemm_desc *)desc;
        const uint64_t gemm[CEK__WEIGHTS_WORDS] = { desc->kind,
                                                    d->b_type,
                                                    d->n,
                                                    d->k,
                                                    d->trans & CEK_GEMM_TRANS_B,
                                                    (uint64_t)d->ldb,
                                                    d->batch > 1 ? (uint64_t)d->stride_b : 0,
                                                    d->outer > 1 ? (uint64_t)d->outer_b : 0 };

        memcpy(read, gemm, sizeof gemm);
    } else {
        const cek_conv_desc *d = (const cek_conv_desc *)desc;
        const uint64_t conv[CEK__WEIGHTS_WORDS] = { desc->kind, d->w_type,    d->out_channels, d->in_channels,
                                                    d->groups,  d->kernel[0], d->kernel[1],    d->kernel[2] };

        memcpy(read, conv, sizeof conv);
    }
}

/* The same weights, taken for the same and packed for an instruction before that wants the same form of them;
 * CEK__NO_VALUE: there are none. */
static int packed_before(const cek__program *program, const cek__packing *like, const cek__forms *forms)
{
    for (int i = 0; i < program->packing_count && forms->prepack_layout; i++) {
        const cek__packing *p = &program->packings[i];
        const cek__forms *of = &program->instructions[p->instruction].forms;

        if (p->weights == like->weights && memcmp(p->read, like->read, sizeof p->read) == 0 &&
            of->prepack_layout == forms->prepack_layout && of->prepack_bytes == forms->prepack_bytes)
            return p->packed;
    }
    return CEK__NO_VALUE;
}

/* The operation with its weights packed, if there are such and the device makes it: *in reads them in another value. */
static cek_status packed_try(cek__program *program, cek_op_desc *desc, uint64_t twice, cek__instruction *in, bool *made)
{
    cek_status st = CEK_OK;
    const uint64_t operands = desc->operands;
    uint32_t plain, packed;
    cek__packing p = { .instruction = program->count };

    *made = false;
    if (!program->packs || program->is_ahead || !program->device || !cek__weights_slots(desc->kind, &plain, &packed) ||
        !is_there(program, in->operand[plain]))
        return CEK_OK;
    if (program->packing_count == program->packing_capacity) {
        int capacity = program->packing_capacity ? 2 * program->packing_capacity : 64;

        CEK_TRY(cek__realloc_array((size_t)capacity, sizeof *program->packings, &program->packings));
        program->packing_capacity = capacity;
    }
    desc->flags |= CEK_OP_PREPACKED;
    desc->operands = (operands & ~CEK_BIT(plain)) | CEK_BIT(packed);
    st = cek__forms_make(program->device, desc, twice, &in->forms);
    desc->flags &= ~(uint32_t)CEK_OP_PREPACKED;
    desc->operands = operands;
    if (st != CEK_OK)
        return st == CEK_UNSUPPORTED ? CEK_OK : st;
    p.weights = in->operand[plain];
    weights_describe(desc, p.read);
    p.packed = packed_before(program, &p, &in->forms);
    if (p.packed == CEK__NO_VALUE) {
        st = cek__program_value(program, (cek__value){ .place = CEK__PLACE_ARENA, .bytes = in->forms.prepack_bytes },
                                &p.packed);
        if (st != CEK_OK) {
            cek__forms_free(&in->forms);
            return st;
        }
        program->packings[program->packing_count++] = p;
    }
    in->operand[plain] = CEK__NO_VALUE;
    in->operand[packed] = p.packed;
    in->slots = in->slots > packed + 1 ? in->slots : packed + 1;
    *made = true;
out:
    return st;
}

static cek_status emit_one(cek__program *program, cek_op_desc *desc, const int operands[CEK__SLOTS],
                           const uint64_t shifts[CEK__SLOTS], uint64_t twice)
{
    cek_status st;
    cek__instruction in = { .kind = desc->kind, .accumulate = desc->accumulate, .apart = apart_of(desc) };
    bool made;

    snprintf(in.what, sizeof in.what, "%.*s", (int)sizeof in.what - 1, program->where);
    if (multiplies(desc->kind))
        desc->math = program->math;
    desc->operands = 0;
    desc->align = alignment(program, operands);
    for (uint32_t slot = 0; slot < CEK__SLOTS; slot++) {
        in.operand[slot] = operands[slot];
        in.shift[slot] = shifts[slot];
        if (operands[slot] == CEK__NO_VALUE)
            continue;
        desc->operands |= CEK_BIT(slot);
        in.slots = slot + 1;
    }
    if (program->count == program->capacity) {
        int capacity = program->capacity ? 2 * program->capacity : 64;

        CEK_TRY(cek__realloc_array((size_t)capacity, sizeof *program->instructions, &program->instructions));
        program->capacity = capacity;
    }
    CEK_TRY(packed_try(program, desc, twice, &in, &made));
    if (!made)
        CEK_TRY(forms_make(program, desc, twice, &in.forms));
    if (desc->kind == CEK_OP_POOL_FORWARD && in.operand[CEK_POOL_FORWARD_RESERVE]) {
        in.filler = *(const cek_pool_desc *)desc;
        program->values[in.operand[CEK_POOL_FORWARD_RESERVE]].bytes = in.forms.reserve_bytes ? in.forms.reserve_bytes
                                                                                             : 1;
    }
    program->instructions[program->count++] = in;
    if (program->is_ahead)
        program->ahead = program->count;
out:
    return st;
}

/* Weights in pieces of rows: by which dimension a product with them is cut. */
typedef enum cut {
    CUT_N, /* they are B transposed: each piece gives columns of C */
    CUT_K, /* they are B: each piece adds to C, and an act_grad is a factor of each sum */
    CUT_M  /* they are C: each piece is rows of it */
} cut;

/* One piece's part of a product: `rows` rows of the weights from row `first` on. */
static void product_narrow(cek_gemm_desc *desc, cut by, uint64_t first, uint64_t rows, uint64_t shifts[CEK__SLOTS])
{
    uint64_t a_bytes = cek_dtype_bytes(desc->a_type), c_bytes = cek_dtype_bytes(desc->c_type);
    uint64_t sum_bytes = desc->c_type == CEK_F64 ? 8 : 4; /* of biases and sums */
    bool a_by_row = by == CUT_M ? !(desc->trans & CEK_GEMM_TRANS_A) : desc->trans & CEK_GEMM_TRANS_A;

    *(by == CUT_N ? &desc->n : by == CUT_K ? &desc->k : &desc->m) = rows;
    if (by == CUT_N)
        shifts[CEK_GEMM_C] = shifts[CEK_GEMM_ACT_REF] = first * c_bytes;
    else
        shifts[CEK_GEMM_A] = first * a_bytes * (a_by_row ? (uint64_t)desc->lda : 1);
    shifts[by == CUT_N ? CEK_GEMM_BIAS : CEK_GEMM_A_SUM] = by == CUT_K ? 0 : first * sum_bytes;
}

static void emitted_drop(cek__program *program, int count)
{
    while (program->count > count)
        cek__forms_free(&program->instructions[--program->count].forms);
    while (program->packing_count > 0 && program->packings[program->packing_count - 1].instruction >= count)
        program->packing_count--;
}

/* The weights in `slot` are in pieces. The last comes first: backward finishes with its bucket before the others. */
static cek_status emit_pieces(cek__program *program, const cek_gemm_desc *whole, const int operands[CEK__SLOTS],
                              uint32_t slot, uint64_t twice)
{
    cek_status st;
    cut by = slot == CEK_GEMM_C ? CUT_M : whole->trans & CEK_GEMM_TRANS_B ? CUT_N : CUT_K;
    uint64_t row_bytes = slot == CEK_GEMM_C ? (uint64_t)whole->ldc * cek_dtype_bytes(whole->c_type)
                                            : (uint64_t)whole->ldb * cek_dtype_bytes(whole->b_type);
    uint64_t first = by == CUT_N ? whole->n : by == CUT_K ? whole->k : whole->m;
    int weights = operands[slot], before = program->count;

    if (by == CUT_K && whole->op.epilogue && whole->op.epilogue->activation)
        CEK_FAIL(CEK_UNSUPPORTED, "%s: sums over pieces of weights take no activation", program->where);
    for (int piece = program->values[weights].pieces; piece > 0; piece--) {
        cek_gemm_desc desc = *whole;
        uint64_t rows = program->values[weights + piece].bytes / row_bytes, shifts[CEK__SLOTS] = { 0 };
        int these[CEK__SLOTS];

        memcpy(these, operands, sizeof these);
        these[slot] = weights + piece;
        first -= rows;
        product_narrow(&desc, by, first, rows, shifts);
        if (by == CUT_K && program->count > before) { /* the first has the bias */
            desc.op.accumulate |= CEK_BIT(CEK_GEMM_C);
            these[CEK_GEMM_BIAS] = CEK__NO_VALUE;
        }
        CEK_TRY(emit_one(program, &desc.op, these, shifts, twice));
    }
    return CEK_OK;
out:
    emitted_drop(program, before);
    return st;
}

cek_status cek__program_emit(cek__program *program, cek_op_desc *desc, const int operands[CEK__SLOTS], uint64_t twice)
{
    static const uint64_t no_shifts[CEK__SLOTS];

    for (uint32_t slot = 0; slot < CEK__SLOTS; slot++) {
        if (!program->values[operands[slot]].pieces)
            continue;
        if (desc->kind == CEK_OP_GEMM)
            return emit_pieces(program, (const cek_gemm_desc *)desc, operands, slot, twice);
        return cek__fail(CEK_UNSUPPORTED, "%s: reads weights that lie in pieces", program->where);
    }
    return emit_one(program, desc, operands, no_shifts, twice);
}

/* ---- memory ---- */

bool cek__operand_is_output(const cek__instruction *in, uint32_t slot)
{
    return rules[in->kind][slot].output;
}

static void lifetimes(cek__program *program)
{
    for (int v = 0; v < program->value_count; v++)
        program->values[v].first = program->values[v].last = -1;
    for (int i = 0; i < program->count; i++) {
        const cek__instruction *in = &program->instructions[i];

        for (uint32_t slot = 0; slot < in->slots; slot++) {
            cek__value *v = &program->values[in->operand[slot]];

            v = v->of ? &program->values[v->of] : v;
            if (v->first < 0)
                v->first = i;
            v->last = i;
        }
    }
    for (int v = 1; v < program->value_count; v++)
        if (program->values[v].first >= 0 && program->values[v].first < program->ahead &&
            program->values[v].last >= program->ahead)
            program->values[v].last = program->count;
    for (int i = 0; i < program->packing_count; i++) {
        const cek__packing *p = &program->packings[i];
        cek__value *weights = &program->values[p->weights], *packed = &program->values[p->packed];

        weights = weights->of ? &program->values[weights->of] : weights;
        if (weights->last < program->ahead) /* they are packed behind all that runs ahead */
            weights->last = program->ahead;
        packed->first = 0;
        packed->last = program->count;
    }
}

/* Whether an instruction reads or writes part of what has that storage, at strides of its own. */
static bool uses_within(const cek__program *program, const cek__instruction *in, int storage)
{
    bool uses = false;

    for (uint32_t slot = 0; slot < in->slots; slot++) {
        int of = program->values[in->operand[slot]].of;

        uses |= of && program->values[of].storage == storage;
    }
    return uses;
}

/* Lets the output in `slot` of instruction i take the place of an input that is read there for the last time. */
static void replace_input(cek__program *program, int i, uint32_t slot)
{
    const cek__instruction *in = &program->instructions[i];
    const uint64_t aliases = rules[in->kind][slot].aliases & ~in->apart;
    cek__value *output = &program->values[in->operand[slot]];

    if (output->place != CEK__PLACE_ARENA || output->of || output->first != i || in->accumulate & CEK_BIT(slot))
        return;
    for (uint32_t k = 0; k < in->slots; k++) {
        int storage = program->values[in->operand[k]].storage;
        cek__value *input = &program->values[storage];

        if (!(aliases & CEK_BIT(k)) || storage == CEK__NO_VALUE || input->place != CEK__PLACE_ARENA ||
            input->last != i || input->first == i || input->bytes != output->bytes || uses_within(program, in, storage))
            continue;
        output->storage = storage;
        input->last = output->last;
        return;
    }
}

static cek_status pieces_check(const cek__program *program)
{
    for (int v = 1; v < program->value_count; v++)
        if (program->values[v].place == CEK__PLACE_ARENA && program->values[v].bytes > program->arena_piece)
            return cek__fail(CEK_OUT_OF_MEMORY, "%s: one activation needs %llu bytes, and it gives %llu at once",
                             cek_device_name(program->device), (unsigned long long)program->values[v].bytes,
                             (unsigned long long)program->arena_piece);
    return CEK_OK;
}

static cek_status arena_assign(cek__program *program)
{
    cek_status st;
    cek__interval *intervals = NULL;
    int *owner = NULL;
    size_t count = 0;

    CEK_TRY(cek__alloc_array((size_t)program->value_count, sizeof *intervals, &intervals));
    CEK_TRY(cek__alloc_array((size_t)program->value_count, sizeof *owner, &owner));
    for (int v = 1; v < program->value_count; v++) {
        const cek__value *value = &program->values[v];

        if (value->place != CEK__PLACE_ARENA || value->storage != v || value->first < 0)
            continue;
        owner[count] = v;
        intervals[count++] = (cek__interval){ .bytes = value->bytes, .first = value->first, .last = value->last };
    }
    CEK_TRY(pieces_check(program));
    CEK_TRY(cek__arena_place(intervals, count, program->arena_piece, &program->arena_bytes));
    for (size_t i = 0; i < count; i++)
        program->values[owner[i]].offset = intervals[i].offset;
    for (int v = 1; v < program->value_count; v++) {
        cek__value *value = &program->values[v];

        if (value->place == CEK__PLACE_ARENA)
            value->offset = program->values[program->values[value->of ? value->of : v].storage].offset + value->at;
    }
    st = CEK_OK;
out:
    free(intervals);
    free(owner);
    return st;
}

static void workspace_count(cek__program *program, const cek__instruction *in)
{
    bool left = cek__program_left(program, in);
    uint64_t *workspace = left ? &program->left_workspace_bytes : &program->workspace_bytes, operands = 0;

    if (in->forms.workspace_bytes > *workspace)
        *workspace = in->forms.workspace_bytes;
    for (uint32_t slot = 0; left && slot < in->slots; slot++)
        operands += in->operand[slot] ? cek__operand_room(program, in, slot) : 0;
    if (operands > program->left_bytes)
        program->left_bytes = operands;
}

cek_status cek__program_finish(cek__program *program)
{
    lifetimes(program);
    for (int i = 0; i < program->count; i++) {
        const cek__instruction *in = &program->instructions[i];

        for (uint32_t slot = 0; slot < in->slots; slot++)
            if (in->operand[slot] && cek__operand_is_output(in, slot))
                replace_input(program, i, slot);
        workspace_count(program, in);
    }
    return arena_assign(program);
}
