/* glyphs.c - draws digits: strokes, a random affine map, ink and noise.
 *
 * Owns: the shapes of the digits and the range of their distortions, chosen so that a small convolutional network
 * learns them in a few epochs and a linear classifier cannot (scripts/glyphs-difficulty measures both).
 * Must not know: who trains on them. Threads: no state, so any. */
#include "nn/data/glyphs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/random.h"

/* ---- shapes ---- */

/* A stroke is a list of points and elliptic arcs, joined by straight lines. x runs right, y down, in a box of height 2
 * about the origin. Angles are in degrees, clockwise on the page, 0 = right, 90 = below. */
enum part_kind { END, UP, POINT, ARC };

typedef struct part {
    enum part_kind kind; /* UP lifts the pen, END ends the digit */
    float x, y;          /* the point, or the centre of the arc */
    float rx, ry, from, to;
} part;

enum { FORMS = 2, PARTS_MAX = 8, ARC_STEPS = 14 /* a full circle in steps of 26 degrees looks round at 28 pixels */ };

/* clang-format off */
#define P(x, y) { POINT, x, y, 0, 0, 0, 0 }
#define A(x, y, rx, ry, from, to) { ARC, x, y, rx, ry, from, to }
#define LIFT { UP, 0, 0, 0, 0, 0, 0 }
static const part shapes[CEK__GLYPH_CLASSES][FORMS][PARTS_MAX] = {
    [0] = { { A(0, 0, .58f, .95f, -90, 270) },
            { A(0, 0, .48f, .95f, -60, 310) } },
    [1] = { { P(-.35f, -.5f), P(.08f, -.95f), P(.08f, .95f) },
            { P(0, -.95f), P(0, .95f) } },
    [2] = { { A(0, -.42f, .52f, .53f, 190, 385), P(-.55f, .93f), P(.58f, .93f) },
            { A(-.05f, -.5f, .5f, .45f, 200, 400), P(-.3f, .6f), A(-.38f, .75f, .2f, .17f, 10, 300),
              P(.6f, .9f) } },
    [3] = { { A(-.05f, -.48f, .5f, .47f, 200, 440), A(-.05f, .46f, .56f, .48f, -75, 160) },
            { P(-.5f, -.93f), P(.48f, -.93f), P(-.05f, -.2f),
              A(-.06f, .38f, .56f, .56f, -75, 155) } },
    [4] = { { P(.2f, -.95f), P(-.58f, .3f), P(.6f, .3f), LIFT, P(.25f, -.3f),
              P(.25f, .95f) },
            { P(-.45f, -.95f), P(-.5f, .05f), P(.5f, .05f), LIFT, P(.42f, -.95f),
              P(.42f, .95f) } },
    [5] = { { P(.52f, -.93f), P(-.4f, -.93f), P(-.46f, -.1f),
              A(-.03f, .36f, .55f, .58f, -130, 150) },
            { P(.55f, -.93f), P(-.3f, -.93f), P(-.38f, -.05f),
              A(-.05f, .42f, .58f, .52f, -110, 130) } },
    [6] = { { A(.42f, .4f, .93f, 1.35f, 265, 180), A(0, .43f, .51f, .52f, 180, 540) },
            { P(.3f, -.95f), P(-.4f, .1f), A(.02f, .45f, .52f, .5f, 200, 560) } },
    [7] = { { P(-.55f, -.93f), P(.55f, -.93f), P(-.15f, .95f) },
            { P(-.52f, -.9f), P(.55f, -.93f), P(0, .95f), LIFT, P(-.25f, 0),
              P(.48f, 0) } },
    [8] = { { A(0, -.48f, .43f, .46f, 90, 450), A(0, .47f, .53f, .48f, -90, 270) },
            { A(0, -.5f, .4f, .43f, -20, -270), A(0, .45f, .5f, .5f, -90, 270) } },
    [9] = { { A(-.02f, -.42f, .5f, .52f, 0, 360), P(.3f, .95f) },
            { A(0, -.42f, .5f, .5f, 10, 365), A(-.3f, .1f, .8f, .85f, 0, 75) } },
};
#undef P
#undef A
#undef LIFT
/* clang-format on */

/* ---- one sample's distortion ---- */

typedef struct look {
    float xx, xy, yx, yy, dx, dy; /* shape coordinates to pixels */
    float wave, wave_phase;       /* bends the strokes sideways */
    float half_width, ink, noise, paper;
} look;

