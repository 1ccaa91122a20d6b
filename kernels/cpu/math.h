/* math.h - exp, tanh, sigmoid, erf and GELU on vectors of floats, for kernel files.
 *
 * Owns: the polynomials. Coefficients were fitted at Chebyshev nodes in double precision; beside each is the range and
 * the largest relative error of the polynomial itself, before rounding to float.
 * NaN in, NaN out; infinities give the limits. Errors of the functions are a few units in the last place (tests/unit/cpu_kernels.c
 * holds them against libm in double). */
#ifndef CEK_KERNELS_CPU_MATH_H
#define CEK_KERNELS_CPU_MATH_H

#include "kernels/cpu/isa.h"

static inline vf v_abs(vf x) { return (vf)((vi)x & 0x7fffffff); }

/* x with the sign of s */
static inline vf v_sign(vf x, vf s) { return (vf)(((vi)x & 0x7fffffff) | ((vi)s & (int32_t)0x80000000)); }

/* Comparisons are false for NaN, so a NaN passes both bounds. */
static inline vf v_clamp(vf x, float low, float high)
{
    x = v_select(x < v_all(low), v_all(low), x);
    return v_select(x > v_all(high), v_all(high), x);
}

/* 2^n for integers -126 <= n <= 127 */
static inline vf v_exp2i(vi n) { return (vf)((n + 127) << 23); }

static inline vf v_exp(vf x)
{
    /* beyond these exp is 0 or infinite in float; the scale is applied in two halves, so subnormal results are right */
    const vf c = v_clamp(x, -104.0f, 89.0f);
    const vf magic = v_all(12582912.0f);             /* 1.5 * 2^23: adding it rounds to an integer in the low bits */
    const vf t = v_fma(c, v_all(1.44269504f), magic);
    const vf whole = t - magic;
    vf r = v_fma(whole, v_all(-0.693359375f), c);    /* ln 2 in two parts: the first has 9 bits, so products are exact */
    r = v_fma(whole, v_all(2.12194440e-4f), r);

    vf p = v_all(1.3933643e-3f);                     /* (exp(r) - 1 - r) / r^2, |r| <= ln 2 / 2: 1.4e-7 */
    p = v_fma(p, r, v_all(8.3631756e-3f));
    p = v_fma(p, r, v_all(4.1666465e-2f));
    p = v_fma(p, r, v_all(1.6666577e-1f));
    p = v_fma(p, r, v_all(0.5f));
    p = v_fma(p * r, r, r) + 1.0f;

    /* a NaN's n is garbage, so n is kept within the range of two halves; p is NaN all the same */
    const vi n = ((vi)t - (vi)magic);
    const vi half = (n << 23) >> 24;                 /* n / 2 of the low 9 bits, with sign */
    const vi rest = ((n << 23) >> 23) - half;
    return p * v_exp2i(half) * v_exp2i(rest);
}

static inline vf v_sigmoid(vf x)
{
    return 1.0f / (1.0f + v_exp(-x));
}

static inline vf v_tanh(vf x)
{
    const vf a = v_abs(x), z = x * x;
    vf p = v_all(-6.1049493e-3f);                    /* (tanh(x) / x - 1) / x^2, |x| <= 0.625: 1.4e-7 */
    p = v_fma(p, z, v_all(2.1003642e-2f));
    p = v_fma(p, z, v_all(-5.3852498e-2f));
    p = v_fma(p, z, v_all(1.3332782e-1f));
    p = v_fma(p, z, v_all(-3.3333329e-1f));
    const vf small = v_fma(p * z, x, x);
    const vf large = 1.0f - 2.0f / (v_exp(a + a) + 1.0f);
    return v_select(a < v_all(0.625f), small, v_sign(large, x));
}

static inline vf v_erf(vf x)
{
    const vf a = v_abs(x), z = x * x;
    vf p = v_all(7.8824971e-5f);                     /* erf(x) / x in x^2, |x| <= 1: 1.4e-9 */
    p = v_fma(p, z, v_all(-8.0188550e-4f));
    p = v_fma(p, z, v_all(5.1893119e-3f));
    p = v_fma(p, z, v_all(-2.6854329e-2f));
    p = v_fma(p, z, v_all(1.1283597e-1f));
    p = v_fma(p, z, v_all(-3.7612627e-1f));
    p = v_fma(p, z, v_all(1.1283792f));

    const vf t = v_clamp(a, 1.0f, 4.0f);             /* erf(4) is 1 in float */
    vf q = v_all(-1.3309390e-5f);                    /* ln(1 - erf(x)), 1 <= x <= 4: 1.8e-7 */
    q = v_fma(q, t, v_all(3.1757203e-4f));
    q = v_fma(q, t, v_all(-3.4368676e-3f));
    q = v_fma(q, t, v_all(2.2621986e-2f));
    q = v_fma(q, t, v_all(-1.0331898e-1f));
    q = v_fma(q, t, v_all(-6.3909332e-1f));
    q = v_fma(q, t, v_all(-1.1259263f));
    q = v_fma(q, t, v_all(-7.5696863e-4f));
    const vf large = 1.0f - v_exp(q);
    return v_select(a < v_all(1.0f), x * p, v_sign(large, x));
}

/* The normal distribution function, and with it GELU and its derivative. */
static inline vf v_phi(vf x) { return v_fma(v_erf(x * 0.70710678f), v_all(0.5f), v_all(0.5f)); }

static inline vf v_gelu(vf x)
{
    /* -inf * 0 would be NaN; the limit is 0 */
    return v_clamp(x, -16.0f, __builtin_inff()) * v_phi(x);
}

static inline vf v_gelu_slope(vf x)
{
    const vf c = v_clamp(x, -16.0f, 16.0f);          /* beyond, the density is 0 in float */
    return v_fma(c * 0.39894228f, v_exp(c * c * -0.5f), v_phi(c));
}

#endif
