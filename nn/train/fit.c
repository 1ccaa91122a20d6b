/* fit.c - epochs: the loader in front of the trainer's steps, the test set behind them. */
#include <string.h>
#include <time.h>

#include "core/base/options.h"
#include "core/base/status.h"
#include "nn/train/samples.h"
#include "nn/train/trainer.h"

static double now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

cek_status cek__trainer_fits(const cek_trainer *t, const cek_dataset *dataset, const char *what)
{
    int64_t shape[CEK_RANK_MAX];
    const cek__targets targets = cek__dataset_targets(dataset);
    int rank = cek_model_input_shape(t->model, shape);
    cek_status st = cek__samples_single(&t->row);
    if (st == CEK_OK)
        st = cek__samples_fit(rank, shape, dataset, what);
    if (st != CEK_OK)
        return st;
    if (cek_dataset_input_type(dataset) != t->input_type)
        return cek__fail(CEK_INVALID, "%s has samples of type %s, this trainer takes %s", what,
                         cek_dtype_name(cek_dataset_input_type(dataset)), cek_dtype_name(t->input_type));
    if (t->loss == CEK_LOSS_CROSS_ENTROPY && cek_dataset_classes(dataset) == 0)
        return cek__fail(CEK_INVALID, "%s has values as targets, cross-entropy takes class labels", what);
    if (t->loss == CEK_LOSS_CROSS_ENTROPY && cek_dataset_classes(dataset) > t->outputs)
        return cek__fail(CEK_INVALID, "%s has %lld classes, the model %lld outputs", what,
                         (long long)cek_dataset_classes(dataset), (long long)t->outputs);
    if (targets.type != t->targets.type || targets.columns != t->targets.columns)
        return cek__fail(CEK_INVALID, "%s has %u %s per sample, %s takes %u %s", what, targets.columns,
                         cek__targets_name(&targets), t->loss == CEK_LOSS_MSE ? "squared error" : "the model's loss",
                         t->targets.columns, cek__targets_name(&t->targets));
    return CEK_OK;
}

/* ---- Evaluation ------------------------------------------------------------------------------ */

typedef struct evaluation {
    cek_trainer *trainer;
    cek__share whole;
} evaluation;

static cek_status evaluate_member(void *user, size_t index)
{
    const evaluation *job = user;
    cek_trainer *t = job->trainer;
    cek__share share = cek__team_share(&t->team, index, &job->whole, &t->row);
    return cek__replica_evaluate(t->team.replicas[index], &share);
}

static cek_status buffers_load(void *user, size_t index)
{
    cek_trainer *t = user;
    return cek__replica_load_buffers(t->team.replicas[index], t->running->values);
}

/* Of several batches. */
typedef struct totals {
    double loss, weight; /* of which the loss is a mean */
    int64_t samples, correct, labels;
} totals;

static void totals_add(totals *sum, double loss, int64_t correct, int64_t samples, const cek__amount *amount)
{
    sum->loss += loss;
    sum->weight += amount->weight;
    sum->samples += samples;
    sum->correct += correct;
    sum->labels += amount->labels;
}

static cek_metrics totals_metrics(const totals *sum)
{
    return (cek_metrics){ .size = sizeof(cek_metrics),
                          .samples = sum->samples,
                          .loss = sum->weight > 0 ? sum->loss / sum->weight : 0,
                          .accuracy = sum->labels ? (double)sum->correct / (double)sum->labels : 0 };
}

/* What a failed evaluation has summed up would be a part of the next step's loss. Keeps the text of the failure. */
static void sums_forget(cek_trainer *t, cek_status st)
{
    char text[CEK__ERROR_TEXT_MAX];
    strcpy(text, cek_error_text());
    const cek_status forgotten = cek__team_forget(&t->team);
    cek__fail(st, "%s", text);
    if (forgotten != CEK_OK)
        cek__trainer_break(t, st);
}

static cek_status evaluate(cek_trainer *t, const cek_dataset *dataset, uint32_t workers, cek_metrics *out)
{
    cek_status st;
    cek_loader *loader = NULL;
    const cek_batch *batch = NULL;
    totals sum = { .samples = 0 };
    cek_loader_options o = { .size = sizeof o, .workers = workers, .batch = cek__samples_batch(dataset, t->batch) };
    CEK_TRY(cek__team_run(&t->team, buffers_load, t));
    CEK_TRY(cek_loader_create(dataset, &o, &loader));
    CEK_TRY(cek_loader_start(loader, 0));
    for (;;) {
        cek__amount amount;
        double part;
        int64_t right;
        CEK_TRY(cek_loader_next(loader, &batch));
        if (!batch)
            break;
        CEK_TRY(cek__trainer_weigh(t, batch, &amount));
        cek__team_deal(&t->team, batch->count);
        CEK_TRY(cek__team_run(&t->team, evaluate_member,
                              &(evaluation){ t, { .inputs = { batch->inputs }, .targets = batch->targets } }));
        CEK_TRY(cek__team_collect(&t->team, &part, &right)); /* batch by batch: f32 sums stay short */
        totals_add(&sum, part, right, batch->count, &amount);
    }
    *out = totals_metrics(&sum);
    st = CEK_OK;
out:
    if (st != CEK_OK)
        sums_forget(t, st);
    cek_loader_free(loader);
    return st;
}

