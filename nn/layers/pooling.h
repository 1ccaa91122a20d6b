/* pooling.h - pools as PyTorch has them, of parts: sizes rounded up, and windows that follow from the size
 * that is wanted.
 *
 * Must not know: models, devices. */
#ifndef CEK_NN_LAYERS_POOLING_H
#define CEK_NN_LAYERS_POOLING_H

#include "nn/graph/graph.h"

typedef struct cek__pooling {
    uint32_t mode; /* CEK_POOL_... */
    cek__windows
        windows; /* kernel, stride, dilation (0 = 1) and padding of each axis behind N,C; padding less than a window */
    bool ceil;   /* the last window may reach beyond the padding, unless it begins there */
    bool count_pad; /* the mean counts padding as zeros, but nothing beyond it */
} cek__pooling;

/* From a window's first element to its last along an axis; INT64_MAX where it is more. */
int64_t cek__pool_reach(const cek__windows *windows, int axis);

/* x [N,C,...] with 1 to 3 axes. Errors: CEK_INVALID for windows that do not fit. */
CEK__SHARED CEK__CHECKED cek_status cek__pool(cek__graph *graph, int x, const cek__pooling *pooling, int *out);

/* To `size` elements along each axis behind N,C: element i is of those from floor(i in / size) to before
 * ceil((i + 1) in / size). Of size 1: of the whole image. */
CEK__SHARED CEK__CHECKED cek_status cek__pool_to(cek__graph *graph, int x, uint32_t mode, const int64_t *size,
                                                 int *out);

#endif
