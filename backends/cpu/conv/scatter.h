/* scatter.h - what is chosen for the gradient of an input that is added up from products of whole pixels.
 *
 * Owns: the plan's fields. Must not know: the run (scatter.c). */
#ifndef CEK_BACKENDS_CPU_CONV_SCATTER_H
#define CEK_BACKENDS_CPU_CONV_SCATTER_H

#include "backends/cpu/product/walk.h"

/* A task makes channels [block * channels, + channels) of a group, of `lines` lines of one slice of dx (image, d), or
 * of all lines of `images` images that are one slice each. All of it is a function of the shape alone, since the order
 * of sums follows from it. */
typedef struct scatter_plan {
    int64_t channels, blocks;
    int64_t tap;          /* columns from one tap to the next, of a full block */
    int64_t lines, parts; /* of a slice; parts of so many lines */
    int64_t images;
    int64_t heights; /* taps along h that one product serves */
    int64_t rows;    /* pixels of dy that it takes at most */
    walk_sizes sizes;
    int64_t sum_floats; /* of a task's part of dx */
    size_t worker_bytes;
    int64_t packed_floats; /* of the weights of a group's block, packed for all tasks; 0: each packs what it needs */
    double cost;           /* estimated cycles, of one worker */
} scatter_plan;

#endif
