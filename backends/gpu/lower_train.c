/* SPDX-License-Identifier: MIT
 * lower_train.c - softmax, losses, random numbers, dropout, optimizer. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include "backends/gpu/lower.h"

/* One launch for the rows of `a`: how many work-items share a row, and how many rows a group. */
static cek__gpu_step *rows_add(cek_op *op, const char *defines, const char *name, cek_k_rows *a)
{
    uint32_t group;
    cek__gpu_step *step = cek__gpu_step_load(op, "rows.cl", defines, name, &group);
    a->lanes = cek__gpu_row_items(a->columns, group);
    a->lane_bits = (cek_u32)__builtin_ctz(a->lanes);
    a->group_rows = group / a->lanes;
    a->groups = (a->rows + a->group_rows - 1) / a->group_rows;
    cek__gpu_step_groups(op, step, a->groups, group, 1);
    return step;
}

cek_status cek__gpu_lower_softmax(cek_op *op)
{
    const cek_softmax_desc *desc = &op->request.desc.softmax;
    cek_k_rows a = { .rows = desc->rows, .columns = desc->columns, .log = desc->flags & CEK_SOFTMAX_LOG };
    const cek__gpu_place buffers[] = { { CEK_SOFTMAX_X, 0 }, { CEK_SOFTMAX_Y, 0 } };
    char defines[CEK__GPU_DEFINES];
    cek__gpu_defines(op->dev, defines, "#define TYPE %s\n", cek__gpu_type(desc->type));
    cek__gpu_step *step = rows_add(op, defines, "softmax", &a);
    cek__gpu_step_fill(step, buffers, 2, &a, sizeof a);
    return op->failure;
}

/* Both losses: slots 0 to 5 mean the same in both, and so does 6. */
cek_status cek__gpu_lower_loss(cek_op *op)
{
    const cek_cross_entropy_desc *entropy = &op->request.desc.cross_entropy;
    const cek_squared_error_desc *squared = &op->request.desc.squared_error;
    bool classes = op->request.desc.op.kind == CEK_OP_CROSS_ENTROPY;
    _Static_assert((int)CEK_CROSS_ENTROPY_BATCH == (int)CEK_SQUARED_ERROR_BATCH &&
                       (int)CEK_CROSS_ENTROPY_LOSS == (int)CEK_SQUARED_ERROR_LOSS &&
                       (int)CEK_CROSS_ENTROPY_DLOGITS == (int)CEK_SQUARED_ERROR_DPREDICTION,
                   "the losses' slots differ");
    cek_k_rows a = { .rows = classes ? entropy->rows : squared->rows,
                     .columns = classes ? entropy->classes : squared->columns,
                     .rows_per_sample = classes ? entropy->rows_per_sample : squared->rows_per_sample };
    a.weights = cek__request_given(&op->request, CEK_CROSS_ENTROPY_WEIGHTS);
    a.step = cek__request_given(&op->request, CEK_CROSS_ENTROPY_STEP);
    a.batch = cek__request_given(&op->request, CEK_CROSS_ENTROPY_BATCH);
    a.gradient = cek__request_given(&op->request, CEK_CROSS_ENTROPY_DLOGITS);
    if (a.rows_per_sample > a.rows) /* there is one sample */
        a.rows_per_sample = a.rows;
    cek_k_total t = { .loss = cek__request_given(&op->request, CEK_CROSS_ENTROPY_LOSS),
                      .correct = classes && cek__request_given(&op->request, CEK_CROSS_ENTROPY_CORRECT),
                      .accumulate_loss = cek__request_accumulates(&op->request, CEK_CROSS_ENTROPY_LOSS),
                      .accumulate_correct = classes &&
                                            cek__request_accumulates(&op->request, CEK_CROSS_ENTROPY_CORRECT) };
    cek__gpu_place buffers[7];
    char defines[CEK__GPU_DEFINES];
    cek__gpu_defines(op->dev, defines, "#define TYPE %s\n", cek__gpu_type(classes ? entropy->type : squared->type));
    cek__gpu_step *step = rows_add(op, defines, classes ? "cross_entropy" : "squared_error", &a);
    const cek__gpu_place totals = cek__gpu_workspace(op, 2 * a.groups * sizeof(float));
    for (uint32_t i = 0; i < 6; i++)
        buffers[i] = cek__gpu_slot(op, i);
    buffers[6] = totals;
    cek__gpu_step_fill(step, buffers, 7, &a, sizeof a);
    if (t.loss || t.correct) {
        const cek__gpu_place nothing = { CEK__GPU_NOTHING, 0 };
        const cek__gpu_place sums[] = { totals, cek__gpu_slot(op, CEK_CROSS_ENTROPY_LOSS),
                                        classes ? cek__gpu_slot(op, CEK_CROSS_ENTROPY_CORRECT) : nothing };
        uint32_t group;
        step = cek__gpu_step_load(op, "rows.cl", defines, "total_rows", &group);
        t.groups = a.groups;
        t.lanes = cek__gpu_row_items(a.groups, group);
        cek__gpu_step_groups(op, step, 1, t.lanes, 1);
        cek__gpu_step_fill(step, sums, 3, &t, sizeof t);
    }
    return op->failure;
}

