/* number.c - element types and running error analysis; see number.h.
 *
 * Each rule here is the textbook one: fl(a op b) = (a op b)(1 + d), |d| <= u, with the operands'
 * errors carried to first order and the second order covered by using |v| + e. */
#include "spec/number.h"

#include <float.h>
#include <math.h>
#include <string.h>

size_t spec_type_bytes(cek_dtype type)
{
    switch (type) {
    case CEK_F64: return 8;
    case CEK_F32:
    case CEK_I32: return 4;
    case CEK_F16:
    case CEK_BF16: return 2;
    default: return 1;
    }
}

static const char *const type_names[] = {
    [CEK_F32] = "f32", [CEK_F16] = "f16", [CEK_BF16] = "bf16", [CEK_F64] = "f64", [CEK_U8] = "u8", [CEK_I32] = "i32",
};

const char *spec_type_name(cek_dtype type)
{
    return type && type < sizeof type_names / sizeof *type_names ? type_names[type] : "-";
}

cek_dtype spec_type_parse(const char *name, size_t length)
{
    for (cek_dtype t = 1; t < sizeof type_names / sizeof *type_names; t++)
        if (strlen(type_names[t]) == length && !memcmp(type_names[t], name, length))
            return t;
    return CEK_DTYPE_NONE;
}

cek_dtype spec_sum_type(cek_dtype type)
{
    return type == CEK_F64 ? CEK_F64 : CEK_F32;
}

long double spec_roundoff(cek_dtype type)
{
    switch (type) {
    case CEK_F64: return 0x1p-53L;
    case CEK_F32: return 0x1p-24L;
    case CEK_F16: return 0x1p-11L;
    case CEK_BF16: return 0x1p-8L;
    default: return 0;
    }
}

long double spec_tiny(cek_dtype type)
{
    switch (type) {
    case CEK_F64: return DBL_MIN;
    case CEK_F32:
    case CEK_BF16: return FLT_MIN;
    case CEK_F16:
        return 0x1p-24L; /* subnormals of f16 are ordinary f32 values on the way: only rounding, no
                            flush */
    default: return 0;
    }
}

long double spec_integer_limit(cek_dtype type)
{
    return type == CEK_I32 ? INT32_MAX : type == CEK_U8 ? 255 : 1 / spec_roundoff(type);
}

/* Rounds to `bits` bits of fraction above the spacing of the smallest exponent; ties to even by
 * rintl. */
static double round_binary(long double v, int bits, int min_exponent, long double overflow)
{
    if (isnan(v) || isinf(v) || v == 0)
        return (double)v;
    int exponent;
    frexpl(v, &exponent); /* |v| in [2^(exponent-1), 2^exponent) */
    if (exponent - 1 < min_exponent)
        exponent = min_exponent + 1;
    long double spacing = ldexpl(1, exponent - 1 - bits);
    long double rounded = rintl(v / spacing) * spacing;
    return fabsl(rounded) >= overflow ? copysign(INFINITY, (double)v) : (double)rounded;
}

static double round_integer(long double v, long double low, long double high)
{
    if (isnan(v))
        return 0;
    long double r = rintl(v);
    return (double)(r < low ? low : r > high ? high : r);
}

double spec_round(long double v, cek_dtype type)
{
    switch (type) {
    case CEK_F64: return (double)v;
    case CEK_F32: return (float)v;
    case CEK_F16: return round_binary(v, 10, -14, 65536.0L);
    case CEK_BF16: return round_binary(v, 7, -126, 0x1p128L);
    case CEK_U8: return round_integer(v, 0, 255);
    case CEK_I32: return round_integer(v, INT32_MIN, INT32_MAX);
    default: return (double)v;
    }
}

static uint16_t encode_f16(double v)
{
    uint16_t sign = signbit(v) ? 0x8000 : 0;
    if (isnan(v))
        return 0x7e00;
    double r = fabs(spec_round(v, CEK_F16));
    if (isinf(r))
        return sign | 0x7c00;
    if (r < 0x1p-14)
        return sign | (uint16_t)(r * 0x1p24);
    int exponent;
    double fraction = frexp(r, &exponent); /* [0.5, 1) */
    return sign | (uint16_t)((exponent + 14) << 10) | ((uint16_t)(fraction * 2048) & 0x3ff);
}

static double decode_f16(uint16_t h)
{
    int exponent = h >> 10 & 31;
    double fraction = h & 0x3ff;
    double r = exponent == 31 ? (fraction != 0 ? NAN : INFINITY)
               : exponent     ? ldexp(1024 + fraction, exponent - 25)
                              : ldexp(fraction, -24);
    return h & 0x8000 ? -r : r;
}

