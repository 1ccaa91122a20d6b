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
enum { ROWS_SHOWN = 10 }; /* in a table, unless --rows says otherwise; machines get all */

/* Everything there is to say of the outputs of a data set. */
typedef struct verdict {
    const bench_options *options;
    output out;
    int64_t columns, done, shown;
    bool labels;
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

static void sample_add(verdict *v, const float *values, const cek_batch *batch, int64_t i)
{
    json_t *row = json_pack("{sI}", "row", (json_int_t)v->done);
    const bool lost = sample_lost(v, values);
    if (v->labels) {
        int64_t label = ((const int32_t *)batch->targets)[i], best = first_largest(values, v->columns);
        v->correct += !lost && best == label;
        json_object_update_new(row, json_pack("{so so sI}", "predicted", lost ? json_null() : json_integer(best),
                                              "probability", number_json(lost ? NAN : values[best]), "target",
                                              (json_int_t)label));
    } else {
        const float *target = (const float *)batch->targets + i * v->columns;
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

static int predict_all(const bench_options *o, const bench_data *data, cek_model *model, cek_device *const *devices,
                       size_t count, size_t left, cek_device *fallback)
{
    const cek_dataset *set = data->test ? data->test : data->train;
    int64_t size = cek_dataset_size(set), classes = cek_dataset_classes(set);
    verdict v = { .options = o, .columns = outputs_per_sample(model), .labels = classes > 0 };
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
                                 .memory_limit = o->limit_memory,
                                 .fallback = fallback };
    cek_status st = cek_predictor_create(model, devices, count, &po, &predictor);
    double start = seconds_now();
    if (!st)
        st = cek_predictor_run_dataset(predictor, set, outputs);
    double seconds = seconds_now() - start;
    if (v.labels)
        output_open(&v.out, o->output, label_columns, sizeof label_columns / sizeof *label_columns, "results");
    else
        output_open(&v.out, o->output, value_columns, sizeof value_columns / sizeof *value_columns, "results");
    fit_tell(&v.out, model, CEK_F32, devices, count, left);
    if (!st)
        st = samples_add(&v, set, outputs);
    int code = st ? complain_status(st) : EXIT_OK;
    if (!st) {
        double mean = v.labels ? (double)v.correct / (double)size : v.squares / ((double)size * (double)v.columns);
        const char *key = v.labels     ? data->test ? "test_accuracy" : "train_accuracy"
                          : data->test ? "test_mse"
                                       : "train_mse";
        output_set(&v.out, key, number_json(mean));
        output_set(&v.out, "samples", json_integer(size));
        output_set(&v.out, "samples_per_second", json_real(seconds > 0 ? (double)size / seconds : 0));
        output_note(&v.out, "%lld samples of %s: %s %.5g", (long long)size, data->source, v.labels ? "accuracy" : "mse",
                    mean);
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
    if (!code && o->outputs && o->export && save_same(o->outputs, o->export))
        code = complain(EXIT_USAGE, "--output and --export cannot both be %s", o->export);
    if (!code)
        code = devices_open(o, CEK_PROFILE_INFERENCE, &engine, &devices, &count);
    if (!code)
        code = fallback_open(o, CEK_PROFILE_INFERENCE, engine, &fallback);
    if (!code)
        code = data_open(o, &data);
    if (!code)
        code = model_open(o, &data, &model, &preset);
    if (!code)
        code = model_export(o, model);
    if (!code)
        code = fit_choose(o, model, CEK_F32, devices, &count, &left);
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
