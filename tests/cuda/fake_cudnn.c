/* SPDX-License-Identifier: MIT
 *
 * fake_cudnn.c - a cuDNN that computes what its descriptors say, on the fake driver's streams.
 *
 * It believes nothing: attributes must exist and have their type, descriptors be finished before they are used and
 * alive while they are, sizes must fit, addresses be those and as aligned as was said, first runs not be captured,
 * nothing be left when the last handle goes. As the real one it takes operands of one type, and results of another
 * only through a fused copy. Its heuristics name, best first: one that rounds f32 operands, one that cannot be
 * finished, Winograd (inexact), one whose sums come in another order every time; and, where it is asked for any, the
 * right one. On the device's clock each is slower than those before it. FAKE_CUDNN: words that change it - nofuse,
 * norelunan, none, nostart, noexecute, old; reversed: each is faster than those before it; wrong: one result is off by
 * one.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "tests/cuda/fake.h"
#include "tests/cuda/fake_cudnn.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* of functions that are found by name alone */

struct cudnnContext {
    CUstream stream;
    bool stream_set;
};

static atomic_int handles, objects;

bool dnn_told(const char *word)
{
    const char *words = getenv("FAKE_CUDNN");
    return words && strstr(words, word);
}

/* --- attributes ------------------------------------------------------------------------------------------------ */

