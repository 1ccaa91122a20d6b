/* winograd.h - what is chosen for a convolution of 3 x 3 taps that is computed by fewer multiplications: images and
 * weights are transformed in small squares, and what was a window's product with the taps becomes a product of
 * matrices for each point of a square.
 *
 * Owns: the plan's fields. Must not know: the transforms (kernels/cpu/winograd_f32.c). */
#ifndef CEK_BACKENDS_CPU_CONV_WINOGRAD_H
#define CEK_BACKENDS_CPU_CONV_WINOGRAD_H

#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/config.h"

/* Tiles are the squares of outputs x outputs that cover an image: y, or of backward-data dx. A product for each point:
 * tiles x from by from x to channels; of backward-weights to x tiles by tiles x from, where `from` are x's channels
 * and `to` dy's. */
typedef struct winograd_plan {
    const cpu_winograd *form;
    int64_t points, planes;  /* points of a transformed square along a side, and all */
    int64_t size[2];         /* h and w of an image that tiles cover */
    int64_t tiles[2], count; /* of an image along h and w; of all images */
    int64_t block;           /* tiles that are transformed at once */
    int64_t from, to;        /* channels */
    int64_t depth;           /* not 0: few tiles are all transformed first, then of a panel of weights so many rows */
    int64_t columns;         /* whole panels of a task: of `to`, of backward-weights of `from` */
    int64_t rows;            /* backward-weights: of `to` in a task */
    int64_t splits;          /* backward-weights: parts of the tiles, summed apart */
    size_t shared_floats, worker_floats;
    double cost; /* estimated cycles, of one worker */
} winograd_plan;

#endif