cek_status cek_trainer_evaluate(cek_trainer *t, const cek_dataset *dataset, cek_metrics *out)
{
    cek_status st;
    cek_metrics full;
    CEK__NOT_NULL_AS(t, trainer);
    CEK__NOT_NULL(out);
    CEK__NOT_NULL(dataset);
    CEK_TRY(cek__results_clear("cek_trainer_evaluate", out));
    CEK_TRY(cek__trainer_settle(t));
    CEK_TRY(cek__trainer_fits(t, dataset, "the dataset"));
    memset(&full, 0, sizeof full);
    CEK_TRY(evaluate(t, dataset, CEK_WORKERS_AUTO, &full));
    cek__results_give(out, &full, sizeof full);
    return CEK_OK;
out:
    return st;
}

/* ---- Epochs ---------------------------------------------------------------------------------- */

typedef struct fit {
    cek_trainer *trainer;
    const cek_fit_options *options;
    cek_loader *loader;
    int64_t steps; /* in this fit */
} fit;

static bool enough(const fit *f)
{
    return f->options->max_steps > 0 && f->steps >= f->options->max_steps;
}

/* What a step gave, to the caller and the epoch's totals. */
static cek_status step_note(const fit *f, cek_status st, const cek_step_result *step, totals *sum)
{
    cek__amount amount;
    if ((st == CEK_OK || st == CEK_NOT_FINITE) && f->options->on_step)
        f->options->on_step(f->options->user, step);
    if (st != CEK_OK)
        return st;
    amount = cek__trainer_amount(f->trainer, step->step);
    totals_add(sum, step->loss * amount.weight, step->correct, step->samples, &amount);
    return CEK_OK;
}

static cek_status collect_down_to(const fit *f, size_t uncollected, totals *sum)
{
    cek_status st = CEK_OK;
    while (st == CEK_OK && cek_trainer_uncollected(f->trainer) > uncollected) {
        cek_step_result step = { .size = sizeof step };
        st = cek_trainer_collect(f->trainer, &step);
        st = step_note(f, st, &step, sum);
    }
    return st;
}

/* A lone inline device has nothing that could run ahead, and takes the batch where it lies. */
static cek_status train_batch(const fit *f, const cek_batch *batch, totals *sum)
{
    cek_status st;
    cek_trainer *t = f->trainer;
    if (cek__lineup_is_inline(&t->lineup)) {
        cek_step_result step = { .size = sizeof step };
        CEK_TRY(collect_down_to(f, 0, sum));
        st = cek_trainer_step(t, batch, &step);
        return step_note(f, st, &step, sum);
    }
    CEK_TRY(collect_down_to(f, t->depth - 1, sum));
    CEK_TRY(cek_trainer_submit(t, batch));
    return CEK_OK;
out:
    return st;
}

static cek_status train_epoch(fit *f, int64_t epoch, cek_epoch_result *result)
{
    cek_status st;
    cek_trainer *t = f->trainer;
    const cek_batch *batch = NULL;
    double start = now();
    totals sum = { 0 };
    CEK_TRY(cek_loader_start(f->loader, epoch));
    while (!enough(f)) {
        if (atomic_load(&t->stop)) {
            CEK_TRY(collect_down_to(f, 0, &sum));
            CEK_FAIL(CEK_CANCELLED, "stopped on request after step %lld", (long long)t->steps);
        }
        CEK_TRY(cek_loader_next(f->loader, &batch));
        if (!batch)
            break;
        CEK_TRY(train_batch(f, batch, &sum));
        f->steps++;
    }
    CEK_TRY(collect_down_to(f, 0, &sum));
    CEK_TRY(cek__trainer_settle(t));
    t->train = totals_metrics(&sum);
    result->train = &t->train;
    result->step = t->steps;
    result->skipped = cek__scaler_skipped(&t->scaler);
    result->seconds = now() - start;
    if (sum.samples > 0)
        result->samples_per_second = (double)sum.samples / result->seconds;
    return CEK_OK;
out:
    return st;
}

/* Of the average, where there is one: that is what will be used. Nobody else asked for it, so a trainer that cannot
 * give it back is broken. */
static cek_status test(cek_trainer *t, const cek_dataset *dataset, uint32_t workers)
{
    cek_status st, back;
    if (t->rules.average == 0)
        return evaluate(t, dataset, workers, &t->test);
    CEK_TRY(cek_trainer_use_average(t, true));
    st = evaluate(t, dataset, workers, &t->test);
    back = cek_trainer_use_average(t, false);
    if (back != CEK_OK && cek__trainer_usable(t) == CEK_OK)
        cek__trainer_break(t, back);
    st = st != CEK_OK ? st : back;
out:
    return st;
}

