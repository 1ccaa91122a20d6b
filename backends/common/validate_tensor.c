/* SPDX-License-Identifier: MIT
 * validate_tensor.c - what the descriptors of strided tensors may say, and of rows that an index names: pointwise,
 * reduce, arg, copy; gather and scatter_add. */
#include "backends/common/validate_inside.h"
#include "backends/common/growth.h"

#include <string.h>

/* --- pointwise ---------------------------------------------------------------------------------------------------- */

/* How many of a, b and c an instruction reads. */
static uint32_t operand_count(uint32_t code)
{
    switch (code) {
    case CEK_PW_CONST:
    case CEK_PW_VALID: return 0;
    case CEK_PW_COPY:
    case CEK_PW_NEG:
    case CEK_PW_ABS:
    case CEK_PW_SQRT:
    case CEK_PW_EXP:
    case CEK_PW_LOG:
    case CEK_PW_ADD_IMM:
    case CEK_PW_MUL_IMM:
    case CEK_PW_RELU:
    case CEK_PW_TANH:
    case CEK_PW_SIGMOID:
    case CEK_PW_GELU:
    case CEK_PW_ERF:
    case CEK_PW_LOG1P:
    case CEK_PW_EXPM1:
    case CEK_PW_FLOOR:
    case CEK_PW_SIGN:
    case CEK_PW_SIN:
    case CEK_PW_COS: return 1;
    case CEK_PW_SELECT: return 3;
    default: return 2;
    }
}

static cek_status instruction_check(const cek__validation *check, uint32_t index, uint32_t earlier)
{
    const cek_pointwise_instruction *at = &check->request->instructions[index];
    CEK__VALIDATE(cek__validate_enum(check, "instruction", at->code, CEK_PW_CONST, CEK_PW_VALID));
    const uint32_t reads = operand_count(at->code), values[] = { at->a, at->b, at->c };
    for (uint32_t i = 0; i < 3; i++)
        if (reads > i ? values[i] >= earlier : values[i])
            return CEK__INVALID(check, "instruction %u (code %u): %c is %u of %u earlier values", index, at->code,
                                (int)('a' + i), values[i], earlier);
    return CEK_OK;
}

/* The batch block and the length of a sample are there for VALID alone. */
static cek_status valid_check(const cek__validation *check)
{
    const cek_pointwise_desc *desc = &check->request->desc.pointwise;
    bool used = false;
    for (uint32_t i = 0; i < desc->instruction_count; i++)
        used |= check->request->instructions[i].code == CEK_PW_VALID;
    if (used)
        CEK__VALIDATE(cek__validate_positive(check, "rows_per_sample", desc->rows_per_sample));
    else if (desc->rows_per_sample)
        return CEK__INVALID(check, "rows_per_sample is %llu, and no instruction is VALID",
                            (unsigned long long)desc->rows_per_sample);
    else
        CEK__VALIDATE(cek__validate_presence(check, CEK_POINTWISE_BATCH, false, "with VALID"));
    cek__slot_block(check, CEK_POINTWISE_BATCH, sizeof(cek_batch_block));
    return CEK_OK;
}

/* Copies inputs and instructions from the caller's arrays. */
static cek_status program_copy(const cek__validation *check)
{
    cek__request *request = check->request;
    cek_pointwise_desc *desc = &request->desc.pointwise;
    if (desc->input_count > CEK_POINTWISE_INPUTS || desc->instruction_count > CEK_POINTWISE_INSTRUCTIONS)
        return CEK__UNSUPPORTED(check, "%u inputs, %u instructions; at most %u, %u", desc->input_count,
                                desc->instruction_count, CEK_POINTWISE_INPUTS, CEK_POINTWISE_INSTRUCTIONS);
    if (!desc->input_count && !desc->instruction_count)
        return CEK__INVALID(check, "neither inputs nor instructions");
    if ((desc->input_count && !desc->inputs) || (desc->instruction_count && !desc->instructions))
        return CEK__INVALID(check, "inputs or instructions are counted, but not given");
    for (uint32_t i = 0; i < desc->input_count; i++)
        CEK__VALIDATE(cek__element_in(check->host, "pointwise input", desc->inputs, i, desc->input_size,
                                      &request->inputs[i], sizeof *request->inputs));
    for (uint32_t i = 0; i < desc->instruction_count; i++)
        CEK__VALIDATE(cek__element_in(check->host, "pointwise instruction", desc->instructions, i,
                                      desc->instruction_size, &request->instructions[i],
                                      sizeof *request->instructions));
    desc->inputs = request->inputs;
    desc->input_size = sizeof *request->inputs;
    desc->instructions = request->instructions;
    desc->instruction_size = sizeof *request->instructions;
    return CEK_OK;
}

