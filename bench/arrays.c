/* arrays.c - see arrays.h. */
#include "bench/arrays.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/fit.h"

static const output_column class_columns[] = {
    { "row", "row", 7, 0, 0 },
    { "largest", "largest", 7, 0, 0 },
    { "value", "value", 12, 1, 5 },
};
static const output_column value_columns[] = {
    { "row", "row", 7, 0, 0 },
    { "value", "value", 12, 1, 5 },
};
enum { ROWS_SHOWN = 10 /* in a table, unless --rows says otherwise; machines get all */, TEXT = 200 };

static int64_t elements_of(int rank, const int64_t *shape)
{
    int64_t count = 1;
    for (int i = 0; i < rank; i++)
        count *= shape[i];
    return count;
}

static const char *shape_text(int rank, const int64_t *shape, char text[TEXT])
{
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < rank; i++)
        used += (size_t)snprintf(text + used, TEXT - used, "%s%lld", i ? "," : "", (long long)shape[i]);
    return text;
}

/* How many samples an array has; one alone may come without an axis that counts them. 0 or an exit code. */
static int samples_count(const char *path, const cek_npy *a, const cek_input *input, int64_t *samples)
{
    char has[TEXT], wants[TEXT];
    const int64_t each = elements_of(input->rank, input->shape);
    const bool rows = a->rank == input->rank + 1 &&
                      !memcmp(a->shape + 1, input->shape, (size_t)input->rank * sizeof *a->shape);
    const bool one = input->rank == 1 ? a->count == each
                                      : a->rank == input->rank &&
                                            !memcmp(a->shape, input->shape, (size_t)input->rank * sizeof *a->shape);
    *samples = rows ? a->shape[0] : 1;
    if (rows || one)
        return EXIT_OK;
    return complain(EXIT_BAD_INPUT, "%s: an array [%s] for the input %s, which takes [samples,%s]", path,
                    shape_text(a->rank, a->shape, has), input->name, shape_text(input->rank, input->shape, wants));
}

/* As predictors take them: of images the channels last. NULL: no memory. */
static void *channels_last(const cek_npy *a, int64_t samples, const int64_t shape[3])
{
    const size_t size = cek_dtype_bytes(a->type), channels = (size_t)shape[0], pixels = (size_t)(shape[1] * shape[2]);
    unsigned char *moved = malloc((size_t)a->count * size + 1);
    for (size_t n = 0; moved && n < (size_t)samples; n++)
        for (size_t c = 0; c < channels; c++)
            for (size_t p = 0; p < pixels; p++)
                memcpy(moved + ((n * pixels + p) * channels + c) * size,
                       (const unsigned char *)a->data + ((n * channels + c) * pixels + p) * size, size);
    return moved;
}

/* In the type that the input takes. 0 or an exit code. */
static int array_fit(const char *path, cek_npy *a, const cek_input *input, cek_dtype data_type, int64_t samples)
{
    const cek_dtype wanted = input->type == CEK_I32 ? CEK_I32 : data_type;
    if (a->type != wanted) {
        cek_npy again = { .size = sizeof again };
        cek_status st = cek_npy_read(path, wanted, &again);
        if (st)
            return complain_status(st);
        free(a->data);
        *a = again;
    }
    if (input->type == CEK_I32 || input->rank != 3)
        return EXIT_OK;
    void *moved = channels_last(a, samples, input->shape);
    if (!moved)
        return complain(EXIT_MEMORY, "%s: no host memory", path);
    free(a->data);
    a->data = moved;
    return EXIT_OK;
}

/* All of them, as many samples each. *type: of those that are data. 0 or an exit code. */
static int arrays_fit(const bench_options *o, bench_data *d, const cek_model *model, cek_dtype *type, int64_t *samples)
{
    cek_input inputs[INPUTS_MOST];
    int code = EXIT_OK;
    *type = CEK_U8;
    if (d->array_count != cek_model_input_count(model))
        return complain(EXIT_USAGE, "%zu arrays for a model of %zu inputs", d->array_count,
                        cek_model_input_count(model));
    for (size_t i = 0; i < d->array_count && !code; i++) {
        int64_t here = 0;
        inputs[i].size = sizeof inputs[i];
        cek_status st = cek_model_input(model, i, &inputs[i]);
        code = st ? complain_status(st) : samples_count(o->inputs[i], &d->arrays[i], &inputs[i], &here);
        if (!code && i && here != *samples)
            code = complain(EXIT_BAD_INPUT, "%s: %lld samples, %s has %lld", o->inputs[i], (long long)here,
                            o->inputs[0], (long long)*samples);
        *samples = here;
        if (inputs[i].type == CEK_F32 && d->arrays[i].type != CEK_U8)
            *type = CEK_F32;
    }
    for (size_t i = 0; i < d->array_count && !code; i++)
        code = array_fit(o->inputs[i], &d->arrays[i], &inputs[i], *type, *samples);
    bool data = false;
    for (size_t i = 0; i < d->array_count; i++)
        data |= inputs[i].type == CEK_F32;
    if (!data)
        *type = CEK_I32;
    return code;
}

