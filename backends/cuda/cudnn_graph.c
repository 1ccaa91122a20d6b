/* SPDX-License-Identifier: MIT
 *
 * cudnn_graph.c - a convolution in the words of cuDNN: its tensors, and the graph of it and of what is fused behind it.
 *
 * Owns what the descriptors of a graph say. Knows nothing of engines, which cudnn_plan.c chooses.
 */
#include <string.h>

#include "backends/cuda/cudnn_graph.h"

#define ALIGNMENT 16            /* more is of no use to any engine */
#define ELEMENTS_MOST INT32_MAX /* engines count in 32 bits */

/* --- descriptors ----------------------------------------------------------------------------------------------- */

cudnnBackendDescriptor_t cek__cudnn_make(cek__cudnn_set *set, cudnnBackendDescriptorType_t type)
{
    cudnnBackendDescriptor_t made = NULL;
    if (!set->error && set->count == CEK__CUDNN_MADE)
        set->error = CUDNN_STATUS_BAD_PARAM;
    if (!set->error)
        set->error = set->dnn->BackendCreateDescriptor(type, &made);
    if (set->error)
        return NULL;
    set->made[set->count++] = made;
    return made;
}

void cek__cudnn_tell(cek__cudnn_set *set, cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                     cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    if (!set->error)
        set->error = set->dnn->BackendSetAttribute(descriptor, name, type, count, values);
}

void cek__cudnn_finish(cek__cudnn_set *set, cudnnBackendDescriptor_t descriptor)
{
    if (!set->error)
        set->error = set->dnn->BackendFinalize(descriptor);
}

void cek__cudnn_set_free(cek__cudnn_set *set)
{
    while (set->count)
        (void)set->dnn->BackendDestroyDescriptor(set->made[--set->count]);
}

static void tell_number(cek__cudnn_set *set, cudnnBackendDescriptor_t to, cudnnBackendAttributeName_t name,
                        cudnnBackendAttributeType_t type, uint32_t value)
{
    cek__cudnn_tell(set, to, name, type, 1, &value);
}

static void tell_int(cek__cudnn_set *set, cudnnBackendDescriptor_t to, cudnnBackendAttributeName_t name, int64_t value)
{
    cek__cudnn_tell(set, to, name, CUDNN_TYPE_INT64, 1, &value);
}

