/* lower.c - parts in sequence, and where their outputs go (see lower.h). */
#include "nn/graph/lower.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/base/alloc.h"
#include "nn/graph/parts.h"

cek_status cek__lower_begin(cek__lowering *l)
{
    cek_status st;

    CEK_TRY(cek__calloc((size_t)l->graph->flow_count, sizeof *l->value, &l->value));
    CEK_TRY(cek__calloc((size_t)l->graph->part_count, sizeof *l->instruction, &l->instruction));
    CEK_TRY(cek__calloc((size_t)l->graph->part_count, sizeof *l->within, &l->within));
    CEK_TRY(cek__calloc((size_t)l->graph->flow_count, sizeof *l->listed, &l->listed));
    CEK_TRY(cek__calloc((size_t)l->graph->flow_count, sizeof *l->begun, &l->begun));
    for (size_t i = l->graph->gradient_count; i-- > 0;)
        l->listed[l->graph->gradients[i].flow] = (int)i + 1;
    for (int i = 0; i < l->graph->length; i++) { /* parameters are there all along */
        const cek__part *part = cek__graph_at(l->graph, i);

        if (part->kind != CEK__PART_PARAMETER)
            continue;
        if (l->graph->flows[part->output[0]].type != CEK_DTYPE_NONE)
            l->value[part->output[0]] = l->rounded[part->parameter];
        else
            l->value[part->output[0]] = l->parameter[part->parameter];
    }
    return CEK_OK;
out:
    cek__lower_end(l);
    return st;
}

void cek__lower_end(cek__lowering *l)
{
    free(l->value);
    free(l->instruction);
    free(l->within);
    free(l->listed);
    free(l->begun);
    l->value = l->instruction = l->listed = l->begun = NULL;
    l->within = NULL;
}

/* ---- the sequence ---- */

static void where_set(cek__lowering *l, const cek__part *part)
{
    char *where = l->program->where;
    const size_t cap = sizeof l->program->where;

    if (part->node < 0 || !part->name)
        snprintf(where, cap, "the %s", part->name ? part->name : cek__part_class_of(part->kind)->name);
    else
        snprintf(where, cap, "node %d (%s)%s", part->node, part->name, part->backward ? " backward" : "");
}

static cek_status lower(cek__lowering *l, bool backward)
{
    cek_status st;

    for (; l->next < l->graph->length; l->next++) {
        int index = l->graph->sequence[l->next];
        const cek__part *part = &l->graph->parts[index];

        if (part->backward && !backward)
            break;
        if (l->within[index])
            continue;
        where_set(l, part);
        l->program->is_ahead = part->known;
        CEK_TRY(cek__part_class_of(part->kind)->lower(l, index));
    }
    return CEK_OK;
out:
    return st;
}

cek_status cek__lower_forward(cek__lowering *l)
{
    return lower(l, false);
}

cek_status cek__lower_backward(cek__lowering *l)
{
    return lower(l, true);
}

/* ---- flows ---- */

cek_dtype cek__lower_type(const cek__lowering *l, int flow)
{
    cek_dtype type = l->graph->flows[flow].type;

    return type == CEK_DTYPE_NONE ? l->type : type;
}

uint64_t cek__lower_elements(const cek__lowering *l, int flow)
{
    const cek__dims *dims = &l->graph->flows[flow].dims;

    return (uint64_t)cek__dims_elements(dims, 0, dims->rank, l->rows);
}

int cek__lower_read(cek__lowering *l, int flow)
{
    if (flow != CEK__NOTHING && l->value[flow] == CEK__NO_VALUE)
        l->missing = flow;
    return l->value[flow];
}

void cek__lower_alias(cek__lowering *l, int flow, int of)
{
    l->value[flow] = of;
}

/* Its output is the memory of what it reads. */
static bool passes_on(cek__part_kind kind)
{
    return kind == CEK__PART_VIEW || kind == CEK__PART_PERMUTE;
}

bool cek__lower_is_result(const cek__lowering *l, int flow)
{
    int result = l->graph->result;

    while (result && result != flow && passes_on(cek__graph_giver(l->graph, result)->kind))
        result = cek__graph_giver(l->graph, result)->input[0];
    return result && result == flow;
}

/* The entry of the list of gradients that a flow is, NULL: none; *first: it is the first of its parameter's
 * that is written. */
static const cek__gradient *gradient_of(const cek__lowering *l, int flow, bool *first)
{
    const cek__gradient *found = l->listed[flow] ? &l->graph->gradients[l->listed[flow] - 1] : NULL;

    if (!found)
        return NULL;
    if (!l->begun[found->of])
        l->begun[found->of] = flow;
    *first = l->begun[found->of] == flow;
    return found;
}

cek_status cek__lower_write(cek__lowering *l, int flow, uint32_t slot, cek__destination *to)
{
    cek_status st = CEK_OK;
    bool first;
    const cek__gradient *gradient = gradient_of(l, flow, &first);
    cek__value value = { .place = cek__lower_is_result(l, flow) ? CEK__PLACE_OUTPUT : CEK__PLACE_ARENA,
                         .bytes = cek__lower_elements(l, flow) * cek_dtype_bytes(cek__lower_type(l, flow)) };

    if (gradient) {
        l->value[flow] = l->gradient[gradient->parameter];
        *(first ? &to->twice : &to->accumulate) |= CEK_BIT(slot);
    } else if (!l->value[flow]) {
        CEK_TRY(cek__program_value(l->program, value, &l->value[flow]));
    }
    to->value = l->value[flow];
out:
    return st;
}

