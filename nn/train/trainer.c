/* trainer.c - the API of training: what a step is, batches in, losses out.
 *
 * Owns: the step block, what makes a batch acceptable, the state after a failure. What options may say is in
 * trainer_options.c, a step in two parts in held.c, the epochs around it in fit.c. */
#include "nn/train/trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/alloc.h"
#include "core/base/options.h"
#include "core/base/status.h"
#include "nn/train/samples.h"

/* ---- Creation -------------------------------------------------------------------------------- */

static cek__lineup_options lineup_options(const cek_trainer *t)
{
    return (cek__lineup_options){
        .layout = t->layout,
        .replicas = t->team.replicas,
        .crew = t->team.crew,
        .all = t->team.count,
        .rules = &t->rules,
        .depth = t->depth,
        .running = t->model->buffer_count ? t->running : NULL,
        .scaler = t->rules.scaled ? (cek__scaler *)&t->scaler : NULL,
        .measured = t->balanced,
        .memory_limit = t->memory_limit,
    };
}

/* What `index` takes beside its replica while those take part that do at first; of another, what the last of them
 * does. */
static uint64_t lineup_bytes(const void *user, size_t index)
{
    const cek_trainer *t = user;
    cek__lineup_options o = lineup_options(t);
    size_t members = 0, position = 0;
    uint64_t bytes;
    for (size_t i = 0; i < t->team.count; i++) {
        position += t->first[i] && i < index;
        members += t->first[i];
    }
    position = position < members ? position : members - 1;
    return cek__lineup_bytes(&o, members, position, &bytes) == CEK_OK ? bytes : 0;
}

/* Everybody takes part at first, but where shares are measured second views of a processor. */
static cek_status first_find(cek_trainer *t, cek_device *const *devices, size_t count)
{
    cek_status st;
    CEK_TRY(cek__calloc(count, sizeof *t->first, &t->first));
    if (t->balanced)
        return cek__balance_first(devices, count, t->first);
    for (size_t i = 0; i < count; i++)
        t->first[i] = true;
out:
    return st;
}

static cek_status team_make(cek_trainer *t, cek_device *const *devices, size_t count, const cek_trainer_options *o)
{
    cek_status st;
    cek__team_options team = {
        .layout = t->layout,
        .weights = o->share_weights,
        .batch = t->batch,
        .room = t->balanced ? 2 : 1,
        .parts = t->accumulate,
        .replica = { .training = true,
                     .cut_forward = count > 1,
                     .loss = t->loss,
                     .input_type = t->input_type,
                     .targets = t->targets,
                     .group = t->group,
                     .memory_limit = o->memory_limit,
                     .math = o->math,
                     .fallback = o->fallback },
        .extra_bytes = lineup_bytes,
        .user = t,
    };
    CEK_TRY(cek__team_check(t->model, devices, count, &team));
    CEK_TRY(first_find(t, devices, count));
    st = cek__team_create(t->model, devices, count, &team, &t->team);
out:
    return st;
}

static cek_status lineup_make(cek_trainer *t, cek_device *const *devices)
{
    cek_status st;
    cek__lineup_options o = lineup_options(t);
    if (t->balanced)
        CEK_TRY(cek__balance_create(&t->team, devices, t->batch, &t->rules, &t->balance));
    st = cek__lineup_create(&o, t->first, &t->lineup);
out:
    return st;
}

static cek_status pending_make(cek_trainer *t)
{
    cek_status st;
    CEK_TRY(cek__calloc(t->depth, sizeof *t->pending, &t->pending));
    for (size_t i = 0; i < t->depth; i++)
        CEK_TRY(cek__calloc(t->team.count, sizeof *t->pending[i].rows, &t->pending[i].rows));
out:
    return st;
}

