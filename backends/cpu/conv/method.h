/* method.h - what the files of convolution share.
 *
 * Owns: the list of methods, the sizes of a group. Must not know: who calls. */
#ifndef CEK_BACKENDS_CPU_CONV_METHOD_H
#define CEK_BACKENDS_CPU_CONV_METHOD_H

#include "backends/cpu/conv/conv.h"

enum conv_method {
    CONV_MATRIX,     /* 1 x 1, stride 1, no padding: images are matrices */
    CONV_WINDOWS,    /* rows of windows are packed */
    CONV_SLABS,      /* images are copied with their padding, tiles read windows in place */
    CONV_TRANSPOSED, /* backward-weights with few channels: windows are A, and read from slabs */
    CONV_SCATTER,    /* backward-data: pixels of dy times all weights, added up */
    CONV_DEPTHWISE,  /* one channel in, one out: no product at all */
    CONV_WINOGRAD    /* 3 x 3 taps: products of transformed squares */
};

typedef struct conv_call {
    const conv_plan *plan;
    const conv_args *args;
} conv_call;

static inline int64_t conv_group_in(const conv_desc *d)
{
    return d->in_channels / d->groups;
}
static inline int64_t conv_group_out(const conv_desc *d)
{
    return d->out_channels / d->groups;
}
static inline int64_t conv_taps(const conv_desc *d)
{
    return d->kernel[0] * d->kernel[1] * d->kernel[2];
}
static inline int64_t conv_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline char *conv_at(const void *p, cpu_type type, int64_t element)
{
    return (char *)p + element * cpu_type_bytes(type);
}

/* Whether windows can be read from slabs by rows, as A: then the plan gets what follows from that. */
int cek__conv_slabs_plan(conv_plan *plan);

/* Hands out packed windows, or a slab, as A. */
int64_t cek__conv_give_windows(const product_part *p, const windows *w, int64_t row, int64_t rows, int64_t k,
                               int64_t depth, const walk_scratch *to);
int64_t cek__conv_give_slab(const product_part *p, const windows *w, const slab *s, int64_t row, int64_t rows,
                            int64_t k, int64_t depth, const walk_scratch *to);

/* The windows over x, as forward and backward-weights see them. */
void cek__conv_windows(const conv_desc *d, windows *out);

void cek__conv_forward_plan(conv_plan *plan);
void cek__conv_forward_run(const conv_call *call, cpu_threads *threads, void *workspace);
void cek__conv_data_plan(conv_plan *plan);
void cek__conv_data_run(const conv_call *call, cpu_threads *threads, void *workspace);
void cek__conv_weights_plan(conv_plan *plan);
void cek__conv_weights_run(const conv_call *call, cpu_threads *threads, void *workspace);

/* Depthwise, all directions; depthwise.c. */
void cek__depthwise_plan(conv_plan *plan);
void cek__depthwise_run(const conv_call *call, cpu_threads *threads, void *workspace);

/* Backward-data by products of whole pixels; scatter.c. */
void cek__scatter_plan(conv_plan *plan);
void cek__scatter_run(const conv_call *call, cpu_threads *threads, void *workspace);

/* By Winograd's squares: whether that is the faster way, and then its plan, all directions; winograd.c. */
int cek__winograd_plan(conv_plan *plan);
/* Workspace of forward and backward-data, and their run; of backward-weights (winograd_weights.c). */
void cek__winograd_place(conv_plan *plan);
void cek__winograd_run(const conv_call *call, cpu_threads *threads, void *workspace);
void cek__winograd_weights_place(conv_plan *plan);
void cek__winograd_weights_run(const conv_call *call, cpu_threads *threads, void *workspace);

/* Images as both read them: dense [image][h][w][channels]. */
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

#endif
