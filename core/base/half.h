/* half.h - 16-bit floats as floats, exactly.
 *
 * For what reads them on the host; rounding to them is core/tensor/dtype.c's. Plugins have backends/common/half.h. */
#ifndef CEK_CORE_BASE_HALF_H
#define CEK_CORE_BASE_HALF_H

#include <stdint.h>
#include <string.h>

static inline float cek__f16_value(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, exponent = bits >> 10 & 31, fraction = bits & 1023;
    uint32_t word;
    float value;

    if (exponent == 0) {
        value = (float)fraction * 0x1p-24f; /* zero and subnormals are exact in a float */
        return sign != 0 ? -value : value;
    }
    word = sign | (exponent == 31 ? 255 : exponent + 112) << 23 | fraction << 13;
    memcpy(&value, &word, sizeof value);
    return value;
}

static inline float cek__bf16_value(uint16_t bits)
{
    uint32_t word = (uint32_t)bits << 16;
    float value;

    memcpy(&value, &word, sizeof value);
    return value;
}

#endif
