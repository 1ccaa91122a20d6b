/* pool.c - pools over one to three axes: by windows, or to a size. */
#include "core/base/options.h"
#include "core/base/status.h"
#include "nn/layers/pooling.h"
#include "nn/layers/window.h"

static cek_status mode_check(uint32_t mode)
{
    if (mode == CEK_POOL_MAX || mode == CEK_POOL_AVERAGE)
        return CEK_OK;
    return cek__fail(CEK_INVALID, "mode %u is neither maximum nor average", mode);
}

/* Fills in what is left out, by the input. */
static cek_status layer_take(const cek__layer *l, const char *call, const void *from, int axes, cek__pooling *p)
{
    cek_status st;
    cek_pool_layer given;
    char text[CEK__SHAPE_TEXT];

    CEK_TRY(cek__options_take(call, &given, sizeof given, from));
    *p = (cek__pooling){ .mode = given.mode, .ceil = given.ceil, .count_pad = !given.valid };
    CEK_TRY(mode_check(given.mode));
    for (int i = 0; i < axes; i++) {
        int64_t in = l->in.size[2 + i];

        if (given.kernel[i] == 0 && in > UINT32_MAX)
            CEK_FAIL(CEK_INVALID, "an input of %s is too large for a global pool", cek__dims_text(&l->in, text));
        p->windows.kernel[i] = given.kernel[i] ? given.kernel[i] : in;
        p->windows.stride[i] = given.stride[i] ? given.stride[i] : p->windows.kernel[i];
        p->windows.pad_lo[i] = given.pad_lo[i];
        p->windows.pad_hi[i] = given.pad_hi[i];
        p->windows.dilation[i] = given.dilation[i] ? given.dilation[i] : 1;
    }
out:
    return st;
}

/* An image's height and width. */
static cek_status image_take(const cek__layer *l, const char *call, const void *from, int axes, cek__pooling *p)
{
    cek_status st;
    cek_pool2d_layer given;

    CEK_TRY(cek__options_take(call, &given, sizeof given, from));
    return layer_take(l, call,
                      &(cek_pool_layer){ .size = sizeof(cek_pool_layer),
                                         .mode = given.mode,
                                         .kernel = { given.kernel_h, given.kernel_w },
                                         .stride = { given.stride_h, given.stride_w },
                                         .pad_lo = { given.pad_h, given.pad_w },
                                         .pad_hi = { given.pad_h, given.pad_w } },
                      axes, p);
out:
    return st;
}

static cek_status windows_fit(const cek__layer *l, const cek__pooling *p, int axes)
{
    cek_status st = CEK_OK;
    const cek__windows w = p->windows;
    char text[CEK__SHAPE_TEXT], kernel[CEK__AXES_TEXT], padding[CEK__PADDING_TEXT];

    cek__dims_text(&l->in, text);
    cek__axes_text(axes, w.kernel, kernel);
    cek__padding_text(axes, &w, padding);
    for (int i = 0; i < axes; i++) {
        const int64_t reach = cek__pool_reach(&w, i);

        if (w.pad_lo[i] > reach / 2 || w.pad_hi[i] > reach / 2)
            CEK_FAIL(CEK_INVALID, "padding %s is more than half of the kernel %s", padding, kernel);
        if (cek__window_count(&w, i, l->in.size[2 + i]) < 1)
            CEK_FAIL(CEK_INVALID, "kernel %s is larger than the input %s with padding %s", kernel, text, padding);
    }
out:
    return st;
}

static void layer_note(cek__layer *l, const cek__pooling *p, int axes)
{
    char kernel[CEK__AXES_TEXT];
    bool kernels = true;

    for (int i = 0; i < axes; i++)
        kernels &= p->windows.stride[i] == p->windows.kernel[i];
    cek__layer_note(l, "%s %s", p->mode == CEK_POOL_MAX ? "max" : "average",
                    cek__axes_text(axes, p->windows.kernel, kernel));
    if (!kernels)
        cek__note_axes(l, "stride", axes, p->windows.stride, 0);
    cek__note_axes(l, "dilation", axes, p->windows.dilation, 1);
    cek__note_padding(l, axes, &p->windows);
    if (p->ceil)
        cek__layer_note(l, ", rounded up");
}

static cek_status pool_add(cek__layer *l, const cek__pooling *p, int axes, int *y)
{
    cek_status st;

    CEK_TRY(windows_fit(l, p, axes));
    layer_note(l, p, axes);
    CEK_TRY(cek__pool(l->graph, l->x[0], p, y));
out:
    return st;
}

/* One of the calls by windows. */
typedef struct layer_call {
    const char *function;
    int axes; /* 0: as many as the input has */
    cek_status (*take)(const cek__layer *l, const char *call, const void *from, int axes, cek__pooling *p);
} layer_call;

static cek_status layer_add(cek_model *model, int input, const layer_call *call, const void *layer, int *node)
{
    cek_status st;
    cek__layer l;
    cek__pooling p;
    int axes, y = CEK__NOTHING;

    if (node)
        *node = -1;
    if (!model || !layer)
        return cek__fail(CEK_INVALID, "%s: %s is NULL", call->function, model ? "layer" : "model");
    CEK_TRY(cek__layer_begin(&l, model, "pool", 1, &input));
    CEK_TRY(cek__image_wanted(&l, call->axes, &axes));
    CEK_TRY(call->take(&l, call->function, layer, axes, &p));
    CEK_TRY(pool_add(&l, &p, axes, &y));
out:
    return cek__layer_end(&l, st, y, node);
}

cek_status cek_model_pool(cek_model *model, int input, const cek_pool_layer *layer, int *node)
{
    return layer_add(model, input, &(layer_call){ "cek_model_pool", 0, layer_take }, layer, node);
}

cek_status cek_model_pool2d(cek_model *model, int input, const cek_pool2d_layer *layer, int *node)
{
    return layer_add(model, input, &(layer_call){ "cek_model_pool2d", 2, image_take }, layer, node);
}

static cek_status size_check(const cek__layer *l, int axes, const int64_t *size)
{
    char text[CEK__SHAPE_TEXT], wanted[CEK__AXES_TEXT];

    for (int i = 0; i < axes; i++)
        if (size[i] < 1 || size[i] > INT32_MAX)
            return cek__fail(CEK_INVALID, "to the size %s of the input %s", cek__axes_text(axes, size, wanted),
                             cek__dims_text(&l->in, text));
    return CEK_OK;
}

cek_status cek_model_pool_to(cek_model *model, int input, uint32_t mode, const int64_t *size, int *node)
{
    cek_status st;
    cek__layer l;
    char text[CEK__AXES_TEXT];
    int axes, y = CEK__NOTHING;

    if (node)
        *node = -1;
    CEK__NOT_NULL(model);
    CEK__NOT_NULL(size);
    CEK_TRY(cek__layer_begin(&l, model, "pool", 1, &input));
    CEK_TRY(cek__image_wanted(&l, 0, &axes));
    CEK_TRY(mode_check(mode));
    CEK_TRY(size_check(&l, axes, size));
    cek__layer_note(&l, "%s to %s", mode == CEK_POOL_MAX ? "max" : "average", cek__axes_text(axes, size, text));
    CEK_TRY(cek__pool_to(l.graph, l.x[0], mode, size, &y));
out:
    return cek__layer_end(&l, st, y, node);
}
