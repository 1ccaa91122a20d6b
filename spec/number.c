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
    switch (spec_plain(type)) {
    case CEK_F64: return DBL_MIN;
    case CEK_F32:
    case CEK_BF16: return FLT_MIN;
    case CEK_F16:
        return 0x1p-24L; /* subnormals of f16 are ordinary f32 values on the way: only rounding, no
                            flush */
    default: return 0;
    }
}

long double spec_ulp(cek_dtype type, long double magnitude)
{
    static const struct {
        int digits, least;
    } format[] = {
        [CEK_F32] = { 24, -149 }, [CEK_F16] = { 11, -24 }, [CEK_BF16] = { 8, -133 }, [CEK_F64] = { 53, -1074 }
    };
    int exponent;
    if (type >= sizeof format / sizeof *format || !(magnitude < INFINITY))
        return 0;
    frexpl(magnitude, &exponent); /* below 2^exponent, at least half of that */
    exponent -= format[type].digits;
    return ldexpl(1, exponent < format[type].least ? format[type].least : exponent);
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

/* What a result may be off by because it or an operand is flushed. */
static long double flushed(cek_dtype type)
{
    return type & SPEC_DENORMALS ? 0 : spec_tiny(type);
}

static bool representable(cek_dtype type, long double v)
{
    return isnan(v) || (spec_round(v, spec_plain(type)) == v && (v == 0 || fabsl(v) >= flushed(type)));
}

/* A result that is at most `ulps` away from v, beside the error `e` that came with the operands. */
static spec_num within(cek_dtype type, long double v, long double e, double ulps)
{
    return (spec_num){ v, e + ulps * spec_ulp(spec_plain(type), fabsl(v) + e) + flushed(type) };
}

/* One correctly rounded: exact where an exact value is stored exactly. */
static spec_num rounded(cek_dtype type, long double v, long double e)
{
    return e == 0 && representable(type, v) ? spec_exact(v) : within(type, v, e, 0.5);
}

/* The error that a factor makes of another one's; none of none, also where the factor is infinite. */
static long double scaled(long double factor, long double e)
{
    return e == 0 ? 0 : fabsl(factor) * e;
}

spec_num spec_sum(cek_dtype type, long double v, long double magnitude, uint64_t terms, bool whole)
{
    if (whole && (terms == 1 || magnitude <= spec_integer_limit(type) || !isfinite(magnitude)))
        return (spec_num){ v, v != 0 && fabsl(v) < spec_tiny(type) ? spec_tiny(type) : 0 };
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
    /* Infinity times what may be 0 or not is nothing to rely on. */
    if ((isinf(a.v) && b.e > 0 && fabsl(b.v) <= b.e) || (isinf(b.v) && a.e > 0 && fabsl(a.v) <= a.e))
        return (spec_num){ INFINITY, INFINITY };
    if ((a.v == 0 && b.e > 0 && fabsl(b.v) <= b.e) || (b.v == 0 && a.e > 0 && fabsl(a.v) <= a.e))
        return (spec_num){ 0, a.e * b.e + DBL_TRUE_MIN }; /* zero times what has no sure sign */
    return rounded(type, a.v * b.v, scaled(a.v, b.e) + scaled(b.v, a.e) + scaled(a.e, b.e));
}

/* Exact, as on every device, where the divisor is a power of two. */
spec_num spec_div(cek_dtype type, spec_num a, spec_num b)
{
    long double v = a.v / b.v, least = fabsl(b.v) - b.e;
    if (a.e == 0 && b.e == 0 && representable(type, v) &&
        (v == 0 || isinf(v) || isnan(v) || fabsl(frexpl(b.v, &(int){ 0 })) == 0.5L))
        return spec_exact(v);
    if (isinf(v))
        return (spec_num){ v, least > 0 ? 0 : INFINITY };
    return within(type, v, least > 0 ? (a.e + scaled(v, b.e)) / least : INFINITY, CEK_ULP_DIV);
}

spec_num spec_sqrt(cek_dtype type, spec_num a)
{
    long double v = sqrtl(a.v);
    if (a.e == 0 && (v == 0 || isinf(v) || isnan(v)))
        return spec_exact(v);
    /* |sqrt(a+e) - sqrt(a)| <= e / sqrt(a), and <= sqrt(e) where a is that small */
    return within(type, v, v > 0 ? fminl(a.e / v, sqrtl(a.e)) : sqrtl(a.e), CEK_ULP_SQRT);
}

spec_num spec_exp(cek_dtype type, spec_num a)
{
    long double v = expl(a.v);
    if (isinf(a.v) || isnan(a.v) || (a.v == 0 && a.e == 0))
        return spec_exact(v);
    return within(type, v, scaled(v, expm1l(a.e)), CEK_ULP_EXP);
}

/* One whose slope is at most `slope` within the operand's error, exact where zeros, infinities and NaN make it so. */
static spec_num smooth(cek_dtype type, spec_num a, long double v, long double slope, double ulps)
{
    if (isnan(v) || (a.e == 0 && (a.v == 0 || isinf(a.v) || isinf(v))))
        return spec_exact(v);
    return within(type, v, scaled(slope, a.e), ulps);
}

spec_num spec_expm1(cek_dtype type, spec_num a)
{
    return smooth(type, a, expm1l(a.v), a.e > 0 ? expl(a.v) * expm1l(a.e) / a.e : 0, CEK_ULP_EXPM1);
}

spec_num spec_log(cek_dtype type, spec_num a)
{
    long double v = logl(a.v);
    if (isinf(v) || isnan(v) || (v == 0 && a.e == 0))
        return spec_exact(v);
    return within(type, v, a.e < a.v ? -log1pl(-a.e / a.v) : INFINITY, CEK_ULP_LOG);
}

/* The power is monotonic in both operands where a > 0: it lies between those of the corners. */
spec_num spec_pow(cek_dtype type, spec_num a, spec_num b)
{
    long double v = powl(a.v, b.v), e = 0;
    bool edge = a.v == 0 || b.v == 0 || a.v == 1 || isinf(a.v) || isinf(b.v);
    if (a.e == 0 && b.e == 0)
        return edge || isnan(v) ? spec_exact(v) : within(type, v, 0, CEK_ULP_POW);
    if (!(a.v - a.e > 0))
        return (spec_num){ v, INFINITY };
    for (int corner = 0; corner < 4; corner++)
        e = fmaxl(e, fabsl(powl(a.v + (corner & 1 ? a.e : -a.e), b.v + (corner & 2 ? b.e : -b.e)) - v));
    return within(type, v, e, CEK_ULP_POW);
}

spec_num spec_erf(cek_dtype type, spec_num a)
{
    return smooth(type, a, erfl(a.v), 1.13L, CEK_ULP_ERF);
}

spec_num spec_log1p(cek_dtype type, spec_num a)
{
    const long double v = log1pl(a.v), room = 1 + a.v - a.e;
    return room > 0 || a.e == 0 ? smooth(type, a, v, 1 / room, CEK_ULP_LOG1P) : (spec_num){ v, INFINITY };
}

spec_num spec_floor(spec_num a)
{
    return (spec_num){ floorl(a.v), isnan(a.v) ? 0 : floorl(a.v + a.e) - floorl(a.v - a.e) };
}

spec_num spec_sign(spec_num a)
{
    return (spec_num){ a.v > 0 ? 1 : a.v < 0 ? -1 : a.v, fabsl(a.v) > a.e || a.e == 0 ? 0 : 2 };
}

spec_num spec_sin(cek_dtype type, spec_num a)
{
    return smooth(type, a, sinl(a.v), 1, CEK_ULP_SIN);
}

spec_num spec_cos(cek_dtype type, spec_num a)
{
    return smooth(type, a, cosl(a.v), 1, CEK_ULP_COS);
}

spec_num spec_activation(cek_dtype type, cek_activation act, spec_num x)
{
    long double v = x.v, y;
    bool edge = x.e == 0 && (v == 0 || isinf(v));
    switch (act) {
    case CEK_ACT_RELU: return (spec_num){ v > 0 ? v : v <= 0 ? 0 : v, x.e };
    case CEK_ACT_TANH: y = tanhl(v); return edge ? spec_exact(y) : within(type, y, x.e, CEK_ULP_TANH);
    case CEK_ACT_SIGMOID:
        y = 1 / (1 + expl(-v));
        return edge && v != 0 ? spec_exact(y) : within(type, y, x.e / 4, CEK_ULP_SIGMOID);
    case CEK_ACT_GELU: /* erfc: 1 + erf would cancel; the slope is below 1.13 */
        y = v / 2 * erfcl(-v / sqrtl(2));
        return edge ? spec_exact(y) : within(type, y, 1.13L * x.e, CEK_ULP_GELU);
    default: return x;
    }
}

spec_num spec_act_grad(cek_dtype type, cek_activation act, spec_num dy, spec_num ref)
{
    long double r = ref.v;
    switch (act) {
    case CEK_ACT_RELU: return r <= 0 ? spec_exact(0) : dy; /* NaN in r passes dy */
    case CEK_ACT_TANH: return spec_mul(type, dy, spec_sub(type, spec_exact(1), spec_mul(type, ref, ref)));
    case CEK_ACT_SIGMOID: return spec_mul(type, dy, spec_mul(type, ref, spec_sub(type, spec_exact(1), ref)));
    case CEK_ACT_GELU: { /* two terms that cancel where r is negative: the error is that of their sizes */
        long double normal = erfcl(-r / sqrtl(2)) / 2, rest = r * expl(-r * r / 2) / sqrtl(2 * acosl(-1));
        spec_num size = within(type, normal + fabsl(rest), 1.2L * ref.e, CEK_ULP_GELU_GRAD);
        return spec_mul(type, dy, (spec_num){ normal + rest, size.e });
    }
    default: return dy;
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
    *bound = isinf(a.e) ? INFINITY : fmax(fmax(high - *expect, *expect - low), DBL_TRUE_MIN); /* 0: what is exact */
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
