/* cmd_predict.c - `predict`: what a trained network says of the test set, row by row, and how often
 * it is right. */
#include <math.h>
#include <stdlib.h>

#include "bench/arrays.h"
#include "bench/fit.h"
#include "bench/place.h"

static const output_column label_columns[] = {
    { "row", "row", 7, 0, 0 },
    { "predicted", "predicted", 9, 0, 0 },
    { "probability", "probability", 11, 1, 4 },
    { "target", "target", 6, 0, 0 },
};
static const output_column value_columns[] = {
    { "row", "row", 7, 0, 0 },
    { "predicted", "predicted", 12, 1, 5 },
    { "target", "target", 12, 1, 5 },
};
/* Where classes have names; of images without classes. */
static const output_column class_columns[] = {
    { "row", "row", 7, 0, 0 },
    { "class", "class", -16, 0, 0 },
    { "probability", "probability", 11, 1, 4 },
    { "target_class", "target", -16, 0, 0 },
};
static const output_column image_columns[] = {
    { "file", "file", -40, 0, 0 },
    { "predicted", "predicted", 9, 0, 0 },
    { "class", "class", -16, 0, 0 },
    { "probability", "probability", 11, 1, 4 },
};
enum { ROWS_SHOWN = 10 }; /* in a table, unless --rows says otherwise; machines get all */

/* Everything there is to say of the outputs of a data set. */
typedef struct verdict {
    const bench_options *options;
    const cek_dataset *set;
    const cek_model *model; /* which may know names of classes */
    output out;
    int64_t columns, done, shown;
    bool labels, judged; /* outputs are classes; there is what they should be */
    int64_t correct;
    double squares;
    int64_t lost, lost_row; /* rows with an output that is NaN or infinite, and the first of them */
    double lost_value;
} verdict;

static int64_t first_largest(const float *values, int64_t count)
{
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++)
        if (values[i] > values[best])
            best = i;
    return best;
}

/* Weights that training has ruined give such rows. They are shown, but no class is read out of them. */
static bool sample_lost(verdict *v, const float *values)
{
    int64_t k = 0;
    while (k < v->columns && isfinite(values[k]))
        k++;
    if (k == v->columns)
        return false;
    if (!v->lost++)
        v->lost_row = v->done, v->lost_value = values[k];
    return true;
}

/* The name of a class, by who knows one: nothing where nobody does. */
static void name_add(json_t *row, const char *key, const char *name)
{
    if (name)
        json_object_set_new(row, key, text_json(name));
}

static const char *name_of(const verdict *v, int64_t label)
{
    const char *name = cek_model_class_name(v->model, label);
    return name ? name : cek_dataset_class_name(v->set, label);
}

static void label_add(verdict *v, json_t *row, const float *values, const cek_batch *batch, int64_t i)
{
    const bool lost = sample_lost(v, values);
    const int64_t best = first_largest(values, v->columns);
    json_object_update_new(row, json_pack("{so so}", "predicted", lost ? json_null() : json_integer(best),
                                          "probability", number_json(lost ? NAN : values[best])));
    if (!lost)
        name_add(row, "class", name_of(v, best));
    name_add(row, "file", cek_dataset_row_name(v->set, v->done));
    if (!v->judged)
        return;
    const int64_t label = ((const int32_t *)batch->targets)[i];
    v->correct += !lost && best == label;
    json_object_set_new(row, "target", json_integer(label));
    name_add(row, "target_class", name_of(v, label));
}

static void sample_add(verdict *v, const float *values, const cek_batch *batch, int64_t i)
{
    json_t *row = json_pack("{sI}", "row", (json_int_t)v->done);
    if (v->labels) {
        label_add(v, row, values, batch, i);
    } else {
        const float *target = (const float *)batch->targets + i * v->columns;
        sample_lost(v, values);
        for (int64_t k = 0; k < v->columns; k++)
            v->squares += ((double)values[k] - target[k]) * ((double)values[k] - target[k]);
        json_object_update_new(row, json_pack("{so so}", "predicted", number_json(values[0]), "target",
                                              number_json(target[0])));
    }
    if (v->done++ < v->shown)
        output_row(&v->out, row);
    else
        json_decref(row);
}

/* Targets come from a loader in the file's order, the order of the outputs. */
static cek_status samples_add(verdict *v, const cek_dataset *set, const float *outputs)
{
    cek_loader *loader = NULL;
    const cek_batch *batch = NULL;
    cek_loader_options lo = { .size = sizeof lo, .batch = 256 };
    cek_status st = cek_loader_create(set, &lo, &loader);
    if (!st)
        st = cek_loader_start(loader, 0);
    while (!st && !(st = cek_loader_next(loader, &batch)) && batch)
        for (int64_t i = 0; i < batch->count; i++)
            sample_add(v, outputs + v->done * v->columns, batch, i);
    cek_loader_free(loader);
    return st;
}

static int64_t outputs_per_sample(const cek_model *model)
{
    int64_t shape[CEK_RANK_MAX], count = 1;
    int rank = cek_model_output_shape(model, shape);
    for (int i = 0; i < rank; i++)
        count *= shape[i];
    return count;
}

static void results_open(verdict *v)
{
    const output_column *columns = value_columns;
    size_t count = sizeof value_columns / sizeof *value_columns;
    if (v->labels && !v->judged)
        columns = image_columns, count = sizeof image_columns / sizeof *image_columns;
    else if (v->labels && name_of(v, 0))
        columns = class_columns, count = sizeof class_columns / sizeof *class_columns;
    else if (v->labels)
        columns = label_columns, count = sizeof label_columns / sizeof *label_columns;
    output_open(&v->out, v->options->output, columns, count, "results");
}

