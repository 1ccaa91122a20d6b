/* half.h - vectors of bf16 and f16 to and from floats, by integer arithmetic where no instruction does the same.
 *
 * Owns: the conversions; rounding is to nearest even, NaN stays NaN, subnormals are exact (those of bf16 are such of
 * f32, which the instruction for it takes for zero).
 * Must not know: who stores what. */
#ifndef CEK_KERNELS_CPU_HALF_H
#define CEK_KERNELS_CPU_HALF_H

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/vector.h"

V_INLINE vu u_select(vu mask, vu a, vu b)
{
#if defined CEK_ISA_AVX2
    return (vu)_mm256_blendv_epi8((__m256i)b, (__m256i)a, (__m256i)mask);
#else
    return (mask & a) | (~mask & b);
#endif
}
V_INLINE vu u_all(uint32_t x)
{
    return x + (vu){ 0 };
}

V_INLINE vf from_bf16(vh_mem h)
{
    return (vf)(v_from_u16(h) << 16);
}

/* The bits of a bf16 in each lane. */
V_INLINE vu bf16_bits(vf x)
{
    const vu f = (vu)x, rounded = (f + 0x7fff + (f >> 16 & 1)) >> 16;
    return u_select((vu)(x != x), f >> 16 | 0x40, rounded);
}

V_INLINE vh_mem to_bf16(vf x)
{
    return v_to_u16(bf16_bits(x));
}

/* Some twenty instructions where none does it: once for all loops of a file, of kernels that are to be small. */
#if defined CEK_ISA_AVX512 || defined CEK_ISA_AVX2 || defined CEK_ISA_NEON
#define HALF_CALL V_INLINE
#else
#define HALF_CALL static __attribute__((noinline, unused))
#endif

/* A half's bits, moved to a float's place, read as the value times 2^-112: one multiplication gives
 * exponents their bias back and makes subnormals normal. Infinity and NaN get a float's largest
 * exponent. */
HALF_CALL vf from_f16(vh_mem half)
{
#if defined CEK_ISA_AVX512
    return (vf)_mm512_cvtph_ps((__m256i)half);
#elif defined CEK_ISA_AVX2
    return (vf)_mm256_cvtph_ps((__m128i)half);
#else
    const vu h = v_from_u16(half), magnitude = (h & 0x7fff) << 13;
    const vu scaled = (vu)((vf)magnitude * 0x1p112f);
    const vu special = (vu)(magnitude >= u_all(0x7c00 << 13));
    return (vf)(u_select(special, magnitude | 0x7f800000, scaled) | (h & 0x8000) << 16);
#endif
}

HALF_CALL vh_mem to_f16(vf x)
{
#if defined CEK_ISA_AVX512
    return (vh_mem)_mm512_cvtps_ph((__m512)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif defined CEK_ISA_AVX2
    return (vh_mem)_mm256_cvtps_ph((__m256)x, _MM_FROUND_TO_NEAREST_INT);
#else
    const vu f = (vu)x, sign = f >> 16 & 0x8000, a = f & 0x7fffffff;
    /* normal halves: round at bit 13, then change the bias; an overflow of the mantissa carries
     * into the exponent */
    vu h = (a + 0xfff + (a >> 13 & 1) - (112u << 23)) >> 13;
    /* below 2^-14: adding 1/2 aligns the unit of float's last place with a subnormal half's, and
     * rounds */
    const vu small = (vu)((vf)a + 0.5f) - 0x3f000000;
    h = u_select((vu)(a < u_all(113u << 23)), small, h);
    h = u_select((vu)(a >= u_all(0x477ff000)), u_all(0x7c00), h); /* 65520 and more round to infinity */
    h = u_select((vu)(a > u_all(0x7f800000)), (a >> 13 & 0x3ff) | 0x7e00, h);
    return v_to_u16(h | sign);
#endif
}

/* VL elements of that type as floats. */
V_INLINE vf v_load_typed(cpu_type type, const void *p)
{
    if (type == CPU_F32)
        return v_load(p);
    const vh_mem h = *(const vh_mem *)p;
    return type == CPU_BF16 ? from_bf16(h) : from_f16(h);
}

/* n < VL elements, the others 0. A call of memcpy for so few takes longer than all that is done with them. */
#if defined CEK_ISA_AVX2
static __attribute__((noinline, unused)) vh_mem lanes_load_16(const void *p, int64_t n)
{
    const char *at = (const char *)p + (n & 4) * 2; /* of the last three at most */
    uint64_t four = 0;
    uint32_t two = 0;
    uint16_t one = 0;

    if (n & 4)
        memcpy(&four, p, 8);
    if (n & 2)
        memcpy(&two, at, 4);
    if (n & 1)
        memcpy(&one, at + (n & 2) * 2, 2);
    const uint64_t rest = two | (uint64_t)one << (n & 2) * 16;
    return (vh_mem)(n & 4 ? _mm_set_epi64x((long long)rest, (long long)four) : _mm_set_epi64x(0, (long long)rest));
}
#elif !defined CEK_ISA_AVX512
static __attribute__((noinline, unused)) vh_mem lanes_load_16(const void *p, int64_t n)
{
    vh_mem lanes = { 0 };

    memcpy(&lanes, p, (size_t)n * 2);
    return lanes;
}
#endif

/* The first n of them (0 <= n <= VL); the others read as 0. */
V_INLINE vf v_load_typed_part(cpu_type type, const void *p, int64_t n)
{
    if (type == CPU_F32)
        return v_load_part(p, n);
#if defined CEK_ISA_AVX512
    const vh_mem lanes = (vh_mem)_mm256_maskz_loadu_epi16((__mmask16)((1u << n) - 1), p);
#else
    const vh_mem lanes = n == VL ? *(const vh_mem *)p : lanes_load_16(p, n);
#endif
    return v_load_typed(type, &lanes);
}

#if defined CEK_ISA_AVX2
static __attribute__((noinline, unused)) void lanes_store_16(void *p, int64_t n, vh_mem lanes)
{
    __m128i left = (__m128i)lanes;
    char *at = p;

    if (n & 4) {
        _mm_storel_epi64((__m128i *)at, left);
        left = _mm_srli_si128(left, 8);
        at += 8;
    }
    if (n & 2) {
        _mm_storeu_si32(at, left);
        left = _mm_srli_si128(left, 4);
        at += 4;
    }
    if (n & 1)
        _mm_storeu_si16(at, left);
}
#elif !defined CEK_ISA_AVX512
static __attribute__((noinline, unused)) void lanes_store_16(void *p, int64_t n, vh_mem lanes)
{
    memcpy(p, &lanes, (size_t)n * 2);
}
#endif

/* The first n floats (0 <= n <= VL) as elements of that type; what is behind them is not written. */
V_INLINE void v_store_typed_part(cpu_type type, void *p, int64_t n, vf x)
{
    if (type == CPU_F32) {
        v_store_part(p, n, x);
        return;
    }
    const vh_mem h = type == CPU_BF16 ? to_bf16(x) : to_f16(x);
#if defined CEK_ISA_AVX512
    _mm256_mask_storeu_epi16(p, (__mmask16)((1u << n) - 1), (__m256i)h);
#else
    if (n == VL)
        *(vh_mem *)p = h;
    else
        lanes_store_16(p, n, h);
#endif
}

/* `call` with a constant for `type`, so that the choice is made once. */
#define FOR_TYPE(type, call)              \
    switch (type) {                       \
    case CPU_F32: call(CPU_F32); break;   \
    case CPU_BF16: call(CPU_BF16); break; \
    case CPU_F16: call(CPU_F16); break;   \
    }

#endif
