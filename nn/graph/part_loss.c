/* part_loss.c - the losses: their sum, the count of right answers, and the gradient of what they are given, which is
 * output 0 and is computed only if somebody reads it. */
#include "nn/graph/parts.h"
#include "nn/graph/physical.h"

static cek_status loss_infer(const cek__graph *graph, const cek__part *part, cek__flow out[CEK__PART_OUTPUTS])
{
    cek__dims wanted = graph->flows[part->input[0]].dims;

    out[0].dims = wanted;
    wanted.rank -= part->kind != CEK__PART_SQUARED_ERROR;
    if (!cek__dims_equal(&wanted, &graph->flows[part->input[1]].dims))
        return cek__fail(CEK_INVALID, "targets that do not fit what is predicted");
    return CEK_OK;
}

/* What both want besides their own. */
typedef struct loss_values {
    int x, target, step, gradient, loss, correct;
} loss_values;

static cek_status values_make(cek__lowering *l, int part, uint32_t slot, loss_values *v, cek__destination *to)
{
    cek_status st;
    const cek__part *p = &l->graph->parts[part];

    *v = (loss_values){ .x = cek__lower_read(l, p->input[0]), .target = cek__lower_read(l, p->input[1]) };
    CEK_TRY(cek__program_value(l->program, (cek__value){ .place = CEK__PLACE_LOSS, .bytes = 8 }, &v->loss));
    CEK_TRY(cek__program_value(l->program, (cek__value){ .place = CEK__PLACE_CORRECT, .bytes = 4 }, &v->correct));
    if (l->graph->flows[p->output[0]].readers > 0) {
        CEK_TRY(cek__lower_write(l, p->output[0], slot, to));
        v->gradient = to->value;
        v->step = l->step;
    }
    return CEK_OK;
out:
    return st;
}

static cek_status cross_entropy_lower(cek__lowering *l, int part)
{
    cek_status st;
    const cek__dims *x = &l->graph->flows[l->graph->parts[part].input[0]].dims;
    cek__destination to = { 0 };
    loss_values v;
    uint64_t rows = (uint64_t)cek__dims_elements(x, 0, x->rank - 1, l->rows);
    cek_cross_entropy_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_CROSS_ENTROPY },
        .rows = rows,
        .classes = (uint64_t)x->size[x->rank - 1],
        .rows_per_sample = rows / (uint64_t)l->rows,
        .type = l->type,
    };

    CEK_TRY(values_make(l, part, CEK_CROSS_ENTROPY_DLOGITS, &v, &to));
    to.accumulate |= CEK_BIT(CEK_CROSS_ENTROPY_LOSS) | CEK_BIT(CEK_CROSS_ENTROPY_CORRECT);
    return cek__lower_emit(l, part, &desc.op,
                           (int[CEK__SLOTS]){ [CEK_CROSS_ENTROPY_LOGITS] = v.x,
                                              [CEK_CROSS_ENTROPY_LABELS] = v.target,
                                              [CEK_CROSS_ENTROPY_STEP] = v.step,
                                              [CEK_CROSS_ENTROPY_BATCH] = l->batch,
                                              [CEK_CROSS_ENTROPY_DLOGITS] = v.gradient,
                                              [CEK_CROSS_ENTROPY_LOSS] = v.loss,
                                              [CEK_CROSS_ENTROPY_CORRECT] = v.correct },
                           &to);
out:
    return st;
}

/* The same operation with the count alone. */
static cek_status hits_lower(cek__lowering *l, int part)
{
    cek_status st;
    const cek__part *p = &l->graph->parts[part];
    const cek__dims *x = &l->graph->flows[p->input[0]].dims;
    uint64_t rows = (uint64_t)cek__dims_elements(x, 0, x->rank - 1, l->rows);
    int correct;
    cek_cross_entropy_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_CROSS_ENTROPY },
        .rows = rows,
        .classes = (uint64_t)x->size[x->rank - 1],
        .rows_per_sample = rows / (uint64_t)l->rows,
        .type = l->type,
    };

    CEK_TRY(cek__program_value(l->program, (cek__value){ .place = CEK__PLACE_CORRECT, .bytes = 4 }, &correct));
    return cek__lower_emit(l, part, &desc.op,
                           (int[CEK__SLOTS]){ [CEK_CROSS_ENTROPY_LOGITS] = cek__lower_read(l, p->input[0]),
                                              [CEK_CROSS_ENTROPY_LABELS] = cek__lower_read(l, p->input[1]),
                                              [CEK_CROSS_ENTROPY_BATCH] = l->batch,
                                              [CEK_CROSS_ENTROPY_CORRECT] = correct },
                           &(cek__destination){ .accumulate = CEK_BIT(CEK_CROSS_ENTROPY_CORRECT) });