static uint16_t encode_bf16(double v)
{
    if (isnan(v))
        return 0x7fc0;
    float f = (float)spec_round(v, CEK_BF16);
    uint32_t bits;
    memcpy(&bits, &f, 4);
    return (uint16_t)(bits >> 16);
}

static double decode_bf16(uint16_t h)
{
    uint32_t bits = (uint32_t)h << 16;
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

void spec_encode(cek_dtype type, const double *values, size_t count, void *bytes)
{
    for (size_t i = 0; i < count; i++) {
        switch (type) {
        case CEK_F64: memcpy((char *)bytes + 8 * i, &values[i], 8); break;
        case CEK_F32: memcpy((char *)bytes + 4 * i, &(float){ (float)values[i] }, 4); break;
        case CEK_I32: memcpy((char *)bytes + 4 * i, &(int32_t){ (int32_t)spec_round(values[i], type) }, 4); break;
        case CEK_F16: memcpy((char *)bytes + 2 * i, &(uint16_t){ encode_f16(values[i]) }, 2); break;
        case CEK_BF16: memcpy((char *)bytes + 2 * i, &(uint16_t){ encode_bf16(values[i]) }, 2); break;
        default: ((uint8_t *)bytes)[i] = (uint8_t)spec_round(values[i], CEK_U8);
        }
    }
}

void spec_decode(cek_dtype type, const void *bytes, size_t count, double *values)
{
    for (size_t i = 0; i < count; i++) {
        double d;
        float f;
        int32_t n;
        uint16_t h;
        switch (type) {
        case CEK_F64:
            memcpy(&d, (const char *)bytes + 8 * i, 8);
            values[i] = d;
            break;
        case CEK_F32:
            memcpy(&f, (const char *)bytes + 4 * i, 4);
            values[i] = f;
            break;
        case CEK_I32:
            memcpy(&n, (const char *)bytes + 4 * i, 4);
            values[i] = n;
            break;
        case CEK_F16:
            memcpy(&h, (const char *)bytes + 2 * i, 2);
            values[i] = decode_f16(h);
            break;
        case CEK_BF16:
            memcpy(&h, (const char *)bytes + 2 * i, 2);
            values[i] = decode_bf16(h);
            break;
        default: values[i] = ((const uint8_t *)bytes)[i];
        }
    }
}

/* Adds the rounding of a result to `type`, unless an exact value is stored exactly. */
static spec_num rounded(cek_dtype type, long double v, long double e)
{
    if (e == 0 && (isnan(v) || spec_round(v, type) == v))
        return spec_exact(v);
    return (spec_num){ v, e + spec_roundoff(type) * (fabsl(v) + e) + spec_tiny(type) };
}

/* The same for a function that a device approximates: within SPEC_FUNCTION_ROUNDOFFS of the result,
 * never exact. */
static spec_num approximated(cek_dtype type, long double v, long double e)
{
    return (spec_num){ v, e + SPEC_FUNCTION_ROUNDOFFS * spec_roundoff(type) * (fabsl(v) + e) + spec_tiny(type) };
}

spec_num spec_sum(cek_dtype type, long double v, long double magnitude, uint64_t terms, bool whole)
{
    if (whole && (magnitude <= spec_integer_limit(type) || isnan(magnitude)))
        return spec_exact(v);
    long double nu = (terms + 1) * spec_roundoff(type);
    return (spec_num){ v, nu / (1 - nu) * magnitude + spec_tiny(type) };
}

spec_num spec_add(cek_dtype type, spec_num a, spec_num b)
{
    return rounded(type, a.v + b.v, a.e + b.e);
}

spec_num spec_sub(cek_dtype type, spec_num a, spec_num b)
{
    return rounded(type, a.v - b.v, a.e + b.e);
}

spec_num spec_mul(cek_dtype type, spec_num a, spec_num b)
{
    return rounded(type, a.v * b.v, fabsl(a.v) * b.e + fabsl(b.v) * a.e + a.e * b.e);
}

/* Division may be a reciprocal and a product: two roundings and one more for the reciprocal's own
 * error. */
spec_num spec_div(cek_dtype type, spec_num a, spec_num b)
{
    long double v = a.v / b.v, least = fabsl(b.v) - b.e;
    if (a.e == 0 && b.e == 0 && spec_round(v, type) == v &&
        (fabsl(v) == 0 || isinf(v) || frexpl(b.v, &(int){ 0 }) == 0.5L))
        return spec_exact(v);
    long double e = least > 0 ? (a.e + fabsl(v) * b.e) / least : isinf(v) ? 0 : INFINITY;
    return (spec_num){ v, e + 3 * spec_roundoff(type) * (fabsl(v) + e) + spec_tiny(type) };
}

spec_num spec_sqrt(cek_dtype type, spec_num a)
{
    long double v = sqrtl(a.v);
    if (a.e == 0 && (v == 0 || isnan(v)))
        return spec_exact(v);
    /* |sqrt(a+e) - sqrt(a)| <= e / sqrt(a), and <= sqrt(e) where a is that small; sqrt may be a *
     * rsqrt(a), 3 roundings */
    long double e = v > 0 ? fminl(a.e / v, sqrtl(a.e)) : sqrtl(a.e);
    return (spec_num){ v, e + 3 * spec_roundoff(type) * (v + e) + spec_tiny(type) };
}

spec_num spec_exp(cek_dtype type, spec_num a)
{
    long double v = expl(a.v);
    /* The argument is rounded in range reduction: |a| u more */
    long double e = isinf(v) ? 0 : v * expm1l(a.e + fabsl(a.v) * spec_roundoff(type));
    return isinf(a.v) ? spec_exact(v) : approximated(type, v, e);
}

spec_num spec_expm1(cek_dtype type, spec_num a)
{
    long double v = expm1l(a.v);
    return approximated(type, v, expl(a.v) * expm1l(a.e));
}

spec_num spec_log(cek_dtype type, spec_num a)
{
    long double v = logl(a.v);
    if (isinf(v) || isnan(v))
        return spec_exact(v);
    long double e = a.e < a.v ? -log1pl(-a.e / a.v) : INFINITY;
    return approximated(type, v, e);
}

spec_num spec_activation(cek_dtype type, cek_activation act, spec_num x)
{
    long double v = x.v, u = SPEC_FUNCTION_ROUNDOFFS * spec_roundoff(type);
    switch (act) {
    case CEK_ACT_RELU: return (spec_num){ v > 0 ? v : v <= 0 ? 0 : v, x.e };
    case CEK_ACT_TANH: return (spec_num){ tanhl(v), x.e + u * fabsl(tanhl(v)) + spec_tiny(type) };
    case CEK_ACT_SIGMOID: {
        long double y = 1 / (1 + expl(-v)), slope = y * (1 - y);
        return (spec_num){ y, x.e / 4 + slope * fabsl(v) * spec_roundoff(type) + u * y + spec_tiny(type) };
    }
    case CEK_ACT_GELU: { /* erf is within u of 1, so 1 + erf has an absolute error of u; the slope
                            is below 1.13 */
        long double y = v / 2 * (1 + erfl(v / sqrtl(2)));
        return (spec_num){ y, 1.13L * x.e + u * fabsl(v) + spec_tiny(type) };
    }
    default: return x;
    }
}

spec_num spec_derivative(cek_dtype type, cek_activation act, spec_num ref)
{
    long double r = ref.v, u = spec_roundoff(type);
    switch (act) {
    case CEK_ACT_RELU: return spec_exact(r <= 0 ? 0 : 1); /* NaN passes dy */
    case CEK_ACT_TANH: return spec_sub(type, spec_exact(1), spec_mul(type, ref, ref));
    case CEK_ACT_SIGMOID: return spec_mul(type, ref, spec_sub(type, spec_exact(1), ref));
    case CEK_ACT_GELU: {
        long double density = expl(-r * r / 2) / sqrtl(2 * acosl(-1));
        long double v = (1 + erfl(r / sqrtl(2))) / 2 + r * density;
        return (spec_num){ v, 1.2L * ref.e + SPEC_FUNCTION_ROUNDOFFS * u * (1 + fabsl(r) * density * (1 + r * r)) };
    }
    default: return spec_exact(1);
    }
}

void spec_store(cek_dtype type, spec_num a, double *expect, double *bound)
{
    *expect = spec_round(a.v, type);
    if (a.e == 0 || isnan(a.v)) {
        *bound = 0;
        return;
    }
    /* Rounding is monotonic: the stored value lies between those of v - e and v + e. */
    double low = spec_round(a.v - a.e, type), high = spec_round(a.v + a.e, type);
    *bound = fmax(fmax(high - *expect, *expect - low), (double)a.e);
}

void spec_philox(uint64_t key, uint64_t sample, uint32_t stream, uint64_t block, uint32_t word[4])
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t c[4] = { (uint32_t)block, stream, (uint32_t)sample, (uint32_t)(sample >> 32) };
    for (int round = 0; round < 10; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c[0], p1 = (uint64_t)0xCD9E8D57u * c[2];
        uint32_t next[4] = { (uint32_t)(p1 >> 32) ^ c[1] ^ k0, (uint32_t)p1, (uint32_t)(p0 >> 32) ^ c[3] ^ k1,
                             (uint32_t)p0 };
        memcpy(c, next, sizeof c);
    }
    memcpy(word, c, sizeof c);
}
