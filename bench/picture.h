/* picture.h - samples of images in rows of four, and below each what a network said of it: the class and how likely it
 * was, green where that is right, else red with the right class behind it.
 *
 * Pure: from numbers to pixels. Must not know: models, files. */
#ifndef BENCH_PICTURE_H
#define BENCH_PICTURE_H

#include <cekernels/nn.h>

typedef struct picture_samples {
    int64_t count;
    cek_dtype type; /* CEK_U8, or CEK_F32: from black, the sample's smallest value, to white, its largest */
    int64_t height, width, channels; /* 1 or 3 */
    const void *pixels;              /* [count][height][width][channels] */
    const int32_t *labels;           /* [count] */
    int64_t classes;
    const float *probabilities; /* [count][classes] */
} picture_samples;

typedef struct picture {
    int64_t height, width;
    uint8_t *pixels; /* [height][width][3]; free() */
} picture;

/* False: no memory. */
bool picture_draw(const picture_samples *samples, picture *out);

#endif
