/* png.c - see png.h.
 *
 * What is declared here is the part of libpng 1.6's simplified API that is used (png.h, "SIMPLIFIED API"); its struct
 * is a part of the ABI of libpng16.so.16. Nothing of it is there when this is built. */
#include "nn/images/png.h"

#include <inttypes.h>
#include <string.h>

#include "nn/images/library.h"

typedef struct png_image {
    void *opaque;
    uint32_t version, width, height, format, flags, colormap_entries, warning_or_error;
    char message[64];
} png_image;
enum { VERSION = 1, ALPHA = 1, COLOUR = 2, PLAIN_16 = 4 /* 16 bits are levels like 8, not light */ };

static union {
    void *addresses[3];
    struct {
        int (*begin)(png_image *image, const void *memory, size_t size);
        int (*finish)(png_image *image, const void *background, void *buffer, int32_t row_stride, void *colormap);
        void (*free)(png_image *image);
    };
} png;

static const char *const symbols[] = { "png_image_begin_read_from_memory", "png_image_finish_read", "png_image_free",
                                       NULL };
static cek__library library = { "libpng16.so.16",          "libpng16-16", "PNG", symbols, png.addresses,
                                PTHREAD_MUTEX_INITIALIZER, false };

bool cek__png_magic(const uint8_t *bytes, size_t size)
{
    return size >= 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0;
}

/* Deflate makes at most 1032 bytes of one, a pixel has at least a bit. */
static cek_status possible(const png_image *image, size_t size)
{
    const uint64_t pixels = (uint64_t)image->width * image->height;

    if (pixels / 8 <= (uint64_t)size * 1032)
        return CEK_OK;
    return cek__fail(CEK_BAD_INPUT,
                     "its header promises %" PRIu32 " x %" PRIu32 " pixels, but so short a file cannot hold them",
                     image->height, image->width);
}

static cek_status damaged(const png_image *image)
{
    return cek__fail(strstr(image->message, "memory") != NULL ? CEK_OUT_OF_MEMORY : CEK_BAD_INPUT, "damaged PNG (%s)",
                     image->message);
}

cek_status cek__png_read(const uint8_t *bytes, size_t size, cek__pixels *out)
{
    cek_status st;
    png_image image = { .version = VERSION };
    uint32_t there, channels;

    *out = (cek__pixels){ 0 };
    CEK_TRY(cek__library_open(&library));
    if (!png.begin(&image, bytes, size))
        return damaged(&image); /* it has freed what it had */
    image.format &= ALPHA | COLOUR;
    image.flags |= PLAIN_16;
    channels = image.format & COLOUR ? 3 : 1;
    there = channels + (image.format & ALPHA ? 1 : 0);
    CEK_TRY(possible(&image, size));
    CEK_TRY(cek__pixels_make(image.height, image.width, there, out));
    if (!png.finish(&image, NULL, out->values, 0, NULL))
        CEK_TRY(damaged(&image));
    cek__pixels_convert(out->values, there, (size_t)(out->height * out->width), channels, out->values);
    out->channels = channels;
    return CEK_OK;
out:
    if (image.opaque != NULL)
        png.free(&image);
    cek__pixels_free(out);
    return st;
}
