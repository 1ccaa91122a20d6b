/* layout.c - places parameters in buckets, and turns PyTorch's order into the devices' and back (see layout.h).
 *
 * Both conversions that exist are one: a weight seen as [outer][a][b] becomes [outer][b][a].
 *   convolution          [O][I][kh*kw]      -> [O][kh*kw][I]       NHWC images, so channels are innermost
 *   linear after flatten [out][C][H*W]      -> [out][H*W][C]       the columns follow the image's order on the device,
 *                                                                  which makes flatten free
 * Everything else is copied as it is. */
#include "nn/model/layout.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/status.h"
#include "nn/model/graph.h"

/* Block sizes, with their reasons. */
static const struct {
    uint64_t bucket_bytes;
    uint64_t align_bytes;
} tune = {
    /* A bucket takes parameters until it holds this much. A transfer costs 10 to 100 us before its
     * first byte; at 10 to 50 GB/s 4 MiB take 80 to 400 us, so smaller ones would mostly wait, and
     * larger ones would start later in backward. */
    .bucket_bytes = 4 << 20,
    /* Offsets of operands. */
    .align_bytes = CEK_ALIGNMENT,
};

static uint64_t type_bytes(cek_dtype type)
{
    return type == CEK_F64 ? 8 : 4;
}

/* A layer reads its weight and bias at once. */
static cek_status forward_cut(cek__layout *layout, const cek_model *model)
{
    cek_status st;
    int node = -1; /* that the last segment begins with */

    CEK_TRY(cek__calloc(layout->bucket_count + 1, sizeof *layout->forward_reads, &layout->forward_reads));
    layout->forward_count = layout->parameter_count == 0;
    for (size_t i = 0; i < layout->parameter_count; i++) {
        size_t bucket = layout->placement[i].bucket;

        if (layout->forward_count > 0 && bucket >= layout->forward_reads[layout->forward_count - 1])
            continue;
        if (layout->forward_count == 0 || model->parameters[i].node != node)
            layout->forward_count++;
        node = model->parameters[i].node;
        layout->forward_reads[layout->forward_count - 1] = bucket;
    }
    return CEK_OK;
out:
    return st;
}

cek_status cek__layout_create(const cek_model *model, cek_dtype type, cek__layout **out)
{
    cek_status st;
    cek__layout *layout = NULL;
    size_t count = model->parameter_count;
    uint64_t align;

    *out = NULL;
    if (type != CEK_F32 && type != CEK_F64)
        CEK_FAIL(CEK_UNSUPPORTED, "layout: parameters of type %u, they are f32 or f64", type);
    CEK_TRY(cek__calloc(1, sizeof *layout, &layout));
    layout->type = type;
    layout->parameter_count = count;
    CEK_TRY(cek__calloc(count, sizeof *layout->placement, &layout->placement));
    CEK_TRY(cek__calloc(count, sizeof *layout->bucket_elements, &layout->bucket_elements)); /* one each at most */
    align = tune.align_bytes / type_bytes(type);
    for (size_t i = count; i-- > 0;) {
        uint64_t elements = (uint64_t)model->parameters[i].public.count;
        size_t last = layout->bucket_count - 1;

        if (layout->bucket_count == 0 || cek__layout_bucket_bytes(layout, last) >= tune.bucket_bytes)
            last = layout->bucket_count++;
        layout->placement[i] = (cek__placement){ last, layout->bucket_elements[last], elements };
        layout->bucket_elements[last] += (elements + align - 1) / align * align;
    }
    CEK_TRY(forward_cut(layout, model));
    *out = layout;
    return CEK_OK;
out:
    cek__layout_free(layout);
    return st;
}

void cek__layout_free(cek__layout *layout)
{
    if (!layout)
        return;
    free(layout->placement);
    free(layout->bucket_elements);
    free(layout->forward_reads);
    free(layout);
}

uint64_t cek__layout_bucket_bytes(const cek__layout *layout, size_t bucket)
{
    return layout->bucket_elements[bucket] * type_bytes(layout->type);
}

/* ---- conversion ---- */

/* [outer][a][b] in PyTorch's order is [outer][b][a] on the device. */
typedef struct order {
    int64_t outer, a, b;
} order;

static order parameter_order(const cek_model *model, size_t index)
{
    const cek__parameter *p = &model->parameters[index];
    const cek__node *node = &model->nodes[p->node];
    const int64_t *shape = p->public.shape;

    if (node->weight == (int)index && node->layer == CEK__LAYER_CONV)
        return (order){ shape[0], shape[1], shape[2] * shape[3] };
    if (node->weight == (int)index && node->layer == CEK__LAYER_LINEAR) {
        const cek__shape *image = &model->nodes[node->input[0]].image;

        if (image->rank == 3)
            return (order){ shape[0], image->dim[0], image->dim[1] * image->dim[2] };
    }
    return (order){ p->public.count, 1, 1 };
}

/* dst [outer][b][a] = src [outer][a][b]. */
#define DEFINE_REORDER(name, src_type, dst_type)                                    \
    static void name(const src_type *restrict src, dst_type *restrict dst, order o) \
    {                                                                               \
        for (int64_t i = 0; i < o.outer; i++, src += o.a * o.b, dst += o.a * o.b)   \
            for (int64_t b = 0; b < o.b; b++)                                       \
                for (int64_t a = 0; a < o.a; a++)                                   \
                    dst[b * o.a + a] = (dst_type)src[a * o.b + b];                  \
    }
DEFINE_REORDER(reorder_f32_f32, float, float)
DEFINE_REORDER(reorder_f32_f64, float, double)
DEFINE_REORDER(reorder_f64_f32, double, float)
DEFINE_REORDER(reorder_f64_f64, double, double)

static order inverse(order o)
{
    return (order){ o.outer, o.b, o.a };
}

void cek__layout_pack(const cek__layout *layout, const cek_model *model, size_t bucket, void *dst)
{
    memset(dst, 0, cek__layout_bucket_bytes(layout, bucket));
    for (size_t i = 0; i < layout->parameter_count; i++) {
        const cek__placement *place = &layout->placement[i];
        const float *data = model->parameters[i].public.data;

        if (place->bucket != bucket)
            continue;
        if (layout->type == CEK_F64)
            reorder_f32_f64(data, (double *)dst + place->first, parameter_order(model, i));
        else
            reorder_f32_f32(data, (float *)dst + place->first, parameter_order(model, i));
    }
}

void cek__layout_unpack(const cek__layout *layout, cek_model *model, size_t bucket, const void *src)
{
    for (size_t i = 0; i < layout->parameter_count; i++) {
        const cek__placement *place = &layout->placement[i];
        float *data = model->parameters[i].public.data;

        if (place->bucket != bucket)
            continue;
        if (layout->type == CEK_F64)
            reorder_f64_f32((const double *)src + place->first, data, inverse(parameter_order(model, i)));
        else
            reorder_f32_f32((const float *)src + place->first, data, inverse(parameter_order(model, i)));
    }
}

void cek__layout_unpack_one(const cek__layout *layout, const cek_model *model, size_t parameter, const void *src,
                            double *dst)
{
    order o = inverse(parameter_order(model, parameter));

    if (layout->type == CEK_F64)
        reorder_f64_f64(src, dst, o);
    else
        reorder_f32_f64(src, dst, o);
}
