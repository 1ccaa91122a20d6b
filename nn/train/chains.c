/* chains.c - see chains.h. */
#include "nn/train/chains.h"

#include "core/base/status.h"
#include "nn/train/shards.h"

enum { INPUTS_MOST = 2 };

/* `inputs` operands and OUT, contiguous, at places that are multiples of `align` bytes. */
static cek_status make(cek_device *device, cek_dtype in_type, cek_dtype out_type, uint64_t count, uint32_t align,
                       uint32_t inputs, const cek_pointwise_instruction *instructions, uint32_t length,
                       cek__chain_op *out)
{
    cek_status st;
    cek_op_info info = { .size = sizeof info };
    const cek_pointwise_input input = { .type = in_type, .strides = { 1 } }, list[INPUTS_MOST] = { input, input };
    cek_pointwise_desc desc = {
        .op = { .size = sizeof desc,
                .kind = CEK_OP_POINTWISE,
                .operands = (CEK_BIT(inputs) - 1) | CEK_BIT(CEK_POINTWISE_OUT),
                .align = align },
        .rank = 1,
        .out_type = out_type,
        .shape = { count },
        .out_strides = { 1 },
        .inputs = list,
        .instructions = instructions,
        .input_count = inputs,
        .input_size = sizeof *list,
        .instruction_count = length,
        .instruction_size = sizeof *instructions,
    };
    CEK_TRY(cek_op_make(device, &desc.op, &info, &out->op));
    out->workspace_bytes = info.workspace_bytes;
out:
    return st;
}

cek_status cek__chain_make(cek_device *device, cek_dtype type, uint64_t count, uint32_t inputs,
                           const cek_pointwise_instruction *instructions, uint32_t length, cek__chain_op *out)
{
    return make(device, type, type, count, 0, inputs, instructions, length, out);
}

cek_status cek__rounding_make(cek_device *device, cek_dtype low, uint64_t count, cek__chain_op *out)
{
    const cek_pointwise_instruction copy = { .code = CEK_PW_COPY };

    return make(device, CEK_F32, low, count, CEK__ROUNDED_ALIGN, 1, &copy, 1, out);
}
