/* running.h - a model's buffers while it is trained: what the replicas contribute, gathered by one writer.
 *
 * A replica's runs of a step leave (nn/graph/part_buffer.c) what they add to the buffers; devices are taken in their
 * order, which is that of the samples. So there is one copy, and devices that need it are given its bytes.
 * Must not know: devices, how contributions come. */
#ifndef CEK_NN_TRAIN_RUNNING_H
#define CEK_NN_TRAIN_RUNNING_H

#include "nn/model/model.h"

typedef struct cek__running {
    const cek_model *model;
    size_t count;  /* buffers of the model, as it was then */
    float *values; /* [model->buffer_elements] */
} cek__running;

/* create - with the model's buffers as they are. */
CEK__SHARED CEK__CHECKED cek_status cek__running_create(const cek_model *model, cek__running **out);
CEK__SHARED void cek__running_free(cek__running *running);

/* What `runs` runs of a replica left, elements of `type` as cek__buffer has them. */
CEK__SHARED void cek__running_add(cek__running *running, const void *statistics, cek_dtype type, int64_t runs);
CEK__SHARED void cek__running_store(const cek__running *running, cek_model *model);

#endif
