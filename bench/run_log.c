/* run_log.c - see run_log.h. Tags: what stands before the / is a group of charts. */
#include "bench/run_log.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/picture.h"

enum {
    SAMPLES = 16,
    STEPS_EACH = 1000, /* that are told one by one: TensorBoard shows so many points of a curve */
    RUN_CURVES = 8,    /* at most, beside those of devices */
    DEVICE_CURVES = 3,
    TAG_MOST = 256
};

#define NO_MEMORY ((cek_status)UINT32_MAX) /* here, of which the library has no text */

struct run_log {
    run_log_of of;
    cek_event_log *events;
    size_t devices;
    char (*tags)[DEVICE_CURVES][TAG_MOST]; /* [devices] */
    size_t curves;
    cek_event_scalar *curve; /* [RUN_CURVES + DEVICE_CURVES * devices]: of the step or epoch that is being told */
    bool ended;              /* it could not go on */
    int code;                /* of the first thing that could not be told */
    picture_samples samples; /* count 0: they are no images, or have no classes */
    void *pixels;
    int32_t *labels;
    float *probabilities;
};

/* ---- what is told once ---- */

static const char *optimizer_name(const cek_optimizer *o)
{
    switch (o->algorithm) {
    case CEK_OPTIMIZER_SGD: return "sgd";
    case CEK_OPTIMIZER_RMSPROP: return "rmsprop";
    case CEK_OPTIMIZER_ADAGRAD: return "adagrad";
    case CEK_OPTIMIZER_LAMB: return "lamb";
    default: return o->flags & CEK_OPTIMIZER_DECOUPLED ? "adamw" : "adam";
    }
}

/* As the library has it where none is given (nn.h). */
static double optimizer_rate(const cek_optimizer *o)
{
    const bool small = !o->algorithm || o->algorithm == CEK_OPTIMIZER_ADAM || o->algorithm == CEK_OPTIMIZER_LAMB;
    return o->lr > 0 ? o->lr : small ? 0.001 : 0.01;
}

/* The same names in every run, so that runs can be compared. */
static cek_status hparams_tell(const run_log *log)
{
    const run_log_of *of = &log->of;
    const bench_options *o = of->options;
    const cek_optimizer *optimizer = &of->recipe->optimizer;
    char model[256], devices[256] = "";
    snprintf(model, sizeof model, "%.255s", o->argv[0]);
    cek_text_printable(model);
    for (size_t i = 0; i < cek_trainer_device_count(of->trainer); i++) {
        const size_t used = strlen(devices);
        snprintf(devices + used, sizeof devices - used, "%s%s", i ? "," : "",
                 cek_device_name(cek_trainer_device(of->trainer, i)));
    }
    char data[sizeof of->data->source];
    memcpy(data, of->data->source, sizeof data);
    cek_text_printable(data);
    const cek_hparam hparams[] = {
        { "model", model, 0 },
        { "data", data, 0 },
        { "devices", devices, 0 },
        { "type", cek_dtype_name(o->type ? o->type : CEK_F32), 0 },
        { "math", math_name(o), 0 },
        { "optimizer", optimizer_name(optimizer), 0 },
        { "schedule", o->schedule ? o->schedule : "none", 0 },
        { "learning_rate", NULL, optimizer_rate(optimizer) },
        { "momentum", NULL, optimizer->momentum },
        { "weight_decay", NULL, optimizer->weight_decay },
        { "batch", NULL, (double)of->batch },
        { "accumulate", NULL, o->accumulate ? (double)o->accumulate : 1 },
        { "seed", NULL, (double)o->seed },
    };
    const char *metrics[4];
    size_t count = 0;
    metrics[count++] = "epoch/train_loss";
    if (of->labels)
        metrics[count++] = "epoch/train_accuracy";
    if (of->data->test)
        metrics[count++] = "epoch/test_loss";
    if (of->data->test && of->labels)
        metrics[count++] = "epoch/test_accuracy";
    return cek_event_log_hparams(log->events, hparams, sizeof hparams / sizeof *hparams, metrics, count);
}

