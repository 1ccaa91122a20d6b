/* SPDX-License-Identifier: MIT
 *
 * cudnn_plan.c - from a convolution to a plan of cuDNN's: its tensors, what is fused behind it, and which engine
 * computes it.
 *
 * Owns what is admissible: of the engines that cuDNN's heuristics name, best first, those that keep what plugin.h
 * promises (types of sums, mathematics that the request allows, order of sums where it must be fixed) and need a
 * bearable workspace. Their order is a function of descriptor, device model and library; which is fastest, cudnn_time.c
 * measures. Knows neither devices nor queues: a plan can be made for a device that is only described.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/common/hash.h"
#include "backends/cuda/cudnn.h"

#define RANK_MAX 5 /* batch, channels, three spatial dimensions */
#define WANTED 64  /* engines to choose from; the heuristics name about 40 */
#define NOTES 32
/* engines that change the layout of all operands want more for large ones */
#define WORKSPACE_MOST ((uint64_t)512 << 20)
#define ALIGNMENT 16            /* more is of no use to any engine */
#define ELEMENTS_MOST INT32_MAX /* engines count in 32 bits */
#define BIT(NOTE) (UINT64_C(1) << CUDNN_NUMERICAL_NOTE_##NOTE)

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

/* The three tensors of a convolution, by what they are to the forward one: X or DX, W or DW, Y or DY. */
enum { IMAGE, WEIGHTS, OUT, TENSORS };
enum { FIRST_VIRTUAL = 100 }; /* numbers of tensors that have no memory */

/* Dimensions in cuDNN's order: batch, channels, then space; strides say that channels lie innermost. */
typedef struct extents {
    int64_t sizes[RANK_MAX], strides[RANK_MAX];
} extents;

/* What a request says, in cuDNN's terms. A line of pixels is an image of height 1. */
typedef struct problem {
    const cek__request *request;
    int64_t spatial;
    int64_t kernel[3], stride[3], dilation[3], before[3], behind[3];
    extents tensors[TENSORS];
} problem;

static void spread(const uint64_t *from, uint32_t spatial, int64_t fill, int64_t to[3])
{
    uint32_t skip = spatial == 1;
    to[0] = fill;
    for (uint32_t i = 0; i < spatial; i++)
        to[skip + i] = (int64_t)from[i];
}

static bool extents_make(extents *to, uint64_t batch, uint64_t channels, const int64_t *sizes, int64_t spatial)
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

static bool problem_make(const cek__request *request, problem *p)
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

static cudnnBackendDescriptor_t tensor_make(cek__cudnn_set *set, const problem *p, const extents *is, cek_dtype type,
                                            int64_t number)
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

/* What is asked of the library in one call. */
typedef struct way {
    uint32_t does;
    bool bias, relu;
    bool widen;     /* the sums stay f32 though the operands are not: they go through a copy of their own */
    cek_dtype type; /* of the result */
    float beta;
} way;

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

static cudnnBackendDescriptor_t window_make(cek__cudnn_set *set, const problem *p)
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

static cudnnBackendDescriptor_t bias_make(cek__cudnn_set *set, const problem *p)
{
    const int64_t channels = (int64_t)p->request->desc.conv.out_channels;
    extents is = { { 1, channels, 1, 1, 1 }, { channels, 1, channels, channels, channels } };
    return tensor_make(set, p, &is, CEK_F32, CEK_CONV_FORWARD_BIAS + 1);
}

/* The convolution, then what is fused behind it; what passes between the two is f32 and never lies in memory. */
static cudnnBackendDescriptor_t graph_make(cek__cudnn_set *set, const problem *p, const way *w,
                                           const cek__cudnn_target *target)
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
        const extents *is = &p->tensors[part->result];
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

/* --- engines --------------------------------------------------------------------------------------------------- */

/* Notes of engines that must not do this. Tensor cores see f32 operands as TF32; "down convert" may mean f16, whose
 * range is too small whatever the precision; of the transforms, those with large tiles lose more than plugin.h's
 * bound allows. */
static uint64_t notes_forbidden(const cek__request *request)
{
    const cek_op_desc *op = &request->desc.op;
    const uint64_t winograd = BIT(WINOGRAD) | BIT(WINOGRAD_TILE_4x4) | BIT(WINOGRAD_TILE_6x6) |
                              BIT(WINOGRAD_TILE_13x13);
    uint64_t notes = BIT(DOWN_CONVERT_INPUTS) | BIT(REDUCED_PRECISION_REDUCTION) | BIT(FFT) | BIT(WINOGRAD_TILE_13x13);
    const bool f32 = request->desc.conv.x_type == CEK_F32;
    if (f32 && op->math != CEK_MATH_TF32 && op->math != CEK_MATH_FAST)
        notes |= BIT(TENSOR_CORE);
    if (!f32 || op->math == CEK_MATH_STRICT)
        notes |= winograd;
    if (op->flags & CEK_OP_DETERMINISTIC)
        notes |= BIT(NONDETERMINISTIC);
    return notes;
}

