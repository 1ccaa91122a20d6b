/* augment.c - see augment.h.
 *
 * Where an image is turned, cropped and flipped, one pass asks for each result where it comes from; colours are a
 * second pass in place. */
#include "nn/data/augment.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/random.h"

/* Numbers of a sample's stream in an epoch; there is room for as many again before those of the next. */
enum { DOWN, RIGHT, FLIP, TURN, BRIGHTNESS, CONTRAST, SATURATION, DRAWN, PER_EPOCH = 16 };

typedef struct augmented {
    cek_dataset *parent;
    cek_augment_options options;
    int64_t height, width;
    size_t channels, bytes; /* of a sample */
} augmented;

/* What is done to one image. */
typedef struct change {
    int64_t down, right; /* of the window, in the image: -crop to crop */
    bool flip;
    float cosine, sine;
    float brightness, contrast, saturation;
} change;

static void augmented_free(void *user)
{
    augmented *a = user;

    if (a != NULL)
        cek_dataset_free(a->parent);
    free(a);
}

static change change_draw(const cek_augment_options *o, const cek__data_draw *draw, int64_t row)
{
    const uint64_t stream = cek__stream(CEK__STREAM_AUGMENT, (uint64_t)row);
    float u[DRAWN];
    double angle;
    change c;

    for (int i = 0; i < DRAWN; i++)
        u[i] = cek__random_uniform(draw->seed, stream, (uint64_t)draw->epoch * PER_EPOCH + (uint64_t)i);
    angle = o->rotate * (2.0 * u[TURN] - 1) * (3.14159265358979323846 / 180);
    c.down = (int64_t)(u[DOWN] * (2 * (float)o->crop + 1)) - o->crop;
    c.right = (int64_t)(u[RIGHT] * (2 * (float)o->crop + 1)) - o->crop;
    c.flip = o->flip && u[FLIP] < 0.5f;
    c.cosine = (float)cos(angle);
    c.sine = (float)sin(angle);
    c.brightness = 1 + (float)o->colour * (2 * u[BRIGHTNESS] - 1);
    c.contrast = 1 + (float)o->colour * (2 * u[CONTRAST] - 1);
    c.saturation = 1 + (float)o->colour * (2 * u[SATURATION] - 1);
    return c;
}

/* ---- where pixels come from ---- */

static float value_at(const augmented *a, const uint8_t *image, int64_t y, int64_t x, size_t channel)
{
    if (y < 0 || x < 0 || y >= a->height || x >= a->width)
        return 0;
    return image[((size_t)y * (size_t)a->width + (size_t)x) * a->channels + channel];
}

/* The image turned about its middle, at a pixel of it: among the four pixels around where that was. */
static void turned(const augmented *a, const change *c, const uint8_t *image, int64_t y, int64_t x, uint8_t *to)
{
    const float cy = (float)(a->height - 1) / 2, cx = (float)(a->width - 1) / 2;
    const float dy = (float)y - cy, dx = (float)x - cx;
    const float sy = cy + c->sine * dx + c->cosine * dy, sx = cx + c->cosine * dx - c->sine * dy;
    const float top = floorf(sy), left = floorf(sx), v = sy - top, u = sx - left;

    for (size_t k = 0; k < a->channels; k++) {
        const float above = (1 - u) * value_at(a, image, (int64_t)top, (int64_t)left, k) +
                            u * value_at(a, image, (int64_t)top, (int64_t)left + 1, k);
        const float below = (1 - u) * value_at(a, image, (int64_t)top + 1, (int64_t)left, k) +
                            u * value_at(a, image, (int64_t)top + 1, (int64_t)left + 1, k);

        to[k] = (uint8_t)((1 - v) * above + v * below + 0.5f);
    }
}

static void move(const augmented *a, const change *c, const uint8_t *image, uint8_t *to)
{
    for (int64_t row = 0; row < a->height; row++) {
        for (int64_t column = 0; column < a->width; column++, to += a->channels) {
            const int64_t y = row + c->down, x = (c->flip ? a->width - 1 - column : column) + c->right;

            if (y < 0 || x < 0 || y >= a->height || x >= a->width)
                memset(to, 0, a->channels);
            else if (a->options.rotate > 0)
                turned(a, c, image, y, x, to);
            else
                memcpy(to, image + ((size_t)y * (size_t)a->width + (size_t)x) * a->channels, a->channels);
        }
    }
}

/* ---- colours ---- */

static float within(float value)
{
    return value < 0 ? 0 : value > 255 ? 255 : value;
}

static float grey_of(const float *pixel, size_t channels)
{
    return channels == 3 ? 0.299f * pixel[0] + 0.587f * pixel[1] + 0.114f * pixel[2] : pixel[0];
}

