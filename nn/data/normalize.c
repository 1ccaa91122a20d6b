/* normalize.c - see normalize.h.
 *
 * A byte has 256 values, so what each becomes in each channel is found once. What is given on is finite, as it is of
 * any data set. */
#include "nn/data/normalize.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "core/base/alloc.h"

enum { LEVELS = 256 };

typedef struct normalized {
    cek_dataset *parent;
    bool bytes;
    size_t width, elements, target_bytes; /* channels; of a sample */
    float *levels;                        /* of bytes: [channel][LEVELS] */
    double *mean, *deviation;             /* else */
} normalized;

static void normalized_free(void *user)
{
    normalized *n = user;

    if (n == NULL)
        return;
    cek_dataset_free(n->parent);
    free(n->levels);
    free(n->mean);
    free(n->deviation);
    free(n);
}

static void bytes_take(const normalized *n, const uint8_t *from, float *to)
{
    for (size_t i = 0, c = 0; i < n->elements; i++, c = c + 1 < n->width ? c + 1 : 0)
        to[i] = n->levels[c * LEVELS + from[i]];
}

static cek_status floats_take(const normalized *n, int64_t row, const float *from, float *to)
{
    for (size_t i = 0, c = 0; i < n->elements; i++, c = c + 1 < n->width ? c + 1 : 0) {
        to[i] = (float)((from[i] - n->mean[c]) / n->deviation[c]);
        if (!isfinite(to[i]))
            return cek__fail(CEK_BAD_INPUT,
                             "normalisation: sample %" PRId64 ", channel %zu: (%g - %g) / %g is not finite", row, c,
                             from[i], n->mean[c], n->deviation[c]);
    }
    return CEK_OK;
}

static cek_status normalized_read(void *user, const cek__data_draw *draw, const int64_t *rows, int64_t count,
                                  void *inputs, void *targets)
{
    const normalized *n = user;
    void *sample = NULL;
    cek_status st;

    CEK_TRY(cek__alloc_array(n->elements, n->bytes ? 1 : sizeof(float), &sample));
    for (int64_t i = 0; i < count; i++) {
        CEK_TRY(cek__dataset_draw(n->parent, draw, &rows[i], 1, sample, (char *)targets + (size_t)i * n->target_bytes));
        if (n->bytes)
            bytes_take(n, sample, (float *)inputs + (size_t)i * n->elements);
        else
            CEK_TRY(floats_take(n, rows[i], sample, (float *)inputs + (size_t)i * n->elements));
    }
out:
    free(sample);
    return st;
}

static const char *class_name(void *user, int64_t label)
{
    return cek_dataset_class_name(((const normalized *)user)->parent, label);
}

static const char *row_name(void *user, int64_t row)
{
    return cek_dataset_row_name(((const normalized *)user)->parent, row);
}

static cek_status numbers_take(normalized *n, const double *mean, const double *deviation)
{
    cek_status st;

    for (size_t c = 0; c < n->width; c++)
        if (!isfinite(mean[c]) || !(deviation[c] > 0) || !isfinite(deviation[c]))
            CEK_FAIL(CEK_INVALID, "normalisation: channel %zu has mean %g and deviation %g, which is to be positive", c,
                     mean[c], deviation[c]);
    CEK_TRY(cek__alloc_array(n->width, sizeof *n->mean, &n->mean));
    CEK_TRY(cek__alloc_array(n->width, sizeof *n->deviation, &n->deviation));
    for (size_t c = 0; c < n->width; c++) {
        n->mean[c] = mean[c];
        n->deviation[c] = deviation[c];
    }
    if (!n->bytes)
        return CEK_OK;
    CEK_TRY(cek__alloc_array(n->width, LEVELS * sizeof *n->levels, &n->levels));
    for (size_t c = 0; c < n->width; c++)
        for (int level = 0; level < LEVELS; level++) {
            float *to = n->levels + c * LEVELS + level;

            *to = (float)((level / 255.0 - mean[c]) / deviation[c]);
            if (!isfinite(*to))
                CEK_FAIL(CEK_INVALID, "normalisation: channel %zu: (%g - %g) / %g is not finite", c, level / 255.0,
                         mean[c], deviation[c]);
        }
out:
    return st;
}

cek_status cek__normalize_dataset(const cek_dataset *dataset, const double *mean, const double *deviation,
                                  cek_dataset **out)
{
    cek__data_format f = *cek__dataset_format(dataset);
    cek__data_source source = {
        .read = normalized_read, .destroy = normalized_free, .class_name = class_name, .row_name = row_name
    };
    cek_status st;
    normalized *n = NULL;

    *out = NULL;
    if (f.input_type == CEK_I32)
        CEK_FAIL(CEK_INVALID, "normalisation: samples of whole numbers have no mean");
    CEK_TRY(cek__calloc(1, sizeof *n, &n));
    n->bytes = f.input_type == CEK_U8;
    n->elements = cek__data_input_bytes(&f) / (n->bytes ? 1 : sizeof(float));
    n->width = (size_t)f.input_shape[f.input_rank - 1];
    n->target_bytes = cek__data_target_bytes(&f);
    CEK_TRY(numbers_take(n, mean, deviation));
    CEK_TRY(cek__dataset_share(dataset, &n->parent));
    f.input_type = CEK_F32;
    source.user = n;
    CEK_TRY(cek__dataset_from_source(&f, cek_dataset_size(dataset), &source, out));
    return CEK_OK;
out:
    normalized_free(n);
    return st;
}
