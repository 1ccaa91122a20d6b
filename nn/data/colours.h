/* colours.h - generated digits in colour: the strokes of glyphs.h on a page of another colour, which changes along it.
 *
 * 32x32 images of the digits 0 to 9. Ink and page are drawn so that one is lighter than the other in every channel,
 * whichever it is; so the digit is never told by a colour. Sample i of a seed is a function of (seed, i) alone and
 * shows digit i % 10. */
#ifndef CEK_NN_DATA_COLOURS_H
#define CEK_NN_DATA_COLOURS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/status.h"
#include "nn/data/dataset.h"

enum {
    CEK__COLOURS_SIZE = 32,
    CEK__COLOURS_CHANNELS = 3,
    CEK__COLOURS_BYTES = CEK__COLOURS_SIZE * CEK__COLOURS_SIZE * CEK__COLOURS_CHANNELS,
    CEK__COLOURS_TRAIN = 10000, /* samples 0 .. 9999 */
    CEK__COLOURS_TEST = 2000    /* those behind them */
};

/* Draws one image, [32][32][3]. */
CEK__SHARED void cek__colours_draw(uint64_t seed, uint64_t sample, uint8_t image[CEK__COLOURS_BYTES]);

/* The training or the test images, u8 inputs (32, 32, 3) and labels. */
CEK__SHARED CEK__CHECKED cek_status cek__colours_dataset(uint64_t seed, bool train, cek_dataset **out);

#endif