static void bright(const change *c, const uint8_t *image, size_t channels, float *pixel)
{
    for (size_t k = 0; k < channels; k++)
        pixel[k] = within(c->brightness * image[k]);
}

/* Contrast is about the image's mean grey, saturation about the pixel's. */
static void paint(const augmented *a, const change *c, uint8_t *image)
{
    const size_t n = a->channels, pixels = (size_t)(a->height * a->width);
    float pixel[3];
    double sum = 0;

    for (size_t i = 0; i < pixels; i++) {
        bright(c, image + i * n, n, pixel);
        sum += grey_of(pixel, n);
    }
    for (size_t i = 0; i < pixels; i++, image += n) {
        const float mean = (float)(sum / (double)pixels);
        float grey;

        bright(c, image, n, pixel);
        for (size_t k = 0; k < n; k++)
            pixel[k] = within(mean + c->contrast * (pixel[k] - mean));
        grey = grey_of(pixel, n);
        for (size_t k = 0; k < n; k++)
            image[k] = (uint8_t)(within(n == 3 ? grey + c->saturation * (pixel[k] - grey) : pixel[k]) + 0.5f);
    }
}

/* ---- the data set ---- */

static cek_status augmented_read(void *user, const cek__data_draw *draw, const int64_t *rows, int64_t count,
                                 void *inputs, void *targets)
{
    const augmented *a = user;
    uint8_t *before = NULL;
    cek__data_draw below; /* what is augmented already has numbers of its own */
    cek_status st;

    if (draw != NULL)
        below = (cek__data_draw){ .seed = draw->seed + 1, .epoch = draw->epoch };
    CEK_TRY(cek__dataset_draw(a->parent, draw != NULL ? &below : NULL, rows, count, inputs, targets));
    if (draw == NULL)
        return CEK_OK;
    CEK_TRY(cek__malloc(a->bytes, &before));
    for (int64_t i = 0; i < count; i++) {
        uint8_t *image = (uint8_t *)inputs + (size_t)i * a->bytes;
        const change c = change_draw(&a->options, draw, rows[i]);

        memcpy(before, image, a->bytes);
        move(a, &c, before, image);
        if (a->options.colour > 0)
            paint(a, &c, image);
    }
out:
    free(before);
    return st;
}

static const char *class_name(void *user, int64_t label)
{
    return cek_dataset_class_name(((const augmented *)user)->parent, label);
}

static const char *row_name(void *user, int64_t row)
{
    return cek_dataset_row_name(((const augmented *)user)->parent, row);
}

static cek_status options_check(const cek_dataset *dataset, const cek_augment_options *o)
{
    const cek__data_format *f = cek__dataset_format(dataset);

    if (!cek__data_is_image(f) || f->input_type != CEK_U8 || (f->input_shape[2] != 1 && f->input_shape[2] != 3))
        return cek__fail(CEK_INVALID, "augmentation is of images of u8, grey or RGB");
    if (o->crop > (uint32_t)INT16_MAX)
        return cek__fail(CEK_INVALID, "augmentation: a crop of %" PRIu32 " pixels around, at most %d are possible",
                         o->crop, INT16_MAX);
    if (!(o->rotate >= 0 && o->rotate <= 180))
        return cek__fail(CEK_INVALID, "augmentation: turned by %g degrees, 0 to 180 are possible", o->rotate);
    if (!(o->colour >= 0 && o->colour <= 1))
        return cek__fail(CEK_INVALID, "augmentation: colours changed by %g, 0 to 1 is possible", o->colour);
    return CEK_OK;
}

cek_status cek__augment_dataset(const cek_dataset *dataset, const cek_augment_options *options, cek_dataset **out)
{
    const cek__data_format *f = cek__dataset_format(dataset);
    cek__data_source source = {
        .read = augmented_read, .destroy = augmented_free, .class_name = class_name, .row_name = row_name
    };
    cek_status st;
    augmented *a = NULL;

    *out = NULL;
    CEK_TRY(options_check(dataset, options));
    CEK_TRY(cek__calloc(1, sizeof *a, &a));
    *a = (augmented){ .options = *options,
                      .height = f->input_shape[0],
                      .width = f->input_shape[1],
                      .channels = (size_t)f->input_shape[2],
                      .bytes = cek__data_input_bytes(f) };
    CEK_TRY(cek__dataset_share(dataset, &a->parent));
    source.user = a;
    CEK_TRY(cek__dataset_from_source(f, cek_dataset_size(dataset), &source, out));
    return CEK_OK;
out:
    augmented_free(a);
    return st;
}
