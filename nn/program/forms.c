/* forms.c - see forms.h. */
#include "nn/program/forms.h"

const char *cek__operation_name(uint32_t kind)
{
    static const char *const names[] = {
        [CEK_OP_GEMM] = "gemm",
        [CEK_OP_CONV_FORWARD] = "conv_forward",
        [CEK_OP_CONV_BACKWARD_DATA] = "conv_backward_data",
        [CEK_OP_CONV_BACKWARD_WEIGHTS] = "conv_backward_weights",
        [CEK_OP_POOL_FORWARD] = "pool_forward",
        [CEK_OP_POOL_BACKWARD] = "pool_backward",
        [CEK_OP_POINTWISE] = "pointwise",
        [CEK_OP_REDUCE] = "reduce",
        [CEK_OP_SOFTMAX] = "softmax",
        [CEK_OP_CROSS_ENTROPY] = "cross_entropy",
        [CEK_OP_SQUARED_ERROR] = "squared_error",
        [CEK_OP_DROPOUT] = "dropout",
        [CEK_OP_RANDOM] = "random",
        [CEK_OP_OPTIMIZER] = "optimizer",
        [CEK_OP_COPY] = "copy",
        [CEK_OP_GATHER] = "gather",
        [CEK_OP_SCATTER_ADD] = "scatter_add",
        [CEK_OP_ARG] = "arg",
    };

    return kind < sizeof names / sizeof *names && names[kind] ? names[kind] : "unknown operation";
}

/* Only what a backend decides is guessed: it wants no workspace, and 4 bytes for each result of a max-pool (an
 * index). */
static uint64_t reserve_guess(const cek_op_desc *desc)
{
    const cek_pool_desc *pool = (const cek_pool_desc *)desc;
    uint64_t bytes;

    if (desc->kind != CEK_OP_POOL_FORWARD || !(desc->operands & CEK_BIT(CEK_POOL_FORWARD_RESERVE)))
        return 0;
    bytes = 4 * pool->batch * pool->channels;
    for (uint32_t i = 0; i < pool->spatial; i++)
        bytes *= (pool->in[i] + pool->pad_lo[i] + pool->pad_hi[i] - pool->kernel[i]) / pool->stride[i] + 1;
    return bytes;
}

static cek_status form_make(cek_device *device, const cek_op_desc *desc, cek__forms *forms, cek_op **out)
{
    cek_status st;
    cek_op_info info = { .size = sizeof info };

    CEK_TRY(cek_op_make(device, desc, &info, out));
    forms->reserve_bytes = info.reserve_bytes;
    forms->prepack_bytes = info.prepack_bytes;
    forms->prepack_layout = info.prepack_layout;
    if (info.workspace_bytes > forms->workspace_bytes)
        forms->workspace_bytes = info.workspace_bytes;
out:
    return st;
}

cek_status cek__forms_make(cek_device *device, cek_op_desc *desc, uint64_t twice, cek__forms *out)
{
    cek_status st;
    const uint64_t accumulate = desc->accumulate;

    *out = (cek__forms){ .device = device };
    if (!device) {
        out->reserve_bytes = reserve_guess(desc);
        return CEK_OK;
    }
    CEK_TRY(form_make(device, desc, out, &out->op));
    desc->accumulate |= twice;
    if (twice)
        CEK_TRY(form_make(device, desc, out, &out->accumulating));
out:
    desc->accumulate = accumulate;
    if (st != CEK_OK)
        cek__forms_free(out);
    return st;
}

void cek__forms_free(cek__forms *forms)
{
    cek_op_free(forms->device, forms->accumulating);
    cek_op_free(forms->device, forms->op);
    *forms = (cek__forms){ 0 };
}
