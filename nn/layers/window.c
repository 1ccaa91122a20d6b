/* window.c - see window.h. */
#include "nn/layers/window.h"

#include <stdio.h>
#include <string.h>

#include "core/base/status.h"

cek_status cek__image_wanted(const cek__layer *l, int axes, int *out)
{
    char text[CEK__SHAPE_TEXT];

    *out = l->in.rank - 2;
    if (l->in.samples == 1 && (axes ? *out == axes : *out >= 1 && *out <= CEK_SPATIAL_MAX))
        return CEK_OK;
    return cek__fail(CEK_INVALID, "takes %s, its input has the shape %s",
                     axes ? "an image C,H,W" : "channels and 1 to 3 axes behind them", cek__dims_text(&l->in, text));
}

int64_t cek__window_count(const cek__windows *w, int axis, int64_t in)
{
    int64_t room = in + w->pad_lo[axis] + w->pad_hi[axis];
    int64_t reach;

    if (__builtin_mul_overflow(w->dilation[axis], w->kernel[axis] - 1, &reach) || reach >= room)
        return 0;
    return (room - reach - 1) / w->stride[axis] + 1;
}

char *cek__axes_text(int axes, const int64_t *values, char text[CEK__AXES_TEXT])
{
    int used = 0;

    text[0] = '\0';
    for (int i = 0; i < axes; i++)
        used += snprintf(text + used, (size_t)(CEK__AXES_TEXT - used), "%s%lld", i ? "x" : "", (long long)values[i]);
    return text;
}

char *cek__padding_text(int axes, const cek__windows *w, char text[CEK__PADDING_TEXT])
{
    char lo[CEK__AXES_TEXT], hi[CEK__AXES_TEXT];

    cek__axes_text(axes, w->pad_lo, lo);
    cek__axes_text(axes, w->pad_hi, hi);
    snprintf(text, CEK__PADDING_TEXT, "%s%s%s", lo, strcmp(lo, hi) ? " to " : "", strcmp(lo, hi) ? hi : "");
    return text;
}

void cek__note_axes(cek__layer *l, const char *name, int axes, const int64_t *values, int64_t usual)
{
    char text[CEK__AXES_TEXT];
    bool any = false, equal = true;

    for (int i = 0; i < axes; i++) {
        any |= values[i] != usual;
        equal &= values[i] == values[0];
    }
    if (any)
        cek__layer_note(l, ", %s %s", name, cek__axes_text(equal ? 1 : axes, values, text));
}

void cek__note_padding(cek__layer *l, int axes, const cek__windows *w)
{
    char text[CEK__PADDING_TEXT];

    if (memcmp(w->pad_lo, w->pad_hi, sizeof w->pad_lo) == 0)
        cek__note_axes(l, "padding", axes, w->pad_lo, 0);
    else
        cek__layer_note(l, ", padding %s", cek__padding_text(axes, w, text));
}
