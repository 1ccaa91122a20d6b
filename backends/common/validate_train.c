/* SPDX-License-Identifier: MIT
 * validate_train.c - what the descriptors of softmax, losses, random numbers and the optimizer may say. */
#include "backends/common/validate_inside.h"
#include "backends/common/growth.h"

#include <stdlib.h>

/* rows x columns elements of a real type. */
static cek_status rows_check(const cek__validation *check, cek_dtype type, uint64_t rows, uint64_t columns,
                             const char *columns_name)
{
    CEK__VALIDATE(cek__validate_type(check, "type", type, CEK__TYPES_REAL));
    CEK__VALIDATE(cek__validate_positive(check, "rows", rows));
    return cek__validate_positive(check, columns_name, columns);
}

cek_status cek__validate_softmax(const cek__validation *check)
{
    const cek_softmax_desc *desc = &check->request->desc.softmax;
    CEK__VALIDATE(rows_check(check, desc->type, desc->rows, desc->columns, "columns"));
    CEK__VALIDATE(cek__validate_flags(check, "softmax flags", desc->flags, CEK_SOFTMAX_LOG));
    CEK__VALIDATE(CEK__SLOT_SIZE(check, CEK_SOFTMAX_X, desc->type, desc->rows, desc->columns));
    return CEK__SLOT_SIZE(check, CEK_SOFTMAX_Y, desc->type, desc->rows, desc->columns);
}

/* --- losses ------------------------------------------------------------------------------------------------------- */

static cek_status loss_check(const cek__validation *check, uint32_t gradient, uint32_t step, uint64_t outputs)
{
    uint64_t given = check->request->desc.op.operands;
    if (!(given & outputs))
        return CEK__INVALID(check, "no output is in the mask");
    if (given & CEK_BIT(gradient) && !(given & CEK_BIT(step)))
        return CEK__INVALID(check, "the gradient needs STEP");
    return CEK_OK;
}

cek_status cek__validate_cross_entropy(const cek__validation *check)
{
    const cek_cross_entropy_desc *desc = &check->request->desc.cross_entropy;
    CEK__VALIDATE(rows_check(check, desc->type, desc->rows, desc->classes, "classes"));
    CEK__VALIDATE(cek__validate_positive(check, "rows_per_sample", desc->rows_per_sample));
    CEK__VALIDATE(cek__validate_reserved(check, desc->reserved));
    CEK__VALIDATE(CEK__SLOT_SIZE(check, CEK_CROSS_ENTROPY_LOGITS, desc->type, desc->rows, desc->classes));
    CEK__VALIDATE(CEK__SLOT_SIZE(check, CEK_CROSS_ENTROPY_LABELS, CEK_I32, desc->rows));
    CEK__VALIDATE(CEK__SLOT_SIZE(check, CEK_CROSS_ENTROPY_WEIGHTS, CEK_F32, desc->rows));
    cek__slot_block(check, CEK_CROSS_ENTROPY_STEP, sizeof(cek_step_block));
    cek__slot_block(check, CEK_CROSS_ENTROPY_BATCH, sizeof(cek_batch_block));
    CEK__VALIDATE(CEK__SLOT_SIZE(check, CEK_CROSS_ENTROPY_DLOGITS, desc->type, desc->rows, desc->classes));
    CEK__VALIDATE(CEK__SLOT_SIZE(check, CEK_CROSS_ENTROPY_LOSS, cek__type_sum(desc->type), 1));
    CEK__VALIDATE(CEK__SLOT_SIZE(check, CEK_CROSS_ENTROPY_CORRECT, CEK_I32, 1));
    return loss_check(check, CEK_CROSS_ENTROPY_DLOGITS, CEK_CROSS_ENTROPY_STEP,
                      CEK_BIT(CEK_CROSS_ENTROPY_DLOGITS) | CEK_BIT(CEK_CROSS_ENTROPY_LOSS) |
                          CEK_BIT(CEK_CROSS_ENTROPY_CORRECT));
}