/* The table of layers, in letters of one width. */
static cek_status summary_tell(const run_log *log)
{
    char *summary = NULL, *text = NULL;
    cek_status st = cek_model_summary(log->of.model, NULL, log->of.batch, &summary);
    if (!st && asprintf(&text, "```\n%s```\n", summary) < 0)
        text = NULL, st = NO_MEMORY;
    if (!st)
        st = cek_event_log_text(log->events, "run/layers", 0, text);
    free(summary);
    free(text);
    return st;
}

/* ---- samples ---- */

/* The first of the test set, or without one of the training set, where they are images of one class each. */
static cek_status samples_take(run_log *log)
{
    const bench_data *data = log->of.data;
    const cek_dataset *set = data->test ? data->test : data->train;
    picture_samples *s = &log->samples;
    int64_t shape[CEK_RANK_MAX], outputs[CEK_RANK_MAX];
    const cek_loader_options lo = { .size = sizeof lo, .batch = SAMPLES };
    cek_loader *loader = NULL;
    const cek_batch *batch = NULL;
    const int rank = cek_dataset_shape(set, shape), output_rank = cek_model_output_shape(log->of.model, outputs);
    s->type = cek_dataset_input_type(set);
    if (rank != 3 || s->type == CEK_I32 || (shape[0] != 1 && shape[0] != 3) || !log->of.labels ||
        cek_dataset_classes(set) == 0 || cek_dataset_target_columns(set) != 1 || output_rank != 1 ||
        outputs[0] < cek_dataset_classes(set))
        return CEK_OK;
    s->channels = shape[0], s->height = shape[1], s->width = shape[2], s->classes = outputs[0];
    const size_t bytes = (size_t)(shape[0] * shape[1] * shape[2]) * (s->type == CEK_U8 ? 1 : sizeof(float));
    log->pixels = malloc(SAMPLES * bytes);
    log->labels = malloc(SAMPLES * sizeof *log->labels);
    log->probabilities = malloc(SAMPLES * (size_t)s->classes * sizeof *log->probabilities);
    if (!log->pixels || !log->labels || !log->probabilities)
        return NO_MEMORY;
    cek_status st = cek_loader_create(set, &lo, &loader);
    if (!st)
        st = cek_loader_start(loader, 0);
    if (!st)
        st = cek_loader_next(loader, &batch);
    if (!st && batch) {
        memcpy(log->pixels, batch->inputs, (size_t)batch->count * bytes);
        memcpy(log->labels, batch->targets, (size_t)batch->count * sizeof *log->labels);
        s->count = batch->count;
        s->pixels = log->pixels, s->labels = log->labels, s->probabilities = log->probabilities;
    }
    cek_loader_free(loader);
    return st;
}

/* Of the model with the weights that it has now, on the first device. */
static cek_status samples_predict(run_log *log)
{
    const bench_options *o = log->of.options;
    cek_device *device = cek_trainer_device(log->of.trainer, 0);
    cek_predictor *predictor = NULL;
    const cek_predictor_options po = { .size = sizeof po,
                                       .input_type = log->samples.type,
                                       .batch = SAMPLES,
                                       .softmax = true,
                                       .type = o->type == CEK_F64 ? CEK_F32 : o->type,
                                       .math = o->math,
                                       .memory_limit = o->limit_memory,
                                       .fallback = log->of.fallback };
    cek_status st = cek_predictor_create(log->of.model, &device, 1, &po, &predictor);
    if (!st)
        st = cek_predictor_run(predictor, log->pixels, log->samples.count, log->probabilities);
    cek_predictor_free(predictor);
    return st;
}

static cek_status samples_tell(run_log *log, int64_t step)
{
    picture p;
    if (!log->samples.count)
        return CEK_OK;
    cek_status st = samples_predict(log);
    if (st)
        return st;
    if (!picture_draw(&log->samples, &p))
        return NO_MEMORY;
    st = cek_event_log_image(log->events, "samples/predictions", step, p.pixels, p.height, p.width, 3);
    free(p.pixels);
    return st;
}

