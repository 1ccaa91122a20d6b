/* image.h - windows of an image as rows of a matrix that is never made whole (im2col).
 *
 * Owns: the geometry of windows and the copying of their rows.
 * Must not know: weights, products, which direction of a convolution asks.
 *
 * Row r of the matrix is a window position, counted over (image, d, h, w); column t * channels + c
 * is channel c of tap t, counted over (d, h, w). Along each dimension position i and tap j look at
 * element i * step + first + j * tap_step of the image, or at a zero where that is outside. */
#ifndef CEK_BACKENDS_CPU_CONV_IMAGE_H
#define CEK_BACKENDS_CPU_CONV_IMAGE_H

#include <stdint.h>

#include "kernels/cpu/kernels.h"

typedef struct window_dim {
    int64_t size; /* of the image */
    int64_t positions, step, first;
    int64_t taps, tap_step;
} window_dim;

typedef struct windows {
    window_dim dim[3];
    int64_t images, channels; /* channels of the group */
    int64_t pitch[3];         /* elements from one index to the next, along each dimension */
    int64_t image;            /* and from one image to the next */
} windows;

static inline int64_t windows_rows(const windows *w)
{
    return w->images * w->dim[0].positions * w->dim[1].positions * w->dim[2].positions;
}

static inline int64_t windows_columns(const windows *w)
{
    return w->dim[0].taps * w->dim[1].taps * w->dim[2].taps * w->channels;
}

/* cek__windows_dense - the distances in images of windows->dim's sizes, whose pixels have so many channels. */
void cek__windows_dense(windows *w, int64_t channels);

/* cek__windows_copy - columns [col, col + cols) of rows [row, row + rows) as floats, rows `ld`
 * apart. `image` is the first channel of the group in the first pixel. */
void cek__windows_copy(const windows *w, const cpu_kernels *kernels, cpu_type type, const void *image, int64_t row,
                       int64_t rows, int64_t col, int64_t cols, float *to, int64_t ld);

#endif