cek_status cek__validate_squared_error(const cek__validation *check)
{
    const cek_squared_error_desc *desc = &check->request->desc.squared_error;
    cek_dtype sum = cek__type_sum(desc->type);
    CEK__VALIDATE(rows_check(check, desc->type, desc->rows, desc->columns, "columns"));
    CEK__VALIDATE(cek__validate_positive(check, "rows_per_sample", desc->rows_per_sample));
    CEK__VALIDATE(cek__validate_reserved(check, desc->reserved));
    CEK__VALIDATE(CEK__SLOT_SIZE(check, CEK_SQUARED_ERROR_PREDICTION, desc->type, desc->rows, desc->columns));
    CEK__VALIDATE(CEK__SLOT_SIZE(check, CEK_SQUARED_ERROR_TARGET, sum, desc->rows, desc->columns));
    CEK__VALIDATE(CEK__SLOT_SIZE(check, CEK_SQUARED_ERROR_WEIGHTS, CEK_F32, desc->rows));
    cek__slot_block(check, CEK_SQUARED_ERROR_STEP, sizeof(cek_step_block));
    cek__slot_block(check, CEK_SQUARED_ERROR_BATCH, sizeof(cek_batch_block));
    CEK__VALIDATE(CEK__SLOT_SIZE(check, CEK_SQUARED_ERROR_DPREDICTION, desc->type, desc->rows, desc->columns));
    CEK__VALIDATE(CEK__SLOT_SIZE(check, CEK_SQUARED_ERROR_LOSS, sum, 1));
    return loss_check(check, CEK_SQUARED_ERROR_DPREDICTION, CEK_SQUARED_ERROR_STEP,
                      CEK_BIT(CEK_SQUARED_ERROR_DPREDICTION) | CEK_BIT(CEK_SQUARED_ERROR_LOSS));
}

/* --- random numbers ----------------------------------------------------------------------------------------------- */

/* The counter has 32 bits for groups of four elements of a sample. */
static cek_status sample_check(const cek__validation *check, uint64_t rows_per_sample, uint64_t columns)
{
    uint64_t elements;
    CEK__VALIDATE(cek__validate_positive(check, "rows_per_sample", rows_per_sample));
    if (!cek__mul(rows_per_sample, columns, &elements) || elements > (uint64_t)1 << 34)
        return CEK__INVALID(check, "a sample of %llu rows and %llu columns has more than 2^34 elements",
                            (unsigned long long)rows_per_sample, (unsigned long long)columns);
    return CEK_OK;
}

cek_status cek__validate_dropout(const cek__validation *check)
{
    const cek_dropout_desc *desc = &check->request->desc.dropout;
    CEK__VALIDATE(rows_check(check, desc->type, desc->rows, desc->columns, "columns"));
    CEK__VALIDATE(sample_check(check, desc->rows_per_sample, desc->columns));
    CEK__VALIDATE(cek__validate_reserved(check, desc->reserved));
    CEK__VALIDATE(CEK__SLOT_SIZE(check, CEK_DROPOUT_X, desc->type, desc->rows, desc->columns));
    CEK__VALIDATE(CEK__SLOT_SIZE(check, CEK_DROPOUT_Y, desc->type, desc->rows, desc->columns));
    cek__slot_block(check, CEK_DROPOUT_STEP, sizeof(cek_step_block));
    cek__slot_block(check, CEK_DROPOUT_BATCH, sizeof(cek_batch_block));
    return CEK_OK;
}

cek_status cek__validate_random(const cek__validation *check)
{
    const cek_random_desc *desc = &check->request->desc.random;
    CEK__VALIDATE(rows_check(check, desc->type, desc->rows, desc->columns, "columns"));
    CEK__VALIDATE(sample_check(check, desc->rows_per_sample, desc->columns));
    CEK__VALIDATE(cek__validate_enum(check, "distribution", desc->distribution, CEK_RANDOM_UNIFORM, CEK_RANDOM_NORMAL));
    CEK__VALIDATE(cek__validate_reserved(check, desc->reserved));
    CEK__VALIDATE(CEK__SLOT_SIZE(check, CEK_RANDOM_Y, desc->type, desc->rows, desc->columns));
    cek__slot_block(check, CEK_RANDOM_STEP, sizeof(cek_step_block));
    cek__slot_block(check, CEK_RANDOM_BATCH, sizeof(cek_batch_block));
    return CEK_OK;
}

