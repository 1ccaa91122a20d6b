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
#include "nn/model/compose.h"

/* Block sizes, with their reasons. */
static const struct {
    uint64_t bucket_bytes;
    uint64_t piece_bytes;
    uint64_t align_bytes;
} tune = {
    /* A bucket takes parameters until it holds this much. A transfer costs 10 to 100 us before its
     * first byte; at 10 to 50 GB/s 4 MiB take 80 to 400 us, so smaller ones would mostly wait, and
     * larger ones would start later in backward. */
    .bucket_bytes = 4 << 20,
    /* Larger weights of linear layers are cut, and a bucket is no larger either. OpenCL devices give a quarter of their
     * memory at once: who has 400 MiB has room for such pieces. The weights of the networks that come with us are
     * smaller (98 MiB), and stay one product. */
    .piece_bytes = 100 << 20,
    /* Offsets of operands, which a piece's rows shift along other operands too. */
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
    for (size_t i = 0; i < layout->piece_of[layout->parameter_count]; i++) {
        size_t bucket = layout->placement[i].bucket, parameter = layout->placement[i].parameter;

        if (layout->forward_count > 0 && bucket >= layout->forward_reads[layout->forward_count - 1])
            continue;
        if (layout->forward_count == 0 || model->parameters[parameter].node != node)
            layout->forward_count++;
        node = model->parameters[parameter].node;
        layout->forward_reads[layout->forward_count - 1] = bucket;
    }
    return CEK_OK;
out:
    return st;
}

/* Elements of each piece of a parameter but the last, which has what is left: rows that are a multiple of `align`, as
 * equal as that allows. */
static uint64_t piece_elements(const cek_model *model, size_t parameter, uint64_t most, uint64_t align)
{
    const cek_parameter *p = &model->parameters[parameter].public;
    uint64_t count = (uint64_t)p->count, rows, columns, each, pieces;

    if (count <= most || !cek__model_is_divisible(model, parameter))
        return count;
    rows = (uint64_t)p->shape[0];
    columns = (uint64_t)p->shape[1];
    each = most / columns / align * align;
    each = each ? each : align;
    pieces = (rows + each - 1) / each;
    each = (rows + pieces - 1) / pieces;
    each = (each + align - 1) / align * align;
    return (each < rows ? each : rows) * columns;
}

static cek_status pieces_cut(cek__layout *layout, const cek_model *model, uint64_t most, uint64_t align)
{
    cek_status st;
    size_t count = 0;

    CEK_TRY(cek__calloc(layout->parameter_count + 1, sizeof *layout->piece_of, &layout->piece_of));
    for (size_t i = 0; i < layout->parameter_count; i++) {
        uint64_t elements = (uint64_t)model->parameters[i].public.count, each = piece_elements(model, i, most, align);

        count += (elements + each - 1) / each;
        layout->piece_of[i + 1] = count;
    }
    CEK_TRY(cek__calloc(count, sizeof *layout->placement, &layout->placement));
    for (size_t i = 0; i < layout->parameter_count; i++) {
        uint64_t elements = (uint64_t)model->parameters[i].public.count, each = piece_elements(model, i, most, align),
                 at = 0;

        for (size_t k = layout->piece_of[i]; k < layout->piece_of[i + 1]; k++, at += each)
            layout->placement[k] =
                (cek__placement){ .parameter = i, .at = at, .count = elements - at < each ? elements - at : each };
    }
    return CEK_OK;
out:
    return st;
}

/* What has rounded copies behind the rest of its bucket; else in the same order. */
static void pieces_place(cek__layout *layout, uint64_t align)
{
    uint64_t exact = 0, rounded = 0;

    for (size_t i = layout->piece_of[layout->parameter_count], bucket = SIZE_MAX; i-- > 0;) {
        cek__placement *p = &layout->placement[i];
        uint64_t *next = layout->rounded[p->parameter] ? &rounded : &exact;

        if (p->bucket != bucket) {
            bucket = p->bucket;
            exact = 0;
            rounded = layout->bucket_exact[bucket];
        }
        p->first = *next;
        *next += (p->count + align - 1) / align * align;
    }
}

/* From the last piece of the last parameter to the first of the first. */
static cek_status buckets_fill(cek__layout *layout, uint64_t most, uint64_t align)
{
    cek_status st;
    size_t count = layout->piece_of[layout->parameter_count];

    CEK_TRY(cek__calloc(count, sizeof *layout->bucket_elements, &layout->bucket_elements)); /* one each at most */
    CEK_TRY(cek__calloc(count, sizeof *layout->bucket_exact, &layout->bucket_exact));
    for (size_t i = count; i-- > 0;) {
        cek__placement *p = &layout->placement[i];
        uint64_t padded = (p->count + align - 1) / align * align;
        uint64_t used = layout->bucket_count ? layout->bucket_elements[layout->bucket_count - 1] : 0;

        if (layout->bucket_count == 0 || used * type_bytes(layout->type) >= tune.bucket_bytes || used + padded > most)
            layout->bucket_count++;
        p->bucket = layout->bucket_count - 1;
        layout->bucket_elements[p->bucket] += padded;
        layout->bucket_exact[p->bucket] += layout->rounded[p->parameter] ? 0 : padded;
    }
    pieces_place(layout, align);
    return CEK_OK;
out:
    return st;
}

