/* running.c - see running.h. */
#include "nn/train/running.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"

cek_status cek__running_create(const cek_model *model, cek__running **out)
{
    cek_status st;
    cek__running *running;

    *out = NULL;
    CEK_TRY(cek__calloc(1, sizeof *running, &running));
    running->model = model;
    running->count = model->buffer_count;
    CEK_TRY(cek__calloc(model->buffer_elements, sizeof *running->values, &running->values));
    for (size_t i = 0; i < model->buffer_count; i++) {
        const cek__buffer *b = &model->buffers[i];

        memcpy(running->values + b->at, b->public.data, (size_t)b->public.count * sizeof(float));
    }
    *out = running;
    return CEK_OK;
out:
    cek__running_free(running);
    return st;
}

void cek__running_free(cek__running *running)
{
    if (!running)
        return;
    free(running->values);
    free(running);
}

void cek__running_add(cek__running *running, const void *statistics, cek_dtype type, int64_t runs)
{
    for (size_t i = 0; i < running->count; i++) {
        const cek__buffer *b = &running->model->buffers[i];
        float *to = running->values + b->at;
        double keep = 1;

        for (int64_t k = 0; k < runs; k++)
            keep *= 1 - b->momentum;
        for (int64_t k = 0; b->momentum > 0 && k < b->public.count; k++) {
            double more = type == CEK_F64 ? ((const double *)statistics)[b->at + (uint64_t)k]
                                          : (double)((const float *)statistics)[b->at + (uint64_t)k];

            to[k] = (float)(keep * (double)to[k] + more);
        }
    }
}

void cek__running_store(const cek__running *running, cek_model *model)
{
    for (size_t i = 0; i < running->count; i++) {
        cek__buffer *b = &model->buffers[i];

        memcpy(b->public.data, running->values + b->at, (size_t)b->public.count * sizeof(float));
    }
}