/* clang-format off */
static const struct rule {
    uint32_t object, name, type;
} rules[] = {
#define RULE(OBJECT, NAME, TYPE) { CUDNN_BACKEND_##OBJECT##_DESCRIPTOR, CUDNN_ATTR_##NAME, CUDNN_TYPE_##TYPE },
    RULE(TENSOR, TENSOR_BYTE_ALIGNMENT, INT64) RULE(TENSOR, TENSOR_DATA_TYPE, DATA_TYPE)
    RULE(TENSOR, TENSOR_DIMENSIONS, INT64)
    RULE(TENSOR, TENSOR_STRIDES, INT64) RULE(TENSOR, TENSOR_UNIQUE_ID, INT64) RULE(TENSOR, TENSOR_IS_VIRTUAL, BOOLEAN)
    RULE(CONVOLUTION, CONVOLUTION_COMP_TYPE, DATA_TYPE) RULE(CONVOLUTION, CONVOLUTION_CONV_MODE, CONVOLUTION_MODE)
    RULE(CONVOLUTION, CONVOLUTION_DILATIONS, INT64) RULE(CONVOLUTION, CONVOLUTION_FILTER_STRIDES, INT64)
    RULE(CONVOLUTION, CONVOLUTION_POST_PADDINGS, INT64) RULE(CONVOLUTION, CONVOLUTION_PRE_PADDINGS, INT64)
    RULE(CONVOLUTION, CONVOLUTION_SPATIAL_DIMS, INT64)
#define CONVOLUTION_RULES(OBJECT, PREFIX, A, B, C)                                                                \
    RULE(OBJECT, PREFIX##_ALPHA, FLOAT) RULE(OBJECT, PREFIX##_BETA, FLOAT)                                        \
    RULE(OBJECT, PREFIX##_CONV_DESC, BACKEND_DESCRIPTOR) RULE(OBJECT, PREFIX##_##A, BACKEND_DESCRIPTOR)           \
    RULE(OBJECT, PREFIX##_##B, BACKEND_DESCRIPTOR) RULE(OBJECT, PREFIX##_##C, BACKEND_DESCRIPTOR)
    CONVOLUTION_RULES(OPERATION_CONVOLUTION_FORWARD, OPERATION_CONVOLUTION_FORWARD, X, W, Y)
    CONVOLUTION_RULES(OPERATION_CONVOLUTION_BACKWARD_DATA, OPERATION_CONVOLUTION_BWD_DATA, DX, W, DY)
    CONVOLUTION_RULES(OPERATION_CONVOLUTION_BACKWARD_FILTER, OPERATION_CONVOLUTION_BWD_FILTER, X, DW, DY)
    RULE(POINTWISE, POINTWISE_MODE, POINTWISE_MODE) RULE(POINTWISE, POINTWISE_MATH_PREC, DATA_TYPE)
    RULE(POINTWISE, POINTWISE_NAN_PROPAGATION, NAN_PROPOGATION)
    RULE(OPERATION_POINTWISE, OPERATION_POINTWISE_PW_DESCRIPTOR, BACKEND_DESCRIPTOR)
    RULE(OPERATION_POINTWISE, OPERATION_POINTWISE_XDESC, BACKEND_DESCRIPTOR)
    RULE(OPERATION_POINTWISE, OPERATION_POINTWISE_BDESC, BACKEND_DESCRIPTOR)
    RULE(OPERATION_POINTWISE, OPERATION_POINTWISE_YDESC, BACKEND_DESCRIPTOR)
    RULE(OPERATIONGRAPH, OPERATIONGRAPH_HANDLE, HANDLE) RULE(OPERATIONGRAPH, OPERATIONGRAPH_OPS, BACKEND_DESCRIPTOR)
    RULE(ENGINEHEUR, ENGINEHEUR_MODE, HEUR_MODE) RULE(ENGINEHEUR, ENGINEHEUR_OPERATION_GRAPH, BACKEND_DESCRIPTOR)
    RULE(EXECUTION_PLAN, EXECUTION_PLAN_HANDLE, HANDLE)
    RULE(EXECUTION_PLAN, EXECUTION_PLAN_ENGINE_CONFIG, BACKEND_DESCRIPTOR)
    RULE(VARIANT_PACK, VARIANT_PACK_UNIQUE_IDS, INT64) RULE(VARIANT_PACK, VARIANT_PACK_DATA_POINTERS, VOID_PTR)
    RULE(VARIANT_PACK, VARIANT_PACK_WORKSPACE, VOID_PTR)
};
/* clang-format on */

static size_t element_bytes(uint32_t type)
{
    switch (type) {
    case CUDNN_TYPE_BOOLEAN: return sizeof(bool);
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR: return 8;
    default: return 4;
    }
}

FAKE_API cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                                    cudnnBackendDescriptor_t *descriptor)
{
    object *o = calloc(1, sizeof *o);
    if (!o)
        return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    o->life = ALIVE;
    o->type = type;
    *descriptor = o;
    objects++;
    return CUDNN_STATUS_SUCCESS;
}

/* What is dead stays readable, so that its use is seen. */
FAKE_API cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor)
{
    object *o = descriptor;
    if (o->life != ALIVE)
        DIE("a descriptor is destroyed twice");
    o->life = DEAD;
    for (uint32_t i = 0; i < o->count; i++)
        free(o->attributes[i].values);
    o->count = 0;
    objects--;
    return CUDNN_STATUS_SUCCESS;
}

FAKE_API cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                                cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    object *o = dnn_object_of(descriptor, ((object *)descriptor)->type);
    bool known = false;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        known |= rules[i].object == o->type && rules[i].name == name && rules[i].type == type;
    if (!known || o->finished || count < 1 || !values || o->count == ATTRIBUTES)
        DIE("attribute %u of type %u cannot be told a descriptor of kind %u%s", name, type, o->type,
            o->finished ? ", which is finished" : "");
    attribute *a = &o->attributes[o->count++];
    *a = (attribute){ name, type, count, malloc((size_t)count * element_bytes(type)) };
    memcpy(a->values, values, (size_t)count * element_bytes(type));
    return CUDNN_STATUS_SUCCESS;
}

/* --- finishing ------------------------------------------------------------------------------------------------- */

/* What there are engines for. */
static bool is_supported(const graph *g)
{
    const uint32_t type = g->conv.tensors[g->conv.result == IMAGE ? OUT : IMAGE].type;
    for (int i = 0; i < 3; i++)
        if (g->conv.tensors[i].type != type && !g->conv.tensors[i].is_virtual)
            return false;
    if (dnn_told("none") || (g->count && dnn_told("nofuse")) || (g->count && g->conv.beta != 0))
        return false;
    return true;
}

