/* colours.c - see colours.h.
 *
 * Must not know: what a digit looks like (glyphs.h). Threads: no state, so any. */
#include "nn/data/colours.h"

#include <math.h>

#include "core/base/random.h"
#include "nn/data/glyphs.h"

enum { SIZE = CEK__COLOURS_SIZE, CHANNELS = CEK__COLOURS_CHANNELS, MARGIN = SIZE - CEK__GLYPH_SIZE };

/* Numbers of a sample's stream: what the image is like, then the noise. */
enum {
    LIGHT_INK,
    LEFT,
    TOP,
    SLOPE,
    NOISE,
    INK,
    PAGE = INK + CHANNELS,
    EDGE = PAGE + CHANNELS,
    KNOBS = EDGE + CHANNELS
};
enum { NOISE_FROM = 16 };

/* Levels of the darker and of the lighter colour, so far apart that noise does not bridge it. */
static const float dark_most = 110, light_least = 140;

typedef struct look {
    int left, top;                                       /* of the digit's 28 x 28 pixels */
    float x, y;                                          /* the way along which the page's colour changes */
    float noise;                                         /* largest, in levels */
    float ink[CHANNELS], page[CHANNELS], edge[CHANNELS]; /* the page at the beginning of that way and at its end */
} look;

static float level(bool light, float u)
{
    return light ? light_least + (255 - light_least) * u : dark_most * u;
}

static look look_draw(uint64_t seed, uint64_t stream)
{
    look l;
    float k[KNOBS];
    bool light;

    for (int i = 0; i < KNOBS; i++)
        k[i] = cek__random_uniform(seed, stream, (uint64_t)i);
    light = k[LIGHT_INK] < 0.5f;
    l.left = (int)(k[LEFT] * (MARGIN + 1));
    l.top = (int)(k[TOP] * (MARGIN + 1));
    l.x = cosf(k[SLOPE] * 6.2831853f);
    l.y = sinf(k[SLOPE] * 6.2831853f);
    l.noise = 10 + 30 * k[NOISE];
    for (int c = 0; c < CHANNELS; c++) {
        l.ink[c] = level(light, k[INK + c]);
        l.page[c] = level(!light, k[PAGE + c]);
        l.edge[c] = level(!light, k[EDGE + c]);
    }
    return l;
}

/* How much of a pixel is ink, 0 to 1. */
static float cover(const look *l, const float ink[CEK__GLYPH_PIXELS], int x, int y)
{
    x -= l->left;
    y -= l->top;
    if (x < 0 || y < 0 || x >= CEK__GLYPH_SIZE || y >= CEK__GLYPH_SIZE)
        return 0;
    return ink[y * CEK__GLYPH_SIZE + x];
}

void cek__colours_draw(uint64_t seed, uint64_t sample, uint8_t image[CEK__COLOURS_BYTES])
{
    const uint64_t stream = cek__stream(CEK__STREAM_COLOURS, sample);
    const look l = look_draw(seed, stream);
    float ink[CEK__GLYPH_PIXELS];

    cek__glyph_ink(seed, sample, ink);
    for (int i = 0; i < SIZE * SIZE; i++) {
        const int x = i % SIZE, y = i / SIZE;
        const float along = 0.5f + (l.x * (float)(x - SIZE / 2) + l.y * (float)(y - SIZE / 2)) / (1.5f * SIZE);
        const uint32_t bits = cek__random_u32(seed, stream, NOISE_FROM + (uint64_t)i);

        for (int c = 0; c < CHANNELS; c++) {
            const float page = l.page[c] + along * (l.edge[c] - l.page[c]);
            const float noise = l.noise * ((float)(bits >> 8 * c & 255) / 127.5f - 1);
            const float value = page + cover(&l, ink, x, y) * (l.ink[c] - page) + noise;

            image[i * CHANNELS + c] = (uint8_t)fminf(fmaxf(value + 0.5f, 0), 255);
        }
    }
}

cek_status cek__colours_dataset(uint64_t seed, bool train, cek_dataset **out)
{
    static const cek__digits digits = { SIZE, CHANNELS, CEK__COLOURS_TRAIN, CEK__COLOURS_TEST, cek__colours_draw };

    return cek__digits_dataset(&digits, seed, train, out);
}