static void verdict_tell(verdict *v, const bench_data *data, int64_t size)
{
    double mean = v->labels ? (double)v->correct / (double)size : v->squares / ((double)size * (double)v->columns);
    const char *key = v->labels    ? data->test ? "test_accuracy" : "train_accuracy"
                      : data->test ? "test_mse"
                                   : "train_mse";
    output_set(&v->out, key, number_json(mean));
    output_note(&v->out, "%lld samples of %s: %s %.5g", (long long)size, data->source, v->labels ? "accuracy" : "mse",
                mean);
}

static int predict_all(const bench_options *o, const bench_data *data, cek_model *model, cek_device *const *devices,
                       size_t count, size_t left, cek_device *fallback)
{
    const cek_dataset *set = data->test ? data->test : data->train;
    int64_t size = cek_dataset_size(set), classes = cek_dataset_classes(set);
    verdict v = { .options = o,
                  .set = set,
                  .model = model,
                  .columns = outputs_per_sample(model),
                  .labels = classes > 0 || data->unlabelled,
                  .judged = !data->unlabelled };
    bool people = o->output == FORMAT_TABLE || o->output == FORMAT_MD;
    if (v.labels && cek_dataset_target_columns(set) > 1)
        return complain(EXIT_USAGE, "predict has no rows to print of %s, whose samples have %lld labels each",
                        o->argv[0], (long long)cek_dataset_target_columns(set));
    v.shown = o->rows >= 0 ? o->rows : people ? ROWS_SHOWN : INT64_MAX;
    if (!v.labels && v.columns != cek_dataset_target_columns(set))
        return complain(EXIT_BAD_INPUT, "the model gives %lld values, the data has %lld", (long long)v.columns,
                        (long long)cek_dataset_target_columns(set));
    if (v.labels && v.columns < classes)
        return complain(EXIT_BAD_INPUT, "the model gives %lld values for %lld classes", (long long)v.columns,
                        (long long)classes);
    float *outputs = malloc((size_t)(size * v.columns + 1) * sizeof *outputs);
    if (!outputs)
        return complain(EXIT_MEMORY, "no host memory for %lld predictions", (long long)size);
    cek_predictor *predictor = NULL;
    cek_predictor_options po = { .size = sizeof po,
                                 .input_type = data->input_type,
                                 .batch = o->batch,
                                 .softmax = v.labels,
                                 .type = o->type,
                                 .math = o->math,
                                 .memory_limit = o->limit_memory,
                                 .fallback = fallback };
    cek_status st = cek_predictor_create(model, devices, count, &po, &predictor);
    double start = seconds_now();
    if (!st)
        st = cek_predictor_run_dataset(predictor, set, outputs);
    double seconds = seconds_now() - start;
    results_open(&v);
    fit_tell(&v.out, model, o->type, devices, count, left);
    if (!st)
        st = samples_add(&v, set, outputs);
    int code = st ? complain_status(st) : EXIT_OK;
    if (!st) {
        output_set(&v.out, "samples", json_integer(size));
        output_set(&v.out, "math", json_string(math_name(o)));
        output_set(&v.out, "samples_per_second", json_real(seconds > 0 ? (double)size / seconds : 0));
        if (v.judged)
            verdict_tell(&v, data, size);
    }
    if (!st && v.lost)
        code = complain(EXIT_NOT_FINITE, "row %lld: an output is %g; %lld of %lld rows are not finite",
                        (long long)v.lost_row, v.lost_value, (long long)v.lost, (long long)size);
    cek_predictor_free(predictor);
    free(outputs);
    return output_close(&v.out, code);
}

int cmd_predict(const bench_options *o)
{
    cek_engine *engine = NULL;
    cek_device **devices = NULL, *fallback = NULL;
    cek_model *model = NULL;
    cek_preset preset;
    bench_data data = { .train = NULL };
    size_t count = 0, left = 0;
    if (!o->load && !model_is_file(o))
        return complain(EXIT_USAGE, "predict needs --load=FILE, the weights of a trained model");
    int code = save_check(o->outputs);
    if (!code)
        code = save_check(o->export);
    if (!code)
        code = save_check(o->trace);
    if (!code && o->outputs && o->export && save_same(o->outputs, o->export))
        code = complain(EXIT_USAGE, "--output and --export cannot both be %s", o->export);
    if (!code && o->outputs && o->trace && save_same(o->outputs, o->trace))
        code = complain(EXIT_USAGE, "--output and --trace cannot both be %s", o->trace);
    if (!code && o->export && o->trace && save_same(o->export, o->trace))
        code = complain(EXIT_USAGE, "--export and --trace cannot both be %s", o->trace);
    if (!code)
        code = data_check(o);
    if (!code)
        code = devices_open(o, CEK_PROFILE_INFERENCE, &engine, &devices, &count);
    if (!code)
        code = fallback_open(o, CEK_PROFILE_INFERENCE, engine, &fallback);
    if (!code)
        code = data_open(o, &data);
    if (!code)
        code = model_open(o, &data, &model, &preset);
    if (!code)
        code = classes_agree(o, &data, model);
    if (!code)
        code = model_export(o, model);
    if (!code)
        code = fit_choose(o, model, o->type, devices, &count, &left);
    if (!code)
        code = data.array_count ? predict_arrays(o, &data, model, devices, count, left, fallback)
                                : predict_all(o, &data, model, devices, count, left, fallback);
    cek_model_free(model);
    data_close(&data);
    free(devices);
    code = trace_close(o, engine, code);
    if (code != EXIT_LOST) /* what hangs may still use it */
        cek_engine_free(engine);
    return code;
}
