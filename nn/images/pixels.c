/* pixels.c - see pixels.h. */
#include "nn/images/pixels.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"

cek_status cek__pixels_make(int64_t height, int64_t width, uint32_t channels, cek__pixels *out)
{
    int64_t count;

    *out = (cek__pixels){ height, width, channels, NULL };
    if (height < 1 || width < 1 || __builtin_mul_overflow(height, width, &count) || count > CEK__PIXELS_MOST)
        return cek__fail(CEK_BAD_INPUT, "%" PRId64 " x %" PRId64 " pixels, 1 to %d in all are read", height, width,
                         CEK__PIXELS_MOST);
    return cek__alloc_array((size_t)count, channels, &out->values);
}

void cek__pixels_free(cek__pixels *p)
{
    free(p->values);
    p->values = NULL;
}

/* ITU-R 601's weights as PIL rounds them. */
static uint8_t grey_of(const uint8_t *rgb)
{
    return (uint8_t)((19595u * rgb[0] + 38470u * rgb[1] + 7471u * rgb[2] + 0x8000u) >> 16);
}

void cek__pixels_convert(const uint8_t *from, uint32_t from_channels, size_t count, uint32_t channels, uint8_t *to)
{
    if (from_channels == channels) {
        memmove(to, from, count * channels);
        return;
    }
    for (size_t i = 0; i < count; i++, from += from_channels, to += channels) {
        if (channels == 1)
            *to = from_channels < 3 ? from[0] : grey_of(from);
        else if (from_channels < 3)
            memset(to, from[0], 3);
        else
            memmove(to, from, 3); /* in place too: it only goes forward */
    }
}
