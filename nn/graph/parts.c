/* parts.c - the table of parts (see parts.h). */
#include "nn/graph/parts.h"

const cek__part_class *cek__part_class_of(cek__part_kind kind)
{
    static const cek__part_class *const classes[CEK__PART_COUNT] = {
        [CEK__PART_INPUT] = &cek__part_input,
        [CEK__PART_TARGET] = &cek__part_target,
        [CEK__PART_PARAMETER] = &cek__part_parameter,
        [CEK__PART_PRODUCT] = &cek__part_product,
        [CEK__PART_CONV] = &cek__part_conv,
        [CEK__PART_CONV_DATA] = &cek__part_conv_data,
        [CEK__PART_CONV_WEIGHTS] = &cek__part_conv_weights,
        [CEK__PART_POOL] = &cek__part_pool,
        [CEK__PART_POOL_BACK] = &cek__part_pool_back,
        [CEK__PART_CHAIN] = &cek__part_chain,
        [CEK__PART_REDUCE] = &cek__part_reduce,
        [CEK__PART_VIEW] = &cek__part_view,
        [CEK__PART_REORDER] = &cek__part_reorder,
        [CEK__PART_PERMUTE] = &cek__part_permute,
        [CEK__PART_PAD] = &cek__part_pad,
        [CEK__PART_CONCAT] = &cek__part_concat,
        [CEK__PART_GATHER] = &cek__part_gather,
        [CEK__PART_SCATTER_ADD] = &cek__part_scatter_add,
        [CEK__PART_ARG] = &cek__part_arg,
        [CEK__PART_DROPOUT] = &cek__part_dropout,
        [CEK__PART_RANDOM] = &cek__part_random,
        [CEK__PART_SOFTMAX] = &cek__part_softmax,
        [CEK__PART_CROSS_ENTROPY] = &cek__part_cross_entropy,
        [CEK__PART_SQUARED_ERROR] = &cek__part_squared_error,
        [CEK__PART_BUFFER] = &cek__part_buffer,
        [CEK__PART_CONTRIBUTE] = &cek__part_contribute,
        [CEK__PART_PHASE] = &cek__part_phase,
        [CEK__PART_LOSS] = &cek__part_loss,
        [CEK__PART_HITS] = &cek__part_hits,
    };

    return (unsigned)kind < CEK__PART_COUNT ? classes[kind] : NULL;
}

cek_status cek__infer_given(const cek__graph *graph, const cek__part *part, cek__flow out[CEK__PART_OUTPUTS])
{
    (void)graph;
    out[0].dims = part->dims;
    return CEK_OK;
}

cek_status cek__place_as_is(cek__graph *graph, int part)
{
    (void)graph;
    (void)part;
    return CEK_OK;
}
