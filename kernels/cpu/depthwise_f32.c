/* depthwise_f32.c - a run of pixels of a depthwise convolution: every channel by itself, vectors along
 * channels.
 *
 * Owns: the sum over taps, and its counterpart for the weights. Must not know: geometry.
 *
 * Each sum is one chain, over taps or over pixels, in order, however long the run is. */
#include "kernels/cpu/table.h"
#include "kernels/cpu/vector.h"

enum { PIXELS = 4, TAPS = 9 }; /* chains at once: enough to hide what a multiplication takes */

/* n channels of `pixels` pixels; n is VL or less. */
V_INLINE void sum_pixels(int pixels, int64_t n, int64_t c, int64_t taps, const float *const *x, int64_t x_first,
                         int64_t x_step, const float *const *w, float *y, int64_t y_step)
{
    vf sum[PIXELS] = { 0 };

    for (int64_t t = 0; t < taps; t++) {
        const float *at = x[t] + x_first + c;
        const vf by = n == VL ? v_load(w[t] + c) : v_load_part(w[t] + c, n);
#pragma GCC unroll 4
        for (int i = 0; i < pixels; i++)
            sum[i] = v_fma(n == VL ? v_load(at + i * x_step) : v_load_part(at + i * x_step, n), by, sum[i]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < pixels; i++)
        if (n == VL)
            v_store(y + i * y_step + c, sum[i]);
        else
            v_store_part(y + i * y_step + c, n, sum[i]);
}

V_INLINE void sum_channels(int pixels, int64_t channels, int64_t taps, const float *const *x, int64_t x_first,
                           int64_t x_step, const float *const *w, float *y, int64_t y_step)
{
    int64_t c = 0;
    for (; c + VL <= channels; c += VL)
        sum_pixels(pixels, VL, c, taps, x, x_first, x_step, w, y, y_step);
    if (c < channels)
        sum_pixels(pixels, channels - c, c, taps, x, x_first, x_step, w, y, y_step);
}

void ISA_NAME(depthwise_sum_f32)(int64_t pixels, int64_t taps, int64_t channels, const float *const *x, int64_t x_step,
                                 const float *const *w, float *y, int64_t y_step)
{
    int64_t p = 0;
    for (; p + PIXELS <= pixels; p += PIXELS)
        sum_channels(PIXELS, channels, taps, x, p * x_step, x_step, w, y + p * y_step, y_step);
    for (; p < pixels; p++)
        sum_channels(1, channels, taps, x, p * x_step, x_step, w, y + p * y_step, y_step);
}

/* n channels of `taps` taps, over all pixels. */
V_INLINE void add_taps(int taps, int64_t n, int64_t c, int64_t pixels, const float *const *x, int64_t x_step,
                       const float *dy, int64_t dy_step, float *const *dw)
{
    vf sum[TAPS];

#pragma GCC unroll 9
    for (int t = 0; t < taps; t++)
        sum[t] = n == VL ? v_load(dw[t] + c) : v_load_part(dw[t] + c, n);
    for (int64_t p = 0; p < pixels; p++) {
        const vf by = n == VL ? v_load(dy + p * dy_step + c) : v_load_part(dy + p * dy_step + c, n);
#pragma GCC unroll 9
        for (int t = 0; t < taps; t++) {
            const float *at = x[t] + p * x_step + c;
            sum[t] = v_fma(n == VL ? v_load(at) : v_load_part(at, n), by, sum[t]);
        }
    }
#pragma GCC unroll 9
    for (int t = 0; t < taps; t++)
        if (n == VL)
            v_store(dw[t] + c, sum[t]);
        else
            v_store_part(dw[t] + c, n, sum[t]);
}

V_INLINE void add_channels(int taps, int64_t channels, int64_t pixels, const float *const *x, int64_t x_step,
                           const float *dy, int64_t dy_step, float *const *dw)
{
    int64_t c = 0;
    for (; c + VL <= channels; c += VL)
        add_taps(taps, VL, c, pixels, x, x_step, dy, dy_step, dw);
    if (c < channels)
        add_taps(taps, channels - c, c, pixels, x, x_step, dy, dy_step, dw);
}

void ISA_NAME(depthwise_add_f32)(int64_t pixels, int64_t taps, int64_t channels, const float *const *x, int64_t x_step,
                                 const float *dy, int64_t dy_step, float *const *dw)
{
    int64_t t = 0;
    for (; t + TAPS <= taps; t += TAPS)
        add_channels(TAPS, channels, pixels, x + t, x_step, dy, dy_step, dw + t);
    for (; t + 3 <= taps; t += 3)
        add_channels(3, channels, pixels, x + t, x_step, dy, dy_step, dw + t);
    for (; t < taps; t++)
        add_channels(1, channels, pixels, x + t, x_step, dy, dy_step, dw + t);
}
