/* cmd_train.c - `train`: a network, data, devices; a line per epoch or step, weights at the end.
 *
 * A signal ends it between two steps: what was asked for is saved, and the exit code is 128 and the
 * signal's number. A reader of standard output that goes away ends nothing that something is to be saved from. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/chart/training.h"
#include "bench/data.h"
#include "bench/figure_file.h"
#include "bench/fit.h"
#include "bench/place.h"
#include "bench/progress.h"
#include "bench/recipe.h"
#include "bench/run_log.h"
#include "bench/train_line.h"

/* ---- signals: a handler may only ask the trainer to stop ---- */

static cek_trainer *volatile signal_trainer;
static volatile sig_atomic_t signal_caught;

static void on_signal(int number)
{
    signal_caught = number;
    if (signal_trainer)
        cek_trainer_request_stop(signal_trainer);
}

/* What asks for an end. A job that was started with one of them ignored, by nohup or in the background of a script, is
 * not asked by it. */
static const int enders[] = { SIGINT, SIGTERM, SIGHUP };
enum { ENDERS = sizeof enders / sizeof *enders };
static bool ignored[ENDERS];

/* The second of a kind ends the process at once: a device may hang. */
static void signals_take(cek_trainer *trainer)
{
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART | (int)SA_RESETHAND }, before;
    sigemptyset(&action.sa_mask);
    signal_trainer = trainer;
    for (int i = 0; i < ENDERS; i++) {
        sigaction(enders[i], NULL, &before);
        ignored[i] = before.sa_handler == SIG_IGN;
        if (!ignored[i])
            sigaction(enders[i], &action, NULL);
    }
}

/* While files are written, so that nothing half-written is left: signals wait. */
static void signals_hold(int how)
{
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < ENDERS; i++)
        sigaddset(&set, enders[i]);
    sigprocmask(how, &set, NULL);
}

/* Before the trainer is freed: from now on a signal has its usual effect. */
static void signals_give(void)
{
    for (int i = 0; i < ENDERS; i++)
        if (!ignored[i])
            signal(enders[i], SIG_DFL);
    signal_trainer = NULL;
}

/* ---- what is printed ---- */

/* In 80 columns, but for what several devices add. */
static const output_column epoch_columns[] = {
    { "epoch", "epoch", 5, 0, 0 },         { "step", "step", 7, 0, 0 },
    { "train_loss", "loss", 9, 1, 5 },     { "train_accuracy", "accuracy", 9, 1, 4 },
    { "test_loss", "test loss", 9, 1, 5 }, { "test_accuracy", "test acc.", 9, 1, 4 },
    { "seconds", "seconds", 8, 1, 2 },     { "samples_per_second", "samples/s", 10, 1, 0 },
    { "shares", "shares", -12, 0, 0 },     { "idle_shares", "idle %", -8, 100, 0 }, /* with several devices */
};
static const output_column value_columns[] = {
    { "epoch", "epoch", 5, 0, 0 },      { "step", "step", 7, 0, 0 },
    { "train_loss", "loss", 11, 1, 5 }, { "test_loss", "test loss", 11, 1, 5 },
    { "seconds", "seconds", 8, 1, 2 },  { "samples_per_second", "samples/s", 10, 1, 0 },
    { "shares", "shares", -12, 0, 0 },  { "idle_shares", "idle %", -8, 100, 0 },
};
static const output_column step_columns[] = {
    { "step", "step", 7, 0, 0 },       { "loss", "loss", 12, 1, 7 },      { "samples", "samples", 7, 0, 0 },
    { "seconds", "seconds", 9, 1, 4 }, { "shares", "shares", -12, 0, 0 },
};

typedef struct train_run {
    const bench_options *options;
    cek_trainer *trainer;
    size_t device_count;
    bool labels, squares; /* cross-entropy, mean squared error, or neither: the model's own loss */
    int64_t samples;      /* so far */
    train_line line;
    chart_training *plot; /* NULL: not wanted */
    double seconds;
    cek_epoch_result last;
    bool has_last;
    cek_device_times *before; /* of each device, when training began; size 0: it does not count */
    run_log *log;
    output out;
} train_run;

