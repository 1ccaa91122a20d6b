/* SPDX-License-Identifier: MIT
 *
 * fake_cudnn.c - a cuDNN that computes what its descriptors say, on the fake driver's streams.
 *
 * It believes nothing: attributes must exist and have their type, descriptors be finished before they are used and
 * alive while they are, sizes must fit, addresses be those and as aligned as was said, first runs not be captured,
 * nothing be left when the last handle goes. As the real one it takes operands of one type, and results of another
 * only through a fused copy. Its heuristics name, best first: one that rounds f32 operands, one that cannot be
 * finished, Winograd (inexact), one whose sums come in another order every time; and, where it is asked for any, the
 * right one. FAKE_CUDNN: words that change it - nofuse, norelunan, none, nostart, noexecute, old; wrong: one result
 * is off by one.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/common/half.h"
#include "backends/cuda/cudnn.h"
#include "tests/cuda/fake.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"  /* of functions that are found by name alone */

enum { WORKSPACE = 5000, ENGINES = 5, ATTRIBUTES = 12, ALIVE = 0x600d, DEAD = 0xdead };
enum { ENGINE_ROUNDS = 11, ENGINE_BROKEN, ENGINE_WINOGRAD, ENGINE_UNORDERED, ENGINE_RIGHT };

#define DIE(...)                                      \
    do {                                              \
        fprintf(stderr, "fake cuDNN: " __VA_ARGS__);  \
        fputc('\n', stderr);                          \
        abort();                                      \
    } while (0)

typedef struct attribute {
    uint32_t name, type;
    int64_t count;
    void *values;
} attribute;

typedef struct object {
    uint32_t life, type;
    bool finished;
    uint32_t count;
    attribute attributes[ATTRIBUTES];
    struct object *graph;  /* of configurations and engines */
    int engine;
    atomic_uint runs;      /* of plans */
} object;

struct cudnnContext {
    CUstream stream;
    bool stream_set;
};

static atomic_int handles, objects;

static bool told(const char *word)
{
    const char *words = getenv("FAKE_CUDNN");
    return words && strstr(words, word);
}

/* --- attributes ------------------------------------------------------------------------------------------------ */

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

static size_t element_bytes(uint32_t type)
{
    switch (type) {
    case CUDNN_TYPE_BOOLEAN: return sizeof(bool);
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
        return 8;
    default: return 4;
    }
}

/* Alive, and of that kind. */
static object *object_of(void *descriptor, uint32_t type)
{
    object *o = descriptor;
    if (!o || o->life != ALIVE)
        DIE("a descriptor of kind %u is used after its end", type);
    if (o->type != type)
        DIE("a descriptor of kind %u where one of %u belongs", o->type, type);
    return o;
}

static const attribute *attribute_find(const object *o, uint32_t name)
{
    for (uint32_t i = 0; i < o->count; i++)
        if (o->attributes[i].name == name)
            return &o->attributes[i];
    return NULL;
}

static const attribute *attribute_of(const object *o, uint32_t name)
{
    const attribute *a = attribute_find(o, name);
    if (!a)
        DIE("a descriptor of kind %u was not told its attribute %u", o->type, name);
    return a;
}

static uint32_t number_of(const object *o, uint32_t name)
{
    return *(const uint32_t *)attribute_of(o, name)->values;
}

static const int64_t *ints_of(const object *o, uint32_t name)
{
    return attribute_of(o, name)->values;
}

static float float_of(const object *o, uint32_t name)
{
    return *(const float *)attribute_of(o, name)->values;
}

