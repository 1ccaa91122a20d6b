/* part_buffer.c - what a network keeps beside its parameters and nothing differentiates: a buffer that is read, what
 * training contributes to one, and arrays that never change, which are read as buffers are.
 *
 * A run that contributes v leaves s (1 - momentum) + v momentum behind where s stood, and s is 0 before the first: who
 * gathers these adds the buffer's old value, weighted by (1 - momentum) to the power of the runs. So no device
 * waits for another's. */
#include "nn/graph/parts.h"
#include "nn/graph/physical.h"

static cek_status value_of(cek__lowering *l, const cek__part *part, int flow, cek__place place, int *out)
{
    const uint64_t bytes = cek_dtype_bytes(l->type);

    return cek__program_value(l->program,
                              (cek__value){ .place = place,
                                            .offset = part->buffer.at * bytes,
                                            .bytes = cek__lower_elements(l, flow) * bytes },
                              out);
}

static cek_status buffer_lower(cek__lowering *l, int part)
{
    cek_status st;
    const cek__part *p = &l->graph->parts[part];
    int value;

    CEK_TRY(value_of(l, p, p->output[0], p->buffer.constant ? CEK__PLACE_CONSTANTS : CEK__PLACE_BUFFERS, &value));
    cek__lower_alias(l, p->output[0], value);
out:
    return st;
}

static cek_status contribute_infer(const cek__graph *graph, const cek__part *part, cek__flow out[CEK__PART_OUTPUTS])
{
    (void)out;
    if (graph->flows[part->input[0]].dims.samples)
        return cek__fail(CEK_INVALID, "of each sample, where it takes what they have in common");
    return CEK_OK;
}

static cek_status contribute_lower(cek__lowering *l, int part)
{
    cek_status st;
    const cek__part *p = &l->graph->parts[part];
    const cek_pointwise_input input = { .type = l->type, .strides = { 1 } }, inputs[2] = { input, input };
    const cek_pointwise_instruction code[3] = { { .code = CEK_PW_MUL_IMM, .imm = 1 - p->buffer.momentum },
                                                { .code = CEK_PW_MUL_IMM, .a = 1, .imm = p->buffer.momentum },
                                                { .code = CEK_PW_ADD, .a = 2, .b = 3 } };
    const cek__destination to = { 0 };
    int sum;
    cek_pointwise_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_POINTWISE },
        .rank = 1,
        .out_type = l->type,
        .shape = { cek__lower_elements(l, p->input[0]) },
        .out_strides = { 1 },
        .inputs = inputs,
        .instructions = code,
        .input_count = 2,
        .input_size = sizeof input,
        .instruction_count = 3,
        .instruction_size = sizeof *code,
    };

    CEK_TRY(value_of(l, p, p->input[0], CEK__PLACE_STATISTICS, &sum));
    return cek__lower_emit(l, part, &desc.op,
                           (int[CEK__SLOTS]){ [CEK_POINTWISE_IN0] = sum,
                                              [CEK_POINTWISE_IN1] = cek__lower_read(l, p->input[0]),
                                              [CEK_POINTWISE_OUT] = sum },
                           &to);
out:
    return st;
}

const cek__part_class cek__part_buffer = { .name = "buffer",
                                           .outputs = 1,
                                           .infer = cek__infer_given,
                                           .place = cek__place_as_is,
                                           .types = CEK__TYPES_SOURCE,
                                           .lower = buffer_lower };
const cek__part_class cek__part_contribute = { .name = "contribute",
                                               .infer = contribute_infer,
                                               .place = cek__place_plain,
                                               .types = CEK__TYPES_WIDE,
                                               .lower = contribute_lower,
                                               .effect = true };
