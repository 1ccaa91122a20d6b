/* winograd_f32.c - the transforms of Winograd's convolutions of 3 x 3 taps, 2 x 2 and 4 x 4 outputs at once.
 *
 * Owns: the five matrices of either size, each applied to both sides of a small square, vectors along channels.
 * Must not know: images, tiles, products.
 *
 * With points 0, 1, -1 and infinity, or 0, a, -a, b, -b and infinity: y = At [(G g Gt) . (Bt d B)] A. The gradient of
 * the weights is the same form read backwards: dg = Gt [(A dy At) . (Bt d B)] G. */
#include "kernels/cpu/table.h"
#include "kernels/cpu/vector.h"

enum {
    SIDE_MAX = 6,
    AHEAD = 32, /* channels of each pixel, that are asked for before it is their turn: pixels are many short streams */
};

/* One side: y = matrix x. */
typedef void side(const vf *x, vf *y);

/* ---- 4 x 4 outputs of 6 x 6 inputs ---- */

#define SIDE_FN(name) V_INLINE void name##_4(const vf *x, vf *y)
#define SIDE_VECTOR vf
#include "kernels/cpu/winograd_sides.h"

/* ---- 2 x 2 outputs of 4 x 4 inputs ---- */

V_INLINE void input_2(const vf *x, vf *y)
{
    y[0] = x[0] - x[2];
    y[1] = x[1] + x[2];
    y[2] = x[2] - x[1];
    y[3] = x[1] - x[3];
}

V_INLINE void output_2(const vf *x, vf *y)
{
    y[0] = x[0] + x[1] + x[2];
    y[1] = x[1] - x[2] - x[3];
}

V_INLINE void weights_2(const vf *x, vf *y)
{
    const vf ends = (x[0] + x[2]) * 0.5f, middle = x[1] * 0.5f;

    y[0] = x[0];
    y[1] = ends + middle;
    y[2] = ends - middle;
    y[3] = x[2];
}

V_INLINE void gradient_2(const vf *x, vf *y)
{
    y[0] = x[0];
    y[1] = x[0] + x[1];
    y[2] = x[0] - x[1];
    y[3] = -x[1];
}

V_INLINE void weights_gradient_2(const vf *x, vf *y)
{
    const vf even = (x[1] + x[2]) * 0.5f;

    y[0] = x[0] + even;
    y[1] = (x[1] - x[2]) * 0.5f;
    y[2] = even + x[3];
}

/* ---- both sides ---- */

/* Six places that are a step apart, in bytes: left to itself gcc computes all 72 of a square's beforehand and fetches
 * them from the stack one by one, a quarter of the time. */
typedef struct places {
    int64_t one, three, five;
} places;

V_INLINE places places_of(int64_t step)
{
    places by = { 4 * step, 12 * step, 20 * step };
    __asm__("" : "+r"(by.one), "+r"(by.three), "+r"(by.five));
    return by;
}

V_INLINE int64_t place(const places *by, int i)
{
    return i == 5 ? by->five : i == 3 ? by->three : i * by->one;
}

/* n channels of a square of from x from, one of to x to: down its columns, then along its rows. All of x has been read
 * when the first of y is written. */
V_INLINE void square(side *apply, int from, int to, int64_t n, const float *x, int64_t line, int64_t pixel, float *y,
                     int64_t line_to, int64_t pixel_to)
{
    vf half[SIDE_MAX][SIDE_MAX], in[SIDE_MAX], out[SIDE_MAX];
    const places lines = places_of(line), pixels = places_of(pixel_to);

#pragma GCC unroll 6
    for (int j = 0; j < from; j++) {
        x += j > 0 ? pixel : 0;
        __asm__("" : "+r"(x));
#pragma GCC unroll 6
        for (int i = 0; i < from; i++) {
            const float *at = (const float *)(const void *)((const char *)x + place(&lines, i));
            in[i] = v_load_part(at, n);
            __builtin_prefetch(at + AHEAD, 0, 3);
        }
        apply(in, out);
#pragma GCC unroll 6
        for (int i = 0; i < to; i++)
            half[i][j] = out[i];
    }
#pragma GCC unroll 6
    for (int i = 0; i < to; i++) {
        y += i > 0 ? line_to : 0;
        __asm__("" : "+r"(y));
        apply(half[i], out);
#pragma GCC unroll 6
        for (int j = 0; j < to; j++)
            v_store_part((float *)(void *)((char *)y + place(&pixels, j)), n, out[j]);
    }
}