out:
    return st;
}

static cek_status squared_error_lower(cek__lowering *l, int part)
{
    cek_status st;
    int x = l->graph->parts[part].input[0];
    cek__destination to = { 0 };
    loss_values v;
    cek_squared_error_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_SQUARED_ERROR },
        .rows = (uint64_t)l->rows,
        .columns = cek__lower_elements(l, x) / (uint64_t)l->rows,
        .rows_per_sample = 1,
        .type = l->type,
    };

    CEK_TRY(values_make(l, part, CEK_SQUARED_ERROR_DPREDICTION, &v, &to));
    to.accumulate |= CEK_BIT(CEK_SQUARED_ERROR_LOSS);
    return cek__lower_emit(l, part, &desc.op,
                           (int[CEK__SLOTS]){ [CEK_SQUARED_ERROR_PREDICTION] = v.x,
                                              [CEK_SQUARED_ERROR_TARGET] = v.target,
                                              [CEK_SQUARED_ERROR_STEP] = v.step,
                                              [CEK_SQUARED_ERROR_BATCH] = l->batch,
                                              [CEK_SQUARED_ERROR_DPREDICTION] = v.gradient,
                                              [CEK_SQUARED_ERROR_LOSS] = v.loss },
                           &to);
out:
    return st;
}

/* ---- a sum of values, whatever they are made of ---- */

cek_status cek__loss(cek__graph *graph, int v, int w, int *out)
{
    cek_status st;
    cek__part loss = { .kind = CEK__PART_LOSS, .inputs = 1, .input = { v } };
    cek__part weighed = { .kind = CEK__PART_CHAIN,
                          .inputs = 2,
                          .input = { v, w },
                          .chain = { 3,
                                     { { .code = CEK_PW_MUL, .a = 0, .b = 1 },
                                       { .code = CEK_PW_CONST },
                                       { .code = CEK_PW_SELECT, .a = 1, .b = 2, .c = 3 } } } };

    if (w)
        CEK_TRY(cek__graph_add(graph, &weighed, &loss.input[0]));
    return cek__graph_add(graph, &loss, out);
out:
    return st;
}

static cek_status sum_infer(const cek__graph *graph, const cek__part *part, cek__flow out[CEK__PART_OUTPUTS])
{
    out[0].dims = graph->flows[part->input[0]].dims;
    if (out[0].dims.samples != 1 || out[0].dims.outside)
        return cek__fail(CEK_INVALID, "takes samples along its first axis");
    return CEK_OK;
}

static cek_dtype sum_type(const cek__lowering *l)
{
    return l->type == CEK_F64 ? CEK_F64 : CEK_F32;
}

/* `value` is to be v where the sample counts and 0 elsewhere (v 0: the constant imm, everywhere). */
static cek_status values_emit(cek__lowering *l, int part, int v, double imm, cek_dtype type, int value)
{
    const uint64_t elements = cek__lower_elements(l, l->graph->parts[part].input[0]);
    cek_pointwise_input input = { .type = l->type, .strides = { 1 } };
    const cek_pointwise_instruction given[3] = { { .code = CEK_PW_VALID },
                                                 { .code = CEK_PW_CONST },
                                                 { .code = CEK_PW_SELECT, .a = 1, .b = 0, .c = 2 } },
                                    constant = { .code = CEK_PW_CONST, .imm = imm };
    cek_pointwise_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_POINTWISE },
        .rank = 1,
        .out_type = type,
        .shape = { elements },
        .out_strides = { 1 },
        .inputs = &input,
        .instructions = v ? given : &constant,
        .input_count = v ? 1 : 0,
        .input_size = sizeof input,
        .instruction_count = v ? 3 : 1,
        .instruction_size = sizeof constant,
        .rows_per_sample = v ? elements / (uint64_t)l->rows : 0,
    };

    return cek__lower_emit(l, part, &desc.op,
                           (int[CEK__SLOTS]){ [CEK_POINTWISE_IN0] = v,
                                              [CEK_POINTWISE_BATCH] = v ? l->batch : CEK__NO_VALUE,
                                              [CEK_POINTWISE_OUT] = value },
                           &(cek__destination){ 0 });
}