/* --- optimizer ---------------------------------------------------------------------------------------------------- */

enum { STATE_BYTES = 256 };

static cek_status ranges_copy(const cek__validation *check)
{
    cek__request *request = check->request;
    cek_optimizer_desc *desc = &request->desc.optimizer;
    const cek_param_range *given = desc->ranges;
    desc->ranges = NULL;
    if (!desc->range_count)
        return CEK_OK;
    if (!given)
        return CEK__INVALID(check, "%u ranges are counted, but not given", desc->range_count);
    request->ranges = calloc(desc->range_count, sizeof *request->ranges);
    if (!request->ranges)
        return cek__validate_fail(check, CEK_OUT_OF_MEMORY, "no memory for %u ranges", desc->range_count);
    for (uint32_t i = 0; i < desc->range_count; i++)
        CEK__VALIDATE(cek__element_in(check->host, "optimizer range", given, i, desc->range_size, &request->ranges[i],
                                      sizeof *request->ranges));
    desc->ranges = request->ranges;
    desc->range_size = sizeof *request->ranges;
    return CEK_OK;
}

static cek_status ranges_check(const cek__validation *check)
{
    const cek_optimizer_desc *desc = &check->request->desc.optimizer;
    uint64_t end = 0;
    for (uint32_t i = 0; i < desc->range_count; i++) {
        const cek_param_range *range = &desc->ranges[i];
        CEK__VALIDATE(cek__validate_reserved(check, range->reserved));
        if (range->begin < end || range->end < range->begin || range->end > desc->count)
            return CEK__INVALID(check, "range %u is [%llu, %llu): it does not ascend, or ends behind %llu", i,
                                (unsigned long long)range->begin, (unsigned long long)range->end,
                                (unsigned long long)desc->count);
        if (range->group >= CEK_PARAM_GROUPS)
            return CEK__INVALID(check, "range %u is of group %u, there are %u", i, range->group, CEK_PARAM_GROUPS);
        end = range->end;
    }
    return CEK_OK;
}

/* What each algorithm takes. */
typedef struct algorithm {
    uint32_t flags;
    bool momentum, dampening, epsilon, decay, v;
} algorithm;
static const algorithm algorithms[] = {
    [CEK_OPTIMIZER_SGD] = { .flags = CEK_OPTIMIZER_NESTEROV, .momentum = true, .dampening = true },
    [CEK_OPTIMIZER_ADAM] = { .flags = CEK_OPTIMIZER_DECOUPLED, .epsilon = true, .v = true },
    [CEK_OPTIMIZER_RMSPROP] = { .flags = CEK_OPTIMIZER_CENTERED,
                                .momentum = true,
                                .epsilon = true,
                                .decay = true,
                                .v = true },
    [CEK_OPTIMIZER_ADAGRAD] = { .epsilon = true, .decay = true, .v = true },
};

static cek_status numbers_check(const cek__validation *check, const algorithm *takes)
{
    const cek_optimizer_desc *desc = &check->request->desc.optimizer;
    CEK__VALIDATE(cek__validate_finite(check, "momentum", desc->momentum, 0));
    CEK__VALIDATE(cek__validate_finite(check, "dampening", desc->dampening, -1.7976931348623157e308));
    CEK__VALIDATE(cek__validate_finite(check, "epsilon", desc->epsilon, 0));
    CEK__VALIDATE(cek__validate_finite(check, "decay", desc->decay, 0));
    if (desc->momentum != 0 && !takes->momentum)
        return CEK__INVALID(check, "momentum is SGD's and RMSprop's");
    if (desc->dampening != 0 && !takes->dampening)
        return CEK__INVALID(check, "dampening is SGD's");
    if (desc->epsilon != 0 && !takes->epsilon)
        return CEK__INVALID(check, "epsilon is Adam's, RMSprop's and Adagrad's");
    if (desc->decay != 0 && !takes->decay)
        return CEK__INVALID(check, "decay is RMSprop's and Adagrad's");
    if (desc->algorithm == CEK_OPTIMIZER_RMSPROP && desc->decay > 1)
        return CEK__INVALID(check, "a mean's decay of %g is above 1", desc->decay);
    return CEK_OK;
}