cek_status cek_trainer_create(cek_model *model, cek_device *const *devices, size_t count,
                              const cek_trainer_options *options, cek_trainer **out)
{
    cek_status st;
    cek_trainer *t = NULL;
    cek_trainer_options o;
    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(model);
    CEK_TRY(cek__options_take("cek_trainer_create", &o, sizeof o, options));
    if (model->whole)
        CEK_FAIL(CEK_INVALID, "the model has one sample, the batch that its file was written with: it is not trained");
    CEK_TRY(cek__calloc(1, sizeof *t, &t));
    t->model = model;
    CEK_TRY(cek__trainer_take(t, count, &o));
    t->balanced = o.shares == CEK_SHARES_AUTO && count > 1;
    cek__samples_row(model, t->input_type, &t->targets, &t->row);
    CEK_TRY(cek__layout_create(model, o.type ? o.type : CEK_F32, &t->layout));
    CEK_TRY(cek__rules_create(model, t->layout, &o, &t->rules));
    CEK_TRY(cek__scaler_create(o.loss_scale, o.loss_scale_steps, t->depth, &t->scaler));
    CEK_TRY(team_make(t, devices, count, &o));
    CEK_TRY(cek__running_create(model, &t->running));
    CEK_TRY(lineup_make(t, devices));
    CEK_TRY(cek__calloc(count, sizeof *t->shares, &t->shares));
    CEK_TRY(cek__calloc(count, sizeof *t->parts, &t->parts));
    CEK_TRY(pending_make(t));
    *out = t;
    return CEK_OK;
out:
    cek_trainer_free(t);
    return st;
}

void cek_trainer_free(cek_trainer *t)
{
    if (!t)
        return;
    cek__lineup_close(&t->lineup);
    cek__balance_close(&t->balance);
    cek__team_close(&t->team);
    cek__running_free(t->running);
    cek__rates_close(&t->rates);
    cek__rules_close(&t->rules);
    cek__layout_free(t->layout);
    free(t->first);
    free(t->parts);
    for (size_t i = 0; t->pending && i < t->depth; i++)
        free(t->pending[i].rows);
    free(t->pending);
    free(t->shares);
    free(t);
}

cek_status cek__trainer_usable(const cek_trainer *t)
{
    return t->broken == CEK_OK ? CEK_OK : cek__fail(t->broken, "%s", t->broken_text);
}

void cek_trainer_request_stop(cek_trainer *t)
{
    if (t)
        atomic_store(&t->stop, true);
}

void cek__trainer_break(cek_trainer *t, cek_status status)
{
    t->broken = status;
    strncpy(t->broken_text, cek_error_text(), sizeof t->broken_text - 1);
}

/* ---- A step ---------------------------------------------------------------------------------- */

/* `whole`: where its samples are. */
static cek_status batch_take(const cek_trainer *t, const cek_batch *b, cek__share *whole)
{
    cek_status st;
    const int32_t *labels = b->targets;
    cek__targets targets;
    if (b->count < 1 || b->count > t->batch)
        return cek__fail(CEK_INVALID, "a batch of %lld samples, this trainer takes 1 to %lld", (long long)b->count,
                         (long long)t->batch);
    *whole = (cek__share){ .targets = b->targets, .rows = b->count };
    CEK_TRY(cek__samples_inputs(b, &t->row, whole->inputs));
    if (!b->targets)
        CEK_FAIL(CEK_INVALID, "a batch without targets");
    if (b->input_type != t->input_type)
        return cek__fail(CEK_INVALID, "a batch of type %s, this trainer takes %s", cek_dtype_name(b->input_type),
                         cek_dtype_name(t->input_type));
    CEK_TRY(cek__samples_targets(b, &targets));
    if (targets.type != t->targets.type || targets.columns != t->targets.columns)
        CEK_FAIL(CEK_INVALID, "targets of %u %s per sample, this trainer takes %u %s", targets.columns,
                 cek__targets_name(&targets), t->targets.columns, cek__targets_name(&t->targets));
    for (int64_t i = 0; t->loss == CEK_LOSS_CROSS_ENTROPY && i < b->count; i++)
        if (labels[i] < 0 || labels[i] >= t->outputs)
            return cek__fail(CEK_BAD_INPUT, "label %d of sample %lld is outside the model's %lld classes", labels[i],
                             (long long)(b->rows ? b->rows[i] : i), (long long)t->outputs);
out:
    return st;
}