static json_t *shares_json(const train_run *run)
{
    json_t *list = json_array();
    for (size_t i = 0; i < run->device_count; i++)
        json_array_append_new(list, json_integer((json_int_t)cek_trainer_share(run->trainer, i)));
    return list;
}

/* So far; null where it is not measured. */
static json_t *idle_json(const train_run *run)
{
    json_t *list = json_array();
    for (size_t i = 0; i < run->device_count; i++)
        json_array_append_new(list, number_json(cek_trainer_idle(run->trainer, i)));
    return list;
}

static void on_step(void *user, const cek_step_result *r)
{
    train_run *run = user;
    if (signal_caught) /* also one that came before fit had begun, which forgets older requests */
        cek_trainer_request_stop(run->trainer);
    run->samples += r->samples;
    run->seconds += r->seconds;
    train_line_step(&run->line, r);
    run_log_step(run->log, r);
    if (run->plot)
        chart_training_step(run->plot, r->loss, r->labels ? (double)r->correct / (double)r->labels : NAN);
    if (run->options->log_every && r->step % run->options->log_every == 0)
        output_row(&run->out,
                   json_pack("{sI so sI sf so}", "step", (json_int_t)r->step, "loss", number_json(r->loss), "samples",
                             (json_int_t)r->samples, "seconds", r->seconds, "shares", shares_json(run)));
}

static void on_epoch(void *user, const cek_epoch_result *r)
{
    train_run *run = user;
    run->last = *r;
    run->has_last = true;
    train_line_epoch(&run->line);
    run_log_epoch(run->log, r);
    if (run->plot && r->test && r->test->samples)
        chart_training_test(run->plot, (double)r->step, r->test->loss, run->labels ? r->test->accuracy : NAN);
    if (run->options->log_every)
        return; /* a table of steps */
    json_t *row = json_pack("{sI sI so sf sf}", "epoch", (json_int_t)r->epoch, "step", (json_int_t)r->step,
                            "train_loss", number_json(r->train->loss), "seconds", r->seconds, "samples_per_second",
                            r->samples_per_second);
    if (run->labels)
        json_object_set_new(row, "train_accuracy", json_real(r->train->accuracy));
    if (r->test && r->test->samples) {
        json_object_set_new(row, "test_loss", number_json(r->test->loss));
        if (run->labels)
            json_object_set_new(row, "test_accuracy", json_real(r->test->accuracy));
    }
    if (run->device_count > 1) {
        json_object_set_new(row, "shares", shares_json(run));
        json_object_set_new(row, "idle_shares", idle_json(run));
    }
    output_row(&run->out, row);
}

static void output_begin(train_run *run)
{
    const bench_options *o = run->options;
    size_t alone = run->device_count == 1 ? 2 : 0; /* without the last columns */
    if (o->log_every)
        output_open(&run->out, o->output, step_columns, sizeof step_columns / sizeof *step_columns, "steps");
    else if (run->labels)
        output_open(&run->out, o->output, epoch_columns, sizeof epoch_columns / sizeof *epoch_columns - alone,
                    "epochs");
    else
        output_open(&run->out, o->output, value_columns, sizeof value_columns / sizeof *value_columns - alone,
                    "epochs");
}

/* ---- options ---- */

/* auto, equal, or "0.5,0.25,0.25": one number for each device. 0 or an exit code. */
static int shares_read(const char *text, size_t devices, uint32_t *shares, double **weights)
{
    *weights = NULL;
    *shares = text && !strcmp(text, "equal") ? CEK_SHARES_EQUAL : CEK_SHARES_AUTO;
    if (!text || !strcmp(text, "auto") || !strcmp(text, "equal"))
        return EXIT_OK;
    double *list = calloc(devices, sizeof *list), sum = 0;
    size_t count = 0;
    const char *p = text;
    bool well = list;
    for (char *end; well; p = end + 1) {
        double value = strtod(p, &end);
        well = end != p && value >= 0 && isfinite(value) && (!*end || *end == ',');
        if (well && count < devices)
            list[count] = value;
        count++;
        sum += value;
        if (!*end)
            break;
    }
    if (!list)
        return complain(EXIT_MEMORY, "no host memory");
    if (!well || count != devices || !(sum > 0) || !isfinite(sum)) {
        free(list);
        return complain(EXIT_USAGE, "--shares=%s: auto, equal, or %zu numbers >= 0 (one per device), not all 0", text,
                        devices);
    }
    *weights = list;
    *shares = CEK_SHARES_GIVEN;
    return EXIT_OK;
}

