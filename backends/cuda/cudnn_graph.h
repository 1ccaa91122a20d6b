/* SPDX-License-Identifier: MIT
 *
 * cudnn_graph.h - a convolution in the words of cuDNN, between cudnn_plan.c and cudnn_graph.c.
 */
#ifndef CEK_BACKENDS_CUDA_CUDNN_GRAPH_H
#define CEK_BACKENDS_CUDA_CUDNN_GRAPH_H

#include "backends/cuda/cudnn.h"

#define CEK__CUDNN_RANK 5    /* batch, channels, three spatial dimensions */
#define CEK__CUDNN_TENSORS 3 /* X or DX, W or DW, Y or DY, by what they are to the forward convolution */

/* Dimensions in cuDNN's order: batch, channels, then space; strides say that channels lie innermost. */
typedef struct cek__cudnn_extents {
    int64_t sizes[CEK__CUDNN_RANK], strides[CEK__CUDNN_RANK];
} cek__cudnn_extents;

/* What a request says, in cuDNN's terms. A line of pixels is an image of height 1. */
typedef struct cek__cudnn_problem {
    const cek__request *request;
    int64_t spatial;
    int64_t kernel[3], stride[3], dilation[3], before[3], behind[3];
    cek__cudnn_extents tensors[CEK__CUDNN_TENSORS];
} cek__cudnn_problem;

/* What is asked of the library in one call. */
typedef struct cek__cudnn_way {
    uint32_t does;
    bool bias, relu;
    bool widen;     /* the sums stay f32 though the operands are not: they go through a copy of their own */
    cek_dtype type; /* of the result */
    float beta;
} cek__cudnn_way;

/* False: sizes that no engine takes. The problem keeps `request`. */
bool cek__cudnn_problem_make(const cek__request *request, cek__cudnn_problem *problem);

/* The slots of the tensors, in their order, and that of the result among them. */
const uint32_t *cek__cudnn_slots(const cek__request *request);
uint32_t cek__cudnn_result_slot(const cek__request *request);

/* The convolution, then what is fused behind it. What it is made of joins the set, which keeps the first error. */
cudnnBackendDescriptor_t cek__cudnn_graph_make(cek__cudnn_set *set, const cek__cudnn_problem *problem,
                                               const cek__cudnn_way *way, const cek__cudnn_target *target);

#endif
