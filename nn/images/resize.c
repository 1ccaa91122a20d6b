/* resize.c - see resize.h.
 *
 * Along the rows first, then along the columns, each result a sum over a few pixels with weights in 22 bits, rounded to
 * 8: PIL's way (Pillow, src/libImaging/Resample.c), whose order of operations on floats is kept so that weights
 * are the same. */
#include "nn/images/resize.h"

#include <math.h>
#include <stdlib.h>

#include "core/base/alloc.h"

enum { BITS = 22 /* of a weight: 8 are a value's, 2 are left for the sum */ };

/* Of one axis: result i is the sum of count[i] values from first[i] on, with the weights from i x most on. */
typedef struct taps {
    int64_t most, *first, *count;
    int32_t *weights;
} taps;

static void taps_free(taps *t)
{
    free(t->first);
    free(t->count);
    free(t->weights);
}

static cek_status taps_make(int64_t size, float begin, float end, int64_t results, taps *out)
{
    cek_status st;
    const double scale = (double)(end - begin) / (double)results, wide = scale > 1 ? scale : 1;
    double *real = NULL;

    *out = (taps){ .most = (int64_t)ceil(wide) * 2 + 1 };
    CEK_TRY(cek__alloc_array((size_t)results, sizeof *out->first, &out->first));
    CEK_TRY(cek__alloc_array((size_t)results, sizeof *out->count, &out->count));
    CEK_TRY(cek__alloc_array((size_t)(results * out->most), sizeof *out->weights, &out->weights));
    CEK_TRY(cek__alloc_array((size_t)out->most, sizeof *real, &real));
    for (int64_t i = 0; i < results; i++) {
        const double centre = begin + ((double)i + 0.5) * scale, slope = 1.0 / wide;
        const int64_t from = (int64_t)(centre - wide + 0.5), to = (int64_t)(centre + wide + 0.5);
        double sum = 0;

        out->first[i] = from > 0 ? from : 0;
        out->count[i] = (to < size ? to : size) - out->first[i];
        for (int64_t k = 0; k < out->count[i]; k++) {
            const double far = fabs(((double)(k + out->first[i]) - centre + 0.5) * slope);

            real[k] = far < 1 ? 1 - far : 0;
            sum += real[k];
        }
        for (int64_t k = 0; k < out->count[i]; k++)
            out->weights[i * out->most + k] = (int32_t)(0.5 + (sum != 0 ? real[k] / sum : real[k]) * (1 << BITS));
    }
out:
    free(real);
    return st;
}

/* One line of results: `step` bytes lie between the values of one. */
static void line_sum(const uint8_t *from, size_t step, const int32_t *weights, int64_t count, size_t channels,
                     uint8_t *to)
{
    for (size_t c = 0; c < channels; c++) {
        int32_t sum = 1 << (BITS - 1);

        for (int64_t k = 0; k < count; k++)
            sum += from[(size_t)k * step + c] * weights[k];
        to[c] = sum < 0 ? 0 : sum >> BITS > 255 ? 255 : (uint8_t)(sum >> BITS);
    }
}

cek_status cek__resize(const cek__pixels *from, const float box[4], int64_t height, int64_t width, uint8_t *to)
{
    cek_status st;
    const size_t channels = from->channels, row = (size_t)from->width * channels, packed = (size_t)width * channels;
    taps across = { 0 }, down = { 0 };
    uint8_t *narrow = NULL;
    int64_t top, bottom;

    CEK_TRY(taps_make(from->width, box[0], box[2], width, &across));
    CEK_TRY(taps_make(from->height, box[1], box[3], height, &down));
    top = down.first[0];
    bottom = down.first[height - 1] + down.count[height - 1];
    CEK_TRY(cek__alloc_array((size_t)(bottom - top), packed, &narrow)); /* of the rows that count alone */
    for (int64_t y = top; y < bottom; y++)
        for (int64_t x = 0; x < width; x++)
            line_sum(from->values + (size_t)y * row + (size_t)across.first[x] * channels, channels,
                     across.weights + x * across.most, across.count[x], channels,
                     narrow + (size_t)(y - top) * packed + (size_t)x * channels);
    for (int64_t y = 0; y < height; y++)
        line_sum(narrow + (size_t)(down.first[y] - top) * packed, packed, down.weights + y * down.most, down.count[y],
                 packed, to + (size_t)y * packed);
out:
    free(narrow);
    taps_free(&across);
    taps_free(&down);
    return st;
}
