/* depthwise_f32.c - one pixel of a depthwise convolution: every channel by itself, vectors along
 * channels.
 *
 * Owns: the sum over taps, and its counterpart for the weights. Must not know: geometry. */
#include "kernels/cpu/table.h"
#include "kernels/cpu/vector.h"

void ISA_NAME(depthwise_sum_f32)(int64_t taps, int64_t channels, const float *const *x, const float *const *w, float *y)
{
    int64_t c = 0;
    for (; c + 2 * VL <= channels; c += 2 * VL) {
        vf low = { 0 }, high = { 0 };
        for (int64_t t = 0; t < taps; t++) {
            low = v_fma(v_load(x[t] + c), v_load(w[t] + c), low);
            high = v_fma(v_load(x[t] + c + VL), v_load(w[t] + c + VL), high);
        }
        v_store(y + c, low);
        v_store(y + c + VL, high);
    }
    for (; c < channels; c += VL) {
        const int64_t n = channels - c < VL ? channels - c : VL;
        vf sum = { 0 };
        for (int64_t t = 0; t < taps; t++)
            sum = v_fma(v_load_part(x[t] + c, n), v_load_part(w[t] + c, n), sum);
        v_store_part(y + c, n, sum);
    }
}

void ISA_NAME(depthwise_add_f32)(int64_t taps, int64_t channels, const float *const *x, const float *dy,
                                 float *const *dw)
{
    int64_t c = 0;
    for (; c + VL <= channels; c += VL) {
        const vf d = v_load(dy + c);
        for (int64_t t = 0; t < taps; t++)
            v_store(dw[t] + c, v_fma(v_load(x[t] + c), d, v_load(dw[t] + c)));
    }
    if (c < channels) {
        const int64_t n = channels - c;
        const vf d = v_load_part(dy + c, n);
        for (int64_t t = 0; t < taps; t++)
            v_store_part(dw[t] + c, n, v_fma(v_load_part(x[t] + c, n), d, v_load_part(dw[t] + c, n)));
    }
}
