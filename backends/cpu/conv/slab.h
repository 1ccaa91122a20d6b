/* slab.h - the lines of an image that a run of windows looks at, copied once, with their padding.
 *
 * Owns: the layout of the copy. Must not know: weights, products, which direction of a convolution
 * asks.
 *
 * In a slab every window is whole, so element (pixel r, column c) of the matrix of windows
 * (image.h) is at slab[pixel(r) + tap(c)]: two tables of offsets, which is what a tile reads
 * through (cpu_gemm_tiles). Copying a slab costs a fraction of packing its windows, in which every
 * element appears once per tap. */
#ifndef CEK_BACKENDS_CPU_CONV_SLAB_H
#define CEK_BACKENDS_CPU_CONV_SLAB_H

#include "backends/cpu/conv/image.h"

typedef struct slab {
    int64_t pixel;  /* floats from one pixel to the next */
    int64_t line;   /* floats of one line: every pixel that windows of a line of positions look at */
    int64_t height; /* floats from one h to the next: a line for each tap along d */
    int64_t floats; /* of the slab of `rows` positions */
} slab;

/* cek__slab_plan - the layout for `rows` window positions, whole lines, from multiples of them on, and less. */
void cek__slab_plan(const windows *w, int64_t rows, slab *out);

/* cek__slab_copy - copies what rows [row, row + rows) look at to `to`, and sets pixel[i] for each. */
void cek__slab_copy(const slab *s, const windows *w, const cpu_kernels *kernels, cpu_type type, const void *image,
                    int64_t row, int64_t rows, float *to, int32_t *pixel);

/* cek__slab_taps - tap[i] for columns [col, col + cols) of the matrix of windows. */
void cek__slab_taps(const slab *s, const windows *w, int64_t col, int64_t cols, int32_t *tap);

#endif