static object *other_of(const object *o, uint32_t name, uint32_t type)
{
    object *other = object_of(*(void **)attribute_of(o, name)->values, type);
    if (!other->finished)
        DIE("attribute %u is a descriptor that was not finished", name);
    return other;
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
    object *o = object_of(descriptor, ((object *)descriptor)->type);
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

/* --- tensors and windows, read --------------------------------------------------------------------------------- */

/* Always with three spatial dimensions: a missing first one is 1. */
typedef struct tensor {
    int64_t number, align, sizes[5], strides[5], elements;
    uint32_t type;
    bool is_virtual;
} tensor;

static tensor tensor_read(const object *o)
{
    const attribute *sizes = attribute_of(o, CUDNN_ATTR_TENSOR_DIMENSIONS),
                    *strides = attribute_of(o, CUDNN_ATTR_TENSOR_STRIDES);
    const attribute *is_virtual = attribute_find(o, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
    const int64_t rank = sizes->count;
    tensor t = { .number = *ints_of(o, CUDNN_ATTR_TENSOR_UNIQUE_ID),
                 .align = *ints_of(o, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT),
                 .type = number_of(o, CUDNN_ATTR_TENSOR_DATA_TYPE),
                 .is_virtual = is_virtual && *(const bool *)is_virtual->values,
                 .elements = 1 };
    if (strides->count != rank || rank < 4 || rank > 5)
        DIE("a tensor of %lld dimensions and %lld strides", (long long)rank, (long long)strides->count);
    for (int64_t i = 0; i < 5; i++) {
        int64_t from = i < 2 ? i : i - (5 - rank);
        bool missing = rank == 4 && i == 2;
        t.sizes[i] = missing ? 1 : ((const int64_t *)sizes->values)[from];
        t.strides[i] = missing ? 0 : ((const int64_t *)strides->values)[from];
        t.elements *= t.sizes[i];
        if (t.sizes[i] < 1 || t.strides[i] < 0)
            DIE("a tensor with dimension %lld", (long long)t.sizes[i]);
    }
    return t;
}

typedef struct window {
    int64_t stride[3], dilation[3], before[3], behind[3];
} window;

static void window_row(const object *o, uint32_t name, int64_t spatial, int64_t missing, int64_t to[3])
{
    const attribute *a = attribute_of(o, name);
    if (a->count != spatial)
        DIE("a window of %lld dimensions is told %lld", (long long)spatial, (long long)a->count);
    to[0] = missing;
    memcpy(to + 3 - spatial, a->values, (size_t)spatial * sizeof *to);
}

static window window_read(const object *o)
{
    const int64_t spatial = *ints_of(o, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
    window w;
    if (number_of(o, CUDNN_ATTR_CONVOLUTION_COMP_TYPE) != CUDNN_DATA_FLOAT ||
        number_of(o, CUDNN_ATTR_CONVOLUTION_CONV_MODE) != CUDNN_CROSS_CORRELATION || spatial < 2 || spatial > 3)
        DIE("a window of another kind");
    window_row(o, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, spatial, 1, w.stride);
    window_row(o, CUDNN_ATTR_CONVOLUTION_DILATIONS, spatial, 1, w.dilation);
    window_row(o, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, spatial, 0, w.before);
    window_row(o, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, spatial, 0, w.behind);
    return w;
}

/* --- operations, read ------------------------------------------------------------------------------------------ */

enum { IMAGE, WEIGHTS, OUT };
typedef struct convolution {
    window window;
    tensor tensors[3];
    int result;
    float alpha, beta;
} convolution;

static bool convolution_read(const object *o, convolution *c)
{
    static const struct {
        uint32_t type, alpha, names[3];
        int result;
    } kinds[] = {
        { CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
          { CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y },
          OUT },
        { CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
          { CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY },
          IMAGE },
        { CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          { CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY },
          WEIGHTS },
    };
    for (size_t k = 0; k < 3; k++) {
        if (kinds[k].type != o->type)
            continue;
        c->result = kinds[k].result;
        c->alpha = float_of(o, kinds[k].alpha);
        c->beta = float_of(o, kinds[k].alpha + 1);
        c->window = window_read(other_of(o, kinds[k].alpha + 2, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR));
        for (int i = 0; i < 3; i++)
            c->tensors[i] = tensor_read(other_of(o, kinds[k].names[i], CUDNN_BACKEND_TENSOR_DESCRIPTOR));
        return true;
    }
    return false;
}

static void convolution_check(const convolution *c)
{
    const int64_t *in = c->tensors[IMAGE].sizes, *w = c->tensors[WEIGHTS].sizes, *out = c->tensors[OUT].sizes;
    if (in[0] != out[0] || w[0] != out[1] || in[1] % w[1] || out[1] % (in[1] / w[1]))
        DIE("batch or channels do not fit");
    for (int i = 0; i < 3; i++)
        if ((in[2 + i] + c->window.before[i] + c->window.behind[i] - c->window.dilation[i] * (w[2 + i] - 1) - 1) /
                    c->window.stride[i] +
                1 !=
            out[2 + i])
            DIE("the output has not the size that the window gives");
}

/* --- graphs ---------------------------------------------------------------------------------------------------- */

typedef struct graph {
    convolution conv;
    int count;  /* of pointwise operations behind it */
    struct {
        uint32_t mode;
        tensor x, b, y;
    } after[3];
    tensor last;
} graph;

static graph graph_read(const object *o)
{
    const attribute *operations = attribute_of(o, CUDNN_ATTR_OPERATIONGRAPH_OPS);
    void *const *list = operations->values;
    graph g = { .count = (int)operations->count - 1 };
    if (g.count > 3 || !convolution_read(list[0], &g.conv))
        DIE("a graph that does not begin with a convolution");
    g.last = g.conv.tensors[g.conv.result];
    for (int i = 0; i < g.count; i++) {
        object *operation = object_of(list[1 + i], CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
        object *how =
            other_of(operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
        g.after[i].mode = number_of(how, CUDNN_ATTR_POINTWISE_MODE);
        if (number_of(how, CUDNN_ATTR_POINTWISE_MATH_PREC) != CUDNN_DATA_FLOAT)
            DIE("pointwise operations in another type than f32");
        g.after[i].x =
            tensor_read(other_of(operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_BACKEND_TENSOR_DESCRIPTOR));
        g.after[i].y =
            tensor_read(other_of(operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_BACKEND_TENSOR_DESCRIPTOR));
        if (g.after[i].mode == CUDNN_POINTWISE_ADD)
            g.after[i].b = tensor_read(
                other_of(operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_BACKEND_TENSOR_DESCRIPTOR));
        if (g.after[i].x.number != g.last.number || !g.last.is_virtual || g.last.type != CUDNN_DATA_FLOAT)
            DIE("what is fused does not follow in f32");
        if (memcmp(g.after[i].y.sizes, g.last.sizes, sizeof g.last.sizes))
            DIE("what is fused has another size");
        g.last = g.after[i].y;
    }
    if (g.last.is_virtual)
        DIE("the last result is virtual");
    convolution_check(&g.conv);
    return g;
}

/* What there are engines for. */
static bool is_supported(const graph *g)
{
    const uint32_t type = g->conv.tensors[g->conv.result == IMAGE ? OUT : IMAGE].type;
    for (int i = 0; i < 3; i++)
        if (g->conv.tensors[i].type != type && !g->conv.tensors[i].is_virtual)
            return false;
    if (told("none") || (g->count && told("nofuse")) || (g->count && g->conv.beta != 0))
        return false;
    return true;
}

static void pack_check(const object *o)
{
    const attribute *numbers = attribute_of(o, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    if (attribute_of(o, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)->count != numbers->count)
        DIE("numbers and addresses are not as many");
    attribute_of(o, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
}

FAKE_API cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor)
{
    object *o = object_of(descriptor, ((object *)descriptor)->type);
    convolution c;
    if (o->finished)
        DIE("a descriptor is finished twice");
    o->finished = true;
    switch (o->type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR: (void)tensor_read(o); break;
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR: (void)window_read(o); break;
    case CUDNN_BACKEND_POINTWISE_DESCRIPTOR: attribute_of(o, CUDNN_ATTR_POINTWISE_MODE); break;
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR: break;  /* seen with its graph */
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
        attribute_of(o, CUDNN_ATTR_OPERATIONGRAPH_HANDLE);
        (void)graph_read(o);
        break;
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
        attribute_of(o, CUDNN_ATTR_ENGINEHEUR_MODE);
        o->graph = other_of(o, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
        break;
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: {
        object *config = other_of(o, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
        attribute_of(o, CUDNN_ATTR_EXECUTION_PLAN_HANDLE);
        o->engine = config->engine;
        o->graph = config->graph;
        return config->engine == ENGINE_BROKEN ? CUDNN_STATUS_NOT_SUPPORTED : CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR: pack_check(o); break;
    default:
        if (!convolution_read(o, &c))
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
    graph g = graph_read(heuristics->graph);
    const bool fallback = number_of(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_FALLBACK;
    *count = !is_supported(&g) ? 0 : fallback ? 1 : ENGINES - 1;
    for (int64_t i = 0; i < *count && i < wanted; i++) {
        object *config = object_of(((void **)values)[i], CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
        config->graph = heuristics->graph;
        config->engine = fallback ? ENGINE_RIGHT : ENGINE_ROUNDS + (int)i;
        config->finished = true;
    }
}

FAKE_API cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                                cudnnBackendAttributeType_t type, int64_t wanted, int64_t *count,
                                                void *values)
{
    object *o = object_of(descriptor, ((object *)descriptor)->type);
    char text[64];
    (void)type;
    if (!o->finished)
        DIE("attribute %u of a descriptor that is not finished is asked for", name);
    *count = 1;
    switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
        results_get(object_of(o, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR), wanted, count, values);
        return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINECFG_ENGINE: {
        object *engine = object_of(*(void **)values, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
        engine->engine = object_of(o, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)->engine;
        engine->finished = true;
        return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
        *(int64_t *)values = object_of(o, CUDNN_BACKEND_ENGINE_DESCRIPTOR)->engine;
        return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
        *count = notes_of(object_of(o, CUDNN_BACKEND_ENGINE_DESCRIPTOR)->engine, values);
        return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
        *(int64_t *)values = WORKSPACE;
        return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION:
        *count = snprintf(text, sizeof text, "{\"graph\":{},\"engine\":{\"engineId\":%d}}", o->engine);
        if (wanted)
            memcpy(values, text, (size_t)(*count < wanted ? *count : wanted));
        return CUDNN_STATUS_SUCCESS;
    default:
        DIE("attribute %u is asked for", name);
    }
}

/* --- arithmetic ------------------------------------------------------------------------------------------------ */

typedef struct job {
    object *plan;
    unsigned run;              /* of this plan: 0, 1, ... */
    int64_t count, numbers[8];
    unsigned char *addresses[8];
    unsigned char *workspace;
} job;

static unsigned char *memory_of(const job *j, const tensor *t)
{
    for (int64_t i = 0; i < j->count; i++)
        if (j->numbers[i] == t->number)
            return j->addresses[i];
    DIE("tensor %lld has no address", (long long)t->number);
}

static double load(const unsigned char *from, uint32_t type, int64_t i)
{
    if (type == CUDNN_DATA_FLOAT)
        return ((const float *)from)[i];
    uint16_t bits = ((const uint16_t *)from)[i];
    return type == CUDNN_DATA_HALF ? cek__f16_to_f32(bits) : cek__bf16_to_f32(bits);
}

static void store(unsigned char *to, uint32_t type, int64_t i, double v)
{
    if (type == CUDNN_DATA_FLOAT)
        ((float *)to)[i] = (float)v;
    else
        ((uint16_t *)to)[i] = type == CUDNN_DATA_HALF ? cek__f64_to_f16(v) : cek__f64_to_bf16(v);
}

/* Where element (row-major) `index` lies; `of` may be smaller: it is then the same for all. */
static int64_t place(const tensor *t, const int64_t sizes[5], int64_t index)
{
    int64_t at = 0;
    for (int i = 4; i >= 0; i--) {
        at += (t->sizes[i] == 1 ? 0 : index % sizes[i]) * t->strides[i];
        index /= sizes[i];
    }
    return at;
}

static double *tensor_load(const job *j, const tensor *t)
{
    double *values = calloc((size_t)t->elements, sizeof *values);
    for (int64_t i = 0; i < t->elements; i++)
        values[i] = load(memory_of(j, t), t->type, place(t, t->sizes, i));
    return values;
}

/* What an engine makes of a factor: TF32 keeps 10 bits of fraction; a transform is off by a little. */
static double factor(const job *j, uint32_t type, double v)
{
    if (j->plan->engine == ENGINE_ROUNDS && type == CUDNN_DATA_FLOAT && v == v)
        return cek__bits_float((cek__float_bits((float)v) + 0x1000) & ~0x1fffu);
    return j->plan->engine == ENGINE_WINOGRAD ? v * (1 + 0x1p-20) : v;
}

/* Adds in f32 where the order is the point. */
static void add(const job *j, double *sum, double term)
{
    *sum += term;
    if (j->plan->engine == ENGINE_UNORDERED)
        *sum = (float)*sum;
}

static int64_t at5(const int64_t sizes[5], int64_t n, int64_t c, const int64_t s[3])
{
    return (((n * sizes[1] + c) * sizes[2] + s[0]) * sizes[3] + s[1]) * sizes[4] + s[2];
}

/* Everything that one tap of the window reads of one output position: `o` of image `n`, tap `k`. */
static void tap(const job *j, const convolution *c, double *const values[3], int64_t n, const int64_t o[3],
                const int64_t k[3])
{
    const tensor *in = &c->tensors[IMAGE], *w = &c->tensors[WEIGHTS], *out = &c->tensors[OUT];
    const int64_t in_group = w->sizes[1], groups = in->sizes[1] / in_group, out_group = out->sizes[1] / groups;
    const uint32_t type = c->tensors[c->result == IMAGE ? OUT : IMAGE].type;
    int64_t from[3];
    for (int i = 0; i < 3; i++) {
        from[i] = o[i] * c->window.stride[i] - c->window.before[i] + k[i] * c->window.dilation[i];
        if (from[i] < 0 || from[i] >= in->sizes[2 + i])
            return;
    }
    for (int64_t channel = 0; channel < out->sizes[1]; channel++)
        for (int64_t i = 0; i < in_group; i++) {
            int64_t at[3] = { at5(in->sizes, n, channel / out_group * in_group + i, from), at5(w->sizes, channel, i, k),
                              at5(out->sizes, n, channel, o) };
            int a = c->result == IMAGE ? OUT : IMAGE, b = c->result == WEIGHTS ? OUT : WEIGHTS;
            add(j, &values[c->result][at[c->result]],
                factor(j, type, values[a][at[a]]) * factor(j, type, values[b][at[b]]));
        }
}

static int64_t volume(const int64_t *sizes)
{
    return sizes[0] * sizes[1] * sizes[2];
}

static void unravel(int64_t index, const int64_t *sizes, int64_t at[3])
{
    at[2] = index % sizes[2];
    at[1] = index / sizes[2] % sizes[1];
    at[0] = index / sizes[2] / sizes[1];
}

static double *convolve(const job *j, const convolution *c)
{
    const int64_t *out = c->tensors[OUT].sizes + 2, *kernel = c->tensors[WEIGHTS].sizes + 2;
    const int64_t terms = c->tensors[OUT].sizes[0] * volume(out) * volume(kernel);
    const tensor *result = &c->tensors[c->result];
    double *values[3];
    for (int i = 0; i < 3; i++)
        values[i] = i == c->result ? calloc((size_t)result->elements, sizeof(double)) : tensor_load(j, &c->tensors[i]);
    for (int64_t t = 0; t < terms; t++) {
        int64_t index = j->plan->engine == ENGINE_UNORDERED && j->run & 1 ? terms - 1 - t : t, o[3], k[3];
        unravel(index % volume(kernel), kernel, k);
        unravel(index / volume(kernel) % volume(out), out, o);
        tap(j, c, values, index / volume(kernel) / volume(out), o, k);
    }
    for (int64_t i = 0; i < result->elements; i++) {
        double *v = &values[c->result][i];
        *v *= (double)c->alpha;
        if (c->beta != 0)
            *v += (double)c->beta * load(memory_of(j, result), result->type, place(result, result->sizes, i));
    }
    free(values[c->result == IMAGE ? OUT : IMAGE]);
    free(values[c->result == WEIGHTS ? OUT : WEIGHTS]);
    return values[c->result];
}

static double relu(double v)
{
    return v > 0 || (v != v && !told("norelunan")) ? v : 0;
}

static void job_run(void *user)
{
    const job *j = user;
    graph g = graph_read(object_of(object_of(j->plan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)->graph,
                                   CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR));
    double *values = convolve(j, &g.conv);
    for (int a = 0; a < g.count; a++)
        for (int64_t i = 0; i < g.last.elements; i++) {
            values[i] = (float)values[i];
            if (g.after[a].mode == CUDNN_POINTWISE_ADD)
                values[i] +=
                    load(memory_of(j, &g.after[a].b), g.after[a].b.type, place(&g.after[a].b, g.last.sizes, i));
            else if (g.after[a].mode == CUDNN_POINTWISE_RELU_FWD)
                values[i] = relu(values[i]);
            else if (g.after[a].mode != CUDNN_POINTWISE_IDENTITY)
                DIE("pointwise operation %u", g.after[a].mode);
        }
    if (told("wrong"))
        values[g.last.elements / 2] += 1;
    for (int64_t i = 0; i < g.last.elements; i++)
        store(memory_of(j, &g.last), g.last.type, place(&g.last, g.last.sizes, i), values[i]);
    free(values);
    memset(j->workspace, 0xa5, WORKSPACE);
}

/* --- handles and execution ------------------------------------------------------------------------------------- */

FAKE_API size_t cudnnGetVersion(void)
{
    return told("old") ? 8907 : 91900;
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
    if (told("nostart"))
        return 1001;
    *handle = calloc(1, sizeof **handle);
    handles++;
    return *handle ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

FAKE_API cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    if (!--handles && objects)
        DIE("%d descriptors are left behind", (int)objects);
    free(handle);
    return CUDNN_STATUS_SUCCESS;
}

FAKE_API cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, CUstream stream)
{
    handle->stream = stream;
    handle->stream_set = true;
    return CUDNN_STATUS_SUCCESS;
}

static void tensor_check(const job *j, const tensor *t)
{
    if (!t->is_virtual && (uintptr_t)memory_of(j, t) % (uintptr_t)t->align)
        DIE("tensor %lld is not aligned as was said", (long long)t->number);
}

FAKE_API cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t descriptor,
                                           cudnnBackendDescriptor_t pack)
{
    object *plan = object_of(descriptor, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR),
           *p = object_of(pack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    const attribute *numbers = attribute_of(p, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    fake_cuda_call_fn *call;
    fake_cuda_capturing_fn *capturing;
    *(void **)&call = driver_function("fake_cuda_call");
    *(void **)&capturing = driver_function("fake_cuda_capturing");
    if (!handle->stream_set || !plan->finished || !p->finished || numbers->count > 8)
        DIE("an execution without stream, plan or pack");
    if (told("noexecute"))
        return CUDNN_STATUS_EXECUTION_FAILED;
    job j = { .plan = plan, .run = plan->runs++, .count = numbers->count,
              .workspace = *(unsigned char **)attribute_of(p, CUDNN_ATTR_VARIANT_PACK_WORKSPACE)->values };
    memcpy(j.numbers, numbers->values, (size_t)j.count * sizeof *j.numbers);
    memcpy(j.addresses, attribute_of(p, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)->values,
           (size_t)j.count * sizeof *j.addresses);
    if (!j.run && capturing())
        DIE("the first run of a plan is inside a capture");
    if (!j.workspace || (uintptr_t)j.workspace % 256)
        DIE("the workspace is missing or not aligned");
    graph g = graph_read(object_of(plan->graph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR));
    for (int i = 0; i < 3; i++)
        tensor_check(&j, &g.conv.tensors[i]);
    for (int i = 0; i < g.count; i++) {
        if (g.after[i].mode == CUDNN_POINTWISE_ADD)
            tensor_check(&j, &g.after[i].b);
        tensor_check(&j, &g.after[i].y);
    }
    call(handle->stream, job_run, &j, sizeof j);
    return CUDNN_STATUS_SUCCESS;
}
