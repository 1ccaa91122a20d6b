/* pointwise.c - describes a chain over strided operands, with as few dimensions as they need. */
#include "core/tensor/pointwise.h"

#include <string.h>

#include "core/tensor/eager.h"

uint32_t cek__chain_add(cek__chain *chain, cek_pointwise_instruction instruction)
{
    chain->code[chain->length] = instruction;
    return (uint32_t)(chain->inputs + chain->length++);
}

cek_status cek__pointwise_run(const char *what, cek_device *device, const cek__shape *shape, const cek__chain *chain,
                              const cek__lane *in, const cek__lane *out)
{
    cek__shape over = *shape;
    const int count = chain->inputs;
    int64_t strides[CEK__CHAIN_INPUTS + 1][CEK_RANK_MAX];
    cek__lane lanes[CEK__CHAIN_INPUTS + 1];
    cek_pointwise_input inputs[CEK__CHAIN_INPUTS];
    cek_ref operands[CEK_POINTWISE_OUT + 1] = { [CEK_POINTWISE_OUT] = out->ref };
    cek_pointwise_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_POINTWISE, .operands = CEK_BIT(CEK_POINTWISE_OUT) },
        .out_type = out->type,
        .inputs = inputs,
        .instructions = chain->code,
        .input_count = (uint32_t)count,
        .input_size = sizeof *inputs,
        .instruction_count = (uint32_t)chain->length,
        .instruction_size = sizeof *chain->code
    };

    for (int k = 0; k <= count; k++) {
        lanes[k] = k < count ? in[k] : *out;
        memcpy(strides[k], lanes[k].strides, sizeof strides[k]);
    }
    desc.op.align = cek__lanes_align(count + 1, lanes);
    cek__shape_collapse(&over, count + 1, strides);
    for (int k = 0; k < count; k++) {
        inputs[k] = (cek_pointwise_input){ .type = in[k].type };
        memcpy(inputs[k].strides, strides[k], sizeof strides[k]);
        operands[k] = in[k].ref;
        desc.op.operands |= CEK_BIT(k);
    }
    desc.rank = (uint32_t)over.rank;
    for (int i = 0; i < over.rank; i++)
        desc.shape[i] = (uint64_t)over.dims[i];
    memcpy(desc.out_strides, strides[count], sizeof strides[count]);
    return cek__eager_run(what, device, &desc.op, operands, CEK_POINTWISE_OUT + 1);
}
