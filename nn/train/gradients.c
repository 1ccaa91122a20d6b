/* gradients.c - the last step's gradients as a file, for comparing with other programs. */
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/status.h"
#include "nn/formats/safetensors.h"
#include "nn/train/trainer.h"

static cek_status read_one(cek_trainer *trainer, size_t index, cek__st_tensor *out)
{
    cek_status st;
    cek_parameter p;
    double *values = NULL;

    CEK_TRY(cek_model_parameter(trainer->model, index, &p));
    CEK_TRY(cek__alloc_array((size_t)p.count, sizeof *values, &values));
    *out = (cek__st_tensor){
        .name = p.name, .type = CEK__ST_F64, .rank = (uint32_t)p.rank, .count = (uint64_t)p.count, .data = values
    };
    memcpy(out->shape, p.shape, sizeof p.shape);
    return cek_trainer_read_gradient(trainer, index, values, p.count);
out:
    return st;
}

cek_status cek_trainer_save_gradients(cek_trainer *trainer, const char *path)
{
    cek_status st;
    size_t count;
    cek__st_tensor *tensors = NULL;

    CEK__NOT_NULL(trainer);
    CEK__NOT_NULL(path);
    count = cek_model_parameter_count(trainer->model);
    CEK_TRY(cek__calloc(count, sizeof *tensors, &tensors));
    for (size_t i = 0; i < count; i++)
        CEK_TRY(read_one(trainer, i, &tensors[i]));
    CEK_TRY(cek__safetensors_write(path, tensors, count, NULL, 0));
    st = CEK_OK;
out:
    for (size_t i = 0; tensors && i < count; i++)
        free((void *)tensors[i].data);
    free(tensors);
    return st;
}