/* By a schedule. */
static double watched(const cek_trainer *t, const cek_metrics *metrics)
{
    return t->rates.schedule.flags & CEK_SCHEDULE_LARGER_IS_BETTER ? metrics->accuracy : metrics->loss;
}

/* Whatever ended the fit: no step of it stays to be collected. Keeps the text of the failure. */
static void leave(cek_trainer *t)
{
    char text[CEK__ERROR_TEXT_MAX];
    cek_status st = CEK_OK;
    if (cek_trainer_uncollected(t) == 0)
        return;
    strcpy(text, cek_error_text());
    while ((st == CEK_OK || st == CEK_NOT_FINITE) && cek_trainer_uncollected(t) > 0)
        st = cek_trainer_collect(t, NULL);
    cek__fail(CEK_INTERNAL, "%s", text);
}

cek_status cek_trainer_fit(cek_trainer *t, const cek_dataset *train, const cek_fit_options *options,
                           cek_epoch_result *last)
{
    cek_status st;
    cek_fit_options o;
    fit f = { .trainer = t, .options = &o };
    int64_t epochs;
    cek_loader_options lo = { .size = sizeof lo };
    CEK__NOT_NULL_AS(t, trainer);
    CEK__NOT_NULL(train);
    if (last)
        CEK_TRY(cek__results_clear("cek_trainer_fit", last));
    CEK_TRY(cek__options_take("cek_trainer_fit", &o, sizeof o, options));
    if (o.pin > CEK_PIN_NO)
        CEK_FAIL(CEK_INVALID, "cek_trainer_fit: pin is %u, there are CEK_PIN_AUTO, _YES and _NO", o.pin);
    /* Others read from the trainer's copies. */
    if (o.pin == CEK_PIN_YES || (o.pin == CEK_PIN_AUTO && cek__replica_is_inline(t->team.replicas[0])))
        lo.pin_for = cek__replica_device(t->team.replicas[0]);
    lo.prefetch = o.prefetch;
    if (o.epochs < 0 || o.max_steps < 0)
        CEK_FAIL(CEK_INVALID, "cek_trainer_fit: %lld epochs and at most %lld steps", (long long)o.epochs,
                 (long long)o.max_steps);
    epochs = o.epochs ? o.epochs : 1;
    lo.workers = o.workers ? o.workers : CEK_WORKERS_AUTO;
    lo.seed = o.seed;
    lo.shuffle = !o.no_shuffle;
    lo.drop_last = o.drop_last;
    lo.batch = o.drop_last ? t->batch : cek__samples_batch(train, t->batch); /* a small set's only batch is short */
    CEK_TRY(cek__trainer_usable(t));
    CEK_TRY(cek__trainer_not_held(t, "cek_trainer_fit"));
    if (t->rates.schedule.flags & CEK_SCHEDULE_LARGER_IS_BETTER && !cek__trainer_classifies(t))
        CEK_FAIL(CEK_INVALID, "cek_trainer_fit: its schedule watches the accuracy, which only a loss with labels has");
    CEK_TRY(cek__trainer_fits(t, train, "the training set"));
    if (o.test)
        CEK_TRY(cek__trainer_fits(t, o.test, "the test set"));
    if (cek_dataset_size(train) < (o.drop_last ? lo.batch : 1))
        CEK_FAIL(CEK_INVALID, "cek_trainer_fit: a training set of %lld samples gives no batch",
                 (long long)cek_dataset_size(train));
    if (cek_trainer_uncollected(t) > 0)
        CEK_FAIL(CEK_INVALID, "cek_trainer_fit: %zu steps are submitted and not collected", cek_trainer_uncollected(t));
    CEK_TRY(cek_loader_create(train, &lo, &f.loader));
    if (t->averaged)
        CEK_TRY(cek_trainer_use_average(t, false));
    atomic_store(&t->stop, false);
    for (int64_t epoch = 1; epoch <= epochs && !enough(&f); epoch++) {
        cek_epoch_result result = { .size = sizeof result, .epoch = epoch };
        CEK_TRY(train_epoch(&f, epoch, &result));
        if (o.test) {
            CEK_TRY(test(t, o.test, lo.workers));
            result.test = &t->test;
        }
        CEK_TRY(cek_trainer_end_epoch(t, watched(t, result.test ? result.test : result.train)));
        if (o.on_epoch)
            o.on_epoch(o.user, &result);
        if (last)
            cek__results_give(last, &result, sizeof result);
    }
    st = CEK_OK;
out:
    if (f.loader) /* else it was refused, and what is submitted is not its own */
        leave(t);
    cek_loader_free(f.loader);
    return st;
}