/* ---- histograms ---- */

/* Of the model's weights, and of the gradients of the last step. */
static cek_status parameter_tell(const run_log *log, size_t index, int64_t step)
{
    char tag[TAG_MOST];
    cek_parameter p;
    cek_status st = cek_model_parameter(log->of.model, index, &p);
    if (st)
        return st;
    double *gradient = malloc((size_t)p.count * sizeof *gradient);
    float *values = malloc((size_t)p.count * sizeof *values);
    if (!gradient || !values)
        st = NO_MEMORY;
    if (!st)
        st = cek_trainer_read_gradient(log->of.trainer, index, gradient, p.count);
    for (int64_t i = 0; !st && i < p.count; i++)
        values[i] = (float)gradient[i];
    snprintf(tag, sizeof tag, "gradients/%s", p.name);
    if (!st)
        st = cek_event_log_histogram(log->events, tag, step, values, p.count);
    snprintf(tag, sizeof tag, "weights/%s", p.name);
    if (!st)
        st = cek_event_log_histogram(log->events, tag, step, p.data, p.count);
    free(gradient);
    free(values);
    return st;
}

static cek_status parameters_tell(const run_log *log, int64_t step)
{
    cek_status st = CEK_OK;
    for (size_t i = 0; !st && i < cek_model_parameter_count(log->of.model); i++)
        st = parameter_tell(log, i, step);
    return st;
}

/* ---- curves ---- */

/* What is no number is left out: TensorBoard has no place for it. */
static void curve_add(run_log *log, const char *tag, double value)
{
    if (isfinite(value))
        log->curve[log->curves++] = (cek_event_scalar){ tag, value };
}

static cek_status curves_tell(run_log *log, int64_t step)
{
    const size_t count = log->curves;
    log->curves = 0;
    return cek_event_log_scalars(log->events, step, log->curve, count);
}

static bool devices_name(run_log *log)
{
    static const char *const groups[DEVICE_CURVES] = { "memory_MiB", "share", "idle" };
    log->devices = cek_trainer_device_count(log->of.trainer);
    log->tags = calloc(log->devices, sizeof *log->tags);
    log->curve = calloc(RUN_CURVES + DEVICE_CURVES * log->devices, sizeof *log->curve);
    for (size_t i = 0; log->tags && i < log->devices; i++)
        for (int k = 0; k < DEVICE_CURVES; k++)
            snprintf(log->tags[i][k], TAG_MOST, "%s/%s", groups[k],
                     cek_device_name(cek_trainer_device(log->of.trainer, i)));
    return log->tags && log->curve;
}

/* What the trainer has of each device's memory, and among several what each has of a step and how long it has
 * nothing to do. */
static void devices_add(run_log *log)
{
    cek_trainer *trainer = log->of.trainer;
    double samples = 0;
    for (size_t i = 0; i < log->devices; i++)
        samples += (double)cek_trainer_share(trainer, i);
    for (size_t i = 0; i < log->devices; i++) {
        curve_add(log, log->tags[i][0], (double)cek_trainer_planned_bytes(trainer, i) / (1 << 20));
        if (log->devices > 1) {
            curve_add(log, log->tags[i][1], (double)cek_trainer_share(trainer, i) / samples);
            curve_add(log, log->tags[i][2], cek_trainer_idle(trainer, i));
        }
    }
}

/* Every so many steps as was asked for; else all of the first STEPS_EACH, then every second up to twice as many, and so
 * on: from any distance a curve has as many points as are shown. */
static bool is_due(const run_log *log, int64_t step)
{
    int64_t every = log->of.options->log_every;
    if (!every)
        for (every = 1; step / every > STEPS_EACH; every *= 2)
            ;
    return step % every == 0;
}