cek_status cek__validate_pointwise(const cek__validation *check)
{
    cek__request *request = check->request;
    const cek_pointwise_desc *desc = &request->desc.pointwise;
    cek__slot *out = &request->slots[CEK_POINTWISE_OUT];

    CEK__VALIDATE(cek__validate_shape(check, desc->rank, desc->shape));
    CEK__VALIDATE(cek__validate_type(check, "out_type", desc->out_type, CEK__TYPES_ALL));
    if (desc->op.accumulate && !(CEK__TYPES_REAL >> desc->out_type & 1))
        return CEK__INVALID(check, "integers (%s) are not accumulated", cek__type_name(desc->out_type));
    CEK__VALIDATE(program_copy(check));
    if ((desc->op.operands & ~CEK_BIT(CEK_POINTWISE_BATCH)) !=
        (CEK_BIT(desc->input_count) - 1) + CEK_BIT(CEK_POINTWISE_OUT))
        return CEK__INVALID(check, "operand mask %#llx is not OUT and %u inputs", (unsigned long long)desc->op.operands,
                            desc->input_count);
    CEK__VALIDATE(cek__slot_strided(check, CEK_POINTWISE_OUT, desc->out_type, desc->rank, desc->shape,
                                    desc->out_strides));
    for (uint32_t i = 0; i < desc->input_count; i++) {
        const cek_pointwise_input *input = &request->inputs[i];
        CEK__VALIDATE(cek__validate_type(check, "input type", input->type, CEK__TYPES_ALL));
        CEK__VALIDATE(cek__validate_reserved(check, input->reserved));
        CEK__VALIDATE(cek__slot_strided(check, i, input->type, desc->rank, desc->shape, input->strides));
        if (input->type != desc->out_type || memcmp(input->strides, desc->out_strides, sizeof input->strides))
            out->aliases &= ~CEK_BIT(i);
    }
    for (uint32_t i = 0; i < desc->instruction_count; i++)
        CEK__VALIDATE(instruction_check(check, i, desc->input_count + i));
    return valid_check(check);
}

/* --- reduce, arg, copy -------------------------------------------------------------------------------------------- */

/* X2 and BATCH, and what is said of them. */
static cek_status terms_check(const cek__validation *check)
{
    const cek_reduce_desc *desc = &check->request->desc.reduce;
    if (cek__request_given(check->request, CEK_REDUCE_X2))
        CEK__VALIDATE(cek__slot_strided(check, CEK_REDUCE_X2, desc->x_type, desc->rank, desc->shape, desc->x2_strides));
    else
        for (uint32_t i = 0; i < CEK_RANK_MAX; i++)
            if (desc->x2_strides[i])
                return CEK__INVALID(check, "x2_strides without X2");
    cek__slot_block(check, CEK_REDUCE_BATCH, sizeof(cek_batch_block));
    if (cek__request_given(check->request, CEK_REDUCE_BATCH))
        return cek__validate_positive(check, "rows_per_sample", desc->rows_per_sample);
    return desc->rows_per_sample ? CEK__INVALID(check, "rows_per_sample is %llu, and there is no BATCH",
                                                (unsigned long long)desc->rows_per_sample)
                                 : CEK_OK;
}

cek_status cek__validate_reduce(const cek__validation *check)
{
    const cek_reduce_desc *desc = &check->request->desc.reduce;
    const cek_dtype sum = cek__type_sum(desc->x_type);
    uint64_t remaining = 1;
    CEK__VALIDATE(cek__validate_enum(check, "function", desc->function, CEK_REDUCE_SUM, CEK_REDUCE_COUNT_NONFINITE));
    CEK__VALIDATE(cek__validate_shape(check, desc->rank, desc->shape));
    CEK__VALIDATE(cek__validate_type(check, "x_type", desc->x_type, CEK__TYPES_ALL));
    if (desc->axes >> desc->rank)
        return CEK__INVALID(check, "axes %#x of a tensor of rank %u", desc->axes, desc->rank);
    if (desc->op.accumulate && (desc->function == CEK_REDUCE_MAX || desc->function == CEK_REDUCE_MIN))
        return CEK__INVALID(check, "a maximum or minimum is not accumulated");
    CEK__VALIDATE(cek__slot_strided(check, CEK_REDUCE_X, desc->x_type, desc->rank, desc->shape, desc->x_strides));
    for (uint32_t i = 0; i < desc->rank; i++)
        if (!(desc->axes >> i & 1))
            remaining *= desc->shape[i]; /* divides the product that check_shape saw fit */
    CEK__VALIDATE(CEK__SLOT_SIZE(check, CEK_REDUCE_Y, sum, remaining));
    CEK__VALIDATE(CEK__SLOT_SIZE(check, CEK_REDUCE_CENTRE, sum, remaining));
    return terms_check(check);
}

