/* window.c - see window.h. */
#include "nn/layers/window.h"

#include "core/base/status.h"

cek_status cek__image_wanted(const cek__layer *l)
{
    char text[CEK__SHAPE_TEXT];

    if (l->in.rank == 4)
        return CEK_OK;
    return cek__fail(CEK_INVALID, "takes an image C,H,W, its input has the shape %s", cek__dims_text(&l->in, text));
}

int64_t cek__window_count(int64_t in, uint32_t kernel, uint32_t stride, uint32_t pad, uint32_t dilation)
{
    int64_t room = in + 2 * (int64_t)pad;
    int64_t reach;

    if (__builtin_mul_overflow((int64_t)dilation, (int64_t)kernel - 1, &reach) || reach >= room)
        return 0;
    return (room - reach - 1) / stride + 1;
}

void cek__note_pair(cek__layer *l, const char *name, uint32_t h, uint32_t w, uint32_t usual)
{
    if (h == usual && w == usual)
        return;
    if (h == w)
        cek__layer_note(l, ", %s %u", name, h);
    else
        cek__layer_note(l, ", %s %ux%u", name, h, w);
}
