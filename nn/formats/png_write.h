/* png_write.h - an image as the bytes of a PNG file, without a filter.
 *
 * Must not know: what the image shows, where the bytes go. */
#ifndef CEK_NN_FORMATS_PNG_WRITE_H
#define CEK_NN_FORMATS_PNG_WRITE_H

#include "nn/formats/message.h"

/* Adds the file to `out`. `pixels`: [height][width][channels], of 1 (grey), 2 (grey, alpha), 3 (RGB) or 4 channels
 * (RGBA), which the caller has checked, and that the image has less than 2 GiB. Errors: CEK_OUT_OF_MEMORY. */
CEK__SHARED CEK__CHECKED cek_status cek__png_write(const uint8_t *pixels, uint32_t height, uint32_t width,
                                                   uint32_t channels, cek__message *out);

#endif
