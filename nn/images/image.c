/* image.c - see image.h. */
#include "nn/images/image.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/alloc.h"
#include "core/base/file.h"
#include "nn/images/jpeg.h"
#include "nn/images/png.h"
#include "nn/images/pnm.h"
#include "nn/images/resize.h"

#define FILE_BYTES_MAX ((uint64_t)1 << 30)

static const struct form {
    bool (*magic)(const uint8_t *bytes, size_t size);
    cek_status (*read)(const uint8_t *bytes, size_t size, cek__pixels *out);
} forms[] = { { cek__png_magic, cek__png_read },
              { cek__jpeg_magic, cek__jpeg_read },
              { cek__pnm_magic, cek__pnm_read } };
enum { FORMS = sizeof forms / sizeof *forms };

bool cek__image_named(const char *name)
{
    static const char *const ends[] = { ".png", ".jpg", ".jpeg", ".ppm", ".pgm", ".pnm" };
    const char *end = strrchr(name, '.');

    if (end != NULL && end != name)
        for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
            if (strcasecmp(end, ends[i]) == 0)
                return true;
    return false;
}

cek_status cek__image_read(const char *path, cek__pixels *out)
{
    cek_status st;
    const struct form *form = NULL;
    void *bytes = NULL;
    size_t size;

    *out = (cek__pixels){ 0 };
    CEK_TRY(cek__file_read(path, FILE_BYTES_MAX, &bytes, &size));
    for (size_t i = 0; i < FORMS && form == NULL; i++)
        if (forms[i].magic(bytes, size))
            form = &forms[i];
    if (form == NULL)
        CEK_FAIL(CEK_BAD_INPUT, "%s: %s", path, size == 0 ? "the file is empty" : "it is no PNG, JPEG, PPM or PGM");
    st = form->read(bytes, size, out);
    if (st != CEK_OK)
        cek__fail_prefix(st, "%s", path);
out:
    free(bytes);
    return st;
}

/* As PIL's ImageOps.fit places it: the largest part of the wanted proportions, in the middle. */
static void fit_box(const cek__pixels *image, int64_t height, int64_t width, float box[4])
{
    const double h = (double)image->height, w = (double)image->width, wanted = (double)width / (double)height;
    double inner_w = w, inner_h = h, left, top;

    if (w / h > wanted)
        inner_w = wanted * h;
    else if (w / h < wanted)
        inner_h = w / wanted;
    left = (w - inner_w) * 0.5;
    top = (h - inner_h) * 0.5;
    box[0] = (float)left;
    box[1] = (float)top;
    box[2] = (float)(left + inner_w);
    box[3] = (float)(top + inner_h);
}

/* Channels are converted before it is scaled: RGB that is rounded twice would not be what PIL gives. */
cek_status cek__image_fit(const cek__pixels *image, int64_t height, int64_t width, uint32_t channels, uint8_t *to)
{
    cek_status st = CEK_OK;
    cek__pixels converted = *image;
    float box[4];

    if (image->height == height && image->width == width) {
        cek__pixels_convert(image->values, image->channels, (size_t)(height * width), channels, to);
        return CEK_OK;
    }
    converted.values = NULL;
    if (channels != image->channels) {
        CEK_TRY(cek__pixels_make(image->height, image->width, channels, &converted));
        cek__pixels_convert(image->values, image->channels, (size_t)(image->height * image->width), channels,
                            converted.values);
    }
    fit_box(image, height, width, box);
    st = cek__resize(converted.values != NULL ? &converted : image, box, height, width, to);
out:
    cek__pixels_free(&converted);
    return st;
}