/* Copies n channels of a square to whole vectors, or back. */
static __attribute__((noinline)) void square_widen(int64_t points, int64_t n, const float *x, int64_t line,
                                                   int64_t pixel, float *to)
{
    for (int64_t i = 0; i < points; i++)
        for (int64_t j = 0; j < points; j++, to += VL)
            v_store(to, v_load_part(x + i * line + j * pixel, n));
}

static __attribute__((noinline)) void square_narrow(int64_t points, int64_t n, const float *from, float *y,
                                                    int64_t line, int64_t pixel)
{
    for (int64_t i = 0; i < points; i++)
        for (int64_t j = 0; j < points; j++, from += VL)
            v_store_part(y + i * line + j * pixel, n, v_load(from));
}

/* All channels, by one form of a square. Where there are no masks the last vector begins early, and does some channels
 * again; of fewer channels than a vector has, it is a copy. */
static __attribute__((noinline, unused)) void by_vectors(cpu_transform *vectors, int64_t from, int64_t to,
                                                         int64_t channels, const float *x, int64_t line, int64_t pixel,
                                                         float *y, int64_t line_to, int64_t pixel_to)
{
    const int64_t rest = channels % VL, whole = channels - rest;
    float part[SIDE_MAX * SIDE_MAX * VL];

    vectors(whole, x, line, pixel, y, line_to, pixel_to);
    if (rest > 0 && whole > 0) {
        vectors(VL, x + channels - VL, line, pixel, y + channels - VL, line_to, pixel_to);
    } else if (rest > 0) {
        square_widen(from, rest, x, line, pixel, part);
        vectors(VL, part, VL * from, VL, part, VL * to, VL);
        square_narrow(to, rest, part, y, line_to, pixel_to);
    }
}

#define TRANSFORM(name, from, to)                                                                                      \
    static void name##_vectors(int64_t channels, const float *x, int64_t line, int64_t pixel, float *y,                \
                               int64_t line_to, int64_t pixel_to)                                                      \
    {                                                                                                                  \
        for (; channels > 0; channels -= VL, x += VL, y += VL)                                                         \
            square(name, from, to, !HAS_MASKS || channels > VL ? VL : channels, x, line, pixel, y, line_to, pixel_to); \
    }                                                                                                                  \
    static void name##_f32(int64_t channels, const float *x, int64_t line, int64_t pixel, float *y, int64_t line_to,   \
                           int64_t pixel_to)                                                                           \
    {                                                                                                                  \
        if (HAS_MASKS)                                                                                                 \
            name##_vectors(channels, x, line, pixel, y, line_to, pixel_to);                                            \
        else                                                                                                           \
            by_vectors(name##_vectors, from, to, channels, x, line, pixel, y, line_to, pixel_to);                      \
    }

/* clang-format off */
TRANSFORM(input_4, 6, 6) TRANSFORM(output_4, 6, 4) TRANSFORM(weights_4, 3, 6) TRANSFORM(gradient_4, 4, 6)
TRANSFORM(weights_gradient_4, 6, 3)
TRANSFORM(input_2, 4, 4) TRANSFORM(output_2, 4, 2) TRANSFORM(weights_2, 3, 4) TRANSFORM(gradient_2, 2, 4)
TRANSFORM(weights_gradient_2, 4, 3)
    /* clang-format on */

    const cpu_winograd ISA_NAME(winograd_f32)[CPU_WINOGRADS] = {
        { 2, input_2_f32, output_2_f32, weights_2_f32, gradient_2_f32, weights_gradient_2_f32 },
        { 4, input_4_f32, output_4_f32, weights_4_f32, gradient_4_f32, weights_gradient_4_f32 },
    };