static cek_status sum_emit(cek__lowering *l, int part, int values)
{
    cek_status st;
    int loss;
    cek_reduce_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_REDUCE },
        .function = CEK_REDUCE_SUM,
        .axes = 1,
        .rank = 1,
        .x_type = sum_type(l),
        .shape = { cek__lower_elements(l, l->graph->parts[part].input[0]) },
        .x_strides = { 1 },
    };

    CEK_TRY(cek__program_value(l->program, (cek__value){ .place = CEK__PLACE_LOSS, .bytes = 8 }, &loss));
    return cek__lower_emit(l, part, &desc.op, (int[CEK__SLOTS]){ [CEK_REDUCE_X] = values, [CEK_REDUCE_Y] = loss },
                           &(cek__destination){ .accumulate = CEK_BIT(CEK_REDUCE_Y) });
out:
    return st;
}

/* What a sum weighs a sample with, inv_n and the loss's scale where it counts and 0 elsewhere, is in the step block,
 * which the squared error of 1/2 and 0 reads: its gradient is twice the difference of the two, times that. */
static cek_status weights_emit(cek__lowering *l, int part, int half, int zero)
{
    cek_status st;
    const cek__part *p = &l->graph->parts[part];
    cek__destination to = { 0 };
    cek_squared_error_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_SQUARED_ERROR },
        .rows = (uint64_t)l->rows,
        .columns = cek__lower_elements(l, p->input[0]) / (uint64_t)l->rows,
        .rows_per_sample = 1,
        .type = l->type,
    };

    CEK_TRY(cek__lower_write(l, p->output[0], CEK_SQUARED_ERROR_DPREDICTION, &to));
    return cek__lower_emit(l, part, &desc.op,
                           (int[CEK__SLOTS]){ [CEK_SQUARED_ERROR_PREDICTION] = half,
                                              [CEK_SQUARED_ERROR_TARGET] = zero,
                                              [CEK_SQUARED_ERROR_STEP] = l->step,
                                              [CEK_SQUARED_ERROR_BATCH] = l->batch,
                                              [CEK_SQUARED_ERROR_DPREDICTION] = to.value },
                           &to);
out:
    return st;
}

static cek_status sum_lower(cek__lowering *l, int part)
{
    cek_status st;
    const cek__part *p = &l->graph->parts[part];
    uint64_t elements = cek__lower_elements(l, p->input[0]);
    cek__value sum = { .place = CEK__PLACE_ARENA, .bytes = elements * cek_dtype_bytes(sum_type(l)) };
    cek__value own = { .place = CEK__PLACE_ARENA, .bytes = elements * cek_dtype_bytes(l->type) };
    int values, half, zero;

    CEK_TRY(cek__program_value(l->program, sum, &values));
    CEK_TRY(values_emit(l, part, cek__lower_read(l, p->input[0]), 0, sum_type(l), values));
    CEK_TRY(sum_emit(l, part, values));
    if (l->graph->flows[p->output[0]].readers == 0)
        return CEK_OK;
    CEK_TRY(cek__program_value(l->program, own, &half));
    CEK_TRY(cek__program_value(l->program, sum, &zero));
    CEK_TRY(values_emit(l, part, CEK__NO_VALUE, 0.5, l->type, half));
    CEK_TRY(values_emit(l, part, CEK__NO_VALUE, 0, sum_type(l), zero));
    return weights_emit(l, part, half, zero);
out:
    return st;
}

const cek__part_class cek__part_cross_entropy = { .name = "cross_entropy",
                                                  .outputs = 1,
                                                  .infer = loss_infer,
                                                  .place = cek__place_plain,
                                                  .types = CEK__TYPES_LOSS,
                                                  .lower = cross_entropy_lower };
const cek__part_class cek__part_squared_error = { .name = "squared_error",
                                                  .outputs = 1,
                                                  .infer = loss_infer,
                                                  .place = cek__place_plain,
                                                  .types = CEK__TYPES_LOSS,
                                                  .lower = squared_error_lower,
                                                  .floats = true };
const cek__part_class cek__part_loss = { .name = "loss",
                                         .outputs = 1,
                                         .infer = sum_infer,
                                         .place = cek__place_plain,
                                         .types = CEK__TYPES_LOSS,
                                         .lower = sum_lower,
                                         .floats = true };
const cek__part_class cek__part_hits = {
    .name = "hits", .infer = loss_infer, .place = cek__place_plain, .types = CEK__TYPES_LOSS, .lower = hits_lower
};
