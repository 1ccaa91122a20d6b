/* dataset.c - data sets in memory and from callbacks, and views of their rows.
 *
 * Owns: sample arrays (or the duty to call the source's destroy), shared by reference count among views.
 * Must not know: files, batches, devices. */
#include "nn/data/dataset.h"

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"

/* Where samples come from; one or more data sets share it. */
typedef struct store {
    atomic_int references;
    int64_t count;
    size_t input_bytes, target_bytes;
    cek__data_source source;
    const void *inputs, *targets; /* in memory */
    void *owned[2];               /* those of the two that are freed with the store */
    cek_dataset *named;           /* what these samples were before, which has their names; or NULL */
} store;

struct cek_dataset {
    cek__data_format format;
    store *store;
    int64_t count;
    int64_t *rows; /* rows of the store; NULL: all, in order */
};

/* ---- format ---- */

static size_t type_bytes(cek_dtype type)
{
    return type == CEK_U8 ? 1 : 4; /* u8, f32, i32 are all there is */
}

static size_t input_elements(const cek__data_format *format)
{
    size_t n = 1;

    for (uint32_t i = 0; i < format->input_rank; i++)
        n *= (size_t)format->input_shape[i];
    return n;
}

size_t cek__data_input_bytes(const cek__data_format *format)
{
    return input_elements(format) * type_bytes(format->input_type);
}

size_t cek__data_target_bytes(const cek__data_format *format)
{
    return (size_t)format->target_width * 4;
}

bool cek__data_is_image(const cek__data_format *format)
{
    return format->input_rank == 3 && format->input_type != CEK_I32;
}

static int64_t channels(const cek__data_format *format)
{
    return format->input_shape[format->input_rank - 1];
}

cek_status cek__data_format_check(const cek__data_format *f, int64_t count)
{
    int64_t elements = 1;
    int64_t bytes;

    if (count < 0)
        return cek__fail(CEK_INVALID, "data set: %" PRId64 " samples", count);
    if (f->input_type != CEK_U8 && f->input_type != CEK_F32 && f->input_type != CEK_I32)
        return cek__fail(CEK_INVALID, "data set: inputs must be u8, f32 or i32");
    if (f->input_rank < 1 || f->input_rank > CEK__DATA_RANK_MAX)
        return cek__fail(CEK_INVALID, "data set: inputs of rank %" PRIu32 ", 1 to %d is possible", f->input_rank,
                         CEK__DATA_RANK_MAX);
    for (uint32_t i = 0; i < f->input_rank; i++)
        if (f->input_shape[i] < 1 || __builtin_mul_overflow(elements, f->input_shape[i], &elements))
            return cek__fail(CEK_INVALID, "data set: dimension %" PRIu32 " of the inputs is %" PRId64, i,
                             f->input_shape[i]);
    if (f->target_width < 1 || __builtin_add_overflow(elements, f->target_width, &elements) ||
        __builtin_mul_overflow(elements, count > 0 ? count : 1, &elements) ||
        __builtin_mul_overflow(elements, 4, &bytes))
        return cek__fail(CEK_INVALID, "data set: %" PRId64 " samples with targets of %" PRId64 " values are impossible",
                         count, f->target_width);
    if (f->target_width > UINT32_MAX)
        return cek__fail(CEK_INVALID, "data set: targets of %" PRId64 " values", f->target_width);
    if (f->target_type == CEK_I32 ? f->class_count < 1 || f->class_count > INT32_MAX
                                  : f->target_type != CEK_F32 || f->class_count != 0)
        return cek__fail(CEK_INVALID, "data set: targets must be i32 labels of 1 or more classes, or f32 values");
    return CEK_OK;
}

/* ---- life ---- */

static void store_release(store *s)
{
    if (s == NULL || atomic_fetch_sub(&s->references, 1) != 1)
        return;
    if (s->source.destroy != NULL)
        s->source.destroy(s->source.user);
    free(s->owned[0]);
    free(s->owned[1]);
    cek_dataset_free(s->named);
    free(s);
}

void cek_dataset_free(cek_dataset *dataset)
{
    if (dataset == NULL)
        return;
    store_release(dataset->store);
    free(dataset->rows);
    free(dataset);
}

static cek_status memory_read(void *user, const cek__data_draw *draw, const int64_t *rows, int64_t count, void *inputs,
                              void *targets)
{
    const store *s = user;

    (void)draw;
    for (int64_t i = 0; i < count; i++) {
        size_t row = (size_t)rows[i];

        memcpy((char *)inputs + (size_t)i * s->input_bytes, (const char *)s->inputs + row * s->input_bytes,
               s->input_bytes);
        memcpy((char *)targets + (size_t)i * s->target_bytes, (const char *)s->targets + row * s->target_bytes,
               s->target_bytes);
    }
    return CEK_OK;
}