cek_status cek__layout_create_cut(const cek_model *model, cek_dtype type, uint64_t piece_bytes, cek__layout **out)
{
    cek_status st;
    cek__layout *layout = NULL;
    uint64_t most, align;

    *out = NULL;
    if (type != CEK_F32 && type != CEK_F64 && type != CEK_BF16 && type != CEK_F16)
        CEK_FAIL(CEK_UNSUPPORTED, "layout: computing in type %u: f32, f64, bf16 and f16 are offered", type);
    CEK_TRY(cek__calloc(1, sizeof *layout, &layout));
    layout->low = type == CEK_BF16 || type == CEK_F16 ? type : CEK_DTYPE_NONE;
    layout->type = layout->low ? CEK_F32 : type;
    layout->parameter_count = model->parameter_count;
    most = piece_bytes / type_bytes(layout->type);
    align = tune.align_bytes / cek_dtype_bytes(cek__layout_computes(layout));
    CEK_TRY(cek__calloc(model->parameter_count, sizeof *layout->image, &layout->image));
    CEK_TRY(cek__calloc(model->parameter_count, sizeof *layout->rounded, &layout->rounded));
    CEK_TRY(cek__model_images(model, layout->low, layout->image, layout->rounded));
    CEK_TRY(pieces_cut(layout, model, most, align));
    CEK_TRY(buckets_fill(layout, most, align));
    CEK_TRY(forward_cut(layout, model));
    *out = layout;
    return CEK_OK;
out:
    cek__layout_free(layout);
    return st;
}

cek_status cek__layout_create(const cek_model *model, cek_dtype type, cek__layout **out)
{
    return cek__layout_create_cut(model, type, tune.piece_bytes, out);
}

void cek__layout_free(cek__layout *layout)
{
    if (!layout)
        return;
    free(layout->placement);
    free(layout->image);
    free(layout->piece_of);
    free(layout->bucket_elements);
    free(layout->bucket_exact);
    free(layout->rounded);
    free(layout->forward_reads);
    free(layout);
}

uint64_t cek__layout_bucket_bytes(const cek__layout *layout, size_t bucket)
{
    return layout->bucket_elements[bucket] * type_bytes(layout->type);
}

uint64_t cek__layout_rounded_bytes(const cek__layout *layout, size_t bucket)
{
    return (layout->bucket_elements[bucket] - layout->bucket_exact[bucket]) * sizeof(uint16_t);
}

cek__halves cek__layout_halves(const cek__layout *layout, size_t bucket, uint64_t first, uint64_t end)
{
    const uint64_t from = layout->bucket_exact[bucket], middle = end < from ? end : first > from ? first : from;

    return (cek__halves){ .exact = middle - first,
                          .rounded = end - middle,
                          .rounded_first = middle < from ? 0 : middle - from };
}

/* ---- conversion ---- */

/* [outer][a][b] in PyTorch's order is [outer][b][a] on the device. */
typedef struct order {
    int64_t outer, a, b;
} order;

static order parameter_order(const cek__layout *layout, size_t parameter)
{
    int64_t count = (int64_t)cek__layout_elements(layout, parameter);
    cek__image image = layout->image[parameter];

    return image.channels ? (order){ count / (image.channels * image.pixels), image.channels, image.pixels }
                          : (order){ count, 1, 1 };
}

/* Of a piece: whole [a][b]s of it. */
static order piece_order(const cek__layout *layout, const cek__placement *piece)
{
    order o = parameter_order(layout, piece->parameter);

    o.outer = (int64_t)piece->count / (o.a * o.b);
    return o;
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
    for (size_t i = 0; i < layout->piece_of[layout->parameter_count]; i++) {
        const cek__placement *place = &layout->placement[i];
        const float *data = model->parameters[place->parameter].public.data + place->at;
        order o = piece_order(layout, place);

        if (place->bucket != bucket)
            continue;
        if (layout->type == CEK_F64)
            reorder_f32_f64(data, (double *)dst + place->first, o);
        else
            reorder_f32_f32(data, (float *)dst + place->first, o);
    }
}

void cek__layout_unpack(const cek__layout *layout, cek_model *model, size_t bucket, const void *src)
{
    for (size_t i = 0; i < layout->piece_of[layout->parameter_count]; i++) {
        const cek__placement *place = &layout->placement[i];
        float *data = model->parameters[place->parameter].public.data + place->at;
        order o = inverse(piece_order(layout, place));

        if (place->bucket != bucket)
            continue;
        if (layout->type == CEK_F64)
            reorder_f64_f32((const double *)src + place->first, data, o);
        else
            reorder_f32_f32((const float *)src + place->first, data, o);
    }
}

void cek__layout_unpack_one(const cek__layout *layout, size_t parameter, const void *src, double *dst)
{
    order o = inverse(parameter_order(layout, parameter));

    if (layout->type == CEK_F64)
        reorder_f64_f64(src, dst, o);
    else
        reorder_f32_f64(src, dst, o);
}

void cek__layout_pack_one(const cek__layout *layout, size_t parameter, const double *src, void *dst)
{
    order o = parameter_order(layout, parameter);

    if (layout->type == CEK_F64)
        reorder_f64_f64(src, dst, o);
    else
        reorder_f64_f32(src, dst, o);
}
