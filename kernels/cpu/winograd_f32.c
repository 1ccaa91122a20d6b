/* winograd_f32.c - the transforms of Winograd's convolutions of 3 x 3 taps, 2 x 2 and 4 x 4 outputs at once.
 *
 * Owns: the five matrices of either size, each applied to both sides of a small square, vectors along channels.
 * Must not know: images, tiles, products.
 *
 * With points 0, 1, -1 and infinity, or 0, a, -a, b, -b and infinity: y = At [(G g Gt) . (Bt d B)] A. The gradient of
 * the weights is the same form read backwards: dg = Gt [(A dy At) . (Bt d B)] G. */
#include "kernels/cpu/table.h"
#include "kernels/cpu/vector.h"

enum { SIDE_MAX = 6 };

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

/* n channels of a square of from x from, one of to x to: down its columns, then along its rows. */
V_INLINE void square(side *apply, int from, int to, int64_t n, const float *x, int64_t line, int64_t pixel, float *y,
                     int64_t line_to, int64_t pixel_to)
{
    vf half[SIDE_MAX][SIDE_MAX], in[SIDE_MAX], out[SIDE_MAX];

#pragma GCC unroll 6
    for (int j = 0; j < from; j++) {
#pragma GCC unroll 6
        for (int i = 0; i < from; i++) {
            const float *at = x + i * line + j * pixel;
            in[i] = n == VL ? v_load(at) : v_load_part(at, n);
        }
        apply(in, out);
#pragma GCC unroll 6
        for (int i = 0; i < to; i++)
            half[i][j] = out[i];
    }
#pragma GCC unroll 6
    for (int i = 0; i < to; i++) {
        apply(half[i], out);
#pragma GCC unroll 6
        for (int j = 0; j < to; j++) {
            float *at = y + i * line_to + j * pixel_to;
            if (n == VL)
                v_store(at, out[j]);
            else
                v_store_part(at, n, out[j]);
        }
    }
}

#define TRANSFORM(name, from, to)                                                                                    \
    static void name##_f32(int64_t channels, const float *x, int64_t line, int64_t pixel, float *y, int64_t line_to, \
                           int64_t pixel_to)                                                                         \
    {                                                                                                                \
        int64_t c = 0;                                                                                               \
        for (; c + VL <= channels; c += VL)                                                                          \
            square(name, from, to, VL, x + c, line, pixel, y + c, line_to, pixel_to);                                \
        if (c < channels)                                                                                            \
            square(name, from, to, channels - c, x + c, line, pixel, y + c, line_to, pixel_to);                      \
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
