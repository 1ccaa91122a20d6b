/* pnm.h - pictures in PPM and PGM files (P6, P5): a header of numbers and the values.
 *
 * Threads: no state. Must not know: files (image.h names them in errors). */
#ifndef CEK_NN_IMAGES_PNM_H
#define CEK_NN_IMAGES_PNM_H

#include <stdbool.h>

#include "nn/images/pixels.h"

bool cek__pnm_magic(const uint8_t *bytes, size_t size);
/* CEK_BAD_INPUT: it is damaged, or has another number of values than it says. */
CEK__CHECKED cek_status cek__pnm_read(const uint8_t *bytes, size_t size, cek__pixels *out);

#endif
