/* winograd_tiles.h - the squares that Winograd's convolutions take out of images, and how they come near in time.
 *
 * Owns: where a tile lies, squares at the edges of an image, what is asked of memory ahead. Must not know: the
 * transforms, what is multiplied. */
#ifndef CEK_BACKENDS_CPU_CONV_WINOGRAD_TILES_H
#define CEK_BACKENDS_CPU_CONV_WINOGRAD_TILES_H

#include "backends/cpu/conv/winograd.h"
#include "backends/cpu/sizes.h"

enum { WINOGRAD_AHEAD = 2 }; /* tiles: what takes as long as memory does */

/* Images as all directions read them: dense [image][h][w][channels]. */
typedef struct winograd_image {
    const void *at;
    cpu_type type;
    int64_t size[2], channels;
} winograd_image;

/* The image of a tile, and where in it the tile's outputs begin. */
void cek__winograd_tile(const winograd_plan *w, int64_t tile, int64_t *image, int64_t at[2]);
/* `transform` of side x side pixels from `at` (beyond the image: zeros), channels [channel, channel + channels).
 * `square`: room for these pixels, whose channels are rounded up to 16. */
void cek__winograd_square(const cpu_kernels *kernels, const winograd_image *from, cpu_transform *transform,
                          int64_t side, int64_t image, const int64_t at[2], int64_t channel, int64_t channels,
                          float *square, float *to, int64_t line_to, int64_t pixel_to);
/* Has the pixels of a tile's outputs, in any image of that size, come into L2; nothing behind the last tile. */
void cek__winograd_ahead(const winograd_plan *w, const winograd_image *of, int64_t tile, int64_t channel,
                         int64_t channels);

/* What products bring along from memory, which they themselves have no use for: images of which tiles [first, end) are
 * left, the last image first. */
typedef struct winograd_part {
    winograd_image image; /* at: NULL if there is none */
    int64_t first, end, line;
    int64_t channel, channels;
} winograd_part;
typedef struct winograd_coming {
    int count;
    winograd_part of[3];
    int64_t stretch; /* steps of k */
    cpu_ahead piece;
} winograd_coming;

/* Of wanted steps so many as tiles can keep to, and as bring what else is asked for in time. */
static inline int64_t winograd_stretch(const cpu_kernels *kernels, int64_t depth, int64_t wanted)
{
    const int64_t longest = cpu_stretch_bringing(cpu_stretch(depth, kernels->mr, false), kernels->mr);

    return most(least(wanted / CPU_RUN * CPU_RUN, longest), least(CPU_RUN, longest));
}

/* What is left of it, or `other`. */
cpu_ahead *cek__winograd_comes(const winograd_plan *w, winograd_coming *coming, cpu_ahead *other);

#endif
