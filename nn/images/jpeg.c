/* jpeg.c - see jpeg.h.
 *
 * What is declared here is the part of TurboJPEG's API that is used (turbojpeg.h, version 2); it has no structs of its
 * own. Nothing of it is there when this is built. */
#include "nn/images/jpeg.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "nn/images/library.h"

enum {
    PIXELS_RGB = 0,
    PIXELS_GREY = 6,
    PIXELS_CMYK = 11,
    SPACE_GREY = 2,
    SPACE_CMYK = 3,
    SPACE_YCCK = 4,
    WARNING = 0,
    LIMIT_SCANS = 1 << 15 /* 500 of a progressive file */
};

static union {
    void *addresses[6];
    struct {
        void *(*open)(void);
        int (*header)(void *handle, const unsigned char *bytes, unsigned long size, int *width, int *height,
                      int *subsampling, int *space);
        int (*decode)(void *handle, const unsigned char *bytes, unsigned long size, unsigned char *to, int width,
                      int pitch, int height, int format, int flags);
        char *(*text)(void *handle);
        int (*code)(void *handle);
        int (*close)(void *handle);
    };
} turbo;

static const char *const symbols[] = {
    "tjInitDecompress", "tjDecompressHeader3", "tjDecompress2", "tjGetErrorStr2", "tjGetErrorCode", "tjDestroy", NULL
};
static cek__library library = { "libturbojpeg.so.0", "libturbojpeg0",           "JPEG", symbols,
                                turbo.addresses,     PTHREAD_MUTEX_INITIALIZER, false };

bool cek__jpeg_magic(const uint8_t *bytes, size_t size)
{
    return size >= 3 && bytes[0] == 0xff && bytes[1] == 0xd8 && bytes[2] == 0xff;
}

/* Every block of 64 values takes a bit, but for runs of blocks that end a progressive scan: up to 2^15 of them in four
 * bytes or so. */
static bool possible(int width, int height, size_t size)
{
    return (uint64_t)width * (uint64_t)height / 64 <= (uint64_t)size << 14;
}

/* What cameras leave between two markers is no damage; everything else that libjpeg warns of is. */
static bool harmless(void *handle)
{
    return turbo.code(handle) == WARNING && strstr(turbo.text(handle), "extraneous bytes before marker") != NULL;
}

/* Inks that are kept as 255 less themselves. In place: three of four. */
static void inks_to_rgb(uint8_t *values, size_t count)
{
    const uint8_t *from = values;

    for (size_t i = 0; i < count; i++, from += 4, values += 3) {
        const unsigned black = from[3];

        for (int c = 0; c < 3; c++)
            values[c] = (uint8_t)((from[c] * black + 127) / 255);
    }
}

cek_status cek__jpeg_read(const uint8_t *bytes, size_t size, cek__pixels *out)
{
    cek_status st;
    void *handle = NULL;
    int width = 0, height = 0, subsampling, space = 0;
    bool inks, grey;

    *out = (cek__pixels){ 0 };
    CEK_TRY(cek__library_open(&library));
    handle = turbo.open();
    if (handle == NULL)
        CEK_FAIL(CEK_OUT_OF_MEMORY, "no memory to decode it");
    if (turbo.header(handle, bytes, size, &width, &height, &subsampling, &space) != 0 && !harmless(handle))
        CEK_FAIL(CEK_BAD_INPUT, "damaged JPEG (%s)", turbo.text(handle));
    if (width < 1 || height < 1) /* tables alone, with which some files are made of others */
        CEK_FAIL(CEK_BAD_INPUT, "damaged JPEG (there is no picture in it)");
    inks = space == SPACE_CMYK || space == SPACE_YCCK;
    grey = space == SPACE_GREY;
    if (!possible(width, height, size))
        CEK_FAIL(CEK_BAD_INPUT, "its header promises %d x %d pixels, but so short a file cannot hold them", height,
                 width);
    CEK_TRY(cek__pixels_make(height, width, inks ? 4 : grey ? 1 : 3, out));
    if (turbo.decode(handle, bytes, size, out->values, width, 0, height,
                     inks   ? PIXELS_CMYK
                     : grey ? PIXELS_GREY
                            : PIXELS_RGB,
                     LIMIT_SCANS) != 0 &&
        !harmless(handle))
        CEK_FAIL(CEK_BAD_INPUT, "damaged JPEG (%s)", turbo.text(handle));
    if (inks) {
        inks_to_rgb(out->values, (size_t)height * (size_t)width);
        out->channels = 3;
    }
    turbo.close(handle);
    return CEK_OK;
out:
    if (handle != NULL)
        turbo.close(handle);
    cek__pixels_free(out);
    return st;
}
