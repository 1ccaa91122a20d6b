/* vmath.h - elementary functions on vectors of floats.
 *
 * Owns: exp, log, sine and cosine of a turn, and the activations made of them, with their
 * derivatives.
 * Must not know: where the numbers come from. No tables, no branches, no errno; NaN stays NaN.
 *
 * The polynomials were fitted for this file (weighted minimax over the reduced interval, then
 * rounded to f32). Largest errors over all finite floats, in units of the last place of the
 * result, denormal ones too, with and without fused multiply-add (tests/cpu/math.c measures them
 * again); zeros keep the sign that the function gives them:
 *
 *     exp 1.1    log 0.8    tanh 1.4    sigmoid 2.3    sine, cosine 1.1e-7 absolute
 *     gelu 7    its derivative 7, in units of the sum of its terms' sizes */
#ifndef CEK_KERNELS_CPU_VMATH_H
#define CEK_KERNELS_CPU_VMATH_H

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/vector.h"

/* Nearest integer, |x| < 2^22: adding 1.5 * 2^23 leaves no room for a fraction. */
V_INLINE vf v_round(vf x)
{
    const vf magic = v_all(12582912.0f);

    return (x + magic) - magic;
}

/* exp(x + low), low much smaller than x: n = round(x / ln 2), then a polynomial on [-ln2/2,
 * ln2/2]. 2^n is applied in two halves, so that results below the normal range are rounded
 * rather than lost. */
V_INLINE vf v_exp_sum(vf x, vf low)
{
    /* beyond these the result is 0 or infinite; a comparison that NaN fails keeps NaN */
    vf bounded = v_select(x < -104.0f, v_all(-104.0f), v_select(x > 89.0f, v_all(89.0f), x));
    vf n = v_round(bounded * 1.44269504f);
    vf r = (bounded - n * 0.693359375f) + (n * 2.12194440e-4f + low); /* ln 2 = 0.693359375 - 2.1219444e-4 */
    vf p = v_all(0.00139504892f);
    vi whole, first;

    p = p * r + 0.0083688898f;
    p = p * r + 0.041666206f;
    p = p * r + 0.166665182f;
    p = p * r + 0.5f;
    p = p * (r * r) + r + 1.0f;
    whole = v_to_i32(v_select(n == n, n, v_all(0)));
    first = whole >> 1;
    return p * (vf)((first + 127) << 23) * (vf)((whole - first + 127) << 23);
}

V_INLINE vf v_exp(vf x)
{
    return v_exp_sum(x, v_all(0));
}

/* x = m * 2^e with m in [sqrt(1/2), sqrt 2), then a polynomial in m - 1. */
V_INLINE vf v_log(vf x)
{
    vi tiny = x < 1.17549435e-38f;
    vf scaled = v_select(tiny, x * 8388608.0f, x); /* denormal numbers have no hidden bit */
    vi bits = (vi)((vu)scaled - 0x3f3504f3u); /* sqrt(1/2); unsigned, since negative numbers and NaN pass here too */
    vf e = v_to_f32((bits >> 23) - (tiny & 23));
    vf f = (vf)((bits & 0x7fffff) + 0x3f3504f3) - 1.0f;
    vf p = v_all(0.06915126f), square = f * f, y;

    p = p * f - 0.117896847f;
    p = p * f + 0.118730202f;
    p = p * f - 0.123843722f;
    p = p * f + 0.142186552f;
    p = p * f - 0.166692495f;
    p = p * f + 0.200022265f;
    p = p * f - 0.249999866f;
    p = p * f + 0.333333105f;
    y = p * f * square - e * 2.12194440e-4f;
    y = y - 0.5f * square;
    y = f + y + e * 0.693359375f;
    y = v_select(x == 0, v_all(-__builtin_inff()), y);
    y = v_select(x < 0, v_all(__builtin_nanf("")), y);
    return v_select((x == __builtin_inff()) | (x != x), x, y);
}

/* cos and sin of 2 pi t for t in [0, 1]: whole quarter turns aside, an eighth of a turn either
 * way remains. */
V_INLINE void v_sincos_turn(vf t, vf *sine, vf *cosine)
{
    vf quarter = v_round(t * 4.0f);
    vf x = (t - quarter * 0.25f) * 6.28318531f;
    vf square = x * x;
    vi q = v_to_i32(quarter), swap = -(q & 1);
    vf s = v_all(2.71831163e-06f), c = v_all(2.44384501e-05f);

    s = s * square - 0.000198393347f;
    s = s * square + 0.00833332911f;
    s = s * square - 0.166666672f;
    s = s * square * x + x;
    c = c * square - 0.00138873677f;
    c = c * square + 0.0416666456f;
    c = c * square * square + (1.0f - 0.5f * square);
    *sine = (vf)((vi)v_select(swap, c, s) ^ ((q & 2) << 30));
    *cosine = (vf)((vi)v_select(swap, s, c) ^ (((q + 1) & 2) << 30));
}