/* ---- operations ---- */

cek_status cek__lower_emit(cek__lowering *l, int part, cek_op_desc *desc, int operands[CEK__SLOTS],
                           const cek__destination *to)
{
    cek_status st;

    if (l->missing)
        CEK_FAIL(CEK_INVALID, "%s: %%%d is read before it is given", l->program->where, l->missing);
    desc->accumulate |= to->accumulate;
    CEK_TRY(cek__program_emit(l->program, desc, operands, to->twice));
    l->instruction[part] = l->program->count;
out:
    return st;
}

const cek_op *cek__lower_op(const cek__lowering *l, int part)
{
    return l->program->instructions[l->instruction[part] - 1].forms.op;
}

void cek__lower_shape(const cek__lowering *l, const cek__dims *dims, uint64_t shape[CEK_RANK_MAX])
{
    for (int i = 0; i < dims->rank; i++)
        shape[i] = (uint64_t)cek__dims_elements(dims, i, i + 1, l->rows);
}

cek_status cek__lower_within(cek__lowering *l, int flow, int of, int64_t at)
{
    if (l->missing)
        return cek__fail(CEK_INVALID, "%s: %%%d is read before it is given", l->program->where, l->missing);
    return cek__program_within(l->program, of, (uint64_t)at, &l->value[flow]);
}

cek_status cek__lower_box(cek__lowering *l, int part, const cek__box *box, int from, const cek__destination *to)
{
    const cek__part *p = &l->graph->parts[part];
    cek_copy_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_COPY },
        .rank = (uint32_t)box->dims.rank,
        .x_type = cek__lower_type(l, p->output[0]),
        .y_type = cek__lower_type(l, p->output[0]),
    };

    cek__lower_shape(l, &box->dims, desc.shape);
    for (int i = 0; i < box->dims.rank; i++) {
        desc.x_strides[i] = box->from[i];
        desc.y_strides[i] = box->to[i];
    }
    return cek__lower_emit(l, part, &desc.op, (int[CEK__SLOTS]){ [CEK_COPY_X] = from, [CEK_COPY_Y] = to->value }, to);
}

cek_status cek__lower_box_add(cek__lowering *l, int part, const cek__box *box, int from, const cek__destination *to)
{
    cek_dtype type = cek__lower_type(l, l->graph->parts[part].output[0]);
    cek__destination onto = { .value = to->value, .accumulate = CEK_BIT(CEK_POINTWISE_OUT) };
    cek_pointwise_input input = { .type = type };
    cek_pointwise_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_POINTWISE },
        .rank = (uint32_t)box->dims.rank,
        .out_type = type,
        .inputs = &input,
        .input_count = 1,
        .input_size = sizeof input,
        .instruction_size = sizeof(cek_pointwise_instruction),
    };

    cek__lower_shape(l, &box->dims, desc.shape);
    for (int i = 0; i < box->dims.rank; i++) {
        input.strides[i] = box->from[i];
        desc.out_strides[i] = box->to[i];
    }
    return cek__lower_emit(l, part, &desc.op,
                           (int[CEK__SLOTS]){ [CEK_POINTWISE_IN0] = from, [CEK_POINTWISE_OUT] = to->value }, &onto);
}

/* An instruction as an epilogue of the operation before it. False: it is none. */
static bool epilogue_of(const cek_pointwise_instruction *in, cek_epilogue *out)
{
    *out = (cek_epilogue){ .size = sizeof *out };
    switch (in->code) {
    case CEK_PW_RELU: out->activation = CEK_ACT_RELU; return true;
    case CEK_PW_TANH: out->activation = CEK_ACT_TANH; return true;
    case CEK_PW_SIGMOID: out->activation = CEK_ACT_SIGMOID; return true;
    case CEK_PW_GELU: out->activation = CEK_ACT_GELU; return true;
    case CEK_PW_RELU_GRAD: out->act_grad = CEK_ACT_RELU; return true;
    case CEK_PW_TANH_GRAD: out->act_grad = CEK_ACT_TANH; return true;
    case CEK_PW_SIGMOID_GRAD: out->act_grad = CEK_ACT_SIGMOID; return true;
    case CEK_PW_GELU_GRAD: out->act_grad = CEK_ACT_GELU; return true;
    default: return false;
    }
}

bool cek__lower_is_epilogue(const cek_pointwise_instruction *instruction)
{
    cek_epilogue epilogue;

    return epilogue_of(instruction, &epilogue);
}

cek_status cek__lower_with_follower(cek__lowering *l, int part, cek__lower_emitter *emit)
{
    cek_status st;
    const cek__part *p = &l->graph->parts[part], *follower = &l->graph->parts[p->follower];
    cek_epilogue epilogue;

    if (p->base)
        cek__lower_alias(l, p->output[0], cek__lower_read(l, p->base));
    if (!p->follower || !epilogue_of(&follower->chain.code[0], &epilogue))
        return emit(l, part, p->output[0], NULL, CEK__NO_VALUE);
    st = emit(l, part, follower->output[0], &epilogue,
              follower->inputs > 1 ? cek__lower_read(l, follower->input[1]) : CEK__NO_VALUE);
    for (int i = p->follower; st == CEK_OK && i != part; i = l->graph->flows[l->graph->parts[i].input[0]].part)
        l->within[i] = true; /* and the views between */
    if (st != CEK_UNSUPPORTED)
        return st;
    l->value[follower->output[0]] = CEK__NO_VALUE; /* nobody wrote it */
    return emit(l, part, p->output[0], NULL, CEK__NO_VALUE);
}
