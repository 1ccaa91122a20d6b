/* part_source.c - what a graph begins with: samples, targets, parameters. */
#include "nn/graph/parts.h"

static cek_status parameter_infer(const cek__graph *graph, const cek__part *part, cek__flow out[CEK__PART_OUTPUTS])
{
    out[0].open = true;
    return cek__infer_given(graph, part, out);
}

/* Samples of data with three axes come as images lie, all others as their axes say. */
static cek_status input_place(cek__graph *graph, int part)
{
    cek__flow *x = &graph->flows[graph->parts[part].output[0]];

    if (x->dims.rank == 4 && x->type == CEK_DTYPE_NONE)
        x->image = cek__dims_image(&x->dims);
    return CEK_OK;
}

/* x * scale + offset in the flow's type. */
static cek_status convert(cek__lowering *l, int part, int from, int flow)
{
    cek_status st;
    cek__destination to = { 0 };
    cek_pointwise_input input = { .type = l->input_type, .strides = { 1 } };
    cek_pointwise_instruction code[2];
    uint32_t count = 0;
    cek_pointwise_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_POINTWISE },
        .rank = 1,
        .out_type = cek__lower_type(l, flow),
        .shape = { cek__lower_elements(l, flow) },
        .out_strides = { 1 },
        .inputs = &input,
        .instructions = code,
        .input_count = 1,
        .input_size = sizeof input,
        .instruction_size = sizeof *code,
    };

    if (l->scale != 1)
        code[count++] = (cek_pointwise_instruction){ .code = CEK_PW_MUL_IMM, .imm = l->scale };
    if (l->offset != 0) {
        code[count] = (cek_pointwise_instruction){ .code = CEK_PW_ADD_IMM, .a = count, .imm = l->offset };
        count++;
    }
    if (count == 0)
        code[count++] = (cek_pointwise_instruction){ .code = CEK_PW_COPY };
    desc.instruction_count = count;
    CEK_TRY(cek__lower_write(l, flow, CEK_POINTWISE_OUT, &to));
    return cek__lower_emit(l, part, &desc.op,
                           (int[CEK__SLOTS]){ [CEK_POINTWISE_IN0] = from, [CEK_POINTWISE_OUT] = to.value }, &to);
out:
    return st;
}

uint64_t cek__graph_input_at(const cek__graph *graph, size_t index, int64_t rows, cek_dtype data)
{
    uint64_t at = 0;

    for (int i = 1; i < graph->part_count && index > 0; i++) {
        const cek__flow *x = &graph->flows[graph->parts[i].output[0]];

        if (graph->parts[i].kind != CEK__PART_INPUT)
            continue;
        at += (uint64_t)cek__dims_elements(&x->dims, 0, x->dims.rank, rows) *
              cek_dtype_bytes(graph->parts[i].type == CEK_DTYPE_NONE ? data : graph->parts[i].type);
        at = (at + CEK_ALIGNMENT - 1) / CEK_ALIGNMENT * CEK_ALIGNMENT;
        index--;
    }
    return at;
}

/* Which of the graph's inputs a part is. */
static size_t input_index(const cek__graph *graph, int part)
{
    size_t index = 0;

    for (int i = 1; i < part; i++)
        index += graph->parts[i].kind == CEK__PART_INPUT;
    return index;
}

static cek_status input_lower(cek__lowering *l, int part)
{
    cek_status st;
    int flow = l->graph->parts[part].output[0], given;
    const cek_dtype type = l->graph->parts[part].type;
    cek__value samples = { .place = CEK__PLACE_INPUT,
                           .offset = cek__graph_input_at(l->graph, input_index(l->graph, part), l->rows, l->input_type),
                           .bytes = cek__lower_elements(l, flow) *
                                    cek_dtype_bytes(type == CEK_DTYPE_NONE ? l->input_type : type) };

    CEK_TRY(cek__program_value(l->program, samples, &given));
    if (type != CEK_DTYPE_NONE) { /* as they come */
        cek__lower_alias(l, flow, given);
        return CEK_OK;
    }
    /* A network that does nothing has a result all the same. */
    if (l->input_type == cek__lower_type(l, flow) && l->scale == 1 && l->offset == 0 &&
        !cek__lower_is_result(l, flow)) {
        cek__lower_alias(l, flow, given);
        return CEK_OK;
    }
    return convert(l, part, given, flow);
out:
    return st;
}

static cek_status target_lower(cek__lowering *l, int part)
{
    cek_status st;
    int flow = l->graph->parts[part].output[0], given;
    cek__value target = { .place = CEK__PLACE_TARGET,
                          .bytes = cek__lower_elements(l, flow) * cek_dtype_bytes(cek__lower_type(l, flow)) };

    CEK_TRY(cek__program_value(l->program, target, &given));
    cek__lower_alias(l, flow, given);
    return CEK_OK;
out:
    return st;
}

/* Of the type that is computed in, or of one that is not converted. */
static cek_status typed_infer(const cek__graph *graph, const cek__part *part, cek__flow out[CEK__PART_OUTPUTS])
{
    out[0].type = part->type;
    return cek__infer_given(graph, part, out);
}

/* Parameters have their values from the beginning (lower.c). */
static cek_status parameter_lower(cek__lowering *l, int part)
{
    (void)l;
    (void)part;
    return CEK_OK;
}

const cek__part_class cek__part_input = { .name = "input",
                                          .outputs = 1,
                                          .infer = typed_infer,
                                          .place = input_place,
                                          .types = CEK__TYPES_SOURCE,
                                          .lower = input_lower };
const cek__part_class cek__part_target = { .name = "target",
                                           .outputs = 1,
                                           .infer = typed_infer,
                                           .place = cek__place_as_is,
                                           .types = CEK__TYPES_SOURCE,
                                           .lower = target_lower };
const cek__part_class cek__part_parameter = { .name = "parameter",
                                              .outputs = 1,
                                              .infer = parameter_infer,
                                              .place = cek__place_as_is,
                                              .types = CEK__TYPES_SOURCE,
                                              .lower = parameter_lower };