static cek_loss loss_choose(const bench_options *o, const cek_preset *preset)
{
    return !o->loss ? preset->loss : strcmp(o->loss, "mse") ? CEK_LOSS_CROSS_ENTROPY : CEK_LOSS_MSE;
}

/* ---- the run ---- */

/* NULL: no memory. */
static cek_device_times *times_read(cek_device *const *devices, size_t count)
{
    cek_device_times *times = calloc(count, sizeof *times);
    for (size_t i = 0; times && i < count; i++) {
        times[i].size = sizeof *times;
        if (cek_device_read_times(devices[i], &times[i]))
            times[i].size = 0;
    }
    return times;
}

/* What a device that counts has done in training: its own seconds, those computing, those exchanging alone. */
static void times_add(json_t *row, cek_device *device, const cek_device_times *before)
{
    cek_device_times t = { .size = sizeof t };
    if (!before->size || cek_device_read_times(device, &t))
        return;
    double seconds = (double)(t.now_ns - before->now_ns) / 1e9;
    double computing = (double)(t.compute_ns - before->compute_ns) / 1e9;
    json_object_update_new(row, json_pack("{sf sf sf sf}", "device_seconds", seconds, "compute_seconds", computing,
                                          "exposed_seconds", (double)(t.exposed_ns - before->exposed_ns) / 1e9,
                                          "idle_share", seconds > 0 ? 1 - computing / seconds : 0.0));
}

/* Steps whose gradients were not finite, at their scale. */
static void skipped_tell(train_run *run)
{
    uint64_t skipped = run->has_last ? run->last.skipped : 0;

    output_set(&run->out, "skipped_steps", json_integer((json_int_t)skipped));
    output_note(&run->out, "skipped %llu steps, whose gradients were not finite", (unsigned long long)skipped);
}

static void document_fill(train_run *run, const bench_data *data, cek_model *model, cek_device *const *devices,
                          int64_t batch)
{
    const cek_metrics *test = run->has_last ? run->last.test : NULL;
    json_t *list = json_array();
    char hex[65];
    for (size_t i = 0; i < run->device_count; i++) {
        json_t *row = json_pack("{ss sI sI sI}", "device", cek_device_name(devices[i]), "share",
                                (json_int_t)cek_trainer_share(run->trainer, i), "micro_batch",
                                (json_int_t)cek_trainer_micro_batch(run->trainer, i), "planned_bytes",
                                (json_int_t)cek_trainer_planned_bytes(run->trainer, i));
        times_add(row, devices[i], &run->before[i]);
        json_array_append_new(list, row);
    }
    cek_model_sha256(model, hex);
    if (run->options->type == CEK_F16)
        skipped_tell(run);
    output_set(&run->out, "model", text_json(run->options->argv[0]));
    output_set(&run->out, "data", text_json(data->source));
    output_set(&run->out, "batch", json_integer(batch));
    output_set(&run->out, "seed", json_integer((json_int_t)run->options->seed));
    output_set(&run->out, "math", json_string(math_name(run->options)));
    output_set(&run->out, "devices", list);
    output_set(&run->out, "samples_per_second", json_real(run->seconds > 0 ? (double)run->samples / run->seconds : 0));
    if (test && test->samples && run->labels)
        output_set(&run->out, "test_accuracy", json_real(test->accuracy));
    else if (test && test->samples)
        output_set(&run->out, run->squares ? "test_mse" : "test_loss", number_json(test->loss));
    output_set(&run->out, "weights_sha256", json_string(hex));
    output_note(&run->out, "weights %s", hex);
}

static int weights_check(const cek_model *model)
{
    cek_status st = cek_model_check_finite(model);
    return st ? complain_status(st) : EXIT_OK;
}