static cek_status algorithm_check(const cek__validation *check)
{
    const cek_optimizer_desc *desc = &check->request->desc.optimizer;
    const algorithm *takes;
    CEK__VALIDATE(cek__validate_enum(check, "algorithm", desc->algorithm, CEK_OPTIMIZER_SGD, CEK_OPTIMIZER_ADAGRAD));
    CEK__VALIDATE(cek__validate_flags(check, "optimizer flags", desc->flags,
                                      CEK_OPTIMIZER_NESTEROV | CEK_OPTIMIZER_DECOUPLED | CEK_OPTIMIZER_CENTERED));
    takes = &algorithms[desc->algorithm];
    CEK__VALIDATE(numbers_check(check, takes));
    if (desc->flags & CEK_OPTIMIZER_NESTEROV && (!(takes->flags & CEK_OPTIMIZER_NESTEROV) || desc->momentum == 0))
        return CEK__INVALID(check, "CEK_OPTIMIZER_NESTEROV is for SGD with momentum");
    if (desc->flags & ~takes->flags)
        return CEK__INVALID(check, desc->flags & CEK_OPTIMIZER_DECOUPLED ? "CEK_OPTIMIZER_DECOUPLED is for Adam"
                                                                         : "CEK_OPTIMIZER_CENTERED is for RMSprop");
    CEK__VALIDATE(cek__validate_presence(check, CEK_OPTIMIZER_M,
                                         desc->algorithm == CEK_OPTIMIZER_ADAM || desc->momentum != 0,
                                         "for Adam and for momentum"));
    CEK__VALIDATE(cek__validate_presence(check, CEK_OPTIMIZER_MEAN, desc->flags & CEK_OPTIMIZER_CENTERED,
                                         "with CEK_OPTIMIZER_CENTERED"));
    return cek__validate_presence(check, CEK_OPTIMIZER_V, takes->v, "for all but SGD");
}

cek_status cek__validate_optimizer(const cek__validation *check)
{
    const cek_optimizer_desc *desc = &check->request->desc.optimizer;
    CEK__VALIDATE(ranges_copy(check));
    CEK__VALIDATE(cek__validate_positive(check, "count", desc->count));
    CEK__VALIDATE(cek__validate_type(check, "type", desc->type, 1u << CEK_F32 | 1u << CEK_F64));
    CEK__VALIDATE(algorithm_check(check));
    CEK__VALIDATE(cek__validate_presence(check, CEK_OPTIMIZER_LOW, desc->low_type != CEK_DTYPE_NONE, "with low_type"));
    if (desc->low_type)
        CEK__VALIDATE(cek__validate_type(check, "low_type", desc->low_type, 1u << CEK_F16 | 1u << CEK_BF16));
    CEK__VALIDATE(ranges_check(check));
    CEK__VALIDATE(CEK__SLOT_SIZE(check, CEK_OPTIMIZER_PARAM, desc->type, desc->count));
    CEK__VALIDATE(CEK__SLOT_SIZE(check, CEK_OPTIMIZER_GRAD, desc->type, desc->count));
    CEK__VALIDATE(CEK__SLOT_SIZE(check, CEK_OPTIMIZER_M, desc->type, desc->count));
    CEK__VALIDATE(CEK__SLOT_SIZE(check, CEK_OPTIMIZER_V, desc->type, desc->count));
    CEK__VALIDATE(CEK__SLOT_SIZE(check, CEK_OPTIMIZER_MEAN, desc->type, desc->count));
    CEK__VALIDATE(CEK__SLOT_SIZE(check, CEK_OPTIMIZER_LOW, desc->low_type, desc->count));
    cek__slot_block(check, CEK_OPTIMIZER_STATE, STATE_BYTES);
    cek__slot_block(check, CEK_OPTIMIZER_STEP, sizeof(cek_step_block));
    cek__slot_block(check, CEK_OPTIMIZER_UPDATE, sizeof(cek_update_block));
    return CEK_OK;
}
