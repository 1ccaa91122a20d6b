/* png.h - pictures in PNG files, by libpng, which is opened when the first is read.
 *
 * Threads: any. Must not know: files (image.h names them in errors). */
#ifndef CEK_NN_IMAGES_PNG_H
#define CEK_NN_IMAGES_PNG_H

#include <stdbool.h>

#include "nn/images/pixels.h"

bool cek__png_magic(const uint8_t *bytes, size_t size);
/* Grey or RGB without alpha. CEK_BAD_INPUT: it is damaged, or says more than it can hold. CEK_NOT_FOUND: no libpng. */
CEK__CHECKED cek_status cek__png_read(const uint8_t *bytes, size_t size, cek__pixels *out);

#endif
