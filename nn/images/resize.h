/* resize.h - a part of a picture at another size, as PIL's resize(size, BILINEAR, box) gives it, to the byte.
 *
 * Where it shrinks, every pixel that a result covers counts (a triangle as wide as two results), so it is antialiased.
 * Must not know: files. */
#ifndef CEK_NN_IMAGES_RESIZE_H
#define CEK_NN_IMAGES_RESIZE_H

#include "nn/images/pixels.h"

/* left, top, right, bottom: in pixels of `from`, within it. `to`: [height][width][channels]. */
CEK__CHECKED cek_status cek__resize(const cek__pixels *from, const float box[4], int64_t height, int64_t width,
                                    uint8_t *to);

#endif
