/* dtype.c - the element types of plugin.h.
 *
 * Must not know: tensors or devices. */
#include "core/tensor/dtype.h"

#include <math.h>
#include <string.h>

#include "core/base/half.h"

static const struct {
    const char *name;
    size_t bytes;
} types[] = {
    [CEK_F32] = { "f32", 4 }, [CEK_F16] = { "f16", 2 }, [CEK_BF16] = { "bf16", 2 },
    [CEK_F64] = { "f64", 8 }, [CEK_U8] = { "u8", 1 },   [CEK_I32] = { "i32", 4 },
};

static bool known(cek_dtype type)
{
    return type < sizeof types / sizeof *types && types[type].name != NULL;
}

const char *cek_dtype_name(cek_dtype type)
{
    return known(type) ? types[type].name : "unknown";
}

size_t cek_dtype_bytes(cek_dtype type)
{
    return known(type) ? types[type].bytes : 0;
}

bool cek__dtype_is_float(cek_dtype type)
{
    return type == CEK_F32 || type == CEK_F16 || type == CEK_BF16 || type == CEK_F64;
}

cek_dtype cek__dtype_sum(cek_dtype type)
{
    return type == CEK_F64 ? CEK_F64 : CEK_F32;
}

/* A 16-bit float with `fraction` bits of fraction and this exponent bias, rounded once from the double. */
static uint16_t narrow(double value, int fraction, int bias)
{
    unsigned sign = signbit(value) ? 0x8000 : 0, infinity = (unsigned)(2 * bias + 1) << fraction;
    double magnitude = fabs(value), steps;
    int exponent;

    if (isnan(value))
        return (uint16_t)(sign | infinity | 1u << (fraction - 1));
    if (isinf(value) || magnitude == 0)
        return (uint16_t)(sign | (magnitude == 0 ? 0 : infinity));
    frexp(magnitude, &exponent);
    exponent = exponent - 1 < 1 - bias ? 1 - bias
                                       : exponent - 1; /* below the smallest normal number all steps are equal */
    if (exponent > bias)
        return (uint16_t)(sign | infinity);
    steps = nearbyint(ldexp(magnitude, fraction - exponent));
    /* For normal numbers `steps` has the hidden bit, which counts the exponent up by one; so does a carry. */
    return (uint16_t)(sign | (((unsigned)(exponent + bias - 1) << fraction) + (unsigned)steps));
}

static double clamp(double value, double low, double high)
{
    return isnan(value) ? 0 : value < low ? low : value > high ? high : nearbyint(value);
}

void cek__dtype_put(cek_dtype type, double value, void *out)
{
    float f32 = (float)value;
    uint16_t f16 = narrow(value, 10, 15), bf16 = narrow(value, 7, 127);
    int32_t i32 = (int32_t)clamp(value, INT32_MIN, INT32_MAX);
    uint8_t u8 = (uint8_t)clamp(value, 0, UINT8_MAX);

    switch (type) {
    case CEK_F32: memcpy(out, &f32, sizeof f32); break;
    case CEK_F16: memcpy(out, &f16, sizeof f16); break;
    case CEK_BF16: memcpy(out, &bf16, sizeof bf16); break;
    case CEK_F64: memcpy(out, &value, sizeof value); break;
    case CEK_I32: memcpy(out, &i32, sizeof i32); break;
    case CEK_U8: memcpy(out, &u8, sizeof u8); break;
    }
}

double cek__dtype_get(cek_dtype type, const void *element)
{
    float f32;
    double f64;
    int32_t i32;
    uint16_t half;

    switch (type) {
    case CEK_F32: memcpy(&f32, element, sizeof f32); return (double)f32;
    case CEK_F64: memcpy(&f64, element, sizeof f64); return f64;
    case CEK_I32: memcpy(&i32, element, sizeof i32); return i32;
    case CEK_U8: return *(const uint8_t *)element;
    default:
        memcpy(&half, element, sizeof half);
        return (double)(type == CEK_F16 ? cek__f16_value(half) : cek__bf16_value(half));
    }
}
