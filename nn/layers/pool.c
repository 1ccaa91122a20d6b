/* pool.c - the maximum or mean of windows. */
#include "core/base/options.h"
#include "core/base/status.h"
#include "nn/layers/pooling.h"
#include "nn/layers/window.h"

/* Fills in what is left out, by the input. */
static cek_status layer_check(const cek__layer *l, cek_pool2d_layer *p)
{
    cek_status st;
    const int64_t *in = l->in.size + 1;
    char text[CEK__SHAPE_TEXT];

    CEK_TRY(cek__image_wanted(l));
    cek__dims_text(&l->in, text);
    if (p->mode != CEK_POOL_MAX && p->mode != CEK_POOL_AVERAGE)
        CEK_FAIL(CEK_INVALID, "mode %u is neither maximum nor average", p->mode);
    if ((p->kernel_h == 0 && in[1] > UINT32_MAX) || (p->kernel_w == 0 && in[2] > UINT32_MAX))
        CEK_FAIL(CEK_INVALID, "an input of %s is too large for a global pool", text);
    p->kernel_h = p->kernel_h ? p->kernel_h : (uint32_t)in[1];
    p->kernel_w = p->kernel_w ? p->kernel_w : (uint32_t)in[2];
    p->stride_h = p->stride_h ? p->stride_h : p->kernel_h;
    p->stride_w = p->stride_w ? p->stride_w : p->kernel_w;
    if (p->pad_h > p->kernel_h / 2 || p->pad_w > p->kernel_w / 2)
        CEK_FAIL(CEK_INVALID, "padding %ux%u is more than half of the kernel %ux%u", p->pad_h, p->pad_w, p->kernel_h,
                 p->kernel_w);
    if (cek__window_count(in[1], p->kernel_h, p->stride_h, p->pad_h, 1) < 1 ||
        cek__window_count(in[2], p->kernel_w, p->stride_w, p->pad_w, 1) < 1)
        CEK_FAIL(CEK_INVALID, "kernel %ux%u is larger than the input %s with padding %ux%u", p->kernel_h, p->kernel_w,
                 text, p->pad_h, p->pad_w);
out:
    return st;
}

static void layer_note(cek__layer *l, const cek_pool2d_layer *p)
{
    cek__layer_note(l, "%s %ux%u", p->mode == CEK_POOL_MAX ? "max" : "average", p->kernel_h, p->kernel_w);
    if (p->stride_h != p->kernel_h || p->stride_w != p->kernel_w)
        cek__note_pair(l, "stride", p->stride_h, p->stride_w, 0);
    cek__note_pair(l, "padding", p->pad_h, p->pad_w, 0);
}

cek_status cek_model_pool2d(cek_model *model, int input, const cek_pool2d_layer *layer, int *node)
{
    cek_status st;
    cek__layer l;
    cek_pool2d_layer p = { 0 };
    cek__pooling pooling;
    int y = CEK__NOTHING;

    if (node)
        *node = -1;
    CEK__NOT_NULL(model);
    CEK__NOT_NULL(layer);
    CEK_TRY(cek__layer_begin(&l, model, "pool", 1, &input));
    CEK_TRY(cek__options_take("cek_model_pool2d", &p, sizeof p, layer));
    CEK_TRY(layer_check(&l, &p));
    layer_note(&l, &p);
    pooling = (cek__pooling){ .mode = p.mode,
                              .count_pad = true,
                              .windows = { .kernel = { p.kernel_h, p.kernel_w },
                                           .stride = { p.stride_h, p.stride_w },
                                           .pad_lo = { p.pad_h, p.pad_w },
                                           .pad_hi = { p.pad_h, p.pad_w } } };
    CEK_TRY(cek__pool(l.graph, l.x[0], &pooling, &y));
out:
    return cek__layer_end(&l, st, y, node);
}
