/* method.h - what the files of convolution share.
 *
 * Owns: the list of methods, the sizes of a group. Must not know: who calls. */
#ifndef CEK_BACKENDS_CPU_CONV_METHOD_H
#define CEK_BACKENDS_CPU_CONV_METHOD_H

#include "backends/cpu/conv/conv.h"
#include "backends/cpu/product/gemm.h"
#include "backends/cpu/sizes.h"

enum conv_method {
    CONV_MATRIX,     /* 1 x 1, stride 1, no padding: images are matrices */
    CONV_SPREAD,     /* backward-data of one tap that strides: a matrix too, whose rows are spread over dx */
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

static inline char *conv_at(const void *p, cpu_type type, int64_t element)
{
    return (char *)p + element * cpu_type_bytes(type);
}

/* Whether windows can be read from slabs by rows, as A: then the plan gets what follows from that. */
int cek__conv_slabs_plan(conv_plan *plan);

/* What hands out the rows of A by the plan's method: of a matrix, packed windows or a slab. The part's owner is a
 * conv_call. */
walk_give_a *cek__conv_give_a(const conv_plan *plan);

/* The operands of a convolution of one tap, and how deep its blocks are: as those of any product of matrices. */
static inline void cek__conv_matrix_plan(conv_plan *plan, gemm_matrix a, gemm_matrix b)
{
    const product_plan *p = &plan->product;
    cek__gemm_operands(&(gemm_desc){ .m = p->m, .n = p->n, .k = p->k, .a = a, .b = b }, &plan->product);
}

/* The windows over x, as forward and backward-weights see them. */
void cek__conv_windows(const conv_desc *d, windows *out);

/* The family in whose words windows of x are read, where no word has channels of two pixels; NULL: none; forward.c. */
const cpu_words *cek__conv_window_words(const conv_desc *d, const cpu_config *config);

/* Plans are made once: rather small than fast. */
__attribute__((cold)) void cek__conv_forward_plan(conv_plan *plan);
void cek__conv_forward_run(const conv_call *call, cpu_threads *threads, void *workspace);
__attribute__((cold)) void cek__conv_data_plan(conv_plan *plan);
void cek__conv_data_run(const conv_call *call, cpu_threads *threads, void *workspace);
__attribute__((cold)) void cek__conv_weights_plan(conv_plan *plan);
void cek__conv_weights_run(const conv_call *call, cpu_threads *threads, void *workspace);

/* Packed weights: the panel that begins at a group's output channel `col`, and the callback of a product whose owner is
 * a conv_call; packed.c. */
const float *cek__conv_packed_panel(const conv_call *call, int64_t group, int64_t col);
walk_give_b cek__conv_packed_b;

/* Taps that never see an image; taps.c. choose - leaves them out of plan->d. place - room for the weights of those that
 * do, behind the workspace of a planned method; begin, end - around its run, whose operands are `seen`: where any are
 * cut. line - in an output channel's weights, where those of what is left of a line of taps begin. */
void cek__taps_choose(conv_plan *plan);
void cek__taps_place(conv_plan *plan);
void cek__taps_begin(const conv_plan *plan, cpu_threads *threads, const conv_args *args, void *workspace,
                     conv_args *seen);
void cek__taps_end(const conv_plan *plan, cpu_threads *threads, const conv_args *args, void *workspace);
static inline int64_t cek__taps_line(const conv_plan *plan, int64_t z, int64_t y)
{
    const int64_t *first = plan->first_tap, *kernel = plan->asked.kernel;
    return (((z + first[0]) * kernel[1] + y + first[1]) * kernel[2] + first[2]) * conv_group_in(&plan->d);
}

/* Depthwise, all directions; depthwise.c. */
void cek__depthwise_plan(conv_plan *plan);
void cek__depthwise_run(const conv_call *call, cpu_threads *threads, void *workspace);

/* Backward-data by products of whole pixels; scatter.c. */
__attribute__((cold)) void cek__scatter_plan(conv_plan *plan);
void cek__scatter_run(const conv_call *call, cpu_threads *threads, void *workspace);

/* Several pixels as one; pixels.c. choose - whether that pays for a product of windows: then plan->d is the convolution
 * of wide pixels. place - room for what it takes, behind the workspace of a planned method. begin, end - around its
 * run, whose operands are `wide`. weights - packed weights, of the asked ones as floats. */
int cek__pixels_choose(conv_plan *plan);
void cek__pixels_place(conv_plan *plan);
void cek__pixels_begin(const conv_plan *plan, const conv_args *args, void *workspace, conv_args *wide);
void cek__pixels_end(const conv_plan *plan, const conv_args *args, const void *workspace);
void cek__pixels_weights(const conv_plan *plan, const float *weights, float *packed);

/* By Winograd's squares: whether that is the faster way, and then its plan, all directions; winograd.c. */
int cek__winograd_plan(conv_plan *plan);
void cek__winograd_run(const conv_call *call, cpu_threads *threads, void *workspace);
/* Of forward and backward-data: the workspace, into plan->winograd, and the run; winograd_images.c. */
void cek__winograd_images_place(conv_plan *plan);
void cek__winograd_images_run(const conv_call *call, cpu_threads *threads, void *workspace);
/* Rows [first, + rows) of a panel of transformed weights, [point][row][nr], points `plane` apart, with room for so many
 * floats; of these two directions, winograd_filters.c. */
int64_t cek__winograd_filters_room(const cpu_kernels *kernels);
void cek__winograd_filters(const conv_call *call, int64_t panel, int64_t first, int64_t rows, float *room, float *to,
                           int64_t plane);
/* The same of backward-weights; winograd_weights.c. */
void cek__winograd_weights_place(conv_plan *plan);
void cek__winograd_weights_run(const conv_call *call, cpu_threads *threads, void *workspace);

#endif
