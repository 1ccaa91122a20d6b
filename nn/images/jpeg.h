/* jpeg.h - pictures in JPEG files, by libturbojpeg, which is opened when the first is read.
 *
 * Threads: any. Must not know: files (image.h names them in errors). */
#ifndef CEK_NN_IMAGES_JPEG_H
#define CEK_NN_IMAGES_JPEG_H

#include <stdbool.h>

#include "nn/images/pixels.h"

bool cek__jpeg_magic(const uint8_t *bytes, size_t size);
/* Grey or RGB. CEK_BAD_INPUT: it is damaged or cut short. CEK_NOT_FOUND: no libturbojpeg. */
CEK__CHECKED cek_status cek__jpeg_read(const uint8_t *bytes, size_t size, cek__pixels *out);

#endif