static bool engine_read(const struct cek__cudnn *dnn, cudnnBackendDescriptor_t config, cek__cudnn_plan *to)
{
    cudnnBackendDescriptor_t engine = NULL;
    uint32_t notes[NOTES];
    int64_t count = 0;
    if (dnn->BackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine))
        return false;
    bool read = !dnn->BackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                                          &engine) &&
                !dnn->BackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &count,
                                          &to->engine) &&
                !dnn->BackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, NOTES,
                                          &count, notes);
    (void)dnn->BackendDestroyDescriptor(engine);
    to->notes = 0;
    for (int64_t i = 0; read && i < count && i < NOTES; i++)
        to->notes |= UINT64_C(1) << (notes[i] & 63);
    return read;
}

/* Engine and knobs, as the plan tells them in its description, between what it says of graph and device and the code
 * that it may have compiled, which is another every time. */
static uint64_t choice_hash(const struct cek__cudnn *dnn, const cek__cudnn_plan *plan)
{
    uint64_t hash = cek__hash_number(CEK__HASH_START, (uint64_t)plan->engine);
    int64_t bytes = 0;
    if (dnn->BackendGetAttribute(plan->plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, 0, &bytes,
                                 NULL) ||
        bytes <= 0)
        return hash;
    char *text = calloc(1, (size_t)bytes + 1);
    if (text && !dnn->BackendGetAttribute(plan->plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                                          bytes, &bytes, text)) {
        const char *engine = strstr(text, "\"engine\":");
        hash = engine ? cek__hash(hash, engine, strcspn(engine, "}")) : hash;
    }
    free(text);
    return hash;
}

/* A plan for one configuration of an engine; false where it cannot be made here, or wants too much. */
static bool plan_try(const cek__cudnn_target *target, cudnnBackendDescriptor_t config, cek__cudnn_plan *to)
{
    const struct cek__cudnn *dnn = to->set.dnn;
    int64_t bytes = 0, count = 0;
    cudnnBackendDescriptor_t plan = NULL;
    if (dnn->BackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &plan))
        return false;
    bool made = !(target->handle ? dnn->BackendSetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE,
                                                            1, &target->handle)
                                 : dnn->BackendSetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP,
                                                            CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &target->described)) &&
                !dnn->BackendSetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                          1, &config) &&
                !dnn->BackendFinalize(plan) &&
                !dnn->BackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count,
                                          &bytes) &&
                bytes >= 0 && (uint64_t)bytes <= WORKSPACE_MOST;
    if (!made) {
        (void)dnn->BackendDestroyDescriptor(plan);
        return false;
    }
    to->plan = plan;
    to->workspace_bytes = (uint64_t)bytes;
    return true;
}

