/* trainer_options.c - what a trainer is made of: its options, held against the model. */
#include "cekernels/parts.h"
#include "core/base/status.h"
#include "nn/train/samples.h"
#include "nn/train/trainer.h"

static cek_status outputs_check(cek_trainer *t, const cek_trainer_options *o)
{
    int64_t shape[CEK_RANK_MAX];
    int rank = cek_model_output_shape(t->model, shape);
    cek_status failed = cek_model_status(t->model);
    bool own = cek__model_own_targets(t->model, &t->targets);

    if (failed != CEK_OK)
        return failed;
    t->outputs = cek__model_outputs(t->model);
    if (t->loss == CEK_LOSS_OWN) {
        if (!own)
            return cek__fail(CEK_INVALID, "the model has no loss of its own");
        if (o->target_columns && o->target_columns != t->targets.columns)
            return cek__fail(CEK_INVALID, "targets of %u values per sample, the model's loss takes %u %s",
                             o->target_columns, t->targets.columns, cek__targets_name(&t->targets));
        return CEK_OK;
    }
    if (rank != 1)
        return cek__fail(CEK_INVALID,
                         "the model's output has %d dimensions per sample: add "
                         "flatten before the last linear layer",
                         rank);
    t->targets = (cek__targets){ CEK_I32, 1 };
    if (t->loss == CEK_LOSS_CROSS_ENTROPY) {
        if (o->target_columns)
            return cek__fail(CEK_INVALID,
                             "cross-entropy takes class labels, not %u values per "
                             "sample",
                             o->target_columns);
        return CEK_OK;
    }
    t->targets = (cek__targets){ CEK_F32, o->target_columns ? o->target_columns : (uint32_t)t->outputs };
    if (t->targets.columns != t->outputs)
        return cek__fail(CEK_INVALID,
                         "squared error of outputs (%lld,%lld) against targets "
                         "(%lld,%u): shapes must be equal",
                         (long long)t->batch, (long long)t->outputs, (long long)t->batch, t->targets.columns);
    return CEK_OK;
}

/* Where samples meet, who is with whom must not depend on how a batch is split. */
static cek_status group_check(cek_trainer *t, size_t count, const cek_trainer_options *o)
{
    bool mixes = cek__model_mixes_samples(t->model);
    int64_t part = t->batch / (int64_t)t->accumulate;
    if (o->norm_group < 0 || o->norm_group > INT32_MAX)
        return cek__fail(CEK_INVALID, "norm_group %lld: a number of samples", (long long)o->norm_group);
    if (mixes && o->norm_group == 0 && count > 1)
        return cek__fail(CEK_INVALID,
                         "the model normalises over samples: over several devices say over how many at a time "
                         "(norm_group)");
    if (mixes && o->shares == CEK_SHARES_AUTO && count > 1)
        return cek__fail(CEK_INVALID, "norm_group goes with equal or given shares");
    t->group = !mixes ? 0 : o->norm_group && o->norm_group < part ? o->norm_group : part;
    return CEK_OK;
}

cek_status cek__trainer_take(cek_trainer *t, size_t count, const cek_trainer_options *o)
{
    cek_status st;
    t->loss = o->loss ? o->loss : t->model->loss ? CEK_LOSS_OWN : CEK_LOSS_CROSS_ENTROPY;
    t->accumulate = o->accumulate ? o->accumulate : 1;
    t->batch = o->batch ? o->batch : 64;
    t->seed = o->seed;
    if (t->loss > CEK_LOSS_OWN)
        CEK_FAIL(CEK_INVALID, "loss %u is neither cross-entropy nor squared error nor the model's own", t->loss);
    if (t->model->loss && t->loss != CEK_LOSS_OWN)
        CEK_FAIL(CEK_INVALID, "the model has a loss of its own: another one was asked for");
    if (t->batch < 1 || t->batch > INT32_MAX)
        CEK_FAIL(CEK_INVALID, "batch of %lld samples", (long long)t->batch);
    CEK_TRY(cek__model_take_input_type(t->model, o->input_type, &t->input_type));
    if (o->type == CEK_U8 || o->type == CEK_I32 || o->type > CEK_I32)
        CEK_FAIL(CEK_UNSUPPORTED, "training in %s: f32, bf16, f16 and f64 are offered", cek_dtype_name(o->type));
    t->depth = o->depth ? o->depth : CEK_DEPTH_DEFAULT;
    t->memory_limit = o->memory_limit;
    if (t->depth > CEK_DEPTH_MOST)
        CEK_FAIL(CEK_INVALID, "%u steps under way: at most %d are possible", o->depth, CEK_DEPTH_MOST);
    if (t->batch > INT32_MAX / (int64_t)t->accumulate)
        CEK_FAIL(CEK_INVALID, "%u batches of %lld samples in a step", t->accumulate, (long long)t->batch);
    t->batch *= t->accumulate;
    if (o->shares > CEK_SHARES_GIVEN)
        CEK_FAIL(CEK_INVALID, "shares %u are none of CEK_SHARES_AUTO, _EQUAL and _GIVEN", o->shares);
    if ((o->shares == CEK_SHARES_GIVEN) != (o->share_weights != NULL))
        CEK_FAIL(CEK_INVALID, "share_weights go with CEK_SHARES_GIVEN, and only with it");
    CEK_TRY(outputs_check(t, o));
    CEK_TRY(group_check(t, count, o));
    CEK_TRY(cek__rates_create(o->schedule, &t->rates));
    return CEK_OK;
out:
    return st;
}