static cek_status step_tell(run_log *log, const cek_step_result *r)
{
    curve_add(log, "step/loss", r->loss);
    if (log->of.labels && r->labels)
        curve_add(log, "step/accuracy", (double)r->correct / (double)r->labels);
    curve_add(log, "step/learning_rate", r->rate);
    if (r->seconds > 0)
        curve_add(log, "step/samples_per_second", (double)r->samples / r->seconds);
    if (log->of.options->type == CEK_F16)
        curve_add(log, "step/loss_scale", r->loss_scale);
    devices_add(log);
    return curves_tell(log, r->step);
}

static cek_status epoch_tell(run_log *log, const cek_epoch_result *r)
{
    curve_add(log, "epoch/train_loss", r->train->loss);
    if (log->of.labels)
        curve_add(log, "epoch/train_accuracy", r->train->accuracy);
    if (r->test && r->test->samples) {
        curve_add(log, "epoch/test_loss", r->test->loss);
        if (log->of.labels)
            curve_add(log, "epoch/test_accuracy", r->test->accuracy);
    }
    curve_add(log, "epoch/seconds", r->seconds);
    curve_add(log, "epoch/samples_per_second", r->samples_per_second);
    cek_status st = curves_tell(log, r->step);
    if (!st)
        st =
            cek_trainer_pull(log->of.trainer); /* the model's weights are looked at, and written once more at the end */
    return st ? st : parameters_tell(log, r->step);
}

/* ---- the log ---- */

/* Whether it went well; else that is said, `how` before the cause. */
static bool is_told(run_log *log, cek_status st, const char *how)
{
    if (!st)
        return true;
    const int code = complain(st == NO_MEMORY ? EXIT_MEMORY : exit_code_of(st), "%s%s", how,
                              st == NO_MEMORY ? "no host memory for a log" : cek_error_text());
    log->code = log->code ? log->code : code;
    return false;
}

static const char on_the_way[] = "the log ends here, the run goes on: ";

int run_log_open(const run_log_of *of, run_log **out)
{
    *out = NULL;
    if (!of->options->log_dir)
        return EXIT_OK;
    run_log *log = calloc(1, sizeof *log);
    if (!log)
        return complain(EXIT_MEMORY, "no host memory");
    log->of = *of;
    cek_status st = devices_name(log) ? CEK_OK : NO_MEMORY;
    if (!st)
        st = cek_event_log_create(of->options->log_dir, &log->events);
    if (!st)
        st = hparams_tell(log);
    if (!st)
        st = cek_event_log_graph(log->events, of->model);
    if (!st)
        st = summary_tell(log);
    if (!st)
        st = samples_take(log);
    log->ended = !is_told(log, st, ""); /* and nothing is trained */
    if (log->ended)
        return run_log_close(log, EXIT_OK);
    *out = log;
    return EXIT_OK;
}

void run_log_step(run_log *log, const cek_step_result *result)
{
    if (log && !log->ended && is_due(log, result->step))
        log->ended = !is_told(log, step_tell(log, result), on_the_way);
}

void run_log_epoch(run_log *log, const cek_epoch_result *result)
{
    if (!log || log->ended)
        return;
    log->ended = !is_told(log, epoch_tell(log, result), on_the_way);
    /* They need memory of a device that may have none left: the curves are worth more. */
    if (!log->ended && !is_told(log, samples_tell(log, result->step), "samples are logged no more, all else is: "))
        log->samples.count = 0;
}

int run_log_close(run_log *log, int code)
{
    if (!log)
        return code;
    cek_status st = log->ended ? CEK_OK : cek_event_log_outcome(log->events, code == EXIT_OK);
    if (!log->ended && !st)
        st = cek_event_log_flush(log->events);
    is_told(log, st, "");
    const int own = log->code;
    cek_event_log_free(log->events);
    free(log->tags);
    free(log->curve);
    free(log->pixels);
    free(log->labels);
    free(log->probabilities);
    free(log);
    return code ? code : own;
}
