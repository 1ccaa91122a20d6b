/* convert.c - bf16 and f16 storage to and from floats, by integer arithmetic alone.
 *
 * Owns: the conversions; rounding is to nearest even, NaN stays NaN, subnormals are exact.
 * Must not know: who stores what. */
#include "kernels/cpu/table.h"
#include "kernels/cpu/vector.h"

static inline vu u_select(vu mask, vu a, vu b)
{
    return (mask & a) | (~mask & b);
}
static inline vu u_all(uint32_t x)
{
    return x + (vu){ 0 };
}

static inline vu from_bf16(vu h)
{
    return h << 16;
}

static inline vu to_bf16(vu f)
{
    const vu rounded = (f + 0x7fff + (f >> 16 & 1)) >> 16;
    const vu is_nan = (vu)((f & 0x7fffffff) > u_all(0x7f800000));
    return u_select(is_nan, f >> 16 | 0x40, rounded);
}

/* A half's bits, moved to a float's place, read as the value times 2^-112: one multiplication gives
 * exponents their bias back and makes subnormals normal. Infinity and NaN get a float's largest
 * exponent. */
static inline vu from_f16(vu h)
{
    const vu magnitude = (h & 0x7fff) << 13;
    const vu scaled = (vu)((vf)magnitude * 0x1p112f);
    const vu special = (vu)(magnitude >= u_all(0x7c00 << 13));
    return u_select(special, magnitude | 0x7f800000, scaled) | (h & 0x8000) << 16;
}

static inline vu to_f16(vu f)
{
    const vu sign = f >> 16 & 0x8000, a = f & 0x7fffffff;
    /* normal halves: round at bit 13, then change the bias; an overflow of the mantissa carries
     * into the exponent */
    vu h = (a + 0xfff + (a >> 13 & 1) - (112u << 23)) >> 13;
    /* below 2^-14: adding 1/2 aligns the unit of float's last place with a subnormal half's, and
     * rounds */
    const vu small = (vu)((vf)a + 0.5f) - 0x3f000000;
    h = u_select((vu)(a < u_all(113u << 23)), small, h);
    h = u_select((vu)(a >= u_all(0x477ff000)), u_all(0x7c00), h); /* 65520 and more round to infinity */
    h = u_select((vu)(a > u_all(0x7f800000)), (a >> 13 & 0x3ff) | 0x7e00, h);
    return h | sign;
}

/* `function` converts a vector of bits; the last, partial vector of halves goes through an array.
 * */
#define LOAD(function)                                                              \
    for (; i + VL <= n; i += VL)                                                    \
        v_store(to + i, (vf)function(v_from_u16(*(const vh_mem *)(h + i))));        \
    if (i < n) {                                                                    \
        uint16_t in[VL] = { 0 };                                                    \
        memcpy(in, h + i, (size_t)(n - i) * 2);                                     \
        v_store_part(to + i, n - i, (vf)function(v_from_u16(*(const vh_mem *)in))); \
    }                                                                               \
    break

void ISA_NAME(load)(cpu_type type, int64_t n, const void *from, float *to)
{
    const uint16_t *h = from;
    int64_t i = 0;
    switch (type) {
    case CPU_F32: memmove(to, from, (size_t)n * 4); break;
    case CPU_BF16: LOAD(from_bf16);
    case CPU_F16: LOAD(from_f16);
    }
}

#define STORE(function)                                                        \
    for (; i + VL <= n; i += VL)                                               \
        *(vh_mem *)(h + i) = v_to_u16(function((vu)v_load(from + i)));         \
    if (i < n) {                                                               \
        uint16_t out[VL];                                                      \
        *(vh_mem *)out = v_to_u16(function((vu)v_load_part(from + i, n - i))); \
        memcpy(h + i, out, (size_t)(n - i) * 2);                               \
    }                                                                          \
    break

void ISA_NAME(store)(cpu_type type, int64_t n, const float *from, void *to)
{
    uint16_t *h = to;
    int64_t i = 0;
    switch (type) {
    case CPU_F32: memmove(to, from, (size_t)n * 4); break;
    case CPU_BF16: STORE(to_bf16);
    case CPU_F16: STORE(to_f16);
    }
}
