/* dataset_api.c - nn.h's data sets in terms of the files beside this one.
 *
 * Owns: options, and the way from PyTorch's shapes (C,H,W) to those of memory (H,W,C).
 * Must not know: how anything is done. What nn.h declares and is not here is in dataset.c and split.c. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cekernels/nn.h"
#include "core/base/alloc.h"
#include "core/base/options.h"
#include "core/base/status.h"
#include "nn/data/colours.h"
#include "nn/data/csv.h"
#include "nn/data/dataset.h"
#include "nn/data/glyphs.h"
#include "nn/data/idx.h"
#include "nn/data/text.h"

/* ---- what a data set is ---- */

cek_dtype cek_dataset_input_type(const cek_dataset *dataset)
{
    return dataset ? cek__dataset_format(dataset)->input_type : CEK_DTYPE_NONE;
}

int64_t cek_dataset_classes(const cek_dataset *dataset)
{
    return dataset ? cek__dataset_format(dataset)->class_count : 0;
}

int64_t cek_dataset_target_columns(const cek_dataset *dataset)
{
    return dataset ? cek__dataset_format(dataset)->target_width : 0;
}

int cek_dataset_shape(const cek_dataset *dataset, int64_t shape[CEK_RANK_MAX])
{
    const cek__data_format *format;
    const int64_t *in;

    if (shape)
        memset(shape, 0, CEK_RANK_MAX * sizeof *shape);
    if (!dataset)
        return 0;
    format = cek__dataset_format(dataset);
    in = format->input_shape;
    if (!shape)
        return (int)format->input_rank;
    memcpy(shape, in, format->input_rank * sizeof *shape);
    if (cek__data_is_image(format)) { /* H,W,C */
        shape[0] = in[2];
        shape[1] = in[0];
        shape[2] = in[1];
    }
    return (int)format->input_rank;
}

/* ---- where data sets come from ---- */

cek_status cek_dataset_idx(const char *images, const char *labels, int64_t classes, cek_dataset **out)
{
    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(images);
    CEK__NOT_NULL(labels);
    return cek__idx_dataset(images, labels, classes, out);
}

cek_status cek_dataset_mnist(const char *directory, bool train, cek_dataset **out)
{
    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(directory);
    return cek__idx_mnist(directory, train, out);
}

cek_status cek_dataset_digits(uint64_t seed, bool train, cek_dataset **out)
{
    CEK__NOT_NULL(out);
    return cek__glyphs_dataset(seed, train, out);
}

cek_status cek_dataset_coloured_digits(uint64_t seed, bool train, cek_dataset **out)
{
    CEK__NOT_NULL(out);
    return cek__colours_dataset(seed, train, out);
}

cek_status cek_dataset_text(const char *path, int64_t context, bool train, cek_dataset **out)
{
    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(path);
    return cek__text_dataset(path, context, train, out);
}

cek_status cek_dataset_csv(const char *path, const char *target, cek_dataset **out)
{
    cek__csv *csv = NULL;
    cek_status st;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(path);
    CEK__NOT_NULL(target);
    CEK_TRY(cek__csv_read(path, CEK__CSV_HEADER_AUTO, &csv));
    st = cek__csv_values(csv, target, out);
out:
    cek__csv_free(csv);
    return st;
}

/* ---- arrays ---- */

static cek_status arrays_format(const cek_array_options *o, cek__data_format *format)
{
    *format = (cek__data_format){ .input_type = o->input_type,
                                  .target_type = o->classes > 0 ? CEK_I32 : CEK_F32,
                                  .target_width = o->classes > 0 && o->columns == 0 ? 1 : o->columns,
                                  .class_count = o->classes };
    if (o->inputs == NULL || (o->classes > 0 ? (const void *)o->labels : (const void *)o->values) == NULL)
        return cek__fail(CEK_INVALID, "data set: arrays of inputs and of %s are needed",
                         o->classes > 0 ? "labels" : "values");
    if (o->classes < 0 || o->rank < 1 || o->rank > CEK__DATA_RANK_MAX)
        return cek__fail(CEK_INVALID, "data set: shapes are of rank 1 to %d, not %d; classes are not negative",
                         CEK__DATA_RANK_MAX, o->rank);
    format->input_rank = (uint32_t)o->rank;
    memcpy(format->input_shape, o->shape, (size_t)o->rank * sizeof *o->shape);
    if (cek__data_is_image(format)) {
        format->input_shape[0] = o->shape[1];
        format->input_shape[1] = o->shape[2];
        format->input_shape[2] = o->shape[0];
    }
    return CEK_OK;
}