/* The key of step s: one round of SplitMix64's mixing over seed and step, so that neighbours share nothing. */
static uint64_t step_key(uint64_t seed, uint64_t step)
{
    uint64_t z = seed + 0x9e3779b97f4a7c15u * (step + 1);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

bool cek__trainer_classifies(const cek_trainer *t)
{
    return t->loss == CEK_LOSS_CROSS_ENTROPY || (t->loss == CEK_LOSS_OWN && t->model->labels.classes > 0);
}

cek_status cek__trainer_weigh(const cek_trainer *t, const cek_batch *b, cek__amount *out)
{
    *out = (cek__amount){ .weight = (double)b->count * (t->loss == CEK_LOSS_MSE ? (double)t->targets.columns : 1),
                          .labels = t->loss == CEK_LOSS_CROSS_ENTROPY ? b->count : 0 };
    if (t->loss != CEK_LOSS_OWN || !cek__trainer_classifies(t))
        return CEK_OK;
    return cek__model_weigh(t->model, b->targets, b->rows, b->count, out);
}

static double now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

/* The part of a step block that belongs to updates. */
static void rules_tell(const cek_trainer *t, cek_step_block *block)
{
    const cek_optimizer *o = &t->rules.optimizer;
    block->ln_beta1 = cek__f32x2(o->beta1 > 0 ? log(o->beta1) : 0);
    block->ln_beta2 = cek__f32x2(o->beta2 > 0 ? log(o->beta2) : 0);
    block->lr[CEK__GROUP_UNIT] = cek__f32x2(1);
    for (uint32_t g = 0; g < t->rules.group_count; g++) {
        block->lr[g] = cek__f32x2(cek_trainer_rate(t, g));
        /* LAMB's is a part of the step by then */
        block->weight_decay[g] = cek__f32x2(cek__rules_scale_parameters(&t->rules) ? 0 : t->rules.weight_decay[g]);
    }
}

static cek_step_block step_block(cek_trainer *t, int64_t step, double weight)
{
    cek_step_block block = { .random_key = step_key(t->seed, (uint64_t)step - 1),
                             .inv_n = cek__f32x2(1 / weight),
                             .loss_scale = cek__f32x2(t->rules.scaled ? cek__scaler_next(&t->scaler) : 1) };
    rules_tell(t, &block);
    return block;
}

static pending *pending_of(const cek_trainer *t, int64_t step)
{
    return &t->pending[(size_t)step % t->depth];
}

cek__amount cek__trainer_amount(const cek_trainer *t, int64_t step)
{
    return pending_of(t, step)->amount;
}

/* The oldest step that the devices have not been asked for. */
static cek_status result_take(cek_trainer *t)
{
    int64_t step = t->submitted - (int64_t)cek__conductor_uncollected(t->lineup.conductor) + 1;
    pending *p = pending_of(t, step);
    cek_status st = cek__conductor_collect(t->lineup.conductor, &p->loss, &p->correct);
    if (st != CEK_OK)
        return st;
    p->collected = true;
    if (t->balanced)
        cek__balance_note(&t->balance, &t->lineup, p->rows);
    return CEK_OK;
}

/* Other shares, between two steps: what is under way ends, and its results stay to be collected. */
static cek_status rebalance(cek_trainer *t)
{
    cek_status st;
    CEK_TRY(cek__conductor_settle(t->lineup.conductor));
    while (cek__conductor_uncollected(t->lineup.conductor) > 0)
        CEK_TRY(result_take(t));
    CEK_TRY(cek__balance_apply(&t->balance, &t->lineup));
out:
    return st;
}

/* What shares by measurement want before a step. */
static cek_status balance(cek_trainer *t, const cek__share *whole, const cek_step_block *block)
{
    cek_status st;
    size_t index;
    int64_t rows;
    if (t->balance.due)
        CEK_TRY(rebalance(t));
    if (!cek__balance_asks(&t->balance, &index, &rows))
        return CEK_OK;
    CEK_TRY(cek__conductor_finish(t->lineup.conductor));
    CEK_TRY(cek__balance_ask(&t->balance, index, rows, t->submitted + 1, whole, block));
out:
    return st;
}

/* Of a batch that was checked. `lent`: it stays as it is until the step is collected. */
static cek_status submit_checked(cek_trainer *t, const cek__share *whole, double weight, bool lent, bool held)
{
    cek_status st;
    cek_step_block block = step_block(t, t->submitted + 1, weight);
    if (t->balanced)
        CEK_TRY(balance(t, whole, &block));
    cek__team_deal(&t->team, whole->rows);
    for (size_t i = 0; i < t->team.count; i++)
        t->parts[i] = cek__team_share(&t->team, i, whole, &t->row);
    if (held)
        cek__conductor_hold(t->lineup.conductor);
    CEK_TRY(cek__lineup_submit(&t->lineup, t->parts, &block, lent));
out:
    return st;
}

cek_status cek__trainer_submit(cek_trainer *t, const cek_batch *given, bool lent, bool held)
{
    cek_status st;
    cek_batch batch;
    cek__share whole;
    pending *p;
    cek__amount amount;
    double start = now(), rate;
    CEK_TRY(cek__trainer_usable(t));
    CEK_TRY(cek__options_take("a batch", &batch, sizeof batch, given));
    CEK_TRY(cek__trainer_not_held(t, "a step"));
    if (t->averaged)
        CEK_FAIL(CEK_INVALID, "a step while the average is in use: cek_trainer_use_average takes it back");
    CEK_TRY(batch_take(t, &batch, &whole));
    CEK_TRY(cek__trainer_weigh(t, &batch, &amount));
    if (!(amount.weight > 0))
        CEK_FAIL(CEK_BAD_INPUT, "the labels of all %lld samples of a batch count for nothing", (long long)batch.count);
    if (cek_trainer_uncollected(t) == t->depth)
        CEK_FAIL(CEK_NOT_READY, "%zu steps are submitted and not collected", t->depth);
    st = submit_checked(t, &whole, amount.weight, lent, held);
    if (st != CEK_OK) {
        cek__trainer_break(t, st);
        goto out;
    }
    rate = cek_trainer_rate(t, 0);
    p = pending_of(t, ++t->submitted);
    *p = (pending){ .samples = batch.count, .amount = amount, .start = start, .rate = rate, .rows = p->rows };
    memcpy(p->rows, t->team.rows, t->team.count * sizeof *p->rows);
    memcpy(t->shares, t->team.rows, t->team.count * sizeof *t->shares);
    return CEK_OK;
out:
    return st;
}

cek_status cek__trainer_collect(cek_trainer *t, cek_step_result *result)
{
    cek_status st = CEK_OK;
    double end;
    const pending *p = pending_of(t, t->steps + 1);
    if (!p->collected)
        st = result_take(t);
    if (st != CEK_OK) {
        cek__trainer_break(t, st);
        goto out;
    }
    t->steps++;
    end = now();
    if (result) {
        cek_step_result full = {
            .step = t->steps,
            .samples = p->samples,
            .loss = p->loss / p->amount.weight,
            .correct = p->correct,
            .labels = p->amount.labels,
            .rate = p->rate,
            .seconds = end - (p->start > t->collected_at ? p->start : t->collected_at),
            .loss_scale = t->rules.scaled ? cek__scaler_given(&t->scaler, t->steps) : 1,
        };
        cek__results_give(result, &full, sizeof full);
    }
    t->collected_at = end;
    if (!isfinite(p->loss))
        CEK_FAIL(CEK_NOT_FINITE, "the loss of step %lld is %g", (long long)t->steps, p->loss);
    return CEK_OK;
out:
    return st;
}

cek_status cek_trainer_submit(cek_trainer *t, const cek_batch *batch)
{
    CEK__NOT_NULL_AS(t, trainer);
    CEK__NOT_NULL(batch);
    return cek__trainer_submit(t, batch, false, false);
}

cek_status cek_trainer_collect(cek_trainer *t, cek_step_result *result)
{
    cek_status st;
    CEK__NOT_NULL_AS(t, trainer);
    if (result)
        CEK_TRY(cek__results_clear("cek_trainer_collect", result));
    CEK_TRY(cek__trainer_usable(t));
    if (cek_trainer_uncollected(t) == 0)
        CEK_FAIL(CEK_INVALID, "cek_trainer_collect: no step is submitted");
    return cek__trainer_collect(t, result);
out:
    return st;
}

cek_status cek_trainer_step(cek_trainer *t, const cek_batch *batch, cek_step_result *result)
{
    cek_status st;
    CEK__NOT_NULL_AS(t, trainer);
    CEK__NOT_NULL(batch);
    if (result)
        CEK_TRY(cek__results_clear("cek_trainer_step", result));
    CEK_TRY(cek__trainer_usable(t));
    if (cek_trainer_uncollected(t) > 0)
        CEK_FAIL(CEK_INVALID, "cek_trainer_step: %zu steps are submitted and not collected",
                 cek_trainer_uncollected(t));
    CEK_TRY(cek__trainer_submit(t, batch, true, false));
    return cek__trainer_collect(t, result);
out:
    return st;
}

cek_status cek__trainer_settle(cek_trainer *t)
{
    cek_status st;
    CEK_TRY(cek__trainer_usable(t));
    if (t->held) /* everybody has the parameters of the step before, and waits */
        return CEK_OK;
    st = cek__conductor_settle(t->lineup.conductor);
    /* Running statistics are those of the steps whose results were taken. */
    while (st == CEK_OK && t->model->buffer_count > 0 && cek__conductor_uncollected(t->lineup.conductor) > 0)
        st = result_take(t);
    if (st != CEK_OK)
        cek__trainer_break(t, st);
out:
    return st;
}
