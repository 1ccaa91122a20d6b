/* part_loss.c - the losses: their sum, the count of right answers, and the gradient of what they are given, which is output 0 and
 * is computed only if somebody reads it. */
#include "nn/graph/parts.h"
#include "nn/graph/physical.h"

static cek_status loss_infer(const cek__graph *graph, const cek__part *part, cek__flow out[CEK__PART_OUTPUTS])
{
    cek__dims wanted = graph->flows[part->input[0]].dims;

    out[0].dims = wanted;
    wanted.rank -= part->kind == CEK__PART_CROSS_ENTROPY;
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

const cek__part_class cek__part_cross_entropy = {
    .name = "cross_entropy", .outputs = 1, .infer = loss_infer, .place = cek__place_plain, .lower = cross_entropy_lower
};
const cek__part_class cek__part_squared_error = {
    .name = "squared_error", .outputs = 1, .infer = loss_infer, .place = cek__place_plain, .lower = squared_error_lower
};