V_INLINE vf v_relu(vf x)
{
    return v_select(x <= 0, v_all(0), x);
}

V_INLINE vf v_tanh(vf x)
{
    vf size = v_abs(x), square = x * x, p = v_all(0.00214753696f), far;

    p = p * square - 0.00818267372f;
    p = p * square + 0.0217029676f;
    p = p * square - 0.0539472029f;
    p = p * square + 0.133332103f;
    p = p * square - 0.333333313f;
    p = p * square * size + size;
    far = 1.0f - 2.0f / (v_exp(size + size) + 1.0f);
    return v_copysign(v_select(size < 0.625f, p, far), x); /* also of -0 */
}

/* 1 / (1 + e) or e / (1 + e) with e = exp(-|x|): neither overflows nor cancels. */
V_INLINE vf v_sigmoid(vf x)
{
    vf e = v_exp(-v_abs(x));

    return v_select(x < 0, e, v_all(1)) / (1.0f + e);
}

/* For the normal distribution function Phi: exp(-x*x/2) in *density, and Phi(-|x|) as a multiple of
 * it, so that neither cancels nor vanishes before the result does. erfc(z) = exp(-z*z) t P(t) with
 * t = 1 / (1 + z/2). */
V_INLINE vf v_normal_tail(vf x, vf *density)
{
    vf size = v_abs(x), t = 1.0f / (1.0f + 0.5f * (size * 0.707106781f));
    vf bounded = v_select(size < 16.0f, size, v_all(16.0f));                 /* exp(-128) is 0 already */
    vf high = (vf)((vi)bounded & (int32_t)0xfffff000), low = bounded - high; /* x*x = high*high exactly + the rest */
    vf p = v_all(0.0138520468f);

    p = p * t - 0.131616592f;
    p = p * t + 0.448174238f;
    p = p * t - 0.695050716f;
    p = p * t + 0.441483557f;
    p = p * t - 0.108793922f;
    p = p * t + 0.229018077f;
    p = p * t + 0.237934873f;
    p = p * t + 0.282937825f;
    p = p * t + 0.282060593f;
    *density = v_exp_sum(-0.5f * high * high, -low * (high + 0.5f * low));
    return 0.5f * p * t; /* NaN for NaN */
}

V_INLINE vf v_gelu(vf x)
{
    vf density, tail = v_normal_tail(x, &density);

    return v_select(x > 0, x * (1.0f - density * tail), x * tail * density); /* NaN for -inf, as the definition gives */
}

V_INLINE vf v_gelu_slope(vf x)
{
    vf density, tail = v_normal_tail(x, &density);
    vi above = x > 0;

    return v_select(above, v_all(1), v_all(0)) + (x * 0.398942280f + v_select(above, -tail, tail)) * density;
}

/* dy times the derivative; `ref` is the activation's output, for gelu its input. */
V_INLINE vf v_act_grad(cpu_act act, vf dy, vf ref)
{
    switch (act) {
    case CPU_ACT_RELU: return v_select(ref <= 0, v_all(0), dy);
    case CPU_ACT_TANH: return dy * (1.0f - ref * ref);
    case CPU_ACT_SIGMOID: return dy * (ref * (1.0f - ref));
    case CPU_ACT_GELU: return dy * v_gelu_slope(ref);
    case CPU_ACT_NONE: break;
    }
    return dy;
}

/* A long function is there once, for runs of whole vectors: y = f of a (and b), n a multiple of VL. What is left of a
 * run goes through it in a vector of its own. y may be a or b. */
typedef void v_run(int64_t n, const float *a, const float *b, float *y);
#define V_RUN(name, f)                                                    \
    static void name(int64_t n, const float *a, const float *b, float *y) \
    {                                                                     \
        (void)b;                                                          \
        for (int64_t i = 0; i < n; i += VL)                               \
            v_store(y + i, f(v_load(a + i)));                             \
    }

V_INLINE void v_run_part(v_run *run, int64_t n, vf a, vf b, float *y)
{
    float last[2 * VL]
        __attribute__((aligned(64))); /* a vector in two lines would be loaded long after it was stored */

    v_store(last, a);
    v_store(last + VL, b);
    run(VL, last, last + VL, last);
    v_store_part(y, n, v_load(last));
}

static __attribute__((noinline, unused)) void v_run_all(v_run *run, int64_t n, const float *a, const float *b, float *y)
{
    const int64_t rest = n % VL, whole = n - rest;

    run(whole, a, b, y);
    if (rest > 0)
        v_run_part(run, rest, v_load_part(a + whole, rest), v_load_part(b + whole, rest), y + whole);
}

#endif
