/* init.c - a new model's parameters.
 *
 * PyTorch draws the weight and the bias of conv and linear layers uniformly from +-1/sqrt(fan_in)
 * (kaiming_uniform_ with a = sqrt 5 comes to the same). Each number here depends on (seed,
 * parameter, index in PyTorch's order) alone. */
#include <math.h>

#include "core/base/random.h"
#include "nn/model/model.h"

void cek_model_init(cek_model *model, uint64_t seed)
{
    for (size_t i = 0; model && i < model->parameter_count; i++) {
        cek__parameter *p = &model->parameters[i];
        float bound = (float)(1 / sqrt(p->fan_in));

        cek__random_fill_uniform(seed, cek__stream(CEK__STREAM_INIT, i), 0, (size_t)p->public.count, -bound, bound,
                                 p->public.data);
    }
}
