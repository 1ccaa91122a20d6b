/* layout_round.c - f32 in 16 bits, on the host: what all devices begin with, before owners send what they have rounded,
 * and what they evaluate an average with.
 *
 * Not what takes an owner's place later: a device may take what is below the smallest normal number for zero, and the
 * others have its copy. */
#include <math.h>
#include <string.h>

#include "nn/model/layout.h"

static uint16_t bf16_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    if (isnan(x))
        return (uint16_t)(bits >> 16 | 1u << 6);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static uint16_t f16_of(float x)
{
    uint32_t bits, sign;

    memcpy(&bits, &x, sizeof bits);
    sign = bits >> 16 & 0x8000;
    bits &= 0x7fffffff;
    if (isnan(x))
        return (uint16_t)(sign | 0x7e00);
    if (bits >= 0x47800000) /* 2^16 */
        return (uint16_t)(sign | 0x7c00);
    if (bits < 0x38800000) /* 2^-14: steps of 2^-24 from there on */
        return (uint16_t)(sign | (uint32_t)nearbyintf(fabsf(x) * 0x1p24f));
    return (uint16_t)(sign | (bits - 0x38000000 + 0xfff + (bits >> 13 & 1)) >> 13);
}

void cek__layout_round(const cek__layout *layout, size_t bucket, const void *src, uint16_t *dst)
{
    const float *from = (const float *)src + layout->bucket_exact[bucket];
    const uint64_t count = layout->bucket_elements[bucket] - layout->bucket_exact[bucket];

    for (uint64_t i = 0; i < count; i++)
        dst[i] = layout->low == CEK_F16 ? f16_of(from[i]) : bf16_of(from[i]);
}
