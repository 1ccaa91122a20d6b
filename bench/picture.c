/* picture.c - see picture.h. */
#include "bench/picture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROW = 4,           /* samples */
    WIDTH_LEAST = 80,  /* of a sample: for "99 100% 42", and more where there are more classes */
    WIDTH_MOST = 256,  /* larger ones are thinned out: a picture is looked at, not measured */
    GAP = 4,           /* around a sample */
    DOT = 2,           /* pixels of a dot of a letter */
    LETTER = 4 * DOT,  /* with the gap behind it */
    CAPTION = 7 * DOT, /* with the gaps above and below */
};

typedef struct colour {
    uint8_t r, g, b;
} colour;
static const colour right = { 80, 200, 80 }, wrong = { 240, 80, 70 }, plain = { 230, 230, 230 };

/* A digit of this number for each row of dots, from above: its bits are the dots. */
static unsigned letter_dots(char letter)
{
    static const unsigned digits[] = { 075557, 026227, 071747, 071717, 055711, 074717, 074757, 071111, 075757, 075717 };
    return letter >= '0' && letter <= '9' ? digits[letter - '0'] : letter == '%' ? 051245 : 0;
}

static void text_draw(picture *p, int64_t x, int64_t y, const char *text, colour c)
{
    for (; *text; text++, x += LETTER)
        for (int dot = 0; dot < 15 * DOT * DOT; dot++) {
            const int64_t row = dot / (3 * DOT), column = dot % (3 * DOT);
            if (letter_dots(*text) >> (14 - 3 * (row / DOT) - column / DOT) & 1 && x + column < p->width)
                memcpy(p->pixels + 3 * ((y + row) * p->width + x + column), &c, 3);
        }
}

/* A sample's pixel, of each of its channels, as a byte. */
typedef struct scale {
    double low, factor;
} scale;

static scale scale_of(const picture_samples *s, int64_t sample)
{
    const int64_t size = s->height * s->width * s->channels;
    const float *at = (const float *)s->pixels + sample * size;
    float low = INFINITY, high = -INFINITY;
    if (s->type == CEK_U8)
        return (scale){ 0, 1 };
    for (int64_t i = 0; i < size; i++) {
        low = fminf(low, at[i]);
        high = fmaxf(high, at[i]);
    }
    return (scale){ low, high > low ? 255 / ((double)high - low) : 0 };
}

static uint8_t byte_of(const picture_samples *s, int64_t at, scale by)
{
    if (s->type == CEK_U8)
        return ((const uint8_t *)s->pixels)[at];
    const double value = (((const float *)s->pixels)[at] - by.low) * by.factor;
    return value > 0 ? (uint8_t)fmin(value + 0.5, 255) : 0; /* also of NaN */
}

static void sample_draw(const picture_samples *s, int64_t sample, int64_t height, int64_t width, picture *p, int64_t x,
                        int64_t y)
{
    const scale by = scale_of(s, sample);
    for (int64_t i = 0; i < height; i++)
        for (int64_t k = 0; k < width; k++) {
            const int64_t from = (sample * s->height + i * s->height / height) * s->width + k * s->width / width;
            uint8_t *to = p->pixels + 3 * ((y + i) * p->width + x + k);
            for (int64_t c = 0; c < 3; c++)
                to[c] = byte_of(s, from * s->channels + (s->channels == 3 ? c : 0), by);
        }
}

static void caption_draw(const picture_samples *s, int64_t sample, int64_t width, picture *p, int64_t x, int64_t y)
{
    const float *probability = s->probabilities + sample * s->classes;
    int64_t best = 0;
    char said[64], label[16]; /* of any numbers */
    for (int64_t i = 1; i < s->classes; i++)
        if (probability[i] > probability[best])
            best = i;
    const bool well = best == s->labels[sample];
    snprintf(said, sizeof said, "%lld %.0f%%", (long long)best, 100 * (double)probability[best]);
    snprintf(label, sizeof label, "%d", s->labels[sample]);
    text_draw(p, x, y, said, well ? right : wrong);
    if (!well)
        text_draw(p, x + width - LETTER * (int64_t)strlen(label), y, label, plain);
}

/* For the longest caption that there may be, so that pictures of a training are of one size whatever it says. */
static int64_t width_least(const picture_samples *s)
{
    int label = 0;
    for (int64_t i = 0; i < s->count; i++) {
        const int length = snprintf(NULL, 0, "%d", s->labels[i]);
        label = length > label ? length : label;
    }
    const int64_t width = LETTER * (int64_t)(snprintf(NULL, 0, "%lld 100%% ", (long long)s->classes - 1) + label);
    return width > WIDTH_LEAST ? width : WIDTH_LEAST;
}

bool picture_draw(const picture_samples *s, picture *out)
{
    const int64_t least = width_least(s), most = least > WIDTH_MOST ? least : WIDTH_MOST;
    const int64_t width = s->width < least  ? (least + s->width - 1) / s->width * s->width
                          : s->width > most ? most
                                            : s->width;
    const int64_t height = width * s->height > s->width ? width * s->height / s->width : 1;
    const int64_t across = s->count < ROW ? s->count : ROW, down = (s->count + ROW - 1) / ROW;
    out->width = across * (width + GAP) + GAP;
    out->height = down * (height + CAPTION + GAP) + GAP;
    out->pixels = malloc((size_t)(3 * out->width * out->height));
    if (!out->pixels)
        return false;
    memset(out->pixels, 32, (size_t)(3 * out->width * out->height));
    for (int64_t i = 0; i < s->count; i++) {
        const int64_t x = GAP + i % ROW * (width + GAP), y = GAP + i / ROW * (height + CAPTION + GAP);
        sample_draw(s, i, height, width, out, x, y);
        caption_draw(s, i, width, out, x, y + height + DOT);
    }
    return true;
}