bool cek__dataset_is_arrays(const cek_dataset *dataset)
{
    return dataset->store->source.read == memory_read;
}

/* A data set over an empty store. */
static cek_status dataset_new(const cek__data_format *format, int64_t count, cek_dataset **out)
{
    cek_status st;
    cek_dataset *dataset = NULL;

    *out = NULL;
    CEK_TRY(cek__data_format_check(format, count));
    CEK_TRY(cek__calloc(1, sizeof *dataset, &dataset));
    CEK_TRY(cek__calloc(1, sizeof *dataset->store, &dataset->store));
    dataset->format = *format;
    dataset->count = count;
    *dataset->store = (store){ .references = 1,
                               .count = count,
                               .input_bytes = cek__data_input_bytes(format),
                               .target_bytes = cek__data_target_bytes(format) };
    *out = dataset;
    return CEK_OK;
out:
    cek_dataset_free(dataset);
    return st;
}

cek_status cek__dataset_from_source(const cek__data_format *format, int64_t count, const cek__data_source *source,
                                    cek_dataset **out)
{
    cek_status st = dataset_new(format, count, out);

    if (st == CEK_OK)
        (*out)->store->source = *source;
    return st;
}

static cek_status values_check(const char *what, const float *values, size_t count, size_t per_sample)
{
    for (size_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return cek__fail(CEK_BAD_INPUT, "data set: sample %zu has a %s that is not finite", i / per_sample, what);
    return CEK_OK;
}

/* Once, here, so that nobody has to look at a label again. */
static cek_status arrays_check(const cek__data_format *format, int64_t count, const void *inputs, const void *targets)
{
    const int32_t *labels = targets;
    size_t elements = input_elements(format), width = (size_t)format->target_width;
    cek_status st;

    if (format->input_type == CEK_F32)
        CEK_TRY(values_check("value", inputs, (size_t)count * elements, elements));
    if (format->target_type == CEK_F32)
        return values_check("target", targets, (size_t)count * width, width);
    for (size_t i = 0; i < (size_t)count * width; i++)
        if (labels[i] < 0 || labels[i] >= format->class_count)
            CEK_FAIL(CEK_BAD_INPUT, "data set: sample %zu has label %" PRId32 ", but there are %" PRId64 " classes",
                     i / width, labels[i], format->class_count);
    return CEK_OK;
out:
    return st;
}

cek_status cek__dataset_borrow(const cek__data_format *format, int64_t count, const void *inputs, const void *targets,
                               cek_dataset **out)
{
    cek_status st;
    cek_dataset *dataset = NULL;
    store *s;

    *out = NULL;
    CEK_TRY(dataset_new(format, count, &dataset));
    CEK_TRY(arrays_check(format, count, inputs, targets));
    s = dataset->store;
    s->inputs = inputs;
    s->targets = targets;
    s->source = (cek__data_source){ .user = s, .read = memory_read };
    *out = dataset;
    return CEK_OK;
out:
    cek_dataset_free(dataset);
    return st;
}

cek_status cek__dataset_adopt(const cek__data_format *format, int64_t count, void *inputs, void *targets,
                              cek_dataset **out)
{
    cek_status st = cek__dataset_borrow(format, count, inputs, targets, out);

    if (st == CEK_OK) {
        (*out)->store->owned[0] = inputs;
        (*out)->store->owned[1] = targets;
        return CEK_OK;
    }
    free(inputs);
    free(targets);
    return st;
}

cek_status cek__dataset_copy(const cek__data_format *format, int64_t count, const void *inputs, const void *targets,
                             cek_dataset **out)
{
    cek_status st;
    void *copies[2] = { NULL, NULL };

    *out = NULL;
    CEK_TRY(cek__data_format_check(format, count)); /* before its sizes are believed */
    CEK_TRY(cek__alloc_array((size_t)count, cek__data_input_bytes(format), &copies[0]));
    CEK_TRY(cek__alloc_array((size_t)count, cek__data_target_bytes(format), &copies[1]));
    if (count > 0) { /* no samples: the arrays may be NULL */
        memcpy(copies[0], inputs, (size_t)count * cek__data_input_bytes(format));
        memcpy(copies[1], targets, (size_t)count * cek__data_target_bytes(format));
    }
    return cek__dataset_adopt(format, count, copies[0], copies[1], out);
out:
    free(copies[0]);
    free(copies[1]);
    return st;
}

static cek_status rows_check(const cek_dataset *dataset, const int64_t *rows, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (rows[i] < 0 || rows[i] >= dataset->count)
            return cek__fail(CEK_INVALID, "data set: no row %" PRId64 ", there are %" PRId64, rows[i], dataset->count);
    return CEK_OK;
}

cek_status cek__dataset_view(const cek_dataset *parent, const int64_t *rows, int64_t count, cek_dataset **out)
{
    cek_status st;
    cek_dataset *view = NULL;

    *out = NULL;
    CEK_TRY(rows_check(parent, rows, count));
    CEK_TRY(cek__calloc(1, sizeof *view, &view));
    CEK_TRY(cek__alloc_array((size_t)count, sizeof *view->rows, &view->rows));
    for (int64_t i = 0; i < count; i++) /* rows of the store at once: a view of a view costs no more */
        view->rows[i] = parent->rows != NULL ? parent->rows[rows[i]] : rows[i];
    view->format = parent->format;
    view->count = count;
    view->store = parent->store;
    atomic_fetch_add(&view->store->references, 1);
    *out = view;
    return CEK_OK;
out:
    cek_dataset_free(view);
    return st;
}

cek_status cek__dataset_share(const cek_dataset *dataset, cek_dataset **out)
{
    cek_status st;
    cek_dataset *other = NULL;

    *out = NULL;
    CEK_TRY(cek__calloc(1, sizeof *other, &other));
    if (dataset->rows != NULL) {
        CEK_TRY(cek__alloc_array((size_t)dataset->count, sizeof *other->rows, &other->rows));
        memcpy(other->rows, dataset->rows, (size_t)dataset->count * sizeof *other->rows);
    }
    other->format = dataset->format;
    other->count = dataset->count;
    other->store = dataset->store;
    atomic_fetch_add(&other->store->references, 1);
    *out = other;
    return CEK_OK;
out:
    free(other);
    return st;
}

/* ---- reading ---- */

const cek__data_format *cek__dataset_format(const cek_dataset *dataset)
{
    return &dataset->format;
}

int64_t cek_dataset_size(const cek_dataset *dataset)
{
    return dataset ? dataset->count : 0;
}

cek_status cek__dataset_draw(const cek_dataset *dataset, const cek__data_draw *draw, const int64_t *rows, int64_t count,
                             void *inputs, void *targets)
{
    enum { CHUNK = 256 }; /* rows of a view are translated on the stack */
    const cek__data_source *source = &dataset->store->source;
    int64_t translated[CHUNK];
    cek_status st;

    CEK_TRY(rows_check(dataset, rows, count));
    if (dataset->rows == NULL)
        return source->read(source->user, draw, rows, count, inputs, targets);
    for (int64_t done = 0; done < count;) {
        int64_t n = count - done < CHUNK ? count - done : CHUNK;

        for (int64_t i = 0; i < n; i++)
            translated[i] = dataset->rows[rows[done + i]];
        CEK_TRY(source->read(source->user, draw, translated, n,
                             (char *)inputs + (size_t)done * dataset->store->input_bytes,
                             (char *)targets + (size_t)done * dataset->store->target_bytes));
        done += n;
    }
    return CEK_OK;
out:
    return st;
}

cek_status cek__dataset_read(const cek_dataset *dataset, const int64_t *rows, int64_t count, void *inputs,
                             void *targets)
{
    return cek__dataset_draw(dataset, NULL, rows, count, inputs, targets);
}

const char *cek_dataset_class_name(const cek_dataset *dataset, int64_t label)
{
    if (dataset == NULL || label < 0 || label >= dataset->format.class_count ||
        dataset->store->source.class_name == NULL)
        return NULL;
    return dataset->store->source.class_name(dataset->store->source.user, label);
}

const char *cek_dataset_row_name(const cek_dataset *dataset, int64_t row)
{
    if (dataset == NULL || row < 0 || row >= dataset->count || dataset->store->source.row_name == NULL)
        return NULL;
    return dataset->store->source.row_name(dataset->store->source.user,
                                           dataset->rows != NULL ? dataset->rows[row] : row);
}

/* ---- statistics ---- */

static double element(const cek__data_format *format, const void *input, size_t i)
{
    return format->input_type == CEK_U8 ? ((const uint8_t *)input)[i] : (double)((const float *)input)[i];
}

/* Bytes in one pass, exactly: whole numbers, of which there are fewer than 2^47. `mean` and `deviation` get what
 * sums give them. */
static cek_status byte_statistics(const cek_dataset *dataset, void *input, void *target, double n, double *mean,
                                  double *deviation)
{
    const size_t elements = input_elements(&dataset->format), width = (size_t)channels(&dataset->format);
    uint64_t *sums = NULL, *squares;
    cek_status st;

    CEK_TRY(cek__calloc(2 * width, sizeof *sums, &sums));
    squares = sums + width;
    for (int64_t row = 0; row < dataset->count; row++) {
        const uint8_t *at = input;

        CEK_TRY(cek__dataset_read(dataset, &row, 1, input, target));
        for (size_t i = 0; i < elements; i += width, at += width)
            for (size_t c = 0; c < width; c++) {
                sums[c] += at[c];
                squares[c] += (uint64_t)at[c] * at[c];
            }
    }
    for (size_t c = 0; c < width; c++) {
        const double spread =
            (double)((unsigned __int128)squares[c] * (uint64_t)n - (unsigned __int128)sums[c] * sums[c]);

        mean[c] = (double)sums[c] / n;
        deviation[c] = spread > 0 ? sqrt(spread) / n : 1;
    }
out:
    free(sums);
    return st;
}

/* One pass: adds each value, or its squared distance from `mean`, to its channel's sum. */
static cek_status channel_sums(const cek_dataset *dataset, void *input, void *target, const double *mean, double *sum)
{
    size_t elements = input_elements(&dataset->format), width = (size_t)channels(&dataset->format);

    memset(sum, 0, width * sizeof *sum);
    for (int64_t row = 0; row < dataset->count; row++) {
        cek_status st = cek__dataset_read(dataset, &row, 1, input, target);

        if (st != CEK_OK)
            return st;
        for (size_t i = 0; i < elements; i++) {
            double x = element(&dataset->format, input, i);

            sum[i % width] += mean == NULL ? x : (x - mean[i % width]) * (x - mean[i % width]);
        }
    }
    return CEK_OK;
}

cek_status cek__dataset_statistics(const cek_dataset *dataset, double *mean, double *deviation)
{
    const cek__data_format *format = &dataset->format;
    int64_t width = channels(format);
    double n = (double)dataset->count * (double)(input_elements(format) / (size_t)width);
    void *input = NULL, *target = NULL;
    cek_status st;

    if (dataset->count == 0)
        return cek__fail(CEK_INVALID, "data set: no samples, so no statistics");
    CEK_TRY(cek__malloc(cek__data_input_bytes(format), &input));
    CEK_TRY(cek__malloc(cek__data_target_bytes(format), &target));
    if (format->input_type == CEK_U8) {
        st = byte_statistics(dataset, input, target, n, mean, deviation);
        goto out;
    }
    CEK_TRY(channel_sums(dataset, input, target, NULL, mean));
    for (int64_t c = 0; c < width; c++)
        mean[c] /= n;
    CEK_TRY(channel_sums(dataset, input, target, mean, deviation));
    for (int64_t c = 0; c < width; c++) {
        deviation[c] = sqrt(deviation[c] / n);
        if (deviation[c] <= 8 * 0x1p-52 * fabs(mean[c])) /* constant, but for the rounding of the mean */
            deviation[c] = 1;
    }
out:
    free(input);
    free(target);
    return st;
}

static const char *named_class(void *user, int64_t label)
{
    return cek_dataset_class_name(((const store *)user)->named, label);
}

static const char *named_row(void *user, int64_t row)
{
    return cek_dataset_row_name(((const store *)user)->named, row);
}

/* `before`: what the samples of `s` were, row by row. Kept where it has names, which live as long as what they name. */
static void names_keep(store *s, cek_dataset *before)
{
    if (before->store->source.class_name == NULL && before->store->source.row_name == NULL) {
        cek_dataset_free(before);
        return;
    }
    s->named = before;
    s->source.class_name = named_class;
    s->source.row_name = named_row;
}

cek_status cek__dataset_standardize(cek_dataset *dataset, const double *mean, const double *deviation)
{
    cek__data_format format = dataset->format;
    size_t elements = input_elements(&format), width = (size_t)channels(&format);
    size_t target_bytes = cek__data_target_bytes(&format);
    cek_dataset *changed = NULL, before = *dataset;
    float *inputs = NULL;
    char *targets = NULL;
    void *input = NULL;
    cek_status st;

    CEK_TRY(cek__alloc_array((size_t)dataset->count * elements, sizeof *inputs, &inputs));
    CEK_TRY(cek__alloc_array((size_t)dataset->count, target_bytes, &targets));
    CEK_TRY(cek__malloc(cek__data_input_bytes(&format), &input));
    for (int64_t row = 0; row < dataset->count; row++) {
        CEK_TRY(cek__dataset_read(dataset, &row, 1, input, targets + (size_t)row * target_bytes));
        for (size_t i = 0; i < elements; i++)
            inputs[(size_t)row * elements + i] =
                (float)((element(&format, input, i) - mean[i % width]) / deviation[i % width]);
    }
    format.input_type = CEK_F32;
    st = cek__dataset_adopt(&format, dataset->count, inputs, targets, &changed);
    inputs = NULL; /* adopted, or freed */
    targets = NULL;
    CEK_TRY(st);
    *dataset = *changed; /* the handle stays the caller's, what it stands for goes the other way */
    *changed = before;
    names_keep(dataset->store, changed);
out:
    free(inputs);
    free(targets);
    free(input);
    return st;
}
