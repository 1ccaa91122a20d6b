/* batch_norm.h - batch normalisation of parts, for layers that have its parameters from elsewhere. */
#ifndef CEK_NN_LAYERS_BATCH_NORM_H
#define CEK_NN_LAYERS_BATCH_NORM_H

#include "nn/model/layer.h"

/* Flows [C]. */
typedef struct cek__batch_norm {
    int affine[2];  /* weight and bias; CEK__NOTHING: none */
    int running[2]; /* buffers: mean and variance */
    double epsilon;
    double momentum; /* the weight of the newest statistics */
} cek__batch_norm;

/* Of the layer's first input [N,C,..]: in training by the statistics of the samples, else by the running ones; by these
 * alone where no axis counts samples. */
CEK__CHECKED cek_status cek__batch_norm_parts(cek__layer *layer, const cek__batch_norm *norm, int *out);

#endif
