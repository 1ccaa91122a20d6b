/* lower_loss.c - the loss: its sum, the count of right answers, and the gradient that backward starts from. */
#include "nn/model/lower.h"

#include <stdio.h>

/* What both losses need besides their own operands: values of the binder, and the gradient of the output. */
typedef struct loss_values {
    int target, loss, correct, gradient;
} loss_values;

static cek_status loss_values_make(cek__lowering *l, uint64_t target_bytes, loss_values *v)
{
    cek_status st;
    const cek__plan_options *o = l->options;
    cek__lowered *out = &l->tensor[l->stages->output];

    *v = (loss_values){ 0 };
    CEK_TRY(cek__program_value(l->program, (cek__value){ .place = CEK__PLACE_TARGET, .bytes = target_bytes },
                               &v->target));
    CEK_TRY(cek__program_value(l->program, (cek__value){ .place = CEK__PLACE_LOSS, .bytes = 8 }, &v->loss));
    CEK_TRY(cek__program_value(l->program, (cek__value){ .place = CEK__PLACE_CORRECT, .bytes = 4 }, &v->correct));
    if (o->training && l->stages->tensor[l->stages->output].needs_gradient)
        CEK_TRY(cek__lower_value(l, l->stages->tensor[l->stages->output].elements, &v->gradient));
    out->gradient = v->gradient;
    out->gradient_owned = true;
    return CEK_OK;
out:
    return st;
}

static cek_status cross_entropy(cek__lowering *l)
{
    cek_status st;
    loss_values v;
    uint64_t rows = (uint64_t)l->options->rows;
    cek_cross_entropy_desc desc = {
        .op = { .size = sizeof desc,
                .kind = CEK_OP_CROSS_ENTROPY,
                .accumulate = CEK_BIT(CEK_CROSS_ENTROPY_LOSS) | CEK_BIT(CEK_CROSS_ENTROPY_CORRECT) },
        .rows = rows,
        .classes = (uint64_t)l->stages->tensor[l->stages->output].elements,
        .rows_per_sample = 1,
        .type = l->layout->type,
    };

    CEK_TRY(loss_values_make(l, rows * 4, &v));
    return cek__program_emit(l->program, &desc.op,
                             (int[CEK__SLOTS]){ [CEK_CROSS_ENTROPY_LOGITS] = l->tensor[l->stages->output].value,
                                                [CEK_CROSS_ENTROPY_LABELS] = v.target,
                                                [CEK_CROSS_ENTROPY_STEP] = v.gradient ? l->step : CEK__NO_VALUE,
                                                [CEK_CROSS_ENTROPY_BATCH] = l->batch,
                                                [CEK_CROSS_ENTROPY_DLOGITS] = v.gradient,
                                                [CEK_CROSS_ENTROPY_LOSS] = v.loss,
                                                [CEK_CROSS_ENTROPY_CORRECT] = v.correct },
                             0);
out:
    return st;
}

static cek_status squared_error(cek__lowering *l)
{
    cek_status st;
    loss_values v;
    uint64_t rows = (uint64_t)l->options->rows;
    uint64_t columns = (uint64_t)l->stages->tensor[l->stages->output].elements;
    cek_squared_error_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_SQUARED_ERROR, .accumulate = CEK_BIT(CEK_SQUARED_ERROR_LOSS) },
        .rows = rows,
        .columns = columns,
        .rows_per_sample = 1,
        .type = l->layout->type,
    };

    CEK_TRY(loss_values_make(l, rows * columns * cek_dtype_bytes(l->layout->type), &v));
    return cek__program_emit(l->program, &desc.op,
                             (int[CEK__SLOTS]){ [CEK_SQUARED_ERROR_PREDICTION] = l->tensor[l->stages->output].value,
                                                [CEK_SQUARED_ERROR_TARGET] = v.target,
                                                [CEK_SQUARED_ERROR_STEP] = v.gradient ? l->step : CEK__NO_VALUE,
                                                [CEK_SQUARED_ERROR_BATCH] = l->batch,
                                                [CEK_SQUARED_ERROR_DPREDICTION] = v.gradient,
                                                [CEK_SQUARED_ERROR_LOSS] = v.loss },
                             0);
out:
    return st;
}

cek_status cek__lower_loss(cek__lowering *l)
{
    snprintf(l->program->where, sizeof l->program->where, "the loss");
    return l->options->loss == CEK_LOSS_CROSS_ENTROPY ? cross_entropy(l) : squared_error(l);
}