/* 0 or an exit code. */
static int plot_save(const train_run *run)
{
    figure f = { .count = 0 };
    if (!run->plot)
        return EXIT_OK;
    chart_training_add(run->plot, run->options->argv[0], &f);
    const int code = figure_save(&f, run->options->plot);
    figure_free(&f);
    return code;
}

/* Weights come back from the devices whatever ended the run, so that they can be saved; then the
 * run's own failure counts. The last update may have spoilt them though every loss was finite. */
static int train_end(train_run *run, cek_status fit, const bench_data *data, cek_model *model,
                     cek_device *const *devices, int64_t batch)
{
    progress_end();
    int code = fit && fit != CEK_CANCELLED ? complain_status(fit) : EXIT_OK;
    cek_status st = fit == CEK_DEVICE_LOST ? CEK_DEVICE_LOST : CEK_OK;
    if (!st && run->options->average > 0)
        st = cek_trainer_use_average(run->trainer, true);
    if (!st)
        st = cek_trainer_pull(run->trainer);
    if (!st && !code)
        code = weights_check(model);
    /* Weights of a run that failed do not replace good ones. */
    signals_hold(SIG_BLOCK);
    if (!st && !code && run->options->save)
        st = cek_model_save(model, run->options->save);
    if (!st && !code && run->options->save_gradients)
        st = cek_trainer_save_gradients(run->trainer, run->options->save_gradients);
    if (!st && !code)
        code = model_export(run->options, model);
    if (!st && !code)
        code = plot_save(run);
    signals_hold(SIG_UNBLOCK);
    if (st && !code)
        code = complain_status(st);
    if (!st)
        document_fill(run, data, model, devices, batch);
    return output_close(&run->out, !code && signal_caught ? EXIT_SIGNAL + signal_caught : code);
}

static int train_run_all(const bench_options *o, const bench_data *data, cek_model *model, const cek_preset *preset,
                         cek_device *const *devices, size_t count, size_t left, cek_device *fallback)
{
    double *weights = NULL;
    int64_t batch = o->batch ? o->batch : preset->batch ? preset->batch : 64;
    cek_loss loss = loss_choose(o, preset);
    bench_recipe recipe;
    cek_trainer_options to = { .size = sizeof to,
                               .loss = loss,
                               .batch = batch,
                               .seed = o->seed,
                               .type = o->type,
                               .math = o->math,
                               .memory_limit = o->limit_memory,
                               .fallback = fallback,
                               .max_norm = o->clip,
                               .max_value = o->clip_value,
                               .loss_scale = o->loss_scale,
                               .average = o->average,
                               .accumulate = (uint32_t)o->accumulate,
                               .norm_group = o->norm_group,
                               .depth = (uint32_t)o->ahead,
                               .input_type = data->input_type };
    train_run run = { .options = o,
                      .device_count = count,
                      .labels = loss == CEK_LOSS_CROSS_ENTROPY ||
                                (loss == CEK_LOSS_OWN && cek_dataset_classes(data->train) > 0),
                      .squares = loss == CEK_LOSS_MSE };
    int code = recipe_read(o, preset, cek_dataset_size(data->train), batch * (o->accumulate ? o->accumulate : 1),
                           &recipe);
    if (!code)
        code = shares_read(o->shares, count, &to.shares, &weights);
    if (code)
        return code;
    recipe_use(&recipe, &to);
    to.share_weights = weights;
    if (loss == CEK_LOSS_MSE)
        to.target_columns = (uint32_t)cek_dataset_target_columns(data->train);
    cek_status st = cek_trainer_create(model, devices, count, &to, &run.trainer);
    free(weights);
    if (st)
        return complain_status(st);

    run.before = times_read(devices, count);
    run.plot = o->plot ? calloc(1, sizeof *run.plot) : NULL;
    code = run.before && (run.plot || !o->plot)
               ? run_log_open(&(run_log_of){ o, data, &recipe, model, run.trainer, fallback, batch, run.labels },
                              &run.log)
               : complain(EXIT_MEMORY, "no host memory");
    if (code) {
        free(run.before), free(run.plot);
        cek_trainer_free(run.trainer);
        return code;
    }
    char *summary = NULL;
    output_begin(&run);
    fit_tell(&run.out, model, o->type, devices, count, left);
    /* A device that lacks something is no reason to be without the table. */
    if (o->verbose &&
        (!cek_model_summary(model, devices[0], batch, &summary) || !cek_model_summary(model, NULL, batch, &summary)))
        fputs(summary, stderr);
    free(summary);
    train_line_begin(&run.line, o, run.trainer, devices, count, cek_dataset_size(data->train),
                     batch * (o->accumulate ? o->accumulate : 1));
    signals_take(run.trainer);
    /* Steps alone: as many epochs as they take, and no test in between. */
    cek_fit_options fo = { .size = sizeof fo,
                           .epochs = o->epochs  ? o->epochs
                                     : o->steps ? INT32_MAX
                                                : 1,
                           .max_steps = o->steps,
                           .test = o->steps && !o->epochs ? NULL : data->test,
                           .seed = o->seed,
                           .no_shuffle = !o->shuffle,
                           .workers = (uint32_t)o->workers,
                           .prefetch = (uint32_t)o->prefetch,
                           .pin = o->pin,
                           .on_step = on_step,
                           .on_epoch = on_epoch,
                           .user = &run };
    st = cek_trainer_fit(run.trainer, data->train, &fo, NULL);
    code = train_end(&run, st, data, model, devices, batch);
    code = run_log_close(run.log, code);
    signals_give();
    free(run.before);
    if (run.plot)
        chart_training_free(run.plot);
    free(run.plot);
    cek_trainer_free(run.trainer);
    return code;
}

