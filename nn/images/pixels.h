/* pixels.h - a picture in memory: 8 bits a channel, channels last; and how large one may be.
 *
 * Must not know: files, forms. */
#ifndef CEK_NN_IMAGES_PIXELS_H
#define CEK_NN_IMAGES_PIXELS_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

/* More than any camera gives; 400 MB of RGB for each thread that decodes one. */
enum { CEK__PIXELS_MOST = 1 << 27 };

typedef struct cek__pixels {
    int64_t height, width;
    uint32_t channels;
    uint8_t *values; /* [height][width][channels]; free() */
} cek__pixels;

/* Sets the sizes and takes memory, its contents undefined. CEK_BAD_INPUT: an axis of 0, or more pixels than
 * there may be. */
CEK__SHARED CEK__CHECKED cek_status cek__pixels_make(int64_t height, int64_t width, uint32_t channels,
                                                     cek__pixels *out);
CEK__SHARED void cek__pixels_free(cek__pixels *pixels); /* a zeroed one is accepted */

/* The same picture with `channels` (1 or 3) from 1, 2 (grey, alpha), 3 or 4 (RGB, alpha), into `to`. */
void cek__pixels_convert(const uint8_t *from, uint32_t from_channels, size_t count, uint32_t channels, uint8_t *to);

#endif
