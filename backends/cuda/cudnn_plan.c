/* SPDX-License-Identifier: MIT
 *
 * cudnn_plan.c - from a convolution to a plan of cuDNN's: what is asked of the library, and which engine computes it.
 *
 * Owns what is admissible: of the engines that cuDNN's heuristics name, best first, those that keep what plugin.h
 * promises (types of sums, mathematics that the request allows, order of sums where it must be fixed) and need a
 * bearable workspace. Their order is a function of descriptor, device model and library; which is fastest, cudnn_time.c
 * measures. Knows neither devices nor queues: a plan can be made for a device that is only described.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/common/hash.h"
#include "backends/cuda/cudnn_graph.h"

#define WANTED 64 /* engines to choose from; the heuristics name about 40 */
#define NOTES 32
/* engines that change the layout of all operands want more for large ones */
#define WORKSPACE_MOST ((uint64_t)512 << 20)
#define BIT(NOTE) (UINT64_C(1) << CUDNN_NUMERICAL_NOTE_##NOTE)

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
    cek__cudnn_tell(set, heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);
    cek__cudnn_tell(set, heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (!target->handle)
        cek__cudnn_tell(set, heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                        &target->described);
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
static bool config_choose(const cek__cudnn_target *target, const cek__cudnn_problem *p, cudnnBackendDescriptor_t graph,
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
static bool way_try(const cek__cudnn_target *target, const cek__cudnn_problem *p, const cek__cudnn_way *w,
                    cek__cudnn_place *place, cek__cudnn_plan *to)
{
    static const uint32_t modes[] = { CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK };
    cudnnBackendDescriptor_t graph = cek__cudnn_graph_make(&to->set, p, w, target);
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
static uint32_t ways_make(const cek__request *request, uint32_t leave, cek__cudnn_way *ways)
{
    const cek_conv_desc *desc = &request->desc.conv;
    const bool narrow = desc->x_type != CEK_F32;
    const bool relu = request->epilogue.activation == CEK_ACT_RELU && !(leave & CEK__GPU_DOES_ACTIVATION);
    const float beta = cek__request_accumulates(request, cek__cudnn_result_slot(request)) ? 1.0f : 0.0f;
    uint32_t count = 0;
    cek__cudnn_way whole = { .does = CEK__GPU_DOES_EPILOGUE | (relu ? CEK__GPU_DOES_ACTIVATION : 0),
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
        ways[count++] =
            (cek__cudnn_way){ .does = finished ? CEK__GPU_DOES_EPILOGUE : 0, .widen = narrow, .type = CEK_F32 };
    }
    return count;
}

static void plan_describe(const struct cek__cudnn *dnn, const uint32_t *slots, const cek__cudnn_way *w,
                          cek__cudnn_plan *to)
{
    to->does = w->does;
    for (uint32_t t = 0; t < CEK__CUDNN_TENSORS; t++)
        to->slots[to->slot_count++] = slots[t];
    if (w->bias)
        to->slots[to->slot_count++] = CEK_CONV_FORWARD_BIAS;
    to->choice = choice_hash(dnn, to);
}

cek_status cek__cudnn_plan_next(const struct cek__cudnn *dnn, const cek__cudnn_target *target,
                                const cek__request *request, uint32_t leave, cek__cudnn_place *place,
                                cek__cudnn_plan *to)
{
    const bool found_before = place->config > 0;
    cek__cudnn_problem p;
    cek__cudnn_way ways[2];
    if (!cek__cudnn_problem_make(request, &p))
        return CEK_UNSUPPORTED;
    for (uint32_t count = ways_make(request, leave, ways); place->way < count; place->way++) {
        memset(to, 0, sizeof *to);
        to->set.dnn = dnn;
        if (way_try(target, &p, &ways[place->way], place, to)) {
            plan_describe(dnn, cek__cudnn_slots(request), &ways[place->way], to);
            return CEK_OK;
        }
        if (found_before) /* all of them do the same */
            break;
    }
    return CEK_UNSUPPORTED;
}
