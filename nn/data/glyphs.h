/* glyphs.h - generated digits: data to train on where no files are at hand.
 *
 * 28x28 grey images of the digits 0 to 9, drawn with strokes and distorted at random. Sample i of a
 * seed is a function of (seed, i) alone: the same on every machine and for every number of threads.
 * Image i shows digit i % 10. */
#ifndef CEK_NN_DATA_GLYPHS_H
#define CEK_NN_DATA_GLYPHS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/status.h"
#include "nn/data/dataset.h"

enum {
    CEK__GLYPH_SIZE = 28,
    CEK__GLYPH_PIXELS = CEK__GLYPH_SIZE * CEK__GLYPH_SIZE,
    CEK__GLYPH_CLASSES = 10,
    CEK__GLYPHS_TRAIN = 20000, /* samples 0 .. 19999 */
    CEK__GLYPHS_TEST = 10000   /* the 10,000 behind them: no training image is among them */
};

/* Draws one image, row by row, 0 = paper, 255 = full ink. */
CEK__SHARED void cek__glyph_draw(uint64_t seed, uint64_t sample, uint8_t image[CEK__GLYPH_PIXELS]);

/* The same image's strokes alone: 0 = paper to 1 = ink. */
CEK__SHARED void cek__glyph_ink(uint64_t seed, uint64_t sample, float ink[CEK__GLYPH_PIXELS]);

/* Images of digits that are drawn one by one: image i of a seed shows digit i % 10. */
typedef struct cek__digits {
    int64_t size, channels; /* u8 [size][size][channels] */
    int64_t train, test;    /* how many: samples from 0 on, and those behind them */
    void (*draw)(uint64_t seed, uint64_t sample, uint8_t *image);
} cek__digits;
CEK__CHECKED cek_status cek__digits_dataset(const cek__digits *digits, uint64_t seed, bool train, cek_dataset **out);

/* The training or the test images, u8 inputs (28, 28, 1) and labels. About 0.3 s for the larger set. */
CEK__SHARED CEK__CHECKED cek_status cek__glyphs_dataset(uint64_t seed, bool train, cek_dataset **out);

#endif