/* The configurations that the heuristics name, best first. */
static int64_t configs_get(cek__cudnn_set *set, const cek__cudnn_target *target, cudnnBackendDescriptor_t graph,
                           uint32_t mode, cudnnBackendDescriptor_t configs[WANTED])
{
    const struct cek__cudnn *dnn = set->dnn;
    cudnnBackendDescriptor_t heuristics = cek__cudnn_make(set, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    int64_t made = 0, found = 0;
    tell_other(set, heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    tell_number(set, heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
    if (!target->handle)
        tell_other(set, heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, target->described);
    cek__cudnn_finish(set, heuristics);
    while (!set->error && made < WANTED &&
           !dnn->BackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &configs[made]))
        made++;
    if (set->error || dnn->BackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                               made, &found, configs))
        found = 0;
    found = found < made ? found : made;
    while (made > found)
        (void)dnn->BackendDestroyDescriptor(configs[--made]);
    return found;
}

/* The first configuration from number *at on that may be used; it and its plan join the set, and *at is behind it. */
static bool config_choose(const cek__cudnn_target *target, const problem *p, cudnnBackendDescriptor_t graph,
                          uint32_t mode, int64_t *at, cek__cudnn_plan *to)
{
    const uint64_t forbidden = notes_forbidden(p->request);
    cudnnBackendDescriptor_t configs[WANTED];
    cek__cudnn_set *set = &to->set;
    bool made = false;
    int64_t count = configs_get(set, target, graph, mode, configs), first = *at;
    for (int64_t i = 0; i < count; i++) {
        if (!made && i >= first && engine_read(set->dnn, configs[i], to) && !(to->notes & forbidden) &&
            plan_try(target, configs[i], to)) {
            set->made[set->count++] = configs[i]; /* room is left for the two */
            set->made[set->count++] = to->plan;
            *at = i + 1;
            made = true;
        } else {
            (void)set->dnn->BackendDestroyDescriptor(configs[i]);
        }
    }
    return made;
}

/* Where none of those that are known to be fast may be used, a general one is often left. */
static bool way_try(const cek__cudnn_target *target, const problem *p, const way *w, cek__cudnn_place *place,
                    cek__cudnn_plan *to)
{
    static const uint32_t modes[] = { CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK };
    cudnnBackendDescriptor_t graph = graph_make(&to->set, p, w, target);
    const bool found_before = place->config > 0;
    for (; place->mode < 2; place->mode++) {
        if (config_choose(target, p, graph, modes[place->mode], &place->config, to))
            return true;
        if (found_before)
            break;
    }
    cek__cudnn_set_free(&to->set);
    place->mode = 0;
    return false;
}

/* --- ways ------------------------------------------------------------------------------------------------------ */

static bool given(const cek__request *request, uint32_t slot)
{
    return cek__request_given(request, slot);
}

/* Ways to the result, in the order of what they leave to other kernels. The library's ReLU and bias are plugin.h's; a
 * derivative is not (NaN passes there), other activations differ in their last bits, and what is added to afterwards
 * must not have one. */
static uint32_t ways_make(const cek__request *request, uint32_t leave, way *ways)
{
    const cek_conv_desc *desc = &request->desc.conv;
    const bool narrow = desc->x_type != CEK_F32;
    const bool relu = request->epilogue.activation == CEK_ACT_RELU && !(leave & CEK__GPU_DOES_ACTIVATION);
    const struct part *part = part_of(request);
    const float beta = cek__request_accumulates(request, part->slots[part->result]) ? 1.0f : 0.0f;
    uint32_t count = 0;
    way whole = { .does = CEK__GPU_DOES_EPILOGUE | (relu ? CEK__GPU_DOES_ACTIVATION : 0),
                  .relu = relu,
                  .type = desc->x_type,
                  .beta = beta };
    if (desc->op.kind == CEK_OP_CONV_FORWARD && (relu || !request->epilogue.activation)) {
        whole.bias = given(request, CEK_CONV_FORWARD_BIAS);
        ways[count++] = whole;
    } else if (desc->op.kind == CEK_OP_CONV_BACKWARD_DATA && !request->epilogue.act_grad) {
        ways[count++] = whole;
    } else if (desc->op.kind == CEK_OP_CONV_BACKWARD_WEIGHTS && !narrow) {
        ways[count++] = whole;
    }
    /* Sums in f32, which our own kernels finish; or which are the result as they are. Not the same graph twice. */
    if (!count || narrow || whole.relu || whole.bias || beta != 0.0f) {
        bool finished = desc->op.kind == CEK_OP_CONV_BACKWARD_WEIGHTS && beta == 0.0f;
        ways[count++] = (way){ .does = finished ? CEK__GPU_DOES_EPILOGUE : 0, .widen = narrow, .type = CEK_F32 };
    }
    return count;
}

static void plan_describe(const struct cek__cudnn *dnn, const struct part *part, const way *w, cek__cudnn_plan *to)
{
    to->does = w->does;
    for (uint32_t t = 0; t < TENSORS; t++)
        to->slots[to->slot_count++] = part->slots[t];
    if (w->bias)
        to->slots[to->slot_count++] = CEK_CONV_FORWARD_BIAS;
    to->choice = choice_hash(dnn, to);
}

cek_status cek__cudnn_plan_next(const struct cek__cudnn *dnn, const cek__cudnn_target *target,
                                const cek__request *request, uint32_t leave, cek__cudnn_place *place,
                                cek__cudnn_plan *to)
{
    const bool found_before = place->config > 0;
    problem p;
    way ways[2];
    if (!problem_make(request, &p))
        return CEK_UNSUPPORTED;
    for (uint32_t count = ways_make(request, leave, ways); place->way < count; place->way++) {
        memset(to, 0, sizeof *to);
        to->set.dnn = dnn;
        if (way_try(target, &p, &ways[place->way], place, to)) {
            plan_describe(dnn, part_of(request), &ways[place->way], to);
            return CEK_OK;
        }
        if (found_before) /* all of them do the same */
            break;
    }
    return CEK_UNSUPPORTED;
}