/* 0 or an exit code. */
static int saves_differ(const bench_options *o)
{
    const char *const paths[] = { o->save, o->save_gradients, o->export, o->plot, o->trace };
    const char *const names[] = { "save", "save-gradients", "export", "plot", "trace" };
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < i; k++)
            if (paths[i] && paths[k] && save_same(paths[i], paths[k]))
                return complain(EXIT_USAGE, "--%s and --%s cannot both be %s", names[k], names[i], paths[k]);
    const char *const read[] = { o->csv, o->split, o->data };
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < 3; k++)
            if (paths[i] && read[k] && save_same(paths[i], read[k]))
                return complain(EXIT_USAGE, "--%s=%s would replace what is read from there", names[i], paths[i]);
    return EXIT_OK;
}

int cmd_train(const bench_options *o)
{
    cek_engine *engine = NULL;
    cek_device **devices = NULL, *fallback = NULL;
    cek_model *model = NULL;
    cek_preset preset;
    bench_data data = { .train = NULL };
    size_t count = 0, left = 0;
    int code = save_check(o->save);
    if (!code)
        code = save_check(o->save_gradients);
    if (!code)
        code = save_check(o->export);
    if (!code)
        code = save_check(o->trace);
    if (!code)
        code = save_check(o->plot);
    if (!code)
        code = figure_save_check(o->plot);
    if (o->save || o->save_gradients ||
        o->export) /* these are what the run is for, whoever has stopped reading along */
        signal(SIGPIPE, SIG_IGN);
    if (!code)
        code = saves_differ(o);
    if (!code)
        code = data_check(o);
    if (!code)
        code = devices_open(o, CEK_PROFILE_TRAINING, &engine, &devices, &count);
    if (!code)
        code = fallback_open(o, CEK_PROFILE_TRAINING, engine, &fallback);
    if (!code)
        code = data_open(o, &data);
    if (!code && data.unlabelled)
        code = complain(EXIT_BAD_INPUT, "%s: images without classes, of which nothing can be learnt", data.source);
    if (!code && !cek_dataset_size(data.train))
        code = complain(EXIT_BAD_INPUT, "%s: so few samples that none is left to train on", data.source);
    if (!code)
        code = model_open(o, &data, &model, &preset);
    if (!code)
        code = classes_name(&data, model);
    if (!code)
        code = fit_choose(o, model, o->type, devices, &count, &left);
    if (!code)
        code = train_run_all(o, &data, model, &preset, devices, count, left, fallback);
    cek_model_free(model);
    data_close(&data);
    free(devices);
    code = trace_close(o, engine, code);
    if (code != EXIT_LOST) /* what hangs may still use it */
        cek_engine_free(engine);
    return code;
}
