/* image.h - the pixels of a picture in a file, whatever the form, and those that a network wants of it.
 *
 * Owns: what is done with types of pixels (nn.h's data.h tells it to people), limits. A form is told by a file's first
 * bytes; each has a reader that knows bytes alone (png.h, jpeg.h, pnm.h).
 * Threads: no state. Must not know: data sets, folders. */
#ifndef CEK_NN_IMAGES_IMAGE_H
#define CEK_NN_IMAGES_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/export.h"
#include "nn/images/pixels.h"

/* The picture as its file has it: grey (1 channel) or RGB (3). *out is the caller's (cek__pixels_free). Errors: CEK_IO,
 * CEK_BAD_INPUT, CEK_NOT_FOUND (a library), CEK_OUT_OF_MEMORY, each with the file. */
CEK__SHARED CEK__CHECKED cek_status cek__image_read(const char *path, cek__pixels *out);

/* [height][width][channels] (1 or 3) of the picture into `to`: its channels converted, and where it has another size,
 * scaled to cover and cut around its middle. */
CEK__SHARED CEK__CHECKED cek_status cek__image_fit(const cek__pixels *image, int64_t height, int64_t width,
                                                   uint32_t channels, uint8_t *to);

/* Whether a name ends like those of files that are read, whatever the case. */
CEK__SHARED bool cek__image_named(const char *name);

#endif
