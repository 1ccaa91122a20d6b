/* SPDX-License-Identifier: MIT
 *
 * fake_cudnn_graph.c - reads descriptors of the fake cuDNN: tensors, windows, convolutions and what is fused behind
 * them. Nothing is believed: what is missing, of another kind, unfinished or of a size that does not fit ends the
 * program.
 */
#include <string.h>

#include "tests/cuda/fake_cudnn.h"

/* --- attributes ------------------------------------------------------------------------------------------------ */

/* Alive, and of that kind. */
object *dnn_object_of(void *descriptor, uint32_t type)
{
    object *o = descriptor;
    if (!o || o->life != ALIVE)
        DIE("a descriptor of kind %u is used after its end", type);
    if (o->type != type)
        DIE("a descriptor of kind %u where one of %u belongs", o->type, type);
    return o;
}

const attribute *dnn_attribute_find(const object *o, uint32_t name)
{
    for (uint32_t i = 0; i < o->count; i++)
        if (o->attributes[i].name == name)
            return &o->attributes[i];
    return NULL;
}

const attribute *dnn_attribute_of(const object *o, uint32_t name)
{
    const attribute *a = dnn_attribute_find(o, name);
    if (!a)
        DIE("a descriptor of kind %u was not told its attribute %u", o->type, name);
    return a;
}

uint32_t dnn_number_of(const object *o, uint32_t name)
{
    return *(const uint32_t *)dnn_attribute_of(o, name)->values;
}

const int64_t *dnn_ints_of(const object *o, uint32_t name)
{
    return dnn_attribute_of(o, name)->values;
}

float dnn_float_of(const object *o, uint32_t name)
{
    return *(const float *)dnn_attribute_of(o, name)->values;
}

object *dnn_other_of(const object *o, uint32_t name, uint32_t type)
{
    object *other = dnn_object_of(*(void **)dnn_attribute_of(o, name)->values, type);
    if (!other->finished)
        DIE("attribute %u is a descriptor that was not finished", name);
    return other;
}

/* --- tensors and windows, read --------------------------------------------------------------------------------- */

tensor dnn_tensor_read(const object *o)
{
    const attribute *sizes = dnn_attribute_of(o, CUDNN_ATTR_TENSOR_DIMENSIONS),
                    *strides = dnn_attribute_of(o, CUDNN_ATTR_TENSOR_STRIDES);
    const attribute *is_virtual = dnn_attribute_find(o, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
    const int64_t rank = sizes->count;
    tensor t = { .number = *dnn_ints_of(o, CUDNN_ATTR_TENSOR_UNIQUE_ID),
                 .align = *dnn_ints_of(o, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT),
                 .type = dnn_number_of(o, CUDNN_ATTR_TENSOR_DATA_TYPE),
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

static void window_row(const object *o, uint32_t name, int64_t spatial, int64_t missing, int64_t to[3])
{
    const attribute *a = dnn_attribute_of(o, name);
    if (a->count != spatial)
        DIE("a window of %lld dimensions is told %lld", (long long)spatial, (long long)a->count);
    to[0] = missing;
    memcpy(to + 3 - spatial, a->values, (size_t)spatial * sizeof *to);
}

window dnn_window_read(const object *o)
{
    const int64_t spatial = *dnn_ints_of(o, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
    window w;
    if (dnn_number_of(o, CUDNN_ATTR_CONVOLUTION_COMP_TYPE) != CUDNN_DATA_FLOAT ||
        dnn_number_of(o, CUDNN_ATTR_CONVOLUTION_CONV_MODE) != CUDNN_CROSS_CORRELATION || spatial < 2 || spatial > 3)
        DIE("a window of another kind");
    window_row(o, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, spatial, 1, w.stride);
    window_row(o, CUDNN_ATTR_CONVOLUTION_DILATIONS, spatial, 1, w.dilation);
    window_row(o, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, spatial, 0, w.before);
    window_row(o, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, spatial, 0, w.behind);
    return w;
}

/* --- operations, read ------------------------------------------------------------------------------------------ */

bool dnn_convolution_read(const object *o, convolution *c)
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
        c->alpha = dnn_float_of(o, kinds[k].alpha);
        c->beta = dnn_float_of(o, kinds[k].alpha + 1);
        c->window = dnn_window_read(dnn_other_of(o, kinds[k].alpha + 2, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR));
        for (int i = 0; i < 3; i++)
            c->tensors[i] = dnn_tensor_read(dnn_other_of(o, kinds[k].names[i], CUDNN_BACKEND_TENSOR_DESCRIPTOR));
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

graph dnn_graph_read(const object *o)
{
    const attribute *operations = dnn_attribute_of(o, CUDNN_ATTR_OPERATIONGRAPH_OPS);
    void *const *list = operations->values;
    graph g = { .count = (int)operations->count - 1 };
    if (g.count > 3 || !dnn_convolution_read(list[0], &g.conv))
        DIE("a graph that does not begin with a convolution");
    g.last = g.conv.tensors[g.conv.result];
    for (int i = 0; i < g.count; i++) {
        object *operation = dnn_object_of(list[1 + i], CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
        object *how = dnn_other_of(operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
                                   CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
        g.after[i].mode = dnn_number_of(how, CUDNN_ATTR_POINTWISE_MODE);
        const attribute *nan = dnn_attribute_find(how, CUDNN_ATTR_POINTWISE_NAN_PROPAGATION);
        g.after[i].keeps_nan = nan && *(const uint32_t *)nan->values == CUDNN_PROPAGATE_NAN;
        if (dnn_number_of(how, CUDNN_ATTR_POINTWISE_MATH_PREC) != CUDNN_DATA_FLOAT)
            DIE("pointwise operations in another type than f32");
        g.after[i].x = dnn_tensor_read(dnn_other_of(operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
                                                    CUDNN_BACKEND_TENSOR_DESCRIPTOR));
        g.after[i].y = dnn_tensor_read(dnn_other_of(operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
                                                    CUDNN_BACKEND_TENSOR_DESCRIPTOR));
        if (g.after[i].mode == CUDNN_POINTWISE_ADD)
            g.after[i].b = dnn_tensor_read(dnn_other_of(operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                                                        CUDNN_BACKEND_TENSOR_DESCRIPTOR));
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
