/* unit.c - see unit.h. */
#include "nn/nets/unit.h"

/* The parameter that was added last, as torch.nn.init.kaiming_normal_ has it by outputs. */
static cek_status kaiming_set(cek_model *model)
{
    cek_status st;
    const cek_init how = { .size = sizeof how, .kind = CEK_INIT_KAIMING_NORMAL, .fan_out = true };
    cek_parameter last;

    CEK_TRY(cek_model_parameter(model, cek_model_parameter_count(model) - 1, &last));
    st = cek_model_set_init(model, last.name, &how);
out:
    return st;
}

cek_status cek__unit_add(cek_model *model, const cek__unit *unit, int *x)
{
    cek_status st;
    const cek_batch_norm_layer norm = { .size = sizeof norm };
    const cek_conv2d_layer conv = { .size = sizeof conv,
                                    .out_channels = (uint32_t)unit->out,
                                    .kernel_h = unit->kernel,
                                    .kernel_w = unit->kernel,
                                    .stride_h = unit->stride,
                                    .stride_w = unit->stride,
                                    .pad_h = unit->kernel / 2,
                                    .pad_w = unit->kernel / 2,
                                    .groups = unit->groups,
                                    .no_bias = true };

    CEK_TRY(cek_model_name(model, unit->conv));
    CEK_TRY(cek_model_conv2d(model, *x, &conv, x));
    CEK_TRY(kaiming_set(model));
    CEK_TRY(cek_model_name(model, unit->norm));
    st = cek_model_batch_norm(model, *x, &norm, x);
out:
    return st;
}

cek_status cek__head_add(cek_model *model, int x, double p, const char *name, int64_t classes)
{
    cek_status st;
    const cek_pool2d_layer whole = { .size = sizeof whole, .mode = CEK_POOL_AVERAGE };

    CEK_TRY(cek_model_pool2d(model, x, &whole, &x));
    CEK_TRY(cek_model_flatten(model, x, &x));
    if (p != 0)
        CEK_TRY(cek_model_dropout(model, x, p, &x));
    CEK_TRY(cek_model_name(model, name));
    st = cek_model_linear(model, x, classes, true, NULL);
out:
    return st;
}