cek_status cek__gpu_lower_random(cek_op *op)
{
    const cek_dropout_desc *dropout = &op->request.desc.dropout;
    const cek_random_desc *random = &op->request.desc.random;
    bool drop = op->request.desc.op.kind == CEK_OP_DROPOUT;
    uint64_t rows = drop ? dropout->rows : random->rows, columns = drop ? dropout->columns : random->columns;
    uint64_t rows_per_sample = drop ? dropout->rows_per_sample : random->rows_per_sample;
    if (rows_per_sample > rows) /* there is one sample, of which so much is there */
        rows_per_sample = rows;
    cek_k_random a = { .samples = (rows + rows_per_sample - 1) / rows_per_sample,
                       .sample_elements = rows_per_sample * columns,
                       .elements = rows * columns };
    a.blocks = (a.sample_elements + 3) / 4;
    a.stream = drop ? dropout->stream : random->stream;
    a.batch = cek__request_given(&op->request, drop ? CEK_DROPOUT_BATCH : CEK_RANDOM_BATCH);
    a.threshold = drop ? dropout->threshold : 0;
    a.normal = !drop && random->distribution == CEK_RANDOM_NORMAL;
    a.a = drop ? (float)dropout->scale : (float)random->a;
    a.b = drop ? 0 : (float)random->b;
    const cek__gpu_place buffers[] = { drop ? (cek__gpu_place){ CEK_DROPOUT_X, 0 }
                                            : (cek__gpu_place){ CEK__GPU_NOTHING, 0 },
                                       { drop ? CEK_DROPOUT_Y : CEK_RANDOM_Y, 0 },
                                       { drop ? CEK_DROPOUT_STEP : CEK_RANDOM_STEP, 0 },
                                       cek__gpu_slot(op, drop ? CEK_DROPOUT_BATCH : CEK_RANDOM_BATCH) };
    char defines[CEK__GPU_DEFINES];
    cek__gpu_defines(op->dev, defines, "#define TYPE %s\n", cek__gpu_type(drop ? dropout->type : random->type));
    cek__gpu_step_fill(cek__gpu_step_add(op, "random.cl", defines, drop ? "dropout" : "random_fill",
                                         cek__gpu_items(op->dev, a.samples * a.blocks)),
                       buffers, 4, &a, sizeof a);
    return op->failure;
}

/* Fours that begin at a multiple of four, but pieces on a CPU. */
static uint64_t optimizer_items(const cek_dev *dev, const cek_k_optimizer *a)
{
    return dev->traits.vector_width ? cek__gpu_items(dev, a->count) : (a->begin % 4 + a->count + 3) / 4;
}

cek_status cek__gpu_lower_optimizer(cek_op *op)
{
    const cek_optimizer_desc *desc = &op->request.desc.optimizer;
    static const char *const kernels[] = { [CEK_OPTIMIZER_SGD] = "sgd",
                                           [CEK_OPTIMIZER_ADAM] = "adam",
                                           [CEK_OPTIMIZER_RMSPROP] = "rmsprop",
                                           [CEK_OPTIMIZER_ADAGRAD] = "adagrad" };
    const bool low = cek__request_given(&op->request, CEK_OPTIMIZER_LOW);
    cek_k_optimizer a = { .update = cek__request_given(&op->request, CEK_OPTIMIZER_UPDATE),
                          .low = low,
                          .nesterov = desc->flags & CEK_OPTIMIZER_NESTEROV,
                          .decoupled = desc->flags & CEK_OPTIMIZER_DECOUPLED,
                          .momentum_given = cek__request_given(&op->request, CEK_OPTIMIZER_M),
                          .momentum = (float)desc->momentum,
                          .one_minus_dampening = (float)(1 - desc->dampening),
                          .epsilon = (float)desc->epsilon,
                          .decay = (float)desc->decay,
                          .one_minus_decay = (float)(1 - desc->decay),
                          .centered = cek__request_given(&op->request, CEK_OPTIMIZER_MEAN) };
    cek__gpu_place buffers[CEK_OPTIMIZER_MEAN + 1];
    char defines[CEK__GPU_DEFINES], low_line[64] = "";
    if (desc->op.operands && desc->type != CEK_F32)
        return cek__host_fail(&op->dev->instance->host, CEK_UNSUPPORTED, "optimizer: parameters of %s",
                              cek__type_name(desc->type));
    for (uint32_t i = 0; i <= CEK_OPTIMIZER_MEAN; i++)
        buffers[i] = cek__gpu_slot(op, i);
    if (low)
        snprintf(low_line, sizeof low_line, "#define LOW_TYPE %s\n", cek__gpu_type(desc->low_type));
    cek__gpu_defines(op->dev, defines, "#define TYPE %s\n%s", cek__gpu_type(desc->type), low_line);
    for (uint32_t i = 0; i < desc->range_count; i++) {
        a.begin = desc->ranges[i].begin;
        a.count = desc->ranges[i].end - desc->ranges[i].begin;
        a.group = desc->ranges[i].group;
        if (a.count)
            cek__gpu_step_fill(cek__gpu_step_add(op, "optimizer.cl", defines, kernels[desc->algorithm],
                                                 optimizer_items(op->dev, &a)),
                               buffers, CEK_OPTIMIZER_MEAN + 1, &a, sizeof a);
    }
    a.count = 1;
    cek__gpu_step_fill(cek__gpu_step_add(op, "optimizer.cl", defines, "step_count", 1), buffers, CEK_OPTIMIZER_MEAN + 1,
                       &a, sizeof a);
    return op->failure;
}