/* Ranges of what is drawn at random, each uniform in [low, high]. */
/* clang-format off */
enum knob { ROTATION, SCALE_X, SCALE_Y, SHEAR, SHIFT_X, SHIFT_Y, WAVE, WAVE_PHASE, WIDTH, INK,
            NOISE, PAPER, FORM, KNOBS };
/* clang-format on */

static const struct {
    float low, high;
} ranges[KNOBS] = {
    [ROTATION] = { -.30f, .30f }, /* radians: 17 degrees, so that 6 and 9 stay apart */
    [SCALE_X] = { 6.0f, 10.0f },  /* pixels for a unit: 12 to 20 pixels high */
    [SCALE_Y] = { 7.0f, 10.5f },  [SHEAR] = { -.25f, .25f }, [SHIFT_X] = { -3.0f, 3.0f }, /* pixels */
    [SHIFT_Y] = { -2.5f, 2.5f },  [WAVE] = { -.12f, .12f },  [WAVE_PHASE] = { 0, 6.2831853f },
    [WIDTH] = { .7f, 1.6f },                           /* half a stroke, in pixels */
    [INK] = { 130, 255 },         [NOISE] = { 5, 30 }, /* standard deviation, in grey levels */
    [PAPER] = { 0, 20 },          [FORM] = { 0, FORMS },
};

enum { NOISE_WORDS_FROM = 64 }; /* numbers of a sample's stream before this belong to the knobs */

static look look_draw(uint64_t seed, uint64_t stream, int *form)
{
    float k[KNOBS];
    look l;

    for (int i = 0; i < KNOBS; i++)
        k[i] = ranges[i].low + (ranges[i].high - ranges[i].low) * cek__random_uniform(seed, stream, (uint64_t)i);
    float c = cosf(k[ROTATION]), s = sinf(k[ROTATION]);

    /* rotation x shear x scale, then the shift from the middle of the page */
    l.xx = c * k[SCALE_X];
    l.xy = (c * k[SHEAR] - s) * k[SCALE_Y];
    l.yx = s * k[SCALE_X];
    l.yy = (s * k[SHEAR] + c) * k[SCALE_Y];
    l.dx = (CEK__GLYPH_SIZE - 1) / 2.0f + k[SHIFT_X];
    l.dy = (CEK__GLYPH_SIZE - 1) / 2.0f + k[SHIFT_Y];
    l.wave = k[WAVE];
    l.wave_phase = k[WAVE_PHASE];
    l.half_width = k[WIDTH];
    l.ink = k[INK];
    l.noise = k[NOISE];
    l.paper = k[PAPER];
    *form = (int)k[FORM];
    return l;
}

/* ---- drawing ---- */

typedef struct point {
    float x, y;
} point;

static point place(const look *l, float x, float y)
{
    x += l->wave * sinf(3.0f * y + l->wave_phase);
    return (point){ l->xx * x + l->xy * y + l->dx, l->yx * x + l->yy * y + l->dy };
}

static int clamp(float x)
{
    return x < 0 ? 0 : x > CEK__GLYPH_SIZE - 1 ? CEK__GLYPH_SIZE - 1 : (int)x;
}

/* Inks the pixels near the segment a-b: full within half the width, fading over one pixel at the edge. */
static void segment_draw(const look *l, point a, point b, float ink[CEK__GLYPH_PIXELS])
{
    float reach = l->half_width + .5f;
    float dx = b.x - a.x, dy = b.y - a.y, length2 = dx * dx + dy * dy;
    int x0 = clamp(fminf(a.x, b.x) - reach), x1 = clamp(fmaxf(a.x, b.x) + reach + 1);
    int y0 = clamp(fminf(a.y, b.y) - reach), y1 = clamp(fmaxf(a.y, b.y) + reach + 1);

    for (int y = y0; y <= y1; y++)
        for (int x = x0; x <= x1; x++) {
            float px = (float)x - a.x, py = (float)y - a.y;
            float t = length2 > 0 ? (px * dx + py * dy) / length2 : 0;
            float *pixel = &ink[y * CEK__GLYPH_SIZE + x];
            float cover;

            t = fminf(fmaxf(t, 0), 1);
            px -= t * dx;
            py -= t * dy;
            cover = fminf(reach - sqrtf(px * px + py * py), 1);
            if (cover > *pixel)
                *pixel = cover;
        }
}