/* One sample from C,H,W to H,W,C. */
static void channels_last(const char *from, char *to, size_t channels, size_t pixels, size_t element)
{
    for (size_t c = 0; c < channels; c++)
        for (size_t p = 0; p < pixels; p++)
            memcpy(to + (p * channels + c) * element, from + (c * pixels + p) * element, element);
}

/* Copies as channels last. The format was checked, so that the sizes are possible. */
static cek_status arrays_convert(const cek_array_options *o, const cek__data_format *format, const void *targets,
                                 cek_dataset **out)
{
    size_t sample = cek__data_input_bytes(format), target = cek__data_target_bytes(format), n = (size_t)o->count;
    char *inputs = NULL, *copy = NULL;
    cek_status st;

    CEK_TRY(cek__alloc_array(n, sample, &inputs));
    CEK_TRY(cek__alloc_array(n, target, &copy));
    for (size_t i = 0; i < n; i++)
        channels_last((const char *)o->inputs + i * sample, inputs + i * sample, (size_t)o->shape[0],
                      (size_t)(o->shape[1] * o->shape[2]), o->input_type == CEK_U8 ? 1 : 4);
    memcpy(copy, targets, n * target);
    return cek__dataset_adopt(format, o->count, inputs, copy, out);
out:
    free(inputs);
    free(copy);
    return st;
}

cek_status cek_dataset_arrays(const cek_array_options *options, cek_dataset **out)
{
    cek_array_options o;
    cek__data_format format;
    const void *targets;
    cek_status st;
    bool convert;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(options);
    CEK_TRY(cek__options_take("cek_dataset_arrays", &o, sizeof o, options));
    CEK_TRY(arrays_format(&o, &format));
    CEK_TRY(cek__data_format_check(&format, o.count));
    targets = o.classes > 0 ? (const void *)o.labels : (const void *)o.values;
    convert = cek__data_is_image(&format) && !o.nhwc && o.shape[0] > 1;
    if (o.borrow && convert)
        CEK_FAIL(CEK_INVALID, "data set: images stored C,H,W with %" PRId64 " channels cannot be borrowed, only copied",
                 o.shape[0]);
    if (o.borrow)
        return cek__dataset_borrow(&format, o.count, o.inputs, targets, out);
    if (!convert)
        return cek__dataset_copy(&format, o.count, o.inputs, targets, out);
    return arrays_convert(&o, &format, targets, out);
out:
    return st;
}

cek_status cek_dataset_standardize(cek_dataset *dataset, const cek_dataset *by)
{
    const cek__data_format *format, *by_format;
    int64_t width;
    double *mean = NULL, *deviation = NULL;
    cek_status st;

    CEK__NOT_NULL(dataset);
    CEK__NOT_NULL(by);
    format = cek__dataset_format(dataset);
    by_format = cek__dataset_format(by);
    width = format->input_shape[format->input_rank - 1];
    if (format->input_type != CEK_F32 || by_format->input_type != CEK_F32)
        return cek__fail(CEK_INVALID, "data set: only f32 features are standardised");
    if (by_format->input_shape[by_format->input_rank - 1] != width)
        return cek__fail(CEK_INVALID,
                         "data set: %" PRId64 " features cannot be standardised by the statistics of %" PRId64, width,
                         by_format->input_shape[by_format->input_rank - 1]);
    CEK_TRY(cek__alloc_array((size_t)width, sizeof *mean, &mean));
    CEK_TRY(cek__alloc_array((size_t)width, sizeof *deviation, &deviation));
    CEK_TRY(cek__dataset_statistics(by, mean, deviation));
    st = cek__dataset_standardize(dataset, mean, deviation);
out:
    free(mean);
    free(deviation);
    return st;
}