cek_status cek__validate_arg(const cek__validation *check)
{
    const cek_arg_desc *desc = &check->request->desc.arg;
    uint64_t remaining = 1;
    CEK__VALIDATE(cek__validate_enum(check, "function", desc->function, CEK_ARG_MAX, CEK_ARG_MIN));
    CEK__VALIDATE(cek__validate_shape(check, desc->rank, desc->shape));
    CEK__VALIDATE(cek__validate_type(check, "type", desc->type, CEK__TYPES_ALL));
    if (desc->axis >= desc->rank)
        return CEK__INVALID(check, "axis %u of a tensor of rank %u", desc->axis, desc->rank);
    if (desc->shape[desc->axis] > (uint64_t)INT32_MAX + 1)
        return CEK__INVALID(check, "axis %u has %llu elements, which i32 does not number", desc->axis,
                            (unsigned long long)desc->shape[desc->axis]);
    CEK__VALIDATE(cek__slot_strided(check, CEK_ARG_X, desc->type, desc->rank, desc->shape, desc->x_strides));
    for (uint32_t i = 0; i < desc->rank; i++)
        remaining *= i == desc->axis ? 1 : desc->shape[i];
    return CEK__SLOT_SIZE(check, CEK_ARG_Y, CEK_I32, remaining);
}

cek_status cek__validate_copy(const cek__validation *check)
{
    const cek_copy_desc *desc = &check->request->desc.copy;
    CEK__VALIDATE(cek__validate_reserved(check, desc->reserved));
    CEK__VALIDATE(cek__validate_shape(check, desc->rank, desc->shape));
    CEK__VALIDATE(cek__validate_type(check, "x_type", desc->x_type, CEK__TYPES_ALL));
    CEK__VALIDATE(cek__validate_type(check, "y_type", desc->y_type, CEK__TYPES_ALL));
    CEK__VALIDATE(cek__slot_strided(check, CEK_COPY_X, desc->x_type, desc->rank, desc->shape, desc->x_strides));
    return cek__slot_strided(check, CEK_COPY_Y, desc->y_type, desc->rank, desc->shape, desc->y_strides);
}

/* --- gather, scatter_add ------------------------------------------------------------------------------------------ */

cek_status cek__validate_gather(const cek__validation *check)
{
    const cek_gather_desc *desc = &check->request->desc.gather;
    const bool scatter = desc->op.kind == CEK_OP_SCATTER_ADD;
    CEK__VALIDATE(cek__validate_type(check, "type", desc->type, scatter ? CEK__TYPES_REAL : CEK__TYPES_ALL));
    CEK__VALIDATE(cek__validate_flags(check, "gather flags", desc->flags, CEK_GATHER_SHARED));
    CEK__VALIDATE(cek__validate_positive(check, "batch", desc->batch));
    CEK__VALIDATE(cek__validate_positive(check, "rows", desc->rows));
    CEK__VALIDATE(cek__validate_positive(check, "count", desc->count));
    CEK__VALIDATE(cek__validate_positive(check, "columns", desc->columns));
    CEK__VALIDATE(CEK__SLOT_SIZE(check, CEK_GATHER_INDEX, CEK_I32, desc->flags & CEK_GATHER_SHARED ? 1 : desc->batch,
                                 desc->count));
    CEK__VALIDATE(CEK__SLOT_SIZE(check, scatter ? CEK_SCATTER_ADD_DY : CEK_GATHER_Y, desc->type, desc->batch,
                                 desc->count, desc->columns));
    return CEK__SLOT_SIZE(check, scatter ? CEK_SCATTER_ADD_DTABLE : CEK_GATHER_TABLE,
                          scatter ? cek__type_sum(desc->type) : desc->type, desc->batch, desc->rows, desc->columns);
}
