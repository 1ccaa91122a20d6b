/* SPDX-License-Identifier: MIT
 *
 * half.h - f16 and bf16 to f32 and back, one element at a time, bit for bit as IEEE 754 says: round to nearest even,
 * overflow to infinity, subnormals kept, NaN stays NaN. No hardware support is assumed.
 */
#ifndef CEK_BACKENDS_COMMON_HALF_H
#define CEK_BACKENDS_COMMON_HALF_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t cek__float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float cek__bits_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline float cek__bf16_to_f32(uint16_t h)
{
    return cek__bits_float((uint32_t)h << 16);
}

static inline uint16_t cek__f32_to_bf16(float x)
{
    uint32_t bits = cek__float_bits(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40); /* quiet, so that a NaN whose payload is in the low half stays one */
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static inline float cek__f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 0x3ff;
    if (exponent == 31)
        return cek__bits_float(sign | 0x7f800000u | fraction << 13);
    if (exponent)
        return cek__bits_float(sign | (exponent + 112) << 23 | fraction << 13);
    float tiny = (float)fraction * 0x1p-24f; /* subnormal or zero: exact */
    return sign ? -tiny : tiny;
}

static inline uint16_t cek__f32_to_f16(float x)
{
    uint32_t bits = cek__float_bits(x), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
    if (magnitude >= 0x47800000u) /* 65536 and above; 65520 to 65535 round up to infinity below */
        return (uint16_t)(sign | 0x7c00);
    if (magnitude < 0x38800000u) { /* below 2^-14: a multiple of 2^-24, rounded by an addition that drops the rest */
        float shifted = cek__bits_float(magnitude) + 0.5f;
        return (uint16_t)(sign | (cek__float_bits(shifted) - 0x3f000000u));
    }
    uint32_t rebased = magnitude - (112u << 23);
    return (uint16_t)(sign | (rebased + 0xfff + (rebased >> 13 & 1)) >> 13);
}

/* From f64 in one rounding: to f32 by truncation with the lost bits gathered in the last one ("round to odd"), which a
 * second rounding to so few bits cannot see wrongly. */
static inline float cek__f64_to_f32_odd(double x)
{
    float nearest = (float)x;
    if (isnan(x) || (double)nearest == x)
        return nearest;
    if (isinf(nearest)) /* finite, beyond f32: both half types overflow as well */
        return nearest;
    uint32_t bits = cek__float_bits(nearest);
    if (fabs((double)nearest) > fabs(x))
        bits--;
    return cek__bits_float(bits | 1);
}

static inline uint16_t cek__f64_to_f16(double x)
{
    return cek__f32_to_f16(cek__f64_to_f32_odd(x));
}

static inline uint16_t cek__f64_to_bf16(double x)
{
    return cek__f32_to_bf16(cek__f64_to_f32_odd(x));
}

#endif