/* One line for each sample: its value, or the largest of several and where that is. */
static int rows_print(const bench_options *o, output *out, const cek_npy *y, int64_t samples)
{
    const int64_t each = samples ? y->count / samples : 0;
    const bool people = o->output == FORMAT_TABLE || o->output == FORMAT_MD;
    const int64_t shown = o->rows >= 0 ? o->rows : people ? ROWS_SHOWN : INT64_MAX;
    int64_t lost = 0, lost_row = 0;
    for (int64_t n = 0; n < samples; n++) {
        const float *values = (const float *)y->data + n * each;
        int64_t best = 0;
        bool finite = true;
        for (int64_t k = 0; k < each; k++) {
            finite &= isfinite(values[k]) != 0;
            best = values[k] > values[best] ? k : best;
        }
        if (!finite && !lost++)
            lost_row = n;
        if (n >= shown)
            continue;
        json_t *row = json_pack("{sI so}", "row", (json_int_t)n, "value", number_json(finite ? values[best] : NAN));
        if (each > 1)
            json_object_set_new(row, "largest", finite ? json_integer((json_int_t)best) : json_null());
        output_row(out, row);
    }
    return lost ? complain(EXIT_NOT_FINITE, "row %lld: an output is not finite; so are those of %lld of %lld rows",
                           (long long)lost_row, (long long)lost, (long long)samples)
                : EXIT_OK;
}

static cek_status outputs_compute(const bench_options *o, bench_data *d, const cek_model *model, cek_dtype type,
                                  cek_device *const *devices, size_t count, cek_device *fallback, int64_t samples,
                                  cek_npy *y)
{
    cek_predictor *predictor = NULL;
    const void *inputs[INPUTS_MOST] = { NULL };
    const cek_predictor_options po = { .size = sizeof po,
                                       .input_type = type,
                                       .batch = o->batch,
                                       .type = o->type,
                                       .math = o->math,
                                       .memory_limit = o->limit_memory,
                                       .fallback = fallback };
    float *outputs = y->data;
    for (size_t i = 0; i < d->array_count; i++)
        inputs[i] = d->arrays[i].data;
    cek_status st = cek_predictor_create(model, devices, count, &po, &predictor);
    if (!st)
        st = cek_predictor_run_arrays(predictor, inputs, samples, &outputs);
    cek_predictor_free(predictor);
    return st;
}

int predict_arrays(const bench_options *o, bench_data *d, cek_model *model, cek_device *const *devices, size_t count,
                   size_t left, cek_device *fallback)
{
    cek_dtype type;
    int64_t samples = 0, shape[CEK_RANK_MAX];
    int code = arrays_fit(o, d, model, &type, &samples);
    if (code)
        return code;
    const int rank = cek_model_output_shape(model, shape);
    const int64_t each = elements_of(rank, shape);
    cek_npy y = { .size = sizeof y, .type = CEK_F32, .rank = rank + 1, .shape = { samples }, .count = samples * each };
    output out;
    if (rank >= CEK_RANK_MAX)
        return complain(EXIT_BAD_INPUT, "%s: an output of %d axes", o->argv[0], rank);
    memcpy(y.shape + 1, shape, (size_t)rank * sizeof *shape);
    y.data = malloc((size_t)(y.count + 1) * sizeof(float));
    if (!y.data)
        return complain(EXIT_MEMORY, "no host memory for %lld outputs", (long long)y.count);
    if (each > 1)
        output_open(&out, o->output, class_columns, sizeof class_columns / sizeof *class_columns, "results");
    else
        output_open(&out, o->output, value_columns, sizeof value_columns / sizeof *value_columns, "results");
    fit_tell(&out, model, o->type, devices, count, left);
    double start = seconds_now();
    cek_status st = outputs_compute(o, d, model, type, devices, count, fallback, samples, &y);
    double seconds = seconds_now() - start;
    if (!st && o->outputs)
        st = cek_npy_write(o->outputs, &y);
    code = st ? complain_status(st) : rows_print(o, &out, &y, samples);
    if (!st) {
        output_set(&out, "samples", json_integer(samples));
        output_set(&out, "samples_per_second", json_real(seconds > 0 ? (double)samples / seconds : 0));
        output_note(&out, "%lld samples", (long long)samples);
    }
    free(y.data);
    return output_close(&out, code);
}