static void pack_check(const object *o)
{
    const attribute *numbers = dnn_attribute_of(o, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    if (dnn_attribute_of(o, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)->count != numbers->count)
        DIE("numbers and addresses are not as many");
    dnn_attribute_of(o, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
}

FAKE_API cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor)
{
    object *o = dnn_object_of(descriptor, ((object *)descriptor)->type);
    convolution c;
    if (o->finished)
        DIE("a descriptor is finished twice");
    o->finished = true;
    switch (o->type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR: (void)dnn_tensor_read(o); break;
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR: (void)dnn_window_read(o); break;
    case CUDNN_BACKEND_POINTWISE_DESCRIPTOR: dnn_attribute_of(o, CUDNN_ATTR_POINTWISE_MODE); break;
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR: break; /* seen with its graph */
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
        dnn_attribute_of(o, CUDNN_ATTR_OPERATIONGRAPH_HANDLE);
        (void)dnn_graph_read(o);
        break;
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
        dnn_attribute_of(o, CUDNN_ATTR_ENGINEHEUR_MODE);
        o->graph = dnn_other_of(o, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
        break;
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: {
        object *config = dnn_other_of(o, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
        dnn_attribute_of(o, CUDNN_ATTR_EXECUTION_PLAN_HANDLE);
        o->engine = config->engine;
        o->graph = config->graph;
        return config->engine == ENGINE_BROKEN ? CUDNN_STATUS_NOT_SUPPORTED : CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR: pack_check(o); break;
    default:
        if (!dnn_convolution_read(o, &c))
            DIE("a descriptor of kind %u is not to be finished", o->type);
    }
    return CUDNN_STATUS_SUCCESS;
}

/* --- answers --------------------------------------------------------------------------------------------------- */

static int64_t notes_of(int engine, uint32_t *notes)
{
    int64_t count = 0;
    if (engine == ENGINE_ROUNDS)
        notes[count++] = CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
    if (engine == ENGINE_WINOGRAD) {
        notes[count++] = CUDNN_NUMERICAL_NOTE_WINOGRAD;
        notes[count++] = CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4;
    }
    if (engine == ENGINE_UNORDERED)
        notes[count++] = CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
    return count;
}

static void results_get(object *heuristics, int64_t wanted, int64_t *count, void *values)
{
    graph g = dnn_graph_read(heuristics->graph);
    const bool fallback = dnn_number_of(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_FALLBACK;
    *count = !is_supported(&g) ? 0 : fallback ? 1 : ENGINES - 1;
    for (int64_t i = 0; i < *count && i < wanted; i++) {
        object *config = dnn_object_of(((void **)values)[i], CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
        config->graph = heuristics->graph;
        config->engine = fallback ? ENGINE_RIGHT : ENGINE_ROUNDS + (int)i;
        config->finished = true;
    }
}

FAKE_API cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                                cudnnBackendAttributeType_t type, int64_t wanted, int64_t *count,
                                                void *values)
{
    object *o = dnn_object_of(descriptor, ((object *)descriptor)->type);
    char text[64];
    (void)type;
    if (!o->finished)
        DIE("attribute %u of a descriptor that is not finished is asked for", name);
    *count = 1;
    switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
        results_get(dnn_object_of(o, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR), wanted, count, values);
        return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINECFG_ENGINE: {
        object *engine = dnn_object_of(*(void **)values, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
        engine->engine = dnn_object_of(o, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)->engine;
        engine->finished = true;
        return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
        *(int64_t *)values = dnn_object_of(o, CUDNN_BACKEND_ENGINE_DESCRIPTOR)->engine;
        return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
        *count = notes_of(dnn_object_of(o, CUDNN_BACKEND_ENGINE_DESCRIPTOR)->engine, values);
        return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE: *(int64_t *)values = WORKSPACE; return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION:
        *count = snprintf(text, sizeof text, "{\"graph\":{},\"engine\":{\"engineId\":%d}}", o->engine);
        if (wanted)
            memcpy(values, text, (size_t)(*count < wanted ? *count : wanted));
        return CUDNN_STATUS_SUCCESS;
    default: DIE("attribute %u is asked for", name);
    }
}

/* --- handles and execution ------------------------------------------------------------------------------------- */

FAKE_API size_t cudnnGetVersion(void)
{
    return dnn_told("old") ? 8907 : 91900;
}

FAKE_API const char *cudnnGetErrorString(cudnnStatus_t status)
{
    return status ? "refused" : "fine";
}

/* The fake driver that the plugin has loaded. */
static void *driver_function(const char *name)
{
    char path[4096];
    const char *folder = getenv("CEKERNELS_CUDA_PATH");
    snprintf(path, sizeof path, "%s/libcuda.so.1", folder ? folder : "");
    void *driver = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    if (!driver)
        DIE("the fake driver is not there");
    return dlsym(driver, name);
}

FAKE_API cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    fake_cuda_current_fn *current;
    *(void **)&current = driver_function("fake_cuda_current");
    if (!current())
        DIE("cudnnCreate without a context");
    if (dnn_told("nostart"))
        return 1001;
    *handle = calloc(1, sizeof **handle);
    handles++;
    return *handle ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

/* A handle that is told of another stream, or ends, may still use the one that it has. */
static void stream_check(cudnnHandle_t handle)
{
    fake_cuda_alive_fn *alive;
    *(void **)&alive = driver_function("fake_cuda_alive");
    if (handle->stream && !alive(handle->stream))
        DIE("a handle keeps a stream that was destroyed");
}

FAKE_API cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    stream_check(handle);
    if (!--handles && objects)
        DIE("%d descriptors are left behind", (int)objects);
    free(handle);
    return CUDNN_STATUS_SUCCESS;
}

FAKE_API cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, CUstream stream)
{
    stream_check(handle);
    handle->stream = stream;
    handle->stream_set = stream != NULL;
    return CUDNN_STATUS_SUCCESS;
}

static void tensor_check(const job *j, const tensor *t)
{
    if (!t->is_virtual && (uintptr_t)dnn_memory_of(j, t) % (uintptr_t)t->align)
        DIE("tensor %lld is not aligned as was said", (long long)t->number);
}

FAKE_API cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t descriptor,
                                           cudnnBackendDescriptor_t pack)
{
    object *plan = dnn_object_of(descriptor, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR),
           *p = dnn_object_of(pack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    const attribute *numbers = dnn_attribute_of(p, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    fake_cuda_call_fn *call;
    fake_cuda_capturing_fn *capturing;
    *(void **)&call = driver_function("fake_cuda_call");
    *(void **)&capturing = driver_function("fake_cuda_capturing");
    if (!handle->stream_set || !plan->finished || !p->finished || numbers->count > 8)
        DIE("an execution without stream, plan or pack");
    if (dnn_told("noexecute"))
        return CUDNN_STATUS_EXECUTION_FAILED;
    job j = { .plan = plan,
              .run = plan->runs++,
              .count = numbers->count,
              .workspace = *(unsigned char **)dnn_attribute_of(p, CUDNN_ATTR_VARIANT_PACK_WORKSPACE)->values };
    memcpy(j.numbers, numbers->values, (size_t)j.count * sizeof *j.numbers);
    memcpy(j.addresses, dnn_attribute_of(p, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)->values,
           (size_t)j.count * sizeof *j.addresses);
    *(void **)&j.spend = driver_function("fake_cuda_spend");
    if (!j.run && capturing())
        DIE("the first run of a plan is inside a capture");
    if (!j.workspace || (uintptr_t)j.workspace % 256)
        DIE("the workspace is missing or not aligned");
    graph g = dnn_graph_read(dnn_object_of(plan->graph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR));
    for (int i = 0; i < 3; i++)
        tensor_check(&j, &g.conv.tensors[i]);
    for (int i = 0; i < g.count; i++) {
        if (g.after[i].mode == CUDNN_POINTWISE_ADD)
            tensor_check(&j, &g.after[i].b);
        tensor_check(&j, &g.after[i].y);
    }
    call(handle->stream, dnn_job_run, &j, sizeof j);
    return CUDNN_STATUS_SUCCESS;
}