static void tell_other(cek__cudnn_set *set, cudnnBackendDescriptor_t to, cudnnBackendAttributeName_t name,
                       cudnnBackendDescriptor_t value)
{
    cek__cudnn_tell(set, to, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

/* --- tensors --------------------------------------------------------------------------------------------------- */

enum { IMAGE, WEIGHTS, OUT, TENSORS = CEK__CUDNN_TENSORS };
enum { FIRST_VIRTUAL = 100 }; /* numbers of tensors that have no memory */

static void spread(const uint64_t *from, uint32_t spatial, int64_t fill, int64_t to[3])
{
    uint32_t skip = spatial == 1;
    to[0] = fill;
    for (uint32_t i = 0; i < spatial; i++)
        to[skip + i] = (int64_t)from[i];
}

static bool extents_make(cek__cudnn_extents *to, uint64_t batch, uint64_t channels, const int64_t *sizes,
                         int64_t spatial)
{
    int64_t stride = (int64_t)channels;
    to->sizes[0] = (int64_t)batch;
    to->sizes[1] = (int64_t)channels;
    to->strides[1] = 1;
    for (int64_t i = spatial - 1; i >= 0; i--) {
        to->sizes[2 + i] = sizes[i];
        to->strides[2 + i] = stride;
        if (__builtin_mul_overflow(stride, sizes[i], &stride) || stride > ELEMENTS_MOST)
            return false;
    }
    to->strides[0] = stride;
    return !__builtin_mul_overflow(stride, (int64_t)batch, &stride) && stride <= ELEMENTS_MOST;
}

bool cek__cudnn_problem_make(const cek__request *request, cek__cudnn_problem *p)
{
    const cek_conv_desc *desc = &request->desc.conv;
    int64_t in[3], out[3];
    memset(p, 0, sizeof *p);
    p->request = request;
    p->spatial = desc->spatial == 1 ? 2 : desc->spatial;
    spread(desc->in, desc->spatial, 1, in);
    spread(request->out, desc->spatial, 1, out);
    spread(desc->kernel, desc->spatial, 1, p->kernel);
    spread(desc->stride, desc->spatial, 1, p->stride);
    spread(desc->dilation, desc->spatial, 1, p->dilation);
    spread(desc->pad_lo, desc->spatial, 0, p->before);
    spread(desc->pad_hi, desc->spatial, 0, p->behind);
    return extents_make(&p->tensors[IMAGE], desc->batch, desc->in_channels, in, p->spatial) &&
           extents_make(&p->tensors[WEIGHTS], desc->out_channels, desc->in_channels / desc->groups, p->kernel,
                        p->spatial) &&
           extents_make(&p->tensors[OUT], desc->batch, desc->out_channels, out, p->spatial);
}

static uint32_t type_of(cek_dtype type)
{
    return type == CEK_F32 ? CUDNN_DATA_FLOAT : type == CEK_F16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16;
}

static cudnnBackendDescriptor_t tensor_make(cek__cudnn_set *set, const cek__cudnn_problem *p,
                                            const cek__cudnn_extents *is, cek_dtype type, int64_t number)
{
    const bool is_virtual = number >= FIRST_VIRTUAL;
    cudnnBackendDescriptor_t tensor = cek__cudnn_make(set, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    tell_number(set, tensor, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type_of(type));
    cek__cudnn_tell(set, tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 2 + p->spatial, is->sizes);
    cek__cudnn_tell(set, tensor, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 2 + p->spatial, is->strides);
    tell_int(set, tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, number);
    tell_int(set, tensor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT,
             p->request->align < ALIGNMENT ? p->request->align : ALIGNMENT);
    if (is_virtual)
        cek__cudnn_tell(set, tensor, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
    cek__cudnn_finish(set, tensor);
    return tensor;
}

/* --- the graph of operations ----------------------------------------------------------------------------------- */

/* How the three kinds differ: the operation, its attributes, the slots of image, weights and output, and which of
 * them is the result. */
static const struct part {
    uint32_t operation, alpha, beta, window, tensors[TENSORS], slots[TENSORS], result;
} parts[] = {
    { CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
      { CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y },
      { CEK_CONV_FORWARD_X, CEK_CONV_FORWARD_W, CEK_CONV_FORWARD_Y },
      OUT },
    { CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
      { CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY },
      { CEK_CONV_BACKWARD_DATA_DX, CEK_CONV_BACKWARD_DATA_W, CEK_CONV_BACKWARD_DATA_DY },
      IMAGE },
    { CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
      { CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY },
      { CEK_CONV_BACKWARD_WEIGHTS_X, CEK_CONV_BACKWARD_WEIGHTS_DW, CEK_CONV_BACKWARD_WEIGHTS_DY },
      WEIGHTS },
};

static const struct part *part_of(const cek__request *request)
{
    return &parts[request->desc.op.kind - CEK_OP_CONV_FORWARD];
}

const uint32_t *cek__cudnn_slots(const cek__request *request)
{
    return part_of(request)->slots;
}

uint32_t cek__cudnn_result_slot(const cek__request *request)
{
    const struct part *part = part_of(request);
    return part->slots[part->result];
}

static cudnnBackendDescriptor_t window_make(cek__cudnn_set *set, const cek__cudnn_problem *p)
{
    cudnnBackendDescriptor_t window = cek__cudnn_make(set, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    tell_number(set, window, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    tell_number(set, window, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION);
    tell_int(set, window, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, p->spatial);
    cek__cudnn_tell(set, window, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, p->spatial, p->dilation);
    cek__cudnn_tell(set, window, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, p->spatial, p->stride);
    cek__cudnn_tell(set, window, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, p->spatial, p->before);
    cek__cudnn_tell(set, window, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, p->spatial, p->behind);
    cek__cudnn_finish(set, window);
    return window;
}

static cudnnBackendDescriptor_t pointwise_make(cek__cudnn_set *set, uint32_t mode, cudnnBackendDescriptor_t x,
                                               cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t y)
{
    cudnnBackendDescriptor_t how = cek__cudnn_make(set, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    tell_number(set, how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
    tell_number(set, how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    if (mode == CUDNN_POINTWISE_RELU_FWD)
        tell_number(set, how, CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, CUDNN_PROPAGATE_NAN);
    cek__cudnn_finish(set, how);
    cudnnBackendDescriptor_t operation = cek__cudnn_make(set, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    tell_other(set, operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
    tell_other(set, operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b)
        tell_other(set, operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    tell_other(set, operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    cek__cudnn_finish(set, operation);
    return operation;
}

static cudnnBackendDescriptor_t bias_make(cek__cudnn_set *set, const cek__cudnn_problem *p)
{
    const int64_t channels = (int64_t)p->request->desc.conv.out_channels;
    cek__cudnn_extents is = { { 1, channels, 1, 1, 1 }, { channels, 1, channels, channels, channels } };
    return tensor_make(set, p, &is, CEK_F32, CEK_CONV_FORWARD_BIAS + 1);
}

/* What passes between the convolution and what is fused behind it is f32 and never lies in memory. */
cudnnBackendDescriptor_t cek__cudnn_graph_make(cek__cudnn_set *set, const cek__cudnn_problem *p,
                                               const cek__cudnn_way *w, const cek__cudnn_target *target)
{
    const struct part *part = part_of(p->request);
    const bool chain = w->bias || w->relu || w->widen;
    const float one = 1.0f;
    cudnnBackendDescriptor_t tensors[TENSORS], operations[3];
    int64_t count = 0;
    for (uint32_t i = 0; i < TENSORS; i++)
        tensors[i] = i != part->result
                         ? tensor_make(set, p, &p->tensors[i], p->request->desc.conv.x_type, part->slots[i] + 1)
                     : chain ? tensor_make(set, p, &p->tensors[i], CEK_F32, FIRST_VIRTUAL)
                             : tensor_make(set, p, &p->tensors[i], w->type, part->slots[i] + 1);
    cudnnBackendDescriptor_t window = window_make(set, p);
    operations[count++] = cek__cudnn_make(set, part->operation);
    tell_other(set, operations[0], part->window, window);
    for (uint32_t i = 0; i < TENSORS; i++)
        tell_other(set, operations[0], part->tensors[i], tensors[i]);
    cek__cudnn_tell(set, operations[0], part->alpha, CUDNN_TYPE_FLOAT, 1, &one);
    cek__cudnn_tell(set, operations[0], part->beta, CUDNN_TYPE_FLOAT, 1, &w->beta);
    cek__cudnn_finish(set, operations[0]);
    if (chain) {
        const cek__cudnn_extents *is = &p->tensors[part->result];
        cudnnBackendDescriptor_t sums = tensors[part->result],
                                 last = tensor_make(set, p, is, w->type, part->slots[part->result] + 1);
        if (w->bias) {
            cudnnBackendDescriptor_t to = w->relu ? tensor_make(set, p, is, CEK_F32, FIRST_VIRTUAL + 1) : last;
            operations[count++] = pointwise_make(set, CUDNN_POINTWISE_ADD, sums, bias_make(set, p), to);
            sums = to;
        }
        if (w->relu)
            operations[count++] = pointwise_make(set, CUDNN_POINTWISE_RELU_FWD, sums, NULL, last);
        if (w->widen)
            operations[count++] = pointwise_make(set, CUDNN_POINTWISE_IDENTITY, sums, NULL, last);
    }
    cudnnBackendDescriptor_t graph = cek__cudnn_make(set, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    cek__cudnn_tell(set, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, operations);
    if (target->handle)
        cek__cudnn_tell(set, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &target->handle);
    cek__cudnn_finish(set, graph);
    return graph;
}