static void strokes_draw(const look *l, const part *p, float ink[CEK__GLYPH_PIXELS])
{
    point last = { 0, 0 };
    int pen_down = 0;

    for (const part *end = p + PARTS_MAX; p < end && p->kind != END; p++) {
        int steps = p->kind == ARC ? ARC_STEPS : 0;

        if (p->kind == UP) {
            pen_down = 0;
            continue;
        }
        for (int i = 0; i <= steps; i++) {
            float angle = (p->from + (p->to - p->from) * (float)i / ARC_STEPS) * 0.017453293f;
            point next = p->kind == ARC ? place(l, p->x + p->rx * cosf(angle), p->y + p->ry * sinf(angle))
                                        : place(l, p->x, p->y);

            if (pen_down)
                segment_draw(l, last, next, ink);
            last = next;
            pen_down = 1;
        }
    }
}

/* The sum of a word's four bytes is as good as normal at 8 bits: mean 510, variance 4 (256^2 - 1) / 12. */
static float noise_of(uint32_t word)
{
    int sum = (int)(word & 255) + (int)(word >> 8 & 255) + (int)(word >> 16 & 255) + (int)(word >> 24);

    return (float)(sum - 510) * (1 / 147.80f);
}

static void develop(const look *l, uint64_t seed, uint64_t stream, const float ink[CEK__GLYPH_PIXELS],
                    uint8_t image[CEK__GLYPH_PIXELS])
{
    uint32_t key[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };
    uint32_t words[4];

    for (uint32_t i = 0; i < CEK__GLYPH_PIXELS; i++) {
        uint32_t counter[4] = { NOISE_WORDS_FROM / 4 + i / 4, 0, (uint32_t)stream, (uint32_t)(stream >> 32) };
        float grey;

        if (i % 4 == 0)
            cek__philox4x32_10(counter, key, words);
        grey = l->paper + (l->ink - l->paper) * ink[i] + l->noise * noise_of(words[i % 4]);
        image[i] = (uint8_t)fminf(fmaxf(grey + .5f, 0), 255);
    }
}

static look strokes_of(uint64_t seed, uint64_t sample, float ink[CEK__GLYPH_PIXELS])
{
    int form;
    look l = look_draw(seed, cek__stream(CEK__STREAM_GLYPHS, sample), &form);

    memset(ink, 0, CEK__GLYPH_PIXELS * sizeof *ink);
    strokes_draw(&l, shapes[sample % CEK__GLYPH_CLASSES][form], ink);
    return l;
}

void cek__glyph_ink(uint64_t seed, uint64_t sample, float ink[CEK__GLYPH_PIXELS])
{
    strokes_of(seed, sample, ink);
}

void cek__glyph_draw(uint64_t seed, uint64_t sample, uint8_t image[CEK__GLYPH_PIXELS])
{
    float ink[CEK__GLYPH_PIXELS];
    look l = strokes_of(seed, sample, ink);

    develop(&l, seed, cek__stream(CEK__STREAM_GLYPHS, sample), ink, image);
}

/* ---- data sets ---- */

cek_status cek__digits_dataset(const cek__digits *digits, uint64_t seed, bool train, cek_dataset **out)
{
    const cek__data_format format = { .input_type = CEK_U8,
                                      .input_rank = 3,
                                      .input_shape = { digits->size, digits->size, digits->channels },
                                      .target_type = CEK_I32,
                                      .target_width = 1,
                                      .class_count = CEK__GLYPH_CLASSES };
    const int64_t first = train ? 0 : digits->train, count = train ? digits->train : digits->test;
    const int64_t bytes = digits->size * digits->size * digits->channels;
    uint8_t *images = NULL;
    int32_t *labels = NULL;
    cek_status st;

    *out = NULL;
    CEK_TRY(cek__alloc_array((size_t)count, (size_t)bytes, &images));
    CEK_TRY(cek__alloc_array((size_t)count, sizeof *labels, &labels));
    for (int64_t i = 0; i < count; i++) {
        digits->draw(seed, (uint64_t)(first + i), images + i * bytes);
        labels[i] = (int32_t)((first + i) % CEK__GLYPH_CLASSES);
    }
    return cek__dataset_adopt(&format, count, images, labels, out);
out:
    free(images);
    free(labels);
    return st;
}

cek_status cek__glyphs_dataset(uint64_t seed, bool train, cek_dataset **out)
{
    static const cek__digits digits = { CEK__GLYPH_SIZE, 1, CEK__GLYPHS_TRAIN, CEK__GLYPHS_TEST, cek__glyph_draw };

    return cek__digits_dataset(&digits, seed, train, out);
}
